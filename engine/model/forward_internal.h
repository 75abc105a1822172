/* forward_internal.h - the state of a forward pass, for the files that implement it. */
#ifndef MEMWALL_ENGINE_MODEL_FORWARD_INTERNAL_H
#define MEMWALL_ENGINE_MODEL_FORWARD_INTERNAL_H

#include <math.h>

#include "engine/compute/blas.h"
#include "engine/model/kv_walk.h"
#include "engine/model/forward.h"
#include "engine/model/rope.h"

/* A column is a token of the chunk that is still computed.  Arrays are [chunk][width]. */
struct forward {
    struct forward_parts p;
    forward_progress_fn *progress;
    void *progress_ctx;
    struct rope rope[2]; /* global, sliding */

    float *x;          /* [chunk][n_stream][n_embd] residual streams */
    float *h;          /* [chunk][n_embd] normed, input of projections */
    float *y;          /* [chunk][n_embd] output of a branch */
    float *embd;       /* [chunk][n_embd] scaled embedding, for per-layer inputs */
    float *q;          /* [chunk][n_head * head_dim_k] */
    float *k, *v;      /* [chunk][n_head_kv * head_dim] */
    float *att;        /* [chunk][n_head * head_dim_v] */
    float *gate, *up;  /* [chunk][n_ff] */
    size_t gate_floats; /* of gate; attention keeps records of spans there */
    float *wide;       /* [chunk][...] joined projections: q with gates, those of delta nets */
    float *mix, *conv; /* [chunk][2 * keys + values] convolution of delta nets: in, out */
    /* Mixers and n-grams use wide, mix and conv, too, for [chunk][n_stream][n_embd]. */
    float *inject; /* [chunk][n_inject] factors of a branch's output, and of streams */
    float *middle;            /* [chunk][n_mix] of a mixer */
    float *index_k, *index_q; /* [chunk][head_dim], [chunk][n_head][head_dim] of index keys */
    float *index_w;           /* [chunk][n_head] weights of the heads */
    float *pool_x, *pool_g;   /* [chunk][widest] what pools are made of, and its weights */
    float *pooled;            /* [chunk][widest] the pool that ends with a column */
    int32_t *ranked; /* [threads][2][forward_index_room()] candidates of a choice: ranks, blocks */
    uint32_t *chosen;         /* [chunk][n_block] blocks in rising order */
    float *z;          /* [chunk][values] */
    float *beta, *decay;  /* [chunk][n_head_v]; the decay of KDA: [chunk][values] */
    float *gates;         /* [chunk][...] of attention's output, from a matrix of their own */
    float *ple, *ple_row; /* [chunk][n_embd_per_layer] */
    float *ple_blocks;    /* [chunk][n_embd_per_layer + 512] decoded blocks of the table */
    float *cosine[2], *sine[2]; /* [chunk][n_rot / 2], global and sliding */
    unsigned char *packed;      /* [chunk][widest packed column] */
    unsigned char *groups;      /* scales of the rows of a matrix of LAYOUT_SPLIT */
    float *tile_cols;           /* [chunk + TILES_SPARE][widest column], tiles for OpenBLAS */
    unsigned char *attend_scratch; /* [threads][attend_tiles_bytes()] */
    unsigned char *attend_rows;    /* [threads][attend_rows_bytes()] */
    unsigned char *tile_scratch;   /* [threads][tiles_scratch_bytes()] */
    uint32_t *pos;                 /* [chunk] */
    uint32_t *ids;                 /* [chunk] tokens */
    float *moe_weight;             /* [chunk][n_expert], 0: not chosen */
    float *moe_choose;             /* [chunk][n_expert] what a router chooses by */
    float *moe_sum;                /* [chunk][n_embd] */
    float *moe_h;                  /* [chunk][n_embd] input of the experts, or of expert_in */
    float *moe_in;                 /* [chunk][n_in] what expert_in makes of it; else moe_h */
    float *moe_out;                /* [moe_out_rows][n_embd] outputs of a group of experts */
    uint32_t *moe_row;             /* [chunk][n_expert] the row of moe_out */
    uint32_t *moe_cols;            /* [chunk] columns that chose an expert */
    uint32_t *moe_list;            /* [n_expert] experts that a column chose, ascending */
    uint32_t *moe_choice;          /* [n_expert] how many columns chose each of them */
    uint32_t moe_out_rows, n_moe_list;

