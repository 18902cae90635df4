/* Inside of the inventory: for inventory*.c alone. */
#ifndef BROOM_TOPOLOGY_INVENTORY_STATE_H
#define BROOM_TOPOLOGY_INVENTORY_STATE_H

#include "controller/topology/inventory.h"

/* Names are interned: equal names are one pointer. */
struct said_name {
    const char *value; /* NULL: never said, or withdrawn */
    int64_t since_ns;
    int64_t silent_ns; /* > 0: the source says nothing since */
};

struct said {
    struct said_name rack, domain;
    int32_t tray, rails;
};

struct stand { /* a node with all that was said of it */
    const char *name;
    struct said said[INVENTORY_SOURCE_COUNT];
    struct inventory_node answer;
    int32_t clique_rack; /* index, or INVENTORY_UNKNOWN */
};

/* A rack that is known by cliques; name is the first of them. */
struct clique_rack {
    const char *name;
    int64_t since_ns;
};

struct clique {
    const char *id;
    int32_t rack; /* index into clique_racks */
};

struct change {
    int64_t time_ns;
    const char *node, *rack, *domain;
    int32_t tray, rails;
    enum inventory_source source;
    bool silent;
    const char *answer_rack, *answer_domain;
    enum inventory_source answer_source;
};

struct inventory {
    struct stand **stands; /* by name */
    size_t stand_count, stand_capacity;
    char **names; /* hash of interned strings */
    size_t name_count, name_slots;
    struct clique *cliques;
    size_t clique_count, clique_capacity;
    struct clique_rack *clique_racks;
    size_t clique_rack_count, clique_rack_capacity;
    struct change *changes; /* ring; change n lives at n % INVENTORY_CHANGES_MAX */
    size_t change_room;
    int64_t change_count, taken_count, lost_count;
    int64_t version;
};

/* Which rack the clique of a node means, after it has become `id`. */
void clique_seen(struct inventory *inventory, struct stand *stand, const char *id, int64_t time_ns);
/* Recomputes a node's answer. */
void stand_answer(struct inventory *inventory, struct stand *stand, int64_t time_ns);
/* Keeps what the source says now as a change, to be recorded. */
void stand_note(struct inventory *inventory, const struct stand *stand,
                enum inventory_source source, int64_t time_ns);
struct stand *inventory_stand(const struct inventory *inventory, const char *node); /* or NULL */

#endif
