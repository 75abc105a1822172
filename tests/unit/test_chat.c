/*
 * A conversation on its own thread: messages are answered, tokens in the KV store are not
 * evaluated again, a cancelled answer keeps its text, and a change of options keeps the
 * conversation.
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

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/session/chat_internal.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

static struct mw_model *model;

static struct mw_chat_options base_options(void)
{
    struct mw_chat_options o = { .engine = small_options(256), .n_predict = 12 };

    mw_sampling_default(model, &o.sampling);
    o.sampling.temp = 0;
    return o;
}

static void a_question_is_answered_the_same_at_every_budget(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second;
    uint64_t least;

    (void)state;
    ask(c, "hello there", &first);
    assert_int_equal(first.receipt.done, MW_DONE_LENGTH);
    assert_int_equal(first.receipt.n_decoded, 12);
    assert_true(first.len > 0);
    mw_chat_close(c);
    least = smallest_budget(model, &o.engine);
    o.engine.memory_bytes = least;
    c = open_chat(model, &o);
    ask(c, "hello there", &second);
    assert_string_equal(first.text, second.text);
    mw_chat_close(c);
}

static void a_follow_up_evaluates_only_what_is_new(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second;

    (void)state;
    ask(c, "one", &first);
    ask(c, "two", &second);
    assert_int_equal(first.receipt.n_reused, 0);
    /* Everything but the last token of the first answer. */
    assert_true(second.receipt.n_reused >=
                first.receipt.n_prompt + first.receipt.n_decoded - 1);
    mw_chat_close(c);
}

/* A SentencePiece vocabulary whose template prints a space before old answers only. */
static void every_turn_of_a_template_extends_the_last_one(void **state)
{
    static const char *const names[] = { "gemma4-tiny-q4_0.gguf", "llama-tiny.gguf" };
    struct mw_model *usual = model;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct mw_chat_options o;
        struct mw_chat *c;
        uint32_t held = 0;

        model = open_model(names[i]);
        o = base_options();
        c = open_chat(model, &o);
        for (int turn = 0; turn < 4; turn++) {
            struct said said;

            ask(c, turn % 2 == 0 ? "hello there" : "and now?", &said);
            assert_true(said.receipt.n_decoded > 0);
            /* All but the last token of an answer is evaluated. */
            assert_true(said.receipt.n_reused + 1 >= held);
            assert_true(said.receipt.n_prompt < 32);
            held = said.receipt.n_reused + said.receipt.n_prompt + said.receipt.n_decoded;
        }
        mw_chat_close(c);
        mw_model_close(model);
    }
    model = usual;
}

static void an_answer_made_again_is_the_same(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second, again;
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &first);
    ask(c, "two", &second);
    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_DONE);
    assert_string_equal(second.text, again.text);
    assert_true(again.receipt.n_reused > 0);
    /* Go back to the first question and ask the second one again. */
    assert_int_equal(mw_chat_rewind(c, 2, &e), 0);
    ask(c, "two", &again);
    assert_string_equal(second.text, again.text);
    mw_chat_close(c);
}

static void retry(struct mw_chat *c, struct said *said)
{
    struct err e = ERR_INIT;

    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, said), MW_EVENT_DONE);
}

static struct mw_chat_options seeded_options(uint64_t seed)
{
    struct mw_chat_options o = base_options();

    o.sampling.temp = 1.2f;
    o.sampling.seed = (struct mw_seed){ true, seed };
    return o;
}

