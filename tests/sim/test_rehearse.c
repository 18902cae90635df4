/* Every rehearsal with real processes, real HTTP and real PostgreSQL. */
#include "tests/sim/rehearse_runner.h"

static const char *const WELL[] = {"--policy=" POLICY, NULL};

TEST(a_slow_rank_is_mended)
{
    expect(0, "slow-rank", WELL);
}
TEST(a_lost_tray_is_mended)
{
    expect(0, "tray-lost", WELL);
}
TEST(a_lost_rack_is_mended)
{
    expect(0, "rack-fault", WELL);
}
TEST(a_missing_spare_is_waited_for)
{
    expect(0, "no-spare", WELL);
}
TEST(a_storm_is_not_believed)
{
    expect(0, "storm", WELL);
}
TEST(a_healthy_job_is_left_alone)
{
    expect(0, "healthy", (const char *const[]){"--policy=" POLICY, "--speed=300", NULL});
}

TEST(a_slow_tray_is_mended)
{
    expect(0, "slow-tray", WELL);
}
TEST(a_slow_rack_is_recorded)
{
    expect(0, "slow-rack", WELL);
}
TEST(a_failed_switch_tray_is_recorded)
{
    expect(0, "nvswitch-tray", WELL);
}
TEST(a_flapping_gpu_is_mended)
{
    expect(0, "flapping", WELL);
}
TEST(a_hang_is_recorded)
{
    expect(0, "hang", WELL);
}
TEST(a_drift_is_mended)
{
    expect(0, "drift", WELL);
}

TEST(nothing_is_left_behind)
{
    leave_nothing();
}

TESTS(T(a_slow_rank_is_mended), T(a_lost_tray_is_mended), T(a_lost_rack_is_mended),
      T(a_missing_spare_is_waited_for), T(a_storm_is_not_believed), T(a_healthy_job_is_left_alone),
      T(a_slow_tray_is_mended), T(a_slow_rack_is_recorded), T(a_failed_switch_tray_is_recorded),
      T(a_flapping_gpu_is_mended), T(a_hang_is_recorded), T(a_drift_is_mended),
      T(nothing_is_left_behind))
