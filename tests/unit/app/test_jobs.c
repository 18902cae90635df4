/* The registry of live jobs: who gets in, whose lines are taken, and what the senders' clocks show.
 */
#include "controller/jobs.h"

#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECOND   INT64_C(1000000000)
#define HOUR     (3600 * SECOND)
#define START_NS (INT64_C(1780000000) * SECOND)

static struct jobs *open_jobs(int64_t memory_mib, int32_t most)
{
    struct jobs_limits limits = {.memory_bytes = memory_mib << 20,
                                 .series_bytes_per_job = 8 << 20,
                                 .jobs = most,
                                 .ranks = 64};
    struct engine_params params = engine_params_default();
    return jobs_new(&limits, &params);
}

/* Eight ranks on two trays of one rack. */
static struct job *make_job(const char *name, const char *uid, int32_t ranks)
{
    struct job *job = job_new(name, ranks);
    AUTO_TEXT workload = {0};
    int32_t rack = job_intern_rack(job, "r1", NULL);
    char node[16];
    text_addf(&workload, "{\"kind\":\"volcano\",\"uid\":\"%s\"}", uid);
    job->workload_json = text_take(&workload);
    for (int32_t r = 0; r < ranks; r++) {
        (void)snprintf(node, sizeof node, "n%d", (int)(r / 4));
        job->ranks[r] = (struct job_rank){
            .tray = job_intern_tray(job, node, rack), .gpu = (int16_t)(r % 4), .rail = JOB_NONE};
    }
    return job;
}

static enum status put(struct jobs *jobs, const char *name, const char *uid, int32_t ranks,
                       int64_t now_ns, bool *ret_created)
{
    AUTO(job_free) struct job *job = make_job(name, uid, ranks);
    struct error error = {0};
    enum status status = jobs_put(jobs, job, now_ns, ret_created, &error);
    CU_ASSERT_EQUAL(status != OK, error.message[0] != '\0');
    return status;
}

static struct sample step_line(const char *job, int64_t rank, double step, int64_t time_ns)
{
    struct sample sample = {
        .measurement = MEASUREMENT_STEP, .job = view_of(job), .rank = rank, .time_ns = time_ns};
    sample.values[FIELD_STEP] = step;
    sample.values[FIELD_STEP_MS] = 500;
    sample.present = UINT64_C(1) << FIELD_STEP | UINT64_C(1) << FIELD_STEP_MS;
    return sample;
}

static struct sample hello_line(const char *job, int64_t rank, double world, const char *host,
                                int64_t time_ns)
{
    struct sample sample = {.measurement = MEASUREMENT_HELLO,
                            .job = view_of(job),
                            .host = view_of(host),
                            .rank = rank,
                            .time_ns = time_ns};
    sample.values[FIELD_WORLD] = world;
    sample.present = UINT64_C(1) << FIELD_WORLD;
    return sample;
}

static const char *take_step(struct jobs *jobs, int64_t rank, double step, int64_t time_ns,
                             int64_t now_ns)
{
    struct sample sample = step_line("team/a", rank, step, time_ns);
    return jobs_take(jobs, &sample, now_ns);
}

TEST(a_second_live_workload_of_the_same_name_is_refused)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    CU_ASSERT_TRUE(created);
    CU_ASSERT_PTR_NULL(take_step(jobs, 0, 1, START_NS, START_NS));
    CU_ASSERT_EQUAL(put(jobs, "team/a", "two", 8, START_NS + SECOND, &created), ERR_CONFLICT);
    CU_ASSERT_STRING_EQUAL(jobs_find(jobs, view_of("team/a"))->uid, "one");
    CU_ASSERT_EQUAL(put(jobs, "team/a", "two", 8, START_NS + HOUR, &created), OK);
    CU_ASSERT_STRING_EQUAL(jobs_find(jobs, view_of("team/a"))->uid, "two");
    CU_ASSERT_EQUAL(jobs_count(jobs), 1);
}

TEST(the_same_document_again_keeps_the_engine)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    const struct engine *engine = jobs_first(jobs)->engine;
    CU_ASSERT_PTR_NULL(take_step(jobs, 0, 1, START_NS, START_NS));
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS + SECOND, &created), OK);
    CU_ASSERT_FALSE(created);
    CU_ASSERT_PTR_EQUAL(jobs_first(jobs)->engine, engine);
    CU_ASSERT_EQUAL(engine_counts(engine).samples, 1);
}

