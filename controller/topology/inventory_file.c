/* The topology file: checked as a whole before any of it counts. */
#include "controller/topology/inventory_state.h"

#include <string.h>

static bool is_text(const struct tree_node *node)
{
    return node != NULL && node->kind == TREE_SCALAR && node->scalar[0] != '\0';
}

static void complain(struct findings *findings, const struct tree_node *at, const char *message)
{
    findings_add(findings, true, "topology", at->line, at->column, "%s", message);
}

static int32_t read_number(const struct tree_node *tray, const char *key, struct findings *findings)
{
    const struct tree_node *member = tree_get(tray, key);
    int64_t value;
    if (member == NULL)
        return INVENTORY_UNKNOWN;
    if (member->kind == TREE_SCALAR && text_parse_int(view_of(member->scalar), &value) &&
        value >= 0 && value < 1024)
        return (int32_t)value;
    findings_add(findings, true, "topology", member->line, member->column,
                 "%s must be a whole number from 0 to 1023", key);
    return INVENTORY_UNKNOWN;
}

static void add_tray(struct inventory *listed, const struct tree_node *tray,
                     const struct inventory_observation *rack, struct findings *findings)
{
    const struct tree_node *node = tray->kind == TREE_MAPPING ? tree_get(tray, "node") : tray;
    struct inventory_observation item = *rack;
    struct inventory_node other;
    if (!is_text(node)) {
        complain(findings, tray, "a tray is a node's name, or a mapping with 'node'");
        return;
    }
    item.node = node->scalar;
    if (tray->kind == TREE_MAPPING) {
        item.tray = read_number(tray, "tray", findings);
        item.rails = read_number(tray, "rails", findings);
    }
    if (inventory_find(listed, item.node, &other))
        findings_add(findings, true, "topology", node->line, node->column,
                     "'%s' stands in rack '%s' already", item.node, other.rack);
    else if (!inventory_observe(listed, &item))
        findings_add(findings, true, "topology", node->line, node->column, "more than %d nodes",
                     INVENTORY_NODES_MAX);
}

static void add_rack(struct inventory *listed, const struct tree_node *rack, int64_t time_ns,
                     struct findings *findings)
{
    const struct tree_node *name = tree_get(rack, "rack");
    const struct tree_node *domain = tree_get(rack, "nvlink_domain");
    const struct tree_node *trays = tree_get(rack, "trays");
    if (!is_text(name)) {
        complain(findings, rack, "a rack needs a name under 'rack'");
        return;
    }
    if (domain != NULL && !is_text(domain))
        complain(findings, domain, "nvlink_domain must be a name");
    if (trays == NULL || trays->kind != TREE_SEQUENCE) {
        complain(findings, rack, "a rack needs a list of nodes under 'trays'");
        return;
    }
    const struct inventory_observation item = {.source = INVENTORY_FILE,
                                               .rack = name->scalar,
                                               .nvlink_domain = is_text(domain) ? domain->scalar
                                                                                : NULL,
                                               .tray = INVENTORY_UNKNOWN,
                                               .rails = INVENTORY_UNKNOWN,
                                               .time_ns = time_ns};
    for (const struct tree_node *tray = trays->first; tray != NULL; tray = tray->next)
        add_tray(listed, tray, &item, findings);
}

static void check_racks_differ(const struct tree_node *racks, struct findings *findings)
{
    for (const struct tree_node *rack = racks->first; rack != NULL; rack = rack->next)
        for (const struct tree_node *other = racks->first; other != rack; other = other->next) {
            const struct tree_node *a = tree_get(rack, "rack");
            const struct tree_node *b = tree_get(other, "rack");
            if (is_text(a) && is_text(b) && strcmp(a->scalar, b->scalar) == 0)
                findings_add(findings, true, "topology", a->line, a->column,
                             "rack '%s' stands twice", a->scalar);
        }
}

static void take(struct inventory *inventory, const struct inventory *listed, int64_t time_ns)
{
    struct inventory_node node;
    for (size_t i = 0; i < inventory->stand_count; i++)
        if (!inventory_find(listed, inventory->stands[i]->name, &node))
            inventory_withdraw(inventory, INVENTORY_FILE, inventory->stands[i]->name, time_ns);
    for (size_t i = 0; i < inventory_count(listed); i++) {
        node = inventory_at(listed, i);
        inventory_observe(inventory,
                          &(struct inventory_observation){.source = INVENTORY_FILE,
                                                          .node = node.node,
                                                          .rack = node.rack,
                                                          .nvlink_domain = node.nvlink_domain,
                                                          .tray = node.tray,
                                                          .rails = node.rails,
                                                          .time_ns = time_ns});
    }
}

bool inventory_read_file(struct inventory *inventory, const struct tree_node *root, int64_t time_ns,
                         struct findings *findings)
{
    const struct tree_node *topology = tree_get(root, "topology");
    const struct tree_node *racks = tree_get(topology != NULL ? topology : root, "racks");
    size_t errors = findings->errors;
    if (racks == NULL || racks->kind != TREE_SEQUENCE) {
        findings_add(findings, true, "topology", root != NULL ? root->line : 1, 1,
                     "a topology file needs a list under 'racks'");
        return false;
    }
    AUTO(inventory_free) struct inventory *listed = inventory_new();
    check_racks_differ(racks, findings);
    for (const struct tree_node *rack = racks->first; rack != NULL; rack = rack->next)
        add_rack(listed, rack, time_ns, findings);
    bool is_good = findings->errors == errors;
    if (is_good)
        take(inventory, listed, time_ns);
    return is_good;
}
