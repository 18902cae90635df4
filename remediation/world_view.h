/* The core's own copy of the cluster as it was last described, and the questions that are asked of
 * it. Names are compared exactly: rack-1 is not rack-10.
 */
#ifndef BROOM_REMEDIATION_WORLD_VIEW_H
#define BROOM_REMEDIATION_WORLD_VIEW_H

#include "remediation/actuator.h"
#include "remediation/names.h"

struct view_node {
    char *name;
    char *rack;        /* "" unknown */
    char *domain;      /* NVLink domain; the rack where unknown, "" where both are */
    bool domain_known; /* told by the cluster, not taken from the rack */
    bool ready, cordoned, spare;
    char *cordoned_by;   /* "" when nobody or unknown */
    char *promised_to;   /* "" when nobody */
    char *fenced_by;     /* "" nobody says that it is off */
    char *uncordoned_by; /* "" nobody, or not known */
    char *marked_by;     /* "" nobody */
    int32_t gpus;
};

struct view_job {
    char *name, *uid, *phase;
    int64_t restarts, restarts_max; /* -1 unknown */
    int64_t checkpoint_step, checkpoint_time_ns;
    struct names nodes; /* distinct nodes that hold ranks */
    bool nodes_known;
    char *waiting_for;     /* "" nothing keeps it from running */
    char *restart_refusal; /* "" it can be restarted */
    char *made_anew;       /* "" its gang is of one start */
    struct names stuck;    /* nodes that are down and whose pods of it never end */
};

struct world_view {
    bool known;
    int64_t received_ns;     /* when a known world was last told; 0 never */
    struct view_node *nodes; /* sorted by name */
    size_t node_count;
    size_t rack_count; /* distinct, unknown racks left out */
    struct view_job *jobs;
    size_t job_count;
};

/* Replaces what is there. An unknown world keeps the old one but takes `known` back: what is not
 * told is not believed. */
void world_view_set(struct world_view *view, const struct world *world, int64_t now_ns);
void world_view_done(struct world_view *view);
const struct view_node *world_view_node(const struct world_view *view,
                                        const char *name); /* or NULL */
const struct view_job *world_view_job(const struct world_view *view,
                                      const char *name); /* or NULL */
size_t world_view_rack_size(const struct world_view *view, const char *rack);

#endif
