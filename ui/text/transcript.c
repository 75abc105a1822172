/* Items and their memory. */
#include "config.h"

#include "ui/text/transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/transcript_internal.h"

#define DEFAULT_LIMIT (8 * MIB)

static const char lost_text[] = "(this text could not be read back from the saved chat)";

struct transcript *transcript_new(const struct transcript_options *o)
{
    struct transcript *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->o = *o;
    if (t->o.limit_bytes == 0)
        t->o.limit_bytes = DEFAULT_LIMIT;
    t->follows = true;
    t->status_share = -1;
    return t;
}

static void count(struct transcript *t, size_t before, size_t now)
{
    t->bytes = t->bytes - before + now;
    t->peak = t->bytes > t->peak ? t->bytes : t->peak;
}

size_t transcript_held_bytes(const struct held *h)
{
    return h == NULL ? 0 : sizeof *h + h->text.bytes + h->thinking.bytes;
}

void transcript_counted(struct transcript *t, const struct held *h, size_t before)
{
    count(t, before, transcript_held_bytes(h));
}

static void drop(struct transcript *t, struct item *i)
{
    if (i->held == NULL)
        return;
    count(t, transcript_held_bytes(i->held), 0);
    body_free(&i->held->text);
    body_free(&i->held->thinking);
    free(i->held);
    i->held = NULL;
}

void transcript_free(struct transcript *t)
{
    if (t == NULL)
        return;
    transcript_clear(t);
    free(t->item);
    free(t->shown);
    rich_free(&t->line);
    free(t);
}

size_t transcript_bytes(const struct transcript *t)
{
    return t->bytes + t->room_item * sizeof *t->item;
}

size_t transcript_peak_bytes(const struct transcript *t)
{
    return t->peak + t->room_item * sizeof *t->item;
}

/* ---- text in memory ---- */

static bool is_markdown(const struct transcript *t, const struct item *i)
{
    return !t->raw && i->kind == TRANSCRIPT_ANSWER;
}

static struct held *begin_held(struct transcript *t, struct item *i)
{
    struct held *h = calloc(1, sizeof *h);

    if (h == NULL)
        return NULL;
    body_start(&h->text, is_markdown(t, i));
    body_start(&h->thinking, is_markdown(t, i));
    i->held = h;
    transcript_counted(t, h, 0);
    return h;
}

struct held *transcript_held(struct transcript *t, uint32_t item)
{
    struct item *i = &t->item[item];
    struct transcript_text text = { 0 };
    struct held *h = i->held;

    if (h != NULL || (h = begin_held(t, i)) == NULL)
        return h;
    size_t before = transcript_held_bytes(h);

    i->is_lost = i->id == TRANSCRIPT_NO_ID || t->o.load == NULL ||
                 !t->o.load(t->o.load_ctx, i->id, &text);
    if (i->is_lost) {
        body_append(&h->text, lost_text, sizeof lost_text - 1);
        body_finish(&h->text);
    } else {
        if (text.text == NULL || !body_take(&h->text, text.text, text.len))
            free(text.text);
        memcpy(h->label, text.label, sizeof h->label);
        if (text.thinking == NULL || !body_take(&h->thinking, text.thinking, text.thinking_len))
            free(text.thinking);
    }
    transcript_counted(t, h, before);
    return h;
}

/* Can its text be loaded again? */
static bool can_drop(const struct transcript *t, const struct item *i)
{
    return i->held != NULL && !i->is_open && i->id != TRANSCRIPT_NO_ID && t->o.load != NULL;
}

static void drop_some(struct transcript *t, uint32_t item)
{
    struct item *i = &t->item[item];
    size_t before = transcript_held_bytes(i->held);

    if (can_drop(t, i)) {
        drop(t, i);
    } else if (i->held != NULL) {
        body_forget(&i->held->text, 1, 0);
        body_forget(&i->held->thinking, 1, 0);
        transcript_counted(t, i->held, before);
    }
}

