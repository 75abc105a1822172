/* The parts of a session (session_internal.h): how each is made from options and plan. */
#include "config.h"

#include "engine/session/session_internal.h"

#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/draft/ngram.h"
#include "engine/limits/store.h"
#include "engine/plan/plan.h"
#include "engine/session/draft_model.h"
#include "engine/session/favourites.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/plan_input.h"

/* --- experts that earlier sessions used --- */

static bool has_favourites(const struct mw_session *s, const struct mw_options *o)
{
    return s->weights.cache != NULL && o->cache_folder != NULL && !o->is_artificial &&
           !stream_is_mapped(s->weights.stream);
}

/* Let the cache of experts know what earlier sessions used. */
static void read_favourites(struct mw_session *s, const struct mw_options *o)
{
    uint32_t n = s->weights.expert_sizes.n_all;
    uint8_t *use = has_favourites(s, o) ? malloc(n) : NULL;
    char model[128];

    limits_model_of(s->m->catalogue->files[0].path, model, sizeof model);
    if (use != NULL && favourites_read(o->cache_folder, model, n, use))
        expert_cache_seed(s->weights.cache, use);
    free(use);
}

static void keep_favourites(const struct mw_session *s, const struct mw_expert_use *seen)
{
    uint32_t n = s->weights.expert_sizes.n_all;
    bool keeps = has_favourites(s, &s->settled.o) && !s->settled.o.is_private;
    uint8_t *use = keeps ? malloc(n) : NULL;
    char model[128];

    if (use == NULL)
        return;
    limits_model_of(s->m->catalogue->files[0].path, model, sizeof model);
    expert_cache_uses(s->weights.cache, use);
    favourites_keep(s->settled.o.cache_folder, model, n, use, (uint32_t)seen->n_token);
    free(use);
}

bool session_is_mapped(const struct mw_session *s)
{
    return s->settled.o.io == MW_IO_MMAP;
}

bool session_has_favourites(const struct mw_session *s)
{
    return s->weights.warms;
}

bool session_warm(struct mw_session *s)
{
    const struct telemetry *t = s->telemetry;

    /* Pinned weights are used by every token. */
    if (counter_get(&t->ahead_done_bytes) < counter_get(&t->ahead_bytes))
        return false;
    s->weights.warms = expert_cache_warm(s->weights.cache);
    publish_memory(s);
    return true;
}

/* --- weights --- */

/* Open the stream with the forms that the options give to pinned weights. */
static int open_stream(struct mw_session *s, const struct mw_options *o,
                       const struct stream_options *so, struct err *e)
{
    struct weights *w = &s->weights;
    struct stream_span *spans = calloc(s->m->n_span, sizeof *spans);
    struct packing packing;
    int rc;

    if (spans == NULL)
        return err_memory(e, "the schedule of %u spans", s->m->n_span);
    packing_choose(s->m, o, &packing);
    packing_spans(s->m, &packing, spans);
    rc = stream_open(&w->stream, s->m->catalogue, spans, s->m->n_span, &w->shape, so,
                     s->telemetry, e);
    free(spans);
    return rc;
}

