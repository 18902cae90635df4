/* A handful of open rows, found by step number; closed ones are recycled. */
#include "detectors/steps.h"

#include "controller/base/mem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { ROWS_OPEN = 8, STEPS_BEFORE_CLOSE = 2, ABSENT_ROWS = 20 };

/* Which sample field feeds which stream. */
static const enum field STREAM_FIELD[STREAM_COUNT] = {
    [STREAM_STEP_MS] = FIELD_STEP_MS,
    [STREAM_COMPUTE] = FIELD_COMPUTE_MS,
    [STREAM_ALLREDUCE] = FIELD_ALLREDUCE_MS,
    [STREAM_RECV] = FIELD_RECV_MS,
    [STREAM_TP] = FIELD_TP_MS,
    [STREAM_EP] = FIELD_EP_MS,
    [STREAM_DATA] = FIELD_DATA_MS,
    [STREAM_SM] = FIELD_SM,
    [STREAM_MEM] = FIELD_MEM,
    [STREAM_LOSS] = FIELD_LOSS,
    [STREAM_GRAD] = FIELD_GRAD_NORM,
    [STREAM_TOKENS] = FIELD_TOKENS,
};

struct steps {
    int32_t ranks;
    struct row rows[ROWS_OPEN];
    int64_t closed;      /* last closed step; -1 none */
    int64_t finished;    /* newest step that half of the expected ranks reported */
    int64_t rows_closed; /* count since the attempt's start */
    int64_t *newest;     /* by rank: newest step reported, -1 */
    int64_t *seen_row;   /* by rank: rows_closed when last reported, -1 never */
    int32_t expected;    /* ranks that reported within the last ABSENT_ROWS rows */
};

static void row_init(struct row *row, int32_t ranks)
{
    row->step = -1;
    for (int s = 0; s < STREAM_COUNT; s++)
        row->values[s] = xcalloc((size_t)ranks, sizeof(float));
    row->sent = xcalloc((size_t)ranks, 1);
}

static void row_done(struct row *row)
{
    for (int s = 0; s < STREAM_COUNT; s++)
        xfree(row->values[s]);
    xfree(row->sent);
}

struct steps *steps_new(int32_t ranks)
{
    struct steps *steps = xcalloc(1, sizeof *steps);

    steps->ranks = ranks;
    steps->closed = -1;
    steps->newest = xcalloc((size_t)ranks, sizeof *steps->newest);
    steps->seen_row = xcalloc((size_t)ranks, sizeof *steps->seen_row);
    for (int i = 0; i < ROWS_OPEN; i++)
        row_init(&steps->rows[i], ranks);
    steps_restart(steps);
    return steps;
}

void steps_free(struct steps *steps)
{
    if (steps == NULL)
        return;
    for (int i = 0; i < ROWS_OPEN; i++)
        row_done(&steps->rows[i]);
    xfree(steps->newest);
    xfree(steps->seen_row);
    xfree(steps);
}

void steps_restart(struct steps *steps)
{
    for (int i = 0; i < ROWS_OPEN; i++)
        steps->rows[i].step = -1;
    steps->closed = -1;
    steps->finished = -1;
    steps->rows_closed = 0;
    steps->expected = 0;
    for (int32_t r = 0; r < steps->ranks; r++) {
        steps->newest[r] = -1;
        steps->seen_row[r] = -1;
    }
}

static struct row *oldest_row(struct steps *steps)
{
    struct row *oldest = NULL;

    for (int i = 0; i < ROWS_OPEN; i++) {
        struct row *row = &steps->rows[i];
        if (row->step >= 0 && (oldest == NULL || row->step < oldest->step))
            oldest = row;
    }
    return oldest;
}

/* The furthest row when few ranks ever reported it: somebody counts wrongly. */
static struct row *forsaken_row(struct steps *steps)
{
    struct row *furthest = &steps->rows[0];

    for (int i = 1; i < ROWS_OPEN; i++)
        if (steps->rows[i].step > furthest->step)
            furthest = &steps->rows[i];
    return 4 * furthest->reported < steps->expected ? furthest : NULL;
}

/* The open row of this step; a fresh one when there is room for it, else NULL. */
static struct row *find_row(struct steps *steps, int64_t step)
{
    struct row *free_row = NULL;

    for (int i = 0; i < ROWS_OPEN; i++) {
        if (steps->rows[i].step == step)
            return &steps->rows[i];
        if (steps->rows[i].step < 0)
            free_row = &steps->rows[i];
    }
    if (free_row == NULL)
        free_row = forsaken_row(steps);
    if (free_row == NULL)
        return NULL;
    free_row->step = step;
    free_row->reported = 0;
    free_row->streams = 0;
    free_row->first_ns = INT64_MAX;
    free_row->last_ns = 0;
    memset(free_row->sent, 0, (size_t)steps->ranks);
    return free_row;
}

