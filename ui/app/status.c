#include "config.h"

#include "ui/app/status.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "ui/dash/state.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"
#include "ui/words/server.h"

/* Returns the memory that the kernel counts, as in the dashboard, or that of the plan's items
 * until it has been read. */
static uint64_t held(const struct mw_sample *s)
{
    struct mw_os_value measured = dash_memory(s);
    uint64_t sum = 0;

    if (measured.why_not == NULL)
        return measured.value;
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        sum += s->mem.used[i];
    return sum;
}

/* Returns the rate of the newest tokens, as in the border of the dashboard, or of the tokens that a
 * server counts while it answers; that of the answer where they are not known; 0 if none was made with this plan. */
double status_rate(const struct talk *t, const struct mw_sample *s)
{
    const struct plan *p = talk_plan(t);
    bool is_old = s->run.budget_bytes != p->budget_bytes || s->run.ctx != p->n_ctx;
    struct mw_server_figures server;
    struct mw_rates rates;
    const char *unit;

    mw_rates(s, &rates);
    if (rates.decode_last > 0 && (talk_is_answering(t) || !is_old))
        return rates.decode_last;
    if (talk_is_answering(t) && talk_server(t, &server) && server.has_usage &&
        server_rate(&server, &unit) > 0)
        return server_rate(&server, &unit);
    return talk_measured(t);
}

/* ---- the parts ---- */

/* From left to right. */
enum part {
    PART_STATE,
    PART_MODEL,
    PART_MEMORY,
    PART_KV,
    PART_CONTEXT,
    PART_SPEED,
    PART_BINDS,
    PART_DISK,
    PARTS,
};

#define WORDINGS 3 /* of a part, the longest first; an empty one is left out */

struct bar {
    char text[PARTS][WORDINGS][112];
    int wording[PARTS]; /* that is shown */
    char name[128];     /* of the model, not cut */
    const char *type;
    bool is_dense;      /* blanks between parts instead of lines */
};

/* All parts are shown in full, and then give way in this order until they fit. */
static const struct {
    enum part part; /* PARTS: the lines between them */
    int wording;
} gives_way[] = {
    { PARTS, 0 },        { PART_STATE, 1 },  { PART_CONTEXT, 1 }, { PART_MODEL, 1 },
    { PART_MEMORY, 1 },  { PART_KV, 2 },     { PART_BINDS, 1 },   { PART_DISK, 1 },
    { PART_CONTEXT, 2 }, { PART_MEMORY, 2 }, { PART_MODEL, 2 },   { PART_SPEED, 2 },
    { PART_STATE, 2 },
};
/* The last resort, on screens below MODEL_COLUMNS only. */
static const enum part drops[] = { PART_MODEL, PART_DISK, PART_MEMORY, PART_BINDS };

#define NAME_COLUMNS  20 /* of the name of the model where space may be short */
#define MODEL_COLUMNS 80 /* from this width on, the name of the model is always shown */

static void state_text(struct bar *b, const struct talk *t, const struct mw_sample *s)
{
    static const char *const words[][2] = {
        [TALK_LOADING] = { "loading", "loading" },
        [TALK_SWITCHING] = { "loading", "loading" },
        [TALK_FAILED] = { "not loaded", "not loaded" },
        [TALK_READY] = { "ready", "ready" },
        [TALK_PREFILL] = { "reading prompt", "prompt" },
        [TALK_ANSWERING] = { "answering", "answer" },
        [TALK_STOPPING] = { "stopping", "stopping" },
    };
    enum talk_state state = talk_state(t);
    char word[24], shorter[24];
    struct mw_rates rates;

    mw_rates(s, &rates);
    snprintf(word, sizeof word, "%s", words[state][0]);
    snprintf(shorter, sizeof shorter, "%s", words[state][1]);
    if (state == TALK_PREFILL && talk_has_server(t)) { /* it may be in the server's queue */
        snprintf(word, sizeof word, "waiting");
        snprintf(shorter, sizeof shorter, "waiting");
    }
    if (state == TALK_READY && rates.loading >= 0) {
        unsigned percent = (unsigned)(s->mem.ahead_done_bytes * 100 / s->mem.ahead_bytes);

        snprintf(word, sizeof word, "loading %u %%", percent);
        snprintf(shorter, sizeof shorter, "load %u%%", percent);
    }
    snprintf(b->text[PART_STATE][0], sizeof b->text[0][0], "%-14s", word);
    snprintf(b->text[PART_STATE][1], sizeof b->text[0][0], "%s", word);
    snprintf(b->text[PART_STATE][2], sizeof b->text[0][0], "%s", shorter);
}

