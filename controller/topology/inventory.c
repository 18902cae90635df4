/* Observations in, one answer a node out. */
#include "controller/topology/inventory.h"

#include "controller/topology/inventory_state.h"

#include <assert.h>
#include <string.h>

enum { NAMES_MAX = 4 * INVENTORY_NODES_MAX, NAME_SLOTS_LEAST = 256, CHANGE_ROOM_LEAST = 64 };

/* ---- names ---- */

static size_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        hash = (hash ^ *c) * UINT64_C(1099511628211);
    return (size_t)(hash ^ hash >> 32);
}

static char **slot_of(char **names, size_t slots, const char *text)
{
    size_t at = hash_of(text) & (slots - 1);
    while (names[at] != NULL && strcmp(names[at], text) != 0)
        at = (at + 1) & (slots - 1);
    return &names[at];
}

static void grow_names(struct inventory *inventory)
{
    size_t slots = inventory->name_slots > 0 ? 2 * inventory->name_slots : NAME_SLOTS_LEAST;
    char **names = xcalloc(slots, sizeof *names);
    for (size_t i = 0; i < inventory->name_slots; i++)
        if (inventory->names[i] != NULL)
            *slot_of(names, slots, inventory->names[i]) = inventory->names[i];
    xfree(inventory->names);
    inventory->names = names;
    inventory->name_slots = slots;
}

/* NULL for no name, and when there is no room for another one. */
static const char *intern(struct inventory *inventory, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return NULL;
    if (2 * (inventory->name_count + 1) > inventory->name_slots)
        grow_names(inventory);
    char **slot = slot_of(inventory->names, inventory->name_slots, text);
    if (*slot == NULL && inventory->name_count < NAMES_MAX) {
        *slot = xstrdup(text);
        inventory->name_count++;
    }
    return *slot;
}

/* ---- nodes ---- */

struct inventory *inventory_new(void)
{
    return xcalloc(1, sizeof(struct inventory));
}

void inventory_free(struct inventory *inventory)
{
    if (inventory == NULL)
        return;
    for (size_t i = 0; i < inventory->stand_count; i++)
        xfree(inventory->stands[i]);
    for (size_t i = 0; i < inventory->name_slots; i++)
        xfree(inventory->names[i]);
    xfree(inventory->stands);
    xfree(inventory->names);
    xfree(inventory->cliques);
    xfree(inventory->clique_racks);
    xfree(inventory->changes);
    xfree(inventory);
}

static int compare_name(const void *name, const void *item)
{
    return strcmp(name, (*(struct stand *const *)item)->name);
}

/* Where the node stands, or where it belongs. */
static size_t place_of(const struct inventory *inventory, const char *node, bool *ret_found)
{
    size_t place = array_lower_bound(node, inventory->stands, inventory->stand_count,
                                     sizeof(struct stand *), compare_name);
    *ret_found = place < inventory->stand_count &&
                 strcmp(inventory->stands[place]->name, node) == 0;
    return place;
}

struct stand *inventory_stand(const struct inventory *inventory, const char *node)
{
    bool found;
    size_t at = place_of(inventory, node, &found);
    return found ? inventory->stands[at] : NULL;
}

static struct stand *stand_new(const char *name)
{
    struct stand *stand = xcalloc(1, sizeof *stand);
    stand->name = name;
    stand->clique_rack = INVENTORY_UNKNOWN;
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++)
        stand->said[s].tray = stand->said[s].rails = INVENTORY_UNKNOWN;
    stand->answer = (struct inventory_node){.node = name,
                                            .tray = INVENTORY_UNKNOWN,
                                            .rails = INVENTORY_UNKNOWN,
                                            .rack_source = INVENTORY_SOURCE_COUNT,
                                            .domain_source = INVENTORY_SOURCE_COUNT};
    return stand;
}