/* The n-th answer to a message follows from the seed, and no two of them are the same. */
static void a_seed_gives_the_same_answers_each_time(void **state)
{
    struct mw_chat_options o = seeded_options(7), other = o;
    struct mw_chat *c = open_chat(model, &o);
    struct said answer[3], next, said, tail;
    struct err e = ERR_INIT;
    struct mw_message saved[2];

    (void)state;
    ask(c, "one", &answer[0]);
    retry(c, &answer[1]);
    retry(c, &answer[2]);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(answer[i].receipt.attempt, i);
        assert_string_not_equal(answer[i].text, answer[(i + 1) % 3].text);
    }
    /* After going back, in the middle of a longer chat. */
    ask(c, "two", &next);
    assert_int_equal(next.receipt.attempt, 0);
    assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
    ask(c, "one", &said);
    assert_string_equal(said.text, answer[0].text);
    retry(c, &said);
    assert_string_equal(said.text, answer[1].text);
    mw_chat_close(c);
    /* In another chat with another budget and without drafts, and cut in the middle. */
    other.engine.memory_bytes = smallest_budget(model, &o.engine);
    other.engine.draft = MW_DRAFT_OFF;
    other.n_predict = o.n_predict / 2;
    c = open_chat(model, &other);
    ask(c, "one", &said);
    assert_memory_equal(said.text, answer[0].text, said.len);
    retry(c, &said);
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, &tail), MW_EVENT_DONE);
    assert_int_equal(tail.receipt.attempt, 1);
    assert_int_equal(said.len + tail.len, answer[1].len);
    assert_memory_equal(said.text, answer[1].text, said.len);
    assert_memory_equal(tail.text, answer[1].text + said.len, tail.len);
    mw_chat_close(c);
    /* In a chat that was saved: two answers were made, and the first is shown. */
    saved[0] = (struct mw_message){ .role = MW_USER, .text = "one", .len = 3, .attempt = 2 };
    saved[1] = (struct mw_message){ .role = MW_ASSISTANT, .text = answer[0].text,
                                    .len = answer[0].len };
    c = open_chat(model, &o);
    assert_int_equal(mw_chat_restore(c, saved, 2, 0, &e), 0);
    retry(c, &said);
    assert_string_equal(said.text, answer[2].text);
    assert_int_equal(said.receipt.attempt, 2);
    mw_chat_close(c);
}

static void without_a_seed_every_answer_is_another_one(void **state)
{
    struct mw_chat_options o = seeded_options(7);
    struct mw_chat *c;
    struct said first, second;
    struct err e = ERR_INIT;

    (void)state;
    o.sampling.seed.is_set = false;
    o.sampling.temp = 100; /* by chance, two answers are hardly ever the same */
    c = open_chat(model, &o);
    ask(c, "one", &first);
    assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
    ask(c, "one", &second);
    assert_string_not_equal(first.text, second.text);
    retry(c, &first);
    assert_string_not_equal(first.text, second.text);
    mw_chat_close(c);
}

static void the_model_does_not_see_asides(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second, again;
    struct err e = ERR_INIT;
    uint32_t n;

    (void)state;
    ask(c, "one", &first);
    ask(c, "two", &second);
    n = mw_chat_tokens(c);
    assert_int_equal(mw_chat_rewind(c, 2, &e), 0);
    assert_int_equal(mw_chat_aside(c, &e), 0);
    ask(c, "two", &again);
    assert_string_equal(second.text, again.text);
    assert_int_equal(n, mw_chat_tokens(c));
    /* They count as messages: keep the first answer, the aside, and nothing after it. */
    assert_int_equal(mw_chat_rewind(c, 4, &e), 0);
    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_ERROR);
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_ERROR);
    ask(c, "two", &again);
    assert_string_equal(second.text, again.text);
    mw_chat_close(c);
}

static void a_saved_aside_is_not_seen_either(void **state)
{
    struct mw_message messages[] = {
        { .role = MW_USER, .text = "hidden", .len = 6 },
        { .role = MW_ASSISTANT, .text = "shown", .len = 5, .is_aside = true },
    };
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said plain, after;
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &plain);
    assert_int_equal(mw_chat_restore(c, messages, 2, 0, &e), 0);
    ask(c, "one", &after);
    assert_string_equal(plain.text, after.text);
    mw_chat_close(c);
}

static void a_cut_answer_goes_on_where_it_was(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct said whole, head, tail;
    struct err e = ERR_INIT;

    (void)state;
    o.n_predict = 24;
    c = open_chat(model, &o);
    ask(c, "tell me", &whole);
    mw_chat_close(c);
    o.n_predict = 12;
    c = open_chat(model, &o);
    ask(c, "tell me", &head);
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, &tail), MW_EVENT_DONE);
    assert_int_equal(head.len + tail.len, whole.len);
    assert_memory_equal(head.text, whole.text, head.len);
    assert_memory_equal(tail.text, whole.text + head.len, tail.len);
    mw_chat_close(c);
}

static void a_saved_conversation_is_taken_over(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second, restored;
    struct mw_message messages[2];
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &first);
    ask(c, "two", &second);
    mw_chat_close(c);
    messages[0] = (struct mw_message){ .role = MW_USER, .text = "one", .len = 3 };
    messages[1] =
        (struct mw_message){ .role = MW_ASSISTANT, .text = first.text, .len = first.len };
    c = open_chat(model, &o);
    assert_int_equal(mw_chat_restore(c, messages, 2, 0, &e), 0);
    ask(c, "two", &restored);
    assert_true(restored.receipt.n_prompt > second.receipt.n_prompt);
    assert_int_equal(restored.receipt.n_reused, 0);
    mw_chat_close(c);
}

