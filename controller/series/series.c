/* Rings of steps and the minutes that are still open. */
#include "controller/series/series.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* A slot for each minute that can be open: two that end, the present one, and those of clocks that
 * are ahead. */
enum { STEPS_MIN = 16, STEPS_MAX = 65536, MINUTES_AHEAD_MAX = 10, OPEN_MINUTES = 16, RERUN_S = 60 };
_Static_assert(OPEN_MINUTES > MINUTES_AHEAD_MAX + 3, "open minutes must not share a slot");
enum { NOT_SENT = INT32_MIN };
static const int64_t NS_PER_S = 1000000000;
static const int64_t NS_PER_MINUTE = INT64_C(60) * 1000000000;
static const int64_t NS_PER_MS = 1000000;
static const double PART_MAX =
    1.5; /* sm and mem are parts of one, with some slack for rounding senders */

/* Fields of `step` that are kept; FIELD_STEP is the row's own number. */
static const enum field METRICS[] = {FIELD_STEP_MS, FIELD_ALLREDUCE_MS, FIELD_COMPUTE_MS,
                                     FIELD_RECV_MS, FIELD_TP_MS,        FIELD_EP_MS,
                                     FIELD_DATA_MS, FIELD_SM,           FIELD_MEM,
                                     FIELD_LOSS,    FIELD_GRAD_NORM,    FIELD_TOKENS};
enum { METRIC_COUNT = sizeof METRICS / sizeof METRICS[0] };

struct row {
    int64_t step;              /* -1: empty */
    int64_t base_ns;           /* time of its first sample; others are kept as distance in ms */
    int64_t least_ns, most_ns; /* of its samples' times */
    int64_t order;             /* of arrival: steps go back after a restart */
};

struct minute {
    int64_t start_ns;          /* 0: unused */
    float *sums[METRIC_COUNT]; /* world_size each, NULL until first used */
    uint16_t *counts[METRIC_COUNT];
};

struct series {
    int32_t world_size;
    int32_t capacity;
    struct row *rows;
    int32_t *offset_ms;          /* capacity x world_size; NOT_SENT where a rank sent none */
    float *values[METRIC_COUNT]; /* the same, NULL until first sent */
    struct minute minutes[OPEN_MINUTES]; /* by minute number modulo */
    int64_t now_ns; /* the senders' time when minutes were last taken; 0: never */
    int64_t rows_made;
    size_t bytes;
    struct series_counts counts;
};

struct series *series_new(int32_t world_size, size_t budget_bytes)
{
    struct series *series = xcalloc(1, sizeof *series);
    size_t row_bytes = (size_t)world_size * sizeof(float) * (METRIC_COUNT + 1);
    size_t steps = budget_bytes / row_bytes;
    series->world_size = world_size;
    series->capacity = steps < STEPS_MIN   ? STEPS_MIN
                       : steps > STEPS_MAX ? STEPS_MAX
                                           : (int32_t)steps;
    series->rows = xcalloc((size_t)series->capacity, sizeof *series->rows);
    for (int32_t i = 0; i < series->capacity; i++)
        series->rows[i].step = -1;
    return series;
}

static void minute_clear(struct minute *minute)
{
    for (int m = 0; m < METRIC_COUNT; m++) {
        xfree(minute->sums[m]);
        xfree(minute->counts[m]);
    }
    *minute = (struct minute){0};
}

void series_free(struct series *series)
{
    if (series == NULL)
        return;
    for (int m = 0; m < METRIC_COUNT; m++)
        xfree(series->values[m]);
    for (int i = 0; i < OPEN_MINUTES; i++)
        minute_clear(&series->minutes[i]);
    xfree(series->offset_ms);
    xfree(series->rows);
    xfree(series);
}

/* A plane of capacity x world_size, or NULL when the system has no memory for it. */
static void *plane_new(struct series *series, size_t cell_bytes)
{
    size_t cells = (size_t)series->capacity * (size_t)series->world_size;
    void *plane = try_calloc(cells, cell_bytes);
    if (plane == NULL)
        series->counts.no_memory++;
    else
        series->bytes += cells * cell_bytes;
    return plane;
}

static void row_start(struct series *series, int32_t slot, const struct sample *sample,
                      int64_t step)
{
    size_t first = (size_t)slot * (size_t)series->world_size;
    for (int32_t r = 0; r < series->world_size; r++)
        series->offset_ms[first + (size_t)r] = NOT_SENT;
    for (int m = 0; m < METRIC_COUNT; m++)
        for (int32_t r = 0; series->values[m] != NULL && r < series->world_size; r++)
            series->values[m][first + (size_t)r] = NAN;
    series->rows[slot] = (struct row){.step = step,
                                      .base_ns = sample->time_ns,
                                      .least_ns = sample->time_ns,
                                      .most_ns = sample->time_ns,
                                      .order = series->rows_made++};
}

/* Whether the rank runs this step again, after a restart. Judged by its own clock alone: another
 * rank's may be an hour off, and that must not take the row from all others. */
