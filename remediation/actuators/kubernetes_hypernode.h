/* One Volcano HyperNode of tier 1: which nodes are its members. */
#ifndef BROOM_ACTUATORS_KUBERNETES_HYPERNODE_H
#define BROOM_ACTUATORS_KUBERNETES_HYPERNODE_H

#include "remediation/actuators/kubernetes_selector.h"

struct hypernode;

/* NULL when it is of another tier or names no nodes. A pattern that is no POSIX extended regular
 * expression (\d is understood) has no member. The caller frees it. */
struct hypernode *hypernode_read(const struct json *object);
void hypernode_free(struct hypernode *hypernode);
const char *hypernode_name(const struct hypernode *hypernode);

/* Every label key that its selectors ask for. */
void hypernode_each_label(const struct hypernode *hypernode,
                          void (*fn)(void *context, const char *key), void *context);
/* Every node that it names by exactMatch. */
void hypernode_each_exact(const struct hypernode *hypernode,
                          void (*fn)(void *context, const struct hypernode *hypernode,
                                     const char *node),
                          void *context);
/* By its patterns and label selectors: exactMatch is left to hypernode_each_exact. label: value of
 * a node's label, or NULL. */
bool hypernode_matches(const struct hypernode *hypernode, const char *node,
                       selector_label_fn *label, void *context);

#endif
