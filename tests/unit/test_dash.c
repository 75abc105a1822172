/*
 * Pictures of the dashboard, and rules that hold for all of them.
 *
 * A picture is the text of the cells, for some also a letter per cell for its role.  The
 * pictures
 * are in tests/data/dash; `make check UPDATE_GOLDEN=1` updates them.
 */
#include "config.h"

#include <ctype.h>
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

#include "engine/telemetry/verdict.h"
#include "tests/lib/golden.h"
#include "tests/lib/made_sample.h"
#include "ui/dash/arrange.h"
#include "ui/dash/curve.h"
#include "ui/dash/dash.h"
#include "ui/dash/explain.h"
#include "ui/dash/figure.h"
#include "ui/dash/state.h"
#include "ui/term/box.h"

#define MAX_HEIGHT 70
#define MAX_WIDTH  250

/* ---- states ---- */

static struct mw_sample sample;

static struct dash *new_dash(enum ui_graph graph)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(graph, &e);

    assert_non_null(d);
    return d;
}

static void push_idle(struct dash *d)
{
    made_idle(&sample);
    dash_push(d, &sample);
}

static void push_prefill(struct dash *d)
{
    push_idle(d);
    for (uint64_t n = 0; n <= 1280; n += 256) {
        made_prefill(&sample, n);
        dash_push(d, &sample);
    }
}

static void push_decode(struct dash *d)
{
    push_prefill(d);
    for (uint64_t n = 1; n <= 112; n++) {
        made_decode(&sample, n);
        dash_push(d, &sample);
    }
}

/* The same model through a mapping: the page cache fills, and pages fault. */
static void push_mmap(struct dash *d)
{
    for (uint64_t n = 1; n <= 60; n++) {
        made_decode(&sample, n);
        snprintf(sample.run.io, sizeof sample.run.io, "mmap");
        snprintf(sample.run.io_reason, sizeof sample.run.io_reason, "as requested");
        sample.mem.lent_bytes = 0;
        for (uint32_t i = 0; i <= sample.n_layer; i++)
            sample.layer[i].read_ns = sample.layer[i].stall_ns = 0;
        sample.os.charged.why_not = sample.os.charged_peak.why_not =
            "other processes share the control group";
        sample.os.model_cached.value = (n < 40 ? n : 40) * 128 * MIB;
        sample.os.majflt.value = 12 + n * 31;
        sample.os.refaults.value = n * n * 40;
        sample.os.swap_own.value = 300 * MIB;
        sample.os.psi_memory_some10.value = 2214;
        verdict_fill(&sample);
        dash_push(d, &sample);
    }
}

/* The kernel reports nothing, and nothing is measured. */
static void push_blind(struct dash *d)
{
    made_idle(&sample);
    memset(&sample.os, 0, sizeof sample.os);
    sample.disk_limit = sample.memory_limit = 0;
    dash_push(d, &sample);
}

static void push_cursor(struct dash *d)
{
    push_decode(d);
    dash_set_cursor(d, 7);
}

/* ---- pictures ---- */

struct picture {
    const char *name;
    void (*push)(struct dash *d);
    int width, height;
    enum ui_graph graph; /* UI_GRAPH_ASCII also makes the target ASCII */
    bool has_roles;
};

