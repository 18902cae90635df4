/* Each check is one function over the evidence; a sentence says exactly what differs. */
#include "controller/rehearse/endings.h"

#include "controller/rehearse/endings_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PACE_STEPS = 40, NEW_STEPS = 20 };
static const double PACE_WITHIN = 1.10;
static const double SLOW_FROM = 1.04; /* what a recorded slowness must still cost at least */

struct endings {
    const struct scenario *scenario;
    struct cluster *cluster; /* the same one, not started: for its names */
    struct model_fault fault;
    double healthy_ms;
};

struct check {
    const struct endings *endings;
    const struct ending *ending;
    const struct endings_evidence *evidence;
    const struct json *incident; /* the one that counts, or NULL */
    struct endings_log log;
    struct text *out;
    int count;
};

static void disagree(struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);

static void disagree(struct check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_addv(check->out, format, args);
    va_end(args);
    text_add(check->out, "\n");
    check->count++;
}

/* --- what is true
 * ----------------------------------------------------------------------------------- */

static void ignore_sample(void *context, const struct sample *sample)
{
    (void)context;
    (void)sample;
}

/* The pace of this job without its fault. */
static double measure_pace(const struct scenario *scenario, uint64_t seed)
{
    struct cluster_config config = scenario_cluster(scenario, seed);
    AUTO(model_free) struct model *model = model_new(&config.model);
    double sum = 0;
    model_start(model, config.model.start_ns, 0);
    while (model_info(model).steps_done < 2 * PACE_STEPS) {
        int64_t before = model_info(model).steps_done;
        model_step(model, ignore_sample, NULL);
        if (model_info(model).steps_done > before && before >= PACE_STEPS)
            sum += model_info(model).last_step_ms;
    }
    return sum / PACE_STEPS;
}

struct endings *endings_new(const struct scenario *scenario, uint64_t seed)
{
    struct endings *endings = xcalloc(1, sizeof *endings);
    endings->scenario = scenario;
    endings->cluster = scenario_build(scenario, seed);
    endings->fault = scenario_fault(scenario, seed);
    endings->healthy_ms = measure_pace(scenario, seed);
    return endings;
}

void endings_free(struct endings *endings)
{
    if (endings == NULL)
        return;
    cluster_free(endings->cluster);
    xfree(endings);
}

static const char *tray_name(const struct endings *endings, int32_t tray)
{
    return model_tray_name(cluster_model(endings->cluster), tray);
}

static const char *faulty_rack(const struct endings *endings)
{
    return model_rack_name(cluster_model(endings->cluster), endings->fault.rack);
}

void endings_describe_fault(const struct endings *endings, struct text *out)
{
    const struct scenario *scenario = endings->scenario;
    if (scenario->fault_step == 0) {
        text_add(out, "nothing is wrong with it");
        return;
    }
    text_addf(out, "%s at step %" PRId64, fault_kind_name(scenario->fault), scenario->fault_step);
    bool of_gpu = scenario->fault == FAULT_SLOW_GPU || scenario->fault == FAULT_HANG;
    bool of_rack = scenario->fault == FAULT_SLOW_RACK || scenario->fault == FAULT_RACK_DEATH ||
                   scenario->fault == FAULT_SWITCH_TRAY;
    if (scenario->fault == FAULT_STORM)
        return;
    if (of_gpu)
        text_addf(out, ": GPU %d of", (int)endings->fault.gpu);
    if (scenario->fault == FAULT_SWITCH_TRAY)
        text_addf(out, ": switch tray %d", (int)endings->fault.gpu);
    if (!of_rack)
        text_addf(out, " %s", tray_name(endings, endings->fault.tray));
    text_addf(out, " in rack %s", faulty_rack(endings));
}

