/* Files and the output of commands in a message: @FILE and !COMMAND. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

static void begin(const char *const *args)
{
    program_begin_talk(&run, args);
    program_write(&run, "notes.txt", "written in the notes\n");
    program_write(&run, "my plan.md", "written in the plan\n");
}

/* Does the saved chat have this text? */
static bool is_saved(const char *text)
{
    char *saved = program_file(&run, program_chat(&run));
    bool found = saved != NULL && strstr(saved, text) != NULL;

    free(saved);
    return found;
}

/* ---- @FILE ---- */

static void files_that_a_message_names_go_with_it(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "compare @~/notes.txt with @\"~/my plan.md\".", "2 files: ");
    sees(&run, "4 tokens, token limit");
    assert_true(pty_shows(run.s, "compare @~/notes.txt with"));
    assert_false(pty_shows(run.s, "written in the"));
    /* A message that is taken back has its files once. */
    program_ask(&run, "/undo", "with the next message: ");
    assert_true(pty_sees_at(run.s, -2, "> compare @~/notes.txt"));
    pty_send(run.s, ENTER);
    assert_true(pty_loses_at(run.s, -2, "compare"));
    sees(&run, "4 tokens, token limit");
    assert_true(pty_shows(run.s, "2 files: "));
    program_say(&run, "look at (@~/notes.txt), please");
    sees(&run, "notes.txt, 21 B");
    program_say(&run, "and @~/my\\ plan.md, as a shell has it");
    sees(&run, "my plan.md, 20 B");
    program_say(&run, "or @~/my\\ letter");
    sees(&run, "@~/my letter stays text: there is no such file");
    program_quit(&run);
    assert_true(is_saved("written in the notes"));
    assert_true(is_saved("written in the plan"));
    assert_true(is_saved("~/my plan.md:\\n```"));
}

static void a_path_may_be_quoted(void **state)
{
    static const char *const files[] = { "\"~/my plan.md\"", "'~/my plan.md'", "~/my\\ plan.md",
                                         "'~/my'\\ plan.md" };
    char line[100];

    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(line, sizeof line, "/file %s", files[i]);
        program_ask(&run, line, "my plan.md goes with the next message");
        program_ask(&run, "/file -", "no file is attached");
        program_ask(&run, "/clear", "a new chat");
    }
    /* A file that has quotes or a backslash in its name. */
    program_ask(&run, "!cd; cp notes.txt '\"as it is\"'; cp notes.txt \"it's\"", "no output");
    program_ask(&run, "/file ~/\"as it is\"", "goes with the next message");
    program_ask(&run, "/file ~/it's", "it's goes with the next message");
    program_ask(&run, "/file -", "no file is attached");
    program_say(&run, "hello");
    sees(&run, "4 tokens, token limit");
    program_line(&run, "/save \"~/a b.json\"");
    program_line(&run, "/export '~/c d.json'");
    program_line(&run, "/export ~/it's.md");
    program_line(&run, "/record \"~/r s.jsonl\"");
    program_ask(&run, "/record", "the recording is in");
    program_quit(&run);
    assert_int_equal(access(program_path(&run, "a b.json"), R_OK), 0);
    assert_int_equal(access(program_path(&run, "c d.json"), R_OK), 0);
    assert_int_equal(access(program_path(&run, "it's.md"), R_OK), 0);
    assert_int_equal(access(program_path(&run, "r s.jsonl"), R_OK), 0);
}

static void other_names_stay_text(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_say(&run, "write to a@b.c and ask @nobody or a@~/notes.txt");
    sees(&run, "> write to a@b.c and ask @nobody");
    assert_false(pty_shows(run.s, "goes with the next message"));
    program_quit(&run);
    assert_true(is_saved("ask @nobody or"));
    assert_false(is_saved("written in the notes"));
}

static void names_that_were_meant_as_files_are_named(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_say(&run, "read @missing.txt, and answer");
    sees(&run, "@missing.txt stays text: there is no such file");
    program_say(&run, "what is in @~ now?");
    sees(&run, "@~ stays text: it is not a file");
    assert_int_equal(mkfifo(program_path(&run, "pipe"), 0600), 0);
    program_say(&run, "and @~/pipe, @\"my letter\", @/no/such or @~/notes.txt");
    sees(&run, "@~/pipe stays text: it is not a file; 2 more names stay text, too");
    assert_true(pty_shows(run.s, "notes.txt, 21 B"));
    program_say(&run, "@app.route('/x') @Override @work");
    assert_false(pty_shows(run.s, "@app.route('/x') stays"));
    assert_false(pty_shows(run.s, "@Override stays"));
    program_quit(&run);
    assert_true(is_saved("read @missing.txt, and"));
}

