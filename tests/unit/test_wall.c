/*
 * The wall: its curve goes through what was measured and shows the figures of a change sheet; its
 * cursor walks along the points; on few lines it is one.
 */
#include "config.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/made_sample.h"
#include "ui/app/app.h"
#include "ui/dash/arrange.h"
#include "ui/dash/dash.h"
#include "ui/dash/widget.h"

#define N_TOKEN 24
#define TOKEN_S 0.02 /* of reading */

/* ---- the curve of a model that answered ---- */

static struct mw_model *model;
static struct mw_sample sample;

/* Answer with a small budget and a slow disk, and take the sample that a screen gets. */
static struct mw_options answered(void)
{
    struct mw_options o = small_options(256), longer = small_options(512);
    struct mw_chat_options chat = { .n_predict = N_TOKEN };
    struct err e = ERR_INIT;
    struct mw_model_info info;
    struct mw_watch *watch;
    struct mw_chat *c;
    struct said said;

    model = open_model("gemma4-tiny.gguf");
    mw_model_info(model, &info);
    give_limits(model, &o, 2e9); /* the tokens correct what matters */
    /* For twice the context, after the whole MiB at which the axis begins, and off the grid.
     * More would hold a large part of the weights. */
    o.memory_bytes = (smallest_budget(model, &longer) + MIB) / MIB * MIB + MIB / 8;
    o.disk_rate = (uint64_t)((double)info.hot_bytes / TOKEN_S);
    chat.engine = o;
    mw_sampling_default(model, &chat.sampling);
    chat.sampling.temp = 0;
    c = open_chat(model, &chat);
    ask(c, "hello there", &said);
    assert_int_equal(said.receipt.n_decoded, N_TOKEN);
    if (mw_watch_new(&watch, model, &e) != 0)
        fail_with(&e);
    mw_chat_sample(c, &sample);
    mw_watch_complete(watch, &sample);
    mw_watch_free(watch);
    mw_chat_close(c);
    return o;
}

static const struct mw_wall_point *at(const struct mw_wall *w, enum mw_wall_axis axis,
                                      uint64_t value)
{
    int i = mw_wall_nearest(w, axis, value);

    assert_true(i >= 0);
    assert_true(w->point[axis][i].at == value);
    return &w->point[axis][i];
}

