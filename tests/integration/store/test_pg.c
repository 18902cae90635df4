/* The connection: never waits, tells every end, comes back. */
#include "controller/sys/clock.h"
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct temp_postgres temp;

struct client {
    struct pg *pg;
    int ups, downs;
    bool is_up;
    char reason[256];
};

static void on_state(void *context, bool up, const char *reason)
{
    struct client *client = context;
    client->is_up = up;
    client->ups += up;
    client->downs += !up;
    text_copy(client->reason, sizeof client->reason, reason);
}

static bool is_up(void *context)
{
    const struct client *client = context;
    return client->is_up;
}

static bool has_failed(void *context)
{
    const struct client *client = context;
    return client->downs > 0;
}

static void open_client(struct client *client, const char *conninfo)
{
    *client = (struct client){0};
    client->pg = pg_new(temp.loop, conninfo, on_state, client);
}

struct got {
    bool is_done;
    enum status status;
    char sqlstate[6];
    char value[64];
    int64_t took_ms, asked_ns;
};

static void on_answer(void *context, const struct pg_answer *answer)
{
    struct got *got = context;
    const char *value = answer->rows > 0 ? pg_value(answer, 0, 0) : NULL;
    got->is_done = true;
    got->status = answer->status;
    text_copy(got->sqlstate, sizeof got->sqlstate, answer->sqlstate);
    text_copy(got->value, sizeof got->value, value != NULL ? value : "NULL");
    got->took_ms = (clock_read().monotonic_ns - got->asked_ns) / 1000000;
}

static bool is_done(void *context)
{
    const struct got *got = context;
    return got->is_done;
}

static struct got ask(struct client *client, const char *sql, const char *param, int timeout_ms)
{
    static struct got got;
    got = (struct got){.asked_ns = clock_read().monotonic_ns};
    pg_query(client->pg, sql, &param, param != NULL ? 1 : 0, timeout_ms, on_answer, &got);
    CU_ASSERT_FALSE(got.is_done); /* never inside the call */
    CU_ASSERT_TRUE(run_until(temp.loop, is_done, &got, 30));
    return got;
}

