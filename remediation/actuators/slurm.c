/* The port: which verb goes where. */
#include "remediation/actuators/slurm.h"

#include "remediation/actuators/slurm_call.h"

#include <string.h>

enum { PROGRAMS_AT_ONCE = 8 };

static void refuse(struct slurm_call *call, const char *why)
{
    slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", why);
}

static const char *refusal_of(enum verb verb)
{
    switch (verb) {
    case VERB_HAND_OVER:
        return "Slurm has no repair desk: configure the hand-over webhook";
    case VERB_FENCE:
        return "Slurm cannot vouch that a node is off: configure the webhook, or broom fenced";
    case VERB_FORCE_DELETE:
        return "Slurm ends the jobs of a dead node itself: nothing to delete";
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_CORDON:
    case VERB_UNCORDON:
    case VERB_REQUEST_CHECKPOINT:
    case VERB_PROMISE_SPARE:
    case VERB_RELEASE_SPARE:
    case VERB_RESTART_JOB:
    case VERB_DRAIN:
    case VERB_COUNT:
        break;
    }
    return "this is nothing that Slurm does";
}

/* Answers come later, also those that need no look at Slurm. */
static void refuse_later(void *context)
{
    struct slurm_call *call = context;
    refuse(call, refusal_of(call->verb));
}

static void begin(struct slurm_call *call)
{
    bool polls = call->kind == SLURM_POLL;
    switch (call->verb) {
    case VERB_CORDON:
        (polls ? slurm_cordon_poll : slurm_cordon_start)(call);
        break;
    case VERB_UNCORDON:
        (polls ? slurm_uncordon_poll : slurm_uncordon_start)(call);
        break;
    case VERB_PROMISE_SPARE:
    case VERB_RELEASE_SPARE:
        (polls ? slurm_spare_poll : slurm_spare_start)(call);
        break;
    case VERB_RESTART_JOB:
        (polls ? slurm_restart_poll : slurm_restart_start)(call);
        break;
    case VERB_REQUEST_CHECKPOINT:
        slurm_checkpoint_start(call);
        break;
    case VERB_DRAIN:
        slurm_drain_start(call);
        break;
    case VERB_HAND_OVER:
    case VERB_FENCE:
    case VERB_FORCE_DELETE:
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_COUNT:
        call->timer = loop_timer_new(call->owner->loop, refuse_later, call);
        loop_timer_set(call->timer, 0);
        break;
    }
}

static struct slurm_call *take(struct slurm *slurm, enum slurm_call_kind kind,
                               const struct action *action, action_done_fn *done, void *context)
{
    struct slurm_call *call = slurm_call_new(slurm, kind, context);
    call->done = done;
    slurm_call_take_action(call, action);
    return call;
}

static void start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    begin(take(self, SLURM_START, action, done, context));
}

static bool is_under_way(const struct slurm *slurm, const char *operation_id)
{
    const struct slurm_call *call = LIST_FIRST(&slurm->calls);
    for (; call != NULL; call = LIST_NEXT(call, entry))
        if (call->kind == SLURM_START && strcmp(call->operation_id, operation_id) == 0)
            return true;
    return false;
}

static void still_running(struct slurm_call *call)
{
    slurm_finish(call, OUTCOME_UNKNOWN, POLL_RUNNING, "its start is still under way");
}

static void poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    struct slurm_call *call = take(self, SLURM_POLL, action, done, context);
    if (is_under_way(self, action->operation_id))
        slurm_wait(call, 0, still_running);
    else
        begin(call);
}

static void describe(void *self, const struct world_question *question, world_done_fn *done,
                     void *context)
{
    struct slurm_call *call = slurm_call_new(self, SLURM_DESCRIBE, context);
    call->described = done;
    call->asked = xcalloc(question->job_count + 1, sizeof *call->asked);
    for (size_t i = 0; i < question->job_count; i++) {
        const struct job_question *job = &question->jobs[i];
        struct slurm_asked_job *asked = &call->asked[call->asked_count++];
        AUTO(json_free) struct json *workload = NULL;
        if (job->workload_json != NULL)
            ignore_status(json_parse(view_of(job->workload_json), &workload, NULL)); /* unknown */
        asked->name = xstrdup(job->job);
        asked->world_size = job->world_size;
        asked->id = slurm_workload_job(workload, slurm_cluster(self), &asked->why_not);
        asked->cluster = xstrdup(json_get_string(workload, "cluster", ""));
        asked->distribution = xstrdup(json_get_string(workload, "distribution", "block"));
    }
    slurm_describe_start(call);
}

static void release(void *self)
{
    struct slurm *slurm = self;
    process_runner_free(slurm->runner);
    while (!LIST_EMPTY(&slurm->calls))
        slurm_call_free(LIST_FIRST(&slurm->calls));
    slurm_drains_done(&slurm->drains);
    xfree(slurm->scontrol);
    xfree(slurm->scancel);
    xfree(slurm->conf);
    xfree(slurm->cluster);
    xfree(slurm->seen_cluster);
    xfree(slurm->user);
    xfree(slurm->token_file);
    xfree(slurm->rest_url);
    xfree(slurm->spare_feature);
    xfree(slurm->spare_reservation);
    xfree(slurm);
}

static char *text_or(const char *text, const char *otherwise)
{
    return xstrdup(text != NULL && text[0] != '\0' ? text : otherwise);
}

struct actuator *slurm_new(struct loop *loop, struct http_client *client,
                           const struct slurm_params *params)
{
    struct slurm *slurm = xcalloc(1, sizeof *slurm);
    slurm->loop = loop;
    slurm->client = client;
    slurm->runner = process_runner_new(loop, PROGRAMS_AT_ONCE);
    slurm->scontrol = text_or(params->scontrol, "scontrol");
    slurm->scancel = text_or(params->scancel, "scancel");
    slurm->conf = text_or(params->conf, "");
    slurm->cluster = text_or(params->cluster, "");
    slurm->seen_cluster = xstrdup("");
    slurm->user = text_or(params->user, "");
    slurm->token_file = text_or(params->token_file, "");
    slurm->rest_url = text_or(params->rest_url, "");
    slurm->spare_feature = xstrdup(params->spare_feature != NULL ? params->spare_feature : "spare");
    slurm->spare_reservation = xstrdup(params->spare_reservation != NULL ? params->spare_reservation
                                                                         : "broom-spares");
    slurm->requeue_always = params->requeue_always;
    slurm->may_act = params->may_act;
    slurm->may_act_context = params->may_act_context;
    slurm->port = (struct actuator){.name = "slurm",
                                    .changes_world = true,
                                    .start = start,
                                    .poll = poll,
                                    .describe = describe,
                                    .free = release,
                                    .self = slurm};
    return &slurm->port;
}
