/*
 * memwall.h - the engine's only face.
 *
 * A program that chats: mw_model_open, mw_chat_open, then mw_chat_send and a loop that
 * polls mw_chat_fd and takes events with mw_chat_next.  The chat owns an engine thread;
 * every call below that is marked "any thread" may be made while it works.
 *
 * A program that evaluates ids itself (eval, bench): mw_model_open, mw_session_open,
 * mw_session_eval, mw_session_logits.  A session belongs to the thread that uses it.
 *
 * Functions return 0, or -1 with *e set.  Nothing here prints, exits, installs signal
 * handlers or reads the environment.
 */
#ifndef MEMWALL_ENGINE_MEMWALL_H
#define MEMWALL_ENGINE_MEMWALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/units.h"
#include "engine/format/summary.h"
#include "engine/machine/machine.h"
#include "engine/plan/plan.h"
#include "engine/telemetry/json.h"
#include "engine/telemetry/rates.h"
#include "engine/telemetry/recorder.h"
#include "engine/telemetry/replay.h"
#include "engine/telemetry/sample.h"

/* ---- program ---- */

/* "0.1.0" */
const char *mw_version(void);
/* What the build and its libraries offer: "io_uring", "openblas 0.3.21 SkylakeX"; index from 0,
 * NULL at the end. */
const char *mw_feature(int i);
/* "openblas 0.3.21 SkylakeX", or "" if it cannot be loaded.  Loads the library, and unloads it
 * unless a model uses it. */
const char *mw_blas_name(void);
/* Kernel sets that run on this CPU, best first; NULL at the end. */
const char *mw_isa(int i);

/* What this computer is: struct mw_machine, mw_machine_read() and mw_budget_lower()
 * (machine/machine.h). */

/* ---- model ---- */

struct mw_model;

struct mw_model_info {
    char name[128]; /* cleaned for a terminal; may be "" */
    char arch[32];
    char type[16]; /* of most weight bytes */
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train;
    uint64_t n_param;    /* that are used */
    uint64_t file_bytes; /* of all files */
    uint64_t hot_bytes;  /* what a decoded token uses */
};

/* Open a GGUF file, the first of a split set, or a snapshot folder.  Headers only. */
int mw_model_open(struct mw_model **out, const char *path, struct err *e);
/*
 * The same under a budget, which the headers must fit beside the program: -1 with *e
 * (ERR_BUDGET) names what they need and what would fit.  0: no limit.
 */
int mw_model_open_within(struct mw_model **out, const char *path, uint64_t memory_bytes,
                         struct err *e);
void mw_model_close(struct mw_model *m);
void mw_model_info(const struct mw_model *m, struct mw_model_info *out);

/*
 * Text of any length to ids, in memory that does not grow with it.  No begin token is
 * added; control tokens are recognised only if parse_special is set.
 */
struct mw_encoder;
/* Loads the tokenizer. */
int mw_encoder_new(struct mw_encoder **out, struct mw_model *m, bool parse_special,
                   struct err *e);
void mw_encoder_free(struct mw_encoder *x);
/*
 * Take the len bytes that follow; len 0 ends the text.  *ids are the next *n ids, valid
 * until the next call.  The encoder keeps text whose ids are not certain yet; more than
 * 128 KiB of it without a place where it can be cut is an error (ERR_UNSUPPORTED).
 */
int mw_encoder_push(struct mw_encoder *x, const char *text, size_t len, const uint32_t **ids,
                    size_t *n, struct err *e);
/* The id that stands before every text of this model; -1: there is none. */
int64_t mw_begin_id(const struct mw_model *m);

/* ---- inspect: what a model file consists of ---- */

struct mw_inspect;

/*
 * Headers only.  A model that memwall does not run is described as far as its keys say, and
 * mw_inspect_problem tells why it does not run.  Files of another kind are refused by name;
 * opened bare, their tensors can still be listed (summary.n_layer is 0).
 */
