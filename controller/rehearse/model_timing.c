/* How long everything takes in one step: own time, groups, pipeline, all-reduce. */
#include "controller/rehearse/model_state.h"

#include <math.h>

/* The backward pass is two thirds of a micro-batch. */
static const double BACKWARD_PART = 2.0 / 3.0;
/* The first steps after a start: compilation, caches, allocator. */
static const double WARM_UP[] = {4.0, 1.6, 1.25, 1.1, 1.05};

static void draw_bursts(struct model *model)
{
    const struct model_config *config = &model->config;

    if (!(config->expert_burst_probability > 0))
        return;
    if (random_unit(&model->random) < config->expert_burst_probability) {
        uint32_t d = random_below(&model->random, (uint32_t)model->dp);
        model->burst[d] = config->expert_burst * (0.3 + 0.7 * random_unit(&model->random));
        model->burst_steps[d] = 2 + (int32_t)random_below(&model->random, 12);
    }
    for (int32_t d = 0; d < model->dp; d++)
        if (model->burst_steps[d] > 0) {
            model->work[d] *= 1 + model->burst[d];
            model->burst_steps[d]--;
        }
}

static void draw_work(struct model *model)
{
    const struct model_config *config = &model->config;
    double centre = exp(-0.5 * config->imbalance * config->imbalance);
    for (int32_t d = 0; d < model->dp; d++) {
        model->work[d] = 1.0;
        if (config->imbalance > 0)
            model->work[d] = centre * exp(config->imbalance * random_normal(&model->random));
    }
    for (int32_t e = 0; config->expert_imbalance > 0 && e < config->ep; e++)
        model->expert_load[e] = 0.98 * model->expert_load[e] +
                                0.199 * random_normal(&model->random);
    for (int32_t d = 0; config->expert_imbalance > 0 && config->ep > 1 && d < model->dp; d++)
        model->work[d] *= exp(config->expert_imbalance * model->expert_load[d % config->ep]);
    draw_bursts(model);
}

static double warm_up(const struct model *model)
{
    return model->attempt_steps < (int64_t)ARRAY_LEN(WARM_UP) ? WARM_UP[model->attempt_steps] : 1.0;
}

static double next_noise(struct model *model, int32_t rank)
{
    const struct model_config *config = &model->config;
    double lag1 = config->noise_lag1;
    double drawn = heavy_tail_draw(&model->tail, &model->random);
    if (config->shock_probability > 0 && random_unit(&model->random) < config->shock_probability)
        drawn = heavy_tail_draw_above(config->shock_least, &model->random);
    double fresh = drawn * sqrt(1.0 - lag1 * lag1);
    model->noise[rank] = lag1 * model->noise[rank] + config->noise * fresh;
    return model->noise[rank];
}

static void time_own(struct model *model, int32_t rank, double base_ms)
{
    const struct model_config *config = &model->config;
    int32_t slot = model->slot_of[rank];
    const struct effect_on_gpu *effect = &model->effects[slot];
    struct rank_step *now = &model->now[rank];
    now->kernels = base_ms * model->offset[slot] * (1.0 + next_noise(model, rank)) *
                   effect->compute;
    if (rank == 0)
        now->kernels *= config->rank0_ratio;
    now->own = now->kernels * (1.0 + effect->host_part);
    if (config->gc_probability > 0 && random_unit(&model->random) < config->gc_probability)
        now->own += config->gc_ms * (0.5 + random_unit(&model->random));
    now->data = config->data_ms * (0.8 + 0.4 * random_unit(&model->random)) +
                base_ms * effect->data_part;
    now->tp = now->ep = now->recv = 0;
}

/* The members of one tensor group wait for their last. */
static void time_tensor_group(struct model *model, int32_t first, double *ret_ms)
{
    int32_t tp = model->config.tp;
    double last = 0;
    double nvlink = 1;
    for (int32_t r = first; r < first + tp; r++) {
        last = fmax(last, model->now[r].own + model->now[r].data);
        nvlink = fmax(nvlink, model->effects[model->slot_of[r]].nvlink);
    }
    double transfer = tp > 1 ? model->config.tp_ms * nvlink : 0;
    for (int32_t r = first; tp > 1 && r < first + tp; r++)
        model->now[r].tp = transfer + last - model->now[r].own - model->now[r].data;
    *ret_ms = last + transfer;
}

