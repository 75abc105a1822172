/* See plan_input.h. */
#include "config.h"

#include "engine/base/numbers.h"
#include "engine/session/plan_input.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/draft/depth.h"
#include "engine/draft/ngram.h"
#include "engine/format/arch.h"
#include "engine/model/forward.h"
#include "engine/model/rates.h"
#include "engine/model/steps.h"
#include "engine/plan/explain.h"
#include "engine/plan/outlook.h"
#include "engine/plan/speed.h"
#include "engine/session/anchors.h"
#include "engine/session/draft_model.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/product_choice.h"
#include "engine/session/sampler.h"
#include "engine/session/session_head.h"
#include "engine/stream/lookup.h"
#include "engine/stream/schedule.h"

/* The plan is below the rooms that define these. */
static_assert(PLAN_BLOCK_ROUNDING == 2 * SCHEDULE_ALIGN, "a block is rounded out at both ends");
static_assert(PLAN_ATTN_BLOCK == ATTN_BLOCK, "rings hold complete blocks of attention");
static_assert(SPEED_COLUMNS == RATES_COLUMNS, "the rate of a chunk has its columns");
static_assert(SPEED_LOOKUPS == LOOKUP_CELLS, "as many lookups are read at once");

/*
 * Memory of the process that neither another plan item nor the caller's bytes cover: the heap,
 * relocated pages of libraries, stacks and small files that are read.  The budget tests compare
 * the sum with the measured charge.
 */
#define PROGRAM_BYTES (9 * MIB / 2)

/*
 * Limit of each text that is held: one message or prompt, messages and files that are queued,
 * the conversation, all of it rendered.  A token seldom has more than 6 bytes, so text beyond
 * TEXT_BASE + TEXT_TOKEN_BYTES for each token of the context cannot fit the context.
 *
 * The plan counts four such texts, two more for the values of a template that is evaluated
 * (chat_template.c), and 32 bytes of ids per token (of the session, of a prompt that grows, of
 * answers).
 *
 * TEXT_FIXED does not depend on the context.  A parsed template takes at most 2 MiB and its
 * values 1 MiB.  An encoder takes 13 bytes for each byte of a run of TOKENIZER_RUN_MAX bytes.
 * It also keeps the run itself, a table of 256 KiB, and one id for each of ENCODER_BLOCK bytes.
 */
#define TEXT_BASE        (64 * KIB)
#define TEXT_TOKEN_BYTES 32
#define TEXT_FIXED       (6 * MIB)

/* A limited disk delivers one read after the other: one slot is computed, one is read, and one
 * is ready.  Two such disks need the ring of fast ones. */
#define SLOTS_LIMITED 3

#define MAX_CTX ((uint32_t)1 << 24)

uint64_t mw_text_bytes(const struct mw_model *m, const struct mw_options *o)
{
    return TEXT_BASE + (uint64_t)options_ctx(m, o) * TEXT_TOKEN_BYTES;
}

void mw_kv_token_bytes(const struct mw_model *m, const struct mw_options *o, uint64_t *global,
                       uint64_t *sliding)
{
    enum kv_type k = options_kv_type(o->kv_k), v = options_kv_type(o->kv_v);

    *global = *sliding = 0;
    for (uint32_t i = 0; i < m->desc->n_kv; i++) {
        const struct kv_spec *spec = &m->desc->kv_specs[i];

        *(spec->is_sliding ? sliding : global) += kv_token_bytes(spec, k, v);
    }
}

/* Bytes of keys and values: written for each token, and read for each position that a token
 * sees.  Layers that share keys and values read them, too. */
