/* The cluster as Slurm describes it. One description is several programs; when any of them fails
 * the world is unknown. Lost drains are made again before it is told, so that a slurmctld that
 * forgot them looks like no person's doing.
 */
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_hostlist.h"
#include "remediation/actuators/slurm_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const unsigned WORLD = 1u << SLURM_READ_CONFIG | 1u << SLURM_READ_NODES |
                              1u << SLURM_READ_TOPOLOGY | 1u << SLURM_READ_RESERVATIONS;
static const unsigned NEEDED = 1u << SLURM_READ_CONFIG | 1u << SLURM_READ_NODES;

/* --- racks: leaf switches, or blocks --- */

struct place {
    const char *node;
    char *rack;
};

struct places {
    struct place *items; /* by node */
    size_t count, capacity;
    struct names names; /* owns the node names */
};

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct place *)a)->node, ((const struct place *)b)->node);
}

static void add_places(struct places *places, struct view rack, struct view hostlist)
{
    size_t from = places->names.count;
    ignore_status(hostlist_expand(hostlist, &places->names, NULL)); /* the rest has no rack */
    for (size_t i = from; i < places->names.count; i++) {
        places->items = array_grow(places->items, places->count, &places->capacity,
                                   sizeof *places->items);
        places->items[places->count++] = (struct place){places->names.items[i],
                                                        xstrndup(rack.bytes, rack.length)};
    }
}

static void read_places(const struct slurm_reading *topology, struct places *places)
{
    struct view text = {topology->text.bytes, topology->text.length}, rest = text, record;
    while (slurm_next_record(&rest, "SwitchName=", &record))
        if (view_equals(slurm_field_of(record, "Level"), "0"))
            add_places(places, slurm_field_of(record, "SwitchName"),
                       slurm_field_of(record, "Nodes"));
    for (rest = text; slurm_next_record(&rest, "BlockName=", &record);)
        add_places(places, slurm_field_of(record, "BlockName"), slurm_field_of(record, "Nodes"));
    if (places->count > 0)
        qsort(places->items, places->count, sizeof *places->items, compare_places);
}

static void places_done(struct places *places)
{
    for (size_t i = 0; i < places->count; i++)
        xfree(places->items[i].rack);
    xfree(places->items);
    names_done(&places->names);
}

/* The leaf switch; without a topology the first feature that begins with "rack". */
static char *rack_of(const struct places *places, const struct slurm_node *node)
{
    struct place key = {node->name, NULL};
    const struct place *found = places->count > 0 ? bsearch(&key, places->items, places->count,
                                                            sizeof *places->items, compare_places)
                                                  : NULL;
    if (found != NULL)
        return xstrdup(found->rack);
    for (const char *at = node->features; *at != '\0';) {
        size_t word = strcspn(at, ",");
        if (word > 4 && strncmp(at, "rack", 4) == 0)
            return xstrndup(at, word);
        at += word + (at[word] == ',' ? 1 : 0);
    }
    return NULL;
}

/* --- reservations: spares and promises --- */

struct reserved {
    struct names spares;   /* nodes of the spares' reservation */
    struct names promised; /* nodes of broom-job-ID */
    struct names holders;  /* by index of promised: the job's name, or the reservation's */
    struct names others; /* nodes that somebody else has reserved, the jobs asked about left out */
};

static const char *holder_of(const struct slurm_call *call, const char *job_id,
                             const char *reservation)
{
    for (size_t i = 0; i < call->asked_count; i++)
        if (strcmp(call->asked[i].id, job_id) == 0)
            return call->asked[i].name;
    return reservation;
}

/* One of the jobs asked about runs in it: what stands there is for that job. */
static bool is_of_asked_job(const struct slurm_call *call, const char *reservation)
{
    for (size_t i = 0; i < call->asked_count; i++) {
        struct slurm_job job;
        if (call->asked[i].reading.status != OK ||
            !slurm_reading_job(&call->asked[i].reading, &job))
            continue;
        bool is_it = strcmp(job.reservation, reservation) == 0;
        slurm_job_done(&job);
        if (is_it)
            return true;
    }
    return false;
}

static void read_reservation(const struct slurm_call *call, struct view record,
                             struct reserved *reserved)
{
    struct view nodes = slurm_field_of(record, "Nodes");
    AUTO_TEXT head = {0};
    AUTO_FREE char *name = xstrdup("");
    slurm_set_text(&name, slurm_field_of(record, "ReservationName"));
    slurm_reservation_name(&head, "");
    struct names *into = NULL;
    if (strcmp(name, call->owner->spare_reservation) == 0)
        into = &reserved->spares;
    else if (strncmp(name, head.bytes, head.length) == 0)
        into = &reserved->promised;
    else if (view_equals(slurm_field_of(record, "State"), "ACTIVE") && !is_of_asked_job(call, name))
        into = &reserved->others;
    if (into == NULL)
        return;
    ignore_status(hostlist_expand(nodes, into, NULL)); /* what cannot be read holds none */
    const char *holder = into == &reserved->promised ? holder_of(call, name + head.length, name)
                                                     : "";
    while (reserved->holders.count < reserved->promised.count)
        names_add(&reserved->holders, holder);
}

