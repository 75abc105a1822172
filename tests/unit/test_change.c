/*
 * Options that change while an answer is made: they are in force before it ends, and its words
 * stay the same.
 *
 * While the gate is closed, the engine begins a pass only when the test waits for an event, so a
 * change always comes before the next pass, and the answer cannot end before it.
 */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/memwall.h"
#include "engine/model/forward.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"

#define QUESTION "hello there"
#define N_TOKEN  30
#define WAIT_MS  2 /* between two looks for an event */

static struct mw_model *model;
static struct mw_chat *chat;

/* ---- the gate ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_closed, has_pass; /* a pass waits */
} gate = { .mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER };

/* The linker replaces calls of forward_run() by calls of this. */
int __real_forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                       bool in_tiles, struct err *e);
int __wrap_forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                       bool in_tiles, struct err *e);

int __wrap_forward_run(struct forward *f, const uint32_t *ids, uint32_t n, enum want want,
                       bool in_tiles, struct err *e)
{
    pthread_mutex_lock(&gate.mutex);
    gate.has_pass = gate.is_closed;
    while (gate.has_pass)
        pthread_cond_wait(&gate.opened, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
    return __real_forward_run(f, ids, n, want, in_tiles, e);
}

static bool gate_has_pass(void)
{
    bool has_pass;

    pthread_mutex_lock(&gate.mutex);
    has_pass = gate.has_pass;
    pthread_mutex_unlock(&gate.mutex);
    return has_pass;
}

/* Let the pass that waits begin. */
static void gate_let(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.has_pass = false;
    pthread_cond_signal(&gate.opened);
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_set(bool is_closed)
{
    pthread_mutex_lock(&gate.mutex);
    gate.is_closed = is_closed;
    pthread_mutex_unlock(&gate.mutex);
    if (!is_closed)
        gate_let();
}

/* ---- a chat ---- */

/* Nothing is pinned. */
static struct mw_chat_options small_chat_options(void)
{
    struct mw_chat_options o = { .engine = small_options(256), .n_predict = N_TOKEN };

    mw_sampling_default(model, &o.sampling);
    o.sampling.temp = 0;
    o.engine.memory_bytes = smallest_budget(model, &o.engine);
    return o;
}

/* Returns the next event, whose text is appended to said. */
static enum mw_event_kind next_event(struct mw_event *event, struct said *said)
{
    struct pollfd p = { .fd = mw_chat_fd(chat), .events = POLLIN };

    for (int ms = 0;; ms += WAIT_MS) {
        bool has_pass = gate_has_pass();

        if (mw_chat_next(chat, event))
            break;
        if (has_pass) /* and there was no event before it */
            gate_let();
        else if (poll(&p, 1, WAIT_MS) < 0 || ms > 60000)
            fail_msg("no event within a minute");
    }
    if (event->kind == MW_EVENT_TEXT && said->len + event->len < sizeof said->text) {
        memcpy(said->text + said->len, event->text, event->len);
        said->len += event->len;
        said->text[said->len] = '\0';
    }
    said->receipt = event->receipt;
    said->err = event->err;
    return event->kind;
}

/* Take events up to one of this kind; `never` must not come before it. */
static struct mw_event expect(enum mw_event_kind kind, enum mw_event_kind never,
                              struct said *said)
{
    struct mw_event event;

    while (next_event(&event, said) != kind)
        if (event.kind == never || event.kind == MW_EVENT_ERROR)
            fail_msg("event %d came before event %d: %s", event.kind, kind, event.err.what);
    return event;
}

static void send(const char *text)
{
    struct err e = ERR_INIT;

    if (mw_chat_send(chat, text, strlen(text), &e) != 0)
        fail_with(&e);
}

static void set(const struct mw_chat_options *o)
{
    struct err e = ERR_INIT;

    if (mw_chat_set(chat, o, &e) != 0)
        fail_with(&e);
}

static void begin_chat(const struct mw_chat_options *o)
{
    chat = open_chat(model, o);
    gate_set(true);
}

static void end_chat(void)
{
    gate_set(false);
    mw_chat_close(chat);
}

/* The answer to text without a change. */
static void answer_of(const struct mw_chat_options *o, const char *text, struct said *said)
{
    chat = open_chat(model, o);
    ask(chat, text, said);
    mw_chat_close(chat);
}

static void begin_answer(const struct mw_chat_options *o, struct said *said)
{
    *said = (struct said){ .len = 0 };
    begin_chat(o);
    send(QUESTION);
    expect(MW_EVENT_TEXT, MW_EVENT_DONE, said);
}

static void end_answer(const struct said *want, struct said *said)
{
    expect(MW_EVENT_DONE, MW_EVENT_PLAN, said);
    assert_string_equal(said->text, want->text);
    assert_int_equal(said->receipt.done, want->receipt.done);
    assert_int_equal(said->receipt.n_decoded, want->receipt.n_decoded);
}

/* ---- between two tokens ---- */

static void budget_context_threads_and_io_change_between_two_tokens(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct mw_event event;
    struct said want, said;
    uint64_t least = o.engine.memory_bytes;

    (void)state;
    answer_of(&o, QUESTION, &want);
    assert_int_equal(want.receipt.n_decoded, N_TOKEN);
    begin_answer(&o, &said);
    for (int i = 0; i < 7; i++) {
        switch (i) {
        case 0: o.engine.memory_bytes = least + 400 * KIB; break; /* and a third thread */
        case 1: o.engine.n_thread = 3; break;
        case 2: o.engine.io = MW_IO_BUFFERED; break;
        case 3: o.engine.n_ctx = 128; break;
        case 4: o.engine.memory_bytes = least + 2 * MIB, o.engine.n_ctx = 512; break;
        case 5: o.engine.no_uring = true, o.engine.n_thread = 1; break;
        case 6: o.engine.memory_bytes = 128 * MIB; break;
        }
        set(&o);
        event = expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said);
        assert_int_equal(event.plan.budget_bytes, o.engine.memory_bytes);
        assert_int_equal(event.plan.n_ctx, o.engine.n_ctx);
        expect(MW_EVENT_TEXT, MW_EVENT_DONE, &said);
    }
    end_answer(&want, &said);
    end_chat();
}

static void the_next_sample_has_the_new_options(void **state)
{
    static struct mw_sample sample;
    struct mw_chat_options o = small_chat_options();
    struct said said;

    (void)state;
    begin_answer(&o, &said);
    o.engine.memory_bytes += 4 * MIB;
    o.engine.n_thread = 1;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said);
    mw_chat_sample(chat, &sample);
    assert_int_equal(sample.state, MW_DECODE);
    assert_int_equal(sample.run.budget_bytes, o.engine.memory_bytes);
    assert_int_equal(sample.run.threads, 1);
    end_chat();
}

