/*
 * front.h - how a conversation is shown: a table of functions that the screen (app_front.c)
 * and plain mode (plain.c) each fill.
 *
 * All of them are called on the thread that calls talk_*.
 */
#ifndef MEMWALL_UI_TALK_FRONT_H
#define MEMWALL_UI_TALK_FRONT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"
#include "ui/options/options.h"

struct attached;
struct sheet;

enum talk_say { SAY_NOTICE, SAY_ERROR };

/* Actions that only the screen can do. */
enum talk_action { ACTION_COPY, ACTION_PICK_TURN, ACTION_PICK_MODEL, ACTION_FIND };

struct talk_front {
    void *ctx;
    bool is_person;  /* lines come from a person, who may run commands of the shell */
    bool has_screen; /* with keys and an input line that text can return to */
    /* text is clean; id is the item of the saved chat that holds it, or STORE_NO_ITEM. */
    void (*say)(void *ctx, enum talk_say kind, const char *text, uint32_t id);
    /* Shows s, which belongs to the front from now on. */
    void (*sheet)(void *ctx, struct sheet *s);
    /* A message was given to the engine. */
    void (*user)(void *ctx, const char *text, size_t n, const struct attached *a, uint32_t id);
    /* An answer: begin comes with its first piece, done always, even if there was no piece. */
    void (*begin)(void *ctx, bool resumes);
    /* The answer goes on: these bytes at its end come again, or turn out to be no text.  They
     * were held back until it was cut. */
    void (*take_back)(void *ctx, const char *text, size_t n, bool is_thinking);
    void (*piece)(void *ctx, const char *text, size_t n, bool is_thinking);
    void (*thought)(void *ctx); /* all text of the answer so far was thinking */
    /* r is NULL if no model made the answer: it is from the help texts. */
    void (*done)(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id);
    /* The answer ended because the context is full.  Offers a way out. */
    void (*context_full)(void *ctx);
    void (*rewound)(void *ctx, size_t n); /* only the first n messages are left */
    void (*dropped)(void *ctx, size_t n); /* the model no longer sees the first n messages */
    void (*restored)(void *ctx);          /* another conversation: show what is saved of it */
    void (*changed)(void *ctx);           /* state, plan or queue */
    void (*draft)(void *ctx, const char *text); /* text goes back into the input line */
    /* The text of message n (from 0), to be freed; NULL if it is not available. */
    char *(*text_of)(void *ctx, size_t n);
    /* -1 with *e if this front cannot do it. */
    int (*act)(void *ctx, enum talk_action action, const char *arg, struct err *e);
    /* Write the current options of the screen; change one of them.  The latter returns -1 with
     * *e if this front cannot do it. */
    void (*look)(void *ctx, struct ui_options *out);
    int (*set_look)(void *ctx, enum option_id what, const struct ui_options *look,
                    struct err *e);
    void (*quit)(void *ctx);
};

/* Format, clean and show one message to the person. */
void front_say(const struct talk_front *f, enum talk_say kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void front_vsay(const struct talk_front *f, enum talk_say kind, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
void front_report(const struct talk_front *f, const struct err *e);

#endif