/* Is this node one that must be taken out? */
static bool is_damaged(const struct endings *endings, const char *node)
{
    const struct model *model = cluster_model(endings->cluster);
    switch (endings->scenario->ending.damage) {
    case DAMAGE_NONE:
        return false;
    case DAMAGE_GPU:
    case DAMAGE_TRAY:
        return strcmp(node, tray_name(endings, endings->fault.tray)) == 0;
    case DAMAGE_RACK:
        for (int32_t t = 0; t < model_tray_count(model); t++)
            if (model_rack_of(model, t) == endings->fault.rack &&
                strcmp(model_tray_name(model, t), node) == 0)
                return true;
        return false;
    }
    return false;
}

static int damaged_count(const struct endings *endings)
{
    int count = 0;
    for (int32_t t = 0; t < model_tray_count(cluster_model(endings->cluster)); t++)
        count += is_damaged(endings, tray_name(endings, t));
    return count;
}

/* --- incidents
 * ---------------------------------------------------------------------------------------- */

static bool is_counted(const struct json *incident)
{
    return strcmp(json_get_string(incident, "status", ""), "merged") != 0 &&
           strcmp(json_get_string(incident, "kind", ""), "info") != 0;
}

static const char *ref_of(const struct json *incident)
{
    return json_get_string(incident, "ref", "an incident without a ref");
}

/* Taken back before anything was done, and closed. */
static bool is_withdrawn(const struct json *incident)
{
    return strcmp(json_get_string(incident, "status", ""), "closed") == 0 &&
           json_size(json_get(json_get(incident, "state"), "actions")) == 0;
}

static void check_incident_count(struct check *check)
{
    int count = 0;
    int withdrawn = 0;
    AUTO_TEXT list = {0};
    for (const struct json *i = json_first(check->evidence->incidents); i != NULL;
         i = json_next(i)) {
        if (!is_counted(i))
            continue;
        text_addf(&list, "%s%s (%s of %s %s)", list.length > 0 ? ", " : ": ", ref_of(i),
                  json_get_string(i, "kind", "?"), json_get_string(i, "scope", "?"),
                  json_get_string(i, "domain", "?"));
        if (withdrawn < check->ending->incidents_cleared && is_withdrawn(i)) {
            withdrawn++;
            continue;
        }
        count++;
        if (check->incident == NULL ||
            json_get_int(i, "number", 0) < json_get_int(check->incident, "number", 0))
            check->incident = i; /* the first one; more of them are a disagreement by themselves */
    }
    if (count != check->ending->incidents)
        disagree(check, "%d incidents were expected and broomd tells of %d%s",
                 check->ending->incidents, count, list.bytes != NULL ? list.bytes : "");
}

static void check_domain(struct check *check)
{
    const struct endings *endings = check->endings;
    const char *scope = json_get_string(check->incident, "scope", "");
    const char *domain = json_get_string(check->incident, "domain", "");
    const char *expected = NULL;
    AUTO_FREE char *rank_text = NULL;
    AUTO_TEXT switch_tray = {0};
    AUTO(job_free) struct job *job = model_job(cluster_model(endings->cluster));
    if (strcmp(scope, "tray") == 0)
        expected = tray_name(endings, endings->fault.tray);
    else if (strcmp(scope, "rack") == 0)
        expected = faulty_rack(endings);
    else if (strcmp(scope, "switch_tray") == 0) {
        text_addf(&switch_tray, "%s:%d", faulty_rack(endings), (int)endings->fault.gpu);
        expected = switch_tray.bytes;
        if (json_size(json_get(check->incident, "nodes")) > 0)
            disagree(check, "%s names nodes, though a switch tray is none of them",
                     ref_of(check->incident));
    }
    for (int32_t r = 0; strcmp(scope, "rank") == 0 && r < job->world_size; r++)
        if (job->ranks[r].tray == endings->fault.tray && job->ranks[r].gpu == endings->fault.gpu) {
            struct text number = {0};
            text_addf(&number, "%d", (int)r);
            expected = rank_text = text_take(&number);
        }
    if (expected != NULL && strcmp(expected, domain) != 0)
        disagree(check, "%s is about %s %s; the fault was in %s %s", ref_of(check->incident), scope,
                 domain, scope, expected);
}