/* Values that no real sender means: DCGM blanks, infinities, negative or absurd durations. */
static bool is_plausible(enum stream stream, double value)
{
    if (!isfinite(value))
        return false;
    if (stream == STREAM_SM || stream == STREAM_MEM)
        return value >= 0 && value <= 1.5;
    if (stream == STREAM_LOSS || stream == STREAM_GRAD)
        return fabs(value) < 1e30;
    return value >= 0 && value < 1e9;
}

static void row_put(struct row *row, int32_t rank, const struct sample *sample)
{
    for (int s = 0; s < STREAM_COUNT; s++) {
        enum field field = STREAM_FIELD[s];
        float kept = NAN;

        if (sample_has(sample, field)) {
            row->streams |= 1u << s;
            if (is_plausible((enum stream)s, sample->values[field]))
                kept = (float)sample->values[field];
            else if (s == STREAM_LOSS)
                row->sent[rank] |= SENT_NAN_LOSS;
            else if (s == STREAM_GRAD)
                row->sent[rank] |= SENT_NAN_GRAD;
        }
        row->values[s][rank] = kept;
    }
    row->sent[rank] |= SENT_STEP;
    row->reported++;
    if (sample->time_ns < row->first_ns)
        row->first_ns = sample->time_ns;
    if (sample->time_ns > row->last_ns)
        row->last_ns = sample->time_ns;
}

enum steps_outcome steps_feed(struct steps *steps, const struct sample *sample)
{
    int32_t rank = (int32_t)sample->rank;
    double number = sample->values[FIELD_STEP];
    struct row *row;

    assert(sample->rank >= 0 && sample->rank < steps->ranks);
    if (!sample_has(sample, FIELD_STEP) || !(number >= 0 && number < 9e15) ||
        !sample_has(sample, FIELD_STEP_MS) ||
        !is_plausible(STREAM_STEP_MS, sample->values[FIELD_STEP_MS]) ||
        sample->values[FIELD_STEP_MS] <= 0)
        return STEPS_NOT_FINITE;
    int64_t step = (int64_t)number;

    if (step <= steps->closed)
        return STEPS_LATE;
    row = find_row(steps, step);
    if (row == NULL)
        return STEPS_LATE;
    if (row->sent[rank] != 0)
        return STEPS_DUPLICATE;
    row_put(row, rank, sample);
    if (step > steps->newest[rank])
        steps->newest[rank] = step;
    if (steps->seen_row[rank] < 0)
        steps->expected++;
    steps->seen_row[rank] = steps->rows_closed;
    if (step > steps->finished && 2 * row->reported >= steps->expected && steps->rows_closed > 0)
        steps->finished = step;
    return STEPS_USED;
}

/* Ranks whose newest step is at least STEPS_BEFORE_CLOSE rows past this one: since numbers have
 * gaps, rows are counted, not numbers. */
static bool is_left_behind(const struct steps *steps, const struct row *oldest)
{
    int later = 0;
    int32_t most = 0;

    for (int i = 0; i < ROWS_OPEN; i++) {
        const struct row *row = &steps->rows[i];
        if (row->step > oldest->step) {
            later++;
            if (row->reported > most)
                most = row->reported;
        }
    }
    if (later >= ROWS_OPEN - 1)
        return true;
    return later >= STEPS_BEFORE_CLOSE && 2 * most >= steps->expected;
}

const struct row *steps_ready(struct steps *steps)
{
    struct row *oldest = oldest_row(steps);
    bool learned = steps->rows_closed > 0;

    if (oldest == NULL)
        return NULL;
    if ((learned && oldest->reported >= steps->expected) || is_left_behind(steps, oldest)) {
        for (int32_t r = 0; r < steps->ranks; r++)
            if (oldest->sent[r] == 0)
                for (int s = 0; s < STREAM_COUNT; s++)
                    oldest->values[s][r] = NAN;
        return oldest;
    }
    return NULL;
}

/* A rank that was silent for ABSENT_ROWS rows is not waited for. */
static void count_expected(struct steps *steps)
{
    int32_t expected = 0;

    for (int32_t r = 0; r < steps->ranks; r++)
        if (steps->seen_row[r] >= 0 && steps->rows_closed - steps->seen_row[r] <= ABSENT_ROWS)
            expected++;
        else
            steps->seen_row[r] = -1;
    steps->expected = expected;
}

void steps_pop(struct steps *steps)
{
    struct row *oldest = oldest_row(steps);

    assert(oldest != NULL);
    steps->closed = oldest->step;
    if (steps->closed > steps->finished)
        steps->finished = steps->closed;
    oldest->step = -1;
    steps->rows_closed++;
    count_expected(steps);
}

int64_t steps_last_closed(const struct steps *steps)
{
    return steps->closed;
}

int64_t steps_finished(const struct steps *steps)
{
    return steps->finished;
}

int64_t steps_of_rank(const struct steps *steps, int32_t rank)
{
    return steps->newest[rank];
}

int32_t steps_expected(const struct steps *steps)
{
    return steps->expected;
}
