#include "config.h"

#include "ui/dash/arrange.h"

#include <limits.h>

#include "ui/term/box.h"

struct column {
    const struct dash_widget *widget[ARRANGE_MAX];
    int height[ARRANGE_MAX]; /* 0: no room */
    int order[ARRANGE_MAX];  /* indices of the widgets, the most important first */
    int n;
    int x, width, inside;
    bool is_apart; /* a box for each widget */
};

/* Append a widget.  Of two that are equally important, the upper one comes first. */
static void add_widget(struct column *c, const struct dash_widget *w)
{
    int i = c->n;

    for (; i > 0 && c->widget[c->order[i - 1]]->importance > w->importance; i--)
        c->order[i] = c->order[i - 1];
    c->order[i] = c->n;
    c->widget[c->n++] = w;
}

static bool folds(const struct dash_widget *w, const struct dash *d)
{
    return w->folds != NULL && w->folds(d);
}

/* Returns the first widget from i on that has lines; n: none. */
static int next_shown(const struct column *c, int i)
{
    while (i < c->n && c->height[i] == 0)
        i++;
    return i;
}

/* Place the widgets that have lines.  Returns the lines of the column. */
static int lay(const struct column *c, const struct dash *d, struct place *out, int *n)
{
    bool joins = false;
    int y = 0;

    *n = 0;
    for (int i = next_shown(c, 0); i < c->n;) {
        int next = next_shown(c, i + 1);
        bool is_folded = folds(c->widget[i], d);
        struct place p = { c->widget[i], y, c->x, c->height[i], c->width, joins, -1 };

        y += c->height[i];
        joins = next < c->n &&
                (!c->is_apart || folds(c->widget[next], d) || (is_folded && !p.joins));
        if (!joins) {
            p.bottom = is_folded && p.joins ? p.y : y;
            y = p.bottom + 1;
        }
        out[(*n)++] = p;
        i = next;
    }
    return y;
}

static int lines(const struct column *c, const struct dash *d)
{
    struct place ignored[ARRANGE_MAX];
    int n;

    return lay(c, d, ignored, &n);
}

/* Give each widget its smallest height while it fits. */
static void give_least(struct column *c, const struct dash *d, int height)
{
    for (int k = 0; k < c->n; k++) {
        int i = c->order[k];
        const struct dash_widget *w = c->widget[i];

        c->height[i] = folds(w, d) ? 1 : w->min_height + (w->wants != NULL ? w->wants(d) : 0);
        if (lines(c, d) > height)
            c->height[i] = 0;
    }
}

/* Give widgets one step at a time, so that all grow together. */
static void give_more(struct column *c, const struct dash *d, int height)
{
    bool grew = true;

    while (grew) {
        grew = false;
        for (int k = 0; k < c->n; k++) {
            int i = c->order[k], now = c->height[i];
            bool grows = now > 0 && !folds(c->widget[i], d);
            int next = grows ? c->widget[i]->step(d, c->inside, now) : 0;

            if (next > now && lines(c, d) + next - now <= height) {
                c->height[i] = next;
                grew = true;
            }
        }
    }
}

/* Divide the rest among widgets that stretch. */
static void give_rest(struct column *c, const struct dash *d, int height)
{
    int rest = height - lines(c, d);
    bool gave = true;

    while (rest > 0 && gave) {
        gave = false;
        for (int i = 0; i < c->n && rest > 0; i++)
            if (c->height[i] > 0 && c->widget[i]->stretches) {
                c->height[i]++;
                rest--;
                gave = true;
            }
    }
}

/* The importance of the tall widget; INT_MAX if there is none. */
static int tall_importance(const struct dash_widget *const widgets[])
{
    for (int i = 0; widgets[i] != NULL; i++)
        if (widgets[i]->is_tall)
            return widgets[i]->importance;
    return INT_MAX;
}

int arrange(struct place out[ARRANGE_MAX], const struct dash_widget *const widgets[],
            const struct dash *d, int height, int width)
{
    int columns = width >= ARRANGE_TWO ? 2 : 1, total = 0;
    int wide = width / columns;
    bool has_space = height >= (int)d->now.n_layer + 2 + ARRANGE_SPARE;
    /* The tall widget is at the right, below less important ones if they fit. */
    int right = has_space ? tall_importance(widgets) : INT_MAX;

    if (height <= ARRANGE_STRIP || width < ARRANGE_LEAST)
        return 0;
    for (int k = 0; k < columns; k++) {
        struct column c = { .x = k * wide,
                            .width = k + 1 < columns ? wide : width - k * wide,
                            .is_apart = height >= ARRANGE_APART };
        int n;

        c.inside = c.width - 2 * box_inset(c.width);
        for (int i = 0; widgets[i] != NULL; i++) {
            int at = widgets[i]->is_tall || widgets[i]->importance > right;

            if ((columns == 1 || at == k) && widgets[i]->min_width <= c.inside)
                add_widget(&c, widgets[i]);
        }
        give_least(&c, d, height);
        give_more(&c, d, height);
        give_rest(&c, d, height);
        lay(&c, d, out + total, &n);
        total += n;
    }
    return total;
}
