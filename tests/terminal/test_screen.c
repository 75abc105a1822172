/* The program on a terminal: start, chat, stop, leave, at several sizes and terminals. */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/terminal/program.h"

struct size {
    const char *name;
    int rows, cols;
    const char *term;
};

static struct size sizes[] = {
    { "chats_at_40x12", 12, 40, NULL },
    { "chats_at_80x24", 24, 80, NULL },
    { "chats_at_120x40", 40, 120, NULL },
    { "chats_at_200x60", 60, 200, NULL },
    { "chats_on_a_terminal_without_colours", 24, 80, "vt100" },
    { "chats_on_a_linux_console", 25, 80, "linux" },
    { "chats_in_screen", 24, 80, "screen" },
    { "chats_in_tmux", 24, 80, "tmux-256color" },
    { "chats_on_a_terminal_that_is_not_known", 24, 80, "xterm-kitty" },
    { "chats_with_eight_colours", 24, 80, "xterm" },
};

static void chats(void **state)
{
    const struct size *size = *state;

    fake_begin(&run, size->rows, size->cols, size->term, NULL);
    sees(&run, ">");
    assert_true(pty_is_alternate(run.s) || (size->term != NULL && size->rows <= 25));
    program_line(&run, "say one two three");
    sees(&run, "one two three");
    sees(&run, "tokens");
    program_line(&run, "lines 100");
    sees(&run, "line 100");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    assert_false(pty_is_alternate(run.s));
    assert_true(pty_is_cooked(run.s));
    assert_true(pty_shows(run.s, "memwall --open "));
}

static void shows_wide_text_in_its_columns(void **state)
{
    static const char nihao[] = "\xe4\xbd\xa0\xe5\xa5\xbd";

    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "wide");
    sees(&run, "done");
    sees(&run, nihao);
    pty_send(run.s, "\xe4\xb8\x96\xe7\x95\x8c\xf0\x9f\x98\x80x");
    sees(&run, "> \xe4\xb8\x96\xe7\x95\x8c\xf0\x9f\x98\x80x");
    pty_send(run.s, "\033[D\033[D\x7f"); /* before the emoji: remove one wide character */
    sees(&run, "> \xe4\xb8\x96\xf0\x9f\x98\x80x");
}

static void an_escape_sequence_of_the_model_is_shown_and_not_obeyed(void **state)
{
    const char *raw;
    size_t n;

    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "evil");
    sees(&run, "disk wait"); /* the receipt: the answer is complete */
    sees(&run, "^[[2J");
    raw = pty_raw(run.s, &n);
    assert_null(memmem(raw, n, "\033]0;", 4));
    assert_null(memmem(raw, n, "\xc2\x9b", 2));
    assert_null(memmem(raw, n, "\xe2\x80\xae", 3));
}

/* At this pace the words are on the screen for half a minute. */
static void control_c_stops_the_answer_and_keeps_its_text(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, (const char *[]){ "--pace", "100000", NULL });
    program_line(&run, "endless");
    sees(&run, "word5");
    pty_send(run.s, "\003");
    sees(&run, "stopped");
    sees(&run, "word5");
    program_line(&run, "say still here");
    sees(&run, "still here");
}

static void escape_stops_the_answer_and_leaves_the_draft(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "endless");
    sees(&run, "word20");
    pty_send(run.s, "a draft");
    sees(&run, "> a draft");
    pty_send(run.s, "\033");
    sees(&run, "stopped");
    sees(&run, "> a draft");
}

static void a_prompt_that_is_stopped_comes_back_into_the_line(void **state)
{
    const char *args[] = { "--pace", "50000", NULL };

    (void)state;
    fake_begin(&run, 24, 80, NULL, args);
    sees(&run, "ready");
    program_line(&run, "slow");
    sees(&run, " of 2,000 tokens");
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -2, "> slow"));
}

static void twice_control_c_leaves(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    pty_send(run.s, "some text");
    sees(&run, "some text");
    pty_send(run.s, "\003");
    loses(&run, "some text");
    pty_send(run.s, "\003");
    sees(&run, "again");
    pty_send(run.s, "\003\003"); /* press it twice: the first may have come too long ago */
    assert_int_equal(pty_end(run.s), 0);
    assert_true(pty_is_cooked(run.s));
}

static void a_line_between_two_control_c_keeps_the_chat(void **state)
{
    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    sees(&run, "ready");
    pty_send(run.s, "\003");
    sees(&run, "again");
    program_line(&run, "/temp 0.5");
    sees(&run, "the temperature is 0.5");
    pty_send(run.s, "\003");
    sees(&run, "again");
    program_line(&run, "/temp 0.25");
    sees(&run, "the temperature is 0.25");
}

