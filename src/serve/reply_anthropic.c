/* Replies in Anthropic's form.  See reply.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/reply.h"
#include "src/serve/request_field.h"

static const char *stop_reason(const struct job *j)
{
    if (j->receipt.done != MW_DONE_STOP)
        return "max_tokens";
    if (j->n_call > 0)
        return "tool_use";
    return j->receipt.has_stop_text ? "stop_sequence" : "end_turn";
}

static void write_stop(const struct job *j, struct json *out)
{
    json_string(out, "stop_reason", stop_reason(j));
    if (j->receipt.has_stop_text && j->receipt.stop_text < j->request.n_stop)
        json_string(out, "stop_sequence", j->request.stop[j->receipt.stop_text]);
    else
        json_null(out, "stop_sequence");
}

static void write_usage(const struct job *j, uint64_t n_output, struct json *out)
{
    json_object(out, "usage");
    json_u64(out, "input_tokens", j->n_prompt - j->n_cached);
    json_u64(out, "cache_creation_input_tokens", 0);
    json_u64(out, "cache_read_input_tokens", j->n_cached);
    json_u64(out, "output_tokens", n_output);
    json_end(out);
}

static void write_head(const struct reply *r, const char *key, struct json *out)
{
    json_object(out, key);
    json_string(out, "id", r->job->id);
    json_string(out, "type", "message");
    json_string(out, "role", "assistant");
    json_string(out, "model", r->model->id);
}

static void write_block(const struct job *j, enum piece_kind kind, struct json *out)
{
    size_t n;
    char *text = reply_join(j, kind, &n);

    if (n > 0 && text == NULL)
        out->failed = true;
    if (n == 0 || text == NULL)
        return;
    json_object(out, NULL);
    json_string(out, "type", kind == PIECE_THINKING ? "thinking" : "text");
    json_string_n(out, kind == PIECE_THINKING ? "thinking" : "text", text, n);
    if (kind == PIECE_THINKING)
        json_string(out, "signature", "");
    json_end(out);
    free(text);
}

static void write_call(const struct job *j, const struct piece *p, uint32_t i, bool is_stream,
                       struct json *out)
{
    char id[sizeof j->id + 16];
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    size_t n;
    const char *arguments = piece_arguments(p, &n);

    snprintf(id, sizeof id, "toolu_%s_%u", j->id, i);
    json_string(out, "type", "tool_use");
    json_string(out, "id", id);
    json_string(out, "name", p->text);
    if (!is_stream && json_parse(&doc, arguments, n, &ignored) == 0) {
        json_copy(out, "input", json_root(doc));
    } else {
        json_object(out, "input");
        json_end(out);
    }
    json_free(doc);
}

static void write_calls(const struct job *j, struct json *out)
{
    uint32_t i = 0;

    for (const struct piece *p = j->first; p != NULL; p = p->next)
        if (p->kind == PIECE_CALL) {
            json_object(out, NULL);
            write_call(j, p, i++, false, out);
            json_end(out);
        }
}

static void whole(struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    write_head(r, NULL, out);
    json_array(out, "content");
    write_block(j, PIECE_THINKING, out);
    write_block(j, PIECE_TEXT, out);
    write_calls(j, out);
    json_end(out);
    write_stop(j, out);
    write_usage(j, j->receipt.n_decoded, out);
    json_end(out);
    json_line(out);
}

/* ---- streams ---- */

static void begin_event(const char *name, struct json *out)
{
    json_print(out, "event: %s\ndata: ", name);
    json_object(out, NULL);
    json_string(out, "type", name);
}

static void end_event(struct json *out)
{
    json_end(out);
    json_raw(out, "\n\n", 2);
}

static void begin(struct reply *r, struct json *out)
{
    begin_event("message_start", out);
    write_head(r, "message", out);
    json_array(out, "content");
    json_end(out);
    json_null(out, "stop_reason");
    json_null(out, "stop_sequence");
    write_usage(r->job, 0, out);
    json_end(out);
    end_event(out);
}

static void end_block(struct reply *r, struct json *out)
{
    if (!r->is_open)
        return;
    begin_event("content_block_stop", out);
    json_u64(out, "index", r->n_block - 1);
    end_event(out);
    r->is_open = false;
}

static void begin_block(struct reply *r, enum piece_kind kind, struct json *out)
{
    const char *name = kind == PIECE_THINKING ? "thinking" : "text";

    end_block(r, out);
    begin_event("content_block_start", out);
    json_u64(out, "index", r->n_block++);
    json_object(out, "content_block");
    json_string(out, "type", name);
    json_string(out, name, "");
    if (kind == PIECE_THINKING)
        json_string(out, "signature", "");
    json_end(out);
    end_event(out);
    r->is_open = true;
    r->kind = kind;
}

/* A call is a block of its own, with its arguments in one piece. */
static void call_block(struct reply *r, const struct piece *p, struct json *out)
{
    const char *arguments;
    size_t n;

    end_block(r, out);
    begin_event("content_block_start", out);
    json_u64(out, "index", r->n_block++);
    json_object(out, "content_block");
    write_call(r->job, p, r->n_block, true, out);
    json_end(out);
    end_event(out);
    begin_event("content_block_delta", out);
    json_u64(out, "index", r->n_block - 1);
    json_object(out, "delta");
    json_string(out, "type", "input_json_delta");
    arguments = piece_arguments(p, &n);
    json_string_n(out, "partial_json", arguments, n);
    json_end(out);
    end_event(out);
    r->is_open = true;
    end_block(r, out);
}

static void piece(struct reply *r, const struct piece *p, struct json *out)
{
    bool is_thinking = p->kind == PIECE_THINKING;

    if (p->kind == PIECE_CALL) {
        call_block(r, p, out);
        return;
    }
    if (!r->is_open || r->kind != p->kind)
        begin_block(r, p->kind, out);
    begin_event("content_block_delta", out);
    json_u64(out, "index", r->n_block - 1);
    json_object(out, "delta");
    json_string(out, "type", is_thinking ? "thinking_delta" : "text_delta");
    json_string_n(out, is_thinking ? "thinking" : "text", p->text, p->len);
    json_end(out);
    end_event(out);
}

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 500: return "api_error";
    case 503: return "overloaded_error";
    default: return "invalid_request_error";
    }
}

static void error(int status, const struct err *err, struct json *out)
{
    char text[REPLY_ERROR_TEXT];

    json_object(out, NULL);
    json_string(out, "type", "error");
    json_object(out, "error");
    json_string(out, "type", type_of(status));
    json_string(out, "message", reply_error_text(err, text));
    json_end(out);
    json_end(out);
}

static void end(struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    end_block(r, out);
    if (job_has_error(j)) {
        json_raw(out, "event: error\ndata: ", 19);
        error(reply_status(&j->err), &j->err, out);
        json_raw(out, "\n\n", 2);
        return;
    }
    begin_event("message_delta", out);
    json_object(out, "delta");
    write_stop(j, out);
    json_end(out);
    write_usage(j, j->receipt.n_decoded, out);
    end_event(out);
    begin_event("message_stop", out);
    end_event(out);
}

const struct reply_form reply_messages = { "text/event-stream", true, begin, piece, end, whole,
                                           error };
