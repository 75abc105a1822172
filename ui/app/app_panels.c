/*
 * Choosing which panels the dashboard shows, in which order and size; kept in the state folder:
 *
 *     panels verdict speed memory:30 kv layers -cache
 *     split 412
 *
 * The file is written after every change.  It is not synced, since the disk is busy with
 * weights: after a crash it may be cut off, and a file that cannot be read is ignored.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/new_file.h"
#include "engine/base/small_file.h"
#include "ui/app/app.h"
#include "ui/dash/dash.h"

#define FILE_TEXT (PANELS_TEXT + 64)

/* ---- the file ---- */

static void file_path(const struct app *a, char *buf, size_t n)
{
    snprintf(buf, n, "%s/layout", talk_settings(a->talk)->paths.state_dir);
}

/* Read the two lines of a file; text ends with a NUL. */
static void take_text(struct app *a, char *text)
{
    char *panels = strncmp(text, "panels ", 7) == 0 ? text + 7 : NULL;
    char *end = panels != NULL ? strchr(panels, '\n') : NULL;
    int permille;

    if (end == NULL || sscanf(end + 1, "split %d", &permille) != 1 || permille < 0 ||
        permille > 1000)
        return;
    *end = '\0';
    if (panels_parse(dash_panels(a->dash), panels) && a->permille == 0)
        a->permille = permille;
}

void app_load_panels(struct app *a)
{
    struct err ignored = ERR_INIT;
    char path[4200], *text;

    file_path(a, path, sizeof path);
    text = small_file_read(path, FILE_TEXT, NULL, &ignored);
    if (text != NULL)
        take_text(a, text);
    free(text);
}

void app_save_panels(struct app *a)
{
    char path[4200], text[PANELS_TEXT];
    struct err e = ERR_INIT;
    struct new_file file;
    int rc;

    file_path(a, path, sizeof path);
    rc = new_file_begin(&file, path, true, &e);
    if (rc == 0) {
        fprintf(file.f, "panels %s\nsplit %d\n", panels_text(dash_panels(a->dash), text),
                a->permille);
        rc = new_file_end(&file, &e);
    }
    if (rc != 0)
        app_hint(a, "the layout could not be saved in %.200s", path);
}

static void changed(struct app *a)
{
    app_save_panels(a);
    app_dirty(a, DIRT_DASH | DIRT_LARGE);
}

/* ---- keys ---- */

void app_choose_panel(struct app *a)
{
    struct panels *p = dash_panels(a->dash);
    bool is_strip = a->layout.dash.height <= LAYOUT_STRIP_LINES;

    if (is_strip && !panels_find(p, PANEL_WALL)->is_hidden)
        p->chosen = PANEL_WALL; /* the only one that fits */
    else if (p->chosen < 0)
        panels_choose(p, -1);
    if (p->chosen == PANEL_WALL)
        app_wall_hint(a);
    else if (!is_strip)
        app_hint(a,
                 "?: explain  1-%d: hide, show  Left, Right: choose  w: wall  K, J: move  "
                 "+, -: size  0: reset",
                 p->n_used);
    else
        app_hint(a, "the strip has no panels: Alt-, enlarges it, F2 shows the dashboard");
}

static void toggle(struct app *a, int widget)
{
    struct panels *p = dash_panels(a->dash);

    if (!panels_toggle(p, widget))
        app_hint(a, "this is the only panel");
    else
        app_hint(a,
                 panels_find(p, widget)->is_hidden ? "%s is hidden; %d shows it"
                                                   : "%s is shown; %d hides it",
                 panels_name(widget), widget + 1);
    changed(a);
}

static void reset(struct app *a)
{
    struct panels *p = dash_panels(a->dash);

    panels_reset(p);
    panels_choose(p, -1);
    a->permille = a->ui.split_percent * 10;
    app_hint(a, "the panels are as they were at first");
    changed(a);
    app_set_view(a, a->ui.view);
}

