/* The small formats that tables and reports are made of. */
#include "controller/cli/cli.h"
#include "controller/cli/table.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static void assert_text(struct text *text, const char *wanted)
{
    if (text->bytes == NULL || strcmp(text->bytes, wanted) != 0)
        printf("\n'%s' instead of '%s'", text->bytes != NULL ? text->bytes : "", wanted);
    CU_ASSERT_STRING_EQUAL(text->bytes != NULL ? text->bytes : "", wanted);
    text_done(text);
}

TEST(spans_read_as_people_say_them)
{
    static const struct {
        int64_t ns;
        const char *text;
    } spans[] = {{0, "0.0s"},
                 {250000000, "0.2s"},
                 {9 * SECOND, "9.0s"},
                 {9949 * SECOND / 1000, "9.9s"},
                 {10 * SECOND, "10s"},
                 {59 * SECOND + 499000000, "59s"},
                 {59 * SECOND + 500000000, "1m00s"},
                 {728 * SECOND, "12m08s"},
                 {11100 * SECOND, "3h05m"},
                 {187200 * SECOND, "2d04h"},
                 {-1, "-"}};
    for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
        struct text text = {0};
        cli_add_span(&text, spans[i].ns);
        assert_text(&text, spans[i].text);
    }
}

TEST(large_numbers_are_grouped_and_unknown_ones_are_a_dash)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } numbers[] = {{0, 0, "0"},
                   {999, 0, "999"},
                   {1000, 0, "1,000"},
                   {1871.25, 1, "1,871.2"},
                   {-1234567, 0, "-1,234,567"},
                   {-0.001, 1, "0.0"}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct text text = {0};
        cli_add_grouped(&text, numbers[i].value, numbers[i].decimals);
        assert_text(&text, numbers[i].text);
    }
    struct text unknown = {0};
    cli_add_grouped(&unknown, (double)NAN, 1);
    assert_text(&unknown, "-");
}

TEST(ranks_are_written_as_ranges)
{
    static const char *const cases[][2] = {
        {"[]", "none"}, {"[5]", "5"}, {"[0,1,2,3,8]", "0-3, 8"}, {"[1,3,4]", "1, 3-4"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(json_free) struct json *root = NULL;
        struct text text = {0};
        CU_ASSERT_EQUAL_FATAL(json_parse(view_of(cases[i][0]), &root, NULL), OK);
        cli_add_ranges(&text, root);
        assert_text(&text, cases[i][1]);
    }
}

TEST(names_in_paths_are_encoded)
{
    struct text text = {0};
    text_add_percent(&text, "a/b c?d&e=\xc3\xa9");
    assert_text(&text, "a%2Fb%20c%3Fd%26e%3D%C3%A9");
}

TEST(times_in_nanoseconds_are_written_whole)
{
    static const char json[] =
        "{\"time_ns\":1780000340000000000,\"x\":0.5,\"list\":[1,2],\"empty\":{},\"s\":\"a\\\"b\"}";
    AUTO(json_free) struct json *root = NULL;
    struct text text = {0};
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(json), &root, NULL), OK);
    json_print(root, &text);
    assert_text(&text, json);
    cli_add_pretty_json(&text, json_get(root, "list"));
    assert_text(&text, "[1, 2]");
}

TEST(csv_cells_are_quoted_where_they_must_be)
{
    static const struct table_column columns[] = {{"A", "a", false, false, NULL},
                                                  {"B", "b", true, true, NULL}};
    AUTO(table_free) struct table *table = table_new(columns, 2);
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    table_add(table, "plain");
    table_add_both(table, "41s", "41.2");
    table_add(table, "say \"no\", twice");
    table_add(table, NULL);
    table_print(table, "csv", true, false, out);
    table_print(table, "table", true, false, out);
    fclose(out);
    CU_ASSERT_STRING_EQUAL(
        printed, "a,b\nplain,41.2\n\"say \"\"no\"\", twice\",\nA\nplain\nsay \"no\", twice\n");
    free(printed);
}

TEST(columns_line_up_by_what_is_seen_not_by_bytes)
{
    static const struct table_column columns[] = {{"NAME", "n", false, false, NULL},
                                                  {"X", "x", true, false, NULL}};
    AUTO(table_free) struct table *table = table_new(columns, 2);
    char *printed = NULL;
    size_t bytes;
    FILE *out = open_memstream(&printed, &bytes);
    table_add(table, "\xc3\xa9t\xc3\xa9");
    table_add(table, "1");
    table_add(table, "abc");
    table_add(table, "22");
    table_print(table, "table", false, false, out);
    fclose(out);
    CU_ASSERT_STRING_EQUAL(printed, "\xc3\xa9t\xc3\xa9   1\nabc  22\n");
    free(printed);
}

TESTS(T(spans_read_as_people_say_them), T(large_numbers_are_grouped_and_unknown_ones_are_a_dash),
      T(ranks_are_written_as_ranges), T(names_in_paths_are_encoded),
      T(times_in_nanoseconds_are_written_whole), T(csv_cells_are_quoted_where_they_must_be),
      T(columns_line_up_by_what_is_seen_not_by_bytes))
