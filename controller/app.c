/* Start order, the tick, reload and stop of the daemon. */
#include "controller/app_state.h"

#include "controller/app_topology.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "controller/sys/notify.h"
#include "controller/warm.h"
#include "remediation/actuators/dry_run.h"
#include "remediation/actuators/kubernetes.h"
#include "remediation/actuators/rehearsal.h"
#include "remediation/actuators/slurm.h"
#include "remediation/actuators/webhook.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const int64_t NS_PER_MS = 1000000;
static const int64_t NS_PER_S = 1000000000;

enum { TICK_MS = 250, TICK_MS_LEAST = 10, STOP_S = 20, JUMP_S = 2, DISTRUST_S = 60 };

/* ---- time ---- */

/* A wall clock that leaps while the monotonic one does not makes every deadline a lie: nothing acts
 * for a while. */
static void watch_clock(struct app *app)
{
    struct clock_reading now = clock_read();
    int64_t leap_ns = (now.wall_ns - app->last_wall_ns) -
                      (now.monotonic_ns - app->last_monotonic_ns);
    if (app->last_wall_ns != 0 && (leap_ns > JUMP_S * NS_PER_S || leap_ns < -JUMP_S * NS_PER_S)) {
        app->clock_jumps++;
        app->clock_trusted_from_ns = now.monotonic_ns + DISTRUST_S * NS_PER_S;
        log_event(LOG_WARN, "clock_jumped", kv_num("seconds", (double)leap_ns / (double)NS_PER_S),
                  kv_int("nothing_acts_for_s", DISTRUST_S));
    }
    app->last_wall_ns = now.wall_ns;
    app->last_monotonic_ns = now.monotonic_ns;
}

static int64_t tick_ns(void)
{
    int64_t ms = (int64_t)(TICK_MS / clock_scale());
    return (ms < TICK_MS_LEAST ? TICK_MS_LEAST : ms) * NS_PER_MS;
}

/* What changed, and the sign of life where it is wanted: a full queue of systemd would lose that we
 * are ready. */
static void tell_systemd(struct app *app)
{
    AUTO_TEXT line = {0};
    text_addf(&line, "%d jobs, %lld incidents open", (int)jobs_count(pipeline_jobs(app->pipeline)),
              (long long)remediation_status(pipeline_core(app->pipeline)).open_count);
    if (strcmp(line.bytes, app->systemd_line) != 0)
        notify_status(line.bytes);
    text_copy(app->systemd_line, sizeof app->systemd_line, line.bytes);
    if (notify_watchdog_interval_ns() > 0)
        notify_watchdog();
}

static void recorder_dir(const struct app *app, struct text *dir)
{
    text_addf(dir, "%s/recorder", app->config->data_dir);
}

/* The recording is of little use to the next process without the layouts of its jobs. */
static void save_layouts(struct app *app)
{
    AUTO_TEXT dir = {0};
    struct error error = {0};
    if (app->saved_layouts == pipeline_layouts(app->pipeline))
        return;
    app->saved_layouts = pipeline_layouts(app->pipeline);
    recorder_dir(app, &dir);
    if (warm_save(dir.bytes, app->pipeline, &error) != OK)
        log_event(LOG_WARN, "layouts_not_saved", kv_str("reason", error.message),
                  kv_str("then", "after a restart these jobs are known again by hello"));
}

/* What need not be done every tick of a fast clock: once a real second. */
static void flush_and_greet(struct app *app)
{
    int64_t now_ns = clock_read().monotonic_ns;
    if (now_ns - app->greeted_ns < NS_PER_S)
        return;
    app->greeted_ns = now_ns;
    if (app->recorder != NULL) {
        recorder_flush(app->recorder);
        save_layouts(app);
    }
    app_topology_tick(app);
    tell_systemd(app);
    if (!app->is_greeted && app_store_is_up(app)) {
        app->is_greeted = true;
        health_started(app->health);
        notify_ready();
        log_event(LOG_INFO, "ready", kv_int("port", http_server_port(app->api_server)));
    }
}

