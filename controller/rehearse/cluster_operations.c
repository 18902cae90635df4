/* What may be done to the cluster: a table of verbs. Each answers with a closed outcome and a
 * reason. */
#include "controller/rehearse/cluster_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { OPERATION_NODES_MAX = 4096 };

struct order {
    const struct json *nodes, *spares, *params;
    const char *incident, *job;
};

typedef void carry_out_fn(struct cluster *cluster, const struct order *order,
                          struct cluster_operation *operation);

static void answer(struct cluster_operation *operation, enum outcome outcome, const char *format,
                   ...) PRINTF_LIKE(3, 4);

static void answer(struct cluster_operation *operation, enum outcome outcome, const char *format,
                   ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(operation->reason, sizeof operation->reason, format, args);
    va_end(args);
    operation->outcome = outcome;
    operation->running = false;
}

/* Names were checked by are_nodes before. */
static struct cluster_node *node_of(struct cluster *cluster, const struct json *name)
{
    int32_t tray = cluster_find_node(cluster, json_string(name, ""));
    assert(tray >= 0);
    return &cluster->nodes[tray];
}

/* False, and the operation is refused, when a name is not a node. */
static bool are_nodes(struct cluster *cluster, const struct json *names,
                      struct cluster_operation *operation)
{
    for (const struct json *name = json_first(names); name != NULL; name = json_next(name))
        if (cluster_find_node(cluster, json_string(name, "")) < 0) {
            answer(operation, OUTCOME_REFUSED, "there is no node '%.100s'", json_string(name, ""));
            return false;
        }
    return true;
}

static void cordon(struct cluster *cluster, const struct order *order,
                   struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->nodes, operation))
        return;
    for (const struct json *name = json_first(order->nodes); name != NULL; name = json_next(name)) {
        struct cluster_node *node = node_of(cluster, name);
        if (node->cordoned_by[0] == '\0')
            text_copy(node->cordoned_by, sizeof node->cordoned_by, order->incident);
    }
    answer(operation, OUTCOME_SUCCEEDED, "%zu nodes are cordoned", json_size(order->nodes));
}

/* Only the incident's own cordons come off. */
static void uncordon(struct cluster *cluster, const struct order *order,
                     struct cluster_operation *operation)
{
    size_t others = 0;
    if (!are_nodes(cluster, order->nodes, operation))
        return;
    for (const struct json *name = json_first(order->nodes); name != NULL; name = json_next(name)) {
        struct cluster_node *node = node_of(cluster, name);
        if (strcmp(node->cordoned_by, order->incident) == 0)
            node->cordoned_by[0] = '\0';
        else
            others++;
    }
    if (others > 0)
        answer(operation, OUTCOME_SUPERSEDED, "%zu of the cordons were not this incident's",
               others);
    else
        answer(operation, OUTCOME_SUCCEEDED, "%zu nodes are uncordoned", json_size(order->nodes));
}

static const char *why_not_spare(const struct cluster *cluster, const struct cluster_node *node,
                                 const char *job)
{
    if (!node->ready)
        return "not ready";
    if (node->cordoned_by[0] != '\0')
        return "cordoned";
    if (!node->spare || model_tray_has_ranks(cluster->model, (int32_t)(node - cluster->nodes)))
        return "no spare";
    if (node->promised_to[0] != '\0' && strcmp(node->promised_to, job) != 0)
        return "promised to another job";
    return NULL;
}

static bool are_spares(struct cluster *cluster, const struct order *order,
                       struct cluster_operation *operation)
{
    for (const struct json *name = json_first(order->spares); name != NULL;
         name = json_next(name)) {
        const char *why = why_not_spare(cluster, node_of(cluster, name), order->job);
        if (why != NULL) {
            answer(operation, OUTCOME_REFUSED, "node '%.100s' cannot be a spare: %s",
                   json_string(name, ""), why);
            return false;
        }
    }
    return true;
}

static void promise(struct cluster *cluster, const struct order *order,
                    struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->spares, operation) || !are_spares(cluster, order, operation))
        return;
    for (const struct json *name = json_first(order->spares); name != NULL;
         name = json_next(name)) {
        struct cluster_node *node = node_of(cluster, name);
        text_copy(node->promised_to, sizeof node->promised_to, order->job);
    }
    answer(operation, OUTCOME_SUCCEEDED, "%zu spares are promised", json_size(order->spares));
}

