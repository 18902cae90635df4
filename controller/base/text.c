/* Views, the growing buffer, exact formats of numbers, durations and times. */
#include "controller/base/text.h"

#include "controller/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t NS_PER_MS = 1000000;
static const int64_t NS_PER_S = 1000000000;

struct view view_of(const char *text)
{
    return (struct view){.bytes = text, .length = text != NULL ? strlen(text) : 0};
}

bool view_equals_view(struct view a, struct view b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

bool view_equals(struct view a, const char *text)
{
    return view_equals_view(a, view_of(text));
}

void text_done(struct text *text)
{
    xfree(text->bytes);
    *text = (struct text){0};
}

void text_clear(struct text *text)
{
    text->length = 0;
    if (text->bytes != NULL)
        text->bytes[0] = '\0';
}

static void text_reserve(struct text *text, size_t more)
{
    size_t need;
    if (!size_add(text->length, more, &need) || !size_add(need, 1, &need))
        need = SIZE_MAX; /* fails in xrealloc with a message */
    if (need <= text->capacity)
        return;
    size_t capacity = text->capacity > 0 ? text->capacity : 64;
    while (capacity < need && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    if (capacity < need)
        capacity = need;
    text->bytes = xrealloc(text->bytes, capacity, 1);
    text->capacity = capacity;
}

char *text_take(struct text *text)
{
    text_reserve(text, 0);
    text->bytes[text->length] = '\0';
    char *bytes = text->bytes;
    *text = (struct text){0};
    return bytes;
}

void text_add_percent(struct text *text, const char *plain)
{
    static const char KEPT[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    for (; *plain != '\0'; plain++) {
        if (strchr(KEPT, *plain) != NULL)
            text_add_bytes(text, plain, 1);
        else
            text_addf(text, "%%%02X", (unsigned)(unsigned char)*plain);
    }
}

void text_add_bytes(struct text *text, const void *bytes, size_t length)
{
    text_reserve(text, length);
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

void text_addv(struct text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return;
    text_reserve(text, (size_t)length);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, args);
    text->length += (size_t)length;
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_addv(text, format, args);
    va_end(args);
}

bool text_copy(char *buffer, size_t bytes, const char *text)
{
    size_t length = strlen(text);
    bool fits = length < bytes;
    if (bytes == 0)
        return false;
    size_t copied = fits ? length : bytes - 1;
    memcpy(buffer, text, copied);
    buffer[copied] = '\0';
    return fits;
}

bool text_parse_int(struct view text, int64_t *ret_value)
{
    bool negative = text.length > 0 && text.bytes[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i >= text.length)
        return false;
    int64_t value = 0;
    for (; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        int digit = text.bytes[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, (int64_t)digit, &value)) /* negative holds INT64_MIN */
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *ret_value = negative ? value : -value;
    return true;
}

bool text_parse_number(struct view text, double *ret_value)
{
    char buffer[64];
    if (text.length == 0 || text.length >= sizeof buffer)
        return false;
    memcpy(buffer, text.bytes, text.length);
    buffer[text.length] = '\0';
    if (strchr("+-.0123456789", buffer[0]) == NULL || strpbrk(buffer, "xXpP") != NULL)
        return false;
    char *end;
    double value = strtod(buffer, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

struct duration_unit {
    const char *suffix;
    int64_t ns;
};

/* Longest first, so that formatting takes the largest unit that divides. */
static const struct duration_unit DURATION_UNITS[] = {
    {"d", 86400LL * 1000000000LL},
    {"h", 3600LL * 1000000000LL},
    {"m", 60LL * 1000000000LL},
    {"s", 1000000000LL},
    {"ms", 1000000LL},
    {"us", 1000LL},
    {"ns", 1LL},
};

static const struct duration_unit *duration_unit_find(struct view suffix)
{
    for (size_t i = 0; i < ARRAY_LEN(DURATION_UNITS); i++)
        if (view_equals(suffix, DURATION_UNITS[i].suffix))
            return &DURATION_UNITS[i];
    return NULL;
}

static size_t span_of(struct view text, size_t from, bool digits)
{
    size_t i = from;
    while (i < text.length &&
           digits == ((text.bytes[i] >= '0' && text.bytes[i] <= '9') || text.bytes[i] == '.'))
        i++;
    return i - from;
}

bool text_parse_duration(struct view text, int64_t *ret_ns)
{
    double total = 0;
    size_t i = 0;
    if (text.length == 0)
        return false;
    while (i < text.length) {
        size_t digits = span_of(text, i, true);
        double value;
        if (!text_parse_number((struct view){text.bytes + i, digits}, &value))
            return false;
        i += digits;
        size_t letters = span_of(text, i, false);
        const struct duration_unit *unit = duration_unit_find(
            (struct view){text.bytes + i, letters});
        if (unit == NULL)
            return false;
        i += letters;
        total += value * (double)unit->ns;
    }
    if (total > 9.0e18)
        return false;
    *ret_ns = (int64_t)llround(total);
    return true;
}

void text_add_duration(struct text *text, int64_t duration_ns)
{
    if (duration_ns < 0) {
        text_add(text, "-");
        duration_ns = duration_ns == INT64_MIN ? INT64_MAX : -duration_ns;
    }
    if (duration_ns < NS_PER_S) {
        text_addf(text, "%lldms", (long long)(duration_ns / NS_PER_MS));
        return;
    }
    if (duration_ns < 60 * NS_PER_S) {
        double seconds = (double)duration_ns / (double)NS_PER_S;
        text_addf(text, duration_ns % NS_PER_S == 0 ? "%.0fs" : "%.1fs", seconds);
        return;
    }
    int parts = 0;
    int64_t rest = duration_ns;
    for (size_t i = 0; i < 4 && parts < 2; i++) {
        int64_t count = rest / DURATION_UNITS[i].ns;
        if (count == 0 && parts == 0)
            continue;
        rest -= count * DURATION_UNITS[i].ns;
        if (count > 0)
            text_addf(text, "%s%lld%s", parts > 0 ? " " : "", (long long)count,
                      DURATION_UNITS[i].suffix);
        parts++;
    }
}

/* Civil date of a day number since 1970-01-01, by Howard Hinnant's days_from_civil construction. */
static void civil_from_days(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day_of_era = z - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
                           day_of_era / 146096) /
                          365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_index = (5 * day_of_year + 2) / 153;
    *ret_day = (int)(day_of_year - (153 * month_index + 2) / 5 + 1);
    *ret_month = (int)(month_index < 10 ? month_index + 3 : month_index - 9);
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2 ? 1 : 0);
}

static int64_t days_from_civil(int64_t year, int month, int day)
{
    year -= month <= 2 ? 1 : 0;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

void text_add_time(struct text *text, int64_t time_ns)
{
    int64_t ms = time_ns / NS_PER_MS - (time_ns % NS_PER_MS < 0 ? 1 : 0);
    int64_t days = ms / 86400000 - (ms % 86400000 < 0 ? 1 : 0);
    int64_t in_day = ms - days * 86400000;
    int64_t year;
    int month, day;
    civil_from_days(days, &year, &month, &day);
    text_addf(text, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)year, month, day,
              (int)(in_day / 3600000), (int)(in_day / 60000 % 60), (int)(in_day / 1000 % 60),
              (int)(in_day % 1000));
}

static bool parse_digits(struct view text, size_t from, size_t count, int *ret_value)
{
    int64_t value;
    if (from + count > text.length || text.bytes[from] == '-' ||
        !text_parse_int((struct view){text.bytes + from, count}, &value))
        return false;
    *ret_value = (int)value;
    return true;
}

static bool parse_fraction_ns(struct view text, int64_t *ret_ns)
{
    int64_t scale = NS_PER_S;
    *ret_ns = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        scale /= 10;
        *ret_ns += (text.bytes[i] - '0') * scale;
    }
    return text.length > 0;
}

bool text_parse_time(struct view text, int64_t *ret_time_ns)
{
    int year, month, day, hour, minute, second;
    if (text.length < 20 || text.bytes[text.length - 1] != 'Z' || text.bytes[4] != '-' ||
        text.bytes[7] != '-' || (text.bytes[10] != 'T' && text.bytes[10] != ' ') ||
        text.bytes[13] != ':' || text.bytes[16] != ':')
        return false;
    if (!parse_digits(text, 0, 4, &year) || !parse_digits(text, 5, 2, &month) ||
        !parse_digits(text, 8, 2, &day) || !parse_digits(text, 11, 2, &hour) ||
        !parse_digits(text, 14, 2, &minute) || !parse_digits(text, 17, 2, &second))
        return false;
    if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 ||
        minute > 59 || second > 60)
        return false;
    int64_t fraction = 0;
    if (text.length > 20 &&
        (text.bytes[19] != '.' ||
         !parse_fraction_ns((struct view){text.bytes + 20, text.length - 21}, &fraction)))
        return false;
    int64_t seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 +
                      second;
    *ret_time_ns = seconds * NS_PER_S + fraction;
    return true;
}

enum { NEAREST_WORD_BYTES = 64 };

/* Optimal string alignment distance: insert, delete, replace, swap of neighbours. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_WORD_BYTES + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > NEAREST_WORD_BYTES || lb > NEAREST_WORD_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[la % 3][lb];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    size_t least = strlen(word) / 3 + 2; /* farther than this is no suggestion */
    for (size_t i = 0; i < count; i++) {
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < least) {
            least = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