static void on_tick(void *context)
{
    struct app *app = context;
    int64_t started_ns = clock_read().monotonic_ns;
    watch_clock(app);
    app_store_changed(app); /* asks again for what a failed restore left open; tells the guards */
    pipeline_tick(app->pipeline, clock_now_ns());
    metrics_observe(app->metrics, METRIC_PASS_SECONDS,
                    (double)(clock_read().monotonic_ns - started_ns) / 1e9);
    flush_and_greet(app);
    if (app->submits == NULL) /* what is being committed is not done */
        clock_follow();
    loop_timer_set(app->tick_timer, tick_ns());
}

/* ---- reload and stop ---- */

static void reload_policies(struct app *app)
{
    struct policy_set *set = app_load_policies(app);
    if (set != NULL)
        remediation_set_policy(pipeline_core(app->pipeline), set, clock_now_ns());
}

static void on_hangup(void *context, int signal_number)
{
    struct app *app = context;
    AUTO_TEXT findings = {0};
    AUTO_TEXT restart = {0};
    struct error error = {0};
    struct config *config = NULL;
    (void)signal_number;
    if (app->is_stopping)
        return;
    notify_reloading();
    if (config_load(app->options->config_path, app->options->config_is_named,
                    app->options->overrides, app->options->override_count, &config, &findings,
                    &error) != OK) {
        log_event(LOG_ERROR, "config_refused", kv_str("reason", error.message),
                  kv_str("findings", findings.length > 0 ? findings.bytes : ""),
                  kv_str("then", "the last good one stays"));
        metrics_add(app->metrics, METRIC_RELOADS, "kept_old", 1);
    } else {
        metrics_add(app->metrics, METRIC_RELOADS, "taken", 1);
        if (http_server_reload_tls(app->api_server, &error) != OK)
            log_event(LOG_ERROR, "tls_refused", kv_str("reason", error.message),
                      kv_str("then", "the last good certificate stays"));
        if (config_needs_restart(app->config, config, &restart))
            log_event(LOG_WARN, "config_needs_restart", kv_str("options", restart.bytes));
        config_take_reloadable(app->config, config);
        log_init((enum log_level)app->config->log_level);
        ignore_status(app_topology_read(app, &error)); /* logged; what was read before stays */
        pipeline_describe_every(app->pipeline, app->config->describe_every_ns);
        remediation_set_mode(pipeline_core(app->pipeline), (enum mode)app->config->mode,
                             clock_now_ns());
        if (app->kubernetes != NULL)
            kubernetes_set_reads_only(app->kubernetes, app->config->mode == MODE_OBSERVE);
        if (auth_reload(app->auth, app->config, &findings, &error) != OK)
            log_event(LOG_ERROR, "auth_refused", kv_str("reason", error.message),
                      kv_str("then", "the last good one stays"));
        log_event(LOG_INFO, "config_reloaded",
                  kv_str("mode", mode_name((enum mode)app->config->mode)));
    }
    config_free(config);
    reload_policies(app);
    notify_ready();
}

static void stop_loop(void *context)
{
    const struct app *app = context;
    loop_stop(app->loop);
}

static void stop_embedded(void *context)
{
    struct app *app = context;
    if (app->embedded == NULL)
        loop_stop(app->loop);
    else
        embedded_stop(app->embedded, STOP_S / 2 * NS_PER_S, stop_loop, app);
}

/* First signal: write what is queued, give the lease back, stop the database, end. Second: end now.
 */
static void on_terminate(void *context, int signal_number)
{
    struct app *app = context;
    if (app->is_stopping) {
        loop_stop(app->loop);
        return;
    }
    app->is_stopping = true;
    log_event(LOG_INFO, "stopping", kv_int("signal", signal_number));
    notify_stopping();
    health_stopping(app->health);
    http_server_free(TAKE(app->api_server));
    loop_timer_stop(app->tick_timer);
    loop_timer_set(app->stop_timer, STOP_S * NS_PER_S);
    if (app->store != NULL)
        store_stop(app->store, STOP_S / 2 * NS_PER_S, stop_embedded, app);
    else
        stop_embedded(app);
}

/* ---- start ---- */

