/* Recordings: replay returns what was recorded, and refuses everything else. */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/telemetry/fields.h"
#include "engine/telemetry/telemetry.h"
#include "engine/telemetry/verdict.h"
#include "tests/lib/made_sample.h"
#include "tests/lib/tree.h"

static char path[600];

static int begin(void **state)
{
    int rc = tree_make(state);

    snprintf(path, sizeof path, "%s/recording", tree_root);
    return rc;
}

static int new_file(void)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static char *read_all(void)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(f);
    fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* ---- writing ---- */

/* Returns the line of a sample; the caller frees it. */
static char *sample_text(const struct mw_sample *s, const char *event)
{
    struct json j;

    json_start(&j);
    mw_sample_json(&j, s, event);
    json_raw(&j, "", 1);
    assert_false(j.failed);
    return j.buf;
}

static void every_line_of_a_sample_is_json(void **state)
{
    static const char *const events[] = { "start", "second", "sample" };
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    made_decode(s, 70);
    memset(&s->layer[0].bytes, 0xff, 6 * sizeof(uint64_t));
    snprintf(s->run.model, sizeof s->run.model, "a\"b\\c\x1b[2J\xff\n\u4f60");
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        char *text = sample_text(s, events[i]), why[200];
        yajl_val tree = yajl_tree_parse(text, why, sizeof why);

        assert_non_null(tree);
        assert_null(strchr(text, '\n'));
        assert_null(strchr(text, '\x1b'));
        yajl_tree_free(tree);
        free(text);
    }
    free(s);
}

static void unknown_values_are_null_and_have_a_reason(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    char *text;

    (void)state;
    made_idle(s);
    text = sample_text(s, "second");
    assert_non_null(strstr(text, "\"limit\":null"));
    assert_non_null(strstr(text, "\"os_why\":{\"limit\":\"no limit is set\"}"));
    assert_non_null(strstr(text, "\"decode_last\":null"));
    free(text);
    free(s);
}

/* ---- recorder ---- */

struct source {
    struct telemetry *t;
    struct mw_sample os;
};

static void take(void *ctx, struct mw_sample *out)
{
    struct source *from = ctx;

    telemetry_sample(from->t, out);
    out->os = from->os.os;
}

static void each_token_has_a_line_and_the_last_second_too(void **state)
{
    struct source from = { calloc(1, sizeof(struct telemetry)), { 0 } };
    struct err e = ERR_INIT;
    struct mw_recorder *r;
    struct mw_run run = { .n_layer = 2, .model = "x" };
    char *text;

    (void)state;
    telemetry_set_run(from.t, &run, NULL);
    assert_int_equal(mw_recorder_open(&r, new_file(), path, true, take, &from, &e), 0);
    telemetry_answer(from.t, 3);
    for (int i = 0; i < MW_RECENT; i++)
        telemetry_token(from.t, 1);
    assert_int_equal(mw_recorder_close(r, &e), 0);
    text = read_all();
    assert_int_equal(count(text, "{\"event\":\"start\",\"version\":1,"), 1);
    assert_int_equal(count(text, "{\"event\":\"token\","), MW_RECENT);
    assert_int_equal(count(text, "{\"event\":\"lost\","), 0);
    assert_true(count(text, "{\"event\":\"second\",") >= 1);
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    free(from.t);
}

static void tokens_that_were_too_fast_are_counted_as_lost(void **state)
{
    struct source from = { calloc(1, sizeof(struct telemetry)), { 0 } };
    struct err e = ERR_INIT;
    struct mw_recorder *r;
    uint64_t n_line, n_lost = 0;
    char *text, *at;

    (void)state;
    assert_int_equal(mw_recorder_open(&r, new_file(), path, true, take, &from, &e), 0);
    for (int i = 0; i < 100000; i++)
        telemetry_token(from.t, 1);
    assert_int_equal(mw_recorder_close(r, &e), 0);
    text = read_all();
    n_line = count(text, "{\"event\":\"token\",");
    for (at = text; (at = strstr(at, "{\"event\":\"lost\"")) != NULL; at++)
        n_lost += strtoull(strstr(at, "\"n\":") + 4, NULL, 10);
    assert_int_equal(n_line + n_lost, 100000);
    assert_true(n_lost > 0);
    free(text);
    free(from.t);
}

