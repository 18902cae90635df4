/* The rehearsals as rows. */
#include "controller/rehearse/scenario.h"

#include "controller/rehearse/random.h"

#include <string.h>

#define SECONDS(n) ((n)*INT64_C(1000000000))
#define KIND(x)    (1u << VERDICT_##x)
#define SCOPE(x)   (1u << SCOPE_##x)

static const struct scenario ROWS[] = {
    {.name = "slow-rank",
     .summary = "one GPU computes 1.3 times as long from step 200 on",
     .speed = 120,
     .duration_ns = SECONDS(3600),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SLOW_GPU,
     .magnitude = 1.3,
     .fault_step = 200,
     .ending = {.incidents = 1,
                .kinds = KIND(SLOW),
                .scopes = SCOPE(RANK) | SCOPE(TRAY),
                .severity = 2,
                .damage = DAMAGE_GPU,
                .restarts = 1}},
    {.name = "tray-lost",
     .summary = "a node dies in the middle of a step",
     .speed = 50,
     .duration_ns = SECONDS(1800),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_TRAY_DEATH,
     .fault_step = 120,
     .ending = {.incidents = 1,
                .kinds = KIND(CRASH),
                .scopes = SCOPE(TRAY),
                .severity = 1,
                .damage = DAMAGE_TRAY,
                .restarts = 1,
                .victims = true}},
    {.name = "rack-fault",
     .summary = "an NVLink domain goes: its trays within a second, all other ranks within seven",
     .speed = 60,
     .duration_ns = SECONDS(1800),
     .linger_ns = SECONDS(320),
     .racks = 2,
     .spare_racks = 1,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_RACK_DEATH,
     .fault_step = 120,
     .ending = {.incidents = 1,
                .kinds = KIND(CRASH) | KIND(FAULT),
                .scopes = SCOPE(RACK),
                .severity = 0,
                .damage = DAMAGE_RACK,
                .restarts = 1,
                .victims = true,
                .to_spare_rack = true}},
    {.name = "no-spare",
     .summary = "a node dies and there is no spare anywhere; one appears after 30 minutes",
     .speed = 200,
     .duration_ns = SECONDS(5400),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 1,
     .compute_ms = 1700,
     .spare_appears = true,
     .fault = FAULT_TRAY_DEATH,
     .fault_step = 120,
     .ending = {.incidents = 1,
                .kinds = KIND(CRASH),
                .scopes = SCOPE(TRAY),
                .severity = 1,
                .damage = DAMAGE_TRAY,
                .restarts = 1,
                .victims = true,
                .holds = true}},
    {.name = "storm",
     .summary = "one monitor accuses 40 % of the nodes within a minute while the job steps on",
     .speed = 60,
     .duration_ns = SECONDS(780),
     .racks = 4,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_STORM,
     .magnitude = 0.4,
     .fault_step = 120,
     .ending = {.incidents = 1,
                .kinds = KIND(FAULT),
                .scopes = SCOPE(JOB),
                .severity = 0,
                .observer_suspect = true}},
    {.name = "healthy",
     .summary = "two hours of an everyday job: checkpoints, evaluations, garbage collection, a "
                "NotReady blip",
     .speed = 400,
     .duration_ns = SECONDS(7200),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 3400,
     .everyday_noise = true},
    {.name = "slow-tray",
     .summary = "a tray's four GPUs starve: its host takes 1.25 times as long from step 200 on",
     .speed = 120,
     .duration_ns = SECONDS(3600),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SLOW_HOST,
     .magnitude = 1.25,
     .fault_step = 200,
     .ending = {.incidents = 1,
                .kinds = KIND(SLOW),
                .scopes = SCOPE(TRAY),
                .severity = 2,
                .damage = DAMAGE_TRAY,
                .restarts = 1}},
    /* A slow rack is not a lost one. Rule rack-down is for crashes and faults, slow-tray for ranks
     * and trays: no rule takes 18 trays out of a running job for some per cent, though the detector
     * advises it and a spare rack stands by. People decide. */
    {.name = "slow-rack",
     .summary = "all GPUs of a rack compute 1.15 times as long from step 200 on",
     .speed = 120,
     .duration_ns = SECONDS(2400),
     .racks = 2,
     .spare_racks = 1,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SLOW_RACK,
     .magnitude = 1.15,
     .fault_step = 200,
     .ending = {.incidents = 1,
                .kinds = KIND(SLOW),
                .scopes = SCOPE(RACK),
                .severity = 3,
                .left_slow = true}},
    /* No node is at fault, so there is none to take out: the rack's links are what is left of them
     * until somebody changes the switch tray. That its rack is slow from then on is the same
     * incident. The tensor groups span trays, or hardly anybody would feel it. */
    {.name = "nvswitch-tray",
     .summary = "an NVSwitch tray fails: NVLink in its rack takes 4 times as long",
     .speed = 120,
     .duration_ns = SECONDS(2400),
     .racks = 2,
     .spare_racks = 1,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SWITCH_TRAY,
     .magnitude = 4,
     .fault_step = 200,
     .reported = true,
     .tp = 8,
     .ending = {.incidents = 1,
                .kinds = KIND(FAULT),
                .scopes = SCOPE(SWITCH_TRAY),
                .severity = 2,
                .left_slow = true}},
    /* In a pause between two bursts the detector may take its word back, once: what comes back must
     * then be quiet for three times as long. An incident that was cleared while it settled is
     * closed and has touched nothing; the next one stands its ten minutes, and the tray goes. */
    {.name = "flapping",
     .summary = "one GPU computes 1.3 times as long for 10 steps of every 20",
     .speed = 120,
     .duration_ns = SECONDS(3600),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SLOW_GPU,
     .magnitude = 1.3,
     .fault_step = 200,
     .period_steps = 20,
     .on_steps = 10,
     .ending = {.incidents = 1,
                .incidents_cleared = 1,
                .kinds = KIND(SLOW),
                .scopes = SCOPE(RANK) | SCOPE(TRAY),
                .severity = 2,
                .damage = DAMAGE_GPU,
                .restarts = 1}},
    /* The tray is named, since its ranks alone never came to the collective; within it nothing
     * tells who waits for whom. The detector advises no replacement: most hangs are the software's,
     * and policy replaces only what is advised. So people are paged, the samples are kept, and the
     * job stays as it is until they have looked at it. */
    {.name = "hang",
     .summary = "one rank stops entering the collective and beats on; the others wait for it",
     .speed = 60,
     .duration_ns = SECONDS(1200),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_HANG,
     .fault_step = 120,
     .ending = {.incidents = 1,
                .kinds = KIND(HANG),
                .scopes = SCOPE(RANK) | SCOPE(TRAY),
                .severity = 1,
                .victims = true,
                .left_stuck = true}},
    /* Found at 3 or 4 per cent, which is recorded: the policy acts from 5 per cent on. It is told
     * again as it grows, and its ten minutes count from the first word. */
    {.name = "drift",
     .summary = "one GPU slows down by and by, to 1.3 times its time within 400 steps",
     .speed = 120,
     .duration_ns = SECONDS(3600),
     .linger_ns = SECONDS(180),
     .racks = 2,
     .trays_spare = 2,
     .compute_ms = 1700,
     .fault = FAULT_SLOW_GPU,
     .magnitude = 1.3,
     .fault_step = 200,
     .ramp_steps = 400,
     .ending = {.incidents = 1,
                .kinds = KIND(SLOW),
                .scopes = SCOPE(RANK) | SCOPE(TRAY),
                .severity = 2,
                .damage = DAMAGE_GPU,
                .restarts = 1}},
};

