/*
 * forward.h - the forward pass: token ids in, keys, values and logits out.
 *
 * The pass takes its weights block by block from the stream, in the order of desc_spans().  It
 * multiplies a chunk of tokens (columns) with each block while the block is in memory.
 *
 * Only values that are read are computed.  A token without requested logits is done when its
 * last keys and values are stored.  So after the last layer that stores them, only tokens with
 * requested logits continue, and a chunk without such a token ends there (a prompt pass).
 */
#ifndef MEMWALL_ENGINE_MODEL_FORWARD_H
#define MEMWALL_ENGINE_MODEL_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/cancel.h"
#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/compute/pool.h"
#include "engine/kv/kv.h"
#include "engine/model/desc.h"
#include "engine/model/products.h"
#include "engine/model/row_cache.h"
#include "engine/stream/expert_cache.h"
#include "engine/stream/stream.h"
#include "engine/telemetry/telemetry.h"

struct forward;

enum want { WANT_NONE, WANT_LAST, WANT_ALL };

/* Lookup rows that stay in memory once they were read.  All zero: rows are read each time. */
struct kept_rows {
    struct arena arena; /* forward_bytes.tables */
    struct row_cache embd, ple;
};

struct forward_parts {
    struct model_desc *desc; /* with its small weights loaded */
    const struct kernels *kernels;
    struct pool *pool;
    struct stream *stream;
    struct kv *kv;
    struct telemetry *telemetry;
    struct arena *activations; /* forward_bytes() */
    struct arena *rows;
    struct arena *logits; /* forward_logit_bytes() */
    struct arena *replay; /* forward_bytes.replay_fixed + n_replay * replay_col */
    struct kept_rows *kept; /* may be opened and closed between passes */
    struct expert_cache *experts; /* of experts_open(); NULL: a dense model */
    uint32_t chunk;               /* maximum tokens per pass */
    uint32_t n_logit_row;         /* maximum rows of logits per pass */
    uint32_t n_replay;            /* passes of at most so many tokens can be taken back */
    uint32_t n_ctx;
    bool exact;
    const struct products *products; /* choice of OpenBLAS for long prompts; NULL: never */
    const struct cancel *cancel;     /* checked at every block */
    /* Called in a pass while no block is in use; after a layer, no expert is either, and is_layer
     * is set.  May change the memory of the stream, and of experts after a layer.  NULL: nothing */
    void (*between)(void *ctx, bool is_layer);
    void *between_ctx;
};

/* Bytes that forward_new() takes from its arenas: fixed + chunk * col. */
struct forward_bytes {
    uint64_t act_fixed, act_col;
    uint64_t rows_fixed, rows_col; /* lookup rows of a chunk, as in the file */
    uint64_t replay_fixed, replay_col; /* of inputs for forward_take_back(); 0: none needed */
    uint64_t lookup;               /* the stream's buffers for lookups */
    uint64_t tables;               /* of kept_rows */
    struct expert_sizes experts;   /* of the cache of expert weights */
    uint64_t experts_token;        /* of expert weights that one token uses */
};
/* has_blas: the threads call OpenBLAS. */
void forward_bytes(const struct model_desc *d, int n_thread, bool has_blas,
                   struct forward_bytes *out);
uint64_t forward_logit_bytes(const struct model_desc *d, uint32_t n_row);

/*
 * Call fn after each layer with the share of the pass that is done, an estimate; NULL: do not.
 */
typedef void forward_progress_fn(void *ctx, double share);
void forward_set_progress(struct forward *f, forward_progress_fn *fn, void *ctx);

/* Buffers are carved from the arenas and not touched. */
int forward_new(struct forward **out, const struct forward_parts *parts, struct err *e);
void forward_free(struct forward *f);

/*
 * Evaluate n ids (1 … chunk, each < n_vocab) at the positions after those that kv holds.
 * forward_logits() then has no row, that of the last token, or all n (n <= n_logit_row).
 *
 * With in_tiles, OpenBLAS multiplies the weight types of parts.products, in the layers up to
 * the last one that stores keys and values.  The other layers of a prompt run for one token,
 * where a whole tile would be computed for one column.
 *
 * Returns 0 with the positions committed, or -1 with *e and kv as before.
 */
int forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                bool in_tiles, struct err *e);

/*
 * The same for one id and its logits, with the copies of stream_keep_low() in place of weights
 * that would be read: a guess.  Its figures go to t, not to the telemetry of the pass.
 */
int forward_run_low(struct forward *f, uint32_t id, struct telemetry *t, struct err *e);

/* The type of such a copy of weights with n_k values in a row, if copies have the type `low`: that
 * one, or Q4_0 if rows are not whole blocks of it, or the type in the file if that takes less. */
enum tensor_type forward_low_type(enum tensor_type low, enum tensor_type type, uint64_t n_k);

/*
 * Keep the first n (>= 1) tokens of the last run, which had at most n_replay and want WANT_ALL.
 * ids are those of the run.  Everything is then as if it had been of n tokens.
 */
void forward_take_back(struct forward *f, const uint32_t *ids, uint32_t n);

/*
 * Store the hidden rows of each pass, from which a draft head makes its input: rows[i] is that of
 * row i of the logits, or, with of_all, of token i, also where no logits are computed.  Each has
 * desc_n_residual() values, or n_hidden of a head.  rows[chunk] is the caller's and outlives its
 * use; NULL: store none.
 */
void forward_set_hidden(struct forward *f, float *rows, bool of_all);

/* Let the next passes of a draft head read these hidden rows, one for each token.  An assistant
 * reads one token a pass. */
void forward_read_hidden(struct forward *f, const float *rows);

/* [rows][n_vocab], soft-capped.  Valid until the next run. */
float *forward_logits(struct forward *f);

/* Open the cache of this model's experts with `bytes` for its slots; *out is NULL for a dense
 * model. */
int experts_open(struct expert_cache **out, const struct model_desc *d, struct stream *s,
                 uint64_t bytes, struct telemetry *t, struct err *e);

/* Addresses for every row; memory is taken as rows come.  -1 with *e: *k is all zero. */
int kept_rows_open(struct kept_rows *k, const struct model_desc *d, struct err *e);
void kept_rows_close(struct kept_rows *k); /* safe on a zeroed struct */
uint64_t kept_rows_bytes(const struct kept_rows *k); /* that rows take now */

#endif
