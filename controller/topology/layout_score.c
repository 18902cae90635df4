/* What a placement breaks, counted and said. */
#include "controller/topology/layout_state.h"

#include <stdlib.h>

enum { RANKS_NAMED = 4 };

struct judge {
    const struct plan *plan;
    const struct layout_place *places;
    struct text *sentences; /* or NULL */
    int32_t *broken;
    int32_t *counts;  /* scratch: of each node or domain */
    int32_t *touched; /* which of them are not 0 */
    int32_t touched_count;
};

static const char *domain_name(const struct plan *plan, int32_t domain)
{
    for (size_t n = 0; n < plan->request->node_count; n++)
        if (plan->domains[n] == domain)
            return plan->request->nodes[n].nvlink_domain != NULL
                       ? plan->request->nodes[n].nvlink_domain
                       : plan->request->nodes[n].name;
    return "?";
}

/* Counts a group's ranks by node or by domain. */
static void count_span(struct judge *judge, int32_t first, int32_t size, bool by_domain)
{
    judge->touched_count = 0;
    for (int32_t p = first; p < first + size; p++) {
        int32_t node = judge->places[judge->plan->rank_at[p]].node;
        int32_t key = by_domain ? judge->plan->domains[node] : node;
        if (judge->counts[key]++ == 0)
            judge->touched[judge->touched_count++] = key;
    }
}

static void clear_span(struct judge *judge)
{
    for (int32_t i = 0; i < judge->touched_count; i++)
        judge->counts[judge->touched[i]] = 0;
}

static void add_ranks(struct text *text, const struct plan *plan, int32_t first, int32_t size)
{
    text_add(text, "ranks ");
    for (int32_t i = 0; i < size && i < RANKS_NAMED; i++)
        text_addf(text, "%s%d", i > 0 ? ", " : "", plan->rank_at[first + i]);
    if (size > RANKS_NAMED)
        text_addf(text, " and %d more", size - RANKS_NAMED);
}

static void add_share(struct text *text, const struct judge *judge, int32_t key, bool by_domain)
{
    const struct plan *plan = judge->plan;
    text_addf(text, "%d on %s", judge->counts[key],
              by_domain ? domain_name(plan, key) : plan->request->nodes[key].name);
}

/* "tensor group tp:3 (ranks 12, 13, 14, 15) is on 2 trays: 3 on gb-1, 1 on gb-2" */
static void say_span(struct judge *judge, const char *what, int32_t number, int32_t first,
                     int32_t size, bool by_domain)
{
    struct text *text = judge->sentences;
    text_addf(text, "%s%d (", what, number);
    add_ranks(text, judge->plan, first, size);
    text_addf(text, ") is on %d %s: ", judge->touched_count,
              by_domain ? "NVLink domains" : "trays");
    for (int32_t i = 0; i < judge->touched_count && i < RANKS_NAMED; i++) {
        text_add(text, i > 0 ? ", " : "");
        add_share(text, judge, judge->touched[i], by_domain);
    }
    int32_t largest = 0;
    for (int32_t i = 0; i < judge->touched_count; i++)
        if (judge->counts[judge->touched[i]] > largest)
            largest = judge->counts[judge->touched[i]];
    text_addf(text, "; GPUs missing in one %s: %d\n", by_domain ? "domain" : "tray",
              size - largest);
}

static void judge_groups(struct judge *judge, enum layout_rule rule, const char *what, int32_t size,
                         bool by_domain)
{
    int32_t count = judge->plan->job->world_size / size;
    for (int32_t g = 0; g < count; g++) {
        count_span(judge, g * size, size, by_domain);
        bool is_split = judge->touched_count > 1;
        if (is_split && judge->sentences != NULL && judge->broken[rule] < LAYOUT_VIOLATIONS_TOLD)
            say_span(judge, what, g, g * size, size, by_domain);
        judge->broken[rule] += is_split;
        clear_span(judge);
    }
}

/* ---- rails ---- */

/* A tray of a data group, and the GPUs of it that the group uses. */
struct member {
    int32_t group, node, domain;
    uint64_t gpus;
};

