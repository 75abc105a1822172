/* /compact: a summary in place of the oldest messages, stopped, taken back, and opened again. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

/* Send a message and wait for the end of its answer. */
static void tell(const char *line, const char *reply)
{
    program_line(&run, line);
    sees(&run, reply);
    assert_true(pty_sees_at(run.s, -1, "ready"));
}

/* Say a word so often that a summary is shorter. */
static void say(const char *word)
{
    char line[600] = "", reply[80];

    for (int i = 0; i < 60; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s ", word);
    snprintf(reply, sizeof reply, "You said: %s", word);
    tell(line, reply);
}

/* Begin a chat with three exchanges; the first message is this one. */
static void begin(const char *first)
{
    fake_begin(&run, 64, 120, NULL, NULL);
    program_line(&run, first);
    sees(&run, "disk wait");
    say("two");
    tell("three", "You said: three");
}

static void ask(const char *line, const char *shown)
{
    program_line(&run, line);
    sees(&run, shown);
}

static void a_summary_takes_the_place_of_the_oldest_messages(void **state)
{
    (void)state;
    begin("say one");
    ask("/compact", "4 messages are replaced by a summary");
    assert_true(pty_shows(run.s, "x say one"));
    assert_true(pty_shows(run.s, "> [/compact] Summarise our conversation so far: 4 messages."));
    assert_true(pty_shows(run.s, "In short: one."));
    assert_true(pty_shows(run.s, "> three"));
    tell("four", "You said: four");
    /* It is the same in a chat that is opened again. */
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    fake_again(&run, 50, 120, (const char *[]){ "--continue", NULL });
    sees(&run, "> four");
    assert_true(pty_shows(run.s, "x say one"));
    assert_true(pty_shows(run.s, "In short: one."));
    assert_true(pty_shows(run.s, "> three"));
}

static void undo_brings_the_messages_back(void **state)
{
    (void)state;
    begin("say one");
    ask("/compact", "are replaced by a summary");
    ask("/undo", "the summary is taken back");
    loses(&run, "In short: one.");
    assert_true(pty_shows(run.s, "> say one"));
    assert_true(pty_shows(run.s, "> three"));
    /* A message after it is taken back first. */
    ask("/compact", "are replaced by a summary");
    tell("four", "You said: four");
    program_line(&run, "/undo");
    sees(&run, "> four"); /* in the line */
    pty_send(run.s, "\025");
    assert_true(pty_shows(run.s, "In short: one."));
    ask("/undo", "the summary is taken back");
    loses(&run, "In short: one.");
    assert_true(pty_shows(run.s, "> say one"));
}

static void stopping_it_leaves_everything_as_it_was(void **state)
{
    char key[2] = { (char)(uintptr_t)*state, '\0' };

    begin("say ten");
    ask("/compact", "word5 ");
    pty_send(run.s, key);
    sees(&run, "stopped; the conversation is as it was");
    loses(&run, "word5 ");
    assert_true(pty_shows(run.s, "> say ten"));
    assert_true(pty_shows(run.s, "> three"));
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    fake_again(&run, 50, 120, (const char *[]){ "--continue", NULL });
    sees(&run, "> three");
    assert_false(pty_shows(run.s, "word5 "));
}

static void it_keeps_as_many_exchanges_as_are_asked_for(void **state)
{
    (void)state;
    fake_begin(&run, 50, 120, NULL, NULL);
    say("one");
    say("two");
    tell("three", "You said: three");
    ask("/compact 2", "2 messages are replaced");
    ask("/undo", "the summary is taken back");
    ask("/compact 3", "there is nothing to summarise");
    ask("/compact 0", "6 messages are replaced");
    ask("/compact 0", "there is nothing to summarise"); /* but the summary */
    ask("/compact some", "is not a number of exchanges");
}

/* A question that came after a rewind is the newest thing, however many messages there are. */
static void undo_takes_back_a_question_after_a_rewind(void **state)
{
    (void)state;
    begin("say one");
    ask("/compact", "are replaced by a summary");
    program_line(&run, "/undo");
    sees(&run, "the summary is taken back");
    ask("/compact", "are replaced by a summary");
    program_line(&run, "/rewind 1");
    loses(&run, "You said: three");
    pty_send(run.s, "\025");
    tell("four", "You said: four");
    program_line(&run, "/undo");
    loses(&run, "You said: four");
    assert_true(pty_shows(run.s, "In short: one."));
    pty_send(run.s, "\025");
    /* The same in a chat that is opened again. */
    tell("five", "You said: five");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    fake_again(&run, 50, 120, (const char *[]){ "--continue", NULL });
    sees(&run, "You said: five");
    program_line(&run, "/undo");
    loses(&run, "You said: five");
    assert_true(pty_shows(run.s, "In short: one."));
}

/* A later summary has the earlier one, and undo takes one after the other back. */
static void summaries_can_follow_each_other(void **state)
{
    (void)state;
    begin("say one");
    ask("/compact", "4 messages are replaced");
    say("four");
    say("five");
    ask("/compact", "the earlier summary and 4 messages are replaced");
    assert_true(pty_shows(run.s, "> [/compact] Summarise our conversation so far: the"));
    assert_true(pty_shows(run.s, "x [/compact] Summarise our conversation so far: 4 messages."));
    ask("/undo", "the summary is taken back");
    loses(&run, "x [/compact]");
    assert_true(pty_shows(run.s, "> [/compact] Summarise our conversation so far: 4 messages."));
}

static void a_full_context_offers_it(void **state)
{
    (void)state;
    fake_begin(&run, 40, 120, NULL, NULL);
    ask("say one", "disk wait");
    say("two");
    ask("full", "The context is full");
    sees(&run, "4: a summary of the oldest messages in their place");
    sees(&run, "the model writes at most 512 tokens");
    pty_send(run.s, "4");
    sees(&run, "Enter: choose");
    pty_send(run.s, "\r");
    sees(&run, "4 messages are replaced");
    sees(&run, "and so on to the end"); /* the answer goes on */
}

/* A summary that was stopped has nothing to resume. */
static void plain_mode_says_only_that_it_was_stopped(void **state)
{
    (void)state;
    fake_begin(&run, 50, 120, NULL, (const char *[]){ "--plain", NULL });
    ask("say ten", "* 1 token");
    ask("hello", "* 3 tokens");
    ask("/compact", "word5 ");
    pty_send(run.s, "\003");
    sees(&run, "stopped; the conversation is as it was");
    assert_false(pty_shows(run.s, "/continue"));
}

static void plain_mode_has_it(void **state)
{
    (void)state;
    fake_begin(&run, 50, 120, NULL, (const char *[]){ "--plain", NULL });
    ask("lines 30", " tokens");
    ask("say three", "* 1 token");
    ask("/compact", "2 messages are replaced by a summary");
    assert_true(pty_shows(run.s, "In short: one."));
    ask("/undo", "the summary is taken back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_summary_takes_the_place_of_the_oldest_messages, end_run),
        cmocka_unit_test_teardown(undo_brings_the_messages_back, end_run),
        { "control_c_leaves_everything_as_it_was", stopping_it_leaves_everything_as_it_was, NULL,
          end_run, (void *)(uintptr_t)'\003' },
        { "escape_leaves_everything_as_it_was", stopping_it_leaves_everything_as_it_was, NULL,
          end_run, (void *)(uintptr_t)'\033' },
        cmocka_unit_test_teardown(it_keeps_as_many_exchanges_as_are_asked_for, end_run),
        cmocka_unit_test_teardown(undo_takes_back_a_question_after_a_rewind, end_run),
        cmocka_unit_test_teardown(summaries_can_follow_each_other, end_run),
        cmocka_unit_test_teardown(a_full_context_offers_it, end_run),
        cmocka_unit_test_teardown(plain_mode_says_only_that_it_was_stopped, end_run),
        cmocka_unit_test_teardown(plain_mode_has_it, end_run),
    };

    return cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
