/* Each kind of fault is a row: its name, whether it stops the job, and what it does to one step. */
#include "controller/rehearse/faults.h"

#include "controller/rehearse/model_state.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef void apply_fn(struct model *model, const struct model_fault *fault, double activity);

static double grown(double magnitude, double activity)
{
    return 1.0 + (magnitude - 1.0) * activity;
}

static struct effect_on_gpu *effect_of(struct model *model, int32_t tray, int32_t gpu)
{
    assert(tray >= 0 && tray < model->tray_count && gpu >= 0 && gpu < model->config.gpus);
    return &model->effects[tray * model->config.gpus + gpu];
}

static void slow_gpu(struct model *model, const struct model_fault *fault, double activity)
{
    effect_of(model, fault->tray, fault->gpu)->compute *= grown(fault->magnitude, activity);
}

static void slow_host(struct model *model, const struct model_fault *fault, double activity)
{
    for (int32_t g = 0; g < model->config.gpus; g++)
        effect_of(model, fault->tray, g)->host_part += (fault->magnitude - 1.0) * activity;
}

static void slow_rack(struct model *model, const struct model_fault *fault, double activity)
{
    for (int32_t t = 0; t < model->tray_count; t++)
        for (int32_t g = 0; model->trays[t].rack == fault->rack && g < model->config.gpus; g++)
            effect_of(model, t, g)->compute *= grown(fault->magnitude, activity);
}

static void rail(struct model *model, const struct model_fault *fault, double activity)
{
    for (int32_t t = 0; t < model->tray_count; t++)
        if (fault->tray < 0 || fault->tray == t)
            effect_of(model, t, fault->gpu)->link *= grown(fault->magnitude, activity);
}

static void switch_tray(struct model *model, const struct model_fault *fault, double activity)
{
    double factor = grown(fault->magnitude, activity);
    for (int32_t t = 0; t < model->tray_count; t++)
        for (int32_t g = 0; model->trays[t].rack == fault->rack && g < model->config.gpus; g++) {
            effect_of(model, t, g)->nvlink *= factor;
            /* Without a tensor group the rack's NVLink carries the gradients. */
            if (model->config.tp == 1 && model->config.ep == 1)
                effect_of(model, t, g)->link *= factor;
        }
}

/* Allocator retries come in bursts: about two steps in five. */
static void memory(struct model *model, const struct model_fault *fault, double activity)
{
    struct effect_on_gpu *effect = effect_of(model, fault->tray, fault->gpu);
    effect->memory = activity;
    if (random_unit(&model->random) < 0.4)
        effect->host_part += (fault->magnitude - 1.0) * activity * 2.0 *
                             random_unit(&model->random);
}

static void data(struct model *model, const struct model_fault *fault, double activity)
{
    for (int32_t g = 0; g < model->config.gpus; g++)
        effect_of(model, fault->tray, g)->data_part += (fault->magnitude - 1.0) * activity;
}

static void congestion(struct model *model, const struct model_fault *fault, double activity)
{
    model->job_transfer *= grown(fault->magnitude, activity);
    model->job_transfer_noise = 0.25 * activity;
}

static void regression(struct model *model, const struct model_fault *fault, double activity)
{
    model->job_compute *= grown(fault->magnitude, activity);
}

static void not_a_number(struct model *model, const struct model_fault *fault, double activity)
{
    (void)fault;
    if (activity > 0)
        model->loss_factor = (double)NAN;
}

static void loss_spike(struct model *model, const struct model_fault *fault, double activity)
{
    model->loss_factor *= grown(fault->magnitude, activity);
}

/* Down for less than the transport's patience: the step takes that much longer, nothing ends. */
static void nic_flap(struct model *model, const struct model_fault *fault, double activity)
{
    effect_of(model, fault->tray, fault->gpu)->link *= grown(fault->magnitude, activity);
    model_tell_event(model, "nic_down", fault->tray, fault->gpu,
                     model->begin_ns + MODEL_SECOND / 2);
}

static void pcie(struct model *model, const struct model_fault *fault, double activity)
{
    effect_of(model, fault->tray, fault->gpu)->link *= grown(fault->magnitude, activity);
}

/* A marginal unit errs in about three steps of ten; the sum over all ranks hides it in the loss. */
static void silent_corruption(struct model *model, const struct model_fault *fault, double activity)
{
    if (random_unit(&model->random) < 0.3)
        effect_of(model, fault->tray, fault->gpu)->gradient *= grown(fault->magnitude, activity);
}

static void storage(struct model *model, const struct model_fault *fault, double activity)
{
    for (int32_t s = 0; s < model->tray_count * model->config.gpus; s++)
        model->effects[s].data_part += (fault->magnitude - 1.0) * activity;
}

/* What stops the job, and the storm, strike once: model_strike.c. */
static void nothing(struct model *model, const struct model_fault *fault, double activity)
{
    (void)model;
    (void)fault;
    (void)activity;
}

static const struct fault_row {
    const char *name;
    bool stops_job;
    apply_fn *apply;
} ROWS[] = {
    [FAULT_SLOW_GPU] = {"slow_gpu", false, slow_gpu},
    [FAULT_SLOW_HOST] = {"slow_host", false, slow_host},
    [FAULT_SLOW_RACK] = {"slow_rack", false, slow_rack},
    [FAULT_RAIL] = {"rail", false, rail},
    [FAULT_SWITCH_TRAY] = {"switch_tray", false, switch_tray},
    [FAULT_MEMORY] = {"memory", false, memory},
    [FAULT_DATA] = {"data", false, data},
    [FAULT_CONGESTION] = {"congestion", false, congestion},
    [FAULT_REGRESSION] = {"regression", false, regression},
    [FAULT_NAN] = {"nan", false, not_a_number},
    [FAULT_LOSS_SPIKE] = {"loss_spike", false, loss_spike},
    [FAULT_NIC_FLAP] = {"nic_flap", false, nic_flap},
    [FAULT_PCIE] = {"pcie", false, pcie},
    [FAULT_SDC] = {"sdc", false, silent_corruption},
    [FAULT_STORAGE] = {"storage", false, storage},
    [FAULT_HANG] = {"hang", true, nothing},
    [FAULT_TRAY_DEATH] = {"tray_death", true, nothing},
    [FAULT_RACK_DEATH] = {"rack_death", true, nothing},
    [FAULT_STORM] = {"storm", false, nothing},
};
_Static_assert(ARRAY_LEN(ROWS) == FAULT_KIND_COUNT, "a row for each kind of fault");

const char *fault_kind_name(enum fault_kind kind)
{
    assert(kind < FAULT_KIND_COUNT);
    return ROWS[kind].name;
}

bool fault_stops_job(enum fault_kind kind)
{
    assert(kind < FAULT_KIND_COUNT);
    return ROWS[kind].stops_job;
}

double fault_activity(const struct model_fault *fault, int64_t begun_step, int64_t step)
{
    int64_t since = step - begun_step;
    if (begun_step < 0 || since < 0 || (fault->until_step > 0 && step >= fault->until_step))
        return 0;
    if (fault->period_steps > 0 && since % fault->period_steps >= fault->on_steps)
        return 0;
    if (fault->ramp_steps > 0 && since < fault->ramp_steps)
        return (double)(since + 1) / (double)fault->ramp_steps;
    return 1;
}

void fault_apply(struct model *model, const struct model_fault *fault, double activity)
{
    assert(fault->kind < FAULT_KIND_COUNT);
    ROWS[fault->kind].apply(model, fault, activity);
}