TEST(values_come_back_and_errors_have_their_class)
{
    struct client client;
    temp_postgres_start(&temp, false);
    open_client(&client, embedded_conninfo(temp.embedded));
    CU_ASSERT_TRUE_FATAL(run_until(temp.loop, is_up, &client, 10));
    struct got got = ask(&client, "SELECT 'x' || $1", "it's", 0);
    CU_ASSERT_STRING_EQUAL(got.value, "xit's");
    got = ask(&client, "SELECT 1; SELECT 2", NULL, 0);
    CU_ASSERT_STRING_EQUAL(got.value, "2");
    got = ask(&client, "SELECT 1/0; SELECT 2", NULL, 0);
    CU_ASSERT_EQUAL(got.status, ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(got.sqlstate, "22012");
    got = ask(&client, "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'P0V01'; END $$", NULL, 0);
    CU_ASSERT_EQUAL(got.status, ERR_CONFLICT);
    got = ask(&client, "DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$", NULL,
              0);
    CU_ASSERT_EQUAL(got.status, ERR_UNREACHABLE);
    got = ask(&client, "SELECT length($1)", "", 0);
    CU_ASSERT_STRING_EQUAL(got.value, "0");
    CU_ASSERT_EQUAL(client.ups, 1);
    pg_free(client.pg);
}

TEST(megabytes_go_out_and_come_back)
{
    struct client client;
    AUTO_TEXT big = {0};
    open_client(&client, embedded_conninfo(temp.embedded));
    CU_ASSERT_TRUE_FATAL(run_until(temp.loop, is_up, &client, 10));
    for (int i = 0; i < 1000000; i++)
        text_add(&big, "0123456789abcdef");
    struct got got = ask(&client, "SELECT md5($1) = md5(repeat('0123456789abcdef', 1000000))",
                         big.bytes, 0);
    CU_ASSERT_STRING_EQUAL(got.value, "t");
    got = ask(&client, "SELECT repeat('0123456789abcdef', 1000000) || $1", "", 0);
    CU_ASSERT_EQUAL(got.status, OK);
    pg_free(client.pg);
}

TEST(a_statement_that_passes_its_deadline_drops_the_connection)
{
    struct client client;
    open_client(&client, embedded_conninfo(temp.embedded));
    CU_ASSERT_TRUE_FATAL(run_until(temp.loop, is_up, &client, 10));
    pg_query(client.pg, "SELECT pg_sleep(3)", NULL, 0, 100, NULL, NULL);
    struct got got = ask(&client, "SELECT 1", NULL, 0);
    CU_ASSERT_EQUAL(got.status, ERR_UNREACHABLE);
    CU_ASSERT_TRUE(got.took_ms >= 90 && got.took_ms < 2500);
    CU_ASSERT_TRUE(run_until(temp.loop, is_up, &client, 10));
    got = ask(&client, "SELECT 1", NULL, 0);
    CU_ASSERT_STRING_EQUAL(got.value, "1");
    CU_ASSERT_EQUAL(client.ups, 2);
    pg_free(client.pg);
}

TEST(while_away_statements_are_answered_later_as_unreachable)
{
    struct client client;
    open_client(&client, "host=/tmp/broom-no-such-socket");
    struct got got = ask(&client, "SELECT 1", NULL, 0);
    CU_ASSERT_EQUAL(got.status, ERR_UNREACHABLE);
    CU_ASSERT_TRUE(run_until(temp.loop, has_failed, &client, 10));
    CU_ASSERT_PTR_NOT_NULL(strstr(client.reason, "broom-no-such-socket"));
    pg_free(client.pg);
}

TEST(a_connection_string_that_cannot_be_read_is_told)
{
    struct client client;
    open_client(&client, "hots=nowhere");
    CU_ASSERT_TRUE(run_until(temp.loop, has_failed, &client, 10));
    CU_ASSERT_PTR_NOT_NULL(strstr(client.reason, "hots"));
    pg_free(client.pg);
}

TEST(an_unknown_host_name_is_named_and_does_not_hold_up_the_loop)
{
    struct client client;
    int64_t begun_ns = clock_read().monotonic_ns;
    open_client(&client, "host=no-such-host.invalid");
    run_for_ms(temp.loop, 20);
    CU_ASSERT_TRUE(clock_read().monotonic_ns - begun_ns < 500000000);
    pg_free(client.pg); /* also in the middle of a look-up */
    open_client(&client, "host=no-such-host.invalid");
    CU_ASSERT_TRUE(run_until(temp.loop, has_failed, &client, 60));
    CU_ASSERT_PTR_NOT_NULL(strstr(client.reason, "no-such-host.invalid"));
    pg_free(client.pg);
}

/* A host that accepts and says nothing. */
static int silent_host(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 8), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

TEST(a_dead_host_and_a_silent_one_do_not_keep_the_living_one_out)
{
    uint16_t port = 0;
    struct client client;
    AUTO_TEXT conninfo = {0};
    int fd = silent_host(&port);
    text_addf(&conninfo,
              "postgresql://postgres@/postgres?host=localhost,127.0.0.1,%s/postgres/"
              "socket&port=%u,1,5432",
              temp.dir, (unsigned)port);
    open_client(&client, conninfo.bytes);
    CU_ASSERT_TRUE(run_until(temp.loop, is_up, &client, 30));
    struct got got = ask(&client, "SELECT 1", NULL, 0);
    CU_ASSERT_STRING_EQUAL(got.value, "1");
    pg_free(client.pg);
    close(fd);
}

TEST(a_server_that_only_reads_is_passed_over)
{
    struct client client;
    AUTO_FREE char *set = temp_sql(
        &temp, "ALTER DATABASE postgres SET default_transaction_read_only = on");
    CU_ASSERT_PTR_NOT_NULL(set);
    open_client(&client, embedded_conninfo(temp.embedded));
    CU_ASSERT_TRUE(run_until(temp.loop, has_failed, &client, 10));
    CU_ASSERT_EQUAL(client.ups, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(client.reason, "read-only"));
    pg_free(client.pg);
    temp_postgres_stop(&temp);
}

TESTS(T(values_come_back_and_errors_have_their_class), T(megabytes_go_out_and_come_back),
      T(a_statement_that_passes_its_deadline_drops_the_connection),
      T(while_away_statements_are_answered_later_as_unreachable),
      T(a_connection_string_that_cannot_be_read_is_told),
      T(an_unknown_host_name_is_named_and_does_not_hold_up_the_loop),
      T(a_dead_host_and_a_silent_one_do_not_keep_the_living_one_out),
      T(a_server_that_only_reads_is_passed_over))
