/* The beginning of a prompt that other chats have in common: see beginnings.h. */
#include "config.h"

#include "engine/session/answer_internal.h"

/* Returns how many ids of the prompt do not depend on the question, found by another question.
 */
static uint32_t count_common(const struct answer_state *r)
{
    struct ids ids = { .max = r->prompt.max };
    struct err ignored = ERR_INIT;
    uint32_t n = 0;

    if (conversation_render_other(r->a->conversation, &r->a->rendering, &ids, &ignored) == 0)
        while (n < ids.n && n < r->prompt.n && ids.id[n] == r->prompt.id[n])
            n++;
    ids_free(&ids);
    return n;
}

static bool is_stopped(void *ctx)
{
    const struct answer_state *r = ctx;

    return cancel_is_set(r->a->cancel);
}

/* Whether a prompt of before that begins like this one is of another chat.  A request says
 * nothing about its chat, but one that the session holds up to its end was just asked.  A text
 * that is continued grows, so it begins like the one before it. */
static bool is_new(struct answer_state *r, uint32_t same)
{
    const struct conversation *c = r->a->conversation;

    if (r->a->rendering.format == NULL || !conversation_asks_first(c, r->turn) ||
        answer_turn(r)->attempt > 0)
        return false;
    return c->asked == NULL || same + 1 < r->prompt.n;
}

int answer_use_beginning(struct answer_state *r, uint32_t same, uint32_t *kept, struct err *e)
{
    struct mw_session *s = r->a->session;
    struct saved_kv_call call = { .stops = is_stopped, .stops_ctx = r };
    struct beginning_use use;

    if (r->a->beginnings == NULL || (*kept >= KV_PAGE && r->turn > 1))
        return 0;
    beginnings_use(r->a->beginnings, s, r->prompt.id, (uint32_t)r->prompt.n, count_common(r),
                   is_new(r, same), &call, &use);
    *kept = mw_session_tokens(s);
    if (use.err.code == ERR_CANCELLED) {
        *e = use.err;
        return -1;
    }
    if (use.n_token > 0 || use.err.code != ERR_NONE)
        events_post(r->a->events, &(struct mw_event){ .kind = MW_EVENT_KV_SHARED,
                                                      .n = use.n_token,
                                                      .total = use.bytes,
                                                      .ns = use.ns,
                                                      .err = use.err });
    return 0;
}
