/* The pass: observe, then act. */
#include "controller/pipeline.h"

#include "controller/actions.h"
#include "controller/capture.h"
#include "controller/fleet_memory.h"
#include "controller/outbox.h"
#include "controller/topology/job_file.h"

#include <assert.h>
#include <string.h>

static const int64_t NS_PER_S = 1000000000;

enum {
    LAYOUT_EVERY_S = 5,
    TELEMETRY_WINDOW_S = 60,
    SOURCE_NAME_BYTES = 64,
    FIRST_WORLD_LIMIT_S = 30,
    FIRST_WORLD_EVERY_S = 1
};

struct pipeline {
    struct pipeline_params params;
    struct pipeline_ports ports;
    struct jobs *jobs;
    struct remediation *core;
    struct outbox *outbox;
    struct actions *actions;
    struct captures *captures;
    char *pause_actor, *pause_text; /* of a pause that is not known to be in the store; NULL */
    struct text spoolable;          /* event-like records of this pass */
    struct world *world;
    bool is_describing;
    int64_t described_ns;
    int64_t began_ns;    /* the first tick */
    bool holds_verdicts; /* accusations wait for the first world */
    int64_t layouts_ns;
    int64_t layouts;
    bool is_warming;         /* fed from the recording of the time before a restart */
    int64_t window_start_ns; /* of the telemetry check */
    int64_t window_taken, window_refused;
    struct remediation_guards guards;
    int64_t now_ns;     /* of the input being worked on: answers come inside calls too */
    int64_t ticked_ns;  /* recording time of the last tick */
    int32_t jump_lines; /* lines in a row from far ahead */
    char event_source[SOURCE_NAME_BYTES]; /* who sent the newest hardware event: the accuser of what
                                             it proves, also when the verdict is given a little
                                             later */
    int64_t record_number; /* makes keys of event-like records unique within one moment */
    pipeline_verdict_fn *on_verdict;
    void *on_verdict_context;
    struct pipeline_counts counts;
};

static void drain(struct pipeline *pipeline);
static void tell_held_verdicts(struct pipeline *pipeline);

/* ---- act: what the core asked for, once it is durable ---- */

static void on_outcome(void *context, const char *operation_id, enum effect_kind asked,
                       const struct action_result *result)
{
    struct pipeline *pipeline = context;
    bool is_taken = true;
    if (asked == EFFECT_POLL)
        is_taken = remediation_polled(pipeline->core, operation_id, result, pipeline->now_ns);
    else
        remediation_outcome(pipeline->core, operation_id, result, pipeline->now_ns);
    if (is_taken && result->poll == POLL_DONE)
        pipeline->counts.outcomes[result->outcome]++;
    drain(pipeline);
}

static void on_action(void *context, const struct effect *effect)
{
    struct pipeline *pipeline = context;
    bool may_start = remediation_may_start(pipeline->core, effect->action.operation_id);
    if (effect->kind == EFFECT_START && may_start)
        pipeline->counts.actions_started[effect->action.verb]++;
    actions_run(pipeline->actions, effect, may_start, pipeline->now_ns);
}

/* What the world shows of a job may be an accusation of its own. */
static void tell_jobs(struct pipeline *pipeline)
{
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next)
        remediation_job(pipeline->core, engine_job(live->engine), pipeline->now_ns);
}

static void on_world(void *context, const struct world *world)
{
    struct pipeline *pipeline = context;
    pipeline->is_describing = false;
    if (world->known) {
        world_free(pipeline->world);
        pipeline->world = world_copy(world);
        jobs_learn_world(pipeline->jobs, world);
        tell_jobs(pipeline);
    }
    remediation_world(pipeline->core, world, pipeline->now_ns);
    tell_held_verdicts(pipeline);
    drain(pipeline);
}

static int32_t most_gpus_of_tray(const struct job *job)
{
    int32_t most = 0;
    for (int32_t r = 0; r < job->world_size; r++)
        most = job->ranks[r].gpu >= most ? job->ranks[r].gpu + 1 : most;
    return most;
}

