/* Published rules, re-implemented from their descriptions, each at several thresholds at once.
 * Their unit is the machine (tray), as their authors evaluate them; only GREYHOUND also speaks of
 * the job. All ranks are peers: none of the descriptions tells pipeline stages apart.
 */
#ifndef BROOM_BENCH_ACCURACY_BASELINES_H
#define BROOM_BENCH_ACCURACY_BASELINES_H

#include "accuracy_score.h"

enum baseline {
    BASELINE_NVRX = 0,
    BASELINE_DLROVER,
    BASELINE_SIGMA,
    BASELINE_MEDIAN3,
    BASELINE_GREYHOUND,
    BASELINE_MINDER,
    BASELINE_MAD,
    BASELINE_COUNT
};
enum { THRESHOLDS = 6, VARIANTS = BASELINE_COUNT * THRESHOLDS };

const char *baseline_name(enum baseline baseline);
double baseline_threshold(enum baseline baseline, int i);

struct baselines;

struct baselines *baselines_new(const struct scenario *scenario, const struct job *job);
void baselines_free(struct baselines *baselines);

/* One sample, the same that the engine gets; then the end of each moment. */
void baselines_feed(struct baselines *baselines, const struct sample *sample);
void baselines_moment(struct baselines *baselines, int64_t onset_ns);
/* By variant: baseline x THRESHOLDS + threshold. Borrowed. */
const struct outcome *baselines_outcome(const struct baselines *baselines, int variant);

#endif
