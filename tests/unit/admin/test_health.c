#include "controller/admin/health.h"
#include "tests/unit/io/wire.h"

#include <stdio.h>
#include <stdlib.h>

struct rig {
    struct loop *loop;
    struct http_server *server;
    struct metrics *metrics;
    struct health *health;
    int refreshed;
    char answer[8192];
};

static void refresh(void *context)
{
    struct rig *rig = context;
    rig->refreshed++;
    metrics_set(rig->metrics, METRIC_JOBS, NULL, rig->refreshed);
}

static void rig_open(struct rig *rig)
{
    struct http_limits limits = http_limits_default();
    struct error error;
    *rig = (struct rig){.loop = loop_new(), .metrics = metrics_new()};
    rig->health = health_new(rig->metrics, refresh, rig);
    rig->server = http_server_new(rig->loop, &limits, health_route, rig->health);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(rig->server, "127.0.0.1:0", NULL, &error), OK);
}

static void rig_close(struct rig *rig)
{
    http_server_free(rig->server);
    health_free(rig->health);
    metrics_free(rig->metrics);
    loop_free(rig->loop);
}

/* The code of the answer to METHOD PATH; the answer stays in rig->answer. */
static int ask(struct rig *rig, const char *method, const char *path)
{
    struct wire wire;
    AUTO_TEXT bytes = {0};
    text_addf(&bytes, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method, path);
    wire_open(&wire, rig->loop, http_server_port(rig->server));
    wire_send(&wire, bytes.bytes);
    WIRE_UNTIL(rig->loop, wire.ended);
    text_copy(rig->answer, sizeof rig->answer, wire.got.bytes);
    int code = wire_code(&wire);
    wire_close(&wire);
    return code;
}

TEST(a_daemon_is_alive_before_it_is_ready)
{
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/livez"), 200);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/readyz"), 503);
    CU_ASSERT(strstr(rig.answer, "[-]life: starting\nnot ready\n") != NULL);
    CU_ASSERT(strstr(rig.answer, "Retry-After: ") != NULL);
    health_started(rig.health);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/readyz"), 200);
    health_stopping(rig.health);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/readyz"), 503);
    rig_close(&rig);
}

TEST(one_failed_check_is_named_with_its_reason_and_a_warning_is_still_ready)
{
    struct rig rig;
    rig_open(&rig);
    health_started(rig.health);
    health_set(rig.health, "database", HEALTH_FAILED, "connection refused");
    health_set(rig.health, "replication", HEALTH_WARN, "commits do not wait for a standby");
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/readyz"), 503);
    CU_ASSERT(strstr(rig.answer, "\r\n\r\n[-]database: connection refused\nnot ready\n") != NULL);
    health_set(rig.health, "database", HEALTH_OK, NULL);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/readyz?verbose"), 200);
    CU_ASSERT(strstr(rig.answer,
                     "[+]life ok\n[+]database ok\n[!]replication: commits do not wait for a "
                     "standby\nready\n") != NULL);
    CU_ASSERT(rig.refreshed >= 2);
    rig_close(&rig);
}

TEST(other_paths_and_methods_are_told_what_is_here)
{
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/"), 404);
    CU_ASSERT(strstr(rig.answer, "/metrics") != NULL);
    CU_ASSERT_EQUAL(ask(&rig, "POST", "/livez"), 405);
    CU_ASSERT(strstr(rig.answer, "Allow: GET, HEAD\r\n") != NULL);
    CU_ASSERT_EQUAL(ask(&rig, "HEAD", "/livez"), 200);
    rig_close(&rig);
}

TEST(metrics_are_fresh_and_of_the_right_type)
{
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/metrics"), 200);
    CU_ASSERT(strstr(rig.answer, "Content-Type: text/plain; version=0.0.4") != NULL);
    CU_ASSERT(strstr(rig.answer, "\nbroom_jobs 1\n") != NULL);
    CU_ASSERT_EQUAL(ask(&rig, "GET", "/metrics"), 200);
    CU_ASSERT(strstr(rig.answer, "\nbroom_jobs 2\n") != NULL);
    rig_close(&rig);
}

TESTS(T(a_daemon_is_alive_before_it_is_ready),
      T(one_failed_check_is_named_with_its_reason_and_a_warning_is_still_ready),
      T(other_paths_and_methods_are_told_what_is_here), T(metrics_are_fresh_and_of_the_right_type))
