/* Exports a chat as Markdown for people or as JSON for programs. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/new_file.h"
#include "ui/store/store_internal.h"
#include "ui/words/quote.h"
#include "ui/words/receipt.h"

enum store_format store_format_of(const char *path)
{
    size_t n = strlen(path);

    return n >= 5 && strcasecmp(path + n - 5, ".json") == 0 ? STORE_JSON : STORE_MARKDOWN;
}

/* ---- Markdown ---- */

/* Write text with a mark before each line. */
static void put_marked(FILE *f, const char *mark, const char *s, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(s, '\n', n);
        size_t len = newline == NULL ? n : (size_t)(newline - s);

        fputs(mark, f);
        fwrite(s, 1, len, f);
        fputc('\n', f);
        len += newline != NULL;
        s += len;
        n -= len;
    }
}

/* Pass the thinking or the text of an item in pieces, with at most one line of the chat file
 * in memory. */
typedef void put_fn(void *to, const char *s, size_t n);

static int each_piece(const struct store *s, uint32_t item, bool thinking, put_fn *put,
                      void *to, struct err *e)
{
    const struct store *holder;
    const struct record *r = store_record(s, item, &holder, e);

    if (r == NULL)
        return -1;
    if ((thinking ? r->item.thinking_bytes : r->item.text_bytes) == 0)
        return 0;
    for (uint32_t p = r->first; p != STORE_NO_PIECE; p = holder->piece[p].next) {
        struct store_text t = { 0 };
        int failed = store_read_piece(s, &holder->piece[p], p == r->last, &t, e);

        if (failed == 0 && thinking && t.thinking_len > 0)
            put(to, t.thinking, t.thinking_len);
        else if (failed == 0 && !thinking && t.len > 0)
            put(to, t.text, t.len);
        store_text_free(&t);
        if (failed != 0)
            return -1;
    }
    return 0;
}

struct markdown {
    FILE *f;
    bool in_line; /* the text does not end in a newline yet */
};

static void put_text(void *to, const char *s, size_t n)
{
    struct markdown *m = to;

    fwrite(s, 1, n, m->f);
    m->in_line = s[n - 1] != '\n';
}

static void put_notice(void *to, const char *s, size_t n)
{
    put_marked(to, "> ", s, n);
}

static int markdown_text(FILE *f, const struct store *s, uint32_t i, bool thinking,
                         struct err *e)
{
    struct markdown m = { f, false };
    int failed = each_piece(s, i, thinking, put_text, &m, e);

    if (m.in_line)
        fputc('\n', f);
    return failed;
}

static int markdown_item(FILE *f, const struct store *s, uint32_t i,
                         const struct store_item *item, struct err *e)
{
    char line[256];

    fputc('\n', f);
    switch (item->kind) {
    case STORE_NOTICE: return each_piece(s, i, false, put_notice, f, e);
    case STORE_SYSTEM:
        fputs(item->text_bytes > 0 ? "## System\n\n" : "> " STORE_NO_SYSTEM "\n", f);
        break;
    case STORE_USER: fputs("## You\n\n", f); break;
    case STORE_ANSWER:
        fputs("## ", f);
        quote_markdown(f, s->head.model[0] != '\0' ? s->head.model : "Model");
        fputs("\n\n", f);
        break;
    }
    if (item->thinking_bytes > 0) {
        fputs("<details><summary>thinking</summary>\n\n", f);
        if (markdown_text(f, s, i, true, e) != 0)
            return -1;
        fputs("\n</details>\n\n", f);
    }
    if (markdown_text(f, s, i, false, e) != 0)
        return -1;
    if (item->has_receipt)
        fprintf(f, "\n*%s*\n", receipt_line(line, sizeof line, &item->receipt, false));
    return 0;
}

/* ---- JSON ---- */

