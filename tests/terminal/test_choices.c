/* Proposals before the program acts: plans, a full context, wrong commands. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

static void a_change_is_compared_with_the_current_plan_and_applied_by_enter(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "say something");
    sees(&run, "disk wait");
    program_line(&run, "/ctx 8k");
    sees(&run, "Change: ctx 8,192");
    sees(&run, "4,096      8,192");
    sees(&run, "nothing is evaluated again");
    pty_send(run.s, "\r");
    sees(&run, "now: context 8,192");
    program_line(&run, "/kv q8_0");
    sees(&run, "computed again");
    pty_send(run.s, "\033");
    loses(&run, "computed again");
    program_line(&run, "/kv");
    sees(&run, "keys and values are stored as f16"); /* nothing has changed */
}

/* The difference of two sizes has a sign and no word, and an empty chat has nothing to keep. */
static void a_change_of_an_empty_chat_names_only_differences(void **state)
{
    (void)state;
    fake_begin(&run, 40, 160, NULL, NULL);
    program_line(&run, "/memory 2G");
    sees(&run, "Change: memory");
    assert_true(pty_shows(run.s, "  +"));
    assert_false(pty_shows(run.s, "grows"));
    assert_false(pty_shows(run.s, "The conversation is kept"));
    pty_send(run.s, "\033");
    loses(&run, "Change: memory");
    program_line(&run, "/kv q8_0");
    sees(&run, "Change: kv q8_0");
    assert_true(pty_loses(run.s, "evaluates"));
}

/* Whether a row shows nothing but the borders of a sheet. */
static bool is_gap(const char *row)
{
    static const char border[] = "\u2502";
    bool has_border = false;

    row += strspn(row, " ");
    while (strncmp(row, border, sizeof border - 1) == 0) {
        has_border = true;
        row += sizeof border - 1;
        row += strspn(row, " ");
    }
    return has_border && *row == '\0';
}

static void a_sheet_never_has_two_empty_lines_in_a_row(void **state)
{
    int gaps = 0;

    (void)state;
    fake_begin(&run, 40, 80, NULL, NULL);
    program_line(&run, "/ctx 8k"); /* an empty chat has nothing to keep */
    sees(&run, "Change: ctx 8,192");
    for (int y = 0, in_a_row = 0; y < pty_rows(run.s); y++) {
        in_a_row = is_gap(pty_row(run.s, y)) ? in_a_row + 1 : 0;
        gaps += in_a_row > 0;
        assert_true(in_a_row < 2);
    }
    assert_int_equal(1, gaps);
}

/* The memory is taken under the new budget before the change has ended. */
static void a_budget_is_shown_while_it_is_applied(void **state)
{
    (void)state;
    fake_begin(&run, 40, 160, NULL, NULL);
    program_line(&run, "/memory 777M");
    sees(&run, "Change: memory");
    pty_send(run.s, "\r");
    sees(&run, "of 777 MiB  ");
    sees(&run, "applying");
}

static void a_refusal_names_one_budget(void **state)
{
    (void)state;
    fake_begin(&run, 40, 160, NULL, NULL);
    program_line(&run, "/memory 100M");
    sees(&run, "this needs more than the budget of 100 MiB");
    assert_true(pty_shows(run.s, "256M"));
    assert_false(pty_shows(run.s, "the budget is"));
    assert_false(pty_shows(run.s, "/kv")); /* no smaller type would be enough */
}

static void a_refusal_names_smaller_keys_and_values(void **state)
{
    (void)state;
    fake_begin(&run, 40, 160, NULL, NULL);
    program_line(&run, "/ctx 131072");
    sees(&run, "/memory 256M, /kv q8_0 or /ctx 8192 would fit");
    program_line(&run, "/ctx 250000");
    sees(&run, "/memory 256M, /kv q4_0 or /ctx 8192 would fit");
}

/* The box is over the chat; the dashboard beside it and the ends of the rows below it stay. */
static void a_sheet_is_a_box_that_leaves_the_rest_visible(void **state)
{
    (void)state;
    fake_begin(&run, 40, 160, NULL, NULL);
    program_line(&run, "say something");
    sees(&run, "disk wait");
    program_line(&run, "/ctx 8k");
    sees(&run, "\u256d\u2500 Change: ctx 8,192 \u2500");
    assert_true(pty_shows(run.s, "\u2570\u2500 Enter: apply   Esc: close \u2500"));
    assert_true(pty_shows(run.s, "disk wait"));
    assert_true(pty_shows(run.s, "verdict"));
    pty_send(run.s, "\033[<0;1;2M\033[<0;1;2m"); /* a click beside it */
    loses(&run, "Change: ctx 8,192");
    program_line(&run, "/ctx");
    sees(&run, "the context is 4,096 tokens");
}

