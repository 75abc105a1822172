/*
 * Two measurements side by side, or one above the other on a narrow screen:
 *
 *     memwall: direct reads                  mapped pages
 *     ▀▀█ ▀▀█                                █▀█   ▀█  ▀█
 *     ▀▀█ █▀▀                                █ █    █   █
 *     ▀▀▀▀▀▀▀                                ▀▀▀▀  ▀ ▀  ▀ ▀
 *     tok/s, predicted ~3.1                  tok/s
 *     ███████████████████████████··          ██░░░░░░░░░░░░░░░░░░░░░░░░░░░
 *     32 of 32 tokens in 10.3 s              3 of 32 tokens in 27.1 s
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/dash/large.h"
#include "ui/term/screen.h"
#include "ui/text/wrap.h"
#include "ui/ui.h"

#define NARROW    72 /* columns; below, the sides are one above the other */
#define GAP       3  /* columns between the sides */
#define FULL_ROWS (1 + LARGE_ROWS + 1 + 1 + UI_SIDE_LINES)
#define FLAT_ROWS (1 + 1 + UI_SIDE_LINES) /* without the large figure */

struct ui_sides_screen {
    struct screen screen;
};

/* ---- drawing ---- */

/* Own memory, then page cache, then what is free. */
static void draw_bar(const struct canvas *c, int y, const struct ui_side *side)
{
    wchar_t own = canvas_is_ascii(c) ? L'#' : L'\u2588';
    wchar_t cached = canvas_is_ascii(c) ? L'o' : L'\u2592';
    wchar_t rest = canvas_is_ascii(c) ? L'.' : L'\u00b7';
    int n_own, n_all;

    if (side->own < 0) {
        canvas_text(c, y, 0, style_of(ROLE_DIM), "-");
        return;
    }
    n_own = (int)(side->own * c->width + 0.5);
    n_all = (int)((side->own + (side->cached > 0 ? side->cached : 0)) * c->width + 0.5);
    n_own = n_own < c->width ? n_own : c->width;
    n_all = n_all < c->width ? n_all : c->width;
    canvas_repeat(c, y, 0, n_own, style_of(ROLE_FILL_PINNED), own);
    canvas_repeat(c, y, n_own, n_all - n_own, style_of(ROLE_FILL_LENT), cached);
    canvas_repeat(c, y, n_all, c->width - n_all, style_of(ROLE_FILL_FREE), rest);
}

static void draw_side(const struct canvas *c, const struct ui_side *side)
{
    bool is_number = side->rate[0] >= '0' && side->rate[0] <= '9';
    struct ui_style style = is_number ? style_with(ROLE_ACCENT, UI_BOLD) : style_of(ROLE_DIM);
    int y = 0, x;

    x = canvas_text(c, y, 0, style_with(ROLE_TEXT, UI_BOLD), side->title);
    if (c->height >= FULL_ROWS) {
        large_number(c, 1, 0, style, side->rate);
        canvas_text(c, 1 + LARGE_ROWS, 0, style_of(ROLE_DIM), side->unit);
        y = 1 + LARGE_ROWS + 1;
    } else {
        x += 2 + canvas_text(c, y, x + 2, style, side->rate);
        canvas_text(c, y++, x + 1, style_of(ROLE_DIM), side->unit);
    }
    draw_bar(c, y++, side);
    for (int i = 0; i < UI_SIDE_LINES; i++)
        canvas_text(c, y++, 0, style_of(ROLE_TEXT), side->line[i]);
}

static void draw_keys(const struct canvas *screen, const struct ui_sides *all)
{
    bool ascii = canvas_is_ascii(screen);
    char text[160];

    snprintf(text, sizeof text, "q: %s   %s own memory  %s page cache",
             all->end[0] != '\0' ? "leave" : "stop and leave", ascii ? "#" : "\u2588",
             ascii ? "o" : "\u2592");
    canvas_blank(screen, screen->height - 1, 0, screen->width, style_of(ROLE_STATUS));
    canvas_text(screen, screen->height - 1, 1, style_of(ROLE_STATUS), text);
}

