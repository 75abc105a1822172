/* See packing.h. */
#include "config.h"

#include "engine/session/packing.h"

#include <stdlib.h>
#include <string.h>

#include "engine/compute/interleave.h"
#include "engine/compute/kernels.h"
#include "engine/compute/packed.h"
#include "engine/session/options.h"
#include "engine/session/product_choice.h"
#include "engine/stream/read_now.h"

#define SPARE_PART 128  /* room of 1/128 byte for each weight in addition */
#define TRUST      8192 /* weights of all matrices that count as much as those of one */

/* BF16 weights of n_k values per row that a span would be packed from, or 0. */
static size_t packable(const struct mw_model *m, uint32_t span)
{
    enum tensor_type type = m->span_types[span];
    uint64_t n_k = m->spans[span].row_bytes / sizeof(uint16_t);

    return type == TYPE_BF16 && m->spans[span].n_row > 0 && !m->spans[span].stays_as_in_file &&
                   packed_takes((size_t)n_k)
               ? (size_t)n_k
               : 0;
}

/* Count weights in the middle of a span, from the beginning of a row on. */
static int count_span(const struct mw_model *m, uint32_t i, struct read_now *reads,
                      struct packed_count *c, struct err *e)
{
    const struct stream_span *p = &m->spans[i];
    uint64_t offset = p->offset + p->n_row / 2 * p->row_bytes;
    uint64_t left = p->offset + p->n_row * p->row_bytes - offset;
    uint64_t bytes = left < PACKING_SAMPLE ? left : PACKING_SAMPLE;
    unsigned char sample[PACKING_SAMPLE];

    if (read_now(reads, p->file, offset, bytes, sample, e) != 0)
        return -1;
    packed_add(c, sample, (size_t)bytes / sizeof(uint16_t));
    return 0;
}

/* Patch bytes for each weight, of one matrix that was counted and of all. */
static double patch_rate(const struct packed_count *one, const struct packed_count *all)
{
    double pooled = (double)all->patch_bytes / (double)all->n_weight;

    return ((double)one->patch_bytes + pooled * TRUST) / ((double)one->n_weight + TRUST);
}

static void give_form(struct stream_span *p, size_t n_k, const struct packed_count *one,
                      const struct packed_count *all)
{
    double patches = 2 * patch_rate(one, all) * (double)n_k;
    uint64_t laid = packed_row_least(n_k) + (uint64_t)patches + n_k / SPARE_PART + 1;

    if (laid > p->row_bytes / 10 * 9)
        return;
    p->form = FORM_PACKED;
    p->laid_row_bytes = laid;
}

static int count_all(struct mw_model *m, struct packed_count *counts, struct packed_count *all,
                     struct err *e)
{
    struct read_now reads;
    int rc = read_now_open(&reads, m->catalogue, e);

    for (uint32_t i = 0; rc == 0 && i < m->n_span; i++) {
        if (packable(m, i) == 0)
            continue;
        rc = count_span(m, i, &reads, &counts[i], e);
        all->n_weight += counts[i].n_weight;
        all->patch_bytes += counts[i].patch_bytes;
    }
    read_now_close(&reads);
    return rc;
}

static int make_spans(struct mw_model *m, const struct packed_count *counts,
                      const struct packed_count *all, struct err *e)
{
    m->packed_spans = calloc(m->n_span, sizeof m->packed_spans[0]);
    if (m->packed_spans == NULL)
        return err_memory(e, "the schedule of %u spans", m->n_span);
    memcpy(m->packed_spans, m->spans, m->n_span * sizeof m->spans[0]);
    for (uint32_t i = 0; i < m->n_span; i++)
        if (packable(m, i) > 0)
            give_form(&m->packed_spans[i], packable(m, i), &counts[i], all);
    return 0;
}

