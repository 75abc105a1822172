/*
 * tensor_table.h - every tensor of the models that memwall runs, specified once.
 *
 * A row states the name in GGUF files and in snapshots, the shape as symbols, and the
 * conditions under which a model has the tensor.  The check of a file's tensors, the names of
 * snapshots, the use count and the description of a model all read these rows.
 */
#ifndef MEMWALL_ENGINE_FORMAT_TENSOR_TABLE_H
#define MEMWALL_ENGINE_FORMAT_TENSOR_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue.h"
#include "engine/format/hparams_fill.h"

/* In the order of the forward pass.  A fused tensor comes before its parts. */
enum tensor_id {
    T_TOKEN_EMBD,
    T_PER_LAYER_EMBD,
    T_PER_LAYER_PROJ,
    T_PER_LAYER_PROJ_NORM,
    T_ROPE_FREQS,
    T_ROPE_SHORT,
    T_ROPE_LONG,
    T_NGRAM_EMBD,
    T_HEAD_EMBD, /* of draft heads: what they make their input from */
    T_HEAD_EMBD_NORM,
    T_HEAD_HIDDEN_NORM,
    T_HEAD_JOIN,
    T_HEAD_JOIN_EMBD,
    T_HEAD_JOIN_HIDDEN,
    T_HEAD_IN,
    T_HEAD_CLUSTERS,
    T_HEAD_OUT,
    T_OUT_MIX_NORM,
    T_OUT_MIX_DOWN,
    T_OUT_MIX_UP,
    T_OUT_HYPER,
    T_OUT_HYPER_BASE,
    T_OUT_HYPER_SCALE,
    T_OUTPUT_NORM,
    T_OUTPUT,
    T_LAYER, /* from here on: once per layer */
    T_NGRAM_KEY = T_LAYER,
    T_NGRAM_VALUE,
    T_NGRAM_KEY_NORM,
    T_NGRAM_QUERY_NORM,
    T_NGRAM_CONV_NORM,
    T_NGRAM_CONV,
    T_ATTN_MIX_NORM,
    T_ATTN_MIX_DOWN,
    T_ATTN_MIX_UP,
    T_ATTN_MIX_INJECT,
    T_ATTN_HYPER,
    T_ATTN_HYPER_BASE,
    T_ATTN_HYPER_SCALE,
    T_ATTN_NORM,
    T_DELTA_QKVZ,
    T_DELTA_QKV,
    T_DELTA_Z,
    T_DELTA_BA,
    T_DELTA_BETA,
    T_DELTA_ALPHA,
    T_DELTA_CONV,
    T_DELTA_DECAY,
    T_DELTA_BIAS,
    T_DELTA_NORM,
    T_DELTA_OUT,
    T_MAMBA_IN,
    T_MAMBA_CONV,
    T_MAMBA_CONV_BIAS,
    T_MAMBA_BIAS,
    T_MAMBA_DECAY,
    T_MAMBA_SKIP,
    T_MAMBA_NORM,
    T_MAMBA_OUT,
    T_CONV_IN,
    T_CONV_FILTER,
    T_CONV_OUT,
    T_KDA_Q,
    T_KDA_K,
    T_KDA_V,
    T_KDA_Q_CONV,
    T_KDA_K_CONV,
    T_KDA_V_CONV,
    T_KDA_DECAY_A,
    T_KDA_DECAY_B,
    T_KDA_GATE_A,
    T_KDA_GATE_B,
    T_KDA_BETA,
    T_KDA_RATE,
    T_KDA_BIAS,
    T_KDA_NORM,
    T_KDA_OUT,
    T_Q_A,
    T_Q_A_NORM,
    T_Q_B,
    T_KV_A,
    T_KV_A_NORM,
    T_KV_B,
    T_K_B,
    T_V_B,
    T_ATTN_QKV,
    T_ATTN_Q,
    T_ATTN_K,
    T_ATTN_V,
    T_ATTN_QKV_BIAS,
    T_ATTN_Q_BIAS,
    T_ATTN_K_BIAS,
    T_ATTN_V_BIAS,
    T_ATTN_Q_NORM,
    T_ATTN_K_NORM,
    T_INDEX_QK,
    T_INDEX_Q,
    T_INDEX_K,
    T_INDEX_Q_NORM,
    T_INDEX_K_NORM,
    T_SCORE_Q,
    T_SCORE_WEIGHTS,
    T_SCORE_K,
    T_SCORE_K_NORM,
    T_SCORE_K_BIAS,
    T_SCORE_POOL,
    T_SCORE_GATE,
    T_SCORE_PLACE,
    T_SCORE_NORM,
    T_KV_ONE,
    T_KV_ONE_NORM,
    T_ENTRY_POOL,
    T_ENTRY_GATE,
    T_ENTRY_PLACE,
    T_ENTRY_NORM,
    T_ATTN_GATE,
    T_OUT_A,
    T_OUT_B,
    T_ATTN_OUT,
    T_ATTN_OUT_BIAS,
    T_ATTN_SINKS,
    T_POST_ATTN_NORM,
    T_FFN_MIX_NORM,
    T_FFN_MIX_DOWN,
    T_FFN_MIX_UP,
    T_FFN_MIX_INJECT,
    T_FFN_HYPER,
    T_FFN_HYPER_BASE,
    T_FFN_HYPER_SCALE,
    T_FFN_NORM,
    T_FFN_GATE_UP,
    T_FFN_GATE,
    T_FFN_UP,
    T_FFN_DOWN,
    T_SHARED_GATE_UP,
    T_SHARED_GATE,
    T_SHARED_UP,
    T_SHARED_DOWN,
    T_SHARED_ROUTER,
    T_FFN_GATE_BIAS,
    T_FFN_UP_BIAS,
    T_FFN_DOWN_BIAS,
    T_POST_FFN_NORM,
    T_ROUTER,
    T_ROUTER_BIAS,
    T_CHOICE_BIAS,
    T_EXPERT_IDS,
    T_ROUTER_SCALE,
    T_EXPERT_SCALE,
    T_EXPERT_IN,
    T_EXPERT_OUT,
    T_EXPERTS_GATE_UP,
    T_EXPERTS_GATE,
    T_EXPERTS_UP,
    T_EXPERTS_DOWN,
    T_EXPERTS_GATE_UP_BIAS,
    T_EXPERTS_GATE_BIAS,
    T_EXPERTS_UP_BIAS,
    T_EXPERTS_DOWN_BIAS,
    T_EXPERTS_PRE_NORM,
    T_EXPERTS_POST_NORM,
    T_DENSE_POST_NORM,
    T_PER_LAYER_GATE,
    T_PER_LAYER_OUT,
    T_PER_LAYER_NORM,
    T_OUT_SCALE,
    T_COUNT,
};

