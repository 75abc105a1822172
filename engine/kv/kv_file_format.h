/*
 * kv_file_format.h - the bytes of a KV file beside its parts: headers and index.
 *
 * Numbers are as the machine has them.  A file of a machine with another byte order has another
 * magic number.
 */
#ifndef MEMWALL_ENGINE_KV_KV_FILE_FORMAT_H
#define MEMWALL_ENGINE_KV_KV_FILE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/checksum.h"
#include "engine/kv/kv_file.h"

#define KV_MAGIC      UINT64_C(0x0a31564b77656d6d) /* "mmewKV1\n" on most machines */
#define KV_ALIGN      4096 /* bytes of a header, and of reads and writes past the page cache */
#define KV_HEADERS    2
#define KV_SLOTS_AT   ((uint64_t)KV_HEADERS * KV_ALIGN)
#define KV_INDEX_MOST 16         /* pieces of the index */
#define KV_SLOT_MOST  (1u << 18) /* 256 GiB */

/* The place of a piece. */
struct kv_piece {
    uint64_t sum;
    uint32_t slot, zero;
};

/* A header, with zeros up to KV_ALIGN.  The index has [n_part] bytes of the parts as uint64_t,
 * then [n_piece] struct kv_piece. */
struct kv_header {
    uint64_t magic;
    uint64_t sum;    /* of all that follows */
    uint64_t number; /* not 0; the header with the higher one is in force */
    struct kv_file_head head;
    uint32_t n_part, n_piece, n_index, zero;
    struct kv_piece index[KV_INDEX_MOST];
};

_Static_assert(sizeof(struct kv_header) <= KV_ALIGN, "a header is one block of the disk");

static inline uint64_t kv_header_sum(const struct kv_header *h)
{
    return checksum(&h->number, sizeof *h - offsetof(struct kv_header, number));
}

static inline uint64_t kv_slot_at(uint32_t slot)
{
    return KV_SLOTS_AT + (uint64_t)slot * KV_PIECE;
}

#endif
