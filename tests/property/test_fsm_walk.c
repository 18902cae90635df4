/* Random walks of the whole core: faults, people, guards, an unreliable cluster and kill -9, in any
 * order. Whatever happens, what must never happen does not.
 */
#include "remediation/fsm.h"
#include "tests/harness/test.h"
#include "tests/unit/remediation/sim.h"

enum { WALK_SECONDS = 2500, KEYS_MAX = 1 << 17, CORDONS_MAX = 4096, LATE_MAX = 64 };

struct cordoned {
    int64_t time_ns;
    char ref[INCIDENT_REF_BYTES];
    char node[32], rack[16];
    bool by_rack;
};

/* An answer that the cluster gives later, or never. */
struct late {
    char operation_id[OPERATION_ID_BYTES];
    int64_t due_ns;
    enum outcome outcome;
};

struct walk {
    struct sim sim;
    uint64_t random;
    uint64_t *keys; /* hashes of all keys stored, open addressing */
    struct cordoned cordons[CORDONS_MAX];
    int cordon_count;
    int64_t restart_times[CORDONS_MAX];
    int restart_count;
    struct late late[LATE_MAX];
    int late_count;
    int64_t versions[SIM_REFS_MAX], timeline[SIM_REFS_MAX], decisions[SIM_REFS_MAX];
    uint64_t seed;
    int broken;
};

static uint64_t pick(struct walk *walk, uint64_t below)
{
    return test_random(&walk->random) % below;
}

static bool chance(struct walk *walk, double part)
{
    return test_random_unit(&walk->random) < part;
}

static void must(struct walk *walk, bool holds, const char *what)
{
    if (holds)
        return;
    if (walk->broken++ < 5)
        printf("seed %llu at %lld s: %s\n", (unsigned long long)walk->seed,
               (long long)((walk->sim.now_ns - SIM_START) / SECOND), what);
}

/* --- the store: every key once, every sequence without a gap --- */

static bool key_is_new(struct walk *walk, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = key; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    hash |= 1;
    for (size_t at = hash % KEYS_MAX;; at = (at + 1) % KEYS_MAX) {
        if (walk->keys[at] == hash)
            return false;
        if (walk->keys[at] == 0) {
            walk->keys[at] = hash;
            return true;
        }
    }
}

static int64_t number_of(const char *ref)
{
    return strtoll(ref + 4, NULL, 10);
}

static void check_sequence(struct walk *walk, int64_t *last, int64_t value, const char *what)
{
    must(walk, value == *last + 1, what);
    *last = value;
}

static bool rule_seen[256];

static void note_rule(const char *id)
{
    for (size_t i = 0; i < fsm_rule_count; i++)
        rule_seen[i] = rule_seen[i] || strcmp(fsm_rules[i].id, id) == 0;
}

static void store(struct walk *walk, const char *record)
{
    struct json *json = NULL;
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(record), &json, NULL), OK);
    const char *type = json_get_string(json, "type", "");
    if (strcmp(type, "verdict") != 0)
        must(walk, key_is_new(walk, json_get_string(json, "key", "")),
             json_get_string(json, "key", ""));
    const char *ref = json_get_string(json, "incident", NULL);
    if (strcmp(type, "timeline") == 0)
        check_sequence(walk, &walk->timeline[number_of(ref)], json_get_int(json, "seq", 0),
                       "the timeline has a gap");
    if (strcmp(type, "decision") == 0)
        note_rule(json_get_string(json, "fsm_rule", ""));
    if (strcmp(type, "decision") == 0)
        check_sequence(walk, &walk->decisions[number_of(ref)], json_get_int(json, "seq", 0),
                       "the decisions have a gap");
    if (strcmp(type, "incident") == 0) {
        int64_t number = json_get_int(json, "number", 0);
        check_sequence(walk, &walk->versions[number], json_get_int(json, "version", 0),
                       "the versions have a gap");
        xfree(walk->sim.records[number]);
        walk->sim.records[number] = xstrdup(record);
    }
    json_free(json);
}

/* --- what must never happen --- */

static bool touches(enum verb verb)
{
    return verb == VERB_CORDON || verb == VERB_REQUEST_CHECKPOINT || verb == VERB_PROMISE_SPARE ||
           verb == VERB_RESTART_JOB || verb == VERB_HAND_OVER || verb == VERB_FENCE ||
           verb == VERB_DRAIN || verb == VERB_FORCE_DELETE;
}

