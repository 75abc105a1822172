/*
 * Prompts through OpenBLAS, which rounds differently from the kernels: the bits are the same
 * for every chunk, thread count and budget, also after going back.  Then the choice between the
 * two.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"

#define N_CTX   256
#define N_VOCAB 1024

static const char *const names[] = { "gemma4-tiny-q4_0.gguf", "llama-tiny-mix.gguf" };

static struct chance chance = { 1 };

static struct mw_options base_options(void)
{
    struct mw_options o = small_options(N_CTX);

    o.memory_bytes = 256 * MIB;
    o.blas = MW_BLAS_ALWAYS;
    return o;
}

static void sampled(struct mw_session *s, uint32_t id)
{
    struct err e = ERR_INIT;

    if (mw_session_eval_sampled(s, id, &e) != 0)
        fail_with(&e);
}

static void new_ids(uint32_t *ids, uint32_t n, uint32_t n_vocab)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = chance_below(&chance, n_vocab);
}

/* --- chunks, threads, budgets --- */

/* Evaluate two prompts and three tokens of an answer. */
static void talk(struct mw_model *m, const struct mw_options *o, const uint32_t *ids,
                 uint32_t n_vocab, float *logits)
{
    struct mw_session *s = open_session(m, o);

    eval(s, ids, 90);
    for (int i = 0; i < 2; i++)
        sampled(s, ids[90 + i]);
    eval(s, ids + 92, 11);
    memcpy(logits, mw_session_logits(s), n_vocab * sizeof *logits);
    sampled(s, ids[103]);
    memcpy(logits + n_vocab, mw_session_logits(s), n_vocab * sizeof *logits);
    mw_session_close(s);
}

static void bits_do_not_depend_on_chunk_threads_and_budget(void **state)
{
    static const struct {
        uint32_t chunk;
        int n_thread;
        bool is_small;
    } ways[] = { { 1, 1, false }, { 7, 2, true },  { 32, 2, false },
                 { 64, 1, true }, { 65, 3, true }, { 2048, 1, false } };
    static float want[2 * N_VOCAB], got[2 * N_VOCAB], kernels[2 * N_VOCAB];
    struct mw_model *m = open_model(*state);
    struct mw_options o = base_options();
    struct mw_model_info info;
    uint32_t ids[104];

    mw_model_info(m, &info);
    assert_true(info.n_vocab <= N_VOCAB);
    new_ids(ids, 104, info.n_vocab);
    /* Rotation needs heads of 32 values or more. */
    for (int mode = 0; mode < (strstr(*state, "mix") != NULL ? 3 : 2); mode++) {
        bool exact = mode == 1;
        size_t bytes = 2 * info.n_vocab * sizeof(float);

        o.exact = exact;
        o.kv_k = o.kv_v = exact ? MW_KV_F32 : MW_KV_F16;
        if (mode == 2) {
            o.kv_k = MW_KV_Q8_0;
            o.kv_v = MW_KV_Q4_0;
        }
        talk(m, &o, ids, info.n_vocab, want);
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            struct mw_options other = o;

            other.chunk = ways[i].chunk;
            other.n_thread = ways[i].n_thread;
            if (ways[i].is_small)
                other.memory_bytes = smallest_budget(m, &other);
            talk(m, &other, ids, info.n_vocab, got);
            assert_memory_equal(got, want, bytes);
        }
        o.blas = MW_BLAS_NEVER;
        talk(m, &o, ids, info.n_vocab, kernels);
        o.blas = MW_BLAS_ALWAYS;
        assert_memory_not_equal(kernels, want, bytes);
        for (uint32_t i = 0; exact && i < 2 * info.n_vocab; i++)
            assert_float_equal(kernels[i], want[i], 1e-3);
    }
    mw_model_close(m);
}

/* --- going back --- */

struct side {
    struct mw_session *s;
    uint64_t n_evaluated;
};

/* Bring a session to ids[0 .. n): it evaluates what it does not hold. */
static void bring(struct side *a, const uint32_t *ids, uint32_t keep, uint32_t n)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    if (mw_session_rewind(a->s, keep, &kept, &e) != 0)
        fail_with(&e);
    session_mark(a->s);
    eval(a->s, ids + kept, n - kept);
    a->n_evaluated += n - kept;
}