static void a_new_plan_has_a_line(void **state)
{
    struct source from = { calloc(1, sizeof(struct telemetry)), { 0 } };
    struct err e = ERR_INIT;
    struct mw_recorder *r;
    struct mw_run run = { .n_layer = 2, .budget_bytes = 77 };
    struct mw_replay *replay;
    struct mw_sample *s = calloc(1, sizeof *s);
    int got, n = 0;

    (void)state;
    assert_int_equal(mw_recorder_open(&r, new_file(), path, true, take, &from, &e), 0);
    telemetry_set_run(from.t, &run, NULL);
    counter_set(&from.t->plan[MW_ROW_PINNED], 5);
    assert_int_equal(mw_recorder_close(r, &e), 0);
    assert_int_equal(mw_replay_open(&replay, path, &e), 0);
    while ((got = mw_replay_next(replay, s, &e)) == 1)
        n++;
    assert_int_equal(got, 0);
    assert_true(n > 0);
    assert_int_equal(s->run.budget_bytes, 77);
    assert_int_equal(s->mem.plan[MW_ROW_PINNED], 5);
    mw_replay_close(replay);
    free(s);
    free(from.t);
}

/* While the model loads, nothing is known: the first line waits for the plan. */
static void the_first_line_has_the_plan(void **state)
{
    struct source from = { calloc(1, sizeof(struct telemetry)), { 0 } };
    struct err e = ERR_INIT;
    struct mw_recorder *r;
    char *text;

    (void)state;
    assert_int_equal(mw_recorder_open(&r, new_file(), path, true, take, &from, &e), 0);
    text = read_all();
    assert_string_equal(text, "");
    free(text);
    telemetry_set_run(from.t, &(struct mw_run){ .n_layer = 2, .budget_bytes = 77 }, NULL);
    counter_set(&from.t->plan[MW_ROW_PINNED], 12345);
    assert_int_equal(mw_recorder_close(r, &e), 0);
    text = read_all();
    assert_memory_equal(text, "{\"event\":\"start\",", 17);
    assert_int_equal(count(text, "\"event\":\"plan\""), 0);
    assert_true(strstr(text, "12345") < strchr(text, '\n'));
    free(text);
    free(from.t);
}

static void a_full_disk_is_reported_when_the_recorder_is_closed(void **state)
{
    struct source from = { calloc(1, sizeof(struct telemetry)), { 0 } };
    struct err e = ERR_INIT;
    struct mw_recorder *r = NULL;

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    telemetry_set_run(from.t, &(struct mw_run){ .n_layer = 2 }, NULL);
    assert_int_equal(mw_recorder_open(&r, open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full",
                                      false, take, &from, &e),
                     -1);
    assert_null(r);
    assert_int_equal(e.code, ERR_IO);
    free(from.t);
}

/* ---- replay ---- */

static void write_line(FILE *f, const struct mw_sample *s, const char *event)
{
    struct json j;

    json_start_stream(&j, f);
    mw_sample_json(&j, s, event);
    json_line(&j);
}

static void write_token(FILE *f, const struct mw_token *token)
{
    static const struct mw_expert_trace trace = {
        .n = 5, .id = { 3, 17, MW_TRACE_LAYER, 0, MW_TRACE_LAYER }
    };
    struct json j;

    json_start_stream(&j, f);
    token_json(&j, token, &trace);
    json_line(&j);
}

