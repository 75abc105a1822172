/*
 * A round: pool_run stores fn, ctx and the number of parts, and wakes sleeping workers.  Every
 * thread, the caller included, claims parts until none is left.  The caller then waits for the
 * parts that others have begun.
 *
 * Parts are claimed, not assigned, because a thread may have no processor: another program has
 * it, or the host of a virtual machine.  When each thread had its own part, a pass of 500
 * rounds needed all threads to run at the same time 500 times.  With three other programs on
 * two CPUs, an answer spent 10 times as long on waiting as on computing.
 *
 * `claims` holds the number of a round and of its parts that are left, so that a thread that
 * was stopped between reading and claiming cannot claim a part of a later round by mistake.
 *
 * A waiting thread polls for SPIN_NS and then sleeps in the kernel (futex).  To wake a thread
 * takes 50 us on a virtual machine.  Polling must last longer, or the threads of a small model
 * take turns: the caller falls asleep while the worker wakes up, and the worker while the
 * caller does.  A model of 4 MB gave 300 to 600 tokens per second when the threads polled for
 * 20 us, and 800 to 1000 with 100 us.  With more threads than CPUs no thread spins, because it
 * would take time from the thread it waits for.
 */
#include "config.h"

#include "engine/compute/pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/machine/kernel_file.h"
#include "engine/machine/load_meter.h"
#include "engine/machine/machine.h"

#define MAX_THREAD MW_THREADS_MOST
/* Kernels keep tiles on the stack, and sanitizers enlarge them.  Only touched pages are
 * charged. */
#define STACK_BYTES ((size_t)8 << 20)
#define SPIN_NS     100000u
#define STATISTICS  "/proc/thread-self/schedstat"
#define PARTS_EACH  4 /* parts for each thread, so that threads end together */
#define PART_BYTES  ((uint64_t)128 << 10) /* of weights; smaller parts are not worth a claim */
#define SHARES      (9 + 3 + 1)
#define ROWS        32
#define N_TIMED     200 /* pauses that are timed: they take 10 to 50 ns each */

/*
 * The sizes of the parts of a product, relative to each other.  With two threads, the products
 * of a token take 2 to 3 % less time than in eight equal parts, and 0 to 3 % less than in two
 * equal ones, where a thread waits longer for the other.  A matrix of 2 MB is divided in two
 * parts only, which takes 6 % less time than eight.
 */
static const size_t shares[POOL_SIZES] = { 9, 3, 1 };

/* Times of a thread, as the kernel counts them. */
struct thread_time {
    uint64_t ran_ns, waited_ns; /* on a processor; ready for one */
};

struct worker {
    struct pool *pool;
    pthread_t id;
    int index;
    atomic_int statistics; /* its own schedstat; -1: not open yet, or unknown */
    struct thread_time begin; /* at pool_wait_begin() */
};

struct pool {
    atomic_int n_thread; /* a worker whose index is not below it ends */
    int n_started;       /* workers that exist: 1 .. n_started */
    int n_cpu;
    atomic_int spin;
    /* At pool_wait_begin(); the last two are of the caller. */
    uint64_t begin_ns, begin_cpu_ns, begin_own_ns, waited_ns;
    uint64_t ran_ns; /* of all threads, between pool_wait_begin() and pool_wait_ns() */
    struct load_meter meter;
    pool_fn *fn; /* for this round, stored before it can be claimed */
    void *ctx;
    int n_part;

    _Alignas(64) atomic_ullong claims; /* round << 32 | parts that are not claimed yet */
    atomic_uint round;
    atomic_uint n_asleep; /* workers in or near futex_wait on round */
    _Alignas(64) atomic_uint left;
    atomic_bool caller_sleeps;

    struct worker worker[MAX_THREAD - 1];
};

static int n_thread(const struct pool *p)
{
    return atomic_load_explicit(&p->n_thread, memory_order_relaxed);
}

/* Number of polls before a thread sleeps. */
static int n_poll(const struct pool *p)
{
    return atomic_load_explicit(&p->spin, memory_order_relaxed);
}