char *status_state(const struct talk *t, const struct mw_sample *s, char *buf, size_t n)
{
    struct bar b = { 0 };

    state_text(&b, t, s);
    snprintf(buf, n, "%s", b.text[PART_STATE][1]);
    return buf;
}

/* Cut a name after columns, and mark the cut: another model may have the same beginning. */
static void cut_name(char *buf, size_t n, const char *name, int columns)
{
    bool fits = cluster_width(name, strlen(name)) <= columns;

    snprintf(buf, n, "%.*s%s", (int)cluster_fit(name, strlen(name), fits ? columns : columns - 2),
             name, fits ? "" : "..");
}

static void model_text(struct bar *b, const struct talk *t)
{
    const struct mw_model_info *info = talk_info(t);
    const char *opening = talk_opening_path(t);
    const char *path = opening != NULL ? opening : talk_model_path(t);
    const char *base = strrchr(path, '/');
    char *name = b->name;

    if (opening == NULL && info->name[0] != '\0')
        clean_line(name, sizeof b->name, info->name, strlen(info->name));
    else
        clean_line(name, sizeof b->name, base == NULL ? path : base + 1,
                   strlen(base == NULL ? path : base + 1));
    cut_name(b->text[PART_MODEL][1], sizeof b->text[0][0], name, NAME_COLUMNS);
    cut_name(b->text[PART_MODEL][2], sizeof b->text[0][0], name, 10);
    if (opening != NULL)
        cut_name(b->text[PART_MODEL][0], sizeof b->text[0][0], name, 50);
    else
        snprintf(b->text[PART_MODEL][0], sizeof b->text[0][0], "%.50s%s%s",
                 b->text[PART_MODEL][1], info->type[0] != '\0' ? " " : "", info->type);
    b->type = opening != NULL ? NULL : info->type;
}

static void memory_text(struct bar *b, const struct talk *t, const struct mw_sample *s)
{
    char have[16], all[16];
    uint64_t used = held(s);

    if (!talk_has_plan(t))
        return;
    units_size(have, sizeof have, used);
    units_size(all, sizeof all, s->run.budget_bytes); /* of the moment of `used` */
    snprintf(b->text[PART_MEMORY][0], sizeof b->text[0][0], "%s of %s", have, all);
    snprintf(b->text[PART_MEMORY][1], sizeof b->text[0][0], "%s/%s", have, all);
    snprintf(b->text[PART_MEMORY][2], sizeof b->text[0][0], "%s/%s",
             units_size_like(have, sizeof have, used, all), all);
}

static void kv_text(struct bar *b, const struct mw_sample *s)
{
    const char *k = s->run.kv_k, *v = s->run.kv_v;
    char *text = b->text[PART_KV][0];

    if (k[0] != '\0' && strcmp(k, v) == 0)
        snprintf(text, sizeof b->text[0][0], "kv %s", k);
    else if (k[0] != '\0')
        snprintf(text, sizeof b->text[0][0], "kv %s/%s", k, v);
    memcpy(b->text[PART_KV][1], text, sizeof b->text[0][0]);
}

