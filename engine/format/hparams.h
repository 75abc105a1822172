/*
 * hparams.h - the hyper-parameters of a model, from any kind of file.
 *
 * Plain data.  The readers of GGUF keys and config.json fill and check it; model/ makes the
 * description for the forward pass from it.  A value that an architecture does not have is 0.
 */
#ifndef MEMWALL_ENGINE_FORMAT_HPARAMS_H
#define MEMWALL_ENGINE_FORMAT_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_LAYER       512
#define MAX_ROPE_FACTOR 512 /* rotated pairs of one head */
#define MAX_STOP_ID     16
#define MAX_CONV_WIDTH  16 /* of a delta net's convolution */
#define MAX_SUPPRESS    64
#define MAX_INDEX_HEAD  64
#define MAX_INDEX_DIM   1024
#define MAX_NGRAM       8  /* tokens of the longest n-gram */
#define MAX_NGRAM_ROW   64 /* rows of a token in the table of n-grams */
#define MAX_EXPERT_GROUP 64
#define MAX_HYPER_STREAM 8 /* streams that matrices mix */
#define MAX_LATENT       2048 /* values of a latent key */

struct arch;

enum rope_scaling { ROPE_NONE, ROPE_LINEAR, ROPE_YARN, ROPE_LONGROPE };

struct rope_hparams {
    double base;
    uint32_t n_rot; /* dimensions that rotate, even; <= head_dim_k */
    enum rope_scaling scaling;
    double factor;               /* of linear and yarn; 1 otherwise */
    double attn_factor;          /* factor on q and k; 1: none */
    uint32_t n_ctx_orig;         /* of yarn and longrope */
    double beta_fast, beta_slow; /* of yarn; 32 and 1 if not stated */
    bool is_untruncated;         /* yarn's ramp ends between two pairs */
    /* Divisors of the frequencies, n_rot / 2 of them; n_factor 0: none.  A pair with a divisor
     * of 1e20 or more does not rotate.  They come from rope_freqs.weight or are computed from
     * config.json (llama3, Gemma 4's proportional rope).  longrope has its short list here. */
    uint32_t n_factor;
    float factors[MAX_ROPE_FACTOR];
    float factors_long[MAX_ROPE_FACTOR];
};

/* The scores that a router makes of its products before it chooses. */
enum router_score { SCORE_SOFTMAX, SCORE_SIGMOID, SCORE_SQRT_SOFTPLUS };

/* Whether matrices have biases.  GGUF files show it by their tensors, configurations by a
 * field. */
enum bias_rule { BIAS_AS_FOUND, BIAS_NONE, BIAS_QKV, BIAS_ALL };

struct layer_hparams {
    bool is_sliding;
    bool is_recurrent; /* a part with a recurrent state, instead of attention or beside it */
    bool attends;      /* it has attention */
    bool has_experts;
    bool is_ropeless;  /* its queries and keys do not rotate */
    bool gates_values; /* of GATE_SOFTPLUS: a gate for each value, not for each head */
    uint32_t n_head, n_head_kv;
    uint32_t head_dim_k, head_dim_v;
    uint32_t n_ff; /* of the dense branch, or of the shared expert; 0: none */
    uint32_t ratio;     /* positions of an entry; 0: attention has no entries */
    bool has_index;     /* it has index keys and chooses by them */
    bool shares_choice; /* it attends to what an earlier layer chose */
    bool is_hashed;     /* a table has the experts of each token */
    float clamp, clamp_dense; /* of gate and up products of experts and others; 0: none */
};

/*
 * The recurrent layers of a model: gated delta nets, or what has a state of the same shape.
 * Mamba-2 has n_head_v heads of head_dim_v, and n_head_k groups of head_dim_k state values.
 * Kimi's delta attention has as many heads of keys as of values.  A short convolution has no
 * heads.
 *
 * They keep a matrix of head_dim_v x head_dim_k per value
 * head, and the last conv_width - 1 inputs of a convolution over positions.
 */
struct delta_hparams {
    uint32_t n_head_k, n_head_v; /* n_head_k divides n_head_v; 0: none */
    uint32_t head_dim_k, head_dim_v;
    uint32_t conv_width;
    bool is_sigmoid; /* outputs are multiplied with sigmoid(z), else silu(z) */
    uint32_t n_channel; /* that the convolution runs over */
    float gate_bound; /* of KDA: the decay is exp(bound * sigmoid(rate * x)); 0: by softplus */
    bool has_norm;    /* of Mamba-2: the output is normed, in n_head_k groups */
    bool is_tiled; /* value head i has key head i % n_head_k, else i / (n_head_v / n_head_k) */
};

/* Index keys: a token attends to the blocks of positions whose pooled key suits it most, and to
 * the positions after the last complete block. */
struct index_hparams {
    uint32_t n_head; /* of the queries; there is one key.  0: attention sees all positions */
    uint32_t head_dim;
    uint32_t block;   /* positions of a block, a power of two */
    uint32_t n_block; /* blocks that a token attends to */
    bool overlaps;    /* blocks are pooled together with the block before */
};

/* Residual streams that matrices mix: streams.c in engine/model. */
struct hyper_hparams {
    uint32_t n_round; /* of rows and columns that are divided by their sums */
    float eps;
};

/* The output of attention is multiplied by two matrices.  The first has a part for each group of
 * heads. */
struct out_hparams {
    uint32_t n_group; /* 0: one matrix */
    uint32_t rank;    /* values of a group between both */
};

/* The table of n-grams that one layer adds: each n-gram of 2 to n_token tokens that ends at a
 * token has n_hash rows.  Row i is hash % n_row[i] + first[i]. */
