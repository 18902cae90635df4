/* Running sums over rings; windows are tested a quarter window apart, which bounds the work a step.
 */
#include "detectors/chart.h"

#include "controller/base/mem.h"
#include "detectors/stats/robust.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const int WINDOW_ROWS[CHART_WINDOWS] = {4, 8, 16, 32, 64};

/* Residuals differ by at least this much for reasons nobody cares about (timer ticks). */
static const double SPREAD_FLOOR = 0.0005;
/* A spike is far out of the noise and large in itself. */
static const double SPIKE_SIGMAS = 4, SPIKE_LEAST = 0.10;
/* A row counts for at most so many times the spread known so far. */
static const double NOISE_RISE = 1.5;
enum { UPPER_LEAST = 16 };
/* Lasting differences between units: how large they may be, how slowly they are learned, and how
 * many rows it takes until they are worth something. */
static const double OFFSET_MOST = 0.01, OFFSET_WEIGHT = 1.0 / 256, OFFSET_SUSPECT = 3;
enum { OFFSET_ROWS = 32, OWN_ROWS_LEAST = 12 };
static const double UPPER_GROWTH = 1.3;
/* Lower than this many sigmas is a unit's peer that is slow, where units are held against one
 * another. */
static const double LOW_SIGMAS = 6;
/* Whatever was measured, some spikes are expected (garbage collection): the null rate. */
static const double SPIKE_RATE_LEAST = 0.01, SPIKE_NULL_FACTOR = 1.5, SPIKE_ALTERNATIVE = 0.2;

int chart_window(int index)
{
    assert(index >= 0 && index < CHART_WINDOWS);
    return WINDOW_ROWS[index];
}

void bank_init(struct bank *bank, int32_t units)
{
    size_t count = (size_t)units;

    memset(bank, 0, sizeof *bank);
    bank->units = units;
    bank->ring = xcalloc(count * CHART_RING, sizeof *bank->ring);
    bank->clipped = xcalloc(count * CHART_RING, sizeof *bank->clipped);
    bank->steps = xcalloc(CHART_RING, sizeof *bank->steps);
    for (int w = 0; w < CHART_WINDOWS; w++) {
        bank->sum[w] = xcalloc(count, sizeof(float));
        bank->have[w] = xcalloc(count, 1);
        bank->z[w] = xcalloc(count, sizeof(float));
        bank->by_change[w] = xcalloc(count, 1);
    }
    bank->offset = xcalloc(count, sizeof *bank->offset);
    bank->spikes = xcalloc(count, sizeof *bank->spikes);
    bank->scratch = xcalloc(count, sizeof *bank->scratch);
    bank->arriving = xcalloc(count, sizeof *bank->arriving);
    bank->sorting = xcalloc(count, sizeof *bank->sorting);
    bank->clip = 0.5;
    bank->spike_over = SPIKE_LEAST;
    bursts_init(&bank->bursts, units);
    bank_clear(bank);
}

void bank_done(struct bank *bank)
{
    xfree(bank->ring);
    xfree(bank->clipped);
    xfree(bank->steps);
    for (int w = 0; w < CHART_WINDOWS; w++) {
        xfree(bank->sum[w]);
        xfree(bank->have[w]);
        xfree(bank->z[w]);
        xfree(bank->by_change[w]);
    }
    xfree(bank->offset);
    xfree(bank->spikes);
    xfree(bank->scratch);
    xfree(bank->arriving);
    xfree(bank->sorting);
    bursts_done(&bank->bursts);
    memset(bank, 0, sizeof *bank);
}

static size_t place(const struct bank *bank, size_t slot, int32_t unit)
{
    return slot * (size_t)bank->units + (size_t)unit;
}

void bank_clear_unit(struct bank *bank, int32_t unit)
{
    for (size_t slot = 0; slot < CHART_RING; slot++)
        bank->ring[place(bank, slot, unit)] = bank->clipped[place(bank, slot, unit)] = NAN;
    for (int w = 0; w < CHART_WINDOWS; w++) {
        bank->sum[w][unit] = 0;
        bank->have[w][unit] = 0;
        bank->z[w][unit] = 0;
    }
    bank->spikes[unit] = 0;
}

