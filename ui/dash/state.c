#include "config.h"

#include "ui/dash/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"

#define SECOND_NS    1000000000u
#define LAYERS_NS    ((uint64_t)SECOND_NS)
#define STEADY       1.1 /* times the slowest layer before another one is the slowest */
#define STEADY_SCALE 1.5 /* times the longest bar before bars get longer */

/* ---- histories ---- */

static void past_init(struct past *h, float *value, uint32_t size)
{
    *h = (struct past){ value, size, 0, 0 };
}

static void past_push(struct past *h, float value)
{
    if (h->n < h->size) {
        h->value[(h->first + h->n++) % h->size] = value;
        return;
    }
    h->value[h->first] = value;
    h->first = (h->first + 1) % h->size;
}

/* Add a gap, but not at the start and not two in a row. */
static void past_gap(struct past *h)
{
    if (h->n > 0 && !isnan(past_at(h, h->n - 1)))
        past_push(h, NAN);
}

float past_at(const struct past *h, uint32_t i)
{
    return h->value[(h->first + i) % h->size];
}

float past_max(const struct past *h, uint32_t last)
{
    float max = 0;

    for (uint32_t i = h->n > last ? h->n - last : 0; i < h->n; i++)
        if (past_at(h, i) > max)
            max = past_at(h, i);
    return max;
}

/* ---- the state ---- */

static void begin_anew(struct dash *d)
{
    past_init(&d->tps, d->tps_value, DASH_TOKENS);
    past_init(&d->stall_share, d->stall_value, DASH_TOKENS);
    past_init(&d->read_rate, d->read_value, DASH_SECONDS);
    past_init(&d->model_cached, d->cached_value, DASH_SECONDS);
    past_init(&d->memory, d->memory_value, DASH_SECONDS);
    past_init(&d->piece_rate, d->piece_value, DASH_SECONDS);
    for (int i = 0; i <= MW_MAX_LAYER; i++) {
        past_init(&d->layer[i], d->layer_value[i], DASH_LAYER_PASSES);
        d->layer_passes[i] = 0;
    }
    for (int i = 0; i <= DASH_KV_POINTS; i++)
        d->kv_point[i] = NAN;
    d->kv_capacity = d->n_token = d->token_ns = d->second_ns = d->answer_ns = 0;
    d->group_n = 0;
    d->n_wait = 0;
    d->fastest_read = d->reads_in_flight = d->layers_top_ms = 0;
    d->slowest = -1;
    d->has_sample = false;
}

struct dash *dash_new(enum ui_graph graph, struct err *e)
{
    struct dash *d = calloc(1, sizeof *d);

    if (d == NULL) {
        err_memory(e, "the dashboard");
        return NULL;
    }
    d->graph = graph;
    d->cursor = -1;
    d->panels.n_used = PANELS_SURE;
    panels_reset(&d->panels);
    begin_anew(d);
    return d;
}

void dash_free(struct dash *d)
{
    free(d);
}

void dash_set_cap(struct dash *d, uint32_t n_predict)
{
    d->n_predict = n_predict;
}

void dash_set_keys(struct dash *d, bool has_keys)
{
    d->has_keys = has_keys;
}

/* Returns the stall share of a token. */
static float stall_of(const struct mw_sample *s, const struct mw_token *k)
{
    if (k->wall_ns == 0 || mw_run_is_mapped(&s->run))
        return NAN;
    return (float)k->stall_ns / (float)k->wall_ns;
}

/* Add a token of the same pass as the one before it.  A draft gives several at once, and the
 * time of the pass belongs to all of them.  The first pass of an answer has no interval. */
static void push_same_pass(struct dash *d, const struct mw_sample *s, const struct mw_token *k)
{
    float rate;

    if (d->group_n == 0)
        return;
    d->group_n++;
    rate = (float)(1e9 * d->group_n / (double)d->group_ns);
    past_push(&d->tps, rate);
    for (uint32_t i = 1; i < d->group_n && i < d->tps.n; i++)
        d->tps.value[(d->tps.first + d->tps.n - 1 - i) % d->tps.size] = rate;
    past_push(&d->stall_share, stall_of(s, k));
}

