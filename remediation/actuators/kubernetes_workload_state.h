/* The inside of struct workloads, for the files that share it. */
#ifndef BROOM_ACTUATORS_KUBERNETES_WORKLOAD_STATE_H
#define BROOM_ACTUATORS_KUBERNETES_WORKLOAD_STATE_H

#include "controller/kube/kube_watch.h"
#include "remediation/actuators/kubernetes_domain.h"
#include "remediation/actuators/kubernetes_workload.h"
#include "remediation/actuators/kubernetes_workload_kinds.h"
#include "remediation/actuators/kubernetes_workload_pods.h"

#include <sys/queue.h>

/* Which workload is meant: what `workload` of formats.md says. */
struct work_ref {
    const struct workload_kind *kind;
    char namespace_name[254], name[254], uid[64]; /* uid "" where it is not told */
};

enum { ITEM_BUCKETS = 256 };

struct workload_watch {
    struct workloads *owner;
    const struct workload_kind *kind;
    struct kube_watch *watch;
};

struct workloads {
    struct kube_client *client;
    struct loop *loop;
    const struct node_cache *nodes;
    bool reads_only;
    struct kube_watch *pod_watch, *domain_watch;
    struct workload_watch watches[WORKLOAD_KIND_COUNT];
    struct pod_table pods;
    struct workload_item *items[WORKLOAD_KIND_COUNT][ITEM_BUCKETS];
    struct domain *domains;
    LIST_HEAD(, work_call) calls; /* under way */
    void **kept;                  /* what the last description lends */
    size_t kept_count, kept_capacity;
};

/* ERR_INVALID says why nothing can be done with this workload. */
MUST_CHECK enum status work_ref_read(const char *workload_json, struct work_ref *ret_ref,
                                     struct error *reterr);

const struct workload_item *workloads_find(const struct workloads *workloads,
                                           const struct work_ref *ref); /* or NULL */
/* All pods of its gang run and are of one start, and this is the newest of them (pod.seen). */
void workloads_note_gang(struct workloads *workloads, const struct workload_item *item,
                         uint64_t newest);
/* Item whose groups and pods are the workload's: for a TrainJob the JobSet of its name. Or NULL. */
const struct workload_item *workloads_find_groups(const struct workloads *workloads,
                                                  const struct workload_item *item);

/* Pods of this object, not of an earlier one of its name. The caller frees the array. */
const struct pod **workloads_pods_of(const struct workloads *workloads,
                                     const struct workload_item *item, size_t *ret_count);

bool workloads_kind_is_synced(const struct workloads *workloads, const struct workload_kind *kind,
                              const char **ret_reason);
bool workloads_pods_are_synced(const struct workloads *workloads, const char **ret_reason);

#endif