void bank_clear(struct bank *bank)
{
    for (int32_t u = 0; u < bank->units; u++)
        bank_clear_unit(bank, u);
    memset(bank->offset, 0, (size_t)bank->units * sizeof *bank->offset);
    for (int t = 0; t < TEST_COUNT; t++)
        for (int w = 0; w < CHART_WINDOWS; w++)
            bank->reference[t][w] = (struct chart_reference){.usual_centre = (double)NAN,
                                                             .usual_upper = (double)NAN};
    bank->pushed = 0;
    bursts_clear(&bank->bursts);
}

static size_t slot_back(const struct bank *bank, int back)
{
    return (size_t)(bank->pushed - 1 - back) % CHART_RING;
}

const float *bank_row(const struct bank *bank, int back)
{
    if (back >= bank->pushed || back >= CHART_RING)
        return NULL;
    return bank->ring + place(bank, slot_back(bank, back), 0);
}

double bank_value(const struct bank *bank, int32_t unit, int back)
{
    const float *row = bank_row(bank, back);

    return row != NULL ? (double)row[unit] : (double)NAN;
}

int64_t bank_step(const struct bank *bank, int back)
{
    if (bank->pushed == 0)
        return -1;
    if (back >= bank->pushed)
        back = (int)bank->pushed - 1;
    if (back >= CHART_RING)
        back = CHART_RING - 1;
    return bank->steps[slot_back(bank, back)];
}

/* Spread of the change of all units since `back` rows ago, from its median size. */
static double change_spread(struct bank *bank, const float *residuals, int back, size_t *ret_count)
{
    size_t n = 0;

    for (int32_t u = 0; u < bank->units; u++) {
        double change = (double)residuals[u] - bank_value(bank, u, back);
        if (isfinite(change))
            bank->scratch[n++] = (float)fabs(change);
    }
    *ret_count = n;
    return n > 0 ? 1.4826 * robust_median(bank->scratch, n) : 0;
}

/* Jumps up by more than spike_over, as a part of all changes: how often units spike, whatever their
 * levels are. */
static double jump_share(const struct bank *bank, const float *residuals)
{
    int32_t jumps = 0, all = 0;

    for (int32_t u = 0; u < bank->units; u++) {
        double change = (double)residuals[u] - bank_value(bank, u, 0);
        if (!isfinite(change))
            continue;
        all++;
        jumps += change > bank->spike_over;
    }
    return all > 0 ? (double)jumps / all : 0;
}

/* Noise from how units change, which no lasting difference between them enters: with lag-1
 * correlation rho the change over one row has variance 2 sigma^2 (1 - rho), over two rows 2 sigma^2
 * (1 - rho^2). */
static void learn_noise(struct bank *bank, const float *residuals)
{
    double weight = bank->pushed < 20 ? 1.0 / (double)(bank->pushed + 1) : 0.05;
    size_t n = 0;

    if (bank->pushed < 2)
        return;
    double one = change_spread(bank, residuals, 0, &n), two = change_spread(bank, residuals, 1, &n);
    if (n < 2)
        return;
    bank->spike_rate += 0.02 * (jump_share(bank, residuals) - bank->spike_rate);
    /* When half of the units jump at once that is no noise: a row may raise the estimate by little.
     */
    if (bank->pushed >= 20) {
        one = fmin(one, NOISE_RISE * sqrt(bank->near_step));
        two = fmin(two, NOISE_RISE * sqrt(bank->near_two));
    }
    bank->near_step += weight * (one * one - bank->near_step);
    bank->near_two += weight * (two * two - bank->near_two);
    if (bank->near_step <= 0)
        return;
    bank->rho = fmin(fmax(bank->near_two / bank->near_step - 1, 0), 0.95);
    bank->sigma = fmax(sqrt(bank->near_step / (2 * (1 - bank->rho))), SPREAD_FLOOR);
    bank->spike_over = fmax(SPIKE_LEAST, SPIKE_SIGMAS * bank->sigma);
}

static float clip_value(const struct bank *bank, float value)
{
    return (float)fmin(fmax((double)value, -bank->clip), bank->clip);
}

