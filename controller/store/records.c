/* Lines of JSON. */
#include "controller/store/records.h"

#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0u) == 0x80;
}

/* Bytes of the UTF-8 sequence at the start, or 0 when there is none (overlong forms and surrogates
 * are none). */
static size_t utf8_length(const unsigned char *bytes, size_t length)
{
    unsigned char lead = bytes[0];
    if (lead < 0x80)
        return 1;
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || length < need)
        return 0;
    for (size_t i = 1; i < need; i++)
        if (!is_continuation(bytes[i]))
            return 0;
    bool is_overlong = (lead == 0xE0 && bytes[1] < 0xA0) || (lead == 0xF0 && bytes[1] < 0x90);
    bool is_beyond = (lead == 0xED && bytes[1] > 0x9F) || (lead == 0xF4 && bytes[1] > 0x8F);
    return is_overlong || is_beyond ? 0 : need;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The unit of a \uXXXX escape at the start, or -1. */
static int escape_unit(struct view text)
{
    int unit = 0;
    if (text.length < 6 || text.bytes[0] != '\\' || text.bytes[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        int digit = hex_digit(text.bytes[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Adds the escape at the start of the text; returns how many bytes of it were used. */
static size_t clean_escape(struct view text, struct text *out)
{
    int unit = escape_unit(text);
    if (unit < 0) {
        size_t length = text.length < 2 ? text.length : 2;
        text_add_bytes(out, text.bytes, length);
        return length;
    }
    bool is_high = unit >= 0xD800 && unit <= 0xDBFF;
    if (is_high) {
        int low = escape_unit((struct view){text.bytes + 6, text.length - 6});
        if (low >= 0xDC00 && low <= 0xDFFF) {
            text_add_bytes(out, text.bytes, 12);
            return 12;
        }
    }
    if (unit == 0 || (unit >= 0xD800 && unit <= 0xDFFF))
        text_add(out, "\\ufffd");
    else
        text_add_bytes(out, text.bytes, 6);
    return 6;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '\\';
}

static void clean_line(struct view line, struct text *out)
{
    const unsigned char *bytes = (const unsigned char *)line.bytes;
    for (size_t i = 0; i < line.length;) {
        size_t from = i;
        while (i < line.length && is_plain(bytes[i]))
            i++;
        text_add_bytes(out, line.bytes + from, i - from);
        if (i == line.length)
            break;
        if (bytes[i] == '\\') {
            i += clean_escape((struct view){line.bytes + i, line.length - i}, out);
            continue;
        }
        size_t length = bytes[i] == '\0' ? 0 : utf8_length(bytes + i, line.length - i);
        if (length == 0)
            text_add(out, REPLACEMENT);
        else
            text_add_bytes(out, line.bytes + i, length);
        i += length > 0 ? length : 1;
    }
}

/* Takes the next line off; without its newline. False at the end. */
static bool next_line(struct view *rest, struct view *ret_line)
{
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->bytes, '\n', rest->length);
    size_t length = end != NULL ? (size_t)(end - rest->bytes) : rest->length;
    *ret_line = (struct view){rest->bytes, length};
    size_t used = end != NULL ? length + 1 : length;
    *rest = (struct view){rest->bytes + used, rest->length - used};
    return true;
}

int64_t records_clean(struct view lines, struct text *out)
{
    int64_t count = 0;
    struct view line;
    while (next_line(&lines, &line)) {
        if (line.length == 0)
            continue;
        clean_line(line, out);
        text_add(out, "\n");
        count++;
    }
    return count;
}

void records_to_array(struct view lines, struct text *out)
{
    struct view line;
    bool is_first = true;
    text_add(out, "[");
    while (next_line(&lines, &line)) {
        text_add(out, is_first ? "" : ",");
        text_add_bytes(out, line.bytes, line.length);
        is_first = false;
    }
    text_add(out, "]");
}

size_t records_middle(struct view lines)
{
    size_t count = 0, passed = 0;
    for (size_t i = 0; i < lines.length; i++)
        count += lines.bytes[i] == '\n';
    for (size_t i = 0; i < lines.length; i++) {
        passed += lines.bytes[i] == '\n';
        if (passed == count / 2 && passed > 0)
            return i + 1;
    }
    return 0;
}
