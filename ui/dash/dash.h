/*
 * dash.h - the dashboard: a state fed by samples, and widgets that draw it.
 *
 *     struct mw_sample ──dash_push──> struct dash ──> widget ──> canvas
 *       (live or replayed)             histories      memory, speed, layers, …
 *
 * Widgets only use the state and a canvas, never the engine, so a recording looks like the
 * session it was made from.  Only measured values are shown: an unknown one is "-", an
 * estimate begins with "~".  Numbers have a fixed width and place.
 *
 * dash_new allocates all memory; pushing and drawing allocate nothing.
 */
#ifndef MEMWALL_UI_DASH_DASH_H
#define MEMWALL_UI_DASH_DASH_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/memwall.h"
#include "ui/dash/state.h"
#include "ui/term/canvas.h"

/* Clear c and draw the dashboard, arranged for its size. */
void dash_draw(const struct dash *d, const struct canvas *c);

/* Handle a click at y, x of a canvas of this size.  Returns whether it had an effect. */
bool dash_click(struct dash *d, int height, int width, int y, int x);

/* A place on a canvas of this size, for the mouse. */
enum dash_part {
    DASH_NOTHING,
    DASH_INSIDE, /* of a panel */
    DASH_TITLE,  /* of a panel */
    DASH_EDGE,   /* the line below a panel that has another one below it */
};
struct dash_spot {
    enum dash_part part;
    int widget; /* index in dash_widgets */
};
struct dash_spot dash_at(const struct dash *d, int height, int width, int y, int x);

/* Give a panel the height that puts its edge at row y. */
void dash_drag_edge(struct dash *d, int height, int width, int widget, int y);
/* Make the chosen panel higher or lower. */
void dash_resize(struct dash *d, int height, int width, int rows);

/* Write the diagnosis of a sample as one sentence, "" if nothing is known.  has_keys: F10 runs the
 * advised command.  Returns buf. */
char *dash_verdict(char *buf, size_t n, const struct mw_sample *s, bool has_keys);

/* Write the figures of a sample as one line of JSON. */
void ui_dash_json(const struct mw_sample *s, FILE *f);
/* Write one sample as text of this size.  Returns 0, or -1 with *e. */
int ui_dash_once(const struct mw_sample *s, int width, int height, bool ascii, FILE *f,
                 struct err *e);

#endif
