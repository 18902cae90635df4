#include "remediation/actuators/kubernetes_workload_pods.h"
#include "remediation/actuators/kubernetes_workload_state.h"
#include "tests/unit/actuators/work_bench.h"

#define VOLCANO_JOB(members, status)                                                               \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\"},\"spec\":{"        \
    "\"tasks\":[{\"name\":\"head\",\"replicas\":1,\"template\":" GPU_TEMPLATE                      \
    "},{\"name\":\"worker\",\"replicas\":2,\"template\":" GPU_TEMPLATE "}]" members                \
    "},\"status\":" status "}"
#define GPU_TEMPLATE                                                                               \
    "{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}}]}}"

static struct world_job describe(struct bench *bench, const char *kind)
{
    static char workload[128];
    struct world_job job;
    snprintf(workload, sizeof workload,
             "{\"kind\":\"%s\",\"namespace\":\"default\",\"name\":\"llm\"}", kind);
    struct job_question question = {.job = "default/llm", .workload_json = workload};
    workloads_describe_begin(bench->workloads);
    workloads_describe(bench->workloads, &question, &job);
    return job;
}

static void expect_nodes(const struct world_job *job, const char *wanted)
{
    AUTO_TEXT told = {0};
    text_add(&told, "");
    for (int32_t i = 0; i < job->rank_count; i++)
        text_addf(&told, "%s%s", i > 0 ? " " : "",
                  job->rank_nodes[i] != NULL ? job->rank_nodes[i] : "-");
    CU_ASSERT_STRING_EQUAL(told.bytes != NULL ? told.bytes : "", wanted);
}

static void expect_wait(const struct world_job *job, const char *phase, const char *words)
{
    CU_ASSERT_STRING_EQUAL(job->phase, phase);
    CU_ASSERT_EQUAL(job->waiting_for == NULL, words == NULL);
    if (words != NULL && job->waiting_for != NULL) {
        if (strstr(job->waiting_for, words) == NULL)
            printf("waits for: %s\n", job->waiting_for);
        CU_ASSERT_PTR_NOT_NULL(strstr(job->waiting_for, words));
    }
}

/* Three pods of a Volcano job as they run. */
static void tell_running(struct bench *bench)
{
    tell_volcano_pod(bench, "u-1", "worker", 1, "p-3", "gb-3", "Running", NULL);
    tell_volcano_pod(bench, "u-1", "head", 0, "p-1", "gb-1", "Running", NULL);
    tell_volcano_pod(bench, "u-1", "worker", 0, "p-2", "gb-2", "Running", NULL);
}

/* --- Volcano --- */

TEST(a_volcano_job_tells_its_budget_with_absent_members_as_their_defaults)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Running\"}}"));
    tell_running(&bench);
    struct world_job job = describe(&bench, "volcano");
    expect_wait(&job, "running", NULL);
    CU_ASSERT_STRING_EQUAL(job.uid, "u-1");
    CU_ASSERT_EQUAL(job.restarts, 0);
    CU_ASSERT_EQUAL(job.restarts_max, 2); /* the third of its three retries ends it */
    CU_ASSERT_PTR_NULL(job.restart_refusal);
    expect_nodes(&job, "gb-1 gb-1 gb-2 gb-2 gb-3 gb-3");
    bench_close(&bench);
}

static void expect_made_anew(struct bench *bench, const char *sentence)
{
    struct world_job job = describe(bench, "volcano");
    CU_ASSERT_EQUAL(job.made_anew == NULL, sentence == NULL);
    if (job.made_anew != NULL && sentence != NULL)
        CU_ASSERT_STRING_EQUAL(job.made_anew, sentence);
}

