/*
 * The body of a request.  Fields that OpenAI's protocol does not have are sent only if their
 * option was set, or to kinds of servers that are known to read them: others refuse a request
 * with an unknown field.
 */
#include "config.h"

#include <string.h>

#include "engine/format/json.h"
#include "engine/remote/remote_internal.h"

#define DECIMALS 6

static void write_message(struct json *j, const char *role, const char *text, size_t len)
{
    json_object(j, NULL);
    json_string(j, "role", role);
    json_string_n(j, "content", text, len);
    json_end(j);
}

static void write_messages(struct json *j, const struct mw_remote *r)
{
    static const char *const roles[] = {
        [CHAT_SYSTEM] = "system", [CHAT_USER] = "user", [CHAT_ASSISTANT] = "assistant"
    };
    const struct conversation *c = &r->conversation;
    const char *system = r->settings.o.system;

    json_array(j, "messages");
    if (system != NULL)
        write_message(j, "system", system, strlen(system));
    for (size_t i = 0; i < c->n_turn; i++)
        if (!conversation_is_aside(c, i))
            write_message(j, roles[c->turns[i].role], c->turns[i].text, c->turns[i].len);
    json_end(j);
}

/* A value below 0 is not set: see mw_remote_sampling(). */
static void write_sampling(struct json *j, enum mw_server_kind kind, const struct mw_sampling *s,
                           uint32_t attempt)
{
    bool is_vllm = kind == MW_SERVER_VLLM || kind == MW_SERVER_SGLANG;

    if (s->temp >= 0)
        json_double(j, "temperature", (double)s->temp, DECIMALS);
    if (s->top_p >= 0)
        json_double(j, "top_p", (double)s->top_p, DECIMALS);
    if (s->top_k >= 0)
        json_u64(j, "top_k", (uint64_t)s->top_k);
    if (s->min_p >= 0)
        json_double(j, "min_p", (double)s->min_p, DECIMALS);
    if (s->repeat_penalty > 0)
        json_double(j, is_vllm ? "repetition_penalty" : "repeat_penalty",
                    (double)s->repeat_penalty, DECIMALS);
    if (s->repeat_penalty > 0 && s->repeat_last > 0 && !is_vllm && s->repeat_last < INT32_MAX)
        json_u64(j, "repeat_last_n", s->repeat_last);
    if (s->seed.is_set) /* another answer to the same message has another one */
        json_u64(j, "seed", (s->seed.value + attempt) & INT64_MAX);
}

static void write_thinking(struct json *j, enum mw_server_kind kind, enum mw_think think)
{
    if (think == MW_THINK_DEFAULT)
        return;
    if (kind == MW_SERVER_OLLAMA) {
        json_string(j, "reasoning_effort", think == MW_THINK_ON ? "medium" : "none");
        return;
    }
    json_object(j, "chat_template_kwargs");
    json_bool(j, "enable_thinking", think == MW_THINK_ON);
    json_end(j);
}

static void write_stream(struct json *j, enum mw_server_kind kind)
{
    json_bool(j, "stream", true);
    json_object(j, "stream_options");
    json_bool(j, "include_usage", true);
    if (kind == MW_SERVER_VLLM)
        json_bool(j, "continuous_usage_stats", true);
    json_end(j);
    if (kind == MW_SERVER_LLAMA) {
        json_bool(j, "timings_per_token", true);
        json_bool(j, "return_progress", true);
    }
}

/* A grammar has no field in the protocol: these kinds have the same notation and the same name. */
static int write_form(struct json *j, enum mw_server_kind kind, const struct mw_chat_options *o,
                      struct err *e)
{
    struct json_doc *doc = NULL;

    if (o->grammar != NULL && kind != MW_SERVER_LLAMA && kind != MW_SERVER_MEMWALL) {
        err_set(e, ERR_UNSUPPORTED,
                "only llama-server and memwall are known to take grammars; --schema is for all "
                "servers");
        return err_at(e, NULL, ERR_NO_OFFSET, "--grammar");
    }
    if (o->grammar != NULL)
        json_string(j, "grammar", o->grammar);
    if (o->schema == NULL)
        return 0;
    if (json_parse(&doc, o->schema, strlen(o->schema), e) != 0)
        return -1;
    json_object(j, "response_format");
    json_string(j, "type", "json_schema");
    json_object(j, "json_schema");
    json_string(j, "name", "answer");
    json_bool(j, "strict", true);
    json_copy(j, "schema", json_root(doc));
    json_end(j);
    json_end(j);
    json_free(doc);
    return 0;
}

int body_write(struct json *j, const struct mw_remote *r, bool resumes, uint32_t n_predict,
               uint32_t attempt, struct err *e)
{
    const struct mw_chat_options *o = &r->settings.o;
    enum mw_server_kind kind = r->server.kind;

    json_start(j);
    json_object(j, NULL);
    json_string(j, "model", mw_remote_model_used(r));
    write_messages(j, r);
    write_stream(j, kind);
    if (resumes && (kind == MW_SERVER_VLLM || kind == MW_SERVER_SGLANG)) {
        json_bool(j, "continue_final_message", true);
        json_bool(j, "add_generation_prompt", false);
    }
    if (n_predict > 0)
        json_u64(j, "max_tokens", n_predict);
    write_sampling(j, kind, &o->sampling, attempt);
    write_thinking(j, kind, o->think);
    if (o->stop != NULL && o->stop[0] != NULL) {
        json_array(j, "stop");
        for (size_t i = 0; o->stop[i] != NULL; i++)
            json_string(j, NULL, o->stop[i]);
        json_end(j);
    }
    if (write_form(j, kind, o, e) != 0)
        return -1;
    json_end(j);
    json_raw(j, "", 1); /* a NUL */
    return j->failed ? err_memory(e, "a request") : 0;
}
