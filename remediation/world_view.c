/* A deep copy of struct world, sorted for look-up. */
#include "remediation/world_view.h"

#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *text)
{
    return xstrdup(text != NULL ? text : "");
}

static void free_nodes(struct world_view *view)
{
    for (size_t i = 0; i < view->node_count; i++) {
        struct view_node *node = &view->nodes[i];
        xfree(node->name);
        xfree(node->rack);
        xfree(node->domain);
        xfree(node->cordoned_by);
        xfree(node->promised_to);
        xfree(node->fenced_by);
        xfree(node->uncordoned_by);
        xfree(node->marked_by);
    }
    xfree(view->nodes);
}

static void free_jobs(struct world_view *view)
{
    for (size_t i = 0; i < view->job_count; i++) {
        struct view_job *job = &view->jobs[i];
        xfree(job->name);
        xfree(job->uid);
        xfree(job->phase);
        xfree(job->waiting_for);
        xfree(job->restart_refusal);
        xfree(job->made_anew);
        names_done(&job->nodes);
        names_done(&job->stuck);
    }
    xfree(view->jobs);
}

void world_view_done(struct world_view *view)
{
    free_nodes(view);
    free_jobs(view);
    *view = (struct world_view){0};
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct view_node *)a)->name, ((const struct view_node *)b)->name);
}

static void copy_node(struct view_node *to, const struct world_node *from)
{
    const char *domain = from->nvlink_domain != NULL ? from->nvlink_domain : from->rack;
    *to = (struct view_node){
        .name = copy_text(from->name),
        .rack = copy_text(from->rack),
        .domain = copy_text(domain),
        .domain_known = from->nvlink_domain != NULL && from->nvlink_domain[0] != '\0' &&
                        !from->domain_is_past,
        .ready = from->ready,
        .cordoned = from->cordoned,
        .spare = from->spare,
        .cordoned_by = copy_text(from->cordoned ? from->cordoned_by : NULL),
        .promised_to = copy_text(from->promised_to),
        .fenced_by = copy_text(from->fenced_by),
        .uncordoned_by = copy_text(from->uncordoned_by),
        .marked_by = copy_text(from->marked_by),
        .gpus = from->gpus_allocatable,
    };
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Distinct nodes of a job: ranks of one tray name it several times. */
static void copy_rank_nodes(struct view_job *to, const struct world_job *from)
{
    to->nodes_known = from->rank_nodes != NULL && from->rank_count > 0;
    if (!to->nodes_known)
        return;
    size_t count = (size_t)from->rank_count;
    AUTO_FREE const char **sorted = xcalloc(count, sizeof *sorted);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (from->rank_nodes[i] != NULL)
            sorted[used++] = from->rank_nodes[i];
    if (used > 0)
        qsort(sorted, used, sizeof *sorted, compare_texts);
    for (size_t i = 0; i < used; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0)
            names_add(&to->nodes, sorted[i]);
    to->nodes_known = used == count;
}

static void copy_job(struct view_job *to, const struct world_job *from)
{
    *to = (struct view_job){
        .name = copy_text(from->name),
        .uid = copy_text(from->uid),
        .phase = copy_text(from->phase),
        .restarts = from->restarts,
        .restarts_max = from->restarts_max,
        .checkpoint_step = from->checkpoint_step,
        .checkpoint_time_ns = from->checkpoint_time_ns,
        .waiting_for = copy_text(from->waiting_for),
        .restart_refusal = copy_text(from->restart_refusal),
        .made_anew = copy_text(from->made_anew),
    };
    copy_rank_nodes(to, from);
    for (size_t i = 0; i < from->stuck_count; i++)
        if (from->stuck_nodes[i] != NULL)
            names_add_new(&to->stuck, from->stuck_nodes[i]);
}

static size_t count_racks(const struct world_view *view)
{
    AUTO_FREE const char **racks = xcalloc(view->node_count + 1, sizeof *racks);
    size_t used = 0, distinct = 0;
    for (size_t i = 0; i < view->node_count; i++)
        if (view->nodes[i].rack[0] != '\0')
            racks[used++] = view->nodes[i].rack;
    if (used > 0)
        qsort(racks, used, sizeof *racks, compare_texts);
    for (size_t i = 0; i < used; i++)
        distinct += i == 0 || strcmp(racks[i], racks[i - 1]) != 0 ? 1 : 0;
    return distinct;
}

void world_view_set(struct world_view *view, const struct world *world, int64_t now_ns)
{
    view->known = world->known;
    if (!world->known)
        return;
    free_nodes(view);
    free_jobs(view);
    view->received_ns = now_ns;
    view->node_count = world->node_count;
    view->nodes = xcalloc(world->node_count + 1, sizeof *view->nodes);
    for (size_t i = 0; i < world->node_count; i++)
        copy_node(&view->nodes[i], &world->nodes[i]);
    qsort(view->nodes, view->node_count, sizeof *view->nodes, compare_nodes);
    view->rack_count = count_racks(view);
    view->job_count = world->job_count;
    view->jobs = xcalloc(world->job_count + 1, sizeof *view->jobs);
    for (size_t i = 0; i < world->job_count; i++)
        copy_job(&view->jobs[i], &world->jobs[i]);
}

const struct view_node *world_view_node(const struct world_view *view, const char *name)
{
    size_t low = 0, high = view->node_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(view->nodes[middle].name, name);
        if (order == 0)
            return &view->nodes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct view_job *world_view_job(const struct world_view *view, const char *name)
{
    for (size_t i = 0; i < view->job_count; i++)
        if (strcmp(view->jobs[i].name, name) == 0)
            return &view->jobs[i];
    return NULL;
}

size_t world_view_rack_size(const struct world_view *view, const char *rack)
{
    size_t count = 0;
    for (size_t i = 0; i < view->node_count; i++)
        count += strcmp(view->nodes[i].rack, rack) == 0 ? 1 : 0;
    return count;
}
