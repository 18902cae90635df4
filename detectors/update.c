/* What a running engine is told besides samples. A newer document: what was not known is taken
 * over, statistics stay. A start after a time without anybody who listened. */
#include "detectors/engine_state.h"

#include <assert.h>

/* Racks and trays of the document; a tray that stood in no known rack gets its rack. */
static void learn_trays(struct job *job, const struct job *document)
{
    for (int32_t t = 0; t < document->tray_count; t++) {
        const struct job_tray *tray = &document->trays[t];
        int32_t rack = JOB_NONE;
        if (tray->rack != JOB_NONE)
            rack = job_intern_rack(job, document->racks[tray->rack].name,
                                   document->racks[tray->rack].nvlink_domain);
        int32_t known = job_intern_tray(job, tray->node, rack);
        if (job->trays[known].rack == JOB_NONE)
            job->trays[known].rack = rack;
    }
}

static void learn_seats(struct job *job, const struct job *document)
{
    for (int32_t r = 0; r < job->world_size; r++) {
        const struct job_rank *seat = &document->ranks[r];
        if (job->ranks[r].tray != JOB_NONE || seat->tray == JOB_NONE)
            continue;
        job->ranks[r] = *seat;
        job->ranks[r].tray = job_find_tray(job, document->trays[seat->tray].node);
    }
}

void engine_update_job(struct engine *engine, const struct job *document)
{
    struct job *job = engine->job;
    assert(document->world_size == job->world_size);
    learn_trays(job, document);
    learn_seats(job, document);
    if (document->checkpoint_step != JOB_NONE) {
        job->checkpoint_step = document->checkpoint_step;
        job->checkpoint_time_ns = document->checkpoint_time_ns;
    }
    if (document->workload_json != NULL) {
        xfree(job->workload_json);
        job->workload_json = xstrdup(document->workload_json);
    }
    engine->grid_stale = true;
}

void engine_resume(struct engine *engine, int64_t now_ns)
{
    if (engine->now_ns == 0 || now_ns <= engine->now_ns)
        return;
    liveness_resume(&engine->live, engine->now_ns, now_ns);
    engine->ahead_ns = 0;
    engine->now_ns = now_ns;
    engine->is_resumed = true;
}

int64_t engine_hello_attempt(const struct engine *engine)
{
    return engine->hello_attempt;
}

void engine_know_attempt(struct engine *engine, int64_t attempt)
{
    engine->hello_attempt = attempt > engine->hello_attempt ? attempt : engine->hello_attempt;
}
