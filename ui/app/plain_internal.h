/*
 * plain_internal.h - the state of plain mode, shared by the loop (plain.c), what is printed
 * (plain_show.c) and what is typed (plain_lines.c).
 */
#ifndef MEMWALL_UI_APP_PLAIN_INTERNAL_H
#define MEMWALL_UI_APP_PLAIN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/app/tour.h"
#include "ui/talk/talk.h"
#include "ui/text/sheet.h"
#include "ui/words/clean.h"

struct plain {
    struct talk *talk;
    struct tour *tour; /* NULL: none, or it is over */
    int signal_fd;
    bool is_tty, is_utf8;
    bool at_end; /* of standard input */
    bool is_leaving, has_prompt, at_line_start;
    int status;
    uint64_t leave_ns;
    struct sheet *sheet; /* waits for an answer */
    char *draft;         /* a message that was taken back; NULL: none */
    char *typed;         /* bytes of standard input without the end of their message */
    size_t n_typed, room;
    struct clean clean;
    unsigned quarter; /* of the prompt that was reported last */
    bool said_thinking, said_waiting;
    char shown[512]; /* printed before, and the answer goes on with it or without it */
    size_t n_shown;
};

/* ---- plain_show.c ---- */

/* Fill in the functions that show the conversation. */
void plain_front(struct plain *p, struct talk_front *out);

/* Print a line of its own. */
void plain_put_line(struct plain *p, const char *text);
/* Print the prompt for the next line, once. */
void plain_put_prompt(struct plain *p, const char *text);
/* Another line or sheet came instead of an answer. */
void plain_say_dropped(struct plain *p, const struct sheet *s);
/* Report how many messages the conversation has. */
void plain_on_restored(void *ctx);

/* ---- plain.c ---- */

/* Has everything that was entered been done, as far as it can be? */
bool plain_is_idle(const struct plain *p);

/* ---- plain_lines.c ---- */

/* Returns the prompt for a message, or for an answer to a sheet. */
const char *plain_prompt(const struct plain *p);
/* Read what was typed. */
void plain_read_lines(struct plain *p);
/* Take the first complete message: a line, and the lines after a backslash at its end.  Returns
 * false if there is none that can be taken now. */
bool plain_take_typed(struct plain *p);
/* Ctrl-C */
void plain_interrupt(struct plain *p);

#endif
