/*
 * sample.h - all figures of a running memwall at one moment, as plain data.
 *
 * The dashboard, the recorder, the replayer and `--json` use only this struct.  Its fields
 * have the names of the JSON lines (memwall-telemetry(5)).  Except for the verdict, no field is
 * computed from other fields; readers compute rates and shares with rates.h.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_SAMPLE_H
#define MEMWALL_ENGINE_TELEMETRY_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/machine/os_value.h"

#define MW_MAX_LAYER  512
#define MW_REASON_MAX 256
#define MW_RECENT     64   /* finished tokens in a sample */
#define MW_HEAT       4096 /* cells of the heat map of experts */
#define MW_HEAT_BINS  64   /* cells of a layer */
#define MW_TRACE      512  /* experts of a token and marks between layers */

enum mw_state { MW_IDLE, MW_LOADING, MW_PREFILL, MW_DECODE, MW_ERROR };
const char *mw_state_name(enum mw_state s); /* "idle" … */

/* The items of the memory plan.  Their names never change. */
enum mw_plan_row {
    MW_ROW_PROGRAM,
    MW_ROW_TOKENIZER,
    MW_ROW_ACTIVATIONS,
    MW_ROW_LOGITS,
    MW_ROW_RING,
    MW_ROW_ROWS,
    MW_ROW_KV_GLOBAL,
    MW_ROW_KV_SLIDING,
    MW_ROW_KV_RECURRENT,
    MW_ROW_KV_INDEX,
    MW_ROW_DRAFTER,
    MW_ROW_EXPERTS,
    MW_ROW_PINNED,
    MW_ROW_RESERVE,
    MW_PLAN_ROWS,
};
const char *mw_plan_row_name(enum mw_plan_row r);  /* "kv_global", as in JSON */
const char *mw_plan_row_label(enum mw_plan_row r); /* "full KV", for people */

/* Why a budget that follows the free memory has changed. */
enum mw_signal {
    MW_SIGNAL_NONE,
    MW_SIGNAL_AVAILABLE, /* the machine has less free memory than the reserve */
    MW_SIGNAL_GROUP,     /* the control group has */
    MW_SIGNAL_PRESSURE,  /* tasks waited for memory (PSI) while little was spare */
    MW_SIGNAL_SWAP,      /* pages of this process went to swap */
    MW_SIGNAL_FREE,      /* there was memory to take */
    MW_SIGNALS
};
const char *mw_signal_name(enum mw_signal s); /* "available", as in JSON; "": none */

/* A copy of the model on another disk. */
enum mw_mirror { MW_MIRROR_NONE, MW_MIRROR_USED, MW_MIRROR_LOST /* it failed */ };

/* The disk of the model, and that of the copy. */
enum { MW_DISKS = 2 };

enum mw_layer_kind {
    MW_LAYER_SLIDING,
    MW_LAYER_GLOBAL,
    MW_LAYER_SHARED_SLIDING,
    MW_LAYER_SHARED_GLOBAL,
    MW_LAYER_RECURRENT,    /* with a recurrent state; it may have attention, too */
    MW_LAYER_INDEXED, /* attends to the positions that its index keys choose */
    MW_LAYER_FEED_FORWARD, /* neither attention nor a state */
    MW_LAYER_HEAD,
};
const char *mw_layer_kind_name(enum mw_layer_kind k);

enum mw_binds {
    MW_BINDS_NONE,
    MW_BINDS_DISK,
    MW_BINDS_MEMORY,
    MW_BINDS_COMPUTE,
    MW_BINDS_KV,
    MW_BINDS_SWAP,
    MW_BINDS_OTHERS, /* other programs, or the host, use the processors */
    MW_BINDS_COUNT
};
const char *mw_binds_name(enum mw_binds b);
const char *mw_binds_label(enum mw_binds b); /* "disk-bound", for people */
const char *mw_binds_word(enum mw_binds b);  /* the same where space is short: "disk" */

/* Parts of the time of a token; only their relation counts. */
struct mw_shares {
    double disk;       /* waiting for it; rows included */
    double rows;       /* part of disk: for rows of lookup tables, which nothing overlaps */
    double memory;     /* reading weights from memory, at the rate that memory reaches */
    double arithmetic; /* the rest of the products, and all that is computed beside */
    double attention;  /* reading keys and values, and multiplying with them */
    double others;     /* waiting for a processor that other programs use */
    double fixed;      /* between two passes */
};