static void add_kv(const struct mw_model *m, const struct mw_options *o, struct plan_input *in)
{
    const struct model_desc *d = m->desc;
    enum kv_type k = options_kv_type(o->kv_k), v = options_kv_type(o->kv_v);

    mw_kv_token_bytes(m, o, &in->kv_global_token_bytes, &in->kv_sliding_token_bytes);
    in->kv_page_tokens = KV_PAGE;
    in->n_near = in->n_swa = d->hp->n_swa;
    if (d->hp->index.n_head > 0 && d->hp->n_swa == 0)
        in->n_near = d->hp->index.n_block * d->hp->index.block;
    in->recurrent_bytes = recurrent_bytes(&d->recurrent);
    in->recurrent_copy_bytes = recurrent_copy_bytes(&d->recurrent);
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        enum plan_part part = desc_n_prompt_mat(d, l) == N_LAYER_MAT ? PLAN_PROMPT : PLAN_REST;
        const struct kv_spec *spec;
        double bytes;

        if (!layer->attends)
            continue;
        spec = &d->kv_specs[layer->kv_layer];
        bytes = (double)kv_token_bytes(spec, k, v);
        if (layer->has_entries && layer->is_indexed)
            bytes *= 1 + d->hp->index.n_block / fmax(in->n_near, 1);
        *(layer->window > 0 || layer->is_indexed ? &in->kv_near_bytes[part]
                                                 : &in->kv_far_bytes[part]) += bytes;
        in->kv_index_page_bytes += kv_index_page_bytes(spec, k);
        in->kv_far_bytes[part] += (double)kv_index_page_bytes(spec, k) / KV_PAGE;
    }
}

/* --- keys and values on the disk --- */

/* How many layers read the keys and values of each layer that owns some; 0 if it has a window. */
struct readers {
    uint32_t n[MAX_LAYER];
};

static void count_readers(const struct model_desc *d, struct readers *r)
{
    *r = (struct readers){ { 0 } };
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];

        if (layer->attends && !d->kv_specs[layer->kv_layer].is_sliding)
            r->n[layer->kv_layer]++;
    }
}

/* The class of layers that are read n times: classes are the numbers of readers that there are,
 * the largest first; the last one has all that are left. */
static uint32_t class_of(const struct model_desc *d, const struct readers *r, uint32_t n)
{
    uint32_t at = 0, above = UINT32_MAX;

    for (; at + 1 < PLAN_KV_CLASSES; at++) {
        uint32_t most = 0;

        for (uint32_t i = 0; i < d->n_kv; i++)
            most = r->n[i] > most && r->n[i] < above ? r->n[i] : most;
        if (most <= n)
            return at;
        above = most;
    }
    return at;
}

uint32_t plan_input_keep(const struct mw_model *m, const struct plan *p, uint32_t kv_layer)
{
    struct readers readers;

    if (!p->has_kv_disk || m->desc->kv_specs[kv_layer].is_sliding)
        return UINT32_MAX;
    count_readers(m->desc, &readers);
    return p->kv_keep[class_of(m->desc, &readers, readers.n[kv_layer])];
}

/* Why keys and values of this model cannot go to any folder; NULL: they can. */
static const char *why_no_disk(const struct mw_model *m, const struct mw_options *o)
{
    const struct model_desc *d = m->desc;

    if (o->kv_disk == MW_KV_DISK_NEVER)
        return "--kv-disk never";
    if (o->is_private)
        return "--no-save";
    for (uint32_t i = 0; i < d->n_kv; i++)
        if (d->kv_specs[i].index_dim > 0 || d->kv_specs[i].entry_block > 0)
            return "its layers choose among all of them";
    if (o->io == MW_IO_MMAP)
        return "its weights are mapped";
    if (options_head(m, o) != HEAD_UNUSED && model_head_of(m, o)->desc->reads_trunk_kv)
        return "its draft head reads them";
    return NULL;
}

void plan_input_kv_folder(struct plan_input *in, const struct mw_options *o)
{
    uint64_t free_bytes;
    const char *why;

    if (!in->asks_kv_folder)
        return;
    why = kv_disk_why_not(o->cache_folder, &free_bytes);
    snprintf(in->kv_disk_why, sizeof in->kv_disk_why, "%s", why != NULL ? why : "");
    in->kv_disk_free = free_bytes;
}

static void add_kv_disk(const struct mw_model *m, const struct mw_options *o,
                        struct plan_input *in)
{
    const struct model_desc *d = m->desc;
    enum kv_type k = options_kv_type(o->kv_k), v = options_kv_type(o->kv_v);

