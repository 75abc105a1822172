#include "config.h"

#include "ui/term/ink.h"

#include <string.h>

#include <curses.h>

void ink_init(struct ink *ink, enum ui_colors colors, int n_color, int max_pair)
{
    int room = (int)(sizeof ink->pair / sizeof ink->pair[0]);

    *ink = (struct ink){ .colors = colors, .n_color = n_color, .n_pair = 1 };
    ink->max_pair = max_pair < room ? max_pair : room;
}

void ink_set_theme(struct ink *ink, const struct theme *theme)
{
    ink->theme = theme;
    for (size_t role = 0; role < UI_ROLES; role++)
        for (size_t on = 0; on < UI_ROLES; on++)
            ink->cache[role][on].pair = -1;
}

/* Returns the ncurses number of a colour; -1 is the terminal's default.  Sets *bold where the
 * bright half of 16 colours exists only as bold. */
static int colour(const struct ink *ink, struct ui_color c, bool *bold)
{
    switch (ink->colors) {
    case UI_COLOR_NONE: return -1;
    case UI_COLOR_16:
        if (c.x16 < 8 || ink->n_color >= 16)
            return c.x16;
        *bold = true;
        return c.x16 - 8;
    case UI_COLOR_256: return c.x256;
    case UI_COLOR_RGB:
        /* Direct colours 0 to 7 mean the palette; blue 8 looks the same. */
        return c.rgb >= 0 && c.rgb < 8 ? 8 * (c.rgb > 0) : c.rgb;
    }
    return -1;
}

static int pair_of(struct ink *ink, int fg, int bg)
{
    if (fg == -1 && bg == -1)
        return 0;
    for (int i = 1; i < ink->n_pair; i++)
        if (ink->pair[i].fg == fg && ink->pair[i].bg == bg)
            return i;
    if (ink->n_pair >= ink->max_pair || init_extended_pair(ink->n_pair, fg, bg) != OK)
        return bg != -1 ? pair_of(ink, fg, -1) : 0;
    ink->pair[ink->n_pair].fg = fg;
    ink->pair[ink->n_pair].bg = bg;
    return ink->n_pair++;
}

static unsigned attributes(unsigned attr)
{
    static const struct {
        unsigned ours, theirs;
    } table[] = {
        { UI_BOLD, A_BOLD },           { UI_DIM, A_DIM },         { UI_ITALIC, A_ITALIC },
        { UI_UNDERLINE, A_UNDERLINE }, { UI_REVERSE, A_REVERSE }, { UI_STRIKE, A_DIM },
    };
    unsigned out = 0;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (attr & table[i].ours)
            out |= table[i].theirs;
    return out;
}

static struct canvas_ink make(struct ink *ink, enum ui_role role, enum ui_role on)
{
    const struct theme_role *look = &ink->theme->role[role];
    const struct theme_role *text = &ink->theme->role[ROLE_TEXT];
    const struct theme_role *ground = &ink->theme->role[on];
    bool fg_bold = false, bg_bold = false;
    int fg = colour(ink, look->fg, &fg_bold);
    int bg = on != 0 ? colour(ink, ground->fg, &bg_bold) : colour(ink, look->bg, &bg_bold);
    /* Without a colour at this depth, only the attributes distinguish the role. */
    bool is_plain = fg == -1 && bg == -1;
    struct canvas_ink out;

    if (fg == -1)
        fg = colour(ink, text->fg, &fg_bold);
    if (bg == -1 && on == 0)
        bg = colour(ink, text->bg, &bg_bold);
    out.attrs = attributes(is_plain ? look->mono : look->attr);
    if (fg_bold)
        out.attrs |= A_BOLD;
    if (on != 0 && bg == -1)
        out.attrs |= A_REVERSE;
    out.pair = ink->colors == UI_COLOR_NONE ? 0 : pair_of(ink, fg, bg);
    return out;
}

struct canvas_ink ink_of(void *ctx, struct ui_style style)
{
    struct ink *ink = ctx;
    struct canvas_ink *known = &ink->cache[style.role][style.on];
    struct canvas_ink out;

    if (known->pair < 0)
        *known = make(ink, style.role, style.on);
    out = *known;
    out.attrs |= attributes(style.attr);
    return out;
}
