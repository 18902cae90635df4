#include "remediation/actuators/kubernetes_pods.h"
#include "tests/unit/actuators/work_bench.h"

#define POD(name)      "/api/v1/namespaces/default/pods/" name
#define EVICTION(name) POD(name) "/eviction"
#define BUDGETS        "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define LLM            "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\"}"

struct pod_bench {
    struct bench bench;
    struct pod_actions *pods;
};

static void pod_bench_open(struct pod_bench *test)
{
    bench_open(&test->bench);
    test->pods = pod_actions_new(&test->bench.client, test->bench.loop, NULL,
                                 test->bench.workloads);
    fake_tell(&test->bench.client, VOLCANO_LIST,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"job-1\"},"
              "\"spec\":{\"tasks\":[]},\"status\":{\"state\":{\"phase\":\"Running\"}}}");
}

static void pod_bench_close(struct pod_bench *test)
{
    pod_actions_free(test->pods);
    bench_close(&test->bench);
}

static struct action move(enum verb verb)
{
    struct action action = restart_action("INC-3/0/1/1", LLM);
    action.verb = verb;
    return action;
}

static void run(struct pod_bench *test, enum verb verb)
{
    struct action action = move(verb);
    pod_actions_start(test->pods, &action, on_result, &test->bench);
    CU_ASSERT_EQUAL(test->bench.answers, 0);
    loop_run(test->bench.loop);
    CU_ASSERT_EQUAL(test->bench.answers, 1);
}

static void tell_other(struct pod_bench *test, const char *name, const char *owner,
                       const char *deleted)
{
    struct pod_words pod = {
        .name = name, .owner = owner, .owner_uid = "x", .node = "gb-2", .deleted = deleted};
    tell_pod(&test->bench, &pod);
}

/* What is evicted goes: the watch says so. */
static void goes(struct kube_client *client, const struct fake_call *call)
{
    static const char PREFIX[] = "/api/v1/namespaces/default/pods/";
    char name[64] = "";
    if (strncmp(call->path, PREFIX, sizeof PREFIX - 1) != 0)
        return;
    text_copy(name, sizeof name, call->path + sizeof PREFIX - 1);
    name[strcspn(name, "/?")] = '\0';
    fake_gone(client, PODS_LIST, "default", name);
}

TEST(a_drain_evicts_what_is_not_the_job_s_and_waits_until_it_is_gone)
{
    struct pod_bench test;
    pod_bench_open(&test);
    tell_other(&test, "web-1", "ReplicaSet", NULL);
    tell_other(&test, "web-2", "ReplicaSet", NULL);
    tell_other(&test, "exporter", "DaemonSet", NULL);
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running", NULL);
    struct pod_words elsewhere = {
        .name = "web-3", .owner = "ReplicaSet", .owner_uid = "x", .node = "gb-1"};
    tell_pod(&test.bench, &elsewhere);
    test.bench.client.on_write = goes;
    run(&test, VERB_DRAIN);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(test.bench.reason, "2 pods evicted");
    CU_ASSERT_EQUAL(count_writes(&test.bench, "POST", "/eviction"), 2);
    CU_ASSERT_EQUAL(count_writes(&test.bench, "DELETE", ""), 0);
    const char *body = body_of(&test.bench, "POST", EVICTION("web-1"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"preconditions\":{\"uid\":\"web-1\"}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"kind\":\"Eviction\""));
    CU_ASSERT_PTR_NULL(strstr(body, "gracePeriodSeconds"));
    pod_bench_close(&test);
}

TEST(a_pod_that_a_budget_keeps_is_asked_again_and_in_the_end_named_with_it)
{
    struct pod_bench test;
    pod_bench_open(&test);
    tell_other(&test, "web-1", "ReplicaSet", NULL);
    fake_set(&test.bench.client, POD("web-1"), "{\"metadata\":{\"labels\":{\"app\":\"web\"}}}");
    fake_set(&test.bench.client, BUDGETS,
             "{\"items\":[{\"metadata\":{\"name\":\"db\"},\"spec\":{\"selector\":{\"matchLabels\":{"
             "\"app\":\"db\"}}}},{\"metadata\":{\"name\":\"web-min\"},\"spec\":{\"selector\":{"
             "\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"web\"]}]}}}"
             "]}");
    for (int i = 0; i < 8; i++)
        fake_answer_next(&test.bench.client, "POST", EVICTION("web-1"), KUBE_BLOCKED, "budget");
    struct action action = move(VERB_DRAIN);
    action.params_json = "{\"timeout_ns\":300000000000}"; /* 1.5 s of real time */
    pod_actions_start(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "pod default/web-1 on gb-2 is kept by "
                                                     "disruption budget web-min"));
    pod_bench_close(&test);
}

