/*
 * chat.h - a conversation on a thread of its own: messages in, events out.
 */
#ifndef MEMWALL_ENGINE_API_CHAT_H
#define MEMWALL_ENGINE_API_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"
#include "engine/plan/table.h"
#include "engine/telemetry/sample.h"

struct mw_model;
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
    /* How many answers to its question were made before this one, the last, as its receipt has
     * it; of the question, how many were made.  See mw_chat_retry(). */
    uint32_t attempt;
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
    /* A server made it: memory, reads and stalls are not known.  is_in_pieces: neither are
     * tokens, and n_decoded counts the pieces in which its text came. */
    bool is_remote, is_in_pieces;
    /* The files were mapped: bytes_read is what the kernel read for the process, and stalls are
     * not known, because they are part of computing. */
    bool is_mapped;
    bool has_stop_text;   /* a stop string ended it, */
    uint32_t stop_text;   /* with this number among those of the options */
    /* If it is empty because of its thinking: thinking can still be switched off, or the chat
     * format has no switch for it. */
    bool can_think_less, has_no_switch;
    uint32_t n_prompt; /* tokens that had to be evaluated */
    uint32_t n_prompt_done; /* of them: fewer if the answer was stopped before its first token */
    uint32_t n_reused; /* tokens whose keys and values were still there */
    uint32_t n_decoded;
    uint32_t attempt; /* answers to the same message before this one */
    struct mw_drafts drafts;
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

/* A token, and the natural logarithm of its probability.  id UINT32_MAX: there is none. */
struct mw_logprob {
    uint32_t id;
    float logprob;
};
#define MW_LOGPROBS 21 /* the token that was chosen, and the most likely ones */

enum mw_event_kind {
    MW_EVENT_READY,    /* the model is loaded; plan and sample are meaningful */
    MW_EVENT_STARTED,  /* work on a message begins: n of total prompt tokens are evaluated.  With
                        * the plan in force, unless a server answers: a drafter that was closed
                        * because it lost may have been opened again */
    MW_EVENT_PROGRESS, /* n of total of these tokens are done */
    MW_EVENT_TEXT,     /* a piece of the answer */
    MW_EVENT_LOGPROBS, /* before the text of a token: text is an array of mw_chat_options.n_logprob
                          struct mw_logprob, the token first; thinking has none */
    /* With mw_chat_options.reports_ids, text is an array of uint32_t: all tokens of the prompt, and
     * at the end those of the answer, without the one that ended it. */
    MW_EVENT_PROMPT_IDS,
    MW_EVENT_IDS,
    MW_EVENT_THOUGHT,  /* all pieces of the answer that came as text were thinking: the model
                          closed its thinking without having opened it.  text: the mark, which
                          follows these pieces */
    MW_EVENT_DONE,     /* the answer is over: receipt, err, has_answer, cut; text: the bytes
                          that cut describes */
    MW_EVENT_PLAN,     /* new options are in force: plan */
    MW_EVENT_NOTICE,   /* a sentence to show to the user: text */
    MW_EVENT_REFUSED,  /* new options were refused, and the old ones are in force: err */
    MW_EVENT_ERROR,    /* another command failed and changed nothing: err */
    /* Keys and values of n tokens are in the file, total bytes were written in ns; or err. */
    MW_EVENT_KV_SAVED,
    /* n tokens of the conversation need no evaluation, total bytes were read in ns; or err says
     * why not. */
    MW_EVENT_KV_LOADED,
    /* The same for the first n tokens of the prompt of the message that is sent: other chats
     * began like it. */
    MW_EVENT_KV_SHARED,
    /* The reply to mw_remote_setting(), with its tag in total; or err. */
    MW_EVENT_SETTING,
};

/* The steps of a change of settings at a server. */
enum mw_setting_step {
    MW_SETTING_SHOW,    /* text: the value in force */
    MW_SETTING_PROPOSE, /* text: the value, and then lines that begin with their kind, '=' for a new
                           line, '+' for more of the one before, '~' for a paragraph, and with the
                           name of their role and a tab */
    MW_SETTING_APPLY,   /* text: a sentence */
    /* plan.n_ctx: the context with this change */
};

