/* The nodes of an API server in miniature, in place of controller/kube: objects with a version,
 * merge-patches with or without a resourceVersion, conditions merged by type, watches whose events
 * are the test's. A test may answer before it, or change an object just before a call arrives.
 */
#ifndef BROOM_TESTS_ACTUATORS_FAKE_NODES_H
#define BROOM_TESTS_ACTUATORS_FAKE_NODES_H

#include "controller/kube/kube_watch.h"
#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "tests/harness/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FAKE_NODES = 48, FAKE_CALLS = 256 };

struct fake_node {
    char name[64];
    char *json; /* owned; NULL: free */
    int64_t version;
};

struct fake_call {
    char method[8], path[160], body[2048];
    enum kube_priority priority;
};

struct kube_client {
    struct loop *loop;
    struct fake_node nodes[FAKE_NODES];
    int64_t version;
    struct fake_call calls[FAKE_CALLS];
    size_t call_count, answered;
    size_t sent_before_answer; /* calls that were there when the first was answered */
    /* True: *answer is what the test says. Before that it may change nodes. */
    bool (*script)(struct kube_client *client, const struct fake_call *call,
                   struct kube_answer *answer);
    int scripted; /* the script's own */
    struct kube_watch *watches[16];
    struct kube_request *requests; /* under way */
};

struct kube_watch {
    struct kube_client *client;
    struct kube_watch_params params;
    char path[96];
};

struct kube_request {
    struct kube_client *client;
    struct kube_request *next;
    struct loop_timer *timer;
    struct fake_call call;
    kube_answer_fn *fn;
    void *context;
};

/* --- objects --- */

static struct fake_node *fake_node(struct kube_client *client, const char *name)
{
    for (size_t i = 0; i < FAKE_NODES; i++)
        if (client->nodes[i].json != NULL && strcmp(client->nodes[i].name, name) == 0)
            return &client->nodes[i];
    return NULL;
}

static void fake_merge(struct json_writer *w, const struct json *old, const struct json *patch);

static bool fake_has(const struct json *object, const char *key)
{
    for (const struct json *each = json_first(object); each != NULL; each = json_next(each))
        if (strcmp(json_key(each), key) == 0)
            return true;
    return false;
}

static void fake_merge_object(struct json_writer *w, const struct json *old,
                              const struct json *patch)
{
    json_open_object(w);
    for (const struct json *each = json_first(old); each != NULL; each = json_next(each)) {
        const char *key = json_key(each);
        if (fake_has(patch, key) && json_kind(json_get(patch, key)) == JSON_NULL)
            continue;
        json_add_key(w, key);
        if (fake_has(patch, key))
            fake_merge(w, each, json_get(patch, key));
        else
            fake_merge(w, each, NULL);
    }
    for (const struct json *each = json_first(patch); each != NULL; each = json_next(each))
        if (!fake_has(old, json_key(each)) && json_kind(each) != JSON_NULL) {
            json_add_key(w, json_key(each));
            fake_merge(w, NULL, each);
        }
    json_close(w);
}

/* RFC 7396. */
static void fake_merge(struct json_writer *w, const struct json *old, const struct json *patch)
{
    const struct json *value = patch != NULL ? patch : old;
    if (patch != NULL && json_kind(patch) == JSON_OBJECT) {
        fake_merge_object(w, json_kind(old) == JSON_OBJECT ? old : NULL, patch);
        return;
    }
    AUTO_TEXT text = {0};
    json_print(value, &text);
    json_add_raw(w, (struct view){text.bytes, text.length});
}

static void fake_store(struct kube_client *client, struct fake_node *node, const char *patch)
{
    AUTO(json_free) struct json *old = NULL;
    AUTO(json_free) struct json *merged = NULL;
    AUTO(json_free) struct json *change = NULL;
    AUTO(json_free) struct json *stamp = NULL;
    AUTO_TEXT text = {0};
    AUTO_TEXT stamped = {0};
    AUTO_TEXT version = {0};
    CU_ASSERT_FATAL(json_parse(view_of(node->json), &old, NULL) == OK);
    CU_ASSERT_FATAL(json_parse(view_of(patch), &change, NULL) == OK);
    struct json_writer w = json_writer(&text);
    fake_merge(&w, old, change);
    node->version = ++client->version;
    text_addf(&version, "{\"metadata\":{\"resourceVersion\":\"%" PRId64 "\"}}", node->version);
    CU_ASSERT_FATAL(json_parse((struct view){text.bytes, text.length}, &merged, NULL) == OK);
    CU_ASSERT_FATAL(json_parse(view_of(version.bytes), &stamp, NULL) == OK);
    struct json_writer again = json_writer(&stamped);
    fake_merge(&again, merged, stamp);
    xfree(node->json);
    node->json = text_take(&stamped);
}

