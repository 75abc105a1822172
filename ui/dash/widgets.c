/* The table of widgets and shared drawing functions. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/widget.h"

#define WIDGET_ROW(name) &dash_##name##_widget,

const struct dash_widget *const dash_widgets[] = { DASH_WIDGETS(WIDGET_ROW) NULL };

void widget_head(const struct canvas *c, const char *name, const char *figure)
{
    int used = canvas_text(c, 0, 0, style_with(ROLE_ACCENT, UI_BOLD), name);
    int end = canvas_right(c, 0, c->width, style_of(ROLE_TEXT), figure);

    canvas_hline(c, 0, used + 1, end - used - (figure[0] != '\0' ? 2 : 1),
                 style_of(ROLE_BORDER));
}

int widget_pair(const struct canvas *c, int y, int x, const char *label, const char *value,
                enum ui_role role)
{
    x += canvas_text(c, y, x, style_of(ROLE_DIM), label) + 1;
    x += canvas_text(c, y, x, style_of(role), value);
    return x + 2;
}
