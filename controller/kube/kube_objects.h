/* The objects of one kind that a watch knows: names and versions, nothing else of them. */
#ifndef BROOM_KUBE_OBJECTS_H
#define BROOM_KUBE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_object {
    char *key; /* "NAMESPACE/NAME", or "/NAME" for cluster-scoped kinds */
    char *version;
    int64_t listing; /* number of the list that held it last */
};

/* Zero-initialise. An open table; a slot without a key is free. */
struct kube_objects {
    struct kube_object *slots;
    size_t capacity, count, bytes;
};

/* True when both are numbers and a < b: versions of other forms have no order. */
bool kube_version_is_older(const char *a, const char *b);

/* Notes that the object is there. False when its version is older than what is known of it. */
bool kube_objects_put(struct kube_objects *objects, const char *namespace_name, const char *name,
                      const char *version, int64_t listing);
/* False when it was not there. */
bool kube_objects_remove(struct kube_objects *objects, const char *namespace_name,
                         const char *name);
/* The next object, from slot *cursor on (0 to begin), whose list is another one than this, or NULL;
 * lent until the next change. It may be removed before the next call: nothing is left out, and all
 * calls together look at each slot once. */
const struct kube_object *kube_objects_other(const struct kube_objects *objects, int64_t listing,
                                             size_t *cursor);
void kube_objects_done(struct kube_objects *objects);

#endif
