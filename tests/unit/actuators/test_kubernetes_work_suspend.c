#include "tests/unit/actuators/work_bench.h"

#define JOB_PATH  "/apis/batch/v1/namespaces/default/jobs/llm"
#define WORKLOAD  "{\"kind\":\"job\",\"namespace\":\"default\",\"name\":\"llm\"}"
#define OPERATION "INC-3/1/4/1"

/* The job at the server, and in the watch. */
static void set_job(struct bench *bench, bool suspended, bool seen, const char *notes,
                    const char *condition)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\","
              "\"resourceVersion\":\"71\",\"annotations\":{%s}},\"spec\":{\"suspend\":%s,"
              "\"completions\":2,\"backoffLimit\":4},\"status\":{\"failed\":1,\"conditions\":["
              "{\"type\":\"Suspended\",\"status\":\"%s\"}%s]}}",
              notes, suspended ? "true" : "false", seen ? "True" : "False", condition);
    fake_set(&bench->client, JOB_PATH, json.bytes);
}

static void tell_job_pod(struct bench *bench, const char *name, const char *node, const char *phase,
                         const char *deleted)
{
    tell_pod(bench, &(struct pod_words){.name = name,
                                        .owner = "Job",
                                        .owner_uid = "u-1",
                                        .labels = "\"batch.kubernetes.io/job-name\":\"llm\"",
                                        .node = node,
                                        .phase = phase,
                                        .deleted = deleted});
}

#define NOTE_BEGUN   "\"broomwagon.io/operation\":\"" OPERATION "\""
#define NOTE_RESUMED NOTE_BEGUN ",\"broomwagon.io/resumed\":\"" OPERATION "\""

/* A controller that ends all pods when it sees the suspension. */
static struct bench *acted_on;

static void controller_works(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    if (strstr(call->body, "\"suspend\":true") != NULL) {
        set_job(acted_on, true, true, NOTE_BEGUN, "");
        fake_gone(&acted_on->client, PODS_LIST, "default", "llm-0");
    } else if (strstr(call->body, "\"suspend\":false") != NULL) {
        set_job(acted_on, false, false, NOTE_RESUMED, "");
    }
}

static void controller_sleeps(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    if (strstr(call->body, "\"suspend\":true") != NULL)
        set_job(acted_on, true, false, NOTE_BEGUN, "");
    else
        set_job(acted_on, false, false, NOTE_RESUMED, "");
}

/* Resumed by somebody while we wait: at once, or when its pods have ended. */
static void somebody_resumes_at_once(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    (void)call;
    set_job(acted_on, false, true, NOTE_BEGUN, "");
}

static void somebody_resumes(struct kube_client *client, const struct fake_call *call)
{
    somebody_resumes_at_once(client, call);
    fake_gone(client, PODS_LIST, "default", "llm-0");
}

static void somebody_takes_over(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    (void)call;
    set_job(acted_on, true, true, "\"broomwagon.io/operation\":\"INC-9/1/4/1\"", "");
}

static void start_for(struct bench *bench, const char *params,
                      void (*controller)(struct kube_client *, const struct fake_call *))
{
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.params_json = params;
    acted_on = bench;
    bench->client.on_write = controller;
    run_start(bench, &action);
}

static void start_with(struct bench *bench,
                       void (*controller)(struct kube_client *, const struct fake_call *))
{
    start_for(bench, "{\"timeout_ns\":1200000000000}", controller);
}

/* It is to run out of time. */
static void start_in_vain(struct bench *bench,
                          void (*controller)(struct kube_client *, const struct fake_call *))
{
    start_for(bench, "{\"timeout_ns\":20000000000}", controller);
}

static void open_running(struct bench *bench)
{
    bench_open(bench);
    set_job(bench, false, false, "", "");
    tell_job_pod(bench, "llm-0", "gb-2", "Running", NULL);
}

TEST(a_restart_suspends_waits_for_the_pods_and_resumes)
{
    struct bench bench;
    open_running(&bench);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 2);
    const char *first = bench.client.calls[0].body, *second = bench.client.calls[1].body;
    CU_ASSERT_PTR_NOT_NULL(strstr(first, "\"resourceVersion\":\"71\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(first, NOTE_BEGUN));
    CU_ASSERT_PTR_NOT_NULL(strstr(first, "\"spec\":{\"suspend\":true}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "\"broomwagon.io/resumed\":\"" OPERATION "\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "\"broomwagon.io/restarts\":\"1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "\"spec\":{\"suspend\":false}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "1 pods have failed of the 4 that it may lose"));
    bench_close(&bench);
}

TEST(a_job_is_not_resumed_before_its_controller_has_seen_that_it_is_suspended)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, false, false, "", "");
    start_in_vain(&bench, controller_sleeps);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "waited for its controller to act"));
    CU_ASSERT_EQUAL(bench.client.call_count, 1);
    bench_close(&bench);
}

