/* A Kubernetes client for tests, in place of controller/kube: an object a path, answers that a test
 * puts before the usual ones, and watches whose events are the test's. It also stands for the node
 * cache: a node is ready unless the test says that it is down. Answers come from the loop.
 */
#ifndef BROOM_TESTS_ACTUATORS_FAKE_KUBE_H
#define BROOM_TESTS_ACTUATORS_FAKE_KUBE_H

#include "controller/kube/kube_watch.h"
#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

enum { FAKE_MAX = 64 };

struct fake_object {
    char path[256];
    char *json; /* owned; NULL when free */
};

struct fake_answer {
    const char *method, *path; /* path: how it begins */
    enum kube_result result;
    const char *message;
};

struct fake_call {
    char method[8], path[256], body[2048];
};

struct kube_client {
    struct loop *loop;
    struct fake_object objects[FAKE_MAX];
    struct fake_answer answers[FAKE_MAX];
    size_t answer_count;
    struct fake_call calls[FAKE_MAX * 4]; /* writes, in order */
    size_t call_count;
    size_t reads;
    struct kube_watch *watches[16];
    size_t watch_count;
    /* After each write that was taken: what controllers do about it. */
    void (*on_write)(struct kube_client *client, const struct fake_call *call);
};

struct kube_watch {
    struct kube_watch_params params;
    char path[256];
};

struct kube_request {
    struct kube_client *client;
    struct loop_timer *timer;
    struct fake_call call;
    kube_answer_fn *fn;
    void *context;
};

/* --- what a test does --- */

static struct fake_object *fake_find(struct kube_client *client, const char *path)
{
    for (size_t i = 0; i < FAKE_MAX; i++)
        if (client->objects[i].json != NULL && strcmp(client->objects[i].path, path) == 0)
            return &client->objects[i];
    return NULL;
}

static void fake_remove(struct kube_client *client, const char *path)
{
    struct fake_object *object = fake_find(client, path);
    if (object != NULL) {
        xfree(object->json);
        object->json = NULL;
    }
}

static void fake_set(struct kube_client *client, const char *path, const char *json)
{
    fake_remove(client, path);
    for (size_t i = 0; i < FAKE_MAX; i++)
        if (client->objects[i].json == NULL) {
            text_copy(client->objects[i].path, sizeof client->objects[i].path, path);
            client->objects[i].json = xstrdup(json);
            return;
        }
    CU_FAIL_FATAL("too many objects");
}

/* The next call of this method whose path begins so is answered like this. */
static inline void fake_answer_next(struct kube_client *client, const char *method,
                                    const char *path, enum kube_result result, const char *message)
{
    client->answers[client->answer_count++] = (struct fake_answer){method, path, result, message};
}

static struct kube_watch *fake_watch(struct kube_client *client, const char *path)
{
    for (size_t i = 0; i < client->watch_count; i++)
        if (strcmp(client->watches[i]->path, path) == 0)
            return client->watches[i];
    return NULL;
}

