/* A whole small file at once, with a bound. */
#ifndef BROOM_SYS_FILE_H
#define BROOM_SYS_FILE_H

#include "controller/base/text.h"

/* Appends the file to out; "-" is stdin. ERR_NOT_FOUND, ERR_IO, ERR_LIMIT (over limit_bytes); the
 * message names the file. */
MUST_CHECK enum status file_read(const char *path, size_t limit_bytes, struct text *out,
                                 struct error *reterr);

/* The file holds these bytes, or what it held before: written beside, synced, renamed. ERR_IO; the
 * message names the file. */
MUST_CHECK enum status file_replace(const char *path, struct view bytes, struct error *reterr);

#endif
