/* Fleet memory: which GPUs, trays and racks had faults before. A weak prior: it shares the
 * false-alarm budget out unevenly and never adds to it.
 */
#ifndef BROOM_DETECTORS_HISTORY_H
#define BROOM_DETECTORS_HISTORY_H

#include "controller/base/text.h"
#include "detectors/grid.h"

struct history;

struct history *history_new(void);
struct history *history_copy(const struct history *history);
void history_free(struct history *history);
DEFINE_AUTO(struct history, history_free)

/* Faults of a GPU (node and gpu), of a tray (node, gpu JOB_NONE) or of a rack (rack, node NULL).
 * What is told twice adds up. At most HISTORY_ROWS_MAX rows are kept. */
enum { HISTORY_ROWS_MAX = 65536 };
void history_add(struct history *history, const char *rack, const char *node, int32_t gpu,
                 double faults);

/* {"faults": [{"node": "gb-1", "gpu": 2, "count": 3}, {"node": "gb-2", "count": 1}, {"rack":
 * "rk-1", "count": 1}]}. Errors name the place. The caller frees the history. */
MUST_CHECK enum status history_parse(struct view bytes, struct history **ret_history,
                                     struct error *reterr);

/* The most that the past may count, in nats. */
#define HISTORY_NATS_MOST 3.0

/* By rank, for a job as it sits now: faults counts earlier ones (of the GPU, its tray and its rack
 * together), nats the logarithm of its share of the budget over an even share. Both arrays are
 * world_size long and filled. */
void history_place(const struct history *history, const struct job *job, const struct grid *grid,
                   float *ret_faults, float *ret_nats);

#endif
