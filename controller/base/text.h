/* Text: views into somebody's bytes, a growing buffer, exact number and time formats, near names.
 * No locale: what is written here is parsed by machines.
 */
#ifndef BROOM_BASE_TEXT_H
#define BROOM_BASE_TEXT_H

#include "controller/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes lent by their owner; not NUL-terminated. */
struct view {
    const char *bytes;
    size_t length;
};

struct view view_of(const char *text); /* NULL gives the empty view */
bool view_equals(struct view a, const char *text);
bool view_equals_view(struct view a, struct view b);

/* A growing buffer, always NUL-terminated once something was added. Zero-initialise; text_done
 * frees the contents. */
struct text {
    char *bytes;
    size_t length;
    size_t capacity;
};

void text_done(struct text *text);
void text_clear(struct text *text); /* empties it, keeps the memory */
char *text_take(struct text *text); /* the caller owns the result, never NULL */
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const void *bytes, size_t length);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_addv(struct text *text, const char *format, va_list args) PRINTF_LIKE(2, 0);

static inline __attribute__((unused)) void auto_text_done(struct text *text)
{
    text_done(text);
}
#define AUTO_TEXT __attribute__((cleanup(auto_text_done))) struct text

/* Copies text into a fixed buffer, cutting it at the end; false when it was cut. */
bool text_copy(char *buffer, size_t bytes, const char *text);

/* Whole-string number parsers: false when anything but one number in range is there. */
bool text_parse_int(struct view text, int64_t *ret_value);
bool text_parse_number(struct view text, double *ret_value); /* finite only */

/* "10m", "1h30m", "250ms", "20s", "2d" -> nanoseconds; false when it is not a duration >= 0. */
bool text_parse_duration(struct view text, int64_t *ret_ns);
/* As a segment of a path or a value of a query: all but letters, digits and "-._~" as %XX. */
void text_add_percent(struct text *text, const char *plain);

/* Nanoseconds -> the shortest exact form people read: "10m", "1h 30m", "2.5s", "250ms". */
void text_add_duration(struct text *text, int64_t duration_ns);

/* Nanoseconds since the epoch <-> "2026-05-28T20:29:02.512Z" (always UTC, milliseconds). Years from
 * 1970 to 2200 are read. */
void text_add_time(struct text *text, int64_t time_ns);
bool text_parse_time(struct view text, int64_t *ret_time_ns);

/* The candidate nearest to `word` by edit distance, or NULL when none is near enough to suggest. */
const char *text_nearest(const char *word, const char *const *candidates, size_t count);

#endif
