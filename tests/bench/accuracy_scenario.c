/* Families of faults and of healthy jobs that look ill. */
#include "accuracy_scenario.h"

#include "controller/rehearse/random.h"

#include <stdio.h>
#include <string.h>

enum {
    RANKS_A_RACK = 64,
    TRAY_GPUS = 4,
    RACK_TRAYS = 18,
    RACK_TRAYS_USED = 16,
    AFTER_ONSET_STEPS = 220
};

#define BIT(x) (1u << (x))
static const unsigned STOPS = BIT(VERDICT_HANG) | BIT(VERDICT_CRASH) | BIT(VERDICT_FAULT);

/* What is guilty, so what has to be named. */
enum target { TARGET_RANK, TARGET_TRAY, TARGET_RACK, TARGET_RAIL, TARGET_JOB };

enum layout { ANY = -1, TP4 = 0, TP4_PP4, DDP, TP8, EP64, TP4_PP2, LAYOUT_COUNT };

struct fault_family {
    const char *name;
    enum fault_kind kind;
    enum target target;
    double magnitude;
    unsigned kinds, causes;
    int layout;
    int64_t ramp, period, on;
    bool from_start, whole_tray, pair;
    int xid;
};

#define SLOW BIT(VERDICT_SLOW)
#define GPU  BIT(CAUSE_GPU)
#define JOB  (BIT(VERDICT_REGRESSION) | BIT(VERDICT_SLOW))

static const struct fault_family FAULTS[] = {
    {"slow GPU 3 %", FAULT_SLOW_GPU, TARGET_RANK, 1.03, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"slow GPU 5 %", FAULT_SLOW_GPU, TARGET_RANK, 1.05, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"slow GPU 10 %", FAULT_SLOW_GPU, TARGET_RANK, 1.10, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"slow GPU 20 %", FAULT_SLOW_GPU, TARGET_RANK, 1.20, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"slow GPU 34 %", FAULT_SLOW_GPU, TARGET_RANK, 1.34, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"always slow GPU", FAULT_SLOW_GPU, TARGET_RANK, 1.10, SLOW, GPU, ANY, 0, 0, 0, 1, 0, 0, 0},
    {"drift", FAULT_SLOW_GPU, TARGET_RANK, 1.10, SLOW, GPU, ANY, 120, 0, 0, 0, 0, 0, 0},
    {"flapping", FAULT_SLOW_GPU, TARGET_RANK, 1.34, SLOW, GPU, ANY, 0, 20, 10, 0, 0, 0, 0},
    {"two slow GPUs", FAULT_SLOW_GPU, TARGET_RANK, 1.20, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 1, 0},
    {"host stall", FAULT_SLOW_HOST, TARGET_TRAY, 1.10, SLOW, BIT(CAUSE_HOST), ANY, 0, 0, 0, 0, 0, 0,
     0},
    {"host stall 22 %", FAULT_SLOW_HOST, TARGET_TRAY, 1.22, SLOW, BIT(CAUSE_HOST), ANY, 0, 0, 0, 0,
     0, 0, 0},
    {"slow tray", FAULT_SLOW_GPU, TARGET_TRAY, 1.10, SLOW, GPU, ANY, 0, 0, 0, 0, 1, 0, 0},
    {"slow rack", FAULT_SLOW_RACK, TARGET_RACK, 1.10, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"slow rack 5 %", FAULT_SLOW_RACK, TARGET_RACK, 1.05, SLOW, GPU, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"rail", FAULT_RAIL, TARGET_RAIL, 2.0, SLOW, BIT(CAUSE_NETWORK), TP4, 0, 0, 0, 0, 0, 0, 0},
    {"NVSwitch tray", FAULT_SWITCH_TRAY, TARGET_RACK, 4.0, SLOW, BIT(CAUSE_NVLINK), TP8, 0, 0, 0, 0,
     0, 0, 0},
    {"NVSwitch tray, wide EP", FAULT_SWITCH_TRAY, TARGET_RACK, 3.0, SLOW, BIT(CAUSE_NVLINK), EP64,
     0, 0, 0, 0, 0, 0, 0},
    {"memory", FAULT_MEMORY, TARGET_RANK, 1.30, SLOW, BIT(CAUSE_MEMORY), ANY, 0, 0, 0, 0, 0, 0, 0},
    {"data loader", FAULT_DATA, TARGET_TRAY, 1.10, SLOW, BIT(CAUSE_DATA), ANY, 0, 0, 0, 0, 0, 0, 0},
    {"lasting congestion", FAULT_CONGESTION, TARGET_JOB, 3.0, JOB, BIT(CAUSE_NETWORK), ANY, 0, 0, 0,
     0, 0, 0, 0},
    {"job regression", FAULT_REGRESSION, TARGET_JOB, 1.05, JOB, 0, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"NaN", FAULT_NAN, TARGET_JOB, 1, BIT(VERDICT_NUMERIC), 0, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"loss spike", FAULT_LOSS_SPIKE, TARGET_JOB, 5, BIT(VERDICT_NUMERIC), 0, ANY, 0, 0, 0, 0, 0, 0,
     0},
    {"NIC flap", FAULT_NIC_FLAP, TARGET_TRAY, 50, BIT(VERDICT_FAULT), BIT(CAUSE_NETWORK), ANY, 0,
     60, 1, 0, 0, 0, 0},
    {"PCIe lane loss", FAULT_PCIE, TARGET_RAIL, 3.0, SLOW, BIT(CAUSE_NETWORK), TP4, 0, 0, 0, 0, 0,
     0, 0},
    {"silent corruption", FAULT_SDC, TARGET_RANK, 4, BIT(VERDICT_NUMERIC), GPU, ANY, 0, 0, 0, 0, 0,
     0, 0},
    {"storage", FAULT_STORAGE, TARGET_JOB, 1.10, JOB, BIT(CAUSE_STORAGE), ANY, 0, 0, 0, 0, 0, 0, 0},
    {"hang", FAULT_HANG, TARGET_RANK, 1, STOPS, 0, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"tray death", FAULT_TRAY_DEATH, TARGET_TRAY, 1, STOPS, 0, ANY, 0, 0, 0, 0, 0, 0, 0},
    {"Xid 79 and death", FAULT_TRAY_DEATH, TARGET_TRAY, 1, STOPS, 0, ANY, 0, 0, 0, 0, 0, 0, 79},
    {"NVLink domain loss", FAULT_RACK_DEATH, TARGET_RACK, 1, STOPS, 0, ANY, 0, 0, 0, 0, 0, 0, 0},
};

