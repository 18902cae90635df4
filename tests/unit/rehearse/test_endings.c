#include "controller/rehearse/endings.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

#define START_NS INT64_C(1780000000000000000)
#define SECOND   INT64_C(1000000000)

/* A rehearsal of tray-lost played by hand, as it must be; tests spoil one thing each. */
struct bench {
    const struct scenario *scenario;
    struct cluster *cluster;
    struct endings *endings;
    char node[64], spare[64], other[64];
    struct text incident;
};

static void ignore(void *context, const struct sample *sample)
{
    (void)context;
    (void)sample;
}

static void operate(struct bench *bench, const char *id, const char *verb, const char *lists)
{
    AUTO_TEXT body = {0};
    AUTO(json_free) struct json *root = NULL;
    const struct cluster_operation *operation;
    text_addf(&body, "{\"verb\":\"%s\",\"incident\":\"INC-1\",\"job\":\"default/rehearsal\"%s}",
              verb, lists);
    CU_ASSERT_FATAL(json_parse(view_of(body.bytes), &root, NULL) == OK);
    CU_ASSERT_FATAL(cluster_operate(bench->cluster, id, root, 0, &operation, NULL) == OK);
}

static void open_bench(struct bench *bench)
{
    *bench = (struct bench){.scenario = scenario_find("tray-lost")};
    bench->cluster = scenario_build(bench->scenario, test_seed());
    bench->endings = endings_new(bench->scenario, test_seed());
    struct model_fault fault = scenario_fault(bench->scenario, test_seed());
    struct model *model = cluster_model(bench->cluster);
    snprintf(bench->node, sizeof bench->node, "%s", model_tray_name(model, fault.tray));
    snprintf(bench->spare, sizeof bench->spare, "%s", model_tray_name(model, fault.rack * 18 + 16));
    snprintf(bench->other, sizeof bench->other, "%s",
             model_tray_name(model, fault.rack * 18 + (fault.tray % 18 + 1) % 16));
    cluster_start(bench->cluster, START_NS);
    cluster_advance(bench->cluster, START_NS + 350 * SECOND, ignore, NULL);
}

static void act(struct bench *bench)
{
    char lists[256];
    snprintf(lists, sizeof lists, ",\"nodes\":[\"%s\"]", bench->node);
    operate(bench, "INC-1/0/2/1", "cordon", lists);
    snprintf(lists, sizeof lists, ",\"spares\":[\"%s\"]", bench->spare);
    operate(bench, "INC-1/0/4/1", "promise_spare", lists);
    snprintf(lists, sizeof lists, ",\"nodes\":[\"%s\"],\"spares\":[\"%s\"]", bench->node,
             bench->spare);
    operate(bench, "INC-1/0/5/1", "restart_job", lists);
    cluster_advance(bench->cluster, START_NS + 600 * SECOND, ignore, NULL);
}

static void tell(struct bench *bench, const char *kind, const char *domain, int severity,
                 const char *status)
{
    text_clear(&bench->incident);
    text_addf(
        &bench->incident,
        "[{\"ref\":\"INC-1\",\"number\":1,\"kind\":\"%s\",\"scope\":\"tray\",\"domain\":\"%s\","
        "\"severity\":%d,"
        "\"status\":\"%s\",\"phase\":\"repairing\",\"nodes\":[\"%s\"],\"victims\":[1],\"timeline\":"
        "[],"
        "\"state\":{\"actions\":["
        "{\"operation_id\":\"INC-1/0/2/1\",\"verb\":\"cordon\",\"outcome\":\"succeeded\"},"
        "{\"operation_id\":\"INC-1/0/4/1\",\"verb\":\"promise_spare\",\"outcome\":\"succeeded\"},"
        "{\"operation_id\":\"INC-1/0/5/1\",\"verb\":\"restart_job\",\"outcome\":\"succeeded\"}]}}]",
        kind, domain, severity, status, domain);
}

/* Returns the number of disagreements; the sentences stand in out. */
static int check(struct bench *bench, struct text *out)
{
    AUTO_TEXT text = {0};
    AUTO(json_free) struct json *world = NULL;
    AUTO(json_free) struct json *incidents = NULL;
    struct json_writer writer = json_writer(&text);
    cluster_write_world(bench->cluster, &writer);
    CU_ASSERT_FATAL(json_parse(view_of(text.bytes), &world, NULL) == OK);
    CU_ASSERT_FATAL(json_parse(view_of(bench->incident.bytes), &incidents, NULL) == OK);
    struct endings_evidence evidence = {cluster_log(bench->cluster), world, incidents};
    text_clear(out);
    return endings_check(bench->endings, &evidence, out);
}

static void close_bench(struct bench *bench)
{
    cluster_free(bench->cluster);
    endings_free(bench->endings);
    text_done(&bench->incident);
}

TEST(a_rehearsal_that_ended_as_it_must_has_no_disagreement)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    open_bench(&bench);
    act(&bench);
    tell(&bench, "crash", bench.node, 1, "mitigated");
    CU_ASSERT_EQUAL(check(&bench, &out), 0);
    if (out.length > 0)
        printf("%s", out.bytes);
    close_bench(&bench);
}

TEST(nothing_done_is_told_in_words)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    open_bench(&bench);
    text_add(&bench.incident, "[]");
    CU_ASSERT(check(&bench, &out) >= 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "1 incidents were expected and broomd tells of 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "1 restarts were expected, the cluster accepted 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "1 nodes should be cordoned by the incident, 0 are"));
    close_bench(&bench);
}

