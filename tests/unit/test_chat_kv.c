/*
 * A chat that is closed and resumed from its KV file gives the answers of one that never
 * stopped, and evaluates only what is new.  Files that do not belong to the conversation are
 * not used.
 */
#include "config.h"

#include <sys/resource.h>

#include <fcntl.h>
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

#include "engine/base/units.h"
#include "engine/memwall.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kv_folder.h"
#include "tests/lib/model_path.h"

static struct mw_model *model;

static struct mw_chat_options base_options(void)
{
    struct mw_chat_options o = { .engine = small_options(512), .n_predict = 12 };

    mw_sampling_default(model, &o.sampling);
    o.sampling.temp = 1; /* ids that the tokenizer would not choose for their text */
    o.sampling.seed = (struct mw_seed){ true, 7 };
    o.system = "be brief";
    o.engine.saves_kv = true;
    return o;
}

/* Take events up to one of this kind. */
static struct mw_event wait_for(struct mw_chat *c, enum mw_event_kind kind)
{
    for (;;) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };
        struct mw_event event;

        if (poll(&p, 1, 60000) != 1)
            fail_msg("no event within a minute");
        while (mw_chat_next(c, &event))
            if (event.kind == kind)
                return event;
    }
}

static void save(struct mw_chat *c)
{
    struct err e = ERR_INIT;
    struct mw_event event;

    no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
    event = wait_for(c, MW_EVENT_KV_SAVED);
    if (event.err.code != ERR_NONE)
        fail_with(&event.err);
    assert_true(event.n > 0 && event.total > 0);
}

static const char *const questions[] = { "hello there", "and what is that?", "why?" };
enum { N = sizeof questions / sizeof questions[0] };

struct talk {
    struct said said[N + 1];
};

/* Ask all questions and one more. */
static void talk_on(struct mw_chat *c, struct talk *t, int from)
{
    for (int i = from; i < N; i++)
        ask(c, questions[i], &t->said[i]);
    ask(c, "go on", &t->said[N]);
}

/* The conversation so far, as a saved chat gives it. */
static void restore(struct mw_chat *c, const struct talk *t, int n, const char *changed)
{
    struct mw_message messages[2 * N];
    struct err e = ERR_INIT;

    memset(messages, 0, sizeof messages);
    for (int i = 0; i < n; i++) {
        const char *answer = i == n - 1 && changed != NULL ? changed : t->said[i].text;

        messages[2 * i] = (struct mw_message){ .role = MW_USER,
                                               .text = questions[i],
                                               .len = strlen(questions[i]) };
        messages[2 * i + 1] =
            (struct mw_message){ .role = MW_ASSISTANT, .text = answer, .len = strlen(answer) };
    }
    no_error(mw_chat_restore(c, messages, 2 * (size_t)n, 0, &e), &e);
}

static struct mw_event load(struct mw_chat *c)
{
    struct err e = ERR_INIT;

    no_error(mw_chat_load_kv(c, kv_path, &e), &e);
    return wait_for(c, MW_EVENT_KV_LOADED);
}

static void a_resumed_chat_answers_as_one_that_never_stopped(void **state)
{
    struct mw_chat_options o;
    struct talk *whole = calloc(1, sizeof *whole), *parts = calloc(1, sizeof *parts);
    struct mw_event event;
    struct mw_chat *c;

    model = open_model(*state);
    o = base_options();
    c = open_chat(model, &o);
    talk_on(c, whole, 0);
    mw_chat_close(c);
    for (int stop = 1; stop < N; stop++) {
        c = open_chat(model, &o);
        for (int i = 0; i < stop; i++)
            ask(c, questions[i], &parts->said[i]);
        save(c);
        mw_chat_close(c);
        c = open_chat(model, &o);
        restore(c, parts, stop, NULL);
        event = load(c);
        if (event.err.code != ERR_NONE)
            fail_with(&event.err);
        assert_true(event.n > 0 && event.total > 0);
        talk_on(c, parts, stop);
        for (int i = 0; i <= N; i++) {
            assert_string_equal(parts->said[i].text, whole->said[i].text);
            assert_int_equal(parts->said[i].receipt.n_prompt, whole->said[i].receipt.n_prompt);
            assert_int_equal(parts->said[i].receipt.n_reused, whole->said[i].receipt.n_reused);
        }
        mw_chat_close(c);
        unlink(kv_path);
    }
    free(whole);
    free(parts);
    mw_model_close(model);
}

static void an_answer_that_was_changed_is_evaluated(void **state)
{
    struct talk *t = calloc(1, sizeof *t);
    struct mw_chat_options o;
    struct said said, plain;
    struct mw_event event;
    struct mw_chat *c;

    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    o = base_options();
    c = open_chat(model, &o);
    ask(c, questions[0], &t->said[0]);
    save(c);
    mw_chat_close(c);
    c = open_chat(model, &o); /* a person has written another text into the chat's file */
    restore(c, t, 1, "something else");
    event = load(c);
    assert_int_equal(event.err.code, ERR_NONE);
    assert_true(event.n > 0);
    ask(c, "go on", &said);
    mw_chat_close(c);
    c = open_chat(model, &o);
    restore(c, t, 1, "something else");
    ask(c, "go on", &plain);
    mw_chat_close(c);
    assert_string_equal(said.text, plain.text);
    assert_true(said.receipt.n_reused > 0 && plain.receipt.n_reused == 0);
    unlink(kv_path);
    free(t);
    mw_model_close(model);
}

