/*
 * forward.h - one pass over the model: token ids in, keys, values and logits out.
 *
 * The pass takes its weights block by block from the stream, in the order that
 * desc_spans() gave it, and computes a chunk of tokens (columns) with each block while it
 * is in memory.
 *
 * Only what is read is computed: a token whose logits nobody wants has done its part when
 * its last keys and values are stored, so behind the last layer that stores some, only
 * wanted tokens go on, and a chunk without a wanted token ends there (a prompt pass).
 */
#ifndef MEMWALL_ENGINE_MODEL_FORWARD_H
#define MEMWALL_ENGINE_MODEL_FORWARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/compute/pool.h"
#include "engine/kv/kv.h"
#include "engine/model/desc.h"
#include "engine/model/products.h"
#include "engine/stream/stream.h"
#include "engine/telemetry/telemetry.h"

struct forward;

enum want { WANT_NONE, WANT_LAST, WANT_ALL };

struct forward_parts {
    struct model_desc *desc; /* weights of its vecs loaded */
    const struct kernels *kernels;
    struct pool *pool;
    struct stream *stream;
    struct kv *kv;
    struct telemetry *telemetry;
    struct arena *activations; /* forward_bytes() */
    struct arena *rows;
    struct arena *logits; /* forward_logit_bytes() */
    struct arena *experts;
    uint32_t chunk;       /* most tokens of a pass */
    uint32_t n_logit_row; /* most rows of logits wanted at once */
    uint32_t n_ctx;
    bool exact;
    const struct products *products; /* of long prompts by OpenBLAS; NULL: none */
    const atomic_bool *cancel;       /* read at every block */
};

/* What forward_new takes from its arenas: fixed + chunk * col.  Pure. */
struct forward_bytes {
    uint64_t act_fixed, act_col;
    uint64_t rows_fixed, rows_col; /* lookup rows of a chunk, as in the file */
    uint64_t lookup;               /* the stream's buffers for lookups */
    uint64_t experts;              /* smallest room for expert weights */
};
/* n_blas_thread: threads that call OpenBLAS; 0: none does. */
void forward_bytes(const struct model_desc *d, int n_blas_thread, struct forward_bytes *out);
uint64_t forward_logit_bytes(const struct model_desc *d, uint32_t n_row);

/*
 * Called after each layer with the share of the pass that is done, for who waits for a long
 * one; fn NULL: nobody does.  An estimate: layers that run for one token of n count less.
 */
typedef void forward_progress_fn(void *ctx, double share);
void forward_set_progress(struct forward *f, forward_progress_fn *fn, void *ctx);

int forward_new(struct forward **out, const struct forward_parts *parts, struct err *e);
void forward_free(struct forward *f);

/*
 * Evaluate n ids (1 … chunk, each < n_vocab) at the positions behind what kv holds.
 * Logits go to forward_logits(): none, the last token's, or all n rows (n <= n_logit_row).
 * in_tiles: in the layers that other tokens read from, OpenBLAS multiplies the weight types
 * of parts.products.  The rest of a pass, which a prompt runs for one token only, never does:
 * a tile would be computed for one column.
 * Returns 0 with the positions committed, or -1 with *e and kv as before.
 */
int forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                bool in_tiles, struct err *e);

/* [rows wanted][n_vocab], soft-capped; until the next run. */
float *forward_logits(struct forward *f);

/* Operations (multiply-adds times two) for one prompt token without logits: it goes only
 * through the layers up to the last one that writes KV. */
double forward_prompt_flops(const struct model_desc *d);

/* Multiply matrices as a prompt does for about so many seconds: operations a second.  Takes
 * some MiB, and gives them back. */
int forward_measure(const struct model_desc *d, const struct kernels *kernels, bool exact,
                    int n_thread, double seconds, double *flops_s, struct err *e);

#endif
