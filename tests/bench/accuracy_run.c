/* Feeds the same samples to all, and says what of the engine's verdicts is right. */
#include "accuracy_run.h"

#include "controller/base/mem.h"
#include "detectors/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const int64_t AFTER_STOP_NS = INT64_C(330000000000);
static const double REQUIRED_GAIN = 0.015;

double process_cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct batch {
    struct sample *samples;
    size_t count, capacity;
};

static void collect(void *context, const struct sample *sample)
{
    struct batch *batch = context;

    batch->samples = array_grow(batch->samples, batch->count, &batch->capacity,
                                sizeof *batch->samples);
    batch->samples[batch->count++] = *sample;
}

static void drop(void *context, const struct sample *sample)
{
    (void)context;
    (void)sample;
}

static struct model *start_model(const struct scenario *scenario, bool with_faults)
{
    struct model *model = model_new(&scenario->config);

    for (int i = 0; with_faults && i < scenario->fault_count; i++)
        model_add_fault(model, &scenario->faults[i]);
    model_start(model, scenario->config.start_ns, 0);
    return model;
}

/* Mean step time from the onset on. */
struct pace {
    int64_t from, last;
    double sum;
    int count;
};

static struct pace pace_from(int64_t onset_step)
{
    return (struct pace){.from = onset_step < 6 ? 6 : onset_step, .last = -1};
}

static void pace_feed(struct pace *pace, const struct model_info *info)
{
    if (info->last_step == pace->last)
        return;
    pace->last = info->last_step;
    pace->sum += pace->last >= pace->from ? info->last_step_ms : 0;
    pace->count += pace->last >= pace->from;
}

static double healthy_step_ms(const struct scenario *scenario)
{
    struct model *model = start_model(scenario, false);
    struct pace pace = pace_from(scenario->truths[0].onset_step);

    while (pace.last < scenario->steps - 1) {
        model_step(model, drop, NULL);
        struct model_info info = model_info(model);
        pace_feed(&pace, &info);
    }
    model_free(model);
    return pace.sum / pace.count;
}

static void find_gains(struct scenario *scenario, const struct pace *pace)
{
    bool is_number = scenario->truth_count > 0 &&
                     scenario->truths[0].kinds == 1u << VERDICT_NUMERIC;
    double gain = 1;

    if (scenario->truth_count > 0 && !scenario->stops && !is_number)
        gain = 1 - healthy_step_ms(scenario) * pace->count / pace->sum;
    for (int i = 0; i < scenario->truth_count; i++) {
        scenario->truths[i].gain = gain;
        scenario->truths[i].required = gain >= REQUIRED_GAIN;
    }
}

static bool is_guilty_node(const struct scenario *scenario, const struct job *job, const char *node)
{
    int32_t tray = job_find_tray(job, node);

    for (int i = 0; tray != JOB_NONE && i < scenario->truth_count; i++)
        if (scenario->truths[i].tray == tray || (scenario->truths[i].rack != JOB_NONE &&
                                                 job->trays[tray].rack == scenario->truths[i].rack))
            return true;
    return false;
}

/* Index of the accepted name, or -1. */
static int accepted_as(const struct truth *truth, const struct verdict *verdict)
{
    for (int i = 0; i < truth->accepted_count; i++)
        if (truth->accepted[i].scope == verdict->scope &&
            strcmp(truth->accepted[i].id, verdict->id) == 0)
            return i;
    return -1;
}

static void note_hit(struct hit *hit, const struct truth *truth, const struct verdict *verdict,
                     int name, int64_t onset_ns)
{
    if (hit->found && !(hit->info && verdict->kind != VERDICT_INFO))
        return;
    hit->found = true;
    hit->info = verdict->kind == VERDICT_INFO;
    hit->exact = name == 0;
    hit->steps = verdict->step > truth->onset_step ? verdict->step - truth->onset_step : 0;
    hit->seconds = (double)(verdict->time_ns - onset_ns) / 1e9;
    hit->cause = verdict->cause;
    hit->cause_right = (truth->causes >> verdict->cause) & 1u;
}

static bool take_hit(const struct scenario *scenario, struct outcome *outcome,
                     const struct verdict *verdict, int64_t onset_ns)
{
    for (int i = 0; i < scenario->truth_count; i++) {
        const struct truth *truth = &scenario->truths[i];
        int name = accepted_as(truth, verdict);
        bool says = (truth->kinds >> verdict->kind) & 1u;
        bool info = verdict->kind == VERDICT_INFO;
        if (name < 0 || (!says && !info) || onset_ns == 0 || verdict->time_ns < onset_ns)
            continue;
        note_hit(&outcome->hits[i], truth, verdict, name, onset_ns);
        return true;
    }
    return false;
}

