/* Influx line protocol -> samples (formats.md section 1). Pure: bytes in, one callback a good line,
 * one a bad one. A bad line costs only itself. Unknown measurements, tags and fields are left out
 * and counted.
 */
#ifndef BROOM_INGEST_LINEPROTO_H
#define BROOM_INGEST_LINEPROTO_H

#include "controller/base/sample.h"

enum precision { PRECISION_NS = 0, PRECISION_US, PRECISION_MS, PRECISION_S };

enum { LINE_BYTES_MAX = 65536 };

/* The year 2116: later timestamps are refused, so that sums of two times never overflow. */
#define LINEPROTO_TIME_NS_MAX (INT64_MAX / 2)

/* lines are without comments and blank ones: no place in a file. */
struct lineproto_counts {
    int64_t lines, samples, fields, bad_lines, unknown_measurements, unknown_tags, unknown_fields;
};

typedef void lineproto_sample_fn(void *context, const struct sample *sample);
/* line is from 1; cause is a short English sentence, static text. */
typedef void lineproto_error_fn(void *context, int64_t line, const char *cause);

struct lineproto {
    enum precision precision;
    int64_t default_time_ns; /* for lines without a timestamp; 0 makes such a line an error */
    lineproto_sample_fn *on_sample;
    lineproto_error_fn *on_error; /* may be NULL */
    void *context;
    int64_t first_line; /* number of the block's first line; 0 means 1 */
    int64_t
        line; /* number of the line in hand, in callbacks; of the block's last line afterwards */
    struct lineproto_counts counts; /* added up */
};

/* Parses a block of lines; the last one may lack its newline. Strings of samples point into bytes,
 * except those with escapes, which live until the callback returns. */
void lineproto_parse(struct lineproto *parser, struct view bytes);

#endif
