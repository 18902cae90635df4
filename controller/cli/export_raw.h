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
    char *name;                /* owned: "compute_ms" */
    struct raw_point *points;  /* owned */
    size_t count;
    size_t capacity;
};

struct raw_metrics {
    struct raw_metric *items;  /* sorted by name */
    size_t count;
    size_t capacity;
};

/* From the raw_window records of an export; several windows of one metric become one. What cannot be read is
 * left out, and a line of `problems` says why. The caller calls raw_metrics_done. */
struct raw_metrics raw_metrics_load(const struct json *windows, struct text *problems);
void raw_metrics_done(struct raw_metrics *metrics);
const struct raw_metric *raw_metrics_find(const struct raw_metrics *metrics, const char *name);
void raw_metric_add(struct raw_metric *metric, struct raw_point point);
void raw_metric_sort(struct raw_metric *metric);
/* time,step,rank,value with a title line. */
void raw_metric_write_csv(const struct raw_metric *metric, struct text *out);

#endif
