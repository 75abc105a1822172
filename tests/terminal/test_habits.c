/*
 * The habits of people who come from other programs: the names of their commands, "exit", a
 * slash wherever they are.
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
#include "ui/talk/commands.h"

static void begin(const char *const *args)
{
    program_begin_talk(&run, args);
}

/* ---- other names ---- */

static const char *const names[][2] = {
    { "exit", "quit" },
    { "bye", "quit" },
    { "new", "clear" },
    { "reset", "clear" },
    { "?", "help" },
    { "regenerate", "retry" },
    { "edit", "undo" },
    { "tokens", "stats" },
    { "context", "ctx" },
    { "num_ctx", "ctx" },
    { "budget", "memory" },
    { "temperature", "temp" },
    { "models", "model" },
    { "info", "stats" },
    { "search", "find" },
    { "top_k", "top-k" },
    { "top_p", "top-p" },
    { "add", "file" },
    { "resume", "chats" },
    { "num_predict", "predict" },
    { "max-tokens", "predict" },
    { "settings", "set" },
    { "repeat_penalty", "repeat-penalty" },
};

static void names_of_other_programs_find_the_command(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct slash_command *c = command_find(names[i][0], strlen(names[i][0]));

        if (c == NULL || strcmp(c->name, names[i][1]) != 0)
            fail_msg("/%s is /%s, not /%s", names[i][0], c == NULL ? "?" : c->name,
                     names[i][1]);
    }
    assert_null(command_find("", 0));
    assert_null(command_find("bye ", 4));
    assert_string_equal(command_match("bud", 3)->name, "memory");
    assert_string_equal(command_match("te", 2)->name, "temp"); /* names come first */
}

/* No other name hides a command, and none belongs to two. */
static void every_other_name_is_of_one_command(void **state)
{
    (void)state;
    for (const struct slash_command *c = command_list(); c->name != NULL; c++)
        for (const char *at = c->also == NULL ? "" : c->also; *at != '\0';) {
            size_t n = strcspn(at, " ");
            const struct slash_command *found = command_find(at, n);

            if (found != c)
                fail_msg("/%.*s of /%s is also of /%s", (int)n, at, c->name, found->name);
            at += n + strspn(at + n, " ");
        }
}

static void other_names_run_complete_and_are_in_the_help(void **state)
{
    (void)state;
    begin(NULL);
    program_ask(&run, "/temperature 0.25", "the temperature is 0.25");
    program_ask(&run, "/budget", "the budget is");
    program_ask(&run, "/top_k 7", "top-k is 7");
    pty_send(run.s, "/temperatu\t");
    assert_true(pty_sees_at(run.s, -2, "> /temperature"));
    pty_send(run.s, "\003");
    program_sync(&run);
    pty_send(run.s, "/bud");
    sees(&run, "/budget  [SIZE]");
    sees(&run, "set the memory budget");
    pty_send(run.s, "\003");
    program_sync(&run);
    program_ask(&run, "/?", "more below");
    pty_send(run.s, "regenerate");
    sees(&run, "also /regenerate");
    pty_send(run.s, ESC);
    loses(&run, "also /regenerate");
    program_ask(&run, "/help /bye", "also       /exit, /bye");
    pty_send(run.s, ESC);
    loses(&run, "Esc: close");
    program_line(&run, "/bye");
    assert_int_equal(pty_end(run.s), 0);
}

/* Nobody who types "exit" wants an answer to it. */
static void exit_is_not_sent_before_a_question(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_ask(&run, "exit", "/quit or Ctrl-D leaves; Enter again sends \"exit\"");
    assert_true(pty_sees_at(run.s, -2, "> exit"));
    pty_send(run.s, "\003");
    program_sync(&run);
    assert_false(pty_shows(run.s, "tokens, token limit"));
    program_line(&run, "quit");
    sees(&run, "Enter again sends \"quit\"");
    pty_send(run.s, ENTER);
    sees(&run, "token limit");
    program_quit(&run);
}

/* ---- a slash is always a command ---- */

#define F9      "\033[20~"
#define F10     "\033[21~"

static void expect_command(const char *value, const char *shows)
{
    char line[40], typed[44];

    snprintf(line, sizeof line, "/temp %s", value);
    for (size_t n = 1; n <= strlen(line); n++) { /* key by key, not in one go */
        pty_send_n(run.s, line + n - 1, 1);
        snprintf(typed, sizeof typed, "> %.*s", (int)n, line);
        if (line[n - 1] != ' ') /* rows end before blanks */
            assert_true(pty_sees_at(run.s, -2, typed));
    }
    pty_send(run.s, ENTER);
    sees(&run, shows);
}

