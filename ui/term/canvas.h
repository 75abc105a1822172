/*
 * canvas.h - a rectangle of cells to draw on.
 *
 * A canvas is a view on a target: a window of ncurses, or a grid in memory (for `--once`,
 * for pictures in tests).  It is a small value; canvas_sub() gives a smaller one.  Nothing
 * is ever drawn outside of it, whatever the coordinates are; what lies outside is cut.
 *
 *     y, x from 0 at the top left, sizes in cells; a wide character takes two cells
 *     and is not drawn if only one of them is inside.
 *
 * Text is UTF-8 and need not be clean: what a terminal would obey is shown as U+FFFD
 * (cluster.h).  On a target that is ASCII, what is not ASCII becomes '?', and the lines
 * and marks that canvas offers have ASCII forms.
 */
#ifndef MEMWALL_UI_TERM_CANVAS_H
#define MEMWALL_UI_TERM_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <wchar.h>

#include "engine/memwall.h"
#include "ui/term/cluster.h"
#include "ui/term/role.h"

struct canvas_target;

struct canvas {
    struct canvas_target *target;
    int y, x, height, width; /* on the target; height and width are never negative */
};

/* ---- targets ---- */

/*
 * The most cells that are drawn on, whatever size a terminal reports.  ncurses keeps three
 * copies of a cell of 28 bytes, so this bounds the screen to 10.5 MiB of the memory budget.  A
 * display of 3840 x 2160 pixels with characters of 6 x 11 has 125,000.
 */
#define CANVAS_MAX_CELLS (128 * 1024)

/* Cut a size to at most CANVAS_MAX_CELLS, at the right and at the bottom. */
void canvas_fit(int *height, int *width);

/* How a style is told to ncurses: attributes (attr_t) and colour pair. */
struct canvas_ink {
    unsigned attrs;
    int pair;
};
typedef struct canvas_ink canvas_ink_fn(void *ctx, struct ui_style style);

/* A target that draws into window (a WINDOW *), which the caller keeps, resizes and
 * refreshes.  Returns NULL with *e (ERR_MEMORY). */
struct canvas_target *canvas_on_window(void *window, bool ascii, canvas_ink_fn *ink, void *ctx,
                                       struct err *e);

/* A grid in memory. */
struct canvas_target *canvas_on_grid(int height, int width, bool ascii, struct err *e);

void canvas_target_free(struct canvas_target *t);

/* All of the target, as large as it is now. */
struct canvas canvas_of(struct canvas_target *t);

/* A grid's text, rows ended by newlines, blanks at their ends left out. */
void canvas_write_text(const struct canvas_target *t, FILE *f);

/* What the grid holds in one cell; text is "" behind a wide character. */
void canvas_peek(const struct canvas_target *t, int y, int x, wchar_t text[CLUSTER_CHARS + 1],
                 struct ui_style *style);

/* ---- drawing ---- */

/* The part of c that begins at y, x and is at most height x width. */
struct canvas canvas_sub(const struct canvas *c, int y, int x, int height, int width);

bool canvas_is_ascii(const struct canvas *c);

/* A style that is a role and nothing else, or with attributes. */
struct ui_style style_of(enum ui_role role);
struct ui_style style_with(enum ui_role role, unsigned attr);

/* Blank all of c. */
void canvas_clear(const struct canvas *c, struct ui_style style);
/* Blank cells x … x + width of row y. */
void canvas_blank(const struct canvas *c, int y, int x, int width, struct ui_style style);

/* At most width columns of text s[0 .. n); returns the columns drawn. */
int canvas_put(const struct canvas *c, int y, int x, int width, struct ui_style style,
               const char *s, size_t n);
/* The same for a string, which may go on to the right edge. */
int canvas_text(const struct canvas *c, int y, int x, struct ui_style style, const char *s);
int canvas_printf(const struct canvas *c, int y, int x, struct ui_style style, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Ends before column x_end; what does not fit is cut at the right. Returns where it began. */
int canvas_right(const struct canvas *c, int y, int x_end, struct ui_style style,
                 const char *s);

/* One cluster of ours; width columns as wcwidth says. */
void canvas_cell(const struct canvas *c, int y, int x, struct ui_style style, wchar_t ch);
/* The same cell n times, to the right. */
void canvas_repeat(const struct canvas *c, int y, int x, int n, struct ui_style style,
                   wchar_t ch);

void canvas_hline(const struct canvas *c, int y, int x, int n, struct ui_style style);
void canvas_vline(const struct canvas *c, int y, int x, int n, struct ui_style style);
/* A frame around all of c with a title (NULL: none) in its upper line. */
void canvas_box(const struct canvas *c, struct ui_style border, struct ui_style text,
                const char *title);

/*
 * A bar of width cells from column x, filled by share (0 to 1), to an eighth of a cell
 * where the target allows it.  The rest of it is dots in style rest.
 */
void canvas_bar(const struct canvas *c, int y, int x, int width, double share,
                struct ui_style fill, struct ui_style rest);

#endif