int mw_inspect_open(struct mw_inspect **out, const char *path, struct err *e);
int mw_inspect_open_bare(struct mw_inspect **out, const char *path, struct err *e);
void mw_inspect_close(struct mw_inspect *i);
/* Why memwall cannot run the model; NULL if it can. */
const struct err *mw_inspect_problem(const struct mw_inspect *i);

/* The sums and tables of format/summary.h; as long as i lives. */
const struct summary *mw_inspect_summary(const struct mw_inspect *i);
/* Tensor n of summary.n_tensor; false behind the last. */
bool mw_inspect_tensor(const struct mw_inspect *i, uint32_t n, struct summary_tensor *out);

struct mw_text_info {
    char kind[40]; /* of the tokenizer: "BPE over bytes (qwen2)" */
    uint32_t n_token, n_merge;
    char chat_format[32];  /* "gemma4", "template" (the model's own); "raw": there is none */
    char chat_choice[400]; /* the same in words: "the model's template (evaluated)" */
};
/* Reads the vocabulary.  -1 with *e if the model has none that can be read. */
int mw_inspect_text(const struct mw_inspect *i, struct mw_text_info *out, struct err *e);

/*
 * A vocabulary by itself: of a model, of a GGUF that holds nothing else, of a folder with
 * tokenizer.json, or that file.  Any thread may use it.
 */
struct mw_vocab;

int mw_vocab_open(struct mw_vocab **out, const char *path, struct err *e);
void mw_vocab_close(struct mw_vocab *v);
uint32_t mw_vocab_size(const struct mw_vocab *v);

/* An encoder without the limit of text that cannot be cut. */
int mw_vocab_encoder(struct mw_encoder **out, const struct mw_vocab *v, bool parse_special,
                     struct err *e);
/* The text of ids, valid UTF-8 with a NUL behind it, to be freed.  Control tokens give
 * nothing, or what they are spelled as if show_control is set. */
int mw_vocab_decode(const struct mw_vocab *v, const uint32_t *ids, size_t n, bool show_control,
                    char **text, size_t *len, struct err *e);
/* The bytes of one token, also of a control token, at most n into buf; returns how many
 * there are.  They may be no whole characters.  No token has more than MW_PIECE_MAX. */
#define MW_PIECE_MAX 1024
size_t mw_vocab_piece(const struct mw_vocab *v, uint32_t id, char *buf, size_t n);
/* "normal", "control", "user", "byte", "unknown", "unused" */
const char *mw_vocab_kind(const struct mw_vocab *v, uint32_t id);

/* ---- a conversation as the model sees it ---- */

enum mw_think { MW_THINK_DEFAULT, MW_THINK_ON, MW_THINK_OFF };

struct mw_prompt_options {
    const char *format;   /* built-in chat format by name; NULL: the model's template */
    const char *template; /* a Jinja template of template_len bytes in its place, or NULL */
    size_t template_len;
    const char *name, *template_name; /* of the messages and of the template, for errors */
    enum mw_think think;
    bool no_generation_prompt; /* leave out what makes the model answer */
};

struct mw_prompt {
    char *text; /* as the template prints it, control tokens spelled; a NUL follows */
    size_t len;
    uint32_t *ids; /* [n_id] */
    size_t n_id;
    char notice[512]; /* something the person must know; "": nothing */
};

/*
 * Render a JSON array of messages with the model's chat template.  Messages are objects with
 * role, content (a string, or a list of parts) and whatever else the template reads.  *out is
 * freed with mw_prompt_free.  Errors of the JSON text have its offset, those of the template
 * its line.
 */
int mw_vocab_chat(const struct mw_vocab *v, const char *json, size_t len,
                  const struct mw_prompt_options *o, struct mw_prompt *out, struct err *e);
void mw_prompt_free(struct mw_prompt *p);

/* ---- options ---- */

enum mw_io { MW_IO_AUTO, MW_IO_DIRECT, MW_IO_BUFFERED, MW_IO_MMAP };
enum mw_blas { MW_BLAS_AUTO, MW_BLAS_ALWAYS, MW_BLAS_NEVER };
enum mw_kv { MW_KV_F32, MW_KV_F16, MW_KV_Q8_0, MW_KV_Q4_0 };