static void the_curve_goes_through_what_was_measured(void **state)
{
    struct mw_options o = answered(), then;
    struct mw_diagnosis d = { 0 };
    struct err e = ERR_INIT;
    struct mw_sample *prompt;
    struct mw_rates rates;
    struct plan plan;
    struct mw_wall w;
    struct mw_tried tried[MW_TRIED_MOST];
    uint32_t steps = 1, largest;
    uint64_t smallest;

    (void)state;
    mw_rates(&sample, &rates);
    assert_true(mw_wall_begin(&w, model, &o, &sample));
    while (mw_wall_step(&w, model, &o, &sample, 4))
        steps++;
    assert_true(steps >= (w.n[MW_WALL_BUDGET] + w.n[MW_WALL_CTX]) / 4);
    assert_true(w.is_measured);
    assert_true(fabs(at(&w, MW_WALL_BUDGET, o.memory_bytes)->tps * rates.token_s - 1) < 1e-9);
    assert_true(fabs(at(&w, MW_WALL_CTX, 256)->tps * rates.token_s - 1) < 1e-9);
    for (int axis = 0; axis < MW_WALL_AXES; axis++)
        for (uint32_t i = 1; i < w.n[axis]; i++)
            assert_true(w.point[axis][i].at > w.point[axis][i - 1].at);
    /* Its other points are those of a change sheet, and more memory is not slower. */
    then = o;
    then.memory_bytes = w.point[MW_WALL_BUDGET][w.n[MW_WALL_BUDGET] - 1].at;
    assert_true(then.memory_bytes > o.memory_bytes);
    assert_int_equal(mw_diagnose(model, &then, &sample, &d, &e), 0);
    assert_true(at(&w, MW_WALL_BUDGET, then.memory_bytes)->tps == d.tps);
    assert_true(d.tps > 1.5 / rates.token_s);
    assert_true(w.nothing_bytes <= then.memory_bytes);
    for (uint32_t i = 0; i < w.n[MW_WALL_CTX]; i++)
        assert_true(w.point[MW_WALL_CTX][i].full_tps > 0);
    /* A full context has one figure: here, in the KV panel and in a sheet. */
    assert_int_equal(mw_diagnose(model, &o, &sample, &d, &e), 0);
    assert_true(at(&w, MW_WALL_CTX, 256)->full_tps == d.full_tps);
    assert_true(fabs(at(&w, MW_WALL_CTX, 256)->full_tps / sample.verdict.full_tps - 1) < 1e-9);
    then = o;
    then.n_ctx = 512;
    assert_int_equal(mw_diagnose(model, &then, &sample, &d, &e), 0);
    assert_true(at(&w, MW_WALL_CTX, 512)->full_tps == d.full_tps);
    /* The KV cache is that of the plan, with the windows. */
    assert_int_equal(mw_plan(model, &o, &plan, &e), 0);
    assert_true(plan.row[MW_ROW_KV_GLOBAL] > 0 && plan.row[MW_ROW_KV_SLIDING] > 0);
    assert_true(at(&w, MW_WALL_CTX, 256)->kv_bytes ==
                plan.row[MW_ROW_KV_GLOBAL] + plan.row[MW_ROW_KV_SLIDING]);
    /* With another budget in use, the cursor stops at this one, which was tried. */
    sample.run.budget_bytes = then.memory_bytes = o.memory_bytes + 5 * MIB / 2;
    assert_true(mw_wall_begin(&w, model, &then, &sample));
    (void)at(&w, MW_WALL_BUDGET, o.memory_bytes);
    sample.run.budget_bytes = o.memory_bytes;
    assert_true(mw_wall_begin(&w, model, &o, &sample));
    /* The answer is a mark at both axes. */
    assert_int_equal(w.n_mark, 1);
    assert_true(w.mark[0].is_same[0] && w.mark[0].is_same[1] && w.mark[0].is_session);
    assert_true(w.mark[0].at[MW_WALL_BUDGET] == o.memory_bytes && w.mark[0].at[1] == 256);
    o.kv_k = MW_KV_F32;
    mw_wall_marks(&w, model, &o);
    assert_false(w.mark[0].is_same[0] || w.mark[0].is_same[1]);
    /* The smallest budget was tried, too, and need not be a number of MiB. */
    assert_int_equal(mw_plan_fit(model, &o, &smallest, &largest, &e), 0);
    assert_true(mw_model_tried(model, tried) == 1);
    tried[0].memory_bytes = (double)smallest;
    mw_model_set_tried(model, tried, 1);
    assert_true(mw_wall_begin(&w, model, &o, &sample));
    (void)at(&w, MW_WALL_BUDGET, smallest);
    /* While a prompt is evaluated, the settings in use are predicted as all others are. */
    o.kv_k = o.kv_v;
    prompt = malloc(sizeof *prompt);
    assert_non_null(prompt);
    sample.state = MW_PREFILL;
    sample.n_decoded = 0; /* of this answer, so far */
    sample.decode_ns = 0;
    app_wall_sample(prompt, &sample);
    assert_true(mw_wall_begin(&w, model, &o, prompt));
    while (mw_wall_step(&w, model, &o, prompt, 4))
        ;
    assert_true(at(&w, MW_WALL_BUDGET, o.memory_bytes)->tps > 0);
    assert_false(w.is_measured);
    free(prompt);
    mw_model_close(model);
}

/* ---- the panel ---- */

/* Budgets of 200 to 1600 MiB, of which 1500 read nothing; contexts of 512 to 8192. */
static struct mw_wall made(void)
{
    struct mw_wall w = { .here = { 600 * MIB, 4096 },
                         .nothing_bytes = 1500 * MIB,
                         .is_measured = true };

    for (int i = 0; i < 15; i++)
        w.point[MW_WALL_BUDGET][w.n[MW_WALL_BUDGET]++] = (struct mw_wall_point){
            .at = (uint64_t)(200 + 100 * i) * MIB, .tps = i < 14 ? 10.0 / (14 - i) : 10
        };
    for (uint64_t ctx = 512; ctx <= 8192; ctx *= 2)
        w.point[MW_WALL_CTX][w.n[MW_WALL_CTX]++] =
            (struct mw_wall_point){ .at = ctx,
                                    .tps = 1,
                                    .full_tps = 1 - (double)ctx / 16384,
                                    .kv_bytes = ctx * 12 * KIB };
    w.mark[0] = (struct mw_wall_mark){ { 600 * MIB, 4096 }, 1, true, { true, true } };
    w.mark[1] = (struct mw_wall_mark){ { 1200 * MIB, 4096 }, 2.25, false, { true, false } };
    w.mark[2] = (struct mw_wall_mark){ { 1000 * MIB, 512 }, 4, false, { false, false } };
    w.n_mark = 3;
    return w;
}

