/* raw_window records -> points. */
#include "controller/cli/export_raw.h"

#include "controller/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct raw_metric *find_or_add(struct raw_metrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->count; i++)
        if (strcmp(metrics->items[i].name, name) == 0)
            return &metrics->items[i];
    metrics->items = array_grow(metrics->items, metrics->count, &metrics->capacity, sizeof *metrics->items);
    struct raw_metric *metric = &metrics->items[metrics->count++];
    *metric = (struct raw_metric){.name = xstrdup(name)};
    return metric;
}

static enum status add_window(struct raw_metric *metric, const struct json *window, struct error *reterr)
{
    const struct json *points = json_get(window, "points");
    if (json_kind(points) != JSON_ARRAY)
        return error_set(reterr, ERR_INVALID, "raw window of '%s': unknown encoding '%s'", metric->name,
                         json_get_string(window, "encoding", ""));
    for (const struct json *row = json_first(points); row != NULL; row = json_next(row)) {
        struct raw_point point = {.time_ns = json_int(json_first(row), 0)};
        const struct json *item = json_next(json_first(row));
        point.step = json_int(item, 0);
        item = json_next(item);
        point.rank = (int32_t)json_int(item, 0);
        point.value = json_number(json_next(item), NAN);
        raw_metric_add(metric, point);
    }
    return OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct raw_metric *)a)->name, ((const struct raw_metric *)b)->name);
}

enum status raw_metrics_load(const struct json *windows, struct raw_metrics *ret_metrics, struct error *reterr)
{
    struct raw_metrics metrics = {0};
    for (const struct json *window = json_first(windows); window != NULL; window = json_next(window)) {
        struct raw_metric *metric = find_or_add(&metrics, json_get_string(window, "metric", "unknown"));
        enum status status = add_window(metric, window, reterr);
        if (status != OK) {
            raw_metrics_done(&metrics);
            return status;
        }
    }
    for (size_t i = 0; i < metrics.count; i++)
        raw_metric_sort(&metrics.items[i]);
    if (metrics.count > 0)
        qsort(metrics.items, metrics.count, sizeof *metrics.items, by_name);
    *ret_metrics = metrics;
    return OK;
}
