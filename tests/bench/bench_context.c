/*
 * bench_context - answers after a long conversation whose keys and values are on the disk.
 *
 *     bench_context MODEL MIB TOKENS FOLDER [COUNT [MB_S]]
 *
 * The session gets random keys and values for TOKENS positions, because evaluating so many takes
 * hours; then COUNT tokens are evaluated one by one.  Printed are their median time, the bytes that
 * each read, the rates of direct reads of the same file before and after, and the time of the bytes
 * at the larger of these rates, as a share of the time of a token.  With MB_S, the disk is held at
 * so many MB/s, and the bound has that rate: a virtual disk whose host caches what was read lately
 * has another one each time.  It runs in a control group of MIB, and prints the largest resident
 * memory.  With a budget that keeps everything in memory, the token is what computing alone takes.
 */
#include "config.h"

#include <sys/resource.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/machine/probe.h"
#include "engine/stream/shape.h"
#include "tests/bench/filled.h"
#include "tests/bench/turns.h"

enum { COUNT = 12, COUNT_MAX = 64 };

static double disk_rate(const char *path, uint64_t first)
{
    const struct probe_options o = { .seconds = 1, .buffer_bytes = 64 * MIB, .first = first };
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    struct err e = ERR_INIT;
    struct probe_rate rate = { 0 };

    if (fd < 0 || probe_disk(fd, true, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &o, &rate, &e) != 0)
        (void)bench_fail("bench_context", &e);
    close(fd);
    return rate.bytes_s;
}

struct tokens_of {
    double s[COUNT_MAX], stall[COUNT_MAX];
    double bytes, kv_bytes; /* of the last */
};

static int tokens(struct mw_session *s, int n, struct tokens_of *out, struct err *e)
{
    struct mw_sample *sample = calloc(1, sizeof *sample);
    uint32_t id = 7;

    if (sample == NULL)
        return err_memory(e, "the figures");
    for (int i = -1; i < n; i++) { /* the first one finds a ring that is full */
        double start = clock_s();

        if (mw_session_eval(s, &id, 1, NULL, NULL, e) != 0) {
            free(sample);
            return -1;
        }
        if (i < 0)
            continue;
        out->s[i] = clock_s() - start;
        mw_session_sample(s, sample);
        out->stall[i] = (double)sample->pass.stall_ns / 1e9;
        out->bytes = (double)sample->pass.bytes_pass;
        out->kv_bytes = (double)sample->pass.kv_bytes;
    }
    free(sample);
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 5 ? atoi(argv[5]) : COUNT;
    struct mw_session *s = NULL;
    struct tokens_of t = { 0 };
    struct err e = ERR_INIT;
    struct rusage usage;
    struct mw_model *m;
    struct mw_options o;
    double before, after, filled, one;
    double held = argc > 6 ? strtod(argv[6], NULL) * 1e6 : 0;

    if (argc < 5 || n < 1 || n > COUNT_MAX) {
        fprintf(stderr, "use: bench_context MODEL MIB TOKENS FOLDER [COUNT [MB_S]]\n");
        return 2;
    }
    mw_options_default(&o);
    o.memory_bytes = strtoull(argv[2], NULL, 10) * MIB;
    o.n_ctx = (uint32_t)strtoul(argv[3], NULL, 10);
    o.n_thread = (int)sysconf(_SC_NPROCESSORS_ONLN);
    o.cache_folder = argv[4];
    o.disk_rate = (uint64_t)held;
    before = disk_rate(argv[1], 7);
    if (mw_model_open(&m, argv[1], &e) != 0 || mw_session_open(&s, m, &o, &e) != 0)
        return bench_fail("bench_context", &e);
    filled = clock_s();
    if (filled_session(s, o.n_ctx - (uint32_t)n - 1, &e) != 0)
        return bench_fail("bench_context", &e);
    filled = clock_s() - filled;
    if (tokens(s, n, &t, &e) != 0)
        return bench_fail("bench_context", &e);
    getrusage(RUSAGE_SELF, &usage);
    printf("budget %u MiB, plan %.1f MiB, largest resident %.1f MiB, %.2f GB on disk, chunk %u\n",
           (unsigned)(o.memory_bytes / MIB), (double)s->plan.sum_bytes / (double)MIB,
           (double)usage.ru_maxrss / 1024, (double)kv_disk_bytes(s->kv) / 1e9, s->plan.chunk);
    mw_session_close(s);
    mw_model_close(m);
    after = disk_rate(argv[1], 91);
    one = median(t.s, n);
    before = held > 0 ? held : before > after ? before : after;
    printf("filled in %.1f s; a token %.3f s (%.2f tok/s), stalls %.0f %%, reads %.3f GB of "
           "weights and %.3f GB of keys and values; disk %.2f GB/s: %.3f s, %.0f %%\n",
           filled, one, 1 / one, 100 * median(t.stall, n) / one, (t.bytes - t.kv_bytes) / 1e9,
           t.kv_bytes / 1e9, before / 1e9, t.bytes / before, 100 * t.bytes / before / one);
    return 0;
}