static void options_change_between_answers(void **state)
{
    struct mw_chat_options o = base_options(), other;
    struct mw_chat *c = open_chat(model, &o);
    struct said first, second, changed, said;
    struct err e = ERR_INIT;
    uint64_t least;

    (void)state;
    ask(c, "one", &first);
    ask(c, "two", &second);
    least = smallest_budget(model, &o.engine);
    for (int i = 0; i < 4; i++) {
        other = o;
        if (i == 0)
            other.engine.memory_bytes = least;
        if (i == 1)
            other.engine.n_ctx = 512;
        if (i == 2)
            other.engine.io = MW_IO_BUFFERED;
        if (i == 3)
            other.engine.n_thread = 1;
        assert_int_equal(mw_chat_set(c, &other, &e), 0);
        assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
        assert_int_equal(mw_chat_rewind(c, 2, &e), 0);
        ask(c, "two", &changed);
        assert_string_equal(second.text, changed.text);
        assert_true(changed.receipt.n_reused > 0);
    }
    /* With another KV type, the conversation is evaluated again. */
    other = o;
    other.engine.kv_k = other.engine.kv_v = MW_KV_F32;
    assert_int_equal(mw_chat_set(c, &other, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
    ask(c, "three", &changed);
    assert_int_equal(changed.receipt.n_reused, 0);
    mw_chat_close(c);
}

/* Continue an answer that was cut, after a change of options. */
static void go_on(const struct mw_chat_options *o, const struct mw_chat_options *then,
                  struct said *rest)
{
    struct mw_chat *c = open_chat(model, o);
    struct err e = ERR_INIT;
    struct said said;

    ask(c, "one", &said);
    assert_int_equal(said.receipt.done, MW_DONE_LENGTH);
    if (then != NULL) {
        assert_int_equal(mw_chat_set(c, then, &e), 0);
        assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
    }
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, rest), MW_EVENT_DONE);
    mw_chat_close(c);
}

static void an_answer_goes_on_with_the_same_words_after_a_change(void **state)
{
    struct mw_chat_options o = base_options(), other;
    struct said unchanged, changed;
    uint64_t least;

    (void)state;
    least = smallest_budget(model, &o.engine);
    go_on(&o, NULL, &unchanged);
    assert_true(unchanged.len > 0);
    for (int i = 0; i < 4; i++) {
        other = o;
        if (i == 0)
            other.engine.n_ctx = 1024;
        if (i == 1)
            other.engine.n_ctx = 64;
        if (i == 2)
            other.engine.memory_bytes = least;
        if (i == 3)
            other.engine.n_thread = 1;
        go_on(&o, &other, &changed);
        assert_string_equal(unchanged.text, changed.text);
        assert_true(changed.receipt.n_reused > 0); /* old keys and values are used */
    }
}

static void a_saved_answer_that_was_cut_goes_on_after_its_text(void **state)
{
    static const struct mw_message cut[] = {
        { .role = MW_USER, .text = "What is a ring?", .len = 15 },
        { .role = MW_ASSISTANT, .text = "A ring is a buffer that", .len = 23 },
    };
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said begun, gone_on;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(mw_chat_restore(c, cut, 1, 0, &e), 0);
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, &begun), MW_EVENT_DONE);
    assert_int_equal(mw_chat_restore(c, cut, 2, 0, &e), 0);
    assert_int_equal(mw_chat_continue(c, &e), 0);
    assert_int_equal(wait_for_end(c, &gone_on), MW_EVENT_DONE);
    /* The model has read the words of the cut answer. */
    assert_true(gone_on.receipt.n_prompt + gone_on.receipt.n_reused >
                begun.receipt.n_prompt + begun.receipt.n_reused);
    mw_chat_close(c);
}

/* Wait until the engine has run all commands. */
static void settle(struct mw_chat *c)
{
    while (mw_chat_is_busy(c))
        poll(NULL, 0, 1);
}

static void a_context_shorter_than_the_held_tokens_drops_only_rewound_ones(void **state)
{
    struct mw_chat_options o = base_options(), shorter = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said said, again;
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &said);
    for (int i = 0; i < 3; i++)
        ask(c, "another question to fill some of the context with", &again);
    shorter.engine.n_ctx = said.receipt.n_prompt + 2 * o.n_predict;
    assert_int_equal(mw_chat_rewind(c, 1, &e), 0);
    assert_int_equal(mw_chat_set(c, &shorter, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_PLAN);
    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_DONE);
    assert_string_equal(again.text, said.text);
    mw_chat_close(c);
}

