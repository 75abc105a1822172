/* Predictions, bounds and proposals of a model whose tokens were measured. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/plan/advice.h"
#include "engine/session/chat_internal.h"
#include "engine/session/session_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

#define MODEL   "gemma4-tiny.gguf"
#define N_TOKEN 24
#define TOKEN_S 0.05 /* of reading: slower than people read */

static struct mw_model *model;

/* Limits as of a busy moment: all is slower than it is, but for the disk. */
static struct mw_limits bad_limits(const struct mw_options *o)
{
    struct mw_limits l = { .disk_bytes_s = 20e9, .memory_bytes_s = 1e7, .measured_s = 1 };

    mw_rates_list(model, o, &l);
    for (uint32_t i = 0; i < l.n_rate; i++) {
        l.rate[i].column_bytes_s = 1e7;
        l.rate[i].chunk_flops_s = 1e7;
        l.rate[i].measured_s = 1;
    }
    return l;
}

static void open_all(void)
{
    const struct mw_options o = small_options(256);
    struct mw_limits l;

    model = open_model(MODEL);
    l = bad_limits(&o);
    mw_model_set_limits(model, &l);
}

static int close_all(void **state)
{
    (void)state;
    mw_model_close(model);
    model = NULL;
    return 0;
}

/* A budget that pins little, and a disk that is the bound. */
static struct mw_options slow_disk(void)
{
    struct mw_options o = small_options(256);
    struct mw_model_info info;

    mw_model_info(model, &info);
    o.memory_bytes = smallest_budget(model, &o);
    o.disk_rate = (uint64_t)((double)info.hot_bytes / TOKEN_S);
    return o;
}

static struct mw_chat *answer_of(const struct mw_options *o, int n_token)
{
    struct mw_chat_options chat = { .engine = *o, .n_predict = n_token };
    struct mw_chat *c;
    struct said said;

    mw_sampling_default(model, &chat.sampling);
    chat.sampling.temp = 0;
    c = open_chat(model, &chat);
    ask(c, "hello there", &said);
    assert_int_equal(said.receipt.n_decoded, n_token);
    return c;
}

static struct mw_chat *answer(const struct mw_options *o)
{
    return answer_of(o, N_TOKEN);
}

/* Predicted seconds of a token where the measured ones were. */
static double predicted(const struct mw_options *o)
{
    struct plan_anchor a;
    struct plan_outlook outlook;
    struct err e = ERR_INIT;

    mw_model_anchor(model, &a);
    if (mw_plan_outlook(model, o, &(struct plan_run){ (uint32_t)a.n_seen, 0, 1 }, &outlook,
                        &e) != 0)
        fail_with(&e);
    return outlook.token.wall_s;
}

static void tokens_are_the_prediction(void **state)
{
    struct mw_options o = slow_disk(), other;
    struct mw_limits l;
    struct plan_anchor a;

    (void)state;
    mw_model_anchor(model, &a);
    assert_true(a.measured_s == 0);
    mw_chat_close(answer(&o));
    mw_model_anchor(model, &a);
    assert_true(a.measured_s > 0 && a.n_token >= ANCHOR_TOKENS);
    assert_true(a.stall_s > 0.1 * a.token_s);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
    /* New limits change nothing about what was measured. */
    l = bad_limits(&o);
    l.disk_bytes_s = 1e9;
    l.memory_bytes_s *= 30;
    mw_model_set_limits(model, &l);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
    /* More memory is not slower, though the limits say that computing takes seconds. */
    other = o;
    other.memory_bytes = 128 * MIB;
    assert_true(predicted(&other) < a.token_s);
    /* Half the threads take at most twice the time, and the disk none of it. */
    l.n_thread = o.n_thread;
    mw_model_set_limits(model, &l);
    other = o;
    other.n_thread = o.n_thread / 2;
    assert_in_range(o.n_thread, 2, 2);
    assert_true(predicted(&other) > 0.98 * a.token_s);
    assert_true(predicted(&other) < 2 * a.token_s - a.stall_s);
    /* A later run begins with it. */
    mw_model_close(model);
    open_all();
    mw_model_set_anchor(model, &a);
    assert_true(fabs(predicted(&o) / a.token_s - 1) < 0.02);
}

