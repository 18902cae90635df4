/* A Kubernetes client before a scripted server, for the tests of this folder. */
#ifndef BROOM_TESTS_UNIT_KUBE_KUBE_BENCH_H
#define BROOM_TESTS_UNIT_KUBE_KUBE_BENCH_H

#include "controller/kube/kube_client.h"
#include "controller/sys/clock.h"
#include "tests/harness/scripted_server.h"

struct kube_bench {
    struct loop *loop;
    struct scripted_server server;
    struct http_client *http;
    struct kube_config *config;
    struct kube_client *client;
    struct loop_timer *deadline, *pause;
    bool is_late;
};

static inline void kube_bench_late(void *context)
{
    struct kube_bench *bench = context;
    CU_FAIL("nothing happened within 20 s");
    bench->is_late = true;
    loop_stop(bench->loop);
}

static inline void kube_bench_woken(void *context)
{
    struct kube_bench *bench = context;
    loop_stop(bench->loop);
}

static inline struct kube_config *kube_bench_config(int port, const char *user)
{
    AUTO_TEXT text = {0};
    struct kube_config *config = NULL;
    text_addf(&text,
              "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
              "users: [{name: u, user: %s}]\n"
              "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n",
              port, user);
    CU_ASSERT_FATAL(
        kube_config_parse((struct view){text.bytes, text.length}, "test", "", &config, NULL) == OK);
    return config;
}

static inline void kube_bench_open(struct kube_bench *bench, const struct kube_limits *limits,
                                   const char *user, scripted_fn *fn, void *context)
{
    clock_init(1, 0, 0);
    *bench = (struct kube_bench){.loop = loop_new()};
    scripted_open(&bench->server, bench->loop, 0, fn, context);
    bench->http = http_client_new(bench->loop);
    bench->config = kube_bench_config(bench->server.port, user);
    bench->client = kube_client_new(bench->loop, bench->http, bench->config, limits);
    bench->deadline = loop_timer_new(bench->loop, kube_bench_late, bench);
    bench->pause = loop_timer_new(bench->loop, kube_bench_woken, bench);
    loop_timer_set(bench->deadline, 20000000000);
}

static inline void kube_bench_close(struct kube_bench *bench)
{
    kube_client_free(bench->client);
    http_client_free(bench->http);
    kube_config_free(bench->config);
    scripted_close(&bench->server);
    loop_timer_free(bench->deadline);
    loop_timer_free(bench->pause);
    loop_free(bench->loop);
}

/* Lets the loop run for a while in which a test expects nothing. */
static inline void kube_bench_run_ms(struct kube_bench *bench, int after_ms)
{
    loop_timer_set(bench->pause, (int64_t)after_ms * 1000000);
    loop_run(bench->loop);
}

/* Runs until *number has reached `least`: looked at every few milliseconds. */
static inline void kube_bench_until(struct kube_bench *bench, const int *number, int least)
{
    while (*number < least && !bench->is_late)
        kube_bench_run_ms(bench, 5);
}

#endif