/* The tokens of an answer need not come out of its text, so its ids come back, too. */
static void stashed_messages_come_back_with_their_ids(void **state)
{
    static const char *const questions[] = { "one", "two", "three" };
    struct mw_chat_options o = base_options();
    struct mw_chat *c, *plain;
    struct said said[3], trial, after, expected;
    struct err e = ERR_INIT;

    (void)state;
    o.engine.n_ctx = 512;
    c = open_chat(model, &o);
    plain = open_chat(model, &o);
    assert_int_equal(mw_chat_stash(c, 0, 0, &e), 0); /* there is no message yet */
    assert_int_equal(mw_chat_unstash(c, &e), 0);
    for (size_t i = 0; i < 3; i++) {
        ask(c, questions[i], &said[i]);
        ask(plain, questions[i], &trial);
        assert_string_equal(said[i].text, trial.text);
    }
    assert_int_equal(mw_chat_unstash(c, &e), 0); /* nothing was stashed */
    for (int i = 0; i < 2; i++) { /* the second replaces the first */
        assert_int_equal(mw_chat_stash(c, i == 0 ? 4 : 2, 6, &e), 0);
        ask(c, "something else", &trial);
        assert_int_equal(mw_chat_unstash(c, &e), 0);
    }
    ask(c, "four", &after);
    ask(plain, "four", &expected);
    assert_string_equal(after.text, expected.text);
    assert_int_equal(after.receipt.n_prompt + after.receipt.n_reused,
                     expected.receipt.n_prompt + expected.receipt.n_reused);
    mw_chat_close(c);
    mw_chat_close(plain);
}

static const struct mw_message earlier[] = {
    { .role = MW_USER, .text = "What is a ring?", .len = 15 },
    { .role = MW_ASSISTANT,
      .text = "A ring is a buffer that never ends, of which a part is always full.",
      .len = 67 },
};

static void another_kv_type_gives_the_same_as_a_fresh_start(void **state)
{
    struct mw_chat_options half = base_options(), full = base_options();
    struct mw_chat *changed, *fresh;
    struct said said, after, want;
    struct mw_cost cost;
    struct err e = ERR_INIT;

    (void)state;
    full.engine.kv_k = full.engine.kv_v = MW_KV_F32;
    changed = open_chat(model, &half);
    assert_int_equal(mw_chat_restore(changed, earlier, 2, 0, &e), 0);
    ask(changed, "And a page?",
        &said); /* the store now holds keys and values of the other type */
    assert_int_equal(mw_chat_rewind(changed, 2, &e), 0);
    assert_int_equal(mw_chat_set(changed, &full, &e), 0);
    assert_int_equal(wait_for_end(changed, &said), MW_EVENT_PLAN);
    ask(changed, "And a slot?", &after);
    assert_int_equal(after.receipt.n_reused, 0);

    fresh = open_chat(model, &full);
    assert_int_equal(mw_chat_restore(fresh, earlier, 2, 0, &e), 0);
    ask(fresh, "And a slot?", &want);
    assert_string_equal(after.text, want.text);
    assert_int_equal(after.receipt.n_prompt, want.receipt.n_prompt);

    /* The whole conversation is held, so nothing is evaluated again for the next message. */
    settle(fresh);
    assert_int_equal(mw_chat_cost(fresh, 1, &cost, &e), 0);
    assert_int_equal(cost.n_again, 0);
    mw_chat_close(changed);
    mw_chat_close(fresh);
}

static void the_cost_of_a_message_counts_what_must_be_evaluated_again(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct mw_cost before, cost;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(mw_chat_cost(c, 1, &before, &e), 0);
    assert_int_equal(before.n_again, 0);
    assert_int_equal(before.n_ctx_left, 256);
    assert_int_equal(mw_chat_restore(c, earlier, 2, 0, &e), 0);
    settle(c);
    assert_int_equal(mw_chat_cost(c, 1, &cost, &e), 0);
    assert_true(cost.n_again > 10);
    assert_int_equal(cost.n_token, before.n_token);
    assert_true(cost.n_ctx_left < 256);
    mw_chat_close(c);
}

