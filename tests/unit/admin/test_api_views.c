/* Jobs, ranks and racks as the page and the shell get them. */
#include "controller/admin/api_views.h"
#include "tests/harness/test.h"

#include <string.h>

#define START_NS  INT64_C(1780000140000000000)
#define SECOND_NS INT64_C(1000000000)

enum { RANKS = 16, GPUS = 4 };

/* Four trays in rack rk-1, of which the last rank's tray stands in no rack, and one spare. */
static struct engine *make_engine(void)
{
    AUTO(job_free) struct job *job = job_new("default/llm-17", RANKS);
    struct engine_params params = engine_params_default();
    int32_t rack = job_intern_rack(job, "rk-1", "rk-1.0");
    for (int32_t rank = 0; rank < RANKS; rank++) {
        char node[16];
        snprintf(node, sizeof node, "gb-%d", rank / GPUS);
        job->ranks[rank].tray = job_intern_tray(job, node, rank / GPUS == 3 ? JOB_NONE : rack);
        job->ranks[rank].gpu = (int16_t)(rank % GPUS);
    }
    job_intern_tray(job, "sp-0", rack);
    job->compute = COMPUTE_KERNEL;
    return engine_new(job, &params);
}

/* Rank 5 is slow from step 60 on. */
static int64_t feed(struct engine *engine, int steps)
{
    uint64_t random = 1;
    int64_t time_ns = START_NS;
    for (int step = 0; step < steps; step++) {
        time_ns += SECOND_NS;
        for (int32_t rank = 0; rank < RANKS; rank++) {
            double own = 700 + 5 * test_random_normal(&random);
            struct sample sample = {.measurement = MEASUREMENT_STEP,
                                    .time_ns = time_ns + rank * 100000,
                                    .rank = rank,
                                    .job = view_of("default/llm-17")};
            sample.present = 1u << FIELD_STEP | 1u << FIELD_STEP_MS | 1u << FIELD_COMPUTE_MS |
                             1u << FIELD_ALLREDUCE_MS;
            sample.values[FIELD_STEP] = step;
            sample.values[FIELD_COMPUTE_MS] = own * (rank == 5 && step >= 60 ? 1.4 : 1);
            sample.values[FIELD_STEP_MS] = step >= 60 ? 1280 : 1000;
            sample.values[FIELD_ALLREDUCE_MS] = sample.values[FIELD_STEP_MS] -
                                                sample.values[FIELD_COMPUTE_MS];
            engine_feed(engine, &sample);
        }
    }
    return time_ns;
}

static struct json *parse(const struct text *text)
{
    struct json *root = NULL;
    struct error error = {0};
    if (json_parse((struct view){text->bytes, text->length}, &root, &error) != OK)
        printf("\n%s in %s", error.message, text->bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

static const struct json *find(const struct json *array, const char *key, const char *value)
{
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item))
        if (strcmp(json_get_string(item, key, ""), value) == 0)
            return item;
    return NULL;
}

TEST(a_job_row_tells_step_pace_and_spares)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    feed(engine, 50);
    api_view_job_row(&writer, engine);
    AUTO(json_free) struct json *row = parse(&text);
    CU_ASSERT_STRING_EQUAL(json_get_string(row, "job", ""), "default/llm-17");
    CU_ASSERT_EQUAL(json_get_int(row, "world_size", 0), RANKS);
    CU_ASSERT_TRUE(json_get_int(row, "step", 0) >= 48);
    CU_ASSERT_EQUAL(json_get_int(row, "trays", 0), 5);
    CU_ASSERT_EQUAL(json_get_int(row, "spares", 0), 1);
    CU_ASSERT_FALSE(json_get_bool(row, "restartable", true));
}

TEST(a_job_that_has_sent_nothing_has_nulls_and_no_numbers_made_up)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    api_view_job_row(&writer, engine);
    AUTO(json_free) struct json *row = parse(&text);
    CU_ASSERT_EQUAL(json_kind(json_get(row, "step")), JSON_NULL);
    CU_ASSERT_EQUAL(json_kind(json_get(row, "step_ms")), JSON_NULL);
    CU_ASSERT_EQUAL(json_kind(json_get(row, "pace")), JSON_NULL);
}

TEST(ranks_stand_in_order_and_slow_ones_alone_with_the_worst_first)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT all = {0};
    AUTO_TEXT slow = {0};
    struct json_writer writer = json_writer(&all);
    feed(engine, 120);
    api_view_ranks(&writer, engine, false);
    writer = json_writer(&slow);
    api_view_ranks(&writer, engine, true);
    AUTO(json_free) struct json *every = parse(&all);
    AUTO(json_free) struct json *suspects = parse(&slow);
    CU_ASSERT_EQUAL(json_size(json_get(every, "ranks")), RANKS);
    CU_ASSERT_EQUAL(json_get_int(json_first(json_get(every, "ranks")), "rank", -1), 0);
    const struct json *worst = json_first(json_get(suspects, "ranks"));
    CU_ASSERT_EQUAL(json_get_int(worst, "rank", -1), 5);
    CU_ASSERT_TRUE(json_get_number(worst, "slow_ratio", 0) > 1.2);
    CU_ASSERT_STRING_EQUAL(json_get_string(worst, "node", ""), "gb-1");
    CU_ASSERT_TRUE(json_size(json_get(suspects, "ranks")) < RANKS / 2);
}