TEST(a_document_of_another_shape_makes_the_job_anew_on_the_same_clock)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    CU_ASSERT_PTR_NULL(take_step(jobs, 0, 1, START_NS - HOUR, START_NS));
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 16, START_NS, &created), OK);
    const struct live_job *live = jobs_first(jobs);
    CU_ASSERT_EQUAL(engine_job(live->engine)->world_size, 16);
    CU_ASSERT_EQUAL(engine_counts(live->engine).samples, 0);
    CU_ASSERT_EQUAL(jobs_sender_time(live, START_NS), START_NS - HOUR);
}

TEST(a_document_that_finds_no_room_leaves_the_live_job_as_it_is)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 1);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    int64_t bytes = jobs_bytes(jobs);
    const struct engine *engine = jobs_first(jobs)->engine;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 65, START_NS, &created), ERR_LIMIT);
    CU_ASSERT_PTR_EQUAL_FATAL(jobs_first(jobs)->engine, engine);
    CU_ASSERT_EQUAL(jobs_bytes(jobs), bytes);
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 64, START_NS, &created),
                    OK); /* the one place is its own */
    CU_ASSERT_EQUAL(put(jobs, "team/b", "one", 8, START_NS, &created), ERR_LIMIT);
}

TEST(lines_of_an_unknown_job_are_refused_until_a_hello_makes_it)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    CU_ASSERT_PTR_NOT_NULL(take_step(jobs, 3, 1, START_NS, START_NS));
    struct sample without_world = {
        .measurement = MEASUREMENT_HELLO, .job = view_of("team/a"), .rank = 3};
    CU_ASSERT_PTR_NOT_NULL(jobs_take(jobs, &without_world, START_NS));
    CU_ASSERT_EQUAL(jobs_count(jobs), 0);
    struct sample hello = hello_line("team/a", 3, 8, "n0", START_NS);
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &hello, START_NS));
    CU_ASSERT_EQUAL_FATAL(jobs_count(jobs), 1);
    CU_ASSERT_EQUAL(engine_job(jobs_first(jobs)->engine)->world_size, 8);
    CU_ASSERT_FALSE(jobs_first(jobs)->has_document);
    CU_ASSERT_PTR_NULL(take_step(jobs, 3, 1, START_NS, START_NS));
}

TEST(a_hello_with_an_impossible_world_makes_no_job)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    static const double worlds[] = {0, -1, 1.5, 1e300, 131073, NAN, INFINITY};
    for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
        struct sample hello = hello_line("team/a", 0, worlds[i], "n0", START_NS);
        CU_ASSERT_PTR_NOT_NULL(jobs_take(jobs, &hello, START_NS));
    }
    CU_ASSERT_EQUAL(jobs_count(jobs), 0);
}

TEST(sizes_of_a_hello_whose_product_is_beyond_all_numbers_change_nothing)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    static const enum field sizes[] = {FIELD_TP, FIELD_CP, FIELD_EP, FIELD_DP, FIELD_PP};
    for (int64_t rank = 0; rank < 2;
         rank++) { /* the first makes the job, the second only tells its sizes */
        struct sample hello = hello_line("team/a", rank, 8, "n0", START_NS);
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            hello.values[sizes[i]] = 131072;
            hello.present |= UINT64_C(1) << sizes[i];
        }
        CU_ASSERT_PTR_NULL(jobs_take(jobs, &hello, START_NS));
    }
    CU_ASSERT_EQUAL(engine_job(jobs_first(jobs)->engine)->size[DIMENSION_DP], 8);
    CU_ASSERT_EQUAL(engine_job(jobs_first(jobs)->engine)->size[DIMENSION_TP], 1);
}

TEST(a_rank_beyond_the_world_is_refused_and_counted)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    CU_ASSERT_PTR_NOT_NULL(take_step(jobs, 8, 1, START_NS, START_NS));
    CU_ASSERT_PTR_NOT_NULL(take_step(jobs, INT64_MAX, 1, START_NS, START_NS));
    CU_ASSERT_PTR_NOT_NULL(take_step(jobs, -7, 1, START_NS, START_NS));
    CU_ASSERT_PTR_NULL(take_step(jobs, 7, 1, START_NS, START_NS));
    CU_ASSERT_EQUAL(jobs_first(jobs)->refused_rank, 3);
}