static enum status make_folder(const char *path, struct error *reterr)
{
    if (mkdir(path, 0750) == 0 || errno == EEXIST)
        return OK;
    return error_set(reterr, ERR_IO,
                     "cannot make '%s': %s; name another with --data-dir or --set run_dir=", path,
                     strerror(errno));
}

/* Whether the act half runs: what describe may mend, it mends only then. */
static bool may_act(void *context)
{
    const struct app *app = context;
    return app->pipeline != NULL && app->config->mode != MODE_OBSERVE &&
           remediation_status(pipeline_core(app->pipeline)).blocked == NULL;
}

static enum status start_kubernetes(struct app *app, struct error *reterr)
{
    const struct config *config = app->config;
    struct kubernetes_params params = {.kubeconfig = config->kubeconfig,
                                       .context = config->kube_context,
                                       .rack_label = config->rack_label,
                                       .inventory = app->inventory,
                                       .write_topology_labels = config->write_topology_labels,
                                       .reads_only = config->mode == MODE_OBSERVE,
                                       .may_act = may_act,
                                       .may_act_context = app,
                                       .rail = app_topology_rail,
                                       .rail_context = app,
                                       .limits = kube_limits_default()};
    params.limits.calls_per_s = config->kube_calls_per_s;
    params.limits.burst = 2 * config->kube_calls_per_s;
    TRY(kubernetes_new(app->loop, app->client, &params, &app->kubernetes, reterr));
    app->actuator = app->kubernetes;
    return OK;
}

static void start_slurm(struct app *app)
{
    const struct config *config = app->config;
    AUTO_TEXT scontrol = {0};
    AUTO_TEXT scancel = {0};
    if (config->slurm_tools[0] != '\0') {
        text_addf(&scontrol, "%s/scontrol", config->slurm_tools);
        text_addf(&scancel, "%s/scancel", config->slurm_tools);
    }
    struct slurm_params params = {.scontrol = scontrol.bytes,
                                  .scancel = scancel.bytes,
                                  .conf = config->slurm_conf,
                                  .cluster = config->slurm_cluster,
                                  .user = config->slurm_user,
                                  .token_file = config->slurm_token_file,
                                  .rest_url = config->actuator_url,
                                  .spare_feature = config->slurm_spare_feature,
                                  .spare_reservation = config->slurm_spare_reservation,
                                  .requeue_always = config->slurm_requeue_always,
                                  .may_act = may_act,
                                  .may_act_context = app};
    app->actuator = slurm_new(app->loop, app->client, &params);
}

static struct actuator *start_webhook(const struct app *app)
{
    return webhook_new(app->loop, app->client,
                       &(struct webhook_options){.url = app->config->webhook_url,
                                                 .secret_file = app->config->webhook_secret,
                                                 .ca_file = app->config->webhook_ca});
}

static enum status start_actuator(struct app *app, struct error *reterr)
{
    app->dry_run = dry_run_actuator();
    if (strcmp(app->config->actuator_kind, "rehearsal") == 0)
        app->actuator = rehearsal_new(app->loop, app->client, app->config->actuator_url);
    else if (strcmp(app->config->actuator_kind, "kubernetes") == 0)
        TRY(start_kubernetes(app, reterr));
    else if (strcmp(app->config->actuator_kind, "slurm") == 0)
        start_slurm(app);
    else if (strcmp(app->config->actuator_kind, "webhook") == 0)
        app->actuator = start_webhook(app);
    else
        app->actuator = &app->dry_run;
    bool is_pretended = strcmp(app->actuator->name, "rehearsal") == 0 ||
                        !app->actuator->changes_world;
    if (app->options->time_file != NULL && !is_pretended)
        return error_set(reterr, ERR_REFUSED,
                         "--time-file is for rehearsals: actuator '%s' changes a real cluster",
                         app->actuator->name);
    bool has_webhook = app->config->webhook_url[0] != '\0';
    if (has_webhook && app->actuator->changes_world && strcmp(app->actuator->name, "webhook") != 0)
        app->actuator = with_hand_over_new(app->actuator, start_webhook(app));
    return OK;
}