static int recent_trays(const struct walk *walk, const char *rack)
{
    int count = 0;
    for (int i = 0; i < walk->cordon_count; i++) {
        const struct cordoned *cordoned = &walk->cordons[i];
        int64_t window_ns = rack != NULL ? 6 * HOUR : HOUR;
        const struct incident *by = remediation_find(walk->sim.core, cordoned->ref);
        if (cordoned->by_rack || walk->sim.now_ns - cordoned->time_ns >= window_ns ||
            (by != NULL && by->status == INCIDENT_MERGED))
            continue;
        count += rack == NULL || strcmp(cordoned->rack, rack) == 0 ? 1 : 0;
    }
    return count;
}

static int recent_racks(const struct walk *walk)
{
    char seen[8][16];
    int count = 0;
    for (int i = 0; i < walk->cordon_count; i++) {
        bool known = !walk->cordons[i].by_rack ||
                     walk->sim.now_ns - walk->cordons[i].time_ns >= 6 * HOUR;
        for (int j = 0; j < count && !known; j++)
            known = strcmp(seen[j], walk->cordons[i].rack) == 0;
        if (!known && count < 8)
            text_copy(seen[count++], sizeof seen[0], walk->cordons[i].rack);
    }
    return count;
}

static void check_cordon(struct walk *walk, const struct action *action)
{
    const struct incident *incident = remediation_find(walk->sim.core, action->incident_ref);
    for (size_t i = 0; i < action->node_count && walk->cordon_count < CORDONS_MAX; i++) {
        struct cordoned *entry = &walk->cordons[walk->cordon_count++];
        *entry = (struct cordoned){.time_ns = walk->sim.now_ns, .by_rack = incident->spent_rack};
        text_copy(entry->ref, sizeof entry->ref, action->incident_ref);
        text_copy(entry->node, sizeof entry->node, action->nodes[i]);
        text_copy(entry->rack, sizeof entry->rack, sim_node(&walk->sim, action->nodes[i])->rack);
        must(walk, recent_trays(walk, entry->rack) <= 2, "more than two trays of a rack in 6 h");
    }
    must(walk, recent_trays(walk, NULL) <= 3, "more than 5 % of the trays in an hour");
    must(walk, recent_racks(walk) <= 1, "more than one rack in 6 h");
}

static void check_restart(struct walk *walk)
{
    int recent = 0;
    walk->restart_times[walk->restart_count++ % CORDONS_MAX] = walk->sim.now_ns;
    for (int i = 0; i < walk->restart_count && i < CORDONS_MAX; i++)
        recent += walk->sim.now_ns - walk->restart_times[i] < 6 * HOUR ? 1 : 0;
    must(walk, recent <= 3, "more than three restarts of a job in 6 h");
}

static bool somebody_vouches(struct walk *walk, const char *node)
{
    for (size_t i = 0; i < remediation_incident_count(walk->sim.core); i++) {
        const struct incident_node *known = incident_find_node(
            remediation_incident_at(walk->sim.core, i), node);
        if (known != NULL && known->fenced_by != NULL)
            return true;
    }
    return sim_node(&walk->sim, node)->fenced_by != NULL;
}

static void check_action(struct walk *walk, const struct action *action)
{
    const struct incident *incident = remediation_find(walk->sim.core, action->incident_ref);
    const struct remediation_guards *guards = &walk->sim.guards;
    must(walk, incident != NULL, "an action of an incident that nobody knows");
    must(walk, guards->lease_held && guards->store_up, "an action without the lease or the store");
    if (touches(action->verb)) {
        must(walk, !walk->sim.paused, "an action while paused");
        must(walk, guards->clock_trusted, "an action without a trusted clock");
        must(walk, incident == NULL || !incident_has_ended(incident),
             "an action of an ended incident");
        must(walk, incident == NULL || incident->mode != MODE_OBSERVE, "an action in observe mode");
    }
    for (size_t i = 0; i < action->spare_count && action->verb == VERB_PROMISE_SPARE; i++) {
        const struct sim_node *spare = sim_node(&walk->sim, action->spares[i]);
        must(walk, spare->promised_to[0] == '\0', "a spare was promised twice");
        must(walk, !sim_job_uses(&walk->sim, spare->name), "a node that holds ranks was promised");
    }
    for (size_t i = 0; i < action->node_count && action->verb == VERB_UNCORDON; i++)
        must(walk,
             strncmp(sim_node(&walk->sim, action->nodes[i])->cordoned_by, "bob", 3) != 0 ||
                 !sim_node(&walk->sim, action->nodes[i])->cordoned,
             "somebody else's cordon was to be taken off");
    for (size_t i = 0; i < action->node_count && action->verb == VERB_FORCE_DELETE; i++)
        must(walk, somebody_vouches(walk, action->nodes[i]),
             "pods were deleted by force on a node that nobody says is off");
    if (action->verb == VERB_CORDON)
        check_cordon(walk, action);
    if (action->verb == VERB_RESTART_JOB)
        check_restart(walk);
}

