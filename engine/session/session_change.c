/*
 * Other options for a session that holds tokens.
 *
 *   1. Everything that gets smaller gives its memory back, and so does the workspace, which holds
 *      nothing between two passes.  Then the new budget is in force, and the telemetry has it:
 *      with a larger one, the memory that is read from now on is taken under it.
 *   2. Parts that have to be made again are made beside the old ones.  They take no memory yet.
 *   3. Weights grow.
 *   4. The new parts replace the old ones, and take their memory.
 *
 * So old and new parts together never exceed the budget, and nothing can fail once a part is
 * lost.  Weights are the exception: a stream that has to be opened again is closed first.
 */
#include "config.h"

#include "engine/base/numbers.h"
#include "engine/session/session_internal.h"

#include <time.h>

#include "engine/session/draft_model.h"
#include "engine/session/options.h"

/* --- planning --- */

const struct mw_expert_use *session_expert_use(const struct mw_session *s, struct mw_limits *l)
{
    struct mw_expert_use use;

    *l = limits_of(s->m);
    if (s->weights.cache == NULL)
        return NULL;
    expert_cache_observed(s->weights.cache, &use);
    return observe_use(&use, (int64_t)time(NULL), l) ? &l->expert_use : NULL;
}

static bool same_speed(const struct plan *a, const struct plan *b)
{
    return a->budget_bytes == b->budget_bytes && a->n_ctx == b->n_ctx &&
           a->pinned_bytes == b->pinned_bytes && a->n_expert == b->n_expert &&
           a->has_head == b->has_head;
}

static bool same_head(const struct plan *a, const struct plan *b)
{
    return a->has_head == b->has_head && a->head_pinned_bytes == b->head_pinned_bytes &&
           a->n_head_expert == b->n_head_expert;
}

/* --- changing --- */

struct change {
    struct settled settled;
    struct plan plan;
    bool opens;    /* the weights again */
    bool replaces; /* keys and values */
    bool works;    /* with another workspace */
    bool drafts; /* with another drafter */
    struct kv *kv;
    struct workspace *work;
    struct drafter *drafter;
    struct err head_why; /* it could not be opened again; the rest has changed */
};

/* Memory that keys and values use while a change is made.  The old ones stay beside the new
 * ones, which take no memory yet; rings, states and copies may be larger than they will be. */
static uint64_t kv_used(const struct mw_session *s, const struct change *c)
{
    uint64_t bytes = kv_sliding_bytes(s->kv) + kv_recurrent_bytes(s->kv) +
                     copies_bytes(s->copies);
    uint64_t most = c->plan.row[MW_ROW_KV_SLIDING] + c->plan.row[MW_ROW_KV_RECURRENT];

    return kv_page_bytes(s->kv) + (c->replaces && bytes > most ? bytes - most : 0);
}

static uint64_t ring_bytes(const struct weights *w, uint32_t n_slot)
{
    return whole_huge_pages((uint64_t)n_slot * w->shape.slot_bytes);
}

/*
 * Shrink the weights to the smaller of what they have and what they get.  While a ring of keys
 * is copied there are two of it; the second one may take the memory of the workspace.
 */
static int shrink_weights(struct mw_session *s, const struct change *c, struct err *e)
{
    const struct weights *w = &s->weights;
    const struct mw_options *o = &c->settled.o;
    struct room to = session_room(s, &c->plan, kv_used(s, c)), now = w->room;
    uint64_t both = to.pinned_bytes + ring_bytes(w, to.n_slot), copy = 0, spare = 0;

    if (!c->replaces)
        copy = kv_resize_bytes(s->kv, session_ring_slots(s, c->plan.chunk, o->n_ctx));
    if (c->works)
        spare = c->plan.row[MW_ROW_ACTIVATIONS] + c->plan.row[MW_ROW_LOGITS];
    if (to.pinned_bytes >= now.pinned_bytes) {
        uint64_t ring = ring_bytes(w, now.n_slot), most = both > ring ? both - ring : 0;

        to.n_slot = now.n_slot;
        to.pinned_bytes = most < now.pinned_bytes ? most : now.pinned_bytes;
    }
    if (to.expert_bytes > now.expert_bytes)
        to.expert_bytes = now.expert_bytes;
    room_less(&to, copy > spare ? copy - spare : 0, w->shape.slot_bytes);
    return session_set_room(s, &to, e);
}

static int open_weights(struct mw_session *s, const struct settled *settled,
                        const struct plan *plan, uint64_t kv_bytes, struct err *e)
{
    struct room room = session_room(s, plan, kv_bytes);

    return weights_open(s, &settled->o, plan, &room, e);
}

