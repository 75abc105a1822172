/* The figures of a chat while it runs: tokens of the context, plans, costs of messages. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/session/chat_internal.h"
#include "engine/session/prompt_cost.h"

#define TURN_MARKS 8  /* tokens around a message, for estimates */
#define AGAIN_MIN  32 /* fewer tokens than this are only the marks of the next turn */

size_t chat_held(struct mw_chat *c, size_t *n)
{
    struct err ignored = ERR_INIT;
    struct ids all = { .max = c->session != NULL ? session_options(c->session)->n_ctx : 0 };
    size_t same = 0, held = c->session != NULL ? mw_session_tokens(c->session) : 0;
    bool is_over = false;

    if (c->answerer.rendering.tokenizer != NULL && c->conversation.n_turn > 0 && all.max > 0)
        is_over = conversation_render(&c->conversation, &c->answerer.rendering,
                                      c->conversation.n_turn, &all, &ignored) != 0 &&
                  ignored.code == ERR_CONTEXT;
    while (same < held && same < all.n && session_ids(c->session)[same] == all.id[same])
        same++;
    *n = is_over ? all.max : all.n;
    ids_free(&all);
    return same;
}

void chat_look_ahead(struct mw_chat *c)
{
    size_t n, same = chat_held(c, &n);

    pthread_mutex_lock(&c->lock);
    c->n_ahead = (uint32_t)n;
    c->n_again = n - same >= AGAIN_MIN ? (uint32_t)(n - same) : 0;
    c->prompt_compute_s = c->answerer.prompt_compute_s;
    pthread_mutex_unlock(&c->lock);
    if (c->session != NULL) /* a budget of `auto` or a losing drafter may have changed it */
        chat_keep_plan(c);
}

static uint32_t held_now(const struct mw_chat *c)
{
    return c->session == NULL
               ? 0
               : (uint32_t)counter_get(&session_telemetry(c->session)->kv_tokens);
}

/* The same once the prompt that is read now is evaluated. */
static uint32_t held_after_prompt(const struct mw_chat *c)
{
    uint32_t held = held_now(c), all;
    const struct telemetry *t;

    if (c->session == NULL)
        return 0;
    t = session_telemetry(c->session);
    if (counter_get(&t->state) != MW_PREFILL)
        return held;
    all = (uint32_t)(counter_get(&t->n_reused) + counter_get(&t->n_prompt));
    return all > held ? all : held;
}

/* Returns the tokens of the conversation.  It differs from the tokens held by the marks of the
 * next turn, which are not worth reporting.  The lock is held. */
static uint32_t context_now(const struct mw_chat *c)
{
    uint32_t held = held_now(c), ahead = c->n_ahead;

    if (c->is_working || (held < ahead + AGAIN_MIN && ahead < held + AGAIN_MIN))
        return held;
    return ahead;
}

void mw_chat_sample(struct mw_chat *c, struct mw_sample *out)
{
    pthread_mutex_lock(&c->lock);
    if (c->session != NULL) {
        mw_session_sample(c->session, out);
        out->kv.context = context_now(c);
    } else {
        memset(out, 0, sizeof *out);
        out->state = MW_LOADING;
        out->t_ns = clock_ns();
    }
    pthread_mutex_unlock(&c->lock);
}

int mw_chat_plan(struct mw_chat *c, const struct mw_options *o, struct plan *out, struct err *e)
{
    struct settled before, then;

    pthread_mutex_lock(&c->lock);
    before = c->settled;
    pthread_mutex_unlock(&c->lock);
    if (settled_options(c->m, &before, o, &then, e) != 0)
        return -1;
    return settled_plan(c->m, &then, NULL, out, e);
}

/* The basis of a cost with this plan, if `held` bytes of the file's weights are in memory.
 * The caller frees it; NULL: there is no memory. */
static struct cost_basis *basis_new(struct mw_chat *c, const struct plan *plan, uint64_t held)
{
    struct mw_options o;
    double pace_s;

    pthread_mutex_lock(&c->lock);
    o = c->settled.chunk_target != 0 ? c->settled.o : c->settings.o.engine;
    pace_s = c->prompt_compute_s;
    pthread_mutex_unlock(&c->lock);
    return cost_basis_new(c->m, &o, plan, held, pace_s);
}

int mw_chat_cost(struct mw_chat *c, uint32_t n_token, struct mw_cost *out, struct err *e)
{
    struct mw_sample *sample = malloc(sizeof *sample);
    struct cost_basis *basis;
    struct plan plan;
    uint32_t n_ahead;

    *out = (struct mw_cost){ .n_token = n_token + TURN_MARKS };
    if (sample == NULL)
        return err_memory(e, "the cost of a message");
    mw_chat_sample(c, sample);
    pthread_mutex_lock(&c->lock);
    plan = c->plan;
    out->n_again = c->n_again;
    n_ahead = c->n_ahead;
    pthread_mutex_unlock(&c->lock);
    /* The same tokens are left as in the sample.  The marks of the turn are the message's. */
    if (sample->kv.capacity > sample->kv.context)
        out->n_ctx_left = (uint32_t)(sample->kv.capacity - sample->kv.context);
    if (n_ahead > sample->kv.context)
        out->n_ahead = (uint32_t)(n_ahead - sample->kv.context);
    out->n_token += out->n_ahead;
    basis = basis_new(c, &plan, sample->mem.used[MW_ROW_PINNED] + sample->mem.saved_bytes);
    free(sample);
    if (basis == NULL)
        return err_memory(e, "the cost of a message");
    basis->n_before = n_ahead > out->n_again ? n_ahead - out->n_again : 0;
    cost_estimate(basis, out);
    free(basis);
    return 0;
}

void mw_chat_cost_again(struct mw_chat *c, const struct plan *plan, struct mw_cost *out)
{
    struct cost_basis *basis;
    uint32_t n_held;

    *out = (struct mw_cost){ 0 };
    pthread_mutex_lock(&c->lock);
    /* Tokens whose keys and values are held.  Such a change waits for the end of the answer. */
    n_held = c->is_working ? held_after_prompt(c) : 0;
    out->n_again = c->n_ahead > n_held ? c->n_ahead : n_held;
    pthread_mutex_unlock(&c->lock);
    if (out->n_again == 0)
        return;
    basis = basis_new(c, plan, plan->pinned_bytes + plan->saved_bytes);
    if (basis != NULL)
        cost_estimate(basis, out);
    free(basis);
}

uint32_t mw_chat_tokens(struct mw_chat *c)
{
    uint32_t tokens;

    pthread_mutex_lock(&c->lock);
    tokens = context_now(c);
    pthread_mutex_unlock(&c->lock);
    return tokens;
}
