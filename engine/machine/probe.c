#include "config.h"

#include "engine/machine/probe.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/cpu_cache.h"
#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/machine/load.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/slices.h"

#define ALIGN       ((uint64_t)4096) /* enough for direct reads on every device */
#define STACK_BYTES ((size_t)256 << 10)
#define RUNS        32 /* of a file */

/* --- threads that measure together --- */

struct crew;
typedef void crew_fn(struct crew *c, int i);

struct crew {
    const struct probe_options *options;
    crew_fn *fn;
    void *mapping;
    unsigned char *buffer;
    uint64_t buffer_bytes; /* of all threads */
    double end_s;
    _Atomic uint64_t bytes;
    _Atomic int error; /* errno of the first read that failed */
    _Atomic uint64_t error_at;
    int n;

    /* disk */
    int fd;
    bool is_direct;
    bool takes_cached; /* read blocks that the page cache has, too */
    uint64_t block_bytes, n_block;
    uint64_t run, n_run, stride; /* blocks of a run, complete runs, and from run to run */
    _Atomic uint64_t next;
    uint64_t end; /* `next` stops here */
    /* Complete reads.  full_s and full_bytes are the time and the bytes at the moment when as many
     * were complete as are kept in flight: before that, the rate is not yet steady. */
    _Atomic uint64_t n_read;
    double full_s;
    uint64_t full_bytes;
    _Atomic uint64_t read_ns; /* processor time of the reads */

    /* memory */
    _Atomic uint64_t n_met;  /* arrivals at the points where the threads wait for each other */
    _Atomic bool is_ending;  /* a thread has left, so the others no longer wait for it */
    _Atomic uint64_t sum_ns; /* of all threads, while they read */
};

struct member {
    struct crew *crew;
    int i;
    pthread_t thread;
};

static bool is_over(const struct crew *c)
{
    const _Atomic bool *cancelled = c->options->cancelled;

    return clock_s() >= c->end_s || c->error != 0 || (cancelled != NULL && *cancelled);
}

static void *member_main(void *arg)
{
    struct member *m = arg;

    m->crew->fn(m->crew, m->i);
    return NULL;
}