static void a_longer_context_comes_in_time_for_an_answer_that_fills_the_old_one(void **state)
{
    struct mw_chat_options o = small_chat_options(), longer = o;
    struct said want, said = { .len = 0 };

    (void)state;
    answer_of(&o, QUESTION, &want);
    o.engine.n_ctx = want.receipt.n_prompt + 8;
    begin_answer(&o, &said);
    set(&longer);
    expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said);
    end_answer(&want, &said);
    end_chat();
}

static void a_change_of_the_budget_does_not_change_drawn_tokens(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said want, said;

    (void)state;
    o.sampling.temp = 2;
    o.sampling.seed = (struct mw_seed){ true, 7 };
    answer_of(&o, QUESTION, &want);
    begin_answer(&o, &said);
    o.engine.memory_bytes += 2 * MIB;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said);
    end_answer(&want, &said);
    end_chat();
}

static void another_temperature_applies_from_the_next_token_on(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said drawn, said;

    (void)state;
    o.sampling = (struct mw_sampling){
        .temp = 10, .top_p = 1, .repeat_penalty = 1, .repeat_last = 64, .seed = { true, 5 }
    };
    answer_of(&o, QUESTION, &drawn);
    begin_answer(&o, &said);
    o.sampling.temp = 0;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said);
    expect(MW_EVENT_DONE, MW_EVENT_PLAN, &said);
    assert_string_not_equal(said.text, drawn.text);
    end_chat();
}

