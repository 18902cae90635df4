/* Spares are promised by a reservation of the job's own, broom-job-ID: other jobs cannot have its
 * nodes, the job may use others besides (FLEX), and it may lie over the spares' own reservation
 * (OVERLAP). It goes by itself a day after the job has left it (PURGE_COMP).
 */
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_hostlist.h"
#include "remediation/actuators/slurm_text.h"

#include <string.h>

static const unsigned SPARE_READS = 1u << SLURM_READ_JOB | 1u << SLURM_READ_RESERVATIONS |
                                    1u << SLURM_READ_NODES;

void slurm_reservation_name(struct text *out, const char *job_id)
{
    text_addf(out, "broom-job-%s", job_id);
}

/* The nodes of a reservation; false when there is no such reservation. */
static bool reservation_nodes(const struct slurm_call *call, const char *name, struct names *nodes)
{
    const struct text *text = &call->readings[SLURM_READ_RESERVATIONS].text;
    struct view rest = {text->bytes, text->length}, record;
    while (slurm_next_record(&rest, "ReservationName=", &record)) {
        if (!view_equals(slurm_field_of(record, "ReservationName"), name))
            continue;
        ignore_status(hostlist_expand(slurm_field_of(record, "Nodes"), nodes, NULL)); /* none */
        return true;
    }
    return false;
}

void slurm_reserve(struct slurm_call *call, const char *name, const struct names *nodes,
                   slurm_answer_fn *fn)
{
    AUTO_TEXT which = {0};
    AUTO_TEXT list = {0};
    AUTO_TEXT user = {0};
    struct names before = {0};
    bool exists = reservation_nodes(call, name, &before);
    names_done(&before);
    text_addf(&which, "ReservationName=%s", name);
    text_add(&list, "Nodes=");
    hostlist_add(&list, (const char *const *)nodes->items, nodes->count);
    text_addf(&user, "Users=%s", call->job.user);
    if (exists)
        slurm_change(call, fn, "update", which.bytes, list.bytes, NULL);
    else
        slurm_change(call, fn, "create", which.bytes, list.bytes, user.bytes, "StartTime=now",
                     "Duration=UNLIMITED", "Flags=IGNORE_JOBS,FLEX,OVERLAP,PURGE_COMP=24:00:00",
                     NULL);
}

static void written(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status != OK)
        slurm_finish_failed(call, answer);
    else
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "the reservation broom-job-%s holds them",
                     call->job.id);
}

/* The reservation of somebody else that holds a node; false: none. The job's own does not count. */
static bool reserved_by_others(const struct slurm_call *call, const char *node,
                               struct text *ret_name)
{
    const struct text *text = &call->readings[SLURM_READ_RESERVATIONS].text;
    struct view rest = {text->bytes, text->length}, record;
    AUTO_TEXT ours = {0};
    slurm_reservation_name(&ours, call->job.id);
    while (slurm_next_record(&rest, "ReservationName=", &record)) {
        struct names nodes = {0};
        struct view name = slurm_field_of(record, "ReservationName");
        bool counts = view_equals(slurm_field_of(record, "State"), "ACTIVE") &&
                      !view_equals(name, ours.bytes) && !view_equals(name, call->job.reservation) &&
                      !view_equals(name, call->owner->spare_reservation);
        if (counts)
            ignore_status(
                hostlist_expand(slurm_field_of(record, "Nodes"), &nodes, NULL)); /* none */
        bool is_there = names_has(&nodes, node);
        names_done(&nodes);
        if (is_there) {
            text_add_bytes(ret_name, name.bytes, name.length);
            return true;
        }
    }
    return false;
}

/* The first spare that cannot be promised, in words; false: all can. */
static bool find_unfit(const struct slurm_call *call, struct text *why)
{
    AUTO_TEXT reservation = {0};
    for (size_t i = 0; i < call->spares.count && why->length == 0; i++) {
        const char *name = call->spares.items[i];
        const struct slurm_node *node = slurm_find_node(&call->nodes, name);
        if (node == NULL)
            text_addf(why, "Slurm knows no node '%s'", name);
        else if (slurm_is_cordoned(node))
            text_addf(why, "spare %s is drained: '%s'", name, node->reason);
        else if (!slurm_is_ready(node->state) || node->state.base != SLURM_BASE_IDLE)
            text_addf(why, "spare %s is not idle", name);
        else if (reserved_by_others(call, name, &reservation))
            text_addf(why, "spare %s stands in reservation '%s'", name, reservation.bytes);
    }
    return why->length > 0;
}

static size_t count_in(const struct names *some, const struct names *all)
{
    size_t count = 0;
    for (size_t i = 0; i < some->count; i++)
        count += names_has(all, some->items[i]) ? 1 : 0;
    return count;
}

/* The job runs in a reservation that its user chose: it can only have nodes of that one. */
static void promise_in_theirs(struct slurm_call *call)
{
    struct names nodes = {0};
    reservation_nodes(call, call->job.reservation, &nodes);
    if (count_in(&call->spares, &nodes) == call->spares.count)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE,
                     "they stand in reservation '%s', in which job %s runs", call->job.reservation,
                     call->job.id);
    else
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE,
                     "job %s runs in reservation '%s', which does not hold all the spares",
                     call->job.id, call->job.reservation);
    names_done(&nodes);
}

