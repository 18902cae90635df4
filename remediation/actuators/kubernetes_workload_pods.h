/* What is kept of each pod of the cluster: about 300 bytes. */
#ifndef BROOM_ACTUATORS_KUBERNETES_WORKLOAD_PODS_H
#define BROOM_ACTUATORS_KUBERNETES_WORKLOAD_PODS_H

#include "controller/base/json.h"
#include "remediation/actuators/kubernetes_workload_kinds.h"

/* Strings are never NULL; all live in one allocation behind the struct. */
struct pod {
    struct pod *next, *previous; /* of all pods */
    struct pod *chain;           /* same bucket */
    const char *namespace_name, *name, *uid, *node;
    const char *job;       /* name of its workload, "" none */
    const char *group;     /* of its workload: task, replicated job, replica type */
    const char *owner_uid; /* of the object that controls it */
    const char *claims;    /* ResourceClaimTemplates that it uses, one a line */
    const char *message;   /* why it cannot be placed, or does not stay up; "" none */
    int64_t deleted_ns;    /* when it should have ended, 0: it is not being deleted */
    uint64_t seen;         /* order in which uids were first seen here, from 1 */
    uint32_t key_hash;     /* of namespace and name */
    uint32_t job_hash;     /* pods_job_hash of its workload */
    int32_t index;         /* inside its group or its job of the group; -1 none */
    int32_t outer_index;   /* JobSet: its job inside the group; Volcano: its partition; -1 none */
    int32_t gpus;
    enum workload_kind_id kind; /* of its workload; WORKLOAD_KIND_COUNT none */
    bool is_daemon, is_mirror, has_ended, is_running;
};

struct pod_table {
    struct pod *first, **buckets;
    size_t count, bucket_count, bytes;
    uint64_t seen;
};

void pods_done(struct pod_table *table);
/* Adds or replaces. An object without a name is left out. */
void pods_put(struct pod_table *table, const struct json *object);
void pods_remove(struct pod_table *table, const char *namespace_name, const char *name);
const struct pod *pods_find(const struct pod_table *table, const char *namespace_name,
                            const char *name); /* or NULL */
uint32_t pods_job_hash(enum workload_kind_id kind, const char *namespace_name, const char *name);
/* Is it one of the workload's pods, of this or of an earlier object of that name? */
bool pod_is_of(const struct pod *pod, uint32_t job_hash, enum workload_kind_id kind,
               const char *namespace_name, const char *name);

#endif
