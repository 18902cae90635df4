/* NaN: most of those who report loss or gradient norm report no number. One lost value is no fault.
 * Spike: log loss over the median of its last values by SPIKE_LOG and by eight times what it
 * usually moves from row to row, three rows long. */
#include "detectors/numeric.h"

#include "detectors/engine_state.h"
#include "detectors/stats/robust.h"

#include <math.h>
#include <string.h>

static const double SPIKE_LOG = 0.1, SPIKE_SPREADS = 8;
enum { SPIKE_ROWS = 3, NAN_ROWS = 2, CALM_ROWS = 8, LEARNED_ROWS = 12, REFERENCE_ROWS = 8 };

void numeric_restart(struct numeric *numeric)
{
    memset(numeric, 0, sizeof *numeric);
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
        if (engine->open[i]->verdict.kind == VERDICT_NUMERIC)
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

void numeric_row(struct engine *engine, const struct row *row)
{
    struct numeric *numeric = &engine->numeric;
    struct tally loss = tally_stream(engine, row, STREAM_LOSS, SENT_NAN_LOSS);
    struct tally grad = tally_stream(engine, row, STREAM_GRAD, SENT_NAN_GRAD);
    int open;
    bool jump;

    watch_nan(engine, &loss, &grad);
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