static void release(struct cluster *cluster, const struct order *order,
                    struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->spares, operation))
        return;
    for (const struct json *name = json_first(order->spares); name != NULL;
         name = json_next(name)) {
        struct cluster_node *node = node_of(cluster, name);
        if (strcmp(node->promised_to, order->job) == 0)
            node->promised_to[0] = '\0';
    }
    bool used = json_get_bool(order->params, "used", false);
    answer(operation, OUTCOME_SUCCEEDED,
           used ? "%zu spares are the job's now" : "%zu spares are given back",
           json_size(order->spares));
}

static void request_checkpoint(struct cluster *cluster, const struct order *order,
                               struct cluster_operation *operation)
{
    (void)order;
    if (cluster->phase != CLUSTER_JOB_RUNNING || !model_request_checkpoint(cluster->model)) {
        answer(operation, OUTCOME_REFUSED, "the job makes no steps: nothing can be saved");
        return;
    }
    cluster->checkpoint_before = model_info(cluster->model).checkpoint_step;
    operation->running = true;
    text_copy(operation->reason, sizeof operation->reason, "waits for the end of a step");
}

void cluster_end_checkpoint(struct cluster *cluster, bool saved)
{
    for (size_t i = 0; i < cluster->operation_count; i++) {
        struct cluster_operation *operation = &cluster->operations[i];
        if (!operation->running || operation->verb != VERB_REQUEST_CHECKPOINT)
            continue;
        if (saved)
            answer(operation, OUTCOME_SUCCEEDED, "step %" PRId64 " is saved",
                   model_info(cluster->model).checkpoint_step);
        else
            answer(operation, OUTCOME_REFUSED, "the job stopped before it was saved");
        cluster_log_operation(cluster, operation, NULL, false);
    }
    cluster->waiting_checkpoint = false;
}

static void move_ranks(struct cluster *cluster, const struct order *order)
{
    const struct json *spare = json_first(order->spares);
    for (const struct json *name = json_first(order->nodes); name != NULL && spare != NULL;
         name = json_next(name), spare = json_next(spare)) {
        struct cluster_node *to = node_of(cluster, spare);
        model_move(cluster->model, cluster_find_node(cluster, json_string(name, "")),
                   (int32_t)(to - cluster->nodes));
        to->spare = false;
        to->promised_to[0] = '\0';
    }
}

static void restart_job(struct cluster *cluster, const struct order *order,
                        struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->nodes, operation) ||
        !are_nodes(cluster, order->spares, operation) || !are_spares(cluster, order, operation))
        return;
    if (strcmp(order->job, cluster->config.model.job) != 0) {
        answer(operation, OUTCOME_REFUSED, "there is no job '%.100s'", order->job);
    } else if (cluster->phase == CLUSTER_JOB_RESTARTING) {
        answer(operation, OUTCOME_TRANSIENT, "the job is being restarted already");
    } else if (cluster->restarts >= cluster->config.restarts_max) {
        answer(operation, OUTCOME_REFUSED, "all %" PRId64 " restarts of the job are spent",
               cluster->config.restarts_max);
    } else {
        answer(operation, OUTCOME_SUCCEEDED, "the restart is accepted");
        if (cluster->config.swallow_restart)
            return;
        cluster->restarts++;
        cluster->phase = CLUSTER_JOB_RESTARTING;
        cluster->restart_due_ns = cluster->now_ns + cluster->config.restart_ns;
        cluster_log_job(cluster, "job_stopped", model_info(cluster->model).last_step);
        model_halt(cluster->model, cluster->now_ns);
        move_ranks(cluster, order);
    }
}

static void hand_over(struct cluster *cluster, const struct order *order,
                      struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->nodes, operation))
        return;
    for (const struct json *name = json_first(order->nodes); name != NULL; name = json_next(name))
        text_copy(node_of(cluster, name)->handed_to, CLUSTER_WHO_BYTES, order->incident);
    answer(operation, OUTCOME_SUCCEEDED, "%zu nodes are handed over", json_size(order->nodes));
}

static void fence(struct cluster *cluster, const struct order *order,
                  struct cluster_operation *operation)
{
    if (!are_nodes(cluster, order->nodes, operation))
        return;
    for (const struct json *name = json_first(order->nodes); name != NULL; name = json_next(name))
        node_of(cluster, name)->ready = false;
    answer(operation, OUTCOME_SUCCEEDED, "%zu nodes are powered off", json_size(order->nodes));
}

