/*
 * memwall.h - the public interface of the engine.
 *
 * A program that chats calls mw_model_open(), mw_chat_open() and mw_chat_send().  It polls
 * mw_chat_fd() and takes events with mw_chat_next().  The chat has an engine thread of its own.
 *
 * A program that evaluates token ids itself calls mw_model_open(), mw_session_open(),
 * mw_session_eval() and mw_session_logits().  tests/example/greedy.c is such a program.
 *
 * Errors: functions that return int return 0, or -1 with *e set.  *e must be ERR_INIT before
 * the call.  A function that fails changes nothing unless its comment says so.
 *
 * Ownership: the caller frees an object that a function stores in *out with the function named
 * ..._close or ..._free.  *out is NULL after a failure.  A model must outlive its sessions,
 * chats, samplers, encoders and watchers.
 *
 * Threads: an object is used by one thread at a time.  Functions marked "any thread" may be
 * called while another thread uses the object.
 *
 * Units: sizes are bytes, rates are bytes or operations per second, times are nanoseconds if
 * the name ends in _ns.  Lengths of text are bytes of UTF-8.
 *
 * The engine does not print, exit, install signal handlers or read the environment.
 */
#ifndef MEMWALL_ENGINE_MEMWALL_H
#define MEMWALL_ENGINE_MEMWALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/units.h"
#include "engine/format/json.h"
#include "engine/format/summary.h"
#include "engine/hub/models.h"
#include "engine/machine/cage.h"
#include "engine/machine/disturb.h"
#include "engine/machine/energy.h"
#include "engine/machine/fact.h"
#include "engine/limits/limits.h"
#include "engine/limits/store.h"
#include "engine/limits/tried.h"
#include "engine/machine/machine.h"
#include "engine/plan/anchor.h"
#include "engine/plan/basis.h"
#include "engine/plan/plan.h"
#include "engine/session/option_fields.h"
#include "engine/session/wall.h"
#include "engine/telemetry/json.h"
#include "engine/telemetry/rates.h"
#include "engine/telemetry/recorder.h"
#include "engine/telemetry/replay.h"
#include "engine/telemetry/sample.h"

/* ---- program ---- */

/* "0.1.0" */
const char *mw_version(void);
/* Feature i of this build and its libraries: "io_uring", "openblas 0.3.21 SkylakeX".  NULL
 * after the last. */
const char *mw_feature(int i);
/* Returns "openblas 0.3.21 SkylakeX", or "" if the library cannot be loaded or does not get its
 * buffers.  Loads the library to ask it, and unloads it unless a model uses it. */
const char *mw_blas_name(void);
/* Whether the system refuses the library its buffers now. */
bool mw_blas_is_denied(void);
/* Kernel set i that this CPU runs, the fastest first.  NULL after the last. */
const char *mw_isa(int i);
const char *mw_chat_format(int i); /* the name of built-in chat format i; NULL after the last */

/* machine/machine.h describes this computer: struct mw_machine, mw_machine_read() and
 * mw_budget_lower().  machine/energy.h has mw_energy_start() and mw_energy_joules(),
 * machine/disturb.h notices what slowed down a measurement, machine/cage.h puts a process into
 * a memory control group, and format/json.h reads JSON: json_parse() and json_get(). */

/* ---- model ---- */

struct mw_model;

struct mw_model_info {
    char name[128]; /* safe to print on a terminal; may be "" */
    char arch[32];
    char type[16]; /* the weight type of most bytes of the layers: "Q4_K" */
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train;
    uint64_t n_param;    /* parameters of the text model */
    uint64_t file_bytes; /* of all its files */
    uint64_t hot_bytes;  /* weights that one decoded token uses */
};

/* Open a GGUF file, the first file of a split set, or a snapshot folder.  Reads the headers and
 * no weights. */
int mw_model_open(struct mw_model **out, const char *path, struct err *e);
/*
 * The same under a budget of memory_bytes; 0 means no limit.  If the program and the headers do
 * not fit it, *e (ERR_BUDGET) names the bytes they need and a budget that fits.
 */
int mw_model_open_within(struct mw_model **out, const char *path, uint64_t memory_bytes,
                         struct err *e);
void mw_model_close(struct mw_model *m);
void mw_model_info(const struct mw_model *m, struct mw_model_info *out);
/* Drop the pages of the model's files from the page cache.  Pages that a process has mapped
 * stay. */
void mw_model_drop_cache(const struct mw_model *m);
/* Bytes of the model's files that are holes: nothing is on the disk, and reading gives zeros.
 * When only the header of a file was fetched, almost all of it is a hole. */
uint64_t mw_model_hole_bytes(const struct mw_model *m);

/*
 * Published models by their shape, without a file.  A data file states the facts (known.h); the
 * plan of such a model is that of its file.
 */
struct mw_known;

#define MW_KNOWN_TYPES 4

struct mw_known_info {
    const char *name;                  /* "gemma-4-E2B"; valid until the list is closed */
    const char *types[MW_KNOWN_TYPES]; /* of its usual files, "Q4_0" */
    uint32_t n_type;
};

int mw_known_open(struct mw_known **out, const char *path, struct err *e);
void mw_known_close(struct mw_known *k);
size_t mw_known_count(const struct mw_known *k);
void mw_known_at(const struct mw_known *k, size_t i, struct mw_known_info *out);
/*
 * Find a model by name: "gemma-4-E2B:Q4_0", "google/gemma-4-E2B-it".  Upper and lower case are
 * the same.  Without a type, *label is its first one.  Returns false if it is not known, or
 * with *label NULL if the type is not.
 */
