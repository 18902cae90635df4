#include "controller/io/http_client.h"
#include "tests/harness/scripted_server.h"

#include <fcntl.h>

/* One stream or call against a server that does what the test's path says. */
struct bench {
    struct loop *loop;
    struct scripted_server server;
    struct http_client *client;
    struct http_transfer *stream;
    struct scripted_connection *asked;
    struct loop_timer *deadline;
    char url[128];
    struct text seen; /* "[]" once headers came, then the bytes */
    int ends, stop_after_bytes;
    enum status status;
    int code;
    char body[128], reason[256];
    bool drop_on_bytes, free_on_bytes;
};

static void on_late(void *context)
{
    struct bench *bench = context;
    CU_FAIL("nothing happened within 10 s");
    loop_stop(bench->loop);
}

static void on_request(void *context, struct scripted_connection *connection)
{
    struct bench *bench = context;
    bench->asked = connection;
    if (strstr(connection->path, "/stream") != NULL) {
        scripted_open_stream(connection);
        scripted_chunk(connection, "one ");
    } else if (strstr(connection->path, "/refuse") != NULL) {
        scripted_reply(connection, 429, "Retry-After: 7\r\n", "busy");
    } else if (strstr(connection->path, "/cut-second") != NULL && connection->requests > 1) {
        scripted_cut(connection);
    } else if (strstr(connection->path, "/silence") == NULL) {
        scripted_reply(connection, 200, "", "ok");
    }
}

static void bench_open(struct bench *bench, const char *path)
{
    *bench = (struct bench){.loop = loop_new()};
    scripted_open(&bench->server, bench->loop, 0, on_request, bench);
    bench->client = http_client_new(bench->loop);
    bench->deadline = loop_timer_new(bench->loop, on_late, bench);
    loop_timer_set(bench->deadline, 10000000000);
    snprintf(bench->url, sizeof bench->url, "http://127.0.0.1:%d%s", bench->server.port, path);
}

static void bench_close(struct bench *bench)
{
    http_client_free(bench->client);
    scripted_close(&bench->server);
    loop_timer_free(bench->deadline);
    loop_free(bench->loop);
    text_done(&bench->seen);
}

static void on_bytes(void *context, struct view bytes)
{
    struct bench *bench = context;
    text_add(&bench->seen, bench->seen.bytes == NULL ? "[]" : "");
    text_add_bytes(&bench->seen, bytes.bytes, bytes.length);
    if (bench->drop_on_bytes)
        http_transfer_drop(bench->stream);
    if (bench->free_on_bytes)
        http_client_free(TAKE(bench->client));
    if (bench->drop_on_bytes || bench->free_on_bytes ||
        (bench->stop_after_bytes > 0 && (int)bench->seen.length >= bench->stop_after_bytes))
        loop_stop(bench->loop);
}

static void on_end(void *context, const struct http_answer *answer)
{
    struct bench *bench = context;
    bench->ends++;
    bench->status = answer->status;
    bench->code = answer->code;
    snprintf(bench->body, sizeof bench->body, "%.*s", (int)answer->body.length,
             answer->body.bytes != NULL ? answer->body.bytes : "");
    text_copy(bench->reason, sizeof bench->reason, answer->reason != NULL ? answer->reason : "");
    loop_stop(bench->loop);
}

static void start_stream(struct bench *bench, int idle_ms)
{
    bench->stream = http_stream_start(bench->client,
                                      &(struct http_call){.method = "GET", .url = bench->url},
                                      idle_ms, on_bytes, on_end, bench);
}

TEST(a_stream_is_told_as_it_comes_and_then_ends)
{
    struct bench bench;
    bench_open(&bench, "/stream");
    bench.stop_after_bytes = 6;
    start_stream(&bench, 5000);
    loop_run(bench.loop);
    CU_ASSERT_STRING_EQUAL(bench.seen.bytes, "[]one ");
    CU_ASSERT_EQUAL(bench.ends, 0);
    bench.stop_after_bytes = 0;
    scripted_chunk(bench.asked, "two");
    scripted_end_stream(bench.asked);
    loop_run(bench.loop);
    CU_ASSERT_STRING_EQUAL(bench.seen.bytes, "[]one two");
    CU_ASSERT_EQUAL(bench.ends, 1);
    CU_ASSERT_EQUAL(bench.status, OK);
    bench_close(&bench);
}

TEST(a_refused_stream_comes_as_one_answer)
{
    struct bench bench;
    bench_open(&bench, "/refuse");
    start_stream(&bench, 5000);
    loop_run(bench.loop);
    CU_ASSERT_PTR_NULL(bench.seen.bytes);
    CU_ASSERT_EQUAL(bench.code, 429);
    CU_ASSERT_STRING_EQUAL(bench.body, "busy");
    bench_close(&bench);
}

TEST(a_stream_without_a_byte_for_its_idle_time_times_out)
{
    struct bench bench;
    bench_open(&bench, "/stream");
    start_stream(&bench, 100);
    loop_run(bench.loop);
    if (bench.ends == 0)
        loop_run(bench.loop);
    CU_ASSERT_STRING_EQUAL(bench.seen.bytes, "[]one ");
    CU_ASSERT_EQUAL(bench.status, ERR_TIMEOUT);
    bench_close(&bench);
}

