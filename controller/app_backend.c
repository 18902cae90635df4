/* What the HTTP API asks of the daemon. */
#include "controller/admin/api_views.h"
#include "controller/app_topology.h"
#include "controller/sys/clock.h"
#include "controller/topology/job_file.h"

#include <string.h>

enum { NO_ROOM_RETRY_S = 30 };

/* ---- samples and jobs ---- */

static const enum precision PRECISIONS[] = {[API_PRECISION_NS] = PRECISION_NS,
                                            [API_PRECISION_US] = PRECISION_US,
                                            [API_PRECISION_MS] = PRECISION_MS,
                                            [API_PRECISION_S] = PRECISION_S};

static const int64_t UNITS_NS[] = {[API_PRECISION_NS] = 1,
                                   [API_PRECISION_US] = 1000,
                                   [API_PRECISION_MS] = 1000000,
                                   [API_PRECISION_S] = 1000000000};

static void on_bad_line(void *context, int64_t line, const char *cause)
{
    struct api_write_result *result = context;
    if (result->bad_count < API_BAD_LINES_MAX)
        result->bad[result->bad_count++] = (struct api_bad_line){.line = line, .cause = cause};
}

static enum status backend_write(void *self, const struct api_write *write,
                                 struct api_write_result *ret_result, struct error *reterr)
{
    struct app *app = self;
    int64_t now_ns = clock_now_ns();
    const char *job = write->identity->job;
    struct pipeline_write pass = {.body = write->body,
                                  .precision = PRECISIONS[write->precision],
                                  .default_time_ns = now_ns,
                                  .source = write->identity->name,
                                  .only_job = job[0] != '\0' ? job : NULL,
                                  .on_error = on_bad_line,
                                  .context = ret_result};
    struct pipeline_written written = pipeline_write(app->pipeline, &pass, now_ns);
    ret_result->accepted = written.accepted;
    ret_result->refused = written.refused;
    ret_result->bad_lines = written.bad_lines;
    if (app->recorder != NULL && written.accepted > 0)
        recorder_add(app->recorder, write->body, UNITS_NS[write->precision], now_ns);
    if (written.no_room == 0 || written.accepted > 0)
        return OK;
    ret_result->retry_after_s = NO_ROOM_RETRY_S;
    return error_set(reterr, ERR_LIMIT,
                     "no room for this job: see limits.memory_bytes, limits.jobs, limits.ranks");
}

static enum status backend_put_job(void *self, const char *name, struct view document,
                                   const struct identity *identity, bool *ret_created,
                                   struct error *reterr)
{
    struct app *app = self;
    AUTO(job_free) struct job *job = NULL;
    TRY(job_file_parse(document, &job, reterr));
    if (strcmp(job->name, name) != 0)
        return error_set(reterr, ERR_INVALID, "the path names job '%s', the document '%s'", name,
                         job->name);
    if (!auth_allows(identity, PERMISSION_INGEST, name))
        return error_set(reterr, ERR_DENIED, "'%s' may only speak for job '%s'", identity->name,
                         identity->job);
    return pipeline_put_job(app->pipeline, job, clock_now_ns(), ret_created, reterr);
}

static const struct live_job *find_job(const struct app *app, const char *name,
                                       struct error *reterr)
{
    const struct live_job *live = jobs_find(pipeline_jobs(app->pipeline), view_of(name));
    if (live == NULL)
        error_set(reterr, ERR_NOT_FOUND, "no live job '%s'; 'broom jobs' lists them", name);
    return live;
}

static void backend_jobs(void *self, struct json_writer *writer)
{
    const struct app *app = self;
    json_open_array(writer);
    for (struct live_job *live = jobs_first(pipeline_jobs(app->pipeline)); live != NULL;
         live = live->next)
        api_view_job_row(writer, live->engine);
    json_close(writer);
}

enum { SILENT_S = 60 };

static enum status backend_job(void *self, const char *name, struct json_writer *writer,
                               struct error *reterr)
{
    const struct app *app = self;
    const struct live_job *live = find_job(app, name, reterr);
    if (live == NULL)
        return ERR_NOT_FOUND;
    api_view_job(writer, live->engine, pipeline_world(app->pipeline),
                 jobs_sender_time(live, clock_now_ns()), SILENT_S * INT64_C(1000000000));
    return OK;
}

static enum status backend_ranks(void *self, const char *name, bool slow_only,
                                 struct json_writer *writer, struct error *reterr)
{
    const struct live_job *live = find_job(self, name, reterr);
    if (live == NULL)
        return ERR_NOT_FOUND;
    api_view_ranks(writer, live->engine, slow_only);
    return OK;
}

