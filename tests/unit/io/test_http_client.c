#include "controller/io/http_client.h"
#include "controller/io/http_server.h"
#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rig {
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    char url[64];
    int answers;
    int wanted;
    enum status status;
    int code;
    char body[128];
    char reason[256];
    char seen[512];
    bool free_client;
    struct http_request *kept; /* the request that no answer is given to */
};

static void route(void *context, struct http_request *request)
{
    static const char *const methods[HTTP_METHOD_COUNT] = {"GET", "HEAD", "POST", "PUT", "DELETE"};
    struct rig *rig = context;
    const char *token = http_request_header(request, "Authorization");
    const char *type = http_request_header(request, "Content-Type");
    const char *extra = http_request_header(request, "X-Extra");
    snprintf(rig->seen, sizeof rig->seen, "%s %s %s %s %s %.60s",
             methods[http_request_method(request)], http_request_path(request),
             token != NULL ? token : "-", type != NULL ? type : "-", extra != NULL ? extra : "-",
             http_request_body(request).bytes);
    if (strcmp(http_request_path(request), "/never") == 0) {
        rig->kept = request;
        return;
    }
    int code = strcmp(http_request_path(request), "/404") == 0 ? 404 : 200;
    http_reply(request, code, "text/plain", view_of("answer"));
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct rig *rig = context;
    rig->answers++;
    rig->status = answer->status;
    rig->code = answer->code;
    snprintf(rig->body, sizeof rig->body, "%.*s", (int)answer->body.length,
             answer->body.bytes != NULL ? answer->body.bytes : "");
    text_copy(rig->reason, sizeof rig->reason, answer->reason != NULL ? answer->reason : "");
    CU_ASSERT(answer->took_ns >= 0);
    if (rig->free_client)
        http_client_free(TAKE(rig->client));
    if (rig->answers == rig->wanted)
        loop_stop(rig->loop);
}

static void rig_open(struct rig *rig)
{
    struct http_limits limits = http_limits_default();
    struct error error;
    *rig = (struct rig){.loop = loop_new(), .wanted = 1};
    rig->server = http_server_new(rig->loop, &limits, route, rig);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig->server, "127.0.0.1:0", NULL, &error), OK);
    rig->client = http_client_new(rig->loop);
    snprintf(rig->url, sizeof rig->url, "http://127.0.0.1:%d/path", http_server_port(rig->server));
}

static void rig_close(struct rig *rig)
{
    http_client_free(rig->client);
    http_server_free(rig->server);
    loop_free(rig->loop);
}

static void run_call(struct rig *rig, const struct http_call *call)
{
    rig->answers = 0;
    http_client_start(rig->client, call, on_answer, rig);
    CU_ASSERT_EQUAL(rig->answers, 0); /* never from inside the start */
    loop_run(rig->loop);
    CU_ASSERT_EQUAL(rig->answers, rig->wanted);
}

TEST(a_call_carries_method_body_token_and_headers)
{
    struct rig rig;
    rig_open(&rig);
    static const char *const extra[] = {"X-Extra: more", NULL};
    run_call(&rig, &(struct http_call){.method = "POST",
                                       .url = rig.url,
                                       .body = view_of("{\"a\":1}"),
                                       .bearer_token = "secret",
                                       .headers = extra});
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT_EQUAL(rig.code, 200);
    CU_ASSERT_STRING_EQUAL(rig.body, "answer");
    CU_ASSERT_STRING_EQUAL(rig.seen, "POST /path Bearer secret application/json more {\"a\":1}");
    run_call(&rig, &(struct http_call){.method = "GET", .url = rig.url});
    CU_ASSERT_STRING_EQUAL(rig.seen, "GET /path - - - ");
    run_call(&rig, &(struct http_call){.method = "DELETE", .url = rig.url});
    CU_ASSERT_STRING_EQUAL(rig.seen, "DELETE /path - - - ");
    run_call(&rig, &(struct http_call){.method = "POST", .url = rig.url});
    CU_ASSERT_STRING_EQUAL(rig.seen, "POST /path - application/x-www-form-urlencoded - ");
    run_call(&rig, &(struct http_call){.method = "HEAD", .url = rig.url});
    CU_ASSERT_EQUAL(rig.code, 200);
    CU_ASSERT_STRING_EQUAL(rig.body, "");
    rig_close(&rig);
}

TEST(an_answer_of_any_code_is_an_answer)
{
    struct rig rig;
    rig_open(&rig);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/404", http_server_port(rig.server));
    run_call(&rig, &(struct http_call){.method = "GET", .url = url});
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT_EQUAL(rig.code, 404);
    rig_close(&rig);
}

