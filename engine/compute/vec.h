/*
 * vec.h - the common part of all vec_*.h.
 *
 * A set of kernels is the files of kernel_set.h, compiled with a vec_*.h and the flags of its
 * instruction set.  Functions that take sizes and types as constants
 * are always inlined, so each use becomes its own loop without branches on them.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_H
#define MEMWALL_ENGINE_COMPUTE_VEC_H

#include <stdbool.h>
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

/*
 * Packed BF16 (packed.h).  Each vec_*.h has
 *     vp                    a table of exponents, with a code of 4 bits as the index
 *     vp_exponents(largest) the table of a span
 *     vp_widen(...)         32 weights as floats in rising k, VN in each vector
 *
 * vp_widen() sign-extends the bytes of sign and fraction to 16 bits, so that the sign is at the
 * top and the fraction at the bottom, and overwrites the 8 bits between them with the exponent.
 * That is a BF16 weight.  Two of them are in a lane of 32 bits: the low one is shifted up to
 * make a float, and for the high one the low half is cleared.
 */
static const uint8_t packed_steps[16] /* from the largest exponent down */
    __attribute__((unused)) = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255 };

INLINE u8x16 load_16(const uint8_t *p)
{
    u8x16 v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* The exponents of the 16 codes.  Those below 0 are 0, as is the one of PACKED_ZERO. */
INLINE u8x16 packed_exponents(uint8_t largest)
{
    u8x16 steps = load_16(packed_steps), e = steps * 0 + largest;

    return (e - steps) & (u8x16)(e > steps);
}

/* 16 codes, from the high or the low half of each byte. */
INLINE u8x16 packed_codes(const uint8_t *p, bool high)
{
    return high ? load_16(p) >> 4 : load_16(p) & 15;
}

INLINE u8x32 load_32(const uint8_t *p)
{
    u8x32 v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* Without registers of 32 bytes, gcc moves byte after byte if this is a shuffle. */
INLINE u8x32 join_16(u8x16 low, u8x16 high)
{
#ifdef __AVX__
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                   15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                                   30, 31);
#else
    union {
        u8x16 half[2];
        u8x32 both;
    } v = { { low, high } };

    return v.both;
#endif
}

/* Each of the 8 bytes of v, twice. */
INLINE u8x16 twice_8(uint64_t v)
{
    u8x16 b = (u8x16)(u64x2){ v, v };

    return __builtin_shufflevector(b, b, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
}

#endif
