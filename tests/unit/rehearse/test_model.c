#include "controller/rehearse/model.h"
#include "controller/rehearse/random.h"
#include "tests/harness/test.h"

#include <math.h>
#include <string.h>

enum { RANKS_MAX = 512 };

/* What was sent, by measurement, and the newest step of every rank. */
struct seen {
    int64_t count[MEASUREMENT_COUNT];
    int64_t steps[RANKS_MAX];
    int64_t beats_of[RANKS_MAX];
    double own[RANKS_MAX], wait[RANKS_MAX], step_ms[RANKS_MAX], sm[RANKS_MAX];
    int64_t last_ns;
    struct text text;
};

static void see(void *context, const struct sample *sample)
{
    struct seen *seen = context;
    seen->count[sample->measurement]++;
    sample_add_line(sample, &seen->text);
    if (sample->measurement == MEASUREMENT_BEAT && sample->rank < RANKS_MAX)
        seen->beats_of[sample->rank]++;
    if (sample->measurement != MEASUREMENT_STEP || sample->rank >= RANKS_MAX)
        return;
    seen->steps[sample->rank] = (int64_t)sample->values[FIELD_STEP];
    seen->own[sample->rank] = sample->values[FIELD_COMPUTE_MS];
    seen->wait[sample->rank] = sample->values[FIELD_ALLREDUCE_MS];
    seen->step_ms[sample->rank] = sample->values[FIELD_STEP_MS];
    seen->sm[sample->rank] = sample->values[FIELD_SM];
}

static struct seen *run_to_step(struct model *model, int64_t step)
{
    struct seen *seen = xcalloc(1, sizeof *seen);
    model_start(model, INT64_C(1780000000000000000), 0);
    for (int i = 0; i < 100000 && model_info(model).last_step < step; i++)
        model_step(model, see, seen);
    return seen;
}

static void seen_free(struct seen *seen)
{
    text_done(&seen->text);
    xfree(seen);
}

TEST(every_rank_sends_every_step_and_all_see_one_step_time)
{
    struct model_config config = model_config_default();
    config.seed = test_seed();
    AUTO(model_free) struct model *model = model_new(&config);
    struct seen *seen = run_to_step(model, 49);
    CU_ASSERT_EQUAL(seen->count[MEASUREMENT_HELLO], 128);
    CU_ASSERT_EQUAL(seen->count[MEASUREMENT_STEP], 50 * 128);
    CU_ASSERT(seen->count[MEASUREMENT_BEAT] > 0);
    for (int r = 0; r < 128; r++) {
        CU_ASSERT_EQUAL(seen->steps[r], 49);
        CU_ASSERT_DOUBLE_EQUAL(seen->step_ms[r], seen->step_ms[0], 0.3);
        CU_ASSERT(seen->own[r] > 1600 && seen->own[r] < 1800);
        CU_ASSERT(seen->wait[r] > 0);
    }
    seen_free(seen);
}

TEST(two_models_of_one_seed_send_the_same_bytes)
{
    struct model_config config = model_config_default();
    config.dirt = (struct model_dirt){.lost = 0.02, .doubled = 0.01, .late = 0.02, .skew_ms = 20};
    AUTO(model_free) struct model *a = model_new(&config);
    AUTO(model_free) struct model *b = model_new(&config);
    struct seen *from_a = run_to_step(a, 20);
    struct seen *from_b = run_to_step(b, 20);
    CU_ASSERT_EQUAL(from_a->text.length, from_b->text.length);
    CU_ASSERT_EQUAL(strcmp(from_a->text.bytes, from_b->text.bytes), 0);
    CU_ASSERT(from_a->count[MEASUREMENT_STEP] < 21 * 128);
    seen_free(from_a);
    seen_free(from_b);
}

TEST(a_slow_gpu_has_the_largest_own_time_and_the_smallest_all_reduce)
{
    struct model_config config = model_config_default();
    config.tp = 1;
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(
        model, &(struct model_fault){
                   .kind = FAULT_SLOW_GPU, .tray = 3, .gpu = 1, .magnitude = 1.3, .from_step = 10});
    struct seen *seen = run_to_step(model, 20);
    for (int r = 0; r < 128; r++) {
        CU_ASSERT(r == 13 || seen->own[r] < 0.9 * seen->own[13]);
        CU_ASSERT(r == 13 || seen->wait[r] > seen->wait[13] + 300);
        CU_ASSERT(r == 13 || seen->sm[r] < seen->sm[13]);
    }
    CU_ASSERT(seen->step_ms[0] > 1.2 * 1925);
    seen_free(seen);
}

TEST(a_stalled_host_slows_its_tray_while_its_sms_starve)
{
    struct model_config config = model_config_default();
    config.tp = 1;
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_SLOW_HOST, .tray = 2, .magnitude = 1.4});
    struct seen *seen = run_to_step(model, 20);
    for (int r = 8; r < 12; r++) {
        CU_ASSERT(seen->own[r] > 1.3 * seen->own[0]);
        CU_ASSERT(seen->sm[r] < seen->sm[0] + 0.02);
    }
    seen_free(seen);
}

TEST(a_dead_tray_is_silent_and_the_others_beat_on_without_a_step)
{
    struct model_config config = model_config_default();
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_TRAY_DEATH, .tray = 5, .from_step = 30});
    struct seen *seen = run_to_step(model, 29);
    int64_t now_ns = model_info(model).now_ns;
    model_advance(model, now_ns + INT64_C(20000000000), see, seen); /* the dying step */
    memset(seen->beats_of, 0, sizeof seen->beats_of);
    model_advance(model, now_ns + INT64_C(120000000000), see, seen);
    CU_ASSERT_EQUAL(model_info(model).phase, MODEL_STUCK);
    CU_ASSERT_EQUAL(model_info(model).last_step, 29);
    for (int r = 0; r < 128; r++)
        CU_ASSERT_EQUAL(seen->beats_of[r] == 0, r / 4 == 5);
    CU_ASSERT(model_tray_is_dead(model, 5));
    seen_free(seen);
}