/* All sums anew: after the clip changed, and now and then so that rounding cannot pile up. */
static void rebuild_sums(struct bank *bank)
{
    for (int w = 0; w < CHART_WINDOWS; w++) {
        memset(bank->sum[w], 0, (size_t)bank->units * sizeof(float));
        memset(bank->have[w], 0, (size_t)bank->units);
    }
    for (int back = 0; back < CHART_RING && back < bank->pushed; back++)
        for (int32_t u = 0; u < bank->units; u++) {
            size_t at = place(bank, slot_back(bank, back), u);
            if (!isfinite(bank->ring[at]))
                continue;
            bank->clipped[at] = clip_value(bank, bank->ring[at]);
            for (int w = 0; w < CHART_WINDOWS; w++)
                if (back < WINDOW_ROWS[w]) {
                    bank->sum[w][u] += bank->clipped[at];
                    bank->have[w][u]++;
                }
        }
}

/* The clip follows sigma in steps of half again, so that it seldom moves. */
static void follow_clip(struct bank *bank)
{
    double wanted = 0.05 + 8 * bank->sigma;

    if (bank->pushed >= 8 && (wanted > 1.5 * bank->clip || wanted < bank->clip / 1.5)) {
        bank->clip = wanted;
        rebuild_sums(bank);
    } else if (bank->pushed % 1024 == 0) {
        rebuild_sums(bank);
    }
}

/* Takes the row that leaves a window out of its sums and the new one in. */
static void slide_window(struct bank *bank, int w, const float *arriving)
{
    const float *leaving = NULL;

    if (bank->pushed >= WINDOW_ROWS[w])
        leaving = bank->clipped + place(bank, slot_back(bank, WINDOW_ROWS[w] - 1), 0);
    for (int32_t u = 0; u < bank->units; u++) {
        if (leaving != NULL && isfinite(leaving[u])) {
            bank->sum[w][u] -= leaving[u];
            bank->have[w][u]--;
        }
        if (isfinite(arriving[u])) {
            bank->sum[w][u] += arriving[u];
            bank->have[w][u]++;
        }
    }
}

/* What noise that remembers still holds of the row before is no spike of this one; and where bursts
 * are usual, one of them is one stall. */
static void count_spike(struct bank *bank, int32_t unit, double residual, bool bursts_usual)
{
    double before = bank_value(bank, unit, 0);
    bool goes_on = bursts_usual && before > bank->spike_over && residual > bank->spike_over;
    double null = fmin(SPIKE_NULL_FACTOR * fmax(bank->spike_rate, SPIKE_RATE_LEAST), 0.3);
    double other = fmax(SPIKE_ALTERNATIVE, 3 * null);

    if (!isfinite(residual) || goes_on)
        return;
    double held = before > 0 ? bank->rho * before : 0;
    double gain = residual - held > bank->spike_over ? log(other / null)
                                                     : log((1 - other) / (1 - null));
    bank->spikes[unit] = (float)fmax(0, (double)bank->spikes[unit] + gain);
}

/* The centre that units are held against. When more than half of them move up at once the middle
 * moves with them: then what it was before stands for the healthy ones. noise is what a window's
 * mean moves by itself. */
static double held_centre(struct chart_reference *reference, double centre, double noise)
{
    double *usual = &reference->usual_centre;

    if (!isfinite(*usual))
        *usual = centre;
    if (fabs(centre - *usual) < 2 * noise + SPREAD_FLOOR)
        *usual += 0.1 * (centre - *usual);
    else if (centre < *usual)
        *usual = centre;
    return centre - *usual < 4 * noise + SPREAD_FLOOR ? centre : *usual;
}

/* Healthy units may differ more upwards than downwards (experts that are busy for a while). What is
 * usual is learned slowly, so that a fault does not hide itself. */
static double usual_upper(struct chart_reference *reference, double upper)
{
    double *usual = &reference->usual_upper;

    if (!isfinite(*usual))
        *usual = upper;
    *usual += 0.1 * (fmin(upper, UPPER_GROWTH * *usual + SPREAD_FLOOR) - *usual);
    return *usual;
}

static double offset_in(const struct bank *bank, int32_t unit, enum chart_test test)
{
    return test == TEST_CHANGE ? (double)bank->offset[unit] : 0;
}