/* The live jobs, and those of open incidents that nobody sends for since broomd was started. */
static size_t jobs_to_ask(const struct pipeline *pipeline, struct job_question **ret_jobs)
{
    struct job_question *jobs = NULL;
    size_t count = 0, capacity = 0;
    for (const struct live_job *live = jobs_first(pipeline->jobs); live != NULL;
         live = live->next) {
        const struct job *job = engine_job(live->engine);
        jobs = array_grow(jobs, count, &capacity, sizeof *jobs);
        jobs[count++] = (struct job_question){job->name, job->workload_json, job->world_size,
                                              most_gpus_of_tray(job)};
    }
    for (size_t i = 0; i < remediation_incident_count(pipeline->core); i++) {
        const struct incident *incident = remediation_incident_at(pipeline->core, i);
        if (incident_has_ended(incident) || incident->workload_json == NULL ||
            jobs_find(pipeline->jobs, view_of(incident->job)) != NULL)
            continue;
        jobs = array_grow(jobs, count, &capacity, sizeof *jobs);
        jobs[count++] = (struct job_question){incident->job, incident->workload_json,
                                              incident->world_size, incident->gpus_per_node};
    }
    *ret_jobs = jobs;
    return count;
}

static void describe(struct pipeline *pipeline)
{
    struct actuator *actuator = pipeline->ports.actuator;
    struct job_question *jobs;
    if (actuator == NULL || pipeline->is_describing)
        return;
    pipeline->is_describing = true;
    pipeline->described_ns = pipeline->now_ns;
    fleet_memory_tell(pipeline->core, pipeline->jobs, pipeline->now_ns);
    size_t count = jobs_to_ask(pipeline, &jobs);
    struct world_question question = {jobs, count};
    actuator->describe(actuator->self, &question, on_world, pipeline);
    xfree(jobs);
}

static void add_spoolable(void *context, const char *record)
{
    struct pipeline *pipeline = context;
    text_add(&pipeline->spoolable, record);
    text_add(&pipeline->spoolable, "\n");
    pipeline->counts.records++;
}

static void on_spooled(void *context, enum status status, const char *reason)
{
    struct pipeline *pipeline = context;
    (void)reason; /* the store counts and logs what its spool had no room for */
    pipeline->counts.batches_failed += status != OK ? 1 : 0;
}

static void flush_spoolable(struct pipeline *pipeline)
{
    if (pipeline->spoolable.length == 0)
        return;
    struct text records = pipeline->spoolable;
    pipeline->spoolable = (struct text){0};
    pipeline->counts.batches++;
    pipeline->ports.submit(pipeline->ports.self, (struct view){records.bytes, records.length}, true,
                           on_spooled, pipeline);
    text_done(&records);
}

/* Takes all effects of the core, in order, into the outbox, and submits what can go. */
static void drain(struct pipeline *pipeline)
{
    struct effect effect;
    bool wants_world = false;
    while (remediation_next_effect(pipeline->core, &effect)) {
        switch (effect.kind) {
        case EFFECT_RECORD:
            if (pipeline->ports.on_record != NULL)
                pipeline->ports.on_record(pipeline->ports.self, effect.record);
            if (effect.spoolable)
                add_spoolable(pipeline, effect.record);
            else
                outbox_add_record(pipeline->outbox, effect.record);
            effect_done(&effect);
            break;
        case EFFECT_START:
        case EFFECT_POLL:
            outbox_add_action(pipeline->outbox, &effect);
            break;
        case EFFECT_DESCRIBE:
            wants_world = true;
            effect_done(&effect);
            break;
        }
    }
    flush_spoolable(pipeline);
    outbox_flush(pipeline->outbox);
    if (wants_world)
        describe(pipeline);
}

/* ---- observe: samples to verdicts to incidents ---- */

static void start_record(struct pipeline *pipeline, struct json_writer *writer, const char *type,
                         const char *owner, int64_t time_ns)
{
    AUTO_TEXT key = {0};
    text_addf(&key, "%s/%s/%lld/%lld", type, owner, (long long)pipeline->params.instance,
              (long long)pipeline->record_number++);
    json_open_object(writer);
    json_put_string(writer, "type", type);
    json_put_string(writer, "key", key.bytes);
    json_put_int(writer, "time_ns", time_ns);
}

/* Engines live in their senders' time; incidents, costs and deadlines in ours. 0 stays "unknown".
 */