const char *mw_kv_name(enum mw_kv t);               /* "q8_0" */
int mw_kv_parse(const char *name);                  /* -1: unknown */
bool mw_kv_is_rotated(enum mw_kv t);                /* before it is rounded: q8_0, q4_0 */
const char *mw_io_name(enum mw_io io);              /* "direct" */
int mw_io_parse(const char *name, bool *mmap_drop); /* "mmap:drop"; -1: unknown */
/* A sentence for the person: mapped weights are page cache, which the budget does not cover. */
const char *mw_mmap_notice(void);

struct mw_options {
    uint64_t
        memory_bytes; /* the budget, see mw_budget_lower; 0: chosen from what is available */
    uint32_t n_ctx;   /* 0: 4096, or what the model was trained for if less */
    enum mw_kv kv_k, kv_v;
    enum mw_io io;
    bool mmap_drop;
    bool no_uring;
    int n_thread;      /* 0: all of the machine's */
    bool exact;        /* float activations everywhere */
    enum mw_blas blas; /* long prompts through OpenBLAS; auto: as mw_model_set_products says */
    const char *isa;   /* kernel set by name; NULL: the best; must outlive the session */
    uint32_t chunk;    /* tokens of a prompt at once; 0: planned */
    uint32_t n_logit_row; /* rows of logits made at once by mw_session_eval; 0: 1 */
    bool ctx_shift;       /* context full: drop the oldest turns and go on */
    /* Where copies of turns may lie that memory has no room for, in files without a name;
     * NULL: nowhere. */
    const char *cache_folder;
};
void mw_options_default(struct mw_options *o);

struct mw_sampling {
    float temp; /* 0: greedy */
    int top_k;  /* 0: all */
    float top_p, min_p;
    float repeat_penalty; /* 1: none */
    uint32_t repeat_last; /* tokens that the penalty looks back */
    uint64_t seed;        /* 0: a new one each time */
};
/* The model's own recommendation, else temp 0.8, top_k 40, top_p 0.95, min_p 0.05. */
void mw_sampling_default(const struct mw_model *m, struct mw_sampling *s);

/* ---- plan ---- */

/*
 * What this machine gives, measured: the limits that predictions and verdicts stand on.
 * They belong to a machine, a file system and a moment; who measures keeps them.
 */
struct mw_limits {
    double disk_bytes_s;   /* reading the model's file as the options say; 0: not measured */
    double memory_bytes_s; /* reading memory with the options' threads */
    double flops_s;        /* multiplying the model's matrices, as a prompt does */
    /* Both ways to read, for --io auto; 0: not compared. */
    double direct_bytes_s, buffered_bytes_s;
};

/* Measure for about so many seconds; takes at most half of the options' budget for its
 * buffers, and gives it back. */
int mw_limits_measure(const struct mw_model *m, const struct mw_options *o, double seconds,
                      struct mw_limits *out, struct err *e);
/* Plans made and sessions opened from now on use these. */
void mw_model_set_limits(struct mw_model *m, const struct mw_limits *limits);

/* How the options read weights: "direct", "buffered" or "mmap", and why. */
struct mw_io_choice {
    const char *name;
    char reason[MW_REASON_MAX];
};
int mw_io_choose(const struct mw_model *m, const struct mw_options *o, struct mw_io_choice *out,
                 struct err *e);

/*
 * Rates of the two that can multiply the matrices of a prompt, with one thread: the kernels
 * and OpenBLAS.  They belong to a CPU, a kernel set, `exact`, and a version of OpenBLAS.
 * MW_BLAS_AUTO chooses from rates with MW_PRODUCT_COLS columns, weight type by weight type;
 * the budget and the threads have no influence.  Keep them: the two round differently.
 */
#define MW_PRODUCTS_MAX 8
#define MW_PRODUCT_COLS 64

