/* The fields of OpenAI's requests.  See request.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"

/* ---- messages ---- */

static const char *const part_members[] = { "type", "text", "cache_control", NULL };

static const char *const message_members[] = {
    "role",       "content",      "name",    "reasoning",   "reasoning_content",
    "tool_calls", "tool_call_id", "refusal", "annotations", NULL
};

static int write_role(struct json *j, const struct json_node *role, struct err *e)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    const char *name = json_as_string(role);

    if (value_is(role, "developer"))
        name = "system";
    for (size_t i = 0; name != NULL && i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(name, roles[i]) == 0) {
            json_string(j, "role", name);
            return 0;
        }
    return request_wrong(e, "role", "expected system, developer, user, assistant or tool");
}

/* Some templates print the name of a person, too. */
static int write_name(struct json *j, const struct json_node *name, struct err *e)
{
    if (name == NULL)
        return 0;
    if (name->kind != JSON_IS_STRING)
        return request_wrong(e, "name", "expected a text");
    json_string_n(j, "name", name->text, name->len);
    return 0;
}

/* Answers are sent back as they came: one of calls or of thinking has no content.  The result of a
 * call may be nothing. */
static bool needs_content(const struct json_node *role)
{
    return !value_is(role, "assistant") && !value_is(role, "tool");
}

static int write_message(struct json *j, const struct json_node *m, struct call_names *names,
                         struct err *e)
{
    const struct json_node *thinking = json_get(m, "reasoning_content"),
                           *name = json_get(m, "name"), *id = json_get(m, "tool_call_id");
    bool is_result = value_is(json_get(m, "role"), "tool");

    if (m->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(m, message_members, e) != 0)
        return -1;
    if (thinking == NULL)
        thinking = json_get(m, "reasoning");
    json_object(j, NULL);
    if (write_role(j, json_get(m, "role"), e) != 0)
        return -1;
    if (json_get(m, "content") == NULL && needs_content(json_get(m, "role")))
        return request_wrong(e, "content", "expected a text or a list of parts");
    if (request_content(j, "content", json_get(m, "content"), part_members, e) != 0)
        return -1;
    if (thinking != NULL && thinking->kind == JSON_IS_STRING)
        json_string_n(j, "reasoning_content", thinking->text, thinking->len);
    if (request_calls(j, json_get(m, "tool_calls"), names, e) != 0)
        return -1;
    if (is_result && id == NULL)
        return request_wrong(e, "tool_call_id", "this field is missing");
    if (is_result ? request_result(j, names, id, name, e) != 0 : write_name(j, name, e) != 0)
        return -1;
    json_end(j);
    return 0;
}

static int take_messages(struct request *r, const struct json_node *n, struct err *e)
{
    return request_messages(r, n, 1, write_message, e);
}

/* A prompt as a list of tokens. */
static int take_ids(struct request *r, const struct json_node *n, struct err *e)
{
    size_t i = 0;

    free(r->ids);
    r->n_ids = 0;
    r->ids = calloc(n->n, sizeof *r->ids);
    if (r->ids == NULL)
        return err_memory(e, "a request");
    for (const struct json_node *id = n->first; id != NULL; id = id->next, i++) {
        int64_t v;

        if (value_integer(id, 0, INT32_MAX, &v, e) != 0)
            return request_at(e, i);
        r->ids[r->n_ids++] = (uint32_t)v;
    }
    free(r->text);
    r->text = NULL;
    r->text_len = 0;
    return 0;
}

/* A text or its tokens, or a list of one of them. */
static int take_prompt(struct request *r, const struct json_node *n, struct err *e)
{
    if (n->kind == JSON_IS_ARRAY && n->n == 1 && n->first->kind != JSON_IS_NUMBER)
        n = n->first;
    if (n->kind == JSON_IS_ARRAY && n->n > 0 && n->first->kind == JSON_IS_NUMBER)
        return take_ids(r, n, e);
    if (n->kind != JSON_IS_STRING)
        return err_set(e, ERR_UNSUPPORTED, "only one text or one list of tokens is supported");
    free(r->ids);
    r->ids = NULL;
    r->n_ids = 0;
    free(r->text);
    r->text = value_copy(n->text, n->len, e);
    r->text_len = n->len;
    return r->text != NULL ? 0 : -1;
}