static struct picture pictures[] = {
    { "idle-80x24", push_idle, 80, 24, UI_GRAPH_BRAILLE, false },
    { "blind-64x46", push_blind, 64, 46, UI_GRAPH_BRAILLE, false },
    { "prefill-40x12", push_prefill, 40, 12, UI_GRAPH_BRAILLE, false },
    { "prefill-80x24", push_prefill, 80, 24, UI_GRAPH_BRAILLE, true },
    { "prefill-strip-40x3", push_prefill, 40, 3, UI_GRAPH_BRAILLE, true },
    { "decode-strip-40x4", push_decode, 40, 4, UI_GRAPH_BRAILLE, true },
    { "decode-strip-80x4", push_decode, 80, 4, UI_GRAPH_ASCII, false },
    { "decode-40x12", push_decode, 40, 12, UI_GRAPH_BRAILLE, false },
    { "decode-80x24", push_decode, 80, 24, UI_GRAPH_BRAILLE, true },
    { "decode-64x46", push_decode, 64, 46, UI_GRAPH_BLOCK, false },
    { "decode-120x40", push_decode, 120, 40, UI_GRAPH_BRAILLE, false },
    { "decode-200x60", push_decode, 200, 60, UI_GRAPH_BRAILLE, false },
    { "decode-40x12-ascii", push_decode, 40, 12, UI_GRAPH_ASCII, false },
    { "decode-80x24-ascii", push_decode, 80, 24, UI_GRAPH_ASCII, true },
    { "decode-120x40-ascii", push_decode, 120, 40, UI_GRAPH_ASCII, false },
    { "decode-200x60-ascii", push_decode, 200, 60, UI_GRAPH_ASCII, false },
    { "mmap-80x24", push_mmap, 80, 24, UI_GRAPH_BRAILLE, false },
    { "mmap-120x40", push_mmap, 120, 40, UI_GRAPH_BRAILLE, false },
    { "cursor-80x24", push_cursor, 80, 24, UI_GRAPH_BRAILLE, true },
    { "cursor-100x66", push_cursor, 100, 66, UI_GRAPH_BRAILLE, false },
};

/* A letter for each role; a capital if it is bold or reverse. */
static char role_letter(struct ui_style style)
{
    static const char letters[UI_ROLES] = {
        [ROLE_TEXT] = 't',         [ROLE_DIM] = 'd',       [ROLE_ACCENT] = 'a',
        [ROLE_BORDER] = 'b',       [ROLE_GOOD] = 'g',      [ROLE_WARN] = 'w',
        [ROLE_BAD] = 'x',          [ROLE_GRAPH] = 'c',     [ROLE_GRAPH_2] = 'e',
        [ROLE_FILL_PROGRAM] = 'p', [ROLE_FILL_WORK] = 'k', [ROLE_FILL_RING] = 'r',
        [ROLE_FILL_PINNED] = 'n',  [ROLE_FILL_KV] = 'v',   [ROLE_FILL_LENT] = 'l',
        [ROLE_FILL_OTHER] = 'o',   [ROLE_FILL_FREE] = 'f', [ROLE_RAMP_0] = '0',
        [ROLE_RAMP_1] = '1',       [ROLE_RAMP_2] = '2',    [ROLE_RAMP_3] = '3',
        [ROLE_RAMP_4] = '4',       [ROLE_RAMP_5] = '5',    [ROLE_RAMP_6] = '6',
        [ROLE_RAMP_7] = '7',
    };
    char letter = letters[style.role] != '\0' ? letters[style.role] : '?';

    return (char)(style.attr != 0 ? toupper((unsigned char)letter) : letter);
}

static void write_roles(const struct canvas_target *t, int height, int width, FILE *f)
{
    for (int y = 0; y < height; y++) {
        char row[MAX_WIDTH + 1];
        int end = width;

        for (int x = 0; x < width; x++) {
            wchar_t text[CLUSTER_CHARS + 1];
            struct ui_style style;

            canvas_peek(t, y, x, text, &style);
            row[x] = text[0] == L' ' && style.attr == 0 ? ' ' : role_letter(style);
        }
        while (end > 0 && row[end - 1] == ' ')
            end--;
        fprintf(f, "%.*s\n", end, row);
    }
}

static char *draw(const struct picture *p)
{
    struct err e = ERR_INIT;
    struct canvas_target *t =
        canvas_on_grid(p->height, p->width, p->graph == UI_GRAPH_ASCII, &e);
    struct dash *d = new_dash(p->graph);
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    p->push(d);
    dash_draw(d, &c);
    canvas_write_text(t, f);
    if (p->has_roles) {
        fprintf(f, "--- roles\n");
        write_roles(t, p->height, p->width, f);
    }
    fclose(f);
    dash_free(d);
    canvas_target_free(t);
    return text;
}

static void looks_as_before(void **state)
{
    const struct picture *p = *state;
    char *text = draw(p);

    golden_assert("dash", p->name, text);
    free(text);
}

/* ---- rules for all pictures ---- */

/* Draw on a canvas in the middle of a larger grid, at every size: nothing is drawn outside of
 * it, and every widget has at least its minimum size. */
