/* Has the job recovered? Only new steps count: of a new attempt, after our restart, at the old
 * pace. */
#ifndef BROOM_REMEDIATION_VERIFY_H
#define BROOM_REMEDIATION_VERIFY_H

#include "detectors/engine.h"

enum verify_outcome {
    VERIFY_NO_NEW_ATTEMPT = 0,
    VERIFY_TOO_FEW_STEPS,
    VERIFY_TOO_SLOW,
    VERIFY_RECOVERED
};

struct verify_before {
    int64_t attempt; /* of the job before the restart; JOB_NONE unknown */
    int64_t restart_started_ns;
    double baseline_ms; /* the old pace; NAN unknown: then steps alone count */
};

struct verify_result {
    enum verify_outcome outcome;
    int64_t new_steps; /* of the new attempt */
    double pace_ratio; /* new / old; NAN unknown */
};

struct verify_result verify_judge(const struct verify_before *before,
                                  const struct engine_progress *progress, int64_t new_steps,
                                  double pace_within);

#endif
