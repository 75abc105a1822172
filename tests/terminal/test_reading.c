/*
 * Reading an answer during and after it: it streams, the view follows or stays, keys and wheel
 * scroll, words are found, and the conversation can go back to any message.
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

#define CTRL_F    "\006"

static void begin(int rows, int cols, const char *model, const char *n)
{
    /* Figures do not change, so two pictures of the same state are equal. */
    const char *args[] = { "-c", "32k", "-n", n, "--view", "chat", "--refresh", "60000", NULL };
    struct program_start start = { rows, cols, NULL, model, args, NULL, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
}

static void an_answer_streams(void **state)
{
    (void)state;
    begin(24, 100, program_slow_model(), "0");
    program_line(&run, "hello");
    for (int i = 1; i < 60; i += 13) { /* each line while the answer is still being written */
        char line[40];

        snprintf(line, sizeof line, "Line %d: here%d", i, i);
        sees(&run, line);
        assert_true(pty_sees_at(run.s, -1, "answering"));
    }
    pty_send(run.s, ESC);
    sees(&run, "stopped");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    sees(&run, "tokens \xc2\xb7");
    program_quit(&run);
}

static void keys_and_wheel_scroll(void **state)
{
    (void)state;
    begin(24, 80, NULL, "900");
    program_ask(&run, "hello", "token limit");
    assert_false(pty_shows(run.s, "Line 2:"));
    pty_send(run.s, HOME);
    sees(&run, "> hello");
    sees(&run, "A tour");
    sees(&run, "more below");
    pty_send(run.s, PAGE_DOWN);
    loses(&run, "A tour");
    sees(&run, "Line 2:");
    pty_send(run.s, "\033[1;2B"); /* Shift-Down: scroll a line */
    program_sync(&run);
    sees(&run, "Line 2:");
    pty_send(run.s, PAGE_UP);
    sees(&run, "A tour");
    for (int i = 0; i < 30; i++)
        pty_send(run.s, "\033[<65;10;5M"); /* the wheel, downwards */
    loses(&run, "A tour");
    for (int i = 0; i < 40; i++)
        pty_send(run.s, "\033[<64;10;5M");
    sees(&run, "A tour");
    pty_send(run.s, END);
    loses(&run, "more below");
    sees(&run, "token limit");
    program_quit(&run);
}

static size_t saved_bytes(void)
{
    char *saved = program_file(&run, program_chat(&run));
    size_t n = saved == NULL ? 0 : strlen(saved);

    free(saved);
    return n;
}

