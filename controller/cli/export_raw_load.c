/* raw_window records -> points. */
#include "controller/cli/export_raw.h"

#include "controller/io/compress.h"
#include "controller/series/raw_window.h"

#include <stdlib.h>
#include <string.h>

static enum status unpack(const struct json *window, struct raw_window *ret_window,
                          struct error *reterr)
{
    AUTO_TEXT packed = {0};
    AUTO_TEXT plain = {0};
    const char *encoding = json_get_string(window, "encoding", "");
    if (strcmp(encoding, "zstd-columns") != 0)
        return error_set(reterr, ERR_INVALID, "unknown encoding '%s'", encoding);
    if (!base64_decode(view_of(json_get_string(window, "data", "")), &packed))
        return error_set(reterr, ERR_INVALID, "data is not base64");
    TRY(zstd_unpack((struct view){packed.bytes, packed.length}, RAW_WINDOW_BYTES_MAX, &plain,
                    reterr));
    return raw_window_decode((struct view){plain.bytes, plain.length}, ret_window, reterr);
}

/* A window that cannot be read costs only itself: the rest of a bundle is worth having. */
static void add_window(struct raw_metric *metric, const struct json *record, struct text *problems)
{
    struct raw_window window;
    struct error error = {0};
    if (unpack(record, &window, &error) != OK) {
        text_addf(problems, "the samples of %s could not be read: %s\n", metric->name,
                  error.message);
        return;
    }
    for (size_t i = 0; i < window.count; i++)
        raw_metric_add(metric, (struct raw_point){window.time_ns[i], window.step[i], window.rank[i],
                                                  (double)window.value[i]});
    raw_window_done(&window);
}

static const char *name_of(const struct json *window)
{
    return json_get_string(window, "metric", "unknown");
}

struct raw_metric raw_metric_load(const struct json *windows, const char *name,
                                  struct text *problems)
{
    struct raw_metric metric = {.name = name};
    for (const struct json *window = json_first(windows); window != NULL;
         window = json_next(window))
        if (strcmp(name_of(window), name) == 0)
            add_window(&metric, window, problems);
    raw_metric_sort(&metric);
    return metric;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **raw_metric_names(const struct json *windows, size_t *ret_count)
{
    const char **names = xcalloc(json_size(windows) + 1, sizeof(const char *));
    size_t count = 0;
    size_t kept = 0;
    for (const struct json *window = json_first(windows); window != NULL;
         window = json_next(window))
        names[count++] = name_of(window);
    qsort(names, count, sizeof(const char *), by_name);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[i], names[kept - 1]) != 0)
            names[kept++] = names[i];
    *ret_count = kept;
    return names;
}