static bool is_rerun(const struct series *series, int32_t slot, const struct sample *sample)
{
    int32_t offset =
        series->offset_ms[(size_t)slot * (size_t)series->world_size + (size_t)sample->rank];
    if (offset == NOT_SENT)
        return false;
    return sample->time_ns - (series->rows[slot].base_ns + offset * NS_PER_MS) > RERUN_S * NS_PER_S;
}

/* The row of the sample's step: the one that is there, a new one, or -1 when the ring has gone past
 * it. A lower step than the slot's is late, unless its time says that the job was restarted. */
static int32_t row_find(struct series *series, const struct sample *sample)
{
    double number = sample->values[FIELD_STEP];
    if (!sample_has(sample, FIELD_STEP) || !(number >= 0 && number < 9.0e15))
        return -1;
    int64_t step = (int64_t)number;
    int32_t slot = (int32_t)(step % series->capacity);
    const struct row *row = &series->rows[slot];
    if (row->step == step && !is_rerun(series, slot, sample))
        return slot;
    if (row->step > step && sample->time_ns < row->least_ns)
        return -1;
    row_start(series, slot, sample, step);
    return slot;
}

static float *metric_plane(struct series *series, int metric)
{
    if (series->values[metric] != NULL)
        return series->values[metric];
    series->values[metric] = plane_new(series, sizeof(float));
    size_t cells = (size_t)series->capacity * (size_t)series->world_size;
    for (size_t i = 0; series->values[metric] != NULL && i < cells; i++)
        series->values[metric][i] = NAN;
    return series->values[metric];
}

static bool is_closed(int64_t start_ns, int64_t now_ns)
{
    return now_ns - start_ns >= NS_PER_MINUTE + ROLLUP_LATE_S * NS_PER_S;
}

static bool is_far_ahead(int64_t start_ns, int64_t now_ns)
{
    return start_ns - now_ns > MINUTES_AHEAD_MAX * NS_PER_MINUTE;
}

/* The open minute of a time, or NULL: it has closed, or the time is that of a clock far ahead. */
static struct minute *minute_of(struct series *series, int64_t time_ns)
{
    int64_t start_ns = time_ns - time_ns % NS_PER_MINUTE;
    struct minute *minute = &series->minutes[start_ns / NS_PER_MINUTE % OPEN_MINUTES];
    bool is_refused = series->now_ns > 0 && (is_closed(start_ns, series->now_ns) ||
                                             is_far_ahead(start_ns, series->now_ns));
    if (is_refused || minute->start_ns > start_ns)
        return NULL;
    if (minute->start_ns == start_ns)
        return minute;
    minute_clear(minute);
    minute->start_ns = start_ns;
    return minute;
}

static void minute_add(const struct series *series, struct minute *minute, int metric, int64_t rank,
                       float value)
{
    if (minute->sums[metric] == NULL) {
        minute->sums[metric] = xcalloc((size_t)series->world_size, sizeof(float));
        minute->counts[metric] = xcalloc((size_t)series->world_size, sizeof(uint16_t));
    }
    if (minute->counts[metric][rank] == UINT16_MAX)
        return;
    minute->sums[metric][rank] += value;
    minute->counts[metric][rank]++;
}

/* As a ring keeps it; NAN when it is not finite in that precision, or no part of one: DCGM's codes
 * for "blank" and "not supported" are huge numbers. */
static float kept_value(enum field metric, double value)
{
    bool is_part = metric == FIELD_SM || metric == FIELD_MEM;
    double most = is_part ? PART_MAX : (double)FLT_MAX;
    return value >= -most && value <= most ? (float)value : NAN;
}

static void keep_values(struct series *series, size_t cell, const struct sample *sample)
{
    struct minute *minute = minute_of(series, sample->time_ns);
    series->counts.no_minute += minute == NULL ? 1 : 0;
    for (int m = 0; m < METRIC_COUNT; m++) {
        if (!sample_has(sample, METRICS[m]))
            continue;
        float value = kept_value(METRICS[m], sample->values[METRICS[m]]);
        float *plane = metric_plane(series, m);
        if (plane != NULL)
            plane[cell] = value;
        if (minute != NULL && !isnan(value))
            minute_add(series, minute, m, sample->rank, value);
    }
}

void series_add(struct series *series, const struct sample *sample)
{
    if (sample->measurement != MEASUREMENT_STEP)
        return;
    assert(sample->rank >= 0 && sample->rank < series->world_size);
    if (series->offset_ms == NULL)
        series->offset_ms = plane_new(series, sizeof(int32_t));
    int32_t slot = series->offset_ms != NULL ? row_find(series, sample) : -1;
    if (slot < 0) {
        series->counts.too_old++;
        return;
    }
    struct row *row = &series->rows[slot];
    int64_t offset_ms = (sample->time_ns - row->base_ns) / NS_PER_MS;
    if (offset_ms <= NOT_SENT || offset_ms > INT32_MAX) {
        series->counts.clock_off++;
        return;
    }
    size_t cell = (size_t)slot * (size_t)series->world_size + (size_t)sample->rank;
    series->offset_ms[cell] = (int32_t)offset_ms;
    row->least_ns = sample->time_ns < row->least_ns ? sample->time_ns : row->least_ns;
    row->most_ns = sample->time_ns > row->most_ns ? sample->time_ns : row->most_ns;
    keep_values(series, cell, sample);
    series->counts.kept++;
}