    const char *why = why_no_disk(m, o);
    struct readers readers;

    in->asks_kv_folder = why == NULL;
    snprintf(in->kv_disk_why, sizeof in->kv_disk_why, "%s", why != NULL ? why : "");
    plan_input_kv_folder(in, o);
    in->kv_disk_free += m->kv_file_bytes; /* what a session has now is used again */
    in->kv_slot_bytes = kv_disk_slot_bytes(d->kv_specs, d->n_kv, k, v);
    count_readers(d, &readers);
    for (uint32_t i = 0; i < d->n_kv; i++) {
        uint32_t n = readers.n[i], at = class_of(d, &readers, n);
        struct plan_kv_class *c = &in->kv_class[at];

        if (d->kv_specs[i].is_sliding)
            continue;
        c->n_reader = c->token_bytes == 0 || n < c->n_reader ? n : c->n_reader;
        c->token_bytes += kv_token_bytes(&d->kv_specs[i], k, v);
        c->page_bytes += kv_disk_page_bytes(&d->kv_specs[i], k, v);
        if (at >= in->n_kv_class)
            in->n_kv_class = at + 1;
    }
    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct layer_desc *layer = &d->layers[l];
        enum plan_part part = desc_n_prompt_mat(d, l) == N_LAYER_MAT ? PLAN_PROMPT : PLAN_REST;

        if (!layer->attends || d->kv_specs[layer->kv_layer].is_sliding)
            continue;
        in->kv_class[class_of(d, &readers, readers.n[layer->kv_layer])].read_bytes[part] +=
            kv_disk_page_bytes(&d->kv_specs[layer->kv_layer], k, v);
    }
}

/* Everything of a pass that is not a product of weights. */
static void add_steps(const struct mw_model *m, const struct mw_options *o,
                      struct plan_input *in)
{
    const struct model_desc *d = m->desc;

    steps_count(d, o->exact, o->n_thread, in->n_block, in->steps);
    in->n_lookup = d->ple_embd != NULL ? 2 : 1;
    in->n_expert_layer = d->hp->n_expert;
    in->n_expert_used = d->hp->n_expert_used;
    for (uint32_t l = 0; l < d->n_layer; l++)
        in->n_moe_layer += d->layers[l].experts.n_expert > 0;
}

static void add_weights(const struct mw_model *m, const struct product_choice *choice,
                        struct plan_input *in)
{
    struct type_rate types[PLAN_WEIGHTS];
    uint32_t n = rates_list(m->desc, types, MW_RATE_TYPES, &types[MW_RATE_TYPES]);

    static_assert(PLAN_WEIGHTS == MW_RATE_TYPES + 1, "measured types and all others");
    types[n] = types[MW_RATE_TYPES];
    for (uint32_t i = 0; i <= n; i++) {
        struct plan_weights *w = &in->weights[i];

        for (int part = 0; part < PLAN_PARTS; part++) {
            w->token_bytes[part] = types[i].token_bytes[part];
            w->expert_bytes[part] = types[i].expert_bytes[part];
        }
        w->token_flops = types[i].token_flops;
        w->expert_flops = types[i].expert_flops;
        if (i == n)
            continue;
        snprintf(w->type, sizeof w->type, "%s", tensor_type_info(types[i].type)->name);
        w->speedup = choice->speedup[types[i].type];
    }
    in->n_weights = n + 1;
}

/* The forms of pinned weights. */
static void add_packing(const struct packing *packing, struct plan_input *in)
{
    in->saved_bytes = packing->saved_bytes;
    in->landing_bytes = packing->landing_bytes;
    for (uint32_t i = 0; i < in->n_weights; i++) {
        struct plan_weights *w = &in->weights[i];
        double bytes = w->token_bytes[PLAN_PROMPT] + w->token_bytes[PLAN_REST];

        if (w->type[0] != '\0')
            limits_laid_type(w->type, packing, w->laid_type);
        if (strcmp(w->laid_type, MW_RATE_PACKED) == 0 && bytes > 0)
            w->saved_share = (double)packing->saved_bytes / bytes;
    }
}

