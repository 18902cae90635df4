/* A line protocol parser that reads each byte about once: names are switched on by length and first
 * letters, numbers are read by hand where that is exact. */
#include "controller/ingest/lineproto.h"

#include "controller/base/mem.h"
#include "controller/ingest/number.h"

#include <assert.h>
#include <string.h>

enum { TAG_UNKNOWN = 0, TAG_JOB, TAG_RANK, TAG_HOST, TAG_RACK, TAG_GPU, TAG_RAIL };
enum { ESCAPED_MAX = 16 };

struct cursor {
    struct lineproto *parser;
    const char *at, *end; /* the rest of the line */
    const char *cause;    /* why the line is bad; NULL while it is good */
    bool is_kept;         /* its measurement is one of ours */
    int64_t fields;
    char *escaped[ESCAPED_MAX]; /* unescaped copies, freed after the callback */
    int escaped_count;
    struct sample sample;
};

static bool fail(struct cursor *cursor, const char *cause)
{
    cursor->cause = cause;
    return false;
}

static bool is_name(struct view name, const char *text, size_t length)
{
    return name.length == length && memcmp(name.bytes, text, length) == 0;
}
#define IS(name, literal) is_name((name), (literal), sizeof(literal) - 1)

static bool measurement_find(struct view name, enum measurement *ret)
{
    if (IS(name, "step"))
        *ret = MEASUREMENT_STEP;
    else if (IS(name, "beat"))
        *ret = MEASUREMENT_BEAT;
    else if (IS(name, "gpu"))
        *ret = MEASUREMENT_GPU;
    else if (IS(name, "hello"))
        *ret = MEASUREMENT_HELLO;
    else if (IS(name, "event"))
        *ret = MEASUREMENT_EVENT;
    else if (IS(name, "mark"))
        *ret = MEASUREMENT_MARK;
    else
        return false;
    return true;
}

static int tag_find(struct view name)
{
    if (name.length == 3)
        return IS(name, "job") ? TAG_JOB : IS(name, "gpu") ? TAG_GPU : TAG_UNKNOWN;
    if (name.length != 4)
        return TAG_UNKNOWN;
    return IS(name, "rank")   ? TAG_RANK
           : IS(name, "host") ? TAG_HOST
           : IS(name, "rack") ? TAG_RACK
           : IS(name, "rail") ? TAG_RAIL
                              : TAG_UNKNOWN;
}

/* Bits of fields that a measurement takes; others are counted as unknown. */
#define BIT(field) (UINT64_C(1) << (field))
static const uint64_t FIELDS_OF[MEASUREMENT_COUNT] = {
    [MEASUREMENT_HELLO] = BIT(FIELD_GPU) | BIT(FIELD_WORLD) | BIT(FIELD_TP) | BIT(FIELD_PP) |
                          BIT(FIELD_DP) | BIT(FIELD_EP) | BIT(FIELD_CP) | BIT(FIELD_ATTEMPT) |
                          BIT(FIELD_RAIL),
    [MEASUREMENT_STEP] = BIT(FIELD_STEP) | BIT(FIELD_STEP_MS) | BIT(FIELD_ALLREDUCE_MS) |
                         BIT(FIELD_COMPUTE_MS) | BIT(FIELD_RECV_MS) | BIT(FIELD_TP_MS) |
                         BIT(FIELD_EP_MS) | BIT(FIELD_DATA_MS) | BIT(FIELD_SM) | BIT(FIELD_MEM) |
                         BIT(FIELD_LOSS) | BIT(FIELD_GRAD_NORM) | BIT(FIELD_TOKENS),
    [MEASUREMENT_BEAT] = BIT(FIELD_STEP),
    [MEASUREMENT_MARK] = BIT(FIELD_STEP) | BIT(FIELD_DUR_MS),
    [MEASUREMENT_GPU] = BIT(FIELD_SM) | BIT(FIELD_MEM) | BIT(FIELD_POWER_W) | BIT(FIELD_TEMP_C) |
                        BIT(FIELD_CLOCK_MHZ) | BIT(FIELD_NVLINK_TX) | BIT(FIELD_NVLINK_RX),
    [MEASUREMENT_EVENT] = BIT(FIELD_CODE) | BIT(FIELD_SUBCODE) | BIT(FIELD_TRAY),
};

struct field_row {
    const char *name;
    uint8_t length;
    uint8_t field;
};

