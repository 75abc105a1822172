/*
 * panels.h - which panels the dashboard shows, in which order and size.
 *
 *     verdict speed memory:30 kv layers -cache
 *
 * As text: the panels from top to bottom.  ":30" is a height of 30 % of the dashboard; the
 * others share the rest.  "-" hides a panel.  A panel that is not named keeps its place after
 * those that are, so that a text from an older version still shows newer panels.
 */
#ifndef MEMWALL_UI_DASH_PANELS_H
#define MEMWALL_UI_DASH_PANELS_H

#include <stdbool.h>
#include <stddef.h>

/* The panels, from top to bottom, with the names of their widgets. */
#define DASH_WIDGETS(X) \
    X(verdict) X(speed) X(wall) X(memory) X(kv) X(cache) X(layers) X(experts)

#define PANELS      8
#define PANELS_SURE 7   /* the first ones, which every model shows */
#define PANELS_TEXT 160 /* bytes of the longest text with its NUL */

struct panels {
    struct panel {
        int widget;  /* index in dash_widgets */
        int percent; /* of the height; 0: the dashboard chooses */
        bool is_hidden;
    } row[PANELS]; /* from top to bottom */
    bool has_wall; /* a recording has none */
    int n_used;    /* the first ones of dash_widgets are for this model; others stay away */
    int chosen;    /* index in dash_widgets of the panel that keys change; -1: none */
};

/* Show all panels in their usual order; n_used stays. */
void panels_reset(struct panels *p);

/* Returns false, and changes nothing, unless text is valid. */
bool panels_parse(struct panels *p, const char *text);
/* Returns buf, of at least PANELS_TEXT bytes. */
char *panels_text(const struct panels *p, char *buf);

/* The index of the wall in dash_widgets: keys move its cursor. */
#define PANEL_WALL 2

/* The name of a widget in the text. */
const char *panels_name(int widget);
struct panel *panels_find(struct panels *p, int widget);

/* Is the panel in row i shown? */
bool panels_shows(const struct panels *p, int i);

/* Returns the nearest height in percent that a panel may have. */
int panels_fit(int percent);

/* Choose the next visible panel below (1) or above (-1), around the ends. */
void panels_choose(struct panels *p, int direction);
/* Show or hide a panel.  Returns false if it is the only one. */
bool panels_toggle(struct panels *p, int widget);
/* Move the chosen panel one place down (1) or up (-1) among the visible ones. */
void panels_move(struct panels *p, int direction);
/* Move a panel to the place of another one. */
void panels_put(struct panels *p, int widget, int at);

#endif