/* Nothing but the one job runs here, and a dead tray keeps no pod. */
static void drain(struct cluster *cluster, const struct order *order,
                  struct cluster_operation *operation)
{
    if (are_nodes(cluster, order->nodes, operation))
        answer(operation, OUTCOME_SUCCEEDED, "nothing is left to move");
}

static void refuse(struct cluster *cluster, const struct order *order,
                   struct cluster_operation *operation)
{
    (void)cluster;
    (void)order;
    answer(operation, OUTCOME_REFUSED, "this is no business of the cluster");
}

static carry_out_fn *const VERBS[VERB_COUNT] = {
    [VERB_NOTIFY] = refuse,
    [VERB_CAPTURE] = refuse,
    [VERB_CORDON] = cordon,
    [VERB_UNCORDON] = uncordon,
    [VERB_REQUEST_CHECKPOINT] = request_checkpoint,
    [VERB_PROMISE_SPARE] = promise,
    [VERB_RELEASE_SPARE] = release,
    [VERB_RESTART_JOB] = restart_job,
    [VERB_HAND_OVER] = hand_over,
    [VERB_FENCE] = fence,
    [VERB_DRAIN] = drain,
    [VERB_FORCE_DELETE] = drain,
};

static struct cluster_operation *find(struct cluster *cluster, const char *id)
{
    for (size_t i = 0; i < cluster->operation_count; i++)
        if (strcmp(cluster->operations[i].id, id) == 0)
            return &cluster->operations[i];
    return NULL;
}

const struct cluster_operation *cluster_find_operation(const struct cluster *cluster,
                                                       const char *id)
{
    for (size_t i = 0; i < cluster->operation_count; i++)
        if (strcmp(cluster->operations[i].id, id) == 0)
            return &cluster->operations[i];
    return NULL;
}

static enum status check(const char *id, const struct json *body, enum verb *ret_verb,
                         struct error *reterr)
{
    const char *verb = json_get_string(body, "verb", "");
    if (id[0] == '\0' || strlen(id) >= OPERATION_ID_BYTES)
        return error_set(reterr, ERR_INVALID, "'%.80s' is no operation id", id);
    if (!verb_parse(verb, ret_verb))
        return error_set(reterr, ERR_INVALID, "verb: '%.80s' is none", verb);
    if (json_size(json_get(body, "nodes")) > OPERATION_NODES_MAX ||
        json_size(json_get(body, "spares")) > OPERATION_NODES_MAX)
        return error_set(reterr, ERR_INVALID, "nodes: too many");
    return OK;
}

enum status cluster_operate(struct cluster *cluster, const char *id, const struct json *body,
                            int64_t now_ns, const struct cluster_operation **ret_operation,
                            struct error *reterr)
{
    enum verb verb;
    TRY(check(id, body, &verb, reterr));
    if (now_ns > cluster->now_ns)
        cluster->now_ns = now_ns;
    struct cluster_operation *operation = find(cluster, id);
    bool repeated = operation != NULL;
    if (!repeated) {
        cluster->operations = array_grow(cluster->operations, cluster->operation_count,
                                         &cluster->operation_capacity, sizeof *cluster->operations);
        operation = &cluster->operations[cluster->operation_count++];
        *operation = (struct cluster_operation){.verb = verb, .started_ns = cluster->now_ns};
        text_copy(operation->id, sizeof operation->id, id);
        struct order order = {json_get(body, "nodes"), json_get(body, "spares"),
                              json_get(body, "params"), json_get_string(body, "incident", ""),
                              json_get_string(body, "job", "")};
        VERBS[verb](cluster, &order, operation);
        cluster->waiting_checkpoint = cluster->waiting_checkpoint || operation->running;
    }
    operation->asked++;
    cluster_log_operation(cluster, operation, body, repeated);
    *ret_operation = operation;
    return OK;
}

void cluster_write_operation(const struct cluster_operation *operation, struct json_writer *writer)
{
    json_open_object(writer);
    json_put_string(writer, "id", operation->id);
    json_put_string(writer, "state", operation->running ? "running" : "done");
    json_put_string(writer, "outcome",
                    operation->running ? NULL : outcome_name(operation->outcome));
    json_put_string(writer, "reason", operation->reason);
    json_close(writer);
}
