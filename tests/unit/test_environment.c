/* The environment changes while other threads read it. */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ui/term/environment.h"

#define CHANGES 20000

extern char **environ;

static size_t count(const char *name)
{
    size_t n = 0, len = strlen(name);

    for (char **e = environ; *e != NULL; e++)
        n += strncmp(*e, name, len) == 0 && (*e)[len] == '=';
    return n;
}

static void variables_are_set_replaced_and_removed(void **state)
{
    const char *first;

    (void)state;
    setenv("MEMWALL_A", "of the system", 1);
    assert_true(environment_set("MEMWALL_A", "1"));
    first = getenv("MEMWALL_A");
    assert_string_equal(first, "1");
    assert_true(environment_set("MEMWALL_A", "2") && environment_set("MEMWALL_AB", ""));
    assert_string_equal(first, "1"); /* a reader may still have it */
    assert_string_equal(getenv("MEMWALL_A"), "2");
    assert_string_equal(getenv("MEMWALL_AB"), "");
    assert_int_equal(count("MEMWALL_A"), 1);
    assert_true(environment_set("MEMWALL_A", "1"));
    assert_ptr_equal(getenv("MEMWALL_A"), first);
    assert_true(environment_set("MEMWALL_A", NULL) && environment_set("MEMWALL_A", NULL));
    assert_null(getenv("MEMWALL_A"));
    assert_string_equal(getenv("MEMWALL_AB"), "");
    /* Others may still call setenv() and unsetenv(). */
    unsetenv("MEMWALL_AB");
    setenv("MEMWALL_C", "3", 1);
    assert_true(environment_set("MEMWALL_D", "4"));
    assert_null(getenv("MEMWALL_AB"));
    assert_string_equal(getenv("MEMWALL_C"), "3");
    assert_string_equal(getenv("MEMWALL_D"), "4");
}

static void many_can_be_added(void **state)
{
    char name[32];
    char **before;

    (void)state;
    assert_true(environment_set("MEMWALL_FIRST", "1"));
    before = environ; /* a reader in another thread may be in the middle of it */
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "MEMWALL_%d", i);
        assert_true(environment_set(name, "x"));
    }
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "MEMWALL_%d", i);
        assert_string_equal(getenv(name), "x");
        assert_true(environment_set(name, NULL));
        assert_null(getenv(name));
    }
    assert_true(before != environ);
    while (*before != NULL && strcmp(*before, "MEMWALL_FIRST=1") != 0)
        before++;
    assert_non_null(*before);
}

static atomic_bool is_over;

/* As libcurl and the resolver do. */
static void *read_always(void *always)
{
    size_t *n_wrong = always;

    while (!is_over) {
        const char *a = getenv("MEMWALL_ALWAYS"), *none = getenv("MEMWALL_NEVER");
        const char *now = getenv("MEMWALL_LINES");

        *n_wrong += a == NULL || strcmp(a, "here") != 0 || none != NULL ||
                    (now != NULL && strcmp(now, "24") != 0 && strcmp(now, "25") != 0);
    }
    return NULL;
}

static void a_thread_may_read_it_meanwhile(void **state)
{
    static size_t n_wrong;
    pthread_t reader;

    (void)state;
    assert_true(environment_set("MEMWALL_ALWAYS", "here"));
    assert_int_equal(pthread_create(&reader, NULL, read_always, &n_wrong), 0);
    for (int i = 0; i < CHANGES; i++) {
        assert_true(environment_set("MEMWALL_LINES", i % 2 != 0 ? "24" : "25"));
        assert_true(environment_set("MEMWALL_COLUMNS", "80"));
        assert_true(environment_set("MEMWALL_LINES", NULL));
        assert_true(environment_set("MEMWALL_COLUMNS", NULL));
    }
    is_over = true;
    pthread_join(reader, NULL);
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_set_replaced_and_removed),
        cmocka_unit_test(many_can_be_added),
        cmocka_unit_test(a_thread_may_read_it_meanwhile),
    };

    return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
