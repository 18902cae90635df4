/* What is kept of each node (about 500 bytes, not the 30 kB that it is), and the patches of our own
 * keys.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_NODES_H
#define BROOM_ACTUATORS_KUBERNETES_NODES_H

#include "controller/kube/kube_client.h"
#include "remediation/actuator.h"

struct node_cache;

struct node_cache *node_cache_new(struct kube_client *client, struct loop *loop,
                                  const char *rack_label);
void node_cache_free(struct node_cache *cache);
bool node_cache_is_synced(const struct node_cache *cache, const char **ret_reason);
size_t node_cache_count(const struct node_cache *cache);
/* In order of name. Strings are the cache's, valid until the loop runs again. */
void node_cache_describe(const struct node_cache *cache, size_t index, struct world_node *ret_node);
bool node_cache_is_ready(const struct node_cache *cache, const char *node); /* false when unknown */
bool node_cache_has(const struct node_cache *cache, const char *node);
const char *node_cache_clique(const struct node_cache *cache, const char *node); /* or NULL */

/* cordon, uncordon, promise_spare, release_spare, and the poll of each. promised: value of the
 * spare's taint for the action's job (see node_spare_value). */
void nodes_start(struct node_cache *cache, const struct action *action, action_done_fn *done,
                 void *context);
void nodes_poll(struct node_cache *cache, const struct action *action, action_done_fn *done,
                void *context);

/* A job's name as a label value: itself where it is one ('/' becomes '.'), else cut and ended with
 * a hash. buffer: 64 bytes. */
void node_spare_value(const char *job, char buffer[64]);

#endif
