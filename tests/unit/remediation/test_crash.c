/* kill -9 at every point: before the records are durable, after them and before the action, after
 * the action and before its outcome is known. It must end as if nothing had happened, and every
 * action must have been carried out once.
 */
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

enum { CRASH_POINTS_MAX = 200 };

struct scenario {
    const char *name;
    void (*begin)(struct sim *sim);
    void (*during)(struct sim *sim);
    int cordons;
};

static void accuse_lost_tray(struct sim *sim)
{
    if (sim->stopped && sim_job_uses(sim, "n0-03") && sim->starts_at_ns == 0)
        sim_accuse_tray(sim, VERDICT_CRASH, "n0-03", "detector");
}

static void begin_tray(struct sim *sim)
{
    sim_init(sim, 2, 2, 16, sim_enforce);
    sim_run(sim, 120);
    sim_lose_tray(sim, "n0-03");
    sim_run(sim, 6);
}

static void begin_no_spare(struct sim *sim)
{
    sim_init(sim, 1, 1, 18, sim_enforce);
    sim_run(sim, 120);
    sim_lose_tray(sim, "n0-03");
    sim_run(sim, 6);
}

static void add_spare(struct sim *sim)
{
    if (sim->now_ns != SIM_START + 1000 * SECOND)
        return;
    struct sim_node *spare = &sim->nodes[sim->node_count++];
    *spare = (struct sim_node){.ready = true, .spare = true};
    text_copy(spare->name, sizeof spare->name, "n0-99");
    text_copy(spare->rack, sizeof spare->rack, "rk-0");
    job_intern_tray(sim->job, "n0-99", 0);
}

static void accuse_lost_rack(struct sim *sim)
{
    if (sim->stopped && sim_job_uses(sim, "n0-03") && sim->starts_at_ns == 0)
        sim_accuse_rack(sim, VERDICT_FAULT, "rk-0", "events");
}

static void begin_rack(struct sim *sim)
{
    sim_init(sim, 3, 2, 16, sim_enforce);
    sim_run(sim, 120);
    for (int i = 0; i < 18; i++)
        sim->nodes[i].dead = true;
    sim->stopped = true;
    sim_run(sim, 1);
}

static void accuse_slow_rank(struct sim *sim)
{
    if (!sim_job_uses(sim, "n0-05") || sim->starts_at_ns != 0)
        return;
    struct verdict slow = sim_verdict(sim, VERDICT_SLOW, SCOPE_RANK, "21");
    slow.slowdown = 1.3;
    slow.cause = CAUSE_GPU;
    verdict_add_node(&slow, "n0-05");
    verdict_add_rank(&slow, 21);
    sim_give(sim, &slow, "detector");
}

static void begin_slow(struct sim *sim)
{
    sim_init(sim, 1, 1, 16, sim_enforce);
    sim_run(sim, 120);
    sim->slow_node = "n0-05";
    sim->slow = 1.3;
    sim_run(sim, 20);
}

/* The incident that counts: the one that was not merged. */
static const struct incident *main_incident(const struct sim *sim, int *ret_count)
{
    const struct incident *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < remediation_incident_count(sim->core); i++) {
        const struct incident *incident = remediation_incident_at(sim->core, i);
        if (incident->status == INCIDENT_MERGED)
            continue;
        found = incident;
        (*ret_count)++;
    }
    return found;
}

static bool check_end(const struct sim *sim, const struct scenario *scenario)
{
    int count;
    bool good = true;
    const struct incident *incident = main_incident(sim, &count);
    good = good && count == 1 && incident != NULL && incident->phase == PHASE_REPAIRING;
    good = good && incident->status == INCIDENT_MITIGATED;
    good = good && sim->cordons == scenario->cordons && sim->restarts_done == 1;
    good = good && sim->promises == 1 && sim->releases == 0 && sim->hand_overs == 1;
    good = good && sim->settles == 1;
    for (int i = 0; i < sim->op_count; i++)
        good = good && sim->ops[i].started == 1;
    return good;
}

static bool nothing_runs(const struct incident *incident)
{
    for (size_t i = 0; i < incident->action_count; i++)
        if (incident->actions[i].state != ACTION_ENDED && incident->actions[i].verb != VERB_NOTIFY)
            return false;
    return true;
}

