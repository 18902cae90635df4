/* Batches of records as text: one JSON object a line. What jsonb cannot hold (NUL, half a surrogate
 * pair, bytes that are not UTF-8) becomes U+FFFD here, so that one odd message of a rank never
 * stops a batch.
 */
#ifndef BROOM_STORE_RECORDS_H
#define BROOM_STORE_RECORDS_H

#include "controller/base/text.h"

/* Appends the non-empty lines of `lines`, cleaned, each ended by '\n'. Returns how many. */
int64_t records_clean(struct view lines, struct text *out);

/* Appends lines as one JSON array. */
void records_to_array(struct view lines, struct text *out);

/* Where the second half of a batch of several records begins; 0 when there is only one. */
size_t records_middle(struct view lines);

#endif
