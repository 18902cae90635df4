#include "tests/unit/actuators/work_bench.h"

#define JOB_PATH  "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/llm"
#define COMMANDS  "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
#define COMMAND   COMMANDS "/broom-inc-3-1-4-1"
#define WORKLOAD  "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\"}"
#define OPERATION "INC-3/1/4/1"

static const int64_t SECOND_NS = INT64_C(1000000000);
static struct bench *acted_on;

static struct action short_action(const char *timeout)
{
    struct action action = restart_action(OPERATION, WORKLOAD);
    action.params_json = timeout;
    return action;
}

/* The job at the server. state: of the mark of our operation, NULL: it carries none. */
static void set_job(struct bench *bench, const char *phase, int retries, const char *state)
{
    AUTO_TEXT json = {0};
    text_add(&json, "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"u-1\","
                    "\"resourceVersion\":\"71\",\"annotations\":{");
    if (state != NULL)
        text_addf(&json,
                  "\"broomwagon.io/operation\":\"" OPERATION
                  "\",\"broomwagon.io/operation-state\":\"{%s}\"",
                  state);
    text_addf(&json,
              "}},\"spec\":{\"maxRetry\":5,\"tasks\":[{\"name\":\"worker\",\"replicas\":2}]},"
              "\"status\":{\"state\":{\"phase\":\"%s\"},\"retryCount\":%d}}",
              phase, retries);
    fake_set(&bench->client, JOB_PATH, json.bytes);
}

/* As a start of ours left it: begun so long ago, and, where it is not 0, withdrawn so long ago. */
static void set_begun(struct bench *bench, const char *phase, int retries, int64_t begun_s,
                      int64_t withdrawn_s)
{
    AUTO_TEXT state = {0};
    text_add(&state, "\\\"retries\\\":0,\\\"issued\\\":1,\\\"at\\\":\\\"");
    text_add_time(&state, clock_now_ns() - begun_s * SECOND_NS);
    if (withdrawn_s != 0) {
        text_add(&state, "\\\",\\\"withdrawn\\\":\\\"");
        text_add_time(&state, clock_now_ns() - withdrawn_s * SECOND_NS);
    }
    text_add(&state, "\\\"");
    set_job(bench, phase, retries, state.bytes);
}

static void set_command(struct bench *bench, const char *target_uid)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"name\":\"broom-inc-3-1-4-1\",\"uid\":\"c-1\"},\"target\":{"
              "\"name\":\"llm\",\"uid\":\"%s\"}}",
              target_uid);
    fake_set(&bench->client, COMMAND, json.bytes);
}

static bool is_there(struct bench *bench)
{
    return fake_find(&bench->client, COMMAND) != NULL;
}

/* --- nobody takes it --- */

TEST(a_command_that_nobody_takes_is_withdrawn_before_the_time_is_over)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":40000000000}");
    bench_open_at(&bench, 20);
    set_job(&bench, "Running", 0, NULL);
    run_start(&bench, &action);
    int64_t took_ns = clock_now_ns() - bench.began_ns;
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "the job controller took no Command within 3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "(is it up?): withdrawn"));
    CU_ASSERT(took_ns >= 30 * SECOND_NS);
    CU_ASSERT_FALSE(is_there(&bench));
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 1);
    CU_ASSERT_EQUAL(count_writes(&bench, "DELETE", COMMAND), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(body_of(&bench, "DELETE", COMMAND, 0), "{\"uid\":\"made\"}"));
    bench_close(&bench);
}

TEST(that_it_is_withdrawn_is_on_the_job_before_it_is_deleted)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":20000000000}");
    bench_open_at(&bench, 20);
    set_job(&bench, "Running", 0, NULL);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL_FATAL(bench.client.call_count, 4); /* mark, Command, mark, deletion */
    CU_ASSERT_PTR_NULL(strstr(bench.client.calls[0].body, "withdrawn"));
    CU_ASSERT_STRING_EQUAL(bench.client.calls[2].method, "PATCH");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[2].body, "\\\"withdrawn\\\":"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.client.calls[2].body, "\"resourceVersion\":\"71\""));
    CU_ASSERT_STRING_EQUAL(bench.client.calls[3].method, "DELETE");
    bench_close(&bench);
}

static void on_poll(void *context, const struct action_result *result)
{
    char *said = context;
    CU_ASSERT_EQUAL(result->poll, POLL_RUNNING);
    text_copy(said, 400, result->reason);
}