TEST(pods_that_do_not_end_are_named_and_the_restart_goes_on_when_they_are_gone)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_running(&bench);
    tell_job_pod(&bench, "llm-1", "gb-7", "Running", "2020-01-01T00:00:00Z");
    start_in_vain(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "1 pods to end, of them llm-1 on node gb-7"));
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_RUNNING);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "llm-1 on node gb-7"));
    fake_gone(&bench.client, PODS_LIST, "default", "llm-1");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 2); /* suspended once, resumed once */
    bench_close(&bench);
}

TEST(pods_that_were_kept_for_their_logs_do_not_hold_a_restart)
{
    struct bench bench;
    open_running(&bench);
    tell_job_pod(&bench, "llm-1", "gb-7", "Failed", NULL);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(what_somebody_else_suspended_is_never_resumed)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, true, true, "", "");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "suspended by somebody: not ours to resume"));
    set_job(&bench, true, true, "\"broomwagon.io/operation\":\"INC-1/1/4/1\"", "");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TEST(a_job_that_has_ended_is_not_restarted)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, false, false, "", ",{\"type\":\"Failed\",\"status\":\"True\"}");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "is Failed"));
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TEST(a_job_that_somebody_resumes_meanwhile_was_restarted_all_the_same)
{
    struct bench bench;
    open_running(&bench);
    start_with(&bench, somebody_resumes);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "resumed by somebody else"));
    CU_ASSERT_EQUAL(bench.client.call_count, 1);
    bench_close(&bench);
}

TEST(a_job_whose_pods_lived_through_somebodys_resume_was_not_restarted)
{
    struct bench bench;
    open_running(&bench);
    start_with(&bench, somebody_resumes_at_once);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "before its pods had ended"));
    bench_close(&bench);
}

TEST(another_operation_that_takes_the_job_over_ends_this_one)
{
    struct bench bench;
    open_running(&bench);
    start_with(&bench, somebody_takes_over);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 1);
    bench_close(&bench);
}

TEST(a_conflict_and_a_lost_answer_are_found_out_by_reading)
{
    struct bench bench;
    open_running(&bench);
    fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_CONFLICT, "modified");
    fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_UNKNOWN, "timed out"); /* was done */
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 3); /* conflict, suspend, resume */
    bench_close(&bench);
}

static void server_dies(struct kube_client *client, const struct fake_call *call)
{
    controller_works(client, call);
    if (strstr(call->body, "\"suspend\":true") != NULL)
        fake_answer_next(client, "GET", JOB_PATH, KUBE_UNREACHABLE, "connection refused");
}

TEST(a_suspension_whose_answer_was_lost_with_the_server_is_not_said_to_have_failed)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, false, false, "", "");
    tell_job_pod(&bench, "llm-0", "gb-2", "Running", NULL);
    fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_UNKNOWN, "timed out");
    start_with(&bench, server_dies);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "PATCH", JOB_PATH), 2); /* not left suspended */
    bench_close(&bench);
}

static void resume_is_denied(struct kube_client *client, const struct fake_call *call)
{
    controller_works(client, call);
    fake_answer_next(client, "PATCH", JOB_PATH, KUBE_DENIED, "quota says no");
}

TEST(a_job_that_cannot_be_resumed_is_said_to_be_left_suspended)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, false, false, "", "");
    tell_job_pod(&bench, "llm-0", "gb-2", "Running", NULL);
    start_with(&bench, resume_is_denied);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench.reason, "is suspended by this restart and cannot be resumed: quota says no"));
    bench_close(&bench);
}

TEST(a_job_that_changes_all_the_time_is_given_up)
{
    struct bench bench;
    open_running(&bench);
    for (int i = 0; i < 8; i++)
        fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_CONFLICT, "modified");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_EQUAL(bench.client.call_count, 6);
    bench_close(&bench);
}

TEST(poll_and_start_after_a_crash_find_where_it_was)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_running(&bench);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT); /* never begun */
    set_job(&bench, true, true, NOTE_BEGUN, "");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_RUNNING); /* its pod is there */
    fake_gone(&bench.client, PODS_LIST, "default", "llm-0");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT); /* start is to finish it */
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[0].body, "\"suspend\":false"));
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 1); /* done already */
    bench_close(&bench);
}

