/* Parsed JSON as text for people: indented, short lists on one line. */
#include "controller/cli/cli.h"

static bool is_container(const struct json *json)
{
    return json_kind(json) == JSON_OBJECT || json_kind(json) == JSON_ARRAY;
}

static void add_value(struct text *out, const struct json *json, int depth);

static void add_container(struct text *out, const struct json *json, int depth)
{
    bool is_object = json_kind(json) == JSON_OBJECT;
    const struct json *first = json_first(json);
    bool on_lines = first != NULL && (is_object || is_container(first));
    text_add(out, is_object ? "{" : "[");
    for (const struct json *item = first; item != NULL; item = json_next(item)) {
        text_add(out, item == first ? "" : on_lines ? "," : ", ");
        if (on_lines)
            text_addf(out, "\n%*s", 2 * (depth + 1), "");
        if (is_object) {
            struct json_writer writer = json_writer(out);
            json_add_string(&writer, json_key(item));
            text_add(out, ": ");
        }
        add_value(out, item, depth + 1);
    }
    if (on_lines)
        text_addf(out, "\n%*s", 2 * depth, "");
    text_add(out, is_object ? "}" : "]");
}

static void add_value(struct text *out, const struct json *json, int depth)
{
    if (is_container(json))
        add_container(out, json, depth);
    else
        json_print(json, out);
}

void cli_add_pretty_json(struct text *out, const struct json *json)
{
    add_value(out, json, 0);
}