void transcript_keep(struct transcript *t, uint32_t first, uint32_t last)
{
    size_t enough = t->o.limit_bytes / 4 * 3;

    if (t->bytes <= t->o.limit_bytes)
        return;
    for (uint32_t i = 0; i < first && i < t->n_item && t->bytes > enough; i++)
        drop_some(t, i);
    for (uint32_t i = t->n_item; i-- > last + 1 && t->bytes > enough;)
        drop_some(t, i);
}

void transcript_forget_rows(struct transcript *t)
{
    for (uint32_t i = 0; i < t->n_item; i++) {
        struct held *h = t->item[i].held;
        size_t before = transcript_held_bytes(h);

        if (h == NULL)
            continue;
        body_forget(&h->text, 1, 0);
        body_forget(&h->thinking, 1, 0);
        transcript_counted(t, h, before);
    }
}

/* ---- what is said ---- */

static struct item *add_item(struct transcript *t, enum transcript_kind kind, uint32_t id)
{
    if (t->n_item == t->room_item) {
        uint32_t room = t->room_item == 0 ? 16 : t->room_item * 2;
        struct item *more = realloc(t->item, room * sizeof *more);

        if (more == NULL)
            return NULL;
        t->item = more;
        t->room_item = room;
    }
    t->item[t->n_item] = (struct item){ .kind = (uint8_t)kind, .id = id };
    return &t->item[t->n_item++];
}

bool transcript_add(struct transcript *t, enum transcript_kind kind, const char *text, size_t n,
                    uint32_t id)
{
    struct item *i = add_item(t, kind, id);
    struct held *h = i == NULL ? NULL : begin_held(t, i);
    size_t before = transcript_held_bytes(h);

    if (h == NULL || !body_append(&h->text, text, n)) {
        if (i != NULL) {
            drop(t, i);
            t->n_item--;
        }
        return false;
    }
    body_finish(&h->text);
    transcript_counted(t, h, before);
    return true;
}

bool transcript_attach(struct transcript *t, const char *label, const char *text, size_t n)
{
    struct held *h = t->item[t->n_item - 1].held;
    size_t before = transcript_held_bytes(h);
    bool ok = body_append(&h->thinking, text, n);

    body_finish(&h->thinking);
    snprintf(h->label, sizeof h->label, "%s", label);
    transcript_counted(t, h, before);
    return ok;
}

bool transcript_add_saved(struct transcript *t, enum transcript_kind kind, uint32_t id,
                          const struct mw_receipt *r)
{
    struct item *i = add_item(t, kind, id);

    if (i == NULL)
        return false;
    i->has_receipt = r != NULL;
    if (r != NULL)
        i->receipt = *r;
    return true;
}

static struct item *last_answer(struct transcript *t)
{
    for (uint32_t i = t->n_item; i-- > 0;)
        if (t->item[i].kind == TRANSCRIPT_ANSWER)
            return &t->item[i];
    return NULL;
}

bool transcript_begin(struct transcript *t, bool resume)
{
    struct item *i = resume ? last_answer(t) : NULL;
    struct held *h;

    t->has_code = false;
    if (i == NULL) {
        i = add_item(t, TRANSCRIPT_ANSWER, TRANSCRIPT_NO_ID);
        if (i == NULL || begin_held(t, i) == NULL) {
            t->n_item -= i != NULL;
            return false;
        }
        i->is_open = true;
        return true;
    }
    h = transcript_held(t, (uint32_t)(i - t->item));
    if (h == NULL)
        return false;
    size_t before = transcript_held_bytes(h);

    body_reopen(&h->text);
    body_reopen(&h->thinking);
    transcript_counted(t, h, before);
    i->is_open = true;
    i->has_receipt = false;
    return true;
}

bool transcript_append(struct transcript *t, const char *text, size_t n, bool is_thinking)
{
    struct item *i = last_answer(t);
    size_t before;
    bool ok;

    if (i == NULL || !i->is_open || i->held == NULL)
        return false;
    before = transcript_held_bytes(i->held);
    ok = body_append(is_thinking ? &i->held->thinking : &i->held->text, text, n);
    transcript_counted(t, i->held, before);
    return ok;
}