TEST(an_action_asked_for_twice_is_a_disagreement)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    open_bench(&bench);
    act(&bench);
    operate(&bench, "INC-1/0/5/1", "restart_job", "");
    tell(&bench, "crash", bench.node, 1, "mitigated");
    CU_ASSERT_EQUAL(check(&bench, &out), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "INC-1/0/5/1 was asked of the cluster twice"));
    close_bench(&bench);
}

TEST(a_cordon_of_a_healthy_node_is_a_disagreement)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    char lists[128];
    open_bench(&bench);
    act(&bench);
    snprintf(lists, sizeof lists, ",\"nodes\":[\"%s\"]", bench.other);
    operate(&bench, "INC-1/0/2/2", "cordon", lists);
    tell(&bench, "crash", bench.node, 1, "mitigated");
    CU_ASSERT_EQUAL(check(&bench, &out), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "is cordoned by INC-1"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "of which INC-1 says nothing"));
    close_bench(&bench);
}

TEST(an_incident_about_the_wrong_place_is_a_disagreement)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    open_bench(&bench);
    act(&bench);
    tell(&bench, "crash", bench.other, 1, "mitigated");
    CU_ASSERT_EQUAL(check(&bench, &out), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "the fault was in tray"));
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "names the healthy node"));
    tell(&bench, "slow", bench.node, 2, "open");
    CU_ASSERT_EQUAL(check(&bench, &out), 3);
    close_bench(&bench);
}

TEST(an_action_that_the_cluster_never_saw_is_a_disagreement)
{
    struct bench bench;
    AUTO_TEXT out = {0};
    open_bench(&bench);
    tell(&bench, "crash", bench.node, 1, "mitigated");
    check(&bench, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        out.bytes, "INC-1 claims restart_job (INC-1/0/5/1), of which the cluster knows nothing"));
    close_bench(&bench);
}

static void tell_recorded(struct bench *bench, const char *phase, const char *rule)
{
    struct model_fault fault = scenario_fault(bench->scenario, test_seed());
    text_clear(&bench->incident);
    text_addf(&bench->incident,
              "[{\"ref\":\"INC-1\",\"number\":1,\"kind\":\"slow\",\"scope\":\"rack\","
              "\"domain\":\"%s\",\"severity\":3,\"status\":\"open\",\"phase\":\"%s\","
              "\"rule\":\"%s\",\"plan\":\"record\",\"timeline\":[],\"state\":{\"actions\":[]}}]",
              model_rack_name(cluster_model(bench->cluster), fault.rack), phase, rule);
}

TEST(what_is_only_recorded_must_be_decided_so_and_left_as_it_is)
{
    struct bench bench = {.scenario = scenario_find("slow-rack")};
    AUTO_TEXT out = {0};
    char lists[128];
    bench.cluster = scenario_build(bench.scenario, test_seed());
    bench.endings = endings_new(bench.scenario, test_seed());
    cluster_start(bench.cluster, START_NS);
    cluster_advance(bench.cluster, START_NS + 700 * SECOND, ignore, NULL);
    tell_recorded(&bench, "confirmed", "everything-else");
    CU_ASSERT_EQUAL(check(&bench, &out), 0);
    tell_recorded(&bench, "confirmed", "");
    CU_ASSERT_EQUAL(check(&bench, &out), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "no policy decided INC-1"));
    tell_recorded(&bench, "escalated", "everything-else");
    CU_ASSERT_EQUAL(check(&bench, &out), 1);
    tell_recorded(&bench, "confirmed", "everything-else");
    snprintf(lists, sizeof lists, ",\"nodes\":[\"%s\"]",
             model_tray_name(cluster_model(bench.cluster), 0));
    operate(&bench, "INC-1/0/2/1", "cordon", lists);
    CU_ASSERT(check(&bench, &out) >= 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "should be left alone"));
    close_bench(&bench);
}

TEST(every_scenario_has_a_name_a_summary_and_a_fault_inside_its_cluster)
{
    for (size_t i = 0; i < scenario_count(); i++) {
        const struct scenario *scenario = scenario_at(i);
        CU_ASSERT_PTR_EQUAL(scenario_find(scenario->name), scenario);
        CU_ASSERT(scenario->summary[0] != '\0' && scenario->speed >= 1 &&
                  scenario->duration_ns > 0);
        for (uint64_t seed = 1; seed <= 20; seed++) {
            AUTO(cluster_free) struct cluster *cluster = scenario_build(scenario, seed);
            struct model_fault fault = scenario_fault(scenario, seed);
            CU_ASSERT(model_tray_has_ranks(cluster_model(cluster), fault.tray));
            CU_ASSERT_EQUAL(model_rack_of(cluster_model(cluster), fault.tray), fault.rack);
        }
    }
    CU_ASSERT_PTR_NULL(scenario_find("slow-rnak"));
}

TESTS(T(a_rehearsal_that_ended_as_it_must_has_no_disagreement), T(nothing_done_is_told_in_words),
      T(an_action_asked_for_twice_is_a_disagreement),
      T(a_cordon_of_a_healthy_node_is_a_disagreement),
      T(an_incident_about_the_wrong_place_is_a_disagreement),
      T(an_action_that_the_cluster_never_saw_is_a_disagreement),
      T(what_is_only_recorded_must_be_decided_so_and_left_as_it_is),
      T(every_scenario_has_a_name_a_summary_and_a_fault_inside_its_cluster))
