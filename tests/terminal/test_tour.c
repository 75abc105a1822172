/* memwall demo: the tour goes on by itself and by keys, and ends when somebody types. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/talker.h"
#include "tests/terminal/program.h"

#define DEMO "program=$1; model=$6; shift 6; "
#define F10  "\033[21~"

/* An answer of some tokens, so that a step at three tokens a second takes a few seconds. */
static const char text[] = "Memory is a wall.\nThe model reads all of it.\n";

static char model[64];

static int group_setup(void **state)
{
    struct talker t = { text, false, 6, 128, NULL };
    int fd;

    snprintf(model, sizeof model, "/tmp/memwall-tour-XXXXXX");
    fd = mkstemp(model);
    close(fd);
    return fd < 0 || program_group_setup(state) != 0 ? -1 : talker_write(model, &t);
}

static int group_teardown(void **state)
{
    unlink(model);
    return program_group_teardown(state);
}

static void begin(int rows, int cols, const char *script, const char *const *args)
{
    struct program_start start = { rows, cols, NULL, model, args, NULL, script };

    program_begin(&run, &start);
}

static void begin_tour(int rows, int cols)
{
    begin(rows, cols, DEMO "exec \"$program\" demo --tour \"$model\" \"$@\"", NULL);
    sees(&run, "tour 1/4");
    sees(&run, "> What is the memory wall?");
}

/* Nothing of the demo is kept. */
static void nothing_is_kept(void)
{
    assert_null(program_chat(&run));
    assert_null(program_file(&run, ".config/memwall/config"));
}

static void the_tour_shows_four_steps_and_leaves_a_chat(void **state)
{
    (void)state;
    begin_tour(40, 120);
    sees(&run, "tour 1 of 4: the smallest budget");
    sees(&run, "disk-bound");
    sees(&run, "disk limited to ");
    sees(&run, "measured: ");
    sees(&run, "0 % of the weights pinned");
    sees(&run, "tour 2/4: larger budget"); /* by itself */
    sees(&run, "tok/s (");
    pty_send(run.s, " ");
    sees(&run, "tour 3/4: largest budget");
    sees(&run, "100 % of the weights pinned");
    pty_send(run.s, DOWN);
    sees(&run, "tour 4 of 4: /ctx 4096");
    sees(&run, "of 4,096"); /* tokens, in the panel of the KV cache */
    sees(&run, "> What is the KV cache?");
    pty_send(run.s, "\r");
    sees(&run, "That was the tour");
    loses(&run, "tour 4/4");
    sees(&run, "disk limited to ");
    program_say(&run, "hello");
    program_quit(&run);
    nothing_is_kept();
}

static void space_stops_an_answer_and_esc_ends_the_tour(void **state)
{
    (void)state;
    begin_tour(20, 60);
    sees(&run, "Memory is");
    pty_send(run.s, " ");
    sees(&run, "stopped");
    sees(&run, "tour 2/4");
    pty_send(run.s, ESC);
    sees(&run, "The tour has ended");
    loses(&run, "tour 2/4");
    program_quit(&run);
    nothing_is_kept();
}

/* The budget of a step would leave a chat that waits for the slow disk. */
static void the_chat_after_the_tour_pins_all_weights(void **state)
{
    (void)state;
    begin_tour(40, 120);
    sees(&run, "disk-bound");
    pty_send(run.s, ESC);
    sees(&run, "The tour has ended");
    sees(&run, "The budget is set to");
    sees(&run, "nothing is read from ");
    sees(&run, "disk limited to ");
    program_quit(&run);
}

/* Another budget in the middle of a step is not the step that the tour announces. */
static void a_change_of_settings_ends_the_tour(void **state)
{
    (void)state;
    begin_tour(40, 120);
    sees(&run, "F10:");
    pty_send(run.s, F10);
    sees(&run, "Change: memory");
    pty_send(run.s, "\r");
    sees(&run, "The tour has ended");
    loses(&run, "tour 1/4");
    assert_false(pty_shows(run.s, "tour 2 of 4"));
    program_quit(&run);
}

