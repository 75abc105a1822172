/*
 * A session whose budget follows the free memory gives weights back in the middle of a pass, and
 * its logits keep every bit.  A folder takes the place of /proc.
 */
#include "config.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/greatest.h"
#include "engine/machine/proc.h"
#include "engine/plan/plan.h"
#include "engine/session/plan_input.h"
#include "engine/session/saved_kv.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/memory_look.h"
#include "tests/lib/kv_folder.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

#define N_PROMPT 24
#define N_TOKEN  6
#define N_ALL    (N_PROMPT + N_TOKEN)

static struct mw_model_info info;
static uint32_t ids[N_ALL];

/* ---- a machine ---- */

/* Fill /proc/meminfo and /proc/self/status of the folder. */
static void machine_is(uint64_t available, uint64_t own)
{
    char text[200];

    snprintf(text, sizeof text, "MemTotal: %llu kB\nMemAvailable: %llu kB\n",
             (unsigned long long)((available + own) / KIB),
             (unsigned long long)(available / KIB));
    tree_put("/proc/meminfo", text);
    snprintf(text, sizeof text, "VmRSS: %llu kB\nRssAnon: %llu kB\nRssShmem: 0 kB\nVmSwap: 0 kB\n",
             (unsigned long long)(own / KIB), (unsigned long long)(own / KIB));
    tree_put("/proc/self/status", text);
}

/* Follow the memory of that machine, of which a third of the budget is free.  Returns the least
 * budget. */
static uint64_t follow(struct mw_session *s)
{
    struct breathing_bounds to = { .most = s->plan.budget_bytes,
                                   .budget = s->plan.budget_bytes,
                                   .free_bytes = s->plan.budget_bytes / 3 * 4 };
    struct plan_input in;
    struct err e = ERR_INIT;
    struct plan least;

    machine_is(to.budget / 3, to.budget);
    no_error(plan_input_of(s->m, &s->settled.o, &in, &e), &e);
    (void)plan_with_budget(&in, &s->plan, 0, &least);
    to.least = least.sum_bytes;
    s->breath.seen = to.budget;
    s->settled.free_bytes = to.free_bytes;
    no_error(breathing_start(&s->breathing, tree_root, &to, s->telemetry, &e), &e);
    return to.least < to.budget ? to.least : to.budget;
}

/* Wait until the budget is below `bytes`. */
static void await_less(const struct mw_session *s, uint64_t bytes)
{
    for (int i = 0; breathing_budget(s->breathing) >= bytes; i++) {
        assert_true(i < 60000);
        poll(NULL, 0, 1);
    }
}

static uint64_t own_bytes(void)
{
    struct proc_self self;
    struct proc proc;

    proc_open(&proc, "");
    proc_read_self(&proc, &self);
    proc_close(&proc);
    return self.rss_anon.why_not == NULL ? self.rss_anon.value : 0;
}

/* ---- passes ---- */

static const struct mw_sample *sample_now(const struct mw_session *s)
{
    static struct mw_sample sample;

    mw_session_sample(s, &sample);
    return &sample;
}

/* Others take memory after a layer of a pass. */
struct squeeze {
    struct mw_session *s;
    uint32_t n_layer; /* layers until others take memory; 0: they did */
    uint64_t budget;  /* before that */
    uint64_t pinned_before, pinned_after, own_before, own_after;
    uint64_t experts_before, experts_after;
};

static void after_layer(void *ctx, uint32_t done, uint32_t total, bool is_within)
{
    struct squeeze *q = ctx;
    const struct mw_sample *sample = sample_now(q->s);

    (void)done;
    (void)total;
    if (!is_within)
        return;
    if (q->n_layer == 0) { /* a layer later, and still in the pass */
        if (q->pinned_after == UINT64_MAX) {
            q->pinned_after = sample->mem.used[MW_ROW_PINNED];
            q->experts_after = sample->experts.slots;
            q->own_after = own_bytes();
        }
        return;
    }
    if (--q->n_layer > 0)
        return;
    q->pinned_before = sample->mem.used[MW_ROW_PINNED];
    q->experts_before = sample->experts.slots;
    q->own_before = own_bytes();
    q->budget = q->s->plan.budget_bytes;
    machine_is(0, q->budget);
    await_less(q->s, q->budget);
}