bool mw_known_find(const struct mw_known *k, const char *name, size_t *i, const char **label);
/* Write the types that names can have: "BF16, F16, ...". */
void mw_known_types(char *buf, size_t n);
/*
 * Open model i of k as a file of this type would be; k can be closed before it.  It can be
 * planned, and its limits can be measured, all but those of the disk.  Everything that reads
 * weights or text fails.  -1 with *e: ERR_UNSUPPORTED if memwall does not run this
 * architecture.
 */
int mw_model_open_known(struct mw_model **out, const struct mw_known *k, size_t i,
                        const char *label, struct err *e);
/* False for a known model. */
bool mw_model_has_file(const struct mw_model *m);
/*
 * Check whether the model can read and write text: load its tokenizer as its first use does,
 * or, if that does not fit the memory_bytes of opening, look at its counts.  Returns -1 with *e
 * if only ids can be evaluated.
 */
int mw_model_check_text(struct mw_model *m, struct err *e);

/*
 * An encoder turns text of any length into ids, in memory that does not grow with the text.  It
 * adds no begin token and recognises control tokens only if parse_special is set.
 */
struct mw_encoder;
/* Loads the tokenizer of the model if it is not loaded yet. */
int mw_encoder_new(struct mw_encoder **out, struct mw_model *m, bool parse_special,
                   struct err *e);
void mw_encoder_free(struct mw_encoder *x);
/*
 * Encode the next len bytes of the text; len 0 ends it.  *ids points to the next *n ids, valid
 * until the next call.  The encoder keeps text that further bytes could still change the ids
 * of. More than 128 KiB of such text is an error (ERR_UNSUPPORTED).
 */
int mw_encoder_push(struct mw_encoder *x, const char *text, size_t len, const uint32_t **ids,
                    size_t *n, struct err *e);
/* The id that begins every text of this model, or -1 if texts begin without one. */
int64_t mw_begin_id(const struct mw_model *m);
/* Returns sentences for the user about what the file of the vocabulary leaves open or has wrong,
 * or "".  A chat posts them. */
const char *mw_model_notice(const struct mw_model *m);

/* ---- inspect: the parts of a model file ---- */

struct mw_inspect;

/*
 * Read the headers of a model file.  A model that memwall cannot run is described as far as its
 * keys allow, and mw_inspect_problem() gives the reason.  mw_inspect_open() fails with a
 * specific error if the file is not a model; mw_inspect_open_bare() accepts such a file, so
 * that its tensors can be listed (summary.n_layer is 0).
 */
int mw_inspect_open(struct mw_inspect **out, const char *path, struct err *e);
int mw_inspect_open_bare(struct mw_inspect **out, const char *path, struct err *e);
void mw_inspect_close(struct mw_inspect *i);
/* The reason why memwall cannot run the model, or NULL if it can. */
const struct err *mw_inspect_problem(const struct mw_inspect *i);

/* The sums and tables of format/summary.h.  Valid until i is closed. */
const struct summary *mw_inspect_summary(const struct mw_inspect *i);
/* Describe tensor n of summary.n_tensor.  Returns false after the last. */
bool mw_inspect_tensor(const struct mw_inspect *i, uint32_t n, struct summary_tensor *out);

/* Read up to 64 KiB of each BF16 matrix, or of each F16 one.  Returns 0, or -1 with *e. */
int mw_inspect_exponents(const struct mw_inspect *i, bool f16, struct mw_exponents *out,
                         struct err *e);

struct mw_text_info {
    char kind[40]; /* of the tokenizer: "BPE over bytes (qwen2)" */
    uint32_t n_token, n_merge;
    char chat_format[32];  /* "gemma4", "template" (the model's own), or "raw" (none) */
    char chat_choice[400]; /* the same in words: "the model's template (evaluated)" */
    char notice[512]; /* what the vocabulary leaves open or has wrong, for the user; or "" */
};
/* Read the vocabulary.  Fails if the model has none, or one that cannot be read. */
int mw_inspect_text(const struct mw_inspect *i, struct mw_text_info *out, struct err *e);

/*
 * A vocabulary without a model.  The path names a model, a GGUF file that has only a
 * vocabulary, a folder with tokenizer.json, or that file.  Any thread.
 */
struct mw_vocab;

int mw_vocab_open(struct mw_vocab **out, const char *path, struct err *e);
void mw_vocab_close(struct mw_vocab *v);
uint32_t mw_vocab_size(const struct mw_vocab *v);
/* Returns sentences for the user about what its file leaves open or has wrong, or "". */
const char *mw_vocab_notice(const struct mw_vocab *v);

/* An encoder like that of mw_encoder_new(), without its limit of 128 KiB. */
int mw_vocab_encoder(struct mw_encoder **out, const struct mw_vocab *v, bool parse_special,
                     struct err *e);
/*
 * Decode n ids.  *text is valid UTF-8 of *len bytes and a NUL; the caller frees it with free().
 * Control tokens are left out, or spelled if show_control is set.
 */
int mw_vocab_decode(const struct mw_vocab *v, const uint32_t *ids, size_t n, bool show_control,
                    char **text, size_t *len, struct err *e);
