/* Shared by the files of kubernetes_nodes.h: the cache's rows, and what is decided about one. */
#ifndef BROOM_ACTUATORS_KUBERNETES_NODES_INSIDE_H
#define BROOM_ACTUATORS_KUBERNETES_NODES_INSIDE_H

#include "controller/kube/kube_watch.h"
#include "remediation/actuators/kubernetes_nodes.h"
#include "remediation/actuators/kubernetes_operation.h"

#define NODE_TAINT_QUARANTINE       "broomwagon.io/quarantine"
#define NODE_TAINT_SPARE            "broomwagon.io/spare"
#define NODE_TAINT_HELD             "broomwagon.io/held"
#define NODE_TAINT_OUT_OF_SERVICE   "node.kubernetes.io/out-of-service"
#define NODE_LABEL_CLIQUE           "nvidia.com/gpu.clique"
#define NODE_LABEL_STATE            "broomwagon.io/state"
#define NODE_NOTE_INCIDENT          "broomwagon.io/incident"
#define NODE_NOTE_OPERATION         "broomwagon.io/operation"
#define NODE_NOTE_REASON            "broomwagon.io/reason"
#define NODE_NOTE_WAS_UNSCHEDULABLE "broomwagon.io/was-unschedulable"
#define NODE_NOTE_CORDONED_AT       "broomwagon.io/cordoned-at"
#define NODE_NOTE_PROMISED_BY       "broomwagon.io/promised-by"
#define NODE_NOTE_FENCED_BY         "broomwagon.io/fenced-by"
#define NODE_CONDITION              "BroomwagonFault"
#define NODE_FIELD_MANAGER          "broomd"

/* One node. Strings are owned, NULL: not there. */
struct node {
    char *name, *uid;
    char *version;                                        /* resourceVersion */
    char *taints;                                         /* spec.taints as JSON, all of it */
    char *quarantine, *spare, *held;                      /* values of our taints; "" without one */
    char *incident, *operation, *promised_by, *fenced_by; /* our annotations */
    char *trouble;       /* a taint of the kubelet or the cloud that keeps pods away, its key */
    char *last_clique;   /* kept when the label vanishes: absent is unknown, not left */
    char *uncordoned_by; /* who took a cordon of ours off, where managedFields tell */
    char **labels;       /* by the cache's wanted keys */
    size_t label_count;  /* keys that were wanted when the node was read */
    uint64_t changed;    /* the cache's generation with its last change */
    int32_t gpus, gpus_capacity;
    bool is_ready, is_unschedulable, was_unschedulable, is_out_of_service;
    bool is_marked;      /* condition BroomwagonFault is True */
    bool uncordon_asked; /* managedFields were asked for already */
    bool is_listed;      /* by the watch that runs */
};

/* An answer that is late brings none of so many nodes back. */
enum { NODES_GONE_MAX = 1024 };

/* Which nodes a cordon meant: a node that is made anew under its name is another one. */
struct followed {
    struct followed *next;
    char operation_id[OPERATION_ID_BYTES];
    struct names nodes, uids; /* by index */
};
enum { NODES_FOLLOWED_MAX = 64 };

struct node_cache {
    struct kube_client *client;
    struct loop *loop;
    struct kube_watch *watch;
    struct node **nodes; /* in order of name */
    size_t count, capacity;
    struct names wanted; /* label keys */
    char *rack_label;
    struct loop_timer *relist;
    bool is_relisting; /* a label is wanted that was not kept */
    uint64_t generation;
    node_rack_fn *rack_fn;
    void *rack_context;
    struct operations operations;
    char *gone[NODES_GONE_MAX]; /* uids of nodes that went, a ring */
    size_t gone_count;          /* ever */
    struct followed *followed;  /* cordons whose end is not known, newest first */
};

struct node *node_find(const struct node_cache *cache, const char *name); /* or NULL */
/* Reads an answer of the API into the cache, unless it is older than what is there. Returns the
 * node, or NULL when the object is not one, or is one that has gone since the answer was written.
 */
struct node *node_take(struct node_cache *cache, const struct json *object);
bool node_has_name(const struct json *object); /* it is a node, whether it has gone or not */
void node_forget(struct node_cache *cache, const char *name);
const char *node_label(const struct node_cache *cache, const struct node *node, const char *key);
const char *node_rack(const struct node_cache *cache, const struct node *node); /* or NULL */
/* Ours and gone without us: the annotation stands, spec.unschedulable does not. */
bool node_was_uncordoned(const struct node *node);
/* The taint's value for an incident: INC-3 -> inc-3. */
void node_incident_value(const char *incident_ref, char buffer[64]);
/* "/api/v1/nodes/NAME" */
void node_path(const char *name, struct text *out);

/* What one node needs now. */
enum node_decision {
    NODE_PATCH = 0, /* body is the merge-patch */
    NODE_IS_SO,     /* nothing to do: it is so already, or is not ours to change */
    NODE_NOT_NOW,   /* why: it cannot be, may be asked again with another choice */
    NODE_DECISION_COUNT
};
struct node_wish {
    const struct node_cache *cache;
    const struct action *action;
    const char *spare_value;         /* of the action's job; "" none */
    bool is_used;                    /* release: the promise was kept */
    const char *unschedulable_owner; /* managedFields: who else set spec.unschedulable; or NULL */
    int64_t now_ns;
};
/* body is filled with NODE_PATCH; note with a half sentence for people ("was cordoned by somebody
 * before: kept") where there is one. */
typedef enum node_decision node_decide_fn(const struct node_wish *wish, const struct node *node,
                                          struct text *body, struct text *note);
node_decide_fn node_decide_cordon, node_decide_uncordon, node_decide_promise, node_decide_release,
    node_decide_hold, node_decide_unhold;

/* The merge-patch of nodes/status that sets the condition; strategic, merged by type. */
void node_condition_body(const struct action *action, bool is_fault, int64_t now_ns,
                         struct text *body);
/* Notes, when it is seen first, which node of that name a cordon means. False: it is another one
 * than then. Over NODES_FOLLOWED_MAX cordons the oldest is forgotten. */
bool nodes_follow(struct node_cache *cache, const struct action *action, const struct node *node);
/* Is the node another one than the cordon was begun on? False too for what this process began not.
 */
bool nodes_is_another(const struct node_cache *cache, const char *operation_id,
                      const struct node *node);
void nodes_unfollow(struct node_cache *cache, const char *operation_id);

/* Did the action's effect come about on this node, whatever became of it since? */
bool node_shows_effect(const struct action *action, const char *spare_value,
                       const struct node *node);
/* managedFields of a node as the API gives it: the newest manager that owns spec.unschedulable and
 * is not us; or NULL. */
const char *node_unschedulable_owner(const struct json *object);

#endif
