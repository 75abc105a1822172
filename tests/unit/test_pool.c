/* The workers run every part once, in the order of rounds, each on its own thread. */
#include "config.h"

#include <sys/wait.h>

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/compute/pool.h"

#define MOST 16

struct tally {
    int n_thread;
    pid_t caller;
    int seen[MOST]; /* each written by one worker */
    pid_t ran_on[MOST];
    uint64_t sum;        /* of the round before, written by the caller */
    uint64_t part[MOST]; /* computed from it by each worker */
};

static void count(void *ctx, int thread, int n_thread)
{
    struct tally *t = ctx;

    if (thread == 0)
        t->n_thread = n_thread;
    t->seen[thread]++;
    t->ran_on[thread] = gettid();
    t->part[thread] = t->sum * 31 + (uint64_t)thread;
}

static void run_rounds(int n_thread, int n_round)
{
    struct err e = ERR_INIT;
    struct tally t = { .caller = gettid() };
    struct pool *p;
    uint64_t want = 0;

    assert_int_equal(pool_new(&p, n_thread, &e), 0);
    assert_int_equal(pool_threads(p), n_thread);
    for (int r = 0; r < n_round; r++) {
        pool_run(p, count, &t);
        t.sum = 0;
        for (int i = 0; i < n_thread; i++)
            t.sum += t.part[i];
        want = want * 31 * (uint64_t)n_thread + (uint64_t)(n_thread * (n_thread - 1) / 2);
        assert_true(t.sum == want);
    }
    assert_int_equal(t.n_thread, n_thread);
    assert_int_equal(t.ran_on[0], t.caller);
    for (int i = 0; i < MOST; i++)
        assert_int_equal(t.seen[i], i < n_thread ? n_round : 0);
    for (int i = 1; i < n_thread; i++)
        assert_int_not_equal(t.ran_on[i], t.caller);
    pool_free(p);
}

static void every_part_runs_once_per_round(void **state)
{
    (void)state;
    run_rounds(1, 100);
    run_rounds(2, 5000);
    run_rounds(3, 1000);
}

/* With more workers than CPUs, workers never spin, so each round finds them asleep. */
static void more_workers_than_cpus_finish_too(void **state)
{
    (void)state;
    run_rounds(MOST, 500);
}

#define BUSY_S 0.1

/* Processor time of this thread. */
static double cpu_s(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void compute(void *ctx, int thread, int n_thread)
{
    double end_s = cpu_s() + BUSY_S;

    (void)ctx;
    (void)thread;
    (void)n_thread;
    while (cpu_s() < end_s)
        continue;
}

/* Two processes share a processor, so each of them waits for it. */
static void waiting_for_a_processor_is_measured(void **state)
{
    struct err e = ERR_INIT;
    cpu_set_t all, one;
    struct pool *p;
    double waited_s;
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
    pool_run(p, compute, NULL);
    waited_s = (double)pool_wait_ns(p) / 1e9;
    kill(child, SIGKILL); /* or else a failed test leaves a busy process */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    pool_free(p);
    assert_true(waited_s > BUSY_S / 10);
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
        cmocka_unit_test(waiting_for_a_processor_is_measured),
        cmocka_unit_test(an_unused_pool_can_be_freed),
        cmocka_unit_test(impossible_counts_are_refused),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