static void check_ledger(struct walk *walk)
{
    int restarting = 0;
    for (size_t i = 0; i < remediation_incident_count(walk->sim.core); i++) {
        const struct incident *a = remediation_incident_at(walk->sim.core, i);
        if (incident_has_ended(a))
            continue;
        must(walk, a->deadline_ns > 0, "an open incident without a deadline");
        restarting += incident_in_restart(a) ? 1 : 0;
        for (size_t j = 0; j < i; j++) {
            const struct incident *b = remediation_incident_at(walk->sim.core, j);
            for (size_t k = 0; !incident_has_ended(b) && k < a->spares.count; k++)
                must(walk, !names_has(&b->spares, a->spares.items[k]),
                     "two incidents hold one spare");
        }
    }
    must(walk, restarting <= 1, "two restarts of one job at once");
}

/* --- a cluster that cannot be relied on --- */

static void answer(struct walk *walk, const char *operation_id, enum outcome outcome)
{
    struct action_result result = {.outcome = outcome, .reason = "walk"};
    remediation_outcome(walk->sim.core, operation_id, &result, walk->sim.now_ns);
}

static void start(struct walk *walk, const struct action *action)
{
    if (!remediation_may_start(walk->sim.core, action->operation_id)) {
        answer(walk, action->operation_id, OUTCOME_CANCELLED);
        return;
    }
    struct sim_op *op = sim_op(&walk->sim, action->operation_id);
    if (op == NULL) {
        op = &walk->sim.ops[walk->sim.op_count++ % SIM_OPS_MAX];
        *op = (struct sim_op){.verb = action->verb};
        text_copy(op->id, sizeof op->id, action->operation_id);
    }
    enum outcome outcome = OUTCOME_SUCCEEDED;
    bool happens = true;
    if (chance(walk, 0.15)) {
        static const enum outcome bad[] = {OUTCOME_REFUSED, OUTCOME_TRANSIENT, OUTCOME_UNKNOWN};
        outcome = bad[pick(walk, 3)];
        happens = outcome == OUTCOME_UNKNOWN && chance(walk, 0.5);
    }
    if (happens) {
        must(walk, op->started == 0, "an operation was carried out twice");
        op->started++;
        check_action(walk, action);
        sim_execute(&walk->sim, action);
        for (size_t i = 0; i < action->node_count && action->verb == VERB_RESTART_JOB; i++) {
            struct sim_node *left = sim_node(&walk->sim, action->nodes[i]);
            left->stuck = !left->ready && chance(walk, 0.5);
        }
    }
    op->outcome = outcome;
    if (chance(walk, 0.2) && walk->late_count < LATE_MAX) {
        struct late *late = &walk->late[walk->late_count++];
        late->due_ns = walk->sim.now_ns + (int64_t)pick(walk, 90) * SECOND;
        late->outcome = outcome;
        text_copy(late->operation_id, sizeof late->operation_id, action->operation_id);
        return;
    }
    answer(walk, action->operation_id, outcome);
}

static void poll(struct walk *walk, const struct action *action)
{
    struct sim_op *op = sim_op(&walk->sim, action->operation_id);
    bool done = op != NULL && op->started > 0;
    bool silent = chance(walk, 0.2);
    struct action_result result = {.outcome = done && !silent ? OUTCOME_SUCCEEDED : OUTCOME_UNKNOWN,
                                   .poll = silent ? POLL_UNREACHABLE
                                           : done ? POLL_DONE
                                                  : POLL_ABSENT,
                                   .reason = "walk"};
    remediation_polled(walk->sim.core, action->operation_id, &result, walk->sim.now_ns);
}

static void restart_daemon(struct walk *walk)
{
    walk->late_count = 0;
    sim_crash_now(&walk->sim);
    remediation_restore_control(walk->sim.core, walk->sim.paused, false, "alice", 1);
}

