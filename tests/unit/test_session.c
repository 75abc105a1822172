/*
 * A session's promises: the same bits for every budget, chunk, thread count and way of reading,
 * and after every change during its life.  Going back is exact.  An impossible request is
 * refused and changes nothing.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/session/session.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/memory_look.h"
#include "tests/lib/model_path.h"

#define N_IDS   48
#define N_CTX   96
#define N_VOCAB 512
#define OTHER   "phi3-longrope-tiny.gguf" /* its frequencies depend on the context */

/* The answer of a session: the last row of a prompt, and the rows of three tokens after it. */
struct answer {
    uint32_t n_vocab;
    float rows[4][N_VOCAB];
};

static struct mw_model *model;
static uint32_t ids[N_IDS + 4];

static void open_with_ids(const char *name)
{
    struct mw_model_info info;

    model = open_model(name);
    mw_model_info(model, &info);
    for (uint32_t i = 0; i < N_IDS + 4; i++)
        ids[i] = 5 + i * 7919 % (info.n_vocab - 5);
}

static int begin(void **state)
{
    (void)state;
    open_with_ids("gemma4-tiny-q4_0.gguf");
    return 0;
}

static int end(void **state)
{
    (void)state;
    mw_model_close(model);
    return 0;
}

static void take_row(struct mw_session *s, struct answer *a, int row)
{
    struct mw_model_info info;

    mw_model_info(model, &info);
    assert_true(info.n_vocab <= N_VOCAB);
    a->n_vocab = info.n_vocab;
    memcpy(a->rows[row], mw_session_logits(s), info.n_vocab * sizeof(float));
}

static void rest_of_answer(struct mw_session *s, struct answer *a)
{
    take_row(s, a, 0);
    for (int i = 0; i < 3; i++) {
        eval(s, &ids[N_IDS + i], 1);
        take_row(s, a, i + 1);
    }
}

static void answer_with(const struct mw_options *o, struct answer *a)
{
    struct mw_session *s = open_session(model, o);

    memset(a, 0, sizeof *a);
    eval(s, ids, N_IDS);
    rest_of_answer(s, a);
    mw_session_close(s);
}