/* The same number of tokens is left in the status bar and in the cost of a line. */
static void a_cost_leaves_the_tokens_that_the_sample_leaves(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct mw_sample *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT;
    struct mw_cost cost;
    struct said said;

    (void)state;
    ask(c, "And a page?", &said);
    settle(c);
    mw_chat_sample(c, s);
    assert_int_equal(mw_chat_cost(c, 1, &cost, &e), 0);
    assert_true(s->kv.context > 0);
    assert_int_equal(cost.n_ctx_left, s->kv.capacity - s->kv.context);
    free(s);
    mw_chat_close(c);
}

static void limits_predict_the_cost_before_the_first_prompt(void **state)
{
    struct mw_limits none = { 0 }, limits;
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct err e = ERR_INIT;
    struct mw_cost cost;
    struct plan plan;

    (void)state;
    assert_int_equal(mw_chat_cost(c, 1, &cost, &e), 0);
    assert_true(cost.is_at_least);
    if (mw_limits_measure(model, &o.engine, 0.03, &limits, &e) != 0)
        fail_with(&e);
    mw_rates_list(model, &o.engine, &limits);
    if (mw_rates_measure(&o.engine, &limits, &e) != 0)
        fail_with(&e);
    assert_true(limits.memory_bytes_s > 0); /* the file is too small to measure the disk */
    assert_true(limits.n_rate > 0 && limits.rate[0].column_bytes_s > 0 &&
                limits.rate[0].chunk_flops_s > 0);
    mw_model_set_limits(model, &limits);
    assert_int_equal(mw_chat_cost(c, 1, &cost, &e), 0);
    assert_false(cost.is_at_least);
    assert_true(cost.seconds > 0);
    assert_int_equal(mw_plan(model, &o.engine, &plan, &e), 0);
    assert_true(plan.decode_tps > 0 && plan.prefill_tps > 0);
    mw_model_set_limits(model, &none);
    mw_chat_close(c);
}

/* A pass with few tokens takes about as long as one with many. */
static void a_short_prompt_has_no_pace(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said said;

    (void)state;
    ask(c, "one", &said);
    settle(c);
    assert_true(said.receipt.n_prompt < 64);
    assert_true(c->prompt_compute_s <= 0);
    ask(c, "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
           "fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two",
        &said);
    settle(c);
    assert_true(said.receipt.n_prompt >= 64);
    assert_true(c->prompt_compute_s > 0);
    mw_chat_close(c);
}

static void a_change_that_does_not_fit_changes_nothing(void **state)
{
    struct mw_chat_options o = base_options(), small = o;
    struct mw_chat *c = open_chat(model, &o);
    struct said first, said, again;
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &first);
    small.engine.memory_bytes = 3 * MIB;
    assert_int_equal(mw_chat_set(c, &small, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_REFUSED);
    assert_int_equal(said.err.code, ERR_BUDGET);
    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_DONE);
    assert_string_equal(first.text, again.text);
    mw_chat_close(c);
}

static void a_full_context_stops_the_answer_and_reports_it(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct said said;

    (void)state;
    o.engine.n_ctx = 32;
    o.n_predict = 0;
    o.sampling.seed = (struct mw_seed){ true, 1 };
    c = open_chat(model, &o);
    ask(c, "one two three", &said);
    assert_true(said.receipt.done == MW_DONE_CONTEXT || said.receipt.done == MW_DONE_STOP);
    ask(c, "a second question that is a little longer than what is left of the context", &said);
    assert_int_equal(said.receipt.done, MW_DONE_CONTEXT);
    assert_int_equal(said.receipt.n_decoded, 0);
    mw_chat_close(c);
}