/* A change by somebody else. */
static inline void fake_change(struct kube_client *client, const char *name, const char *patch)
{
    struct fake_node *node = fake_node(client, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    fake_store(client, node, patch);
}

static inline void fake_delete(struct kube_client *client, const char *name)
{
    struct fake_node *node = fake_node(client, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    xfree(TAKE(node->json));
}

/* A Ready tray of four GPUs with a note of somebody's; more: a merge-patch on top, or NULL. */
static inline void fake_add(struct kube_client *client, const char *name, const char *more)
{
    for (size_t i = 0; i < FAKE_NODES; i++) {
        struct fake_node *node = &client->nodes[i];
        AUTO_TEXT json = {0};
        if (node->json != NULL)
            continue;
        text_copy(node->name, sizeof node->name, name);
        text_addf(&json,
                  "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"labels\":{},\"annotations\":"
                  "{\"somebody.example/note\":\"keep \\u00e9\"}},\"spec\":{},\"status\":{"
                  "\"allocatable\":{\"nvidia.com/gpu\":\"4\"},\"capacity\":{\"nvidia.com/gpu\":"
                  "\"4\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                  name, name);
        node->json = text_take(&json);
        fake_store(client, node, more != NULL ? more : "{}");
        return;
    }
    CU_FAIL_FATAL("too many nodes");
}

static inline const char *fake_json(struct kube_client *client, const char *name)
{
    struct fake_node *node = fake_node(client, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(node);
    return node->json;
}

static inline bool fake_says(struct kube_client *client, const char *name, const char *text)
{
    return strstr(fake_json(client, name), text) != NULL;
}

/* --- watches --- */

static struct kube_watch *fake_watch(struct kube_client *client, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(client->watches); i++)
        if (client->watches[i] != NULL && strcmp(client->watches[i]->path, path) == 0)
            return client->watches[i];
    CU_FAIL_FATAL("no such watch");
    return NULL;
}

static inline void fake_tell(struct kube_client *client, const char *path, const char *json)
{
    AUTO(json_free) struct json *object = NULL;
    struct kube_watch *watch = fake_watch(client, path);
    CU_ASSERT_FATAL(json_parse(view_of(json), &object, NULL) == OK);
    watch->params.on_object(watch->params.context, object);
}

/* The watch of nodes has come up to date. */
static inline void fake_sync(struct kube_client *client)
{
    struct kube_watch *watch = fake_watch(client, "/api/v1/nodes");
    for (size_t i = 0; i < FAKE_NODES; i++)
        if (client->nodes[i].json != NULL)
            fake_tell(client, "/api/v1/nodes", client->nodes[i].json);
    if (watch->params.on_state != NULL)
        watch->params.on_state(watch->params.context, true, NULL);
}

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params)
{
    struct kube_watch *watch = xcalloc(1, sizeof *watch);
    watch->client = client;
    watch->params = *params;
    text_copy(watch->path, sizeof watch->path, params->path);
    for (size_t i = 0; i < ARRAY_LEN(client->watches); i++)
        if (client->watches[i] == NULL) {
            client->watches[i] = watch;
            return watch;
        }
    CU_FAIL_FATAL("too many watches");
    return watch;
}

void kube_watch_free(struct kube_watch *watch)
{
    if (watch == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(watch->client->watches); i++)
        if (watch->client->watches[i] == watch)
            watch->client->watches[i] = NULL;
    xfree(watch);
}

static const char *fake_unsynced; /* path of a watch that is not whole */
static bool fake_is_quiet;        /* nothing was heard for a while */

bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns, const char **ret_reason)
{
    bool is_bad = (fake_unsynced != NULL && strcmp(fake_unsynced, watch->path) == 0) ||
                  (fake_is_quiet && fresh_ns <= INT64_C(10000000000));
    if (is_bad)
        *ret_reason = "nothing was heard for 2m";
    return !is_bad;
}

/* --- calls --- */

static const char *fake_name_of(const char *path, char buffer[64], bool *ret_status)
{
    static const char PREFIX[] = "/api/v1/nodes/";
    if (strncmp(path, PREFIX, sizeof PREFIX - 1) != 0)
        return NULL;
    path += sizeof PREFIX - 1;
    size_t length = strcspn(path, "/?");
    *ret_status = strncmp(path + length, "/status", 7) == 0;
    snprintf(buffer, 64, "%.*s", (int)length, path);
    return buffer;
}

/* Conditions are merged by type: the one that we send replaces its like. */
static void fake_condition(struct kube_client *client, struct fake_node *node, const char *body)
{
    AUTO(json_free) struct json *old = NULL;
    AUTO(json_free) struct json *patch = NULL;
    AUTO_TEXT text = {0};
    CU_ASSERT_FATAL(json_parse(view_of(node->json), &old, NULL) == OK);
    CU_ASSERT_FATAL(json_parse(view_of(body), &patch, NULL) == OK);
    const struct json *sent = json_first(json_get(json_get(patch, "status"), "conditions"));
    const struct json *there = json_get(json_get(old, "status"), "conditions");
    struct json_writer w = json_writer(&text);
    text_add(&text, "{\"status\":{\"conditions\":");
    json_open_array(&w);
    for (const struct json *each = json_first(there); each != NULL; each = json_next(each))
        if (strcmp(json_get_string(each, "type", ""), json_get_string(sent, "type", "")) != 0) {
            AUTO_TEXT one = {0};
            json_print(each, &one);
            json_add_raw(&w, view_of(one.bytes));
        }
    AUTO_TEXT ours = {0};
    json_print(sent, &ours);
    json_add_raw(&w, view_of(ours.bytes));
    json_close(&w);
    text_add(&text, "}}");
    fake_store(client, node, text.bytes);
}

static bool fake_is_stale(const struct fake_node *node, const char *body)
{
    AUTO(json_free) struct json *patch = NULL;
    char version[32];
    CU_ASSERT_FATAL(json_parse(view_of(body), &patch, NULL) == OK);
    snprintf(version, sizeof version, "%" PRId64, node->version);
    const char *wanted = json_get_string(json_get(patch, "metadata"), "resourceVersion", version);
    return strcmp(wanted, version) != 0;
}

static void fake_usual(struct kube_client *client, const struct fake_call *call,
                       struct kube_answer *answer)
{
    char name[64];
    bool is_status = false;
    if (fake_name_of(call->path, name, &is_status) == NULL)
        return; /* an event: taken */
    struct fake_node *node = fake_node(client, name);
    if (node == NULL) {
        answer->result = KUBE_NOT_FOUND;
        answer->message = "nodes not found";
    } else if (strcmp(call->method, "PATCH") == 0 && is_status) {
        fake_condition(client, node, call->body);
    } else if (strcmp(call->method, "PATCH") == 0 && fake_is_stale(node, call->body)) {
        answer->result = KUBE_CONFLICT;
        answer->message = "the object has been modified";
    } else if (strcmp(call->method, "PATCH") == 0) {
        fake_store(client, node, call->body);
    }
}

static void fake_answer_now(void *context)
{
    struct kube_request *request = context;
    struct kube_client *client = request->client;
    struct kube_answer answer = {.message = ""};
    AUTO(json_free) struct json *body = NULL;
    char name[64];
    bool is_status;
    if (client->answered++ == 0)
        client->sent_before_answer = client->call_count;
    if (client->script == NULL || !client->script(client, &request->call, &answer))
        fake_usual(client, &request->call, &answer);
    if (answer.result == KUBE_OK && fake_name_of(request->call.path, name, &is_status) != NULL)
        CU_ASSERT_FATAL(json_parse(view_of(fake_json(client, name)), &body, NULL) == OK);
    answer.body = body;
    kube_answer_fn *fn = request->fn;
    void *target = request->context;
    kube_request_drop(request);
    fn(target, &answer);
}

struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context)
{
    struct kube_request *request = xcalloc(1, sizeof *request);
    *request = (struct kube_request){
        .client = client, .fn = fn, .context = context, .next = client->requests};
    client->requests = request;
    text_copy(request->call.method, sizeof request->call.method, call->method);
    text_copy(request->call.path, sizeof request->call.path, call->path);
    request->call.priority = call->priority;
    CU_ASSERT_FATAL(call->body.length < sizeof request->call.body);
    if (call->body.length > 0)
        memcpy(request->call.body, call->body.bytes, call->body.length);
    CU_ASSERT_FATAL(client->call_count < FAKE_CALLS);
    client->calls[client->call_count++] = request->call;
    request->timer = loop_timer_new(client->loop, fake_answer_now, request);
    loop_timer_set(request->timer, 0);
    return request;
}

