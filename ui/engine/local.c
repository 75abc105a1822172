#include "config.h"

#include "ui/engine/local.h"

#include <stdlib.h>

#include "engine/base/clock.h"

#define STOP_MS 500
#define SAVE_MS 3000

struct local {
    struct engine engine; /* the first member */
    struct mw_model *model;
    struct mw_watch *watch; /* NULL before start() */
    struct mw_chat *chat;   /* the same */
};

static struct local *of(struct engine *g)
{
    return (struct local *)g;
}

/* ---- the model ---- */

/* Let the head that the options name draft, or one beside the model: a chat that begins without
 * drafts may ask for it later. */
static int attach_head(struct local *l, const struct engine_model *m, struct err *e)
{
    struct mw_options o = m->options;

    if (mw_head_attach(l->model, m->path, &o, e) != 0)
        return -1;
    o.draft = MW_DRAFT_AUTO;
    return mw_head_attach(l->model, m->path, &o, e);
}

static int local_open(struct engine **out, const struct engine_model *m, struct err *e)
{
    struct local *l = calloc(1, sizeof *l);

    *out = NULL;
    if (l == NULL)
        return err_memory(e, "the engine");
    l->engine.calls = &engine_local;
    if (mw_model_open_within(&l->model, m->path, m->options.memory_bytes,
                             m->options.caller_bytes, e) != 0 ||
        attach_head(l, m, e) != 0) {
        mw_model_close(l->model);
        free(l);
        return -1;
    }
    if (m->limits != NULL)
        m->limits(l->model, m->path, &m->options);
    *out = &l->engine;
    return 0;
}

static void local_close(struct engine *g)
{
    struct local *l = of(g);

    if (l->chat != NULL)
        mw_chat_finish_kv(l->chat, SAVE_MS);
    if (l->chat == NULL || mw_chat_stop(l->chat, STOP_MS)) {
        mw_chat_close(l->chat);
        mw_watch_free(l->watch);
        mw_model_close(l->model);
    }
    free(l);
}

static void local_info(struct engine *g, struct mw_model_info *out)
{
    mw_model_info(of(g)->model, out);
}

static uint64_t local_text_bytes(struct engine *g, const struct mw_options *o)
{
    return mw_text_bytes(of(g)->model, o);
}

static const struct mw_model *local_model(struct engine *g)
{
    return of(g)->model;
}

static void local_recommend(struct engine *g, struct mw_sampling *out)
{
    mw_sampling_default(of(g)->model, out);
}

static int local_count(struct engine *g, const char *text, size_t n, uint32_t *out,
                       struct err *e)
{
    struct mw_encoder *encoder;
    const uint32_t *ids;
    size_t n_id = 0, n_last = 0;
    int rc = 0;

    if (mw_encoder_new(&encoder, of(g)->model, false, e) != 0)
        return -1;
    if (n > 0)
        rc = mw_encoder_push(encoder, text, n, &ids, &n_id, e);
    if (rc == 0)
        rc = mw_encoder_push(encoder, NULL, 0, &ids, &n_last, e);
    mw_encoder_free(encoder);
    *out = (uint32_t)(n_id + n_last);
    return rc;
}

static int local_io(struct engine *g, const struct mw_options *o, struct mw_io_choice *out,
                    struct err *e)
{
    return mw_io_choose(of(g)->model, o, out, e);
}

/* ---- the chat ---- */

static int local_start(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    struct local *l = of(g);

    return mw_watch_new(&l->watch, l->model, e) != 0 ||
                   mw_chat_open(&l->chat, l->model, o, e) != 0
               ? -1
               : 0;
}

static int local_fd(struct engine *g)
{
    return of(g)->chat == NULL ? -1 : mw_chat_fd(of(g)->chat);
}

static bool local_next(struct engine *g, struct mw_event *out)
{
    struct local *l = of(g);
    struct mw_receipt *r = &out->receipt;

    if (l->chat == NULL || !mw_chat_next(l->chat, out))
        return false;
    if (out->kind == MW_EVENT_DONE)
        mw_watch_end_answer(l->watch, &r->peak_charged, &r->peak_resident);
    return true;
}

static uint32_t local_tokens(struct engine *g)
{
    return of(g)->chat == NULL ? 0 : mw_chat_tokens(of(g)->chat);
}

static void local_sample(struct engine *g, struct mw_sample *out)
{
    struct local *l = of(g);

    if (l->chat == NULL) {
        *out = (struct mw_sample){ .state = MW_LOADING, .t_ns = clock_ns() };
        return;
    }
    mw_chat_sample(l->chat, out);
    mw_watch_complete(l->watch, out);
}

static int local_send(struct engine *g, const char *text, size_t len, uint32_t n_predict,
                      struct err *e)
{
    mw_watch_begin_answer(of(g)->watch);
    return mw_chat_send_within(of(g)->chat, text, len, n_predict, e);
}

static int local_resume(struct engine *g, struct err *e)
{
    mw_watch_begin_answer(of(g)->watch);
    return mw_chat_continue(of(g)->chat, e);
}

