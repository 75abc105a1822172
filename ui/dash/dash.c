/* The dashboard as a whole: arranged, drawn, clicked, printed. */
#include "config.h"

#include "ui/dash/dash.h"

#include <stdlib.h>

#include "ui/dash/arrange.h"

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
        struct canvas part =
            canvas_sub(c, place[i].y, place[i].x, place[i].height, place[i].width);

        place[i].widget->draw(d, &part);
    }
}

bool dash_click(struct dash *d, int height, int width, int y, int x)
{
    struct place place[ARRANGE_MAX];
    int n = d->has_sample ? arrange(place, dash_widgets, d, height, width) : 0;

    for (int i = 0; i < n; i++) {
        const struct place *p = &place[i];

        if (y >= p->y && y < p->y + p->height && x >= p->x && x < p->x + p->width)
            return p->widget->click != NULL &&
                   p->widget->click(d, p->height, p->width, y - p->y, x - p->x);
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
