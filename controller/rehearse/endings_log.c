/* Lines of the cluster's log -> operations. */
#include "controller/rehearse/endings_log.h"

#include "controller/base/json.h"

#include <string.h>

static void add_operation(struct endings_log *log, const struct json *line)
{
    log->items = array_grow(log->items, log->count, &log->capacity, sizeof *log->items);
    struct logged *logged = &log->items[log->count++];
    *logged = (struct logged){.time_ns = json_get_int(line, "time_ns", 0),
                              .repeated = json_get_bool(line, "repeated", false)};
    text_copy(logged->id, sizeof logged->id, json_get_string(line, "id", ""));
    text_copy(logged->verb, sizeof logged->verb, json_get_string(line, "verb", ""));
    text_copy(logged->outcome, sizeof logged->outcome, json_get_string(line, "outcome", ""));
}

static void end_operation(struct endings_log *log, const struct json *line)
{
    for (size_t i = 0; i < log->count; i++)
        if (strcmp(log->items[i].id, json_get_string(line, "id", "")) == 0)
            text_copy(log->items[i].outcome, sizeof log->items[i].outcome,
                      json_get_string(line, "outcome", ""));
}

static void read_line(struct endings_log *log, struct view bytes)
{
    AUTO(json_free) struct json *line = NULL;
    if (json_parse(bytes, &line, NULL) != OK) {
        log->bad_lines++;
        return;
    }
    const char *what = json_get_string(line, "what", "");
    if (strcmp(what, "operation") == 0) {
        add_operation(log, line);
    } else if (strcmp(what, "operation_ended") == 0) {
        end_operation(log, line);
    } else if (strcmp(what, "job_started") == 0) {
        log->job_starts++;
        log->last_start_step = json_get_int(line, "step", 0);
    }
}

void endings_log_read(struct endings_log *log, struct view lines)
{
    for (size_t at = 0; at < lines.length;) {
        const char *newline = memchr(lines.bytes + at, '\n', lines.length - at);
        size_t length = newline != NULL ? (size_t)(newline - lines.bytes) - at : lines.length - at;
        read_line(log, (struct view){lines.bytes + at, length});
        at += length + 1;
    }
}

void endings_log_done(struct endings_log *log)
{
    xfree(log->items);
    *log = (struct endings_log){0};
}

const struct logged *endings_log_find(const struct endings_log *log, const char *id)
{
    for (size_t i = 0; i < log->count; i++)
        if (strcmp(log->items[i].id, id) == 0)
            return &log->items[i];
    return NULL;
}

int endings_log_count(const struct endings_log *log, const char *verb, const char *outcome)
{
    int count = 0;
    for (size_t i = 0; i < log->count; i++)
        count += !log->items[i].repeated && strcmp(log->items[i].verb, verb) == 0 &&
                 strcmp(log->items[i].outcome, outcome) == 0;
    return count;
}