/* ---- status ---- */

static void put_policy(const struct app *app, struct json_writer *writer)
{
    json_put_string(writer, "policies",
                    app->policy_names.length > 0 ? app->policy_names.bytes : NULL);
    json_put_string(writer, "policies_refused",
                    app->policy_reason[0] != '\0' ? app->policy_reason : NULL);
}

static void put_pause(const struct remediation_status *status, struct json_writer *writer)
{
    json_add_key(writer, "paused");
    if (status->paused) {
        json_open_object(writer);
        json_put_string(writer, "by", status->paused_by);
        json_close(writer);
    } else {
        json_add_null(writer);
    }
    json_put_bool(writer, "acting", status->blocked == NULL);
    json_put_string(writer, "not_acting_because", status->blocked);
    json_add_key(writer, "breaker");
    json_open_object(writer);
    json_put_bool(writer, "open", status->breaker_open);
    json_put_string(writer, "reason", status->breaker_open ? status->breaker_reason : NULL);
    json_close(writer);
}

static void put_database(const struct app *app, struct json_writer *writer)
{
    struct store_status store = {0};
    if (app->store != NULL)
        store = store_status(app->store);
    bool is_up = app_store_is_up(app);
    const char *reason = app->database_reason[0] != '\0' ? app->database_reason
                         : app->store == NULL            ? "starting"
                                                         : store.reason;
    json_add_key(writer, "database");
    json_open_object(writer);
    json_put_bool(writer, "up", is_up);
    json_put_string(writer, "state",
                    app->store != NULL ? store_state_name(store.state) : "starting");
    json_put_string(writer, "reason", is_up ? NULL : reason);
    json_put_int(writer, "spooled", store.spooled_bytes);
    json_put_int(writer, "lost_records", store.lost_records);
    json_close(writer);
    json_add_key(writer, "lease");
    json_open_object(writer);
    json_put_bool(writer, "held", store.lease_held);
    json_put_int(writer, "epoch", store.epoch);
    json_close(writer);
}

enum { BUDGETS_SHOWN = 16 };

static void put_budgets(const struct app *app, struct json_writer *writer)
{
    struct budget_use uses[BUDGETS_SHOWN];
    size_t count = remediation_budgets(pipeline_core(app->pipeline), clock_now_ns(), uses,
                                       BUDGETS_SHOWN);
    json_add_key(writer, "budgets");
    json_open_array(writer);
    for (size_t i = 0; i < count; i++) {
        AUTO_TEXT window = {0};
        text_add_duration(&window, uses[i].window_ns);
        json_open_object(writer);
        json_put_string(writer, "name", uses[i].name);
        json_put_string(writer, "scope", "cluster");
        json_put_string(writer, "domain", budget_unit_name(uses[i].unit));
        json_put_int(writer, "used", uses[i].used);
        json_put_int(writer, "limit", uses[i].limit);
        json_put_string(writer, "window", window.bytes);
        json_close(writer);
    }
    json_close(writer);
}

static void backend_status(void *self, struct json_writer *writer)
{
    const struct app *app = self;
    struct remediation_status core = remediation_status(pipeline_core(app->pipeline));
    struct pipeline_counts counts = pipeline_counts(app->pipeline);
    int64_t newest_ns = 0, ranks = 0;
    for (struct live_job *live = jobs_first(pipeline_jobs(app->pipeline)); live != NULL;
         live = live->next) {
        newest_ns = live->last_sample_ns > newest_ns ? live->last_sample_ns : newest_ns;
        ranks += engine_job(live->engine)->world_size;
    }
    json_open_object(writer);
    json_put_string(writer, "version", BROOM_VERSION);
    json_put_time(writer, "now", clock_now_ns());
    json_put_time(writer, "started", app->started_ns);
    json_put_string(writer, "mode", mode_name((enum mode)app->config->mode));
    put_pause(&core, writer);
    put_policy(app, writer);
    put_database(app, writer);
    json_add_key(writer, "telemetry");
    json_open_object(writer);
    json_put_bool(writer, "ok", counts.telemetry_ok);
    json_put_time(writer, "newest", newest_ns);
    json_close(writer);
    json_put_string(writer, "actuator", app->actuator->name);
    put_budgets(app, writer);
    json_put_int(writer, "jobs", jobs_count(pipeline_jobs(app->pipeline)));
    json_put_int(writer, "ranks", ranks);
    json_put_int(writer, "open_incidents", core.open_count);
    json_put_int(writer, "escalated_incidents", core.escalated_count);
    json_close(writer);
}

