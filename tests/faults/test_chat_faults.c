/*
 * A conversation with a failing disk, a changing file, a kernel that refuses requests, and a
 * machine without memory.  The answer ends with one clear sentence.  When the cause is gone,
 * the
 * next answer is the same as without it.
 *
 * Also: nothing is allocated between two tokens.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
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

#include "engine/memwall.h"
#include "tests/faults/inject.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_copy.h"
#include "tests/lib/model_path.h"

#define NAME "gemma4-tiny-q4_0.gguf"

struct mode {
    const char *name;
    enum mw_io io;
    bool no_uring;
};

static struct mode uring = { "io_uring", MW_IO_DIRECT, false };
static struct mode threads = { "pread", MW_IO_DIRECT, true };
static struct mode buffered = { "buffered", MW_IO_BUFFERED, false };
static struct mode buffered_threads = { "buffered pread", MW_IO_BUFFERED, true };
static struct mode mapped = { "mmap", MW_IO_MMAP, false };

static char path[4352]; /* a copy of the model that a test may damage */
static struct mw_model *model;
static struct said want; /* the answer if nothing fails */

/* The smallest budget pins nothing, so every answer reads from the file. */
static struct mw_chat_options options(const struct mode *m)
{
    struct mw_chat_options o = { .engine = small_options(128), .n_predict = 12 };

    o.engine.io = m->io;
    o.engine.no_uring = m->no_uring;
    o.engine.memory_bytes = smallest_budget(model, &o.engine);
    return o;
}

static struct mw_chat *open_mode(const struct mode *m)
{
    struct mw_chat_options o = options(m);

    return open_chat(model, &o);
}

static enum mw_done greet(struct mw_chat *c, struct said *said)
{
    ask(c, "hello there", said);
    return said->receipt.done;
}

/* Remove all messages, so that the same question has the same answer again. */
static void forget(struct mw_chat *c)
{
    struct err e = ERR_INIT;

    assert_int_equal(mw_chat_rewind(c, 0, &e), 0);
}

static void assert_as_wanted(const struct said *said)
{
    assert_int_equal(said->receipt.done, MW_DONE_LENGTH);
    assert_string_equal(said->text, want.text);
}

static void a_failed_read_ends_one_answer_and_not_the_next(void **state)
{
    const struct mode *m = *state;
    struct mw_chat *c = open_mode(m);
    int n_failed = 0;

    for (int skip = 0; skip < 300; skip = skip * 2 + 1) {
        struct said said;

        inject_nothing();
        inject.read_skip = skip;
        inject.read_times = 1000000;
        inject.read_error = EIO;
        forget(c);
        if (greet(c, &said) == MW_DONE_ERROR) {
            n_failed++;
            assert_int_equal(said.err.code, ERR_IO);
            assert_int_equal(said.err.sys, EIO);
            assert_non_null(strstr(said.err.file, NAME));
            assert_true(said.err.offset != ERR_NO_OFFSET);
            assert_memory_equal(said.text, want.text, said.len);
        } else {
            assert_as_wanted(&said);
        }
        inject_nothing();
        forget(c);
        greet(c, &said);
        assert_as_wanted(&said);
    }
    assert_true(n_failed > 3);
    mw_chat_close(c);
}

