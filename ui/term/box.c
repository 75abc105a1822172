#include "config.h"

#include "ui/term/box.h"

#include <string.h>

#define PADDED 48 /* columns from which a box has a blank column inside */

int box_inset(int width)
{
    return width >= PADDED ? 2 : 1;
}

void box_line(const struct canvas *c, int y, enum box_line line, enum ui_role border)
{
    static const wchar_t ends[][2] = { [BOX_TOP] = { L'\u256d', L'\u256e' },
                                       [BOX_JOINT] = { L'\u251c', L'\u2524' },
                                       [BOX_BOTTOM] = { L'\u2570', L'\u256f' } };
    bool ascii = canvas_is_ascii(c);

    canvas_hline(c, y, 0, c->width, style_of(border));
    canvas_cell(c, y, 0, style_of(border), ascii ? L'+' : ends[line][0]);
    canvas_cell(c, y, c->width - 1, style_of(border), ascii ? L'+' : ends[line][1]);
}

void box_sides(const struct canvas *c, int y, int height, enum ui_role border)
{
    canvas_vline(c, y, 0, height, style_of(border));
    canvas_vline(c, y, c->width - 1, height, style_of(border));
}

void box_title(const struct canvas *c, const char *title, const char *figure,
               struct ui_style figure_style)
{
    int used = canvas_printf(c, 0, 0, style_with(ROLE_ACCENT, UI_BOLD), " %s ", title);
    int wide;

    figure += strspn(figure, " "); /* the line goes on up to the figure */
    wide = cluster_width(figure, strlen(figure));
    if (wide == 0 || used + wide + 2 > c->width)
        return;
    canvas_blank(c, 0, c->width - wide - 2, wide + 2, figure_style);
    canvas_right(c, 0, c->width - 1, figure_style, figure);
}