/* Returns false when the run was over before the crash point came. */
static bool run_once(const struct scenario *scenario, void (*accuse)(struct sim *),
                     enum sim_crash crash, int crash_at)
{
    struct sim sim;
    scenario->begin(&sim);
    sim.redeliver = accuse;
    sim.commit_count = sim.start_count = 0;
    sim.crash = crash;
    sim.crash_at = crash_at;
    accuse(&sim);
    for (int i = 0; i < 2400; i++) {
        int count;
        const struct incident *incident = main_incident(&sim, &count);
        if (incident != NULL && incident->phase == PHASE_REPAIRING && nothing_runs(incident))
            break;
        if (scenario->during != NULL)
            scenario->during(&sim);
        sim_tick(&sim);
    }
    bool crashed = sim.crashes > 0;
    bool good = check_end(&sim, scenario);
    if (!good)
        printf("%s, crash kind %d at %d: cordons %d restarts %d promises %d\n", scenario->name,
               (int)crash, crash_at, sim.cordons, sim.restarts_done, sim.promises);
    CU_ASSERT_TRUE(good);
    sim_done(&sim);
    return crashed;
}

static void crash_everywhere(const struct scenario *scenario, void (*accuse)(struct sim *))
{
    int points = 0;
    for (int crash = CRASH_BEFORE_COMMIT; crash <= CRASH_AFTER_START; crash++)
        for (int at = 0; at < CRASH_POINTS_MAX; at++) {
            if (!run_once(scenario, accuse, (enum sim_crash)crash, at))
                break;
            points++;
        }
    CU_ASSERT_TRUE(points >= 18);
}

TEST(a_lost_tray_ends_the_same_wherever_we_are_killed)
{
    struct scenario scenario = {"tray", begin_tray, NULL, 1};
    crash_everywhere(&scenario, accuse_lost_tray);
}

TEST(a_rack_fault_ends_the_same_wherever_we_are_killed)
{
    struct scenario scenario = {"rack", begin_rack, NULL, 18};
    crash_everywhere(&scenario, accuse_lost_rack);
}

TEST(a_slow_rank_ends_the_same_wherever_we_are_killed)
{
    struct scenario scenario = {"slow", begin_slow, NULL, 1};
    crash_everywhere(&scenario, accuse_slow_rank);
}

TEST(a_hold_without_spare_ends_the_same_wherever_we_are_killed)
{
    struct scenario scenario = {"no-spare", begin_no_spare, add_spare, 1};
    crash_everywhere(&scenario, accuse_lost_tray);
}

TEST(a_fault_that_healed_while_nobody_looked_is_not_acted_on)
{
    struct sim sim;
    begin_slow(&sim);
    accuse_slow_rank(&sim);
    sim_run(&sim, 30);
    sim.redeliver = NULL; /* the engine that is born now finds nothing */
    sim.slow = 1.0;
    sim_crash_now(&sim);
    sim_run(&sim, 900);
    const struct incident *incident = sim_incident(&sim, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(incident);
    CU_ASSERT_EQUAL(incident->phase, PHASE_CANCELLED);
    CU_ASSERT_EQUAL(sim.cordons, 0);
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    sim_done(&sim);
}

TEST(a_fault_that_is_seen_again_after_a_restart_is_acted_on)
{
    struct sim sim;
    begin_slow(&sim);
    accuse_slow_rank(&sim);
    sim_run(&sim, 30);
    sim.redeliver = NULL;
    sim_crash_now(&sim);
    sim_run(&sim, 60);
    accuse_slow_rank(&sim);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 2400));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(an_incident_reads_back_to_the_same_record)
{
    struct sim sim;
    begin_rack(&sim);
    accuse_lost_rack(&sim);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_VERIFYING, 600));
    struct json *json = NULL;
    struct incident *incident = NULL;
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(sim.records[1]), &json, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(incident_parse(json, &incident, NULL), OK);
    AUTO_TEXT again = {0};
    struct json_writer writer = json_writer(&again);
    incident_write(incident, json_get_int(json, "time_ns", 0), &writer);
    CU_ASSERT_STRING_EQUAL(again.bytes, sim.records[1]);
    incident_free(incident);
    json_free(json);
    sim_done(&sim);
}