int packing_sample(struct mw_model *m, struct err *e)
{
    struct packed_count *counts = calloc(m->n_span > 0 ? m->n_span : 1, sizeof *counts);
    struct packed_count all = { 0 };
    int rc;

    if (counts == NULL)
        return err_memory(e, "samples of %u matrices", m->n_span);
    rc = count_all(m, counts, &all, e);
    if (rc == 0 && all.n_weight > 0)
        rc = make_spans(m, counts, &all, e);
    free(counts);
    return rc;
}

static uint64_t saved_bytes(const struct mw_model *m)
{
    uint64_t saved = 0;

    for (uint32_t i = 0; i < m->n_span; i++) {
        const struct stream_span *p = &m->packed_spans[i];

        if (p->form == FORM_PACKED)
            saved += p->n_row * (p->row_bytes - p->laid_row_bytes);
    }
    return saved;
}

void mw_model_keep_rows(struct mw_model *m, const char *type, bool keeps)
{
    for (int t = 0; t < TYPE_COUNT; t++)
        if (strcmp(tensor_type_info((enum tensor_type)t)->name, type) == 0)
            m->keeps_rows[t] = keeps;
}

bool packing_interleaves(const struct packing *p, enum tensor_type type)
{
    return p->interleaves[type];
}

static struct stream_span span_of(const struct mw_model *m, const struct packing *p, uint32_t i)
{
    struct stream_span span = p->packs ? m->packed_spans[i] : m->spans[i];

    span.type = (uint32_t)m->span_types[i];
    if (packing_interleaves(p, m->span_types[i]) && !span.stays_as_in_file &&
        span.n_row >= INTERLEAVED_ROWS) {
        span.form = FORM_INTERLEAVED;
        span.scratch_bytes = INTERLEAVED_ROWS * span.row_bytes;
    }
    return span;
}

void packing_spans(const struct mw_model *m, const struct packing *p, struct stream_span *spans)
{
    for (uint32_t i = 0; i < m->n_span; i++)
        spans[i] = span_of(m, p, i);
}

static uint64_t landing_bytes(const struct mw_model *m, const struct packing *p,
                              const struct stream_shape *shape)
{
    uint64_t most[2] = { 0 }; /* a landing, and scratch memory */

    for (uint32_t i = 0; i < m->n_span; i++) {
        struct stream_span span = span_of(m, p, i);
        uint64_t bytes = stream_landing_bytes(&span, 1, shape);
        uint64_t *of = &most[span.scratch_bytes > 0];

        *of = bytes > *of ? bytes : *of;
    }
    return most[0] + most[1];
}

void packing_choose(const struct mw_model *m, const struct mw_options *o, struct packing *out)
{
    const struct packing packed = { .packs = true };
    struct err ignored = ERR_INIT;
    const struct kernels *kernels = kernels_of(o, &ignored);
    struct stream_shape shape;
    uint64_t saved;

    *out = (struct packing){ 0 };
    if (o->pack == MW_PACK_NEVER || o->io == MW_IO_MMAP)
        return;
    shape_make(&shape, m->spans, m->n_span, options_block(o));
    saved = m->packed_spans != NULL ? saved_bytes(m) : 0;
    if (saved > 0 &&
        (o->pack == MW_PACK_ALWAYS ||
         saved > landing_bytes(m, &packed, &shape) + 2 * shape.slot_bytes)) {
        out->packs = true;
        out->saved_bytes = saved;
    }
    for (int t = 0; t < TYPE_COUNT; t++)
        out->interleaves[t] = !o->exact && kernels != NULL && kernels->mul_interleaved != NULL &&
                              interleave_takes((enum tensor_type)t) && !m->keeps_rows[t];
    out->landing_bytes = landing_bytes(m, out, &shape);
}

bool packing_lay(const struct stream_span *span, uint64_t n_row, const void *from, void *to,
                 size_t room, void *scratch)
{
    if (span->form == FORM_INTERLEAVED) {
        interleave((enum tensor_type)span->type, (size_t)span->row_bytes, (size_t)n_row, from,
                   to, scratch);
        return true;
    }
    return packed_make(from, (size_t)n_row, (size_t)span->row_bytes / sizeof(uint16_t), to,
                       room) > 0;
}