static int by_group_and_node(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* One entry a tray of each group. */
static int32_t join_trays(struct member *members, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        bool same = kept > 0 && members[kept - 1].group == members[i].group &&
                    members[kept - 1].node == members[i].node;
        if (same)
            members[kept - 1].gpus |= members[i].gpus;
        else
            members[kept++] = members[i];
    }
    return kept;
}

/* The tray that does not use what the group uses on its others; NULL when the rails meet. A group
 * inside one domain uses NVLink; one tray may be used in part, as the last one. */
static const struct member *odd_tray(const struct member *trays, int32_t count)
{
    uint64_t used = 0;
    const struct member *odd = NULL;
    int32_t partial = 0;
    bool spans = false;
    for (int32_t i = 0; i < count; i++) {
        used |= trays[i].gpus;
        spans |= trays[i].domain != trays[0].domain;
    }
    for (int32_t i = 0; i < count; i++)
        if (trays[i].gpus != used) {
            partial++;
            odd = &trays[i];
        }
    bool is_last_in_part = partial == 1 && count > 2;
    return spans && partial > 0 && !is_last_in_part ? odd : NULL;
}

static void say_rails(const struct judge *judge, const struct member *odd)
{
    text_addf(judge->sentences,
              "data group %d: its peers do not meet on one rail; on %s it has GPU", odd->group,
              judge->plan->request->nodes[odd->node].name);
    for (int g = 0; g < 64; g++)
        if (odd->gpus >> g & 1u)
            text_addf(judge->sentences, " %d", g);
    text_add(judge->sentences, ", elsewhere others\n");
}

static void judge_rails(struct judge *judge)
{
    const struct plan *plan = judge->plan;
    int32_t world = plan->job->world_size;
    AUTO_FREE struct member *members = xcalloc((size_t)world, sizeof *members);
    for (int32_t r = 0; r < world; r++) {
        const struct layout_place *place = &judge->places[r];
        members[r] = (struct member){.group = job_place_of(plan->job, r).data_group,
                                     .node = place->node,
                                     .domain = plan->domains_unknown ? place->node
                                                                     : plan->domains[place->node],
                                     .gpus = UINT64_C(1) << (place->gpu & 63)};
    }
    qsort(members, (size_t)world, sizeof *members, by_group_and_node);
    int32_t count = join_trays(members, world);
    for (int32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && members[end].group == members[first].group;)
            end++;
        const struct member *odd = odd_tray(&members[first], end - first);
        if (odd != NULL && judge->sentences != NULL &&
            judge->broken[LAYOUT_RAILS] < LAYOUT_VIOLATIONS_TOLD)
            say_rails(judge, odd);
        judge->broken[LAYOUT_RAILS] += odd != NULL;
    }
}

void score_places(const struct plan *plan, const struct layout_place *places,
                  int32_t ret_broken[LAYOUT_RULE_COUNT], struct text *sentences)
{
    size_t scratch = plan->request->node_count + 1;
    struct judge judge = {.plan = plan,
                          .places = places,
                          .sentences = sentences,
                          .broken = ret_broken,
                          .counts = xcalloc(scratch, sizeof *judge.counts),
                          .touched = xcalloc(scratch, sizeof *judge.touched)};
    for (int rule = 0; rule < LAYOUT_RULE_COUNT; rule++)
        ret_broken[rule] = 0;
    bool is_narrow = plan->tensor_size <= plan->widest_tray;
    bool domains_count = !plan->domains_unknown;
    int32_t whole_domain = LAYOUT_DOMAIN_TRAYS * plan->gpus_per_node;
    int32_t largest = plan->widest_domain > whole_domain ? plan->widest_domain : whole_domain;
    if (is_narrow || domains_count)
        judge_groups(&judge, LAYOUT_TENSOR, "tensor group tp:", plan->tensor_size, !is_narrow);
    if (domains_count && plan->set_size > plan->tensor_size && plan->set_size <= largest)
        judge_groups(&judge, LAYOUT_EXPERT, "expert set ", plan->set_size, true);
    if (domains_count && plan->run_size > plan->set_size && plan->run_size <= largest)
        judge_groups(&judge, LAYOUT_REPLICA,
                     plan->is_ep_inside_dp ? "run of replicas " : "replica ", plan->run_size, true);
    judge_rails(&judge);
    xfree(judge.counts);
    xfree(judge.touched);
}
