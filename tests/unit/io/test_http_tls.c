#include "controller/io/http_client.h"
#include "controller/io/http_server.h"
#include "tests/unit/io/certificates.h"
#include "tests/unit/io/wire.h"

struct rig {
    struct certificates files;
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    struct http_peer peer;
    int calls;
    bool answered;
    enum status status;
    int code;
    size_t body_bytes;
};

static void route(void *context, struct http_request *request)
{
    struct rig *rig = context;
    rig->calls++;
    rig->peer = *http_request_peer(request);
    rig->body_bytes = http_request_body(request).length;
    http_reply(request, 200, "text/plain", http_request_body(request));
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct rig *rig = context;
    rig->answered = true;
    rig->status = answer->status;
    rig->code = answer->code;
    if (answer->status == OK)
        CU_ASSERT_EQUAL(answer->body.length, rig->body_bytes);
}

static struct http_tls server_files(const struct rig *rig, bool asks, bool required)
{
    return (struct http_tls){.certificate_file = rig->files.server,
                             .key_file = rig->files.server_key,
                             .client_ca_file = asks ? rig->files.ca : NULL,
                             .client_required = required};
}

static void rig_open(struct rig *rig, bool asks, bool required)
{
    struct http_limits limits = http_limits_default();
    struct error error = {0};
    *rig = (struct rig){0};
    certificates_make(&rig->files);
    rig->loop = loop_new();
    rig->client = http_client_new(rig->loop);
    rig->server = http_server_new(rig->loop, &limits, route, rig);
    struct http_tls tls = server_files(rig, asks, required);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig->server, "127.0.0.1:0", &tls, &error), OK);
}

static void rig_close(struct rig *rig)
{
    http_client_free(rig->client);
    http_server_free(rig->server);
    loop_free(rig->loop);
    certificates_done(&rig->files);
}

static void call(struct rig *rig, const char *certificate, const char *key, struct view body)
{
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/t", http_server_port(rig->server));
    rig->answered = false;
    http_client_start(rig->client,
                      &(struct http_call){.method = "POST",
                                          .url = url,
                                          .body = body,
                                          .ca_file = rig->files.ca,
                                          .certificate_file = certificate,
                                          .key_file = key},
                      on_answer, rig);
    WIRE_UNTIL(rig->loop, rig->answered);
}

TEST(the_name_in_a_verified_client_certificate_is_the_peer)
{
    struct rig rig;
    rig_open(&rig, true, false);
    call(&rig, rig.files.client, rig.files.client_key, view_of("x"));
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT_STRING_EQUAL(rig.peer.certificate_cn, "llm-17");
    CU_ASSERT(rig.peer.is_tls);
    call(&rig, NULL, NULL, view_of("x"));
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT_STRING_EQUAL(rig.peer.certificate_cn, "");
    rig_close(&rig);
}

TEST(a_certificate_of_another_ca_is_refused_and_so_is_none_where_one_is_required)
{
    struct rig rig;
    rig_open(&rig, true, true);
    call(&rig, rig.files.stranger, rig.files.stranger_key, view_of("x"));
    CU_ASSERT_NOT_EQUAL(rig.status, OK);
    call(&rig, NULL, NULL, view_of("x"));
    CU_ASSERT_NOT_EQUAL(rig.status, OK);
    CU_ASSERT_EQUAL(rig.calls, 0);
    call(&rig, rig.files.client, rig.files.client_key, view_of("x"));
    CU_ASSERT_EQUAL(rig.code, 200);
    rig_close(&rig);
}

TEST(a_body_of_megabytes_goes_both_ways)
{
    struct rig rig;
    rig_open(&rig, false, false);
    size_t bytes = 5000000;
    AUTO_FREE char *body = xcalloc(1, bytes);
    memset(body, 'b', bytes);
    call(&rig, NULL, NULL, (struct view){body, bytes});
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT_EQUAL(rig.body_bytes, bytes);
    rig_close(&rig);
}

TEST(plain_http_to_a_tls_port_ends_without_a_route)
{
    struct rig rig;
    struct wire wire;
    rig_open(&rig, false, false);
    wire_open(&wire, rig.loop, http_server_port(rig.server));
    wire_send(&wire, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    WIRE_UNTIL(rig.loop, wire.ended);
    CU_ASSERT_EQUAL(rig.calls, 0);
    wire_close(&wire);
    wire_open(&wire, rig.loop, http_server_port(rig.server)); /* leaves inside the handshake */
    wire_send_bytes(&wire, "\x16\x03\x01\x02", 4);
    wire_turn(rig.loop, 2);
    wire_close(&wire);
    WIRE_UNTIL(rig.loop, http_server_counts(rig.server).connections_now == 0);
    rig_close(&rig);
}

TEST(old_tls_is_not_spoken)
{
    struct rig rig;
    rig_open(&rig, false, false);
    AUTO_TEXT script = {0};
    text_addf(&script,
              "/usr/bin/timeout 5 /usr/bin/openssl s_client -connect 127.0.0.1:%d -tls1_1"
              " -cipher ALL:@SECLEVEL=0 </dev/null",
              http_server_port(rig.server));
    CU_ASSERT_FALSE(certificates_run("/tmp", script.bytes));
    rig_close(&rig);
}

TEST(certificates_are_read_again_or_kept_whole)
{
    struct rig rig;
    struct error error = {0};
    rig_open(&rig, false, false);
    CU_ASSERT(
        certificates_run(rig.files.folder, "/bin/cp server.key keep.key; echo broken >server.key"));
    CU_ASSERT_EQUAL(http_server_reload_tls(rig.server, &error), ERR_INVALID);
    CU_ASSERT(strstr(error.message, "server.key") != NULL);
    call(&rig, NULL, NULL, view_of("x"));
    CU_ASSERT_EQUAL(rig.status, OK);
    CU_ASSERT(certificates_run(rig.files.folder, "/bin/cp keep.key server.key"));
    CU_ASSERT_EQUAL(http_server_reload_tls(rig.server, &error), OK);
    call(&rig, NULL, NULL, view_of("x"));
    CU_ASSERT_EQUAL(rig.status, OK);
    rig_close(&rig);
}

TEST(a_key_that_is_not_the_certificates_is_refused_at_start)
{
    struct rig rig;
    struct error error = {0};
    rig_open(&rig, false, false);
    struct http_tls tls = server_files(&rig, false, false);
    tls.key_file = rig.files.client_key;
    CU_ASSERT_EQUAL(http_server_listen(rig.server, "127.0.0.1:0", &tls, &error), ERR_INVALID);
    CU_ASSERT(strstr(error.message, "client.key") != NULL);
    tls = server_files(&rig, true, false);
    tls.client_ca_file = "/nowhere/ca.pem";
    CU_ASSERT_EQUAL(http_server_listen(rig.server, "127.0.0.1:0", &tls, &error), ERR_INVALID);
    CU_ASSERT(strstr(error.message, "/nowhere/ca.pem") != NULL);
    rig_close(&rig);
}

TESTS(T(the_name_in_a_verified_client_certificate_is_the_peer),
      T(a_certificate_of_another_ca_is_refused_and_so_is_none_where_one_is_required),
      T(a_body_of_megabytes_goes_both_ways), T(plain_http_to_a_tls_port_ends_without_a_route),
      T(old_tls_is_not_spoken), T(certificates_are_read_again_or_kept_whole),
      T(a_key_that_is_not_the_certificates_is_refused_at_start))