static void check_verdict(struct check *check)
{
    const struct json *incident = check->incident;
    const char *kind_text = json_get_string(incident, "kind", "");
    const char *scope_text = json_get_string(incident, "scope", "");
    enum verdict_kind kind;
    enum scope scope;
    if (!verdict_kind_parse(kind_text, &kind) || (check->ending->kinds >> kind & 1u) == 0)
        disagree(check, "%s is of kind %s, which does not fit", ref_of(incident), kind_text);
    if (!scope_parse(scope_text, &scope) || (check->ending->scopes >> scope & 1u) == 0)
        disagree(check, "%s has scope %s, which does not fit", ref_of(incident), scope_text);
    if (json_get_int(incident, "severity", -1) != check->ending->severity)
        disagree(check, "%s is P%" PRId64 ", P%d was expected", ref_of(incident),
                 json_get_int(incident, "severity", -1), check->ending->severity);
    if (check->ending->victims && json_size(json_get(incident, "victims")) == 0)
        disagree(check, "%s lists no victims", ref_of(incident));
    if (json_get_bool(incident, "observer_suspect", false) != check->ending->observer_suspect)
        disagree(check, "%s %s", ref_of(incident),
                 check->ending->observer_suspect ? "does not suspect the observer"
                                                 : "suspects the observer, who is right");
}

static void check_nodes(struct check *check)
{
    const struct json *nodes = json_get(check->incident, "nodes");
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node))
        if (!is_damaged(check->endings, json_string(node, "")))
            disagree(check, "%s names the healthy node %s", ref_of(check->incident),
                     json_string(node, ""));
}

static bool timeline_says(const struct json *incident, const char *word, const char *other)
{
    const struct json *timeline = json_get(incident, "timeline");
    for (const struct json *entry = json_first(timeline); entry != NULL; entry = json_next(entry)) {
        const char *text = json_get_string(entry, "text", "");
        if (strstr(text, word) != NULL && strstr(text, other) != NULL)
            return true;
    }
    return false;
}

/* A policy looked at it and decided that it is to be recorded; of a job that stands still people
 * are told. */
static void check_recorded(struct check *check, const char *status, const char *phase)
{
    if (strcmp(status, "open") != 0 || strcmp(phase, "confirmed") != 0)
        disagree(check, "%s is %s, in phase %s; it should be confirmed and stay open",
                 ref_of(check->incident), status, phase);
    if (json_get_string(check->incident, "rule", "")[0] == '\0')
        disagree(check, "no policy decided %s", ref_of(check->incident));
    const char *plan = check->ending->left_stuck ? "page" : "record";
    if (strcmp(json_get_string(check->incident, "plan", ""), plan) != 0)
        disagree(check, "the plan of %s is %s, %s was expected", ref_of(check->incident),
                 json_get_string(check->incident, "plan", "missing"), plan);
    if (check->ending->left_stuck && !timeline_says(check->incident, "notify succeeded", "told"))
        disagree(check, "nobody was told of %s", ref_of(check->incident));
}

