/*
 * The places of the panels: by worth on small screens, and as the user arranges them on all.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/made_sample.h"
#include "ui/dash/arrange.h"
#include "ui/dash/dash.h"

static struct mw_sample sample;

/* A dashboard after an answer. */
static uint64_t few_pages; /* of the model in the page cache */

static struct dash *new_dash(void)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(UI_GRAPH_ASCII, &e);

    assert_non_null(d);
    for (uint64_t n = 1; n <= 112; n++) {
        made_decode(&sample, n);
        sample.os.model_cached.value = few_pages;
        dash_push(d, &sample);
    }
    return d;
}

/* Returns the text of a dashboard, which the caller frees. */
static char *drawn(int width, int height)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, true, &e);
    struct dash *d = new_dash();
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    dash_draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    dash_free(d);
    canvas_target_free(t);
    return text;
}

/* ---- sizes ---- */

static int no_step(const struct dash *d, int width, int height)
{
    (void)d;
    (void)width;
    (void)height;
    return 0;
}

static bool always(const struct dash *d)
{
    (void)d;
    return true;
}

/* Low columns share the lines between boxes; folded widgets are rows of the last box. */
static void boxes_share_lines_where_lines_are_few(void **state)
{
    const struct dash_widget one = { .name = "one", .min_height = 3, .step = no_step },
                             two = { .name = "two", .min_height = 4, .step = no_step },
                             line = { .name = "line",
                                      .min_height = 3,
                                      .step = no_step,
                                      .folds = always };
    const struct dash_widget *const widgets[] = { &one, &line, &two, &line, NULL };
    struct dash *d = new_dash();
    struct place p[ARRANGE_MAX];

    (void)state;
    assert_int_equal(arrange(p, widgets, d, 12, 64), 4);
    assert_int_equal(p[0].y, 0);
    assert_false(p[0].joins);
    assert_int_equal(p[0].bottom, -1);
    assert_int_equal(p[1].y, 3);
    assert_ptr_equal(p[1].widget, &two);
    assert_true(p[1].joins);
    assert_int_equal(p[2].y, 7);
    assert_true(p[2].is_row);
    assert_int_equal(p[2].bottom, -1);
    assert_int_equal(p[3].y, 8);
    assert_true(p[3].is_row);
    assert_int_equal(p[3].bottom, 9);
    assert_int_equal(arrange(p, widgets, d, ARRANGE_HIGH, 64), 4);
    assert_int_equal(p[0].bottom, 3);
    assert_int_equal(p[1].y, 4);
    assert_false(p[1].joins);
    assert_int_equal(p[2].y, 8);
    assert_int_equal(p[2].bottom, -1);
    assert_int_equal(p[3].bottom, 10);
    dash_free(d);
}

static int step_by_three(const struct dash *d, int width, int height)
{
    (void)d;
    (void)width;
    return height + 3;
}

static int enough_is_six(const struct dash *d, int width)
{
    (void)d;
    (void)width;
    return 6;
}

/* The curves of an important widget wait until the figures of the others are shown. */
static void figures_come_before_curves(void **state)
{
    const struct dash_widget one = { .name = "one",
                                     .min_height = 3,
                                     .enough = enough_is_six,
                                     .step = step_by_three },
                             two = { .name = "two",
                                     .min_height = 3,
                                     .importance = 1,
                                     .enough = enough_is_six,
                                     .step = step_by_three };
    const struct dash_widget *const widgets[] = { &one, &two, NULL };
    struct dash *d = new_dash();
    struct place p[ARRANGE_MAX];

    (void)state;
    arrange(p, widgets, d, 6 + 3 + 1, 64);
    assert_int_equal(p[0].height, 6);
    assert_int_equal(p[1].height, 3);
    arrange(p, widgets, d, 9 + 3 + 1, 64);
    assert_int_equal(p[0].height, 6);
    assert_int_equal(p[1].height, 6);
    arrange(p, widgets, d, 9 + 6 + 1, 64);
    assert_int_equal(p[0].height, 9);
    assert_int_equal(p[1].height, 6);
    dash_free(d);
}

