#include "controller/base/mem.h"
#include "tests/harness/test.h"

static int compare(const void *key, const void *element)
{
    return *(const int *)key - *(const int *)element;
}

static size_t place_of(int key, const int *array, size_t count)
{
    return array_lower_bound(&key, array, count, sizeof *array, compare);
}

TEST(a_lower_bound_is_the_first_that_is_not_before_the_key)
{
    static const int array[] = {2, 4, 4, 4, 7};
    CU_ASSERT_EQUAL(place_of(1, array, 5), 0);
    CU_ASSERT_EQUAL(place_of(2, array, 5), 0);
    CU_ASSERT_EQUAL(place_of(4, array, 5), 1);
    CU_ASSERT_EQUAL(place_of(5, array, 5), 4);
    CU_ASSERT_EQUAL(place_of(8, array, 5), 5);
    CU_ASSERT_EQUAL(place_of(8, NULL, 0), 0);
}

TESTS(T(a_lower_bound_is_the_first_that_is_not_before_the_key))