static void read_reserved(const struct slurm_call *call, struct reserved *reserved)
{
    const struct text *text = &call->readings[SLURM_READ_RESERVATIONS].text;
    struct view rest = {text->bytes, text->length}, record;
    while (slurm_next_record(&rest, "ReservationName=", &record))
        read_reservation(call, record, reserved);
}

static void reserved_done(struct reserved *reserved)
{
    names_done(&reserved->spares);
    names_done(&reserved->promised);
    names_done(&reserved->holders);
    names_done(&reserved->others);
}

static const char *promised_to(const struct reserved *reserved, const char *node)
{
    for (size_t i = 0; i < reserved->promised.count; i++)
        if (strcmp(reserved->promised.items[i], node) == 0)
            return reserved->holders.items[i];
    return NULL;
}

/* --- nodes --- */

/* Ours: the incident; else whatever the reason says. */
static char *cordoned_by(const struct slurm_node *node)
{
    struct view incident = slurm_reason_incident(node->reason);
    if (incident.length > 0)
        return xstrndup(incident.bytes, incident.length);
    return xstrdup(node->reason);
}

static void tell_node(const struct slurm_call *call, const struct slurm_node *node,
                      const struct places *places, const struct reserved *reserved,
                      struct world_node *ret_node)
{
    bool is_marked = slurm_has_feature(node, call->owner->spare_feature) ||
                     names_has(&reserved->spares, node->name);
    const struct slurm_drain *drain = slurm_drains_find(&call->owner->drains, node->name);
    bool is_lost = drain != NULL && drain->is_lost;
    *ret_node = (struct world_node){
        .name = node->name,
        .rack = rack_of(places, node),
        .ready = slurm_is_ready(node->state),
        .cordoned = slurm_is_cordoned(node) || is_lost,
        .spare = is_marked && node->state.base == SLURM_BASE_IDLE &&
                 (node->state.flags & SLURM_COMPLETING) == 0 &&
                 !names_has(&reserved->others, node->name),
        .promised_to = promised_to(reserved, node->name),
        .gpus_allocatable = node->gpus,
    };
    if (is_lost) {
        struct view incident = slurm_reason_incident(drain->reason);
        ret_node->cordoned_by = xstrndup(incident.bytes, incident.length);
    } else if (ret_node->cordoned) {
        ret_node->cordoned_by = cordoned_by(node);
    }
}

/* --- jobs --- */

struct told {
    struct world_node *nodes;
    struct world_job *jobs;
    struct names owned;  /* texts of jobs */
    struct names *hosts; /* by job: the names that rank_nodes points at */
};

static const char *keep(struct told *told, const char *format, ...) PRINTF_LIKE(2, 3);
static const char *keep(struct told *told, const char *format, ...)
{
    AUTO_TEXT text = {0};
    va_list args;
    va_start(args, format);
    text_addv(&text, format, args);
    va_end(args);
    names_add(&told->owned, text.bytes);
    return told->owned.items[told->owned.count - 1];
}

/* A requeue in progress shows as COMPLETING; our mark tells it from an end. */
static bool is_being_requeued(const struct slurm_job *job)
{
    struct slurm_mark mark;
    return slurm_mark_read(job->admin_comment, &mark) && job->restarts > mark.restarts;
}

static const char *phase_of(const struct slurm_job *job)
{
    if (slurm_job_is(job, "RUNNING"))
        return "running";
    if (slurm_job_is(job, "COMPLETED"))
        return "finished";
    if (slurm_job_has_ended(job))
        return "failed";
    if (slurm_job_is(job, "PENDING") || slurm_job_is(job, "REQUEUED") ||
        slurm_job_is(job, "REQUEUE_HOLD") || slurm_job_is(job, "SPECIAL_EXIT"))
        return job->restarts > 0 ? "restarting" : "pending";
    if (slurm_job_is(job, "CONFIGURING"))
        return "pending";
    if (slurm_job_is(job, "COMPLETING") && is_being_requeued(job))
        return "restarting";
    return "unknown";
}

