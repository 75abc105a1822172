/*
 * KV files with reads and syncs that fail and without memory: each of them fails once.
 * Saving leaves the old file or the new one, loading leaves a session that holds nothing or what
 * was saved, and the next tokens have the same bits.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/session/beginnings.h"
#include "tests/faults/inject.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"

#define N_CTX 320
#define N_OLD 100
#define N_NEW 300 /* two pages */
#define TRIES 3   /* of a read that fails */
#define OTHER_HEADER 1 /* the number of the read of a header that is not in force */

static const struct saved_kv_call usual = { .max_bytes = 0 };
static struct mw_model *model;
static uint32_t ids[N_CTX], n_vocab;
static float *row; /* after N_NEW + 1 tokens */

/* The budget pins all weights, and a pass has read them: no other reads disturb the count. */
static struct mw_session *open_held(uint32_t n)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *s = open_session(model, &o);

    eval(s, ids, n);
    return s;
}

static void save(struct mw_session *s)
{
    struct err e = ERR_INIT;
    struct saved_kv out;

    no_error(session_save_kv(s, kv_path, &usual, &out, &e), &e);
}

/* Whatever the session holds, what follows has the bits. */
static void goes_on(struct mw_session *s)
{
    uint32_t held = mw_session_tokens(s);

    assert_true(held <= N_NEW);
    eval(s, ids + held, N_NEW + 1 - held);
    assert_memory_equal(mw_session_logits(s), row, n_vocab * sizeof *row);
}

static void empty(struct mw_session *s)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    no_error(mw_session_rewind(s, 0, &kept, &e), &e);
}

static bool load(struct mw_session *s, struct err *e)
{
    struct saved_kv out;

    *e = (struct err)ERR_INIT;
    return session_load_kv(s, kv_path, &usual, &out, e) == 0;
}

/* Reads fail after the first n of them. */
static void fail_reads(int n, int times)
{
    atomic_store(&inject.read_error, EIO);
    atomic_store(&inject.read_skip, n);
    atomic_store(&inject.read_times, times);
}

/*
 * A place that the disk reads after all is read.  One that it never reads is damage: the pages
 * before it count, and the file is written again, so that it does not fail each time.  The header
 * is read once more before the file is deleted.  The other one is in the file's first block, too,
 * but nothing depends on it.
 */
static void each_read_may_fail(void **state)
{
    struct mw_session *a = open_held(N_NEW), *b = open_held(1);
    uint32_t n_damaged = 0;
    bool is_over = false;
    struct err e;

    (void)state;
    for (int n = 0; !is_over; n++) {
        bool ok;

        unlink(kv_path);
        save(a);
        empty(b);
        fail_reads(n, TRIES - 1);
        assert_true(load(b, &e));
        inject_nothing();
        assert_int_equal(mw_session_tokens(b), N_NEW);
        goes_on(b);
        empty(b);
        fail_reads(n, TRIES);
        ok = load(b, &e);
        is_over = atomic_load(&inject.read_times) > 0;
        inject_nothing();
        if (!ok)
            assert_true(e.code == ERR_FORMAT && e.sys == EIO && mw_session_tokens(b) == 0);
        assert_true((is_over || n == OTHER_HEADER) == (mw_session_tokens(b) == N_NEW));
        assert_int_equal(access(kv_path, F_OK), is_over || n <= OTHER_HEADER ? 0 : -1);
        n_damaged += mw_session_tokens(b) < N_NEW;
        goes_on(b);
    }
    assert_true(n_damaged >= 4); /* header, index, what is beside pages, pages */
    mw_session_close(a);
    mw_session_close(b);
}

static struct mw_session *other_session;

static void save_other(void)
{
    save(other_session);
}

/* Another process writes the file between the lock of the reader and that of the writer. */
static void a_damaged_file_that_was_saved_again_stays(void **state)
{
    struct mw_session *b = open_held(1);
    struct err e;

    (void)state;
    other_session = open_held(N_NEW);
    unlink(kv_path);
    save(other_session);
    assert_int_equal(truncate(kv_path, 0), 0);
    inject.meanwhile = save_other;
    assert_false(load(b, &e));
    assert_int_equal(e.code, ERR_FORMAT);
    assert_true(inject.meanwhile == NULL);
    if (!load(b, &e))
        fail_with(&e);
    assert_int_equal(mw_session_tokens(b), N_NEW);
    goes_on(b);
    mw_session_close(other_session);
    mw_session_close(b);
}

