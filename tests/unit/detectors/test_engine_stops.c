/* Stops, events and numbers end to end. */
#include "tests/unit/detectors/feed.h"

enum { RANKS = 128 };

static bool names(const struct verdict *verdict, enum scope scope, const char *id)
{
    return verdict != NULL && verdict->scope == scope && strcmp(verdict->id, id) == 0;
}

static void open_running(struct feed *feed)
{
    feed_open(feed, RANKS, 4);
    feed_steps(feed, 60);
}

TEST(a_node_that_falls_silent_while_the_others_wait_is_a_crash_of_its_tray)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    const struct verdict *verdict;

    open_running(&feed);
    for (int32_t r = 8; r < 12; r++)
        silent[r] = true;
    feed_stuck(&feed, 120, silent, computing);
    verdict = feed_find(&feed, VERDICT_CRASH);
    CU_ASSERT_FATAL(names(verdict, SCOPE_TRAY, "node2"));
    CU_ASSERT(verdict->evict);
    CU_ASSERT_EQUAL(verdict->rank_count, 4);
    CU_ASSERT_EQUAL(verdict->victim_count, RANKS - 4);
    CU_ASSERT_EQUAL(verdict->step, 59);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_rack_that_falls_silent_is_one_crash_of_the_rack)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};

    open_running(&feed);
    for (int32_t r = 64; r < 128; r++)
        silent[r] = true;
    feed_stuck(&feed, 180, silent, computing);
    CU_ASSERT(names(feed_find(&feed, VERDICT_CRASH), SCOPE_RACK, "rack1"));
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_rank_that_computes_for_ever_hangs_the_job_and_is_not_to_be_replaced)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    const struct verdict *verdict;

    open_running(&feed);
    for (int32_t r = 40; r < 44; r++) /* its tensor group waits inside compute */
        computing[r] = true;
    feed_stuck(&feed, 280, silent, computing);
    verdict = feed_find(&feed, VERDICT_HANG);
    CU_ASSERT_FATAL(names(verdict, SCOPE_TRAY, "node10"));
    CU_ASSERT_FALSE(verdict->evict);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_hang_is_told_within_five_minutes_of_the_last_step)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    int64_t last_ns;

    open_running(&feed);
    last_ns = feed.now_ns;
    computing[3] = true;
    feed_stuck(&feed, 600, silent, computing);
    CU_ASSERT_FATAL(names(feed_find(&feed, VERDICT_HANG), SCOPE_RANK, "3"));
    CU_ASSERT(feed_find(&feed, VERDICT_HANG)->time_ns - last_ns <= INT64_C(300000000000));
    feed_close(&feed);
}

