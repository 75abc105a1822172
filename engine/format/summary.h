/*
 * summary.h - what a model consists of, in the sums that people quote.
 *
 * Plain data made from a catalogue: parameters, bytes by type, layers, lookup tables.
 * Only what is read counts: neither towers nor keys and values that another layer's
 * replace.  No field is an estimate.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SUMMARY_H
#define MEMWALL_ENGINE_FORMAT_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#define SUMMARY_MAX_LAYER 512
#define SUMMARY_MAX_TYPE  48

struct catalogue;

/* What a tensor is for. */
enum summary_use {
    SUMMARY_LAYER,    /* a matrix that every token reads */
    SUMMARY_EXPERT,   /* of which a token reads a part */
    SUMMARY_HEAD,     /* the output head */
    SUMMARY_LOOKUP,   /* a table of which a token needs a row */
    SUMMARY_RESIDENT, /* norms, scales, biases: small, always in memory */
    SUMMARY_UNREAD,   /* of the text model, but nothing reads it */
    SUMMARY_OTHER,    /* not of the text model */
    SUMMARY_UNKNOWN,  /* no model that memwall runs reads it */
};
const char *summary_use_name(enum summary_use u); /* "lookup" */

struct summary_tensor {
    const char *name; /* canonical; as long as the catalogue lives */
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
    int32_t kv_from; /* the layer whose keys and values it reads; itself: owns them */
    uint32_t n_head, n_head_kv, head_dim_k, head_dim_v, n_ff;
    uint64_t n_param;
    uint64_t bytes;     /* of its matrices, all experts */
    uint64_t hot_bytes; /* of them, what one token reads */
    uint64_t kv_values; /* values of keys and values a token adds; 0: owns none */
};

struct summary_table {
    const char *name, *type;
    uint64_t bytes, row_bytes, n_param;
    bool is_head; /* also read whole, as the output head */
};

struct summary {
    char name[128], arch[32];
    bool is_snapshot;
    uint32_t n_file, n_tensor;
    uint64_t file_bytes;
    bool is_foreign;                  /* of an architecture that memwall does not run */
    uint32_t n_head, n_head_kv, n_ff; /* of a foreign one; 0: not the same in all layers */
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train, n_swa, n_expert, n_expert_used;

    uint64_t n_param;          /* that are used */
    uint64_t n_param_active;   /* one token: without lookup tables and idle experts */
    uint64_t n_param_embd;     /* of token embedding, per-layer table and untied head */
    uint64_t hot_bytes;        /* of matrices one token reads, head included */
    uint64_t head_bytes;       /* of them */
    uint64_t resident_bytes;   /* of small weights, as they lie in the file */
    uint64_t lookup_row_bytes; /* rows of the tables that one token needs */
    uint64_t kv_global_values, kv_sliding_values; /* that a token adds, by kind of layer */

    uint32_t n_unread, n_other, n_unknown;
    uint64_t unread_bytes, unread_params, other_bytes, unknown_bytes;

    uint32_t n_table;
    struct summary_table tables[2];
    uint32_t n_type; /* of the text model, most bytes first */
    struct summary_type types[SUMMARY_MAX_TYPE];
    uint32_t n_unknown_key; /* keys of the model that memwall does not know */
    char unknown_keys[160]; /* as many of them as fit, with commas */
    struct summary_layer layers[SUMMARY_MAX_LAYER]; /* [n_layer] */
};

/* From an opened model; from one opened bare only names, files and types are filled. */
void summary_make(struct summary *s, const struct catalogue *c);

/*
 * From a model opened bare whose architecture memwall does not run: names, sizes and types,
 * and of each layer its parameters and bytes.  Returns false if the file is no such model.
 */
bool summary_make_foreign(struct summary *s, const struct catalogue *c);

/* Tensor i of n_tensor, in the order of the files. */
void summary_tensor_at(const struct catalogue *c, uint32_t i, struct summary_tensor *out);

#endif
