/* broomd is killed while the cluster has done something and not yet answered: it is done once all
 * the same. */
#include "tests/sim/rehearse_runner.h"

static void crash_at(const char *scenario, const char *verb)
{
    AUTO_TEXT option = {0};
    text_addf(&option, "--crash-at=%s", verb);
    expect(0, scenario, (const char *const[]){"--policy=" POLICY, option.bytes, NULL});
}

TEST(a_cordon_happens_once)
{
    crash_at("tray-lost", "cordon");
}
TEST(a_spare_is_promised_once)
{
    crash_at("tray-lost", "promise_spare");
}
TEST(a_checkpoint_is_asked_for_once)
{
    crash_at("slow-rank", "request_checkpoint");
}
TEST(a_job_is_restarted_once)
{
    crash_at("tray-lost", "restart_job");
}
TEST(a_rack_is_restarted_once)
{
    crash_at("rack-fault", "restart_job");
}
TEST(a_node_is_handed_over_once)
{
    crash_at("tray-lost", "hand_over");
}
TEST(nothing_is_left_behind)
{
    leave_nothing();
}

TESTS(T(a_cordon_happens_once), T(a_spare_is_promised_once), T(a_checkpoint_is_asked_for_once),
      T(a_job_is_restarted_once), T(a_rack_is_restarted_once), T(a_node_is_handed_over_once),
      T(nothing_is_left_behind))
