/* Racks that only their cliques tell of. A clique's id changes when its fabric is made anew, may
 * stand for a part of a rack, and may be carried by two racks at once. */
#include "controller/topology/inventory_state.h"

#include <assert.h>

static struct clique *find_clique(const struct inventory *inventory, const char *id)
{
    for (size_t i = 0; i < inventory->clique_count; i++)
        if (inventory->cliques[i].id == id)
            return &inventory->cliques[i];
    return NULL;
}

static void add_clique(struct inventory *inventory, const char *id, int32_t rack)
{
    inventory->cliques = array_grow(inventory->cliques, inventory->clique_count,
                                    &inventory->clique_capacity, sizeof *inventory->cliques);
    inventory->cliques[inventory->clique_count++] = (struct clique){id, rack};
}

static int32_t add_rack(struct inventory *inventory, const char *name, int64_t time_ns)
{
    inventory->clique_racks = array_grow(inventory->clique_racks, inventory->clique_rack_count,
                                         &inventory->clique_rack_capacity,
                                         sizeof *inventory->clique_racks);
    inventory->clique_racks[inventory->clique_rack_count] = (struct clique_rack){name, time_ns};
    return (int32_t)inventory->clique_rack_count++;
}

static size_t count_in(const struct inventory *inventory, int32_t rack, bool only_speaking)
{
    size_t count = 0;
    for (size_t i = 0; i < inventory->stand_count; i++) {
        const struct stand *stand = inventory->stands[i];
        bool speaks = stand->said[INVENTORY_CLIQUE].domain.silent_ns == 0;
        count += stand->clique_rack == rack && (speaks || !only_speaking);
    }
    return count;
}

/* The nodes and cliques of `young` turn out to be those of `old`, under another id. */
static void merge(struct inventory *inventory, int32_t old, int32_t young, int64_t time_ns)
{
    for (size_t i = 0; i < inventory->clique_count; i++)
        if (inventory->cliques[i].rack == young)
            inventory->cliques[i].rack = old;
    for (size_t i = 0; i < inventory->stand_count; i++) {
        struct stand *stand = inventory->stands[i];
        if (stand->clique_rack != young)
            continue;
        stand->clique_rack = old;
        stand->said[INVENTORY_CLIQUE].rack.value = inventory->clique_racks[old].name;
        stand_answer(inventory, stand, time_ns);
        stand_note(inventory, stand, INVENTORY_CLIQUE, time_ns);
    }
}

/* A node came to a rack that is known already. When it was the last one to leave a rack that is
 * older, and both together are no more than one rack, nobody has moved: the fabric was made anew,
 * and a node that was new under the new id made it look like another rack. */
static bool is_same_rack(const struct inventory *inventory, int32_t old, int32_t young)
{
    return inventory->clique_racks[young].since_ns > inventory->clique_racks[old].since_ns &&
           count_in(inventory, old, true) == 0 &&
           count_in(inventory, old, false) + count_in(inventory, young, false) <=
               INVENTORY_NVL72_TRAYS;
}

void clique_seen(struct inventory *inventory, struct stand *stand, const char *id, int64_t time_ns)
{
    int32_t was = stand->clique_rack;
    const struct clique *known = find_clique(inventory, id);
    if (known == NULL) {
        stand->clique_rack = was != INVENTORY_UNKNOWN ? was : add_rack(inventory, id, time_ns);
        add_clique(inventory, id, stand->clique_rack);
        return;
    }
    stand->clique_rack = known->rack;
    if (was != INVENTORY_UNKNOWN && was != known->rack && is_same_rack(inventory, was, known->rack))
        merge(inventory, was, known->rack, time_ns);
}
