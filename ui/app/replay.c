/* memwall replay: plays a recording in the dashboard, with pause, steps, speed and rewind. */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "ui/dash/player.h"
#include "ui/talk/help.h"
#include "ui/term/screen.h"
#include "ui/text/sheet.h"
#include "ui/ui.h"

#define TICK_MS 100 /* ten pictures a second are enough */
#define JUMP_S  5.0

struct replay {
    struct screen screen;
    struct dash *dash;
    struct player *player;
    struct sheet *help; /* NULL: it is not open */
    bool is_paused, is_dirty;
    double speed;
    uint64_t every_ns; /* between two pictures */
    uint64_t tick_ns;  /* when time was last advanced */
};

/* ---- drawing ---- */

static void bar_text(const struct replay *r, char *buf, size_t n)
{
    const struct err *broken = player_broken(r->player);
    bool at_end = player_is_at_end(r->player);
    char why[300];

    if (at_end && broken != NULL) {
        err_text(broken, why, sizeof why);
        snprintf(buf, n, "end: %s", why);
        return;
    }
    snprintf(buf, n,
             "%-6s %6.1f of %.1f s  x%-5g Space: pause, .: step, Left Right: go, + - 1: "
             "speed, Up Down: layer, ?: help, q: leave",
             at_end         ? "end"
             : r->is_paused ? "paused"
                            : "plays",
             player_now_s(r->player), player_length_s(r->player), r->speed);
}

static void draw(struct replay *r)
{
    struct canvas screen = term_canvas(r->screen.term), c;
    char line[400];

    c = canvas_sub(&screen, 0, 0, screen.height - 1, screen.width);
    dash_draw(r->dash, &c);
    if (r->help != NULL)
        sheet_draw(r->help, &c, &c);
    bar_text(r, line, sizeof line);
    canvas_blank(&screen, screen.height - 1, 0, screen.width, style_of(ROLE_STATUS));
    canvas_text(&screen, screen.height - 1, 1, style_of(ROLE_STATUS), line);
    screen_frame(&r->screen, -1, 0);
    r->is_dirty = false;
}

/* ---- time ---- */

static void tick(struct replay *r)
{
    uint64_t now = clock_ns();

    if (r->is_paused || player_is_at_end(r->player) || now - r->tick_ns < r->every_ns)
        return;
    player_advance(r->player, r->dash, (double)(now - r->tick_ns) / 1e9 * r->speed);
    r->tick_ns = now;
    r->is_dirty = true;
}

static void seek(struct replay *r, double by)
{
    struct err ignored = ERR_INIT; /* on failure it stays at its position */

    (void)player_seek(r->player, r->dash, fmax(player_now_s(r->player) + by, 0), &ignored);
}

static void set_paused(struct replay *r, bool paused)
{
    r->is_paused = paused;
    r->tick_ns = clock_ns();
}

/* ---- help ---- */

static void open_help(struct replay *r)
{
    if (r->help == NULL)
        r->help = help_dashboard_sheet();
}

static void help_key(struct replay *r, const struct key *key)
{
    bool is_f1 = key->kind == KEYS_NAMED && key->name == KEYS_F1;

    if (!is_f1 && sheet_key(r->help, key) == SHEET_STAYS)
        return;
    sheet_free(r->help);
    r->help = NULL;
    r->screen.is_large = true;
}

/* ---- keys ---- */

static void on_name(struct replay *r, enum key_name name)
{
    switch (name) {
    case KEYS_F1: open_help(r); break;
    case KEYS_ESC: dash_set_cursor(r->dash, -1); break;
    case KEYS_UP: dash_move_cursor(r->dash, -1); break;
    case KEYS_DOWN: dash_move_cursor(r->dash, 1); break;
    case KEYS_LEFT: seek(r, -JUMP_S); break;
    case KEYS_RIGHT: seek(r, JUMP_S); break;
    case KEYS_HOME: seek(r, -player_length_s(r->player)); break;
    case KEYS_END: seek(r, player_length_s(r->player)); break;
    default: break;
    }
}

static void on_char(struct replay *r, uint32_t ch)
{
    switch (ch) {
    case 'q':
    case 'C' - 64:
    case 'D' - 64: screen_leave(&r->screen, 0); break;
    case '?': open_help(r); break;
    case ' ': set_paused(r, !r->is_paused); break;
    case '.':
        set_paused(r, true);
        player_step(r->player, r->dash);
        break;
    case '+':
    case '=': r->speed = fmin(r->speed * 2, PLAYER_FASTEST); break;
    case '-': r->speed = fmax(r->speed / 2, PLAYER_SLOWEST); break;
    case '1': r->speed = 1; break;
    case '<': seek(r, -JUMP_S); break;
    case '>': seek(r, JUMP_S); break;
    }
}

/* The mouse chooses a layer too. */
static void on_mouse(struct replay *r, const struct key *key)
{
    struct canvas screen = term_canvas(r->screen.term);

    if (key->mouse.what == MOUSE_PRESS && key->mouse.button == 0)
        (void)dash_click(r->dash, screen.height - 1, screen.width, key->mouse.y, key->mouse.x);
}

static void on_key(void *ctx, const struct key *key)
{
    struct replay *r = ctx;

    r->is_dirty = true;
    if (r->help != NULL && (key->kind == KEYS_NAMED || key->kind == KEYS_CHAR))
        help_key(r, key);
    else if (key->kind == KEYS_NAMED)
        on_name(r, key->name);
    else if (key->kind == KEYS_CHAR && key->mods == 0)
        on_char(r, key->ch);
    else if (key->kind == KEYS_MOUSE)
        on_mouse(r, key);
}

static uint64_t wait_ns(const struct replay *r)
{
    uint64_t now = clock_ns(), keys = keys_wait(r->screen.keys, now), wait = UINT64_MAX;

    if (!r->is_paused && !player_is_at_end(r->player))
        wait = now - r->tick_ns < r->every_ns ? r->every_ns - (now - r->tick_ns) : 0;
    return keys < wait ? keys : wait;
}

static int play(struct replay *r, const struct ui_replay_options *o, struct err *e)
{
    if (player_open(&r->player, o->path, e) != 0 ||
        screen_open(&r->screen, &o->ui, o->paths.config_dir, e) != 0)
        return -1;
    r->dash =
        dash_new(o->ui.graph == UI_GRAPH_AUTO ? term_graph(r->screen.term) : o->ui.graph, e);
    if (r->dash == NULL)
        return -1;
    player_step(r->player, r->dash);
    r->tick_ns = clock_ns();
    draw(r);
    while (!r->screen.is_leaving) {
        if (screen_take(&r->screen, wait_ns(r), e) != 0)
            return -1;
        tick(r);
        if ((r->is_dirty || r->screen.is_large) && !r->screen.is_leaving)
            draw(r);
    }
    return r->screen.status;
}

int ui_replay(const struct ui_replay_options *o, struct err *e)
{
    int every_ms = o->ui.refresh_ms > 0 ? o->ui.refresh_ms : TICK_MS;
    struct replay r = { .speed = o->speed > 0 ? o->speed : 1,
                        .every_ns = (uint64_t)every_ms * 1000 * 1000 };
    int rc;

    r.screen = (struct screen){ on_key, &r, .can_stop = true };
    rc = play(&r, o, e);

    screen_close(&r.screen);
    sheet_free(r.help);
    player_close(r.player);
    dash_free(r.dash);
    return rc;
}