/* A session with copies of its rings evaluates less than one without. */
static void bits_do_not_depend_on_copies_after_going_back(void **state)
{
    struct mw_model *m = open_model(*state);
    struct mw_options o = base_options(), small = base_options();
    struct mw_model_info info;
    struct side a = { 0 }, b = { 0 };
    uint32_t ids[N_CTX], n = 0;

    mw_model_info(m, &info);
    new_ids(ids, N_CTX, info.n_vocab);
    small.chunk = 24;
    small.memory_bytes = smallest_budget(m, &small);
    a.s = open_session(m, &o);
    b.s = open_session(m, &small);
    for (int turn = 0; turn < 20; turn++) {
        uint32_t keep = n > 0 && chance_below(&chance, 2) == 0 ? chance_below(&chance, n) : n;
        uint32_t more = 1 + chance_below(&chance, 40), answer = chance_below(&chance, 30);

        if (keep + more + answer > N_CTX)
            keep = 0;
        if (chance_below(&chance, 3) > 0) /* otherwise the same text again, if there is one */
            new_ids(ids + keep, more, info.n_vocab);
        n = keep + more;
        bring(&a, ids, keep, n);
        bring(&b, ids, keep, n);
        for (uint32_t i = 0; i <= answer; i++) {
            assert_memory_equal(mw_session_logits(a.s), mw_session_logits(b.s),
                                info.n_vocab * sizeof(float));
            if (i == answer)
                break;
            ids[n] = chance_below(&chance, info.n_vocab);
            sampled(a.s, ids[n]);
            sampled(b.s, ids[n++]);
        }
    }
    assert_true(a.n_evaluated <= b.n_evaluated);
    print_message("evaluated %llu and %llu tokens\n", (unsigned long long)a.n_evaluated,
                  (unsigned long long)b.n_evaluated);
    mw_session_close(a.s);
    mw_session_close(b.s);
    mw_model_close(m);
}

/* --- the choice --- */

static void openblas_is_chosen_where_it_is_much_faster(void **state)
{
    struct mw_model *m = open_model(*state);
    struct mw_options o = base_options();
    struct mw_products p;
    struct plan with, without;
    struct err e = ERR_INIT;
    char text[200];

    o.blas = MW_BLAS_AUTO;
    mw_products_list(m, &o, &p);
    assert_in_range(p.n, 1, MW_PRODUCTS_MAX);
    assert_false(mw_products_use_blas(m, &o)); /* nothing is measured yet */
    assert_int_equal(mw_plan(m, &o, &without, &e), 0);
    for (uint32_t i = 0; i < p.n; i++) {
        p.product[i].kernels_flops_s = 1e9;
        p.product[i].blas_flops_s = 1.4e9;
    }
    mw_model_set_products(m, &p);
    assert_false(mw_products_use_blas(m, &o));
    p.product[0].blas_flops_s = 12e9;
    mw_model_set_products(m, &p);
    assert_true(mw_products_use_blas(m, &o));
    mw_products_text(m, &o, text, sizeof text);
    assert_non_null(strstr(text, "in prompts from 8 tokens on")); /* 64 * 1.5 / 12 */
    assert_int_equal(mw_plan(m, &o, &with, &e), 0);
    assert_in_range(with.row[MW_ROW_PROGRAM] - without.row[MW_ROW_PROGRAM], 5 * MIB, 200 * MIB);
    assert_true(with.row[MW_ROW_ACTIVATIONS] > without.row[MW_ROW_ACTIVATIONS]);
    o.exact = !o.exact; /* the measured products are those of the other mode */
    assert_false(mw_products_use_blas(m, &o));
    o.exact = !o.exact;
    o.blas = MW_BLAS_NEVER;
    assert_false(mw_products_use_blas(m, &o));
    mw_model_close(m);
}

static void rates_are_measured_quickly(void **state)
{
    struct mw_model *m = open_model(*state);
    struct mw_options o = base_options();
    struct mw_products p;
    struct err e = ERR_INIT;

    assert_int_equal(mw_products_measure(m, &o, MW_PRODUCT_COLS, &p, &e), 0);
    assert_non_null(strstr(p.blas, "openblas"));
    for (uint32_t i = 0; i < p.n; i++) {
        print_message("%s: %.3g and %.3g\n", p.product[i].type, p.product[i].kernels_flops_s,
                      p.product[i].blas_flops_s);
        assert_true(p.product[i].kernels_flops_s > 1e6);
        assert_true(p.product[i].blas_flops_s > 1e6);
    }
    o.isa = "abacus";
    assert_int_equal(mw_products_measure(m, &o, MW_PRODUCT_COLS, &p, &e), -1);
    mw_model_close(m);
}

int main(void)
{
    enum { N = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[2 * N + 2];
    size_t n = 0;

    for (size_t i = 0; i < N; i++) {
        void *name = (void *)(uintptr_t)names[i];

        tests[n++] = (struct CMUnitTest){ "bits_do_not_depend_on_chunk_threads_and_budget",
                                          bits_do_not_depend_on_chunk_threads_and_budget, NULL,
                                          NULL, name };
        tests[n++] = (struct CMUnitTest){ "bits_do_not_depend_on_copies_after_going_back",
                                          bits_do_not_depend_on_copies_after_going_back, NULL,
                                          NULL, name };
    }
    tests[n++] = (struct CMUnitTest){ "openblas_is_chosen_where_it_is_much_faster",
                                      openblas_is_chosen_where_it_is_much_faster, NULL, NULL,
                                      (void *)(uintptr_t)names[1] };
    tests[n++] = (struct CMUnitTest){ "rates_are_measured_quickly", rates_are_measured_quickly,
                                      NULL, NULL, (void *)(uintptr_t)names[1] };
    return cmocka_run_group_tests_name("tiles", tests, NULL, NULL);
}
