/*
 * desc.h - the description of a model that the forward pass walks.
 *
 * Data only: for each layer its kind, window, head counts and sizes, rope table, which
 * norms there are, which keys and values it reads; for the model the embedding rule,
 * soft-caps and extra inputs.  It is filled from the catalogue by the table of tensors and
 * the traits of the architecture; the pass asks about neither.
 */
#ifndef MEMWALL_ENGINE_MODEL_DESC_H
#define MEMWALL_ENGINE_MODEL_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/kv/kv.h"
#include "engine/stream/stream.h"
#include "engine/telemetry/sample.h"

/* Rows of a tensor that are streamed and multiplied with; absent if tensor is NULL. */
struct mat {
    const struct tensor_info *tensor;
    uint64_t row0; /* first row: fused tensors are used in slices */
    uint32_t n_row;
    uint32_t n_k;  /* row length */
    uint32_t span; /* in the order of the pass, set by desc_spans */
};

/* A small weight that is always in memory as floats; absent if tensor is NULL. */
struct vec {
    const struct tensor_info *tensor;
    uint64_t first; /* value of the tensor: fused biases are used in slices */
    uint64_t n;
    const float *w; /* [n], set when the weights are loaded */
};

struct experts_desc {
    uint32_t n_expert, n_used, n_ff; /* n_expert 0: a dense layer */
    struct vec router;               /* [n_expert][n_embd] */
    struct vec router_scale;         /* [n_embd] */
    struct vec expert_scale;         /* [n_expert] */
    struct vec pre_norm, post_norm_dense, post_norm_experts;
    /* Three-dimensional, one slab per expert; gate_up fused (gate rows first), or up is
     * a tensor of its own. */
    const struct tensor_info *gate_up, *gate, *up, *down;
};

enum { N_KV_MAT = 2, N_LAYER_MAT = 10 };

struct layer_desc {
    enum mw_layer_kind kind;
    bool is_sliding;
    bool owns_kv;
    bool v_is_k;     /* values are the keys before norm and rope */
    bool has_v_norm; /* values are normed without weights */
    uint32_t n_head, n_head_kv, head_dim_k, head_dim_v, n_ff;
    uint32_t kv_layer; /* index of the kv store it reads (and writes if it owns) */
    uint32_t window;   /* positions seen, itself included; 0: all */

    struct vec attn_norm, q_norm, k_norm, post_attn_norm;
    struct vec ffn_norm, post_ffn_norm, post_ple_norm;
    struct vec bias_q, bias_k, bias_v, bias_o;
    struct vec bias_gate, bias_up, bias_down;
    struct vec out_scale; /* one number that multiplies the stream at the end */
    /* The matrices that are streamed, in the order in which a pass multiplies with them.  The
     * order is stated here only: who needs it walks mats[]. */
    union {
        struct {
            struct mat k, v; /* the first N_KV_MAT write keys and values */
            struct mat q, o, gate, up, down;
            struct mat ple_proj, ple_gate, ple_out; /* per-layer input */
        };
        struct mat mats[N_LAYER_MAT];
    };
    struct experts_desc experts;
};

_Static_assert(offsetof(struct layer_desc, experts) - offsetof(struct layer_desc, mats) ==
                   N_LAYER_MAT * sizeof(struct mat),
               "every matrix of a layer is one of mats[]");

enum act_kind { ACT_KIND_SILU, ACT_KIND_GELU };

struct model_desc {
    const struct catalogue *catalogue;
    const struct hparams *hp;
    uint32_t n_layer, n_embd, n_vocab, n_embd_per_layer;
    float embd_scale, attn_scale, softcap_attn, softcap_final, rms_eps;
    enum act_kind act;
    uint32_t n_kv;            /* layers that own keys and values */
    uint32_t last_kv_layer;   /* behind its keys and values only wanted tokens go on */
    struct kv_spec *kv_specs; /* [n_kv] */
    const struct tensor_info *token_embd;
    const struct tensor_info *ple_embd; /* per-layer table; NULL: none */
    struct vec ple_norm, output_norm;
    struct mat head;
    struct layer_desc layers[]; /* [n_layer] */
};

/* Returns 0 and *out, to be freed with desc_free, or -1 with *e naming the tensor whose type
 * has no kernels, or that belongs to the model and is not used. */
int desc_new(struct model_desc **out, const struct catalogue *c, struct err *e);
void desc_free(struct model_desc *d);

/* How many of the matrices of layer l a prompt pass multiplies with: after the last keys and
 * values a prompt token has left behind everything that other tokens read. */
uint32_t desc_n_prompt_mat(const struct model_desc *d, uint32_t l);

/*
 * The spans of a full pass in order, those of a prompt pass first; sets mat.span.
 * Returns how many; spans may be NULL to count.
 */
uint32_t desc_spans(struct model_desc *d, struct stream_span *spans);

/* Every small weight, in a fixed order: calls fn for each, stops at -1. */
int desc_each_vec(struct model_desc *d, int (*fn)(void *ctx, struct vec *v, struct err *e),
                  void *ctx, struct err *e);

/* Bytes of all small weights as floats, each in an arena piece. */
uint64_t desc_resident_bytes(struct model_desc *d);

#endif
