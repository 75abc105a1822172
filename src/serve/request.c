/* See request.h. */
#include "config.h"

#include "src/serve/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/serve/request_field.h"

/* Arguments of a call fit a request, also that of Ollama, where they are in six others.  A copy, in
 * which arguments that were text are nested as well, can still be read again (JSON_MAX_DEPTH). */
#define REQUEST_DEPTH (6 + CALL_DEPTH)
#define FIELDS_MOST   1024

/* ---- values ---- */

int value_number(const struct json_node *n, double low, double high, double *out, struct err *e)
{
    if (n == NULL || n->kind != JSON_IS_NUMBER)
        return err_set(e, ERR_ARGUMENT, "expected a number");
    if (!json_as_float(n, out) || *out < low || *out > high)
        return err_set(e, ERR_ARGUMENT, "%.40s is not from %g to %g", n->text, low, high);
    return 0;
}

int value_integer(const struct json_node *n, int64_t low, int64_t high, int64_t *out,
                  struct err *e)
{
    double v;
    bool is_whole = json_as_int(n, out);

    if (is_whole && *out >= low && *out <= high)
        return 0;
    if (n == NULL || n->kind != JSON_IS_NUMBER ||
        (!is_whole && json_as_float(n, &v) && v > (double)low && v < (double)high))
        return err_set(e, ERR_ARGUMENT, "expected a whole number");
    return err_set(e, ERR_ARGUMENT, "%.40s is not from %lld to %lld", n->text, (long long)low,
                   (long long)high);
}

int value_bool(const struct json_node *n, bool *out, struct err *e)
{
    return json_as_bool(n, out) ? 0 : err_set(e, ERR_ARGUMENT, "expected true or false");
}

const char *value_text(const struct json_node *n, struct err *e)
{
    const char *text = json_as_string(n);

    if (text == NULL)
        err_set(e, ERR_ARGUMENT, n != NULL && n->kind == JSON_IS_STRING
                                     ? "the text contains a NUL"
                                     : "expected a text");
    return text;
}

char *value_copy(const char *text, size_t n, struct err *e)
{
    char *copy = malloc(n + 1);

    if (copy == NULL) {
        err_memory(e, "a request");
        return NULL;
    }
    if (n > 0)
        memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

bool value_is(const struct json_node *n, const char *word)
{
    const char *text = json_as_string(n);

    return text != NULL && strcmp(text, word) == 0;
}

/* ---- fields that protocols share ---- */

int take_model(struct request *r, const struct json_node *n, struct err *e)
{
    const char *text = value_text(n, e);

    if (text == NULL)
        return -1;
    free(r->model);
    r->model = value_copy(text, strlen(text), e);
    return r->model != NULL ? 0 : -1;
}

int take_temperature(struct request *r, const struct json_node *n, struct err *e)
{
    double v;

    if (value_number(n, 0, 100, &v, e) != 0)
        return -1;
    r->sampling.temp = (float)v;
    return 0;
}

static int take_share(const struct json_node *n, float *out, struct err *e)
{
    double v;

    if (value_number(n, 0, 1, &v, e) != 0)
        return -1;
    *out = (float)v;
    return 0;
}

int take_top_p(struct request *r, const struct json_node *n, struct err *e)
{
    return take_share(n, &r->sampling.top_p, e);
}

int take_min_p(struct request *r, const struct json_node *n, struct err *e)
{
    return take_share(n, &r->sampling.min_p, e);
}

/* -1 means all tokens in other programs, as 0 does. */
int take_top_k(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, -1, INT32_MAX, &v, e) != 0)
        return -1;
    r->sampling.top_k = v < 0 ? 0 : (int)v;
    return 0;
}

int take_repeat_penalty(struct request *r, const struct json_node *n, struct err *e)
{
    double v;

    if (value_number(n, 0.01, 100, &v, e) != 0)
        return -1;
    r->sampling.repeat_penalty = (float)v;
    return 0;
}

/* -1 means the context. */
int take_repeat_last(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, -1, UINT32_MAX, &v, e) != 0)
        return -1;
    r->sampling.repeat_last = v < 0 ? UINT32_MAX : (uint32_t)v;
    return 0;
}

