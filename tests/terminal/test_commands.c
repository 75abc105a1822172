/*
 * Every command: its effect, its reply without an argument, and its reply to a wrong one.  The
 * test goes through the table of the program (ui/talk/commands.h), so a command without a row
 * here is a failure.
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
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "tests/terminal/program.h"
#include "ui/talk/commands.h"

static void begin(const char *const *args)
{
    program_begin_talk(&run, args);
}

/* A command and the text that it shows, which must not be on the screen before. */
struct row {
    const char *line, *shows;
    const char *key;  /* then press this key; or NULL */
    const char *then; /* and wait for this text; NULL: until shows is gone */
};

static void go_through(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];

        if (pty_shows(run.s, r->shows)) {
            pty_print(run.s);
            fail_msg("\"%s\" is shown before %s", r->shows, r->line);
        }
        program_line(&run, r->line);
        if (!pty_sees(run.s, r->shows))
            fail_msg("wrong screen after %s", r->line);
        if (r->key == NULL)
            continue;
        pty_send(run.s, r->key);
        if (r->then == NULL ? !pty_loses(run.s, r->shows) : !pty_sees(run.s, r->then))
            fail_msg("wrong screen after %s and its key", r->line);
    }
    program_sync(&run);
}

/* ---- without a conversation ---- */

static const struct row empty_rows[] = {
    { "/why", "there is no answer yet", NULL, NULL },
    { "/undo", "there is nothing to take back", NULL, NULL },
    { "/rewind", "there is nothing to go back to", NULL, NULL },
    { "/retry", "there is no answer to make again", NULL, NULL },
    { "/continue", "there is nothing to continue", NULL, NULL },
    { "/save", "nothing to save yet", NULL, NULL },
    { "/tried", "nothing was measured with this model yet", NULL, NULL },
    { "/copy", "there is nothing to copy", NULL, NULL },
    { "/copy code", "there is no code block to copy", NULL, NULL },
    { "/nonsense", "there is no command \"/nonsense\"", NULL, NULL },
};

static void without_a_conversation_commands_name_what_is_missing(void **state)
{
    (void)state;
    begin(NULL);
    go_through(empty_rows, sizeof empty_rows / sizeof empty_rows[0]);
    program_ask(&run, "/memroy", "did you mean /memory?");
    program_sync(&run);
    program_quit(&run);
}

static void the_beginning_of_a_name_is_enough(void **state)
{
    (void)state;
    begin(NULL);
    program_ask(&run, "/mem", "the budget is");
    program_ask(&run, "/te 0.25", "the temperature is 0.25");
    program_ask(&run, "/me!", "there is no command \"/me!\""); /* it writes no file */
    program_sync(&run);
    program_ask(&run, "/mo", "is short for several commands: /model, /mouse");
    program_sync(&run);
    program_quit(&run);
}

/* ---- the menu of commands ---- */

