/* Names of verbs and outcomes (the words stored outside the process), and copies of the world. */
#include "remediation/actuator.h"

#include <assert.h>
#include <string.h>

static const char *const VERB_NAMES[VERB_COUNT] = {
    [VERB_NOTIFY] = "notify",
    [VERB_CAPTURE] = "capture",
    [VERB_CORDON] = "cordon",
    [VERB_UNCORDON] = "uncordon",
    [VERB_REQUEST_CHECKPOINT] = "request_checkpoint",
    [VERB_PROMISE_SPARE] = "promise_spare",
    [VERB_RELEASE_SPARE] = "release_spare",
    [VERB_RESTART_JOB] = "restart_job",
    [VERB_HAND_OVER] = "hand_over",
    [VERB_FENCE] = "fence",
    [VERB_DRAIN] = "drain",
    [VERB_FORCE_DELETE] = "force_delete",
};

static const char *const OUTCOME_NAMES[OUTCOME_COUNT] = {
    [OUTCOME_SUCCEEDED] = "succeeded", [OUTCOME_REFUSED] = "refused",
    [OUTCOME_TRANSIENT] = "transient", [OUTCOME_SUPERSEDED] = "superseded",
    [OUTCOME_CANCELLED] = "cancelled", [OUTCOME_UNKNOWN] = "unknown",
};

static bool name_find(const char *const *names, int count, const char *name, int *ret_index)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *ret_index = i;
            return true;
        }
    return false;
}

const char *verb_name(enum verb verb)
{
    assert(verb < VERB_COUNT);
    return VERB_NAMES[verb];
}

const char *outcome_name(enum outcome outcome)
{
    assert(outcome < OUTCOME_COUNT);
    return OUTCOME_NAMES[outcome];
}

bool verb_parse(const char *name, enum verb *ret_verb)
{
    int index;
    if (!name_find(VERB_NAMES, VERB_COUNT, name, &index))
        return false;
    *ret_verb = (enum verb)index;
    return true;
}

bool outcome_parse(const char *name, enum outcome *ret_outcome)
{
    int index;
    if (!name_find(OUTCOME_NAMES, OUTCOME_COUNT, name, &index))
        return false;
    *ret_outcome = (enum outcome)index;
    return true;
}

static const char *copy_text(const char *text)
{
    return text != NULL ? xstrdup(text) : NULL;
}

static const char *const *copy_texts(const char *const *texts, size_t count)
{
    if (texts == NULL)
        return NULL;
    const char **copies = xcalloc(count, sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = copy_text(texts[i]);
    return copies;
}

static void free_texts(const char *const *texts, size_t count)
{
    for (size_t i = 0; texts != NULL && i < count; i++)
        xfree(texts[i]);
    xfree(texts);
}

static void copy_job(struct world_job *to, const struct world_job *from)
{
    *to = *from;
    to->name = copy_text(from->name);
    to->uid = copy_text(from->uid);
    to->phase = copy_text(from->phase);
    to->waiting_for = copy_text(from->waiting_for);
    to->restart_refusal = copy_text(from->restart_refusal);
    to->made_anew = copy_text(from->made_anew);
    to->rank_nodes = copy_texts(from->rank_nodes, (size_t)from->rank_count);
    to->stuck_nodes = copy_texts(from->stuck_nodes, from->stuck_count);
}

struct world *world_copy(const struct world *world)
{
    struct world *copy = xcalloc(1, sizeof *copy);
    struct world_node *nodes = xcalloc(world->node_count, sizeof *nodes);
    struct world_job *jobs = xcalloc(world->job_count, sizeof *jobs);
    for (size_t i = 0; i < world->node_count; i++) {
        nodes[i] = world->nodes[i];
        nodes[i].name = copy_text(world->nodes[i].name);
        nodes[i].rack = copy_text(world->nodes[i].rack);
        nodes[i].nvlink_domain = copy_text(world->nodes[i].nvlink_domain);
        nodes[i].cordoned_by = copy_text(world->nodes[i].cordoned_by);
        nodes[i].promised_to = copy_text(world->nodes[i].promised_to);
        nodes[i].fenced_by = copy_text(world->nodes[i].fenced_by);
        nodes[i].uncordoned_by = copy_text(world->nodes[i].uncordoned_by);
        nodes[i].marked_by = copy_text(world->nodes[i].marked_by);
    }
    for (size_t i = 0; i < world->job_count; i++)
        copy_job(&jobs[i], &world->jobs[i]);
    *copy = (struct world){.known = world->known,
                           .reason = copy_text(world->reason),
                           .nodes = nodes,
                           .node_count = world->node_count,
                           .jobs = jobs,
                           .job_count = world->job_count};
    return copy;
}

void world_free(struct world *world)
{
    if (world == NULL)
        return;
    for (size_t i = 0; i < world->node_count; i++) {
        xfree(world->nodes[i].name);
        xfree(world->nodes[i].rack);
        xfree(world->nodes[i].nvlink_domain);
        xfree(world->nodes[i].cordoned_by);
        xfree(world->nodes[i].promised_to);
        xfree(world->nodes[i].fenced_by);
        xfree(world->nodes[i].uncordoned_by);
        xfree(world->nodes[i].marked_by);
    }
    for (size_t i = 0; i < world->job_count; i++) {
        const struct world_job *job = &world->jobs[i];
        free_texts(job->rank_nodes, (size_t)job->rank_count);
        free_texts(job->stuck_nodes, job->stuck_count);
        xfree(job->name);
        xfree(job->uid);
        xfree(job->phase);
        xfree(job->waiting_for);
        xfree(job->restart_refusal);
        xfree(job->made_anew);
    }
    xfree(world->nodes);
    xfree(world->jobs);
    xfree(world->reason);
    xfree(world);
}