/* An object is told to the watch of its kind. */
static inline void fake_tell(struct kube_client *client, const char *watch_path, const char *json)
{
    AUTO(json_free) struct json *object = NULL;
    struct kube_watch *watch = fake_watch(client, watch_path);
    struct error error = {0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
    if (json_parse(view_of(json), &object, &error) != OK) {
        printf("%s: %s\n", error.message, json);
        CU_FAIL_FATAL("the test's object is not JSON");
    }
    watch->params.on_object(watch->params.context, object);
}

static inline void fake_gone(struct kube_client *client, const char *watch_path,
                             const char *namespace_name, const char *name)
{
    struct kube_watch *watch = fake_watch(client, watch_path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
    watch->params.on_gone(watch->params.context, namespace_name, name);
}

static inline void fake_open(struct kube_client *client, struct loop *loop)
{
    *client = (struct kube_client){.loop = loop};
}

static inline void fake_close(struct kube_client *client)
{
    for (size_t i = 0; i < FAKE_MAX; i++)
        xfree(client->objects[i].json);
}

/* --- the client --- */

static bool take_scripted(struct kube_client *client, const struct fake_call *call,
                          struct kube_answer *answer)
{
    for (size_t i = 0; i < client->answer_count; i++) {
        struct fake_answer *scripted = &client->answers[i];
        if (scripted->method == NULL || strcmp(scripted->method, call->method) != 0 ||
            strncmp(scripted->path, call->path, strlen(scripted->path)) != 0)
            continue;
        answer->result = scripted->result;
        answer->message = scripted->message;
        scripted->method = NULL;
        return true;
    }
    return false;
}

/* POST of an object makes it, under its collection's path and its name, with the uid "made". */
static void fake_post(struct kube_client *client, const struct fake_call *call,
                      struct kube_answer *answer)
{
    AUTO(json_free) struct json *body = NULL;
    char path[256];
    if (json_parse(view_of(call->body), &body, NULL) != OK) {
        answer->result = KUBE_REFUSED;
        return;
    }
    snprintf(path, sizeof path, "%.150s/%.100s", call->path,
             json_get_string(json_get(body, "metadata"), "name", ""));
    if (strstr(call->path, "/eviction") != NULL)
        return;
    if (fake_find(client, path) != NULL) {
        answer->result = KUBE_EXISTS;
        return;
    }
    const char *metadata = strstr(call->body, "\"metadata\":{");
    const char *rest = metadata != NULL ? metadata + strlen("\"metadata\":{") : call->body;
    AUTO_TEXT made = {0};
    text_add_bytes(&made, call->body, (size_t)(rest - call->body));
    text_add(&made, metadata != NULL ? "\"uid\":\"made\"," : "");
    text_add(&made, rest);
    fake_set(client, path, made.bytes);
}

/* Only the object whose uid is the precondition is deleted. */
static void fake_delete(struct kube_client *client, const struct fake_call *call,
                        struct kube_answer *answer)
{
    AUTO(json_free) struct json *body = NULL;
    AUTO(json_free) struct json *object = NULL;
    CU_ASSERT_FATAL(json_parse(view_of(call->body), &body, NULL) == OK);
    CU_ASSERT_FATAL(json_parse(view_of(fake_find(client, call->path)->json), &object, NULL) == OK);
    const char *wanted = json_get_string(json_get(body, "preconditions"), "uid", "");
    if (strcmp(wanted, json_get_string(json_get(object, "metadata"), "uid", "")) == 0)
        fake_remove(client, call->path);
    else
        answer->result = KUBE_CONFLICT;
}

static void fake_usual(struct kube_client *client, const struct fake_call *call,
                       struct kube_answer *answer)
{
    if (strcmp(call->method, "POST") == 0) {
        fake_post(client, call, answer);
    } else if (fake_find(client, call->path) == NULL) {
        answer->result = KUBE_NOT_FOUND;
        answer->message = "not found";
    } else if (strcmp(call->method, "DELETE") == 0) {
        fake_delete(client, call, answer);
    }
}

static void fake_answer_now(void *context)
{
    struct kube_request *request = context;
    struct kube_client *client = request->client;
    struct kube_answer answer = {.message = ""};
    AUTO(json_free) struct json *body = NULL;
    bool reads = strcmp(request->call.method, "GET") == 0;
    if (reads)
        client->reads++;
    else if (client->call_count < FAKE_MAX * 4)
        client->calls[client->call_count++] = request->call;
    bool scripted = take_scripted(client, &request->call, &answer);
    if (!scripted)
        fake_usual(client, &request->call, &answer);
    if (reads && answer.result == KUBE_OK && !scripted)
        CU_ASSERT_FATAL(
            json_parse(view_of(fake_find(client, request->call.path)->json), &body, NULL) == OK);
    answer.body = body;
    bool taken = answer.result == KUBE_OK || answer.result == KUBE_UNKNOWN;
    if (!reads && taken && client->on_write != NULL)
        client->on_write(client, &request->call);
    kube_answer_fn *fn = request->fn;
    void *target = request->context;
    kube_request_drop(request);
    fn(target, &answer);
}

struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context)
{
    struct kube_request *request = xcalloc(1, sizeof *request);
    request->client = client;
    request->fn = fn;
    request->context = context;
    text_copy(request->call.method, sizeof request->call.method, call->method);
    text_copy(request->call.path, sizeof request->call.path, call->path);
    if (call->body.length > 0)
        snprintf(request->call.body, sizeof request->call.body, "%.*s", (int)call->body.length,
                 call->body.bytes);
    request->timer = loop_timer_new(client->loop, fake_answer_now, request);
    loop_timer_set(request->timer, 0);
    return request;
}

void kube_request_drop(struct kube_request *request)
{
    loop_timer_free(request->timer);
    xfree(request);
}

void kube_path_add(struct text *path, const char *segment)
{
    text_addf(path, "/%s", segment);
}

/* --- watches and nodes --- */

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params)
{
    struct kube_watch *watch = xcalloc(1, sizeof *watch);
    watch->params = *params;
    text_copy(watch->path, sizeof watch->path, params->path);
    client->watches[client->watch_count++] = watch;
    return watch;
}

void kube_watch_free(struct kube_watch *watch)
{
    xfree(watch);
}

static const char *fake_unsynced; /* path of a watch that is not whole */

bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns, const char **ret_reason)
{
    (void)fresh_ns;
    bool is_bad = fake_unsynced != NULL && strcmp(fake_unsynced, watch->path) == 0;
    if (is_bad)
        *ret_reason = "cannot list: forbidden";
    return !is_bad;
}

static const char *fake_down[8]; /* nodes that are not ready */

bool node_cache_is_ready(const struct node_cache *cache, const char *node)
{
    (void)cache;
    for (size_t i = 0; i < ARRAY_LEN(fake_down); i++)
        if (fake_down[i] != NULL && strcmp(fake_down[i], node) == 0)
            return false;
    return true;
}

#endif
