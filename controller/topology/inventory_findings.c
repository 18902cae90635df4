/* Where sources contradict each other, or say too little. Names differ between sources, so what is
 * compared is which nodes each of them puts together. */
#include "controller/topology/inventory_state.h"

#include <stdlib.h>
#include <string.h>

enum { NAMED_MOST = 3 };

struct report {
    inventory_finding_fn *fn;
    void *context;
};

/* One node, under the name that a source gives to its rack. */
struct membership {
    const char *name;
    const struct inventory_node *answer;
};

static const struct said_name *group_of(const struct stand *stand, enum inventory_source source)
{
    const struct said *said = &stand->said[source];
    return source == INVENTORY_CLIQUE ? &said->domain : &said->rack;
}

static int by_name_rack_node(const void *left, const void *right)
{
    const struct membership *a = left;
    const struct membership *b = right;
    int names = strcmp(a->name, b->name);
    int racks = strcmp(a->answer->rack, b->answer->rack);
    return names != 0 ? names : racks != 0 ? racks : strcmp(a->answer->node, b->answer->node);
}

/* "rack 'rk-1' by file (gb-1, gb-2, gb-3 and 15 more)" */
static void add_part(struct text *text, const struct membership *part, size_t count)
{
    text_addf(text, "rack '%s' by %s (", part->answer->rack,
              inventory_source_name(part->answer->rack_source));
    for (size_t i = 0; i < count && i < NAMED_MOST; i++)
        text_addf(text, "%s%s", i > 0 ? ", " : "", part[i].answer->node);
    if (count > NAMED_MOST)
        text_addf(text, " and %zu more", count - NAMED_MOST);
    text_add(text, ")");
}

/* One name of one source: all its nodes should have one answer. */
static void judge_group(const struct report *report, enum inventory_source source,
                        const struct membership *group, size_t count)
{
    if (group[0].answer->rack == group[count - 1].answer->rack)
        return;
    AUTO_TEXT text = {0};
    text_addf(&text, "%s '%s' puts together nodes of ", inventory_source_name(source),
              group[0].name);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && group[end].answer->rack == group[first].answer->rack;)
            end++;
        text_add(&text, first == 0 ? "" : end == count ? " and " : ", ");
        add_part(&text, &group[first], end - first);
    }
    report->fn(report->context, "sources-disagree", text.bytes);
}

static void judge_source(const struct inventory *inventory, const struct report *report,
                         enum inventory_source source)
{
    AUTO_FREE struct membership *all = xcalloc(inventory->stand_count + 1, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < inventory->stand_count; i++) {
        const struct stand *stand = inventory->stands[i];
        const struct said_name *name = group_of(stand, source);
        if (name->value != NULL && name->silent_ns == 0 && stand->answer.rack != NULL)
            all[count++] = (struct membership){name->value, &stand->answer};
    }
    qsort(all, count, sizeof *all, by_name_rack_node);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && all[end].name == all[first].name;)
            end++;
        judge_group(report, source, &all[first], end - first);
    }
}

/* ---- racks ---- */

static int by_rack_tray_node(const void *left, const void *right)
{
    const struct inventory_node *a = *(const struct inventory_node *const *)left;
    const struct inventory_node *b = *(const struct inventory_node *const *)right;
    int racks = strcmp(a->rack, b->rack);
    if (racks != 0)
        return racks;
    return a->tray != b->tray ? (a->tray < b->tray ? -1 : 1) : strcmp(a->node, b->node);
}

/* Two racks that carry one clique id look like one that is too large. */
static void judge_size(const struct report *report, const struct inventory_node **rack,
                       size_t count)
{
    size_t by_clique = 0;
    for (size_t i = 0; i < count; i++)
        by_clique += rack[i]->rack_source == INVENTORY_CLIQUE;
    if (by_clique != count || count <= INVENTORY_NVL72_TRAYS)
        return;
    AUTO_TEXT text = {0};
    text_addf(&text,
              "rack '%s' is known by its clique alone and would hold %zu trays, more than %d: two "
              "racks may carry one clique id; name the racks in the topology file",
              rack[0]->rack, count, INVENTORY_NVL72_TRAYS);
    report->fn(report->context, "rack-too-large", text.bytes);
}

static void judge_trays(const struct report *report, const struct inventory_node **rack,
                        size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (rack[i]->tray == INVENTORY_UNKNOWN || rack[i]->tray != rack[i - 1]->tray)
            continue;
        AUTO_TEXT text = {0};
        text_addf(&text, "rack '%s': '%s' and '%s' are both said to be tray %d", rack[i]->rack,
                  rack[i - 1]->node, rack[i]->node, rack[i]->tray);
        report->fn(report->context, "tray-twice", text.bytes);
    }
}

static void judge_racks(const struct inventory *inventory, const struct report *report)
{
    AUTO_FREE const struct inventory_node **nodes = xcalloc(inventory->stand_count + 1,
                                                            sizeof(struct inventory_node *));
    size_t count = 0;
    for (size_t i = 0; i < inventory->stand_count; i++)
        if (inventory->stands[i]->answer.rack != NULL)
            nodes[count++] = &inventory->stands[i]->answer;
    qsort(nodes, count, sizeof(struct inventory_node *), by_rack_tray_node);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && nodes[end]->rack == nodes[first]->rack;)
            end++;
        judge_size(report, &nodes[first], end - first);
        judge_trays(report, &nodes[first], end - first);
    }
}

/* ---- what is missing ---- */

static void tell_nodes(const struct inventory *inventory, const struct report *report,
                       bool (*is_meant)(const struct inventory_node *answer), const char *rule,
                       const char *what)
{
    AUTO_TEXT text = {0};
    size_t count = 0;
    for (size_t i = 0; i < inventory->stand_count; i++) {
        const struct inventory_node *answer = &inventory->stands[i]->answer;
        if (!is_meant(answer))
            continue;
        if (count < NAMED_MOST)
            text_addf(&text, "%s%s", count > 0 ? ", " : "", answer->node);
        count++;
    }
    if (count == 0)
        return;
    if (count > NAMED_MOST)
        text_addf(&text, " and %zu more", count - NAMED_MOST);
    text_addf(&text, ": %s", what);
    report->fn(report->context, rule, text.bytes);
}

static bool has_no_rack(const struct inventory_node *answer)
{
    return answer->rack == NULL;
}

static bool is_last_word(const struct inventory_node *answer)
{
    return answer->silent_since_ns > 0;
}

void inventory_findings(const struct inventory *inventory, inventory_finding_fn *fn, void *context)
{
    const struct report report = {fn, context};
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++)
        judge_source(inventory, &report, (enum inventory_source)s);
    judge_racks(inventory, &report);
    tell_nodes(inventory, &report, has_no_rack, "rack-unknown",
               "no source names the rack; a fault of it would be taken for one of a single tray");
    tell_nodes(inventory, &report, is_last_word, "last-word",
               "no source names the rack at present; the last word holds");
}
