#include "config.h"

#include "engine/machine/probe.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/machine/pagecache.h"

#define ALIGN        ((uint64_t)4096) /* enough for direct reads on every device */
#define HUGE         (2 * MIB)
#define STACK_BYTES  ((size_t)256 << 10)
#define CACHED_PARTS 16 /* buffered reads are not compared if more than 1 / 16 is cached */
#define SLICES       4  /* of a comparison: direct, buffered, direct, buffered */

/* --- threads that measure together --- */

struct crew;
typedef void crew_fn(struct crew *c, int i);

struct crew {
    const struct probe_options *options;
    crew_fn *fn;
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
    uint64_t block_bytes, n_block, stride;
    _Atomic uint64_t next;
    uint64_t end; /* `next` stops here */
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
    unsigned char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    *mapping = p;
    p += (HUGE - (uintptr_t)p % HUGE) % HUGE;
    if (bytes >= HUGE && sysconf(_SC_PAGESIZE) == 4096)
        (void)madvise(p, align_down(bytes, HUGE), MADV_HUGEPAGE);
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

/* Run fn on n threads for the given time. */
static int run_crew(struct crew *c, int n, double seconds, struct probe_rate *out,
                    struct err *e)
{
    struct member members[PROBE_THREADS_MAX];
    void *mapping = NULL;
    double start_s;
    int started, result = 0;

