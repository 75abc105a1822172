/*
 * bench_pass - a pass of several columns beside a pass of one, with all weights in memory.
 *
 *     bench_pass [--json] MODEL...
 *
 * A pass of one column is a token of an answer.  Both kinds of passes go through all layers and
 * compute the logits of all their columns.  They take turns, with plain reading of as much
 * memory by as many threads before each turn.  The medians are printed, times of a pass
 * relative to that of one column, and "of reading": plain reading / a pass of one column, the
 * median of the ratios of all turns.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/machine/probe.h"
#include "engine/memwall.h"
#include "tests/bench/turns.h"

enum { MOST_COLS = 16, TURNS = 15, N_CTX = 768 };

static const uint32_t widths[] = { 1, 2, 4, 8, MOST_COLS };
enum { N_WIDTH = sizeof widths / sizeof widths[0] };

/* Seconds. */
struct times {
    double pass[N_WIDTH][TURNS];
    double reading[TURNS]; /* plain reading of the weights that a token uses */
    double share[TURNS];   /* reading / a pass of one column */
};

static int measure(struct mw_session *s, uint64_t bytes, int n_thread, struct times *t,
                   struct err *e)
{
    const struct probe_options p = { .seconds = 0.1, .buffer_bytes = 512 * MIB };
    struct probe_rate memory;
    uint32_t ids[MOST_COLS];

    for (uint32_t i = 0; i < MOST_COLS; i++)
        ids[i] = 5 + 7 * i;
    for (int turn = -1; turn < TURNS; turn++) {
        /* The first pass after threads of others takes some ms longer, and is not counted. */
        if (probe_memory(n_thread, &p, &memory, e) != 0 ||
            mw_session_eval(s, ids, 1, ignore_row, NULL, e) != 0)
            return -1;
        for (int w = 0; w < N_WIDTH; w++) {
            double start = clock_s();

            if (mw_session_eval(s, ids, widths[w], ignore_row, NULL, e) != 0)
                return -1;
            if (turn >= 0)
                t->pass[w][turn] = clock_s() - start;
        }
        if (turn >= 0) {
            t->reading[turn] = (double)bytes / memory.bytes_s;
            t->share[turn] = t->reading[turn] / t->pass[0][turn];
        }
    }
    return 0;
}

/* Sorts t. */
static void print(const char *path, struct times *t, uint64_t bytes, bool json)
{
    double share = median(t->share, TURNS), rate = (double)bytes / median(t->reading, TURNS);
    double first = 0;

    if (json)
        printf("{\"model\":\"%s\",\"bytes\":%llu,\"reading_bytes_s\":%.0f,\"of_reading\":%.3f",
               path, (unsigned long long)bytes, rate, share);
    else
        printf("%s, %.3f GB a token, plain reading %.1f GB/s, one column %.0f %% of reading\n"
               "ms of a pass and times a pass of 1\n",
               path, (double)bytes / 1e9, rate / 1e9, 100 * share);
    for (int w = 0; w < N_WIDTH; w++) {
        double ms = 1e3 * median(t->pass[w], TURNS);

        if (w == 0)
            first = ms;
        if (json)
            printf(",\"ms_%u\":%.2f", widths[w], ms);
        else
            printf("%4u columns %8.1f %6.2f\n", widths[w], ms, ms / first);
    }
    if (json)
        printf("}\n");
    fflush(stdout);
}

/* Returns the bytes of the weights that a token uses; BF16 is packed in memory. */
static uint64_t bytes_in_memory(const struct mw_model *m, const struct mw_session *s)
{
    struct mw_model_info info;
    struct plan plan;

    mw_model_info(m, &info);
    mw_session_plan(s, &plan);
    return plan.pinned_bytes < info.hot_bytes ? plan.pinned_bytes : info.hot_bytes;
}

static int bench(const char *path, bool json, struct err *e)
{
    struct mw_session *s = NULL;
    struct mw_options o;
    struct times t;
    struct mw_model *m;
    uint64_t bytes;
    int rc = -1;

    mw_options_default(&o);
    o.memory_bytes = 20 * GIB;
    o.n_ctx = N_CTX;
    o.n_logit_row = MOST_COLS;
    o.n_thread = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (mw_model_open(&m, path, e) != 0)
        return -1;
    if (mw_session_open(&s, m, &o, e) == 0) {
        bytes = bytes_in_memory(m, s);
        rc = measure(s, bytes, o.n_thread, &t, e);
        if (rc == 0)
            print(path, &t, bytes, json);
    }
    mw_session_close(s);
    mw_model_close(m);
    return rc;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    struct err e = ERR_INIT;

    for (int i = 1 + json; i < argc; i++)
        if (bench(argv[i], json, &e) != 0)
            return bench_fail("bench_pass", &e);
    return 0;
}