static float *logits_of(struct mw_session *s, struct squeeze *q)
{
    float *logits = calloc((size_t)N_ALL * info.n_vocab, sizeof *logits);

    assert_non_null(logits);
    for (uint32_t i = 0; i < N_ALL; i++) {
        if (i == 1)
            i = N_PROMPT;
        if (q != NULL && i > N_PROMPT + 1)
            session_set_progress(s, after_layer, q);
        eval(s, ids + i, i == 0 ? N_PROMPT : 1);
        session_set_progress(s, NULL, NULL);
        memcpy(logits + (size_t)i * info.n_vocab, mw_session_logits(s),
               info.n_vocab * sizeof *logits);
    }
    return logits;
}

static void assert_same(const float *a, const float *b)
{
    assert_memory_equal(a, b, (size_t)N_ALL * info.n_vocab * sizeof *a);
}

static struct mw_options options_of(uint64_t memory_bytes)
{
    struct mw_options o = small_options(256);

    o.block_bytes = 64 * KIB;
    o.memory_bytes = memory_bytes;
    return o;
}

/* The budget of auto: everything is in memory. */
static uint64_t all_pinned(struct mw_model *m)
{
    struct mw_options o = options_of(0);

    return mw_default_budget(m, &o, 64 * GIB);
}

/* The budget with which half of the weights are pinned. */
static uint64_t half_pinned(struct mw_model *m)
{
    struct mw_options o = options_of(0);
    struct err e = ERR_INIT;
    struct plan p;

    mw_model_info(m, &info);
    o.memory_bytes = smallest_budget(m, &o);
    do {
        o.memory_bytes += 64 * KIB;
        no_error(mw_plan(m, &o, &p, &e), &e);
    } while (p.pinned_bytes < info.hot_bytes / 2);
    return o.memory_bytes;
}

/* Weights are in memory, and then others need it. */
static void check_model(struct mw_model *m, uint64_t memory_bytes)
{
    struct mw_options o = options_of(memory_bytes);
    struct squeeze q = { .n_layer = 1, .pinned_after = UINT64_MAX };
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t whole, chosen, least;
    uint32_t n_expert;
    float *want, *got;
    uint32_t kept;

    mw_model_info(m, &info);
    for (uint32_t i = 0; i < N_ALL; i++)
        ids[i] = (3 + i * 7919) % (info.n_vocab - 3);
    s = open_session(m, &o);
    want = logits_of(s, NULL);
    mw_session_close(s);

    s = open_session(m, &o);
    least = follow(s);
    q.s = s;
    whole = s->plan.pinned_bytes;
    n_expert = s->plan.n_expert;
    chosen = s->plan.budget_bytes;
    got = logits_of(s, &q);
    assert_same(want, got);
    free(got);
    assert_int_equal(q.n_layer, 0);
    assert_true(s->plan.budget_bytes < chosen);
    assert_true(q.pinned_after <= q.pinned_before);
    assert_true(s->plan.pinned_bytes < whole || s->plan.n_expert < n_expert);
    if (s->plan.pinned_bytes < whole)
        assert_true(q.pinned_after < q.pinned_before);
    if (s->plan.n_expert < n_expert)
        assert_true(q.experts_after < q.experts_before);
    /* It really went back to the system; the counters of Linux are exact to some 100 KiB. */
    if (q.pinned_before - q.pinned_after > 4 * MIB && q.own_before > 0)
        assert_true(q.own_before - q.own_after >
                    (q.pinned_before - q.pinned_after) / 10 * 8);
    print_message("pinned %lu -> %lu KiB, own %lu -> %lu KiB, experts %lu -> %lu, after %lu us\n",
                  (unsigned long)(q.pinned_before >> 10), (unsigned long)(q.pinned_after >> 10),
                  (unsigned long)(q.own_before >> 10), (unsigned long)(q.own_after >> 10),
                  (unsigned long)q.experts_before, (unsigned long)q.experts_after,
                  (unsigned long)(sample_now(s)->budget.delay_ns / 1000));
    assert_string_equal(sample_now(s)->budget.signal, "available");

    /* Between two passes, to the least. */
    mw_session_rewind(s, 0, &kept, &e);
    machine_is(0, chosen / 100);
    await_less(s, least + 1);
    got = logits_of(s, NULL);
    assert_same(want, got);
    free(got);

    /* And memory comes back. */
    assert_int_equal(s->plan.budget_bytes, least);
    machine_is(chosen, chosen);
    breathing_rebound(s->breathing, &(struct breathing_bounds){ .least = s->plan.sum_bytes,
                                                                .most = chosen,
                                                                .budget = chosen });
    mw_session_rewind(s, 0, &kept, &e);
    memory_look.session = s;
    memory_look.n = 0;
    got = logits_of(s, NULL);
    memory_look.session = NULL;
    assert_true(memory_look.n > 0);
    assert_same(want, got);
    free(got);
    assert_int_equal(s->plan.budget_bytes, chosen);
    assert_int_equal(s->plan.pinned_bytes, whole);
    mw_session_close(s);
    free(want);
}

