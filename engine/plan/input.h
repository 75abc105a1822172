/*
 * input.h - the numbers that a plan is made from: sums over a model, the user's options, and the
 * limits of the machine.
 *
 * session/plan_input.h fills them in.  Only the plan and the law of speed read them.
 */
#ifndef MEMWALL_ENGINE_PLAN_INPUT_H
#define MEMWALL_ENGINE_PLAN_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/limits/limits.h"
#include "engine/plan/table.h"

/*
 * The layers of a pass have two parts: every token of a prompt runs through the first, which
 * ends with the last keys and values, and only tokens whose logits are needed go on.
 */
enum plan_part { PLAN_PROMPT, PLAN_REST, PLAN_PARTS };

/* Weights of one type, and how fast they are multiplied. */
struct plan_weights {
    char type[16];                    /* "Q4_K"; "": all types with few weights */
    double token_bytes[PLAN_PARTS];   /* that a token multiplies with, without experts */
    double expert_bytes[PLAN_PARTS];  /* of the experts that it uses */
    double token_flops, expert_flops; /* operations for them in the part PLAN_PROMPT */
    double column_bytes_s;            /* rates of struct mw_rate; 0: not measured */
    double chunk_flops_s;
    double speedup;     /* of prompts, by the library that multiplies this type */
    double saved_share; /* of its bytes, by packing, once they are pinned */
    char laid_type[16];         /* the form of pinned weights: "Q4_K-x16"; "": as in the file */
    double laid_column_bytes_s; /* its rates; the bytes are those in this form */
    double laid_chunk_flops_s;
};
#define PLAN_WEIGHTS 5

/* Work of a part besides products, counted from the shape of the model.  Values are floats. */
struct plan_steps {
    double n_round;   /* jobs that the threads share in a pass of one token, without products */
    double n_product; /* products; matrices of the same input are one */
    double n_block;   /* blocks in which their matrices are read */
    double n_value; /* values of a token in norms, sums, rope, packing and checks */
    double n_curve; /* values of a token in activation functions and soft-caps */
    /* Attention of a token, for each position that it sees: values of keys and values that are
     * loaded, and multiply-adds.  far: layers that see all positions, and index keys; near:
     * layers with a window, or with positions that index keys choose. */
    double far_load, far_mac, near_load, near_mac;
};

/* The costs of these steps on this machine: struct mw_steps with the types of the context. */
struct plan_costs {
    double round_s, wake_s;
    double value_s, curve_s; /* of a thread */
    double load_s, mac_s;    /* of a thread */
    double read_cpu_s;       /* processor time to read a byte from disk */
    double contention;       /* of reading and computing; speed.h */
};

/* Factors on the terms of the time of a token, from a measurement (anchor.h). */
struct plan_factors {
    bool is_set;      /* false: the times are those of the formula */
    bool is_doubtful; /* the tokens were few */
    double disk, processors, attention, lookups;
    double others;  /* of the processors' time is added to that of prompts */
    double crowded; /* and this to that of tokens */
    double whole;   /* on the time without fixed_s */
    double fixed_s; /* is added */
};

/* A draft head, which has weights, buffers, and perhaps keys and values of its own. */
struct plan_head {
    uint64_t fixed_bytes; /* of buffers and tables; 0: there is no head */
    uint64_t col_bytes;   /* of the hidden row of each token of a chunk */
    uint64_t kv_token_bytes, kv_index_page_bytes; /* in pages like those of the model */
    uint64_t ring_bytes;  /* of two slots, while not all of its weights are pinned */
    uint64_t hot_bytes;   /* weights that a draft uses, without experts */
    uint64_t pinned_most; /* memory that pins all of them, rounding included */
    uint64_t expert_slot_bytes;
    uint32_t n_expert_min, n_expert_all;
    bool is_needed; /* without it, there is no plan */
};

/* Layers that see all positions, of which a token reads the same number of times. */
struct plan_kv_class {
    uint32_t n_reader;               /* layers that read such keys and values */
    uint64_t token_bytes;            /* of all of them, in memory */
    uint64_t page_bytes;             /* of a page of all of them, on the disk */
    uint64_t read_bytes[PLAN_PARTS]; /* of such a page, by all layers that read it */
};

/* The input of a plan: sums over the model, and the user's settings. */
struct plan_input {
    uint64_t budget_bytes;
    uint32_t n_ctx;
    uint32_t chunk_max;    /* the requested chunk; 0: the plan chooses */
    uint32_t chunk_target; /* of plan_chunk_target() for earlier limits; 0: for these limits */
    int n_thread;
    int n_core; /* that more threads share; 0: unknown */

