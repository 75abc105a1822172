/*
 * The context is full: say so, and offer what can be done.
 *
 * Each choice carries out all that it takes and then goes on with the answer, so that one
 * Enter is enough.  Nothing is dropped unless it is chosen here or was by /shift on.
 */
#include "config.h"

#include "ui/talk/full.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/change.h"
#include "ui/text/sheet.h"
#include "ui/text/clean.h"

enum { DO_UNDO = TALK_MAX_OFFERS, DO_CLEAR };

static void choose(void *ctx, long number)
{
    struct talk *t = ctx;
    bool dropped = t->options.engine.ctx_shift;

    if (number == DO_UNDO)
        talk_enter(t, "/undo");
    else if (number == DO_CLEAR)
        talk_enter(t, "/clear");
    else if (number >= 0 && (size_t)number < t->n_offer)
        talk_set_and_go_on(t, &t->offer[number]);
    if (t->options.engine.ctx_shift && !dropped)
        talk_notice(t,
                    "from now on the oldest turns are dropped, and each time it is said which");
}

/* The line that was begun stands for these options. */
static void offer(struct talk *t, struct sheet *s, const struct mw_chat_options *o)
{
    sheet_choice(s, (long)t->n_offer);
    t->offer[t->n_offer++] = *o;
}

static void offer_longer(struct talk *t, struct sheet *s)
{
    struct mw_chat_options o = t->options;
    struct err ignored = ERR_INIT;
    uint64_t smallest;
    uint32_t largest = 0;
    char price[160];

    o.engine.n_ctx = t->plan.n_ctx * 2;
    if (!change_price(t, &o, price, sizeof price)) {
        if (mw_plan_fit(t->model, &t->options.engine, &smallest, &largest, &ignored) != 0 ||
            largest <= t->plan.n_ctx)
            return;
        o.engine.n_ctx = largest;
        if (!change_price(t, &o, price, sizeof price))
            return;
    }
    sheet_line(s, ROLE_TEXT, "a longer context");
    offer(t, s, &o);
    sheet_line(s, ROLE_DIM, "    %s", price);
}

static void offer_smaller_kv(struct talk *t, struct sheet *s)
{
    struct mw_chat_options o = t->options;
    char price[160];

    if (o.engine.kv_k >= MW_KV_Q4_0)
        return;
    o.engine.kv_k = o.engine.kv_v = o.engine.kv_k >= MW_KV_Q8_0 ? MW_KV_Q4_0 : MW_KV_Q8_0;
    o.engine.n_ctx = t->plan.n_ctx * 2;
    if (!change_price(t, &o, price, sizeof price))
        return;
    sheet_line(s, ROLE_TEXT, "%s keys and values, which leaves room for a longer context",
               mw_kv_name(o.engine.kv_k));
    offer(t, s, &o);
    sheet_line(s, ROLE_DIM, "    %s", price);
}

static void offer_shift(struct talk *t, struct sheet *s)
{
    struct mw_chat_options o = t->options;
    char *text, first[48] = "";

    if (o.engine.ctx_shift)
        return;
    text =
        t->n_dropped + 2 < t->n_message ? t->front.text_of(t->front.ctx, t->n_dropped) : NULL;
    if (text == NULL)
        return;
    clean_line(first, sizeof first, text, strnlen(text, 40));
    free(text);
    o.engine.ctx_shift = true;
    sheet_line(s, ROLE_TEXT, "drop the oldest turns, \"%s\" first", first);
    offer(t, s, &o);
}

void full_offer(struct talk *t)
{
    struct sheet *s = sheet_new("The context is full", "Enter does it, Esc leaves it");

    talk_error(t,
               "the context of %u tokens is full; nothing was dropped. /ctx makes it longer, "
               "/kv smaller, /shift on drops the oldest turns, /undo takes the last one back; "
               "then /continue goes on",
               t->plan.n_ctx);
    if (s == NULL)
        return;
    t->n_offer = 0;
    sheet_text(s, ROLE_DIM, "The answer goes on with:");
    offer_longer(t, s);
    offer_smaller_kv(t, s);
    offer_shift(t, s);
    sheet_text(s, ROLE_DIM, "Or:");
    sheet_line(s, ROLE_TEXT, "take the last exchange back");
    sheet_choice(s, DO_UNDO);
    sheet_line(s, ROLE_TEXT, "begin a new chat");
    sheet_choice(s, DO_CLEAR);
    sheet_on_enter(s, choose, t);
    t->front.sheet(t->front.ctx, s);
}

/* ---- what was dropped ---- */

void full_dropped(struct talk *t, size_t n, char *buf, size_t room)
{
    char *text = n > 0 ? t->front.text_of(t->front.ctx, 0) : NULL;
    char first[48] = "";

    if (text != NULL)
        clean_line(first, sizeof first, text, strnlen(text, 40));
    free(text);
    snprintf(buf, room,
             "the context was full: the model no longer sees the oldest %zu messages, from "
             "\"%s\" on; they are marked x",
             n, first);
    t->n_dropped = n;
    t->n_absent = 0; /* what was dropped stays dropped */
    t->front.dropped(t->front.ctx, n);
}