/* ep consecutive replicas of a stage share experts and wait for each other. */
static void time_expert_groups(struct model *model, int32_t stage)
{
    int32_t ep = model->config.ep;
    int32_t tp = model->config.tp;
    double *group = model->group_ms + stage * model->dp;
    for (int32_t d = 0; ep > 1 && d < model->dp; d += ep) {
        double last = 0;
        double nvlink = 1;
        for (int32_t i = d; i < d + ep; i++) {
            last = fmax(last, group[i]);
            nvlink = fmax(nvlink,
                          model->effects[model->slot_of[tp * (i + model->dp * stage)]].nvlink);
        }
        for (int32_t i = d; i < d + ep; i++) {
            double in_exchange = last - group[i] + model->config.ep_ms * nvlink;
            for (int32_t k = 0; k < tp; k++)
                model->now[k + tp * (i + model->dp * stage)].ep = in_exchange;
            group[i] += in_exchange;
        }
    }
}

/* 1F1B: the pipeline is as slow as its slowest stage; later stages drain first. */
static void time_pipeline(struct model *model, int32_t replica)
{
    const struct model_config *config = &model->config;
    double micro = config->micro_batches;
    double sum = 0;
    double slowest = 0;
    for (int32_t s = 0; s < config->pp; s++) {
        double pace = model->group_ms[s * model->dp + replica] / micro;
        sum += pace;
        slowest = fmax(slowest, pace);
    }
    double end = sum + (micro - 1) * slowest;
    double drained = 0;
    for (int32_t s = 0; s < config->pp; s++) {
        double own = model->group_ms[s * model->dp + replica];
        double arrival = config->pp > 1 ? end - BACKWARD_PART * drained : own;
        drained += own / micro;
        int32_t first = config->tp * (replica + model->dp * s);
        for (int32_t r = first; r < first + config->tp; r++) {
            model->now[r].arrival = arrival;
            model->now[r].recv = arrival - own;
        }
    }
}

static double group_transfer(struct model *model, int32_t stage, int32_t tensor, double *ret_last)
{
    int32_t tp = model->config.tp;
    double last = 0;
    double link = 1;
    for (int32_t d = 0; d < model->dp; d++) {
        int32_t rank = tensor + tp * (d + model->dp * stage);
        last = fmax(last, model->now[rank].arrival);
        if (model->effects_set)
            link = fmax(link, model->effects[model->slot_of[rank]].link);
    }
    double noise = model->config.transfer_noise * heavy_tail_draw(&model->tail, &model->random);
    if (model->job_transfer_noise > 0)
        noise += model->job_transfer_noise * random_normal(&model->random);
    *ret_last = last;
    return model->config.transfer_ms * model->job_transfer * link * fmax(0.2, 1.0 + noise);
}

/* Returns the moment at which the last group has ended, ms after the begin. */
static double time_allreduce(struct model *model)
{
    int32_t tp = model->config.tp;
    double step_end = 0;
    for (int32_t s = 0; s < model->config.pp; s++)
        for (int32_t k = 0; k < tp; k++) {
            double last;
            double transfer = group_transfer(model, s, k, &last);
            for (int32_t d = 0; d < model->dp; d++) {
                struct rank_step *now = &model->now[k + tp * (d + model->dp * s)];
                now->allreduce = last + transfer - now->arrival;
            }
            step_end = fmax(step_end, last + transfer);
        }
    return step_end;
}

static void plan_pause(struct model *model)
{
    const struct model_config *config = &model->config;
    int64_t next = model->step + 1;
    bool saves = model->checkpoint_asked ||
                 (config->checkpoint_steps > 0 && next % config->checkpoint_steps == 0);
    bool evaluates = config->eval_steps > 0 && next % config->eval_steps == 0;
    model->pause_kind = saves ? "checkpoint" : evaluates ? "eval" : NULL;
    model->pause_ms = 0;
    if (saves)
        model->pause_ms = config->checkpoint_ms * (0.95 + 0.1 * random_unit(&model->random));
    else if (evaluates)
        model->pause_ms = config->eval_ms * (0.95 + 0.1 * random_unit(&model->random));
    model->pause_ns = (int64_t)(model->pause_ms * 1e6);
}

void model_time_step(struct model *model)
{
    const struct model_config *config = &model->config;
    double base = config->compute_ms * model->job_compute * warm_up(model);
    draw_work(model);
    for (int32_t s = 0; s < config->pp; s++) {
        double stage = s == config->pp - 1 ? config->last_stage_ratio : 1.0;
        for (int32_t d = 0; d < model->dp; d++) {
            int32_t first = config->tp * (d + model->dp * s);
            for (int32_t r = first; r < first + config->tp; r++)
                time_own(model, r, base * stage * model->work[d]);
            time_tensor_group(model, first, &model->group_ms[s * model->dp + d]);
        }
        time_expert_groups(model, s);
    }
    for (int32_t d = 0; d < model->dp; d++)
        time_pipeline(model, d);
    double end_ms = time_allreduce(model);
    plan_pause(model);
    model->end_ns = model->begin_ns + (int64_t)(end_ms * 1e6) + model->pause_ns;
}
