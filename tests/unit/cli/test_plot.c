/* Plots: drawn where there is something to draw, and nothing in them that a viewer cannot read. */
#include "controller/base/mem.h"
#include "controller/cli/plot.h"
#include "tests/harness/test.h"

#include <math.h>
#include <string.h>

enum { RANKS = 8 };

static const struct plot_mark marks[] = {
    {"fault & <more>", INT64_C(1780000050000000000), "#b91c1c"}};

static struct plot make_plot(const struct raw_metric *metric, const enum plot_role *roles)
{
    return (struct plot){.title = "t <b>&",
                         .subtitle = "s",
                         .suspects = "rank 1",
                         .peers = "7 peers",
                         .unit = "ms",
                         .metric = metric,
                         .roles = roles,
                         .rank_count = RANKS,
                         .marks = marks,
                         .mark_count = 1,
                         .bad_from_ns = marks[0].time_ns};
}

static void add_steps(struct raw_metric *metric, int steps, double (*value)(int step, int32_t rank))
{
    for (int step = 0; step < steps; step++)
        for (int32_t rank = 0; rank < RANKS; rank++)
            raw_metric_add(metric, (struct raw_point){INT64_C(1780000000000000000) +
                                                          step * INT64_C(1000000000),
                                                      step, rank, value(step, rank)});
    raw_metric_sort(metric);
}

static double constant(int step, int32_t rank)
{
    (void)step;
    (void)rank;
    return 5;
}

static double zero(int step, int32_t rank)
{
    (void)step;
    (void)rank;
    return 0;
}

static double broken(int step, int32_t rank)
{
    return rank == 1 ? (double)NAN : step == 50 ? 1e308 : step == 51 ? -1e308 : 1 + 0.1 * rank;
}

static double nothing(int step, int32_t rank)
{
    (void)step;
    (void)rank;
    return (double)INFINITY;
}

static void assert_drawn(double (*value)(int step, int32_t rank), bool drawn)
{
    static const enum plot_role roles[RANKS] = {PLOT_PEER, PLOT_SUSPECT, PLOT_PEER, PLOT_PEER,
                                                PLOT_PEER, PLOT_PEER,    PLOT_PEER, PLOT_OTHER};
    struct raw_metric metric = {0};
    AUTO_TEXT svg = {0};
    add_steps(&metric, 100, value);
    struct plot plot = make_plot(&metric, roles);
    CU_ASSERT_EQUAL(plot_write(&plot, &svg), drawn);
    if (drawn) {
        CU_ASSERT_PTR_NULL(strstr(svg.bytes, "nan"));
        CU_ASSERT_PTR_NULL(strstr(svg.bytes, "inf"));
        CU_ASSERT_PTR_NULL(strstr(svg.bytes, "<b>"));
        CU_ASSERT_PTR_NOT_NULL(strstr(svg.bytes, "fault &amp; &lt;more&gt;"));
        CU_ASSERT_PTR_NOT_NULL(strstr(svg.bytes, "</svg>\n"));
        CU_ASSERT_TRUE(svg.length < 65536);
    } else {
        CU_ASSERT_EQUAL(svg.length, 0);
    }
    raw_metric_done(&metric);
}

TEST(flat_zero_and_broken_values_can_be_drawn)
{
    assert_drawn(constant, true);
    assert_drawn(zero, true);
    assert_drawn(broken, true);
}

TEST(nothing_finite_is_no_plot)
{
    assert_drawn(nothing, false);
    struct raw_metric empty = {0};
    AUTO_TEXT svg = {0};
    struct plot plot = make_plot(&empty, NULL);
    CU_ASSERT_FALSE(plot_write(&plot, &svg));
}

TEST(samples_of_two_overlapping_windows_count_once)
{
    struct raw_metric metric = {0};
    AUTO_TEXT csv = {0};
    add_steps(&metric, 3, constant);
    add_steps(&metric, 4, constant);
    CU_ASSERT_EQUAL(metric.count, 4 * RANKS);
    raw_metric_write_csv(&metric, &csv);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(csv.bytes, "time,step,rank,value\n2026-05-28T20:26:40.000Z,0,0,5\n"));
    raw_metric_done(&metric);
}

TESTS(T(flat_zero_and_broken_values_can_be_drawn), T(nothing_finite_is_no_plot),
      T(samples_of_two_overlapping_windows_count_once))
