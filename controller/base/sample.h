/* One line of telemetry, typed: what formats.md section 1 calls hello, step, beat, mark, gpu,
 * event. Made by ingest, consumed by series and detectors. Strings are lent: they live as long as
 * the buffer that was parsed, so whoever keeps one copies it.
 */
#ifndef BROOM_BASE_SAMPLE_H
#define BROOM_BASE_SAMPLE_H

#include "controller/base/text.h"

enum measurement {
    MEASUREMENT_HELLO = 0,
    MEASUREMENT_STEP,
    MEASUREMENT_BEAT,
    MEASUREMENT_MARK,
    MEASUREMENT_GPU,
    MEASUREMENT_EVENT,
    MEASUREMENT_COUNT
};

/* Numeric fields of all measurements; each measurement uses a subset. */
enum field {
    /* step */
    FIELD_STEP = 0,
    FIELD_STEP_MS,
    FIELD_ALLREDUCE_MS,
    FIELD_COMPUTE_MS,
    FIELD_RECV_MS,
    FIELD_TP_MS,
    FIELD_EP_MS,
    FIELD_DATA_MS,
    FIELD_SM,
    FIELD_MEM,
    FIELD_LOSS,
    FIELD_GRAD_NORM,
    FIELD_TOKENS,
    /* hello */
    FIELD_GPU,
    FIELD_WORLD,
    FIELD_TP,
    FIELD_PP,
    FIELD_DP,
    FIELD_EP,
    FIELD_CP,
    FIELD_ATTEMPT,
    FIELD_RAIL,
    /* mark */
    FIELD_DUR_MS,
    /* gpu */
    FIELD_POWER_W,
    FIELD_TEMP_C,
    FIELD_CLOCK_MHZ,
    FIELD_NVLINK_TX,
    FIELD_NVLINK_RX,
    /* event */
    FIELD_CODE,
    FIELD_SUBCODE,
    FIELD_TRAY,
    FIELD_COUNT
};

enum { RANK_NONE = -1 };

struct sample {
    enum measurement measurement;
    int64_t time_ns;            /* since the epoch; 0 when the line had none */
    int64_t rank;               /* RANK_NONE when the line has no rank tag */
    uint64_t present;           /* bit FIELD_x set: values[FIELD_x] was sent (it may be NaN) */
    double values[FIELD_COUNT]; /* only entries whose bit is set are defined */
    struct view job;            /* empty when not sent; so are all below */
    struct view host;
    struct view rack;
    struct view gpu;   /* tag `gpu` of gpu and event lines */
    struct view rail;  /* tag `rail` of event lines */
    struct view kind;  /* event and mark */
    struct view phase; /* beat */
    struct view uuid;
    struct view pci;
    struct view message;
};

static inline bool sample_has(const struct sample *sample, enum field field)
{
    return (sample->present >> field) & 1u;
}

const char *measurement_name(enum measurement measurement);
const char *field_name(enum field field); /* as on the wire: "step_ms" */

#endif
