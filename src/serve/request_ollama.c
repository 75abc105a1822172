/* The fields of Ollama's requests.  See request.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"

static const char *const no_parts[] = { NULL };
static const char *const message_members[] = {
    "role", "content", "thinking", "images", "tool_calls", "tool_name", "name", "tool_call_id", NULL
};

/* Programs for other versions of Ollama, and for OpenAI, say "name" in place of "tool_name". */
static int find_name(const struct json_node *m, const struct json_node **name, struct err *e)
{
    const char *key = json_get(m, "tool_name") != NULL ? "tool_name" : "name";

    *name = json_get(m, key);
    if (*name != NULL && (*name)->kind != JSON_IS_STRING)
        return request_wrong(e, key, "expected a text");
    return 0;
}

static int write_message(struct json *j, const struct json_node *m, struct call_names *names,
                         struct err *e)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool" };
    const char *role = json_as_string(json_get(m, "role"));
    const struct json_node *content = json_get(m, "content"),
                           *thinking = json_get(m, "thinking"), *images = json_get(m, "images"),
                           *name;
    size_t i = 0;

    if (m->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(m, message_members, e) != 0)
        return -1;
    while (role != NULL && i < sizeof roles / sizeof roles[0] && strcmp(role, roles[i]) != 0)
        i++;
    if (role == NULL || i == sizeof roles / sizeof roles[0])
        return request_wrong(e, "role", "expected system, user, assistant or tool");
    if (content != NULL && content->kind != JSON_IS_STRING)
        return request_wrong(e, "content", "expected a text");
    if (images != NULL && take_empty(NULL, images, e) != 0)
        return request_in(e, "images");
    json_object(j, NULL);
    json_string(j, "role", role);
    if (request_content(j, "content", content, no_parts, e) != 0)
        return -1;
    if (thinking != NULL && thinking->kind == JSON_IS_STRING)
        json_string_n(j, "reasoning_content", thinking->text, thinking->len);
    if (request_calls(j, json_get(m, "tool_calls"), names, e) != 0 || find_name(m, &name, e) != 0 ||
        request_result(j, names, json_get(m, "tool_call_id"), name, e) != 0)
        return -1;
    json_end(j);
    return 0;
}

static int take_messages(struct request *r, const struct json_node *n, struct err *e)
{
    r->is_load = n->n == 0;
    return request_messages(r, n, 0, write_message, e);
}

static int take_prompt(struct request *r, const struct json_node *n, struct err *e)
{
    if (n->kind != JSON_IS_STRING)
        return err_set(e, ERR_ARGUMENT, "expected a text");
    free(r->text);
    r->text = value_copy(n->text, n->len, e);
    r->text_len = n->len;
    return r->text != NULL ? 0 : -1;
}

static int take_system(struct request *r, const struct json_node *n, struct err *e)
{
    if (n->kind != JSON_IS_STRING)
        return err_set(e, ERR_ARGUMENT, "expected a text");
    json_release(&r->system);
    json_raw(&r->system, n->text, n->len);
    return 0;
}

static int take_raw(struct request *r, const struct json_node *n, struct err *e)
{
    return value_bool(n, &r->is_raw, e);
}

static int take_think(struct request *r, const struct json_node *n, struct err *e)
{
    bool on;

    if (!json_as_bool(n, &on))
        return err_set(e, ERR_UNSUPPORTED, "only true and false are supported");
    r->think = on ? MW_THINK_ON : MW_THINK_OFF;
    return 0;
}

/* A model that is served stays loaded. */
static int take_keep_alive(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    if (n->kind != JSON_IS_STRING && n->kind != JSON_IS_NUMBER)
        return err_set(e, ERR_ARGUMENT, "expected a time");
    return 0;
}

/* -1 and -2 mean no limit, as 0 does here. */
static int take_predict(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, -2, UINT32_MAX, &v, e) != 0)
        return -1;
    r->n_predict = v < 0 ? 0 : (uint32_t)v;
    return 0;
}

static int take_ctx(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, 1, UINT32_MAX, &v, e) != 0)
        return -1;
    r->n_ctx = (uint32_t)v;
    return 0;
}

static int take_options(struct request *r, const struct json_node *n, struct err *e)
{
    static const struct request_field fields[] = {
        { "temperature", take_temperature },
        { "top_p", take_top_p },
        { "top_k", take_top_k },
        { "min_p", take_min_p },
        { "seed", take_seed },
        { "stop", take_stop },
        { "num_predict", take_predict },
        { "num_ctx", take_ctx },
        { "repeat_penalty", take_repeat_penalty },
        { "repeat_last_n", take_repeat_last },
        { "presence_penalty", take_presence_penalty },
        { "frequency_penalty", take_frequency_penalty },
        { "typical_p", take_one },
        { "tfs_z", take_one },
        { "mirostat", take_zero },
        { NULL, NULL },
    };

    return request_fields(r, n, fields, e);
}

/* clang-format off */
#define SHARED_FIELDS                                                                          \
    { "model", take_model }, { "stream", take_stream }, { "options", take_options },           \
    { "think", take_think }, { "keep_alive", take_keep_alive }, { "format", take_format }

const struct request_field request_ollama_chat_fields[] = {
    SHARED_FIELDS,
    { "messages", take_messages },
    { "tools", take_tools },
    { NULL, NULL },
};

const struct request_field request_ollama_generate_fields[] = {
    SHARED_FIELDS,
    { "prompt", take_prompt },
    { "system", take_system },
    { "raw", take_raw },
    { "suffix", take_empty },
    { "template", take_empty },
    { "context", take_empty },
    { "images", take_empty },
    { NULL, NULL },
};
/* clang-format on */

/* A prompt becomes the message of a user, unless it is raw. */
static void write_prompt(struct request *r)
{
    request_begin_messages(r);
    json_object(&r->messages, NULL);
    json_string(&r->messages, "role", "user");
    json_string_n(&r->messages, "content", r->text, r->text_len);
    json_end(&r->messages);
    json_end(&r->messages);
}

int request_check_ollama(struct request *r, struct err *e)
{
    if (r->form == FORM_OLLAMA_CHAT) {
        r->is_load = r->is_load || !r->has_messages;
        return 0;
    }
    r->is_load = r->text_len == 0;
    if (r->is_raw && r->system.used > 0)
        return request_wrong(e, "system", "a raw prompt has no system message");
    if (!r->is_raw && !r->is_load)
        write_prompt(r);
    return 0;
}
