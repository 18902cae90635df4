/* One restart, request or poll under way: at most one request of it is at the server at a time.
 * Every function below ends with exactly one of: another request, a timer, work_call_end.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_WORKLOAD_CALL_H
#define BROOM_ACTUATORS_KUBERNETES_WORKLOAD_CALL_H

#include "remediation/actuators/kubernetes_workload_state.h"

enum { WORK_CONFLICTS_MAX = 5 };

typedef void work_fn(struct work_call *call);
typedef void work_answer_fn(struct work_call *call, const struct kube_answer *answer);

struct work_call {
    struct workloads *owner;
    LIST_ENTRY(work_call) entry;
    struct work_ref ref;
    char operation_id[OPERATION_ID_BYTES];
    bool is_poll;
    char **nodes; /* owned */
    size_t node_count;
    char *reason, *incident;
    int64_t begun_ns, limit_ns; /* pipeline time */
    struct loop_timer *timer;
    struct kube_request *request; /* at the server now */
    work_fn *on_timer, *on_item;
    work_answer_fn *on_answer;
    action_done_fn *done;
    void *context;
    struct workload_item item; /* as last read from the server */
    int conflicts;
    bool has_begun;            /* something of it was written */
    bool may_have_begun;       /* a write of it went without an answer */
    char waits_for[256];       /* what it waits for, for the answer when time is over */
    enum outcome said_outcome; /* known from the start */
    enum poll_state said_poll;
    /* Volcano */
    int64_t retries_before, issued_ns, gone_ns;
    int issued;        /* Commands so far */
    char command[128]; /* name of the one that is followed */
    bool is_adopted;   /* it lay there from an earlier operation */
    char command_uid[64];
    int64_t withdrawn_ns; /* when it was to be withdrawn, as the job's mark says; 0 it was not */
    char evicted[64]; /* uid of the pod whose eviction restarts its partition; "" a Command does */
    uint64_t pods_seen_before;
    /* suspend and resume; evictions */
    bool had_pods;
    char *pod_name; /* the one that was evicted last */
    char *task;     /* and the partition of it that restarts */
    int32_t partition;
};

/* A call of its own copy of the action. ref is what the action's workload is. */
struct work_call *work_call_new(struct workloads *owner, const struct action *action, bool is_poll,
                                const struct work_ref *ref, action_done_fn *done, void *context);
void work_call_free(struct work_call *call); /* without an answer */
/* The call that starts this operation in this process now, or NULL. */
const struct work_call *work_call_find_start(const struct workloads *owner,
                                             const char *operation_id);

/* The call that restarts this workload in this process now, or NULL. */
const struct work_call *work_call_find_of(const struct workloads *owner,
                                          const struct workload_item *item);

/* Answers and frees. */
void work_call_end(struct work_call *call, enum outcome outcome, enum poll_state poll,
                   const char *format, ...) PRINTF_LIKE(4, 5);
/* Ends a start. */
void work_call_answer(struct work_call *call, enum outcome outcome, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Ends a poll that has no outcome. */
void work_call_tell(struct work_call *call, enum poll_state poll, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Reads the object into call->item, then calls fn. When it cannot be read the call ends: a start of
 * which nothing was written transient or refused, a begun one asks again until its time is over. */
void work_call_read(struct work_call *call, work_fn *fn);
/* Patches the object (merge), posts or gets a path. */
void work_call_patch(struct work_call *call, const struct text *body, work_answer_fn *fn);
/* One annotation of the object, whatever its version. */
void work_call_annotate(struct work_call *call, const char *key, const char *value,
                        work_answer_fn *fn);
void work_call_post(struct work_call *call, const char *path, const struct text *body,
                    work_answer_fn *fn);
void work_call_get(struct work_call *call, const char *path, work_answer_fn *fn);
/* Deletes what is under this path if its uid is this one: else KUBE_CONFLICT. */
void work_call_delete(struct work_call *call, const char *path, const char *uid,
                      work_answer_fn *fn);
/* Evicts exactly this pod: its uid is a precondition. KUBE_BLOCKED: a disruption budget. */
void work_call_evict(struct work_call *call, const struct pod *pod, work_answer_fn *fn);
/* fn after a while of pipeline time; ends the call as unknown when its time is over. */
void work_call_later(struct work_call *call, int64_t after_ns, work_fn *fn);
/* A write that did not come through: ends the call by what the answer means for an action of which
 * nothing has happened. */
void work_call_fail(struct work_call *call, const struct kube_answer *answer);
/* Somebody changed the object meanwhile: fn decides again from a fresh read, a few times. */
void work_call_decide_again(struct work_call *call, work_fn *fn);

#endif