TEST(checkpoints_and_evaluations_that_ranks_speak_of_are_no_hang)
{
    struct feed feed;

    open_running(&feed);
    for (int s = 0; s < 900; s += 10) {
        feed.now_ns += INT64_C(10000000000);
        for (int32_t r = 0; r < RANKS; r++)
            feed_beat(&feed, r, s < 450 ? "checkpoint" : "eval");
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

/* One line of gauges of every host but one. */
static void gauge_round(struct feed *feed, int32_t without)
{
    for (int32_t tray = 0; tray < RANKS / 4; tray++) {
        char host[32];
        (void)snprintf(host, sizeof host, "node%d", (int)tray);
        struct sample gauge = {
            .measurement = MEASUREMENT_GPU, .rank = RANK_NONE, .host = view_of(host)};
        feed_set(&gauge, FIELD_SM, 0.96);
        if (tray != without)
            feed_send(feed, &gauge);
    }
}

/* Only gauges come, every so many seconds; there are no beats. */
static void gauges_go_on(struct feed *feed, int seconds, int every, int32_t without)
{
    for (int s = 0; s < seconds; s += every) {
        feed->now_ns += every * INT64_C(1000000000);
        gauge_round(feed, without);
    }
}

static void open_running_with_gauges(struct feed *feed, int every)
{
    open_running(feed);
    for (int round = 0; round < 3; round++) {
        int64_t until_ns = feed->now_ns + every * INT64_C(1000000000);
        while (feed->now_ns < until_ns)
            feed_steps(feed, 1);
        gauge_round(feed, JOB_NONE);
    }
}

TEST(gauges_that_stay_busy_hide_no_hang)
{
    struct feed feed;

    open_running(&feed);
    gauges_go_on(&feed, 300, 5, JOB_NONE);
    CU_ASSERT(names(feed_find(&feed, VERDICT_HANG), SCOPE_JOB, "team/job"));
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(without_beats_the_host_whose_gauges_stop_is_the_one_that_crashed)
{
    struct feed feed;

    open_running(&feed);
    gauges_go_on(&feed, 300, 5, 9);
    CU_ASSERT(names(feed_find(&feed, VERDICT_CRASH), SCOPE_TRAY, "node9"));
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(rounds_of_gauges_far_apart_move_time_and_hide_no_hang)
{
    static const int EVERY_SECONDS[] = {15, 30, 60};

    for (size_t i = 0; i < sizeof EVERY_SECONDS / sizeof EVERY_SECONDS[0]; i++) {
        struct feed feed;

        open_running_with_gauges(&feed, EVERY_SECONDS[i]);
        int64_t last_ns = feed.now_ns;
        gauges_go_on(&feed, 300, EVERY_SECONDS[i], JOB_NONE);
        const struct verdict *verdict = feed_find(&feed, VERDICT_HANG);
        CU_ASSERT_FATAL(names(verdict, SCOPE_JOB, "team/job"));
        CU_ASSERT(verdict->time_ns - last_ns <= INT64_C(300000000000));
        CU_ASSERT_EQUAL(feed.count, 1);
        feed_close(&feed);
    }
}

TEST(among_gauges_far_apart_the_host_whose_gauges_stop_is_the_one_that_crashed)
{
    static const int EVERY_SECONDS[] = {15, 30, 60};

    for (size_t i = 0; i < sizeof EVERY_SECONDS / sizeof EVERY_SECONDS[0]; i++) {
        struct feed feed;

        open_running_with_gauges(&feed, EVERY_SECONDS[i]);
        gauges_go_on(&feed, 300, EVERY_SECONDS[i], 9);
        CU_ASSERT(names(feed_find(&feed, VERDICT_CRASH), SCOPE_TRAY, "node9"));
        CU_ASSERT_EQUAL(feed.count, 1);
        feed_close(&feed);
    }
}

/* What brings the lines was away for ten minutes; the job went on. */
TEST(a_gap_in_the_lines_that_ends_with_later_steps_is_no_hang)
{
    struct feed feed;

    open_running(&feed);
    feed.now_ns += INT64_C(600000000000);
    feed.step += 1000;
    feed_steps(&feed, 20);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(silence_after_the_job_has_finished_is_right)
{
    struct feed feed;
    struct sample mark = {
        .measurement = MEASUREMENT_MARK, .rank = RANK_NONE, .kind = view_of("finished")};

    open_running(&feed);
    feed_send(&feed, &mark);
    engine_advance(feed.engine, feed.now_ns + INT64_C(3600000000000));
    feed_take(&feed);
    CU_ASSERT_EQUAL(feed.count, 0);
    CU_ASSERT_STRING_EQUAL(engine_progress(feed.engine).phase, "finished");
    feed_close(&feed);
}

TEST(when_everything_falls_silent_no_rank_is_singled_out)
{
    struct feed feed;
    const struct verdict *verdict;

    open_running(&feed);
    for (int s = 0; s < 400; s++)
        engine_advance(feed.engine, feed.now_ns + s * INT64_C(1000000000));
    feed_take(&feed);
    verdict = feed_find(&feed, VERDICT_HANG);
    CU_ASSERT_FATAL(names(verdict, SCOPE_JOB, "team/job"));
    CU_ASSERT_FALSE(verdict->evict);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_fatal_xid_of_a_rank_that_stops_is_a_fault_of_that_rank)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    const struct verdict *verdict;

    open_running(&feed);
    feed_event(&feed, "xid", "node6", "2", 79);
    feed_event(&feed, "xid", "node6", "2", 45);
    silent[26] = true;
    feed_stuck(&feed, 200, silent, computing);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "26"));
    CU_ASSERT(verdict->evict);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(an_accused_rank_that_goes_on_is_not_to_be_replaced)
{
    struct feed feed;
    const struct verdict *verdict;

    open_running(&feed);
    feed_event(&feed, "xid", "node6", "2", 79);
    feed_steps(&feed, 40);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "26"));
    CU_ASSERT_FALSE(verdict->evict);
    feed_close(&feed);
}

TEST(without_a_hold_an_event_is_told_at_once_as_if_its_rank_had_stopped)
{
    struct feed feed;
    struct engine_params params = engine_params_default();
    const struct verdict *verdict;

    feed_open(&feed, RANKS, 4);
    engine_free(feed.engine);
    params.event_hold_ns = 0;
    feed.engine = engine_new(feed.job, &params);
    feed_steps(&feed, 60);
    feed_event(&feed, "xid", "node6", "2", 79);
    feed_take(&feed);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "26"));
    CU_ASSERT(verdict->evict);
    feed_event(&feed, "xid", "node9", "1", 13);
    feed_take(&feed);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(application_xids_and_bare_nvlink_codes_are_no_faults)
{
    static const double CODES[] = {13, 31, 43, 45, 145, 149};
    struct feed feed;

    open_running(&feed);
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        feed_event(&feed, "xid", "node3", "1", CODES[i]);
        feed_steps(&feed, 30);
    }
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_FAULT), 0);
    feed_close(&feed);
}

