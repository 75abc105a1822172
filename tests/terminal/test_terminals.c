/*
 * Output for many kinds of terminals, with a recording.  It is memwall itself, with `replay`,
 * which needs no model.
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

#include "tests/lib/pty_screen.h"

static struct pty_screen *screen;

#define MAX_ENV 4

/* Paths of memwall and of the recording. */
static void paths(char *program, char *recording)
{
    const char *build = getenv("MW_BUILDDIR"), *source = getenv("MW_SRCDIR");

    snprintf(program, 4096, "%s/memwall", build == NULL ? "." : build);
    snprintf(recording, 4096, "%s/tests/data/dash/session.jsonl",
             source == NULL ? "." : source);
}

static void replay(int rows, int cols, const char *term, const char *const *more,
                   const char *option, const char *value)
{
    const char *env[MAX_ENV + 3] = { "NO_COLOR", "COLORTERM", NULL };
    char program[4096], recording[4096];
    const char *argv[] = { program, "replay", recording, "--sync-frames", option, value, NULL };
    struct pty_start o = { rows, cols, term, env, argv };

    for (int i = 0; more != NULL && more[i] != NULL && i < MAX_ENV; i++)
        env[2 + i] = more[i], env[3 + i] = NULL;
    paths(program, recording);
    screen = pty_new(&o);
}

static int end_replay(void **state)
{
    (void)state;
    pty_free(screen);
    screen = NULL;
    return 0;
}

#define sees(text) assert_true(pty_sees(screen, text))

/* Returns whether this was written. */
static bool sent(const char *bytes)
{
    size_t n;
    const char *raw = pty_raw(screen, &n);

    return memmem(raw, n, bytes, strlen(bytes)) != NULL;
}

/* Returns whether this colour was set, alone or with other attributes. */
static bool sent_colour(const char *colour)
{
    char sequence[40];
    size_t n = strlen(colour);

    for (const char *before = "[;"; *before != '\0'; before++)
        for (const char *after = "m;"; *after != '\0'; after++) {
            snprintf(sequence, sizeof sequence, "%c%s%c", *before, colour, *after);
            assert_true(n + 2 < sizeof sequence);
            if (sent(sequence))
                return true;
        }
    return false;
}

/* Returns whether colour a was set after colour b, or b never. */
static bool is_newer_colour(const char *a, const char *b)
{
    size_t n;
    const char *raw = pty_raw(screen, &n);

    for (; n > 0; n--) {
        if (raw[n - 1] != 'm' && raw[n - 1] != ';')
            continue;
        if (n > strlen(a) && memcmp(raw + n - 1 - strlen(a), a, strlen(a)) == 0)
            return true;
        if (n > strlen(b) && memcmp(raw + n - 1 - strlen(b), b, strlen(b)) == 0)
            return false;
    }
    return false;
}

/* Returns whether a colour other than the terminal's own was set. */
static bool sent_colours(void)
{
    char sequence[16];

    for (int base = 30; base <= 40; base += 10)
        for (int i = 0; i <= 8; i++) {
            static const char ends[] = "m;";

            for (int k = 0; k < 2; k++) {
                snprintf(sequence, sizeof sequence, "\033[%d%c", base + i, ends[k]);
                if (sent(sequence))
                    return true;
            }
        }
    return false;
}

static void leave(void)
{
    pty_send(screen, "q");
    assert_int_equal(pty_end(screen), 0);
    assert_true(pty_is_cooked(screen));
}

/* ---- colours ---- */

struct colours {
    const char *name, *term, *env[2], *option, *value, *wants;
};

