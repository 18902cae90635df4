/* Actions on many nodes at once: each is decided, patched, and on a conflict read and decided
 * again. The cached resourceVersion is tried first: only a node that has just changed costs a read.
 */
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include "controller/sys/clock.h"

#include <assert.h>
#include <string.h>

enum { TRIES_MAX = 5, NAMES_IN_REASON = 4 };

enum task_end {
    TASK_RUNS = 0,
    TASK_CHANGED, /* by us, now */
    TASK_IS_SO,
    TASK_GONE,
    TASK_NOT_NOW, /* did not happen, may be tried again */
    TASK_REFUSED,
    TASK_UNKNOWN,
    TASK_TAKEN_BACK,
    TASK_END_COUNT
};

struct nodes_operation;

struct task {
    struct nodes_operation *operation;
    const char *node; /* the operation's */
    node_decide_fn *decide;
    bool is_courtesy; /* a node that is held: how it ends changes nothing for the whole */
    bool wants_mark;  /* the condition is to be set, when all cordons are through */
    enum task_end end;
    int tries;
    struct text note;
};

struct nodes_operation {
    struct operation base;
    struct node_cache *cache;
    char spare_value[64];
    bool is_used;
    bool is_marking; /* the conditions are being set */
    bool is_undoing; /* promises that were made are taken back: another one of them failed */
    enum outcome failed_with;
    struct names names, hold; /* hold: once the promise stands */
    struct task *tasks;
    size_t count, capacity, running;
};

static void operation_release(struct operation *base)
{
    struct nodes_operation *operation = (struct nodes_operation *)(void *)base;
    for (size_t i = 0; i < operation->count; i++)
        text_done(&operation->tasks[i].note);
    xfree(operation->tasks);
    names_done(&operation->names);
    names_done(&operation->hold);
    xfree(operation);
}

/* ---- how the whole ended ---- */

static size_t count_ends(const struct nodes_operation *operation, enum task_end end)
{
    size_t count = 0;
    for (size_t i = 0; i < operation->count; i++)
        count += operation->tasks[i].end == end && !operation->tasks[i].is_courtesy;
    return count;
}

static void add_ended(const struct nodes_operation *operation, enum task_end end, struct text *out)
{
    struct names names = {0};
    for (size_t i = 0; i < operation->count; i++)
        if (operation->tasks[i].end == end && !operation->tasks[i].is_courtesy)
            names_add(&names, operation->tasks[i].node);
    names_add_sentence(&names, NAMES_IN_REASON, out);
    names_done(&names);
}

/* "gb-1 is not Ready": the first few that have something to say. */
static void add_notes(const struct nodes_operation *operation, struct text *out)
{
    size_t told = 0, more = 0;
    for (size_t i = 0; i < operation->count; i++) {
        const struct task *task = &operation->tasks[i];
        if (task->note.length == 0)
            continue;
        if (told++ < NAMES_IN_REASON)
            text_addf(out, "%s%s %s", out->length > 0 ? "; " : "", task->node, task->note.bytes);
        else
            more++;
    }
    if (more > 0)
        text_addf(out, "; and %zu more", more);
}

static const char *const END_NAMES[] = {
    [TASK_RUNS] = "runs",       [TASK_CHANGED] = "changed",       [TASK_IS_SO] = "as wished",
    [TASK_GONE] = "gone",       [TASK_NOT_NOW] = "not now",       [TASK_REFUSED] = "refused",
    [TASK_UNKNOWN] = "unknown", [TASK_TAKEN_BACK] = "taken back",
};
static_assert(ARRAY_LEN(END_NAMES) == TASK_END_COUNT, "a name for each end");

static void write_response(const struct nodes_operation *operation, struct text *out)
{
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_add_key(&w, "nodes");
    json_open_object(&w);
    for (size_t i = 0; i < operation->count; i++)
        json_put_string(&w, operation->tasks[i].node, END_NAMES[operation->tasks[i].end]);
    json_close(&w);
    json_close(&w);
}