/* On small screens speed stays longest, then memory and verdict, then layers. */
static void panels_give_way_in_the_order_of_their_worth(void **state)
{
    static const struct {
        const char *name;
        int rank;
    } panels[] = { { " speed ", 0 },
                   { " memory ", 1 },
                   { " verdict ", 1 },
                   { " layers ", 2 },
                   { " kv cache ", 3 } };
    int n = 0;

    (void)state;
    for (int height = 5; height < 60; height++) {
        char *text = drawn(40, height);
        int missing = 4; /* rank of the most important one that is not shown */

        n = 0;
        for (int i = 4; i >= 0; i--)
            if (strstr(text, panels[i].name) == NULL)
                missing = panels[i].rank;
            else
                n++;
        for (int i = 0; i < 5; i++)
            if (panels[i].rank > missing && strstr(text, panels[i].name) != NULL)
                fail_msg("%d lines:%sis shown\n%s", height, panels[i].name, text);
        assert_true(n > 0);
        free(text);
    }
    assert_int_equal(n, 5);
}

/* Without the room for a sentence, its end is worth most. */
static void a_small_screen_shows_the_remedy(void **state)
{
    static const struct {
        int width, height;
        const char *text;
    } sizes[] = {
        { 80, 4, "disk-bound: 78 % of each token waits; --memory 4224M for ~15 tok/s" },
        { 60, 4, "\n78 % of each token waits; --memory 4224M for ~15 tok/s\n" },
        { 40, 10, "for ~15 tok/s" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *text = drawn(sizes[i].width, sizes[i].height);

        assert_non_null(strstr(text, sizes[i].text));
        free(text);
    }
}

/* A folded panel is a row inside the box above it, whose lower border is whole. */
static void a_page_cache_with_few_pages_is_a_line(void **state)
{
    char *text = drawn(64, 47);

    (void)state;
    assert_null(strstr(text, "page cache")); /* nothing is in it */
    free(text);
    few_pages = 2 * MIB;
    text = drawn(64, 47);
    few_pages = 0;
    assert_non_null(strstr(text, "\n| page cache 2.00 MiB of 8.66 GiB  "));
    assert_non_null(
        strstr(text, "|\n+--------------------------------------------------------------+\n"));
    free(text);
}

static void the_right_column_is_filled_to_its_end(void **state)
{
    struct dash *d = new_dash();
    struct place p[ARRANGE_MAX];
    int n = arrange_panels(p, d, 47, 160), last = 0;

    (void)state;
    for (int i = 0; i < n; i++)
        if (p[i].x > 0 && p[i].bottom > last)
            last = p[i].bottom;
    assert_int_equal(last, 46);
    dash_free(d);
}

/* Every letter in the bar of memory has its key below it, at any size. */
static void every_letter_of_the_bar_has_a_key(void **state)
{
    (void)state;
    for (int height = 4; height < 60; height++)
        for (int width = 32; width < 130; width += 7) {
            char *text = drawn(width, height);
            bool is_strip = height <= ARRANGE_STRIP;
            char *bar = strstr(text, is_strip ? "\n" : "- memory -"), *end;

            if (bar == NULL) {
                free(text);
                continue;
            }
            bar = is_strip ? bar + 1 : strchr(bar, '\n') + 1;
            end = strchr(bar, '\n');
            for (char *c = bar; c < end && *c != '.'; c++) {
                char label[8];

                if (*c < 'a' || *c > 'z')
                    continue;
                snprintf(label, sizeof label, "%c ", *c);
                for (char *at = end; at != NULL; at = strstr(at + 1, label))
                    if (at > end && (at[-1] == ' ' || at[-1] == '|' || at[-1] == '\n')) {
                        label[0] = '\0';
                        break;
                    }
                if (label[0] != '\0')
                    fail_msg("%dx%d: %c has no key in\n%s", width, height, *c, text);
            }
            free(text);
        }
}

static void widgets_of_equal_importance_are_both_shown(void **state)
{
    const struct dash_widget one = { .name = "one", .min_height = 3, .step = no_step },
                             two = { .name = "two", .min_height = 3, .step = no_step };
    const struct dash_widget *const widgets[] = { &one, &two, NULL };
    struct dash *d = new_dash();
    struct place place[ARRANGE_MAX];

    (void)state;
    assert_int_equal(arrange(place, widgets, d, 20, 64), 2);
    assert_ptr_equal(place[0].widget, &one);
    assert_ptr_equal(place[1].widget, &two);
    assert_int_equal(arrange(place, widgets, d, 5, 64), 1);
    assert_ptr_equal(place[0].widget, &one);
    dash_free(d);
}

/* ---- panels as the user arranges them ---- */

static void panels_are_read_as_they_are_written(void **state)
{
    static const char *const valid[] = {
        "verdict speed wall memory kv cache layers experts",
        "layers:50 -cache speed:5 memory kv:90 wall verdict experts",
    };
    static const char *const broken[] = {
        "verdict verdict",
        "speed:4",
        "speed:91",
        "speed:",
        "speed:5x",
        "kv cache memmory",
        "-speed- verdict",
        "speed:-5",
        ":30",
        "-",
        "speed::5",
        "-verdict -speed -memory -kv -cache -layers -experts",
        "-verdict -speed wall -memory -kv -cache -layers -experts",
        "speed:99999999999999999999",
        "speed verdict kv memory cache layers speed",
    };
    struct panels p = { .has_wall = true };
    char text[PANELS_TEXT];

    (void)state;
    p.n_used = PANELS;
    panels_reset(&p);
    for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++) {
        assert_true(panels_parse(&p, valid[i]));
        assert_string_equal(panels_text(&p, text), valid[i]);
    }
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        assert_false(panels_parse(&p, broken[i]));
        assert_string_equal(panels_text(&p, text), valid[1]);
    }
    assert_true(panels_parse(&p, "  kv   -layers ")); /* the others keep their order */
    assert_string_equal(panels_text(&p, text), "kv -layers verdict speed wall memory cache experts");
}