static void a_command_and_its_reply_share_a_row(void **state)
{
    (void)state;
    begin(NULL);
    program_ask(&run, "/temp 0.25", "- /temp 0.25 \u00b7 the temperature is 0.25");
    program_ask(&run, "/copy", "- /copy \u00b7 there is nothing to copy");
    pty_send(run.s, "x"); /* a hint would go with the next key */
    assert_true(pty_sees_at(run.s, -2, "> x"));
    assert_true(pty_shows(run.s, "there is nothing to copy"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_ask(&run, "/ctx 8k", "Change: ctx 8,192");
    /* Nobody asked for a gain. */
    assert_false(pty_shows(run.s, "No gain"));
    assert_true(pty_shows(run.s, "No weights are read from the disk, before and after."));
    pty_send(run.s, ENTER);
    sees(&run, "now: context 8,192");
    assert_true(pty_shows(run.s, "- /ctx 8k"));
    program_quit(&run);
}

static void arrow_keys_walk_in_the_menu_of_commands(void **state)
{
    (void)state;
    begin(NULL);
    pty_send(run.s, "/t");
    sees(&run, "/temp     [T]               set the temperature");
    sees(&run, "/threads  [N]               compute with N threads");
    pty_send(run.s, "\033[B\033[B\033[B\r"); /* temp, theme, think */
    assert_true(pty_sees_at(run.s, -2, "> /think"));
    loses(&run, "/threads  [N]");
    pty_send(run.s, "on\r");
    sees(&run, "thinking: on");
    pty_send(run.s, "/to");
    sees(&run, "/top-p");
    pty_send(run.s, "\033[A\t"); /* the last one */
    assert_true(pty_sees_at(run.s, -2, "> /top-p"));
    pty_send(run.s, "\003");
    program_sync(&run);
    pty_send(run.s, "/s");
    sees(&run, "/stats");
    pty_send(run.s, "\033");
    loses(&run, "/stats");
    assert_true(pty_sees_at(run.s, -2, "> /s")); /* Esc closes only the menu */
    pty_send(run.s, "\003");
    program_sync(&run);
    /* Entries of the history do not open it. */
    program_ask(&run, "/why", "there is no answer yet");
    program_ask(&run, "/seed", "new random seed");
    pty_send(run.s, "\033[A\033[A");
    assert_true(pty_sees_at(run.s, -2, "> /why"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
}

/* ---- options are shown, set and refused ---- */

static const struct row option_rows[] = {
    { "/temp", "the temperature is 0.8", NULL, NULL },
    { "/temp 0.25", "the temperature is 0.25", NULL, NULL },
    { "/temp hot", "/temp: \"hot\" is not a number from 0 to 100", NULL, NULL },
    { "/top-k", "top-k is 40", NULL, NULL },
    { "/top-k 7", "top-k is 7", NULL, NULL },
    { "/top-k -1", "\"-1\" is not a whole number", NULL, NULL },
    { "/top-p", "top-p is 0.95", NULL, NULL },
    { "/top-p 0.5", "top-p is 0.5, from", NULL, NULL },
    { "/top-p 2", "\"2\" is not a number from 0 to 1", NULL, NULL },
    { "/min-p", "min-p is 0.05", NULL, NULL },
    { "/min-p 0.125", "min-p is 0.125", NULL, NULL },
    { "/min-p x", "\"x\" is not a number from 0 to 1", NULL, NULL },
    { "/repeat-penalty", "repeat-penalty is 1", NULL, NULL },
    { "/repeat-penalty 1.5", "repeat-penalty is 1.5", NULL, NULL },
    { "/repeat-penalty 0", "\"0\" is not a number from 0.01", NULL, NULL },
    { "/seed", "every answer gets a new random", NULL, NULL },
    { "/seed 11", "the seed is 11", NULL, NULL },
    { "/seed random", "every answer gets a new random seed, from", NULL, NULL },
    { "/seed 0", "the seed is 0", NULL, NULL },
    { "/seed of", "\"of\" is not a whole number or random", NULL, NULL },
    { "/predict", "an answer may fill the context", NULL, NULL },
    { "/predict 33", "answers are limited to 33 tokens", NULL, NULL },
    { "/predict all", "\"all\" is not a whole number", NULL, NULL },
    { "/shift", "when the context is full, the answer ends", NULL, NULL },
    { "/shift on", "the oldest turns are dropped", NULL, NULL },
    { "/shift maybe", "/shift: \"maybe\" is not on or off", NULL, NULL },
    { "/draft", "drafts: auto", NULL, NULL },
    { "/draft fast", "\"fast\" is not one of off, auto, ngram", NULL, NULL },
    { "/think", "thinking: default", NULL, NULL },
    { "/think on", "thinking: on", NULL, NULL },
    { "/think hard", "\"hard\" is not on, off or default", NULL, NULL },
    { "/system", "there is no system message", NULL, NULL },
    { "/system Be kind", "the system message is \"Be kind\", from", NULL, NULL },
    { "/system", "the system message is \"Be kind\" ", NULL, NULL },
    { "/system none", "there is no system message, from", NULL, NULL },
    { "/threads", "the number of threads is 1", NULL, NULL },
    { "/disk-rate", "reads are as fast as the disk", NULL, NULL },
    { "/disk-rate 0", "\"0\" is not a rate in bytes per second", NULL, NULL },
    { "/threads none", "\"none\" is not a whole number from 1 to 256, or auto", NULL, NULL },
    { "/io", "weights are read by", NULL, NULL },
    { "/io sideways", "\"sideways\" is not one of auto, direct", NULL, NULL },
    { "/kv", "keys and values are stored as f16", NULL, NULL },
    { "/kv q3", "\"q3\" is not one of f32, f16, q8_0, q4_0", NULL, NULL },
    { "/kv-disk", "keys and values go to the disk: auto", NULL, NULL },
    { "/kv-disk q3", "\"q3\" is not one of auto, never", NULL, NULL },
    { "/ctx", "the context is 4,096 tokens", NULL, NULL },
    { "/ctx wide", "\"wide\" is not a whole number from 1 to", NULL, NULL },
    { "/memory", "the budget is", NULL, NULL },
    { "/memory lots", "\"lots\" is not a size", NULL, NULL },
    { "/memory 3", "smaller than 1 MiB; units are M and G", NULL, NULL },
    { "/memory 1M", "the budget is 1.00 MiB", NULL, NULL },
    { "/model /nowhere.gguf", "/nowhere.gguf: cannot open", NULL, NULL },
    { "/mouse off", "mouse released", NULL, NULL },
    { "/mouse on", "mouse captured", NULL, NULL },
    { "/mouse up", "/mouse on or /mouse off", NULL, NULL },
    { "/set theme", "the theme is auto", NULL, NULL },
    { "/theme beige", "beige", NULL, NULL },
    { "/set refresh", "refresh is 250", NULL, NULL },
    { "/view", "the view is both", NULL, NULL },
    { "/mouse", "the mouse is captured", NULL, NULL },
    { "/set colour 5", "\"colour\"", NULL, NULL },
    { "/view sideways", "\"sideways\" is not one of both, chat", NULL, NULL },
    { "/help everything", "there is no command \"everything\", and no help", NULL, NULL },
    { "/record", "/record FILE begins", NULL, NULL },
    { "/find nothing like it", "not found: nothing like it", NULL, NULL },
    { "/answer", "there is only one answer", NULL, NULL },
    { "/compact", "there is nothing to summarise", NULL, NULL },
    { "/forget", "are forgotten; the next", NULL, NULL },
    { "/export", "/export FILE (Markdown", NULL, NULL },
    { "/file", "no file is attached", NULL, NULL },
    { "/shell", "!COMMAND runs a command", NULL, NULL },
    { "/file /nowhere.txt", "cannot open \"/nowhere.txt\"", NULL, NULL },
    { "/copy all", "/copy answer or /copy code", NULL, NULL },
    { "/chats nothing-like-it", "no saved chat", NULL, NULL },
    { "/delete", "/delete NAME; /chats lists", NULL, NULL },
    { "/rename", "/rename OLD -> NEW", NULL, NULL },
    { "/rename a/b", "cannot have \"/\"", NULL, NULL },
    { "/open nothing", "no saved chat", NULL, NULL },
    { "/plan now", "/plan takes no argument", NULL, NULL },
};

static void options_are_shown_set_and_refused(void **state)
{
    (void)state;
    begin(NULL);
    for (size_t i = 0; i < sizeof option_rows / sizeof option_rows[0]; i++) {
        /* The chat is scrolled away, so the next words are new on the screen. */
        if (i % 3 == 0) {
            program_line(&run, "/clear");
            if (i > 0)
                loses(&run, option_rows[i - 1].shows);
        }
        go_through(&option_rows[i], 1);
    }
    program_sync(&run);
    program_quit(&run);
}

/* ---- sheets ---- */

static const struct row sheet_rows[] = {
    { "/help", "more below", ESC, NULL },
    { "/help a slash", "//TEXT                      send a message", ESC, NULL },
    { "/help kv", "q8_0: 8 bits and a scale for 32 values", ESC, NULL },
    { "/help /kv", "/set kv TYPE", ESC, NULL },
    { "/help sampling", "set the random seed", ESC, NULL },
    { "/help keys", "edit the line in $EDITOR", ESC, NULL },
    { "/help dashboard", "a token waits for weights that are not", ESC, NULL },
    { "/help waits for weights", "a token waits for weights that are not", ESC, NULL },
    { "/stats", "context          ", ESC, NULL },
    { "/plan", "held now", "q", NULL },
    { "/chats", "Enter: open", ESC, NULL },
    { "/set", "/set NAME VALUE   Esc: close", ESC, NULL },
    { "/ctx 8k", "Change: ctx 8,192", ESC, NULL },
    { "/ctx 8k", "Change: ctx 8,192", ENTER, "now: context 8,192" },
    { "/memory 200M", "Change: memory 200 MiB", ENTER, "budget 200 MiB" },
    { "/kv q8_0", "Change: kv q8_0", ENTER, "200 MiB, kv q8_0" },
    { "/kv-disk never", "Change: kv-disk never", ENTER, "200 MiB, kv-disk never" },
    { "/io buffered", "Change: io buffered", ENTER, "200 MiB, io buffered" },
    { "/threads 2", "Change: threads 2", ENTER, "200 MiB, threads 2" },
    { "/threads auto", "Change: threads auto", ENTER, "200 MiB, threads auto" },
    { "/threads 2", "Change: threads 2", ENTER, "200 MiB, threads 2" },
    { "/disk-rate 500M", "Change: disk-rate 500M", ENTER, "200 MiB, disk-rate 500M" },
    { "/disk-rate none", "Change: disk-rate none", ENTER, "200 MiB, disk-rate none" },
    { "/view chat", "> say", NULL, NULL },
};

static void sheets_open_close_and_apply(void **state)
{
    (void)state;
    /* Figures do not change, so two pictures of the same state are equal.  The wall is predicted
     * in the background, at any moment after a change. */
    begin((const char *[]){ "-n", "20", "--refresh", "60000", NULL });
    pty_send(run.s, "\t3");
    sees(&run, "wall is hidden");
    program_say(&run, "hello");
    go_through(sheet_rows, sizeof sheet_rows / sizeof sheet_rows[0] - 3);
    /* Without an argument, commands now report the changed values. */
    for (size_t i = 0; i < 4; i++) {
        static const char *const lines[][2] = {
            { "/kv", "keys and values are stored as q8_0 (rotated)" },
            { "/io", "weights are read by buffered (as requested)" },
            { "/threads", "the number of threads is 2" },
            { "/ctx", "the context is 8,192 tokens" },
        };

        program_ask(&run, lines[i][0], lines[i][1]);
    }
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

/* A limit that is set in the chat is that of the dashboard, too. */
static void the_dashboard_knows_a_new_limit_of_answers(void **state)
{
    const char *args[] = { "-n", "40", "--refresh", "50", NULL };
    struct program_start start = { 40, 120, NULL, program_slow_model(), args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "ready");
    program_ask(&run, "/predict 1", "answers are limited to 1 token,");
    program_ask(&run, "/predict 1500", "answers are limited to 1,500 tokens");
    program_line(&run, "hello");
    sees(&run, " / 1,500 "); /* during the answer */
    program_quit(&run);
}

/* On a disk of this speed the weights take about twenty seconds. */
static void the_screen_shows_that_weights_are_still_read(void **state)
{
    (void)state;
    begin((const char *[]){ "--disk-rate", "30K", NULL });
    sees(&run, "iB / "); /* in the panel of the speed */
    assert_true(pty_sees_at(run.s, -1, "loading "));
    assert_true(pty_sees_at(run.s, -1, " %"));
    program_ask(&run, "/disk-rate none", "Change: disk-rate none");
    pty_send(run.s, ENTER);
    loses(&run, "iB / ");
    sees(&run, "ready");
    program_quit(&run);
}

/* Keys and values of another type are computed with the next message.  A change before it does
 * not keep them. */
static void a_change_after_a_new_kv_type_counts_what_is_evaluated(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "200", NULL });
    program_say(&run, "hello");
    program_ask(&run, "/kv q8_0", "Change: kv q8_0");
    pty_send(run.s, ENTER);
    sees(&run, "MiB, kv q8_0");
    program_ask(&run, "/ctx 8k", "Change: ctx 8,192");
    sees(&run, "without this change");
    pty_send(run.s, ESC);
    loses(&run, "without this change");
    program_quit(&run);
}

/* The speed before a change says nothing about the speed after it. */
static void figures_are_predicted_again_after_a_change(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "20", NULL });
    program_say(&run, "hello");
    assert_true(pty_loses_at(run.s, -1, "~"));
    program_ask(&run, "/memory 200M", "Change: memory 200 MiB");
    pty_send(run.s, ENTER);
    sees(&run, "now: context");
    assert_true(pty_sees_at(run.s, -1, "~"));
    assert_true(pty_sees_at(run.s, -1, "tok/s  ~"));
    program_say(&run, "again");
    assert_true(pty_loses_at(run.s, -1, "~"));
    program_quit(&run);
}

/* ---- during an answer ---- */

/* Returns the smallest budget in MiB that the slow model runs in with a context of 512. */
static unsigned smallest_mib(void)
{
    const char *build = getenv("MW_BUILDDIR");
    char line[4400], *at = NULL;
    double mib = 0;
    FILE *plan;

    snprintf(line, sizeof line, "%s/memwall plan -b 1G -c 512 -t 1 -m %s",
             build == NULL ? "." : build, program_slow_model());
    plan = popen(line, "r");
    assert_non_null(plan);
    while (at == NULL && fgets(line, sizeof line, plan) != NULL)
        at = strstr(line, "The smallest budget for this context is ");
    assert_true(at != NULL && sscanf(strstr(at, " is "), " is %lf MiB", &mib) == 1);
    pclose(plan);
    return (unsigned)mib + 1;
}

/* Wait until another token is in the panel of the KV cache. */
static void wait_for_token(void)
{
    char text[40];

    snprintf(text, sizeof text, "%.30s",
             strstr(pty_row(run.s, pty_find(run.s, "tokens  ")), "tokens  "));
    loses(&run, text);
}

/* The answer has no end and a token takes more than a second. */
static void a_budget_grows_in_the_middle_of_an_answer(void **state)
{
    char budget[16], larger[16], text[80];
    unsigned least = smallest_mib();
    struct program_start start = { .rows = 40, .cols = 160 };

    (void)state;
    snprintf(budget, sizeof budget, "%uM", least);
    units_size(larger, sizeof larger, (least + 4) * MIB);
    start.model = program_slow_model();
    start.args = (const char *[]){ "-c", "512",       "-b", budget, "--disk-rate",
                                   "8M", "--refresh", "50", NULL };
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_line(&run, "hello");
    assert_true(pty_sees_at(run.s, -1, "answering"));
    snprintf(text, sizeof text, "/memory %uM", least + 4); /* most weights are still read */
    program_line(&run, text);
    sees(&run, "It applies at the next token, and the answer goes on.");
    wait_for_token(); /* the next one is not due before the status bar is drawn */
    pty_send(run.s, ENTER);
    snprintf(text, sizeof text, "next token: memory %s", larger);
    assert_true(pty_sees_at(run.s, -1, text));
    snprintf(text, sizeof text, "now: context 512, budget %s", larger);
    sees(&run, text);
    snprintf(text, sizeof text, " of %s", larger);
    assert_true(pty_sees_at(run.s, -1, text));
    assert_true(pty_loses_at(run.s, -1, "next token"));
    assert_true(pty_sees_at(run.s, -1, "answering"));
    program_line(&run, "/kv q8_0");
    sees(&run, "It applies after this answer.");
    pty_send(run.s, ENTER);
    sees(&run, "the next message then evaluates the conversation again");
    assert_true(pty_sees_at(run.s, -1, "after the answer: kv q8_0"));
    pty_send(run.s, "\003");
    sees(&run, " MiB, kv q8_0");
    assert_true(pty_loses_at(run.s, -1, "after the answer"));
    program_quit(&run);
}

/* ---- files ---- */

static void expect_file(const char *name, const char *what)
{
    char *text = program_file(&run, name);

    if (text == NULL || strstr(text, what) == NULL)
        fail_msg("%s: %s", name, text == NULL ? "is not there" : text);
    free(text);
}

static void commands_write_and_read_files(void **state)
{
    char line[600];

    (void)state;
    begin((const char *[]){ "-n", "40", NULL });
    program_write(&run, "notes.txt", "what is written here\n");
    snprintf(line, sizeof line, "/record %s", program_path(&run, "record.jsonl"));
    program_ask(&run, line, "recording to");
    snprintf(line, sizeof line, "/file %s", program_path(&run, "notes.txt"));
    program_ask(&run, line, "notes.txt goes with the next message");
    program_say(&run, "a question");
    sees(&run, "> \xe2\x96\xb8 notes.txt, 21 B");
    assert_false(pty_shows(run.s, "what is written here"));
    program_ask(&run, "/save", "saved as you go, in");
    snprintf(line, sizeof line, "/save %s", program_path(&run, "saved.md"));
    program_ask(&run, line, "written to");
    snprintf(line, sizeof line, "/export %s", program_path(&run, "chat.json"));
    program_line(&run, line); /* /record is carried out after it */
    program_ask(&run, "/record", "the recording is in");
    program_ask(&run, "/set temp 0.5", "temp = 0.5 is in");
    program_quit(&run);
    expect_file("saved.md", "A tour");
    expect_file("saved.md", "\xe4\xbd\xa0\xe5\xa5\xbd");
    expect_file("chat.json", "a question");
    expect_file("record.jsonl", "\"event\":\"token\"");
    expect_file(".config/memwall/config", "temp = 0.5");
    expect_file(program_chat(&run), "what is written here");
}

/* The folder for temporary files may have any name.  Nothing remains in it. */
static void the_line_is_edited_in_an_editor(void **state)
{
    char folder[] = "/tmp/memwall test-XXXXXX", tmpdir[64];
    const char *env[] = { tmpdir, "VISUAL", "EDITOR=sh \"$HOME/edit.sh\"", NULL };
    struct program_start start = { 40, 120, NULL, NULL, NULL, env, NULL };

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(tmpdir, sizeof tmpdir, "TMPDIR=%s", folder);
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_write(&run, "edit.sh",
                  "dirname \"$1\" > \"$HOME/where\"\necho \" and edited\" >> \"$1\"\n");
    pty_send(run.s, "typed");
    pty_send(run.s, "\030\005");
    assert_true(pty_sees_at(run.s, -2, "> typed and edited"));
    expect_file("where", folder);
    program_write(&run, "edit.sh", "exit 3\n");
    pty_send(run.s, "\030\005");
    sees(&run, "the editor failed");
    assert_true(pty_sees_at(run.s, -2, "> typed and edited"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- the conversation ---- */

static void the_conversation_is_cleared_listed_and_opened_again(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_say(&run, "the first chat");
    program_line(&run, "/clear");
    loses(&run, "> the first chat");
    program_say(&run, "the second chat");
    program_ask(&run, "/chats", "the first chat");
    pty_send(run.s, "\033[B\033[B\033[B" ENTER); /* the last one is the oldest */
    sees(&run, "> the first chat");
    loses(&run, "> the second chat");
    program_say(&run, "more of it");
    program_line(&run, "/why");
    program_line(&run, "//a line with a slash");
    sees(&run, "> /a line with a slash");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    program_quit(&run);
}

static void chats_are_named_listed_and_deleted(void **state)
{
    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_say(&run, "the first chat");
    program_ask(&run, "/rename ../secret", "cannot have \"/\"");
    program_ask(&run, "/rename holiday", "this chat is now \"holiday\"");
    program_line(&run, "/clear");
    loses(&run, "> the first chat");
    program_say(&run, "the second chat");
    /* The list shows name, messages, model and first words. */
    program_ask(&run, "/chats", "r: rename");
    sees(&run, "holiday");
    sees(&run, "messages  model");
    sees(&run, "2  Talker  ");
    sees(&run, "the second chat (on the screen)");
    pty_send(run.s, "\033[Br"); /* the older one */
    sees(&run, "> /rename holiday ->");
    pty_send(run.s, "journey" ENTER);
    sees(&run, "\"holiday\" is now \"journey\"");
    /* d asks, and the cursor is not at the choice that deletes. */
    program_ask(&run, "/chats", "r: rename");
    pty_send(run.s, "\033[Bd");
    sees(&run, "Delete this chat?");
    pty_send(run.s, ENTER);
    loses(&run, "Delete this chat?");
    program_ask(&run, "/chats", "r: rename");
    sees(&run, "journey ");
    pty_send(run.s, ESC);
    loses(&run, "r: rename");
    /* Enter opens, with the name that completion offers. */
    pty_send(run.s, "/open jou\t" ENTER);
    sees(&run, "> the first chat");
    program_ask(&run, "/delete jour", "Delete this chat?");
    pty_send(run.s, "\033[B" ENTER);
    sees(&run, "deleted \"journey\"");
    loses(&run, "> the first chat");
    program_ask(&run, "/open journey", "no saved chat \"journey\"");
    program_quit(&run);
}

/* The text of a file is folded, here and when the chat is opened again; F4 or a click unfolds
 * it. */
static void attached_files_are_folded(void **state)
{
    struct program_start again = { .rows = 40, .cols = 120 };
    char line[600];
    int y;

    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_write(&run, "notes.txt", "what is written here\n");
    program_write(&run, "more.txt", "and something else\n");
    snprintf(line, sizeof line, "/file %s", program_path(&run, "notes.txt"));
    program_ask(&run, line, "notes.txt goes with the next message");
    program_say(&run, "one file");
    snprintf(line, sizeof line, "/file %s", program_path(&run, "notes.txt"));
    program_ask(&run, line, "with the next message: notes.txt");
    snprintf(line, sizeof line, "/file %s", program_path(&run, "more.txt"));
    program_ask(&run, line, "more.txt goes with the next message");
    program_say(&run, "two files");
    sees(&run, "> \xe2\x96\xb8 2 files: notes.txt, more.txt, 40 B, ");
    program_quit(&run);
    again.args = (const char *[]){ "--continue", NULL };
    program_again(&run, &again);
    sees(&run, "> \xe2\x96\xb8 2 files: notes.txt, more.txt, 40 B, ");
    assert_false(pty_shows(run.s, "something else"));
    y = pty_find(run.s, "2 files: ");
    snprintf(line, sizeof line, "\033[<0;10;%dM\033[<0;10;%dm", y + 1, y + 1);
    pty_send(run.s, line);
    sees(&run, "\xe2\x94\x82 and something else");
    pty_send(run.s, line);
    loses(&run, "something else");
    pty_send(run.s, "\033OS"); /* F4 */
    sees(&run, "\xe2\x94\x82 and something else");
    /* A message that is taken back has its file. */
    program_ask(&run, "/undo", "with the next message: 2 files: notes.txt, more.txt, 40 B");
    assert_true(pty_sees_at(run.s, -2, "> two files"));
    pty_send(run.s, "\003");
    program_sync(&run);
    program_quit(&run);
}

/* Begin an answer and queue a message with a file and a question. */
static void queue_a_file(void)
{
    struct program_start start = { 40, 120, NULL, program_slow_model(), NULL, NULL, NULL };
    char line[600];

    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_write(&run, "a.txt", "line one\n");
    program_ask(&run, "talk", "A tour");
    program_ask(&run, "/predict 30", "answers are limited to 30 tokens"); /* the next one */
    snprintf(line, sizeof line, "/file %s", program_path(&run, "a.txt"));
    program_ask(&run, line, "a.txt goes with the next message");
    program_ask(&run, "sum up", "1 queued; next: a.txt, 9 B, ");
    assert_true(pty_shows(run.s, " tokens: sum up "));
    assert_false(pty_shows(run.s, "```"));
}

static void a_queued_file_comes_back_as_a_file(void **state)
{
    (void)state;
    queue_a_file();
    pty_send(run.s, ESC);
    sees(&run, "with the next message: a.txt, 9 B, ");
    sees(&run, "> sum up");
    sees(&run, "ready");
    pty_send(run.s, "\r");
    sees(&run, "30 tokens, token limit");
    assert_true(pty_shows(run.s, "> \xe2\x96\xb8 a.txt, 9 B, "));
    pty_send(run.s, "\033OS"); /* F4 */
    sees(&run, "\xe2\x94\x82 line one");
    program_quit(&run);
}

static void another_model_continues_the_conversation(void **state)
{
    char line[300];

    (void)state;
    begin((const char *[]){ "-n", "10", NULL });
    program_say(&run, "the first question");
    snprintf(line, sizeof line, "/model %s", program_slow_model());
    program_ask(&run, line, "loading Talker");
    program_say(&run, "the second question");
    program_ask(&run, "/stats", "messages                  4");
    pty_send(run.s, ESC);
    loses(&run, "messages                  4");
    program_sync(&run);
    program_quit(&run);
}

static void looks_are_changed(void **state)
{
    static const char code[] = "\033]52;c;aW50IG1haW4odm9pZCkKew"; /* int main(void) { */
    const char *raw;
    size_t n, before;

    (void)state;
    begin((const char *[]){ "-n", "70", NULL });
    program_say(&run, "hello");
    pty_raw(run.s, &before);
    program_line(&run, "/theme light");
    program_sync(&run);
    raw = pty_raw(run.s, &n);
    assert_non_null(memmem(raw + before, n - before, "38;5;", 5));
    program_ask(&run, "/set theme", "the theme is light");
    program_line(&run, "/view chat");
    loses(&run, "memory \xe2\x94\x80");
    program_line(&run, "/view dashboard");
    sees(&run, "memory \xe2\x94\x80");
    loses(&run, "token limit \xc2\xb7");
    program_line(&run, "/view both");
    sees(&run, "token limit \xc2\xb7");
    program_line(&run, "/copy code");
    sees(&run, "sent to the terminal");
    raw = pty_raw(run.s, &n);
    assert_non_null(memmem(raw, n, code, sizeof code - 1));
    program_quit(&run);
}

/* Wait until these bytes are sent after byte *from; *from becomes the end. */
static void sends(size_t *from, const char *bytes)
{
    for (int i = 0; i < 600; i++) {
        size_t n;
        const char *raw = pty_raw(run.s, &n);

        if (memmem(raw + *from, n - *from, bytes, strlen(bytes)) != NULL) {
            *from = n;
            return;
        }
        pty_take(run.s, 100);
    }
    fail_msg("\"%s\" was not sent", bytes);
}

#define NORD    "48;5;237m" /* its background */
#define DRACULA "48;5;236m"

static void themes_are_tried_and_kept_or_left(void **state)
{
    size_t from = 0;
    char *config;

    (void)state;
    begin((const char *[]){ "--theme", "nord", NULL });
    program_sync(&run);
    sends(&from, NORD);
    program_ask(&run, "/theme", "Enter: keep");
    pty_send(run.s, "\033[A\033[A\033[A"); /* gruvbox-light, gruvbox-dark, dracula */
    sends(&from, DRACULA);
    pty_send(run.s, ESC);
    sends(&from, NORD);
    loses(&run, "Enter: keep");
    program_ask(&run, "/theme", "Enter: keep");
    pty_send(run.s, "\033[A\033[A\033[A" ENTER);
    sees(&run, "theme = dracula is in");
    loses(&run, "Enter: keep");
    sends(&from, DRACULA);
    config = program_file(&run, ".config/memwall/config");
    assert_non_null(config);
    assert_non_null(strstr(config, "theme = dracula"));
    free(config);
    /* A signal ends the program while a theme is tried. */
    program_ask(&run, "/theme", "Enter: keep");
    pty_send(run.s, "\033[B");
    pty_signal(run.s, SIGTERM);
    assert_int_equal(pty_end(run.s), 128 + SIGTERM);
}

/* ---- help and completion of all commands ---- */

static bool has_row(const char *name)
{
    static const char *const elsewhere[] = { "clear", "quit" };
    const struct {
        const struct row *row;
        size_t n;
    } all[] = {
        { empty_rows, sizeof empty_rows / sizeof empty_rows[0] },
        { option_rows, sizeof option_rows / sizeof option_rows[0] },
        { sheet_rows, sizeof sheet_rows / sizeof sheet_rows[0] },
    };
    size_t len = strlen(name);

    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (strcmp(name, elsewhere[i]) == 0)
            return true;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (size_t i = 0; i < all[k].n; i++)
            if (strncmp(all[k].row[i].line + 1, name, len) == 0 &&
                (all[k].row[i].line[1 + len] == '\0' || all[k].row[i].line[1 + len] == ' '))
                return true;
    return false;
}

/* Other names that do not fit the line are on the next one. */
static void no_line_of_the_help_begins_with_a_semicolon(void **state)
{
    (void)state;
    begin(NULL);
    program_line(&run, "/help");
    sees(&run, "more below");
    assert_true(pty_shows(run.s, "exchanges by a summary;"));
    assert_true(pty_shows(run.s, "  also /compress, /summarize, /summarise"));
    assert_false(pty_shows(run.s, "  ; also"));
}

static void every_command_is_tried_helped_and_completed(void **state)
{
    char line[80];

    (void)state;
    begin(NULL);
    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        if (!has_row(c->name))
            fail_msg("/%s has no row in this test", c->name);
        snprintf(line, sizeof line, "/%.*s", (int)strlen(c->name) - 1, c->name);
        pty_send(run.s, line);
        pty_send(run.s, "\t");
        snprintf(line, sizeof line, "/%s", c->name);
        sees(&run, line);
        pty_send(run.s, "\003");
        program_sync(&run);
        snprintf(line, sizeof line, "/help %s", c->name);
        program_line(&run, line);
        snprintf(line, sizeof line, "\u2500 /%s%s%s \u2500", c->name,
                 c->args[0] != '\0' ? " " : "", c->args);
        sees(&run, line);
        snprintf(line, sizeof line, "%.30s", c->help);
        assert_true(pty_shows(run.s, line));
        pty_send(run.s, ESC);
        loses(&run, "Esc: close");
    }
    program_quit(&run);
}

static void arguments_are_completed(void **state)
{
    static const char *const rows[][2] = {
        { "/kv q8", "> /kv q8_0" },
        { "/io mmap:d", "> /io mmap:drop" },
        { "/theme hi", "> /theme high-contrast" },
        { "/view da", "> /view dashboard" },
        { "/think de", "> /think default" },
        { "/copy c", "> /copy code" },
        { "/mouse of", "> /mouse off" },
        { "/shift of", "> /shift off" },
        { "/set ascii of", "> /set ascii off" },
        { "/set color al", "> /set color always" },
        { "/set repeat-p", "> /set repeat-penalty" },
        { "/help wh", "> /help why" },
        { "/draft ng", "> /draft ngram" },
    };
    char line[600];

    (void)state;
    begin(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pty_send(run.s, rows[i][0]);
        pty_send(run.s, "\t");
        assert_true(pty_sees_at(run.s, -2, rows[i][1]));
        pty_send(run.s, "\003");
        program_sync(&run);
    }
    program_write(&run, "some file.txt", "x");
    snprintf(line, sizeof line, "/file %s", program_path(&run, "some"));
    pty_send(run.s, line);
    pty_send(run.s, "\t");
    assert_true(pty_sees_at(run.s, -2, "some file.txt"));
    pty_send(run.s, "\r");
    sees(&run, "some file.txt goes with the next message");
    snprintf(line, sizeof line, "/draft %s", program_path(&run, "some")); /* or a word */
    pty_send(run.s, line);
    pty_send(run.s, "\t");
    assert_true(pty_sees_at(run.s, -2, "some file.txt"));
    pty_send(run.s, "\003");
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(without_a_conversation_commands_name_what_is_missing,
                                  end_run),
        cmocka_unit_test_teardown(the_beginning_of_a_name_is_enough, end_run),
        cmocka_unit_test_teardown(a_command_and_its_reply_share_a_row, end_run),
        cmocka_unit_test_teardown(arrow_keys_walk_in_the_menu_of_commands, end_run),
        cmocka_unit_test_teardown(options_are_shown_set_and_refused, end_run),
        cmocka_unit_test_teardown(sheets_open_close_and_apply, end_run),
        cmocka_unit_test_teardown(the_dashboard_knows_a_new_limit_of_answers, end_run),
        cmocka_unit_test_teardown(the_screen_shows_that_weights_are_still_read, end_run),
        cmocka_unit_test_teardown(a_change_after_a_new_kv_type_counts_what_is_evaluated,
                                  end_run),
        cmocka_unit_test_teardown(figures_are_predicted_again_after_a_change, end_run),
        cmocka_unit_test_teardown(a_budget_grows_in_the_middle_of_an_answer, end_run),
        cmocka_unit_test_teardown(commands_write_and_read_files, end_run),
        cmocka_unit_test_teardown(the_line_is_edited_in_an_editor, end_run),
        cmocka_unit_test_teardown(the_conversation_is_cleared_listed_and_opened_again, end_run),
        cmocka_unit_test_teardown(chats_are_named_listed_and_deleted, end_run),
        cmocka_unit_test_teardown(attached_files_are_folded, end_run),
        cmocka_unit_test_teardown(a_queued_file_comes_back_as_a_file, end_run),
        cmocka_unit_test_teardown(another_model_continues_the_conversation, end_run),
        cmocka_unit_test_teardown(looks_are_changed, end_run),
        cmocka_unit_test_teardown(themes_are_tried_and_kept_or_left, end_run),
        cmocka_unit_test_teardown(no_line_of_the_help_begins_with_a_semicolon, end_run),
        cmocka_unit_test_teardown(every_command_is_tried_helped_and_completed, end_run),
        cmocka_unit_test_teardown(arguments_are_completed, end_run),
    };

    return cmocka_run_group_tests_name("commands", tests, program_group_setup,
                                       program_group_teardown);
}