static bool named_key(struct app *a, const struct key *key)
{
    struct panels *p = dash_panels(a->dash);
    bool is_shift = (key->mods & KEYS_SHIFT) != 0;

    /* Left and Right move the cursor of the wall. */
    bool leaves_wall = p->chosen == PANEL_WALL && !is_shift &&
                       (key->name == KEYS_UP || key->name == KEYS_DOWN);

    if (key->name == KEYS_LEFT || key->name == KEYS_RIGHT || leaves_wall) {
        panels_choose(p, key->name == KEYS_LEFT || key->name == KEYS_UP ? -1 : 1);
        app_choose_panel(a);
        return true;
    }
    if (!is_shift || (key->name != KEYS_UP && key->name != KEYS_DOWN))
        return false;
    panels_move(p, key->name == KEYS_UP ? -1 : 1);
    changed(a);
    return true;
}

bool app_panels_key(struct app *a, const struct key *key)
{
    const struct area *at = &a->layout.dash;

    if (key->kind == KEYS_NAMED)
        return named_key(a, key);
    if (key->kind != KEYS_CHAR || key->mods != 0)
        return false;
    switch (key->ch) {
    case 'K':
    case 'J': panels_move(dash_panels(a->dash), key->ch == 'K' ? -1 : 1); break;
    case '+':
    case '=': dash_resize(a->dash, at->height, at->width, 1); break;
    case '-': dash_resize(a->dash, at->height, at->width, -1); break;
    case '0': reset(a); return true;
    case 'w':
        if (panels_find(dash_panels(a->dash), PANEL_WALL)->is_hidden)
            toggle(a, PANEL_WALL);
        dash_panels(a->dash)->chosen = PANEL_WALL;
        app_choose_panel(a);
        return true;
    default:
        if (key->ch < '1' || key->ch > '9')
            return false;
        if ((int)key->ch - '1' < dash_panels(a->dash)->n_used)
            toggle(a, (int)key->ch - '1');
        else
            app_hint(a, "this model has the panels 1 to %d", dash_panels(a->dash)->n_used);
        return true;
    }
    changed(a);
    return true;
}

/* ---- the mouse ---- */

static struct dash_spot spot_at(const struct app *a, int y, int x)
{
    const struct area *at = &a->layout.dash;

    return dash_at(a->dash, at->height, at->width, y - at->y, x - at->x);
}

bool app_panels_press(struct app *a, int y, int x)
{
    struct dash_spot spot = spot_at(a, y, x);

    if (spot.part != DASH_TITLE && spot.part != DASH_EDGE)
        return false;
    a->drag = spot.part == DASH_TITLE ? DRAG_PANEL : DRAG_EDGE;
    a->dragged = spot.widget;
    if (spot.part == DASH_TITLE)
        app_hint(a, "drag %s to the place of another panel; the right button hides it",
                 panels_name(spot.widget));
    return true;
}

void app_panels_drag(struct app *a, int y, int x)
{
    const struct area *at = &a->layout.dash;
    struct dash_spot spot = spot_at(a, y, x);

    if (a->drag == DRAG_EDGE)
        dash_drag_edge(a->dash, at->height, at->width, a->dragged, y - at->y);
    else if (spot.part != DASH_NOTHING && spot.widget != a->dragged)
        app_hint(a, "release: %s goes to the place of %s", panels_name(a->dragged),
                 panels_name(spot.widget));
    app_dirty(a, DIRT_DASH | DIRT_LARGE);
}

void app_panels_release(struct app *a, int y, int x)
{
    struct dash_spot spot = spot_at(a, y, x);

    if (a->drag == DRAG_PANEL && spot.part != DASH_NOTHING && spot.widget != a->dragged) {
        panels_put(dash_panels(a->dash), a->dragged, spot.widget);
        app_hint(a, "%s is moved", panels_name(a->dragged));
    }
    changed(a);
}

/* The right button hides a panel at its title, and inside of one shows all again. */
void app_panels_right(struct app *a, int y, int x)
{
    struct panels *p = dash_panels(a->dash);
    struct dash_spot spot = spot_at(a, y, x);

    if (spot.part == DASH_TITLE && panels_toggle(p, spot.widget)) {
        app_hint(a, "%s is hidden; the right button inside a panel shows it",
                 panels_name(spot.widget));
    } else if (spot.part == DASH_INSIDE) {
        for (int i = 0; i < PANELS; i++)
            p->row[i].is_hidden = false;
        app_hint(a, "all panels are shown; the right button on a title hides one");
    }
    changed(a);
}