static struct mw_model *open_guide(void)
{
    const char *src = getenv("MW_SRCDIR");
    struct err e = ERR_INIT;
    struct mw_model *m;
    char path[4096];

    snprintf(path, sizeof path, "%s/share/models/memwall-guide.gguf", src != NULL ? src : ".");
    no_error(mw_model_open(&m, path, &e), &e);
    return m;
}

static void the_guide_gives_back(void **state)
{
    struct mw_model *m = open_guide();

    (void)state;
    check_model(m, all_pinned(m));
    check_model(m, half_pinned(m));
    mw_model_close(m);
}

static void models_of_all_kinds_give_back(void **state)
{
    static const char *const models[] = {
        "gemma4-tiny-q4_0.gguf",     "llama-tiny.gguf",        "f-mixtral.gguf",
        "gemma4-moe-tiny-q4_0.gguf", "f-nemotronh-moe.gguf", "f-deepseek3.gguf",
    };

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct mw_model *m = open_model(models[i]);

        print_message("%s: ", models[i]);
        check_model(m, all_pinned(m));
        mw_model_close(m);
    }
}

/* The largest budget with which a model drafts with copies of weights that it streams. */
static uint64_t with_copies(struct mw_model *m, struct mw_options o)
{
    struct err ignored = ERR_INIT;
    uint64_t bytes = 0, all = all_pinned(m) + MIB;
    struct plan p;

    for (o.memory_bytes = smallest_budget(m, &o); o.memory_bytes < all;
         o.memory_bytes += 16 * KIB)
        if (mw_plan(m, &o, &p, &ignored) == 0 && p.low_bytes > 0)
            bytes = o.memory_bytes;
    assert_true(bytes > 0);
    return bytes;
}

#define N_ANSWER 40

/* Answer with the most likely tokens.  Others take memory at token `at`, if q is given. */
static void answer(struct mw_session *s, struct squeeze *q, uint32_t at, uint32_t *out)
{
    struct err e = ERR_INIT;

    eval(s, ids, N_PROMPT);
    for (uint32_t i = 0; i < N_ANSWER; i++) {
        out[i] = greatest_of(mw_session_logits(s), info.n_vocab);
        if (q != NULL && i == at)
            session_set_progress(s, after_layer, q);
        no_error(mw_session_eval_sampled(s, out[i], &e), &e);
    }
    session_set_progress(s, NULL, NULL);
}

