/* Reads and parses a job document. */
#include "controller/cli/job_document.h"

#include "controller/sys/file.h"
#include "controller/topology/job_file.h"

enum { DOCUMENT_BYTES_MAX = 64 << 20 };

enum status job_document_load(const char *path, struct job **ret_job, struct error *reterr)
{
    AUTO_TEXT document = {0};
    struct error error = {0};
    TRY(file_read(path, DOCUMENT_BYTES_MAX, &document, reterr));
    enum status status = job_file_parse((struct view){document.bytes, document.length}, ret_job,
                                        &error);
    return status == OK ? OK : error_set(reterr, status, "%s: %s", path, error.message);
}
