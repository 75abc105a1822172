/* See thread_rates.h. */
#include "config.h"

#include "engine/model/thread_rates.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/machine/load.h"
#include "engine/machine/machine.h"
#include "engine/machine/slices.h"
#include "engine/model/trial.h"

#define COLUMN_PIECE (2 * MIB)
#define CHUNK_PIECE  (256 * KIB)

enum { PER_CORE, ONE_FEWER, PER_CPU, N_COUNT };

/* A number of threads while it is measured. */
struct count {
    int n_thread; /* 0: it is not compared */
    struct slices slices; /* tokens per second, of a weight */
    bool is_faster; /* than one per core, in every turn */
};

/* Seconds for a weight and a column. */
static double weight_s(struct trial *t, const struct rates_options *o, size_t n_col)
{
    const struct trial_product p = {
        .type = TYPE_Q4_0,
        .form = t->kernels->mul_interleaved != NULL ? FORM_INTERLEAVED : FORM_FILE,
        .n_col = n_col,
        .piece = n_col == 1 ? COLUMN_PIECE : CHUNK_PIECE,
    };
    double took = 0, n = 0;

    trial_set(t, &p);
    (void)trial_next(t); /* the threads have begun then */
    while (took < o->seconds / PROBE_SLICES) {
        took += trial_next(t);
        n += (double)(t->n_row * TRIAL_N_K * n_col);
    }
    return took / n;
}

static int measure_turn(struct trial *t, const struct rates_options *o, struct count *counts,
                        struct err *e)
{
    double core_s = 0;

    for (int i = 0; i < N_COUNT; i++) {
        double s;

        if (counts[i].n_thread == 0)
            continue;
        if (pool_set_threads(t->pool, counts[i].n_thread, e) != 0)
            return -1;
        s = weight_s(t, o, 1) + weight_s(t, o, RATES_COLUMNS);
        slices_add(&counts[i].slices, 1 / s);
        if (i == PER_CORE)
            core_s = s;
        counts[i].is_faster &= s < core_s;
    }
    return 0;
}

static double token_s(const struct count *c, double core_s)
{
    double s = c->n_thread > 0 ? 1 / slices_rate(&c->slices) : 0;

    return c->is_faster || !(s > 0) ? s : fmax(s, core_s);
}

static int measure_counts(struct trial *t, const struct rates_options *o,
                          struct count *counts, struct mw_threads *out, struct err *e)
{
    struct load load;

    load_begin(&load, "");
    for (int turn = 0; turn < PROBE_SLICES; turn++)
        if (measure_turn(t, o, counts, e) != 0)
            return -1;
    out->core_s = 1 / slices_rate(&counts[PER_CORE].slices);
    out->fewer_s = token_s(&counts[ONE_FEWER], out->core_s);
    out->cpu_s = token_s(&counts[PER_CPU], out->core_s);
    out->is_doubtful = load_of_others(&load, "") > PROBE_LOAD;
    return 0;
}

int thread_rates_measure(const struct rates_options *o, struct mw_threads *t, struct err *e)
{
    const size_t n_row = COLUMN_PIECE / tensor_row_bytes(TYPE_Q4_0, TRIAL_N_K);
    struct count counts[N_COUNT] = {
        [PER_CORE] = { .n_thread = t->n_core },
        [ONE_FEWER] = { .n_thread = t->n_core - 1, .is_faster = true },
        [PER_CPU] = { .n_thread = t->n_cpu > t->n_core ? t->n_cpu : 0, .is_faster = true },
    };
    struct trial trial = { 0 };
    int rc;

    if (counts[PER_CPU].n_thread > MW_THREADS_MOST)
        counts[PER_CPU].n_thread = 0;
    if (t->n_core > MW_THREADS_MOST ||
        (counts[ONE_FEWER].n_thread == 0 && counts[PER_CPU].n_thread == 0))
        return 0;
    rc = trial_open(&trial, o->kernels, t->n_core, o->buffer_bytes, n_row * RATES_COLUMNS,
                    RATES_COLUMNS, e);
    if (rc == 0)
        rc = measure_counts(&trial, o, counts, t, e);
    trial_close(&trial);
    return rc;
}
