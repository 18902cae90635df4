/* The job's grid arithmetic and its name tables. */
#include "detectors/job.h"

#include <assert.h>
#include <string.h>

struct job *job_new(const char *name, int32_t world_size)
{
    assert(world_size > 0 && world_size <= JOB_RANKS_MAX);
    struct job *job = xcalloc(1, sizeof *job);
    job->name = xstrdup(name);
    job->world_size = world_size;
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        job->size[d] = 1;
        job->order[d] = (enum parallel_dimension)d;
    }
    job->size[DIMENSION_DP] = world_size;
    job->checkpoint_step = JOB_NONE;
    job->ranks = xcalloc((size_t)world_size, sizeof *job->ranks);
    for (int32_t r = 0; r < world_size; r++)
        job->ranks[r] = (struct job_rank){.tray = JOB_NONE, .gpu = JOB_NONE, .rail = JOB_NONE};
    return job;
}

void job_free(struct job *job)
{
    if (job == NULL)
        return;
    for (int32_t i = 0; i < job->rack_count; i++) {
        xfree(job->racks[i].name);
        xfree(job->racks[i].nvlink_domain);
    }
    for (int32_t i = 0; i < job->tray_count; i++)
        xfree(job->trays[i].node);
    xfree(job->racks);
    xfree(job->trays);
    xfree(job->tray_slots);
    xfree(job->ranks);
    xfree(job->workload_json);
    xfree(job->name);
    xfree(job);
}

struct job *job_copy(const struct job *job)
{
    struct job *copy = job_new(job->name, job->world_size);
    memcpy(copy->size, job->size, sizeof copy->size);
    memcpy(copy->order, job->order, sizeof copy->order);
    copy->compute = job->compute;
    copy->checkpoint_step = job->checkpoint_step;
    copy->checkpoint_time_ns = job->checkpoint_time_ns;
    copy->workload_json = job->workload_json != NULL ? xstrdup(job->workload_json) : NULL;
    for (int32_t i = 0; i < job->rack_count; i++)
        job_intern_rack(copy, job->racks[i].name, job->racks[i].nvlink_domain);
    for (int32_t i = 0; i < job->tray_count; i++)
        job_intern_tray(copy, job->trays[i].node, job->trays[i].rack);
    memcpy(copy->ranks, job->ranks, (size_t)job->world_size * sizeof *copy->ranks);
    return copy;
}

int32_t job_find_rack(const struct job *job, const char *name)
{
    for (int32_t i = 0; i < job->rack_count; i++)
        if (strcmp(job->racks[i].name, name) == 0)
            return i;
    return JOB_NONE;
}

/* FNV-1a. */
static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
        hash = (hash ^ *c) * 16777619u;
    return hash;
}

/* The slot that holds the node, or the free one where it belongs. Slots are at most half full. */
static int32_t *slot_of(const struct job *job, const char *node)
{
    uint32_t mask = (uint32_t)job->tray_slot_count - 1;
    uint32_t at = hash_of(node) & mask;
    while (job->tray_slots[at] != JOB_NONE &&
           strcmp(job->trays[job->tray_slots[at]].node, node) != 0)
        at = (at + 1) & mask;
    return &job->tray_slots[at];
}

enum { TRAY_SLOTS_LEAST = 16 };

static void grow_slots(struct job *job)
{
    job->tray_slot_count = job->tray_slot_count > 0 ? 2 * job->tray_slot_count : TRAY_SLOTS_LEAST;
    xfree(job->tray_slots);
    job->tray_slots = xcalloc((size_t)job->tray_slot_count, sizeof *job->tray_slots);
    for (int32_t i = 0; i < job->tray_slot_count; i++)
        job->tray_slots[i] = JOB_NONE;
    for (int32_t t = 0; t < job->tray_count; t++)
        *slot_of(job, job->trays[t].node) = t;
}

int32_t job_find_tray(const struct job *job, const char *node)
{
    return job->tray_slot_count > 0 ? *slot_of(job, node) : JOB_NONE;
}

static bool is_power_of_two_or_zero(int32_t count)
{
    return (count & (count - 1)) == 0;
}

