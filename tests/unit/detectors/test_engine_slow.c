/* Slowness end to end: who is named, why, at what cost, and who is not. */
#include "tests/unit/detectors/feed.h"

static bool names(const struct verdict *verdict, enum scope scope, const char *id)
{
    return verdict != NULL && verdict->scope == scope && strcmp(verdict->id, id) == 0;
}

TEST(a_clean_job_gets_no_verdict_in_a_thousand_steps)
{
    struct feed feed;

    feed_open(&feed, 128, 4);
    feed_steps(&feed, 1000);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(a_slow_gpu_is_named_within_twelve_steps_with_its_node_and_onset)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, 128, 4);
    feed_steps(&feed, 100);
    feed.slow[57] = 1.3;
    feed_steps(&feed, 12);
    verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "57"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_GPU);
    CU_ASSERT(verdict->evict);
    CU_ASSERT_EQUAL(verdict->node_count, 1);
    CU_ASSERT_STRING_EQUAL(verdict->nodes[0], "node14");
    CU_ASSERT(verdict->since_step >= 98 && verdict->since_step <= 102);
    CU_ASSERT_DOUBLE_EQUAL(verdict->slowdown, 1.3, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(verdict->gain, 150.0 / 720, 0.03);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_rank_that_was_slow_from_the_first_step_is_found)
{
    struct feed feed;

    feed_open(&feed, 64, 1);
    feed.slow[9] = 1.2;
    feed_steps(&feed, 60);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "9"));
    feed_close(&feed);
}

TEST(four_stalling_ranks_of_a_node_are_one_tray_and_the_host)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 80);
    for (int32_t r = 20; r < 24; r++)
        feed.stall_ms[r] = 200;
    feed_steps(&feed, 30);
    verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_FATAL(names(verdict, SCOPE_TRAY, "node5"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_HOST);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(two_ranks_of_a_node_that_stall_from_one_step_on_are_its_tray)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 80);
    for (int32_t r = 20; r < 22; r++)
        feed.stall_ms[r] = 200;
    feed_steps(&feed, 30);
    verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_FATAL(names(verdict, SCOPE_TRAY, "node5"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_HOST);
    CU_ASSERT(verdict->evict);
    CU_ASSERT(verdict->gain > 0.2); /* of both: each alone would win nothing */
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(two_ranks_of_a_node_that_stall_one_after_the_other_are_two)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 80);
    feed.stall_ms[20] = 200;
    feed_steps(&feed, 30);
    feed.stall_ms[21] = 300;
    feed_steps(&feed, 30);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "20"));
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 2);
    CU_ASSERT(names(&feed.verdicts[feed.count - 1], SCOPE_RANK, "21"));
    feed_close(&feed);
}

/* Its stalls are over before anything is judged, and their number alone says nothing. */
TEST(a_node_that_is_slow_while_it_warms_up_is_nothing)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    for (int32_t r = 20; r < 24; r++)
        feed.slow[r] = 1.25;
    feed_steps(&feed, 18);
    for (int32_t r = 20; r < 24; r++)
        feed.slow[r] = 1;
    feed_steps(&feed, 80);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

/* Long windows score a large shift highest long before they are full of it. */
TEST(a_rack_that_grows_slower_in_quiet_noise_is_one_verdict_of_the_rack)
{
    struct feed feed;

    feed_open(&feed, 256, 1);
    feed.noise = 0.002;
    feed.send_compute = false;
    feed_steps(&feed, 42);
    for (int32_t r = 64; r < 128; r++)
        feed.slow[r] = 1.15;
    feed_steps(&feed, 20);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RACK, "rack1"));
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(one_rack_of_two_slow_is_that_rack)
{
    struct feed feed;

    feed_open(&feed, 128, 4);
    feed_steps(&feed, 80);
    for (int32_t r = 64; r < 128; r++)
        feed.slow[r] = 1.15;
    feed_steps(&feed, 40);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RACK, "rack1"));
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    feed_close(&feed);
}

