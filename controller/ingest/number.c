/* The fast path is exact by Clinger's argument: a decimal of at most 2^53 divided or multiplied by
 * a power of ten of at most 10^22 is one correctly rounded operation on two exact doubles.
 * Everything else is left to strtod. (W. D. Clinger, How to Read Floating Point Numbers Accurately,
 * PLDI 1990.) */
#include "controller/ingest/number.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { NUMBER_BYTES_MAX = 63 };

struct word {
    const char *text;
    double value;
};

static const char *read_word(const char *at, const char *end, double *ret_value)
{
    static const struct word words[] = {{"NaN", NAN},
                                        {"nan", NAN},
                                        {"NAN", NAN},
                                        {"true", 1},
                                        {"false", 0},
                                        {"True", 1},
                                        {"False", 0},
                                        {"TRUE", 1},
                                        {"FALSE", 0},
                                        {"t", 1},
                                        {"f", 0},
                                        {"T", 1},
                                        {"F", 0},
                                        {"inf", INFINITY},
                                        {"Inf", INFINITY},
                                        {"-inf", -INFINITY},
                                        {"-Inf", -INFINITY},
                                        {"+Inf", INFINITY}};
    size_t length = 0;
    while (at + length < end && at[length] != ',' && at[length] != ' ' && at[length] != '\r')
        length++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].text) == length && memcmp(words[i].text, at, length) == 0) {
            *ret_value = words[i].value;
            return at + length;
        }
    return NULL;
}

/* Anything that the fast path does not take: many digits, large exponents. */
static const char *read_slow(const char *at, const char *end, double *ret_value)
{
    char buffer[NUMBER_BYTES_MAX + 1];
    size_t length = 0;
    while (at + length < end && at[length] != '\0' && strchr("+-.0123456789eE", at[length]) != NULL)
        length++;
    if (length == 0 || length > NUMBER_BYTES_MAX)
        return NULL;
    memcpy(buffer, at, length);
    buffer[length] = '\0';
    char *stop;
    *ret_value = strtod(buffer, &stop);
    return stop == buffer ? NULL : at + (stop - buffer);
}

static bool is_digit(const char *at, const char *end)
{
    return at < end && (unsigned char)(*at - '0') <= 9;
}

static const char *read_decimal(const char *at, const char *end, double *ret_value)
{
    const char *start = at;
    bool is_negative = at < end && *at == '-';
    at += is_negative || (at < end && *at == '+') ? 1 : 0;
    const char *digits = at;
    uint64_t mantissa = 0;
    for (; is_digit(at, end); at++)
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
    ptrdiff_t count = at - digits;
    ptrdiff_t fraction = 0;
    if (at < end && *at == '.') {
        const char *point = ++at;
        for (; is_digit(at, end); at++)
            mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        fraction = at - point;
        count += fraction;
    }
    if (count == 0)
        return NULL;
    bool is_exact = count <= 19 && mantissa <= (UINT64_C(1) << 53) && fraction <= 22;
    if (!is_exact || (at < end && (*at == 'e' || *at == 'E')))
        return read_slow(start, end, ret_value);
    double value = (double)mantissa;
    if (fraction > 0)
        value /= POWERS_OF_TEN[fraction];
    *ret_value = is_negative ? -value : value;
    return at;
}

const char *number_read(const char *at, const char *end, double *ret_value)
{
    const char *next = read_decimal(at, end, ret_value);
    if (next == NULL)
        return read_word(at, end, ret_value);
    if (next < end && (*next == 'i' || *next == 'u'))
        next++;
    return next;
}
