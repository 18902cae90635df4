#include "remediation/actuators/kubernetes_volcano.h"
#include "tests/unit/actuators/work_bench.h"

#include <inttypes.h>

#define JOB_PATH  "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/llm"
#define COMMANDS  "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
#define COMMAND   COMMANDS "/broom-inc-3-1-4-1"
#define WORKLOAD  "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\"}"
#define OPERATION "INC-3/1/4/1"
#define LYING     "{\"metadata\":{\"uid\":\"c-1\"},\"target\":{\"name\":\"llm\",\"uid\":\"u-1\"}}"

/* The job at the server; annotations: "" or members to add. retries < 0: absent. */
static void set_job(struct bench *bench, const char *uid, const char *phase, int retries,
                    const char *notes)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"%s\","
              "\"resourceVersion\":\"71\",\"annotations\":{%s}},\"spec\":{\"maxRetry\":5,"
              "\"minAvailable\":2,\"tasks\":[{\"name\":\"worker\",\"replicas\":2,\"template\":{"
              "\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}]"
              "}}}]},\"status\":{\"state\":{\"phase\":\"%s\"},\"version\":7",
              uid, notes, phase);
    if (retries >= 0)
        text_addf(&json, ",\"retryCount\":%d", retries);
    text_add(&json, "}}");
    fake_set(&bench->client, JOB_PATH, json.bytes);
}

/* What the API server keeps of our patch. */
static void keep_notes(struct bench *bench, const char *phase, int retries, int issued,
                       int64_t at_ns)
{
    AUTO_TEXT notes = {0};
    AUTO_TEXT at = {0};
    text_add_time(&at, at_ns);
    text_addf(&notes,
              "\"broomwagon.io/operation\":\"" OPERATION "\",\"broomwagon.io/operation-state\":"
              "\"{\\\"retries\\\":0,\\\"issued\\\":%d,\\\"at\\\":\\\"%s\\\"}\"",
              issued, at.bytes);
    set_job(bench, "u-1", phase, retries, notes.bytes);
}

/* --- controllers of several tempers --- */

static struct bench *acted_on;

static void controller_works(struct kube_client *client, const struct fake_call *call)
{
    if (strcmp(call->method, "POST") != 0)
        return;
    fake_remove(client, COMMAND);
    keep_notes(acted_on, "Restarting", 1, 1, clock_now_ns());
}

static void controller_loses_the_first(struct kube_client *client, const struct fake_call *call)
{
    if (strcmp(call->method, "POST") != 0)
        return;
    fake_remove(client, COMMAND);
    fake_remove(client, COMMAND "-2");
    if (strstr(call->body, "inc-3-1-4-1-2\"") != NULL)
        keep_notes(acted_on, "Pending", 1, 2, clock_now_ns());
}

static void controller_loses_all(struct kube_client *client, const struct fake_call *call)
{
    (void)call;
    fake_remove(client, COMMAND);
    fake_remove(client, COMMAND "-2");
}

static void start_with(struct bench *bench,
                       void (*controller)(struct kube_client *, const struct fake_call *))
{
    struct action action = restart_action(OPERATION, WORKLOAD);
    acted_on = bench;
    bench->client.on_write = controller;
    run_start(bench, &action);
}

/* --- the good way --- */

TEST(a_restart_is_one_command_by_a_name_made_of_the_operation)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", -1, "");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    const char *body = body_of(&bench, "POST", COMMANDS, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"name\":\"broom-inc-3-1-4-1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"action\":\"RestartJob\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"target\":{\"apiVersion\":\"batch.volcano.sh/v1alpha1\","
                                        "\"kind\":\"Job\",\"name\":\"llm\",\"uid\":\"u-1\""));
    bench_close(&bench);
}