TEST(without_compute_times_the_late_tensor_group_is_told_by_its_sm_activity)
{
    struct feed feed;

    feed_open(&feed, 128, 4);
    feed.send_compute = false;
    feed_steps(&feed, 80);
    feed.slow[30] = 1.4;
    feed_steps(&feed, 30);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "30"));
    feed_close(&feed);
}

/* A policy may have found the first figures too small to act on. */
TEST(a_drift_is_told_again_in_one_step_as_it_grows)
{
    struct feed feed;
    double first = 0;
    double last = 0;

    feed_open(&feed, 128, 4);
    feed_steps(&feed, 100);
    for (int step = 1; step <= 400; step++) {
        feed.slow[57] = 1 + 0.3 * step / 400;
        feed_steps(&feed, 1);
    }
    for (int i = 0; i < feed.count; i++) {
        const struct verdict *verdict = &feed.verdicts[i];
        CU_ASSERT(names(verdict, SCOPE_RANK, "57") || names(verdict, SCOPE_TRAY, "node14"));
        if (verdict->kind == VERDICT_CLEAR) {
            CU_ASSERT_FATAL(i + 1 < feed.count);
            CU_ASSERT_EQUAL(verdict[1].kind, VERDICT_SLOW);
            CU_ASSERT_EQUAL(verdict[1].step, verdict->step);
        } else if (verdict->kind == VERDICT_SLOW) {
            CU_ASSERT(verdict->slowdown > last);
            last = verdict->slowdown;
            first = first > 0 ? first : last;
        }
    }
    CU_ASSERT(first > 1.02 && first < 1.08);
    CU_ASSERT(last > 1.15);
    feed_close(&feed);
}

TEST(a_fault_that_went_away_is_cleared)
{
    struct feed feed;

    feed_open(&feed, 64, 1);
    feed_steps(&feed, 60);
    feed.slow[3] = 1.5;
    feed_steps(&feed, 30);
    feed.slow[3] = 1;
    feed_steps(&feed, 40);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    CU_ASSERT(names(feed_find(&feed, VERDICT_CLEAR), SCOPE_RANK, "3"));
    feed_close(&feed);
}

TEST(spikes_of_changing_ranks_are_nobodys_fault)
{
    struct feed feed;

    feed_open(&feed, 128, 4);
    for (int step = 0; step < 600; step++) {
        int32_t rank = (int32_t)(test_random(&feed.random) % 128);
        feed.stall_ms[rank] = 700;
        feed_step(&feed);
        feed.stall_ms[rank] = 0;
    }
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 0);
    feed_close(&feed);
}

TEST(a_rank_that_stalls_in_every_third_step_is_found_though_its_median_is_normal)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 60);
    for (int step = 0; step < 120; step++) {
        feed.stall_ms[77] = step % 3 == 0 ? 400 : 0;
        feed_step(&feed);
    }
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "77"));
    feed_close(&feed);
}

TEST(duties_of_rank_0_are_told_once_and_never_accused)
{
    struct feed feed;

    feed_open(&feed, 64, 1);
    feed.stall_ms[0] = 30;
    feed_steps(&feed, 300);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 0);
    CU_ASSERT(feed_count(&feed, VERDICT_INFO) <= 2);
    feed_close(&feed);
}

TEST(the_tray_and_the_rack_of_rank_0_are_accused_like_others)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 60);
    for (int32_t r = 0; r < 4; r++)
        feed.stall_ms[r] = 60;
    feed_steps(&feed, 40);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_TRAY, "node0"));
    feed_close(&feed);

    feed_open(&feed, 192, 4);
    feed_steps(&feed, 60);
    for (int32_t r = 0; r < 64; r++)
        feed.slow[r] = 1.08;
    feed_steps(&feed, 40);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RACK, "rack0"));
    feed_close(&feed);
}

TEST(full_memory_is_the_jobs_doing_first)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, 64, 1);
    feed_steps(&feed, 60);
    feed.mem[11] = 0.98;
    feed.slow[11] = 1.15;
    feed_steps(&feed, 40);
    verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "11"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_MEMORY);
    CU_ASSERT_FALSE(verdict->evict);
    feed_close(&feed);
}

