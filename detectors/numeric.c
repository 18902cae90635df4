/* NaN: most of those who report loss or gradient norm report no number. One lost value is no fault.
 * Spike: log loss over the median of its last values by SPIKE_LOG and by eight times what it
 * usually moves from row to row, three rows long.
 * Silent corruption: where ranks send norms of their own (before the reduction; one number for all
 * says nothing), a rank that is far out in several of the last rows, more often than chance has it
 * for any. */
#include "detectors/numeric.h"

#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

static const double SPIKE_LOG = 0.1, SPIKE_SPREADS = 8;
/* Far out: so many spreads of all ranks' logarithms, and by so much. */
static const double STRAY_SPREADS = 8, STRAY_LOG = 0.4;
enum { STRAY_ROWS = 32, STRAY_LEAST = 3, STRAY_RANKS_LEAST = 8 };
enum { SPIKE_ROWS = 3, NAN_ROWS = 2, CALM_ROWS = 8, LEARNED_ROWS = 12, REFERENCE_ROWS = 8 };

void numeric_init(struct numeric *numeric, int32_t ranks)
{
    *numeric = (struct numeric){.strays = xcalloc((size_t)ranks, sizeof *numeric->strays),
                                .ranks = ranks};
}

void numeric_done(struct numeric *numeric)
{
    xfree(numeric->strays);
    *numeric = (struct numeric){.ranks = 0};
}

void numeric_restart(struct numeric *numeric)
{
    uint32_t *strays = numeric->strays;
    int32_t ranks = numeric->ranks;

    memset(strays, 0, (size_t)ranks * sizeof *strays);
    *numeric = (struct numeric){.strays = strays, .ranks = ranks};
}

struct tally {
    int32_t sent, not_finite;
    int32_t first_bad; /* the only bad rank, when not_finite is 1 */
    double median;
};

static struct tally tally_stream(struct engine *engine, const struct row *row, enum stream stream,
                                 uint8_t nan_bit)
{
    struct tally tally = {.first_bad = JOB_NONE, .median = (double)NAN};
    size_t n = 0;

    for (int32_t r = 0; r < engine->job->world_size; r++) {
        float value = row->values[stream][r];
        if (isfinite(value)) {
            engine->model.scratch[n++] = value;
            tally.sent++;
        } else if (row->sent[r] & nan_bit) {
            if (tally.first_bad == JOB_NONE)
                tally.first_bad = r;
            tally.sent++;
            tally.not_finite++;
        }
    }
    if (n > 0)
        tally.median = robust_median(engine->model.scratch, n);
    return tally;
}

static int numeric_open(const struct engine *engine)
{
    for (int i = 0; i < engine->open_count; i++)
        if (engine->open[i]->verdict.kind == VERDICT_NUMERIC &&
            engine->open[i]->verdict.scope == SCOPE_JOB)
            return i;
    return -1;
}

static void raise_numeric(struct engine *engine, const char *what, double value)
{
    struct verdict verdict = verdict_start(engine, VERDICT_NUMERIC, SCOPE_JOB);

    if (numeric_open(engine) >= 0) {
        verdict_done(&verdict);
        return;
    }
    verdict_set_domain(engine, &verdict, 0);
    verdict.since_step = engine->numeric.since_step;
    verdict_add_evidence(&verdict, what, value);
    (void)engine_open(engine, verdict, NULL);
    engine->numeric.calm_rows = 0;
}

/* How far the newest value lies over the median of the last ones, in logs, when that is far out;
 * else 0. */
static double jump_over(const float *ring, int64_t rows, double now)
{
    float scratch[NUMERIC_RING];
    size_t n = rows < NUMERIC_RING ? (size_t)rows : NUMERIC_RING;

    if (rows < LEARNED_ROWS)
        return 0;
    for (size_t i = 0; i < REFERENCE_ROWS; i++)
        scratch[i] = ring[(size_t)(rows - 1 - (int64_t)i) % NUMERIC_RING];
    double median = robust_median(scratch, REFERENCE_ROWS);

    for (size_t i = 0; i + 1 < n; i++)
        scratch[i] = ring[(size_t)(rows - 1 - (int64_t)i) % NUMERIC_RING] -
                     ring[(size_t)(rows - 2 - (int64_t)i) % NUMERIC_RING];
    double usual = fmax(robust_mad(scratch, n - 1, 0), 0.005);
    double over = now - median;

    return over > SPIKE_LOG && over > SPIKE_SPREADS * usual ? over : 0;
}

static void watch_nan(struct engine *engine, const struct tally *loss, const struct tally *grad)
{
    struct numeric *numeric = &engine->numeric;
    bool bad_loss = loss->not_finite > 0 && 2 * loss->not_finite >= loss->sent;
    bool bad_grad = grad->not_finite > 0 && 2 * grad->not_finite >= grad->sent;

    if (!bad_loss && !bad_grad) {
        numeric->nan_rows = 0;
        return;
    }
    if (numeric->nan_rows++ == 0)
        numeric->since_step = engine->last_step;
    /* Every rank at once is enough; a lone reporter may have lost one value. */
    if (numeric->nan_rows >= NAN_ROWS || (bad_grad && grad->sent > 1))
        raise_numeric(engine, "not_finite_ranks", bad_grad ? grad->not_finite : loss->not_finite);
}

