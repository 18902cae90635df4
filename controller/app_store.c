/* The daemon and its database: submit, restore, guards. */
#include "controller/app_state.h"

#include "controller/config/policy_files.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "controller/topology/job_file.h"

#include <string.h>

enum { RESTORE_DAYS = 8, RESTORE_EVERY_S = 1 };
static const int64_t NS_PER_S = 1000000000;
static const int64_t NS_PER_DAY = INT64_C(86400) * 1000000000;

/* ---- ports of the pipeline ---- */

/* A batch whose commit is timed. */
struct timed_submit {
    struct app *app;
    int64_t began_ns;
    pipeline_durable_fn *done;
    void *context;
    struct timed_submit *next;
};

static void on_committed(void *context, enum status status, const char *reason)
{
    struct timed_submit timed = *(struct timed_submit *)context;
    struct timed_submit **place = &timed.app->submits;
    while (*place != context)
        place = &(*place)->next;
    *place = timed.next;
    xfree(context);
    if (status == OK)
        metrics_observe(timed.app->metrics, METRIC_DATABASE_SECONDS,
                        (double)(clock_read().monotonic_ns - timed.began_ns) / 1e9);
    timed.done(timed.context, status, reason);
}

static void port_submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                        void *context)
{
    struct app *app = self;
    if (app->store == NULL) {
        done(context, ERR_UNREACHABLE, "the database is not up yet");
        return;
    }
    if (spoolable) {
        store_submit(app->store, records, STORE_MAY_SPOOL, done, context);
        return;
    }
    struct timed_submit *timed = xmalloc(sizeof *timed);
    *timed = (struct timed_submit){app, clock_read().monotonic_ns, done, context, app->submits};
    app->submits = timed;
    store_submit(app->store, records, 0, on_committed, timed);
}

void app_drop_submits(struct app *app)
{
    while (app->submits != NULL) {
        struct timed_submit *timed = app->submits;
        app->submits = timed->next;
        xfree(timed);
    }
}

static void port_diverged(void *self, const char *reason)
{
    struct app *app = self;
    log_event(LOG_WARN, "state_diverged", kv_str("reason", reason != NULL ? reason : ""),
              kv_str("then", "read again from the database"));
    app->is_restored = false;
    app_tell_guards(app);
    app_store_changed(app);
}

static void port_notify(void *self, const char *incident_ref, const char *params_json)
{
    (void)self;
    AUTO(json_free) struct json *params = NULL;
    if (params_json != NULL)
        ignore_status(
            json_parse(view_of(params_json), &params, NULL)); /* ours; a missing text is "" */
    log_event(LOG_WARN, "notified", kv_str("incident", incident_ref),
              kv_str("severity", json_get_string(params, "severity", "info")),
              kv_str("reason", json_get_string(params, "text", "")));
}

static bool has_type(const char *record, const char *start)
{
    return strncmp(record, start, strlen(start)) == 0;
}

/* What happens to incidents is in the log too, in the words of their timelines; rules are counted.
 */
static void port_on_record(void *self, const char *text)
{
    struct app *app = self;
    AUTO(json_free) struct json *record = NULL;
    bool is_decision = has_type(text, "{\"type\":\"decision\"");
    if ((!is_decision && !has_type(text, "{\"type\":\"timeline\"")) ||
        json_parse(view_of(text), &record, NULL) != OK)
        return;
    if (is_decision) {
        metrics_add(app->metrics, METRIC_TRANSITIONS, json_get_string(record, "fsm_rule", "other"),
                    1);
        return;
    }
    log_event(LOG_INFO, "incident_changed",
              kv_str("incident", json_get_string(record, "incident", "?")),
              kv_str("kind", json_get_string(record, "kind", "?")),
              kv_str("actor", json_get_string(record, "actor", "?")),
              kv_str("reason", json_get_string(record, "text", "")));
}

struct pipeline_ports app_ports(struct app *app)
{
    return (struct pipeline_ports){.self = app,
                                   .submit = port_submit,
                                   .diverged = port_diverged,
                                   .notify = port_notify,
                                   .on_record = port_on_record,
                                   .actuator = app->actuator};
}