static void promise(struct slurm_call *call, const char *name)
{
    AUTO_TEXT unfit = {0};
    struct names nodes = {0};
    bool is_theirs = call->job.reservation[0] != '\0' && strcmp(call->job.reservation, name) != 0;
    if (find_unfit(call, &unfit)) {
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_ABSENT, "%s", unfit.bytes);
        return;
    }
    if (is_theirs) {
        promise_in_theirs(call);
        return;
    }
    reservation_nodes(call, name, &nodes);
    for (size_t i = 0; i < call->spares.count; i++)
        names_add_new(&nodes, call->spares.items[i]);
    slurm_reserve(call, name, &nodes, written);
    names_done(&nodes);
}

static void given_back(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status == OK || answer->status == ERR_NOT_FOUND)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "given back");
    else if (answer->status == ERR_REFUSED && strstr(answer->message, "in use") != NULL)
        slurm_finish(call, OUTCOME_SUPERSEDED, POLL_DONE, "the job runs on them");
    else
        slurm_finish_failed(call, answer);
}

static bool runs_on_them(const struct slurm_call *call)
{
    struct names nodes = {0};
    if (!call->has_job || slurm_job_has_ended(&call->job))
        return false;
    ignore_status(hostlist_expand(view_of(call->job.nodes), &nodes, NULL)); /* none */
    bool answer = count_in(&call->spares, &nodes) > 0;
    names_done(&nodes);
    return answer;
}

static void give_back(struct slurm_call *call, const char *name)
{
    AUTO_TEXT which = {0};
    struct names nodes = {0};
    if (runs_on_them(call)) {
        slurm_finish(call, OUTCOME_SUPERSEDED, POLL_DONE, "the job runs on them");
        return;
    }
    bool exists = reservation_nodes(call, name, &nodes);
    for (size_t i = 0; i < call->spares.count; i++)
        names_remove(&nodes, call->spares.items[i]);
    text_addf(&which, "ReservationName=%s", name);
    if (!exists)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "nothing was reserved");
    else if (nodes.count > 0)
        slurm_reserve(call, name, &nodes, given_back);
    else
        slurm_change(call, given_back, "delete", which.bytes, NULL);
    names_done(&nodes);
}

/* The job that had them may be forgotten already; the spares go back all the same. */
static bool has_job_or_id(struct slurm_call *call)
{
    const struct slurm_reading *reading = &call->readings[SLURM_READ_JOB];
    const unsigned others = SPARE_READS & ~(1u << SLURM_READ_JOB);
    const struct slurm_reading *failed = slurm_failed_reading(call, others);
    if (failed == NULL && reading->status != OK &&
        (reading->status != ERR_NOT_FOUND || call->verb == VERB_PROMISE_SPARE))
        failed = reading;
    if (failed != NULL)
        slurm_finish_unread(call, failed->status, failed->message);
    else if (!slurm_take_nodes(call))
        slurm_finish_unread(call, ERR_IO, "Slurm named no nodes");
    else if (reading->status == OK && !slurm_take_job(call))
        slurm_finish_unread(call, ERR_IO, "Slurm's answer names no job");
    else
        return true;
    return false;
}

static const char *numeric_id(const struct slurm_call *call)
{
    return call->has_job ? call->job.id : call->job_id;
}

static void spare_read(struct slurm_call *call)
{
    AUTO_TEXT name = {0};
    if (!has_job_or_id(call))
        return;
    slurm_reservation_name(&name, numeric_id(call));
    if (call->verb == VERB_PROMISE_SPARE)
        promise(call, name.bytes);
    else
        give_back(call, name.bytes);
}

static void spare_polled(struct slurm_call *call)
{
    AUTO_TEXT name = {0};
    struct names nodes = {0};
    if (!has_job_or_id(call))
        return;
    slurm_reservation_name(&name, numeric_id(call));
    reservation_nodes(call, name.bytes, &nodes);
    if (call->has_job && call->job.reservation[0] != '\0' && call->verb == VERB_PROMISE_SPARE)
        reservation_nodes(call, call->job.reservation, &nodes);
    size_t held = count_in(&call->spares, &nodes);
    size_t wanted = call->verb == VERB_PROMISE_SPARE ? call->spares.count : 0;
    names_done(&nodes);
    if (held == wanted)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "%zu of %zu spares are reserved", held,
                     call->spares.count);
    else
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT, "%zu of %zu spares are reserved", held,
                     call->spares.count);
}

static void refuse_workload(struct slurm_call *call)
{
    slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", call->workload_problem);
}

void slurm_spare_start(struct slurm_call *call)
{
    if (call->job_id[0] == '\0')
        slurm_wait(call, 0, refuse_workload);
    else
        slurm_read_all(call, SPARE_READS, spare_read);
}

void slurm_spare_poll(struct slurm_call *call)
{
    if (call->job_id[0] == '\0')
        slurm_wait(call, 0, refuse_workload);
    else
        slurm_read_all(call, SPARE_READS, spare_polled);
}
