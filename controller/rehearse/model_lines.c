/* What ranks send: samples, with what goes wrong on their way. */
#include "controller/rehearse/model_state.h"

#include <math.h>

static void put(struct sample *sample, enum field field, double value)
{
    sample->present |= UINT64_C(1) << field;
    sample->values[field] = value;
}

/* --- lines on their way: a heap by time
 * ------------------------------------------------------------ */

static bool is_before(const struct pending *a, const struct pending *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap_pending(struct pending *a, struct pending *b)
{
    struct pending other = *a;
    *a = *b;
    *b = other;
}

void model_queue(struct model *model, const struct sample *sample, int64_t due_ns)
{
    model->pending = array_grow(model->pending, model->pending_count, &model->pending_capacity,
                                sizeof *model->pending);
    size_t i = model->pending_count++;
    model->pending[i] = (struct pending){due_ns, model->pending_order++, *sample};
    for (; i > 0 && is_before(&model->pending[i], &model->pending[(i - 1) / 2]); i = (i - 1) / 2)
        swap_pending(&model->pending[i], &model->pending[(i - 1) / 2]);
}

bool model_unqueue(struct model *model, int64_t until_ns, struct sample *ret_sample)
{
    struct pending *heap = model->pending;
    if (model->pending_count == 0 || heap[0].due_ns > until_ns)
        return false;
    *ret_sample = heap[0].sample;
    heap[0] = heap[--model->pending_count];
    for (size_t i = 0, child; (child = 2 * i + 1) < model->pending_count; i = child) {
        if (child + 1 < model->pending_count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &heap[i]))
            break;
        swap_pending(&heap[i], &heap[child]);
    }
    return true;
}

/* --- sending
 * ----------------------------------------------------------------------------------------- */

static bool happens(struct model *model, double probability)
{
    return probability > 0 && random_unit(&model->random) < probability;
}

static void deliver(struct model *model, struct sample *sample, int64_t at_ns, model_sample_fn *fn,
                    void *context)
{
    const struct model_dirt *dirt = &model->config.dirt;
    int64_t step_ns = (int64_t)(model->info.last_step_ms * 1e6);
    if (happens(model, dirt->lost))
        return;
    if (happens(model, dirt->late)) {
        model_queue(model, sample,
                    at_ns + (int64_t)((double)step_ns * (0.2 + random_unit(&model->random))));
        return;
    }
    if (happens(model, dirt->doubled))
        model_queue(model, sample, at_ns + step_ns / 3);
    fn(context, sample);
}

static struct sample of_rank(const struct model *model, enum measurement measurement, int32_t rank,
                             int64_t at_ns)
{
    const struct hardware_tray *tray = &model->trays[model_tray_of_rank(model, rank)];
    struct sample sample;
    sample.measurement = measurement;
    sample.time_ns = at_ns + tray->skew_ns;
    sample.rank = rank;
    sample.present = 0;
    sample.job = view_of(model->job_name);
    sample.host = sample.rack = sample.gpu = sample.rail = sample.kind = sample.phase = view_of(
        NULL);
    sample.uuid = sample.pci = sample.message = view_of(NULL);
    return sample;
}

void model_send_hello(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context)
{
    const struct model_config *config = &model->config;
    for (int32_t r = 0; r < model->world; r++) {
        struct sample sample = of_rank(model, MEASUREMENT_HELLO, r, at_ns);
        int32_t gpu = model->slot_of[r] % config->gpus;
        if (model->silent_ns[r] <= at_ns)
            continue;
        sample.host = view_of(model->trays[model_tray_of_rank(model, r)].name);
        put(&sample, FIELD_GPU, gpu);
        put(&sample, FIELD_WORLD, model->world);
        put(&sample, FIELD_TP, config->tp);
        put(&sample, FIELD_PP, config->pp);
        put(&sample, FIELD_DP, model->dp);
        put(&sample, FIELD_EP, config->ep);
        put(&sample, FIELD_ATTEMPT, (double)model->info.attempt);
        put(&sample, FIELD_RAIL, gpu);
        fn(context, &sample); /* retried by real senders until it has arrived */
    }
}

static double sm_active(const struct rank_step *now, double step_ms)
{
    double busy = fmin(now->kernels, step_ms);
    return (0.93 * busy + 0.15 * (step_ms - busy)) / step_ms;
}

static double loss_at(const struct model *model)
{
    double smooth = 1.8 + 8.0 * exp(-(double)(model->step + 1) / 3000.0);
    return (smooth + model->loss_noise) * model->loss_factor;
}

static void fill_step(struct model *model, int32_t rank, double step_ms, struct sample *sample)
{
    const struct model_config *config = &model->config;
    const struct rank_step *now = &model->now[rank];
    double jitter = 0.12 * (random_unit(&model->random) - 0.5);
    put(sample, FIELD_STEP, (double)model->step);
    put(sample, FIELD_STEP_MS, step_ms + jitter);
    if (config->send_allreduce)
        put(sample, FIELD_ALLREDUCE_MS, now->allreduce);
    if (config->compute == COMPUTE_KERNEL)
        put(sample, FIELD_COMPUTE_MS, now->own);
    if (config->compute == COMPUTE_INCLUSIVE)
        put(sample, FIELD_COMPUTE_MS, now->own + now->tp + now->ep);
    if (config->send_recv && config->pp > 1)
        put(sample, FIELD_RECV_MS, now->recv);
    if (config->send_tp && config->tp > 1)
        put(sample, FIELD_TP_MS, now->tp);
    if (config->send_ep && config->ep > 1)
        put(sample, FIELD_EP_MS, now->ep);
    if (config->send_data)
        put(sample, FIELD_DATA_MS, now->data);
}