struct mw_product {
    char type[16];                        /* of weights */
    double kernels_flops_s, blas_flops_s; /* blas 0: there is no library */
};
struct mw_products {
    char kernels[16]; /* name of the set; "": not measured */
    bool exact;
    char blas[64]; /* mw_blas_name(); "": it cannot be loaded */
    uint32_t n;
    struct mw_product product[MW_PRODUCTS_MAX];
};

/* Measure the weight types of the model's layers with n_col columns, for a few hundredths of
 * a second each, in some MiB that are given back.  Loads OpenBLAS and unloads it again. */
int mw_products_measure(const struct mw_model *m, const struct mw_options *o, uint32_t n_col,
                        struct mw_products *out, struct err *e);
/* The same without measuring: names, and rates of 0. */
void mw_products_list(const struct mw_model *m, const struct mw_options *o,
                      struct mw_products *out);
/* Plans made and sessions opened from now on choose from these (of MW_PRODUCT_COLS). */
void mw_model_set_products(struct mw_model *m, const struct mw_products *p);
/* Does OpenBLAS multiply anything under these options? */
bool mw_products_use_blas(const struct mw_model *m, const struct mw_options *o);
/* Who multiplies the matrices: "the avx2 kernels", or "openblas 0.3.21 Haswell in prompts from
 * 7 tokens on, the generic kernels otherwise".  At most MW_PRODUCTS_TEXT bytes with the NUL. */
#define MW_PRODUCTS_TEXT 128
void mw_products_text(const struct mw_model *m, const struct mw_options *o, char *buf,
                      size_t n);

/*
 * What these options would take and how fast that would be: arithmetic only.  Returns
 * -1 with *e (ERR_BUDGET) and the floor's table in *out when it does not fit.
 */
int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e);

/* The smallest budget and the largest context that fit; 0: none does. */
int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e);

/*
 * The most bytes of text that are held for a context of these options: of one message, of
 * messages that wait, of a conversation.  Longer text cannot fit the context.  The plan
 * counts it in the row "program".
 */
uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o);

/* ---- session: ids in, logits out ---- */

struct mw_session;

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e);
void mw_session_close(struct mw_session *s);

/* One row of logits, [n_vocab], of the id at position pos; return -1 to stop. */
typedef int mw_row_fn(void *ctx, uint32_t pos, const float *logits, struct err *e);

/*
 * Evaluate n ids behind what the session holds.  row NULL: only the last id's logits are
 * made, for mw_session_logits.  On failure or cancel the session holds what it held
 * before the call plus whole chunks that were finished (mw_session_tokens tells).
 */
int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e);
const float *mw_session_logits(const struct mw_session *s); /* until the next call */
uint32_t mw_session_tokens(const struct mw_session *s);

/* Keep only the first n tokens.  If the sliding rings have lost what the rest needs, the
 * session falls back to the last copy: *kept says how many are really held. */
int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e);

/* Change the budget while the session lives: memory really falls, tokens stay. */
int mw_session_set_memory(struct mw_session *s, uint64_t memory_bytes, struct err *e);

void mw_session_plan(const struct mw_session *s, struct plan *out);
void mw_session_sample(const struct mw_session *s, struct mw_sample *out); /* any thread */
void mw_session_cancel(struct mw_session *s);                              /* any thread */

/* The next id from a row of logits (changed in place), given the ids before it. */
struct mw_sampler;
int mw_sampler_new(struct mw_sampler **out, const struct mw_model *m,
                   const struct mw_sampling *s, struct err *e);
void mw_sampler_free(struct mw_sampler *p);
uint32_t mw_sampler_next(struct mw_sampler *p, float *logits, const uint32_t *before,
                         size_t n_before);

/* ---- chat: a conversation on a thread of its own ---- */

struct mw_chat;

enum mw_role { MW_SYSTEM, MW_USER, MW_ASSISTANT };

