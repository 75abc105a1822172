/*
 * bench_resume - a chat's keys and values from a KV file beside evaluating its tokens, and what is
 * predicted for both.
 *
 *     bench_resume MODEL MIB FOLDER TOKENS...
 *
 * For each number of tokens, a session gets random keys and values, evaluates a chunk after them,
 * and is saved; a new session reads the file and evaluates one token.  Evaluating all of it would
 * take hours: the time of a chunk grows in a line with its position, so it is that of a first and
 * a last chunk, on average, for each.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/memwall.h"
#include "engine/session/prompt_cost.h"
#include "engine/session/saved_kv.h"
#include "tests/bench/filled.h"
#include "tests/bench/turns.h"

static const struct saved_kv_call usual = { .max_bytes = 0 };

/* Seconds to evaluate n tokens after those of the session; negative with *e. */
static double evaluate(struct mw_session *s, uint32_t n, struct err *e)
{
    uint32_t *ids = malloc(n * sizeof *ids);
    double start = clock_s();
    int rc = ids != NULL ? 0 : err_memory(e, "ids");

    for (uint32_t i = 0; i < n && rc == 0; i++)
        ids[i] = 100 + i % 900;
    if (rc == 0)
        rc = mw_session_eval(s, ids, n, NULL, NULL, e);
    free(ids);
    return rc == 0 ? clock_s() - start : -1;
}

/* Seconds that evaluating n tokens is predicted to take, from the limits alone. */
static double predicted(struct mw_model *m, const struct mw_options *o, uint32_t n)
{
    struct mw_cost cost = { .n_token = n };
    struct err ignored = ERR_INIT;
    struct cost_basis *basis;
    struct plan plan;

    if (mw_plan(m, o, &plan, &ignored) != 0)
        return 0;
    basis = cost_basis_new(m, o, &plan, plan.pinned_bytes + plan.saved_bytes, 0);
    if (basis == NULL)
        return 0;
    cost_estimate(basis, &cost);
    free(basis);
    return cost.seconds;
}

/* A session with n tokens is saved; the last chunk is evaluated. */
static int save(struct mw_model *m, const struct mw_options *o, uint32_t n, const char *path,
                uint32_t *chunk, double *last_s, struct saved_kv *out, struct err *e)
{
    struct mw_session *s;
    int rc = mw_session_open(&s, m, o, e);

    if (rc != 0)
        return rc;
    *chunk = s->plan.chunk < n / 2 ? s->plan.chunk : n / 2;
    rc = filled_session(s, n - *chunk - 1, e);
    if (rc == 0 && evaluate(s, 1, e) < 0) /* the weights are in memory then */
        rc = -1;
    if (rc == 0)
        *last_s = evaluate(s, *chunk, e);
    if (rc == 0 && *last_s < 0)
        rc = -1;
    if (rc == 0)
        rc = session_save_kv(s, path, &usual, out, e);
    mw_session_close(s);
    return rc;
}

static int bench(struct mw_model *m, struct mw_options *o, uint32_t n, const char *path,
                 struct err *e)
{
    double last_s = 0, predicted_s, load_s, token_s, first_s, chunks;
    struct saved_kv saved, loaded;
    struct mw_session *s;
    uint32_t chunk, kept;

    o->n_ctx = n + 64;
    if (save(m, o, n, path, &chunk, &last_s, &saved, e) != 0 ||
        mw_session_open(&s, m, o, e) != 0)
        return -1;
    predicted_s = session_kv_read_s(s, saved.bytes);
    load_s = clock_s();
    if (session_load_kv(s, path, &usual, &loaded, e) != 0)
        return -1;
    load_s = clock_s() - load_s;
    token_s = evaluate(s, 1, e);
    if (token_s < 0 || mw_session_rewind(s, 0, &kept, e) != 0)
        return -1;
    first_s = evaluate(s, chunk, e);
    if (first_s < 0)
        return -1;
    chunks = (double)n / chunk;
    printf("| %u | %.0f MiB | %.2f s | %.2f s | %.2f s | %.1f s | %.1f s |  chunks of %u: %.2f, "
           "%.2f s\n",
           loaded.n_token, (double)saved.bytes / (double)MIB, predicted_s, load_s, token_s,
           predicted(m, o, n), chunks * (first_s + last_s) / 2, chunk, first_s, last_s);
    fflush(stdout);
    mw_session_close(s);
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct mw_limits l = { 0 };
    struct mw_options o;
    struct mw_model *m;
    char path[4096];

    if (argc < 5) {
        fprintf(stderr, "use: bench_resume MODEL MIB FOLDER TOKENS...\n");
        return 2;
    }
    mw_options_default(&o);
    o.memory_bytes = strtoull(argv[2], NULL, 10) * MIB;
    o.n_thread = (int)sysconf(_SC_NPROCESSORS_ONLN);
    o.cache_folder = argv[3];
    o.n_ctx = (uint32_t)strtoul(argv[4], NULL, 10) + 64;
    snprintf(path, sizeof path, "%s/bench_resume.kv", argv[3]);
    if (mw_model_open(&m, argv[1], &e) != 0 || mw_limits_measure(m, &o, 1, &l, &e) != 0)
        return bench_fail("bench_resume", &e);
    mw_rates_list(m, &o, &l);
    if (mw_rates_measure(&o, &l, &e) != 0)
        return bench_fail("bench_resume", &e);
    mw_model_set_limits(m, &l);
    printf("%s, %s MiB, disk %.2f GB/s\n| tokens | KV file | predicted | read in | next token | "
           "evaluated again, predicted | from two chunks |\n|---|---|---|---|---|---|---|\n",
           argv[1], argv[2], l.disk_bytes_s / 1e9);
    for (int i = 4; i < argc; i++)
        if (bench(m, &o, (uint32_t)strtoul(argv[i], NULL, 10), path, &e) != 0)
            return bench_fail("bench_resume", &e);
    unlink(path);
    mw_model_close(m);
    return 0;
}
