/*
 * Answers in a form that the request demands: a grammar, a JSON schema, any JSON object.
 *
 * All of them become a grammar in GBNF, which is checked here, so that what is wrong with one is
 * reported before the request waits for the engine.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"

/* Another field of the request may have asked for another form. */
static int set_form(struct request *r, const char *field, struct json *grammar, struct err *e)
{
    if (grammar->failed)
        return err_memory(e, "a grammar");
    if (r->grammar != NULL && strcmp(r->grammar_field, field) != 0)
        return err_set(e, ERR_UNSUPPORTED, "this field is not supported beside \"%s\"",
                       r->grammar_field);
    if (mw_grammar_check(grammar->buf, grammar->used, e) != 0)
        return -1;
    free(r->grammar);
    r->grammar = value_copy(grammar->buf, grammar->used, e);
    r->grammar_len = grammar->used;
    r->grammar_field = field;
    return r->grammar != NULL ? 0 : -1;
}

static void no_form(struct request *r, const char *field)
{
    if (r->grammar == NULL || strcmp(r->grammar_field, field) != 0)
        return;
    free(r->grammar);
    r->grammar = NULL;
    r->grammar_len = 0;
}

int take_grammar(struct request *r, const struct json_node *n, struct err *e)
{
    const char *text = value_text(n, e);
    struct json grammar;
    int rc;

    if (text == NULL)
        return -1;
    json_start(&grammar);
    json_raw(&grammar, n->text, n->len);
    rc = set_form(r, "grammar", &grammar, e);
    json_release(&grammar);
    return rc;
}

static int take_any_object(struct request *r, const char *field, struct err *e)
{
    struct json grammar;
    int rc;

    json_start(&grammar);
    json_print(&grammar, "root ::= json-object\n");
    mw_grammar_json(&grammar);
    rc = set_form(r, field, &grammar, e);
    json_release(&grammar);
    return rc;
}

static int take_schema(struct request *r, const char *field, const struct json_node *schema,
                       struct err *e)
{
    struct json grammar;
    int rc;

    json_start(&grammar);
    rc = mw_grammar_schema(&grammar, "root", schema, e);
    mw_grammar_json(&grammar);
    if (rc == 0)
        rc = set_form(r, field, &grammar, e);
    json_release(&grammar);
    return rc;
}

/* ---- OpenAI ---- */

static int take_json_schema(struct request *r, const char *field, const struct json_node *n,
                            struct err *e)
{
    static const char *const members[] = { "name", "description", "strict", "schema", NULL };
    const struct json_node *schema = json_get(n, "schema");
    bool strict;

    if (n == NULL || n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(n, members, e) != 0)
        return -1;
    if (json_get(n, "strict") != NULL && !json_as_bool(json_get(n, "strict"), &strict))
        return request_wrong(e, "strict", "expected true or false");
    if (schema == NULL)
        return request_wrong(e, "schema", "this field is missing");
    return take_schema(r, field, schema, e) == 0 ? 0 : request_in(e, "schema");
}

int take_response_format(struct request *r, const struct json_node *n, struct err *e)
{
    static const char field[] = "response_format";
    static const char *const members[] = { "type", "json_schema", NULL };
    const struct json_node *type = json_get(n, "type"), *schema = json_get(n, "json_schema");
    bool is_schema = value_is(type, "json_schema");

    if (n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(n, members, e) != 0)
        return -1;
    if (!is_schema && schema != NULL)
        return request_wrong(e, "json_schema", "only the type \"json_schema\" has this field");
    if (value_is(type, "text")) {
        no_form(r, field);
        return 0;
    }
    if (value_is(type, "json_object"))
        return take_any_object(r, field, e);
    if (is_schema)
        return take_json_schema(r, field, schema, e) == 0 ? 0 : request_in(e, "json_schema");
    return request_wrong(e, "type", "expected text, json_object or json_schema");
}

/* ---- Ollama ---- */

int take_format(struct request *r, const struct json_node *n, struct err *e)
{
    static const char field[] = "format";

    if (value_is(n, "")) {
        no_form(r, field);
        return 0;
    }
    if (value_is(n, "json"))
        return take_any_object(r, field, e);
    if (n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected \"json\" or a JSON schema");
    return take_schema(r, field, n, e);
}

/* ---- calls of tools ---- */

int request_must_call(struct request *r, const struct json_node *name, struct err *e)
{
    const char *text = name != NULL ? value_text(name, e) : NULL;

    if (name != NULL && text == NULL)
        return request_in(e, "name");
    free(r->call_name);
    r->call_name = name != NULL ? value_copy(text, strlen(text), e) : NULL;
    r->must_call = true;
    return name != NULL && r->call_name == NULL ? -1 : 0;
}

static int force_call(struct request *r, enum call_form form, struct err *e)
{
    static const char field[] = "tool_choice";
    struct json_doc *doc = NULL;
    struct json grammar;
    int rc;

    if (r->tools.failed)
        return err_memory(e, "a request");
    if (json_parse(&doc, r->tools.buf, r->tools.used, e) != 0)
        return request_in(e, "tools");
    json_start(&grammar);
    rc = tool_grammar(&grammar, form, json_root(doc), r->call_name, r->one_call, e);
    if (rc == 0)
        rc = set_form(r, field, &grammar, e);
    json_release(&grammar);
    json_free(doc);
    return rc == 0 ? 0 : request_in(e, field);
}

/* ---- together ---- */

/* A model that may call a tool writes no text of another form. */
int request_check_form(struct request *r, const struct request_defaults *d, struct err *e)
{
    bool has_tools = r->has_tools && !r->no_tools;

    if (r->grammar != NULL && has_tools)
        return request_wrong(e, r->grammar_field, "this field is not supported beside tools");
    if (r->must_call && !has_tools)
        return request_wrong(e, "tool_choice", "there are no tools to call");
    return r->must_call ? force_call(r, d->calls, e) : 0;
}
