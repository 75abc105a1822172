/* /retry keeps the earlier answer; keys and a command show them in turn. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

static void ask(const char *line, const char *shown)
{
    program_line(&run, line);
    sees(&run, shown);
}

static void keys_flip_between_answers(void **state)
{
    (void)state;
    fake_begin(&run, 40, 120, NULL, NULL);
    ask("hello", "You said: hello");
    ask("/retry", "answer 2 of 2");
    sees(&run, "Again: hello");
    loses(&run, "You said: hello");
    pty_send(run.s, LEFT);
    sees(&run, "answer 1 of 2");
    sees(&run, "You said: hello");
    loses(&run, "Again: hello");
    pty_send(run.s, RIGHT);
    sees(&run, "Again: hello");
    ask("/retry", "answer 3 of 3");
    pty_send(run.s, RIGHT); /* from the last one to the first */
    sees(&run, "answer 1 of 3");
    sees(&run, "You said: hello");
}

static void they_are_saved_with_the_chat(void **state)
{
    (void)state;
    fake_begin(&run, 40, 120, NULL, NULL);
    ask("hello", "You said: hello");
    ask("/retry", "answer 2 of 2");
    pty_send(run.s, LEFT);
    sees(&run, "answer 1 of 2");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    fake_again(&run, 40, 120, (const char *[]){ "--continue", NULL });
    sees(&run, "You said: hello");
    assert_false(pty_shows(run.s, "Again: hello"));
    ask("/answer", "answer 2 of 2");
    sees(&run, "Again: hello");
    ask("/answer back", "answer 1 of 2");
    sees(&run, "You said: hello");
}

static void answers_stay_if_another_is_stopped_before_its_first_token(void **state)
{
    /* The prompt takes a second, in which Esc comes also on a busy machine. */
    (void)state;
    fake_begin(&run, 40, 120, NULL, (const char *[]){ "--pace", "25000", NULL });
    ask("slow", "You said: slow");
    ask("/retry", "answer 2 of 2");
    program_line(&run, "/retry");
    sees(&run, " of 2,000 tokens");
    pty_send(run.s, ESC);
    sees(&run, "the answer before it stays");
    sees(&run, "Again: slow");
    ask("/answer", "answer 1 of 2");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    fake_again(&run, 40, 120, (const char *[]){ "--continue", NULL });
    sees(&run, "You said: slow");
    ask("/answer", "answer 2 of 2");
}

static void a_message_or_undo_ends_the_choice(void **state)
{
    (void)state;
    fake_begin(&run, 40, 120, NULL, NULL);
    ask("/answer", "there is only one answer");
    ask("hello", "You said: hello");
    ask("/retry", "answer 2 of 2");
    ask("next", "You said: next");
    ask("/answer", "there is only one answer");
    program_line(&run, "/undo");
    sees(&run, "> next");
    pty_send(run.s, "\025");
    program_line(&run, "/undo");
    loses(&run, "Again: hello");
}

static void plain_mode_prints_the_other_answer(void **state)
{
    (void)state;
    fake_begin(&run, 40, 120, NULL, (const char *[]){ "--plain", NULL });
    ask("hello", "You said: hello");
    ask("/retry", "answer 2 of 2");
    ask("/answer back", "answer 1 of 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(keys_flip_between_answers, end_run),
        cmocka_unit_test_teardown(they_are_saved_with_the_chat, end_run),
        cmocka_unit_test_teardown(answers_stay_if_another_is_stopped_before_its_first_token,
                                  end_run),
        cmocka_unit_test_teardown(a_message_or_undo_ends_the_choice, end_run),
        cmocka_unit_test_teardown(plain_mode_prints_the_other_answer, end_run),
    };

    return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