TEST(pods_of_a_gang_that_were_made_anew_alone_are_told_until_the_gang_is_of_one_start)
{
    static const char running[] = VOLCANO_JOB("", "{\"state\":{\"phase\":\"Running\"}}");
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, running);
    tell_volcano_pod(&bench, "u-1", "head", 0, "p-1", "gb-1", "Running", NULL);
    expect_made_anew(&bench, NULL); /* the gang is on its way */
    tell_running(&bench);
    expect_made_anew(&bench, NULL);
    struct pod_words helper = {
        .name = "llm-loader", .owner = "Job", .owner_uid = "u-1", .node = "gb-9"};
    tell_pod(&bench, &helper); /* nobody's pod of this gang */
    expect_made_anew(&bench, NULL);
    tell_volcano_pod(&bench, "u-1", "worker", 1, "p-4", "", "Pending", NULL);
    expect_made_anew(&bench, "1 of its 3 pods was made anew alone: llm-worker-1");
    tell_volcano_pod(&bench, "u-1", "worker", 1, "p-4", "gb-4", "Running", NULL);
    expect_made_anew(&bench, "1 of its 3 pods was made anew alone: llm-worker-1");
    fake_tell(&bench.client, VOLCANO_LIST, running); /* the object is told again */
    expect_made_anew(&bench, "1 of its 3 pods was made anew alone: llm-worker-1");
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-5", "gb-2", "Running", NULL);
    expect_made_anew(&bench, "2 of its 3 pods were made anew alone: llm-worker-0 and 1 more");
    tell_volcano_pod(&bench, "u-1", "head", 0, "p-6", "gb-1", "Running", NULL);
    expect_made_anew(&bench, NULL); /* all of it is */
    tell_volcano_pod(&bench, "u-1", "head", 0, "p-7", "gb-1", "Running", NULL);
    expect_made_anew(&bench, "1 of its 3 pods was made anew alone: llm-head-0");
    fake_tell(&bench.client, VOLCANO_LIST,
              VOLCANO_JOB("", "{\"state\":{\"phase\":\"Restarting\"}}"));
    expect_made_anew(&bench, NULL); /* the whole of it is on its way */
    bench_close(&bench);
}

TEST(the_retry_that_would_end_a_volcano_job_is_a_refusal)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST,
              VOLCANO_JOB(",\"maxRetry\":4",
                          "{\"state\":{\"phase\":\"Running\"},\"retryCount\":3,\"version\":37}"));
    struct world_job job = describe(&bench, "volcano");
    CU_ASSERT_EQUAL(job.restarts, 3);
    CU_ASSERT_EQUAL(job.restarts_max, 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job.restart_refusal);
    CU_ASSERT_PTR_NOT_NULL(strstr(job.restart_refusal, "3 of its 4 retries are used"));
    bench_close(&bench);
}

TEST(a_restart_that_hangs_names_the_pod_and_the_node_that_is_down)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST,
              VOLCANO_JOB(
                  "", "{\"state\":{\"phase\":\"Restarting\"},\"retryCount\":1,\"terminating\":1}"));
    tell_running(&bench);
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-2", "gb-2", "Running", "2020-01-01T00:00:00Z");
    struct world_job job = describe(&bench, "volcano");
    expect_wait(&job, "restarting", "pod llm-worker-0 to end on node gb-2: overdue by ");
    CU_ASSERT_EQUAL(job.stuck_count, 0); /* a node that is ready will end it */
    fake_down[0] = "gb-2";
    job = describe(&bench, "volcano");
    expect_wait(&job, "restarting", ", the node is not ready");
    CU_ASSERT_EQUAL_FATAL(job.stuck_count, 1);
    CU_ASSERT_STRING_EQUAL(job.stuck_nodes[0], "gb-2");
    expect_nodes(&job, "gb-1 gb-1 - - gb-3 gb-3");
    bench_close(&bench);
}

TEST(a_pod_that_may_still_end_in_its_grace_is_not_stuck)
{
    struct bench bench;
    AUTO_TEXT later = {0};
    bench_open(&bench);
    text_add_time(&later, clock_now_ns() + INT64_C(30000000000));
    fake_tell(&bench.client, VOLCANO_LIST,
              VOLCANO_JOB("", "{\"state\":{\"phase\":\"Restarting\"}}"));
    fake_down[0] = "gb-2";
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-2", "gb-2", "Running", later.bytes);
    struct world_job job = describe(&bench, "volcano");
    CU_ASSERT_EQUAL(job.stuck_count, 0);
    expect_wait(&job, "restarting", "pod llm-worker-0 to end on node gb-2");
    bench_close(&bench);
}