static struct dash *new_dash(enum ui_graph graph)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(graph, &e);
    struct mw_wall w = made();

    assert_non_null(d);
    made_decode(&sample, 30);
    sample.run.budget_bytes = w.here[MW_WALL_BUDGET];
    dash_push(d, &sample);
    dash_set_wall(d, &w);
    return d;
}

/* Returns the text of the panel, which is valid until the next call. */
static const char *drawn(const struct dash *d, int height, int width, bool ascii)
{
    static char text[8192];
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, ascii, &e);
    struct canvas c = canvas_of(t);
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_non_null(t);
    memset(text, 0, sizeof text);
    if (height == 1)
        wall_line(d, &c, 0, false);
    else
        dash_wall_widget.draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    canvas_target_free(t);
    return text;
}

static void shows(const struct dash *d, const char *text)
{
    const char *all = drawn(d, 9, 60, true);

    if (strstr(all, text) == NULL)
        fail_msg("\"%s\" is not in\n%s", text, all);
}

static void the_cursor_walks_over_budgets(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    char setting[40];

    (void)state;
    shows(d, "600 MiB 1.00 tok/s");
    shows(d, "1.46 GiB ~10 tok/s, 10 times, nothing is read");
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "");
    dash_wall_move(d, 1);
    shows(d, "700 MiB ~1.1 tok/s, +11 %");
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 700M");
    dash_wall_move(d, 5);
    shows(d, "1.17 GiB ~2.5 tok/s, +150 %, was 2.25");
    dash_wall_move(d, 99);
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 1600M");
    dash_wall_move(d, -99);
    shows(d, "200 MiB ~0.71 tok/s, -29 %");
    dash_wall_move(d, 4);
    shows(d, "600 MiB 1.00 tok/s, in use");
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "");
    dash_wall_move(d, 1);
    dash_wall_leave(d);
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "");
    dash_free(d);
}

static void the_context_has_a_wall_of_its_own(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    char setting[40];

    (void)state;
    dash_wall_turn(d);
    shows(d, "wall: context");
    shows(d, "full ~2.8, KV 48.0 MiB"); /* as the KV panel */
    dash_wall_move(d, 1);
    shows(d, "8,192 ~1.0 tok/s, full ~0.50, KV 96.0 MiB");
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "ctx 8192");
    dash_wall_turn(d);
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "");
    dash_free(d);
}

/* A budget that is not a number of MiB, as one that was tried may be. */
static void the_setting_of_a_point_is_exact(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct mw_wall w = made();
    char setting[40];

    (void)state;
    w.point[MW_WALL_BUDGET][5].at += 1000;
    dash_set_wall(d, &w);
    dash_wall_move(d, 1);
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 734004200");
    dash_free(d);
}

/* Returns the lines of the wall in a dashboard of this size. */
static int lines_of_wall(const struct dash *d, int height, int width)
{
    struct place place[ARRANGE_MAX];
    int n = arrange_panels(place, d, height, width);

    for (int i = 0; i < n; i++)
        if (place[i].widget == &dash_wall_widget)
            return place[i].height;
    return 0;
}

/* Details of a layer need lines, but not those of the panel that has the keys. */
static void it_keeps_its_lines_while_it_has_the_keys(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    int lines = lines_of_wall(d, 28, 40);

    (void)state;
    assert_true(lines >= 7);
    dash_set_cursor(d, 0);
    assert_true(lines_of_wall(d, 28, 40) < lines);
    dash_panels(d)->chosen = PANEL_WALL;
    assert_int_equal(lines_of_wall(d, 28, 40), lines);
    dash_free(d);
}

/* A point that does not fit ends the walk. */
static void a_point_that_does_not_fit_ends_the_walk(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct mw_wall w = made();
    char setting[40];

    (void)state;
    w.point[MW_WALL_BUDGET][0].tps = 0;
    dash_set_wall(d, &w);
    dash_wall_move(d, -99);
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 300M");
    dash_free(d);
}