TEST(a_line_from_another_host_than_the_hello_named_is_refused)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    struct sample step = step_line("team/a", 5, 1, START_NS);
    step.host = view_of("n0"); /* rank 5 sits on n1 */
    CU_ASSERT_PTR_NOT_NULL(jobs_take(jobs, &step, START_NS));
    CU_ASSERT_EQUAL(jobs_first(jobs)->refused_host, 1);
    struct sample hello = hello_line("team/a", 5, 8, "n0", START_NS + SECOND);
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &hello, START_NS + SECOND));
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &step, START_NS + SECOND));
}

TEST(a_job_for_which_the_memory_is_not_there_is_answered_with_no_room)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(1, 4);
    struct sample small = hello_line("team/a", 0, 8, "n0", START_NS);
    struct sample second = hello_line("team/b", 0, 64, "n0", START_NS);
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &small, START_NS));
    CU_ASSERT_TRUE(jobs_bytes(jobs) <= 1 << 20);
    CU_ASSERT_PTR_EQUAL(jobs_take(jobs, &second, START_NS), JOBS_NO_ROOM);
    CU_ASSERT_EQUAL(jobs_expire(jobs, START_NS + HOUR, HOUR), 1);
    CU_ASSERT_EQUAL(jobs_bytes(jobs), 0);
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &second, START_NS + HOUR));
}

static int64_t distance_ns(const struct live_job *live, int64_t now_ns)
{
    int64_t off_ns = jobs_sender_time(live, now_ns) - now_ns;
    return off_ns < 0 ? -off_ns : off_ns;
}

TEST(one_rank_whose_clock_is_an_hour_off_does_not_move_the_senders_time)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    struct live_job *live = jobs_first(jobs);
    CU_ASSERT_EQUAL(jobs_sender_time(live, START_NS), 0);
    for (int step = 1; step <= 400; step++) {
        int64_t now_ns = START_NS + step * SECOND;
        for (int rank = 0; rank < 8; rank++) /* rank 0 is the first to speak */
            CU_ASSERT_PTR_NULL(
                take_step(jobs, rank, step, now_ns + (rank == 0 ? HOUR : 0), now_ns));
        if (jobs_is_time_sure(live))
            CU_ASSERT_TRUE(distance_ns(live, now_ns) < SECOND);
    }
    CU_ASSERT_TRUE(jobs_is_time_sure(live));
}

TEST(a_job_whose_clocks_are_all_off_is_judged_by_its_own)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    int64_t now_ns = START_NS;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    for (int step = 1; step <= 20; step++, now_ns += SECOND)
        for (int rank = 0; rank < 8; rank++)
            CU_ASSERT_PTR_NULL(take_step(jobs, rank, step, now_ns - HOUR, now_ns));
    CU_ASSERT_TRUE(distance_ns(jobs_first(jobs), now_ns) > HOUR - SECOND);
    CU_ASSERT_TRUE(distance_ns(jobs_first(jobs), now_ns) < HOUR + SECOND);
}

TEST(timestamps_at_the_ends_of_time_are_survived)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    for (int i = 0; i < 100; i++)
        CU_ASSERT_PTR_NULL(take_step(jobs, i % 8, i, i % 2 == 0 ? 1 : INT64_MAX / 2, START_NS));
}

TEST(jobs_that_sent_nothing_for_long_are_forgotten_and_others_stay)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/b", "one", 8, START_NS, &created), OK);
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    CU_ASSERT_STRING_EQUAL(jobs_first(jobs)->name, "team/a");
    CU_ASSERT_PTR_NULL(take_step(jobs, 0, 1, START_NS + HOUR, START_NS + HOUR));
    CU_ASSERT_EQUAL(jobs_expire(jobs, START_NS + HOUR + SECOND, HOUR), 1);
    CU_ASSERT_EQUAL_FATAL(jobs_count(jobs), 1);
    CU_ASSERT_STRING_EQUAL(jobs_first(jobs)->name, "team/a");
    CU_ASSERT_PTR_NULL(take_step(jobs, 0, 2, START_NS + HOUR, START_NS + HOUR));
}

TEST(a_hardware_event_reaches_every_job_on_its_host_and_only_those)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    CU_ASSERT_EQUAL(put(jobs, "team/b", "two", 4, START_NS, &created), OK);
    struct sample event = {.measurement = MEASUREMENT_EVENT,
                           .host = view_of("n1"),
                           .kind = view_of("xid"),
                           .rank = RANK_NONE,
                           .time_ns = START_NS};
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &event, START_NS));
    CU_ASSERT_TRUE(jobs_find(jobs, view_of("team/a"))->touched);
    CU_ASSERT_FALSE(jobs_find(jobs, view_of("team/b"))->touched);
    event.host = view_of("elsewhere");
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &event, START_NS));
}

