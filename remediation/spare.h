/* Which spares an incident would take. Order: a spare tray in the same NVLink domain for every lost
 * one; else the whole segment to one spare rack, never by halves. A spare is Ready, has its GPUs,
 * is not cordoned, promised to nobody, held by no job and in no open incident.
 */
#ifndef BROOM_REMEDIATION_SPARE_H
#define BROOM_REMEDIATION_SPARE_H

#include "remediation/incident.h"
#include "remediation/world_view.h"

struct spare_view {
    const struct world_view *world;
    struct incident *const *incidents;
    size_t incident_count;
    const struct names *job_nodes; /* nodes that hold ranks of the job */
};

struct spare_choice {
    struct names leaving; /* nodes that the job leaves, by index with spares */
    struct names spares;
    int missing;                   /* 0: complete */
    char sentence[SENTENCE_BYTES]; /* what is missing and where */
};

struct spare_choice spare_choose(const struct spare_view *view, const struct incident *incident,
                                 const struct plan_step *step);
void spare_choice_done(struct spare_choice *choice);
/* Could this node be promised to this incident now? Its own promises count as usable. */
bool spare_is_usable(const struct spare_view *view, const struct incident *incident,
                     const char *node);

#endif
