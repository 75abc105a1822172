/* The fields of Anthropic's requests.  See request.h. */
#include "config.h"

#include <string.h>

#include "src/serve/request_field.h"

/* Marks of what may be cached are accepted: the beginning that two requests share always is. */
static const char *const block_members[] = { "type", "text", "cache_control", "citations", NULL };
static const char *const message_members[] = { "role", "content", NULL };

static const char *const use_members[] = { "type", "id", "name", "input", "cache_control",
                                           "caller", NULL };
static const char *const result_members[] = { "type", "tool_use_id", "content", "is_error",
                                              "cache_control", NULL };

/* The thinking of an earlier answer has a signature, which is empty here. */
static const char *const thinking_members[] = { "type", "thinking", "signature", NULL };

/* The result of a call is a message of its own. */
static int write_result(struct json *j, const struct call_names *names,
                        const struct json_node *b, struct err *e)
{
    const struct json_node *id = json_get(b, "tool_use_id");
    bool is_error = false;

    if (json_as_string(id) == NULL)
        return request_wrong(e, "tool_use_id", "expected a text");
    if (request_known(b, result_members, e) != 0)
        return -1;
    if (json_get(b, "is_error") != NULL && value_bool(json_get(b, "is_error"), &is_error, e) != 0)
        return request_in(e, "is_error");
    json_object(j, NULL);
    json_string(j, "role", "tool");
    if (request_content(j, "content", json_get(b, "content"), block_members, e) != 0)
        return -1;
    if (request_result(j, names, id, NULL, e) != 0)
        return -1;
    if (is_error) /* for templates that know it */
        json_bool(j, "is_error", true);
    json_end(j);
    return 0;
}

static bool is_of_type(const struct json_node *block, const char *type)
{
    return value_is(json_get(block, "type"), type);
}

/* The blocks of an answer: its text, its thinking and its calls. */
static int write_answer(struct json *j, const struct json_node *blocks,
                        struct call_names *names, struct err *e)
{
    struct json text, thinking;
    size_t i = 0, n_call = 0;
    int rc = 0;

    json_start(&text);
    json_start(&thinking);
    for (const struct json_node *b = blocks->first; b != NULL && rc == 0; b = b->next, i++) {
        const struct json_node *in = json_get(b, is_of_type(b, "thinking") ? "thinking" : "text");

        n_call += is_of_type(b, "tool_use");
        if (is_of_type(b, "tool_use") || is_of_type(b, "redacted_thinking"))
            continue;
        if (is_of_type(b, "thinking"))
            rc = request_known(b, thinking_members, e);
        else if (is_of_type(b, "text"))
            rc = request_known(b, block_members, e);
        else
            rc = request_wrong(e, "type", "only text, thinking and tool_use are supported");
        if (rc == 0 && (in == NULL || in->kind != JSON_IS_STRING))
            rc = request_wrong(e, "text", "expected a text");
        if (rc == 0)
            json_raw(is_of_type(b, "thinking") ? &thinking : &text, in->text, in->len);
        else
            request_at(e, i);
    }
    if (rc == 0) {
        json_string_n(j, "content", text.used > 0 ? text.buf : "", text.used);
        if (thinking.used > 0)
            json_string_n(j, "reasoning_content", thinking.buf, thinking.used);
    }
    j->failed = j->failed || text.failed || thinking.failed;
    json_release(&text);
    json_release(&thinking);
    if (rc != 0 || n_call == 0)
        return rc;
    json_array(j, "tool_calls");
    i = 0;
    for (const struct json_node *b = blocks->first; b != NULL; b = b->next, i++)
        if (is_of_type(b, "tool_use") &&
            (request_known(b, use_members, e) != 0 ||
             request_call(j, names, json_get(b, "id"), json_get(b, "name"),
                          json_get(b, "input"), e) != 0))
            return request_at(e, i);
    json_end(j);
    return 0;
}

/* The text of a user's blocks, without results of calls. */
static int write_text(struct json *j, const struct json_node *blocks, struct err *e)
{
    struct json text;
    size_t i = 0, n = 0;
    int rc = 0;

    json_start(&text);
    for (const struct json_node *b = blocks->first; b != NULL && rc == 0; b = b->next, i++) {
        if (is_of_type(b, "tool_result"))
            continue;
        n++;
        rc = request_part(&text, b, block_members, e);
        if (rc != 0)
            request_at(e, i);
    }
    if (rc == 0 && n > 0) {
        json_object(j, NULL);
        json_string(j, "role", "user");
        json_string_n(j, "content", text.used > 0 ? text.buf : "", text.used);
        json_end(j);
    }
    j->failed = j->failed || text.failed;
    json_release(&text);
    return rc;
}

/* The blocks of a user: results of calls are messages of their own, before the text. */
static int write_blocks(struct json *j, const struct call_names *names,
                        const struct json_node *blocks, struct err *e)
{
    size_t i = 0;

    for (const struct json_node *b = blocks->first; b != NULL; b = b->next, i++)
        if (is_of_type(b, "tool_result") && write_result(j, names, b, e) != 0)
            return request_at(e, i);
    return write_text(j, blocks, e);
}

