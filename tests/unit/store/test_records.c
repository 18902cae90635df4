/* Cleaning and splitting of batches. */
#include "controller/base/json.h"
#include "controller/store/records.h"
#include "tests/harness/test.h"

#include <string.h>

static void check(const char *from, const char *to, int64_t count)
{
    AUTO_TEXT out = {0};
    CU_ASSERT_EQUAL(records_clean(view_of(from), &out), count);
    CU_ASSERT_STRING_EQUAL(out.bytes != NULL ? out.bytes : "", to);
}

TEST(good_lines_stay_as_they_are)
{
    check("{\"a\":1}\n{\"b\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\xB4\"}\n",
          "{\"a\":1}\n{\"b\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\xB4\"}\n", 2);
    check("", "", 0);
    check("\n\n{}", "{}\n", 1);
    check("{\"a\":\"\\\\u0000\\n\\\"\"}\n", "{\"a\":\"\\\\u0000\\n\\\"\"}\n", 1);
}

TEST(what_jsonb_refuses_becomes_the_replacement_character)
{
    check("\"\\u0000\"", "\"\\ufffd\"\n", 1);
    check("\"\\uD800x\"", "\"\\ufffdx\"\n", 1);
    check("\"\\uDC00\"", "\"\\ufffd\"\n", 1);
    check("\"\\ud83d\\udeb4\"", "\"\\ud83d\\udeb4\"\n", 1);
    check("\"\\uD800\\uD800\"", "\"\\ufffd\\ufffd\"\n", 1);
    check("\"\xff\"", "\"\xEF\xBF\xBD\"\n", 1);
    check("\"\xC3", "\"\xEF\xBF\xBD\n", 1);
    check("\"\xED\xA0\x80\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n",
          1);                                                   /* a surrogate in UTF-8 */
    check("\"\xC0\xAF\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"\n", 1); /* an overlong slash */
    check("\"\\", "\"\\\n", 1);
    check("\"\\u12", "\"\\u12\n", 1);
}

TEST(any_bytes_come_out_as_utf8_lines)
{
    uint64_t random = test_seed();
    for (int round = 0; round < test_rounds(2000); round++) {
        char bytes[64];
        AUTO_TEXT once = {0}, twice = {0};
        size_t length = test_random(&random) % sizeof bytes;
        for (size_t i = 0; i < length; i++) {
            uint64_t draw = test_random(&random);
            bytes[i] = (char)(draw % 3 == 0 ? "\\u0dD8cC\n\""[draw / 3 % 10]
                                            : (int)(draw >> 8 & 0xFF));
        }
        int64_t count = records_clean((struct view){bytes, length}, &once);
        CU_ASSERT_EQUAL(records_clean((struct view){once.bytes, once.length}, &twice), count);
        CU_ASSERT_EQUAL(once.length, twice.length);
        CU_ASSERT_TRUE(once.length == 0 || memcmp(once.bytes, twice.bytes, once.length) == 0);
    }
}

TEST(lines_become_one_array)
{
    AUTO_TEXT out = {0};
    records_to_array(view_of("{\"a\":1}\n{\"b\":2}\n"), &out);
    CU_ASSERT_STRING_EQUAL(out.bytes, "[{\"a\":1},{\"b\":2}]");
}

TEST(a_batch_is_halved_until_one_record_is_left)
{
    CU_ASSERT_EQUAL(records_middle(view_of("1\n")), 0);
    CU_ASSERT_EQUAL(records_middle(view_of("1\n2\n")), 2);
    CU_ASSERT_EQUAL(records_middle(view_of("1\n2\n3\n")), 2);
    CU_ASSERT_EQUAL(records_middle(view_of("1\n2\n3\n4\n")), 4);
}

TESTS(T(good_lines_stay_as_they_are), T(what_jsonb_refuses_becomes_the_replacement_character),
      T(any_bytes_come_out_as_utf8_lines), T(lines_become_one_array),
      T(a_batch_is_halved_until_one_record_is_left))
