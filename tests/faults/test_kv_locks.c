/*
 * Two processes at one KV file: whatever the other one does between two steps of this one, a file
 * that was just written is not deleted, and contents that were reported as saved are read.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/kv/kv_file.h"
#include "engine/kv/kv_file_format.h"
#include "engine/memwall.h"
#include "tests/faults/inject.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"

#define MOST  8 /* pieces */
#define TRIES 3 /* of a read that fails */
#define BYTES 5000

static struct err e;

static int put(struct kv_file *f, uint32_t number)
{
    struct kv_file_head head = { .n_token = number };
    unsigned char bytes[BYTES];

    memset(bytes, (int)number, sizeof bytes);
    kv_file_begin(f);
    return kv_file_write(f, bytes, sizeof bytes, &e) != 0 || kv_file_end_part(f, &e) != 0
               ? -1
               : kv_file_commit(f, &head, &e);
}

static int try_write(uint32_t number)
{
    struct kv_file *f;
    int rc;

    e = (struct err)ERR_INIT;
    if (kv_file_change(&f, kv_path, MOST, &e) != 0)
        return -1;
    rc = put(f, number);
    kv_file_close(f);
    return rc;
}

static void write_file(uint32_t number)
{
    no_error(try_write(number), &e);
}

static struct kv_file *open_file(void)
{
    struct kv_file *f;

    e = (struct err)ERR_INIT;
    no_error(kv_file_open(&f, kv_path, MOST, &e), &e);
    return f;
}

/* Returns the number of the file, all of which can be read. */
static uint32_t read_file(void)
{
    struct kv_file *f = open_file();
    uint32_t number = kv_file_head(f)->n_token;
    unsigned char bytes[BYTES], want[BYTES];

    memset(want, (int)number, sizeof want);
    kv_file_seek(f, 0);
    no_error(kv_file_read(f, bytes, sizeof bytes, &e), &e);
    assert_memory_equal(bytes, want, sizeof bytes);
    kv_file_close(f);
    return number;
}

static void damage(off_t at)
{
    int fd = open(kv_path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, "damage", 6, at), 6);
    close(fd);
}

static bool is_there(void)
{
    return access(kv_path, F_OK) == 0;
}

static struct timespec used(void)
{
    struct stat st;

    assert_int_equal(stat(kv_path, &st), 0);
    return st.st_mtim;
}

/* Reads fail after the first n of them. */
static void fail_reads(int n, int times)
{
    inject.read_error = EIO;
    inject.read_skip = n;
    inject.read_times = times;
}

static int begin(void **state)
{
    (void)state;
    inject_nothing();
    kv_folder_clean();
    return 0;
}

/* --- what the other process does meanwhile --- */

static void write_again(void)
{
    write_file(9);
}

static void replace(void)
{
    assert_int_equal(unlink(kv_path), 0);
    write_file(9);
}

/* --- deleting --- */

static void a_file_that_replaced_another_stays(void **state)
{
    struct timespec old;

    (void)state;
    write_file(1);
    old = used();
    inject.meanwhile = replace;
    assert_false(kv_file_delete(kv_path, &old));
    assert_int_equal(read_file(), 9);
}

static void a_file_that_was_used_meanwhile_is_not_trimmed(void **state)
{
    const struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

    (void)state;
    write_file(1);
    assert_int_equal(utimensat(AT_FDCWD, kv_path, old, 0), 0);
    inject.meanwhile = write_again;
    mw_kv_trim(kv_folder, 0, NULL);
    assert_int_equal(read_file(), 9);
    mw_kv_trim(kv_folder, 0, NULL);
    assert_false(is_there());
}

/* The other one has its lock between that of the reader and that of the writer. */
static void a_damaged_file_that_was_written_again_stays(void **state)
{
    static const off_t at[] = { 0, (off_t)(KV_SLOTS_AT + KV_PIECE) }; /* header, index */
    struct err own = ERR_INIT;
    struct kv_file *f;

    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        write_file(1);
        damage(at[i]);
        inject.meanwhile = write_again;
        assert_int_equal(kv_file_open(&f, kv_path, MOST, &own), -1);
        assert_int_equal(own.code, ERR_FORMAT);
        assert_int_equal(read_file(), 9);
        assert_int_equal(unlink(kv_path), 0);
    }
    write_file(1);
    damage(at[0]);
    assert_int_equal(kv_file_open(&f, kv_path, MOST, &e), -1);
    assert_false(is_there());
}