/* Exact counts: rounded ones cannot be subtracted. */
static void context_text(struct bar *b, const struct talk *t, const struct mw_sample *s)
{
    uint64_t all = s->kv.capacity != 0 ? s->kv.capacity : talk_plan(t)->n_ctx;
    uint64_t tokens = s->kv.context;
    char used[24], left[24], of[24];

    numbers_count(used, sizeof used, tokens);
    if (all == 0) { /* a server may report neither */
        for (int i = 0; i < WORDINGS && tokens > 0; i++)
            snprintf(b->text[PART_CONTEXT][i], sizeof b->text[0][0], "%s %s",
                     i == 0 ? "context" : "ctx", used);
        return;
    }
    if (tokens == 0 && talk_has_server(t)) { /* it has not counted them */
        numbers_count(of, sizeof of, all);
        for (int i = 0; i < WORDINGS; i++)
            snprintf(b->text[PART_CONTEXT][i], sizeof b->text[0][0], "%s %s",
                     i == 0 ? "context" : "ctx", of);
        return;
    }
    if (tokens > all) /* the next message drops turns */
        tokens = all;
    numbers_count(used, sizeof used, tokens);
    numbers_count(left, sizeof left, all - tokens);
    numbers_count(of, sizeof of, all);
    snprintf(b->text[PART_CONTEXT][0], sizeof b->text[0][0], "context %s of %s, %s left", used,
             of, left);
    snprintf(b->text[PART_CONTEXT][1], sizeof b->text[0][0], "ctx %s, %s left", used, left);
    snprintf(b->text[PART_CONTEXT][2], sizeof b->text[0][0], "ctx %llu/%llu",
             (unsigned long long)tokens, (unsigned long long)all);
}

static void speed_text(struct bar *b, const struct talk *t, const struct mw_sample *s)
{
    double measured = status_rate(t, s);
    double tps = measured > 0 ? measured : s->run.predicted_decode;
    const char *mark = measured > 0 || !(tps > 0) ? "" : "~";
    const char *next =
        mark[0] != '\0' ? "next " : ""; /* the last rate is still on the screen */
    char rate[24] = "-";

    if (measured > 0)
        numbers_measured(rate, sizeof rate, tps);
    else if (tps > 0)
        numbers_rough(rate, sizeof rate, tps);
    snprintf(b->text[PART_SPEED][0], sizeof b->text[0][0], "%s%s%s tok/s", next, mark, rate);
    memcpy(b->text[PART_SPEED][1], b->text[PART_SPEED][0], sizeof b->text[0][0]);
    snprintf(b->text[PART_SPEED][2], sizeof b->text[0][0], "%s%s%st/s", next, mark, rate);
}

static void binds_text(struct bar *b, const struct mw_sample *s)
{
    struct mw_diagnosis d;
    const char *mark;

    mw_diagnosis_of_sample(s, &d);
    if (d.binds == MW_BINDS_NONE)
        return;
    mark = d.is_measured ? "" : "~";
    snprintf(b->text[PART_BINDS][0], sizeof b->text[0][0], "%s%s", mark,
             mw_diagnosis_label(&d));
    snprintf(b->text[PART_BINDS][1], sizeof b->text[0][0], "%s%s", mark, mw_diagnosis_word(&d));
    if (d.is_measured && !mw_diagnosis_needs_nothing(&d))
        snprintf(b->text[PART_BINDS][0], sizeof b->text[0][0], "%s %.0f%%",
                 mw_binds_label(d.binds), d.share * 100);
    memcpy(b->text[PART_BINDS][2], b->text[PART_BINDS][1], sizeof b->text[0][0]);
}

static void disk_text(struct bar *b, const struct talk *t)
{
    uint64_t limit = talk_options(t)->engine.disk_rate;
    char rate[24];

    if (limit == 0)
        return;
    units_rate(rate, sizeof rate, (double)limit);
    snprintf(b->text[PART_DISK][0], sizeof b->text[0][0], "disk limited to %s", rate);
    snprintf(b->text[PART_DISK][1], sizeof b->text[0][0], "disk<=%s", rate);
    memcpy(b->text[PART_DISK][2], b->text[PART_DISK][1], sizeof b->text[0][0]);
}

/* ---- the bar ---- */

static const char *part_text(const struct bar *b, int part)
{
    return b->wording[part] < WORDINGS ? b->text[part][b->wording[part]] : "";
}

static const char *separator(const struct bar *b)
{
    return b->is_dense ? "  " : "  |  ";
}

static int bar_width(const struct bar *b)
{
    int width = 0;

    for (int i = 0; i < PARTS; i++) {
        const char *text = part_text(b, i);

        if (text[0] != '\0')
            width +=
                (width > 0 ? (int)strlen(separator(b)) : 0) + cluster_width(text, strlen(text));
    }
    return width;
}