static void sleep_on(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns the round after `seen`. */
static unsigned wait_for_round(struct pool *p, unsigned seen)
{
    unsigned now;

    for (int i = 0; i < n_poll(p); i++) {
        now = atomic_load_explicit(&p->round, memory_order_acquire);
        if (now != seen)
            return now;
        pause_cpu();
    }
    /*
     * Both sides use sequential consistency: either the caller sees n_asleep and wakes this
     * thread, or the load or the kernel sees the new round and this thread does not sleep.
     */
    atomic_fetch_add(&p->n_asleep, 1);
    while ((now = atomic_load(&p->round)) == seen)
        sleep_on(&p->round, seen);
    atomic_fetch_sub(&p->n_asleep, 1);
    return now;
}

/* Run parts until all are claimed.  A claim keeps the round open, and with it fn and ctx. */
static void run_parts(struct pool *p)
{
    unsigned long long claims = atomic_load_explicit(&p->claims, memory_order_acquire);

    while ((uint32_t)claims != 0) {
        int part;

        if (!atomic_compare_exchange_weak(&p->claims, &claims, claims - 1))
            continue;
        part = p->n_part - (int)(uint32_t)claims;
        p->fn(p->ctx, part, p->n_part);
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps))
            wake(&p->left, 1);
        claims = atomic_load_explicit(&p->claims, memory_order_acquire);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct pool *p = w->pool;
    unsigned seen = 0;

    atomic_store(&w->statistics, kernel_file_open("", STATISTICS));
    for (;;) {
        seen = wait_for_round(p, seen);
        if (w->index >= n_thread(p))
            return NULL;
        run_parts(p);
    }
}

static void start_round(struct pool *p)
{
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->n_asleep) != 0)
        wake(&p->round, INT_MAX);
}

static void wait_for_workers(struct pool *p)
{
    unsigned left;

    for (int i = 0; i < n_poll(p); i++) {
        if (atomic_load_explicit(&p->left, memory_order_acquire) == 0)
            return;
        pause_cpu();
    }
    atomic_store(&p->caller_sleeps, true);
    while ((left = atomic_load(&p->left)) != 0)
        sleep_on(&p->left, left);
    atomic_store(&p->caller_sleeps, false);
}

/* The number of pauses that take SPIN_NS. */
static int pauses_to_spin(void)
{
    uint64_t from_ns = clock_ns(), ns;

    for (int i = 0; i < N_TIMED; i++)
        pause_cpu();
    ns = clock_ns() - from_ns;
    return ns > 0 ? (int)((uint64_t)SPIN_NS * N_TIMED / ns) + 1 : N_TIMED;
}

static int n_cpu(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return MAX_THREAD; /* more CPUs than the set holds */
    return CPU_COUNT(&set);
}

/* End the workers beyond the first n threads, the caller included.  One may still be on its way
 * from the last round. */
static void stop_workers(struct pool *p, int n)
{
    int n_left = n > 1 ? n - 1 : 0;

    if (p->n_started <= n_left)
        return;
    atomic_store(&p->n_thread, n);
    start_round(p);
    while (p->n_started > n_left) {
        struct worker *w = &p->worker[--p->n_started];

        pthread_join(w->id, NULL);
        kernel_file_close(w->statistics);
    }
}

static int start_workers(struct pool *p, int n, struct err *e)
{
    int rc = 0;

    atomic_store(&p->n_thread, n);
    while (rc == 0 && p->n_started < n - 1) {
        struct worker *w = &p->worker[p->n_started];

        *w = (struct worker){ .pool = p, .index = p->n_started + 1, .statistics = -1 };
        rc = thread_start(&w->id, "worker", STACK_BYTES, work, w);
        if (rc == 0)
            p->n_started++;
    }
    errno = rc;
    if (rc != 0)
        return err_sys(e, "cannot start thread %d of %d", p->n_started + 1, n);
    return 0;
}

int pool_set_threads(struct pool *p, int n, struct err *e)
{
    int before = p->n_started + 1;

    if (n < 1 || n > MAX_THREAD)
        return err_set(e, ERR_ARGUMENT, "the number of threads must be 1 to %d, not %d",
                       MAX_THREAD, n);
    stop_workers(p, n);
    if (start_workers(p, n, e) != 0) {
        stop_workers(p, before);
        atomic_store(&p->n_thread, before);
        return -1;
    }
    p->n_cpu = n_cpu();
    atomic_store(&p->spin, n > 1 && n <= p->n_cpu ? pauses_to_spin() : 0);
    return 0;
}

int pool_new(struct pool **out, int n, struct err *e)
{
    struct pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);

    *out = NULL;
    if (p == NULL)
        return err_memory(e, "%d threads", n);
    p->n_started = 0;
    p->begin_ns = p->begin_cpu_ns = p->begin_own_ns = p->waited_ns = 0;
    p->meter = (struct load_meter){ .n = 0 };
    p->fn = NULL;
    p->ctx = NULL;
    p->n_part = 0;
    atomic_init(&p->n_thread, 1);
    atomic_init(&p->spin, 0);
    atomic_init(&p->claims, 0);
    atomic_init(&p->round, 0);
    atomic_init(&p->n_asleep, 0);
    atomic_init(&p->left, 0);
    atomic_init(&p->caller_sleeps, false);
    if (pool_set_threads(p, n, e) != 0) {
        pool_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    stop_workers(p, 0);
    free(p);
}