/* Seven tokens; the first ones are not counted. */
/* A request that is made again evaluates the last token of its prompt only. */
static void tokens_of_two_answers_are_not_of_one(void **state)
{
    const struct mw_options o = small_options(256);
    struct mw_session *s = open_session(model, &o);
    const uint32_t id = 5;
    struct plan_anchor a;
    struct err e = ERR_INIT;
    uint32_t kept;

    (void)state;
    for (int answer = 0; answer < 3; answer++) {
        if (mw_session_rewind(s, answer > 0 ? 1 : 0, &kept, &e) != 0)
            fail_with(&e);
        for (int i = 0; i < 22; i++)
            eval(s, &id, 1);
        mw_model_anchor(model, &a);
        assert_true(a.n_token <= 22);
        assert_true(a.n_seen <= 22);
    }
    mw_session_close(s);
}

static void a_short_answer_measures_with_a_doubt(void **state)
{
    struct mw_options o = slow_disk(), other = o;
    struct plan_anchor few, many;
    struct plan p;
    struct err e = ERR_INIT;

    (void)state;
    mw_chat_close(answer_of(&o, 7));
    mw_model_anchor(model, &few);
    assert_true(few.measured_s > 0 && few.n_token < ANCHOR_TOKENS);
    assert_true(fabs(predicted(&o) / few.token_s - 1) < 0.02);
    assert_int_equal(mw_plan(model, &o, &p, &e), 0);
    assert_true(p.is_doubtful);
    mw_chat_close(answer(&o));
    mw_model_anchor(model, &many);
    assert_true(many.n_token >= ANCHOR_TOKENS);
    assert_int_equal(mw_plan(model, &o, &p, &e), 0);
    assert_false(p.is_doubtful);
    mw_chat_close(answer_of(&o, 7)); /* replaces none without a doubt, */
    mw_model_anchor(model, &few);
    assert_true(few.n_token >= ANCHOR_TOKENS);
    other.n_thread = 1; /* of as many threads */
    mw_chat_close(answer_of(&other, 7));
    mw_model_anchor(model, &few);
    assert_true(few.n_token < ANCHOR_TOKENS && few.n_thread == 1);
}

/* A sample as the screen gets it. */
static void sample_of(struct mw_chat *c, struct mw_sample *out)
{
    struct mw_watch *watch;
    struct err e = ERR_INIT;

    if (mw_watch_new(&watch, model, &e) != 0)
        fail_with(&e);
    mw_chat_sample(c, out);
    mw_watch_complete(watch, out);
    mw_watch_free(watch);
}

static struct mw_diagnosis diagnose(const struct mw_options *o, const struct mw_sample *s)
{
    struct mw_diagnosis d = { 0 };
    struct err e = ERR_INIT;

    if (mw_diagnose(model, o, s, &d, &e) != 0)
        fail_with(&e);
    return d;
}

/* The sheet of a change and the screen after it begin at the same tokens: the newest ones, whose
 * rate the screen has shown. */
static void a_change_has_the_rate_that_its_sheet_promised(void **state)
{
    struct mw_chat_options chat = { .n_predict = 3 * N_TOKEN };
    struct mw_options o = slow_disk(), then = o;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_diagnosis sheet, after;
    struct plan_anchor a;
    struct mw_rates rates;
    struct err e = ERR_INIT;
    struct mw_chat *c;
    struct said said;

    (void)state;
    assert_non_null(s);
    chat.engine = o;
    mw_sampling_default(model, &chat.sampling);
    chat.sampling.temp = 0;
    c = open_chat(model, &chat);
    ask(c, "hello there", &said);
    sample_of(c, s);
    mw_rates(s, &rates);
    mw_model_anchor(model, &a);
    assert_true(a.n_token > rates.n_token); /* a prediction from them all could be another */
    then.memory_bytes += MIB;
    sheet = diagnose(&then, s);
    chat.engine = then;
    if (mw_chat_set(c, &chat, &e) != 0)
        fail_with(&e);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
    mw_model_anchor(model, &a);
    assert_true(a.n_token == rates.n_token);
    assert_true(fabs(a.token_s / rates.token_s - 1) < 0.05);
    sample_of(c, s);
    after = diagnose(&then, s);
    assert_false(after.is_measured);
    assert_true(fabs(after.tps / sheet.tps - 1) < 0.05);
    mw_chat_close(c);
    free(s);
}

