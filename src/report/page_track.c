/* See page_track.h. */
#include "config.h"

#include "src/report/page_track.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_write.h"
#include "src/report/page_facts.h"
#include "src/report/page_html.h"
#include "ui/chart/chart.h"

#define MAX_MOMENTS 20000
#define MAX_TOKENS  100000

#define CHART_WIDTH  560
#define CHART_HEIGHT 340

/* --- reading --- */

/* Make room for one more of size bytes in *array. */
static bool grow(void *array, size_t n, size_t *room, size_t size)
{
    void **items = array, *more;

    if (n < *room)
        return true;
    more = realloc(*items, (*room * 2 + 64) * size);
    if (more == NULL)
        return false;
    *items = more;
    *room = *room * 2 + 64;
    return true;
}

static double value_of(const struct mw_os_value *v)
{
    return v->why_not == NULL ? (double)v->value : (double)NAN;
}

struct reading {
    struct track *t;
    uint64_t start_ns, last_ns, last_bytes, last_token;
    uint64_t last_os_ns;
    double last_token_s;
    uint64_t last_n; /* number of the last token in its answer */
    bool failed;     /* out of memory */
};

static double seconds_since(const struct reading *r, uint64_t t_ns)
{
    return t_ns >= r->start_ns ? (double)(t_ns - r->start_ns) / 1e9 : 0;
}

static void take_tokens(struct reading *r, const struct mw_sample *s)
{
    struct track *t = r->t;
    uint64_t from = s->n_token > MW_RECENT ? s->n_token - MW_RECENT : 0;

    if (r->last_token > s->n_token)
        r->last_token = 0; /* another engine wrote on */
    for (uint64_t i = r->last_token > from ? r->last_token : from;
         i < s->n_token && t->n_token < MAX_TOKENS; i++) {
        const struct mw_token *token = &s->recent[i % MW_RECENT];
        double at = seconds_since(r, token->t_ns);
        bool follows = token->n == r->last_n + 1 && token->n > 1 && at > r->last_token_s;

        if (!grow(&t->token, t->n_token, &t->room_token, sizeof *t->token)) {
            r->failed = true;
            return;
        }
        t->token[t->n_token++] = (struct track_token){
            .t_s = at,
            .wall_s = (double)token->wall_ns / 1e9,
            .stall_s = mw_run_is_mapped(&s->run) ? (double)NAN : (double)token->stall_ns / 1e9,
            .bytes = (double)token->bytes_pass,
            .tps = follows ? 1 / (at - r->last_token_s) : (double)NAN,
        };
        r->last_token_s = at;
        r->last_n = token->n;
    }
    r->last_token = s->n_token;
}

static void take_moment(struct reading *r, const struct mw_sample *s)
{
    struct track *t = r->t;
    struct track_moment m = { .t_s = seconds_since(r, s->t_ns), .read_bytes_s = (double)NAN };
    bool is_charge;
    struct mw_os_value memory = mw_memory(s, &is_charge);
    double charged = value_of(&s->os.charged), own = value_of(&s->os.own);

    if (s->os.t_ns == 0 || s->os.t_ns == r->last_os_ns || t->n_moment >= MAX_MOMENTS)
        return;
    if (!grow(&t->moment, t->n_moment, &t->room_moment, sizeof *t->moment)) {
        r->failed = true;
        return;
    }
    /* Resident pages of the files are not the program's memory. */
    if (t->n_moment == 0)
        t->is_charged = is_charge;
    if (mw_run_is_mapped(&s->run))
        m.memory = value_of(&memory);
    else
        m.memory = t->is_charged ? charged : isfinite(own) ? own : value_of(&s->os.rss);
    m.cached = value_of(&s->os.model_cached);
    m.n_token = s->n_token;
    if (r->last_os_ns != 0 && s->t_ns > r->last_ns && s->io.bytes_read >= r->last_bytes)
        m.read_bytes_s =
            (double)(s->io.bytes_read - r->last_bytes) * 1e9 / (double)(s->t_ns - r->last_ns);
    if (m.memory > (double)t->peak)
        t->peak = (uint64_t)m.memory;
    t->moment[t->n_moment++] = m;
    r->last_os_ns = s->os.t_ns;
    r->last_ns = s->t_ns;
    r->last_bytes = s->io.bytes_read;
}

