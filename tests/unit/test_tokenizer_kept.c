/* A tokenizer that is kept in a file gives the same ids, and a damaged file gives none. */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/session/model.h"
#include "engine/text/tokenizer_internal.h"
#include "engine/text/tokenizer_kept.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tiny_vocab.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/memwall-kept-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Write the path of the only file in the folder. */
static bool find_file(char path[400])
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        if (entry->d_name[0] != '.') {
            snprintf(path, 400, "%s/%s", folder, entry->d_name);
            n++;
        }
    closedir(d);
    assert_true(n <= 1);
    return n == 1;
}

static void empty_folder(void)
{
    char path[400];

    if (find_file(path))
        unlink(path);
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static struct tokenizer *build(const struct catalogue *c)
{
    struct tokenizer *t = NULL;
    struct err e = ERR_INIT;

    assert_int_equal(tokenizer_open(&t, c, &e), 0);
    return t;
}

static struct tokenizer *read_kept(const struct catalogue *c)
{
    struct vocab_source from;
    struct vocab_info info;
    struct tokenizer *t = NULL;
    struct err e = ERR_INIT;

    vocab_source(c, &from);
    assert_int_equal(vocab_info(c, &info, &e), 0);
    if (tokenizer_kept_open(&t, &from, &info, folder, &e) != 0) {
        assert_null(t);
        assert_string_not_equal(e.what, "");
    }
    return t;
}

static void keep(const struct tokenizer *t, const struct catalogue *c)
{
    struct vocab_source from;
    struct err e = ERR_INIT;

    vocab_source(c, &from);
    assert_int_equal(tokenizer_keep(t, &from, folder, &e), 0);
}

static const char sample[] = "Hello <b>, na\xc3\xafve caf\xc3\xa9! 12345 "
                             "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\n\n  ab  "
                             "abab ba <|turn>user\n";

static void expect_equal(const struct tokenizer *a, const struct tokenizer *b)
{
    for (int special = 0; special < 2; special++) {
        struct ids x = { 0 }, y = { 0 };
        struct err e = ERR_INIT;

        assert_int_equal(tokenizer_encode(a, sample, sizeof sample, special, true, &x, &e), 0);
        assert_int_equal(tokenizer_encode(b, sample, sizeof sample, special, true, &y, &e), 0);
        assert_int_equal(x.n, y.n);
        assert_memory_equal(x.id, y.id, x.n * sizeof *x.id);
        ids_free(&x);
        ids_free(&y);
    }
    assert_int_equal(a->info.n_token, b->info.n_token);
    for (uint32_t id = 0; id < a->info.n_token; id++) {
        char p[64], q[64];
        size_t n = tokenizer_piece(a, id, true, p, sizeof p);

        assert_int_equal(n, tokenizer_piece(b, id, true, q, sizeof q));
        assert_memory_equal(p, q, n < sizeof p ? n : sizeof p);
        assert_int_equal(tokenizer_kind(a, id), tokenizer_kind(b, id));
        assert_int_equal(tokenizer_is_unusable(a, id), tokenizer_is_unusable(b, id));
    }
    assert_int_equal(tokenizer_bytes(a), tokenizer_bytes(b));
    assert_int_equal(tokenizer_least_ids(a, 1000), tokenizer_least_ids(b, 1000));
}

static void expect_kept(const struct catalogue *c)
{
    struct tokenizer *built = build(c), *kept;

    keep(built, c);
    kept = read_kept(c);
    assert_non_null(kept);
    expect_equal(built, kept);
    tokenizer_close(built);
    tokenizer_close(kept);
}

static const struct tiny chars = {
    .texts = "\"a\",\"b\",\"ab\",\"\u2581\",\"\u2581ab\",\"caf\"",
    .merges = "\"a b\",\"\u2581 ab\"",
    .added = "{\"id\":262,\"content\":\"<b>\",\"special\":true,\"rstrip\":true}",
};

static const struct tiny bytes = { .byte_level = true,
                                   .texts = "\"ab\",\"abab\",\"He\"",
                                   .merges = "\"a b\",\"ab ab\"",
                                   .model = "\"ignore_merges\":true" };

static void a_kept_tokenizer_gives_the_same_ids(void **state)
{
    const struct tiny *const all[] = { &chars, &bytes };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct catalogue *c = tiny_open(all[i]);

        expect_kept(c);
        tiny_close(c);
        empty_folder();
    }
}