    unsigned char *embd_rows; /* [chunk] rows of the token embedding as in the file */
    unsigned char *ple_rows;  /* [chunk] rows of the per-layer table */
    unsigned char *ngram_rows; /* [chunk][rows of a token] of the table of n-grams */
    uint64_t embd_row_bytes, ple_row_bytes, ngram_row_bytes;
    struct stream_lookup *lookups; /* [chunk] the most rows of a token that are read at once */
    bool awaits_ngrams;            /* their rows were requested */
    uint32_t *row_of;              /* [chunk] row of ple_rows that a column reads */

    float *attend_state; /* [chunk][2 * most heads] of attention between two rounds */
    struct kv_walk walk;

    float *logits; /* [n_logit_row][n_vocab] */
    float *replay; /* inputs of recurrent parts in the last pass, see replay.c */
    uint32_t n_taken_back; /* columns of the last pass, if it can be taken back; 0: it cannot */
    float *hidden; /* [chunk][...] of forward_set_hidden(); NULL: not stored */
    bool hides_all;
    const float *hidden_in; /* of forward_read_hidden() */
    float *cluster_score;   /* [n_cluster] of a head that computes some of the logits */
    unsigned char *marks;   /* [n_vocab / 8 + 1] a bit for each of these */

    uint32_t n_col;
    bool in_tiles; /* these columns are multiplied in tiles by OpenBLAS */
    bool is_tail;  /* no tiles after the last keys and values */
    bool is_low;   /* a pass over copies of blocks */
    uint64_t stall_ns, attention_ns, lookup_ns;
    bool is_damaged; /* a pass had values that are not numbers; a repeated pass finds where */
    uint32_t damaged_pos; /* position of the token whose logits are not numbers */
};

/* y[c][r] = sum_k m[r][k] * x[c][k] for all columns.  Takes the blocks of m from the stream. */
int forward_mul(struct forward *f, const struct mat *m, const float *x, size_t ldx, float *y,
                size_t ldy, struct err *e);

/* The same for n matrices of the same columns x, which follow each other in the stream.  Those
 * that are in memory are one round of the pool. */
struct product {
    const struct mat *m;
    float *y;
    size_t ldy;
};

/* Let the caller of the pass change the memory of weights: no block is in use, and after a layer
 * no expert. */
void forward_between(const struct forward *f, bool is_layer);

int forward_mul_all(struct forward *f, const struct product *p, size_t n, const float *x,
                    size_t ldx, struct err *e);

/*
 * A matrix with n_row rows for each head, which have the columns x[c][head][n_in] of that head.
 * Its rows from .. to - 1 give y[c][head][n_out], beginning at the first; others are left out.
 * Transposed, they are added with the values of x as factors, and n_k values become y.
 */
struct by_head {
    uint32_t n_row, from, to;
    bool is_transposed;
    uint32_t n_in, n_out;
};

int forward_mul_heads(struct forward *f, const struct mat *m, const struct by_head *heads,
                      const float *x, float *y, struct err *e);

/* A matrix of one expert, which is in memory as the layout of its tensor says. */
struct expert_mat {
    const struct tensor_info *tensor;
    const struct vec *scales; /* of all experts */
    uint32_t expert;
    const unsigned char *const *w; /* its parts: LAYOUT_SPLIT has two */
};

