/* Why a domain is slow, what that costs the job, and which part of a tensor group or of a pipeline
 * replica it is when only their common lateness is known.
 */
#ifndef BROOM_DETECTORS_CAUSE_H
#define BROOM_DETECTORS_CAUSE_H

#include "detectors/alarm.h"
#include "detectors/domains.h"
#include "detectors/engine_state.h"

struct slow_facts {
    double level; /* shift as part of the work */
    double lower; /* its lower bound, about 98 % */
    int rows;     /* since the onset, at most CHART_RING */
    int units;
    int64_t since_step;
    bool from_start;  /* slow since the attempt began: its past is no peer */
    bool whole_stage; /* the domain is all there is of a stage */
    enum cause cause;
    double gain;
    double lateness_ms;       /* how much later than the others it reaches the all-reduce */
    double sm, sm_shift, mem; /* means over the domain's ranks; NAN unknown */
    double clock, power; /* the lowest of the domain's GPUs over the median of all; NAN unknown */
};

/* Fills cause, gain, lateness_ms, sm, sm_shift, mem, clock and power. ranks flags the domain's
 * ranks. */
void cause_find(const struct engine *engine, enum bank_kind bank, const struct domain *domain,
                const uint8_t *ranks, struct slow_facts *facts);

/* Whether the clock of the rank's GPU says why the rank is slow by `level`. */
bool cause_is_clock_low(const struct engine *engine, int32_t rank, double level);

/* Part of the step that would be won without these ranks, from the last rows. */
double cause_gain(const struct engine *engine, const uint8_t *ranks, int rows);

/* A tray or group whose members move together: narrows it to the one tray that waits for data,
 * where a group is late (bank and level are the alarm's), or to the one rank whose SMs stand out.
 */
bool cause_narrow(const struct engine *engine, enum bank_kind bank, double level,
                  struct domain *domain);

/* Replicas that are late as a whole, with several stages: which rack or rank of them it is. Returns
 * the number of domains; 0 when more rows are needed to tell. level and rows are the alarm's. */
int cause_split_lanes(const struct engine *engine, double level, int rows, uint8_t *suspects,
                      struct domain *domains);

/* Two ranks of one tray that grew slow at the same time have one fault, which is the tray's (its
 * host feeds part of its GPUs). Takes such ranks of the list after the first into ranks; true:
 * there were some. */
bool cause_merge_ranks(const struct engine *engine, const struct alarm *alarm,
                       struct domain *domains, int *count, int first, uint8_t *ranks);

#endif
