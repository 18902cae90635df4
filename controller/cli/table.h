/* Rows and columns for people (aligned) and for programs (CSV). Titles may change between releases;
 * the CSV names may only grow.
 */
#ifndef BROOM_CLI_TABLE_H
#define BROOM_CLI_TABLE_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

#include <stdio.h>

struct table_column {
    const char *title;                       /* "STARTED (UTC)" */
    const char *name;                        /* in CSV: "started" */
    bool right;                              /* numbers stand right */
    bool wide_only;                          /* table leaves it out; wide and csv show it */
    const char *(*colour)(const char *cell); /* SGR parameters or NULL; may be NULL */
};

struct table;
struct table *table_new(const struct table_column *columns, size_t count); /* columns are lent */
void table_free(struct table *table);
DEFINE_AUTO(struct table, table_free)

/* The next cell, row by row; copied. NULL and "" are shown as "-" (empty in CSV). */
void table_add(struct table *table, const char *cell);
void table_addf(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
/* A cell that differs between people and programs: "41s" and "41.2". */
void table_add_both(struct table *table, const char *cell, const char *csv);
size_t table_rows(const struct table *table);

/* output: "table", "wide" or "csv". */
void table_print(const struct table *table, const char *output, bool headers, bool colour,
                 FILE *out);

void csv_add_cell(struct text *out, const char *cell, bool first); /* quotes where needed */

const char *colour_of_severity(const char *severity);
const char *colour_of_status(const char *status); /* of incidents, ranks, outcomes */

#endif