/* By first letter, so that a look-up compares one or two names. */
static const struct field_row FIELDS_BY_LETTER[26][6] = {
    ['a' - 'a'] = {{"allreduce_ms", 12, FIELD_ALLREDUCE_MS}, {"attempt", 7, FIELD_ATTEMPT}},
    ['c' - 'a'] = {{"compute_ms", 10, FIELD_COMPUTE_MS},
                   {"code", 4, FIELD_CODE},
                   {"clock_mhz", 9, FIELD_CLOCK_MHZ},
                   {"cp", 2, FIELD_CP}},
    ['d' - 'a'] = {{"data_ms", 7, FIELD_DATA_MS}, {"dur_ms", 6, FIELD_DUR_MS}, {"dp", 2, FIELD_DP}},
    ['e' - 'a'] = {{"ep_ms", 5, FIELD_EP_MS}, {"ep", 2, FIELD_EP}},
    ['g' - 'a'] = {{"grad_norm", 9, FIELD_GRAD_NORM}, {"gpu", 3, FIELD_GPU}},
    ['l' - 'a'] = {{"loss", 4, FIELD_LOSS}},
    ['m' - 'a'] = {{"mem", 3, FIELD_MEM}},
    ['n' - 'a'] = {{"nvlink_tx", 9, FIELD_NVLINK_TX}, {"nvlink_rx", 9, FIELD_NVLINK_RX}},
    ['p' - 'a'] = {{"power_w", 7, FIELD_POWER_W}, {"pp", 2, FIELD_PP}},
    ['r' - 'a'] = {{"recv_ms", 7, FIELD_RECV_MS}, {"rail", 4, FIELD_RAIL}},
    ['s' - 'a'] = {{"step_ms", 7, FIELD_STEP_MS},
                   {"sm", 2, FIELD_SM},
                   {"step", 4, FIELD_STEP},
                   {"subcode", 7, FIELD_SUBCODE}},
    ['t' - 'a'] = {{"tp_ms", 5, FIELD_TP_MS},
                   {"tokens", 6, FIELD_TOKENS},
                   {"temp_c", 6, FIELD_TEMP_C},
                   {"tray", 4, FIELD_TRAY},
                   {"tp", 2, FIELD_TP}},
    ['w' - 'a'] = {{"world", 5, FIELD_WORLD}},
};

static int field_find(struct view name)
{
    unsigned letter = (unsigned)(unsigned char)name.bytes[0] - 'a';
    if (letter >= 26)
        return FIELD_COUNT;
    for (const struct field_row *row = FIELDS_BY_LETTER[letter]; row->name != NULL; row++)
        if (name.length == row->length && memcmp(name.bytes, row->name, row->length) == 0)
            return row->field;
    return FIELD_COUNT;
}

/* ---- tokens ---- */

/* Removes backslashes before characters that the protocol escapes. The copy lives until the
 * callback. */
static struct view unescape(struct cursor *cursor, struct view raw)
{
    if (cursor->escaped_count == ESCAPED_MAX)
        return raw;
    char *copy = xmalloc(raw.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < raw.length; i++) {
        if (raw.bytes[i] == '\\' && i + 1 < raw.length &&
            strchr(",= \"\\", raw.bytes[i + 1]) != NULL)
            i++;
        copy[length++] = raw.bytes[i];
    }
    copy[length] = '\0';
    cursor->escaped[cursor->escaped_count++] = copy;
    return (struct view){copy, length};
}

/* Up to the first unescaped character of stops (at most three); the stop is left in place. */
static struct view take_until(struct cursor *cursor, char stop1, char stop2, char stop3)
{
    const char *start = cursor->at;
    bool has_escape = false;
    while (cursor->at < cursor->end) {
        char c = *cursor->at;
        if (c == stop1 || c == stop2 || c == stop3)
            break;
        if (c == '\\' && cursor->at + 1 < cursor->end) {
            has_escape = true;
            cursor->at++;
        }
        cursor->at++;
    }
    struct view token = {start, (size_t)(cursor->at - start)};
    return has_escape ? unescape(cursor, token) : token;
}