void transcript_take_back(struct transcript *t, size_t n, bool is_thinking)
{
    struct item *i = last_answer(t);
    size_t before;

    if (i == NULL || !i->is_open || i->held == NULL)
        return;
    before = transcript_held_bytes(i->held);
    body_shorten(is_thinking ? &i->held->thinking : &i->held->text, n);
    transcript_counted(t, i->held, before);
}

void transcript_thought(struct transcript *t)
{
    struct item *i = last_answer(t);
    struct held *h;
    size_t before;

    if (i == NULL || !i->is_open || i->held == NULL)
        return;
    h = i->held;
    before = transcript_held_bytes(h);
    if (body_append(&h->thinking, h->text.text, h->text.n))
        body_shorten(&h->text, h->text.n);
    transcript_counted(t, h, before);
}

void transcript_done(struct transcript *t, const struct mw_receipt *r)
{
    struct item *i = last_answer(t);
    size_t before;

    if (i == NULL || !i->is_open)
        return;
    before = transcript_held_bytes(i->held);
    body_finish(&i->held->text);
    body_finish(&i->held->thinking);
    transcript_counted(t, i->held, before);
    i->is_open = false;
    i->has_receipt = r != NULL;
    if (r != NULL)
        i->receipt = *r;
}

void transcript_saved(struct transcript *t, uint32_t id)
{
    struct item *answer = last_answer(t);

    if (answer != NULL && answer->is_open)
        answer->id = id;
    else if (t->n_item > 0)
        t->item[t->n_item - 1].id = id;
}

static bool is_message(const struct item *i)
{
    return i->kind == TRANSCRIPT_USER || i->kind == TRANSCRIPT_ANSWER;
}

size_t transcript_messages(const struct transcript *t)
{
    size_t n = 0;

    for (uint32_t i = 0; i < t->n_item; i++)
        n += is_message(&t->item[i]);
    return n;
}

/* Reset all references to removed items. */
static void cut_items(struct transcript *t, uint32_t n)
{
    if (n >= t->n_item)
        return;
    while (t->n_item > n)
        drop(t, &t->item[--t->n_item]);
    transcript_unselect(t);
    t->has_match = false;
    t->has_code = false;
    t->n_shown = 0;
    t->has_turn = t->has_turn && t->turn < n;
    if (t->top.at.item >= n)
        t->follows = true;
    if (t->n_unseen > n)
        t->n_unseen = n;
}

void transcript_drop_last(struct transcript *t, size_t n)
{
    if (n > t->n_item)
        return;
    for (uint32_t i = t->n_item - (uint32_t)n; i < t->n_item; i++)
        if (is_message(&t->item[i]) || t->item[i].id != TRANSCRIPT_NO_ID)
            return;
    cut_items(t, t->n_item - (uint32_t)n);
}

void transcript_set_older(struct transcript *t, size_t n)
{
    t->n_older = n;
}

void transcript_rewind(struct transcript *t, size_t n)
{
    size_t messages = t->n_older;

    for (uint32_t i = 0; i < t->n_item; i++) {
        if (is_message(&t->item[i]) && messages++ == n) {
            cut_items(t, i);
            return;
        }
    }
}

void transcript_set_unseen(struct transcript *t, size_t n)
{
    uint32_t i = 0;

    for (size_t messages = t->n_older; messages < n && i < t->n_item; i++)
        messages += is_message(&t->item[i]);
    t->n_unseen = n > 0 ? i : 0;
}

void transcript_clear(struct transcript *t)
{
    cut_items(t, 0);
    t->n_older = 0;
    t->follows = true;
}

void transcript_set_status(struct transcript *t, const char *line, double share)
{
    size_t n = line == NULL ? 0 : strlen(line);

    clean_line(t->status, sizeof t->status, line, n);
    t->status_share = share;
}
