/* Earlier answers to the last question, each in a line of the file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/store/store_internal.h"

/* ---- lines ---- */

static void drop(struct store *s, uint32_t i)
{
    memmove(&s->other[i], &s->other[i + 1], (--s->n_other - i) * sizeof s->other[0]);
}

void store_keep_others(struct store *s, uint64_t n)
{
    if (n < s->others_at)
        s->n_other = 0;
}

void store_apply_other(struct store *s, const struct chatline *l, uint64_t offset,
                       uint32_t bytes)
{
    if (s->is_view || l->number == 0)
        return;
    for (uint32_t i = s->n_other; i-- > 0;)
        if (s->other[i].number == l->number || s->others_at != s->n_message)
            drop(s, i);
    if (l->is_chosen)
        return;
    if (s->n_other == STORE_MAX_OTHERS)
        drop(s, 0);
    s->others_at = s->n_message;
    s->other[s->n_other].offset = offset;
    s->other[s->n_other].bytes = bytes;
    s->other[s->n_other++].number = l->number;
}

/* ---- writing ---- */

int store_add_other(struct store *s, uint32_t number, const struct store_text *text,
                    const struct store_item *item, struct err *e)
{
    struct chatline l = { .is_other = true, .number = number };
    struct json *j = &s->out;
    uint64_t at;

    if (text->len + text->thinking_len > STORE_MAX_LINE / 8)
        return 0;
    store_close_line(s);
    at = s->size + s->out.used;
    json_object(j, NULL);
    json_string_n(j, "other_answer", text->text, text->len);
    if (text->thinking != NULL)
        json_string_n(j, "thinking", text->thinking, text->thinking_len);
    json_u64(j, "number", number);
    json_string(j, "done", chatline_done_name(item->done));
    if (item->has_receipt)
        store_print_figures(s, &item->receipt, item->context);
    json_end(j);
    store_apply_other(s, &l, at, (uint32_t)(s->size + s->out.used - at));
    json_line(j);
    return store_commit(s, true, e);
}

int store_choose_other(struct store *s, uint32_t number, struct err *e)
{
    struct chatline l = { .is_chosen = true, .number = number };

    store_close_line(s);
    store_apply_other(s, &l, 0, 0);
    json_print(&s->out, "{\"chosen_answer\":%u}\n", number);
    return store_commit(s, true, e);
}

/* ---- reading ---- */

uint32_t store_others(const struct store *s)
{
    bool is_asked = s->n_message == s->others_at; /* and another answer is not there yet */

    return is_asked || s->n_message == s->others_at + 1 ? s->n_other : 0;
}

uint32_t store_other_number(const struct store *s, uint32_t i)
{
    return s->other[i].number;
}

int store_other(const struct store *s, uint32_t i, struct store_text *text,
                struct store_item *item, struct err *e)
{
    size_t n = s->other[i].bytes, used;
    char *line = malloc(n + 1);
    struct chatline l = { 0 };
    const char *more;

    *text = (struct store_text){ 0 };
    *item = (struct store_item){ .kind = STORE_ANSWER };
    if (line == NULL)
        return err_memory(e, "an answer");
    if (store_bytes(s, s->other[i].offset, line, n, e) != 0 ||
        !store_read_line(line, n, true, &l, &used, &more) || !l.is_other || l.text.s == NULL) {
        free(line);
        chatline_free(&l);
        return err_set(e, ERR_FORMAT, "the earlier answer cannot be read again");
    }
    free(line);
    *text = (struct store_text){ .text = l.text.s,
                                 .len = l.text.n,
                                 .thinking = l.thinking.s,
                                 .thinking_len = l.thinking.n };
    l.text.s = l.thinking.s = NULL;
    item->text_bytes = (uint32_t)text->len;
    item->thinking_bytes = (uint32_t)text->thinking_len;
    item->done = l.has_done ? l.done : MW_DONE_STOP;
    item->has_receipt = l.is_receipt;
    item->receipt = l.receipt;
    item->receipt.done = item->done;
    item->context = l.context;
    chatline_free(&l);
    return 0;
}
