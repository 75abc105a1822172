/*
 * talk.h - a conversation as the program has it: what both the screen and plain mode do.
 *
 *     keys ── front (app.c, plain.c) ── talk ── mw_chat
 *                 ▲                      │
 *                 └──── struct talk_front┘   what is to be shown
 *
 * It owns the model, the chat, the saved copy, the messages that wait and the files that
 * go with the next one.  It knows nothing of the terminal.
 */
#ifndef MEMWALL_UI_TALK_TALK_H
#define MEMWALL_UI_TALK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/ui.h"

struct sheet;
struct store;

#define TALK_MAX_QUEUE    32 /* as many as STORE_MAX_QUEUE */
#define TALK_MAX_FILES    16
#define TALK_MAX_COMMANDS 200
#define TALK_MAX_OFFERS   4

enum talk_say { SAY_NOTICE, SAY_ERROR };

/* What only some fronts can do. */
enum talk_act { ACT_THEME, ACT_VIEW, ACT_MOUSE, ACT_COPY, ACT_PICK_TURN };

/* How a front shows what happens; all are called on its own thread, from talk_* calls. */
struct talk_front {
    void *ctx;
    /* text is clean; id: where it is saved, or STORE_NO_ITEM. */
    void (*say)(void *ctx, enum talk_say kind, const char *text, uint32_t id);
    void (*sheet)(void *ctx, struct sheet *s); /* takes it over */
    /* A message was given to the engine. */
    void (*user)(void *ctx, const char *text, size_t n, uint32_t id);
    /* An answer: begin with its first piece; done always, with pieces or without. */
    void (*begin)(void *ctx, bool resume);
    void (*piece)(void *ctx, const char *text, size_t n, bool is_thinking);
    void (*done)(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id);
    void (*rewound)(void *ctx, size_t n);       /* only the first n messages are left */
    void (*dropped)(void *ctx, size_t n);       /* the model sees the first n no more */
    void (*restored)(void *ctx);                /* another chat, or none: show the store's */
    void (*changed)(void *ctx);                 /* state, plan, queue: the status bar */
    void (*draft)(void *ctx, const char *text); /* back into the input line */
    /* The text of message n (from 0), for free(); NULL: not known. */
    char *(*text_of)(void *ctx, size_t n);
    /* -1 with *e: this front cannot. */
    int (*act)(void *ctx, enum talk_act act, const char *arg, struct err *e);
    void (*quit)(void *ctx);
};

struct talk_file {
    char name[96]; /* clean */
    char *text;
    size_t n;
};

struct talk {
    struct ui_chat_options o;
    struct talk_front front;

    char *model_path;
    struct mw_model *model;
    struct mw_model_info info;
    struct mw_chat *chat;
    struct mw_watch *watch;
    struct mw_recorder *recorder;
    char recorder_path[256];
    struct store *store; /* NULL: it could not be begun, for want of memory */
    bool is_unsaved;     /* the file lacks something; why: below */
    char unsaved_why[300];
    uint64_t unsaved_ns; /* when it was tried last */
    bool has_asked_to_leave;
    bool said_gone; /* that the oldest text of a chat that is not saved is gone */

    struct mw_chat_options options;                /* asked for; system is one of systems */
    struct mw_chat_options applied;                /* in force */
    struct mw_chat_options wanted;                 /* proposed, until Enter */
    struct mw_chat_options offer[TALK_MAX_OFFERS]; /* of the sheet of a full context */
    size_t n_offer;
    unsigned n_asked;  /* changes that were not answered yet */
    bool is_announced; /* the answer to the next one is said */
    bool goes_on;      /* the answer goes on when they are done */
    struct plan plan;
    bool is_ready, has_failed; /* loaded; could not be */

    bool is_answering, is_stopping, resumes;
    bool had_text; /* the answer in the making has some */
    bool is_prefill;
    uint64_t prefill_done, prefill_total, started_ns;
    struct mw_receipt last; /* of the last answer */
    bool has_last;
    uint8_t *is_user;       /* a bit for each message: who spoke, as the engine counts */
    size_t n_message, room; /* user and assistant */
    size_t n_dropped;       /* of them, from the first: what the model sees no more */
    size_t n_absent; /* of them, from the first: only in the saved chat, too many to fit */
    uint32_t restored_ctx; /* ... the context of so many tokens */

    char *queue[TALK_MAX_QUEUE]; /* typed while an answer ran */
    size_t n_queue;
    size_t n_resumed; /* of them, from a chat that was opened: not announced yet */
    struct talk_file file[TALK_MAX_FILES]; /* go with the next message */
    size_t n_file;

    bool replaces; /* the command that runs was given with "!": it may replace a file */
    char *command[TALK_MAX_COMMANDS]; /* of the lines of a sheet that is open */
    size_t n_command;

    char **text; /* that options point to; kept until the end */
    size_t n_text;
};

/* Open the model and begin; o's strings must outlive t.  -1 with *e: nothing is left. */
int talk_open(struct talk *t, const struct ui_chat_options *o, struct err *e);
void talk_close(struct talk *t);