/* Copy at most n bytes of one token, which may be a control token, to buf.  Returns the length
 * of the token, at most MW_PIECE_MAX.  A token may begin or end inside a character. */
#define MW_PIECE_MAX 1024
size_t mw_vocab_piece(const struct mw_vocab *v, uint32_t id, char *buf, size_t n);
/* "normal", "control", "user", "byte", "unknown", "unused" */
const char *mw_vocab_kind(const struct mw_vocab *v, uint32_t id);

/* ---- a conversation as the model sees it ---- */

enum mw_think { MW_THINK_DEFAULT, MW_THINK_ON, MW_THINK_OFF };

struct mw_prompt_options {
    const char *format;   /* name of a built-in chat format; NULL: the model's template */
    const char *template; /* Jinja template of template_len bytes to use instead, or NULL */
    size_t template_len;
    const char *name, *template_name; /* files of the messages and the template, for errors */
    enum mw_think think;
    bool no_generation_prompt; /* do not open an answer after the messages */
};

struct mw_prompt {
    char *text; /* as the template prints it, control tokens spelled; len bytes and a NUL */
    size_t len;
    uint32_t *ids; /* [n_id] */
    size_t n_id;
    char notice[512]; /* a sentence to show to the user, or "" */
};

/*
 * Render a JSON array of messages with the model's chat template.  Messages are objects with
 * role, content (a string or a list of parts) and any other member that the template reads.
 * mw_prompt_free() frees *out.  An error in the JSON text has its offset, an error in the
 * template its line.
 */
int mw_vocab_chat(const struct mw_vocab *v, const char *json, size_t len,
                  const struct mw_prompt_options *o, struct mw_prompt *out, struct err *e);
void mw_prompt_free(struct mw_prompt *p);

/* ---- options ---- */

enum mw_io { MW_IO_AUTO, MW_IO_DIRECT, MW_IO_BUFFERED, MW_IO_MMAP };
/* Pinned BF16 in 12 bits, without loss; auto: where it saves memory.  never: all as in the file */
enum mw_pack { MW_PACK_AUTO, MW_PACK_ALWAYS, MW_PACK_NEVER };
enum mw_blas { MW_BLAS_AUTO, MW_BLAS_ALWAYS, MW_BLAS_NEVER };
enum mw_kv { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };

const char *mw_kv_name(enum mw_kv t);               /* "q8_0" */
int mw_kv_parse(const char *name);                  /* an enum mw_kv, or -1 */
bool mw_kv_is_rotated(enum mw_kv t);                /* before rounding: q8_0 and q4_0 are */
const char *mw_io_name(enum mw_io io);              /* "direct" */
int mw_io_parse(const char *name, bool *mmap_drop); /* an enum mw_io, or -1; "mmap:drop" */
/* A sentence to show with MW_IO_MMAP: the budget does not cover mapped weights. */
const char *mw_mmap_notice(void);

/* A zeroed struct asks for the default everywhere except in kv_k and kv_v.  option_fields.h has
 * the fields. */
struct mw_options {
    MW_OPTION_FIELDS(MW_NUMBER_MEMBER, MW_TEXT_MEMBER)
};
/* The defaults, with keys and values in F16. */
void mw_options_default(struct mw_options *o);

/* The seed of a sampler.  Every number is one; not set: a new random one for each sampler. */
struct mw_seed {
    bool is_set;
    uint64_t value;
};

struct mw_sampling {
    float temp; /* 0: greedy */
    int top_k;  /* 0: all tokens */
    float top_p, min_p;
    float repeat_penalty; /* 1: off */
    uint32_t repeat_last; /* number of last tokens that are penalised */
    struct mw_seed seed;
};
/* The model's own recommendation, or else temp 0.8, top_k 40, top_p 0.95, min_p 0.05. */
void mw_sampling_default(const struct mw_model *m, struct mw_sampling *s);

/* ---- plan ---- */

/* The limits in words at Unix time now_s: "disk 2 GB/s, memory 21 GB/s, measured 3 h ago", and
 * whether they are doubtful.  "not measured" without them. */
#define MW_LIMITS_TEXT 256
void mw_limits_text(const struct mw_limits *l, int64_t now_s, char *buf, size_t n);
/* "just now", "5 min ago", "3 h ago", "2 days ago".  Returns buf. */
char *mw_age_text(char *buf, size_t n, int64_t seconds);
/* Whether any of them was measured in a bad moment, or in a buffer that a cache holds.  No advice
 * comes from such limits. */
#define MW_DOUBT "the machine was busy, or the budget too small to measure it"
bool mw_limits_doubtful(const struct mw_limits *l);

/* The mean size of the reads with which these options stream weights, which is that of the
 * reads that measure the disk; 0: unknown. */
size_t mw_read_bytes(struct mw_model *m, const struct mw_options *o);

/* Measure for about `seconds`, and up to two thirds longer if the result is doubtful, in
 * buffers of at most half of the options' budget, which are freed again.  For a model without a
 * file, the disk is left out.  Rates of weight types are not measured. */
int mw_limits_measure(struct mw_model *m, const struct mw_options *o, double seconds,
                      struct mw_limits *out, struct err *e);
/* List the weight types in out->rate that the options use enough of, without rates. */
void mw_rates_list(const struct mw_model *m, const struct mw_options *o, struct mw_limits *out);
/* Measure the listed types whose measured_s is 0, with the threads and kernels of the options,
 * for two tenths of a second each.  With a budget below 16 MiB they stay unmeasured. */