struct mw_chat_options {
    struct mw_options engine;
    struct mw_sampling sampling;
    const char *system; /* NULL: none; copied */
    const char *format; /* chat format by name; NULL: the model's own; copied */
    bool raw;           /* no chat format: text is continued as it is */
    enum mw_think think;
    uint32_t n_predict;      /* most tokens of an answer; 0: until the context is full */
    const char *const *stop; /* NULL or strings that end an answer, NULL behind; copied */
};

struct mw_message {
    enum mw_role role;
    const char *text; /* UTF-8, len bytes */
    size_t len;
    const char *thinking; /* of an answer; NULL: none */
    size_t thinking_len;
};

enum mw_done {
    MW_DONE_STOP,      /* the model ended its turn */
    MW_DONE_LENGTH,    /* n_predict was reached */
    MW_DONE_CANCELLED, /* the person stopped it; what was said stays */
    MW_DONE_CONTEXT,   /* the context is full */
    MW_DONE_ERROR,     /* see the event's error; the session lives on */
};

/* What an answer cost, from the counters. */
struct mw_receipt {
    enum mw_done done;
    uint32_t n_prompt; /* tokens that had to be evaluated */
    uint32_t n_reused; /* that the KV still held */
    uint32_t n_decoded;
    uint64_t first_ns; /* from send to the first token */
    uint64_t prefill_ns, decode_ns;
    uint64_t bytes_read;
    uint64_t stall_ns;      /* waited for the disk while decoding */
    uint64_t peak_charged;  /* bytes; 0: not known ... */
    uint64_t peak_resident; /* ... and then this, 0: not known either */
};

enum mw_event_kind {
    MW_EVENT_READY,    /* the model is loaded; plan and sample are meaningful */
    MW_EVENT_STARTED,  /* a queued message is being worked on; n is its prompt's tokens */
    MW_EVENT_PROGRESS, /* prompt tokens evaluated: n of total */
    MW_EVENT_TEXT,     /* a piece of the answer */
    MW_EVENT_DONE,     /* the answer is over; receipt */
    MW_EVENT_PLAN,     /* options were applied; plan */
    MW_EVENT_NOTICE,   /* something the person must know: text */
    MW_EVENT_ERROR,    /* a command failed: err; nothing was changed */
};

struct mw_event {
    enum mw_event_kind kind;
    const char *text; /* valid UTF-8, not cleaned for a terminal; until the next call */
    size_t len;
    bool is_thinking;
    uint64_t n, total;
    struct mw_receipt receipt;
    struct plan plan;
    struct err err;
};

/*
 * Start the engine thread; loading happens there and ends with MW_EVENT_READY, or with
 * MW_EVENT_ERROR (ERR_BUDGET: does not fit).  m must outlive the chat.
 */
int mw_chat_open(struct mw_chat **out, struct mw_model *m, const struct mw_chat_options *o,
                 struct err *e);
/*
 * Ask the engine thread to end, whatever it does, also while it loads the model, and wait
 * for it at most ms milliseconds.  Returns whether it has ended.  If not, it is stuck in the
 * kernel, on a disk that does not answer: then neither the chat nor its model may be closed,
 * and the program should end without them.
 */
bool mw_chat_stop(struct mw_chat *c, unsigned ms);
/* Stops loading or an answer, joins the thread. */
void mw_chat_close(struct mw_chat *c);

/* Readable when there is an event.  Never read from it. */
int mw_chat_fd(struct mw_chat *c);
/* The next event, or false.  Pieces of text that wait are joined into one. */
bool mw_chat_next(struct mw_chat *c, struct mw_event *out);

/*
 * Commands are queued and answered by events; text is copied.  Any thread.
 * A message that is sent while an answer runs waits for its turn.
 */
int mw_chat_send(struct mw_chat *c, const char *text, size_t len, struct err *e);
int mw_chat_continue(struct mw_chat *c, struct err *e); /* a stopped answer */
int mw_chat_retry(struct mw_chat *c, struct err *e);    /* the last answer again */
/* Keep the first n messages (the system message does not count). */
int mw_chat_rewind(struct mw_chat *c, size_t n, struct err *e);
/*
 * Take over a saved conversation; evaluated with the next message.  Of a long one the newest
 * messages are enough, as many as mw_text_bytes allows: n_before says how many came before
 * them.  Those cannot fit the context, so the next message ends with MW_DONE_CONTEXT, or with
 * ctx_shift they are dropped.
 */
