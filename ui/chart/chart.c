/* See chart.h: ticks and texts that both drawings share. */
#include "config.h"

#include "ui/chart/chart.h"

#include <math.h>
#include <string.h>

struct range {
    double low, high;
};

static void include(struct range *r, const struct chart_axis *axis, double value)
{
    if (!isfinite(value) || (axis->is_log && value <= 0))
        return;
    r->low = fmin(r->low, value);
    r->high = fmax(r->high, value);
}

static bool choose(const struct chart_axis *axis, struct range r, int want, struct ticks *out)
{
    if (axis->unit == CHART_NAMES) {
        if (axis->n_name > 0)
            ticks_names(axis->n_name, out);
        return axis->n_name > 0;
    }
    if (r.low > r.high)
        return false;
    if (axis->from_zero && !axis->is_log) {
        r.low = fmin(r.low, 0);
        r.high = fmax(r.high, 0);
    }
    if (axis->is_log)
        ticks_log(r.low, r.high, axis->unit, want, out);
    else
        ticks_linear(r.low, r.high, axis->unit, want, out);
    return true;
}

bool chart_ticks(const struct chart *c, int want_x, int want_y, struct ticks *x,
                 struct ticks *y)
{
    struct range rx = { INFINITY, -INFINITY }, ry = rx;

    for (size_t s = 0; s < c->n_series; s++)
        for (size_t i = 0; i < c->series[s].n; i++) {
            const struct chart_point *p = &c->series[s].point[i];

            if (!isfinite(p->y))
                continue;
            include(&rx, &c->x, p->x);
            include(&ry, &c->y, p->y);
            include(&ry, &c->y, p->low);
            include(&ry, &c->y, p->high);
        }
    if (rx.low > rx.high || ry.low > ry.high)
        return false;
    for (size_t i = 0; i < c->n_mark; i++)
        include(c->mark[i].is_level ? &ry : &rx, c->mark[i].is_level ? &c->y : &c->x,
                c->mark[i].at);
    return choose(&c->x, rx, want_x, x) && choose(&c->y, ry, want_y, y);
}

char *chart_value(char buf[CHART_VALUE], const struct chart_axis *axis, double value,
                  double step)
{
    char text[TICK_TEXT];
    int i = (int)fmax(-1, fmin(value, TICKS_MAX));

    if (axis->unit == CHART_NAMES && i >= 0 && i < axis->n_name)
        snprintf(buf, CHART_VALUE, "%s", axis->name[i]);
    else
        snprintf(buf, CHART_VALUE, "%s%s%.20s", tick_text(text, axis->unit, value, step),
                 axis->symbol != NULL ? " " : "", axis->symbol != NULL ? axis->symbol : "");
    return buf;
}
