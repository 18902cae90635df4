/* Rows of an answer as a table: cells by the member's name, and the loop that prints them. */
#ifndef BROOM_CLI_ROWS_H
#define BROOM_CLI_ROWS_H

#include "controller/cli/cli.h"
#include "controller/cli/table.h"

enum row_number {
    ROW_WHOLE = 0,
    ROW_MS,    /* 2031.7 */
    ROW_RATIO, /* 1.30x */
    ROW_PART   /* 0.87 */
};

/* The member as a time; 0 when it is none. */
int64_t row_time_ns(const struct json *row, const char *key);
void row_add_time(struct table *table, const struct json *row, const char *key);
/* "-" when the member is no number. */
void row_add_number(struct table *table, const struct json *row, const char *key,
                    enum row_number form);
void row_add_string(struct table *table, const struct json *row, const char *key);

/* Nothing is printed when there are no rows, but CSV has its titles. */
void rows_print(struct cli *cli, const struct cli_common *common, const struct json *rows,
                const struct table_column *columns, size_t column_count,
                void (*add_row)(struct table *table, const struct json *row));

#endif
