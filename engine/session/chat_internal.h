/*
 * chat_internal.h - a conversation on a thread of its own.
 *
 *   program --commands--> queue --> engine thread --events--> queue + descriptor --> program
 *
 * Commands run one after the other, in the order in which they were queued.  Only changes of
 * options may go ahead: between two passes of an answer, the engine thread takes the next
 * change out of the queue and applies it, if the answer can go on with it.
 *
 *     runs        queue
 *     answer 1    send 2, set A, set B    both were queued during answer 1: apply A, then B
 *     answer 1    set A, send 2, set B    while A waits for the end of answer 1, B waits, too
 *     answer 2    set B                   B is first: apply it
 *
 * A cancel is not queued.  It marks the messages in the queue, and the engine thread takes a
 * marked message out with the same event as an answer that was stopped.  Only the engine thread
 * uses the conversation and changes the session.
 *
 *     chat.c           the side of the program
 *     chat_queue.c     the queue
 *     chat_thread.c    the engine thread: one command after the other
 *     chat_options.c   the options on that thread, and their changes during an answer
 *     chat_kv.c        keys and values in a file
 *     chat_cost.c      figures that the program asks for while the thread works
 */
#ifndef MEMWALL_ENGINE_SESSION_CHAT_INTERNAL_H
#define MEMWALL_ENGINE_SESSION_CHAT_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/grammar/token_tree.h"
#include "engine/session/answer.h"
#include "engine/session/settings.h"
#include "engine/session/settled.h"

enum chat_command_kind {
    DO_SEND,
    DO_CONTINUE,
    DO_RETRY,
    DO_ASIDE,
    DO_REWIND,
    DO_STASH,
    DO_UNSTASH,
    DO_RESTORE,
    DO_SAVE_KV,
    DO_LOAD_KV,
    DO_SHARE_KV,
    DO_SET,
    DO_ASK
};

struct chat_command {
    struct chat_command *next;
    enum chat_command_kind kind;
    bool is_cancelled; /* a message that the conversation does not get */
    uint64_t n_taken;  /* commands that were taken before this one was queued */
    char *text;
    size_t len;
    size_t n;
    struct turn *turns; /* [room] for those that are stashed */
    size_t room;
    struct conversation restored;
    struct settings settings;
    struct asked asked;
};

struct mw_chat {
    struct mw_model *m;
    struct events *events;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* of all members below */
    pthread_cond_t wake;
    struct chat_command *first, *last;
    struct mw_session *session; /* opened and closed by the engine thread only */
    struct settings settings;   /* in force */
    struct plan plan;
    struct settled settled;  /* all zero before a session is open */
    uint32_t n_ahead;        /* tokens of the conversation */
    uint32_t n_again;        /* those of them that must be evaluated again */
    double prompt_compute_s; /* as answer.h has it */
    bool is_working;
    uint32_t kv_asked, kv_done; /* requests to save keys and values, and those that are over */
    uint64_t n_taken;     /* commands, with the one that runs */
    bool is_over;         /* the engine thread uses nothing any longer */
    struct cancel cancel; /* of the command that is running */
    struct cancel quits;  /* the chat is being closed: loading ends early, too */

    /* engine thread only */
    struct token_tree tokens; /* of the vocabulary, for grammars; empty before the first one */
    struct answerer answerer;
    char said[512]; /* the last notice about its chat format */
    struct {
        enum mw_draft draft;
        enum mw_no_drafter why;
    } said_drafts; /* the last notice that nothing drafts */
    struct conversation conversation;
    char *kv_wish; /* the file to save keys and values to when there is nothing else; or NULL */
    uint64_t kv_limit;
    uint32_t kv_taken;    /* requests that were taken out of the queue */
    struct beginnings beginnings; /* that other chats share */
    int64_t saved_time_s; /* the time that the prompts of a KV file have, until others begin */
    int64_t own_time_s;   /* and the time before it; 0: there is no such file */
};

/* ---- the queue ---- */

/* Returns NULL with *e if there is no memory. */
struct chat_command *chat_command_new(enum chat_command_kind kind, struct err *e);
void chat_command_free(struct chat_command *command);

/* Append a command, which the queue then owns.  Returns 0. */
int chat_push(struct mw_chat *c, struct chat_command *command);

/* Wait for the next command.  Returns NULL if the chat is being closed. */
struct chat_command *chat_take_command(struct mw_chat *c);

/* Let the thread that waits for a command look at its session.  ctx is a struct mw_chat. */
void chat_wake(void *ctx);

/* Take the next change out of the queue, or return NULL if there is none for now. */
struct chat_command *chat_take_change(struct mw_chat *c, size_t n_token);

/* ---- the engine thread ---- */

/* The thread; ctx is a struct mw_chat. */
void *chat_thread(void *ctx);

/* Let others see the session, which only the engine thread opens and closes. */
void chat_set_session(struct mw_chat *c, struct mw_session *s);

/* ---- options, on the engine thread ---- */

/*
 * Make an answerer for these options: chat format, sampler, stop strings.  Everything that
 * can fail is done here, so that options are taken over whole or not at all.
 */
int chat_prepare_answerer(struct mw_chat *c, const struct mw_chat_options *o,
                          struct answerer *out, struct err *e);

/* Replace the answerer by a, which was prepared for the options in force.  Cannot fail. */
void chat_take_answerer(struct mw_chat *c, struct answerer *a);

/* Free an answerer; the chat format may be the one of the answerer that stays. */
void chat_answerer_free(struct answerer *a, const struct answerer *stays);

/* Make the options of a command those in force.  -1 with *e: nothing has changed. */
int chat_apply_settings(struct mw_chat *c, struct chat_command *command, struct err *e);
/* The same with an event that reports what came of it. */
void chat_do_set(struct mw_chat *c, struct chat_command *command);

/* Apply the changes that were queued during an answer, between two of its passes. */
void chat_change_now(void *ctx, size_t n_token);

/* Keep the plan of the session and its options for mw_chat_cost(). */
void chat_keep_plan(struct mw_chat *c);
/* The same, and post the plan. */
void chat_post_plan(struct mw_chat *c, enum mw_event_kind kind);

/* Post a text; "" posts nothing. */
void chat_post_notice(struct mw_chat *c, const char *text);

/* Report once that a drafter which these options name does not draft. */
void chat_post_no_drafter(struct mw_chat *c);

/* Report once that the model's template is not used, or not as it was written. */
void chat_post_format_notice(struct mw_chat *c);

/* ---- keys and values in a file, on the engine thread ---- */

/* Save them to the command's file as soon as no other command waits. */
void chat_wish_kv(struct mw_chat *c, struct chat_command *command);
/* The conversation is another one now. */
void chat_forget_kv(struct mw_chat *c);
/* Save them now, unless a command waits; one that comes meanwhile ends this, to be tried again. */
void chat_save_kv(struct mw_chat *c);
/* Keep and use beginnings in the command's folder. */
void chat_share_kv(struct mw_chat *c, const struct chat_command *command);
/* A request is answered next, which may leave a beginning to keep. */
void chat_ask_kv(struct mw_chat *c);
/* Load those of the command's file for the conversation. */
void chat_load_kv(struct mw_chat *c, const struct chat_command *command);

/* ---- figures, on the engine thread ---- */

/* Returns how many tokens of the conversation the session holds.  *n is the number of all its
 * tokens, at most the context. */
size_t chat_held(struct mw_chat *c, size_t *n);

/* After a command, note the figures of the conversation that mw_chat_cost() reports.  Only this
 * thread may use the conversation. */
void chat_look_ahead(struct mw_chat *c);

#endif
