/* Faults as they begin: what lasts is applied to every step, what kills strikes once in the middle
 * of one. */
#include "controller/rehearse/model_state.h"

#include <math.h>

enum {
    XID_NVLINK_RLW = 145,
    XID_CLEANUP = 45,
    XID_NVLINK_NETIR = 149,
    XID_OFF_THE_BUS = 79,
    NETIR_SUBCODE = 4
};

/* A storm's accusations come within this time. */
static const int64_t STORM_NS = 30 * MODEL_SECOND;

static void reset_effects(struct model *model)
{
    int32_t slots = model->tray_count * model->config.gpus;
    for (int32_t s = 0; s < slots; s++)
        model->effects[s] = (struct effect_on_gpu){1, 0, 1, 1, 0, 0, 1};
    model->job_compute = model->job_transfer = 1;
    model->job_transfer_noise = 0;
    model->loss_factor = 1;
}

void model_apply_faults(struct model *model)
{
    bool any = false;
    if (model->effects_set)
        reset_effects(model);
    for (int32_t i = 0; i < model->fault_count; i++) {
        struct active_fault *active = &model->faults[i];
        if (active->begun_step < 0 && model->step >= active->fault.from_step)
            active->begun_step = model->step;
        double activity = fault_activity(&active->fault, active->begun_step, model->step);
        if (activity > 0 && !fault_stops_job(active->fault.kind)) {
            fault_apply(model, &active->fault, activity);
            any = true;
        }
    }
    model->effects_set = any;
}

