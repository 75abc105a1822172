/* See rates.h. */
#include "config.h"

#include "engine/model/rates.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/machine/load.h"
#include "engine/machine/slices.h"
#include "engine/model/trial.h"

#define COLUMN_PIECE (2 * MIB)   /* of weights: a block of the stream has 1 to 4 MiB */
#define CHUNK_PIECE  (256 * KIB)

/* --- what a model uses --- */

struct list {
    struct type_rate of[TYPE_COUNT];
};

/* n_used: how many experts a token uses; 0: the matrix does not belong to an expert. */
static void count(struct list *list, enum tensor_type type, double n_row, double n_k,
                  uint32_t n_used, bool in_prompt)
{
    struct type_rate *r = &list->of[type];
    double bytes = n_row * (double)tensor_row_bytes(type, (uint64_t)n_k);

    if (n_used > 0)
        r->expert_bytes[!in_prompt] += n_used * bytes;
    else
        r->token_bytes[!in_prompt] += bytes;
    if (in_prompt && n_used > 0)
        r->expert_flops += n_used * 2 * n_row * n_k;
    else if (in_prompt)
        r->token_flops += 2 * n_row * n_k;
}

static void count_experts(struct list *list, const struct model_desc *d,
                          const struct experts_desc *x, bool in_prompt)
{
    const struct tensor_info *inner = experts_inner(x);
    double n_inner = x->gate_up != NULL || x->gate != NULL ? 2 : 1;

    if (x->n_expert == 0)
        return;
    count(list, inner->type, n_inner * x->n_ff, d->n_embd, x->n_used, in_prompt);
    count(list, x->down->type, d->n_embd, x->n_ff, x->n_used, in_prompt);
}

static void count_all(struct list *list, const struct model_desc *d)
{
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        uint32_t n_prompt = l <= d->last_kv_layer ? desc_n_prompt_mat(d, l) : 0;

        for (uint32_t i = 0; i < N_LAYER_MAT; i++) {
            const struct mat *m = &layer->mats[i];

            if (m->tensor != NULL)
                count(list, m->tensor->type, m->n_row, m->n_k, 0, i < n_prompt);
        }
        count_experts(list, d, &layer->experts, n_prompt == N_LAYER_MAT);
    }
    for (uint32_t i = 0; i < N_END_MAT; i++) {
        const struct mat *m = &d->end_mats[i];

        if (m->tensor != NULL)
            count(list, m->tensor->type, m->n_row, m->n_k, 0, false);
    }
}

static double all_bytes(const struct type_rate *r)
{
    return r->token_bytes[0] + r->token_bytes[1] + r->expert_bytes[0] + r->expert_bytes[1];
}

static void add_type(struct type_rate *to, const struct type_rate *r)
{
    for (int part = 0; part < 2; part++) {
        to->token_bytes[part] += r->token_bytes[part];
        to->expert_bytes[part] += r->expert_bytes[part];
    }
    to->token_flops += r->token_flops;
    to->expert_flops += r->expert_flops;
}

static int by_bytes(const void *a, const void *b)
{
    const struct type_rate *x = a, *y = b;

    if (all_bytes(x) > all_bytes(y) || all_bytes(x) < all_bytes(y))
        return all_bytes(x) > all_bytes(y) ? -1 : 1;
    return (x->type > y->type) - (x->type < y->type);
}

uint32_t rates_list(const struct model_desc *d, struct type_rate *rates, uint32_t most,
                    struct type_rate *others)
{
    struct list list = { 0 };
    double all = 0;
    uint32_t n = 0;

    for (int t = 0; t < TYPE_COUNT; t++)
        list.of[t].type = (enum tensor_type)t;
    count_all(&list, d);
    qsort(list.of, TYPE_COUNT, sizeof list.of[0], by_bytes);
    for (int t = 0; t < TYPE_COUNT; t++)
        all += all_bytes(&list.of[t]);
    *others = (struct type_rate){ 0 };
    for (int t = 0; t < TYPE_COUNT; t++) {
        if (n < most && all_bytes(&list.of[t]) > RATES_LEAST_SHARE * all) {
            rates[n++] = list.of[t];
        } else {
            add_type(others, &list.of[t]);
        }
    }
    return n;
}

/* --- measuring --- */

static struct trial_product product_of(const struct type_rate *r, bool exact, size_t n_col)
{
    return (struct trial_product){ .type = r->type,
                                   .form = r->form,
                                   .exact = exact,
                                   .n_col = n_col,
                                   .piece = n_col < RATES_COLUMNS ? COLUMN_PIECE : CHUNK_PIECE };
}

