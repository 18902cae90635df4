/* A sample as a line of Influx line protocol. */
#include "controller/rehearse/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* How a field is written: as an integer, or with so many decimals. */
static int decimals_of(enum field field)
{
    switch (field) {
    case FIELD_STEP:
    case FIELD_TOKENS:
    case FIELD_GPU:
    case FIELD_WORLD:
    case FIELD_TP:
    case FIELD_PP:
    case FIELD_DP:
    case FIELD_EP:
    case FIELD_CP:
    case FIELD_ATTEMPT:
    case FIELD_RAIL:
    case FIELD_CODE:
    case FIELD_SUBCODE:
    case FIELD_TRAY:
        return 0;
    case FIELD_STEP_MS:
    case FIELD_ALLREDUCE_MS:
    case FIELD_COMPUTE_MS:
    case FIELD_RECV_MS:
    case FIELD_TP_MS:
    case FIELD_EP_MS:
    case FIELD_DATA_MS:
        return 2;
    case FIELD_DUR_MS:
    case FIELD_POWER_W:
    case FIELD_TEMP_C:
    case FIELD_CLOCK_MHZ:
    case FIELD_NVLINK_TX:
    case FIELD_NVLINK_RX:
        return 1;
    case FIELD_SM:
    case FIELD_MEM:
    case FIELD_GRAD_NORM:
        return 3;
    case FIELD_LOSS:
    case FIELD_COUNT:
        break;
    }
    return 4;
}

/* Tag values: comma, equals sign and blank are escaped. */
static void add_tag(struct text *out, const char *name, struct view value)
{
    if (value.length == 0)
        return;
    text_addf(out, ",%s=", name);
    for (size_t i = 0; i < value.length; i++) {
        char c = value.bytes[i];
        if (c == ',' || c == '=' || c == ' ' || c == '\\')
            text_add_bytes(out, "\\", 1);
        text_add_bytes(out, &c, 1);
    }
}

static void add_separator(struct text *out, bool *any)
{
    text_add_bytes(out, *any ? "," : " ", 1);
    *any = true;
}

static void add_string(struct text *out, const char *name, struct view value, bool *any)
{
    if (value.length == 0)
        return;
    add_separator(out, any);
    text_addf(out, "%s=\"", name);
    for (size_t i = 0; i < value.length; i++) {
        if (value.bytes[i] == '"' || value.bytes[i] == '\\')
            text_add_bytes(out, "\\", 1);
        text_add_bytes(out, &value.bytes[i], 1);
    }
    text_add_bytes(out, "\"", 1);
}

static void add_number(struct text *out, enum field field, double value, bool *any)
{
    int decimals = decimals_of(field);
    char buffer[64];
    int length;
    add_separator(out, any);
    if (!isfinite(value))
        length = snprintf(buffer, sizeof buffer, "%s=NaN", field_name(field));
    else if (decimals == 0)
        length = snprintf(buffer, sizeof buffer, "%s=%" PRId64 "i", field_name(field),
                          (int64_t)value);
    else
        length = snprintf(buffer, sizeof buffer, "%s=%.*f", field_name(field), decimals, value);
    text_add_bytes(out, buffer, length > 0 ? (size_t)length : 0);
}

void sample_add_line(const struct sample *sample, struct text *out)
{
    bool any = false;
    bool host_is_tag = sample->measurement != MEASUREMENT_HELLO;
    text_add(out, measurement_name(sample->measurement));
    add_tag(out, "job", sample->job);
    if (sample->rank >= 0)
        text_addf(out, ",rank=%" PRId64, sample->rank);
    if (host_is_tag)
        add_tag(out, "host", sample->host);
    add_tag(out, "rack", sample->rack);
    add_tag(out, "gpu", sample->gpu);
    add_tag(out, "rail", sample->rail);
    if (!host_is_tag)
        add_string(out, "host", sample->host, &any);
    add_string(out, "kind", sample->kind, &any);
    for (int f = 0; f < FIELD_COUNT; f++)
        if (sample_has(sample, (enum field)f))
            add_number(out, (enum field)f, sample->values[f], &any);
    add_string(out, "phase", sample->phase, &any);
    add_string(out, "uuid", sample->uuid, &any);
    add_string(out, "pci", sample->pci, &any);
    add_string(out, "message", sample->message, &any);
    text_addf(out, " %" PRId64 "\n", sample->time_ns);
}