static void poll_now(void *context)
{
    static char said[400];
    struct action action = short_action(NULL);
    if (context != NULL) {
        workloads_poll(acted_on->workloads, &action, on_poll, said);
    } else {
        CU_ASSERT_PTR_NOT_NULL(strstr(said, "which lies untouched (is it up?)"));
    }
}

TEST(while_it_lies_untouched_that_is_what_is_waited_for)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 20);
    acted_on = &bench;
    set_job(&bench, "Running", 0, NULL);
    struct loop_timer *timer = loop_timer_new(bench.loop, poll_now, &bench);
    loop_timer_set(timer, 35 * SECOND_NS / 20);
    run_start(&bench, &action);
    poll_now(NULL);
    loop_timer_free(timer);
    bench_close(&bench);
}

static void taken_at_the_last_moment(struct kube_client *client, const struct fake_call *call)
{
    if (strcmp(call->method, "PATCH") != 0 || strstr(call->body, "withdrawn") == NULL)
        return;
    fake_remove(client, COMMAND);
    set_begun(acted_on, "Restarting", 1, 30, 0);
}

TEST(a_command_that_is_taken_at_the_last_moment_is_followed)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":40000000000}");
    bench_open_at(&bench, 10);
    acted_on = &bench;
    bench.client.on_write = taken_at_the_last_moment;
    set_job(&bench, "Running", 0, NULL);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(count_writes(&bench, "DELETE", COMMAND), 1);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

static void expect_deletion(enum kube_result result, enum outcome outcome, size_t deletions)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":20000000000}");
    bench_open_at(&bench, 10);
    set_job(&bench, "Running", 0, NULL);
    fake_answer_next(&bench.client, "DELETE", COMMAND, result, "what the server says");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, outcome);
    CU_ASSERT_EQUAL(count_writes(&bench, "DELETE", COMMAND), deletions);
    if (outcome == OUTCOME_UNKNOWN)
        CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "cannot be withdrawn: what the server says"));
    bench_close(&bench);
}

TEST(a_deletion_that_was_not_done_is_tried_again_and_one_that_may_not_be_is_told)
{
    expect_deletion(KUBE_BUSY, OUTCOME_TRANSIENT, 2);
    expect_deletion(KUBE_UNREACHABLE, OUTCOME_TRANSIENT, 2);
    expect_deletion(KUBE_UNKNOWN, OUTCOME_TRANSIENT, 2);
    expect_deletion(KUBE_DENIED, OUTCOME_UNKNOWN, 1);
    expect_deletion(KUBE_CONFLICT, OUTCOME_UNKNOWN, 1); /* another Command of that name */
}

TEST(a_command_for_another_job_is_never_deleted)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":20000000000}");
    bench_open_at(&bench, 20);
    set_begun(&bench, "Running", 0, 60, 0);
    set_command(&bench, "u-9");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    CU_ASSERT_TRUE(is_there(&bench));
    bench_close(&bench);
}

TEST(a_name_that_somebody_wrote_into_our_mark_is_not_deleted)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":20000000000}");
    bench_open_at(&bench, 20);
    set_job(&bench, "Running", 0,
            "\\\"command\\\":\\\"resume-llm\\\",\\\"at\\\":\\\"2020-01-01T00:00:00Z\\\"");
    fake_set(&bench.client, COMMANDS "/resume-llm",
             "{\"metadata\":{\"uid\":\"c-9\"},\"target\":{\"name\":\"llm\",\"uid\":\"u-1\"}}");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

/* --- nobody follows it --- */

static void expect_poll(struct bench *bench, enum poll_state poll)
{
    struct action action = short_action(NULL);
    size_t writes = bench->client.call_count;
    run_poll(bench, &action);
    CU_ASSERT_EQUAL(bench->result.poll, poll);
    CU_ASSERT_EQUAL(bench->client.call_count, writes);
}

TEST(a_command_that_lies_untouched_and_that_nobody_follows_is_to_be_started_again)
{
    struct bench bench;
    bench_open_at(&bench, 10);
    set_command(&bench, "u-1");
    set_begun(&bench, "Running", 0, 2, 0);
    expect_poll(&bench, POLL_RUNNING);
    set_begun(&bench, "Running", 0, 21, 0);
    expect_poll(&bench, POLL_ABSENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "lies untouched"));
    bench_close(&bench);
}

TEST(started_again_it_issues_nothing_and_withdraws_when_its_first_time_is_over)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 20);
    set_command(&bench, "u-1");
    set_begun(&bench, "Running", 0, 30, 0);
    run_start(&bench, &action);
    int64_t took_ns = clock_now_ns() - bench.began_ns;
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT(took_ns >= 19 * SECOND_NS && took_ns < 50 * SECOND_NS);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(body_of(&bench, "DELETE", COMMAND, 0), "{\"uid\":\"c-1\"}"));
    CU_ASSERT_FALSE(is_there(&bench));
    bench_close(&bench);
}

