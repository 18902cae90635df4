/* Records before actions, whatever the store answers. */
#include "controller/outbox.h"

#include "tests/harness/test.h"

#include <string.h>

enum { CALLS_MAX = 16 };

struct submitted {
    char *records;
    pipeline_durable_fn *done;
    void *context;
};

/* A store that answers when the test says so. */
struct fake {
    struct outbox *outbox;
    struct submitted calls[CALLS_MAX];
    int call_count, answered;
    int started;
    char last_started[OPERATION_ID_BYTES];
    int diverged;
    int told;
    enum status told_status;
};

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context)
{
    struct fake *fake = self;
    CU_ASSERT_FALSE(spoolable);
    CU_ASSERT_FATAL(fake->call_count < CALLS_MAX);
    fake->calls[fake->call_count++] = (struct submitted){
        .records = xstrndup(records.bytes, records.length), .done = done, .context = context};
}

static void diverged(void *self, const char *reason)
{
    struct fake *fake = self;
    (void)reason;
    fake->diverged++;
}

static void on_action(void *context, const struct effect *effect)
{
    struct fake *fake = context;
    fake->started++;
    text_copy(fake->last_started, sizeof fake->last_started, effect->action.operation_id);
}

static void on_told(void *context, enum status status, const char *reason)
{
    struct fake *fake = context;
    (void)reason;
    fake->told++;
    fake->told_status = status;
}

static void open_fake(struct fake *fake)
{
    *fake = (struct fake){0};
    struct pipeline_ports ports = {.self = fake, .submit = submit, .diverged = diverged};
    fake->outbox = outbox_new(&ports, on_action, fake);
}

static void close_fake(struct fake *fake)
{
    outbox_free(fake->outbox);
    for (int i = 0; i < fake->call_count; i++)
        xfree(fake->calls[i].records);
}

static void add_start(struct fake *fake, const char *operation_id)
{
    struct effect effect = {.kind = EFFECT_START};
    text_copy(effect.action.operation_id, sizeof effect.action.operation_id, operation_id);
    outbox_add_action(fake->outbox, &effect);
}

static void answer(struct fake *fake, enum status status)
{
    CU_ASSERT_FATAL(fake->answered < fake->call_count);
    struct submitted *call = &fake->calls[fake->answered++];
    call->done(call->context, status, status == OK ? NULL : "the test says so");
}

TEST(an_action_starts_only_after_its_records_are_durable)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "{\"n\":1}");
    add_start(&fake, "INC-1/0/2/1");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.call_count, 1);
    CU_ASSERT_STRING_EQUAL(fake.calls[0].records, "{\"n\":1}\n");
    CU_ASSERT_EQUAL(fake.started, 0);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 1);
    CU_ASSERT_STRING_EQUAL(fake.last_started, "INC-1/0/2/1");
    close_fake(&fake);
}

TEST(what_comes_while_a_batch_is_under_way_is_the_next_batch)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_flush(fake.outbox);
    outbox_add_record(fake.outbox, "2");
    outbox_flush(fake.outbox);
    outbox_add_record(fake.outbox, "3");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.call_count, 1);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.call_count, 2);
    CU_ASSERT_STRING_EQUAL(fake.calls[1].records, "2\n3\n");
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.call_count, 2);
    close_fake(&fake);
}

TEST(an_action_without_records_does_not_wait_when_nothing_is_under_way)
{
    struct fake fake;
    open_fake(&fake);
    add_start(&fake, "INC-1/0/2/1");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.call_count, 0);
    CU_ASSERT_EQUAL(fake.started, 1);
    close_fake(&fake);
}

TEST(nothing_starts_when_a_submit_fails_and_a_retry_submits_the_same_bytes)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "{\"n\":1}");
    add_start(&fake, "INC-1/0/2/1");
    outbox_flush(fake.outbox);
    answer(&fake, ERR_UNREACHABLE);
    outbox_add_record(fake.outbox, "{\"n\":2}");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.started, 0);
    CU_ASSERT_EQUAL(fake.diverged, 0);
    CU_ASSERT_EQUAL(fake.call_count, 1);

    outbox_retry(fake.outbox);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 2);
    CU_ASSERT_STRING_EQUAL(fake.calls[0].records, fake.calls[1].records);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 1);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 3);
    CU_ASSERT_STRING_EQUAL(fake.calls[2].records, "{\"n\":2}\n");
    answer(&fake, OK);
    CU_ASSERT_EQUAL(outbox_counts(fake.outbox).failed, 1);
    close_fake(&fake);
}

TEST(a_retry_while_a_batch_is_under_way_does_not_submit_it_twice)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_flush(fake.outbox);
    outbox_retry(fake.outbox);
    CU_ASSERT_EQUAL(fake.call_count, 1);
    answer(&fake, OK);
    close_fake(&fake);
}

TEST(a_conflict_calls_diverged_and_starts_nothing)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    add_start(&fake, "INC-1/0/2/1");
    outbox_flush(fake.outbox);
    answer(&fake, ERR_CONFLICT);
    CU_ASSERT_EQUAL(fake.diverged, 1);
    CU_ASSERT_EQUAL(fake.started, 0);
    outbox_clear(fake.outbox);
    outbox_add_record(fake.outbox, "2");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 2);
    CU_ASSERT_STRING_EQUAL(fake.calls[1].records, "2\n");
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 0);
    close_fake(&fake);
}