/* Choose the wordings that fit into width columns. */
static void fit(struct bar *b, int width, bool keeps_model)
{
    for (size_t i = 0; i < sizeof gives_way / sizeof gives_way[0]; i++) {
        if (bar_width(b) <= width)
            return;
        if (gives_way[i].part == PARTS)
            b->is_dense = true;
        else
            b->wording[gives_way[i].part] = gives_way[i].wording;
    }
    for (size_t i = 0; i < sizeof drops / sizeof drops[0] && bar_width(b) > width; i++)
        if (drops[i] != PART_MODEL || !keeps_model)
            b->wording[drops[i]] = WORDINGS;
}

/* Use columns that are left for longer wordings, the most useful parts first. */
static void grow(struct bar *b, int width)
{
    static const enum part first[] = { PART_SPEED,  PART_BINDS, PART_CONTEXT, PART_MODEL,
                                       PART_MEMORY, PART_KV,    PART_STATE,   PART_DISK };

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        int *wording = &b->wording[first[i]];

        while (*wording > 0) {
            --*wording;
            if (bar_width(b) > width) {
                ++*wording;
                break;
            }
        }
    }
}

/* Another model may have the same beginning of its name: show the whole name where it fits. */
static void grow_name(struct bar *b, int width)
{
    char *text = b->text[PART_MODEL][0], cut[sizeof b->text[0][0]];

    if (b->wording[PART_MODEL] != 0 || b->type == NULL ||
        cluster_width(b->name, strlen(b->name)) <= NAME_COLUMNS ||
        strlen(b->name) > 90 || strlen(b->type) > 16)
        return;
    memcpy(cut, text, sizeof cut);
    snprintf(text, sizeof cut, "%.90s%s%.16s", b->name, b->type[0] != '\0' ? " " : "", b->type);
    if (bar_width(b) > width)
        memcpy(text, cut, sizeof cut);
}

static void draw_bar(const struct canvas *c, const struct bar *b, int x, int end)
{
    bool is_first = true;

    for (int i = 0; i < PARTS && x < end; i++) {
        const char *text = part_text(b, i);
        enum ui_role role =
            i == PART_SPEED || i == PART_BINDS ? ROLE_STATUS_STRONG : ROLE_STATUS;

        if (text[0] == '\0')
            continue;
        if (!is_first)
            x += canvas_put(c, 0, x, end - x, style_of(ROLE_STATUS), separator(b),
                            strlen(separator(b)));
        is_first = false;
        x += canvas_put(c, 0, x, end - x, style_of(role), text, strlen(text));
    }
}

void status_draw(const struct canvas *c, const struct talk *t, const struct mw_sample *s,
                 const char *mode)
{
    struct bar b = { 0 };
    char pending[200];
    const char *right = talk_pending(t, pending, sizeof pending)[0] != '\0' ? pending : mode;
    int right_width = right[0] == '\0' ? 0 : cluster_width(right, strlen(right)) + 3;
    int margin = c->width > 44 ? 1 : 0, width = c->width - 2 * margin, rest;
    bool keeps_model = c->width >= MODEL_COLUMNS;

    state_text(&b, t, s);
    model_text(&b, t);
    if (talk_opening_path(t) == NULL) { /* else the figures would be those of the old model */
        memory_text(&b, t, s);
        kv_text(&b, s);
        context_text(&b, t, s);
        speed_text(&b, t, s);
        binds_text(&b, s);
    }
    disk_text(&b, t);
    canvas_blank(c, 0, 0, c->width, style_of(ROLE_STATUS));
    if (right != pending && c->width <= 60)
        right_width = 0;
    fit(&b, width - right_width, keeps_model);
    grow(&b, width - right_width);
    grow_name(&b, width - right_width);
    rest = width - bar_width(&b) - 3;
    if (right_width > 0 && rest < right_width - 3 && !keeps_model) {
        canvas_put(c, 0, margin, width, style_of(ROLE_STATUS_STRONG), right, strlen(right));
        return;
    }
    draw_bar(c, &b, margin, c->width);
    if (right_width > 0)
        canvas_put(c, 0, c->width - margin - (rest < right_width - 3 ? rest : right_width - 3),
                   rest, style_of(ROLE_STATUS_STRONG), right, strlen(right));
}
