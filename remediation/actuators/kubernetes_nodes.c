/* The cache of nodes: fed by the watch and by the answers to our own patches, whichever is newer.
 */
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include <string.h>

/* Bookmarks come about once a minute, and nodes may have nothing else to tell. */
static const int64_t FRESH_NS = INT64_C(90000000000);

/* ---- finding ---- */

static int compare_name(const void *name, const void *item)
{
    return strcmp(name, (*(struct node *const *)item)->name);
}

static size_t place_of(const struct node_cache *cache, const char *name)
{
    return array_lower_bound(name, cache->nodes, cache->count, sizeof(struct node *), compare_name);
}

struct node *node_find(const struct node_cache *cache, const char *name)
{
    size_t place = place_of(cache, name);
    bool found = place < cache->count && strcmp(cache->nodes[place]->name, name) == 0;
    return found ? cache->nodes[place] : NULL;
}

static void node_clear(struct node *node)
{
    for (size_t i = 0; i < node->label_count; i++)
        xfree(node->labels[i]);
    xfree(node->labels);
    xfree(node->uid);
    xfree(node->version);
    xfree(node->taints);
    xfree(node->quarantine);
    xfree(node->spare);
    xfree(node->held);
    xfree(node->trouble);
    xfree(node->incident);
    xfree(node->operation);
    xfree(node->promised_by);
    xfree(node->fenced_by);
}

static void node_free(struct node *node)
{
    node_clear(node);
    xfree(node->name);
    xfree(node->last_clique);
    xfree(node->uncordoned_by);
    xfree(node);
}

void node_forget(struct node_cache *cache, const char *name)
{
    size_t place = place_of(cache, name);
    if (place == cache->count || strcmp(cache->nodes[place]->name, name) != 0)
        return;
    char **gone = &cache->gone[cache->gone_count++ % NODES_GONE_MAX];
    xfree(*gone);
    *gone = TAKE(cache->nodes[place]->uid);
    node_free(cache->nodes[place]);
    cache->count--;
    memmove(&cache->nodes[place], &cache->nodes[place + 1],
            (cache->count - place) * sizeof *cache->nodes);
    cache->generation++;
}

static struct node *node_add(struct node_cache *cache, const char *name)
{
    size_t place = place_of(cache, name);
    struct node *node = xcalloc(1, sizeof *node);
    node->name = xstrdup(name);
    cache->nodes = array_grow(cache->nodes, cache->count, &cache->capacity, sizeof *cache->nodes);
    memmove(&cache->nodes[place + 1], &cache->nodes[place],
            (cache->count - place) * sizeof *cache->nodes);
    cache->nodes[place] = node;
    cache->count++;
    cache->generation++;
    return node;
}

/* ---- reading ---- */

static char *copy_member(const struct json *object, const char *key)
{
    const char *text = json_get_string(object, key, NULL);
    return text != NULL ? xstrdup(text) : NULL;
}

static int32_t count_gpus(const struct json *resources)
{
    int64_t count = 0;
    const char *text = json_get_string(resources, "nvidia.com/gpu", "0");
    bool is_sane = text_parse_int(view_of(text), &count) && count >= 0 && count < 1000;
    return is_sane ? (int32_t)count : 0;
}

static void read_taint(struct node *node, const struct json *taint, bool *ret_unreachable)
{
    const struct {
        const char *key;
        char **value;
    } ours[] = {{NODE_TAINT_QUARANTINE, &node->quarantine},
                {NODE_TAINT_SPARE, &node->spare},
                {NODE_TAINT_HELD, &node->held}};
    const char *key = json_get_string(taint, "key", "");
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(key, ours[i].key) == 0 && *ours[i].value == NULL)
            *ours[i].value = xstrdup(json_get_string(taint, "value", ""));
    bool is_trouble = strncmp(key, "node.kubernetes.io/", 19) == 0 ||
                      strncmp(key, "node.cloudprovider.kubernetes.io/", 33) == 0;
    if (is_trouble && node->trouble == NULL)
        node->trouble = xstrdup(key);
    if (strcmp(key, NODE_TAINT_OUT_OF_SERVICE) == 0)
        node->is_out_of_service = true;
    if (strcmp(key, "node.kubernetes.io/not-ready") == 0 ||
        strcmp(key, "node.kubernetes.io/unreachable") == 0)
        *ret_unreachable = true;
}

