/* A local picture of one kind of object, kept by list and watch: paged list, then a watch with
 * bookmarks from the list's resourceVersion; 410 as HTTP status or inside a 200 stream lists again;
 * a watch that closes at once, or three times in a row without an event, backs off and lists again;
 * a list older than what was seen before is not acted on and is asked again. The owner keeps what
 * it needs of each object: nothing is cached here but names and versions.
 */
#ifndef BROOM_KUBE_WATCH_H
#define BROOM_KUBE_WATCH_H

#include "controller/kube/kube_client.h"

struct kube_watch;

struct kube_watch_params {
    const char *path; /* "/api/v1/nodes", "/api/v1/pods?labelSelector=..."; copied */
    int page_items;   /* of its lists; 0: 100 */
    bool is_optional; /* a 404 (the CRD is not installed) is an empty picture, asked again every 5
                         min */
    /* An object is there: new, changed or just listed again. */
    void (*on_object)(void *context, const struct json *object);
    /* It is gone: by name; namespace_name "" for cluster-scoped kinds. Also told after a relist for
     * each object that the list did not hold. */
    void (*on_gone)(void *context, const char *namespace_name, const char *name);
    /* The picture is whole (after each list), or is not any more (reason not NULL). May be NULL. */
    void (*on_state)(void *context, bool is_synced, const char *reason);
    void *context;
    int backoff_ms; /* first wait after a failure, doubling to 10 times of it; 0: 500 */
    int idle_ms;    /* a watch without a byte for so long is asked for anew; 0: 45 s */
};

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params);
void kube_watch_free(struct kube_watch *watch);
DEFINE_AUTO(struct kube_watch, kube_watch_free)

/* True from the first whole list on, while the server was heard (an event, a bookmark, or an
 * answer) within the last `fresh_ns`; else *ret_reason says in one line what is wrong. */
bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns,
                          const char **ret_reason);

struct kube_watch_counts {
    int64_t lists, watches, events, bookmarks, expired, stale_lists, empty_watches;
    size_t objects, bytes; /* held here */
};
struct kube_watch_counts kube_watch_counts(const struct kube_watch *watch);

#endif
