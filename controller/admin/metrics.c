/* The table of metrics and its exposition. */
#include "controller/admin/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum metric_type { TYPE_COUNTER = 0, TYPE_GAUGE, TYPE_HISTOGRAM };
enum { LABEL_VALUES_MAX = 64, BUCKETS = 14 };

struct metric_row {
    const char *name;
    enum metric_type type;
    const char *label; /* NULL: no label */
    const char *help;
};

/* clang-format off */
static const struct metric_row ROWS[METRIC_COUNT] = {
    [METRIC_BUILD_INFO] = {"broom_build_info", TYPE_GAUGE, "version", "Always 1; the version is the label."},
    [METRIC_START_TIME] = {"broom_start_time_seconds", TYPE_GAUGE, NULL, "When broomd started, seconds since the epoch."},
    [METRIC_CPU] = {"broom_cpu_seconds_total", TYPE_COUNTER, NULL, "CPU time of broomd."},
    [METRIC_RESIDENT] = {"broom_resident_memory_bytes", TYPE_GAUGE, NULL, "Resident memory of broomd."},
    [METRIC_MODE] = {"broom_mode", TYPE_GAUGE, "mode", "1 for the daemon's mode, 0 for the others."},
    [METRIC_HTTP_REQUESTS] = {"broom_http_requests_total", TYPE_COUNTER, NULL, "Requests that reached a route."},
    [METRIC_HTTP_REFUSED] = {"broom_http_refused_total", TYPE_COUNTER, "reason", "Requests and connections refused before a route: guard, limit, timeout."},
    [METRIC_HTTP_CONNECTIONS] = {"broom_http_connections", TYPE_GAUGE, NULL, "Open connections."},
    [METRIC_HTTP_BODY_BYTES] = {"broom_http_body_bytes_total", TYPE_COUNTER, NULL, "Body bytes as they came over the wire."},
    [METRIC_API_ERRORS] = {"broom_api_errors_total", TYPE_COUNTER, "class", "Answers of the API that were errors: client, server, denied."},
    [METRIC_SAMPLES] = {"broom_samples_total", TYPE_COUNTER, "measurement", "Samples taken."},
    [METRIC_LINES_BAD] = {"broom_lines_bad_total", TYPE_COUNTER, NULL, "Lines that are not line protocol."},
    [METRIC_LINES_REFUSED] = {"broom_lines_refused_total", TYPE_COUNTER, NULL, "Good lines that were not for us: wrong host, wrong job, rank beyond the world."},
    [METRIC_JOBS] = {"broom_jobs", TYPE_GAUGE, NULL, "Jobs known."},
    [METRIC_RANKS] = {"broom_ranks", TYPE_GAUGE, NULL, "Ranks of all jobs."},
    [METRIC_SERIES_BYTES] = {"broom_series_bytes", TYPE_GAUGE, NULL, "Memory of recent samples."},
    [METRIC_VERDICTS] = {"broom_verdicts_total", TYPE_COUNTER, "kind", "Verdicts of the detectors."},
    [METRIC_PASS_SECONDS] = {"broom_pass_seconds", TYPE_HISTOGRAM, NULL, "Duration of one pass from samples to records."},
    [METRIC_INCIDENTS_OPEN] = {"broom_incidents_open", TYPE_GAUGE, "severity", "Incidents that are not closed."},
    [METRIC_TRANSITIONS] = {"broom_transitions_total", TYPE_COUNTER, "rule", "Rules of the state machine that fired."},
    [METRIC_ACTIONS] = {"broom_actions_total", TYPE_COUNTER, "outcome", "Actions by outcome."},
    [METRIC_PAUSED] = {"broom_paused", TYPE_GAUGE, NULL, "1 while a person has paused the controller."},
    [METRIC_BREAKER_OPEN] = {"broom_breaker_open", TYPE_GAUGE, NULL, "1 while the breaker is open; a person closes it."},
    [METRIC_LEASE_HELD] = {"broom_lease_held", TYPE_GAUGE, NULL, "1 while this broomd may act."},
    [METRIC_CLOCK_JUMPS] = {"broom_clock_jumps_total", TYPE_COUNTER, NULL, "Jumps of the wall clock that were noticed."},
    [METRIC_TELEMETRY_OK] = {"broom_telemetry_ok", TYPE_GAUGE, NULL, "1 while samples arrive as they should; 0 is a blind monitor."},
    [METRIC_DATABASE_UP] = {"broom_database_up", TYPE_GAUGE, NULL, "1 while PostgreSQL takes writes."},
    [METRIC_DATABASE_SECONDS] = {"broom_database_commit_seconds", TYPE_HISTOGRAM, NULL, "Time from a batch to its commit."},
    [METRIC_SPOOLED_BYTES] = {"broom_spooled_bytes", TYPE_GAUGE, NULL, "Records on disk that wait for PostgreSQL."},
    [METRIC_RECORDED_BYTES] = {"broom_recorded_bytes", TYPE_GAUGE, NULL, "Raw stream on disk for broom replay."},
    [METRIC_RELOADS] = {"broom_reloads_total", TYPE_COUNTER, "result", "Reloads: taken, or kept_old because of an error."},
};
/* clang-format on */