/* -1 means a random seed in other programs. */
int take_seed(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, -1, INT64_MAX, &v, e) != 0)
        return -1;
    r->sampling.seed = v < 0 ? (struct mw_seed){ .is_set = false }
                             : (struct mw_seed){ .is_set = true, .value = (uint64_t)v };
    return 0;
}

int take_max_tokens(struct request *r, const struct json_node *n, struct err *e)
{
    int64_t v;

    if (value_integer(n, -1, UINT32_MAX, &v, e) != 0)
        return -1;
    if (v == 0)
        return err_set(e, ERR_ARGUMENT, "0 is not from 1 to %u, or -1 for no limit", UINT32_MAX);
    r->n_predict = v < 0 ? 0 : (uint32_t)v;
    return 0;
}

static int add_stop(struct request *r, const struct json_node *n, struct err *e)
{
    const char *text = value_text(n, e);

    if (text == NULL)
        return -1;
    if (text[0] == '\0' || strlen(text) > MW_STOP_BYTES)
        return err_set(e, ERR_ARGUMENT, "a text of %zu bytes is not of 1 to %d bytes",
                       strlen(text), MW_STOP_BYTES);
    if (r->n_stop == REQUEST_STOPS)
        return err_set(e, ERR_ARGUMENT, "more than %d texts", REQUEST_STOPS);
    r->stop[r->n_stop] = value_copy(text, strlen(text), e);
    return r->stop[r->n_stop] != NULL ? (r->n_stop++, 0) : -1;
}

int take_stop(struct request *r, const struct json_node *n, struct err *e)
{
    while (r->n_stop > 0) {
        free(r->stop[--r->n_stop]);
        r->stop[r->n_stop] = NULL;
    }
    if (n->kind != JSON_IS_ARRAY)
        return add_stop(r, n, e);
    for (const struct json_node *one = n->first; one != NULL; one = one->next)
        if (add_stop(r, one, e) != 0)
            return -1;
    return 0;
}

int take_stream(struct request *r, const struct json_node *n, struct err *e)
{
    return value_bool(n, &r->stream, e);
}

int take_label(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r, (void)n, (void)e;
    return 0;
}

static int take_only(const struct json_node *n, double only, struct err *e)
{
    double v;

    if (!json_as_float(n, &v) || v != only)
        return err_set(e, ERR_UNSUPPORTED, "only %g is supported", only);
    return 0;
}

static int take_penalty(const struct json_node *n, float *out, struct err *e)
{
    double v;

    if (value_number(n, -2, 2, &v, e) != 0)
        return -1;
    *out = (float)v;
    return 0;
}

int take_presence_penalty(struct request *r, const struct json_node *n, struct err *e)
{
    return take_penalty(n, &r->sampling.presence_penalty, e);
}

int take_frequency_penalty(struct request *r, const struct json_node *n, struct err *e)
{
    return take_penalty(n, &r->sampling.frequency_penalty, e);
}

int take_zero(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    return take_only(n, 0, e);
}

int take_one(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    return take_only(n, 1, e);
}

int take_false(struct request *r, const struct json_node *n, struct err *e)
{
    bool v;

    (void)r;
    if (!json_as_bool(n, &v) || v)
        return err_set(e, ERR_UNSUPPORTED, "only false is supported");
    return 0;
}

int take_empty(struct request *r, const struct json_node *n, struct err *e)
{
    (void)r;
    if (n->kind == JSON_IS_STRING ? n->len > 0
                                  : (n->kind != JSON_IS_OBJECT && n->kind != JSON_IS_ARRAY) ||
                                        n->n > 0)
        return err_set(e, ERR_UNSUPPORTED, "this field is not supported");
    return 0;
}

/* ---- messages ---- */

int request_known(const struct json_node *object, const char *const *names, struct err *e)
{
    for (const struct json_node *m = object->first; m != NULL; m = m->next) {
        size_t i = 0;

        while (names[i] != NULL && strcmp(names[i], m->key) != 0)
            i++;
        if (names[i] == NULL && m->kind != JSON_IS_NULL) {
            err_set(e, ERR_UNSUPPORTED, "this field is not supported");
            return err_at(e, NULL, ERR_NO_OFFSET, m->key);
        }
    }
    return 0;
}

