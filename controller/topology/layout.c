/* Preparation of a request, and the choice among candidates. */
#include "controller/topology/layout.h"

#include "controller/topology/layout_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *layout_rule_name(enum layout_rule rule)
{
    static const char *const names[LAYOUT_RULE_COUNT] = {[LAYOUT_TENSOR] = "tensor_groups",
                                                         [LAYOUT_EXPERT] = "expert_sets",
                                                         [LAYOUT_REPLICA] = "replicas",
                                                         [LAYOUT_RAILS] = "rails"};
    assert(rule < LAYOUT_RULE_COUNT);
    return names[rule];
}

/* ---- the plan ---- */

/* As many as the job uses on a tray today. */
static int32_t usual_gpus(const struct job *job)
{
    int32_t most = 0;
    AUTO_FREE int32_t *counts = xcalloc((size_t)job->tray_count + 1, sizeof *counts);
    for (int32_t r = 0; r < job->world_size; r++) {
        int32_t tray = job->ranks[r].tray;
        if (tray == JOB_NONE)
            continue;
        counts[tray]++;
        if (counts[tray] > most)
            most = counts[tray];
        if (job->ranks[r].gpu >= most)
            most = job->ranks[r].gpu + 1;
    }
    if (most > LAYOUT_GPUS_MOST)
        most = LAYOUT_GPUS_MOST;
    return most > 0 ? most : LAYOUT_GPUS_DEFAULT;
}

struct named_domain {
    const char *name;
    int32_t node;
};

static int by_name(const void *left, const void *right)
{
    const struct named_domain *a = left;
    const struct named_domain *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->node < b->node ? -1 : a->node > b->node;
}

/* Gives each node the first node of its domain, which stands for it. */
static void find_first_nodes(const struct layout_request *request, int32_t *first_of)
{
    AUTO_FREE struct named_domain *named = xcalloc(request->node_count + 1, sizeof *named);
    size_t count = 0;
    for (size_t n = 0; n < request->node_count; n++) {
        first_of[n] = (int32_t)n;
        if (request->nodes[n].nvlink_domain != NULL)
            named[count++] = (struct named_domain){request->nodes[n].nvlink_domain, (int32_t)n};
    }
    qsort(named, count, sizeof *named, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(named[i].name, named[i - 1].name) == 0)
            first_of[named[i].node] = first_of[named[i - 1].node];
}

static void number_domains(struct plan *plan)
{
    const struct layout_request *request = plan->request;
    size_t known = 0;
    find_first_nodes(request, plan->domains);
    for (size_t n = 0; n < request->node_count; n++)
        known += request->nodes[n].nvlink_domain != NULL;
    plan->domains_unknown = known == 0;
    for (size_t n = 0; n < request->node_count; n++) {
        bool is_first = plan->domains_unknown ? n == 0 : plan->domains[n] == (int32_t)n;
        if (is_first)
            plan->domains[n] = plan->domain_count++;
        else
            plan->domains[n] = plan->domains_unknown ? 0 : plan->domains[plan->domains[n]];
        plan->room[plan->domains[n]] += plan->gpus[n];
    }
}

/* Where ep cuts dp into runs of replicas, those share experts; else each replica has its own. */
static bool is_ep_inside_dp(const struct job *job)
{
    int64_t without_ep = 1;
    for (int d = 0; d < DIMENSION_COUNT; d++)
        without_ep *= d == DIMENSION_EP ? 1 : job->size[d];
    return without_ep == job->world_size;
}

static void order_ranks(struct plan *plan)
{
    const struct job *job = plan->job;
    int32_t tp = job->size[DIMENSION_TP], cp = job->size[DIMENSION_CP];
    int32_t ep = job->size[DIMENSION_EP], pp = job->size[DIMENSION_PP];
    bool is_inside = is_ep_inside_dp(job);
    plan->is_ep_inside_dp = is_inside && ep > 1;
    plan->tensor_size = tp;
    plan->set_size = tp * cp * ep;
    plan->run_size = plan->set_size * pp;
    for (int32_t r = 0; r < job->world_size; r++) {
        struct job_place place = job_place_of(job, r);
        int32_t run = is_inside ? place.replica / ep : place.replica;
        int32_t set = run * pp + place.stage;
        int32_t position = ((set * ep + place.expert) * cp + place.context) * tp + place.tensor;
        plan->rank_at[position] = r;
        plan->position_of[r] = position;
    }
}