int mw_rates_measure(const struct mw_options *o, struct mw_limits *l, struct err *e);
/* Measure disk and memory alone, for models that will be in a folder: write 128 MiB to a file
 * without a name, and read it. */
int mw_limits_measure_disk(const char *folder, const struct mw_options *o, double seconds,
                           struct mw_limits *out, struct err *e);
/* Use these limits in later plans and sessions of m. */
void mw_model_set_limits(struct mw_model *m, const struct mw_limits *limits);
/* Copy the limits in use, which the work of a session corrects.  Any thread. */
void mw_model_limits(const struct mw_model *m, struct mw_limits *out);
/* Call fn when m is closed: with the limits if work corrected them, else with NULL, with the
 * anchor of m, and with its tried settings (both below). */
typedef void mw_limits_keep_fn(void *ctx, const struct mw_limits *corrected,
                               const struct plan_anchor *anchor, const struct mw_tried *tried,
                               size_t n_tried);
void mw_model_keep_limits(struct mw_model *m, mw_limits_keep_fn *fn, void *ctx);

/*
 * The anchor is a measurement: the newest tokens of an answer (plan/anchor.h).  Predictions for m
 * begin there, as long as threads, kernels, I/O and `exact` are the same.  A session measures it
 * while it answers; measured_s 0: nothing was measured.  A program can keep it with the model
 * and set it in a later run, which leaves out the time that other programs took if that was
 * more than ten minutes ago.  Any thread.
 */
void mw_model_anchor(const struct mw_model *m, struct plan_anchor *out);
void mw_model_set_anchor(struct mw_model *m, const struct plan_anchor *a);

/*
 * The settings with which m answered, the newest first (limits/tried.h).  A session adds those
 * of an answer with at least MW_TRIED_TOKENS tokens after its first one, as it goes on; tokens
 * do not count while weights are still being pinned, or if the settings changed since.  A program
 * can keep them with the model and set them in a later run.  Any thread.
 */
size_t mw_model_tried(const struct mw_model *m, struct mw_tried *list); /* [MW_TRIED_MOST] */
void mw_model_set_tried(struct mw_model *m, const struct mw_tried *list, size_t n);
/* Set the largest memory of the last answer, which had the plan p. */
void mw_model_tried_peak(struct mw_model *m, const struct plan *p, uint64_t bytes);
/* Copy the settings of options to a record, and back; the other options stay. */
void mw_tried_of_options(struct mw_tried *t, const struct mw_options *o);
void mw_tried_to_options(const struct mw_tried *t, struct mw_options *o);

/* ---- doctor ---- */

/* The receiver of facts while a machine is examined (machine/fact.h). */
struct mw_doctor {
    mw_fact_fn *fact;
    void (*step)(void *ctx, const char *doing); /* the measurement that begins now; or NULL */
    void *ctx;
    const _Atomic bool *cancelled; /* ends with ERR_CANCELLED; may be NULL */
};

/* Examine memory, a disk, and the processors, for a few seconds each.  -1 with *e: it could not
 * be completed, after some facts. */
int mw_doctor_memory(const struct mw_doctor *d, struct err *e);
/* Read the largest file of m, or with m NULL a temporary file of 128 MiB in folder. */
int mw_doctor_disk(const struct mw_doctor *d, const struct mw_model *m, const char *folder,
                   struct err *e);
int mw_doctor_arithmetic(const struct mw_doctor *d, struct err *e);

/* The way in which weights are read, and the reason for it. */
struct mw_io_choice {
    const char *name; /* "direct", "buffered" or "mmap"; static */
    char reason[MW_REASON_MAX];
};
int mw_io_choose(const struct mw_model *m, const struct mw_options *o, struct mw_io_choice *out,
                 struct err *e);

/*
 * The matrices of a prompt can be multiplied by the kernels or by OpenBLAS.  These are the
 * rates of both, with one thread, for one CPU, kernel set, value of `exact` and version of
 * OpenBLAS. MW_BLAS_AUTO chooses for each weight type from rates with MW_PRODUCT_COLS columns;
 * budget and threads have no influence.  Store the rates: the two round differently, so a
 * different choice gives different tokens.
 */
#define MW_PRODUCTS_MAX 8
#define MW_PRODUCT_COLS 64

struct mw_product {
    char type[16];                        /* of weights */
    double kernels_flops_s, blas_flops_s; /* blas is 0 without the library */
};
struct mw_products {
    char kernels[16]; /* name of the kernel set; "": not measured */
    bool exact;
    char blas[64];       /* mw_blas_name(); "": it cannot be used */
    bool is_blas_denied; /* only because the system refuses its buffers, now and here */
    uint32_t n;
    struct mw_product product[MW_PRODUCTS_MAX];
};

/* Measure each weight type of the model's layers with n_col columns, for a few hundredths of a
 * second, in a few MiB that are freed again.  Loads OpenBLAS and unloads it. */
int mw_products_measure(const struct mw_model *m, const struct mw_options *o, uint32_t n_col,
                        struct mw_products *out, struct err *e);
/* Fill in the names without measuring; rates are 0. */
void mw_products_list(const struct mw_model *m, const struct mw_options *o,
                      struct mw_products *out);