static void any_size_is_drawn_inside_its_bounds(void **state)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(MAX_HEIGHT + 2, MAX_WIDTH + 2, false, &e);
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    struct canvas all = canvas_of(t);

    (void)state;
    push_cursor(d);
    for (int height = 0; height <= MAX_HEIGHT; height += height < 12 ? 1 : 7)
        for (int width = 0; width <= MAX_WIDTH; width += width < 110 ? 3 : 17) {
            struct canvas c = canvas_sub(&all, 1, 1, height, width);
            struct place place[ARRANGE_MAX];
            int n = arrange_panels(place, d, height, width);
            wchar_t text[CLUSTER_CHARS + 1];
            struct ui_style style;

            canvas_clear(&all, style_of(ROLE_TEXT));
            dash_draw(d, &c);
            for (int y = 0; y < MAX_HEIGHT + 2; y++)
                for (int x = 0; x < MAX_WIDTH + 2; x++) {
                    if (y >= 1 && y <= height && x >= 1 && x <= width)
                        continue;
                    canvas_peek(t, y, x, text, &style);
                    assert_int_equal(text[0], L' ');
                }
            for (int i = 0; i < n; i++) {
                const struct dash_widget *w = place[i].widget;
                bool is_folded = w->folds != NULL && w->folds(d);

                assert_true(place[i].height >= (is_folded ? 1 : w->min_height));
                assert_true(place[i].width - 2 * box_inset(place[i].width) >= w->min_width);
                assert_true(place[i].y + place[i].height <= height);
                assert_true(place[i].bottom < height);
                assert_true(place[i].x + place[i].width <= width);
            }
            for (int y = -1; y <= height; y += 3)
                for (int x = -1; x <= width; x += 5)
                    dash_click(d, height, width, y, x);
            dash_set_cursor(d, 7);
        }
    dash_free(d);
    canvas_target_free(t);
}

/* Two samples of one state differ only in digits: no number moves the text next to it. */
static void numbers_do_not_move_the_text_beside_them(void **state)
{
    struct picture p = { "", push_decode, 120, 40, UI_GRAPH_ASCII, false };
    struct err e = ERR_INIT;
    struct canvas_target *t[2];
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct canvas c;

        t[i] = canvas_on_grid(p.height, p.width, true, &e);
        c = canvas_of(t[i]);
        made_decode(&sample, 20);
        if (i == 1) {
            sample.os.rss.value = 5 * MIB;
            sample.os.majflt.value = 9999;
            sample.layer[3].stall_ns = 123456789;
            sample.kv.sliding_bytes = 999 * KIB;
            sample.n_prompt_done = sample.n_prompt = 7;
        }
        dash_push(d, &sample);
        dash_draw(d, &c);
    }
    for (int y = 0; y < p.height; y++)
        for (int x = 0; x < p.width; x++) {
            wchar_t a[CLUSTER_CHARS + 1], b[CLUSTER_CHARS + 1];
            struct ui_style style;

            canvas_peek(t[0], y, x, a, &style);
            canvas_peek(t[1], y, x, b, &style);
            /* A letter of a label must be the same in both; units may change. */
            if (a[0] >= L'a' && a[0] <= L'z' && b[0] >= L'a' && b[0] <= L'z')
                assert_int_equal(a[0], b[0]);
        }
    canvas_target_free(t[0]);
    canvas_target_free(t[1]);
    dash_free(d);
}

static void a_click_on_a_layer_inspects_it(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    struct place place[ARRANGE_MAX];
    int n, n_hit = 0;

    (void)state;
    push_decode(d);
    n = arrange_panels(place, d, 90, 64);
    for (int i = 0; i < n; i++) {
        const struct place *p = &place[i];

        if (p->widget != &dash_layers_widget)
            continue;
        assert_true(dash_click(d, 90, 64, p->y + 1 + 5, p->x + 2));
        assert_int_equal(dash_cursor(d), 5);
        n_hit++;
    }
    assert_int_equal(n_hit, 1);
    assert_false(dash_click(d, 90, 64, 0, 0));
    dash_set_cursor(d, -1);
    dash_move_cursor(d, -1);
    assert_int_equal(dash_cursor(d), 35); /* the head */
    dash_move_cursor(d, 1);
    assert_int_equal(dash_cursor(d), 0);
    dash_set_cursor(d, 99);
    assert_int_equal(dash_cursor(d), -1);
    dash_free(d);
}