static struct colours colours[] = {
    { "sends_no_colour_where_none_is_asked_for",
      "xterm-256color",
      { NULL },
      "--color",
      "never",
      NULL },
    { "sends_colours_that_are_asked_for_above_NO_COLOR",
      "xterm-256color",
      { "NO_COLOR=1" },
      "--color",
      "always",
      "38;5;75" },
    { "takes_an_empty_NO_COLOR_for_none",
      "xterm-256color",
      { "NO_COLOR=" },
      NULL,
      NULL,
      "38;5;75" },
    { "sends_true_colours_where_COLORTERM_promises_them",
      "xterm-256color",
      { "COLORTERM=truecolor" },
      NULL,
      NULL,
      "38;2;95;175;255" },
    { "sends_true_colours_in_tmux",
      "tmux-256color",
      { "COLORTERM=24bit", "TMUX=/tmp/x,1,0" },
      NULL,
      NULL,
      "38;2;95;175;255" },
    { "sends_true_colours_to_a_terminal_without_an_entry",
      "wezterm-of-tomorrow",
      { "COLORTERM=truecolor" },
      NULL,
      NULL,
      "38;2;95;175;255" },
    { "sends_GNU_screen_256_colours",
      "screen-256color",
      { "COLORTERM=truecolor", "STY=1.x" },
      NULL,
      NULL,
      "38;5;75" },
    { "sends_8_colours_where_there_are_no_more", "xterm", { NULL }, NULL, NULL, "36" },
    { "sends_no_true_colours_under_NO_COLOR",
      "xterm-256color",
      { "COLORTERM=truecolor", "NO_COLOR=1" },
      NULL,
      NULL,
      NULL },
};

static void sends_colours(void **state)
{
    const struct colours *c = *state;

    replay(24, 80, c->term, c->env, c->option, c->value);
    sees("memory");
    pty_send(screen, " ");
    sees("paused");
    if (c->wants != NULL)
        assert_true(sent_colour(c->wants));
    else
        assert_false(sent_colours());
    leave();
}

/* ---- the background ---- */

#define ACCENT_DARK  "38;5;75"
#define ACCENT_LIGHT "38;5;25"
#define ASKS         "\033]11;?"

struct ground {
    const char *name, *term, *env[2], *answer;
    bool is_asked, is_light;
};

static struct ground grounds[] = {
    { "is_light_on_a_terminal_that_reports_white",
      "xterm-256color",
      { NULL },
      "rgb:ffff/ffff/ffff",
      true,
      true },
    { "is_dark_on_a_terminal_that_reports_black",
      "xterm-256color",
      { "COLORFGBG=0;15" },
      "rgb:0000/0000/0000",
      true,
      false },
    { "is_dark_on_a_terminal_that_reports_nothing",
      "xterm-256color",
      { NULL },
      NULL,
      true,
      false },
    { "is_light_where_COLORFGBG_says_it",
      "xterm-256color",
      { "COLORFGBG=0;15" },
      NULL,
      true,
      true },
    { "does_not_ask_GNU_screen", "screen-256color", { NULL }, NULL, false, false },
    { "asks_tmux_under_the_name_of_screen",
      "screen-256color",
      { "TMUX=/tmp/x,1,0" },
      "rgb:ffff/ffff/ffff",
      true,
      true },
};

static void takes_the_background(void **state)
{
    const struct ground *g = *state;

    replay(24, 80, g->term, g->env, NULL, NULL);
    pty_set_background(screen, g->answer);
    sees("memory");
    pty_send(screen, " ");
    sees("paused");
    assert_true(sent(ASKS) == g->is_asked);
    /* A report that comes late, on a busy machine, changes the colours of the first frame. */
    assert_true(is_newer_colour(ACCENT_LIGHT, ACCENT_DARK) == g->is_light);
    assert_true(is_newer_colour(ACCENT_DARK, ACCENT_LIGHT) == !g->is_light);
    leave();
}

static void does_not_ask_a_linux_console(void **state)
{
    (void)state;
    replay(24, 80, "linux", NULL, NULL, NULL);
    sees("memory");
    assert_false(sent("\033]"));
    leave();
}

static void does_not_ask_without_colours(void **state)
{
    (void)state;
    replay(24, 80, NULL, NULL, "--color", "never");
    sees("memory");
    assert_false(sent(ASKS));
    leave();
}