size_t scenario_count(void)
{
    return ARRAY_LEN(ROWS);
}

const struct scenario *scenario_at(size_t index)
{
    return &ROWS[index];
}

const struct scenario *scenario_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        if (strcmp(ROWS[i].name, name) == 0)
            return &ROWS[i];
    return NULL;
}

struct model_fault scenario_fault(const struct scenario *scenario, uint64_t seed)
{
    struct random random;
    struct cluster_config config = scenario_cluster(scenario, seed);
    const struct model_config *model = &config.model;
    random_seed(&random, seed ^ UINT64_C(0x5ca1ab1e));
    int32_t rack = (int32_t)random_below(&random, (uint32_t)scenario->racks);
    int32_t place = (int32_t)random_below(&random, (uint32_t)model->trays_used);
    int32_t in_rack = model->trays_used + model->trays_spare;
    return (struct model_fault){.kind = scenario->fault,
                                .rack = rack,
                                .tray = rack * in_rack + place,
                                .gpu = (int32_t)random_below(&random, (uint32_t)model->gpus),
                                .magnitude = scenario->magnitude,
                                .from_step = scenario->fault_step,
                                .ramp_steps = scenario->ramp_steps,
                                .period_steps = scenario->period_steps,
                                .on_steps = scenario->on_steps,
                                .reported = scenario->reported};
}