static void take_it(void *context)
{
    struct bench *bench = context;
    fake_remove(&bench->client, COMMAND);
}

static void carry_it_out(void *context)
{
    set_begun(context, "Restarting", 1, 60, 0);
}

TEST(a_command_that_was_taken_late_gets_the_time_that_one_taken_at_once_gets)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":600000000000}");
    bench_open_at(&bench, 10);
    set_command(&bench, "u-1");
    set_begun(&bench, "Running", 0, 60, 0);
    struct loop_timer *takes = loop_timer_new(bench.loop, take_it, &bench);
    struct loop_timer *acts = loop_timer_new(bench.loop, carry_it_out, &bench);
    loop_timer_set(takes, SECOND_NS / 2); /* 5 s */
    loop_timer_set(acts, SECOND_NS);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 0);
    loop_timer_free(takes);
    loop_timer_free(acts);
    bench_close(&bench);
}

TEST(a_withdrawal_whose_end_was_not_written_down_is_found_out)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 10);
    set_begun(&bench, "Running", 0, 60, 2);
    expect_poll(&bench, POLL_RUNNING); /* it may have been taken in that moment */
    set_begun(&bench, "Running", 0, 60, 16);
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    set_begun(&bench, "Running", 1, 60, 16);
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    set_begun(&bench, "Running", 0, 60, 16);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    set_command(&bench, "u-1");
    expect_poll(&bench, POLL_ABSENT);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_FALSE(is_there(&bench));
    CU_ASSERT_EQUAL(count_writes(&bench, "POST", COMMANDS), 0);
    bench_close(&bench);
}

TEST(a_command_that_was_taken_without_effect_is_not_issued_again_when_there_is_no_time)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 10);
    set_begun(&bench, "Running", 0, 55, 0);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "there is no time for another"));
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    bench_close(&bench);
}

/* --- nobody needs it --- */

static void restarts_by_itself(struct kube_client *client, const struct fake_call *call)
{
    (void)client;
    if (strcmp(call->method, "POST") == 0)
        set_begun(acted_on, "Restarting", 1, 0, 0);
}

TEST(a_job_that_restarts_without_our_command_is_not_restarted_a_second_time_by_it)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 10);
    acted_on = &bench;
    bench.client.on_write = restarts_by_itself;
    set_job(&bench, "Running", 0, NULL);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "our Command was not needed and is withdrawn"));
    CU_ASSERT_FALSE(is_there(&bench));
    set_command(&bench, "u-1"); /* a crash before that */
    expect_poll(&bench, POLL_ABSENT);
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(is_there(&bench));
    expect_poll(&bench, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(a_command_that_is_in_the_way_and_cannot_be_withdrawn_is_told)
{
    struct bench bench;
    struct action action = short_action("{\"timeout_ns\":60000000000}");
    bench_open_at(&bench, 10);
    set_begun(&bench, "Restarting", 1, 5, 0);
    set_command(&bench, "u-1");
    fake_answer_next(&bench.client, "DELETE", COMMAND, KUBE_DENIED, "may not delete commands");
    run_start(&bench, &action);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "restarts it once more when it is taken"));
    bench_close(&bench);
}

TESTS(T(a_command_that_nobody_takes_is_withdrawn_before_the_time_is_over),
      T(that_it_is_withdrawn_is_on_the_job_before_it_is_deleted),
      T(while_it_lies_untouched_that_is_what_is_waited_for),
      T(a_command_that_is_taken_at_the_last_moment_is_followed),
      T(a_deletion_that_was_not_done_is_tried_again_and_one_that_may_not_be_is_told),
      T(a_command_for_another_job_is_never_deleted),
      T(a_name_that_somebody_wrote_into_our_mark_is_not_deleted),
      T(a_command_that_lies_untouched_and_that_nobody_follows_is_to_be_started_again),
      T(started_again_it_issues_nothing_and_withdraws_when_its_first_time_is_over),
      T(a_command_that_was_taken_late_gets_the_time_that_one_taken_at_once_gets),
      T(a_withdrawal_whose_end_was_not_written_down_is_found_out),
      T(a_command_that_was_taken_without_effect_is_not_issued_again_when_there_is_no_time),
      T(a_job_that_restarts_without_our_command_is_not_restarted_a_second_time_by_it),
      T(a_command_that_is_in_the_way_and_cannot_be_withdrawn_is_told))
