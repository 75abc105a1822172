/* The forms of pinned weights: what the plan says, what a session holds, and the same answers. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compute/kernels.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"

#define MODEL "gemma4-tiny-hf"
#define N_IDS 40

/* The model is so small that the buffers take more than packing saves. */
static struct mw_options packing_options(void)
{
    struct mw_options o = small_options(64);

    o.block_bytes = 4096;
    o.pack = MW_PACK_ALWAYS;
    return o;
}

static void the_plan_predicts_what_packing_saves(void **state)
{
    struct mw_options o = packing_options(), never = o, mapped = o, automatic = o;
    struct mw_model *m = open_model(MODEL);
    struct mw_model_info info;
    struct plan p, plain;
    struct err e = ERR_INIT;

    (void)state;
    mw_model_info(m, &info);
    never.pack = MW_PACK_NEVER;
    mapped.io = MW_IO_MMAP;
    automatic.pack = MW_PACK_AUTO;
    no_error(mw_plan(m, &o, &p, &e), &e);
    assert_true(p.saved_bytes > 0 && p.saved_bytes < info.hot_bytes / 4);
    assert_true(p.n_slot >= 2); /* for blocks that do not fit their place */
    assert_int_equal(p.streamed_bytes, 0);
    no_error(mw_plan(m, &never, &plain, &e), &e);
    assert_int_equal(plain.saved_bytes, 0);
    assert_int_equal(plain.n_slot, 0);
    no_error(mw_plan(m, &mapped, &p, &e), &e);
    assert_int_equal(p.saved_bytes, 0);
    no_error(mw_plan(m, &automatic, &p, &e), &e);
    assert_int_equal(p.saved_bytes, 0);
    mw_model_close(m);
}

/* Widening takes time, so packed weights are measured, too. */
static void packed_products_are_measured(void **state)
{
    struct mw_options o = packing_options(), never = o;
    struct mw_model *m = open_model(MODEL);
    struct mw_limits limits = { 0 }, plain = { 0 };
    const struct mw_rate *last;
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    no_error(mw_plan(m, &o, &p, &e), &e);
    assert_true(p.decode_tps <= 0);
    limits.memory_bytes_s = 1e9;
    mw_rates_list(m, &o, &limits);
    last = &limits.rate[limits.n_rate - 1];
    assert_string_equal(last->type, MW_RATE_PACKED);
    never.pack = MW_PACK_NEVER;
    mw_rates_list(m, &never, &plain);
    assert_int_equal(plain.n_rate, limits.n_rate - 1);
    no_error(mw_rates_measure(&o, &limits, &e), &e);
    assert_true(last->column_bytes_s > 0 && last->chunk_flops_s > 0);
    mw_model_set_limits(m, &limits);
    no_error(mw_plan(m, &o, &p, &e), &e);
    assert_true(p.decode_tps > 0);
    mw_model_close(m);
}

static const struct mw_rate *rate_of(const struct mw_limits *l, const char *type)
{
    for (uint32_t i = 0; i < l->n_rate; i++)
        if (strcmp(l->rate[i].type, type) == 0)
            return &l->rate[i];
    return NULL;
}

/* Interleaved weights are faster, so they are measured, too. */
static void interleaved_products_are_measured(void **state)
{
    struct mw_options o = small_options(64), other[3] = { o, o, o };
    struct mw_model *m = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_limits limits = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    if (kernels_best()->mul_interleaved == NULL)
        skip();
    other[0].pack = MW_PACK_NEVER;
    other[1].io = MW_IO_MMAP;
    other[2].exact = true;
    for (int i = 0; i < 3; i++) {
        mw_rates_list(m, &other[i], &limits);
        assert_non_null(rate_of(&limits, "Q4_0"));
        assert_null(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED));
    }
    mw_rates_list(m, &o, &limits);
    assert_non_null(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED));
    no_error(mw_rates_measure(&o, &limits, &e), &e);
    assert_true(rate_of(&limits, "Q4_0")->column_bytes_s > 0);
    assert_true(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED)->column_bytes_s > 0);
    assert_true(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED)->chunk_flops_s > 0);
    mw_model_close(m);
}

