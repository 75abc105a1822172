/*
 * An answer is stopped; the program is left, suspended, and ended from outside.  Each time the
 * text stays, and the terminal is restored.
 */
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

static void begin(const char *script)
{
    /* Figures do not change, so two pictures of the same state are equal. */
    const char *args[] = { "-c", "32k", "--no-mouse", "--refresh", "60000", NULL };
    struct program_start start = { 24, 100, NULL, program_slow_model(), args, NULL, script };

    program_begin(&run, &start);
    sees(&run, "Talker (");
}

static void expect_ordinary_terminal(void)
{
    assert_false(pty_is_alternate(run.s));
    assert_true(pty_is_cooked(run.s));
    assert_false(pty_has_modes(run.s));
}

struct stop {
    const char *name, *key;
    bool has_draft;
};

static struct stop stops[] = {
    { "control_c_stops_the_answer", "\003", false },
    { "escape_stops_the_answer", "\033", false },
    { "escape_stops_the_answer_and_leaves_the_draft", "\033", true },
};

static void stops_the_answer(void **state)
{
    const struct stop *stop = *state;

    begin(NULL);
    program_ask(&run, "hello", "Line 5:");
    if (stop->has_draft) {
        pty_send(run.s, "a draft");
        assert_true(pty_sees_at(run.s, -2, "> a draft"));
    }
    pty_send(run.s, stop->key);
    sees(&run, "/continue resumes the answer");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    sees(&run, "tokens \xc2\xb7");
    if (stop->has_draft) {
        assert_true(pty_sees_at(run.s, -2, "> a draft"));
        pty_send(run.s, "\003"); /* now it empties the line */
        assert_true(pty_loses_at(run.s, -2, "a draft"));
    }
    program_line(&run, "/continue");
    /* "ready" below must be the one after this answer: ESC and a key just after it are Alt
     * and that key. */
    assert_true(pty_sees_at(run.s, -1, "answering"));
    sees(&run, "Line 40:");
    assert_false(pty_shows(run.s, "/continue resumes the answer"));
    pty_send(run.s, stop->key);
    assert_true(pty_sees_at(run.s, -1, "ready"));
    assert_true(pty_shows(run.s, "/continue resumes the answer"));
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

static void the_first_answer_is_explained_while_it_is_made(void **state)
{
    (void)state;
    begin(NULL);
    program_ask(&run, "hello", "Line 5:");
    program_ask(&run, "/why", "the first answer goes on; its newest tokens:");
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_quit(&run);
}

static void a_prompt_that_is_stopped_comes_back_into_the_line(void **state)
{
    char text[6001];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    begin(NULL);
    pty_send(run.s, "\033[200~the beginning ");
    pty_send(run.s, text);
    pty_send(run.s, " the end\033[201~");
    sees(&run, "xxx the end");
    sees(&run, "about 6,0"); /* the predicted cost */
    pty_send(run.s, "\r");
    sees(&run, "reading prompt");
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    sees(&run, "xxx the end");
    assert_false(pty_shows(run.s, "the beginning")); /* the chat has nothing of it */
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
    assert_null(program_chat(&run)); /* and is not kept */
}

static void a_message_typed_during_an_answer_waits_its_turn(void **state)
{
    char *text, *second;

    (void)state;
    begin(NULL);
    program_line(&run, "/predict 200");
    sees(&run, "limited to 200 tokens");
    pty_send(run.s, "first\rsecond\r"); /* early: it is queued even if it arrives late */
    sees(&run, "1 queued");
    loses(&run, "1 queued"); /* it is sent and answered; a fast answer scrolls it away */
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_sync(&run);
    text = program_file(&run, program_chat(&run));
    assert_non_null(text);
    second = strstr(text, "second");
    assert_non_null(second);
    assert_non_null(strstr(second, "Line 3:"));
    free(text);
    program_quit(&run);
}

static void queued_messages_come_back_when_the_answer_is_stopped(void **state)
{
    (void)state;
    begin(NULL);
    program_ask(&run, "first", "Line 3:");
    program_line(&run, "second");
    sees(&run, "1 queued");
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -2, "> second"));
    assert_true(pty_sees_at(run.s, -1, "ready"));
    pty_send(run.s, "\003");
    program_quit(&run);
}