/* Records of one drain are one transaction; what was not committed has not happened. */
static void drain(struct walk *walk)
{
    for (int rounds = 0; rounds < 200; rounds++) {
        struct effect *batch = NULL;
        size_t count = 0, capacity = 0;
        struct effect effect;
        while (remediation_next_effect(walk->sim.core, &effect)) {
            batch = array_grow(batch, count, &capacity, sizeof *batch);
            batch[count++] = effect;
        }
        bool crash_before = count > 0 && chance(walk, 0.002), crashed = crash_before;
        for (size_t i = 0; i < count && !crash_before; i++)
            if (batch[i].kind == EFFECT_RECORD)
                store(walk, batch[i].record);
        for (size_t i = 0; i < count && !crashed; i++) {
            if (batch[i].kind == EFFECT_START)
                start(walk, &batch[i].action);
            else if (batch[i].kind == EFFECT_POLL)
                poll(walk, &batch[i].action);
            else if (batch[i].kind == EFFECT_DESCRIBE && chance(walk, 0.9))
                sim_describe(&walk->sim);
            crashed = batch[i].kind == EFFECT_START && chance(walk, 0.02);
        }
        for (size_t i = 0; i < count; i++)
            effect_done(&batch[i]);
        xfree(batch);
        if (crashed)
            restart_daemon(walk);
        if (count == 0)
            return;
    }
    must(walk, false, "effects without an end");
}

/* --- what comes in --- */

static void accuse(struct walk *walk)
{
    static const char *const sources[] = {"detector", "events", "monitor-7"};
    static const enum verdict_kind kinds[] = {VERDICT_SLOW,      VERDICT_HANG,  VERDICT_CRASH,
                                              VERDICT_FAULT,     VERDICT_CLEAR, VERDICT_INFO,
                                              VERDICT_REGRESSION};
    struct sim *sim = &walk->sim;
    enum verdict_kind kind = kinds[pick(walk, ARRAY_LEN(kinds))];
    const struct sim_node *node = &sim->nodes[pick(walk, (uint64_t)sim->node_count)];
    bool rack = chance(walk, 0.15), whole_job = chance(walk, 0.1);
    struct verdict verdict = sim_verdict(sim, kind,
                                         whole_job ? SCOPE_JOB
                                         : rack    ? SCOPE_RACK
                                                   : SCOPE_TRAY,
                                         whole_job ? sim->job->name
                                         : rack    ? node->rack
                                                   : node->name);
    verdict.slowdown = 1 + test_random_unit(&walk->random);
    verdict.of_kind = kinds[pick(walk, 4)];
    verdict.evict = chance(walk, 0.8);
    if (chance(walk, 0.1))
        verdict.time_ns -= (int64_t)pick(walk, 600) * SECOND;
    for (int r = 0; r < sim_ranks(sim) && !whole_job; r++) {
        const struct sim_node *holds = sim_node(sim, sim->rank_node[r]);
        if (rack ? strcmp(holds->rack, node->rack) == 0 : holds == node) {
            verdict_add_node(&verdict, holds->name);
            verdict_add_rank(&verdict, r);
        }
    }
    if (kind != VERDICT_SLOW && kind != VERDICT_CLEAR && kind != VERDICT_INFO && chance(walk, 0.5))
        sim->stopped = true;
    remediation_verdict(sim->core, sim->job, &verdict, sources[pick(walk, 3)], sim->now_ns);
    verdict_done(&verdict);
    drain(walk);
}

static void speak(struct walk *walk)
{
    static const enum command_verb verbs[] = {
        COMMAND_APPROVE, COMMAND_APPROVE, COMMAND_APPROVE, COMMAND_ABORT,        COMMAND_ACK,
        COMMAND_DECLINE, COMMAND_NOTE,    COMMAND_FENCED,  COMMAND_BREAKER_CLOSE};
    struct sim *sim = &walk->sim;
    char ref[INCIDENT_REF_BYTES];
    snprintf(ref, sizeof ref, "INC-%d", 1 + (int)pick(walk, 40));
    struct remediation_command command = {.verb = verbs[pick(walk, ARRAY_LEN(verbs))],
                                          .incident_ref = ref,
                                          .actor = "alice",
                                          .text = "walk"};
    if (command.verb == COMMAND_FENCED && chance(walk, 0.7)) {
        command.incident_ref = NULL;
        command.node = sim->nodes[pick(walk, (uint64_t)sim->node_count)].name;
    }
    if (chance(walk, sim->paused ? 0.5 : 0.1)) {
        command.verb = sim->paused ? COMMAND_RESUME : COMMAND_PAUSE;
        sim->paused = !sim->paused;
    }
    ignore_status(
        remediation_command(sim->core, &command, sim->now_ns, NULL)); /* refusals are fine */
    drain(walk);
}

