/* See answer_out.h. */
#include "config.h"

#include "src/text/answer_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/json_write.h"
#include "src/command.h"
#include "src/machine/limits_print.h"
#include "src/text/summary.h"

static void write_out(struct answer_out *a, const char *text, size_t n)
{
    if (n == 0)
        return;
    fwrite(text, 1, n, stdout);
    a->any = true;
    a->last = text[n - 1];
}

static void write_clean(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                        enum clean_kind kind)
{
    (void)src, (void)src_n, (void)kind;
    write_out(ctx, text, n);
}

static void keep(struct answer_text *t, const char *text, size_t n)
{
    if (t->is_cut || n == 0)
        return;
    if (n > t->room - t->n) {
        size_t room = (t->n + n) * 2;
        char *bytes = realloc(t->bytes, room);

        if (bytes == NULL) {
            t->is_cut = true;
            return;
        }
        t->bytes = bytes;
        t->room = room;
    }
    memcpy(t->bytes + t->n, text, n);
    t->n += n;
}

void answer_out_open(struct answer_out *a, bool json, bool raw)
{
    *a = (struct answer_out){ .json = json, .raw = raw };
    a->is_terminal = isatty(STDOUT_FILENO);
    clean_start(&a->clean, CLEAN_TEXT);
}

void answer_out_text(struct answer_out *a, const char *text, size_t n, bool is_thinking)
{
    struct json j;

    if (n == 0 || a->only_ids)
        return;
    if (a->json) {
        json_start_stream(&j, stdout);
        json_object(&j, NULL);
        json_string(&j, "event", is_thinking ? "thinking" : "text");
        json_string_n(&j, "text", text, n);
        json_end(&j);
        json_line(&j);
        keep(is_thinking ? &a->thinking : &a->text, text, n);
    } else if (!is_thinking) {
        if (a->is_terminal)
            clean_feed(&a->clean, text, n, write_clean, a);
        else
            write_out(a, text, n);
    }
    report_flush();
}

void answer_out_break(struct answer_out *a)
{
    if (a->json || !a->is_terminal || !a->any || a->last == '\n' || isatty(STDERR_FILENO) != 1)
        return;
    write_out(a, "\n", 1);
    report_flush();
}

static uint32_t id_at(const char *ids, size_t i)
{
    uint32_t id;

    memcpy(&id, ids + i * sizeof id, sizeof id);
    return id;
}

void answer_out_ids(struct answer_out *a, bool is_prompt, const char *ids, size_t n)
{
    struct json j;
    char text[16];

    if (a->json) {
        json_start_stream(&j, stdout);
        json_object(&j, NULL);
        json_string(&j, "event", is_prompt ? "prompt_ids" : "ids");
        json_array(&j, "ids");
        for (size_t i = 0; i < n / sizeof(uint32_t); i++)
            json_u64(&j, NULL, id_at(ids, i));
        json_end(&j);
        json_end(&j);
        json_line(&j);
    } else if (!is_prompt) {
        for (size_t i = 0; i < n / sizeof(uint32_t); i++)
            write_out(a, text, (size_t)snprintf(text, sizeof text, "%s%u", i > 0 ? " " : "",
                                                id_at(ids, i)));
    }
    report_flush();
}

void answer_out_thought(struct answer_out *a, bool is_quiet)
{
    static const char thought[] =
        "the text until here was the model's thinking: it closed it without opening it";
    struct json j;

    if (a->json) {
        json_start_stream(&j, stdout);
        json_object(&j, NULL);
        json_string(&j, "event", "thought");
        json_end(&j);
        json_line(&j);
        keep(&a->thinking, a->text.bytes, a->text.n);
        a->thinking.is_cut = a->thinking.is_cut || a->text.is_cut;
        a->text.n = 0;
        a->text.is_cut = false;
    } else if (a->any && a->last != '\n') {
        write_out(a, "\n", 1); /* the answer begins on a line of its own */
    }
    report_flush();
    if (!is_quiet && !a->json)
        report_notice(thought, sizeof thought - 1);
}

void answer_out_done(struct answer_out *a, const struct mw_receipt *r,
                     const struct mw_sample *s, const struct mw_limits *predicted)
{
    struct json j;

    if (a->json) {
        json_start_stream(&j, stdout);
        json_object(&j, NULL);
        json_string(&j, "event", "done");
        json_string_n(&j, "text", a->text.bytes != NULL ? a->text.bytes : "", a->text.n);
        if (a->thinking.n > 0)
            json_string_n(&j, "thinking", a->thinking.bytes, a->thinking.n);
        if (a->text.is_cut || a->thinking.is_cut)
            json_bool(&j, "cut", true);
        if (a->is_help)
            json_bool(&j, "help", true);
        if (a->input_left)
            json_bool(&j, "input_left", true);
        summary_json(&j, r, s);
        if (predicted != NULL)
            limits_json(&j, predicted);
        json_end(&j);
        json_line(&j);
    } else {
        if (a->is_terminal)
            clean_end(&a->clean, write_clean, a);
        if (a->any && a->last != '\n' && (a->is_terminal || !a->raw))
            putchar('\n');
    }
    report_flush();
}

void answer_out_close(struct answer_out *a)
{
    free(a->text.bytes);
    free(a->thinking.bytes);
    *a = (struct answer_out){ 0 };
}
