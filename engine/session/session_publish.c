/* The telemetry of a session: its plan, and the memory in use. */
#include "config.h"

#include "engine/session/session_internal.h"

#include <stdio.h>

#include "engine/session/tokens.h"

/* Lookup rows in flight take their part of the item from the start, kept ones as they come. */
static uint64_t rows_used(const struct mw_session *s)
{
    const struct arena *rows = &s->work->rows;
    uint64_t tables = s->plan.keeps_rows ? s->kept.arena.size : 0;

    return s->plan.row[MW_ROW_ROWS] - (rows->size - rows->used) - tables +
           kept_rows_bytes(&s->kept);
}

/* Tables of the stream, and the ring that it has now. */
static uint64_t ring_used(const struct mw_session *s, const struct plan *p)
{
    const struct weights *w = &s->weights;
    uint64_t planned = whole_huge_pages((uint64_t)p->n_slot * w->shape.slot_bytes);

    if (w->stream == NULL || p->row[MW_ROW_RING] < planned)
        return 0;
    return p->row[MW_ROW_RING] - planned +
           whole_huge_pages((uint64_t)w->room.n_slot * w->shape.slot_bytes);
}

/* Publish the memory in use under the plan p.  has_work: that of the workspace, too. */
static void publish_used(struct mw_session *s, const struct plan *p, bool has_work)
{
    struct telemetry *t = s->telemetry;
    const struct weights *w = &s->weights;
    uint64_t experts = w->cache != NULL ? expert_cache_charged(w->cache) : 0;
    uint64_t experts_plan = p->n_expert * w->expert_sizes.slot_bytes;
    uint64_t recurrent = kv_recurrent_bytes(s->kv);
    uint64_t replay = has_work ? s->work->replay.used : 0;

    counter_set(&t->used[MW_ROW_ACTIVATIONS], has_work ? s->work->activations.used : 0);
    counter_set(&t->used[MW_ROW_LOGITS], has_work ? s->work->logits.used : 0);
    counter_set(&t->used[MW_ROW_RING], ring_used(s, p));
    counter_set(&t->used[MW_ROW_TOKENIZER],
                s->m->tokenizer != NULL ? tokenizer_bytes(s->m->tokenizer) : 0);
    counter_set(&t->kv_tokens, kv_tokens(s->kv));
    counter_set(&t->kv_global_used, kv_global_bytes(s->kv));
    counter_set(&t->kv_disk_used, kv_disk_bytes(s->kv));
    counter_set(&t->kv_written, kv_disk_written(s->kv));
    counter_set(&t->kv_sliding_used, kv_sliding_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_GLOBAL], kv_global_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_SLIDING],
                kv_sliding_bytes(s->kv) + (recurrent == 0 ? copies_bytes(s->copies) : 0));
    counter_set(&t->used[MW_ROW_KV_RECURRENT],
                recurrent + (recurrent > 0 ? copies_bytes(s->copies) : 0));
    counter_set(&t->used[MW_ROW_KV_INDEX], kv_index_bytes(s->kv));
    counter_set(&t->used[MW_ROW_DRAFTER],
                drafter_used(s->drafter) + replay +
                    (s->head != NULL ? head_used_bytes(s->head) : 0));
    counter_set(&t->used[MW_ROW_ROWS], has_work ? rows_used(s) : kept_rows_bytes(&s->kept));
    counter_set(&t->used[MW_ROW_PINNED], s->m->resident.used); /* the stream adds its blocks */
    counter_set(&t->used[MW_ROW_EXPERTS], w->expert_sizes.fixed_bytes + experts);
    counter_set(&t->lent_experts, experts > experts_plan ? experts - experts_plan : 0);
    for (uint32_t l = 0; l < s->m->desc->n_layer; l++) {
        const struct layer_desc *layer = &s->m->desc->layers[l];

        counter_set(
            &t->layer[l].kv_bytes,
            (layer->owns_kv ? kv_layer_bytes(s->kv, layer->kv_layer) : 0) +
                (layer->is_recurrent ? recurrent_layer_bytes(&s->m->desc->recurrent) : 0));
    }
}