/* The limits say that the disk takes no time, and computing seconds.  The tokens waited. */
static void advice_begins_at_the_tokens(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk(), then = o, f32 = o;
    struct mw_diagnosis before = diagnose(&o, NULL), now, shown, with;
    struct mw_chat *chat;
    struct mw_machine machine;
    char text[MW_DIAGNOSIS_TEXT], command[40], advice[64];

    (void)state;
    assert_non_null(s);
    assert_false(before.is_measured);
    assert_int_not_equal(before.binds, MW_BINDS_DISK);
    chat = answer(&o);
    sample_of(chat, s);
    now = diagnose(&o, s);
    assert_true(now.is_measured);
    assert_int_equal(now.binds, MW_BINDS_DISK);
    assert_true(now.tps < ADVICE_READING_TPS && now.share > 0.5);
    assert_string_equal(now.advice, "more_budget");
    assert_true(now.budget_bytes > o.memory_bytes);
    assert_true(now.to_tps >= ADVICE_GAIN * now.tps);
    mw_machine_read(&machine);
    assert_true(now.budget_bytes < machine.budget_bytes);
    /* The proposal with its settings is the same prediction. */
    then.memory_bytes = now.budget_bytes;
    with = diagnose(&then, s);
    assert_false(with.is_measured);
    assert_true(fabs(with.tps / now.to_tps - 1) < 0.01);
    /* Other keys and values do not make the disk faster. */
    f32.kv_k = f32.kv_v = MW_KV_F32;
    f32.memory_bytes = smallest_budget(model, &f32);
    assert_int_equal(diagnose(&f32, s).binds, MW_BINDS_DISK);
    /* The screen and recordings have the same. */
    mw_diagnosis_of_sample(s, &shown);
    assert_string_equal(shown.advice, now.advice);
    assert_int_equal(shown.budget_bytes, now.budget_bytes);
    assert_int_equal(shown.binds, now.binds);
    mw_diagnosis_command(&shown, command, sizeof command);
    mw_diagnosis_text(&shown, "F10: /", text, sizeof text);
    snprintf(advice, sizeof advice, "F10: /%s for ~", command);
    assert_non_null(strstr(text, "disk-bound: "));
    assert_non_null(strstr(text, advice));
    /* More keys and values take longer, if the disk does not hide it. */
    assert_true(now.full_tps > 0 && now.full_tps <= now.tps);
    assert_true(shown.full_tps == now.full_tps && before.full_tps == before.tps);
    /* The sampler's time is a part of a token's. */
    for (size_t i = 0; i < MW_RECENT; i++)
        s->recent[i].sample_ns += s->recent[i].wall_ns;
    mw_diagnosis_of_sample(s, &shown);
    assert_true(shown.tps < 0.6 * now.tps);
    now = diagnose(&o, s);
    assert_true(fabs(shown.tps / now.tps - 1) < 0.01);
    mw_chat_close(chat);
    free(s);
}

/* Limits of a bad moment are not advice.  Tokens are, whatever the limits are. */
static void doubtful_limits_advise_nothing_until_tokens_do(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk();
    struct mw_limits l = bad_limits(&o);
    struct mw_diagnosis d;
    struct mw_chat *chat;
    char text[MW_DIAGNOSIS_TEXT];

    (void)state;
    assert_non_null(s);
    l.memory_bytes_s = 2e10;
    for (uint32_t i = 0; i < l.n_rate; i++)
        l.rate[i].column_bytes_s = 2e10;
    mw_model_set_limits(model, &l);
    d = diagnose(&o, NULL);
    assert_string_equal(d.advice, "more_budget");
    l.is_doubtful = true;
    mw_model_set_limits(model, &l);
    d = diagnose(&o, NULL);
    assert_true(d.is_doubtful);
    assert_string_equal(d.advice, "");
    mw_diagnosis_why_not(&d, text, sizeof text);
    assert_non_null(strstr(text, "measured in a bad moment"));
    chat = answer(&o);
    sample_of(chat, s);
    d = diagnose(&o, s);
    assert_false(d.is_doubtful);
    assert_string_equal(d.advice, "more_budget");
    mw_chat_close(chat);
    free(s);
}

/* A drafter that lost was closed: tokens of now are without it, and a change that brings it back is
 * predicted from them. */