static bool take_char(struct cursor *cursor, char c)
{
    if (cursor->at >= cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static bool take_tag(struct cursor *cursor)
{
    struct view name = take_until(cursor, '=', ',', ' ');
    if (name.length == 0 || !take_char(cursor, '='))
        return fail(cursor, "a tag is not name=value");
    struct view value = take_until(cursor, ',', ' ', ' ');
    if (value.length == 0)
        return fail(cursor, "a tag has no value");
    struct sample *sample = &cursor->sample;
    switch (tag_find(name)) {
    case TAG_JOB:
        sample->job = value;
        return true;
    case TAG_RANK:
        if (!text_parse_int(value, &sample->rank) || sample->rank < 0)
            return fail(cursor, "rank is not a whole number");
        return true;
    case TAG_HOST:
        sample->host = value;
        return true;
    case TAG_RACK:
        sample->rack = value;
        return true;
    case TAG_GPU:
        sample->gpu = value;
        return true;
    case TAG_RAIL:
        sample->rail = value;
        return true;
    default:
        cursor->parser->counts.unknown_tags += cursor->is_kept ? 1 : 0;
        return true;
    }
}

static bool take_quoted(struct cursor *cursor, struct view *ret_value)
{
    const char *start = ++cursor->at;
    bool has_escape = false;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        if (*cursor->at == '\\' && cursor->at + 1 < cursor->end) {
            has_escape = true;
            cursor->at++;
        }
        cursor->at++;
    }
    if (cursor->at >= cursor->end)
        return fail(cursor, "a quoted string does not end");
    struct view raw = {start, (size_t)(cursor->at - start)};
    cursor->at++;
    *ret_value = has_escape ? unescape(cursor, raw) : raw;
    return true;
}

/* Where a string field of a measurement goes; NULL: unknown. */
static struct view *string_field(struct sample *sample, struct view name)
{
    bool has_kind = sample->measurement == MEASUREMENT_EVENT ||
                    sample->measurement == MEASUREMENT_MARK;
    if (IS(name, "kind") && has_kind)
        return &sample->kind;
    if (IS(name, "phase") && sample->measurement == MEASUREMENT_BEAT)
        return &sample->phase;
    if (IS(name, "host") && sample->measurement == MEASUREMENT_HELLO)
        return &sample->host;
    if (IS(name, "uuid"))
        return &sample->uuid;
    if (IS(name, "pci") && sample->measurement == MEASUREMENT_EVENT)
        return &sample->pci;
    if (IS(name, "message") && sample->measurement == MEASUREMENT_EVENT)
        return &sample->message;
    return NULL;
}

static bool take_string_field(struct cursor *cursor, struct view name)
{
    struct view value;
    if (!take_quoted(cursor, &value))
        return false;
    struct view *place = string_field(&cursor->sample, name);
    if (place != NULL)
        *place = value;
    else
        cursor->parser->counts.unknown_fields++;
    return true;
}

static bool take_number_field(struct cursor *cursor, struct view name)
{
    double value;
    const char *next = number_read(cursor->at, cursor->end, &value);
    if (next == NULL)
        return fail(cursor, "a field's value is not a number, a string in quotes or a boolean");
    cursor->at = next;
    int field = field_find(name);
    if (field == FIELD_COUNT || !(FIELDS_OF[cursor->sample.measurement] >> field & 1u)) {
        cursor->parser->counts.unknown_fields++;
        return true;
    }
    cursor->sample.values[field] = value;
    cursor->sample.present |= BIT(field);
    return true;
}

static bool take_field(struct cursor *cursor)
{
    /* Names of fields hold no escapes in practice; the fast path is a plain scan. */
    const char *start = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != '=' && *cursor->at != '\\' &&
           *cursor->at != ' ' && *cursor->at != ',')
        cursor->at++;
    struct view name = {start, (size_t)(cursor->at - start)};
    if (cursor->at < cursor->end && *cursor->at == '\\') {
        cursor->at = start;
        name = take_until(cursor, '=', ',', ' ');
    }
    if (name.length == 0 || !take_char(cursor, '=') || cursor->at >= cursor->end)
        return fail(cursor, "a field is not name=value");
    cursor->fields++;
    bool good = *cursor->at == '"' ? take_string_field(cursor, name)
                                   : take_number_field(cursor, name);
    if (!good)
        return false;
    if (cursor->at < cursor->end && *cursor->at != ',' && *cursor->at != ' ')
        return fail(cursor, "a field's value has letters behind it");
    return true;
}

static bool take_timestamp(struct cursor *cursor)
{
    static const int64_t FACTORS[] = {[PRECISION_NS] = 1,
                                      [PRECISION_US] = 1000,
                                      [PRECISION_MS] = 1000000,
                                      [PRECISION_S] = 1000000000};
    while (cursor->end > cursor->at && (cursor->end[-1] == ' ' || cursor->end[-1] == '\r'))
        cursor->end--;
    while (cursor->at < cursor->end && *cursor->at == ' ')
        cursor->at++;
    if (cursor->at == cursor->end) {
        cursor->sample.time_ns = cursor->parser->default_time_ns;
        return cursor->parser->default_time_ns != 0 || fail(cursor, "the line has no timestamp");
    }
    int64_t value;
    struct view rest = {cursor->at, (size_t)(cursor->end - cursor->at)};
    if (!text_parse_int(rest, &value))
        return fail(cursor, "the timestamp is not a whole number");
    if (__builtin_mul_overflow(value, FACTORS[cursor->parser->precision],
                               &cursor->sample.time_ns) ||
        cursor->sample.time_ns <= 0 || cursor->sample.time_ns > LINEPROTO_TIME_NS_MAX)
        return fail(cursor, "the timestamp is out of range: is precision= right?");
    return true;
}

