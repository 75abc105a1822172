/*
 * cmocka.h - the part of cmocka that the tests of kernels use, for run.sh.
 *
 * A failed test prints its reason and its name, and the others go on.  The environment variable
 * MW_ONLY chooses tests by a part of their names.
 */
#ifndef MEMWALL_TESTS_ARM64_CMOCKA_H
#define MEMWALL_TESTS_ARM64_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func, teardown_func;
    void *initial_state;
};

static jmp_buf out_of_test;

#define fail_msg(...)                                                                          \
    do {                                                                                       \
        printf(__VA_ARGS__);                                                                   \
        putchar('\n');                                                                         \
        longjmp(out_of_test, 1);                                                               \
    } while (0)
#define assert_true(c)                                                                         \
    do {                                                                                       \
        if (!(c))                                                                              \
            fail_msg("%s:%d: %s is false", __FILE__, __LINE__, #c);                            \
    } while (0)
#define assert_false(c)              assert_true(!(c))
#define assert_int_equal(a, b)       assert_true((long long)(a) == (long long)(b))
#define assert_ptr_equal(a, b)       assert_true((const void *)(a) == (const void *)(b))
#define assert_null(a)               assert_true((a) == NULL)
#define assert_string_equal(a, b)    assert_true(strcmp(a, b) == 0)
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

/* Returns whether the test passes. */
static int run_test(const struct CMUnitTest *test)
{
    void *state = test->initial_state;

    if (setjmp(out_of_test) != 0)
        return 0;
    test->test_func(&state);
    return 1;
}

static int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n,
                                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    const char *only = getenv("MW_ONLY");
    int n_run = 0, n_failed = 0;

    (void)setup, (void)teardown;
    for (size_t i = 0; i < n; i++) {
        if (only != NULL && strstr(tests[i].name, only) == NULL)
            continue;
        n_run++;
        if (run_test(&tests[i]))
            continue;
        n_failed++;
        printf("FAILED: %s\n", tests[i].name);
        fflush(stdout);
    }
    printf("%s: %d tests, %d failed\n", group, n_run, n_failed);
    return n_failed > 0;
}

#endif