static struct sample event_of(const struct model *model, const char *kind, int32_t tray,
                              int32_t gpu)
{
    static const char *const NUMBERS[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct sample sample = {
        .measurement = MEASUREMENT_EVENT, .rank = RANK_NONE, .kind = view_of(kind)};
    if (tray >= 0)
        sample.host = view_of(model->trays[tray].name);
    if (gpu >= 0 && gpu < (int32_t)ARRAY_LEN(NUMBERS))
        sample.gpu = view_of(NUMBERS[gpu]);
    return sample;
}

void model_tell_event(struct model *model, const char *kind, int32_t tray, int32_t gpu,
                      int64_t at_ns)
{
    struct sample sample = event_of(model, kind, tray, gpu);
    sample.time_ns = at_ns;
    model_queue(model, &sample, at_ns);
}

static void queue_xid(struct model *model, int32_t tray, int32_t gpu, int code, int subcode,
                      int64_t at_ns)
{
    struct sample sample = event_of(model, "xid", tray, gpu);
    sample.present = UINT64_C(1) << FIELD_CODE;
    sample.values[FIELD_CODE] = code;
    if (subcode >= 0) {
        sample.present |= UINT64_C(1) << FIELD_SUBCODE;
        sample.values[FIELD_SUBCODE] = subcode;
    }
    sample.time_ns = at_ns;
    model_queue(model, &sample, at_ns);
}

static int64_t somewhat_later(struct model *model, int64_t from_ns, double least_s, double most_s)
{
    double wait = least_s + (most_s - least_s) * random_unit(&model->random);
    return from_ns + (int64_t)(wait * 1e9);
}

/* The step cannot end: whoever shares a replica with a lost rank waits inside its compute. */
static void make_endless(struct model *model, int32_t lost_rank)
{
    int32_t tp = model->config.tp;
    int32_t replica = lost_rank / tp % model->dp;
    for (int32_t s = 0; s < model->config.pp; s++)
        for (int32_t k = 0; k < tp; k++)
            model->now[k + tp * (replica + model->dp * s)].arrival = (double)INFINITY;
    model->end_ns = INT64_MAX;
    model->pause_kind = NULL;
    model->info.phase = MODEL_STUCK;
}

static void kill_tray(struct model *model, int32_t tray, int64_t at_ns)
{
    model->trays[tray].dead = true;
    for (int32_t r = 0; r < model->world; r++)
        if (model_tray_of_rank(model, r) == tray && model->silent_ns[r] > at_ns)
            model->silent_ns[r] = at_ns;
}

static void strike_rack(struct model *model, int32_t rack, int64_t at_ns)
{
    struct sample down = event_of(model, "nvlink_domain_down", -1, -1);
    down.rack = view_of(model->racks[rack].name);
    down.time_ns = at_ns;
    model_queue(model, &down, at_ns);
    for (int32_t t = 0; t < model->tray_count; t++) {
        if (model->trays[t].rack != rack || model->trays[t].dead)
            continue;
        kill_tray(model, t, somewhat_later(model, at_ns, 0.05, 1.0));
        for (int32_t g = 0; g < model->config.gpus; g++)
            queue_xid(model, t, g, g % 2 == 0 ? XID_NVLINK_NETIR : XID_NVLINK_RLW,
                      g % 2 == 0 ? NETIR_SUBCODE : -1, somewhat_later(model, at_ns, 0.01, 0.9));
    }
    /* The collective's error ends every other process of the job. */
    for (int32_t r = 0; r < model->world; r++) {
        int64_t dies_ns = somewhat_later(model, at_ns, 1.5, 7.0);
        int32_t tray = model_tray_of_rank(model, r);
        if (model->trays[tray].rack == rack)
            continue;
        if (model->silent_ns[r] > dies_ns)
            model->silent_ns[r] = dies_ns;
        queue_xid(model, tray, model->slot_of[r] % model->config.gpus, XID_CLEANUP, -1, dies_ns);
    }
}

/* Accusations rack by rack in turn, so that no rack is accused by more than its share. */
static void strike_storm(struct model *model, double part, int64_t at_ns)
{
    const struct model_config *config = &model->config;
    int32_t wanted = (int32_t)ceil(part * config->racks * config->trays_used);
    int32_t in_rack = config->trays_used + config->trays_spare;
    for (int32_t i = 0; i < wanted; i++) {
        int32_t tray = (i % config->racks) * in_rack + i / config->racks;
        queue_xid(model, tray, 0, XID_OFF_THE_BUS, -1,
                  at_ns + STORM_NS * i / (wanted > 1 ? wanted - 1 : 1));
    }
}

/* The rack's monitor knows which of its nine switch trays it is; no node is at fault. */
static void report_switch_tray(struct model *model, const struct model_fault *fault, int64_t at_ns)
{
    struct sample sample = event_of(model, "nvswitch_tray_fault", -1, -1);
    sample.rack = view_of(model->racks[fault->rack].name);
    sample.present = UINT64_C(1) << FIELD_TRAY;
    sample.values[FIELD_TRAY] = fault->gpu;
    sample.time_ns = at_ns;
    model_queue(model, &sample, at_ns);
}

static void strike(struct model *model, struct active_fault *active)
{
    const struct model_fault *fault = &active->fault;
    int64_t in_step_ns = model->begin_ns + (model->end_ns - model->begin_ns) * 2 / 5;
    active->struck = true;
    switch (fault->kind) {
    case FAULT_TRAY_DEATH:
        kill_tray(model, fault->tray, in_step_ns);
        break;
    case FAULT_RACK_DEATH:
        strike_rack(model, fault->rack, in_step_ns);
        break;
    case FAULT_STORM:
        strike_storm(model, fault->magnitude, in_step_ns);
        break;
    case FAULT_SWITCH_TRAY:
        if (fault->reported)
            report_switch_tray(model, fault, in_step_ns);
        break;
    case FAULT_SLOW_GPU:
    case FAULT_SLOW_HOST:
    case FAULT_SLOW_RACK:
    case FAULT_RAIL:
    case FAULT_MEMORY:
    case FAULT_DATA:
    case FAULT_CONGESTION:
    case FAULT_REGRESSION:
    case FAULT_NAN:
    case FAULT_LOSS_SPIKE:
    case FAULT_NIC_FLAP:
    case FAULT_PCIE:
    case FAULT_SDC:
    case FAULT_STORAGE:
    case FAULT_HANG:
    case FAULT_KIND_COUNT:
        break;
    }
}

static bool is_hung(const struct model *model, int32_t rank)
{
    for (int32_t i = 0; i < model->fault_count; i++) {
        const struct active_fault *active = &model->faults[i];
        if (active->fault.kind == FAULT_HANG &&
            fault_activity(&active->fault, active->begun_step, model->step) > 0 &&
            model->slot_of[rank] == active->fault.tray * model->config.gpus + active->fault.gpu)
            return true;
    }
    return false;
}

void model_strike(struct model *model)
{
    if (model->fault_count == 0)
        return;
    for (int32_t i = 0; i < model->fault_count; i++)
        if (!model->faults[i].struck && model->faults[i].begun_step >= 0)
            strike(model, &model->faults[i]);
    int64_t end_ns = model->end_ns;
    for (int32_t r = 0; r < model->world; r++)
        if (model->trays[model_tray_of_rank(model, r)].dead || model->silent_ns[r] < end_ns ||
            is_hung(model, r))
            make_endless(model, r);
}
