#include "config.h"

#include "ui/dash/large.h"

#include <string.h>

/* Three rows of a glyph.  Of blocks, '#' is a full cell and '^' the upper half of one. */
static const struct glyph {
    char ch;
    const char *blocks[LARGE_ROWS], *ascii[LARGE_ROWS];
} glyphs[] = {
    { '0', { "#^#", "# #", "^^^" }, { " _ ", "| |", "|_|" } },
    { '1', { "^# ", " # ", "^^^" }, { "   ", " | ", " | " } },
    { '2', { "^^#", "#^^", "^^^" }, { " _ ", " _|", "|_ " } },
    { '3', { "^^#", "^^#", "^^^" }, { " _ ", " _|", " _|" } },
    { '4', { "# #", "^^#", "  ^" }, { "   ", "|_|", "  |" } },
    { '5', { "#^^", "^^#", "^^^" }, { " _ ", "|_ ", " _|" } },
    { '6', { "#^^", "#^#", "^^^" }, { " _ ", "|_ ", "|_|" } },
    { '7', { "^^#", "  #", "  ^" }, { " _ ", "  |", "  |" } },
    { '8', { "#^#", "#^#", "^^^" }, { " _ ", "|_|", "|_|" } },
    { '9', { "#^#", "^^#", "^^^" }, { " _ ", "|_|", " _|" } },
    { '.', { " ", " ", "^" }, { " ", " ", "." } },
    { '-', { "   ", "^^^", "   " }, { "   ", " _ ", "   " } },
    { '~', { " ", "~", " " }, { " ", "~", " " } },
};

static void draw_glyph(const struct canvas *c, int y, int x, struct ui_style style,
                       const struct glyph *g)
{
    bool ascii = canvas_is_ascii(c);

    for (int row = 0; row < LARGE_ROWS; row++)
        for (int i = 0; (ascii ? g->ascii : g->blocks)[row][i] != '\0'; i++) {
            char mark = (ascii ? g->ascii : g->blocks)[row][i];
            wchar_t cell = ascii         ? (wchar_t)mark
                           : mark == '#' ? L'\u2588'
                           : mark == '^' ? L'\u2580'
                                         : (wchar_t)mark;

            canvas_cell(c, y + row, x + i, style, cell);
        }
}

int large_number(const struct canvas *c, int y, int x, struct ui_style style,
                 const char *number)
{
    for (; *number != '\0'; number++)
        for (size_t i = 0; i < sizeof glyphs / sizeof glyphs[0]; i++)
            if (glyphs[i].ch == *number) {
                draw_glyph(c, y, x, style, &glyphs[i]);
                x += (int)strlen(glyphs[i].blocks[0]) + 1;
            }
    return x;
}