/* Nodes that Slurm itself took out because a launch failed there. */
static void add_launch_failures(const struct slurm_nodes *nodes, struct text *out)
{
    size_t found = 0;
    for (size_t i = 0; i < nodes->count && found < 4; i++) {
        const struct slurm_node *node = &nodes->items[i];
        bool is_one = slurm_is_cordoned(node) && slurm_reason_is_own(node->reason) &&
                      (node->state.flags & SLURM_DRAIN) != 0;
        if (is_one)
            text_addf(out, "%s%s ('%s')", found++ > 0 ? ", " : "; Slurm took out ", node->name,
                      node->reason);
    }
}

static const char *waiting_for(const struct slurm_call *call, struct told *told,
                               const struct slurm_job *job)
{
    AUTO_TEXT text = {0};
    bool launch_failed = strcmp(job->reason, "launch_failed_requeued_held") == 0;
    if (slurm_job_is(job, "RUNNING") || slurm_job_has_ended(job))
        return NULL;
    text_addf(&text, "Slurm job %s is %s", job->id, job->state);
    if (job->reason[0] != '\0' && strcmp(job->reason, "None") != 0)
        text_addf(&text, " (%s)", job->reason);
    if (launch_failed)
        add_launch_failures(&call->nodes, &text);
    if (slurm_job_is_held(job))
        text_addf(&text, "; held until scontrol release %s", job->id);
    else if (job->required_nodes[0] != '\0')
        text_addf(&text, "; it waits for %s", job->required_nodes);
    return keep(told, "%s", text.bytes);
}

/* Slurm's block distribution fills node after node; the first ones take what does not divide. */
static void tell_ranks(const struct slurm_asked_job *asked, const struct slurm_job *job,
                       struct names *hosts, struct world_job *ret_job)
{
    size_t ranks = (size_t)(asked->world_size > 0 ? asked->world_size : job->tasks);
    bool is_running = slurm_job_is(job, "RUNNING");
    if (!is_running || ranks == 0 || ranks > HOSTLIST_NAMES_MAX ||
        hostlist_expand(view_of(job->nodes), hosts, NULL) != OK || hosts->count == 0)
        return;
    const char **nodes = xcalloc(ranks, sizeof *nodes);
    size_t least = ranks / hosts->count, more = ranks % hosts->count;
    for (size_t rank = 0; rank < ranks; rank++) {
        size_t node = rank % hosts->count;
        if (strcmp(asked->distribution, "cyclic") != 0)
            node = rank < more * (least + 1) ? rank / (least + 1)
                                             : more + (rank - more * (least + 1)) / least;
        nodes[rank] = hosts->items[node];
    }
    ret_job->rank_nodes = nodes;
    ret_job->rank_count = (int32_t)ranks;
}

static void tell_strange_job(const struct slurm_asked_job *asked, struct told *told,
                             struct world_job *ret_job)
{
    if (asked->id[0] == '\0')
        ret_job->restart_refusal = keep(told, "%s", asked->why_not);
    else if (asked->reading.status == OK)
        ret_job->restart_refusal = keep(told, "its workload is of Slurm cluster '%s'",
                                        asked->cluster);
    else if (asked->reading.status == ERR_NOT_FOUND)
        ret_job->restart_refusal = keep(told, "Slurm knows no job %s: it ended long ago",
                                        asked->id);
    else
        ret_job->restart_refusal = keep(told, "Slurm job %s cannot be read: %s", asked->id,
                                        asked->reading.message);
}

static void tell_job(const struct slurm_call *call, const struct slurm_asked_job *asked,
                     struct view cluster, struct told *told, size_t index)
{
    struct world_job *world = &told->jobs[index];
    AUTO_TEXT refusal = {0};
    struct slurm_job job;
    *world = (struct world_job){.name = asked->name,
                                .uid = "",
                                .phase = "unknown",
                                .restarts = -1,
                                .restarts_max = -1,
                                .checkpoint_step = -1};
    bool is_ours = asked->cluster[0] == '\0' || view_equals(cluster, asked->cluster);
    if (asked->id[0] == '\0' || asked->reading.status != OK || !is_ours ||
        !slurm_reading_job(&asked->reading, &job)) {
        tell_strange_job(asked, told, world);
        return;
    }
    world->uid = keep(told, "%.*s/%s@%s", (int)cluster.length, cluster.bytes, job.id,
                      job.submit_time);
    world->phase = phase_of(&job);
    world->restarts = job.restarts;
    world->waiting_for = waiting_for(call, told, &job);
    if (slurm_restart_refusal(&job, call->owner->requeue_always, &refusal))
        world->restart_refusal = keep(told, "%s", refusal.bytes);
    tell_ranks(asked, &job, &told->hosts[index], world);
    slurm_job_done(&job);
}

/* --- the answer --- */

static void tell_unknown(struct slurm_call *call, const char *reason)
{
    AUTO_FREE char *copy = xstrdup(reason);
    world_done_fn *described = call->described;
    void *context = call->context;
    slurm_call_free(call);
    described(context, &(struct world){.reason = copy});
}

