/* The workers run every part once, in the order of rounds, and none is waited for in vain. */
#include "config.h"

#include <sys/wait.h>

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/compute/pool.h"

#define MOST 16

struct tally {
    int n_part;
    int seen[MOST]; /* each written by one thread at a time */
    pid_t ran_on[MOST];
    uint64_t sum;        /* of the round before, written by the caller */
    uint64_t part[MOST]; /* computed from it by each part */
};

static void count(void *ctx, int part, int n_part)
{
    struct tally *t = ctx;

    if (part == 0)
        t->n_part = n_part;
    t->seen[part]++;
    t->ran_on[part] = gettid();
    t->part[part] = t->sum * 31 + (uint64_t)part;
}

static void run_rounds(int n_thread, int n_part, int n_round)
{
    struct err e = ERR_INIT;
    struct tally t = { 0 };
    struct pool *p;
    uint64_t want = 0;

    assert_int_equal(pool_new(&p, n_thread, &e), 0);
    assert_int_equal(pool_threads(p), n_thread);
    for (int r = 0; r < n_round; r++) {
        pool_run(p, n_part, count, &t);
        t.sum = 0;
        for (int i = 0; i < t.n_part; i++)
            t.sum += t.part[i];
        want = want * 31 * (uint64_t)t.n_part + (uint64_t)(t.n_part * (t.n_part - 1) / 2);
        assert_true(t.sum == want);
    }
    assert_int_equal(t.n_part, n_thread == 1 ? 1 : n_part);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(t.seen[i], i < t.n_part ? n_round : 0);
    pool_free(p);
}

static void every_part_runs_once_per_round(void **state)
{
    (void)state;
    run_rounds(1, 2, 100);
    run_rounds(2, 1, 100);
    run_rounds(2, 2, 5000);
    run_rounds(2, 7, 5000);
    run_rounds(3, 2, 1000);
    run_rounds(3, MOST, 1000);
}

/* With more workers than CPUs, workers never spin, so each round finds them asleep. */
static void more_workers_than_cpus_finish_too(void **state)
{
    (void)state;
    run_rounds(MOST, MOST, 500);
}

static int gate[2]; /* a pipe */
static atomic_bool is_stopped;

static void stop_here(int signal)
{
    char byte;

    (void)signal;
    atomic_store(&is_stopped, true);
    while (read(gate[0], &byte, 1) < 0)
        continue;
}

/* Threads of the engine block signals. */
static void receive_signals(void *ctx, int part, int n_part)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    count(ctx, part, n_part);
}

/* Run rounds until a part ran on a worker. */
static pid_t find_worker(struct pool *p)
{
    struct tally t = { 0 };

    for (;;) {
        pool_run(p, MOST, receive_signals, &t);
        for (int i = 0; i < MOST; i++)
            if (t.ran_on[i] != gettid())
                return t.ran_on[i];
        usleep(100); /* the worker is asleep, or waits for a processor */
    }
}

static void a_stopped_worker_holds_nothing_back(void **state)
{
    struct sigaction stop = { .sa_handler = stop_here };
    struct err e = ERR_INIT;
    struct tally t = { 0 };
    struct pool *p;

    (void)state;
    assert_int_equal(pipe(gate), 0);
    assert_int_equal(sigaction(SIGUSR1, &stop, NULL), 0);
    assert_int_equal(pool_new(&p, 2, &e), 0);
    alarm(60);
    assert_int_equal(tgkill(getpid(), find_worker(p), SIGUSR1), 0);
    while (!atomic_load(&is_stopped))
        usleep(100);
    for (int i = 0; i < 100; i++)
        pool_run(p, MOST, count, &t);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(t.seen[i], 100);
    assert_int_equal(write(gate[1], "", 1), 1);
    find_worker(p);
    alarm(0);
    pool_free(p);
    close(gate[0]);
    close(gate[1]);
}

static void parts_are_at_most_the_items(void **state)
{
    struct err e = ERR_INIT;
    struct pool *p;

    (void)state;
    assert_int_equal(pool_new(&p, 3, &e), 0);
    assert_int_equal(pool_parts(p, 1), 1);
    assert_int_equal(pool_parts(p, 5), 5);
    assert_int_equal(pool_parts(p, 1000000), 12);
    pool_free(p);
}

/* Each row is in one part, parts begin with whole groups, and later ones are not larger. */
static void check_rows(const struct pool *p, size_t n_row, int n_part)
{
    size_t at = 0, most = SIZE_MAX;

    for (int i = 0; i < n_part; i++) {
        size_t from, to;

        pool_rows(p, n_row, i, n_part, &from, &to);
        assert_true(from == at || (from >= n_row && to == n_row));
        assert_true(from % 32 == 0 && to >= at);
        assert_true(to - at <= most || to - at - most <= 32);
        most = to - at;
        at = to;
    }
    assert_int_equal(at, n_row);
}

static void parts_have_all_rows_once_and_the_last_are_small(void **state)
{
    const uint64_t large = (uint64_t)1 << 30;
    struct err e = ERR_INIT;
    struct pool *p;
    size_t from, to, first;

    (void)state;
    for (int n = 1; n <= 5; n++) {
        assert_int_equal(pool_new(&p, n, &e), 0);
        assert_int_equal(pool_row_parts(p, 1), n);
        assert_int_equal(pool_row_parts(p, large), n * POOL_SIZES);
        for (size_t n_row = 1; n_row < 3000; n_row += 37) {
            check_rows(p, n_row, n);
            check_rows(p, n_row, n * POOL_SIZES);
        }
        pool_rows(p, 32768, 0, n * POOL_SIZES, &from, &first);
        pool_rows(p, 32768, n * POOL_SIZES - 1, n * POOL_SIZES, &from, &to);
        assert_true(first >= 8 * (to - from));
        pool_free(p);
    }
}

