#include "controller/rehearse/model.h"
#include "tests/harness/test.h"

#include <math.h>

enum { RANKS = 128, STEPS = 60, ONSET = 30 };

/* Sums over the steps before and after the fault's onset, by rank. */
struct sums {
    double own[2][RANKS], allreduce[2][RANKS], tp[2][RANKS], mem[2][RANKS], data[2][RANKS],
        step_ms[2];
    int64_t steps[2];
    int64_t nan_losses, losses;
};

static void add(void *context, const struct sample *sample)
{
    struct sums *sums = context;
    if (sample->measurement != MEASUREMENT_STEP || sample->values[FIELD_STEP] < 10)
        return;
    int after = sample->values[FIELD_STEP] >= ONSET;
    int64_t r = sample->rank;
    sums->own[after][r] += sample->values[FIELD_COMPUTE_MS];
    sums->allreduce[after][r] += sample->values[FIELD_ALLREDUCE_MS];
    sums->tp[after][r] += sample_has(sample, FIELD_TP_MS) ? sample->values[FIELD_TP_MS] : 0;
    sums->data[after][r] += sample->values[FIELD_DATA_MS];
    sums->mem[after][r] = fmax(sums->mem[after][r], sample->values[FIELD_MEM]);
    if (sample_has(sample, FIELD_LOSS) && after == 1) {
        sums->losses++;
        sums->nan_losses += isnan(sample->values[FIELD_LOSS]);
    }
    if (r != 0)
        return;
    sums->step_ms[after] += sample->values[FIELD_STEP_MS];
    sums->steps[after]++;
}

static struct sums play(int32_t tp, const struct model_fault *fault)
{
    struct model_config config = model_config_default();
    struct sums sums = {0};
    config.tp = tp;
    config.seed = test_seed();
    config.send_tp = config.send_data = true;
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model, fault);
    model_start(model, config.start_ns, 0);
    while (model_info(model).last_step < STEPS)
        model_step(model, add, &sums);
    return sums;
}

/* Mean after the onset over the mean before. */
static double growth(double (*sums)[RANKS], const struct sums *all, int32_t rank)
{
    return sums[1][rank] / (double)all->steps[1] / (sums[0][rank] / (double)all->steps[0]);
}

static double slowdown(const struct sums *sums)
{
    return sums->step_ms[1] / (double)sums->steps[1] / (sums->step_ms[0] / (double)sums->steps[0]);
}