static void told_done(struct told *told, size_t node_count, size_t job_count)
{
    for (size_t i = 0; i < node_count; i++) {
        xfree(told->nodes[i].rack);
        xfree(told->nodes[i].cordoned_by);
    }
    for (size_t i = 0; i < job_count; i++) {
        xfree(told->jobs[i].rank_nodes);
        names_done(&told->hosts[i]);
    }
    xfree(told->nodes);
    xfree(told->jobs);
    xfree(told->hosts);
    names_done(&told->owned);
}

struct view slurm_config_of(const struct slurm_call *call, const char *key)
{
    const struct text *config = &call->readings[SLURM_READ_CONFIG].text;
    return slurm_config_value((struct view){config->bytes, config->length}, key);
}

void slurm_tell(struct slurm_call *call)
{
    struct places places = {0};
    struct reserved reserved = {0};
    size_t nodes = call->nodes.count, jobs = call->asked_count;
    struct told told = {.nodes = xcalloc(nodes + 1, sizeof *told.nodes),
                        .jobs = xcalloc(jobs + 1, sizeof *told.jobs),
                        .hosts = xcalloc(jobs + 1, sizeof *told.hosts)};
    read_places(&call->readings[SLURM_READ_TOPOLOGY], &places);
    read_reserved(call, &reserved);
    for (size_t i = 0; i < nodes; i++)
        tell_node(call, &call->nodes.items[i], &places, &reserved, &told.nodes[i]);
    for (size_t i = 0; i < jobs; i++)
        tell_job(call, &call->asked[i], slurm_config_of(call, "ClusterName"), &told, i);
    struct world world = {.known = true,
                          .nodes = told.nodes,
                          .node_count = nodes,
                          .jobs = told.jobs,
                          .job_count = jobs};
    call->described(call->context, &world);
    told_done(&told, nodes, jobs);
    places_done(&places);
    reserved_done(&reserved);
    slurm_call_free(call);
}

/* --- is it known? --- */

/* After its start slurmctld has heard of nobody for some seconds. */
static bool is_just_started(const struct slurm_nodes *nodes)
{
    size_t unheard = 0;
    for (size_t i = 0; i < nodes->count; i++)
        unheard += nodes->items[i].state.base == SLURM_BASE_UNKNOWN ? 1 : 0;
    return unheard * 10 > nodes->count;
}

/* Why the world is not known, or NULL. */
static const char *unknown_because(struct slurm_call *call, struct text *buffer)
{
    const struct slurm_reading *failed = slurm_failed_reading(call, NEEDED);
    struct view cluster = slurm_config_of(call, "ClusterName");
    if (failed != NULL)
        text_addf(buffer, "slurmctld did not answer: %s", failed->message);
    else if (!slurm_take_nodes(call))
        text_add(buffer, "Slurm named no nodes, or its answer was cut");
    else if (call->owner->cluster[0] != '\0' && !view_equals(cluster, call->owner->cluster))
        text_addf(buffer, "Slurm cluster '%.*s' answers, not '%s' (actuator.slurm_cluster)",
                  (int)cluster.length, cluster.bytes, call->owner->cluster);
    else if (is_just_started(&call->nodes))
        text_add(buffer, "slurmctld has just started and has not heard of its nodes yet");
    for (size_t i = 0; buffer->length == 0 && i < call->asked_count; i++) {
        const struct slurm_reading *reading = &call->asked[i].reading;
        if (reading->status != OK && reading->status != ERR_NOT_FOUND &&
            reading->status != ERR_REFUSED)
            text_addf(buffer, "slurmctld did not answer: %s", reading->message);
    }
    return buffer->length > 0 ? buffer->bytes : NULL;
}

void slurm_tell_mended(struct slurm_call *call)
{
    AUTO_TEXT why = {0};
    if (unknown_because(call, &why) != NULL)
        tell_unknown(call, why.bytes);
    else
        slurm_tell(call);
}

static void note_cluster(struct slurm_call *call)
{
    struct view cluster = slurm_config_of(call, "ClusterName");
    xfree(call->owner->seen_cluster);
    call->owner->seen_cluster = xstrndup(cluster.bytes, cluster.length);
}

static void world_read(struct slurm_call *call)
{
    AUTO_TEXT why = {0};
    const struct slurm *slurm = call->owner;
    if (unknown_because(call, &why) != NULL) {
        tell_unknown(call, why.bytes);
        return;
    }
    note_cluster(call);
    if (slurm_judge_drains(call) &&
        (slurm->may_act == NULL || slurm->may_act(slurm->may_act_context)))
        slurm_mend(call);
    else
        slurm_tell(call);
}

void slurm_describe_start(struct slurm_call *call)
{
    slurm_read_all(call, WORLD, world_read);
}
