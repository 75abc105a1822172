/*
 * Going back: after any sequence of evaluating and rewinding, a session has the same bits as
 * one that evaluated the same ids once.  Going back to the beginning of a turn evaluates
 * nothing again.
 */
#include "config.h"

#include <linux/magic.h>
#include <sys/vfs.h>

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

#include "engine/plan/plan.h"
#include "engine/session/session.h"
#include "tests/lib/calls.h"
#include "tests/lib/chance.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"
#include "tests/lib/tree.h"

#define N_CTX 160

static struct mw_model *model;
static uint32_t n_vocab;
static struct chance chance;

static uint32_t rewind_to(struct mw_session *s, uint32_t n)
{
    struct err e = ERR_INIT;
    uint32_t kept;

    if (mw_session_rewind(s, n, &kept, &e) != 0)
        fail_with(&e);
    assert_true(kept <= n);
    assert_int_equal(mw_session_tokens(s), kept);
    return kept;
}

/* The last row must be that of a session that evaluates all ids at once. */
static void check(struct mw_session *s, struct mw_session *fresh, const uint32_t *ids,
                  uint32_t n)
{
    rewind_to(fresh, 0);
    eval(fresh, ids, n);
    assert_memory_equal(mw_session_logits(s), mw_session_logits(fresh),
                        n_vocab * sizeof(float));
}

static void new_ids(uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = chance_below(&chance, n_vocab);
}

/* One random action: evaluate, rewind, mark, or change the budget. */
static uint32_t step(struct mw_session *s, uint32_t *ids, uint32_t n, uint64_t least)
{
    struct err e = ERR_INIT;

    switch (chance_below(&chance, 6)) {
    case 0: return rewind_to(s, n > 0 ? chance_below(&chance, n) : 0);
    case 1: return rewind_to(s, n > 5 ? n - chance_below(&chance, 5) : n);
    case 2: session_mark(s); return n;
    case 3:
        /* Near the smallest budget, chunk, ring and copies change with each MiB. */
        if (mw_session_set_memory(s, least + chance_below(&chance, 3 * MIB), &e) != 0)
            fail_with(&e);
        return n;
    default: {
        uint32_t more = 1 + chance_below(&chance, 40);

        more = more < N_CTX - n ? more : N_CTX - n;
        new_ids(ids + n, more);
        if (more > 0)
            eval(s, ids + n, more);
        return n + more;
    }
    }
}

static char folder[400]; /* for copies; the models keep their tokenizers there */

static void walk(const char *name, const char *cache_folder)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *fresh = open_session(model, &o), *s;
    uint64_t least = smallest_budget(model, &o);
    uint32_t ids[N_CTX], n = 0;

    chance.state = 0x9e3779b97f4a7c15u;
    o.cache_folder = cache_folder;
    s = open_session(model, &o);
    for (int i = 0; i < 300; i++) {
        n = step(s, ids, n, least);
        /* Evaluate the last id again, so that there is a row to compare. */
        if (n > 0 && mw_session_logits(s) == NULL) {
            n = rewind_to(s, n - 1) + 1;
            eval(s, ids + n - 1, 1);
        }
        if (n > 0)
            check(s, fresh, ids, n);
    }
    print_message("%s: 300 steps\n", name);
    mw_session_close(s);
    mw_session_close(fresh);
}

static void any_walk_gives_the_bits_of_its_ids(void **state)
{
    (void)state;
    walk("in memory", NULL);
    walk("in memory and on disk", folder);
}

/* Families with windows, of which one has experts and sinks, families with recurrent state of
 * every kind, and families whose keys and values are one latent vector. */
static void any_walk_of_a_family_gives_the_bits_of_its_ids(void **state)
{
    const char *path = model_path(*state);
    struct mw_model *gemma4 = model;
    struct mw_model_info info;
    uint32_t n = n_vocab;

    if (path == NULL)
        skip();
    model = open_model_copy(*state);
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    walk(*state, folder);
    mw_model_close(model);
    model = gemma4;
    n_vocab = n;
}

/* Turns of 30 tokens.  The window is 16, so rings hold at most the last turn. */
static void turns_of_30(struct mw_session *s, const uint32_t *ids, uint32_t n)
{
    for (uint32_t turn = 0; turn < n; turn++) {
        session_mark(s);
        eval(s, ids + turn * 30, 30);
    }
}

static void going_to_the_beginning_of_a_turn_evaluates_nothing(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *fresh = open_session(model, &o), *s;
    uint32_t ids[N_CTX];

    (void)state;
    chance.state = 1;
    new_ids(ids, N_CTX);
    o.chunk = 4;
    s = open_session(model, &o);
    turns_of_30(s, ids, 5);
    for (uint32_t turn = 4; turn > 0; turn--) {
        assert_int_equal(rewind_to(s, turn * 30), turn * 30);
        new_ids(ids + turn * 30, 10);
        eval(s, ids + turn * 30, 10);
        check(s, fresh, ids, turn * 30 + 10);
    }
    mw_session_close(s);
    mw_session_close(fresh);
}