static void start_pipeline(struct app *app)
{
    struct pipeline_params params = {.limits = {.memory_bytes = app->config->memory_bytes,
                                                .series_bytes_per_job = app->config->series_bytes,
                                                .jobs = (int32_t)app->config->jobs,
                                                .ranks = (int32_t)app->config->ranks},
                                     .detection = engine_params_default(),
                                     .describe_every_ns = app->config->describe_every_ns,
                                     .instance = clock_read().wall_ns};
    params.detection.enabled = app->config->detection_enabled;
    params.detection.false_evictions_per_10k_gpu_months = app->config->false_evictions;
    params.detection.slow_min_ratio = app->config->min_slowdown;
    params.detection.event_hold_ns = app->config->event_hold_ns;
    struct pipeline_ports ports = app_ports(app);
    app->pipeline = pipeline_new(&params, &ports, app_core_new(app));
    jobs_use_inventory(pipeline_jobs(app->pipeline), app->inventory);
}

static void on_embedded(void *context, bool ready, const char *reason)
{
    struct app *app = context;
    log_event(ready ? LOG_INFO : LOG_WARN, ready ? "database_ready" : "database_not_ready",
              kv_str("reason", reason != NULL ? reason : ""));
    text_copy(app->database_reason, sizeof app->database_reason,
              ready || reason == NULL ? "" : reason);
    if (ready && app->store != NULL)
        store_try_now(app->store);
}

static enum status start_database(struct app *app, struct error *reterr)
{
    if (app->config->database[0] != '\0')
        return app_store_open(app, app->config->database, false, reterr);
    struct embedded_params params = {.data_dir = app->config->data_dir, .is_durable = true};
    TRY(embedded_new(app->loop, &params, on_embedded, app, &app->embedded, reterr));
    return app_store_open(app, embedded_conninfo(app->embedded), true, reterr);
}

static enum status start_recorder(struct app *app, struct error *reterr)
{
    AUTO_TEXT dir = {0};
    if (!app->config->recorder_enabled)
        return OK;
    recorder_dir(app, &dir);
    return recorder_open(dir.bytes, app->config->recorder_bytes, &app->recorder, reterr);
}

static void warm_engines(struct app *app)
{
    AUTO_TEXT dir = {0};
    if (app->recorder == NULL || app->config->recorder_warm_ns == 0)
        return;
    int64_t started_ns = clock_read().monotonic_ns;
    recorder_dir(app, &dir);
    int64_t now_ns = clock_now_ns();
    struct warmed warmed = warm_up(dir.bytes, app->pipeline, now_ns - app->config->recorder_warm_ns,
                                   now_ns);
    log_event(LOG_INFO, "engines_warmed", kv_int("jobs", warmed.jobs),
              kv_int("lines", warmed.lines),
              kv_int("took_ms", (clock_read().monotonic_ns - started_ns) / NS_PER_MS));
}

static enum status listen_api(struct app *app, struct error *reterr)
{
    const struct config *config = app->config;
    struct http_limits limits = http_limits_default();
    limits.body_bytes = (size_t)config->body_bytes;
    limits.inflated_bytes = (size_t)config->inflated_bytes;
    limits.connections = (int)config->connections;
    struct http_tls tls = {
        .certificate_file = config->tls_certificate,
        .key_file = config->tls_key,
        .client_ca_file = config->tls_client_ca[0] != '\0' ? config->tls_client_ca : NULL};
    struct api_backend backend = app_backend(app);
    app->api = api_new(&backend, app->auth);
    app->api_server = http_server_new(app->loop, &limits, api_route, app->api);
    if (config->listen_api[0] != '\0')
        TRY(http_server_listen(app->api_server, config->listen_api,
                               config->tls_certificate[0] != '\0' ? &tls : NULL, reterr));
    AUTO_TEXT socket = {0};
    if (config->listen_socket[0] != '\0')
        text_addf(&socket, "unix:%s", config->listen_socket);
    else
        text_addf(&socket, "unix:%s/broomd.sock", config->run_dir);
    return http_server_listen(app->api_server, socket.bytes, NULL, reterr);
}

static enum status listen_health(struct app *app, struct error *reterr)
{
    struct http_limits limits = http_limits_default();
    if (app->config->listen_health[0] == '\0')
        return OK;
    app->health_server = http_server_new(app->loop, &limits, health_route, app->health);
    return http_server_listen(app->health_server, app->config->listen_health, NULL, reterr);
}

