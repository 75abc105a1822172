/*
 * canvas.h - a rectangle of cells to draw on.
 *
 * A canvas is a view of a target: an ncurses window, or a grid in memory (for `--once` and
 * for golden pictures in tests).  It is a small value; canvas_sub() returns a part of it.
 * Drawing is clipped to the canvas at any coordinates.
 *
 *     y, x from 0 at the top left, sizes in cells; a wide character takes two cells
 *     and is not drawn if only one of them is inside.
 *
 * Text is UTF-8 and need not be clean: control characters and invalid bytes are drawn as
 * U+FFFD (cluster.h).  On an ASCII target other characters become '?', and the lines and
 * marks of canvas have ASCII forms.
 */
#ifndef MEMWALL_UI_TERM_CANVAS_H
#define MEMWALL_UI_TERM_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <wchar.h>

#include "engine/memwall.h"
#include "ui/look/role.h"
#include "ui/words/cluster.h"

struct canvas_target;

struct canvas {
    struct canvas_target *target;
    int y, x, height, width; /* on the target; height and width are never negative */
};

/* ---- targets ---- */

/*
 * Maximum number of cells, for a terminal of any size.  ncurses keeps three copies
 * of a 28-byte cell, so the screen takes at most 10.5 MiB of the memory budget.  A display of
 * 3840 x 2160 pixels with characters of 6 x 11 has 125,000 cells.
 */
#define CANVAS_MAX_CELLS (128 * 1024)

/* Reduce a size to at most CANVAS_MAX_CELLS, at the right and at the bottom. */
void canvas_fit(int *height, int *width);

/* A style in the terms of ncurses: attributes (attr_t) and colour pair. */
struct canvas_ink {
    unsigned attrs;
    int pair;
};
typedef struct canvas_ink canvas_ink_fn(void *ctx, struct ui_style style);

/* Create a target that draws into window (a WINDOW *).  The caller owns, resizes and
 * refreshes the window.  Returns NULL with *e (ERR_MEMORY) on failure. */
struct canvas_target *canvas_on_window(void *window, bool ascii, canvas_ink_fn *ink, void *ctx,
                                       struct err *e);

/* Create a grid in memory. */
struct canvas_target *canvas_on_grid(int height, int width, bool ascii, struct err *e);

void canvas_target_free(struct canvas_target *t);

/* Returns a canvas that covers the target at its current size. */
struct canvas canvas_of(struct canvas_target *t);

/* Write the text of a grid to f, one line per row, without trailing blanks. */
void canvas_write_text(const struct canvas_target *t, FILE *f);

/* Read one cell of a grid; text is "" for the right half of a wide character. */
void canvas_peek(const struct canvas_target *t, int y, int x, wchar_t text[CLUSTER_CHARS + 1],
                 struct ui_style *style);

/* ---- drawing ---- */

/* Returns the part of c that begins at y, x and is at most height x width. */
struct canvas canvas_sub(const struct canvas *c, int y, int x, int height, int width);

bool canvas_is_ascii(const struct canvas *c);

/* Returns a style with this role, without or with attributes. */
struct ui_style style_of(enum ui_role role);
struct ui_style style_with(enum ui_role role, unsigned attr);

/* Fill c with blanks. */
void canvas_clear(const struct canvas *c, struct ui_style style);
/* Fill cells [x, x + width) of row y with blanks. */
void canvas_blank(const struct canvas *c, int y, int x, int width, struct ui_style style);

/* Draw at most width columns of s[0 .. n).  Returns the number of columns drawn. */
int canvas_put(const struct canvas *c, int y, int x, int width, struct ui_style style,
               const char *s, size_t n);
/* The same for a string, up to the right edge. */
int canvas_text(const struct canvas *c, int y, int x, struct ui_style style, const char *s);
int canvas_printf(const struct canvas *c, int y, int x, struct ui_style style, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Draw text that ends before column x_end, cut at its end if it does not fit.  Returns the
 * column where it begins. */
int canvas_right(const struct canvas *c, int y, int x_end, struct ui_style style,
                 const char *s);

/* Draw one cluster that needs no cleaning; width is its wcwidth. */
void canvas_cell(const struct canvas *c, int y, int x, struct ui_style style, wchar_t ch);
/* Draw the same cell n times, to the right. */
void canvas_repeat(const struct canvas *c, int y, int x, int n, struct ui_style style,
                   wchar_t ch);

void canvas_hline(const struct canvas *c, int y, int x, int n, struct ui_style style);
void canvas_vline(const struct canvas *c, int y, int x, int n, struct ui_style style);
/* Draw a line with rounded corners along the edges of c; the inside stays as it is.  Titles go
 * over row 0 and over the last row. */
void canvas_box(const struct canvas *c, struct ui_style style);

/*
 * Draw a bar of width cells from column x, filled by share (0 to 1), with a resolution of an
 * eighth of a cell where the target allows it.  The unfilled part is dots in style rest.
 */
void canvas_bar(const struct canvas *c, int y, int x, int width, double share,
                struct ui_style fill, struct ui_style rest);

#endif
