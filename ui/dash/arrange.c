#include "config.h"

#include "ui/dash/arrange.h"

#include <limits.h>

#define BETWEEN 2 /* columns between two columns */

struct column {
    const struct dash_widget *widget[ARRANGE_MAX];
    int height[ARRANGE_MAX]; /* 0: no room */
    int order[ARRANGE_MAX];  /* indices of the widgets, the most important first */
    int n;
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

/* Returns the lines of the column with gaps of this size. */
static int lines(const struct column *c, int gap)
{
    int sum = 0;

    for (int i = 0; i < c->n; i++)
        if (c->height[i] > 0)
            sum += c->height[i] + (sum > 0 ? gap : 0);
    return sum;
}

/* Give each widget its smallest height while it fits. */
static void give_least(struct column *c, const struct dash *d, int height)
{
    for (int k = 0; k < c->n; k++) {
        int i = c->order[k];
        const struct dash_widget *w = c->widget[i];

        c->height[i] = w->min_height + (w->wants != NULL ? w->wants(d) : 0);
        if (lines(c, 0) > height)
            c->height[i] = 0;
    }
}

/* Give widgets one step at a time, so that all grow together. */
static void give_more(struct column *c, const struct dash *d, int height, int width)
{
    bool grew = true;

    while (grew) {
        grew = false;
        for (int k = 0; k < c->n; k++) {
            int i = c->order[k];
            int next = c->height[i] > 0 ? c->widget[i]->step(d, width, c->height[i]) : 0;

            if (next > c->height[i] && lines(c, 0) + next - c->height[i] <= height) {
                c->height[i] = next;
                grew = true;
            }
        }
    }
}

/* Put a line between all widgets if it fits; divide the rest among widgets that stretch. */
static int give_rest(struct column *c, int height)
{
    int gap = lines(c, 1) <= height, rest = height - lines(c, gap);
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
    return gap;
}

static int place_column(struct place *out, struct column *c, const struct dash *d, int height,
                        int x, int width)
{
    int n = 0, y = 0, gap;

    give_least(c, d, height);
    give_more(c, d, height, width);
    gap = give_rest(c, height);
    for (int i = 0; i < c->n; i++) {
        if (c->height[i] == 0)
            continue;
        out[n++] = (struct place){ c->widget[i], y, x, c->height[i], width };
        y += c->height[i] + gap;
    }
    return n;
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
    int columns = width >= ARRANGE_TWO ? 2 : 1, n = 0;
    int wide = (width - (columns - 1) * BETWEEN) / columns;
    bool has_space = height >= (int)d->now.n_layer + 2 + ARRANGE_SPARE;
    /* The tall widget is at the right, below less important ones if they fit. */
    int right = has_space ? tall_importance(widgets) : INT_MAX;

    if (height <= ARRANGE_STRIP || width < ARRANGE_LEAST)
        return 0;
    for (int k = 0; k < columns; k++) {
        struct column c = { .n = 0 };

        for (int i = 0; widgets[i] != NULL; i++) {
            int at = widgets[i]->is_tall || widgets[i]->importance > right;

            if ((columns == 1 || at == k) && widgets[i]->min_width <= wide)
                add_widget(&c, widgets[i]);
        }
        n += place_column(out + n, &c, d, height, k * (wide + BETWEEN), wide);
    }
    return n;
}
