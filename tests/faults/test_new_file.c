/*
 * Two processes write the same small file: whatever the other one does between two steps of this
 * one, both files are written.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/new_file.h"
#include "tests/faults/inject.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/tree.h"

static struct new_file other;
static struct err e;

static int begin(void **state)
{
    inject_nothing();
    e = (struct err)ERR_INIT;
    return tree_make(state);
}

static void begin_other(void)
{
    no_error(new_file_begin(&other, tree_path("/a"), true, &e), &e);
}

static void end(struct new_file *n, const char *text)
{
    char got[16] = "";
    FILE *f;

    fputs(text, n->f);
    no_error(new_file_end(n, &e), &e);
    f = fopen(tree_path("/a"), "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

/* The other one deletes a file that this one has made and not locked yet. */
static void a_file_without_its_lock_may_go(void **state)
{
    struct new_file n;

    (void)state;
    inject.meanwhile = begin_other;
    no_error(new_file_begin(&n, tree_path("/a"), true, &e), &e);
    assert_true(inject.meanwhile == NULL);
    assert_int_equal(access(n.temporary, F_OK), 0);
    assert_int_equal(access(other.temporary, F_OK), 0);
    end(&n, "first");
    end(&other, "second");
}

static void without_locks_files_are_written_and_none_is_deleted(void **state)
{
    static const int errors[] = { ENOLCK, EOPNOTSUPP, ENOSYS };
    struct new_file n;

    (void)state;
    tree_put("/a.mw-new-k1LLed", "may be one that another program writes");
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        inject.lock_error = errors[i];
        no_error(new_file_begin(&n, tree_path("/a"), true, &e), &e);
        end(&n, "text");
        assert_int_equal(access(tree_path("/a.mw-new-k1LLed"), F_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_without_its_lock_may_go, begin, tree_drop),
        cmocka_unit_test_setup_teardown(without_locks_files_are_written_and_none_is_deleted, begin,
                                        tree_drop),
    };

    return cmocka_run_group_tests_name("new_file", tests, NULL, NULL);
}