TEST(a_waiter_is_told_once_when_its_records_are_durable)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.told, 0);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.told, 1);
    CU_ASSERT_EQUAL(fake.told_status, OK);
    close_fake(&fake);
}

TEST(a_waiter_is_told_of_the_failure_and_not_again_when_the_retry_succeeds)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_flush(fake.outbox);
    answer(&fake, ERR_UNREACHABLE);
    CU_ASSERT_EQUAL(fake.told, 1);
    CU_ASSERT_EQUAL(fake.told_status, ERR_UNREACHABLE);
    outbox_retry(fake.outbox);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.told, 1);
    close_fake(&fake);
}

TEST(a_waiter_that_comes_while_the_store_is_away_is_told_so_at_once)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_flush(fake.outbox);
    answer(&fake, ERR_UNREACHABLE);
    outbox_add_record(fake.outbox, "2");
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL(fake.told, 1);
    CU_ASSERT_EQUAL(fake.told_status, ERR_UNREACHABLE);
    outbox_retry(fake.outbox);
    answer(&fake, OK);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 3);
    CU_ASSERT_STRING_EQUAL(fake.calls[2].records, "2\n");
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.told, 1);
    close_fake(&fake);
}

TEST(waiters_of_a_cleared_outbox_are_told_of_the_conflict)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_flush(fake.outbox);
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_clear(fake.outbox);
    CU_ASSERT_EQUAL(fake.told, 2);
    CU_ASSERT_EQUAL(fake.told_status, ERR_CONFLICT);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.told, 2);
    close_fake(&fake);
}

TEST(an_answer_that_comes_after_a_clear_starts_nothing_and_fails_nothing)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    add_start(&fake, "INC-1/0/2/1");
    outbox_flush(fake.outbox);
    outbox_clear(fake.outbox);
    outbox_add_record(fake.outbox, "2");
    add_start(&fake, "INC-2/0/2/1");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 2);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 0);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 1);
    CU_ASSERT_STRING_EQUAL(fake.last_started, "INC-2/0/2/1");
    close_fake(&fake);
}

TEST(an_outbox_may_end_while_a_batch_is_under_way)
{
    struct fake fake;
    open_fake(&fake);
    outbox_add_record(fake.outbox, "1");
    add_start(&fake, "INC-1/0/2/1");
    outbox_add_waiter(fake.outbox, on_told, &fake);
    outbox_flush(fake.outbox);
    outbox_add_record(fake.outbox, "2");
    close_fake(&fake);
    CU_ASSERT_EQUAL(fake.told, 1); /* whoever waits may free what it waits with */
    CU_ASSERT_EQUAL(fake.started, 0);
}

TEST(records_that_the_store_does_not_take_for_too_long_make_the_state_be_read_again)
{
    struct fake fake;
    AUTO_TEXT record = {0};
    open_fake(&fake);
    for (int i = 0; i < 1 << 20; i++)
        text_add(&record, "x");
    outbox_add_record(fake.outbox, "1");
    outbox_flush(fake.outbox);
    answer(&fake, ERR_UNREACHABLE);
    for (int i = 0; i < 2 * OUTBOX_BYTES_MAX / (1 << 20); i++) {
        outbox_add_record(fake.outbox, record.bytes);
        add_start(&fake, "INC-1/0/2/1");
        outbox_flush(fake.outbox);
    }
    CU_ASSERT_EQUAL(fake.diverged, 1);
    outbox_retry(fake.outbox); /* what is left is no whole history: nothing of it is submitted */
    CU_ASSERT_EQUAL(fake.call_count, 1);
    outbox_clear(fake.outbox);
    outbox_add_record(fake.outbox, "2");
    outbox_flush(fake.outbox);
    CU_ASSERT_EQUAL_FATAL(fake.call_count, 2);
    answer(&fake, OK);
    CU_ASSERT_EQUAL(fake.started, 0);
    close_fake(&fake);
}

TESTS(T(an_action_starts_only_after_its_records_are_durable),
      T(what_comes_while_a_batch_is_under_way_is_the_next_batch),
      T(an_action_without_records_does_not_wait_when_nothing_is_under_way),
      T(nothing_starts_when_a_submit_fails_and_a_retry_submits_the_same_bytes),
      T(a_retry_while_a_batch_is_under_way_does_not_submit_it_twice),
      T(a_conflict_calls_diverged_and_starts_nothing),
      T(a_waiter_is_told_once_when_its_records_are_durable),
      T(a_waiter_is_told_of_the_failure_and_not_again_when_the_retry_succeeds),
      T(a_waiter_that_comes_while_the_store_is_away_is_told_so_at_once),
      T(waiters_of_a_cleared_outbox_are_told_of_the_conflict),
      T(an_answer_that_comes_after_a_clear_starts_nothing_and_fails_nothing),
      T(an_outbox_may_end_while_a_batch_is_under_way),
      T(records_that_the_store_does_not_take_for_too_long_make_the_state_be_read_again))
