/* See cpu_cache.h. */
#include "config.h"

#include "engine/base/cpu_cache.h"

#include <stdint.h>

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>

#    define LINE           64
#    define LEAF_FEATURES  7
#    define HAS_CLFLUSHOPT (1u << 23) /* of EBX */

/* Lines in any order. */
__attribute__((target("clflushopt"))) static void drop_unordered(char *p, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        _mm_clflushopt(p + i);
}

/* Processors before Skylake and Zen drop one line after the other. */
static void drop_ordered(char *p, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        _mm_clflush(p + i);
}

bool cpu_cache_drop(const void *p, size_t n)
{
    char *from = (char *)((uintptr_t)p / LINE * LINE);
    unsigned a, b = 0, c, d;

    n += (size_t)((const char *)p - from);
    if (__get_cpuid_count(LEAF_FEATURES, 0, &a, &b, &c, &d) != 0 && (b & HAS_CLFLUSHOPT) != 0)
        drop_unordered(from, n);
    else
        drop_ordered(from, n);
    _mm_mfence();
    return true;
}

#elif defined(__aarch64__)

bool cpu_cache_drop(const void *p, size_t n)
{
    uint64_t type, line;
    uintptr_t from;

    /* The smallest line of a data cache, in words of 4 bytes. */
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(type));
    line = (uint64_t)4 << (type >> 16 & 15);
    from = (uintptr_t)p / line * line;
    for (; from < (uintptr_t)p + n; from += line)
        __asm__ volatile("dc civac, %0" : : "r"(from) : "memory");
    __asm__ volatile("dsb sy" : : : "memory");
    return true;
}

#else

bool cpu_cache_drop(const void *p, size_t n)
{
    (void)p, (void)n;
    return false;
}

#endif
