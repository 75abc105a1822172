/* The rates of the disk: direct, buffered, both in turn, and mapped pages. */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/probe_internal.h"

#define RUNS 32 /* of a file */

/* Are pages of this block in the page cache? */
static bool is_cached(const struct probe_crew *c, uint64_t at)
{
    struct mw_os_value cached = pagecache_bytes_at(c->fd, at, c->block_bytes);

    return cached.why_not == NULL && cached.value > 0;
}

/* Visit each block once.  Runs of neighbours are read in order, as a stream reads matrices; the
 * runs are spread over the file. */
static uint64_t next_offset(struct probe_crew *c, bool *is_left)
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

void probe_read_blocks(struct probe_crew *c, int i)
{
    unsigned char *p = c->buffer + (uint64_t)i * c->block_bytes;
    bool is_left;

    while (!probe_is_over(c)) {
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

int probe_open_again(int fd, bool is_direct, struct err *e)
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

int probe_set_blocks(struct probe_crew *c, int fd, uint32_t depth, size_t block_bytes,
                     struct err *e)
{
    const struct probe_options *o = c->options;
    struct stat st;

    if (depth == 0 || depth > PROBE_DEPTH_MAX || block_bytes == 0)
        return err_set(e, ERR_ARGUMENT, "cannot measure %u reads in flight of %zu bytes", depth,
                       block_bytes);
    if (fstat(fd, &st) != 0)
        return err_sys(e, "cannot read the size of the file");
    c->block_bytes = align_up(block_bytes, PROBE_ALIGN);
    if (c->block_bytes > o->buffer_bytes / depth)
        c->block_bytes = align_down(o->buffer_bytes / depth, PROBE_ALIGN);
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
static int read_slice(struct probe_crew *c, int fd, bool is_direct, uint32_t depth,
                      double seconds, struct probe_rate *out, struct slices *slices,
                      struct err *e)
{
    double cpu_s = out->cpu_s * (double)out->bytes;
    int result;

    c->read_ns = 0;
    c->is_direct = is_direct;
    c->fd = probe_open_again(fd, is_direct, e);
    if (c->fd < 0)
        return -1;
    result = probe_run_slice(c, (int)depth, seconds, out, slices, e);
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
static void give_share(struct probe_crew *c)
{
    c->end = c->next + c->n_block / PROBE_SLICES + 1;
    if (c->end > c->n_block)
        c->end = c->n_block;
}

static int read_slices(struct probe_crew *c, int fd, bool is_direct, uint32_t depth,
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
        probe_set_rate(out, &slices, &load);
    } while (c->next < c->n_block &&
             (out->seconds < o->seconds ||
              (probe_is_doubtful(out) && out->seconds < o->seconds + o->more_seconds)));
    return 0;
}

int probe_disk(int fd, bool is_direct, uint32_t depth, size_t block_bytes,
               const struct probe_options *options, struct probe_rate *out, struct err *e)
{
    struct probe_crew c = { .options = options, .fn = probe_read_blocks };
    int rc = 0;

    *out = (struct probe_rate){ 0 };
    if (probe_set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    if (c.n_block == 0)
        return 0;
    if (probe_map(&c, e) != 0)
        return -1;
    rc = read_slices(&c, fd, is_direct, depth, out, e);
    if (rc == 0 && out->bytes == 0) {
        c.takes_cached = out->is_cached = true;
        rc = read_slices(&c, fd, is_direct, depth, out, e);
    }
    probe_unmap(&c);
    return rc;
}

/* The two kinds of read that are compared. */
struct comparison {
    struct probe_crew *crew;
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
            probe_set_rate(b->rate[i], &b->slices[i], &b->load);
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
    struct probe_crew c = { .options = options, .fn = probe_read_blocks };
    struct comparison b = {
        .crew = &c, .fd = fd, .depth = depth, .takes_direct = true, .rate = { direct, buffered }
    };
    int rc;

    *direct = *buffered = (struct probe_rate){ 0 };
    if (probe_set_blocks(&c, fd, depth, block_bytes, e) != 0)
        return -1;
    if (c.n_block == 0)
        return 0;
    if (probe_map(&c, e) != 0)
        return -1;
    load_begin(&b.load, "");
    rc = compare_slices(&b, e);
    if (rc == 0 && direct->bytes == 0 && buffered->bytes == 0) {
        struct probe_rate *one = b.takes_direct ? direct : buffered;

        c.takes_cached = one->is_cached = true;
        rc = read_slices(&c, fd, b.takes_direct, depth, one, e);
    }
    probe_unmap(&c);
    return rc;
}

/* --- mapped pages --- */

#define WINDOW (2 * MIB)

/* MAP_POPULATE reads the pages as faults would, and survives a file that gets shorter. */
static void map_windows(struct probe_crew *c, int i)
{
    (void)i;
    while (!probe_is_over(c)) {
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
    struct probe_crew c = { .options = options, .fn = map_windows, .fd = fd };
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
        if (probe_run_slice(&c, 1, options->seconds / PROBE_SLICES, out, &slices, e) != 0)
            return -1;
        if (c.error != 0) {
            errno = c.error;
            return err_sys(e, "cannot map the file");
        }
        probe_set_rate(out, &slices, &load);
    }
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}
