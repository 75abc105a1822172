/* The contents of the panels of the dashboard. */
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

#include "tests/lib/made_sample.h"
#include "ui/dash/dash.h"
#include "ui/dash/widget.h"

static struct mw_sample sample;

static struct dash *new_dash(void)
{
    struct err e = ERR_INIT;
    struct dash *d = dash_new(UI_GRAPH_BRAILLE, &e);

    assert_non_null(d);
    return d;
}

static void push_decode(struct dash *d)
{
    for (uint64_t n = 1; n <= 112; n++) {
        made_decode(&sample, n);
        dash_push(d, &sample);
    }
}

/* Draw the dashboard.  Returns its text. */
static char *drawn(const struct dash *d, int width, int height)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, false, &e);
    struct canvas c = canvas_of(t);
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    dash_draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    canvas_target_free(t);
    return text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        n++;
    return n;
}

/* Beside the chat on a screen of 160x50, and on larger and smaller ones. */
static void every_layer_has_a_bar(void **state)
{
    static const int sizes[][2] = { { 64, 90 }, { 48, 60 }, { 100, 66 }, { 120, 40 } };
    struct dash *d = new_dash();

    (void)state;
    push_decode(d);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *text = drawn(d, sizes[i][0], sizes[i][1]);

        assert_int_equal(count(text, "\u25d0 \u2592"), 36); /* pinned in part, then a stall */
        assert_true(strstr(text, "\u2503 read \u2592 wait \u2588 compute") != NULL ||
                    strstr(text, "\u2503read \u2592wait \u2588compute") != NULL);
        free(text);
    }
    dash_free(d);
}

/* The role of the first cell with this character in the row with text. */
static int role_of(const struct canvas_target *t, int y, int width, wchar_t ch)
{
    for (int x = 0; x < width; x++) {
        wchar_t text[CLUSTER_CHARS + 1];
        struct ui_style style;

        canvas_peek(t, y, x, text, &style);
        if (text[0] == ch)
            return style.role;
    }
    return -1;
}

static void the_legend_has_the_marks_and_colours_of_the_bars(void **state)
{
    static const wchar_t marks[] = L"\u2503\u2592\u2588";
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(24, 64, false, &e);
    struct canvas c = canvas_of(t);
    struct dash *d = new_dash();

    (void)state;
    push_decode(d);
    dash_layers_widget.draw(d, &c);
    for (int i = 1; i < 3; i++) {
        assert_int_not_equal(role_of(t, 0, 64, marks[i]), -1);
        assert_int_equal(role_of(t, 0, 64, marks[i]), role_of(t, 3, 64, marks[i]));
    }
    /* The mark of reading has the colour of the bar under it, and differs from it by its shape. */
    assert_int_equal(role_of(t, 0, 64, marks[0]), ROLE_TEXT);
    assert_int_not_equal(role_of(t, 0, 64, marks[1]), role_of(t, 0, 64, marks[2]));
    dash_free(d);
    canvas_target_free(t);
}

/* The line of text with this part; "" if there is none.  Valid until the next call. */
static const char *line_with(const char *text, const char *part)
{
    static char line[1024];
    const char *at = strstr(text, part), *from = at;

    line[0] = '\0';
    if (at == NULL)
        return line;
    while (from > text && from[-1] != '\n')
        from--;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(from, "\n"), from);
    return line;
}

/* Three figures have headings.  With one, the row of the head has its unit, or names all three.
 * The sizes are those of the dashboard on screens of 120x40, 160x50, 80x24 and 100x30. */