int session_keep_rows(struct mw_session *s, bool keeps, struct err *e)
{
    if (!keeps)
        kept_rows_close(&s->kept);
    else if (s->kept.arena.base == NULL)
        return kept_rows_open(&s->kept, s->m->desc, e);
    return 0;
}

static void use_drafter(struct mw_session *s, struct drafter *d)
{
    drafter_free(s->drafter);
    s->tokens.drafter = s->drafter = d;
}

/* Steps 1 to 3. */
static int make(struct mw_session *s, struct change *c, struct err *e)
{
    const struct mw_options *o = &c->settled.o;
    const struct plan *plan = &c->plan;
    uint32_t n_slot = session_ring_slots(s, plan->chunk, o->n_ctx);
    struct room room;

    if (plan->n_copy < s->plan.n_copy)
        copies_set_room(s->copies, plan->n_copy);
    if (c->drafts)
        use_drafter(s, NULL);
    if (c->opens)
        weights_close(s);
    else if (shrink_weights(s, c, e) != 0)
        return -1;
    if (c->works && s->work != NULL)
        workspace_release(s->work);
    publish_budget(s, plan, !c->works && s->work != NULL);
    if (!c->replaces && plan->has_kv_disk &&
        (session_kv_disk(s, s->kv, o, plan, e) != 0 || kv_disk_out(s->kv, e) != 0))
        return -1;
    if (pool_set_threads(s->pool, o->n_thread, e) != 0 ||
        (o->n_ctx > s->settled.o.n_ctx && tokens_resize(&s->tokens, o->n_ctx, e) != 0))
        return -1;
    if ((c->replaces ? session_kv(&c->kv, s, o, plan, e)
                     : kv_resize(s->kv, o->n_ctx, n_slot, e)) != 0)
        return -1;
    if (c->opens && open_weights(s, &c->settled, plan, kv_used(s, c), e) != 0)
        return -1;
    if ((c->works &&
         workspace_new(&c->work, s, o, plan, c->kv != NULL ? c->kv : s->kv, e) != 0) ||
        session_keep_rows(s, plan->keeps_rows, e) != 0 ||
        (c->drafts && session_drafter(&c->drafter, s, o, plan, e) != 0))
        return -1;
    room = session_room(s, plan, kv_used(s, c));
    return session_set_room(s, &room, e);
}

/* The weights and all that uses them, as they were. */
static bool reopen(struct mw_session *s)
{
    struct err ignored = ERR_INIT;

    weights_close(s);
    workspace_free(s->work);
    s->work = NULL;
    return open_weights(s, &s->settled, &s->plan, kv_page_bytes(s->kv), &ignored) == 0 &&
           workspace_new(&s->work, s, &s->settled.o, &s->plan, s->kv, &ignored) == 0;
}

/* Make everything as it was before.  If that fails, too, the session has no workspace. */
static void undo(struct mw_session *s, struct change *c)
{
    const struct mw_options *o = &s->settled.o;
    uint32_t n_slot = session_ring_slots(s, s->plan.chunk, o->n_ctx);
    struct err ignored = ERR_INIT;

    workspace_free(c->work);
    kv_free(c->kv);
    drafter_free(c->drafter);
    if (s->plan.budget_bytes >= c->plan.budget_bytes) /* the weights grow under it again */
        publish_budget(s, &s->plan, false);
    (void)pool_set_threads(s->pool, o->n_thread, &ignored);
    (void)session_keep_rows(s, s->plan.keeps_rows, &ignored);
    if (tokens_resize(&s->tokens, o->n_ctx, &ignored) != 0 ||
        (!c->replaces && kv_resize(s->kv, o->n_ctx, n_slot, &ignored) != 0) ||
        (c->opens && !reopen(s))) {
        workspace_free(s->work);
        s->work = NULL;
        s->has_logits = false;
        return;
    }
    if (c->drafts && session_drafter(&s->drafter, s, o, &s->plan, &ignored) == 0)
        s->tokens.drafter = s->drafter; /* without one, nothing is drafted */
    workspace_touch(s->work);
    copies_set_room(s->copies, s->plan.n_copy);
    (void)settle_memory(s, 0, &ignored);
}

/* Step 4. */
static void take(struct mw_session *s, struct change *c)
{
    struct err ignored = ERR_INIT;

    if (c->replaces) {
        kv_move_recurrent(c->kv, s->kv);
        copies_of(s->copies, c->kv);
        kv_free(s->kv);
        s->kv = c->kv;
        tokens_clear(&s->tokens);
    }
    if (c->works) {
        workspace_free(s->work);
        s->work = c->work;
    }
    if (c->drafts)
        use_drafter(s, c->drafter);
    (void)tokens_resize(&s->tokens, c->settled.o.n_ctx, &ignored); /* perhaps to fewer */
    copies_set_room(s->copies, c->plan.n_copy);
    s->kernels = kernels_of(&c->settled.o, &ignored);
    s->settled = c->settled;
    s->plan = c->plan;
    publish_memory(s); /* before it is taken: while memory is read, that takes a second */
    if (c->replaces)
        kv_touch(s->kv);
    if (c->works)
        workspace_touch(s->work);
}