TEST(the_state_before_is_on_the_job_before_the_command_is_posted)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 2, "");
    start_with(&bench, controller_works);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[0].method, "PATCH");
    const char *patch = bench.client.calls[0].body;
    CU_ASSERT_PTR_NOT_NULL(strstr(patch, "\"resourceVersion\":\"71\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(patch, "\"broomwagon.io/operation\":\"" OPERATION "\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(patch, "\\\"retries\\\":2"));
    CU_ASSERT_STRING_EQUAL(bench.client.calls[1].method, "POST");
    bench_close(&bench);
}

static void stop(void *context)
{
    loop_stop(context);
}

TEST(new_pods_tell_of_a_restart_where_the_count_does_not)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    bench_open_at(&bench, 10);
    set_job(&bench, "u-1", "Running", 0, "");
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-1", "gb-2", "Running", NULL);
    bench.client.on_write = controller_loses_all;
    workloads_start(bench.workloads, &action, on_result, &bench);
    fake_gone(&bench.client, PODS_LIST, "default", "llm-worker-0");
    /* the new pod is seen only after the Command was posted */
    while (count_writes(&bench, "POST", COMMANDS) == 0) {
        struct loop_timer *timer = loop_timer_new(bench.loop, stop, bench.loop);
        loop_timer_set(timer, 1000000);
        loop_run(bench.loop);
        loop_timer_free(timer);
    }
    tell_volcano_pod(&bench, "u-1", "worker", 0, "p-2", "gb-9", "Pending", NULL);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    bench_close(&bench);
}

/* --- what the state before forbids --- */

static void expect_refused(const char *phase, int retries, enum outcome outcome, const char *words)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", phase, retries, "");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, outcome);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, words));
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

TEST(a_job_that_has_ended_is_not_restarted)
{
    expect_refused("Failed", 3, OUTCOME_REFUSED, "Job default/llm is Failed");
    expect_refused("Completed", 0, OUTCOME_REFUSED, "is Completed");
    expect_refused("Aborted", 0, OUTCOME_REFUSED, "is Aborted");
    expect_refused("Terminating", 0, OUTCOME_REFUSED, "is Terminating");
}

TEST(a_retry_that_would_end_the_job_is_refused)
{
    expect_refused("Running", 4, OUTCOME_REFUSED, "4 of its 5 retries are used");
}

TEST(a_job_that_restarts_by_its_own_policy_gets_no_second_retry)
{
    expect_refused("Restarting", 1, OUTCOME_SUPERSEDED, "restarting already");
}

TEST(a_job_of_the_same_name_with_another_uid_is_left_alone)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-2", "Running", 0, "");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

static void somebody_makes_it_anew(struct kube_client *client, const struct fake_call *call)
{
    if (strcmp(call->method, "POST") != 0)
        return;
    fake_remove(client, COMMAND);
    set_job(acted_on, "u-2", "Running", 0, "");
}

TEST(a_job_that_is_made_anew_meanwhile_is_not_restarted_in_its_place)
{
    struct bench bench;
    struct action action = restart_action(
        OPERATION, "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\"}");
    bench_open(&bench);
    acted_on = &bench;
    bench.client.on_write = somebody_makes_it_anew;
    set_job(&bench, "u-1", "Running", 0, "");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    bench_close(&bench);
}

TEST(a_job_that_is_not_there_is_refused_by_name)
{
    struct bench bench;
    bench_open(&bench);
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "Job default/llm is not there"));
    bench_close(&bench);
}

/* --- lost answers --- */

TEST(a_job_that_was_changed_meanwhile_is_read_and_decided_again)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_CONFLICT, "the object was modified");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "PATCH", JOB_PATH), 2);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    bench_close(&bench);
}

TEST(a_command_whose_answer_was_lost_is_followed_and_not_posted_again)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    fake_answer_next(&bench.client, "POST", COMMANDS, KUBE_UNKNOWN, "timed out");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    bench_close(&bench);
}

TEST(a_command_that_is_there_already_is_ours_from_before)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    fake_answer_next(&bench.client, "POST", COMMANDS, KUBE_EXISTS, "already exists");
    fake_set(&bench.client, COMMAND, LYING);
    start_with(&bench, NULL);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT); /* nobody takes it: withdrawn */
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    bench_close(&bench);
}

