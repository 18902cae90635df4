/* A restart: mark, requeuehold, lists, release. Between the requeue and the release the job is held
 * and the mark says by whom, so that a start that was cut off can be gone on with.
 */
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_hostlist.h"
#include "remediation/actuators/slurm_text.h"

#include <stdio.h>
#include <string.h>

static const unsigned JOB_ALONE = 1u << SLURM_READ_JOB;
static const unsigned JOB_AND_RESERVATIONS = 1u << SLURM_READ_JOB | 1u << SLURM_READ_RESERVATIONS;

/* Held by our requeue, which the mark counts: a later requeue into a hold is somebody else's. */
static bool is_held_by_us(const struct slurm_job *job, const struct slurm_mark *mark)
{
    return slurm_job_is_held(job) && job->restarts == mark->restarts + 1;
}

bool slurm_restart_refusal(const struct slurm_job *job, bool requeue_always, struct text *out)
{
    struct slurm_mark mark;
    bool ours = slurm_mark_read(job->admin_comment, &mark) && is_held_by_us(job, &mark);
    if (slurm_job_has_ended(job))
        text_addf(out, "Slurm job %s has ended (%s): a restart would undo that", job->id,
                  job->state);
    else if (!job->is_batch)
        text_addf(out,
                  "Slurm job %s was started by srun or salloc: Slurm requeues batch jobs only "
                  "(submit it with sbatch)",
                  job->id);
    else if (!job->may_requeue && !requeue_always)
        text_addf(out,
                  "Slurm job %s may not be requeued (--no-requeue): scontrol update JobId=%s "
                  "Requeue=1 allows it",
                  job->id, job->id);
    else if (strcmp(job->reason, "JobHeldUser") == 0)
        text_addf(out, "Slurm job %s is held by its user", job->id);
    else if (slurm_job_is_held(job) && !ours &&
             strcmp(job->reason, "launch_failed_requeued_held") != 0)
        text_addf(out, "Slurm job %s is held (%s), not by broomd", job->id, job->reason);
    return out->length > 0;
}

/* --- the lists --- */

struct lists {
    struct names required, excluded;
};

static void lists_done(struct lists *lists)
{
    names_done(&lists->required);
    names_done(&lists->excluded);
}

static size_t index_of(const struct names *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->items[i], name) != 0)
        i++;
    return i;
}

/* Where the job ran before: its nodes, those of our mark, or those that we required the last time.
 */
static void nodes_before(const struct slurm_call *call, struct names *before)
{
    struct slurm_mark mark = {.nodes = {"", 0}};
    struct view nodes = view_of(call->job.nodes);
    if (nodes.length == 0 && slurm_mark_read(call->job.admin_comment, &mark))
        nodes = mark.nodes;
    if (nodes.length == 0)
        nodes = view_of(call->job.required_nodes);
    ignore_status(hostlist_expand(nodes, before, NULL)); /* what is not known is not required */
}

/* Required: where spares are named, the old nodes with the spares in the places of those that are
 * left; else what was required before, without them. Excluded: what was, and those that are left.
 */
static void make_lists(const struct slurm_call *call, struct lists *lists)
{
    struct names before = {0};
    if (call->spares.count > 0)
        nodes_before(call, &before);
    else
        ignore_status(hostlist_expand(view_of(call->job.required_nodes), &before, NULL));
    ignore_status(hostlist_expand(view_of(call->job.excluded_nodes), &lists->excluded, NULL));
    for (size_t i = 0; i < call->nodes_wanted.count; i++)
        if (hostlist_is_name(call->nodes_wanted.items[i])) /* a rank may say anything of its host */
            names_add_new(&lists->excluded, call->nodes_wanted.items[i]);
    for (size_t i = 0; i < before.count; i++)
        if (index_of(&call->nodes_wanted, before.items[i]) == call->nodes_wanted.count)
            names_add_new(&lists->required, before.items[i]);
    for (size_t i = 0; i < call->spares.count; i++)
        names_add_new(&lists->required, call->spares.items[i]);
    for (size_t i = 0; i < lists->required.count; i++)
        names_remove(&lists->excluded, lists->required.items[i]);
    names_done(&before);
}

static void add_list(struct text *out, const char *key, const struct names *names)
{
    text_add(out, key);
    hostlist_add(out, (const char *const *)names->items, names->count);
}

/* --- steps; after the requeue every failure is `unknown`: poll and start go on with it --- */

static void fail_later_step(struct slurm_call *call, const struct slurm_answer *answer)
{
    slurm_finish(call, OUTCOME_UNKNOWN, POLL_UNREACHABLE,
                 "requeued, and not released yet: %s (scontrol release %s lets it run anywhere)",
                 answer->message, call->job_id);
}

