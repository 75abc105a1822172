/*
 * kernel_set.h - the functions of one instruction set, each in the set_*.c that has its name.
 *
 * Every set_*.c is compiled once for each set, with its flags, with SET as its name, and with
 * VECTORS as its vec_*.h (local.mk).  set_steps.c also defines the table, kernels_SET.  The
 * functions are those of struct kernels; several files compile at the same time.
 *
 * A set that differs from another one only in its products of bytes compiles set_mul_q8.c and
 * set_steps.c, and names the other one in FLOAT_SET: that one's code for floats is the same.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNEL_SET_H
#define MEMWALL_ENGINE_COMPUTE_KERNEL_SET_H

#include "engine/compute/kernels.h"

#define SET_JOIN(name, set)   name##_##set
#define SET_JOINED(name, set) SET_JOIN(name, set)
#define SET_FUNCTION(name)    SET_JOINED(name, SET) /* set_attn_avx2 */
#define SET_STRING(set)       #set
#define SET_STRINGED(set)     SET_STRING(set)
#define SET_NAME              SET_STRINGED(SET) /* "avx2" */

#define set_pack_q8         SET_FUNCTION(set_pack_q8)
#define set_mul_q8          SET_FUNCTION(set_mul_q8)
#define set_mul_interleaved SET_FUNCTION(set_mul_interleaved)

/* The set whose functions of floats this one uses. */
#ifndef FLOAT_SET
#define FLOAT_SET SET
#endif
#define FLOAT_FUNCTION(name) SET_JOINED(name, FLOAT_SET)

#define set_dequant    FLOAT_FUNCTION(set_dequant)
#define set_unpack     FLOAT_FUNCTION(set_unpack)
#define set_mul_float  FLOAT_FUNCTION(set_mul_float)
#define set_mul_packed FLOAT_FUNCTION(set_mul_packed)
#define set_attn       FLOAT_FUNCTION(set_attn)
#define set_delta      FLOAT_FUNCTION(set_delta)
#define set_rotate     FLOAT_FUNCTION(set_rotate)

/* Members of struct kernels */
void set_dequant(enum tensor_type type, const void *src, float *dst, size_t n);
void set_unpack(const struct packed_block *b, size_t row, size_t k, size_t n, float *dst);
void set_mul_packed(const struct packed_block *b, size_t first, const struct matmul *m);
void set_mul_interleaved(const struct matmul *m);
void set_attn(const struct attn_block *a);
void set_delta(const struct delta_step *d);
void set_rotate(float *x, size_t n, size_t run);

/* Its parts by the form of the columns */
void set_pack_q8(const float *x, size_t n_k, void *dst);
void set_mul_float(const struct matmul *m);
void set_mul_q8(const struct matmul *m);

#endif