/* How a tensor is stored and used. */
enum tensor_form {
    FORM_VECTOR,  /* floats, always in memory: norms, biases, scales */
    FORM_FLAT,    /* the same, in as many dimensions as the file likes */
    FORM_ROUTER,  /* a matrix, always in memory: routers, biases of experts */
    FORM_IDS,     /* the same, of integers */
    FORM_MATRIX,  /* read by every token */
    FORM_EXPERTS, /* one matrix per expert, of which a token reads some */
    FORM_LOOKUP,  /* a token reads one row */
    FORM_HEAD,    /* the output head */
};

/* Sizes as symbols.  Each has a value, which may depend on the layer, and a key that states
 * it. */
enum tensor_dim {
    DIM_NONE, /* 1 */
    DIM_ONE,
    DIM_EMBD,
    DIM_VOCAB,
    DIM_Q,    /* queries of all heads, and their gates */
    DIM_K,    /* keys of all heads */
    DIM_V,    /* values of all heads */
    DIM_QKV,  /* the three */
    DIM_ATTN, /* outputs of all heads */
    DIM_N_HEAD,
    DIM_Q_NORM, /* what a norm of queries covers: one head or all */
    DIM_K_NORM,
    DIM_FF,
    DIM_FF_TWICE,
    DIM_EXPERT,
    DIM_FF_EXPERT,
    DIM_FF_EXPERT_TWICE,
    DIM_EXPERT_IN, /* the input of an expert */
    DIM_PER_LAYER,
    DIM_PER_LAYER_ALL,
    DIM_ROPE_PAIRS,
    DIM_DELTA_QKV,  /* what the convolution runs over: queries, keys and values */
    DIM_DELTA_V,    /* values of all heads */
    DIM_DELTA_QKVZ, /* both, with the gates of the values */
    DIM_DELTA_HEADS,
    DIM_DELTA_HEADS_TWICE,
    DIM_DELTA_HEAD_V,
    DIM_DELTA_CONV,
    DIM_STREAMS,  /* values of all residual streams */
    DIM_N_STREAM, /* their number */
    DIM_MIX,
    DIM_INDEX_Q, /* index queries of all heads */
    DIM_INDEX_K,
    DIM_INDEX_QK,
    DIM_NGRAM_ROW,
    DIM_NGRAM_TABLE, /* rows of the table */
    DIM_NGRAM_ROWS,  /* values of all rows of a token */
    DIM_NGRAM_CONV,
    DIM_MAMBA_IN, /* gates, what the convolution runs over, and a number for each head */
    DIM_EMBD_3,
    DIM_KDA_LOW,  /* between two matrices, or what one matrix gives */
    DIM_Q_LATENT, /* rank of the matrices of queries */
    DIM_KV_A,     /* a latent key: its values, and those that rotate */
    DIM_KV_LATENT,
    DIM_KV_B, /* what all heads make of it: keys and values */
    DIM_NOPE,
    DIM_V_LATENT, /* values of a head */
    DIM_GATE,     /* factors of attention's output */
    DIM_3,
    DIM_INDEX_HEADS,
    DIM_INDEX_POOL,  /* what an index key is pooled from */
    DIM_INDEX_BLOCK, /* positions of a block */
    DIM_ENTRY,       /* what an entry is pooled from */
    DIM_RATIO,       /* positions of an entry */
    DIM_OUT_GROUP,   /* outputs of a group of heads */
    DIM_OUT_LOW,     /* between the two matrices of attention's output */
    DIM_EXPERT_USED,
    DIM_EMBD_IN,  /* the token embedding of the model that a head drafts for */
    DIM_HIDDEN,   /* a hidden row of that model */
    DIM_JOINED,   /* both */
    DIM_ROW,      /* a hidden row of the model that a nextn head belongs to */
    DIM_EMBD_2,
    DIM_CLUSTER,
    DIM_COUNT,
};