static void an_answer_that_failed_can_be_made_again(void **state)
{
    struct mw_chat *c = open_mode(&uring);
    struct err e = ERR_INIT;
    struct said said;

    (void)state;
    inject.read_skip = 100;
    inject.read_times = 1000000;
    inject.read_error = EIO;
    assert_int_equal(greet(c, &said), MW_DONE_ERROR);
    inject_nothing();
    assert_int_equal(mw_chat_retry(c, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    assert_as_wanted(&said);
    mw_chat_close(c);
}

static void short_reads_change_nothing(void **state)
{
    struct mw_chat *c;
    struct said said;

    inject.short_one_in = 3;
    c = open_mode(*state);
    greet(c, &said);
    inject_nothing();
    assert_as_wanted(&said);
    mw_chat_close(c);
}

static void a_refused_ring_is_replaced(void **state)
{
    struct said said;
    struct mw_chat *c;

    (void)state;
    for (int round = 0; round < 2; round++) {
        inject_nothing();
        if (round == 0)
            inject.init_error = EPERM;
        else
            inject.register_error = ENOMEM;
        c = open_mode(&uring);
        greet(c, &said);
        assert_as_wanted(&said);
        mw_chat_close(c);
    }
    inject_nothing();
}

/* A ring that accepts no more reads, full or broken, in the middle of an answer. */
static void a_ring_that_breaks_loses_no_text(void **state)
{
    static const int errors[] = { EAGAIN, EBUSY, EBADF, EINTR };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct mw_chat *c = open_mode(&uring);
        struct said said;

        inject.enter_skip = 20;
        inject.enter_times = errors[i] == EBADF ? 1000000 : 5;
        inject.enter_error = errors[i];
        greet(c, &said);
        inject_nothing();
        assert_as_wanted(&said);
        mw_chat_close(c);
    }
}

/* --- the file --- */

static void copy_model(void)
{
    size_t len = 0;
    void *data = model_read(NAME, &len);
    FILE *f;

    unlink(path);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
    free(data);
}

static struct mw_model *open_copy(void)
{
    struct err e = ERR_INIT;
    struct mw_model *m;

    copy_model();
    if (mw_model_open(&m, path, &e) != 0)
        fail_with(&e);
    return m;
}

static void assert_file_named(const struct said *said, const char *words)
{
    assert_int_equal(said->receipt.done, MW_DONE_ERROR);
    assert_non_null(strstr(said->err.file, path));
    if (strstr(said->err.what, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, said->err.what);
}

static void a_file_that_is_cut_ends_each_answer_with_its_name(void **state)
{
    struct mw_model *whole = model;
    struct mw_chat *c;
    struct said said;
    struct stat st;

    model = open_copy();
    c = open_mode(*state);
    greet(c, &said);
    assert_as_wanted(&said);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    for (int i = 0; i < 2; i++) {
        greet(c, &said);
        assert_file_named(&said, "");
    }
    mw_chat_close(c);
    mw_model_close(model);
    model = whole;
}

static void a_replaced_file_ends_the_answer(void **state)
{
    struct mw_model *whole = model;
    struct mw_chat *c;
    struct said said;
    char other[4400];
    FILE *f;

    model = open_copy();
    c = open_mode(*state);
    greet(c, &said);
    assert_as_wanted(&said);
    snprintf(other, sizeof other, "%s.new", path);
    f = fopen(other, "wb");
    assert_non_null(f);
    fputs("something else", f);
    fclose(f);
    assert_int_equal(rename(other, path), 0);
    greet(c, &said);
    assert_file_named(&said, "");
    mw_chat_close(c);
    mw_model_close(model);
    model = whole;
}

/* --- memory --- */

/* Open the model, ask, and close it.  Returns false if something failed. */
static bool use(const struct mw_chat_options *o, struct said *said)
{
    struct err e = ERR_INIT;
    struct mw_model *m = NULL;
    struct mw_chat *c = NULL;
    bool ok = mw_model_open(&m, model_copy(NAME), &e) == 0 && mw_chat_open(&c, m, o, &e) == 0;

    if (ok) {
        ok = wait_for_end(c, said) == MW_EVENT_READY;
        e = said->err;
    }
    if (ok && (ok = mw_chat_send(c, "hello there", 11, &e) == 0)) {
        ok = wait_for_end(c, said) == MW_EVENT_DONE && said->receipt.done == MW_DONE_LENGTH;
        e = said->err;
        if (!ok && m != NULL) { /* the process and the chat go on */
            struct said again;
            struct err none = ERR_INIT;

            inject_nothing();
            assert_int_equal(mw_chat_rewind(c, 0, &none), 0);
            assert_int_equal(mw_chat_send(c, "hello there", 11, &none), 0);
            assert_int_equal(wait_for_end(c, &again), MW_EVENT_DONE);
            assert_as_wanted(&again);
        }
    }
    if (!ok)
        assert_true(e.code != ERR_NONE && e.what[0] != '\0');
    mw_chat_close(c);
    if (m != NULL)
        mw_model_close(m);
    return ok;
}

static void each_allocation_may_fail(void **state)
{
    struct mw_chat_options o = options(&uring);
    struct said said = want, all = want;
    int n = 0, n_refused = 0;

    (void)state;
    o.n_predict = 2;
    assert_true(use(&o, &want));
    for (;; n++) {
        bool ok, is_over;

        atomic_store(&inject.resource_skip, n);
        ok = use(&o, &said);
        is_over = ok && atomic_load(&inject.resource_skip) >= 0;
        inject_nothing();
        if (is_over)
            break;
        /* Some parts are optional. */
        if (ok)
            assert_as_wanted(&said);
        else
            n_refused++;
    }
    want = all;
    print_message("%d allocations, each failed once: %d ended it\n", n, n_refused);
    assert_true(n_refused > 30);
}

/*
 * Change the options of a chat while allocation n of the change fails, then ask.  If the change
 * was reported as done, the answer must follow the new options, otherwise the old ones.
 * Returns whether it was done. *is_over: the change makes fewer allocations.
 */
static bool change(const struct mw_chat_options *old, const struct mw_chat_options *new, int n,
                   bool *is_over)
{
    struct err e = ERR_INIT;
    struct mw_chat *c = open_mode(&uring);
    enum mw_event_kind kind = MW_EVENT_REFUSED;
    struct said said;

    greet(c, &said);
    forget(c);
    while (mw_chat_is_busy(c))
        usleep(100);
    atomic_store(&inject.resource_skip, n);
    if (mw_chat_set(c, new, &e) == 0) {
        kind = wait_for_end(c, &said);
        e = said.err;
    }
    *is_over = atomic_load(&inject.resource_skip) >= 0;
    inject_nothing();
    assert_int_equal(greet(c, &said), MW_DONE_LENGTH);
    if (kind == MW_EVENT_PLAN) {
        assert_int_equal(said.receipt.n_decoded, new->n_predict);
    } else {
        assert_true(e.code != ERR_NONE && e.what[0] != '\0');
        assert_int_equal(said.receipt.n_decoded, old->n_predict);
        assert_as_wanted(&said);
    }
    mw_chat_close(c);
    return kind == MW_EVENT_PLAN;
}

static void options_change_completely_or_not_at_all(void **state)
{
    static const char *const stop[] = { "no text has this", NULL };
    struct mw_chat_options old = options(&uring), new = old;
    bool is_over = false;
    int n = 0, n_refused = 0;

    (void)state;
    new.n_predict = 3;
    new.system = "be brief";
    new.format = "gemma4";
    new.stop = stop;
    while (!is_over) {
        n_refused += !change(&old, &new, n, &is_over);
        n++;
    }
    print_message("%d allocations, each failed once: %d refused the change\n", n, n_refused);
    assert_true(n_refused > 3);
}

/*
 * From call n of a change on, all of them fail, so it cannot always be undone.  The next answer
 * is as before, or ends with an error.  The options can be set as soon as there is memory.
 * Returns whether the answer ended with an error.
 */
static bool change_without_way_back(const struct mw_chat_options *old,
                                    const struct mw_chat_options *new, int n, bool *is_over)
{
    struct mw_chat *c = open_mode(&uring);
    struct said said, again;
    struct err e = ERR_INIT;

    greet(c, &said);
    while (mw_chat_is_busy(c))
        usleep(100);
    atomic_store(&inject.resource_lasts, true);
    atomic_store(&inject.resource_skip, n);
    if (mw_chat_set(c, new, &e) == 0)
        wait_for_end(c, &said);
    *is_over = atomic_load(&inject.resource_skip) >= 0;
    inject_nothing();
    forget(c);
    if (greet(c, &said) == MW_DONE_ERROR)
        assert_int_equal(said.err.code, ERR_MEMORY);
    else
        assert_as_wanted(&said);
    assert_int_equal(mw_chat_set(c, old, &e), 0);
    assert_int_equal(wait_for_end(c, &again), MW_EVENT_PLAN);
    forget(c);
    greet(c, &again);
    assert_as_wanted(&again);
    mw_chat_close(c);
    return said.receipt.done == MW_DONE_ERROR;
}

static void a_chat_survives_a_change_that_cannot_be_undone(void **state)
{
    struct mw_chat_options old = options(&uring), new = old;
    bool is_over = false;
    int n = 0, n_lost = 0;

    (void)state;
    new.engine.memory_bytes += 8 * MIB;
    new.engine.n_ctx = 256;
    new.engine.n_thread = 3;
    for (; !is_over; n++)
        n_lost += change_without_way_back(&old, &new, n, &is_over);
    print_message("%d allocations, all failed from each on: %d changes could not be undone\n", n,
                  n_lost);
    assert_true(n_lost > 3);
}

/* --- during an answer --- */

static void wait_for_text(struct mw_chat *c)
{
    for (;;) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };
        struct mw_event event;

        assert_int_equal(poll(&p, 1, 60000), 1);
        while (mw_chat_next(c, &event)) {
            if (event.kind == MW_EVENT_TEXT)
                return;
            assert_true(event.kind != MW_EVENT_DONE && event.kind != MW_EVENT_ERROR);
        }
    }
}

