/*
 * A conversation without a screen, on the engine of tests/lib/fake_engine.c.
 */
#include "config.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/fail_with.h"
#include "tests/lib/fake_engine.h"
#include "tests/lib/setting_values.h"
#include "tests/lib/tree.h"
#include "ui/options/config_file.h"
#include "ui/talk/commands.h"
#include "ui/talk/context_full.h"
#include "ui/talk/talk.h"
#include "ui/text/sheet.h"

static struct talk *t;
static char said[8192]; /* notices and errors, one per line */
static bool has_quit;
static char theme[40];
static struct ui_options look; /* of the screen that there is not */

/* ---- a front that records its calls ---- */

static void on_say(void *ctx, enum talk_say kind, const char *text, uint32_t id)
{
    size_t n = strlen(said);

    (void)ctx;
    (void)id;
    snprintf(said + n, sizeof said - n, "%s%s\n", kind == SAY_ERROR ? "error: " : "", text);
}

/* The prediction for the current plan when a sheet opened, and the lines of that sheet. */
static double now_tps;
static char sheet_lines[8000];

static void on_sheet_line(void *ctx, const char *line)
{
    size_t n = strlen(sheet_lines);

    (void)ctx;
    snprintf(sheet_lines + n, sizeof sheet_lines - n, "%s\n", line);
}

static void on_sheet(void *ctx, struct sheet *s)
{
    (void)ctx;
    now_tps = talk_plan(t)->decode_tps;
    sheet_lines[0] = '\0';
    sheet_print(s, on_sheet_line, NULL);
    sheet_enter(s);
    sheet_free(s);
}

static void on_user(void *ctx, const char *text, size_t n, const struct attached *a,
                    uint32_t id)
{
    (void)a;
    (void)ctx;
    (void)text;
    (void)n;
    (void)id;
}

static void on_begin(void *ctx, bool resumes)
{
    (void)ctx;
    (void)resumes;
}

static void on_text(void *ctx, const char *text, size_t n, bool is_thinking)
{
    (void)ctx;
    (void)text;
    (void)n;
    (void)is_thinking;
}

