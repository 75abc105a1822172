/* The window around the screen: its title, the bell, and messages of the desktop. */
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
#include "ui/term/window.h"

#define FOCUS_OUT "\033[O"
#define FOCUS_IN  "\033[I"
#define MESSAGE   "\033]9;memwall: the answer has reached its limit: 4 tokens"

static void begin(const char *term, const char *const *args)
{
    static const char *const env[] = { "TMUX",        "TERM_PROGRAM",    "KITTY_WINDOW_ID",
                                       "VTE_VERSION", "KONSOLE_VERSION", NULL };
    struct program_start start = { 40, 120, term, NULL, args, env, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
}

/* Have these bytes been sent after byte `from`? */
static bool was_sent(size_t from, const char *bytes)
{
    size_t n;
    const char *raw = pty_raw(run.s, &n);

    return memmem(raw + from, n - from, bytes, strlen(bytes)) != NULL;
}

static size_t now(void)
{
    size_t n;

    pty_raw(run.s, &n);
    return n;
}

static void the_title_shows_the_state_and_is_restored(void **state)
{
    size_t from;

    (void)state;
    begin(NULL, (const char *[]){ "-n", "4", NULL });
    program_say(&run, "hello");
    program_sync(&run);
    assert_true(was_sent(0, "\033[22;0t\033]2;"));
    assert_true(was_sent(0, "\033]2;ready"));
    assert_true(was_sent(0, " - Talker - memwall\a"));
    assert_false(was_sent(0, "\033[23;0t"));
    from = now();
    program_ask(&run, "/set title off", "title = off is in");
    assert_true(was_sent(from, "\033]2;\a\033[23;0t"));
    program_ask(&run, "/set title on", "title = on is in");
    from = now();
    program_quit(&run);
    assert_true(was_sent(from, "\033[23;0t"));
}

static void a_running_answer_is_in_the_title(void **state)
{
    struct program_start start = { 40, 120, NULL, program_slow_model(), NULL, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_line(&run, "hello");
    for (int i = 0; i < 600 && !was_sent(0, "\033]2;answering, "); i++)
        pty_take(run.s, 100);
    assert_true(was_sent(0, "\033]2;answering, "));
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_quit(&run);
}

/* Terminals that are not known may print such sequences, or move the cursor. */
static void nothing_is_sent_to_other_terminals(void **state)
{
    static const char *const names[] = { "vt100", "vt220", "linux", "ansi" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        begin(names[i], (const char *[]){ "-n", "4", "--notify", "osc9", NULL });
        pty_send(run.s, FOCUS_OUT);
        program_say(&run, "hello");
        program_quit(&run);
        assert_false(was_sent(0, "\033]2;"));
        assert_false(was_sent(0, "\033[22;0t"));
        assert_false(was_sent(0, "\033[23;0t"));
        assert_false(was_sent(0, "\033]9;"));
        assert_false(was_sent(0, "\033[>")); /* modes of keys */
        assert_false(was_sent(0, "\033[<"));
        assert_false(was_sent(0, "\033[=0;1u"));
        assert_false(was_sent(0, "\033]11;")); /* the background */
        program_end(&run);
    }
}

static void without_the_focus_the_end_of_an_answer_is_announced(void **state)
{
    size_t from;

    (void)state;
    begin(NULL, (const char *[]){ "-n", "4", "--title", "off", NULL });
    program_say(&run, "hello");
    program_sync(&run);
    assert_false(was_sent(0, "\a"));
    pty_send(run.s, FOCUS_OUT);
    program_say(&run, "again");
    program_sync(&run);
    assert_true(was_sent(0, "\a" MESSAGE));
    pty_send(run.s, FOCUS_IN);
    from = now();
    program_say(&run, "once more");
    program_sync(&run);
    assert_false(was_sent(from, "\a"));
    program_ask(&run, "/set bell always", "bell = always is in");
    program_ask(&run, "/set notify off", "notify = off is in");
    from = now();
    program_say(&run, "with a bell");
    program_sync(&run);
    assert_true(was_sent(from, "\a"));
    pty_send(run.s, FOCUS_OUT);
    program_ask(&run, "/set bell off", "bell = off is in");
    from = now();
    program_say(&run, "without one");
    program_sync(&run);
    assert_false(was_sent(from, "\a"));
    assert_false(was_sent(from, "\033]9;"));
    program_quit(&run);
}

/* ---- the sequences ---- */

static void text_has_no_control_characters(void **state)
{
    char buf[400];

    (void)state;
    assert_string_equal(window_title(buf, sizeof buf, "a\033]0;b\a\xc2\x9c\xc3\xa9\n", false),
                        "\033]2;a]0;b\xc3\xa9\a");
    assert_string_equal(window_title(buf, sizeof buf, "a\xc3\xa9", true), "\033]2;a?\a");
    unsetenv("TMUX");
    assert_string_equal(
        window_message(buf, sizeof buf, UI_NOTIFY_OSC777, "a;b", "c\033\\;d", false),
        "\033]777;notify;a,b;c\\;d\a");
    assert_string_equal(window_message(buf, sizeof buf, UI_NOTIFY_OFF, "a", "b", false), "");
    setenv("TMUX", "x", 1);
    assert_string_equal(window_message(buf, sizeof buf, UI_NOTIFY_OSC99, "a", "b", false),
                        "\033Ptmux;\033\033]99;i=memwall:d=0;a\033\033\\"
                        "\033\033]99;i=memwall:p=body;b\033\033\\\033\\");
    unsetenv("TMUX");
}

static void the_way_of_messages_is_that_of_the_terminal(void **state)
{
    static const struct {
        const char *term, *name, *value;
        enum ui_notify way;
    } rows[] = {
        { "xterm-256color", "TMUX", NULL, UI_NOTIFY_OSC9 },
        { "xterm-kitty", "TMUX", NULL, UI_NOTIFY_OSC99 },
        { "xterm-256color", "KITTY_WINDOW_ID", "1", UI_NOTIFY_OSC99 },
        { "xterm-256color", "VTE_VERSION", "7000", UI_NOTIFY_OSC777 },
        { "foot", "TMUX", NULL, UI_NOTIFY_OSC777 },
        { "xterm-256color", "TERM_PROGRAM", "WezTerm", UI_NOTIFY_OSC777 },
        { "xterm-256color", "TERM_PROGRAM", "iTerm.app", UI_NOTIFY_OSC9 },
        { "linux", "TMUX", NULL, UI_NOTIFY_OFF },
        { "vt100", "KITTY_WINDOW_ID", "1", UI_NOTIFY_OFF },
    };
    static const char *const names[] = { "TMUX", "TERM_PROGRAM", "KITTY_WINDOW_ID",
                                         "VTE_VERSION" };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            unsetenv(names[k]);
        setenv("TERM", rows[i].term, 1);
        if (rows[i].value != NULL)
            setenv(rows[i].name, rows[i].value, 1);
        if (window_way(UI_NOTIFY_AUTO) != rows[i].way)
            fail_msg("row %zu: %d", i, (int)window_way(UI_NOTIFY_AUTO));
    }
    assert_int_equal(window_way(UI_NOTIFY_OSC777), UI_NOTIFY_OFF); /* on a vt100 */
}

static void a_hint_is_cut_after_a_word(void **state)
{
    (void)state;
    fake_begin(&run, 24, 52, NULL, NULL);
    pty_send(run.s, "/memory ");
    sees(&run, "/memory [SIZE]: set the memory budget: 512M, .. ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_hint_is_cut_after_a_word, end_run),
        cmocka_unit_test_teardown(the_title_shows_the_state_and_is_restored, end_run),
        cmocka_unit_test_teardown(a_running_answer_is_in_the_title, end_run),
        cmocka_unit_test_teardown(nothing_is_sent_to_other_terminals, end_run),
        cmocka_unit_test_teardown(without_the_focus_the_end_of_an_answer_is_announced, end_run),
        cmocka_unit_test(text_has_no_control_characters),
        cmocka_unit_test(the_way_of_messages_is_that_of_the_terminal),
    };

    return cmocka_run_group_tests_name("window", tests, program_group_setup,
                                       program_group_teardown);
}