static void judge(const struct scenario *scenario, const struct job *job, struct outcome *outcome,
                  const struct verdict *verdict, int64_t onset_ns)
{
    bool inside = verdict->node_count > 0 && onset_ns != 0 && verdict->time_ns >= onset_ns;

    if (verdict->kind == VERDICT_CLEAR)
        return;
    for (size_t i = 0; i < verdict->node_count; i++) {
        bool guilty = is_guilty_node(scenario, job, verdict->nodes[i]);
        outcome->false_evictions += verdict->evict && !guilty;
        inside = inside && guilty;
    }
    if (take_hit(scenario, outcome, verdict, onset_ns) || verdict->kind == VERDICT_INFO)
        return;
    if (outcome->first_false[0] == '\0')
        (void)snprintf(outcome->first_false, sizeof outcome->first_false, "%s %s %.40s at %lld%s",
                       verdict_kind_name(verdict->kind), scope_name(verdict->scope), verdict->id,
                       (long long)verdict->step, verdict->evict ? ", evict" : "");
    if (inside)
        outcome->inside_claims++;
    else
        outcome->false_claims++;
}

static void show_verdict(const struct verdict *verdict)
{
    (void)printf("  step %lld: %s %s %s since %lld cause %s slowdown %.3f gain %.3f%s\n",
                 (long long)verdict->step, verdict_kind_name(verdict->kind),
                 scope_name(verdict->scope), verdict->id, (long long)verdict->since_step,
                 cause_name(verdict->cause), verdict->slowdown, verdict->gain,
                 verdict->evict ? " evict" : "");
}

static void inject_xid(const struct scenario *scenario, const struct model *model,
                       struct engine *engine, int64_t at_ns)
{
    struct sample sample = {.measurement = MEASUREMENT_EVENT, .rank = RANK_NONE, .time_ns = at_ns};

    sample.kind = view_of("xid");
    sample.host = view_of(model_tray_name(model, scenario->xid_tray));
    sample.gpu = view_of("1");
    sample.present = UINT64_C(1) << FIELD_CODE;
    sample.values[FIELD_CODE] = scenario->xid;
    engine_feed(engine, &sample);
}

static void feed_engine(struct engine *engine, const struct batch *batch, struct engine_cost *cost)
{
    double start = process_cpu_seconds();
    double spent;

    for (size_t i = 0; i < batch->count; i++)
        engine_feed(engine, &batch->samples[i]);
    spent = process_cpu_seconds() - start;
    cost->cpu_s += spent;
    cost->worst_step_s = fmax(cost->worst_step_s, spent);
}

static int64_t onset_step_of(const struct scenario *scenario)
{
    return scenario->truth_count > 0 ? scenario->truths[0].onset_step : scenario->steps / 2;
}

void run_scenario(struct scenario *scenario, bool with_baselines, bool show,
                  struct run_result *result, struct engine_cost *cost)
{
    struct model *model = start_model(scenario, true);
    struct job *job = model_job(model);
    struct engine_params params = engine_params_default();
    struct engine *engine = engine_new(job, &params);
    struct batch batch = {0};
    int64_t onset_ns = 0;
    int64_t last = -1;

    *result = (struct run_result){0};
    scenario_name(scenario, model);
    struct pace pace = pace_from(onset_step_of(scenario));
    struct baselines *baselines = with_baselines ? baselines_new(scenario, job) : NULL;
    for (;;) {
        struct verdict verdict;
        batch.count = 0;
        model_step(model, collect, &batch);
        struct model_info info = model_info(model);
        if (onset_ns == 0 && info.last_step + 1 >= onset_step_of(scenario) &&
            info.phase >= MODEL_STEPPING) {
            onset_ns = info.now_ns;
            if (scenario->xid != 0)
                inject_xid(scenario, model, engine, info.now_ns + 1);
        }
        feed_engine(engine, &batch, cost);
        if (scenario->stops) /* as the daemon does: when everybody is silent, nobody's samples tell
                                the time */
            engine_advance(engine, info.now_ns);
        while (engine_next(engine, &verdict)) {
            if (show)
                show_verdict(&verdict);
            judge(scenario, job, &result->engine, &verdict, scenario->negative ? 0 : onset_ns);
            verdict_done(&verdict);
        }
        for (size_t i = 0; with_baselines && i < batch.count; i++)
            baselines_feed(baselines, &batch.samples[i]);
        if (with_baselines)
            baselines_moment(baselines, onset_ns);
        pace_feed(&pace, &info);
        cost->steps += info.last_step > last;
        cost->rank_steps += info.last_step > last ? job->world_size : 0;
        last = info.last_step;
        if (last + 1 >= scenario->steps ||
            (onset_ns != 0 && scenario->stops && info.now_ns > onset_ns + AFTER_STOP_NS))
            break;
    }
    find_gains(scenario, &pace);
    for (int i = 0; i < scenario->truth_count;
         i++) /* an info is right about what is not worth a verdict */
        if (result->engine.hits[i].info && scenario->truths[i].required && !scenario->info_counts)
            result->engine.hits[i] = (struct hit){0};
    for (int v = 0; with_baselines && v < VARIANTS; v++)
        result->baselines[v] = *baselines_outcome(baselines, v);
    if (with_baselines)
        baselines_free(baselines);
    xfree(batch.samples);
    engine_free(engine);
    job_free(job);
    model_free(model);
}