/* Keys never change a panel that is not shown. */
static void another_panel_is_chosen_if_the_model_lacks_it(void **state)
{
    struct dash *d = new_dash();
    struct panels *p = dash_panels(d);

    (void)state;
    sample.experts.all = 64;
    dash_push(d, &sample);
    assert_int_equal(p->n_used, PANELS);
    panels_choose(p, -1);
    assert_int_equal(p->chosen, PANELS - 1);
    sample.experts.all = 0;
    dash_push(d, &sample);
    assert_int_equal(p->chosen, 0);
    for (int i = 0; i < 2 * PANELS; i++) {
        panels_choose(p, i < PANELS ? 1 : -1);
        assert_in_range(p->chosen, 0, PANELS_SURE - 1);
    }
    dash_free(d);
}

/* The panel of experts does not count: a model without experts does not show it. */
static void the_last_panel_cannot_be_hidden(void **state)
{
    struct panels p = { .has_wall = true };
    int experts = PANELS - 1, last = PANELS - 2;

    (void)state;
    p.n_used = PANELS;
    panels_reset(&p);
    for (int i = 0; i < last; i++)
        assert_true(panels_toggle(&p, i));
    assert_false(panels_toggle(&p, last));
    assert_true(panels_toggle(&p, experts));
    assert_false(panels_toggle(&p, last));
    panels_choose(&p, 1);
    assert_int_equal(p.chosen, last);
    panels_move(&p, -1); /* there is nothing to pass */
    assert_int_equal(p.row[last].widget, last);
    assert_true(panels_toggle(&p, 0));
    panels_move(&p, -1);
    assert_int_equal(p.row[0].widget, last);
    assert_true(panels_toggle(&p, experts));
    p.n_used = PANELS_SURE; /* a model without experts */
    p.chosen = last;
    panels_choose(&p, 1);
    assert_int_equal(p.chosen, 0);
    assert_false(panels_parse(&p, "-verdict -speed -memory -kv -cache -layers"));
}