static void add_everyday_noise(struct cluster_config *config)
{
    config->model.checkpoint_steps = 90;
    config->model.eval_steps = 400;
    config->model.imbalance = 0.04;
    config->model.gc_probability = 1.0 / 500;
    config->happenings[config->happening_count++] = (struct cluster_happening){
        .kind = NODE_BLIPS, .tray = 5, .after_ns = SECONDS(2400), .for_ns = SECONDS(90)};
}

/* All spares are hidden; the one in the rack of the lost tray appears. */
static void hide_spares(const struct scenario *scenario, struct cluster_config *config,
                        uint64_t seed)
{
    struct random random;
    int32_t in_rack = config->model.trays_used + config->model.trays_spare;
    random_seed(&random, seed ^ UINT64_C(0x5ca1ab1e));
    int32_t rack = (int32_t)random_below(&random, (uint32_t)scenario->racks);
    for (int32_t r = 0; r < scenario->racks; r++)
        for (int32_t s = config->model.trays_used; s < in_rack; s++)
            config->hidden[config->hidden_count++] = r * in_rack + s;
    config->happenings[config->happening_count++] = (struct cluster_happening){
        .kind = NODE_APPEARS,
        .tray = rack * in_rack + config->model.trays_used,
        .after_ns = SECONDS(1800),
        .after_fault = true};
}

struct cluster_config scenario_cluster(const struct scenario *scenario, uint64_t seed)
{
    struct cluster_config config = cluster_config_default();
    struct model_config *model = &config.model;
    model->job = "default/rehearsal";
    model->seed = seed;
    model->racks = scenario->racks;
    model->spare_racks = scenario->spare_racks;
    model->trays_spare = scenario->trays_spare;
    model->compute_ms = scenario->compute_ms;
    model->checkpoint_steps = 50;
    model->imbalance = 0.01;
    model->dirt = (struct model_dirt){.lost = 0.01, .doubled = 0.005, .late = 0.005, .skew_ms = 15};
    if (scenario->tp > 0) {
        model->tp = scenario->tp;
        model->send_tp = true;
    }
    if (scenario->everyday_noise)
        add_everyday_noise(&config);
    if (scenario->spare_appears)
        hide_spares(scenario, &config, seed);
    return config;
}

struct cluster *scenario_build(const struct scenario *scenario, uint64_t seed)
{
    struct cluster_config config = scenario_cluster(scenario, seed);
    struct model_fault fault = scenario_fault(scenario, seed);
    struct cluster *cluster = cluster_new(&config);
    if (scenario->fault_step > 0)
        model_add_fault(cluster_model(cluster), &fault);
    return cluster;
}
