/* Sources of the inventory, and the labels that are written back from it. */
#include "remediation/actuators/kubernetes_topology.h"

#include "controller/kube/kube_watch.h"
#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_hypernode.h"
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t FRESH_NS = INT64_C(600000000000); /* HyperNodes change by hand */
enum { WRITES_AT_ONCE = 8 };

#define LABEL_RACK "broomwagon.io/rack"
#define LABEL_TRAY "broomwagon.io/tray"
#define LABEL_RAIL "broomwagon.io/rail"

/* A node that a HyperNode names. Both are the HyperNode's. */
struct named {
    const char *node, *hypernode;
};

struct topology {
    struct topology_params params;
    char *rack_label;
    struct inventory *own; /* NULL when it is lent */
    struct inventory *inventory;
    struct kube_watch *watch;
    struct hypernode **hypernodes; /* in order of name; tier 1 with nodes as members */
    size_t count, capacity;
    struct named *named; /* in order of node, then of HyperNode; made anew when one changes */
    size_t named_count, named_capacity;
    bool is_changed;
    uint64_t generation; /* of the nodes, when the inventory was last told */
    int32_t under_way;   /* label patches */
};

/* ---- HyperNodes ---- */

static int compare_hypernode(const void *name, const void *item)
{
    return strcmp(name, hypernode_name(*(struct hypernode *const *)item));
}

/* Where it is, or would stand. */
static size_t place_of(const struct topology *topology, const char *name, bool *ret_is_there)
{
    size_t place = array_lower_bound(name, topology->hypernodes, topology->count,
                                     sizeof(struct hypernode *), compare_hypernode);
    *ret_is_there = place < topology->count &&
                    strcmp(hypernode_name(topology->hypernodes[place]), name) == 0;
    return place;
}

static void hypernode_drop(struct topology *topology, const char *name)
{
    bool is_there;
    size_t place = place_of(topology, name, &is_there);
    if (!is_there)
        return;
    struct hypernode **at = &topology->hypernodes[place];
    hypernode_free(*at);
    topology->count--;
    memmove(at, at + 1, (topology->count - place) * sizeof(struct hypernode *));
    topology->named_count = 0; /* it points into what went */
    topology->is_changed = true;
}

static void hypernode_add(struct topology *topology, struct hypernode *take_hypernode)
{
    bool is_there;
    size_t place = place_of(topology, hypernode_name(take_hypernode), &is_there);
    topology->hypernodes = array_grow(topology->hypernodes, topology->count, &topology->capacity,
                                      sizeof(struct hypernode *));
    struct hypernode **at = &topology->hypernodes[place];
    memmove(at + 1, at, (topology->count - place) * sizeof(struct hypernode *));
    *at = take_hypernode;
    topology->count++;
    topology->is_changed = true;
}

static void want_label(void *context, const char *key)
{
    struct topology *topology = context;
    node_cache_want_label(topology->params.nodes, key);
}

static void on_object(void *context, const struct json *object)
{
    struct topology *topology = context;
    struct hypernode *hypernode = hypernode_read(object);
    hypernode_drop(topology, json_get_string(json_get(object, "metadata"), "name", ""));
    if (hypernode == NULL)
        return;
    hypernode_each_label(hypernode, want_label, topology);
    hypernode_add(topology, hypernode);
}

static void on_gone(void *context, const char *namespace_name, const char *name)
{
    (void)namespace_name;
    hypernode_drop(context, name);
}

struct labels_of {
    const struct node_cache *nodes;
    size_t index;
};

static const char *label_of(void *context, const char *key)
{
    const struct labels_of *labels = context;
    return node_cache_label(labels->nodes, labels->index, key);
}

static void add_named(void *context, const struct hypernode *hypernode, const char *node)
{
    struct topology *topology = context;
    topology->named = array_grow(topology->named, topology->named_count, &topology->named_capacity,
                                 sizeof *topology->named);
    topology->named[topology->named_count++] = (struct named){node, hypernode_name(hypernode)};
}

static int by_node(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    int order = strcmp(left->node, right->node);
    return order != 0 ? order : strcmp(left->hypernode, right->hypernode);
}

static void index_named(struct topology *topology)
{
    topology->named_count = 0;
    for (size_t i = 0; i < topology->count; i++)
        hypernode_each_exact(topology->hypernodes[i], add_named, topology);
    if (topology->named_count > 0)
        qsort(topology->named, topology->named_count, sizeof *topology->named, by_node);
}

static int compare_named(const void *node, const void *item)
{
    return strcmp(node, ((const struct named *)item)->node);
}