TEST(a_verdict_that_holds_is_remembered_until_its_clear)
{
    AUTO(jobs_free) struct jobs *jobs = open_jobs(256, 4);
    bool created;
    CU_ASSERT_EQUAL(put(jobs, "team/a", "one", 8, START_NS, &created), OK);
    struct live_job *live = jobs_first(jobs);
    struct verdict slow = {.kind = VERDICT_SLOW, .scope = SCOPE_RANK, .id = "5"};
    struct verdict hang = {.kind = VERDICT_HANG, .scope = SCOPE_JOB, .id = "team/a"};
    struct verdict info = {.kind = VERDICT_INFO, .scope = SCOPE_TRAY, .id = "n0"};
    struct verdict clear = {
        .kind = VERDICT_CLEAR, .of_kind = VERDICT_SLOW, .scope = SCOPE_RANK, .id = "5"};
    jobs_note_verdict(live, &slow);
    jobs_note_verdict(live, &hang);
    jobs_note_verdict(live, &info);
    jobs_note_verdict(live, &slow);
    CU_ASSERT_EQUAL(live->open_count, 2);
    jobs_note_verdict(live, &clear);
    CU_ASSERT_EQUAL_FATAL(live->open_count, 1);
    CU_ASSERT_EQUAL(live->open[0].kind, VERDICT_HANG);
}

TEST(a_job_of_hello_stands_in_the_racks_of_the_inventory_before_those_of_the_world)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO(jobs_free) struct jobs *jobs = open_jobs(64, 4);
    const struct world_node nodes[] = {{.name = "n0", .rack = "w1"}, {.name = "n2", .rack = "w2"}};
    const struct world world = {.known = true, .nodes = nodes, .node_count = 2};
    const struct inventory_observation said[] = {
        {INVENTORY_FILE, "n0", "rk-1", "rk-1.0", INVENTORY_UNKNOWN, INVENTORY_UNKNOWN, START_NS},
        {INVENTORY_HELLO, "n9", "odd", NULL, INVENTORY_UNKNOWN, INVENTORY_UNKNOWN, START_NS}};
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        CU_ASSERT(inventory_observe(inventory, &said[i]));
    jobs_use_inventory(jobs, inventory);
    jobs_learn_world(jobs, &world);
    struct sample hello = hello_line("team/a", 3, 8, "n0", START_NS);
    CU_ASSERT_PTR_NULL(jobs_take(jobs, &hello, START_NS));
    const struct job *job = engine_job(jobs_find(jobs, view_of("team/a"))->engine);
    CU_ASSERT_STRING_EQUAL(job->racks[job->trays[job_find_tray(job, "n0")].rack].name, "rk-1");
    CU_ASSERT_STRING_EQUAL(job->racks[job->trays[job_find_tray(job, "n2")].rack].name, "w2");
    CU_ASSERT_EQUAL(job_find_tray(job, "n9"), JOB_NONE);
}

TESTS(T(a_second_live_workload_of_the_same_name_is_refused),
      T(the_same_document_again_keeps_the_engine),
      T(a_document_of_another_shape_makes_the_job_anew_on_the_same_clock),
      T(a_document_that_finds_no_room_leaves_the_live_job_as_it_is),
      T(lines_of_an_unknown_job_are_refused_until_a_hello_makes_it),
      T(a_hello_with_an_impossible_world_makes_no_job),
      T(sizes_of_a_hello_whose_product_is_beyond_all_numbers_change_nothing),
      T(a_rank_beyond_the_world_is_refused_and_counted),
      T(a_line_from_another_host_than_the_hello_named_is_refused),
      T(a_job_for_which_the_memory_is_not_there_is_answered_with_no_room),
      T(one_rank_whose_clock_is_an_hour_off_does_not_move_the_senders_time),
      T(a_job_whose_clocks_are_all_off_is_judged_by_its_own),
      T(timestamps_at_the_ends_of_time_are_survived),
      T(jobs_that_sent_nothing_for_long_are_forgotten_and_others_stay),
      T(a_hardware_event_reaches_every_job_on_its_host_and_only_those),
      T(a_verdict_that_holds_is_remembered_until_its_clear),
      T(a_job_of_hello_stands_in_the_racks_of_the_inventory_before_those_of_the_world))
