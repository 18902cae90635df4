#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "tests/harness/test.h"

#include <string.h>

TEST(time_is_written_in_utc_and_read_back)
{
    static const int64_t times[] = {0, 1780000005062000000, 951782400000000000, -1000000,
                                    4102444799999000000};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        AUTO_TEXT text = {0};
        int64_t back = 1;
        text_add_time(&text, times[i]);
        if (times[i] >= 0) {
            CU_ASSERT(text_parse_time(view_of(text.bytes), &back));
            CU_ASSERT_EQUAL(back, times[i]);
        }
    }
    AUTO_TEXT text = {0};
    text_add_time(&text, 951782400000000000);
    CU_ASSERT_STRING_EQUAL(text.bytes, "2000-02-29T00:00:00.000Z");
    text_clear(&text);
    text_add_time(&text, -1000000);
    CU_ASSERT_STRING_EQUAL(text.bytes, "1969-12-31T23:59:59.999Z");
}

TEST(a_time_that_is_not_one_is_refused)
{
    int64_t time;
    CU_ASSERT_FALSE(text_parse_time(view_of("2026-05-28"), &time));
    CU_ASSERT_FALSE(text_parse_time(view_of("2026-13-28T20:29:02Z"), &time));
    CU_ASSERT_FALSE(text_parse_time(view_of("2026-05-28T20:29:02+02:00"), &time));
    CU_ASSERT_FALSE(text_parse_time(view_of("2026-05-28T20:29:02.Z"), &time));
    CU_ASSERT_FALSE(text_parse_time(view_of(""), &time));
    CU_ASSERT_FALSE(text_parse_time(view_of("1013-05-28T20:29:02Z"), &time));
}

TEST(durations_are_read_in_every_unit_and_refused_without_one)
{
    int64_t ns;
    CU_ASSERT(text_parse_duration(view_of("10m"), &ns) && ns == 600000000000);
    CU_ASSERT(text_parse_duration(view_of("1h30m"), &ns) && ns == 5400000000000);
    CU_ASSERT(text_parse_duration(view_of("250ms"), &ns) && ns == 250000000);
    CU_ASSERT(text_parse_duration(view_of("2d"), &ns) && ns == 172800000000000);
    CU_ASSERT(text_parse_duration(view_of("1.5s"), &ns) && ns == 1500000000);
    CU_ASSERT_FALSE(text_parse_duration(view_of("10"), &ns));
    CU_ASSERT_FALSE(text_parse_duration(view_of("m"), &ns));
    CU_ASSERT_FALSE(text_parse_duration(view_of("-5m"), &ns));
    CU_ASSERT_FALSE(text_parse_duration(view_of(""), &ns));
    CU_ASSERT_FALSE(text_parse_duration(view_of("10 minutes"), &ns));
}

TEST(durations_are_written_as_people_read_them)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {250000000, "250ms"},      {1000000000, "1s"},        {2500000000, "2.5s"},
        {600000000000, "10m"},     {5400000000000, "1h 30m"}, {172800000000000, "2d"},
        {90061000000000, "1d 1h"}, {3605000000000, "1h"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT text = {0};
        text_add_duration(&text, rows[i].ns);
        CU_ASSERT_STRING_EQUAL(text.bytes, rows[i].text);
    }
}

TEST(integers_are_exact_at_both_ends)
{
    int64_t value;
    CU_ASSERT(text_parse_int(view_of("9223372036854775807"), &value) && value == INT64_MAX);
    CU_ASSERT(text_parse_int(view_of("-9223372036854775808"), &value) && value == INT64_MIN);
    CU_ASSERT_FALSE(text_parse_int(view_of("9223372036854775808"), &value));
    CU_ASSERT_FALSE(text_parse_int(view_of("12x"), &value));
    CU_ASSERT_FALSE(text_parse_int(view_of("-"), &value));
}

TEST(the_near_name_is_suggested_and_a_far_one_is_not)
{
    static const char *const names[] = {"timeout", "on_timeout", "new_steps", "severity"};
    CU_ASSERT_STRING_EQUAL(text_nearest("timeuot", names, 4), "timeout");
    CU_ASSERT_STRING_EQUAL(text_nearest("new_step", names, 4), "new_steps");
    CU_ASSERT_PTR_NULL(text_nearest("colour", names, 4));
}

TESTS(T(time_is_written_in_utc_and_read_back), T(a_time_that_is_not_one_is_refused),
      T(durations_are_read_in_every_unit_and_refused_without_one),
      T(durations_are_written_as_people_read_them), T(integers_are_exact_at_both_ends),
      T(the_near_name_is_suggested_and_a_far_one_is_not))
