/* Where a rehearsal keeps its files: a temporary folder that goes with it, and the folder that
 * --out names. */
#ifndef BROOM_REHEARSE_REHEARSAL_FILES_H
#define BROOM_REHEARSE_REHEARSAL_FILES_H

#include "controller/base/text.h"

enum { PATH_BYTES = 512 };

struct files {
    char folder[PATH_BYTES]; /* temporary; "" until opened */
    const char *out;         /* or NULL; there once opened */
};

/* Makes both. */
MUST_CHECK enum status files_open(struct files *files, const char *out, struct error *reterr);
/* Removes the temporary one, unless keep. */
void files_close(struct files *files, bool keep);

/* folder/name into buffer. */
void files_path(const struct files *files, const char *name, char buffer[PATH_BYTES]);
void files_out_path(const struct files *files, const char *name, char buffer[PATH_BYTES]);
/* Writes folder/name. */
MUST_CHECK enum status files_write(const struct files *files, const char *name, struct view bytes,
                                   struct error *reterr);
/* Copies folder/name to out/name. */
MUST_CHECK enum status files_keep(const struct files *files, const char *name,
                                  struct error *reterr);

#endif