TEST(a_server_that_was_not_reached_did_nothing)
{
    struct bench bench;
    bench_open(&bench);
    fake_answer_next(&bench.client, "GET", JOB_PATH, KUBE_UNREACHABLE, "connection refused");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    bench_close(&bench);
}

TEST(a_missing_permission_is_refused_with_its_words)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    fake_answer_next(&bench.client, "PATCH", JOB_PATH, KUBE_DENIED, "may not patch jobs");
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_STRING_EQUAL(bench.reason, "may not patch jobs");
    bench_close(&bench);
}

/* --- a controller that is away, or forgets --- */

TEST(a_command_that_was_taken_without_effect_is_issued_once_more)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    start_with(&bench, controller_loses_the_first);
    int64_t took_ns = clock_now_ns() - bench.began_ns;
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 2);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(body_of(&bench, "POST", COMMANDS, 1), "\"name\":\"broom-inc-3-1-4-1-2\""));
    CU_ASSERT(took_ns >= INT64_C(15000000000));
    bench_close(&bench);
}

TEST(two_commands_without_effect_are_refused_and_said)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    start_with(&bench, controller_loses_all);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "took 2 Commands and did nothing"));
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 2);
    bench_close(&bench);
}

TEST(a_job_that_fails_meanwhile_is_told)
{
    struct bench bench;
    struct action action = restart_action(OPERATION, WORKLOAD);
    bench_open(&bench);
    keep_notes(&bench, "Failed", 1, 1, clock_now_ns());
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "has become Failed"));
    bench_close(&bench);
}

/* --- after a crash of broomd --- */

static void expect_poll(struct bench *bench, enum poll_state poll)
{
    struct action action = restart_action(OPERATION, WORKLOAD);
    size_t writes = bench->client.call_count;
    run_poll(bench, &action);
    CU_ASSERT_EQUAL(bench->result.poll, poll);
    CU_ASSERT_EQUAL(bench->client.call_count, writes);
}

TEST(poll_only_reads_and_knows_each_state)
{
    struct bench bench;
    bench_open(&bench);
    set_job(&bench, "u-1", "Running", 0, "");
    expect_poll(&bench, POLL_ABSENT); /* no mark: never begun */
    keep_notes(&bench, "Running", 0, 1, clock_now_ns() + INT64_C(600000000000));
    fake_set(&bench.client, COMMAND, "{}");
    expect_poll(&bench, POLL_RUNNING); /* not taken yet */
    fake_remove(&bench.client, COMMAND);
    expect_poll(&bench, POLL_RUNNING); /* taken a moment ago */
    keep_notes(&bench, "Running", 0, 1, clock_now_ns() - INT64_C(16000000000));
    expect_poll(&bench, POLL_ABSENT); /* taken without effect, or never posted */
    keep_notes(&bench, "Restarting", 1, 1, clock_now_ns());
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    keep_notes(&bench, "Running", 1, 1, clock_now_ns());
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    fake_answer_next(&bench.client, "GET", JOB_PATH, KUBE_UNKNOWN, "timed out");
    expect_poll(&bench, POLL_UNREACHABLE);
    fake_remove(&bench.client, JOB_PATH);
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    bench_close(&bench);
}

TEST(a_start_after_a_crash_goes_on_where_it_was)
{
    struct bench bench;
    bench_open(&bench);
    keep_notes(&bench, "Pending", 1, 1, clock_now_ns());
    start_with(&bench, controller_works);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.call_count, 0); /* it had restarted already */
    keep_notes(&bench, "Running", 0, 1, clock_now_ns() - INT64_C(60000000000));
    start_with(&bench, controller_loses_the_first);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(body_of(&bench, "POST", COMMANDS, 0), "\"name\":\"broom-inc-3-1-4-1-2\""));
    bench_close(&bench);
}

