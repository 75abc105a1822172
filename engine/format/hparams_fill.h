/*
 * hparams_fill.h - from a file's words to struct hparams: what both readers share.
 */
#ifndef MEMWALL_ENGINE_FORMAT_HPARAMS_FILL_H
#define MEMWALL_ENGINE_FORMAT_HPARAMS_FILL_H

#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/gguf.h"
#include "engine/format/hparams.h"

#define MAX_N_EMBD      ((int64_t)1 << 20)
#define MAX_N_FF        ((int64_t)1 << 24)
#define MAX_N_HEAD      65535
#define MAX_HEAD_DIM    8192
#define MAX_N_VOCAB     ((int64_t)1 << 24)
#define MAX_N_CTX       UINT32_MAX
#define MAX_ATTN_FACTOR 1000.0 /* of rope on queries and keys; published ones are below 2 */

/* The words of a hyper-parameter, for messages. */
enum hparam_word {
    WORD_N_LAYER,
    WORD_N_EMBD,
    WORD_N_HEAD,
    WORD_N_HEAD_KV,
    WORD_HEAD_DIM_K,
    WORD_HEAD_DIM_V,
    WORD_N_FF,
    WORD_N_VOCAB,
    WORD_N_ROT,
    WORD_ROPE_MAGNITUDE, /* what it follows from */
    WORD_N_LAYER_KV_SHARED,
    WORD_N_EMBD_PER_LAYER,
    WORD_N_EXPERT,
    WORD_N_FF_EXPERT,
    WORD_COUNT,
};

/* How a file of this kind spells it: "llama.block_count", "num_hidden_layers". */
void hparam_spell(const struct catalogue *c, enum hparam_word w, char *buf, size_t n);

/* Read c->hparams and c->generation out of the GGUF keys of c->gguf; c->hparams.n_vocab
 * is left for the tensors to tell.  Returns 0, or -1 with *e naming the key. */
int hparams_from_gguf(struct catalogue *c, struct err *e);

/*
 * What follows from the rest, for any source: heads that divide, rope tables of sliding
 * layers, windows that are wider than the context, factors of the frequencies out of
 * rope_freqs.weight or rope_factors_{long,short}.weight if the model has such tensors.
 */
int hparams_finish(struct catalogue *c, struct err *e);

/* The last of every period layers is global, the others have a window. */
void hparams_slide(struct hparams *h, int64_t period);

/* yarn's factor on queries and keys for a context that is factor times as long. */
double yarn_magnitude(double factor);

/* Remember an id where it is one of a vocabulary; ids twice, out of range or beyond the
 * table's room are left out. */
void generation_add_stop(struct generation_hparams *s, int64_t id);
void generation_add_suppress(struct generation_hparams *s, int64_t id);

/* Copy a name for the screen: control bytes and bad UTF-8 become '?'. */
void clean_name(char *dst, size_t n, const char *src, size_t len);

#endif
