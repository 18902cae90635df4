/* Jobs as JSON: the job file of formats.md section 2, both ways. */
#ifndef BROOM_TOPOLOGY_JOB_FILE_H
#define BROOM_TOPOLOGY_JOB_FILE_H

#include "controller/base/json.h"
#include "detectors/job.h"

/* Parses and checks a job document. Errors name the JSON place ("ranks[17].node: 'gb-1' is in no
 * rack"). The caller frees the job. */
MUST_CHECK enum status job_file_parse(struct view bytes, struct job **ret_job,
                                      struct error *reterr);
void job_file_write(const struct job *job, struct json_writer *writer);

#endif
