/* A small synchronous job for detector tests: everything about a rank and step that a test wants to
 * say is an array entry, the rest is noise. One tray holds four ranks, one rack sixteen trays.
 */
#ifndef BROOM_TESTS_UNIT_DETECTORS_FEED_H
#define BROOM_TESTS_UNIT_DETECTORS_FEED_H

#include "detectors/engine.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FEED_RANKS_MAX = 512, FEED_VERDICTS_MAX = 64 };

struct feed {
    struct job *job;
    struct engine *engine;
    uint64_t random;
    int64_t now_ns;
    int64_t step;
    double noise;                    /* deviation of a rank's own work */
    double slow[FEED_RANKS_MAX];     /* own work times this */
    double stall_ms[FEED_RANKS_MAX]; /* host time on top, SMs starving */
    double data_ms[FEED_RANKS_MAX];  /* waiting for data, before the work; 0 for all: not sent */
    double mem[FEED_RANKS_MAX];
    double gradient[FEED_RANKS_MAX]; /* factor on its own norm; 0 for all: one norm for everybody */
    double transfer_ms;
    double pause_ms; /* of the whole job, in the next step only */
    double loss;
    bool nan_grad;
    bool send_compute, send_beats;
    bool inclusive; /* compute holds the waits in the tensor group, and tp_ms tells them */
    struct verdict verdicts[FEED_VERDICTS_MAX];
    int count;
};

static inline struct job *feed_job(int32_t ranks, int32_t tp)
{
    struct job *job = job_new("team/job", ranks);
    char name[32];

    job->size[DIMENSION_TP] = tp;
    job->size[DIMENSION_DP] = ranks / tp;
    job->compute = COMPUTE_KERNEL;
    for (int32_t r = 0; r < ranks; r++) {
        (void)snprintf(name, sizeof name, "rack%d", (int)(r / 64));
        int32_t rack = job_intern_rack(job, name, NULL);
        (void)snprintf(name, sizeof name, "node%d", (int)(r / 4));
        job->ranks[r] = (struct job_rank){.tray = job_intern_tray(job, name, rack),
                                          .gpu = (int16_t)(r % 4),
                                          .rail = (int16_t)(r % 4)};
    }
    return job;
}

static inline void feed_open_job(struct feed *feed, struct job *job)
{
    struct engine_params params = engine_params_default();
    int32_t ranks = job->world_size;

    memset(feed, 0, sizeof *feed);
    feed->job = job;
    feed->engine = engine_new(feed->job, &params);
    feed->random = test_seed();
    feed->now_ns = INT64_C(1780000000000000000);
    feed->noise = 0.005;
    feed->transfer_ms = 60;
    feed->loss = 3;
    feed->send_compute = true;
    for (int32_t r = 0; r < ranks; r++) {
        feed->slow[r] = 1;
        feed->mem[r] = 0.76;
    }
}

static inline void feed_open(struct feed *feed, int32_t ranks, int32_t tp)
{
    feed_open_job(feed, feed_job(ranks, tp));
}

/* One rank a replica and stage; so many of them exchange tokens. */
static inline void feed_open_experts(struct feed *feed, int32_t ranks, int32_t ep, int32_t pp,
                                     enum compute_meaning compute)
{
    struct job *job = feed_job(ranks, 1);

    job->size[DIMENSION_EP] = ep;
    job->size[DIMENSION_PP] = pp;
    job->size[DIMENSION_DP] = ranks / ep / pp;
    job->compute = compute;
    feed_open_job(feed, job);
}

static inline void feed_close(struct feed *feed)
{
    for (int i = 0; i < feed->count; i++)
        verdict_done(&feed->verdicts[i]);
    engine_free(feed->engine);
    job_free(feed->job);
}

static inline void feed_take(struct feed *feed)
{
    struct verdict verdict;

    while (engine_next(feed->engine, &verdict)) {
        if (feed->count < FEED_VERDICTS_MAX)
            feed->verdicts[feed->count++] = verdict;
        else
            verdict_done(&verdict);
    }
}

static inline void feed_set(struct sample *sample, enum field field, double value)
{
    sample->values[field] = value;
    sample->present |= UINT64_C(1) << field;
}

static inline void feed_send(struct feed *feed, struct sample *sample)
{
    sample->time_ns = feed->now_ns;
    engine_feed(feed->engine, sample);
    feed_take(feed);
}

/* One step of every rank: 500 ms of own work, the tensor or expert group and then the job wait for
 * the last. */