/* ---- leaving ---- */

struct leave {
    const char *name, *keys;
    int status;
};

static struct leave leaves[] = {
    { "control_d_leaves", "\004", 0 },
    { "control_backslash_leaves", "\034", 0 },
    { "twice_control_c_leaves", "\003\003", 0 },
};

static void leaves_by_key(void **state)
{
    const struct leave *leave = *state;

    begin(NULL);
    pty_send(run.s, leave->keys);
    assert_int_equal(pty_end(run.s), leave->status);
    expect_ordinary_terminal();
}

struct deadly {
    const char *name;
    int signal;
    bool answers; /* while an answer is written */
};

static struct deadly deadlies[] = {
    { "gives_the_terminal_back_on_SIGTERM", SIGTERM, false },
    { "gives_the_terminal_back_on_SIGHUP", SIGHUP, false },
    { "gives_the_terminal_back_on_SIGQUIT", SIGQUIT, false },
    { "gives_the_terminal_back_on_SIGTERM_during_an_answer", SIGTERM, true },
    { "gives_the_terminal_back_on_SIGHUP_during_an_answer", SIGHUP, true },
};

static void ends_on_a_signal(void **state)
{
    const struct deadly *d = *state;

    begin(NULL);
    if (d->answers)
        program_ask(&run, "hello", "Line 2:");
    pty_signal(run.s, d->signal);
    assert_int_equal(pty_end(run.s), 128 + d->signal);
    expect_ordinary_terminal();
}

/* The last message cannot be read, but the program ends, and the text is saved. */
static void ends_when_the_window_is_closed(void **state)
{
    char *saved;
    int status;

    (void)state;
    begin(NULL);
    program_ask(&run, "hello", "Line 2:");
    pty_hang_up(run.s);
    status = pty_end(run.s);
    assert_int_equal(status, 128 + SIGHUP);
    saved = program_file(&run, program_chat(&run));
    assert_non_null(saved);
    assert_non_null(strstr(saved, "Line 2:"));
    free(saved);
}

/* ---- suspended, by a shell with job control ---- */

static const char script[] = "\"$@\"; echo shell has it; read x; fg; echo ended with $?";

static void suspend_and_return(void)
{
    sees(&run, "shell has it");
    assert_true(pty_is_cooked(run.s));
    pty_send(run.s, "\r");
    loses(&run, "shell has it");
    assert_true(pty_sees_at(run.s, -2, ">"));
    assert_true(pty_is_alternate(run.s));
    assert_false(pty_is_cooked(run.s));
    assert_true(pty_has_modes(run.s));
    assert_true(program_is_drawn_right(&run));
    program_line(&run, "/quit");
    sees(&run, "ended with 0");
    assert_int_equal(pty_end(run.s), 0);
    expect_ordinary_terminal();
}

static void control_z_suspends_and_comes_back(void **state)
{
    (void)state;
    begin(script);
    pty_send(run.s, "\032");
    sees(&run, "shell has it");
    expect_ordinary_terminal();
    suspend_and_return();
}

static void control_z_during_an_answer_keeps_the_answer(void **state)
{
    (void)state;
    begin(script);
    program_ask(&run, "hello", "Line 5:");
    pty_send(run.s, "\032");
    sees(&run, "shell has it");
    expect_ordinary_terminal();
    pty_send(run.s, "\r");
    loses(&run, "shell has it");
    sees(&run, "Line 30:");
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    assert_true(program_is_drawn_right(&run));
    program_line(&run, "/quit");
    sees(&run, "ended with 0");
    assert_int_equal(pty_end(run.s), 0);
    expect_ordinary_terminal();
}

