/* From a closed row to residuals: own work against ranks with the same work, lateness and time
 * outside compute against replicas of the same job. Everything is a fraction of the work, so that a
 * shift of 0.1 is "10 % slower" in every bank.
 *
 *   r[rank]    = compute / reference of its class - 1 (with several stages: over the class's usual
 * reference, since the work that varies from row to row leaves in `group` anyway) (where tokens are
 * sent, r is less what the rank's share of tokens explains) own[rank]  = r - median of its tensor
 * peers          (they do identical work) work[d]    = reference over the groups of replica d  (all
 * stages see the same micro-batches) group[k]   = r of group k - median of its replica's other
 * groups (pp = 1: r of group k alone) late[k]    = (reference wait - allreduce) / busy     (least
 * wait: last to arrive) lane[l]    = time in neither compute nor all-reduce, of the lane's least
 * affected group
 */
#ifndef BROOM_DETECTORS_MODEL_H
#define BROOM_DETECTORS_MODEL_H

#include "detectors/grid.h"
#include "detectors/steps.h"

enum { USUAL_ROWS = 20 };

struct model {
    int32_t ranks, groups, replicas, lanes, data_groups, stages, classes, experts;
    bool inclusive;   /* what is sent as compute holds waits in tensor and expert groups */
    bool has_compute; /* this row has enough compute times */
    bool has_allreduce;
    double step_ms;      /* median over ranks */
    double busy_ms;      /* median over ranks of step less all-reduce */
    float *compute;      /* by rank: own work, less the waits that are known to be in it */
    float *ratio;        /* r by rank */
    float *own;          /* by rank; NAN without tensor peers */
    float *group;        /* by tensor group */
    float *work;         /* by replica; NAN with one stage */
    float *late;         /* by tensor group */
    float *late_lane;    /* by lane: mean of its ranks */
    float *lane;         /* by lane */
    float *transfer_ms;  /* by data group: least all-reduce time, the last one's own transfer */
    float *class_ms;     /* by class: reference compute of this row */
    float *class_usual;  /* by class: the same, slow mean; stands still while the row's differs */
    float *class_first;  /* by class: of the first USUAL_ROWS rows, whose median it starts from */
    float *class_sm;     /* by class: reference SM activity */
    float *class_tokens; /* by class: reference tokens */
    double token_products,
        token_squares; /* slow sums: how own work grows with the tokens of a step */
    int64_t usual_rows;
    float *sm; /* by rank: sm over its class's reference */
    float *scratch, *outside, *group_ratio;
    int32_t *replica_of_group; /* and the lane and stage, from the group's first rank */
    int32_t *lane_of_group;
    int32_t *expert_of_replica;
    int32_t *stage_of_group;
    int32_t *replica_start, *replica_groups; /* compressed rows: groups of each replica */
    int32_t *stage_start, *stage_groups;     /* and of each stage */
};

void model_init(struct model *model, const struct grid *grid);
void model_done(struct model *model);
/* learn: the row is a usual one, so the slow means may follow it. */
void model_row(struct model *model, const struct grid *grid, const struct row *row, bool learn);
/* Forgets the slow means: a new attempt. */
void model_restart(struct model *model);

#endif
