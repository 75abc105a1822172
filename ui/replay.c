/*
 * ui_replay: a recording in the dashboard, alone on the screen.
 *
 *     dashboard
 *     ─ gemma-4-E2B-it  run.jsonl ────────────────────────────
 *      > 0:12 of 3:05  x1  ████████░░░░░░░░░  space . + - q
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/chat/clean.h"
#include "ui/dash/player.h"
#include "ui/keys.h"
#include "ui/term.h"
#include "ui/ui.h"

#define FRAME_NS   100000000u /* ten pictures a second while it plays */
#define JUMP_S     5.0
#define MIN_HEIGHT 2

struct screen {
    struct term *term;
    struct keys *keys;
    struct theme theme;
    struct player *player;
    struct dash *dash;
    char name[128]; /* of the file, clean */
    double speed;
    bool is_paused, is_dirty, is_large, is_leaving;
    int status;
    uint64_t last_ns; /* when the recording was moved on */
    char hint[256];   /* until the next key */
};

/* ---- drawing ---- */

static void clock_text(char *buf, size_t n, double seconds)
{
    unsigned s = seconds > 0 ? (unsigned)seconds : 0;

    snprintf(buf, n, "%u:%02u", s / 60, s % 60);
}

static void draw_rule(const struct screen *s, const struct canvas *c, int y)
{
    const struct mw_sample *sample = player_sample(s->player);
    const struct err *broken = player_broken(s->player);
    char text[400];

    canvas_hline(c, y, 0, c->width, style_of(ROLE_BORDER));
    if (s->hint[0] != '\0')
        snprintf(text, sizeof text, "%s", s->hint);
    else if (broken != NULL && player_is_at_end(s->player))
        snprintf(text, sizeof text, "%s: %s", broken->field, broken->what);
    else
        snprintf(text, sizeof text, "%s%s%s", sample->run.model,
                 sample->run.model[0] != '\0' ? "  " : "", s->name);
    if (c->width > 6) {
        int used = canvas_put(c, y, 2, c->width - 4, style_of(ROLE_HINT), text, strlen(text));

        canvas_blank(c, y, 1, 1, style_of(ROLE_HINT));
        canvas_blank(c, y, 2 + used, 1, style_of(ROLE_HINT));
    }
}

static void draw_position(const struct screen *s, const struct canvas *c, int y)
{
    static const char keys[] = "Space pauses  . steps  + - speed  < > seek  q leaves";
    double length = player_length_s(s->player), now = player_now_s(s->player);
    char at[16], of[16];
    int x, end;

    clock_text(at, sizeof at, now);
    clock_text(of, sizeof of, length);
    canvas_blank(c, y, 0, c->width, style_of(ROLE_STATUS));
    x = canvas_printf(c, y, 1, style_of(ROLE_STATUS_STRONG), "%s %s of %s",
                      player_is_at_end(s->player) ? "end    "
                      : s->is_paused              ? "paused "
                                                  : "playing",
                      at, of) +
        2;
    x += canvas_printf(c, y, x, style_of(ROLE_STATUS), "x%-6g", s->speed) + 1;
    end = c->width - (int)sizeof keys - 1;
    if (end - x >= 8)
        canvas_text(c, y, end + 1, style_of(ROLE_STATUS), keys);
    else
        end = c->width - 1;
    if (end - x >= 4)
        canvas_bar(c, y, x, end - x - 1, length > 0 ? now / length : 1, style_of(ROLE_STATUS),
                   style_of(ROLE_STATUS));
}

static void draw(struct screen *s)
{
    struct canvas all = term_canvas(s->term);
    struct canvas dash = canvas_sub(&all, 0, 0, all.height - 2, all.width);

    if (all.height <= MIN_HEIGHT) {
        canvas_clear(&all, style_of(ROLE_TEXT));
        canvas_text(&all, 0, 0, style_of(ROLE_TEXT), "too small");
    } else {
        dash_draw(s->dash, &dash);
        draw_rule(s, &all, all.height - 2);
        draw_position(s, &all, all.height - 1);
    }
    term_frame(s->term, -1, 0, s->is_large);
    s->is_dirty = s->is_large = false;
}