static void f10_proposes_what_the_verdict_advises(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "say something");
    sees(&run, "71 % of each token waits; F10: /memory 2300M for ~0.70 tok/s");
    pty_send(run.s, "\033[21~");
    sees(&run, "Change: memory 2.25 GiB");
    pty_send(run.s, "\r");
    sees(&run, "budget 2.25 GiB");
}

static void a_narrow_screen_shows_the_keys_of_a_sheet(void **state)
{
    (void)state;
    fake_begin(&run, 12, 40, NULL, NULL);
    program_line(&run, "/ctx 8k");
    sees(&run, "Enter: apply   Esc: close");
    assert_true(pty_shows(run.s, " more \u2500")); /* rows below */
}

static void a_narrow_screen_wraps_the_lines_of_a_sheet(void **state)
{
    (void)state;
    fake_begin(&run, 20, 40, NULL, NULL);
    program_line(&run, "/help");
    sees(&run, "    start a new chat");
    assert_true(pty_shows(run.s, "Esc: close \u2500\u2500\u2500 +")); /* rows below */
    pty_send(run.s, "\033");
    loses(&run, "Esc: close");
    program_line(&run, "/memory 2G");
    sees(&run, "    +"); /* the change, below its row */
}

static void typing_filters_the_help_and_f1_goes_on_to_the_dashboard(void **state)
{
    (void)state;
    fake_begin(&run, 30, 130, NULL, NULL);
    pty_send(run.s, "\033OP");
    sees(&run, "\u2500 Help \u2500");
    pty_send(run.s, "Temperature");
    sees(&run, "filter: Temperature");
    sees(&run, "Answers and sampling");
    assert_true(pty_shows(run.s, "/temp [T]"));
    assert_false(pty_shows(run.s, "/clear"));
    pty_send(run.s, " nothing");
    sees(&run, "(no match)");
    pty_send(run.s, "\025screen"); /* Ctrl-U; the name of a group shows all of it */
    sees(&run, "/theme [NAME]");
    assert_true(pty_loses(run.s, "/temp [T]"));
    pty_send(run.s, "\033OP");
    sees(&run, "\u2500 The dashboard \u2500");
    assert_true(pty_shows(run.s, "verdict \u2500")); /* the dashboard is beside it */
    pty_send(run.s, "borrowed");
    sees(&run, "KV space with pinned weights");
    pty_send(run.s, "\033OP");
    sees(&run, "\u2500 Help \u2500");
    pty_send(run.s, "/"); /* a command */
    loses(&run, "\u2500 Help \u2500");
    pty_send(run.s, "why\r");
    sees(&run, "there is no answer yet");
}

/* Nobody asked for the sheet, so the second Enter of a person who types fast is not for it. */
static void a_full_context_waits_for_a_choice(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "say one");
    sees(&run, "disk wait");
    program_line(&run, "full");
    sees(&run, "The context is full");
    sees(&run, "a longer context");
    sees(&run, "drop the oldest turns, \"say one\" first");
    sees(&run, "Arrows or a digit: choose");
    pty_send(run.s, "\r\r1");
    sees(&run, "Enter: choose");
    assert_false(pty_shows(run.s, "now: context 8,192"));
    pty_send(run.s, "\r");
    sees(&run, "and so on to the end");
    sees(&run, "now: context 8,192");
}

/* The context is as long as the model was trained for. */
static void a_full_context_offers_no_more_than_was_trained(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "Fake Gemma E2B (");
    program_line(&run, "/model other-trained-4k");
    sees(&run, "Other Model");
    program_line(&run, "full");
    sees(&run, "1: a longer context"); /* there is no turn to drop */
    assert_true(pty_shows(run.s, "more than the 4,096 tokens that the model was trained for"));
    pty_send(run.s, "\033");
    loses(&run, "a longer context");
    program_line(&run, "full");
    sees(&run, "1: drop the oldest turns, \"full\" first");
    assert_true(pty_shows(run.s, "the same context; at most 3,584 tokens again"));
    assert_false(pty_shows(run.s, "a longer context"));
}

static void a_digit_without_a_choice_is_text_for_the_line(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "full");
    sees(&run, "1: a longer context");
    sees(&run, ": begin a new chat");
    pty_send(run.s, "9");
    loses(&run, "a longer context");
    assert_true(pty_sees_at(run.s, -2, "> 9"));
}

static void open_gate(const char *gate)
{
    FILE *f = fopen(gate, "w");

    assert_non_null(f);
    fclose(f);
}

/* Begin an answer that fills the context as soon as the gate is open. */
static void begin_full(char *gate, size_t n)
{
    char line[220];

    fake_begin(&run, 24, 80, NULL, (const char *[]){ "--pace", "50000", NULL });
    snprintf(gate, n, "%s/gate", run.home);
    snprintf(line, sizeof line, "full until %s", gate);
    program_line(&run, line);
    sees(&run, "not yet");
}

