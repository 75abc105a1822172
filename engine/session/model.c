#include "config.h"

#include "engine/session/model.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/compute/half.h"
#include "engine/compute/kernels.h"
#include "engine/format/arch.h"
#include "engine/format/draft_head.h"
#include "engine/format/known.h"
#include "engine/format/value_rules.h"
#include "engine/machine/proc.h"
#include "engine/machine/program.h"
#include "engine/model/rope.h"
#include "engine/plan/plan.h"
#include "engine/session/draft_model.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/plan_input.h"
#include "engine/session/tried.h"
#include "engine/stream/read_now.h"
#include "engine/stream/stream.h"
#include "engine/text/tokenizer_kept.h"

/* Returns the weight type of most bytes in the layers.  Tables of embeddings do not count: in
 * small models they are larger than the layers, and often have a better type. */
static const char *main_type(const struct catalogue *c)
{
    uint64_t bytes[TYPE_COUNT] = { 0 };
    uint32_t best = 0;

    for (uint32_t i = 0; i < c->n_tensor; i++)
        if (c->tensors[i].is_text && strncmp(c->tensors[i].name, "blk.", 4) == 0)
            bytes[c->tensors[i].type] += c->tensors[i].bytes;
    for (uint32_t i = 1; i < TYPE_COUNT; i++)
        if (bytes[i] > bytes[best])
            best = i;
    return tensor_type_info(best)->name;
}

static int make_spans(struct mw_model *m, struct err *e)
{
    m->n_span = desc_spans(m->desc, NULL);
    m->spans = calloc(m->n_span, sizeof m->spans[0]);
    m->span_types = calloc(m->n_span, sizeof m->span_types[0]);
    if (m->spans == NULL || m->span_types == NULL)
        return err_memory(e, "the schedule of %u spans", m->n_span);
    desc_spans(m->desc, m->spans);
    desc_span_types(m->desc, m->span_types);
    for (uint32_t i = 0; i < m->n_span; i++) {
        uint64_t bytes = m->spans[i].row_bytes * m->spans[i].n_row;

        m->hot_bytes += bytes;
        if (m->spans[i].in_prompt)
            m->prompt_bytes += bytes;
    }
    return 0;
}

/* No header takes more: gguf.h and names.h limit keys, tensors and names. */
#define HEADER_MOST (128 * MIB)
/* Usual headers take less, and the heap of the program allows for that.  So a budget that is
 * too small for anything is refused by the plan, with its table. */
#define HEADER_LEAST (4 * MIB)

/* The part of a budget that the header may take.  While it is read, nothing else is allocated.
 */
static uint64_t header_limit(const struct mw_model *m, uint64_t memory_bytes,
                             uint64_t caller_bytes)
{
    uint64_t others = program_bytes(m, caller_bytes) + plan_reserve_bytes(memory_bytes, 1);

    return memory_bytes > others + HEADER_LEAST ? memory_bytes - others : HEADER_LEAST;
}

/* Resident bytes of this process, and the part that files have; 0: unknown. */
static uint64_t resident_now(uint64_t *files)
{
    struct proc proc;
    struct proc_self self;

    proc_open(&proc, "");
    proc_read_self(&proc, &self);
    proc_close(&proc);
    *files = self.rss_file.why_not == NULL ? self.rss_file.value : 0;
    return self.rss.why_not == NULL ? self.rss.value : 0;
}