/* Whatever drafts, and however keys and values are stored. */
static void check_drafts(struct mw_model *m, const enum mw_kv types[2],
                         const enum mw_draft *drafts, size_t n_draft)
{
    uint64_t budget = all_pinned(m) - 128 * KIB;

    mw_model_info(m, &info);
    for (uint32_t i = 0; i < N_PROMPT; i++)
        ids[i] = 30 + i % 5; /* the index of the text finds something to draft */
    for (size_t k = 0; k < 2; k++)
        for (size_t d = 0; d < n_draft; d++) {
            struct squeeze q = { .n_layer = 2, .pinned_after = UINT64_MAX };
            struct mw_options o = options_of(budget);
            uint32_t want[N_ANSWER], got[N_ANSWER];
            struct mw_session *s;
            uint64_t chosen;

            o.kv_k = o.kv_v = types[k];
            o.block_bytes = 4096;
            o.chunk = 16;
            s = open_session(m, &o);
            answer(s, NULL, 0, want);
            mw_session_close(s);
            o.draft = drafts[d];
            o.draft_depth = 3;
            o.memory_bytes = drafts[d] == MW_DRAFT_SELF ? with_copies(m, o) : o.memory_bytes;
            s = open_session(m, &o);
            (void)follow(s);
            chosen = s->plan.budget_bytes;
            q.s = s;
            answer(s, &q, 5 + (uint32_t)(7 * d), got);
            assert_memory_equal(want, got, sizeof want);
            assert_int_equal(q.n_layer, 0);
            assert_true(s->plan.budget_bytes < chosen);
            /* Copies of weights stay, and so little is pinned beside them that KV space holds it. */
            if (drafts[d] == MW_DRAFT_SELF)
                assert_true(s->plan.low_bytes > 0 && q.pinned_after <= q.pinned_before);
            else
                assert_true(q.pinned_after < q.pinned_before);
            print_message("%s, draft %d: %lu passes for %d tokens, pinned %lu -> %lu KiB\n",
                          mw_kv_name(types[k]), (int)drafts[d],
                          (unsigned long)sample_now(s)->draft.passes, N_ANSWER,
                          (unsigned long)(q.pinned_before >> 10),
                          (unsigned long)(q.pinned_after >> 10));
            mw_session_close(s);
        }
}

static void drafts_and_kv_types_change_nothing(void **state)
{
    static const enum mw_draft drafts[] = { MW_DRAFT_OFF, MW_DRAFT_NGRAM, MW_DRAFT_SELF };
    static const enum mw_kv wide[] = { MW_KV_F32, MW_KV_F16 }, small[] = { MW_KV_Q8_0,
                                                                           MW_KV_Q4_0 };
    struct mw_model *m = open_model("llama-tiny.gguf");

    (void)state;
    check_drafts(m, wide, drafts, 3);
    mw_model_close(m);
    m = open_guide(); /* its heads have whole blocks of 32 values */
    check_drafts(m, small, drafts, 2);
    mw_model_close(m);
}

/* Options that change keep what was given back; a number is fixed. */
static void options_keep_what_was_given_back(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t chosen, given;

    (void)state;
    o.memory_bytes = 0;
    s = open_session(m, &o);
    assert_non_null(s->breathing);
    assert_true(sample_now(s)->budget.most > 0);
    chosen = s->settled.o.memory_bytes;
    session_stop_following(s);
    follow(s);
    machine_is(0, chosen);
    await_less(s, chosen);
    session_settle(s);
    given = chosen - s->plan.budget_bytes;
    assert_true(given > 0);
    o.n_thread = 1;
    no_error(session_set(s, &o, &e), &e);
    assert_true(s->plan.budget_bytes <= s->settled.o.memory_bytes - given / 2);
    assert_non_null(s->breathing);
    o.memory_bytes = chosen;
    no_error(session_set(s, &o, &e), &e);
    assert_null(s->breathing);
    assert_int_equal(s->plan.budget_bytes, chosen);
    assert_int_equal(sample_now(s)->budget.most, 0);
    o.memory_bytes = 0;
    o.memory_choice++;
    no_error(session_set(s, &o, &e), &e);
    assert_non_null(s->breathing);
    mw_session_close(s);
    mw_model_close(m);
}

/* Others take memory while the first piece of a KV file is written or read. */
struct piece {
    struct mw_session *s;
    uint32_t n; /* pieces so far */
    uint64_t budget, pinned_before, pinned_after;
};

static bool before_piece(void *ctx)
{
    struct piece *p = ctx;
    const struct mw_sample *sample = sample_now(p->s);

    if (p->n == 0) {
        p->budget = p->s->plan.budget_bytes;
        p->pinned_before = sample->mem.used[MW_ROW_PINNED];
        machine_is(0, p->budget);
        await_less(p->s, p->budget);
    } else if (p->n == 1) {
        p->pinned_after = sample->mem.used[MW_ROW_PINNED];
    }
    p->n++;
    return false;
}

