/*
 * Each choice does everything that it needs and then continues the answer.  Nothing is dropped
 * unless the person chooses it here or did with /shift on.  Nobody asked for the sheet, so no
 * choice is highlighted when it opens.
 */
#include "config.h"

#include "ui/talk/context_full.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/change_sheet.h"
#include "ui/talk/commands.h"
#include "ui/text/sheet.h"

#define MAX_OFFERS 3

/* Options that let the answer continue; the first choices of the sheet are their numbers.  The
 * others come after them. */
struct offers {
    struct talk *t;
    struct mw_chat_options options[MAX_OFFERS];
    size_t n;
    long compact, undo, clear; /* -1: not offered */
};

static void choose(void *ctx, long number)
{
    const struct offers *o = ctx;

    if (number >= 0 && number == o->undo) {
        command_enter(o->t, "/undo");
    } else if (number >= 0 && number == o->clear) {
        command_enter(o->t, "/clear");
    } else if (number >= 0 && number == o->compact) {
        talk_compact(o->t, 1, true);
    } else if (number >= 0) {
        const struct mw_chat_options *chosen = &o->options[number];
        bool shifts = chosen->engine.ctx_shift && !talk_options(o->t)->engine.ctx_shift;
        char what[40], count[24];

        numbers_count(count, sizeof count, chosen->engine.n_ctx);
        snprintf(what, sizeof what, shifts ? "shift on" : "ctx %s", count);
        talk_change(o->t, chosen, shifts ? THEN_CONTINUE : THEN_CONTINUE | THEN_ANNOUNCE, what);
        if (shifts)
            talk_notice(o->t,
                        "the oldest turns are dropped from now on when necessary; a notice "
                        "names them");
    }
}

/* The last line of s offers these options. */
static void offer(struct offers *all, struct sheet *s, const struct mw_chat_options *o)
{
    sheet_choice(s, (long)all->n);
    all->options[all->n++] = *o;
}

/* Whether every longer context is more than the model was trained for. */
static bool is_trained_length_used(const struct offers *all)
{
    uint32_t trained = talk_info(all->t)->n_ctx_train;

    return trained > 0 && talk_plan(all->t)->n_ctx >= trained;
}

/* Returns twice the current context, but no more than the model was trained for if that is
 * longer than now. */
static uint32_t longer_context(const struct offers *all)
{
    uint32_t now = talk_plan(all->t)->n_ctx, trained = talk_info(all->t)->n_ctx_train;

    return trained > now && trained / 2 < now ? trained : now * 2;
}

static void warn_of_training(const struct offers *all, struct sheet *s)
{
    char count[24];

    if (is_trained_length_used(all))
        sheet_line(s, ROLE_WARN, "    more than the %s tokens that the model was trained for",
                   numbers_count(count, sizeof count, talk_info(all->t)->n_ctx_train));
}

static void offer_longer(struct offers *all, struct sheet *s)
{
    struct mw_chat_options o = *talk_options(all->t);
    uint32_t now = talk_plan(all->t)->n_ctx, largest = 0;
    uint64_t smallest;
    char price[160];

    o.engine.n_ctx = longer_context(all);
    if (!change_price(all->t, &o, price, sizeof price)) {
        if (!talk_try_fit(all->t, &talk_options(all->t)->engine, &smallest, &largest) ||
            largest <= now)
            return;
        o.engine.n_ctx = largest;
        if (!change_price(all->t, &o, price, sizeof price))
            return;
    }
    sheet_line(s, ROLE_TEXT, "a longer context");
    offer(all, s, &o);
    sheet_line(s, ROLE_DIM, "    %s", price);
    warn_of_training(all, s);
}

static void offer_smaller_kv(struct offers *all, struct sheet *s)
{
    struct mw_chat_options o = *talk_options(all->t);
    char price[160];

    if (o.engine.kv_k >= MW_KV_Q4_0)
        return;
    o.engine.kv_k = o.engine.kv_v = o.engine.kv_k >= MW_KV_Q8_0 ? MW_KV_Q4_0 : MW_KV_Q8_0;
    o.engine.n_ctx = longer_context(all);
    if (!change_price(all->t, &o, price, sizeof price))
        return;
    sheet_line(s, ROLE_TEXT, "%s keys and values, which leaves room for a longer context",
               mw_kv_name(o.engine.kv_k));
    offer(all, s, &o);
    sheet_line(s, ROLE_DIM, "    %s", price);
    warn_of_training(all, s);
}

