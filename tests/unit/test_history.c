/*
 * The history of the input line: it is kept in a file that the next start reads, its folder is
 * made, and entries are found by a part of them.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ui/term/history.h"

static char folder[64], path[128];

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/memwall-history-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/state/memwall/history", folder);
    return 0;
}

static int end(void **state)
{
    char part[128];

    (void)state;
    unlink(path);
    snprintf(part, sizeof part, "%s/state/memwall", folder);
    rmdir(part);
    snprintf(part, sizeof part, "%s/state", folder);
    rmdir(part);
    return rmdir(folder);
}

static struct history *open_history(void)
{
    struct err e = ERR_INIT;
    struct history *h;

    assert_int_equal(history_open(&h, path, &e), 0);
    return h;
}

static void add(struct history *h, const char *text)
{
    struct err e = ERR_INIT;

    if (history_add(h, text, &e) != 0)
        fail_msg("%s", e.what);
}

static void makes_the_folders_that_it_needs(void **state)
{
    struct history *h = open_history();

    (void)state;
    add(h, "first");
    history_close(h);
    assert_int_equal(access(path, R_OK), 0);
}

static void a_second_start_has_the_lines_of_the_first(void **state)
{
    struct history *h = open_history();

    (void)state;
    add(h, "one");
    add(h, "two lines\nand a \\ backslash\\n");
    add(h, "two lines\nand a \\ backslash\\n"); /* a repeated line is one entry */
    history_close(h);
    h = open_history();
    assert_int_equal(history_count(h), 2);
    assert_string_equal(history_at(h, 0), "one");
    assert_string_equal(history_at(h, 1), "two lines\nand a \\ backslash\\n");
    history_close(h);
}

static void finds_older_and_newer_entries_by_a_part(void **state)
{
    struct history *h = open_history();

    (void)state;
    add(h, "How large is it?");
    add(h, "something else");
    add(h, "how fast is it?");
    assert_int_equal(history_find(h, "how", 3, false), 2);
    assert_int_equal(history_find(h, "how", 2, false), 0);
    assert_int_equal(history_find(h, "How", 3, false),
                     0); /* case matters if a capital is typed */
    assert_int_equal(history_find(h, "how", 0, true), 2);
    assert_int_equal(history_find(h, "never", 3, false), -1);
    history_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_the_folders_that_it_needs, begin, end),
        cmocka_unit_test_setup_teardown(a_second_start_has_the_lines_of_the_first, begin, end),
        cmocka_unit_test_setup_teardown(finds_older_and_newer_entries_by_a_part, begin, end),
    };

    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