TEST(a_cut_stream_is_an_error_and_not_an_end)
{
    struct bench bench;
    bench_open(&bench, "/stream");
    bench.stop_after_bytes = 6;
    start_stream(&bench, 5000);
    loop_run(bench.loop);
    scripted_cut(bench.asked);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.status, ERR_IO);
    bench_close(&bench);
}

TEST(a_stream_may_be_dropped_while_it_is_told)
{
    struct bench bench;
    bench_open(&bench, "/stream");
    bench.drop_on_bytes = true;
    start_stream(&bench, 5000);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.ends, 0);
    bench_close(&bench);
}

TEST(the_client_may_be_freed_while_a_stream_is_told)
{
    struct bench bench;
    bench_open(&bench, "/stream");
    bench.free_on_bytes = true;
    start_stream(&bench, 5000);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.ends, 0);
    bench_close(&bench);
}

static void post(struct bench *bench, bool may_reuse)
{
    http_client_start(
        bench->client,
        &(struct http_call){
            .method = "POST", .url = bench->url, .body = view_of("{}"), .may_reuse = may_reuse},
        on_end, bench);
    loop_run(bench->loop);
}

TEST(a_change_may_go_over_a_kept_connection)
{
    struct bench bench;
    bench_open(&bench, "/ok");
    post(&bench, true);
    post(&bench, true);
    CU_ASSERT_EQUAL(bench.server.accepted, 1);
    post(&bench, false);
    CU_ASSERT_EQUAL(bench.server.accepted, 2);
    CU_ASSERT_EQUAL(bench.server.requests, 3);
    bench_close(&bench);
}

TEST(a_change_whose_connection_dies_is_not_sent_again)
{
    struct bench bench;
    bench_open(&bench, "/cut-second");
    post(&bench, true);
    CU_ASSERT_EQUAL(bench.status, OK);
    post(&bench, true);
    CU_ASSERT_EQUAL(bench.status, ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "not sent again"));
    CU_ASSERT_EQUAL(bench.server.requests, 2);
    bench_close(&bench);
}

TEST(a_read_whose_kept_connection_dies_is_sent_again)
{
    struct bench bench;
    bench_open(&bench, "/cut-second");
    for (int i = 0; i < 2; i++) {
        http_client_start(bench.client, &(struct http_call){.method = "GET", .url = bench.url},
                          on_end, &bench);
        loop_run(bench.loop);
        CU_ASSERT_EQUAL(bench.status, OK);
    }
    CU_ASSERT_EQUAL(bench.server.requests, 3);
    bench_close(&bench);
}

TEST(after_a_time_out_no_kept_connection_is_trusted)
{
    struct bench bench;
    char silent[160];
    bench_open(&bench, "/ok");
    post(&bench, true);
    snprintf(silent, sizeof silent, "http://127.0.0.1:%d/silence", bench.server.port);
    http_client_start(bench.client,
                      &(struct http_call){.method = "GET", .url = silent, .timeout_ms = 50}, on_end,
                      &bench);
    http_client_start(bench.client, &(struct http_call){.method = "GET", .url = bench.url}, on_end,
                      &bench);
    while (bench.ends < 3)
        loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.server.accepted, 2);
    post(&bench, true);
    CU_ASSERT_EQUAL(bench.status, OK);
    CU_ASSERT_EQUAL(bench.server.accepted, 3);
    bench_close(&bench);
}

TEST(a_dropped_call_is_not_answered)
{
    struct bench bench;
    bench_open(&bench, "/silence");
    struct http_transfer *call = http_client_start(
        bench.client, &(struct http_call){.method = "GET", .url = bench.url}, on_end, &bench);
    http_transfer_drop(call);
    bench_close(&bench);
    CU_ASSERT_EQUAL(bench.ends, 0);
}

TEST(descriptors_are_closed_in_programs_that_are_started)
{
    struct bench bench;
    bool was_open[256];
    for (int fd = 0; fd < 256; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    bench_open(&bench, "/ok");
    post(&bench, true);
    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        CU_ASSERT(was_open[fd] || flags < 0 || (flags & FD_CLOEXEC) != 0);
    }
    bench_close(&bench);
}

TESTS(T(a_stream_is_told_as_it_comes_and_then_ends), T(a_refused_stream_comes_as_one_answer),
      T(a_stream_without_a_byte_for_its_idle_time_times_out),
      T(a_cut_stream_is_an_error_and_not_an_end), T(a_stream_may_be_dropped_while_it_is_told),
      T(the_client_may_be_freed_while_a_stream_is_told), T(a_change_may_go_over_a_kept_connection),
      T(a_change_whose_connection_dies_is_not_sent_again),
      T(a_read_whose_kept_connection_dies_is_sent_again),
      T(after_a_time_out_no_kept_connection_is_trusted), T(a_dropped_call_is_not_answered),
      T(descriptors_are_closed_in_programs_that_are_started))
