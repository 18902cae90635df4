/* JSON: cJSON behind a checked reader, and a deterministic writer. */
#include "controller/base/json.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A document may be put inside another one: the writer holds a few levels more. */
enum { JSON_DEPTH_MAX = 60 };

/* struct json is never defined: a `struct json *` is a cJSON node under another name. */
static const cJSON *node_of(const struct json *json)
{
    return (const cJSON *)(const void *)json;
}

static const struct json *json_of(const cJSON *node)
{
    return (const struct json *)(const void *)node;
}

static void place_of(struct view bytes, size_t offset, int *ret_line, int *ret_column)
{
    *ret_line = 1;
    *ret_column = 1;
    for (size_t i = 0; i < offset && i < bytes.length; i++) {
        (*ret_column)++;
        if (bytes.bytes[i] == '\n') {
            (*ret_line)++;
            *ret_column = 1;
        }
    }
}

/* Nesting is bounded before cJSON recurses into it; brackets in strings do not count. */
static bool is_depth_bounded(struct view bytes)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes.length; i++) {
        char c = bytes.bytes[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > JSON_DEPTH_MAX)
                return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

/* Length of the UTF-8 sequence at bytes, 0 when it is not valid (overlong, surrogate, cut short).
 */
static size_t utf8_length(const unsigned char *bytes, size_t left)
{
    unsigned char c = bytes[0];
    size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && bytes[1] < 0xa0) || (c == 0xed && bytes[1] > 0x9f) ||
        (c == 0xf0 && bytes[1] < 0x90) || (c == 0xf4 && bytes[1] > 0x8f))
        return 0;
    return length;
}