static void send_nvlink(struct feed *feed, const char *host, const char *gpu, double code,
                        const char *message)
{
    struct sample sample = {.measurement = MEASUREMENT_EVENT,
                            .rank = RANK_NONE,
                            .kind = view_of("xid"),
                            .host = view_of(host),
                            .gpu = view_of(gpu),
                            .message = view_of(message)};

    feed_set(&sample, FIELD_CODE, code);
    feed_send(feed, &sample);
}

TEST(an_nvlink_code_is_a_fault_or_nothing_by_what_the_driver_says_with_it)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    const struct verdict *verdict;

    open_running(&feed);
    /* Neighbours of the broken tray only notice. */
    for (int t = 0; t < 16; t++) {
        char host[16];
        (void)snprintf(host, sizeof host, "node%d", t);
        send_nvlink(&feed, host, "1", 145,
                    "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001)");
    }
    send_nvlink(&feed, "node5", "2", 149,
                "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000)");
    for (int32_t r = 20; r < 24; r++)
        silent[r] = true;
    feed_stuck(&feed, 120, silent, computing);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "22"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_NVLINK);
    CU_ASSERT(verdict->evict);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_FAULT), 1);
    feed_close(&feed);
}

TEST(an_nvlink_domain_that_goes_down_is_one_fault_of_the_rack)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};
    struct sample event = {.measurement = MEASUREMENT_EVENT,
                           .rank = RANK_NONE,
                           .rack = view_of("rack0"),
                           .kind = view_of("nvlink_domain_down")};
    const struct verdict *verdict;

    open_running(&feed);
    feed_send(&feed, &event);
    for (int32_t r = 0; r < 64; r++) {
        char host[32];
        (void)snprintf(host, sizeof host, "node%d", (int)(r / 4));
        feed_event(&feed, "xid", host, "0", 74);
        silent[r] = true;
    }
    feed_stuck(&feed, 280, silent, computing);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RACK, "rack0"));
    CU_ASSERT(verdict->evict);
    CU_ASSERT_EQUAL(verdict->node_count, 16);
    CU_ASSERT_EQUAL(verdict->victim_count, 64);
    CU_ASSERT_EQUAL(feed.count, 1);
    feed_close(&feed);
}

