/* From a durable intent to the actuator and back: each answered exactly once. */
#include "controller/actions.h"

#include "tests/harness/test.h"

#include <string.h>

enum { CALLS_MAX = 8 };

struct bench {
    struct actions *actions;
    struct captures *captures;
    struct actuator actuator;
    struct {
        action_done_fn *done;
        void *context;
    } calls[CALLS_MAX];
    int started, polled, calls_made;
    int notified;
    int answered;
    char operation_id[OPERATION_ID_BYTES];
    enum outcome outcome;
    enum poll_state poll;
    enum effect_kind asked;
};

static void keep_call(struct bench *bench, action_done_fn *done, void *context)
{
    CU_ASSERT_FATAL(bench->calls_made < CALLS_MAX);
    bench->calls[bench->calls_made].done = done;
    bench->calls[bench->calls_made++].context = context;
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct bench *bench = self;
    (void)action;
    bench->started++;
    keep_call(bench, done, context);
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct bench *bench = self;
    (void)action;
    bench->polled++;
    keep_call(bench, done, context);
}

static void notify(void *self, const char *incident_ref, const char *params_json)
{
    struct bench *bench = self;
    CU_ASSERT_STRING_EQUAL(incident_ref, "INC-1");
    CU_ASSERT_STRING_EQUAL(params_json, "{\"text\":\"look\"}");
    bench->notified++;
}

static void on_outcome(void *context, const char *operation_id, enum effect_kind asked,
                       const struct action_result *result)
{
    struct bench *bench = context;
    bench->asked = asked;
    bench->answered++;
    text_copy(bench->operation_id, sizeof bench->operation_id, operation_id);
    bench->outcome = result->outcome;
    bench->poll = result->poll;
    CU_ASSERT_PTR_NOT_NULL(result->reason);
}

static void open_bench(struct bench *bench, bool with_actuator)
{
    *bench = (struct bench){.captures = captures_new()};
    bench->actuator = (struct actuator){
        .name = "fake", .start = start, .poll = poll, .self = bench};
    struct pipeline_ports ports = {
        .self = bench, .notify = notify, .actuator = with_actuator ? &bench->actuator : NULL};
    bench->actions = actions_new(&ports, bench->captures, on_outcome, bench);
}

static void close_bench(struct bench *bench)
{
    actions_free(bench->actions);
    captures_free(bench->captures);
}

static void run(struct bench *bench, enum effect_kind kind, enum verb verb,
                const char *operation_id, bool may_start)
{
    struct effect effect = {.kind = kind,
                            .action = {.verb = verb,
                                       .incident_ref = "INC-1",
                                       .job = "team/a",
                                       .params_json = "{\"text\":\"look\"}"}};
    text_copy(effect.action.operation_id, sizeof effect.action.operation_id, operation_id);
    actions_run(bench->actions, &effect, may_start, 1000);
}

static void answer(struct bench *bench, int call, enum outcome outcome)
{
    bench->calls[call].done(
        bench->calls[call].context,
        &(struct action_result){.outcome = outcome, .poll = POLL_DONE, .reason = "so"});
}

TEST(a_start_goes_to_the_actuator_and_its_answer_comes_back_once)
{
    struct bench bench;
    open_bench(&bench, true);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-1/0/2/1", true);
    CU_ASSERT_EQUAL(bench.started, 1);
    CU_ASSERT_EQUAL(bench.answered, 0);
    answer(&bench, 0, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.answered, 1);
    CU_ASSERT_STRING_EQUAL(bench.operation_id, "INC-1/0/2/1");
    CU_ASSERT_EQUAL(bench.outcome, OUTCOME_SUCCEEDED);
    close_bench(&bench);
}

TEST(an_intent_that_was_taken_back_is_cancelled_without_a_start)
{
    struct bench bench;
    open_bench(&bench, true);
    static const enum verb verbs[] = {VERB_CORDON, VERB_RESTART_JOB, VERB_NOTIFY, VERB_CAPTURE};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        run(&bench, EFFECT_START, verbs[i], "INC-1/0/2/1", false);
        CU_ASSERT_EQUAL(bench.answered, (int)i + 1);
        CU_ASSERT_EQUAL(bench.outcome, OUTCOME_CANCELLED);
    }
    CU_ASSERT_EQUAL(bench.started, 0);
    CU_ASSERT_EQUAL(bench.notified, 0);
    close_bench(&bench);
}