static const double BUCKET_SECONDS[BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1,     2.5,  5,     10,   30};

struct cell {
    char *label; /* NULL for a metric without one */
    double value;
};

struct histogram {
    int64_t counts[BUCKETS + 1];
    double sum;
};

struct metrics {
    struct {
        struct cell *cells;
        size_t count, capacity;
        struct histogram *histogram;
    } values[METRIC_COUNT];
};

struct metrics *metrics_new(void)
{
    return xcalloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        for (size_t j = 0; j < metrics->values[i].count; j++)
            xfree(metrics->values[i].cells[j].label);
        xfree(metrics->values[i].cells);
        xfree(metrics->values[i].histogram);
    }
    xfree(metrics);
}

static bool is_same_label(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static struct cell *find_cell(struct metrics *metrics, enum metric metric, const char *label)
{
    assert((ROWS[metric].label == NULL) == (label == NULL) && ROWS[metric].type != TYPE_HISTOGRAM);
    size_t count = metrics->values[metric].count;
    struct cell *cells = metrics->values[metric].cells;
    for (size_t i = 0; i < count; i++)
        if (is_same_label(cells[i].label, label))
            return &cells[i];
    if (count == LABEL_VALUES_MAX)
        return &cells[count - 1]; /* "other", below */
    cells = array_grow(cells, count, &metrics->values[metric].capacity, sizeof *cells);
    if (count == LABEL_VALUES_MAX - 1)
        label = "other";
    cells[count] = (struct cell){.label = label != NULL ? xstrdup(label) : NULL};
    metrics->values[metric].cells = cells;
    metrics->values[metric].count++;
    return &cells[count];
}

void metrics_set(struct metrics *metrics, enum metric metric, const char *label, double value)
{
    find_cell(metrics, metric, label)->value = value;
}

void metrics_add(struct metrics *metrics, enum metric metric, const char *label, double value)
{
    find_cell(metrics, metric, label)->value += value;
}

void metrics_observe(struct metrics *metrics, enum metric metric, double seconds)
{
    assert(ROWS[metric].type == TYPE_HISTOGRAM);
    if (metrics->values[metric].histogram == NULL)
        metrics->values[metric].histogram = xcalloc(1, sizeof(struct histogram));
    struct histogram *histogram = metrics->values[metric].histogram;
    size_t bucket = 0;
    while (bucket < BUCKETS && !(seconds <= BUCKET_SECONDS[bucket]))
        bucket++;
    histogram->counts[bucket]++;
    histogram->sum += seconds;
}

static void add_value(struct text *out, double value)
{
    if (isnan(value))
        text_add(out, "NaN\n");
    else if (isinf(value))
        text_add(out, value > 0 ? "+Inf\n" : "-Inf\n");
    else
        text_addf(out, "%.17g\n", value);
}

static void add_label(struct text *out, const char *name, const char *value)
{
    text_addf(out, "{%s=\"", name);
    for (; *value != '\0'; value++) {
        if (*value == '\n')
            text_add(out, "\\n");
        else if (*value == '"' || *value == '\\')
            text_addf(out, "\\%c", *value);
        else
            text_add_bytes(out, value, 1);
    }
    text_add(out, "\"}");
}

static void print_histogram(const char *name, const struct histogram *histogram, struct text *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        count += histogram->counts[i];
        text_addf(out, "%s_bucket{le=\"%g\"} %" PRId64 "\n", name, BUCKET_SECONDS[i], count);
    }
    count += histogram->counts[BUCKETS];
    text_addf(out, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n%s_sum ", name, count, name);
    add_value(out, histogram->sum);
    text_addf(out, "%s_count %" PRId64 "\n", name, count);
}

void metrics_print(const struct metrics *metrics, struct text *out)
{
    static const char *const types[] = {
        [TYPE_COUNTER] = "counter", [TYPE_GAUGE] = "gauge", [TYPE_HISTOGRAM] = "histogram"};
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_row *row = &ROWS[i];
        if (metrics->values[i].count == 0 && metrics->values[i].histogram == NULL)
            continue;
        text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                  types[row->type]);
        if (metrics->values[i].histogram != NULL)
            print_histogram(row->name, metrics->values[i].histogram, out);
        for (size_t j = 0; j < metrics->values[i].count; j++) {
            text_add(out, row->name);
            if (row->label != NULL)
                add_label(out, row->label, metrics->values[i].cells[j].label);
            text_add(out, " ");
            add_value(out, metrics->values[i].cells[j].value);
        }
    }
}
