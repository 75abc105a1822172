/* See sides.h. */
#include "config.h"

#include "src/measure/sides.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "src/base/paths.h"
#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/measure/mapped.h"
#include "src/measure/measure_all.h"
#include "src/settings.h"

#define TOKENS       32 /* of an answer, without -n */
#define TOKENS_MOST  4096 /* with -n 0: the time ends it before */
#define TIME_LIMIT_S 60 /* of a side, without --time-limit */

struct work {
    struct options o; /* with the defaults of the comparison */
    struct results results;
    struct sides sides;
    struct measure_child child;
    struct progress progress;
    struct ui_sides_screen *screen; /* NULL: text */
    int at;                         /* the side that is measured */
    bool lacks_cage;
};

/* ---- plan ---- */

/* Plan the first point.  Returns an exit code. */
static int plan(struct work *w)
{
    struct measure_all all = { .o = &w->o, .results = &w->results, .is_plan_only = true };
    struct point *p = &w->results.point[0];
    int code;

    p->budget_bytes = 0;
    code = measure_all(&all);
    if (code == EXIT_NO_FIT && p->setting[DIM_MEMORY].number > 0)
        report_notice(p->error, strlen(p->error));
    return code;
}

/* Without --memory, half of the weights fit: that is where the way of reading matters. */
static int choose_budget(struct work *w)
{
    struct point *p = &w->results.point[0];
    uint64_t *bytes = &p->setting[DIM_MEMORY].number;
    char why[320];
    int code;

    if (*bytes > 0) {
        measure_lower_budgets(&w->results);
        return plan(w);
    }
    code = plan(w);
    if (code != EXIT_OK && code != EXIT_NO_FIT)
        return code;
    *bytes = p->smallest_bytes;
    if (p->all_pinned_bytes > p->smallest_bytes)
        *bytes += (p->all_pinned_bytes - p->smallest_bytes) / 2;
    *bytes = align_up(*bytes, MIB);
    if (mw_budget_lower(bytes, why, sizeof why))
        report_notice(why, strlen(why));
    p->status = POINT_PENDING;
    return plan(w);
}

/* Returns an exit code. */
static int prepare(struct work *w)
{
    struct err e = ERR_INIT;
    int code;

    results_begin(&w->results, "demo", &w->o);
    if (points_make(&w->results.point, &w->results.n_point, &w->o, &e) != 0)
        return report_error(&e);
    code = choose_budget(w);
    if (code != EXIT_OK)
        return code;
    w->lacks_cage = !mapped_can("Mapped pages in the same budget need", "demo");
    if (mapped_add(&w->results, &e) != 0)
        return report_error(&e);
    w->results.point[0].is_caged = !w->lacks_cage;
    w->sides.results = &w->results;
    for (int i = 0; i < UI_SIDES; i++)
        w->sides.side[i].point = &w->results.point[i];
    w->sides.side[0].name = "memwall, direct reads";
    w->sides.side[1].name = "mapped pages";
    if (w->lacks_cage)
        w->sides.side[1].state = SIDE_LEFT_OUT;
    return EXIT_OK;
}

/* ---- while it works ---- */

static void on_stage(void *ctx, const char *stage, uint32_t done, uint32_t total)
{
    struct work *w = ctx;
    struct side *s = &w->sides.side[w->at];

    if (strcmp(stage, "decode") != 0)
        return;
    if (s->state != SIDE_DECODES)
        s->decode_ns = clock_ns();
    s->state = SIDE_DECODES;
    if (done > s->n_token)
        s->token_ns = clock_ns();
    s->n_token = done;
    s->n_total = total;
}

static void draw_line(struct work *w)
{
    struct ui_sides shown;
    char text[200];

    if (!progress_is_due(&w->progress))
        return;
    sides_for_screen(&w->sides, false, &shown);
    snprintf(text, sizeof text, "%s: %s", shown.side[w->at].title, shown.side[w->at].line[0]);
    progress_text(&w->progress, text);
}

static bool on_tick(void *ctx, const struct measure_live *now)
{
    struct work *w = ctx;
    struct side *s = &w->sides.side[w->at];
    struct ui_sides shown;

    if (now->read_bytes.why_not == NULL) /* else the process is just ending */
        s->now = *now;
    if (w->screen == NULL) {
        draw_line(w);
        return true;
    }
    sides_for_screen(&w->sides, false, &shown);
    return ui_sides_draw(w->screen, &shown);
}

/* Measure w->at.  Returns -1 with *e if the person stopped it. */
static int measure_side(struct work *w, struct err *e)
{
    struct side *s = &w->sides.side[w->at];
    struct point *p = &w->results.point[w->at];
    struct err failed = ERR_INIT;
    struct json_doc *answer;
    uint64_t charge;

    s->state = SIDE_LOADS;
    s->n_total = w->o.n_gen;
    s->start_ns = clock_ns();
    if (measure_child(&w->child, p, ONE_RUN, &answer, &charge, &failed) == 0) {
        results_take(&w->results, p, json_root(answer), true, charge);
        json_free(answer);
    } else if (failed.code == ERR_CANCELLED) {
        *e = failed;
        return -1;
    } else {
        results_take_failure(p, &failed);
        s->is_late = w->child.is_late;
    }
    s->end_ns = clock_ns();
    s->state = p->status == POINT_OK ? SIDE_DONE : SIDE_FAILED;
    return 0;
}