struct mw_event {
    enum mw_event_kind kind;
    const char *text; /* valid UTF-8, unsafe for a terminal; valid until the next event */
    size_t len;
    bool is_thinking;
    uint64_t n, total, ns;
    struct mw_receipt receipt;
    struct mw_cut cut; /* valid until the next event */
    bool has_answer;   /* the conversation has an answer, which may be without text */
    enum mw_setting_step step;
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

/* The most memory that answers with a grammar take, and those with n_logprob: for
 * mw_options.caller_bytes. */
uint64_t mw_grammar_bytes(const struct mw_model *m);
uint64_t mw_logprob_bytes(const struct mw_model *m);

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
/*
 * Replace the last answer.  The seed gives another sequence of random numbers for each answer to
 * the same message, so this one differs from all before it, and the n-th one is the same each
 * time.  At temperature 0 all of them are the same.
 */
int mw_chat_retry(struct mw_chat *c, struct err *e);
/*
 * Add a question and an answer that did not come from the model.  They count as messages, but
 * the model does not see them, so that they take no tokens.  Their texts are the caller's.
 * Posts no event.
 */
int mw_chat_aside(struct mw_chat *c, struct err *e);
/* Keep the first n messages, not counting the system message.  Posts no event. */
int mw_chat_rewind(struct mw_chat *c, size_t n, struct err *e);
/*
 * The same, to try something else: mw_chat_unstash() replaces all messages after the first n by
 * those of n_all that were there, with the ids that the model has seen.  mw_chat_restore() and
 * another stash forget them.  Both post no event.
 */
int mw_chat_stash(struct mw_chat *c, size_t n, size_t n_all, struct err *e);
int mw_chat_unstash(struct mw_chat *c, struct err *e);
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
 * Save the keys and values of the chat to a KV file (kv_files.h) as soon as it is idle, with the
 * ids of its answers: what is new since the last time is written.  A command that is queued
 * meanwhile goes first, and it is tried again after it.  All files of the folder together then
 * have at most max_bytes: the least recently used ones are deleted.  Posts MW_EVENT_KV_SAVED.
 *
 * mw_chat_load_kv() loads them for a conversation that mw_chat_restore() has given, so that only
 * what follows is evaluated.  Answers are then the same as if the chat had never stopped.  A file
 * of another model, other KV types or another conversation is not used.  Posts MW_EVENT_KV_LOADED,
 * or nothing if there is no such file.  Other commands wait for it; mw_chat_cancel() stops it.
 */
int mw_chat_save_kv(struct mw_chat *c, const char *path, uint64_t max_bytes, struct err *e);
int mw_chat_load_kv(struct mw_chat *c, const char *path, struct err *e);
/*
 * From now on, keep beginnings that chats share in KV files of this folder: of the system
 * message, and of prompts that began alike in another chat.  Call it again when another chat
 * begins.  Each is there once, and prompts that begin like it read it if that is predicted to
 * be faster than evaluating it.  Then they post MW_EVENT_KV_SHARED before MW_EVENT_STARTED.
 * They count among the max_bytes of mw_chat_save_kv(), and are written while the chat is idle,
 * without an event; before requests that wait, if that is predicted to take much less time than it
 * will save.
 *
 * Each request of mw_chat_ask() counts as a chat of its own.  The messages before its first
 * question and its tools do not depend on the question.  A longer beginning is kept if another
 * first question began like it.  Of a request without messages nothing is kept.
 */
int mw_chat_share_kv(struct mw_chat *c, const char *folder, uint64_t max_bytes, struct err *e);
/* Before the chat is stopped: wait until they are saved, if they are to be, and the beginnings of
 * requests, for at most ms milliseconds. */
void mw_chat_finish_kv(struct mw_chat *c, unsigned ms);

/*
 * A request: messages that are given whole, as a server gets them.  Texts need no NUL.
 */
struct mw_request {
    const char *messages; /* a JSON array as for mw_vocab_chat(), messages_len bytes; or NULL */
    size_t messages_len;
    const char *tools; /* a JSON array of definitions that the template prints, or NULL */
    size_t tools_len;
    const char *text; /* without messages: the text to continue, with o->raw; len bytes */
    size_t len;
    const uint32_t *ids; /* [n_ids] or its tokens instead of a text; nothing is added to them */
    size_t n_ids;
};
/*
 * Answer a request with options of its own, which stay in force as after mw_chat_set().  The
 * messages of the chat are forgotten, but the tokens that the prompt begins like are used on.
 * Posts the events of an answer (and MW_EVENT_READY if the model was not loaded); if the options
 * or the messages are refused, its MW_EVENT_DONE has the error.  Nothing is dropped from the
 * messages.  With tools, marks of calls are a part of the answer's text.
 */
int mw_chat_ask(struct mw_chat *c, const struct mw_request *r, const struct mw_chat_options *o,
                struct err *e);
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

/* Tokens of the conversation.  While the chat works, it counts the tokens whose keys and values
 * are held.  Otherwise it counts those before the next message, which are fewer after a rewind. */
uint32_t mw_chat_tokens(struct mw_chat *c);

/* The cost of sending a text of n_token tokens, from the plan and from rates measured so far.
 */
struct mw_cost {
    uint32_t n_token;    /* of the text, template included, and n_ahead */
    uint32_t n_ahead;    /* of the conversation, not evaluated yet */
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

#endif
