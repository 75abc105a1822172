/* Ticks by hand, charts as SVG that is parsed, and charts in cells. */
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

#include "tests/lib/xml_read.h"
#include "ui/chart/chart.h"
#include "ui/chart/ticks.h"
#include "ui/words/markup.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MI       (1024.0 * 1024)
#define GI       (1024.0 * MI)

/* --- ticks --- */

struct tick_row {
    const char *name;
    double low, high;
    enum chart_unit unit;
    bool is_log;
    int want;
    const char *labels; /* of all ticks */
};

static struct tick_row tick_rows[] = {
    { "steps of 1, 2 or 5", 0, 9.3, CHART_NUMBER, false, 5, "0 2 4 6 8 10" },
    { "steps below 1", 0.1, 0.62, CHART_NUMBER, false, 5, "0.0 0.2 0.4 0.6 0.8" },
    { "below zero", -3, 4, CHART_NUMBER, false, 4, "-4 -2 0 2 4" },
    { "one value", 5, 5, CHART_NUMBER, false, 4, "4 6 8 10" },
    { "zero alone", 0, 0, CHART_NUMBER, false, 4, "0.0 0.5 1.0" },
    { "large numbers", 0, 1900000, CHART_NUMBER, false, 4, "0 500k 1.0M 1.5M 2.0M" },
    { "bytes step by powers of two", 0, 5.2 * GI, CHART_BYTES, false, 5,
      "0 2 GiB 4 GiB 6 GiB" },
    { "parts of a GiB", 0, 1.4 * GI, CHART_BYTES, false, 4, "0 512 MiB 1 GiB 1.5 GiB" },
    { "parts of a minute", 0, 100, CHART_SECONDS, false, 4, "0 30 s 60 s 90 s 2 min" },
    { "minutes", 0, 200, CHART_SECONDS, false, 5, "0 60 s 2 min 3 min 4 min" },
    { "milliseconds", 0, 0.0038, CHART_SECONDS, false, 4, "0 1 ms 2 ms 3 ms 4 ms" },
    { "few tokens", 0, 300, CHART_TOKENS, false, 6, "0 50 100 150 200 250 300" },
    { "a context", 0, 131072, CHART_TOKENS, false, 4, "0 32k 64k 96k 128k" },
    { "percent", 0, 1, CHART_SHARE, false, 5, "0 % 20 % 40 % 60 % 80 % 100 %" },
    { "1, 2 and 5 in each decade", 0.8, 12, CHART_NUMBER, true, 5, "0.5 1 2 5 10 20" },
    { "every second decade", 1, 1e6, CHART_NUMBER, true, 4, "1 100 10000 1M" },
    { "doubled bytes", 256 * MI, 8 * GI, CHART_BYTES, true, 6,
      "256 MiB 512 MiB 1 GiB 2 GiB 4 GiB 8 GiB" },
    { "doubled tokens", 2048, 131072, CHART_TOKENS, true, 8, "2k 4k 8k 16k 32k 64k 128k" },
    { "one value of a logarithmic axis", 2, 2, CHART_NUMBER, true, 4, "2 5" },
};

static void has_these_ticks(void **state)
{
    const struct tick_row *row = *state;
    char got[TICKS_MAX * (TICK_TEXT + 1)] = "", text[TICK_TEXT];
    struct ticks t;

    if (row->is_log)
        ticks_log(row->low, row->high, row->unit, row->want, &t);
    else
        ticks_linear(row->low, row->high, row->unit, row->want, &t);
    for (int i = 0; i < t.n; i++) {
        strcat(got, i > 0 ? " " : "");
        strcat(got, tick_text(text, row->unit, t.at[i], t.step));
    }
    assert_string_equal(got, row->labels);
    assert_true(t.low <= row->low + 1e-9 && t.high >= row->high * (1 - 1e-9));
}

static void ticks_enclose_any_range(void **state)
{
    uint32_t seed = 7;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct ticks t;
        double low, high;

        seed = seed * 1664525 + 1013904223;
        low = (double)(seed >> 8) * pow(10, (int)(seed % 19) - 12);
        seed = seed * 1664525 + 1013904223;
        high = low + (double)(seed >> 8) * pow(10, (int)(seed % 13) - 9) + 1e-12;
        if (i % 2 == 0)
            ticks_linear(-low, high, (enum chart_unit)(i / 2 % CHART_NAMES), 2 + i % 15, &t);
        else
            ticks_log(low + 1e-9, high + 1e-9, (enum chart_unit)(i / 2 % CHART_NAMES),
                      2 + i % 15, &t);
        assert_in_range(t.n, 2, TICKS_MAX);
        for (int k = 1; k < t.n; k++)
            assert_true(t.at[k] > t.at[k - 1]);
        assert_true(ticks_place(&t, high) <= 1 + 1e-6);
        assert_true(ticks_place(&t, i % 2 == 0 ? -low : low + 1e-9) >= -1e-6);
    }
}

