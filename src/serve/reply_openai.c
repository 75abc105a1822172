/* Replies in OpenAI's form.  See reply.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/reply.h"

static bool is_chat(const struct reply *r)
{
    return r->job->request.form == FORM_CHAT;
}

static const char *finish_of(const struct job *j)
{
    if (j->n_call > 0 && j->receipt.done == MW_DONE_STOP)
        return "tool_calls";
    return j->receipt.done == MW_DONE_STOP ? "stop" : "length";
}

static void write_usage(const struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    json_object(out, "usage");
    json_u64(out, "prompt_tokens", j->n_prompt);
    json_u64(out, "completion_tokens", j->receipt.n_decoded);
    json_u64(out, "total_tokens", j->n_prompt + j->receipt.n_decoded);
    json_object(out, "prompt_tokens_details");
    json_u64(out, "cached_tokens", j->n_cached);
    json_end(out);
    json_end(out);
}

static void write_head(const struct reply *r, const char *object, struct json *out)
{
    json_object(out, NULL);
    json_string(out, "id", r->job->id);
    json_string(out, "object", object);
    json_u64(out, "created", (uint64_t)r->job->created);
    json_string(out, "model", r->model->id);
}

static void write_text(const struct job *j, enum piece_kind kind, const char *key,
                       struct json *out)
{
    size_t n;
    char *text = reply_join(j, kind, &n);

    if (n > 0 && text == NULL)
        out->failed = true;
    else if (n > 0 || kind == PIECE_TEXT)
        json_string_n(out, key, n > 0 ? text : "", n);
    free(text);
}

/* A call of the answer; index: in a stream. */
static void write_call(const struct job *j, const struct piece *p, uint32_t i, bool is_stream,
                       struct json *out)
{
    char id[sizeof j->id + 16];
    size_t n;
    const char *arguments = piece_arguments(p, &n);

    snprintf(id, sizeof id, "call_%s_%u", j->id, i);
    json_object(out, NULL);
    if (is_stream)
        json_u64(out, "index", i);
    json_string(out, "id", id);
    json_string(out, "type", "function");
    json_object(out, "function");
    json_string(out, "name", p->text);
    json_string_n(out, "arguments", arguments, n);
    json_end(out);
    json_end(out);
}

static void write_calls(const struct job *j, struct json *out)
{
    uint32_t i = 0;

    json_array(out, "tool_calls");
    for (const struct piece *p = j->first; p != NULL; p = p->next)
        if (p->kind == PIECE_CALL)
            write_call(j, p, i++, false, out);
    json_end(out);
}

/* Those of all tokens. */
static void write_logprobs(struct reply *r, struct json *out)
{
    size_t n;
    char *list = reply_join(r->job, PIECE_LOGPROBS, &n);

    out->failed = out->failed || (n > 0 && list == NULL);
    reply_logprobs(r, list, list != NULL ? n : 0, &r->offset, out);
    free(list);
}

/* The ids of a list of n bytes. */
static void write_ids(const char *key, const char *list, size_t n, struct json *out)
{
    uint32_t id;

    json_array(out, key);
    for (size_t i = 0; i < n / sizeof id; i++) {
        memcpy(&id, list + i * sizeof id, sizeof id);
        json_u64(out, NULL, id);
    }
    json_end(out);
}

static void write_all_ids(const struct job *j, enum piece_kind kind, const char *key,
                          struct json *out)
{
    size_t n;
    char *list = reply_join(j, kind, &n);

    out->failed = out->failed || (n > 0 && list == NULL);
    write_ids(key, list, list != NULL ? n : 0, out);
    free(list);
}

static void whole(struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    write_head(r, is_chat(r) ? "chat.completion" : "text_completion", out);
    json_array(out, "choices");
    json_object(out, NULL);
    json_u64(out, "index", 0);
    if (is_chat(r)) {
        json_object(out, "message");
        json_string(out, "role", "assistant");
        write_text(j, PIECE_THINKING, "reasoning_content", out);
        write_text(j, PIECE_TEXT, "content", out);
        if (j->n_call > 0)
            write_calls(j, out);
        json_end(out);
    } else {
        write_text(j, PIECE_TEXT, "text", out);
    }
    write_logprobs(r, out);
    if (j->request.has_ids) {
        write_all_ids(j, PIECE_PROMPT_IDS, "prompt_token_ids", out);
        write_all_ids(j, PIECE_IDS, "token_ids", out);
    }
    json_string(out, "finish_reason", finish_of(j));
    json_end(out);
    json_end(out);
    write_usage(r, out);
    json_end(out);
    json_line(out);
}

/* ---- streams ---- */