int pool_threads(const struct pool *p)
{
    return n_thread(p);
}

int pool_parts(const struct pool *p, size_t n_item)
{
    size_t most = (size_t)n_thread(p) * PARTS_EACH;

    return (int)(n_item < most ? n_item : most);
}

void pool_run(struct pool *p, int n_part, pool_fn *fn, void *ctx)
{
    unsigned long long round;

    if (n_thread(p) == 1 || n_part == 1) {
        fn(ctx, 0, 1);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n_part = n_part;
    round = atomic_load_explicit(&p->round, memory_order_relaxed) + 1u;
    atomic_store_explicit(&p->left, (unsigned)n_part, memory_order_relaxed);
    atomic_store_explicit(&p->claims, round << 32 | (unsigned)n_part, memory_order_release);
    start_round(p);
    run_parts(p);
    wait_for_workers(p);
}

/* Returns the first two numbers of its file. */
static struct thread_time thread_time(int fd)
{
    struct thread_time t = { 0 };
    char text[80], *end;

    if (fd < 0 || kernel_file_read(fd, text, sizeof text) <= 0)
        return t;
    t.ran_ns = strtoull(text, &end, 10);
    t.waited_ns = strtoull(end, NULL, 10);
    return t;
}

/* The caller may be another thread each time, so its file is opened each time. */
static uint64_t caller_waited_ns(void)
{
    int fd = kernel_file_open("", STATISTICS);
    struct thread_time t = thread_time(fd);

    kernel_file_close(fd);
    return t.waited_ns;
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec
               : 0;
}

void pool_wait_begin(struct pool *p)
{
    p->begin_ns = clock_ns();
    load_meter_begin(&p->meter, p->begin_ns, "");
    p->begin_cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    p->begin_own_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    p->waited_ns = caller_waited_ns();
    for (int i = 0; i < p->n_started; i++)
        p->worker[i].begin = thread_time(p->worker[i].statistics);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t without(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

uint64_t pool_wait_ns(struct pool *p, uint64_t computing_ns)
{
    uint64_t most = caller_waited_ns() - p->waited_ns;
    uint64_t now_ns = clock_ns(), wall_ns = now_ns - p->begin_ns;
    uint64_t all_ns = wall_ns * (uint64_t)p->n_cpu;
    uint64_t used_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - p->begin_cpu_ns;
    uint64_t own_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - p->begin_own_ns;

    p->ran_ns = own_ns;
    for (int i = 0; i < p->n_started; i++) {
        struct thread_time now = thread_time(p->worker[i].statistics), *at = &p->worker[i].begin;

        p->ran_ns += without(now.ran_ns, at->ran_ns);
        if (now.waited_ns > at->waited_ns && now.waited_ns - at->waited_ns > most)
            most = now.waited_ns - at->waited_ns;
    }
    load_meter_end(&p->meter, now_ns, "");
    most = less(most, less(without(all_ns, used_ns), without(computing_ns, own_ns)));
    return less(load_meter_others_ns(&p->meter, most, wall_ns), computing_ns);
}

uint64_t pool_ran_ns(const struct pool *p)
{
    return p->ran_ns;
}

double pool_crowding(const struct pool *p)
{
    return load_meter_crowding(&p->meter, n_thread(p), p->n_cpu);
}

int pool_row_parts(const struct pool *p, uint64_t bytes)
{
    uint64_t least = (uint64_t)n_thread(p) * SHARES * PART_BYTES;

    return bytes < least ? n_thread(p) : n_thread(p) * POOL_SIZES;
}

/* The shares of all parts before this one, of which a thread has SHARES. */
static size_t shares_before(const struct pool *p, int part)
{
    size_t n = (size_t)n_thread(p), size = (size_t)part / n, sum = 0;

    for (size_t i = 0; i < size; i++)
        sum += n * shares[i];
    return size < POOL_SIZES ? sum + (size_t)part % n * shares[size] : sum;
}

void pool_rows(const struct pool *p, size_t n_row, int part, int n_part, size_t *from,
               size_t *to)
{
    size_t n_group = (n_row + ROWS - 1) / ROWS, n = (size_t)n_part, at = (size_t)part,
           end = at + 1;

    if (n_part == n_thread(p) * POOL_SIZES) {
        at = shares_before(p, part);
        end = shares_before(p, part + 1);
        n = shares_before(p, n_part);
    }
    *from = n_group * at / n * ROWS;
    *to = n_group * end / n * ROWS;
    if (*to > n_row)
        *to = n_row;
}