int weights_open(struct mw_session *s, const struct mw_options *o, const struct plan *plan,
                 const struct room *room, struct err *e)
{
    struct weights *w = &s->weights;
    struct mw_limits limits = limits_of(s->m);
    struct forward_bytes bytes;
    struct stream_options so = {
        .io = options_stream_io(o->io),
        .mmap_drop = o->mmap_drop,
        .no_uring = o->no_uring,
        .bytes_s = o->disk_rate,
        .mirror_bytes_s = o->mirror_rate,
        .cancel = s->cancel,
        .lay = packing_lay,
        .n_slot = plan->n_slot,
        .pinned_bytes = room->pinned_bytes,
        .direct_bytes_s = limits.direct_bytes_s,
        .buffered_bytes_s = limits.buffered_bytes_s,
    };

    struct mw_model *draft;

    if (o->mirror != NULL && (so.mirror = model_mirror(s->m, o->mirror, e)) == NULL)
        return -1;
    forward_bytes(s->m->desc, o->n_thread, false, &bytes);
    so.lookup_bytes = bytes.lookup;
    if (o->draft == MW_DRAFT_FILE) {
        if (draft_model_open(&draft, s->m, o->draft_file, e) != 0)
            return -1;
        so.guest = draft->catalogue;
    }
    shape_make(&w->shape, s->m->spans, s->m->n_span, options_block(o));
    if (open_stream(s, o, &so, e) != 0)
        return -1;
    w->guest = so.guest;
    if (experts_open(&w->cache, s->m->desc, w->stream, room->expert_bytes, s->telemetry, e) !=
        0) {
        stream_close(w->stream);
        w->stream = NULL;
        w->guest = NULL;
        return -1;
    }
    w->room = *room;
    w->has_failed = w->said_lost = false;
    read_favourites(s, o);
    w->warms = w->cache != NULL;
    return 0;
}

void weights_close(struct mw_session *s)
{
    struct weights *w = &s->weights;
    struct mw_limits l;

    if (session_expert_use(s, &l) != NULL) {
        struct mw_expert_use seen;

        limits_correct(s->m, &l);
        expert_cache_observed(w->cache, &seen);
        keep_favourites(s, &seen);
    }
    w->warms = false;
    expert_cache_close(w->cache);
    stream_close(w->stream);
    if (w->stream != NULL) { /* all of its memory is gone */
        counter_set(&s->telemetry->pinned_held, 0);
        counter_set(&s->telemetry->ahead_bytes, 0);
        counter_set(&s->telemetry->ahead_done_bytes, 0);
    }
    w->cache = NULL;
    w->stream = NULL;
    w->guest = NULL;
}

/* --- workspace --- */

int workspace_new(struct workspace **out, struct mw_session *s, const struct mw_options *o,
                  const struct plan *plan, struct kv *kv, struct err *e)
{
    struct workspace *w = calloc(1, sizeof *w);
    struct forward_bytes bytes;
    struct forward_parts parts;

    *out = NULL;
    if (w == NULL)
        return err_memory(e, "the workspace");
    parts = (struct forward_parts){
        .desc = s->m->desc,
        .kernels = kernels_of(o, e),
        .pool = s->pool,
        .stream = s->weights.stream,
        .experts = s->weights.cache,
        .kv = kv,
        .telemetry = s->telemetry,
        .activations = &w->activations,
        .rows = &w->rows,
        .logits = &w->logits,
        .replay = &w->replay,
        .kept = &s->kept,
        .chunk = plan->chunk,
        .n_logit_row = plan->n_draft + 1 > o->n_logit_row ? plan->n_draft + 1 : o->n_logit_row,
        .n_replay = plan->n_draft > 0 ? plan->n_draft + 1 : 0,
        .n_ctx = o->n_ctx,
        .exact = o->exact,
        .cancel = s->cancel,
        .between = session_between,
        .between_ctx = s,
    };
    if (parts.kernels == NULL || product_choice_of(s->m, o, &w->choice, e) != 0)
        goto fail;
    if (w->choice.has_blas)
        parts.products = &w->choice.products;
    forward_bytes(s->m->desc, o->n_thread, w->choice.has_blas, &bytes);
    if (arena_map(&w->activations, "activations", plan->row[MW_ROW_ACTIVATIONS], false, e) !=
            0 ||
        arena_map(&w->rows, "rows", plan->chunk * bytes.rows_col + bytes.rows_fixed, false,
                  e) != 0 ||
        arena_map(&w->logits, "logits", plan->row[MW_ROW_LOGITS], false, e) != 0 ||
        arena_map(&w->replay, "drafter",
                  bytes.replay_fixed + parts.n_replay * bytes.replay_col, false, e) != 0 ||
        forward_new(&w->forward, &parts, e) != 0)
        goto fail;
    *out = w;
    return 0;

fail:
    workspace_free(w);
    return -1;
}