static void assert_same(const struct answer *a, const struct answer *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

static void the_smallest_budget_does_not_depend_on_the_requested_one(void **state)
{
    static const uint64_t asked[] = { 1, 40 * MIB, 256 * MIB, 4096 * MIB };
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct plan plan;
    uint64_t least;

    (void)state;
    least = smallest_budget(model, &o);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        o.memory_bytes = asked[i];
        assert_int_equal(smallest_budget(model, &o), least);
    }
    o.memory_bytes = least;
    assert_int_equal(mw_plan(model, &o, &plan, &e), 0);
    o.memory_bytes = least - 1;
    assert_int_equal(mw_plan(model, &o, &plan, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
}

static void the_bits_do_not_depend_on_chunks(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;

    (void)state;
    answer_with(&o, &want);
    for (uint32_t chunk = 1; chunk <= 64; chunk = chunk * 2 + 1) {
        o.chunk = chunk;
        answer_with(&o, &got);
        assert_same(&want, &got);
    }
}

static void the_bits_do_not_depend_on_threads(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;

    (void)state;
    answer_with(&o, &want);
    for (int n = 1; n <= 5; n++) {
        o.n_thread = n;
        answer_with(&o, &got);
        assert_same(&want, &got);
    }
}

static void the_bits_do_not_depend_on_the_budget(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;
    uint64_t least = smallest_budget(model, &o);

    (void)state;
    answer_with(&o, &want);
    for (uint64_t more = 0; more <= 512 * KIB; more += 128 * KIB) {
        o.memory_bytes = least + more;
        answer_with(&o, &got);
        assert_same(&want, &got);
    }
}

static uint64_t bytes_read(struct mw_session *s)
{
    static struct mw_sample sample;

    mw_session_sample(s, &sample);
    assert_true(sample.mem.used[MW_ROW_ROWS] <= sample.mem.plan[MW_ROW_ROWS]);
    return sample.io.bytes_read;
}

/* Nothing is read twice that there was room to keep, rows of lookup tables included. */
static void known_tokens_read_nothing_when_all_fits(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct answer want, got;
    struct mw_session *s;
    struct plan plan;
    uint64_t before;
    uint32_t kept;

    (void)state;
    o.memory_bytes = smallest_budget(model, &o);
    answer_with(&o, &want);
    o.memory_bytes = 256 * MIB;
    assert_int_equal(mw_plan(model, &o, &plan, &e), 0);
    assert_true(plan.keeps_rows);
    assert_int_equal(plan.streamed_bytes, 0);
    s = open_session(model, &o);
    for (int i = 0; i < 2; i++) {
        before = bytes_read(s);
        memset(&got, 0, sizeof got);
        eval(s, ids, N_IDS);
        rest_of_answer(s, &got);
        assert_same(&want, &got);
        assert_int_equal(mw_session_rewind(s, 0, &kept, &e), 0);
    }
    assert_int_equal(bytes_read(s), before);
    mw_session_close(s);
}

static void the_bits_do_not_depend_on_how_the_file_is_read(void **state)
{
    static const enum mw_io ways[] = { MW_IO_AUTO, MW_IO_BUFFERED, MW_IO_MMAP };
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;

    (void)state;
    answer_with(&o, &want);
    o.no_uring = true;
    answer_with(&o, &got);
    assert_same(&want, &got);
    o.memory_bytes = smallest_budget(model, &o);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        o.io = ways[i];
        answer_with(&o, &got);
        assert_same(&want, &got);
    }
}

static void the_budget_may_change_while_the_session_lives(void **state)
{
    struct mw_options o = small_options(N_CTX);
    uint64_t least = smallest_budget(model, &o);
    struct answer want, got = { 0 };
    struct err e = ERR_INIT;
    struct mw_session *s = open_session(model, &o);
    struct plan plan;

    (void)state;
    answer_with(&o, &want);
    eval(s, ids, 20);
    assert_int_equal(mw_session_set_memory(s, least, &e), 0);
    mw_session_plan(s, &plan);
    assert_true(plan.sum_bytes <= least);
    assert_int_equal(mw_session_tokens(s), 20);
    eval(s, ids + 20, 10);
    assert_int_equal(mw_session_set_memory(s, least + 300 * KIB, &e), 0);
    eval(s, ids + 30, 10);
    assert_int_equal(mw_session_set_memory(s, 128 * MIB, &e), 0);
    eval(s, ids + 40, N_IDS - 40);
    rest_of_answer(s, &got);
    assert_same(&want, &got);
    mw_session_close(s);
}

/* ---- the figures while a change is made ---- */

static void memory_that_a_change_takes_is_compared_with_the_budget_in_force(void **state)
{
    struct mw_options o = small_options(N_CTX), shorter, other;
    const struct mw_limits none = { 0 };
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    o.memory_bytes = smallest_budget(model, &o);
    give_limits(model, &o, 1e9);
    s = open_session(model, &o);
    eval(s, ids, 20);
    memory_look.session = s;
    memory_look_now();
    assert_true(memory_look.predicted > 0);
    memory_look.n = 0;
    assert_int_equal(mw_session_set_memory(s, 128 * MIB, &e), 0); /* all is pinned */
    assert_true(memory_look.n > 0);
    assert_true(memory_look.predicted == 0); /* the settings of the new plan are not in use yet */
    memory_look_now();
    assert_true(memory_look.predicted > 0);
    memory_look.n = 0;
    assert_int_equal(mw_session_set_memory(s, o.memory_bytes + 300 * KIB, &e), 0);
    assert_true(memory_look.n > 0);
    o.memory_bytes += 300 * KIB;
    shorter = other = o;
    shorter.n_ctx = 60;
    no_error(session_set(s, &shorter, &e), &e);
    other.kv_k = MW_KV_F32;
    no_error(session_set(s, &other, &e), &e);
    other.io = MW_IO_BUFFERED;
    other.memory_bytes = 128 * MIB;
    no_error(session_set(s, &other, &e), &e);
    memory_look_now();
    memory_look.session = NULL;
    mw_session_close(s);
    mw_model_set_limits(model, &none);
}

/* longrope has two lists of frequencies.  The context chooses one of them, so keys of the other
 * one are of no use. */
static void a_context_with_other_frequencies_evaluates_again(void **state)
{
    struct mw_options o = small_options(60), longer = o, longest = o; /* up to 64 are short */
    struct mw_chat_options chat = { 0 }, then = { 0 };
    struct answer want, got = { 0 };
    struct err e = ERR_INIT;
    struct mw_session *s;

    if (model_path(OTHER) == NULL)
        skip(); /* while the model of all tests is open */
    longer.n_ctx = 80;
    longest.n_ctx = 160;
    assert_true(mw_keeps_kv(model, &o, &longer));
    end(state);
    open_with_ids(OTHER);
    assert_true(mw_keeps_kv(model, &longer, &longest));
    assert_false(mw_keeps_kv(model, &o, &longer));
    assert_false(mw_keeps_kv(model, &longer, &o));
    chat.engine = o;
    then.engine = longer;
    assert_false(mw_keeps_answer(model, &chat, &then));
    answer_with(&longest, &want);
    s = open_session(model, &o);
    eval(s, ids, 20);
    assert_int_equal(session_set(s, &longer, &e), 0);
    assert_int_equal(mw_session_tokens(s), 0);
    eval(s, ids, 20);
    assert_int_equal(session_set(s, &longest, &e), 0);
    assert_int_equal(mw_session_tokens(s), 20);
    eval(s, ids + 20, N_IDS - 20);
    rest_of_answer(s, &got);
    assert_same(&want, &got);
    mw_session_close(s);
    end(state);
    begin(state);
}

static void a_budget_below_the_floor_is_refused_and_changes_nothing(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got = { 0 };
    struct err e = ERR_INIT;
    struct mw_session *s = open_session(model, &o);
    struct mw_options small = o;
    struct mw_session *none;

    (void)state;
    answer_with(&o, &want);
    eval(s, ids, N_IDS);
    assert_int_equal(mw_session_set_memory(s, 4 * MIB, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    rest_of_answer(s, &got);
    assert_same(&want, &got);
    mw_session_close(s);
    small.memory_bytes = 4 * MIB;
    assert_int_equal(mw_session_open(&none, model, &small, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_null(none);
}

static void going_back_and_on_gives_the_same_bits(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;
    struct err e = ERR_INIT;
    struct mw_session *s = open_session(model, &o);

    (void)state;
    answer_with(&o, &want);
    eval(s, ids, N_IDS);
    for (uint32_t n = 0; n < N_IDS; n += 5) {
        uint32_t kept;

        memset(&got, 0, sizeof got);
        assert_int_equal(mw_session_rewind(s, n, &kept, &e), 0);
        assert_true(kept <= n);
        assert_int_equal(mw_session_tokens(s), kept);
        eval(s, ids + kept, N_IDS - kept);
        rest_of_answer(s, &got);
        assert_same(&want, &got);
    }
    mw_session_close(s);
}

static void tokens_that_do_not_fit_the_context_are_refused(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct mw_session *s;

    (void)state;
    o.n_ctx = N_IDS + 1;
    s = open_session(model, &o);
    eval(s, ids, N_IDS);
    assert_int_equal(mw_session_eval(s, ids, 2, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_CONTEXT);
    assert_int_equal(mw_session_tokens(s), N_IDS);
    eval(s, ids, 1);
    mw_session_close(s);
}

static void an_id_outside_of_the_vocabulary_is_refused(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct err e = ERR_INIT;
    struct mw_session *s = open_session(model, &o);
    uint32_t bad[] = { 1, 2, 4000000000u };

    (void)state;
    assert_int_equal(mw_session_eval(s, bad, 3, NULL, NULL, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(mw_session_tokens(s), 0);
    mw_session_close(s);
}

static void *cancel_soon(void *ctx)
{
    mw_session_cancel(ctx);
    return NULL;
}

static void a_cancelled_session_goes_on_with_the_same_bits(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct answer want, got;
    struct mw_session *s;

    (void)state;
    answer_with(&o, &want);
    o.chunk = 2;
    s = open_session(model, &o);
    for (int round = 0; round < 20; round++) {
        struct err e = ERR_INIT;
        pthread_t thread;
        uint32_t kept;

        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s), 0);
        if (mw_session_eval(s, ids, N_IDS, NULL, NULL, &e) != 0)
            assert_int_equal(e.code, ERR_CANCELLED);
        pthread_join(thread, NULL);
        /* A cancel that came too late stops the next evaluation, which can be continued. */
        kept = mw_session_tokens(s);
        while (kept < N_IDS) {
            if (mw_session_eval(s, ids + kept, N_IDS - kept, NULL, NULL, &e) == 0)
                break;
            assert_int_equal(e.code, ERR_CANCELLED);
            kept = mw_session_tokens(s);
        }
        assert_int_equal(mw_session_rewind(s, 0, &kept, &e), 0);
    }
    memset(&got, 0, sizeof got);
    for (uint32_t kept = 0; kept < N_IDS; kept = mw_session_tokens(s)) {
        struct err e = ERR_INIT;

        mw_session_eval(s, ids + kept, N_IDS - kept, NULL, NULL, &e);
    }
    rest_of_answer(s, &got);
    assert_same(&want, &got);
    mw_session_close(s);
}

/* Every row of the plan is an upper bound. */
static void no_row_uses_more_than_planned(void **state)
{
    struct mw_options o = small_options(N_CTX);
    uint64_t least = smallest_budget(model, &o);
    struct mw_sample *sample = malloc(sizeof *sample);

    (void)state;
    assert_non_null(sample);
    for (uint64_t more = 0; more < 4 * MIB; more += 700 * KIB) {
        struct mw_session *s;
        uint64_t kv_and_pinned = 0, kv_and_pinned_plan = 0;
        struct plan plan;

        o.memory_bytes = least + more;
        s = open_session(model, &o);
        eval(s, ids, N_IDS);
        eval(s, ids, 1);
        mw_session_sample(s, sample);
        for (int i = 0; i < MW_PLAN_ROWS; i++) {
            /* A sanitizer takes memory of its own. */
            if (i == MW_ROW_PROGRAM && getenv("MW_SANITIZED") != NULL)
                continue;
            /* These two borrow from each other, so only their sum is bounded. */
            if (i == MW_ROW_PINNED || i == MW_ROW_KV_GLOBAL) {
                kv_and_pinned += sample->mem.used[i];
                kv_and_pinned_plan += sample->mem.plan[i];
            } else if (sample->mem.used[i] > sample->mem.plan[i]) {
                fail_msg("row %s uses %llu of %llu planned bytes", mw_plan_row_name(i),
                         (unsigned long long)sample->mem.used[i],
                         (unsigned long long)sample->mem.plan[i]);
            }
        }
        mw_session_plan(s, &plan);
        assert_true(kv_and_pinned <= kv_and_pinned_plan + (o.memory_bytes - plan.sum_bytes));
        mw_session_close(s);
    }
    free(sample);
}

/*
 * A prompt that is a hundred times as long uses the same buffers, chunk by chunk.  Only keys
 * and values of global layers grow, as planned, in borrowed space.
 */
static void a_long_prompt_needs_more_memory_for_keys_and_values_only(void **state)
{
    enum { SHORT = 200, LONG = 20000, CTX = 20480 };
    uint32_t *many = malloc(LONG * sizeof *many);
    struct mw_sample *few = malloc(sizeof *few), *all = malloc(sizeof *all);
    struct mw_options o = small_options(N_CTX);
    uint64_t lent = 300 * KIB;
    struct mw_session *s;

    (void)state;
    assert_non_null(many);
    assert_non_null(few);
    assert_non_null(all);
    for (uint32_t i = 0; i < LONG; i++)
        many[i] = ids[i % N_IDS];
    o.n_ctx = CTX;
    o.memory_bytes = smallest_budget(model, &o) + lent;
    s = open_session(model, &o);
    eval(s, many, SHORT);
    mw_session_sample(s, few);
    eval(s, many + SHORT, LONG - SHORT);
    mw_session_sample(s, all);
    assert_int_equal(all->kv.tokens, LONG);
    for (int i = 0; i < MW_PLAN_ROWS; i++) {
        if (i == MW_ROW_PROGRAM || i == MW_ROW_RESERVE) /* current figures of the kernel */
            continue;
        if (i == MW_ROW_KV_GLOBAL)
            assert_true(all->mem.used[i] > few->mem.used[i] * (LONG / SHORT / 2));
        else if (i == MW_ROW_PINNED)
            assert_true(all->mem.used[i] <= few->mem.used[i]);
        else if (all->mem.used[i] != few->mem.used[i])
            fail_msg("row %s: %llu bytes for %d tokens, %llu for %d", mw_plan_row_name(i),
                     (unsigned long long)all->mem.used[i], LONG,
                     (unsigned long long)few->mem.used[i], SHORT);
        if (i != MW_ROW_PINNED)
            assert_true(all->mem.used[i] <= all->mem.plan[i]);
    }
    mw_session_close(s);
    free(many);
    free(few);
    free(all);
}

static uint64_t pinned_bytes(struct mw_session *s, uint64_t *tokenizer)
{
    struct mw_sample *sample = malloc(sizeof *sample);
    uint64_t pinned;

    assert_non_null(sample);
    mw_session_sample(s, sample);
    pinned = sample->mem.used[MW_ROW_PINNED];
    *tokenizer = sample->mem.used[MW_ROW_TOKENIZER];
    free(sample);
    return pinned;
}

/* Until the tokenizer is built, its temporary memory is free: blocks are pinned there later. */
static void pinned_blocks_leave_memory_free_to_build_the_tokenizer(void **state)
{
    bool one_grew = false;

    (void)state;
    for (uint32_t n_ctx = 1024; n_ctx <= 16384; n_ctx *= 2) {
        struct mw_model *fresh = open_model("gemma4-tiny-q4_0.gguf");
        struct mw_options o = small_options(n_ctx);
        struct mw_encoder *encoder;
        struct err e = ERR_INIT;
        uint64_t before, after, tokenizer;
        struct mw_session *s;
        bool built_before;

        o.memory_bytes = smallest_budget(fresh, &o);
        s = open_session(fresh, &o);
        eval(s, ids, 1);
        before = pinned_bytes(s, &tokenizer);
        built_before = tokenizer > 0; /* the plan leaves too little over */
        assert_int_equal(mw_encoder_new(&encoder, fresh, false, &e), 0);
        mw_encoder_free(encoder);
        eval(s, ids, 1);
        eval(s, ids, 1);
        after = pinned_bytes(s, &tokenizer);
        assert_true(tokenizer > 0);
        assert_true(after >= before);
        if (built_before)
            assert_int_equal(after, before);
        one_grew |= after > before;
        mw_session_close(s);
        mw_model_close(fresh);
    }
    assert_true(one_grew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_do_not_depend_on_chunks),
        cmocka_unit_test(the_bits_do_not_depend_on_threads),
        cmocka_unit_test(the_bits_do_not_depend_on_the_budget),
        cmocka_unit_test(known_tokens_read_nothing_when_all_fits),
        cmocka_unit_test(the_bits_do_not_depend_on_how_the_file_is_read),
        cmocka_unit_test(the_budget_may_change_while_the_session_lives),
        cmocka_unit_test(memory_that_a_change_takes_is_compared_with_the_budget_in_force),
        cmocka_unit_test(a_context_with_other_frequencies_evaluates_again),
        cmocka_unit_test(a_budget_below_the_floor_is_refused_and_changes_nothing),
        cmocka_unit_test(going_back_and_on_gives_the_same_bits),
        cmocka_unit_test(tokens_that_do_not_fit_the_context_are_refused),
        cmocka_unit_test(an_id_outside_of_the_vocabulary_is_refused),
        cmocka_unit_test(a_cancelled_session_goes_on_with_the_same_bits),
        cmocka_unit_test(no_row_uses_more_than_planned),
        cmocka_unit_test(the_smallest_budget_does_not_depend_on_the_requested_one),
        cmocka_unit_test(a_long_prompt_needs_more_memory_for_keys_and_values_only),
        cmocka_unit_test(pinned_blocks_leave_memory_free_to_build_the_tokenizer),
    };

    return cmocka_run_group_tests_name("session", tests, begin, end);
}