/* Let later plans and sessions of m choose by these rates, measured with MW_PRODUCT_COLS. */
void mw_model_set_products(struct mw_model *m, const struct mw_products *p);
/* Returns whether OpenBLAS multiplies any matrix with these options. */
bool mw_products_use_blas(const struct mw_model *m, const struct mw_options *o);
/* Returns a sentence for the user if OpenBLAS should multiply with these options, but a plan or
 * session found that the system refuses its buffers; else "". */
const char *mw_products_notice(const struct mw_model *m, const struct mw_options *o);
/* Describe the choice in words, in at most MW_PRODUCTS_TEXT bytes with the NUL: "the avx2
 * kernels", or "openblas 0.3.21 Haswell in prompts from 7 tokens on, the generic kernels
 * otherwise". */
#define MW_PRODUCTS_TEXT 128
void mw_products_text(const struct mw_model *m, const struct mw_options *o, char *buf,
                      size_t n);

/*
 * Plan the memory of a session with these options and predict its speed.  Allocates nothing. If
 * the smallest plan exceeds the budget, fails with ERR_BUDGET and stores that plan in *out.
 */
int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e);

/* Make the plan and predict how a run is after n_token tokens (plan/outlook.h). */
int mw_plan_outlook(struct mw_model *m, const struct mw_options *o, const struct plan_run *run,
                    struct plan_outlook *out, struct err *e);

/* Make the plan of mw_plan() and keep what it was made from, to explain it. */
int mw_plan_basis(struct mw_model *m, const struct mw_options *o, struct plan_basis *out,
                  struct err *e);

/* Find the smallest budget for the context of these options, and the largest context for their
 * budget; 0 if none fits.  Budget 0, which is chosen for the context, is as large as it may
 * become. */
int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e);

/* The budget from which on nothing is read for each token but rows of lookup tables: advice,
 * charts and sweeps end there.  0: there is none, or the model cannot run with these options. */
uint64_t mw_reads_nothing_budget(struct mw_model *m, const struct mw_options *o);

/* The budget that is chosen with these options on a machine where this much memory is free
 * (plan_default_budget() in plan/plan.h). */
uint64_t mw_default_budget(struct mw_model *m, const struct mw_options *o, uint64_t free_bytes);

/* Bytes of keys and values that one token adds to all layers with full attention, and to all
 * with a sliding window, for the types of these options. */
void mw_kv_token_bytes(const struct mw_model *m, const struct mw_options *o, uint64_t *global,
                       uint64_t *sliding);

/*
 * Maximum bytes of text that are kept for the context of these options: of one message, of
 * queued messages, of a conversation.  Longer text cannot fit the context.  The plan counts it
 * in the item "program".
 */
uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o);

/* ---- diagnosis: what limits answers, and what would make them faster ---- */

/*
 * The one answer to both questions: every command, panel and report prints this.  Measured
 * values come first, and predictions begin at them.
 */
struct mw_diagnosis {
    bool is_measured; /* by the newest tokens; otherwise predicted */
    bool is_prompt;   /* measured while a prompt is evaluated */
    bool is_fast;     /* people cannot read faster: there is no advice */
    bool is_doubtful; /* the limits are, and no token was measured: there is no advice */
    double tps;       /* tokens per second of answers; 0: unknown */
    double full_tps;  /* predicted for the same settings with a full context; 0: unknown */
    enum mw_binds binds;
    double share;          /* of the time of a token that the bound takes */
    struct mw_shares part; /* how this time divides; all 0: unknown */
    uint64_t read_bytes;   /* predicted: weights that a token reads from the disk */
    /* "more_budget", "less_budget" (of budget_bytes), "smaller_kv" (q8_0), "direct_io",
     * "smaller_type", "shorter_context", "rows_only", "other_programs"; "": none */
    char advice[24];
    uint64_t budget_bytes; /* the proposed one */
    double to_tps;         /* with the proposal; 0: not predicted */
    char held_back[96];    /* the limit that allows no larger budget: "MemAvailable"; or "" */
};

/*
 * Diagnose answers of m with options o.  s is a sample of a session of m, whose verdict
 * mw_watch_complete() filled in: if it has these options, its tokens are the measurement, and
 * else they are where the prediction begins.  NULL: predict for a full context.
 * *out is the diagnosis before, or zeroed: a proposed size that changes little stays.
 * A proposal gains 10 % or more, and no budget is proposed that this machine cannot give now.
 */
int mw_diagnose(struct mw_model *m, const struct mw_options *o, const struct mw_sample *s,
                struct mw_diagnosis *out, struct err *e);

/* Write a diagnosis to the verdict and the predictions of a sample, and read it from there, as
 * it is recorded. */
void mw_diagnosis_to_sample(const struct mw_diagnosis *d, struct mw_sample *s);
void mw_diagnosis_of_sample(const struct mw_sample *s, struct mw_diagnosis *d);

/* "disk-bound: 68 % of each token waits; --memory 1152M for ~3.6 tok/s"; "" if nothing is known.
 * before is what comes before a setting: "--", or "F10: /".  All return buf. */
