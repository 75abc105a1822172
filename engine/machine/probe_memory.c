/* The rate of memory, and how much the disk and memory slow each other. */
#include "config.h"

#include <sys/mman.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/base/cpu_cache.h"
#include "engine/base/units.h"
#include "engine/machine/probe_internal.h"

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
static bool meet(struct probe_crew *c, uint64_t *n_met)
{
    *n_met += (uint64_t)c->n;
    c->n_met++;
    while (c->n_met < *n_met && !c->is_ending && c->error == 0)
        sched_yield();
    return c->n_met >= *n_met;
}

/* All threads drop their parts of the buffer from the caches, and then all read them: so each
 * has its share of memory's rate, and no cache answers. */
static void sum_buffer(struct probe_crew *c, int i)
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
    } while (meet(c, &n_met) && !probe_is_over(c));
    c->is_ending = true;
}

int probe_memory(int n_thread, const struct probe_options *options, struct probe_rate *out,
                 struct err *e)
{
    struct probe_crew c = { .options = options, .fn = sum_buffer };
    struct slices slices = { 0 };
    struct load load;
    int rc;

    *out = (struct probe_rate){ 0 };
    if (n_thread < 1 || n_thread > PROBE_THREADS_MAX)
        return err_set(e, ERR_ARGUMENT, "cannot measure with %d threads", n_thread);
    c.buffer_bytes = align_down(options->buffer_bytes, PROBE_ALIGN);
    if (c.buffer_bytes / (uint64_t)n_thread < PROBE_ALIGN)
        return err_set(e, ERR_BUDGET, "measuring memory needs a buffer of more than %llu bytes",
                       (unsigned long long)options->buffer_bytes);
    if (probe_map(&c, e) != 0)
        return -1;
    load_begin(&load, "");
    do {
        rc = probe_run_slice(&c, n_thread, options->seconds / PROBE_SLICES, out, &slices, e);
        probe_set_rate(out, &slices, &load);
    } while (rc == 0 && (out->seconds < options->seconds ||
                         (probe_is_doubtful(out) &&
                          out->seconds < options->seconds + options->more_seconds)));
    probe_unmap(&c);
    return rc;
}

/* --- fresh memory --- */

int probe_fresh(const struct probe_options *options, double *bytes_s, struct err *e)
{
    const size_t bytes = (size_t)align_down(options->buffer_bytes, MIB);
    const double end_s = clock_s() + options->seconds;
    struct slices slices = { 0 };
    unsigned char *p;

    *bytes_s = 0;
    if (bytes == 0)
        return 0;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes for measuring", bytes);
    (void)madvise(p, bytes, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < bytes && (at == 0 || clock_s() < end_s); at += MIB) {
        const double start_s = clock_s();

        memory_fetch(p + at, MIB);
        memset(p + at, 1, MIB);
        slices_add(&slices, (double)MIB / (clock_s() - start_s));
    }
    *bytes_s = slices_rate(&slices);
    munmap(p, bytes);
    return 0;
}

/* --- disk and memory at once --- */

#define PAIR_ROUNDS 4
#define PAIR_MEMORY (16 * MIB) /* less is read in too short a time */

/* The disk, and memory.  Without threads, one of them does nothing. */
struct pair {
    struct probe_crew disk, memory;
    int n_disk, n_memory;
    double seconds; /* of a slice */
};

/* Bytes per second of both, in one slice.  Returns whether all threads started. */
static bool run_pair(struct pair *p, bool has_disk, bool has_memory, double *disk,
                     double *memory)
{
    struct probe_member members[2][PROBE_THREADS_MAX];
    int n_disk = has_disk ? p->n_disk : 0, n_memory = has_memory ? p->n_memory : 0;
    double start_s = clock_s(), end_s;
    int m, d;

    probe_prepare(&p->disk, n_disk, start_s + p->seconds);
    probe_prepare(&p->memory, n_memory, start_s + p->seconds);
    d = probe_start(&p->disk, members[0], n_disk);
    m = probe_start(&p->memory, members[1], n_memory);
    for (int i = 0; i < d; i++)
        pthread_join(members[0][i].thread, NULL);
    end_s = clock_s();
    *disk = probe_slice_rate(&p->disk, start_s, end_s);
    for (int i = 0; i < m; i++)
        pthread_join(members[1][i].thread, NULL);
    *memory = probe_slice_rate(&p->memory, start_s, clock_s());
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
    struct pair p = {
        .disk = { .options = options, .fn = probe_read_blocks, .is_direct = is_direct },
        .memory = { .options = options, .fn = sum_buffer },
        .n_disk = (int)depth,
        .n_memory = n_thread,
        .seconds = options->seconds / (3 * PAIR_ROUNDS)
    };
    int rc = -1;

    *out = 0;
    if (n_thread < 1 || n_thread > PROBE_THREADS_MAX)
        return err_set(e, ERR_ARGUMENT, "cannot measure with %d threads", n_thread);
    if (probe_set_blocks(&p.disk, fd, depth, block_bytes, e) != 0)
        return -1;
    p.memory.buffer_bytes =
        align_down(options->buffer_bytes - p.disk.buffer_bytes, PROBE_ALIGN);
    if (p.memory.buffer_bytes < PAIR_MEMORY || p.disk.n_block == 0)
        return 0;
    p.disk.fd = probe_open_again(fd, is_direct, e);
    if (p.disk.fd < 0)
        return -1;
    if (probe_map(&p.disk, e) == 0) {
        if (probe_map(&p.memory, e) == 0) {
            *out = measure_pair(&p);
            probe_unmap(&p.memory);
            rc = 0;
        }
        probe_unmap(&p.disk);
    }
    close(p.disk.fd);
    return rc;
}