static void read_taints(struct node *node, const struct json *taints)
{
    bool is_unreachable = false;
    if (json_size(taints) > 0) {
        AUTO_TEXT text = {0};
        json_print(taints, &text);
        node->taints = text_take(&text);
    }
    node->is_out_of_service = false;
    for (const struct json *taint = json_first(taints); taint != NULL; taint = json_next(taint))
        read_taint(node, taint, &is_unreachable);
    if (is_unreachable)
        node->is_ready = false;
}

static void read_conditions(struct node *node, const struct json *conditions)
{
    node->is_ready = node->is_marked = false;
    for (const struct json *each = json_first(conditions); each != NULL; each = json_next(each)) {
        const char *type = json_get_string(each, "type", "");
        bool is_true = strcmp(json_get_string(each, "status", ""), "True") == 0;
        if (strcmp(type, "Ready") == 0)
            node->is_ready = is_true;
        else if (strcmp(type, NODE_CONDITION) == 0)
            node->is_marked = is_true;
    }
}

static void read_notes(struct node *node, const struct json *notes)
{
    node->incident = copy_member(notes, NODE_NOTE_INCIDENT);
    node->operation = copy_member(notes, NODE_NOTE_OPERATION);
    node->promised_by = copy_member(notes, NODE_NOTE_PROMISED_BY);
    node->fenced_by = copy_member(notes, NODE_NOTE_FENCED_BY);
    node->was_unschedulable = strcmp(json_get_string(notes, NODE_NOTE_WAS_UNSCHEDULABLE, ""),
                                     "true") == 0;
}

/* True when a label that was asked for differs from what stood in `old`. */
static bool read_labels(const struct node_cache *cache, struct node *node,
                        const struct json *labels, char *const *old, size_t old_count)
{
    bool differs = old_count != cache->wanted.count;
    node->label_count = cache->wanted.count;
    node->labels = xcalloc(node->label_count, sizeof *node->labels);
    for (size_t i = 0; i < node->label_count; i++) {
        node->labels[i] = copy_member(labels, cache->wanted.items[i]);
        const char *before = i < old_count && old[i] != NULL ? old[i] : "";
        differs = differs || strcmp(before, node->labels[i] != NULL ? node->labels[i] : "") != 0;
    }
    const char *clique = json_get_string(labels, NODE_LABEL_CLIQUE, NULL);
    if (clique != NULL && (node->last_clique == NULL || strcmp(node->last_clique, clique) != 0)) {
        xfree(node->last_clique);
        node->last_clique = xstrdup(clique);
    }
    return differs;
}

static bool read_node(const struct node_cache *cache, struct node *node, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    const struct json *spec = json_get(object, "spec");
    const struct json *status = json_get(object, "status");
    struct node before = *node;
    *node = (struct node){.name = before.name,
                          .last_clique = before.last_clique,
                          .uncordoned_by = before.uncordoned_by,
                          .uncordon_asked = before.uncordon_asked,
                          .changed = before.changed,
                          .is_listed = before.is_listed};
    node->uid = copy_member(metadata, "uid");
    node->version = copy_member(metadata, "resourceVersion");
    read_notes(node, json_get(metadata, "annotations"));
    read_conditions(node, json_get(status, "conditions"));
    read_taints(node, json_get(spec, "taints"));
    node->is_unschedulable = json_get_bool(spec, "unschedulable", false);
    node->gpus = count_gpus(json_get(status, "allocatable"));
    node->gpus_capacity = count_gpus(json_get(status, "capacity"));
    bool differs = read_labels(cache, node, json_get(metadata, "labels"), before.labels,
                               before.label_count);
    node_clear(&before);
    if (!node_was_uncordoned(node)) {
        node->uncordon_asked = false;
        xfree(TAKE(node->uncordoned_by));
    }
    return differs;
}

static bool is_older(const char *version, const char *than)
{
    int64_t a, b;
    return version != NULL && than != NULL && text_parse_int(view_of(version), &a) &&
           text_parse_int(view_of(than), &b) && a < b;
}

/* No uid comes twice: a node that is made anew has another one. */
static bool has_gone(const struct node_cache *cache, const struct json *object)
{
    const char *uid = json_get_string(json_get(object, "metadata"), "uid", "");
    for (size_t i = 0; i < cache->gone_count && i < NODES_GONE_MAX; i++)
        if (cache->gone[i] != NULL && strcmp(cache->gone[i], uid) == 0)
            return true;
    return false;
}

