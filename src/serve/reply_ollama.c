/* Replies in Ollama's form.  See reply.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "src/serve/reply.h"
#include "src/serve/request_field.h"

static bool is_chat(const struct reply *r)
{
    return r->job->request.form == FORM_OLLAMA_CHAT;
}

static void write_head(const struct reply *r, struct json *out)
{
    char at[40];

    json_object(out, NULL);
    json_string(out, "model", r->model->id);
    json_string(out, "created_at", reply_time(time(NULL), at));
}

/* Call number i of the answer. */
static void write_call(const struct job *j, const struct piece *p, uint32_t i, struct json *out)
{
    char id[sizeof j->id + 16];
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    size_t n;
    const char *arguments = piece_arguments(p, &n);

    snprintf(id, sizeof id, "call_%s_%u", j->id, i);
    json_object(out, NULL);
    json_string(out, "id", id);
    json_object(out, "function");
    json_u64(out, "index", i);
    json_string(out, "name", p->text);
    if (json_parse(&doc, arguments, n, &ignored) == 0)
        json_copy(out, "arguments", json_root(doc));
    json_free(doc);
    json_end(out);
    json_end(out);
}

/* The text, the thinking and the calls of a piece, or of the whole answer (calls: its first
 * piece). */
static void write_texts(struct reply *r, const char *text, size_t n, const char *thinking,
                        size_t n_thinking, const struct piece *calls, struct json *out)
{
    if (is_chat(r)) {
        json_object(out, "message");
        json_string(out, "role", "assistant");
    }
    json_string_n(out, is_chat(r) ? "content" : "response", n > 0 ? text : "", n);
    if (n_thinking > 0)
        json_string_n(out, "thinking", thinking, n_thinking);
    if (calls != NULL) {
        json_array(out, "tool_calls");
        for (; calls != NULL; calls = calls->next)
            if (calls->kind == PIECE_CALL)
                write_call(r->job, calls, r->n_block++, out);
        json_end(out);
    }
    if (is_chat(r))
        json_end(out);
}

static const char *done_reason(const struct job *j)
{
    if (j->request.is_load)
        return "load";
    return j->receipt.done == MW_DONE_STOP ? "stop" : "length";
}

static void write_end(const struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    json_bool(out, "done", true);
    json_string(out, "done_reason", done_reason(j));
    if (!j->request.is_load) {
        json_u64(out, "total_duration", clock_ns() - j->arrived_ns);
        json_u64(out, "load_duration", 0);
        json_u64(out, "prompt_eval_count", j->n_prompt);
        json_u64(out, "prompt_eval_duration", j->receipt.prefill_ns);
        json_u64(out, "eval_count", j->receipt.n_decoded);
        json_u64(out, "eval_duration", j->receipt.decode_ns);
    }
    json_end(out);
    json_line(out);
}

static void begin(struct reply *r, struct json *out)
{
    (void)r, (void)out;
}

static void piece(struct reply *r, const struct piece *p, struct json *out)
{
    write_head(r, out);
    write_texts(r, p->text, p->kind == PIECE_TEXT ? p->len : 0, p->text,
                p->kind == PIECE_THINKING ? p->len : 0, p->kind == PIECE_CALL ? p : NULL, out);
    json_bool(out, "done", false);
    json_end(out);
    json_line(out);
}

static void error(int status, const struct err *err, struct json *out)
{
    char text[REPLY_ERROR_TEXT];

    (void)status;
    json_object(out, NULL);
    json_string(out, "error", reply_error_text(err, text));
    json_end(out);
}

static void end(struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    if (job_has_error(j)) {
        error(reply_status(&j->err), &j->err, out);
        json_line(out);
        return;
    }
    write_head(r, out);
    write_texts(r, "", 0, "", 0, NULL, out);
    write_end(r, out);
}

static void whole(struct reply *r, struct json *out)
{
    size_t n, n_thinking;
    char *text = reply_join(r->job, PIECE_TEXT, &n);
    char *thinking = reply_join(r->job, PIECE_THINKING, &n_thinking);

    if ((n > 0 && text == NULL) || (n_thinking > 0 && thinking == NULL))
        out->failed = true;
    else {
        write_head(r, out);
        write_texts(r, text, n, thinking, n_thinking,
                    r->job->n_call > 0 ? r->job->first : NULL, out);
        write_end(r, out);
    }
    free(text);
    free(thinking);
}

const struct reply_form reply_ollama_chat = { "application/x-ndjson", false, begin, piece, end,
                                              whole, error };
const struct reply_form reply_ollama_generate = { "application/x-ndjson", false, begin, piece,
                                                  end, whole, error };
