/* Points of one metric: sorted, without doubles, as CSV. */
#include "controller/cli/export_raw.h"

#include "controller/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void raw_metric_done(struct raw_metric *metric)
{
    xfree(metric->points);
    *metric = (struct raw_metric){0};
}

void raw_metric_add(struct raw_metric *metric, struct raw_point point)
{
    metric->points = array_grow(metric->points, metric->count, &metric->capacity,
                                sizeof *metric->points);
    metric->points[metric->count++] = point;
}

static int by_place(const void *a, const void *b)
{
    const struct raw_point *left = a;
    const struct raw_point *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

static bool is_same_place(const struct raw_point *a, const struct raw_point *b)
{
    return a->time_ns == b->time_ns && a->step == b->step && a->rank == b->rank;
}

/* Windows overlap where incidents follow each other: a sample that stands in both counts once. */
void raw_metric_sort(struct raw_metric *metric)
{
    size_t kept = 0;
    if (metric->count == 0)
        return;
    qsort(metric->points, metric->count, sizeof *metric->points, by_place);
    for (size_t i = 1; i < metric->count; i++)
        if (!is_same_place(&metric->points[kept], &metric->points[i]))
            metric->points[++kept] = metric->points[i];
    metric->count = kept + 1;
}

/* Millions of points share few seconds: the text of a second is made once. */
static void add_point_time(struct text *out, int64_t time_ns, int64_t *second, struct text *prefix)
{
    const int64_t second_ns = 1000000000;
    if (prefix->length == 0 || time_ns / second_ns != *second) {
        *second = time_ns / second_ns;
        text_clear(prefix);
        text_add_time(prefix, *second * second_ns);
        prefix->length -= 4; /* "000Z" */
    }
    int ms = (int)(time_ns % second_ns / 1000000);
    const char digits[4] = {(char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
                            (char)('0' + ms % 10), 'Z'};
    text_add_bytes(out, prefix->bytes, prefix->length);
    text_add_bytes(out, digits, sizeof digits);
}

void raw_metric_write_csv(const struct raw_metric *metric, struct text *out)
{
    AUTO_TEXT prefix = {0};
    int64_t second = 0;
    text_add(out, "time,step,rank,value\n");
    for (size_t i = 0; i < metric->count; i++) {
        const struct raw_point *point = &metric->points[i];
        char rest[80];
        int length = snprintf(rest, sizeof rest, ",%lld,%d,%.9g\n", (long long)point->step,
                              (int)point->rank, point->value);
        add_point_time(out, point->time_ns, &second, &prefix);
        text_add_bytes(out, rest, (size_t)length);
    }
}
