/* The ring of recent samples against the plainest model there is, under what real senders do: lines
 * lost, doubled with another value, late by some steps. */
#include "controller/series/series.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, STEPS = 400, LINES_MAX = RANKS * STEPS * 2, LATE_STEPS_MAX = 6 };
static const int64_t NS_PER_S = 1000000000;
static const int64_t NS_PER_MS = 1000000;

struct line {
    double arrival; /* in steps */
    int64_t step, rank, time_ns;
    double value;
};

static int by_arrival(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->arrival < y->arrival ? -1 : x->arrival > y->arrival ? 1 : 0;
}

static int make_lines(struct line *lines, uint64_t *state)
{
    int count = 0;
    for (int64_t step = 0; step < STEPS; step++)
        for (int64_t rank = 0; rank < RANKS; rank++) {
            int copies = test_random(state) % 20 == 0 ? 0 : test_random(state) % 20 == 0 ? 2 : 1;
            int64_t time_ns = (1000 + step) * NS_PER_S +
                              (int64_t)(test_random(state) % 40) * NS_PER_MS;
            for (int copy = 0; copy < copies; copy++) {
                double late = test_random(state) % 10 == 0
                                  ? LATE_STEPS_MAX * test_random_unit(state)
                                  : 0;
                lines[count++] = (struct line){.arrival = (double)step + test_random_unit(state) +
                                                          late,
                                               .step = step,
                                               .rank = rank,
                                               .time_ns = time_ns,
                                               .value = (double)(test_random(state) % 4096)};
            }
        }
    qsort(lines, (size_t)count, sizeof *lines, by_arrival);
    return count;
}

static void feed(struct series *series, const struct line *line)
{
    struct sample sample = {.measurement = MEASUREMENT_STEP,
                            .rank = line->rank,
                            .time_ns = line->time_ns,
                            .present = UINT64_C(1) << FIELD_STEP | UINT64_C(1) << FIELD_STEP_MS};
    sample.values[FIELD_STEP] = (double)line->step;
    sample.values[FIELD_STEP_MS] = line->value;
    series_add(series, &sample);
}

/* What has arrived last of each step and rank; a slot of the ring holds its highest step. */
struct model {
    const struct line *last[STEPS][RANKS];
    int64_t slot_step[STEPS];
};

static void model_feed(struct model *model, const struct line *line, int32_t capacity)
{
    int64_t *slot_step = &model->slot_step[line->step % capacity];
    if (line->step < *slot_step)
        return;
    *slot_step = line->step;
    model->last[line->step][line->rank] = line;
}

static size_t model_count(const struct model *model, int32_t capacity, int64_t from_ns,
                          int64_t to_ns)
{
    size_t count = 0;
    for (int64_t step = 0; step < STEPS; step++)
        for (int64_t rank = 0; rank < RANKS; rank++) {
            const struct line *line = model->last[step][rank];
            if (line != NULL && model->slot_step[step % capacity] == step &&
                line->time_ns >= from_ns && line->time_ns <= to_ns)
                count++;
        }
    return count;
}

static bool is_as_modelled(const struct raw_window *window, const struct model *model)
{
    for (size_t i = 0; i < window->count; i++) {
        const struct line *line = model->last[window->step[i]][window->rank[i]];
        if (line == NULL || line->time_ns != window->time_ns[i] ||
            fabs(line->value - (double)window->value[i]) > 0)
            return false;
    }
    return true;
}

TEST(a_window_is_what_a_plain_list_of_the_newest_steps_gives)
{
    uint64_t state = test_seed();
    struct line *lines = xcalloc(LINES_MAX, sizeof *lines);
    for (int round = 0; round < test_rounds(40); round++) {
        AUTO(series_free)
        struct series *series = series_new(RANKS, 1 + test_random(&state) % 30000);
        AUTO_FREE struct model *model = xcalloc(1, sizeof *model);
        int32_t capacity = series_steps(series);
        int count = make_lines(lines, &state);
        for (int i = 0; i < count; i++) {
            feed(series, &lines[i]);
            model_feed(model, &lines[i], capacity < STEPS ? capacity : STEPS);
            if (test_random(&state) % 100 != 0 && i + 1 < count)
                continue;
            int64_t from_ns = (1000 + (int64_t)(test_random(&state) % STEPS)) * NS_PER_S;
            int64_t to_ns = from_ns + (int64_t)(test_random(&state) % STEPS) * NS_PER_S;
            struct raw_window window = series_window(series, FIELD_STEP_MS, from_ns, to_ns);
            CU_ASSERT_EQUAL(window.count, model_count(model, capacity < STEPS ? capacity : STEPS,
                                                      from_ns, to_ns));
            CU_ASSERT(is_as_modelled(&window, model));
            raw_window_done(&window);
        }
        struct series_counts counts = series_counts(series);
        CU_ASSERT_EQUAL(counts.kept + counts.too_old, count);
    }
    xfree(lines);
}

TEST(a_minute_is_the_mean_of_what_came_before_it_closed)
{
    uint64_t state = test_seed();
    struct line *lines = xcalloc(LINES_MAX, sizeof *lines);
    for (int round = 0; round < test_rounds(40); round++) {
        AUTO(series_free) struct series *series = series_new(RANKS, 1 << 20);
        struct rollup rollup;
        int count = make_lines(lines, &state);
        int64_t minutes = 0;
        for (int i = 0; i < count; i++) {
            feed(series, &lines[i]);
            while (series_take_rollup(series, 1000 * NS_PER_S + (int64_t)(lines[i].arrival * 1e9),
                                      &rollup)) {
                double sum = 0, n = 0;
                for (int k = 0; k <= i; k++)
                    if (lines[k].rank == 2 &&
                        lines[k].time_ns / (60 * NS_PER_S) == rollup.minute_ns / (60 * NS_PER_S)) {
                        sum += lines[k].value;
                        n++;
                    }
                CU_ASSERT(n > 0 ? fabs((double)rollup.values[2] - sum / n) < 0.01
                                : isnan(rollup.values[2]));
                rollup_done(&rollup);
                minutes++;
            }
        }
        CU_ASSERT_EQUAL(minutes, 6); /* 1000 s to 1400 s, of which the last is still open */
    }
    xfree(lines);
}

TESTS(T(a_window_is_what_a_plain_list_of_the_newest_steps_gives),
      T(a_minute_is_the_mean_of_what_came_before_it_closed))
