#include "controller/io/compress.h"
#include "tests/unit/io/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A server whose route echoes, or keeps the request when the path is /later. */
struct rig {
    struct loop *loop;
    struct http_server *server;
    struct http_request *kept;
    struct http_peer peer;
    int closed;
    int calls;
    size_t body_bytes;
};

static void on_kept_closed(void *context)
{
    struct rig *rig = context;
    rig->closed++;
    rig->kept = NULL;
}

static void route(void *context, struct http_request *request)
{
    struct rig *rig = context;
    rig->calls++;
    rig->peer = *http_request_peer(request);
    rig->body_bytes = http_request_body(request).length;
    if (strcmp(http_request_path(request), "/later") == 0) {
        rig->kept = request;
        http_request_on_close(request, on_kept_closed, rig);
        return;
    }
    if (strcmp(http_request_path(request), "/deaf") == 0) {
        rig->kept = request;
        return;
    }
    AUTO_TEXT answer = {0};
    const char *name = http_request_query(request, "name");
    const char *header = http_request_header(request, "x-test");
    text_addf(&answer, "[%s][%s][%s][%.100s]", http_request_path(request),
              name != NULL ? name : "-", header != NULL ? header : "-",
              http_request_body(request).bytes);
    http_reply_header(request, "X-Rig", "a\r\nb");
    http_reply(request, 200, "text/plain", (struct view){answer.bytes, answer.length});
}

static void rig_open(struct rig *rig, const struct http_limits *limits)
{
    struct http_limits usual = http_limits_default();
    *rig = (struct rig){.loop = loop_new()};
    rig->server = http_server_new(rig->loop, limits != NULL ? limits : &usual, route, rig);
    struct error error;
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig->server, "127.0.0.1:0", NULL, &error), OK);
}

static void rig_close(struct rig *rig)
{
    http_server_free(rig->server);
    loop_free(rig->loop);
}

static void rig_wire(struct rig *rig, struct wire *wire)
{
    wire_open(wire, rig->loop, http_server_port(rig->server));
}

/* Sends bytes on a connection of their own and expects this code and the end of the connection. */
static void assert_refused(struct rig *rig, int code, const char *bytes)
{
    struct wire wire;
    int calls = rig->calls;
    rig_wire(rig, &wire);
    wire_send(&wire, bytes);
    WIRE_UNTIL(rig->loop, wire.ended);
    if (wire_code(&wire) != code)
        printf("\n    instead of %d: %s\n", code, wire.got.bytes);
    CU_ASSERT_EQUAL(wire_code(&wire), code);
    CU_ASSERT_FALSE(wire.reset);
    CU_ASSERT(wire_has(&wire, "Connection: close\r\n"));
    CU_ASSERT(wire_has(&wire, "{\"error\":\""));
    CU_ASSERT_EQUAL(rig->calls, calls);
    wire_close(&wire);
}

TEST(a_request_reaches_its_route_decoded_and_the_connection_stays)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "POST /a%2Fb%20c?x=1&name=d%20e+f HTTP/1.1\r\nHost: a\r\nX-Test:  v w  \r\n"
                     "Content-Length: 5\r\n\r\nhello");
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/a/b c][d e f][v w][hello]"));
    CU_ASSERT_EQUAL(wire_code(&wire), 200);
    CU_ASSERT(wire_has(&wire, "X-Rig: a__b\r\n"));
    CU_ASSERT(wire_has(&wire, "\r\nDate: "));
    CU_ASSERT(rig.peer.is_loopback);
    CU_ASSERT_FALSE(rig.peer.is_unix);
    text_clear(&wire.got);
    wire_send(&wire, "GET /again HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/again]"));
    CU_ASSERT_FALSE(wire.ended);
    wire_close(&wire);
    rig_close(&rig);
}

TEST(a_request_that_comes_byte_by_byte_is_one_request)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    const char *bytes = "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for (; *bytes != '\0'; bytes++) {
        wire_send_bytes(&wire, bytes, 1);
        wire_turn(rig.loop, 0);
    }
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/slow][-][-][abcde]"));
    CU_ASSERT_EQUAL(rig.calls, 1);
    wire_close(&wire);
    rig_close(&rig);
}

