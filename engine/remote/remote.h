/*
 * remote.h - a chat with a model at a server that speaks OpenAI's protocol.
 *
 *     mw_remote_open()   GET /v1/models: which models there are, and what kind of server it is
 *     mw_remote_start()  a thread that sends messages and takes streams of events
 *
 * Commands and events are those of api/chat.h.  The conversation is kept here, and each message
 * sends all of it.  There is no plan and no budget, because the server has them.
 *
 * Rates and times of a receipt are measured here, numbers of tokens are those that the server
 * reports.  A thread of its own asks the server for its metrics.
 *
 * The server is not trusted: what it sends is bounded, and nothing of it is safe to print but
 * the name of the model (struct mw_model_info) and the texts of struct mw_server_figures.
 */
#ifndef MEMWALL_ENGINE_REMOTE_REMOTE_H
#define MEMWALL_ENGINE_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/api/chat.h"
#include "engine/api/model.h"
#include "engine/base/err.h"
#include "engine/telemetry/sample.h"

#define MW_SERVER_CA_FILES 3

/* How to reach a server.  Texts are copied. */
struct mw_server {
    const char *url; /* "http://127.0.0.1:8080" or "https://host/v1" */
    const char *key; /* of the API, or NULL */
    /* Files with the authorities to trust, instead of those of the system, and a folder; or
     * NULL. */
    const char *ca_files[MW_SERVER_CA_FILES], *ca_folder;
};

/* Programs that are known to report more than the protocol has. */
enum mw_server_kind {
    MW_SERVER_OTHER,
    MW_SERVER_MEMWALL,
    MW_SERVER_LLAMA,
    MW_SERVER_VLLM,
    MW_SERVER_SGLANG,
    MW_SERVER_OLLAMA,
};
const char *mw_server_kind_name(enum mw_server_kind k); /* "llama.cpp"; "" for OTHER */

/* Figures that a server reports about itself.  A number that it does not report is NaN. */
struct mw_server_figures {
    char address[128]; /* "127.0.0.1:8080" */
    enum mw_server_kind kind;
    size_t n_model, used; /* used: index of the model */
    bool is_asked;        /* for its metrics, at least once */
    char no_metrics[160]; /* why there are none; "": there are */
    uint64_t metrics_ns;  /* when they were read; 0: never */
    bool is_live;         /* mw_remote_sample() has the samples of the server itself */

    double running, waiting; /* requests */
    double kv_share;         /* of the memory for keys and values, in use */
    double cache_share;      /* of prompt tokens that were in its cache, since it was started */
    double prompt_tps, answer_tps; /* as it measured them */

    /* A memwall server has these, too. */
    double budget_bytes, charged_bytes, resident_bytes, pinned_bytes, kv_bytes, kv_tokens,
        read_per_token, stall_share, verdict_share;
    enum mw_binds verdict;

    /* The last answer.  Pieces are parts of the text as they came. */
    bool has_usage;
    uint64_t n_prompt, n_cached, n_decoded; /* tokens; valid if has_usage */
    bool has_cached;
    uint64_t n_piece;
    uint64_t start_ns, first_ns, last_ns; /* 0: not reached */
};

struct mw_remote;

/*
 * Ask the server for its models.  model: the name of one, or a part of it that no other has;
 * NULL: the first.  -1 with *e: the server or the model cannot be reached or is not there.
 */
int mw_remote_open(struct mw_remote **out, const struct mw_server *server, const char *model,
                   struct err *e);
/* Stop what it does, and free it.  r may be NULL. */
void mw_remote_close(struct mw_remote *r);

/* n_ctx_train is the context that the server reports, 0: it does not; other fields may be
 * unknown, too. */
void mw_remote_info(const struct mw_remote *r, struct mw_model_info *out);
/* The name of model i as the server wrote it; NULL after the last.  Not safe to print. */
const char *mw_remote_model(const struct mw_remote *r, size_t i);
const char *mw_remote_model_used(const struct mw_remote *r);
/* The bytes of text that a chat may hold. */
uint64_t mw_remote_text_bytes(const struct mw_remote *r);

/* As in api/chat.h.  Before the start, fd is -1 and there are no events. */
int mw_remote_start(struct mw_remote *r, const struct mw_chat_options *o, struct err *e);
int mw_remote_fd(const struct mw_remote *r);
bool mw_remote_next(struct mw_remote *r, struct mw_event *out);
uint32_t mw_remote_tokens(struct mw_remote *r); /* 0: the server does not report it */
/* Any thread.  A memwall server sends its samples; otherwise only times and counts of the
 * conversation are known. */
void mw_remote_sample(struct mw_remote *r, struct mw_sample *out);
void mw_remote_figures(struct mw_remote *r, struct mw_server_figures *out); /* any thread */

int mw_remote_send(struct mw_remote *r, const char *text, size_t len, uint32_t n_predict,
                   struct err *e);
/* Can servers of this kind go on with an answer?  If not, mw_remote_continue() fails. */
bool mw_remote_can_continue(const struct mw_remote *r);
int mw_remote_continue(struct mw_remote *r, struct err *e);
int mw_remote_retry(struct mw_remote *r, struct err *e);
int mw_remote_aside(struct mw_remote *r, struct err *e);
int mw_remote_rewind(struct mw_remote *r, size_t n, struct err *e);
int mw_remote_stash(struct mw_remote *r, size_t n, size_t n_all, struct err *e);
int mw_remote_unstash(struct mw_remote *r, struct err *e);
int mw_remote_restore(struct mw_remote *r, const struct mw_message *messages, size_t n,
                      size_t n_before, struct err *e);
/* Options apply from the next answer on.  Those that only a model in this process has are
 * refused with an event. */
int mw_remote_set(struct mw_remote *r, const struct mw_chat_options *o, struct err *e);
void mw_remote_cancel(struct mw_remote *r); /* any thread */
/*
 * A setting of the model at the server, after the answers that were asked for before: show its
 * value in force, ask what another value would change, or change it.  name and value are those of
 * memwall's options; value is not used to show it.  Posts MW_EVENT_SETTING with the tag.  Fails
 * with ERR_UNSUPPORTED if the server is another program.
 */
int mw_remote_setting(struct mw_remote *r, enum mw_setting_step step, const char *name,
                      const char *value, uint64_t tag, struct err *e);

/* Values of sampling that are not set: the server's own apply. */
void mw_remote_sampling(struct mw_sampling *out);

#endif
