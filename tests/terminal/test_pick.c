/*
 * The picker of models: `memwall` without a model in a terminal.
 *
 * The home has models in several stores.  One of them is the talker of program.h, so that a
 * chosen model answers.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/model_path.h"
#include "tests/lib/pty_screen.h"
#include "tests/lib/tree.h"
#include "tests/terminal/program.h"

#define WORLD "\xe4\xb8\x96\xe7\x95\x8c" /* two characters of two cells */

static struct pty_screen *s;

static void copy(const char *from, const char *to, mode_t mode)
{
    char bytes[65536];
    ssize_t n;
    int in = open(from, O_RDONLY), out;

    tree_put(to, "");
    out = open(tree_path(to), O_WRONLY);
    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(out, bytes, (size_t)n), n);
    assert_int_equal(fchmod(out, mode), 0);
    close(in);
    close(out);
}

static void put_model(const char *name, const char *to)
{
    copy(model_path(name), to, 0600);
}

static int begin(void **state)
{
    int rc = tree_make(state);

    tree_put("/here/x", "");
    return rc;
}

static int end(void **state)
{
    pty_free(s);
    s = NULL;
    return tree_drop(state);
}

/* Three models and a file that is not one. */
static void fill(void)
{
    copy(program_model(), "/.lmstudio/models/a/b/talker-BF16.gguf", 0600);
    put_model("gemma4-tiny-q4_0.gguf", "/.local/share/memwall/models/gemma-4-tiny-Q4_0.gguf");
    put_model("llama-tiny.gguf", "/.cache/llama.cpp/" WORLD "-F32.gguf");
    tree_put("/here/broken.gguf", "not a model");
}

static void start_program(const char *program, int rows, int cols, const char *const *args,
                          const char *variable)
{
    char home_is[600], shell[1200];
    const char *env[] = { home_is,
                          "XDG_CACHE_HOME",
                          "XDG_DATA_HOME",
                          "XDG_STATE_HOME",
                          "XDG_CONFIG_HOME",
                          "HF_HOME",
                          "HF_HUB_CACHE",
                          "OLLAMA_MODELS",
                          "LLAMA_CACHE",
                          "ACCESSIBLE",
                          "NO_COLOR",
                          variable,
                          NULL };
    const char *argv[16] = { "/bin/sh", "-c", shell, "sh", program };
    struct pty_start start = { rows, cols, NULL, env, argv };
    size_t n = 5;

    snprintf(home_is, sizeof home_is, "HOME=%s", tree_root);
    snprintf(shell, sizeof shell, "cd '%s/here' && exec \"$@\"", tree_root);
    for (size_t i = 0; args != NULL && args[i] != NULL; i++)
        argv[n++] = args[i];
    argv[n++] = "--sync-frames";
    argv[n] = NULL;
    pty_free(s);
    s = pty_new(&start);
    assert_non_null(s);
}

static const char *program(void)
{
    static char path[PATH_MAX];
    const char *build = getenv("MW_BUILDDIR");

    snprintf(path, sizeof path, "%s/memwall", build == NULL ? "." : build);
    return path;
}

static void start(int rows, int cols)
{
    start_program(program(), rows, cols, NULL, NULL);
    assert_true(pty_sees(s, "models"));
}

static void expect_end(int code)
{
    assert_int_equal(pty_end(s), code);
    assert_false(pty_is_alternate(s));
    assert_false(pty_has_modes(s));
    assert_true(pty_is_cooked(s));
}

static void lists_the_models_with_their_outlook(void **state)
{
    (void)state;
    fill();
    start(24, 80);
    assert_true(pty_sees(s, "gemma-4-tiny:Q4_0"));
    assert_true(pty_sees(s, "talker:BF16"));
    assert_true(pty_sees(s, WORLD ":F32"));
    assert_true(pty_sees(s, "unsupported"));
    pty_send(s, "gemma-4-t"); /* the guide is a Gemma 4 too */
    assert_true(pty_sees(s, "1 of "));
    assert_true(pty_sees(s, "gemma4, Q4_0, 534 K parameters"));
    assert_true(pty_sees(s, "/.local/share/memwall/models/gemma-4-tiny-Q4_0.gguf"));
    assert_true(pty_sees(s, "pinned weights"));
    assert_true(pty_shows(s, "full KV"));
    assert_false(pty_shows(s, "kv_global"));
    pty_send(s, "\033");
    expect_end(0);
}