/* The speed in the bar is that of the last answer, which made no token. */
static void without_a_token_the_bar_shows_the_prediction(void **state)
{
    char gate[200], line[220];

    (void)state;
    fake_begin(&run, 30, 130, NULL, NULL);
    program_line(&run, "a question whose answer has many tokens");
    sees(&run, "disk wait");
    loses(&run, "next ~0.55 tok/s");
    snprintf(gate, sizeof gate, "%s/gate", run.home);
    open_gate(gate);
    snprintf(line, sizeof line, "full until %s", gate);
    program_line(&run, line);
    sees(&run, "begin a new chat");
    assert_true(pty_sees_at(run.s, -1, "next ~0.55 tok/s"));
}

static void a_full_context_does_not_come_between_the_keys_of_a_line(void **state)
{
    (void)state;
    char gate[200];

    begin_full(gate, sizeof gate);
    pty_send(run.s, "something else");
    assert_true(pty_sees_at(run.s, -2, "> something else"));
    open_gate(gate);
    sees(&run, "/continue shows what each");
    assert_true(pty_loses(run.s, "a longer context"));
    assert_true(pty_sees_at(run.s, -2, "> something else"));
}

static void a_message_that_waited_is_in_the_line_and_no_sheet_takes_its_enter(void **state)
{
    (void)state;
    char gate[200];

    begin_full(gate, sizeof gate);
    program_line(&run, "and then");
    sees(&run, "1 queued");
    open_gate(gate);
    sees(&run, "/continue shows what each");
    assert_true(pty_sees_at(run.s, -2, "> and then"));
    assert_true(pty_loses(run.s, "Enter: choose"));
    program_line(&run, "");
    sees(&run, "You said: and then");
}

static void keys_of_a_line_close_a_sheet_and_change_nothing(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "full");
    sees(&run, "a longer context");
    pty_send(run.s, "bjq okay");
    assert_true(pty_sees_at(run.s, -2, "> bjq okay"));
    loses(&run, "a longer context");
    pty_send(run.s, "\r");
    sees(&run, "You said: bjq okay");
    program_line(&run, "/ctx 8k");
    sees(&run, "Change: ctx 8,192");
    program_line(&run, "/ctx");
    sees(&run, "the context is 4,096 tokens");
    program_line(&run, "/ctx 8k");
    sees(&run, "Change: ctx 8,192");
    pty_send(run.s, "\033[200~pasted\033[201~");
    assert_true(pty_sees_at(run.s, -2, "> pasted"));
}

/* Ways to close the plan of a change without an answer to it, and with one. */
static void a_change_that_is_not_applied_is_reported(void **state)
{
    static const struct {
        const char *keys;
        bool is_answer;
    } ways[] = {
        { "hello\r", false },
        { "/ctx\r", false },
        { "\033[200~pasted\033[201~", false },
        { "\033[<0;1;2M\033[<0;1;2m", false },
        { "\033", true },
        { "\003", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        fake_begin(&run, 40, 160, NULL, NULL);
        program_line(&run, "/ctx 8k");
        sees(&run, "Change: ctx 8,192");
        pty_send(run.s, ways[i].keys);
        loses(&run, "Change: ctx 8,192");
        if (ways[i].is_answer) {
            program_line(&run, "/stats");
            sees(&run, "Statistics");
            assert_false(pty_shows(run.s, "was not applied"));
        } else {
            sees(&run, "ctx 8,192 was not applied");
        }
        program_end(&run);
    }
}

/* The longest context is in use and its types are the smallest. */
static void no_choice_that_removes_something_is_the_default(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "/ctx 8k");
    sees(&run, "Change: ctx 8,192");
    pty_send(run.s, "\r");
    sees(&run, "now: context 8,192");
    program_line(&run, "/kv q4_0");
    sees(&run, "Change: kv q4_0");
    pty_send(run.s, "\r");
    sees(&run, ", kv q4_0");
    program_line(&run, "/memory 256M");
    sees(&run, "Change: memory");
    pty_send(run.s, "\r");
    sees(&run, "budget 256 MiB");
    program_line(&run, "full");
    sees(&run, "take the last exchange back");
    assert_true(pty_loses(run.s, "a longer context"));
    pty_send(run.s, "\r\033");
    loses(&run, "take the last exchange back");
    program_line(&run, "/stats");
    sees(&run, "messages                  2"); /* nothing was removed */
}

static void a_paste_of_several_lines_is_one_message(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    pty_send(run.s, "\033[200~first\rsecond\r\nthird\033[201~");
    sees(&run, "> first");
    sees(&run, "  second");
    sees(&run, "  third");
    pty_send(run.s, "\r");
    sees(&run, "You said: first");
}