static void on_done(void *ctx, const struct mw_receipt *r, bool had_text, uint32_t id)
{
    (void)ctx;
    (void)r;
    (void)had_text;
    (void)id;
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

static void on_context_full(void *ctx)
{
    (void)ctx;
    context_full_say(t);
}

static void on_count(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
}

static void on_draft(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

static char *on_text_of(void *ctx, size_t n)
{
    (void)ctx;
    return talk_saved_text(t, n);
}

static int on_act(void *ctx, enum talk_action action, const char *arg, struct err *e)
{
    (void)ctx;
    (void)action;
    (void)arg;
    return err_set(e, ERR_UNSUPPORTED, "no screen");
}

static void on_look(void *ctx, struct ui_options *out)
{
    (void)ctx;
    *out = look;
}

static int on_set_look(void *ctx, enum option_id what, const struct ui_options *wanted,
                       struct err *e)
{
    (void)ctx;
    (void)what;
    (void)e;
    look = *wanted;
    if (wanted->theme != NULL) {
        snprintf(theme, sizeof theme, "%s", wanted->theme);
        look.theme = theme;
    }
    return 0;
}

static void on_quit(void *ctx)
{
    (void)ctx;
    has_quit = true;
}

static void on_thought(void *ctx)
{
    (void)ctx;
}

static const struct talk_front front = {
    .say = on_say,
    .sheet = on_sheet,
    .user = on_user,
    .begin = on_begin,
    .take_back = on_text,
    .piece = on_text,
    .thought = on_thought,
    .done = on_done,
    .context_full = on_context_full,
    .rewound = on_count,
    .dropped = on_count,
    .restored = on_nothing,
    .changed = on_nothing,
    .draft = on_draft,
    .text_of = on_text_of,
    .act = on_act,
    .look = on_look,
    .set_look = on_set_look,
    .quit = on_quit,
};

/* ---- running it ---- */

static void pump_until(enum talk_state state)
{
    while (talk_state(t) != state) {
        struct pollfd fd = { talk_fd(t), POLLIN, 0 };

        if (poll(&fd, 1, 20000) <= 0)
            fail_msg("state %d is never reached: %s", state, said);
        talk_pump(t);
    }
}

/* Wait until the conversation has n messages.  An answer may begin and end in one talk_pump(),
 * so a test may never see the state TALK_ANSWERING. */
static void pump_until_answered(size_t n)
{
    while (talk_ledger(t)->n != n || talk_state(t) != TALK_READY) {
        struct pollfd fd = { talk_fd(t), POLLIN, 0 };

        if (poll(&fd, 1, 20000) <= 0)
            fail_msg("the conversation never has %zu messages: %s", n, said);
        talk_pump(t);
    }
}

static struct ui_chat_options o;

static int begin_with(const struct engine_calls *engine)
{
    static struct options options;
    struct err e = ERR_INIT;

    options_default(&options);
    options.model = "fake";
    options.no_save = true;
    o = (struct ui_chat_options){ .options = &options, .engine = engine };
    o.paths.data_dir = "/nowhere";
    options.chat.engine.n_ctx = 131072;
    options.chat.engine.memory_bytes = (uint64_t)8 << 30;
    said[0] = '\0';
    has_quit = false;
    fake_engine_token_us = 100;
    if (talk_open(&t, &o, &front, &e) != 0)
        fail_with(&e);
    pump_until(TALK_READY);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(&fake_engine);
}

static int begin_bare(void **state)
{
    (void)state;
    return begin_with(&fake_bare_engine);
}

static int end(void **state)
{
    (void)state;
    talk_close(t);
    return 0;
}

static void expect_said(const char *text)
{
    if (strstr(said, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, said);
}

/* ---- the cost of a message ---- */

static char *long_line(size_t n)
{
    char *text = malloc(n + 1);

    assert_non_null(text);
    memset(text, 'x', n);
    text[n] = '\0';
    return text;
}

static void attached_text_is_tokenized_once_and_in_part(void **state)
{
    size_t n = 3000000;
    char *text = long_line(n);
    uint64_t before = fake_engine_counted;
    struct mw_cost cost;

    (void)state;
    assert_true(talk_attach(t, "long.txt", text, n));
    for (int i = 0; i < 50; i++)
        assert_true(talk_cost(t, "what is this?", &cost));
    assert_in_range(cost.n_token, n / 4, n / 4 + 100);
    assert_true(fake_engine_counted - before <= 65536 + 50 * strlen("what is this?"));
}

static void a_long_line_is_tokenized_in_part(void **state)
{
    size_t n = 2000000;
    char *text = long_line(n);
    uint64_t before = fake_engine_counted;
    struct mw_cost cost;

    (void)state;
    assert_true(talk_cost(t, text, &cost));
    assert_in_range(cost.n_token, n / 4, n / 4 + 100);
    assert_true(fake_engine_counted - before <= 65536);
    free(text);
}

/* ---- options ---- */

static void a_change_is_in_force_when_the_engine_has_applied_it(void **state)
{
    (void)state;
    command_enter(t, "/ctx 2048"); /* press Enter on the sheet at once */
    assert_int_equal(talk_options(t)->engine.n_ctx, 2048);
    while (talk_plan(t)->n_ctx != 2048) {
        struct pollfd fd = { talk_fd(t), POLLIN, 0 };

        assert_true(poll(&fd, 1, 20000) > 0);
        talk_pump(t);
    }
    expect_said("now: context 2,048");
}

static void pump_once(void)
{
    struct pollfd fd = { talk_fd(t), POLLIN, 0 };

    if (poll(&fd, 1, 20000) <= 0)
        fail_msg("the engine says nothing: %s", said);
    talk_pump(t);
}

static void expect_pending(const char *expected)
{
    char text[200];

    assert_string_equal(talk_pending(t, text, sizeof text), expected);
}

static void a_change_during_an_answer_is_in_force_before_its_end(void **state)
{
    (void)state;
    fake_engine_token_us = 20000;
    command_enter(t, "slow"); /* a long prompt */
    pump_until(TALK_PREFILL);
    command_enter(t, "/memory 6G");
    command_enter(t, "/temp 0.25");
    expect_said("memory 6.00 GiB applies at the next token");
    expect_said("the temperature is 0.25, from the next token on");
    expect_pending("next token: memory 6.00 GiB, temp 0.25");
    while (talk_plan(t)->budget_bytes != (uint64_t)6 << 30)
        pump_once();
    assert_int_equal(talk_state(t), TALK_PREFILL);
    expect_said("now: context 131,072, budget 6.00 GiB");
    while (talk_options(t)->sampling.temp != 0.25f)
        pump_once();
    pump_until(TALK_READY);
    expect_pending("");
}

static uint32_t times_said(const char *text)
{
    uint32_t n = 0;

    for (const char *p = said; (p = strstr(p, text)) != NULL; p++)
        n++;
    return n;
}

/* The engine has closed a drafter that gained too little: the plan in force is shown, once.  Before
 * it opens one again, it says so itself. */
static void a_drafter_that_was_closed_is_named(void **state)
{
    static const char words[] = "drafts gained too little: the model that made them was closed; a "
                                "later answer tries it again";
    static const char again[] = "drafts are tried again";
    static const char closed[] = "drafts: self; the model does not draft for itself: it gained too "
                                 "little; a later answer tries it again";

    (void)state;
    command_enter(t, "losing");
    pump_until_answered(2);
    assert_int_equal(times_said(words), 0); /* there were no drafts */
    command_enter(t, "/draft self");
    while (talk_plan(t)->n_draft == 0)
        pump_once();
    command_enter(t, "say one");
    pump_until_answered(4);
    assert_int_equal(times_said(words), 0);
    assert_int_equal(talk_plan(t)->n_draft, 7);
    assert_int_equal(talk_in_force(t).draft, MW_DRAFT_SELF);
    command_enter(t, "losing");
    pump_until_answered(6);
    assert_int_equal(times_said(words), 1);
    assert_int_equal(talk_plan(t)->n_draft, 0);
    /* Predictions for now are without it, and so says its setting. */
    assert_int_equal(talk_in_force(t).draft, MW_DRAFT_OFF);
    command_enter(t, "/draft");
    assert_int_equal(times_said(closed), 1);
    command_enter(t, "/draft self"); /* a sheet would show no change */
    assert_int_equal(times_said(closed), 2);
    command_enter(t, "losing");
    pump_until_answered(8);
    assert_int_equal(times_said(words), 1);
    assert_int_equal(times_said(again), 0);
    command_enter(t, "trying");
    pump_until_answered(10);
    assert_int_equal(times_said(words), 1);
    assert_int_equal(times_said(again), 0);
    assert_int_equal(talk_plan(t)->n_draft, 7);
    command_enter(t, "losing");
    pump_until_answered(12);
    assert_int_equal(times_said(words), 2);
    assert_int_equal(talk_plan(t)->n_draft, 0);
}

/* The engine corrects the limits of the machine while it answers. */
static void predictions_follow_corrected_limits(void **state)
{
    double before, corrected;

    (void)state;
    command_enter(t, "/memory 3G");
    while (talk_plan(t)->budget_bytes != (uint64_t)3 << 30)
        pump_once();
    before = talk_plan(t)->decode_tps;
    fake_engine_disk = 8;
    command_enter(t, "say one");
    pump_until_answered(2);
    corrected = talk_plan(t)->decode_tps;
    fake_engine_disk = 2;
    assert_true(corrected > before);
}

/* Both columns of a change come from the limits as they are when its sheet opens. */
static void a_change_is_compared_with_a_prediction_from_the_same_limits(void **state)
{
    double before;

    (void)state;
    command_enter(t, "/memory 3G");
    while (talk_plan(t)->budget_bytes != (uint64_t)3 << 30)
        pump_once();
    before = talk_plan(t)->decode_tps;
    fake_engine_disk = 8;
    command_enter(t, "/threads 2");
    fake_engine_disk = 2;
    assert_true(now_tps > before);
}

/* "/shift on" is named only where it changes something. */
static void a_full_context_says_what_is_possible(void **state)
{
    (void)state;
    command_enter(t, "full");
    pump_until_answered(2);
    expect_said("is full; nothing was dropped. Use /ctx");
    expect_said("/shift on to drop the oldest turns, or /undo");
    said[0] = '\0';
    command_enter(t, "/shift on");
    command_enter(t, "full");
    pump_until_answered(4);
    expect_said("is full; no older turn is left to drop. Use /ctx");
    assert_null(strstr(said, "/shift on"));
}

static void help_of_a_setting_is_complete(void **state)
{
    size_t longest = 0;
    char line[80];

    (void)state;
    for (const struct slash_command *c = command_list(); c->name != NULL; c++) {
        const char *more = c->argument == ARG_VALUE ? options_table[c->setting].more : NULL;

        if (more == NULL)
            continue;
        snprintf(line, sizeof line, "/help %s", c->name);
        command_enter(t, line);
        if (strstr(sheet_lines, more) == NULL)
            fail_msg("%s: %s", line, sheet_lines);
        longest = strlen(more) > longest ? strlen(more) : longest;
    }
    assert_true(longest > 200);
}

static void another_kv_type_waits_for_the_end_of_an_answer(void **state)
{
    (void)state;
    fake_engine_token_us = 20000;
    command_enter(t, "slow");
    pump_until(TALK_PREFILL);
    command_enter(t, "/kv q8_0");
    command_enter(t, "/ctx 65536");
    expect_said("kv q8_0 applies after this answer; the next message then evaluates the "
                "conversation again, at least ");
    expect_said("ctx 65,536 applies after this answer");
    expect_pending("after the answer: kv q8_0, ctx 65,536");
    pump_until(TALK_READY);
    while (talk_plan(t)->n_ctx != 65536)
        pump_once();
    expect_pending("");
}

static void a_refused_change_leaves_the_answer_and_the_other_changes(void **state)
{
    struct mw_chat_options small;

    (void)state;
    fake_engine_token_us = 20000;
    command_enter(t, "slow");
    pump_until(TALK_PREFILL);
    small = *talk_options(t);
    small.engine.memory_bytes = 1;
    talk_change(t, &small, THEN_NOTHING, "memory 1");
    command_enter(t, "/memory 6G");
    while (strstr(said, "error: ") == NULL)
        pump_once();
    while (talk_plan(t)->budget_bytes != (uint64_t)6 << 30)
        pump_once();
    assert_int_equal(talk_state(t), TALK_PREFILL);
    assert_true(talk_options(t)->engine.memory_bytes == (uint64_t)6 << 30);
    pump_until(TALK_READY);
}

static void a_message_waits_until_a_change_is_applied(void **state)
{
    (void)state;
    command_enter(t, "/ctx 2048");
    expect_pending("applying ctx 2,048");
    command_enter(t, "say hello");
    assert_int_equal(talk_state(t), TALK_READY);
    assert_int_equal(talk_outbox(t)->n_queue, 1);
    talk_stop(t); /* there is no answer to stop */
    pump_until_answered(2);
    assert_int_equal(talk_plan(t)->n_ctx, 2048);
    assert_int_equal(talk_outbox(t)->n_queue, 0);
}

/* ---- settings, as tests/unit/test_settings.c without a chat ---- */

static void expect_printed(const struct options *values, enum option_id id,
                           const char *expected, const char *where)
{
    char text[200];

    if (strcmp(options_print(values, id, text, sizeof text), expected) != 0)
        fail_msg("%s %s is \"%s\", not \"%s\": %s", options_table[id].name, where, text,
                 expected, said);
}

/* Returns whether the chat has applied it; a plan may not fit. */
static bool set_in_chat(enum option_id id, const char *value)
{
    const struct option *row = &options_table[id];
    struct err e = ERR_INIT;
    struct options values;
    char line[200], expected[200], *text;

    options_default(&values);
    assert_int_equal(options_set(&values, id, value, &e), 0);
    options_print(&values, id, expected, sizeof expected);

    said[0] = '\0';
    snprintf(line, sizeof line, "/set %s %s", row->name, value);
    command_enter(t, line);
    expect_said(" is in ");
    options_default(&values);
    if (config_file_read(&values, row->commands, o.paths.config_file, &text, NULL, &e) != 0)
        fail_with(&e);
    expect_printed(&values, id, expected, "in the file");
    free(text);
    if (strstr(said, "error: ") != NULL)
        return false;
    talk_values(t, &values);
    if (row->reach != REACH_FILE)
        expect_printed(&values, id, expected, "in the chat");
    return true;
}

static void refuse_in_chat(enum option_id id, const char *value)
{
    const struct option *row = &options_table[id];
    struct err e = ERR_INIT;
    struct options values;
    char line[800];

    options_default(&values);
    assert_int_equal(options_set(&values, id, value, &e), -1);
    said[0] = '\0';
    snprintf(line, sizeof line, "/set %s %s", row->name, value);
    command_enter(t, line);
    snprintf(line, sizeof line, "error: %s: %s", row->name, e.what);
    expect_said(line);
    if (row->slash == NULL)
        return;
    snprintf(line, sizeof line, "/%s %s", row->slash, value);
    command_enter(t, line);
    snprintf(line, sizeof line, "error: /%s: %s", row->slash, e.what);
    expect_said(line);
}

static void every_setting_can_be_set_in_a_chat(void **state)
{
    const char *value;
    char path[600];

    assert_int_equal(tree_make(state), 0);
    snprintf(path, sizeof path, "%s", tree_path("/config"));
    o.paths.config_file = path;
    for (int id = 0; id < N_OPTION; id++) {
        const struct option *row = &options_table[id];
        bool is_applied = false;

        if (row->reach == REACH_LINE)
            continue;
        for (size_t i = 0; (value = setting_value(row, true, i)) != NULL; i++)
            is_applied =
                (value[0] != '\0' && set_in_chat((enum option_id)id, value)) || is_applied;
        if (!is_applied)
            fail_msg("no value of %s was applied: %s", row->name, said);
        for (size_t i = 0; (value = setting_value(row, false, i)) != NULL; i++)
            if (value[strspn(value, " ")] != '\0' && value[0] != ' ')
                refuse_in_chat((enum option_id)id, value);
        unlink(path);
    }
    tree_drop(state);
}

static void values_chosen_in_a_chat_survive_another_model(void **state)
{
    (void)state;
    command_enter(t, "/temp 0.25");
    pump_until(TALK_READY);
    command_enter(t, "/model other");
    pump_until(TALK_LOADING);
    pump_until(TALK_READY);
    assert_true(talk_options(t)->sampling.temp == 0.25f);
    assert_int_equal(talk_options(t)->sampling.top_k, 64); /* of the model */
}

/* ---- another model ---- */

static void a_path_that_is_not_a_model_changes_nothing(void **state)
{
    (void)state;
    command_enter(t, "/model missing.gguf");
    assert_int_equal(talk_state(t), TALK_SWITCHING);
    command_enter(t, "/retry");
    expect_said("another model is being opened");
    pump_until(TALK_READY);
    expect_said("error: cannot open \"missing.gguf\"");
    assert_string_equal(talk_info(t)->name, "Fake Gemma E2B");
    command_enter(t, "say hello");
    assert_true(talk_is_answering(t));
    pump_until(TALK_READY);
}

static void a_model_that_does_not_fit_leaves_the_old_one(void **state)
{
    (void)state;
    command_enter(t, "say hello");
    pump_until(TALK_READY);
    command_enter(t, "/model huge-other");
    command_enter(t, "say more"); /* waits for a model */
    pump_until_answered(4);
    expect_said("error: a huge model does not fit");
    assert_string_equal(talk_info(t)->name, "Fake Gemma E2B");
    assert_false(has_quit);
}

static void options_that_are_set_while_a_model_opens_are_its_options(void **state)
{
    (void)state;
    command_enter(t, "/model other");
    command_enter(t, "/temp 0.25");
    pump_until(TALK_LOADING);
    command_enter(t, "/predict 7");
    pump_until(TALK_READY);
    assert_string_equal(talk_info(t)->name, "Other Model");
    assert_int_equal(talk_options(t)->n_predict, 7);
}

static void commands_about_answers_wait_for_a_message_that_waits(void **state)
{
    static const char *const lines[] = { "/continue", "/retry", "/answer",
                                         "/compact",  "/undo",  "/rewind" };

    (void)state;
    command_enter(t, "/model other");
    pump_until(TALK_LOADING);
    command_enter(t, "say more"); /* waits for the model */
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        said[0] = '\0';
        command_enter(t, lines[i]);
        expect_said("error: a message waits for the model: enter this after its answer");
    }
    pump_until_answered(2);
    said[0] = '\0';
    command_enter(t, "/continue");
    assert_null(strstr(said, "waits"));
    pump_until(TALK_READY);
}

static void the_program_can_end_while_a_model_opens(void **state)
{
    (void)state;
    command_enter(t, "/model other");
    assert_int_equal(talk_state(t), TALK_SWITCHING);
}

/* ---- an engine of which little can be known ---- */

static void unknown_figures_are_left_out(void **state)
{
    struct mw_diagnosis d;
    struct mw_cost cost;

    (void)state;
    expect_said("Fake Gemma E2B (gemma4, BF16): context 131,072. /help");
    command_enter(t, "say one");
    pump_until_answered(2);
    assert_false(talk_cost(t, "what is this?", &cost));
    assert_false(talk_diagnose_now(t, &d));
    assert_true(talk_text_room(t) > 100000);
    command_enter(t, "/retry");
    pump_until_answered(2);
    command_enter(t, "/temp 0.25");
    pump_until(TALK_READY);
    assert_true(talk_options(t)->sampling.temp == 0.25f);
}

static void commands_say_what_is_not_known(void **state)
{
    static const struct {
        const char *command, *reply;
    } cases[] = {
        { "/memory 6G", "error: " TALK_NO_PLAN },
        { "/ctx 2048", "error: " TALK_NO_PLAN },
        { "/plan", "error: " TALK_NO_PLAN },
        { "/tried", "nothing was measured with this model yet" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        said[0] = '\0';
        command_enter(t, cases[i].command);
        expect_said(cases[i].reply);
    }
    assert_int_equal(talk_plan(t)->n_ctx, 131072);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attached_text_is_tokenized_once_and_in_part, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_long_line_is_tokenized_in_part, begin, end),
        cmocka_unit_test_setup_teardown(a_change_is_in_force_when_the_engine_has_applied_it,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_message_waits_until_a_change_is_applied, begin, end),
        cmocka_unit_test_setup_teardown(a_change_during_an_answer_is_in_force_before_its_end,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_drafter_that_was_closed_is_named, begin, end),
        cmocka_unit_test_setup_teardown(predictions_follow_corrected_limits, begin, end),
        cmocka_unit_test_setup_teardown(a_full_context_says_what_is_possible, begin, end),
        cmocka_unit_test_setup_teardown(help_of_a_setting_is_complete, begin, end),
        cmocka_unit_test_setup_teardown(
            a_change_is_compared_with_a_prediction_from_the_same_limits, begin, end),
        cmocka_unit_test_setup_teardown(another_kv_type_waits_for_the_end_of_an_answer, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            a_refused_change_leaves_the_answer_and_the_other_changes, begin, end),
        cmocka_unit_test_setup_teardown(every_setting_can_be_set_in_a_chat, begin, end),
        cmocka_unit_test_setup_teardown(values_chosen_in_a_chat_survive_another_model, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_path_that_is_not_a_model_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_model_that_does_not_fit_leaves_the_old_one, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            options_that_are_set_while_a_model_opens_are_its_options, begin, end),
        cmocka_unit_test_setup_teardown(commands_about_answers_wait_for_a_message_that_waits,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_program_can_end_while_a_model_opens, begin, end),
        cmocka_unit_test_setup_teardown(unknown_figures_are_left_out, begin_bare, end),
        cmocka_unit_test_setup_teardown(commands_say_what_is_not_known, begin_bare, end),
    };

    return cmocka_run_group_tests_name("talk", tests, NULL, NULL);
}
