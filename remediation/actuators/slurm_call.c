/* The life of a call of the port. */
#include "remediation/actuators/slurm_call.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

/* --- the call --- */

struct slurm_call *slurm_call_new(struct slurm *owner, enum slurm_call_kind kind, void *context)
{
    struct slurm_call *call = xcalloc(1, sizeof *call);
    call->owner = owner;
    call->kind = kind;
    call->context = context;
    LIST_INSERT_HEAD(&owner->calls, call, entry);
    return call;
}

static struct json *parse_or_null(const char *text)
{
    struct json *json = NULL;
    if (text != NULL)
        ignore_status(json_parse(view_of(text), &json, NULL)); /* defaults serve */
    return json;
}

/* Digits, and "12_3" or "12+0" of arrays and heterogeneous jobs. */
static bool is_job_id(const char *id)
{
    bool has_mark = false;
    if (!isdigit((unsigned char)id[0]) || strlen(id) > 30)
        return false;
    for (const char *c = id; *c != '\0'; c++) {
        bool is_mark = (*c == '_' || *c == '+') && !has_mark && isdigit((unsigned char)c[1]);
        has_mark = has_mark || is_mark;
        if (!isdigit((unsigned char)*c) && !is_mark)
            return false;
    }
    return true;
}

char *slurm_workload_job(const struct json *workload, const char *cluster, char **ret_why_not)
{
    AUTO_TEXT id = {0};
    const struct json *value = json_get(workload, "job_id");
    const char *theirs = json_get_string(workload, "cluster", "");
    if (json_kind(value) == JSON_NUMBER && json_int(value, -1) > 0)
        text_addf(&id, "%lld", (long long)json_int(value, -1));
    else
        text_add(&id, json_string(value, ""));
    *ret_why_not = NULL;
    if (workload == NULL)
        *ret_why_not = xstrdup("its workload is not known: the job document names none");
    else if (strcmp(json_get_string(workload, "kind", ""), "slurm") != 0)
        *ret_why_not = xstrdup("its workload is not of kind slurm");
    else if (id.bytes == NULL || !is_job_id(id.bytes))
        *ret_why_not = xstrdup("its workload names no Slurm job_id");
    else if (theirs[0] != '\0' && cluster[0] != '\0' && strcmp(theirs, cluster) != 0)
        *ret_why_not = xstrdup("its workload is of another Slurm cluster");
    return *ret_why_not != NULL ? xstrdup("") : text_take(&id);
}

const char *slurm_cluster(const struct slurm *slurm)
{
    return slurm->cluster[0] != '\0' ? slurm->cluster : slurm->seen_cluster;
}

void slurm_call_take_action(struct slurm_call *call, const struct action *action)
{
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    call->verb = action->verb;
    call->incident_ref = xstrdup(action->incident_ref != NULL ? action->incident_ref : "");
    call->reason = xstrdup(action->reason != NULL ? action->reason : "");
    call->workload = parse_or_null(action->workload_json);
    call->params = parse_or_null(action->params_json);
    call->job_id = slurm_workload_job(call->workload, slurm_cluster(call->owner),
                                      &call->workload_problem);
    for (size_t i = 0; i < action->node_count; i++)
        names_add(&call->nodes_wanted, action->nodes[i]);
    for (size_t i = 0; i < action->spare_count; i++)
        names_add(&call->spares, action->spares[i]);
}

void slurm_call_free(struct slurm_call *call)
{
    LIST_REMOVE(call, entry);
    xfree(call->incident_ref);
    xfree(call->reason);
    xfree(call->job_id);
    xfree(call->workload_problem);
    json_free(call->workload);
    json_free(call->params);
    names_done(&call->nodes_wanted);
    names_done(&call->spares);
    names_done(&call->todo);
    for (size_t i = 0; i < SLURM_READ_COUNT; i++)
        slurm_reading_done(&call->readings[i]);
    slurm_nodes_done(&call->nodes);
    if (call->has_job)
        slurm_job_done(&call->job);
    for (size_t i = 0; i < call->asked_count; i++) {
        xfree(call->asked[i].name);
        xfree(call->asked[i].id);
        xfree(call->asked[i].why_not);
        xfree(call->asked[i].distribution);
        xfree(call->asked[i].cluster);
        slurm_reading_done(&call->asked[i].reading);
    }
    xfree(call->asked);
    text_done(&call->kept);
    text_done(&call->said);
    slurm_drop_runs(call);
    slurm_drop_gets(call);
    loop_timer_free(call->timer);
    xfree(call);
}

void slurm_finish(struct slurm_call *call, enum outcome outcome, enum poll_state poll,
                  const char *format, ...)
{
    AUTO_TEXT reason = {0};
    AUTO_TEXT said = call->said;
    action_done_fn *done = call->done;
    void *context = call->context;
    va_list args;
    va_start(args, format);
    text_addv(&reason, format, args);
    va_end(args);
    call->said = (struct text){0};
    slurm_call_free(call);
    struct action_result result = {outcome, poll, reason.bytes, said.bytes};
    done(context, &result);
}

void slurm_finish_unread(struct slurm_call *call, enum status status, const char *message)
{
    /* The mark of an earlier start may stand: only a restart that has begun is in doubt. */
    if (call->kind == SLURM_START && status == ERR_NOT_FOUND)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", message);
    else if (call->kind == SLURM_START)
        slurm_finish(call, call->said.length > 0 ? OUTCOME_UNKNOWN : OUTCOME_TRANSIENT,
                     POLL_UNREACHABLE, "%s", message);
    else
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_UNREACHABLE, "%s", message);
}

void slurm_finish_failed(struct slurm_call *call, const struct slurm_answer *answer)
{
    switch (answer->status) {
    case ERR_UNREACHABLE:
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_UNREACHABLE, "%s", answer->message);
        break;
    case ERR_REFUSED:
    case ERR_NOT_FOUND:
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "Slurm says: %s", answer->message);
        break;
    case OK:
    case ERR_INVALID:
    case ERR_DENIED:
    case ERR_CONFLICT:
    case ERR_AGAIN:
    case ERR_LIMIT:
    case ERR_TIMEOUT:
    case ERR_IO:
    case ERR_BUG:
    case STATUS_COUNT:
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_UNREACHABLE, "%s", answer->message);
        break;
    }
}

static void on_wait(void *context)
{
    struct slurm_call *call = context;
    call->on_timer(call);
}

void slurm_wait(struct slurm_call *call, int64_t after_ms, slurm_step_fn *fn)
{
    if (call->timer == NULL)
        call->timer = loop_timer_new(call->owner->loop, on_wait, call);
    call->on_timer = fn;
    loop_timer_set(call->timer, after_ms * 1000000);
}
