/*
 * arch.h - the architectures that are read, and what sets their files apart.
 *
 * A table, not branches: readers of both kinds of file and the check of tensors ask
 * for a trait, never for a name.
 */
#ifndef MEMWALL_ENGINE_FORMAT_ARCH_H
#define MEMWALL_ENGINE_FORMAT_ARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/hparams.h"

struct arch_traits {
    const char *name;      /* general.architecture */
    bool interleaved_gguf; /* rope pairs are neighbours in its GGUF files */
    bool qk_norm;          /* norms of each head's query and key */
    bool post_norms;       /* norms behind attention and feed-forward */
    bool norm_add_one;     /* snapshots hold norm weights minus one */
    bool fused_gate_up;    /* ffn_up holds gate and up */
    bool qkv_bias;         /* biases of q, k, v are part of the model */
    bool ffn_bias;         /* gate, up and down may have biases */
    bool tied;             /* the head is always the token embedding */
};

const struct arch_traits *arch_traits(enum arch a);

/* By general.architecture; -1: not one that is read. */
int arch_by_name(const char *name);

/* Refuse an architecture; the sentence says which ones memwall runs.  Returns -1. */
int arch_refuse(const char *name, struct err *e);

#endif