/* A product on a fast and a slow thread, as of a hybrid processor. */
struct uneven {
    struct pool *pool;
    size_t n_row;
    pid_t fast;
    atomic_bool has_begun; /* the slow thread has its first part */
    atomic_size_t fast_rows, slow_rows;
    atomic_int n_done;
};

/* The slow thread ends its first part last of all, and the fast one waits until it has one. */
static void multiply_unevenly(void *ctx, int part, int n_part)
{
    struct uneven *u = ctx;
    size_t from, to;

    pool_rows(u->pool, u->n_row, part, n_part, &from, &to);
    if (gettid() == u->fast) {
        while (!atomic_load(&u->has_begun))
            sched_yield();
        atomic_fetch_add(&u->fast_rows, to - from);
    } else {
        atomic_store(&u->has_begun, true);
        while (atomic_load(&u->n_done) < n_part - 1)
            sched_yield();
        atomic_fetch_add(&u->slow_rows, to - from);
    }
    atomic_fetch_add(&u->n_done, 1);
}

/* Parts are taken, not divided in advance: however slow a thread is, it keeps only the part that it
 * has begun from the other one. */
static void a_slow_thread_keeps_one_part(void **state)
{
    const uint64_t large = (uint64_t)1 << 30;
    struct uneven u = { .n_row = 4096, .fast = gettid() };
    struct err e = ERR_INIT;
    int n_part;

    (void)state;
    assert_int_equal(pool_new(&u.pool, 2, &e), 0);
    n_part = pool_row_parts(u.pool, large);
    alarm(60);
    pool_run(u.pool, n_part, multiply_unevenly, &u);
    alarm(0);
    pool_free(u.pool);
    assert_int_equal(u.n_done, n_part);
    assert_int_equal(u.fast_rows + u.slow_rows, u.n_row);
    assert_in_range(u.slow_rows, 1, u.n_row * 2 / 5); /* the largest part, of its half */
}

#define BUSY_S 0.1

/* Processor time of this thread. */
static double cpu_s(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(void *ctx, int part, int n_part)
{
    double end_s = cpu_s() + BUSY_S;

    (void)ctx;
    (void)part;
    (void)n_part;
    while (cpu_s() < end_s)
        continue;
}

/* Two processes share a processor, so each of them waits for it.  That counts as far as the
 * caller computed. */
static void waiting_for_a_processor_is_measured(void **state)
{
    struct err e = ERR_INIT;
    cpu_set_t all, one;
    struct pool *p;
    double waited_s;
    uint64_t stalled_ns;
    pid_t child;
    int cpu = 0;

    (void)state;
    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        skip();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(pool_new(&p, 1, &e), 0);
    child = fork();
    if (child == 0)
        for (;;)
            continue;
    pool_wait_begin(p);
    pool_run(p, 1, compute, NULL);
    waited_s = (double)pool_wait_ns(p, UINT64_MAX) / 1e9;
    stalled_ns = pool_wait_ns(p, 0);
    kill(child, SIGKILL); /* or else a failed test leaves a busy process */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    pool_free(p);
    assert_true(waited_s > BUSY_S / 10);
    assert_int_equal(stalled_ns, 0); /* nothing was computed: it waited in stalls */
}

static void an_unused_pool_can_be_freed(void **state)
{
    struct err e = ERR_INIT;
    struct pool *p;

    (void)state;
    assert_int_equal(pool_new(&p, 4, &e), 0);
    pool_free(p);
    pool_free(NULL);
}

/* Threads that stay are the same before and after. */
static void the_number_of_threads_changes_between_rounds(void **state)
{
    static const int counts[] = { 1, 4, 2, 3, 3, 1, 5, 2 };
    struct err e = ERR_INIT;
    struct pool *p;

    (void)state;
    assert_int_equal(pool_new(&p, 2, &e), 0);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        assert_int_equal(pool_set_threads(p, counts[i], &e), 0);
        assert_int_equal(pool_threads(p), counts[i]);
        for (int r = 1; r <= 20; r++) {
            struct tally t = { 0 };

            pool_run(p, 8, count, &t);
            for (int part = 0; part < t.n_part; part++)
                assert_int_equal(t.seen[part], 1);
            assert_int_equal(t.n_part, counts[i] == 1 ? 1 : 8);
        }
    }
    assert_int_equal(pool_set_threads(p, 0, &e), -1);
    assert_int_equal(pool_set_threads(p, 257, &e), -1);
    assert_int_equal(pool_threads(p), 2);
    pool_free(p);
}

static void impossible_counts_are_refused(void **state)
{
    static const int bad[] = { 0, -1, 257, 1 << 30 };
    struct err e = ERR_INIT;
    struct pool *p;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(pool_new(&p, bad[i], &e), -1);
        assert_int_equal(e.code, ERR_ARGUMENT);
        assert_null(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once_per_round),
        cmocka_unit_test(more_workers_than_cpus_finish_too),
        cmocka_unit_test(a_stopped_worker_holds_nothing_back),
        cmocka_unit_test(parts_are_at_most_the_items),
        cmocka_unit_test(parts_have_all_rows_once_and_the_last_are_small),
        cmocka_unit_test(a_slow_thread_keeps_one_part),
        cmocka_unit_test(waiting_for_a_processor_is_measured),
        cmocka_unit_test(an_unused_pool_can_be_freed),
        cmocka_unit_test(the_number_of_threads_changes_between_rounds),
        cmocka_unit_test(impossible_counts_are_refused),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