void kube_request_drop(struct kube_request *request)
{
    struct kube_request **link = &request->client->requests;
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    loop_timer_free(request->timer);
    xfree(request);
}

void kube_path_add(struct text *path, const char *segment)
{
    text_addf(path, "/%s", segment);
}

static inline size_t fake_count(const struct kube_client *client, const char *method,
                                const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < client->call_count; i++)
        count += strcmp(client->calls[i].method, method) == 0 &&
                 strstr(client->calls[i].path, part) != NULL;
    return count;
}

/* --- one bench a test --- */

struct bench {
    struct loop *loop;
    struct kube_client client;
    struct node_cache *cache;
    struct action_result result;
    char reason[400], response[2000];
    int answers;
};

static inline void bench_open(struct bench *bench)
{
    clock_init(1, 0, 0);
    *bench = (struct bench){.loop = loop_new()};
    bench->client.loop = bench->loop;
    bench->client.version = 100;
    fake_unsynced = NULL;
    bench->cache = node_cache_new(&bench->client, bench->loop, "site/rack");
}

static inline void bench_close(struct bench *bench)
{
    node_cache_free(bench->cache);
    while (bench->client.requests != NULL)
        kube_request_drop(bench->client.requests);
    for (size_t i = 0; i < FAKE_NODES; i++)
        xfree(bench->client.nodes[i].json);
    loop_free(bench->loop);
}

