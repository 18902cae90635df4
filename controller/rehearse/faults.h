/* What can go wrong with a simulated job: one table, magnitudes as seen in the wild. A fault begins
 * when the job first reaches from_step, stays with its hardware (a job that is moved away escapes
 * it), and ends when the job first reaches until_step.
 */
#ifndef BROOM_REHEARSE_FAULTS_H
#define BROOM_REHEARSE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
    FAULT_SLOW_GPU = 0, /* one GPU computes `magnitude` times as long, its SMs busy */
    FAULT_SLOW_HOST, /* a tray's four ranks stall on the host: own time times magnitude, SMs starve
                      */
    FAULT_SLOW_RACK, /* all GPUs of a rack: cooling, power cap */
    FAULT_RAIL, /* transfer over one rail times magnitude; of one tray's NIC where tray is set */
    FAULT_SWITCH_TRAY, /* an NVSwitch tray: NVLink transfer in the rack times magnitude */
    FAULT_MEMORY,      /* one GPU's memory is full: bursts of allocator retries */
    FAULT_DATA,        /* a tray's loader: data time grows by (magnitude - 1) of the step */
    FAULT_CONGESTION,  /* transfer of the whole job times about magnitude, unsteady */
    FAULT_REGRESSION,  /* every rank computes magnitude times as long */
    FAULT_NAN,         /* loss and grad_norm are not numbers */
    FAULT_LOSS_SPIKE,  /* loss and grad_norm times magnitude */
    FAULT_NIC_FLAP, /* one NIC is down for a moment: its transfer times magnitude, and it says so */
    FAULT_PCIE,     /* a NIC lost lanes: transfers over it times magnitude */
    FAULT_SDC,      /* a GPU computes wrongly now and then: its own grad_norm times magnitude */
    FAULT_STORAGE,  /* shared storage: everybody's data time grows by (magnitude - 1) of the step */
    FAULT_HANG,     /* one rank never enters the collective; everybody beats on */
    FAULT_TRAY_DEATH, /* a tray is gone within a step: its ranks are silent, the others hang */
    FAULT_RACK_DEATH, /* NVLink domain gone: its trays within 1 s, all other ranks within 7 s */
    FAULT_STORM,      /* a monitor accuses part `magnitude` of the trays; nothing is wrong */
    FAULT_KIND_COUNT
};

struct model_fault {
    enum fault_kind kind;
    int32_t rack; /* index; SLOW_RACK, SWITCH_TRAY, RACK_DEATH */
    int32_t tray; /* index over all racks; GPU, tray and NIC faults; -1: whole rail */
    int32_t gpu;  /* index in its tray, GPU faults; rail number of RAIL */
    double magnitude;
    int64_t from_step;
    int64_t until_step;   /* 0: for ever */
    int64_t ramp_steps;   /* drift: grows to its magnitude over so many steps */
    int64_t period_steps; /* flapping: on for on_steps of every period_steps; 0: steady */
    int64_t on_steps;
    bool reported; /* SWITCH_TRAY: the rack's monitor tells of it once, switch tray number `gpu` */
};

const char *fault_kind_name(enum fault_kind kind); /* "slow_gpu" */
/* The job cannot finish the step in which this fault begins. */
bool fault_stops_job(enum fault_kind kind);
/* 0 (off) to 1 (full) while the job is at `step`, the fault having begun at begun_step. */
double fault_activity(const struct model_fault *fault, int64_t begun_step, int64_t step);

struct model;
/* Adds the fault's part to the model's effects of one step. */
void fault_apply(struct model *model, const struct model_fault *fault, double activity);

#endif