void plan_input_types(const struct plan_input *in, struct mw_limits *l)
{
    l->n_rate = 0;
    for (uint32_t i = 0; i < in->n_weights && i < MW_RATE_TYPES; i++)
        if (in->weights[i].type[0] != '\0')
            limits_add_rate(l, in->weights[i].type);
    for (uint32_t i = 0; i < in->n_weights && i < MW_RATE_TYPES; i++)
        if (in->weights[i].laid_type[0] != '\0')
            limits_add_rate(l, in->weights[i].laid_type);
}

void plan_input_limits(struct plan_input *in, const struct mw_limits *l)
{
    enum kv_type k = in->kv_k, v = in->kv_v;

    in->disk_bytes_s = l->disk_bytes_s;
    in->memory_bytes_s = l->memory_bytes_s;
    in->lookup_s = l->lookup_s;
    in->expert_use = l->expert_use;
    in->is_doubtful = mw_limits_doubtful(l);
    in->costs = (struct plan_costs){ .round_s = l->steps.round_s,
                                     .wake_s = l->steps.wake_s,
                                     .value_s = l->steps.value_s,
                                     .curve_s = l->steps.curve_s,
                                     .load_s = (l->steps.load_s[k] + l->steps.load_s[v]) / 2,
                                     .mac_s = (l->steps.mac_s[k] + l->steps.mac_s[v]) / 2,
                                     .read_cpu_s = l->read_cpu_s,
                                     .contention = l->contention };
    for (uint32_t i = 0; i < in->n_weights; i++) {
        struct plan_weights *w = &in->weights[i];

        w->column_bytes_s = w->chunk_flops_s = 0;
        w->laid_column_bytes_s = w->laid_chunk_flops_s = 0;
        for (const struct mw_rate *r = l->rate; r < l->rate + l->n_rate; r++) {
            if (strcmp(r->type, w->type) == 0) {
                w->column_bytes_s = r->column_bytes_s;
                w->chunk_flops_s = r->chunk_flops_s;
            } else if (strcmp(r->type, w->laid_type) == 0) {
                w->laid_column_bytes_s = r->column_bytes_s;
                w->laid_chunk_flops_s = r->chunk_flops_s;
            }
        }
        /* Then memory's rate serves, which is a guess. */
        in->is_doubtful |= w->type[0] != '\0' && w->column_bytes_s <= 0;
    }
    speed_scale_threads(in, l->n_thread);
}

/* Where drafts come from, and what they need. */
static int add_drafter(struct mw_model *m, const struct mw_options *o,
                       const struct forward_bytes *bytes, struct plan_input *in, struct err *e)
{
    struct mw_model *draft;

    in->n_draft = DRAFT_MOST;
    in->draft_bytes = forward_logit_bytes(m->desc, 1);
    in->replay_col_bytes = bytes->replay_col;
    if (o->draft != MW_DRAFT_MTP) {
        in->drafter_bytes = NGRAM_BYTES;
        in->drafter_token_bytes = NGRAM_TOKEN_BYTES;
    }
    if (o->draft == MW_DRAFT_FILE) {
        if (o->io == MW_IO_MMAP)
            return err_set(e, ERR_ARGUMENT,
                           "a model that drafts is read into memory; use another --io");
        if (draft_model_open(&draft, m, o->draft_file, e) != 0)
            return -1;
        draft_model_bytes(m, draft, o, &in->drafter_bytes, &in->drafter_token_bytes);
        in->drafter_hot_bytes = draft->hot_bytes;
        steps_count(draft->desc, false, o->n_thread, in->n_block, in->draft_steps);
    }
    if (o->draft == MW_DRAFT_SELF) {
        if (o->io == MW_IO_MMAP)
            return err_set(e, ERR_ARGUMENT,
                           "a model drafts for itself with weights in memory; use another --io");
        if (self_types(m, o->draft_copies, in->n_block, in, e) != 0)
            return -1;
        in->drafter_bytes = sizeof(struct telemetry) + NGRAM_BYTES;
        in->drafter_token_bytes = 0;
        memcpy(in->draft_steps, in->steps, sizeof in->draft_steps);
    }
    in->drafter_bytes += bytes->replay_fixed;
    return 0;
}