/* Add all tokens since the last sample. */
static void push_tokens(struct dash *d, const struct mw_sample *s)
{
    uint64_t i = d->n_token;

    if (s->n_token > i + MW_RECENT) {
        past_gap(&d->tps);
        past_gap(&d->stall_share);
        i = s->n_token - MW_RECENT;
        d->token_ns = d->group_n = 0;
    }
    for (; i < s->n_token; i++) {
        const struct mw_token *k = &s->recent[i % MW_RECENT];

        if (k->n > 1 && d->token_ns != 0 && mw_token_is_draft(k)) {
            push_same_pass(d, s, k);
        } else if (k->n <= 1 || d->token_ns == 0 || k->t_ns <= d->token_ns) {
            d->group_n = 0;
            /* The first token of an answer has no interval. */
            if (k->n <= 1)
                past_gap(&d->tps), past_gap(&d->stall_share);
        } else {
            d->group_n = 1;
            d->group_ns = k->t_ns - d->token_ns;
            past_push(&d->tps, (float)(1e9 / (double)d->group_ns));
            past_push(&d->stall_share, stall_of(s, k));
        }
        d->token_ns = k->t_ns;
    }
    d->n_token = s->n_token;
}

struct mw_os_value dash_memory(const struct mw_sample *s)
{
    return mw_memory(s, NULL);
}

static float or_gap(struct mw_os_value v)
{
    return v.why_not == NULL ? (float)v.value : NAN;
}

static void push_second(struct dash *d, const struct mw_sample *s)
{
    uint64_t ns = s->t_ns - d->second_ns;

    if (d->second_ns != 0 && ns < SECOND_NS)
        return;
    if (d->second_ns != 0 && s->io.bytes_read >= d->second_read)
        past_push(&d->read_rate,
                  (float)((double)(s->io.bytes_read - d->second_read) * 1e9 / (double)ns));
    past_push(&d->model_cached, s->os.t_ns != 0 ? or_gap(s->os.model_cached) : NAN);
    past_push(&d->memory, or_gap(dash_memory(s)));
    d->second_ns = s->t_ns;
    d->second_read = s->io.bytes_read;
}

static void push_kv(struct dash *d, const struct mw_sample *s)
{
    uint64_t point;

    if (s->kv.capacity == 0)
        return;
    if (s->kv.capacity != d->kv_capacity) {
        for (int i = 0; i <= DASH_KV_POINTS; i++)
            d->kv_point[i] = NAN;
        d->kv_capacity = s->kv.capacity;
    }
    point = s->kv.tokens * DASH_KV_POINTS / s->kv.capacity;
    if (point <= DASH_KV_POINTS)
        d->kv_point[point] = (float)kv_bytes(s->mem.used);
    for (uint64_t i = point + 1; i <= DASH_KV_POINTS; i++)
        d->kv_point[i] = NAN; /* rewound: these positions no longer exist */
}

/* Averaged, so that the derived figures do not change with each pass. */
static void push_reads(struct dash *d, const struct mw_sample *s)
{
    double sum = 0, now;

    for (uint32_t i = 0; i <= s->n_layer && s->n_layer > 0; i++)
        sum += (double)s->layer[i].read_ns;
    if (sum <= 0 || s->pass.wall_ns == 0 ||
        (d->reads_in_flight > 0 && s->pass.wall_ns == d->now.pass.wall_ns))
        return;
    now = sum / (double)s->pass.wall_ns;
    now = now < 1 ? 1 : now;
    d->reads_in_flight += (now - d->reads_in_flight) / (d->reads_in_flight > 0 ? 8 : 1);
}

/* ---- layers ---- */

double layer_ms(const struct mw_sample_layer *l)
{
    return (double)(l->stall_ns + l->compute_ns) / 1e6;
}

double layer_longest_ms(const struct mw_sample_layer *l)
{
    return fmax(layer_ms(l), (double)l->read_ns / 1e6);
}