enum negative {
    QUIET,
    USUAL,
    NOISY,
    CORRELATED,
    IMBALANCE_SMALL,
    IMBALANCE,
    STAGE,
    STAGE_LARGE,
    CONGESTION,
    CHECKPOINT,
    CHECKPOINT_UNMARKED,
    EVALUATION,
    GC_RARE,
    GC_FREQUENT,
    EXPERTS,
    RANK0,
    SILICON,
    XID_APPLICATION,
    DIRTY,
    NEGATIVE_COUNT
};

static const char *const NEGATIVES[] = {[QUIET] = "quiet",
                                        [USUAL] = "usual noise",
                                        [NOISY] = "noise 2 %",
                                        [CORRELATED] = "lag-1 of 0.85",
                                        [IMBALANCE_SMALL] = "imbalance 2 %",
                                        [IMBALANCE] = "imbalance 11 %",
                                        [STAGE] = "last stage 1.4",
                                        [STAGE_LARGE] = "last stage 2.07",
                                        [CONGESTION] = "spell of congestion",
                                        [CHECKPOINT] = "checkpoints",
                                        [CHECKPOINT_UNMARKED] = "checkpoints, unmarked",
                                        [EVALUATION] = "evaluations",
                                        [GC_RARE] = "GC 1/500",
                                        [GC_FREQUENT] = "GC 1/50",
                                        [EXPERTS] = "busy experts",
                                        [RANK0] = "rank 0 duties",
                                        [SILICON] = "silicon 1 %",
                                        [XID_APPLICATION] = "application Xid",
                                        [DIRTY] = "lost, doubled, late lines"};
_Static_assert(ARRAY_LEN(NEGATIVES) == NEGATIVE_COUNT, "a name for each");

int scenario_fault_families(void)
{
    return (int)ARRAY_LEN(FAULTS);
}

int scenario_slow_gpu_families(void)
{
    int count = 0;

    while (strncmp(FAULTS[count].name, "slow GPU", 8) == 0)
        count++;
    return count;
}

bool scenario_is_calm(double noise, double lag1)
{
    return noise < 0.0041 && lag1 < 0.31;
}

int scenario_negative_families(void)
{
    return NEGATIVE_COUNT;
}

static void set_layout(struct scenario *scenario, int layout)
{
    static const int32_t SHAPES[LAYOUT_COUNT][3] = {{4, 1, 1}, {4, 4, 1},  {1, 1, 1},
                                                    {8, 1, 1}, {1, 1, 64}, {4, 2, 1}};

    scenario->layout = layout;
    scenario->config.tp = SHAPES[layout][0];
    scenario->config.pp = SHAPES[layout][1];
    scenario->config.ep = SHAPES[layout][2];
}

