/* The cursor on the wall, and the way back to settings that were tried. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

static void the_cursor_chooses_a_budget(void **state)
{
    (void)state;
    fake_begin(&run, 50, 160, NULL, NULL);
    sees(&run, "\u2500 wall \u2500");
    sees(&run, "1.46 GiB ~");
    pty_send(run.s, TAB "w");
    sees(&run, "Left, Right: move  Enter: apply  c: context");
    pty_send(run.s, "\r");
    sees(&run, "this is in use; Left and Right choose another budget");
    pty_send(run.s, RIGHT);
    sees(&run, "tok/s, +");
    pty_send(run.s, LEFT LEFT);
    sees(&run, "tok/s, -");
    pty_send(run.s, RIGHT RIGHT);
    sees(&run, "tok/s, +");
    pty_send(run.s, "\r");
    sees(&run, "Change: memory");
    pty_send(run.s, "\r");
    sees(&run, "now: context 4,096, budget");
}

static void c_turns_to_the_context(void **state)
{
    (void)state;
    fake_begin(&run, 50, 160, NULL, NULL);
    sees(&run, "1.46 GiB ~");
    pty_send(run.s, TAB "wc");
    sees(&run, "wall: context");
    sees(&run, "KV ");
    pty_send(run.s, END);
    sees(&run, "8,192 ~");
    pty_send(run.s, "\r");
    sees(&run, "Change: ctx 8,192");
    pty_send(run.s, ESC);
    loses(&run, "Change: ctx 8,192");
    /* The cursor is where it was: the keys go on moving it. */
    sees(&run, "Left, Right: move  Enter: apply  c: budget");
    sees(&run, "8,192 ~");
    pty_send(run.s, "\r");
    sees(&run, "Change: ctx 8,192");
    pty_send(run.s, ESC);
    loses(&run, "Change: ctx 8,192");
    pty_send(run.s, "c");
    loses(&run, "wall: context");
}

/* Left and Right reach the wall as any panel, and Up and Down leave it. */
static void up_and_down_leave_the_wall(void **state)
{
    (void)state;
    fake_begin(&run, 50, 160, NULL, NULL);
    sees(&run, "1.46 GiB ~");
    pty_send(run.s, TAB "w");
    sees(&run, "c: context");
    pty_send(run.s, DOWN);
    sees(&run, "w: wall");
    pty_send(run.s, LEFT);
    sees(&run, "c: context");
    pty_send(run.s, UP);
    sees(&run, "w: wall");
    pty_send(run.s, "3");
    sees(&run, "wall is hidden; 3 shows it");
    loses(&run, "\u2500 wall \u2500");
    pty_send(run.s, "w");
    sees(&run, "3 wall \u2500");
    sees(&run, "c: context");
}

/* A click in the plot moves the cursor there, and Enter applies it. */
static void a_click_moves_the_cursor(void **state)
{
    char click[64];
    int y;

    (void)state;
    fake_begin(&run, 50, 160, NULL, NULL);
    sees(&run, "1.46 GiB ~");
    y = pty_find(run.s, "\u2500 wall \u2500");
    assert_true(y > 0);
    snprintf(click, sizeof click, "\033[<0;%d;%dM\033[<0;%d;%dm", 140, y + 3, 140, y + 3);
    pty_send(run.s, click);
    sees(&run, "Left, Right: move  Enter: apply");
    sees(&run, "tok/s, +");
    pty_send(run.s, "\r");
    sees(&run, "Change: memory");
}

static void on_a_small_screen_it_is_a_line_of_the_strip(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    assert_false(pty_shows(run.s, "in use"));
    pty_send(run.s, TAB);
    sees(&run, "tok/s, in use");
    pty_send(run.s, RIGHT);
    sees(&run, "tok/s, +");
    pty_send(run.s, "\r");
    sees(&run, "Change: memory");
    pty_send(run.s, ESC);
    loses(&run, "Change: memory");
    sees(&run, "tok/s, +");
    pty_send(run.s, ESC);
    loses(&run, "tok/s, +");
}

static void ascii_and_no_colour_have_the_same_content(void **state)
{
    (void)state;
    fake_begin(&run, 50, 160, "vt100", (const char *[]){ "--ascii", NULL });
    sees(&run, "1.46 GiB ~");
    sees(&run, "@");
    pty_send(run.s, TAB "w" RIGHT);
    sees(&run, "tok/s, +");
    assert_true(pty_shows(run.s, "x"));
}

static void an_answer_leaves_a_row_and_a_mark(void **state)
{
    (void)state;
    fake_begin(&run, 50, 160, NULL, NULL);
    program_line(&run, "/tried");
    sees(&run, "nothing was measured with this model yet");
    program_line(&run, "say something");
    sees(&run, "disk wait");
    program_line(&run, "/memory 2G");
    sees(&run, "Change: memory");
    pty_send(run.s, "\r");
    sees(&run, "now: context 4,096, budget 2.00 GiB");
    sees(&run, "\u25cf"); /* the budget before */
    program_line(&run, "say something else");
    sees(&run, "\u25be 2 tokens"); /* the receipt of this answer */
    program_line(&run, "/tried");
    sees(&run, "Tried settings");
    sees(&run, "> 2.00 GiB   4,096 f16");
    sees(&run, "* 1.46 GiB   4,096 f16");
    pty_send(run.s, "\r");
    sees(&run, "these settings are in use");
    program_line(&run, "/tried");
    sees(&run, "Tried settings");
    pty_send(run.s, DOWN "\r");
    sees(&run, "Change: budget 1.46 GiB, context 4,096, kv f16");
    sees(&run, "was measured with these settings just now");
    pty_send(run.s, "\r");
    sees(&run, "now: context 4,096, budget 1.46 GiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_cursor_chooses_a_budget, end_run),
        cmocka_unit_test_teardown(c_turns_to_the_context, end_run),
        cmocka_unit_test_teardown(up_and_down_leave_the_wall, end_run),
        cmocka_unit_test_teardown(a_click_moves_the_cursor, end_run),
        cmocka_unit_test_teardown(on_a_small_screen_it_is_a_line_of_the_strip, end_run),
        cmocka_unit_test_teardown(ascii_and_no_colour_have_the_same_content, end_run),
        cmocka_unit_test_teardown(an_answer_leaves_a_row_and_a_mark, end_run),
    };

    return cmocka_run_group_tests_name("wall", tests, NULL, NULL);
}