/* The first HyperNode by name that names it, or NULL. */
static const char *named_by(const struct topology *topology, const char *node)
{
    size_t place = array_lower_bound(node, topology->named, topology->named_count,
                                     sizeof *topology->named, compare_named);
    bool found = place < topology->named_count && strcmp(topology->named[place].node, node) == 0;
    return found ? topology->named[place].hypernode : NULL;
}

/* The first by name of those that claim it: two racks for one node are a mistake of the site. */
static const char *hypernode_of(const struct topology *topology, size_t index)
{
    struct labels_of labels = {topology->params.nodes, index};
    const char *name = node_cache_name(topology->params.nodes, index);
    const char *found = named_by(topology, name);
    for (size_t i = 0; i < topology->count; i++) {
        const char *candidate = hypernode_name(topology->hypernodes[i]);
        if (found != NULL && strcmp(candidate, found) >= 0)
            break;
        if (hypernode_matches(topology->hypernodes[i], name, label_of, &labels))
            return candidate;
    }
    return found;
}

/* ---- telling the inventory ---- */

static void observe(struct topology *topology, size_t index, int64_t now_ns)
{
    const struct node_cache *nodes = topology->params.nodes;
    struct inventory_observation seen = {.node = node_cache_name(nodes, index),
                                         .tray = INVENTORY_UNKNOWN,
                                         .rails = INVENTORY_UNKNOWN,
                                         .time_ns = now_ns};
    seen.source = INVENTORY_CLIQUE;
    seen.nvlink_domain = node_cache_label(nodes, index, NODE_LABEL_CLIQUE);
    inventory_observe(topology->inventory, &seen);
    seen.nvlink_domain = NULL;
    seen.source = INVENTORY_HYPERNODE;
    seen.rack = hypernode_of(topology, index);
    inventory_observe(topology->inventory, &seen);
    seen.source = INVENTORY_LABEL;
    seen.rack = topology->rack_label[0] != '\0'
                    ? node_cache_label(nodes, index, topology->rack_label)
                    : NULL;
    inventory_observe(topology->inventory, &seen);
}

static void tell(struct topology *topology)
{
    uint64_t generation = node_cache_generation(topology->params.nodes);
    if (!topology->is_changed && generation == topology->generation)
        return;
    int64_t now_ns = clock_now_ns();
    if (topology->is_changed)
        index_named(topology);
    for (size_t i = 0; i < node_cache_count(topology->params.nodes); i++)
        if (topology->is_changed ||
            node_cache_changed(topology->params.nodes, i) > topology->generation)
            observe(topology, i, now_ns);
    topology->is_changed = false;
    topology->generation = generation;
}

/* ---- labels ---- */

static void write_all_labels(struct topology *topology);

/* The next few follow at once; what failed waits for the next refresh. */
static void on_written(void *context, const struct kube_answer *answer)
{
    struct topology *topology = context;
    topology->under_way--;
    if (answer->result != KUBE_OK)
        return;
    if (answer->body != NULL)
        node_take(topology->params.nodes, answer->body);
    write_all_labels(topology);
}