TEST(trays_are_called_by_the_worst_that_holds)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    int64_t now_ns = feed(engine, 120);
    const struct world_node nodes[] = {
        {.name = "gb-2", .ready = true, .cordoned = true, .cordoned_by = "INC-7"},
        {.name = "sp-0", .ready = true, .spare = true, .promised_to = "default/llm-17"}};
    struct world world = {.known = true, .nodes = nodes, .node_count = ARRAY_LEN(nodes)};
    api_view_job(&writer, engine, &world, now_ns + SECOND_NS, 60 * SECOND_NS);
    AUTO(json_free) struct json *job = parse(&text);
    const struct json *racks = json_get(job, "rack_view");
    CU_ASSERT_EQUAL_FATAL(json_size(racks), 2);
    const struct json *trays = json_get(json_first(racks), "trays");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-0"), "state", ""), "normal");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-1"), "state", ""), "abnormal");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-2"), "state", ""), "cordoned");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-2"), "cordoned_by", ""),
                           "INC-7");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "sp-0"), "state", ""), "spare");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "sp-0"), "promised_to", ""),
                           "default/llm-17");
    const struct json *homeless = json_next(json_first(racks));
    CU_ASSERT_EQUAL(json_kind(json_get(homeless, "rack")), JSON_NULL);
    CU_ASSERT_PTR_NOT_NULL(find(json_get(homeless, "trays"), "node", "gb-3"));
}

TEST(a_tray_that_is_silent_does_not_look_healthy)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    int64_t now_ns = feed(engine, 30) + 300 * SECOND_NS;
    api_view_job(&writer, engine, NULL, now_ns, 60 * SECOND_NS);
    AUTO(json_free) struct json *job = parse(&text);
    const struct json *trays = json_get(json_first(json_get(job, "rack_view")), "trays");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-0"), "state", ""), "silent");
}

TEST(the_trays_of_a_finished_job_are_not_silent)
{
    AUTO(engine_free) struct engine *engine = make_engine();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    int64_t now_ns = feed(engine, 30);
    struct sample finished = {.measurement = MEASUREMENT_MARK,
                              .time_ns = now_ns + SECOND_NS,
                              .rank = RANK_NONE,
                              .kind = view_of("finished")};
    engine_feed(engine, &finished);
    api_view_job(&writer, engine, NULL, now_ns + 300 * SECOND_NS, 60 * SECOND_NS);
    AUTO(json_free) struct json *job = parse(&text);
    const struct json *trays = json_get(json_first(json_get(job, "rack_view")), "trays");
    CU_ASSERT_STRING_EQUAL(json_get_string(find(trays, "node", "gb-0"), "state", ""), "normal");
}

/* A core that was restored from records, as after a restart without a database. */
static void add_incident(struct remediation *core, int64_t number, const char *job)
{
    AUTO(incident_free) struct incident *incident = incident_new(number);
    AUTO(json_free) struct json *record = NULL;
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    text_copy(incident->job, sizeof incident->job, job);
    text_copy(incident->domain, sizeof incident->domain, "gb-1");
    incident->scope = SCOPE_TRAY;
    incident->times.detected_ns = START_NS;
    incident->version = 1;
    incident_write(incident, START_NS, &writer);
    CU_ASSERT_EQUAL_FATAL(json_parse((struct view){text.bytes, text.length}, &record, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(remediation_restore(core, record, START_NS, NULL), OK);
}

static struct json *recall(const struct remediation *core, const struct api_query *query)
{
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    return api_recall(core, query, START_NS, &writer) ? parse(&text) : NULL;
}

TEST(what_the_core_holds_can_be_listed_without_a_database)
{
    const struct remediation_params params = {
        .daemon_mode = MODE_OBSERVE, .actuator = "dry_run", .next_number = 9};
    AUTO(remediation_free) struct remediation *core = remediation_new(&params);
    add_incident(core, 3, "a");
    add_incident(core, 4, "b");
    AUTO(json_free) struct json *all = recall(core, &(struct api_query){.read = API_INCIDENTS});
    const struct json *list = json_get(all, "incidents");
    CU_ASSERT_TRUE(json_get_bool(all, "from_memory", false));
    CU_ASSERT_EQUAL(json_size(list), 2);
    CU_ASSERT_STRING_EQUAL(json_get_string(json_first(list), "ref", ""), "INC-4");
    AUTO(json_free)
    struct json *of_job = recall(core, &(struct api_query){.read = API_INCIDENTS, .job = "a"});
    CU_ASSERT_EQUAL(json_size(json_get(of_job, "incidents")), 1);
    AUTO(json_free)
    struct json *closed = recall(core,
                                 &(struct api_query){.read = API_INCIDENTS, .status = "closed"});
    CU_ASSERT_EQUAL(json_size(json_get(closed, "incidents")), 0);
    AUTO(json_free)
    struct json *one = recall(core,
                              &(struct api_query){.read = API_INCIDENT, .incident_ref = "INC-3"});
    CU_ASSERT_STRING_EQUAL(json_get_string(json_get(one, "incident"), "domain", ""), "gb-1");
    CU_ASSERT_PTR_NULL(
        recall(core, &(struct api_query){.read = API_INCIDENT, .incident_ref = "INC-5"}));
    CU_ASSERT_PTR_NULL(
        recall(core, &(struct api_query){.read = API_EXPORT, .incident_ref = "INC-3"}));
}

TESTS(T(what_the_core_holds_can_be_listed_without_a_database),
      T(a_job_row_tells_step_pace_and_spares),
      T(a_job_that_has_sent_nothing_has_nulls_and_no_numbers_made_up),
      T(ranks_stand_in_order_and_slow_ones_alone_with_the_worst_first),
      T(trays_are_called_by_the_worst_that_holds), T(a_tray_that_is_silent_does_not_look_healthy),
      T(the_trays_of_a_finished_job_are_not_silent))
