/* Requests of a call, and what failures of them mean. */
#include "remediation/actuators/kubernetes_workload_call.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/action_call.h"

#include <stdio.h>
#include <string.h>

static const int64_t ASK_AGAIN_NS = INT64_C(1000000000);

/* --- life --- */

struct work_call *work_call_new(struct workloads *owner, const struct action *action, bool is_poll,
                                const struct work_ref *ref, action_done_fn *done, void *context)
{
    struct work_call *call = xcalloc(1, sizeof *call);
    call->owner = owner;
    call->ref = *ref;
    call->is_poll = is_poll;
    call->done = done;
    call->context = context;
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    call->reason = xstrdup(action->reason != NULL ? action->reason : "");
    call->incident = xstrdup(action->incident_ref != NULL ? action->incident_ref : "");
    call->node_count = action->node_count;
    call->nodes = action->node_count > 0 ? xcalloc(action->node_count, sizeof *call->nodes) : NULL;
    for (size_t i = 0; i < action->node_count; i++)
        call->nodes[i] = xstrdup(action->nodes[i]);
    call->begun_ns = clock_now_ns();
    call->limit_ns = call->begun_ns + action_time_allowed_ns(action);
    LIST_INSERT_HEAD(&owner->calls, call, entry);
    return call;
}

void work_call_free(struct work_call *call)
{
    LIST_REMOVE(call, entry);
    if (call->timer != NULL)
        loop_timer_free(call->timer);
    if (call->request != NULL)
        kube_request_drop(call->request);
    for (size_t i = 0; i < call->node_count; i++)
        xfree(call->nodes[i]);
    xfree(call->nodes);
    xfree(call->reason);
    xfree(call->incident);
    xfree(call->pod_name);
    xfree(call->task);
    workload_item_done(&call->item);
    xfree(call);
}

const struct work_call *work_call_find_start(const struct workloads *owner,
                                             const char *operation_id)
{
    const struct work_call *call = LIST_FIRST(&owner->calls);
    for (; call != NULL; call = LIST_NEXT(call, entry))
        if (!call->is_poll && strcmp(call->operation_id, operation_id) == 0)
            return call;
    return NULL;
}

const struct work_call *work_call_find_of(const struct workloads *owner,
                                          const struct workload_item *item)
{
    const struct work_call *call = LIST_FIRST(&owner->calls);
    for (; call != NULL; call = LIST_NEXT(call, entry))
        if (!call->is_poll && call->ref.kind == item->kind &&
            strcmp(call->ref.name, item->name) == 0 &&
            strcmp(call->ref.namespace_name, item->namespace_name) == 0)
            return call;
    return NULL;
}

static void end(struct work_call *call, enum outcome outcome, enum poll_state poll,
                const char *format, va_list args) PRINTF_LIKE(4, 0);

static void end(struct work_call *call, enum outcome outcome, enum poll_state poll,
                const char *format, va_list args)
{
    AUTO_TEXT reason = {0};
    text_addv(&reason, format, args);
    struct action_result result = {
        .outcome = outcome, .poll = poll, .reason = reason.bytes != NULL ? reason.bytes : ""};
    action_done_fn *done = call->done;
    void *context = call->context;
    work_call_free(call);
    done(context, &result);
}

void work_call_end(struct work_call *call, enum outcome outcome, enum poll_state poll,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(call, outcome, poll, format, args);
    va_end(args);
}

void work_call_answer(struct work_call *call, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(call, outcome, outcome == OUTCOME_UNKNOWN ? POLL_UNREACHABLE : POLL_DONE, format, args);
    va_end(args);
}

void work_call_tell(struct work_call *call, enum poll_state poll, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(call, OUTCOME_UNKNOWN, poll, format, args);
    va_end(args);
}

/* --- time --- */

static void on_timer(void *context)
{
    struct work_call *call = context;
    call->on_timer(call);
}

void work_call_later(struct work_call *call, int64_t after_ns, work_fn *fn)
{
    if (clock_now_ns() + after_ns > call->limit_ns) {
        char waits_for[sizeof call->waits_for];
        text_copy(waits_for, sizeof waits_for, call->waits_for);
        work_call_answer(call, OUTCOME_UNKNOWN, "its time is over; waited for %s",
                         waits_for[0] != '\0' ? waits_for : "the API server");
        return;
    }
    if (call->timer == NULL)
        call->timer = loop_timer_new(call->owner->loop, on_timer, call);
    call->on_timer = fn;
    action_wait(call->timer, after_ns);
}

/* --- requests --- */

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct work_call *call = context;
    call->request = NULL;
    call->on_answer(call, answer);
}

static void request(struct work_call *call, struct kube_call kube, work_answer_fn *fn)
{
    call->on_answer = fn;
    kube.priority = call->is_poll ? KUBE_READ : KUBE_ACT;
    call->request = kube_call_start(call->owner->client, &kube, on_answer, call);
}

void work_call_get(struct work_call *call, const char *path, work_answer_fn *fn)
{
    request(call, (struct kube_call){.method = "GET", .path = path}, fn);
}

void work_call_post(struct work_call *call, const char *path, const struct text *body,
                    work_answer_fn *fn)
{
    call->has_begun = true;
    request(call,
            (struct kube_call){.method = "POST", .path = path, .body = {body->bytes, body->length}},
            fn);
}

void work_call_patch(struct work_call *call, const struct text *body, work_answer_fn *fn)
{
    AUTO_TEXT path = {0};
    workload_object_path(call->ref.kind, call->ref.namespace_name, call->ref.name, &path);
    request(call,
            (struct kube_call){.method = "PATCH",
                               .path = path.bytes,
                               .body = {body->bytes, body->length},
                               .patch = KUBE_MERGE_PATCH},
            fn);
}

