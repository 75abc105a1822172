/* The beginning of a prompt that other chats have in common: see beginnings.h. */
#include "config.h"

#include "engine/session/answer_internal.h"

/* Returns how many ids of the prompt do not depend on the question, found by another question.
 */
static uint32_t count_common(const struct answer_state *r)
{
    const struct conversation *c = r->a->conversation;
    char text[] = ".";
    struct turn other = { .role = CHAT_USER, .text = text, .len = 1 };
    struct conversation asks = { .system = c->system, .turns = &other, .n_turn = 1 };
    struct ids ids = { .max = r->prompt.max };
    struct err ignored = ERR_INIT;
    uint32_t n = 0;

    if (c->asked != NULL || c->system == NULL || r->a->rendering.format == NULL)
        return 0;
    if (conversation_render(&asks, &r->a->rendering, 1, &ids, &ignored) == 0)
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

int answer_use_beginning(struct answer_state *r, uint32_t *kept, struct err *e)
{
    struct mw_session *s = r->a->session;
    struct saved_kv_call call = { .stops = is_stopped, .stops_ctx = r };
    struct beginning_use use;

    if (r->a->beginnings == NULL || (*kept >= KV_PAGE && r->turn > 1))
        return 0;
    beginnings_use(r->a->beginnings, s, r->prompt.id, (uint32_t)r->prompt.n, count_common(r),
                   r->turn <= 1 && answer_turn(r)->attempt == 0, &call, &use);
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