/* True when this value is a jump; values that jump do not enter the ring. */
static bool watch_jump(float *ring, int64_t *rows, double value)
{
    double log_value = log(value);

    if (!isfinite(log_value))
        return false;
    if (jump_over(ring, *rows, log_value) > 0)
        return true;
    ring[*rows % NUMERIC_RING] = (float)log_value;
    ++*rows;
    return false;
}

/* Shifts the row into each rank's bits; returns how many ranks are far out, 0 when the row says
 * nothing of single ranks. */
static int32_t shift_strays(struct engine *engine, const struct row *row)
{
    const float *grad = row->values[STREAM_GRAD];
    float *logs = engine->model.outside; /* free between rows */
    int32_t far = 0;
    size_t n = 0;

    for (int32_t r = 0; r < engine->numeric.ranks; r++) {
        logs[r] = grad[r] > 0 ? logf(grad[r]) : NAN;
        engine->numeric.strays[r] <<= 1;
        if (isfinite(logs[r]))
            engine->model.scratch[n++] = logs[r];
    }
    if (n < STRAY_RANKS_LEAST)
        return 0;
    double median = robust_median(engine->model.scratch, n);
    double spread = robust_mad(engine->model.scratch, n, median);
    /* One number for all, or nearly so. */
    if (spread < 1e-4)
        return 0;
    for (int32_t r = 0; r < engine->numeric.ranks; r++) {
        double over = fabs((double)logs[r] - median);
        bool is_far = over > STRAY_LOG && over > STRAY_SPREADS * spread;
        engine->numeric.strays[r] |= is_far;
        far += is_far;
    }
    return far;
}

static int count_bits(uint32_t bits)
{
    int count = 0;

    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
}

/* Evidence in nats that a rank strays more often than the others do: k of the rows against their
 * common rate, a Chernoff bound. */
static double stray_nats(int k, double rate)
{
    double part = (double)k / STRAY_ROWS;

    if (part <= rate)
        return 0;
    return STRAY_ROWS *
           (part * log(part / rate) + (part < 1 ? (1 - part) * log((1 - part) / (1 - rate)) : 0));
}

static void raise_stray(struct engine *engine, int32_t rank, int count, double nats)
{
    AUTO_FREE uint8_t *ranks = xcalloc((size_t)engine->job->world_size, 1);
    struct verdict verdict = verdict_start(engine, VERDICT_NUMERIC, SCOPE_RANK);

    ranks[rank] = 1;
    verdict_set_domain(engine, &verdict, rank);
    if (engine_find_open(engine, SCOPE_RANK, verdict.id) != NULL) {
        verdict_done(&verdict);
        return;
    }
    verdict_fill_ranks(engine, &verdict, ranks);
    verdict.cause = CAUSE_GPU;
    verdict.confidence = 1 - exp(-fmin(nats, 30));
    verdict_add_evidence(&verdict, "stray_gradient_norms", count);
    verdict_add_evidence(&verdict, "of_steps", STRAY_ROWS);
    verdict_add_evidence(&verdict, "stray_nats", nats);
    engine_put_past(engine, &verdict, ranks);
    (void)engine_open(engine, verdict, NULL);
}

static void close_strays(struct engine *engine)
{
    for (int i = engine->open_count - 1; i >= 0; i--) {
        const struct verdict *verdict = &engine->open[i]->verdict;
        if (verdict->kind == VERDICT_NUMERIC && verdict->scope == SCOPE_RANK &&
            verdict->rank_count == 1 && engine->numeric.strays[verdict->ranks[0]] == 0)
            engine_close(engine, i, true);
    }
}

static void watch_strays(struct engine *engine, const struct row *row)
{
    int32_t far = shift_strays(engine, row), most = 0, worst = 0;
    int64_t all = 0;

    close_strays(engine);
    if (engine->numeric.stray_rows++ < STRAY_ROWS || far == 0)
        return;
    for (int32_t r = 0; r < engine->numeric.ranks; r++) {
        int count = count_bits(engine->numeric.strays[r]);
        all += count;
        if (count > most) {
            most = count;
            worst = r;
        }
    }
    /* The rate of all others; never less than one in all that was seen. */
    double rate = (double)(all - most + 1) / ((double)engine->numeric.ranks * STRAY_ROWS);
    double nats = stray_nats(most, fmin(rate, 0.5));
    if (most >= STRAY_LEAST && nats >= engine_nats_alarm(engine))
        raise_stray(engine, worst, most, nats);
}

void numeric_row(struct engine *engine, const struct row *row)
{
    struct numeric *numeric = &engine->numeric;
    struct tally loss = tally_stream(engine, row, STREAM_LOSS, SENT_NAN_LOSS);
    struct tally grad = tally_stream(engine, row, STREAM_GRAD, SENT_NAN_GRAD);
    int open;
    bool jump;

    watch_nan(engine, &loss, &grad);
    watch_strays(engine, row);
    jump = loss.median > 0 && watch_jump(numeric->loss, &numeric->loss_rows, loss.median);
    if (jump) {
        if (numeric->high_rows++ == 0)
            numeric->since_step = engine->last_step;
        if (numeric->high_rows == SPIKE_ROWS)
            raise_numeric(engine, "loss", loss.median);
    } else if (isfinite(loss.median)) {
        numeric->high_rows = 0;
    }
    open = numeric_open(engine);
    if (open < 0)
        return;
    numeric->calm_rows = jump || numeric->nan_rows > 0 ? 0 : numeric->calm_rows + 1;
    if (numeric->calm_rows >= CALM_ROWS)
        engine_close(engine, open, true);
}
