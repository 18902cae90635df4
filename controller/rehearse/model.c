/* The life of the simulated job: hardware, placement, and what happens next. */
#include "controller/rehearse/model.h"

#include "controller/rehearse/model_state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct model_config model_config_default(void)
{
    return (struct model_config){.job = "default/llm",
                                 .seed = 1,
                                 .start_ns = INT64_C(1780000000) * MODEL_SECOND,
                                 .racks = 2,
                                 .trays_used = 16,
                                 .trays_spare = 2,
                                 .gpus = 4,
                                 .tp = 4,
                                 .pp = 1,
                                 .ep = 1,
                                 .micro_batches = 8,
                                 .compute = COMPUTE_KERNEL,
                                 .send_allreduce = true,
                                 .send_sm = true,
                                 .send_loss = true,
                                 .beat_ns = 10 * MODEL_SECOND,
                                 .compute_ms = 1700,
                                 .transfer_ms = 220,
                                 .tp_ms = 60,
                                 .ep_ms = 80,
                                 .data_ms = 5,
                                 .last_stage_ratio = 1,
                                 .rank0_ratio = 1,
                                 .noise = 0.004,
                                 .noise_lag1 = 0.3,
                                 .transfer_noise = 0.01,
                                 .gpu_offset = 0.004,
                                 .tray_offset = 0.002,
                                 .rack_offset = 0.002,
                                 .gc_ms = 200,
                                 .init_ms = 20000,
                                 .checkpoint_ms = 12000,
                                 .eval_ms = 20000,
                                 .send_marks = true};
}

/* --- building
 * -------------------------------------------------------------------------------------- */

/* Names say nothing: site after site invents its own. */
static void name_things(struct model *model)
{
    const struct model_config *config = &model->config;
    int32_t in_rack = config->trays_used + config->trays_spare;
    for (int32_t i = 0; i < model->rack_count; i++) {
        struct hardware_rack *rack = &model->racks[i];
        snprintf(rack->name, sizeof rack->name, "rk-%04x%02x",
                 random_below(&model->random, 0x10000), (unsigned)i & 0xffu);
        snprintf(rack->domain, sizeof rack->domain, "%s.0", rack->name);
    }
    for (int32_t i = 0; i < model->tray_count; i++) {
        struct hardware_tray *tray = &model->trays[i];
        uint32_t word = random_below(&model->random, 0x1000);
        snprintf(tray->name, sizeof tray->name, "gb-%03x%05x", word, (unsigned)i & 0xfffffu);
        tray->rack = i / in_rack;
        tray->skew_ns = (int64_t)(config->dirt.skew_ms * random_normal(&model->random) * 1e6);
    }
}

static double bounded_normal(struct random *random)
{
    return fmax(-2.5, fmin(2.5, random_normal(random)));
}

static void draw_hardware(struct model *model)
{
    const struct model_config *config = &model->config;
    double rack = 0;
    double tray = 0;
    int32_t last_rack = -1;
    for (int32_t t = 0; t < model->tray_count; t++) {
        if (model->trays[t].rack != last_rack)
            rack = config->rack_offset * bounded_normal(&model->random);
        last_rack = model->trays[t].rack;
        tray = config->tray_offset * bounded_normal(&model->random);
        for (int32_t g = 0; g < config->gpus; g++) {
            int32_t slot = t * config->gpus + g;
            model->offset[slot] = 1 + rack + tray +
                                  config->gpu_offset * bounded_normal(&model->random);
            model->memory[slot] = 0.77 + 0.02 * (random_unit(&model->random) - 0.5);
            model->effects[slot] = (struct effect_on_gpu){1, 0, 1, 1, 0, 0, 1};
        }
    }
}

/* Ranks fill the used trays of the used racks in order. */
static void place_ranks(struct model *model)
{
    const struct model_config *config = &model->config;
    int32_t per_rack = config->trays_used * config->gpus;
    int32_t slots_per_rack = (config->trays_used + config->trays_spare) * config->gpus;
    for (int32_t r = 0; r < model->world; r++) {
        model->slot_of[r] = r / per_rack * slots_per_rack + r % per_rack;
        model->silent_ns[r] = 0;
    }
}

