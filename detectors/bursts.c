/* Counters by unit and level; what has ended goes into one short ring a level. */
#include "detectors/bursts.h"

#include "controller/base/mem.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The lowest level is that of the smallest shift that is told (BURST_SHARE in alarm.c). */
static const double LOWEST = 0.021;
enum {
    LEVELS_AN_OCTAVE = 2,
    GAP_ROWS = 1,    /* that noise may take below the level without an end */
    ROWS_LEAST = 3,  /* shorter ones are stalls, which the rate test counts */
    ROWS_MOST = 64,  /* longer ones are faults that have ended */
    SAME_START = 1,  /* rows between starts of one event */
    EVENTS_LEAST = 3 /* of as many units: fewer tell nothing of how long others last */
};
static const double STANDARD_ERRORS = 2;
/* A burst may last so many times as long as the longest of the few that were seen. */
static const double LONGEST_FACTOR = 2;

void bursts_init(struct bursts *bursts, int32_t units)
{
    size_t count = (size_t)units * BURST_LEVELS;

    memset(bursts, 0, sizeof *bursts);
    bursts->units = units;
    bursts->run = xcalloc(count, sizeof *bursts->run);
    bursts->below = xcalloc(count, sizeof *bursts->below);
    bursts->running = xcalloc((size_t)units, sizeof *bursts->running);
}

void bursts_done(struct bursts *bursts)
{
    xfree(bursts->run);
    xfree(bursts->below);
    xfree(bursts->running);
}

void bursts_clear(struct bursts *bursts)
{
    size_t count = (size_t)bursts->units * BURST_LEVELS;

    memset(bursts->run, 0, count * sizeof *bursts->run);
    memset(bursts->below, 0, count * sizeof *bursts->below);
    memset(bursts->running, 0, (size_t)bursts->units * sizeof *bursts->running);
    memset(bursts->events, 0, sizeof bursts->events);
    memset(bursts->ended, 0, sizeof bursts->ended);
    bursts->rows = 0;
}

double bursts_level_value(int index)
{
    return LOWEST * exp2((double)index / LEVELS_AN_OCTAVE);
}

/* Levels that the value is above, less than none where it is far below the lowest. */
static int levels_above(double value)
{
    return 1 + (int)floor(LEVELS_AN_OCTAVE * log2(fmax(value, LOWEST / 16) / LOWEST) + 1e-9);
}

int bursts_level(double level)
{
    int above = levels_above(level);

    return above < 1 ? -1 : above < BURST_LEVELS ? above - 1 : BURST_LEVELS - 1;
}

static uint64_t bit_of(int32_t unit)
{
    return UINT64_C(1) << (unit % 64);
}

static void note_end(struct bursts *bursts, int32_t unit, int index, int rows, int64_t first_row)
{
    struct burst_event *ring = bursts->events[index];
    int64_t ended = bursts->ended[index];

    for (int64_t i = ended > BURST_EVENTS ? ended - BURST_EVENTS : 0; i < ended; i++) {
        struct burst_event *event = &ring[i % BURST_EVENTS];
        if (event->first_row < first_row - SAME_START || event->first_row > first_row + SAME_START)
            continue;
        event->units |= bit_of(unit);
        event->rows = (uint16_t)(rows > event->rows ? rows : event->rows);
        return;
    }
    ring[ended % BURST_EVENTS] = (struct burst_event){
        .first_row = first_row, .unit = unit, .rows = (uint16_t)rows, .units = bit_of(unit)};
    bursts->ended[index]++;
}

/* `above`: how many levels the value is above. Once up, above half of the level is enough. */
static void follow_unit(struct bursts *bursts, int32_t unit, int above)
{
    uint16_t *run = bursts->run + (size_t)unit * BURST_LEVELS;
    uint8_t *below = bursts->below + (size_t)unit * BURST_LEVELS;
    int highest = bursts->running[unit] > above ? bursts->running[unit] : above;
    int running = 0;

    for (int i = 0; i < highest; i++) {
        if (i < above || (run[i] > 0 && i < above + LEVELS_AN_OCTAVE)) {
            int rows = run[i] + 1 + below[i];
            run[i] = (uint16_t)(rows < UINT16_MAX ? rows : UINT16_MAX);
            below[i] = 0;
        } else if (run[i] > 0 && ++below[i] > GAP_ROWS) {
            if (run[i] >= ROWS_LEAST && run[i] <= ROWS_MOST)
                note_end(bursts, unit, i, run[i], bursts->rows - below[i] - run[i] + 1);
            run[i] = 0;
            below[i] = 0;
        }
        if (run[i] > 0)
            running = i + 1;
    }
    bursts->running[unit] = (uint8_t)running;
}

void bursts_push(struct bursts *bursts, const float *residuals, double centre, const float *offsets)
{
    for (int32_t u = 0; u < bursts->units; u++) {
        double value = (double)residuals[u] - centre - (double)offsets[u];
        if (!isfinite(value) || (value < LOWEST && bursts->running[u] == 0))
            continue;
        int above = levels_above(value);
        follow_unit(bursts, u, above < BURST_LEVELS ? above : BURST_LEVELS);
    }
    bursts->rows++;
}

int bursts_run(const struct bursts *bursts, int32_t unit, int index)
{
    return bursts->run[(size_t)unit * BURST_LEVELS + (size_t)index];
}

bool bursts_are_usual(const struct bursts *bursts, double level)
{
    int index = bursts_level(level);

    return index >= 0 && bursts->ended[index] >= EVENTS_LEAST;
}

static bool is_among(const int32_t *units, int count, int32_t unit)
{
    for (int i = 0; i < count; i++)
        if (units[i] == unit)
            return true;
    return false;
}

int bursts_rows_needed(const struct bursts *bursts, int32_t unit, int index, double nats,
                       bool *ret_known)
{
    const struct burst_event *ring = bursts->events[index];
    int64_t ended = bursts->ended[index], oldest = bursts->rows;
    int32_t units[EVENTS_LEAST];
    int count = 0, unit_count = 0, longest = 0;
    double beyond = 0;

    assert(unit >= 0 && unit < bursts->units);
    for (int64_t i = ended > BURST_EVENTS ? ended - BURST_EVENTS : 0; i < ended; i++) {
        const struct burst_event *event = &ring[i % BURST_EVENTS];
        oldest = event->first_row < oldest ? event->first_row : oldest;
        if ((event->units & bit_of(unit)) != 0)
            continue;
        count++;
        beyond += event->rows - ROWS_LEAST;
        longest = event->rows > longest ? event->rows : longest;
        if (unit_count < EVENTS_LEAST && !is_among(units, unit_count, event->unit))
            units[unit_count++] = event->unit;
    }
    *ret_known = count >= EVENTS_LEAST && unit_count >= EVENTS_LEAST;
    if (!*ret_known)
        return (int)fmin(LONGEST_FACTOR * longest, BURST_ROWS_UNKNOWN);
    /* Geometric, with the longest mean that is likely: none has a longer tail at this mean that
     * forgets how long it has lasted. */
    double mean = (1 + beyond / count) * (1 + STANDARD_ERRORS / sqrt(count));
    double span = (double)(bursts->rows - (ended > BURST_EVENTS ? oldest : 0));
    double starts = log(count / (span * bursts->units));
    double rows = ROWS_LEAST + fmax(nats + starts, 0) / -log1p(-1 / (mean + 1));

    return (int)fmin(ceil(fmax(rows, LONGEST_FACTOR * longest)), UINT16_MAX);
}
