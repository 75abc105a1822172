/*
 * desc.h - the description of a model that the forward pass walks.
 *
 * It is data only.  A layer has its kind, window, head counts and sizes, its norms, and the
 * keys and values that it reads.  The model has its embedding rule, soft-caps and extra inputs.
 * The table of tensors and the traits of the architecture fill it in; the pass looks at
 * neither.
 */
#ifndef MEMWALL_ENGINE_MODEL_DESC_H
#define MEMWALL_ENGINE_MODEL_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue.h"
#include "engine/kv/kv.h"
#include "engine/stream/stream.h"
#include "engine/telemetry/sample.h"

/* A small weight that is always in memory as floats.  Absent if tensor is NULL. */
struct vec {
    const struct tensor_info *tensor;
    bool is_scales; /* not the values of the tensor, but its scales: struct tensor_scales */
    uint64_t first; /* first value: fused biases are used in slices */
    uint64_t n;
    const float *w; /* [n], set when the weights are loaded */
};

/* A matrix: rows of a tensor that is streamed.  Absent if tensor is NULL. */
struct mat {
    const struct tensor_info *tensor;
    uint64_t row0; /* first row: fused tensors are used in slices */
    uint32_t n_row;
    uint32_t n_k;  /* row length */
    uint32_t n_head; /* 0: every row is multiplied with one column; else the rows of a head with
                        a part of it, see forward_mul_heads() */
    uint32_t span; /* index in the order of the pass, set by desc_spans(); of LAYOUT_SPLIT, the
                      one of the values, and the span before it has the scales */
    struct vec scales; /* of the whole tensor */
};

static inline bool mat_is_split(const struct mat *m)
{
    return m->tensor != NULL && m->tensor->layout == LAYOUT_SPLIT;
}

/* Bytes of the values of a row of LAYOUT_SPLIT; all its other bytes are scales. */
static inline uint64_t split_value_bytes(uint64_t n_k)
{
    return n_k / 2;
}

/* The largest product of gate, and of up on both sides; up 0: no clamp. */
struct clamp {
    float gate, up;
};

struct experts_desc {
    uint32_t n_expert, n_used, n_ff; /* n_expert 0: a dense layer */
    uint32_t n_in;                   /* values of an expert's input and output */
    bool is_beside; /* beside a dense branch, and router and experts have norms of their own */
    bool keeps_weights;  /* softmax over all experts; else the chosen ones' sum is 1 */
    bool rows_alternate; /* gate_up has rows of gate and up in turn; else gate's come first */
    float limit;         /* clamp of gate and up, see forward_clamped_mul(); 0: none */
    struct clamp clamp;  /* the same without a shift of up, see clamp_products() */
    bool is_routed;      /* scores, bias and groups as in choose_routed() */
    bool is_shared; /* beside a dense branch that is one more expert; its gate may be absent */
    enum router_score score;
    uint32_t n_group, n_group_used;
    bool groups_by_max;
    float factor, guard;
    struct vec choice_bias; /* [n_expert] added to scores for the choice only */
    struct vec ids;      /* [n_vocab][n_used] the experts of each token, instead of a choice */
    struct vec router;   /* [n_expert][n_embd] */
    struct vec router_bias;        /* [n_expert] */
    struct vec router_scale;       /* [n_embd] */
    struct vec expert_scale;       /* [n_expert] */
    struct vec gate_up_bias;       /* [n_expert][2 * n_ff], rows as gate_up; or: */
    struct vec gate_bias, up_bias; /* [n_expert][n_ff] */
    struct vec down_bias;          /* [n_expert][n_embd] */
    struct vec pre_norm, post_norm_dense, post_norm_experts;
    /* Three-dimensional, one slab per expert; gate_up fused (gate rows first), or up is
     * a tensor of its own. */
    const struct tensor_info *gate_up, *gate, *up, *down;
    struct vec gate_up_scales, gate_scales, up_scales, down_scales; /* of all experts */
    /* [n_embd] of a dense branch beside the experts that is an expert, too: it is multiplied
     * with the sigmoid of this vector's product with its input. */
    struct vec shared_router;
};