static void the_vocabulary_of_a_model_file_is_kept(void **state)
{
    static const char *const names[] = { "gemma4-tiny-q4_0.gguf", "llama-tiny.gguf" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = model_path(names[i]);
        struct catalogue *c = NULL;
        struct err e = ERR_INIT;

        if (path == NULL)
            continue;
        assert_int_equal(catalogue_open(&c, path, &e), 0);
        expect_kept(c);
        catalogue_close(c);
        empty_folder();
    }
}

static void another_source_is_not_served(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct tokenizer *t = build(c);
    const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

    (void)state;
    keep(t, c);
    assert_int_equal(utimensat(c->dir_fd, "tokenizer.json", times, 0), 0);
    assert_null(read_kept(c));
    tokenizer_close(t);
    tiny_close(c);
}

/* Write n bytes of a file again, without a change, and give it back its time. */
static void touch_in_place(int fd)
{
    struct stat st;
    char byte;

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
    assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
    assert_int_equal(futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }), 0);
}

/* Nothing can set back the time of change of the inode. */
static void a_source_that_was_written_with_its_old_time_is_another_one(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct tokenizer *t = build(c);
    struct vocab_source from;
    int fd = openat(c->dir_fd, "tokenizer.json", O_RDWR);

    (void)state;
    vocab_source(c, &from);
    assert_true(vocab_source_is(c, &from));
    keep(t, c);
    touch_in_place(fd);
    assert_false(vocab_source_is(c, &from));
    assert_null(read_kept(c));
    close(fd);
    tokenizer_close(t);
    tiny_close(c);
}

static void a_link_and_a_file_of_another_user_are_not_read(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct tokenizer *t = build(c);
    char path[400], other[420];

    (void)state;
    keep(t, c);
    tokenizer_close(t);
    t = read_kept(c);
    assert_non_null(t);
    tokenizer_close(t);
    assert_true(find_file(path));
    snprintf(other, sizeof other, "%s-other", folder);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_null(read_kept(c));
    assert_int_equal(rename(other, path), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_null(read_kept(c));
    }
    tiny_close(c);
}

