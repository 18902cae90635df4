/* The server dies under load, again and again: nothing is lost, nothing is there twice. */
#include "controller/sys/clock.h"
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { KILLS = 4, LOAD_MS = 900, SERVER_LIMIT_MS = 60000, BATCH_EVENTS = 20 };

static struct temp_postgres temp;
static struct temp_store at;

/* Two writers: one spools, the other insists until its batch is committed, as the pipeline does. */
struct load {
    struct loop_timer *timer;
    int64_t next_event;
    int64_t spool_waiting;
    int64_t spool_failed;
    int64_t next_entry; /* timeline entry that is being written */
    bool is_writing;
    bool is_over;
    int64_t failures;
};

static void on_spooled(void *context, enum status status, const char *reason)
{
    struct load *load = context;
    (void)reason;
    load->spool_waiting--;
    load->spool_failed += status != OK;
}

static void write_entry(struct load *load);

static void on_entry(void *context, enum status status, const char *reason)
{
    struct load *load = context;
    load->is_writing = false;
    if (status == OK)
        load->next_entry++;
    else
        load->failures++;
    if (status != OK && status != ERR_UNREACHABLE)
        printf("%s: %s\n", status_name(status), reason);
}

static void write_entry(struct load *load)
{
    AUTO_TEXT record = {0};
    add_timeline(&record, 1, load->next_entry, "still here");
    load->is_writing = true;
    store_submit(at.store, view_of(record.bytes), 0, on_entry, load);
}

static void on_load(void *context)
{
    struct load *load = context;
    AUTO_TEXT batch = {0};
    if (!load->is_over) {
        for (int i = 0; i < BATCH_EVENTS; i++)
            add_event(&batch, load->next_event++);
        load->spool_waiting++;
        store_submit(at.store, view_of(batch.bytes), STORE_MAY_SPOOL, on_spooled, load);
    }
    if (!load->is_writing && (!load->is_over || load->failures > 0))
        write_entry(load);
    loop_timer_set(load->timer, 3000000);
}

static bool is_quiet(void *context)
{
    const struct load *load = context;
    return load->spool_waiting == 0 && !load->is_writing &&
           store_status(at.store).spooled_bytes == 0 && store_status(at.store).state == STORE_UP;
}

/* On a busy machine the server that replaces a killed one takes its time. */
static void await_server(const struct temp_postgres *postgres)
{
    for (int waited_ms = 0; temp_postgres_pid(postgres) <= 0 && waited_ms < SERVER_LIMIT_MS;
         waited_ms += LOAD_MS)
        run_for_ms(postgres->loop, LOAD_MS);
}

TEST(nothing_is_lost_and_nothing_is_there_twice_when_the_server_is_killed)
{
    struct load load = {.next_event = 1, .next_entry = 1};
    temp_postgres_start(&temp, true);
    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&at, STORE_UP, 30));
    load.timer = loop_timer_new(temp.loop, on_load, &load);
    loop_timer_set(load.timer, 0);

    for (int i = 0; i < KILLS; i++) {
        run_for_ms(temp.loop, LOAD_MS);
        await_server(&temp);
        temp_postgres_kill(&temp, i % 2 == 0 ? SIGKILL : SIGQUIT);
    }
    run_for_ms(temp.loop, LOAD_MS);
    load.is_over = true;
    CU_ASSERT_TRUE(run_until(temp.loop, is_quiet, &load, 60));
    loop_timer_free(load.timer);

    struct store_status status = store_status(at.store);
    printf("\n  %lld events, %lld of them by the spool, %lld entries, %lld restarts ... ",
           (long long)load.next_event - 1, (long long)status.spooled_records,
           (long long)load.next_entry - 1, (long long)embedded_restarts(temp.embedded));
    CU_ASSERT_EQUAL(load.spool_failed, 0);
    CU_ASSERT_TRUE(status.spooled_records > 0);
    CU_ASSERT_EQUAL(status.drained_records, status.spooled_records);
    CU_ASSERT_EQUAL(status.lost_records, 0);
    CU_ASSERT_TRUE(embedded_restarts(temp.embedded) >= KILLS); /* one may be killed as it starts */
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"), load.next_event - 1);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(DISTINCT key) FROM broom.event"),
                    load.next_event - 1);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline"),
                    load.next_entry - 1);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT max(seq) FROM broom.timeline"),
                    load.next_entry - 1);
}

TEST(the_epoch_stays_the_same_over_an_outage)
{
    CU_ASSERT_EQUAL(store_status(at.store).epoch, 1);
    CU_ASSERT_TRUE(store_status(at.store).lease_held);
}

TEST(what_was_spooled_survives_a_restart_of_the_daemon)
{
    AUTO_TEXT batch = {0};
    int64_t before = temp_sql_int(&temp, "SELECT count(*) FROM broom.event");
    temp_postgres_kill(&temp, SIGSTOP); /* away, but not known to be dead: the answer never comes */
    temp_postgres_kill(&temp, SIGKILL);
    CU_ASSERT_TRUE(temp_store_wait(&at, STORE_CONNECTING, 30));
    for (int64_t i = 0; i < 10; i++)
        add_event(&batch, 1000000 + i);
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, STORE_MAY_SPOOL), OK);
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), ERR_UNREACHABLE);
    temp_store_close(&at);

    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE(store_status(at.store).spooled_bytes > 0);
    CU_ASSERT_TRUE(temp_store_wait(&at, STORE_UP, 60));
    struct load none = {0};
    CU_ASSERT_TRUE(run_until(temp.loop, is_quiet, &none, 30));
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"), before + 10);
    temp_store_stop(&at);
    temp_postgres_stop(&temp);
}

TESTS(T(nothing_is_lost_and_nothing_is_there_twice_when_the_server_is_killed),
      T(the_epoch_stays_the_same_over_an_outage),
      T(what_was_spooled_survives_a_restart_of_the_daemon))