    c->n = n;
    c->buffer = map_buffer(c->buffer_bytes, &mapping);
    if (c->buffer == NULL)
        return err_sys(e, "cannot map a buffer of %llu bytes for measuring",
                       (unsigned long long)c->buffer_bytes);
    start_s = clock_s();
    c->end_s = start_s + seconds;
    started = start(c, members, n);
    if (started < n) {
        c->error = EAGAIN;
        result = err_sys(e, "cannot start a thread for measuring");
    }
    for (int i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    out->seconds = clock_s() - start_s;
    out->bytes = c->bytes;
    out->bytes_s = out->seconds > 0 ? (double)out->bytes / out->seconds : 0;
    munmap(mapping, c->buffer_bytes + HUGE);
    if (result == 0 && c->options->cancelled != NULL && *c->options->cancelled)
        result = err_set(e, ERR_CANCELLED, "cancelled");
    return result;
}

/* --- disk --- */

/* Visit each block once, in an order that is always spread over the file: the disk, or the
 * host of a virtual disk, may have cached the neighbours of a block that was just read. */
static uint64_t next_offset(struct crew *c, bool *is_left)
{
    uint64_t i = atomic_fetch_add(&c->next, 1);

    *is_left = i < c->end;
    return i * c->stride % c->n_block * c->block_bytes;
}

static void read_blocks(struct crew *c, int i)
{
    unsigned char *p = c->buffer + (uint64_t)i * c->block_bytes;
    bool is_left;

    while (!is_over(c)) {
        uint64_t at = next_offset(c, &is_left);
        ssize_t n;

        if (!is_left)
            return;
        n = pread(c->fd, p, c->block_bytes, (off_t)at);
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
    if (!is_direct) {
        /* Cached pages would be measured instead of the disk. */
        (void)posix_fadvise(again, 0, 0, POSIX_FADV_DONTNEED);
        (void)posix_fadvise(again, 0, 0, POSIX_FADV_RANDOM);
    }
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
        return err_set(e, ERR_BUDGET, "measuring the disk needs a buffer of more than %llu bytes",
                       (unsigned long long)o->buffer_bytes);
    c->n_block = c->end = (uint64_t)st.st_size / c->block_bytes;
    c->stride = spread_stride(c->n_block);
    c->buffer_bytes = c->block_bytes * depth;
    return 0;
}

/* Read blocks until the time is over or block c->end is reached, adding to *out. */
static int measure_reads(struct crew *c, int fd, bool is_direct, uint32_t depth, double seconds,
                         struct probe_rate *out, struct err *e)
{
    struct probe_rate rate = { 0 };
    int result;

    c->is_direct = is_direct;
    c->bytes = 0;
    c->fd = open_again(fd, is_direct, e);
    if (c->fd < 0)
        return -1;
    result = run_crew(c, (int)depth, seconds, &rate, e);
    close(c->fd);
    if (result == 0 && c->error != 0) {
        errno = c->error;
        if (errno == EINVAL && is_direct)
            return err_set(e, ERR_UNSUPPORTED, "the file system does not support direct reads");
        err_sys(e, "could not read %llu bytes", (unsigned long long)c->block_bytes);
        return err_at(e, NULL, c->error_at, NULL);
    }
    out->bytes += rate.bytes;
    out->seconds += rate.seconds;
    out->bytes_s = out->seconds > 0 ? (double)out->bytes / out->seconds : 0;
    return result;
}

int probe_disk(int fd, bool is_direct, uint32_t depth, size_t block_bytes,
               const struct probe_options *options, struct probe_rate *out, struct err *e)
{
    struct crew c = { .options = options, .fn = read_blocks };

    *out = (struct probe_rate){ 0 };
    if (set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    if (c.n_block == 0)
        return 0;
    return measure_reads(&c, fd, is_direct, depth, options->seconds, out, e);
}

/* Pages that are dirty, or mapped by others, cannot be dropped from the page cache.  Reads of
 * them would measure memory. */
static bool stays_cached(int fd)
{
    struct mw_os_value cached;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    cached = pagecache_bytes(fd, (uint64_t)st.st_size);
    return cached.why_not == NULL && cached.value > (uint64_t)st.st_size / CACHED_PARTS;
}

int probe_disk_both(int fd, uint32_t depth, size_t block_bytes,
                    const struct probe_options *options, struct probe_rate *direct,
                    struct probe_rate *buffered, struct err *e)
{
    struct crew c = { .options = options, .fn = read_blocks };
    bool takes_direct = true, is_cached = stays_cached(fd);

    *direct = *buffered = (struct probe_rate){ 0 };
    if (set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    /* Measure in alternating slices, because other load on the disk comes and goes.  In a small
     * file each slice gets its share of the blocks. */
    for (uint64_t slice = 0; slice < SLICES && c.n_block > 0; slice++) {
        bool is_direct = slice % 2 == 0;
        double seconds = options->seconds * 2 / SLICES;

        if (is_direct ? !takes_direct : is_cached && takes_direct)
            continue;
        c.end = c.next + c.n_block / SLICES + 1;
        if (c.end > c.n_block)
            c.end = c.n_block;
        if (measure_reads(&c, fd, is_direct, depth, seconds, is_direct ? direct : buffered,
                          e) == 0)
            continue;
        if (!is_direct || e->code != ERR_UNSUPPORTED)
            return -1;
        takes_direct = false;
        c.error = 0;
    }
    return 0;
}

/* --- memory --- */

/* With 16 bytes at once and four sums the processor waits for memory and not for adding. */
typedef uint64_t lanes __attribute__((vector_size(16)));

static uint64_t sum_of(const unsigned char *p, uint64_t bytes)
{
    const lanes *v = (const lanes *)(const void *)p;
    lanes a = { 0, 0 }, b = a, c = a, d = a;

    for (uint64_t i = 0; i < bytes / sizeof(lanes); i += 4) {
        a += v[i];
        b += v[i + 1];
        c += v[i + 2];
        d += v[i + 3];
    }
    a += b + c + d;
    return a[0] + a[1];
}

static void sum_buffer(struct crew *c, int i)
{
    uint64_t share = align_down(c->buffer_bytes / (uint64_t)c->n, 64);
    volatile uint64_t kept = 0; /* keeps the compiler from removing the loop */

    /* At least once: on a busy machine the time may be over before a thread starts. */
    do {
        kept = kept + sum_of(c->buffer + (uint64_t)i * share, share);
        c->bytes += share;
    } while (!is_over(c));
}

int probe_memory(int n_thread, const struct probe_options *options, struct probe_rate *out,
                 struct err *e)
{
    struct crew c = { .options = options, .fn = sum_buffer };

    *out = (struct probe_rate){ 0 };
    if (n_thread < 1 || n_thread > PROBE_THREADS_MAX)
        return err_set(e, ERR_ARGUMENT, "cannot measure with %d threads", n_thread);
    c.buffer_bytes = align_down(options->buffer_bytes, ALIGN);
    if (c.buffer_bytes / (uint64_t)n_thread < ALIGN)
        return err_set(e, ERR_BUDGET, "measuring memory needs a buffer of more than %llu bytes",
                       (unsigned long long)options->buffer_bytes);
    return run_crew(&c, n_thread, options->seconds, out, e);
}