static void replay_returns_the_recorded_samples(void **state)
{
    const struct mw_drafts drafts = { .passes = 40, .drafted = 45, .accepted = 29, .draft_ns = 5,
                                      .accepted_at = { 14, 0, 15 },
                                      .passes_over = { 25, 0, 0, 15 },
                                      .pass_ns = { 900, 0, 0, UINT64_MAX } };
    struct mw_sample *was = calloc(1, sizeof *was), *is = calloc(1, sizeof *is);
    struct err e = ERR_INIT;
    struct mw_replay *r;
    FILE *f = fopen(path, "w");

    (void)state;
    made_decode(was, 70);
    was->draft = drafts;
    write_line(f, was, "start");
    for (uint64_t i = 70 - MW_RECENT; i < 70; i++)
        write_token(f, &was->recent[i % MW_RECENT]);
    write_line(f, was, "second");
    fclose(f);
    assert_int_equal(mw_replay_open(&r, path, &e), 0);
    for (int i = 0; i < MW_RECENT; i++) {
        assert_int_equal(mw_replay_next(r, is, &e), 1);
        assert_int_equal(is->n_decoded, 70 - MW_RECENT + (uint64_t)i + 1);
        assert_int_equal(is->state, MW_DECODE);
        assert_int_equal(is->kv.tokens, is->n_decoded + 2047);
    }
    assert_int_equal(mw_replay_next(r, is, &e), 1);
    assert_int_equal(mw_replay_next(r, was, &e), 0);

    made_decode(was, 70);
    was->draft = drafts;
    assert_string_equal(is->os.limit.why_not, "no limit is set");
    is->os.limit = was->os.limit;            /* the same text at another address */
    for (uint64_t i = 0; i < MW_RECENT; i++) /* tokens are counted from the first line on */
        assert_memory_equal(&is->recent[i], &was->recent[(i + 70 - MW_RECENT) % MW_RECENT],
                            sizeof is->recent[i]);
    memcpy(is->recent, was->recent, sizeof is->recent);
    is->n_token = was->n_token;
    assert_true(fabs(is->verdict.share - was->verdict.share) < 1e-4);
    assert_true(fabs(is->verdict.advice_to - was->verdict.advice_to) < 1e-4);
    is->verdict = was->verdict;
    assert_memory_equal(is, was, sizeof *is);
    mw_replay_close(r);
    free(was);
    free(is);
}

#define START_LINE "{\"event\":\"start\",\"version\":1,\"run\":{\"n_layer\":1}}\n"

struct broken {
    const char *name, *text, *want;
};

static struct broken broken[] = {
    { "an empty file", "", "line 1: the recording is empty" },
    { "something else", "hello\n", "line 1: not a complete line of a recording" },
    { "a start that is cut off", "{\"event\":\"start\",\"ver",
      "line 1: is incomplete; the recording was cut off here" },
    { "a line that is cut off", START_LINE "{\"event\":\"second\",\"t_ns\":5",
      "line 2: is incomplete; the recording was cut off here" },
    { "no start", "{\"event\":\"second\"}\n",
      "line 1: is not the \"start\" line of a recording" },
    { "another version", "{\"event\":\"start\",\"version\":2}\n",
      "line 1: the recording does not have version 1, the only supported one" },
    { "no event", START_LINE "{\"t_ns\":5}\n", "line 2: has no \"event\"" },
    { "an event after its groups", START_LINE "{\"io\":{},\"event\":\"second\"}\n",
      "line 2: does not begin with \"event\"" },
    { "a number that is too large",
      START_LINE "{\"event\":\"second\",\"t_ns\":99999999999999999999}\n",
      "line 2: invalid value of \"t_ns\"" },
    { "a negative number", START_LINE "{\"event\":\"second\",\"io\":{\"reads\":-1}}\n",
      "line 2: invalid value of \"reads\"" },
    { "a text for a number", START_LINE "{\"event\":\"second\",\"kv\":{\"tokens\":\"7\"}}\n",
      "line 2: invalid value of \"tokens\"" },
    { "an object for a number", START_LINE "{\"event\":\"token\",\"n\":{}}\n",
      "line 2: invalid value of \"n\"" },
    { "a number for a list", START_LINE "{\"event\":\"second\",\"draft\":{\"pass_ns\":7}}\n",
      "line 2: invalid value of \"pass_ns\"" },
    { "a list in a list", START_LINE "{\"event\":\"second\",\"draft\":{\"pass_ns\":[[7]]}}\n",
      "line 2: invalid value of \"pass_ns\"" },
    { "a list that is too long",
      START_LINE "{\"event\":\"second\",\"draft\":{\"accepted_at\":"
                 "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}}\n",
      "line 2: invalid value of \"accepted_at\"" },
    { "a list for a number", START_LINE "{\"event\":\"second\",\"draft\":{\"passes\":[7]}}\n",
      "line 2: invalid value of \"passes\"" },
    { "a state that is none", START_LINE "{\"event\":\"second\",\"state\":\"fast\"}\n",
      "line 2: invalid value of \"state\"" },
    { "too many layers", "{\"event\":\"start\",\"version\":1,\"run\":{\"n_layer\":513}}\n",
      "line 1: has 513 layers; the maximum is 512" },
    { "layers that are not the model's",
      START_LINE "{\"event\":\"second\",\"layer\":[{\"bytes\":1},{},{}]}\n",
      "line 2: has figures for 3 layers, expected 1 and the head" },
    { "deep nesting", START_LINE "{\"event\":\"x\",\"a\":[[[[[[[[[[1]]]]]]]]]]}\n",
      "line 2: is nested too deeply for a recording" },
    { "bad UTF-8", START_LINE "{\"event\":\"\xff\"}\n",
      "line 2: not a complete line of a recording" },
};

