/* The store against a real server: what is committed is there, once, and reads give it back. */
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <stdio.h>
#include <string.h>

static struct temp_postgres temp;
static struct temp_store at;

static const struct json *parse(const char *text, struct json **ret_root)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(text), ret_root, NULL), OK);
    return *ret_root;
}

TEST(a_fresh_server_is_migrated_and_the_lease_taken)
{
    temp_postgres_start(&temp, false);
    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&at, STORE_UP, 30));

    struct store_status status = store_status(at.store);
    CU_ASSERT_TRUE(status.lease_held);
    CU_ASSERT_EQUAL(status.epoch, 1);
    CU_ASSERT_STRING_EQUAL(status.reason, "");
    CU_ASSERT_TRUE(at.changes > 0);
    CU_ASSERT_TRUE(temp_sql_int(&temp, "SELECT count(*) FROM broom.schema_version") >= 4);
}

TEST(a_batch_is_whole_or_nothing_and_may_come_twice)
{
    AUTO_TEXT good = {0}, bad = {0};
    add_incident(&good, 1, 1, "open", "suspected");
    add_timeline(&good, 1, 1, "rank 5 is slow");
    add_event(&good, 1);
    CU_ASSERT_EQUAL(temp_submit(&at, good.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_submit(&at, good.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline"), 1);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"), 1);

    add_timeline(&bad, 1, 2, "this one is fine");
    add_incident(&bad, 1, 2, "open", "sleeping");
    CU_ASSERT_EQUAL(temp_submit(&at, bad.bytes, 0), ERR_INVALID);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline"), 1);
}

TEST(a_version_that_does_not_follow_is_a_conflict)
{
    AUTO_TEXT skipping = {0}, second = {0}, other = {0};
    add_incident(&skipping, 1, 3, "open", "confirmed");
    CU_ASSERT_EQUAL(temp_submit(&at, skipping.bytes, 0), ERR_CONFLICT);
    add_incident(&second, 1, 2, "open", "confirmed");
    CU_ASSERT_EQUAL(temp_submit(&at, second.bytes, 0), OK);
    add_incident(&other, 1, 2, "open", "holding");
    CU_ASSERT_EQUAL(temp_submit(&at, other.bytes, 0), ERR_CONFLICT);
    AUTO_FREE char *phase = temp_sql(&temp, "SELECT phase FROM broom.incident WHERE ref = 'INC-1'");
    CU_ASSERT_STRING_EQUAL(phase, "confirmed");
}

TEST(several_versions_in_one_batch_leave_the_last)
{
    AUTO_TEXT batch = {0};
    add_incident(&batch, 2, 1, "open", "suspected");
    add_incident(&batch, 2, 2, "open", "confirmed");
    add_incident(&batch, 2, 3, "closed", "cancelled");
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT version FROM broom.incident WHERE ref = 'INC-2'"),
                    3);
}

TEST(a_second_intent_of_one_operation_is_refused)
{
    AUTO_TEXT first = {0}, second = {0};
    add_action(&first, "INC-1/1/1/1", "cordon");
    CU_ASSERT_EQUAL(temp_submit(&at, first.bytes, 0), OK);
    text_add(&second, first.bytes);
    *strstr(second.bytes, "action/") = 'A';
    CU_ASSERT_EQUAL(temp_submit(&at, second.bytes, 0), ERR_INVALID);
}

TEST(an_unknown_outcome_is_followed_by_one_final_one)
{
    AUTO_TEXT unknown = {0}, done = {0}, again = {0};
    add_outcome(&unknown, "INC-1/1/1/1", "unknown", 10);
    CU_ASSERT_EQUAL(temp_submit(&at, unknown.bytes, 0), OK);
    add_outcome(&done, "INC-1/1/1/1", "succeeded", 20);
    CU_ASSERT_EQUAL(temp_submit(&at, done.bytes, 0), OK);
    add_outcome(&again, "INC-1/1/1/1", "refused", 30);
    CU_ASSERT_EQUAL(temp_submit(&at, again.bytes, 0), ERR_INVALID);
    AUTO_FREE char *outcome = temp_sql(&temp, "SELECT outcome FROM broom_api.actions");
    CU_ASSERT_STRING_EQUAL(outcome, "succeeded");
}

enum { MERGED = 5 };

struct answers {
    int count;
    enum status status[MERGED];
};

struct answer_slot {
    struct answers *answers;
    int index;
};

static void on_answer(void *context, enum status status, const char *reason)
{
    const struct answer_slot *slot = context;
    (void)reason;
    slot->answers->status[slot->index] = status;
    slot->answers->count++;
}

static bool all_answered(void *context)
{
    const struct answers *answers = context;
    return answers->count == MERGED;
}

