/*
 * A budget of `auto` that follows the free memory (breathing.h): the plan of a session shrinks and
 * grows, and its memory with it.
 *
 *     between two passes   everything that plan_with_budget() gives and takes
 *     in a pass            weights only shrink: pinned blocks between two blocks, experts between
 *                          two layers.  The rest follows when the pass has ended.
 *     in a KV file         the same between two pieces: a long chat takes seconds to read or write
 *
 * Which weights are in memory changes no bit of the result.
 */
#include "config.h"

#include "engine/session/session_internal.h"

#include "engine/base/clock.h"
#include "engine/plan/plan.h"
#include "engine/session/plan_input.h"

struct mw_options session_options_now(const struct mw_session *s)
{
    struct mw_options o = s->settled.o;

    o.memory_bytes = s->plan.budget_bytes;
    return o;
}

static bool input_now(struct mw_session *s, const struct settled *settled, struct plan_input *in)
{
    const struct mw_expert_use *use;
    struct err ignored = ERR_INIT;
    struct mw_limits l;

    if (plan_input_of(s->m, &settled->o, in, &ignored) != 0)
        return false;
    use = session_expert_use(s, &l);
    if (use != NULL)
        in->expert_use = *use;
    return true;
}

/* --- bounds --- */

static bool is_elastic(const struct mw_session *s, const struct settled *settled)
{
    return settled->asked.memory_bytes == 0 && settled->free_bytes > 0 &&
           !stream_is_mapped(s->weights.stream);
}

static bool bounds_of(struct mw_session *s, struct breathing_bounds *out)
{
    struct plan least, most;
    struct plan_input in;

    if (!input_now(s, &s->settled, &in))
        return false;
    (void)plan_with_budget(&in, &s->plan, 0, &least);
    (void)plan_with_budget(&in, &s->plan, UINT64_MAX, &most);
    *out = (struct breathing_bounds){ .least = least.sum_bytes,
                                      .most = most.sum_bytes,
                                      .budget = s->plan.budget_bytes,
                                      .free_bytes = s->settled.free_bytes };
    return true;
}

static void publish_next(struct mw_session *s, const struct plan_input *in)
{
    counter_set(&s->telemetry->budget_chosen, s->settled.o.memory_bytes);
    counter_set(&s->telemetry->budget_next, plan_next_to_give(in, &s->plan));
}

static void stop(struct mw_session *s)
{
    breathing_stop(s->breathing);
    s->breathing = NULL;
}

void session_follow_memory(struct mw_session *s, bool is_new)
{
    struct breathing_bounds bounds;
    struct err ignored = ERR_INIT;
    struct plan_input in;

    if (is_new || s->work == NULL || !is_elastic(s, &s->settled))
        stop(s);
    if (s->work == NULL || !is_elastic(s, &s->settled) || !bounds_of(s, &bounds))
        return;
    if (input_now(s, &s->settled, &in))
        publish_next(s, &in);
    s->breath.seen = bounds.budget;
    if (s->breathing != NULL)
        breathing_rebound(s->breathing, &bounds);
    else if (breathing_start(&s->breathing, "", &bounds, s->telemetry, &ignored) == 0)
        breathing_wakes(s->breathing, s->breath.wake, s->breath.wake_ctx);
}

void session_stop_following(struct mw_session *s)
{
    stop(s);
}

void session_set_wake(struct mw_session *s, void (*fn)(void *ctx), void *ctx)
{
    s->breath.wake = fn;
    s->breath.wake_ctx = ctx;
    if (s->breathing != NULL)
        breathing_wakes(s->breathing, fn, ctx);
}

static bool has_other_budget(const struct mw_session *s)
{
    return s->breathing != NULL && breathing_budget(s->breathing) != s->breath.seen;
}

bool session_has_breath(const struct mw_session *s)
{
    return s->breathing != NULL && (s->breath.is_half || has_other_budget(s));
}

bool session_keep_breath(struct mw_session *s, const struct settled *then, bool is_try,
                         struct plan *p)
{
    uint64_t was = s->settled.o.memory_bytes, now = s->plan.budget_bytes, budget;
    struct err ignored = ERR_INIT;
    struct plan_input in;
    struct plan other;
    bool is_enough;