/* ---- policies ---- */

struct policy_set *app_load_policies(struct app *app)
{
    AUTO_TEXT findings = {0};
    struct error error = {0};
    struct policy_set *set = NULL;
    app->policy_reason[0] = '\0';
    if (policy_files_load(app->config->policies, &set, &findings, &error) != OK) {
        text_copy(app->policy_reason, sizeof app->policy_reason, error.message);
        log_event(LOG_ERROR, "policies_refused", kv_str("reason", error.message),
                  kv_str("findings", findings.length > 0 ? findings.bytes : ""));
        return NULL;
    }
    text_clear(&app->policy_names);
    for (size_t i = 0; i < set->count; i++)
        text_addf(&app->policy_names, "%s%s (%s)", i > 0 ? ", " : "", set->items[i]->name,
                  set->items[i]->hash);
    log_event(LOG_INFO, "policies_loaded", kv_int("policies", (int64_t)set->count),
              kv_str("names", app->policy_names.length > 0 ? app->policy_names.bytes : ""));
    return set;
}

struct remediation *app_core_new(struct app *app)
{
    struct remediation_params params = {.daemon_mode = (enum mode)app->config->mode,
                                        .actuator = app->actuator->name,
                                        .next_number = 1};
    struct remediation *core = remediation_new(&params);
    struct policy_set *set = app_load_policies(app);
    if (set != NULL)
        remediation_set_policy(core, set, clock_now_ns());
    return core;
}

/* ---- restore ---- */

static bool restore_incidents(struct app *app, struct remediation *core, const struct json *root)
{
    int64_t now_ns = clock_now_ns();
    bool is_whole = true;
    for (const struct json *record = json_first(json_get(root, "incidents")); record != NULL;
         record = json_next(record)) {
        struct error error = {0};
        if (remediation_restore(core, record, now_ns, &error) == OK)
            continue;
        log_event(LOG_ERROR, "incident_not_restored",
                  kv_str("incident", json_get_string(record, "ref", "?")),
                  kv_str("reason", error.message), kv_str("then", "nothing is acted on"));
        text_copy(app->database_reason, sizeof app->database_reason, error.message);
        is_whole = false;
    }
    return is_whole;
}

enum { JOB_MEMORY_HOURS = 24 };

/* Jobs that ran lately: their ranks go on sending and do not introduce themselves to a daemon that
 * was started anew. */
static void restore_jobs(struct app *app, const struct json *root)
{
    int64_t now_ns = clock_now_ns();
    for (const struct json *record = json_first(json_get(root, "jobs")); record != NULL;
         record = json_next(record)) {
        AUTO_TEXT document = {0};
        AUTO(job_free) struct job *job = NULL;
        struct error error = {0};
        bool created;
        const char *name = json_get_string(record, "job", "?");
        bool is_old = now_ns - json_get_int(record, "time_ns", 0) >
                      JOB_MEMORY_HOURS * NS_PER_DAY / 24;
        if (is_old || jobs_find(pipeline_jobs(app->pipeline), view_of(name)) != NULL)
            continue;
        json_print(json_get(record, "document"), &document);
        if (job_file_parse((struct view){document.bytes, document.length}, &job, &error) != OK ||
            pipeline_put_job(app->pipeline, job, now_ns, &created, &error) != OK)
            log_event(LOG_WARN, "job_not_restored", kv_str("job", name),
                      kv_str("reason", error.message),
                      kv_str("then", "it is known again by hello"));
    }
}

static void restore_control(struct remediation *core, const struct json *root)
{
    bool is_open = json_get_bool(root, "breaker_open", false);
    const char *why = is_open ? json_get_string(root, "breaker_reason", "")
                              : json_get_string(root, "paused_text", "");
    const char *by = json_get_string(root, "paused_by", NULL);
    AUTO_TEXT pause = {0};
    text_addf(&pause, "%s%s%s", by != NULL ? by : "", by != NULL ? ": " : "", why);
    remediation_restore_control(core, json_get_bool(root, "paused", false), is_open, pause.bytes,
                                json_get_int(root, "next_number", 1));
}