static void put_precondition(struct json_writer *writer, const char *uid)
{
    json_add_key(writer, "preconditions");
    json_open_object(writer);
    json_put_string(writer, "uid", uid);
    json_close(writer);
}

void work_call_delete(struct work_call *call, const char *path, const char *uid, work_answer_fn *fn)
{
    AUTO_TEXT body = {0};
    struct json_writer writer = json_writer(&body);
    json_open_object(&writer);
    json_put_string(&writer, "apiVersion", "v1");
    json_put_string(&writer, "kind", "DeleteOptions");
    put_precondition(&writer, uid);
    json_close(&writer);
    request(call,
            (struct kube_call){.method = "DELETE", .path = path, .body = {body.bytes, body.length}},
            fn);
}

static void write_eviction(const struct pod *pod, struct text *body)
{
    struct json_writer writer = json_writer(body);
    json_open_object(&writer);
    json_put_string(&writer, "apiVersion", "policy/v1");
    json_put_string(&writer, "kind", "Eviction");
    json_add_key(&writer, "metadata");
    json_open_object(&writer);
    json_put_string(&writer, "name", pod->name);
    json_put_string(&writer, "namespace", pod->namespace_name);
    json_close(&writer);
    json_add_key(&writer, "deleteOptions");
    json_open_object(&writer);
    put_precondition(&writer, pod->uid);
    json_close(&writer);
    json_close(&writer);
}

void work_call_evict(struct work_call *call, const struct pod *pod, work_answer_fn *fn)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    text_add(&path, "/api/v1/namespaces");
    kube_path_add(&path, pod->namespace_name);
    text_add(&path, "/pods");
    kube_path_add(&path, pod->name);
    text_add(&path, "/eviction");
    write_eviction(pod, &body);
    work_call_post(call, path.bytes, &body, fn);
}

void work_call_annotate(struct work_call *call, const char *key, const char *value,
                        work_answer_fn *fn)
{
    AUTO_TEXT body = {0};
    struct json_writer writer = json_writer(&body);
    json_open_object(&writer);
    json_add_key(&writer, "metadata");
    json_open_object(&writer);
    json_add_key(&writer, "annotations");
    json_open_object(&writer);
    json_put_string(&writer, key, value);
    json_close(&writer);
    json_close(&writer);
    json_close(&writer);
    work_call_patch(call, &body, fn);
}

/* --- reading the object --- */

static void read_again(struct work_call *call)
{
    work_call_read(call, call->on_item);
}

static void not_read(struct work_call *call, const struct kube_answer *answer)
{
    bool is_begun = call->has_begun || call->may_have_begun;
    if (answer->result == KUBE_NOT_FOUND && (is_begun || call->is_poll)) {
        work_call_end(call, OUTCOME_SUPERSEDED, POLL_DONE, "%s %s/%s is gone", call->ref.kind->kind,
                      call->ref.namespace_name, call->ref.name);
    } else if (call->is_poll) {
        work_call_tell(call, POLL_UNREACHABLE, "%s", answer->message);
    } else if (is_begun) {
        snprintf(call->waits_for, sizeof call->waits_for, "the API server: %.200s",
                 answer->message);
        work_call_later(call, ASK_AGAIN_NS, read_again);
    } else {
        work_call_fail(call, answer);
    }
}

static void on_object(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result != KUBE_OK) {
        not_read(call, answer);
        return;
    }
    workload_item_done(&call->item);
    workload_item_read(call->ref.kind, answer->body, &call->item);
    /* From here on it is this object, also where the job's document names no uid. */
    if (call->ref.uid[0] == '\0' && !text_copy(call->ref.uid, sizeof call->ref.uid, call->item.uid))
        call->ref.uid[0] = '\0';
    call->on_item(call);
}

void work_call_read(struct work_call *call, work_fn *fn)
{
    AUTO_TEXT path = {0};
    workload_object_path(call->ref.kind, call->ref.namespace_name, call->ref.name, &path);
    call->on_item = fn;
    work_call_get(call, path.bytes, on_object);
}

/* --- failures --- */

void work_call_fail(struct work_call *call, const struct kube_answer *answer)
{
    switch (answer->result) {
    case KUBE_NOT_FOUND:
        work_call_answer(call, OUTCOME_REFUSED, "%s %s/%s is not there: %s", call->ref.kind->kind,
                         call->ref.namespace_name, call->ref.name, answer->message);
        return;
    case KUBE_DENIED:
    case KUBE_REFUSED:
        work_call_answer(call, OUTCOME_REFUSED, "%s", answer->message);
        return;
    case KUBE_OK:
    case KUBE_CONFLICT:
    case KUBE_EXISTS:
    case KUBE_EXPIRED:
    case KUBE_BLOCKED:
    case KUBE_BUSY:
    case KUBE_UNREACHABLE:
    case KUBE_UNKNOWN:
    case KUBE_RESULT_COUNT:
        break;
    }
    work_call_answer(call, OUTCOME_TRANSIENT, "%s", answer->message);
}

void work_call_decide_again(struct work_call *call, work_fn *fn)
{
    if (++call->conflicts > WORK_CONFLICTS_MAX) {
        bool is_begun = call->has_begun || call->may_have_begun;
        work_call_answer(call, is_begun ? OUTCOME_UNKNOWN : OUTCOME_TRANSIENT,
                         "%s %s/%s is changed by somebody all the time", call->ref.kind->kind,
                         call->ref.namespace_name, call->ref.name);
        return;
    }
    work_call_read(call, fn);
}