TEST(transfers_that_all_grow_are_a_regression_of_the_job_by_the_network)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, 64, 4);
    feed_steps(&feed, 80);
    feed.transfer_ms = 150;
    feed_steps(&feed, 60);
    verdict = feed_find(&feed, VERDICT_REGRESSION);
    CU_ASSERT_FATAL(names(verdict, SCOPE_JOB, "team/job"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_NETWORK);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 0);
    feed_close(&feed);
}

TEST(a_short_spell_of_congestion_is_nothing)
{
    struct feed feed;

    feed_open(&feed, 64, 4);
    for (int spell = 0; spell < 6; spell++) {
        feed.transfer_ms = 60;
        feed_steps(&feed, 60);
        feed.transfer_ms = 200;
        feed_steps(&feed, 10);
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(pauses_of_the_whole_job_are_nothing)
{
    struct feed feed;

    feed_open(&feed, 64, 4);
    for (int step = 0; step < 400; step++) {
        feed.pause_ms = step % 50 == 49 ? 20000 : 0;
        feed_step(&feed);
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(a_verdict_follows_its_gpu_over_a_restart_and_clears_when_the_node_is_replaced)
{
    struct feed feed;

    feed_open(&feed, 64, 1);
    feed_steps(&feed, 60);
    feed.slow[3] = 1.4;
    feed_steps(&feed, 30);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    feed.step = 40;
    feed.now_ns += INT64_C(60000000000);
    feed_steps(&feed, 60);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_CLEAR), 0);

    feed.slow[3] = 1;
    feed.step = 40;
    feed.now_ns += INT64_C(60000000000);
    for (int32_t r = 0; r < 4; r++) {
        struct sample hello = {
            .measurement = MEASUREMENT_HELLO, .rank = r, .host = view_of("spare0")};
        feed_set(&hello, FIELD_GPU, r);
        feed_set(&hello, FIELD_ATTEMPT, 2);
        feed_send(&feed, &hello);
    }
    feed_steps(&feed, 60);
    CU_ASSERT(names(feed_find(&feed, VERDICT_CLEAR), SCOPE_RANK, "3"));
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    CU_ASSERT_STRING_EQUAL(
        engine_job(feed.engine)->trays[engine_job(feed.engine)->ranks[0].tray].node, "spare0");
    CU_ASSERT_EQUAL(engine_progress(feed.engine).attempt, 2);
    feed_close(&feed);
}

TEST(times_in_other_units_give_the_same_verdicts)
{
    /* Twice the base time, everything else equal: residuals are parts of the work. */
    struct feed feed;
    int64_t first_step;

    feed_open(&feed, 64, 1);
    feed_steps(&feed, 60);
    feed.slow[8] = 1.25;
    feed_steps(&feed, 20);
    CU_ASSERT_FATAL(feed_find(&feed, VERDICT_SLOW) != NULL);
    first_step = feed_find(&feed, VERDICT_SLOW)->step;
    feed_close(&feed);

    feed_open(&feed, 64, 1);
    for (int32_t r = 0; r < 64; r++)
        feed.slow[r] = 2;
    feed.transfer_ms = 120;
    feed_steps(&feed, 60);
    feed.slow[8] = 2.5;
    feed_steps(&feed, 20);
    CU_ASSERT_FATAL(feed_find(&feed, VERDICT_SLOW) != NULL);
    CU_ASSERT_EQUAL(feed_find(&feed, VERDICT_SLOW)->step, first_step);
    feed_close(&feed);
}

TEST(switched_off_it_reads_everything_and_says_nothing)
{
    struct feed feed;
    struct engine_params params = engine_params_default();

    feed_open(&feed, 64, 1);
    engine_free(feed.engine);
    params.enabled = false;
    feed.engine = engine_new(feed.job, &params);
    feed_steps(&feed, 60);
    feed.slow[3] = 2;
    feed_steps(&feed, 40);
    CU_ASSERT_EQUAL(feed.count, 0);
    CU_ASSERT_EQUAL(engine_counts(feed.engine).used, 64 * 100);
    feed_close(&feed);
}

TEST(a_persons_view_of_a_slow_rank_says_abnormal_and_how_much)
{
    struct feed feed;
    struct engine_rank rank;

    feed_open(&feed, 64, 1);
    feed_steps(&feed, 10);
    CU_ASSERT_STRING_EQUAL(engine_rank_get(feed.engine, 5).status, "not_enough_data");
    feed_steps(&feed, 60);
    CU_ASSERT_STRING_EQUAL(engine_rank_get(feed.engine, 5).status, "normal");
    feed.slow[5] = 1.3;
    feed_steps(&feed, 30);
    rank = engine_rank_get(feed.engine, 5);
    CU_ASSERT_STRING_EQUAL(rank.status, "abnormal");
    CU_ASSERT_DOUBLE_EQUAL(rank.slow_ratio, 1.3, 0.03);
    CU_ASSERT_DOUBLE_EQUAL(rank.suspicion, 1, 0.01);
    CU_ASSERT_STRING_EQUAL(engine_rank_get(feed.engine, 6).status, "normal");
    feed_close(&feed);
}

/* Steps from the onset to the first verdict that advises. */
static int64_t steps_to_advice(double slow)
{
    struct feed feed;
    int64_t onset, told = -1;

    feed_open(&feed, 256, 1);
    feed.noise = 0.004;
    feed_steps(&feed, 100);
    onset = feed.step;
    feed.slow[77] = slow;
    feed_steps(&feed, 40);
    for (int i = 0; i < feed.count && told < 0; i++)
        if (feed.verdicts[i].evict && strcmp(feed.verdicts[i].id, "77") == 0)
            told = feed.verdicts[i].step;
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    feed_close(&feed);
    return told < 0 ? 1000 : told - onset;
}

TEST(a_rank_that_grows_slower_alone_is_named_after_four_to_six_steps)
{
    CU_ASSERT(steps_to_advice(1.05) <= 6);
    CU_ASSERT(steps_to_advice(1.1) <= 4);
    CU_ASSERT(steps_to_advice(1.34) <= 4);
}

TEST(a_burst_of_three_slow_steps_is_nothing)
{
    struct feed feed;

    feed_open(&feed, 256, 1);
    feed_steps(&feed, 100);
    for (int r = 0; r < 256; r += 37) {
        feed.slow[r] = 1.3;
        feed_steps(&feed, 3);
        feed.slow[r] = 1;
        feed_steps(&feed, 20);
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

static void send_gauges(struct feed *feed, int32_t slow_rank, double clock_mhz)
{
    static const char *const NUMBERS[] = {"0", "1", "2", "3"};

    for (int32_t r = 0; r < feed->job->world_size; r++) {
        struct sample sample = {.measurement = MEASUREMENT_GPU,
                                .rank = RANK_NONE,
                                .host = view_of(feed->job->trays[r / 4].node),
                                .gpu = view_of(NUMBERS[r % 4])};
        feed_set(&sample, FIELD_CLOCK_MHZ, r == slow_rank ? clock_mhz : 1900);
        feed_set(&sample, FIELD_POWER_W, r == 3 ? 9223372036854775794.0 : 900); /* a blank */
        feed_send(feed, &sample);
    }
}

static double evidence_of(const struct verdict *verdict, const char *name)
{
    for (size_t i = 0; i < verdict->evidence_count; i++)
        if (strcmp(verdict->evidence[i].name, name) == 0)
            return verdict->evidence[i].value;
    return (double)NAN;
}

TEST(a_low_clock_is_told_and_says_that_it_is_the_gpu)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 80);
    feed.stall_ms[21] = 75; /* its SMs starve, as far as they tell */
    send_gauges(&feed, 21, 1650);
    feed_steps(&feed, 40);
    const struct verdict *verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(verdict);
    CU_ASSERT_STRING_EQUAL(verdict->id, "21");
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_GPU);
    CU_ASSERT_DOUBLE_EQUAL(evidence_of(verdict, "clock_ratio"), 1650.0 / 1900, 0.001);
    CU_ASSERT_DOUBLE_EQUAL(evidence_of(verdict, "power_ratio"), 1, 0.001);
    feed_close(&feed);
}

TEST(a_shock_that_dies_away_is_nothing)
{
    static const double SHOCK[] = {1.5, 1.28, 1.16, 1.1, 1.06, 1.04, 1.02, 1.01};
    struct feed feed;

    feed_open(&feed, 256, 1);
    feed_steps(&feed, 100);
    for (int r = 0; r < 256; r += 51) {
        for (size_t i = 0; i < ARRAY_LEN(SHOCK); i++) {
            feed.slow[r] = SHOCK[i];
            feed_step(&feed);
        }
        feed.slow[r] = 1;
        feed_steps(&feed, 20);
    }
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 0);
    feed_close(&feed);
}