static void hand_policies(struct remediation *from, struct remediation *to)
{
    remediation_set_policy(to, remediation_give_policies(from), clock_now_ns());
}

static struct remediation_guards look_around(const struct app *app)
{
    return (struct remediation_guards){
        .lease_held = app->store != NULL && store_status(app->store).lease_held,
        .clock_trusted = clock_read().monotonic_ns >= app->clock_trusted_from_ns,
        .store_up = app_store_is_up(app)};
}

static void on_restore(void *context, enum status status, const char *reason, struct view json)
{
    struct app *app = context;
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    app->is_restoring = false;
    if (status != OK || json_parse(json, &root, &error) != OK) {
        log_event(LOG_WARN, "restore_failed",
                  kv_str("reason", status != OK ? reason : error.message),
                  kv_str("then", "tried again"));
        return; /* the next tick asks again */
    }
    if (store_status(app->store).epoch != app->restored_epoch)
        return; /* somebody else may have written since this was read: it is read again */
    AUTO(remediation_free) struct remediation *core = app_core_new(app);
    restore_control(core, root);
    bool keeps_policies = app->policy_reason[0] !=
                          '\0'; /* the files cannot be taken now: what was taken holds */
    if (keeps_policies)
        hand_policies(pipeline_core(app->pipeline), core);
    if (!restore_incidents(app, core, root)) {
        if (keeps_policies)
            hand_policies(core, pipeline_core(app->pipeline));
        return;
    }
    restore_jobs(app, root);
    app->is_restored = true;
    app->database_reason[0] = '\0';
    log_event(LOG_INFO, "state_restored",
              kv_int("incidents", (int64_t)remediation_incident_count(core)),
              kv_int("epoch", app->restored_epoch));
    pipeline_restart(app->pipeline, TAKE(core), look_around(app), clock_now_ns());
    app_tell_guards(app);
}

void app_tell_guards(struct app *app)
{
    struct remediation_guards guards = look_around(app);
    pipeline_guards(app->pipeline, guards.lease_held, guards.clock_trusted, guards.store_up,
                    clock_now_ns());
    if (guards.store_up)
        pipeline_store_is_up(app->pipeline);
}

bool app_store_is_up(const struct app *app)
{
    return app->store != NULL && app->is_restored && store_status(app->store).state == STORE_UP;
}

void app_store_changed(void *context)
{
    struct app *app = context;
    if (app->store == NULL || app->is_stopping)
        return;
    struct store_status status = store_status(app->store);
    if (status.state == STORE_WAITING_LEASE || status.epoch != app->restored_epoch)
        app->is_restored =
            false; /* somebody else held it meanwhile and may have changed what we know */
    int64_t now_ns = clock_read().monotonic_ns;
    bool is_due = app->restoring_ns == 0 ||
                  now_ns - app->restoring_ns >= RESTORE_EVERY_S * NS_PER_S;
    if (status.state == STORE_UP && !app->is_restored && !app->is_restoring && is_due) {
        app->is_restoring = true;
        app->restoring_ns = now_ns;
        app->restored_epoch = status.epoch;
        store_restore(app->store, clock_now_ns() - RESTORE_DAYS * NS_PER_DAY, on_restore, app);
    }
    app_tell_guards(app);
}

enum status app_store_open(struct app *app, const char *conninfo, bool is_private,
                           struct error *reterr)
{
    AUTO_TEXT dir = {0};
    text_addf(&dir, "%s/store", app->config->data_dir);
    struct store_params params = {
        .conninfo = conninfo,
        .dir = dir.bytes,
        .spool_bytes_max = app->config->spool_bytes,
        .keep_days = (int32_t)(app->config->retention_events_ns / NS_PER_DAY),
        .is_private = is_private};
    return store_new(app->loop, &params, app_store_changed, app, &app->store, reterr);
}