TEST(a_node_not_ready_while_steps_go_on_is_nothing)
{
    struct feed feed;

    open_running(&feed);
    feed_event(&feed, "node_not_ready", "node3", "", -1);
    feed_steps(&feed, 200);
    feed_event(&feed, "node_ready", "node3", "", -1);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(a_switch_tray_leaves_its_trays_in_the_job)
{
    struct feed feed;
    struct sample event = {.measurement = MEASUREMENT_EVENT,
                           .rank = RANK_NONE,
                           .rack = view_of("rack1"),
                           .kind = view_of("nvswitch_tray_fault")};

    open_running(&feed);
    feed_set(&event, FIELD_TRAY, 7);
    feed_send(&feed, &event);
    CU_ASSERT_FATAL(names(feed_find(&feed, VERDICT_FAULT), SCOPE_SWITCH_TRAY, "rack1:7"));
    CU_ASSERT_EQUAL(feed.verdicts[0].node_count, 0);
    CU_ASSERT_FALSE(feed.verdicts[0].evict);
    feed_close(&feed);
}

TEST(an_event_on_a_slow_rank_takes_its_verdict_over)
{
    struct feed feed;
    bool silent[RANKS] = {false}, computing[RANKS] = {false};

    open_running(&feed);
    feed.slow[26] = 1.3;
    feed_steps(&feed, 30);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_SLOW), 1);
    feed_event(&feed, "xid", "node6", "2", 79);
    silent[26] = true;
    feed_stuck(&feed, 100, silent, computing);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_CLEAR), 1);
    CU_ASSERT(names(feed_find(&feed, VERDICT_FAULT), SCOPE_RANK, "26"));
    CU_ASSERT_EQUAL(feed.count, 3);
    feed_close(&feed);
}

TEST(gradients_that_are_no_numbers_are_numeric_at_once)
{
    struct feed feed;

    open_running(&feed);
    feed.nan_grad = true;
    feed_steps(&feed, 2);
    CU_ASSERT(names(feed_find(&feed, VERDICT_NUMERIC), SCOPE_JOB, "team/job"));
    feed_steps(&feed, 50);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_NUMERIC), 1);
    feed_close(&feed);
}

TEST(a_loss_that_jumps_and_stays_is_numeric_and_clears_when_it_is_back)
{
    struct feed feed;

    open_running(&feed);
    feed.loss = 4.2;
    feed_steps(&feed, 5);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_NUMERIC), 1);
    feed.loss = 3;
    feed_steps(&feed, 20);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_CLEAR), 1);
    feed_close(&feed);
}