/* The same for n_col columns with the weights of one expert. */
void forward_mul_expert(struct forward *f, const struct expert_mat *m, size_t n_row,
                        const float *x, size_t ldx, uint32_t n_col, float *y, size_t ldy);

/* Copy rows of an expert's weights so that one follows the other; n bytes of rows at most
 * UNPACK_BYTES. */
void unpack_rows(const struct tensor_info *t, const unsigned char *const *w, size_t row,
                 size_t n_row, unsigned char *to);

/*
 * Products through OpenBLAS: ask whether it multiplies this weight type now, lay the columns
 * out, then multiply rows with them on each thread.  p has type, rows and destination.
 */
#define TILES_SPARE (2 * (BLAS_COLS - 1)) /* empty places before and after a chunk */

struct tiles {
    size_t first, n_col, ldx;
};

/* Attention of these columns through OpenBLAS, like forward_attend(). */
int forward_attend_tiles(struct forward *f, const struct layer_desc *layer, struct err *e);
uint64_t attend_tiles_bytes(const struct model_desc *d); /* of one part */

bool tiles_take(const struct forward *f, enum tensor_type type);
void tiles_lay(struct forward *f, enum act_form form, const float *x, size_t ldx, size_t n_k,
               struct tiles *out);
void tiles_multiply(const struct forward *f, const struct tiles *t, struct blas_product *p,
                    int part, int n_part);
/* Bytes for one part and n_col columns, including TILES_SPARE. */
uint64_t tiles_scratch_bytes(uint32_t n_col);

/* Call fn(ctx, column) for all columns, split over the workers. */
void forward_each_col(struct forward *f, void (*fn)(void *ctx, uint32_t col), void *ctx);
/* The same for 0 … n_col - 1. */
void forward_each(struct forward *f, uint32_t n_col, void (*fn)(void *ctx, uint32_t col),
                  void *ctx);

/*
 * Check that the n values of each column in rows are finite.  Returns -1 with *e if not, and
 * sets is_damaged; if it was set before, *e names source.
 */
int forward_check_numbers(struct forward *f, const float *rows, size_t n, const char *source,
                          struct err *e);

/* Returns the factor of a head's weighted sum of values: m is the maximum of its scores, l the
 * sum of exp(score - m).  A sink adds its own score to the sum. */
float attend_factor(const struct layer_desc *layer, uint32_t head, float m, float l);

/* y[n_row] = W x[n_k], with weights that are always in memory as floats. */
void forward_mul_resident(const struct kernels *kern, const float *w, size_t n_row,
                          const float *x, size_t n_k, float *y);

/* Join embedding and hidden row of all columns, in a draft head: -> x. */
int forward_head_input(struct forward *f, struct err *e);
/* Compute the logits of the best clusters of tokens; those of others are less than all of these. */
int forward_clusters(struct forward *f, struct err *e);

/* y[r] = m[r] . x for the rows r whose bit is set in marks; f has one column. */
int forward_mul_marked(struct forward *f, const struct mat *m, const float *x,
                       const unsigned char *marks, float *y, struct err *e);

/* Compute the rotations of column c at pos[c]. */
void forward_angles(struct forward *f, uint32_t c);

/* Mix the residual streams: x -> h, and inject if a branch follows. */
int forward_mix(struct forward *f, const struct mixer *m, struct err *e);
/* Add y of one column to its streams, times inject. */
void forward_inject_col(struct forward *f, uint32_t c);
/* The same where matrices mix the streams, see hyper.c. */
int forward_mix_hyper(struct forward *f, const struct mixer *m, struct err *e);
void forward_inject_hyper_col(struct forward *f, uint32_t c);

/* Request the rows of n-grams of n ids; wait for them; add them in their layer. */
void forward_ngrams_start(struct forward *f, const uint32_t *ids, uint32_t n);
int forward_ngrams_wait(struct forward *f, struct err *e);
int forward_ngrams(struct forward *f, const struct layer_desc *layer, struct err *e);

