/* A chat as Markdown for people, as JSON for programs. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ui/chat/receipt.h"
#include "ui/chat/store_internal.h"
#include "ui/chat/whole_file.h"

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

static void put_text(FILE *f, const char *s, size_t n)
{
    fwrite(s, 1, n, f);
    if (n > 0 && s[n - 1] != '\n')
        fputc('\n', f);
}

static void markdown_item(FILE *f, const struct store *s, const struct store_item *item,
                          const struct store_text *t)
{
    char line[256];

    fputc('\n', f);
    switch (item->kind) {
    case STORE_NOTICE: put_marked(f, "> ", t->text, t->len); return;
    case STORE_SYSTEM: fputs("## System\n\n", f); break;
    case STORE_USER: fputs("## You\n\n", f); break;
    case STORE_ANSWER:
        fprintf(f, "## %s\n\n", s->head.model[0] != '\0' ? s->head.model : "Model");
        break;
    }
    if (t->thinking_len > 0) {
        fputs("<details><summary>thinking</summary>\n\n", f);
        put_text(f, t->thinking, t->thinking_len);
        fputs("\n</details>\n\n", f);
    }
    put_text(f, t->text, t->len);
    if (item->has_receipt)
        fprintf(f, "\n*%s*\n", receipt_line(line, sizeof line, &item->receipt, false));
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

static void json_item(struct json_text *j, const struct store_item *item,
                      const struct store_text *t)
{
    static const char *const roles[] = { [STORE_SYSTEM] = "system",
                                         [STORE_USER] = "user",
                                         [STORE_ANSWER] = "assistant",
                                         [STORE_NOTICE] = "notice" };

    json_text_print(j, "    {\"role\": \"%s\"", roles[item->kind]);
    if (t->thinking_len > 0) {
        json_text_print(j, ",\n     \"thinking\": ");
        json_text_string(j, t->thinking, t->thinking_len);
    }
    json_text_print(j, ",\n     \"content\": ");
    json_text_string(j, t->text, t->len);
    if (item->kind == STORE_ANSWER)
        json_text_print(j, ",\n     \"done\": \"%s\"", chatline_done_name(item->done));
    if (item->has_receipt)
        json_receipt(j, item);
    json_text_print(j, "}");
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
    struct whole_file w;
    int failed = 0;

    if (whole_file_begin(&w, path, replace, e) != 0)
        return -1;
    begin(w.f, s, format, &j);
    for (uint32_t i = 0; i < store_count(s) && failed == 0; i++) {
        struct store_text t;

        failed = store_text(s, i, &t, e);
        if (failed != 0)
            break;
        if (format == STORE_MARKDOWN) {
            markdown_item(w.f, s, store_item(s, i), &t);
        } else {
            json_text_print(&j, "%s\n", i > 0 ? "," : "");
            json_item(&j, store_item(s, i), &t);
            put_json(w.f, &j);
        }
        store_text_free(&t);
    }
    if (format == STORE_JSON)
        fputs("\n  ]\n}\n", w.f);
    if (failed == 0 && j.failed)
        failed = err_set(e, ERR_MEMORY, "no memory to export the chat");
    json_text_free(&j);
    if (failed == 0)
        return whole_file_end(&w, e);
    whole_file_drop(&w);
    return -1;
}
