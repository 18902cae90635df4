/* The processes of a rehearsal: the cluster, broomd, and the commands that keep what they leave. */
#ifndef BROOM_REHEARSE_REHEARSAL_PROCESSES_H
#define BROOM_REHEARSE_REHEARSAL_PROCESSES_H

#include "controller/base/json.h"
#include "controller/rehearse/child.h"
#include "controller/rehearse/rehearsal.h"
#include "controller/rehearse/rehearsal_files.h"

#include <stdio.h>

enum { URL_BYTES = 64 };

struct processes {
    struct files files;
    char programs[PATH_BYTES]; /* the folder of broom and broomd */
    struct child cluster, broomd;
    int broomd_starts;
    char broomd_log[32]; /* name of the newest one's log: broomd-N.log for the Nth start */
    char cluster_url[URL_BYTES], api_url[URL_BYTES], health_url[URL_BYTES];
};

/* Starts both and waits until they are ready. Pipeline time starts to run at its speed. */
MUST_CHECK enum status processes_start(struct processes *processes,
                                       const struct rehearsal_options *options,
                                       struct error *reterr);
/* Kills broomd without a word, starts it again and waits until it is ready. */
MUST_CHECK enum status processes_crash(struct processes *processes,
                                       const struct rehearsal_options *options,
                                       struct error *reterr);
/* Not OK when one of them has ended. */
MUST_CHECK enum status processes_check(struct processes *processes, struct error *reterr);
/* The last lines of both logs, for a run that failed. */
void processes_show_logs(const struct processes *processes, FILE *out);
/* INC-n.tar of each incident into the out folder, while broomd lives. */
MUST_CHECK enum status processes_export(struct processes *processes, const struct json *incidents,
                                        struct error *reterr);
/* Ends both; a second call does nothing. */
void processes_stop(struct processes *processes);
/* The other files into the out folder, once both have ended. */
MUST_CHECK enum status processes_keep(struct processes *processes, struct error *reterr);

#endif
