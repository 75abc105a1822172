#include "config.h"

#include "engine/base/numbers.h"
#include "ui/talk/too_long.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/talk/change_sheet.h"
#include "ui/talk/talk_internal.h"
#include "ui/talk/tokens.h"
#include "ui/text/sheet.h"
#include "ui/words/receipt.h"

#define CTX_STEP   1024 /* a context that is offered is a multiple of it */
#define MIN_ANSWER 512  /* tokens that it leaves for the answer */
#define MIN_CUT    64   /* tokens of a file that are worth sending */

/* ---- what fits ---- */

/* Longer texts are counted in part, so their number of tokens may be less. */
static uint32_t at_least(const struct talk *t, const char *text, bool with_files,
                         uint32_t n_token)
{
    size_t longest = strlen(text);

    for (size_t i = 0; with_files && i < talk_outbox(t)->n_file; i++)
        if (talk_outbox(t)->file[i].n > longest)
            longest = talk_outbox(t)->file[i].n;
    return longest > TOKENS_COUNTED ? n_token / 4 * 3 : n_token;
}

/* Tokens of the context that the message may use.  Where the oldest turns are dropped, these
 * are nearly all, and nothing that comes before it has to fit. */
static uint32_t room(const struct talk *t, const struct mw_cost *c)
{
    return talk_options(t)->engine.ctx_shift ? talk_plan(t)->n_ctx + c->n_ahead : c->n_ctx_left;
}

bool too_long_is(struct talk *t, const char *text, bool with_files, struct mw_cost *out)
{
    /* If older messages are missing in the engine, it knows better what can be done. */
    return talk_ledger(t)->n_absent == 0 && messages_cost(t, text, with_files, out) &&
           at_least(t, text, with_files, out->n_token) > room(t, out);
}

/* ---- the choices ---- */

#define MAX_OFFERS 3 /* of other options */

struct too_long {
    struct talk *t;
    char *text; /* NULL: nothing is to be sent */
    struct mw_chat_options options[MAX_OFFERS];
    size_t n;
    long cut, shift; /* the numbers of the choices that cut a file and drop turns, or -1 */
    size_t file, cut_bytes;
    bool is_chosen;
};

static void release(void *ctx)
{
    struct too_long *l = ctx;

    if (!l->is_chosen && l->text != NULL)
        talk_draft(l->t, l->text);
    free(l->text);
    free(l);
}

static void cut_file(struct too_long *l)
{
    const struct outbox_file *f = &talk_outbox(l->t)->file[l->file];
    char is[16], was[16], name[sizeof f->name];

    if (l->file >= talk_outbox(l->t)->n_file || f->n <= l->cut_bytes)
        return;
    units_size(was, sizeof was, f->n);
    units_size(is, sizeof is, l->cut_bytes);
    snprintf(name, sizeof name, "%s", f->name);
    if (!messages_cut_file(l->t, l->file, l->cut_bytes))
        talk_error(l->t, "not enough memory to cut %s", name);
    else
        talk_notice(l->t, "%s: the first %s of %s go with the next message", name, is, was);
}

static void choose(void *ctx, long number)
{
    struct too_long *l = ctx;
    char what[40], count[24];

    if (number >= 0 && number == l->cut) {
        cut_file(l); /* the line comes back, so that the person sees what is sent */
    } else if (number >= 0 && (size_t)number < l->n) {
        const struct mw_chat_options *o = &l->options[number];

        numbers_count(count, sizeof count, o->engine.n_ctx);
        snprintf(what, sizeof what, number == l->shift ? "shift on" : "ctx %s", count);
        talk_change(l->t, o, THEN_ANNOUNCE, what);
        l->is_chosen = true;
        if (l->text != NULL)
            messages_send_later(l->t, l->text);
    }
}

/* The context that the message and an answer need. */
static uint32_t needed(const struct too_long *l, const struct mw_cost *c)
{
    uint64_t used = talk_plan(l->t)->n_ctx - c->n_ctx_left, n = used + c->n_token + MIN_ANSWER;

    return (uint32_t)((n + CTX_STEP - 1) / CTX_STEP * CTX_STEP);
}

static bool offer(struct too_long *l, struct sheet *s, const struct mw_chat_options *o,
                  const char *says)
{
    char price[160], trained[24];

    if (l->n == MAX_OFFERS || !change_price(l->t, o, price, sizeof price))
        return false;
    sheet_line(s, ROLE_TEXT, "%s", says);
    sheet_choice(s, (long)l->n);
    sheet_line(s, ROLE_DIM, "    %s", price);
    if (talk_info(l->t)->n_ctx_train > 0 && o->engine.n_ctx > talk_info(l->t)->n_ctx_train)
        sheet_line(s, ROLE_WARN, "    more than the %s tokens that the model was trained for",
                   numbers_count(trained, sizeof trained, talk_info(l->t)->n_ctx_train));
    l->options[l->n++] = *o;
    return true;
}

