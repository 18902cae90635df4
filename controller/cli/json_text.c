/* Parsed JSON as text again: compact for machines, indented for people. */
#include "controller/cli/cli.h"

#include <math.h>

enum { COMPACT = -1 };

static void add_value(struct text *out, const struct json *json, int depth);

/* Doubles hold whole numbers of any size; only up to 2^63 are they ours. */
static void add_number(struct text *out, double value)
{
    struct json_writer writer = json_writer(out);
    if (fabs(value) < 9.2e18 && floor(value) >= value)
        json_add_int(&writer, (int64_t)value);
    else
        json_add_number(&writer, value);
}

static bool is_container(const struct json *json)
{
    return json_kind(json) == JSON_OBJECT || json_kind(json) == JSON_ARRAY;
}

static void add_container(struct text *out, const struct json *json, int depth)
{
    bool is_object = json_kind(json) == JSON_OBJECT;
    const struct json *first = json_first(json);
    bool on_lines = depth != COMPACT && first != NULL && (is_object || is_container(first));
    int inner = depth == COMPACT ? COMPACT : depth + 1;
    text_add(out, is_object ? "{" : "[");
    for (const struct json *item = first; item != NULL; item = json_next(item)) {
        text_add(out, item == first ? "" : on_lines || depth == COMPACT ? "," : ", ");
        if (on_lines)
            text_addf(out, "\n%*s", 2 * inner, "");
        if (is_object) {
            struct json_writer writer = json_writer(out);
            json_add_string(&writer, json_key(item));
            text_add(out, depth == COMPACT ? ":" : ": ");
        }
        add_value(out, item, inner);
    }
    if (on_lines)
        text_addf(out, "\n%*s", 2 * depth, "");
    text_add(out, is_object ? "}" : "]");
}

static void add_value(struct text *out, const struct json *json, int depth)
{
    switch (json_kind(json)) {
    case JSON_NULL:
        text_add(out, "null");
        return;
    case JSON_BOOL:
        text_add(out, json_bool(json, false) ? "true" : "false");
        return;
    case JSON_NUMBER:
        add_number(out, json_number(json, 0));
        return;
    case JSON_STRING: {
        struct json_writer writer = json_writer(out);
        json_add_string(&writer, json_string(json, ""));
        return;
    }
    case JSON_ARRAY:
    case JSON_OBJECT:
        add_container(out, json, depth);
        return;
    }
}

void cli_add_json(struct text *out, const struct json *json)
{
    add_value(out, json, COMPACT);
}

void cli_add_pretty_json(struct text *out, const struct json *json)
{
    add_value(out, json, 0);
}