/* The other one writes it for the first time, between that look and the lock. */
static void an_unfinished_file_that_was_written_meanwhile_stays(void **state)
{
    static void (*const others[])(void) = { write_again, replace };
    const struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        kv_folder_clean();
        close(open(kv_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        assert_int_equal(utimensat(AT_FDCWD, kv_path, old, 0), 0);
        inject.meanwhile = others[i];
        mw_kv_trim(kv_folder, UINT64_MAX, NULL);
        assert_int_equal(read_file(), 9);
    }
}

static void a_file_is_discarded_unless_it_was_written_again(void **state)
{
    static void (*const others[])(void) = { write_again, replace };
    struct kv_file *f;

    (void)state;
    write_file(1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        f = open_file();
        inject.meanwhile = others[i];
        assert_false(kv_file_discard(f));
        kv_file_close(f);
        assert_int_equal(read_file(), 9);
    }
    f = open_file();
    assert_true(kv_file_discard(f));
    kv_file_close(f);
    assert_false(is_there());
}

static void a_writer_that_fails_leaves_the_file_of_another(void **state)
{
    struct kv_file *f;

    (void)state;
    e = (struct err)ERR_INIT;
    no_error(kv_file_change(&f, kv_path, MOST, &e), &e);
    kv_file_begin(f);
    replace();
    kv_file_close(f);
    assert_int_equal(read_file(), 9);
}

/* --- locks that do not work --- */

static void without_locks_nothing_is_written_or_deleted(void **state)
{
    static const int errors[] = { ENOLCK, EOPNOTSUPP, ENOSYS, EBADF };
    struct kv_file *f;
    struct timespec old;

    (void)state;
    write_file(1);
    old = used();
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        inject.lock_error = errors[i];
        assert_int_equal(try_write(2), -1);
        assert_true(e.code == ERR_IO && e.sys == errors[i]);
        assert_false(kv_file_delete(kv_path, &old));
        mw_kv_trim(kv_folder, 0, NULL);
        f = open_file();
        assert_false(kv_file_discard(f));
        kv_file_close(f);
        assert_int_equal(read_file(), 1);
    }
    inject_nothing();
    assert_int_equal(unlink(kv_path), 0);
    inject.lock_error = ENOLCK;
    assert_int_equal(try_write(2), -1);
    assert_false(is_there()); /* not even an empty one */
}

static void locks_of_readers_count_on_nfs(void **state)
{
    struct kv_file *f, *other;
    struct timespec old;

    (void)state;
    write_file(1);
    old = used();
    inject.locks_of_nfs = true;
    f = open_file();
    other = open_file();
    assert_false(kv_file_delete(kv_path, &old));
    assert_false(kv_file_discard(other));
    kv_file_close(other);
    assert_int_equal(read_file(), 1);
    assert_true(kv_file_discard(f));
    kv_file_close(f);
    write_file(2);
    old = used();
    assert_true(kv_file_delete(kv_path, &old));
    assert_false(is_there());
}

/* A server that gives new files to another user makes such files. */
static void a_new_file_that_is_refused_does_not_stay(void **state)
{
    (void)state;
    inject.is_other_user = true;
    assert_int_equal(try_write(1), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_false(is_there());
    inject_nothing();
    write_file(1);
    inject.is_other_user = true;
    assert_int_equal(try_write(2), -1);
    inject_nothing();
    assert_int_equal(read_file(), 1);
}

/* --- headers that cannot be read --- */

static void a_change_is_saved_after_headers_that_cannot_be_read(void **state)
{
    static const struct {
        int skip, n;
    } reads[] = { { 0, TRIES }, { TRIES - 1, TRIES }, { 1, TRIES }, { 0, 2 * TRIES } };
    struct kv_file *f;

    (void)state;
    for (uint32_t n_before = 1; n_before <= 4; n_before++)
        for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
            kv_folder_clean();
            for (uint32_t k = 1; k <= n_before; k++)
                write_file(k);
            fail_reads(reads[i].skip, reads[i].n);
            no_error(kv_file_change(&f, kv_path, MOST, &e), &e);
            inject_nothing();
            no_error(put(f, 7), &e);
            kv_file_close(f);
            assert_int_equal(read_file(), 7);
        }
}

/* The pieces of the other header may have been written over since it was in force. */
static void no_part_is_kept_beside_a_damaged_header(void **state)
{
    struct kv_file *f;

    (void)state;
    write_file(1);
    write_file(2);
    damage(KV_ALIGN);
    e = (struct err)ERR_INIT;
    no_error(kv_file_change(&f, kv_path, MOST, &e), &e);
    assert_int_equal(kv_file_parts(f), 0);
    kv_file_begin(f);
    kv_file_close(f); /* without other contents, those of the first header stay */
    assert_int_equal(read_file(), 1);
}

static void a_header_that_is_not_kept_is_an_error(void **state)
{
    struct kv_file *f;

    (void)state;
    write_file(1);
    e = (struct err)ERR_INIT;
    no_error(kv_file_change(&f, kv_path, MOST, &e), &e);
    fail_reads(0, INT_MAX);
    assert_int_equal(put(f, 2), -1);
    assert_int_equal(e.sys, EIO);
    inject_nothing();
    kv_file_close(f);
    assert_true(is_there());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_file_that_replaced_another_stays, begin),
        cmocka_unit_test_setup(a_file_that_was_used_meanwhile_is_not_trimmed, begin),
        cmocka_unit_test_setup(a_damaged_file_that_was_written_again_stays, begin),
        cmocka_unit_test_setup(an_unfinished_file_that_was_written_meanwhile_stays, begin),
        cmocka_unit_test_setup(a_file_is_discarded_unless_it_was_written_again, begin),
        cmocka_unit_test_setup(a_writer_that_fails_leaves_the_file_of_another, begin),
        cmocka_unit_test_setup(without_locks_nothing_is_written_or_deleted, begin),
        cmocka_unit_test_setup(locks_of_readers_count_on_nfs, begin),
        cmocka_unit_test_setup(a_new_file_that_is_refused_does_not_stay, begin),
        cmocka_unit_test_setup(a_change_is_saved_after_headers_that_cannot_be_read, begin),
        cmocka_unit_test_setup(no_part_is_kept_beside_a_damaged_header, begin),
        cmocka_unit_test_setup(a_header_that_is_not_kept_is_an_error, begin),
    };

    return cmocka_run_group_tests_name("kv_locks", tests, kv_folder_begin, kv_folder_end);
}
