/*
 * kv.h - keys and values of the evaluated positions.
 *
 *   global layer:   | page 0 | page 1 | page 2 |   reserved up to the context   |
 *   sliding layer:  ring of slots, position p is in slot p mod n_slot
 *   shared layer:   owns nothing, reads the entries of another layer
 *   delta net:      a state of fixed size, see recurrent.h
 *   index keys:     one for each block of positions, in pages, too
 *   entries:        the same with a key that is a value, too, and that attention reads
 *
 * A global layer reserves addresses for the complete context.  Its pages of KV_PAGE positions
 * are charged when they are first written, and given back when a rewind leaves them.  A ring
 * is small and has a fixed size.  Keys and values are in separate areas; each has the heads of
 * one position next to each other, then the next position.
 *
 * Quantised types share one scale among 32 values, so a single large channel costs its
 * neighbours their precision.  Rows of these types are therefore stored rotated: a
 * Walsh-Hadamard transform along the head spreads a channel over the head.  Scores do not
 * change if the query is rotated as well (kv_run_k), and the sum of rotated values is the
 * rotated sum (kv_run_v).  Types f32 and f16 are stored unchanged.
 *
 * n_slot and KV_PAGE are multiples of ATTN_BLOCK, so a block of positions that starts at a
 * multiple of ATTN_BLOCK is contiguous in both.
 */
#ifndef MEMWALL_ENGINE_KV_KV_H
#define MEMWALL_ENGINE_KV_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/kv/recurrent.h"

#define KV_PAGE 256 /* positions */

/* A layer that owns keys and values. */
struct kv_spec {
    bool is_sliding;
    uint32_t n_head_kv, head_dim_k, head_dim_v;
    uint32_t index_dim;   /* values of an index key; 0: none */
    uint32_t index_block; /* positions that share one; divides KV_PAGE */
    uint32_t entry_block; /* positions that share an entry, of head_dim_k values; 0: none */
    bool has_latent; /* the value is the beginning of the key and is not stored */
};

struct kv;

/* Whether rows of the type are rotated before they are stored. */
bool kv_type_is_rotated(enum kv_type t);

/* Bytes of one position in one layer, keys and values. */
uint64_t kv_token_bytes(const struct kv_spec *spec, enum kv_type k, enum kv_type v);

/* Bytes of the index keys and entries of one page of positions in one layer. */
uint64_t kv_index_page_bytes(const struct kv_spec *spec, enum kv_type k);

/* Returns 0 if all head sizes are multiples of the types' blocks, or -1 with *e. */
int kv_check_types(const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
                   enum kv_type v, struct err *e);

/*
 * n_slot: slots of the sliding rings (plan_sliding_slots).  window: positions that a sliding
 * layer sees, including the current one.  No memory is taken yet: rings take theirs in
 * kv_touch(), pages when they are written.
 */
int kv_new(struct kv **out, const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
           enum kv_type v, uint32_t n_ctx, uint32_t n_slot, uint32_t window, struct err *e);
void kv_touch(struct kv *kv);
void kv_free(struct kv *kv);

/* Give the store the state of the layers without keys and values, at position 0.  It then
 * belongs to the store, which commits, clears and copies it together with positions. */
void kv_own_recurrent(struct kv *kv, struct recurrent *r);
const struct recurrent *kv_recurrent(const struct kv *kv); /* NULL: none */
/* Move this state to another store of the same model, at position 0. */
void kv_move_recurrent(struct kv *to, struct kv *from);

/* The number of positions held, from position 0. */
uint32_t kv_tokens(const struct kv *kv);

/* Bytes of pages that writing the next n positions will charge for the first time, with index
 * keys. */
uint64_t kv_grow_bytes(const struct kv *kv, uint32_t n);

/*
 * kv_begin() announces that kv_write() will store the next n positions; kv_commit() makes them
 * held.  Without the commit they count as never written.
 */
void kv_begin(struct kv *kv, uint32_t n);
void kv_commit(struct kv *kv, uint32_t n);

/* Store one position of one layer.  k: [n_head_kv][head_dim_k], v: [n_head_kv][head_dim_v];
 * kv_write() may overwrite both. */
void kv_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t pos, float *k,
              float *v);

/* The address of a block of positions that starts at pos, and the stride in bytes. */
const void *kv_keys(const struct kv *kv, uint32_t layer, uint32_t pos, uint32_t head,
                    size_t *stride);
