/* The rehearsals of formats.md section 7: what happens, and how it must end.
 */
#ifndef BROOM_REHEARSE_SCENARIO_H
#define BROOM_REHEARSE_SCENARIO_H

#include "controller/rehearse/cluster_state.h"
#include "detectors/verdict.h"

enum scenario_damage { DAMAGE_NONE = 0, DAMAGE_GPU, DAMAGE_TRAY, DAMAGE_RACK };

/* How it must end. */
struct ending {
    int incidents;
    int incidents_cleared;  /* before it, at most: of the same fault, taken back before anything was
                               done */
    uint32_t kinds, scopes; /* bit per enum value; of the incident */
    int severity;
    enum scenario_damage
        damage; /* DAMAGE_GPU, DAMAGE_TRAY: its tray is cordoned; DAMAGE_RACK: the rack */
    int restarts;
    bool victims;       /* ranks that stopped because of it are listed */
    bool to_spare_rack; /* the whole segment moves there; else to a spare of the same rack */
    bool holds;         /* held for one missing spare first */
    bool observer_suspect;
    bool left_slow;  /* recorded only: the steps stay as slow as the fault makes them */
    bool left_stuck; /* told and recorded only: no step is made any more */
};

struct scenario {
    const char *name;
    const char *summary; /* one line for --help */
    double speed;        /* pipeline seconds a real second */
    int64_t duration_ns; /* without a fault to mend: its length; else the most that it may take */
    int64_t linger_ns;   /* after the ending is reached: nothing more may happen */
    int32_t racks, spare_racks, trays_spare;
    double compute_ms;
    bool everyday_noise; /* evaluations, sequence lengths, GC, a node NotReady for 90 s */
    bool spare_appears;  /* one hidden spare joins 30 min after the fault */
    enum fault_kind fault;
    double magnitude;
    int64_t fault_step;                         /* 0: no fault */
    int64_t ramp_steps, period_steps, on_steps; /* as in struct model_fault */
    bool reported;                              /* the same */
    int32_t tp; /* ranks a tensor group, whose times are sent; 0: one tray's, and they are not */
    struct ending ending;
};

const struct scenario *scenario_find(const char *name); /* NULL when there is none */
size_t scenario_count(void);
const struct scenario *scenario_at(size_t index);

/* The cluster of a scenario; the seed also picks which GPU, tray or rack it hits. */
struct cluster_config scenario_cluster(const struct scenario *scenario, uint64_t seed);
struct model_fault scenario_fault(const struct scenario *scenario, uint64_t seed);
/* Both together, ready for cluster_start. Caller frees. */
struct cluster *scenario_build(const struct scenario *scenario, uint64_t seed);

#endif
