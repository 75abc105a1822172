/* The picker of models as a screen of its own, before a chat. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "ui/options/options.h"
#include "ui/pick/pick.h"
#include "ui/term/keys.h"
#include "ui/term/term.h"
#include "ui/ui.h"

/* Models are described for so long between two looks at the keys. */
#define WORK_NS ((uint64_t)20 * 1000 * 1000)

struct picker {
    struct term *term;
    struct keys *keys;
    struct pick *pick;
    bool is_leaving, is_dirty, is_large, has_work;
    int status;
    char *path; /* [n], of the chosen model */
    size_t n;
};

static void draw(struct picker *r)
{
    struct canvas screen = term_canvas(r->term);
    int y, x;

    pick_draw(r->pick, &screen, &y, &x);
    term_frame(r->term, y, x, r->is_large);
    r->is_dirty = r->is_large = false;
}

static void leave(struct picker *r, int status)
{
    r->status = status;
    r->is_leaving = true;
}

static void on_key(struct picker *r, const struct key *key)
{
    if (key->kind == KEYS_REPLY)
        r->is_large |= term_take_reply(r->term, key);
    switch (pick_key(r->pick, key)) {
    case PICK_IGNORES:
        if (key->kind == KEYS_CHAR && key->ch == 'L' - 64) {
            term_redraw(r->term);
            r->is_large = true;
        } else if (key->kind == KEYS_CHAR && key->ch == 'Z' - 64) {
            term_stop(r->term);
            r->is_large = true;
        }
        break;
    case PICK_STAYS: r->has_work = true; break; /* a setting may have changed */
    case PICK_LEAVES: leave(r, UI_PICK_NONE); break;
    case PICK_OPENS:
        snprintf(r->path, r->n, "%s", pick_target(r->pick));
        leave(r, 0);
        break;
    }
    r->is_dirty = true;
}

static void take_keys(struct picker *r, bool readable)
{
    struct key key;

    if (readable && !term_read(r->term, r->keys)) {
        leave(r, 128 + SIGHUP);
        return;
    }
    while (!r->is_leaving && keys_next(r->keys, clock_ns(), &key))
        on_key(r, &key);
}

static void take_signals(struct picker *r)
{
    int sig;

    while ((sig = term_signal(r->term)) != 0)
        if (term_obey(r->term, sig))
            r->is_large = true;
        else
            leave(r, sig == SIGINT ? UI_PICK_NONE : 128 + sig);
}

static void work(struct picker *r)
{
    uint64_t end = clock_ns() + WORK_NS;

    while (r->has_work && clock_ns() < end) {
        r->has_work = pick_work(r->pick);
        r->is_dirty = true;
    }
}

static int loop(struct picker *r, struct err *e)
{
    while (!r->is_leaving) {
        struct pollfd fds[] = { { term_fd(r->term), POLLIN, 0 },
                                { term_signal_fd(r->term), POLLIN, 0 } };
        uint64_t wait = r->has_work ? 0 : keys_wait(r->keys, clock_ns());
        struct timespec t = { (time_t)(wait / 1000000000u), (long)(wait % 1000000000u) };

        if (ppoll(fds, 2, wait == UINT64_MAX ? NULL : &t, NULL) < 0 && errno != EINTR)
            return err_sys(e, "cannot wait for keys");
        if (fds[1].revents != 0)
            take_signals(r);
        take_keys(r, fds[0].revents != 0);
        if (r->is_leaving)
            break;
        work(r);
        if (r->is_dirty || r->is_large)
            draw(r);
    }
    return r->status;
}

static int open_all(struct picker *r, const struct ui_pick_options *o, struct err *e)
{
    struct term_options term = { .ui = &o->ui, .config_dir = o->paths.config_dir };
    struct mw_describer *describer;
    struct mw_models *models;

    if (mw_models_find(&models, o->models.places, e) != 0)
        return -1;
    if (mw_describer_new(&describer, &o->options->chat.engine, &o->models.describe, e) != 0) {
        mw_models_free(models);
        return -1;
    }
    r->pick = pick_new(models, describer, NULL);
    r->keys = keys_new();
    if (r->pick == NULL || r->keys == NULL)
        return err_memory(e, "the list of models");
    pick_set_wish(r->pick, o->options, o->kept_file);
    keys_set_mouse(r->keys, !o->ui.no_mouse);
    if (term_new(&r->term, &term, e) != 0 || term_start(r->term, r->keys, e) != 0)
        return -1;
    r->has_work = r->is_large = true;
    draw(r);
    return 0;
}

int ui_pick(const struct ui_pick_options *o, char *path, size_t n, struct err *e)
{
    struct picker r = { .path = path, .n = n };
    int rc = open_all(&r, o, e) == 0 ? loop(&r, e) : -1;

    term_free(r.term);
    if (rc == 0)
        pick_take_wish(r.pick, o->options);
    pick_free(r.pick);
    keys_free(r.keys);
    return rc;
}