TEST(a_start_under_way_is_polled_as_running_and_not_begun_twice)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    open_running(&bench);
    acted_on = &bench;
    bench.client.on_write = controller_works;
    workloads_start(bench.workloads, &action, on_result, &bench);
    workloads_poll(bench.workloads, &action, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_RUNNING);
    while (bench.answers < 2)
        loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 2);
    bench_close(&bench);
}

TEST(an_actuator_that_only_reads_begins_nothing)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    struct workloads *readers;
    open_running(&bench);
    readers = workloads_new(&bench.client, bench.loop, NULL, true);
    workloads_start(readers, &action, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    workloads_free(readers);
    bench_close(&bench);
}

/* --- where each kind keeps its suspend --- */

static void expect_patch(const char *file, const char *kind, const char *path, const char *spec)
{
    struct bench bench;
    char workload[128];
    AUTO_FREE char *object = recorded(file, NULL, NULL);
    snprintf(workload, sizeof workload, "{\"kind\":\"%s\",\"name\":\"llm\"}", kind);
    struct action action = restart_action(OPERATION, workload);
    action.params_json = "{\"timeout_ns\":1000000000}";
    bench_open(&bench);
    fake_set(&bench.client, path, object);
    run_start(&bench, &action);
    CU_ASSERT(bench.client.call_count > 0);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[0].path, path);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[0].body, spec));
    bench_close(&bench);
}

TEST(each_kind_is_suspended_where_its_type_says)
{
    expect_patch("jobset.json", "jobset",
                 "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/llm",
                 "\"spec\":{\"suspend\":true}");
    expect_patch("pytorchjob.json", "pytorchjob",
                 "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/llm",
                 "\"spec\":{\"runPolicy\":{\"suspend\":true}}");
    expect_patch("trainjob.json", "trainjob",
                 "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs/llm",
                 "\"spec\":{\"suspend\":true}");
    expect_patch("job.json", "job", JOB_PATH, "\"spec\":{\"suspend\":true}");
}

/* --- checkpoints --- */

TEST(a_checkpoint_is_asked_by_an_annotation_of_our_own)
{
    struct bench bench;
    struct action action = restart_action("INC-3/1/2/1", WORKLOAD);
    action.verb = VERB_REQUEST_CHECKPOINT;
    open_running(&bench);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[0].body,
                           "{\"metadata\":{\"annotations\":{\"broomwagon.io/checkpoint-requested\":"
                           "\"INC-3/1/2/1\"}}}");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    set_job(&bench, false, false, "\"broomwagon.io/checkpoint-requested\":\"INC-3/1/2/1\"", "");
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_DONE);
    bench_close(&bench);
}

TEST(a_workload_that_kubernetes_does_not_run_is_refused_by_its_kind)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, "{\"kind\":\"slurm\",\"job_id\":4}");
    bench_open(&bench);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "'slurm'"));
    action.workload_json = NULL;
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    run_poll(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    bench_close(&bench);
}

TESTS(T(a_restart_suspends_waits_for_the_pods_and_resumes),
      T(a_job_is_not_resumed_before_its_controller_has_seen_that_it_is_suspended),
      T(pods_that_do_not_end_are_named_and_the_restart_goes_on_when_they_are_gone),
      T(pods_that_were_kept_for_their_logs_do_not_hold_a_restart),
      T(what_somebody_else_suspended_is_never_resumed), T(a_job_that_has_ended_is_not_restarted),
      T(a_job_that_somebody_resumes_meanwhile_was_restarted_all_the_same),
      T(a_job_whose_pods_lived_through_somebodys_resume_was_not_restarted),
      T(another_operation_that_takes_the_job_over_ends_this_one),
      T(a_conflict_and_a_lost_answer_are_found_out_by_reading),
      T(a_suspension_whose_answer_was_lost_with_the_server_is_not_said_to_have_failed),
      T(a_job_that_cannot_be_resumed_is_said_to_be_left_suspended),
      T(a_job_that_changes_all_the_time_is_given_up),
      T(poll_and_start_after_a_crash_find_where_it_was),
      T(a_start_under_way_is_polled_as_running_and_not_begun_twice),
      T(an_actuator_that_only_reads_begins_nothing), T(each_kind_is_suspended_where_its_type_says),
      T(a_checkpoint_is_asked_by_an_annotation_of_our_own),
      T(a_workload_that_kubernetes_does_not_run_is_refused_by_its_kind))