/* The contents of before or the new ones are whole, also if the new header may be on the disk. */
static void each_sync_may_fail(void **state)
{
    struct mw_session *old = open_held(N_OLD), *new = open_held(N_NEW), *b = open_held(1);
    uint32_t n_failed = 0;
    bool is_over = false;
    struct err e;

    (void)state;
    for (int n = 0; !is_over; n++) {
        struct saved_kv out;
        bool ok;

        unlink(kv_path);
        save(old);
        e = (struct err)ERR_INIT;
        atomic_store(&inject.sync_error, EIO);
        atomic_store(&inject.sync_skip, n);
        atomic_store(&inject.sync_times, 1);
        ok = session_save_kv(new, kv_path, &usual, &out, &e) == 0;
        is_over = atomic_load(&inject.sync_times) > 0;
        inject_nothing();
        assert_true(ok || (e.code == ERR_IO && e.sys == EIO));
        n_failed += !ok;
        assert_true(load(b, &e));
        assert_true(mw_session_tokens(b) == N_NEW || (!ok && mw_session_tokens(b) == N_OLD));
        goes_on(b);
        save(new); /* and the next time all of it is there */
        assert_true(load(b, &e));
        assert_int_equal(mw_session_tokens(b), N_NEW);
    }
    assert_true(n_failed >= 2); /* pieces, header */
    mw_session_close(old);
    mw_session_close(new);
    mw_session_close(b);
}

static void each_allocation_of_loading_may_fail(void **state)
{
    struct mw_session *a = open_held(N_NEW), *b = open_held(1);
    bool is_over = false;
    uint32_t n_failed = 0;
    struct err e;

    (void)state;
    session_mark(a);
    save(a);
    mw_session_close(a);
    for (int n = 0; !is_over; n++) {
        bool ok;

        empty(b);
        atomic_store(&inject.resource_skip, n);
        ok = load(b, &e);
        is_over = atomic_load(&inject.resource_skip) >= 0;
        inject_nothing();
        assert_true(ok || e.code == ERR_MEMORY);
        n_failed += !ok;
        goes_on(b);
    }
    assert_true(n_failed > 3);
    mw_session_close(b);
}

static void each_allocation_of_saving_may_fail(void **state)
{
    struct mw_session *old = open_held(N_OLD), *new = open_held(N_NEW), *b = open_held(1);
    uint32_t n_failed = 0;
    bool is_over = false;
    struct err e;

    (void)state;
    for (int n = 0; !is_over; n++) {
        struct saved_kv out;
        bool ok;

        unlink(kv_path);
        save(old);
        e = (struct err)ERR_INIT;
        atomic_store(&inject.resource_skip, n);
        ok = session_save_kv(new, kv_path, &usual, &out, &e) == 0;
        is_over = atomic_load(&inject.resource_skip) >= 0;
        inject_nothing();
        assert_true(ok || e.code == ERR_MEMORY);
        n_failed += !ok;
        assert_true(load(b, &e));
        assert_int_equal(mw_session_tokens(b), ok ? N_NEW : N_OLD);
        goes_on(b);
    }
    assert_true(n_failed > 3);
    mw_session_close(old);
    mw_session_close(new);
    mw_session_close(b);
}

/* --- beginnings, as a prompt uses and keeps them --- */

/* A session that evaluated the prompt and may keep the beginning. */
static struct mw_session *open_prompt(struct beginnings *b)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *s = open_session(model, &o);
    struct beginning_use use;
    struct err e = ERR_INIT;

    kv_folder_clean();
    no_error(beginnings_set(b, kv_folder, MW_KV_LIMIT, &e), &e);
    beginnings_use(b, s, ids, N_NEW + 1, KV_PAGE, true, &usual, &use);
    assert_int_equal(use.n_token, 0);
    eval(s, ids, N_NEW);
    return s;
}

