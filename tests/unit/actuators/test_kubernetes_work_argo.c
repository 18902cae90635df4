#include "tests/unit/actuators/work_bench.h"

#define FLOW_PATH "/apis/argoproj.io/v1alpha1/namespaces/default/workflows/llm"
#define WORKLOAD  "{\"kind\":\"workflow\",\"namespace\":\"default\",\"name\":\"llm\"}"
#define OPERATION "INC-3/1/4/1"

static struct bench *acted_on;

static void tell_flow_pod(struct bench *bench, const char *name, const char *node,
                          const char *deleted)
{
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .owner = "Workflow",
                                        .owner_uid = "u-1",
                                        .labels = "\"workflows.argoproj.io/workflow\":\"llm\"",
                                        .node = node,
                                        .deleted = deleted,
                                        .gpus = 4});
}

/* A kubelet that ends what is evicted. */
static void kubelet_works(struct kube_client *client, const struct fake_call *call)
{
    char name[64] = "";
    const char *pods = strstr(call->path, "/pods/");
    if (pods == NULL)
        return;
    text_copy(name, sizeof name, pods + 6);
    name[strcspn(name, "/")] = '\0';
    fake_gone(client, PODS_LIST, "default", name);
}

static void open_flow(struct bench *bench, const char *from, const char *to)
{
    AUTO_FREE char *object = recorded("workflow.json", from, to);
    bench_open(bench);
    acted_on = bench;
    fake_set(&bench->client, FLOW_PATH, object);
    fake_tell(&bench->client, WORKFLOW_LIST, object);
    tell_flow_pod(bench, "llm-train-1", "gb-1", NULL);
    tell_flow_pod(bench, "llm-train-2", "gb-2", NULL);
    tell_flow_pod(bench, "llm-train-3", "gb-2", NULL);
}

TEST(the_pods_that_shall_leave_are_evicted_by_uid_and_no_others)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_flow(&bench, NULL, NULL);
    bench.client.on_write = kubelet_works;
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[0].method, "PATCH");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench.client.calls[0].body, "\"broomwagon.io/operation\":\"" OPERATION "\""));
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", "/eviction"), 2);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", "/pods/llm-train-1/"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(body_of(&bench, "POST", "/eviction", 0),
                                  "\"preconditions\":{\"uid\":\"llm-train-2\"}"));
    bench_close(&bench);
}

static void expect_refused(const char *from, const char *to, const char *words)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    struct job_question question = {.job = "default/llm", .workload_json = WORKLOAD};
    struct world_job job;
    open_flow(&bench, from, to);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, words));
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    workloads_describe_begin(bench.workloads);
    workloads_describe(bench.workloads, &question, &job);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job.restart_refusal);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.restart_refusal, words));
    bench_close(&bench);
}

TEST(a_workflow_that_an_eviction_would_end_is_refused_and_says_what_is_missing)
{
    expect_refused("\"retryStrategy\": {\"limit\": \"3\", \"retryPolicy\": \"Always\"},", "",
                   "template 'train' has no retryStrategy");
    expect_refused("\"Always\"", "\"OnFailure\"", "template 'train' retries OnFailure only");
    expect_refused(", \"retryPolicy\": \"Always\"", "", "template 'train' retries OnFailure only");
    expect_refused("\"phase\": \"Running\",\n    \"nodes\"", "\"phase\": \"Failed\", \"nodes\"",
                   "Workflow default/llm is Failed");
}

TEST(defaults_of_the_workflow_count_for_its_templates)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_flow(&bench, "\"retryStrategy\": {\"limit\": \"3\", \"retryPolicy\": \"Always\"},", "");
    AUTO_FREE char *object = xstrdup(fake_find(&bench.client, FLOW_PATH)->json);
    AUTO_TEXT with_default = {0};
    const char *spec = strstr(object, "\"entrypoint\"");
    text_add_bytes(&with_default, object, (size_t)(spec - object));
    text_addf(&with_default,
              "\"templateDefaults\": {\"retryStrategy\": {\"retryPolicy\": \"OnError\"}}, %s",
              spec);
    fake_set(&bench.client, FLOW_PATH, with_default.bytes);
    bench.client.on_write = kubelet_works;
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(a_disruption_budget_that_stands_in_the_way_is_named_when_time_is_over)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.params_json = "{\"timeout_ns\":12000000000}";
    open_flow(&bench, NULL, NULL);
    for (int i = 0; i < 20; i++)
        fake_answer_next(&bench.client, "POST", "/api/v1/namespaces/default/pods/llm-train-2",
                         KUBE_BLOCKED, "budget llm-pdb allows no disruption");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "budget llm-pdb allows no disruption"));
    bench_close(&bench);
}

TEST(poll_tells_what_is_left_to_evict)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_flow(&bench, NULL, NULL);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT); /* no mark: never begun */
    AUTO_FREE char *marked = recorded("workflow.json", "\"resourceVersion\": \"71\"",
                                      "\"annotations\": {\"broomwagon.io/operation\": \"" OPERATION
                                      "\"}");
    fake_set(&bench.client, FLOW_PATH, marked);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT); /* start is to go on */
    tell_flow_pod(&bench, "llm-train-2", "gb-2", "2030-01-01T00:00:00Z");
    tell_flow_pod(&bench, "llm-train-3", "gb-2", "2030-01-01T00:00:00Z");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_RUNNING);
    fake_gone(&bench.client, PODS_LIST, "default", "llm-train-2");
    fake_gone(&bench.client, PODS_LIST, "default", "llm-train-3");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TEST(a_server_that_was_busy_in_the_middle_is_asked_again)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_flow(&bench, NULL, NULL);
    bench.client.on_write = kubelet_works;
    fake_answer_next(&bench.client, "POST", "/api/v1/namespaces/default/pods/llm-train-3",
                     KUBE_BUSY, "too many requests");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", "/eviction"), 3);
    bench_close(&bench);
}

TEST(a_restart_of_all_pods_whose_end_was_not_written_down_is_not_made_twice)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.node_count = 0;
    open_flow(&bench, NULL, NULL);
    AUTO_FREE char *marked = recorded("workflow.json", "\"resourceVersion\": \"71\"",
                                      "\"annotations\": {\"broomwagon.io/operation\": \"" OPERATION
                                      "\"}");
    fake_set(&bench.client, FLOW_PATH, marked);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_UNREACHABLE);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TESTS(T(the_pods_that_shall_leave_are_evicted_by_uid_and_no_others),
      T(a_workflow_that_an_eviction_would_end_is_refused_and_says_what_is_missing),
      T(defaults_of_the_workflow_count_for_its_templates),
      T(a_disruption_budget_that_stands_in_the_way_is_named_when_time_is_over),
      T(poll_tells_what_is_left_to_evict), T(a_server_that_was_busy_in_the_middle_is_asked_again),
      T(a_restart_of_all_pods_whose_end_was_not_written_down_is_not_made_twice))