int request_wrong(struct err *e, const char *field, const char *what)
{
    err_set(e, ERR_ARGUMENT, "%s", what);
    return err_at(e, NULL, ERR_NO_OFFSET, field);
}

int request_in(struct err *e, const char *outer)
{
    char field[sizeof e->field], inner[sizeof e->field];

    snprintf(inner, sizeof inner, "%s", e->field);
    snprintf(field, sizeof field, "%.40s%s%.50s", outer,
             inner[0] != '\0' && inner[0] != '[' ? "." : "", inner);
    e->field[0] = '\0';
    return err_at(e, NULL, ERR_NO_OFFSET, field);
}

int request_at(struct err *e, size_t i)
{
    char index[24];

    snprintf(index, sizeof index, "[%zu]", i);
    return request_in(e, index);
}

int request_part(struct json *text, const struct json_node *part, const char *const *also,
                 struct err *e)
{
    const struct json_node *in = json_get(part, "text");

    if (!value_is(json_get(part, "type"), "text"))
        return request_wrong(e, "type", "only parts of type \"text\" are supported");
    if (in == NULL || in->kind != JSON_IS_STRING)
        return request_wrong(e, "text", "expected a text");
    if (request_known(part, also, e) != 0)
        return -1;
    json_raw(text, in->text, in->len);
    return 0;
}

int request_text(struct json *text, const struct json_node *content,
                 const char *const *also, struct err *e)
{
    size_t i = 0;

    if (content == NULL || content->kind == JSON_IS_NULL)
        return 0;
    if (content->kind == JSON_IS_STRING) {
        json_raw(text, content->text, content->len);
        return 0;
    }
    if (content->kind != JSON_IS_ARRAY)
        return err_set(e, ERR_ARGUMENT, "expected a text or a list of parts");
    for (const struct json_node *part = content->first; part != NULL; part = part->next, i++)
        if (request_part(text, part, also, e) != 0)
            return request_at(e, i);
    return 0;
}

int request_content(struct json *j, const char *key, const struct json_node *content,
                    const char *const *also, struct err *e)
{
    struct json text;
    int rc;

    json_start(&text);
    rc = request_text(&text, content, also, e);
    if (rc != 0)
        request_in(e, key);
    json_string_n(j, key, text.buf != NULL ? text.buf : "", text.used);
    j->failed = j->failed || text.failed;
    json_release(&text);
    return rc;
}

void request_begin_messages(struct request *r)
{
    json_release(&r->messages);
    json_array(&r->messages, NULL);
    r->has_messages = true;
    r->has_system = false;
}

int request_messages(struct request *r, const struct json_node *n, size_t n_least,
                     request_message_fn *write, struct err *e)
{
    struct call_names names = { .n = 0 };
    size_t i = 0;
    int rc = 0;

    if (n->kind != JSON_IS_ARRAY || n->n < n_least)
        return err_set(e, ERR_ARGUMENT, "expected a list of messages");
    request_begin_messages(r);
    for (const struct json_node *m = n->first; m != NULL && rc == 0; m = m->next, i++) {
        const struct json_node *role = json_get(m, "role");

        r->has_system = r->has_system || value_is(role, "system") || value_is(role, "developer");
        if (write(&r->messages, m, &names, e) != 0)
            rc = request_at(e, i);
    }
    call_names_free(&names);
    if (rc == 0)
        json_end(&r->messages);
    return rc;
}

/* ---- tools ---- */

/* How deep objects and lists are nested. */
static unsigned depth_of(const struct json_node *n)
{
    unsigned most = 0;

    if (n->kind != JSON_IS_OBJECT && n->kind != JSON_IS_ARRAY)
        return 0;
    for (const struct json_node *in = n->first; in != NULL; in = in->next) {
        unsigned depth = depth_of(in);

        most = depth > most ? depth : most;
    }
    return most + 1;
}

