/*
 * Several answers to the last question: /retry keeps the earlier one, and they can be shown in
 * turn.  The model sees the one that is shown.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/talk/carried.h"
#include "ui/talk/talk_internal.h"

/* Returns the number of the answer that is shown: the smallest that no other has. */
static uint32_t number_shown(const struct store *s)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < store_others(s); i++)
        if (store_other_number(s, i) == n) {
            n++;
            i = UINT32_MAX; /* from the first again */
        }
    return n;
}

uint32_t talk_answers(const struct talk *t, uint32_t *shown)
{
    const struct store *s = t->saving.store;

    *shown = 1;
    if (s == NULL || t->ledger.n == 0 || ledger_ends_with_user(&t->ledger))
        return 0;
    *shown = number_shown(s);
    return store_others(s) + 1;
}

bool answers_keep(struct talk *t)
{
    struct store *s = t->saving.store;
    struct carried old;
    struct err e = ERR_INIT;
    uint32_t number;
    int rc;

    if (s == NULL || store_messages(s) != t->ledger.n || ledger_ends_with_user(&t->ledger) ||
        carried_read(&old, s, t->ledger.n - 1, 1, &e) != 0)
        return false;
    if (!carried_can_be_other(&old))
        talk_notice(t, "the answer before it is too long to be kept beside another one");
    number = number_shown(s);
    store_begin_together(s);
    rc = store_rewind(s, t->ledger.n - 1, &e) != 0 ? -1 : carried_keep_other(&old, s, number, &e);
    saving_noted(&t->saving, store_end_together(s, &e) != 0 ? -1 : rc, &e);
    carried_free(&old);
    return true;
}

bool answers_bring_back(struct talk *t)
{
    struct store *s = t->saving.store;
    uint32_t n = t->answer.is_again ? store_others(s) : 0;
    struct err e = ERR_INIT;
    struct carried old;
    int rc;

    if (n == 0 || t->answer.has_text || !ledger_ends_with_user(&t->ledger) ||
        carried_read_other(&old, s, n - 1, &e) != 0)
        return false;
    store_begin_together(s);
    rc = store_choose_other(s, store_other_number(s, n - 1), &e);
    if (rc == 0)
        rc = carried_write(&old, s, &e);
    saving_noted(&t->saving, store_end_together(s, &e) != 0 ? -1 : rc, &e);
    carried_free(&old);
    ledger_add(&t->ledger, false);
    if (saved_restore(t, &e) != 0)
        talk_report(t, &e);
    if (talk_has_screen(t))
        t->front.restored(t->front.ctx);
    return true;
}

void answers_say(struct talk *t)
{
    uint32_t shown, n = talk_answers(t, &shown);

    if (t->answer.is_again && n > 1 && !t->o->options->quiet)
        talk_notice(t, "answer %u of %u; %s/answer shows the others", shown, n,
                    talk_has_screen(t) ? "Left and Right or " : "");
}

/* The answer with this number; or that with the next one in the direction. */
static uint32_t find(const struct store *s, uint32_t shown, int step)
{
    uint32_t n = store_others(s) + 1, most = shown;
    long want = (long)shown + step;

    for (uint32_t i = 0; i < n - 1; i++)
        if (store_other_number(s, i) > most)
            most = store_other_number(s, i);
    if (want < 1)
        want = most;
    if (want > (long)most)
        want = 1;
    for (uint32_t i = 0; i < n - 1; i++)
        if (store_other_number(s, i) == (uint32_t)want)
            return i;
    return UINT32_MAX;
}

static int show(struct talk *t, uint32_t i, struct err *e)
{
    struct store *s = t->saving.store;
    size_t at = t->ledger.n - 1;
    uint32_t number = store_other_number(s, i);
    struct carried now, then;
    int rc;

    if (carried_read(&now, s, at, 1, e) != 0)
        return -1;
    if (carried_read_other(&then, s, i, e) != 0) {
        carried_free(&now);
        return -1;
    }
    rc = t->engine->calls->rewind(t->engine, at, e);
    if (rc == 0) {
        uint32_t shown = number_shown(s);

        store_begin_together(s);
        rc = store_rewind(s, at, e);
        if (rc == 0)
            rc = carried_keep_other(&now, s, shown, e);
        if (rc == 0)
            rc = store_choose_other(s, number, e);
        if (rc == 0)
            rc = carried_write(&then, s, e);
        saving_noted(&t->saving, store_end_together(s, e) != 0 ? -1 : rc, e);
        rc = saved_restore(t, e);
    }
    carried_free(&now);
    carried_free(&then);
    return rc;
}

/* Without a screen the answer is printed. */
static void print_answer(struct talk *t)
{
    char *text = talk_text_of(t, t->ledger.n - 1);

    if (text == NULL)
        return;
    t->front.begin(t->front.ctx, false);
    t->front.piece(t->front.ctx, text, strlen(text), false);
    t->front.done(t->front.ctx, NULL, true, STORE_NO_ITEM);
    free(text);
}

bool talk_flip(struct talk *t, int step)
{
    struct err e = ERR_INIT;
    uint32_t shown, n = talk_answers(t, &shown), i;

    if (n < 2 || talk_is_answering(t) || t->state == TALK_SWITCHING || t->engine == NULL)
        return false;
    i = find(t->saving.store, shown, step);
    if (i == UINT32_MAX)
        return false;
    if (show(t, i, &e) != 0)
        talk_report(t, &e);
    t->n_unfinished = 0;
    if (talk_has_screen(t))
        t->front.restored(t->front.ctx);
    else
        print_answer(t);
    talk_answers(t, &shown);
    talk_notice(t, "answer %u of %u", shown, n);
    t->front.changed(t->front.ctx);
    return true;
}