static void a_place_is_a_share_of_the_axis(void **state)
{
    struct ticks t;

    (void)state;
    ticks_linear(0, 8, CHART_NUMBER, 4, &t);
    assert_true(fabs(ticks_place(&t, 2) - 0.25) < 1e-12);
    ticks_log(1, 100, CHART_NUMBER, 2, &t);
    assert_true(fabs(ticks_place(&t, 10) - 0.5) < 1e-12);
    assert_true(isnan(ticks_place(&t, 0)));
    ticks_names(2, &t);
    assert_true(fabs(ticks_place(&t, 1) - 0.75) < 1e-12);
}

static void values_have_three_digits(void **state)
{
    static const struct {
        enum chart_unit unit;
        double value;
        const char *text;
    } rows[] = {
        { CHART_NUMBER, 0.012345, "0.0123" },
        { CHART_NUMBER, 3.14159, "3.14" },
        { CHART_NUMBER, 31.4159, "31.4" },
        { CHART_NUMBER, 1234.5, "1234" },
        { CHART_NUMBER, 2.5, "2.5" },
        { CHART_NUMBER, 100, "100" },
        { CHART_NUMBER, 1e300, "1e+300" },
        { CHART_BYTES, 1.46 * GI, "1.46 GiB" },
        { CHART_BYTES, 12, "12 B" },
        { CHART_SECONDS, 0.0123, "12.3 ms" },
        { CHART_SECONDS, 5400, "90 min" },
        { CHART_SHARE, 0.715, "71.5 %" },
        { CHART_NUMBER, NAN, "" },
    };
    char text[TICK_TEXT];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(tick_text(text, rows[i].unit, rows[i].value, 0), rows[i].text);
}

/* --- SVG --- */

static const struct chart_point measured[] = {
    { 0, 1, NAN, NAN }, { 5, 2, 1.5, 2.5 }, { 6, NAN, NAN, NAN }, { 10, 4, NAN, NAN }
};
static const struct chart_point predicted[] = { { 0, 2, NAN, NAN }, { 10, 3, NAN, NAN } };
static const struct chart_series both[] = {
    { "measured", CHART_MEASURED, measured, COUNT(measured), false },
    { "predicted", CHART_PREDICTED, predicted, COUNT(predicted), false },
};
static const struct chart_mark all_pinned = { 5, "all pinned", false };
static const struct chart plain = {
    .id = "c1",
    .title = "Speed",
    .x = { .label = "budget", .unit = CHART_NUMBER },
    .y = { .label = "decode", .symbol = "tok/s", .unit = CHART_NUMBER, .from_zero = true },
    .series = both,
    .n_series = COUNT(both),
    .mark = &all_pinned,
    .n_mark = 1,
};

static char *svg_of(const struct chart *c, int width, int height)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    chart_svg(c, width, height, f);
    fclose(f);
    xml_assert(text);
    return text;
}

/*
 * By hand: the y axis goes from 0 to 4 with labels of one character (7 units), so the plot is
 * from 24 + 7 = 31 to 640 - 32 = 608.  Below it are 56 units and one line of the legend, 16:
 * it is from 64 to 380 - 72 = 308.  The point (5, 2) is in the middle of both.
 */
static void points_are_where_the_axes_say(void **state)
{
    char *text = svg_of(&plain, 640, 380);

    (void)state;
    assert_non_null(strstr(text, "class=\"f0\" transform=\"translate(31.0 247.0)\""));
    assert_non_null(strstr(text, "class=\"f0\" transform=\"translate(319.5 186.0)\""));
    assert_non_null(strstr(text, "class=\"f0\" transform=\"translate(608.0 64.0)\""));
    assert_non_null(strstr(text, "class=\"o s1\" transform=\"translate(608.0 125.0)\""));
    /* the gap ends the line, and the bar of the spread goes from 1.5 to 2.5 */
    assert_non_null(strstr(text, "class=\"l s0\" d=\"M31.0 247.0L319.5 186.0M608.0 64.0\""));
    assert_non_null(strstr(text, "d=\"M315.5 216.5h8m-4 0V155.5m-4 0h8\""));
    assert_non_null(strstr(text, "class=\"m\" d=\"M319.5 64.0v244.0\""));
    free(text);
}

