/* Tables: columns as wide as their widest cell, two spaces between them, nothing behind the last.
 */
#include "controller/cli/table.h"

#include <string.h>

struct cell {
    char *shown;
    char *csv;
};

struct table {
    const struct table_column *columns;
    size_t column_count;
    struct cell *cells;
    size_t count;
    size_t capacity;
};

struct table *table_new(const struct table_column *columns, size_t count)
{
    struct table *table = xcalloc(1, sizeof *table);
    table->columns = columns;
    table->column_count = count;
    return table;
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->count; i++) {
        xfree(table->cells[i].shown);
        xfree(table->cells[i].csv);
    }
    xfree(table->cells);
    xfree(table);
}

/* What comes from a server must not steer the terminal: control bytes become '?'. C1 controls are
 * two bytes in UTF-8, 0xc2 and 0x80..0x9f. */
static char *clean_copy(const char *text)
{
    char *copy = xstrdup(text);
    for (unsigned char *c = (unsigned char *)copy; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
            c[0] = c[1] = '?';
    }
    return copy;
}

void table_add_both(struct table *table, const char *cell, const char *csv)
{
    table->cells = array_grow(table->cells, table->count, &table->capacity, sizeof *table->cells);
    table->cells[table->count++] = (struct cell){
        clean_copy(cell == NULL || cell[0] == '\0' ? "-" : cell),
        clean_copy(csv == NULL ? "" : csv)};
}

void table_add(struct table *table, const char *cell)
{
    table_add_both(table, cell, cell);
}

void table_addf(struct table *table, const char *format, ...)
{
    AUTO_TEXT text = {0};
    va_list args;
    va_start(args, format);
    text_addv(&text, format, args);
    va_end(args);
    table_add(table, text.bytes);
}

size_t table_rows(const struct table *table)
{
    return table->count / table->column_count;
}

void csv_add_cell(struct text *out, const char *cell, bool first)
{
    if (!first)
        text_add(out, ",");
    if (strpbrk(cell, ",\"\r\n") == NULL) {
        text_add(out, cell);
        return;
    }
    text_add(out, "\"");
    for (const char *c = cell; *c != '\0'; c++) {
        if (*c == '"')
            text_add(out, "\"");
        text_add_bytes(out, c, 1);
    }
    text_add(out, "\"");
}

static void print_csv(const struct table *table, bool headers, FILE *out)
{
    AUTO_TEXT text = {0};
    for (size_t column = 0; headers && column < table->column_count; column++)
        csv_add_cell(&text, table->columns[column].name, column == 0);
    if (headers)
        text_add(&text, "\n");
    for (size_t i = 0; i < table->count; i++) {
        csv_add_cell(&text, table->cells[i].csv, i % table->column_count == 0);
        if (i % table->column_count == table->column_count - 1)
            text_add(&text, "\n");
    }
    fwrite(text.bytes, 1, text.length, out);
}

static size_t shown_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) !=
                 0x80; /* continuation bytes of UTF-8 take no place */
    return width;
}

struct layout {
    const struct table *table;
    size_t *widths;
    size_t last; /* last column that is shown */
    bool wide;
    bool colour;
    FILE *out;
};

static void print_cell(const struct layout *layout, size_t column, const char *cell, bool is_title)
{
    const struct table_column *spec = &layout->table->columns[column];
    if (spec->wide_only && !layout->wide)
        return;
    size_t pad = layout->widths[column] - shown_width(cell);
    const char *sgr = !layout->colour ? NULL
                      : is_title      ? "2"
                      : spec->colour  ? spec->colour(cell)
                                      : NULL;
    if (spec->right)
        fprintf(layout->out, "%*s", (int)pad, "");
    if (sgr != NULL)
        fprintf(layout->out, "\033[%sm%s\033[0m", sgr, cell);
    else
        fputs(cell, layout->out);
    if (column == layout->last)
        fputc('\n', layout->out);
    else
        fprintf(layout->out, "%*s", (int)(spec->right ? 2 : pad + 2), "");
}

static void measure(struct layout *layout, bool headers)
{
    const struct table *table = layout->table;
    for (size_t column = 0; column < table->column_count; column++) {
        layout->widths[column] = headers ? shown_width(table->columns[column].title) : 0;
        if (!table->columns[column].wide_only || layout->wide)
            layout->last = column;
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t width = shown_width(table->cells[i].shown);
        size_t *widest = &layout->widths[i % table->column_count];
        *widest = width > *widest ? width : *widest;
    }
}

void table_print(const struct table *table, const char *output, bool headers, bool colour,
                 FILE *out)
{
    if (strcmp(output, "csv") == 0) {
        print_csv(table, headers, out);
        return;
    }
    AUTO_FREE size_t *widths = xcalloc(table->column_count, sizeof *widths);
    struct layout layout = {.table = table,
                            .widths = widths,
                            .wide = strcmp(output, "wide") == 0,
                            .colour = colour,
                            .out = out};
    measure(&layout, headers);
    for (size_t column = 0; headers && column < table->column_count; column++)
        print_cell(&layout, column, table->columns[column].title, true);
    for (size_t i = 0; i < table->count; i++)
        print_cell(&layout, i % table->column_count, table->cells[i].shown, false);
}

const char *colour_of_severity(const char *severity)
{
    return strcmp(severity, "P0") == 0   ? "1;31"
           : strcmp(severity, "P1") == 0 ? "31"
           : strcmp(severity, "P2") == 0 ? "33"
                                         : NULL;
}

const char *colour_of_status(const char *status)
{
    static const struct {
        const char *status, *sgr;
    } colours[] = {{"open", "33"},    {"mitigated", "36"}, {"resolved", "32"}, {"abnormal", "31"},
                   {"watch", "33"},   {"stale", "35"},     {"normal", "32"},   {"succeeded", "32"},
                   {"refused", "31"}, {"unknown", "35"},   {"escalated", "31"}};
    for (size_t i = 0; i < ARRAY_LEN(colours); i++)
        if (strcmp(status, colours[i].status) == 0)
            return colours[i].sgr;
    return NULL;
}
