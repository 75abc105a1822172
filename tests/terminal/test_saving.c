/*
 * A conversation is not lost if the disk refuses it for a while, if another program removes its
 * file, or if the program is killed while messages are queued.
 */
#include "config.h"

#include <sys/stat.h>

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

#include "tests/lib/tree.h"
#include "tests/terminal/program.h"

/* ---- the disk refuses ---- */

/* A file has the name of the folder of chats. */
static void block(void)
{
    FILE *f;

    assert_int_equal(mkdir(program_path(&run, ".local"), 0700), 0);
    f = fopen(program_path(&run, ".local/share"), "w");
    assert_non_null(f);
    fclose(f);
}

static void unblock(void)
{
    assert_int_equal(unlink(program_path(&run, ".local/share")), 0);
}

/* Run in a home where nothing can be saved. */
static void begin_blocked(const char *mode, const char *ctx)
{
    const char *args[] = { "-n", "20", "-c", ctx, mode, NULL };
    struct program_start quick = { 50,   200, NULL, NULL, (const char *[]){ "--version", NULL },
                                   NULL, NULL };
    struct program_start start = { 50, 200, NULL, NULL, args, NULL, NULL };

    program_begin(&run, &quick); /* only to make its home */
    assert_int_equal(pty_end(run.s), 0);
    block();
    program_again(&run, &start);
    sees(&run, "Talker (");
}

static void expect_in_file(const char *name, const char *text)
{
    char *all = name == NULL ? NULL : program_file(&run, name);

    if (all == NULL || strstr(all, text) == NULL)
        fail_msg("%s: no \"%s\"", name == NULL ? "(no file)" : name, text);
    free(all);
}

static void saving_resumes_with_the_next_message(void **state)
{
    const char *mode = *state;
    char line[600];

    begin_blocked(mode, "4k");
    program_ask(&run, "first question", "saving is suspended: cannot make the folder");
    sees(&run, "token limit");
    snprintf(line, sizeof line, "/save %s", program_path(&run, "else.md"));
    program_ask(&run, line, "written to");
    expect_in_file("else.md", "first question");
    expect_in_file("else.md", "A tour");
    unblock();
    program_ask(&run, "second question", "saving has resumed: all of the chat is in");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    expect_in_file(program_chat(&run), "first question");
    expect_in_file(program_chat(&run), "A tour");
    expect_in_file(program_chat(&run), "second question");
}

static void saving_resumes_by_itself(void **state)
{
    begin_blocked(*state, "4k");
    program_ask(&run, "first question", "saving is suspended");
    unblock();
    sees(&run, "saving has resumed");
    expect_in_file(program_chat(&run), "first question");
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
}

static void a_name_is_that_of_the_file_when_saving_resumes(void **state)
{
    char path[600];

    begin_blocked(*state, "4k");
    program_ask(&run, "first question", "saving is suspended");
    program_ask(&run, "/rename foo", "this chat is saved as \"foo\" when saving resumes");
    unblock();
    sees(&run, "saving has resumed");
    snprintf(path, sizeof path, "%s", program_chat(&run));
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
    assert_non_null(strstr(path, "/foo.jsonl"));
    expect_in_file(path, "first question");
}

static void leaving_asks_once(void **state)
{
    begin_blocked(*state, "4k");
    program_ask(&run, "first question", "token limit");
    program_ask(&run, "/quit", "not all of the chat is saved: cannot make the folder");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 1);
    sees(&run, "memwall: not all of the chat is saved");
}

/* Text that waits for a full disk is kept in memory, so it must have a limit.  Each message
 * fits the context, but all that wait for the end of the answer are more than the limit. */
static void a_message_is_refused_when_too_much_waits_for_the_disk(void **state)
{
    enum { BYTES = 50000, MESSAGES = 24 };
    const char *args[] = { "-c", "64k", "--plain", NULL };
    struct program_start start = { 50, 200, NULL, program_slow_model(), args, NULL, NULL };
    char *text = malloc(BYTES + 1), line[600];
    FILE *f;

    (void)state;
    begin_blocked("--plain", "4k");
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    f = fopen(program_path(&run, "long.txt"), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(text);
    program_again(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "talk", "A tour"); /* for a long time */
    snprintf(line, sizeof line, "/file %s", program_path(&run, "long.txt"));
    for (int i = 0; i < MESSAGES && !pty_shows(run.s, "KiB of this chat are not saved"); i++) {
        program_line(&run, line);
        program_line(&run, "question");
    }
    sees(&run, "KiB of this chat are not saved, and saving fails: cannot");
    unblock();
    program_ask(&run, "one more", "saving has resumed");
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
}

static void an_unsaved_chat_can_be_exported(void **state)
{
    const char *args[] = { "-n", "20", "--no-save", *state, NULL };
    struct program_start start = { 50, 200, NULL, NULL, args, NULL, NULL };
    char line[600];

    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "a secret", "token limit");
    program_ask(&run, "/save", "not saved (--no-save)");
    snprintf(line, sizeof line, "/export %s", program_path(&run, "out.json"));
    program_ask(&run, line, "written to");
    expect_in_file("out.json", "a secret");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    assert_null(program_chat(&run));
}

