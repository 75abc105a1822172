/*
 * ink.h - maps cell styles to ncurses attributes and colour pairs.
 *
 * Pairs are allocated on first use.  A terminal that runs out of them (some have 64) gets the
 * foreground alone.  Palette colours are never redefined.
 */
#ifndef MEMWALL_UI_TERM_INK_H
#define MEMWALL_UI_TERM_INK_H

#include "ui/look/theme.h"
#include "ui/term/canvas.h"

struct ink {
    enum ui_colors colors; /* of the terminal, limited by the options */
    int n_color;           /* COLORS */
    int n_pair;            /* pairs in use; 0 is the terminal's default */
    int max_pair;
    struct {
        int fg, bg;
    } pair[512];
    /* [role][on], for the current theme; pair -1: not allocated yet */
    struct canvas_ink cache[UI_ROLES][UI_ROLES];
    const struct theme *theme;
};

/* Call after newterm and start_color. */
void ink_init(struct ink *ink, enum ui_colors colors, int n_color, int max_pair);
/* Change the theme, which must outlive ink; pairs of the previous theme are reused where they
 * match. */
void ink_set_theme(struct ink *ink, const struct theme *theme);
/* A canvas_ink_fn; ctx is a struct ink. */
struct canvas_ink ink_of(void *ctx, struct ui_style style);

#endif
