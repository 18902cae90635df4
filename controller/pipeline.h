/* One pass of data: samples in, records and actions out. It owns the order of things: observe
 * (feed, detect, fold) before act (plan, record, start), records durable before the action starts,
 * outcomes recorded after. broomd, `broom replay` and the simulation tests drive the same pipeline
 * through different ports.
 */
#ifndef BROOM_CONTROLLER_PIPELINE_H
#define BROOM_CONTROLLER_PIPELINE_H

#include "controller/ingest/lineproto.h"
#include "controller/jobs.h"
#include "remediation/core.h"

struct pipeline;

/* Called once a submitted batch: OK after the commit (or, for spoolable ones, once it is safe on
 * disk). */
typedef void pipeline_durable_fn(void *context, enum status status, const char *reason);

struct pipeline_ports {
    void *self;
    /* Makes records (JSON, one a line) durable, in the order of the calls. */
    void (*submit)(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context);
    /* The store has something else than we thought (another daemon, another version): the owner
     * stops, restores from the store and calls pipeline_restart. */
    void (*diverged)(void *self, const char *reason);
    /* A person should be told: the plan's notify step. Must return at once. */
    void (*notify)(void *self, const char *incident_ref, const char *params_json);
    /* Each record of the core as it is emitted, for the log; may be NULL. */
    void (*on_record)(void *self, const char *record);
    struct actuator *actuator; /* lent; NULL: every action is refused */
};

struct pipeline_params {
    struct jobs_limits limits;
    struct engine_params detection;
    int64_t describe_every_ns; /* how often the world is read unasked; default 15 s */
    int64_t idle_job_ns;       /* a silent job is forgotten after this; default 24 h */
    int64_t instance; /* of the process, such as its start: part of every key, so that the keys of
                         two runs never meet */
};

struct pipeline *pipeline_new(const struct pipeline_params *params,
                              const struct pipeline_ports *ports, struct remediation *take_core);
void pipeline_free(struct pipeline *pipeline); /* the actuator's calls must have ended before */
DEFINE_AUTO(struct pipeline, pipeline_free)

/* Replaces the core by one that was read from the store; engines and series stay, and verdicts that
 * hold are told to it again, under guards that are true for it (telemetry_ok is the pipeline's
 * own). A pause that the store may never have got is said again. */
void pipeline_restart(struct pipeline *pipeline, struct remediation *take_core,
                      struct remediation_guards guards, int64_t now_ns);

/* A refused line is told like a bad one: line number and cause. */
struct pipeline_write {
    struct view body;
    enum precision precision;
    int64_t default_time_ns; /* arrival, for lines without a timestamp; 0: such a line is bad */
    const char *source;      /* who sends: accuser of hardware events. "" unknown */
    const char *only_job;    /* lines of other jobs are refused; NULL: any */
    bool in_recording_time;  /* time passes as the lines tell it; now_ns is where it starts */
    lineproto_error_fn *on_error; /* may be NULL */
    void *context;
};
struct pipeline_written {
    int64_t lines, accepted, refused, bad_lines, fields;
    int64_t no_room; /* of the refused: the memory budget is used up */
};
struct pipeline_written pipeline_write(struct pipeline *pipeline,
                                       const struct pipeline_write *write, int64_t now_ns);

/* Lines that were recorded before a restart, so that engines and series know their jobs' past:
 * nothing is recorded, decided or acted on, and the verdicts that hold afterwards are told to the
 * next core (pipeline_restart). arrival_ns: when they came, as time passes in that past. */
void pipeline_warm(struct pipeline *pipeline, struct view lines, int64_t arrival_ns);
/* The past has been read: from then until now nobody listened. */
void pipeline_warmed(struct pipeline *pipeline, int64_t now_ns);

/* A job document. See jobs_put for errors. */
MUST_CHECK enum status pipeline_put_job(struct pipeline *pipeline, const struct job *document,
                                        int64_t now_ns, bool *ret_created, struct error *reterr);

/* A person's command; done is called when its records are durable (not at all when this fails).
 * Without the store only a pause is taken: done is called at once. */
MUST_CHECK enum status pipeline_command(struct pipeline *pipeline,
                                        const struct remediation_command *command, int64_t now_ns,
                                        pipeline_durable_fn *done, void *context,
                                        struct error *reterr);

/* Time passes: silence, deadlines, rollups, raw windows, the periodic look at the world. */
void pipeline_tick(struct pipeline *pipeline, int64_t now_ns);

/* What the owner knows of its surroundings. telemetry_ok is the pipeline's own. */
void pipeline_guards(struct pipeline *pipeline, bool lease_held, bool clock_trusted, bool store_up,
                     int64_t now_ns);
/* How often the world is read unasked, from now on. */
void pipeline_describe_every(struct pipeline *pipeline, int64_t every_ns);

/* Batches that failed while the store was away are submitted again. */
void pipeline_store_is_up(struct pipeline *pipeline);

/* Grows with every layout that became known or changed. */
int64_t pipeline_layouts(const struct pipeline *pipeline);

struct jobs *pipeline_jobs(struct pipeline *pipeline);
struct remediation *pipeline_core(struct pipeline *pipeline);
const struct world *
pipeline_world(const struct pipeline *pipeline); /* NULL before the first answer */

/* Every verdict as it is given, also in replay: for metrics, files and the screen. */
typedef void pipeline_verdict_fn(void *context, const struct live_job *live,
                                 const struct verdict *verdict);
void pipeline_on_verdict(struct pipeline *pipeline, pipeline_verdict_fn *fn, void *context);

struct pipeline_counts {
    int64_t samples[MEASUREMENT_COUNT];
    int64_t bad_lines, refused_lines, fields;
    int64_t verdicts[VERDICT_KIND_COUNT];
    int64_t records, batches, batches_failed;
    int64_t actions_started[VERB_COUNT], outcomes[OUTCOME_COUNT];
    int64_t rollups, raw_windows;
    bool telemetry_ok;
};
struct pipeline_counts pipeline_counts(const struct pipeline *pipeline);

/* The time of the last input. */
int64_t pipeline_now_ns(const struct pipeline *pipeline);

#endif