/* Arguments as an object: templates print it, and some look into it. */
static int write_arguments(struct json *j, const struct json_node *n, struct err *e)
{
    struct json_doc *doc = NULL;
    const struct json_node *object = n;
    struct err wrong = ERR_INIT;
    int rc = 0;

    if (n != NULL && n->kind == JSON_IS_STRING && n->len > 0)
        object = json_parse(&doc, n->text, n->len, &wrong) == 0 ? json_root(doc) : NULL;
    else if (n == NULL || n->kind == JSON_IS_STRING) {
        json_object(j, "arguments");
        json_end(j);
        return 0;
    }
    if (object == NULL || object->kind != JSON_IS_OBJECT)
        rc = request_wrong(e, "arguments", "expected a JSON object");
    else if (depth_of(object) > CALL_DEPTH)
        rc = request_wrong(e, "arguments", "objects and lists are nested too deep");
    else
        json_copy(j, "arguments", object);
    json_free(doc);
    return rc;
}

int request_call(struct json *j, struct call_names *names, const struct json_node *id,
                 const struct json_node *name, const struct json_node *arguments, struct err *e)
{
    const char *text = json_as_string(name);

    if (text == NULL || text[0] == '\0')
        return request_wrong(e, "name", "expected a text");
    json_object(j, NULL);
    if (id != NULL && id->kind == JSON_IS_STRING)
        json_string_n(j, "id", id->text, id->len);
    json_string(j, "type", "function");
    json_object(j, "function");
    json_string(j, "name", text);
    if (write_arguments(j, arguments, e) != 0)
        return -1;
    json_end(j);
    json_end(j);
    return call_names_add(names, id, name, e);
}

static int write_call(struct json *j, const struct json_node *call, struct call_names *names,
                      struct err *e)
{
    const struct json_node *f = json_get(call, "function");

    if (f == NULL)
        return err_set(e, ERR_ARGUMENT, "only calls of functions are supported");
    return request_call(j, names, json_get(call, "id"), json_get(f, "name"),
                        json_get(f, "arguments"), e);
}

int request_calls(struct json *j, const struct json_node *calls, struct call_names *names,
                  struct err *e)
{
    size_t i = 0;

    if (calls == NULL || calls->n == 0)
        return 0;
    if (calls->kind != JSON_IS_ARRAY)
        return request_wrong(e, "tool_calls", "expected a list");
    json_array(j, "tool_calls");
    for (const struct json_node *c = calls->first; c != NULL; c = c->next, i++)
        if (write_call(j, c, names, e) != 0) {
            request_at(e, i);
            return request_in(e, "tool_calls");
        }
    json_end(j);
    return 0;
}

int request_result(struct json *j, const struct call_names *names, const struct json_node *id,
                   const struct json_node *name, struct err *e)
{
    if (id != NULL && id->kind != JSON_IS_STRING)
        return request_wrong(e, "tool_call_id", "expected a text");
    if (id != NULL)
        json_string_n(j, "tool_call_id", id->text, id->len);
    if (name == NULL && id != NULL)
        name = call_names_find(names, id);
    if (name != NULL && name->kind == JSON_IS_STRING)
        json_string_n(j, "name", name->text, name->len);
    return 0;
}

static void begin_tools(struct request *r)
{
    json_release(&r->tools);
    json_release(&r->strict);
    json_array(&r->tools, NULL);
}

int request_tool(struct request *r, const struct json_node *name,
                 const struct json_node *description, const struct json_node *parameters,
                 const struct json_node *strict, struct err *e)
{
    const char *text = json_as_string(name);
    struct json *j = &r->tools;
    bool is_strict = false;

    if (text == NULL || text[0] == '\0')
        return request_wrong(e, "name", "expected a text");
    if (parameters != NULL && parameters->kind != JSON_IS_OBJECT)
        return request_wrong(e, "parameters", "expected a JSON schema");
    if (strict != NULL && strict->kind != JSON_IS_NULL && !json_as_bool(strict, &is_strict))
        return request_wrong(e, "strict", "expected true or false");
    json_raw(&r->strict, is_strict ? "1" : "0", 1);
    json_object(j, NULL);
    json_string(j, "type", "function");
    json_object(j, "function");
    json_string(j, "name", text);
    json_string_n(j, "description",
                  description != NULL && description->kind == JSON_IS_STRING ? description->text
                                                                            : "",
                  description != NULL && description->kind == JSON_IS_STRING ? description->len
                                                                            : 0);
    if (parameters != NULL) {
        json_copy(j, "parameters", parameters);
    } else {
        json_object(j, "parameters");
        json_string(j, "type", "object");
        json_object(j, "properties");
        json_end(j);
        json_end(j);
    }
    json_end(j);
    json_end(j);
    return 0;
}

