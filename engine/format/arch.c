#include "config.h"

#include "engine/format/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct arch_traits table[ARCH_COUNT] = {
    [ARCH_GEMMA4] = { .name = "gemma4", .qk_norm = true, .post_norms = true },
    [ARCH_LLAMA] = { .name = "llama", .interleaved_gguf = true, .ffn_bias = true },
    [ARCH_QWEN2] = { .name = "qwen2", .qkv_bias = true },
    [ARCH_QWEN3] = { .name = "qwen3", .qk_norm = true },
    [ARCH_GEMMA2] = { .name = "gemma2",
                      .post_norms = true,
                      .norm_add_one = true,
                      .tied = true },
    [ARCH_GEMMA3] = { .name = "gemma3",
                      .qk_norm = true,
                      .post_norms = true,
                      .norm_add_one = true },
    [ARCH_PHI3] = { .name = "phi3", .fused_gate_up = true },
};

const struct arch_traits *arch_traits(enum arch a)
{
    return &table[a];
}

int arch_by_name(const char *name)
{
    for (int i = 0; i < ARCH_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int arch_refuse(const char *name, struct err *e)
{
    const char *names[ARCH_COUNT];
    char list[160];
    size_t used = 0;

    for (int i = 0; i < ARCH_COUNT; i++)
        names[i] = table[i].name;
    qsort(names, ARCH_COUNT, sizeof names[0], by_name);
    for (int i = 0; i < ARCH_COUNT && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 names[i]);
    return err_set(e, ERR_UNSUPPORTED,
                   "architecture \"%.60s\" is not supported; memwall runs: %s", name, list);
}