#define MW_DIAGNOSIS_TEXT 256
char *mw_diagnosis_text(const struct mw_diagnosis *d, const char *before, char *buf, size_t n);
/* The advice alone, and the reason why there is none. */
char *mw_diagnosis_advice(const struct mw_diagnosis *d, const char *before, char *buf, size_t n);
char *mw_diagnosis_why_not(const struct mw_diagnosis *d, char *buf, size_t n);
/* Are answers so fast that nobody waits, whatever their bound is? */
bool mw_diagnosis_needs_nothing(const struct mw_diagnosis *d);
/* Returns the name of the bound, "disk-bound", or "fast" if nothing is worth a change. */
const char *mw_diagnosis_label(const struct mw_diagnosis *d);
/* The same where space is short: "disk". */
const char *mw_diagnosis_word(const struct mw_diagnosis *d);
/* The setting alone: "memory 1152M", "kv q8_0"; "" if the advice is not one. */
char *mw_diagnosis_command(const struct mw_diagnosis *d, char *buf, size_t n);

/* session/wall.h has the wall: mw_wall_begin() and mw_wall_step() make the curves of
 * mw_diagnose() over budgets and contexts. */

/* ---- session: ids in, logits out ---- */

struct mw_session;

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e);
void mw_session_close(struct mw_session *s);

/* Receives the logits [n_vocab] that follow the id at position pos.  Returns 0, or -1 with *e
 * to stop the evaluation. */
typedef int mw_row_fn(void *ctx, uint32_t pos, const float *logits, struct err *e);

/*
 * Evaluate n ids after those that the session holds.  row receives the logits of each of them;
 * if it is NULL, only those of the last id are computed, for mw_session_logits().  After a
 * failure or a cancel the session also holds the chunks that were finished: see
 * mw_session_tokens().
 */
int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e);
/* [n_vocab] of the last id, valid until the session changes; NULL if there are none. */
const float *mw_session_logits(const struct mw_session *s);
/* Number of tokens that the session holds. */
uint32_t mw_session_tokens(const struct mw_session *s);

/* Keep only the first n tokens.  If the rings of sliding layers no longer have the keys and
 * values that this needs, the session goes back further, to its last copy of them.  *kept is
 * the number of tokens that it then holds. */
int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e);

/* Change the budget.  Memory beyond a smaller budget is returned to the system; the tokens that
 * the session holds stay. */
int mw_session_set_memory(struct mw_session *s, uint64_t memory_bytes, struct err *e);

void mw_session_plan(const struct mw_session *s, struct plan *out);
void mw_session_sample(const struct mw_session *s, struct mw_sample *out); /* any thread */
/* Stop the evaluation that is running within one block; it fails with ERR_CANCELLED. */
void mw_session_cancel(struct mw_session *s); /* any thread */

/* A sampler chooses the next id from a row of logits, which it changes, and the ids before. */
struct mw_sampler;
int mw_sampler_new(struct mw_sampler **out, const struct mw_model *m,
                   const struct mw_sampling *s, struct err *e);
void mw_sampler_free(struct mw_sampler *p);
uint32_t mw_sampler_next(struct mw_sampler *p, float *logits, const uint32_t *before,
                         size_t n_before);

/* ---- chat: a conversation on a thread of its own ---- */

struct mw_chat;

enum mw_role { MW_SYSTEM, MW_USER, MW_ASSISTANT };

#define MW_STOP_BYTES 256 /* maximum length of a stop string */

struct mw_chat_options {
    MW_CHAT_OPTION_FIELDS(MW_NUMBER_MEMBER, MW_TEXT_MEMBER, MW_PART_MEMBER)
};

/*
 * How an answer that was cut goes on exactly where it was.  The last n_held bytes of its text,
 * or of its thinking, were held back until the cut: they may be the beginning of a mark or of a
 * stop string.  If the answer goes on, they come again, or they turn out to be no text.
 */
struct mw_cut {
    const uint32_t *ids; /* [n_ids] all tokens of the answer; 0: make them from the text */
    size_t n_ids, n_held;
    bool holds_thinking;
};
#define MW_CUT_IDS 32768 /* a longer answer has no ids */

struct mw_message {
    enum mw_role role;
    const char *text; /* UTF-8, len bytes */
    size_t len;
    const char *thinking; /* of an answer, thinking_len bytes; or NULL */
    size_t thinking_len;
    struct mw_cut cut; /* of the last message, if it is an answer that was cut */
    bool is_summary;   /* the first message: its answer is a summary of the older ones, which
                          the model no longer needs */
    bool is_aside;     /* an answer of mw_chat_aside(); its text and its question are not used */
};

enum mw_done {
    MW_DONE_STOP,      /* the model ended its turn, or a stop string came */
    MW_DONE_LENGTH,    /* n_predict was reached */
    MW_DONE_CANCELLED, /* mw_chat_cancel(); the text so far stays */
    MW_DONE_CONTEXT,   /* the context is full */
    MW_DONE_ERROR,     /* see the event's err; the chat can go on */
};

/* Why an answer has no text, beside the way in which it ended. */
enum mw_empty {
    MW_NOT_EMPTY,
    MW_EMPTY_NOTHING,   /* it ended at once, or another turn began */
    MW_EMPTY_HIDDEN,    /* its tokens have no text, such as control tokens */
    MW_EMPTY_BLANK,     /* no visible character */
    MW_EMPTY_THINKING,  /* it ended inside the thinking */
    MW_EMPTY_THOUGHT,   /* it ended after the thinking */
    MW_EMPTY_STOP_TEXT, /* a stop string came first */
};