struct model *model_new(const struct model_config *config)
{
    struct model *model = xcalloc(1, sizeof *model);
    model->config = *config;
    model->job_name = xstrdup(config->job);
    model->config.job = model->job_name;
    random_seed(&model->random, config->seed);
    heavy_tail_init(&model->tail);
    model->world = config->racks * config->trays_used * config->gpus;
    assert(config->tp > 0 && config->pp > 0 && config->ep > 0 && config->micro_batches > 0);
    assert(model->world > 0 && model->world % (config->tp * config->pp) == 0);
    model->dp = model->world / (config->tp * config->pp);
    assert(model->dp % config->ep == 0);
    model->rack_count = config->racks + config->spare_racks;
    model->tray_count = model->rack_count * (config->trays_used + config->trays_spare);
    size_t slots = (size_t)model->tray_count * (size_t)config->gpus;
    size_t world = (size_t)model->world;
    model->racks = xcalloc((size_t)model->rack_count, sizeof *model->racks);
    model->trays = xcalloc((size_t)model->tray_count, sizeof *model->trays);
    model->offset = xcalloc(slots, sizeof *model->offset);
    model->memory = xcalloc(slots, sizeof *model->memory);
    model->effects = xcalloc(slots, sizeof *model->effects);
    model->slot_of = xcalloc(world, sizeof *model->slot_of);
    model->noise = xcalloc(world, sizeof *model->noise);
    model->expert_load = xcalloc((size_t)config->ep, sizeof *model->expert_load);
    model->burst = xcalloc((size_t)model->dp, sizeof *model->burst);
    model->burst_steps = xcalloc((size_t)model->dp, sizeof *model->burst_steps);
    model->work = xcalloc((size_t)model->dp, sizeof *model->work);
    model->group_ms = xcalloc((size_t)(model->dp * config->pp), sizeof *model->group_ms);
    model->silent_ns = xcalloc(world, sizeof *model->silent_ns);
    model->now = xcalloc(world, sizeof *model->now);
    model->job_compute = model->job_transfer = model->loss_factor = 1;
    name_things(model);
    draw_hardware(model);
    place_ranks(model);
    model->info = (struct model_info){
        .phase = MODEL_HALTED, .last_step = -1, .attempt = -1, .checkpoint_step = -1};
    model_halt(model, 0);
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    xfree(model->job_name);
    xfree(model->racks);
    xfree(model->trays);
    xfree(model->offset);
    xfree(model->memory);
    xfree(model->effects);
    xfree(model->slot_of);
    xfree(model->noise);
    xfree(model->expert_load);
    xfree(model->burst);
    xfree(model->burst_steps);
    xfree(model->work);
    xfree(model->group_ms);
    xfree(model->silent_ns);
    xfree(model->now);
    xfree(model->pending);
    xfree(model);
}

void model_add_fault(struct model *model, const struct model_fault *fault)
{
    assert(model->fault_count < MODEL_FAULTS_MAX);
    model->faults[model->fault_count++] = (struct active_fault){.fault = *fault, .begun_step = -1};
}

/* --- starting and stopping
 * ------------------------------------------------------------------------- */

void model_start(struct model *model, int64_t at_ns, int64_t first_step)
{
    assert(model->info.phase == MODEL_HALTED);
    for (int32_t r = 0; r < model->world; r++) {
        bool dead = model->trays[model_tray_of_rank(model, r)].dead;
        model->silent_ns[r] = dead ? 0 : INT64_MAX;
        model->noise[r] = 0;
    }
    model->info.phase = MODEL_INIT;
    model->info.attempt++;
    model->info.now_ns = at_ns;
    model->step = first_step;
    model->attempt_steps = 0;
    model->begin_ns = at_ns;
    model->end_ns = at_ns + model->config.init_ms * MODEL_MS;
    model->pause_kind = NULL;
    model->checkpoint_asked = false;
    model->beat_ns = model->config.beat_ns > 0 ? at_ns + model->config.beat_ns : INT64_MAX;
    model->gauge_ns = model->config.gauge_ns > 0 ? at_ns + model->config.gauge_ns : INT64_MAX;
    struct sample hello = {.measurement = MEASUREMENT_HELLO, .rank = RANK_NONE};
    model_queue(model, &hello, at_ns); /* stands for the hello of every rank */
}