TEST(a_rank_of_a_group_over_two_trays_is_named_where_the_waits_of_its_peers_are_known)
{
    struct feed feed;

    feed_open(&feed, 128, 8);
    feed.job->compute = COMPUTE_INCLUSIVE;
    engine_free(feed.engine);
    struct engine_params params = engine_params_default();
    feed.engine = engine_new(feed.job, &params);
    feed.inclusive = true;
    feed_steps(&feed, 80);
    feed.slow[21] = 1.1;
    feed_steps(&feed, 40);
    const struct verdict *verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(verdict);
    CU_ASSERT_EQUAL(verdict->scope, SCOPE_RANK);
    CU_ASSERT_STRING_EQUAL(verdict->id, "21");
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_tray_that_waits_for_data_is_named_and_not_its_tensor_group_over_two_trays)
{
    struct feed feed;

    feed_open(&feed, 128, 8);
    for (int r = 0; r < 128; r++)
        feed.data_ms[r] = 5;
    feed_steps(&feed, 80);
    for (int r = 20; r < 24; r++)
        feed.data_ms[r] = 60;
    feed_steps(&feed, 60);
    const struct verdict *verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(verdict);
    CU_ASSERT_EQUAL(verdict->scope, SCOPE_TRAY);
    CU_ASSERT_STRING_EQUAL(verdict->id, "node5");
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_DATA);
    CU_ASSERT_FALSE(verdict->evict);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