static void series_differ_without_colour(void **state)
{
    struct chart_series three[] = { both[0], both[1], both[1] };
    struct chart c = plain;
    char *text;

    (void)state;
    three[2].style = CHART_AGAINST;
    c.series = three;
    c.n_series = COUNT(three);
    text = svg_of(&c, 640, 380);
    assert_non_null(strstr(text, "class=\"l s0\" d=\"M"));
    assert_non_null(strstr(text, "class=\"l s1 p\" d=\"M"));
    assert_non_null(strstr(text, "class=\"l s2 a\" d=\"M"));
    assert_non_null(strstr(text, "M-4.5 0a4.5"));
    assert_non_null(strstr(text, "M-4-4h8v8h-8z"));
    assert_non_null(strstr(text, "M-4-4l8 8m0-8l-8 8"));
    free(text);
}

static void a_chart_is_described_in_words(void **state)
{
    char *text = svg_of(&plain, 640, 380);

    (void)state;
    assert_non_null(strstr(text, "role=\"img\""));
    assert_non_null(strstr(text, "<title id=\"c1-title\">Speed</title>"));
    assert_non_null(strstr(text,
                           "measured: 3 points, lowest 1 tok/s at 0, highest 4 tok/s at 10. "
                           "predicted: 2 points, lowest 2 tok/s at 0, highest 3 tok/s at "
                           "10. all pinned: 5. </desc>"));
    assert_non_null(strstr(text, "prefers-color-scheme:dark"));
    free(text);
}

static void hostile_names_stay_text(void **state)
{
    static const char name[] = "</title><script>alert('1')</script>&\"\x01\xff\xe2\x80\xae x";
    struct chart_series one = both[0];
    struct chart_mark mark = { 3, name, true };
    struct chart c = plain;
    char *text;

    (void)state;
    one.name = c.title = c.about = c.x.label = c.y.label = name;
    c.series = &one;
    c.n_series = 1;
    c.mark = &mark;
    text = svg_of(&c, 640, 380);
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_null(strchr(text, 0x01));
    assert_non_null(strstr(text, "&lt;script&gt;alert(&#39;1&#39;)"));
    free(text);
}

static void a_chart_without_points_says_so(void **state)
{
    struct chart_point below = { 1, 0, NAN, NAN };
    struct chart_series one = { "one", CHART_MEASURED, &below, 1, false };
    struct chart c = plain;
    char *text;

    (void)state;
    c.n_series = 0;
    text = svg_of(&c, 640, 380);
    assert_non_null(strstr(text, "There is nothing to draw."));
    free(text);
    c.series = &one;
    c.n_series = 1;
    c.y.is_log = true;
    text = svg_of(&c, 640, 380);
    assert_non_null(strstr(text, "There is nothing to draw."));
    free(text);
}

/* A long series keeps its one peak, and is much smaller than its points. */
static void a_long_line_is_thinned_and_keeps_its_peak(void **state)
{
    enum { N = 20000 };
    struct chart_point *p = calloc(N, sizeof *p);
    struct chart_series one = { "one", CHART_MEASURED, p, N, false };
    struct chart c = plain;
    char *text;

    (void)state;
    assert_non_null(p);
    for (int i = 0; i < N; i++)
        p[i] = (struct chart_point){ i, i == 7777 ? 4 : 1 + i % 2, NAN, NAN };
    c.series = &one;
    c.n_series = 1;
    c.n_mark = 0;
    text = svg_of(&c, 640, 380);
    assert_true(strlen(text) < 60000);
    assert_non_null(strstr(text, " 64.0L")); /* 4 is the top of the plot */
    free(text);
    free(p);
}

static void names_are_an_axis(void **state)
{
    static const char *const kinds[] = { "f16", "q8_0" };
    static const struct chart_point two[] = { { 0, 1, NAN, NAN }, { 1, 4, NAN, NAN } };
    struct chart_series one = { "measured", CHART_MEASURED, two, 2, false };
    struct chart c = plain;
    char *text;

    (void)state;
    c.x = (struct chart_axis){
        .label = "KV type", .unit = CHART_NAMES, .name = kinds, .n_name = 2
    };
    c.series = &one;
    c.n_series = 1;
    c.n_mark = 0;
    text = svg_of(&c, 640, 380);
    /* 577 units, two halves: 31 + 577 / 4 */
    assert_non_null(strstr(text, "translate(175.2 247.0)"));
    assert_int_equal(xml_count(text, ">q8_0</text>"), 1);
    assert_non_null(strstr(text, "measured, q8_0: 4 tok/s"));
    free(text);
}