/* Ranks that are asked to end while they step say so; those that hang cannot. */
static void queue_farewell(struct model *model, int64_t at_ns)
{
    struct sample mark = {.measurement = MEASUREMENT_MARK,
                          .rank = RANK_NONE,
                          .time_ns = at_ns,
                          .job = view_of(model->job_name),
                          .kind = view_of("restart"),
                          .present = UINT64_C(1) << FIELD_STEP};
    mark.values[FIELD_STEP] = (double)model->step;
    model_queue(model, &mark, at_ns);
}

void model_halt(struct model *model, int64_t at_ns)
{
    if (model->info.phase == MODEL_STEPPING && model->config.send_marks)
        queue_farewell(model, at_ns);
    model->info.phase = MODEL_HALTED;
    model->begin_ns = model->end_ns = model->beat_ns = model->gauge_ns = INT64_MAX;
    model->pause_kind = NULL;
    for (int32_t r = 0; r < model->world; r++)
        model->silent_ns[r] = 0;
}

void model_move(struct model *model, int32_t from_tray, int32_t to_tray)
{
    assert(model->info.phase == MODEL_HALTED && to_tray >= 0 && to_tray < model->tray_count);
    for (int32_t r = 0; r < model->world; r++)
        if (model_tray_of_rank(model, r) == from_tray)
            model->slot_of[r] = to_tray * model->config.gpus +
                                model->slot_of[r] % model->config.gpus;
}

bool model_request_checkpoint(struct model *model)
{
    if (model->info.phase != MODEL_STEPPING || model->pause_kind != NULL)
        return model->info.phase == MODEL_STEPPING;
    model->checkpoint_asked = true; /* taken at the end of the next step that begins */
    return true;
}

/* --- going on
 * --------------------------------------------------------------------------------------- */

/* When something happens next; INT64_MAX when nothing will come by itself. */
static int64_t next_ns_of(const struct model *model)
{
    int64_t next_ns = model->end_ns;
    if (model->beat_ns < next_ns)
        next_ns = model->beat_ns;
    if (model->gauge_ns < next_ns)
        next_ns = model->gauge_ns;
    if (model->pending_count > 0 && model->pending[0].due_ns < next_ns)
        next_ns = model->pending[0].due_ns;
    return next_ns;
}

static void begin_step(struct model *model)
{
    model->info.phase = MODEL_STEPPING;
    model->begin_ns = model->info.now_ns;
    model_apply_faults(model);
    model_time_step(model);
    if (model->pause_kind != NULL && strcmp(model->pause_kind, "checkpoint") == 0)
        model->checkpoint_asked = false;
    model_strike(model);
}

static bool has_missing_rank(const struct model *model)
{
    for (int32_t r = 0; r < model->world; r++)
        if (model->silent_ns[r] != INT64_MAX)
            return true;
    return false;
}

static void end_step(struct model *model, model_sample_fn *fn, void *context)
{
    struct model_info *info = &model->info;
    info->last_step = model->step;
    info->last_step_ns = model->end_ns;
    info->last_step_ms = (double)(model->end_ns - model->begin_ns - model->pause_ns) / 1e6;
    info->steps_done++;
    if (model->pause_kind != NULL && model->config.send_marks)
        model_send_mark(model, model->pause_kind, model->end_ns, model->pause_ms, fn, context);
    if (model->pause_kind != NULL && strcmp(model->pause_kind, "checkpoint") == 0) {
        info->checkpoint_step = model->step;
        info->checkpoint_ns = model->end_ns;
    }
    model_send_steps(model, fn, context);
    model->attempt_steps++;
    model->step++;
    begin_step(model);
}

static void end_moment(struct model *model, model_sample_fn *fn, void *context)
{
    if (model->info.phase == MODEL_STEPPING) {
        end_step(model, fn, context);
    } else if (has_missing_rank(model)) { /* start-up waits for ranks that will not come */
        model->end_ns = INT64_MAX;
        model->info.phase = MODEL_STUCK;
    } else {
        begin_step(model);
    }
}