static void a_broken_recording_gives_one_clear_error(void **state)
{
    const struct broken *b = *state;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT, again = ERR_INIT;
    struct mw_replay *r;
    char text[600], want[600];

    begin(state);
    tree_put("/recording", b->text);
    snprintf(want, sizeof want, "%.180s: %s", path, b->want);
    if (mw_replay_open(&r, path, &e) == 0) {
        assert_int_equal(mw_replay_next(r, s, &e), -1);
        assert_int_equal(mw_replay_next(r, s, &again), -1);
        assert_string_equal(e.what, again.what);
        mw_replay_close(r);
    } else {
        assert_null(r);
    }
    err_text(&e, text, sizeof text);
    assert_string_equal(text, want);
    free(s);
    tree_drop(state);
}

static void keys_of_newer_and_older_programs_are_skipped(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT;
    struct mw_replay *r;

    (void)state;
    tree_put("/recording",
             START_LINE "{\"event\":\"weather\",\"t_ns\":1,\"io\":{\"reads\":3}}\n"
                        "{\"event\":\"second\",\"t_ns\":7,\"new\":{\"a\":[1,{\"b\":null}]},"
                        "\"io\":{\"reads\":5,\"colour\":\"red\"},\"time\":{\"draft_ns\":4},"
                        "\"os\":{\"rss\":null,"
                        "\"x\":true},\"os_why\":{\"rss\":\"because\",\"t_ns\":\"no\"}}\n");
    assert_int_equal(mw_replay_open(&r, path, &e), 0);
    assert_int_equal(mw_replay_next(r, s, &e), 1);
    assert_int_equal(s->t_ns, 7);
    assert_int_equal(s->io.reads, 5);
    assert_string_equal(s->os.rss.why_not, "because");
    assert_int_equal(s->os.t_ns, 0);
    assert_int_equal(mw_replay_next(r, s, &e), 0);
    mw_replay_close(r);
    free(s);
}

static void a_line_without_end_is_refused(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT;
    struct mw_replay *r;
    FILE *f = fopen(path, "w");

    (void)state;
    fputs(START_LINE, f);
    for (int i = 0; i < 300000; i++)
        fputs("[[[[[[[[", f);
    fclose(f);
    assert_int_equal(mw_replay_open(&r, path, &e), 0);
    assert_int_equal(mw_replay_next(r, s, &e), -1);
    assert_string_equal(e.what, "is too long for a line of a recording");
    mw_replay_close(r);
    free(s);
}

/* ---- documentation ---- */

/* Every key that can be written is in the manual page, in bold at the start of a line or of a
 * tagged paragraph. */
static void assert_documented(const char *page, const char *key)
{
    char bold[80];

    snprintf(bold, sizeof bold, "\n.B %s\n", key);
    if (strstr(page, bold) == NULL)
        fail_msg("memwall-telemetry(5) does not describe \"%s\"", key);
}

