/* The smallest frame round CUnit: a test file lists its tests, the harness runs them.
 *
 *     TEST(flatline_says_not_enough_data) { CU_ASSERT_EQUAL(...); }
 *     TESTS(T(flatline_says_not_enough_data), T(other_sentence))
 *
 * Random tests take test_seed(): printed on failure, replayed with TEST_SEED=n.
 */
#ifndef BROOM_TESTS_HARNESS_TEST_H
#define BROOM_TESTS_HARNESS_TEST_H

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

#define TEST(name) static void name(void)
#define T(function)                                                                                \
    {                                                                                              \
#function, function                                                                        \
    }
#define TESTS(...) const struct test_case test_cases[] = {__VA_ARGS__, {NULL, NULL}};

extern const struct test_case test_cases[];

uint64_t test_seed(void);                   /* TEST_SEED, or 1 */
int test_rounds(int usual);                 /* TEST_ROUNDS, or usual */
uint64_t test_random(uint64_t *state);      /* splitmix64 */
double test_random_unit(uint64_t *state);   /* [0, 1) */
double test_random_normal(uint64_t *state); /* mean 0, deviation 1 */
/* Ends the program as skipped (exit 77), naming what the machine lacks. */
_Noreturn void test_skip_all(const char *reason);
/* Whole file as text the caller frees with xfree, or NULL. */
char *test_read_file(const char *path);

#endif