/* Show what the person should know about the budget; once the front can show it. */
void talk_greet(struct talk *t);

/* Do what is due without anybody's doing; talk_wait: nanoseconds until then, UINT64_MAX:
 * nothing is. */
void talk_tick(struct talk *t);
uint64_t talk_wait(const struct talk *t);

int talk_fd(const struct talk *t);
/* Take all events there are. */
void talk_pump(struct talk *t);

/* Enter: a command, or a message that is sent now or waits for its turn. */
void talk_enter(struct talk *t, const char *line);
/* A message, files included. */
void talk_send(struct talk *t, const char *text);
/* What sending text, files included, would cost.  false: that is not known. */
bool talk_cost(const struct talk *t, const char *text, struct mw_cost *out);
/* Stop the answer; what was said stays, what waits comes back into the input line. */
void talk_stop(struct talk *t);

/* Begin to record to a file.  replace and to_replace: as in struct mw_output. */
int talk_record(struct talk *t, const struct mw_output *file, struct err *e);

/* A sample with the kernel's figures. */
void talk_sample(struct talk *t, struct mw_sample *out);
void talk_take(void *ctx, struct mw_sample *out); /* a mw_take_fn; ctx is a struct talk */

/* Something for the person, cleaned here. */
void talk_notice(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_error(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_err(struct talk *t, const struct err *e);

/* Give options to the engine; its answer is said if announce.  A system text in them must be
 * one of talk_keep_text(). */
void talk_set(struct talk *t, const struct mw_chat_options *o, bool announce);
/* The same, and the answer that was cut goes on. */
void talk_set_and_go_on(struct talk *t, const struct mw_chat_options *o);
/* A copy of text that lives as long as t; NULL: no memory. */
const char *talk_keep_text(struct talk *t, const char *text);

/* Bytes of text that can still wait to be sent: all of it must fit the context.  *max: in
 * all. */
size_t talk_text_room(const struct talk *t, size_t *max);
/* Attach text to the next message; takes it over.  false: there are too many. */
bool talk_attach(struct talk *t, const char *name, char *text, size_t n);
void talk_drop_files(struct talk *t);

/* One more message. */
void talk_count(struct talk *t, bool is_user);
/* Did the person say message n? */
bool talk_is_user(const struct talk *t, size_t n);
bool talk_ends_with_user(const struct talk *t);
/* Send the next of the queue if that is possible now; give all of it back to the line. */
void talk_send_waiting(struct talk *t);
void talk_return_waiting(struct talk *t);

/* Go back so that only the first n messages are left, everywhere. */
void talk_rewind(struct talk *t, size_t n);
/* The same, and the message that comes then goes into the input line. */
void talk_take_back(struct talk *t, size_t n);
/* The last answer again; a stopped one further. */
void talk_retry(struct talk *t);
void talk_continue(struct talk *t);
/* An empty conversation. */
void talk_clear(struct talk *t);
/* Another model, with the same conversation.  -1 with *e: the old one is still there. */
int talk_open_model(struct talk *t, const char *path, struct err *e);

/* A sheet whose choices are command lines: talk_choice after each such line. */
void talk_choices(struct talk *t, struct sheet *s);
void talk_forget_choices(struct talk *t);
void talk_choice(struct talk *t, struct sheet *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- talk_saved.c: the copy on disk ---- */

/* Begin: a new chat, or the one that o names.  -1 with *e: it cannot be opened. */
int saved_open(struct talk *t, const char *name, struct err *e);
void saved_close(struct talk *t);
/* Where it is, or "". */
const char *saved_path(const struct talk *t);
/* Try to write what could not be written; true: the file has all. */
bool saved_retry(struct talk *t);
/* Can another message be kept until it is saved?  false: an error was shown. */
bool saved_has_room(struct talk *t);
/* The person wants to leave.  false: not all is saved, which was said; next time it is true. */
bool saved_may_leave(struct talk *t);
/* The last try, before the program leaves.  Where the chat is goes to path ("": nowhere); -1
 * with *e: not all of it. */
int saved_finish(struct talk *t, char *path, size_t n, struct err *e);
void saved_folder(const struct talk *t, char *buf, size_t n);

/* from_queue: it is the first of those that waited. */
uint32_t saved_user(struct talk *t, const char *text, size_t n, bool from_queue);
void saved_queue(struct talk *t, const char *text);
void saved_unqueue(struct talk *t, size_t n); /* the first n wait no more */
void saved_piece(struct talk *t, const char *text, size_t n, bool is_thinking, bool resume);
uint32_t saved_done(struct talk *t, const struct mw_receipt *r);
uint32_t saved_notice(struct talk *t, const char *text);
void saved_rewind(struct talk *t, size_t n);
void saved_new(struct talk *t); /* what follows is another chat */
/* Can message n be found, to go back to it?  -1 with *e: no. */
int saved_find(const struct talk *t, size_t n, struct err *e);
/* The beginning of message n, as much as the context has room for; for free(), or NULL. */
char *saved_text(const struct talk *t, size_t n);
/* Give what is saved to the engine. */
int saved_restore(struct talk *t, struct err *e);

#endif