TEST(however_the_bytes_are_cut_the_answers_are_the_same)
{
    static const char bytes[] =
        "POST /a?name=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
        "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        "GET /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    uint64_t random = test_seed();
    for (int round = 0; round < test_rounds(50); round++) {
        struct rig rig;
        struct wire wire;
        rig_open(&rig, NULL);
        rig_wire(&rig, &wire);
        for (size_t at = 0; at < sizeof bytes - 1;) {
            size_t left = sizeof bytes - 1 - at, length = 1 + (size_t)(test_random(&random) % 40);
            wire_send_bytes(&wire, bytes + at, length < left ? length : left);
            at += length < left ? length : left;
            wire_turn(rig.loop, 0);
        }
        WIRE_UNTIL(rig.loop, wire.ended);
        CU_ASSERT(wire_has(&wire, "[/a][1][-][hello]HTTP/1.1 200 OK\r\n"));
        CU_ASSERT(wire_has(&wire, "[/b][-][-][abcde]HTTP/1.1 200 OK\r\n"));
        CU_ASSERT(wire_has(&wire, "[/c][-][-][]"));
        wire_close(&wire);
        rig_close(&rig);
    }
}

TEST(pipelined_requests_are_answered_in_order)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(
        &wire,
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: "
        "1\r\n\r\nx"
        "HEAD /3 HTTP/1.1\r\nHost: a\r\n\r\nGET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        "GET /5 HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire.ended);
    const char *one = strstr(wire.got.bytes, "[/1]"), *two = strstr(wire.got.bytes, "[/2]");
    CU_ASSERT(one != NULL && two != NULL && one < two);
    CU_ASSERT_FALSE(wire_has(&wire, "[/3]")); /* HEAD has no body */
    CU_ASSERT(wire_has(&wire, "[/4]"));
    CU_ASSERT_FALSE(wire_has(&wire, "[/5]"));
    CU_ASSERT_EQUAL(rig.calls, 4);
    wire_close(&wire);
    rig_close(&rig);
}