/* The cost of an answer, as measured. */
struct mw_receipt {
    enum mw_done done;
    enum mw_empty empty;
    bool is_continuation; /* it goes on with an answer that was cut; n_decoded is this part */
    bool has_stop_text;   /* a stop string ended it */
    /* If it is empty because of its thinking: thinking can still be switched off, or the chat
     * format has no switch for it. */
    bool can_think_less, has_no_switch;
    uint32_t n_prompt; /* tokens that had to be evaluated */
    uint32_t n_prompt_done; /* of them: fewer if the answer was stopped before its first token */
    uint32_t n_reused; /* tokens whose keys and values were still there */
    uint32_t n_decoded;
    uint64_t first_ns; /* from the start of the work to the first token */
    uint64_t prefill_ns, decode_ns;
    uint64_t bytes_read;
    uint64_t stall_ns; /* spent waiting for the disk while decoding */
    /* While decoding with a mixture of experts: those that were in memory when a token chose
     * them, those that were not, and the bytes read for them. */
    uint64_t expert_hits, expert_misses, expert_bytes;
    uint64_t peak_charged;  /* bytes charged to the cgroup; 0: unknown */
    uint64_t peak_resident; /* bytes, if peak_charged is unknown; 0: unknown, too */
};

enum mw_event_kind {
    MW_EVENT_READY,    /* the model is loaded; plan and sample are meaningful */
    MW_EVENT_STARTED,  /* work on a message begins: n of total prompt tokens are evaluated */
    MW_EVENT_PROGRESS, /* n of total of these tokens are done */
    MW_EVENT_TEXT,     /* a piece of the answer */
    MW_EVENT_THOUGHT,  /* all pieces of the answer that came as text were thinking: the model
                          closed its thinking without having opened it */
    MW_EVENT_DONE,     /* the answer is over: receipt, err, has_answer, cut; text: the bytes
                          that cut describes */
    MW_EVENT_PLAN,     /* new options are in force: plan */
    MW_EVENT_NOTICE,   /* a sentence to show to the user: text */
    MW_EVENT_REFUSED,  /* new options were refused, and the old ones are in force: err */
    MW_EVENT_ERROR,    /* another command failed and changed nothing: err */
};

struct mw_event {
    enum mw_event_kind kind;
    const char *text; /* valid UTF-8, unsafe for a terminal; valid until the next event */
    size_t len;
    bool is_thinking;
    uint64_t n, total;
    struct mw_receipt receipt;
    struct mw_cut cut; /* valid until the next event */
    bool has_answer;   /* the conversation has an answer, which may be without text */
    struct plan plan;
    struct err err;
};

/*
 * Start the engine thread, which loads the model and posts MW_EVENT_READY, or MW_EVENT_ERROR if
 * it cannot (ERR_BUDGET: the model does not fit).  mw_chat_set() then tries again with other
 * options.  The options are copied with their strings.
 */
int mw_chat_open(struct mw_chat **out, struct mw_model *m, const struct mw_chat_options *o,
                 struct err *e);
/*
 * Ask the engine thread to end, even while it loads the model, and wait for it for at most ms
 * milliseconds.  Returns whether it has ended.  If not, it is stuck in the kernel, on a disk
 * that does not respond: close neither the chat nor its model, and let the program exit.
 */
bool mw_chat_stop(struct mw_chat *c, unsigned ms);
/* Stop loading or answering, wait for the thread, and free the chat. */
void mw_chat_close(struct mw_chat *c);

/* A descriptor that is readable while an event is queued.  Do not read from it. */
int mw_chat_fd(struct mw_chat *c);
/* Take the next event; false if none is queued.  Queued pieces of text are joined into one. */
bool mw_chat_next(struct mw_chat *c, struct mw_event *out);

/*
 * Commands, for any thread.  They are queued, run one after the other, and report by events.
 * Texts are copied.  They fail at once only if they cannot be queued.
 */
int mw_chat_send(struct mw_chat *c, const char *text, size_t len, struct err *e);
/* The same, for an answer of at most n_predict tokens, whatever the options say; 0: as they
 * say. */
int mw_chat_send_within(struct mw_chat *c, const char *text, size_t len, uint32_t n_predict,
                        struct err *e);
int mw_chat_continue(struct mw_chat *c, struct err *e); /* go on with a stopped answer */
int mw_chat_retry(struct mw_chat *c, struct err *e);    /* replace the last answer */
/*
 * Add a question and an answer that did not come from the model.  They count as messages, but
 * the model does not see them, so that they take no tokens.  Their texts are the caller's.
 * Posts no event.
 */
int mw_chat_aside(struct mw_chat *c, struct err *e);
/* Keep the first n messages, not counting the system message.  Posts no event. */
int mw_chat_rewind(struct mw_chat *c, size_t n, struct err *e);
/*
 * Continue a saved conversation.  It is evaluated with the next message.  Of a long
 * conversation pass only the newest messages, up to mw_text_bytes() of text, and in n_before
 * the number of older ones.  Those cannot fit the context, unless the first message is a
 * summary of them: the next answer ends with MW_DONE_CONTEXT, or they are dropped if ctx_shift
 * is set.  Ids that do not make the text of their message are ignored.  Posts no event.
 */
int mw_chat_restore(struct mw_chat *c, const struct mw_message *messages, size_t n,
                    size_t n_before, struct err *e);
