/* A raw_window record made the way broomd makes it: columns, zstd, base64. */
#ifndef BROOM_TESTS_UNIT_CLI_SAMPLE_WINDOW_H
#define BROOM_TESTS_UNIT_CLI_SAMPLE_WINDOW_H

#include "controller/base/json.h"
#include "controller/io/compress.h"
#include "controller/series/raw_window.h"
#include "tests/harness/test.h"

struct sample_window {
    const char *metric;
    struct raw_window columns;
    size_t capacity;
};

/* capacity: the most points that will be added. */
static inline struct sample_window sample_window_open(const char *metric, size_t capacity)
{
    return (struct sample_window){.metric = metric,
                                  .capacity = capacity,
                                  .columns = {.time_ns = xcalloc(capacity, sizeof(int64_t)),
                                              .step = xcalloc(capacity, sizeof(int64_t)),
                                              .rank = xcalloc(capacity, sizeof(int32_t)),
                                              .value = xcalloc(capacity, sizeof(float))}};
}

static inline void sample_window_add(struct sample_window *window, int64_t time_ns, int64_t step,
                                     int32_t rank, double value)
{
    size_t i = window->columns.count++;
    CU_ASSERT_TRUE_FATAL(i < window->capacity);
    window->columns.time_ns[i] = time_ns;
    window->columns.step[i] = step;
    window->columns.rank[i] = rank;
    window->columns.value[i] = (float)value;
}

/* Writes the record and frees the window. */
static inline void sample_window_close(struct sample_window *window, struct json_writer *writer)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO_TEXT data = {0};
    raw_window_encode(&window->columns, &plain);
    CU_ASSERT_EQUAL_FATAL(zstd_pack((struct view){plain.bytes, plain.length}, 3, &packed, NULL),
                          OK);
    base64_encode((struct view){packed.bytes, packed.length}, &data);
    json_open_object(writer);
    json_put_string(writer, "metric", window->metric);
    json_put_string(writer, "encoding", "zstd-columns");
    json_put_string(writer, "data", data.bytes);
    json_close(writer);
    raw_window_done(&window->columns);
}

#endif
