/* Xid 144 to 150 of the fifth NVLink generation mean a fault or nothing at all: the sub-code, the
 * unit that reports and its error status tell which. Sources stand in detectors/README.md.
 */
#ifndef BROOM_DETECTORS_NVLINK5_H
#define BROOM_DETECTORS_NVLINK5_H

#include "controller/base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum nvlink5_severity { NVLINK5_UNKNOWN = 0, NVLINK5_NONFATAL, NVLINK5_FATAL };

struct nvlink5 {
    enum nvlink5_severity severity;
    char unit[24];   /* "RLW_SRC_TRACK"; empty when unknown */
    int32_t subcode; /* 0 to 63; -1 when unknown */
    int32_t link;    /* -1 when unknown or all */
};

bool nvlink5_is_code(int64_t code);

/* subcode: as the event brought it, -1 none. Up to 63 it is the sub-code by itself, which alone
 * says little; above it is the whole first word that the driver prints. message: the driver's text,
 * as a whole or only what follows the code: `RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2
 * 0x00000008
 * ...)`. What the driver says of the severity counts; without it the words are looked up. */
struct nvlink5 nvlink5_decode(int32_t code, int64_t subcode, struct view message);

#endif