static int local_retry(struct engine *g, struct err *e)
{
    mw_watch_begin_answer(of(g)->watch);
    return mw_chat_retry(of(g)->chat, e);
}

static int local_aside(struct engine *g, struct err *e)
{
    return mw_chat_aside(of(g)->chat, e);
}

static int local_rewind(struct engine *g, size_t n, struct err *e)
{
    return mw_chat_rewind(of(g)->chat, n, e);
}

static int local_stash(struct engine *g, size_t n, size_t n_all, struct err *e)
{
    return mw_chat_stash(of(g)->chat, n, n_all, e);
}

static int local_unstash(struct engine *g, struct err *e)
{
    return mw_chat_unstash(of(g)->chat, e);
}

static int local_restore(struct engine *g, const struct mw_message *messages, size_t n,
                         size_t n_before, struct err *e)
{
    return mw_chat_restore(of(g)->chat, messages, n, n_before, e);
}

static int local_set(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    return mw_chat_set(of(g)->chat, o, e);
}

static void local_cancel(struct engine *g)
{
    if (of(g)->chat != NULL)
        mw_chat_cancel(of(g)->chat);
}

static int local_save_kv(struct engine *g, const char *path, uint64_t max_bytes, struct err *e)
{
    return mw_chat_save_kv(of(g)->chat, path, max_bytes, e);
}

static int local_load_kv(struct engine *g, const char *path, struct err *e)
{
    return mw_chat_load_kv(of(g)->chat, path, e);
}

static int local_share_kv(struct engine *g, const char *folder, uint64_t max_bytes,
                          struct err *e)
{
    return mw_chat_share_kv(of(g)->chat, folder, max_bytes, e);
}

/* ---- predictions ---- */

static int local_plan(struct engine *g, const struct mw_options *o, struct plan *out,
                      struct err *e)
{
    struct local *l = of(g);

    return l->chat != NULL ? mw_chat_plan(l->chat, o, out, e) : mw_plan(l->model, o, out, e);
}

static int local_fit(struct engine *g, const struct mw_options *o, uint64_t *smallest_budget,
                     uint32_t *largest_ctx, struct err *e)
{
    return mw_plan_fit(of(g)->model, o, smallest_budget, largest_ctx, e);
}

static int local_outlook(struct engine *g, const struct mw_options *o,
                         const struct plan_run *run, struct plan_outlook *out, struct err *e)
{
    return mw_plan_outlook(of(g)->model, o, run, out, e);
}

static int local_diagnose(struct engine *g, const struct mw_options *o,
                          const struct mw_sample *s, struct mw_diagnosis *out, struct err *e)
{
    return mw_diagnose(of(g)->model, o, s, out, e);
}

static bool local_wall_begin(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                             const struct mw_sample *s)
{
    return mw_wall_begin(w, of(g)->model, o, s);
}

static bool local_wall_step(struct engine *g, struct mw_wall *w, const struct mw_options *o,
                            const struct mw_sample *s, uint32_t n)
{
    return mw_wall_step(w, of(g)->model, o, s, n);
}

static int local_cost(struct engine *g, uint32_t n_token, struct mw_cost *out, struct err *e)
{
    return mw_chat_cost(of(g)->chat, n_token, out, e);
}

static void local_cost_again(struct engine *g, const struct plan *plan, struct mw_cost *out)
{
    mw_chat_cost_again(of(g)->chat, plan, out);
}

/* ---- what was measured ---- */

static void local_limits(struct engine *g, struct mw_limits *out)
{
    mw_model_limits(of(g)->model, out);
}

static void local_anchor(struct engine *g, struct plan_anchor *out)
{
    mw_model_anchor(of(g)->model, out);
}

static size_t local_tried(struct engine *g, struct mw_tried *list)
{
    return mw_model_tried(of(g)->model, list);
}

static void local_tried_peak(struct engine *g, const struct plan *p, uint64_t bytes)
{
    mw_model_tried_peak(of(g)->model, p, bytes);
}

const struct engine_calls engine_local = {
    .open = local_open,
    .close = local_close,
    .info = local_info,
    .text_bytes = local_text_bytes,
    .start = local_start,
    .fd = local_fd,
    .next = local_next,
    .tokens = local_tokens,
    .sample = local_sample,
    .send = local_send,
    .resume = local_resume,
    .retry = local_retry,
    .aside = local_aside,
    .rewind = local_rewind,
    .stash = local_stash,
    .unstash = local_unstash,
    .restore = local_restore,
    .set = local_set,
    .cancel = local_cancel,
    .model = local_model,
    .recommend = local_recommend,
    .count = local_count,
    .io = local_io,
    .save_kv = local_save_kv,
    .load_kv = local_load_kv,
    .share_kv = local_share_kv,
    .plan = local_plan,
    .fit = local_fit,
    .outlook = local_outlook,
    .diagnose = local_diagnose,
    .wall_begin = local_wall_begin,
    .wall_step = local_wall_step,
    .cost = local_cost,
    .cost_again = local_cost_again,
    .limits = local_limits,
    .anchor = local_anchor,
    .tried = local_tried,
    .tried_peak = local_tried_peak,
};
