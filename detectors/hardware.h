/* Hardware and cluster events: folded by tray and rack, held for a moment to see whether the ranks
 * there still make steps, then told once.
 */
#ifndef BROOM_DETECTORS_HARDWARE_H
#define BROOM_DETECTORS_HARDWARE_H

#include "detectors/nvlink5.h"
#include "detectors/xid_table.h"

#include <stdbool.h>
#include <stdint.h>

/* What was reported of one tray (or of one rack as a whole) and not yet told. */
struct suspicion {
    int64_t first_ns; /* 0: none */
    int64_t last_ns;
    enum xid_class worst;
    int32_t code; /* of the first event of the worst class; JOB_NONE: not an Xid */
    int32_t subcode;
    char unit[24]; /* of an NVLink code: who reported it */
    char kind[24]; /* of that event */
    uint32_t gpus; /* bit g: a graver event named GPU g */
    int32_t events;
    bool whole; /* an event named no GPU */
    bool told;
};

struct hardware {
    struct suspicion *trays; /* by tray index */
    int32_t tray_count;
    struct suspicion *racks;
    int32_t rack_count;
    int64_t *not_ready_ns; /* by tray: node_not_ready at, 0 ready */
    int64_t *nic_down_ns;  /* by tray: newest nic_down, 0 none */
    int64_t checked_ns;    /* engine time of the last look */
    int waiting;           /* suspicions not yet told */
};

void hardware_done(struct hardware *hardware);

#endif