/* Weights of experts that are not in rows are unpacked in pieces of this size. */
#define UNPACK_BYTES (32 * 1024)

enum { N_BEGIN_MAT = 4, N_END_MAT = 5, N_STATE_MAT = 26, N_LAYER_MAT = 47 };

/*
 * The mixer of several residual streams (streams.c): it makes the input of a branch from all of
 * them, and a factor for each stream that the branch's output is added to.
 */
struct mixer {
    const struct vec *norm;   /* [n_stream][n_embd] */
    const struct mat *down;   /* [n_stream * n_embd] -> [n_mix] */
    const struct mat *up;     /* [n_mix] -> [n_stream * n_embd] */
    const struct vec *inject; /* [n_stream][n_stream * n_embd]; NULL: no branch follows */
    const struct vec *base, *scale; /* of a matrix that mixes streams, which is down */
};

struct layer_desc {
    enum mw_layer_kind kind;
    bool is_sliding;
    bool owns_kv;
    bool v_is_k;       /* values are the keys before norm and rope */
    bool has_v_norm;   /* values are normed without weights */
    bool is_ropeless;  /* queries and keys do not rotate */
    bool attends;      /* it has attention */
    bool is_recurrent; /* a part of model_desc.recurrence instead of attention, or beside it */
    bool is_indexed;   /* attention reads the blocks that index keys choose (index.c) */
    bool has_index;    /* by index keys of its own, else what an earlier layer chose */
    bool is_latent;    /* keys and values are one latent vector (latent.c) */
    bool has_entries;  /* a window of keys that are values, too, and entries (entries.c) */
    bool has_base_rope; /* it rotates as sliding layers do */
    bool has_late_norms;  /* queries and keys are normed after rope */
    bool has_unit_norms;  /* they are normed without weights, if there are none */
    bool is_parallel;     /* the feed-forward reads what attention reads */
    bool has_joined_kv_b; /* k_b and v_b are both the same tensor, with keys and values in turn
                           */
    enum gate_rule out_gate; /* of attention's output, from a matrix of its own */
    bool is_gated; /* each head of q is followed by gates, and its output times their sigmoid */
    uint32_t n_head, n_head_kv, head_dim_k, head_dim_v;
    uint32_t n_ff;     /* 0: experts only */
    uint32_t kv_layer; /* index of the KV store that it reads, and writes if it owns it */
    uint32_t recurrent_layer; /* index of its recurrent state */
    uint32_t window;          /* positions seen, itself included; 0: all */
    uint32_t ratio;           /* positions of an entry; 0: none */
    uint64_t entry_state, index_state; /* first values in the other parts of the state */
    struct clamp clamp;       /* of the dense branch */

