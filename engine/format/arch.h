/*
 * arch.h - the architectures that memwall runs, one row per architecture.
 *
 * A row states the parts that an architecture has, its rules for values that files leave out,
 * and those values.  The readers of files, the table of tensors and the description of a model
 * ask for these and never for a name.  If all parts of an architecture exist, adding it takes
 * one row.  README.md says what a new part needs.
 */
#ifndef MEMWALL_ENGINE_FORMAT_ARCH_H
#define MEMWALL_ENGINE_FORMAT_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"

/* Parts that only some architectures have.  The tables of keys, fields and tensors name the
 * traits that an entry depends on. */
enum arch_trait {
    TRAIT_QK_NORM = 1 << 0,         /* a norm for each head's query and key */
    TRAIT_V_NORM = 1 << 1,          /* values are normalised, without weights */
    TRAIT_POST_NORMS = 1 << 2,      /* norms after attention and feed-forward, too */
    TRAIT_NORM_ADD_ONE = 1 << 3,    /* snapshots hold norm weights minus one */
    TRAIT_GELU = 1 << 4,            /* the gate's activation is gelu (tanh form), not silu */
    TRAIT_EMBD_SCALE = 1 << 5,      /* embeddings are multiplied by sqrt(n_embd) */
    TRAIT_OUT_SCALE = 1 << 6,       /* layers may end with one factor on their output */
    TRAIT_TIED = 1 << 7,            /* tie_word_embeddings is true if a snapshot omits it */
    TRAIT_QKV_BIAS = 1 << 8,        /* q, k and v have biases */
    TRAIT_ATTN_BIAS = 1 << 9,       /* attention_bias gives q, k, v and the output biases */
    TRAIT_FFN_BIAS = 1 << 10,       /* mlp_bias gives gate, up and down biases */
    TRAIT_FUSED_GATE_UP = 1 << 11,  /* one tensor holds gate and up */
    TRAIT_HEADS_BY_KIND = 1 << 12,  /* heads of global and sliding layers differ */
    TRAIT_ROPE_BY_KIND = 1 << 13,   /* sliding layers have their own rope table, never scaled */
    TRAIT_INTERLEAVED = 1 << 14,    /* rope pairs are neighbours in GGUF files */
    TRAIT_PERIOD_FIELD = 1 << 15,   /* sliding_window_pattern can state another period */
    TRAIT_SHARED_KV = 1 << 16,      /* the last layers may read another layer's KV */
    TRAIT_KEYS_AS_VALUES = 1 << 17, /* global layers may use their keys as values */
    TRAIT_PER_LAYER_INPUT = 1 << 18,
    TRAIT_EXPERTS = 1 << 19, /* may have a mixture of experts, see enum expert_rule */
    TRAIT_CAP_ATTN = 1 << 20,
    TRAIT_CAP_FINAL = 1 << 21,
    TRAIT_SCALES = 1 << 22,       /* stated factors of embeddings, residuals and logits */
    TRAIT_NO_PRE_NORMS = 1 << 23, /* no norms before attention and feed-forward */
    TRAIT_WIDE_QK_NORM = 1 << 24, /* with QK_NORM: one norm for the queries of all heads */
    TRAIT_SKIP_ROPE = 1 << 25,    /* some layers do not rotate */
    TRAIT_TEMPERATURE = 1 << 26,  /* queries may grow with the position */
    TRAIT_SWA_UNSCALED = 1 << 27, /* sliding layers share the rope base, but are never scaled */
    TRAIT_SINKS = 1 << 28,        /* attention sinks: a learned score of each head */
    TRAIT_LATE_NAME = 1 << 29, /* GGUF calls the norm before feed-forward post_attention_norm */
    TRAIT_DELTA = 1 << 30, /* some layers have gated delta nets, the others gate attention */
};

/* Traits above the range of an enum's constants. */
#define TRAIT_LATE_QK_NORM  ((uint64_t)1 << 31) /* with QK_NORM: the norms follow rope */
#define TRAIT_MAYBE_QK_NORM ((uint64_t)1 << 32) /* with QK_NORM: some models lack them */
#define TRAIT_PARALLEL      ((uint64_t)1 << 33) /* feed-forward reads what attention reads */
#define TRAIT_MEAN_NORM     ((uint64_t)1 << 34) /* norms subtract the mean first */
#define TRAIT_RELU2         ((uint64_t)1 << 35) /* no gate; the activation is relu, squared */
#define TRAIT_OUT_GATE      ((uint64_t)1 << 36) /* attention's output has gates, see gate_rule */
#define TRAIT_LATENT        ((uint64_t)1 << 37) /* keys and values are one latent vector */
#define TRAIT_UNIT_NORMS    ((uint64_t)1 << 38) /* embeddings, queries and keys: no weights */
#define TRAIT_GLOBAL_NOPE                                                                      \
    ((uint64_t)1 << 39) /* beside sliding layers, global ones don't rotate */