/* Sheets and the search. */
static void control_z_suspends_in_every_mode(void **state)
{
    static const struct {
        const char *keys, *shown;
    } modes[] = {
        { "/plan\r", "held now" },
        { "/ctx 16k\r", "Change: ctx" },
        { "/help\r", "Esc: close" },
        { "/find\r", "Enter: search" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        begin(script);
        pty_send(run.s, modes[i].keys);
        sees(&run, modes[i].shown);
        pty_send(run.s, "\032");
        sees(&run, "shell has it");
        expect_ordinary_terminal();
        pty_send(run.s, "\r");
        loses(&run, "shell has it");
        sees(&run, modes[i].shown);
        pty_send(run.s, "\033");
        loses(&run, modes[i].shown);
        program_line(&run, "/quit");
        sees(&run, "ended with 0");
        assert_int_equal(pty_end(run.s), 0);
        expect_ordinary_terminal();
        program_end(&run);
    }
}

static void sigtstp_suspends_as_the_key_does(void **state)
{
    (void)state;
    begin(script);
    pty_signal_foreground(run.s, SIGTSTP);
    sees(&run, "shell has it");
    expect_ordinary_terminal();
    suspend_and_return();
}

/* Nothing can restore the terminal before SIGSTOP, but the screen comes back complete. */
static void comes_back_after_sigstop(void **state)
{
    (void)state;
    begin(script);
    pty_signal_foreground(run.s, SIGSTOP);
    pty_sees(run.s, "shell has it");
    pty_send(run.s, "\r");
    pty_send(run.s, "\n"); /* raw mode: the shell waits for one of these keys */
    loses(&run, "shell has it");
    program_sync(&run);
    assert_true(program_is_drawn_right(&run));
    program_line(&run, "/quit");
    sees(&run, "ended with 0");
    assert_int_equal(pty_end(run.s), 0);
    expect_ordinary_terminal();
}

#define WITH_END(f) cmocka_unit_test_teardown(f, end_run)

int main(void)
{
    enum {
        N_STOP = sizeof stops / sizeof stops[0],
        N_LEAVE = sizeof leaves / sizeof leaves[0],
        N_DEADLY = sizeof deadlies / sizeof deadlies[0],
        N_REST = 10
    };
    struct CMUnitTest tests[N_REST + N_STOP + N_LEAVE + N_DEADLY] = {
        WITH_END(the_first_answer_is_explained_while_it_is_made),
        WITH_END(a_prompt_that_is_stopped_comes_back_into_the_line),
        WITH_END(a_message_typed_during_an_answer_waits_its_turn),
        WITH_END(queued_messages_come_back_when_the_answer_is_stopped),
        WITH_END(ends_when_the_window_is_closed),
        WITH_END(control_z_suspends_and_comes_back),
        WITH_END(control_z_during_an_answer_keeps_the_answer),
        WITH_END(control_z_suspends_in_every_mode),
        WITH_END(sigtstp_suspends_as_the_key_does),
        WITH_END(comes_back_after_sigstop),
    };
    size_t n = N_REST;

    for (size_t i = 0; i < N_STOP; i++)
        tests[n++] =
            (struct CMUnitTest){ stops[i].name, stops_the_answer, NULL, end_run, &stops[i] };
    for (size_t i = 0; i < N_LEAVE; i++)
        tests[n++] =
            (struct CMUnitTest){ leaves[i].name, leaves_by_key, NULL, end_run, &leaves[i] };
    for (size_t i = 0; i < N_DEADLY; i++)
        tests[n++] = (struct CMUnitTest){ deadlies[i].name, ends_on_a_signal, NULL, end_run,
                                          &deadlies[i] };
    return cmocka_run_group_tests_name("stopping", tests, program_group_setup,
                                       program_group_teardown);
}
