/* See tool_forms.h. */
#include "config.h"

#include "src/serve/tool_forms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"

#define GEMMA_QUOTE "<|\"|>"
#define GEMMA_DEPTH 16

/* A part of the text that is not read yet. */
struct scan {
    const char *s;
    size_t n;
};

void tool_list_start(struct tool_list *l)
{
    l->n = 0;
    for (size_t i = 0; i < TOOL_CALLS_MOST; i++)
        json_start(&l->call[i].arguments);
}

void tool_list_free(struct tool_list *l)
{
    for (size_t i = 0; i < TOOL_CALLS_MOST; i++)
        json_release(&l->call[i].arguments);
}

static void skip(struct scan *x, size_t n)
{
    x->s += n;
    x->n -= n;
}

static void skip_white(struct scan *x)
{
    while (x->n > 0 && isspace((unsigned char)*x->s))
        skip(x, 1);
}

static void trim_end(struct scan *x)
{
    while (x->n > 0 && isspace((unsigned char)x->s[x->n - 1]))
        x->n--;
}

static bool takes(struct scan *x, const char *word)
{
    size_t n = strlen(word);

    if (x->n < n || memcmp(x->s, word, n) != 0)
        return false;
    skip(x, n);
    return true;
}

/* Take everything up to a word, and the word. */
static bool take_until(struct scan *x, const char *word, struct scan *out)
{
    const char *at = x->n > 0 ? memmem(x->s, x->n, word, strlen(word)) : NULL;

    if (at == NULL)
        return false;
    *out = (struct scan){ x->s, (size_t)(at - x->s) };
    skip(x, out->n + strlen(word));
    return true;
}

/* The definition of a tool; NULL: there is none of this name. */
static const struct json_node *find_tool(const struct tool_list *l, const char *name, size_t n)
{
    for (const struct json_node *t = l->tools->first; t != NULL; t = t->next) {
        const struct json_node *f = json_get(t, "function"), *its = json_get(f, "name");

        if (its != NULL && its->kind == JSON_IS_STRING && its->len == n &&
            memcmp(its->text, name, n) == 0)
            return f;
    }
    return NULL;
}

/* Begin a call.  Returns its arguments, to be written; NULL: it is not one of these tools. */
static struct json *add(struct tool_list *l, const char *name, size_t n)
{
    if (n == 0 || n >= TOOL_NAME_BYTES || l->n == TOOL_CALLS_MOST || find_tool(l, name, n) == NULL)
        return NULL;
    memcpy(l->call[l->n].name, name, n);
    l->call[l->n].name[n] = '\0';
    return &l->call[l->n++].arguments;
}

/* ---- JSON: Hermes, Qwen, Llama 3, Mistral ---- */

/* Arguments are an object, or its text. */
static bool copy_arguments(struct json *to, const struct json_node *n)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    bool is_object;

    if (n == NULL || n->kind == JSON_IS_OBJECT) {
        if (n != NULL)
            json_copy(to, NULL, n);
        else
            json_raw(to, "{}", 2);
        return !to->failed;
    }
    if (n->kind != JSON_IS_STRING || json_parse(&doc, n->text, n->len, &ignored) != 0)
        return false;
    is_object = json_root(doc) != NULL && json_root(doc)->kind == JSON_IS_OBJECT;
    if (is_object)
        json_copy(to, NULL, json_root(doc));
    json_free(doc);
    return is_object && !to->failed;
}

static bool add_object(struct tool_list *l, const struct json_node *n)
{
    const struct json_node *name = json_get(n, "name"), *arguments = json_get(n, "arguments");
    struct json *to;

    if (name == NULL || name->kind != JSON_IS_STRING)
        return false;
    if (arguments == NULL)
        arguments = json_get(n, "parameters");
    to = add(l, name->text, name->len);
    return to != NULL && copy_arguments(to, arguments);
}

static bool add_json(struct tool_list *l, const struct json_node *n)
{
    if (n == NULL || n->kind != JSON_IS_ARRAY)
        return add_object(l, n);
    for (const struct json_node *one = n->first; one != NULL; one = one->next)
        if (!add_object(l, one))
            return false;
    return true;
}

bool tool_form_json(struct tool_list *l, const char *s, size_t n)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    bool is_call;

    if (json_parse(&doc, s, n, &ignored) != 0)
        return false;
    is_call = add_json(l, json_root(doc));
    json_free(doc);
    return is_call;
}

/* Arguments as the text of an object alone. */
static bool add_named(struct tool_list *l, struct scan name, struct scan arguments)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    struct json *to;
    bool is_call;

    trim_end(&name);
    to = add(l, name.s, name.n);
    if (to == NULL || json_parse(&doc, arguments.s, arguments.n, &ignored) != 0)
        return false;
    is_call = json_root(doc) != NULL && json_root(doc)->kind == JSON_IS_OBJECT &&
              copy_arguments(to, json_root(doc));
    json_free(doc);
    return is_call;
}

bool tool_form_mistral(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name, one, ignored;

    skip_white(&x);
    if (x.n > 0 && *x.s == '[')
        return tool_form_json(l, x.s, x.n);
    /* Each call begins with the mark; the first one was taken. */
    while (x.n > 0) {
        if (!take_until(&x, "[ARGS]", &name))
            return false;
        if (memmem(name.s, name.n, "[CALL_ID]", 9) != NULL)
            take_until(&name, "[CALL_ID]", &ignored), name = ignored;
        if (!take_until(&x, "[TOOL_CALLS]", &one)) {
            one = x;
            x.n = 0;
        }
        skip_white(&name);
        if (!add_named(l, name, one))
            return false;
    }
    return true;
}