static int64_t to_our_time(const struct live_job *live, int64_t sender_time_ns)
{
    return sender_time_ns == 0 ? 0 : sender_time_ns + live->sender_lag_ns;
}

static int64_t newest_number(const struct remediation *core)
{
    size_t count = remediation_incident_count(core);
    return count > 0 ? remediation_incident_at(core, count - 1)->number : 0;
}

/* The samples round each new incident are kept, whatever its plan says: a postmortem needs them
 * also where the policy only records. */
static void capture_new_incidents(struct pipeline *pipeline, int64_t known_number,
                                  const struct verdict *verdict)
{
    for (size_t i = remediation_incident_count(pipeline->core); i-- > 0;) {
        const struct incident *incident = remediation_incident_at(pipeline->core, i);
        if (incident->number <= known_number)
            return;
        captures_plan(pipeline->captures, incident->ref, incident->job,
                      verdict->time_ns - CAPTURE_BEFORE_NS, pipeline->now_ns + CAPTURE_AFTER_NS);
    }
}

static void fold(struct pipeline *pipeline, const struct live_job *live,
                 const struct verdict *verdict)
{
    int64_t known = newest_number(pipeline->core);
    struct verdict ours = *verdict; /* borrows its lists */
    ours.time_ns = to_our_time(live, verdict->time_ns);
    ours.since_ns = to_our_time(live, verdict->since_ns);
    bool is_hardware = verdict->kind == VERDICT_FAULT || verdict->kind == VERDICT_INFO;
    remediation_verdict(pipeline->core, engine_job(live->engine), &ours,
                        is_hardware ? pipeline->event_source : "detector", pipeline->now_ns);
    capture_new_incidents(pipeline, known, &ours);
}

/* A rack that fails is told tray by tray, and only the cluster says which trays share one: without
 * its first answer one fault would become an incident a tray. Not for ever: it may be away. */
static bool is_before_world(const struct pipeline *pipeline)
{
    const struct actuator *actuator = pipeline->ports.actuator;
    return pipeline->world == NULL && actuator != NULL && actuator->changes_world &&
           (pipeline->began_ns == 0 ||
            pipeline->now_ns - pipeline->began_ns < FIRST_WORLD_LIMIT_S * NS_PER_S);
}

/* What holds is remembered with its job, so that it can be told later; what ends is told at once.
 */
static void fold_or_hold(struct pipeline *pipeline, const struct live_job *live,
                         const struct verdict *verdict)
{
    bool is_kept = verdict->kind != VERDICT_CLEAR && verdict->kind != VERDICT_INFO;
    if (is_kept && is_before_world(pipeline))
        pipeline->holds_verdicts = true;
    else
        fold(pipeline, live, verdict);
}

static void tell_open_verdicts(struct pipeline *pipeline, const struct live_job *live)
{
    for (size_t i = 0; i < live->open_count; i++)
        fold_or_hold(pipeline, live, &live->open[i]);
}

static void tell_held_verdicts(struct pipeline *pipeline)
{
    if (!pipeline->holds_verdicts || is_before_world(pipeline))
        return;
    pipeline->holds_verdicts = false;
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next)
        tell_open_verdicts(pipeline, live);
}

static void tell_verdict(struct pipeline *pipeline, struct live_job *live,
                         const struct verdict *verdict)
{
    pipeline->counts.verdicts[verdict->kind]++;
    if (pipeline->on_verdict != NULL)
        pipeline->on_verdict(pipeline->on_verdict_context, live, verdict);
    fold_or_hold(pipeline, live, verdict);
}

static void take_verdicts(struct pipeline *pipeline, struct live_job *live)
{
    struct verdict verdict;
    while (engine_next(live->engine, &verdict)) {
        jobs_note_verdict(live, &verdict);
        if (!pipeline->is_warming)
            tell_verdict(pipeline, live, &verdict);
        verdict_done(&verdict);
    }
}

static void tell_progress(struct pipeline *pipeline, struct live_job *live)
{
    struct engine_progress progress = engine_progress(live->engine);
    progress.step_time_ns = to_our_time(live, progress.step_time_ns);
    progress.attempt_time_ns = to_our_time(live, progress.attempt_time_ns);
    remediation_progress(pipeline->core, live->name, &progress, pipeline->now_ns);
}