static void draw_sides(const struct canvas *c, const struct ui_sides *all)
{
    bool is_wide = c->width >= NARROW;
    int width = is_wide ? (c->width - GAP) / UI_SIDES : c->width;
    int height = is_wide ? c->height : c->height / UI_SIDES;

    if (!is_wide && height < FULL_ROWS && height > FLAT_ROWS)
        height = FLAT_ROWS + 1;
    for (int i = 0; i < UI_SIDES; i++) {
        struct canvas part = is_wide ? canvas_sub(c, 0, i * (width + GAP), height, width)
                                     : canvas_sub(c, i * height, 0, height, width);

        draw_side(&part, &all->side[i]);
    }
}

/* The result, above the row of keys, in as many rows as it needs. */
static void draw_end(const struct canvas *screen, const char *text)
{
    int width = screen->width - 2, y;
    struct wrap w = { 0 };

    wrap_text(&w, text, strlen(text), width, width, WRAP_WORDS, 0);
    y = screen->height - 1 - (int)w.n_row;
    for (const struct wrap_row *r = w.row; r < w.row + w.n_row; r++, y++) {
        char row[UI_SIDES_END];

        snprintf(row, sizeof row, "%.*s", (int)(r->end - r->start), text + r->start);
        canvas_blank(screen, y, 0, screen->width, style_of(ROLE_TEXT));
        canvas_text(screen, y, 1, style_with(ROLE_GOOD, UI_BOLD), row);
    }
    wrap_free(&w);
}

static void draw(struct ui_sides_screen *s, const struct ui_sides *all)
{
    struct canvas screen = term_canvas(s->screen.term), c;
    int top = screen.height > FULL_ROWS + 4 ? 2 : 1;

    canvas_clear(&screen, style_of(ROLE_TEXT));
    canvas_text(&screen, 0, 1, style_with(ROLE_ACCENT, UI_BOLD), all->title);
    c = canvas_sub(&screen, top, 1, screen.height - 4, screen.width - 2);
    draw_sides(&c, all);
    draw_end(&screen, all->end);
    draw_keys(&screen, all);
    screen_frame(&s->screen, -1, 0);
}

static void on_key(void *ctx, const struct key *key)
{
    struct ui_sides_screen *s = ctx;
    bool is_char = key->kind == KEYS_CHAR && key->mods == 0;

    if ((key->kind == KEYS_NAMED && key->name == KEYS_ESC) ||
        (is_char && (key->ch == 'q' || key->ch == 'C' - 64 || key->ch == 'D' - 64)))
        screen_leave(&s->screen, 0);
}

/* ---- interface ---- */

int ui_sides_open(struct ui_sides_screen **out, const struct ui_options *o,
                  const struct ui_paths *paths, struct err *e)
{
    struct ui_sides_screen *s = calloc(1, sizeof *s);

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the screen");
    s->screen = (struct screen){ on_key, s, .on_interrupt = 128 + SIGINT };
    if (screen_open(&s->screen, o, paths->config_dir, e) != 0) {
        ui_sides_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void ui_sides_close(struct ui_sides_screen *s)
{
    if (s == NULL)
        return;
    screen_close(&s->screen);
    free(s);
}

void ui_sides_watch(const struct ui_sides_screen *s, int fd[2])
{
    fd[0] = term_fd(s->screen.term);
    fd[1] = term_signal_fd(s->screen.term);
}

/* Take keys for so long, and draw. */
static bool take(struct ui_sides_screen *s, uint64_t wait_ns, const struct ui_sides *all)
{
    struct err ignored = ERR_INIT;

    (void)screen_take(&s->screen, wait_ns, &ignored);
    if (!s->screen.is_leaving)
        draw(s, all);
    return !s->screen.is_leaving;
}

bool ui_sides_draw(struct ui_sides_screen *s, const struct ui_sides *all)
{
    return take(s, 0, all);
}

void ui_sides_wait(struct ui_sides_screen *s, const struct ui_sides *all)
{
    bool stays = take(s, 0, all);

    while (stays)
        stays = take(s, keys_wait(s->screen.keys, clock_ns()), all);
}

int ui_sides_status(const struct ui_sides_screen *s)
{
    return s->screen.status;
}