/* The measured ways are in use then, and come from kept limits, too. */
static void ways_are_measured_and_used(void **state)
{
    struct mw_options o = small_options(64);
    struct mw_model *m = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_choice choices[MW_WAY_CHOICES];
    struct mw_limits limits = { 0 };
    struct err e = ERR_INIT;

    (void)state;
    no_error(mw_rates_measure(&o, &limits, &e), &e);
    assert_true(limits.ways.measured_s != 0);
    no_error(mw_ways_compare(&o, choices, &e), &e);
    assert_int_equal(choices[0].n > 1, kernels_best()->has_ways);
    for (int i = 0; i < MW_WAY_CHOICES; i++) {
        const struct mw_choice *c = &choices[i];

        assert_true(c->n <= MW_WAYS_MAX);
        if (c->n == 0)
            continue;
        assert_int_equal(c->chosen, limits.ways.way[i]);
        assert_true(c->better < c->n);
        assert_true(c->better == c->chosen ||
                    c->way[c->better].bytes_s > c->way[c->chosen].bytes_s);
        limits.ways.way[i] = c->n - 1;
    }
    mw_model_set_limits(m, &limits);
    no_error(mw_ways_compare(&o, choices, &e), &e);
    for (int i = 0; i < MW_WAY_CHOICES; i++) {
        if (choices[i].n > 0)
            assert_int_equal(choices[i].chosen, limits.ways.way[i]);
        limits.ways.way[i] = 200; /* of another version: it changes nothing */
    }
    mw_model_set_limits(m, &limits);
    no_error(mw_ways_compare(&o, choices, &e), &e);
    for (int i = 0; i < MW_WAY_CHOICES; i++)
        if (choices[i].n > 0)
            assert_int_equal(choices[i].chosen, choices[i].n - 1);
    mw_model_close(m);
}

/* A type that is faster as in the file stays so: nothing is laid out or measured for it. */
/* Numbers of threads are compared where there is more than one, and the best one is the default. */
static void numbers_of_threads_are_compared_and_used(void **state)
{
    const struct mw_options o = { 0 };
    struct mw_options tiny = { .memory_bytes = 1 };
    struct mw_machine before, after;
    struct mw_threads t;
    struct err e = ERR_INIT;

    (void)state;
    mw_machine_read(&before);
    no_error(mw_threads_measure(&o, &t, &e), &e);
    assert_true(t.measured_s != 0);
    assert_int_equal(t.n_core, before.n_core);
    assert_int_equal(t.n_cpu, before.n_cpu);
    if (!t.is_doubtful && before.n_cpu > 1)
        assert_true(t.core_s > 0);
    if (t.core_s > 0) {
        assert_true((t.fewer_s > 0) == (before.n_core > 1));
        assert_true((t.cpu_s > 0) == (before.n_cpu > before.n_core));
    }
    t.is_doubtful = false;
    t.core_s = 2;
    t.fewer_s = before.n_core > 1 ? 1 : 0;
    t.cpu_s = 0;
    mw_threads_choose(&t);
    mw_machine_read(&after);
    assert_int_equal(after.n_thread, limits_threads(&t));
    assert_int_equal(after.n_thread, before.n_core > 1 ? before.n_core - 1 : before.n_core);
    t.fewer_s = 2;
    mw_threads_choose(&t);
    mw_machine_read(&after);
    assert_int_equal(after.n_thread, before.n_core);
    no_error(mw_threads_measure(&tiny, &t, &e), &e); /* a budget that measures nothing */
    assert_true(t.measured_s == 0);
}

static void types_may_stay_as_in_the_file(void **state)
{
    struct mw_options o = small_options(64);
    struct mw_model *m = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_limits limits = { 0 };

    (void)state;
    if (kernels_best()->mul_interleaved == NULL)
        skip();
    mw_model_keep_rows(m, "Q4_0", true);
    mw_rates_list(m, &o, &limits);
    assert_non_null(rate_of(&limits, "Q4_0"));
    assert_null(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED));
    mw_model_keep_rows(m, "Q4_0", false);
    mw_rates_list(m, &o, &limits);
    assert_non_null(rate_of(&limits, "Q4_0" MW_RATE_INTERLEAVED));
    mw_model_close(m);
}