TEST(what_has_two_readings_never_reaches_a_route)
{
    struct rig rig;
    rig_open(&rig, NULL);
    assert_refused(&rig, 400,
                   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx");
    assert_refused(&rig, 400,
                   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_refused(&rig, 400, "GET / HTTP/1.1\r\n\r\n");
    assert_refused(&rig, 400, "GET / HTTP/1.1\nHost: a\n\n");
    assert_refused(&rig, 400, "nonsense\r\n\r\n");
    assert_refused(&rig, 400, "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_refused(&rig, 400, "GET /?a=%00 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_refused(&rig, 400,
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_refused(&rig, 405, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_refused(
        &rig, 415,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\nContent-Length: 0\r\n\r\n");
    assert_refused(&rig, 400, "\x16\x03\x01\x02\xfc");
    CU_ASSERT_EQUAL(http_server_counts(rig.server).refused_guard, 11);
    rig_close(&rig);
}

TEST(limits_hold_on_the_wire)
{
    struct http_limits limits = http_limits_default();
    limits.header_bytes = 200;
    limits.body_bytes = 10;
    struct rig rig;
    rig_open(&rig, &limits);
    AUTO_TEXT big = {0};
    text_add(&big, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    for (int i = 0; i < 300; i++)
        text_add(&big, "x");
    assert_refused(&rig, 431, big.bytes);
    assert_refused(&rig, 413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    assert_refused(&rig, 413,
                   "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n");
    CU_ASSERT_EQUAL(http_server_counts(rig.server).refused_limit, 3);
    rig_close(&rig);
}

TEST(a_client_that_sends_on_after_a_refusal_still_reads_why)
{
    struct http_limits limits = http_limits_default();
    limits.body_bytes = 10;
    struct rig rig;
    struct wire wire;
    rig_open(&rig, &limits);
    rig_wire(&rig, &wire);
    wire_send(&wire, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
    AUTO_FREE char *body = xcalloc(1, 4000000);
    wire_send_bytes(&wire, body, 4000000);
    WIRE_UNTIL(rig.loop, wire.ended);
    CU_ASSERT_EQUAL(wire_code(&wire), 413);
    CU_ASSERT_FALSE(wire.reset);
    wire_close(&wire);
    rig_close(&rig);
}

TEST(bodies_of_all_connections_share_one_budget)
{
    struct http_limits limits = http_limits_default();
    limits.held_bytes = 1000;
    struct rig rig;
    struct wire first;
    rig_open(&rig, &limits);
    rig_wire(&rig, &first);
    AUTO_FREE char *body = xcalloc(1, 900);
    memset(body, 'x', 900);
    wire_send(&first, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
    wire_send_bytes(&first, body, 900);
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    struct wire second;
    rig_wire(&rig, &second);
    wire_send(&second, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
    wire_send_bytes(&second, body, 900);
    WIRE_UNTIL(rig.loop, second.ended);
    CU_ASSERT_EQUAL(wire_code(&second), 503);
    CU_ASSERT(wire_has(&second, "Retry-After: 5\r\n"));
    http_reply(rig.kept, 204, NULL, view_of(NULL));
    WIRE_UNTIL(rig.loop, wire_code(&first) == 204);
    assert_refused(&rig, 400, "nonsense\r\n\r\n");
    text_clear(&first.got);
    wire_send(&first, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
    wire_send_bytes(&first, body, 900);
    WIRE_UNTIL(rig.loop, wire_code(&first) == 200);
    wire_close(&first);
    wire_close(&second);
    rig_close(&rig);
}

/* Sends packed as a gzip body; the code of the answer. */
static int send_gzip(struct rig *rig, struct view packed)
{
    struct wire wire;
    AUTO_TEXT head = {0};
    rig_wire(rig, &wire);
    text_addf(&head,
              "POST /z HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n"
              "Connection: close\r\n\r\n",
              packed.length);
    wire_send(&wire, head.bytes);
    wire_send_bytes(&wire, packed.bytes, packed.length);
    WIRE_UNTIL(rig->loop, wire.ended);
    int code = wire_code(&wire);
    wire_close(&wire);
    return code;
}

TEST(gzip_is_inflated_and_bounded)
{
    struct http_limits limits = http_limits_default();
    limits.inflated_bytes = 100000;
    struct rig rig;
    rig_open(&rig, &limits);
    AUTO_TEXT plain = {0}, packed = {0}, bomb = {0};
    struct error error;
    for (int i = 0; i < 1000; i++)
        text_add(&plain, "line of a hundred bytes or so\n");
    CU_ASSERT_EQUAL_FATAL(gzip_deflate((struct view){plain.bytes, plain.length}, &packed, &error),
                          OK);
    CU_ASSERT_EQUAL(send_gzip(&rig, (struct view){packed.bytes, packed.length}), 200);
    CU_ASSERT_EQUAL(rig.body_bytes, plain.length);
    CU_ASSERT_EQUAL(send_gzip(&rig, (struct view){packed.bytes, packed.length / 2}), 400);
    CU_ASSERT_EQUAL(send_gzip(&rig, view_of("not gzip at all")), 400);
    CU_ASSERT_EQUAL(send_gzip(&rig, view_of("")), 400);
    for (int i = 0; i < 4000; i++)
        text_add(&plain, "line of a hundred bytes or so\n");
    CU_ASSERT_EQUAL_FATAL(gzip_deflate((struct view){plain.bytes, plain.length}, &bomb, &error),
                          OK);
    CU_ASSERT_EQUAL(send_gzip(&rig, (struct view){bomb.bytes, bomb.length}), 413);
    CU_ASSERT_EQUAL(rig.calls, 1);
    rig_close(&rig);
}

TEST(a_client_that_expects_is_told_to_go_on_or_refused_before_it_sends)
{
    struct http_limits limits = http_limits_default();
    limits.body_bytes = 10;
    struct rig rig;
    struct wire wire;
    rig_open(&rig, &limits);
    rig_wire(&rig, &wire);
    wire_send(&wire,
              "POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire_has(&wire, "HTTP/1.1 100 Continue\r\n\r\n"));
    CU_ASSERT_EQUAL(rig.calls, 0);
    wire_send(&wire, "abc");
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/e][-][-][abc]"));
    wire_close(&wire);
    assert_refused(
        &rig, 413,
        "POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
    rig_close(&rig);
}

TEST(slow_heads_slow_bodies_and_silence_end_in_time)
{
    struct http_limits limits = http_limits_default();
    limits.header_ms = 60;
    limits.request_ms = 120;
    limits.idle_ms = 80;
    struct rig rig;
    struct wire silent, head, body, idle;
    rig_open(&rig, &limits);
    rig_wire(&rig, &silent);
    rig_wire(&rig, &head);
    rig_wire(&rig, &body);
    rig_wire(&rig, &idle);
    wire_send(&idle, "GET /i HTTP/1.1\r\nHost: a\r\n\r\n");
    wire_send(&body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 100 && !head.ended; i++) { /* a byte now and then does not help */
        wire_send(&head, "G");
        if (!body.ended)
            wire_send(&body, "x");
        wire_turn(rig.loop, 5);
    }
    WIRE_UNTIL(rig.loop, silent.ended && head.ended && body.ended && idle.ended);
    CU_ASSERT_EQUAL(silent.got.length, 0);
    CU_ASSERT_EQUAL(wire_code(&head), 408);
    CU_ASSERT_EQUAL(wire_code(&body), 408);
    CU_ASSERT_EQUAL(wire_code(&idle), 200);
    CU_ASSERT_EQUAL(http_server_counts(rig.server).timed_out, 2);
    wire_close(&silent);
    wire_close(&head);
    wire_close(&body);
    wire_close(&idle);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 0);
    rig_close(&rig);
}

TEST(a_half_closed_client_gets_its_answer)
{
    struct rig rig;
    struct wire wire, cut;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(wire.fd, SHUT_WR);
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    wire_turn(rig.loop, 5);
    CU_ASSERT_EQUAL(rig.closed, 0);
    http_reply(rig.kept, 200, "text/plain", view_of("here"));
    WIRE_UNTIL(rig.loop, wire.ended);
    CU_ASSERT(wire_has(&wire, "\r\n\r\nhere"));
    wire_close(&wire);
    rig_wire(&rig, &cut);
    wire_send(&cut, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhal");
    shutdown(cut.fd, SHUT_WR);
    WIRE_UNTIL(rig.loop, cut.ended);
    CU_ASSERT_EQUAL(wire_code(&cut), 400);
    wire_close(&cut);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 0);
    rig_close(&rig);
}

static void reset(struct wire *wire)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    wire_close(wire);
}

TEST(a_client_that_is_gone_before_the_answer_is_told_to_the_route)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    reset(&wire);
    WIRE_UNTIL(rig.loop, rig.closed == 1);
    CU_ASSERT_EQUAL(http_server_counts(rig.server).connections_now, 0);
    rig_close(&rig);
}

TEST(a_route_that_does_not_listen_may_answer_a_client_that_is_gone)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "GET /deaf HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    reset(&wire);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 0);
    http_reply_error(rig.kept, 500, "nobody reads %s", "this");
    rig_close(&rig);
}

TEST(a_server_that_ends_tells_waiting_routes)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    http_server_free(TAKE(rig.server));
    CU_ASSERT_EQUAL(rig.closed, 1);
    wire_close(&wire);
    loop_free(rig.loop);
}

TEST(beyond_the_connection_cap_a_client_is_told_to_come_back)
{
    struct http_limits limits = http_limits_default();
    limits.connections = 2;
    struct rig rig;
    struct wire first, second;
    rig_open(&rig, &limits);
    rig_wire(&rig, &first);
    rig_wire(&rig, &second);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 2);
    struct wire third;
    rig_wire(&rig, &third);
    wire_send(&third, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, third.ended);
    CU_ASSERT_EQUAL(wire_code(&third), 503);
    CU_ASSERT(wire_has(&third, "Retry-After: "));
    CU_ASSERT_EQUAL(rig.calls, 0);
    wire_close(&third);
    wire_close(&first);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 1);
    rig_wire(&rig, &third);
    wire_send(&third, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire_code(&third) == 200);
    wire_close(&third);
    wire_close(&second);
    rig_close(&rig);
}

/* The limit that a failed assertion must not leave behind. */
TEST(running_out_of_descriptors_only_delays_the_next_client)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    struct rlimit usual;
    getrlimit(RLIMIT_NOFILE, &usual);
    int lowest = dup(wire.fd);
    close(lowest);
    setrlimit(RLIMIT_NOFILE,
              &(struct rlimit){.rlim_cur = (rlim_t)lowest, .rlim_max = usual.rlim_max});
    wire_send(&wire, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    wire_turn(rig.loop, 20);
    CU_ASSERT_EQUAL(rig.calls, 0);
    setrlimit(RLIMIT_NOFILE, &usual);
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/x]"));
    wire_close(&wire);
    rig_close(&rig);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    text_copy(address.sun_path, sizeof address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

TEST(the_unix_socket_proves_who_speaks_and_replaces_only_stale_files)
{
    struct rig rig;
    struct error error;
    rig_open(&rig, NULL);
    char folder[] = "/tmp/broom_test_XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    AUTO_TEXT path = {0}, address = {0};
    text_addf(&path, "%s/broomd.sock", folder);
    text_addf(&address, "unix:%s", path.bytes);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig.server, address.bytes, NULL, &error), OK);
    struct stat info;
    CU_ASSERT_EQUAL(stat(path.bytes, &info), 0);
    CU_ASSERT_EQUAL(info.st_mode & 0777, 0660);
    struct wire wire;
    wire_attach(&wire, rig.loop, connect_unix(path.bytes));
    wire_send(&wire, "GET /u HTTP/1.1\r\nHost: broomd\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire_has(&wire, "[/u]"));
    CU_ASSERT(rig.peer.is_unix);
    CU_ASSERT_EQUAL(rig.peer.uid, geteuid());
    CU_ASSERT_STRING_EQUAL(rig.peer.address, "unix");
    CU_ASSERT_EQUAL(http_server_listen(rig.server, address.bytes, NULL, &error), ERR_CONFLICT);
    wire_close(&wire);
    http_server_free(TAKE(rig.server));
    CU_ASSERT_NOT_EQUAL(stat(path.bytes, &info), 0);
    /* A file that a killed process left behind. */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un stale = {.sun_family = AF_UNIX};
    text_copy(stale.sun_path, sizeof stale.sun_path, path.bytes);
    CU_ASSERT_EQUAL(bind(fd, (const struct sockaddr *)&stale, sizeof stale), 0);
    close(fd);
    struct http_limits limits = http_limits_default();
    rig.server = http_server_new(rig.loop, &limits, route, &rig);
    CU_ASSERT_EQUAL(http_server_listen(rig.server, address.bytes, NULL, &error), OK);
    rig_close(&rig);
    rmdir(folder);
}

TEST(an_address_that_is_not_one_is_refused_and_a_taken_one_is_a_conflict)
{
    static const char *const bad[] = {"",          "7430",        "broomd.example:7430",
                                      "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536",
                                      "::1:7430x", "[::1]",       "[::1:7430"};
    struct rig rig;
    struct error error;
    rig_open(&rig, NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(http_server_listen(rig.server, bad[i], NULL, &error), ERR_INVALID);
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d", http_server_port(rig.server));
    CU_ASSERT_EQUAL(http_server_listen(rig.server, taken, NULL, &error), ERR_CONFLICT);
    CU_ASSERT(strstr(error.message, taken) != NULL);
    rig_close(&rig);
}

static int open_descriptors_without_cloexec(void)
{
    int count = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        struct stat info;
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && fstat(fd, &info) == 0 &&
            S_ISSOCK(info.st_mode))
            count++;
    }
    return count;
}

TEST(no_socket_of_the_server_is_inherited_by_a_child)
{
    int before = open_descriptors_without_cloexec();
    struct rig rig;
    struct wire wire;
    rig_open(&rig, NULL);
    rig_wire(&rig, &wire);
    wire_send(&wire, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, rig.kept != NULL);
    CU_ASSERT_EQUAL(open_descriptors_without_cloexec(), before);
    wire_close(&wire);
    rig_close(&rig);
}

TESTS(T(a_request_reaches_its_route_decoded_and_the_connection_stays),
      T(a_request_that_comes_byte_by_byte_is_one_request),
      T(however_the_bytes_are_cut_the_answers_are_the_same),
      T(pipelined_requests_are_answered_in_order), T(what_has_two_readings_never_reaches_a_route),
      T(limits_hold_on_the_wire), T(a_client_that_sends_on_after_a_refusal_still_reads_why),
      T(bodies_of_all_connections_share_one_budget), T(gzip_is_inflated_and_bounded),
      T(a_client_that_expects_is_told_to_go_on_or_refused_before_it_sends),
      T(slow_heads_slow_bodies_and_silence_end_in_time), T(a_half_closed_client_gets_its_answer),
      T(a_client_that_is_gone_before_the_answer_is_told_to_the_route),
      T(a_route_that_does_not_listen_may_answer_a_client_that_is_gone),
      T(a_server_that_ends_tells_waiting_routes),
      T(beyond_the_connection_cap_a_client_is_told_to_come_back),
      T(running_out_of_descriptors_only_delays_the_next_client),
      T(the_unix_socket_proves_who_speaks_and_replaces_only_stale_files),
      T(an_address_that_is_not_one_is_refused_and_a_taken_one_is_a_conflict),
      T(no_socket_of_the_server_is_inherited_by_a_child))