/* The rates of a type. */
enum { RATE_COLUMN, RATE_FEW, RATE_CHUNK, N_RATE };

static const size_t rate_columns[N_RATE] = { 1, RATES_FEW, RATES_COLUMNS };

static struct probe_rate *rate_at(struct type_rate *r, int which)
{
    return which == RATE_COLUMN ? &r->column : which == RATE_FEW ? &r->few : &r->chunk;
}

/* One of them while it is measured. */
struct measured {
    struct slices slices;
    struct load load;
};

/* Add a slice.  `unit`: bytes or operations of a product. */
static void add_slice(struct trial *t, const struct rates_options *o, double unit,
                      struct measured *m, struct probe_rate *out)
{
    double took = 0;
    uint64_t n = 0;

    (void)trial_next(t);
    do {
        took += trial_next(t);
        n++;
    } while (took < o->seconds / PROBE_SLICES);
    out->seconds += took;
    /* A round is a small part of a product, unless the threads were disturbed. */
    took -= fmin((double)n * o->round_s, took / 4);
    slices_add(&m->slices, (double)n * unit / took);
    out->bytes_s = slices_rate(&m->slices);
    out->spread = slices_spread(&m->slices);
    out->load = load_of_others(&m->load, "");
}

/* Whether a rate needs another slice. */
static bool wants_slice(const struct rates_options *o, const struct probe_rate *r)
{
    return r->seconds < o->seconds ||
           (probe_is_doubtful(r) && r->seconds < o->seconds + o->more_seconds);
}

/* Add a slice to each rate that needs one.  Returns whether there was any. */
static bool measure_once(struct trial *t, const struct rates_options *o,
                         struct type_rate *rates, uint32_t n, struct measured *m)
{
    bool was_any = false;

    for (uint32_t i = 0; i < n * N_RATE; i++) {
        struct type_rate *r = &rates[i / N_RATE];
        const int which = (int)(i % N_RATE);
        const size_t n_col = rate_columns[which];
        const struct trial_product p = product_of(r, o->exact, n_col);

        if (!wants_slice(o, rate_at(r, which)))
            continue;
        trial_set(t, &p);
        add_slice(t, o,
                  which == RATE_CHUNK ? 2.0 * (double)(t->n_row * TRIAL_N_K * n_col)
                                      : (double)(t->n_row * t->row_bytes),
                  &m[i], rate_at(r, which));
        was_any = true;
    }
    return was_any;
}

/* Measure all types in turn, slice by slice: a moment in which another program, or another
 * guest of the host, takes the processors then spoils one slice of each instead of a whole
 * rate. */
static void measure_types(struct trial *t, const struct rates_options *o,
                          struct type_rate *rates, uint32_t n)
{
    struct measured m[N_RATE * TYPE_COUNT] = { 0 };

    for (uint32_t i = 0; i < n * N_RATE; i++) {
        *rate_at(&rates[i / N_RATE], (int)(i % N_RATE)) = (struct probe_rate){ 0 };
        load_begin(&m[i].load, "");
    }
    while (measure_once(t, o, rates, n, m))
        ;
}

/* The largest number of results of a product. */
static size_t most_results(struct trial *t, const struct rates_options *o,
                           const struct type_rate *rates, uint32_t n, size_t n_col)
{
    size_t most = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct trial_product p = product_of(&rates[i], o->exact, n_col);

        trial_set(t, &p);
        most = t->n_row > most ? t->n_row : most;
    }
    return most * n_col;
}

int rates_measure(const struct rates_options *o, struct type_rate *rates, uint32_t n,
                  struct err *e)
{
    struct trial t = { 0 };
    size_t most = 0;
    int rc;

    if (n == 0)
        return 0;
    if (o->buffer_bytes < RATES_LEAST_BUFFER)
        return err_set(
            e, ERR_BUDGET, "measuring products needs a buffer of %llu bytes, not %llu",
            (unsigned long long)RATES_LEAST_BUFFER, (unsigned long long)o->buffer_bytes);
    for (int which = 0; which < N_RATE; which++) {
        size_t n_y = most_results(&t, o, rates, n, rate_columns[which]);

        most = n_y > most ? n_y : most;
    }
    rc = trial_open(&t, o->kernels, o->n_thread, o->buffer_bytes, most, RATES_COLUMNS, e);
    if (rc == 0)
        measure_types(&t, o, rates, n);
    trial_close(&t);
    return rc;
}