static void enter_opens_the_highlighted_model(void **state)
{
    (void)state;
    fill();
    tree_put("/.config/memwall/config", "predict = 12\n"); /* "A tour" stays on the screen */
    start(30, 110);
    pty_send(s, "talk");
    assert_true(pty_sees(s, "1 of "));
    pty_send(s, "\r");
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "hi\r");
    assert_true(pty_sees(s, "A tour"));
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/quit\r");
    expect_end(0);
    start(24, 80); /* the model that was used last is the first one now */
    assert_true(pty_sees_at(s, 2, "> talker:BF16"));
    pty_send(s, "\033");
    expect_end(0);
    start_program(program(), 24, 80, (const char *[]){ "--continue", NULL }, NULL);
    assert_true(pty_sees(s, "A tour")); /* the chat, with its model and without the list */
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/quit\r");
    expect_end(0);
}

static void settings_are_chosen_before_loading(void **state)
{
    (void)state;
    fill();
    start(30, 120);
    pty_send(s, "talk");
    assert_true(pty_sees(s, "1 of "));
    assert_true(pty_sees(s, "< budget auto >"));
    pty_send(s, "\033[C\033[C\033[C\033[C");
    assert_true(pty_sees(s, "< budget 192 MiB >"));
    assert_true(pty_sees(s, "of 192 MiB for 4,096 tokens"));
    pty_send(s, "\033[D");
    assert_true(pty_sees(s, "of 128 MiB for 4,096 tokens"));
    pty_send(s, "\033OQ\033[D\033[D"); /* F2 */
    assert_true(pty_sees(s, "< context 1,024 >"));
    assert_true(pty_sees(s, "of 128 MiB for 1,024 tokens"));
    pty_send(s, "\033OQ\033[C");
    assert_true(pty_sees(s, "< kv q8_0 >"));
    pty_send(s, "\r");
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/memory\r");
    assert_true(pty_sees(s, "the budget is 128 MiB"));
    pty_send(s, "/ctx\r");
    assert_true(pty_sees(s, "the context is 1,024 tokens"));
    pty_send(s, "/kv\r");
    assert_true(pty_sees(s, "keys and values are stored as q8_0"));
    pty_send(s, "/quit\r");
    expect_end(0);
    /* They are the defaults of this model now, and of no other. */
    start(30, 120);
    assert_true(pty_sees_at(s, 2, "> talker:BF16"));
    assert_true(pty_sees(s, "< budget 128 MiB >"));
    assert_true(pty_shows(s, "context 1,024"));
    pty_send(s, "gemma-4-t");
    assert_true(pty_sees(s, "< budget auto >"));
    pty_send(s, "\033");
    expect_end(0);
}

static void typing_filters_and_backspace_widens(void **state)
{
    (void)state;
    fill();
    start(24, 80);
    pty_send(s, "Q4");
    assert_true(pty_loses(s, "talker"));
    pty_send(s, "\177\177");
    assert_true(pty_sees(s, "talker"));
    pty_send(s, "nothing");
    assert_true(pty_sees(s, "no model matches"));
    pty_send(s, "\r"); /* opens nothing */
    pty_send(s, "\025");
    assert_true(pty_sees(s, "talker"));
    pty_send(s, "/q4"); /* a filter may begin with q */
    assert_true(pty_loses(s, "talker"));
    assert_true(pty_sees(s, "filter: q4"));
    pty_send(s, "\003");
    expect_end(0);
}

static void q_is_a_letter_of_a_name(void **state)
{
    (void)state;
    fill();
    start(24, 80);
    pty_send(s, "qwen");
    assert_true(pty_sees(s, "filter: qwen"));
    pty_send(s, "\033");
    expect_end(0);
}

static void tab_sorts(void **state)
{
    (void)state;
    fill();
    start(24, 80);
    assert_true(pty_sees(s, "last used first"));
    pty_send(s, "\t");
    assert_true(pty_sees(s, "by name"));
    pty_send(s, HOME);
    assert_true(pty_sees_at(s, 2, "> broken"));
    pty_send(s, "\t");
    assert_true(pty_sees(s, "largest first"));
    pty_send(s, END);
    assert_true(pty_sees(s, "> broken"));
    pty_send(s, "\033[Z");
    assert_true(pty_sees(s, "by name"));
    pty_send(s, "\033");
    expect_end(0);
}

