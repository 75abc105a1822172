/*
 * Every setting: the command line, the configuration file and options_set() take the same
 * values, refuse the same values with the same sentence, and a value that is written is read
 * back.  (test_talk.c does the same with /set in a chat.)
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/command.h"
#include "src/command_line.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/setting_values.h"
#include "tests/lib/tree.h"
#include "ui/options/config_file.h"

static char path[300];

static int begin(void **state)
{
    int rc = tree_make(state);

    snprintf(path, sizeof path, "%s", tree_path("/memwall/config"));
    return rc;
}

/* The subcommands that take a row. */
static struct command taker(const struct option *row)
{
    return (struct command){ .name = "test", .bit = row->commands };
}

static const char *printed(const struct options *o, int id)
{
    static char text[2000];

    return options_print(o, (enum option_id)id, text, sizeof text);
}

static void expect_printed(const struct options *o, int id, const char *expected,
                           const char *by)
{
    if (strcmp(printed(o, id), expected) != 0)
        fail_msg("%s: %s gives \"%s\", not \"%s\"", options_table[id].name, by, printed(o, id),
                 expected);
}

static void read_file(struct options *o, int id, char **text)
{
    struct err e = ERR_INIT;

    options_default(o);
    if (config_file_read(o, options_table[id].commands, path, text, NULL, &e) != 0)
        fail_with(&e);
}

static void accepts(int id, const char *value)
{
    const struct option *row = &options_table[id];
    const struct command c = taker(row);
    struct err e = ERR_INIT;
    struct options o;
    char arg[200], expected[2000], *text, *argv[1] = { arg };

    options_default(&o);
    if (options_set(&o, (enum option_id)id, value, &e) != 0)
        fail_with(&e);
    snprintf(expected, sizeof expected, "%s", printed(&o, id));

    options_default(&o);
    if (expected[0] != '\0' && options_set(&o, (enum option_id)id, expected, &e) != 0)
        fail_with(&e);
    expect_printed(&o, id, expected, "the printed value");

    if (row->arg != NULL || strcmp(value, "on") == 0) {
        options_default(&o);
        snprintf(arg, sizeof arg, row->arg != NULL ? "--%s=%s" : "--%s", row->name, value);
        if (command_line_parse(&o, &c, 1, argv, &e) != 0)
            fail_with(&e);
        expect_printed(&o, id, expected, "the command line");
    }

    if (config_file_write(path, (enum option_id)id, value, &e) != 0)
        fail_with(&e);
    read_file(&o, id, &text);
    expect_printed(&o, id, expected, "the file");
    assert_true(options_given(&o, (enum option_id)id));
    free(text);
}

static void refuses(int id, const char *value)
{
    const struct option *row = &options_table[id];
    const struct command c = taker(row);
    struct err set = ERR_INIT, line = ERR_INIT, file = ERR_INIT, write = ERR_INIT;
    struct options o;
    char arg[200], *text, *argv[1] = { arg };

    options_default(&o);
    if (options_set(&o, (enum option_id)id, value, &set) == 0)
        fail_msg("%s takes \"%s\"", row->name, value);
    assert_false(options_given(&o, (enum option_id)id));
    if (row->arg != NULL) {
        snprintf(arg, sizeof arg, "--%s=%s", row->name, value);
        assert_int_equal(command_line_parse(&o, &c, 1, argv, &line), -1);
        assert_string_equal(line.what, set.what);
        assert_int_equal(strncmp(line.field, "--", 2), 0);
        assert_string_equal(line.field + 2, row->name);
    }

    assert_int_equal(config_file_write(path, (enum option_id)id, value, &write), -1);
    assert_string_equal(write.what, set.what);
    assert_string_equal(write.field, row->name);
    snprintf(arg, sizeof arg, "%s = \"%s\"\n", row->name, value);
    tree_put("/memwall/config", arg);
    options_default(&o);
    assert_int_equal(config_file_read(&o, row->commands, path, &text, NULL, &file), -1);
    free(text);
    if (strstr(file.what, set.what) == NULL)
        fail_msg("the file reports \"%s\" instead of \"%s\"", file.what, set.what);
    unlink(path);
}

static void every_setting_is_read_and_written_alike_everywhere(void **state)
{
    const char *value;

    (void)state;
    for (int id = 0; id < N_OPTION; id++) {
        const struct option *row = &options_table[id];

        if (row->reach == REACH_LINE)
            continue;
        for (size_t i = 0; (value = setting_value(row, true, i)) != NULL; i++)
            accepts(id, value);
        unlink(path);
        for (size_t i = 0; (value = setting_value(row, false, i)) != NULL; i++)
            refuses(id, value);
    }
}

static void every_row_is_complete(void **state)
{
    (void)state;
    for (int id = 0; id < N_OPTION; id++) {
        const struct option *row = &options_table[id];

        if (row->name == NULL)
            fail_msg("option %d has no row", id);
        assert_true(row->help != NULL && row->commands != 0);
        assert_true(row->arg != NULL || row->kind == KIND_FLAG || row->kind == KIND_FIXED ||
                    row->kind == KIND_SWITCH);
        if (row->reach == REACH_LINE)
            assert_null(row->slash);
        else
            assert_int_equal(options_find_setting(row->name, strlen(row->name)), id);
        if (row->slash != NULL && strlen(row->help) > 50)
            fail_msg("the help of /%s does not fit 80 columns", row->slash);
    }
}