static void a_message_typed_during_an_answer_waits(void **state)
{
    char gate[200], line[220];
    FILE *f;

    (void)state;
    fake_begin(&run, 24, 80, NULL, NULL);
    snprintf(gate, sizeof gate, "%s/gate", run.home);
    snprintf(line, sizeof line, "until %s", gate);
    program_line(&run, line);
    sees(&run, "not yet");
    program_line(&run, "say second");
    sees(&run, "queued; next");
    f = fopen(gate, "w");
    assert_non_null(f);
    fclose(f);
    sees(&run, "opened");
    sees(&run, "> say second");
    loses(&run, "queued; next");
}

/* Returns the number before text in any row, without its commas; -1: it is not shown. */
static long number_before(const char *text)
{
    int y = pty_find(run.s, text);
    const char *row = y < 0 ? NULL : pty_row(run.s, y), *at;
    long number = 0, place = 1;

    at = row == NULL ? NULL : strstr(row, text);
    for (; at != NULL && at > row && strchr("0123456789,", at[-1]) != NULL; at--)
        if (at[-1] != ',') {
            number += (at[-1] - '0') * place;
            place *= 10;
        }
    return place == 1 ? -1 : number;
}

static void chat_and_dashboard_show_the_same_progress_of_a_prompt(void **state)
{
    const char *args[] = { "--pace", "30000", NULL };
    int n_seen = 0;

    (void)state;
    fake_begin(&run, 50, 160, NULL, args);
    program_line(&run, "slow");
    sees(&run, " / 2,000 tokens");
    while (pty_shows(run.s, " / 2,000 tokens")) {
        long chat = number_before(" of 2,000 tokens");

        if (chat >= 0) {
            assert_int_equal(chat, number_before(" / 2,000 tokens"));
            n_seen++;
        }
        pty_take(run.s, 100);
    }
    assert_true(n_seen > 10);
}

/* A line that failed is not in the way of the next one, whatever was wrong with it. */
static void up_brings_back_a_command_that_failed(void **state)
{
    static const char *const lines[] = { "/nonsense 1", "/temp 1e9", "/help everything" };

    (void)state;
    fake_begin(&run, 30, 100, NULL, NULL);
    sees(&run, ">");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char shown[40];

        snprintf(shown, sizeof shown, "> %s", lines[i]);
        program_line(&run, lines[i]);
        sees(&run, "! ");
        assert_true(pty_loses_at(run.s, -2, lines[i]));
        pty_send(run.s, "\033[A");
        assert_true(pty_sees_at(run.s, -2, shown));
        pty_send(run.s, "\003");
        assert_true(pty_loses_at(run.s, -2, lines[i]));
    }
}

/* Nor does the change displace the figures that people look for. */
static void the_bar_has_the_state_and_a_change_that_waits(void **state)
{
    static const int sizes_of_bar[][2] = { { 24, 80 }, { 30, 100 }, { 50, 160 } };

    (void)state;
    for (size_t i = 0; i < sizeof sizes_of_bar / sizeof sizes_of_bar[0]; i++) {
        const char *bar;

        fake_begin(&run, sizes_of_bar[i][0], sizes_of_bar[i][1], NULL, NULL);
        sees(&run, ">");
        program_line(&run, "endless");
        sees(&run, "word20");
        program_line(&run, "/kv q8_0");
        sees(&run, "It applies after this answer.");
        pty_send(run.s, "\r");
        assert_true(pty_sees_at(run.s, -1, "after the answer: kv q8_0"));
        bar = pty_row(run.s, sizes_of_bar[i][0] - 1);
        if (strncmp(bar, " answer", 7) != 0 || strstr(bar, "/s") == NULL ||
            (strstr(bar, "ctx ") == NULL && strstr(bar, "context ") == NULL))
            fail_msg("%d columns: %s", sizes_of_bar[i][1], bar);
        program_end(&run);
    }
}

struct deadly {
    const char *name;
    int signal, status;
};

static struct deadly deadlies[] = {
    { "gives_the_terminal_back_on_SIGTERM", SIGTERM, 128 + SIGTERM },
    { "gives_the_terminal_back_on_SIGHUP", SIGHUP, 128 + SIGHUP },
    { "gives_the_terminal_back_on_SIGSEGV", SIGSEGV, 128 + SIGSEGV },
    { "gives_the_terminal_back_on_SIGABRT", SIGABRT, 128 + SIGABRT },
};