static void stop(void *context)
{
    loop_stop(context);
}

TEST(a_poll_of_a_drain_under_way_names_what_keeps_it)
{
    struct pod_bench test;
    pod_bench_open(&test);
    tell_other(&test, "web-1", "ReplicaSet", NULL);
    fake_set(&test.bench.client, POD("web-1"), "{\"metadata\":{\"labels\":{\"app\":\"web\"}}}");
    fake_set(&test.bench.client, BUDGETS,
             "{\"items\":[{\"metadata\":{\"name\":\"web-min\"},\"spec\":{\"selector\":{"
             "\"matchLabels\":{\"app\":\"web\"}}}}]}");
    fake_answer_next(&test.bench.client, "POST", EVICTION("web-1"), KUBE_BLOCKED, "budget");
    struct action action = move(VERB_DRAIN);
    struct loop_timer *timer = loop_timer_new(test.bench.loop, stop, test.bench.loop);
    action.params_json = "{\"timeout_ns\":8640000000000000}";
    pod_actions_start(test.pods, &action, on_result, &test.bench);
    for (int i = 0; i < 200 && strstr(test.bench.reason, "web-min") == NULL; i++) {
        loop_timer_set(timer, INT64_C(20000000));
        loop_run(test.bench.loop);
        pod_actions_poll(test.pods, &action, on_result, &test.bench);
        loop_run(test.bench.loop);
        CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_UNKNOWN);
        CU_ASSERT_EQUAL(test.bench.result.poll, POLL_RUNNING);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "under way here; 1 left: pod default/web-1 on "
                                                     "gb-2 is kept by disruption budget web-min"));
    CU_ASSERT_EQUAL(count_writes(&test.bench, "POST", "/eviction"), 1);
    loop_timer_free(timer);
    pod_bench_close(&test);
}

TEST(a_drain_that_is_not_allowed_says_so_at_once)
{
    struct pod_bench test;
    pod_bench_open(&test);
    tell_other(&test, "web-1", "ReplicaSet", NULL);
    fake_answer_next(&test.bench.client, "POST", EVICTION("web-1"), KUBE_DENIED,
                     "cannot create pods/eviction");
    run(&test, VERB_DRAIN);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "web-1: cannot create pods/eviction"));
    pod_bench_close(&test);
}

TEST(a_pod_that_never_ends_is_named_when_time_is_over)
{
    struct pod_bench test;
    pod_bench_open(&test);
    fake_down[0] = "gb-2";
    tell_other(&test, "web-1", "ReplicaSet", "2026-01-01T00:00:00Z");
    struct action action = move(VERB_DRAIN);
    action.params_json = "{\"timeout_ns\":100000000000}";
    pod_actions_start(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_EQUAL(test.bench.client.call_count, 0); /* it is being deleted already */
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "web-1 on gb-2 is being deleted, and its node "
                                                     "is not Ready"));
    pod_bench_close(&test);
}

TEST(only_the_job_s_own_pods_that_never_end_are_deleted_by_force)
{
    struct pod_bench test;
    pod_bench_open(&test);
    fake_down[0] = "gb-2";
    fake_down[1] = "gb-1";
    tell_other(&test, "web-1", "ReplicaSet", "2026-01-01T00:00:00Z");
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running",
                     "2026-01-01T00:00:00Z");
    tell_volcano_pod(&test.bench, "job-1", "worker", 2, "p2", "gb-1", "Running",
                     "2026-01-01T00:00:00Z");
    fake_set(&test.bench.client, POD("llm-worker-0"), "{\"metadata\":{\"uid\":\"p0\"}}");
    run(&test, VERB_FORCE_DELETE);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(test.bench.reason, "1 pod deleted by force");
    CU_ASSERT_EQUAL(test.bench.client.call_count, 1);
    const char *body = body_of(&test.bench, "DELETE", POD("llm-worker-0"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"gracePeriodSeconds\":0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"preconditions\":{\"uid\":\"p0\"}"));
    pod_bench_close(&test);
}