#define TRAIT_NOPE         ((uint64_t)1 << 40) /* no layer rotates */
#define TRAIT_MAYBE_NOPE   ((uint64_t)1 << 41) /* the file states whether any layer rotates */
#define TRAIT_SIDE_BY_SIDE ((uint64_t)1 << 42) /* recurrent layers have attention, too */
#define TRAIT_ONE_BLOCK    ((uint64_t)1 << 43) /* a layer is one block: attention or the like */
#define TRAIT_MAMBA        ((uint64_t)1 << 44) /* recurrent layers are Mamba-2 */
#define TRAIT_SHORT_CONV   ((uint64_t)1 << 45) /* recurrent layers are a short convolution */
#define TRAIT_KDA          ((uint64_t)1 << 46) /* recurrent layers are Kimi's delta attention */
#define TRAIT_KDA_LOW      ((uint64_t)1 << 47) /* with KDA: decay and gate have two matrices */
#define TRAIT_STREAMS      ((uint64_t)1 << 48) /* several residual streams, with mixers */
#define TRAIT_INDEX        ((uint64_t)1 << 49) /* attention chooses blocks by index keys */
#define TRAIT_NGRAMS       ((uint64_t)1 << 50) /* some layers add rows of a table of n-grams */
#define TRAIT_SIGMOID_GATE ((uint64_t)1 << 51) /* delta nets are gated by sigmoid, not silu */
#define TRAIT_LOGIT_FACTOR ((uint64_t)1 << 52) /* a stated factor of the logits */
#define TRAIT_INTERLEAVED_2                                                                    \
    ((uint64_t)1 << 53)                  /* rope pairs are neighbours in snapshots, too */
#define TRAIT_ROUTED ((uint64_t)1 << 54) /* with EXPERTS: of EXPERTS_ROUTED */
#define TRAIT_DRAFT  ((uint64_t)1 << 55) /* files may end with layers that only draft */
#define TRAIT_HYPER  ((uint64_t)1 << 56) /* several residual streams, mixed by matrices */
#define TRAIT_LOW_Q  ((uint64_t)1 << 57) /* queries may come from two matrices of low rank */
#define TRAIT_SCORED                                                                           \
    ((uint64_t)1 << 58) /* attention chooses by index keys; queries' heads have weights */
#define TRAIT_ENTRIES                                                                          \
    ((uint64_t)1 << 59) /* attention to a window and to entries, each of several positions */

/* Traits of draft heads (draft_head.h). */
#define TRAIT_NEXTN     ((uint64_t)1 << 60) /* one more layer of the model that it drafts for */
#define TRAIT_ASSISTANT ((uint64_t)1 << 61) /* layers that read another model's KV */
#define TRAIT_ORDERED   ((uint64_t)1 << 62) /* clusters of tokens choose which logits it computes */

#define TRAIT_CLAMPS ((uint64_t)1 << 63) /* products of gate and up may be clamped */

/* Recurrent layers of any kind. */
#define TRAITS_RECURRENT (TRAIT_DELTA | TRAIT_MAMBA | TRAIT_SHORT_CONV | TRAIT_KDA)

/* The layers that have a window, if the file states a window but does not list the layers. */
enum window_rule {
    WINDOW_ALL,            /* every layer */
    WINDOW_ALL_GGUF,       /* every layer of a GGUF file; snapshots have no window */
    WINDOW_PERIOD,         /* all but every n-th */
    WINDOW_PERIOD_FIRST,   /* all but the first of every n */
    WINDOW_PERIOD_OR_LAST, /* all but every n-th and the last; GGUF files must list them */
    WINDOW_LISTED,         /* none; files must list them */
    /* Only if use_sliding_window is true; GGUF files cannot state these. */
    WINDOW_UPPER, /* from max_window_layers on */
    WINDOW_EVEN,  /* 0, 2, and so on, below max_window_layers */
    WINDOW_USED,  /* every layer */
};

/* The factor of q.k. */
enum scale_rule {
    SCALE_HEAD_DIM, /* 1 / sqrt(head_dim) */
    SCALE_ONE,
    SCALE_SCALAR, /* 1 / sqrt(query_pre_attn_scalar) */
    SCALE_STATED, /* attention_multiplier, attention.scale */
};

/* The dimensions of a head that rotate. */
enum rope_dims {
    ROPE_WHOLE,        /* all; a partial_rotary_factor is ignored */
    ROPE_PARTIAL,      /* the first ones */
    ROPE_PROPORTIONAL, /* the first ones, at the frequencies of a whole head */
};

/* The mixture of experts of an architecture with TRAIT_EXPERTS. */
enum expert_rule {
    EXPERTS_NONE,
    EXPERTS_BESIDE,       /* beside the dense branch, with own norms and a scaled router */
    EXPERTS_MIXTRAL,      /* instead of it */
    EXPERTS_MIXTRAL_GGUF, /* the same in GGUF files only */
    EXPERTS_QWEN,         /* instead of it; norm_topk_prob states whether weights are normed */
    EXPERTS_QWEN_SHARED,  /* beside an expert that all tokens use, with a gate of its own */
    EXPERTS_GPT_OSS,      /* instead of it; biases, a clamped activation */
    EXPERTS_ROUTED,       /* in some layers, as struct mixture states */
};

