/*
 * times.h - how long a token takes and where its weights are, as predicted.  Plain data.
 *
 * speed.h has the law, outlook.h the prediction of a whole run.
 */
#ifndef MEMWALL_ENGINE_PLAN_TIMES_H
#define MEMWALL_ENGINE_PLAN_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/plan/table.h"
#include "engine/telemetry/shares.h"

/* Where the weights of a pass are. */
struct plan_pass {
    double streamed_share; /* of the blocks */
    double missed_share;   /* of all experts; the cache holds the more popular ones */
    bool keeps_rows;       /* lookup rows are in memory */
    bool starts_cold;      /* no expert is in memory before the first token of the context */
    uint32_t chunk;        /* tokens of a prompt that run together */
    uint32_t n_slot;       /* of the ring; 0: as many as add bandwidth */
    bool has_kv_disk;      /* positions from kv_keep on may be on the disk */
    uint32_t kv_keep[PLAN_KV_CLASSES];
};

/* The terms of speed.h, in seconds and bytes, after the factors of a measurement (anchor.h). */
struct plan_time {
    double streamed_bytes, missed_bytes, kv_bytes;
    double paged_bytes; /* keys and values from the disk */
    double attend_cpu_s; /* attention_s without the bound of memory */
    double products_s, small_s, rounds_s, steps_s, attention_s, reading_s, lookups_s;
    double experts_s, missed_s, overlap_s;
    double missing_layers; /* layers in which an expert is missed; 0: none, or not a mixture */
    double n_streamed, held_s; /* streamed blocks, and the part of products_s that is theirs */
    double processors_s, disk_s, ring_s;
    double memory_s; /* part of processors_s */
    double others_s; /* part of processors_s: lost to other programs; 0: not measured */
    double others;   /* the same as a share of what is not lost */
    double fixed_s;  /* between two passes; 0: not measured */
    double weight_bytes; /* read from memory */
    double wall_s;       /* 0: a limit was not measured */
    struct mw_shares part; /* of wall_s, of a token */
    enum mw_binds binds;
};

/* The length of a usual run: a prompt of 512 tokens and an answer of 64. */
#define PLAN_USUAL_RUN ((struct plan_run){ 576, PLAN_PROMPT_TOKENS, 64 })

struct plan_outlook {
    uint32_t n_token;           /* in the context */
    uint64_t row[MW_PLAN_ROWS]; /* bytes that are charged for each item of the plan */
    uint64_t peak_bytes;        /* their sum */
    uint64_t files_bytes;  /* part of it: pages of the program's files, which are charged to the
                              process that read them first */
    uint64_t pinned_bytes; /* of blocks, in borrowed memory, too */
    uint64_t streamed_bytes; /* by one token, with experts */
    struct plan_pass pass;   /* where the weights are */
    struct plan_time token;  /* of a pass for the middle one of the decoded tokens */
    double tps;              /* there, with the drafts that the plan assumes; 0: as prompt_s */
    double assumed;          /* share of them that is right; 0: none */
    double prompt_s;         /* of a prompt of n_prompt tokens; 0: a limit was not measured */
};

/* The length of the run that is predicted: the last n_prompt of the first n_token - n_gen
 * tokens are a prompt, and n_gen tokens are decoded. */
struct plan_run {
    uint32_t n_token, n_prompt, n_gen;
};

#endif
