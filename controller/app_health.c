/* Readiness by named checks, and the numbers of /metrics. */
#include "controller/app_state.h"
#include "controller/sys/clock.h"

#include <stdio.h>
#include <unistd.h>

/* A check that either holds or is as bad as `else_state`, for `reason`. */
static void check(struct app *app, const char *name, bool holds, enum health_state else_state,
                  const char *reason)
{
    health_set(app->health, name, holds ? HEALTH_OK : else_state, holds ? NULL : reason);
}

static void check_database(struct app *app)
{
    struct store_status store = {0};
    if (app->store != NULL)
        store = store_status(app->store);
    const char *reason = app->database_reason[0] != '\0' ? app->database_reason
                         : app->store == NULL            ? "starting"
                         : store.reason[0] != '\0'       ? store.reason
                                                         : "the state is being read";
    bool is_up = app_store_is_up(app);
    check(app, "database", is_up, HEALTH_FAILED, reason);
    check(app, "lease", store.lease_held, HEALTH_FAILED,
          "the lease is not held: another broomd may be acting");
    check(app, "replication", !is_up || store.commits_are_replicated, HEALTH_WARN,
          "commits are not synchronous to a standby: after a fail-over recent effects count as "
          "unknown");
    check(app, "spool", store.lost_records == 0, HEALTH_WARN,
          "events were lost: the spool was full or the disk refused");
}

static void check_recorder(struct app *app)
{
    if (app->recorder == NULL)
        return;
    struct recorder_counts counts = recorder_counts(app->recorder);
    check(app, "recorder", counts.reason == NULL, HEALTH_WARN, counts.reason);
    metrics_set(app->metrics, METRIC_RECORDED_BYTES, NULL, (double)counts.packed_bytes);
}

static void set_checks(struct app *app)
{
    struct remediation_status core = remediation_status(pipeline_core(app->pipeline));
    struct pipeline_counts counts = pipeline_counts(app->pipeline);
    bool clock_trusted = clock_read().monotonic_ns >= app->clock_trusted_from_ns;
    check_database(app);
    check_recorder(app);
    check(app, "policies", app->policy_reason[0] == '\0', HEALTH_WARN, app->policy_reason);
    check(app, "clock", clock_trusted, HEALTH_WARN, "the clock jumped: nothing acts for a minute");
    check(app, "telemetry", counts.telemetry_ok, HEALTH_WARN,
          "most of what arrives is refused: nothing acts on the rest");
    check(app, "topology", inventory_lost_records(app->inventory) == 0, HEALTH_WARN,
          "changes of where nodes stand were lost: too many came before the lease was held");
    check(app, "acting", core.blocked == NULL, HEALTH_WARN, core.blocked);
    check(app, "breaker", !core.breaker_open, HEALTH_WARN, core.breaker_reason);
    metrics_set(app->metrics, METRIC_PAUSED, NULL, core.paused ? 1 : 0);
    metrics_set(app->metrics, METRIC_BREAKER_OPEN, NULL, core.breaker_open ? 1 : 0);
    metrics_set(app->metrics, METRIC_TELEMETRY_OK, NULL, counts.telemetry_ok ? 1 : 0);
}

static void set_http_metrics(struct app *app)
{
    if (app->api_server == NULL)
        return;
    struct http_server_counts http = http_server_counts(app->api_server);
    struct api_counts api = api_counts(app->api);
    metrics_set(app->metrics, METRIC_HTTP_REQUESTS, NULL, (double)http.requests);
    metrics_set(app->metrics, METRIC_HTTP_REFUSED, "guard", (double)http.refused_guard);
    metrics_set(app->metrics, METRIC_HTTP_REFUSED, "limit", (double)http.refused_limit);
    metrics_set(app->metrics, METRIC_HTTP_REFUSED, "timeout", (double)http.timed_out);
    metrics_set(app->metrics, METRIC_HTTP_CONNECTIONS, NULL, (double)http.connections_now);
    metrics_set(app->metrics, METRIC_HTTP_BODY_BYTES, NULL, (double)http.body_bytes);
    metrics_set(app->metrics, METRIC_API_ERRORS, "client", (double)api.client_errors);
    metrics_set(app->metrics, METRIC_API_ERRORS, "server", (double)api.server_errors);
    metrics_set(app->metrics, METRIC_API_ERRORS, "denied", (double)api.denied);
}

