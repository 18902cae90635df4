/* Any JSON as a node and as a HyperNode: what is read of it is whole, and each patch that follows
 * is JSON that names the version it was made from and keeps every taint that is not the one it
 * changes.
 */
#include "remediation/actuators/kubernetes_hypernode.h"
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool is_ours(const struct json *taint)
{
    return strncmp(json_get_string(taint, "key", ""), "broomwagon.io/", 14) == 0;
}

static const struct json *next_foreign(const struct json *taint)
{
    while (taint != NULL && is_ours(taint))
        taint = json_next(taint);
    return taint;
}

static bool is_same(const struct json *a, const struct json *b)
{
    AUTO_TEXT left = {0};
    AUTO_TEXT right = {0};
    json_print(a, &left);
    json_print(b, &right);
    return strcmp(left.bytes, right.bytes) == 0;
}

static void check_patch(const struct node *node, const struct text *body)
{
    AUTO(json_free) struct json *patch = NULL;
    AUTO(json_free) struct json *taints = NULL;
    require(json_parse((struct view){body->bytes, body->length}, &patch, NULL) == OK);
    require(strcmp(json_get_string(json_get(patch, "metadata"), "resourceVersion", ""),
                   node->version) == 0);
    if (node->taints != NULL)
        require(json_parse(view_of(node->taints), &taints, NULL) == OK);
    const struct json *there = next_foreign(json_first(taints));
    const struct json *sent = next_foreign(json_first(json_get(json_get(patch, "spec"), "taints")));
    for (; there != NULL; there = next_foreign(json_next(there))) {
        require(sent != NULL && is_same(there, sent));
        sent = next_foreign(json_next(sent));
    }
    require(sent == NULL);
}

static void decide(const struct node_cache *cache, const struct node *node)
{
    static node_decide_fn *const all[] = {node_decide_cordon,  node_decide_uncordon,
                                          node_decide_promise, node_decide_release,
                                          node_decide_hold,    node_decide_unhold};
    struct action action = {.verb = VERB_CORDON, .incident_ref = "INC-3", .reason = "slow"};
    struct node_wish wish = {.cache = cache, .action = &action, .spare_value = "default.llm"};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        AUTO_TEXT body = {0};
        AUTO_TEXT note = {0};
        if (all[i](&wish, node, &body, &note) == NODE_PATCH)
            check_patch(node, &body);
        else
            require(body.length == 0);
    }
}

static const char *no_label(void *context, const char *key)
{
    (void)context;
    (void)key;
    return NULL;
}

static void read_as_hypernode(const struct json *object)
{
    struct hypernode *hypernode = hypernode_read(object);
    if (hypernode != NULL)
        (void)hypernode_matches(hypernode, "gb-1", no_label, NULL);
    hypernode_free(hypernode);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json_free) struct json *object = NULL;
    if (json_parse((struct view){(const char *)data, size}, &object, NULL) != OK)
        return 0;
    struct loop *loop = loop_new();
    struct node_cache *cache = node_cache_new(NULL, loop, "site/rack");
    const struct node *node = node_take(cache, object);
    require(node_take(cache, object) == node && node_cache_count(cache) == (node != NULL));
    if (node != NULL) {
        struct world_node told;
        node_cache_describe(cache, 0, &told);
        require(told.gpus_allocatable >= 0 && (told.cordoned == (told.cordoned_by != NULL)));
        if (node->version != NULL)
            decide(cache, node);
        (void)node_unschedulable_owner(object);
    }
    read_as_hypernode(object);
    node_cache_free(cache);
    loop_free(loop);
    return 0;
}

/* No server: nothing is watched, nothing is called. */

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params)
{
    (void)client;
    (void)params;
    return NULL;
}

void kube_watch_free(struct kube_watch *watch)
{
    (void)watch;
}

bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns, const char **ret_reason)
{
    (void)watch;
    (void)fresh_ns;
    *ret_reason = "nothing is watched";
    return false;
}

struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context)
{
    (void)client;
    (void)call;
    (void)fn;
    (void)context;
    return NULL;
}

void kube_path_add(struct text *path, const char *segment)
{
    text_addf(path, "/%s", segment);
}
