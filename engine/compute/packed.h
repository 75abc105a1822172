/*
 * packed.h - BF16 weights in 12 bits instead of 16, without loss.
 *
 * Nearly all exponents of PACKED_SPAN trained weights are at most 14 below the largest of
 * them, so 4 bits tell which one it is.  Sign and fraction are the other 8 bits.
 *
 *     a block of rows:  | groups of row 0 | groups of row 1 | ... | heads | patches |
 *
 *     a group:  64 weights in 96 bytes
 *       byte 2i + j of the first 64, i < 16, in each half h (of 32 bytes):
 *                              sign and fraction of weight 32h + 16j + i: s mmmmmmm
 *       byte i of the last 32: the codes of the weights of byte i of both halves,
 *                              the first half in the low 4 bits
 *     a head:   for each span of a row, 4 bytes: the largest exponent in the lowest byte; the
 *               bit PACKED_RAW; above it, 1 + the place of its patches, 0: it has none
 *     patches:  units of 4 bytes.  A number n, and n weights with their index in the span:
 *               index << 16 | weight.  Or, for a raw span, the last quarter of its weights as
 *               in the file; the groups have the other three quarters.
 *
 * A code c stands for the largest exponent minus c, and 15 for the exponent 0: zeros and
 * subnormals need no patch.  Other weights do if they are further below.  A span is raw if that
 * is not larger than its list.  So any span takes at most 4 bytes more than in the file: 0.8 %
 * of a complete one.
 *
 * The order of the bytes lets all instruction sets widen weights in runs of consecutive ones:
 * 16 weights and the 16 next ones are the halves of 16 lanes.  Rows begin at fixed places, so a
 * product can start at any row.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_PACKED_H
#define MEMWALL_ENGINE_COMPUTE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_SPAN  256 /* weights that share a head; the last span of a row may be shorter */
#define PACKED_GROUP 64
#define PACKED_BYTES 96 /* of a group */
#define PACKED_RAW   0x100u
#define PACKED_ZERO  15 /* the code of the exponent 0 */

/* Rows of this length can be packed. */
static inline bool packed_takes(size_t n_k)
{
    return n_k > 0 && n_k % PACKED_GROUP == 0;
}

static inline size_t packed_spans(size_t n_k)
{
    return (n_k + PACKED_SPAN - 1) / PACKED_SPAN;
}

/* Bytes of the groups of one row; of its groups and heads; and of all, at most. */
static inline size_t packed_stride(size_t n_k)
{
    return n_k / PACKED_GROUP * PACKED_BYTES;
}

static inline size_t packed_row_least(size_t n_k)
{
    return packed_stride(n_k) + packed_spans(n_k) * sizeof(uint32_t);
}

static inline size_t packed_row_most(size_t n_k)
{
    return packed_row_least(n_k) + n_k / 2;
}

/*
 * Pack n_row rows of n_k BF16 weights (packed_takes(n_k)) from `rows`, of any alignment and
 * with any bits, into `room` bytes at `to`, aligned to 4.  Returns the bytes that they take, or
 * 0 if that is more than room; then `to` has no defined contents.
 */
size_t packed_make(const void *rows, size_t n_row, size_t n_k, void *to, size_t room);

/* A packed block, for those who read it. */
struct packed_block {
    const uint8_t *groups;
    const uint32_t *heads, *patches;
    size_t stride, n_span, n_k;
};

static inline struct packed_block packed_open(const void *block, size_t n_row, size_t n_k)
{
    const uint8_t *p = block;
    struct packed_block b = {
        .groups = p, .stride = packed_stride(n_k), .n_span = packed_spans(n_k), .n_k = n_k
    };

    b.heads = (const uint32_t *)(const void *)(p + n_row * b.stride);
    b.patches = b.heads + n_row * b.n_span;
    return b;
}

/* The weights of one span of a row, as in the file.  Returns their number.  The definition. */
size_t packed_span(const struct packed_block *b, size_t row, size_t span,
                   uint16_t w[PACKED_SPAN]);

/* Counted weights, to predict what packing saves. */
struct packed_count {
    uint64_t n_weight, n_span;
    uint64_t exponents[256];
    uint64_t n_escape;    /* weights that would need a patch */
    uint64_t patch_bytes; /* of all spans, raw ones included */
};

/* Add n BF16 weights, in complete spans except for the last one. */
void packed_add(struct packed_count *c, const void *weights, size_t n);
/* The same for F16 with codes of 3 bits, 14 bits a weight.  Nothing packs them: README.md. */
void packed_add_f16(struct packed_count *c, const void *weights, size_t n);

#endif
