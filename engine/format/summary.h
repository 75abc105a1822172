/*
 * summary.h - the sizes of a model in the figures that people quote.
 *
 * Plain data from a catalogue: parameters, bytes by type, layers, lookup tables.  A tensor
 * counts if a forward pass reads it: vision towers, and keys and values of layers that share those
 * of another layer, do not.  No field is an estimate.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SUMMARY_H
#define MEMWALL_ENGINE_FORMAT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/defaults.h"

#define SUMMARY_MAX_LAYER 512
#define SUMMARY_MAX_TYPE  48

struct catalogue;

/* The purpose of a tensor. */
enum summary_use {
    SUMMARY_LAYER,    /* a matrix that every token reads */
    SUMMARY_EXPERT,   /* a token reads some of its matrices */
    SUMMARY_HEAD,     /* the output head */
    SUMMARY_LOOKUP,   /* a lookup table: a token reads one row */
    SUMMARY_RESIDENT, /* norms, scales, biases: small, always in memory */
    SUMMARY_UNREAD,   /* part of the text model, but not read */
    SUMMARY_OTHER,    /* outside the text model */
    SUMMARY_UNKNOWN,  /* no model that memwall runs reads it */
};
const char *summary_use_name(enum summary_use u); /* "lookup" */

struct summary_layer;
const char *summary_layer_kind(const struct summary_layer *l); /* "sliding" */

struct summary_tensor {
    const char *name; /* canonical; valid as long as the catalogue */
    const char *type; /* "Q4_K" */
    const char *file; /* path */
    uint32_t n_dims;
    uint64_t ne[4]; /* ne[0] is the row length */
    uint64_t offset, bytes;
    enum summary_use use;
    int32_t layer; /* -1: outside the layers */
};

struct summary_type {
    const char *name;
    uint32_t n_tensor;
    uint64_t bytes, n_param;
};

struct summary_layer {
    bool is_sliding;
    bool is_recurrent; /* it has a recurrent state */
    bool attends;      /* it has attention */
    int32_t kv_from;   /* the layer whose KV it uses; itself if it owns KV or is recurrent */
    uint32_t n_head, n_head_kv, head_dim_k, head_dim_v, n_ff;
    uint64_t n_param;
    uint64_t bytes;     /* of its matrices, all experts */
    uint64_t hot_bytes; /* the part that one token reads */
    uint64_t kv_values; /* values that a token adds to the KV; 0: owns none */
};

struct summary_table {
    const char *name, *type;
    uint64_t bytes, row_bytes, n_param;
    uint32_t n_row; /* that a token needs */
    bool is_head; /* also the output head */
};

struct summary {
    char name[128], arch[32];
    bool is_snapshot;
    uint32_t n_file, n_tensor;
    uint64_t file_bytes;
    bool is_foreign;                  /* memwall does not run the architecture */
    uint32_t n_head, n_head_kv, n_ff; /* of foreign models; 0: layers differ */
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train, n_swa, n_expert, n_expert_used;

    uint64_t n_param;          /* that are read */
    uint64_t n_param_active;   /* read by one token: without lookup tables and idle experts */
    uint64_t n_param_embd;     /* of token embedding, per-layer table and untied head */
    uint64_t hot_bytes;        /* of matrices one token reads, head included */
    uint64_t head_bytes;       /* of them */
    uint64_t resident_bytes;   /* of small weights, as in the file */
    uint64_t lookup_row_bytes; /* rows of the lookup tables that one token needs */
    uint64_t kv_global_values, kv_sliding_values; /* added by a token, by kind of layer */
    uint64_t
        recurrent_values; /* state of all recurrent layers and other parts, at any context */
    uint32_t n_stream;    /* residual streams; 1: without mixers */
    /* A token sees index_tokens positions in blocks of index_block, and has a key of
     * index_values in all layers together for each block; 0: attention sees all positions. */
    uint32_t index_block, index_tokens;
    uint64_t index_values;
    uint64_t entry_values; /* of entries of all layers together, for each position */
    const char *recurrence; /* what recurrent layers are: "Mamba-2"; NULL: there is none */
    uint32_t n_recurrent;   /* such layers */
    uint32_t latent_values; /* of a latent key, whose beginning is the value; 0: other keys */
    uint32_t n_ngram; /* tokens of the longest n-gram in a table; 0: no table */
    uint32_t ngram_layer;

    uint32_t n_unread, n_other, n_unknown;
    uint64_t unread_bytes, unread_params, other_bytes, unknown_bytes;

    uint32_t n_table;
    struct summary_table tables[2];
    uint32_t n_type; /* of the text model, largest first */
    struct summary_type types[SUMMARY_MAX_TYPE];
    uint32_t n_default; /* values that the file leaves out */
    struct default_value defaults[MAX_DEFAULT];
    uint32_t n_unknown_key; /* keys of the architecture that memwall does not know */
    char unknown_keys[160]; /* as many of them as fit, separated by commas */
    struct summary_layer layers[SUMMARY_MAX_LAYER]; /* [n_layer] */
};

/* The exponents in a sample of the matrices of one type. */
struct mw_exponents {
    uint32_t n_tensor;
    uint64_t bytes;                /* of these matrices */
    uint64_t n_weight, count[256]; /* in the sample; by the exponent's bits */
    uint64_t n_escape;             /* weights that need a patch when they are packed */
    double packed_share;           /* of the bytes, that packed weights take */
};

/* Fill *s from an open model.  If it was opened bare, only names, files and types are
 * filled. */
void summary_make(struct summary *s, const struct catalogue *c);

/*
 * Fill *s from a model that was opened bare because memwall does not run it: names, sizes,
 * types, and parameters and bytes per layer.  Returns false if the file is not such a model.
 */
bool summary_make_foreign(struct summary *s, const struct catalogue *c);

/* Get tensor i of n_tensor, in the order of the files. */
void summary_tensor_at(const struct catalogue *c, uint32_t i, struct summary_tensor *out);

#endif
