/* The table of widgets and shared drawing functions. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/widget.h"
#include "ui/term/box.h"

#define WIDGET_ROW(name) &dash_##name##_widget,

const struct dash_widget *const dash_widgets[] = { DASH_WIDGETS(WIDGET_ROW) NULL };

void widget_head(const struct canvas *c, const char *name, const char *figure)
{
    widget_headline(c, name, figure, style_of(ROLE_TEXT));
}

void widget_headline(const struct canvas *c, const char *name, const char *figure,
                     struct ui_style style)
{
    box_title(c, name, figure, style);
}

int widget_pair(const struct canvas *c, int y, int x, const char *label, const char *value,
                enum ui_role role)
{
    x += canvas_text(c, y, x, style_of(ROLE_DIM), label) + 1;
    x += canvas_text(c, y, x, style_of(role), value);
    return x + 2;
}

/* Draw text, or count its lines if c is NULL. */
static int wrap(const struct canvas *c, int width, struct ui_style style, const char *text)
{
    int row = 0, x = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        int columns = cluster_width(text, len);

        if (x > 0 && x + 1 + columns > width)
            row++, x = 0;
        if (x > 0)
            x++;
        if (c != NULL)
            canvas_put(c, row, x, c->width - x, style, text, len);
        x += columns;
        text += len + (text[len] == ' ');
    }
    return row + 1;
}

int widget_lines(const char *text, int width)
{
    return wrap(NULL, width, style_of(ROLE_TEXT), text);
}

static bool does_fit(const struct canvas *c, const char *text)
{
    return widget_lines(text, c->width) <= c->height;
}

void widget_wrap(const struct canvas *c, struct ui_style style, const char *text)
{
    const char *begin = strstr(text, ": "), *end = strstr(text, "; "), *last = text;
    char first[256];

    begin = begin != NULL && (end == NULL || begin < end) ? begin + 2 : text;
    for (const char *next = begin; (next = strstr(next, "; ")) != NULL;)
        last = next += 2;
    snprintf(first, sizeof first, "%.*s", end != NULL ? (int)(end - begin) : 0, begin);
    if (does_fit(c, text))
        last = text;
    else if (does_fit(c, begin))
        last = begin;
    else if (!does_fit(c, last) && first[0] != '\0' && does_fit(c, first))
        last = first;
    wrap(c, c->width, style, last);
}