static void check_status(struct check *check)
{
    const char *status = json_get_string(check->incident, "status", "");
    const char *phase = json_get_string(check->incident, "phase", "");
    const char *waiting = json_get_string(check->incident, "waiting_for", "");
    bool mended = strcmp(status, "mitigated") == 0 || strcmp(status, "resolved") == 0 ||
                  strcmp(status, "closed") == 0;
    bool handed_over = strcmp(phase, "repairing") == 0 || strcmp(phase, "validating") == 0 ||
                       strcmp(phase, "done") == 0;
    if (check->ending->restarts > 0 && (!mended || !handed_over))
        disagree(check, "%s is %s, in phase %s%s%s; it should be mitigated",
                 ref_of(check->incident), status, phase,
                 waiting[0] != '\0' ? ", and waits for " : "", waiting);
    if (check->ending->observer_suspect && strcmp(status, "open") != 0)
        disagree(check, "%s is %s; it should wait for a person", ref_of(check->incident), status);
    if (check->ending->left_slow || check->ending->left_stuck)
        check_recorded(check, status, phase);
    if (check->ending->holds && !timeline_says(check->incident, "holding", "1 "))
        disagree(check, "%s was never held for the one spare that was missing",
                 ref_of(check->incident));
}

/* --- the cluster's log
 * ---------------------------------------------------------------------------------- */

static void check_operations(struct check *check)
{
    for (size_t i = 0; i < check->log.count; i++) {
        const struct logged *logged = &check->log.items[i];
        if (logged->repeated)
            disagree(check, "operation %s was asked of the cluster twice", logged->id);
        if (check->ending->restarts == 0)
            disagree(check, "%s was done to a cluster that should be left alone (%s)", logged->verb,
                     logged->id);
    }
    int restarts = endings_log_count(&check->log, "restart_job", "succeeded");
    if (restarts != check->ending->restarts)
        disagree(check, "%d restarts were expected, the cluster accepted %d",
                 check->ending->restarts, restarts);
    if (check->log.job_starts != 1 + check->ending->restarts)
        disagree(check, "the job should have started %d times, it started %d times",
                 1 + check->ending->restarts, check->log.job_starts);
}

static void check_cordons(struct check *check)
{
    int right = 0;
    const struct json *nodes = json_get(check->evidence->world, "nodes");
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node)) {
        const char *name = json_get_string(node, "name", "");
        const char *by = json_get_string(node, "cordoned_by", "");
        if (!json_get_bool(node, "cordoned", false))
            continue;
        if (!is_damaged(check->endings, name))
            disagree(check, "the healthy node %s is cordoned by %s", name, by);
        else if (check->incident == NULL || strcmp(by, ref_of(check->incident)) != 0)
            disagree(check, "node %s is cordoned by %s, which is not the incident", name, by);
        else
            right++;
    }
    int expected = damaged_count(check->endings);
    if (right != expected)
        disagree(check, "%d nodes should be cordoned by the incident, %d are", expected, right);
}

/* What the incident says that it did is what the cluster says was done to it. */
static void check_actions(struct check *check)
{
    const struct json *actions = json_get(json_get(check->incident, "state"), "actions");
    for (const struct json *action = json_first(actions); action != NULL;
         action = json_next(action)) {
        const char *id = json_get_string(action, "operation_id", "");
        const char *verb = json_get_string(action, "verb", "");
        const char *outcome = json_get_string(action, "outcome", "none");
        bool outside = strcmp(verb, "notify") != 0 && strcmp(verb, "capture") != 0;
        const struct logged *logged = endings_log_find(&check->log, id);
        if (outside && logged == NULL && strcmp(outcome, "succeeded") == 0)
            disagree(check, "%s claims %s (%s), of which the cluster knows nothing",
                     ref_of(check->incident), verb, id);
        if (logged != NULL && logged->outcome[0] != '\0' && strcmp(logged->outcome, outcome) != 0)
            disagree(check, "%s says that %s (%s) ended %s, the cluster says %s",
                     ref_of(check->incident), verb, id, outcome, logged->outcome);
    }
    for (size_t i = 0; i < check->log.count; i++) {
        const struct logged *logged = &check->log.items[i];
        bool told = false;
        for (const struct json *action = json_first(actions); action != NULL;
             action = json_next(action))
            told = told || strcmp(json_get_string(action, "operation_id", ""), logged->id) == 0;
        if (!told)
            disagree(check, "the cluster was asked for %s (%s), of which %s says nothing",
                     logged->verb, logged->id, ref_of(check->incident));
    }
}

