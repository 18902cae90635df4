/* From members of a JSON object to cells. */
#include "controller/cli/rows.h"

#include <math.h>
#include <string.h>

int64_t row_time_ns(const struct json *row, const char *key)
{
    int64_t time_ns = 0;
    const char *text = json_get_string(row, key, NULL);
    return text != NULL && text_parse_time(view_of(text), &time_ns) ? time_ns : 0;
}

void row_add_time(struct table *table, const struct json *row, const char *key)
{
    AUTO_TEXT shown = {0};
    cli_add_time(&shown, row_time_ns(row, key));
    table_add_both(table, shown.bytes, json_get_string(row, key, ""));
}

void row_add_number(struct table *table, const struct json *row, const char *key,
                    enum row_number form)
{
    static const int decimals[] = {[ROW_WHOLE] = 0, [ROW_MS] = 1, [ROW_RATIO] = 2, [ROW_PART] = 2};
    double value = json_get_number(row, key, NAN);
    char shown[64];
    char exact[64];
    if (!isfinite(value)) {
        table_add(table, NULL);
        return;
    }
    snprintf(shown, sizeof shown, "%.*f%s", decimals[form], value, form == ROW_RATIO ? "x" : "");
    snprintf(exact, sizeof exact, "%.10g", value);
    table_add_both(table, shown, exact);
}

void row_add_string(struct table *table, const struct json *row, const char *key)
{
    table_add(table, json_get_string(row, key, ""));
}

void rows_print(struct cli *cli, const struct cli_common *common, const struct json *rows,
                const struct table_column *columns, size_t column_count,
                void (*add_row)(struct table *table, const struct json *row))
{
    AUTO(table_free) struct table *table = table_new(columns, column_count);
    for (const struct json *row = json_first(rows); row != NULL; row = json_next(row))
        add_row(table, row);
    if (table_rows(table) > 0 || strcmp(common->output, "csv") == 0)
        table_print(table, common->output, !common->no_headers, cli->colour && !common->no_colour,
                    cli->out);
}
