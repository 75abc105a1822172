/* The configuration file in a chat: what /set writes, and wrong lines in it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

#define FILE_NAME ".config/memwall/config"

/* Wide enough for a message with the path of the file in one row. */
static const struct program_start start = {
    40, 220, NULL, NULL, (const char *[]){ "-n", "5", "--view", "chat", NULL }, NULL, NULL
};

static void begin(void)
{
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "/set temp 0.5", "temp = 0.5 is in"); /* makes the folder */
}

static void set_keeps_only_values_that_the_program_takes(void **state)
{
    char *file;

    (void)state;
    begin();
    program_ask(&run, "/set format nope",
                "format: \"nope\" is not a chat format; use none, gemma4");
    program_ask(&run, "/set theme beige", "theme: unknown theme \"beige\"");
    program_ask(&run, "/set model nope", "model: no file or model is named \"nope\"");
    program_ask(&run, "/set model ./no.gguf", "model: cannot open \"./no.gguf\"");
    program_quit(&run);
    file = program_file(&run, FILE_NAME);
    assert_non_null(file);
    assert_string_equal(file, "temp = 0.5\n");
    free(file);
}

static void write_config(const char *text)
{
    FILE *f = fopen(program_path(&run, FILE_NAME), "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void a_wrong_line_is_shown_and_the_chat_starts(void **state)
{
    (void)state;
    begin();
    program_quit(&run);
    write_config("format = nope\ntheme = beige\nnonsense\nmemory = 3X\ntemp = 0.25\n");
    program_again(&run, &start);
    sees(&run, "Talker (");
    sees(&run, "config: line 1: format: \"nope\" is not a chat format; use none, gemma4");
    sees(&run, "config: line 2: theme: unknown theme \"beige\"");
    sees(&run,
         "config: line 3: \"nonsense\" is not of the form key = value; the line is ignored");
    sees(&run, "config: line 4: memory: \"3X\" is not a size");
    sees(&run, "the default is used");
    program_ask(&run, "/temp", "the temperature is 0.25");
    program_say(&run, "a question");
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(set_keeps_only_values_that_the_program_takes, end_run),
        cmocka_unit_test_teardown(a_wrong_line_is_shown_and_the_chat_starts, end_run),
    };

    return cmocka_run_group_tests(tests, program_group_setup, program_group_teardown);
}