/* A recurrent state cannot go back by itself, but only to copies. */
static void recurrent_state_goes_back_to_its_copies(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *gemma4 = model;
    struct mw_session *fresh, *s;
    uint32_t ids[N_CTX], n = n_vocab;
    struct mw_model_info info;
    struct plan plan;

    (void)state;
    if (model_path("f-qwen35") == NULL)
        skip();
    model = open_model_copy("f-qwen35");
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    fresh = open_session(model, &o);
    s = open_session(model, &o);
    mw_session_plan(s, &plan);
    assert_true(plan.n_copy > 0);
    /* Two versions of 3 layers: 4 matrices of 16 x 16, and 3 inputs of 128 channels. */
    assert_true(plan.row[MW_ROW_KV_RECURRENT] >=
                (2 + plan.n_copy) * 3 * (4 * 256 + 3 * 128) * 4u);
    chance.state = 4;
    new_ids(ids, N_CTX);
    session_mark_at(s, 40);
    eval(s, ids, 60);
    assert_int_equal(rewind_to(s, 50), 40);
    eval(s, ids + 40, 11);
    check(s, fresh, ids, 51);
    assert_int_equal(rewind_to(s, 39), 0);
    eval(s, ids, 45);
    check(s, fresh, ids, 45);
    mw_session_close(s);
    mw_session_close(fresh);
    mw_model_close(model);
    model = gemma4;
    n_vocab = n;
}

/* Some file systems have no unnamed files, or none without the page cache. */
static bool has_folder(void)
{
    int fd = open(folder, O_RDWR | O_TMPFILE | O_DIRECT | O_CLOEXEC, 0600);
    struct statfs fs;
    bool ok = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* If memory is too small, copies go to the folder.  If memory shrinks, copies move there. */
static void copies_that_do_not_fit_memory_go_to_the_folder(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *fresh = open_session(model, &o), *s;
    struct err e = ERR_INIT;
    uint32_t ids[N_CTX];
    struct plan plan;

    (void)state;
    if (!has_folder())
        skip();
    chance.state = 2;
    new_ids(ids, N_CTX);
    for (int round = 0; round < 3; round++) {
        o.cache_folder = round > 0 ? folder : NULL;
        o.memory_bytes = round < 2 ? smallest_budget(model, &o) : 192 * MIB;
        s = open_session(model, &o);
        mw_session_plan(s, &plan);
        assert_int_equal(plan.n_copy, round < 2 ? 0 : PLAN_COPIES);
        turns_of_30(s, ids, 5);
        if (round == 2)
            assert_int_equal(mw_session_set_memory(s, smallest_budget(model, &o), &e), 0);
        for (uint32_t turn = 4; turn > 0; turn--) {
            uint32_t kept = rewind_to(s, turn * 30);

            assert_int_equal(kept, round > 0 ? turn * 30 : 0);
            eval(s, ids + kept, turn * 30 + 10 - kept);
            check(s, fresh, ids, turn * 30 + 10);
        }
        mw_session_close(s);
    }
    mw_session_close(fresh);
}

static void a_missing_folder_costs_only_time(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_session *fresh = open_session(model, &o), *s;
    uint32_t ids[N_CTX], kept;

    (void)state;
    chance.state = 3;
    new_ids(ids, N_CTX);
    o.cache_folder = "/nonexistent";
    o.memory_bytes = smallest_budget(model, &o);
    s = open_session(model, &o);
    turns_of_30(s, ids, 3);
    kept = rewind_to(s, 60);
    eval(s, ids + kept, 61 - kept);
    check(s, fresh, ids, 61);
    mw_session_close(s);
    mw_session_close(fresh);
}

static int begin(void **state)
{
    struct mw_model_info info;

    (void)state;
    model = open_model_copy("gemma4-tiny-q4_0.gguf");
    mw_model_info(model, &info);
    n_vocab = info.n_vocab;
    snprintf(folder, sizeof folder, "%s/rewind-XXXXXX", getenv("MW_BUILDDIR"));
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    mw_model_close(model); /* keeps its tokenizer */
    return tree_remove(folder);
}

#define FAMILY(name)                                                                           \
    {                                                                                          \
        "any walk of " name, any_walk_of_a_family_gives_the_bits_of_its_ids, NULL, NULL,       \
            (void *)(uintptr_t)name                                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_walk_gives_the_bits_of_its_ids),
        cmocka_unit_test(going_to_the_beginning_of_a_turn_evaluates_nothing),
        cmocka_unit_test(copies_that_do_not_fit_memory_go_to_the_folder),
        cmocka_unit_test(a_missing_folder_costs_only_time),
        cmocka_unit_test(recurrent_state_goes_back_to_its_copies),
        FAMILY("f-olmo3"),
        FAMILY("f-gptoss"),
        FAMILY("f-qwen35"),
        FAMILY("f-qwen35moe"),
        FAMILY("q4e-a.gguf"),
        FAMILY("f-laguna.gguf"),        /* heads of queries that differ by layer, windows */
        FAMILY("f-deepseek3.gguf"),     /* latent attention */
        FAMILY("f-lfm2moe.gguf"),       /* short convolutions */
        FAMILY("f-nemotronh-moe.gguf"), /* Mamba-2 */
        FAMILY("f-falconh1.gguf"),      /* the same beside attention */
        FAMILY("f-ling3.gguf"),         /* Kimi's delta attention, and latent attention */
        FAMILY("f-deepseek4.gguf"),     /* windows and entries, which are open pools at first */
        FAMILY("f-glm53flash.gguf"),    /* index keys that are pools */
    };

    return cmocka_run_group_tests_name("rewind", tests, begin, end);
}
