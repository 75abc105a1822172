/*
 * The program is killed in the middle of an answer.  The text is on the disk, and --continue
 * resumes it.
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

static struct program_start start = { .rows = 24, .cols = 100 };

/* Returns the number after the last "Line " on the screen. */
static int last_line(void)
{
    int last = 0;

    for (int y = 0; y < pty_rows(run.s); y++) {
        const char *at = strstr(pty_row(run.s, y), "Line ");

        if (at != NULL && atoi(at + 5) > last)
            last = atoi(at + 5);
    }
    return last;
}

static void nothing_but_the_token_in_flight_is_lost(void **state)
{
    const char *args[] = { "-c", "32k", NULL };
    const char *again[] = { "-c", "32k", "--refresh", "60000", "--continue", NULL };
    char line[100];
    int shown;

    (void)state;
    start.model = program_slow_model();
    start.args = args;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello \xe4\xb8\x96\xe7\x95\x8c", "Line 30:");
    while (pty_take(run.s, 0))
        ;
    shown = last_line(); /* the last lines may have been shown only in part */
    pty_signal(run.s, SIGKILL);
    assert_int_equal(pty_end(run.s), 128 + SIGKILL);
    start.args = again;
    program_again(&run, &start);
    snprintf(line, sizeof line, "Line %d: here%d", shown - 1, shown - 1);
    sees(&run, line);
    /* The text has no gap: the lines above are the ones before it. */
    for (int i = shown - 2; i > shown - 6; i--) {
        snprintf(line, sizeof line, "Line %d: here%d there%d \xe7\xac\xac%d\xe8\xa1\x8c", i, i,
                 i, i);
        sees(&run, line);
    }
    pty_send(run.s, "\033[H");
    sees(&run, "> hello \xe4\xb8\x96\xe7\x95\x8c");
    pty_send(run.s, "\033[F");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    sees(&run, "/continue resumes the answer");
    program_line(&run, "/continue"); /* from the lost token on */
    assert_true(pty_sees_at(run.s, -1, "answering"));
    snprintf(line, sizeof line, "Line %d: here%d there%d \xe7\xac\xac%d\xe8\xa1\x8c",
             shown + 20, shown + 20, shown + 20, shown + 20);
    sees(&run, line);
    assert_false(pty_shows(run.s, "/continue resumes the answer"));
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

/* Kill it again and again, also while it starts and while it is idle. */
static void many_deaths_leave_one_chat_that_opens(void **state)
{
    const char *args[] = { "-n", "20", NULL };
    const char *again[] = { "-n", "20", "--continue", NULL };

    (void)state;
    start.model = NULL;
    start.args = args;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "message number 0");
    for (int i = 1; i < 8; i++) {
        char line[100];

        pty_signal(run.s, SIGKILL);
        assert_int_equal(pty_end(run.s), 128 + SIGKILL);
        start.args = again;
        program_again(&run, &start);
        snprintf(line, sizeof line, "> message number %d", i - 1);
        sees(&run, line);
        assert_true(pty_sees_at(run.s, -1, "ready"));
        if (i % 2 == 0) { /* in the middle of the answer or before it */
            snprintf(line, sizeof line, "> message number %d", i);
            program_ask(&run, line + 2, line);
            /* The input line shows the same text until the message is sent. */
            assert_true(pty_loses_at(run.s, -2, line));
        } else {
            snprintf(line, sizeof line, "message number %d", i);
            program_say(&run, line);
        }
    }
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
    program_again(&run, &start);
    sees(&run, "> message number 7");
    pty_send(run.s, "\033[H");
    sees(&run, "> message number 0");
    pty_send(run.s, "\033[F"); /* the slash would start a search */
    sees(&run, "> message number 7");
    program_quit(&run);
}

static void continue_resumes_the_last_chat_and_open_a_named_one(void **state)
{
    const char *args[] = { "-n", "10", NULL };
    const char *again[] = { "-n", "10", "--continue", NULL };
    const char *open[] = { "-n", "10", "--open", NULL, NULL };
    char *first;
    const char *name;

    (void)state;
    start.model = NULL;
    start.args = args;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "an early chat");
    program_quit(&run);
    name = program_chat(&run);
    first = strdup(strrchr(name, '/') + 1);
    *strstr(first, ".jsonl") = '\0';
    program_again(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "a late chat");
    program_quit(&run);
    start.args = again;
    program_again(&run, &start);
    sees(&run, "> a late chat");
    assert_false(pty_shows(run.s, "an early chat"));
    program_quit(&run);
    open[3] = first;
    start.args = open;
    program_again(&run, &start);
    sees(&run, "> an early chat");
    program_quit(&run);
    free(first);
}

static void a_chat_that_is_not_kept_leaves_nothing(void **state)
{
    const char *args[] = { "-n", "10", "--no-save", NULL };

    (void)state;
    start.model = NULL;
    start.args = args;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "a secret");
    program_ask(&run, "/save", "not saved (--no-save)");
    program_quit(&run);
    assert_null(program_chat(&run));
}

static void an_answer_that_is_taken_back_stays_in_the_file(void **state)
{
    const char *args[] = { "-n", "10", NULL };
    char *text;

    (void)state;
    start.model = NULL;
    start.args = args;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_say(&run, "a question");
    program_line(&run, "/undo");
    assert_true(pty_sees_at(run.s, -2, "> a question"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
    text = program_file(&run, program_chat(&run));
    assert_non_null(text);
    assert_non_null(strstr(text, "\"text\":\"a question\""));
    assert_non_null(strstr(text, "\"role\":\"assistant\""));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_but_the_token_in_flight_is_lost, end_run),
        cmocka_unit_test_teardown(many_deaths_leave_one_chat_that_opens, end_run),
        cmocka_unit_test_teardown(continue_resumes_the_last_chat_and_open_a_named_one, end_run),
        cmocka_unit_test_teardown(a_chat_that_is_not_kept_leaves_nothing, end_run),
        cmocka_unit_test_teardown(an_answer_that_is_taken_back_stays_in_the_file, end_run),
    };

    return cmocka_run_group_tests_name("killed", tests, program_group_setup,
                                       program_group_teardown);
}