static void observe_touched(struct pipeline *pipeline)
{
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next) {
        if (!live->touched)
            continue;
        live->touched = false;
        take_verdicts(pipeline, live);
        tell_progress(pipeline, live);
    }
}

static void put_view(struct json_writer *writer, const char *key, struct view value)
{
    if (value.length == 0)
        return;
    json_add_key(writer, key);
    json_add_view(writer, value);
}

static void put_field(struct json_writer *writer, const struct sample *sample, enum field field)
{
    if (sample_has(sample, field))
        json_put_number(writer, field_name(field), sample->values[field]);
}

static void record_event(struct pipeline *pipeline, const struct sample *sample, const char *source)
{
    AUTO_TEXT record = {0};
    struct json_writer writer = json_writer(&record);
    start_record(pipeline, &writer, "event", source, sample->time_ns);
    put_view(&writer, "host", sample->host);
    put_view(&writer, "gpu", sample->gpu);
    put_view(&writer, "rack", sample->rack);
    put_view(&writer, "rail", sample->rail);
    put_view(&writer, "kind", sample->kind);
    put_field(&writer, sample, FIELD_CODE);
    put_field(&writer, sample, FIELD_SUBCODE);
    put_field(&writer, sample, FIELD_TRAY);
    put_view(&writer, "pci", sample->pci);
    put_view(&writer, "uuid", sample->uuid);
    put_view(&writer, "message", sample->message);
    json_put_string(&writer, "source", source);
    json_close(&writer);
    add_spoolable(pipeline, record.bytes);
}

/* ---- writes ---- */

struct write_pass {
    struct pipeline *pipeline;
    const struct pipeline_write *write;
    struct pipeline_written written;
    struct lineproto *parser;
    char source[SOURCE_NAME_BYTES];
};

enum { RECORDING_TICK_S = 1, RECORDING_JUMP_S = 600, RECORDING_JUMP_LINES = 50 };

/* The recording's clock: the newest time seen, but a line far ahead only counts when many agree. */
static void follow_recording(struct write_pass *pass, int64_t time_ns)
{
    struct pipeline *pipeline = pass->pipeline;
    if (time_ns <= pipeline->now_ns)
        return;
    bool is_jump = pipeline->now_ns > 0 && time_ns - pipeline->now_ns > RECORDING_JUMP_S * NS_PER_S;
    pipeline->jump_lines = is_jump ? pipeline->jump_lines + 1 : 0;
    if (is_jump && pipeline->jump_lines < RECORDING_JUMP_LINES)
        return;
    pipeline->now_ns = time_ns;
    if (time_ns - pipeline->ticked_ns < RECORDING_TICK_S * NS_PER_S)
        return;
    pipeline->ticked_ns = time_ns;
    observe_touched(pipeline);
    pipeline_tick(pipeline, time_ns);
}

static void refuse(struct write_pass *pass, const char *cause)
{
    pass->written.refused++;
    pass->written.no_room += cause == JOBS_NO_ROOM ? 1 : 0;
    if (pass->write->on_error != NULL)
        pass->write->on_error(pass->write->context, pass->parser->line, cause);
}

static void on_sample(void *context, const struct sample *sample)
{
    struct write_pass *pass = context;
    struct pipeline *pipeline = pass->pipeline;
    bool is_event = sample->measurement == MEASUREMENT_EVENT;
    if (pass->write->in_recording_time)
        follow_recording(pass, sample->time_ns);
    if (pass->write->only_job != NULL && !view_equals(sample->job, pass->write->only_job)) {
        refuse(pass, "this identity may only write lines of its own job");
        return;
    }
    const char *cause = jobs_take(pipeline->jobs, sample, pipeline->now_ns);
    if (cause != NULL) {
        refuse(pass, cause);
        return;
    }
    pass->written.accepted++;
    pipeline->counts.samples[sample->measurement]++;
    if (is_event) {
        record_event(pipeline, sample, pass->source);
        text_copy(pipeline->event_source, sizeof pipeline->event_source, pass->source);
        observe_touched(pipeline); /* before somebody else's event comes */
    }
}

static void on_bad_line(void *context, int64_t line, const char *cause)
{
    struct write_pass *pass = context;
    pass->written.bad_lines++;
    if (pass->write->on_error != NULL)
        pass->write->on_error(pass->write->context, line, cause);
}