bool node_has_name(const struct json *object)
{
    return json_get_string(json_get(object, "metadata"), "name", "")[0] != '\0';
}

static struct node *take(struct node_cache *cache, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    const char *name = json_get_string(metadata, "name", "");
    struct node *node = node_find(cache, name);
    if (node != NULL && is_older(json_get_string(metadata, "resourceVersion", NULL), node->version))
        return node;
    if (node == NULL)
        node = node_add(cache, name);
    if (read_node(cache, node, object))
        node->changed = ++cache->generation;
    return node;
}

struct node *node_take(struct node_cache *cache, const struct json *object)
{
    if (!node_has_name(object))
        return NULL;
    const char *name = json_get_string(json_get(object, "metadata"), "name", "");
    return node_find(cache, name) == NULL && has_gone(cache, object) ? NULL : take(cache, object);
}

/* ---- the watch ---- */

/* The watch is believed in any case: an API server that was set back has nodes that went. */
static void on_object(void *context, const struct json *object)
{
    if (node_has_name(object))
        take(context, object)->is_listed = true;
}

static void on_gone(void *context, const char *namespace_name, const char *name)
{
    (void)namespace_name;
    node_forget(context, name);
}

static void on_state(void *context, bool is_synced, const char *reason)
{
    struct node_cache *cache = context;
    (void)reason;
    for (size_t i = cache->count; is_synced && i > 0; i--)
        if (!cache->nodes[i - 1]->is_listed)
            node_forget(cache, cache->nodes[i - 1]->name);
}

static void watch(void *context)
{
    struct node_cache *cache = context;
    kube_watch_free(TAKE(cache->watch));
    cache->is_relisting = false;
    for (size_t i = 0; i < cache->count; i++)
        cache->nodes[i]->is_listed = false;
    struct kube_watch_params params = {.path = "/api/v1/nodes",
                                       .on_object = on_object,
                                       .on_gone = on_gone,
                                       .on_state = on_state,
                                       .context = cache};
    cache->watch = kube_watch_new(cache->client, &params);
}

void node_cache_want_label(struct node_cache *cache, const char *key)
{
    if (!names_add_new(&cache->wanted, key))
        return;
    cache->is_relisting = true;
    loop_timer_set(cache->relist, 0);
}

struct node_cache *node_cache_new(struct kube_client *client, struct loop *loop,
                                  const char *rack_label)
{
    struct node_cache *cache = xcalloc(1, sizeof *cache);
    cache->client = client;
    cache->loop = loop;
    cache->operations.loop = loop;
    cache->rack_label = xstrdup(rack_label);
    cache->relist = loop_timer_new(loop, watch, cache);
    names_add(&cache->wanted, NODE_LABEL_CLIQUE);
    names_add_new(&cache->wanted, rack_label[0] != '\0' ? rack_label : NODE_LABEL_CLIQUE);
    watch(cache);
    return cache;
}

void node_cache_free(struct node_cache *cache)
{
    if (cache == NULL)
        return;
    operations_drop(&cache->operations);
    kube_watch_free(cache->watch);
    loop_timer_free(cache->relist);
    for (size_t i = 0; i < cache->count; i++)
        node_free(cache->nodes[i]);
    for (size_t i = 0; i < NODES_GONE_MAX; i++)
        xfree(cache->gone[i]);
    while (cache->followed != NULL)
        nodes_unfollow(cache, cache->followed->operation_id);
    xfree(cache->nodes);
    xfree(cache->rack_label);
    names_done(&cache->wanted);
    xfree(cache);
}

bool node_cache_is_synced(const struct node_cache *cache, const char **ret_reason)
{
    if (cache->is_relisting) {
        *ret_reason = "the nodes are to be listed again, for a label";
        return false;
    }
    return kube_watch_is_synced(cache->watch, FRESH_NS, ret_reason);
}

/* ---- who uncordoned ---- */

static void on_owner(void *context, const struct kube_answer *answer)
{
    struct node_cache *cache = context;
    if (answer->result != KUBE_OK)
        return;
    struct node *node = node_take(cache, answer->body);
    const char *owner = node_unschedulable_owner(answer->body);
    if (node == NULL || owner == NULL || !node_was_uncordoned(node))
        return;
    xfree(node->uncordoned_by);
    node->uncordoned_by = xstrdup(owner);
}

