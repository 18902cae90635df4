/* One whole answer of GET /api/v1/incidents/INC-2/export: 16 ranks on 4 trays, rank 5 slow from
 * step 100 to 160.
 */
#ifndef BROOM_TESTS_UNIT_CLI_SAMPLE_EXPORT_H
#define BROOM_TESTS_UNIT_CLI_SAMPLE_EXPORT_H

#include "controller/base/json.h"
#include "tests/harness/test.h"
#include "tests/unit/cli/sample_window.h"

enum { SAMPLE_RANKS = 16, SAMPLE_STEPS = 200 };

#define SAMPLE_START_NS INT64_C(1780000140000000000)

static const char sample_incident[] =
    "{\"type\":\"incident\",\"key\":\"incident/INC-2/"
    "9\",\"time_ns\":1780000600000000000,\"ref\":\"INC-2\",\"number\":2,"
    "\"version\":9,\"job\":\"default/"
    "llm-17\",\"kind\":\"slow\",\"scope\":\"rank\",\"domain\":\"5\",\"cause\":\"gpu\","
    "\"source\":\"detector\",\"severity\":2,\"status\":\"mitigated\",\"phase\":\"repairing\","
    "\"rule\":\"slow-tray\","
    "\"policy\":\"nvl72-default\",\"policy_hash\":\"9f2c1b44d07e5a13\",\"plan\":\"replace-tray\","
    "\"mode\":\"enforce\","
    "\"nodes\":[\"gb-000002\"],\"ranks\":[5],\"victims\":[],\"times\":{\"fault_started_ns\":"
    "1780000340000000000,"
    "\"detected_ns\":1780000380000000000,\"decided_ns\":1780000390000000000,\"acted_ns\":"
    "1780000391000000000,"
    "\"mitigated_ns\":1780000470000000000,\"resolved_ns\":0,\"closed_ns\":0},"
    "\"cost\":{\"steps_lost\":212,\"gpu_hours\":1.25},\"waiting_for\":\"the repair of "
    "gb-000002\",\"deadline_ns\":0,"
    "\"state\":{\"slowdown\":1.3,\"confidence\":0.998}}";

static const char *const sample_timeline[] = {
    "{\"key\":\"t1\",\"incident\":\"INC-2\",\"seq\":1,\"time_ns\":1780000380000000000,\"kind\":"
    "\"opened\","
    "\"actor\":\"broomd\",\"text\":\"rank 5 computes 1.3 times as long as its 15 "
    "peers\",\"details\":{\"step\":121}}",
    "{\"key\":\"t2\",\"incident\":\"INC-2\",\"seq\":2,\"time_ns\":1780000391000000000,\"kind\":"
    "\"action\","
    "\"actor\":\"broomd\",\"text\":\"cordon of gb-000002 succeeded\",\"details\":{}}",
    "{\"key\":\"t3\",\"incident\":\"INC-2\",\"seq\":3,\"time_ns\":1780000400000000000,\"kind\":"
    "\"note\","
    "\"actor\":\"alice\",\"text\":\"seen | *twice* this week\",\"details\":{}}"};
static const char *const sample_decisions[] = {
    "{\"key\":\"d1\",\"incident\":\"INC-2\",\"seq\":1,\"time_ns\":1780000390000000000,\"fsm_rule\":"
    "\"confirm\","
    "\"policy_rule\":\"slow-tray\",\"event\":\"settled\",\"phase_from\":\"suspected\",\"phase_to\":"
    "\"confirmed\","
    "\"facts\":[\"lease_held\"],\"values\":{\"spares_free\":2},\"executed\":true,\"reason\":"
    "\"stood for 10 m\"}",
    "{\"key\":\"d2\",\"incident\":\"INC-2\",\"seq\":2,\"time_ns\":1780000391000000000,\"fsm_rule\":"
    "\"cordon\","
    "\"policy_rule\":\"slow-tray\",\"event\":\"reached_cordon\",\"phase_from\":\"confirmed\","
    "\"phase_to\":\"cordoning\","
    "\"facts\":[],\"values\":{\"trays_used\":0},\"executed\":true,\"reason\":\"\"}"};
static const char *const sample_actions[] = {
    "{\"key\":\"a1\",\"operation_id\":\"INC-2/1/2/"
    "1\",\"incident\":\"INC-2\",\"time_ns\":1780000391000000000,"
    "\"verb\":\"cordon\",\"nodes\":[\"gb-000002\"],\"spares\":[],\"params\":null,\"reason\":"
    "\"broom:INC-2\","
    "\"actuator\":\"rehearsal\",\"mode\":\"enforce\",\"outcome\":{\"outcome\":\"succeeded\","
    "\"reason\":\"done\","
    "\"response\":\"node/gb-000002 cordoned\",\"took_ns\":41000000}}"};