int32_t job_intern_rack(struct job *job, const char *name, const char *nvlink_domain)
{
    int32_t found = job_find_rack(job, name);
    if (found != JOB_NONE)
        return found;
    if (is_power_of_two_or_zero(job->rack_count))
        job->racks = xrealloc(job->racks, job->rack_count > 0 ? 2 * (size_t)job->rack_count : 1,
                              sizeof *job->racks);
    job->racks[job->rack_count] = (struct job_rack){
        .name = xstrdup(name),
        .nvlink_domain = xstrdup(nvlink_domain != NULL ? nvlink_domain : name)};
    return job->rack_count++;
}

int32_t job_intern_tray(struct job *job, const char *node, int32_t rack)
{
    assert(rack >= JOB_NONE && rack < job->rack_count);
    int32_t found = job_find_tray(job, node);
    if (found != JOB_NONE)
        return found;
    if (is_power_of_two_or_zero(job->tray_count))
        job->trays = xrealloc(job->trays, job->tray_count > 0 ? 2 * (size_t)job->tray_count : 1,
                              sizeof *job->trays);
    if (2 * (job->tray_count + 1) > job->tray_slot_count)
        grow_slots(job);
    job->trays[job->tray_count] = (struct job_tray){.node = xstrdup(node), .rack = rack};
    *slot_of(job, node) = job->tray_count;
    return job->tray_count++;
}

/* Index of this rank's group among ranks that differ only in the dimensions of `left_out`: mixed
 * radix over the dimensions that remain, slowest last, which is the order in which groups are first
 * met. */
static int32_t group_index(const struct job *job, const int32_t *index, unsigned left_out)
{
    int32_t group = 0;
    for (int position = DIMENSION_COUNT - 1; position >= 0; position--) {
        enum parallel_dimension dimension = job->order[position];
        if (!(left_out & (1u << dimension)))
            group = group * job->size[dimension] + index[dimension];
    }
    return group;
}

/* When the sizes of all five dimensions multiply to the world, ep is a dimension like the others;
 * when they do without ep, ep cuts dp into runs of ep consecutive replicas. */
static bool is_ep_inside_dp(const struct job *job)
{
    int64_t without_ep = 1;
    for (int d = 0; d < DIMENSION_COUNT; d++)
        without_ep *= d == DIMENSION_EP ? 1 : job->size[d];
    return without_ep == job->world_size;
}

struct job_place job_place_of(const struct job *job, int32_t rank)
{
    assert(rank >= 0 && rank < job->world_size);
    int32_t index[DIMENSION_COUNT] = {0};
    int32_t rest = rank;
    bool ep_inside_dp = is_ep_inside_dp(job);
    for (int position = 0; position < DIMENSION_COUNT; position++) {
        enum parallel_dimension dimension = job->order[position];
        if (dimension == DIMENSION_EP && ep_inside_dp)
            continue;
        index[dimension] = rest % job->size[dimension];
        rest /= job->size[dimension];
    }
    struct job_place place = {.stage = index[DIMENSION_PP],
                              .replica = index[DIMENSION_DP],
                              .tensor = index[DIMENSION_TP],
                              .expert = index[DIMENSION_EP],
                              .context = index[DIMENSION_CP]};
    unsigned ep_bit = ep_inside_dp ? 1u << DIMENSION_EP : 0;
    place.tensor_group = group_index(job, index, ep_bit | 1u << DIMENSION_TP);
    place.data_group = group_index(job, index, ep_bit | 1u << DIMENSION_DP);
    if (ep_inside_dp) {
        int32_t ep = job->size[DIMENSION_EP];
        place.expert = index[DIMENSION_DP] % ep;
        /* The run of replicas takes dp's place in the mixed radix. */
        struct job runs = *job;
        runs.size[DIMENSION_DP] = (job->size[DIMENSION_DP] + ep - 1) / ep;
        index[DIMENSION_DP] /= ep;
        place.expert_group = group_index(&runs, index, ep_bit);
    } else {
        place.expert_group = group_index(job, index, 1u << DIMENSION_EP);
    }
    return place;
}