/* Offset of the first byte that is not UTF-8, or the length when all is. */
static size_t utf8_prefix(struct view bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.bytes;
    size_t i = 0;
    while (i < bytes.length) {
        size_t length = utf8_length(at + i, bytes.length - i);
        if (length == 0)
            break;
        i += length;
    }
    return i;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A key that stands twice among this object's own, or NULL. Sorted, since a sender chooses how many
 * there are. */
static const char *duplicate_own_key(const cJSON *object)
{
    size_t count = 0;
    for (const cJSON *child = object->child; child != NULL; child = child->next)
        count++;
    AUTO_FREE const char **keys = xcalloc(count, sizeof *keys);
    count = 0;
    for (const cJSON *child = object->child; child != NULL; child = child->next)
        keys[count++] = child->string;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            return keys[i];
    return NULL;
}

static const char *duplicate_key(const cJSON *node)
{
    const char *twice = cJSON_IsObject(node) ? duplicate_own_key(node) : NULL;
    for (const cJSON *child = node->child; child != NULL && twice == NULL; child = child->next)
        if (child->child != NULL || cJSON_IsObject(child))
            twice = duplicate_key(child);
    return twice;
}

enum status json_parse(struct view bytes, struct json **ret_root, struct error *reterr)
{
    if (!is_depth_bounded(bytes))
        return error_set(reterr, ERR_INVALID, "JSON is nested deeper than %d levels",
                         JSON_DEPTH_MAX);
    if (bytes.length > 0 && memchr(bytes.bytes, '\0', bytes.length) != NULL)
        return error_set(reterr, ERR_INVALID, "JSON holds a NUL byte");
    int line, column;
    size_t good = utf8_prefix(bytes);
    if (good < bytes.length) {
        place_of(bytes, good, &line, &column);
        return error_set(reterr, ERR_INVALID, "not UTF-8 at line %d column %d", line, column);
    }
    const char *end = NULL;
    cJSON *root = bytes.length > 0 ? cJSON_ParseWithLengthOpts(bytes.bytes, bytes.length, &end, 0)
                                   : NULL;
    size_t offset = end != NULL ? (size_t)(end - bytes.bytes) : 0;
    if (root != NULL)
        while (offset < bytes.length && strchr(" \t\r\n", bytes.bytes[offset]) != NULL)
            offset++;
    place_of(bytes, offset, &line, &column);
    if (root == NULL)
        return error_set(reterr, ERR_INVALID, "not valid JSON at line %d column %d", line, column);
    if (offset < bytes.length) {
        cJSON_Delete(root);
        return error_set(reterr, ERR_INVALID, "text after the JSON document at line %d column %d",
                         line, column);
    }
    const char *twice = duplicate_key(root);
    if (twice != NULL) {
        enum status status = error_set(reterr, ERR_INVALID, "key '%s' stands twice in one object",
                                       twice);
        cJSON_Delete(root);
        return status;
    }
    *ret_root = (struct json *)(void *)root;
    return OK;
}

void json_free(struct json *root)
{
    cJSON_Delete((cJSON *)(void *)root);
}

enum json_kind json_kind(const struct json *json)
{
    const cJSON *node = node_of(json);
    if (cJSON_IsBool(node))
        return JSON_BOOL;
    if (cJSON_IsNumber(node))
        return JSON_NUMBER;
    if (cJSON_IsString(node))
        return JSON_STRING;
    if (cJSON_IsArray(node))
        return JSON_ARRAY;
    return cJSON_IsObject(node) ? JSON_OBJECT : JSON_NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
    const cJSON *node = node_of(object);
    if (!cJSON_IsObject(node))
        return NULL;
    for (const cJSON *child = node->child; child != NULL; child = child->next)
        if (strcmp(child->string, key) == 0)
            return json_of(child);
    return NULL;
}

const struct json *json_first(const struct json *container)
{
    enum json_kind kind = json_kind(container);
    return kind == JSON_ARRAY || kind == JSON_OBJECT ? json_of(node_of(container)->child) : NULL;
}

const struct json *json_next(const struct json *child)
{
    return child != NULL ? json_of(node_of(child)->next) : NULL;
}

const char *json_key(const struct json *child)
{
    return child != NULL ? node_of(child)->string : NULL;
}

size_t json_size(const struct json *container)
{
    size_t size = 0;
    for (const struct json *child = json_first(container); child != NULL; child = json_next(child))
        size++;
    return size;
}

const char *json_string(const struct json *json, const char *fallback)
{
    return json_kind(json) == JSON_STRING ? node_of(json)->valuestring : fallback;
}

double json_number(const struct json *json, double fallback)
{
    return json_kind(json) == JSON_NUMBER ? node_of(json)->valuedouble : fallback;
}

int64_t json_int(const struct json *json, int64_t fallback)
{
    double value = json_number(json, NAN);
    if (!(value >= -9007199254740992.0 && value <= 9.2e18) || floor(value) < value)
        return fallback;
    return (int64_t)value;
}

bool json_bool(const struct json *json, bool fallback)
{
    return json_kind(json) == JSON_BOOL ? (bool)cJSON_IsTrue(node_of(json)) : fallback;
}

const char *json_get_string(const struct json *object, const char *key, const char *fallback)
{
    return json_string(json_get(object, key), fallback);
}

double json_get_number(const struct json *object, const char *key, double fallback)
{
    return json_number(json_get(object, key), fallback);
}

int64_t json_get_int(const struct json *object, const char *key, int64_t fallback)
{
    return json_int(json_get(object, key), fallback);
}

bool json_get_bool(const struct json *object, const char *key, bool fallback)
{
    return json_bool(json_get(object, key), fallback);
}

static void print_value(const struct json *json, struct json_writer *writer)
{
    switch (json_kind(json)) {
    case JSON_NULL:
        json_add_null(writer);
        return;
    case JSON_BOOL:
        json_add_bool(writer, json_bool(json, false));
        return;
    case JSON_NUMBER:
        json_add_number(writer, json_number(json, 0));
        return;
    case JSON_STRING:
        json_add_string(writer, json_string(json, ""));
        return;
    case JSON_ARRAY:
        json_open_array(writer);
        break;
    case JSON_OBJECT:
        json_open_object(writer);
        break;
    }
    for (const struct json *child = json_first(json); child != NULL; child = json_next(child)) {
        if (json_kind(json) == JSON_OBJECT)
            json_add_key(writer, json_key(child));
        print_value(child, writer);
    }
    json_close(writer);
}

void json_print(const struct json *json, struct text *out)
{
    struct json_writer writer = json_writer(out);
    print_value(json, &writer);
}

struct json_writer json_writer(struct text *out)
{
    return (struct json_writer){.out = out};
}

static void before_value(struct json_writer *writer)
{
    uint64_t bit = UINT64_C(1) << writer->depth;
    if (writer->after_key)
        writer->after_key = false;
    else if (writer->has_member & bit)
        text_add(writer->out, ",");
    if (writer->depth > 0)
        writer->has_member |= bit;
}

static void open_container(struct json_writer *writer, bool is_object)
{
    before_value(writer);
    writer->depth++;
    assert(writer->depth < 64);
    uint64_t bit = UINT64_C(1) << writer->depth;
    writer->is_object = is_object ? writer->is_object | bit : writer->is_object & ~bit;
    writer->has_member &= ~bit;
    text_add(writer->out, is_object ? "{" : "[");
}

void json_open_object(struct json_writer *writer)
{
    open_container(writer, true);
}

void json_open_array(struct json_writer *writer)
{
    open_container(writer, false);
}

void json_close(struct json_writer *writer)
{
    assert(writer->depth > 0 && !writer->after_key);
    text_add(writer->out, (writer->is_object >> writer->depth) & 1u ? "}" : "]");
    writer->depth--;
}

static void add_escape(struct text *out, unsigned char c)
{
    static const char SHORT[] = {
        ['"'] = '"', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (c < sizeof SHORT && SHORT[c] != '\0')
        text_addf(out, "\\%c", SHORT[c]);
    else
        text_addf(out, "\\u%04x", c);
}

static void add_quoted(struct text *out, struct view value)
{
    const unsigned char *bytes = (const unsigned char *)value.bytes;
    text_add(out, "\"");
    for (size_t i = 0; i < value.length;) {
        size_t run = i;
        while (run < value.length && bytes[run] >= 0x20 && bytes[run] < 0x7f && bytes[run] != '"' &&
               bytes[run] != '\\')
            run++;
        text_add_bytes(out, value.bytes + i, run - i);
        i = run;
        if (i == value.length)
            break;
        size_t length = utf8_length(bytes + i, value.length - i);
        if (length > 1) {
            text_add_bytes(out, value.bytes + i, length);
        } else if (length == 1) {
            add_escape(out, bytes[i]);
        } else {
            text_add(out, "\xef\xbf\xbd"); /* U+FFFD: what cannot be UTF-8 is shown, not hidden */
            length = 1;
        }
        i += length;
    }
    text_add(out, "\"");
}

void json_add_key(struct json_writer *writer, const char *key)
{
    assert(!writer->after_key);
    before_value(writer);
    add_quoted(writer->out, view_of(key));
    text_add(writer->out, ":");
    writer->after_key = true;
}

void json_add_view(struct json_writer *writer, struct view value)
{
    before_value(writer);
    add_quoted(writer->out, value);
}

void json_add_string(struct json_writer *writer, const char *value)
{
    if (value == NULL)
        json_add_null(writer);
    else
        json_add_view(writer, view_of(value));
}

void json_add_int(struct json_writer *writer, int64_t value)
{
    before_value(writer);
    text_addf(writer->out, "%lld", (long long)value);
}

void json_add_number(struct json_writer *writer, double value)
{
    char shortest[32];
    if (!isfinite(value)) {
        json_add_null(writer);
        return;
    }
    if (fabs(value) < 9.2e18 && floor(value) >= value) { /* a time in ns reads as one */
        json_add_int(writer, (int64_t)value);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(shortest, sizeof shortest, "%.*g", digits, value);
        double back = strtod(shortest, NULL);
        if (back <= value && back >= value)
            break;
    }
    before_value(writer);
    text_add(writer->out, shortest);
}

void json_add_rounded(struct json_writer *writer, double value, int digits)
{
    char text[48];
    if (!isfinite(value)) {
        json_add_null(writer);
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits, value);
    json_add_number(writer, strtod(text, NULL));
}

void json_add_bool(struct json_writer *writer, bool value)
{
    before_value(writer);
    text_add(writer->out, value ? "true" : "false");
}

void json_add_null(struct json_writer *writer)
{
    before_value(writer);
    text_add(writer->out, "null");
}

static void add_time(struct json_writer *writer, int64_t time_ns)
{
    if (time_ns <= 0) {
        json_add_null(writer);
        return;
    }
    before_value(writer);
    text_add(writer->out, "\"");
    text_add_time(writer->out, time_ns);
    text_add(writer->out, "\"");
}

void json_add_raw(struct json_writer *writer, struct view json)
{
    before_value(writer);
    text_add_bytes(writer->out, json.bytes, json.length);
}

void json_put_string(struct json_writer *writer, const char *key, const char *value)
{
    json_add_key(writer, key);
    json_add_string(writer, value);
}

void json_put_int(struct json_writer *writer, const char *key, int64_t value)
{
    json_add_key(writer, key);
    json_add_int(writer, value);
}

void json_put_number(struct json_writer *writer, const char *key, double value)
{
    json_add_key(writer, key);
    json_add_number(writer, value);
}

void json_put_rounded(struct json_writer *writer, const char *key, double value, int digits)
{
    json_add_key(writer, key);
    json_add_rounded(writer, value, digits);
}

void json_put_bool(struct json_writer *writer, const char *key, bool value)
{
    json_add_key(writer, key);
    json_add_bool(writer, value);
}

void json_put_time(struct json_writer *writer, const char *key, int64_t time_ns)
{
    json_add_key(writer, key);
    add_time(writer, time_ns);
}
