/* Progress and silence: when did each rank last speak, what was it doing, and has the job stopped.
 */
#ifndef BROOM_DETECTORS_LIVENESS_H
#define BROOM_DETECTORS_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

enum phase {
    PHASE_NONE = 0,
    PHASE_INIT,
    PHASE_COMPUTE,
    PHASE_ALLREDUCE,
    PHASE_DATA,
    PHASE_CHECKPOINT,
    PHASE_EVAL,
    PHASE_OTHER,
    PHASE_COUNT
};

struct liveness {
    int32_t ranks;
    int64_t *seen_ns; /* by rank: engine time when its newest line of any kind came; 0 never */
    int64_t *step_ns; /* by rank: the same of its newest step sample */
    int64_t *beat_ns; /* by rank: newest beat; 0 never */
    int64_t *beat_step;
    uint8_t *phase;      /* by rank: of its newest beat */
    int64_t *own_ns;     /* by rank: newest stamp of its step and beat lines, by its own clock */
    int64_t *stale_ns;   /* by rank: stamps up to here belong to the attempt before */
    double beat_gap_ns;  /* usual time between two beats of a rank; 0 unknown */
    int64_t *gauge_ns;   /* by rank: newest gauges of its host, by the host's clock; 0 never */
    double gauge_gap_ns; /* usual time between two rounds of a host's gauges; 0 unknown */
    int64_t ahead_step;  /* a beat's step past progress_step, and whose it was */
    int32_t ahead_rank;
    int64_t progress_ns; /* when the highest step number rose last */
    int64_t progress_step;
    int64_t longest_gap_ns; /* longest time without progress that ended by itself */
    int64_t quiet_until_ns; /* a mark said that the job pauses until then */
    int64_t floor_ns;       /* silence counts from here at the earliest */
    int64_t deaf_from_ns;   /* nobody was heard since somebody listens again; 0: somebody was */
    int64_t deaf_until_ns;  /* stops are not judged before */
    int64_t round_ns;       /* time that a quarter of the ranks have reached, at the last check */
    int64_t checked_ns;     /* engine time of the last check */
    bool finished;          /* mark `finished`: silence is right */
    bool told;              /* this stop has been reported */
};

void liveness_init(struct liveness *live, int32_t ranks);
void liveness_done(struct liveness *live);
/* See engine_resume; heard: a rank has spoken after it. */
void liveness_resume(struct liveness *live, int64_t from_ns, int64_t now_ns);
void liveness_heard(struct liveness *live, int64_t now_ns);
void liveness_restart(struct liveness *live);
/* Usual time between two signs of life of a rank inside a step: its beats, or where it sends none
 * the gauges of its host. 0: unknown. */
double liveness_speaking_gap(const struct liveness *live);
/* Gauges of the rank's host came. The lines of a host's GPUs come together, and then nothing until
 * the next round. */
void liveness_gauges(struct liveness *live, int32_t rank, int64_t time_ns);
enum phase liveness_phase(const char *bytes, unsigned long length);
const char *liveness_phase_name(enum phase phase);

#endif
