/*
 * type_table.h - one row per type that a tensor in a file can have.
 *
 * A row is the only place that states the id, the size and the traits of a type.  The
 * enum and the catalogue's table (tensor_type.c), the block layouts below, the definitions
 * (compute/dequant.c), the unpackers (compute/set_unpack.h) and every switch over types
 * are generated from it.  A type without a definition or an unpacker does not compile.
 *
 * Columns:
 *   TYPE, name   TYPE_Q4_0 in C and in files, q4_0 in names of functions and structs
 *   id           ggml's id, the value in a GGUF file; types of snapshots alone follow ggml's
 *   bytes        bytes per block (per value for floats)
 *   group        values that share a scale: 16 or 32 (32 if even more do)
 *   signed, offset, minima
 *                traits of the bytes that the unpacker produces (compute/set_unpack.h):
 *                value = scale * (byte - offset) - minimum.  Bytes are -128 .. 127 if
 *                signed is 1, otherwise 0 .. 127.  offset is 0 in types with minima.
 *   layout       the fields of a block in file order, each an array of bytes
 *
 * An offset is 0 or a power of 2 up to 128.  Ids have no gaps: a type that is not computed is a
 * row of OTHER_TYPES.  A block of another size than 32, 64 or 256 values (Q1_0, Q2_0) needs
 * a list of its own, with its parts of set_unpack.h.
 *
 * Blocks of 32 values start with their scale d: an f16 if it has 2 bytes, a power of two
 * (half.h) if it has 1.  In types with minima an f16 m follows, which is minus the minimum.
 *
 * F8_E4M3 and NVFP4 weights have further scales in tensors of their own (struct tensor_scales in
 * catalogue.h).
 */
#ifndef MEMWALL_ENGINE_FORMAT_TYPE_TABLE_H
#define MEMWALL_ENGINE_FORMAT_TYPE_TABLE_H

#include <stdint.h>

/* clang-format off */

/* Single numbers.   TYPE   name  id  bytes */
#define FLOAT_TYPES(X) \
    X(F32,  f32,   0, 4) \
    X(F16,  f16,   1, 2) \
    X(BF16, bf16, 30, 2) \
    X(F8_E4M3, f8_e4m3, 43, 1)

/* Blocks of 32.     TYPE    name    id bytes group signed offset minima  layout */
#define TYPES_OF_32(X) \
    X(Q4_0,   q4_0,    2, 18, 32, 0,  8, 0, d[2], q[16]) \
    X(Q4_1,   q4_1,    3, 20, 32, 0,  0, 1, d[2], m[2], q[16]) \
    X(Q5_0,   q5_0,    6, 22, 32, 0, 16, 0, d[2], high[4], q[16]) \
    X(Q5_1,   q5_1,    7, 24, 32, 0,  0, 1, d[2], m[2], high[4], q[16]) \
    X(Q8_0,   q8_0,    8, 34, 32, 1,  0, 0, d[2], q[32]) \
    X(IQ4_NL, iq4_nl, 20, 18, 32, 1,  0, 0, d[2], q[16]) \
    X(MXFP4,  mxfp4,  39, 17, 32, 1,  0, 0, d[1], q[16])

/* Blocks of 64.     TYPE   name   id bytes group signed offset minima  layout */
#define TYPES_OF_64(X) \
    X(NVFP4, nvfp4, 40, 36, 16, 1, 0, 0, scales[4], q[32])

