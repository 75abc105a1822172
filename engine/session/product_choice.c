/*
 * product_choice.c - OpenBLAS or our kernels for the matrices of a prompt: measured once,
 * then chosen from the options and the measurement.
 */
#include "config.h"

#include "engine/session/product_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/machine/program.h"

const struct kernels *kernels_of(const struct mw_options *o, struct err *e)
{
    const struct kernels *k = o->isa != NULL ? kernels_by_name(o->isa) : kernels_best();

    if (k == NULL)
        err_set(e, ERR_ARGUMENT,
                "kernel set \"%s\" is not available on this CPU (see memwall --version)",
                o->isa);
    return k;
}

void mw_products_list(const struct mw_model *m, const struct mw_options *o,
                      struct mw_products *out)
{
    struct product_rate rates[MW_PRODUCTS_MAX];

    memset(out, 0, sizeof *out);
    snprintf(out->kernels, sizeof out->kernels, "%s", o->isa != NULL ? o->isa : mw_isa(0));
    out->exact = o->exact;
    out->n = products_list(m->desc, rates, MW_PRODUCTS_MAX);
    for (uint32_t i = 0; i < out->n; i++)
        snprintf(out->product[i].type, sizeof out->product[i].type, "%s",
                 tensor_type_info(rates[i].type)->name);
}

int mw_products_measure(const struct mw_model *m, const struct mw_options *o, uint32_t n_col,
                        struct mw_products *out, struct err *e)
{
    const struct kernels *kernels = kernels_of(o, e);
    struct product_rate rates[MW_PRODUCTS_MAX];
    uint32_t n = products_list(m->desc, rates, MW_PRODUCTS_MAX);
    enum blas_state blas;
    int rc;

    mw_products_list(m, o, out);
    if (kernels == NULL)
        return -1;
    blas = blas_open(1);
    out->is_blas_denied = blas == BLAS_DENIED;
    snprintf(out->blas, sizeof out->blas, "%s", blas_name());
    rc = products_measure(kernels, o->exact, blas == BLAS_OPEN, n_col, rates, n, e);
    if (blas == BLAS_OPEN)
        blas_close();
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        out->product[i].kernels_flops_s = rates[i].kernels;
        out->product[i].blas_flops_s = rates[i].blas;
    }
    return rc;
}

void mw_model_set_products(struct mw_model *m, const struct mw_products *p)
{
    m->measured = *p;
}

/* Returns the measurement of a weight type, or NULL if there is none for these options. */
static const struct mw_product *measured(const struct mw_model *m, const struct mw_options *o,
                                         const struct kernels *kernels, enum tensor_type type)
{
    const struct mw_products *p = &m->measured;

    if (strcmp(p->kernels, kernels->name) != 0 || p->exact != o->exact)
        return NULL;
    for (uint32_t i = 0; i < p->n; i++)
        if (strcmp(p->product[i].type, tensor_type_info(type)->name) == 0)
            return &p->product[i];
    return NULL;
}

static bool wins(const struct mw_product *p)
{
    return p != NULL && p->kernels_flops_s > 0 &&
           p->blas_flops_s >= PRODUCTS_MARGIN * p->kernels_flops_s;
}

/* The matrices of the layers, which a choice is made for. */
struct weighing {
    const struct mw_model *m;
    const struct mw_options *o;
    const struct kernels *kernels;
};

static void weigh(struct weighing *w, const struct mat *mat, struct product_choice *out)
{
    enum tensor_type type = mat->tensor->type;
    const struct mw_product *p = measured(w->m, w->o, w->kernels, type);
    bool by_blas = w->o->blas == MW_BLAS_ALWAYS || (w->o->blas == MW_BLAS_AUTO && wins(p));

    out->has_blas |= by_blas;
    out->products.by_blas[type] = by_blas;
    if (!by_blas || p == NULL || !(p->kernels_flops_s > 0) || !(p->blas_flops_s > 0))
        return;
    out->speedup[type] = p->blas_flops_s / p->kernels_flops_s;
    if (w->o->blas == MW_BLAS_AUTO) {
        double n = ceil(BLAS_COLS * PRODUCTS_MARGIN * p->kernels_flops_s / p->blas_flops_s);

        if (n > out->products.n_col)
            out->products.n_col = (uint32_t)n;
    }
}

/* Choose from options and rates.  Loads nothing. */
static int choose(const struct mw_model *m, const struct mw_options *o,
                  struct product_choice *out, struct err *e)
{
    struct weighing w = { .m = m, .o = o, .kernels = kernels_of(o, e) };

    *out = (struct product_choice){ 0 };
    if (w.kernels == NULL)
        return -1;
    for (uint32_t l = 0; l < m->desc->n_layer; l++)
        for (int i = 0; i < N_LAYER_MAT; i++)
            if (m->desc->layers[l].mats[i].tensor != NULL)
                weigh(&w, &m->desc->layers[l].mats[i], out);
    return 0;
}

bool mw_products_use_blas(const struct mw_model *m, const struct mw_options *o)
{
    struct product_choice choice;
    struct err ignored = ERR_INIT;

    return choose(m, o, &choice, &ignored) == 0 && choice.has_blas;
}

const char *mw_products_notice(const struct mw_model *m, const struct mw_options *o)
{
    if (!m->is_blas_denied || !mw_products_use_blas(m, o))
        return "";
    return "OpenBLAS is not used: the system refuses the addresses for its buffers (see ulimit "
           "-v and -d, and vm.overcommit_memory). The kernels multiply instead.";
}

/* Load OpenBLAS for a model, which it is closed with.  Its files then count with those of the
 * program. */
static enum blas_state load_blas(struct mw_model *m, int n_thread)
{
    enum blas_state state;

    pthread_mutex_lock(&m->lock);
    state = m->is_blas_denied ? BLAS_DENIED : blas_open(n_thread);
    if (state == BLAS_OPEN && m->has_blas)
        blas_close(); /* it is open for more threads now */
    if (state == BLAS_OPEN && !m->has_blas) {
        m->has_blas = true;
        m->file_bytes = program_file_bytes();
    }
    m->is_blas_denied = state == BLAS_DENIED; /* for good: plans and sessions must agree */
    pthread_mutex_unlock(&m->lock);
    return state;
}

int product_choice_of(struct mw_model *m, const struct mw_options *o,
                      struct product_choice *out, struct err *e)
{
    if (choose(m, o, out, e) != 0)
        return -1;
    if (!out->has_blas)
        return 0;
    switch (load_blas(m, o->n_thread)) {
    case BLAS_OPEN: return 0;
    case BLAS_DENIED: *out = (struct product_choice){ 0 }; return 0;
    case BLAS_MISSING: break;
    }
    return err_set(
        e, ERR_UNSUPPORTED,
        "OpenBLAS cannot be loaded (libopenblas.so.0); --blas never does without it");
}

void mw_products_text(const struct mw_model *m, const struct mw_options *o, char *buf, size_t n)
{
    const char *kernels = o->isa != NULL ? o->isa : mw_isa(0);
    struct product_choice choice;
    struct err ignored = ERR_INIT;
    uint32_t least;

    if (choose(m, o, &choice, &ignored) != 0 || !choice.has_blas || m->is_blas_denied) {
        snprintf(buf, n, "the %s kernels", kernels);
        return;
    }
    least = choice.products.n_col > 2 ? choice.products.n_col : 2;
    snprintf(buf, n, "%s in prompts from %u tokens on, the %s kernels otherwise",
             mw_blas_name(), least, kernels);
}