static int take_tool(struct request *r, const struct json_node *tool, struct err *e)
{
    static const char *const members[] = { "type", "function", NULL };
    static const char *const inner[] = { "name", "description", "parameters", "strict", NULL };
    const struct json_node *f = json_get(tool, "function");

    if (!value_is(json_get(tool, "type"), "function"))
        return request_wrong(e, "type", "only \"function\" is supported");
    if (f == NULL || f->kind != JSON_IS_OBJECT)
        return request_wrong(e, "function", "expected an object");
    if (request_known(tool, members, e) != 0)
        return -1;
    if (request_known(f, inner, e) != 0)
        return request_in(e, "function");
    if (request_tool(r, json_get(f, "name"), json_get(f, "description"),
                     json_get(f, "parameters"), json_get(f, "strict"), e) != 0)
        return request_in(e, "function");
    return 0;
}

int request_tools(struct request *r, const struct json_node *n, request_tool_fn *take,
                  struct err *e)
{
    size_t i = 0;

    if (n->kind != JSON_IS_ARRAY)
        return err_set(e, ERR_ARGUMENT, "expected a list of tools");
    begin_tools(r);
    for (const struct json_node *t = n->first; t != NULL; t = t->next, i++)
        if (take(r, t, e) != 0)
            return request_at(e, i);
    json_end(&r->tools);
    r->has_tools = n->n > 0;
    return 0;
}

int take_tools(struct request *r, const struct json_node *n, struct err *e)
{
    return request_tools(r, n, take_tool, e);
}

/* ---- requests ---- */

/* Put the system message before the messages: that of the request, or else the default. */
static void add_system(struct request *r, const struct request_defaults *d)
{
    struct json all;

    if (!r->has_messages || r->is_load)
        return;
    if (r->system.used == 0 && !r->has_system && d->system != NULL)
        json_raw(&r->system, d->system, strlen(d->system));
    if (r->system.used == 0 || r->messages.failed)
        return;
    json_start(&all);
    json_array(&all, NULL);
    json_object(&all, NULL);
    json_string(&all, "role", "system");
    json_string_n(&all, "content", r->system.buf, r->system.used);
    json_end(&all);
    /* The messages follow, without the bracket that opens their array. */
    if (r->messages.used > 2)
        json_raw(&all, ",", 1);
    json_raw(&all, r->messages.buf + 1, r->messages.used - 1);
    all.failed = all.failed || r->messages.failed || r->system.failed;
    json_release(&r->messages);
    r->messages = all;
}

/* A "stop" of the request replaces these. */
static int default_stops(struct request *r, const struct request_defaults *d, struct err *e)
{
    for (const char *const *s = d->stop; s != NULL && *s != NULL; s++) {
        r->stop[r->n_stop] = value_copy(*s, strlen(*s), e);
        if (r->stop[r->n_stop] == NULL)
            return -1;
        r->n_stop++;
    }
    return 0;
}

