/* Numbers of the line protocol: integers with or without i or u, floats, NaN, booleans. */
#ifndef BROOM_INGEST_NUMBER_H
#define BROOM_INGEST_NUMBER_H

/* Reads one value at `at`; returns where it ended, or NULL when there is none. Exact: what the
 * shortest decimal form of a double says comes back as that double. true and false are 1 and 0. A
 * number too large is infinite. */
const char *number_read(const char *at, const char *end, double *ret_value);

#endif