/* Scores of all units in one window and test; the higher one of the tests stays. */
static void test_window(struct bank *bank, int w, enum chart_test test)
{
    struct chart_reference *reference = &bank->reference[test][w];
    size_t n = 0;
    int enough = (3 * WINDOW_ROWS[w] + 3) / 4;

    for (int32_t u = 0; u < bank->units; u++)
        if (bank->have[w][u] >= enough)
            bank->scratch[n++] = bank->sum[w][u] / (float)bank->have[w][u] -
                                 (float)offset_in(bank, u, test);
    if (test == TEST_LEVEL) {
        memset(bank->z[w], 0, (size_t)bank->units * sizeof(float));
        memset(bank->by_change[w], 0, (size_t)bank->units);
    }
    if (n < 2)
        return;
    robust_sort(bank->scratch, bank->sorting, n);
    double upper = usual_upper(reference,
                               n >= UPPER_LEAST ? robust_upper_spread(bank->scratch, n) : 0);
    struct robust_spread over = robust_healthy_spread(bank->scratch, n);
    double expected = bank->sigma * sqrt((1 + bank->rho) / (1 - bank->rho) / WINDOW_ROWS[w]);
    double spread = fmax(fmax(over.spread, upper), fmax(expected, SPREAD_FLOOR));

    /* A spread that was measured on few units is itself uncertain. */
    spread *= 1 + 4.0 / (double)n;
    reference->centre = held_centre(reference, over.centre, expected);
    reference->spread = spread;
    for (int32_t u = 0; u < bank->units; u++) {
        if (bank->have[w][u] < enough)
            continue;
        double mean = (double)bank->sum[w][u] / bank->have[w][u] - offset_in(bank, u, test);
        float z = (float)((mean - reference->centre) / spread);
        if (test == TEST_CHANGE && z <= bank->z[w][u])
            continue;
        bank->z[w][u] = z;
        bank->by_change[w][u] = test == TEST_CHANGE;
    }
}

/* Offsets follow slowly, and not at all while a unit is suspect: a fault is nothing usual. */
static void learn_offsets(struct bank *bank, const float *arriving)
{
    double weight = fmax(OFFSET_WEIGHT, 1.0 / (double)(bank->pushed - WINDOW_ROWS[0] + 1));
    double centre = bank->reference[TEST_LEVEL][0].centre;

    if (bank->pushed < WINDOW_ROWS[0]) /* the centre is not known yet */
        return;

    for (int32_t u = 0; u < bank->units; u++) {
        double offset = (double)bank->offset[u];
        bool suspect = bank->pushed >= OFFSET_ROWS && ((double)bank->z[0][u] > OFFSET_SUSPECT ||
                                                       (double)bank->z[2][u] > OFFSET_SUSPECT);
        if (!isfinite(arriving[u]) || suspect)
            continue;
        offset += weight * ((double)arriving[u] - centre - offset);
        bank->offset[u] = (float)fmin(fmax(offset, -OFFSET_MOST), OFFSET_MOST);
    }
}

void bank_push(struct bank *bank, int64_t step, const float *residuals)
{
    size_t slot = (size_t)bank->pushed % CHART_RING;
    float *arriving = bank->arriving;
    double low = bank->drops_low && bank->pushed >= 20 ? -LOW_SIGMAS * bank->sigma : 0;

    learn_noise(bank, residuals);
    bool bursts_usual = bursts_are_usual(&bank->bursts, bank->spike_over);
    for (int32_t u = 0; u < bank->units; u++) {
        bool taken = isfinite(residuals[u]) && !(low < 0 && (double)residuals[u] < low);
        arriving[u] = taken ? clip_value(bank, residuals[u]) : NAN;
        count_spike(bank, u, (double)residuals[u], bursts_usual);
    }
    /* Before the slot is written: the longest window loses what stands there. */
    for (int w = 0; w < CHART_WINDOWS; w++)
        slide_window(bank, w, arriving);
    memcpy(bank->clipped + place(bank, slot, 0), arriving, (size_t)bank->units * sizeof *arriving);
    bank_store(bank, step, residuals);
    follow_clip(bank);
    for (int w = 0; w < CHART_WINDOWS; w++) {
        if (bank->pushed < WINDOW_ROWS[w] || bank->pushed % (WINDOW_ROWS[w] / 4) != 0)
            continue;
        test_window(bank, w, TEST_LEVEL);
        if (bank->pushed >= OFFSET_ROWS)
            test_window(bank, w, TEST_CHANGE);
    }
    learn_offsets(bank, arriving);
    if (bank->pushed >= WINDOW_ROWS[0])
        bursts_push(&bank->bursts, residuals, bank->reference[TEST_LEVEL][0].centre, bank->offset);
}