/* --- cells --- */

static void assert_printed(const struct chart *c, struct chart_look look, const char *want)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    assert_int_equal(chart_print(c, &look, f, &e), 0);
    fclose(f);
    assert_string_equal(text, want);
    free(text);
}

static void a_chart_is_drawn_in_ascii(void **state)
{
    (void)state;
    assert_printed(&plain, (struct chart_look){ .width = 40, .height = 14, .ascii = true },
                   "Speed\n"
                   "decode (tok/s)\n"
                   "4 |                  : all pinned     o\n"
                   "  |                  :\n"
                   "  |                  : -- -- -- -- -- x\n"
                   "  | - -- -- -- -- -- *\n"
                   "2 |x       **********o\n"
                   "  |o*******          :\n"
                   "  |                  :\n"
                   "0 |                  :\n"
                   "  ++-----------------+----------------+\n"
                   "   0                 5               10\n"
                   "   budget\n"
                   "*o* measured   -x  predicted\n");
}

static void a_chart_is_drawn_in_braille(void **state)
{
    (void)state;
    assert_printed(&plain, (struct chart_look){ .width = 40, .height = 14 },
                   "Speed\n"
                   "decode (tok/s)\n"
                   "4 │                  ┊ all pinned     ●\n"
                   "  │                  ┊\n"
                   "  │                  ⢀ ⢀⣀ ⠠⠤ ⠠⠔ ⠐⠒ ⠈⠉ □\n"
                   "  │⢀⡀ ⣀⡀ ⠤⠄ ⠔⠂ ⠒⠂ ⠉⠁ ⡇\n"
                   "2 │□        ⣀⣀⡠⠤⠔⠒⠒⠉⠉●\n"
                   "  │●⣀⠤⠤⠔⠒⠊⠉⠉         ┊\n"
                   "  │                  ┊\n"
                   "0 │                  ┊\n"
                   "  └┴─────────────────┴────────────────┴\n"
                   "   0                 5               10\n"
                   "   budget\n"
                   "⠒●⠒ measured   ⠒□  predicted\n");
}

static void colours_end_with_their_line(void **state)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    const struct chart_look look = { .width = 40, .height = 14, .color = true };

    (void)state;
    assert_int_equal(chart_print(&plain, &look, f, &e), 0);
    fclose(f);
    assert_non_null(strstr(text, "\033[0;36m"));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *last = strrchr(line, '\033');

        assert_true(last == NULL || strncmp(last, "\033[0m", 4) == 0);
    }
    free(text);
}

static void a_small_terminal_stays_empty(void **state)
{
    (void)state;
    assert_printed(&plain, (struct chart_look){ .width = 10, .height = 2 }, "\n\n");
}

static void markup_is_cut_between_characters(void **state)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    markup_text_n(f, "a<\xc3\xa9\xc3", 5);
    fclose(f);
    assert_string_equal(text, "a&lt;\xc3\xa9\xef\xbf\xbd");
    free(text);
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(ticks_enclose_any_range),
        cmocka_unit_test(a_place_is_a_share_of_the_axis),
        cmocka_unit_test(values_have_three_digits),
        cmocka_unit_test(points_are_where_the_axes_say),
        cmocka_unit_test(series_differ_without_colour),
        cmocka_unit_test(a_chart_is_described_in_words),
        cmocka_unit_test(hostile_names_stay_text),
        cmocka_unit_test(a_chart_without_points_says_so),
        cmocka_unit_test(a_long_line_is_thinned_and_keeps_its_peak),
        cmocka_unit_test(names_are_an_axis),
        cmocka_unit_test(a_chart_is_drawn_in_ascii),
        cmocka_unit_test(a_chart_is_drawn_in_braille),
        cmocka_unit_test(colours_end_with_their_line),
        cmocka_unit_test(a_small_terminal_stays_empty),
        cmocka_unit_test(markup_is_cut_between_characters),
    };
    struct CMUnitTest tests[COUNT(tick_rows) + COUNT(others)];

    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < COUNT(tick_rows); i++)
        tests[i] = (struct CMUnitTest){ tick_rows[i].name, has_these_ticks, NULL, NULL,
                                        &tick_rows[i] };
    memcpy(tests + COUNT(tick_rows), others, sizeof others);
    return cmocka_run_group_tests_name("chart", tests, NULL, NULL);
}