TEST(a_pod_that_finds_no_place_is_told_in_the_schedulers_words)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Pending\"}}"));
    tell_pod(&bench, &(struct pod_words){.name = "llm-worker-0",
                                         .owner = "Job",
                                         .owner_uid = "u-1",
                                         .labels = "\"volcano.sh/job-name\":\"llm\"",
                                         .phase = "Pending",
                                         .gpus = 2,
                                         .message = "0/36 nodes are available: 1 cordoned."});
    struct world_job job = describe(&bench, "volcano");
    expect_wait(&job, "pending",
                "pod llm-worker-0 to be placed: 0/36 nodes are available: 1 cordoned.");
    bench_close(&bench);
}

TEST(a_container_that_does_not_stay_up_is_told_and_is_not_running)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Pending\"}}"));
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-2", "gb-2", "Pending", NULL);
    fake_tell(&bench.client, PODS_LIST,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm-worker-1\",\"uid\":\"p-3\","
              "\"annotations\":{\"volcano.sh/job-name\":\"llm\",\"volcano.sh/task-spec\":"
              "\"worker\"},\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":\"u-1\",\"controller\":"
              "true}]},\"spec\":{\"nodeName\":\"gb-3\"},\"status\":{\"phase\":\"Running\","
              "\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]"
              "}}");
    struct world_job job = describe(&bench, "volcano");
    expect_wait(&job, "pending", "pod llm-worker-1 to start on node gb-3: CrashLoopBackOff");
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Running\"}}"));
    job = describe(&bench, "volcano"); /* whatever Volcano says */
    expect_wait(&job, "running", "CrashLoopBackOff");
    expect_nodes(&job, "- - gb-2 gb-2 gb-3 gb-3"); /* by its name: it has no index label */
    bench_close(&bench);
}

TEST(phases_of_volcano_have_their_word)
{
    static const struct {
        const char *said, *phase;
        bool refused;
    } ROWS[] = {{"Pending", "pending", false},      {"Completed", "finished", true},
                {"Failed", "failed", true},         {"Aborted", "failed", true},
                {"Terminated", "failed", true},     {"Aborting", "failed", true},
                {"Restarting", "restarting", false}};
    struct bench bench;
    bench_open(&bench);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        AUTO_TEXT json = {0};
        text_addf(&json,
                  "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\"},"
                  "\"status\":{\"state\":{\"phase\":\"%s\"}}}",
                  ROWS[i].said);
        fake_tell(&bench.client, VOLCANO_LIST, json.bytes);
        struct world_job job = describe(&bench, "volcano");
        CU_ASSERT_STRING_EQUAL(job.phase, ROWS[i].phase);
        CU_ASSERT_EQUAL(job.restart_refusal != NULL, ROWS[i].refused);
    }
    bench_close(&bench);
}

TEST(pods_of_an_earlier_job_of_the_same_name_hold_no_rank)
{
    struct bench bench;
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Pending\"}}"));
    tell_volcano_pod(&bench, "u-0", "head", 0, "p-0", "gb-9", "Running", NULL);
    struct world_job job = describe(&bench, "volcano");
    expect_nodes(&job, "- - - - - -");
    bench_close(&bench);
}

/* --- the kinds whose pods tell --- */

static void tell_jobset_pod(struct bench *bench, const char *group, int job, int index,
                            const char *node, const char *phase)
{
    char labels[400], name[64];
    snprintf(name, sizeof name, "llm-%s-%d-%d-x", group, job, index);
    snprintf(
        labels, sizeof labels,
        "\"jobset.sigs.k8s.io/jobset-name\":\"llm\",\"batch.kubernetes.io/job-name\":\"llm-x\","
        "\"jobset.sigs.k8s.io/replicatedjob-name\":\"%s\",\"jobset.sigs.k8s.io/job-index\":"
        "\"%d\",\"batch.kubernetes.io/job-completion-index\":\"%d\"",
        group, job, index);
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .owner = "Job",
                                        .owner_uid = "child",
                                        .labels = labels,
                                        .node = node,
                                        .phase = phase,
                                        .gpus = strcmp(group, "node") == 0 ? 4 : 0});
}