static void a_file_of_another_conversation_is_not_used(void **state)
{
    struct talk *t = calloc(1, sizeof *t);
    struct err e = ERR_INIT;
    struct mw_chat_options o;
    struct said said;
    struct mw_event event;
    struct mw_chat *c;

    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    o = base_options();
    o.system = NULL;
    o.raw = true; /* no common beginning */
    c = open_chat(model, &o);
    ask(c, "Hello", &t->said[0]);
    save(c);
    no_error(mw_chat_rewind(c, 0, &e), &e);
    ask(c, "one two three", &t->said[0]);
    event = load(c);
    assert_int_equal(event.err.code, ERR_ARGUMENT);
    assert_non_null(strstr(event.err.what, "another conversation"));
    ask(c, "and", &said);
    assert_true(said.receipt.n_reused <= 1); /* the first token is a mark */
    /* Without a file nothing is reported, and the next command is done. */
    unlink(kv_path);
    no_error(mw_chat_load_kv(c, kv_path, &e), &e);
    ask(c, "then", &said);
    assert_true(said.receipt.n_decoded > 0);
    mw_chat_close(c);
    free(t);
    mw_model_close(model);
}

/* It has another answer to the same question, as after /retry and the choice of the first one. */
static void a_short_question_keeps_its_values(void **state)
{
    struct talk *t = calloc(1, sizeof *t);
    struct mw_chat_options o;
    struct mw_event event;
    struct said said;
    struct mw_chat *c;

    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    o = base_options();
    o.system = NULL;
    o.raw = true;
    c = open_chat(model, &o);
    ask(c, questions[0], &t->said[0]);
    save(c);
    mw_chat_close(c);
    c = open_chat(model, &o);
    restore(c, t, 1, "something else");
    event = load(c);
    assert_int_equal(event.err.code, ERR_NONE);
    assert_in_range(event.n, 1, 15); /* or the test would not see the difference */
    ask(c, "go on", &said);
    assert_true(said.receipt.n_reused >= event.n);
    mw_chat_close(c);
    unlink(kv_path);
    free(t);
    mw_model_close(model);
}

static void saving_waits_for_messages_and_is_finished_at_the_end(void **state)
{
    struct mw_chat_options o;
    struct err e = ERR_INIT;
    struct mw_kv_file file;
    struct said said;
    struct mw_chat *c;

    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    o = base_options();
    c = open_chat(model, &o);
    ask(c, questions[0], &said);
    no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
    ask(c, questions[1], &said);
    no_error(mw_chat_save_kv(c, kv_path, MW_KV_LIMIT, &e), &e);
    mw_chat_finish_kv(c, 60000);
    mw_chat_close(c);
    assert_true(mw_kv_look(kv_path, &file));
    /* All but the last token of the answer is evaluated. */
    assert_int_equal(file.n_token, said.receipt.n_reused + said.receipt.n_prompt +
                                       said.receipt.n_decoded - 1);
    unlink(kv_path);
    mw_model_close(model);
}

/* Files that take more than the limit go also if the disk is full, or it would stay so. */
static void a_full_disk_gets_space(void **state)
{
    static unsigned char bytes[3 * MIB];
    struct mw_chat_options o;
    struct err e = ERR_INIT;
    struct mw_event event;
    struct said said;
    struct mw_chat *c;
    char old[460];
    int fd;

    (void)state;
    model = open_model("gemma4-tiny-q4_0.gguf");
    o = base_options();
    c = open_chat(model, &o);
    ask(c, questions[0], &said);
    snprintf(old, sizeof old, "%s/old.kv", kv_folder);
    fd = open(old, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    kv_folder_limit(0);
    no_error(mw_chat_save_kv(c, kv_path, 2 * MIB, &e), &e);
    event = wait_for(c, MW_EVENT_KV_SAVED);
    kv_folder_limit(RLIM_INFINITY);
    assert_int_equal(event.err.code, ERR_IO);
    assert_int_equal(access(old, F_OK), -1);
    save(c);
    mw_chat_close(c);
    unlink(kv_path);
    mw_model_close(model);
}

#define MODEL(name)                                                                            \
    {                                                                                          \
        "a resumed chat of " name, a_resumed_chat_answers_as_one_that_never_stopped, NULL,     \
            NULL, (void *)(uintptr_t)name                                                      \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        MODEL("gemma4-tiny-q4_0.gguf"), /* windows */
        MODEL("llama-tiny.gguf"),
        MODEL("f-falconh1.gguf"), /* recurrent state */
        cmocka_unit_test(an_answer_that_was_changed_is_evaluated),
        cmocka_unit_test(a_file_of_another_conversation_is_not_used),
        cmocka_unit_test(a_short_question_keeps_its_values),
        cmocka_unit_test(saving_waits_for_messages_and_is_finished_at_the_end),
        cmocka_unit_test(a_full_disk_gets_space),
    };

    return cmocka_run_group_tests_name("chat_kv", tests, kv_folder_begin, kv_folder_end);
}