void node_cache_ask_uncordoned(struct node_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++) {
        struct node *node = cache->nodes[i];
        AUTO_TEXT path = {0};
        if (!node_was_uncordoned(node) || node->uncordon_asked)
            continue;
        node->uncordon_asked = true;
        node_path(node->name, &path);
        struct kube_call call = {.method = "GET", .path = path.bytes, .priority = KUBE_READ};
        kube_call_start(cache->client, &call, on_owner, cache);
    }
}

/* ---- questions ---- */

bool node_cache_was_heard(const struct node_cache *cache, int64_t fresh_ns)
{
    const char *reason = NULL;
    return !cache->is_relisting && kube_watch_is_synced(cache->watch, fresh_ns, &reason);
}

size_t node_cache_count(const struct node_cache *cache)
{
    return cache->count;
}

uint64_t node_cache_generation(const struct node_cache *cache)
{
    return cache->generation;
}

uint64_t node_cache_changed(const struct node_cache *cache, size_t index)
{
    return cache->nodes[index]->changed;
}

const char *node_cache_name(const struct node_cache *cache, size_t index)
{
    return cache->nodes[index]->name;
}

const char *node_label(const struct node_cache *cache, const struct node *node, const char *key)
{
    for (size_t i = 0; i < node->label_count; i++)
        if (strcmp(cache->wanted.items[i], key) == 0)
            return node->labels[i];
    return NULL;
}

const char *node_cache_label(const struct node_cache *cache, size_t index, const char *key)
{
    return node_label(cache, cache->nodes[index], key);
}

void node_cache_set_racks(struct node_cache *cache, node_rack_fn *fn, void *context)
{
    cache->rack_fn = fn;
    cache->rack_context = context;
}

const char *node_rack(const struct node_cache *cache, const struct node *node)
{
    if (cache->rack_fn != NULL)
        return cache->rack_fn(cache->rack_context, node->name);
    return cache->rack_label[0] != '\0' ? node_label(cache, node, cache->rack_label) : NULL;
}

bool node_was_uncordoned(const struct node *node)
{
    return node->incident != NULL && !node->is_unschedulable;
}

static const char *cordoned_by(const struct node *node)
{
    if (!node->is_unschedulable)
        return NULL;
    return node->incident != NULL ? node->incident : "";
}

static const char *fenced_by(const struct node *node)
{
    if (node->fenced_by != NULL)
        return node->fenced_by;
    return node->is_out_of_service ? "taint " NODE_TAINT_OUT_OF_SERVICE : NULL;
}

void node_cache_describe(const struct node_cache *cache, size_t index, struct world_node *ret_node)
{
    const struct node *node = cache->nodes[index];
    bool is_promised = node->spare != NULL && node->spare[0] != '\0';
    *ret_node = (struct world_node){
        .name = node->name,
        .rack = cache->rack_label[0] != '\0' ? node_label(cache, node, cache->rack_label) : NULL,
        .nvlink_domain = node->last_clique,
        .domain_is_past = node->last_clique != NULL &&
                          node_label(cache, node, NODE_LABEL_CLIQUE) == NULL,
        .ready = node->is_ready,
        .cordoned = node->is_unschedulable,
        .cordoned_by = cordoned_by(node),
        .spare = node->spare != NULL && !node->is_unschedulable &&
                 (is_promised || node->trouble == NULL),
        .promised_to = is_promised ? node->spare : NULL,
        .gpus_allocatable = node->gpus,
        .fenced_by = fenced_by(node),
        .uncordoned_by = node_was_uncordoned(node) ? node->uncordoned_by : NULL,
        .marked_by = node_was_uncordoned(node) ? node->incident : NULL};
}

bool node_cache_is_ready(const struct node_cache *cache, const char *node)
{
    const struct node *found = node_find(cache, node);
    return found != NULL && found->is_ready;
}

const char *node_cache_uid(const struct node_cache *cache, const char *node)
{
    const struct node *found = node_find(cache, node);
    return found != NULL && found->uid != NULL ? found->uid : "";
}

void node_incident_value(const char *incident_ref, char buffer[64])
{
    text_copy(buffer, 64, incident_ref);
    for (char *c = buffer; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
}

void node_path(const char *name, struct text *out)
{
    text_add(out, "/api/v1/nodes");
    kube_path_add(out, name);
}
