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
#ifndef MEMWALL_UI_TALK_H
#define MEMWALL_UI_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/ui.h"

struct sheet;
struct store;

#define TALK_MAX_QUEUE  32
#define TALK_MAX_FILES  16
#define TALK_MAX_ATTACH ((size_t)4 << 20) /* bytes of one file */

enum talk_say { SAY_NOTICE, SAY_ERROR };

/* What only some fronts can do. */
enum talk_act { ACT_THEME, ACT_VIEW, ACT_MOUSE, ACT_COPY, ACT_PICK_TURN, ACT_RAW, ACT_FOLD };

/* How a front shows what happens; all are called on its own thread, from talk_* calls. */
struct talk_front {
    void *ctx;
    void (*say)(void *ctx, enum talk_say kind, const char *text); /* text is clean */
    void (*sheet)(void *ctx, struct sheet *s);                    /* takes it over */
    /* A message was given to the engine. */
    void (*user)(void *ctx, const char *text, size_t n, uint32_t id);
    /* An answer: begin with its first piece; done always, with pieces or without. */
    void (*begin)(void *ctx, bool resume);
    void (*piece)(void *ctx, const char *text, size_t n, bool is_thinking);
    void (*done)(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id);
    void (*rewound)(void *ctx, size_t n);       /* only the first n messages are left */
    void (*restored)(void *ctx);                /* another chat, or none: show the store's */
    void (*changed)(void *ctx);                 /* state, plan, queue: the status bar */
    void (*draft)(void *ctx, const char *text); /* back into the input line */
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
    struct mw_chat_options options; /* in force, or asked for */
    char *system;                   /* what options.system points to */
    struct plan plan;
    bool is_ready, has_failed; /* loaded; could not be */

    bool is_answering, is_stopping, resumes;
    bool had_text; /* the answer in the making has some */
    bool is_prefill;
    uint64_t prefill_done, prefill_total, started_ns;
    struct mw_receipt last; /* of the last answer */
    bool has_last;
    size_t n_message;  /* user and assistant, as the engine counts them */
    bool last_is_user; /* the last of them was not answered */

    char *queue[TALK_MAX_QUEUE]; /* typed while an answer ran */
    size_t n_queue;
    struct talk_file file[TALK_MAX_FILES]; /* go with the next message */
    size_t n_file;
};

/* Open the model and begin; o's strings must outlive t.  -1 with *e: nothing is left. */
int talk_open(struct talk *t, const struct ui_chat_options *o, struct err *e);
void talk_close(struct talk *t);

int talk_fd(const struct talk *t);
/* Take all events there are. */
void talk_pump(struct talk *t);

/* Enter: a command, or a message that is sent now or waits for its turn. */
void talk_enter(struct talk *t, const char *line);
/* A message, files included. */
void talk_send(struct talk *t, const char *text);
/* Stop the answer; what was said stays, what waits comes back into the input line. */
void talk_stop(struct talk *t);

/* A sample with the kernel's figures. */
void talk_sample(struct talk *t, struct mw_sample *out);

/* Something for the person, cleaned here. */
void talk_notice(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_error(struct talk *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void talk_err(struct talk *t, const struct err *e);

/* Give options to the engine (the strings in them are copied where they differ). */
void talk_set(struct talk *t, const struct mw_chat_options *o);

#endif