TEST(a_record_that_is_none_is_refused_with_its_reason)
{
    static const char *const texts[] = {
        "{}", "{\"number\":1}", "{\"number\":1,\"phase\":\"done\",\"status\":\"half\"}",
        "{\"number\":1,\"phase\":\"done\",\"status\":\"open\",\"kind\":\"odd\",\"scope\":\"tray\"}",
        "7"};
    struct remediation_params params = {.daemon_mode = MODE_ENFORCE};
    struct remediation *core = remediation_new(&params);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json *json = NULL;
        struct error error = {0};
        CU_ASSERT_EQUAL_FATAL(json_parse(view_of(texts[i]), &json, NULL), OK);
        CU_ASSERT_EQUAL(remediation_restore(core, json, SIM_START, &error), ERR_INVALID);
        CU_ASSERT_TRUE(error.message[0] != '\0');
        json_free(json);
    }
    CU_ASSERT_EQUAL(remediation_incident_count(core), 0);
    remediation_free(core);
}

/* A restart is asked for, and broomd is away until long after its step's deadline. */
static void be_away_from_a_restart(struct sim *sim, bool loses_it)
{
    begin_tray(sim);
    sim->restart_waits = true;
    sim->loses_restart = loses_it;
    accuse_lost_tray(sim);
    CU_ASSERT_TRUE(sim_until(sim, 1, PHASE_RESTARTING, 600));
    CU_ASSERT_PTR_NOT_NULL(incident_running_action(sim_incident(sim, 1)));
    sim->waiting_restart[0] = '\0'; /* the answer finds nobody */
    for (int i = 0; i < 7200; i++) {
        sim->now_ns += SECOND;
        sim_move_job(sim);
    }
    CU_ASSERT_TRUE(sim_incident(sim, 1)->deadline_ns < sim->now_ns);
    sim_crash_now(sim);
}

TEST(what_was_done_while_we_were_away_past_its_deadline_is_read_before_it_is_given_up)
{
    struct sim sim;
    be_away_from_a_restart(&sim, false);
    sim_run(&sim, 2);
    CU_ASSERT_NOT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_ESCALATED);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_REPAIRING, 600));
    CU_ASSERT_EQUAL(sim.restarts_done, 1);
    sim_done(&sim);
}

TEST(what_the_cluster_knows_nothing_of_is_not_begun_after_its_deadline)
{
    struct sim sim;
    be_away_from_a_restart(&sim, true);
    sim.loses_restart = false;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 5));
    CU_ASSERT_EQUAL(sim.restarts_done, 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(sim.log.bytes, "the cluster knows nothing of it, and its time is over"));
    sim_done(&sim);
}

TEST(a_read_that_is_not_answered_is_not_waited_for_longer_than_a_minute)
{
    struct sim sim;
    be_away_from_a_restart(&sim, false);
    sim.poll_unanswered = true;
    sim_run(&sim, 50);
    CU_ASSERT_EQUAL(sim_incident(&sim, 1)->phase, PHASE_RESTARTING);
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 20));
    sim_done(&sim);
}

TEST(a_step_that_runs_on_past_its_deadline_is_given_up_once_it_was_read)
{
    struct sim sim;
    be_away_from_a_restart(&sim, false);
    sim.poll_silent = true;
    CU_ASSERT_TRUE(sim_until(&sim, 1, PHASE_ESCALATED, 10));
    sim_done(&sim);
}

TESTS(T(a_fault_that_healed_while_nobody_looked_is_not_acted_on),
      T(a_fault_that_is_seen_again_after_a_restart_is_acted_on),
      T(a_lost_tray_ends_the_same_wherever_we_are_killed),
      T(a_rack_fault_ends_the_same_wherever_we_are_killed),
      T(a_slow_rank_ends_the_same_wherever_we_are_killed),
      T(a_hold_without_spare_ends_the_same_wherever_we_are_killed),
      T(an_incident_reads_back_to_the_same_record),
      T(a_record_that_is_none_is_refused_with_its_reason),
      T(what_was_done_while_we_were_away_past_its_deadline_is_read_before_it_is_given_up),
      T(what_the_cluster_knows_nothing_of_is_not_begun_after_its_deadline),
      T(a_read_that_is_not_answered_is_not_waited_for_longer_than_a_minute),
      T(a_step_that_runs_on_past_its_deadline_is_given_up_once_it_was_read))