static void figures_and_circles_of_layers_are_explained(void **state)
{
    static const struct {
        int width, height, n_layer;
        const char *heading, *head, *circles;
    } sizes[] = {
        { 120, 40, 35, "ms: \u2503read \u2592wait \u2588compute", "41       11 ", NULL },
        { 64, 62, 6, "ms: \u2503read \u2592wait \u2588compute", "41       11 ",
          "\u25cf pinned \u25d0 part \u25cb on disk" },
        { 64, 46, 35, "\u25cf\u25d0\u25cb pinned \u2503read \u2592wait \u2588compute", "52 ", NULL },
        { 200, 20, 35, "slowest is", "compute   11 ms",
          "\u25cf pinned \u25d0 part \u25cb on disk" },
        { 80, 24, 35, "slowest is", "52 ms ", NULL },
        { 40, 28, 4, "\u2503 read \u2592 wait \u2588 compute", "52 ms ", NULL },
        { 40, 28, 35, "slowest is", "52 ms ", NULL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *circles = sizes[i].circles;
        struct dash *d = new_dash();
        char *text;

        made_decode(&sample, 112);
        sample.layer[sizes[i].n_layer] = sample.layer[35];
        sample.n_layer = (uint32_t)sizes[i].n_layer;
        dash_push(d, &sample);
        text = drawn(d, sizes[i].width, sizes[i].height);
        if (strstr(line_with(text, " layers "), sizes[i].heading) == NULL ||
            strstr(line_with(text, " head "), sizes[i].head) == NULL ||
            strstr(text, circles != NULL ? circles : "\u25cf\u25d0\u25cb pinned") == NULL)
            fail_msg("%dx%d, %d layers:\n%s", sizes[i].width, sizes[i].height, sizes[i].n_layer,
                     text);
        free(text);
        dash_free(d);
    }
}

/* The kernel reads mapped weights: nobody knows when, nor how long a layer waited. */
static void mapped_layers_show_no_reads_and_waits(void **state)
{
    static const struct {
        int width, height;
        const char *row, *shown;
    } sizes[] = {
        { 200, 20, " head ", "read    -  wait    -  compute   11 ms" },
        { 120, 40, " head ", "    -     -       11 " },
        { 120, 40, "reads ", "reads        -  at     - MB/s" },
        { 120, 40, "wait    -", "read    -  wait    -  compute" },
        { 64, 62, "wait    -", "read    -  wait    -  compute" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct dash *d = new_dash();
        char *text;

        made_decode(&sample, 112);
        strcpy(sample.run.io, "mmap");
        for (uint32_t l = 0; l <= sample.n_layer; l++)
            sample.layer[l].read_ns = sample.layer[l].stall_ns = 0;
        dash_push(d, &sample);
        if (i > 1)
            dash_move_cursor(d, 2);
        text = drawn(d, sizes[i].width, sizes[i].height);
        if (strstr(line_with(text, sizes[i].row), sizes[i].shown) == NULL)
            fail_msg("%zu:\n%s", i, text);
        free(text);
        dash_free(d);
    }
}

static void before_the_first_answer_the_plan_is_shown(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    made_idle(&sample);
    dash_push(d, &sample);
    text = drawn(d, 100, 66);
    assert_non_null(strstr(text, "idle  ~3.3 tok/s"));
    assert_non_null(strstr(text, "next   ~3.3  prompt   ~260"));
    assert_non_null(strstr(text, " ~disk-bound "));
    assert_null(strstr(text, " -  ")); /* an unknown figure */
    assert_null(strstr(text, "first token"));
    free(text);
    dash_free(d);
}

static void nothing_is_drawn_of_a_model_that_is_not_there_yet(void **state)
{
    struct dash *d = new_dash();
    struct mw_sample none = { .state = MW_LOADING, .t_ns = 1000 };
    char *text;

    (void)state;
    dash_push(d, &none);
    text = drawn(d, 80, 48);
    assert_non_null(strstr(text, "loading the model"));
    assert_non_null(strstr(text, " kv cache "));
    assert_non_null(strstr(text, " memory "));
    assert_null(strstr(text, "0 of 0"));
    assert_null(strstr(text, "0 B"));
    assert_null(strstr(text, "full in"));
    assert_null(strstr(text, "borrowed"));
    free(text);
    dash_free(d);
}

static void weights_that_are_read_ahead_have_a_bar(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    made_idle(&sample);
    sample.mem.ahead_bytes = 1000 * MIB;
    sample.mem.ahead_done_bytes = 580 * MIB;
    dash_push(d, &sample);
    text = drawn(d, 80, 24);
    assert_non_null(strstr(text, "loading  580 MiB / 1000 MiB \u2588"));
    assert_non_null(strstr(text, " 58 % "));
    free(text);
    sample.state = MW_PREFILL; /* its passes read them */
    dash_push(d, &sample);
    text = drawn(d, 80, 24);
    assert_null(strstr(text, "loading"));
    free(text);
    dash_free(d);
}

/* Returns the words of a text without the borders of boxes, a blank between them. */
static char *words_of(const char *text)
{
    char *words = calloc(1, strlen(text) + 2), *to = words;

    for (; *text != '\0'; text++) {
        bool is_blank = strchr(" \n", *text) != NULL;

        if (strncmp(text, "\u2502", 3) == 0) {
            is_blank = true;
            text += 2;
        }
        if (!is_blank)
            *to++ = *text;
        else if (to > words && to[-1] != ' ')
            *to++ = ' ';
    }
    return words;
}

static void expect_advice(const struct dash *d)
{
    char sentence[256], *text = drawn(d, 40, 10), *words = words_of(text);
    const char *advice =
        strchr(dash_verdict(sentence, sizeof sentence, &d->now, d->has_keys), ';');

    assert_non_null(advice);
    if (strstr(words, advice + 2) == NULL)
        fail_msg("\"%s\" is not in\n%s", advice + 2, text);
    free(words);
    free(text);
}

/* The dashboard alone on a screen of 40x12. */
static void the_smallest_screen_shows_the_whole_advice(void **state)
{
    static const char *const advices[] = { "more_budget",     "smaller_type", "smaller_kv",
                                           "shorter_context", "less_budget",  "rows_only",
                                           "other_programs",  "direct_io",    "self_drafts" };
    struct dash *d = new_dash();

    (void)state;
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        for (int binds = MW_BINDS_DISK; binds <= MW_BINDS_OTHERS; binds++)
            for (int to = 0; to < 2; to++) {
                made_decode(&sample, 112);
                sample.verdict.binds = (enum mw_binds)binds;
                sample.verdict.advice_to = to * 12.5;
                if (strcmp(advices[i], "self_drafts") == 0)
                    sample.verdict.advice_amount = to * 0.8;
                snprintf(sample.verdict.advice, sizeof sample.verdict.advice, "%s", advices[i]);
                dash_push(d, &sample);
                dash_set_keys(d, false);
                expect_advice(d);
                dash_set_keys(d, true);
                expect_advice(d);
            }
    made_idle(&sample); /* another recording */
    dash_push(d, &sample);
    dash_set_keys(d, false);
    expect_advice(d);
    dash_free(d);
}

/* The status bar names what binds, too. */
static void a_narrow_strip_drops_the_label_of_a_long_verdict(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    push_decode(d);
    dash_set_keys(d, true);
    text = drawn(d, 60, 4);
    assert_null(strstr(text, "disk-bound"));
    assert_non_null(strstr(text, "78 % of each token waits; F10: /memory 4224M for ~15 tok/s"));
    assert_non_null(strstr(text, "w pinned"));
    free(text);
    text = drawn(d, 80, 4);
    assert_non_null(strstr(text, "disk-bound: 78 % of each token waits; F10: "));
    free(text);
    dash_free(d);
}

static void the_wall_of_the_kv_cache_is_what_is_reached_first(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    push_decode(d);
    text = drawn(d, 200, 60);
    assert_non_null(strstr(text, "full at 8,192 \u2502"));
    assert_null(strstr(text, "budget reached at"));
    free(text);
    made_decode(&sample, 112);
    sample.os.charged.value = sample.run.budget_bytes;
    sample.mem.lent_bytes = 24 * MIB;
    dash_push(d, &sample);
    text = drawn(d, 200, 60);
    assert_non_null(strstr(text, "budget reached at ~6,255 \u2502"));
    free(text);
    dash_free(d);
}

static void only_layers_with_experts_have_a_row(void **state)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(8, 40, false, &e);
    struct canvas c = canvas_of(t);
    struct dash *d = new_dash();
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    made_decode(&sample, 1);
    sample.n_layer = 4;
    sample.experts.bins = 2;
    memset(sample.experts.heat, 0, sizeof sample.experts.heat);
    sample.experts.heat[1 * 2] = sample.experts.heat[1 * 2 + 1] = 0xf8;
    sample.experts.heat[3 * 2] = sample.experts.heat[3 * 2 + 1] = 1;
    dash_push(d, &sample);
    dash_experts_widget.draw(d, &c);
    canvas_write_text(t, f);
    fclose(f);
    assert_non_null(strstr(text, "\n  1 "));
    assert_non_null(strstr(text, "\n  3 "));
    assert_null(strstr(text, "\n  0 "));
    assert_null(strstr(text, "\n  2 "));
    free(text);
    dash_free(d);
    canvas_target_free(t);
}

static void memory_saved_by_packing_is_shown(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    push_decode(d);
    text = drawn(d, 200, 60);
    assert_null(strstr(text, "packing"));
    free(text);
    made_decode(&sample, 112);
    sample.mem.saved_bytes = 1100 * MIB;
    dash_push(d, &sample);
    text = drawn(d, 200, 60);
    assert_non_null(strstr(text, "saved     1.07 GiB"));
    free(text);
    dash_free(d);
}

static void tokens_that_are_to_be_evaluated_again_are_shown(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    made_idle(&sample);
    sample.kv.context = 349;
    dash_push(d, &sample);
    text = drawn(d, 100, 66);
    assert_non_null(strstr(text, " 349 of 8,192 tokens "));
    assert_non_null(strstr(text, "to evaluate     349"));
    free(text);
    dash_free(d);
}

static void memory_over_time_is_below_the_line_of_the_budget(void **state)
{
    struct dash *d = new_dash();
    char *text, *line;

    (void)state;
    push_decode(d);
    text = drawn(d, 200, 60);
    line = strstr(text, "\u2500\u2500 budget 2.00 GiB \u2500");
    assert_non_null(line);
    assert_non_null(strstr(line, "charged, each second"));
    assert_non_null(strstr(line, "\u28ff"));
    free(text);
    dash_free(d);
}

/* A pass takes 320 ms. */
static void a_layer_changes_once_a_second_or_with_the_pinned_bytes(void **state)
{
    struct dash *d = new_dash();
    uint64_t changes = 0, first_ns = 0, seconds;

    (void)state;
    for (uint64_t n = 1; n <= 100; n++) {
        uint64_t before = d->now.layer[3].compute_ns;

        made_decode(&sample, n);
        sample.layer[3].compute_ns = n * 1000000;
        dash_push(d, &sample);
        first_ns = n == 1 ? sample.t_ns : first_ns;
        changes += d->now.layer[3].compute_ns != before;
    }
    seconds = (d->now.t_ns - first_ns) / 1000000000;
    assert_true(seconds > 10);
    assert_in_range(changes, seconds * 2 / 3, seconds + 1); /* at the token that comes then */
    made_decode(&sample, 101);
    sample.layer[3].compute_ns = 1;
    sample.layer[3].pinned_bytes /= 2;
    dash_push(d, &sample);
    assert_int_equal(d->now.layer[3].compute_ns, 1);
    assert_int_equal(d->layer[3].n, DASH_LAYER_PASSES);
    dash_free(d);
}

/* The letters of the bar have a key wherever the bar is. */
static void the_memory_bar_has_a_key_at_every_size(void **state)
{
    static const int sizes[][2] = { { 40, 12 }, { 80, 24 }, { 64, 46 }, { 200, 60 } };
    struct dash *d = new_dash();

    (void)state;
    push_decode(d);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *text = drawn(d, sizes[i][0], sizes[i][1]);

        assert_non_null(strstr(text, "w pinned"));
        free(text);
    }
    dash_free(d);
}