static void gives_the_terminal_back(void **state)
{
    const struct deadly *d = *state;

    if ((d->signal == SIGSEGV || d->signal == SIGABRT) && getenv("MW_SANITIZED") != NULL) {
        print_message("a sanitizer has handlers of its own for this signal\n");
        skip();
    }
    fake_begin(&run, 24, 80, NULL, NULL);
    program_line(&run, "endless");
    sees(&run, "word20");
    pty_signal(run.s, d->signal);
    assert_int_equal(pty_end(run.s), d->status);
    assert_false(pty_is_alternate(run.s));
    assert_true(pty_is_cooked(run.s));
}

/* The redraw after the change of size must not pass for the frame of a key. */
static void a_report_of_the_focus_waits_for_no_frame(void **state)
{
    static const char *const args[] = { "--count-bytes", NULL };

    (void)state;
    fake_begin(&run, 12, 40, NULL, args);
    sees(&run, ">");
    pty_send(run.s, "\033[O\033[I");
    pty_resize(run.s, 40, 140);
    sees(&run, "layers");
    pty_send(run.s, "\004"); /* Ctrl-D */
    assert_int_equal(pty_end(run.s), 0);
    assert_true(pty_sees(run.s, "keys 0"));
}

/* Nothing is drawn of an engine that does not tell it, and keys that need it do nothing. */
static void an_engine_without_a_plan_has_a_chat(void **state)
{
    static const char *const args[] = { "--bare", NULL };

    (void)state;
    fake_begin(&run, 50, 160, NULL, args);
    program_line(&run, "say one two three");
    sees(&run, "tokens");
    sees(&run, "ready");
    assert_false(pty_shows(run.s, "of 0 B  |"));
    assert_false(pty_shows(run.s, "budget"));
    pty_send(run.s, TAB "w" RIGHT "\r");
    sees(&run, "choose another budget");
    pty_send(run.s, "\033[21~"); /* F10 */
    program_line(&run, "/plan");
    sees(&run, "this engine does not report the plan of its memory");
    program_line(&run, "/stats");
    sees(&run, "Statistics");
    pty_send(run.s, ESC);
    program_line(&run, "say still here");
    sees(&run, "still here");
}

/* "Fake Gemma with a lo" could be another model. */
static void a_long_name_is_shown_where_it_fits(void **state)
{
    static const char *const args[] = { "long-name.gguf", NULL };

    (void)state;
    fake_begin(&run, 50, 160, NULL, args);
    sees(&run, "ready");
    sees(&run, "Fake Gemma with a long E4B");
    program_end(&run);
    fake_begin(&run, 24, 80, NULL, args);
    sees(&run, "ready");
    sees(&run, "Fake Gemma");
}

int main(void)
{
    enum {
        N_SIZE = sizeof sizes / sizeof sizes[0],
        N_DEADLY = sizeof deadlies / sizeof deadlies[0],
        N_REST = 14
    };
    struct CMUnitTest tests[N_SIZE + N_DEADLY + N_REST] = {
        cmocka_unit_test_teardown(shows_wide_text_in_its_columns, end_run),
        cmocka_unit_test_teardown(a_long_name_is_shown_where_it_fits, end_run),
        cmocka_unit_test_teardown(an_engine_without_a_plan_has_a_chat, end_run),
        cmocka_unit_test_teardown(an_escape_sequence_of_the_model_is_shown_and_not_obeyed,
                                  end_run),
        cmocka_unit_test_teardown(control_c_stops_the_answer_and_keeps_its_text, end_run),
        cmocka_unit_test_teardown(escape_stops_the_answer_and_leaves_the_draft, end_run),
        cmocka_unit_test_teardown(a_prompt_that_is_stopped_comes_back_into_the_line, end_run),
        cmocka_unit_test_teardown(twice_control_c_leaves, end_run),
        cmocka_unit_test_teardown(a_line_between_two_control_c_keeps_the_chat, end_run),
        cmocka_unit_test_teardown(a_message_typed_during_an_answer_waits, end_run),
        cmocka_unit_test_teardown(chat_and_dashboard_show_the_same_progress_of_a_prompt,
                                  end_run),
        cmocka_unit_test_teardown(up_brings_back_a_command_that_failed, end_run),
        cmocka_unit_test_teardown(the_bar_has_the_state_and_a_change_that_waits, end_run),
        cmocka_unit_test_teardown(a_report_of_the_focus_waits_for_no_frame, end_run),
    };

    for (size_t i = 0; i < N_SIZE; i++)
        tests[N_REST + i] =
            (struct CMUnitTest){ sizes[i].name, chats, NULL, end_run, &sizes[i] };
    for (size_t i = 0; i < N_DEADLY; i++)
        tests[N_REST + N_SIZE + i] =
            (struct CMUnitTest){ deadlies[i].name, gives_the_terminal_back, NULL, end_run,
                                 &deadlies[i] };
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