/* ---- other fields ---- */

static int take_include_usage(struct request *r, const struct json_node *n, struct err *e)
{
    return value_bool(n, &r->with_usage, e);
}

static int take_stream_options(struct request *r, const struct json_node *n, struct err *e)
{
    static const struct request_field fields[] = {
        { "include_usage", take_include_usage },
        { "include_obfuscation", take_false },
        { NULL, NULL },
    };

    return request_fields(r, n, fields, e);
}

static int take_thinking(struct request *r, const struct json_node *n, struct err *e)
{
    bool on;

    if (value_bool(n, &on, e) != 0)
        return -1;
    r->think = on ? MW_THINK_ON : MW_THINK_OFF;
    return 0;
}

static int take_template_values(struct request *r, const struct json_node *n, struct err *e)
{
    static const struct request_field fields[] = {
        { "enable_thinking", take_thinking },
        { "thinking", take_thinking },
        { NULL, NULL },
    };

    return request_fields(r, n, fields, e);
}

static int take_effort(struct request *r, const struct json_node *n, struct err *e)
{
    if (!value_is(n, "none"))
        return err_set(e, ERR_UNSUPPORTED,
                       "only \"none\" is supported; chat_template_kwargs.enable_thinking "
                       "switches thinking on");
    r->think = MW_THINK_OFF;
    return 0;
}

static int take_tool_choice(struct request *r, const struct json_node *n, struct err *e)
{
    static const char *const members[] = { "type", "function", NULL };
    static const char *const inner[] = { "name", NULL };
    const struct json_node *f = json_get(n, "function");

    r->must_call = false;
    r->no_tools = value_is(n, "none");
    if (r->no_tools || value_is(n, "auto"))
        return 0;
    if (value_is(n, "required"))
        return request_must_call(r, NULL, e);
    if (n->kind != JSON_IS_OBJECT || !value_is(json_get(n, "type"), "function") || f == NULL ||
        f->kind != JSON_IS_OBJECT || json_get(f, "name") == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "only \"none\", \"auto\", \"required\" and the name of a function are "
                       "supported");
    if (request_known(n, members, e) != 0)
        return -1;
    if (request_known(f, inner, e) != 0 || request_must_call(r, json_get(f, "name"), e) != 0)
        return request_in(e, "function");
    return 0;
}

/* The number of the most likely tokens beside the one that was chosen. */
static int take_n_logprob(struct request *r, const struct json_node *n, int64_t most,
                          struct err *e)
{
    int64_t v;

    if (value_integer(n, 0, most, &v, e) != 0)
        return -1;
    r->n_logprob = (uint32_t)v + 1;
    return 0;
}

static int take_top_logprobs(struct request *r, const struct json_node *n, struct err *e)
{
    return take_n_logprob(r, n, MW_LOGPROBS - 1, e);
}

static int take_text_logprobs(struct request *r, const struct json_node *n, struct err *e)
{
    r->has_logprobs = true;
    return take_n_logprob(r, n, 5, e);
}

/* The id of a token, as the name of a member. */
static bool is_id(const char *name, uint32_t *id)
{
    char *end;
    unsigned long long v;

    if (name[0] < '0' || name[0] > '9')
        return false;
    v = strtoull(name, &end, 10);
    *id = (uint32_t)v;
    return *end == '\0' && v <= INT32_MAX;
}

