/* Two daemons on one database: one writes, the other waits; who lost the lease is refused. */
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <string.h>

static struct temp_postgres temp;
static struct temp_store first, second;

TEST(a_second_daemon_waits_and_names_the_holder)
{
    temp_postgres_start(&temp, false);
    temp_store_open(&first, &temp, "first", false);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&first, STORE_UP, 30));
    temp_store_open(&second, &temp, "second", false);
    CU_ASSERT_TRUE(temp_store_wait(&second, STORE_WAITING_LEASE, 10));
    struct store_status status = store_status(second.store);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.reason, "the lease is held by"));
    CU_ASSERT_FALSE(status.lease_held);
    CU_ASSERT_FALSE(status.commits_are_replicated);
}

TEST(it_reads_but_does_not_write_while_it_waits)
{
    AUTO_TEXT batch = {0};
    add_event(&batch, 1);
    CU_ASSERT_EQUAL(temp_submit(&second, batch.bytes, 0), ERR_UNREACHABLE);
    AUTO_FREE char *incidents = temp_query(&second, STORE_INCIDENTS, "0");
    CU_ASSERT_PTR_NOT_NULL(incidents);
}

TEST(a_renewed_lease_outlives_its_length)
{
    run_for_ms(temp.loop, 3000); /* it is two seconds long */
    CU_ASSERT_EQUAL(store_status(first.store).state, STORE_UP);
    CU_ASSERT_TRUE(store_status(first.store).lease_held);
    CU_ASSERT_EQUAL(store_status(first.store).epoch, 1);
    CU_ASSERT_EQUAL(store_status(second.store).state, STORE_WAITING_LEASE);
}

TEST(a_lease_given_back_is_taken_at_once_under_a_new_epoch)
{
    temp_store_stop(&first);
    CU_ASSERT_TRUE(temp_store_wait(&second, STORE_UP, 3));
    CU_ASSERT_EQUAL(store_status(second.store).epoch, 2);
}

TEST(a_daemon_that_comes_back_to_its_directory_waits_for_nobody)
{
    temp_store_close(&second); /* as a crash: the lease is not given back */
    temp_store_open(&second, &temp, "second", false);
    CU_ASSERT_TRUE(temp_store_wait(&second, STORE_UP, 2));
    CU_ASSERT_EQUAL(store_status(second.store).epoch, 3);
}

static bool is_drained(void *context)
{
    (void)context;
    struct store_status status = store_status(second.store);
    return status.spooled_bytes == 0 && status.queued_batches == 0;
}

TEST(who_lost_the_lease_is_refused_and_does_not_act)
{
    AUTO_TEXT batch = {0}, events = {0};
    AUTO_FREE char *taken = temp_sql(&temp, "SELECT broom.lease_take('an intruder', 3000, true)");
    CU_ASSERT_PTR_NOT_NULL(strstr(taken, "intruder"));
    add_timeline(&batch, 1, 1, "by the old holder");
    CU_ASSERT_EQUAL(temp_submit(&second, batch.bytes, 0), ERR_CONFLICT);
    CU_ASSERT_EQUAL(store_status(second.store).state, STORE_WAITING_LEASE);
    CU_ASSERT_FALSE(store_status(second.store).lease_held);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline"), 0);
    add_event(&events, 5);
    CU_ASSERT_EQUAL(temp_submit(&second, events.bytes, STORE_MAY_SPOOL), OK);

    CU_ASSERT_TRUE(
        temp_store_wait(&second, STORE_UP, 10)); /* the intruder is silent: its lease runs out */
    CU_ASSERT_EQUAL(store_status(second.store).epoch, 5);
    CU_ASSERT_EQUAL(temp_submit(&second, batch.bytes, 0), OK);
    CU_ASSERT_TRUE(run_until(temp.loop, is_drained, NULL, 10)); /* the spool follows behind */
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"), 1);
}

TEST(two_stores_on_one_directory_are_refused_by_name)
{
    struct error error = {0};
    struct store *store = NULL;
    struct store_params params = {.conninfo = "", .dir = second.dir};
    CU_ASSERT_EQUAL(store_new(temp.loop, &params, NULL, NULL, &store, &error), ERR_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "in use by process"));
    temp_store_stop(&second);
    temp_postgres_stop(&temp);
}

TESTS(T(a_second_daemon_waits_and_names_the_holder), T(it_reads_but_does_not_write_while_it_waits),
      T(a_renewed_lease_outlives_its_length),
      T(a_lease_given_back_is_taken_at_once_under_a_new_epoch),
      T(a_daemon_that_comes_back_to_its_directory_waits_for_nobody),
      T(who_lost_the_lease_is_refused_and_does_not_act),
      T(two_stores_on_one_directory_are_refused_by_name))