/* ---- histories ---- */

static void every_token_is_in_the_history_even_if_samples_are_rare(void **state)
{
    struct dash *often = new_dash(UI_GRAPH_ASCII), *rarely = new_dash(UI_GRAPH_ASCII);

    (void)state;
    for (uint64_t n = 1; n <= 200; n++) {
        made_decode(&sample, n);
        dash_push(often, &sample);
        if (n % 50 == 0)
            dash_push(rarely, &sample);
    }
    assert_int_equal(often->tps.n, 199);
    assert_int_equal(rarely->tps.n, 199);
    for (uint32_t i = 0; i < 199; i++)
        assert_true(fabsf(past_at(&often->tps, i) - 3.125f) < 0.01f);
    dash_free(often);
    dash_free(rarely);
}

#define TOKEN_NS 100000000u /* of the samples below */

/* Push the nth pass, in which all layers take ms milliseconds. */
static void push_pass(struct dash *d, uint64_t n, uint64_t ms)
{
    made_decode(&sample, n);
    sample.t_ns = n * TOKEN_NS;
    for (uint32_t i = 0; i <= sample.n_layer; i++) {
        sample.layer[i].passes = n;
        sample.layer[i].compute_ns = ms * 1000000u;
        sample.layer[i].stall_ns = 0;
    }
    dash_push(d, &sample);
}

/* Returns how many layers show this time. */
static uint32_t count_layers(const struct dash *d, double ms)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->now.n_layer; i++)
        n += layer_ms(&d->now.layer[i]) == ms;
    return n;
}

static void layers_follow_within_two_seconds_a_few_at_a_time(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    uint32_t before, most = 0;
    uint64_t n = 1;

    (void)state;
    push_pass(d, n++, 10);
    assert_int_equal(count_layers(d, 10), d->now.n_layer);
    before = 0;
    for (uint64_t end = n + 20; n < end; n++) {
        push_pass(d, n, 20);
        most = count_layers(d, 20) - before > most ? count_layers(d, 20) - before : most;
        before = count_layers(d, 20);
    }
    assert_int_equal(before, d->now.n_layer);
    assert_in_range(most, 1, d->now.n_layer / 4);
    for (uint64_t end = n + 20; n < end; n++)
        push_pass(d, n, 21); /* nobody would see it */
    assert_int_equal(count_layers(d, 20), d->now.n_layer);
    dash_free(d);
}

static void the_slowest_layer_does_not_jump_about(void **state)
{
    static const uint64_t ms[] = { 19, 22, 24 }; /* of layer 7; layer 4 takes 20 */
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);

    (void)state;
    push_pass(d, 1, 0);
    for (uint32_t i = 0; i < 3; i++) {
        sample.t_ns += 2000000000u;
        sample.layer[4].passes = sample.layer[7].passes = 2 + i;
        sample.layer[4].stall_ns = 20000000;
        sample.layer[7].stall_ns = ms[i] * 1000000u;
        dash_push(d, &sample);
        assert_int_equal(dash_slowest(d), ms[i] > 22 ? 7 : 4);
    }
    dash_free(d);
}

static void tokens_of_one_pass_share_its_time(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    uint64_t ns = 1000000000u;

    (void)state;
    made_decode(&sample, 1);
    sample.n_token = 0;
    dash_push(d, &sample);
    for (uint64_t n = 1; n <= 9; n++) { /* three passes of a second make four tokens each */
        bool is_first = n % 4 == 1;

        ns += is_first ? 1000000000u : 100000;
        sample.recent[(n - 1) % MW_RECENT] =
            (struct mw_token){ .t_ns = ns,
                               .n = n,
                               .wall_ns = is_first ? 1000000000u : 0,
                               .n_col = is_first ? 4 : 0 };
        sample.n_token = n;
        sample.t_ns += 1;
        dash_push(d, &sample);
    }
    for (uint32_t i = d->tps.n - 5; i < d->tps.n - 1; i++)
        assert_true(fabsf(past_at(&d->tps, i) - 4) < 0.01F);
    assert_true(past_max(&d->tps, d->tps.n) < 4.01F);
    dash_free(d);
}

/* Returns the scale of the curve with this title; "" if there is none.  Valid until the next
 * call. */