void bank_store(struct bank *bank, int64_t step, const float *residuals)
{
    size_t slot = (size_t)bank->pushed % CHART_RING;

    memcpy(bank->ring + place(bank, slot, 0), residuals, (size_t)bank->units * sizeof *residuals);
    bank->steps[slot] = step;
    bank->pushed++;
}

struct chart_view bank_view_in(const struct bank *bank, int32_t unit, int window)
{
    struct chart_view view = {
        .z = (double)bank->z[window][unit], .window = window, .spikes = (double)bank->spikes[unit]};

    view.test = bank->by_change[window][unit] != 0 ? TEST_CHANGE : TEST_LEVEL;
    if (bank->have[window][unit] > 0)
        view.level = (double)bank->sum[window][unit] / bank->have[window][unit] -
                     bank_zero(bank, unit, window, view.test);
    return view;
}

struct chart_view bank_view(const struct bank *bank, int32_t unit)
{
    int best = 0;

    for (int w = 1; w < CHART_WINDOWS; w++)
        if (bank->z[w][unit] > bank->z[best][unit])
            best = w;
    return bank_view_in(bank, unit, best);
}

double bank_zero(const struct bank *bank, int32_t unit, int window, enum chart_test test)
{
    return bank->reference[test][window].centre + offset_in(bank, unit, test);
}

double bank_mean(const struct bank *bank, int32_t unit, int rows, enum chart_test test)
{
    double sum = 0;
    int n = 0, w = 0;

    for (int back = 0; back < rows && back < CHART_RING; back++) {
        double value = bank_value(bank, unit, back);
        if (isfinite(value)) {
            sum += value;
            n++;
        }
    }
    while (w + 1 < CHART_WINDOWS && WINDOW_ROWS[w + 1] <= rows)
        w++;
    return n > 0 ? sum / n - bank_zero(bank, unit, w, test) : (double)NAN;
}

int bank_run_above(const struct bank *bank, int32_t unit, double over)
{
    int run = 0;

    while (run < CHART_RING && run < bank->pushed && bank_value(bank, unit, run) > over)
        run++;
    return run;
}

double bank_own_spread(const struct bank *bank, int32_t unit, int rows)
{
    float changes[CHART_RING];
    size_t n = 0;

    for (int back = rows; back + 1 < CHART_RING && back + 1 < bank->pushed; back++) {
        double change = bank_value(bank, unit, back) - bank_value(bank, unit, back + 1);
        if (isfinite(change))
            changes[n++] = (float)fabs(change);
    }
    if (n < OWN_ROWS_LEAST)
        return (double)NAN;
    return 1.4826 * robust_median(changes, n) / sqrt(2 * (1 - bank->rho));
}

double bank_share_above(const struct bank *bank, int32_t unit, int rows, double over)
{
    int n = 0, above = 0;

    for (int back = 0; back < rows && back < CHART_RING; back++) {
        double value = bank_value(bank, unit, back);
        if (isfinite(value)) {
            n++;
            above += value > over;
        }
    }
    return n > 0 ? (double)above / n : 0;
}

int bank_rows_since_onset(const struct bank *bank, int32_t unit, double level, enum chart_test test)
{
    double sum = 0, best = 0, offset = offset_in(bank, unit, test);
    int rows = 1;

    for (int back = 0; back < CHART_RING && back < bank->pushed; back++) {
        double value = bank_value(bank, unit, back);
        if (!isfinite(value))
            continue;
        sum += fmin(value - offset, 2 * level) - level / 2;
        if (sum > best) {
            best = sum;
            rows = back + 1;
        }
    }
    return rows;
}
