/* What a restart must not forget, kept in files beside the recorder's so that it needs no database:
 * the jobs' documents. With them and the recorder's last minutes the engines of a new process know
 * what those of the old one knew.
 */
#ifndef BROOM_CONTROLLER_WARM_H
#define BROOM_CONTROLLER_WARM_H

#include "controller/pipeline.h"

/* Writes the documents of all live jobs to dir/jobs.jsonl. */
MUST_CHECK enum status warm_save(const char *dir, struct pipeline *pipeline, struct error *reterr);

struct warmed {
    int64_t jobs, lines, bytes;
};
/* Jobs of dir/jobs.jsonl, then the recording since since_ns. Call before the first sample comes. A
 * missing file or folder is an empty one; a document that cannot be taken is left out. */
struct warmed warm_up(const char *dir, struct pipeline *pipeline, int64_t since_ns, int64_t now_ns);

#endif
