/*
 * Calls that any thread may make while another one works with the same model.  Each result is
 * checked; ThreadSanitizer checks that the threads do not disturb each other.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/memwall.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "engine/telemetry/watch.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/tree.h"

#define NAME "gemma4-tiny-q4_0.gguf"

static const uint32_t ids[] = { 2, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43 };

enum { N_ID = sizeof ids / sizeof ids[0], N_TIMES = 20 };

/* The other thread.  It may not use cmocka, so it counts what is wrong. */
struct other {
    struct mw_model *m;
    struct mw_session *s;
    atomic_bool is_over; /* the caller's work is done */
    int n_wrong;
};

static pthread_t start(void *(*fn)(void *), struct other *o)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, fn, o), 0);
    return thread;
}

static void join(pthread_t thread, struct other *o)
{
    atomic_store(&o->is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(o->n_wrong, 0);
}

static void *read_names(void *ctx)
{
    struct other *o = ctx;

    for (int i = 0; i < N_TIMES; i++) {
        o->n_wrong += mw_isa(0) == NULL || mw_isa(0)[0] == '\0';
        o->n_wrong += strcmp(mw_blas_name(), mw_blas_name()) != 0;
    }
    return NULL;
}

static void names_can_be_read_by_all_threads(void **state)
{
    struct other o = { .m = NULL }, own = { .m = NULL };
    pthread_t thread = start(read_names, &o);

    (void)state;
    read_names(&own);
    assert_int_equal(own.n_wrong, 0);
    join(thread, &o);
}

static void *use_tokenizer(void *ctx)
{
    struct other *o = ctx;
    struct err e = ERR_INIT;

    o->n_wrong += model_tokenizer(o->m, NULL, &e) == NULL;
    o->n_wrong += mw_model_notice(o->m) == NULL;
    return NULL;
}

/* A program counts the tokens of a message while the model is being loaded. */
static void a_tokenizer_is_built_while_a_session_opens(void **state)
{
    const struct mw_options options = small_options(64);

    (void)state;
    for (int i = 0; i < N_TIMES; i++) {
        struct other o = { .m = open_model(NAME) };
        pthread_t thread = start(use_tokenizer, &o);
        struct mw_session *s = open_session(o.m, &options);

        eval(s, ids, N_ID);
        join(thread, &o);
        mw_session_close(s);
        mw_model_close(o.m);
    }
}

static void *plan(void *ctx)
{
    struct other *o = ctx;
    struct mw_options options = small_options(64);

    options.memory_bytes = GIB;
    options.blas = MW_BLAS_NEVER;
    while (!atomic_load(&o->is_over)) {
        struct err e = ERR_INIT;
        char text[160];
        struct plan p;

        o->n_wrong += mw_plan(o->m, &options, &p, &e) != 0 || p.sum_bytes > p.budget_bytes;
        mw_products_text(o->m, &options, text, sizeof text);
        o->n_wrong += strstr(text, "kernels") == NULL;
    }
    return NULL;
}

/* OpenBLAS is loaded for the session, which makes the program larger. */
static void plans_are_made_while_a_session_opens(void **state)
{
    struct mw_options options = small_options(64);

    (void)state;
    options.memory_bytes = GIB;
    options.blas = MW_BLAS_ALWAYS;
    for (int i = 0; i < 3; i++) {
        struct other o = { .m = open_model(NAME) };
        pthread_t thread = start(plan, &o);
        struct mw_session *s = open_session(o.m, &options);

        join(thread, &o);
        mw_session_close(s);
        mw_model_close(o.m);
    }
}

static void *take_samples(void *ctx)
{
    struct mw_sample *sample = calloc(1, sizeof *sample);
    struct other *o = ctx;

    while (sample != NULL && !atomic_load(&o->is_over)) {
        mw_session_sample(o->s, sample);
        o->n_wrong += sample->kv.tokens > sample->kv.capacity;
    }
    free(sample);
    return NULL;
}

static void samples_are_taken_while_options_change(void **state)
{
    struct mw_options options = small_options(64);
    struct mw_model *m = open_model(NAME);
    struct other o = { .s = open_session(m, &options) };
    pthread_t thread = start(take_samples, &o);
    struct err e = ERR_INIT;
    uint32_t kept;

    (void)state;
    for (int i = 0; i < N_TIMES; i++) {
        eval(o.s, ids, N_ID);
        options.n_ctx = i % 2 == 0 ? 128 : 64;
        options.memory_bytes = (i % 3 == 0 ? 176 : 192) * MIB;
        no_error(session_set(o.s, &options, &e), &e);
        no_error(mw_session_rewind(o.s, 0, &kept, &e), &e);
    }
    join(thread, &o);
    mw_session_close(o.s);
    mw_model_close(m);
}

/* Replace the beginning of a file, which the watcher may be reading. */
static void put_over(const char *path, const char *before, unsigned n)
{
    FILE *f = fopen(tree_path(path), "r+");

    assert_non_null(f);
    assert_true(fprintf(f, "%s%u", before, n) > 0);
    assert_int_equal(fclose(f), 0);
}

/* Only the watcher's own thread reads the size of the machine, so it has read everything when
 * that has changed. */
static void peaks_are_noted_while_the_watcher_reads(void **state)
{
    enum { CHARGE = 1000000 };
    struct mw_sample *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT;
    struct mw_watch *w;
    unsigned n = 0;

    (void)state;
    assert_non_null(s);
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/a/memory.max", "2048000000\n");
    tree_put("/sys/fs/cgroup/a/memory.peak", "9000000\n");
    tree_put("/sys/fs/cgroup/a/cgroup.procs", "12\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "1000000\n");
    tree_put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n");
    no_error(watch_start(&w, tree_root, NULL, 0, &e), &e);
    put_over("/proc/meminfo", "MemTotal: ", 9000000);
    for (uint64_t total = 0; total != 9000000 * KIB; total = s->os.system_total.value) {
        n++;
        put_over("/sys/fs/cgroup/a/memory.current", "", CHARGE + n);
        mw_watch_complete(w, s);
        assert_int_equal(s->os.charged.value, CHARGE + n);
    }
    put_over("/sys/fs/cgroup/a/memory.current", "", CHARGE);
    mw_watch_complete(w, s);
    assert_int_equal(s->os.charged_peak.value, CHARGE + n);
    mw_watch_free(w);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_can_be_read_by_all_threads),
        cmocka_unit_test(a_tokenizer_is_built_while_a_session_opens),
        cmocka_unit_test(plans_are_made_while_a_session_opens),
        cmocka_unit_test(samples_are_taken_while_options_change),
        cmocka_unit_test_setup_teardown(peaks_are_noted_while_the_watcher_reads, tree_make,
                                        tree_drop),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