static void takes_a_late_report_of_the_background(void **state)
{
    (void)state;
    replay(24, 80, NULL, NULL, NULL, NULL);
    sees("memory");
    assert_false(sent_colour(ACCENT_LIGHT));
    pty_send(screen, "\033]11;rgb:ffff/ffff/ffff\033\\ ");
    sees("paused");
    assert_true(sent_colour(ACCENT_LIGHT));
    leave();
}

/* The keys come between the halves of the report, as they do from a person who types. */
static void keeps_the_keys_typed_while_it_asks(void **state)
{
    (void)state;
    replay(24, 80, NULL, NULL, NULL, NULL);
    pty_set_background(screen, "rgb:ffff/ffff/ffff\033\\ +\033]10;?");
    sees("paused");
    sees("x2 ");
    assert_true(sent_colour(ACCENT_LIGHT));
    leave();
}

/* ---- characters ---- */

static void writes_ascii_if_the_locale_is_not_utf8(void **state)
{
    static const char *const env[] = { "LC_ALL=C", NULL };
    const char *raw;
    size_t n;

    (void)state;
    replay(24, 80, "vt100", env, NULL, NULL);
    sees("memory --");
    pty_send(screen, "\033[F"); /* End */
    sees("end ");
    leave();
    raw = pty_raw(screen, &n);
    for (size_t i = 0; i < n; i++)
        assert_true((unsigned char)raw[i] < 0x80);
}

static void writes_ascii_if_requested(void **state)
{
    (void)state;
    replay(24, 80, NULL, NULL, "--ascii", NULL);
    sees("memory --");
    leave();
}

static void draws_no_braille_on_a_linux_console(void **state)
{
    (void)state;
    replay(40, 100, "linux", NULL, NULL, NULL);
    sees("memory \xe2\x94\x80");
    pty_send(screen, "\033[F");
    sees("end ");
    assert_false(sent("\xe2\xa3")); /* U+28C0 to U+28FF */
    assert_true(sent("\xe2\x96\x88"));
    leave();
}

static void prints_text_if_nothing_can_be_drawn(void **state)
{
    (void)state;
    replay(24, 80, "dumb", NULL, NULL, NULL);
    assert_int_equal(pty_end(screen), 0);
    assert_false(sent("\033"));
    assert_true(sent("disk-bound"));
}

/* ---- sizes ---- */

struct size {
    const char *name;
    int rows, cols;
};

static struct size sizes[] = {
    { "plays_at_40x12", 12, 40 },   { "plays_at_80x24", 24, 80 },
    { "plays_at_120x36", 36, 120 }, { "plays_at_160x50", 50, 160 },
    { "plays_at_250x70", 70, 250 }, { "plays_at_20x5", 5, 20 },
};

static void plays(void **state)
{
    const struct size *s = *state;

    replay(s->rows, s->cols, NULL, NULL, "--speed", "1000");
    sees("end ");
    if (s->cols >= 40)
        sees("0.65 tok/s");
    leave();
}

/* ---- the keys of replay ---- */

static void pauses_steps_and_changes_its_speed(void **state)
{
    (void)state;
    replay(30, 100, NULL, NULL, "--speed", "0.01");
    sees("plays");
    sees("x0.01");
    pty_send(screen, " ");
    sees("paused");
    sees("loading");
    pty_send(screen, ".....");
    sees("prefill");
    pty_send(screen, "......");
    sees("decode");
    pty_send(screen, "++");
    sees("x0.04");
    pty_send(screen, "-");
    sees("x0.02");
    pty_send(screen, "1");
    sees("x1 ");
    pty_send(screen, "\033[F");
    sees("end ");
    pty_send(screen, "\033[H");
    sees("paused");
    sees(" 0.0 of");
    leave();
}

static void inspects_a_layer(void **state)
{
    (void)state;
    replay(40, 100, NULL, NULL, NULL, NULL);
    sees("layers");
    pty_send(screen, " \033[F\033[B");
    sees("layer 0, sliding");
    pty_send(screen, "\033[A");
    sees("output head");
    pty_send(screen, "\033");
    assert_true(pty_loses(screen, "output head"));
    leave();
}

