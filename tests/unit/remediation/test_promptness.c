/* What a site that settles at once may rely on: nothing waits for a clock's next tick. */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

static struct policy_set *settling_at_once(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->timers.settle_corroborated_ns = 0;
    set->items[0]->timers.settle_uncorroborated_ns = 0;
    return set;
}

TEST(the_world_is_asked_for_in_the_moment_in_which_a_fault_is_told)
{
    static struct sim sim;
    struct effect effect;
    int asked = 0;
    sim_init(&sim, 2, 1, 16, settling_at_once);
    sim_run(&sim, 120);
    remediation_tick(sim.core, sim.now_ns); /* all was looked at a moment ago */
    sim_drain(&sim);
    struct verdict verdict = sim_verdict(&sim, VERDICT_FAULT, SCOPE_TRAY, "n0-03");
    verdict_add_node(&verdict, "n0-03");
    remediation_verdict(sim.core, sim.job, &verdict, "dcgm", sim.now_ns + 1);
    verdict_done(&verdict);
    while (remediation_next_effect(sim.core, &effect)) {
        asked += effect.kind == EFFECT_DESCRIBE;
        effect_done(&effect);
    }
    CU_ASSERT_EQUAL(asked, 1);
    sim_done(&sim);
}

TESTS(T(the_world_is_asked_for_in_the_moment_in_which_a_fault_is_told))