/* What jobs differ in, be they healthy or not. */
static void set_background(struct scenario *scenario, struct random *random,
                           const struct scenario_sizes *sizes)
{
    static const double NOISE[][2] = {{0.002, 0.1}, {0.004, 0.3}, {0.004, 0.1}, {0.01, 0.5}};
    struct model_config *config = &scenario->config;
    uint32_t noise = random_below(random, (uint32_t)ARRAY_LEN(NOISE));

    *config = model_config_default();
    config->job = "bench/accuracy";
    config->seed = random_bits(random);
    config->racks = sizes->racks[random_below(random, (uint32_t)sizes->count)];
    config->noise = NOISE[noise][0];
    config->noise_lag1 = NOISE[noise][1];
    config->send_recv = config->send_tp = config->send_ep = config->send_data = true;
    set_layout(scenario, (int)random_below(random, LAYOUT_COUNT));
    if (random_unit(random) < 0.15 && config->ep == 1)
        config->compute = COMPUTE_INCLUSIVE;
    if (random_unit(random) < 0.2)
        config->gc_probability = 1.0 / 500;
    if (random_unit(random) < 0.3)
        config->checkpoint_steps = 70;
    if (random_unit(random) < 0.3)
        config->dirt = (struct model_dirt){
            .lost = 0.001, .doubled = 0.001, .late = 0.005, .skew_ms = 10};
}

static void set_negative(struct scenario *scenario, enum negative kind, struct random *random)
{
    struct model_config *config = &scenario->config;
    int64_t middle = scenario->steps / 2;

    if (kind == QUIET)
        config->noise = 0.001;
    if (kind == NOISY)
        config->noise = 0.02;
    if (kind == CORRELATED)
        config->noise = 0.01, config->noise_lag1 = 0.85;
    if (kind == IMBALANCE_SMALL || kind == IMBALANCE)
        config->imbalance = kind == IMBALANCE ? 0.11 : 0.02;
    if (kind == STAGE || kind == STAGE_LARGE) {
        set_layout(scenario, TP4_PP4);
        config->last_stage_ratio = kind == STAGE ? 1.4 : 2.07;
    }
    if (kind == CONGESTION)
        scenario->faults[scenario->fault_count++] = (struct model_fault){.kind = FAULT_CONGESTION,
                                                                         .tray = -1,
                                                                         .magnitude = 3,
                                                                         .from_step = middle,
                                                                         .until_step = middle + 10};
    if (kind == CHECKPOINT || kind == CHECKPOINT_UNMARKED)
        config->checkpoint_steps = 25;
    if (kind == EVALUATION)
        config->eval_steps = 60;
    config->send_marks = kind != CHECKPOINT_UNMARKED;
    if (kind == GC_RARE || kind == GC_FREQUENT)
        config->gc_probability = kind == GC_RARE ? 1.0 / 500 : 1.0 / 50;
    if (kind == EXPERTS) {
        set_layout(scenario, EP64);
        config->compute = COMPUTE_KERNEL;
        /* Every second job: busy for a while by some per cent, or steadily by much for few steps.
         */
        if (config->seed % 2 == 0)
            config->expert_imbalance = 0.05;
        else
            config->expert_burst_probability = 0.08, config->expert_burst = 0.3;
    }
    if (kind == RANK0)
        config->rank0_ratio = 1.02 + 0.05 * random_unit(random);
    if (kind == SILICON)
        config->gpu_offset = 0.008;
    if (kind == XID_APPLICATION) {
        static const int CODES[] = {13, 31, 43, 45};
        scenario->xid = CODES[random_below(random, (uint32_t)ARRAY_LEN(CODES))];
        scenario->xid_tray = 3;
    }
    if (kind == DIRTY)
        config->dirt = (struct model_dirt){
            .lost = 0.005, .doubled = 0.005, .late = 0.02, .nan = 0.001, .skew_ms = 10};
}

static void add_truth(struct scenario *scenario, const struct fault_family *family,
                      const struct model_fault *fault)
{
    struct truth *truth = &scenario->truths[scenario->truth_count++];
    bool is_tray = family->target == TARGET_RANK || family->target == TARGET_TRAY;

    *truth = (struct truth){.tray = is_tray ? fault->tray : JOB_NONE,
                            .rack = family->target == TARGET_RACK ? fault->rack : JOB_NONE,
                            .kinds = family->kinds,
                            .causes = family->causes,
                            .onset_step = fault->from_step,
                            .magnitude = family->magnitude};
}

static void set_fault(struct scenario *scenario, const struct fault_family *family,
                      struct random *random)
{
    int64_t onset = family->from_start ? 0 : 60 + (int64_t)random_below(random, 50);
    int32_t racks = scenario->config.racks;