uint64_t program_bytes(const struct mw_model *m, uint64_t caller_bytes)
{
    return PROGRAM_BYTES + caller_bytes + m->file_bytes;
}

/* The plan item without the texts of a context. */
static uint64_t program_item(const struct mw_model *m, const struct mw_options *o)
{
    uint64_t allowance = program_bytes(m, o->caller_bytes) + m->header.used + TEXT_FIXED;

    return o->program_bytes > 0 && o->program_bytes < allowance ? o->program_bytes : allowance;
}

/* The draft head: what session_head.c takes. */
static int add_head(const struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                    struct err *e)
{
    const struct model_head *head = model_head_of(m, o);
    enum head_use use = options_head(m, o);
    struct plan_head *h = &in->head;
    struct forward_bytes bytes;
    struct stream_shape shape;
    const struct kv_spec *spec;

    if (use == HEAD_UNUSED)
        return 0;
    if (kv_check_types(head->desc->kv_specs, head->desc->n_kv, options_kv_type(o->kv_k),
                       options_kv_type(o->kv_v), e) != 0)
        return -1;
    forward_bytes(head->desc, o->n_thread, false, &bytes);
    shape_make(&shape, head->spans, head->n_span, options_block(o));
    steps_count(head->desc, o->exact, o->n_thread, shape.n_block, in->draft_steps);
    h->is_needed = use == HEAD_NEEDED;
    h->fixed_bytes = head_fixed_bytes(m, o, &bytes, &shape);
    h->col_bytes = head_col_bytes(m);
    for (uint32_t i = 0; i < head->desc->n_kv; i++) {
        spec = &head->desc->kv_specs[i];
        h->kv_token_bytes +=
            kv_token_bytes(spec, options_kv_type(o->kv_k), options_kv_type(o->kv_v));
        h->kv_index_page_bytes += kv_index_page_bytes(spec, options_kv_type(o->kv_k));
    }
    h->ring_bytes = whole_huge_pages(2 * shape.slot_bytes);
    h->hot_bytes = head->hot_bytes;
    h->pinned_most = head->hot_bytes + (uint64_t)shape.n_block * PLAN_BLOCK_ROUNDING;
    h->expert_slot_bytes = bytes.experts.slot_bytes;
    h->n_expert_min = bytes.experts.n_min;
    h->n_expert_all = bytes.experts.n_all;
    if (o->io == MW_IO_MMAP) { /* weights are used where they are mapped */
        h->ring_bytes = h->pinned_most = h->expert_slot_bytes = 0;
        h->n_expert_min = h->n_expert_all = 0;
    }
    return 0;
}