/* Without its head, a session drafts nothing. */
static void reopen_head(struct mw_session *s, struct err *why)
{
    if (s->plan.has_head && s->head == NULL && s->work != NULL)
        (void)head_open(&s->head, s, why);
}

static int change(struct mw_session *s, struct change *c, struct err *e)
{
    struct err ignored = ERR_INIT;

    /* The head is made for a workspace: it is opened again, and its weights are read again. */
    if (c->works) {
        s->has_logits = false;
        if (s->work != NULL) /* its rows for the head are gone, also if the head cannot come back */
            forward_set_hidden(s->work->forward, NULL, false);
        head_close(s->head);
        s->head = NULL;
    }
    if (make(s, c, e) != 0) {
        undo(s, c);
        reopen_head(s, &ignored);
        return -1;
    }
    take(s, c);
    reopen_head(s, &c->head_why);
    /* The old keys and values have left memory over.  After an error the next pass tries again.
     */
    if (c->replaces)
        (void)settle_memory(s, 0, &ignored);
    return 0;
}

/* A model that drafts is a guest of the stream, which keeps its files open while it does not: then
 * no weight has to be read again when it comes back. */
static bool lacks_guest(const struct mw_session *s, const struct mw_options *o)
{
    struct err ignored = ERR_INIT;
    struct mw_model *draft;

    return o->draft == MW_DRAFT_FILE &&
           (draft_model_open(&draft, s->m, o->draft_file, &ignored) != 0 ||
            draft->catalogue != s->weights.guest);
}

/* Find the parts that have to be made again. */
static void find_reach(const struct mw_session *s, struct change *c)
{
    unsigned reach = options_reach(s->m, &s->settled.o, &c->settled.o);
    bool has_file = c->settled.o.draft == MW_DRAFT_FILE;

    c->opens = s->work == NULL || (reach & MW_REACH_WEIGHTS) != 0 ||
               lacks_guest(s, &c->settled.o);
    c->replaces = (reach & MW_REACH_KV) != 0;
    c->works = c->opens || c->replaces || (reach & MW_REACH_WORKSPACE) != 0 ||
               c->plan.chunk != s->plan.chunk || c->plan.n_draft != s->plan.n_draft ||
               !same_head(&s->plan, &c->plan);
    /* A model that drafts has a pass of its own. */
    c->drafts = c->settled.o.n_ctx != s->settled.o.n_ctx ||
                (c->plan.n_draft > 0) != (s->plan.n_draft > 0) || c->opens ||
                c->plan.has_head != s->plan.has_head ||
                c->settled.o.draft != s->settled.o.draft ||
                c->plan.low_bytes != s->plan.low_bytes ||
                c->plan.low_beside_bytes != s->plan.low_beside_bytes ||
                c->plan.low.type != s->plan.low.type ||
                (has_file && c->settled.o.n_thread != s->settled.o.n_thread);
}

/* The passes of these settings go away.  Let predictions begin at the tokens whose rate the
 * screen and the sheet of the change have shown, so that they give the same figure after it. */
static void remember_newest(struct mw_session *s)
{
    struct mw_options now = session_options_now(s);

    if (s->answer.n >= ANCHOR_TOKENS)
        anchors_take(&s->answer, ANCHORS_SHOWN, s->m, &now, &s->input, &s->plan);
}

/* Are these the options that asked for the drafter that was closed? */
static bool asks_the_same(const struct mw_session *s, const struct mw_options *o)
{
    struct mw_options before = s->settled.asked;

    before.draft = s->drafts.left;
    return s->drafts.was_left && before.memory_choice == o->memory_choice &&
           before.draft_depth == o->draft_depth &&
           options_reach(s->m, &before, o) == MW_REACH_NOTHING;
}

static bool is_other_drafter(const struct mw_options *now, const struct mw_options *then)
{
    struct mw_options o = *now;

    o.draft = then->draft;
    o.draft_file = then->draft_file;
    o.draft_copies = then->draft_copies;
    return options_reach(NULL, now, &o) != MW_REACH_NOTHING;
}

/* These options are in force.  Those that open a closed drafter forget that it lost. */
static void use_options(struct mw_session *s, bool is_left)
{
    s->drafts.was_left = is_left;
    if (!is_left)
        s->drafts.gap = (struct depth_gap){ 0 };
}

/* Does the plan have what these options ask for to draft, or did it leave that out? */
static bool has_drafter(const struct mw_options *o, const struct plan *p)
{
    bool needs_head = o->draft == MW_DRAFT_AUTO || o->draft == MW_DRAFT_MTP;

    return p->n_draft > 0 && (p->has_head || !needs_head);
}