    if (family->layout != ANY)
        set_layout(scenario, family->layout);
    if (family->layout == TP8 || family->layout == EP64)
        scenario->config.compute = COMPUTE_KERNEL;
    scenario->stops = fault_stops_job(family->kind);
    scenario->info_counts = family->pair;
    scenario->steps = onset + AFTER_ONSET_STEPS;
    for (int i = 0; i < (family->pair ? 2 : 1); i++) {
        int32_t rack = (int32_t)random_below(random, (uint32_t)racks);
        struct model_fault fault = {.kind = family->kind,
                                    .rack = rack,
                                    .tray = rack * RACK_TRAYS +
                                            (int32_t)random_below(random, RACK_TRAYS_USED),
                                    .gpu = (int32_t)random_below(random, TRAY_GPUS),
                                    .magnitude = family->magnitude,
                                    .from_step = onset,
                                    .ramp_steps = family->ramp,
                                    .period_steps = family->period,
                                    .on_steps = family->on};
        if (i == 1 && fault.tray == scenario->faults[0].tray)
            fault.tray = fault.tray % RACK_TRAYS == 0 ? fault.tray + 1 : fault.tray - 1;
        if (family->xid != 0) {
            scenario->xid = family->xid;
            scenario->xid_tray = fault.tray;
        }
        add_truth(scenario, family, &fault);
        if (family->kind == FAULT_RAIL)
            fault.tray = -1;
        for (int32_t g = 0; g < (family->whole_tray ? TRAY_GPUS : 1); g++) {
            fault.gpu = family->whole_tray ? g : fault.gpu;
            scenario->faults[scenario->fault_count++] = fault;
        }
    }
}

struct scenario scenario_make(bool negative, int index, uint64_t seed,
                              const struct scenario_sizes *sizes)
{
    struct scenario scenario = {.negative = negative, .index = index, .seed = seed, .steps = 240};
    struct random random;
    int family = index % (negative ? (int)NEGATIVE_COUNT : (int)ARRAY_LEN(FAULTS));

    random_seed(&random, seed * UINT64_C(1000003) + (uint64_t)index * 2 + negative);
    set_background(&scenario, &random, sizes);
    scenario.family = negative ? NEGATIVES[family] : FAULTS[family].name;
    if (negative)
        set_negative(&scenario, (enum negative)family, &random);
    else
        set_fault(&scenario, &FAULTS[family], &random);
    return scenario;
}

static void accept_component(struct truth *truth, enum scope scope, const char *id)
{
    struct component *component = &truth->accepted[truth->accepted_count++];

    component->scope = scope;
    (void)snprintf(component->id, sizeof component->id, "%s", id);
}

static int32_t rank_of(const struct model *model, int32_t ranks, int32_t tray, int32_t gpu)
{
    for (int32_t r = 0; r < ranks; r++)
        if (model_tray_of_rank(model, r) == tray)
            return r + gpu;
    return JOB_NONE;
}

static int replica_of(const struct scenario *scenario, int32_t rank)
{
    int32_t world = scenario->config.racks * RANKS_A_RACK;
    int32_t replicas = world / scenario->config.tp / scenario->config.pp;

    return rank / scenario->config.tp % replicas;
}

void scenario_name(struct scenario *scenario, const struct model *model)
{
    const struct fault_family *family = &FAULTS[scenario->index % (int)ARRAY_LEN(FAULTS)];
    int32_t ranks = scenario->config.racks * RANKS_A_RACK;
    char number[16];

    for (int i = 0; i < scenario->truth_count; i++) {
        struct truth *truth = &scenario->truths[i];
        int32_t gpu = scenario->faults[i].gpu;
        truth->accepted_count = 0;
        (void)snprintf(number, sizeof number, "%d",
                       family->target == TARGET_RAIL ? gpu
                                                     : rank_of(model, ranks, truth->tray, gpu));
        if (family->target == TARGET_RANK)
            accept_component(truth, SCOPE_RANK, number);
        if (truth->tray != JOB_NONE)
            accept_component(truth, SCOPE_TRAY, model_tray_name(model, truth->tray));
        if (truth->rack != JOB_NONE)
            accept_component(truth, SCOPE_RACK, model_rack_name(model, truth->rack));
        if (family->kind ==
            FAULT_HANG) { /* its tensor and pipeline neighbours stop in compute as it does */
            (void)snprintf(number, sizeof number, "%d",
                           replica_of(scenario, rank_of(model, ranks, truth->tray, gpu)));
            accept_component(truth, SCOPE_REPLICA, number);
        }
        if (truth->rack != JOB_NONE &&
            scenario->config.ep == RANKS_A_RACK) { /* the same 64 ranks by another name */
            (void)snprintf(number, sizeof number, "ep:%d", (int)truth->rack);
            accept_component(truth, SCOPE_GROUP, number);
        }
        if (family->target == TARGET_RAIL)
            accept_component(truth, SCOPE_RAIL, number);
        if (family->target == TARGET_JOB)
            accept_component(truth, SCOPE_JOB, scenario->config.job);
    }
}
