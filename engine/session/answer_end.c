/* The end of an answer: the turn, and the reason if it has no text. */
#include "config.h"

#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"
#include "engine/session/answer_internal.h"

/* Whether a text has no character that people can see. */
static bool is_blank(const char *text, size_t len)
{
    uint32_t cp;
    size_t n;

    for (size_t i = 0; i < len; i += n) {
        n = utf8_decode(text + i, len - i, &cp);
        if (!utf8_is_white(cp) && !visible_hides(cp) && cp >= ' ' && (cp < 0x7f || cp > 0x9f))
            return false;
    }
    return true;
}

static enum mw_empty why_empty(const struct answer_state *r, const struct turn *t)
{
    if (!is_blank(t->text, t->len))
        return MW_NOT_EMPTY;
    if (r->is_own_stop)
        return MW_EMPTY_STOP_TEXT;
    if (r->is_ready && answer_parser_thinks(&r->parser))
        return MW_EMPTY_THINKING;
    if (t->len > 0)
        return MW_EMPTY_BLANK;
    if (t->thinking_len > 0)
        return MW_EMPTY_THOUGHT;
    return r->answer.n > 0 && !r->found_stop && !r->parser.is_over ? MW_EMPTY_HIDDEN
                                                                   : MW_EMPTY_NOTHING;
}

/* Whether the prompt differs with thinking on and off. */
static bool has_think_switch(const struct answer_state *r)
{
    uint32_t n_ctx = session_options(r->a->session)->n_ctx;
    struct rendering on = r->a->rendering, off = on;
    struct ids with = { .max = n_ctx }, without = { .max = n_ctx };
    struct err ignored = ERR_INIT;
    bool differs;

    on.think = MW_THINK_ON;
    off.think = MW_THINK_OFF;
    differs = conversation_render(r->a->conversation, &on, r->turn, &with, &ignored) != 0 ||
              conversation_render(r->a->conversation, &off, r->turn, &without, &ignored) != 0 ||
              with.n != without.n ||
              (with.n > 0 && memcmp(with.id, without.id, with.n * sizeof *with.id) != 0);
    ids_free(&with);
    ids_free(&without);
    return differs;
}

/* Find out whether the thinking that took all tokens can be switched off. */
static void judge_thinking(struct answer_state *r)
{
    bool has_switch;

    if (r->receipt.empty != MW_EMPTY_THINKING && r->receipt.empty != MW_EMPTY_THOUGHT)
        return;
    has_switch = has_think_switch(r);
    r->receipt.has_no_switch = !has_switch;
    r->receipt.can_think_less = has_switch && r->a->rendering.think != MW_THINK_OFF;
}

bool answer_end_turn(struct answer_state *r, bool is_continued)
{
    struct turn *t = answer_turn(r);
    enum mw_done *done = &r->receipt.done;

    if (r->is_ready && *done == MW_DONE_STOP && !r->found_stop)
        answer_say_end(r);
    else if (r->is_ready && *done != MW_DONE_STOP)
        answer_keep_held(r);
    if (r->is_lost)
        *done = MW_DONE_ERROR;
    r->receipt.empty = why_empty(r, t);
    judge_thinking(r);
    r->receipt.has_stop_text = *done == MW_DONE_STOP && r->found_stop && r->is_own_stop;
    if (r->found_stop || r->parser.is_over)
        r->answer.n = 0; /* the last ids do not belong to the answer */
    ids_free(&t->ids);
    t->ids = r->answer;
    r->answer = (struct ids){ 0 };
    t->has_saved_ids = t->has_saved_ids && !r->is_ready;
    turn_trim(t);
    if (is_continued || t->len > 0 || t->thinking_len > 0 ||
        (t->ids.n > 0 && (*done == MW_DONE_LENGTH || *done == MW_DONE_CONTEXT)))
        return true;
    if (*done == MW_DONE_STOP) /* the next one must differ from it */
        conversation_cut_answer(r->a->conversation);
    else
        conversation_cut(r->a->conversation, r->turn);
    return false;
}

void answer_post_done(struct answer_state *r, bool has_answer)
{
    struct mw_event done = {
        .kind = MW_EVENT_DONE, .receipt = r->receipt, .err = r->err, .has_answer = has_answer
    };
    const struct turn *t = has_answer ? answer_turn(r) : NULL;

    mw_session_plan(r->a->session, &done.plan); /* its drafter may have been closed */
    if (t != NULL && r->receipt.done != MW_DONE_STOP) {
        done.cut = (struct mw_cut){ .ids = t->ids.id,
                                    .n_ids = t->ids.n <= MW_CUT_IDS ? t->ids.n : 0,
                                    .n_held = t->n_held,
                                    .holds_thinking = t->holds_thinking };
        done.is_thinking = t->holds_thinking;
        done.len = t->n_held;
        if (t->n_held > 0)
            done.text = t->holds_thinking ? t->thinking + t->thinking_len - t->n_held
                                          : t->text + t->len - t->n_held;
    }
    events_post(r->a->events, &done);
}
