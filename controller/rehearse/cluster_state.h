/* The simulated cluster: nodes, one job, a scheduler, and what is done to them. Pure: time is an
 * argument, answers are values, and everything done to it is written to its own log, so that what a
 * controller claims can be held against it. cluster_http.c puts it behind HTTP; tests/sim drives it
 * directly.
 */
#ifndef BROOM_REHEARSE_CLUSTER_STATE_H
#define BROOM_REHEARSE_CLUSTER_STATE_H

#include "controller/base/json.h"
#include "controller/rehearse/model.h"
#include "remediation/actuator.h"

/* Something that happens to a node by itself, counted from the job's start. */
struct cluster_happening {
    enum {
        NODE_APPEARS,
        NODE_BLIPS
    } kind; /* a hidden tray joins as a spare; NotReady for a while */
    int32_t tray;
    int64_t after_ns;
    int64_t for_ns;   /* NODE_BLIPS */
    bool after_fault; /* counted from the first death of a tray instead */
};

enum { CLUSTER_HAPPENINGS_MAX = 8, CLUSTER_HIDDEN_MAX = 32 };

struct cluster_config {
    struct model_config model; /* its job name is the workload's too */
    int64_t grace_ns;          /* a dead node is marked NotReady after this; default 40 s */
    int64_t restart_ns;        /* restart accepted to new processes; default 90 s */
    int64_t restarts_max;      /* the scheduler's own budget (maxRetry); default 3 */
    bool swallow_restart;      /* accepts restarts and does nothing */
    int32_t hidden[CLUSTER_HIDDEN_MAX]; /* trays that are not there until a happening says so */
    int32_t hidden_count;
    struct cluster_happening happenings[CLUSTER_HAPPENINGS_MAX];
    int32_t happening_count;
};
struct cluster_config cluster_config_default(void);

struct cluster;
struct cluster *cluster_new(const struct cluster_config *config);
void cluster_free(struct cluster *cluster);
DEFINE_AUTO(struct cluster, cluster_free)
struct model *cluster_model(struct cluster *cluster); /* for adding faults and looking at the job */

int64_t cluster_now_ns(const struct cluster *cluster); /* 0 before the start */

void cluster_start(struct cluster *cluster, int64_t now_ns);
/* Lets time pass; gives all samples of ranks and of the node controller up to until_ns. */
void cluster_advance(struct cluster *cluster, int64_t until_ns, model_sample_fn *fn, void *context);

struct cluster_operation {
    char id[OPERATION_ID_BYTES];
    enum verb verb;
    bool running; /* else it ended with outcome */
    enum outcome outcome;
    char reason[256];
    int64_t started_ns;
    int32_t asked; /* times that it was asked for; done once all the same */
};

/* Carries out {"verb","incident","job","nodes":[],"spares":[],"reason"}; an id that was there
 * before is answered as it stands and not done again. ERR_INVALID: the body makes no sense. */
MUST_CHECK enum status cluster_operate(struct cluster *cluster, const char *id,
                                       const struct json *body, int64_t now_ns,
                                       const struct cluster_operation **ret_operation,
                                       struct error *reterr);
const struct cluster_operation *cluster_find_operation(const struct cluster *cluster,
                                                       const char *id);
/* {"id","state":"running|done","outcome","reason"} */
void cluster_write_operation(const struct cluster_operation *operation, struct json_writer *writer);
/* {"now_ns","nodes":[...],"jobs":[...]}, the members of struct world by name, and for people
 * "last_step", "last_step_ms", "attempt", "attempt_steps" of the job. */
void cluster_write_world(const struct cluster *cluster, struct json_writer *writer);
/* The job document that the site's scheduler would hand out: formats.md section 2. */
void cluster_write_job(const struct cluster *cluster, struct text *out);

/* Everything that was done to it and happened in it, JSON lines: {"time_ns","what":...}.
 * Operations: what = operation, with id, verb, incident, nodes, spares, outcome, reason, repeated.
 */
struct view cluster_log(const struct cluster *cluster);

#endif