/* The text at the top stays there while text is added below. */
static void the_view_stays_where_it_was_put_while_text_arrives(void **state)
{
    char *before, top[200];

    (void)state;
    begin(24, 100, program_slow_model(), "0");
    program_ask(&run, "hello", "Line 30:");
    pty_send(run.s, PAGE_UP PAGE_UP);
    sees(&run, "more below");
    program_sync(&run);
    snprintf(top, sizeof top, "%s", pty_row(run.s, 0));
    before = strdup(pty_row(run.s, 15));
    for (size_t n = saved_bytes() + 1000; saved_bytes() < n;) /* more text has come */
        pty_take(run.s, 20);
    pty_send(run.s, ESC);
    assert_true(pty_sees_at(run.s, -1, "ready"));
    assert_string_equal(pty_row(run.s, 0), top);
    assert_string_equal(pty_row(run.s, 15), before);
    free(before);
    sees(&run, "more below");
    pty_send(run.s, END);
    sees(&run, "stopped");
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

static void words_are_found_upwards_and_downwards(void **state)
{
    const char *raw;
    size_t n;

    (void)state;
    begin(24, 100, NULL, "900");
    program_ask(&run, "hello", "token limit");
    pty_send(run.s, PAGE_UP);
    sees(&run, "more below");
    pty_send(run.s, CTRL_F);
    sees(&run, "search:");
    pty_send(run.s, "here5\r"); /* also in Line 50 to 59 */
    sees(&run, "Line 59:");
    sees(&run, "n: older match");
    pty_send(run.s, "nnnnnnnnnn"); /* 58 to 50 are nine lines with two matches each */
    program_sync(&run);
    for (int i = 0; i < 40 && !pty_shows(run.s, "Line 5: here5"); i++) {
        pty_send(run.s, "n");
        program_sync(&run);
    }
    assert_true(pty_shows(run.s, "Line 5: here5"));
    pty_send(run.s, "nnnn");
    sees(&run, "no more matches");
    for (int i = 0; i < 40 && !pty_shows(run.s, "Line 59: here59"); i++) {
        pty_send(run.s, "N");
        program_sync(&run);
    }
    assert_true(pty_shows(run.s, "Line 59: here59"));
    raw = pty_raw(run.s, &n); /* a match has a background */
    assert_non_null(memmem(raw, n, "48;5;", 5));
    pty_send(run.s, CTRL_F "\xe7\xac\xac"
                           "12\xe8\xa1\x8c\r");
    sees(&run, "Line 12:");
    pty_send(run.s, CTRL_F "nowhere to be found\r");
    sees(&run, "not found");
    pty_send(run.s, END);
    sees(&run, "token limit");
    assert_true(program_is_drawn_right(&run));
    program_say(&run, "now n is typed again");
    program_quit(&run);
}

/* /find needs no scrolling first, and every match is counted. */
static void find_counts_the_matches(void **state)
{
    (void)state;
    begin(24, 100, NULL, "900");
    program_ask(&run, "hello", "token limit");
    program_ask(&run, "/find line 20", "11 of 11   n: older match");
    sees(&run, "Line 200:");
    pty_send(run.s, "n");
    sees(&run, "10 of 11   n: older match");
    pty_send(run.s, "N");
    sees(&run, "11 of 11   n: older match");
    pty_send(run.s, ESC);
    loses(&run, "n: older match");
    program_ask(&run, "/find line 2: here2 ", "1 of 1   n: older match"); /* scrolled up */
    pty_send(run.s, END);
    program_ask(&run, "/find", "search:");
    pty_send(run.s, "here30\r");
    sees(&run, "2 of 2   n: older match");
    pty_send(run.s, END);
    program_quit(&run);
}

static void f3_shows_the_raw_text(void **state)
{
    (void)state;
    begin(40, 120, NULL, "60");
    program_ask(&run, "hello", "token limit");
    sees(&run, "Some bold and slanted words");
    sees(&run, "alpha");
    pty_send(run.s, "\033OR"); /* F3 */
    sees(&run, "Some **bold** and *slanted* words");
    sees(&run, "| alpha | 11 |");
    sees(&run, "```c");
    pty_send(run.s, "\033OR");
    loses(&run, "```c");
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

static void three_turns(void)
{
    begin(40, 120, NULL, "4");
    program_ask(&run, "first question", "token limit");
    program_say(&run, "second question");
    program_say(&run, "third \xe4\xb8\x96\xe7\x95\x8c");
}

static void goes_back_to_a_message_and_edits_it(void **state)
{
    (void)state;
    three_turns();
    program_line(&run, "/rewind 2");
    loses(&run, "third");
    assert_true(pty_sees_at(run.s, -2, "> second question"));
    pty_send(run.s, "\001other \005"); /* to the start, to the end of the line */
    program_say(&run, ", again");
    sees(&run, "> other second question, again");
    sees(&run, "> first question");
    program_line(&run, "/undo");
    assert_true(pty_sees_at(run.s, -2, "> other second question, again"));
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -2, ">"));
    program_say(&run, "/retry");
    sees(&run, "> first question");
    program_ask(&run, "/rewind 4294967297", "\"4294967297\" is not the number of a message");
    program_line(&run, "/rewind 9");
    sees(&run, "is not the number of a message");
    program_quit(&run);
}

static void picks_a_message_with_the_arrows(void **state)
{
    (void)state;
    three_turns();
    pty_send(run.s, "\033[20~"); /* F9 */
    sees(&run, "choose a message");
    pty_send(run.s, UP UP "\r");
    assert_true(pty_sees_at(run.s, -2, "> first question"));
    loses(&run, "second question");
    pty_send(run.s, "\003");
    program_sync(&run);
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_answer_streams, end_run),
        cmocka_unit_test_teardown(keys_and_wheel_scroll, end_run),
        cmocka_unit_test_teardown(the_view_stays_where_it_was_put_while_text_arrives, end_run),
        cmocka_unit_test_teardown(words_are_found_upwards_and_downwards, end_run),
        cmocka_unit_test_teardown(find_counts_the_matches, end_run),
        cmocka_unit_test_teardown(f3_shows_the_raw_text, end_run),
        cmocka_unit_test_teardown(goes_back_to_a_message_and_edits_it, end_run),
        cmocka_unit_test_teardown(picks_a_message_with_the_arrows, end_run),
    };

    return cmocka_run_group_tests_name("reading", tests, program_group_setup,
                                       program_group_teardown);
}
