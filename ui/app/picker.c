/* The picker of models as a screen of its own, before a chat. */
#include "config.h"

#include <stdio.h>

#include "engine/base/clock.h"
#include "ui/options/options.h"
#include "ui/pick/pick.h"
#include "ui/term/screen.h"
#include "ui/ui.h"

struct picker {
    struct screen screen;
    struct pick *pick;
    bool is_dirty;
    char *path; /* [n], of the chosen model */
    size_t n;
};

static void draw(struct picker *r)
{
    struct canvas screen = term_canvas(r->screen.term);
    int y, x;

    pick_draw(r->pick, &screen, &y, &x);
    screen_frame(&r->screen, y, x);
    r->is_dirty = false;
}

static void on_key(void *ctx, const struct key *key)
{
    struct picker *r = ctx;

    r->is_dirty = true;
    switch (pick_key(r->pick, key)) {
    case PICK_IGNORES:
    case PICK_STAYS: break;
    case PICK_LEAVES: screen_leave(&r->screen, UI_PICK_NONE); break;
    case PICK_OPENS:
        snprintf(r->path, r->n, "%s", pick_target(r->pick));
        screen_leave(&r->screen, 0);
        break;
    }
}

static int choose(struct picker *r, const struct ui_pick_options *o, struct err *e)
{
    r->pick = pick_new(&o->models, &o->options->chat.engine, NULL, NULL, e);
    if (r->pick == NULL)
        return -1;
    pick_set_wish(r->pick, o->options, o->kept_file);
    if (screen_open(&r->screen, &o->ui, o->paths.config_dir, e) != 0)
        return -1;
    draw(r);
    while (!r->screen.is_leaving) {
        uint64_t wait = pick_has_work(r->pick) ? 0 : keys_wait(r->screen.keys, clock_ns());

        if (screen_take(&r->screen, wait, e) != 0)
            return -1;
        if (r->screen.is_leaving)
            break;
        r->is_dirty |= pick_work(r->pick);
        if (r->is_dirty || r->screen.is_large)
            draw(r);
    }
    return r->screen.status;
}

int ui_pick(const struct ui_pick_options *o, char *path, size_t n, struct err *e)
{
    struct picker r = { .path = path, .n = n };
    int rc;

    r.screen = (struct screen){ on_key, &r, .on_interrupt = UI_PICK_NONE, .can_stop = true };
    rc = choose(&r, o, e);
    screen_close(&r.screen);
    if (rc == 0)
        pick_take_wish(r.pick, o->options);
    pick_free(r.pick);
    return rc;
}
