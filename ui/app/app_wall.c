/*
 * The wall of the dashboard: its points are predicted only if something changed that they
 * depend on, beside the other figures of a sample.  For a large model that takes some ten
 * milliseconds; then they come some at a time, between two frames and while no key waits.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/app/app.h"
#include "ui/dash/dash.h"

#define EVERY_NS   ((uint64_t)2000 * 1000 * 1000) /* during an answer, and between two */
#define AT_ONCE_NS ((uint64_t)10 * 1000 * 1000)   /* of the processor; all points within it */
#define SLICE_NS   ((uint64_t)1500 * 1000)        /* a key waits no longer for some points */
#define SAME       1.03                           /* rates that differ by less are the same */
#define MOVED      32                             /* parts of the context */

/* Everything that the points depend on. */
struct app_wall {
    struct mw_wall wall; /* that is being made */
    struct mw_sample sample;
    struct mw_options options;
    uint32_t engine;  /* talk_engine() */
    uint64_t cost_ns; /* processor time so far */
};

static bool is_same_rate(double a, double b)
{
    return a == b || (a > 0 && b > 0 && a < b * SAME && b < a * SAME);
}

static bool has_same_settings(const struct app_wall_inputs *a, const struct app_wall_inputs *b)
{
    return a->engine == b->engine && mw_tried_same_settings(&a->settings, &b->settings) &&
           memcmp(a->row, b->row, sizeof a->row) == 0;
}

bool app_wall_is_same(const struct app_wall_inputs *a, const struct app_wall_inputs *b,
                      uint32_t n_ctx)
{
    return has_same_settings(a, b) && is_same_rate(a->token_s, b->token_s) &&
           is_same_rate(a->anchor_s, b->anchor_s) && is_same_rate(a->disk, b->disk) &&
           is_same_rate(a->memory, b->memory) && a->n_tried == b->n_tried &&
           is_same_rate(a->tried_tps, b->tried_tps) && a->is_measured == b->is_measured &&
           fabs(a->n_seen - b->n_seen) < (double)n_ctx / MOVED;
}

/* The options of the session whose sample is s; false: they are about to change. */
static bool options_in_use(const struct app *a, struct mw_options *o)
{
    const struct mw_sample *s = &a->sample;
    const struct plan *p = talk_plan(a->talk);

    *o = talk_in_force(a->talk);
    o->memory_bytes = p->budget_bytes;
    o->n_ctx = p->n_ctx;
    o->n_thread = (int)s->run.threads;
    return s->run.budget_bytes == p->budget_bytes && s->run.ctx == p->n_ctx &&
           strcmp(s->run.kv_k, mw_kv_name(o->kv_k)) == 0 &&
           strcmp(s->run.kv_v, mw_kv_name(o->kv_v)) == 0;
}

static struct app_wall_inputs inputs_of(const struct app *a, const struct mw_options *o)
{
    struct app_wall_inputs in = { .engine = talk_engine(a->talk) };
    const struct mw_sample *s = &a->sample;
    struct mw_tried tried[MW_TRIED_MOST];
    struct plan_anchor anchor;
    struct mw_rates rates;

    mw_rates(s, &rates);
    talk_anchor(a->talk, &anchor);
    mw_tried_of_options(&in.settings, o);
    memcpy(in.row, talk_plan(a->talk)->row, sizeof in.row);
    in.token_s = rates.token_s > 0 ? rates.token_s : 0;
    in.anchor_s = anchor.token_s;
    in.disk = (double)s->disk_limit;
    in.memory = (double)s->memory_limit;
    in.n_seen = (double)(s->kv.tokens > s->kv.context ? s->kv.tokens : s->kv.context);
    in.is_measured = s->verdict.binds != MW_BINDS_NONE;
    in.n_tried = talk_tried(a->talk, tried);
    in.tried_tps = in.n_tried > 0 ? tried[0].tps : 0;
    return in;
}

static bool is_shown(const struct app *a)
{
    return a->layout.dash.height > 0 &&
           !panels_find(dash_panels(a->dash), PANEL_WALL)->is_hidden;
}

void app_wall_stop(struct app *a)
{
    free(a->wall.making);
    a->wall.making = NULL;
}

/* The verdict of a prompt has no rate of answers: then all points are predicted. */
void app_wall_sample(struct mw_sample *out, const struct mw_sample *s)
{
    *out = *s;
    if (s->state == MW_PREFILL)
        out->verdict.binds = MW_BINDS_NONE;
}

