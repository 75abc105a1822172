#include "config.h"

#include "engine/machine/probe.h"

#include <sys/mman.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/machine/probe_internal.h"

#define STACK_BYTES ((size_t)256 << 10)

bool probe_is_over(const struct probe_crew *c)
{
    const _Atomic bool *cancelled = c->options->cancelled;

    return clock_s() >= c->end_s || c->error != 0 || (cancelled != NULL && *cancelled);
}

static void *member_main(void *arg)
{
    struct probe_member *m = arg;

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

int probe_start(struct probe_crew *c, struct probe_member *members, int n)
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

int probe_map(struct probe_crew *c, struct err *e)
{
    c->buffer = map_buffer(c->buffer_bytes, &c->mapping);
    if (c->buffer == NULL)
        return err_sys(e, "cannot map a buffer of %llu bytes for measuring",
                       (unsigned long long)c->buffer_bytes);
    return 0;
}

void probe_unmap(struct probe_crew *c)
{
    munmap(c->mapping, c->buffer_bytes + HUGE_BYTES);
}

double probe_slice_rate(const struct probe_crew *c, double start_s, double end_s)
{
    bool is_long = c->n_read >= 3 * (uint64_t)c->n;
    double from_s = is_long ? c->full_s : start_s;
    uint64_t bytes = c->bytes - (is_long ? c->full_bytes : 0);

    if (c->sum_ns > 0)
        return (double)c->bytes * c->n_at_once / ((double)c->sum_ns / 1e9);
    return end_s > from_s ? (double)bytes / (end_s - from_s) : 0;
}

/* How many of n threads have a processor at the same time. */
static int at_once(int n)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0) /* more processors than the set holds */
        return n;
    return n < CPU_COUNT(&set) ? n : CPU_COUNT(&set);
}

void probe_prepare(struct probe_crew *c, int n, double end_s)
{
    c->n = n;
    c->n_at_once = at_once(n);
    c->bytes = c->n_read = c->n_met = c->sum_ns = 0;
    c->is_ending = false;
    c->end_s = end_s;
}

int probe_run_slice(struct probe_crew *c, int n, double seconds, struct probe_rate *out,
                    struct slices *slices, struct err *e)
{
    struct probe_member members[PROBE_THREADS_MAX];
    double start_s = clock_s(), end_s;
    int started, result = 0;

    probe_prepare(c, n, start_s + seconds);
    started = probe_start(c, members, n);
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
        slices_add(slices, probe_slice_rate(c, start_s, end_s));
    if (result == 0 && c->options->cancelled != NULL && *c->options->cancelled)
        result = err_set(e, ERR_CANCELLED, "cancelled");
    return result;
}

void probe_set_rate(struct probe_rate *out, const struct slices *slices,
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