static void set_pipeline_metrics(struct app *app)
{
    struct pipeline_counts counts = pipeline_counts(app->pipeline);
    const struct jobs *jobs = pipeline_jobs(app->pipeline);
    int64_t ranks = 0;
    for (int m = 0; m < MEASUREMENT_COUNT; m++)
        metrics_set(app->metrics, METRIC_SAMPLES, measurement_name((enum measurement)m),
                    (double)counts.samples[m]);
    for (int k = 0; k < VERDICT_KIND_COUNT; k++)
        metrics_set(app->metrics, METRIC_VERDICTS, verdict_kind_name((enum verdict_kind)k),
                    (double)counts.verdicts[k]);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        metrics_set(app->metrics, METRIC_ACTIONS, outcome_name((enum outcome)o),
                    (double)counts.outcomes[o]);
    for (const struct live_job *live = jobs_first(jobs); live != NULL; live = live->next)
        ranks += engine_job(live->engine)->world_size;
    metrics_set(app->metrics, METRIC_LINES_BAD, NULL, (double)counts.bad_lines);
    metrics_set(app->metrics, METRIC_LINES_REFUSED, NULL, (double)counts.refused_lines);
    metrics_set(app->metrics, METRIC_JOBS, NULL, (double)jobs_count(jobs));
    metrics_set(app->metrics, METRIC_RANKS, NULL, (double)ranks);
    metrics_set(app->metrics, METRIC_SERIES_BYTES, NULL, (double)jobs_bytes(jobs));
}

static void set_incident_metrics(struct app *app)
{
    static const char *const severities[] = {"P0", "P1", "P2", "P3", "P4"};
    int64_t open[ARRAY_LEN(severities)] = {0};
    const struct remediation *core = pipeline_core(app->pipeline);
    for (size_t i = 0; i < remediation_incident_count(core); i++) {
        const struct incident *incident = remediation_incident_at(core, i);
        if (!incident_has_ended(incident) && incident->severity >= 0 &&
            incident->severity < (int)ARRAY_LEN(open))
            open[incident->severity]++;
    }
    for (size_t s = 0; s < ARRAY_LEN(severities); s++)
        metrics_set(app->metrics, METRIC_INCIDENTS_OPEN, severities[s], (double)open[s]);
    for (int mode = 0; mode <= MODE_ENFORCE; mode++)
        metrics_set(app->metrics, METRIC_MODE, mode_name((enum mode)mode),
                    mode == (int)app->config->mode ? 1 : 0);
}

static void set_resident(struct app *app)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;
    if (file != NULL && fscanf(file, "%*s %ld", &pages) == 1)
        metrics_set(app->metrics, METRIC_RESIDENT, NULL,
                    (double)pages * (double)sysconf(_SC_PAGESIZE));
    if (file != NULL)
        fclose(file);
}

void app_refresh_health(void *context)
{
    struct app *app = context;
    struct store_status store = {0};
    if (app->store != NULL)
        store = store_status(app->store);
    set_checks(app);
    set_http_metrics(app);
    set_pipeline_metrics(app);
    set_incident_metrics(app);
    set_resident(app);
    metrics_set(app->metrics, METRIC_BUILD_INFO, BROOM_VERSION, 1);
    metrics_set(app->metrics, METRIC_START_TIME, NULL, (double)app->started_ns / 1e9);
    metrics_set(app->metrics, METRIC_CPU, NULL, (double)clock_cpu_ns() / 1e9);
    metrics_set(app->metrics, METRIC_LEASE_HELD, NULL, store.lease_held ? 1 : 0);
    metrics_set(app->metrics, METRIC_DATABASE_UP, NULL, app_store_is_up(app) ? 1 : 0);
    metrics_set(app->metrics, METRIC_SPOOLED_BYTES, NULL, (double)store.spooled_bytes);
    metrics_set(app->metrics, METRIC_CLOCK_JUMPS, NULL, (double)app->clock_jumps);
}