/* Figures that change only with the plan. */
struct mw_run {
    char model[128]; /* name, safe to show in a terminal */
    char type[16];   /* the weight type with most bytes: "BF16" */
    char arch[32];
    uint32_t n_layer;
    uint32_t ctx;
    uint64_t budget_bytes;
    char io[16];                   /* "direct/io_uring", "direct/pread", "buffered", "mmap" */
    char io_reason[MW_REASON_MAX]; /* why this mode and backend */
    char kv_k[8], kv_v[8];
    uint32_t threads;
    /* Cores that may be used, by kind; the others are 0 where all are alike. */
    uint32_t cores, efficient_cores, low_power_cores;
    char isa[16];
    char products[128];  /* the code that multiplies the matrices */
    uint64_t hot_bytes;  /* of the weights that decoding one token uses */
    uint64_t file_bytes; /* of the model's files */
    /* Predictions; 0 if a limit was not measured. */
    double predicted_decode, predicted_prefill; /* tokens per second */
    double predicted_assumed; /* share of right drafts that predicted_decode assumes; 0: none */
    uint64_t predicted_read; /* bytes of weights per pass of an answer; always known */
    enum mw_binds predicted_binds;
};

/* Whether the weights are used where their files are mapped.  Then the kernel reads them: it counts
 * the bytes for the process, and nobody counts stalls, which are part of computing. */
bool mw_run_is_mapped(const struct mw_run *run);

struct mw_sample_layer {
    uint8_t kind; /* enum mw_layer_kind */
    uint64_t bytes, pinned_bytes, read_bytes, kv_bytes, passes;
    uint64_t read_ns, stall_ns, compute_ns; /* of the last pass */
};

#define MW_DRAFT_MOST 15 /* drafts that a pass verifies */

/* The passes of an answer after its first token, and the drafts that they verified. */
struct mw_drafts {
    uint64_t passes, drafted, accepted;
    uint64_t by_head;                        /* drafts that a draft head made */
    uint64_t draft_ns;                       /* spent in the drafter */
    uint64_t accepted_at[MW_DRAFT_MOST];     /* accepted as draft i of their pass, from 0 */
    uint64_t passes_over[MW_DRAFT_MOST + 1]; /* passes over i drafts, */
    uint64_t pass_ns[MW_DRAFT_MOST + 1];     /* and their time */
};

/* A finished token, and the pass that produced it. */
struct mw_token {
    uint64_t t_ns; /* when it was sampled */
    uint64_t n;    /* in its answer, from 1 */
    uint64_t wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns;
    uint64_t bytes_pass;                 /* streamed */
    uint64_t n_col; /* tokens evaluated in the pass; 0: none, the token was an accepted draft */
    uint64_t kv_tokens;                  /* tokens in the context */
    uint64_t expert_hits, expert_misses; /* experts that were in memory, and that were not */
    uint64_t expert_bytes;               /* part of bytes_pass */
    uint64_t wait_ns; /* part of compute_ns: for a processor that other programs or the host
                         used, the longest of all threads */
};

/* The experts that a token chose, layer after layer. */
struct mw_expert_trace {
    uint16_t n;            /* 0: a dense model, a pass of several tokens, or too many experts */
    uint16_t id[MW_TRACE]; /* MW_TRACE_LAYER after each layer */
};
#define MW_TRACE_LAYER UINT16_MAX

/* Figures reported by Linux, each with a reason if it is not valid. */
struct mw_os {
    uint64_t t_ns; /* when they were read; 0 if never */
    struct mw_os_value rss, rss_anon, rss_file, rss_peak;
    struct mw_os_value own; /* of this process alone: rss, page tables, swapped pages */
    /* of the memory control group; not valid while other processes are in it */
    struct mw_os_value charged, charged_peak;
    struct mw_os_value charged_kernel; /* part of charged: page tables and the like */
    struct mw_os_value charged_file;   /* part of charged: page cache, mapped or not */
    /* Page cache that is part of the charge and not of the program: pages of the model's files
     * or of processes that have ended in the group. */
    struct mw_os_value model_charged;
    struct mw_os_value limit;        /* the smallest of the group and its parents */
    struct mw_os_value model_cached; /* bytes of the model in the page cache */
    struct mw_os_value system_cached, system_total, available, swap_used;
    struct mw_os_value swap_own;                         /* pages of this process */
    struct mw_os_value majflt, refaults;                 /* counts since the start */
    struct mw_os_value psi_memory_some10, psi_io_some10; /* hundredths of a percent */
    /* The same of the processors' time that the host of a virtual machine took since the
     * reading before. */
    struct mw_os_value cpu_stolen;
    uint32_t n_thread;                      /* 0: not read yet */
    struct mw_thread thread[MW_MAX_THREAD]; /* in the order they were started */
};

