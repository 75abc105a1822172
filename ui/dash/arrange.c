#include "config.h"

#include "ui/dash/arrange.h"

#define BETWEEN 2 /* columns between two columns */

struct column {
    const struct dash_widget *widget[ARRANGE_MAX];
    int height[ARRANGE_MAX]; /* 0: no room */
    int n;
};

/* Returns the lines of the column with gaps of this size. */
static int lines(const struct column *c, int gap)
{
    int sum = 0;

    for (int i = 0; i < c->n; i++)
        if (c->height[i] > 0)
            sum += c->height[i] + (sum > 0 ? gap : 0);
    return sum;
}

/* Returns the most important widget after importance `after`; -1: none. */
static int next_important(const struct column *c, int after)
{
    int best = -1;

    for (int i = 0; i < c->n; i++)
        if (c->widget[i]->importance > after &&
            (best < 0 || c->widget[i]->importance < c->widget[best]->importance))
            best = i;
    return best;
}

/* Give each widget its smallest height while it fits. */
static void give_least(struct column *c, const struct dash *d, int height)
{
    for (int i = next_important(c, -1); i >= 0;
         i = next_important(c, c->widget[i]->importance)) {
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
        for (int i = next_important(c, -1); i >= 0;
             i = next_important(c, c->widget[i]->importance)) {
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

/* Choose one of two columns: the tall widget is at the right, below the least important ones
 * if they fit. */
static int column_of(const struct dash_widget *w, const struct dash *d, int height)
{
    bool has_space = height >= (int)d->now.n_layer + 2 + ARRANGE_SPARE;

    return w->is_tall || (has_space && w->importance > dash_layers_widget.importance);
}

int arrange(struct place out[ARRANGE_MAX], const struct dash *d, int height, int width)
{
    int columns = width >= ARRANGE_TWO ? 2 : 1, n = 0;
    int wide = (width - (columns - 1) * BETWEEN) / columns;

    if (height <= ARRANGE_STRIP || width < ARRANGE_LEAST)
        return 0;
    for (int k = 0; k < columns; k++) {
        struct column c = { .n = 0 };

        for (int i = 0; dash_widgets[i] != NULL; i++)
            if ((columns == 1 || column_of(dash_widgets[i], d, height) == k) &&
                dash_widgets[i]->min_width <= wide)
                c.widget[c.n++] = dash_widgets[i];
        n += place_column(out + n, &c, d, height, k * (wide + BETWEEN), wide);
    }
    return n;
}
