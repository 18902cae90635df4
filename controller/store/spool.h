/* Records that wait on disk for the database: files of JSON lines, synced before they count. A file
 * that was cut by a crash loses its torn last line only; a damaged line is skipped and counted.
 * Draining that is interrupted begins its file again: the records' keys make that harmless.
 */
#ifndef BROOM_STORE_SPOOL_H
#define BROOM_STORE_SPOOL_H

#include "controller/base/text.h"

#include <stdint.h>

struct spool;

/* directory exists. ERR_IO. */
MUST_CHECK enum status spool_open(const char *directory, int64_t bytes_max,
                                  struct spool **ret_spool, struct error *reterr);
void spool_free(struct spool *spool);

/* lines: whole lines. All of them are on disk, or none. ERR_LIMIT: full. ERR_IO: the disk refuses.
 */
MUST_CHECK enum status spool_add(struct spool *spool, struct view lines, struct error *reterr);

/* The oldest lines, about bytes_wanted of them and at least one; the same ones until spool_advance.
 * Empty: nothing is left. ERR_IO: the file cannot be read. */
MUST_CHECK enum status spool_peek(struct spool *spool, size_t bytes_wanted, struct text *lines,
                                  int64_t *ret_count, struct error *reterr);
/* What was peeked is in the database. */
void spool_advance(struct spool *spool);

int64_t spool_bytes(const struct spool *spool);   /* not drained yet */
int64_t spool_damaged(const struct spool *spool); /* lines that were skipped */

/* Keeps a record that the database will never take, in rejected.jsonl; bounded, oldest kept. */
void spool_reject(struct spool *spool, struct view line, const char *reason);

#endif