int plan_input_formula(struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                       struct err *e)
{
    const struct model_desc *d = m->desc;
    char most[24], wants[24];
    struct mw_limits limits;
    struct product_choice choice;
    struct forward_bytes bytes;
    struct stream_shape shape;
    struct packing packing;

    if (o->n_ctx > MAX_CTX)
        return err_set(e, ERR_ARGUMENT, "a context has at most %s tokens, not %s",
                       numbers_count(most, sizeof most, MAX_CTX),
                       numbers_count(wants, sizeof wants, o->n_ctx));
    if (kv_check_types(d->kv_specs, d->n_kv, options_kv_type(o->kv_k), options_kv_type(o->kv_v),
                       e) != 0)
        return -1;
    if (product_choice_of(m, o, &choice, e) != 0)
        return -1;
    forward_bytes(d, o->n_thread, choice.has_blas, &bytes);
    *in = (struct plan_input){
        .budget_bytes = o->memory_bytes,
        .n_ctx = o->n_ctx,
        .chunk_max = o->chunk,
        .n_thread = o->n_thread,
        .n_core = m->n_core,
        .program_bytes = program_item(m, o) + mw_kv_file_bytes(m, o) + model_heads_bytes(m),
        .program_now_bytes = m->program_bytes,
        .program_files_bytes = m->program_files_bytes,
        .text_token_bytes = 6 * TEXT_TOKEN_BYTES + 32,
        .tokenizer_bytes = m->has_vocab ? tokenizer_bytes_bound(&m->vocab) : 0,
        .tokenizer_build_bytes = m->has_vocab ? tokenizer_build_bytes(&m->vocab) : 0,
        .logits_bytes = forward_logit_bytes(d, o->n_logit_row) + sampler_bytes(d->n_vocab),
        .act_fixed_bytes = bytes.act_fixed,
        .act_col_bytes = bytes.act_col,
        .rows_col_bytes = bytes.rows_col,
        .rows_fixed_bytes = bytes.rows_fixed + bytes.lookup,
        .resident_bytes = desc_resident_bytes(m->desc),
        .hot_bytes = m->hot_bytes,
        .prompt_bytes = m->prompt_bytes,
        .streams = o->io != MW_IO_MMAP,
        .expert_fixed_bytes = bytes.experts.fixed_bytes,
        .expert_slot_bytes = o->io != MW_IO_MMAP ? bytes.experts.slot_bytes : 0,
        .n_expert_min = bytes.experts.n_min,
        .n_expert_read = bytes.experts.n_read,
        .n_expert_all = bytes.experts.n_all,
        .experts_token_bytes = bytes.experts_token,
        .tables_bytes = bytes.tables,
    };
    if (choice.has_blas) /* its files are among those of the program now */
        in->blas_bytes = blas_heap_bytes(o->n_thread);
    shape_make(&shape, m->spans, m->n_span, options_block(o));
    in->slot_bytes = shape.slot_bytes;
    in->n_slot =
        o->disk_rate > 0 && o->mirror == NULL && shape.n_slot > SLOTS_LIMITED ? SLOTS_LIMITED
                                                                             : shape.n_slot;
    in->n_block = shape.n_block;
    in->ring_fixed_bytes =
        stream_overhead_bytes(m->n_span, shape.n_block, m->catalogue->n_file);
    in->kv_k = options_kv_type(o->kv_k);
    in->kv_v = options_kv_type(o->kv_v);
    add_kv(m, o, in);
    add_kv_disk(m, o, in);
    if (add_head(m, o, in, e) != 0)
        return -1;
    add_steps(m, o, in);
    add_weights(m, &choice, in);
    packing_choose(m, o, &packing);
    add_packing(&packing, in);
    if (o->draft != MW_DRAFT_OFF && add_drafter(m, o, &bytes, in, e) != 0)
        return -1;
    in->program_bytes += draft_models_bytes(m); /* also of one that the plan leaves out */
    limits = limits_of(m);
    limits.disk_bytes_s = limits_disk(m, o);
    plan_input_limits(in, &limits);
    return 0;
}

int plan_input_of(struct mw_model *m, const struct mw_options *o, struct plan_input *in,
                  struct err *e)
{
    if (plan_input_formula(m, o, in, e) != 0)
        return -1;
    anchors_apply(m, o, in);
    return 0;
}

int plan_of(struct mw_model *m, const struct mw_options *o, const struct plan_input *in,
            struct plan *out, struct err *e)
{
    int rc = plan_make(in, out, e);
    uint64_t proposed = 0;

    /* Blocks grow with the budget up to a point, and with them the memory that is needed. */
    while (rc != 0 && e->code == ERR_BUDGET && align_up(out->sum_bytes, MIB) > proposed) {
        struct mw_options larger = *o;
        struct plan_input with_larger;
        struct err refused = ERR_INIT;
        struct plan p;

        proposed = larger.memory_bytes = align_up(out->sum_bytes, MIB);
        if (plan_input_of(m, &larger, &with_larger, &refused) != 0)
            break;
        with_larger.budget_bytes = o->memory_bytes;
        if (plan_make(&with_larger, &p, &refused) == 0)
            break;
        *out = p;
        *e = refused;
    }
    return rc;
}

int mw_plan(struct mw_model *m, const struct mw_options *o, struct plan *out, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;

    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0 ||
        plan_of(m, &resolved, &in, out, e) != 0)
        return -1;
    return 0;
}