/* Use the beginning, and evaluate what is left.  Returns how many tokens were read. */
static uint32_t use_it(struct beginnings *b, struct mw_session *s, struct beginning_use *use)
{
    empty(s);
    beginnings_use(b, s, ids, N_NEW + 1, KV_PAGE, true, &usual, use);
    assert_int_equal(mw_session_tokens(s), use->n_token);
    return use->n_token;
}

static void each_read_of_a_beginning_may_fail(void **state)
{
    struct beginnings b = { .folder = NULL };
    struct mw_session *a = open_prompt(&b), *s = open_held(1);
    struct beginning_use use;
    struct err e = ERR_INIT;
    uint32_t n_failed = 0;
    bool is_over = false;

    (void)state;
    no_error(beginnings_keep(&b, a, &usual, &e), &e);
    for (int n = 0; !is_over; n++) {
        fail_reads(n, TRIES);
        if (use_it(&b, s, &use) == 0) {
            assert_true(use.err.code == ERR_FORMAT && use.err.sys == EIO);
            n_failed++;
        }
        is_over = atomic_load(&inject.read_times) > 0;
        inject_nothing();
        goes_on(s);
        no_error(beginnings_keep(&b, s, &usual, &e), &e); /* it is made again */
    }
    assert_true(n_failed >= 4);
    assert_int_equal(use_it(&b, s, &use), KV_PAGE);
    beginnings_free(&b);
    mw_session_close(a);
    mw_session_close(s);
}

static void each_allocation_of_using_may_fail(void **state)
{
    struct beginnings b = { .folder = NULL };
    struct mw_session *a = open_prompt(&b), *s = open_held(1);
    struct beginning_use use;
    struct err e = ERR_INIT;
    uint32_t n_failed = 0;
    bool is_over = false;

    (void)state;
    no_error(beginnings_keep(&b, a, &usual, &e), &e);
    for (int n = 0; !is_over; n++) {
        empty(s);
        atomic_store(&inject.resource_skip, n);
        n_failed += use_it(&b, s, &use) == 0;
        is_over = atomic_load(&inject.resource_skip) >= 0;
        inject_nothing();
        goes_on(s);
    }
    assert_true(n_failed > 3);
    beginnings_free(&b);
    mw_session_close(a);
    mw_session_close(s);
}

static void each_allocation_of_keeping_may_fail(void **state)
{
    struct beginnings b = { .folder = NULL };
    struct mw_session *s = open_held(1);
    uint32_t n_failed = 0;
    bool is_over = false;

    (void)state;
    for (int n = 0; !is_over; n++) {
        struct mw_session *a = open_prompt(&b);
        struct beginning_use use;
        struct err e = ERR_INIT;

        atomic_store(&inject.resource_skip, n);
        n_failed += beginnings_keep(&b, a, &usual, &e) != 0;
        is_over = atomic_load(&inject.resource_skip) >= 0;
        inject_nothing();
        (void)use_it(&b, s, &use);
        assert_int_equal(use.err.code, ERR_NONE); /* a whole file, or none */
        goes_on(s);
        mw_session_close(a);
    }
    assert_true(n_failed > 3);
    beginnings_free(&b);
    mw_session_close(s);
}

static int begin(void **state)
{
    struct chance chance = { .state = 9 };
    struct mw_model_info info;
    struct mw_session *s;

    inject_nothing();
    model = open_model("gemma4-tiny-q4_0.gguf");
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = chance_below(&chance, n_vocab);
    row = malloc(n_vocab * sizeof *row);
    s = open_held(N_NEW + 1);
    memcpy(row, mw_session_logits(s), n_vocab * sizeof *row);
    mw_session_close(s);
    return kv_folder_begin(state);
}

static int end(void **state)
{
    free(row);
    mw_model_close(model);
    return kv_folder_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_read_may_fail),
        cmocka_unit_test(a_damaged_file_that_was_saved_again_stays),
        cmocka_unit_test(each_sync_may_fail),
        cmocka_unit_test(each_allocation_of_loading_may_fail),
        cmocka_unit_test(each_allocation_of_saving_may_fail),
        cmocka_unit_test(each_read_of_a_beginning_may_fail),
        cmocka_unit_test(each_allocation_of_using_may_fail),
        cmocka_unit_test(each_allocation_of_keeping_may_fail),
    };

    return cmocka_run_group_tests_name("kv_faults", tests, begin, end);
}