static void judge_telemetry(struct pipeline *pipeline, int64_t taken, int64_t refused)
{
    if (pipeline->window_start_ns == 0)
        pipeline->window_start_ns = pipeline->now_ns; /* one bad first line says nothing yet */
    pipeline->window_taken += taken;
    pipeline->window_refused += refused;
    if (pipeline->now_ns - pipeline->window_start_ns < TELEMETRY_WINDOW_S * NS_PER_S)
        return;
    /* When most of what arrives is refused, what is left says nothing about the whole. */
    pipeline->guards.telemetry_ok = pipeline->window_refused <= pipeline->window_taken;
    pipeline->window_taken = pipeline->window_refused = 0;
    pipeline->window_start_ns = pipeline->now_ns;
    remediation_guards(pipeline->core, pipeline->guards, pipeline->now_ns);
}

struct pipeline_written pipeline_write(struct pipeline *pipeline,
                                       const struct pipeline_write *write, int64_t now_ns)
{
    struct lineproto parser = {.precision = write->precision,
                               .default_time_ns = write->default_time_ns,
                               .on_sample = on_sample,
                               .on_error = on_bad_line};
    struct write_pass pass = {.pipeline = pipeline, .write = write, .parser = &parser};
    pipeline->now_ns = now_ns;
    parser.context = &pass;
    text_copy(pass.source, sizeof pass.source, write->source[0] != '\0' ? write->source : "events");
    lineproto_parse(&parser, write->body);
    pass.written.lines = parser.counts.lines;
    pass.written.fields = parser.counts.fields;
    pipeline->counts.bad_lines += pass.written.bad_lines;
    pipeline->counts.refused_lines += pass.written.refused;
    pipeline->counts.fields += pass.written.fields;
    observe_touched(pipeline);
    judge_telemetry(pipeline, pass.written.accepted, pass.written.refused + pass.written.bad_lines);
    drain(pipeline);
    return pass.written;
}

static void warm_sample(void *context, const struct sample *sample)
{
    struct pipeline *pipeline = context;
    const struct live_job *live = sample->job.length > 0 ? jobs_find(pipeline->jobs, sample->job)
                                                         : NULL;
    if (live == NULL || sample->time_ns >= live->warm_from_ns)
        (void)jobs_take(pipeline->jobs, sample,
                        pipeline->now_ns); /* its sender was answered then */
}

static void forget_record(void *context, const char *record)
{
    (void)context;
    (void)record;
}

void pipeline_warm(struct pipeline *pipeline, struct view lines, int64_t arrival_ns)
{
    struct lineproto parser = {
        .precision = PRECISION_NS, .on_sample = warm_sample, .context = pipeline};
    pipeline->now_ns = arrival_ns;
    pipeline->is_warming = true;
    lineproto_parse(&parser, lines);
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next) {
        if (jobs_is_time_sure(live))
            engine_advance(live->engine, jobs_sender_time(live, arrival_ns));
        take_verdicts(pipeline, live);
        live->touched = false;
        (void)captures_emit_rollups(live, arrival_ns, forget_record, NULL); /* recorded then */
    }
    pipeline->is_warming = false;
}

void pipeline_warmed(struct pipeline *pipeline, int64_t now_ns)
{
    pipeline->now_ns = now_ns;
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next)
        if (live->last_sample_ns > 0)
            engine_resume(live->engine, jobs_sender_time(live, now_ns));
}

/* ---- jobs and people ---- */

enum status pipeline_put_job(struct pipeline *pipeline, const struct job *document, int64_t now_ns,
                             bool *ret_created, struct error *reterr)
{
    pipeline->now_ns = now_ns;
    TRY(jobs_put(pipeline->jobs, document, now_ns, ret_created, reterr));
    pipeline->layouts_ns = 0; /* its record is due at the next tick */
    return OK;
}

static void forget_pause(struct pipeline *pipeline)
{
    xfree(TAKE(pipeline->pause_actor));
    xfree(TAKE(pipeline->pause_text));
}

static void on_pause_recorded(void *context, enum status status, const char *reason)
{
    (void)reason;
    if (status == OK)
        forget_pause(context);
}

/* A core that is read again from the store must not have forgotten a pause that the store never
 * got. */