const void *kv_values(const struct kv *kv, uint32_t layer, uint32_t pos, uint32_t head,
                      size_t *stride);

/* Index keys are stored as floats if keys are, else as F16: a choice needs little precision,
 * but more than a quantised type has. */
enum tensor_type kv_index_type(const struct kv *kv);
void kv_index_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t block,
                    const float *key);
/* The keys from a block on, one after the other. */
const void *kv_index_keys(const struct kv *kv, uint32_t layer, uint32_t block);

/* Entries are stored like keys.  kv_entry_write() may overwrite x. */
void kv_entry_write(struct kv *kv, const struct kernels *kern, uint32_t layer, uint32_t entry,
                    float *x);
/* The entries from one on, and the stride in bytes. */
const void *kv_entries(const struct kv *kv, uint32_t layer, uint32_t entry, size_t *stride);

enum kv_type kv_type_k(const struct kv *kv);
enum kv_type kv_type_v(const struct kv *kv, uint32_t layer);

/*
 * The length of the runs in which a layer's keys or values are rotated, for kernels.rotate; 0
 * if they are not.  Rotate a query in runs of kv_run_k before attention, and the result of
 * attention in runs of kv_run_v.
 */
uint32_t kv_run_k(const struct kv *kv, uint32_t layer);
uint32_t kv_run_v(const struct kv *kv, uint32_t layer);

/*
 * Keep the first n positions.  Returns false and changes nothing if a ring has lost positions
 * that evaluating position n needs, or a recurrent state is past it; the caller then restores a
 * copy or starts from 0.
 */
bool kv_rewind(struct kv *kv, uint32_t n);

/* Undo the commit of the last pass, over n positions.  Pages and rings stay, so kv_commit() of
 * some of these positions, the first ones, brings them back; a recurrent state has to be written
 * for them again. */
void kv_take_back(struct kv *kv, uint32_t n);

/*
 * A copy of the positions that the sliding layers see from the current one, and of the
 * recurrent state, which makes going back to it exact.  Bytes go through fn in an order that
 * depends only on the layers.  fn stores them (save) or fills them (restore) and returns 0, or
 * -1 with *e.
 */
typedef recurrent_bytes_fn kv_bytes_fn;

uint64_t kv_copy_bytes(const struct kv *kv); /* upper bound */
int kv_copy_save(const struct kv *kv, kv_bytes_fn *fn, void *ctx, struct err *e);
/* Restore a copy.  n is the number of positions held when it was saved.  At least as many must
 * be held now, and none of them may have been written since.  After a failure no position is
 * held. */
int kv_copy_restore(struct kv *kv, uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e);

/* Bytes of a copy at position n. */
uint64_t kv_copy_bytes_at(const struct kv *kv, uint32_t n);

/*
 * The store as bytes, page by page: those of positions page * KV_PAGE on, up to n.  Layers without
 * pages have none here; the rings of sliding layers have positions from .. n - 1, and the state is
 * the committed one.  fn is as for copies.
 */
uint32_t kv_page_count(const struct kv *kv, uint32_t n); /* 0: no layer has pages */
/* Bytes of the whole pages of n positions, in memory or on the disk. */
uint64_t kv_page_bytes_at(const struct kv *kv, uint32_t n);
int kv_each_page(const struct kv *kv, uint32_t page, uint32_t n, kv_bytes_fn *fn, void *ctx,
                 struct err *e);
int kv_each_ring(const struct kv *kv, uint32_t from, uint32_t n, kv_bytes_fn *fn, void *ctx,
                 struct err *e);
int kv_each_state(const struct kv *kv, kv_bytes_fn *fn, void *ctx, struct err *e);
/* The oldest position in the rings; the number of positions held if there are no rings. */
uint32_t kv_ring_from(const struct kv *kv);
/* The greatest kv_ring_from() with which position n can be evaluated. */
uint32_t kv_ring_needed(const struct kv *kv, uint32_t n);

/* An empty store is filled with n positions, from these functions: kv_fill_begin(), the bytes, then
 * kv_fill_end(), also if not all of them came; then go back to 0. */
void kv_fill_begin(struct kv *kv, uint32_t n);
void kv_fill_end(struct kv *kv, uint32_t n, uint32_t ring_from);

