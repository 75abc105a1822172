/*
 * widget.h - the interface of dashboard widgets.
 *
 * To add one: a file with its functions and a constant of this struct, its name in
 * DASH_WIDGETS, and the file in local.mk.  A widget draws into a canvas of at least
 * min_height x min_width, which is the inside of a box (box.h) and its upper border: row 0,
 * for the head of the widget (widget_head).  A folded widget is a row inside the box above it.
 */
#ifndef MEMWALL_UI_DASH_WIDGET_H
#define MEMWALL_UI_DASH_WIDGET_H

#include "ui/dash/figure.h"
#include "ui/dash/state.h"
#include "ui/term/canvas.h"

struct dash_widget {
    const char *name;
    int min_width, min_height;
    int importance;   /* 0 gets space first */
    bool is_tall;     /* prefers a column of its own if there are two */
    bool stretches;   /* takes the remaining height */
    bool is_of_model; /* shows nothing but its head while there is no model */
    /* NULL, or returns whether its head says all that there is now. */
    bool (*folds)(const struct dash *d);
    /* NULL, or returns whether all of it is zero.  Then it is shown only while it is chosen, to
     * be moved. */
    bool (*is_empty)(const struct dash *d);
    /* NULL, or returns the lines it needs now in addition to min_height, if they fit. */
    int (*wants)(const struct dash *d, int width);
    /* NULL, or returns the height for all of its figures.  It grows beyond, to curves and bars,
     * after all other widgets have theirs. */
    int (*enough)(const struct dash *d, int width);
    /* Returns the next larger height that improves it at this width; 0: none. */
    int (*step)(const struct dash *d, int width, int height);
    void (*draw)(const struct dash *d, const struct canvas *c);
    /* NULL, or handles a click at y, x of a canvas of this size. */
    bool (*click)(struct dash *d, int height, int width, int y, int x);
};

/* DASH_WIDGETS is in panels.h; X(verdict) stands for dash_verdict_widget. */
#define DASH_DECLARE(name) extern const struct dash_widget dash_##name##_widget;
DASH_WIDGETS(DASH_DECLARE)
#undef DASH_DECLARE

extern const struct dash_widget *const dash_widgets[]; /* NULL at the end */

/* Draw " name " and " figure " over the border in row 0. */
void widget_head(const struct canvas *c, const char *name, const char *figure);
/* The same for the figures that the eye should find first. */
void widget_headline(const struct canvas *c, const char *name, const char *figure,
                     struct ui_style style);

/* Draw a label and a value at x; role is the role of the value.  Returns the column after them
 * and two blanks. */
int widget_pair(const struct canvas *c, int y, int x, const char *label, const char *value,
                enum ui_role role);

/* Returns the rate of the moment; a predicted one begins with "~". */
struct figure speed_now(const struct dash *d);

/* Returns the role of the verdict. */
enum ui_role verdict_role(const struct dash *d);

/* Draw a sentence, "bottleneck: cause; remedy", wrapped at words.  If it does not fit, the part
 * before the first ": " goes; then only the last clause stays, since a remedy is worth most, or
 * only the first one, if the last does not fit alone.  A clause is never divided. */
void widget_wrap(const struct canvas *c, struct ui_style style, const char *text);
/* Returns the lines of a text. */
int widget_lines(const char *text, int width);

/* Draw the stacked bar of the memory meter across row y, with these letters; NULL: all. */
void memory_bar(const struct dash *d, const struct canvas *c, int y, const char *letters);
/* Draw the key of its letters in n lines, the largest segments first, as far as they fit.
 * Writes the letters that have a key. */
#define MEMORY_LETTERS 19
void memory_key(const struct dash *d, const struct canvas *c, int y, int n,
                char letters[MEMORY_LETTERS]);

/* Draw the wall in row y: a low curve with its marks, and the figures at its cursor.  has_head:
 * it is named above, with the settings in use. */
void wall_line(const struct dash *d, const struct canvas *c, int y, bool has_head);

/* Draw the dashboard in at most four lines. */
void strip_draw(const struct dash *d, const struct canvas *c);

#endif