static void unknown_figures_of_the_page_cache_are_left_out(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    made_idle(&sample);
    snprintf(sample.run.io, sizeof sample.run.io, "mmap");
    dash_push(d, &sample);
    text = drawn(d, 100, 66);
    assert_non_null(strstr(text, "system 3.12 GiB"));
    assert_null(strstr(text, "refaults"));
    free(text);
    dash_free(d);
}

/* Returns whether the line about the CPU, `width` columns wide, ends with these words. */
static bool cpu_line_ends(const struct dash *d, int width, const char *end)
{
    char *text = drawn(d, width, 24), *line = strstr(text, "cpu "), *words;
    bool ends;

    assert_non_null(line);
    *strstr(line, "\u2502") = '\0'; /* the border of the panel */
    words = words_of(line);
    for (size_t n = strlen(words); n > 0 && words[n - 1] == ' '; n--)
        words[n - 1] = '\0';
    ends = strlen(words) >= strlen(end) &&
           strcmp(words + strlen(words) - strlen(end), end) == 0;
    free(words);
    free(text);
    return ends;
}

/* Machines whose cores are alike show nothing more; a narrow panel shows fewer threads. */
static void kinds_of_cores_are_in_the_line_of_the_cpu(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    push_decode(d);
    assert_false(cpu_line_ends(d, 80, "P"));
    sample.run.cores = 6;
    dash_push(d, &sample);
    assert_false(cpu_line_ends(d, 80, "P"));
    sample.run.efficient_cores = 8;
    dash_push(d, &sample);
    assert_true(cpu_line_ends(d, 80, " 6P 8E"));
    sample.run.low_power_cores = 2;
    dash_push(d, &sample);
    for (int width = 40; width <= 250; width++)
        assert_true(cpu_line_ends(d, width, " 6P 8E 2LP"));
    sample.run.efficient_cores = 0;
    dash_push(d, &sample);
    text = drawn(d, 80, 24);
    assert_non_null(strstr(text, "cpu   114 %  compute \u2582\u2582\u2582\u2582"));
    free(text);
    assert_true(cpu_line_ends(d, 80, " 6P 2LP"));
    sample.run.cores = sample.run.efficient_cores = sample.run.low_power_cores = UINT32_MAX;
    dash_push(d, &sample);
    text = drawn(d, 40, 24); /* no space: the threads stay */
    assert_non_null(strstr(text, "compute"));
    assert_null(strstr(text, "4294967295P"));
    free(text);
    dash_free(d);
}

