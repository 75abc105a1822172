/* The dashboard as a whole: arranged, drawn, clicked, printed. */
#include "config.h"

#include "ui/dash/dash.h"

#include <stdlib.h>

#include "ui/dash/arrange.h"
#include "ui/term/box.h"

/* The rows and columns that a widget draws. */
static struct canvas inside(const struct canvas *c, const struct place *p)
{
    int inset = box_inset(p->width);

    return canvas_sub(c, p->y, p->x + inset, p->height, p->width - 2 * inset);
}

static void draw_box(const struct canvas *c, const struct place *p)
{
    struct canvas box = canvas_sub(c, 0, p->x, c->height, p->width);

    box_line(&box, p->y,
             !p->joins           ? BOX_TOP
             : p->bottom == p->y ? BOX_BOTTOM
                                 : BOX_JOINT,
             ROLE_BORDER);
    box_sides(&box, p->y + 1, p->height - 1, ROLE_BORDER);
    if (p->bottom > p->y)
        box_line(&box, p->bottom, BOX_BOTTOM, ROLE_BORDER);
}

void dash_draw(const struct dash *d, const struct canvas *c)
{
    struct place place[ARRANGE_MAX];
    int n = arrange(place, dash_widgets, d, c->height, c->width);

    canvas_clear(c, style_of(ROLE_TEXT));
    if (!d->has_sample)
        return;
    if (n == 0)
        strip_draw(d, c);
    for (int i = 0; i < n; i++) {
        struct canvas part = inside(c, &place[i]);

        draw_box(c, &place[i]);
        place[i].widget->draw(d, &part);
    }
}

bool dash_click(struct dash *d, int height, int width, int y, int x)
{
    struct place place[ARRANGE_MAX];
    int n = d->has_sample ? arrange(place, dash_widgets, d, height, width) : 0;

    for (int i = 0; i < n; i++) {
        const struct place *p = &place[i];
        int inset = box_inset(p->width), wide = p->width - 2 * inset;

        if (y >= p->y && y < p->y + p->height && x >= p->x + inset && x < p->x + inset + wide)
            return p->widget->click != NULL &&
                   p->widget->click(d, p->height, wide, y - p->y, x - p->x - inset);
    }
    return false;
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
