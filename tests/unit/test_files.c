/* Files that appear complete or not at all, and folders. */
#include "config.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "tests/lib/tree.h"

static void expect_file(const char *name, const char *text)
{
    FILE *f = fopen(tree_path(name), "r");
    char got[64] = "";

    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

/* Assert that the folder has n entries, so that no temporary file is left. */
static void expect_entries(int n)
{
    DIR *d = opendir(tree_root);

    assert_non_null(d);
    while (readdir(d) != NULL)
        n--;
    closedir(d);
    assert_int_equal(n, -2); /* "." and ".." */
}

static void a_file_appears_when_it_is_complete(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;
    struct stat st;

    (void)state;
    assert_int_equal(new_file_begin(&n, tree_path("/a"), false, &e), 0);
    fputs("text", n.f);
    fflush(n.f);
    assert_int_not_equal(access(tree_path("/a"), F_OK), 0);
    assert_int_equal(new_file_end(&n, &e), 0);
    expect_file("/a", "text");
    assert_int_equal(stat(tree_path("/a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    expect_entries(1);
}

static void a_replaced_file_keeps_its_mode(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;
    struct stat st;

    (void)state;
    tree_put("/a", "old");
    assert_int_equal(chmod(tree_path("/a"), 0640), 0);
    assert_int_equal(new_file_begin(&n, tree_path("/a"), true, &e), 0);
    fputs("new", n.f);
    expect_file("/a", "old");
    assert_int_equal(new_file_end(&n, &e), 0);
    expect_file("/a", "new");
    assert_int_equal(stat(tree_path("/a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    expect_entries(1);
}

static void a_file_that_may_not_be_replaced_stays(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;

    (void)state;
    assert_int_equal(new_file_begin(&n, tree_path("/a"), false, &e), 0);
    tree_put("/a", "old");
    assert_int_equal(new_file_end(&n, &e), -1);
    assert_int_equal(e.sys, EEXIST);
    expect_file("/a", "old");
    expect_entries(1);
}

static void leftovers_of_killed_writers_go(void **state)
{
    struct new_file n, other;
    struct err e = ERR_INIT;

    (void)state;
    tree_put("/a.mw-new-k1LLed", "half");
    tree_put("/a.backup", "not ours");
    tree_put("/ab.mw-new-k1LLed", "of another file");
    assert_int_equal(new_file_begin(&n, tree_path("/a"), true, &e), 0);
    assert_int_not_equal(access(tree_path("/a.mw-new-k1LLed"), F_OK), 0);
    fputs("first", n.f);
    /* One that is written just now is no leftover. */
    assert_int_equal(new_file_begin(&other, tree_path("/a"), true, &e), 0);
    fputs("second", other.f);
    assert_int_equal(new_file_end(&n, &e), 0);
    expect_file("/a", "first");
    assert_int_equal(new_file_end(&other, &e), 0);
    expect_file("/a", "second");
    expect_file("/a.backup", "not ours");
    expect_file("/ab.mw-new-k1LLed", "of another file");
    expect_entries(3);
}

/* The temporary file of the longest path is in the same folder, and has its name. */
static void a_path_may_be_long(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;
    char path[4096];
    size_t len = strlen(tree_root), most = sizeof path - sizeof ".mw-new-XXXXXX";

    (void)state;
    memcpy(path, tree_root, len);
    while (len + 4 < most) {
        memcpy(path + len, "/.", 2);
        len += 2;
    }
    memset(path + len, 'x', most - len);
    path[len] = '/';
    path[most] = '\0';
    assert_int_equal(new_file_begin(&n, path, true, &e), 0);
    assert_memory_equal(n.temporary, path, most);
    assert_int_equal(new_file_end(&n, &e), 0);
    assert_int_equal(access(path, F_OK), 0);
    expect_entries(1);
    path[most] = 'x';
    path[most + 1] = '\0';
    assert_int_equal(new_file_begin(&n, path, true, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
}

static void a_dropped_file_leaves_nothing(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;

    (void)state;
    assert_int_equal(new_file_begin(&n, tree_path("/a"), true, &e), 0);
    fputs("text", n.f);
    new_file_drop(&n);
    new_file_drop(&n);
    expect_entries(0);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    struct rlimit before, small = { 4, RLIM_INFINITY };
    struct err e = ERR_INIT;
    struct new_file n;
    int rc;

    (void)state;
    tree_put("/a", "old");
    assert_int_equal(new_file_begin(&n, tree_path("/a"), true, &e), 0);
    fputs("more than four bytes", n.f);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    rc = new_file_end(&n, &e);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(rc, -1);
    assert_int_equal(e.sys, EFBIG);
    expect_file("/a", "old");
    expect_entries(1);
}

static void impossible_names_are_refused(void **state)
{
    struct err e = ERR_INIT;
    struct new_file n;
    char longest[5000];

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(new_file_begin(&n, "", true, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(new_file_begin(&n, longest, true, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(new_file_begin(&n, tree_path("/no/a"), true, &e), -1);
    assert_int_equal(e.sys, ENOENT);
    assert_int_equal(folder_make(longest), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

static void folders_are_made_with_those_above_them(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(folder_make(tree_path("/a/b/c")), 0);
    assert_int_equal(folder_make(tree_path("/a/b/c/")), 0);
    assert_int_equal(stat(tree_path("/a/b"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(folder_make_parent(tree_path("/d/e/file")), 0);
    assert_int_equal(access(tree_path("/d/e"), F_OK), 0);
    assert_int_not_equal(access(tree_path("/d/e/file"), F_OK), 0);
    assert_int_equal(folder_make_parent("file"), 0);
    assert_int_equal(folder_make_parent("/file"), 0);
    tree_put("/f", "");
    assert_int_equal(folder_make(tree_path("/f/g")), -1);
    assert_int_equal(errno, ENOTDIR);
}

static void expect_small(const char *path, size_t most, const char *text)
{
    struct err e = ERR_INIT;
    size_t n;
    char *got = small_file_read(path, most, &n, &e);

    assert_non_null(got);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
    free(got);
}

static void expect_refused(const char *path, const char *why)
{
    struct err e = ERR_INIT;

    assert_null(small_file_read(path, 4, NULL, &e));
    assert_non_null(strstr(e.what, why));
    assert_null(small_file_read_end("/", 4, NULL, &e));
}

static void a_small_file_is_read_up_to_its_limit(void **state)
{
    struct err e = ERR_INIT;
    size_t n;
    char *end;

    (void)state;
    tree_put("/a", "text");
    expect_small(tree_path("/a"), 4, "text");
    expect_small(tree_path("/a"), 100, "text");
    expect_refused(tree_path("/b"), "No such file");
    tree_put("/a", "texts");
    expect_refused(tree_path("/a"), "is longer than 4 bytes");
    end = small_file_read_end(tree_path("/a"), 4, &n, &e);
    assert_string_equal(end, "exts");
    assert_int_equal(n, 4);
    free(end);
    tree_put("/a", "");
    expect_small(tree_path("/a"), 4, "");
    expect_small("/dev/null", 4, "");
    expect_small("/proc/self/comm", 64, "test_files\n"); /* its size is said to be 0 */
    expect_refused("/proc/self/comm", "is longer than 4 bytes");
}

static void only_a_regular_file_is_small(void **state)
{
    (void)state;
    tree_put("/a", "");
    assert_int_equal(truncate(tree_path("/a"), (off_t)1 << 40), 0);
    expect_refused(tree_path("/a"), "is longer than 4 bytes");
    assert_int_equal(mkfifo(tree_path("/fifo"), 0600), 0);
    expect_refused(tree_path("/fifo"), "is not a regular file");
    expect_refused(tree_root, "is not a regular file");
    expect_refused("/dev/zero", "is not a regular file");
    assert_int_equal(symlink("loop", tree_path("/loop")), 0);
    expect_refused(tree_path("/loop"), "symbolic links");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        CASE(a_file_appears_when_it_is_complete),
        CASE(a_replaced_file_keeps_its_mode),
        CASE(a_file_that_may_not_be_replaced_stays),
        CASE(a_dropped_file_leaves_nothing),
        CASE(leftovers_of_killed_writers_go),
        CASE(a_path_may_be_long),
        CASE(a_full_disk_leaves_the_old_file),
        CASE(impossible_names_are_refused),
        CASE(folders_are_made_with_those_above_them),
        CASE(a_small_file_is_read_up_to_its_limit),
        CASE(only_a_regular_file_is_small),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