static bool can_shift(const struct offers *all)
{
    const struct ledger *l = talk_ledger(all->t);

    return !talk_options(all->t)->engine.ctx_shift && l->n_dropped + 2 < l->n;
}

/* The engine frees an eighth of the context and evaluates the rest again. */
static void price_of_shift(struct talk *t, char *buf, size_t n)
{
    uint32_t n_ctx = talk_plan(t)->n_ctx, most = n_ctx - n_ctx / 8;
    char count[24], time[32], takes[48] = "";
    struct mw_cost cost;

    talk_cost_again(t, talk_plan(t), &cost);
    if (cost.seconds > 0 && cost.n_again > 0)
        snprintf(takes, sizeof takes, ": %s",
                 numbers_time(time, sizeof time, cost.seconds * most / cost.n_again));
    snprintf(buf, n, "the same context; at most %s tokens again%s",
             numbers_count(count, sizeof count, most), takes);
}

static void offer_shift(struct offers *all, struct sheet *s)
{
    struct mw_chat_options o = *talk_options(all->t);
    char first[48], price[100];

    if (talk_oldest_text(all->t, first, sizeof first)[0] == '\0')
        return;
    o.engine.ctx_shift = true;
    price_of_shift(all->t, price, sizeof price);
    sheet_line(s, ROLE_TEXT, "drop the oldest turns, \"%s\" first", first);
    offer(all, s, &o);
    sheet_line(s, ROLE_DIM, "    %s", price);
}

/* The options are complete, so the numbers after them are known. */
static void offer_summary(struct offers *all, struct sheet *s)
{
    char price[80];

    all->compact = talk_can_compact(all->t) ? (long)all->n : -1;
    all->undo = (long)all->n + (all->compact >= 0);
    all->clear = all->undo + 1;
    if (all->compact < 0)
        return;
    talk_compact_price(all->t, price, sizeof price);
    sheet_line(s, ROLE_TEXT, "a summary of the oldest messages in their place");
    sheet_choice(s, all->compact);
    sheet_line(s, ROLE_DIM, "    the same context; the model writes %s; /undo takes it back",
               price);
}

void context_full_say(struct talk *t)
{
    bool shifts = talk_options(t)->engine.ctx_shift;
    char ctx[24];

    talk_error(t,
               "the context of %s tokens is full; %s. Use /ctx for a longer "
               "context, /kv for smaller keys and values, /compact for a summary of the oldest "
               "messages, %sor /undo to take back the last one. "
               "/continue shows what each would cost",
               numbers_count(ctx, sizeof ctx, talk_plan(t)->n_ctx),
               shifts ? "no older turn is left to drop" : "nothing was dropped",
               shifts ? "" : "/shift on to drop the oldest turns, ");
}

void context_full_offer(struct talk *t)
{
    struct sheet *s = sheet_new("The context is full", "Enter: choose   Esc: close");
    struct offers *all = calloc(1, sizeof *all);

    if (s == NULL || all == NULL) {
        sheet_free(s);
        free(all);
        return;
    }
    all->t = t;
    sheet_on_enter(s, choose, free, all);
    sheet_text(s, ROLE_DIM, "The answer continues with:");
    if (!is_trained_length_used(all) || !can_shift(all)) {
        offer_longer(all, s);
        offer_smaller_kv(all, s);
    }
    if (can_shift(all))
        offer_shift(all, s);
    offer_summary(all, s);
    sheet_text(s, ROLE_DIM, "Or:");
    sheet_line(s, ROLE_TEXT, "take the last exchange back");
    sheet_choice(s, all->undo);
    sheet_line(s, ROLE_TEXT, "begin a new chat");
    sheet_choice(s, all->clear);
    sheet_set_unasked(s);
    talk_show(t, s);
}
