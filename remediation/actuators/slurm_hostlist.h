/* Slurm's hostlist expressions, both ways: "r1n[01-03,20],login" <-> r1n01 r1n02 r1n03 r1n20 login.
 * Pure. A range counts up with the width of its first number; several bracket groups in a name
 * multiply, the last one fastest, as Slurm does it.
 */
#ifndef BROOM_ACTUATORS_SLURM_HOSTLIST_H
#define BROOM_ACTUATORS_SLURM_HOSTLIST_H

#include "remediation/names.h"

enum { HOSTLIST_NAMES_MAX = 131072, HOSTLIST_NAME_BYTES = 256 };

/* Adds the names in order. ERR_INVALID: no hostlist (names are added up to the mistake); ERR_LIMIT:
 * more than HOSTLIST_NAMES_MAX names. The empty text and Slurm's "(null)" are no names. */
MUST_CHECK enum status hostlist_expand(struct view text, struct names *names, struct error *reterr);

/* The shortest form of this kind: names sorted, repeats dropped, numbers of one prefix and width
 * folded into ranges. */
void hostlist_add(struct text *out, const char *const *names, size_t count);

/* A name that may stand in a command: letters, digits, '.', '_' and '-', no '-' in front. */
bool hostlist_is_name(const char *name);

#endif
