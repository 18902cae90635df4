/* raw_window records -> points. */
#include "controller/cli/export_raw.h"

#include "controller/io/compress.h"
#include "controller/series/raw_window.h"

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

static enum status unpack(const struct json *window, struct raw_window *ret_window, struct error *reterr)
{
    AUTO_TEXT packed = {0};
    AUTO_TEXT plain = {0};
    const char *encoding = json_get_string(window, "encoding", "");
    if (strcmp(encoding, "zstd-columns") != 0)
        return error_set(reterr, ERR_INVALID, "unknown encoding '%s'", encoding);
    if (!base64_decode(view_of(json_get_string(window, "data", "")), &packed))
        return error_set(reterr, ERR_INVALID, "data is not base64");
    TRY(zstd_unpack((struct view){packed.bytes, packed.length}, RAW_WINDOW_BYTES_MAX, &plain, reterr));
    return raw_window_decode((struct view){plain.bytes, plain.length}, ret_window, reterr);
}

/* A window that cannot be read costs only itself: the rest of a bundle is worth having. */
static void add_window(struct raw_metric *metric, const struct json *record, struct text *problems)
{
    struct raw_window window;
    struct error error = {0};
    if (unpack(record, &window, &error) != OK) {
        text_addf(problems, "the samples of %s could not be read: %s\n", metric->name, error.message);
        return;
    }
    for (size_t i = 0; i < window.count; i++)
        raw_metric_add(metric, (struct raw_point){window.time_ns[i], window.step[i], window.rank[i],
                                                  (double)window.value[i]});
    raw_window_done(&window);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct raw_metric *)a)->name, ((const struct raw_metric *)b)->name);
}

struct raw_metrics raw_metrics_load(const struct json *windows, struct text *problems)
{
    struct raw_metrics metrics = {0};
    for (const struct json *window = json_first(windows); window != NULL; window = json_next(window))
        add_window(find_or_add(&metrics, json_get_string(window, "metric", "unknown")), window, problems);
    for (size_t i = 0; i < metrics.count; i++)
        raw_metric_sort(&metrics.items[i]);
    if (metrics.count > 0)
        qsort(metrics.items, metrics.count, sizeof *metrics.items, by_name);
    return metrics;
}
