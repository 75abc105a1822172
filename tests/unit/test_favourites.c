/* The experts that the chats of a model use, in a file (session/favourites.h). */
#include "config.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session/favourites.h"
#include "tests/lib/calls.h"
#include "tests/lib/tree.h"

enum { N = 300 };

static void kept_uses_are_read_again(void **state)
{
    uint8_t use[N], got[N];

    (void)state;
    for (int i = 0; i < N; i++)
        use[i] = (uint8_t)(i * 7);
    assert_false(favourites_read(tree_root, "model a", N, got));
    favourites_keep(tree_root, "model a", N, use, 100);
    assert_true(favourites_read(tree_root, "model a", N, got));
    assert_memory_equal(use, got, N);
    assert_false(favourites_read(tree_root, "model b", N, got));
    assert_false(favourites_read(tree_root, "model a", N - 1, got));
    assert_false(favourites_read(tree_root, "", N, got));
    favourites_keep(tree_root, "", N, use, 100);
    favourites_keep(tree_root, "model c", N, use, 0);
    assert_false(favourites_read(tree_root, "model c", N, got));
}

/* Sessions count by their tokens, and earlier ones only up to a limit. */
static void sessions_are_averaged(void **state)
{
    uint8_t some[N] = { 200, 0, 255 }, others[N] = { 0, 100, 255 }, got[N];

    (void)state;
    favourites_keep(tree_root, "model a", N, some, 100);
    favourites_keep(tree_root, "model a", N, others, 300);
    assert_true(favourites_read(tree_root, "model a", N, got));
    assert_int_equal(got[0], 50);
    assert_int_equal(got[1], 75);
    assert_int_equal(got[2], 255);
    favourites_keep(tree_root, "model a", N, some, 1000000);
    favourites_keep(tree_root, "model a", N, others, 2048);
    assert_true(favourites_read(tree_root, "model a", N, got));
    assert_int_equal(got[0], 100);
}

static void put(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void a_damaged_file_is_not_used(void **state)
{
    static char bytes[4096];
    uint8_t use[N] = { 1, 2, 3 }, got[N];
    char path[600];
    size_t n = 0;
    FILE *f = NULL;

    (void)state;
    favourites_keep(tree_root, "model a", N, use, 100);
    for (int i = 0; f == NULL && i < 256; i++) {
        snprintf(path, sizeof path, "%s/experts.%d", tree_root, i);
        f = fopen(path, "rb");
    }
    assert_non_null(f);
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(n > N && n < 1024);
    for (size_t i = 0; i < n; i += 13) {
        bytes[i] ^= 4;
        put(path, bytes, n);
        /* The number of tokens only weighs. */
        if (favourites_read(tree_root, "model a", N, got))
            assert_memory_equal(use, got, N);
        bytes[i] ^= 4;
    }
    put(path, bytes, n - 1);
    assert_false(favourites_read(tree_root, "model a", N, got));
    put(path, "", 0);
    assert_false(favourites_read(tree_root, "model a", N, got));
    put(path, bytes, n);
    assert_true(favourites_read(tree_root, "model a", N, got));
}

static bool has_a_use(void)
{
    DIR *d = opendir(tree_root);
    const struct dirent *f;
    bool has = false;

    assert_non_null(d);
    while ((f = readdir(d)) != NULL)
        has |= strncmp(f->d_name, "experts.", 8) == 0;
    closedir(d);
    return has;
}

static void a_session_that_is_forgotten_keeps_no_use(void **state)
{
    struct mw_model *m = open_model("f-mixtral.gguf");
    uint32_t ids[64];

    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        ids[i] = i;
    for (int keeps = 0; keeps < 2; keeps++) {
        struct mw_options o = small_options(128);
        struct mw_session *s;

        o.cache_folder = tree_root;
        o.is_private = !keeps;
        s = open_session(m, &o);
        for (int i = 0; i < 64; i++)
            eval(s, ids + i, 1);
        mw_session_close(s);
        assert_int_equal(has_a_use(), keeps);
    }
    mw_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kept_uses_are_read_again, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(sessions_are_averaged, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_not_used, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(a_session_that_is_forgotten_keeps_no_use, tree_make,
                                        tree_drop),
    };

    return cmocka_run_group_tests_name("favourites", tests, NULL, NULL);
}