/*
 * Change any options.  Posts MW_EVENT_PLAN (MW_EVENT_READY if the model was not loaded), or
 * MW_EVENT_REFUSED.
 *
 * An answer that is being made goes on with the new options from its next pass, if
 * mw_keeps_answer() allows that and the new context holds its tokens.  Otherwise the change
 * waits for the end of the answer, and later changes wait for it.  Such a change overtakes
 * messages in the queue only if it was queued during the answer.  A new n_predict applies from
 * the next answer on.
 */
int mw_chat_set(struct mw_chat *c, const struct mw_chat_options *o, struct err *e);
/* The plan that mw_chat_set() would make with these options.  Values that the chat has chosen
 * itself stay as they are: a budget of 0, for example, is not chosen again. */
int mw_chat_plan(struct mw_chat *c, const struct mw_options *o, struct plan *out,
                 struct err *e);
/* Whether an answer of m can go on with the options `then` in place of `now`.  Without a model,
 * NULL, by the options alone; so is the next. */
bool mw_keeps_answer(const struct mw_model *m, const struct mw_chat_options *now,
                     const struct mw_chat_options *then);
/* The change from *now to *refused was refused, and *later was requested after it: take the refused
 * values out of *later, which depends only on what it changes itself.  Texts of *later may then be
 * those of *now. */
void mw_options_without(const struct mw_chat_options *now, const struct mw_chat_options *refused,
                        struct mw_chat_options *later);
/* Whether keys and values can be used on.  If not, the next message evaluates the conversation
 * again. */
bool mw_keeps_kv(const struct mw_model *m, const struct mw_options *now,
                 const struct mw_options *then);
/* Whether both contexts rotate keys alike: longrope has other frequencies in a long context. */
bool mw_rotates_alike(const struct mw_model *m, const struct mw_options *a,
                      const struct mw_options *b);
/* Stop the answer within one block, and drop queued messages: each posts MW_EVENT_DONE with
 * MW_DONE_CANCELLED.  Not queued itself. */
void mw_chat_cancel(struct mw_chat *c);

/* Any thread, at any time. */
void mw_chat_sample(struct mw_chat *c, struct mw_sample *out);
bool mw_chat_is_busy(struct mw_chat *c);

/* Tokens of the conversation.  While the chat works, the tokens whose keys and values are held;
 * otherwise those that come before the next message, which are fewer after going back. */
uint32_t mw_chat_tokens(struct mw_chat *c);

/* The cost of sending a text of n_token tokens, from the plan and from rates measured so far.
 */
struct mw_cost {
    uint32_t n_token;    /* of the text, template included */
    uint32_t n_again;    /* of the conversation, evaluated again before it */
    uint32_t n_ctx_left; /* free tokens of the context, before the text */
    double seconds;      /* until the first token; 0: nothing is measured yet */
    bool is_at_least;    /* seconds are of the disk alone: arithmetic is not measured yet */
    uint64_t bytes;      /* read from the disk */
};
int mw_chat_cost(struct mw_chat *c, uint32_t n_token, struct mw_cost *out, struct err *e);
/* The cost of evaluating the whole conversation again with another plan: n_again, seconds and
 * bytes. */
void mw_chat_cost_again(struct mw_chat *c, const struct plan *plan, struct mw_cost *out);

/* ---- models fetched from a hub ---- */

#include "engine/hub/pull.h"

/* ---- figures of the operating system, for programs that show a session ---- */

/*
 * A watcher reads the kernel's figures twice a second, on a thread of its own, and completes
 * samples with them.
 */
struct mw_watch;
int mw_watch_new(struct mw_watch **out, struct mw_model *m, struct err *e);
void mw_watch_free(struct mw_watch *w);
/* Fill in sample->os, and the diagnosis of the sample: its verdict, and its predictions. */
void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample);
/* Measure the largest memory of an answer: peak_charged and peak_resident of its receipt. */
void mw_watch_begin_answer(struct mw_watch *w);
void mw_watch_end_answer(struct mw_watch *w, uint64_t *peak_charged, uint64_t *peak_resident);

/* ---- mapped files that are truncated ---- */

/*
 * For a handler of SIGBUS with code BUS_ADRERR.  If address is in a mapped model file
 * (MW_IO_MMAP), replaces its page with zeros and returns true: the handler can return, and the
 * evaluation fails with an error that names the file.  Returns false if the signal has another
 * cause.  Without such a handler a truncated file kills the process.  Async-signal-safe.
 */
bool mw_mapping_repair(const void *address);

/* ---- output files ---- */

struct mw_output {
    const char *path;
    bool replace;           /* replace an existing regular file */
    const char *to_replace; /* the option that allows it, for the message: "--force" */
};

/*
 * Open a file that the user named, empty, for writing.  Refuses an existing file unless
 * o->replace is set, every file of the model m (which may be NULL), and special files except
 * /dev/null, /dev/stdout, /dev/stderr and /dev/fd/N.  Does not wait for a reader of a FIFO.
 * Returns a descriptor, or -1 with *e.
 */
int mw_output_open(const struct mw_model *m, const struct mw_output *o, struct err *e);

/* Refuse the same files, without opening one: for a file that will be renamed to o->path. */
int mw_output_check(const struct mw_model *m, const struct mw_output *o, struct err *e);

/* ---- recording and replay of telemetry (memwall-telemetry(5)) ---- */

/* telemetry/recorder.h, replay.h and json.h have struct mw_recorder, struct mw_replay and
 * mw_sample_json(). */

#endif
