/*
 * A KV file has the contents of one commit, whole, whatever happens: kills between any two
 * pieces, damage, other writers.
 */
#include "config.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/checksum.h"
#include "engine/kv/kv_file.h"
#include "engine/memwall.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"

#define MOST 200 /* pieces */

static char folder[400], path[440];

/* --- contents that are known by a number --- */

static uint32_t parts_of(uint32_t number)
{
    return 1 + number * 7 % 9;
}

/* Parts of even numbers stay from one number to the next. */
static uint32_t seed_of(uint32_t number, uint32_t part)
{
    return part % 2 == 0 ? part + 1 : number * 16 + part + 1;
}

static size_t bytes_of(uint32_t seed)
{
    uint32_t some = seed * 2654435761u;

    return 1 + some % (some % 7 == 0 ? 5 * KV_PIECE / 2 : KV_PIECE / 16);
}

static void fill(unsigned char *to, size_t n, uint32_t seed)
{
    struct chance chance = { .state = seed };

    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)chance_below(&chance, 256);
}

/* Whether the part of the contents in force is that of a number, too. */
static bool is_kept(const struct kv_file *f, uint32_t part)
{
    return part % 2 == 0 && part < kv_file_parts(f);
}

static int put_part(struct kv_file *f, uint32_t seed, struct err *e)
{
    static unsigned char bytes[3 * KV_PIECE];
    size_t n = bytes_of(seed), first = n / 3;

    fill(bytes, n, seed);
    if (kv_file_write(f, bytes, first, e) != 0 ||
        kv_file_write(f, bytes + first, n - first, e) != 0)
        return -1;
    return kv_file_end_part(f, e);
}

static int put_number(struct kv_file *f, uint32_t number, struct err *e)
{
    struct kv_file_head head = { .n_token = number + 1 };

    snprintf(head.facts, sizeof head.facts, "number %u\n", number);
    kv_file_begin(f);
    for (uint32_t i = 0; i < parts_of(number); i++)
        if ((is_kept(f, i) ? kv_file_keep(f, i, e) : put_part(f, seed_of(number, i), e)) != 0)
            return -1;
    return kv_file_commit(f, &head, e);
}

static int write_number(uint32_t number, kv_file_stops_fn *stops, void *ctx, struct err *e)
{
    struct kv_file *f;
    int rc;

    if (kv_file_change(&f, path, MOST, e) != 0)
        return -1;
    kv_file_set_stop(f, stops, ctx);
    rc = put_number(f, number, e);
    kv_file_close(f);
    return rc;
}

/* Returns the number of the contents, all of which must be there; -1 with *e: none. */
static int64_t read_number(struct err *e)
{
    static unsigned char got[3 * KV_PIECE], want[3 * KV_PIECE];
    struct kv_file *f;
    uint32_t number;

    if (kv_file_open(&f, path, MOST, e) != 0)
        return -1;
    number = kv_file_head(f)->n_token - 1;
    assert_int_equal(kv_file_parts(f), parts_of(number));
    for (uint32_t i = 0; i < kv_file_parts(f); i++) {
        size_t n = bytes_of(seed_of(number, i));

        kv_file_seek(f, i);
        if (kv_file_read(f, got, n, e) != 0) {
            kv_file_close(f);
            return -1;
        }
        fill(want, n, seed_of(number, i));
        assert_memory_equal(got, want, n);
        assert_int_equal(kv_file_read(f, got, 1, e), -1);
        *e = (struct err)ERR_INIT;
    }
    kv_file_close(f);
    return number;
}

static void set_age(const char *file, time_t seconds)
{
    struct timespec t[2] = { { .tv_sec = 1000000 - seconds }, { .tv_sec = 1000000 - seconds } };

    assert_int_equal(utimensat(AT_FDCWD, file, t, 0), 0);
}

/* --- tests --- */

