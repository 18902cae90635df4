#include "tests/unit/actuators/work_bench.h"

#define JOB_PATH     "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/llm"
#define COMMANDS     "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
#define WORKLOAD     "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\"}"
#define OPERATION    "INC-3/1/4/1"
#define BY_PARTITION "[{\"event\":\"PodEvicted\",\"action\":\"RestartPartition\"}]"
#define WHOLE_JOB    "[{\"event\":\"*\",\"action\":\"RestartJob\"}]"

/* Two partitions of two pods, as told by the policies of the job and of its task. */
static void set_job(struct bench *bench, const char *job_policies, const char *task_policies,
                    const char *notes)
{
    AUTO_TEXT json = {0};
    text_addf(
        &json,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\","
        "\"resourceVersion\":\"71\",\"annotations\":{%s}},\"spec\":{\"policies\":%s,\"tasks\":"
        "[{\"name\":\"worker\",\"replicas\":4,\"policies\":%s,\"partitionPolicy\":{"
        "\"totalPartitions\":2,\"partitionSize\":2},\"template\":{\"spec\":{\"containers\":[{"
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}}]},\"status\":{\"state\":{"
        "\"phase\":\"Running\"}}}",
        notes, job_policies, task_policies);
    fake_set(&bench->client, JOB_PATH, json.bytes);
    fake_tell(&bench->client, VOLCANO_LIST, json.bytes);
}

static void tell_worker(struct bench *bench, int index, const char *uid, const char *node,
                        const char *deleted)
{
    char name[32], labels[200];
    snprintf(name, sizeof name, "llm-worker-%d", index);
    snprintf(labels, sizeof labels,
             "\"volcano.sh/job-name\":\"llm\",\"volcano.sh/task-spec\":\"worker\","
             "\"volcano.sh/task-index\":\"%d\",\"volcano.sh/partition-id\":\"%d\"",
             index, index / 2);
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .uid = uid,
                                        .owner = "Job",
                                        .owner_uid = "u-1",
                                        .labels = labels,
                                        .node = node,
                                        .deleted = deleted,
                                        .gpus = 1});
}

static struct bench *acted_on;

static void controller_works(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    if (strstr(call->path, "/eviction") == NULL)
        return;
    tell_worker(acted_on, 2, "p-12", "gb-9", NULL);
    tell_worker(acted_on, 3, "p-13", "gb-8", NULL);
}

/* The pod goes; of the others nothing is heard but that they are there. */
static void controller_sleeps(struct kube_client *client, const struct fake_call *call)
{
    if (strstr(call->path, "/eviction") == NULL)
        return;
    fake_gone(client, PODS_LIST, "default", "llm-worker-2");
    tell_worker(acted_on, 3, "p-3", "gb-3", NULL);
}

static void open_job(struct bench *bench, const char *job_policies, const char *task_policies,
                     void (*controller)(struct kube_client *, const struct fake_call *))
{
    bench_open(bench);
    acted_on = bench;
    bench->client.on_write = controller;
    set_job(bench, job_policies, task_policies, "");
    tell_worker(bench, 0, "p-0", "gb-0", NULL);
    tell_worker(bench, 1, "p-1", "gb-1", NULL);
    tell_worker(bench, 2, "p-2", "gb-2", NULL);
    tell_worker(bench, 3, "p-3", "gb-3", NULL);
}

TEST(one_eviction_restarts_a_partition_where_the_jobs_policy_says_so)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_job(&bench, BY_PARTITION, "[]", controller_works);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[0].body, "\\\"evicted\\\":\\\"p-2\\\""));
    CU_ASSERT_STRING_EQUAL(bench.client.calls[1].path,
                           "/api/v1/namespaces/default/pods/llm-worker-2/eviction");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[1].body, "\"uid\":\"p-2\""));
    bench_close(&bench);
}

/* Everything else is a restart of the whole job; a Command that nobody takes will do here. */
static void expect_command(const char *job_policies, const char *task_policies, size_t nodes)
{
    static const char *const BOTH[] = {"gb-2", "gb-1"};
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.params_json = "{\"timeout_ns\":1000000000}";
    action.nodes = BOTH;
    action.node_count = nodes;
    open_job(&bench, job_policies, task_policies, controller_works);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", "/eviction"), 0);
    bench_close(&bench);
}

TEST(pods_of_two_partitions_or_another_policy_restart_the_whole_job)
{
    expect_command(BY_PARTITION, "[]", 2);      /* two partitions */
    expect_command(BY_PARTITION, "[]", 0);      /* nobody leaves */
    expect_command("[]", "[]", 1);              /* no policy */
    expect_command(WHOLE_JOB, "[]", 1);         /* another one */
    expect_command(BY_PARTITION, WHOLE_JOB, 1); /* the task's goes first */
}

TEST(a_partition_that_restarts_by_itself_already_gets_no_second_restart)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_job(&bench, "[]", BY_PARTITION, controller_works);
    tell_worker(&bench, 2, "p-2", "gb-2", "2020-01-01T00:00:00Z");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TEST(a_controller_that_does_not_follow_its_policy_is_told)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_job(&bench, BY_PARTITION, "[]", controller_sleeps);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "1 others stay as they are"));
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", "/eviction"), 1);
    bench_close(&bench);
}

TEST(poll_and_start_after_a_crash_know_the_pod_by_its_uid)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_job(&bench, BY_PARTITION, "[]", controller_works);
    set_job(&bench, BY_PARTITION, "[]",
            "\"broomwagon.io/operation\":\"" OPERATION "\",\"broomwagon.io/operation-state\":"
            "\"{\\\"retries\\\":0,\\\"evicted\\\":\\\"p-2\\\",\\\"at\\\":\\\"2026-12-01T00:00:"
            "00Z\\\"}\"");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 1);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(a_disruption_budget_holds_the_eviction_until_time_is_over)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.params_json = "{\"timeout_ns\":12000000000}";
    open_job(&bench, BY_PARTITION, "[]", controller_works);
    for (int i = 0; i < 8; i++)
        fake_answer_next(&bench.client, "POST", "/api/v1/namespaces/default/pods/", KUBE_BLOCKED,
                         "budget llm-pdb allows no disruption");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "budget llm-pdb"));
    bench_close(&bench);
}

TESTS(T(one_eviction_restarts_a_partition_where_the_jobs_policy_says_so),
      T(pods_of_two_partitions_or_another_policy_restart_the_whole_job),
      T(a_partition_that_restarts_by_itself_already_gets_no_second_restart),
      T(a_controller_that_does_not_follow_its_policy_is_told),
      T(poll_and_start_after_a_crash_know_the_pod_by_its_uid),
      T(a_disruption_budget_holds_the_eviction_until_time_is_over))