static int read_all(struct track *t, const char *path, struct err *e)
{
    struct reading r = { .t = t };
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_replay *replay = NULL;
    struct err broken = ERR_INIT;
    int rc;

    if (s == NULL)
        return err_memory(e, "a recording");
    rc = mw_replay_open(&replay, path, e);
    while (rc == 0 && !r.failed) {
        int next = mw_replay_next(replay, s, &broken);

        if (next <= 0) {
            if (next < 0)
                snprintf(t->broken, sizeof t->broken, "%s: %s", broken.field, broken.what);
            break;
        }
        if (r.start_ns == 0)
            r.start_ns = s->t_ns;
        t->run = s->run;
        t->disk_limit = s->disk_limit;
        take_tokens(&r, s);
        take_moment(&r, s);
    }
    if (rc == 0 && r.failed)
        rc = err_memory(e, "a recording");
    mw_replay_close(replay);
    free(s);
    return rc;
}

int track_read(struct track **out, const char *path, struct err *e)
{
    struct track *t = calloc(1, sizeof *t);

    *out = NULL;
    if (t == NULL)
        return err_memory(e, "a recording");
    if (read_all(t, path, e) != 0) {
        track_free(t);
        return -1;
    }
    page_facts_hide(t->run.io_reason);
    page_facts_hide(t->run.model);
    *out = t;
    return 0;
}

void track_free(struct track *t)
{
    if (t == NULL)
        return;
    free(t->moment);
    free(t->token);
    free(t);
}

/* --- figures --- */

double track_mean_tps(const struct track *t)
{
    double seconds = 0;
    size_t n = 0;

    for (size_t i = 0; i < t->n_token; i++)
        if (isfinite(t->token[i].tps)) {
            seconds += 1 / t->token[i].tps;
            n++;
        }
    return n > 0 ? (double)n / seconds : 0;
}

double track_stall_share(const struct track *t)
{
    double wall = 0, stall = 0;

    for (size_t i = 0; i < t->n_token; i++) {
        wall += t->token[i].wall_s;
        stall += t->token[i].stall_s;
    }
    return wall > 0 ? stall / wall : 0;
}

/* --- charts --- */

static void figure(const struct chart *c, FILE *to)
{
    fputs("<figure>", to);
    chart_svg(c, CHART_WIDTH, CHART_HEIGHT, to);
    fputs("</figure>\n", to);
}

static const struct chart_axis time_axis = { .label = "time", .unit = CHART_SECONDS };

static bool has_any(const struct chart_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(p[i].y))
            return true;
    return false;
}

static void memory_chart(const struct track *t, struct chart_point *p, FILE *to)
{
    struct chart_point *cached = p + t->n_moment;
    struct chart_series s[] = {
        { t->is_charged ? "charged to the group" : "memory of memwall", CHART_MEASURED, p,
          t->n_moment, false },
        { "model in the page cache", CHART_AGAINST, cached, t->n_moment, false },
    };
    const struct chart_mark budget = { (double)t->run.budget_bytes, "budget", true };
    const struct chart c = {
        .id = "memory-time",
        .title = "Memory over time",
        .x = time_axis,
        .y = { .label = "memory", .unit = CHART_BYTES, .from_zero = true },
        .series = s,
        .n_series = 2,
        .mark = &budget,
        .n_mark = t->run.budget_bytes > 0,
    };

    for (size_t i = 0; i < t->n_moment; i++) {
        const struct track_moment *m = &t->moment[i];

        p[i] = (struct chart_point){ m->t_s, m->memory, (double)NAN, (double)NAN };
        cached[i] = (struct chart_point){ m->t_s, m->cached, (double)NAN, (double)NAN };
    }
    figure(&c, to);
}