    uint64_t program_bytes;       /* the allowance */
    uint64_t program_now_bytes;   /* measured when the model was opened */
    uint64_t program_files_bytes; /* part of it: pages of files */
    uint64_t blas_bytes;          /* of OpenBLAS, part of the row "program"; 0: not used */
    uint64_t text_token_bytes;    /* of texts and ids, per token of the context */
    uint64_t tokenizer_bytes;     /* upper bound, from the counts */
    uint64_t tokenizer_build_bytes; /* in addition, before the items below are allocated */
    uint64_t logits_bytes;
    uint32_t n_draft;     /* tokens that a pass verifies at most; 0: none are drafted */
    uint64_t draft_bytes; /* the row of scores of one of them */
    uint64_t replay_col_bytes; /* what recurrent layers keep of each token of such a pass */
    uint64_t drafter_bytes, drafter_token_bytes; /* of the drafter, and per token of the context */
    uint64_t drafter_hot_bytes; /* weights of another model that drafts; 0: none does */
    struct plan_head head;
    /* The types that copies of the streamed blocks can have, those with most bits first, if the
     * model drafts for itself: [n_low], 0: it does not. */
    struct plan_low low[PLAN_LOW_TYPES];
    uint32_t n_low;
    uint64_t act_fixed_bytes; /* activations(chunk) = fixed + chunk * col */
    uint64_t act_col_bytes;
    uint64_t rows_col_bytes; /* lookup rows of one token, rounded out */
    uint64_t resident_bytes; /* norms and other small weights, always in memory */
    uint64_t hot_bytes;      /* of weights that a decoded token reads, without resident */
    uint64_t prompt_bytes;   /* of those, the part that a prompt chunk reads */
    uint64_t saved_bytes;    /* of hot_bytes, by packing, once all are pinned; 0: not packed */
    uint64_t landing_bytes;  /* part of the pinned memory: where blocks arrive or are laid out */
    uint64_t slot_bytes;     /* of one ring slot (struct stream_shape) */
    uint32_t n_slot;         /* slots that the ring grows to, at least 2 */
    uint64_t ring_fixed_bytes; /* stream_overhead_bytes(): besides the slots */
    uint64_t rows_fixed_bytes; /* of the item `rows`, independent of the chunk */
    uint32_t n_block;          /* blocks of a full pass; each is rounded when pinned */
    bool streams;              /* false: --io mmap, no ring and nothing pinned */

    uint64_t kv_global_token_bytes;  /* of all global layers that own KV, K and V */
    uint32_t kv_page_tokens;         /* positions per page */
    /* Classes of these layers, those that are read most often first.  Their pages may be on the
     * disk unless kv_disk_why says why not, as far as there is space.  asks_kv_folder: only the
     * folder can be a reason. */
    struct plan_kv_class kv_class[PLAN_KV_CLASSES];
    uint32_t n_kv_class;
    uint64_t kv_slot_bytes; /* of the largest page */
    char kv_disk_why[80]; /* "": they may.  No pointer, because inputs are kept in a file */
    uint64_t kv_disk_free;
    bool asks_kv_folder;
    uint64_t kv_index_page_bytes;    /* of the index keys of a page */
    int kv_k, kv_v;                  /* enum kv_type of the context */
    uint64_t kv_sliding_token_bytes; /* of all sliding layers that own KV */
    uint32_t n_swa;
    uint32_t n_near; /* positions that a token sees in layers that do not see all; 0: all */
    uint64_t recurrent_bytes;      /* state of layers without keys and values */
    uint64_t recurrent_copy_bytes; /* of a copy of it */
    /* The cache of experts takes fixed + n * slot bytes, with n from the minimum to all
     * experts; n_expert_all 0: a dense model.  With n_expert_read or more, all experts that a
     * token needs of a layer are read at the same time. */
    uint64_t expert_fixed_bytes, expert_slot_bytes;
    uint32_t n_expert_min, n_expert_read, n_expert_all;
    uint64_t experts_token_bytes; /* of experts that a decoded token uses */
    struct mw_expert_use expert_use; /* even use is assumed if it was never observed */
    uint64_t tables_bytes;   /* to keep every lookup row once it was read */

    /* Limits of this machine, in bytes or operations per second; 0: not measured. */
    double disk_bytes_s, memory_bytes_s;
    double lookup_s; /* to read the lookup rows of a token */
    /* KV that a token reads for each position, far and near as in plan_steps. */
    double kv_far_bytes[PLAN_PARTS], kv_near_bytes[PLAN_PARTS];
    uint32_t n_lookup;                      /* lookup tables of which a token reads a row */
    uint32_t n_expert_layer, n_expert_used; /* experts per layer, and used by a token */
    uint32_t n_moe_layer;                   /* layers with experts */
    struct plan_steps steps[PLAN_PARTS];
    struct plan_steps draft_steps[PLAN_PARTS]; /* of a model or a head that drafts */
    struct plan_costs costs;
    struct plan_factors factors;
    struct plan_weights weights[PLAN_WEIGHTS]; /* [n_weights] */
    uint32_t n_weights;
    bool is_doubtful; /* a limit was measured in a bad moment */
};

#endif