/* ---- within a prompt ---- */

static void change_within_a_prompt(enum mw_blas blas)
{
    static const char text[] = "A ring is a buffer that never ends. A page is a part of it. A "
                               "block is a run of rows. A pass reads all blocks once.";
    struct mw_chat_options o = small_chat_options();
    struct mw_event event;
    struct said want, said = { .len = 0 };
    uint64_t n_progress = 0;

    o.engine.blas = blas;
    o.engine.memory_bytes = smallest_budget(model, &o.engine);
    o.engine.chunk = 8;
    o.n_predict = 12;
    answer_of(&o, text, &want);
    assert_true(want.receipt.n_prompt > 60);
    begin_chat(&o);
    send(text);
    expect(MW_EVENT_PROGRESS, MW_EVENT_TEXT, &said);
    o.engine.memory_bytes += 300 * KIB;
    set(&o);
    o.engine.n_thread = 1;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_TEXT, &said);
    expect(MW_EVENT_PLAN, MW_EVENT_TEXT, &said);
    o.engine.n_ctx = 400;
    o.engine.chunk = 16;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_TEXT, &said);
    while (next_event(&event, &said) == MW_EVENT_PROGRESS)
        n_progress = event.n;
    assert_int_equal(event.kind, MW_EVENT_TEXT);
    assert_int_equal(n_progress, want.receipt.n_prompt);
    end_answer(&want, &said);
    end_chat();
}

static void options_change_between_two_chunks_of_a_prompt(void **state)
{
    (void)state;
    change_within_a_prompt(MW_BLAS_NEVER);
    change_within_a_prompt(MW_BLAS_ALWAYS);
}

static void a_context_shorter_than_the_prompt_waits_for_the_end(void **state)
{
    static const char text[] = "A ring is a buffer that never ends. A page is a part of it. A "
                               "block is a run of rows. A pass reads all blocks once.";
    struct mw_chat_options o = small_chat_options();
    struct said want, said = { .len = 0 };

    (void)state;
    o.engine.chunk = 8;
    o.n_predict = 12;
    answer_of(&o, text, &want);
    begin_chat(&o);
    send(text);
    expect(MW_EVENT_PROGRESS, MW_EVENT_TEXT, &said);
    o.engine.n_ctx = want.receipt.n_prompt;
    set(&o);
    end_answer(&want, &said);
    assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said).plan.n_ctx, o.engine.n_ctx);
    end_chat();
}

/* ---- refused, or later ---- */

static void an_answer_goes_on_with_the_old_options_if_a_change_is_refused(void **state)
{
    struct mw_chat_options o = small_chat_options(), small = o;
    static struct mw_sample sample;
    struct said want, said;

    (void)state;
    answer_of(&o, QUESTION, &want);
    begin_answer(&o, &said);
    small.engine.memory_bytes = 3 * MIB;
    set(&small);
    expect(MW_EVENT_REFUSED, MW_EVENT_DONE, &said);
    assert_int_equal(said.err.code, ERR_BUDGET);
    mw_chat_sample(chat, &sample);
    assert_int_equal(sample.run.budget_bytes, o.engine.memory_bytes);
    end_answer(&want, &said);
    end_chat();
}

/* The second change was requested with the first one, but does not depend on it. */
static void a_refused_change_is_taken_out_of_the_next_ones(void **state)
{
    struct mw_chat_options o = small_chat_options(), next = o;
    struct said want, said;

    (void)state;
    answer_of(&o, QUESTION, &want);
    begin_answer(&o, &said);
    next.engine.memory_bytes = 3 * MIB;
    set(&next);
    next.engine.n_thread = 1;
    set(&next);
    next.engine.memory_bytes = o.engine.memory_bytes + 4 * MIB;
    set(&next);
    expect(MW_EVENT_REFUSED, MW_EVENT_DONE, &said);
    assert_int_equal(said.err.code, ERR_BUDGET);
    assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said).plan.budget_bytes,
                     o.engine.memory_bytes);
    assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said).plan.budget_bytes,
                     next.engine.memory_bytes);
    end_answer(&want, &said);
    end_chat();
}