static void disturb(struct walk *walk)
{
    struct sim *sim = &walk->sim;
    struct sim_node *node = &sim->nodes[pick(walk, (uint64_t)sim->node_count)];
    switch (pick(walk, 9)) {
    case 0:
        sim->guards.lease_held = chance(walk, 0.9);
        sim->guards.store_up = chance(walk, 0.9);
        sim->guards.clock_trusted = chance(walk, 0.9);
        sim->guards.telemetry_ok = chance(walk, 0.9);
        remediation_guards(sim->core, sim->guards, sim->now_ns);
        break;
    case 1:
        sim->world_known = chance(walk, 0.8);
        break;
    case 2:
        node->cordoned = false; /* a person */
        node->ready = true;
        break;
    case 3:
        if (!node->cordoned && chance(walk, 0.3)) {
            node->cordoned = true;
            text_copy(node->cordoned_by, sizeof node->cordoned_by, "bob: fan swap");
        }
        break;
    case 4:
        node->ready = chance(walk, 0.8);
        break;
    case 5:
        sim->restarts_max = sim->restarts + (int64_t)pick(walk, 8);
        break;
    case 6:
        node->stuck = !node->stuck && !node->ready;
        break;
    case 7:
        sim->waiting_for = chance(walk, 0.3) ? "a tray to join its domain" : NULL;
        sim->elsewhere = chance(walk, 0.3) ? node->name : NULL;
        break;
    case 8:
        node->fenced_by = chance(walk, 0.3) ? "taint out-of-service" : NULL;
        break;
    }
    drain(walk);
}

static void late_answers(struct walk *walk)
{
    for (int i = 0; i < walk->late_count;) {
        if (walk->sim.now_ns < walk->late[i].due_ns) {
            i++;
            continue;
        }
        struct late late = walk->late[i];
        walk->late[i] = walk->late[--walk->late_count];
        answer(walk, late.operation_id, late.outcome);
        drain(walk);
    }
}

static struct policy_set *any_policies(void)
{
    struct policy_set *set = sim_enforce();
    set->items[0]->rules[0].mode = MODE_APPROVE;
    return set;
}

/* Every step that there is. */
static struct policy_set *long_policies(void)
{
    struct policy_set *set = sim_enforce();
    sim_insert_step(set, STEP_DRAIN, STEP_REQUEST_CHECKPOINT);
    sim_insert_step(set, STEP_FENCE, STEP_CHOOSE_SPARE)->on_timeout = ON_TIMEOUT_CONTINUE;
    struct plan_step *restart = sim_plan_step(set, STEP_RESTART_JOB);
    restart->force_fenced = restart->named_only = true;
    sim_plan_step(set, STEP_HAND_OVER)->gives_back = true;
    set->items[0]->timers.validate_ns = MINUTE;
    return set;
}

/* Returns how often the job was restarted. */
static int walk_once(uint64_t seed)
{
    struct walk *walk = xcalloc(1, sizeof *walk);
    walk->random = seed;
    walk->seed = seed;
    walk->keys = xcalloc(KEYS_MAX, sizeof *walk->keys);
    sim_init(&walk->sim, 4, 2, 16,
             seed % 3 == 0   ? any_policies
             : seed % 3 == 1 ? long_policies
                             : sim_enforce);
    walk->sim.restarts_max = 100;
    for (int second = 0; second < WALK_SECONDS; second++) {
        walk->sim.now_ns += (chance(walk, 0.002) ? HOUR : SECOND);
        sim_move_job(&walk->sim);
        sim_say_progress(&walk->sim);
        drain(walk);
        if (chance(walk, 0.01))
            accuse(walk);
        if (chance(walk, 0.01))
            speak(walk);
        if (chance(walk, 0.006))
            disturb(walk);
        late_answers(walk);
        remediation_tick(walk->sim.core, walk->sim.now_ns);
        drain(walk);
        check_ledger(walk);
    }
    CU_ASSERT_EQUAL(walk->broken, 0);
    int restarts = walk->sim.restarts_done;
    sim_done(&walk->sim);
    xfree(walk->keys);
    xfree(walk);
    return restarts;
}

TEST(random_walks_never_break_safety)
{
    int rounds = test_rounds(20), restarts = 0;
    for (int i = 0; i < rounds; i++)
        restarts += walk_once(test_seed() + (uint64_t)i);
    CU_ASSERT_TRUE(rounds < 20 || restarts > 5); /* a walk that does nothing proves nothing */
    size_t missing = 0;
    for (size_t i = 0; i < fsm_rule_count; i++) {
        const struct fsm_rule *rule = &fsm_rules[i];
        bool silent = rule->to == FSM_STAY && rule->command == DO_NOTHING &&
                      rule->status ==
                          FSM_KEEP_STATUS; /* changes nothing, so it leaves no decision */
        if (rule_seen[i] || silent)
            continue;
        missing++;
        printf("\n    rule not walked: %s", rule->id);
    }
    CU_ASSERT_TRUE(rounds < 20 || missing < fsm_rule_count / 2);
}

TESTS(T(random_walks_never_break_safety))