static void a_closed_drafter_is_not_of_the_tokens_of_now(void **state)
{
    struct mw_options with = slow_disk(), off = with;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_limits l = bad_limits(&with);
    struct mw_diagnosis before, then, now;
    char text[MW_DIAGNOSIS_TEXT];
    struct err e = ERR_INIT;
    struct said said;
    struct mw_chat *c;

    (void)state;
    assert_non_null(s);
    l.memory_bytes_s = 2e10;
    for (uint32_t i = 0; i < l.n_rate; i++) {
        l.rate[i].column_bytes_s = 2e10;
        l.rate[i].chunk_flops_s = 1e13;
    }
    mw_model_set_limits(model, &l);
    no_error(mw_model_attach(model, model_path("gemma4-tiny-assistant.gguf"), &e), &e);
    with.draft = MW_DRAFT_MTP;
    with.memory_bytes = off.memory_bytes = 128 * MIB;
    before = diagnose(&with, NULL);
    assert_true(before.tps > 1.2 * diagnose(&off, NULL).tps);
    assert_true(before.assumed > 0.69 && before.assumed < 0.71);
    mw_diagnosis_text(&before, "--", text, sizeof text);
    assert_non_null(strstr(text, "tok/s if 70 % of the drafts are right; "));
    c = answer(&with);
    c->session->drafts.depth.share = 0.5;
    c->session->drafts.depth.stake = -1;
    leave_losing_drafter(c->session);
    assert_null(c->session->head);
    ask(c, "and now", &said);
    sample_of(c, s);
    now = diagnose(&off, s);
    then = diagnose(&with, s);
    assert_true(now.is_measured && now.assumed <= 0);
    assert_true(!then.is_measured && then.assumed > 0);
    assert_true(then.tps > 1.1 * now.tps);
    mw_chat_close(c);
    free(s);
}

/* Let each pass take pass_s, and every second token be an accepted draft. */
static void accept_drafts(struct mw_sample *s, double pass_s)
{
    for (size_t i = 0; i < MW_RECENT; i++) {
        struct mw_token *k = &s->recent[i];

        if (k->n % 2 == 1)
            k->wall_ns = k->n_col = 0;
        else
            k->wall_ns = (uint64_t)(pass_s * 1e9);
        k->sample_ns = 0;
    }
}

static void drafts_say_nothing_about_another_drafter(void **state)
{
    struct mw_options off = slow_disk(), with = off, more;
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_diagnosis now, then;
    struct plan_anchor a;
    struct mw_chat *c;

    (void)state;
    assert_non_null(s);
    with.draft = MW_DRAFT_NGRAM;
    off.draft = MW_DRAFT_OFF;
    more = with;
    more.memory_bytes += MIB;
    c = answer(&with);
    sample_of(c, s);
    mw_model_anchor(model, &a);
    accept_drafts(s, a.token_s);
    now = diagnose(&with, s);
    assert_true(now.is_measured && fabs(now.tps * a.token_s - 2) < 0.1);
    assert_true(diagnose(&more, s).tps > 0.95 * now.tps); /* the same drafts */
    then = diagnose(&off, s);
    assert_false(then.is_measured);
    assert_true(fabs(then.tps * a.token_s - 1) < 0.1);
    assert_true(then.full_tps * a.token_s < 1.1);
    mw_chat_close(c);
    free(s);
}

/* Tokens that waited for the disk do not come faster with other threads, whatever the limits say:
 * only what the formula expects of the change counts. */
static void other_threads_promise_nothing(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk(), other;
    struct mw_limits l = bad_limits(&o);
    struct mw_chat *chat;
    double now, then;

    (void)state;
    assert_non_null(s);
    l.n_thread = o.n_thread;
    l.disk_bytes_s = 200e9; /* far from what the tokens see */
    l.memory_bytes_s = 2e10;
    for (uint32_t i = 0; i < l.n_rate; i++)
        l.rate[i].column_bytes_s = 2e10;
    mw_model_set_limits(model, &l);
    o.disk_rate /= 2;
    chat = answer(&o);
    sample_of(chat, s);
    now = diagnose(&o, s).tps;
    other = o;
    other.n_thread = o.n_thread == 1 ? 2 : 1;
    then = diagnose(&other, s).tps;
    assert_true(now > 0 && then > 0.8 * now && then < 1.2 * now);
    mw_chat_close(chat);
    free(s);
}