static void keys_and_the_wheel_move_through_a_long_list(void **state)
{
    char name[80];

    (void)state;
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "/here/many-%02d.gguf", i);
        tree_put(name, "not a model");
    }
    start(12, 60);
    pty_send(s, "\tmany" HOME); /* without the guide */
    assert_true(pty_sees(s, "> many-00"));
    pty_send(s, DOWN DOWN UP);
    assert_true(pty_sees(s, "> many-01"));
    pty_send(s, PAGE_DOWN);
    assert_true(pty_loses(s, "many-00"));
    pty_send(s, END);
    assert_true(pty_sees(s, "> many-59"));
    pty_send(s, "\033[<64;5;5M"); /* the wheel, up */
    assert_true(pty_sees(s, "> many-56"));
    pty_send(s, HOME "\033[<65;5;5M");
    assert_true(pty_sees(s, "> many-03"));
    pty_send(s, HOME);
    assert_true(pty_sees(s, "> many-00"));
    pty_send(s, "\033[<0;5;5M\033[<0;5;5m"); /* a click on the third row */
    assert_true(pty_sees(s, "> many-02"));
    pty_send(s, "\033");
    expect_end(0);
}

static void works_at_every_size(void **state)
{
    static const int sizes[][2] = { { 10, 40 },  { 12, 40 },  { 24, 80 },
                                    { 40, 120 }, { 60, 200 }, { 5, 20 },
                                    { 2, 10 },   { 1, 1 },    { 24, 80 } };

    (void)state;
    fill();
    start(24, 80);
    assert_true(pty_sees(s, "gemma"));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pty_resize(s, sizes[i][0], sizes[i][1]);
        if (sizes[i][0] >= 10)
            assert_true(pty_sees(s, sizes[i][1] >= 80 ? "Enter opens, Up" : "Enter opens"));
    }
    assert_true(pty_sees(s, "gemma-4-tiny:Q4_0"));
    pty_send(s, "\033");
    expect_end(0);
}

static void looks_are_those_of_the_chat(void **state)
{
    static const char *const themes[] = { "auto", "dark", "light", "high-contrast", "nord" };
    static const char *const ascii[] = { "--ascii", NULL };
    const char *raw;
    size_t n;

    (void)state;
    fill();
    for (size_t i = 0; i < sizeof themes / sizeof themes[0]; i++) {
        const char *args[] = { "--theme", themes[i], NULL };

        start_program(program(), 24, 80, args, NULL);
        assert_true(pty_sees(s, "gemma-4-tiny:Q4_0"));
        pty_send(s, "\033");
        expect_end(0);
    }
    start_program(program(), 24, 80, ascii, "NO_COLOR=1");
    assert_true(pty_sees(s, "talker"));
    assert_true(pty_sees(s, "unsupported"));
    pty_send(s, "\033");
    expect_end(0);
    raw = pty_raw(s, &n);
    assert_null(memmem(raw, n, "\033[38;", 5));
    for (size_t i = 0; i < n; i++)
        assert_true((unsigned char)raw[i] < 0x80);
}

static void signals_end_it_cleanly(void **state)
{
    (void)state;
    fill();
    start(24, 80);
    pty_signal(s, SIGTERM);
    expect_end(128 + SIGTERM);
    start(24, 80);
    pty_signal(s, SIGINT);
    expect_end(0);
}

/* The program with a guide beside it, as it is installed. */
static const char *installed(void)
{
    static char path[1024];

    copy(program(), "/prefix/bin/memwall", 0755);
    copy(program_model(), "/prefix/share/memwall/models/memwall-guide.gguf", 0600);
    snprintf(path, sizeof path, "%s/prefix/bin/memwall", tree_root);
    return path;
}

static void the_guide_opens_directly_if_there_is_no_other_model(void **state)
{
    (void)state;
    start_program(installed(), 30, 110, NULL, NULL);
    assert_true(pty_sees(s, "this is the guide, a small model that knows only memwall"));
    assert_true(pty_sees(s, "memwall list"));
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/quit\r");
    expect_end(0);
}

