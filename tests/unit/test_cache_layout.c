/* Names and folders of the hub's cache. */
#include "config.h"

#include <sys/statfs.h>

#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/utf8.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/pull_place.h"

/* The program is linked with this one in place of the library's. */
static long fs_type;
static int fs_result;

int statfs(const char *path, struct statfs *buf)
{
    (void)path;
    memset(buf, 0, sizeof *buf);
    buf->f_type = fs_type;
    return fs_result;
}

static void repositories_are_checked(void **state)
{
    static const char *const good[] = { "gpt2", "ggml-org/gemma-3-1b-it-GGUF", "a/b",
                                        "A_1/b.c" };
    static const char *const bad[] = { "",           "/",      "a/",    "/b",    "a/b/c",
                                       "../etc",     "a/..",   "-a/b",  "a/b-",  ".a/b",
                                       "a--b/c",     "a/b--c", "a b/c", "a/b\n", "a/\033[2J",
                                       "\xc3\xa4/b", "a/b..c" };
    char longest[CACHE_MAX_REPO + 2];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(cache_is_repo(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cache_is_repo(bad[i]));
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_false(cache_is_repo(longest));
}

static void files_stay_below_their_folder(void **state)
{
    static const char *const good[] = { "a.gguf", "Q4_K_M/a-00001-of-00002.gguf",
                                        "\xc3\xa4.json", "a b" };
    static const char *const bad[] = { "",     "/a",     "a/",        "a//b",         "../a",
                                       "a/..", "a/../b", ".git/hook", "a/\x1b[2J",    "a\nb",
                                       ".",    "\xff",   "\xc3",      "\xe2\x80\xae", "a\x7f" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(cache_is_file(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cache_is_file(bad[i]));
    assert_true(cache_is_name("model.gguf"));
    assert_false(cache_is_name("a/model.gguf"));
}

/* Characters that look like nothing make two names look the same. */
static void names_have_no_unseen_characters(void **state)
{
    static const uint32_t bad[] = { 0x00a0, 0x00ad,  0x034f, 0x061c,  0x115f,  0x1160,  0x1680,
                                    0x17b4, 0x180b,  0x180e, 0x2000,  0x200b,  0x200d,  0x2028,
                                    0x202e, 0x202f,  0x205f, 0x2060,  0x2064,  0x2066,  0x2800,
                                    0x3000, 0x3164,  0xfe00, 0xfe0f,  0xfeff,  0xffa0,  0xfff9,
                                    0xfffc, 0x1d159, 0xe000, 0x1d173, 0xe0001, 0xe0041, 0xe0100 };
    static const char *const good[] = { "a b", "\xe4\xb8\xad\xe6\x96\x87", "e\xcc\x81",
                                        "\xf0\x9f\xa6\x99", "\xe2\x9d\xa4\xef\xb8\x8f.gguf",
                                        "\xed\x95\x9c" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char name[16] = "a";
        size_t n = utf8_encode(bad[i], name + 1);

        memcpy(name + 1 + n, "b", 2);
        assert_false(cache_is_name(name));
        name[1 + n] = '\0';
        assert_false(cache_is_name(name + 1));
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(cache_is_name(good[i]));
}

static void digests_are_hexadecimal(void **state)
{
    (void)state;
    assert_true(cache_is_digest("0123456789abcdef0123456789abcdef01234567"));
    assert_true(cache_is_digest("0123456789abcdef0123456789abcdef"
                                "0123456789abcdef0123456789abcdef"));
    assert_false(cache_is_digest("0123456789ABCDEF0123456789abcdef01234567"));
    assert_false(cache_is_digest("0123456789abcdef0123456789abcdef0123456"));
    assert_false(cache_is_digest("../../../../../../../../../../../../etc/"));
    assert_false(cache_is_digest(""));
}

static void a_folder_names_its_repository_and_back(void **state)
{
    static const char *const repos[] = { "gpt2", "ggml-org/gemma-3-1b-it-GGUF", "a/b_c.d" };
    static const char *const bad[] = { "models--", "models--a--b--c", "datasets--a--b",
                                       "blobs",    "models--a--..",   "models--..--b" };
    char folder[300], repo[CACHE_MAX_REPO + 1];

    (void)state;
    for (size_t i = 0; i < sizeof repos / sizeof repos[0]; i++) {
        cache_folder_of(repos[i], folder, sizeof folder);
        assert_true(cache_repo_of(folder, repo));
        assert_string_equal(repo, repos[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cache_repo_of(bad[i], repo));
}

static void paths_are_those_of_other_programs(void **state)
{
    struct err e = ERR_INIT;
    char path[64];

    (void)state;
    assert_int_equal(cache_path(path, sizeof path, "/c", "a/b", CACHE_REPO, NULL, &e), 0);
    assert_string_equal(path, "/c/models--a--b");
    assert_int_equal(cache_path(path, sizeof path, "/c", "a/b", CACHE_REFS, "main", &e), 0);
    assert_string_equal(path, "/c/models--a--b/refs/main");
    assert_int_equal(cache_path(path, sizeof path, "/c", "b", CACHE_SNAPSHOTS, NULL, &e), 0);
    assert_string_equal(path, "/c/models--b/snapshots");
    assert_int_equal(cache_path(path, sizeof path, "/c", "b", CACHE_BLOBS, "12", &e), 0);
    assert_string_equal(path, "/c/models--b/blobs/12");
    assert_int_equal(cache_path(path, 16, "/c", "a/b", CACHE_BLOBS, "12", &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
}

static void files_on_a_fat_disk_have_a_limit(void **state)
{
    const struct pull_place place = { .cache = "/" };

    (void)state;
    fs_type = MSDOS_SUPER_MAGIC;
    assert_true(pull_place_most(&place) == UINT32_MAX);
    fs_result = -1;
    assert_true(pull_place_most(&place) == UINT64_MAX);
    fs_result = 0;
    fs_type = EXT4_SUPER_MAGIC;
    assert_true(pull_place_most(&place) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repositories_are_checked),
        cmocka_unit_test(files_stay_below_their_folder),
        cmocka_unit_test(names_have_no_unseen_characters),
        cmocka_unit_test(digests_are_hexadecimal),
        cmocka_unit_test(a_folder_names_its_repository_and_back),
        cmocka_unit_test(paths_are_those_of_other_programs),
        cmocka_unit_test(files_on_a_fat_disk_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