TEST(pods_of_a_node_that_is_ready_again_are_left_to_its_kubelet)
{
    struct pod_bench test;
    pod_bench_open(&test);
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running",
                     "2026-01-01T00:00:00Z");
    tell_volcano_pod(&test.bench, "job-1", "worker", 1, "p1", "gb-2", "Running", NULL);
    run(&test, VERB_FORCE_DELETE);
    CU_ASSERT_EQUAL(test.bench.client.call_count, 0);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_STRING_EQUAL(test.bench.reason, "1 pod is left to end: the node is Ready");
    pod_bench_close(&test);
}

TEST(pods_of_a_node_that_is_down_are_deleted_by_force_before_anybody_began_to)
{
    struct pod_bench test;
    pod_bench_open(&test);
    fake_down[0] = "gb-2";
    tell_volcano_pod(&test.bench, "job-1", "worker", 1, "p1", "gb-2", "Running", NULL);
    fake_set(&test.bench.client, POD("llm-worker-1"), "{\"metadata\":{\"uid\":\"p1\"}}");
    run(&test, VERB_FORCE_DELETE);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&test.bench, "DELETE", POD("llm-worker-1")), 1);
    pod_bench_close(&test);
}

TEST(a_force_delete_without_its_permission_is_refused)
{
    struct pod_bench test;
    pod_bench_open(&test);
    fake_down[0] = "gb-2";
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running",
                     "2026-01-01T00:00:00Z");
    fake_answer_next(&test.bench.client, "DELETE", POD("llm-worker-0"), KUBE_DENIED,
                     "cannot delete pods");
    run(&test, VERB_FORCE_DELETE);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "cannot delete pods"));
    pod_bench_close(&test);
}

TEST(a_pod_of_the_same_name_and_another_uid_is_left_alone)
{
    struct pod_bench test;
    pod_bench_open(&test);
    fake_down[0] = "gb-2";
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running",
                     "2026-01-01T00:00:00Z");
    fake_answer_next(&test.bench.client, "DELETE", POD("llm-worker-0"), KUBE_CONFLICT,
                     "the UID in the precondition does not match");
    test.bench.client.on_write = NULL;
    struct action action = move(VERB_FORCE_DELETE);
    action.params_json = "{\"timeout_ns\":100000000000}";
    pod_actions_start(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.client.call_count, 1);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "llm-worker-0"));
    pod_bench_close(&test);
}

TEST(without_the_job_s_workload_nothing_is_moved)
{
    struct pod_bench test;
    pod_bench_open(&test);
    struct action action = move(VERB_DRAIN);
    action.workload_json = "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"gone\"}";
    tell_volcano_pod(&test.bench, "job-1", "worker", 0, "p0", "gb-2", "Running", NULL);
    pod_actions_start(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_EQUAL(test.bench.client.call_count, 0);
    pod_bench_close(&test);
}

TEST(what_is_left_of_it_is_found_by_looking)
{
    struct pod_bench test;
    pod_bench_open(&test);
    struct action action = move(VERB_DRAIN);
    tell_other(&test, "web-1", "ReplicaSet", NULL);
    pod_actions_poll(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.poll, POLL_ABSENT);
    CU_ASSERT_EQUAL(test.bench.client.call_count, 0);
    fake_gone(&test.bench.client, PODS_LIST, "default", "web-1");
    pod_actions_poll(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.poll, POLL_DONE);
    fake_unsynced = PODS_LIST;
    pod_actions_poll(test.pods, &action, on_result, &test.bench);
    loop_run(test.bench.loop);
    CU_ASSERT_EQUAL(test.bench.result.poll, POLL_UNREACHABLE);
    pod_bench_close(&test);
}

TESTS(T(a_drain_evicts_what_is_not_the_job_s_and_waits_until_it_is_gone),
      T(a_pod_that_a_budget_keeps_is_asked_again_and_in_the_end_named_with_it),
      T(a_poll_of_a_drain_under_way_names_what_keeps_it),
      T(a_drain_that_is_not_allowed_says_so_at_once),
      T(a_pod_that_never_ends_is_named_when_time_is_over),
      T(only_the_job_s_own_pods_that_never_end_are_deleted_by_force),
      T(pods_of_a_node_that_is_ready_again_are_left_to_its_kubelet),
      T(pods_of_a_node_that_is_down_are_deleted_by_force_before_anybody_began_to),
      T(a_force_delete_without_its_permission_is_refused),
      T(a_pod_of_the_same_name_and_another_uid_is_left_alone),
      T(without_the_job_s_workload_nothing_is_moved), T(what_is_left_of_it_is_found_by_looking))
