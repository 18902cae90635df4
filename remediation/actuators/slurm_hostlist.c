/* A term is read as parts: literal text, or a bracket group of numbers. */
#include "remediation/actuators/slurm_hostlist.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 8, DIGITS_MAX = 18 };

struct range {
    int64_t first, last;
    int width;
};

struct part {
    struct view text; /* literal; for a group what stands between the brackets */
    bool is_group;
};

struct term {
    struct part parts[PARTS_MAX];
    size_t count;
};

/* --- reading --- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool hostlist_is_name(const char *name)
{
    if (name[0] == '\0' || name[0] == '-' || strlen(name) >= HOSTLIST_NAME_BYTES)
        return false;
    for (const char *c = name; *c != '\0'; c++)
        if (!is_name_byte(*c))
            return false;
    return true;
}

static enum status bad(struct view text, const char *why, struct error *reterr)
{
    return error_set(reterr, ERR_INVALID, "hostlist '%.*s': %s",
                     (int)(text.length < 200 ? text.length : 200), text.bytes, why);
}

static enum status read_number(struct view *rest, int64_t *ret_number, int *ret_width,
                               struct view whole, struct error *reterr)
{
    int64_t number = 0;
    int width = 0;
    while (rest->length > 0 && rest->bytes[0] >= '0' && rest->bytes[0] <= '9') {
        number = number * 10 + (rest->bytes[0] - '0');
        rest->bytes++;
        rest->length--;
        if (++width > DIGITS_MAX)
            return bad(whole, "a number is too long", reterr);
    }
    if (width == 0)
        return bad(whole, "a number is missing between the brackets", reterr);
    *ret_number = number;
    *ret_width = width;
    return OK;
}

/* One range off the front of a group. */
static enum status read_range(struct view *rest, struct range *ret_range, struct view whole,
                              struct error *reterr)
{
    struct range range = {0};
    int width_last;
    TRY(read_number(rest, &range.first, &range.width, whole, reterr));
    range.last = range.first;
    if (rest->length > 0 && rest->bytes[0] == '-') {
        rest->bytes++;
        rest->length--;
        TRY(read_number(rest, &range.last, &width_last, whole, reterr));
        if (range.last < range.first)
            return bad(whole, "a range counts down", reterr);
    }
    if (rest->length > 0) {
        if (rest->bytes[0] != ',')
            return bad(whole, "only numbers, '-' and ',' may stand between brackets", reterr);
        rest->bytes++;
        rest->length--;
        if (rest->length == 0)
            return bad(whole, "a number is missing between the brackets", reterr);
    }
    *ret_range = range;
    return OK;
}

static enum status add_part(struct term *term, struct view text, bool is_group, struct view whole,
                            struct error *reterr)
{
    if (text.length == 0 && !is_group)
        return OK;
    if (term->count == PARTS_MAX)
        return bad(whole, "too many bracket groups in one name", reterr);
    term->parts[term->count++] = (struct part){text, is_group};
    return OK;
}

/* One term off the front; its comma too. */
static enum status read_term(struct view *rest, struct term *term, struct view whole,
                             struct error *reterr)
{
    size_t i = 0, from = 0;
    *term = (struct term){0};
    for (; i < rest->length && rest->bytes[i] != ','; i++) {
        if (rest->bytes[i] != '[') {
            if (!is_name_byte(rest->bytes[i]))
                return bad(whole, "a byte that no node name holds", reterr);
            continue;
        }
        TRY(add_part(term, (struct view){rest->bytes + from, i - from}, false, whole, reterr));
        from = i + 1;
        while (i < rest->length && rest->bytes[i] != ']')
            i++;
        if (i == rest->length)
            return bad(whole, "a bracket is not closed", reterr);
        TRY(add_part(term, (struct view){rest->bytes + from, i - from}, true, whole, reterr));
        from = i + 1;
    }
    TRY(add_part(term, (struct view){rest->bytes + from, i - from}, false, whole, reterr));
    bool has_comma = i < rest->length;
    rest->bytes += i + (has_comma ? 1 : 0);
    rest->length -= i + (has_comma ? 1 : 0);
    if (term->count == 0 || (has_comma && rest->length == 0))
        return bad(whole, "a name is missing", reterr);
    return OK;
}

/* --- expanding --- */

struct expansion {
    const struct term *term;
    struct names *names;
    struct view whole;
    char name[HOSTLIST_NAME_BYTES];
};

static enum status expand_part(struct expansion *expansion, size_t part, size_t length,
                               struct error *reterr);

static enum status put_bytes(struct expansion *expansion, size_t *length, const char *bytes,
                             size_t count, struct error *reterr)
{
    if (*length + count >= sizeof expansion->name)
        return bad(expansion->whole, "a name is too long", reterr);
    memcpy(expansion->name + *length, bytes, count);
    *length += count;
    return OK;
}

