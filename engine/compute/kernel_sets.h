/*
 * kernel_sets.h - the table of compiled sets, best first, each with its check of the CPU.
 * Only kernels.c includes it.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNEL_SETS_H
#define MEMWALL_ENGINE_COMPUTE_KERNEL_SETS_H

#include <stdbool.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __aarch64__
#include <sys/auxv.h>

#include <asm/hwcap.h>
#endif

#include "engine/compute/kernels.h"
#include "engine/compute/processor.h"

extern const struct kernels kernels_amx, kernels_avx512vnni, kernels_avx512, kernels_avxvnni,
    kernels_avx2, kernels_sse41, kernels_neoni8mm, kernels_neondot, kernels_neon, kernels_generic;

static bool runs_anywhere(void)
{
    return true;
}

#ifdef __x86_64__
static bool has_sse41(void)
{
    return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}

/* Some compilers' __builtin_cpu_supports does not know f16c. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/* __builtin_cpu_supports also checks that the system saves the registers. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

/* Leaf 7, subleaf 1 of cpuid.  Some compilers' __builtin_cpu_supports does not know avxvnni. */
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;

    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_avx512vnni(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

static bool has_amx(void)
{
    return has_avx512vnni() && processor_has_amx() && processor_amx_denied() == NULL;
}
#endif

#ifdef __aarch64__
static bool has_dot_product(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

static bool has_i8mm(void)
{
    return has_dot_product() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#endif

static const struct {
    const struct kernels *set;
    bool (*runs_here)(void);
} kernel_sets[] = {
#ifdef __x86_64__
    { &kernels_amx, has_amx },
    { &kernels_avx512vnni, has_avx512vnni },
    { &kernels_avx512, has_avx512 },
    { &kernels_avxvnni, has_avxvnni },
    { &kernels_avx2, has_avx2 },
    { &kernels_sse41, has_sse41 },
#endif
#ifdef __aarch64__
    { &kernels_neondot, has_dot_product },
    { &kernels_neoni8mm, has_i8mm }, /* as many instructions, and never timed */
    { &kernels_neon, runs_anywhere },
#endif
    { &kernels_generic, runs_anywhere },
};

#endif