static inline void on_result(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    bench->result = *result;
    bench->answers++;
    text_copy(bench->reason, sizeof bench->reason, result->reason != NULL ? result->reason : "");
    text_copy(bench->response, sizeof bench->response,
              result->response != NULL ? result->response : "");
    loop_stop(bench->loop);
}

static inline struct action action_of(enum verb verb, const char *operation,
                                      const char *const *nodes, size_t count)
{
    bool is_of_spares = verb == VERB_PROMISE_SPARE || verb == VERB_RELEASE_SPARE;
    struct action action = {.verb = verb,
                            .incident_ref = strncmp(operation, "INC-4", 5) == 0 ? "INC-4" : "INC-3",
                            .job = "default/llm",
                            .reason = "broom:INC-3 the \"rack\" is slow"};
    text_copy(action.operation_id, sizeof action.operation_id, operation);
    *(is_of_spares ? &action.spares : &action.nodes) = nodes;
    *(is_of_spares ? &action.spare_count : &action.node_count) = count;
    return action;
}

static inline enum outcome run_action(struct bench *bench, const struct action *action)
{
    int answers = bench->answers;
    nodes_start(bench->cache, action, NULL, 0, on_result, bench);
    CU_ASSERT_EQUAL(bench->answers, answers); /* never from inside the call */
    loop_run(bench->loop);
    CU_ASSERT_EQUAL(bench->answers, answers + 1);
    return bench->result.outcome;
}

static inline enum outcome run_one(struct bench *bench, enum verb verb, const char *operation,
                                   const char *node)
{
    const char *const nodes[] = {node};
    struct action action = action_of(verb, operation, nodes, 1);
    return run_action(bench, &action);
}

static inline enum poll_state run_poll(struct bench *bench, enum verb verb, const char *operation,
                                       const char *node)
{
    const char *const nodes[] = {node};
    struct action action = action_of(verb, operation, nodes, 1);
    nodes_poll(bench->cache, &action, on_result, bench);
    loop_run(bench->loop);
    return bench->result.poll;
}

static inline struct world_node told(const struct bench *bench, const char *name)
{
    for (size_t i = 0; i < node_cache_count(bench->cache); i++) {
        struct world_node node;
        node_cache_describe(bench->cache, i, &node);
        if (strcmp(node.name, name) == 0)
            return node;
    }
    CU_FAIL_FATAL("no such node");
    return (struct world_node){0};
}

#endif