/* {"50256": -100}: the last member of a token counts. */
static int take_bias(struct request *r, const struct json_node *n, struct err *e)
{
    if (n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object with ids of tokens");
    if (n->n > MW_LOGIT_BIASES)
        return err_set(e, ERR_UNSUPPORTED, "more than %d tokens", MW_LOGIT_BIASES);
    free(r->bias);
    r->n_bias = 0;
    r->bias = calloc(n->n + 1, sizeof *r->bias);
    if (r->bias == NULL)
        return err_memory(e, "a request");
    for (const struct json_node *m = n->first; m != NULL; m = m->next) {
        uint32_t id, i = 0;
        double bias;

        if (!is_id(m->key, &id))
            return request_wrong(e, m->key, "expected the id of a token");
        if (value_number(m, -100, 100, &bias, e) != 0)
            return err_at(e, NULL, ERR_NO_OFFSET, m->key);
        while (i < r->n_bias && r->bias[i].id != id)
            i++;
        r->n_bias += i == r->n_bias;
        r->bias[i] = (struct mw_logit_bias){ id, (float)bias };
    }
    return 0;
}

static int take_logprobs(struct request *r, const struct json_node *n, struct err *e)
{
    return value_bool(n, &r->has_logprobs, e);
}

static int take_return_ids(struct request *r, const struct json_node *n, struct err *e)
{
    return value_bool(n, &r->has_ids, e);
}

static int take_parallel(struct request *r, const struct json_node *n, struct err *e)
{
    bool v;

    if (value_bool(n, &v, e) != 0)
        return -1;
    r->one_call = !v;
    return 0;
}

static int take_tier(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    if (!value_is(n, "auto") && !value_is(n, "default"))
        return err_set(e, ERR_UNSUPPORTED, "only \"auto\" and \"default\" are supported");
    return 0;
}

static int take_modalities(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    if (n->kind != JSON_IS_ARRAY || n->n != 1 || !value_is(n->first, "text"))
        return err_set(e, ERR_UNSUPPORTED, "only [\"text\"] is supported");
    return 0;
}

/* clang-format off */
#define SHARED_FIELDS                                                                          \
    { "model", take_model }, { "temperature", take_temperature }, { "top_p", take_top_p },     \
    { "top_k", take_top_k }, { "min_p", take_min_p },                                          \
    { "repetition_penalty", take_repeat_penalty }, { "repeat_penalty", take_repeat_penalty },  \
    { "repeat_last_n", take_repeat_last }, { "seed", take_seed },                              \
    { "max_tokens", take_max_tokens }, { "stop", take_stop }, { "stream", take_stream },       \
    { "stream_options", take_stream_options }, { "n", take_one }, { "user", take_label },      \
    { "presence_penalty", take_presence_penalty },                                             \
    { "frequency_penalty", take_frequency_penalty }, { "grammar", take_grammar },              \
    { "response_format", take_response_format }, { "logit_bias", take_bias },    \
    { "return_token_ids", take_return_ids }

const struct request_field request_chat_fields[] = {
    SHARED_FIELDS,
    { "messages", take_messages },
    { "max_completion_tokens", take_max_tokens },
    { "logprobs", take_logprobs },
    { "top_logprobs", take_top_logprobs },
    { "tools", take_tools },
    { "tool_choice", take_tool_choice },
    { "parallel_tool_calls", take_parallel },
    { "reasoning_effort", take_effort },
    { "chat_template_kwargs", take_template_values },
    { "metadata", take_label },
    { "modalities", take_modalities },
    { "prompt_cache_key", take_label },
    { "prompt_cache_retention", take_label },
    { "safety_identifier", take_label },
    { "service_tier", take_tier },
    { "store", take_false },
    { NULL, NULL },
};

const struct request_field request_completion_fields[] = {
    SHARED_FIELDS,
    { "prompt", take_prompt },
    { "best_of", take_one },
    { "echo", take_false },
    { "logprobs", take_text_logprobs },
    { "suffix", take_empty },
    { NULL, NULL },
};
/* clang-format on */

int request_check_openai(struct request *r, struct err *e)
{
    if (r->form == FORM_CHAT && !r->has_messages)
        return request_wrong(e, "messages", "this field is missing");
    if (r->form == FORM_COMPLETION && r->text == NULL && r->n_ids == 0)
        return request_wrong(e, "prompt", "this field is missing");
    if (r->n_logprob > 1 && !r->has_logprobs)
        return request_wrong(e, "top_logprobs", "this field needs \"logprobs\": true");
    r->n_logprob = !r->has_logprobs ? 0 : r->n_logprob > 0 ? r->n_logprob : 1;
    return 0;
}