static void typing_ends_the_tour_and_loses_no_letter(void **state)
{
    (void)state;
    begin_tour(24, 80);
    pty_send(run.s, "why");
    sees(&run, "> why");
    sees(&run, "The tour has ended");
    pty_send(run.s, "\r");
    sees(&run, "tokens \xc2\xb7"); /* the first answer goes on; then the message is sent */
    loses(&run, "queued");
    program_ask(&run, "/disk-rate", "reads are limited to");
    program_quit(&run);
    nothing_is_kept();
}

static void the_tour_waits_while_somebody_reads_the_help(void **state)
{
    (void)state;
    begin_tour(24, 80);
    pty_send(run.s, ESC "OP"); /* F1 */
    sees(&run, "type: filter");
    pty_send(run.s, ESC);
    loses(&run, "type: filter");
    sees(&run, "tour 1/4");
    /* A question that is stopped before its first token comes back into the input line. */
    sees(&run, "Memory is");
    pty_send(run.s, "\003");
    sees(&run, "The tour has ended");
    program_quit(&run);
}

static void in_a_pipe_the_steps_are_printed(void **state)
{
    (void)state;
    begin(50, 120, DEMO "\"$program\" demo --tour \"$model\" \"$@\" | cat; echo done", NULL);
    sees(&run, "done");
    for (int i = 1; i <= 4; i++) {
        char step[20];

        snprintf(step, sizeof step, "* tour %d of 4", i);
        assert_true(pty_shows(run.s, step));
    }
    assert_true(pty_shows(run.s, "> What is the KV cache?"));
    assert_true(pty_shows(run.s, "* That was the tour"));
    assert_int_equal(pty_end(run.s), 0);
}

/* Returns the first number after a text on the screen. */
static double number_after(const char *words)
{
    char *all = pty_text(run.s);
    const char *at = strstr(all, words);
    double value = at != NULL ? strtod(at + strlen(words), NULL) : -1;

    free(all);
    if (value < 0)
        fail_msg("no \"%s\" on the screen", words);
    return value;
}

/* Free memory would have to hold weights, and an announcement is what is measured later. */
static void the_memory_of_its_budgets_is_used(void **state)
{
    (void)state;
    begin(60, 230, DEMO "\"$program\" demo --tour \"$model\" \"$@\" | cat; echo done", NULL);
    sees(&run, "done");
    /* The program, 3 MiB that it may still take, and what the items of a tiny model take. */
    assert_in_range(number_after("the smallest budget, ") - number_after("which holds "), 3,
                    12);
    assert_true(number_after(" peak ") <= number_after("the smallest budget, "));
    assert_true(fabs(number_after("tour 2 of 4: a budget of ") -
                     number_after("the smallest budget, ")) < 12);
    assert_true(fabs(number_after("MiB. ~") - number_after("before), ")) <= 4);
    assert_int_equal(pty_end(run.s), 0);
}

static void in_plain_mode_an_empty_line_goes_on(void **state)
{
    static const char *const plain[] = { "--plain", "--color", "never", NULL };

    (void)state;
    begin(50, 120, DEMO "exec \"$program\" demo --tour \"$model\" \"$@\"", plain);
    for (int i = 1; i <= 4; i++) {
        char step[20];

        snprintf(step, sizeof step, "* tour %d of 4", i);
        sees(&run, step);
        pty_send(run.s, "\n");
    }
    sees(&run, "* That was the tour");
    pty_send(run.s, "/quit\n");
    assert_int_equal(pty_end(run.s), 0);
    nothing_is_kept();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_tour_shows_four_steps_and_leaves_a_chat, end_run),
        cmocka_unit_test_teardown(space_stops_an_answer_and_esc_ends_the_tour, end_run),
        cmocka_unit_test_teardown(the_chat_after_the_tour_pins_all_weights, end_run),
        cmocka_unit_test_teardown(a_change_of_settings_ends_the_tour, end_run),
        cmocka_unit_test_teardown(typing_ends_the_tour_and_loses_no_letter, end_run),
        cmocka_unit_test_teardown(the_tour_waits_while_somebody_reads_the_help, end_run),
        cmocka_unit_test_teardown(in_a_pipe_the_steps_are_printed, end_run),
        cmocka_unit_test_teardown(the_memory_of_its_budgets_is_used, end_run),
        cmocka_unit_test_teardown(in_plain_mode_an_empty_line_goes_on, end_run),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