static enum status put_number(struct expansion *expansion, size_t *length, int64_t number,
                              int width, struct error *reterr)
{
    AUTO_TEXT digits = {0};
    text_addf(&digits, "%0*lld", width, (long long)number);
    return put_bytes(expansion, length, digits.bytes, digits.length, reterr);
}

static enum status expand_group(struct expansion *expansion, size_t part, size_t length,
                                struct error *reterr)
{
    struct view rest = expansion->term->parts[part].text;
    if (rest.length == 0)
        return bad(expansion->whole, "a number is missing between the brackets", reterr);
    while (rest.length > 0) {
        struct range range;
        TRY(read_range(&rest, &range, expansion->whole, reterr));
        for (int64_t number = range.first; number <= range.last; number++) {
            size_t end = length;
            TRY(put_number(expansion, &end, number, range.width, reterr));
            TRY(expand_part(expansion, part + 1, end, reterr));
        }
    }
    return OK;
}

static enum status expand_part(struct expansion *expansion, size_t part, size_t length,
                               struct error *reterr)
{
    if (part == expansion->term->count) {
        if (expansion->names->count >= HOSTLIST_NAMES_MAX)
            return error_set(reterr, ERR_LIMIT, "a hostlist of more than %d names",
                             HOSTLIST_NAMES_MAX);
        expansion->name[length] = '\0';
        names_add(expansion->names, expansion->name);
        return OK;
    }
    const struct part *next = &expansion->term->parts[part];
    if (next->is_group)
        return expand_group(expansion, part, length, reterr);
    TRY(put_bytes(expansion, &length, next->text.bytes, next->text.length, reterr));
    return expand_part(expansion, part + 1, length, reterr);
}

enum status hostlist_expand(struct view text, struct names *names, struct error *reterr)
{
    struct view rest = text;
    if (text.length == 0 || view_equals(text, "(null)"))
        return OK;
    while (rest.length > 0) {
        struct term term;
        TRY(read_term(&rest, &term, text, reterr));
        struct expansion expansion = {.term = &term, .names = names, .whole = text};
        TRY(expand_part(&expansion, 0, 0, reterr));
    }
    return OK;
}

/* --- folding --- */

/* A name as prefix and trailing number; without a number width is 0. */
struct piece {
    const char *name;
    size_t prefix_bytes;
    int width;
    int64_t number;
};

static struct piece piece_of(const char *name)
{
    size_t length = strlen(name), digits = 0;
    while (digits < length && digits < DIGITS_MAX && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9')
        digits++;
    struct piece piece = {name, length - digits, (int)digits, 0};
    for (size_t i = piece.prefix_bytes; i < length; i++)
        piece.number = piece.number * 10 + (name[i] - '0');
    return piece;
}

static int compare_prefixes(const struct piece *a, const struct piece *b)
{
    size_t both = a->prefix_bytes < b->prefix_bytes ? a->prefix_bytes : b->prefix_bytes;
    int order = memcmp(a->name, b->name, both);
    if (order == 0 && a->prefix_bytes != b->prefix_bytes)
        order = a->prefix_bytes < b->prefix_bytes ? -1 : 1;
    return order != 0 ? order : (a->width > b->width) - (a->width < b->width);
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *left = a, *right = b;
    int order = compare_prefixes(left, right);
    return order != 0 ? order : (left->number > right->number) - (left->number < right->number);
}

/* The run of one prefix and width that begins at `from`; returns its end. */
static size_t add_run(struct text *out, const struct piece *pieces, size_t from, size_t count)
{
    size_t end = from + 1;
    while (end < count && compare_prefixes(&pieces[from], &pieces[end]) == 0)
        end++;
    bool is_one = pieces[end - 1].number == pieces[from].number;
    text_addf(out, "%s%.*s%s", from > 0 ? "," : "", (int)pieces[from].prefix_bytes,
              pieces[from].name, is_one ? "" : "[");
    for (size_t i = from; i < end && pieces[from].width > 0;) {
        size_t last = i;
        while (last + 1 < end && pieces[last + 1].number <= pieces[last].number + 1)
            last++;
        text_addf(out, "%s%0*lld", i > from ? "," : "", pieces[from].width,
                  (long long)pieces[i].number);
        if (pieces[last].number > pieces[i].number)
            text_addf(out, "-%0*lld", pieces[from].width, (long long)pieces[last].number);
        i = last + 1;
    }
    text_add(out, is_one ? "" : "]");
    return end;
}

void hostlist_add(struct text *out, const char *const *names, size_t count)
{
    if (count == 0)
        return;
    AUTO_FREE struct piece *pieces = xcalloc(count, sizeof *pieces);
    for (size_t i = 0; i < count; i++)
        pieces[i] = piece_of(names[i]);
    qsort(pieces, count, sizeof *pieces, compare_pieces);
    for (size_t i = 0; i < count;)
        i = add_run(out, pieces, i, count);
}
