/*
 * Plain mode: --plain, a dumb terminal, ACCESSIBLE. Nothing is drawn, the cursor never moves
 * back, and commands and answers are lines.  Without a terminal, only the answer is printed.
 */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"
#include "ui/term/modes.h"

/* Whether the program has printed text, on the screen or past its upper edge. */
static bool has_printed(const char *text)
{
    size_t n;
    const char *raw = pty_raw(run.s, &n);

    return memmem(raw, n, text, strlen(text)) != NULL;
}

/* None but those that make Ctrl-C a signal, before anything is printed. */
static void expect_no_escapes(void)
{
    size_t n, modes = strlen(modes_control_keys("xterm-256color"));
    const char *raw = pty_raw(run.s, &n);

    if (n >= modes && memcmp(raw, modes_control_keys("xterm-256color"), modes) == 0) {
        raw += modes;
        n -= modes;
    }
    assert_null(memchr(raw, '\033', n));
    assert_false(pty_is_alternate(run.s));
}

struct way {
    const char *name, *term, *env, *option;
    const char *says; /* and this text, or NULL */
};

static struct way ways[] = {
    { "plain_by_option", NULL, NULL, "--plain", NULL },
    { "plain_on_a_dumb_terminal", "dumb", NULL, NULL, NULL },
    { "plain_where_TERM_is_empty", "", NULL, NULL, NULL },
    { "plain_where_ACCESSIBLE_is_set", NULL, "ACCESSIBLE=1", NULL, NULL },
    { "plain_on_a_terminal_of_which_nothing_is_known", "nothing-like-it", NULL, NULL,
      "continuing in plain mode" },
};

static void chats_line_by_line(void **state)
{
    const struct way *way = *state;
    const char *args[] = { "-n", "60", way->option, NULL };
    const char *env[] = { way->env, NULL };
    struct program_start start = { 40, 100, way->term, NULL, args, env, NULL };
    char *saved;

    program_begin(&run, &start);
    sees(&run, "Talker (");
    if (way->says != NULL)
        sees(&run, way->says);
    program_ask(&run, "hello \xe4\xb8\x96\xe7\x95\x8c", "int main(void)");
    sees(&run, "token limit");
    sees(&run, "\xe4\xbd\xa0\xe5\xa5\xbd");
    program_ask(&run, "/temp", "* the temperature is 0.8");
    program_ask(&run, "/temp 1e9", "error: ");
    program_ask(&run, "/nonsense", "there is no command");
    program_ask(&run, "!echo from the shell", "with the next message");
    program_ask(&run, "/file -", "no file is attached");
    program_ask(&run, "exit", "Enter sends \"exit\" to the model");
    program_line(&run, "/help");
    program_ask(&run, "/ctx 8k", "apply? y or n:");
    assert_true(has_printed("/theme [NAME]"));
    program_ask(&run, "y", "now: context 8,192");
    program_ask(&run, "/kv q8_0", "Change: kv q8_0");
    program_ask(&run, "n", "nothing was changed");
    program_line(&run, "/kv q8_0");
    program_ask(&run, "/temp 0.5", "kv q8_0 was not applied");
    program_ask(&run, "/theme light", "plain mode cannot do that");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    assert_true(pty_is_cooked(run.s));
    expect_no_escapes();
    assert_false(pty_shows(run.s, "taken back"));
    assert_false(pty_shows(run.s, "F1"));
    saved = program_file(&run, program_chat(&run));
    assert_non_null(strstr(saved, "hello"));
    free(saved);
}

static void control_c_stops_and_leaves(void **state)
{
    const char *args[] = { "-c", "32k", "--plain", NULL };
    struct program_start start = { 24, 100, NULL, program_slow_model(), args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello", "Line 2:");
    pty_send(run.s, "\003");
    sees(&run, "/continue resumes the answer");
    program_ask(&run, "/continue", "Line 40:"); /* the notice has left the screen */
    pty_send(run.s, "\003");
    sees(&run, "/continue resumes the answer");
    pty_send(run.s, "\004");
    assert_int_equal(pty_end(run.s), 0);
    expect_no_escapes();
}

/* Lines may be typed while the machine is measured, and while an answer is written. */
static void a_command_waits_for_the_message_before_it(void **state)
{
    const char *args[] = { "-n", "20", "--plain", NULL };
    struct program_start start = { 24, 100, NULL, NULL, args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    pty_send(run.s, "hello\r/continue\r");
    sees(&run, "20 more tokens");
    assert_false(has_printed("nothing to continue"));
    program_line(&run, "hello\r/undo"); /* one read brings both */
    sees(&run, "taken back");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    assert_false(has_printed("error: "));
}

static void control_c_drops_a_command_that_waits(void **state)
{
    const char *args[] = { "-c", "32k", "--plain", NULL };
    struct program_start start = { 24, 100, NULL, program_slow_model(), args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello", "Line 2:");
    program_ask(&run, "/undo", "the command waits");
    pty_send(run.s, "\003");
    sees(&run, "/continue resumes the answer");
    program_ask(&run, "/temp", "* the temperature is");
    assert_false(has_printed("taken back"));
    pty_send(run.s, "\004");
    assert_int_equal(pty_end(run.s), 0);
}

static void ends_on_SIGTERM(void **state)
{
    const char *args[] = { "--plain", NULL };
    struct program_start start = { 24, 100, NULL, NULL, args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    pty_signal(run.s, SIGTERM);
    assert_int_equal(pty_end(run.s), 128 + SIGTERM);
    assert_true(pty_is_cooked(run.s));
}

/* The other end is a pipe: the same as `memwall run`. */
static void a_pipe_gets_only_the_answer(void **state)
{
    static const char script[] =
        "echo hello | \"$@\" > \"$HOME/out\" 2> \"$HOME/err\"; echo $? done";
    const char *args[] = { "-n", "50", "-q", NULL };
    struct program_start start = { 24, 100, NULL, NULL, args, NULL, script };
    char *out, *err;

    (void)state;
    program_begin(&run, &start);
    sees(&run, "0 done");
    assert_int_equal(pty_end(run.s), 0);
    out = program_file(&run, "out");
    err = program_file(&run, "err");
    assert_non_null(out);
    assert_int_equal(strncmp(out, program_text(), 200), 0);
    assert_null(strchr(out, '\033'));
    assert_string_equal(err == NULL ? "" : err, "");
    free(out);
    free(err);
}

int main(void)
{
    enum { N_WAY = sizeof ways / sizeof ways[0], N_REST = 5 };
    struct CMUnitTest tests[N_REST + N_WAY] = {
        cmocka_unit_test_teardown(control_c_stops_and_leaves, end_run),
        cmocka_unit_test_teardown(a_command_waits_for_the_message_before_it, end_run),
        cmocka_unit_test_teardown(control_c_drops_a_command_that_waits, end_run),
        cmocka_unit_test_teardown(ends_on_SIGTERM, end_run),
        cmocka_unit_test_teardown(a_pipe_gets_only_the_answer, end_run),
    };

    for (size_t i = 0; i < N_WAY; i++)
        tests[N_REST + i] =
            (struct CMUnitTest){ ways[i].name, chats_line_by_line, NULL, end_run, &ways[i] };
    return cmocka_run_group_tests_name("plain mode", tests, program_group_setup,
                                       program_group_teardown);
}