/* One rank after the other is slower for some steps: experts that many tokens go to. */
static void feed_bursts(struct feed *feed, int first, int count, int rows, double slow)
{
    for (int i = first; i < first + count; i++) {
        int32_t rank = (37 * i + 5) % feed->job->world_size;
        feed->slow[rank] = slow;
        feed_steps(feed, rows);
        feed->slow[rank] = 1;
        feed_steps(feed, 5);
    }
}

TEST(bursts_that_come_and_go_at_other_ranks_are_no_fault_and_what_outlasts_them_is)
{
    struct feed feed;
    int64_t onset;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 60);
    feed_bursts(&feed, 0, 3, 3, 1.2); /* too short to be told */
    feed_bursts(&feed, 3, 12, 8, 1.2);
    feed_bursts(&feed, 15, 2, 13, 1.25);
    CU_ASSERT_EQUAL(feed.count, 0);
    onset = feed.step;
    feed.slow[64] = 1.2;
    feed_steps(&feed, 200);
    CU_ASSERT_FATAL(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "64"));
    CU_ASSERT(feed_find(&feed, VERDICT_SLOW)->evict);
    CU_ASSERT(feed_find(&feed, VERDICT_SLOW)->step > onset + 26);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(stronger_than_any_burst_is_told_at_once)
{
    struct feed feed;

    feed_open(&feed, 128, 1);
    feed_steps(&feed, 60);
    feed_bursts(&feed, 0, 4, 3, 1.2);
    feed_bursts(&feed, 4, 6, 8, 1.2);
    feed.slow[64] = 1.5;
    feed_steps(&feed, 10);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "64"));
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(the_first_burst_of_a_job_with_experts_is_waited_out_and_a_slow_gpu_is_found)
{
    struct feed feed;

    feed_open_experts(&feed, 128, 8, 1, COMPUTE_KERNEL);
    feed_steps(&feed, 60);
    feed_bursts(&feed, 0, 1, 13, 1.2);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_steps(&feed, 20);
    feed.slow[64] = 1.2;
    feed_steps(&feed, 36);
    CU_ASSERT(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "64"));
    CU_ASSERT(feed_find(&feed, VERDICT_SLOW)->evict);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