bool tool_form_harmony(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name;

    return take_until(&x, "<|message|>", &name) && add_named(l, name, x);
}

/* ---- tags: Qwen 3 Coder ---- */

/* Is the parameter a text by its definition? */
static bool is_text(const struct json_node *tool, const char *name, size_t n)
{
    const struct json_node *all = json_get(json_get(tool, "parameters"), "properties");

    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL; p = p->next)
        if (p->key != NULL && strlen(p->key) == n && memcmp(p->key, name, n) == 0) {
            const struct json_node *type = json_get(p, "type");

            return type == NULL || value_is(type, "string");
        }
    return true;
}

/* The value of a parameter has a line of its own.  One that is not a text is JSON. */
static void write_value(struct json *to, const char *key, struct scan v, bool is_string)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;

    takes(&v, "\n");
    if (v.n > 0 && v.s[v.n - 1] == '\n')
        v.n--;
    if (!is_string && json_parse(&doc, v.s, v.n, &ignored) == 0 && json_root(doc) != NULL)
        json_copy(to, key, json_root(doc));
    else
        json_string_n(to, key, v.s, v.n);
    json_free(doc);
}

static bool add_function(struct tool_list *l, struct scan name, struct scan body)
{
    const struct json_node *tool;
    struct json *to = add(l, name.s, name.n);
    struct scan key, v;
    char *copy;

    if (to == NULL)
        return false;
    tool = find_tool(l, name.s, name.n);
    json_object(to, NULL);
    for (skip_white(&body); body.n > 0; skip_white(&body)) {
        if (!takes(&body, "<parameter=") || !take_until(&body, ">", &key) ||
            !take_until(&body, "</parameter>", &v))
            return false;
        copy = strndup(key.s, key.n);
        if (copy == NULL)
            return false;
        write_value(to, copy, v, is_text(tool, key.s, key.n));
        free(copy);
    }
    json_end(to);
    return !to->failed;
}

bool tool_form_tagged(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name, body;

    skip_white(&x);
    if (!takes(&x, "<function="))
        return tool_form_json(l, x.s, x.n);
    do {
        if (!take_until(&x, ">", &name) || !take_until(&x, "</function>", &body) ||
            !add_function(l, name, body))
            return false;
        skip_white(&x);
    } while (takes(&x, "<function="));
    return x.n == 0;
}

/* ---- Gemma 4 ---- */

static bool gemma_value(struct scan *x, struct json *to, const char *key, unsigned depth);

/* "key:value" up to a closing brace, or values up to a bracket. */
static bool gemma_members(struct scan *x, struct json *to, char closer, unsigned depth)
{
    struct scan key;
    char *name = NULL;
    bool is_right = true;

    for (skip_white(x); x->n > 0 && *x->s != closer && is_right; skip_white(x)) {
        if (closer == '}') {
            if (takes(x, GEMMA_QUOTE) ? !take_until(x, GEMMA_QUOTE, &key) || !takes(x, ":")
                                      : !take_until(x, ":", &key))
                return false;
            trim_end(&key);
            name = strndup(key.s, key.n);
            is_right = name != NULL;
        }
        is_right = is_right && gemma_value(x, to, name, depth + 1);
        free(name);
        name = NULL;
        skip_white(x);
        if (!takes(x, ","))
            break;
    }
    return is_right && takes(x, (char[]){ closer, '\0' });
}

/* A number or a word, which JSON has in the same way. */
static bool gemma_word(struct scan *x, struct json *to, const char *key)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    size_t n = 0;
    bool is_right;

    while (n < x->n && strchr(",}]", x->s[n]) == NULL)
        n++;
    is_right = json_parse(&doc, x->s, n, &ignored) == 0 && json_root(doc) != NULL;
    if (is_right)
        json_copy(to, key, json_root(doc));
    json_free(doc);
    skip(x, n);
    return is_right;
}

static bool gemma_value(struct scan *x, struct json *to, const char *key, unsigned depth)
{
    struct scan text;
    bool is_right;

    skip_white(x);
    if (depth > GEMMA_DEPTH || x->n == 0)
        return false;
    if (takes(x, GEMMA_QUOTE)) {
        if (!take_until(x, GEMMA_QUOTE, &text))
            return false;
        json_string_n(to, key, text.s, text.n);
        return true;
    }
    if (*x->s != '{' && *x->s != '[')
        return gemma_word(x, to, key);
    if (*x->s == '{')
        json_object(to, key);
    else
        json_array(to, key);
    is_right = takes(x, "{") ? gemma_members(x, to, '}', depth)
                             : takes(x, "[") && gemma_members(x, to, ']', depth);
    json_end(to);
    return is_right;
}

bool tool_form_gemma(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name;
    struct json *to;

    skip_white(&x);
    if (!takes(&x, "call:") || !take_until(&x, "{", &name))
        return false;
    trim_end(&name);
    to = add(l, name.s, name.n);
    if (to == NULL)
        return false;
    json_object(to, NULL);
    if (!gemma_members(&x, to, '}', 0))
        return false;
    json_end(to);
    skip_white(&x);
    return x.n == 0 && !to->failed;
}