    struct vec attn_mix_norm, attn_mix_inject; /* of mixers, see struct mixer */
    struct vec ffn_mix_norm, ffn_mix_inject;
    struct vec attn_hyper_base, attn_hyper_scale, ffn_hyper_base, ffn_hyper_scale;
    struct vec score_k_norm, score_k_bias; /* [head_dim of the index] of keys before pooling */
    struct vec score_place, score_norm;    /* [block][...] and [head_dim]: of their pools */
    struct vec entry_place, entry_norm;    /* the same of entries */
    struct vec kv_norm;                    /* [head_dim_k] of keys that are values, too */
    struct vec ngram_key_norm, ngram_query_norm, ngram_conv_norm; /* [n_stream][n_embd] */
    struct vec ngram_conv;                 /* [n_stream * n_embd][conv_width] */
    struct vec index_q_norm, index_k_norm; /* [head_dim of the index] */
    struct vec attn_norm, q_norm, k_norm, post_attn_norm;
    struct vec ffn_norm, post_ffn_norm, post_ple_norm;
    struct vec bias_q, bias_k, bias_v, bias_o;
    struct vec bias_gate, bias_up, bias_down;
    struct vec delta_conv;              /* [2 * keys + values][conv_width] */
    struct vec delta_decay, delta_bias; /* [n_head_v] */
    struct vec delta_norm;              /* [head_dim_v]; Mamba-2: [n_head_v * head_dim_v] */
    struct vec conv_bias;               /* [n_channel] of Mamba-2 */
    struct vec mamba_skip;              /* [n_head_v] */
    struct vec kda_q_conv, kda_k_conv, kda_v_conv; /* [n_head_v * head_dim_v][conv_width] */
    struct vec q_a_norm, kv_a_norm;                /* of latent attention */
    struct vec sinks;                   /* [n_head] scores that take weight and have no value */
    struct vec out_scale;               /* one factor for the residual stream, at the end */
    /* The matrices that are streamed, in the order in which a pass multiplies with them.  Only
     * this declaration states the order; all code that needs it walks mats[]. */
    union {
        struct {
            /* The first N_STATE_MAT write keys, values and recurrent state.  A delta net has
             * qkvz, or qkv and z; and ba, or beta and alpha.  Mamba-2 and short convolutions
             * have their joined projection as qkvz. */
            struct mat ngram_key, ngram_value, attn_mix_down, attn_mix_up;
            struct mat k, v, index_k, kv_a, entry_pool, entry_gate, score_pool, score_gate;
            struct mat kda_q, kda_k, kda_v;
            struct mat delta_qkvz, delta_qkv, delta_z, delta_ba, delta_beta, delta_alpha;
            struct mat kda_decay_a, kda_decay_b, kda_gate_a, kda_gate_b, delta_out;
            struct mat index_q, score_weights, q_a, q_b, score_q, q, k_b, gate_out, v_b;
            struct mat out_a, o;
            struct mat ffn_mix_down, ffn_mix_up;
            struct mat expert_in, gate, up, down, expert_out;
            struct mat ple_proj, ple_gate, ple_out; /* per-layer input */
        };
        struct mat mats[N_LAYER_MAT];
    };
    struct experts_desc experts;
};

_Static_assert(offsetof(struct layer_desc, experts) - offsetof(struct layer_desc, mats) ==
                   N_LAYER_MAT * sizeof(struct mat),
               "every matrix of a layer is one of mats[]");

enum act_kind { ACT_KIND_SILU, ACT_KIND_GELU, ACT_KIND_RELU2 };

/* The kinds of recurrent layers; a model has one. */
enum recurrence { RECUR_NONE, RECUR_DELTA, RECUR_MAMBA, RECUR_CONV, RECUR_KDA };

struct model_desc {
    const struct catalogue *catalogue;
    const struct hparams *hp;
    uint32_t n_layer, n_embd, n_vocab, n_embd_per_layer;
    uint32_t n_stream; /* residual streams; 1: without mixers */
    uint32_t n_inject; /* factors of a branch's output and of streams, for each token */
    bool has_hyper;    /* matrices mix the streams */
    float embd_scale, residual_scale, logit_scale;
    float attn_scale, softcap_attn, softcap_final, rms_eps, post_eps;
    enum act_kind act;
    enum recurrence recurrence;
    bool has_mean_norms;      /* norms subtract the mean */
    bool has_unit_embd;       /* embeddings are normed */
    uint32_t n_kv;            /* layers that own keys and values */
    uint32_t last_kv_layer;   /* with KV or recurrent state; after it, only tokens with
                                 requested logits continue */
    struct kv_spec *kv_specs; /* [n_kv] */
    struct recurrent_spec recurrent;
    struct {
        bool has_index;
        uint64_t index;      /* [n_kv][block - 1][head_dim] index keys of the open block */
        uint64_t ngram_ids;  /* [n_token - 1] tokens before the next one, newest first */
        uint64_t ngram_past; /* [(conv_width - 1) * n_token][n_stream * n_embd] */
    } others;                /* first values in the other parts of the recurrent state */
    const struct tensor_info *token_embd;
    const struct tensor_info *ple_embd; /* per-layer table; NULL: none */
    const struct tensor_info *ngram_embd; /* table of n-grams; NULL: none */
    struct vec ple_norm, output_norm, out_mix_norm, out_hyper_base, out_hyper_scale;
    /* A draft head (head_input.c) has values of the rows that it reads and writes, and perhaps the
     * keys and values of the model that it drafts for. */
    uint32_t n_hidden; /* 0: a model */
    bool reads_trunk_kv;
    struct vec head_embd_norm, head_hidden_norm;
    union { /* before the first layer: one matrix for embedding and hidden row, or two */
        struct {
            struct mat head_in, head_join, head_join_embd, head_join_hidden;
        };
        struct mat begin_mats[N_BEGIN_MAT];
    };
    union { /* after the last layer */
        struct {
            struct mat out_mix_down, out_mix_up, head_clusters, head, head_out;
        };
        struct mat end_mats[N_END_MAT];
    };
    struct layer_desc layers[]; /* [n_layer] */
};

