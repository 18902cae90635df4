/* The verify step: see verify.h. */
#include "remediation/verify.h"

#include <math.h>

/* The attempt's own time decides where it is known: an engine that was started anew counts its
 * attempts from nought again. */
static bool is_new_attempt(const struct verify_before *before,
                           const struct engine_progress *progress)
{
    if (progress->step_time_ns <= before->restart_started_ns)
        return false;
    if (progress->attempt_time_ns != 0)
        return progress->attempt_time_ns >= before->restart_started_ns;
    return before->attempt != JOB_NONE && progress->attempt > before->attempt;
}

struct verify_result verify_judge(const struct verify_before *before,
                                  const struct engine_progress *progress, int64_t new_steps,
                                  double pace_within)
{
    struct verify_result result = {VERIFY_NO_NEW_ATTEMPT, 0, NAN};
    if (progress->step == JOB_NONE || !is_new_attempt(before, progress))
        return result;
    result.new_steps = progress->attempt_first_step == JOB_NONE
                           ? 1
                           : progress->step - progress->attempt_first_step + 1;
    if (!isnan(progress->step_ms) && before->baseline_ms > 0)
        result.pace_ratio = progress->step_ms / before->baseline_ms;
    if (result.new_steps < new_steps)
        result.outcome = VERIFY_TOO_FEW_STEPS;
    else if (isnan(progress->step_ms) && !isnan(before->baseline_ms))
        result.outcome = VERIFY_TOO_FEW_STEPS;
    else if (result.pace_ratio > pace_within)
        result.outcome = VERIFY_TOO_SLOW;
    else
        result.outcome = VERIFY_RECOVERED;
    return result;
}
