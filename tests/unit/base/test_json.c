#include "controller/base/json.h"
#include "tests/harness/test.h"

#include <math.h>
#include <string.h>

static enum status parse(const char *text, struct json **ret, struct error *reterr)
{
    return json_parse(view_of(text), ret, reterr);
}

TEST(a_document_comes_back_as_it_was)
{
    const char *text = "{\"a\":[1,2.5,-3e-07,true,null,\"x\\ny\"],\"b\":{}}";
    AUTO(json_free) struct json *root = NULL;
    AUTO_TEXT out = {0};
    CU_ASSERT_EQUAL_FATAL(parse(text, &root, NULL), OK);
    json_print(root, &out);
    CU_ASSERT_STRING_EQUAL(out.bytes, text);
}

TEST(errors_name_line_and_column)
{
    struct json *root = NULL;
    struct error error;
    CU_ASSERT_EQUAL(parse("{\n  \"a\": 1,\n  oops\n}", &root, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "line 3"));
    CU_ASSERT_EQUAL(parse("{} {}", &root, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "after"));
    CU_ASSERT_EQUAL(parse("{\"a\":1,\"a\":2}", &root, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "'a'"));
    CU_ASSERT_EQUAL(parse("", &root, &error), ERR_INVALID);
    CU_ASSERT_EQUAL(parse("{\n\"a\":\"\xff\"}", &root, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "not UTF-8 at line 2"));
}

TEST(deep_nesting_is_refused_before_it_recurses)
{
    char deep[4001];
    memset(deep, '[', 4000);
    deep[4000] = '\0';
    struct json *root = NULL;
    struct error error;
    CU_ASSERT_EQUAL(parse(deep, &root, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "deeper"));
}

TEST(missing_members_give_the_fallback)
{
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_EQUAL_FATAL(parse("{\"n\":7,\"f\":7.5,\"s\":\"t\"}", &root, NULL), OK);
    CU_ASSERT_EQUAL(json_get_int(root, "n", -1), 7);
    CU_ASSERT_EQUAL(json_get_int(root, "f", -1), -1);
    CU_ASSERT_EQUAL(json_get_int(root, "s", -1), -1);
    CU_ASSERT_STRING_EQUAL(json_get_string(root, "none", "x"), "x");
    CU_ASSERT_EQUAL(json_get_int(json_get(root, "none"), "deeper", 3), 3);
}

TEST(what_is_not_utf8_or_not_finite_still_makes_valid_json)
{
    AUTO_TEXT out = {0};
    AUTO(json_free) struct json *root = NULL;
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_put_string(&writer, "bad", "a\xff\x01\"b");
    json_put_number(&writer, "nan", NAN);
    json_put_number(&writer, "big", 1e300);
    json_close(&writer);
    CU_ASSERT_EQUAL(json_parse(view_of(out.bytes), &root, NULL), OK);
    CU_ASSERT_EQUAL(json_kind(json_get(root, "nan")), JSON_NULL);
    CU_ASSERT(json_get_number(root, "big", 0) > 9e299);
}

TEST(a_doubled_key_is_found_among_very_many_in_no_time)
{
    AUTO_TEXT text = {0};
    AUTO(json_free) struct json *root = NULL;
    struct error error;
    text_add(&text, "{\"list\":[{}],\"k7\":0");
    for (int i = 0; i < 300000; i++)
        text_addf(&text, ",\"key%d\":{}", i);
    text_add(&text, "}");
    CU_ASSERT_EQUAL(json_parse((struct view){text.bytes, text.length}, &root, &error), OK);
    text.bytes[text.length - 1] = ',';
    text_add(&text, "\"k7\":1}");
    struct json *twice = NULL;
    CU_ASSERT_EQUAL(json_parse((struct view){text.bytes, text.length}, &twice, &error),
                    ERR_INVALID);
    CU_ASSERT_STRING_EQUAL(error.message, "key 'k7' stands twice in one object");
}

TEST(the_deepest_document_that_is_read_can_be_written_inside_another_one)
{
    AUTO_TEXT text = {0};
    AUTO_TEXT out = {0};
    AUTO(json_free) struct json *root = NULL;
    int depth = 0;
    for (enum status status = OK; status == OK; depth++) {
        struct json *deeper = NULL;
        text_clear(&text);
        for (int i = 0; i < 2 * (depth + 1); i++)
            text_add(&text, i <= depth ? "[" : "]");
        status = json_parse(view_of(text.bytes), &deeper, NULL);
        if (status == OK) {
            json_free(root);
            root = deeper;
        }
    }
    CU_ASSERT_TRUE(depth > 16);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_add_key(&writer, "inner");
    text_clear(&text);
    json_print(root, &text);
    json_add_raw(&writer, view_of(text.bytes));
    json_close(&writer);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.bytes, "[[]]"));
}

TESTS(T(a_document_comes_back_as_it_was), T(errors_name_line_and_column),
      T(deep_nesting_is_refused_before_it_recurses), T(missing_members_give_the_fallback),
      T(what_is_not_utf8_or_not_finite_still_makes_valid_json),
      T(a_doubled_key_is_found_among_very_many_in_no_time),
      T(the_deepest_document_that_is_read_can_be_written_inside_another_one))
