#include "config.h"

#include "ui/term/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "engine/base/clock.h"

int screen_open(struct screen *s, const struct ui_options *ui, const char *config_dir,
                struct err *e)
{
    struct term_options term = { .ui = ui, .config_dir = config_dir };

    s->keys = keys_new();
    if (s->keys == NULL)
        return err_memory(e, "the keys");
    keys_set_mouse(s->keys, !ui->no_mouse);
    if (term_new(&s->term, &term, e) != 0 || term_start(s->term, s->keys, e) != 0)
        return -1;
    s->is_large = true;
    return 0;
}

void screen_close(struct screen *s)
{
    term_free(s->term);
    keys_free(s->keys);
}

void screen_frame(struct screen *s, int y, int x)
{
    term_frame(s->term, y, x, s->is_large);
    s->is_large = false;
}

void screen_leave(struct screen *s, int status)
{
    s->status = status;
    s->is_leaving = true;
}

static void on_key(struct screen *s, const struct key *key)
{
    bool is_control = key->kind == KEYS_CHAR && key->mods == 0;

    if (key->kind == KEYS_REPLY) {
        s->is_large |= term_take_reply(s->term, key);
    } else if (is_control && key->ch == 'L' - 64) {
        term_redraw(s->term);
        s->is_large = true;
    } else if (is_control && key->ch == 'Z' - 64 && s->can_stop) {
        term_stop(s->term);
        s->is_large = true;
    } else {
        s->on_key(s->ctx, key);
    }
}

static void take_signals(struct screen *s)
{
    int sig;

    while ((sig = term_signal(s->term)) != 0)
        if (term_obey(s->term, sig))
            s->is_large = true;
        else
            screen_leave(s, sig == SIGINT ? s->on_interrupt : 128 + sig);
}

int screen_take(struct screen *s, uint64_t wait_ns, struct err *e)
{
    struct pollfd fds[] = { { term_fd(s->term), POLLIN, 0 },
                            { term_signal_fd(s->term), POLLIN, 0 } };
    struct timespec t = { (time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u) };
    struct key key;

    if (ppoll(fds, 2, wait_ns == UINT64_MAX ? NULL : &t, NULL) < 0 && errno != EINTR) {
        screen_leave(s, s->status);
        return err_sys(e, "cannot wait for keys");
    }
    if (fds[1].revents != 0)
        take_signals(s);
    if (fds[0].revents != 0 && !term_read(s->term, s->keys))
        screen_leave(s, 128 + SIGHUP);
    while (!s->is_leaving && keys_next(s->keys, clock_ns(), &key))
        on_key(s, &key);
    return 0;
}