/* ---- another program ---- */

static void a_removed_chat_is_written_again(void **state)
{
    const char *args[] = { "-n", "20", *state, NULL };
    struct program_start start = { 50, 200, NULL, NULL, args, NULL, NULL };
    char name[400];

    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "first question", "token limit");
    snprintf(name, sizeof name, "%s", program_chat(&run));
    assert_int_equal(unlink(program_path(&run, name)), 0);
    program_ask(&run, "second question", "another program removed or changed the file");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    assert_string_equal(program_chat(&run), name);
    expect_in_file(name, "first question");
    expect_in_file(name, "second question");
}

/* ---- queued messages ---- */

static void queued_messages_survive_the_program(void **state)
{
    const char *plain = *state;
    const char *args[] = { "-c", "32k", plain, NULL };
    const char *again[] = { "-c", "32k", "-n", "30", "--continue", plain, NULL };
    struct program_start start = { 50, 160, NULL, program_slow_model(), args, NULL, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello", "Line 2:");
    program_line(&run, "what waits");
    if (plain == NULL) {
        sees(&run, "1 queued");
    } else {
        sees(&run, "what waits"); /* echoed; then the program prints a line */
        program_ask(&run, "/temp 7", "the temperature is 7");
    }
    pty_signal(run.s, SIGKILL);
    assert_int_equal(pty_end(run.s), 128 + SIGKILL);
    expect_in_file(program_chat(&run), "{\"queued\":\"what waits\"}");
    start.args = again;
    program_again(&run, &start);
    sees(&run, "sending 1 message that waited when this chat was left");
    sees(&run, "token limit");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    expect_in_file(program_chat(&run), "\"role\":\"user\",\"time\":");
    expect_in_file(program_chat(&run), ",\"queued\":true,\"text\":\"what waits\"}");
}

static void removed_messages_are_no_longer_queued(void **state)
{
    const char *args[] = { "-c", "32k", *state, NULL };
    struct program_start start = { 50, 160, NULL, program_slow_model(), args, NULL, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello", "Line 2:");
    program_line(&run, "what waits");
    sees(&run, "1 queued");
    pty_send(run.s, "\033");
    sees(&run, "stopped");
    assert_true(pty_sees_at(run.s, -2, "> what waits"));
    pty_signal(run.s, SIGKILL);
    pty_end(run.s);
    expect_in_file(program_chat(&run), "{\"queued\":\"what waits\"}");
    expect_in_file(program_chat(&run), "{\"unqueued\":1}");
}

/* ---- keys and values ---- */

static void a_chat_comes_back_with_its_keys_and_values(void **state)
{
    static char system[1000];
    char cache[200];
    const char *args[] = { "--kv-space", "1G", "-c", "8k", "-n", "6", "--system", system, *state,
                           NULL };
    const char *again[] = { "--kv-space", "1G",       "-c",   "8k",         "-n", "6",
                            "--system",   system, "--continue", *state, NULL };
    const char *env[] = { cache, NULL };
    struct program_start start = { 50, 200, NULL, program_slow_model(), args, env, NULL };

    for (size_t n = 0; n < 900;)
        n += (size_t)sprintf(system + n, "%zu, ", n);
    /* On a disk: files in memory are refused. */
    snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%s/saving-cache", getenv("MW_BUILDDIR"));
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "first question", "token limit");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    program_again(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "another chat",
                "tokens of this beginning, which other chats share, were read");
    sees(&run, "token limit");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    start.args = again;
    program_again(&run, &start);
    sees(&run, "tokens of this chat were read from disk");
    program_ask(&run, "and then?", "token limit");
    program_line(&run, "/quit");
    assert_int_equal(pty_end(run.s), 0);
    tree_remove(cache + strlen("XDG_CACHE_HOME="));
}

#define BOTH(f)                                                                                \
    { #f " (screen)", f, NULL, end_run, NULL },                                                \
    {                                                                                          \
#f " (plain)", f, NULL, end_run, plain                                                 \
    }

int main(void)
{
    static char plain[] = "--plain";
    const struct CMUnitTest tests[] = {
        BOTH(saving_resumes_with_the_next_message),
        BOTH(saving_resumes_by_itself),
        BOTH(a_name_is_that_of_the_file_when_saving_resumes),
        BOTH(leaving_asks_once),
        cmocka_unit_test_teardown(a_message_is_refused_when_too_much_waits_for_the_disk,
                                  end_run),
        BOTH(an_unsaved_chat_can_be_exported),
        BOTH(a_removed_chat_is_written_again),
        BOTH(queued_messages_survive_the_program),
        cmocka_unit_test_teardown(removed_messages_are_no_longer_queued, end_run),
        BOTH(a_chat_comes_back_with_its_keys_and_values),
    };

    return cmocka_run_group_tests_name("saving", tests, program_group_setup,
                                       program_group_teardown);
}