/* Each layer has its own moment in the period, so that fast tokens do not change all rows in
 * the same frame. */
static bool is_due(const struct mw_sample *s, uint32_t layer, uint64_t since_ns)
{
    uint64_t offset = layer * LAYERS_NS / (s->n_layer + 1);

    return (s->t_ns + offset) / LAYERS_NS != (since_ns + offset) / LAYERS_NS;
}

/* Returns the times of a layer as they are shown: several reads are in flight, so the sum of
 * their times is longer than the time that passed. */
static struct mw_sample_layer elapsed(const struct dash *d, const struct mw_sample_layer *l)
{
    struct mw_sample_layer e = *l;

    e.read_ns =
        d->reads_in_flight > 0 ? numbers_whole((double)l->read_ns / d->reads_in_flight) : 0;
    return e;
}

/* Would anybody see the difference?  A sixteenth is less than a cell of most bars. */
static bool differs(const struct mw_sample_layer *a, const struct mw_sample_layer *b)
{
    double little = layer_longest_ms(a) / 16;

    return a->passes == 0 || a->pinned_bytes != b->pinned_bytes ||
           fabs(layer_ms(a) - layer_ms(b)) > little ||
           fabs((double)a->stall_ns - (double)b->stall_ns) / 1e6 > little ||
           fabs((double)a->read_ns - (double)b->read_ns) / 1e6 > little;
}

/*
 * A row changes when its layer was evaluated again, at most once per second, and if its times
 * differ from those shown: on a screen of 160x50 all rows take 1 KB.
 */
static void push_layers(struct dash *d, const struct mw_sample *s)
{
    for (uint32_t i = 0; i <= s->n_layer && s->n_layer > 0; i++) {
        struct mw_sample_layer *shown = &d->layer_last[i], now = elapsed(d, &s->layer[i]);
        bool is_done = now.passes != d->layer_passes[i];

        if (is_done)
            past_push(&d->layer[i], (float)layer_ms(&now));
        if (!d->has_sample ||
            (is_done && (shown->passes == 0 || shown->pinned_bytes != now.pinned_bytes ||
                         is_due(s, i, d->layer_ns[i])))) {
            if (!d->has_sample || differs(shown, &now))
                *shown = now;
            d->layer_ns[i] = s->t_ns;
        }
        d->layer_passes[i] = now.passes;
    }
}

static void push_waits(struct dash *d, const struct mw_sample *s)
{
    if (d->has_sample && s->n_token > d->wait_token) {
        for (uint32_t i = 0; i <= s->n_layer && s->n_layer > 0; i++)
            d->wait_value[i][d->n_wait % DASH_LAYER_PASSES] =
                (float)s->layer[i].stall_ns / 1e6F;
        d->n_wait++;
    }
    d->wait_token = s->n_token;
}

/* Show the times of complete passes. */
static void hold_layers(struct dash *d)
{
    for (uint32_t i = 0; i <= d->now.n_layer && d->now.n_layer > 0; i++) {
        d->now.layer[i].read_ns = d->layer_last[i].read_ns;
        d->now.layer[i].stall_ns = d->layer_last[i].stall_ns;
        d->now.layer[i].compute_ns = d->layer_last[i].compute_ns;
    }
}

/* Choose the slowest layer, and the scale of bars.  Both change only if it matters: if they
 * followed each pass, all bars would move although no layer changed. */
static void compare_layers(struct dash *d)
{
    const struct mw_sample *s = &d->now;
    double top = 0;
    int slowest = -1;

    for (uint32_t i = 0; i < s->n_layer; i++) {
        if (s->layer[i].passes == 0)
            continue;
        top = fmax(top, layer_longest_ms(&s->layer[i]));
        if (slowest < 0 || layer_ms(&s->layer[i]) > layer_ms(&s->layer[slowest]))
            slowest = (int)i;
    }
    if (d->slowest < 0 || slowest < 0 ||
        layer_ms(&s->layer[slowest]) > STEADY * layer_ms(&s->layer[d->slowest]))
        d->slowest = slowest;
    if (top > d->layers_top_ms || top < d->layers_top_ms / STEADY_SCALE)
        d->layers_top_ms = top;
}