/* All of an expert group wait in what they send as compute. */
TEST(a_rank_that_its_expert_group_waits_for_is_told_once_and_none_of_those_who_wait)
{
    struct feed feed;

    feed_open_experts(&feed, 256, 8, 2, COMPUTE_INCLUSIVE);
    feed_steps(&feed, 60);
    feed.slow[20] = 1.5;
    feed_steps(&feed, 150);
    CU_ASSERT_FATAL(names(feed_find(&feed, VERDICT_SLOW), SCOPE_RANK, "20"));
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    feed_close(&feed);
}

TESTS(T(a_shock_that_dies_away_is_nothing), T(a_low_clock_is_told_and_says_that_it_is_the_gpu),
      T(a_rank_that_grows_slower_alone_is_named_after_four_to_six_steps),
      T(a_burst_of_three_slow_steps_is_nothing),
      T(a_rank_of_a_group_over_two_trays_is_named_where_the_waits_of_its_peers_are_known),
      T(a_tray_that_waits_for_data_is_named_and_not_its_tensor_group_over_two_trays),
      T(a_clean_job_gets_no_verdict_in_a_thousand_steps),
      T(a_slow_gpu_is_named_within_twelve_steps_with_its_node_and_onset),
      T(a_rank_that_was_slow_from_the_first_step_is_found),
      T(four_stalling_ranks_of_a_node_are_one_tray_and_the_host),
      T(two_ranks_of_a_node_that_stall_from_one_step_on_are_its_tray),
      T(two_ranks_of_a_node_that_stall_one_after_the_other_are_two),
      T(a_node_that_is_slow_while_it_warms_up_is_nothing),
      T(a_rack_that_grows_slower_in_quiet_noise_is_one_verdict_of_the_rack),
      T(one_rack_of_two_slow_is_that_rack),
      T(without_compute_times_the_late_tensor_group_is_told_by_its_sm_activity),
      T(a_drift_is_told_again_in_one_step_as_it_grows), T(a_fault_that_went_away_is_cleared),
      T(spikes_of_changing_ranks_are_nobodys_fault),
      T(a_rank_that_stalls_in_every_third_step_is_found_though_its_median_is_normal),
      T(duties_of_rank_0_are_told_once_and_never_accused),
      T(the_tray_and_the_rack_of_rank_0_are_accused_like_others),
      T(full_memory_is_the_jobs_doing_first),
      T(transfers_that_all_grow_are_a_regression_of_the_job_by_the_network),
      T(a_short_spell_of_congestion_is_nothing), T(pauses_of_the_whole_job_are_nothing),
      T(a_verdict_follows_its_gpu_over_a_restart_and_clears_when_the_node_is_replaced),
      T(times_in_other_units_give_the_same_verdicts),
      T(switched_off_it_reads_everything_and_says_nothing),
      T(a_persons_view_of_a_slow_rank_says_abnormal_and_how_much),
      T(bursts_that_come_and_go_at_other_ranks_are_no_fault_and_what_outlasts_them_is),
      T(stronger_than_any_burst_is_told_at_once),
      T(the_first_burst_of_a_job_with_experts_is_waited_out_and_a_slow_gpu_is_found),
      T(a_rank_that_its_expert_group_waits_for_is_told_once_and_none_of_those_who_wait))