/* As change(), in the middle of an answer, which goes on with the new options or the old ones,
 * or ends if neither is possible.  Returns whether it went on with the old ones. */
static bool change_midway(const struct mw_chat_options *old, const struct mw_chat_options *new,
                          int n, bool *is_over)
{
    struct mw_chat_options fast = *old;
    struct mw_chat *c = open_chat(model, old);
    enum mw_event_kind kind = MW_EVENT_REFUSED;
    struct said first, said;
    struct err e = ERR_INIT;

    assert_int_equal(mw_chat_send(c, "hello there", 11, &e), 0);
    wait_for_text(c);
    atomic_store(&inject.resource_skip, n);
    if (mw_chat_set(c, new, &e) == 0) {
        kind = wait_for_end(c, &first);
        assert_true(kind == MW_EVENT_PLAN || kind == MW_EVENT_REFUSED);
    }
    *is_over = atomic_load(&inject.resource_skip) >= 0;
    inject_nothing();
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_DONE);
    if (said.receipt.done != MW_DONE_ERROR) {
        assert_int_equal(said.receipt.done, MW_DONE_LENGTH);
        assert_int_equal(said.receipt.n_decoded, old->n_predict);
        assert_true(strlen(said.text) < strlen(want.text));
        assert_string_equal(said.text, want.text + strlen(want.text) - strlen(said.text));
    }
    /* There is memory again. */
    fast.engine.disk_rate = 0;
    assert_int_equal(mw_chat_set(c, &fast, &e), 0);
    assert_int_equal(wait_for_end(c, &first), MW_EVENT_PLAN);
    forget(c);
    greet(c, &first);
    assert_as_wanted(&first);
    mw_chat_close(c);
    return kind == MW_EVENT_REFUSED && said.receipt.done != MW_DONE_ERROR;
}