static struct stand *find_or_add(struct inventory *inventory, const char *node)
{
    bool found;
    size_t at = place_of(inventory, node, &found);
    if (found)
        return inventory->stands[at];
    const char *name = intern(inventory, node);
    if (inventory->stand_count == INVENTORY_NODES_MAX || name == NULL)
        return NULL;
    inventory->stands = array_grow(inventory->stands, inventory->stand_count,
                                   &inventory->stand_capacity, sizeof *inventory->stands);
    memmove(&inventory->stands[at + 1], &inventory->stands[at],
            (inventory->stand_count - at) * sizeof *inventory->stands);
    inventory->stands[at] = stand_new(name);
    inventory->stand_count++;
    return inventory->stands[at];
}

/* ---- answers ---- */

/* The most trusted source that names it and speaks, else the most trusted last word. */
static enum inventory_source trusted(const struct stand *stand, bool is_rack)
{
    enum inventory_source last_word = INVENTORY_SOURCE_COUNT;
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++) {
        const struct said_name *name = is_rack ? &stand->said[s].rack : &stand->said[s].domain;
        if (name->value == NULL)
            continue;
        if (name->silent_ns == 0)
            return (enum inventory_source)s;
        if (last_word == INVENTORY_SOURCE_COUNT)
            last_word = (enum inventory_source)s;
    }
    return last_word;
}

static int32_t first_known(const struct stand *stand, bool is_tray)
{
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++) {
        int32_t value = is_tray ? stand->said[s].tray : stand->said[s].rails;
        if (value != INVENTORY_UNKNOWN)
            return value;
    }
    return INVENTORY_UNKNOWN;
}

static bool is_same_answer(const struct inventory_node *a, const struct inventory_node *b)
{
    return a->rack == b->rack && a->nvlink_domain == b->nvlink_domain && a->tray == b->tray &&
           a->rails == b->rails && a->rack_source == b->rack_source &&
           a->domain_source == b->domain_source && a->silent_since_ns == b->silent_since_ns;
}

void stand_answer(struct inventory *inventory, struct stand *stand, int64_t time_ns)
{
    enum inventory_source rack = trusted(stand, true);
    enum inventory_source domain = trusted(stand, false);
    struct inventory_node answer = {.node = stand->name,
                                    .tray = first_known(stand, true),
                                    .rails = first_known(stand, false),
                                    .rack_source = rack,
                                    .domain_source = domain};
    if (rack != INVENTORY_SOURCE_COUNT) {
        answer.rack = stand->said[rack].rack.value;
        answer.silent_since_ns = stand->said[rack].rack.silent_ns;
    }
    if (domain != INVENTORY_SOURCE_COUNT)
        answer.nvlink_domain = stand->said[domain].domain.value;
    answer.rack_since_ns = answer.rack == stand->answer.rack ? stand->answer.rack_since_ns
                                                             : time_ns;
    if (!is_same_answer(&answer, &stand->answer))
        inventory->version++;
    stand->answer = answer;
}

/* ---- changes ---- */

static void grow_changes(struct inventory *inventory)
{
    if (inventory->change_room == INVENTORY_CHANGES_MAX ||
        (size_t)inventory->change_count < inventory->change_room)
        return;
    inventory->change_room = inventory->change_room > 0 ? 2 * inventory->change_room
                                                        : CHANGE_ROOM_LEAST;
    inventory->changes = xrealloc(inventory->changes, inventory->change_room,
                                  sizeof *inventory->changes);
}

void stand_note(struct inventory *inventory, const struct stand *stand,
                enum inventory_source source, int64_t time_ns)
{
    const struct said *said = &stand->said[source];
    grow_changes(inventory);
    if (inventory->change_count - inventory->taken_count == INVENTORY_CHANGES_MAX) {
        inventory->taken_count++;
        inventory->lost_count++;
    }
    struct change *change =
        &inventory->changes[(size_t)inventory->change_count % inventory->change_room];
    *change = (struct change){.time_ns = time_ns,
                              .node = stand->name,
                              .rack = said->rack.value,
                              .domain = said->domain.value,
                              .tray = said->tray,
                              .rails = said->rails,
                              .source = source,
                              .silent = said->rack.silent_ns > 0 || said->domain.silent_ns > 0,
                              .answer_rack = stand->answer.rack,
                              .answer_domain = stand->answer.nvlink_domain,
                              .answer_source = stand->answer.rack_source};
    inventory->change_count++;
}