static void the_guide_names_questions_that_it_answers(void **state)
{
    const char *source = getenv("MW_SRCDIR");
    char guide[1024];

    (void)state;
    assert_non_null(source);
    snprintf(guide, sizeof guide, "%s/share/models/memwall-guide.gguf", source);
    copy(guide, "/here/guide.gguf", 0600);
    start_program(program(), 24, 80, (const char *[]){ "-m", "guide.gguf", NULL }, NULL);
    assert_true(pty_sees(s, "ask it, for example: what is the memory wall?"));
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/ctx 8k\r"); /* a sheet that would hide a notice in the chat */
    assert_true(pty_sees(s, "The model was trained for 4,096 tokens, fewer than"));
    pty_send(s, "\033");
    assert_true(pty_loses(s, "The model was trained"));
    pty_send(s, "/quit\r");
    expect_end(0);
}

static void a_terminal_without_a_screen_gets_the_guide(void **state)
{
    (void)state;
    fill();
    start_program(installed(), 24, 80, NULL, "TERM=unknown-terminal");
    assert_true(pty_sees(s, "this is the guide"));
    pty_send(s, "/quit\r");
    assert_int_equal(pty_end(s), 0);
}

static void the_guide_is_listed_with_other_models(void **state)
{
    (void)state;
    fill();
    start_program(installed(), 24, 80, NULL, NULL);
    assert_true(pty_sees(s, "memwall-guide"));
    assert_true(pty_sees(s, "gemma-4-tiny:Q4_0"));
    pty_send(s, "\033");
    expect_end(0);
}

static void model_switches_by_the_list_and_by_name(void **state)
{
    static const char *const args[] = { "-m", "talker", NULL };

    (void)state;
    fill();
    start_program(program(), 30, 110, args, NULL);
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/model\r");
    assert_true(pty_sees(s, "filter: "));
    assert_true(pty_shows(s, "chat"));         /* around the list */
    assert_true(pty_sees(s, "* talker:BF16")); /* the open one */
    pty_send(s, "gemma");
    assert_true(pty_sees(s, "gemma4, Q4_0"));
    pty_send(s, "\033");
    assert_true(pty_loses(s, "filter: "));
    assert_false(pty_shows(s, "opens another")); /* plain mode, which has no list, says that */
    pty_send(s, "/model\rgemma\r");
    assert_true(pty_sees(s, "loading"));
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/model talk\t");
    assert_true(pty_sees(s, "/model talker:BF16"));
    pty_send(s, "\025/model nothing-like-it\r");
    assert_true(pty_sees(s, "no file or model is named \"nothing-like-it\""));
    pty_send(s, "/model TALKER\r");
    assert_true(pty_sees(s, "loading Talker"));
    assert_true(pty_sees(s, "ready"));
    pty_send(s, "/quit\r");
    expect_end(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_the_models_with_their_outlook, begin, end),
        cmocka_unit_test_setup_teardown(enter_opens_the_highlighted_model, begin, end),
        cmocka_unit_test_setup_teardown(settings_are_chosen_before_loading, begin, end),
        cmocka_unit_test_setup_teardown(typing_filters_and_backspace_widens, begin, end),
        cmocka_unit_test_setup_teardown(q_is_a_letter_of_a_name, begin, end),
        cmocka_unit_test_setup_teardown(tab_sorts, begin, end),
        cmocka_unit_test_setup_teardown(keys_and_the_wheel_move_through_a_long_list, begin,
                                        end),
        cmocka_unit_test_setup_teardown(works_at_every_size, begin, end),
        cmocka_unit_test_setup_teardown(looks_are_those_of_the_chat, begin, end),
        cmocka_unit_test_setup_teardown(signals_end_it_cleanly, begin, end),
        cmocka_unit_test_setup_teardown(model_switches_by_the_list_and_by_name, begin, end),
        cmocka_unit_test_setup_teardown(the_guide_opens_directly_if_there_is_no_other_model,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_guide_names_questions_that_it_answers, begin, end),
        cmocka_unit_test_setup_teardown(a_terminal_without_a_screen_gets_the_guide, begin, end),
        cmocka_unit_test_setup_teardown(the_guide_is_listed_with_other_models, begin, end),
    };

    return cmocka_run_group_tests(tests, program_group_setup, program_group_teardown);
}