TEST(batches_that_were_merged_fail_one_by_one)
{
    struct answers answers = {0};
    struct answer_slot slots[MERGED];
    for (int i = 0; i < MERGED; i++) {
        AUTO_TEXT batch = {0};
        slots[i] = (struct answer_slot){.answers = &answers, .index = i};
        add_timeline(&batch, 7, i + 1, "one of five");
        if (i == 2)
            add_incident(&batch, 7, 9, "open", "confirmed");
        store_submit(at.store, view_of(batch.bytes), 0, on_answer, &slots[i]);
    }
    CU_ASSERT_TRUE(run_until(temp.loop, all_answered, &answers, 10));
    for (int i = 0; i < MERGED; i++)
        CU_ASSERT_EQUAL(answers.status[i], i == 2 ? ERR_CONFLICT : OK);
    CU_ASSERT_EQUAL(
        temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline WHERE incident = 'INC-7'"),
        MERGED - 1);
}

static void on_blocker(void *context, bool up, const char *reason)
{
    struct pg **pg = context;
    (void)reason;
    if (up)
        pg_query(*pg, "BEGIN; LOCK TABLE broom.event IN ACCESS EXCLUSIVE MODE", NULL, 0, 0, NULL,
                 NULL);
}

static bool is_drained(void *context)
{
    (void)context;
    struct store_status status = store_status(at.store);
    return status.spooled_bytes == 0 && status.queued_batches == 0;
}

TEST(a_server_that_hangs_costs_disk_and_not_memory)
{
    struct pg *blocker = NULL;
    int64_t before = temp_sql_int(&temp, "SELECT count(*) FROM broom.event");
    blocker = pg_new(temp.loop, embedded_conninfo(temp.embedded), on_blocker, &blocker);
    run_for_ms(temp.loop, 200);
    for (int64_t i = 0; i < 40; i++) {
        AUTO_TEXT batch = {0};
        for (int64_t k = 0; k < 5000; k++)
            add_event(&batch, 5000000 + i * 5000 + k);
        store_submit(at.store, view_of(batch.bytes), STORE_MAY_SPOOL, NULL, NULL);
    }
    run_for_ms(temp.loop, 100);
    CU_ASSERT_EQUAL(store_status(at.store).state, STORE_UP);
    CU_ASSERT_TRUE(store_status(at.store).spooled_bytes > 1000000);
    pg_free(blocker); /* its transaction ends with it */
    CU_ASSERT_TRUE(run_until(temp.loop, is_drained, NULL, 30));
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"), before + 200000);
}

TEST(text_that_jsonb_cannot_hold_is_kept_readable)
{
    const char *odd =
        "{\"type\":\"event\",\"key\":\"odd\",\"time_ns\":1780000320000000000,\"kind\":\"xid\","
        "\"message\":\"a\\u0000b\\ud800c\xff\"}\n";
    CU_ASSERT_EQUAL(temp_submit(&at, odd, STORE_MAY_SPOOL), OK);
    AUTO_FREE char *message = temp_sql(
        &temp, "SELECT message FROM broom_api.events WHERE message IS NOT NULL");
    CU_ASSERT_STRING_EQUAL(message, "a\xEF\xBF\xBD"
                                    "b\xEF\xBF\xBD"
                                    "c\xEF\xBF\xBD");
}

TEST(a_record_that_can_never_be_taken_costs_only_itself)
{
    AUTO_TEXT batch = {0};
    for (int64_t i = 100; i < 107; i++)
        add_event(&batch, i);
    text_add(&batch, "{\"type\":\"verdict\",\"key\":\"v\",\"time_ns\":1780000320000000000,\"job\":"
                     "\"j\",\"verdict\":"
                     "{\"kind\":\"tired\",\"scope\":\"rank\",\"cause\":\"gpu\"}}\n");
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, STORE_MAY_SPOOL), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event WHERE key ~ 'event/10'"),
                    7);
    CU_ASSERT_EQUAL(store_status(at.store).rejected_records, 1);
    AUTO_TEXT path = {0};
    text_addf(&path, "%s/rejected.jsonl", at.dir);
    AUTO_FREE char *rejected = test_read_file(path.bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rejected);
    CU_ASSERT_PTR_NOT_NULL(strstr(rejected, "tired"));
}

TEST(numbers_beyond_a_real_are_kept_as_infinite_and_gaps_as_null)
{
    const char *rollup = "{\"type\":\"rollup\",\"key\":\"r\",\"time_ns\":1780000320000000000,"
                         "\"job\":\"j\",\"metric\":"
                         "\"step_ms\",\"minute_ns\":1780000320000000000,\"ranks\":4,\"values\":[1."
                         "5,null,1e308,1e-308]}\n";
    CU_ASSERT_EQUAL(temp_submit(&at, rollup, STORE_MAY_SPOOL), OK);
    AUTO_FREE char *values = temp_sql(&temp, "SELECT string_agg(coalesce(value::text, 'gap'), ' ' "
                                             "ORDER BY rank) FROM broom_api.rollups");
    CU_ASSERT_STRING_EQUAL(values, "1.5 gap Infinity 0");
}