void workspace_free(struct workspace *w)
{
    if (w == NULL)
        return;
    forward_free(w->forward);
    arena_unmap(&w->activations);
    arena_unmap(&w->rows);
    arena_unmap(&w->logits);
    arena_unmap(&w->replay);
    free(w);
}

void workspace_touch(struct workspace *w)
{
    arena_touch(&w->activations);
    arena_touch(&w->rows);
    arena_touch(&w->logits);
    arena_touch(&w->replay);
}

void workspace_release(struct workspace *w)
{
    arena_release(&w->activations);
    arena_release(&w->rows);
    arena_release(&w->logits);
    arena_release(&w->replay);
}

/* --- drafts --- */

static int make_drafter(struct drafter **out, struct mw_session *s, const struct mw_options *o,
                        const struct plan *plan, struct err *e)
{
    struct draft_model_parts parts = { .n_vocab = s->m->desc->n_vocab,
                                       .o = o,
                                       .pool = s->pool,
                                       .stream = s->weights.stream,
                                       .cancel = s->cancel };
    struct drafter *text = NULL;

    *out = NULL;
    if (plan->n_draft == 0)
        return 0;
    if (o->draft == MW_DRAFT_SELF)
        return self_drafter_new(out, s, plan, e);
    if (o->draft == MW_DRAFT_FILE)
        return draft_model_open(&parts.draft, s->m, o->draft_file, e) != 0
                   ? -1
                   : model_drafter_new(out, &parts, e);
    if (o->draft != MW_DRAFT_MTP && ngram_drafter_new(&text, o->n_ctx, e) != 0)
        return -1;
    if (plan->has_head)
        return head_drafter_new(out, s, text, e);
    *out = text;
    return 0;
}

int session_drafter(struct drafter **out, struct mw_session *s, const struct mw_options *o,
                    const struct plan *plan, struct err *e)
{
    uint64_t start = clock_ns();
    int rc = make_drafter(out, s, o, plan, e);

    if (*out == NULL)
        return rc;
    s->drafts.open_s = (double)(clock_ns() - start) / 1e9;
    s->drafts.text_s = 0;
    s->drafts.n_text = 0;
    return rc;
}

/* --- keys and values --- */

uint32_t session_ring_slots(const struct mw_session *s, uint32_t chunk, uint32_t n_ctx)
{
    return plan_sliding_slots(s->m->desc->hp->n_swa, chunk, n_ctx);
}

int session_kv_disk(const struct mw_session *s, struct kv *kv, const struct mw_options *o,
                    const struct plan *plan, struct err *e)
{
    struct kv_disk_options disk = { .folder = o->cache_folder,
                                    .n_slot = plan->n_kv_slot,
                                    .tail = plan->kv_tail };

    if (kv_disk_fd(kv) < 0 && (!plan->has_kv_disk || kv_disk_open(kv, &disk, e) != 0))
        return plan->has_kv_disk ? -1 : 0;
    kv_disk_set_tail(kv, plan->kv_tail);
    for (uint32_t i = 0; i < s->m->desc->n_kv; i++)
        kv_disk_want(kv, i, plan_input_keep(s->m, plan, i));
    return 0;
}

int session_kv(struct kv **out, const struct mw_session *s, const struct mw_options *o,
              const struct plan *plan, struct err *e)
{
    const struct model_desc *d = s->m->desc;

    if (kv_new(out, d->kv_specs, d->n_kv, options_kv_type(o->kv_k), options_kv_type(o->kv_v),
               o->n_ctx, session_ring_slots(s, plan->chunk, o->n_ctx), d->hp->n_swa, e) != 0)
        return -1;
    if (session_kv_disk(s, *out, o, plan, e) == 0)
        return 0;
    kv_free(*out);
    *out = NULL;
    return -1;
}