/* Whatever the user hides and resizes, all that fits is drawn, and nothing outside. */
static void resized_panels_stay_in_their_column(void **state)
{
    struct dash *d = new_dash();
    struct panels *p = dash_panels(d);
    unsigned seed = 7;

    (void)state;
    dash_set_cursor(d, 7);
    for (int round = 0; round < 3000; round++) {
        int height = 5 + (int)(seed % 60), width = 32 + (int)(seed / 64 % 180);
        struct place place[ARRANGE_MAX];
        int n;

        panels_choose(p, 1);
        switch (seed >> 16 & 7) {
        case 0: panels_toggle(p, (int)(seed >> 20) % PANELS); break;
        case 1: panels_move(p, (seed >> 20 & 1) != 0 ? 1 : -1); break;
        case 2: dash_resize(d, height, width, (int)(seed >> 20) % 9 - 4); break;
        default: dash_drag_edge(d, height, width, (int)(seed >> 20) % PANELS, height / 2);
        }
        n = arrange_panels(place, d, height, width);
        for (int i = 0; i < n; i++) {
            assert_true(place[i].y >= 0 && place[i].y + place[i].height <= height);
            assert_true(place[i].bottom < height);
            if (i > 0 && place[i].x == place[i - 1].x)
                assert_int_equal(place[i].y, place[i - 1].bottom == place[i - 1].y
                                                 ? place[i - 1].y + 1
                                                 : place[i - 1].y + place[i - 1].height +
                                                       (place[i - 1].bottom >= 0));
        }
        seed = seed * 1664525u + 1013904223u;
    }
    dash_free(d);
}

static void a_panel_keeps_the_height_that_it_was_given(void **state)
{
    struct dash *d = new_dash();
    struct place place[ARRANGE_MAX];

    (void)state;
    dash_panels(d)->chosen = 3; /* memory */
    for (int k = 0; k < 5; k++) {
        int n = arrange_panels(place, d, 47, 64), before = 0, after = 0;

        for (int i = 0; i < n; i++)
            before = place[i].widget == &dash_memory_widget ? place[i].height : before;
        dash_resize(d, 47, 64, k < 3 ? 1 : -1);
        n = arrange_panels(place, d, 47, 64);
        for (int i = 0; i < n; i++)
            after = place[i].widget == &dash_memory_widget ? place[i].height : after;
        assert_int_equal(after, before + (k < 3 ? 1 : -1));
    }
    dash_free(d);
}

static void two_columns_are_filled_without_the_layers(void **state)
{
    struct dash *d = new_dash();
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(40, 160, false, &e);
    struct canvas c = canvas_of(t);
    struct ui_style style;
    wchar_t text[CLUSTER_CHARS + 1];

    (void)state;
    assert_true(panels_toggle(dash_panels(d), 6));
    dash_draw(d, &c);
    canvas_peek(t, 0, 80, text, &style);
    assert_int_equal(text[0], L'\u256d');
    for (int i = 0; i < 5; i++)
        assert_true(panels_toggle(dash_panels(d), i)); /* only the page cache is left */
    dash_draw(d, &c);
    canvas_peek(t, 0, 80, text, &style);
    assert_int_equal(text[0], L'\u2500');
    canvas_peek(t, 1, 0, text, &style); /* in a box of its own */
    assert_int_equal(text[0], L'\u2502');
    dash_free(d);
    canvas_target_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_share_lines_where_lines_are_few),
        cmocka_unit_test(figures_come_before_curves),
        cmocka_unit_test(panels_give_way_in_the_order_of_their_worth),
        cmocka_unit_test(every_letter_of_the_bar_has_a_key),
        cmocka_unit_test(a_small_screen_shows_the_remedy),
        cmocka_unit_test(a_page_cache_with_few_pages_is_a_line),
        cmocka_unit_test(the_right_column_is_filled_to_its_end),
        cmocka_unit_test(widgets_of_equal_importance_are_both_shown),
        cmocka_unit_test(panels_are_read_as_they_are_written),
        cmocka_unit_test(the_last_panel_cannot_be_hidden),
        cmocka_unit_test(resized_panels_stay_in_their_column),
        cmocka_unit_test(a_panel_keeps_the_height_that_it_was_given),
        cmocka_unit_test(another_panel_is_chosen_if_the_model_lacks_it),
        cmocka_unit_test(two_columns_are_filled_without_the_layers),
    };

    return cmocka_run_group_tests_name("arrange", tests, NULL, NULL);
}
