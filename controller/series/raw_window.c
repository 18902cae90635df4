/* Columns to bytes and back. */
#include "controller/series/raw_window.h"

#include <string.h>

static const char MAGIC[4] = {'B', 'R', 'W', '1'};
enum { HEADER_BYTES = 12, POINT_BYTES = 8 + 8 + 4 + 4 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "columns are written as they lie in memory");

void raw_window_encode(const struct raw_window *window, struct text *out)
{
    uint64_t count = window->count;
    text_add_bytes(out, MAGIC, sizeof MAGIC);
    text_add_bytes(out, &count, sizeof count);
    text_add_bytes(out, window->time_ns, window->count * sizeof *window->time_ns);
    text_add_bytes(out, window->step, window->count * sizeof *window->step);
    text_add_bytes(out, window->rank, window->count * sizeof *window->rank);
    text_add_bytes(out, window->value, window->count * sizeof *window->value);
}

static void *take_column(const char **at, size_t count, size_t cell_bytes)
{
    void *column = xcalloc(count, cell_bytes);
    if (count > 0)
        memcpy(column, *at, count * cell_bytes);
    *at += count * cell_bytes;
    return column;
}

enum status raw_window_decode(struct view bytes, struct raw_window *ret_window,
                              struct error *reterr)
{
    uint64_t count;
    if (bytes.length < HEADER_BYTES || memcmp(bytes.bytes, MAGIC, sizeof MAGIC) != 0)
        return error_set(reterr, ERR_INVALID, "not a raw window");
    memcpy(&count, bytes.bytes + sizeof MAGIC, sizeof count);
    if (count > RAW_WINDOW_BYTES_MAX / POINT_BYTES ||
        bytes.length != HEADER_BYTES + count * POINT_BYTES)
        return error_set(reterr, ERR_INVALID, "a raw window of %zu bytes does not hold %llu points",
                         bytes.length, (unsigned long long)count);
    const char *at = bytes.bytes + HEADER_BYTES;
    struct raw_window window = {.count = (size_t)count};
    window.time_ns = take_column(&at, window.count, sizeof *window.time_ns);
    window.step = take_column(&at, window.count, sizeof *window.step);
    window.rank = take_column(&at, window.count, sizeof *window.rank);
    window.value = take_column(&at, window.count, sizeof *window.value);
    *ret_window = window;
    return OK;
}

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct view bytes, struct text *out)
{
    char quad[4];
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t left = bytes.length - i;
        uint32_t group = (uint32_t)(unsigned char)bytes.bytes[i] << 16;
        group |= left > 1 ? (uint32_t)(unsigned char)bytes.bytes[i + 1] << 8 : 0;
        group |= left > 2 ? (uint32_t)(unsigned char)bytes.bytes[i + 2] : 0;
        quad[0] = ALPHABET[group >> 18];
        quad[1] = ALPHABET[group >> 12 & 63];
        quad[2] = left > 1 ? ALPHABET[group >> 6 & 63] : '=';
        quad[3] = left > 2 ? ALPHABET[group & 63] : '=';
        text_add_bytes(out, quad, sizeof quad);
    }
}

static int digit_of(char c)
{
    const char *found = c != '\0' ? memchr(ALPHABET, c, sizeof ALPHABET - 1) : NULL;
    return found != NULL ? (int)(found - ALPHABET) : -1;
}

static bool decode_quad(const char *quad, bool is_last, struct text *out)
{
    int pad = quad[3] != '=' ? 0 : quad[2] != '=' ? 1 : 2;
    uint32_t group = 0;
    if (pad > 0 && !is_last)
        return false;
    for (int i = 0; i < 4; i++) {
        int digit = i < 4 - pad ? digit_of(quad[i]) : 0;
        if (digit < 0)
            return false;
        group = group << 6 | (uint32_t)digit;
    }
    unsigned char bytes[3] = {(unsigned char)(group >> 16), (unsigned char)(group >> 8),
                              (unsigned char)group};
    text_add_bytes(out, bytes, (size_t)(3 - pad));
    return true;
}

bool base64_decode(struct view text, struct text *out)
{
    if (text.length % 4 != 0)
        return false;
    for (size_t i = 0; i < text.length; i += 4)
        if (!decode_quad(text.bytes + i, i + 4 == text.length, out))
            return false;
    return true;
}
