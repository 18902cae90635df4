/* Reads and parses a job document. */
#include "controller/cli/job_document.h"

#include "controller/topology/job_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DOCUMENT_BYTES_MAX = 64 << 20 };

static enum status read_whole(const char *path, struct text *out, struct error *reterr)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (file == NULL)
        return error_set(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read '%s': %s", path,
                         strerror(errno));
    char block[65536];
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0 && out->length <= DOCUMENT_BYTES_MAX;)
        text_add_bytes(out, block, got);
    bool failed = ferror(file) != 0;
    if (file != stdin)
        fclose(file);
    if (failed)
        return error_set(reterr, ERR_IO, "cannot read '%s'", path);
    if (out->length > DOCUMENT_BYTES_MAX)
        return error_set(reterr, ERR_LIMIT, "'%s' is over 64 MiB: that is no job document", path);
    return OK;
}

enum status job_document_load(const char *path, struct job **ret_job, struct error *reterr)
{
    AUTO_TEXT document = {0};
    struct error error = {0};
    TRY(read_whole(path, &document, reterr));
    enum status status = job_file_parse((struct view){document.bytes, document.length}, ret_job, &error);
    return status == OK ? OK : error_set(reterr, status, "%s: %s", path, error.message);
}