/* Run below a shell that controls jobs: a process without a parent in its session is never
 * stopped. */
static void stops_and_comes_back(void **state)
{
    static const char script[] =
        "set -m; \"$0\" replay --sync-frames \"$1\"; echo it stopped; read x; fg; "
        "echo it ended";
    char program[4096], recording[4096];
    const char *argv[] = { "/bin/sh", "-c", script, program, recording, NULL };
    struct pty_start o = { 24, 80, NULL, NULL, argv };

    (void)state;
    paths(program, recording);
    screen = pty_new(&o);
    sees("memory");
    pty_send(screen, " ");
    sees("paused");
    pty_send(screen, "\032");
    sees("it stopped");
    assert_false(pty_is_alternate(screen));
    assert_true(pty_is_cooked(screen));
    pty_send(screen, "\n");
    sees("paused");
    assert_true(pty_is_alternate(screen));
    pty_send(screen, "q");
    sees("it ended");
    assert_true(pty_is_cooked(screen));
}

/* The bar names the key, and the help is that of the chat. */
static void a_replay_explains_the_dashboard(void **state)
{
    (void)state;
    replay(40, 160, NULL, NULL, NULL, NULL);
    sees("?: help, q: leave");
    pty_send(screen, "?");
    sees("\u2500 The dashboard \u2500");
    pty_send(screen, "borrowed");
    sees("borrow");
    pty_send(screen, "\033");
    assert_true(pty_loses(screen, "The dashboard"));
    pty_send(screen, "\033OP");
    sees("\u2500 The dashboard \u2500");
    pty_send(screen, "\033OP");
    assert_true(pty_loses(screen, "The dashboard"));
    pty_send(screen, "q");
    assert_int_equal(pty_end(screen), 0);
}

int main(void)
{
    enum {
        N_COLOUR = sizeof colours / sizeof colours[0],
        N_SIZE = sizeof sizes / sizeof sizes[0],
        N_GROUND = sizeof grounds / sizeof grounds[0],
        N_REST = 12
    };
    struct CMUnitTest tests[N_COLOUR + N_SIZE + N_GROUND + N_REST] = {
        cmocka_unit_test_teardown(does_not_ask_a_linux_console, end_replay),
        cmocka_unit_test_teardown(a_replay_explains_the_dashboard, end_replay),
        cmocka_unit_test_teardown(does_not_ask_without_colours, end_replay),
        cmocka_unit_test_teardown(takes_a_late_report_of_the_background, end_replay),
        cmocka_unit_test_teardown(keeps_the_keys_typed_while_it_asks, end_replay),
        cmocka_unit_test_teardown(writes_ascii_if_the_locale_is_not_utf8, end_replay),
        cmocka_unit_test_teardown(writes_ascii_if_requested, end_replay),
        cmocka_unit_test_teardown(draws_no_braille_on_a_linux_console, end_replay),
        cmocka_unit_test_teardown(prints_text_if_nothing_can_be_drawn, end_replay),
        cmocka_unit_test_teardown(pauses_steps_and_changes_its_speed, end_replay),
        cmocka_unit_test_teardown(inspects_a_layer, end_replay),
        cmocka_unit_test_teardown(stops_and_comes_back, end_replay),
    };

    for (size_t i = 0; i < N_COLOUR; i++)
        tests[N_REST + i] = (struct CMUnitTest){ colours[i].name, sends_colours, NULL,
                                                 end_replay, &colours[i] };
    for (size_t i = 0; i < N_SIZE; i++)
        tests[N_REST + N_COLOUR + i] =
            (struct CMUnitTest){ sizes[i].name, plays, NULL, end_replay, &sizes[i] };
    for (size_t i = 0; i < N_GROUND; i++)
        tests[N_REST + N_COLOUR + N_SIZE + i] =
            (struct CMUnitTest){ grounds[i].name, takes_the_background, NULL, end_replay,
                                 &grounds[i] };
    return cmocka_run_group_tests_name("terminals", tests, NULL, NULL);
}
