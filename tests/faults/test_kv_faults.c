/*
 * KV files with reads that fail and without memory: each read and each allocation fails once.
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

#include "engine/session/saved_kv.h"
#include "tests/faults/inject.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"

#define N_CTX 320
#define N_OLD 100
#define N_NEW 300 /* two pages */

static const struct saved_kv_call usual = { .max_bytes = 0 };
static char folder[400], path[440];
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

    no_error(session_save_kv(s, path, &usual, &out, &e), &e);
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
    return session_load_kv(s, path, &usual, &out, e) == 0;
}

static void each_read_may_fail(void **state)
{
    struct mw_session *a = open_held(N_NEW), *b = open_held(1);
    uint32_t n_failed = 0;
    bool is_over = false;
    struct err e;

    (void)state;
    save(a);
    mw_session_close(a);
    for (int n = 0; !is_over; n++) {
        bool ok;

        empty(b);
        atomic_store(&inject.read_error, EIO);
        atomic_store(&inject.read_skip, n);
        atomic_store(&inject.read_times, 1);
        ok = load(b, &e);
        is_over = atomic_load(&inject.read_times) > 0;
        inject_nothing();
        if (!ok)
            assert_true(e.code == ERR_IO && e.sys == EIO);
        assert_true(ok ? mw_session_tokens(b) == N_NEW : mw_session_tokens(b) == 0);
        n_failed += !ok;
        goes_on(b);
        assert_int_equal(access(path, F_OK), 0); /* the disk may be better the next time */
    }
    assert_true(n_failed >= 4); /* headers, index, what is beside pages, pages */
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

        unlink(path);
        save(old);
        e = (struct err)ERR_INIT;
        atomic_store(&inject.resource_skip, n);
        ok = session_save_kv(new, path, &usual, &out, &e) == 0;
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

static int begin(void **state)
{
    struct chance chance = { .state = 9 };
    struct mw_model_info info;
    struct mw_session *s;

    (void)state;
    inject_nothing();
    model = open_model("gemma4-tiny-q4_0.gguf");
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    for (uint32_t i = 0; i < N_CTX; i++)
        ids[i] = chance_below(&chance, n_vocab);
    snprintf(folder, sizeof folder, "%s/kv-faults-XXXXXX", getenv("MW_BUILDDIR"));
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/chat.kv", folder);
    row = malloc(n_vocab * sizeof *row);
    s = open_held(N_NEW + 1);
    memcpy(row, mw_session_logits(s), n_vocab * sizeof *row);
    mw_session_close(s);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(row);
    mw_model_close(model);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_read_may_fail),
        cmocka_unit_test(each_allocation_of_loading_may_fail),
        cmocka_unit_test(each_allocation_of_saving_may_fail),
    };

    return cmocka_run_group_tests_name("kv_faults", tests, begin, end);
}