static void check_given(const struct piece *p)
{
    assert_true(p->n >= 2);
    assert_true(p->s->plan.budget_bytes < p->budget);
    assert_true(p->pinned_after < p->pinned_before);
    /* The rest follows while the session is idle, also without another pass. */
    assert_true(session_has_breath(p->s));
    session_settle(p->s);
    assert_false(session_has_breath(p->s));
}

static void a_kv_file_does_not_hold_memory_up(void **state)
{
    struct mw_model *m = open_guide();
    struct mw_options o = options_of(all_pinned(m));
    struct piece p = { .n = 0 };
    struct saved_kv_call call = { .stops = before_piece, .stops_ctx = &p };
    struct err e = ERR_INIT;
    struct saved_kv saved;
    struct mw_session *s;
    float *want;

    assert_int_equal(kv_folder_begin(state), 0);
    mw_model_info(m, &info);
    for (uint32_t i = 0; i < N_ALL; i++)
        ids[i] = (3 + i * 7919) % (info.n_vocab - 3);
    s = open_session(m, &o);
    p.s = s;
    want = logits_of(s, NULL);
    (void)follow(s);
    no_error(session_save_kv(s, kv_path, &call, &saved, &e), &e);
    check_given(&p);
    mw_session_close(s);

    s = open_session(m, &o);
    eval(s, ids, 1); /* weights are in memory */
    p = (struct piece){ .s = s };
    (void)follow(s);
    no_error(session_load_kv(s, kv_path, &call, &saved, &e), &e);
    assert_int_equal(saved.n_token, N_ALL);
    check_given(&p);
    assert_int_equal(mw_session_rewind(s, N_ALL - 1, &saved.n_token, &e), 0);
    assert_int_equal(saved.n_token, N_ALL - 1);
    eval(s, ids + N_ALL - 1, 1);
    assert_memory_equal(mw_session_logits(s), want + (size_t)(N_ALL - 1) * info.n_vocab,
                        info.n_vocab * sizeof *want);
    mw_session_close(s);
    free(want);
    assert_int_equal(kv_folder_end(state), 0);
    mw_model_close(m);
}

/* Copies of weights are made for the budget that is left. */
static void a_model_that_drafts_keeps_what_was_given_back(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = options_of(0);
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t chosen, given;

    (void)state;
    o.block_bytes = 4096;
    o.chunk = 16;
    o.draft = MW_DRAFT_SELF;
    o.memory_bytes = with_copies(m, o) - 320 * KIB; /* a thread less must not pin it all */
    s = open_session(m, &o);
    assert_true(s->plan.low_bytes > 0);
    chosen = s->plan.budget_bytes;
    o.memory_bytes = s->settled.asked.memory_bytes = 0; /* as if it had followed the free memory */
    follow(s);
    machine_is(0, chosen);
    await_less(s, chosen);
    session_settle(s);
    given = chosen - s->plan.budget_bytes;
    assert_true(given > 0);
    o.n_thread = 1;
    no_error(session_set(s, &o, &e), &e);
    assert_true(s->plan.low_bytes > 0);
    assert_true(s->plan.budget_bytes <= s->settled.o.memory_bytes - given / 2);
    mw_session_close(s);
    mw_model_close(m);
}

/* A change that fails makes the copies again, as they were, although fewer weights are pinned by
 * now than when they got their places. */
static void copies_come_back_while_the_budget_is_small(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = options_of(0);
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t chosen, bytes, least;

    (void)state;
    o.block_bytes = 4096;
    o.chunk = 16;
    o.draft = MW_DRAFT_SELF;
    o.memory_bytes = with_copies(m, o) - 320 * KIB;
    s = open_session(m, &o);
    bytes = stream_low_bytes(s->weights.stream);
    assert_true(bytes > 0);
    chosen = s->plan.budget_bytes;
    o.memory_bytes = s->settled.asked.memory_bytes = 0; /* as if it had followed the free memory */
    least = follow(s);
    machine_is(0, chosen);
    await_less(s, least + 1);
    session_settle(s);
    assert_true(s->plan.pinned_bytes < s->plan.low_beside_bytes);
    drafter_free(s->drafter);
    s->tokens.drafter = s->drafter = NULL;
    no_error(session_drafter(&s->drafter, s, &s->settled.o, &s->plan, &e), &e);
    s->tokens.drafter = s->drafter;
    assert_int_equal(stream_low_bytes(s->weights.stream), bytes);
    mw_session_close(s);
    mw_model_close(m);
}