static void start_signals(struct app *app)
{
    app->signals[0] = loop_signal_new(app->loop, SIGTERM, on_terminate, app);
    app->signals[1] = loop_signal_new(app->loop, SIGINT, on_terminate, app);
    app->signals[2] = loop_signal_new(app->loop, SIGHUP, on_hangup, app);
}

static enum status start(struct app *app, struct error *reterr)
{
    TRY(make_folder(app->config->data_dir, reterr));
    TRY(make_folder(app->config->run_dir, reterr));
    signal(SIGPIPE, SIG_IGN);
    notify_init();
    app->loop = loop_new();
    start_signals(app);
    app->client = http_client_new(app->loop);
    app->metrics = metrics_new();
    app->health = health_new(app->metrics, app_refresh_health, app);
    AUTO_TEXT findings = {0};
    enum status status = auth_new(app->config, &findings, &app->auth, reterr);
    if (status != OK) {
        fputs(findings.length > 0 ? findings.bytes : "", stderr);
        return status;
    }
    TRY(app_topology_read(app, reterr));
    TRY(start_actuator(app, reterr));
    start_pipeline(app);
    app->tick_timer = loop_timer_new(app->loop, on_tick, app);
    app->stop_timer = loop_timer_new(app->loop, stop_loop, app);
    TRY(listen_health(app, reterr)); /* first: whoever waits for us may ask why */
    TRY(start_recorder(app, reterr));
    warm_engines(app); /* before the first sample comes */
    TRY(listen_api(app, reterr));
    return start_database(app, reterr);
}

static void stop(struct app *app)
{
    http_server_free(app->api_server);
    http_server_free(app->health_server);
    if (app->actuator != NULL) /* it drops its calls under way itself, or nobody answers them */
        app->actuator->free(app->actuator->self);
    http_client_free(app->client);
    store_free(app->store);
    app_drop_queries(app);
    app_drop_submits(app);
    embedded_free(app->embedded);
    pipeline_free(app->pipeline); /* tells whoever waits for a record, so before the API */
    api_free(app->api);
    auth_free(app->auth);
    recorder_free(app->recorder);
    health_free(app->health);
    metrics_free(app->metrics);
    loop_timer_free(app->tick_timer);
    loop_timer_free(app->stop_timer);
    for (size_t i = 0; i < ARRAY_LEN(app->signals); i++)
        loop_signal_free(app->signals[i]);
    loop_free(app->loop);
    inventory_free(app->inventory);
    rails_free(app->rails);
    text_done(&app->policy_names);
    config_free(app->config);
}

static int run(struct app *app)
{
    struct error error = {0};
    if (start(app, &error) != OK) {
        log_event(LOG_ERROR, "not_started", kv_str("reason", error.message));
        return 1;
    }
    app->started_ns = clock_now_ns();
    log_event(LOG_INFO, "started", kv_str("version", BROOM_VERSION),
              kv_str("mode", mode_name((enum mode)app->config->mode)),
              kv_str("actuator", app->actuator->name),
              kv_int("port", http_server_port(app->api_server)));
    loop_timer_set(app->tick_timer, 0);
    loop_run(app->loop);
    log_event(LOG_INFO, "stopped", kv_int("code", app->exit_code));
    return app->exit_code;
}

int app_run(const struct app_options *options)
{
    struct app app = {.options = options};
    AUTO_TEXT findings = {0};
    struct error error = {0};
    enum status status = config_load(options->config_path, options->config_is_named,
                                     options->overrides, options->override_count, &app.config,
                                     &findings, &error);
    if (status != OK) {
        fputs(findings.length > 0 ? findings.bytes : "", stderr);
        fprintf(stderr, "broomd: %s\n", error.message);
        return status == ERR_INVALID ? 3 : 1;
    }
    log_init((enum log_level)app.config->log_level);
    if (options->time_file != NULL && clock_join(options->time_file, &error) != OK) {
        fprintf(stderr, "broomd: --time-file: %s\n", error.message);
        config_free(app.config);
        return 1;
    }
    int code = run(&app);
    stop(&app);
    return code;
}
