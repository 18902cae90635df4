/* Scenes that many tests open with, and what they ask of the first incident. */
#ifndef BROOM_TESTS_REMEDIATION_SIM_SCENES_H
#define BROOM_TESTS_REMEDIATION_SIM_SCENES_H

#include "tests/unit/remediation/sim.h"

/* A cluster and its job as in sim_init, and a tray of it lost and accused. */
static SIM_UNUSED void sim_open_losing_tray(struct sim *sim, int racks, int job_racks, int used,
                                            struct policy_set *(*policies)(void))
{
    sim_init(sim, racks, job_racks, used, policies);
    sim_run(sim, 120);
    sim_lose_tray(sim, "n0-03");
    sim_run(sim, 6);
    sim_accuse_tray(sim, VERDICT_CRASH, "n0-03", "detector");
}

/* The same of two racks, two spare trays in each. */
static SIM_UNUSED void sim_open_with_lost_tray(struct sim *sim,
                                               struct policy_set *(*policies)(void))
{
    sim_open_losing_tray(sim, 2, 2, 16, policies);
}

/* Of the first incident; says what it waits for instead. */
static SIM_UNUSED bool sim_waits_for(const struct sim *sim, const char *words)
{
    const struct incident *incident = sim_incident(sim, 1);
    bool found = strstr(incident->waiting_for, words) != NULL;
    if (!found)
        printf("%s, waits for: %s\n", phase_name(incident->phase), incident->waiting_for);
    return found;
}

static SIM_UNUSED bool sim_log_says(const struct sim *sim, const char *words)
{
    return strstr(sim->log.bytes, words) != NULL;
}

#endif