static void a_slash_is_a_command_wherever_the_view_is(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "300", NULL });
    program_ask(&run, "hello", "token limit");
    pty_send(run.s, PAGE_UP PAGE_UP);
    sees(&run, "Ctrl-F: search   End: follow");
    expect_command("0.25", "the temperature is 0.25");
    pty_send(run.s, PAGE_UP PAGE_UP);
    sees(&run, "End: follow");
    pty_send(run.s, F9);
    sees(&run, "choose a message");
    pty_send(run.s, ESC);
    loses(&run, "choose a message");
    expect_command("0.5", "the temperature is 0.5");
    program_ask(&run, "/rewind", "choose a message");
    expect_command("0.75", "the temperature is 0.75"); /* the key that ends the choice */
    program_ask(&run, "/find Line", "n: older match");
    expect_command("0.125", "the temperature is 0.125");
    pty_send(run.s, "\t"); /* to the dashboard */
    sees(&run, "1 verdict");
    expect_command("0.375", "the temperature is 0.375");
    program_quit(&run);
}

static void keys_that_end_a_choice_keep_their_meaning(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_say(&run, "hello");
    pty_send(run.s, F9);
    sees(&run, "choose a message");
    pty_send(run.s, "x");
    assert_true(pty_sees_at(run.s, -2, "> x"));
    pty_send(run.s, "\003");
    program_sync(&run);
    pty_send(run.s, F9);
    sees(&run, "choose a message");
    pty_send(run.s, "\033OP"); /* F1 */
    sees(&run, "Memory and speed");
    pty_send(run.s, ESC);
    loses(&run, "Memory and speed");
    /* Ctrl-F searches in an empty line and at the end of one, else it moves the cursor. */
    pty_send(run.s, "ab\006");
    sees(&run, "search:");
    pty_send(run.s, ESC);
    assert_true(pty_sees_at(run.s, -2, "> ab"));
    pty_send(run.s, "\001\006x");
    assert_true(pty_sees_at(run.s, -2, "> axb"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
}

/* ---- the keys on the screen ---- */

static void keys_with_a_meaning_are_shown_while_nothing_else_is(void **state)
{
    const char *args[] = { "-n", "4", NULL };
    struct program_start small = { 12, 50, NULL, NULL, args, NULL, NULL };

    (void)state;
    begin(args);
    assert_true(pty_sees_at(run.s, -3, "F1 help   / commands   F2 view"));
    assert_false(pty_shows(run.s, "F9 go back")); /* there is no message yet */
    assert_false(pty_shows(run.s, "F10 advice"));
    pty_send(run.s, F10); /* it says why it does nothing */
    assert_true(pty_loses_at(run.s, -3, "F1 help"));
    pty_send(run.s, ESC);
    assert_true(pty_sees_at(run.s, -3, "F1 help"));
    pty_send(run.s, "x");
    assert_true(pty_loses_at(run.s, -3, "F1 help"));
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -3, "F1 help"));
    program_say(&run, "hello");
    assert_true(pty_sees_at(run.s, -3, "F9 go back"));
    program_ask(&run, "/set keys off", "keys = off is in");
    assert_true(pty_loses_at(run.s, -3, "F1 help"));
    assert_true(program_is_drawn_right(&run));
    program_ask(&run, "/set keys on", "keys = on is in");
    assert_true(pty_sees_at(run.s, -3, "F1 help"));
    program_quit(&run);
    program_end(&run);
    program_begin(&run, &small);
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_sync(&run);
    assert_false(pty_shows(run.s, "F1 help"));
    program_quit(&run);
}

/* ---- mistakes ---- */

static void mistyped_commands_do_not_stay(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "/nonsense", "there is no command \"/nonsense\"");
    program_ask(&run, "/temp hot", "\"hot\" is not a number");
    assert_true(pty_loses(run.s, "/nonsense"));
    program_ask(&run, "/temp 0.5", "the temperature is 0.5");
    assert_true(pty_loses(run.s, "\"hot\""));
    program_ask(&run, "/nonsense", "there is no command \"/nonsense\"");
    program_say(&run, "hello");
    assert_true(pty_loses(run.s, "/nonsense"));
    assert_true(pty_shows(run.s, "the temperature is 0.5"));
    /* An error that nobody typed stays. */
    program_ask(&run, "/set split 99", "\"99\" is not");
    program_line(&run, "/view chat");
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_other_programs_find_the_command),
        cmocka_unit_test(every_other_name_is_of_one_command),
        cmocka_unit_test_teardown(other_names_run_complete_and_are_in_the_help, end_run),
        cmocka_unit_test_teardown(exit_is_not_sent_before_a_question, end_run),
        cmocka_unit_test_teardown(a_slash_is_a_command_wherever_the_view_is, end_run),
        cmocka_unit_test_teardown(keys_that_end_a_choice_keep_their_meaning, end_run),
        cmocka_unit_test_teardown(keys_with_a_meaning_are_shown_while_nothing_else_is, end_run),
        cmocka_unit_test_teardown(mistyped_commands_do_not_stay, end_run),
    };

    return cmocka_run_group_tests_name("habits", tests, program_group_setup,
                                       program_group_teardown);
}