/* A figure that changes a little from token to token proposes the same size. */
static void a_proposed_size_stays(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk();
    struct mw_chat *chat = answer(&o);
    struct mw_diagnosis d;
    struct err e = ERR_INIT;
    uint64_t first;

    (void)state;
    assert_non_null(s);
    sample_of(chat, s);
    d = diagnose(&o, s);
    assert_string_equal(d.advice, "more_budget");
    first = d.budget_bytes + MIB / 4;
    d.budget_bytes = first;
    assert_int_equal(mw_diagnose(model, &o, s, &d, &e), 0);
    assert_int_equal(d.budget_bytes, first);
    d.budget_bytes = first - first / 6; /* near, but much slower */
    assert_int_equal(mw_diagnose(model, &o, s, &d, &e), 0);
    assert_int_equal(d.budget_bytes, first - MIB / 4);
    d.budget_bytes = 10 * first; /* not near */
    assert_int_equal(mw_diagnose(model, &o, s, &d, &e), 0);
    assert_true(d.budget_bytes < 2 * first);
    mw_chat_close(chat);
    free(s);
}

/* Above 100 tokens a second, the bound is a matter of chance: it was another one in each of six
 * starts. */
static void nothing_is_said_of_the_bound_of_fast_answers(void **state)
{
    struct mw_diagnosis d = { .is_measured = true, .tps = 450, .share = 0.39, .is_fast = true };
    char text[MW_DIAGNOSIS_TEXT];

    (void)state;
    for (int b = MW_BINDS_DISK; b < MW_BINDS_COUNT; b++) {
        d.binds = (enum mw_binds)b;
        mw_diagnosis_text(&d, "F10: /", text, sizeof text);
        if (b == MW_BINDS_SWAP) {
            assert_non_null(strstr(text, "swapping: 39 %"));
            continue;
        }
        assert_string_equal(mw_diagnosis_label(&d), "fast");
        assert_string_equal(mw_diagnosis_word(&d), "fast");
        assert_string_equal(text, "fast: more than 100 tokens a second; nothing to change");
    }
    d.tps = 99;
    d.binds = MW_BINDS_KV;
    assert_string_equal(mw_diagnosis_label(&d), "context-bound");
    assert_string_equal(mw_diagnosis_word(&d), "context");
    d.binds = MW_BINDS_MEMORY;
    assert_string_equal(mw_diagnosis_word(&d), "RAM-bandwidth");
    d = (struct mw_diagnosis){ .binds = MW_BINDS_DISK, .tps = 3.347, .read_bytes = MIB };
    mw_diagnosis_text(&d, "F10: /", text, sizeof text);
    assert_non_null(strstr(text, "the plan predicts ~3.3 tok/s"));
}

/* The passes of a prompt have a verdict, but say nothing about answers. */
static void answers_are_predicted_while_a_prompt_is_read(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk();
    struct mw_chat *chat;
    struct mw_diagnosis d;

    (void)state;
    assert_non_null(s);
    chat = answer(&o);
    sample_of(chat, s);
    assert_true(diagnose(&o, s).is_measured);
    s->state = MW_PREFILL;
    memset(s->recent, 0, sizeof s->recent);
    assert_int_not_equal(s->verdict.binds, MW_BINDS_NONE);
    d = diagnose(&o, s);
    assert_false(d.is_measured);
    assert_true(d.tps > 0);
    mw_chat_close(chat);
    free(s);
}

