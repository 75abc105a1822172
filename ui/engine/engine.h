/*
 * engine.h - the table of functions through which the screen talks to an engine.
 *
 *     app ──> talk ──> struct engine_calls ──┬─> local.c: the engine in this process
 *                                            ├─> remote.c: a server
 *                                            └─> another row: its own object and functions
 *
 * Options, events, samples and plans are those of engine/memwall.h, and the functions do what
 * the ones named beside them do there.  The object of an engine begins with struct engine.
 *
 * A chat needs the first part of the table.  A function of the second part is NULL if this
 * cannot be known of an engine.  Only talk calls the functions, and gives the screen the same
 * answer as if an engine failed to know it once: the screen leaves it out, or says so.
 *
 * Threads: an object is used by one thread at a time, but sample() by any.
 */
#ifndef MEMWALL_UI_ENGINE_ENGINE_H
#define MEMWALL_UI_ENGINE_ENGINE_H

#include "engine/memwall.h"

/* Gives a model in this process the limits of this machine, for predictions. */
typedef void engine_limits_fn(struct mw_model *m, const char *path, const struct mw_options *o);

/* The model to open.  open() copies what it needs later. */
struct engine_model {
    const char *path;
    struct mw_options options; /* memory_bytes limits the header */
    engine_limits_fn *limits;  /* or NULL; a model in another process has its own limits */
    const struct mw_server *server; /* that has the model; NULL: this process */
};

struct engine {
    const struct engine_calls *calls;
};

struct engine_calls {
    /* ---- the model ---- */

    /* Read what a model is, without its weights.  This may take seconds, and may run on a
     * thread of its own.  -1 with *e: *out is NULL. */
    int (*open)(struct engine **out, const struct engine_model *m, struct err *e);
    /* Stop what g does, and free it. */
    void (*close)(struct engine *g);
    void (*info)(struct engine *g, struct mw_model_info *out);
    uint64_t (*text_bytes)(struct engine *g, const struct mw_options *o);

    /* ---- the chat ---- */

    /* mw_chat_open().  Until it was called, fd() is -1, next() false, tokens() 0, the state of
     * a sample MW_LOADING, and the commands must not be called. */
    int (*start)(struct engine *g, const struct mw_chat_options *o, struct err *e);
    int (*fd)(struct engine *g);
    bool (*next)(struct engine *g, struct mw_event *out);
    uint32_t (*tokens)(struct engine *g);
    void (*sample)(struct engine *g, struct mw_sample *out); /* with the kernel's figures */

    /* mw_chat_send_within(): n_predict 0 is as the options say. */
    int (*send)(struct engine *g, const char *text, size_t len, uint32_t n_predict,
                struct err *e);
    int (*resume)(struct engine *g, struct err *e); /* mw_chat_continue() */
    int (*retry)(struct engine *g, struct err *e);
    int (*aside)(struct engine *g, struct err *e);
    int (*rewind)(struct engine *g, size_t n, struct err *e);
    int (*stash)(struct engine *g, size_t n, size_t n_all, struct err *e);
    int (*unstash)(struct engine *g, struct err *e);
    int (*restore)(struct engine *g, const struct mw_message *messages, size_t n,
                   size_t n_before, struct err *e);
    int (*set)(struct engine *g, const struct mw_chat_options *o, struct err *e);
    void (*cancel)(struct engine *g); /* also before start(), when there is nothing to stop */

    /* An answer goes on with the options that it began with. */
    bool keeps_options;

    /* NULL, or returns whether resume() can go on with an answer. */
    bool (*can_resume)(struct engine *g);

    /* ---- NULL: this cannot be known of the engine ---- */

    /* Figures that a server reports about itself, and the name of its model i, not safe to
     * print; NULL after the last. */
    void (*server)(struct engine *g, struct mw_server_figures *out);
    const char *(*server_model)(struct engine *g, size_t i);
    /* mw_remote_setting(); NULL: the settings are those of this process */
    int (*setting)(struct engine *g, enum mw_setting_step step, const char *name,
                   const char *value, uint64_t tag, struct err *e);

    /* The model, if it is in this process: for questions about its files and options. */
    const struct mw_model *(*model)(struct engine *g);
    /* mw_sampling_default() */
    void (*recommend)(struct engine *g, struct mw_sampling *out);
    /* The number of tokens of a text, once the model is loaded. */
    int (*count)(struct engine *g, const char *text, size_t n, uint32_t *out, struct err *e);
    /* mw_io_choose() */
    int (*io)(struct engine *g, const struct mw_options *o, struct mw_io_choice *out,
              struct err *e);

    /* mw_chat_save_kv(), mw_chat_load_kv() */
    int (*save_kv)(struct engine *g, const char *path, uint64_t max_bytes, struct err *e);
    int (*load_kv)(struct engine *g, const char *path, struct err *e);
    /* mw_chat_share_kv(); NULL: beginnings of chats are not kept */
    int (*share_kv)(struct engine *g, const char *folder, uint64_t max_bytes, struct err *e);

    /* mw_chat_plan(), or mw_plan() before start(); mw_plan_fit(), mw_plan_outlook() */
    int (*plan)(struct engine *g, const struct mw_options *o, struct plan *out, struct err *e);
    int (*fit)(struct engine *g, const struct mw_options *o, uint64_t *smallest_budget,
               uint32_t *largest_ctx, struct err *e);
    int (*outlook)(struct engine *g, const struct mw_options *o, const struct plan_run *run,
                   struct plan_outlook *out, struct err *e);
    /* mw_diagnose(), and the wall that is made of it */
    int (*diagnose)(struct engine *g, const struct mw_options *o, const struct mw_sample *s,
                    struct mw_diagnosis *out, struct err *e);
    bool (*wall_begin)(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                       const struct mw_sample *s);
    bool (*wall_step)(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                      const struct mw_sample *s, uint32_t n);
    /* mw_chat_cost(), mw_chat_cost_again() */
    int (*cost)(struct engine *g, uint32_t n_token, struct mw_cost *out, struct err *e);
    void (*cost_again)(struct engine *g, const struct plan *plan, struct mw_cost *out);

    /* mw_model_limits(), mw_model_anchor(), mw_model_tried(), mw_model_tried_peak() */
    void (*limits)(struct engine *g, struct mw_limits *out);
    void (*anchor)(struct engine *g, struct plan_anchor *out);
    size_t (*tried)(struct engine *g, struct mw_tried *list);
    void (*tried_peak)(struct engine *g, const struct plan *p, uint64_t bytes);
};

#endif
