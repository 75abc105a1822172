/*
 * tensor_type.h - every type that a tensor in a file can have.
 *
 * Values of the enum are ggml's ids, so a GGUF field becomes a table index after one check.
 * Removed types are in the table with block_elems 0.  Refuse them before any division.
 */
#ifndef MEMWALL_ENGINE_FORMAT_TENSOR_TYPE_H
#define MEMWALL_ENGINE_FORMAT_TENSOR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/type_table.h"

enum tensor_type {
#define ID(TYPE, name, id, ...) TYPE_##TYPE = (id),
#define ID_OTHER(TYPE, id, ...) TYPE_##TYPE = (id),
    FLOAT_TYPES(ID) BLOCK_TYPES(ID) OTHER_TYPES(ID_OTHER)
#undef ID
#undef ID_OTHER
};

/* One more than the largest id of types in GGUF files. */
#define TYPE_COUNT_GGUF (TYPE_Q2_0 + 1)

struct tensor_type_info {
    const char *name;     /* "Q4_K" */
    uint16_t block_elems; /* values per block; 0 for a removed or unknown type */
    uint16_t block_bytes;
    bool is_computed; /* there are kernels for it */
};

/* Returns NULL for an id past the end of the table. */
const struct tensor_type_info *tensor_type_info(uint32_t id);

/* Write the names of the types that weights can have ("F32, F16, …") to buf. */
#define TYPES_COMPUTED_BYTES 256
void tensor_types_computed(char *buf, size_t n);

/* Returns the bytes of a row of n values; n is a multiple of the block (checked at open). */
uint64_t tensor_row_bytes(enum tensor_type type, uint64_t n);

#endif