/* A longer context, or else the same with smaller keys and values. */
static void offer_context(struct too_long *l, struct sheet *s, const struct mw_cost *c)
{
    struct mw_chat_options o = *talk_options(l->t);
    char says[120];

    o.engine.n_ctx = needed(l, c);
    snprintf(says, sizeof says, "/ctx %u%s", o.engine.n_ctx,
             l->text != NULL ? ", and send" : "");
    if (offer(l, s, &o, says))
        return;
    if (o.engine.kv_k < MW_KV_Q8_0 || o.engine.kv_v < MW_KV_Q8_0) {
        o.engine.kv_k = o.engine.kv_v = MW_KV_Q8_0;
        snprintf(says, sizeof says, "/ctx %u with %s keys and values%s", o.engine.n_ctx,
                 mw_kv_name(MW_KV_Q8_0), l->text != NULL ? ", and send" : "");
        if (offer(l, s, &o, says))
            return;
    }
    sheet_line(s, ROLE_DIM, "A context of %s tokens needs a larger budget (/memory).",
               numbers_count(says, sizeof says, o.engine.n_ctx));
}

/* The oldest turns go, if the message fits then. */
static void offer_shift(struct too_long *l, struct sheet *s, const struct mw_cost *c)
{
    const struct ledger *ledger = talk_ledger(l->t);
    uint32_t n_ctx = talk_plan(l->t)->n_ctx;
    char first[48];

    if (talk_options(l->t)->engine.ctx_shift || ledger->n < ledger->n_dropped + 2 ||
        l->text == NULL || c->n_token > n_ctx - n_ctx / 8) /* the engine frees an eighth */
        return;
    l->options[l->n] = *talk_options(l->t);
    l->options[l->n].engine.ctx_shift = true;
    l->shift = (long)l->n++;
    sheet_line(s, ROLE_TEXT, "/shift on, and send: the oldest turns are dropped, \"%s\" first",
               talk_oldest_text(l->t, first, sizeof first));
    sheet_choice(s, l->shift);
}

/* Returns the number of the largest attached file that can be cut, or -1. */
static long largest_file(const struct outbox *b)
{
    long found = -1;

    for (size_t i = 0; i < b->n_file; i++)
        if (!b->file[i].is_returned && (found < 0 || b->file[i].n > b->file[found].n))
            found = (long)i;
    return found;
}

/* Bytes of the file that fit beside the rest of the message; 0: too few. */
static size_t bytes_that_fit(const struct too_long *l, const struct outbox_file *f,
                             const struct mw_cost *c)
{
    uint64_t room_for = room(l->t, c), n_other = c->n_token - f->n_token;
    size_t n;

    room_for -= room_for / 8; /* for the answer */
    if (f->n_token == 0 || n_other > c->n_token || room_for < n_other + MIN_CUT)
        return 0;
    n = (size_t)((double)f->n * (double)(room_for - n_other) / f->n_token);
    /* Parts of a text have more or fewer tokens for their bytes than all of it: count them. */
    for (int i = 0; i < 8 && n > 0; i++) {
        uint32_t n_token;

        if (n >= f->n || !tokens_of(l->t->engine, f->text, n, &n_token))
            return 0;
        if (n_token + n_other <= room_for)
            break;
        n -= n / 8 + 1;
    }
    return utf8_start(f->text, 0, n);
}

static void offer_cut(struct too_long *l, struct sheet *s, const struct mw_cost *c)
{
    const struct outbox *b = talk_outbox(l->t);
    long i = largest_file(b);
    char is[16], was[16];

    if (i < 0 || (l->cut_bytes = bytes_that_fit(l, &b->file[i], c)) == 0)
        return;
    l->file = (size_t)i;
    l->cut = (long)l->n;
    sheet_line(s, ROLE_TEXT, "only the first %s of %s, which has %s",
               units_size(is, sizeof is, l->cut_bytes), b->file[i].name,
               units_size(was, sizeof was, b->file[i].n));
    sheet_choice(s, l->cut);
}

void too_long_offer(struct talk *t, const char *text, const struct mw_cost *cost)
{
    struct sheet *s = sheet_new(text != NULL ? "The message does not fit the context"
                                             : "The file does not fit the context",
                                "Enter: choose   Esc: close");
    struct too_long *l = calloc(1, sizeof *l);
    char line[160];

    receipt_cost(line, sizeof line, cost, (int)sizeof line);
    if (s == NULL || l == NULL || !talk_is_person(t)) { /* nobody would choose */
        sheet_free(s);
        free(l);
        talk_error(t, "%s; use a larger --ctx", line);
        if (text != NULL)
            talk_draft(t, text);
        return;
    }
    *l = (struct too_long){
        .t = t, .cut = -1, .shift = -1, .text = text != NULL ? strdup(text) : NULL
    };
    sheet_on_enter(s, choose, release, l);
    sheet_text(s, ROLE_TEXT, line);
    offer_context(l, s, cost);
    offer_shift(l, s, cost);
    offer_cut(l, s, cost);
    talk_show(t, s);
}