static const char *scale_below(const struct dash *d, int height, int width, const char *title)
{
    static char scale[16];
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, false, &e);
    struct canvas c = canvas_of(t);
    char *text = NULL, *at;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    dash_speed_widget.draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    scale[0] = '\0';
    at = strstr(text, title);
    if (at != NULL) {
        at = strchr(at, '\n') + 1;
        at[strcspn(at, "\n")] = '\0';
        snprintf(scale, sizeof scale, "%s", strrchr(at, ' ') + 1);
    }
    free(text);
    canvas_target_free(t);
    return scale;
}

/* Push a second in which this much was read, and one token. */
static void push_second_of(struct dash *d, uint64_t n, uint64_t ns, uint64_t bytes)
{
    uint64_t all = sample.io.bytes_read + bytes, t_ns = sample.t_ns + ns;
    struct mw_token before = sample.recent[(n - 2) % MW_RECENT];

    made_decode(&sample, n);
    sample.recent[(n - 2) % MW_RECENT] = before;
    sample.t_ns = sample.recent[(n - 1) % MW_RECENT].t_ns = t_ns;
    sample.recent[(n - 1) % MW_RECENT].wall_ns = ns;
    sample.io.bytes_read = all;
    dash_push(d, &sample);
}

/* A curve of 54 cells has 108 values. */
static void a_scale_comes_back_when_a_burst_has_left_the_curve(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_BRAILLE);
    uint64_t n = 1;

    (void)state;
    made_decode(&sample, n++);
    sample.io.bytes_read = 0;
    dash_push(d, &sample);
    for (; n <= 4; n++)
        push_second_of(d, n, 1000000, 0);
    push_second_of(d, n++, 1000000000, 5000000000);
    assert_string_equal(scale_below(d, 24, 60, "tok/s, each token"), "1000");
    assert_string_equal(scale_below(d, 24, 60, "disk GB/s"), "5");
    for (uint64_t end = n + 107; n < end; n++)
        push_second_of(d, n, 1000000000, 0);
    assert_string_equal(scale_below(d, 24, 60, "tok/s, each token"), "1");
    assert_string_equal(scale_below(d, 24, 60, "disk GB/s"), "5");
    push_second_of(d, n++, 1000000000, 1000);
    assert_string_equal(scale_below(d, 24, 60, "disk GB/s"), "");
    assert_string_equal(scale_below(d, 24, 60, "tok/s, each token"), "1");
    dash_free(d);
}

static void a_new_answer_leaves_a_gap(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    uint32_t n_gap = 0;

    (void)state;
    push_decode(d);
    made_decode(&sample, 3);
    sample.t_ns += (uint64_t)1000 * 1000000000;
    sample.n_token = 115;
    for (uint64_t i = 0; i < 3; i++) {
        sample.recent[(112 + i) % MW_RECENT] = sample.recent[i];
        sample.recent[(112 + i) % MW_RECENT].t_ns += (uint64_t)1000 * 1000000000;
    }
    dash_push(d, &sample);
    for (uint32_t i = 0; i < d->tps.n; i++)
        n_gap += isnan(past_at(&d->tps, i)) != 0;
    assert_int_equal(n_gap, 1);
    assert_int_equal(d->tps.n, 111 + 1 + 2);
    dash_free(d);
}

static void another_recording_starts_with_an_empty_history(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    push_decode(d);
    assert_true(d->tps.n > 0);
    push_idle(d);
    assert_int_equal(d->tps.n, 0);
    assert_int_equal(d->layer[0].n, 0);
    dash_free(d);
}

static void a_history_keeps_as_many_values_as_fit(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);

    (void)state;
    for (uint64_t n = 1; n <= DASH_TOKENS + 100; n++) {
        made_decode(&sample, n);
        dash_push(d, &sample);
    }
    assert_int_equal(d->tps.n, DASH_TOKENS);
    assert_int_equal(d->layer[3].n, DASH_LAYER_PASSES);
    dash_free(d);
}

/* ---- figures ---- */