/* Replace the error of the reader that met the limit by one that names the bytes needed. */
static int refuse_header(const struct mw_model *m, const char *path, uint64_t memory_bytes,
                         uint64_t caller_bytes, struct err *e)
{
    uint64_t need = m->header.expected, budget;
    char needs[16], has[16], fits[16];

    if (need <= m->header.limit) /* unknown: assume the most that format/ ever keeps */
        need = HEADER_MOST;
    budget = need + program_bytes(m, caller_bytes);
    budget += plan_reserve_bytes(budget, 1);
    err_set(e, ERR_BUDGET,
            "its header needs up to %s beside the program, the budget is %s. It would fit with a "
            "budget of %s",
            units_size_up(needs, sizeof needs, need),
            units_size_down(has, sizeof has, memory_bytes),
            units_size_up(fits, sizeof fits, budget));
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

int mw_model_open(struct mw_model **out, const char *path, struct err *e)
{
    return mw_model_open_within(out, path, 0, 0, e);
}

/* Make a model without a catalogue.  Returns NULL with *e. */
static struct mw_model *new_model(uint64_t memory_bytes, uint64_t caller_bytes, struct err *e)
{
    struct mw_model *m = calloc(1, sizeof *m);
    struct mw_machine machine;

    if (m == NULL) {
        err_memory(e, "the model");
        return NULL;
    }
    mw_machine_read(&machine);
    m->n_core = machine.n_core;
    m->n_efficient = machine.n_efficient;
    m->n_low_power = machine.n_low_power;
    pthread_mutex_init(&m->lock, NULL);
    m->limits = limits_new();
    m->anchors = anchors_new();
    m->tried = tried_new();
    if (m->limits == NULL || m->anchors == NULL || m->tried == NULL) {
        mw_model_close(m);
        err_memory(e, "the model");
        return NULL;
    }
    m->file_bytes = program_file_bytes();
    if (memory_bytes > 0)
        m->header.limit = header_limit(m, memory_bytes, caller_bytes);
    return m;
}

/* Describe a model with a catalogue.  Closes m if that fails. */
static int describe_model(struct mw_model **out, struct mw_model *m, struct err *e)
{
    struct err why_not = ERR_INIT;

    if (desc_new(&m->desc, m->catalogue, e) != 0 || make_spans(m, e) != 0) {
        mw_model_close(m);
        return -1;
    }
    /* A model whose head cannot be used answers without it. */
    m->no_head = (struct err)ERR_INIT;
    if (mw_model_has_file(m) && draft_head_is_in(m->catalogue) &&
        model_head_open(&m->head, m, NULL, &why_not) != 0)
        m->no_head = why_not;
#ifdef HAVE_MALLOC_TRIM
    malloc_trim(0); /* reading the header took more than it keeps */
#endif
    m->program_bytes = resident_now(&m->program_files_bytes);
    *out = m;
    return 0;
}

int mw_model_open_within(struct mw_model **out, const char *path, uint64_t memory_bytes,
                         uint64_t caller_bytes, struct err *e)
{
    if (model_open_headers(out, path, memory_bytes, caller_bytes, e) != 0)
        return -1;
    if (packing_sample(*out, e) != 0) {
        mw_model_close(*out);
        *out = NULL;
        return -1;
    }
    return 0;
}

int model_open_headers(struct mw_model **out, const char *path, uint64_t memory_bytes,
                       uint64_t caller_bytes, struct err *e)
{
    struct mw_model *m = new_model(memory_bytes, caller_bytes, e);

    *out = NULL;
    if (m == NULL)
        return -1;
    if (catalogue_open_within(&m->catalogue, path, &m->header, e) != 0) {
        if (e->code == ERR_BUDGET)
            refuse_header(m, path, memory_bytes, caller_bytes, e);
        mw_model_close(m);
        return -1;
    }
    gguf_unknown_notice(m->catalogue, m->key_notice, sizeof m->key_notice);
    vocab_source(m->catalogue, &m->vocab_from);
    /* A model without a vocabulary can still be evaluated from ids. */
    m->no_vocab = (struct err)ERR_INIT;
    m->has_vocab = vocab_info(m->catalogue, &m->vocab, &m->no_vocab) == 0;
    return describe_model(out, m, e);
}

int mw_model_open_known(struct mw_model **out, const struct mw_known *known, size_t i,
                        const char *label, struct err *e)
{
    const struct known_model *k = &known->model[i];
    struct mw_model *m = new_model(0, 0, e);

    *out = NULL;
    if (m == NULL)
        return -1;
    if (known_catalogue(&m->catalogue, k, label, &m->header, e) != 0) {
        mw_model_close(m);
        return -1;
    }
    m->vocab = k->vocab;
    m->vocab.n_token = m->catalogue->hparams.n_vocab;
    m->has_vocab = true;
    return describe_model(out, m, e);
}

bool mw_model_has_file(const struct mw_model *m)
{
    return m->catalogue->files[0].fd >= 0;
}

int model_needs_file(const struct mw_model *m, struct err *e)
{
    if (mw_model_has_file(m))
        return 0;
    return err_set(e, ERR_ARGUMENT, "only the shape of %s is known; there is no file to read",
                   m->catalogue->hparams.name);
}

void mw_model_close(struct mw_model *m)
{
    struct err ignored = ERR_INIT;

    if (m == NULL)
        return;
    draft_models_close(m);
    model_mirror_close(m);
    limits_let_keep(m);
    limits_free(m->limits);
    anchors_free(m->anchors);
    tried_free(m->tried);
    if (m->keep_tokenizer != NULL && m->tokenizer != NULL)
        (void)tokenizer_keep(m->tokenizer, &m->vocab_from, m->keep_tokenizer, &ignored);
    free(m->keep_tokenizer);
    tokenizer_close(m->tokenizer);
    arena_unmap(&m->resident);
    if (m->has_blas)
        blas_close();
    model_heads_close(m);
    desc_free(m->desc);
    free(m->spans);
    free(m->packed_spans);
    free(m->span_types);
    catalogue_close(m->catalogue);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Called with the lock.  A file may have changed since its identity was stored; then nothing is
 * kept. */
static void build_tokenizer(struct mw_model *m, struct err *e)
{
    struct tokenizer *t;

    if (model_needs_file(m, e) != 0 || tokenizer_open(&t, m->catalogue, e) != 0) {
        catalogue_note_form(m->catalogue, e);
        return;
    }
    m->tokenizer = t;
    if (!vocab_source_is(m->catalogue, &m->vocab_from)) {
        free(m->keep_tokenizer);
        m->keep_tokenizer = NULL;
    }
}

const struct tokenizer *model_tokenizer(struct mw_model *m, const struct cancel *cancel,
                                        struct err *e)
{
    const struct tokenizer *t;

    pthread_mutex_lock(&m->lock);
    m->catalogue->cancel = cancel;
    if (m->tokenizer == NULL)
        build_tokenizer(m, e);
    m->catalogue->cancel = NULL;
    t = m->tokenizer;
    pthread_mutex_unlock(&m->lock);
    return t;
}

int mw_model_check_text(struct mw_model *m, struct err *e)
{
    const struct header_room *room = &m->header;

    if (!m->has_vocab) {
        *e = m->no_vocab;
        catalogue_note_form(m->catalogue, e);
        return -1;
    }
    if (!mw_model_has_file(m) ||
        (room->limit > 0 &&
         room->used + tokenizer_bytes_bound(&m->vocab) + tokenizer_build_bytes(&m->vocab) >
             room->limit))
        return 0;
    return model_tokenizer(m, NULL, e) != NULL ? 0 : -1;
}

void model_keep_tokenizer(struct mw_model *m, const char *folder)
{
    struct err ignored = ERR_INIT;
    struct tokenizer *t;

    pthread_mutex_lock(&m->lock);
    if (m->tokenizer == NULL && m->keep_tokenizer == NULL && m->has_vocab &&
        vocab_source_is(m->catalogue, &m->vocab_from)) {
        if (tokenizer_kept_open(&t, &m->vocab_from, &m->vocab, folder, &ignored) == 0)
            m->tokenizer = t;
        else
            m->keep_tokenizer = strdup(folder);
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- small weights --- */

#define LOAD_VALUES                                                                            \
    ((uint64_t)1 << 18) /* decoded at once; a multiple of the block of every type */

struct vec_load {
    const struct mw_model *m;
    const struct catalogue *c;
    struct arena *to;
    struct read_now reads;
    unsigned char *raw; /* encoded, of at most LOAD_VALUES values */
};

static int check_finite(const struct catalogue *c, const struct vec *v, struct err *e)
{
    const struct tensor_info *t = v->tensor;

    for (uint64_t i = 0; i < v->n; i++) {
        if (isfinite(v->w[i]))
            continue;
        err_set(e, ERR_FORMAT, "value %llu is %g; the file is damaged",
                (unsigned long long)(v->first + i), (double)v->w[i]);
        return err_at(e, c->files[t->file].path, t->offset, t->name);
    }
    return 0;
}

/* Integers are numbers of experts. */
static int check_experts(const struct catalogue *c, const struct vec *v, struct err *e)
{
    const struct tensor_info *t = v->tensor;
    uint32_t n = c->hparams.n_expert;

    for (uint64_t i = 0; i < v->n; i++) {
        if (v->w[i] >= 0 && v->w[i] < (float)n)
            continue;
        err_set(e, ERR_FORMAT, "value %llu is %.0f; expected an expert from 0 to %u",
                (unsigned long long)i, (double)v->w[i], n - 1);
        return err_at(e, c->files[t->file].path, t->offset, t->name);
    }
    return 0;
}

static void to_floats(enum tensor_type type, const unsigned char *raw, uint64_t n, float *w)
{
    switch ((int)type) {
    case TYPE_F8_E8M0:
        for (uint64_t i = 0; i < n; i++)
            w[i] = 2 * half_of_e8m0(raw[i]);
        return;
    case TYPE_I32:
        for (uint64_t i = 0; i < n; i++)
            w[i] = (float)(int32_t)load_u32(raw + i * 4);
        return;
    case TYPE_I64:
        for (uint64_t i = 0; i < n; i++)
            w[i] = (float)(int64_t)(load_u32(raw + i * 8) |
                                    (uint64_t)load_u32(raw + i * 8 + 4) << 32);
        return;
    default: kernels_best()->dequant(type, raw, w, n);
    }
}

/* n values of a type from the first on, which is at `at`. */
static int load_values(struct vec_load *load, enum tensor_type type, struct tensor_piece at,
                       uint64_t first, uint64_t n, float *w, struct err *e)
{
    for (uint64_t done = 0; done < n;) {
        uint64_t now = n - done < LOAD_VALUES ? n - done : LOAD_VALUES;

        if (catalogue_go_on(load->m->catalogue, e) != 0 ||
            read_now(&load->reads, at.file, at.offset + tensor_row_bytes(type, first + done),
                     tensor_row_bytes(type, now), load->raw, e) != 0)
            return -1;
        to_floats(type, load->raw, now, w + done);
        done += now;
    }
    return 0;
}

/* The scales of each matrix of v->tensor. */
static int load_scales(struct vec_load *load, const struct vec *v, float *w, struct err *e)
{
    const struct tensor_scales *s = v->tensor->scales;
    const uint64_t n = (uint64_t)s->n_row * s->n_col;

    for (uint32_t i = 0; i < s->n_piece; i++)
        if (load_values(load, s->type, s->pieces[i], 0, n, w + i * n, e) != 0)
            return -1;
    for (uint64_t i = 0; s->is_divisor && i < v->n; i++)
        w[i] = 1 / w[i];
    return 0;
}

static int load_vec(void *ctx, struct vec *v, struct err *e)
{
    struct vec_load *load = ctx;
    const struct tensor_info *t = v->tensor;
    float *w;

    if (t == NULL)
        return 0;
    w = arena_take(load->to, v->n * sizeof *w, e);
    if (w == NULL)
        return -1;
    v->w = w;
    if (v->is_scales)
        return load_scales(load, v, w, e) == 0 ? check_finite(load->c, v, e) : -1;
    if (load_values(load, t->type, (struct tensor_piece){ t->file, t->offset }, v->first, v->n, w,
                    e) != 0)
        return -1;
    for (uint64_t i = 0; t->add_one && i < v->n; i++)
        w[i] += 1;
    for (uint64_t i = 0; t->is_log && i < v->n; i++)
        w[i] = -expf(w[i]);
    if (t->type == TYPE_I32 || t->type == TYPE_I64)
        return check_experts(load->c, v, e);
    return check_finite(load->c, v, e);
}

int model_load_vecs(struct mw_model *m, struct model_desc *d, struct arena *to, uint32_t *n_user,
                    const struct cancel *cancel, struct err *e)
{
    struct vec_load load = { .m = m, .c = d->catalogue, .to = to };
    int rc = 0;

    pthread_mutex_lock(&m->lock);
    m->catalogue->cancel = cancel;
    if (to->base == NULL) {
        rc = arena_map(to, "pinned", desc_resident_bytes(d), true, e);
        if (rc == 0)
            rc = read_now_open(&load.reads, load.c, e);
        if (rc == 0) {
            load.raw = malloc(LOAD_VALUES * sizeof(int64_t));
            rc = load.raw != NULL ? desc_each_vec(d, load_vec, &load, e)
                                  : err_memory(e, "a buffer for small weights");
        }
        read_now_close(&load.reads);
        if (rc != 0)
            arena_unmap(to);
    }
    if (rc == 0)
        ++*n_user;
    m->catalogue->cancel = NULL;
    pthread_mutex_unlock(&m->lock);
    free(load.raw);
    return rc;
}

void model_unload_vecs(struct mw_model *m, struct arena *from, uint32_t *n_user)
{
    pthread_mutex_lock(&m->lock);
    if (--*n_user == 0)
        arena_unmap(from);
    pthread_mutex_unlock(&m->lock);
}

int model_load_small(struct mw_model *m, const struct cancel *cancel, struct err *e)
{
    return model_load_vecs(m, m->desc, &m->resident, &m->n_user, cancel, e);
}

void model_unload_small(struct mw_model *m)
{
    model_unload_vecs(m, &m->resident, &m->n_user);
}

void mw_model_info(const struct mw_model *m, struct mw_model_info *out)
{
    const struct catalogue *c = m->catalogue;

    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", c->hparams.name);
    snprintf(out->arch, sizeof out->arch, "%s", c->hparams.arch->name);
    snprintf(out->type, sizeof out->type, "%s", main_type(c));
    out->n_layer = c->hparams.n_layer;
    out->n_embd = c->hparams.n_embd;
    out->n_vocab = c->hparams.n_vocab;
    out->n_ctx_train = c->hparams.n_ctx_train;
    for (uint32_t i = 0; i < c->n_tensor; i++)
        if (c->tensors[i].is_text)
            out->n_param += tensor_rows(&c->tensors[i]) * c->tensors[i].ne[0];
    for (uint32_t i = 0; i < c->n_file; i++)
        out->file_bytes += c->files[i].size;
    out->hot_bytes = m->hot_bytes;
}

bool mw_rotates_alike(const struct mw_model *m, const struct mw_options *a,
                      const struct mw_options *b)
{
    const struct hparams *hp = &m->catalogue->hparams;
    uint32_t n = options_ctx(m, a), then = options_ctx(m, b);

    return rope_is_long(&hp->rope, n) == rope_is_long(&hp->rope, then) &&
           rope_is_long(&hp->rope_swa, n) == rope_is_long(&hp->rope_swa, then);
}
