/* One call of the actuator's port that is under way: its own copy of the action, and the answer,
 * which is given exactly once and never inside the call that began it.
 */
#ifndef BROOM_ACTUATORS_KUBERNETES_OPERATION_H
#define BROOM_ACTUATORS_KUBERNETES_OPERATION_H

#include "controller/io/loop.h"
#include "controller/kube/kube_client.h"
#include "remediation/actuator.h"
#include "remediation/names.h"

#include <sys/queue.h>

struct operation;

/* Those of one owner. Zero-initialise, set loop. */
struct operations {
    struct loop *loop;
    LIST_HEAD(, operation) all;
};

/* First member of whoever keeps more about it. */
struct operation {
    struct operations *list;
    LIST_ENTRY(operation) entry;
    struct action action; /* owned */
    struct json *params;  /* NULL for none */
    bool is_poll;
    void *owner; /* whoever began it may keep something here */
    struct names nodes, spares;
    action_done_fn *done;
    void *context;
    void (*free)(struct operation *operation); /* of the whole that it is the first member of */
    struct loop_timer *timer;                  /* of the answer */
    struct action_result result;
    struct text reason, response;
};

/* free may be NULL: the operation alone is freed with xfree. */
void operation_begin(struct operations *list, struct operation *operation,
                     const struct action *action, action_done_fn *done, void *context,
                     void (*free)(struct operation *operation));
/* The answer follows with the next pass of the loop, with what stands in reason and response. The
 * operation is freed before it, since whoever is answered may free its owner. */
void operation_end(struct operation *operation, enum outcome outcome, enum poll_state poll);
/* The same at once, with another one's answer. */
void operation_pass(struct operation *operation, const struct action_result *result);
/* An operation that has nothing to do but to say so. */
void operation_refuse(struct operations *list, const struct action *action, enum outcome outcome,
                      enum poll_state poll, const char *reason, action_done_fn *done,
                      void *context);
/* Is a start of this id under way? */
bool operations_are_starting(const struct operations *list, const char *operation_id);
/* Frees all, without an answer. */
void operations_drop(struct operations *list);

/* What the answer to a change means for the change. KUBE_OK: succeeded. */
enum outcome operation_outcome_of(enum kube_result result);

#endif
