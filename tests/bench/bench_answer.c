/*
 * Measure the cost of an answer outside the forward pass: sampling and telemetry.
 *
 *   bench_answer MODEL [ROUNDS]
 *
 * Sampling is measured as CPU time per row, for the settings below.  The values of a row are
 * spread like those of a text model: a few are high and very many are low.
 *
 * For telemetry, tokens are decoded in turns without and with the recorder (all lines, to
 * /dev/null) and the sampler of the kernel's figures.  The session pins its model if memory
 * allows.
 *
 * On a busy machine: chrt -f 1 bench_answer MODEL.
 */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/memwall.h"
#include "tests/bench/turns.h"

#define ROWS   40
#define ROUNDS 12 /* per way, at most */
#define TOKENS 20 /* per round */

struct row {
    const char *name;
    struct mw_sampling s;
};

static const struct row rows[] = {
    { "greedy", { .temp = 0 } },
    { "greedy, penalty", { .temp = 0, .repeat_penalty = 1.1f, .repeat_last = 64 } },
    { "top-k 64, top-p 0.95", { .temp = 1, .top_k = 64, .top_p = 0.95f } },
    { "top-k 40, top-p, min-p, penalty",
      { .temp = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .repeat_penalty = 1.1f,
        .repeat_last = 64 } },
    { "top-p 0.95 of all", { .temp = 1, .top_p = 0.95f } },
    { "all", { .temp = 1, .top_p = 1 } },
};

static uint64_t seed = 88172645463325252u;

static float uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (float)(seed >> 40) / 16777216.0f;
}

static void fill(float *logits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        logits[i] = 3 * sqrtf(-2 * logf(uniform() + 1e-9f)) * cosf(6.2831853f * uniform()) - 8;
    for (int i = 0; i < 20; i++)
        logits[(uint32_t)(uniform() * (float)n) % n] = 5 + 5 * uniform();
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* *dearest: seconds per row with the slowest setting. */
static int bench_sampling(struct mw_model *m, double *dearest, struct err *e)
{
    static uint32_t before[256];
    struct mw_model_info info;
    float *made, *logits;

    mw_model_info(m, &info);
    made = malloc(info.n_vocab * sizeof *made);
    logits = malloc(info.n_vocab * sizeof *logits);
    for (size_t i = 0; i < 256; i++)
        before[i] = (uint32_t)(uniform() * (float)info.n_vocab);
    printf("sampling over %u logits, CPU ms a row\n", info.n_vocab);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mw_sampler *p;
        double sum = 0, most = 0;

        if (mw_sampler_new(&p, m, &rows[i].s, e) != 0)
            return -1;
        for (int k = 0; k < ROWS; k++) {
            double start, took;

            fill(made, info.n_vocab);
            memcpy(logits, made, info.n_vocab * sizeof *made);
            start = cpu_s();
            mw_sampler_next(p, logits, before, 256);
            took = cpu_s() - start;
            sum += took;
            most = took > most ? took : most;
        }
        printf("  %-32s mean %6.3f, most %6.3f\n", rows[i].name, sum / ROWS * 1e3, most * 1e3);
        *dearest = sum / ROWS > *dearest ? sum / ROWS : *dearest;
        mw_sampler_free(p);
    }
    free(made);
    free(logits);
    return 0;
}

struct watched {
    struct mw_session *s;
    struct mw_watch *w;
};

static void take(void *ctx, struct mw_sample *out)
{
    struct watched *w = ctx;

    mw_session_sample(w->s, out);
    mw_watch_complete(w->w, out);
}

/* Measure the wall and CPU seconds of one more token. */
static int one_token(struct mw_session *s, double *wall, double *cpu, struct err *e)
{
    static const uint32_t id = 5;
    double from;

    *cpu = cpu_s();
    from = clock_s();
    if (mw_session_eval(s, &id, 1, NULL, NULL, e) != 0)
        return -1;
    *wall = clock_s() - from;
    *cpu = cpu_s() - *cpu;
    return 0;
}

static int bench_watching(struct mw_model *m, int n_round, double sampling_s, struct err *e)
{
    static const uint32_t ids[4] = { 2, 3, 4, 5 };
    static double wall[2][ROUNDS * TOKENS], cpu[2][ROUNDS * TOKENS];
    struct watched w = { 0 };
    struct mw_options o;
    size_t n[2] = { 0, 0 };
    double with, without;

    mw_options_default(&o);
    o.n_ctx = 2048;
    if (mw_session_open(&w.s, m, &o, e) != 0 ||
        mw_session_eval(w.s, ids, 4, NULL, NULL, e) != 0)
        return -1;
    for (int round = 0; round < 2 * n_round; round++) {
        int is_watched = round & 1;
        struct mw_recorder *r = NULL;
        double unused;

        if (is_watched && (mw_watch_new(&w.w, m, e) != 0 ||
                           mw_recorder_open(&r, open("/dev/null", O_WRONLY | O_CLOEXEC),
                                            "/dev/null", false, take, &w, e) != 0))
            return -1;
        if (one_token(w.s, &unused, &unused, e) != 0) /* the change itself does not count */
            return -1;
        for (int i = 0; i < TOKENS; i++, n[is_watched]++)
            if (one_token(w.s, &wall[is_watched][n[is_watched]],
                          &cpu[is_watched][n[is_watched]], e) != 0)
                return -1;
        if (is_watched) {
            mw_recorder_close(r, e);
            mw_watch_free(w.w);
        }
    }
    without = median(wall[0], n[0]);
    with = median(wall[1], n[1]);
    printf("a token, medians of %zu and %zu by turns: %.3f ms, watched %.3f ms (%+.2f %%)\n",
           n[0], n[1], without * 1e3, with * 1e3, (with / without - 1) * 100);
    without = median(cpu[0], n[0]);
    with = median(cpu[1], n[1]);
    printf("its CPU time:                       %.3f ms, watched %.3f ms (%+.2f %%)\n",
           without * 1e3, with * 1e3, (with / without - 1) * 100);
    printf("the dearest sampling is %.2f %% of a token\n",
           sampling_s / median(wall[0], n[0]) * 100);
    mw_session_close(w.s);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct mw_model *m;
    double dearest = 0;
    int n_round = argc > 2 ? atoi(argv[2]) : ROUNDS;
    char text[600];

    if (argc < 2 || n_round < 1 || n_round > ROUNDS) {
        fprintf(stderr, "usage: bench_answer MODEL [ROUNDS]\n");
        return 2;
    }
    if (mw_model_open(&m, argv[1], &e) == 0 && bench_sampling(m, &dearest, &e) == 0 &&
        bench_watching(m, n_round, dearest, &e) == 0) {
        mw_model_close(m);
        return 0;
    }
    err_text(&e, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