/* After memory was given back, a longer context leaves none for copies.  So they are left out, and
 * only as much memory is taken again as the context needs. */
static void copies_without_memory_are_left_out(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = options_of(0);
    struct err e = ERR_INIT;
    struct plan_input in;
    struct mw_session *s;
    uint64_t chosen, least;

    (void)state;
    o.block_bytes = 4096;
    o.chunk = 16;
    o.draft = MW_DRAFT_SELF;
    o.n_ctx = 2048;
    o.memory_bytes = chosen = with_copies(m, o) - 128 * KIB;
    o.draft = MW_DRAFT_OFF;
    o.n_ctx = 64;
    s = open_session(m, &o);
    o.memory_bytes = s->settled.asked.memory_bytes = 0; /* as if it had followed the free memory */
    session_stop_following(s);
    least = follow(s);
    machine_is(0, chosen);
    await_less(s, least + 1);
    session_settle(s);
    o.draft = MW_DRAFT_SELF;
    o.n_ctx = 2048;
    no_error(session_set(s, &o, &e), &e);
    no_error(plan_input_of(m, &s->settled.o, &in, &e), &e);
    assert_int_equal(s->plan.low_bytes, 0);
    assert_int_equal(s->plan.budget_bytes, plan_smallest_budget(&in));
    mw_session_close(s);
    mw_model_close(m);
}

static void said_too_early(void *ctx, const struct mw_options *o)
{
    (void)ctx;
    (void)o;
    fail();
}

/* A closed drafter comes back by itself, so it takes no memory that was given back. */
static void a_closed_drafter_waits_for_memory(void **state)
{
    struct mw_model *m = open_model("llama-tiny.gguf");
    struct mw_options o = small_options(256);
    struct err e = ERR_INIT;
    struct mw_session *s;
    uint64_t least, budget;
    char path[4096];

    (void)state;
    snprintf(path, sizeof path, "%s", model_path("llama-tiny-q4_k.gguf"));
    o.memory_bytes = 0;
    o.draft = MW_DRAFT_FILE;
    o.draft_file = path;
    s = open_session(m, &o);
    assert_non_null(s->drafter);
    s->drafts.depth.share = 0.5;
    s->drafts.depth.stake = -1;
    leave_losing_drafter(s);
    assert_null(s->drafter);
    session_stop_following(s);
    least = follow(s);
    machine_is(0, s->plan.budget_bytes);
    await_less(s, least + 1);
    session_settle(s);
    budget = s->plan.budget_bytes;
    assert_true(budget < s->settled.o.memory_bytes);
    s->drafts.depth.narrow_s = 1;
    s->drafts.gap.n_token = UINT32_MAX;
    assert_false(session_try_drafter(s, said_too_early, NULL, &e));
    assert_int_equal(e.code, ERR_BUDGET);
    assert_true(s->drafter == NULL && s->drafts.was_left);
    assert_true(s->plan.budget_bytes <= budget);
    assert_true(s->drafts.gap.n_token == 0 && s->drafts.gap.n_lost == 1);
    mw_session_close(s);
    mw_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_guide_gives_back, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(models_of_all_kinds_give_back, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(drafts_and_kv_types_change_nothing, tree_make,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(a_model_that_drafts_keeps_what_was_given_back, tree_make,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(copies_come_back_while_the_budget_is_small, tree_make,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(copies_without_memory_are_left_out, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(options_keep_what_was_given_back, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(a_closed_drafter_waits_for_memory, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(a_kv_file_does_not_hold_memory_up, tree_make, tree_drop),
    };

    return cmocka_run_group_tests_name("breathing", tests, NULL, NULL);
}