static bool is_written(const char *key, size_t n)
{
    static const char *const more[] = { "version", "n",    "t_ns",   "os_why",
                                        "layer",   "rate", "thread", "experts" };

#define IS(name) (strlen(name) == n && memcmp(name, key, n) == 0)
    for (size_t i = 0; i < n_sample_fields; i++)
        if (IS(sample_fields[i].key) || IS(sample_fields[i].group))
            return true;
    for (size_t i = 0; i < n_token_fields; i++)
        if (IS(token_fields[i].key))
            return true;
    for (size_t i = 0; i < n_layer_fields; i++)
        if (IS(layer_fields[i].key))
            return true;
    for (size_t i = 0; i < n_thread_fields; i++)
        if (IS(thread_fields[i].key))
            return true;
    for (size_t i = 0; i < n_rate_names; i++)
        if (IS(rate_names[i]))
            return true;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        if (IS(more[i]))
            return true;
    return false;
#undef IS
}

/* Tagged paragraphs of the sections about keys name keys that are written, and no others. */
static void the_manual_page_lists_no_other_keys(void **state)
{
    char *page, *at;
    unsigned n = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/man/memwall-telemetry.5", getenv("MW_SRCDIR"));
    page = read_all();
    at = strstr(page, "\n.SH EVENTS\n");
    assert_non_null(at);
    at = strstr(at + 1, "\n.SH ");
    assert_non_null(at);
    while ((at = strstr(at, "\n.TP\n.B ")) != NULL) {
        at += strlen("\n.TP\n.B ");
        if (!is_written(at, strcspn(at, "\n")))
            fail_msg("\"%.*s\" is never written", (int)strcspn(at, "\n"), at);
        n++;
    }
    assert_true(n > 50);
    free(page);
}

static void every_field_is_in_the_manual_page(void **state)
{
    char *page;

    (void)state;
    snprintf(path, sizeof path, "%s/man/memwall-telemetry.5", getenv("MW_SRCDIR"));
    page = read_all();
    for (size_t i = 0; i < n_sample_fields; i++)
        assert_documented(page, sample_fields[i].key);
    for (size_t i = 0; i < n_token_fields; i++)
        assert_documented(page, token_fields[i].key);
    for (size_t i = 0; i < n_layer_fields; i++)
        assert_documented(page, layer_fields[i].key);
    for (size_t i = 0; i < n_thread_fields; i++)
        assert_documented(page, thread_fields[i].key);
    for (size_t i = 0; i < n_rate_names; i++)
        assert_documented(page, rate_names[i]);
    free(page);
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, begin, tree_drop)
    const struct CMUnitTest plain[] = {
        in_a_tree(every_line_of_a_sample_is_json),
        in_a_tree(unknown_values_are_null_and_have_a_reason),
        in_a_tree(each_token_has_a_line_and_the_last_second_too),
        in_a_tree(tokens_that_were_too_fast_are_counted_as_lost),
        in_a_tree(a_new_plan_has_a_line),
        in_a_tree(the_first_line_has_the_plan),
        in_a_tree(a_full_disk_is_reported_when_the_recorder_is_closed),
        in_a_tree(replay_returns_the_recorded_samples),
        in_a_tree(keys_of_newer_and_older_programs_are_skipped),
        in_a_tree(a_line_without_end_is_refused),
        cmocka_unit_test(every_field_is_in_the_manual_page),
        cmocka_unit_test(the_manual_page_lists_no_other_keys),
    };
    enum { N_PLAIN = sizeof plain / sizeof plain[0], N = sizeof broken / sizeof broken[0] };
    struct CMUnitTest tests[N_PLAIN + N];

    memcpy(tests, plain, sizeof plain);
    for (size_t i = 0; i < N; i++)
        tests[N_PLAIN + i] =
            (struct CMUnitTest){ broken[i].name, a_broken_recording_gives_one_clear_error, NULL,
                                 NULL, &broken[i] };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
