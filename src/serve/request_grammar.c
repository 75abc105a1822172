/*
 * Answers in a form that the request demands: a grammar, a JSON schema, any JSON object.
 *
 * All of them become a grammar in GBNF, which is checked here, so that what is wrong with one is
 * reported before the request waits for the engine.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"

#define FORM_ROOT "root ::= form\n"

/* Another field of the request may have asked for another form.  rules: the first n_rule bytes
 * after FORM_ROOT, which also go into a grammar of calls; 0: the grammar is the client's. */
static int set_form(struct request *r, const char *field, struct json *grammar, size_t n_rule,
                    struct err *e)
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
    r->n_form_rule = n_rule;
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
    rc = set_form(r, "grammar", &grammar, 0, e);
    json_release(&grammar);
    return rc;
}

/* The rule "form" of a schema; NULL: of any object. */
static int take_schema(struct request *r, const char *field, const struct json_node *schema,
                       struct err *e)
{
    struct json grammar;
    size_t n_rule;
    int rc = 0;

    json_start(&grammar);
    json_print(&grammar, FORM_ROOT);
    if (schema == NULL)
        json_print(&grammar, "form ::= json-object\n");
    else
        rc = mw_grammar_schema(&grammar, "form", MW_NOTATION_JSON, schema, schema, NULL, e);
    n_rule = grammar.used - strlen(FORM_ROOT);
    mw_grammar_values(&grammar, MW_NOTATION_JSON);
    if (rc == 0)
        rc = set_form(r, field, &grammar, n_rule, e);
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
        return take_schema(r, field, NULL, e);
    if (is_schema)
        return take_json_schema(r, field, schema, e) == 0 ? 0 : request_in(e, "json_schema");
    return request_wrong(e, "type", "expected text, json_object or json_schema");
}

/* ---- Anthropic ---- */

int take_output_config(struct request *r, const struct json_node *n, struct err *e)
{
    static const char field[] = "output_config";
    static const char *const members[] = { "format", NULL };
    static const char *const inner[] = { "type", "schema", NULL };
    const struct json_node *format = json_get(n, "format"), *schema = json_get(format, "schema");

    if (n->kind != JSON_IS_OBJECT)
        return err_set(e, ERR_ARGUMENT, "expected an object");
    if (request_known(n, members, e) != 0)
        return -1;
    if (format == NULL || format->kind == JSON_IS_NULL) {
        no_form(r, field);
        return 0;
    }
    if (!value_is(json_get(format, "type"), "json_schema"))
        return request_wrong(e, "format.type", "only \"json_schema\" is supported");
    if (request_known(format, inner, e) != 0)
        return request_in(e, "format");
    if (schema == NULL)
        return request_wrong(e, "format.schema", "this field is missing");
    return take_schema(r, field, schema, e) == 0 ? 0 : request_in(e, "format.schema");
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
        return take_schema(r, field, NULL, e);
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

/* Name the part of the request that a tool has wrong: e's field is "[3]". */
static int wrong_tool(const struct request *r, bool is_schema, struct err *e)
{
    char field[sizeof e->field];

    if (!is_schema)
        return request_in(e, "tool_choice");
    snprintf(field, sizeof field, "tools%.24s.%s", e->field,
             r->form == FORM_MESSAGES ? "input_schema" : "function.parameters");
    e->field[0] = '\0';
    return err_at(e, NULL, ERR_NO_OFFSET, field);
}

/* Make the grammar of an answer that has calls in place of the one without them. */
static int take_calls(struct request *r, enum call_form form, struct err *e)
{
    const char *field = r->grammar_field;
    struct tool_use use = { .form = form,
                            .is_strict = r->strict.buf,
                            .only = r->call_name,
                            .one_call = r->one_call,
                            .must_call = r->must_call };
    struct json_doc *doc = NULL;
    struct json grammar;
    bool is_schema;
    int rc;

    if (r->tools.failed || r->strict.failed)
        return err_memory(e, "a request");
    if (json_parse(&doc, r->tools.buf, r->tools.used, e) != 0)
        return request_in(e, "tools");
    use.tools = json_root(doc);
    if (r->grammar != NULL && !r->must_call) {
        use.rules = r->grammar + strlen(FORM_ROOT);
        use.rules_len = r->n_form_rule;
    }
    r->is_form_or_calls = use.rules != NULL;
    json_start(&grammar);
    rc = tool_grammar(&grammar, &use, &is_schema, e);
    if (rc != 0)
        wrong_tool(r, is_schema, e);
    if (rc == 0) {
        free(r->grammar);
        r->grammar = NULL;
        rc = set_form(r, field != NULL ? field : "tools", &grammar, 0, e);
        if (rc != 0)
            request_in(e, "tools");
    }
    r->calls = form;
    json_release(&grammar);
    json_free(doc);
    return rc;
}

/* ---- together ---- */

/* The field for which calls need a grammar; NULL: they need none. */
static const char *needs_calls(const struct request *r, char buf[40])
{
    const char *strict = r->strict.used > 0 ? memchr(r->strict.buf, '1', r->strict.used) : NULL;

    if (r->must_call)
        return "tool_choice";
    if (r->grammar != NULL)
        return r->grammar_field;
    if (r->one_call)
        return r->form == FORM_MESSAGES ? "tool_choice.disable_parallel_tool_use"
                                        : "parallel_tool_calls";
    if (strict == NULL)
        return NULL;
    snprintf(buf, 40, "tools[%td].%s", strict - r->strict.buf,
             r->form == FORM_MESSAGES ? "strict" : "function.strict");
    return buf;
}

/* With tools, the answer is a call, or what it would be without them. */
int request_check_form(struct request *r, const struct request_defaults *d, struct err *e)
{
    bool has_tools = r->has_tools && !r->no_tools;
    char buf[40];
    const char *field = has_tools ? needs_calls(r, buf) : NULL;

    if (r->must_call && !has_tools)
        return request_wrong(e, "tool_choice", "there are no tools to call");
    if (field == NULL)
        return 0;
    if (r->grammar != NULL && r->n_form_rule == 0)
        return request_wrong(e, "grammar", "this field is not supported beside tools");
    if (d->calls == CALLS_UNKNOWN)
        return request_wrong(e, field,
                             r->must_call ? "only \"none\" and \"auto\" are supported: calls "
                                            "cannot be forced in the form of this model's chat "
                                            "template"
                                          : "this is not supported beside tools: calls in the form "
                                            "of this model's chat template have no grammar");
    return take_calls(r, d->calls, e);
}
