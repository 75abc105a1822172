/* Messages and files that do not fit the context: they are not sent, and what helps is offered.
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

/* Start with a context of 512 tokens and a file that needs more. */
static void begin(const char *option)
{
    const char *args[] = { "-n", "4", "-c", "512", option, NULL };
    struct program_start start = { 40, 120, NULL, NULL, args, NULL, NULL };
    FILE *f;

    program_begin(&run, &start);
    sees(&run, "Talker (");
    f = fopen(program_path(&run, "big.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < 300; i++)
        fprintf(f, "Line %d of a text that is too long\n", i);
    fclose(f);
}

static void attach(const char *shows)
{
    char line[600];

    snprintf(line, sizeof line, "/file %s", program_path(&run, "big.txt"));
    program_ask(&run, line, shows);
}

static void a_message_that_does_not_fit_stays_in_the_line(void **state)
{
    (void)state;
    begin(NULL);
    attach("The file does not fit the context");
    pty_send(run.s, ESC);
    loses(&run, "The file does not fit");
    program_ask(&run, "sum it up", "The message does not fit the context");
    assert_true(pty_shows(run.s, "do not fit: the context has 512 left"));
    pty_send(run.s, ESC);
    loses(&run, "The message does not fit");
    assert_true(pty_sees_at(run.s, -2, "> sum it up"));
    assert_true(pty_shows(run.s, "with the next message: big.txt") ||
                pty_shows(run.s, "do not fit: the context has 512 left"));
    /* Nothing is in the conversation, so a message that fits is answered. */
    pty_send(run.s, "\003");
    program_sync(&run);
    program_line(&run, "/file -");
    program_say(&run, "a short one");
    sees(&run, "4 tokens, token limit");
    program_quit(&run);
}

static void one_enter_makes_the_context_longer_and_sends(void **state)
{
    (void)state;
    begin(NULL);
    attach("The file does not fit the context");
    pty_send(run.s, ESC);
    loses(&run, "The file does not fit");
    program_ask(&run, "sum it up", ", and send");
    pty_send(run.s, ENTER);
    sees(&run, "now: context ");
    sees(&run, "big.txt, ");
    sees(&run, "4 tokens, token limit");
    assert_true(pty_loses_at(run.s, -2, "sum it up"));
    program_quit(&run);
}

static void a_file_is_cut_to_what_fits(void **state)
{
    char *saved;

    (void)state;
    begin(NULL);
    attach("only the first ");
    pty_send(run.s, DOWN ENTER);
    sees(&run, "go with the next message");
    program_say(&run, "sum it up");
    sees(&run, "4 tokens, token limit");
    program_quit(&run);
    saved = program_file(&run, program_chat(&run));
    assert_non_null(strstr(saved, "Line 1 of a text"));
    assert_null(strstr(saved, "Line 299 of a text"));
    assert_non_null(strstr(saved, "[cut here: the file has "));
    free(saved);
}

static void a_queued_message_comes_back_if_the_answer_leaves_no_room(void **state)
{
    const char *args[] = { "-n", "250", "-c", "512", NULL };
    struct program_start start = { 40, 120, NULL, program_slow_model(), args, NULL, NULL };
    char text[331];

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "talk", "A tour");
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    program_ask(&run, text, "1 queued; next: xxxx");
    sees(&run, "a message that waited does not fit the context any longer");
    sees(&run, "> xxxx");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
}

/* Some lines of this text and the answers to them fill the context. */
static void a_full_context_can_drop_the_oldest_turns(void **state)
{
    char text[106]; /* a row of the line */

    (void)state;
    begin(NULL);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "memory "[i % 7];
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 40 && !pty_shows(run.s, "/shift on, and send"); i++) {
        pty_send(run.s, text);
        assert_true(pty_sees_at(run.s, -2, "memory"));
        pty_send(run.s, ENTER);
        assert_true(pty_loses_at(run.s, -2, "memory")); /* the status bar has noticed it */
        assert_true(pty_sees_at(run.s, -1, "ready"));
    }
    sees(&run, "/shift on, and send");
    pty_send(run.s, DOWN ENTER);
    sees(&run, "are marked x"); /* the notice of the engine */
    sees(&run, "ready");
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_message_that_does_not_fit_stays_in_the_line, end_run),
        cmocka_unit_test_teardown(one_enter_makes_the_context_longer_and_sends, end_run),
        cmocka_unit_test_teardown(a_file_is_cut_to_what_fits, end_run),
        cmocka_unit_test_teardown(a_queued_message_comes_back_if_the_answer_leaves_no_room,
                                  end_run),
        cmocka_unit_test_teardown(a_full_context_can_drop_the_oldest_turns, end_run),
    };

    return cmocka_run_group_tests_name("too long", tests, program_group_setup,
                                       program_group_teardown);
}