/* Use huge pages if possible, as the ring and the pinned weights do. */
static unsigned char *map_buffer(uint64_t bytes, void **mapping)
{
    unsigned char *p = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    *mapping = p;
    p += (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
    if (bytes >= HUGE_BYTES && sysconf(_SC_PAGESIZE) == 4096)
        (void)madvise(p, align_down(bytes, HUGE_BYTES), MADV_HUGEPAGE);
    memset(p, 1, bytes);
    return p;
}

static int start(struct crew *c, struct member *members, int n)
{
    int started = 0, failed = 0;

    while (started < n && failed == 0) {
        members[started].crew = c;
        members[started].i = started;
        failed = thread_start(&members[started].thread, "probe", STACK_BYTES, member_main,
                              &members[started]);
        started += failed == 0;
    }
    errno = failed;
    return started;
}

static int map_crew(struct crew *c, struct err *e)
{
    c->buffer = map_buffer(c->buffer_bytes, &c->mapping);
    if (c->buffer == NULL)
        return err_sys(e, "cannot map a buffer of %llu bytes for measuring",
                       (unsigned long long)c->buffer_bytes);
    return 0;
}

static void unmap_crew(struct crew *c)
{
    munmap(c->mapping, c->buffer_bytes + HUGE_BYTES);
}

/*
 * The rate of a slice.  Of disks it is without the time until the first reads are done: a disk may
 * report all reads in flight together, and in a short slice the first of these groups counts for
 * much.  Of memory it is without the time in which buffers were dropped from the caches.
 */
static double slice_rate(const struct crew *c, double start_s, double end_s)
{
    bool is_long = c->n_read >= 3 * (uint64_t)c->n;
    double from_s = is_long ? c->full_s : start_s;
    uint64_t bytes = c->bytes - (is_long ? c->full_bytes : 0);

    if (c->sum_ns > 0)
        return (double)c->bytes * c->n / ((double)c->sum_ns / 1e9);
    return end_s > from_s ? (double)bytes / (end_s - from_s) : 0;
}

/* Begin a slice. */
static void prepare(struct crew *c, int n, double end_s)
{
    c->n = n;
    c->bytes = c->n_read = c->n_met = c->sum_ns = 0;
    c->is_ending = false;
    c->end_s = end_s;
}

/* Run fn on n threads for the given time: one slice, which is added to *out and *slices. */
static int run_slice(struct crew *c, int n, double seconds, struct probe_rate *out,
                     struct slices *slices, struct err *e)
{
    struct member members[PROBE_THREADS_MAX];
    double start_s = clock_s(), end_s;
    int started, result = 0;

    prepare(c, n, start_s + seconds);
    started = start(c, members, n);
    if (started < n) {
        c->error = EAGAIN;
        result = err_sys(e, "cannot start a thread for measuring");
    }
    for (int i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    end_s = clock_s();
    out->seconds += end_s - start_s;
    out->bytes += c->bytes;
    if (c->bytes > 0 && end_s > start_s)
        slices_add(slices, slice_rate(c, start_s, end_s));
    if (result == 0 && c->options->cancelled != NULL && *c->options->cancelled)
        result = err_set(e, ERR_CANCELLED, "cancelled");
    return result;
}

static void set_rate(struct probe_rate *out, const struct slices *slices,
                     const struct load *load)
{
    out->bytes_s = slices_rate(slices);
    out->spread = slices_spread(slices);
    out->load = load_of_others(load, "");
}

bool probe_is_doubtful(const struct probe_rate *r)
{
    return r->spread > PROBE_SPREAD || r->load > PROBE_LOAD || r->is_cached;
}

/* --- disk --- */

/* Are pages of this block in the page cache? */
static bool is_cached(const struct crew *c, uint64_t at)
{
    struct mw_os_value cached = pagecache_bytes_at(c->fd, at, c->block_bytes);

    return cached.why_not == NULL && cached.value > 0;
}

/* Visit each block once.  Runs of neighbours are read in order, as a stream reads matrices; the
 * runs are spread over the file. */
static uint64_t next_offset(struct crew *c, bool *is_left)
{
    uint64_t i = atomic_fetch_add(&c->next, 1);

    *is_left = i < c->end;
    i = (i + c->options->first) % c->n_block;
    if (i < c->n_run * c->run)
        i = i / c->run * c->stride % c->n_run * c->run + i % c->run;
    return i * c->block_bytes;
}

/* Processor time of this thread. */
static uint64_t thread_ns(void)
{
    struct timespec t;

    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
               ? (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec
               : 0;
}

/* Looking for blocks that are not in the page cache takes processor time, too: after a file was
 * written, more than reading the few that are left.  So only that of the reads is counted. */
static void read_blocks(struct crew *c, int i)
{
    unsigned char *p = c->buffer + (uint64_t)i * c->block_bytes;
    bool is_left;

    while (!is_over(c)) {
        uint64_t at = next_offset(c, &is_left), start_ns;
        ssize_t n;

        if (!is_left)
            return;
        if (!c->takes_cached && is_cached(c, at))
            continue;
        start_ns = thread_ns();
        n = pread(c->fd, p, c->block_bytes, (off_t)at);
        c->read_ns += thread_ns() - start_ns;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            c->error_at = at;
            c->error = errno;
            return;
        }
        if (!c->is_direct)
            (void)posix_fadvise(c->fd, (off_t)at, n, POSIX_FADV_DONTNEED);
        c->bytes += (uint64_t)n;
        if (++c->n_read == (uint64_t)c->n) {
            c->full_bytes = c->bytes;
            c->full_s = clock_s();
        }
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Returns a stride near the golden ratio of n that has no divisor in common with n. */
static uint64_t spread_stride(uint64_t n)
{
    uint64_t stride = (uint64_t)((double)n * 0.6180339887498949);

    if (n < 3)
        return 1;
    while (stride < 2 || common_divisor(stride, n) != 1)
        stride++;
    return stride;
}

static int open_again(int fd, bool is_direct, struct err *e)
{
    char name[40];
    int again;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    again = open(name, O_RDONLY | O_CLOEXEC | (is_direct ? O_DIRECT : 0));
    if (again < 0 && errno == EINVAL && is_direct)
        return err_set(e, ERR_UNSUPPORTED, "the file system does not support direct reads");
    if (again < 0)
        return err_sys(e, "cannot reopen the file to measure the disk");
    if (!is_direct)
        (void)posix_fadvise(again, 0, 0, POSIX_FADV_RANDOM);
    return again;
}

static int set_blocks(struct crew *c, int fd, uint32_t depth, size_t block_bytes, struct err *e)
{
    const struct probe_options *o = c->options;
    struct stat st;

    if (depth == 0 || depth > PROBE_DEPTH_MAX || block_bytes == 0)
        return err_set(e, ERR_ARGUMENT, "cannot measure %u reads in flight of %zu bytes", depth,
                       block_bytes);
    if (fstat(fd, &st) != 0)
        return err_sys(e, "cannot read the size of the file");
    c->block_bytes = align_up(block_bytes, ALIGN);
    if (c->block_bytes > o->buffer_bytes / depth)
        c->block_bytes = align_down(o->buffer_bytes / depth, ALIGN);
    if (c->block_bytes == 0)
        return err_set(e, ERR_BUDGET,
                       "measuring the disk needs a buffer of more than %llu bytes",
                       (unsigned long long)o->buffer_bytes);
    c->n_block = c->end = (uint64_t)st.st_size / c->block_bytes;
    c->run = c->n_block > RUNS ? c->n_block / RUNS : 1;
    c->n_run = c->n_block / c->run;
    c->stride = spread_stride(c->n_run);
    /* In huge pages even if they are few small blocks: a read into small pages is slower. */
    c->buffer_bytes = align_up(c->block_bytes * depth, HUGE_BYTES);
    if (c->buffer_bytes > o->buffer_bytes)
        c->buffer_bytes = c->block_bytes * depth;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

/* One slice: read blocks until the time is over or block c->end is reached. */
static int read_slice(struct crew *c, int fd, bool is_direct, uint32_t depth, double seconds,
                      struct probe_rate *out, struct slices *slices, struct err *e)
{
    double cpu_s = out->cpu_s * (double)out->bytes;
    int result;

    c->read_ns = 0;
    c->is_direct = is_direct;
    c->fd = open_again(fd, is_direct, e);
    if (c->fd < 0)
        return -1;
    result = run_slice(c, (int)depth, seconds, out, slices, e);
    close(c->fd);
    if (out->bytes > 0) /* the mean over all slices */
        out->cpu_s = (cpu_s + (double)c->read_ns / 1e9) / (double)out->bytes;
    if (c->next > c->end)
        c->next = c->end;
    if (result == 0 && c->error != 0) {
        errno = c->error;
        if (errno == EINVAL && is_direct)
            return err_set(e, ERR_UNSUPPORTED, "the file system does not support direct reads");
        err_sys(e, "could not read %llu bytes", (unsigned long long)c->block_bytes);
        return err_at(e, NULL, c->error_at, NULL);
    }
    return result;
}

/* A slice gets its share of the blocks, so that a small file is read in as many slices. */
static void give_share(struct crew *c)
{
    c->end = c->next + c->n_block / PROBE_SLICES + 1;
    if (c->end > c->n_block)
        c->end = c->n_block;
}

static int read_slices(struct crew *c, int fd, bool is_direct, uint32_t depth,
                       struct probe_rate *out, struct err *e)
{
    const struct probe_options *o = c->options;
    struct slices slices = { 0 };
    struct load load;

    load_begin(&load, "");
    c->next = 0;
    do {
        give_share(c);
        if (read_slice(c, fd, is_direct, depth, o->seconds / PROBE_SLICES, out, &slices, e) !=
            0)
            return -1;
        set_rate(out, &slices, &load);
    } while (c->next < c->n_block &&
             (out->seconds < o->seconds ||
              (probe_is_doubtful(out) && out->seconds < o->seconds + o->more_seconds)));
    return 0;
}

int probe_disk(int fd, bool is_direct, uint32_t depth, size_t block_bytes,
               const struct probe_options *options, struct probe_rate *out, struct err *e)
{
    struct crew c = { .options = options, .fn = read_blocks };
    int rc = 0;

    *out = (struct probe_rate){ 0 };
    if (set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    if (c.n_block == 0)
        return 0;
    if (map_crew(&c, e) != 0)
        return -1;
    rc = read_slices(&c, fd, is_direct, depth, out, e);
    if (rc == 0 && out->bytes == 0) {
        c.takes_cached = out->is_cached = true;
        rc = read_slices(&c, fd, is_direct, depth, out, e);
    }
    unmap_crew(&c);
    return rc;
}

/* The two kinds of read that are compared. */
struct comparison {
    struct crew *crew;
    int fd;
    uint32_t depth;
    bool takes_direct;
    struct probe_rate *rate[2]; /* direct, buffered */
    struct slices slices[2];
    struct load load;
};

static int compare_slice(struct comparison *b, bool is_direct, double seconds, struct err *e)
{
    give_share(b->crew);
    if ((is_direct && !b->takes_direct) || b->crew->end <= b->crew->next)
        return 0;
    if (read_slice(b->crew, b->fd, is_direct, b->depth, seconds, b->rate[!is_direct],
                   &b->slices[!is_direct], e) == 0)
        return 0;
    if (!is_direct || e->code != ERR_UNSUPPORTED)
        return -1;
    b->takes_direct = false;
    b->crew->error = 0;
    return 0;
}

/* Measure in alternating slices, because other load on the disk comes and goes. */
static int compare_slices(struct comparison *b, struct err *e)
{
    const struct probe_options *o = b->crew->options;
    double seconds = o->seconds * 2 / PROBE_SLICES, total;

    b->crew->next = 0;
    do {
        if (compare_slice(b, true, seconds, e) != 0 || compare_slice(b, false, seconds, e) != 0)
            return -1;
        total = b->rate[0]->seconds + b->rate[1]->seconds;
        for (int i = 0; i < 2; i++)
            set_rate(b->rate[i], &b->slices[i], &b->load);
    } while (b->crew->next < b->crew->n_block &&
             (total < 2 * o->seconds ||
              ((probe_is_doubtful(b->rate[0]) || probe_is_doubtful(b->rate[1])) &&
               total < 2 * o->seconds + o->more_seconds)));
    return 0;
}

int probe_disk_both(int fd, uint32_t depth, size_t block_bytes,
                    const struct probe_options *options, struct probe_rate *direct,
                    struct probe_rate *buffered, struct err *e)
{
    struct crew c = { .options = options, .fn = read_blocks };
    struct comparison b = {
        .crew = &c, .fd = fd, .depth = depth, .takes_direct = true, .rate = { direct, buffered }
    };
    int rc;

    *direct = *buffered = (struct probe_rate){ 0 };
    if (set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    if (c.n_block == 0)
        return 0;
    if (map_crew(&c, e) != 0)
        return -1;
    load_begin(&b.load, "");
    rc = compare_slices(&b, e);
    if (rc == 0 && direct->bytes == 0 && buffered->bytes == 0) {
        struct probe_rate *one = b.takes_direct ? direct : buffered;

        c.takes_cached = one->is_cached = true;
        rc = read_slices(&c, fd, b.takes_direct, depth, one, e);
    }
    unmap_crew(&c);
    return rc;
}

/* --- mapped pages --- */

#define WINDOW (2 * MIB)

/* MAP_POPULATE reads the pages as faults would, and survives a file that gets shorter. */
static void map_windows(struct crew *c, int i)
{
    (void)i;
    while (!is_over(c)) {
        uint64_t n = c->next++;
        void *p;

        if (n >= c->end)
            return;
        p = mmap(NULL, WINDOW, PROT_READ, MAP_SHARED | MAP_POPULATE, c->fd,
                 (off_t)((n + c->options->first) % c->n_block * WINDOW));
        if (p == MAP_FAILED) {
            c->error = errno;
            return;
        }
        munmap(p, WINDOW);
        c->bytes += WINDOW;
    }
}

int probe_mapped(int fd, const struct probe_options *options, struct probe_rate *out,
                 struct err *e)
{
    struct crew c = { .options = options, .fn = map_windows, .fd = fd };
    struct slices slices = { 0 };
    struct load load;
    struct stat st;

    *out = (struct probe_rate){ 0 };
    if (fstat(fd, &st) != 0)
        return err_sys(e, "cannot read the size of the file");
    c.n_block = (uint64_t)st.st_size / WINDOW;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    load_begin(&load, "");
    while (c.next < c.n_block && out->seconds < options->seconds) {
        give_share(&c);
        if (run_slice(&c, 1, options->seconds / PROBE_SLICES, out, &slices, e) != 0)
            return -1;
        if (c.error != 0) {
            errno = c.error;
            return err_sys(e, "cannot map the file");
        }
        set_rate(out, &slices, &load);
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

/* --- memory --- */

/* With 16 bytes at once and four sums the processor waits for memory and not for adding.  The
 * prefetcher runs further ahead of four streams than of one. */
typedef uint64_t lanes __attribute__((vector_size(16)));

static uint64_t sum_of(const unsigned char *p, uint64_t bytes)
{
    const lanes *v = (const lanes *)(const void *)p;
    uint64_t quarter = bytes / sizeof(lanes) / 4;
    lanes a = { 0, 0 }, b = a, c = a, d = a;

    for (uint64_t i = 0; i < quarter; i++) {
        a += v[i];
        b += v[quarter + i];
        c += v[2 * quarter + i];
        d += v[3 * quarter + i];
    }
    a += b + c + d;
    return a[0] + a[1];
}

/* Wait until all threads are here; false: one has left. */
static bool meet(struct crew *c, uint64_t *n_met)
{
    *n_met += (uint64_t)c->n;
    c->n_met++;
    while (c->n_met < *n_met && !c->is_ending && c->error == 0)
        sched_yield();
    return c->n_met >= *n_met;
}

/* All threads drop their parts of the buffer from the caches, and then all read them: so each
 * has its share of memory's rate, and no cache answers. */
static void sum_buffer(struct crew *c, int i)
{
    uint64_t share = align_down(c->buffer_bytes / (uint64_t)c->n, 64), n_met = 0;
    unsigned char *p = c->buffer + (uint64_t)i * share;
    volatile uint64_t kept = 0; /* keeps the compiler from removing the loop */

    /* At least once: on a busy machine the time may be over before a thread starts. */
    do {
        double start_s;

        (void)cpu_cache_drop(p, share);
        if (!meet(c, &n_met))
            break;
        start_s = clock_s();
        kept = kept + sum_of(p, share);
        c->sum_ns += (uint64_t)((clock_s() - start_s) * 1e9);
        c->bytes += share;
    } while (meet(c, &n_met) && !is_over(c));
    c->is_ending = true;
}

int probe_memory(int n_thread, const struct probe_options *options, struct probe_rate *out,
                 struct err *e)
{
    struct crew c = { .options = options, .fn = sum_buffer };
    struct slices slices = { 0 };
    struct load load;
    int rc;

    *out = (struct probe_rate){ 0 };
    if (n_thread < 1 || n_thread > PROBE_THREADS_MAX)
        return err_set(e, ERR_ARGUMENT, "cannot measure with %d threads", n_thread);
    c.buffer_bytes = align_down(options->buffer_bytes, ALIGN);
    if (c.buffer_bytes / (uint64_t)n_thread < ALIGN)
        return err_set(e, ERR_BUDGET, "measuring memory needs a buffer of more than %llu bytes",
                       (unsigned long long)options->buffer_bytes);
    if (map_crew(&c, e) != 0)
        return -1;
    load_begin(&load, "");
    do {
        rc = run_slice(&c, n_thread, options->seconds / PROBE_SLICES, out, &slices, e);
        set_rate(out, &slices, &load);
    } while (rc == 0 && (out->seconds < options->seconds ||
                         (probe_is_doubtful(out) &&
                          out->seconds < options->seconds + options->more_seconds)));
    unmap_crew(&c);
    return rc;
}

/* --- disk and memory at once --- */

#define PAIR_ROUNDS 4
#define PAIR_MEMORY (16 * MIB) /* less is read in too short a time */

/* The disk, and memory.  Without threads, one of them does nothing. */
struct pair {
    struct crew disk, memory;
    int n_disk, n_memory;
    double seconds; /* of a slice */
};

/* Bytes per second of both, in one slice.  Returns whether all threads started. */
static bool run_pair(struct pair *p, bool has_disk, bool has_memory, double *disk,
                     double *memory)
{
    struct member members[2][PROBE_THREADS_MAX];
    int n_disk = has_disk ? p->n_disk : 0, n_memory = has_memory ? p->n_memory : 0;
    double start_s = clock_s(), end_s;
    int m, d;

    prepare(&p->disk, n_disk, start_s + p->seconds);
    prepare(&p->memory, n_memory, start_s + p->seconds);
    d = start(&p->disk, members[0], n_disk);
    m = start(&p->memory, members[1], n_memory);
    for (int i = 0; i < d; i++)
        pthread_join(members[0][i].thread, NULL);
    end_s = clock_s();
    *disk = slice_rate(&p->disk, start_s, end_s);
    for (int i = 0; i < m; i++)
        pthread_join(members[1][i].thread, NULL);
    *memory = slice_rate(&p->memory, start_s, clock_s());
    return d == n_disk && m == n_memory;
}

/* The sum of the rounds, because the rates of a shared machine change from slice to slice. */
static double measure_pair(struct pair *p)
{
    double disk = 0, memory = 0, disk_alone = 0, memory_alone = 0, ignored;

    for (int i = 0; i < PAIR_ROUNDS; i++) {
        double alone[2], both[2];

        if (!run_pair(p, true, false, &alone[0], &ignored) ||
            !run_pair(p, false, true, &ignored, &alone[1]) ||
            !run_pair(p, true, true, &both[0], &both[1]) || !(both[0] > 0) ||
            p->disk.error != 0)
            break;
        disk_alone += alone[0];
        memory_alone += alone[1];
        disk += both[0];
        memory += both[1];
    }
    if (!(disk > 0) || !(memory > 0))
        return 0;
    disk /= disk_alone;
    memory /= memory_alone;
    return fmin(fmax(1 - fmax(disk, memory), 0) / fmin(disk, memory), 1);
}

int probe_contention(int fd, bool is_direct, uint32_t depth, size_t block_bytes, int n_thread,
                     const struct probe_options *options, double *out, struct err *e)
{
    struct pair p = { .disk = { .options = options, .fn = read_blocks, .is_direct = is_direct },
                      .memory = { .options = options, .fn = sum_buffer },
                      .n_disk = (int)depth,
                      .n_memory = n_thread,
                      .seconds = options->seconds / (3 * PAIR_ROUNDS) };
    int rc = -1;

    *out = 0;
    if (n_thread < 1 || n_thread > PROBE_THREADS_MAX)
        return err_set(e, ERR_ARGUMENT, "cannot measure with %d threads", n_thread);
    if (set_blocks(&p.disk, fd, depth, block_bytes, e) != 0)
        return -1;
    p.memory.buffer_bytes = align_down(options->buffer_bytes - p.disk.buffer_bytes, ALIGN);
    if (p.memory.buffer_bytes < PAIR_MEMORY || p.disk.n_block == 0)
        return 0;
    p.disk.fd = open_again(fd, is_direct, e);
    if (p.disk.fd < 0)
        return -1;
    if (map_crew(&p.disk, e) == 0) {
        if (map_crew(&p.memory, e) == 0) {
            *out = measure_pair(&p);
            unmap_crew(&p.memory);
            rc = 0;
        }
        unmap_crew(&p.disk);
    }
    close(p.disk.fd);
    return rc;
}