/* The factors of attention's output, of an architecture with TRAIT_OUT_GATE. */
enum gate_rule {
    GATE_NONE,
    GATE_VALUES,   /* a sigmoid for each value */
    GATE_HEADS,    /* a sigmoid for each head */
    GATE_SOFTPLUS, /* a softplus for each head, or for each value, as a file states */
};

/* The projections of gated delta nets, of an architecture with TRAIT_DELTA.  Value heads share
 * key heads: a group of consecutive ones, or, tiled, every n-th for n key heads. */
enum delta_rule {
    DELTA_NONE,
    DELTA_JOINED, /* snapshots have two matrices, in groups of one key head; never tiled */
    DELTA_APART,  /* four matrices; GGUF files are tiled */
};

/* Values of fields that config.json leaves out, as in transformers' class. */
struct arch_defaults {
    int64_t n_head, n_head_kv; /* 0: required; 0: as many as heads */
    int64_t head_dim;          /* 0: hidden_size / heads */
    int64_t n_ctx;
    int64_t n_swa; /* if the field is missing; null means no window */
    double rms_eps;
    double rope_base; /* of global layers */
};

/* Values of keys that GGUF files leave out, and which of these are required. */
struct gguf_defaults {
    double rms_eps;    /* 0: required */
    double rope_base;  /* 0: 10000 where config.json has this default, else required */
    int64_t head_dim;  /* 0: embedding_length / heads */
    bool needs_window; /* a file without a window is not complete */
    bool is_yarn;      /* a factor without a type is one of yarn, not a linear one */
};

/* Values that files of Ollama's converter lack or have wrong, by the number of layers of the
 * published model. */
struct lost_values {
    uint32_t n_layer[3]; /* these have a linear rope scaling by: */
    double factor;
    uint32_t n_layer_uncapped; /* this one has no cap of its logits */
};

#define ARCH_MAX_SNAPSHOT 4

struct arch {
    const char *name;       /* general.architecture in GGUF files */
    const char *other_name; /* the same in files of another converter, or NULL */
    struct {
        const char *model_type, *class; /* "llama", "LlamaForCausalLM" */
    } snapshots[ARCH_MAX_SNAPSHOT];
    uint64_t traits; /* of enum arch_trait, and those above */
    enum window_rule window;
    uint32_t window_period;
    uint32_t
        ropeless_period; /* every n-th layer does not rotate, if the file does not list them */
    enum scale_rule scale;
    /* GGUF files do not state query_pre_attn_scalar.  It is n_embd / n_head in the model that
     * has this many layers, and head_dim in all others. */
    uint32_t n_layer_wide_scale;
    enum rope_dims rope_dims;
    double rotates; /* the share of a head, in snapshots that leave it out; 0: all of it */
    enum expert_rule experts;
    const struct mixture *mixture; /* of EXPERTS_ROUTED */
    const struct snapshot_name
        *names; /* that differ from the table of tensors; ends with NULL */
    enum gate_rule gate;
    bool clamps_silu; /* of TRAIT_CLAMPS: the upper limit is of silu(gate), else of gate */
    double post_eps; /* of norms after a block; 0: as of the others */
    enum delta_rule delta;
    float softcap_attn, softcap_final; /* of files that leave them out */
    uint32_t n_swa_gguf;               /* of GGUF files that leave it out; 0: no window */
    struct arch_defaults absent;
    struct gguf_defaults gguf;
    struct lost_values lost;
};

/* Returns whether the architecture has all of these traits. */
static inline bool arch_has(const struct arch *a, uint64_t traits)
{
    return (a->traits & traits) == traits;
}

/* Whether latent keys may have no values that rotate. */
static inline bool arch_may_not_rotate(const struct arch *a)
{
    return arch_has(a, TRAIT_NOPE) && arch_has(a, TRAIT_SCORED);
}

/* Returns whether the architecture has recurrent layers. */
static inline bool arch_recurs(const struct arch *a)
{
    return (a->traits & TRAITS_RECURRENT) != 0;
}

/* Returns the architecture with this general.architecture, or NULL if memwall does not run
 * it. */
const struct arch *arch_by_name(const char *name);

/* Returns the architecture with this model_type, or with this class if model_type is NULL; NULL
 * if memwall does not run it. */
const struct arch *arch_by_snapshot(const char *model_type, const char *class);

/* The same for draft heads in files of their own.  These are not models, so arch_by_name() and
 * arch_by_snapshot() do not find them. */
const struct arch *arch_assistant_by_name(const char *name);
const struct arch *arch_assistant_by_snapshot(const char *model_type);

/* Returns the rule for the experts of its GGUF files or snapshots. */
enum expert_rule arch_experts(const struct arch *a, bool is_gguf);

/* Returns whether a file's name of an activation means the one that memwall computes. */
bool arch_activates(const struct arch *a, const char *activation);

/* Add to an error about a GGUF file of this architecture that it has Ollama's own form, if it
 * has.  Another file of the model may be whole. */
void arch_note_form(const char *name, struct err *e);

/* Refuse an architecture of a GGUF file, or a model type of a snapshot; the message lists those that
 * memwall runs.  Returns -1. */
int arch_refuse(const char *name, bool is_gguf, struct err *e);

#endif