struct ngram_hparams {
    uint32_t n_token, n_hash; /* n_token 0: no table */
    uint32_t layer;
    uint32_t width; /* values of a row */
    uint32_t conv_width;
    uint32_t end_id; /* tokens before this one do not count */
    uint64_t factor[MAX_NGRAM];
    uint64_t n_row[MAX_NGRAM_ROW], first[MAX_NGRAM_ROW];
    uint32_t n_table; /* rows of the table */
};

/* Rows of one token. */
static inline uint32_t ngram_rows(const struct ngram_hparams *g)
{
    return g->n_token > 0 ? (g->n_token - 1) * g->n_hash : 0;
}

/* Latent attention: a key is n_latent values, which are the value, too, and n_rot values. */
struct latent_hparams {
    uint32_t n_latent; /* 0: other attention */
    uint32_t n_rot;    /* of a query head, and of the key that all heads share */
    uint32_t n_nope;   /* values of a query head before those */
    uint32_t n_value;  /* values of a head after the latent one is expanded */
    uint32_t n_query;  /* rank of the two matrices of queries; 0: one matrix */
};

/* A draft head, beside what it has as a model. */
struct head_hparams {
    uint32_t n_hidden;  /* values of a hidden row that it reads and writes; 0: not a head */
    uint32_t n_embd_in; /* width of the token embedding, which is that of the other model */
    /* Clusters of as many tokens each: a step computes the logits of n_cluster_used of them. */
    uint32_t n_cluster, n_cluster_used;
};

/* Factors of branches that snapshots of Falcon-H1 state; converters multiply weights. */
struct branch_factors {
    float attn, mamba, gate, ffn; /* of the outputs; gate: before its activation; 1: none */
    float mamba_parts[5];         /* of z, x, B, C and dt */
};

struct hparams {
    const struct arch *arch; /* NULL if memwall does not run the model */
    char name[128];          /* general.name or the folder's name, cleaned; may be empty */
    uint32_t n_layer;        /* 1 to MAX_LAYER */
    uint32_t n_embd;
    uint32_t n_vocab; /* rows of the token embedding */
    uint32_t n_ctx_train;
    uint32_t n_swa;             /* window of sliding layers; 0: none */
    uint32_t n_layer_kv_shared; /* the last n layers share KV with an earlier one */
    uint32_t n_layer_draft;     /* layers after the last one, which only draft (draft_head.h) */
    uint32_t n_embd_per_layer;  /* width of Gemma 4's per-layer inputs; 0: none */
    uint32_t n_expert, n_expert_used, n_ff_expert;
    uint32_t n_expert_in; /* values of an expert's input that is not n_embd wide; 0: it is */
    uint32_t n_expert_group, n_expert_group_used; /* experts are chosen from some groups */
    enum router_score router_score;
    bool groups_by_max;  /* a group counts by its best expert, else by the sum of two */
    float expert_factor; /* of the weights of the chosen experts */
    float expert_guard;  /* added to their sum */
    struct delta_hparams delta;
    uint32_t n_stream; /* residual streams of n_embd; 0: one, without mixers */
    uint32_t n_mix;    /* width of a mixer's middle */
    struct hyper_hparams hyper;
    struct out_hparams out;
    struct index_hparams index;
    struct ngram_hparams ngram;
    struct latent_hparams latent;
    struct head_hparams head;
    struct branch_factors factors;
    bool keeps_expert_weights; /* softmax of all experts; else the chosen ones' sum is 1 */
    float swiglu_limit;        /* clamp of the gate and up products of gpt-oss; 0: none */
    float rms_eps;
    float post_eps;                    /* of norms after a block */
    float softcap_attn, softcap_final; /* 0: none */
    float attn_scale;                  /* factor of q.k, 1/sqrt(head_dim) in most models */
    float embd_scale, residual_scale;  /* factors of embeddings and of each branch; 1: none */
    float logit_scale;                 /* factor of the logits; 1: none */
    /* The query at position p is multiplied by 1 + temp_scale * log(1 + floor(p / temp_len)).
     */
    float temp_scale; /* 0: none */
    uint32_t temp_len;
    struct rope_hparams rope;     /* of global layers */
    struct rope_hparams rope_swa; /* of sliding layers */
    enum bias_rule attn_bias;     /* of q, k, v and the output projection */
    enum bias_rule ffn_bias;      /* of gate, up and down */
    bool own_head;                /* the output head is not tied to the token embedding */
    bool no_values;               /* Gemma 4: global layers ignore attn_v even if it exists */
    bool rope_interleaved;        /* pairs are neighbours (GGUF llama), not half a head apart */
    struct layer_hparams layers[MAX_LAYER];
};

/* Values of an open pool for each of its channels: maximum, sum of weights, weighted sum. */
#define POOL_PARTS 3

/* Whether blocks of so many positions are pooled together with those of the block before. */
static inline bool hparams_overlaps(const struct hparams *h, uint32_t ratio)
{
    return h->index.overlaps && ratio == h->index.block;
}

/* Values of the open pools of n channels: of the next pool, too, if it overlaps. */
static inline uint64_t hparams_open_pool(const struct hparams *h, uint32_t n, uint32_t ratio)
{
    return (uint64_t)POOL_PARTS * n * (hparams_overlaps(h, ratio) ? 2 : 1);
}

/* Settings for generation that the model's author recommends or requires. */
struct generation_hparams {
    bool has_temp, has_top_k, has_top_p, has_min_p, has_repeat_penalty;
    float temp, top_p, min_p, repeat_penalty;
    int32_t top_k;
    uint32_t n_stop, stop[MAX_STOP_ID];          /* eos, eot, eom as stated */
    uint32_t n_suppress, suppress[MAX_SUPPRESS]; /* never sampled */
};

#endif