static void figures_have_the_same_width_for_every_number(void **state)
{
    static const uint64_t sizes[] = {
        0, 1, 1023, 1024, 99999, 1048575, 1 << 20, 1073741823, (uint64_t)1 << 40, UINT64_MAX
    };
    static const double numbers[] = { -1,   0,     0.004, 0.0996, 9.994, 9.996,  59.94, 59.96,
                                      99.4, 999.6, 3599,  3600.4, 99999, 359990, 1e18,  NAN };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(strlen(figure_size8(sizes[i]).text), sizes[i] < UINT64_MAX ? 8 : 9);
        assert_int_equal(strlen(figure_count7(sizes[i] % 999999999).text), 7);
        assert_int_equal(strlen(figure_ms6(sizes[i]).text), 6);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_int_equal(strlen(figure_rate5(numbers[i]).text), 5);
        assert_int_equal(strlen(figure_percent5(numbers[i]).text), 5);
        assert_int_equal(strlen(figure_time7(numbers[i]).text), 7);
    }
    assert_string_equal(figure_rate5(3.1).text, " 3.10");
    assert_string_equal(figure_rate5(-1).text, "    -");
    assert_string_equal(figure_rate5(99999).text, "99999");
    assert_string_equal(figure_rate5(486400).text, " 486k");
    assert_string_equal(figure_rate5(2.5e7).text, "  25M");
    assert_string_equal(figure_count7(6122).text, "  6,122");
    assert_string_equal(figure_time7(125).text, " 2:05 m");
    assert_string_equal(figure_percent5(0.714).text, " 71 %");
}

static void a_curve_leaves_gaps_and_shows_every_trace(void **state)
{
    static const float value[] = { 0, 0.01f, 5, NAN, 10 };
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(2, 5, true, &e);
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    curve_draw_values(&c, UI_GRAPH_ASCII, value, 5, 10, style_of(ROLE_GRAPH));
    canvas_write_text(t, f);
    fclose(f);
    assert_string_equal(text, "    #\n .# #\n");
    free(text);
    canvas_target_free(t);
}

static void a_line_joins_values_that_grow(void **state)
{
    static const float value[] = { NAN, 0, 2, 7, 7, 9 };
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(2, 3, false, &e);
    struct canvas_target *a = canvas_on_grid(2, 6, true, &e);
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    curve_line(&c, UI_GRAPH_BRAILLE, value, 6, 8, style_of(ROLE_GRAPH));
    canvas_write_text(t, f);
    c = canvas_of(a);
    curve_line(&c, UI_GRAPH_ASCII, value, 6, 8, style_of(ROLE_GRAPH));
    canvas_write_text(a, f);
    fclose(f);
    assert_string_equal(text, " \u28b8\u2809\n\u2880\u280e\n   '''\n .-\n");
    free(text);
    canvas_target_free(t);
    canvas_target_free(a);
}

/* ---- sentences ---- */

static void the_verdict_is_one_sentence(void **state)
{
    char text[256];

    (void)state;
    made_idle(&sample);
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "~disk-bound: the plan predicts ~3.3 tok/s; each token will read "
                        "~2.74 GiB of weights");
    sample.run.predicted_assumed = 0.5; /* a pass gives several tokens then */
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "~disk-bound: ~3.3 tok/s if 50 % of the drafts are right; a pass reads "
                        "~2.74 GiB of weights");
    sample.kv.disk_plan = GIB;
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "~disk-bound: ~3.3 tok/s if 50 % of the drafts are right; a pass reads "
                        "~2.74 GiB, with keys and values");
    sample.kv.disk_plan = 0;
    sample.run.predicted_assumed = 0;
    sample.run.predicted_read = 0;
    sample.run.predicted_decode = 11.4;
    sample.run.predicted_binds = MW_BINDS_COMPUTE;
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "~compute-bound: the plan predicts ~11 tok/s; all weights fit the "
                        "budget");
    sample.run.predicted_binds = MW_BINDS_OTHERS;
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "~others-bound: the plan predicts ~11 tok/s; other programs use the "
                        "processors");
    sample.run.predicted_decode = 0;
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false), "");
    sample.verdict.binds = MW_BINDS_DISK;
    sample.verdict.share = 0.71;
    snprintf(sample.verdict.advice, sizeof sample.verdict.advice, "more_budget");
    sample.verdict.advice_to = 3.1;
    sample.verdict.advice_amount = 0.8 * (double)GIB;
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "disk-bound: 71 % of each token waits; --memory 2.8G for ~3.1 tok/s");
    snprintf(sample.verdict.advice, sizeof sample.verdict.advice, "of_tomorrow");
    assert_string_equal(dash_verdict(text, sizeof text, &sample, false),
                        "disk-bound: 71 % of each token waits");
}