static void speed_chart(const struct track *t, struct chart_point *p, FILE *to)
{
    const struct chart_series s = { "tokens of answers", CHART_MEASURED, p, t->n_token, false };
    const struct chart_mark predicted = { t->run.predicted_decode, "predicted", true };
    const struct chart c = {
        .id = "speed-time",
        .title = "Speed of each token",
        .x = time_axis,
        .y = { .symbol = "tok/s", .unit = CHART_NUMBER, .from_zero = true },
        .series = &s,
        .n_series = 1,
        .mark = &predicted,
        .n_mark = t->run.predicted_decode > 0,
    };

    for (size_t i = 0; i < t->n_token; i++)
        p[i] =
            (struct chart_point){ t->token[i].t_s, t->token[i].tps, (double)NAN, (double)NAN };
    if (has_any(p, t->n_token))
        figure(&c, to);
}

static void disk_chart(const struct track *t, struct chart_point *p, FILE *to)
{
    const struct chart_series s = { "read", CHART_MEASURED, p, t->n_moment, false };
    const struct chart_mark limit = { (double)t->disk_limit / 1e9, "measured limit", true };
    const struct chart c = {
        .id = "disk-time",
        .title = "Reads from disk",
        .x = time_axis,
        .y = { .symbol = "GB/s", .unit = CHART_NUMBER, .from_zero = true },
        .series = &s,
        .n_series = 1,
        .mark = &limit,
        .n_mark = t->disk_limit > 0,
    };
    bool any = false;

    for (size_t i = 0; i < t->n_moment; i++) {
        double rate = t->moment[i].read_bytes_s;

        p[i] = (struct chart_point){ t->moment[i].t_s, rate / 1e9, (double)NAN, (double)NAN };
        any |= rate > 0;
    }
    if (any)
        figure(&c, to);
}

void track_html(const struct track *t, FILE *to)
{
    size_t n = t->n_token > 2 * t->n_moment ? t->n_token : 2 * t->n_moment;
    struct chart_point *p = calloc(n + 1, sizeof *p);

    if (p == NULL)
        return;
    fputs("<div class=\"charts\">\n", to);
    if (t->n_moment > 0)
        memory_chart(t, p, to);
    speed_chart(t, p, to);
    disk_chart(t, p, to);
    fputs("</div>\n", to);
    free(p);
}

void track_json(const struct track *t, FILE *to)
{
    struct json j;

    json_start_stream(&j, to);
    json_object(&j, NULL);
    json_string(&j, "model", t->run.model);
    json_string(&j, "type", t->run.type);
    json_string(&j, "io", t->run.io);
    json_u64(&j, "budget_bytes", t->run.budget_bytes);
    json_double(&j, "predicted_decode_tps", t->run.predicted_decode, 6);
    json_string(&j, "memory_is", t->is_charged ? "charged" : "own");
    json_array(&j, "seconds");
    for (size_t i = 0; i < t->n_moment; i++) {
        json_object(&j, NULL);
        json_double(&j, "t_s", t->moment[i].t_s, 3);
        json_double(&j, "memory_bytes", t->moment[i].memory, 0);
        json_double(&j, "model_cached_bytes", t->moment[i].cached, 0);
        json_double(&j, "read_bytes_s", t->moment[i].read_bytes_s, 0);
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "tokens");
    for (size_t i = 0; i < t->n_token; i++) {
        json_object(&j, NULL);
        json_double(&j, "t_s", t->token[i].t_s, 3);
        json_double(&j, "wall_s", t->token[i].wall_s, 6);
        json_double(&j, "stall_s", t->token[i].stall_s, 6);
        json_double(&j, "read_bytes", t->token[i].bytes, 0);
        json_end(&j);
    }
    json_end(&j);
    if (t->broken[0] != '\0')
        json_string(&j, "broken", t->broken);
    json_end(&j);
    json_line(&j);
}