static void begin_chunk(const struct reply *r, struct json *out)
{
    json_raw(out, "data: ", 6);
    write_head(r, is_chat(r) ? "chat.completion.chunk" : "text_completion", out);
    json_array(out, "choices");
}

static void end_chunk(struct json *out)
{
    json_end(out);
    json_raw(out, "\n\n", 2);
}

static void end_choice(const struct reply *r, const char *finish, struct json *out)
{
    if (finish != NULL)
        json_string(out, "finish_reason", finish);
    else
        json_null(out, "finish_reason");
    json_end(out);
    json_end(out);
    if (r->job->request.with_usage)
        json_null(out, "usage");
    end_chunk(out);
}

static void begin_choice(const struct reply *r, struct json *out)
{
    begin_chunk(r, out);
    json_object(out, NULL);
    json_u64(out, "index", 0);
}

/* A choice with a member of its delta, or the text of a completion. */
static void write_choice(const struct reply *r, const char *key, const char *text, size_t len,
                         const char *finish, struct json *out)
{
    begin_choice(r, out);
    if (is_chat(r)) {
        json_object(out, "delta");
        if (strcmp(key, "role") == 0) {
            json_string(out, "role", "assistant");
            json_string(out, "content", "");
        } else if (len > 0) {
            json_string_n(out, key, text, len);
        }
        json_end(out);
    } else {
        json_string_n(out, "text", text, len);
    }
    json_null(out, "logprobs");
    end_choice(r, finish, out);
}

static void begin_empty_choice(struct reply *r, struct json *out)
{
    begin_choice(r, out);
    if (is_chat(r)) {
        json_object(out, "delta");
        json_string(out, "content", "");
        json_end(out);
    } else {
        json_string(out, "text", "");
    }
}

static void ids_choice(struct reply *r, const struct piece *p, struct json *out)
{
    begin_empty_choice(r, out);
    json_null(out, "logprobs");
    write_ids(p->kind == PIECE_IDS ? "token_ids" : "prompt_token_ids", p->text, p->len, out);
    end_choice(r, NULL, out);
}

/* The probabilities of tokens whose text follows. */
static void logprobs_choice(struct reply *r, const struct piece *p, struct json *out)
{
    begin_empty_choice(r, out);
    reply_logprobs(r, p->text, p->len, &r->offset, out);
    end_choice(r, NULL, out);
}

/* Other clients show the mark, and memwall's takes the text before it for thinking. */
static void mark_choice(const struct reply *r, const struct piece *p, struct json *out)
{
    begin_choice(r, out);
    json_object(out, "delta");
    json_string_n(out, "content", p->text, p->len);
    json_bool(out, "closes_thinking", true);
    json_end(out);
    json_null(out, "logprobs");
    end_choice(r, NULL, out);
}

static void begin(struct reply *r, struct json *out)
{
    if (is_chat(r))
        write_choice(r, "role", "", 0, NULL, out);
}

static void piece(struct reply *r, const struct piece *p, struct json *out)
{
    if (p->kind == PIECE_CALL) {
        begin_choice(r, out);
        json_object(out, "delta");
        json_array(out, "tool_calls");
        write_call(r->job, p, r->n_block++, true, out);
        json_end(out);
        json_end(out);
        json_null(out, "logprobs");
        end_choice(r, NULL, out);
        return;
    }
    if (p->kind == PIECE_LOGPROBS) {
        logprobs_choice(r, p, out);
        return;
    }
    if (p->kind == PIECE_MARK) {
        mark_choice(r, p, out);
        return;
    }
    if (p->kind == PIECE_IDS || p->kind == PIECE_PROMPT_IDS) {
        ids_choice(r, p, out);
        return;
    }
    write_choice(r, p->kind == PIECE_THINKING ? "reasoning_content" : "content", p->text, p->len,
                 NULL, out);
}

static void end(struct reply *r, struct json *out)
{
    const struct job *j = r->job;

    if (job_has_error(j)) {
        json_raw(out, "data: ", 6);
        reply_error(reply_status(&j->err), &j->err, out);
        json_raw(out, "\n\n", 2);
        return;
    }
    write_choice(r, "content", "", 0, finish_of(j), out);
    if (j->request.with_usage) {
        begin_chunk(r, out);
        json_end(out);
        write_usage(r, out);
        end_chunk(out);
    }
    json_raw(out, "data: [DONE]\n\n", 14);
}

const struct reply_form reply_chat = { "text/event-stream", true, begin, piece, end, whole,
                                       reply_error };
const struct reply_form reply_completion = { "text/event-stream", true, begin, piece, end, whole,
                                             reply_error };
