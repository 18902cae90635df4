/* What ended incidents tell the engines of jobs that run on the same hardware. */
#include "controller/fleet_memory.h"
#include "tests/unit/detectors/feed.h"

#define DAY_NS   (INT64_C(86400) * 1000000000)
#define START_NS INT64_C(1780000000000000000)

static void restore(struct remediation *core, int64_t number, enum incident_status status,
                    const char *node, int64_t detected_ns)
{
    AUTO(incident_free) struct incident *incident = incident_new(number);
    AUTO(json_free) struct json *record = NULL;
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);

    incident->kind = VERDICT_SLOW;
    incident->scope = SCOPE_RANK;
    incident->status = status;
    incident->phase = PHASE_DONE;
    incident->times.detected_ns = detected_ns;
    (void)text_copy(incident->domain, sizeof incident->domain, "9");
    (void)incident_add_node(incident, node, "rack0");
    incident_write(incident, START_NS, &writer);
    CU_ASSERT_EQUAL_FATAL(json_parse((struct view){text.bytes, text.length}, &record, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(remediation_restore(core, record, START_NS, NULL), OK);
}

static double earlier_faults(const struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->evidence_count; i++)
        if (strcmp(verdict->evidence[i].name, "earlier_faults") == 0)
            return verdict->evidence[i].value;
    return 0;
}

TEST(a_verdict_tells_of_the_incidents_that_its_tray_had_and_of_no_false_alarm)
{
    struct jobs_limits limits = {.memory_bytes = INT64_C(1) << 30,
                                 .series_bytes_per_job = 1 << 20,
                                 .jobs = 4,
                                 .ranks = 4096};
    struct engine_params params = engine_params_default();
    struct remediation_params core_params = {
        .daemon_mode = MODE_OBSERVE, .actuator = "test", .next_number = 1};
    AUTO(remediation_free) struct remediation *core = remediation_new(&core_params);
    AUTO(jobs_free) struct jobs *jobs = jobs_new(&limits, &params);
    struct feed feed;
    bool created;

    restore(core, 1, INCIDENT_CLOSED, "node2", START_NS - DAY_NS);
    restore(core, 2, INCIDENT_CLOSED, "node2", START_NS - 3 * DAY_NS);
    restore(core, 3, INCIDENT_CLOSED, "node2", START_NS - 40 * DAY_NS); /* too long ago */
    restore(core, 4, INCIDENT_DECLINED, "node2", START_NS - DAY_NS);
    feed_open(&feed, 128, 1);
    CU_ASSERT_EQUAL_FATAL(jobs_put(jobs, feed.job, START_NS, &created, NULL), OK);
    engine_free(feed.engine);
    feed.engine = jobs_first(jobs)->engine;
    fleet_memory_tell(core, jobs, START_NS);
    feed_steps(&feed, 60);
    feed.slow[9] = 1.2;
    feed_steps(&feed, 40);
    CU_ASSERT_PTR_NOT_NULL_FATAL(feed_find(&feed, VERDICT_SLOW));
    CU_ASSERT_DOUBLE_EQUAL(earlier_faults(feed_find(&feed, VERDICT_SLOW)), 2, 0);
    feed.engine = NULL; /* the jobs' own */
    feed_close(&feed);
}

TESTS(T(a_verdict_tells_of_the_incidents_that_its_tray_had_and_of_no_false_alarm))
