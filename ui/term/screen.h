/*
 * screen.h - a terminal with its keys, for programs that show one thing until the person leaves.
 *
 * screen_take() waits and takes keys and signals.  Such a program calls it, and draws after it
 * while is_leaving is not set.  It obeys Ctrl-L, a new size, and stops; all other keys go to
 * on_key.
 */
#ifndef MEMWALL_UI_TERM_SCREEN_H
#define MEMWALL_UI_TERM_SCREEN_H

#include "ui/term/term.h"

struct screen {
    void (*on_key)(void *ctx, const struct key *key);
    void *ctx;
    int on_interrupt; /* the status after SIGINT */
    bool can_stop;    /* Ctrl-Z stops the process */

    struct term *term;
    struct keys *keys;
    bool is_leaving;
    int status;    /* then: 0, or 128 + n if signal n ended it */
    bool is_large; /* the next frame draws everything */
};

/* Take the terminal.  The first four fields of s are set, the others zero.  -1 with *e: nothing
 * was drawn, and screen_close() is due all the same. */
int screen_open(struct screen *s, const struct ui_options *ui, const char *config_dir,
                struct err *e);
void screen_close(struct screen *s);
/* Show what was drawn on term_canvas(), with the cursor at y, x (hidden if y is negative). */
void screen_frame(struct screen *s, int y, int x);
/* Wait at most this long for keys and signals, and take them; UINT64_MAX: without end.  -1 with
 * *e if waiting failed; then s is leaving. */
int screen_take(struct screen *s, uint64_t wait_ns, struct err *e);
void screen_leave(struct screen *s, int status);

#endif