static inline void feed_step(struct feed *feed)
{
    int32_t ranks = feed->job->world_size, ep = feed->job->size[DIMENSION_EP];
    int32_t together = feed->job->size[DIMENSION_TP] * ep;
    bool inclusive = feed->inclusive || feed->job->compute == COMPUTE_INCLUSIVE;
    double own[FEED_RANKS_MAX], group[FEED_RANKS_MAX] = {0}, last = 0, data = 0;

    for (int32_t r = 0; r < ranks; r++) {
        own[r] = 500 * feed->slow[r] * (1 + feed->noise * test_random_normal(&feed->random)) +
                 feed->stall_ms[r];
        group[r / together] = fmax(group[r / together], own[r] + feed->data_ms[r]);
        data += feed->data_ms[r];
        last = fmax(last, group[r / together]);
    }
    double step_ms = last + feed->transfer_ms + 10 + feed->pause_ms;
    feed->now_ns += (int64_t)(step_ms * 1e6);
    for (int32_t r = 0; r < ranks; r++) {
        struct sample sample = {.measurement = MEASUREMENT_STEP, .rank = r};
        double busy = own[r] - feed->stall_ms[r];
        double waits = group[r / together] - own[r] - feed->data_ms[r];

        feed_set(&sample, FIELD_STEP, (double)feed->step);
        feed_set(&sample, FIELD_STEP_MS, step_ms);
        feed_set(&sample, FIELD_ALLREDUCE_MS,
                 last - group[r / together] +
                     feed->transfer_ms * (1 + 0.02 * test_random_unit(&feed->random)));
        if (feed->send_compute)
            feed_set(&sample, FIELD_COMPUTE_MS, own[r] + (inclusive ? waits + 2 : 0));
        if (feed->inclusive)
            feed_set(&sample, FIELD_TP_MS, waits + 2);
        if (data > 0)
            feed_set(&sample, FIELD_DATA_MS, feed->data_ms[r]);
        feed_set(&sample, FIELD_SM,
                 (0.9 * busy + 0.2 * (step_ms - own[r])) / step_ms *
                     (1 + 0.01 * test_random_normal(&feed->random)));
        feed_set(&sample, FIELD_MEM, feed->mem[r]);
        double own_norm = feed->gradient[r] * (0.7 + 0.2 * test_random_unit(&feed->random));
        feed_set(&sample, FIELD_GRAD_NORM,
                 feed->nan_grad ? (double)NAN
                 : own_norm > 0 ? own_norm
                                : 0.8);
        if (r == 0)
            feed_set(&sample, FIELD_LOSS, feed->loss);
        feed_send(feed, &sample);
    }
    feed->pause_ms = 0;
    feed->step++;
}

static inline void feed_steps(struct feed *feed, int steps)
{
    for (int i = 0; i < steps; i++)
        feed_step(feed);
}

static inline void feed_beat(struct feed *feed, int32_t rank, const char *phase)
{
    struct sample sample = {.measurement = MEASUREMENT_BEAT, .rank = rank, .phase = view_of(phase)};

    feed_set(&sample, FIELD_STEP, (double)feed->step);
    feed_send(feed, &sample);
}

/* Beats of all ranks every ten seconds for so long; silent is by rank, computing too. */
static inline void feed_stuck(struct feed *feed, int seconds, const bool *silent,
                              const bool *computing)
{
    for (int s = 0; s < seconds; s += 10) {
        feed->now_ns += INT64_C(10000000000);
        for (int32_t r = 0; r < feed->job->world_size; r++)
            if (!silent[r])
                feed_beat(feed, r, computing[r] ? "compute" : "allreduce");
    }
}

static inline void feed_event(struct feed *feed, const char *kind, const char *host,
                              const char *gpu, double code)
{
    struct sample sample = {.measurement = MEASUREMENT_EVENT,
                            .rank = RANK_NONE,
                            .kind = view_of(kind),
                            .host = view_of(host),
                            .gpu = view_of(gpu)};

    if (code >= 0)
        feed_set(&sample, FIELD_CODE, code);
    feed_send(feed, &sample);
}

/* The first verdict of a kind; NULL when there is none. */
static inline const struct verdict *feed_find(const struct feed *feed, enum verdict_kind kind)
{
    for (int i = 0; i < feed->count; i++)
        if (feed->verdicts[i].kind == kind)
            return &feed->verdicts[i];
    return NULL;
}

static inline int feed_count(const struct feed *feed, enum verdict_kind kind)
{
    int n = 0;

    for (int i = 0; i < feed->count; i++)
        n += feed->verdicts[i].kind == kind;
    return n;
}

#endif
