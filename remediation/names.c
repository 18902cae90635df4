/* Lists of names. */
#include "remediation/names.h"

#include <string.h>

void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        xfree(names->items[i]);
    xfree(names->items);
    *names = (struct names){0};
}

void names_add(struct names *names, const char *name)
{
    names->items = array_grow(names->items, names->count, &names->capacity, sizeof *names->items);
    names->items[names->count++] = xstrdup(name);
}

bool names_has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

bool names_add_new(struct names *names, const char *name)
{
    if (names_has(names, name))
        return false;
    names_add(names, name);
    return true;
}

void names_remove(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) != 0)
            continue;
        xfree(names->items[i]);
        memmove(&names->items[i], &names->items[i + 1],
                (names->count - i - 1) * sizeof *names->items);
        names->count--;
        return;
    }
}

void names_copy(struct names *to, const struct names *from)
{
    struct names copy = {0};
    for (size_t i = 0; i < from->count; i++)
        names_add(&copy, from->items[i]);
    names_done(to);
    *to = copy;
}

void names_write(const struct names *names, struct json_writer *writer)
{
    json_open_array(writer);
    for (size_t i = 0; i < names->count; i++)
        json_add_string(writer, names->items[i]);
    json_close(writer);
}

void names_parse(struct names *names, const struct json *array)
{
    names_done(names);
    if (json_kind(array) != JSON_ARRAY)
        return;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item))
        if (json_kind(item) == JSON_STRING)
            names_add(names, json_string(item, ""));
}

void names_add_sentence(const struct names *names, size_t limit, struct text *out)
{
    size_t shown = names->count <= limit + 1 ? names->count : limit;
    for (size_t i = 0; i < shown; i++) {
        const char *lead = i == 0 ? "" : i + 1 == names->count ? " and " : ", ";
        text_addf(out, "%s%s", lead, names->items[i]);
    }
    if (shown < names->count)
        text_addf(out, " and %zu more", names->count - shown);
}
