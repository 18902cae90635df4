/* A job document from a file, for commands that work without a server. */
#ifndef BROOM_CLI_JOB_DOCUMENT_H
#define BROOM_CLI_JOB_DOCUMENT_H

#include "controller/base/status.h"
#include "detectors/job.h"

/* path: at most 64 MiB, "-" is stdin. Errors name the file. The caller frees the job. */
MUST_CHECK enum status job_document_load(const char *path, struct job **ret_job,
                                         struct error *reterr);

#endif
