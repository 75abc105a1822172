/*
 * bench_streamed - answers that stream weights, beside the limits of disk and memory.
 *
 *     bench_streamed [--json] MODEL BUDGET...        budgets in MiB
 *
 * Turns alternate: direct reads of the same file for 0.4 s, plain reading of memory, and
 * passes of one column for 0.6 s or more.  The limit of a pass is the larger of two times:
 * its streamed bytes at the rate of the disk, and the bytes of all its weights at the rate of
 * memory.  Disk and memory slow each other (probe_contention), so a second limit adds to the
 * larger time that part of the smaller one.  Printed are medians, and the medians of limit /
 * pass over all turns, because a shared disk changes by the second.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/machine/probe.h"
#include "engine/memwall.h"
#include "engine/stream/shape.h"
#include "tests/bench/turns.h"

enum { TURNS = 9, PASS_MAX = 64 };
#define PASS_SECONDS 0.6

struct turns {
    double disk[TURNS], memory[TURNS]; /* bytes a second */
    double pass[TURNS], stall[TURNS];  /* seconds */
    double share[TURNS];               /* limit / pass */
    double both[TURNS];                /* the limit of both together / pass */
    double contention[TURNS];
    double bytes; /* streamed in a pass */
};

static int probe(int fd, int turn, int n_thread, struct turns *t, struct err *e)
{
    const struct probe_options disk = { .seconds = 0.4,
                                        .buffer_bytes = 64 * MIB,
                                        .first = (uint64_t)turn * 613 };
    const struct probe_options both = { .seconds = 0.6,
                                        .buffer_bytes = 128 * MIB,
                                        .first = (uint64_t)turn * 613 + 301 };
    const struct probe_options memory = { .seconds = 0.1, .buffer_bytes = 512 * MIB };
    struct probe_rate d, m;

    if (probe_disk(fd, true, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, &disk, &d, e) != 0 ||
        probe_memory(n_thread, &memory, &m, e) != 0 ||
        probe_contention(fd, true, SHAPE_PROBE_DEPTH, SHAPE_PROBE_BYTES, n_thread, &both,
                         &t->contention[turn], e) != 0)
        return -1;
    t->disk[turn] = d.bytes_s;
    t->memory[turn] = m.bytes_s;
    return 0;
}

/* The first pass finds a ring that was filled while the probes ran, and is not counted. */
static int passes(struct mw_session *s, int turn, struct turns *t, struct err *e)
{
    struct mw_sample *sample = calloc(1, sizeof *sample);
    double start = 0, stall = 0, bytes = 0;
    uint32_t id = 5;
    int n = -1;

    if (sample == NULL)
        return err_memory(e, "the figures");
    while (n < PASS_MAX && (n < 1 || clock_s() - start < PASS_SECONDS)) {
        if (mw_session_eval(s, &id, 1, ignore_row, NULL, e) != 0) {
            free(sample);
            return -1;
        }
        if (++n == 0) {
            start = clock_s();
            continue;
        }
        mw_session_sample(s, sample);
        stall += (double)sample->pass.stall_ns / 1e9;
        bytes += (double)sample->pass.bytes_pass;
    }
    t->pass[turn] = (clock_s() - start) / n;
    t->stall[turn] = stall / n;
    t->bytes = bytes / n;
    free(sample);
    return 0;
}

static void print(const char *path, unsigned mib, struct turns *t, uint64_t hot, bool json)
{
    double share = median(t->share, TURNS), pass = median(t->pass, TURNS);
    double stall = median(t->stall, TURNS) / pass;
    double contention = median(t->contention, TURNS), both = median(t->both, TURNS);
    double disk = median(t->disk, TURNS), memory = median(t->memory, TURNS);

    if (json)
        printf("{\"model\":\"%s\",\"budget_bytes\":%llu,\"hot_bytes\":%llu,"
               "\"streamed_bytes\":%.0f,\"disk_bytes_s\":%.0f,\"memory_bytes_s\":%.0f,"
               "\"ms\":%.2f,\"stall\":%.3f,\"of_limit\":%.3f,\"contention\":%.2f,"
               "\"of_both\":%.3f}\n",
               path, (unsigned long long)mib * MIB, (unsigned long long)hot, t->bytes, disk,
               memory, 1e3 * pass, stall, share, contention, both);
    else
        printf(
            "%s, %u MiB: %.3f of %.3f GB streamed, disk %.2f GB/s, memory %.1f GB/s, "
            "%.1f ms a pass, stalls %.0f %%, %.0f %% of the limit, %.0f %% with a contention "
            "of %.2f\n",
            path, mib, t->bytes / 1e9, (double)hot / 1e9, disk / 1e9, memory / 1e9, 1e3 * pass,
            100 * stall, 100 * share, 100 * both, contention);
    fflush(stdout);
}

static int bench(struct mw_model *m, const char *path, unsigned mib, bool json, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), rc;
    struct mw_session *s = NULL;
    struct mw_model_info info;
    struct mw_options o;
    struct turns t;

    mw_model_info(m, &info);
    mw_options_default(&o);
    o.memory_bytes = (uint64_t)mib * MIB;
    o.n_ctx = 2048;
    o.n_thread = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (fd < 0)
        return err_sys(e, "cannot open the file for direct reads");
    rc = mw_session_open(&s, m, &o, e);
    for (int turn = 0; rc == 0 && turn < TURNS; turn++) {
        rc = probe(fd, turn, o.n_thread, &t, e);
        if (rc == 0)
            rc = passes(s, turn, &t, e);
        if (rc == 0) {
            double disk = t.bytes / t.disk[turn], all = (double)info.hot_bytes / t.memory[turn];
            double more = disk > all ? disk : all, less = disk > all ? all : disk;

            t.share[turn] = more / t.pass[turn];
            t.both[turn] = (more + t.contention[turn] * less) / t.pass[turn];
        }
    }
    if (rc == 0)
        print(path, mib, &t, info.hot_bytes, json);
    mw_session_close(s);
    close(fd);
    return rc;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    struct err e = ERR_INIT;
    struct mw_model *m;
    int rc;

    if (argc < 3 + json) {
        fprintf(stderr, "use: bench_streamed [--json] MODEL MIB...\n");
        return 2;
    }
    rc = mw_model_open(&m, argv[1 + json], &e);
    for (int i = 2 + json; rc == 0 && i < argc; i++)
        rc = bench(m, argv[1 + json], (unsigned)strtoul(argv[i], NULL, 10), json, &e);
    mw_model_close(m);
    return rc == 0 ? 0 : bench_fail("bench_streamed", &e);
}
