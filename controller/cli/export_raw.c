/* Points of one metric: sorted, without doubles, as CSV. */
#include "controller/cli/export_raw.h"

#include "controller/base/mem.h"

#include <stdlib.h>
#include <string.h>

void raw_metric_done(struct raw_metric *metric)
{
    xfree(metric->points);
    *metric = (struct raw_metric){0};
}

void raw_metric_add(struct raw_metric *metric, struct raw_point point)
{
    metric->points = array_grow(metric->points, metric->count, &metric->capacity, sizeof *metric->points);
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

void raw_metric_write_csv(const struct raw_metric *metric, struct text *out)
{
    text_add(out, "time,step,rank,value\n");
    for (size_t i = 0; i < metric->count; i++) {
        const struct raw_point *point = &metric->points[i];
        text_add_time(out, point->time_ns);
        text_addf(out, ",%lld,%d,%.9g\n", (long long)point->step, (int)point->rank, point->value);
    }
}