/* "17 nodes cordoned, 1 so before" */
static void add_done(const struct nodes_operation *operation, struct text *out)
{
    static const char *const words[VERB_COUNT] = {[VERB_CORDON] = "cordoned",
                                                  [VERB_UNCORDON] = "uncordoned",
                                                  [VERB_PROMISE_SPARE] = "promised",
                                                  [VERB_RELEASE_SPARE] = "released"};
    size_t changed = count_ends(operation, TASK_CHANGED);
    size_t before = count_ends(operation, TASK_IS_SO);
    size_t held = 0;
    for (size_t i = 0; i < operation->count; i++)
        held += operation->tasks[i].is_courtesy && operation->tasks[i].end == TASK_CHANGED;
    if (changed > 0)
        text_addf(out, "%zu node%s %s", changed, changed == 1 ? "" : "s",
                  words[operation->base.action.verb]);
    if (before > 0)
        text_addf(out, "%s%zu as wished already", changed > 0 ? ", " : "", before);
    if (held > 0)
        text_addf(out, ", %zu more %s", held,
                  operation->base.action.verb == VERB_PROMISE_SPARE ? "kept free meanwhile"
                                                                    : "free again");
}

static enum outcome whole_outcome(const struct nodes_operation *operation)
{
    if (count_ends(operation, TASK_UNKNOWN) > 0)
        return OUTCOME_UNKNOWN;
    if (count_ends(operation, TASK_REFUSED) > 0)
        return OUTCOME_REFUSED;
    if (count_ends(operation, TASK_NOT_NOW) > 0)
        return OUTCOME_TRANSIENT;
    size_t done = count_ends(operation, TASK_CHANGED) + count_ends(operation, TASK_IS_SO);
    return done == 0 && count_ends(operation, TASK_GONE) > 0 ? OUTCOME_SUPERSEDED
                                                             : OUTCOME_SUCCEEDED;
}

static void end_operation(struct nodes_operation *operation, enum outcome outcome)
{
    struct text *reason = &operation->base.reason;
    bool is_done = outcome == OUTCOME_SUCCEEDED || outcome == OUTCOME_SUPERSEDED;
    enum task_end worst = outcome == OUTCOME_UNKNOWN   ? TASK_UNKNOWN
                          : outcome == OUTCOME_REFUSED ? TASK_REFUSED
                                                       : TASK_NOT_NOW;
    if (is_done)
        add_done(operation, reason);
    add_notes(operation, reason);
    if (!is_done && reason->length == 0)
        add_ended(operation, worst, reason);
    write_response(operation, &operation->base.response);
    if (outcome != OUTCOME_UNKNOWN)
        nodes_unfollow(operation->cache, operation->base.action.operation_id);
    operation_end(&operation->base, outcome, POLL_DONE);
}

/* ---- one node ---- */

static void task_go(struct task *task);
static void task_read(struct task *task);
static bool mark_nodes(struct nodes_operation *operation);
static void undo_promises(struct nodes_operation *operation);
static void hold_others(struct nodes_operation *operation);

/* Promises that could not be taken back are read again before anything else. */
static void all_undone(struct nodes_operation *operation)
{
    bool is_clean = true;
    for (size_t i = 0; i < operation->count; i++) {
        struct task *task = &operation->tasks[i];
        if (task->decide != node_decide_release)
            continue;
        bool gone = task->end == TASK_CHANGED || task->end == TASK_IS_SO || task->end == TASK_GONE;
        task->end = gone ? TASK_TAKEN_BACK : TASK_UNKNOWN;
        is_clean = is_clean && gone;
    }
    end_operation(operation, is_clean ? operation->failed_with : OUTCOME_UNKNOWN);
}

