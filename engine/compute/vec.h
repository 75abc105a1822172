/*
 * vec.h - the common part of all vec_*.h.
 *
 * A set of kernels is one file that names a vec_*.h and includes kernel_set.h, compiled
 * with the flags of its instruction set.  Functions that take sizes and types as constants
 * are always inlined, so each use becomes its own loop without branches on them.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_H
#define MEMWALL_ENGINE_COMPUTE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE   static inline __attribute__((always_inline, unused))
#define NOINLINE __attribute__((noinline))

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x32 __attribute__((vector_size(32)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));
typedef uint64_t u64x4 __attribute__((vector_size(32)));

/* Steps of the codes of packed.h below the largest exponent of a span.  The last one is below
 * all: differences saturate at 0. */
static const uint8_t packed_steps[16]
    __attribute__((unused)) = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255 };

INLINE u8x16 load_16(const uint8_t *p)
{
    u8x16 v;

    memcpy(&v, p, sizeof v);
    return v;
}

INLINE u8x32 load_32(const uint8_t *p)
{
    u8x32 v;

    memcpy(&v, p, sizeof v);
    return v;
}

INLINE u8x32 join_16(u8x16 low, u8x16 high)
{
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                   15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                                   30, 31);
}

/* Each of the 8 bytes of v, twice. */
INLINE u8x16 twice_8(uint64_t v)
{
    u8x16 b = (u8x16)(u64x2){ v, v };

    return __builtin_shufflevector(b, b, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
}

#endif
