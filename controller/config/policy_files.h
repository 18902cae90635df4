/* The policy files of a site as one set: a folder's *.yaml in name order, or files named one by
 * one. All or nothing: one file with an error leaves the caller with the set it had.
 */
#ifndef BROOM_CONFIG_POLICY_FILES_H
#define BROOM_CONFIG_POLICY_FILES_H

#include "controller/base/text.h"
#include "remediation/policy.h"

/* Reads one file into text, "-" is stdin. ERR_IO: it cannot be read; ERR_LIMIT: over 1 MiB. */
MUST_CHECK enum status policy_file_read(const char *path, struct text *out, struct error *reterr);

/* Reads path (a folder or a file) into a new set that the caller frees. A missing or empty folder
 * is an empty set. ERR_INVALID: findings hold "FILE:LINE:COLUMN: ..." lines (warnings are there
 * also on success). */
MUST_CHECK enum status policy_files_load(const char *path, struct policy_set **ret_set,
                                         struct text *findings, struct error *reterr);

/* As policy_files_load, of a path that a person has typed. ERR_NOT_FOUND: there is no such path. */
MUST_CHECK enum status policy_files_load_typed(const char *path, struct policy_set **ret_set,
                                               struct text *findings, struct error *reterr);

/* Calls fn for each file that policy_files_load would read of path, in that order. ERR_IO: the
 * folder cannot be listed; ERR_LIMIT: it has too many files, fn was not called. */
MUST_CHECK enum status policy_files_each(const char *path,
                                         void (*fn)(void *context, const char *file), void *context,
                                         struct error *reterr);

#endif
