/* hparams_fill.h - shared by the readers that fill struct hparams. */
#ifndef MEMWALL_ENGINE_FORMAT_HPARAMS_FILL_H
#define MEMWALL_ENGINE_FORMAT_HPARAMS_FILL_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue.h"
#include "engine/format/gguf.h"
#include "engine/format/hparams.h"

#define MAX_N_EMBD   ((int64_t)1 << 20)
#define MAX_N_FF     ((int64_t)1 << 24)
#define MAX_N_HEAD   65535
#define MAX_HEAD_DIM 8192
#define MAX_STREAM      64
#define MAX_INDEX_BLOCK 256 /* a page of keys and values has complete blocks */
#define MAX_N_VOCAB  ((int64_t)1 << 24)
#define MAX_N_CTX    UINT32_MAX
#define MAX_CHOSEN   (1 << 24) /* positions that index keys choose */
#define MAX_SCALE    1e6 /* stated factors of embeddings, branches and logits */
#define MAX_ATTN_FACTOR                                                                        \
    1000.0 /* rope's factor on queries and keys; published ones are below 2 */

/* Names of hyper-parameters in files, for messages. */
enum hparam_word {
    WORD_NONE,
    WORD_N_LAYER,
    WORD_N_EMBD,
    WORD_N_HEAD,
    WORD_N_HEAD_KV,
    WORD_HEAD_DIM_K,
    WORD_HEAD_DIM_V,
    WORD_N_FF,
    WORD_N_VOCAB,
    WORD_N_SWA,
    WORD_N_ROT,
    WORD_ROPE_MAGNITUDE, /* the field that it follows from */
    WORD_N_LAYER_KV_SHARED,
    WORD_N_EMBD_PER_LAYER,
    WORD_N_EXPERT,
    WORD_N_FF_EXPERT,
    WORD_N_EXPERT_IN,
    WORD_DELTA_N_HEAD_K,
    WORD_DELTA_N_HEAD_V,
    WORD_DELTA_HEAD_DIM_K,
    WORD_DELTA_HEAD_DIM_V,
    WORD_DELTA_CONV,
    WORD_N_STREAM,
    WORD_N_MIX,
    WORD_INDEX_N_HEAD,
    WORD_INDEX_HEAD_DIM,
    WORD_NGRAM_TOKENS,
    WORD_NGRAM_HASHES,
    WORD_NGRAM_WIDTH,
    WORD_NGRAM_CONV,
    WORD_NGRAM_ROWS,
    WORD_Q_LATENT,
    WORD_KV_LATENT,
    WORD_HEAD_LATENT_K,
    WORD_HEAD_LATENT_V,
    WORD_RATIO,
    WORD_OUT_GROUP,
    WORD_OUT_RANK,
    WORD_N_EXPERT_USED,
    WORD_N_HIDDEN,
    WORD_N_CLUSTER,
    WORD_COUNT,
};

/* Write the name that this kind of file uses: "llama.block_count", "num_hidden_layers". */
void hparam_spell(const struct catalogue *c, enum hparam_word w, char *buf, size_t n);

/* Returns whether the file leaves it out and a default was taken. */
bool hparam_is_default(const struct catalogue *c, enum hparam_word w);

/* Read c->hparams and c->generation from the GGUF keys of c->gguf, all but n_vocab, which comes
 * from the tensors.  Returns 0, or -1 with *e naming the key. */
int hparams_from_gguf(struct catalogue *c, struct err *e);

/* State the parts of layers where the architecture leaves no choice.  The readers of
 * hyper-parameters end with this, because the roles of tensors depend on it. */
void hparams_parts(struct hparams *h);

/*
 * Complete and check the hyper-parameters of any source: heads that divide, rope tables of
 * sliding layers, windows wider than the context, and factors from rope_freqs.weight or
 * rope_factors_{long,short}.weight if they exist.
 */
int hparams_finish(struct catalogue *c, struct err *e);

/* Make the last of every period layers global and give the others a window. */
void hparams_slide(struct hparams *h, int64_t period);

/* Mark the layers that have experts: every interval-th one after the first n_dense layers. */
void hparams_place_experts(struct hparams *h, int64_t n_dense, int64_t interval);

/* Set the heads of keys and values as they are stored, from the sizes of latent attention. */
void hparams_latent(struct hparams *h);

/* Returns the factor of q.k of latent attention, with the mscale_all_dim of its yarn. */
double hparams_latent_scale(const struct hparams *h, double mscale);

/* Compute n_channel from the other sizes, and whether the layers are Mamba-2. */
void hparams_channels(struct hparams *h);

/* Stop every period-th layer from rotating; 0: none. */
void hparams_skip_rope(struct hparams *h, int64_t period);

/* Give every layer but each period-th a gated delta net. */
void hparams_recur(struct hparams *h, int64_t period);

/* Set the width of a mixer's middle from the streams that matrices mix. */
void hparams_hyper(struct hparams *h);

/* Set what follows from the ratios of layers, and from the number of entries that a token chooses:
 * which layers choose.  Returns 0, or -1 with *e, without the place. */
int hparams_entries(struct hparams *h, int64_t n_chosen, struct err *e);

/* Set the rope table of layers with entries, whose yarn has no magnitude. */
void hparams_entry_rope(struct hparams *h);

/* Set which layers with attention choose, and which attend to what an earlier one chose.  Returns
 * 0, or -1 with *e, without the place. */
int hparams_choices(struct hparams *h, const int64_t *has_index, struct err *e);

/* Let a table choose the experts of the first n layers. */
void hparams_hash(struct hparams *h, int64_t n);

/* Set the number of blocks that a token attends to, from the budget in tokens.  Returns 0, or
 * -1 with *e, without the place. */
int hparams_index_budget(struct hparams *h, int64_t n_token, struct err *e);

/* Set what follows from the rule for experts: no dense branch, the clamp of gpt-oss. */
void hparams_expert_rule(struct hparams *h, enum expert_rule rule);

/* Set a rope table to another one's base and size, without its scaling. */
void hparams_unscaled(struct rope_hparams *out, const struct rope_hparams *r);

/* Returns yarn's factor on queries and keys for a context that is factor times as long.
 * Published models have a mscale of 1 if they do not state it. */
double yarn_magnitude(double factor, double mscale);

/* Add an id to a list.  Ids that appear twice, are out of range or do not fit the list are
 * ignored. */
void generation_add_stop(struct generation_hparams *s, int64_t id);
void generation_add_suppress(struct generation_hparams *s, int64_t id);

#endif