int request_fields(struct request *r, const struct json_node *object,
                   const struct request_field *table, struct err *e)
{
    if (object == NULL || object->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected a JSON object");
    if (object->n > FIELDS_MOST)
        return err_set(e, ERR_ARGUMENT, "an object has more than %d fields", FIELDS_MOST);
    for (const struct json_node *m = object->first; m != NULL; m = m->next) {
        const struct request_field *f = table;

        /* Null is as if it were not there.  The last field of a name counts, and the others are
         * not read: a grammar or a schema takes time. */
        if (m->kind == JSON_IS_NULL || json_member(object, m->key) != m)
            continue;
        while (f->name != NULL && strcmp(f->name, m->key) != 0)
            f++;
        if (f->name == NULL) {
            err_set(e, ERR_UNSUPPORTED, "this field is not supported");
            return err_at(e, NULL, ERR_NO_OFFSET, m->key);
        }
        if (f->take(r, m, e) != 0)
            return request_in(e, m->key);
    }
    return 0;
}

struct form {
    const struct request_field *fields;
    int (*check)(struct request *r, struct err *e);
};

static const struct form forms[N_FORM] = {
    [FORM_CHAT] = { request_chat_fields, request_check_openai },
    [FORM_COMPLETION] = { request_completion_fields, request_check_openai },
    [FORM_MESSAGES] = { request_messages_fields, request_check_anthropic },
    [FORM_OLLAMA_CHAT] = { request_ollama_chat_fields, request_check_ollama },
    [FORM_OLLAMA_GENERATE] = { request_ollama_generate_fields, request_check_ollama },
};

int request_parse(struct request *out, enum request_form form, const struct request_defaults *d,
                  const char *json, size_t len, struct err *e)
{
    struct json_doc *doc = NULL;
    int rc = -1;

    *out = (struct request){ .form = form,
                             .sampling = d->sampling,
                             .think = d->think,
                             .n_predict = d->n_predict };
    json_start(&out->messages);
    json_start(&out->system);
    json_start(&out->tools);
    json_start(&out->strict);
    out->stream = form == FORM_OLLAMA_CHAT || form == FORM_OLLAMA_GENERATE;
    if (default_stops(out, d, e) != 0 || json_parse(&doc, json, len, e) != 0)
        return -1;
    if (json_root(doc) != NULL && depth_of(json_root(doc)) > REQUEST_DEPTH)
        err_set(e, ERR_ARGUMENT, "objects and lists are nested more than %d deep",
                REQUEST_DEPTH);
    else
        rc = request_fields(out, json_root(doc), forms[form].fields, e);
    if (rc == 0)
        rc = forms[form].check(out, e);
    if (rc == 0)
        add_system(out, d);
    if (rc == 0)
        rc = request_check_form(out, d, e);
    if (out->no_tools)
        out->has_tools = false;
    if (rc == 0 && (out->messages.failed || out->tools.failed))
        rc = err_memory(e, "the messages of a request");
    json_fit(&out->messages);
    json_fit(&out->tools);
    json_release(&out->system);
    json_release(&out->strict);
    json_free(doc);
    return rc;
}

uint64_t request_texts(const struct request *r)
{
    return r->messages.size + r->tools.size + r->text_len + r->grammar_len +
           r->n_ids * sizeof *r->ids + r->n_bias * sizeof *r->bias;
}

void request_free_texts(struct request *r)
{
    json_release(&r->messages);
    json_release(&r->tools);
    free(r->text);
    free(r->grammar);
    free(r->ids);
    free(r->bias);
    r->text = r->grammar = NULL;
    r->ids = NULL;
    r->bias = NULL;
    r->text_len = r->grammar_len = r->n_ids = r->n_bias = 0;
}

void request_free(struct request *r)
{
    for (size_t i = 0; i < r->n_stop; i++)
        free(r->stop[i]);
    free(r->model);
    free(r->call_name);
    request_free_texts(r);
    json_release(&r->system);
    json_release(&r->strict);
    *r = (struct request){ .n_stop = 0 };
}

/* ---- names ---- */

static size_t without_latest(const char *name)
{
    static const char latest[] = ":latest";
    size_t n = strlen(name), tail = sizeof latest - 1;

    return n > tail && strcasecmp(name + n - tail, latest) == 0 ? n - tail : n;
}

/* Is b all of a, or its end after a slash? */
static bool has_end(const char *a, size_t n_a, const char *b, size_t n_b)
{
    return n_a >= n_b && strncasecmp(a + n_a - n_b, b, n_b) == 0 &&
           (n_a == n_b || a[n_a - n_b - 1] == '/');
}

bool request_names_model(const char *name, const char *model)
{
    size_t n = without_latest(name), m = without_latest(model);

    return n > 0 && m > 0 && (has_end(name, n, model, m) || has_end(model, m, name, n));
}