/* ---- people ---- */

struct pending_command {
    struct app *app;
    api_done_fn *done;
    void *context;
    char ref[INCIDENT_REF_BYTES];
};

static void command_done(void *context, enum status status, const char *reason)
{
    struct pending_command *pending = context;
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    const struct incident *incident = pending->ref[0] != '\0'
                                          ? remediation_find(pipeline_core(pending->app->pipeline),
                                                             pending->ref)
                                          : NULL;
    json_open_object(&writer);
    if (incident != NULL) {
        json_put_string(&writer, "incident", incident->ref);
        json_put_string(&writer, "status", incident_status_name(incident->status));
        json_put_string(&writer, "phase", phase_name(incident->phase));
        json_put_string(&writer, "text", incident->waiting_for);
    }
    json_close(&writer);
    pending->done(pending->context, &(struct api_answer){.status = status,
                                                         .reason = reason,
                                                         .json = {json.bytes, json.length}});
    xfree(pending);
}

static void backend_command(void *self, const struct api_command *command, api_done_fn *done,
                            void *context)
{
    struct app *app = self;
    struct error error = {0};
    struct pending_command *pending = xcalloc(1, sizeof *pending);
    *pending = (struct pending_command){.app = app, .done = done, .context = context};
    if (command->incident_ref != NULL)
        text_copy(pending->ref, sizeof pending->ref, command->incident_ref);
    struct remediation_command order = {.verb = command->verb,
                                        .incident_ref = command->incident_ref,
                                        .node = command->node,
                                        .actor = command->identity->name,
                                        .text = command->text};
    enum status status = pipeline_command(app->pipeline, &order, clock_now_ns(), command_done,
                                          pending, &error);
    if (status == OK)
        return;
    xfree(pending);
    done(context, &(struct api_answer){.status = status, .reason = error.message});
}

struct pending_query {
    struct app *app;
    api_done_fn *done;
    void *context;
    struct pending_query *next;
};

static void query_done(void *context, enum status status, const char *reason, struct view json)
{
    struct pending_query *pending = context;
    struct pending_query **place = &pending->app->queries;
    while (*place != pending)
        place = &(*place)->next;
    *place = pending->next;
    pending->done(pending->context,
                  &(struct api_answer){.status = status, .reason = reason, .json = json});
    xfree(pending);
}

static void backend_query(void *self, const struct api_query *query, api_done_fn *done,
                          void *context)
{
    static const enum store_read reads[API_READ_COUNT] = {[API_INCIDENTS] = STORE_INCIDENTS,
                                                          [API_INCIDENT] = STORE_INCIDENT,
                                                          [API_TIMELINE] = STORE_TIMELINE,
                                                          [API_EXPORT] = STORE_EXPORT};
    struct app *app = self;
    if (app->store == NULL) {
        done(context,
             &(struct api_answer){.status = ERR_UNREACHABLE, .reason = "the database is starting"});
        return;
    }
    AUTO_TEXT since = {0};
    text_addf(&since, "%lld", (long long)query->since_ns);
    const char *params[STORE_PARAMS_MAX] = {query->incident_ref};
    if (query->read == API_INCIDENTS) {
        params[0] = since.bytes;
        params[1] = query->status;
        params[2] = query->job;
    }
    struct pending_query *pending = xcalloc(1, sizeof *pending);
    *pending = (struct pending_query){
        .app = app, .done = done, .context = context, .next = app->queries};
    app->queries = pending;
    store_query(app->store, reads[query->read], params, query_done, pending);
}

void app_drop_queries(struct app *app)
{
    while (app->queries != NULL) {
        struct pending_query *pending = app->queries;
        app->queries = pending->next;
        xfree(pending);
    }
}

static int64_t backend_now_ns(void *self)
{
    (void)self;
    return clock_now_ns();
}

static bool backend_recall(void *self, const struct api_query *query, struct json_writer *writer)
{
    const struct app *app = self;
    return api_recall(pipeline_core(app->pipeline), query, clock_now_ns(), writer);
}

struct api_backend app_backend(struct app *app)
{
    return (struct api_backend){.self = app,
                                .write = backend_write,
                                .status = backend_status,
                                .jobs = backend_jobs,
                                .job = backend_job,
                                .ranks = backend_ranks,
                                .put_job = backend_put_job,
                                .command = backend_command,
                                .query = backend_query,
                                .now_ns = backend_now_ns,
                                .recall = backend_recall,
                                .topology = app_topology_write,
                                .layout = app_topology_layout};
}