static void json_receipt(struct json *j, const struct store_item *item)
{
    const struct mw_receipt *r = &item->receipt;

    json_print(j,
               ",\n     \"receipt\": {\"n_prompt\": %u, \"n_decoded\": %u, \"first_ns\": %llu, "
               "\"prefill_ns\": %llu, \"decode_ns\": %llu, \"bytes_read\": %llu, "
               "\"stall_ns\": %llu, \"peak_charged\": %llu}",
               r->n_prompt, r->n_decoded, (unsigned long long)r->first_ns,
               (unsigned long long)r->prefill_ns, (unsigned long long)r->decode_ns,
               (unsigned long long)r->bytes_read, (unsigned long long)r->stall_ns,
               (unsigned long long)r->peak_charged);
}

static void put_inside(void *to, const char *s, size_t n)
{
    json_inside(to, s, n);
}

static int json_text(struct json *j, const struct store *s, uint32_t i, bool thinking,
                     struct err *e)
{
    int failed;

    json_raw(j, "\"", 1);
    failed = each_piece(s, i, thinking, put_inside, j, e);
    json_raw(j, "\"", 1);
    return failed;
}

static int json_item(struct json *j, const struct store *s, uint32_t i,
                     const struct store_item *item, struct err *e)
{
    static const char *const roles[] = { [STORE_SYSTEM] = "system",
                                         [STORE_USER] = "user",
                                         [STORE_ANSWER] = "assistant",
                                         [STORE_NOTICE] = "notice" };

    json_print(j, "    {\"role\": \"%s\"", roles[item->kind]);
    if (item->thinking_bytes > 0) {
        json_print(j, ",\n     \"thinking\": ");
        if (json_text(j, s, i, true, e) != 0)
            return -1;
    }
    json_print(j, ",\n     \"content\": ");
    if (json_text(j, s, i, false, e) != 0)
        return -1;
    if (item->kind == STORE_ANSWER)
        json_print(j, ",\n     \"done\": \"%s\"%s", chatline_done_name(item->done),
                   item->is_help ? ",\n     \"help\": true" : "");
    if (item->has_receipt)
        json_receipt(j, item);
    json_print(j, "}");
    return 0;
}

static int export_markdown(FILE *f, const struct store *s, struct err *e)
{
    uint32_t missing = store_oldest(s) > 0 ? store_missing(s) : 0;

    fputs("# Chat of ", f);
    quote_markdown(f, s->head.created[0] != '\0' ? s->head.created : s->name);
    fputc('\n', f);
    if (missing > 0)
        fprintf(f, "\n> The oldest %u messages are missing: this chat was not saved.\n",
                missing);
    for (uint32_t i = store_oldest(s); i < store_count(s); i++) {
        struct store_item item = *store_item(s, i);

        if (markdown_item(f, s, i, &item, e) != 0)
            return -1;
    }
    return 0;
}

static int export_json(FILE *f, const struct store *s, struct err *e)
{
    uint32_t from = store_oldest(s);
    struct json j;

    json_start_stream(&j, f);
    json_print(&j, "{\n  \"model\": ");
    json_string(&j, NULL, s->head.model);
    json_print(&j, ",\n  \"created\": ");
    json_string(&j, NULL, s->head.created);
    if (from > 0)
        json_print(&j, ",\n  \"missing_messages\": %u", store_missing(s));
    json_print(&j, ",\n  \"messages\": [");
    for (uint32_t i = from; i < store_count(s); i++) {
        struct store_item item = *store_item(s, i);

        json_print(&j, "%s\n", i > from ? "," : "");
        if (json_item(&j, s, i, &item, e) != 0)
            return -1;
    }
    json_print(&j, "\n  ]\n}\n");
    return 0;
}

int store_export(const struct store *s, const char *path, enum store_format format,
                 bool replace, struct err *e)
{
    struct new_file file;
    int rc;

    if (new_file_begin(&file, path, replace, e) != 0)
        return -1;
    rc = format == STORE_MARKDOWN ? export_markdown(file.f, s, e) : export_json(file.f, s, e);
    if (rc == 0)
        return new_file_end(&file, e);
    new_file_drop(&file);
    return -1;
}
