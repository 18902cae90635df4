/* Samples of a bundle: one point a rank and step, and what of them goes into CSV and plots.
 */
#ifndef BROOM_CLI_EXPORT_RAW_H
#define BROOM_CLI_EXPORT_RAW_H

#include "controller/base/json.h"

struct raw_point {
    int64_t time_ns;
    int64_t step;
    int32_t rank;
    double value;
};

/* One metric, sorted by time, step and rank, without doubles. */
struct raw_metric {
    const char *name;         /* borrowed: "compute_ms" */
    struct raw_point *points; /* owned */
    size_t count;
    size_t capacity;
};

/* From the raw_window records of an export, those of one metric; several windows become one. What
 * cannot be read is left out, and a line of `problems` says why. The caller calls raw_metric_done.
 * One metric at a time: those of a large job would not fit into memory together. */
struct raw_metric raw_metric_load(const struct json *windows, const char *name,
                                  struct text *problems);
void raw_metric_done(struct raw_metric *metric);
/* Names of the metrics, sorted, each once; the array is the caller's, the names are borrowed from
 * windows. */
const char **raw_metric_names(const struct json *windows, size_t *ret_count);
void raw_metric_add(struct raw_metric *metric, struct raw_point point);
void raw_metric_sort(struct raw_metric *metric);
/* time,step,rank,value with a title line. */
void raw_metric_write_csv(const struct raw_metric *metric, struct text *out);

#endif