static void a_prediction_is_marked(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct mw_wall w = made();

    (void)state;
    w.is_measured = false;
    w.is_doubtful = true;
    dash_set_wall(d, &w);
    shows(d, "600 MiB ~1.0? tok/s");
    sample.run.budget_bytes = 700 * MIB; /* of a change whose wall is not made yet */
    dash_push(d, &sample);
    assert_null(strstr(drawn(d, 12, 60, true), "600 MiB ~"));
    dash_set_wall(d, NULL);
    shows(d, "not predicted yet"); /* below the head, which has the word */
    assert_non_null(strstr(drawn(d, 1, 60, true), "wall -"));
    dash_free(d);
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

/* Each mark has a sign of its own, so that no colour is needed. */
static void marks_differ_without_colour(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    const char *text;

    (void)state;
    dash_wall_move(d, 3);
    text = drawn(d, 9, 60, false);
    assert_int_equal(count(text, "\u25c6"), 1); /* in use */
    assert_int_equal(count(text, "\u25cf"), 1); /* measured; the one in use is below it */
    assert_int_equal(count(text, "\u00b7"), 1); /* with other settings */
    assert_int_equal(count(text, "\u00d7"), 1); /* the cursor */
    dash_free(d);
    d = new_dash(UI_GRAPH_ASCII);
    dash_wall_move(d, 3);
    text = drawn(d, 9, 60, true);
    assert_int_equal(count(text, "@"), 1);
    for (const char *c = text; *c != '\0'; c++)
        assert_true((unsigned char)*c < 0x80);
    dash_free(d);
}

/* Settings that were tried off the axis have no place on it. */
static void marks_off_the_axis_are_not_drawn(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    struct mw_wall w = made();
    const char *text;

    (void)state;
    w.mark[1].at[MW_WALL_BUDGET] = 64 * GIB;
    w.mark[2].at[MW_WALL_BUDGET] = 50 * MIB;
    dash_set_wall(d, &w);
    text = drawn(d, 9, 60, false);
    assert_int_equal(count(text, "\u25c6"), 1);
    assert_int_equal(count(text, "\u25cf"), 0);
    assert_int_equal(count(text, "\u00b7"), 0);
    dash_free(d);
}

/* The line on a strip has the same content. */
static void on_few_lines_it_is_one(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BLOCK);
    struct place place[ARRANGE_MAX];
    const char *text;
    int n, height = 0;

    (void)state;
    text = drawn(d, 1, 80, false);
    assert_non_null(strstr(text, "wall "));
    assert_non_null(strstr(text, "600 MiB 1.00 tok/s, in use\n"));
    dash_wall_move(d, 6);
    text = drawn(d, 1, 80, false);
    assert_non_null(strstr(text, "1.17 GiB ~2.5 tok/s, +150 %, was 2.25\n"));
    assert_int_equal(count(text, "\u25c6"), 1);
    assert_int_equal(count(text, "\u00d7"), 1);
    text = drawn(d, 1, 40, false); /* the figures come first */
    assert_non_null(strstr(text, "1.17 GiB ~2.5 tok/s, +150 %, was 2.25\n"));
    text = drawn(d, 2, 80, false);
    assert_non_null(strstr(text, "600 MiB 1.00 tok/s"));
    assert_non_null(strstr(text, "1.17 GiB ~2.5 tok/s, +150 %, was 2.25\n"));
    dash_wall_turn(d);
    dash_wall_move(d, 1);
    text = drawn(d, 1, 34, false); /* what does not fit is left out, whole */
    assert_non_null(strstr(text, "8,192 ~1.0 tok/s\n"));
    n = arrange_panels(place, d, 22, 80);
    for (int i = 0; i < n; i++)
        if (place[i].widget == &dash_wall_widget)
            height = place[i].height;
    assert_true(height >= 2);
    dash_free(d);
}

/* The points are predicted again only if something changed that they depend on. */
static void the_same_inputs_predict_nothing_again(void **state)
{
    const struct app_wall_inputs was = { .settings = { .memory_bytes = 6e8, .n_ctx = 4096 },
                                         .token_s = 0.5,
                                         .anchor_s = 0.5,
                                         .disk = 2e9,
                                         .memory = 2e10,
                                         .n_seen = 100,
                                         .tried_tps = 2,
                                         .n_tried = 1 };
    struct app_wall_inputs in;

    (void)state;
#define SAME(member, value) (in = was, in.member = (value), app_wall_is_same(&in, &was, 4096))
    assert_true(app_wall_is_same(&was, &was, 4096));
    assert_true(SAME(token_s, 0.51) && SAME(anchor_s, 0.495) && SAME(n_seen, 200));
    assert_true(SAME(disk, 2.04e9) && SAME(memory, 1.98e10) && SAME(tried_tps, 2.05));
    assert_false(SAME(token_s, 0.55) || SAME(anchor_s, 0) || SAME(n_seen, 300));
    assert_false(SAME(disk, 1e9) || SAME(memory, 3e10) || SAME(tried_tps, 3));
    assert_false(SAME(n_tried, 2) || SAME(settings.memory_bytes, 7e8) ||
                 SAME(settings.kv_v, MW_KV_Q8_0) || SAME(settings.n_thread, 1));
    assert_false(SAME(is_measured, true) || SAME(row[MW_ROW_DRAFTER], 1)); /* other drafts */
}

