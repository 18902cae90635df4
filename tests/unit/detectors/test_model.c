/* Residuals by hand: 16 ranks, tp 2, dp 4, pp 2. */
#include "detectors/model.h"
#include "tests/unit/detectors/feed.h"

enum { RANKS = 16 };

struct fixture {
    struct job *job;
    struct grid *grid;
    struct steps *steps;
    struct model model;
    double compute[RANKS], allreduce[RANKS], step_ms;
};

static void open_fixture(struct fixture *fixture)
{
    fixture->job = feed_job(RANKS, 2);
    fixture->job->size[DIMENSION_DP] = 4;
    fixture->job->size[DIMENSION_PP] = 2;
    fixture->grid = grid_new(fixture->job);
    fixture->steps = steps_new(RANKS);
    model_init(&fixture->model, fixture->grid);
    fixture->step_ms = 200;
    for (int r = 0; r < RANKS; r++) {
        fixture->compute[r] = r < 8 ? 100 : 120; /* the second stage is bigger for ever */
        fixture->allreduce[r] = 50;
    }
}

static void close_fixture(struct fixture *fixture)
{
    model_done(&fixture->model);
    steps_free(fixture->steps);
    grid_free(fixture->grid);
    job_free(fixture->job);
}

/* Feeds the same row three times, so that it closes, and takes its residuals. */
static void run_row(struct fixture *fixture, int first, bool learn)
{
    for (int step = first; step < first + 3; step++)
        for (int32_t r = 0; r < RANKS; r++) {
            struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = r, .time_ns = 1};
            feed_set(&sample, FIELD_STEP, step);
            feed_set(&sample, FIELD_STEP_MS, fixture->step_ms);
            feed_set(&sample, FIELD_COMPUTE_MS, fixture->compute[r]);
            feed_set(&sample, FIELD_ALLREDUCE_MS, fixture->allreduce[r]);
            (void)steps_feed(fixture->steps, &sample);
        }
    const struct row *row = steps_ready(fixture->steps);
    CU_ASSERT_PTR_NOT_NULL_FATAL(row);
    model_row(&fixture->model, fixture->grid, row, learn);
}

static void run(struct fixture *fixture)
{
    run_row(fixture, 0, false);
}

TEST(a_bigger_stage_is_no_deviation)
{
    struct fixture fixture;

    open_fixture(&fixture);
    run(&fixture);
    for (int r = 0; r < RANKS; r++)
        CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.own[r], 0, 1e-6);
    for (int k = 0; k < 8; k++)
        CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.group[k], 0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.class_ms[1], 120, 1e-4);
    close_fixture(&fixture);
}

/* A long row in the beginning (a save, a spell of the file system) is no part of what is usual: the
 * reference would stay apart from all that comes later. */
TEST(one_long_row_among_the_first_does_not_shift_what_is_usual)
{
    struct fixture fixture;

    open_fixture(&fixture);
    for (int i = 0; i < 30; i++) {
        for (int r = 0; r < RANKS; r++)
            fixture.compute[r] = (r < 8 ? 100 : 120) * (i == 7 ? 2.0 : 1.0);
        run_row(&fixture, 3 * i, true);
        while (steps_ready(fixture.steps) != NULL)
            steps_pop(fixture.steps);
    }
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.class_usual[0], 100, 0.1);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.class_usual[1], 120, 0.1);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.ratio[0], 0, 0.001);
    close_fixture(&fixture);
}

TEST(a_slow_rank_differs_from_its_tensor_peer_by_its_part)
{
    struct fixture fixture;

    open_fixture(&fixture);
    fixture.compute[5] = 130;
    run(&fixture);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.own[5], 0.3, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.own[6], 0, 1e-5);
    /* The group's reference is its healthy member. */
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.group[2], 0, 1e-5);
    close_fixture(&fixture);
}

TEST(a_replica_with_more_work_deviates_in_work_and_not_in_its_groups)
{
    struct fixture fixture;

    open_fixture(&fixture);
    fixture.compute[2] = fixture.compute[3] = 115;
    fixture.compute[10] = fixture.compute[11] = 138;
    run(&fixture);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.work[1], 0.15, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.group[1], 0, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.group[5], 0, 1e-5);
    close_fixture(&fixture);
}

TEST(who_waits_least_is_latest_and_the_least_wait_is_the_transfer)
{
    struct fixture fixture;

    open_fixture(&fixture);
    fixture.allreduce[4] = fixture.allreduce[5] = 20;
    run(&fixture);
    CU_ASSERT_DOUBLE_EQUAL(fixture.model.busy_ms, 150, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.late[2], 30.0 / 150, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.late[3], 0, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.transfer_ms[0], 20, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.transfer_ms[2], 50, 1e-4);
    close_fixture(&fixture);
}

TEST(a_lane_is_outside_compute_only_when_all_its_groups_are)
{
    struct fixture fixture;

    open_fixture(&fixture);
    /* Half of the ranks arrive 40 ms later than the others: a typical rank is busy for 170 ms.
     * Replica 1 is late by 40 ms in both stages, and computes as ever: links or loader. */
    for (int r = 0; r < RANKS; r++)
        if (r / 2 % 4 == 1)
            fixture.allreduce[r] -= 40;
    /* Replica 2 is late because its first stage computes for longer: its second stage waits. */
    fixture.compute[4] = fixture.compute[5] = 140;
    fixture.allreduce[4] = fixture.allreduce[5] = fixture.allreduce[12] = fixture.allreduce[13] =
        10;
    run(&fixture);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.lane[1], 40.0 / 170, 0.001);
    CU_ASSERT_DOUBLE_EQUAL((double)fixture.model.lane[2], 0, 0.001);
    close_fixture(&fixture);
}

TESTS(T(one_long_row_among_the_first_does_not_shift_what_is_usual),
      T(a_bigger_stage_is_no_deviation), T(a_slow_rank_differs_from_its_tensor_peer_by_its_part),
      T(a_replica_with_more_work_deviates_in_work_and_not_in_its_groups),
      T(who_waits_least_is_latest_and_the_least_wait_is_the_transfer),
      T(a_lane_is_outside_compute_only_when_all_its_groups_are))