void plan_open(struct plan *plan, const struct layout_request *request)
{
    size_t nodes = request->node_count + 1;
    size_t world = (size_t)request->job->world_size;
    *plan = (struct plan){.request = request, .job = request->job};
    plan->gpus_per_node = request->gpus_per_node > 0 ? request->gpus_per_node
                                                     : usual_gpus(request->job);
    plan->gpus = xcalloc(nodes, sizeof *plan->gpus);
    plan->domains = xcalloc(nodes, sizeof *plan->domains);
    plan->room = xcalloc(nodes, sizeof *plan->room);
    plan->rank_at = xcalloc(world, sizeof *plan->rank_at);
    plan->position_of = xcalloc(world, sizeof *plan->position_of);
    for (size_t n = 0; n < request->node_count; n++) {
        int32_t gpus = request->nodes[n].gpus > 0 ? request->nodes[n].gpus : plan->gpus_per_node;
        plan->gpus[n] = gpus < plan->gpus_per_node ? gpus : plan->gpus_per_node;
        if (plan->gpus[n] > plan->widest_tray)
            plan->widest_tray = plan->gpus[n];
    }
    number_domains(plan);
    for (int32_t d = 0; d < plan->domain_count; d++)
        if (plan->room[d] > plan->widest_domain)
            plan->widest_domain = plan->room[d];
    order_ranks(plan);
}

void plan_close(struct plan *plan)
{
    xfree(plan->gpus);
    xfree(plan->domains);
    xfree(plan->room);
    xfree(plan->rank_at);
    xfree(plan->position_of);
}