void model_step(struct model *model, model_sample_fn *fn, void *context)
{
    struct sample sample;
    int64_t now_ns = next_ns_of(model);
    if (now_ns == INT64_MAX)
        return;
    model->info.now_ns = now_ns;
    while (model_unqueue(model, now_ns, &sample)) {
        if (sample.measurement == MEASUREMENT_HELLO && sample.rank == RANK_NONE)
            model_send_hello(model, now_ns, fn, context);
        else
            fn(context, &sample);
    }
    if (model->beat_ns == now_ns) {
        model_send_beats(model, now_ns, fn, context);
        model->beat_ns += model->config.beat_ns;
    }
    if (model->gauge_ns == now_ns) {
        model_send_gauges(model, now_ns, fn, context);
        model->gauge_ns += model->config.gauge_ns;
    }
    if (model->end_ns == now_ns)
        end_moment(model, fn, context);
}

void model_advance(struct model *model, int64_t until_ns, model_sample_fn *fn, void *context)
{
    while (next_ns_of(model) <= until_ns)
        model_step(model, fn, context);
    if (model->info.now_ns < until_ns)
        model->info.now_ns = until_ns;
}

/* --- looking at it
 * --------------------------------------------------------------------------------- */

struct model_info model_info(const struct model *model)
{
    struct model_info info = model->info;
    info.ranks_alive = 0;
    for (int32_t r = 0; r < model->world; r++)
        info.ranks_alive += model->silent_ns[r] > info.now_ns;
    return info;
}

int32_t model_tray_count(const struct model *model)
{
    return model->tray_count;
}

int32_t model_rack_of(const struct model *model, int32_t tray)
{
    assert(tray >= 0 && tray < model->tray_count);
    return model->trays[tray].rack;
}

const char *model_tray_name(const struct model *model, int32_t tray)
{
    assert(tray >= 0 && tray < model->tray_count);
    return model->trays[tray].name;
}

const char *model_rack_name(const struct model *model, int32_t rack)
{
    assert(rack >= 0 && rack < model->rack_count);
    return model->racks[rack].name;
}

bool model_tray_is_dead(const struct model *model, int32_t tray)
{
    assert(tray >= 0 && tray < model->tray_count);
    return model->trays[tray].dead;
}

bool model_tray_has_ranks(const struct model *model, int32_t tray)
{
    for (int32_t r = 0; r < model->world; r++)
        if (model_tray_of_rank(model, r) == tray)
            return true;
    return false;
}

int32_t model_tray_of_rank(const struct model *model, int32_t rank)
{
    assert(rank >= 0 && rank < model->world);
    return model->slot_of[rank] / model->config.gpus;
}

struct job *model_job(const struct model *model)
{
    const struct model_config *config = &model->config;
    struct job *job = job_new(model->job_name, model->world);
    static const enum parallel_dimension ORDER[DIMENSION_COUNT] = {
        DIMENSION_TP, DIMENSION_CP, DIMENSION_EP, DIMENSION_DP, DIMENSION_PP};
    memcpy(job->order, ORDER, sizeof ORDER);
    job->size[DIMENSION_TP] = config->tp;
    job->size[DIMENSION_CP] = 1;
    job->size[DIMENSION_EP] = config->ep;
    job->size[DIMENSION_DP] = model->dp;
    job->size[DIMENSION_PP] = config->pp;
    job->compute = config->compute;
    job->checkpoint_step = model->info.checkpoint_step >= 0 ? model->info.checkpoint_step
                                                            : JOB_NONE;
    job->checkpoint_time_ns = model->info.checkpoint_ns;
    for (int32_t t = 0; t < model->tray_count; t++) {
        const struct hardware_rack *rack = &model->racks[model->trays[t].rack];
        job_intern_tray(job, model->trays[t].name, job_intern_rack(job, rack->name, rack->domain));
    }
    for (int32_t r = 0; r < model->world; r++) {
        int32_t gpu = model->slot_of[r] % config->gpus;
        job->ranks[r] = (struct job_rank){
            .tray = model_tray_of_rank(model, r), .gpu = (int16_t)gpu, .rail = (int16_t)gpu};
    }
    return job;
}