static bool is_label_value(const char *value)
{
    size_t length = strlen(value);
    for (size_t i = 0; i < length; i++) {
        char c = value[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool is_inner = i > 0 && i + 1 < length && (c == '-' || c == '_' || c == '.');
        if (!is_letter && !is_inner)
            return false;
    }
    return length > 0 && length < 64;
}

static bool is_same(const char *have, const char *want)
{
    return strcmp(have != NULL ? have : "", want) == 0;
}

/* What a label is to be. NULL: nothing is known, and what stands there stays; "": it is to go. */
struct wanted_label {
    const char *key, *value;
};
enum { LABELS_WRITTEN = 3 };

/* Rails of a node that is not Ready are not known, whatever carried a step an hour ago. A word that
 * nobody stands for goes: it would be believed. */
static const char *rail_value(const struct topology *topology, const char *node)
{
    enum rail_state state = topology->params.rail != NULL
                                ? topology->params.rail(topology->params.rail_context, node)
                                : RAIL_UNREAD;
    switch (state) {
    case RAIL_UNREAD:
        return NULL;
    case RAIL_READY:
        return node_cache_is_ready(topology->params.nodes, node) ? "ready" : "";
    case RAIL_DEGRADED:
        return "degraded";
    case RAIL_UNKNOWN:
        break;
    }
    return "";
}

static void find_wanted(const struct topology *topology, const char *node, char tray[16],
                        struct wanted_label ret_wanted[LABELS_WRITTEN])
{
    struct inventory_node seen;
    bool is_placed = inventory_find(topology->inventory, node, &seen) && seen.rack != NULL &&
                     is_label_value(seen.rack);
    bool has_tray = is_placed && seen.tray != INVENTORY_UNKNOWN;
    if (has_tray)
        snprintf(tray, 16, "%" PRId32, seen.tray);
    ret_wanted[0] = (struct wanted_label){LABEL_RACK, is_placed ? seen.rack : NULL};
    ret_wanted[1] = (struct wanted_label){LABEL_TRAY, has_tray ? tray : NULL};
    ret_wanted[2] = (struct wanted_label){LABEL_RAIL, rail_value(topology, node)};
}

/* One patch of our own labels, where one of them is not as it is to be. */
static void write_labels(struct topology *topology, size_t index)
{
    struct node_cache *nodes = topology->params.nodes;
    const char *name = node_cache_name(nodes, index);
    struct wanted_label wanted[LABELS_WRITTEN];
    char tray[16];
    bool is_right = true;
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    find_wanted(topology, name, tray, wanted);
    struct json_writer w = json_writer(&body);
    json_open_object(&w);
    json_add_key(&w, "metadata");
    json_open_object(&w);
    json_add_key(&w, "labels");
    json_open_object(&w);
    for (size_t i = 0; i < LABELS_WRITTEN; i++) {
        const struct wanted_label *label = &wanted[i];
        if (label->value == NULL ||
            is_same(node_cache_label(nodes, index, label->key), label->value))
            continue;
        json_put_string(&w, label->key, label->value[0] != '\0' ? label->value : NULL);
        is_right = false;
    }
    json_close(&w);
    json_close(&w);
    json_close(&w);
    if (is_right)
        return;
    node_path(name, &path);
    text_addf(&path, "?fieldManager=%s", NODE_FIELD_MANAGER);
    struct kube_call call = {.method = "PATCH",
                             .path = path.bytes,
                             .body = {body.bytes, body.length},
                             .patch = KUBE_MERGE_PATCH,
                             .priority = KUBE_LIST};
    kube_call_start(topology->params.client, &call, on_written, topology);
    topology->under_way++;
}

static void write_all_labels(struct topology *topology)
{
    const char *reason;
    if (!topology->params.write_labels || topology->under_way > 0 ||
        !node_cache_is_synced(topology->params.nodes, &reason))
        return;
    for (size_t i = 0; i < node_cache_count(topology->params.nodes); i++)
        if (topology->under_way < WRITES_AT_ONCE)
            write_labels(topology, i);
}

/* ---- the module ---- */

struct topology *topology_new(const struct topology_params *params)
{
    struct topology *topology = xcalloc(1, sizeof *topology);
    topology->params = *params;
    topology->rack_label = xstrdup(params->rack_label);
    topology->params.rack_label = topology->rack_label;
    topology->own = params->inventory == NULL ? inventory_new() : NULL;
    topology->inventory = params->inventory != NULL ? params->inventory : topology->own;
    if (params->write_labels) {
        node_cache_want_label(params->nodes, LABEL_RACK);
        node_cache_want_label(params->nodes, LABEL_TRAY);
        node_cache_want_label(params->nodes, LABEL_RAIL);
    }
    struct kube_watch_params watch = {.path = "/apis/topology.volcano.sh/v1alpha1/hypernodes",
                                      .is_optional = true,
                                      .on_object = on_object,
                                      .on_gone = on_gone,
                                      .context = topology};
    topology->watch = kube_watch_new(params->client, &watch);
    return topology;
}

void topology_set_writing(struct topology *topology, bool write_labels)
{
    topology->params.write_labels = write_labels;
}

void topology_free(struct topology *topology)
{
    if (topology == NULL)
        return;
    kube_watch_free(topology->watch);
    for (size_t i = 0; i < topology->count; i++)
        hypernode_free(topology->hypernodes[i]);
    xfree(topology->hypernodes);
    xfree(topology->named);
    inventory_free(topology->own);
    xfree(topology->rack_label);
    xfree(topology);
}

bool topology_is_synced(const struct topology *topology, const char **ret_reason)
{
    return topology->rack_label[0] != '\0' ||
           kube_watch_is_synced(topology->watch, FRESH_NS, ret_reason);
}

void topology_refresh(struct topology *topology)
{
    tell(topology);
    write_all_labels(topology);
}

bool topology_find(const struct topology *topology, const char *node,
                   struct inventory_node *ret_node)
{
    return inventory_find(topology->inventory, node, ret_node);
}

const char *topology_rack(void *topology, const char *node)
{
    struct inventory_node found;
    return topology_find(topology, node, &found) ? found.rack : NULL;
}