static void tell_jobset_pods(struct bench *bench)
{
    tell_jobset_pod(bench, "loader", 0, 0, "cpu-1", "Succeeded");
    tell_jobset_pod(bench, "node", 1, 1, "gb-4", "Running");
    tell_jobset_pod(bench, "node", 0, 0, "gb-1", "Running");
    tell_jobset_pod(bench, "node", 1, 0, "gb-3", "Running");
}

#define EACH_FOUR(a, b, c, d)                                                                      \
    a " " a " " a " " a " " b " " b " " b " " b " " c " " c " " c " " c " " d " " d " " d " " d

TEST(a_jobset_runs_when_its_pods_do_and_spends_no_restart)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("jobset.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, JOBSET_LIST, object);
    tell_jobset_pods(&bench);
    struct world_job job = describe(&bench, "jobset");
    expect_wait(&job, "pending", "1 of its 4 pods to be made");
    expect_nodes(&job, EACH_FOUR("gb-1", "-", "gb-3", "gb-4"));
    tell_jobset_pod(&bench, "node", 0, 1, "gb-2", "Running");
    job = describe(&bench, "jobset");
    expect_wait(&job, "running", NULL);
    CU_ASSERT_EQUAL(job.restarts, 2);
    CU_ASSERT_EQUAL(job.restarts_max, -1);
    expect_nodes(&job, EACH_FOUR("gb-1", "gb-2", "gb-3", "gb-4"));
    bench_close(&bench);
}

TEST(a_restart_of_ours_counts_as_one_more)
{
    struct bench bench;
    AUTO_FREE char *object = recorded(
        "jobset.json", "\"resourceVersion\": \"71\"",
        "\"resourceVersion\": \"71\", \"annotations\": {\"broomwagon.io/restarts\": \"3\"}");
    bench_open(&bench);
    fake_tell(&bench.client, JOBSET_LIST, object);
    struct world_job job = describe(&bench, "jobset");
    CU_ASSERT_EQUAL(job.restarts, 5);
    bench_close(&bench);
}

TEST(a_suspended_job_says_by_whom)
{
    struct bench bench;
    AUTO_FREE char *theirs = recorded("jobset.json", "\"suspend\": false", "\"suspend\": true");
    AUTO_FREE char *ours = recorded(
        "jobset.json", "\"resourceVersion\": \"71\"},\n  \"spec\": {\n    \"suspend\": false",
        "\"resourceVersion\": \"71\", \"annotations\": {\"broomwagon.io/operation\": "
        "\"INC-3/1/4/1\","
        " \"broomwagon.io/resumed\": \"INC-1/1/4/1\"}}, \"spec\": {\"suspend\": true");
    bench_open(&bench);
    fake_tell(&bench.client, JOBSET_LIST, theirs);
    struct world_job job = describe(&bench, "jobset");
    expect_wait(&job, "pending", "somebody to resume it");
    CU_ASSERT_PTR_NOT_NULL(job.restart_refusal);
    fake_tell(&bench.client, JOBSET_LIST, ours);
    job = describe(&bench, "jobset");
    expect_wait(&job, "restarting", "operation INC-3/1/4/1 to resume it");
    CU_ASSERT_PTR_NULL(job.restart_refusal);
    bench_close(&bench);
}

TEST(the_ranks_of_a_trainjob_are_those_of_its_jobset)
{
    struct bench bench;
    AUTO_FREE char *train = recorded("trainjob.json", NULL, NULL);
    AUTO_FREE char *set = recorded("jobset.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, TRAINJOB_LIST, train);
    fake_tell(&bench.client, JOBSET_LIST, set);
    tell_jobset_pods(&bench);
    tell_jobset_pod(&bench, "node", 0, 1, "gb-2", "Running");
    struct world_job job = describe(&bench, "trainjob");
    expect_wait(&job, "running", NULL);
    CU_ASSERT_STRING_EQUAL(job.uid, "u-train");
    expect_nodes(&job, EACH_FOUR("gb-1", "gb-2", "gb-3", "gb-4"));
    bench_close(&bench);
}

static void tell_indexed_pod(struct bench *bench, int index, const char *node, const char *phase)
{
    char labels[200], name[64];
    snprintf(name, sizeof name, "llm-%d-x%s", index, phase);
    snprintf(labels, sizeof labels,
             "\"batch.kubernetes.io/job-name\":\"llm\","
             "\"batch.kubernetes.io/job-completion-index\":\"%d\"",
             index);
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .owner = "Job",
                                        .owner_uid = "u-1",
                                        .labels = labels,
                                        .node = node,
                                        .phase = phase,
                                        .gpus = 4});
}

