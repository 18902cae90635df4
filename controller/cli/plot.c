/* SVG by hand: time in bins, quantiles per bin, straight lines between bins that have values. */
#include "controller/cli/plot.h"

#include "controller/base/mem.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 960,
    HEIGHT = 380,
    LEFT = 76,
    RIGHT = 936,
    TOP = 128,
    BOTTOM = 340,
    BINS = 215,
    LINES_MAX = 4,
    MARK_ROWS = 3
};

#define SUSPECT "#c2410c"
#define PEER    "#1d4ed8"
#define INK     "#1f2937"
#define FAINT   "#6b7280"

struct bin {
    double low, middle, high; /* NAN: no value */
};

struct chart {
    const struct plot *plot;
    int64_t from_ns, to_ns;
    double bottom, top; /* of the value axis */
    struct text *out;
};

static int bin_of(const struct chart *chart, int64_t time_ns)
{
    double part = (double)(time_ns - chart->from_ns) / (double)(chart->to_ns - chart->from_ns);
    int bin = (int)(part * BINS);
    return bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quantile(const double *sorted, size_t count, double part)
{
    double place = part * (double)(count - 1);
    size_t below = (size_t)place;
    double rest = place - (double)below;
    return below + 1 < count ? sorted[below] * (1 - rest) + sorted[below + 1] * rest
                             : sorted[below];
}

/* Takes points of a role, or of one rank when rank >= 0. */
static bool is_taken(const struct plot *plot, const struct raw_point *point, enum plot_role role,
                     int32_t rank)
{
    if (point->rank < 0 || point->rank >= plot->rank_count || !isfinite(point->value))
        return false;
    return rank >= 0 ? point->rank == rank : plot->roles[point->rank] == role;
}

/* Points are sorted by time, so a bin's values stand together. */
static void fill_bins(const struct chart *chart, enum plot_role role, int32_t rank,
                      struct bin bins[BINS])
{
    const struct raw_metric *metric = chart->plot->metric;
    AUTO_FREE double *values = xcalloc(metric->count + 1, sizeof *values);
    for (int i = 0; i < BINS; i++)
        bins[i] = (struct bin){NAN, NAN, NAN};
    for (size_t next = 0; next < metric->count;) {
        int bin = bin_of(chart, metric->points[next].time_ns);
        size_t count = 0;
        for (; next < metric->count && bin_of(chart, metric->points[next].time_ns) == bin; next++)
            if (is_taken(chart->plot, &metric->points[next], role, rank))
                values[count++] = metric->points[next].value;
        if (count == 0)
            continue;
        qsort(values, count, sizeof *values, by_value);
        bins[bin] = (struct bin){quantile(values, count, 0.1), quantile(values, count, 0.5),
                                 quantile(values, count, 0.9)};
    }
}

static double x_of(const struct chart *chart, int64_t time_ns)
{
    double part = (double)(time_ns - chart->from_ns) / (double)(chart->to_ns - chart->from_ns);
    return LEFT + part * (RIGHT - LEFT);
}

static double x_of_bin(int bin)
{
    return LEFT + (bin + 0.5) * (RIGHT - LEFT) / BINS;
}

/* Values beyond the axis are drawn on its edge. */
static double y_of(const struct chart *chart, double value)
{
    double part = (value - chart->bottom) / (chart->top - chart->bottom);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return BOTTOM - part * (BOTTOM - TOP);
}

/* The usual distance between two bins that have values; a line over more than four of them is a
 * gap. */
static int gap_limit(const struct bin bins[BINS])
{
    int filled = 0;
    int first = -1;
    int last = -1;
    for (int i = 0; i < BINS; i++) {
        if (isnan(bins[i].middle))
            continue;
        filled++;
        first = first < 0 ? i : first;
        last = i;
    }
    return filled > 1 ? 4 * ((last - first) / (filled - 1) + 1) : BINS;
}

static void draw_line(const struct chart *chart, const struct bin bins[BINS], const char *colour,
                      double width)
{
    int limit = gap_limit(bins);
    int last = -BINS;
    AUTO_TEXT path = {0};
    for (int i = 0; i < BINS; i++) {
        if (isnan(bins[i].middle))
            continue;
        text_addf(&path, "%s%.1f %.1f", i - last > limit ? "M" : "L", x_of_bin(i),
                  y_of(chart, bins[i].middle));
        last = i;
    }
    if (path.length > 0)
        text_addf(chart->out,
                  "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
                  "stroke-linejoin=\"round\" "
                  "stroke-linecap=\"round\"/>\n",
                  path.bytes, colour, width);
}

static void draw_band_part(const struct chart *chart, const struct bin bins[BINS], int from, int to,
                           const char *colour)
{
    AUTO_TEXT path = {0};
    for (int i = from; i <= to; i++)
        if (!isnan(bins[i].high))
            text_addf(&path, "%s%.1f %.1f", path.length == 0 ? "M" : "L", x_of_bin(i),
                      y_of(chart, bins[i].high));
    for (int i = to; i >= from; i--)
        if (!isnan(bins[i].low))
            text_addf(&path, "L%.1f %.1f", x_of_bin(i), y_of(chart, bins[i].low));
    if (path.length > 0)
        text_addf(chart->out,
                  "<path d=\"%sZ\" fill=\"%s\" fill-opacity=\"0.18\" stroke=\"none\"/>\n",
                  path.bytes, colour);
}

static void draw_band(const struct chart *chart, const struct bin bins[BINS], const char *colour)
{
    int limit = gap_limit(bins);
    int from = -1;
    int last = -1;
    for (int i = 0; i < BINS; i++) {
        if (isnan(bins[i].middle))
            continue;
        if (from >= 0 && i - last > limit) {
            draw_band_part(chart, bins, from, last, colour);
            from = i;
        }
        from = from < 0 ? i : from;
        last = i;
    }
    if (from >= 0)
        draw_band_part(chart, bins, from, last, colour);
}

static void add_escaped(struct text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            text_add(out, "&lt;");
        else if (*text == '>')
            text_add(out, "&gt;");
        else if (*text == '&')
            text_add(out, "&amp;");
        else if ((unsigned char)*text < 0x20)
            text_add(out, " ");
        else
            text_add_bytes(out, text, 1);
    }
}