void dash_push(struct dash *d, const struct mw_sample *s)
{
    if (d->has_sample &&
        (s->t_ns < d->now.t_ns || s->n_token < d->n_token || s->n_layer != d->now.n_layer))
        begin_anew(d);
    if (s->t_start_ns != d->answer_ns) {
        d->answer_ns = s->t_start_ns;
        d->answer_majflt = s->os.majflt.value;
        d->answer_refaults = s->os.refaults.value;
    }
    if (!d->has_sample)
        d->n_token = s->n_token > MW_RECENT ? s->n_token - MW_RECENT : 0;
    push_tokens(d, s);
    push_second(d, s);
    push_kv(d, s);
    push_reads(d, s);
    push_layers(d, s);
    push_waits(d, s);
    if (d->now.disk_limit != s->disk_limit)
        d->fastest_read = 0; /* of another disk */
    d->now = *s;
    d->panels.n_used = s->experts.all > 0 ? PANELS : PANELS_SURE;
    if (d->panels.chosen >= d->panels.n_used) /* a panel that the new model lacks */
        panels_choose(&d->panels, 1);
    hold_layers(d);
    compare_layers(d);
    d->has_sample = true;
    mw_rates(s, &d->rates);
    if (d->rates.read_bytes_s > d->fastest_read)
        d->fastest_read = d->rates.read_bytes_s;
    if (d->cursor > (int)s->n_layer)
        d->cursor = -1;
}

/* ---- a server ---- */

/* Add the rate of pieces in the last second, if an answer is being made. */
static void push_pieces(struct dash *d, const struct mw_server_figures *f)
{
    uint64_t now = clock_ns(), ns = now - d->piece_ns;
    bool is_same = f->n_piece >= d->piece_n;

    if (d->piece_ns != 0 && ns < SECOND_NS)
        return;
    if (d->piece_ns != 0 && is_same && f->n_piece > d->piece_n)
        past_push(&d->piece_rate, (float)((double)(f->n_piece - d->piece_n) * 1e9 / (double)ns));
    else
        past_gap(&d->piece_rate);
    d->piece_ns = now;
    d->piece_n = f->n_piece;
}

void dash_set_server(struct dash *d, const struct mw_server_figures *f,
                     const struct mw_model_info *m)
{
    d->has_server = f != NULL;
    if (f == NULL)
        return;
    d->server = *f;
    d->server_model = *m;
    push_pieces(d, f);
}

bool dash_has_server(const struct dash *d)
{
    return d->has_server;
}

/* ---- cursor ---- */

void dash_move_cursor(struct dash *d, int by)
{
    int n = (int)d->now.n_layer + 1;

    if (d->now.n_layer == 0)
        return;
    if (d->cursor < 0)
        d->cursor = by > 0 ? 0 : n - 1;
    else
        d->cursor = ((d->cursor + by) % n + n) % n;
}

void dash_set_cursor(struct dash *d, int layer)
{
    d->cursor = layer >= 0 && layer <= (int)d->now.n_layer ? layer : -1;
}

int dash_cursor(const struct dash *d)
{
    return d->cursor;
}

/* ---- shared by several widgets ---- */

struct panels *dash_panels(struct dash *d)
{
    return &d->panels;
}

int dash_slowest(const struct dash *d)
{
    return d->slowest;
}

void dash_total(const struct dash *d, struct dash_total *out)
{
    const struct mw_os *os = &d->now.os;

    out->used = 0;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        out->used += d->now.mem.used[i];
    out->model = out->exempt = 0;
    if (os->t_ns != 0 && os->model_charged.why_not == NULL)
        *(mw_run_is_mapped(&d->now.run) ? &out->exempt : &out->model) = os->model_charged.value;
    out->used += out->model;
    out->bytes = mw_memory(&d->now, &out->is_charge);
    out->other = out->bytes.why_not == NULL && out->bytes.value > out->used
                     ? out->bytes.value - out->used
                     : 0;
}
