/* Earlier answers to the last question, each in a line of the file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ui/store/store_internal.h"

/* Bytes of a line beside the texts: the ids of an answer that was cut, and the receipt. */
#define REST_OF_LINE ((size_t)MW_CUT_IDS * 11 + 4096)

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
    s->other[s->n_other].attempt = l->receipt.attempt;
    s->other[s->n_other++].number = l->number;
}

/* ---- writing ---- */

/* Bytes of a text in a line, at most: control characters, also those from 0xc2 0x80 on, take
 * six. */
static size_t bytes_in_line(const char *s, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        sum += c < 0x20 || c == 0x7f || c == 0xc2 ? 6 : c == '"' || c == '\\' ? 2 : 1;
    }
    return sum;
}

bool store_can_be_other(const struct store_text *text)
{
    return bytes_in_line(text->text, text->len) +
               bytes_in_line(text->thinking, text->thinking_len) <=
           STORE_MAX_LINE - REST_OF_LINE;
}

int store_add_other(struct store *s, uint32_t number, const struct store_text *text,
                    const struct store_item *item, const struct mw_cut *cut, struct err *e)
{
    size_t held = item->n_held, of = item->holds_thinking ? text->thinking_len : text->len;
    struct chatline l = { .is_other = true, .number = number, .receipt = item->receipt };
    struct store_end end = { .cut = *cut };
    struct json *j = &s->out;
    uint64_t at;

    if (!store_can_be_other(text))
        return 0;
    held = held <= of ? held : 0;
    end.cut.n_held = held;
    end.cut.holds_thinking = item->holds_thinking;
    if (held > 0)
        end.held = (item->holds_thinking ? text->thinking : text->text) + of - held;
    store_close_line(s);
    at = s->size + s->out.used;
    json_object(j, NULL);
    json_string_n(j, "other_answer", text->text,
                  text->len - (item->holds_thinking ? 0 : held));
    if (text->thinking != NULL)
        json_string_n(j, "thinking", text->thinking,
                      text->thinking_len - (item->holds_thinking ? held : 0));
    json_u64(j, "number", number);
    json_string(j, "done", chatline_done_name(item->done));
    store_print_cut(s, &end);
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

uint32_t store_attempts(const struct store *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < store_others(s); i++)
        if (s->other[i].attempt >= n)
            n = s->other[i].attempt + 1;
    return n;
}

int store_other(const struct store *s, uint32_t i, struct store_text *text,
                struct store_item *item, uint32_t **ids, size_t *n_ids, struct err *e)
{
    size_t n = s->other[i].bytes, used;
    char *line = malloc(n + 1);
    struct chatline l = { 0 };
    const char *more;

    *text = (struct store_text){ 0 };
    *item = (struct store_item){ .kind = STORE_ANSWER };
    *ids = NULL;
    *n_ids = 0;
    if (line == NULL)
        return err_memory(e, "an answer");
    if (store_bytes(s, s->other[i].offset, line, n, e) != 0 ||
        !store_read_ids_line(line, n, &l, &used, &more) || !l.is_other || l.text.s == NULL ||
        !store_join_held(&l)) {
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
    if (l.n_ids <= MW_CUT_IDS) {
        *ids = l.ids;
        *n_ids = l.n_ids;
        l.ids = NULL;
    }
    item->n_held = (uint32_t)l.held.n;
    item->holds_thinking = l.holds_thinking;
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
