#include "config.h"

#include "ui/term/input.h"

#include <string.h>

#define TAB_WIDTH 4

/* The position of the next cluster. */
struct walk {
    const struct input_line *in;
    int width, indent;
    size_t at, n;
    int y, x;
    /* the cluster at y, x */
    struct cluster cluster;
    const char *shown; /* "^X", or blanks for a tab, drawn instead of the cluster */
    char control[4];
};

static void begin(struct walk *w, const struct input_line *in, int width)
{
    *w = (struct walk){ .in = in, .width = width, .n = strlen(in->text) };
    w->indent = cluster_width(in->prompt, strlen(in->prompt));
    if (w->indent > width / 2)
        w->indent = width / 2;
    w->x = w->indent;
}

static void new_row(struct walk *w)
{
    w->y++;
    w->x = w->indent;
}

/* Read the next cluster and place it.  Returns false at the end of the text. */
static bool look(struct walk *w)
{
    static const char tab[] = "    ";
    unsigned char c;
    int columns;

    if (w->at >= w->n) {
        if (w->x >= w->width)
            new_row(w);
        return false;
    }
    c = (unsigned char)w->in->text[w->at];
    w->shown = NULL;
    if (c < 0x20 || c == 0x7f) {
        w->cluster = (struct cluster){ .bytes = 1, .width = c == '\n' ? 0 : 2 };
        w->control[0] = '^';
        w->control[1] = (char)(c ^ 0x40);
        w->control[2] = '\0';
        w->shown = c == '\n' ? "" : w->control;
        if (c == '\t') {
            w->cluster.width = TAB_WIDTH - (w->x - w->indent) % TAB_WIDTH;
            w->shown = tab + TAB_WIDTH - w->cluster.width;
        }
    } else {
        cluster_next(w->in->text + w->at, w->n - w->at, &w->cluster);
    }
    columns = w->cluster.width;
    if (w->x + columns > w->width && w->x > w->indent)
        new_row(w);
    return true;
}

static void step(struct walk *w)
{
    if (w->in->text[w->at] == '\n')
        new_row(w);
    else
        w->x += w->cluster.width;
    w->at += w->cluster.bytes;
}

int input_rows(const struct input_line *in, int width, int *cursor_y, int *cursor_x)
{
    struct walk w;
    bool found = false;

    begin(&w, in, width);
    while (look(&w)) {
        if (!found && w.at + w.cluster.bytes > in->cursor) {
            *cursor_y = w.y;
            *cursor_x = w.x;
            found = true;
        }
        step(&w);
    }
    if (!found) {
        *cursor_y = w.y;
        *cursor_x = w.x;
    }
    return w.y + 1;
}

/* Returns the first visible row, chosen so that the cursor is visible. */
static int first_row(const struct input_line *in, int height, int width, int *cursor_y,
                     int *cursor_x)
{
    int rows = input_rows(in, width, cursor_y, cursor_x);
    int top = rows - height;

    if (top > *cursor_y)
        top = *cursor_y;
    return top > 0 ? top : 0;
}

void input_draw(const struct input_line *in, const struct canvas *c, int *y, int *x)
{
    int top = first_row(in, c->height, c->width, y, x);
    struct walk w;

    canvas_clear(c, style_of(ROLE_INPUT));
    canvas_put(c, -top, 0, c->width, style_of(ROLE_PROMPT), in->prompt, strlen(in->prompt));
    begin(&w, in, c->width);
    while (look(&w) && w.y < top + c->height) {
        if (w.shown != NULL)
            canvas_text(c, w.y - top, w.x, style_of(ROLE_ODD), w.shown);
        else
            canvas_put(c, w.y - top, w.x, w.cluster.width, style_of(ROLE_INPUT),
                       in->text + w.at, w.cluster.bytes);
        step(&w);
    }
    *y -= top;
    if (*x >= c->width)
        *x = c->width - 1;
}

size_t input_at(const struct input_line *in, int height, int width, int y, int x)
{
    int cursor_y, cursor_x, top = first_row(in, height, width, &cursor_y, &cursor_x);
    size_t found = 0;
    struct walk w;

    begin(&w, in, width);
    while (look(&w)) {
        if (w.y - top > y || (w.y - top == y && w.x > x))
            return found;
        found = w.at;
        if (w.y - top == y && x < w.x + w.cluster.width)
            return found;
        step(&w);
    }
    return w.n;
}