/* Conditions beyond traits: facts about one model, or about one layer. */
enum tensor_fact {
    FACT_HAS_EXPERTS = 1 << 0,
    FACT_HAS_PER_LAYER = 1 << 1,    /* per-layer inputs */
    FACT_NEEDS_HEAD = 1 << 2,       /* the configuration states that the head is not tied */
    FACT_NEEDS_ROPE_FREQS = 1 << 3, /* only a tensor states the frequencies */
    FACT_OWNS_KV = 1 << 4,          /* the layer writes keys and values */
    FACT_READS_V = 1 << 5,          /* values may have a matrix */
    FACT_NEEDS_V = 1 << 6,          /* they must */
    FACT_FUSED_QKV = 1 << 7,        /* the layer has one tensor for q, k and v */
    FACT_READS_BIAS = 1 << 8,       /* q, k and v may have biases */
    FACT_NEEDS_BIAS = 1 << 9,       /* they must */
    FACT_READS_BIAS_OUT = 1 << 10,  /* the output of attention may have a bias */
    FACT_NEEDS_BIAS_OUT = 1 << 11,  /* it must */
    FACT_READS_BIAS_FFN = 1 << 12,  /* gate, up and down may have biases */
    FACT_NEEDS_BIAS_FFN = 1 << 13,  /* they must */
    FACT_PRE_NORMS = 1 << 14,       /* attention and feed-forward have norms before them */
    FACT_HAS_DENSE = 1 << 15,       /* the layer has a dense branch */
    FACT_EXPERTS_BESIDE = 1 << 16,  /* of EXPERTS_BESIDE */
    FACT_EXPERT_BIAS = 1 << 17,     /* router and experts have biases */
    FACT_NEVER = 1 << 18,           /* for .needed: the tensor may always be missing */
    FACT_ATTENDS = 1 << 19,         /* the layer has attention */
    FACT_RECURRENT = 1 << 20,       /* the layer has a gated delta net */
    FACT_DELTA_JOINED = 1 << 21,    /* of DELTA_JOINED */
    FACT_DELTA_APART = 1 << 22,     /* of DELTA_APART */
    FACT_SHARED_EXPERT = 1 << 23,   /* all tokens use one expert more */
    FACT_ONE_STREAM = 1 << 24,      /* one residual stream, so the output has a norm */
    FACT_NGRAMS = 1 << 25,          /* the layer adds rows of the table of n-grams */
    FACT_SHARED_GATE = 1 << 26,     /* which has a gate */
    FACT_NEEDS_QK_NORM = 1 << 27,   /* queries and keys must have norms */
    FACT_NEEDS_Q = 1 << 28,         /* queries must have one matrix */
    FACT_HAS_INDEX = 1 << 29,       /* the layer chooses by index keys of its own */
    FACT_MAMBA_NORM = 1 << 30,      /* Mamba's output is normed */
};