/* Begin again if something has changed. */
static void begin(struct app *a)
{
    struct app_wall_inputs in;
    struct mw_options o;
    struct app_wall *w;

    if (!is_shown(a) || !talk_is_loaded(a->talk) || !options_in_use(a, &o))
        return;
    in = inputs_of(a, &o);
    if (app_wall_is_same(&in, &a->wall.inputs, o.n_ctx) ||
        (has_same_settings(&in, &a->wall.inputs) &&
         talk_is_answering(a->talk) == a->wall.was_answering &&
         clock_ns() - a->wall.begun_ns < EVERY_NS))
        return;
    w = malloc(sizeof *w);
    if (w == NULL)
        return;
    a->wall.inputs = in;
    a->wall.begun_ns = clock_ns();
    a->wall.was_answering = talk_is_answering(a->talk);
    app_wall_sample(&w->sample, &a->sample);
    w->options = o;
    w->engine = in.engine;
    w->cost_ns = 0;
    if (talk_wall_begin(a->talk, &w->wall, &o, &w->sample))
        a->wall.making = w;
    else
        free(w);
}

/* Predict points, for a while unless the wall of this model is new or quickly made. */
static bool has_more(struct app *a, struct app_wall *w)
{
    bool at_once = w->engine != a->wall.cost_of || a->wall.cost_ns <= AT_ONCE_NS;
    uint64_t begin_ns = clock_thread_ns(), spent_ns = 0;
    bool is_left = true;

    while (is_left && (at_once || spent_ns < SLICE_NS)) {
        is_left = talk_wall_step(a->talk, &w->wall, &w->options, &w->sample, 1);
        spent_ns = clock_thread_ns() - begin_ns;
    }
    w->cost_ns += spent_ns;
    return is_left;
}

void app_wall_work(struct app *a)
{
    struct app_wall *w;

    if (a->wall.making == NULL && a->wall.seen_ns != a->sample_ns)
        begin(a);
    a->wall.seen_ns = a->sample_ns;
    w = a->wall.making;
    if (w == NULL)
        return;
    if (!talk_is_loaded(a->talk) || talk_engine(a->talk) != w->engine) {
        app_wall_stop(a);
        return;
    }
    if (has_more(a, w))
        return;
    a->wall.cost_of = w->engine;
    a->wall.cost_ns = w->cost_ns;
    dash_set_wall(a->dash, &w->wall);
    app_wall_stop(a);
    app_dirty(a, DIRT_DASH);
}

/* ---- keys ---- */

void app_wall_hint(struct app *a)
{
    if (dash_wall_is_unknown(a->dash)) {
        app_hint(a, "Up, Down: panels  ?: explain");
        return;
    }
    app_hint(a, "Left, Right: move  Enter: apply  c: %s  Up, Down: panels  ?: explain",
             dash_wall_axis(a->dash) == MW_WALL_BUDGET ? "context" : "budget");
}

void app_wall_clicked(struct app *a, int y, int x)
{
    const struct area *at = &a->layout.dash;

    app_dirty(a, DIRT_DASH);
    if (dash_at(a->dash, at->height, at->width, y - at->y, x - at->x).widget != PANEL_WALL)
        return;
    if (a->mode == MODE_LINE && edit_is_empty())
        app_enter(a, MODE_DASH);
    if (a->mode != MODE_DASH)
        return;
    dash_panels(a->dash)->chosen = PANEL_WALL;
    app_wall_hint(a);
}

void app_wall_return(struct app *a, uint64_t asked_at)
{
    if (asked_at == 0 || !is_shown(a))
        return;
    app_enter(a, MODE_DASH);
    dash_panels(a->dash)->chosen = PANEL_WALL;
    dash_wall_go(a->dash, asked_at);
    app_wall_hint(a);
}

static void apply(struct app *a)
{
    uint64_t at = dash_wall_at(a->dash);
    char setting[40], line[48];

    if (dash_wall_setting(a->dash, setting, sizeof setting)[0] == '\0') {
        app_hint(a, "this is in use; Left and Right choose another %s",
                 dash_wall_axis(a->dash) == MW_WALL_BUDGET ? "budget" : "context");
        return;
    }
    snprintf(line, sizeof line, "/%s", setting);
    app_command(a, line);
    if (a->mode == MODE_SHEET)
        a->wall.asks_at = at;
}

bool app_wall_key(struct app *a, const struct key *key)
{
    if (dash_panels(a->dash)->chosen != PANEL_WALL || key->mods != 0)
        return false;
    if (key->kind == KEYS_NAMED && (key->name == KEYS_LEFT || key->name == KEYS_RIGHT))
        dash_wall_move(a->dash, key->name == KEYS_LEFT ? -1 : 1);
    else if (key->kind == KEYS_NAMED && (key->name == KEYS_HOME || key->name == KEYS_END))
        dash_wall_move(a->dash, key->name == KEYS_HOME ? -MW_WALL_POINTS : MW_WALL_POINTS);
    else if (key->kind == KEYS_CHAR && key->ch == 'c')
        dash_wall_turn(a->dash);
    else if (key->kind == KEYS_CHAR && key->ch == '\r') {
        apply(a);
        return true;
    } else
        return false;
    app_wall_hint(a);
    return true;
}