static void a_setting_of_the_command_line_only_is_not_one_of_the_file(void **state)
{
    struct err e = ERR_INIT;
    struct options o;
    char *text;

    (void)state;
    tree_put("/memwall/config", "version = on\n");
    options_default(&o);
    assert_int_equal(config_file_read(&o, CMD_EVERY, path, &text, NULL, &e), -1);
    assert_string_equal(e.what, "\"version\" is not a setting");
    free(text);
}

static void expect_hint(const char *line, const char *expected)
{
    struct err e = ERR_INIT;
    struct options o;
    char text[700], hint[60], *file;

    tree_put("/memwall/config", line);
    options_default(&o);
    assert_int_equal(config_file_read(&o, CMD_EVERY, path, &file, NULL, &e), -1);
    free(file);
    err_text(&e, text, sizeof text);
    assert_non_null(strstr(text, "/memwall/config: line 2: "));
    snprintf(hint, sizeof hint, "; did you mean \"%s\"?", expected);
    if (strstr(text, hint) == NULL)
        fail_msg("no \"%s\" in: %s", hint, text);
}

/* One wrong character in each name, and in each word that is long enough. */
static void a_typing_error_in_the_file_is_recognized(void **state)
{
    char line[200], words[200];

    (void)state;
    for (int id = 0; id < N_OPTION; id++) {
        const struct option *row = &options_table[id];
        char *rest = words;

        if (row->reach == REACH_LINE || row->is_hidden)
            continue;
        snprintf(line, sizeof line, "# mine\n%s! = x\n", row->name);
        if (strlen(row->name) > 3)
            expect_hint(line, row->name);
        snprintf(words, sizeof words, "%s", row->words == NULL ? "" : row->words);
        for (const char *word; (word = strsep(&rest, " ")) != NULL;) {
            snprintf(line, sizeof line, "# mine\n%s = %s!\n", row->name, word);
            if (strlen(word) > 3)
                expect_hint(line, word);
        }
    }
    expect_hint("\n--temp = 1\n", "temp");
    expect_hint("\ncolour = never\n", "color");
}

static void writing_a_setting_keeps_the_other_lines(void **state)
{
    static const char before[] = "# mine\ntemp = 1\n\nquiet=yes # not a comment\n temp=2\nx";
    static const char after[] = "# mine\ntemp = 0.5\n\nquiet=yes # not a comment\nx\n";
    struct err e = ERR_INIT;
    char text[200];
    size_t n;
    FILE *f;

    (void)state;
    tree_put("/memwall/config", before);
    assert_int_equal(config_file_write(path, OPT_TEMP, "0.5", &e), 0);
    f = fopen(path, "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    assert_string_equal(text, after);
}

static void kv_k_and_kv_v_override_kv_in_any_order(void **state)
{
    static const char *const orders[][2] = { { "kv", "kv-k" }, { "kv-k", "kv" } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct options o;

        options_default(&o);
        for (size_t k = 0; k < 2; k++) {
            int id = options_find_setting(orders[i][k], strlen(orders[i][k]));

            assert_int_equal(
                options_set(&o, (enum option_id)id, id == OPT_KV ? "q4_0" : "q8_0", &e), 0);
        }
        assert_int_equal(o.chat.engine.kv_k, MW_KV_Q8_0);
        assert_int_equal(o.chat.engine.kv_v, MW_KV_Q4_0);
    }
}

static void values_are_said_as_they_are_given(void **state)
{
    static const struct {
        enum option_id id;
        const char *value, *said;
    } rows[] = {
        { OPT_TEMP, "100", "100" },
        { OPT_TEMP, "20", "20" },
        { OPT_TEMP, "0.12345", "0.12345" },
        { OPT_TEMP, "1e-30", "1e-30" },
        { OPT_REPEAT_PENALTY, "100.0", "100" },
        { OPT_THREADS, "auto", "auto" },
        { OPT_THREADS, "2", "2" },
        { OPT_LISTEN, "", "127.0.0.1:8080" },
        { OPT_DISK_RATE, "1", "1 B/s" },
        { OPT_DISK_RATE, "20M", "20 MB/s" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err e = ERR_INIT;
        struct options o;
        char text[200];

        options_default(&o);
        if (options_set(&o, rows[i].id, rows[i].value, &e) != 0 && rows[i].value[0] != '\0')
            fail_with(&e);
        assert_string_equal(options_say_value(&o, rows[i].id, "chat", text, sizeof text),
                            rows[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(values_are_said_as_they_are_given),
        cmocka_unit_test_setup_teardown(every_setting_is_read_and_written_alike_everywhere,
                                        begin, tree_drop),
        cmocka_unit_test_setup_teardown(
            a_setting_of_the_command_line_only_is_not_one_of_the_file, begin, tree_drop),
        cmocka_unit_test_setup_teardown(a_typing_error_in_the_file_is_recognized, begin,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(writing_a_setting_keeps_the_other_lines, begin,
                                        tree_drop),
        cmocka_unit_test(kv_k_and_kv_v_override_kv_in_any_order),
    };

    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