/* Facts above the range of an enum's constants. */
#define FACT_HAS_ENTRIES ((uint64_t)1 << 31) /* the layer has entries of several positions */
#define FACT_HASHED      ((uint64_t)1 << 32) /* a table has the experts of each token */
#define FACT_BY_SCORE    ((uint64_t)1 << 33) /* its experts are chosen by their scores */
#define FACT_LATENT      ((uint64_t)1 << 34) /* their input has a width of its own */

struct tensor_spec {
    const char *gguf;     /* after "blk.N." in layers */
    const char *snapshot; /* after "layers.N." in layers; NULL: not in snapshots */
    enum tensor_form form;
    enum tensor_dim dims[3]; /* the row length first */
    uint64_t traits;         /* of the architectures that have it; 0: all */
    uint64_t when;           /* facts that must all hold for a model to read it */
    uint64_t needed;         /* it must exist if these facts hold, too */
    enum tensor_id fused;    /* the tensor that may hold this one as a part; 0: none */
    const char *late;        /* the name in GGUF files of architectures with TRAIT_LATE_NAME */
    const char *plain; /* the name in snapshots of architectures without TRAIT_POST_NORMS */
    uint64_t unless;   /* architectures with one of these traits do not have it */
    enum tensor_id alias; /* has its place in snapshots that call both alike; 0: none */
};

const struct tensor_spec *tensor_spec(enum tensor_id id);

/* Returns the part of "blk.N.suffix" after the layer, or NULL.  N must be below n_layer (0:
 * any). layer may be NULL. */
const char *layer_suffix(const char *name, uint32_t n_layer, uint32_t *layer);

/* Returns the id of a tensor in a model of architecture a by its canonical name, or T_COUNT if
 * no model has such a tensor.  Sets *layer, or 0 outside layers. */
enum tensor_id tensor_id_of(const struct arch *a, const char *name, uint32_t n_layer,
                            uint32_t *layer);

/* Write the canonical name: "blk.7.attn_q.weight". */
void tensor_name(const struct arch *a, enum tensor_id id, uint32_t layer, char *buf, size_t n);

/* Returns the name that llama.cpp's converter gives a tensor of a GGUF file, in buf if the file
 * has another converter's name.  a may be NULL: names stay as they are. */
const char *tensor_usual_name(const struct arch *a, const char *name, char *buf, size_t n);

/* Returns the value of a size in a layer. */
uint64_t tensor_dim(const struct hparams *h, uint32_t layer, enum tensor_dim d);
/* Returns the MAX_DIM_WORD hyper-parameters that it follows from; WORD_NONE: no more. */
#define MAX_DIM_WORD 4
const enum hparam_word *tensor_dim_words(enum tensor_dim d);

/* Whether the model reads a tensor. */
enum tensor_role {
    ROLE_NONE,     /* not part of this model */
    ROLE_IDLE,     /* keys and values of a layer with shared KV */
    ROLE_OPTIONAL, /* read if it exists */
    ROLE_NEEDED,
};
enum tensor_role tensor_role(const struct catalogue *c, enum tensor_id id, uint32_t layer);

/* Returns the tensor of this id, or NULL if the file does not have it. */
const struct tensor_info *tensor_own(const struct catalogue *c, enum tensor_id id,
                                     uint32_t layer);

/* Returns the fused tensor that holds this one as a part, or NULL if the file does not have
 * it. */
const struct tensor_info *tensor_fused(const struct catalogue *c, enum tensor_id id,
                                       uint32_t layer);

/* The place of a tensor: a whole tensor, or consecutive rows of a fused one.  Vectors and
 * routers are counted in values instead of rows. */
struct tensor_part {
    const struct tensor_info *tensor;
    uint64_t first, n;
};

/* Find the tensor that the model reads.  Returns false if the model does not read it or the
 * file does not have it.  Shapes were checked when the catalogue was opened. */
bool tensor_find(const struct catalogue *c, enum tensor_id id, uint32_t layer,
                 struct tensor_part *out);

/* Returns how many values of a tensor the model must read: all, without the idle parts of a
 * fused tensor. */
uint64_t tensor_values_read(const struct catalogue *c, const struct tensor_info *t,
                            enum tensor_id id, uint32_t layer);

#endif