TEST(a_poll_reads_the_cluster_also_when_nothing_may_start)
{
    struct bench bench;
    open_bench(&bench, true);
    run(&bench, EFFECT_POLL, VERB_RESTART_JOB, "INC-1/0/3/1", false);
    CU_ASSERT_EQUAL(bench.polled, 1);
    CU_ASSERT_EQUAL(bench.started, 0);
    answer(&bench, 0, OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(bench.answered, 1);
    close_bench(&bench);
}

TEST(without_an_actuator_every_action_on_the_cluster_is_refused)
{
    struct bench bench;
    open_bench(&bench, false);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-1/0/2/1", true);
    CU_ASSERT_EQUAL(bench.answered, 1);
    CU_ASSERT_EQUAL(bench.outcome, OUTCOME_REFUSED);
    close_bench(&bench);
}

TEST(a_notice_is_given_here_and_now)
{
    struct bench bench;
    open_bench(&bench, false);
    run(&bench, EFFECT_START, VERB_NOTIFY, "INC-1/0/0/1", true);
    CU_ASSERT_EQUAL(bench.notified, 1);
    CU_ASSERT_EQUAL(bench.answered, 1);
    CU_ASSERT_EQUAL(bench.outcome, OUTCOME_SUCCEEDED);
    close_bench(&bench);
}

TEST(a_capture_is_planned_and_answered_at_once)
{
    struct bench bench;
    open_bench(&bench, false);
    run(&bench, EFFECT_START, VERB_CAPTURE, "INC-1/0/1/1", true);
    CU_ASSERT_EQUAL(bench.answered, 1);
    CU_ASSERT_EQUAL(bench.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.poll, POLL_DONE);
    close_bench(&bench);
}

TEST(answers_may_come_in_any_order_and_each_finds_its_action)
{
    struct bench bench;
    open_bench(&bench, true);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-1/0/2/1", true);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-2/0/2/1", true);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-3/0/2/1", true);
    run(&bench, EFFECT_POLL, VERB_CORDON, "INC-3/0/2/1", true);
    answer(&bench, 1, OUTCOME_REFUSED);
    CU_ASSERT_STRING_EQUAL(bench.operation_id, "INC-2/0/2/1");
    CU_ASSERT_EQUAL(bench.asked, EFFECT_START);
    answer(&bench, 3, OUTCOME_UNKNOWN);
    CU_ASSERT_STRING_EQUAL(bench.operation_id, "INC-3/0/2/1");
    CU_ASSERT_EQUAL(bench.asked, EFFECT_POLL);
    answer(&bench, 2, OUTCOME_TRANSIENT);
    CU_ASSERT_STRING_EQUAL(bench.operation_id, "INC-3/0/2/1");
    answer(&bench, 0, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.operation_id, "INC-1/0/2/1");
    close_bench(&bench);
}

TEST(actions_may_end_while_calls_are_under_way)
{
    struct bench bench;
    open_bench(&bench, true);
    run(&bench, EFFECT_START, VERB_CORDON, "INC-1/0/2/1", true);
    run(&bench, EFFECT_POLL, VERB_RESTART_JOB, "INC-1/0/3/1", true);
    close_bench(&bench);
    CU_ASSERT_EQUAL(bench.answered, 0);
}

TESTS(T(a_start_goes_to_the_actuator_and_its_answer_comes_back_once),
      T(an_intent_that_was_taken_back_is_cancelled_without_a_start),
      T(a_poll_reads_the_cluster_also_when_nothing_may_start),
      T(without_an_actuator_every_action_on_the_cluster_is_refused),
      T(a_notice_is_given_here_and_now), T(a_capture_is_planned_and_answered_at_once),
      T(answers_may_come_in_any_order_and_each_finds_its_action),
      T(actions_may_end_while_calls_are_under_way))
