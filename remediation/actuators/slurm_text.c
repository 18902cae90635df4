/* See slurm_text.h. */
#include "remediation/actuators/slurm_text.h"

#include <string.h>

/* Their values run to the end of the line. */
static const char *const WHOLE_LINES[] = {"Reason", "OS",      "Comment",      "AdminComment",
                                          "Extra",  "Command", "StdErr",       "StdIn",
                                          "StdOut", "WorkDir", "SystemComment"};

static bool starts_with(struct view text, const char *head)
{
    size_t length = strlen(head);
    return text.length >= length && memcmp(text.bytes, head, length) == 0;
}

static struct view drop(struct view text, size_t bytes)
{
    return (struct view){text.bytes + bytes, text.length - bytes};
}

static size_t line_length(struct view text)
{
    const char *end = text.length > 0 ? memchr(text.bytes, '\n', text.length) : NULL;
    return end != NULL ? (size_t)(end - text.bytes) : text.length;
}

static struct view drop_line(struct view text)
{
    size_t length = line_length(text);
    return drop(text, length < text.length ? length + 1 : length);
}

bool slurm_next_record(struct view *rest, const char *head, struct view *ret_record)
{
    while (rest->length > 0 && !starts_with(*rest, head))
        *rest = drop_line(*rest);
    if (rest->length == 0)
        return false;
    struct view record = *rest;
    do
        *rest = drop_line(*rest);
    while (rest->length > 0 && !starts_with(*rest, head));
    ret_record->bytes = record.bytes;
    ret_record->length = record.length - rest->length;
    return true;
}

static bool is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '/' || c == '-' || c == '.';
}

static size_t key_length(struct view text)
{
    size_t length = 0;
    while (length < text.length && is_key_byte(text.bytes[length]))
        length++;
    return length < text.length && text.bytes[length] == '=' ? length : 0;
}

static bool is_whole_line(struct view key)
{
    for (size_t i = 0; i < ARRAY_LEN(WHOLE_LINES); i++)
        if (view_equals(key, WHOLE_LINES[i]))
            return true;
    return false;
}

static struct view trim_end(struct view text)
{
    while (text.length > 0 &&
           (text.bytes[text.length - 1] == ' ' || text.bytes[text.length - 1] == '\r'))
        text.length--;
    return text;
}

/* A line that goes on with a reason is indented deeper than those that hold fields. */
static bool is_continued(struct view line_start)
{
    return starts_with(line_start, "          ");
}

/* On to the next line; those that go on with a value are skipped. */
static void end_line(struct slurm_reader *reader)
{
    reader->rest = drop(reader->rest, 1);
    reader->inside_line = false;
    while (is_continued(reader->rest))
        reader->rest = drop_line(reader->rest);
}

/* A space, or a word that belongs to the value before it. */
static void skip_word(struct slurm_reader *reader)
{
    size_t skip = 1;
    while (reader->rest.bytes[0] != ' ' && skip < reader->rest.length &&
           reader->rest.bytes[skip] != ' ' && reader->rest.bytes[skip] != '\n')
        skip++;
    reader->rest = drop(reader->rest, skip);
}

static struct view take_value(struct slurm_reader *reader, bool is_whole)
{
    size_t end = line_length(reader->rest);
    const char *space = is_whole || end == 0 ? NULL : memchr(reader->rest.bytes, ' ', end);
    if (space != NULL)
        end = (size_t)(space - reader->rest.bytes);
    struct view value = trim_end((struct view){reader->rest.bytes, end});
    reader->rest = drop(reader->rest, end);
    return value;
}

bool slurm_next_field(struct slurm_reader *reader, struct slurm_field *ret_field)
{
    while (reader->rest.length > 0) {
        size_t length = key_length(reader->rest);
        if (reader->rest.bytes[0] == '\n') {
            end_line(reader);
        } else if (length == 0) {
            reader->inside_line = reader->inside_line || reader->rest.bytes[0] != ' ';
            skip_word(reader);
        } else {
            ret_field->key = (struct view){reader->rest.bytes, length};
            reader->rest = drop(reader->rest, length + 1);
            ret_field->value = take_value(reader,
                                          !reader->inside_line && is_whole_line(ret_field->key));
            reader->inside_line = true;
            return true;
        }
    }
    return false;
}

static struct view none_if_null(struct view value)
{
    return view_equals(value, "(null)") ? (struct view){value.bytes, 0} : value;
}

struct view slurm_field_of(struct view record, const char *key)
{
    struct slurm_reader reader = {record, false};
    struct slurm_field field;
    while (slurm_next_field(&reader, &field))
        if (view_equals(field.key, key))
            return none_if_null(field.value);
    return (struct view){"", 0};
}

void slurm_set_text(char **text, struct view value)
{
    bool is_none = view_equals(value, "(null)") || view_equals(value, "N/A");
    xfree(*text);
    *text = xstrndup(value.bytes != NULL ? value.bytes : "", is_none ? 0 : value.length);
}

struct view slurm_config_value(struct view config, const char *key)
{
    for (; config.length > 0; config = drop_line(config)) {
        struct view line = {config.bytes, line_length(config)};
        if (!starts_with(line, key))
            continue;
        line = drop(line, strlen(key));
        while (line.length > 0 && line.bytes[0] == ' ')
            line = drop(line, 1);
        if (line.length > 1 && line.bytes[0] == '=' && line.bytes[1] == ' ')
            return trim_end(drop(line, 2));
    }
    return (struct view){"", 0};
}