/* Write the index keys of the blocks that end with these columns: index_k -> store. */
void forward_index_store(struct forward *f, const struct layer_desc *layer);
/* The same of pools, for queries whose heads have weights: h -> store. */
int forward_score_store(struct forward *f, const struct layer_desc *layer, struct err *e);
/* Pool again what pool_x and pool_g have: the open pools after a pass of fewer columns. */
void forward_score_again(struct forward *f, const struct layer_desc *layer);
void forward_entries_again(struct forward *f, const struct layer_desc *layer);

/* A pool of each block of positions that ends with a column, see pools.c. */
struct pooling {
    struct forward *f;
    const float *x, *g; /* [n_col][n], or [n_col][2 * n] if pools overlap */
    size_t ld;          /* values from column to column */
    const float *place; /* [block][n or 2 * n] */
    const float *from;  /* the open pools before the pass, and after it */
    float *to;
    float *out; /* [n_col][n] */
    uint32_t n, block;
    bool overlaps;
};

void forward_pool(const struct pooling *p);

/* Attention to a window and to entries: h -> store; h -> q; q -> att; att -> wide. */
int forward_entries_store(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_entries_queries(struct forward *f, const struct layer_desc *layer, struct err *e);
void forward_attend_entries(struct forward *f, const struct layer_desc *layer);
int forward_entries_values(struct forward *f, const struct layer_desc *layer, struct err *e);
/* Rotate the last values of n at x as column c does, or back; or as position pos does. */
void forward_rope_end(const struct forward *f, const struct layer_desc *layer, uint32_t c,
                      bool back, float *x, uint32_t n);
void forward_rope_end_at(const struct forward *f, const struct layer_desc *layer, uint32_t pos,
                         float *x, uint32_t n);
/* Returns how many of the columns, which are the first, see all positions before them. */
uint32_t forward_index_dense(const struct forward *f);
/* The candidates that a thread keeps to choose n_block blocks. */
uint32_t forward_index_room(uint32_t n_block);
/* Choose the blocks of the columns from `first` on: index_q -> chosen. */
void forward_index_choose(struct forward *f, const struct layer_desc *layer, uint32_t first);
/* Attention of the columns from `first` on to their chosen blocks: q -> att.  Changes q. */
void forward_attend_chosen(struct forward *f, const struct layer_desc *layer, uint32_t first);

/* Recurrent layers: h -> y.  They write the next side of their recurrent state. */
int forward_delta(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_mamba(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_short_conv(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_kda(struct forward *f, const struct layer_desc *layer, struct err *e);

/* Advance their recurrent state again, from their inputs: mix, beta and decay. */
void forward_delta_again(struct forward *f, const struct layer_desc *layer);
void forward_mamba_again(struct forward *f, const struct layer_desc *layer);
void forward_short_conv_again(struct forward *f, const struct layer_desc *layer);
void forward_kda_again(struct forward *f, const struct layer_desc *layer);
void forward_ngrams_again(struct forward *f, const struct layer_desc *layer); /* conv */
void forward_ngram_ids_again(struct forward *f, const uint32_t *ids, uint32_t n);
void forward_index_again(struct forward *f, const struct layer_desc *layer); /* index_k */

/* Keep these inputs of the columns of this pass, if it may be taken back. */
void forward_keep_recurrent(struct forward *f, const struct layer_desc *layer);
void forward_keep_ngrams(struct forward *f);
void forward_keep_index(struct forward *f, const struct layer_desc *layer);
void forward_keep_pool(struct forward *f, const struct layer_desc *layer, const struct mat *pool);
/* Values of a column that are kept. */
uint64_t replay_values(const struct model_desc *d);

/* A convolution over positions, see conv.c. */
struct conv {
    const float *inputs; /* [n_col][n_channel] */
    const float *past;   /* [width - 1][n_channel] before them, oldest first */
    float *next;         /* the same for the next pass */
    uint32_t n_channel, width, n_col;
};

struct conv conv_of(struct forward *f, const float *inputs, const struct recurrent_side *from,
                    const struct recurrent_side *to);
/* Channels first … first + n - 1 of column c, with filters w[n][width]. */
void conv_apply(const struct conv *v, uint32_t c, uint32_t first, uint32_t n, const float *w,
                float *out);
void conv_keep(const struct conv *v); /* the last inputs for the next pass */

/*
 * The steps of a recurrent layer between its projections: for each column, take the projections
 * apart (NULL: they are apart), then convolve; for each head, update its state over all columns;
 * for each column, norm and gate the result.
 */
struct recur_steps {
    void (*part_col)(void *ctx, uint32_t c);
    void (*mix_col)(void *ctx, uint32_t c);
    void (*run_head)(void *ctx, uint32_t head);
    void (*gate_col)(void *ctx, uint32_t c);
};

void forward_recur(struct forward *f, const struct layer_desc *layer,
                   const struct recur_steps *steps, const struct conv *conv, void *ctx);
/* The steps that advance the state, from the inputs of replay.c. */
void forward_recur_again(struct forward *f, const struct recur_steps *steps,
                         const struct conv *conv, void *ctx);

/* x[n_head][n]: give each head the length 1, then multiply it by a factor. */
void heads_unit(const struct kernels *kern, float *x, uint32_t n_head, uint32_t n, float by);
/* The same with an rms norm with the weights w[n]. */
void heads_norm(const struct kernels *kern, float *x, uint32_t n_head, uint32_t n,
                const float *w, float eps);

/* Queries by two matrices: h -> out.  With them the queries and weights of index keys. */
int forward_low_queries(struct forward *f, const struct layer_desc *layer, float *out,
                        struct err *e);

/* Latent attention: keys of all columns into the store, queries as the store has keys: h -> q,
 * and the values of heads: att -> wide. */
int forward_latent_store(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_latent_queries(struct forward *f, const struct layer_desc *layer, struct err *e);
int forward_latent_values(struct forward *f, const struct layer_desc *layer, struct err *e);

/* log(1 + exp(x)) */
static inline float softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}

/* Clamp gate from above, and up from both sides. */
static inline void clamp_products(float *gate, float *up, size_t n, struct clamp by)
{
    for (size_t i = 0; i < n; i++) {
        gate[i] = gate[i] < by.gate ? gate[i] : by.gate;
        up[i] = up[i] < by.up ? up[i] : by.up;
        up[i] = up[i] > -by.up ? up[i] : -by.up;
    }
}

/* out = (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b;  b may be NULL */
void forward_mean_norm(const float *x, const float *w, const float *b, size_t n, float eps,
                       float *out);

/* x = max(x, 0)^2 */
static inline void relu2(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > 0 ? x[i] * x[i] : 0;
}

/* Multiply n values of each column by a factor. */
void forward_scale_cols(struct forward *f, float *x, size_t n, float by);

/* Attention of all columns over the positions of the layer's store: q -> att. */
int forward_attend(struct forward *f, const struct layer_desc *layer, struct err *e);

/* Choose the experts of layer l for all columns and request their weights.  x has the residual,
 * h is its norm. */
int forward_route(struct forward *f, const struct layer_desc *layer, uint32_t l, struct err *e);
/* Add the branch of the chosen experts to the dense one, which y has if there is one.
 * Overwrites h, gate and up. */
int forward_experts(struct forward *f, const struct layer_desc *layer, struct err *e);
/* Where the weights of a layer's experts are in the files. */
void experts_layer(const struct experts_desc *x, struct expert_layer *out);
void experts_sizes(const struct model_desc *d, struct expert_sizes *out);
/* Bytes of the experts that one token uses. */
uint64_t experts_token_bytes(const struct model_desc *d);

#endif