    if (s->breathing == NULL || now == was || !is_elastic(s, then) ||
        then->asked.memory_choice != s->settled.asked.memory_choice ||
        !input_now(s, then, &in))
        return true;
    if (now > was)
        budget = p->budget_bytes + (now - was);
    else
        budget = p->budget_bytes > was - now ? p->budget_bytes - (was - now) : 0;
    if (is_try && now < was && budget > now)
        budget = now;
    if (p->low_bytes > 0) { /* copies are of the blocks that are not pinned */
        uint64_t least = plan_smallest_budget(&in);

        in.budget_bytes = budget > least ? budget : least;
        in.chunk_target = then->chunk_target;
        if (plan_make(&in, &other, &ignored) == 0)
            *p = other;
        return budget >= least;
    }
    is_enough = plan_with_budget(&in, p, budget, &other);
    if (!is_enough) /* then the least */
        (void)plan_with_budget(&in, p, other.sum_bytes, &other);
    if (other.sum_bytes <= other.budget_bytes)
        *p = other;
    return is_enough;
}

/* --- following --- */

/* Plan with the budget to have now.  Returns whether the plan is another one. */
static bool plan_again(struct mw_session *s, uint64_t budget)
{
    struct plan_input in;
    struct plan p;

    s->breath.seen = budget;
    if (!input_now(s, &s->settled, &in) || !plan_with_budget(&in, &s->plan, budget, &p))
        return false;
    s->breath.is_less = p.budget_bytes < s->plan.budget_bytes;
    plan_predict(&in, &s->plan); /* by the same limits */
    if (p.pass_tps > 0 && s->plan.pass_tps > 0)
        depth_scale(&s->drafts.depth, s->plan.pass_tps / p.pass_tps);
    s->plan = p;
    publish_next(s, &in);
    return true;
}

static void note_delay(struct mw_session *s)
{
    if (s->breath.is_less)
        counter_set(&s->telemetry->budget_delay_ns,
                    clock_ns() - breathing_decided_ns(s->breathing));
}

bool session_breathe(struct mw_session *s)
{
    struct err ignored = ERR_INIT;
    bool is_new;

    if (s->breath.is_paused)
        return false;
    is_new = has_other_budget(s) && plan_again(s, breathing_budget(s->breathing));
    if (!is_new && !s->breath.is_half)
        return false;
    s->breath.is_half = false;
    copies_set_room(s->copies, s->plan.n_copy);
    (void)session_keep_rows(s, s->plan.keeps_rows, &ignored);
    return is_new;
}

void session_breathed(struct mw_session *s)
{
    if (s->work != NULL)
        publish_plan(s);
    note_delay(s);
}

void session_settle(struct mw_session *s)
{
    struct err ignored = ERR_INIT; /* the next pass tries again */

    (void)settle_memory(s, 0, &ignored);
}

void session_between(void *ctx, bool is_layer)
{
    struct mw_session *s = ctx;
    struct room to = s->weights.room, room;
    struct err ignored = ERR_INIT;
    uint64_t budget;
    bool is_new;

    if (s->breathing == NULL)
        return;
    budget = breathing_budget(s->breathing);
    is_new = budget != s->breath.seen && budget < s->plan.budget_bytes;
    if (!is_new && !(is_layer && s->breath.has_experts))
        return;
    if (is_new && !plan_again(s, budget))
        return;
    s->breath.is_half |= is_new;
    room = session_room(s, &s->plan, s->breath.kv_bytes);
    if (room.pinned_bytes < to.pinned_bytes) {
        to.pinned_bytes = room.pinned_bytes;
        to.n_slot = to.n_slot > 0 ? to.n_slot : room.n_slot;
    }
    s->breath.has_experts = !is_layer && room.expert_bytes < to.expert_bytes;
    if (is_layer && room.expert_bytes < to.expert_bytes)
        to.expert_bytes = room.expert_bytes;
    (void)session_set_room(s, &to, &ignored); /* after an error the next pass tries again */
    session_breathed(s);
}
