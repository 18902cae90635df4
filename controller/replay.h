/* The whole pipeline on a recording: engines, incidents, policy and plans in the recording's time,
 * against a cluster that is only pretended. Nothing outside the process is touched.
 */
#ifndef BROOM_CONTROLLER_REPLAY_H
#define BROOM_CONTROLLER_REPLAY_H

#include "controller/pipeline.h"

struct replay_params {
    const char *recording;            /* *.lp, *.lp.gz, *.lp.zst; "-" is stdin */
    const struct job *job;            /* lent; NULL: jobs come from hello lines */
    struct policy_set *take_policies; /* NULL: no policy, everything is only recorded */
    enum mode mode;                   /* of the daemon that is pretended */
    struct engine_params detection;
    /* Each record as broomd would have written it; lent. */
    void (*on_record)(void *context, const char *record);
    pipeline_verdict_fn *on_verdict; /* may be NULL */
    lineproto_error_fn *on_bad_line; /* may be NULL */
    void *context;
};

struct replay_result {
    struct pipeline_written written;
    int64_t from_ns, to_ns; /* recording time */
    int64_t verdicts, incidents;
};

MUST_CHECK enum status replay_run(const struct replay_params *params,
                                  struct replay_result *ret_result, struct error *reterr);

#endif