TEST(a_job_that_is_moved_off_a_dead_tray_goes_on_from_its_checkpoint)
{
    struct model_config config = model_config_default();
    config.checkpoint_steps = 10;
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_TRAY_DEATH, .tray = 5, .from_step = 35});
    struct seen *seen = run_to_step(model, 34);
    int64_t now_ns = model_info(model).now_ns;
    model_advance(model, now_ns + INT64_C(60000000000), see, seen);
    CU_ASSERT_EQUAL(model_info(model).checkpoint_step, 29);
    model_halt(model, now_ns + INT64_C(60000000000));
    model_move(model, 5, 16);
    model_start(model, now_ns + INT64_C(90000000000), 30);
    for (int i = 0; i < 1000 && model_info(model).last_step < 50; i++)
        model_step(model, see, seen);
    CU_ASSERT_EQUAL(model_info(model).last_step, 50);
    CU_ASSERT_EQUAL(model_info(model).attempt, 1);
    CU_ASSERT_EQUAL(seen->steps[20], 50);
    AUTO(job_free) struct job *job = model_job(model);
    CU_ASSERT_STRING_EQUAL(job->trays[job->ranks[20].tray].node, model_tray_name(model, 16));
    seen_free(seen);
}

TEST(a_lost_rack_falls_within_a_second_and_the_rest_within_seven)
{
    struct model_config config = model_config_default();
    config.beat_ns = 100000000;
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_RACK_DEATH, .rack = 1, .from_step = 12});
    struct seen *seen = run_to_step(model, 11);
    int64_t begin_ns = model_info(model).now_ns;
    model_advance(model, begin_ns + INT64_C(10000000000), see, seen);
    CU_ASSERT_EQUAL(model_info(model).ranks_alive, 0);
    CU_ASSERT(seen->count[MEASUREMENT_EVENT] > 64);
    CU_ASSERT_PTR_NOT_NULL(strstr(seen->text.bytes, "kind=\"nvlink_domain_down\""));
    memset(seen->beats_of, 0, sizeof seen->beats_of);
    model_advance(model, begin_ns + INT64_C(20000000000), see, seen);
    for (int r = 0; r < 128; r++)
        CU_ASSERT_EQUAL(seen->beats_of[r], 0);
    seen_free(seen);
}

static void take_own(void *context, const struct sample *sample)
{
    double *sums = context;
    static double before;
    if (sample->measurement != MEASUREMENT_STEP || sample->rank != 7 ||
        sample->values[FIELD_STEP] < 50)
        return;
    double own = sample->values[FIELD_COMPUTE_MS];
    sums[0] += 1;
    sums[1] += own;
    sums[2] += own * own;
    sums[3] += before > 0 ? own * before : 0;
    before = own;
}

TEST(the_noise_has_the_deviation_and_correlation_that_were_asked_for)
{
    struct model_config config = model_config_default();
    config.racks = 1;
    config.noise = 0.01;
    config.noise_lag1 = 0.6;
    double sums[4] = {0};
    AUTO(model_free) struct model *model = model_new(&config);
    model_start(model, INT64_C(1780000000000000000), 0);
    while (model_info(model).last_step < 20000)
        model_step(model, take_own, sums);
    double mean = sums[1] / sums[0];
    double variance = sums[2] / sums[0] - mean * mean;
    double lag1 = (sums[3] / (sums[0] - 1) - mean * mean) / variance;
    CU_ASSERT_DOUBLE_EQUAL(sqrt(variance) / mean, 0.01, 0.001);
    CU_ASSERT_DOUBLE_EQUAL(lag1, 0.6, 0.05);
}

/* 1 % of Student's t of five degrees of freedom lies above 3.365 (published tables). */
TEST(shocks_are_drawn_from_the_tail_that_the_noise_has)
{
    double least = 3.365 * sqrt(3.0 / 5.0);
    struct random random;
    int far = 0;

    random_seed(&random, test_seed());
    CU_ASSERT_DOUBLE_EQUAL(heavy_tail_part_above(least), 0.01, 1e-4);
    for (int i = 0; i < 2000; i++) {
        double drawn = heavy_tail_draw_above(least, &random);
        CU_ASSERT(drawn >= least);
        far += drawn > 1.5 * least;
    }
    CU_ASSERT_DOUBLE_EQUAL(far / 2000.0, heavy_tail_part_above(1.5 * least) / 0.01, 0.05);
}

TESTS(T(shocks_are_drawn_from_the_tail_that_the_noise_has),
      T(every_rank_sends_every_step_and_all_see_one_step_time),
      T(two_models_of_one_seed_send_the_same_bytes),
      T(a_slow_gpu_has_the_largest_own_time_and_the_smallest_all_reduce),
      T(a_stalled_host_slows_its_tray_while_its_sms_starve),
      T(a_dead_tray_is_silent_and_the_others_beat_on_without_a_step),
      T(a_job_that_is_moved_off_a_dead_tray_goes_on_from_its_checkpoint),
      T(a_lost_rack_falls_within_a_second_and_the_rest_within_seven),
      T(the_noise_has_the_deviation_and_correlation_that_were_asked_for))
