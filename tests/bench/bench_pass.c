/*
 * bench_pass - a pass of several columns beside a pass of one, with all weights in memory.
 *
 *     bench_pass [--json] MODEL...
 *
 * A pass of one column is a token of an answer.  Both kinds of passes go through all layers and
 * compute the logits of all their columns.  They take turns; the medians are printed, and the
 * ratio of the medians.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/memwall.h"
#include "tests/bench/turns.h"

enum { MOST_COLS = 16, TURNS = 15, N_CTX = 768 };

static const uint32_t widths[] = { 1, 2, 4, 8, MOST_COLS };
enum { N_WIDTH = sizeof widths / sizeof widths[0] };

static int ignore_row(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    (void)ctx;
    (void)pos;
    (void)logits;
    (void)e;
    return 0;
}

static int measure(struct mw_session *s, double t[N_WIDTH][TURNS], struct err *e)
{
    uint32_t ids[MOST_COLS];

    for (uint32_t i = 0; i < MOST_COLS; i++)
        ids[i] = 5 + 7 * i;
    for (int turn = -1; turn < TURNS; turn++)
        for (int w = 0; w < N_WIDTH; w++) {
            double start = clock_s();

            if (mw_session_eval(s, ids, widths[w], ignore_row, NULL, e) != 0)
                return -1;
            if (turn >= 0)
                t[w][turn] = clock_s() - start;
        }
    return 0;
}

static void print(const char *path, const double *ms, bool json)
{
    if (json)
        printf("{\"model\":\"%s\"", path);
    else
        printf("%s, ms of a pass and times a pass of 1\n", path);
    for (int w = 0; w < N_WIDTH; w++)
        if (json)
            printf(",\"ms_%u\":%.2f", widths[w], ms[w]);
        else
            printf("%4u columns %8.1f %6.2f\n", widths[w], ms[w], ms[w] / ms[0]);
    if (json)
        printf("}\n");
    fflush(stdout);
}

static int bench(const char *path, bool json, struct err *e)
{
    struct mw_session *s = NULL;
    double t[N_WIDTH][TURNS], ms[N_WIDTH];
    struct mw_options o;
    struct mw_model *m;
    int rc = -1;

    mw_options_default(&o);
    o.memory_bytes = 20 * GIB;
    o.n_ctx = N_CTX;
    o.n_logit_row = MOST_COLS;
    if (mw_model_open(&m, path, e) != 0)
        return -1;
    if (mw_session_open(&s, m, &o, e) == 0 && measure(s, t, e) == 0) {
        for (int w = 0; w < N_WIDTH; w++)
            ms[w] = 1e3 * median(t[w], TURNS);
        print(path, ms, json);
        rc = 0;
    }
    mw_session_close(s);
    mw_model_close(m);
    return rc;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    struct err e = ERR_INIT;
    char text[600];

    for (int i = 1 + json; i < argc; i++)
        if (bench(argv[i], json, &e) != 0) {
            err_text(&e, text, sizeof text);
            fprintf(stderr, "bench_pass: %s\n", text);
            return 1;
        }
    return 0;
}
