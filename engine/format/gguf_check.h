/*
 * gguf_check.h - arithmetic on a tensor's shape and type, with every overflow seen.
 * Shared by the GGUF and the safetensors reader; and what gguf.c and gguf_value.c share.
 */
#ifndef MEMWALL_ENGINE_FORMAT_GGUF_CHECK_H
#define MEMWALL_ENGINE_FORMAT_GGUF_CHECK_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/gguf.h"

/* Each dimension is 1 to 2^40 and their product below 2^62. */
int gguf_check_dims(uint32_t n_dims, const uint64_t ne[4], struct err *e);

/* type is one with blocks, rows are whole blocks; *bytes is the tensor's size. */
int gguf_check_type(uint32_t type, const uint64_t ne[4], uint64_t *bytes, struct err *e);

unsigned gguf_type_bytes(enum gguf_type t);
void gguf_decode_number(struct gguf_value *v, enum gguf_type type, const unsigned char *p);

#endif