TEST(reads_give_one_json_value_each)
{
    AUTO(json_free) struct json *list = NULL;
    AUTO(json_free) struct json *one = NULL;
    AUTO_FREE char *incidents = temp_query(&at, STORE_INCIDENTS, "0");
    const struct json *found = json_get(parse(incidents, &list), "incidents");
    CU_ASSERT_EQUAL(json_size(found), 2);
    CU_ASSERT_STRING_EQUAL(json_get_string(json_first(found), "ref", ""), "INC-2");

    AUTO_FREE char *incident = temp_query(&at, STORE_INCIDENT, "INC-1");
    const struct json *record = parse(incident, &one);
    CU_ASSERT_EQUAL(json_size(json_get(record, "timeline")), 1);
    const struct json *action = json_first(json_get(record, "actions"));
    CU_ASSERT_STRING_EQUAL(json_get_string(json_get(action, "outcome"), "outcome", ""),
                           "succeeded");

    AUTO_FREE char *nothing = temp_query(&at, STORE_INCIDENT, "INC-99");
    CU_ASSERT_STRING_EQUAL(nothing, "null");
}

TEST(an_export_holds_the_raw_window_as_it_came)
{
    const char *window =
        "{\"type\":\"raw_window\",\"key\":\"w\",\"time_ns\":1780000320000000000,\"incident\":\"INC-"
        "1\","
        "\"job\":\"default/llm\",\"metric\":\"compute_ms\",\"encoding\":\"zstd-columns\","
        "\"data\":\"AAECAwQFBgcICQ==\"}\n"
        "{\"type\":\"job\",\"key\":\"job/1\",\"time_ns\":1780000320000000000,\"job\":\"default/"
        "llm\","
        "\"attempt\":1,\"document\":{\"world_size\":1,\"ranks\":[{\"rank\":0,\"node\":\"gb-1\"}]}}"
        "\n";
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_EQUAL(temp_submit(&at, window, STORE_MAY_SPOOL), OK);
    AUTO_FREE char *text = temp_query(&at, STORE_EXPORT, "INC-1");
    const struct json *export = parse(text, &root);
    const struct json *raw = json_first(json_get(export, "raw_windows"));
    CU_ASSERT_STRING_EQUAL(json_get_string(raw, "data", ""), "AAECAwQFBgcICQ==");
    CU_ASSERT_TRUE(json_size(json_get(export, "events")) >= 8);
    CU_ASSERT_EQUAL(json_get_int(json_get(export, "job"), "attempt", 0), 1);
    CU_ASSERT_EQUAL(json_kind(json_get(export, "decisions")), JSON_ARRAY);
}

TEST(restore_gives_what_goes_on_and_the_next_number)
{
    const char *control =
        "{\"type\":\"control\",\"key\":\"c\",\"time_ns\":1780000320000000000,\"what\":\"pause\","
        "\"actor\":\"alice\",\"text\":\"maintenance\"}\n"
        "{\"type\":\"spare\",\"key\":\"s\",\"time_ns\":1780000320000000000,\"node\":\"sp-1\","
        "\"state\":\"promised\",\"job\":\"default/llm\",\"incident\":\"INC-1\"}\n";
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_EQUAL(temp_submit(&at, control, 0), OK);
    AUTO_FREE char *text = temp_query(&at, STORE_RESTORE, "1790000000000000000");
    const struct json *state = parse(text, &root);
    CU_ASSERT_EQUAL(json_size(json_get(state, "incidents")), 1);
    CU_ASSERT_EQUAL(json_get_int(state, "next_number", 0), 3);
    CU_ASSERT_TRUE(json_get_bool(state, "paused", false));
    CU_ASSERT_STRING_EQUAL(json_get_string(state, "paused_by", ""), "alice");
    CU_ASSERT_FALSE(json_get_bool(state, "breaker_open", true));
    CU_ASSERT_STRING_EQUAL(json_get_string(json_first(json_get(state, "spares")), "node", ""),
                           "sp-1");
}

TEST(a_stopped_store_leaves_no_lease_behind)
{
    temp_store_stop(&at);
    CU_ASSERT_EQUAL(
        temp_sql_int(&temp,
                     "SELECT count(*) FROM broom.lease WHERE expires_at > clock_timestamp()"),
        0);
    temp_postgres_stop(&temp);
}

TESTS(T(a_fresh_server_is_migrated_and_the_lease_taken),
      T(a_batch_is_whole_or_nothing_and_may_come_twice),
      T(a_version_that_does_not_follow_is_a_conflict),
      T(several_versions_in_one_batch_leave_the_last),
      T(a_second_intent_of_one_operation_is_refused),
      T(an_unknown_outcome_is_followed_by_one_final_one),
      T(batches_that_were_merged_fail_one_by_one), T(a_server_that_hangs_costs_disk_and_not_memory),
      T(text_that_jsonb_cannot_hold_is_kept_readable),
      T(a_record_that_can_never_be_taken_costs_only_itself),
      T(numbers_beyond_a_real_are_kept_as_infinite_and_gaps_as_null),
      T(reads_give_one_json_value_each), T(an_export_holds_the_raw_window_as_it_came),
      T(restore_gives_what_goes_on_and_the_next_number), T(a_stopped_store_leaves_no_lease_behind))