static void draw_text(struct text *out, double x, double y, const char *anchor, int size,
                      const char *colour, const char *text)
{
    text_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">",
              x, y, anchor, size, colour);
    add_escaped(out, text);
    text_add(out, "</text>\n");
}

/* 1, 2 or 5 times a power of ten, so that about `parts` of them fit. */
static double nice_step(double span, int parts)
{
    double raw = span / parts;
    double power = pow(10, floor(log10(raw)));
    double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void draw_value_axis(const struct chart *chart)
{
    double step = nice_step(chart->top - chart->bottom, 5);
    int64_t first = (int64_t)ceil(chart->bottom / step);
    for (int64_t i = first; (double)i * step <= chart->top * (1 + 1e-9); i++) {
        double value = (double)i * step;
        double y = y_of(chart, value);
        char label[48];
        snprintf(label, sizeof label, step < 1 ? "%.2f" : "%.0f", value);
        text_addf(chart->out, "<path d=\"M%d %.1fH%d\" stroke=\"#e5e7eb\"/>\n", LEFT, y, RIGHT);
        draw_text(chart->out, LEFT - 8, y + 4, "end", 12, FAINT, label);
    }
    draw_text(chart->out, LEFT - 8, TOP - 10, "end", 12, FAINT, chart->plot->unit);
}

static void draw_time_axis(const struct chart *chart)
{
    static const int64_t steps_s[] = {1,   2,   5,   10,   15,   30,   60,    120,
                                      300, 600, 900, 1800, 3600, 7200, 21600, 86400};
    int64_t span_s = (chart->to_ns - chart->from_ns) / 1000000000;
    int64_t step_ns = steps_s[ARRAY_LEN(steps_s) - 1] * 1000000000;
    for (size_t i = ARRAY_LEN(steps_s); i-- > 0;)
        if (span_s / steps_s[i] <= 9)
            step_ns = steps_s[i] * 1000000000;
    text_addf(chart->out, "<path d=\"M%d %dH%d\" stroke=\"%s\"/>\n", LEFT, BOTTOM, RIGHT, FAINT);
    for (int64_t time_ns = (chart->from_ns / step_ns + 1) * step_ns; time_ns <= chart->to_ns;
         time_ns += step_ns) {
        AUTO_TEXT label = {0};
        text_add_time(&label, time_ns);
        double x = x_of(chart, time_ns);
        text_addf(chart->out, "<path d=\"M%.1f %dv5\" stroke=\"%s\"/>\n", x, BOTTOM, FAINT);
        label.bytes[19] = '\0'; /* 2026-05-28T20:29:02 */
        draw_text(chart->out, x, BOTTOM + 20, "middle", 12, FAINT, label.bytes + 11);
    }
    AUTO_TEXT day = {0};
    text_add_time(&day, chart->from_ns);
    day.bytes[10] = '\0';
    AUTO_TEXT caption = {0};
    text_addf(&caption, "UTC, %s", day.bytes);
    draw_text(chart->out, RIGHT, BOTTOM + 36, "end", 12, FAINT, caption.bytes);
}

static void draw_bad_time(const struct chart *chart)
{
    const struct plot *plot = chart->plot;
    if (plot->bad_from_ns <= 0)
        return;
    int64_t to_ns = plot->bad_to_ns > 0 ? plot->bad_to_ns : chart->to_ns;
    double from = fmax(x_of(chart, plot->bad_from_ns), LEFT);
    double to = fmin(x_of(chart, to_ns), RIGHT);
    if (to > from)
        text_addf(chart->out,
                  "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#fef3c7\"/>\n",
                  from, TOP, to - from, BOTTOM - TOP);
}

/* Labels stand in three rows, so that moments seconds apart can be told apart. */
static void draw_marks(const struct chart *chart)
{
    int row = 0;
    for (size_t i = 0; i < chart->plot->mark_count; i++) {
        const struct plot_mark *mark = &chart->plot->marks[i];
        if (mark->time_ns < chart->from_ns || mark->time_ns > chart->to_ns)
            continue;
        double x = x_of(chart, mark->time_ns);
        double y = TOP - 34 + 13 * (row % MARK_ROWS);
        bool at_end = x > LEFT + 0.85 * (RIGHT - LEFT);
        text_addf(chart->out,
                  "<path d=\"M%.1f %.1fV%d\" stroke=\"%s\" stroke-dasharray=\"4 3\"/>\n", x, y - 8,
                  BOTTOM, mark->colour);
        draw_text(chart->out, at_end ? x - 5 : x + 5, y, at_end ? "end" : "start", 11, mark->colour,
                  mark->label);
        row++;
    }
}

static void draw_legend(const struct chart *chart)
{
    const struct plot *plot = chart->plot;
    AUTO_TEXT peers = {0};
    text_addf(&peers, "%s: median and 10-90 %% band", plot->peers);
    text_addf(chart->out, "<path d=\"M%d 66h26\" stroke=\"" SUSPECT "\" stroke-width=\"2.5\"/>\n",
              LEFT);
    draw_text(chart->out, LEFT + 34, 70, "start", 13, INK, plot->suspects);
    text_addf(chart->out,
              "<rect x=\"%d\" y=\"60\" width=\"26\" height=\"12\" fill=\"" PEER
              "\" fill-opacity=\"0.18\"/>"
              "<path d=\"M%d 66h26\" stroke=\"" PEER "\" stroke-width=\"2\"/>\n",
              LEFT + 390, LEFT + 390);
    draw_text(chart->out, LEFT + 424, 70, "start", 13, INK, peers.bytes);
}

static void draw_suspects(const struct chart *chart, int32_t suspects)
{
    AUTO_FREE struct bin *bins = xcalloc(BINS, sizeof *bins);
    if (suspects > LINES_MAX) {
        fill_bins(chart, PLOT_SUSPECT, -1, bins);
        draw_band(chart, bins, SUSPECT);
        draw_line(chart, bins, SUSPECT, 2.2);
        return;
    }
    for (int32_t rank = 0; rank < chart->plot->rank_count; rank++) {
        if (chart->plot->roles[rank] != PLOT_SUSPECT)
            continue;
        fill_bins(chart, PLOT_SUSPECT, rank, bins);
        draw_line(chart, bins, SUSPECT, 2.0);
    }
}

/* The value below which `part` of the bins lie; NAN when there are none. from and to bound the
 * bins. */
static double quantile_of_bins(const struct bin bins[BINS], size_t member, double part, int from,
                               int to)
{
    double values[BINS];
    size_t count = 0;
    for (int i = from; i <= to; i++) {
        double value = member == offsetof(struct bin, low)    ? bins[i].low
                       : member == offsetof(struct bin, high) ? bins[i].high
                                                              : bins[i].middle;
        if (!isnan(value))
            values[count++] = value;
    }
    if (count == 0)
        return NAN;
    qsort(values, count, sizeof *values, by_value);
    return quantile(values, count, part);
}

/* The axis shows what is usual for both, and the suspects' bad time; the rare spike of a checkpoint
 * or a restart is cut at the edge, so that it does not flatten the rest. It starts at zero where
 * that costs little room. */
static bool choose_axis(struct chart *chart, const struct bin peers[BINS])
{
    AUTO_FREE struct bin *suspects = xcalloc(BINS, sizeof *suspects);
    const struct plot *plot = chart->plot;
    int bad_from = plot->bad_from_ns > 0 ? bin_of(chart, plot->bad_from_ns) : 0;
    int bad_to = plot->bad_to_ns > 0 ? bin_of(chart, plot->bad_to_ns) : BINS - 1;
    fill_bins(chart, PLOT_SUSPECT, -1, suspects);
    double high = quantile_of_bins(peers, offsetof(struct bin, high), 0.94, 0, BINS - 1);
    high = fmax(high, quantile_of_bins(suspects, offsetof(struct bin, high), 0.94, 0, BINS - 1));
    high = fmax(high,
                quantile_of_bins(suspects, offsetof(struct bin, middle), 0.9, bad_from, bad_to));
    double low = quantile_of_bins(peers, offsetof(struct bin, low), 0.02, 0, BINS - 1);
    low = fmin(low, quantile_of_bins(suspects, offsetof(struct bin, low), 0.02, 0, BINS - 1));
    if (!isfinite(low) || !isfinite(high)) /* fmin and fmax leave NAN out: neither has a value */
        return false;
    double room = fmax(0.12 * (high - low), fmax(0.004 * fabs(high), 1e-6));
    chart->bottom = low >= 0 && low < 0.35 * high ? 0 : low - room;
    chart->top = high + room;
    return true;
}

/* The samples' own time, and what was marked shortly after the last of them: a job that stopped. */
static bool choose_times(struct chart *chart)
{
    const struct raw_metric *metric = chart->plot->metric;
    if (metric->count < 2)
        return false;
    chart->from_ns = metric->points[0].time_ns;
    int64_t last_ns = metric->points[metric->count - 1].time_ns;
    int64_t span_ns = last_ns - chart->from_ns;
    chart->to_ns = last_ns;
    for (size_t i = 0; i < chart->plot->mark_count; i++) {
        int64_t mark_ns = chart->plot->marks[i].time_ns;
        if (mark_ns > last_ns && mark_ns - last_ns <= span_ns / 3 &&
            mark_ns + span_ns / 20 > chart->to_ns)
            chart->to_ns = mark_ns + span_ns / 20;
    }
    return span_ns > 0;
}

bool plot_write(const struct plot *plot, struct text *out)
{
    struct chart chart = {.plot = plot, .out = out};
    AUTO_FREE struct bin *peers = xcalloc(BINS, sizeof *peers);
    int32_t suspects = 0;
    if (!choose_times(&chart))
        return false;
    fill_bins(&chart, PLOT_PEER, -1, peers);
    if (!choose_axis(&chart, peers))
        return false;
    for (int32_t rank = 0; rank < plot->rank_count; rank++)
        suspects += plot->roles[rank] == PLOT_SUSPECT;
    text_addf(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 "
              "%d %d\" role=\"img\" "
              "font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n<title>",
              WIDTH, HEIGHT, WIDTH, HEIGHT);
    add_escaped(out, plot->title);
    text_addf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH,
              HEIGHT);
    draw_text(out, LEFT, 26, "start", 17, INK, plot->title);
    draw_text(out, LEFT, 46, "start", 13, FAINT, plot->subtitle);
    draw_bad_time(&chart);
    draw_value_axis(&chart);
    draw_band(&chart, peers, PEER);
    draw_line(&chart, peers, PEER, 1.8);
    draw_suspects(&chart, suspects);
    draw_marks(&chart);
    draw_time_axis(&chart);
    draw_legend(&chart);
    text_add(out, "</svg>\n");
    return true;
}