static void evaluate(struct mw_session *s, uint32_t from, uint32_t n)
{
    uint32_t ids[N_IDS];

    for (uint32_t i = 0; i < n; i++)
        ids[i] = 5 + (from + i) * 7919 % 400;
    eval(s, ids, n);
}

static void a_session_holds_packed_blocks(void **state)
{
    struct mw_options o = packing_options();
    struct mw_model *m = open_model(MODEL);
    struct mw_session *s = open_session(m, &o);
    uint64_t least = smallest_budget(m, &o);
    struct mw_sample sample;
    struct err e = ERR_INIT;
    struct plan p;

    (void)state;
    evaluate(s, 0, N_IDS);
    mw_session_plan(s, &p);
    mw_session_sample(s, &sample);
    assert_true(sample.mem.saved_bytes > p.saved_bytes / 2);
    assert_true(sample.mem.used[MW_ROW_PINNED] <= p.row[MW_ROW_PINNED]);
    /* Blocks go, and come back. */
    no_error(mw_session_set_memory(s, least, &e), &e);
    evaluate(s, 0, 1);
    mw_session_sample(s, &sample);
    assert_true(sample.mem.saved_bytes < p.saved_bytes / 2);
    no_error(mw_session_set_memory(s, o.memory_bytes, &e), &e);
    evaluate(s, 1, 1);
    evaluate(s, 2, 1);
    mw_session_sample(s, &sample);
    assert_true(sample.mem.saved_bytes > p.saved_bytes / 2);
    mw_session_close(s);
    mw_model_close(m);
}

static void packed_and_plain_weights_give_the_same_bits(void **state)
{
    struct mw_options o = packing_options(), never = o;
    struct mw_model *m = open_model(MODEL);
    struct mw_model_info info;
    float *want;

    (void)state;
    mw_model_info(m, &info);
    want = calloc(info.n_vocab, sizeof *want);
    never.pack = MW_PACK_NEVER;
    for (uint32_t chunk = 1; chunk <= N_IDS; chunk += 13) {
        struct mw_session *s;

        o.chunk = never.chunk = chunk;
        s = open_session(m, &never);
        evaluate(s, 0, N_IDS);
        memcpy(want, mw_session_logits(s), info.n_vocab * sizeof *want);
        mw_session_close(s);
        s = open_session(m, &o);
        evaluate(s, 0, N_IDS);
        assert_memory_equal(want, mw_session_logits(s), info.n_vocab * sizeof *want);
        mw_session_close(s);
    }
    free(want);
    mw_model_close(m);
}

static void rows_of_the_file_give_the_same_bits(void **state)
{
    struct mw_options o = small_options(64);
    struct mw_model *m = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_model_info info;
    float *want;

    (void)state;
    mw_model_info(m, &info);
    want = calloc(info.n_vocab, sizeof *want);
    for (int keeps = 0; keeps < 2; keeps++) {
        struct mw_session *s;

        mw_model_keep_rows(m, "Q4_0", keeps);
        s = open_session(m, &o);
        evaluate(s, 0, N_IDS);
        evaluate(s, N_IDS, 1);
        if (keeps)
            assert_memory_equal(want, mw_session_logits(s), info.n_vocab * sizeof *want);
        memcpy(want, mw_session_logits(s), info.n_vocab * sizeof *want);
        mw_session_close(s);
    }
    free(want);
    mw_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_predicts_what_packing_saves),
        cmocka_unit_test(packed_products_are_measured),
        cmocka_unit_test(interleaved_products_are_measured),
        cmocka_unit_test(ways_are_measured_and_used),
        cmocka_unit_test(numbers_of_threads_are_compared_and_used),
        cmocka_unit_test(types_may_stay_as_in_the_file),
        cmocka_unit_test(a_session_holds_packed_blocks),
        cmocka_unit_test(packed_and_plain_weights_give_the_same_bits),
        cmocka_unit_test(rows_of_the_file_give_the_same_bits),
    };

    return cmocka_run_group_tests_name("packing", tests, NULL, NULL);
}
