/* A chat as Markdown for people, as JSON for programs. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/new_file.h"
#include "ui/store/store_internal.h"
#include "ui/text/receipt.h"

enum store_format store_format_of(const char *path)
{
    size_t n = strlen(path);

    return n >= 5 && strcasecmp(path + n - 5, ".json") == 0 ? STORE_JSON : STORE_MARKDOWN;
}

/* ---- Markdown ---- */

/* Text with a mark in front of each line. */
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

/* Give the thinking, or the text, of an item in pieces: no more than a line of the chat's file
 * is in memory. */
typedef void put_fn(FILE *f, struct json_text *j, const char *s, size_t n);

static int each_piece(const struct store *s, uint32_t item, bool thinking, put_fn *put, FILE *f,
                      struct json_text *j, struct err *e)
{
    const struct store *holder;
    const struct record *r = store_record(s, item, &holder, e);

    if (r == NULL)
        return -1;
    if ((thinking ? r->item.thinking_bytes : r->item.text_bytes) == 0)
        return 0;
    for (uint32_t p = r->first; p != STORE_NO_PIECE; p = holder->piece[p].next) {
        struct store_text t = { 0 };
        int failed = store_read_piece(s, &holder->piece[p], &t, e);

        if (failed == 0 && thinking && t.thinking_len > 0)
            put(f, j, t.thinking, t.thinking_len);
        else if (failed == 0 && !thinking && t.len > 0)
            put(f, j, t.text, t.len);
        store_text_free(&t);
        if (failed != 0)
            return -1;
    }
    return 0;
}

/* j is not used; its n says that the text does not end in a newline yet. */
static void put_text(FILE *f, struct json_text *j, const char *s, size_t n)
{
    fwrite(s, 1, n, f);
    j->n = s[n - 1] != '\n';
}

static void put_notice(FILE *f, struct json_text *j, const char *s, size_t n)
{
    (void)j;
    put_marked(f, "> ", s, n);
}

static int markdown_text(FILE *f, const struct store *s, uint32_t i, bool thinking,
                         struct err *e)
{
    struct json_text end = { 0 };
    int failed = each_piece(s, i, thinking, put_text, f, &end, e);

    if (end.n > 0)
        fputc('\n', f);
    return failed;
}

static int markdown_item(FILE *f, const struct store *s, uint32_t i,
                         const struct store_item *item, struct err *e)
{
    char line[256];

    fputc('\n', f);
    switch (item->kind) {
    case STORE_NOTICE: return each_piece(s, i, false, put_notice, f, NULL, e);
    case STORE_SYSTEM: fputs("## System\n\n", f); break;
    case STORE_USER: fputs("## You\n\n", f); break;
    case STORE_ANSWER:
        fprintf(f, "## %s\n\n", s->head.model[0] != '\0' ? s->head.model : "Model");
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

static void put_json(FILE *f, struct json_text *j)
{
    fwrite(j->s, 1, j->n, f);
    j->n = 0;
}

static void json_receipt(struct json_text *j, const struct store_item *item)
{
    const struct mw_receipt *r = &item->receipt;

    json_text_print(
        j,
        ",\n     \"receipt\": {\"n_prompt\": %u, \"n_decoded\": %u, \"first_ns\": %llu, "
        "\"prefill_ns\": %llu, \"decode_ns\": %llu, \"bytes_read\": %llu, "
        "\"stall_ns\": %llu, \"peak_charged\": %llu}",
        r->n_prompt, r->n_decoded, (unsigned long long)r->first_ns,
        (unsigned long long)r->prefill_ns, (unsigned long long)r->decode_ns,
        (unsigned long long)r->bytes_read, (unsigned long long)r->stall_ns,
        (unsigned long long)r->peak_charged);
}

static void put_string(FILE *f, struct json_text *j, const char *s, size_t n)
{
    json_text_inside(j, s, n);
    put_json(f, j);
}

static int json_string(FILE *f, struct json_text *j, const struct store *s, uint32_t i,
                       bool thinking, struct err *e)
{
    int failed;

    json_text_print(j, "\"");
    put_json(f, j);
    failed = each_piece(s, i, thinking, put_string, f, j, e);
    json_text_print(j, "\"");
    return failed;
}

static int json_item(FILE *f, struct json_text *j, const struct store *s, uint32_t i,
                     const struct store_item *item, struct err *e)
{
    static const char *const roles[] = { [STORE_SYSTEM] = "system",
                                         [STORE_USER] = "user",
                                         [STORE_ANSWER] = "assistant",
                                         [STORE_NOTICE] = "notice" };

    json_text_print(j, "    {\"role\": \"%s\"", roles[item->kind]);
    if (item->thinking_bytes > 0) {
        json_text_print(j, ",\n     \"thinking\": ");
        if (json_string(f, j, s, i, true, e) != 0)
            return -1;
    }
    json_text_print(j, ",\n     \"content\": ");
    if (json_string(f, j, s, i, false, e) != 0)
        return -1;
    if (item->kind == STORE_ANSWER)
        json_text_print(j, ",\n     \"done\": \"%s\"", chatline_done_name(item->done));
    if (item->has_receipt)
        json_receipt(j, item);
    json_text_print(j, "}");
    return 0;
}

static void begin(FILE *f, const struct store *s, enum store_format format, struct json_text *j)
{
    if (format == STORE_MARKDOWN) {
        fprintf(f, "# Chat of %s\n", s->head.created);
        return;
    }
    json_text_print(j, "{\n  \"model\": ");
    json_text_string(j, s->head.model, strlen(s->head.model));
    json_text_print(j, ",\n  \"created\": ");
    json_text_string(j, s->head.created, strlen(s->head.created));
    json_text_print(j, ",\n  \"messages\": [");
    put_json(f, j);
}

int store_export(const struct store *s, const char *path, enum store_format format,
                 bool replace, struct err *e)
{
    struct json_text j = { 0 };
    struct new_file file;
    uint32_t from = store_oldest(s);
    int failed = 0;

    if (new_file_begin(&file, path, replace, e) != 0)
        return -1;
    begin(file.f, s, format, &j);
    for (uint32_t i = from; i < store_count(s) && failed == 0; i++) {
        struct store_item item = *store_item(s, i);

        if (format == STORE_MARKDOWN) {
            failed = markdown_item(file.f, s, i, &item, e);
        } else {
            json_text_print(&j, "%s\n", i > from ? "," : "");
            failed = json_item(file.f, &j, s, i, &item, e);
            put_json(file.f, &j);
        }
    }
    if (format == STORE_JSON)
        fputs("\n  ]\n}\n", file.f);
    if (failed == 0 && j.failed)
        failed = err_memory(e, "exporting the chat");
    json_text_free(&j);
    if (failed == 0)
        return new_file_end(&file, e);
    new_file_drop(&file);
    return -1;
}