/* A recording may have any numbers and names. */
static void threads_have_bars_of_their_cpu_time(void **state)
{
    struct dash *d = new_dash();
    char *text;

    (void)state;
    push_decode(d);
    text = drawn(d, 80, 24);
    assert_non_null(strstr(text, "cpu   114 %  compute \u2582\u2582\u2582\u2582  read \u2581  "));
    free(text);
    sample.os.thread[2].busy = NAN;
    sample.os.thread[3].busy = INFINITY;
    sample.os.thread[4].busy = -7;
    dash_push(d, &sample);
    text = drawn(d, 80, 24);
    assert_non_null(strstr(text, "compute \u00b7\u2588\u00b7\u2582"));
    sample.os.n_thread = 0;
    free(text);
    dash_push(d, &sample);
    text = drawn(d, 80, 24);
    assert_null(strstr(text, "cpu"));
    free(text);
    dash_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_has_a_bar),
        cmocka_unit_test(figures_and_circles_of_layers_are_explained),
        cmocka_unit_test(mapped_layers_show_no_reads_and_waits),
        cmocka_unit_test(the_smallest_screen_shows_the_whole_advice),
        cmocka_unit_test(the_legend_has_the_marks_and_colours_of_the_bars),
        cmocka_unit_test(before_the_first_answer_the_plan_is_shown),
        cmocka_unit_test(nothing_is_drawn_of_a_model_that_is_not_there_yet),
        cmocka_unit_test(weights_that_are_read_ahead_have_a_bar),
        cmocka_unit_test(a_narrow_strip_drops_the_label_of_a_long_verdict),
        cmocka_unit_test(the_wall_of_the_kv_cache_is_what_is_reached_first),
        cmocka_unit_test(only_layers_with_experts_have_a_row),
        cmocka_unit_test(memory_saved_by_packing_is_shown),
        cmocka_unit_test(tokens_that_are_to_be_evaluated_again_are_shown),
        cmocka_unit_test(memory_over_time_is_below_the_line_of_the_budget),
        cmocka_unit_test(a_layer_changes_once_a_second_or_with_the_pinned_bytes),
        cmocka_unit_test(the_memory_bar_has_a_key_at_every_size),
        cmocka_unit_test(unknown_figures_of_the_page_cache_are_left_out),
        cmocka_unit_test(threads_have_bars_of_their_cpu_time),
        cmocka_unit_test(kinds_of_cores_are_in_the_line_of_the_cpu),
    };

    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests_name("panels", tests, NULL, NULL);
}