TEST(one_high_loss_is_nothing)
{
    struct feed feed;

    open_running(&feed);
    feed.loss = 9;
    feed_step(&feed);
    feed.loss = 3;
    feed_steps(&feed, 40);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(a_clock_an_hour_ahead_does_not_move_time_alone)
{
    struct feed feed;
    struct sample beat = {.measurement = MEASUREMENT_BEAT, .rank = 5, .phase = view_of("compute")};

    open_running(&feed);
    beat.time_ns = feed.now_ns + INT64_C(3600000000000);
    engine_feed(feed.engine, &beat);
    feed_steps(&feed, 100);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(a_node_whose_clock_is_an_hour_ahead_brings_no_crash)
{
    struct feed feed;

    open_running(&feed);
    for (int step = 0; step < 60; step++) {
        feed_step(&feed);
        for (int32_t r = 16; r < 20; r++) {
            struct sample beat = {
                .measurement = MEASUREMENT_BEAT, .rank = r, .phase = view_of("compute")};
            beat.time_ns = feed.now_ns + INT64_C(3600000000000);
            feed_set(&beat, FIELD_STEP, (double)feed.step);
            engine_feed(feed.engine, &beat);
        }
        feed_take(&feed);
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_close(&feed);
}

TEST(late_lines_of_the_attempt_before_are_not_of_this_one)
{
    struct feed feed;
    struct sample old = {.measurement = MEASUREMENT_BEAT, .rank = 7, .phase = view_of("compute")};
    struct sample mark = {
        .measurement = MEASUREMENT_MARK, .rank = RANK_NONE, .kind = view_of("restart")};

    open_running(&feed);
    old.time_ns = feed.now_ns + INT64_C(100000000);
    feed_set(&old, FIELD_STEP, 500);
    feed_send(&feed, &mark);
    feed.now_ns += INT64_C(60000000000);
    feed.step = 40;
    feed_steps(&feed, 5);
    engine_feed(feed.engine, &old);
    for (int step = 0; step < 200; step++)
        feed_step(&feed);
    CU_ASSERT_EQUAL(feed.count, 0);
    CU_ASSERT_EQUAL(engine_counts(feed.engine).late, 1);
    feed_close(&feed);
}

TEST(a_rank_that_counts_wrongly_is_no_hang)
{
    struct feed feed;
    struct sample wrong = {.measurement = MEASUREMENT_STEP, .rank = 7};

    open_running(&feed);
    for (int i = 0; i < 20; i++) {
        feed_set(&wrong, FIELD_STEP, 100000 + i);
        feed_set(&wrong, FIELD_STEP_MS, 600);
        feed_send(&feed, &wrong);
        feed_steps(&feed, 20);
    }
    CU_ASSERT_EQUAL(feed.count, 0);
    CU_ASSERT_EQUAL(engine_progress(feed.engine).step, 60 + 400 - 1);
    feed_close(&feed);
}

TEST(foreign_ranks_and_hosts_are_counted_and_left_out)
{
    struct feed feed;
    struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = RANKS};

    open_running(&feed);
    feed_set(&sample, FIELD_STEP, 60);
    feed_set(&sample, FIELD_STEP_MS, 600);
    feed_send(&feed, &sample);
    sample.rank = 3;
    sample.host = view_of("node9");
    feed_send(&feed, &sample);
    CU_ASSERT_EQUAL(engine_counts(feed.engine).wrong_rank, 1);
    CU_ASSERT_EQUAL(engine_counts(feed.engine).wrong_host, 1);
    CU_ASSERT_EQUAL(engine_counts(feed.engine).used, 60 * RANKS);
    feed_close(&feed);
}

TEST(a_rank_whose_own_gradients_stray_again_and_again_is_numeric_of_that_rank)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, RANKS, 1);
    for (int32_t r = 0; r < RANKS; r++)
        feed.gradient[r] = 1;
    feed_steps(&feed, 60);
    feed.gradient[30] = 5; /* once is nothing */
    feed_step(&feed);
    feed.gradient[30] = 1;
    feed_steps(&feed, 40);
    CU_ASSERT_EQUAL(feed.count, 0);
    for (int i = 0; i < 30; i++) {
        feed.gradient[77] = i % 4 == 0 ? 4 : 1;
        feed_step(&feed);
    }
    verdict = feed_find(&feed, VERDICT_NUMERIC);
    CU_ASSERT_FATAL(names(verdict, SCOPE_RANK, "77"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_GPU);
    CU_ASSERT_FALSE(verdict->evict);
    feed.gradient[77] = 1;
    feed_steps(&feed, 40);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_CLEAR), 1);
    CU_ASSERT_EQUAL(feed.count, 2);
    feed_close(&feed);
}