static const char *const sample_verdicts[] = {
    "{\"key\":\"v1\",\"time_ns\":1780000380000000000,\"job\":\"default/"
    "llm-17\",\"incident\":\"INC-2\",\"verdict\":{"
    "\"kind\":\"slow\",\"scope\":\"rank\",\"id\":\"5\",\"step\":121,\"since_step\":100,"
    "\"time\":\"2026-05-28T20:33:00.000Z\",\"cause\":\"gpu\",\"slowdown\":1.3,\"gain\":0.22,"
    "\"confidence\":0.998,"
    "\"evict\":true,\"nodes\":[\"gb-000002\"],\"ranks\":[5],\"evidence\":{\"compute_z\":9.1,\"sm\":"
    "0.91}}}"};
static const char *const sample_events[] = {
    "{\"key\":\"e1\",\"time_ns\":1780000341000000000,\"kind\":\"thermal\",\"host\":\"gb-000002\","
    "\"gpu\":\"1\","
    "\"message\":\"said \\\"no\\\", twice\",\"source\":\"events\"}",
    "{\"key\":\"e2\",\"time_ns\":1780000342000000000,\"kind\":\"xid\",\"host\":\"gb-000002\","
    "\"code\":79}"};

static inline void sample_list(struct json_writer *writer, const char *key, const char *const *rows,
                               size_t count, bool reversed)
{
    json_add_key(writer, key);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        json_add_raw(writer, view_of(rows[reversed ? count - 1 - i : i]));
    json_close(writer);
}

static inline double sample_value(bool compute, int step, int rank, uint64_t *random)
{
    bool slow = step >= 100 && step < 160;
    double own = 1400 + 20 * test_random_normal(random);
    if (compute)
        return own * (slow && rank == 5 ? 1.3 : 1.0);
    return (slow ? 1900 * 1.22 : 1900) + 3 * test_random_normal(random);
}

static inline void sample_windows(struct json_writer *writer, bool shuffled)
{
    json_add_key(writer, "raw_windows");
    json_open_array(writer);
    for (int m = 0; m < 2; m++) {
        bool compute = (m == 0) != shuffled;
        uint64_t random = compute ? 1 : 2;
        struct sample_window window = sample_window_open(compute ? "compute_ms" : "step_ms",
                                                         SAMPLE_RANKS * SAMPLE_STEPS);
        for (int step = 0; step < SAMPLE_STEPS; step++)
            for (int rank = 0; rank < SAMPLE_RANKS; rank++)
                sample_window_add(&window,
                                  SAMPLE_START_NS + step * INT64_C(2000000000) + rank * 1000000,
                                  step, rank, sample_value(compute, step, rank, &random));
        sample_window_close(&window, writer);
    }
    json_close(writer);
}

static inline void sample_job(struct json_writer *writer)
{
    json_add_key(writer, "job");
    json_open_object(writer);
    json_put_string(writer, "job", "default/llm-17");
    json_add_key(writer, "document");
    json_open_object(writer);
    json_put_string(writer, "job", "default/llm-17");
    json_put_int(writer, "world_size", SAMPLE_RANKS);
    json_add_key(writer, "parallel");
    json_add_raw(writer, view_of("{\"tp\":1,\"pp\":1,\"dp\":16,\"order\":\"tp-dp-pp\"}"));
    json_put_string(writer, "compute_ms", "kernel");
    json_add_key(writer, "topology");
    json_add_raw(
        writer,
        view_of(
            "{\"racks\":[{\"rack\":\"rk-1\",\"nvlink_domain\":\"rk-1.0\",\"trays\":[\"gb-000001\","
            "\"gb-000002\",\"gb-000003\",\"gb-000004\",\"sp-000001\"]}]}"));
    json_add_key(writer, "ranks");
    json_open_array(writer);
    for (int rank = 0; rank < SAMPLE_RANKS; rank++) {
        char node[16];
        snprintf(node, sizeof node, "gb-%06d", 1 + rank / 4);
        json_open_object(writer);
        json_put_int(writer, "rank", rank);
        json_put_string(writer, "node", node);
        json_put_int(writer, "gpu", rank % 4);
        json_put_int(writer, "rail", rank % 4);
        json_close(writer);
    }
    json_close(writer);
    json_close(writer);
    json_close(writer);
}

#define SAMPLE_LIST(name) #name, sample_##name, ARRAY_LEN(sample_##name)

/* shuffled: the same rows in another order, as another server might give them. */
static inline void sample_export(bool shuffled, struct text *out)
{
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    if (shuffled)
        json_put_int(&writer, "now_ns", 1780009999000000000);
    json_add_key(&writer, "incident");
    json_add_raw(&writer, view_of(sample_incident));
    sample_list(&writer, SAMPLE_LIST(timeline), false);
    sample_list(&writer, SAMPLE_LIST(decisions), shuffled);
    sample_list(&writer, SAMPLE_LIST(actions), shuffled);
    sample_list(&writer, SAMPLE_LIST(verdicts), shuffled);
    sample_list(&writer, SAMPLE_LIST(events), shuffled);
    sample_windows(&writer, shuffled);
    sample_job(&writer);
    json_close(&writer);
}

#endif