static void another_kv_type_waits_for_the_end_and_so_do_later_changes(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said want, said;

    (void)state;
    answer_of(&o, QUESTION, &want);
    begin_answer(&o, &said);
    o.engine.kv_k = o.engine.kv_v = MW_KV_F32;
    o.engine.memory_bytes += 4 * MIB;
    set(&o);
    o.engine.memory_bytes += 4 * MIB;
    set(&o);
    end_answer(&want, &said);
    assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said).plan.budget_bytes,
                     o.engine.memory_bytes - 4 * MIB);
    assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said).plan.budget_bytes,
                     o.engine.memory_bytes);
    end_chat();
}

/* ---- the queue ---- */

static void a_change_overtakes_messages_only_if_it_was_queued_during_the_answer(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said said = { .len = 0 };
    uint64_t before = o.engine.memory_bytes;

    (void)state;
    o.n_predict = 8;
    begin_answer(&o, &said);
    send("and now?");
    for (int i = 1; i <= 2; i++) {
        o.engine.memory_bytes = before + (uint64_t)i * MIB;
        set(&o);
    }
    for (uint64_t i = 1; i <= 2; i++)
        assert_int_equal(expect(MW_EVENT_PLAN, MW_EVENT_DONE, &said).plan.budget_bytes,
                         before + i * MIB);
    /* The third answer waits for the second, and the last change was queued during the first.
     */
    send("and then?");
    o.engine.kv_k = o.engine.kv_v = MW_KV_F32;
    set(&o);
    expect(MW_EVENT_DONE, MW_EVENT_PLAN, &said);
    expect(MW_EVENT_DONE, MW_EVENT_PLAN, &said);
    expect(MW_EVENT_DONE, MW_EVENT_PLAN, &said);
    expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said);
    end_chat();
}

static void a_chat_closes_while_changes_wait(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said said;

    (void)state;
    for (int i = 0; i < 8; i++) {
        begin_answer(&o, &said);
        for (int n = 0; n < 4; n++) {
            o.engine.n_ctx = n % 2 == 0 ? 512 : 256;
            set(&o);
        }
        gate_set(false);
        if (i % 2 == 0)
            mw_chat_cancel(chat);
        if (i % 4 == 0)
            assert_true(mw_chat_stop(chat, 20000));
        end_chat();
    }
}

static void an_answer_that_is_cancelled_leaves_the_changes_in_the_queue(void **state)
{
    struct mw_chat_options o = small_chat_options();
    struct said said;

    (void)state;
    begin_answer(&o, &said);
    mw_chat_cancel(chat);
    o.engine.n_ctx = 200;
    set(&o);
    expect(MW_EVENT_PLAN, MW_EVENT_REFUSED, &said);
    end_chat();
}

static int begin(void **state)
{
    (void)state;
    model = open_model_copy("gemma4-tiny-q4_0.gguf");
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
        cmocka_unit_test(budget_context_threads_and_io_change_between_two_tokens),
        cmocka_unit_test(the_next_sample_has_the_new_options),
        cmocka_unit_test(a_longer_context_comes_in_time_for_an_answer_that_fills_the_old_one),
        cmocka_unit_test(a_change_of_the_budget_does_not_change_drawn_tokens),
        cmocka_unit_test(another_temperature_applies_from_the_next_token_on),
        cmocka_unit_test(options_change_between_two_chunks_of_a_prompt),
        cmocka_unit_test(a_context_shorter_than_the_prompt_waits_for_the_end),
        cmocka_unit_test(an_answer_goes_on_with_the_old_options_if_a_change_is_refused),
        cmocka_unit_test(a_refused_change_is_taken_out_of_the_next_ones),
        cmocka_unit_test(another_kv_type_waits_for_the_end_and_so_do_later_changes),
        cmocka_unit_test(a_change_overtakes_messages_only_if_it_was_queued_during_the_answer),
        cmocka_unit_test(a_chat_closes_while_changes_wait),
        cmocka_unit_test(an_answer_that_is_cancelled_leaves_the_changes_in_the_queue),
    };

    return cmocka_run_group_tests_name("change", tests, begin, end);
}