static void an_answer_survives_a_change_without_memory(void **state)
{
    struct mw_chat_options old = options(&threads), new;
    struct mw_model_info info;
    bool is_over = false;
    int n = 0, n_went_on = 0;

    (void)state;
    mw_model_info(model, &info);
    old.engine.disk_rate = info.hot_bytes * 50; /* a token takes 20 ms */
    new = old;
    new.engine.memory_bytes += 8 * MIB;
    new.engine.n_ctx = 256;
    new.engine.n_thread = 3;
    while (!is_over) {
        n_went_on += change_midway(&old, &new, n, &is_over);
        n++;
    }
    print_message("%d allocations, each failed once: %d answers went on as before\n", n,
                  n_went_on);
    assert_true(n_went_on > 3);
}

static void nothing_is_allocated_between_two_tokens(void **state)
{
    static struct mw_sample sample;
    struct mw_chat_options o = options(*state);
    struct err e = ERR_INIT;
    struct mw_chat *c;
    struct said said;
    int before;

    o.n_predict = 60;
    o.sampling = (struct mw_sampling){ .temp = 0.7f,
                                       .top_p = 0.9f,
                                       .repeat_penalty = 1.1f,
                                       .repeat_last = 64,
                                       .seed = { true, 3 } };
    assert_int_equal(mw_chat_open(&c, model, &o, &e), 0);
    assert_int_equal(wait_for_end(c, &said), MW_EVENT_READY);
    assert_int_equal(mw_chat_send(c, "go", 2, &e), 0);
    wait_for_text(c);
    before = atomic_load(&inject.n_alloc);
    for (bool is_done = false; !is_done;) {
        struct pollfd p = { .fd = mw_chat_fd(c), .events = POLLIN };
        int now = atomic_load(&inject.n_alloc);
        struct mw_event event;

        /* The end of an answer, which frees unused space, does not count. */
        mw_chat_sample(c, &sample);
        if (sample.n_decoded < o.n_predict)
            assert_int_equal(now, before);
        assert_int_equal(poll(&p, 1, 60000), 1);
        while (mw_chat_next(c, &event))
            is_done |= event.kind == MW_EVENT_DONE;
    }
    mw_chat_close(c);
}