TEST(a_rail_slows_the_transfer_of_the_groups_that_use_it)
{
    struct sums sums = play(
        4, &(struct model_fault){
               .kind = FAULT_RAIL, .tray = -1, .gpu = 2, .magnitude = 3, .from_step = ONSET});
    CU_ASSERT(growth(sums.allreduce, &sums, 2) > 1.5);
    CU_ASSERT(growth(sums.allreduce, &sums, 42) > 1.5);
    CU_ASSERT_DOUBLE_EQUAL(growth(sums.allreduce, &sums, 1), 1, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(growth(sums.own, &sums, 2), 1, 0.01);
}

TEST(a_switch_tray_slows_tensor_collectives_of_its_rack_alone)
{
    struct sums sums = play(
        4, &(struct model_fault){
               .kind = FAULT_SWITCH_TRAY, .rack = 1, .magnitude = 2, .from_step = ONSET});
    CU_ASSERT(growth(sums.tp, &sums, 70) > 1.5);
    CU_ASSERT_DOUBLE_EQUAL(growth(sums.tp, &sums, 5), 1, 0.1);
}

static void count_reports(void *context, const struct sample *sample)
{
    int *reports = context;
    if (sample->measurement != MEASUREMENT_EVENT ||
        !view_equals(sample->kind, "nvswitch_tray_fault"))
        return;
    CU_ASSERT(sample->rack.length > 0 && sample->host.length == 0);
    CU_ASSERT_DOUBLE_EQUAL(sample->values[FIELD_TRAY], 6, 0.01);
    ++*reports;
}

TEST(a_switch_tray_is_reported_once_where_a_monitor_sees_it)
{
    for (int reported = 0; reported < 2; reported++) {
        struct model_config config = model_config_default();
        AUTO(model_free) struct model *model = model_new(&config);
        int reports = 0;
        model_add_fault(model, &(struct model_fault){.kind = FAULT_SWITCH_TRAY,
                                                     .rack = 1,
                                                     .gpu = 6,
                                                     .magnitude = 2,
                                                     .from_step = 10,
                                                     .reported = reported == 1});
        model_start(model, config.start_ns, 0);
        while (model_info(model).last_step < 20)
            model_step(model, count_reports, &reports);
        CU_ASSERT_EQUAL(reports, reported);
    }
}

TEST(memory_pressure_fills_the_memory_of_one_gpu_and_makes_it_unsteady)
{
    struct sums sums = play(
        1, &(struct model_fault){
               .kind = FAULT_MEMORY, .tray = 4, .gpu = 3, .magnitude = 1.2, .from_step = ONSET});
    CU_ASSERT(sums.mem[1][19] > 0.97 && sums.mem[0][19] < 0.9);
    CU_ASSERT(sums.mem[1][18] < 0.9);
    CU_ASSERT(growth(sums.own, &sums, 19) > 1.02);
}

TEST(a_slow_loader_shows_in_the_data_time_and_a_regression_in_every_rank)
{
    struct sums data = play(
        1,
        &(struct model_fault){.kind = FAULT_DATA, .tray = 4, .magnitude = 1.1, .from_step = ONSET});
    CU_ASSERT(growth(data.data, &data, 17) > 10);
    CU_ASSERT_DOUBLE_EQUAL(growth(data.own, &data, 17), 1, 0.01);
    struct sums all = play(
        1, &(struct model_fault){.kind = FAULT_REGRESSION, .magnitude = 1.05, .from_step = ONSET});
    for (int r = 0; r < RANKS; r++)
        CU_ASSERT_DOUBLE_EQUAL(growth(all.own, &all, r), 1.05, 0.01);
}

TEST(congestion_slows_transfer_and_a_slow_rack_all_of_its_gpus)
{
    struct sums congested = play(
        1, &(struct model_fault){.kind = FAULT_CONGESTION, .magnitude = 3, .from_step = ONSET});
    CU_ASSERT(slowdown(&congested) > 1.1);
    CU_ASSERT_DOUBLE_EQUAL(growth(congested.own, &congested, 3), 1, 0.01);
    struct sums rack = play(
        1, &(struct model_fault){
               .kind = FAULT_SLOW_RACK, .rack = 1, .magnitude = 1.1, .from_step = ONSET});
    for (int r = 0; r < RANKS; r++)
        CU_ASSERT_DOUBLE_EQUAL(growth(rack.own, &rack, r), r >= 64 ? 1.1 : 1.0, 0.02);
}

TEST(lost_lanes_slow_one_rail_and_slow_storage_everybodys_data)
{
    struct sums lanes = play(
        4, &(struct model_fault){
               .kind = FAULT_PCIE, .tray = 4, .gpu = 2, .magnitude = 3, .from_step = ONSET});
    CU_ASSERT(growth(lanes.allreduce, &lanes, 2) > 1.5);
    CU_ASSERT_DOUBLE_EQUAL(growth(lanes.allreduce, &lanes, 1), 1, 0.1);
    struct sums storage = play(
        1, &(struct model_fault){.kind = FAULT_STORAGE, .magnitude = 1.1, .from_step = ONSET});
    for (int r = 0; r < RANKS; r++)
        CU_ASSERT(growth(storage.data, &storage, r) > 10);
    CU_ASSERT(slowdown(&storage) > 1.05);
}

/* What one rank's lines and its tray's monitor say. */
struct hearing {
    int cards_down, strays, of_others;
};

static void hear(void *context, const struct sample *sample)
{
    struct hearing *hearing = context;
    if (sample->measurement == MEASUREMENT_EVENT && view_equals(sample->kind, "nic_down"))
        hearing->cards_down++;
    if (sample->measurement != MEASUREMENT_STEP || !(sample->values[FIELD_GRAD_NORM] > 2))
        return;
    hearing->strays += sample->rank == 18;
    hearing->of_others += sample->rank != 18;
}

TEST(a_flapping_card_is_reported_each_time_and_a_corrupt_gpu_strays_now_and_then)
{
    struct model_config config = model_config_default();
    AUTO(model_free) struct model *model = model_new(&config);
    struct hearing hearing = {0};
    config.seed = test_seed();
    model_add_fault(model, &(struct model_fault){.kind = FAULT_NIC_FLAP,
                                                 .tray = 4,
                                                 .magnitude = 30,
                                                 .from_step = 10,
                                                 .period_steps = 20,
                                                 .on_steps = 1});
    model_add_fault(model,
                    &(struct model_fault){
                        .kind = FAULT_SDC, .tray = 4, .gpu = 2, .magnitude = 4, .from_step = 10});
    model_start(model, config.start_ns, 0);
    while (model_info(model).last_step < 60)
        model_step(model, hear, &hearing);
    CU_ASSERT_EQUAL(hearing.cards_down, 3);
    CU_ASSERT(hearing.strays > 3 && hearing.strays < 35);
    CU_ASSERT_EQUAL(hearing.of_others, 0);
}

TEST(a_loss_that_is_no_number_is_sent_as_such)
{
    struct sums sums = play(4, &(struct model_fault){.kind = FAULT_NAN, .from_step = ONSET});
    CU_ASSERT(sums.losses > 0);
    CU_ASSERT_EQUAL(sums.losses, sums.nan_losses);
}

TEST(a_drift_grows_a_flapping_fault_comes_and_goes_and_a_short_one_ends)
{
    struct model_fault drift = {.kind = FAULT_SLOW_GPU, .ramp_steps = 10};
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&drift, 5, 4), 0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&drift, 5, 9), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&drift, 5, 50), 1, 1e-12);
    struct model_fault flapping = {.kind = FAULT_RAIL, .period_steps = 10, .on_steps = 3};
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&flapping, 0, 22), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&flapping, 0, 25), 0, 1e-12);
    struct model_fault brief = {.kind = FAULT_NAN, .until_step = 40};
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&brief, 30, 39), 1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&brief, 30, 40), 0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(fault_activity(&brief, -1, 35), 0, 1e-12);
}

TESTS(T(a_rail_slows_the_transfer_of_the_groups_that_use_it),
      T(a_switch_tray_slows_tensor_collectives_of_its_rack_alone),
      T(a_switch_tray_is_reported_once_where_a_monitor_sees_it),
      T(memory_pressure_fills_the_memory_of_one_gpu_and_makes_it_unsteady),
      T(a_slow_loader_shows_in_the_data_time_and_a_regression_in_every_rank),
      T(congestion_slows_transfer_and_a_slow_rack_all_of_its_gpus),
      T(lost_lanes_slow_one_rail_and_slow_storage_everybodys_data),
      T(a_flapping_card_is_reported_each_time_and_a_corrupt_gpu_strays_now_and_then),
      T(a_loss_that_is_no_number_is_sent_as_such),
      T(a_drift_grows_a_flapping_fault_comes_and_goes_and_a_short_one_ends))