TEST(a_card_that_goes_down_twice_within_minutes_is_a_fault_of_its_tray_and_once_is_nothing)
{
    struct feed feed;
    const struct verdict *verdict;

    open_running(&feed);
    feed_event(&feed, "nic_down", "node3", "1", -1);
    feed_steps(&feed, 100);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed_event(&feed, "nic_down", "node3", "1", -1);
    feed_steps(&feed, 60);
    verdict = feed_find(&feed, VERDICT_FAULT);
    CU_ASSERT_FATAL(names(verdict, SCOPE_TRAY, "node3"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_NETWORK);
    CU_ASSERT_FALSE(verdict->evict); /* its ranks go on */
    feed_close(&feed);
}

TEST(data_that_everybody_waits_longer_for_is_storage_and_nobodys_fault)
{
    struct feed feed;
    const struct verdict *verdict;

    feed_open(&feed, RANKS, 4);
    for (int32_t r = 0; r < RANKS; r++)
        feed.data_ms[r] = 5;
    feed_steps(&feed, 80);
    for (int32_t r = 0; r < RANKS; r++)
        feed.data_ms[r] = 60;
    feed_steps(&feed, 80);
    verdict = feed_find(&feed, VERDICT_REGRESSION);
    CU_ASSERT_FATAL(names(verdict, SCOPE_JOB, "team/job"));
    CU_ASSERT_EQUAL(verdict->cause, CAUSE_STORAGE);
    CU_ASSERT_EQUAL(feed.count, 1);
    for (int32_t r = 0; r < RANKS; r++)
        feed.data_ms[r] = 5;
    feed_steps(&feed, 60);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_CLEAR), 1);
    feed_close(&feed);
}

TESTS(T(a_rank_whose_own_gradients_stray_again_and_again_is_numeric_of_that_rank),
      T(a_card_that_goes_down_twice_within_minutes_is_a_fault_of_its_tray_and_once_is_nothing),
      T(data_that_everybody_waits_longer_for_is_storage_and_nobodys_fault),
      T(a_node_that_falls_silent_while_the_others_wait_is_a_crash_of_its_tray),
      T(a_rack_that_falls_silent_is_one_crash_of_the_rack),
      T(a_rank_that_computes_for_ever_hangs_the_job_and_is_not_to_be_replaced),
      T(a_hang_is_told_within_five_minutes_of_the_last_step),
      T(checkpoints_and_evaluations_that_ranks_speak_of_are_no_hang),
      T(gauges_that_stay_busy_hide_no_hang),
      T(without_beats_the_host_whose_gauges_stop_is_the_one_that_crashed),
      T(rounds_of_gauges_far_apart_move_time_and_hide_no_hang),
      T(among_gauges_far_apart_the_host_whose_gauges_stop_is_the_one_that_crashed),
      T(a_gap_in_the_lines_that_ends_with_later_steps_is_no_hang),
      T(silence_after_the_job_has_finished_is_right),
      T(when_everything_falls_silent_no_rank_is_singled_out),
      T(a_fatal_xid_of_a_rank_that_stops_is_a_fault_of_that_rank),
      T(an_accused_rank_that_goes_on_is_not_to_be_replaced),
      T(without_a_hold_an_event_is_told_at_once_as_if_its_rank_had_stopped),
      T(application_xids_and_bare_nvlink_codes_are_no_faults),
      T(an_nvlink_code_is_a_fault_or_nothing_by_what_the_driver_says_with_it),
      T(an_nvlink_domain_that_goes_down_is_one_fault_of_the_rack),
      T(a_node_not_ready_while_steps_go_on_is_nothing),
      T(a_switch_tray_leaves_its_trays_in_the_job),
      T(an_event_on_a_slow_rank_takes_its_verdict_over),
      T(gradients_that_are_no_numbers_are_numeric_at_once),
      T(a_loss_that_jumps_and_stays_is_numeric_and_clears_when_it_is_back),
      T(one_high_loss_is_nothing), T(a_clock_an_hour_ahead_does_not_move_time_alone),
      T(a_node_whose_clock_is_an_hour_ahead_brings_no_crash),
      T(late_lines_of_the_attempt_before_are_not_of_this_one),
      T(a_rank_that_counts_wrongly_is_no_hang), T(foreign_ranks_and_hosts_are_counted_and_left_out))
