/* Plan steps -> what exactly is to be done: verb, nodes, spares, parameters. No effects. */
#ifndef BROOM_REMEDIATION_PLANNER_H
#define BROOM_REMEDIATION_PLANNER_H

#include "remediation/incident.h"

struct remediation;

struct planned {
    enum verb verb;
    int step;   /* index into the plan; -1: none of it */
    bool aside; /* beside the plan: no step waits for it */
    struct names nodes, spares;
    const char *note;            /* static; behind the names in the timeline; NULL for none */
    struct text params;          /* JSON object; empty for none */
    char reason[SENTENCE_BYTES]; /* written beside the effect: "broom:INC-3 ..." */
};

void planned_done(struct planned *planned);

/* notify, capture, drain, request_checkpoint, fence, hand_over. */
void planner_step(const struct remediation *core, const struct incident *incident,
                  struct planned *planned);
/* Whole rack: its other trays become nodes of the incident. Nodes that somebody else has cordoned
 * are remembered and left out. */
void planner_cordon(const struct remediation *core, struct incident *incident, bool whole_rack,
                    struct planned *planned);
void planner_promise(const struct remediation *core, const struct incident *incident,
                     struct planned *planned);
/* Takes along what other incidents of the job wait for: one restart serves them all. */
void planner_restart(const struct remediation *core, const struct incident *incident,
                     struct planned *planned);
/* Pods that never end on nodes that are off, with who says that they are. */
void planner_force_delete(const struct remediation *core, const struct incident *incident,
                          struct planned *planned);
/* What the due step would do, for observe mode: "cordon the trays gb-1". */
void planner_would(const struct remediation *core, const struct incident *incident,
                   struct text *out);

/* A notification outside the plan. */
void planner_tell(const struct incident *incident, const char *sentence, struct planned *planned);

/* Operation id INC-n/round/step/try, the same after a restart of broomd; a verb in place of the
 * step for what is given back. */
void planner_fill_action(const struct incident *incident, const struct planned *planned,
                         struct incident_action *action);

#endif
