/* Cells in memory: clipping, widths and hostile text.  A window of ncurses gets the same
 * cells. */
#include "config.h"

#include <sys/mman.h>

#include <limits.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <curses.h>

#include "ui/term/canvas.h"

static void assert_grid(const struct canvas_target *t, const char *want)
{
    char *got = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&got, &n);

    canvas_write_text(t, f);
    fclose(f);
    assert_string_equal(got, want);
    free(got);
}

static struct canvas_target *grid(int height, int width, bool ascii)
{
    struct err e = ERR_INIT;
    struct canvas_target *t = canvas_on_grid(height, width, ascii, &e);

    assert_non_null(t);
    return t;
}

static void clusters_are_as_wide_as_every_terminal_shows_them(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
        int width;
        const wchar_t *shown;
    } rows[] = {
        { "ab", 1, 1, L"a" },
        { "e\u0301x", 3, 1, L"e\u0301" },
        { "\u4f60\u597d", 3, 2, L"\u4f60" },
        /* woman, joiner, computer */
        { "\U0001F469\u200d\U0001F4BBz", 11, 2, L"\U0001F469" },
        { "\u2764\ufe0fz", 6, 1, L"\u2764" },
        { "\U0001F44D\U0001F3FDz", 8, 2, L"\U0001F44D" },
        { "\U0001F1E9\U0001F1EA\U0001F1E9", 8, 2, L"\U0001F1E9\U0001F1EA" },
        /* decomposed Hangul, a syllable with a final consonant after it, old letters */
        { "\u1112\u1161\u11ab\u1100", 9, 2, L"\ud55c" },
        { "\uac00\u11a8z", 6, 2, L"\uac01" },
        { "\u1112\u119e\u11abz", 9, 2, L"\u1112\u119e\u11ab" },
        { "\x1b[2J", 1, 1, L"\ufffd" },
        { "\xc3", 1, 1, L"\ufffd" },
        { "\xff\xfe", 1, 1, L"\ufffd" },
        { "\302\2331m", 2, 1, L"\ufffd" },
        { "a\u0301\u0301\u0301\u0301\u0301\u0301", 13, 1, L"a\u0301\u0301\u0301\u0301" },
        { "\u200bx", 3, 0, L"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster c;

        cluster_next(rows[i].text, strlen(rows[i].text), &c);
        assert_int_equal(c.bytes, rows[i].bytes);
        assert_int_equal(c.width, rows[i].width);
        assert_int_equal(wcscmp(c.shown, rows[i].shown), 0);
    }
    assert_int_equal(cluster_width("a\u4f60b", 5), 4);
    assert_int_equal(cluster_fit("a\u4f60b", 5, 2), 1);
    assert_int_equal(cluster_fit("a\u4f60b", 5, 3), 4);
}

static void drawing_stays_inside(void **state)
{
    struct canvas_target *t = grid(4, 8, false);
    struct canvas all = canvas_of(t);
    struct canvas c = canvas_sub(&all, 1, 2, 2, 4);
    struct canvas none = canvas_sub(&all, 9, 9, 5, 5);

    (void)state;
    canvas_clear(&all, style_of(ROLE_TEXT));
    for (int y = -3; y < 6; y++)
        canvas_text(&c, y, 0, style_of(ROLE_TEXT), "abcdefgh");
    canvas_text(&c, 0, -2, style_of(ROLE_TEXT), "ABCDEFGH");
    canvas_repeat(&none, 0, 0, 9, style_of(ROLE_TEXT), L'x');
    assert_grid(t, "\n  CDEF\n  abcd\n\n");
    canvas_target_free(t);
}

static void wide_characters_are_drawn_whole_or_not_at_all(void **state)
{
    struct canvas_target *t = grid(1, 5, false);
    struct canvas c = canvas_of(t);

    (void)state;
    assert_int_equal(canvas_text(&c, 0, 0, style_of(ROLE_TEXT), "\u4f60\u597d\u4f60"), 4);
    assert_grid(t, "\u4f60\u597d\n");
    canvas_cell(&c, 0, 1, style_of(ROLE_TEXT), L'x'); /* over its second half */
    assert_grid(t, " x\u597d\n");
    canvas_target_free(t);
}

static void an_ascii_target_shows_only_ascii(void **state)
{
    struct canvas_target *t = grid(3, 12, true);
    struct canvas c = canvas_of(t);

    (void)state;
    canvas_hline(&c, 0, 0, 12, style_of(ROLE_BORDER));
    canvas_text(&c, 0, 1, style_of(ROLE_TEXT), " t\u00e9 ");
    canvas_vline(&c, 1, 11, 1, style_of(ROLE_BORDER));
    canvas_text(&c, 1, 1, style_of(ROLE_TEXT), "\u4f60x");
    canvas_bar(&c, 1, 5, 6, 0.5, style_of(ROLE_FILL_KV), style_of(ROLE_FILL_FREE));
    canvas_text(&c, 2, 1, style_of(ROLE_TEXT), "te\u0301x");
    assert_grid(t, "- t? -------\n ??x ###...|\n t?x\n");
    canvas_target_free(t);
}

static void text_is_aligned_right_and_cut(void **state)
{
    struct canvas_target *t = grid(2, 10, false);
    struct canvas c = canvas_of(t);

    (void)state;
    canvas_right(&c, 0, 10, style_of(ROLE_DIM), "12.5");
    canvas_right(&c, 1, 3, style_of(ROLE_DIM), "12345");
    canvas_printf(&c, 1, 5, style_of(ROLE_DIM), "%d-%s", 7, "abcdefgh");
    assert_grid(t, "      12.5\n123  7-abc\n");
    canvas_target_free(t);
}

