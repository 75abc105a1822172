/*
 * kv_internal.h - the store, for the files that implement it.
 */
#ifndef MEMWALL_ENGINE_KV_KV_INTERNAL_H
#define MEMWALL_ENGINE_KV_KV_INTERNAL_H

#include "engine/kv/kv.h"

/* Keys that belong to several positions. */
enum { POOL_INDEX, POOL_ENTRIES, N_POOL };

struct kv_pool {
    size_t row;          /* bytes of one; 0: none */
    uint32_t block;      /* positions that share it */
    unsigned char *rows; /* [positions / block] */
    size_t bytes;        /* mapped */
};

struct kv_layer {
    struct kv_spec spec;
    enum kv_type type_v;
    uint32_t k_run, v_run;     /* values rotated together, 0: none */
    size_t k_row, v_row;       /* bytes of one head */
    size_t k_stride, v_stride; /* bytes of one position, all heads */
    uint32_t n_slot;           /* positions that the mappings fit */
    unsigned char *k, *v;      /* [n_slot][n_head_kv] rows */
    size_t k_bytes, v_bytes;   /* mapped */
    struct kv_pool pools[N_POOL];
    /* Positions keep .. kv.disk_end - 1 are on the disk; want: what keep shall become. */
    uint32_t keep, want;
    size_t k_page, v_page; /* bytes of a page there, keys and values, both whole blocks */
    uint64_t page_at;      /* in the part of the file that has a page of all layers */
};

/* kv_disk.c */
struct kv_disk;

struct kv {
    enum kv_type type_k, type_v;
    uint32_t n_layer, n_ctx, n_slot, window;
    uint32_t n_token;
    /* Since the rings were last complete: one more than the highest position written, and the
     * lowest position they were filled from.  Position q < n_token is still in its slot if and
     * only if q >= ring_from and q + n_slot >= ring_end. */
    uint32_t ring_end, ring_from;
    struct recurrent *recurrent; /* NULL: none */
    uint32_t page_end;           /* pages of positions below this are charged */
    struct kv_disk *disk;        /* NULL: all positions are in memory */
    uint32_t disk_end;           /* complete pages below this are on the disk, see keep */
    uint32_t lost_page;          /* a page that comes back from the disk; NO_PAGE: none */
    bool is_filling;             /* between kv_fill_begin() and kv_fill_end() */
    struct kv_layer layers[];
};

#define NO_PAGE UINT32_MAX

static inline bool kv_has_pages(const struct kv_layer *l)
{
    return !l->spec.is_sliding;
}

/* Whether a position of the layer is on the disk. */
static inline bool kv_is_on_disk(const struct kv *kv, const struct kv_layer *l, uint32_t pos)
{
    return pos >= l->keep && (pos < kv->disk_end || pos / KV_PAGE == kv->lost_page) &&
           kv_has_pages(l);
}

/* --- kv_disk.c --- */

/* Where attention finds the page of a position that is on the disk. */
unsigned char *kv_disk_page(const struct kv *kv, const struct kv_layer *l, uint32_t pos);

/* Read a page of a layer to memory that nobody else uses now, or write it from there.  Returns
 * that memory: the keys, then at l->k_page the values; NULL with *e. */
unsigned char *kv_disk_fetch(const struct kv *kv, const struct kv_layer *l, uint32_t page,
                             struct err *e);
unsigned char *kv_disk_spare(const struct kv *kv);
int kv_disk_store(const struct kv *kv, const struct kv_layer *l, uint32_t page, struct err *e);

/* The first n positions stay, the others are dropped. */
void kv_disk_cut(struct kv *kv, uint32_t n);

/* Memory for pages on their way from the disk. */
uint64_t kv_disk_memory(const struct kv *kv);

#endif
