/*
 * dash.h - the dashboard: a state fed by samples, and widgets that draw it.
 *
 *     struct mw_sample ──dash_push──> struct dash ──> widget ──> canvas
 *       (live or replayed)             histories      memory, speed, layers, …
 *
 * A widget sees the state and a canvas, never the engine; so a recording looks like the
 * session it was made from.  Nothing is shown that was not measured: what is absent is
 * "-", what is estimated begins with "~".  A number has a fixed width and place.
 *
 * All memory is taken by dash_new; pushing and drawing take none.
 */
#ifndef MEMWALL_UI_DASH_DASH_H
#define MEMWALL_UI_DASH_DASH_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/memwall.h"
#include "ui/term/canvas.h"
#include "ui/ui.h"

struct dash;

/* graph: not UI_GRAPH_AUTO.  NULL with *e (ERR_MEMORY). */
struct dash *dash_new(enum ui_graph graph, struct err *e);
void dash_free(struct dash *d);

/* A new sample; older tokens and seconds stay in the histories.  Samples must come in the
 * order of their time; one that goes back (another recording) begins anew. */
void dash_push(struct dash *d, const struct mw_sample *s);

/* The answer in the making ends after n_predict tokens at the latest; 0: when the context is
 * full.  For the time left. */
void dash_set_cap(struct dash *d, uint32_t n_predict);

/* Draw all of it, laid out for the size of c; the background is cleared. */
void dash_draw(const struct dash *d, const struct canvas *c);

/* The cursor of the layers: which one is inspected; -1: none.  Steps go round. */
void dash_move_cursor(struct dash *d, int by);
void dash_set_cursor(struct dash *d, int layer);
int dash_cursor(const struct dash *d);
/* A click at y, x of a canvas of this size.  true: it meant something. */
bool dash_click(struct dash *d, int height, int width, int y, int x);

/* What binds and what would help, as one sentence; returns buf.  "" while nothing was
 * measured. */
char *dash_verdict(char *buf, size_t n, const struct mw_sample *s);

/* For `--json`: a sample's figures as one line of JSON.  Returns 0, or -1 with *e. */
int ui_dash_json(const struct mw_sample *s, FILE *f, struct err *e);
/* For `--once`: one sample as text of this size. Returns 0, or -1 with *e. */
int ui_dash_once(const struct mw_sample *s, int width, int height, bool ascii, FILE *f,
                 struct err *e);

#endif