/* Describe the model or draft head of a catalogue.  Fails if a tensor has a type without kernels,
 * or belongs to the model and is not used; *e names it. */
int desc_new(struct model_desc **out, const struct catalogue *c, struct err *e);
void desc_free(struct model_desc *d);

/* The first tensor that an expert's input is multiplied with. */
static inline const struct tensor_info *experts_inner(const struct experts_desc *x)
{
    return x->gate_up != NULL ? x->gate_up : x->gate != NULL ? x->gate : x->up;
}

/* Number of matrices of layer l that a prompt pass uses.  After the last keys and values, a
 * prompt token computes nothing that other tokens read. */
uint32_t desc_n_prompt_mat(const struct model_desc *d, uint32_t l);
/* Whether the queries of layer l are multiplied in one round with its keys and values.  In the
 * last layer that writes those, fewer columns may go on. */
static inline bool desc_joins_queries(const struct model_desc *d, uint32_t l)
{
    return d->layers[l].owns_kv && !d->layers[l].is_recurrent && !d->layers[l].is_latent &&
           !d->layers[l].has_entries && l != d->last_kv_layer;
}

/*
 * List the spans of a full pass in order; those of a prompt pass come first.  Sets mat.span.
 * Returns their number; spans may be NULL to count only.
 */
uint32_t desc_spans(struct model_desc *d, struct stream_span *spans);
/* Values of all residual streams; a draft head takes as many of each token. */
static inline size_t desc_n_residual(const struct model_desc *d)
{
    return (size_t)d->n_stream * d->n_embd;
}

/* The mixers of a layer's two branches, and of the output. */
static inline struct mixer desc_attn_mixer(const struct layer_desc *layer)
{
    return (struct mixer){ &layer->attn_mix_norm,   &layer->attn_mix_down,
                           &layer->attn_mix_up,     &layer->attn_mix_inject,
                           &layer->attn_hyper_base, &layer->attn_hyper_scale };
}

static inline struct mixer desc_ffn_mixer(const struct layer_desc *layer)
{
    return (struct mixer){ &layer->ffn_mix_norm,   &layer->ffn_mix_down,
                           &layer->ffn_mix_up,     &layer->ffn_mix_inject,
                           &layer->ffn_hyper_base, &layer->ffn_hyper_scale };
}

static inline struct mixer desc_out_mixer(const struct model_desc *d)
{
    return (struct mixer){ &d->out_mix_norm,   &d->out_mix_down, &d->out_mix_up, NULL,
                           &d->out_hyper_base, &d->out_hyper_scale };
}

/* The weight types of these spans. */
void desc_span_types(struct model_desc *d, enum tensor_type *types);

/* Call fn for every small weight, in a fixed order, until it returns -1. */
int desc_each_vec(struct model_desc *d, int (*fn)(void *ctx, struct vec *v, struct err *e),
                  void *ctx, struct err *e);

/* Arena bytes of all small weights as floats. */
uint64_t desc_resident_bytes(struct model_desc *d);

#endif