/* ---- keys ---- */

static void seek(struct screen *s, double seconds)
{
    struct err e = ERR_INIT;

    if (player_seek(s->player, s->dash, seconds, &e) != 0)
        snprintf(s->hint, sizeof s->hint, "%s", e.what);
}

static void change_speed(struct screen *s, double factor)
{
    double speed = s->speed * factor;

    if (speed >= PLAYER_SLOWEST && speed <= PLAYER_FASTEST)
        s->speed = speed;
}

static void on_char(struct screen *s, uint32_t ch)
{
    switch (ch) {
    case ' ': s->is_paused = !s->is_paused; break;
    case '.':
        s->is_paused = true;
        player_step(s->player, s->dash);
        break;
    case '+':
    case '=': change_speed(s, 2); break;
    case '-': change_speed(s, 0.5); break;
    case '1': s->speed = 1; break;
    case '<': seek(s, player_now_s(s->player) - JUMP_S); break;
    case '>': seek(s, player_now_s(s->player) + JUMP_S); break;
    case 'k': dash_move_cursor(s->dash, -1); break;
    case 'j': dash_move_cursor(s->dash, 1); break;
    case 'l' & 0x1f: /* Ctrl-L */
        term_redraw(s->term);
        s->is_large = true;
        break;
    case 'z' & 0x1f: term_stop(s->term); break;
    case 'q':
    case 'c' & 0x1f:
    case 'd' & 0x1f: s->is_leaving = true; break;
    default:
        snprintf(s->hint, sizeof s->hint,
                 "Up and Down inspect a layer, Home and End jump, 1 is the speed it had");
    }
}

static void on_name(struct screen *s, enum key_name name)
{
    switch (name) {
    case KEYS_ESC:
        if (dash_cursor(s->dash) >= 0)
            dash_set_cursor(s->dash, -1);
        else
            s->is_leaving = true;
        break;
    case KEYS_UP: dash_move_cursor(s->dash, -1); break;
    case KEYS_DOWN: dash_move_cursor(s->dash, 1); break;
    case KEYS_LEFT: seek(s, player_now_s(s->player) - JUMP_S); break;
    case KEYS_RIGHT: seek(s, player_now_s(s->player) + JUMP_S); break;
    case KEYS_HOME: seek(s, 0); break;
    case KEYS_END: seek(s, player_length_s(s->player)); break;
    default: break;
    }
}

static void on_key(struct screen *s, const struct key *key)
{
    struct canvas all = term_canvas(s->term);

    s->hint[0] = '\0';
    s->is_dirty = true;
    if (key->kind == KEYS_CHAR && key->mods == 0)
        on_char(s, key->ch);
    else if (key->kind == KEYS_NAMED)
        on_name(s, key->name);
    else if (key->kind == KEYS_MOUSE && key->mouse.what == MOUSE_PRESS)
        dash_click(s->dash, all.height - 2, all.width, key->mouse.y, key->mouse.x);
}

static void read_keys(struct screen *s)
{
    unsigned char bytes[4096];
    size_t room = keys_room(s->keys);
    ssize_t n = read(term_fd(s->term), bytes, room < sizeof bytes ? room : sizeof bytes);

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) { /* the terminal is gone */
        s->status = 128 + SIGHUP;
        s->is_leaving = true;
        return;
    }
    keys_feed(s->keys, bytes, (size_t)n, term_now_ns());
}

static void take_keys(struct screen *s)
{
    struct key key;

    while (!s->is_leaving && keys_next(s->keys, term_now_ns(), &key))
        on_key(s, &key);
}