TEST(a_command_that_an_earlier_operation_left_does_for_this_one)
{
    struct bench bench;
    struct action action = restart_action("INC-3/1/4/2", WORKLOAD);
    bench_open(&bench);
    acted_on = &bench;
    keep_notes(&bench, "Running", 0, 1, clock_now_ns() - INT64_C(600000000000));
    fake_set(&bench.client, COMMAND, LYING);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT); /* nobody takes it: withdrawn */
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(body_of(&bench, "PATCH", JOB_PATH, 0), "\\\"command\\\":\\\"broom-inc-3-1-4-1\\\""));
    bench_close(&bench);
}

TEST(a_command_of_an_earlier_operation_that_is_gone_is_followed_by_one_of_our_own)
{
    struct bench bench;
    struct action action = restart_action("INC-3/1/4/2", WORKLOAD);
    bench_open(&bench);
    acted_on = &bench;
    keep_notes(&bench, "Running", 0, 1, clock_now_ns() - INT64_C(600000000000));
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(body_of(&bench, "POST", COMMANDS, 0), "\"name\":\"broom-inc-3-1-4-2\""));
    bench_close(&bench);
}

TEST(a_policy_that_ends_the_job_for_a_lost_pod_is_told)
{
    struct bench bench;
    bench_open(&bench);
    fake_set(&bench.client, JOB_PATH,
             "{\"metadata\":{\"name\":\"llm\",\"namespace\":\"default\",\"uid\":\"u-1\","
             "\"annotations\":{\"broomwagon.io/operation\":\"" OPERATION "\"}},\"spec\":{"
             "\"policies\":[{\"event\":\"PodEvicted\",\"action\":\"RestartTask\"},{\"events\":["
             "\"TaskCompleted\",\"PodFailed\"],\"action\":\"TerminateJob\"}]},\"status\":{"
             "\"state\":{\"phase\":\"Restarting\"},\"retryCount\":1}}");
    start_with(&bench, NULL);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(bench.reason, "by its policy TerminateJob it ends when a pod is lost"));
    bench_close(&bench);
}

TEST(names_of_commands_are_names_of_objects)
{
    char name[VOLCANO_NAME_BYTES];
    volcano_command_name("INC-12/2/5/3", 1, name);
    CU_ASSERT_STRING_EQUAL(name, "broom-inc-12-2-5-3");
    volcano_command_name("INC-12/2/5/3", 2, name);
    CU_ASSERT_STRING_EQUAL(name, "broom-inc-12-2-5-3-2");
}

TESTS(T(a_restart_is_one_command_by_a_name_made_of_the_operation),
      T(the_state_before_is_on_the_job_before_the_command_is_posted),
      T(new_pods_tell_of_a_restart_where_the_count_does_not),
      T(a_job_that_has_ended_is_not_restarted), T(a_retry_that_would_end_the_job_is_refused),
      T(a_job_that_restarts_by_its_own_policy_gets_no_second_retry),
      T(a_job_of_the_same_name_with_another_uid_is_left_alone),
      T(a_job_that_is_made_anew_meanwhile_is_not_restarted_in_its_place),
      T(a_job_that_is_not_there_is_refused_by_name),
      T(a_job_that_was_changed_meanwhile_is_read_and_decided_again),
      T(a_command_whose_answer_was_lost_is_followed_and_not_posted_again),
      T(a_command_that_is_there_already_is_ours_from_before),
      T(a_server_that_was_not_reached_did_nothing),
      T(a_missing_permission_is_refused_with_its_words),
      T(a_command_that_was_taken_without_effect_is_issued_once_more),
      T(two_commands_without_effect_are_refused_and_said), T(a_job_that_fails_meanwhile_is_told),
      T(poll_only_reads_and_knows_each_state), T(a_start_after_a_crash_goes_on_where_it_was),
      T(a_command_that_an_earlier_operation_left_does_for_this_one),
      T(a_command_of_an_earlier_operation_that_is_gone_is_followed_by_one_of_our_own),
      T(a_policy_that_ends_the_job_for_a_lost_pod_is_told),
      T(names_of_commands_are_names_of_objects))