static char *copy_model(const char *name)
{
    size_t len;
    char *text = model_read(name, &len), *path = malloc(sizeof folder + 16);
    FILE *f;

    assert_non_null(path);
    if (text == NULL)
        skip();
    sprintf(path, "%s-model.gguf", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    free(text);
    return path;
}

/* Open a model, change its file at one of three moments, and close it.  Returns whether its
 * tokenizer was kept. */
static bool is_kept_if_changed(const char *path, int moment)
{
    struct mw_model *m = NULL;
    struct err e = ERR_INIT;
    int fd = open(path, O_RDWR);
    char kept[400];
    bool is_kept;

    assert_int_equal(mw_model_open(&m, path, &e), 0);
    if (moment == 1)
        touch_in_place(fd);
    model_keep_tokenizer(m, folder);
    if (moment == 2)
        touch_in_place(fd);
    assert_non_null(model_tokenizer(m, NULL, &e));
    if (moment == 3)
        touch_in_place(fd);
    mw_model_close(m);
    close(fd);
    is_kept = find_file(kept);
    empty_folder();
    return is_kept;
}

static void a_model_that_changes_while_it_is_read_is_not_kept(void **state)
{
    char *path = copy_model("llama-tiny.gguf");

    (void)state;
    assert_true(is_kept_if_changed(path, 0));
    assert_false(is_kept_if_changed(path, 1));
    assert_false(is_kept_if_changed(path, 2));
    assert_true(is_kept_if_changed(path, 3)); /* as it was when it was read */
    unlink(path);
    free(path);
}

/* A tokenizer.json that is replaced after it was read. */
static void a_snapshot_is_kept_as_it_was_read(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct vocab_source from;
    struct tokenizer *t;
    char *text = tiny_json(&chars);
    int fd;

    (void)state;
    vocab_source(c, &from);
    t = build(c);
    assert_true(vocab_source_is(c, &from));
    fd = openat(c->dir_fd, "new", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_int_equal(renameat(c->dir_fd, "new", c->dir_fd, "tokenizer.json"), 0);
    assert_false(vocab_source_is(c, &from));
    assert_int_equal(tokenizer_keep(t, &from, folder, &(struct err)ERR_INIT), 0);
    assert_null(read_kept(c));
    free(text);
    tokenizer_close(t);
    tiny_close(c);
}

/* Change the file, expect that it is refused, and write it again. */
static void each_damage_is_found(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct tokenizer *t = build(c);
    char path[400];
    struct stat st;

    (void)state;
    keep(t, c);
    assert_true(find_file(path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (off_t at = 0; at < st.st_size; at += at < 2048 ? 1 : 97) {
        int fd = open(path, O_RDWR);
        unsigned char byte;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_null(read_kept(c));
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
    }
    for (off_t size = st.st_size - 1; size > 0; size /= 2) {
        assert_int_equal(truncate(path, size), 0);
        assert_null(read_kept(c));
    }
    keep(t, c);
    assert_int_equal(truncate(path, st.st_size + 1), 0);
    assert_null(read_kept(c));
    keep(t, c);
    tokenizer_close(t);
    t = read_kept(c);
    assert_non_null(t);
    tokenizer_close(t);
    tiny_close(c);
}

/* A forged file has the right checksums. */
static void ids_and_offsets_out_of_range_are_refused(void **state)
{
    enum { N_CASE = 10 };

    (void)state;
    for (int i = 0; i < N_CASE; i++) {
        struct catalogue *c = tiny_open(i < N_CASE - 1 ? &chars : &bytes);
        struct tokenizer *t = build(c);

        switch (i) {
        case 0: t->pairs.merged[1] = t->info.n_token; break;
        case 1: t->start[5] = UINT32_MAX; break;
        case 2: t->start[t->info.n_token] = (uint32_t)t->info.text_bytes + 1; break;
        case 3: t->byte_id[200] = t->info.n_token; break;
        case 4: t->all.id[0] = UINT32_MAX; break;
        case 5: memset(t->pairs.slot, 0, (size_t)t->pairs.n_slot * 8); break;
        case 6: t->start[t->info.n_token] = t->start[t->info.n_token - 1]; break;
        case 7: memset(t->start, 0, 200 * sizeof *t->start); break; /* then one is too long */
        case 8: t->chars.slot[0] = t->info.n_token; break;
        default: t->hash.slot[0] = t->info.n_token; break;
        }
        keep(t, c);
        assert_null(read_kept(c));
        tokenizer_close(t);
        tiny_close(c);
        empty_folder();
    }
}

static void a_folder_that_does_not_exist_is_an_error(void **state)
{
    struct catalogue *c = tiny_open(&chars);
    struct tokenizer *t = build(c), *kept = NULL;
    struct vocab_source from;
    struct err e = ERR_INIT;

    (void)state;
    vocab_source(c, &from);
    assert_int_equal(tokenizer_keep(t, &from, "/nonexistent/folder", &e), -1);
    e = (struct err)ERR_INIT;
    assert_int_equal(tokenizer_kept_open(&kept, &from, &t->info, "/nonexistent/folder", &e),
                     -1);
    tokenizer_close(t);
    tiny_close(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_kept_tokenizer_gives_the_same_ids),
        TEST(the_vocabulary_of_a_model_file_is_kept),
        TEST(another_source_is_not_served),
        TEST(a_source_that_was_written_with_its_old_time_is_another_one),
        TEST(a_link_and_a_file_of_another_user_are_not_read),
        TEST(a_model_that_changes_while_it_is_read_is_not_kept),
        TEST(a_snapshot_is_kept_as_it_was_read),
        TEST(each_damage_is_found),
        TEST(ids_and_offsets_out_of_range_are_refused),
        TEST(a_folder_that_does_not_exist_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