TEST(calls_run_side_by_side)
{
    struct rig rig;
    rig_open(&rig);
    rig.wanted = 20;
    for (int i = 0; i < rig.wanted; i++)
        http_client_start(rig.client, &(struct http_call){.method = "GET", .url = rig.url},
                          on_answer, &rig);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.answers, 20);
    CU_ASSERT_EQUAL(rig.status, OK);
    rig_close(&rig);
}

/* A port that was free a moment ago. */
static int closed_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bind(fd, (const struct sockaddr *)&address, length);
    getsockname(fd, (struct sockaddr *)&address, &length);
    close(fd);
    return ntohs(address.sin_port);
}

TEST(nothing_sent_and_perhaps_done_are_told_apart)
{
    struct rig rig;
    char url[64];
    rig_open(&rig);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", closed_port());
    run_call(&rig, &(struct http_call){.method = "POST", .url = url});
    CU_ASSERT_EQUAL(rig.status, ERR_UNREACHABLE);
    CU_ASSERT(rig.reason[0] != '\0');
    run_call(&rig, &(struct http_call){.method = "GET", .url = "http://name.invalid/"});
    CU_ASSERT_EQUAL(rig.status, ERR_UNREACHABLE);
    run_call(&rig, &(struct http_call){.method = "GET", .url = "file:///etc/passwd"});
    CU_ASSERT_EQUAL(rig.status, ERR_UNREACHABLE);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/never", http_server_port(rig.server));
    run_call(&rig, &(struct http_call){.method = "POST", .url = url, .timeout_ms = 50});
    CU_ASSERT_EQUAL(rig.status, ERR_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rig.kept);
    http_reply(rig.kept, 200, NULL, view_of(NULL));
    rig_close(&rig);
}

TEST(an_answer_beyond_the_bound_is_an_error)
{
    struct rig rig;
    rig_open(&rig);
    run_call(&rig, &(struct http_call){.method = "GET", .url = rig.url, .answer_bytes_max = 5});
    CU_ASSERT_EQUAL(rig.status, ERR_IO);
    CU_ASSERT(strstr(rig.reason, "larger") != NULL);
    run_call(&rig, &(struct http_call){.method = "GET", .url = rig.url, .answer_bytes_max = 6});
    CU_ASSERT_EQUAL(rig.status, OK);
    rig_close(&rig);
}

TEST(an_answer_may_free_the_client_and_drops_the_other_calls)
{
    struct rig rig;
    rig_open(&rig);
    rig.free_client = true;
    for (int i = 0; i < 5; i++)
        http_client_start(rig.client, &(struct http_call){.method = "GET", .url = rig.url},
                          on_answer, &rig);
    loop_run(rig.loop);
    CU_ASSERT_EQUAL(rig.answers, 1);
    rig_close(&rig);
}

TEST(a_unix_socket_is_spoken_to)
{
    struct rig rig;
    struct error error;
    rig_open(&rig);
    char folder[] = "/tmp/broom_test_XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    AUTO_TEXT path = {0}, address = {0};
    text_addf(&path, "%s/s", folder);
    text_addf(&address, "unix:%s", path.bytes);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig.server, address.bytes, NULL, &error), OK);
    run_call(&rig, &(struct http_call){
                       .method = "GET", .url = "http://broomd/u", .unix_socket = path.bytes});
    CU_ASSERT_EQUAL(rig.code, 200);
    rig_close(&rig);
    rmdir(folder);
}

TEST(a_waiting_call_gives_the_reason_when_nobody_is_there)
{
    char url[64];
    int code;
    AUTO_FREE char *body = NULL;
    size_t bytes;
    struct error error = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", closed_port());
    CU_ASSERT_EQUAL(http_call_wait(&(struct http_call){.method = "GET", .url = url}, &code, &body,
                                   &bytes, &error),
                    ERR_UNREACHABLE);
    CU_ASSERT(strstr(error.message, "onnect") != NULL);
}

TESTS(T(a_call_carries_method_body_token_and_headers), T(an_answer_of_any_code_is_an_answer),
      T(calls_run_side_by_side), T(nothing_sent_and_perhaps_done_are_told_apart),
      T(an_answer_beyond_the_bound_is_an_error),
      T(an_answer_may_free_the_client_and_drops_the_other_calls), T(a_unix_socket_is_spoken_to),
      T(a_waiting_call_gives_the_reason_when_nobody_is_there))