void publish_memory(struct mw_session *s)
{
    /* NULL: a change of options failed, and could not be undone */
    publish_used(s, &s->plan, s->work != NULL);
}

void publish_limits(struct mw_session *s)
{
    counter_set(&s->telemetry->disk_limit, (uint64_t)limits_disk(s->m, &s->settled.o));
    counter_set(&s->telemetry->memory_limit, (uint64_t)limits_of(s->m).memory_bytes_s);
}

void publish_budget(struct mw_session *s, const struct plan *p, bool has_work)
{
    struct mw_run run;

    telemetry_run(s->telemetry, &run);
    run.budget_bytes = p->budget_bytes;
    run.predicted_decode = run.predicted_prefill = run.predicted_assumed = 0;
    run.predicted_read = 0;
    run.predicted_binds = MW_BINDS_NONE;
    telemetry_set_run(s->telemetry, &run, p->row);
    publish_used(s, p, has_work);
}

void publish_plan(struct mw_session *s)
{
    struct telemetry *t = s->telemetry;
    const struct plan *p = &s->plan;
    const struct mw_options now = session_options_now(s), *o = &now;
    struct mw_model_info info;
    struct mw_run run = { 0 };

    mw_model_info(s->m, &info);
    snprintf(run.model, sizeof run.model, "%s", info.name);
    snprintf(run.type, sizeof run.type, "%s", info.type);
    snprintf(run.arch, sizeof run.arch, "%s", info.arch);
    run.n_layer = info.n_layer;
    run.ctx = o->n_ctx;
    run.budget_bytes = o->memory_bytes;
    snprintf(run.io, sizeof run.io, "%s", stream_io_name(s->weights.stream));
    snprintf(run.io_reason, sizeof run.io_reason, "%s", stream_io_reason(s->weights.stream));
    snprintf(run.kv_k, sizeof run.kv_k, "%s", mw_kv_name(o->kv_k));
    snprintf(run.kv_v, sizeof run.kv_v, "%s", mw_kv_name(o->kv_v));
    run.threads = (uint32_t)o->n_thread;
    run.cores = (uint32_t)s->m->n_core;
    run.efficient_cores = (uint32_t)(s->m->n_efficient - s->m->n_low_power);
    run.low_power_cores = (uint32_t)s->m->n_low_power;
    snprintf(run.isa, sizeof run.isa, "%s", s->kernels->name);
    mw_products_text(s->m, &s->settled.o, run.products, sizeof run.products);
    run.hot_bytes = info.hot_bytes;
    run.file_bytes = info.file_bytes;
    run.predicted_decode = p->decode_tps;
    run.predicted_prefill = p->prefill_tps;
    run.predicted_assumed = p->assumed;
    run.predicted_read = p->streamed_bytes;
    run.predicted_binds = p->binds;
    anchors_use(s->m, o); /* before its predictions, from which a diagnosis is made */
    telemetry_set_run(t, &run, p->row);
    anchors_begin(&s->answer);
    tried_begin(&s->tried);
    s->pass_end_ns = 0; /* the next pass begins with the input of this plan */
    counter_set(&t->used[MW_ROW_PROGRAM], s->m->program_bytes);
    counter_set(&t->kv_capacity, o->n_ctx);
    counter_set(&t->kv_disk_plan, p->kv_disk_bytes);
    counter_set(&t->kv_reserved, kv_reserved_bytes(s->kv));
    publish_limits(s);
    for (uint32_t l = 0; l <= s->m->desc->n_layer; l++)
        counter_set(&t->layer[l].kind,
                    l < s->m->desc->n_layer ? s->m->desc->layers[l].kind : MW_LAYER_HEAD);
    publish_memory(s);
}