/* Blocks of 256.    TYPE    name    id bytes group signed offset minima  layout */
#define TYPES_OF_256(X) \
    X(Q2_K,    q2_k,    10,  84, 16, 0,  0, 1, scales[16], q[64], d[2], dmin[2]) \
    X(Q3_K,    q3_k,    11, 110, 16, 0,  4, 0, high[32], q[64], scales[12], d[2]) \
    X(Q4_K,    q4_k,    12, 144, 32, 0,  0, 1, d[2], dmin[2], scales[12], q[128]) \
    X(Q5_K,    q5_k,    13, 176, 32, 0,  0, 1, d[2], dmin[2], scales[12], high[32], q[128]) \
    X(Q6_K,    q6_k,    14, 210, 16, 0, 32, 0, q[128], high[64], scales[16], d[2]) \
    X(IQ2_XXS, iq2_xxs, 16,  66, 32, 1,  0, 0, d[2], q[64]) \
    X(IQ2_XS,  iq2_xs,  17,  74, 16, 1,  0, 0, d[2], q[64], scales[8]) \
    X(IQ3_XXS, iq3_xxs, 18,  98, 32, 1,  0, 0, d[2], q[64], signs[32]) \
    X(IQ1_S,   iq1_s,   19,  50, 32, 1,  0, 0, d[2], q[32], high[16]) \
    X(IQ3_S,   iq3_s,   21, 110, 32, 1,  0, 0, d[2], q[64], high[8], signs[32], scales[4]) \
    X(IQ2_S,   iq2_s,   22,  82, 16, 1,  0, 0, d[2], q[32], signs[32], high[8], scales[8]) \
    X(IQ4_XS,  iq4_xs,  23, 136, 32, 1,  0, 0, d[2], scales[6], q[128]) \
    X(IQ1_M,   iq1_m,   29,  56, 16, 1,  0, 0, q[32], high[16], scales[8]) \
    X(TQ1_0,   tq1_0,   34,  54, 32, 0,  1, 0, q[48], last[4], d[2]) \
    X(TQ2_0,   tq2_0,   35,  66, 32, 0,  1, 0, q[64], d[2])

/* Recognised in files, not computed.  Removed types have blocks of 0 values. */
/*                   TYPE        id values bytes */
#define OTHER_TYPES(X) \
    X(Q4_2,        4,   0,   0) \
    X(Q4_3,        5,   0,   0) \
    X(Q8_1,        9,  32,  36) \
    X(Q8_K,       15, 256, 292) \
    X(I8,         24,   1,   1) \
    X(I16,        25,   1,   2) \
    X(I32,        26,   1,   4) \
    X(I64,        27,   1,   8) \
    X(F64,        28,   1,   8) \
    X(Q4_0_4_4,   31,   0,   0) \
    X(Q4_0_4_8,   32,   0,   0) \
    X(Q4_0_8_8,   33,   0,   0) \
    X(IQ4_NL_4_4, 36,   0,   0) \
    X(IQ4_NL_4_8, 37,   0,   0) \
    X(IQ4_NL_8_8, 38,   0,   0) \
    X(Q1_0,       41, 128,  18) \
    X(Q2_0,       42,  64,  18) \
    X(F8_E8M0,    44,   1,   1)

/* clang-format on */

#define BLOCK_TYPES(X) TYPES_OF_32(X) TYPES_OF_64(X) TYPES_OF_256(X)

/* The number of types, which is one more than the largest id. */
#define ONE_MORE(...) +1
#define TYPE_COUNT    (0 FLOAT_TYPES(ONE_MORE) BLOCK_TYPES(ONE_MORE) OTHER_TYPES(ONE_MORE))

/* For switches: BLOCK_TYPES(CASE_OF) is "case TYPE_Q4_0: case TYPE_Q4_1:" and so on. */
#define CASE_OF(TYPE, ...) case TYPE_##TYPE:

/* struct block_q4_0 and so on: the bytes of a block as they are in the file */
#define BLOCK_LAYOUT(TYPE, name, id, bytes, group, is_signed, offset, has_minima, ...)         \
    struct block_##name {                                                                      \
        uint8_t __VA_ARGS__;                                                                   \
    };                                                                                         \
    _Static_assert(sizeof(struct block_##name) == (bytes), "layout of " #TYPE);
BLOCK_TYPES(BLOCK_LAYOUT)
#undef BLOCK_LAYOUT

#endif
