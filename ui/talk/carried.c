#include "config.h"

#include "ui/talk/carried.h"

#include <stdlib.h>
#include <string.h>

struct carried_message {
    struct store_item item;
    struct store_text text; /* with the bytes that were held back, at its end */
    uint32_t *ids;          /* of an answer that was cut */
    size_t n_ids;
};

void carried_free(struct carried *c)
{
    for (size_t i = 0; i < c->n; i++) {
        store_text_free(&c->message[i].text);
        free(c->message[i].ids);
    }
    free(c->message);
    *c = (struct carried){ 0 };
}

static int read_one(struct carried_message *m, const struct store *s, uint32_t message,
                    struct err *e)
{
    uint32_t item;

    if (store_item_of(s, message, &item, e) != 0)
        return -1;
    m->item = *store_item(s, item);
    if (store_text(s, item, &m->text, e) != 0)
        return -1;
    return m->item.kind == STORE_USER ? 0 : store_ids(s, item, &m->ids, &m->n_ids, e);
}

int carried_read(struct carried *c, const struct store *s, size_t from, size_t n,
                 struct err *e)
{
    *c = (struct carried){ .message = calloc(n + 1, sizeof *c->message) };
    if (c->message == NULL)
        return err_memory(e, "messages of the chat");
    for (size_t i = 0; i < n; i++)
        if (read_one(&c->message[c->n++], s, (uint32_t)(from + i), e) != 0) {
            carried_free(c);
            return -1;
        }
    return 0;
}

int carried_read_other(struct carried *c, const struct store *s, uint32_t i, struct err *e)
{
    *c = (struct carried){ .message = calloc(1, sizeof *c->message), .n = 1 };
    if (c->message == NULL) {
        c->n = 0;
        return err_memory(e, "an answer");
    }
    if (store_other(s, i, &c->message[0].text, &c->message[0].item, &c->message[0].ids,
                    &c->message[0].n_ids, e) == 0)
        return 0;
    carried_free(c);
    return -1;
}

int carried_keep_other(const struct carried *c, struct store *s, uint32_t number, struct err *e)
{
    const struct mw_cut cut = { .ids = c->message[0].ids, .n_ids = c->message[0].n_ids };

    return store_add_other(s, number, &c->message[0].text, &c->message[0].item, &cut, e);
}

bool carried_can_be_other(const struct carried *c)
{
    return store_can_be_other(&c->message[0].text);
}

bool carried_is_user(const struct carried *c, size_t i)
{
    return c->message[i].item.kind == STORE_USER;
}

const char *carried_text(const struct carried *c, size_t i, size_t *n)
{
    *n = c->message[i].text.len;
    return c->message[i].text.text;
}

static int write_answer(const struct carried_message *m, struct store *s, struct err *e)
{
    const struct store_item *item = &m->item;
    const struct store_text *t = &m->text;
    size_t held = item->n_held, len = t->len, thinking_len = t->thinking_len;
    size_t *of = item->holds_thinking ? &thinking_len : &len;
    const char *text = item->holds_thinking ? t->thinking : t->text;
    struct store_end end = { .cut = { .ids = m->ids,
                                      .n_ids = m->n_ids,
                                      .holds_thinking = item->holds_thinking } };

    if (held <= *of && text != NULL) {
        *of -= held;
        end.cut.n_held = held;
        end.held = text + *of;
    }
    if ((thinking_len > 0 &&
         store_piece(s, t->thinking, thinking_len, true, false, NULL, e) != 0) ||
        (len > 0 && store_piece(s, t->text, len, false, false, NULL, e) != 0))
        return -1;
    if (item->has_receipt)
        return store_done(s, &item->receipt, 0, &end, e); /* the context is another one now */
    return store_done_bare(s, item->done, &end, e);
}

static int write_one(const struct carried_message *m, struct store *s, struct err *e)
{
    const struct store_text *t = &m->text;

    if (m->item.is_summary)
        return store_add_summary(s, t->text, t->len, &t->attached, m->item.n_carried, e);
    if (m->item.is_help)
        return store_add_help(s, t->text, t->len, NULL, e);
    if (m->item.kind == STORE_USER)
        return store_add_user(s, t->text, t->len, &t->attached, NULL, e);
    return write_answer(m, s, e);
}

int carried_write(const struct carried *c, struct store *s, struct err *e)
{
    for (size_t i = 0; i < c->n; i++)
        if (write_one(&c->message[i], s, e) != 0)
            return -1;
    return 0;
}
