/* Where every node stands: what several sources say of racks, NVLink domains and trays, merged into
 * one answer a node. Pure: time comes with each observation.
 *
 * The most trusted source that speaks wins, in the order of enum inventory_source. A source that
 * falls silent about a node (a label is gone, the fabric is being rebuilt) has not moved it: its
 * last word holds until one that speaks says more, and is told as the last word. Names are compared
 * whole and exactly. Sources may use names of their own for one rack; they disagree when they group
 * nodes differently, and that is a finding.
 *
 * nvidia.com/gpu.clique is evidence of an NVLink domain, not a rack's name. Where nothing else
 * names the rack, it is named by the first clique that was seen there, and keeps this name when the
 * clique of its nodes changes.
 */
#ifndef BROOM_TOPOLOGY_INVENTORY_H
#define BROOM_TOPOLOGY_INVENTORY_H

#include "controller/base/json.h"
#include "controller/base/tree.h"

enum inventory_source {
    INVENTORY_FILE = 0,  /* the site's topology file */
    INVENTORY_LABEL,     /* topology labels that the site puts on nodes */
    INVENTORY_HYPERNODE, /* Volcano HyperNode of the rack's tier */
    INVENTORY_SLURM,     /* topology.conf */
    INVENTORY_CLIQUE,    /* nvidia.com/gpu.clique */
    INVENTORY_HELLO,     /* the ranks themselves, or a job document */
    INVENTORY_SOURCE_COUNT
};

enum {
    INVENTORY_UNKNOWN = -1,
    INVENTORY_NODES_MAX = 65536,
    INVENTORY_CHANGES_MAX = 65536, /* kept in memory, newest last */
    INVENTORY_NVL72_TRAYS = 18
};

/* What one source says of one node now: all of it, each time. NULL, "" and INVENTORY_UNKNOWN: the
 * source does not say this. Strings are lent. */
struct inventory_observation {
    enum inventory_source source;
    const char *node;
    const char *rack;          /* INVENTORY_CLIQUE: not read */
    const char *nvlink_domain; /* INVENTORY_CLIQUE: the label's value, whole */
    int32_t tray;              /* place in the rack */
    int32_t rails;             /* NICs that serve a rail each */
    int64_t time_ns;
};

/* The merged answer. Strings live as long as the inventory. */
struct inventory_node {
    const char *node;
    const char *rack;                                 /* NULL: nobody ever said */
    const char *nvlink_domain;                        /* likewise */
    int32_t tray, rails;                              /* or INVENTORY_UNKNOWN */
    enum inventory_source rack_source, domain_source; /* INVENTORY_SOURCE_COUNT when nobody said */
    int64_t rack_since_ns;                            /* the answer's rack holds since */
    int64_t silent_since_ns; /* > 0: no source names the rack now, this is the last word */
};

struct inventory;
struct inventory *inventory_new(void);
void inventory_free(struct inventory *inventory);
DEFINE_AUTO(struct inventory, inventory_free)

/* False when there is no room for another node: it was not taken. Saying the same again costs
 * nothing and is no change. */
bool inventory_observe(struct inventory *inventory,
                       const struct inventory_observation *observation);
/* The source takes back what it said of the node, as when it leaves the topology file: it counts
 * as never said. For a label that is missing or a node that is away use inventory_observe. */
void inventory_withdraw(struct inventory *inventory, enum inventory_source source, const char *node,
                        int64_t time_ns);

/* By exact name; false when the node is not known. */
bool inventory_find(const struct inventory *inventory, const char *node,
                    struct inventory_node *ret_node);
size_t inventory_count(const struct inventory *inventory);
/* By name; index < inventory_count. */
struct inventory_node inventory_at(const struct inventory *inventory, size_t index);

/* The next record of a change that was not taken yet, as JSON for store_submit; false when there is
 * none. {"type":"topology","key","time_ns","node","source","rack","nvlink_domain","tray","rails",
 * "silent","answer":{"rack","source","nvlink_domain"}} */
bool inventory_take_record(struct inventory *inventory, struct text *ret_json);
/* Records that were not taken before INVENTORY_CHANGES_MAX newer ones came. */
int64_t inventory_lost_records(const struct inventory *inventory);

/* Grows with each change of an answer: who copied the inventory knows when to look again. */
int64_t inventory_version(const struct inventory *inventory);

/* rule: "sources-disagree", "rack-too-large", "tray-twice", "rack-unknown" or "last-word".
 * Sentences name the nodes and both sources. */
typedef void inventory_finding_fn(void *context, const char *rule, const char *sentence);
void inventory_findings(const struct inventory *inventory, inventory_finding_fn *fn, void *context);

/* {"nodes":[{"node","rack","nvlink_domain","tray","rails","source","since","silent_since",
 *            "says":[{"source","rack","nvlink_domain","tray","rails","since","silent_since"}]}],
 *  "racks":[{"rack","nvlink_domains":[],"nodes":[]}],"findings":[{"rule","text"}],
 *  "changes":[{"time","node","source","rack","nvlink_domain","tray","rails","silent"}]}
 * Nodes and racks by name; the newest 200 changes, newest first. Unknown is null. */
void inventory_write(const struct inventory *inventory, struct json_writer *writer);

/* Reads a topology file, {racks: [{rack, nvlink_domain, trays: [NODE or {node, tray, rails}]}]}, or
 * a document with such an object under `topology`, as a job document has it. Nodes that the file
 * named before and names no more are withdrawn. With any error in it nothing changes: false. */
bool inventory_read_file(struct inventory *inventory, const struct tree_node *root, int64_t time_ns,
                         struct findings *findings);

const char *inventory_source_name(enum inventory_source source); /* "file", "label", ... */

#endif
