/*
 * memwall serve in a terminal: the dashboard, and below it the server.
 *
 *     | memory, layers, speed ...                                        |
 *     | gemma-4 on http://127.0.0.1:8080, 3 connections, 2 waiting       |
 *     | now: POST /v1/chat/completions for 127.0.0.1, 31 tokens in 4.2 s |
 *     | 10:20:31 127.0.0.1 POST /v1/chat/completions 200 ...             |
 *     | Up Down: layer, ?: help, q: stop the server                      |
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>

#include "ui/dash/dash.h"
#include "ui/talk/help.h"
#include "ui/term/screen.h"
#include "ui/text/sheet.h"
#include "ui/ui.h"

#define DASH_ROWS 16 /* the dashboard keeps, before requests get rows */

struct ui_serving_screen {
    struct screen screen;
    struct dash *dash;
    struct sheet *help; /* NULL: it is not open */
};

/* ---- drawing ---- */

/* Draw a row from the bottom upwards. */
static void draw_row(const struct canvas *c, int *y, enum ui_role role, const char *text)
{
    if (*y <= 0)
        return;
    --*y;
    canvas_blank(c, *y, 0, c->width, style_of(role));
    canvas_text(c, *y, 1, style_of(role), text);
}

static void draw(struct ui_serving_screen *s, const struct ui_serving *x)
{
    struct canvas screen = term_canvas(s->screen.term), c;
    int y = screen.height, lines = screen.height - 3 - DASH_ROWS;

    draw_row(&screen, &y, ROLE_STATUS, "Up Down: layer, ?: help, q: stop the server");
    for (size_t i = x->n_line; i > 0 && lines > 0; i--, lines--)
        draw_row(&screen, &y, ROLE_DIM, x->line[i - 1]);
    draw_row(&screen, &y, ROLE_TEXT, x->now);
    draw_row(&screen, &y, ROLE_ACCENT, x->title);
    c = canvas_sub(&screen, 0, 0, y, screen.width);
    dash_draw(s->dash, &c);
    if (s->help != NULL)
        sheet_draw(s->help, &c, &c);
    screen_frame(&s->screen, -1, 0);
}

/* ---- keys ---- */

static void help_key(struct ui_serving_screen *s, const struct key *key)
{
    bool is_f1 = key->kind == KEYS_NAMED && key->name == KEYS_F1;

    if (!is_f1 && sheet_key(s->help, key) == SHEET_STAYS)
        return;
    sheet_free(s->help);
    s->help = NULL;
    s->screen.is_large = true;
}

static void on_char(struct ui_serving_screen *s, uint32_t ch)
{
    if (ch == 'q' || ch == 'D' - 64)
        screen_leave(&s->screen, 0);
    else if (ch == 'C' - 64)
        screen_leave(&s->screen, 128 + SIGINT);
    else if (ch == '?')
        s->help = help_dashboard_sheet();
}

static void on_key(void *ctx, const struct key *key)
{
    struct ui_serving_screen *s = ctx;

    if (s->help != NULL && (key->kind == KEYS_NAMED || key->kind == KEYS_CHAR)) {
        help_key(s, key);
        return;
    }
    if (key->kind == KEYS_CHAR && key->mods == 0)
        on_char(s, key->ch);
    else if (key->kind == KEYS_NAMED && key->name == KEYS_UP)
        dash_move_cursor(s->dash, -1);
    else if (key->kind == KEYS_NAMED && key->name == KEYS_DOWN)
        dash_move_cursor(s->dash, 1);
    else if (key->kind == KEYS_NAMED && key->name == KEYS_ESC)
        dash_set_cursor(s->dash, -1);
    else if (key->kind == KEYS_NAMED && key->name == KEYS_F1)
        s->help = help_dashboard_sheet();
}

/* ---- interface ---- */

int ui_serving_open(struct ui_serving_screen **out, const struct ui_options *o,
                    const struct ui_paths *paths, struct err *e)
{
    struct ui_serving_screen *s = calloc(1, sizeof *s);

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the screen");
    s->screen = (struct screen){ on_key, s, .on_interrupt = 128 + SIGINT };
    if (screen_open(&s->screen, o, paths->config_dir, e) != 0) {
        ui_serving_close(s);
        return -1;
    }
    s->dash = dash_new(o->graph == UI_GRAPH_AUTO ? term_graph(s->screen.term) : o->graph, e);
    if (s->dash == NULL) {
        ui_serving_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void ui_serving_close(struct ui_serving_screen *s)
{
    if (s == NULL)
        return;
    screen_close(&s->screen);
    sheet_free(s->help);
    dash_free(s->dash);
    free(s);
}

void ui_serving_watch(const struct ui_serving_screen *s, int fd[2])
{
    fd[0] = term_fd(s->screen.term);
    fd[1] = term_signal_fd(s->screen.term);
}

bool ui_serving_draw(struct ui_serving_screen *s, const struct ui_serving *x,
                     const struct mw_sample *sample)
{
    struct err ignored = ERR_INIT;

    (void)screen_take(&s->screen, 0, &ignored);
    if (sample != NULL)
        dash_push(s->dash, sample);
    if (!s->screen.is_leaving)
        draw(s, x);
    return !s->screen.is_leaving;
}

int ui_serving_status(const struct ui_serving_screen *s)
{
    return s->screen.status;
}
