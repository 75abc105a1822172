/*
 * safetensors.h - the header of one safetensors file.
 *
 *     u64 N | JSON object of N bytes: name -> dtype, shape, data_offsets | data
 *
 * The header is read as a stream, so its length costs time but not memory.  The caller gets one
 * tensor at a time.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SAFETENSORS_H
#define MEMWALL_ENGINE_FORMAT_SAFETENSORS_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/tensor_type.h"

#define SAFETENSORS_MAX_HEADER ((uint64_t)100000000)
#define SAFETENSORS_MAX_NAME   512

struct safetensors_entry {
    const char *name;  /* as the file spells it; valid during the call */
    const char *dtype; /* "BF16" */
    bool has_type;     /* dtype is one of enum tensor_type; else type is I8 and the shape is in
                          bytes */
    enum tensor_type type;
    uint32_t n_dims; /* 1 to 4; with more, the outer ones are multiplied */
    uint64_t ne[4];  /* row length first, the reverse of the file's order; may hold 0 */
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;
};

typedef int safetensors_fn(void *ctx, const struct safetensors_entry *t, struct err *e);

/*
 * Read and check the header of the open file fd, which has size bytes, and call fn for each
 * tensor.  Sizes agree with shapes, every range is inside the file, and the ranges fill the
 * file without a gap.  Returns 0, or -1 with *e (field and offset, not the file).
 */
int safetensors_read(int fd, uint64_t size, safetensors_fn *fn, void *ctx, struct err *e);

#endif