/* A promise is whole or not at all: the next choice may be another one. */
static void all_ended(struct nodes_operation *operation)
{
    enum outcome outcome = whole_outcome(operation);
    bool failed = outcome == OUTCOME_TRANSIENT || outcome == OUTCOME_REFUSED;
    size_t stand = count_ends(operation, TASK_CHANGED) + count_ends(operation, TASK_IS_SO);
    if (!operation->is_marking && mark_nodes(operation))
        return;
    if (operation->is_undoing) {
        all_undone(operation);
    } else if (operation->base.action.verb == VERB_PROMISE_SPARE && failed && stand > 0) {
        operation->failed_with = outcome;
        undo_promises(operation);
    } else if (outcome == OUTCOME_SUCCEEDED && operation->hold.count > 0) {
        hold_others(operation);
    } else {
        end_operation(operation, outcome);
    }
}

static void task_end(struct task *task, enum task_end end)
{
    struct nodes_operation *operation = task->operation;
    task->end = end;
    if (--operation->running == 0)
        all_ended(operation);
}

static enum task_end end_of(enum kube_result result)
{
    switch (operation_outcome_of(result)) {
    case OUTCOME_SUCCEEDED:
        return TASK_CHANGED;
    case OUTCOME_REFUSED:
        return TASK_REFUSED;
    case OUTCOME_SUPERSEDED:
        return TASK_GONE;
    case OUTCOME_TRANSIENT:
        return TASK_NOT_NOW;
    case OUTCOME_CANCELLED:
    case OUTCOME_UNKNOWN:
    case OUTCOME_COUNT:
        break;
    }
    return TASK_UNKNOWN;
}

static void task_fail(struct task *task, enum task_end end, const char *message)
{
    text_clear(&task->note);
    text_add(&task->note, end == TASK_GONE ? "is gone" : message);
    if (end == TASK_GONE)
        node_forget(task->operation->cache, task->node);
    task_end(task, end);
}

static void call(struct task *task, const char *method, const char *path, const struct text *body,
                 enum kube_patch patch, kube_answer_fn *fn)
{
    struct kube_call call = {.method = method,
                             .path = path,
                             .body = body != NULL ? (struct view){body->bytes, body->length}
                                                  : (struct view){NULL, 0},
                             .patch = patch,
                             .priority = KUBE_ACT};
    kube_call_start(task->operation->cache->client, &call, fn, task);
}

static void on_marked(void *context, const struct kube_answer *answer)
{
    struct task *task = context;
    struct nodes_operation *operation = task->operation;
    if (answer->result == KUBE_OK && answer->body != NULL)
        node_take(operation->cache, answer->body);
    else if (answer->result != KUBE_OK)
        text_addf(&task->note, "%sis without the condition " NODE_CONDITION ": %s",
                  task->note.length > 0 ? ", and " : "", answer->message);
    if (--operation->running == 0)
        all_ended(operation);
}

static void mark_node(struct task *task)
{
    const struct action *action = &task->operation->base.action;
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    node_path(task->node, &path);
    text_addf(&path, "/status?fieldManager=%s", NODE_FIELD_MANAGER);
    node_condition_body(action, action->verb == VERB_CORDON, clock_now_ns(), &body);
    call(task, "PATCH", path.bytes, &body, KUBE_STRATEGIC_PATCH, on_marked);
}

/* The condition tells people; the cordon does not hang on it, and goes before it on every node.
 * False: there is none to set. */
static bool mark_nodes(struct nodes_operation *operation)
{
    operation->is_marking = true;
    for (size_t i = 0; i < operation->count; i++) {
        if (!operation->tasks[i].wants_mark)
            continue;
        operation->running++;
        mark_node(&operation->tasks[i]);
    }
    return operation->running > 0;
}

