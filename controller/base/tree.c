/* Look-ups in positioned trees, and lists of findings. */
#include "controller/base/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct tree_node *tree_get(const struct tree_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->kind != TREE_MAPPING)
        return NULL;
    for (const struct tree_node *member = mapping->first; member != NULL; member = member->next)
        if (strcmp(member->key, key) == 0)
            return member;
    return NULL;
}

void findings_done(struct findings *findings)
{
    xfree(findings->items);
    *findings = (struct findings){0};
}

void findings_add(struct findings *findings, bool is_error, const char *rule, int line, int column,
                  const char *format, ...)
{
    findings->items = array_grow(findings->items, findings->count, &findings->capacity,
                                 sizeof *findings->items);
    struct finding *finding = &findings->items[findings->count++];
    *finding = (struct finding){.line = line, .column = column, .is_error = is_error, .rule = rule};
    va_list args;
    va_start(args, format);
    vsnprintf(finding->message, sizeof finding->message, format, args);
    va_end(args);
    findings->errors += is_error ? 1 : 0;
}

static int compare_findings(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return strcmp(x->rule, y->rule);
}

void findings_print(const struct findings *findings, const char *file, struct text *out)
{
    if (findings->count == 0)
        return;
    AUTO_FREE struct finding *sorted = xcalloc(findings->count, sizeof *sorted);
    memcpy(sorted, findings->items, findings->count * sizeof *sorted);
    qsort(sorted, findings->count, sizeof *sorted, compare_findings);
    for (size_t i = 0; i < findings->count; i++)
        text_addf(out, "%s:%d:%d: %s: %s [%s]\n", file, sorted[i].line, sorted[i].column,
                  sorted[i].is_error ? "error" : "warning", sorted[i].message, sorted[i].rule);
}
