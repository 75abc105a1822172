#include "config.h"

#include "ui/dash/arrange.h"

#include <limits.h>

#include "ui/term/box.h"

struct column {
    const struct dash_widget *widget[ARRANGE_MAX];
    int height[ARRANGE_MAX];  /* 0: no room */
    int percent[ARRANGE_MAX]; /* that the user wants; 0: as it fits */
    int order[ARRANGE_MAX];   /* indices of the widgets, the most important first */
    int n;
    int x, width, inside;
    bool is_apart; /* a box for each widget */
    bool is_tall;  /* the tall widget has a column, so it gets all its rows before others grow */
};

static int wanted_percent(const struct dash *d, const struct dash_widget *w)
{
    for (int i = 0; i < PANELS; i++)
        if (dash_widgets[d->panels.row[i].widget] == w)
            return d->panels.row[i].percent;
    return 0;
}

/* Append a widget.  Of two that are equally important, the upper one comes first. */
static void add_widget(struct column *c, const struct dash *d, const struct dash_widget *w)
{
    int i = c->n;

    for (; i > 0 && c->widget[c->order[i - 1]]->importance > w->importance; i--)
        c->order[i] = c->order[i - 1];
    c->order[i] = c->n;
    c->percent[c->n] = wanted_percent(d, w);
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

/* Only a box above can hold the row of a folded widget. */
static bool is_row(const struct column *c, int i, const struct dash *d)
{
    return folds(c->widget[i], d) && next_shown(c, 0) < i;
}

/* Place the widgets that have lines.  Returns the lines of the column. */
static int lay(const struct column *c, const struct dash *d, struct place *out, int *n)
{
    bool joins = false;
    int y = 0;

    *n = 0;
    for (int i = next_shown(c, 0); i < c->n;) {
        int next = next_shown(c, i + 1);
        struct place p = { .widget = c->widget[i],
                           .y = y,
                           .x = c->x,
                           .height = c->height[i],
                           .width = c->width,
                           .joins = joins,
                           .is_row = is_row(c, i, d),
                           .bottom = -1 };

        y += c->height[i];
        joins = next < c->n && (!c->is_apart || is_row(c, next, d));
        if (!joins)
            p.bottom = y++;
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

/* Give each widget its smallest height while it fits, with the lines that it needs now. */
static void give_least(struct column *c, const struct dash *d, int height)
{
    for (int k = 0; k < c->n; k++) {
        int i = c->order[k];
        const struct dash_widget *w = c->widget[i];
        int more = is_row(c, i, d) || w->wants == NULL ? 0 : w->wants(d, c->inside);
        int least = is_row(c, i, d) ? 1 : w->min_height;

        c->height[i] = least + more;
        if (lines(c, d) > height)
            c->height[i] = least;
        if (lines(c, d) > height)
            c->height[i] = 0;
    }
}

/* Give widgets the height that the user wants, as far as it fits. */
static void give_wanted(struct column *c, const struct dash *d, int height)
{
    for (int k = 0; k < c->n; k++) {
        int i = c->order[k], now = c->height[i], rest = height - lines(c, d);
        int more = (c->percent[i] * height + 50) / 100 - now;

        if (now > 0 && more > 0 && !is_row(c, i, d))
            c->height[i] = now + (more < rest ? more : rest);
    }
}

/* Returns the next height of a widget; 0: none.  First it gets only what its figures need. */
static int next_height(const struct column *c, int i, const struct dash *d, bool only_figures)
{
    const struct dash_widget *w = c->widget[i];
    int next;

    if (c->height[i] == 0 || c->percent[i] != 0 || is_row(c, i, d))
        return 0;
    next = w->step(d, c->inside, c->height[i]);
    if (only_figures && !(c->is_tall && w->is_tall) && w->enough != NULL &&
        next > w->enough(d, c->inside))
        return 0;
    return next;
}

/* Give a widget one step.  Returns whether it fits. */
static bool grow(struct column *c, int i, const struct dash *d, int height, bool only_figures)
{
    int now = c->height[i], next = next_height(c, i, d, only_figures);

    if (next <= now || lines(c, d) + next - now > height)
        return false;
    c->height[i] = next;
    return true;
}

/* The importance of the tall widget of a column; INT_MAX if there is none. */
static int tall_of(const struct column *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->widget[i]->is_tall)
            return c->widget[i]->importance;
    return INT_MAX;
}

/* Give widgets one step at a time, so that all grow together.  Rows of the tall one are worth
 * more than taller curves, so it gets all that fit once those that are more important had a step. */
static void give_more(struct column *c, const struct dash *d, int height, bool only_figures)
{
    bool grew = true;

    for (int round = 0; grew || round == 1; round++) {
        grew = false;
        for (int k = 0; k < c->n; k++) {
            int i = c->order[k];

            if (round == 0 && !only_figures && c->widget[i]->importance > tall_of(c))
                continue;
            while (grow(c, i, d, height, only_figures)) {
                grew = true;
                if (round == 0 || !c->widget[i]->is_tall)
                    break;
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
            if (c->height[i] > 0 && c->percent[i] == 0 && c->widget[i]->stretches) {
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

/*
 * Returns which widgets are in the right one of two columns, a bit each: the tall one, and the
 * less important ones below it if they fit; without a tall one, the second half.
 */
static unsigned right_column(const struct dash_widget *const widgets[], int n, bool has_space)
{
    int tall = tall_importance(widgets);
    unsigned right = 0;

    for (int i = 0; i < n; i++)
        if (tall == INT_MAX
                ? i >= (n + 1) / 2
                : widgets[i]->is_tall || (has_space && widgets[i]->importance > tall))
            right |= 1u << i;
    return right;
}

int arrange(struct place out[ARRANGE_MAX], const struct dash_widget *const widgets[],
            const struct dash *d, int height, int width)
{
    bool has_space = height >= (int)d->now.n_layer + 2 + ARRANGE_SPARE;
    unsigned right, all;
    int columns, wide, n_widget = 0, total = 0;

    if (height <= ARRANGE_STRIP || width < ARRANGE_LEAST)
        return 0;
    while (widgets[n_widget] != NULL)
        n_widget++;
    all = (1u << n_widget) - 1;
    right = right_column(widgets, n_widget, has_space);
    columns = width >= ARRANGE_TWO && right != 0 && right != all ? 2 : 1;
    wide = width / columns;
    for (int k = 0; k < columns; k++) {
        struct column c = { .x = k * wide,
                            .width = k + 1 < columns ? wide : width - k * wide,
                            .is_apart = height >= (columns > 1 ? ARRANGE_APART : ARRANGE_HIGH),
                            .is_tall = columns == 2 };
        unsigned here = columns == 1 ? all : k == 0 ? all & ~right : right;
        int n;

        c.inside = c.width - 2 * box_inset(c.width);
        /* Folded ones are at the end, as rows of the last box. */
        for (int i = 0; i < 2 * n_widget; i++) {
            const struct dash_widget *w = widgets[i % n_widget];

            if ((here & 1u << i % n_widget) != 0 && w->min_width <= c.inside &&
                folds(w, d) == (i >= n_widget))
                add_widget(&c, d, w);
        }
        give_least(&c, d, height);
        give_wanted(&c, d, height);
        give_more(&c, d, height, true);
        give_more(&c, d, height, false);
        give_rest(&c, d, height);
        lay(&c, d, out + total, &n);
        total += n;
    }
    return total;
}

static bool is_empty(const struct dash *d, const struct dash_widget *w)
{
    bool is_chosen = d->panels.chosen >= 0 && dash_widgets[d->panels.chosen] == w;

    return w->is_empty != NULL && !is_chosen && w->is_empty(d);
}

int arrange_panels(struct place out[ARRANGE_MAX], const struct dash *d, int height, int width)
{
    const struct dash_widget *visible[PANELS + 1];
    int n = 0;

    for (int pass = 0; pass < 2 && n == 0; pass++) /* rather zeros than nothing */
        for (int i = 0; i < PANELS; i++) {
            const struct dash_widget *w = dash_widgets[d->panels.row[i].widget];

            if (panels_shows(&d->panels, i) && (pass > 0 || !is_empty(d, w)))
                visible[n++] = w;
        }
    visible[n] = NULL;
    return d->has_sample && !d->has_server ? arrange(out, visible, d, height, width) : 0;
}
