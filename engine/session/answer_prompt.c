/* The prompt of an answer, with fewer turns if it does not fit or is refused. */
#include "config.h"

#include <stdio.h>

#include "engine/base/numbers.h"
#include "engine/session/answer_internal.h"

static int make_prompt(struct answer_state *r, struct err *e)
{
    r->prompt.n = 0;
    r->prompt.max = session_options(r->a->session)->n_ctx;
    if (conversation_render(r->a->conversation, &r->a->rendering, r->turn, &r->prompt, e) != 0)
        return -1;
    return ids_append(&r->prompt, r->answer.id, r->answer.n, e);
}

/* Whether no prompt can be made of these messages: the template or the vocabulary refuses one
 * of them. */
static bool is_refusal(const struct err *e)
{
    return e->code == ERR_ARGUMENT || e->code == ERR_FORMAT || e->code == ERR_UNSUPPORTED ||
           e->code == ERR_BUDGET;
}

/* Make the prompt.  Drop the oldest turns while it does not fit, with ctx_shift, and while it
 * is refused.  n_seen: the oldest turn that the model has seen until now. */
static int drop_until_accepted(struct answer_state *r, size_t n_seen, struct err *e)
{
    struct answerer *a = r->a;
    struct conversation *c = a->conversation;
    uint32_t n_ctx = session_options(a->session)->n_ctx;

    for (;;) {
        /* Free an eighth of the context at once; otherwise every token would drop turns. */
        size_t freed = n_seen != c->n_before + c->n_dropped ? n_ctx / 8 : 0;
        int rc = make_prompt(r, e);

        if (rc != 0 && e->code != ERR_CONTEXT && !is_refusal(e))
            return -1;
        if (rc == 0 && (!a->ctx_shift || r->prompt.n + freed < n_ctx))
            return 0;
        if ((!a->ctx_shift && (rc == 0 || e->code == ERR_CONTEXT)) ||
            !conversation_drop_oldest(c))
            return rc;
        *e = (struct err)ERR_INIT;
    }
}

static bool is_accepted(struct answer_state *r)
{
    struct err e = ERR_INIT;

    return make_prompt(r, &e) == 0 || !is_refusal(&e);
}

static bool is_accepted_alone(struct answer_state *r)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;
    bool accepted;

    conversation_drop_all(c);
    accepted = is_accepted(r);
    c->n_dropped = n_dropped;
    return accepted;
}

/* Everything after the dropped turns is refused.  Some templates need a question among the
 * messages: keep the newest one with which they accept the last message. */
static int keep_question(struct answer_state *r, size_t n_seen, struct err *e)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;

    conversation_drop_all(c);
    for (size_t i = c->n_dropped; i > 0; i--) {
        if (c->turns[i - 1].role != CHAT_USER || conversation_is_aside(c, i - 1))
            continue;
        c->kept = i;
        if (is_accepted(r)) {
            c->n_dropped = i > n_dropped ? i : n_dropped;
            *e = (struct err)ERR_INIT;
            return drop_until_accepted(r, n_seen, e);
        }
    }
    c->kept = 0;
    c->n_dropped = n_dropped;
    return -1;
}

/* The prompt does not fit (is_full) or is refused with *e.  Make one with fewer turns. */
static int make_shorter(struct answer_state *r, size_t n_seen, bool is_full, struct err *e)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;

    c->kept = 0;
    if (is_full || is_accepted_alone(r)) {
        *e = (struct err)ERR_INIT;
        if (drop_until_accepted(r, n_seen, e) == 0)
            return 0;
        if (!is_refusal(e))
            return -1;
        c->n_dropped = n_dropped;
    }
    return keep_question(r, n_seen, e);
}

static void post_dropped(struct answer_state *r, size_t n_dropped, bool is_full)
{
    char text[160];
    int n = snprintf(
        text, sizeof text, "%s: the model no longer sees the oldest %zu messages%s",
        is_full ? "the context was full"
                : "the chat template refuses the messages of this chat",
        n_dropped,
        r->a->conversation->kept > 0 ? ", except a question that the chat template needs" : "");

    events_post(r->a->events,
                &(struct mw_event){
                    .kind = MW_EVENT_NOTICE, .text = text, .len = (size_t)n, .n = n_dropped });
}

int answer_fit_prompt(struct answer_state *r, struct err *e)
{
    struct answerer *a = r->a;
    struct conversation *c = a->conversation;
    uint32_t n_ctx = session_options(a->session)->n_ctx;
    size_t before = c->is_partial ? 0 : c->n_before + c->n_dropped, n_dropped;
    bool is_full = c->is_partial, is_whole = c->asked != NULL;
    char has[32], ctx[24];

    numbers_count(ctx, sizeof ctx, n_ctx);
    if (c->is_partial && !a->ctx_shift)
        return err_set(e, ERR_CONTEXT,
                       "the oldest %zu messages of the conversation do not fit the context of "
                       "%s tokens",
                       c->n_before, ctx);
    c->is_partial = false;
    if (make_prompt(r, e) != 0 || is_full || (a->ctx_shift && r->prompt.n >= n_ctx)) {
        is_full = is_full || !is_refusal(e);
        if (is_whole || (is_full && !a->ctx_shift) || make_shorter(r, before, is_full, e) != 0)
            return -1;
    }
    if (r->prompt.n >= n_ctx)
        return err_set(e, ERR_CONTEXT,
                       "a prompt of %s tokens does not fit the context of %s tokens",
                       numbers_count(has, sizeof has, r->prompt.n),
                       ctx);
    n_dropped = c->n_before + c->n_dropped;
    r->turn -= conversation_forget(c, mw_text_bytes(a->m, session_options(a->session)));
    if (n_dropped != before)
        post_dropped(r, n_dropped, is_full);
    return 0;
}
