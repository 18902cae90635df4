/* What is kept of each node (about 500 bytes, not the 30 kB that it is), and the patches of our own
 * keys.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_NODES_H
#define BROOM_ACTUATORS_KUBERNETES_NODES_H

#include "controller/kube/kube_client.h"
#include "remediation/actuator.h"

struct node_cache;

/* client and loop are lent. rack_label: label that names a node's rack; "" none. */
struct node_cache *node_cache_new(struct kube_client *client, struct loop *loop,
                                  const char *rack_label);
void node_cache_free(struct node_cache *cache);
/* False when the picture is not whole or not fresh; *ret_reason says why. */
bool node_cache_is_synced(const struct node_cache *cache, const char **ret_reason);
/* The watch of nodes has heard something within `fresh_ns`. */
bool node_cache_was_heard(const struct node_cache *cache, int64_t fresh_ns);
size_t node_cache_count(const struct node_cache *cache);
/* In order of name. Strings are the cache's, valid until the loop runs again. rack is that of
 * rack_label, NULL where the node has no such label; promised_to is the value of the spare's taint
 * (node_spare_value of a job). */
void node_cache_describe(const struct node_cache *cache, size_t index, struct world_node *ret_node);
bool node_cache_is_ready(const struct node_cache *cache, const char *node); /* false when unknown */

/* Labels are dropped but for those asked for here. A key that is new makes the nodes be listed
 * again; until then its values are not known. */
void node_cache_want_label(struct node_cache *cache, const char *key);
const char *node_cache_label(const struct node_cache *cache, size_t index,
                             const char *key);                                /* or NULL */
const char *node_cache_name(const struct node_cache *cache, size_t index);    /* in order of name */
const char *node_cache_uid(const struct node_cache *cache, const char *node); /* "" unknown */
/* Moves with every change of a name or of a label that was asked for. */
uint64_t node_cache_generation(const struct node_cache *cache);
/* The generation in which a name or such a label of this node changed last. */
uint64_t node_cache_changed(const struct node_cache *cache, size_t index);

/* Reads who took off cordons of ours, where one was taken off since; node_cache_describe tells it
 * from then on. */
void node_cache_ask_uncordoned(struct node_cache *cache);

/* The rack of a node, for the check of spares; NULL: that of rack_label alone. */
typedef const char *node_rack_fn(void *context, const char *node);
void node_cache_set_racks(struct node_cache *cache, node_rack_fn *fn, void *context);

/* cordon, uncordon, promise_spare, release_spare, and the poll of each. hold: further nodes that a
 * promise, once it stands, keeps free for the time being (taint
 * broomwagon.io/held=inc-n:NoSchedule), until the release of the same incident. */
void nodes_start(struct node_cache *cache, const struct action *action, const char *const *hold,
                 size_t hold_count, action_done_fn *done, void *context);
void nodes_poll(struct node_cache *cache, const struct action *action, action_done_fn *done,
                void *context);

/* A job's name as a label value, another one for each job: NAMESPACE.NAME for namespace/name, where
 * neither holds a dot; any other name without its dots, cut, and ended with a hash. buffer: 64
 * bytes. */
void node_spare_value(const char *job, char buffer[64]);

#endif