static void a_box_has_round_corners_or_pluses(void **state)
{
    static const char *const want[] = {
        "\u256d\u2500\u2500\u256e\n\u2502x \u2502\n\u2570\u2500\u2500\u256f\n",
        "+--+\n|x |\n+--+\n"
    };

    (void)state;
    for (int ascii = 0; ascii < 2; ascii++) {
        struct canvas_target *t = grid(3, 4, ascii);
        struct canvas c = canvas_of(t), nothing = canvas_sub(&c, 0, 0, 0, 0);

        canvas_text(&c, 1, 1, style_of(ROLE_TEXT), "x");
        canvas_box(&c, style_of(ROLE_BORDER));
        canvas_box(&nothing, style_of(ROLE_BORDER));
        assert_grid(t, want[ascii]);
        canvas_target_free(t);
    }
}

static void a_bar_is_filled_to_an_eighth_of_a_cell(void **state)
{
    struct canvas_target *t = grid(1, 4, false);
    struct canvas c = canvas_of(t);
    wchar_t text[CLUSTER_CHARS + 1];
    struct ui_style style;

    (void)state;
    canvas_bar(&c, 0, 0, 4, 0.375, style_of(ROLE_GOOD), style_of(ROLE_DIM));
    assert_grid(t, "\u2588\u258c\u00b7\u00b7\n");
    canvas_peek(t, 0, 1, text, &style);
    assert_int_equal(style.role, ROLE_GOOD);
    canvas_bar(&c, 0, 0, 4, 7.0, style_of(ROLE_GOOD), style_of(ROLE_DIM));
    assert_grid(t, "\u2588\u2588\u2588\u2588\n");
    canvas_bar(&c, 0, 0, 4, -1.0, style_of(ROLE_GOOD), style_of(ROLE_DIM));
    assert_grid(t, "\u00b7\u00b7\u00b7\u00b7\n");
    canvas_target_free(t);
}

static struct canvas_ink plain(void *ctx, struct ui_style style)
{
    (void)ctx;
    return (struct canvas_ink){ style.attr != 0 ? A_BOLD : A_NORMAL, 0 };
}

static void a_window_gets_the_same_cells(void **state)
{
    struct err e = ERR_INIT;
    FILE *out = tmpfile(), *in = fopen("/dev/null", "r");
    struct canvas_target *t;
    struct canvas c;
    SCREEN *screen;
    cchar_t cell;
    wchar_t text[CCHARW_MAX + 1];
    attr_t attrs;
    short pair;

    (void)state;
    setenv("LINES", "3", 1);
    setenv("COLUMNS", "8", 1);
    screen = newterm("vt100", out, in);
    if (screen == NULL)
        skip();
    t = canvas_on_window(stdscr, false, plain, NULL, &e);
    assert_non_null(t);
    c = canvas_of(t);
    assert_int_equal(c.height, 3);
    assert_int_equal(c.width, 8);
    canvas_text(&c, 2, 4, style_with(ROLE_TEXT, UI_BOLD), "e\u0301\u4f60zzz");
    mvin_wch(2, 4, &cell);
    getcchar(&cell, text, &attrs, &pair, NULL);
    assert_int_equal(wcscmp(text, L"e\u0301"), 0);
    assert_true((attrs & A_BOLD) != 0);
    mvin_wch(2, 7, &cell);
    getcchar(&cell, text, &attrs, &pair, NULL);
    assert_int_equal(text[0], L'z');
    canvas_text(&c, 1, 0, style_of(ROLE_TEXT), "\U0001F1E9\U0001F1F0x");
    for (int x = 0; x < 3; x++) {
        mvin_wch(1, x, &cell);
        getcchar(&cell, text, &attrs, &pair, NULL);
        assert_int_equal(text[0], L"\U0001F1E9\U0001F1F0x"[x]);
    }
    canvas_target_free(t);
    endwin();
    delscreen(screen);
    fclose(out);
    fclose(in);
}

static void a_size_is_limited_to_what_a_canvas_holds(void **state)
{
    static const struct {
        int height, width, rows, cols;
    } sizes[] = { { 24, 80, 24, 80 },
                  { 200, 400, 200, 400 },
                  { 0, -5, 1, 1 },
                  { 1000, 1000, 131, 1000 },
                  { 1, 65535, 1, 65535 },
                  { 10, 65535, 10, 13107 },
                  { 65535, 65535, 64, 2048 },
                  { 65535, 10, 13107, 10 },
                  { 65, 65535, 64, 2048 },
                  { INT_MAX, INT_MAX, 64, 2048 } };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int height = sizes[i].height, width = sizes[i].width;

        canvas_fit(&height, &width);
        assert_int_equal(height, sizes[i].rows);
        assert_int_equal(width, sizes[i].cols);
        assert_true((long)height * width <= CANVAS_MAX_CELLS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_limited_to_what_a_canvas_holds),
        cmocka_unit_test(clusters_are_as_wide_as_every_terminal_shows_them),
        cmocka_unit_test(drawing_stays_inside),
        cmocka_unit_test(wide_characters_are_drawn_whole_or_not_at_all),
        cmocka_unit_test(an_ascii_target_shows_only_ascii),
        cmocka_unit_test(text_is_aligned_right_and_cut),
        cmocka_unit_test(a_box_has_round_corners_or_pluses),
        cmocka_unit_test(a_bar_is_filled_to_an_eighth_of_a_cell),
        cmocka_unit_test(a_window_gets_the_same_cells),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("canvas", tests, NULL, NULL);
}