TEST(only_the_trainers_of_a_trainjob_hold_ranks)
{
    struct bench bench;
    AUTO_FREE char *train = recorded("trainjob.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, TRAINJOB_LIST, train);
    fake_tell(
        &bench.client, JOBSET_LIST,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-set\"},\"spec\":{"
        "\"replicatedJobs\":[{\"name\":\"model-initializer\",\"template\":{\"spec\":{}}},"
        "{\"name\":\"node\",\"template\":{\"metadata\":{\"labels\":{"
        "\"trainer.kubeflow.org/trainjob-ancestor-step\":\"trainer\"}},\"spec\":{"
        "\"parallelism\":2,\"completions\":2}}}]}}");
    tell_jobset_pod(&bench, "model-initializer", 0, 0, "cpu-1", "Succeeded");
    tell_jobset_pod(&bench, "node", 0, 0, "gb-1", "Running");
    tell_jobset_pod(&bench, "node", 0, 1, "gb-2", "Running");
    struct job_question question = {.job = "default/llm",
                                    .workload_json = "{\"kind\":\"trainjob\",\"name\":\"llm\"}",
                                    .world_size = 4};
    struct world_job job;
    workloads_describe_begin(bench.workloads);
    workloads_describe(bench.workloads, &question, &job);
    expect_wait(&job, "running", NULL);
    expect_nodes(&job, "gb-1 gb-1 gb-2 gb-2");
    bench_close(&bench);
}

TEST(an_indexed_job_counts_by_completion_index_and_not_by_pods_that_failed)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("job.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, JOB_LIST, object);
    tell_indexed_pod(&bench, 2, "gb-3", "Running");
    tell_indexed_pod(&bench, 0, "gb-9", "Failed");
    tell_indexed_pod(&bench, 0, "gb-1", "Running");
    tell_indexed_pod(&bench, 1, "gb-2", "Running");
    struct world_job job = describe(&bench, "job");
    expect_wait(&job, "running", NULL);
    expect_nodes(&job, "gb-1 gb-1 gb-1 gb-1 gb-2 gb-2 gb-2 gb-2 gb-3 gb-3 gb-3 gb-3");
    bench_close(&bench);
}

static void tell_pytorch_pod(struct bench *bench, const char *type, int index, const char *node)
{
    char labels[300], name[64];
    snprintf(name, sizeof name, "llm-%s-%d", type, index);
    snprintf(labels, sizeof labels,
             "\"training.kubeflow.org/job-name\":\"llm\","
             "\"training.kubeflow.org/replica-type\":\"%s\","
             "\"training.kubeflow.org/replica-index\":\"%d\"",
             type, index);
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .owner = "PyTorchJob",
                                        .owner_uid = "u-1",
                                        .labels = labels,
                                        .node = node,
                                        .gpus = 4});
}

TEST(the_master_of_a_pytorchjob_holds_the_first_ranks)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("pytorchjob.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, PYTORCHJOB_LIST, object);
    tell_pytorch_pod(&bench, "worker", 1, "gb-1");
    tell_pytorch_pod(&bench, "worker", 0, "gb-3");
    tell_pytorch_pod(&bench, "master", 0, "gb-2");
    struct world_job job = describe(&bench, "pytorchjob");
    expect_wait(&job, "running", NULL);
    expect_nodes(&job, "gb-2 gb-2 gb-2 gb-2 gb-3 gb-3 gb-3 gb-3 gb-1 gb-1 gb-1 gb-1");
    bench_close(&bench);
}

TEST(a_pod_that_only_claims_to_belong_is_no_pod_of_the_job)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("pytorchjob.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, PYTORCHJOB_LIST, object);
    tell_pod(&bench,
             &(struct pod_words){.name = "intruder",
                                 .owner = "ReplicaSet",
                                 .owner_uid = "u-1",
                                 .labels = "\"training.kubeflow.org/job-name\":\"llm\","
                                           "\"training.kubeflow.org/replica-type\":\"master\","
                                           "\"training.kubeflow.org/replica-index\":\"0\"",
                                 .node = "gb-9",
                                 .gpus = 4});
    struct world_job job = describe(&bench, "pytorchjob");
    expect_nodes(&job, "- - - - - - - - - - - -");
    bench_close(&bench);
}