/* A recording may claim any share of right drafts.  The text is cut to fit. */
static void a_share_with_300_digits_is_cut(void **state)
{
    struct mw_diagnosis d = { .binds = MW_BINDS_DISK, .tps = 1, .assumed = 1e300 };
    char text[MW_DIAGNOSIS_TEXT + 64];

    (void)state;
    for (d.read_bytes = 0; d.read_bytes <= 1000; d.read_bytes += 1000) {
        memset(text, '#', sizeof text);
        mw_diagnosis_text(&d, "", text, MW_DIAGNOSIS_TEXT);
        assert_int_equal(strlen(text), MW_DIAGNOSIS_TEXT - 1);
        for (size_t i = MW_DIAGNOSIS_TEXT; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
}

/* Nobody reads faster. */
static void fast_answers_need_no_advice(void **state)
{
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_options o = slow_disk();
    struct mw_chat *chat;
    struct mw_diagnosis d;
    char text[MW_DIAGNOSIS_TEXT];

    (void)state;
    assert_non_null(s);
    o.disk_rate *= 40;
    chat = answer(&o);
    sample_of(chat, s);
    for (uint64_t i = 0; i < MW_RECENT; i++) /* whatever this machine does beside */
        s->recent[i].wall_ns = s->recent[i].wall_ns > 0 ? 20000000 : 0;
    d = diagnose(&o, s);
    assert_true(d.is_fast);
    assert_string_equal(d.advice, "");
    mw_diagnosis_text(&d, "--", text, sizeof text);
    assert_non_null(strstr(text, "; fast enough to read: nothing to change"));
    mw_chat_close(chat);
    free(s);
}

/* A budget that a limit keeps from being larger names the limit, without its path. */
static void the_limit_of_a_proposed_budget_is_named(void **state)
{
    struct mw_diagnosis d = { .advice = "more_budget",
                              .held_back = "the control group's limit of 900 MiB",
                              .budget_bytes = 900 * MIB,
                              .tps = 2.3,
                              .to_tps = 3.1 };
    char text[MW_DIAGNOSIS_TEXT];

    (void)state;
    assert_string_equal(mw_diagnosis_advice(&d, "F10: /", text, sizeof text),
                        "F10: /memory 900M for ~3.1 tok/s, all that the control group's limit of "
                        "900 MiB allows");
    d = (struct mw_diagnosis){
        .advice = "self_drafts", .tps = 0.46, .to_tps = 1.2, .acceptance = 0.8
    };
    assert_string_equal(mw_diagnosis_advice(&d, "--", text, sizeof text),
                        "--draft self for ~1.2 tok/s, if 80 % of the drafts are right");
    snprintf(d.held_back, sizeof d.held_back, "the control group's limit of 900 MiB");
    d.advice[0] = '\0';
    assert_string_equal(mw_diagnosis_why_not(&d, text, sizeof text),
                        "no larger budget is possible: the control group's limit of 900 MiB");
}

/* A panel reads it from the sample. */
static void a_sample_keeps_the_drafts_that_are_assumed(void **state)
{
    const struct mw_diagnosis d = { .tps = 2.6, .assumed = 0.5, .binds = MW_BINDS_DISK,
                                    .read_bytes = 1008 * MIB };
    struct mw_sample *s = calloc(1, sizeof *s);
    struct mw_diagnosis shown;
    char text[MW_DIAGNOSIS_TEXT], same[MW_DIAGNOSIS_TEXT];

    (void)state;
    assert_non_null(s);
    mw_diagnosis_to_sample(&d, s);
    mw_diagnosis_of_sample(s, &shown);
    free(s);
    assert_string_equal(mw_diagnosis_text(&shown, "", text, sizeof text),
                        mw_diagnosis_text(&d, "", same, sizeof same));
    assert_string_equal(text, "~disk-bound: ~2.6 tok/s if 50 % of the drafts are right; a pass "
                              "reads ~1008 MiB of weights");
}

struct row {
    void (*test)(void **state);
};

/* Open the model in the test: a set-up cannot skip a test if the model is not there. */
static void with_model(void **state)
{
    const struct row *row = *state;

    open_all();
    row->test(state);
}

#define WITH_MODEL(test) { #test, with_model, NULL, close_all, &(struct row){ test } }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_keeps_the_drafts_that_are_assumed),
        cmocka_unit_test(the_limit_of_a_proposed_budget_is_named),
        WITH_MODEL(tokens_are_the_prediction),
        WITH_MODEL(tokens_of_two_answers_are_not_of_one),
        WITH_MODEL(a_short_answer_measures_with_a_doubt),
        WITH_MODEL(a_change_has_the_rate_that_its_sheet_promised),
        WITH_MODEL(drafts_say_nothing_about_another_drafter),
        WITH_MODEL(advice_begins_at_the_tokens),
        WITH_MODEL(doubtful_limits_advise_nothing_until_tokens_do),
        WITH_MODEL(a_closed_drafter_is_not_of_the_tokens_of_now),
        WITH_MODEL(other_threads_promise_nothing),
        WITH_MODEL(a_proposed_size_stays),
        cmocka_unit_test(nothing_is_said_of_the_bound_of_fast_answers),
        WITH_MODEL(answers_are_predicted_while_a_prompt_is_read),
        cmocka_unit_test(a_share_with_300_digits_is_cut),
        WITH_MODEL(fast_answers_need_no_advice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