int mw_plan_drafted(struct mw_model *m, const struct mw_options *o, double acceptance,
                    double *tokens_per_s, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;
    struct plan plan;
    uint32_t most, depth;

    *tokens_per_s = 0;
    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0 ||
        plan_make(&in, &plan, e) != 0)
        return -1;
    most = o->draft_depth > 0 && o->draft_depth < plan.n_draft ? o->draft_depth : plan.n_draft;
    if (plan.drafted_tps > 0)
        *tokens_per_s = speed_drafted(&in, &plan, most, acceptance, &depth);
    return 0;
}

int mw_plan_outlook(struct mw_model *m, const struct mw_options *o, const struct plan_run *run,
                    struct plan_outlook *out, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;
    struct plan plan;

    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0 ||
        plan_make(&in, &plan, e) != 0)
        return -1;
    plan_outlook(&in, &plan, run, out);
    return 0;
}

static bool is_same_group(const struct plan_kv_group *a, const struct plan_kv_group *b)
{
    return a->n_head == b->n_head && a->key_bytes == b->key_bytes &&
           a->value_bytes == b->value_bytes && a->is_sliding == b->is_sliding;
}

static int basis_of(struct mw_model *m, const struct mw_options *o, struct plan_basis *out,
                    struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_anchor anchor;

    *out = (struct plan_basis){ 0 };
    if (options_resolve(m, &resolved, e) != 0 ||
        plan_input_of(m, &resolved, &out->in, e) != 0 ||
        plan_make(&out->in, &out->plan, e) != 0)
        return -1;
    mw_model_limits(m, &out->limits);
    mw_model_anchor(m, &anchor);
    out->answered_s = (int64_t)anchor.measured_s;
    for (uint32_t i = 0; i < m->desc->n_kv; i++) {
        const struct kv_spec *s = &m->desc->kv_specs[i];
        struct plan_kv_group g = {
            1, s->n_head_kv, kv_row_bytes(options_kv_type(o->kv_k), s->head_dim_k),
            s->has_latent ? 0 : kv_row_bytes(options_kv_type(o->kv_v), s->head_dim_v),
            s->is_sliding
        };
        uint32_t at = 0;

        while (at < out->n_kv && !is_same_group(&out->kv[at], &g))
            at++;
        if (at == PLAN_KV_GROUPS)
            return err_set(e, ERR_UNSUPPORTED, "more than %d kinds of keys and values",
                           PLAN_KV_GROUPS);
        if (at == out->n_kv)
            out->kv[out->n_kv++] = g;
        else
            out->kv[at].n_layer++;
    }
    return 0;
}

int mw_plan_explain(struct mw_model *m, const struct mw_options *o, FILE *to, int64_t now_s,
                    struct err *e)
{
    struct plan_basis basis;

    if (basis_of(m, o, &basis, e) != 0)
        return -1;
    plan_explain(to, &basis, now_s);
    return 0;
}

int mw_plan_fit(struct mw_model *m, const struct mw_options *o, uint64_t *smallest_budget,
                uint32_t *largest_ctx, struct err *e)
{
    struct mw_options resolved = *o;
    struct plan_input in;

    if (options_resolve(m, &resolved, e) != 0)
        return -1;
    if (o->memory_bytes == 0) { /* chosen for the context, which is what is looked for */
        struct mw_machine machine;

        mw_machine_read(&machine);
        resolved.memory_bytes = plan_auto_limit(machine.budget_bytes);
    }
    if (plan_input_of(m, &resolved, &in, e) != 0)
        return -1;
    *largest_ctx = plan_largest_ctx(&in);
    /* Blocks grow with the budget up to a point, and the smallest budget with them: raise it
     * until it no longer changes. */
    resolved.memory_bytes = 0;
    do {
        *smallest_budget = resolved.memory_bytes;
        if (plan_input_of(m, &resolved, &in, e) != 0)
            return -1;
        resolved.memory_bytes = plan_smallest_budget(&in);
    } while (resolved.memory_bytes > *smallest_budget);
    return 0;
}
