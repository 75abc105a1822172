/*
 * ink.h - styles of cells to attributes and colour pairs of ncurses.
 *
 * Pairs are made when they are first used; a terminal with few of them (64) gets the
 * foreground alone when they run out.  Palette colours are never redefined.
 */
#ifndef MEMWALL_UI_TERM_INK_H
#define MEMWALL_UI_TERM_INK_H

#include "ui/term/canvas.h"
#include "ui/term/theme.h"

struct ink {
    enum ui_colors colors; /* what the terminal can and the person wants */
    int n_color;           /* COLORS */
    int n_pair;            /* pairs in use, 0 is the terminal's own */
    int max_pair;
    struct {
        int fg, bg;
    } pair[512];
    /* [role][on]: what was made for the theme; pair -1: not yet. */
    struct canvas_ink cache[UI_ROLES][UI_ROLES];
    struct theme theme;
};

/* After newterm and start_color. */
void ink_init(struct ink *ink, enum ui_colors colors, int n_color, int max_pair);
/* Pairs of the theme before are used again where they fit. */
void ink_set_theme(struct ink *ink, const struct theme *theme);
/* A canvas_ink_fn; ctx is a struct ink. */
struct canvas_ink ink_of(void *ctx, struct ui_style style);

#endif
