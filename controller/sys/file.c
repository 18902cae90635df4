/* Whole files, in and out. */
#include "controller/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum status file_read(const char *path, size_t limit_bytes, struct text *out, struct error *reterr)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (file == NULL)
        return error_set(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read '%s': %s",
                         path, strerror(errno));
    char block[16384];
    size_t start = out->length;
    for (size_t got;
         (got = fread(block, 1, sizeof block, file)) > 0 && out->length - start <= limit_bytes;)
        text_add_bytes(out, block, got);
    int failure = ferror(file) ? errno : 0;
    if (file != stdin)
        fclose(file);
    if (failure != 0)
        return error_set(reterr, ERR_IO, "cannot read '%s': %s", path, strerror(failure));
    if (out->length - start > limit_bytes)
        return error_set(reterr, ERR_LIMIT, "'%s' is over %zu KiB", path, limit_bytes / 1024);
    return OK;
}

enum status file_replace(const char *path, struct view bytes, struct error *reterr)
{
    AUTO_TEXT beside = {0};
    text_addf(&beside, "%s.new", path);
    FILE *file = fopen(beside.bytes, "we");
    bool is_whole = file != NULL && fwrite(bytes.bytes, 1, bytes.length, file) == bytes.length &&
                    fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file != NULL)
        is_whole = fclose(file) == 0 && is_whole;
    if (!is_whole || rename(beside.bytes, path) != 0)
        return error_set(reterr, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return OK;
}