static int measure_sides(struct work *w, struct err *e)
{
    for (w->at = 0; w->at < UI_SIDES; w->at++)
        if (w->sides.side[w->at].state == SIDE_WAITS && measure_side(w, e) != 0)
            return -1;
    w->results.is_complete = true;
    return 0;
}

/* ---- JSON ---- */

static void side_json(struct json *j, const char *key, const struct side *s)
{
    struct side_rate rate = side_rate(s);

    json_object(j, key);
    if (rate.tps > 0)
        json_double(j, "decode_tps", rate.tps, 6);
    else
        json_null(j, "decode_tps");
    json_bool(j, "is_upper_bound", rate.is_below);
    json_u64(j, "tokens", s->n_token);
    if (s->start_ns > 0 && s->now.use.reread.why_not == NULL)
        json_u64(j, "reread_bytes", s->now.use.reread.value);
    else
        json_null(j, "reread_bytes");
    if (s->start_ns > 0 && s->now.read_bytes.why_not == NULL)
        json_u64(j, "read_bytes", s->now.read_bytes.value);
    else
        json_null(j, "read_bytes");
    json_end(j);
}

static void write_sides(void *ctx, struct json *j)
{
    const struct sides *s = ctx;
    bool is_more;
    double times = sides_times(s, &is_more);

    json_object(j, "sides");
    side_json(j, "memwall", &s->side[0]);
    side_json(j, "mapped", &s->side[1]);
    if (times > 0)
        json_double(j, "times", times, 6);
    else
        json_null(j, "times");
    json_end(j);
}

/* ---- the two ways to show it ---- */

static int status_of(const struct work *w, const struct err *e, int stopped_by)
{
    if (e->code == ERR_CANCELLED)
        return stopped_by > 128 ? stopped_by : EXIT_STOPPED;
    if (w->sides.side[0].state == SIDE_FAILED) {
        report_notice(w->results.point[0].error, strlen(w->results.point[0].error));
        return EXIT_FAILED;
    }
    return w->lacks_cage ? EXIT_FAILED : EXIT_OK;
}

/* On the screen; the result is left on the terminal afterwards. */
static int show(struct work *w, const struct ui_options *ui)
{
    struct err e = ERR_INIT, ignored = ERR_INIT;
    struct paths paths = { 0 };
    struct ui_paths of_ui;
    struct ui_sides shown;
    sigset_t before;
    int status;

    (void)paths_find(&paths, &ignored); /* only the user's own themes need it */
    of_ui = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                               paths.data_dir };
    sigprocmask(SIG_SETMASK, NULL, &before);
    if (ui_sides_open(&w->screen, ui, &of_ui, &e) != 0)
        return report_error(&e);
    w->child.before = &before;
    w->child.signals = -1;
    ui_sides_watch(w->screen, w->child.watched);
    if (measure_sides(w, &e) == 0) {
        sides_for_screen(&w->sides, true, &shown);
        ui_sides_wait(w->screen, &shown);
    }
    status = ui_sides_status(w->screen);
    ui_sides_close(w->screen);
    if (e.code != ERR_CANCELLED)
        sides_print(&w->sides);
    status = status > 0 ? status : status_of(w, &e, status);
    return status;
}

static int print(struct work *w)
{
    struct err e = ERR_INIT;
    sigset_t before;
    int stopped_by = 0;

    sigprocmask(SIG_SETMASK, NULL, &before);
    progress_open(&w->progress, w->o.quiet);
    w->child.before = &before;
    w->child.signals = signals_block(&before);
    w->child.watched[0] = w->child.watched[1] = -1;
    if (measure_sides(w, &e) != 0)
        stopped_by = 128 + w->child.stopped_by;
    progress_clear(&w->progress);
    if (w->child.signals >= 0) {
        close(w->child.signals);
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    if (e.code != ERR_CANCELLED && w->o.json)
        results_json_with(stdout, &w->results, write_sides, &w->sides);
    else if (e.code != ERR_CANCELLED)
        sides_print(&w->sides);
    return status_of(w, &e, stopped_by);
}

static int run(struct work *w)
{
    struct ui_options ui;
    int code = prepare(w);

    if (code != EXIT_OK)
        return code;
    settings_screen(&w->o, &ui);
    w->child.o = &w->o;
    w->child.stage = on_stage;
    w->child.tick = on_tick;
    w->child.ctx = w;
    if (w->o.json || ui.plain || !isatty(STDOUT_FILENO) || !ui_can_draw())
        return print(w);
    return show(w, &ui);
}

int sides_run(const struct options *given)
{
    struct work *w = calloc(1, sizeof *w);
    struct err e = ERR_INIT;
    int code;

    if (w == NULL) {
        err_memory(&e, "a comparison");
        return report_error(&e);
    }
    w->o = *given;
    w->o.n_gen = TOKENS;
    if (options_given(given, OPT_PREDICT))
        w->o.n_gen = given->chat.n_predict > 0 ? given->chat.n_predict : TOKENS_MOST;
    w->o.n_prompt = w->o.depth = 0;
    w->o.n_repeat = 1;
    w->o.cold = true;
    if (!options_given(given, OPT_TIME_LIMIT))
        w->o.time_limit = TIME_LIMIT_S;
    code = run(w);
    results_free(&w->results);
    free(w);
    return code;
}
