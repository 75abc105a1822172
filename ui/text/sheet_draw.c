/* The box of a sheet on the screen, and its lines where there is no screen. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/text/sheet_internal.h"

#define PARAGRAPH  58 /* columns of a paragraph */
#define MIN_NARROW 44 /* columns in which a narrow sheet wraps its lines */
#define MORE_WIDTH 22 /* columns for "more below" and the blanks around the keys */

#define HINT_UNASKED "Arrows or a digit: choose   Esc: close" /* before there is a choice */

/* Returns the bytes of the next row of wrapped text; *skip includes the blanks after it. */
static size_t next_row(const char *text, int width, size_t *skip)
{
    size_t fit = cluster_fit(text, strlen(text), width), cut = fit;

    *skip = 0;
    if (text[fit] == '\0')
        return fit;
    while (cut > 0 && text[cut] != ' ')
        cut--;
    if (cut == 0)
        return fit > 0 ? fit : strlen(text);
    *skip = strspn(text + cut, " ");
    return cut;
}

#define INDENT 4 /* of the rows after the first, unless the first part is a short column */

/* Draw text at column *x of row y, with rows broken at blanks; c is NULL to count.  Returns the
 * rows that were begun. */
static int draw_part(const struct canvas *c, int width, int y, int *x, int indent,
                     struct ui_style style, const char *text)
{
    int rows = 0;

    /* Text of the column that the indent marks is wrapped where it is. */
    if (*x > 0 && *x + (int)strspn(text, " ") != indent &&
        *x + cluster_width(text, strlen(text)) > width) {
        text += strspn(text, " ");
        *x = indent;
        rows++;
    }
    while (*text != '\0') {
        size_t skip, n = next_row(text, width - *x, &skip);

        if (c != NULL)
            canvas_put(c, y + rows, *x, width - *x, style, text, n);
        *x += cluster_width(text, n);
        text += n + skip;
        if (*text != '\0') {
            *x = indent;
            rows++;
        }
    }
    return rows;
}

static int indent_of(const struct sheet_line *line, int width)
{
    int first;

    if (line->wraps || width <= 2 * INDENT || line->n_part == 0)
        return 0;
    first = cluster_width(line->part[0].text, strlen(line->part[0].text));
    if (line->n_part > 1)
        first += (int)strspn(line->part[1].text, " ");
    return line->n_part > 1 && first <= width / 2 ? first : INDENT;
}

/* Draw a line whose first row is at y; c is NULL to count.  Returns its number of rows. */
static int draw_line(const struct sheet_line *line, const struct canvas *c, int width, int y,
                     bool is_chosen)
{
    int indent = indent_of(line, width), x = 0, rows = 1;

    if (c != NULL && is_chosen)
        canvas_blank(c, y, 0, width, style_of(ROLE_SELECTED));
    for (size_t i = 0; i < line->n_part; i++)
        rows += draw_part(c, width, y + rows - 1, &x, indent,
                          style_of(is_chosen ? ROLE_SELECTED : line->part[i].role),
                          line->part[i].text);
    return rows;
}

static int count_rows(const struct sheet *s, int width, size_t until)
{
    int rows = 0;

    for (size_t i = 0; i < until; i++)
        if (!s->line[i].is_hidden)
            rows += draw_line(&s->line[i], NULL, width, 0, false);
    return rows;
}

/* Returns the columns of the longest row; paragraphs have at most PARAGRAPH. */
static int widest(const struct sheet *s)
{
    int most = cluster_width(s->title, strlen(s->title)) + 4;
    const char *hint = s->is_unasked ? HINT_UNASKED : s->hint;
    int keys = cluster_width(hint, strlen(hint)) + MORE_WIDTH;

    most = keys > most ? keys : most;
    for (size_t i = 0; i < s->n; i++) {
        const struct sheet_line *line = &s->line[i];
        int width = 0;

        for (size_t k = 0; k < line->n_part; k++)
            width += cluster_width(line->part[k].text, strlen(line->part[k].text));
        if (line->wraps && width > PARAGRAPH)
            width = PARAGRAPH;
        most = width > most ? width : most;
    }
    return most;
}

/* Returns the columns between a border and the text. */
static int padding(int width)
{
    return width > 60 ? 1 : 0;
}

static const char *hint_of(const struct sheet *s)
{
    return s->is_unasked && s->cursor >= s->n ? HINT_UNASKED : s->hint;
}

