/* Copying text to the clipboard. */
#include "config.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/tree.h"
#include "ui/text/copy.h"

static char dir[] = "/tmp/memwall-copy-XXXXXX";
static char at[64];

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tree_remove(dir);
}

static const char *in_dir(const char *name)
{
    snprintf(at, sizeof at, "%s/%s", dir, name);
    return at;
}

static void the_sequence_is_base64_in_osc_52(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "", "\033]52;c;\a" },
        { "f", "\033]52;c;Zg==\a" },
        { "fo", "\033]52;c;Zm8=\a" },
        { "foo", "\033]52;c;Zm9v\a" },
        { "\xff\xfe\xfd\n", "\033]52;c;//79Cg==\a" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n;
        char *got = copy_osc52(rows[i].text, strlen(rows[i].text), &n);

        assert_non_null(got);
        assert_int_equal(n, strlen(rows[i].want));
        assert_string_equal(got, rows[i].want);
        free(got);
    }
}

static void the_method_depends_on_length_and_terminal(void **state)
{
    (void)state;
    assert_int_equal(copy_choose(1000, false, false), COPY_OSC52);
    assert_int_equal(copy_choose(1000, true, false), COPY_TMUX);
    assert_int_equal(copy_choose(1000, false, true), COPY_FILE);
    assert_int_equal(copy_choose(60000, false, false), COPY_FILE); /* 80000 in base64 */
    assert_int_equal(copy_choose(60000, true, false), COPY_TMUX);
    assert_int_equal(copy_choose(SIZE_MAX, false, false), COPY_FILE);
}

static void a_file_is_complete_or_absent(void **state)
{
    struct err e = ERR_INIT;
    struct stat st;
    char got[16] = "";
    FILE *f;

    (void)state;
    assert_int_equal(copy_file(in_dir("copy.txt"), "text\n", 5, &e), 0);
    assert_int_equal(stat(at, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    f = fopen(at, "r");
    assert_non_null(f);
    assert_int_equal(fread(got, 1, sizeof got, f), 5);
    fclose(f);
    assert_string_equal(got, "text\n");
    assert_int_equal(copy_file(in_dir("no/such/folder"), "x", 1, &e), -1);
    assert_non_null(strstr(e.what, "no/such/folder"));
    assert_int_equal(copy_file("", "x", 1, &e), -1);
}

/* A tmux that keeps the text, refuses it, or never reads it. */
static void write_tmux(const char *script)
{
    FILE *f = fopen(in_dir("tmux"), "w");

    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fclose(f);
    assert_int_equal(chmod(at, 0700), 0);
}

static void tmux_gets_the_text(void **state)
{
    enum { BIG = 300000 };
    struct err e = ERR_INIT;
    char path[256], script[128], *text = malloc(BIG);
    struct stat st;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', BIG);
    snprintf(path, sizeof path, "%s:%s", dir, getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(script, sizeof script, "[ \"$*\" = 'load-buffer -w -' ] && cat > %s/given", dir);
    write_tmux(script);
    assert_int_equal(copy_tmux(text, BIG, &e), 0);
    assert_int_equal(stat(in_dir("given"), &st), 0);
    assert_int_equal(st.st_size, BIG);
    write_tmux("exit 1"); /* and does not read: the program gets no SIGPIPE */
    assert_int_equal(copy_tmux(text, BIG, &e), -1);
    assert_string_equal(e.what, "tmux refused the text");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_base64_in_osc_52),
        cmocka_unit_test(the_method_depends_on_length_and_terminal),
        cmocka_unit_test(a_file_is_complete_or_absent),
        cmocka_unit_test(tmux_gets_the_text),
    };

    return cmocka_run_group_tests_name("copy", tests, set_up, tear_down);
}
