#include "remediation/actuators/slurm_hostlist.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static void check_expands(const char *hostlist, const char *expected)
{
    struct names names = {0};
    struct error error = {0};
    AUTO_TEXT joined = {0};
    enum status status = hostlist_expand(view_of(hostlist), &names, &error);
    for (size_t i = 0; i < names.count; i++)
        text_addf(&joined, "%s%s", i > 0 ? " " : "", names.items[i]);
    CU_ASSERT_EQUAL(status, OK);
    CU_ASSERT_STRING_EQUAL(joined.bytes != NULL ? joined.bytes : "", expected);
    if (status != OK || strcmp(joined.bytes != NULL ? joined.bytes : "", expected) != 0)
        printf("%s -> %s (%s)\n", hostlist, joined.bytes, error.message);
    names_done(&names);
}

TEST(expressions_expand_as_slurm_expands_them)
{
    check_expands("r1n[01-03,20]", "r1n01 r1n02 r1n03 r1n20");
    check_expands("r1n[01,03-05],r2n17", "r1n01 r1n03 r1n04 r1n05 r2n17");
    check_expands("n[8-11]", "n8 n9 n10 n11");
    check_expands("n[098-101]", "n098 n099 n100 n101");
    check_expands("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2");
    check_expands("gb-[3]-ib0,login", "gb-3-ib0 login");
    check_expands("a,b,a", "a b a");
    check_expands("", "");
    check_expands("(null)", "");
}

TEST(what_is_no_hostlist_is_refused_with_its_reason)
{
    static const char *const WRONG[][2] = {
        {"r1n[01-03", "not closed"},
        {"r1n[]", "missing between"},
        {"r1n[1,]", "missing between"},
        {"r1n[3-1]", "counts down"},
        {"r1n[a]", "missing between"},
        {"r1n[1-]", "missing between"},
        {"a,,b", "name is missing"},
        {"a,", "name is missing"},
        {"a b", "no node name holds"},
        {"r1n]", "no node name"},
        {"n[1-2-3]", "only numbers"},
        {"n[1234567890123456789]", "long"},
        {"[1][1][1][1][1][1][1][1][1]", "too many"},
        {"n[1]$(reboot)", "no node name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        struct names names = {0};
        struct error error = {0};
        CU_ASSERT_EQUAL(hostlist_expand(view_of(WRONG[i][0]), &names, &error), ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, WRONG[i][1]));
        if (strstr(error.message, WRONG[i][1]) == NULL)
            printf("%s: %s\n", WRONG[i][0], error.message);
        names_done(&names);
    }
}

TEST(a_range_of_millions_is_refused_before_it_is_expanded)
{
    struct names names = {0};
    CU_ASSERT_EQUAL(hostlist_expand(view_of("n[0-999999999999]"), &names, NULL), ERR_LIMIT);
    CU_ASSERT_EQUAL(names.count, HOSTLIST_NAMES_MAX);
    names_done(&names);
}

static void check_folds(const char *const *names, size_t count, const char *expected)
{
    AUTO_TEXT out = {0};
    hostlist_add(&out, names, count);
    CU_ASSERT_STRING_EQUAL(out.bytes, expected);
}

TEST(names_fold_into_ranges_of_one_prefix_and_width)
{
    static const char *const RACK[] = {"r1n03", "r1n01", "r1n02", "r1n20", "r1n02"};
    static const char *const MIXED[] = {"login", "n9", "n10", "n11", "r2n01", "r1n01"};
    static const char *const ONE[] = {"r1n05"};
    static const char *const WIDE[] = {"n09", "n9"};
    check_folds(RACK, ARRAY_LEN(RACK), "r1n[01-03,20]");
    check_folds(MIXED, ARRAY_LEN(MIXED), "login,n9,n[10-11],r1n01,r2n01");
    check_folds(ONE, 1, "r1n05");
    check_folds(WIDE, 2, "n9,n09");
}

TEST(folding_and_expanding_give_the_same_set)
{
    uint64_t state = test_seed();
    for (int round = 0; round < test_rounds(200); round++) {
        struct names names = {0}, back = {0};
        AUTO_TEXT folded = {0};
        size_t count = 1 + test_random(&state) % 60;
        for (size_t i = 0; i < count; i++) {
            char name[32];
            snprintf(name, sizeof name, "r%dn%0*d", (int)(test_random(&state) % 3),
                     1 + (int)(test_random(&state) % 3), (int)(test_random(&state) % 30));
            names_add_new(&names, name);
        }
        hostlist_add(&folded, (const char *const *)names.items, names.count);
        CU_ASSERT_EQUAL(hostlist_expand(view_of(folded.bytes), &back, NULL), OK);
        CU_ASSERT_EQUAL(back.count, names.count);
        for (size_t i = 0; i < back.count; i++)
            CU_ASSERT(names_has(&names, back.items[i]));
        names_done(&names);
        names_done(&back);
    }
}

TEST(only_plain_names_may_stand_in_a_command)
{
    CU_ASSERT(hostlist_is_name("gb300-r1.n_01"));
    CU_ASSERT_FALSE(hostlist_is_name(""));
    CU_ASSERT_FALSE(hostlist_is_name("-v"));
    CU_ASSERT_FALSE(hostlist_is_name("r1n[01-18]"));
    CU_ASSERT_FALSE(hostlist_is_name("r1n01,r1n02"));
    CU_ASSERT_FALSE(hostlist_is_name("a b"));
}

TESTS(T(expressions_expand_as_slurm_expands_them),
      T(what_is_no_hostlist_is_refused_with_its_reason),
      T(a_range_of_millions_is_refused_before_it_is_expanded),
      T(names_fold_into_ranges_of_one_prefix_and_width), T(folding_and_expanding_give_the_same_set),
      T(only_plain_names_may_stand_in_a_command))
