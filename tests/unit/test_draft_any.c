/*
 * Whatever a person does during an answer, and whatever drafts meanwhile, no token depends on it.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/draft/depth.h"
#include "engine/memwall.h"
#include "engine/session/sampler.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/hash.h"
#include "tests/lib/model_path.h"

static uint32_t next_number(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 8;
}

#define MOST_TEXT 200
#define N_STEP    220

/* A session with which a random sequence of things happens. */
struct life {
    struct mw_session *s;
    struct mw_options o;
    uint32_t text[MOST_TEXT], n;
    const char (*files)[4096]; /* [n_file] that may draft */
    uint32_t n_file;
    bool drafts;
    uint64_t tight; /* a budget with which weights stream, and copies of them fit, if possible */
    uint64_t drafted, accepted; /* of the answers before this one */
};

/* Make the session hold the text, with the logits of its last token. */
static void hold_text(struct life *l)
{
    struct err e = ERR_INIT;
    uint32_t kept = mw_session_tokens(l->s);

    if (kept == l->n && mw_session_logits(l->s) != NULL)
        return;
    if (kept >= l->n && mw_session_rewind(l->s, l->n - 1, &kept, &e) != 0)
        fail_with(&e);
    eval(l->s, l->text + kept, l->n - kept);
}

/* Other options, unless they are refused: that depends on what drafts. */
static void try_options(struct life *l, const struct mw_options *o)
{
    struct err e = ERR_INIT;

    if (session_set(l->s, o, &e) == 0)
        l->o = *o;
}

static void change_drafts(struct life *l, uint32_t r)
{
    struct mw_options o = l->o;

    o.draft_depth = r / 16 % 3 == 0 ? 0 : 1 + r / 64 % DRAFT_MOST;
    o.draft = (enum mw_draft)(r % 6);
    o.draft_file = NULL;
    if (o.draft == MW_DRAFT_FILE) {
        if (l->n_file == 0)
            return;
        o.draft_file = l->files[r / 8 % l->n_file];
    }
    if (l->drafts)
        try_options(l, &o);
}

/* Whatever the person does next, with the random number r. */
static void live(struct life *l, uint32_t what, uint32_t r)
{
    static const enum mw_kv types[] = { MW_KV_F32, MW_KV_F16 };
    struct mw_options o = l->o;
    struct err e = ERR_INIT;
    uint32_t kept;

    switch (what) {
    case 0: /* go back */
        l->n -= r % 7 < l->n ? r % 7 : 0;
        if (l->n < mw_session_tokens(l->s) && mw_session_rewind(l->s, l->n, &kept, &e) != 0)
            fail_with(&e);
        return;
    case 1: /* a message */
        for (uint32_t i = 0; i < 1 + r % 9 && l->n < MOST_TEXT; i++)
            l->text[l->n++] = 3 + (r >> i) % 60;
        return;
    case 2: /* the answer ends */
        session_drop_drafts(l->s);
        return;
    case 3: o.n_thread = 3 - o.n_thread; break;
    case 4: o.n_ctx = 576 - o.n_ctx; break;
    case 5: o.memory_bytes = r % 3 == 0 ? 192 * MIB : l->tight + r % 3 * MIB; break;
    case 6: o.chunk = r % 2 == 0 ? 5 : 64; break;
    case 7: o.kv_k = o.kv_v = types[r % 2]; break;
    default: change_drafts(l, r); return;
    }
    if (session_set(l->s, &o, &e) != 0) {
        assert_int_equal(e.code, ERR_BUDGET);
        assert_int_not_equal(what, 7);
        return;
    }
    l->o = o;
}