TEST(a_workflow_tells_its_retries_and_no_ranks)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("workflow.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, WORKFLOW_LIST, object);
    tell_pod(&bench, &(struct pod_words){.name = "llm-train-3",
                                         .owner = "Workflow",
                                         .owner_uid = "u-1",
                                         .labels = "\"workflows.argoproj.io/workflow\":\"llm\"",
                                         .node = "gb-1",
                                         .gpus = 4});
    struct world_job job = describe(&bench, "workflow");
    expect_wait(&job, "running", NULL);
    CU_ASSERT_EQUAL(job.restarts, 1);
    CU_ASSERT_EQUAL(job.restarts_max, 3);
    CU_ASSERT_PTR_NULL(job.rank_nodes);
    CU_ASSERT_PTR_NULL(job.restart_refusal);
    bench_close(&bench);
}

/* --- ComputeDomain --- */

static void tell_domain_pods(struct bench *bench)
{
    static const char *const NODES[] = {"gb-1", "gb-2", "gb-3"};
    for (int i = 0; i < 3; i++) {
        char labels[200], name[32];
        snprintf(name, sizeof name, "llm-%d", i);
        snprintf(labels, sizeof labels,
                 "\"batch.kubernetes.io/job-name\":\"llm\","
                 "\"batch.kubernetes.io/job-completion-index\":\"%d\"",
                 i);
        tell_pod(bench, &(struct pod_words){.name = name,
                                            .owner = "Job",
                                            .owner_uid = "u-1",
                                            .labels = labels,
                                            .node = NODES[i],
                                            .template = "llm-channel",
                                            .gpus = 4});
    }
}

TEST(a_job_waits_for_each_tray_of_its_compute_domain_whatever_the_domain_says_of_itself)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("job.json", NULL, NULL);
    AUTO_FREE char *half = recorded("computedomain.json", NULL, NULL);
    AUTO_FREE char *whole = recorded(
        "computedomain.json", "\"index\": 1, \"status\": \"NotReady\"}",
        "\"index\": 1, \"status\": \"Ready\"}, {\"name\": \"gb-3\", \"status\": \"Ready\"}");
    bench_open(&bench);
    fake_tell(&bench.client, JOB_LIST, object);
    fake_tell(&bench.client, DOMAIN_LIST, half);
    tell_domain_pods(&bench);
    struct world_job job = describe(&bench, "job");
    expect_wait(&job, "pending",
                "tray gb-2 to be ready in ComputeDomain default/llm-domain, and 1 more");
    fake_tell(&bench.client, DOMAIN_LIST, whole);
    job = describe(&bench, "job");
    expect_wait(&job, "running", NULL);
    fake_tell(&bench.client, DOMAIN_LIST, half);
    fake_gone(&bench.client, DOMAIN_LIST, "default", "llm-domain");
    job = describe(&bench, "job");
    expect_wait(&job, "running", NULL);
    bench_close(&bench);
}