static void take_signals(struct screen *s)
{
    int sig;

    while ((sig = term_signal(s->term)) != 0) {
        s->is_dirty = s->is_large = true;
        switch (sig) {
        case SIGWINCH: term_resized(s->term); break;
        case SIGTSTP: term_stop(s->term); break;
        case SIGCONT: term_retake(s->term); break;
        default: s->status = sig == SIGINT ? 0 : 128 + sig; s->is_leaving = true;
        }
    }
}

/* ---- the loop ---- */

static bool is_playing(const struct screen *s)
{
    return !s->is_paused && !player_is_at_end(s->player);
}

static void play(struct screen *s)
{
    uint64_t now = term_now_ns();

    if (is_playing(s) && now - s->last_ns >= FRAME_NS) {
        player_advance(s->player, s->dash, (double)(now - s->last_ns) / 1e9 * s->speed);
        s->is_dirty = true;
        s->last_ns = now;
    } else if (!is_playing(s)) {
        s->last_ns = now; /* time that passes now is not the recording's */
    }
}

/* Until a picture is due or a key that hangs is complete; for ever while nothing plays. */
static int timeout_ms(const struct screen *s)
{
    uint64_t now = term_now_ns(), since = now - s->last_ns, keys = keys_wait(s->keys, now);
    uint64_t frame = !is_playing(s) ? UINT64_MAX : since >= FRAME_NS ? 0 : FRAME_NS - since;
    uint64_t ns = frame < keys ? frame : keys;

    return ns == UINT64_MAX ? -1 : (int)(ns / 1000000u + 1);
}

static void loop(struct screen *s)
{
    while (!s->is_leaving) {
        struct pollfd fds[] = { { term_fd(s->term), POLLIN, 0 },
                                { term_signal_fd(s->term), POLLIN, 0 } };

        if (s->is_dirty)
            draw(s);
        if (poll(fds, 2, timeout_ms(s)) < 0 && errno != EINTR)
            break;
        if (fds[1].revents != 0)
            take_signals(s);
        if (fds[0].revents != 0)
            read_keys(s);
        take_keys(s);
        play(s);
    }
}

static enum ui_graph graph_of(const struct screen *s, enum ui_graph wish)
{
    const char *name = getenv("TERM");

    if (wish != UI_GRAPH_AUTO)
        return wish;
    if (term_is_ascii(s->term))
        return UI_GRAPH_ASCII;
    return name != NULL && strcmp(name, "linux") == 0 ? UI_GRAPH_BLOCK : UI_GRAPH_BRAILLE;
}

static int open_all(struct screen *s, const struct ui_replay_options *o, struct err *e)
{
    const char *base = strrchr(o->path, '/');
    struct term_options term = { .ui = &o->ui };

    base = base != NULL ? base + 1 : o->path;
    clean_line(s->name, sizeof s->name, base, strlen(base));
    s->speed = o->speed > 0 ? o->speed : 1;
    if (player_open(&s->player, o->path, e) != 0 ||
        theme_find(&s->theme, o->ui.theme == NULL ? "dark" : o->ui.theme, o->paths.config_dir,
                   e) != 0 ||
        term_new(&s->term, &term, e) != 0)
        return -1;
    s->dash = dash_new(graph_of(s, o->ui.graph), e);
    if (s->dash == NULL)
        return -1;
    s->keys = keys_new();
    if (s->keys == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the screen");
    return term_start(s->term, &s->theme, e);
}

int ui_replay(const struct ui_replay_options *o, struct err *e)
{
    struct screen *s = calloc(1, sizeof *s);
    int rc;

    if (s == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the screen");
    rc = open_all(s, o, e);
    if (rc == 0) {
        keys_set_mouse(s->keys, !o->ui.no_mouse);
        player_step(s->player, s->dash);
        s->is_dirty = s->is_large = true;
        s->last_ns = term_now_ns();
        loop(s);
        rc = s->status;
    }
    term_free(s->term);
    keys_free(s->keys);
    dash_free(s->dash);
    player_close(s->player);
    free(s);
    return rc;
}