static int start(void **state)
{
    struct err e = ERR_INIT;
    struct mw_chat *c;

    (void)state;
    snprintf(path, sizeof path, "%s/chat-faults-%ld-%s", getenv("MW_BUILDDIR"), (long)getpid(),
             NAME);
    if (mw_model_open(&model, model_copy(NAME), &e) != 0)
        return -1;
    c = open_mode(&uring);
    greet(c, &want);
    mw_chat_close(c);
    return want.receipt.done == MW_DONE_LENGTH ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    mw_model_close(model);
    return 0;
}

static int calm(void **state)
{
    (void)state;
    inject_nothing();
    return 0;
}

#define with(test, mode)                                                                       \
    {                                                                                          \
#test " (" #mode ")", test, NULL, calm, &mode                                          \
    }
#define in_all(test)                                                                           \
    with(test, uring), with(test, threads), with(test, buffered), with(test, buffered_threads)

/* ---- a disk that does not respond ---- */

static void loading_can_be_stopped(void **state)
{
    struct mw_chat_options o = options(&threads);
    struct err e = ERR_INIT;
    struct mw_event event;
    struct mw_model *fresh;
    struct mw_chat *c;
    bool is_cancelled = false;

    (void)state;
    if (mw_model_open(&fresh, model_copy(NAME), &e) != 0)
        fail_with(&e);
    inject.reads_wait = true;
    if (mw_chat_open(&c, fresh, &o, &e) != 0)
        fail_with(&e);
    assert_false(mw_chat_stop(c, 1));
    /* The data arrives late, and nothing more is loaded. */
    inject.reads_wait = false;
    assert_true(mw_chat_stop(c, 60000));
    while (mw_chat_next(c, &event)) {
        assert_int_not_equal(event.kind, MW_EVENT_READY);
        is_cancelled |= event.kind == MW_EVENT_ERROR && event.err.code == ERR_CANCELLED;
    }
    assert_true(is_cancelled);
    mw_chat_close(c);
    /* The model can be used again. */
    if (mw_chat_open(&c, fresh, &o, &e) != 0)
        fail_with(&e);
    assert_int_equal(wait_for_end(c, &(struct said){ 0 }), MW_EVENT_READY);
    mw_chat_close(c);
    mw_model_close(fresh);
}

static void an_answer_that_waits_for_the_disk_can_be_abandoned(void **state)
{
    struct mw_chat *c = open_mode(*state);
    struct err e = ERR_INIT;

    inject.reads_wait = true;
    assert_int_equal(mw_chat_send(c, "hello", 5, &e), 0);
    (void)mw_chat_stop(c, 1); /* maybe no read was in flight */
    inject.reads_wait = false;
    assert_true(mw_chat_stop(c, 60000));
    mw_chat_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_all(a_failed_read_ends_one_answer_and_not_the_next),
        cmocka_unit_test_teardown(an_answer_that_failed_can_be_made_again, calm),
        in_all(short_reads_change_nothing),
        cmocka_unit_test_teardown(a_refused_ring_is_replaced, calm),
        cmocka_unit_test_teardown(a_ring_that_breaks_loses_no_text, calm),
        in_all(a_file_that_is_cut_ends_each_answer_with_its_name),
        with(a_file_that_is_cut_ends_each_answer_with_its_name, mapped),
        in_all(a_replaced_file_ends_the_answer),
        with(a_replaced_file_ends_the_answer, mapped),
        cmocka_unit_test_teardown(each_allocation_may_fail, calm),
        cmocka_unit_test_teardown(options_change_completely_or_not_at_all, calm),
        cmocka_unit_test_teardown(a_chat_survives_a_change_that_cannot_be_undone, calm),
        cmocka_unit_test_teardown(an_answer_survives_a_change_without_memory, calm),
        with(nothing_is_allocated_between_two_tokens, uring),
        with(nothing_is_allocated_between_two_tokens, threads),
        with(nothing_is_allocated_between_two_tokens, mapped),
        cmocka_unit_test_teardown(loading_can_be_stopped, calm),
        with(an_answer_that_waits_for_the_disk_can_be_abandoned, threads),
        with(an_answer_that_waits_for_the_disk_can_be_abandoned, buffered_threads),
    };

    return cmocka_run_group_tests_name("chat_faults", tests, start, end);
}