TEST(a_domain_that_names_no_nodes_holds_nobody)
{
    struct bench bench;
    AUTO_FREE char *object = recorded("job.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, JOB_LIST, object);
    fake_tell(&bench.client, DOMAIN_LIST,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"d\"},\"spec\":{\"channel\":{"
              "\"resourceClaimTemplate\":{\"name\":\"llm-channel\"}}},\"status\":{\"status\":"
              "\"Ready\"}}");
    tell_domain_pods(&bench);
    struct world_job job = describe(&bench, "job");
    expect_wait(&job, "running", NULL);
    bench_close(&bench);
}

/* --- what is not known --- */

TEST(what_is_not_there_or_not_readable_is_unknown_and_says_why)
{
    struct bench bench;
    const char *reason = NULL;
    bench_open(&bench);
    struct world_job job = describe(&bench, "volcano");
    expect_wait(&job, "unknown", "Job default/llm to exist");
    CU_ASSERT_PTR_NOT_NULL(job.restart_refusal);
    job = describe(&bench, "slurm");
    expect_wait(&job, "unknown", "'slurm' is none that Kubernetes runs");
    fake_unsynced = VOLCANO_LIST;
    job = describe(&bench, "volcano");
    expect_wait(&job, "unknown", "cannot list: forbidden");
    CU_ASSERT_PTR_NULL(job.restart_refusal);
    CU_ASSERT(workloads_are_synced(bench.workloads, &reason));
    fake_unsynced = PODS_LIST;
    CU_ASSERT_FALSE(workloads_are_synced(bench.workloads, &reason));
    CU_ASSERT_STRING_EQUAL(reason, "cannot list: forbidden");
    bench_close(&bench);
}

/* --- pods of a node, uids, tolerations --- */

static void note_pod(void *context, const struct workload_pod *pod)
{
    text_addf(context, "%s/%s of '%s'%s%s%s;", pod->namespace_name, pod->name, pod->job_uid,
              pod->is_daemon ? " daemon" : "", pod->has_ended ? " ended" : "",
              pod->is_terminating ? " terminating" : "");
}

TEST(pods_of_a_node_are_told_in_order_of_name_with_what_owns_them)
{
    struct bench bench;
    AUTO_TEXT told = {0};
    bench_open(&bench);
    fake_tell(&bench.client, VOLCANO_LIST, VOLCANO_JOB("", "{\"state\":{\"phase\":\"Running\"}}"));
    tell_running(&bench);
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-2", "gb-2", "Failed", "2020-01-01T00:00:00Z");
    tell_pod(&bench, &(struct pod_words){
                         .name = "agent", .owner = "DaemonSet", .owner_uid = "d", .node = "gb-2"});
    workloads_pods_on(bench.workloads, "gb-2", note_pod, &told);
    CU_ASSERT_STRING_EQUAL(told.bytes, "default/agent of '' daemon;"
                                       "default/llm-worker-0 of 'u-1' ended terminating;");
    bench_close(&bench);
}

TEST(a_pod_of_a_jobset_that_a_trainjob_made_is_the_trainjobs)
{
    struct bench bench;
    AUTO_TEXT told = {0};
    AUTO_FREE char *train = recorded("trainjob.json", NULL, NULL);
    AUTO_FREE char *set = recorded("jobset.json", NULL, NULL);
    bench_open(&bench);
    fake_tell(&bench.client, TRAINJOB_LIST, train);
    fake_tell(&bench.client, JOBSET_LIST, set);
    tell_jobset_pod(&bench, "node", 0, 1, "gb-2", "Running");
    workloads_pods_on(bench.workloads, "gb-2", note_pod, &told);
    CU_ASSERT_STRING_EQUAL(told.bytes, "default/llm-node-0-1-x of 'u-train';");
    CU_ASSERT_STRING_EQUAL(
        workloads_uid(bench.workloads, "{\"kind\":\"trainjob\",\"name\":\"llm\"}"), "u-train");
    CU_ASSERT_STRING_EQUAL(workloads_uid(bench.workloads, "{\"kind\":\"job\",\"name\":\"llm\"}"),
                           "");
    bench_close(&bench);
}

TEST(only_a_job_whose_pods_bear_the_spares_taint_gets_a_spare)
{
    struct bench bench;
    const char *reason = "";
    static const char SET[] = "{\"kind\":\"jobset\",\"name\":\"llm\"}";
    static const char JOB[] = "{\"kind\":\"job\",\"name\":\"llm\"}";
    AUTO_FREE char *set = recorded("jobset.json", NULL, NULL);
    AUTO_FREE char *job = recorded("job.json", NULL, NULL);
    AUTO_FREE char *bears_all = recorded("job.json", ", \"effect\": \"NoExecute\"", "");
    bench_open(&bench);
    CU_ASSERT_FALSE(workloads_tolerate_spare(bench.workloads, SET, "default.llm", &reason));
    CU_ASSERT_STRING_EQUAL(reason, "the templates of its pods are not known");
    fake_tell(&bench.client, JOBSET_LIST, set);
    CU_ASSERT(workloads_tolerate_spare(bench.workloads, SET, "default.llm", &reason));
    CU_ASSERT_FALSE(workloads_tolerate_spare(bench.workloads, SET, "default.ll", &reason));
    fake_tell(&bench.client, JOB_LIST, job);
    CU_ASSERT_FALSE(workloads_tolerate_spare(bench.workloads, JOB, "default.llm", &reason));
    fake_tell(&bench.client, JOB_LIST, bears_all);
    CU_ASSERT(workloads_tolerate_spare(bench.workloads, JOB, "default.llm", &reason));
    bench_close(&bench);
}

/* --- the table of pods --- */

TEST(many_pods_come_and_go_and_each_is_found)
{
    struct bench bench;
    enum { PODS = 2000 };
    char name[32], label[96];
    bench_open(&bench);
    for (int i = 0; i < PODS; i++) {
        snprintf(name, sizeof name, "llm-worker-%05d", i);
        snprintf(label, sizeof label,
                 "\"volcano.sh/job-name\":\"llm\",\"volcano.sh/task-spec\":\"worker\","
                 "\"volcano.sh/task-index\":\"%d\"",
                 i);
        tell_pod(&bench, &(struct pod_words){.name = name,
                                             .uid = "2f7f5c1e-6f0b-4b8f-9d55-0e4e8b6f1c11",
                                             .owner = "Job",
                                             .owner_uid = "2f7f5c1e-6f0b-4b8f-9d55-0e4e8b6f1c12",
                                             .labels = label,
                                             .node = "gb300-r01-t05",
                                             .gpus = 4});
    }
    const struct pod_table *pods = &bench.workloads->pods;
    CU_ASSERT_EQUAL(pods->count, PODS);
    CU_ASSERT(pods->bytes / PODS <= 320);
    CU_ASSERT_PTR_NOT_NULL(pods_find(pods, "default", "llm-worker-01234"));
    for (int i = 0; i < PODS; i += 2) {
        snprintf(name, sizeof name, "llm-worker-%05d", i);
        fake_gone(&bench.client, PODS_LIST, "default", name);
    }
    CU_ASSERT_EQUAL(pods->count, PODS / 2);
    CU_ASSERT_PTR_NULL(pods_find(pods, "default", "llm-worker-01234"));
    CU_ASSERT_PTR_NOT_NULL(pods_find(pods, "default", "llm-worker-01235"));
    bench_close(&bench);
}

TESTS(T(a_volcano_job_tells_its_budget_with_absent_members_as_their_defaults),
      T(pods_of_a_gang_that_were_made_anew_alone_are_told_until_the_gang_is_of_one_start),
      T(the_retry_that_would_end_a_volcano_job_is_a_refusal),
      T(a_restart_that_hangs_names_the_pod_and_the_node_that_is_down),
      T(a_pod_that_may_still_end_in_its_grace_is_not_stuck),
      T(a_pod_that_finds_no_place_is_told_in_the_schedulers_words),
      T(a_container_that_does_not_stay_up_is_told_and_is_not_running),
      T(phases_of_volcano_have_their_word), T(pods_of_an_earlier_job_of_the_same_name_hold_no_rank),
      T(a_jobset_runs_when_its_pods_do_and_spends_no_restart),
      T(a_restart_of_ours_counts_as_one_more), T(a_suspended_job_says_by_whom),
      T(the_ranks_of_a_trainjob_are_those_of_its_jobset),
      T(only_the_trainers_of_a_trainjob_hold_ranks),
      T(an_indexed_job_counts_by_completion_index_and_not_by_pods_that_failed),
      T(the_master_of_a_pytorchjob_holds_the_first_ranks),
      T(a_pod_that_only_claims_to_belong_is_no_pod_of_the_job),
      T(a_workflow_tells_its_retries_and_no_ranks),
      T(a_job_waits_for_each_tray_of_its_compute_domain_whatever_the_domain_says_of_itself),
      T(a_domain_that_names_no_nodes_holds_nobody),
      T(what_is_not_there_or_not_readable_is_unknown_and_says_why),
      T(pods_of_a_node_are_told_in_order_of_name_with_what_owns_them),
      T(a_pod_of_a_jobset_that_a_trainjob_made_is_the_trainjobs),
      T(only_a_job_whose_pods_bear_the_spares_taint_gets_a_spare),
      T(many_pods_come_and_go_and_each_is_found))