bool is_host_name(const char *name)
{
    if (name[0] == '\0')
        return false;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
        if (*c <= ' ' || *c == 0x7f || *c == '=')
            return false;
    return true;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static enum status check_nodes(const struct layout_request *request, struct error *reterr)
{
    AUTO_FREE const char **names = xcalloc(request->node_count + 1, sizeof *names);
    for (size_t n = 0; n < request->node_count; n++)
        names[n] = request->nodes[n].name;
    qsort(names, request->node_count, sizeof *names, by_text);
    for (size_t n = 0; n < request->node_count; n++)
        if (!is_host_name(names[n]))
            return error_set(reterr, ERR_INVALID,
                             "node '%s': this name cannot stand in a list of hosts", names[n]);
    for (size_t n = 1; n < request->node_count; n++)
        if (strcmp(names[n], names[n - 1]) == 0)
            return error_set(reterr, ERR_INVALID, "node '%s' is named twice", names[n]);
    if (request->gpus_per_node > LAYOUT_GPUS_MOST)
        return error_set(reterr, ERR_INVALID, "%d GPUs a node are more than %d",
                         request->gpus_per_node, LAYOUT_GPUS_MOST);
    return OK;
}

static enum status check_room(const struct plan *plan, struct error *reterr)
{
    int64_t room = 0;
    int32_t world = plan->job->world_size;
    for (int32_t d = 0; d < plan->domain_count; d++)
        room += plan->room[d];
    if (room >= world)
        return OK;
    int64_t missing = world - room;
    return error_set(reterr, ERR_REFUSED,
                     "%d ranks need %d GPUs, the %zu nodes have %lld; GPUs missing: %lld, trays "
                     "of %d missing: %lld",
                     world, world, plan->request->node_count, (long long)room, (long long)missing,
                     plan->gpus_per_node,
                     (long long)((missing + plan->gpus_per_node - 1) / plan->gpus_per_node));
}

/* ---- the choice ---- */

/* Left to right, the first that differs decides. */
static bool is_better(const int32_t *a, const int32_t *b)
{
    for (int rule = 0; rule < LAYOUT_RULE_COUNT; rule++)
        if (a[rule] != b[rule])
            return a[rule] < b[rule];
    return false;
}

static bool is_by_counting(const struct plan *plan, const struct layout_place *places)
{
    AUTO_FREE bool *used = xcalloc(plan->request->node_count + 1, sizeof *used);
    for (int32_t r = 0; r < plan->job->world_size; r++) {
        int32_t first = r - r % plan->gpus_per_node;
        if (places[r].gpu != r % plan->gpus_per_node || places[r].node != places[first].node)
            return false;
        if (r == first && used[places[r].node])
            return false;
        used[places[r].node] = true;
    }
    return true;
}

/* Launchers number the tasks of a node by rank and give them its GPUs in that order. */
static bool is_in_order(const struct plan *plan, const struct layout_place *places)
{
    AUTO_FREE int32_t *next = xcalloc(plan->request->node_count + 1, sizeof *next);
    for (int32_t r = 0; r < plan->job->world_size; r++)
        if (places[r].gpu != next[places[r].node]++)
            return false;
    return true;
}

static void put_in_order(const struct plan *plan, struct layout_place *places)
{
    AUTO_FREE int16_t *next = xcalloc(plan->request->node_count + 1, sizeof *next);
    for (int32_t r = 0; r < plan->job->world_size; r++)
        places[r].gpu = next[places[r].node]++;
}

struct choice {
    struct layout_place *best, *next; /* world_size entries each */
    int32_t broken[LAYOUT_RULE_COUNT];
    bool is_made;
};

static void consider(const struct plan *plan, struct choice *choice)
{
    int32_t broken[LAYOUT_RULE_COUNT];
    if (plan->request->by_counting && !is_by_counting(plan, choice->next))
        return;
    score_places(plan, choice->next, broken, NULL);
    if (choice->is_made && !is_better(broken, choice->broken))
        return;
    struct layout_place *was = choice->best;
    choice->best = choice->next;
    choice->next = was;
    memcpy(choice->broken, broken, sizeof broken);
    choice->is_made = true;
}

static void find_rails(const struct plan *plan, struct layout_place *places)
{
    const struct job *job = plan->job;
    AUTO_FREE int16_t *rails = xcalloc((size_t)plan->gpus_per_node, sizeof *rails);
    for (int32_t g = 0; g < plan->gpus_per_node; g++)
        rails[g] = (int16_t)g;
    for (int32_t r = job->world_size - 1; r >= 0; r--)
        if (job->ranks[r].gpu >= 0 && job->ranks[r].gpu < plan->gpus_per_node &&
            job->ranks[r].rail != JOB_NONE)
            rails[job->ranks[r].gpu] = job->ranks[r].rail;
    for (int32_t r = 0; r < job->world_size; r++)
        places[r].rail = rails[places[r].gpu];
}

static struct layout *layout_new(const struct plan *plan, const struct choice *choice)
{
    const struct layout_request *request = plan->request;
    struct layout *layout = xcalloc(1, sizeof *layout);
    size_t world = (size_t)plan->job->world_size;
    layout->job = xstrdup(plan->job->name);
    layout->nodes = xcalloc(request->node_count + 1, sizeof *layout->nodes);
    layout->domains = xcalloc(request->node_count + 1, sizeof *layout->domains);
    layout->node_count = request->node_count;
    for (size_t n = 0; n < request->node_count; n++) {
        const char *domain = request->nodes[n].nvlink_domain;
        layout->nodes[n] = xstrdup(request->nodes[n].name);
        layout->domains[n] = domain != NULL ? xstrdup(domain) : NULL;
    }
    layout->ranks = xcalloc(world, sizeof *layout->ranks);
    memcpy(layout->ranks, choice->best, world * sizeof *layout->ranks);
    find_rails(plan, layout->ranks);
    layout->world_size = plan->job->world_size;
    layout->gpus_per_node = plan->gpus_per_node;
    layout->domains_unknown = plan->domains_unknown;
    layout->is_by_counting = is_by_counting(plan, layout->ranks);
    layout->is_in_order = is_in_order(plan, layout->ranks);
    for (size_t r = 0; r < world; r++)
        layout->moved += layout->ranks[r].node != request->wanted[r];
    score_places(plan, layout->ranks, layout->broken, &layout->violations);
    return layout;
}

static enum status choose(const struct plan *plan, struct choice *choice,
                          struct layout **ret_layout, struct error *reterr)
{
    if (place_as_wanted(plan, choice->next))
        consider(plan, choice);
    if (place_by_counting(plan, choice->next))
        consider(plan, choice);
    place_by_groups(plan, choice->next);
    put_in_order(plan, choice->next);
    consider(plan, choice);
    if (!choice->is_made)
        return error_set(reterr, ERR_REFUSED,
                         "a list of hosts needs whole trays of %d GPUs, one after the other; too "
                         "few of the nodes are whole: use another form",
                         plan->gpus_per_node);
    *ret_layout = layout_new(plan, choice);
    return OK;
}

enum status layout_plan(const struct layout_request *request, struct layout **ret_layout,
                        struct error *reterr)
{
    struct plan plan;
    size_t world = (size_t)request->job->world_size;
    TRY(check_nodes(request, reterr));
    plan_open(&plan, request);
    struct choice choice = {.best = xcalloc(world, sizeof *choice.best),
                            .next = xcalloc(world, sizeof *choice.next)};
    enum status status = check_room(&plan, reterr);
    if (status == OK)
        status = choose(&plan, &choice, ret_layout, reterr);
    xfree(choice.best);
    xfree(choice.next);
    plan_close(&plan);
    return status;
}

void layout_free(struct layout *layout)
{
    if (layout == NULL)
        return;
    for (size_t n = 0; n < layout->node_count; n++) {
        xfree(layout->nodes[n]);
        xfree(layout->domains[n]);
    }
    xfree(layout->nodes);
    xfree(layout->domains);
    xfree(layout->ranks);
    xfree(layout->job);
    text_done(&layout->violations);
    xfree(layout);
}

/* ---- which nodes ---- */

static const char *domain_in_job(const struct job *job, const char *node)
{
    int32_t tray = job_find_tray(job, node);
    int32_t rack = tray != JOB_NONE ? job->trays[tray].rack : JOB_NONE;
    return rack != JOB_NONE ? job->racks[rack].nvlink_domain : NULL;
}

/* The node that stands in for one of today's; NULL when it leaves without a replacement. */
static const char *replacement(const struct layout_swap *swap, const char *node)
{
    for (size_t i = 0; i < swap->leaving_count; i++)
        if (strcmp(swap->leaving[i], node) == 0)
            return i < swap->spare_count ? swap->spares[i] : NULL;
    return node;
}

struct layout_nodes layout_nodes_after(const struct job *job, const struct layout_swap *swap)
{
    struct layout_nodes nodes = {.items = xcalloc((size_t)job->tray_count + 1, sizeof *nodes.items),
                                 .wanted = xcalloc((size_t)job->world_size, sizeof *nodes.wanted)};
    AUTO_FREE int32_t *place_of = xcalloc((size_t)job->tray_count + 1, sizeof *place_of);
    for (int32_t t = 0; t < job->tray_count; t++)
        place_of[t] = -2; /* not met yet */
    for (int32_t r = 0; r < job->world_size; r++) {
        int32_t tray = job->ranks[r].tray;
        nodes.wanted[r] = JOB_NONE;
        if (tray == JOB_NONE)
            continue;
        if (place_of[tray] == -2) {
            const char *name = replacement(swap, job->trays[tray].node);
            place_of[tray] = name != NULL ? (int32_t)nodes.count : JOB_NONE;
            if (name != NULL)
                nodes.items[nodes.count++] = (struct layout_node){
                    .name = name, .nvlink_domain = domain_in_job(job, name)};
        }
        nodes.wanted[r] = place_of[tray];
    }
    return nodes;
}

struct layout_nodes layout_nodes_named(const struct job *job, const char *const *names,
                                       size_t count)
{
    struct layout_nodes nodes = {.items = xcalloc(count + 1, sizeof *nodes.items),
                                 .count = count,
                                 .wanted = xcalloc((size_t)job->world_size, sizeof *nodes.wanted)};
    AUTO_FREE int32_t *place_of = xcalloc((size_t)job->tray_count + 1, sizeof *place_of);
    for (int32_t t = 0; t < job->tray_count; t++)
        place_of[t] = JOB_NONE;
    for (size_t n = 0; n < count; n++) {
        int32_t tray = job_find_tray(job, names[n]);
        nodes.items[n] = (struct layout_node){.name = names[n],
                                              .nvlink_domain = domain_in_job(job, names[n])};
        if (tray != JOB_NONE)
            place_of[tray] = (int32_t)n;
    }
    for (int32_t r = 0; r < job->world_size; r++)
        nodes.wanted[r] = job->ranks[r].tray != JOB_NONE ? place_of[job->ranks[r].tray] : JOB_NONE;
    return nodes;
}
