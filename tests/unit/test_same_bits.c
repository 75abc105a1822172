/*
 * One model, one mode and one prompt give the same bits for all threads, chunks, budgets and
 * ways of reading, and also if the budget changes in between.  Tests every family of models
 * whose file is present.  The smallest budget streams every block.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"

#define N_IDS   44
#define N_CTX   80
#define N_VOCAB 1024

struct answer {
    float rows[3][N_VOCAB];
};

struct way {
    const char *name;
    enum mw_io io;
    bool no_uring, mmap_drop;
    int n_thread;
    uint32_t chunk;
    bool is_small;     /* the smallest budget, */
    uint32_t more_kib; /* and this in addition: experts are in memory in part */
    bool changes;      /* the budget changes between the parts of the prompt */
    uint32_t block;    /* bytes; then BF16 weights are packed */
};

static const struct way ways[] = {
    { "one thread, token by token", MW_IO_AUTO, false, false, 1, 1, false, 0, false, 0 },
    { "three threads, chunks of 7", MW_IO_AUTO, false, false, 3, 7, false, 0, false, 0 },
    { "io_uring", MW_IO_DIRECT, false, false, 2, 0, true, 0, false, 0 },
    { "pread", MW_IO_DIRECT, true, false, 2, 5, true, 0, false, 0 },
    { "buffered", MW_IO_BUFFERED, false, false, 2, 0, true, 0, false, 0 },
    { "buffered pread", MW_IO_BUFFERED, true, false, 1, 3, true, 0, false, 0 },
    { "mmap", MW_IO_MMAP, false, false, 2, 0, true, 0, false, 0 },
    { "mmap:drop", MW_IO_MMAP, false, true, 2, 16, true, 0, false, 0 },
    { "some experts", MW_IO_AUTO, false, false, 2, 5, true, 800, false, 0 },
    { "more experts, chunks of 64", MW_IO_AUTO, false, false, 3, 64, true, 1100, false, 0 },
    { "changing budgets", MW_IO_AUTO, false, false, 2, 0, false, 0, true, 0 },
    { "small blocks", MW_IO_AUTO, false, false, 3, 0, false, 0, false, 4096 },
    { "small blocks, some pinned", MW_IO_AUTO, false, false, 1, 5, true, 400, false, 4096 },
    { "small blocks, changing budgets", MW_IO_AUTO, false, false, 2, 9, false, 0, true, 4096 },
};

static uint32_t ids[N_IDS + 2];

static void answer(struct mw_model *m, const struct mw_options *o, bool changes, uint64_t least,
                   struct answer *a)
{
    struct mw_model_info info;
    struct mw_session *s = open_session(m, o);
    struct err e = ERR_INIT;

    mw_model_info(m, &info);
    assert_true(info.n_vocab <= N_VOCAB);
    memset(a, 0, sizeof *a);
    for (uint32_t at = 0; at < N_IDS; at += 11) {
        eval(s, ids + at, 11);
        if (changes && mw_session_set_memory(s, least + at * 40 * KIB, &e) != 0)
            fail_with(&e);
    }
    eval(s, ids + N_IDS - 1, 1);
    memcpy(a->rows[0], mw_session_logits(s), info.n_vocab * sizeof(float));
    for (int i = 0; i < 2; i++) {
        eval(s, ids + N_IDS + i, 1);
        memcpy(a->rows[i + 1], mw_session_logits(s), info.n_vocab * sizeof(float));
    }
    mw_session_close(s);
}

static void all_ways(struct mw_model *m, const char *name, struct mw_options o)
{
    struct answer *want = malloc(sizeof *want), *got = malloc(sizeof *got);
    uint64_t least;

    answer(m, &o, false, 0, want);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct way *w = &ways[i];
        struct mw_options other = o;

        other.io = w->io;
        other.no_uring = w->no_uring;
        other.mmap_drop = w->mmap_drop;
        other.n_thread = w->n_thread;
        other.chunk = w->chunk;
        other.block_bytes = w->block;
        if (w->block > 0)
            other.pack = MW_PACK_ALWAYS;
        least = smallest_budget(m, &other);
        if (w->is_small)
            other.memory_bytes = least + w->more_kib * KIB;
        answer(m, &other, w->changes, least, got);
        if (memcmp(want, got, sizeof *want) != 0)
            fail_msg("%s, kv %s%s: different bits with %s", name, mw_kv_name(o.kv_k),
                     o.exact ? ", exact" : "", w->name);
    }
    free(want);
    free(got);
}

static const char *const names[] = {
    "gemma4-tiny-q4_0.gguf",
    "llama-tiny.gguf",
    "gemma4-tiny2.gguf",
    "gemma4-31b-tiny.gguf",
    "gemma4-moe-tiny.gguf",
    "gemma4-moe-tiny-q4_0.gguf",
    "llama-tiny-mix.gguf",
    "gemma4-tiny-q4_k_m.gguf",
    "gemma4-tiny-hf",
    "f-gemma1",
    "f-granite",
    "f-ministral3",
    "f-olmo3",
    "f-smollm3",
    "f-mixtral",
    "f-qwen3moe",
    "f-gptoss",
    "f-qwen35",
    "f-qwen35moe",
    "q4e-a.gguf",
    "q4e-q.gguf",
    "f-qwen3next",
    "f-deepseek4.gguf",
    "f-glm53flash.gguf",
};

static void a_model_gives_the_same_bits_in_all_ways(void **state)
{
    struct mw_options o = small_options(N_CTX);
    struct mw_model *m = open_model_copy(*state);
    struct mw_model_info info;

    mw_model_info(m, &info);
    for (uint32_t i = 0; i < N_IDS + 2; i++)
        ids[i] = 5 + i * 7919 % (info.n_vocab - 5);
    all_ways(m, *state, o);
    o.exact = true;
    o.kv_k = o.kv_v = MW_KV_F32;
    all_ways(m, *state, o);
    if (strstr(*state, "q4_k_m") != NULL || strstr(*state, "-mix.") != NULL) { /* heads of 64 */
        o.exact = false;
        o.kv_k = MW_KV_Q8_0;
        o.kv_v = MW_KV_Q4_0;
        all_ways(m, *state, o);
    }
    mw_model_close(m);
}

int main(void)
{
    enum { N = sizeof names / sizeof names[0] };
    struct CMUnitTest tests[N];

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ names[i], a_model_gives_the_same_bits_in_all_ways, NULL,
                                        NULL, (void *)(uintptr_t)names[i] };
    return cmocka_run_group_tests_name("same_bits", tests, NULL, NULL);
}