/* --- where the job is now
 * ---------------------------------------------------------------------------------- */

static const char *rack_of(const struct check *check, const char *node)
{
    const struct json *nodes = json_get(check->evidence->world, "nodes");
    for (const struct json *n = json_first(nodes); n != NULL; n = json_next(n))
        if (strcmp(json_get_string(n, "name", ""), node) == 0)
            return json_get_string(n, "rack", "");
    return "";
}

/* Ranks that sat on damaged nodes sit on spares of the right rack; all others sit where they sat.
 */
static void check_places(struct check *check, const struct json *job)
{
    const struct model *model = cluster_model(check->endings->cluster);
    const struct json *names = json_get(job, "rank_nodes");
    const char *spare_rack = NULL;
    int32_t rank = 0;
    int misplaced = 0;
    for (const struct json *name = json_first(names); name != NULL;
         name = json_next(name), rank++) {
        int32_t tray = model_tray_of_rank(model, rank);
        const char *before = model_tray_name(model, tray);
        const char *rack_before = model_rack_name(model, model_rack_of(model, tray));
        const char *now = json_string(name, "");
        const char *rack_now = rack_of(check, now);
        bool damaged = is_damaged(check->endings, before);
        if (damaged && check->ending->to_spare_rack && spare_rack == NULL)
            spare_rack = rack_now;
        bool right = damaged
                         ? !is_damaged(check->endings, now) &&
                               strcmp(rack_now, spare_rack != NULL ? spare_rack : rack_before) == 0
                         : strcmp(now, before) == 0;
        if (!right && misplaced++ == 0)
            disagree(check, "rank %d was on %s in %s and is on %s in %s", (int)rank, before,
                     rack_before, now, rack_now);
    }
    if (misplaced > 1)
        disagree(check, "%d ranks are not where they should be", misplaced);
}

static void check_job(struct check *check)
{
    const struct json *job = json_first(json_get(check->evidence->world, "jobs"));
    const char *phase = json_get_string(job, "phase", "gone");
    int64_t new_steps = json_get_int(job, "last_step", -1) - check->log.last_start_step + 1;
    double ratio = json_get_number(job, "last_step_ms", 0) / check->endings->healthy_ms;
    int64_t after = json_get_int(job, "last_step", -1) - check->endings->scenario->fault_step;
    if (strcmp(phase, "running") != 0)
        disagree(check, "the job is %s", phase);
    if (check->ending->left_stuck && after > 1)
        disagree(check, "the job has made %" PRId64 " steps since it hung", after);
    if (check->log.job_starts > 1 && new_steps < NEW_STEPS)
        disagree(check, "the job has made %" PRId64 " steps since its restart, %d are wanted",
                 new_steps, (int)NEW_STEPS);
    else if (check->ending->left_slow && !(ratio >= SLOW_FROM))
        disagree(check, "a step takes %.2f times as long as before the fault, which nobody mended",
                 ratio);
    else if (!check->ending->left_slow && !(ratio < PACE_WITHIN))
        disagree(check, "a step takes %.2f times as long as before the fault", ratio);
    check_places(check, job);
}

int endings_check(const struct endings *endings, const struct endings_evidence *evidence,
                  struct text *disagreements)
{
    struct check check = {.endings = endings,
                          .ending = &endings->scenario->ending,
                          .evidence = evidence,
                          .out = disagreements};
    endings_log_read(&check.log, evidence->log);
    check_incident_count(&check);
    if (check.incident != NULL && check.ending->incidents > 0) {
        check_verdict(&check);
        check_domain(&check);
        check_status(&check);
        check_actions(&check);
        if (check.ending->damage != DAMAGE_NONE)
            check_nodes(&check);
    }
    check_operations(&check);
    check_cordons(&check);
    check_job(&check);
    endings_log_done(&check.log);
    return check.count;
}