static void a_file_that_cannot_be_attached_keeps_the_message(void **state)
{
    FILE *f;

    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    f = fopen(program_path(&run, "image"), "w");
    assert_non_null(f);
    fwrite("a\0b", 1, 3, f);
    fclose(f);
    program_ask(&run, "describe @~/notes.txt @~/image", "is not text");
    sees(&run, "the message is not sent, and no file that it names is attached");
    assert_true(pty_sees_at(run.s, -2, "> describe @~/notes.txt @~/image"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_ask(&run, "/file", "no file is attached");
    program_quit(&run);
}

static void files_after_an_at_sign_are_completed(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    pty_send(run.s, "see @~/no");
    sees(&run, "~/notes.txt"); /* the menu */
    pty_send(run.s, "\t");
    assert_true(pty_sees_at(run.s, -2, "> see @~/notes.txt"));
    pty_send(run.s, " and @~/my\t");
    assert_true(pty_sees_at(run.s, -2, "and @\"~/my plan.md\""));
    pty_send(run.s, ENTER);
    sees(&run, "2 files: ");
    program_quit(&run);
}

/* ---- !COMMAND ---- */

static void output_is_shown_and_attached(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "!cat ~/notes.txt", "$ cat ~/notes.txt");
    sees(&run, "written in the notes");
    sees(&run, "21 B of output, about ");
    assert_true(pty_shows(run.s, "with the next message: $ cat ~/notes.txt"));
    program_say(&run, "what is this?");
    sees(&run, "4 tokens, token limit");
    program_ask(&run, "!printf 'x\\033[31mred\\033[0m\\007\\r'; exit 3", "exit status 3; ");
    sees(&run, "xred");
    program_ask(&run, "/file -", "no file is attached");
    assert_true(pty_loses(run.s, "with the next message:"));
    program_ask(&run, "! true", "$ true: no output");
    program_ask(&run, "/shell echo as a command", "13 B of output, about ");
    sees(&run, "with the next message: $ echo as a command");
    program_line(&run, "/file -");
    loses(&run, "with the next message: $ echo as a command");
    program_say(&run, " !bang is a message");
    sees(&run, ">  !bang is a message");
    program_quit(&run);
    assert_true(is_saved("$ cat ~/notes.txt:\\n```\\nwritten in the notes"));
    assert_false(is_saved("as a command"));
}

static void long_output_is_shown_in_part_and_attached_in_full(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", "-c", "16k", NULL });
    program_ask(&run, "!seq 300", "(276 more lines)");
    assert_false(pty_shows(run.s, " 25 "));
    program_say(&run, "sum them");
    program_quit(&run);
    assert_true(is_saved("\\n299\\n300\\n"));
}

/* Wait until a command has made a file. */
static void waits_for(const char *name)
{
    char *text;

    while ((text = program_file(&run, name)) == NULL)
        program_sync(&run);
    free(text);
}

static void endless_output_is_bounded_and_a_command_can_be_stopped(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "!yes|head -c 200k;>~/full;yes", "running: yes|head");
    program_ask(&run, "!ls", ";yes\" still runs; Ctrl-C stops it");
    waits_for("full"); /* a pipe holds 64 KiB, so more than that were read */
    pty_send(run.s, "\003");
    sees(&run, "stopped; only the first 64.0 KiB");
    program_ask(&run, "/file -", "no file is attached");
    /* One that does not stop when it is asked to. */
    program_ask(&run, "!trap '' INT; echo begins; while :; do sleep 1; done", "running: trap");
    pty_send(run.s, "\033\003");
    sees(&run, "begins");
    sees(&run, "stopped; ");
    program_quit(&run);
}

static void processes_that_left_the_group_are_not_waited_for(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "!setsid sh -c 'touch ~/begun; exec sleep 30' &", "running: setsid");
    waits_for("begun");
    pty_send(run.s, "\003");
    sees(&run, "no output,");
    program_ask(&run, "!echo as after it", "$ echo as after it");
    program_quit(&run);
}

static void a_file_without_a_size_is_read_to_its_end(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_say(&run, "look at @/proc/version");
    program_quit(&run);
    assert_true(is_saved("/proc/version:\\n```\\nLinux version"));
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    program_ask(&run, "/file /proc/self/mem",
                "could not read \"/proc/self/mem\": Input/output error");
    program_ask(&run, "/file", "no file is attached");
    program_quit(&run);
}

/* The label of many files has whole names, their number, and their size. */
static void the_label_of_many_files_is_whole(void **state)
{
    char line[200] = "see";

    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    for (int i = 0; i < 8; i++) {
        char name[40];

        snprintf(name, sizeof name, "a-longer-name-%d.txt", i);
        program_write(&run, name, "text\n");
        snprintf(line + strlen(line), sizeof line - strlen(line), " @~/%s", name);
    }
    program_line(&run, line);
    sees(&run, "8 files: ~/a-longer-name-0.txt, ~/a-longer-name-1.txt, and 6 ");
    sees(&run, " more, 40 B, 40 tokens");
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_file_without_a_size_is_read_to_its_end, end_run),
        cmocka_unit_test_teardown(processes_that_left_the_group_are_not_waited_for, end_run),
        cmocka_unit_test_teardown(a_file_that_cannot_be_read_is_named, end_run),
        cmocka_unit_test_teardown(the_label_of_many_files_is_whole, end_run),
        cmocka_unit_test_teardown(files_that_a_message_names_go_with_it, end_run),
        cmocka_unit_test_teardown(a_path_may_be_quoted, end_run),
        cmocka_unit_test_teardown(other_names_stay_text, end_run),
        cmocka_unit_test_teardown(names_that_were_meant_as_files_are_named, end_run),
        cmocka_unit_test_teardown(a_file_that_cannot_be_attached_keeps_the_message, end_run),
        cmocka_unit_test_teardown(files_after_an_at_sign_are_completed, end_run),
        cmocka_unit_test_teardown(output_is_shown_and_attached, end_run),
        cmocka_unit_test_teardown(long_output_is_shown_in_part_and_attached_in_full, end_run),
        cmocka_unit_test_teardown(endless_output_is_bounded_and_a_command_can_be_stopped,
                                  end_run),
    };

    return cmocka_run_group_tests_name("attach", tests, program_group_setup,
                                       program_group_teardown);
}