static void remember_pause(struct pipeline *pipeline, const struct remediation_command *command)
{
    forget_pause(pipeline);
    if (command->verb != COMMAND_PAUSE)
        return;
    pipeline->pause_actor = xstrdup(command->actor);
    pipeline->pause_text = xstrdup(command->text != NULL ? command->text : "");
    outbox_add_waiter(pipeline->outbox, on_pause_recorded, pipeline);
}

enum status pipeline_command(struct pipeline *pipeline, const struct remediation_command *command,
                             int64_t now_ns, pipeline_durable_fn *done, void *context,
                             struct error *reterr)
{
    pipeline->now_ns = now_ns;
    /* A pause takes effect at once, whatever the database does; everything else is nothing without
     * a record. */
    if (!pipeline->guards.store_up && command->verb != COMMAND_PAUSE)
        return error_set(reterr, ERR_UNREACHABLE,
                         "the database is away: nothing was done; try again");
    TRY(remediation_command(pipeline->core, command, now_ns, reterr));
    if (command->verb == COMMAND_PAUSE || command->verb == COMMAND_RESUME)
        remember_pause(pipeline, command);
    if (pipeline->guards.store_up)
        outbox_add_waiter(pipeline->outbox, done, context);
    drain(pipeline);
    if (!pipeline->guards.store_up)
        done(context, OK, "paused; recorded when the database is back");
    return OK;
}

/* ---- time ---- */

static void record_layout(struct pipeline *pipeline, struct live_job *live)
{
    AUTO_TEXT record = {0};
    struct json_writer writer = json_writer(&record);
    live->layout_changed = false;
    pipeline->layouts++;
    live->attempt = engine_progress(live->engine).attempt;
    start_record(pipeline, &writer, "job", live->name, pipeline->now_ns);
    json_put_string(&writer, "job", live->name);
    json_put_int(&writer, "attempt", live->attempt);
    json_add_key(&writer, "document");
    job_file_write(engine_job(live->engine), &writer);
    json_close(&writer);
    add_spoolable(pipeline, record.bytes);
}

static void record_layouts(struct pipeline *pipeline)
{
    if (pipeline->now_ns - pipeline->layouts_ns < LAYOUT_EVERY_S * NS_PER_S)
        return;
    pipeline->layouts_ns = pipeline->now_ns;
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next)
        if (live->layout_changed)
            record_layout(pipeline, live);
}

static void observe_time(struct pipeline *pipeline)
{
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next) {
        if (jobs_is_time_sure(live))
            engine_advance(live->engine, jobs_sender_time(live, pipeline->now_ns));
        take_verdicts(pipeline, live);
        tell_progress(pipeline, live);
        pipeline->counts.rollups += captures_emit_rollups(live, pipeline->now_ns, add_spoolable,
                                                          pipeline);
    }
}

void pipeline_tick(struct pipeline *pipeline, int64_t now_ns)
{
    pipeline->now_ns = now_ns;
    if (pipeline->began_ns == 0)
        pipeline->began_ns = now_ns;
    /* observe */
    observe_time(pipeline);
    tell_held_verdicts(pipeline);
    judge_telemetry(pipeline, 0, 0);
    record_layouts(pipeline);
    pipeline->counts.raw_windows += captures_emit_due(pipeline->captures, pipeline->jobs, now_ns,
                                                      add_spoolable, pipeline);
    jobs_expire(pipeline->jobs, now_ns, pipeline->params.idle_job_ns);
    /* An actuator that has just begun may not have read the cluster yet, and accusations wait. */
    if (now_ns - pipeline->described_ns >= pipeline->params.describe_every_ns ||
        (is_before_world(pipeline) &&
         now_ns - pipeline->described_ns >= FIRST_WORLD_EVERY_S * NS_PER_S))
        describe(pipeline);
    /* act: the core skips it by its guards and says why */
    remediation_tick(pipeline->core, now_ns);
    drain(pipeline);
}

void pipeline_guards(struct pipeline *pipeline, bool lease_held, bool clock_trusted, bool store_up,
                     int64_t now_ns)
{
    pipeline->now_ns = now_ns;
    pipeline->guards.lease_held = lease_held;
    pipeline->guards.clock_trusted = clock_trusted;
    pipeline->guards.store_up = store_up;
    remediation_guards(pipeline->core, pipeline->guards, now_ns);
    drain(pipeline);
}

