/* Just enough of ustar for an archive that is the same bytes each time: plain files, one owner, one
 * time.
 */
#ifndef BROOM_CLI_TAR_H
#define BROOM_CLI_TAR_H

#include "controller/base/text.h"

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 100 };

/* Appends header and padded contents. name: 1 to 99 bytes, relative. */
void tar_add(struct text *out, const char *name, struct view bytes, int64_t mtime_s);
/* Appends the two empty blocks that end an archive. */
void tar_end(struct text *out);

struct tar_entry {
    char name[TAR_NAME_BYTES + 1];
    struct view bytes; /* lent from the archive */
};

/* The entry at *offset, which moves on. OK with an empty name at the end. ERR_INVALID: not a whole
 * archive of ours; the message says at which byte. */
MUST_CHECK enum status tar_next(struct view archive, size_t *offset, struct tar_entry *ret_entry,
                                struct error *reterr);

#endif
