/*
 * mixture.h - mixtures of experts of EXPERTS_ROUTED: their fields and tensors, one row each.
 *
 * The router of all of them works alike, see experts.c in engine/model: scores, a choice among
 * scores plus biases, weights.  A row has what differs: the words of files, and the values that
 * files leave out.  Values that a file states win over its row.
 */
#ifndef MEMWALL_ENGINE_FORMAT_MIXTURE_H
#define MEMWALL_ENGINE_FORMAT_MIXTURE_H

#include <stdbool.h>

#include "engine/format/hparams.h"
#include "engine/format/tensor_table.h"

/* Fields of config.json.  NULL: it has no such field. */
struct mixture_fields {
    const char *n_expert, *n_used;
    const char *n_ff;     /* of one expert; NULL or absent: intermediate_size */
    const char *n_shared; /* how many experts of this size all tokens use, or: */
    const char *n_ff_shared;
    const char *n_dense;   /* the first layers, which have no experts */
    const char *last;      /* the last layer that may have some, or -1 */
    const char *interval;  /* of the others, every n-th has experts */
    const char *is_normed; /* chosen weights are divided by their sum */
    const char *scale;     /* and multiplied by this */
    const char *score;     /* "softmax" or "sigmoid" */
    const char *n_group, *n_group_used;
};

struct mixture {
    struct mixture_fields config;
    /* Values of configurations that leave them out. */
    int64_t n_dense;
    double scale;
    bool is_normed;
    enum router_score score; /* of GGUF files, too */
    bool score_by_bias;      /* but GGUF files without a bias for the choice mean softmax */
    /* GGUF files without expert_weights_norm. */
    bool is_normed_gguf;
    double guard;         /* added to the sum of the chosen weights */
    bool has_shared_gate; /* the shared expert is multiplied by a sigmoid */
    bool is_fused;        /* snapshots have gate and up of all experts in one tensor */
    /* Names in snapshots, after "layers.N.". */
    const char *router, *bias;
    const char *experts,
        *words[3]; /* gate, up, down; of EXPERT.WORD, or of the fused tensors */
    const char *shared, *shared_words[3];
    const char *shared_gate;
};

/* A tensor's name in snapshots of one architecture, instead of that of the table of tensors. */
struct snapshot_name {
    enum tensor_id id;
    const char *name; /* NULL: the end */
};

extern const struct mixture mixture_bailing, mixture_deepseek2, mixture_deepseek3,
    mixture_deepseek4,
    mixture_ernie, mixture_glm4, mixture_granite, mixture_hunyuan, mixture_kimi, mixture_laguna,
    mixture_lfm2, mixture_mellum, mixture_minimax, mixture_nemotron, mixture_olmoe,
    mixture_qwen2;

extern const struct snapshot_name names_bailing[], names_deepseek4[], names_falcon[],
    names_hunyuan[], names_laguna[], names_lfm2[], names_muse[], names_nemotron[];

#endif