static int write_message(struct json *j, const struct json_node *m, struct call_names *names,
                         struct err *e)
{
    const struct json_node *role = json_get(m, "role"), *content = json_get(m, "content");
    bool is_list = content != NULL && content->kind == JSON_IS_ARRAY, is_answer;
    int rc;

    if (m->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(m, message_members, e) != 0)
        return -1;
    is_answer = value_is(role, "assistant");
    if (!is_answer && !value_is(role, "user"))
        return request_wrong(e, "role", "expected user or assistant");
    if (content == NULL)
        return request_wrong(e, "content", "expected a text or a list of blocks");
    if (is_list && !is_answer) {
        rc = write_blocks(j, names, content, e);
        return rc != 0 ? request_in(e, "content") : 0;
    }
    json_object(j, NULL);
    json_string(j, "role", role->text);
    if (is_list && write_answer(j, content, names, e) != 0)
        return request_in(e, "content");
    if (!is_list && request_content(j, "content", content, block_members, e) != 0)
        return -1;
    json_end(j);
    return 0;
}

static int take_messages(struct request *r, const struct json_node *n, struct err *e)
{
    const struct json_node *last = n->first;

    if (request_messages(r, n, 1, write_message, e) != 0)
        return -1;
    while (last->next != NULL)
        last = last->next;
    if (value_is(json_get(last, "role"), "assistant"))
        return err_set(e, ERR_UNSUPPORTED, "the last message must be one of the user");
    return 0;
}

static int take_system(struct request *r, const struct json_node *n, struct err *e)
{
    json_release(&r->system);
    return request_text(&r->system, n, block_members, e);
}

static int take_thinking(struct request *r, const struct json_node *n, struct err *e)
{
    const struct json_node *type = json_get(n, "type");
    static const char *const members[] = { "type", "budget_tokens", "display", NULL };

    if (n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(n, members, e) != 0)
        return -1;
    if (value_is(type, "enabled"))
        r->think = MW_THINK_ON;
    else if (value_is(type, "disabled"))
        r->think = MW_THINK_OFF;
    else if (!value_is(type, "adaptive"))
        return request_wrong(e, "type", "expected enabled, disabled or adaptive");
    return 0;
}

static int take_tool_choice(struct request *r, const struct json_node *n, struct err *e)
{
    static const char *const members[] = { "type", "name", "disable_parallel_tool_use", NULL };
    const struct json_node *type = json_get(n, "type"), *name = json_get(n, "name");
    bool is_tool = value_is(type, "tool"), must_call = is_tool || value_is(type, "any");

    if (n->kind != JSON_IS_OBJECT || (!is_tool && !value_is(type, "none") &&
                                      !value_is(type, "auto") && !value_is(type, "any")))
        return request_wrong(e, "type", "expected none, auto, any or tool");
    if (is_tool != (name != NULL))
        return request_wrong(e, "name", "the type \"tool\" has a name, and no other type has one");
    r->one_call = false;
    if (json_get(n, "disable_parallel_tool_use") != NULL &&
        value_bool(json_get(n, "disable_parallel_tool_use"), &r->one_call, e) != 0)
        return request_in(e, "disable_parallel_tool_use");
    if (request_known(n, members, e) != 0)
        return -1;
    r->no_tools = value_is(type, "none");
    r->must_call = false;
    return must_call ? request_must_call(r, name, e) : 0;
}

static int take_tool(struct request *r, const struct json_node *t, struct err *e)
{
    static const char *const members[] = { "type",         "name",          "description",
                                           "input_schema", "cache_control", "strict",
                                           NULL };
    const struct json_node *type = json_get(t, "type");

    if (t->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (type != NULL && !value_is(type, "custom"))
        return request_wrong(e, "type", "only \"custom\" is supported");
    if (request_known(t, members, e) != 0)
        return -1;
    return request_tool(r, json_get(t, "name"), json_get(t, "description"),
                        json_get(t, "input_schema"), json_get(t, "strict"), e);
}

static int take_definitions(struct request *r, const struct json_node *n, struct err *e)
{
    return request_tools(r, n, take_tool, e);
}

static int take_tier(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    if (!value_is(n, "auto") && !value_is(n, "standard_only"))
        return err_set(e, ERR_ARGUMENT, "expected auto or standard_only");
    return 0;
}

const struct request_field request_messages_fields[] = {
    { "model", take_model },
    { "messages", take_messages },
    { "system", take_system },
    { "max_tokens", take_max_tokens },
    { "metadata", take_label },
    { "cache_control", take_label },
    { "output_config", take_output_config },
    { "service_tier", take_tier },
    { "stop_sequences", take_stop },
    { "stream", take_stream },
    { "temperature", take_temperature },
    { "thinking", take_thinking },
    { "tool_choice", take_tool_choice },
    { "tools", take_definitions },
    { "top_k", take_top_k },
    { "top_p", take_top_p },
    { NULL, NULL },
};

int request_check_anthropic(struct request *r, struct err *e)
{
    if (!r->has_messages)
        return request_wrong(e, "messages", "this field is missing");
    return 0;
}
