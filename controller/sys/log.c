/* logfmt on stderr. A line is one write(2), so that lines of several processes never mix. Repeats
 * are counted by event name in a small table: an event beyond EVENTS_PER_SECOND is held back, and
 * its next line carries `suppressed=`.
 */
#include "controller/sys/log.h"

#include "controller/base/text.h"
#include "controller/sys/clock.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS_PER_SECOND = 10, RATE_ROWS = 256, EVENT_NAME_BYTES = 48 };

struct rate_row {
    char event[EVENT_NAME_BYTES];
    int64_t second;
    int count;
    int64_t suppressed;
};

static enum log_level log_least = LOG_INFO;
static struct rate_row rate_rows[RATE_ROWS];

void log_init(enum log_level least)
{
    log_least = least;
    memset(rate_rows, 0, sizeof rate_rows);
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    return "error";
}

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The row of an event; a colliding event takes the row over and starts its count afresh. */
static struct rate_row *rate_row(const char *event)
{
    struct rate_row *row = &rate_rows[hash_name(event) % RATE_ROWS];
    if (strncmp(row->event, event, sizeof row->event - 1) != 0) {
        memset(row, 0, sizeof *row);
        text_copy(row->event, sizeof row->event, event);
    }
    return row;
}

/* True when the event may be written now; *ret_suppressed is what was held back before it. */
static bool rate_allows(const char *event, int64_t second, int64_t *ret_suppressed)
{
    struct rate_row *row = rate_row(event);
    if (row->second != second) {
        row->second = second;
        row->count = 0;
    }
    if (row->count >= EVENTS_PER_SECOND) {
        row->suppressed++;
        return false;
    }
    row->count++;
    *ret_suppressed = row->suppressed;
    row->suppressed = 0;
    return true;
}

static bool needs_quotes(const char *value)
{
    if (*value == '\0')
        return true;
    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;
        if (byte <= ' ' || byte == '"' || byte == '=' || byte == '\\' || byte == 0x7f)
            return true;
    }
    return false;
}

/* Control bytes never reach a terminal: \n, \t, \r by name, the others as \xHH. */
static void add_quoted(struct text *line, const char *value)
{
    text_add(line, "\"");
    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;
        if (byte == '"' || byte == '\\')
            text_addf(line, "\\%c", byte);
        else if (byte == '\n')
            text_add(line, "\\n");
        else if (byte == '\t')
            text_add(line, "\\t");
        else if (byte == '\r')
            text_add(line, "\\r");
        else if (byte < ' ' || byte == 0x7f)
            text_addf(line, "\\x%02x", byte);
        else
            text_add_bytes(line, value, 1);
    }
    text_add(line, "\"");
}

static void add_number(struct text *line, double number)
{
    if (isnan(number))
        text_add(line, "nan");
    else
        text_addf(line, "%.10g", number);
}

static void add_pair(struct text *line, const struct kv *pair)
{
    text_addf(line, " %s=", pair->key);
    switch (pair->type) {
    case KV_STR:
        if (pair->str == NULL)
            text_add(line, "-");
        else if (needs_quotes(pair->str))
            add_quoted(line, pair->str);
        else
            text_add(line, pair->str);
        break;
    case KV_INT:
        text_addf(line, "%" PRId64, pair->integer);
        break;
    case KV_NUM:
        add_number(line, pair->number);
        break;
    case KV_END:
        break;
    }
}

static void write_whole(struct view line)
{
    while (line.length > 0) {
        ssize_t written = write(STDERR_FILENO, line.bytes, line.length);
        if (written <= 0)
            return; /* there is nobody left to tell */
        line.bytes += written;
        line.length -= (size_t)written;
    }
}

void log_write(enum log_level level, const char *event, const struct kv *pairs)
{
    if (level < log_least)
        return;
    int64_t wall_ns = clock_read().wall_ns;
    int64_t suppressed = 0;
    if (!rate_allows(event, wall_ns / 1000000000, &suppressed))
        return;
    AUTO_TEXT line = {0};
    text_add(&line, "ts=");
    text_add_time(&line, wall_ns);
    text_addf(&line, " level=%s event=%s", level_name(level), event);
    for (; pairs->type != KV_END; pairs++)
        add_pair(&line, pairs);
    if (suppressed > 0)
        text_addf(&line, " suppressed=%" PRId64, suppressed);
    text_add(&line, "\n");
    write_whole((struct view){line.bytes, line.length});
}