static void released(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status != OK) {
        fail_later_step(call, answer);
        return;
    }
    AUTO_TEXT where = {0};
    struct lists lists = {0};
    make_lists(call, &lists);
    add_list(&where, lists.required.count > 0 ? ", to run on " : "", &lists.required);
    add_list(&where, lists.excluded.count > 0 ? ", away from " : "", &lists.excluded);
    slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "job %s requeued%s%s", call->job_id,
                 where.length > 0 ? where.bytes : "",
                 call->kept.length > 0 ? call->kept.bytes : "");
    lists_done(&lists);
}

static void release(struct slurm_call *call)
{
    slurm_change(call, released, "release", call->job_id, NULL);
}

static void excluded(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status == OK || answer->status == ERR_REFUSED)
        release(call);
    else
        fail_later_step(call, answer);
}

/* Slurm would not take the named nodes: better anywhere else than held. */
static void only_exclude(struct slurm_call *call, const char *why)
{
    struct lists lists = {0};
    AUTO_TEXT job = {0};
    AUTO_TEXT list = {0};
    make_lists(call, &lists);
    text_addf(&job, "JobId=%s", call->job_id);
    add_list(&list, "ExcNodeList=", &lists.excluded);
    text_addf(&call->kept, "; the named nodes were refused ('%s'), so the scheduler chooses", why);
    names_done(&call->spares);
    slurm_change(call, excluded, "update", job.bytes, list.bytes, NULL);
    lists_done(&lists);
}

static void listed(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status == OK)
        release(call);
    else if (answer->status == ERR_REFUSED || answer->status == ERR_NOT_FOUND)
        only_exclude(call, answer->message);
    else
        fail_later_step(call, answer);
}

static void write_lists(struct slurm_call *call, const char *reservation, slurm_answer_fn *fn)
{
    struct lists lists = {0};
    AUTO_TEXT job = {0};
    AUTO_TEXT exclude = {0};
    AUTO_TEXT require = {0};
    AUTO_TEXT reserve = {0};
    make_lists(call, &lists);
    text_addf(&job, "JobId=%s", call->job_id);
    add_list(&exclude, "ExcNodeList=", &lists.excluded);
    add_list(&require, "ReqNodeList=", &lists.required);
    if (reservation != NULL)
        text_addf(&reserve, "ReservationName=%s", reservation);
    slurm_change(call, fn, "update", job.bytes, exclude.bytes, require.bytes, reserve.bytes, NULL);
    lists_done(&lists);
}

static void reserved(struct slurm_call *call, const struct slurm_answer *answer)
{
    AUTO_TEXT name = {0};
    slurm_reservation_name(&name, call->job.id);
    if (answer->status == ERR_REFUSED)
        text_addf(&call->kept, "; its nodes could not be reserved ('%s')", answer->message);
    if (answer->status == OK || answer->status == ERR_REFUSED)
        write_lists(call, answer->status == OK ? name.bytes : NULL, listed);
    else
        fail_later_step(call, answer);
}

/* The job is held now. Its whole set is reserved, so that nobody takes a node while Slurm delays
 * the requeued job. A reservation that the job's user had chosen is left to it. */
static void place(struct slurm_call *call)
{
    AUTO_TEXT name = {0};
    struct lists lists = {0};
    slurm_reservation_name(&name, call->job.id);
    bool is_theirs = call->job.reservation[0] != '\0' &&
                     strcmp(call->job.reservation, name.bytes) != 0;
    make_lists(call, &lists);
    if (call->spares.count == 0 || is_theirs)
        write_lists(call, NULL, listed);
    else
        slurm_reserve(call, name.bytes, &lists.required, reserved);
    lists_done(&lists);
}

static void restart_read(struct slurm_call *call);

static void requeued(struct slurm_call *call, const struct slurm_answer *answer)
{
    bool is_pending = answer->status == ERR_REFUSED &&
                      strstr(answer->message, "pending execution") != NULL;
    if (answer->status == OK)
        place(call);
    else if (is_pending) /* somebody else was faster: it is read and judged anew */
        slurm_read_all(call, JOB_AND_RESERVATIONS, restart_read);
    else if (answer->status == ERR_REFUSED)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "Slurm does not requeue job %s: %s",
                     call->job_id, answer->message);
    else
        slurm_finish_failed(call, answer);
}

static void marked(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status == OK)
        slurm_change(call, requeued, "requeuehold", call->job_id, NULL);
    else
        slurm_finish_failed(call, answer);
}

