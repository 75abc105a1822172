/* Files and the output of commands in a message: @FILE and !COMMAND. */
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

#define ESC   "\033"
#define ENTER "\r"

static struct program run;

static int end_run(void **state)
{
    (void)state;
    program_end(&run);
    return 0;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(program_path(&run, name), "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void begin(const char *const *args)
{
    struct program_start start = { 40, 120, NULL, NULL, args, NULL, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
    write_file("notes.txt", "written in the notes\n");
    write_file("my plan.md", "written in the plan\n");
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
    program_quit(&run);
    assert_true(is_saved("written in the notes"));
    assert_true(is_saved("written in the plan"));
    assert_true(is_saved("~/my plan.md:\\n```"));
}

static void names_that_are_no_files_stay_text(void **state)
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

static void a_file_that_cannot_be_attached_keeps_the_message(void **state)
{
    FILE *f;

    (void)state;
    begin((const char *[]){ "-n", "4", NULL });
    f = fopen(program_path(&run, "image"), "w");
    assert_non_null(f);
    fwrite("a\0b", 1, 3, f);
    fclose(f);
    program_ask(&run, "describe @~/image", "is not text");
    assert_true(pty_sees_at(run.s, -2, "> describe @~/image"));
    pty_send(run.s, "\003");
    program_sync(&run);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(files_that_a_message_names_go_with_it, end_run),
        cmocka_unit_test_teardown(names_that_are_no_files_stay_text, end_run),
        cmocka_unit_test_teardown(a_file_that_cannot_be_attached_keeps_the_message, end_run),
        cmocka_unit_test_teardown(files_after_an_at_sign_are_completed, end_run),
    };

    return cmocka_run_group_tests_name("attach", tests, program_group_setup,
                                       program_group_teardown);
}