static void a_paste_without_its_end_swallows_no_keys(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    pty_send(run.s, "\033[200~no end");
    sees(&run, "> no end"); /* when no more input comes */
    pty_send(run.s, "\003");
    loses(&run, "> no end");
    program_line(&run, "hello");
    sees(&run, "You said: hello");
}

static void a_complete_answer_has_nothing_to_continue(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "say one");
    sees(&run, "disk wait");
    program_line(&run, "/continue");
    sees(&run, "the answer is complete, there is nothing to continue");
}

static void a_command_typed_while_reading_is_run(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "lines 100");
    sees(&run, "disk wait");
    pty_send(run.s, "\033[5~");
    sees(&run, "more below");
    pty_send(run.s, "/stats\r");
    sees(&run, "Statistics");
    pty_send(run.s, "\033");
    loses(&run, "Statistics");
    pty_send(run.s, "\033[5~");
    sees(&run, "more below");
    pty_send(run.s, "/ctx 8k\r");
    sees(&run, "Change: ctx 8,192");
}

static void the_strip_of_a_small_screen_grows_by_keys(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    assert_false(pty_shows(run.s, "\u2500 memory \u2500"));
    pty_send(run.s, "\033,");
    sees(&run, "\u2500 memory \u2500");
    pty_send(run.s, "\033.");
    loses(&run, "\u2500 memory \u2500");
}

/* ---- another model ---- */

static void keys_work_while_another_model_opens(void **state)
{
    char gate[200], line[220];

    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "Fake Gemma E2B (");
    snprintf(gate, sizeof gate, "%s/gate", run.home);
    snprintf(line, sizeof line, "/model other-until:%s", gate);
    program_line(&run, line);
    sees(&run, "loading");
    pty_send(run.s, "typed meanwhile");
    assert_true(pty_sees_at(run.s, -2, "> typed meanwhile"));
    pty_send(run.s, "\r");
    sees(&run, "1 queued");
    open_gate(gate);
    sees(&run, "Other Model");
    sees(&run, "You said: typed meanwhile");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            a_change_is_compared_with_the_current_plan_and_applied_by_enter, end_run),
        cmocka_unit_test_teardown(a_change_of_an_empty_chat_names_only_differences, end_run),
        cmocka_unit_test_teardown(a_sheet_never_has_two_empty_lines_in_a_row, end_run),
        cmocka_unit_test_teardown(a_budget_is_shown_while_it_is_applied, end_run),
        cmocka_unit_test_teardown(a_refusal_names_one_budget, end_run),
        cmocka_unit_test_teardown(a_refusal_names_smaller_keys_and_values, end_run),
        cmocka_unit_test_teardown(a_sheet_is_a_box_that_leaves_the_rest_visible, end_run),
        cmocka_unit_test_teardown(f10_proposes_what_the_verdict_advises, end_run),
        cmocka_unit_test_teardown(a_narrow_screen_shows_the_keys_of_a_sheet, end_run),
        cmocka_unit_test_teardown(a_narrow_screen_wraps_the_lines_of_a_sheet, end_run),
        cmocka_unit_test_teardown(typing_filters_the_help_and_f1_goes_on_to_the_dashboard,
                                  end_run),
        cmocka_unit_test_teardown(a_full_context_waits_for_a_choice, end_run),
        cmocka_unit_test_teardown(a_full_context_offers_no_more_than_was_trained, end_run),
        cmocka_unit_test_teardown(a_digit_without_a_choice_is_text_for_the_line, end_run),
        cmocka_unit_test_teardown(
            a_message_that_waited_is_in_the_line_and_no_sheet_takes_its_enter, end_run),
        cmocka_unit_test_teardown(without_a_token_the_bar_shows_the_prediction, end_run),
        cmocka_unit_test_teardown(a_full_context_does_not_come_between_the_keys_of_a_line,
                                  end_run),
        cmocka_unit_test_teardown(keys_of_a_line_close_a_sheet_and_change_nothing, end_run),
        cmocka_unit_test_teardown(a_change_that_is_not_applied_is_reported, end_run),
        cmocka_unit_test_teardown(no_choice_that_removes_something_is_the_default, end_run),
        cmocka_unit_test_teardown(a_paste_of_several_lines_is_one_message, end_run),
        cmocka_unit_test_teardown(a_paste_without_its_end_swallows_no_keys, end_run),
        cmocka_unit_test_teardown(a_complete_answer_has_nothing_to_continue, end_run),
        cmocka_unit_test_teardown(a_command_typed_while_reading_is_run, end_run),
        cmocka_unit_test_teardown(the_strip_of_a_small_screen_grows_by_keys, end_run),
        cmocka_unit_test_teardown(keys_work_while_another_model_opens, end_run),
    };

    return cmocka_run_group_tests_name("choices", tests, NULL, NULL);
}