int64_t inventory_lost_records(const struct inventory *inventory)
{
    return inventory->lost_count;
}

int64_t inventory_version(const struct inventory *inventory)
{
    return inventory->version;
}

/* ---- observations ---- */

/* True when this changes what the source says. */
static bool say(struct said_name *name, const char *value, int64_t time_ns)
{
    if (value == NULL) {
        if (name->value == NULL || name->silent_ns > 0)
            return false;
        name->silent_ns = time_ns > 0 ? time_ns : 1;
        return true;
    }
    if (name->value == value && name->silent_ns == 0)
        return false;
    if (name->value != value)
        name->since_ns = time_ns;
    name->value = value;
    name->silent_ns = 0;
    return true;
}

/* The rack follows from the clique, and is silent when that is. */
static void derive_rack(struct inventory *inventory, struct stand *stand, const char *clique,
                        int64_t time_ns)
{
    struct said *said = &stand->said[INVENTORY_CLIQUE];
    if (clique != NULL)
        clique_seen(inventory, stand, clique, time_ns);
    const char *rack = clique != NULL ? inventory->clique_racks[stand->clique_rack].name : NULL;
    say(&said->rack, rack, time_ns);
}

bool inventory_observe(struct inventory *inventory, const struct inventory_observation *observation)
{
    assert(observation->source >= 0 && observation->source < INVENTORY_SOURCE_COUNT);
    struct stand *stand = find_or_add(inventory, observation->node);
    if (stand == NULL)
        return false;
    bool is_clique = observation->source == INVENTORY_CLIQUE;
    struct said *said = &stand->said[observation->source];
    const char *domain = intern(inventory, observation->nvlink_domain);
    int32_t tray = observation->tray >= 0 ? observation->tray : INVENTORY_UNKNOWN;
    int32_t rails = observation->rails >= 0 ? observation->rails : INVENTORY_UNKNOWN;
    bool changed = say(&said->domain, domain, observation->time_ns);
    if (is_clique && changed)
        derive_rack(inventory, stand, domain, observation->time_ns);
    if (!is_clique)
        changed |= say(&said->rack, intern(inventory, observation->rack), observation->time_ns);
    changed |= said->tray != tray || said->rails != rails;
    if (!changed)
        return true;
    said->tray = tray;
    said->rails = rails;
    stand_answer(inventory, stand, observation->time_ns);
    stand_note(inventory, stand, observation->source, observation->time_ns);
    return true;
}

void inventory_withdraw(struct inventory *inventory, enum inventory_source source, const char *node,
                        int64_t time_ns)
{
    struct stand *stand = inventory_stand(inventory, node);
    if (stand == NULL)
        return;
    struct said *said = &stand->said[source];
    if (said->rack.value == NULL && said->domain.value == NULL && said->tray == INVENTORY_UNKNOWN &&
        said->rails == INVENTORY_UNKNOWN)
        return;
    *said = (struct said){.tray = INVENTORY_UNKNOWN, .rails = INVENTORY_UNKNOWN};
    if (source == INVENTORY_CLIQUE)
        stand->clique_rack = INVENTORY_UNKNOWN;
    stand_answer(inventory, stand, time_ns);
    stand_note(inventory, stand, source, time_ns);
}

bool inventory_find(const struct inventory *inventory, const char *node,
                    struct inventory_node *ret_node)
{
    const struct stand *stand = inventory_stand(inventory, node);
    if (stand != NULL)
        *ret_node = stand->answer;
    return stand != NULL;
}

size_t inventory_count(const struct inventory *inventory)
{
    return inventory->stand_count;
}

struct inventory_node inventory_at(const struct inventory *inventory, size_t index)
{
    assert(index < inventory->stand_count);
    return inventory->stands[index]->answer;
}