static void write_mark(struct slurm_call *call, int64_t restarts, slurm_answer_fn *fn)
{
    AUTO_TEXT job = {0};
    AUTO_TEXT comment = {0};
    text_addf(&job, "JobId=%s", call->job_id);
    text_add(&comment, "AdminComment=");
    AUTO_TEXT mark = {0};
    struct names before = {0};
    AUTO_TEXT nodes = {0};
    nodes_before(call, &before);
    hostlist_add(&nodes, (const char *const *)before.items, before.count);
    names_done(&before);
    slurm_mark_write(&mark, call->job.admin_comment, call->operation_id, restarts,
                     nodes.length > 0 ? nodes.bytes : "");
    text_add(&comment, mark.bytes);
    slurm_change(call, fn, "update", job.bytes, comment.bytes,
                 call->job.may_requeue ? NULL : "Requeue=1", NULL);
}

/* Slurm has requeued it by itself, or holds it after a launch that failed. */
static void marked_pending(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status == OK)
        place(call);
    else
        slurm_finish_failed(call, answer);
}

static bool is_pending(const struct slurm_job *job)
{
    return slurm_job_is(job, "PENDING") || slurm_job_is(job, "REQUEUED") ||
           slurm_job_is(job, "REQUEUE_HOLD") || slurm_job_is(job, "SPECIAL_EXIT");
}

static void begin_restart(struct slurm_call *call)
{
    AUTO_TEXT refusal = {0};
    struct slurm_job *job = &call->job;
    if (slurm_restart_refusal(job, call->owner->requeue_always, &refusal))
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", refusal.bytes);
    else if (is_pending(job))
        write_mark(call, job->restarts - 1, marked_pending);
    else if (slurm_job_is(job, "COMPLETING"))
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_ABSENT, "Slurm job %s is ending: wait",
                     call->job_id);
    else
        write_mark(call, job->restarts, marked);
}

/* A mark of the same operation id can be from a broomd whose records are gone: a job that runs on
 * what it should leave has not been moved by this operation. */
static bool runs_on_what_it_leaves(const struct slurm_call *call)
{
    struct names nodes = {0};
    bool answer = false;
    if (slurm_job_is(&call->job, "RUNNING"))
        ignore_status(hostlist_expand(view_of(call->job.nodes), &nodes, NULL)); /* none of them */
    for (size_t i = 0; i < call->nodes_wanted.count; i++)
        answer = answer || names_has(&nodes, call->nodes_wanted.items[i]);
    names_done(&nodes);
    return answer;
}

/* The mark says that this operation has requeued the job. */
static bool has_happened(const struct slurm_call *call, struct slurm_mark *ret_mark)
{
    return slurm_mark_read(call->job.admin_comment, ret_mark) &&
           strcmp(ret_mark->operation_id, call->operation_id) == 0 &&
           call->job.restarts > ret_mark->restarts && !runs_on_what_it_leaves(call);
}

static void restart_read(struct slurm_call *call)
{
    const struct slurm_reading *failed = slurm_failed_reading(call, JOB_ALONE);
    struct slurm_mark mark;
    if (failed != NULL) {
        slurm_finish_unread(call, failed->status, failed->message);
        return;
    }
    if (!slurm_take_job(call)) {
        slurm_finish_unread(call, ERR_IO, "Slurm's answer names no job");
        return;
    }
    bool happened = has_happened(call, &mark);
    if (happened && is_held_by_us(&call->job, &mark))
        place(call);
    else if (happened && !slurm_job_has_ended(&call->job))
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE,
                     "job %s was requeued by this operation already", call->job_id);
    else
        begin_restart(call);
}

static void refuse_workload(struct slurm_call *call)
{
    slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", call->workload_problem);
}

void slurm_restart_start(struct slurm_call *call)
{
    if (call->job_id[0] == '\0')
        slurm_wait(call, 0, refuse_workload);
    else
        slurm_read_all(call, JOB_AND_RESERVATIONS, restart_read);
}

/* --- poll --- */

static void restart_polled(struct slurm_call *call)
{
    const struct slurm_reading *failed = slurm_failed_reading(call, JOB_ALONE);
    struct slurm_mark mark = {0};
    if (failed != NULL && failed->status == ERR_NOT_FOUND)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "Slurm knows no job %s", call->job_id);
    else if (failed != NULL)
        slurm_finish_unread(call, failed->status, failed->message);
    else if (!slurm_take_job(call))
        slurm_finish_unread(call, ERR_IO, "Slurm's answer names no job");
    else if (!has_happened(call, &mark))
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT,
                     "job %s has not been requeued by this operation", call->job_id);
    else if (is_held_by_us(&call->job, &mark))
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT,
                     "job %s is requeued and held: the operation is to be gone on with",
                     call->job_id);
    else
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "job %s was requeued", call->job_id);
}

void slurm_restart_poll(struct slurm_call *call)
{
    if (call->job_id[0] == '\0')
        slurm_wait(call, 0, refuse_workload);
    else
        slurm_read_all(call, JOB_ALONE, restart_polled);
}