/* Also where one of before was cut short between the patch and the condition. */
static void note_mark(struct task *task, const struct node *node)
{
    const struct action *action = &task->operation->base.action;
    if (node == NULL)
        return;
    bool is_ours = node->incident != NULL && strcmp(node->incident, action->incident_ref) == 0;
    if (action->verb == VERB_CORDON)
        task->wants_mark = is_ours && node->is_unschedulable && !node->is_marked;
    else if (action->verb == VERB_UNCORDON)
        task->wants_mark = node->incident == NULL && node->is_marked;
}

static void on_patched(void *context, const struct kube_answer *answer)
{
    struct task *task = context;
    if (answer->result == KUBE_CONFLICT && ++task->tries < TRIES_MAX) {
        task_read(task);
        return;
    }
    if (answer->result != KUBE_OK) {
        task_fail(task, end_of(answer->result), answer->message);
        return;
    }
    const struct node *node = answer->body != NULL ? node_take(task->operation->cache, answer->body)
                                                   : NULL;
    note_mark(task, node);
    task_end(task, TASK_CHANGED);
}

/* owner: who else set spec.unschedulable; NULL nobody, or not looked. */
static void task_decide(struct task *task, const struct node *node, const char *owner)
{
    struct nodes_operation *operation = task->operation;
    AUTO_TEXT body = {0};
    AUTO_TEXT path = {0};
    struct node_wish wish = {.cache = operation->cache,
                             .action = &operation->base.action,
                             .spare_value = operation->spare_value,
                             .is_used = operation->is_used,
                             .unschedulable_owner = owner,
                             .now_ns = clock_now_ns()};
    text_clear(&task->note);
    if (!nodes_follow(operation->cache, &operation->base.action, node)) {
        text_add(&task->note, "is gone: another node has its name now");
        task_end(task, TASK_GONE);
        return;
    }
    switch (task->decide(&wish, node, &body, &task->note)) {
    case NODE_PATCH:
        node_path(task->node, &path);
        text_addf(&path, "?fieldManager=%s", NODE_FIELD_MANAGER);
        call(task, "PATCH", path.bytes, &body, KUBE_MERGE_PATCH, on_patched);
        return;
    case NODE_IS_SO:
        note_mark(task, node);
        task_end(task, TASK_IS_SO);
        return;
    case NODE_NOT_NOW:
        task_end(task, TASK_NOT_NOW);
        return;
    case NODE_DECISION_COUNT:
        break;
    }
}

static void on_read(void *context, const struct kube_answer *answer)
{
    struct task *task = context;
    struct nodes_operation *operation = task->operation;
    if (answer->result != KUBE_OK) {
        /* Only read: whatever came of it, nothing was done. */
        enum task_end end = end_of(answer->result);
        task_fail(task, end == TASK_UNKNOWN ? TASK_NOT_NOW : end, answer->message);
        return;
    }
    const struct node *node = node_take(operation->cache, answer->body);
    if (node == NULL && node_has_name(answer->body))
        task_fail(task, TASK_GONE, "");
    else if (node == NULL || node->version == NULL)
        task_fail(task, TASK_NOT_NOW, "the API's answer is no node");
    else
        task_decide(task, node, node_unschedulable_owner(answer->body));
}

static void task_read(struct task *task)
{
    AUTO_TEXT path = {0};
    node_path(task->node, &path);
    call(task, "GET", path.bytes, NULL, KUBE_NO_PATCH, on_read);
}

/* An uncordon wants to know who else cordoned; an old picture is not decided on. */
static void task_go(struct task *task)
{
    const struct nodes_operation *operation = task->operation;
    const char *reason = NULL;
    const struct node *node = node_find(operation->cache, task->node);
    if (node == NULL || node->version == NULL || operation->base.action.verb == VERB_UNCORDON ||
        !node_cache_is_synced(operation->cache, &reason))
        task_read(task);
    else
        task_decide(task, node, NULL);
}

/* ---- begin ---- */

