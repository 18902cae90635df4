/* JSON in and out. Reading wraps cJSON (json.c is its only user): depth, size and duplicate keys
 * are checked, so that a document means one thing. Writing is our own, onto a struct text, with key
 * order as called and shortest round-trip numbers, so that two runs give the same bytes.
 */
#ifndef BROOM_BASE_JSON_H
#define BROOM_BASE_JSON_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

struct json; /* a parsed value; children are borrowed from the root */

/* Parses exactly one document. Errors say line and column. The caller frees the root. */
MUST_CHECK enum status json_parse(struct view bytes, struct json **ret_root, struct error *reterr);
void json_free(struct json *root);
DEFINE_AUTO(struct json, json_free)

enum json_kind { JSON_NULL = 0, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* All readers take NULL for `json` and answer as for a missing value. */
enum json_kind json_kind(const struct json *json); /* a missing value is JSON_NULL */
const struct json *json_get(const struct json *object, const char *key); /* NULL when missing */
const struct json *json_first(const struct json *container); /* first child of array or object */
const struct json *json_next(const struct json *child);      /* its next sibling, or NULL */
const char *json_key(const struct json *child);              /* key inside an object, else NULL */
size_t json_size(const struct json *container);
const char *json_string(const struct json *json, const char *fallback); /* borrowed */
double json_number(const struct json *json, double fallback);
int64_t json_int(const struct json *json, int64_t fallback); /* fallback also when not integral */
bool json_bool(const struct json *json, bool fallback);
/* Shorthands for a member of an object. */
const char *json_get_string(const struct json *object, const char *key, const char *fallback);
double json_get_number(const struct json *object, const char *key, double fallback);
int64_t json_get_int(const struct json *object, const char *key, int64_t fallback);
bool json_get_bool(const struct json *object, const char *key, bool fallback);

/* Re-serialises a parsed value, compact, keys in document order. */
void json_print(const struct json *json, struct text *out);

/* The writer. Commas are its business: json_object(w), json_key_string(w, "a", "b"), json_end(w).
 */
struct json_writer {
    struct text *out;
    uint64_t is_object;  /* bit per depth */
    uint64_t has_member; /* bit per depth */
    unsigned depth;      /* at most 63 */
    bool after_key;
};

struct json_writer json_writer(struct text *out);
void json_open_object(struct json_writer *writer);
void json_open_array(struct json_writer *writer);
void json_close(struct json_writer *writer); /* closes the innermost of either */
void json_add_key(struct json_writer *writer, const char *key);
void json_add_string(struct json_writer *writer, const char *value); /* NULL writes null */
void json_add_view(struct json_writer *writer, struct view value);
void json_add_int(struct json_writer *writer, int64_t value);
void json_add_number(struct json_writer *writer, double value); /* non-finite writes null */
void json_add_rounded(struct json_writer *writer, double value,
                      int digits); /* significant digits */
void json_add_bool(struct json_writer *writer, bool value);
void json_add_null(struct json_writer *writer);
void json_add_raw(struct json_writer *writer, struct view json); /* trusted, already JSON */
/* key and value in one call */
void json_put_string(struct json_writer *writer, const char *key, const char *value);
void json_put_int(struct json_writer *writer, const char *key, int64_t value);
void json_put_number(struct json_writer *writer, const char *key, double value);
void json_put_rounded(struct json_writer *writer, const char *key, double value, int digits);
void json_put_bool(struct json_writer *writer, const char *key, bool value);
void json_put_time(struct json_writer *writer, const char *key, int64_t time_ns);

#endif