struct mw_sample {
    uint64_t t_ns; /* when it was taken */
    struct mw_run run;

    enum mw_state state;
    uint32_t layer_now;
    /* of the current answer or the last one */
    uint64_t n_prompt, n_prompt_done, n_decoded;
    uint64_t t_start_ns, t_first_ns, t_last_ns; /* 0 if not reached */
    uint64_t prefill_ns, decode_ns;

    struct mw_drafts draft; /* of this answer */

    struct {
        uint64_t wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns,
            bytes_pass, n_col, expert_hits, expert_misses, expert_bytes, wait_ns, kv_bytes;
    } pass; /* the last finished pass */

    /* Token i since the start is recent[i % MW_RECENT], for the last MW_RECENT of n_token
     * tokens.  A reader that samples often enough misses no token. */
    uint64_t n_token;
    uint64_t n_token_before; /* tokens made with an earlier plan, which no rate counts */
    struct mw_token recent[MW_RECENT];
    struct mw_expert_trace trace[MW_RECENT]; /* of the same tokens */

    struct {
        uint64_t bytes_read, reads, read_ns, lookup_bytes, retries, depth_gauge;
        /* With a copy of the model on another disk: enum mw_mirror, bytes that each disk
         * delivered, and the time in which it had something to read. */
        uint64_t mirror, disk_bytes[MW_DISKS], disk_ns[MW_DISKS];
    } io;

    /* The cache of experts; all 0: a dense model. */
    struct {
        uint64_t n_expert;         /* of a layer, the most */
        uint64_t all, slots, held; /* of all layers; that fit in memory; in memory now */
        uint64_t hits, misses;     /* requests of layers since the start */
        uint64_t bytes_read;       /* since the start, part of io.bytes_read */
        /* Cell heat[layer * bins + i] stands for n_expert / bins neighbours.  Upper 4 bits: the
         * share in memory, from 0 to 15; lower 4 bits: how often tokens choose them lately, 8
         * is average, and each step is a factor of the square root of two.  0: a layer without
         * experts. */
        uint64_t bins;
        uint8_t heat[MW_HEAT];
    } experts;

    struct {
        uint64_t plan[MW_PLAN_ROWS], used[MW_PLAN_ROWS];
        uint64_t lent_bytes;
        uint64_t saved_bytes; /* by packing pinned weights */
        /* Pinned weights, and the part of them that is in memory.  They are read while no token
         * is evaluated, and by the first passes. */
        uint64_t ahead_bytes, ahead_done_bytes;
    } mem;

    /* A budget of `auto`, which follows the free memory; all 0: a fixed budget.
     * run.budget_bytes is the budget now. */
    struct {
        uint64_t chosen;      /* when it was last chosen; with less, memory was given back */
        uint64_t least, most; /* it stays between them */
        uint64_t reserve;     /* bytes that are left free */
        uint64_t spare;       /* bytes that stay free beside the budget, as last read */
        uint64_t step;        /* bytes of the last change */
        uint64_t changed_ns;  /* when it was decided; 0: never */
        uint64_t delay_ns;    /* until memory was given back, at the last time */
        char signal[12];      /* why: "available", "group", "pressure", "swap", "free" */
        char next[16];        /* the plan item that gives back next; "": none does */
    } budget;

    struct {
        /* Tokens of the conversation.  They differ from `tokens` after turns were taken back or
         * a chat was opened, until the next prompt is evaluated. */
        uint64_t context;
        uint64_t tokens, capacity, bytes_used, bytes_reserved, global_bytes, sliding_bytes;
        /* Keys and values on the disk now, those when the context is full, and the bytes that were
         * ever written there and read back. */
        uint64_t disk_bytes, disk_plan, disk_written, disk_read;
    } kv;

    /* machine limits in bytes per second; 0 if not measured */
    uint64_t disk_limit, memory_limit;

    struct mw_os os;

    struct {
        enum mw_binds binds;
        double share;    /* of the time of a token, 0 to 1 */
        struct mw_shares part; /* of this time; all 0: unknown */
        char advice[24];       /* key: "more_budget", "smaller_type", "smaller_kv", … */
        double advice_from, advice_to, advice_amount; /* tokens/s, tokens/s, bytes or a share */
        double full_tps; /* predicted with a full context; 0: unknown */
        char held_back[96]; /* the limit that allows no larger budget; "": none */
    } verdict;

    uint32_t n_layer; /* layer has n_layer entries and one for the head */
    struct mw_sample_layer layer[MW_MAX_LAYER + 1];
};

#endif