static void add_task(struct nodes_operation *operation, const char *node, node_decide_fn *decide,
                     bool is_courtesy)
{
    if (!names_add_new(&operation->names, node))
        return;
    operation->tasks = array_grow(operation->tasks, operation->count, &operation->capacity,
                                  sizeof *operation->tasks);
    operation->tasks[operation->count++] = (struct task){
        .operation = operation, .decide = decide, .is_courtesy = is_courtesy};
}

/* Each runs, the whole ends with the last. Nothing ends inside: a decision without a call may. */
static void run_tasks(struct nodes_operation *operation)
{
    operation->running = 1;
    for (size_t i = 0; i < operation->count; i++)
        if (operation->tasks[i].end == TASK_RUNS)
            operation->running++;
    for (size_t i = 0; i < operation->count; i++) {
        operation->tasks[i].node = operation->names.items[i];
        if (operation->tasks[i].end == TASK_RUNS)
            task_go(&operation->tasks[i]);
    }
    if (--operation->running == 0)
        all_ended(operation);
}

/* What failed keeps its end and its words; what stands, by this try or by one whose answer was
 * lost, is released. */
static void undo_promises(struct nodes_operation *operation)
{
    operation->is_undoing = true;
    for (size_t i = 0; i < operation->count; i++) {
        struct task *task = &operation->tasks[i];
        if ((task->end != TASK_CHANGED && task->end != TASK_IS_SO) || task->is_courtesy)
            continue;
        task->end = TASK_RUNS;
        task->tries = 0;
        task->decide = node_decide_release;
    }
    run_tasks(operation);
}

static void hold_others(struct nodes_operation *operation)
{
    for (size_t i = 0; i < operation->hold.count; i++)
        add_task(operation, operation->hold.items[i], node_decide_hold, true);
    names_done(&operation->hold);
    run_tasks(operation);
}

static struct nodes_operation *operation_new(struct node_cache *cache, const struct action *action,
                                             action_done_fn *done, void *context)
{
    struct nodes_operation *operation = xcalloc(1, sizeof *operation);
    operation_begin(&cache->operations, &operation->base, action, done, context, operation_release);
    operation->cache = cache;
    operation->is_used = json_get_bool(operation->base.params, "used", false);
    if (action->job != NULL)
        node_spare_value(action->job, operation->spare_value);
    return operation;
}

static void add_tasks(struct nodes_operation *operation)
{
    const struct action *action = &operation->base.action;
    struct node_cache *cache = operation->cache;
    switch (action->verb) {
    case VERB_CORDON:
    case VERB_UNCORDON:
        for (size_t i = 0; i < action->node_count; i++)
            add_task(operation, action->nodes[i],
                     action->verb == VERB_CORDON ? node_decide_cordon : node_decide_uncordon,
                     false);
        break;
    case VERB_PROMISE_SPARE:
        for (size_t i = 0; i < action->spare_count; i++)
            add_task(operation, action->spares[i], node_decide_promise, false);
        break;
    case VERB_RELEASE_SPARE:
        for (size_t i = 0; i < action->spare_count; i++)
            add_task(operation, action->spares[i], node_decide_release, false);
        for (size_t i = 0; i < cache->count; i++)
            if (cache->nodes[i]->held != NULL)
                add_task(operation, cache->nodes[i]->name, node_decide_unhold, true);
        break;
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_REQUEST_CHECKPOINT:
    case VERB_RESTART_JOB:
    case VERB_HAND_OVER:
    case VERB_FENCE:
    case VERB_DRAIN:
    case VERB_FORCE_DELETE:
    case VERB_COUNT:
        break;
    }
}

void nodes_start(struct node_cache *cache, const struct action *action, const char *const *hold,
                 size_t hold_count, action_done_fn *done, void *context)
{
    struct nodes_operation *operation = operation_new(cache, action, done, context);
    for (size_t i = 0; i < hold_count; i++)
        names_add(&operation->hold, hold[i]);
    add_tasks(operation);
    run_tasks(operation);
}
