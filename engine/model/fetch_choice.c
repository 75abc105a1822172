/* See fetch_choice.h. */
#include "config.h"

#include "engine/model/fetch_choice.h"

#include "engine/base/units.h"
#include "engine/machine/load.h"
#include "engine/machine/slices.h"
#include "engine/model/trial.h"

#define MARGIN 1.03 /* another way has to be this much faster than that of the make */
#define PIECE  (2 * MIB)

/* The rate of a slice of a way. */
static double measure_slice(struct trial *t, const struct rates_options *o,
                            enum fetch_layout layout, int way)
{
    const struct trial_product p = {
        .type = TYPE_Q4_0,
        .form = layout == FETCH_INTERLEAVED ? FORM_INTERLEAVED : FORM_FILE,
        .n_col = 1,
        .piece = PIECE,
    };
    double took = 0, bytes = 0;

    fetch_choose(layout, way);
    trial_set(t, &p);
    while (took < o->seconds / PROBE_SLICES) {
        took += trial_next(t);
        bytes += (double)(t->n_row * t->row_bytes);
    }
    return bytes / took;
}

static void measure_ways(struct trial *t, const struct rates_options *o, struct fetch_rates *out)
{
    struct slices slices[FETCH_LAYOUTS][FETCH_WAYS] = { 0 };
    const int n_layout = t->kernels->mul_interleaved != NULL ? FETCH_LAYOUTS : FETCH_ROWS + 1;

    for (int slice = 0; slice < PROBE_SLICES; slice++)
        for (int l = 0; l < n_layout; l++) {
            const enum fetch_layout layout = (enum fetch_layout)l;
            const int before = fetch_chosen(layout);

            for (int i = 0; i < fetch_count(layout); i++)
                slices_add(&slices[l][i], measure_slice(t, o, layout, i));
            fetch_choose(layout, before);
        }
    for (int l = 0; l < n_layout; l++)
        for (int i = 0; i < fetch_count((enum fetch_layout)l); i++)
            out->bytes_s[l][i] = slices_rate(&slices[l][i]);
}

int fetch_measure(const struct rates_options *o, struct fetch_rates *out, struct err *e)
{
    struct trial t = { 0 };
    struct load load;
    int rc;

    *out = (struct fetch_rates){ 0 };
    if (o->buffer_bytes < RATES_LEAST_BUFFER)
        return err_set(e, ERR_BUDGET, "measuring ways to prefetch needs %llu bytes, not %llu",
                       (unsigned long long)RATES_LEAST_BUFFER,
                       (unsigned long long)o->buffer_bytes);
    rc = trial_open(&t, o->kernels, o->n_thread, o->buffer_bytes,
                    PIECE / tensor_row_bytes(TYPE_Q4_0, TRIAL_N_K), 1, e);
    if (rc == 0) {
        load_begin(&load, "");
        measure_ways(&t, o, out);
        out->is_doubtful = load_of_others(&load, "") > PROBE_LOAD;
    }
    trial_close(&t);
    return rc;
}

int fetch_best(const struct fetch_rates *r, enum fetch_layout layout)
{
    int make = fetch_of_make(layout), best = make;

    for (int i = 0; i < fetch_count(layout) && !r->is_doubtful; i++)
        if (r->bytes_s[layout][i] > MARGIN * r->bytes_s[layout][make] &&
            r->bytes_s[layout][i] > r->bytes_s[layout][best])
            best = i;
    return best;
}
