/* Named checks and the three paths that tell of them. */
#include "controller/admin/health.h"

#include <assert.h>
#include <string.h>

struct check {
    const char *name;
    enum health_state state;
    char reason[256];
};

struct health {
    struct metrics *metrics;
    loop_fn *refresh;
    void *context;
    struct check checks[HEALTH_CHECKS_MAX];
    size_t count;
};

static const char LIFE[] = "life"; /* the check that is there from the first moment on */

struct health *health_new(struct metrics *metrics, loop_fn *refresh, void *context)
{
    struct health *health = xcalloc(1, sizeof *health);
    health->metrics = metrics;
    health->refresh = refresh;
    health->context = context;
    health_set(health, LIFE, HEALTH_FAILED, "starting");
    return health;
}

void health_free(struct health *health)
{
    xfree(health);
}

void health_started(struct health *health)
{
    health_set(health, LIFE, HEALTH_OK, NULL);
}

void health_stopping(struct health *health)
{
    health_set(health, LIFE, HEALTH_FAILED, "stopping");
}

static struct check *find_check(struct health *health, const char *name)
{
    for (size_t i = 0; i < health->count; i++)
        if (strcmp(health->checks[i].name, name) == 0)
            return &health->checks[i];
    assert(health->count < HEALTH_CHECKS_MAX);
    health->checks[health->count].name = name;
    return &health->checks[health->count++];
}

void health_set(struct health *health, const char *name, enum health_state state,
                const char *reason)
{
    struct check *check = find_check(health, name);
    check->state = state;
    text_copy(check->reason, sizeof check->reason, reason != NULL ? reason : "");
}

static bool is_ready_now(const struct health *health)
{
    for (size_t i = 0; i < health->count; i++)
        if (health->checks[i].state == HEALTH_FAILED)
            return false;
    return true;
}

static void add_check(struct text *out, const struct check *check)
{
    static const char *const marks[] = {
        [HEALTH_OK] = "[+]", [HEALTH_WARN] = "[!]", [HEALTH_FAILED] = "[-]"};
    text_addf(out, "%s%s", marks[check->state], check->name);
    text_addf(out, check->reason[0] != '\0' ? ": %s\n" : " ok%s\n", check->reason);
}

static void reply_ready(struct health *health, struct http_request *request)
{
    bool is_ready = is_ready_now(health);
    bool is_verbose = http_request_query(request, "verbose") != NULL;
    AUTO_TEXT body = {0};
    for (size_t i = 0; i < health->count; i++)
        if (is_verbose || health->checks[i].state == HEALTH_FAILED)
            add_check(&body, &health->checks[i]);
    text_add(&body, is_ready ? "ready\n" : "not ready\n");
    if (!is_ready)
        http_reply_header(request, "Retry-After", "5");
    http_reply(request, is_ready ? 200 : 503, "text/plain; charset=utf-8",
               (struct view){body.bytes, body.length});
}

static void reply_metrics(struct health *health, struct http_request *request)
{
    AUTO_TEXT body = {0};
    metrics_print(health->metrics, &body);
    http_reply(request, 200, "text/plain; version=0.0.4; charset=utf-8",
               (struct view){body.bytes, body.length});
}

static void refresh(struct health *health)
{
    if (health->refresh != NULL)
        health->refresh(health->context);
}

void health_route(void *context, struct http_request *request)
{
    struct health *health = context;
    const char *path = http_request_path(request);
    enum http_method method = http_request_method(request);
    if (method != HTTP_GET && method != HTTP_HEAD) {
        http_reply_header(request, "Allow", "GET, HEAD");
        http_reply_error(request, 405, "this path takes GET");
    } else if (strcmp(path, "/livez") == 0) {
        http_reply(request, 200, "text/plain; charset=utf-8", view_of("alive\n"));
    } else if (strcmp(path, "/readyz") == 0) {
        refresh(health);
        reply_ready(health, request);
    } else if (strcmp(path, "/metrics") == 0) {
        refresh(health);
        reply_metrics(health, request);
    } else {
        http_reply_error(request, 404, "here are /livez, /readyz and /metrics");
    }
}
