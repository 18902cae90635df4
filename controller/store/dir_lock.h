/* One process a directory: a lock file that the kernel lets go when its holder dies. */
#ifndef BROOM_STORE_DIR_LOCK_H
#define BROOM_STORE_DIR_LOCK_H

#include "controller/base/mem.h"
#include "controller/base/status.h"

struct dir_lock;

/* Makes the directory (0700, parents must exist) and locks it. ERR_REFUSED names the process that
 * has it. */
MUST_CHECK enum status dir_lock_take(const char *directory, struct dir_lock **ret_lock,
                                     struct error *reterr);
void dir_lock_free(struct dir_lock *lock);
DEFINE_AUTO(struct dir_lock, dir_lock_free)

#endif