static void with_ctx_shift_the_oldest_turns_are_dropped(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_message all[16];
    struct err e = ERR_INIT;
    struct mw_chat *c;
    struct said said;
    bool was_noticed = false;

    (void)state;
    o.engine.n_ctx = 64;
    o.engine.ctx_shift = true;
    o.n_predict = 8;
    c = open_chat(model, &o);
    for (int i = 0; i < 8; i++) {
        ask(c, "again", &said);
        assert_true(said.receipt.done == MW_DONE_LENGTH || said.receipt.done == MW_DONE_STOP);
        was_noticed |= said.notice[0] != '\0';
    }
    assert_true(was_noticed);

    /* A longer context does not bring dropped turns back, so nothing is evaluated again for
     * it. */
    o.engine.n_ctx = 256;
    assert_int_equal(mw_chat_set(c, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
    ask(c, "again", &said);
    assert_true(said.receipt.n_prompt + said.receipt.n_reused < 64 + 32);
    assert_true(said.receipt.n_reused > 16);
    assert_string_equal(said.notice, "");

    /* Restoring the conversation brings them back. */
    for (int i = 0; i < 16; i++)
        all[i] = (struct mw_message){ .role = i % 2 ? MW_ASSISTANT : MW_USER,
                                      .text = "so",
                                      .len = 2 };
    assert_int_equal(mw_chat_restore(c, all, 16, 0, &e), 0);
    ask(c, "again", &said);
    assert_true(said.receipt.n_prompt + said.receipt.n_reused > 64 + 32);
    mw_chat_close(c);
}

static void older_messages_that_are_not_held_fill_the_context_or_are_dropped(void **state)
{
    struct mw_message messages[] = { { .role = MW_USER, .text = "hello", .len = 5 },
                                     { .role = MW_ASSISTANT, .text = "so", .len = 2 } };
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct err e = ERR_INIT;
    struct said said;
    char *long_text;

    (void)state;
    assert_int_equal(mw_chat_restore(c, messages, 2, 10, &e), 0);
    ask(c, "again", &said);
    assert_int_equal(said.receipt.done, MW_DONE_CONTEXT);
    /* Keep ten messages that are not held, two that are, and the question. */
    assert_int_equal(mw_chat_rewind(c, 12, &e), 0);
    o.engine.ctx_shift = true;
    assert_int_equal(mw_chat_set(c, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_PLAN);
    ask(c, "again", &said);
    assert_int_not_equal(said.receipt.done, MW_DONE_CONTEXT);
    assert_non_null(strstr(said.notice, "oldest 10 messages"));
    ask(c, "and again", &said);
    assert_string_equal(said.notice, "");
    long_text = calloc(1, (size_t)64 << 20);
    assert_non_null(long_text);
    assert_int_equal(mw_chat_send(c, long_text, (size_t)64 << 20, &e), -1);
    assert_int_equal(e.code, ERR_CONTEXT);
    free(long_text);
    mw_chat_close(c);
}

static void a_stop_string_ends_the_answer_before_itself(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said whole, cut;
    char stop[8] = { 0 };
    const char *stops[] = { stop, NULL };

    (void)state;
    ask(c, "hello there", &whole);
    mw_chat_close(c);
    if (whole.len < 6)
        skip();
    memcpy(stop, whole.text + whole.len / 2, 2);
    o.stop = stops;
    c = open_chat(model, &o);
    ask(c, "hello there", &cut);
    assert_int_equal(cut.receipt.done, MW_DONE_STOP);
    assert_null(strstr(cut.text, stop));
    assert_memory_equal(cut.text, whole.text, cut.len);
    mw_chat_close(c);
}

static void the_next_prompt_has_the_answer_without_its_stop_string(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_message messages[2] = { { .role = MW_USER, .text = "hello there", .len = 11 },
                                      { .role = MW_ASSISTANT } };
    struct mw_chat *c = open_chat(model, &o);
    struct said whole, cut, next, fresh;
    char stop[4] = { 0 };
    const char *stops[] = { stop, NULL };
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "hello there", &whole);
    mw_chat_close(c);
    memcpy(stop, whole.text + whole.len / 2, 3);
    o.stop = stops;
    c = open_chat(model, &o);
    ask(c, "hello there", &cut);
    assert_in_range(cut.len, 1, whole.len / 2);
    ask(c, "again", &next);
    mw_chat_close(c);

    messages[1].text = cut.text;
    messages[1].len = cut.len;
    c = open_chat(model, &o);
    assert_int_equal(mw_chat_restore(c, messages, 2, 0, &e), 0);
    ask(c, "again", &fresh);
    assert_int_equal(next.receipt.n_prompt + next.receipt.n_reused, fresh.receipt.n_prompt);
    assert_string_equal(next.text, fresh.text);
    mw_chat_close(c);
}

static void a_stop_string_that_is_empty_or_too_long_is_refused(void **state)
{
    char text[MW_STOP_BYTES + 2] = { 0 };
    const char *stops[] = { "a", text, NULL };
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct err e = ERR_INIT;

    (void)state;
    o.stop = stops;
    assert_int_equal(mw_chat_open(&c, model, &o, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    memset(text, 'x', MW_STOP_BYTES + 1);
    assert_int_equal(mw_chat_open(&c, model, &o, &e), -1);
    text[MW_STOP_BYTES] = '\0';
    mw_chat_close(open_chat(model, &o));
}

/* Wait for the next event of this kind. */
static void wait_for(struct mw_chat *c, enum mw_event_kind kind)
{
    struct mw_event event = { 0 };
    bool is_seen = false;

    while (!is_seen) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };

        assert_int_equal(poll(&p, 1, 60000), 1);
        while (!is_seen && mw_chat_next(c, &event))
            is_seen = event.kind == kind;
    }
}

/* The receipt and the screen divide the same tokens by the same time. */
static void a_pass_that_was_stopped_is_not_time_of_the_tokens(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_sample *s = malloc(sizeof *s);
    struct mw_chat *c;
    struct said said;
    struct err e = ERR_INIT;

    (void)state;
    assert_non_null(s);
    o.n_predict = 200;
    o.engine.disk_rate = MIB; /* so that a pass is stopped in the middle */
    o.engine.memory_bytes = smallest_budget(model, &o.engine);
    c = open_chat(model, &o);
    assert_int_equal(mw_chat_send(c, "go", 2, &e), 0);
    wait_for(c, MW_EVENT_TEXT);
    mw_chat_cancel(c);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    assert_int_equal(said.receipt.done, MW_DONE_CANCELLED);
    mw_chat_sample(c, s);
    assert_int_equal(s->n_decoded, said.receipt.n_decoded);
    assert_true(said.receipt.decode_ns <= s->decode_ns);
    mw_chat_close(c);
    free(s);
}

/* Other types of keys and values apply after the answer: to all of the prompt that is read now. */
static void a_prompt_that_is_read_is_evaluated_again_as_a_whole(void **state)
{
    struct mw_chat_options o = base_options();
    struct err e = ERR_INIT;
    struct mw_cost cost;
    struct plan plan;
    struct mw_chat *c;
    struct said said;
    char text[600] = "";

    (void)state;
    for (int i = 0; i < 40; i++)
        strcat(text, "one two ");
    o.engine.n_ctx = 1024;
    o.engine.disk_rate = MIB; /* so that it is not over at once */
    o.engine.memory_bytes = smallest_budget(model, &o.engine);
    c = open_chat(model, &o);
    no_error(mw_chat_plan(c, &o.engine, &plan, &e), &e);
    assert_int_equal(mw_chat_send(c, text, strlen(text), &e), 0);
    wait_for(c, MW_EVENT_STARTED);
    mw_chat_cost_again(c, &plan, &cost);
    mw_chat_cancel(c);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    assert_true(said.receipt.n_prompt > 60);
    assert_true(cost.n_again >= said.receipt.n_prompt);
    mw_chat_close(c);
}

static void a_cancel_stops_and_the_chat_goes_on(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct said said;
    struct err e = ERR_INIT;

    (void)state;
    o.n_predict = 200;
    c = open_chat(model, &o);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(mw_chat_send(c, "go", 2, &e), 0);
        wait_for(c, MW_EVENT_STARTED);
        mw_chat_cancel(c);
        assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
        assert_true(said.receipt.done == MW_DONE_CANCELLED ||
                    said.receipt.done == MW_DONE_STOP || said.receipt.done == MW_DONE_CONTEXT);
        assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
    }
    mw_chat_close(c);
}

static void a_chat_that_ends_does_not_stop_another_one_of_its_model(void **state)
{
    struct mw_chat_options o = base_options(), small = o;
    struct mw_model *fresh = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_chat *ending, *c;
    struct err e = ERR_INIT;
    struct said said;

    (void)state;
    small.engine.memory_bytes = MIB; /* it loads nothing */
    assert_int_equal(mw_chat_open(&ending, fresh, &small, &e), 0);
    assert_int_equal(wait_for_end(ending, &said), MW_EVENT_ERROR);
    assert_true(mw_chat_stop(ending, 60000));
    assert_int_equal(mw_chat_open(&c, fresh, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_READY);
    mw_chat_close(c);
    mw_chat_close(ending);
    mw_model_close(fresh);
}

static void every_message_that_a_cancel_drops_ends_with_an_event(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c = open_chat(model, &o);
    struct said first, said;
    struct mw_event event;
    struct err e = ERR_INIT;

    (void)state;
    ask(c, "one", &first);
    assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(mw_chat_send(c, "go", 2, &e), 0);
    mw_chat_cancel(c);
    settle(c);
    for (int i = 0; i < 5; i++)
        assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    assert_false(mw_chat_next(c, &event));
    assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
    ask(c, "one", &said);
    assert_string_equal(said.text, first.text);
    mw_chat_close(c);
}

static void a_budget_below_the_floor_can_be_raised(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct said said;
    struct err e = ERR_INIT;

    (void)state;
    o.engine.memory_bytes = 3 * MIB;
    assert_int_equal(mw_chat_open(&c, model, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_ERROR);
    assert_int_equal(said.err.code, ERR_BUDGET);
    o.engine.memory_bytes = 128 * MIB;
    assert_int_equal(mw_chat_set(c, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_READY);
    ask(c, "one", &said);
    assert_int_equal(said.receipt.done, MW_DONE_LENGTH);
    mw_chat_close(c);
}

static void a_chat_that_did_not_load_is_not_half_loaded_by_a_change_that_fails(void **state)
{
    struct mw_chat_options o = base_options();
    struct mw_chat *c;
    struct said said;
    struct err e = ERR_INIT;

    (void)state;
    o.format = "no such format";
    assert_int_equal(mw_chat_open(&c, model, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_ERROR);
    o.format = NULL;
    o.engine.memory_bytes = 3 * MIB;
    assert_int_equal(mw_chat_set(c, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_REFUSED);
    assert_int_equal(said.err.code, ERR_BUDGET);
    assert_int_equal(mw_chat_send(c, "one", 3, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_ERROR);
    assert_string_equal(said.err.what, "no model is loaded");
    mw_chat_close(c);
}

static int begin(void **state)
{
    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    return 0;
}

static int end(void **state)
{
    (void)state;
    mw_model_close(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_answered_the_same_at_every_budget),
        cmocka_unit_test(a_follow_up_evaluates_only_what_is_new),
        cmocka_unit_test(every_turn_of_a_template_extends_the_last_one),
        cmocka_unit_test(an_answer_made_again_is_the_same),
        cmocka_unit_test(a_seed_gives_the_same_answers_each_time),
        cmocka_unit_test(without_a_seed_every_answer_is_another_one),
        cmocka_unit_test(the_model_does_not_see_asides),
        cmocka_unit_test(a_saved_aside_is_not_seen_either),
        cmocka_unit_test(a_cut_answer_goes_on_where_it_was),
        cmocka_unit_test(a_saved_conversation_is_taken_over),
        cmocka_unit_test(options_change_between_answers),
        cmocka_unit_test(an_answer_goes_on_with_the_same_words_after_a_change),
        cmocka_unit_test(a_context_shorter_than_the_held_tokens_drops_only_rewound_ones),
        cmocka_unit_test(a_saved_answer_that_was_cut_goes_on_after_its_text),
        cmocka_unit_test(stashed_messages_come_back_with_their_ids),
        cmocka_unit_test(another_kv_type_gives_the_same_as_a_fresh_start),
        cmocka_unit_test(the_cost_of_a_message_counts_what_must_be_evaluated_again),
        cmocka_unit_test(a_cost_leaves_the_tokens_that_the_sample_leaves),
        cmocka_unit_test(limits_predict_the_cost_before_the_first_prompt),
        cmocka_unit_test(a_short_prompt_has_no_pace),
        cmocka_unit_test(a_change_that_does_not_fit_changes_nothing),
        cmocka_unit_test(a_full_context_stops_the_answer_and_reports_it),
        cmocka_unit_test(with_ctx_shift_the_oldest_turns_are_dropped),
        cmocka_unit_test(older_messages_that_are_not_held_fill_the_context_or_are_dropped),
        cmocka_unit_test(a_stop_string_ends_the_answer_before_itself),
        cmocka_unit_test(the_next_prompt_has_the_answer_without_its_stop_string),
        cmocka_unit_test(a_stop_string_that_is_empty_or_too_long_is_refused),
        cmocka_unit_test(a_prompt_that_is_read_is_evaluated_again_as_a_whole),
        cmocka_unit_test(a_cancel_stops_and_the_chat_goes_on),
        cmocka_unit_test(a_pass_that_was_stopped_is_not_time_of_the_tokens),
        cmocka_unit_test(a_chat_that_ends_does_not_stop_another_one_of_its_model),
        cmocka_unit_test(every_message_that_a_cancel_drops_ends_with_an_event),
        cmocka_unit_test(a_budget_below_the_floor_can_be_raised),
        cmocka_unit_test(a_chat_that_did_not_load_is_not_half_loaded_by_a_change_that_fails),
    };

    return cmocka_run_group_tests_name("chat", tests, begin, end);
}
