/* See way_rates.h. */
#include "config.h"

#include "engine/model/way_rates.h"

#include "engine/base/units.h"
#include "engine/machine/load.h"
#include "engine/machine/slices.h"
#include "engine/model/trial.h"

#define COLUMN_PIECE (2 * MIB)
#define CHUNK_PIECE  (256 * KIB)
#define MOST_COLS    WAYS_PANEL_MOST
#define ROUND_BYTES  (32 * MIB) /* of weights, at most, for a way in a round */

_Static_assert(MW_WAY_CHOICES == WAY_CHOICES, "the ways of all choices are kept");
_Static_assert(WAY_ROUNDS <= SLICES_MAX, "all rounds count");

/* A way while it is compared. */
struct tally {
    struct slices rates, gains; /* a gain: its rate relative to that of the make */
    int n_faster; /* rounds in which it was faster by the margin */
};

static void compare_round(enum way_choice c, way_rate_fn *fn, void *ctx, struct tally *t)
{
    const int make = ways_of_make(c);
    const double make_rate = fn(ctx, c, make);

    slices_add(&t[make].rates, make_rate);
    for (int i = 0; i < ways_count(c); i++) {
        double rate;

        if (i == make)
            continue;
        rate = fn(ctx, c, i);
        slices_add(&t[i].rates, rate);
        slices_add(&t[i].gains, rate / make_rate);
        t[i].n_faster += rate >= WAY_MARGIN * make_rate;
    }
}

static int best_of(enum way_choice c, const struct tally *t)
{
    int best = ways_of_make(c);
    double most = 0;

    for (int i = 0; i < ways_count(c); i++) {
        const double gain = slices_rate(&t[i].gains);

        if (t[i].n_faster >= WAY_ROUNDS - 1 && gain > most) {
            best = i;
            most = gain;
        }
    }
    return best;
}

void way_rates_compare(const struct kernels *k, way_rate_fn *fn, void *ctx, struct way_rates *out)
{
    struct tally tally[WAY_CHOICES][WAYS_MOST] = { 0 };

    *out = (struct way_rates){ 0 };
    for (int round = 0; round < WAY_ROUNDS; round++)
        for (int c = 0; c < WAY_CHOICES; c++)
            if (ways_matter((enum way_choice)c, k))
                compare_round((enum way_choice)c, fn, ctx, tally[c]);
    for (int c = 0; c < WAY_CHOICES; c++) {
        for (int i = 0; i < ways_count((enum way_choice)c); i++)
            out->bytes_s[c][i] = slices_rate(&tally[c][i].rates);
        out->best[c] = best_of((enum way_choice)c, tally[c]);
    }
}

/* --- measuring --- */

struct measure {
    struct trial trial;
    double seconds; /* at most, of a round of a way */
};

/* The products by which a choice is made. */
struct products {
    enum tensor_type type;
    enum weight_form form;
    size_t n_col[2]; /* the times of both count; 0: one only */
    size_t piece;    /* bytes of weights at once */
};

static const struct products products[WAY_CHOICES] = {
    [WAY_FILE_5] = { TYPE_Q4_0, FORM_FILE, { 1 }, COLUMN_PIECE },
    [WAY_FILE_6] = { TYPE_Q6_K, FORM_FILE, { 1 }, COLUMN_PIECE },
    [WAY_FILE_8] = { TYPE_Q8_0, FORM_FILE, { 1 }, COLUMN_PIECE },
    [WAY_INTERLEAVED_5] = { TYPE_Q4_0, FORM_INTERLEAVED, { 1 }, COLUMN_PIECE },
    [WAY_INTERLEAVED_6] = { TYPE_Q6_K, FORM_INTERLEAVED, { 1 }, COLUMN_PIECE },
    [WAY_INTERLEAVED_8] = { TYPE_Q8_0, FORM_INTERLEAVED, { 1 }, COLUMN_PIECE },
    [WAY_FEW_COLS] = { TYPE_Q4_0, FORM_FILE, { 3, 6 }, CHUNK_PIECE },
    [WAY_PANEL_COLS] = { TYPE_Q4_0, FORM_FILE, { MOST_COLS }, CHUNK_PIECE },
    [WAY_LANE_COLS] = { TYPE_Q4_0, FORM_INTERLEAVED, { MOST_COLS }, CHUNK_PIECE },
    [WAY_AMX_COLS] = { TYPE_Q4_0, FORM_INTERLEAVED, { 24, 48 }, CHUNK_PIECE },
};

/* Seconds for a byte of weights.  The weights follow those of the way before, so that caches are
 * dropped only once in a buffer: that takes as long as reading it. */
static double byte_s(struct measure *m, const struct products *p, size_t n_col)
{
    const struct trial_product one = { p->type, p->form, false, n_col, p->piece };
    const size_t at = m->trial.at;
    double took = 0, bytes = 0;

    trial_set(&m->trial, &one);
    m->trial.at = at;
    while (took < m->seconds && bytes < ROUND_BYTES) {
        took += trial_next(&m->trial);
        bytes += (double)(m->trial.n_row * m->trial.row_bytes);
    }
    return took / bytes;
}

static double measure_round(void *ctx, enum way_choice c, int way)
{
    const struct products *p = &products[c];
    struct measure *m = ctx;
    const int before = ways_chosen(c);
    double s;

    ways_choose(c, way);
    s = byte_s(m, p, p->n_col[0]);
    if (p->n_col[1] > 0)
        s += byte_s(m, p, p->n_col[1]);
    ways_choose(c, before);
    return 1 / s;
}

int way_rates_measure(const struct rates_options *o, struct way_rates *out, struct err *e)
{
    struct measure m = { .seconds = o->seconds / WAY_ROUNDS };
    struct load load;
    int rc;

    *out = (struct way_rates){ 0 };
    if (o->buffer_bytes < RATES_LEAST_BUFFER)
        return err_set(e, ERR_BUDGET, "measuring ways of products needs %llu bytes, not %llu",
                       (unsigned long long)RATES_LEAST_BUFFER,
                       (unsigned long long)o->buffer_bytes);
    rc = trial_open(&m.trial, o->kernels, o->n_thread, o->buffer_bytes,
                    CHUNK_PIECE / tensor_row_bytes(TYPE_Q4_0, TRIAL_N_K) * MOST_COLS, MOST_COLS, e);
    if (rc == 0) {
        load_begin(&load, "");
        way_rates_compare(o->kernels, measure_round, &m, out);
        out->is_doubtful = load_of_others(&load, "") > PROBE_LOAD;
    }
    trial_close(&m.trial);
    return rc;
}

void way_rates_settle(const struct way_rates *r, int64_t now_s, struct mw_ways *w)
{
    bool is_new = false;

    for (int c = 0; c < WAY_CHOICES; c++) {
        const uint32_t make = (uint32_t)ways_of_make((enum way_choice)c);
        const uint32_t before = w->is_known ? w->way[c] : make;

        w->way[c] = r->is_doubtful ? before : (uint32_t)r->best[c];
        is_new |= w->way[c] != make && w->way[c] != before;
    }
    w->is_known = true;
    w->is_doubtful = r->is_doubtful || is_new;
    w->measured_s = now_s;
}