static void the_parts_add_up_to_the_kernels_figure(void **state)
{
    struct dash *d = new_dash(UI_GRAPH_ASCII);
    struct dash_total total;

    (void)state;
    push_decode(d);
    dash_total(d, &total);
    assert_true(total.is_charge);
    assert_int_equal(total.used + (uint64_t)total.other, total.bytes.value);
    assert_int_equal(total.other, 3 * MIB);
    sample.os.charged.value = total.used - 1; /* read before an item grew */
    dash_push(d, &sample);
    dash_total(d, &total);
    assert_int_equal(total.other, 0);
    sample.os.charged.why_not = "shared";
    dash_push(d, &sample);
    dash_total(d, &total);
    assert_false(total.is_charge);
    assert_int_equal(total.bytes.value, sample.os.own.value);
    dash_free(d);
}

static void once_prints_the_same_as_the_screen(void **state)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    made_decode(&sample, 30);
    assert_int_equal(ui_dash_once(&sample, 80, 24, true, f, &e), 0);
    fclose(f);
    assert_non_null(strstr(text, "decode  3.12 tok/s"));
    assert_non_null(strstr(text, "disk-bound: "));
    free(text);
}

static void every_widget_is_explained(void **state)
{
    size_t n_panel = 0, n_widget = 0;
    const char *panel = "";

    (void)state;
    for (const struct dash_note *n = dash_notes(); n->panel != NULL; n++) {
        n_panel += strcmp(n->panel, panel) != 0; /* a panel's notes are together */
        panel = n->panel;
    }
    for (; dash_widgets[n_widget] != NULL; n_widget++) {
        const struct dash_note *n = dash_notes();

        while (n->panel != NULL && strcmp(n->panel, dash_widgets[n_widget]->name) != 0)
            n++;
        if (n->panel == NULL)
            fail_msg("%s has no notes in explain.c", dash_widgets[n_widget]->name);
    }
    assert_int_equal(n_panel, n_widget + 1); /* marks are of all panels */
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(any_size_is_drawn_inside_its_bounds),
        cmocka_unit_test(numbers_do_not_move_the_text_beside_them),
        cmocka_unit_test(a_click_on_a_layer_inspects_it),
        cmocka_unit_test(every_token_is_in_the_history_even_if_samples_are_rare),
        cmocka_unit_test(layers_follow_within_two_seconds_a_few_at_a_time),
        cmocka_unit_test(the_slowest_layer_does_not_jump_about),
        cmocka_unit_test(tokens_of_one_pass_share_its_time),
        cmocka_unit_test(a_scale_comes_back_when_a_burst_has_left_the_curve),
        cmocka_unit_test(a_new_answer_leaves_a_gap),
        cmocka_unit_test(another_recording_starts_with_an_empty_history),
        cmocka_unit_test(a_history_keeps_as_many_values_as_fit),
        cmocka_unit_test(figures_have_the_same_width_for_every_number),
        cmocka_unit_test(a_curve_leaves_gaps_and_shows_every_trace),
        cmocka_unit_test(a_line_joins_values_that_grow),
        cmocka_unit_test(the_verdict_is_one_sentence),
        cmocka_unit_test(the_parts_add_up_to_the_kernels_figure),
        cmocka_unit_test(once_prints_the_same_as_the_screen),
        cmocka_unit_test(every_widget_is_explained),
    };
    enum { N_PLAIN = sizeof plain / sizeof plain[0], N = sizeof pictures / sizeof pictures[0] };
    struct CMUnitTest tests[N_PLAIN + N];

    setlocale(LC_CTYPE, "C.UTF-8");
    memcpy(tests, plain, sizeof plain);
    for (size_t i = 0; i < N; i++)
        tests[N_PLAIN + i] =
            (struct CMUnitTest){ pictures[i].name, looks_as_before, NULL, NULL, &pictures[i] };
    return cmocka_run_group_tests_name("dash", tests, NULL, NULL);
}
