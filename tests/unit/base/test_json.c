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

TESTS(T(a_document_comes_back_as_it_was), T(errors_name_line_and_column),
      T(deep_nesting_is_refused_before_it_recurses), T(missing_members_give_the_fallback),
      T(what_is_not_utf8_or_not_finite_still_makes_valid_json))