/* Draw the keys, and how much is below, into the lower border. */
static void draw_foot(const struct sheet *s, const struct canvas *box)
{
    int y = box->height - 1, below = s->rows - s->top - s->height, free;
    const char *hint = hint_of(s);
    int used = canvas_put(box, y, 2, box->width - 4, style_of(ROLE_HINT), " ", 1);
    char more[40];

    used += canvas_put(box, y, 3, box->width - 5, style_of(ROLE_HINT), hint, strlen(hint));
    used += canvas_put(box, y, 2 + used, 1, style_of(ROLE_HINT), " ", 1);
    free = box->width - 4 - used;
    if (below <= 0)
        return;
    snprintf(more, sizeof more, " %d more below ", below);
    if ((int)strlen(more) > free)
        snprintf(more, sizeof more, " %d more ", below);
    if ((int)strlen(more) > free)
        snprintf(more, sizeof more, " +%d ", below);
    if ((int)strlen(more) <= free)
        canvas_right(box, y, box->width - 2, style_of(ROLE_HINT), more);
}

/* Draw the words of the filter into the upper border. */
static void draw_filter(const struct sheet *s, const struct canvas *box)
{
    char text[sizeof s->filter + 40];

    if (!s->filters || s->filter[0] == '\0')
        return;
    snprintf(text, sizeof text, " filter: %s%s ", s->filter, s->rows == 0 ? " (no match)" : "");
    canvas_right(box, 0, box->width - 2, style_of(ROLE_HINT), text);
}

/* Scroll to the line of the cursor. */
static void show_cursor(struct sheet *s, int width)
{
    int at;

    sheet_scroll(s, 0);
    if (s->cursor >= s->n)
        return;
    at = count_rows(s, width, s->cursor);
    if (at < s->top)
        s->top = at;
    if (at >= s->top + s->height)
        s->top = at - s->height + 1;
}

/* Returns the part of room that the box takes: in its middle, as large as its text.  It does
 * not shrink while a filter is typed. */
static struct canvas place(struct sheet *s, const struct canvas *room)
{
    int pad = padding(room->width), width = widest(s) + 2 + 2 * pad, height;

    if (width > room->width)
        width = room->width;
    s->rows = count_rows(s, width - 2 - 2 * pad, s->n);
    if (!s->filters || s->most_rows < s->rows)
        s->most_rows = s->rows;
    height = s->most_rows + 2 > room->height ? room->height : s->most_rows + 2;
    return canvas_sub(room, (room->height - height) / 2, (room->width - width) / 2, height,
                      width);
}

/* Whether the lines are neither wrapped nor scrolled in room, or no less in all. */
static bool is_enough(const struct sheet *s, const struct canvas *room,
                      const struct canvas *all)
{
    bool is_tall = room->height + 2 >= all->height; /* two rows for the frame of the chat */
    int width = widest(s);

    if (s->is_narrow && room->width >= MIN_NARROW && is_tall)
        return true;
    return width + 2 + 2 * padding(room->width) <= room->width &&
           (is_tall || count_rows(s, width, s->n) + 2 <= room->height);
}

void sheet_draw(struct sheet *s, const struct canvas *chat, const struct canvas *all)
{
    const struct canvas *room = is_enough(s, chat, all) ? chat : all;
    struct canvas box = place(s, room), body;
    int pad = padding(room->width), y;

    s->box = box;
    canvas_clear(&box, style_of(ROLE_TEXT));
    body = canvas_sub(&box, 1, 1 + pad, box.height - 2, box.width - 2 - 2 * pad);
    if (body.height < 1 || body.width < 4)
        return;
    s->height = body.height;
    show_cursor(s, body.width);
    y = -s->top;
    for (size_t i = 0; i < s->n && y < body.height; i++)
        if (!s->line[i].is_hidden)
            y += draw_line(&s->line[i], &body, body.width, y, i == s->cursor);
    canvas_box(&box, style_of(ROLE_BORDER));
    canvas_printf(&box, 0, 2, style_with(ROLE_ACCENT, UI_BOLD), " %.*s ",
                  (int)cluster_fit(s->title, strlen(s->title), box.width - 6), s->title);
    draw_filter(s, &box);
    draw_foot(s, &box);
}

void sheet_rows(const struct sheet *s, int *y, int *n)
{
    *y = s->box.y;
    *n = s->box.height;
}

bool sheet_holds(const struct sheet *s, int y, int x)
{
    return y >= s->box.y && y < s->box.y + s->box.height && x >= s->box.x &&
           x < s->box.x + s->box.width;
}

void sheet_print(const struct sheet *s, void (*put)(void *ctx, const char *line), void *ctx)
{
    put(ctx, s->title);
    for (size_t i = 0; i < s->n; i++) {
        char text[1200] = "";
        size_t used = 0;

        if (s->line[i].is_hidden)
            continue;
        if (s->line[i].is_choice && !s->is_unasked)
            used = (size_t)snprintf(text, sizeof text, "%ld: ", s->line[i].number + 1);
        if (s->line[i].wraps) {
            put(ctx, s->line[i].part[0].text);
            continue;
        }
        for (size_t k = 0; k < s->line[i].n_part && used < sizeof text; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                     s->line[i].part[k].text);
        put(ctx, text);
    }
}
