/* The dashboard as a whole: arranged, drawn, clicked, printed. */
#include "config.h"

#include "ui/dash/dash.h"

#include <stdlib.h>
#include <string.h>

#include "ui/dash/arrange.h"
#include "ui/dash/server.h"
#include "ui/term/box.h"

static int index_of(const struct dash_widget *w)
{
    int i = 0;

    while (i < PANELS - 1 && dash_widgets[i] != w)
        i++;
    return i;
}

/* The rows and columns that a widget draws. */
static struct canvas inside(const struct canvas *c, const struct place *p)
{
    int inset = box_inset(p->width);

    return canvas_sub(c, p->y, p->x + inset, p->height, p->width - 2 * inset);
}

static void draw_upper(const struct canvas *c, const struct place *p, enum ui_role role)
{
    struct canvas box = canvas_sub(c, 0, p->x, c->height, p->width);

    if (p->is_row)
        box_sides(&box, p->y, 1, role);
    else
        box_line(&box, p->y, p->joins ? BOX_JOINT : BOX_TOP, role);
}

static void draw_box(const struct canvas *c, const struct place *p, enum ui_role role)
{
    struct canvas box = canvas_sub(c, 0, p->x, c->height, p->width);

    draw_upper(c, p, role);
    box_sides(&box, p->y + 1, p->height - 1, role);
    if (p->bottom > p->y)
        box_line(&box, p->bottom, BOX_BOTTOM, role);
}

static void draw_boxes(const struct dash *d, const struct canvas *c, const struct place *place,
                       int n)
{
    for (int i = 0; i < n; i++)
        draw_box(c, &place[i], ROLE_BORDER);
    for (int i = 0; i < n && d->panels.chosen >= 0; i++) {
        if (place[i].widget != dash_widgets[d->panels.chosen])
            continue;
        draw_box(c, &place[i], ROLE_ACCENT);
        if (place[i].bottom < 0 && !place[i + 1].is_row) /* it shares its lower border */
            draw_upper(c, &place[i + 1], ROLE_ACCENT);
    }
}

/* While a model is loaded, zeros would be read as figures. */
static bool has_model(const struct dash *d)
{
    return d->now.state != MW_LOADING || d->now.run.file_bytes > 0;
}

void dash_draw(const struct dash *d, const struct canvas *c)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, c->height, c->width);

    canvas_clear(c, style_of(ROLE_TEXT));
    if (d->has_server) {
        server_draw(d, c);
        return;
    }
    if (!d->has_sample)
        return;
    if (n == 0)
        strip_draw(d, c);
    draw_boxes(d, c, place, n);
    for (int i = 0; i < n; i++) {
        struct canvas part = inside(c, &place[i]);

        if (place[i].widget->is_of_model && !has_model(d))
            widget_head(&part, place[i].widget->name, "");
        else
            place[i].widget->draw(d, &part);
        if (d->panels.chosen >= 0) /* the key that hides it */
            canvas_cell(c, place[i].y, place[i].x + !place[i].is_row,
                        style_with(ROLE_ACCENT, UI_BOLD), L'1' + index_of(place[i].widget));
    }
}

/* ---- the mouse ---- */

bool dash_click(struct dash *d, int height, int width, int y, int x)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, height, width);

    for (int i = 0; i < n; i++) {
        const struct place *p = &place[i];
        int inset = box_inset(p->width), wide = p->width - 2 * inset;

        if (y >= p->y && y < p->y + p->height && x >= p->x + inset && x < p->x + inset + wide)
            return p->widget->click != NULL &&
                   p->widget->click(d, p->height, wide, y - p->y, x - p->x - inset);
    }
    return false;
}

/* The line between two panels of one box is the edge of the upper one, but for the name. */
static struct dash_spot spot_in(const struct place *p, const struct place *next, int y, int x)
{
    int end = p->x + box_inset(p->width) + 2 + (int)strlen(p->widget->name);
    struct dash_spot spot = { DASH_NOTHING, index_of(p->widget) };

    if (x < p->x || x >= p->x + p->width)
        return spot;
    if (y == p->y && (x < end || p->is_row))
        spot.part = DASH_TITLE;
    else if (y == p->y + p->height && next != NULL && next->x == p->x && !next->is_row)
        spot.part = DASH_EDGE;
    else if (y > p->y && y < p->y + p->height)
        spot.part = DASH_INSIDE;
    return spot;
}

struct dash_spot dash_at(const struct dash *d, int height, int width, int y, int x)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, height, width);

    /* From below, since the name in a shared line is above the edge. */
    for (int i = n - 1; i >= 0; i--) {
        struct dash_spot spot = spot_in(&place[i], i + 1 < n ? &place[i + 1] : NULL, y, x);

        if (spot.part != DASH_NOTHING)
            return spot;
    }
    return (struct dash_spot){ DASH_NOTHING, -1 };
}

/* ---- the sizes of panels ---- */

static void set_height(struct dash *d, int widget, int rows, int height)
{
    int percent = (rows * 100 + height / 2) / height;

    panels_find(&d->panels, widget)->percent = panels_fit(percent);
}

void dash_drag_edge(struct dash *d, int height, int width, int widget, int y)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, height, width);

    for (int i = 0; i < n; i++)
        if (place[i].widget == dash_widgets[widget])
            set_height(d, widget, y - place[i].y, height);
}

void dash_resize(struct dash *d, int height, int width, int rows)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, height, width), chosen = d->panels.chosen;

    for (int i = 0; i < n && chosen >= 0; i++)
        if (place[i].widget == dash_widgets[chosen])
            set_height(d, chosen, place[i].height + rows, height);
}

void ui_dash_json(const struct mw_sample *s, FILE *f)
{
    struct json j;

    json_start_stream(&j, f);
    mw_sample_json(&j, s, "sample");
    json_line(&j);
}

int ui_dash_once(const struct mw_sample *s, int width, int height, bool ascii, FILE *f,
                 struct err *e)
{
    struct canvas_target *t = canvas_on_grid(height, width, ascii, e);
    struct dash *d = t != NULL ? dash_new(ascii ? UI_GRAPH_ASCII : UI_GRAPH_BRAILLE, e) : NULL;
    struct canvas c;

    if (d == NULL) {
        canvas_target_free(t);
        return -1;
    }
    dash_push(d, s);
    c = canvas_of(t);
    dash_draw(d, &c);
    canvas_write_text(t, f);
    dash_free(d);
    canvas_target_free(t);
    return 0;
}
