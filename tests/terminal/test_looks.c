/*
 * The program from start to end, at several sizes, on several terminals, with and without
 * colours.  It starts, answers a message with Chinese and emoji, shows the answer, leaves
 * nothing of an old frame on the screen, and restores the terminal.
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

#include "tests/terminal/program.h"

#define WORLD "\xe4\xb8\x96\xe7\x95\x8c" /* two characters of two cells each */
#define SMILE "\xf0\x9f\x98\x80"

enum inks { MONO, FEW, MANY };

struct look {
    const char *name;
    int rows, cols;
    const char *term;
    enum inks inks;
    const char *env; /* an environment variable, or NULL */
    bool is_ascii;
};

static struct look looks[] = {
    { "at_40x12", 12, 40, NULL, MANY, NULL, false },
    { "at_80x24", 24, 80, NULL, MANY, NULL, false },
    { "at_120x40", 40, 120, NULL, MANY, NULL, false },
    { "at_200x60", 60, 200, NULL, MANY, NULL, false },
    { "at_40x12_with_NO_COLOR", 12, 40, NULL, MONO, "NO_COLOR=1", false },
    { "at_80x24_with_NO_COLOR", 24, 80, NULL, MONO, "NO_COLOR=1", false },
    { "at_120x40_with_NO_COLOR", 40, 120, NULL, MONO, "NO_COLOR=1", false },
    { "at_200x60_with_NO_COLOR", 60, 200, NULL, MONO, "NO_COLOR=1", false },
    { "on_a_vt100", 24, 80, "vt100", MONO, NULL, false },
    { "on_a_vt100_without_UTF-8", 24, 80, "vt100", MONO, "LC_ALL=C", true },
    { "on_a_linux_console", 25, 80, "linux", FEW, NULL, false },
    { "in_screen", 24, 80, "screen", FEW, NULL, false },
    { "in_tmux", 40, 120, "tmux-256color", MANY, NULL, false },
    { "on_a_terminal_that_is_not_known", 24, 80, "xterm-kitty", MANY, NULL, false },
    { "on_a_terminal_that_is_UTF-8_in_a_locale_that_is_not", 24, 80, "tmux-256color", MANY,
      "LC_ALL=C", false },
    { "with_true_colour", 40, 120, NULL, MANY, "COLORTERM=truecolor", false },
};

/* Returns the richest colours among the sequences that end in m, and whether all bytes are
 * ASCII. */
static enum inks inks_of(const char *raw, size_t n, bool *is_ascii)
{
    enum inks most = MONO;

    *is_ascii = true;
    for (size_t i = 0; i < n; i++) {
        char sequence[64], *end;
        size_t len = 0;

        if ((unsigned char)raw[i] >= 0x80)
            *is_ascii = false;
        if (raw[i] != '\033' || i + 1 == n || raw[i + 1] != '[')
            continue;
        while (i + 2 + len < n && len + 1 < sizeof sequence &&
               ((raw[i + 2 + len] >= '0' && raw[i + 2 + len] <= '9') ||
                strchr(";:", raw[i + 2 + len]) != NULL))
            len++;
        if (i + 2 + len >= n || raw[i + 2 + len] != 'm')
            continue;
        snprintf(sequence, sizeof sequence, "%.*s", (int)len, raw + i + 2);
        for (char *at = sequence; *at != '\0'; at = *end == '\0' ? end : end + 1) {
            long code = strtol(at, &end, 10);

            if (end == at)
                break;
            if (code == 38 || code == 48)
                most = MANY;
            else if (most < FEW && code != 39 && code != 49 && /* not the terminal's own */
                     ((code >= 30 && code <= 47) || (code >= 90 && code <= 107)))
                most = FEW;
        }
    }
    return most;
}

static void talks(void **state)
{
    const struct look *look = *state;
    /* Figures do not change, so two pictures of the same state are equal. */
    const char *args[] = { "-n", "60", "--refresh", "60000", NULL };
    const char *env[] = { look->env, NULL };
    struct program_start start = { look->rows, look->cols, look->term, NULL, args, env, NULL };
    const char *raw;
    bool is_ascii;
    size_t n;
    int y, x;

    program_begin(&run, &start);
    sees(&run, "Talker (");
    sees(&run, ">");
    pty_send(run.s, "hello " WORLD SMILE "x");
    if (look->is_ascii) {
        sees(&run, "> hello ??????x");
    } else {
        sees(&run, "> hello " WORLD SMILE "x");
        pty_cursor(run.s, &y, &x);
        assert_int_equal(x, 2 + 6 + 2 * 3 + 1);
    }
    pty_send(run.s, "\r");
    sees(&run, look->is_ascii ? "hello ??????x" : "hello " WORLD SMILE "x");
    sees(&run, "tokens ");
    sees(&run, "token limit");
    pty_send(run.s, "\033[1;2A"); /* Shift-Up: scroll a line */
    if (look->rows > 30) {
        sees(&run, "A tour");
        sees(&run, "int main(void)");
        sees(&run, "\xe4\xbd\xa0\xe5\xa5\xbd");
        loses(&run, "**bold**"); /* Markdown is drawn, not shown */
    }
    pty_send(run.s, "\033[F");
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
    sees(&run, "memwall --open ");
    raw = pty_raw(run.s, &n);
    assert_int_equal(inks_of(raw, n, &is_ascii), look->inks);
    assert_int_equal(is_ascii, look->is_ascii);
}