static void the_end_of_the_wall_is_named(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct mw_wall w = made();

    (void)state;
    w.nothing_bytes = 20000 * MIB; /* more than this machine can give */
    dash_set_wall(d, &w);
    shows(d, "1.56 GiB ~10 tok/s, 10 times, the most here");
    /* In a narrow panel, whole parts are left out. */
    assert_non_null(strstr(drawn(d, 8, 36, true), "1.56 GiB ~10 tok/s, 10 times"));
    assert_null(strstr(drawn(d, 8, 36, true), ", t"));
    assert_non_null(strstr(drawn(d, 8, 24, true), "1.56 GiB ~10 tok/s"));
    assert_null(strstr(drawn(d, 8, 24, true), "times"));
    w.here[MW_WALL_BUDGET] = 1600 * MIB;
    dash_set_wall(d, &w);
    shows(d, "this machine gives no more");
    w.nothing_bytes = 1500 * MIB;
    dash_set_wall(d, &w);
    shows(d, "nothing is read from 1.46 GiB on");
    w.nothing_bytes = 1501 * MIB; /* nearer to a point with which something is read */
    dash_set_wall(d, &w);
    shows(d, "nothing is read from 1.56 GiB on");
    for (uint32_t i = 0; i < w.n[MW_WALL_BUDGET]; i++)
        w.point[MW_WALL_BUDGET][i].tps = 0;
    dash_set_wall(d, &w);
    shows(d, "not predicted: a limit is not measured");
    dash_free(d);
}

static void a_click_moves_the_cursor(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    char setting[40];

    (void)state;
    assert_true(dash_wall_widget.click(d, 9, 60, 3, 53)); /* the last column of the plot */
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 1600M");
    assert_true(dash_wall_widget.click(d, 9, 60, 3, 0));
    assert_string_equal(dash_wall_setting(d, setting, sizeof setting), "memory 200M");
    assert_false(dash_wall_widget.click(d, 9, 60, 3, 56)); /* its scale */
    assert_false(dash_wall_widget.click(d, 9, 60, 8, 20)); /* the figures */
    assert_false(dash_wall_widget.click(d, 2, 60, 1, 20));
    dash_free(d);
}

/* A recording has no wall. */
static void a_recording_has_no_wall(void **state)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(UI_GRAPH_ASCII, &e);
    struct place place[ARRANGE_MAX];
    int n;

    (void)state;
    made_decode(&sample, 30);
    dash_push(d, &sample);
    n = arrange_panels(place, d, 50, 64);
    for (int i = 0; i < n; i++)
        assert_true(place[i].widget != &dash_wall_widget);
    panels_choose(dash_panels(d), 1);
    panels_choose(dash_panels(d), 1);
    panels_choose(dash_panels(d), 1);
    assert_int_equal(dash_panels(d)->chosen, PANEL_WALL + 1);
    dash_free(d);
}

static void any_size_is_drawn_inside_its_bounds(void **state)
{
    static const enum ui_graph graphs[] = { UI_GRAPH_BRAILLE, UI_GRAPH_BLOCK, UI_GRAPH_ASCII };

    (void)state;
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
        struct dash *d = new_dash(graphs[g]);

        for (int turn = 0; turn < 2; turn++) {
            dash_wall_move(d, 2);
            for (int height = 1; height < 20; height++)
                for (int width = 1; width < 200; width += 7)
                    (void)drawn(d, height, width, graphs[g] == UI_GRAPH_ASCII);
            dash_wall_turn(d);
        }
        dash_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_goes_through_what_was_measured),
        cmocka_unit_test(the_cursor_walks_over_budgets),
        cmocka_unit_test(the_context_has_a_wall_of_its_own),
        cmocka_unit_test(the_setting_of_a_point_is_exact),
        cmocka_unit_test(it_keeps_its_lines_while_it_has_the_keys),
        cmocka_unit_test(a_point_that_does_not_fit_ends_the_walk),
        cmocka_unit_test(a_prediction_is_marked),
        cmocka_unit_test(marks_differ_without_colour),
        cmocka_unit_test(marks_off_the_axis_are_not_drawn),
        cmocka_unit_test(on_few_lines_it_is_one),
        cmocka_unit_test(the_same_inputs_predict_nothing_again),
        cmocka_unit_test(the_end_of_the_wall_is_named),
        cmocka_unit_test(a_click_moves_the_cursor),
        cmocka_unit_test(a_recording_has_no_wall),
        cmocka_unit_test(any_size_is_drawn_inside_its_bounds),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests_name("wall", tests, NULL, NULL);
}