int mw_chat_restore(struct mw_chat *c, const struct mw_message *messages, size_t n,
                    size_t n_before, struct err *e);
/* Apply options: new sampling, system text, thinking, budget, context, KV type, I/O,
 * threads.  Answered by MW_EVENT_PLAN, or MW_EVENT_ERROR and all stays as it was. */
int mw_chat_set(struct mw_chat *c, const struct mw_chat_options *o, struct err *e);
/* Stop the answer within one block; queued messages are dropped.  At once. */
void mw_chat_cancel(struct mw_chat *c);

/* Any thread, at any time. */
void mw_chat_sample(struct mw_chat *c, struct mw_sample *out);
bool mw_chat_is_busy(struct mw_chat *c);

/* Tokens of the conversation: what is held while an answer is made, else what the next
 * message will come behind (less, after going back, than is still held). */
uint32_t mw_chat_tokens(struct mw_chat *c);

/* The cost of sending a text of n_token tokens, from the plan and what was measured so far. */
struct mw_cost {
    uint32_t n_token;    /* of the text, template included */
    uint32_t n_again;    /* of the conversation, that have to be evaluated again first */
    uint32_t n_ctx_left; /* of the context, before the text */
    double seconds;      /* until the first token; 0: nothing measured yet */
    bool is_at_least;    /* of arithmetic nothing is known yet: seconds are the disk's */
    uint64_t bytes;      /* that will be read */
};
int mw_chat_cost(struct mw_chat *c, uint32_t n_token, struct mw_cost *out, struct err *e);
/* What it would cost under another plan to evaluate all of the conversation again: n_again,
 * seconds and bytes. */
void mw_chat_cost_again(struct mw_chat *c, const struct plan *plan, struct mw_cost *out);

/* ---- kernel's figures, for programs that watch a session ---- */

/*
 * The slow sampler: reads the kernel's figures twice a second on a thread of its own and
 * fills `os` and `verdict` of every sample taken through it.
 */
struct mw_watch;
int mw_watch_new(struct mw_watch **out, const struct mw_model *m, struct err *e);
void mw_watch_free(struct mw_watch *w);
/* Complete a sample: os, and the verdict from measured shares. */
void mw_watch_complete(struct mw_watch *w, struct mw_sample *sample);

/* ---- mapped files that are cut ---- */

/*
 * For a handler of SIGBUS, whose code is BUS_ADRERR: if address is in a model file that is
 * mapped (MW_IO_MMAP), replace its page by zeros and return true, so that the handler can
 * return; the evaluation then fails with an error that names the file.  false: the signal
 * has another cause.  Without such a handler, cutting a mapped file kills the process.
 * Async-signal-safe.
 */
bool mw_mapping_repair(const void *address);

/* ---- files that are written ---- */

struct mw_output {
    const char *path;
    bool replace;           /* a regular file that exists may be replaced */
    const char *to_replace; /* what a person adds to allow that: "--force" */
};

/*
 * Open a file that a person named for writing, empty.  Refused: an existing file unless
 * o->replace is set, any file of the model m (NULL: no model), and special files except
 * /dev/null, /dev/stdout, /dev/stderr and /dev/fd/N.  Never waits for the other end of a
 * FIFO.  Returns a descriptor, or -1 with *e.
 */
int mw_output_open(const struct mw_model *m, const struct mw_output *o, struct err *e);

/* The same refusals for a file that will be renamed to o->path; opens nothing.  0, or -1
 * with *e. */
int mw_output_check(const struct mw_model *m, const struct mw_output *o, struct err *e);

/* ---- recording and replay of telemetry (memwall-telemetry(5)) ---- */

/* struct mw_recorder, struct mw_replay and mw_sample_json(): telemetry/recorder.h, replay.h
 * and json.h. */

#endif
