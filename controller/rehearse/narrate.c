/* Lines for people. */
#include "controller/rehearse/narrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

static void add_clock(struct text *line, const struct narrator *narrator, int64_t now_ns)
{
    AUTO_TEXT time = {0};
    AUTO_TEXT since = {0};
    int64_t whole_ns = (now_ns - narrator->start_ns) / 1000000000 * 1000000000;
    text_add_time(&time, now_ns); /* 2026-05-28T20:29:02.512Z: the clock stands at 11 */
    text_add_duration(&since, whole_ns > 0 ? whole_ns : 0);
    text_addf(line, "%.8s  +%-8s", time.length > 19 ? time.bytes + 11 : "", since.bytes);
}

void narrate(struct narrator *narrator, int64_t now_ns, const char *format, ...)
{
    AUTO_TEXT line = {0};
    va_list args;
    add_clock(&line, narrator, now_ns);
    va_start(args, format);
    text_add(&line, "         ");
    text_addv(&line, format, args);
    va_end(args);
    fprintf(narrator->out, "%s\n", line.bytes);
    fflush(narrator->out);
}

struct entry {
    const struct json *incident, *json;
    int64_t time_ns, number, seq;
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->seq < b->seq ? -1 : 1;
}

static void tell(struct narrator *narrator, const struct entry *entry)
{
    AUTO_TEXT line = {0};
    add_clock(&line, narrator, entry->time_ns);
    fprintf(narrator->out, "%s  %-6s %s\n", line.bytes, json_get_string(entry->incident, "ref", ""),
            json_get_string(entry->json, "text", ""));
    if (narrator->told[entry->number] < entry->seq)
        narrator->told[entry->number] = entry->seq;
}

void narrate_incidents(struct narrator *narrator, const struct json *incidents)
{
    struct entry *entries = NULL;
    size_t count = 0;
    size_t capacity = 0;
    for (const struct json *incident = json_first(incidents); incident != NULL;
         incident = json_next(incident)) {
        int64_t number = json_get_int(incident, "number", -1);
        const struct json *timeline = json_get(incident, "timeline");
        for (const struct json *item = json_first(timeline); item != NULL; item = json_next(item)) {
            int64_t seq = json_get_int(item, "seq", 0);
            if (number < 0 || number >= NARRATED_MAX || seq <= narrator->told[number])
                continue;
            entries = array_grow(entries, count, &capacity, sizeof *entries);
            entries[count++] = (struct entry){incident, item, json_get_int(item, "time_ns", 0),
                                              number, seq};
        }
    }
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_entries);
    for (size_t i = 0; i < count; i++)
        tell(narrator, &entries[i]);
    fflush(narrator->out);
    xfree(entries);
}

static void put_span(struct narrator *narrator, const char *what, int64_t from_ns, int64_t to_ns)
{
    AUTO_TEXT span = {0};
    if (from_ns <= 0 || to_ns <= 0)
        return;
    text_add_duration(&span, (to_ns - from_ns) / 1000000000 * 1000000000);
    fprintf(narrator->out, "  %-28s %s\n", what, span.bytes);
}

void narrate_cost(struct narrator *narrator, const struct json *incident)
{
    const struct json *times = json_get(incident, "times");
    const struct json *cost = json_get(incident, "cost");
    int64_t fault_ns = json_get_int(times, "fault_started_ns", 0);
    int64_t detected_ns = json_get_int(times, "detected_ns", 0);
    int64_t decided_ns = json_get_int(times, "decided_ns", 0);
    int64_t acted_ns = json_get_int(times, "acted_ns", 0);
    int64_t mitigated_ns = json_get_int(times, "mitigated_ns", 0);
    int64_t steps_lost = json_get_int(cost, "steps_lost", -1);
    fprintf(narrator->out, "%s P%" PRId64 " %s of %s %s: %s, phase %s\n",
            json_get_string(incident, "ref", ""), json_get_int(incident, "severity", -1),
            json_get_string(incident, "kind", ""), json_get_string(incident, "scope", ""),
            json_get_string(incident, "domain", ""), json_get_string(incident, "status", ""),
            json_get_string(incident, "phase", ""));
    if (json_get_string(incident, "merged_into", NULL) != NULL) {
        fprintf(narrator->out, "  %-28s %s\n", "merged into",
                json_get_string(incident, "merged_into", ""));
        return;
    }
    put_span(narrator, "fault to detected", fault_ns, detected_ns);
    put_span(narrator, "detected to decided", detected_ns, decided_ns);
    put_span(narrator, "decided to first action", decided_ns, acted_ns);
    put_span(narrator, "first action to resumed", acted_ns, mitigated_ns);
    put_span(narrator, "fault to resumed", fault_ns, mitigated_ns);
    if (steps_lost >= 0)
        fprintf(narrator->out, "  %-28s %" PRId64 "\n", "steps lost", steps_lost);
    fprintf(narrator->out, "  %-28s %.3g\n", "GPU-hours lost",
            json_get_number(cost, "gpu_hours", 0));
    fprintf(narrator->out, "  %-28s %zu ranks, %zu victims, %zu nodes\n", "touched",
            json_size(json_get(incident, "ranks")), json_size(json_get(incident, "victims")),
            json_size(json_get(incident, "nodes")));
}