static void fill_rest(struct model *model, int32_t rank, double step_ms, struct sample *sample)
{
    const struct model_config *config = &model->config;
    int32_t slot = model->slot_of[rank];
    if (config->send_sm) {
        double noise = 0.016 * (random_unit(&model->random) - 0.5);
        double usual = model->memory[slot];
        double full = model->effects[slot].memory;
        put(sample, FIELD_SM, fmin(1, sm_active(&model->now[rank], step_ms) + noise));
        put(sample, FIELD_MEM, usual + full * (0.99 - usual) + 0.25 * noise * (1 - full));
    }
    if (config->send_loss) {
        put(sample, FIELD_GRAD_NORM,
            (0.9 + 0.2 * random_unit(&model->random)) * model->loss_factor *
                model->effects[slot].gradient);
        if (rank % config->tp == 0 && rank / (config->tp * model->dp) == config->pp - 1)
            put(sample, FIELD_LOSS, loss_at(model));
    }
    if (config->send_tokens)
        put(sample, FIELD_TOKENS, 8192.0 * sqrt(model->work[rank / config->tp % model->dp]));
    if (happens(model, config->dirt.nan))
        put(sample, FIELD_COMPUTE_MS, (double)NAN);
}

void model_send_steps(struct model *model, model_sample_fn *fn, void *context)
{
    double step_ms = (double)(model->end_ns - model->begin_ns) / 1e6;
    int32_t first = (int32_t)random_below(&model->random, (uint32_t)model->world);
    model->loss_noise = 0.9 * model->loss_noise + 0.01 * random_normal(&model->random);
    for (int32_t i = 0; i < model->world; i++) {
        int32_t rank = i + first < model->world ? i + first : i + first - model->world;
        struct sample sample = of_rank(model, MEASUREMENT_STEP, rank, model->end_ns);
        fill_step(model, rank, step_ms, &sample);
        fill_rest(model, rank, step_ms, &sample);
        deliver(model, &sample, model->end_ns, fn, context);
    }
}

static const char *phase_of(const struct model *model, int32_t rank, int64_t at_ns)
{
    if (model->info.phase == MODEL_INIT)
        return "init";
    if (model->pause_kind != NULL && at_ns >= model->end_ns - model->pause_ns)
        return model->pause_kind;
    double since_ms = (double)(at_ns - model->begin_ns) / 1e6;
    return since_ms < model->now[rank].arrival ? "compute" : "allreduce";
}

void model_send_beats(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context)
{
    for (int32_t r = 0; r < model->world; r++) {
        if (model->silent_ns[r] <= at_ns)
            continue;
        struct sample sample = of_rank(model, MEASUREMENT_BEAT, r, at_ns);
        put(&sample, FIELD_STEP, (double)model->step);
        sample.phase = view_of(phase_of(model, r, at_ns));
        deliver(model, &sample, at_ns, fn, context);
    }
}

void model_send_gauges(struct model *model, int64_t at_ns, model_sample_fn *fn, void *context)
{
    static const char *const NUMBERS[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    double step_ms = model->info.last_step_ms;
    for (int32_t r = 0; step_ms > 0 && r < model->world; r++) {
        int32_t slot = model->slot_of[r];
        struct sample sample = of_rank(model, MEASUREMENT_GPU, r, at_ns);
        double sm = fmin(1, sm_active(&model->now[r], step_ms));
        if (model->trays[model_tray_of_rank(model, r)].dead)
            continue;
        sample.rank = RANK_NONE;
        sample.job = view_of(NULL);
        sample.host = view_of(model->trays[model_tray_of_rank(model, r)].name);
        sample.gpu = view_of(NUMBERS[slot % model->config.gpus % (int32_t)ARRAY_LEN(NUMBERS)]);
        put(&sample, FIELD_SM, sm);
        put(&sample, FIELD_MEM, model->memory[slot]);
        put(&sample, FIELD_POWER_W, 260.0 + 900.0 * sm + 10.0 * random_normal(&model->random));
        put(&sample, FIELD_TEMP_C, 38.0 + 24.0 * sm + random_normal(&model->random));
        put(&sample, FIELD_CLOCK_MHZ,
            1920.0 / model->effects[slot].compute + random_normal(&model->random));
        deliver(model, &sample, at_ns, fn, context);
    }
}

void model_send_mark(struct model *model, const char *kind, int64_t at_ns, double dur_ms,
                     model_sample_fn *fn, void *context)
{
    struct sample sample = of_rank(model, MEASUREMENT_MARK, 0, at_ns);
    sample.rank = RANK_NONE;
    sample.kind = view_of(kind);
    put(&sample, FIELD_STEP, (double)model->step);
    put(&sample, FIELD_DUR_MS, dur_ms);
    fn(context, &sample);
}