static void contents_are_replaced(void **state)
{
    struct err e = ERR_INIT;
    struct stat st;

    (void)state;
    unlink(path);
    assert_int_equal(read_number(&e), -1);
    assert_int_equal(e.sys, ENOENT);
    for (uint32_t number = 0; number < 40; number++) {
        no_error(write_number(number, NULL, NULL, &e), &e);
        assert_int_equal(read_number(&e), number);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    /* Slots are used again: at most two contents and two indexes fit in it. */
    assert_true(st.st_size < (off_t)((2 * 9 * 3 + 4) * KV_PIECE));
}

static bool kills(void *ctx)
{
    uint32_t *n = ctx;

    if ((*n)-- == 0)
        raise(SIGKILL);
    return false;
}

static void a_kill_leaves_the_old_contents(void **state)
{
    struct chance chance = { .state = 5 };
    struct err e = ERR_INIT;
    uint32_t number = 0, n_killed = 0;

    (void)state;
    unlink(path);
    no_error(write_number(number, NULL, NULL, &e), &e);
    while (n_killed < 500) {
        uint32_t left = chance_below(&chance, 16), next = number + 1;
        pid_t child = fork();
        int status;

        if (child == 0) {
            e = (struct err)ERR_INIT;
            _exit(write_number(next, kills, &left, &e) == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFSIGNALED(status))
            n_killed++;
        else
            number = next;
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        assert_int_equal(read_number(&e), number);
    }
    print_message("killed 500 times at number %u\n", number);
}

static int put_bytes_at(const unsigned char *bytes, size_t n, off_t at)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(pwrite(fd, bytes, n, at), n);
    return fd;
}

/* A damaged file is deleted when it is opened. */
static int put_bytes(const unsigned char *bytes, size_t n)
{
    return put_bytes_at(bytes, n, 0);
}

/* Kill a writer of a file that has no contents yet, after some of its pieces. */
static void leave_unfinished(uint32_t n_piece)
{
    struct err e = ERR_INIT;
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(write_number(8, kills, &n_piece, &e) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* It is not called damaged, and goes when it is opened, is written, or another file is. */
static void an_unfinished_file_is_known_and_does_not_stay(void **state)
{
    struct err e = ERR_INIT;
    struct mw_kv_file one;
    struct kv_file *f;
    char other[460];

    (void)state;
    for (uint32_t n_piece = 0; n_piece < 3; n_piece++) {
        unlink(path);
        leave_unfinished(n_piece);
        assert_false(mw_kv_look(path, &one));
        assert_true(one.is_unfinished);
        assert_int_equal(access(path, F_OK), 0);
        e = (struct err)ERR_INIT;
        assert_int_equal(read_number(&e), -1);
        assert_int_equal(e.code, ERR_FORMAT);
        assert_non_null(strstr(e.what, "never completely written"));
        assert_int_equal(access(path, F_OK), -1);
        leave_unfinished(n_piece);
        e = (struct err)ERR_INIT;
        no_error(write_number(3, NULL, NULL, &e), &e);
        assert_int_equal(read_number(&e), 3);
        assert_true(mw_kv_look(path, &one) && !one.is_unfinished);
        unlink(path);
        leave_unfinished(n_piece);
        mw_kv_trim(folder, UINT64_MAX, NULL);
        assert_int_equal(access(path, F_OK), 0); /* its writer may be about to lock it */
        set_age(path, 0);
        mw_kv_trim(folder, UINT64_MAX, NULL);
        assert_int_equal(access(path, F_OK), -1);
    }
    /* One that is being written stays, and so do complete and damaged ones that fit. */
    no_error(kv_file_change(&f, path, MOST, &e), &e);
    set_age(path, 0);
    mw_kv_trim(folder, UINT64_MAX, NULL);
    no_error(put_number(f, 5, &e), &e);
    kv_file_close(f);
    snprintf(other, sizeof other, "%s/other.kv", folder);
    assert_int_equal(close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_int_equal(truncate(other, 9000), 0);
    set_age(other, 0);
    mw_kv_trim(folder, UINT64_MAX, NULL);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(read_number(&e), 5);
    close(put_bytes((const unsigned char *)"damage", 6));
    close(put_bytes_at((const unsigned char *)"damage", 6, 4096));
    assert_false(mw_kv_look(path, &one) || one.is_unfinished);
    set_age(path, 0);
    mw_kv_trim(folder, UINT64_MAX, NULL);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

/* Cut the file, or change a byte: the contents of one of the last two commits, or an error. */
static void damage_is_found(void **state)
{
    struct chance chance = { .state = 6 };
    unsigned char *bytes, byte;
    struct err e = ERR_INIT;
    struct stat st;
    int fd;

    (void)state;
    unlink(path);
    for (uint32_t number = 0; number < 3; number++)
        no_error(write_number(number, NULL, NULL, &e), &e);
    assert_int_equal(stat(path, &st), 0);
    bytes = malloc((size_t)st.st_size);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    for (int i = 0; i < 300; i++) {
        uint32_t most = i % 3 == 0 ? 8192 : (uint32_t)st.st_size;
        off_t at = chance_below(&chance, most);
        int64_t got;

        byte = bytes[at] ^ (unsigned char)(1u << chance_below(&chance, 8));
        if (i % 10 == 9)
            assert_int_equal(ftruncate(fd, at), 0);
        else
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        e = (struct err)ERR_INIT;
        got = read_number(&e);
        /* If the header in force is damaged, the one before it is in force again. */
        assert_true(got == 2 || (got == 1 && at < 4096) || (got == -1 && e.code == ERR_FORMAT));
        close(fd);
        fd = put_bytes(bytes, (size_t)st.st_size);
    }
    assert_int_equal(read_number(&e), 2);
    close(fd);
    free(bytes);
}

static void a_damaged_file_is_written_again(void **state)
{
    const unsigned char zeros[8192] = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    no_error(write_number(3, NULL, NULL, &e), &e);
    close(put_bytes(zeros, sizeof zeros));
    no_error(write_number(4, NULL, NULL, &e), &e);
    assert_int_equal(read_number(&e), 4);
    close(put_bytes(zeros, sizeof zeros));
    assert_int_equal(read_number(&e), -1);
    assert_int_equal(access(path, F_OK), -1);
}

static bool stops_now(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_writer_excludes_others_and_can_stop(void **state)
{
    struct err e = ERR_INIT;
    struct kv_file *f;

    (void)state;
    no_error(write_number(5, NULL, NULL, &e), &e);
    no_error(kv_file_change(&f, path, MOST, &e), &e);
    assert_int_equal(write_number(6, NULL, NULL, &e), -1);
    assert_non_null(strstr(e.what, "another process"));
    kv_file_close(f);
    assert_int_equal(write_number(6, stops_now, NULL, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    e = (struct err)ERR_INIT;
    assert_int_equal(read_number(&e), 5);
    unlink(path);
    assert_int_equal(write_number(6, stops_now, NULL, &e), -1);
    assert_int_equal(access(path, F_OK), -1); /* nothing is left of it */
}

/* A file that somebody reads is neither changed nor deleted, and one that is changed has no
 * contents yet. */
static void readers_exclude_a_writer(void **state)
{
    struct timespec used = { .tv_sec = 1000000 };
    struct kv_file *f, *other;
    struct err e = ERR_INIT;

    (void)state;
    no_error(write_number(5, NULL, NULL, &e), &e);
    set_age(path, 0);
    no_error(kv_file_open(&f, path, MOST, &e), &e);
    no_error(kv_file_open(&other, path, MOST, &e), &e);
    assert_int_equal(write_number(6, NULL, NULL, &e), -1);
    assert_non_null(strstr(e.what, "another process"));
    e = (struct err)ERR_INIT;
    assert_false(kv_file_delete(path, &used));
    assert_false(kv_file_discard(f));
    kv_file_close(other);
    kv_file_close(f);
    no_error(kv_file_open(&f, path, MOST, &e), &e);
    assert_true(kv_file_discard(f));
    kv_file_close(f);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(kv_file_delete(path, &used));
    e = (struct err)ERR_INIT;
    no_error(write_number(6, NULL, NULL, &e), &e);
    /* Only the file that is open, not another one at its path. */
    no_error(kv_file_open(&f, path, MOST, &e), &e);
    unlink(path);
    no_error(write_number(7, NULL, NULL, &e), &e);
    assert_false(kv_file_discard(f));
    kv_file_close(f);
    assert_int_equal(read_number(&e), 7);
    no_error(kv_file_change(&f, path, MOST, &e), &e);
    assert_int_equal(kv_file_open(&other, path, MOST, &e), -1);
    assert_true(e.code == ERR_IO && e.sys == EWOULDBLOCK);
    kv_file_close(f);
}

static void a_file_of_another_user_is_refused(void **state)
{
    struct err e = ERR_INIT;
    struct kv_file *f;

    (void)state;
    no_error(write_number(5, NULL, NULL, &e), &e);
    if (chown(path, 12345, (gid_t)-1) != 0)
        skip();
    assert_int_equal(kv_file_open(&f, path, MOST, &e), -1);
    assert_non_null(strstr(e.what, "another user"));
    assert_int_equal(kv_file_change(&f, path, MOST, &e), -1);
    assert_non_null(strstr(e.what, "another user"));
    unlink(path);
}

static void other_files_are_refused(void **state)
{
    const struct timespec used = { .tv_sec = 1000000 };
    struct kv_file_head head;
    struct err e = ERR_INIT;
    struct kv_file *f;

    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody waits for a writer */
    assert_int_equal(kv_file_open(&f, path, MOST, &e), -1);
    assert_int_equal(kv_file_look(path, &head, &e), -1);
    unlink(path);
    assert_int_equal(symlink("other", path), 0);
    assert_int_equal(kv_file_change(&f, path, MOST, &e), -1);
    assert_false(kv_file_delete(path, &used)); /* it is still there */
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(kv_file_open(&f, path, MOST, &e), -1);
    rmdir(path);
    e = (struct err)ERR_INIT;
    no_error(write_number(7, NULL, NULL, &e), &e);
    assert_int_equal(kv_file_open(&f, path, 2, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
}

static void every_flipped_bit_changes_the_sum(void **state)
{
    unsigned char bytes[100];

    (void)state;
    fill(bytes, sizeof bytes, 9);
    for (size_t n = 1; n <= sizeof bytes; n++) {
        uint64_t sum = checksum(bytes, n);

        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(checksum(bytes, n) != sum);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_true(checksum(bytes, n - 1) != sum);
    }
}

/* --- the folder --- */

static void the_least_recently_used_files_go(void **state)
{
    struct err e = ERR_INIT;
    struct mw_kv_file *all, one;
    char first[440], file[460];
    uint64_t each;
    size_t n;

    (void)state;
    snprintf(first, sizeof first, "%s", path);
    unlink(path);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/chat %d.kv", folder, i);
        no_error(write_number(8, NULL, NULL, &e), &e);
        set_age(path, i == 0 ? 50 : i); /* 0 is the oldest, then 4, 3, 2, 1 */
    }
    no_error(mw_kv_list(folder, &all, &n, &e), &e);
    assert_int_equal(n, 5);
    assert_string_equal(all[0].name, "chat 1");
    assert_string_equal(all[4].name, "chat 0");
    assert_int_equal(all[0].n_token, 9);
    each = all[0].bytes;
    free(all);
    snprintf(file, sizeof file, "%s/chat 4.kv", folder);
    mw_kv_trim(folder, 3 * each, file); /* keeps the file of the chat that is open */
    no_error(mw_kv_list(folder, &all, &n, &e), &e);
    assert_int_equal(n, 3);
    assert_string_equal(all[2].name, "chat 4");
    free(all);
    assert_true(mw_kv_look(file, &one) && one.n_token == 9);
    mw_kv_trim(folder, 0, NULL);
    no_error(mw_kv_list(folder, &all, &n, &e), &e);
    assert_int_equal(n, 0);
    no_error(mw_kv_list("/nonexistent", &all, &n, &e), &e);
    assert_true(mw_kv_limit(folder) <= MW_KV_LIMIT);
    snprintf(file, sizeof file, "%s/not/yet", folder); /* is on the same disk */
    assert_int_equal(mw_kv_limit(file), mw_kv_limit(folder));
    snprintf(path, sizeof path, "%s", first);
}

/* A piece waits for the blocks of weights that are read meanwhile. */
static void reading_beside_weights_takes_longer(void **state)
{
    const double rate = 1e9;
    const uint64_t bytes = 100 * KV_PIECE;
    double alone = mw_kv_read_s(bytes, 0, rate, 0), all, some;

    (void)state;
    assert_true(mw_kv_read_s(bytes, 0, 0, 0) == 0);
    assert_true(alone == (double)bytes / rate);
    all = mw_kv_read_s(bytes, UINT64_MAX, rate, 0);
    assert_true(all > 8.9 * alone && all < 9.1 * alone);
    /* Both together take no longer than all bytes one after the other. */
    some = mw_kv_read_s(bytes, bytes, rate, 0);
    assert_true(some > 1.9 * alone && some < 2.1 * alone);
}

/* The memory of the keys and values is fetched between the reads, at half of the disk's rate. */
static void fetching_memory_takes_time_of_its_own(void **state)
{
    const double rate = 1e9;
    const uint64_t bytes = 100 * KV_PIECE;
    double alone = mw_kv_read_s(bytes, 0, rate, 0), beside;

    (void)state;
    assert_true(mw_kv_read_s(bytes, 0, rate, rate / 2) == 3 * alone);
    beside = mw_kv_read_s(bytes, bytes, rate, rate / 2);
    assert_true(beside > 3.9 * alone && beside < 4.1 * alone);
    assert_true(mw_kv_read_s(bytes, 0, 0, rate) == 0); /* without a disk nothing is known */
}

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/kv-file-XXXXXX", getenv("MW_BUILDDIR"));
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file.kv", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_are_replaced),
        cmocka_unit_test(a_kill_leaves_the_old_contents),
        cmocka_unit_test(an_unfinished_file_is_known_and_does_not_stay),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(a_damaged_file_is_written_again),
        cmocka_unit_test(a_writer_excludes_others_and_can_stop),
        cmocka_unit_test(readers_exclude_a_writer),
        cmocka_unit_test(a_file_of_another_user_is_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(every_flipped_bit_changes_the_sum),
        cmocka_unit_test(the_least_recently_used_files_go),
        cmocka_unit_test(reading_beside_weights_takes_longer),
        cmocka_unit_test(fetching_memory_takes_time_of_its_own),
    };

    return cmocka_run_group_tests_name("kv_file", tests, begin, end);
}
