/* Names of measurements and fields, as on the wire. */
#include "controller/base/sample.h"

#include <assert.h>

static const char *const MEASUREMENT_NAMES[MEASUREMENT_COUNT] = {
    [MEASUREMENT_HELLO] = "hello", [MEASUREMENT_STEP] = "step", [MEASUREMENT_BEAT] = "beat",
    [MEASUREMENT_MARK] = "mark",   [MEASUREMENT_GPU] = "gpu",   [MEASUREMENT_EVENT] = "event",
};

static const char *const FIELD_NAMES[FIELD_COUNT] = {
    [FIELD_STEP] = "step",
    [FIELD_STEP_MS] = "step_ms",
    [FIELD_ALLREDUCE_MS] = "allreduce_ms",
    [FIELD_COMPUTE_MS] = "compute_ms",
    [FIELD_RECV_MS] = "recv_ms",
    [FIELD_TP_MS] = "tp_ms",
    [FIELD_EP_MS] = "ep_ms",
    [FIELD_DATA_MS] = "data_ms",
    [FIELD_SM] = "sm",
    [FIELD_MEM] = "mem",
    [FIELD_LOSS] = "loss",
    [FIELD_GRAD_NORM] = "grad_norm",
    [FIELD_TOKENS] = "tokens",
    [FIELD_GPU] = "gpu",
    [FIELD_WORLD] = "world",
    [FIELD_TP] = "tp",
    [FIELD_PP] = "pp",
    [FIELD_DP] = "dp",
    [FIELD_EP] = "ep",
    [FIELD_CP] = "cp",
    [FIELD_ATTEMPT] = "attempt",
    [FIELD_RAIL] = "rail",
    [FIELD_DUR_MS] = "dur_ms",
    [FIELD_POWER_W] = "power_w",
    [FIELD_TEMP_C] = "temp_c",
    [FIELD_CLOCK_MHZ] = "clock_mhz",
    [FIELD_NVLINK_TX] = "nvlink_tx",
    [FIELD_NVLINK_RX] = "nvlink_rx",
    [FIELD_CODE] = "code",
    [FIELD_SUBCODE] = "subcode",
    [FIELD_TRAY] = "tray",
};

const char *measurement_name(enum measurement measurement)
{
    assert(measurement < MEASUREMENT_COUNT);
    return MEASUREMENT_NAMES[measurement];
}

const char *field_name(enum field field)
{
    assert(field < FIELD_COUNT);
    return FIELD_NAMES[field];
}