struct series_counts series_counts(const struct series *series)
{
    return series->counts;
}

size_t series_bytes(const struct series *series)
{
    return series->bytes;
}

int32_t series_steps(const struct series *series)
{
    return series->capacity;
}

/* ---- minutes ---- */

static bool take_metric(struct series *series, struct minute *minute, int metric,
                        struct rollup *ret_rollup)
{
    if (minute->sums[metric] == NULL)
        return false;
    *ret_rollup = (struct rollup){.metric = METRICS[metric],
                                  .minute_ns = minute->start_ns,
                                  .ranks = series->world_size,
                                  .values = TAKE(minute->sums[metric])};
    for (int32_t r = 0; r < series->world_size; r++) {
        uint16_t count = minute->counts[metric][r];
        ret_rollup->values[r] = count > 0 ? ret_rollup->values[r] / (float)count : NAN;
    }
    xfree(TAKE(minute->counts[metric]));
    return true;
}

bool series_take_rollup(struct series *series, int64_t now_ns, struct rollup *ret_rollup)
{
    series->now_ns = now_ns;
    for (int i = 0; i < OPEN_MINUTES; i++) {
        struct minute *minute = &series->minutes[i];
        if (minute->start_ns == 0)
            continue;
        for (int m = 0; m < METRIC_COUNT && is_closed(minute->start_ns, now_ns); m++)
            if (take_metric(series, minute, m, ret_rollup))
                return true;
        /* Emptied, or of a clock far ahead that spoke before the time was known. */
        if (is_closed(minute->start_ns, now_ns) || is_far_ahead(minute->start_ns, now_ns))
            minute_clear(minute);
    }
    return false;
}

void rollup_done(struct rollup *rollup)
{
    xfree(rollup->values);
    *rollup = (struct rollup){0};
}

/* ---- windows ---- */

static int metric_index(enum field metric)
{
    for (int m = 0; m < METRIC_COUNT; m++)
        if (METRICS[m] == metric)
            return m;
    return -1;
}

static void add_row(const struct series *series, int metric, int32_t slot, int64_t from_ns,
                    int64_t to_ns, struct raw_window *window)
{
    size_t first = (size_t)slot * (size_t)series->world_size;
    for (int32_t r = 0; r < series->world_size; r++) {
        float value = series->values[metric][first + (size_t)r];
        int64_t time_ns = series->rows[slot].base_ns +
                          series->offset_ms[first + (size_t)r] * NS_PER_MS;
        if (isnan(value) || time_ns < from_ns || time_ns > to_ns)
            continue;
        window->time_ns[window->count] = time_ns;
        window->step[window->count] = series->rows[slot].step;
        window->rank[window->count] = r;
        window->value[window->count++] = value;
    }
}

/* Rows that may hold samples of the window, in the order in which their steps began. */
static int32_t rows_in_order(const struct series *series, int64_t from_ns, int64_t to_ns,
                             int32_t *ret_slots)
{
    int32_t count = 0;
    for (int32_t i = 0; i < series->capacity; i++) {
        const struct row *row = &series->rows[i];
        if (row->step < 0 || row->most_ns < from_ns || row->least_ns > to_ns)
            continue;
        int32_t at = count++;
        /* Slots are almost in order: only the ring's seam and restarts move anything. */
        for (; at > 0 && series->rows[ret_slots[at - 1]].order > row->order; at--)
            ret_slots[at] = ret_slots[at - 1];
        ret_slots[at] = i;
    }
    return count;
}

struct raw_window series_window(const struct series *series, enum field metric, int64_t from_ns,
                                int64_t to_ns)
{
    struct raw_window window = {0};
    int index = metric_index(metric);
    if (index < 0 || series->values[index] == NULL)
        return window;
    AUTO_FREE int32_t *slots = xcalloc((size_t)series->capacity, sizeof *slots);
    int32_t rows = rows_in_order(series, from_ns, to_ns, slots);
    size_t most = (size_t)rows * (size_t)series->world_size;
    window.time_ns = xcalloc(most, sizeof *window.time_ns);
    window.step = xcalloc(most, sizeof *window.step);
    window.rank = xcalloc(most, sizeof *window.rank);
    window.value = xcalloc(most, sizeof *window.value);
    for (int32_t i = 0; i < rows; i++)
        add_row(series, index, slots[i], from_ns, to_ns, &window);
    return window;
}

void raw_window_done(struct raw_window *window)
{
    xfree(window->time_ns);
    xfree(window->step);
    xfree(window->rank);
    xfree(window->value);
    *window = (struct raw_window){0};
}
