/*
 * sample.h - what can be known about a running memwall at one moment, as plain data.
 *
 * Dashboard, recorder, replayer and `--json` take this and nothing else.  The names of
 * the fields are those of the JSON lines (memwall-telemetry(5)).  Nothing here is
 * computed from another field here: rates and shares are the reader's business.
 */
#ifndef MEMWALL_ENGINE_TELEMETRY_SAMPLE_H
#define MEMWALL_ENGINE_TELEMETRY_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/machine/os_value.h"

#define MW_MAX_LAYER  512
#define MW_REASON_MAX 256
#define MW_RECENT     64 /* finished tokens that a sample still knows */

enum mw_state { MW_IDLE, MW_LOADING, MW_PREFILL, MW_DECODE, MW_ERROR };
const char *mw_state_name(enum mw_state s); /* "idle" … */

/* The rows of the memory plan; names never change. */
enum mw_plan_row {
    MW_ROW_PROGRAM,
    MW_ROW_TOKENIZER,
    MW_ROW_ACTIVATIONS,
    MW_ROW_LOGITS,
    MW_ROW_RING,
    MW_ROW_ROWS,
    MW_ROW_KV_GLOBAL,
    MW_ROW_KV_SLIDING,
    MW_ROW_EXPERTS,
    MW_ROW_PINNED,
    MW_ROW_RESERVE,
    MW_PLAN_ROWS,
};
const char *mw_plan_row_name(enum mw_plan_row r); /* "kv_global" */

enum mw_layer_kind {
    MW_LAYER_SLIDING,
    MW_LAYER_GLOBAL,
    MW_LAYER_SHARED_SLIDING,
    MW_LAYER_SHARED_GLOBAL,
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
};
const char *mw_binds_name(enum mw_binds b);

/* What does not change between two plans. */
struct mw_run {
    char model[128]; /* name, cleaned for a terminal */
    char type[16];   /* of most weight bytes: "BF16" */
    char arch[32];
    uint32_t n_layer;
    uint32_t ctx;
    uint64_t budget_bytes;
    char io[16]; /* "direct/io_uring", "direct/pread", "buffered", "mmap" */
    char io_reason[MW_REASON_MAX];
    char kv_k[8], kv_v[8];
    uint32_t threads;
    char isa[16];
    uint64_t hot_bytes;  /* what one decoded token uses of the weights */
    uint64_t file_bytes; /* of the model's files */
};

struct mw_sample_layer {
    uint8_t kind; /* enum mw_layer_kind */
    uint64_t bytes, pinned_bytes, read_bytes, kv_bytes, passes;
    uint64_t read_ns, stall_ns, compute_ns; /* of the last pass */
};

/* A finished token, and the pass that made it. */
struct mw_token {
    uint64_t t_ns; /* when it was sampled */
    uint64_t n;    /* in its answer, from 1 */
    uint64_t wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns;
    uint64_t bytes_pass; /* streamed */
    uint64_t n_col;      /* tokens the pass evaluated */
    uint64_t kv_tokens;  /* the context held */
};

/* Figures of the kernel, each with the reason when it is not valid. */
struct mw_os {
    uint64_t t_ns; /* when it was read; 0: never */
    struct mw_os_value rss, rss_anon, rss_file, rss_peak;
    struct mw_os_value own; /* of this process alone: rss, its page tables, what is swapped */
    /* Of the memory control group; not valid while other processes share it. */
    struct mw_os_value charged, charged_peak;
    struct mw_os_value charged_kernel; /* part of charged: page tables and the like */
    struct mw_os_value charged_file;   /* part of charged: page cache, mapped or not */
    /* Page cache in what is counted, beside the program: of the model's files, or of
     * processes that ended in the group. */
    struct mw_os_value model_charged;
    struct mw_os_value limit;        /* smallest of the group and all above it */
    struct mw_os_value model_cached; /* model's bytes in the page cache */
    struct mw_os_value system_cached, system_total, available, swap_used;
    struct mw_os_value swap_own;                         /* pages of this process */
    struct mw_os_value majflt, refaults;                 /* counts since the start */
    struct mw_os_value psi_memory_some10, psi_io_some10; /* hundredths of a percent */
};

struct mw_sample {
    uint64_t t_ns; /* when it was taken */
    struct mw_run run;

    enum mw_state state;
    uint32_t layer_now;
    /* Of the current answer, or the last one. */
    uint64_t n_prompt, n_prompt_done, n_decoded;
    uint64_t t_start_ns, t_first_ns, t_last_ns; /* 0: not yet */
    uint64_t prefill_ns, decode_ns;

    struct {
        uint64_t wall_ns, stall_ns, compute_ns, attention_ns, head_ns, sample_ns, lookup_ns,
            bytes_pass, n_col;
    } pass; /* the last finished one */

    /* Token i since the start (i < n_token, and not older than MW_RECENT) is
     * recent[i % MW_RECENT]: who takes samples often enough misses none. */
    uint64_t n_token;
    struct mw_token recent[MW_RECENT];

    struct {
        uint64_t bytes_read, reads, read_ns, lookup_bytes, retries, depth_gauge;
    } io;

    struct {
        uint64_t plan[MW_PLAN_ROWS], used[MW_PLAN_ROWS];
        uint64_t lent_bytes;
    } mem;

    struct {
        uint64_t tokens, capacity, bytes_used, bytes_reserved, global_bytes, sliding_bytes;
    } kv;

    /* Limits measured on this machine: bytes a second; 0: not measured. */
    uint64_t disk_limit, memory_limit;

    struct mw_os os;

    struct {
        enum mw_binds binds;
        double share;    /* 0 to 1, of the time of a token */
        char advice[24]; /* key: "more_budget", "smaller_type", "shorter_context", … */
        double advice_from, advice_to, advice_amount; /* tokens/s, tokens/s, bytes */
    } verdict;

    uint32_t n_layer; /* rows of layer: n_layer and the head */
    struct mw_sample_layer layer[MW_MAX_LAYER + 1];
};

#endif
