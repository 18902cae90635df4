/* Runs test_cases under CUnit and prints CUnit's own summary. Exit code: 0 all passed, 1 not. */
#include "controller/base/mem.h"
#include "tests/harness/test.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t test_seed(void)
{
    const char *text = getenv("TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : 1;
}

int test_rounds(int usual)
{
    const char *text = getenv("TEST_ROUNDS");
    return text != NULL ? (int)strtol(text, NULL, 10) : usual;
}

uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double test_random_unit(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

double test_random_normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(1.0 - test_random_unit(state)));
    return radius * cos(6.283185307179586 * test_random_unit(state));
}

void test_skip_all(const char *reason)
{
    printf("skipped: %s\n", reason);
    exit(77);
}

char *test_read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    size_t length = 0;
    size_t capacity = 65536;
    char *bytes = xmalloc(capacity);
    for (size_t got; (got = fread(bytes + length, 1, capacity - length - 1, file)) > 0;) {
        length += got;
        if (capacity - length < 2)
            bytes = xrealloc(bytes, capacity *= 2, 1);
    }
    fclose(file);
    bytes[length] = '\0';
    return bytes;
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_pSuite suite = CU_add_suite("tests", NULL, NULL);
    for (const struct test_case *test = test_cases; test->name != NULL; test++)
        if (suite == NULL || CU_add_test(suite, test->name, test->run) == NULL)
            return 2;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    if (failed > 0)
        printf("seed %llu: TEST_SEED=%llu repeats this run\n", (unsigned long long)test_seed(),
               (unsigned long long)test_seed());
    CU_cleanup_registry();
    return failed > 0 ? 1 : 0;
}
