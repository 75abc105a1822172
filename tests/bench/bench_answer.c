/*
 * What an answer costs beside the pass: sampling a row of logits, and being watched.
 *
 *   bench_answer MODEL
 *
 * Sampling: CPU time of a row, for the settings below; the row's values are spread as a text
 * model's are, a few high and very many low.  Watching: CPU time a second of the recorder
 * (all lines, to /dev/null) and of the sampler of the kernel's figures, on a session that
 * holds its model; with so many tokens a second it is what each token pays.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/memwall.h"

#define ROWS 40

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

static int bench_sampling(struct mw_model *m, struct err *e)
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

static int bench_watching(struct mw_model *m, struct err *e)
{
    static const uint32_t ids[4] = { 2, 3, 4, 5 };
    struct watched w = { 0 };
    struct mw_recorder *r;
    struct mw_options o;
    double before, start;

    mw_options_default(&o);
    o.memory_bytes = (uint64_t)256 << 20;
    if (mw_session_open(&w.s, m, &o, e) != 0 ||
        mw_session_eval(w.s, ids, 4, NULL, NULL, e) != 0)
        return -1;
    sleep(2); /* what is read ahead has come */
    before = cpu_s();
    sleep(5);
    before = (cpu_s() - before) / 5;
    if (mw_watch_new(&w.w, m, e) != 0 || mw_recorder_open(&r, "/dev/null", take, &w, e) != 0)
        return -1;
    start = cpu_s();
    sleep(10);
    printf("watching: %.2f ms of CPU a second (without: %.2f)\n", (cpu_s() - start) / 10 * 1e3,
           before * 1e3);
    mw_recorder_close(r, e);
    mw_watch_free(w.w);
    mw_session_close(w.s);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct mw_model *m;
    char text[600];

    if (argc != 2) {
        fprintf(stderr, "usage: bench_answer MODEL\n");
        return 2;
    }
    if (mw_model_open(&m, argv[1], &e) == 0 && bench_sampling(m, &e) == 0 &&
        bench_watching(m, &e) == 0) {
        mw_model_close(m);
        return 0;
    }
    err_text(&e, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