/* Try to open a closed drafter. */
struct try {
    session_opens_fn *opens;
    void *ctx;
};

/* try: NULL for other changes. */
static int set(struct mw_session *s, const struct mw_options *o, const struct try *try,
               struct err *e)
{
    struct mw_options without = *o;
    struct change c = { .head_why = ERR_INIT };
    struct err ignored = ERR_INIT;
    struct mw_limits l;
    char has[24], holds[24];
    bool is_left = asks_the_same(s, o), is_new, is_enough;
    int rc;

    if (is_left)
        mw_options_without_drafter(&without);
    if (settled_options(s->m, &s->settled, &without, &c.settled, e) != 0)
        return -1;
    if (c.settled.o.draft_depth != s->settled.o.draft_depth)
        depth_try_again(&s->drafts.depth);
    is_new = c.settled.asked.memory_choice != s->settled.asked.memory_choice ||
             c.settled.asked.memory_bytes != s->settled.asked.memory_bytes;
    if (s->work != NULL && (!is_new || s->plan.budget_bytes == c.settled.o.memory_bytes) &&
        options_reach(s->m, &s->settled.o, &c.settled.o) == MW_REACH_NOTHING) {
        s->settled = c.settled;
        use_options(s, is_left);
        if (is_new)
            session_follow_memory(s, true);
        return 0;
    }
    if (settled_plan(s->m, &c.settled, session_expert_use(s, &l), &c.plan, e) != 0)
        return -1;
    is_enough = session_keep_breath(s, &c.settled, try != NULL, &c.plan);
    if (try != NULL && (!is_enough || !has_drafter(&c.settled.o, &c.plan)))
        return err_set(e, ERR_BUDGET, "no memory is left for the drafter now");
    if (is_left)
        c.plan.no_drafter = MW_DRAFTER_CLOSED;
    find_reach(s, &c);
    if (!c.replaces && c.settled.o.n_ctx < mw_session_tokens(s))
        return err_set(e, ERR_CONTEXT,
                       "the session holds %s tokens, which do not fit a context of %s",
                       numbers_count(has, sizeof has, mw_session_tokens(s)),
                       numbers_count(holds, sizeof holds, c.settled.o.n_ctx));
    if (try != NULL && try->opens != NULL)
        try->opens(try->ctx, &c.settled.o);
    session_drop_drafts(s);
    (void)follow_drafts(s, &ignored); /* its values go with the workspace */
    if (is_other_drafter(&s->settled.o, &c.settled.o)) /* its drafts may be better or worse */
        depth_begin(&s->drafts.depth);
    depth_forget_costs(&s->drafts.depth);
    depth_try_again(&s->drafts.depth);
    if (c.works || !same_speed(&s->plan, &c.plan)) {
        remember_newest(s);
        telemetry_new_plan(s->telemetry);
    }
    s->breath.is_paused = true; /* the budget in force is that of the options before */
    rc = change(s, &c, e);
    if (rc == 0)
        use_options(s, is_left);
    s->breath.is_paused = false;
    s->pass_end_ns = 0; /* what is observed of a pass begins again */
    if (rc == 0 || s->work == NULL)
        session_follow_memory(s, is_new);
    if (s->work != NULL)
        publish_plan(s);
    else
        publish_budget(s, &s->plan, false);
    session_set_progress(s, s->progress, s->progress_ctx); /* of a new forward pass, too */
    if (rc == 0 && try != NULL)
        *e = c.head_why;
    else if (rc == 0 && c.head_why.code != ERR_NONE && c.head_why.code != ERR_CANCELLED)
        s->drafts.lost = c.head_why;
    return rc;
}

int session_set(struct mw_session *s, const struct mw_options *o, struct err *e)
{
    const enum mw_draft draft = o->draft;

    if (set(s, o, NULL, e) != 0)
        return -1;
    if (s->plan.has_head && s->head == NULL) {
        leave_lost_head(s, draft);
        s->drafts.left_share = 1;
        s->drafts.left_s = 0;
        s->drafts.gap.n_lost = 1;
    }
    return 0;
}

int session_set_drafter(struct mw_session *s, const struct mw_options *o, session_opens_fn *opens,
                        void *ctx, struct err *e)
{
    const struct try try = { opens, ctx };

    return set(s, o, &try, e);
}

int mw_session_set_memory(struct mw_session *s, uint64_t memory_bytes, struct err *e)
{
    struct mw_options o = s->settled.asked;

    if (s->drafts.was_left)
        o.draft = s->drafts.left;
    o.memory_bytes = memory_bytes;
    o.memory_choice++;
    return session_set(s, &o, e);
}