/*
 * Pages on the disk (kv_disk.c).  Of each layer with pages, those of the first positions stay in
 * memory, and so do those that a pass writes.  Complete ones in between are in a file without a
 * name, which goes away with the process:
 *
 *     layer:   | stays in memory |     on the disk      | in memory |
 *              0                keep                disk_end     tokens
 *
 * A pass reads them back in the order of its layers, ahead of attention: kv_disk_range() says
 * from where and to which slot, and kv_disk_view() in which slots attention finds them.  Only
 * layers without index keys and entries can have some.
 */
struct kv_disk_options {
    const char *folder; /* of the file */
    uint32_t n_slot;    /* pages on their way from the disk, at least 2 */
    uint32_t tail;      /* positions in whole pages that a pass may write after complete ones */
};

/* Bytes of a slot for these layers; of a page of one layer on the disk. */
uint64_t kv_disk_slot_bytes(const struct kv_spec *specs, uint32_t n_layer, enum kv_type k,
                            enum kv_type v);
uint64_t kv_disk_page_bytes(const struct kv_spec *spec, enum kv_type k, enum kv_type v);

/* NULL if a folder can have such a file, otherwise why not. */
const char *kv_disk_why_not(const char *folder, uint64_t *free_bytes);

/* Make the file.  All pages stay in memory, until kv_disk_want() says otherwise. */
int kv_disk_open(struct kv *kv, const struct kv_disk_options *o, struct err *e);
void kv_disk_set_tail(struct kv *kv, uint32_t tail);
/* No page is on the disk, or those that are there are lost. */
void kv_disk_close(struct kv *kv);
int kv_disk_fd(const struct kv *kv); /* -1: there is no file */
uint64_t kv_disk_file_bytes(const struct kv *kv); /* disk space of the file */
uint32_t kv_disk_slots(const struct kv *kv);
uint32_t kv_disk_tail(const struct kv *kv);

/* How many positions of a layer shall stay in memory, a multiple of KV_PAGE; UINT32_MAX: all. */
void kv_disk_want(struct kv *kv, uint32_t layer, uint32_t keep);
/* Between two passes: write complete pages that shall not stay, and give their memory back.  After
 * an error, those that are not written are still in memory. */
int kv_disk_out(struct kv *kv, struct err *e);
/* Then, with memory of kv_grow_bytes(): read those back that shall stay, and the page that a
 * rewind left incomplete. */
int kv_disk_in(struct kv *kv, struct err *e);

/* The positions *from .. *to - 1 of a layer are on the disk; none if *from >= *to. */
void kv_disk_positions(const struct kv *kv, uint32_t layer, uint32_t *from, uint32_t *to);
struct kv_disk_range {
    uint64_t offset;
    size_t bytes;
    unsigned char *dst;
};
struct kv_disk_range kv_disk_range(const struct kv *kv, uint32_t layer, uint32_t page,
                                   uint32_t slot);
/* Until the next call, the first page of a layer on the disk is in this slot, the second in the
 * next one, and so on round the slots. */
void kv_disk_view(struct kv *kv, uint32_t slot);

/* Bytes of pages on the disk now, and what was written there. */
uint64_t kv_disk_bytes(const struct kv *kv);
uint64_t kv_disk_written(const struct kv *kv);

/* Change the context and the slots of the rings.  Held positions stay; n_ctx is at least their
 * number.  Returns 0, or -1 with *e and the store as before. */
int kv_resize(struct kv *kv, uint32_t n_ctx, uint32_t n_slot, struct err *e);

/* Memory that changing the slots of the rings to n_slot takes for a short time. */
uint64_t kv_resize_bytes(const struct kv *kv, uint32_t n_slot);

/* Bytes used now. */
uint64_t kv_global_bytes(const struct kv *kv);  /* pages that were written */
uint64_t kv_index_bytes(const struct kv *kv);   /* the same of index keys and entries */
uint64_t kv_page_bytes(const struct kv *kv);    /* of both */
uint64_t kv_sliding_bytes(const struct kv *kv); /* rings */
uint64_t kv_recurrent_bytes(const struct kv *kv);
uint64_t kv_layer_bytes(const struct kv *kv, uint32_t layer);
uint64_t kv_reserved_bytes(const struct kv *kv); /* at the full context */

#endif