/* Stores a hash of the logits for each step, and what was sampled. */
static void live_through(struct mw_model *m, struct life *l, uint32_t seed, uint64_t *hash)
{
    struct mw_sampling sampling = { .temp = (float)(seed % 3) * 0.5f,
                                    .top_p = 0.95f,
                                    .repeat_penalty = 1,
                                    .seed = { true, seed } };
    struct mw_sampler *sampler;
    struct mw_sample sample;
    struct err e = ERR_INIT;

    l->o = small_options(256);
    l->o.memory_bytes = 192 * MIB;
    l->o.block_bytes = 4096;
    l->o.draft = MW_DRAFT_OFF;
    (void)model_tokenizer(m, NULL, &e); /* a sampler needs it to know ids that are never sampled */
    l->s = open_session(m, &l->o);
    l->n = 0;
    if (mw_sampler_new(&sampler, m, &sampling, &e) != 0)
        fail_with(&e);
    session_set_sampler(l->s, sampler);
    while (l->n < 24) {
        l->text[l->n] = 3 + l->n % 11;
        l->n++;
    }
    for (uint32_t i = 0; i < N_STEP; i++) {
        uint32_t what = next_number(&seed) % 40, r = next_number(&seed);

        hold_text(l);
        hash[i] = hash_of(mw_session_logits(l->s), m->desc->n_vocab);
        if (what < 12) {
            live(l, what, r);
            continue;
        }
        if (l->n == MOST_TEXT) {
            l->n = 30;
            continue;
        }
        l->text[l->n] = mw_sampler_next(sampler, session_logits(l->s), session_ids(l->s),
                                        mw_session_tokens(l->s));
        hash[i] ^= l->text[l->n];
        if (mw_session_eval_sampled(l->s, l->text[l->n++], &e) != 0)
            fail_with(&e);
    }
    mw_session_sample(l->s, &sample);
    l->drafted += sample.draft.drafted;
    l->accepted += sample.draft.accepted;
    mw_sampler_free(sampler);
    mw_session_close(l->s);
}

static void find_tight(struct mw_model *m, struct life *l)
{
    struct mw_options o = small_options(256);
    struct err e = ERR_INIT;
    struct plan p;
    uint64_t least;

    o.block_bytes = 4096;
    o.chunk = 16;
    least = smallest_budget(m, &o);
    o.draft = MW_DRAFT_SELF;
    for (uint64_t more = 8 * MIB; more > 0; more -= 16 * KIB) {
        o.memory_bytes = l->tight = least + more;
        if (mw_plan(m, &o, &p, &e) == 0 && p.low_bytes > 0 && p.streamed_share > 0.2)
            return;
    }
    l->tight = least + 3 * MIB;
}

static void anything_changes_no_token_of(const char *name, const char *const *files,
                                         uint32_t n_file, uint32_t n_round, uint32_t drafted)
{
    static uint64_t want[N_STEP], got[N_STEP];
    struct mw_model *m = open_model_copy(name);
    char path[4][4096];
    struct life life = { .files = (const char (*)[4096])path, .n_file = n_file };

    find_tight(m, &life);
    for (uint32_t i = 0; i < n_file; i++)
        snprintf(path[i], sizeof path[i], "%s", model_path(files[i]));
    for (uint32_t seed = 1; seed <= n_round; seed++) {
        life.drafts = false;
        live_through(m, &life, seed, want);
        life.drafts = true;
        live_through(m, &life, seed, got);
        for (uint32_t i = 0; i < N_STEP; i++)
            if (got[i] != want[i])
                fail_msg("%s, seed %u: step %u differs", name, seed, i);
    }
    print_message("%s: %lu drafted, %lu accepted\n", name, (unsigned long)life.drafted,
                  (unsigned long)life.accepted);
    assert_true(life.drafted >= drafted); /* random weights accept few */
    mw_model_close(m);
}

static void llama_has_the_same_tokens(void **state)
{
    static const char *const files[] = { "llama-tiny.gguf", "llama-tiny-q4_k.gguf" };

    (void)state;
    anything_changes_no_token_of("llama-tiny.gguf", files, 2, 12, 240);
}

static void gemma_with_an_assistant_has_the_same_tokens(void **state)
{
    static const char *const files[] = { "gemma4-tiny.gguf", "gemma4-tiny-assistant.gguf",
                                         "gemma4-tiny-q4_0.gguf", "gemma4-tiny-assistant-hf" };

    (void)state;
    anything_changes_no_token_of("gemma4-tiny.gguf", files, 4, 12, 240);
}

static void heads_in_the_file_have_the_same_tokens(void **state)
{
    (void)state;
    anything_changes_no_token_of("mtp-qwen35moe.gguf", NULL, 0, 8, 160);
    anything_changes_no_token_of("q4e-a.gguf", NULL, 0, 6, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_has_the_same_tokens),
        cmocka_unit_test(gemma_with_an_assistant_has_the_same_tokens),
        cmocka_unit_test(heads_in_the_file_have_the_same_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