/* ---- lines ---- */

/* A line without which nothing can be done with it. */
static bool is_complete(struct cursor *cursor)
{
    const struct sample *sample = &cursor->sample;
    switch (sample->measurement) {
    case MEASUREMENT_STEP:
        if (!sample_has(sample, FIELD_STEP) || !sample_has(sample, FIELD_STEP_MS))
            return fail(cursor, "step needs the fields step and step_ms");
        break;
    case MEASUREMENT_EVENT:
        if (sample->kind.length == 0)
            return fail(cursor, "event needs the field kind");
        return true;
    case MEASUREMENT_MARK:
        if (sample->kind.length == 0)
            return fail(cursor, "mark needs the field kind");
        return sample->job.length > 0 || fail(cursor, "mark needs the tag job");
    case MEASUREMENT_GPU:
        return sample->host.length > 0 || fail(cursor, "gpu needs the tag host");
    case MEASUREMENT_HELLO:
    case MEASUREMENT_BEAT:
    case MEASUREMENT_COUNT:
        break;
    }
    if (sample->job.length == 0)
        return fail(cursor, "the line needs the tag job");
    return sample->rank != RANK_NONE || fail(cursor, "the line needs the tag rank");
}

static bool parse_line(struct cursor *cursor)
{
    struct view name = take_until(cursor, ',', ' ', ' ');
    if (name.length == 0)
        return fail(cursor, "the line has no measurement");
    cursor->is_kept = measurement_find(name, &cursor->sample.measurement);
    while (take_char(cursor, ','))
        if (!take_tag(cursor))
            return false;
    if (!take_char(cursor, ' '))
        return fail(cursor, "the line has no fields");
    while (cursor->at < cursor->end && *cursor->at == ' ')
        cursor->at++;
    do {
        if (!take_field(cursor))
            return false;
    } while (take_char(cursor, ','));
    if (!take_timestamp(cursor))
        return false;
    return !cursor->is_kept || is_complete(cursor);
}

static void take_line(struct lineproto *parser, struct cursor *cursor, const char *line,
                      size_t length, int64_t number)
{
    /* values[] is 250 bytes that need no clearing: present says which are defined. */
    struct sample *sample = &cursor->sample;
    cursor->at = line;
    cursor->end = line + length;
    cursor->cause = NULL;
    cursor->fields = 0;
    cursor->escaped_count = 0;
    sample->rank = RANK_NONE;
    sample->present = 0;
    sample->job = sample->host = sample->rack = sample->gpu = sample->rail = (struct view){0};
    sample->kind = sample->phase = sample->uuid = sample->pci = sample->message = (struct view){0};
    bool is_good = length <= LINE_BYTES_MAX ? parse_line(cursor)
                                            : fail(cursor, "the line is over 64 KiB");
    if (!is_good) {
        parser->counts.bad_lines++;
        if (parser->on_error != NULL)
            parser->on_error(parser->context, number, cursor->cause);
    } else if (!cursor->is_kept) {
        parser->counts.unknown_measurements++;
    } else {
        parser->counts.samples++;
        parser->counts.fields += cursor->fields;
        parser->on_sample(parser->context, sample);
    }
    for (int i = 0; i < cursor->escaped_count; i++)
        xfree(cursor->escaped[i]);
}

void lineproto_parse(struct lineproto *parser, struct view bytes)
{
    struct cursor cursor = {.parser = parser};
    int64_t number = parser->first_line > 0 ? parser->first_line : 1;
    const char *at = bytes.bytes;
    const char *end = bytes.length > 0 ? bytes.bytes + bytes.length : bytes.bytes;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        size_t length = (size_t)(stop - at);
        parser->line = number;
        bool is_empty = length == 0 || *at == '#' || (length == 1 && *at == '\r');
        if (!is_empty) {
            parser->counts.lines++;
            take_line(parser, &cursor, at, length, number);
        }
        number++;
        at = newline != NULL ? newline + 1 : end;
    }
}