void pipeline_describe_every(struct pipeline *pipeline, int64_t every_ns)
{
    pipeline->params.describe_every_ns = every_ns;
}

void pipeline_store_is_up(struct pipeline *pipeline)
{
    outbox_retry(pipeline->outbox);
}

/* ---- life ---- */

struct pipeline *pipeline_new(const struct pipeline_params *params,
                              const struct pipeline_ports *ports, struct remediation *take_core)
{
    struct pipeline *pipeline = xcalloc(1, sizeof *pipeline);
    pipeline->params = *params;
    if (pipeline->params.describe_every_ns == 0)
        pipeline->params.describe_every_ns = 15 * NS_PER_S;
    if (pipeline->params.idle_job_ns == 0)
        pipeline->params.idle_job_ns = 86400 * NS_PER_S;
    pipeline->ports = *ports;
    pipeline->core = take_core;
    pipeline->guards.telemetry_ok = true;
    text_copy(pipeline->event_source, sizeof pipeline->event_source, "events");
    pipeline->jobs = jobs_new(&params->limits, &params->detection);
    pipeline->captures = captures_new();
    pipeline->outbox = outbox_new(ports, on_action, pipeline);
    pipeline->actions = actions_new(ports, pipeline->captures, on_outcome, pipeline);
    return pipeline;
}

static void pause_again(struct pipeline *pipeline)
{
    if (pipeline->pause_actor == NULL || remediation_status(pipeline->core).paused)
        return;
    struct remediation_command pause = {
        .verb = COMMAND_PAUSE, .actor = pipeline->pause_actor, .text = pipeline->pause_text};
    ignore_status(remediation_command(pipeline->core, &pause, pipeline->now_ns,
                                      NULL)); /* a pause is never refused */
    outbox_add_waiter(pipeline->outbox, on_pause_recorded, pipeline);
}

void pipeline_restart(struct pipeline *pipeline, struct remediation *take_core,
                      struct remediation_guards guards, int64_t now_ns)
{
    guards.telemetry_ok = pipeline->guards.telemetry_ok;
    pipeline->now_ns = now_ns;
    pipeline->guards = guards;
    outbox_clear(pipeline->outbox);
    remediation_free(pipeline->core);
    pipeline->core = take_core;
    pause_again(pipeline);
    remediation_guards(take_core, guards, now_ns);
    for (struct live_job *live = jobs_first(pipeline->jobs); live != NULL; live = live->next) {
        tell_progress(pipeline, live);
        tell_open_verdicts(pipeline, live);
    }
    drain(pipeline);
}

void pipeline_free(struct pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    actions_free(pipeline->actions);
    outbox_free(pipeline->outbox);
    captures_free(pipeline->captures);
    remediation_free(pipeline->core);
    jobs_free(pipeline->jobs);
    world_free(pipeline->world);
    forget_pause(pipeline);
    text_done(&pipeline->spoolable);
    xfree(pipeline);
}

int64_t pipeline_layouts(const struct pipeline *pipeline)
{
    return pipeline->layouts;
}

struct jobs *pipeline_jobs(struct pipeline *pipeline)
{
    return pipeline->jobs;
}

struct remediation *pipeline_core(struct pipeline *pipeline)
{
    return pipeline->core;
}

const struct world *pipeline_world(const struct pipeline *pipeline)
{
    return pipeline->world;
}

void pipeline_on_verdict(struct pipeline *pipeline, pipeline_verdict_fn *fn, void *context)
{
    pipeline->on_verdict = fn;
    pipeline->on_verdict_context = context;
}

struct pipeline_counts pipeline_counts(const struct pipeline *pipeline)
{
    struct pipeline_counts counts = pipeline->counts;
    struct outbox_counts outbox = outbox_counts(pipeline->outbox);
    counts.records += outbox.records;
    counts.batches += outbox.batches;
    counts.batches_failed += outbox.failed;
    counts.telemetry_ok = pipeline->guards.telemetry_ok;
    return counts;
}

int64_t pipeline_now_ns(const struct pipeline *pipeline)
{
    return pipeline->now_ns;
}