/* The status bar and each layout must show these. */
static void shows_the_panes_that_fit(void **state)
{
    static const struct {
        int rows, cols;
        const char *status, *dash;
    } sizes[] = {
        { 12, 40, "ctx ", NULL },
        { 24, 80, " left", "tok/s" },
        { 40, 120, " left", "layers" },
        { 60, 200, "context ", "layers" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *args[] = { "-n", "20", NULL };
        struct program_start start = { sizes[i].rows, sizes[i].cols, NULL, NULL,
                                       args,          NULL,          NULL };

        program_begin(&run, &start);
        sees(&run, "Talker (");
        program_ask(&run, "hello", "20 tokens");
        assert_true(pty_sees_at(run.s, -1, sizes[i].status));
        if (sizes[i].dash != NULL)
            sees(&run, sizes[i].dash);
        program_quit(&run);
        program_end(&run);
    }
}

/* The model is named, and the figures are complete or left out, never cut. */
static void the_status_bar_names_the_model_from_80_columns_on(void **state)
{
    static const int widths[] = { 80, 100, 160 };

    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const char *args[] = { "-n", "20", "-c", "4096", "--disk-rate", "500M", NULL };
        struct program_start start = { 24, widths[i], NULL, NULL, args, NULL, NULL };

        program_begin(&run, &start);
        sees(&run, "Talker (");
        program_ask(&run, "hello", "20 tokens");
        assert_true(pty_sees_at(run.s, -1, "Talker"));
        assert_true(pty_sees_at(run.s, -1, "tok/s"));
        assert_true(pty_sees_at(run.s, -1, "500 MB/s"));
        /* The counts can be subtracted. */
        assert_true(pty_sees_at(run.s, -1, widths[i] < 160 ? "ctx " : " of 4,096, "));
        assert_true(widths[i] < 160 || pty_sees_at(run.s, -1, "kv f16"));
        program_quit(&run);
        program_end(&run);
    }
}

/* Pinned weights that are still read in the background are not ready. */
static void ready_waits_for_the_weights(void **state)
{
    const char *args[] = { "-n", "20", "-b", "256M", "--disk-rate", "4M", NULL };
    struct program_start start = { .rows = 40, .cols = 120, .args = args };

    (void)state;
    start.model = program_slow_model();
    program_begin(&run, &start);
    assert_true(pty_sees_at(run.s, -1, "loading "));
    assert_true(pty_sees_at(run.s, -1, " %"));
    program_line(&run, "/disk-rate none");
    sees(&run, "Change: disk-rate none");
    pty_send(run.s, "\r");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_quit(&run);
}

static void f2_and_control_t_cycle_the_panes(void **state)
{
    struct program_start start = { .rows = 40, .cols = 120 };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    sees(&run, "memory");
    pty_send(run.s, "\033OQ"); /* F2: the dashboard alone */
    loses(&run, "Talker (");
    sees(&run, "memory");
    pty_send(run.s, "\024"); /* Ctrl-T: the chat alone */
    loses(&run, "memory");
    sees(&run, "Talker (");
    pty_send(run.s, "\024");
    sees(&run, "memory");
    sees(&run, "Talker (");
    program_quit(&run);
}

/* A screen of three cells by two is too small to draw on, but not a reason to end. */
static void a_screen_that_is_too_small_reports_it_and_goes_on(void **state)
{
    struct program_start start = { .rows = 2, .cols = 12 };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "too small");
    pty_resize(run.s, 24, 80);
    sees(&run, "Talker (");
    pty_resize(run.s, 1, 2);
    pty_resize(run.s, 24, 80);
    loses(&run, "too small");
    program_sync(&run);
    program_quit(&run);
}

int main(void)
{
    enum { N_LOOK = sizeof looks / sizeof looks[0], N_REST = 5 };
    struct CMUnitTest tests[N_REST + N_LOOK] = {
        cmocka_unit_test_teardown(shows_the_panes_that_fit, end_run),
        cmocka_unit_test_teardown(the_status_bar_names_the_model_from_80_columns_on, end_run),
        cmocka_unit_test_teardown(ready_waits_for_the_weights, end_run),
        cmocka_unit_test_teardown(f2_and_control_t_cycle_the_panes, end_run),
        cmocka_unit_test_teardown(a_screen_that_is_too_small_reports_it_and_goes_on, end_run),
    };

    for (size_t i = 0; i < N_LOOK; i++)
        tests[N_REST + i] =
            (struct CMUnitTest){ looks[i].name, talks, NULL, end_run, &looks[i] };
    return cmocka_run_group_tests_name("looks", tests, program_group_setup,
                                       program_group_teardown);
}
