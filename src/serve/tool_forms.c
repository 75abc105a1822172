/* See tool_forms.h. */
#include "config.h"

#include "src/serve/tool_forms.h"

#include <stdlib.h>
#include <string.h>

#include "src/serve/request_field.h"
#include "src/serve/tool_scan.h"

#define GEMMA_QUOTE "<|\"|>"

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

const struct json_node *tool_find(const struct tool_list *l, const char *name, size_t n)
{
    for (const struct json_node *t = l->tools->first; t != NULL; t = t->next) {
        const struct json_node *f = json_get(t, "function"), *its = json_get(f, "name");

        if (its != NULL && its->kind == JSON_IS_STRING && its->len == n &&
            memcmp(its->text, name, n) == 0)
            return f;
    }
    return NULL;
}

struct json *tool_add(struct tool_list *l, const char *name, size_t n)
{
    const struct json_node *tool = tool_find(l, name, n);

    if (n == 0 || tool == NULL || l->n == TOOL_CALLS_MOST)
        return NULL;
    l->call[l->n].name = json_get(tool, "name")->text;
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

    if (name == NULL) /* Command R */
        name = json_get(n, "tool_name");
    if (name == NULL || name->kind != JSON_IS_STRING)
        return false;
    if (arguments == NULL)
        arguments = json_get(n, "parameters");
    to = tool_add(l, name->text, name->len);
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

bool tool_add_named(struct tool_list *l, struct scan name, struct scan arguments)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    struct json *to;
    bool is_call;

    scan_trim_end(&name);
    to = tool_add(l, name.s, name.n);
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

    scan_skip_white(&x);
    if (x.n > 0 && *x.s == '[')
        return tool_form_json(l, x.s, x.n);
    /* Each call begins with the mark; the first one was taken. */
    while (x.n > 0) {
        if (!scan_take_until(&x, "[ARGS]", &name))
            return false;
        if (memmem(name.s, name.n, "[CALL_ID]", 9) != NULL)
            scan_take_until(&name, "[CALL_ID]", &ignored), name = ignored;
        if (!scan_take_until(&x, "[TOOL_CALLS]", &one)) {
            one = x;
            x.n = 0;
        }
        scan_skip_white(&name);
        if (!tool_add_named(l, name, one))
            return false;
    }
    return true;
}

bool tool_form_harmony(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name;

    return scan_take_until(&x, "<|message|>", &name) && tool_add_named(l, name, x);
}

/* ---- names and JSON between marks: DeepSeek, Kimi ---- */

struct marked {
    const char *open, *between, *close;
};

/* DeepSeek V3 writes a type before the name, and JSON in a block of code.  The arguments may have
 * such blocks, too. */
static void drop_type(struct scan *name, struct scan *arguments)
{
    struct scan x = *arguments, line, type = *name;

    scan_trim_end(&type);
    if (type.n != 8 || memcmp(type.s, "function", 8) != 0)
        return;
    if (!scan_take_until(&x, "\n", &line) || !scan_takes(&x, "```json"))
        return;
    while (x.n > 0 && !(x.n >= 3 && memcmp(x.s + x.n - 3, "```", 3) == 0))
        x.n--;
    if (x.n > 0) {
        *name = line;
        *arguments = (struct scan){ x.s, x.n - 3 };
    }
}

static bool add_marked(struct tool_list *l, const char *s, size_t n, const struct marked *m)
{
    struct scan x = { s, n }, name, one;

    for (scan_skip_white(&x); x.n > 0; scan_skip_white(&x)) {
        const char *colon;

        if (!scan_takes(&x, m->open) || !scan_take_until(&x, m->between, &name) ||
            !scan_take_until(&x, m->close, &one))
            return false;
        drop_type(&name, &one);
        scan_skip_white(&name);
        /* Kimi: "functions.f:0" */
        scan_takes(&name, "functions.");
        colon = name.n > 0 ? memrchr(name.s, ':', name.n) : NULL;
        if (colon != NULL)
            name.n = (size_t)(colon - name.s);
        if (!tool_add_named(l, name, one))
            return false;
    }
    return true;
}

bool tool_form_deepseek(struct tool_list *l, const char *s, size_t n)
{
    static const struct marked m = { TOOL_BARS("tool\u2581call\u2581begin"),
                                     TOOL_BARS("tool\u2581sep"),
                                     TOOL_BARS("tool\u2581call\u2581end") };

    return add_marked(l, s, n, &m);
}

bool tool_form_kimi(struct tool_list *l, const char *s, size_t n)
{
    static const struct marked m = { "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
                                     "<|tool_call_end|>" };

    return add_marked(l, s, n, &m);
}

/* ---- Gemma 4 ---- */

static bool gemma_value(struct scan *x, struct json *to, const char *key, unsigned depth);

/* "key:value" up to a closing brace, or values up to a bracket. */
static bool gemma_members(struct scan *x, struct json *to, char closer, unsigned depth)
{
    struct scan key;
    char *name = NULL;
    bool is_right = true;

    for (scan_skip_white(x); x->n > 0 && *x->s != closer && is_right; scan_skip_white(x)) {
        if (closer == '}') {
            bool is_quoted = scan_takes(x, GEMMA_QUOTE);

            if (!scan_take_until(x, is_quoted ? GEMMA_QUOTE : ":", &key) ||
                (is_quoted && !scan_takes(x, ":")))
                return false;
            scan_trim_end(&key);
            name = strndup(key.s, key.n);
            is_right = name != NULL;
        }
        is_right = is_right && gemma_value(x, to, name, depth + 1);
        free(name);
        name = NULL;
        scan_skip_white(x);
        if (!scan_takes(x, ","))
            break;
    }
    return is_right && scan_takes(x, (char[]){ closer, '\0' });
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
    scan_skip(x, n);
    return is_right;
}

static bool gemma_value(struct scan *x, struct json *to, const char *key, unsigned depth)
{
    struct scan text;
    bool is_right;

    scan_skip_white(x);
    if (depth > CALL_DEPTH || x->n == 0)
        return false;
    if (scan_takes(x, GEMMA_QUOTE)) {
        if (!scan_take_until(x, GEMMA_QUOTE, &text))
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
    is_right = scan_takes(x, "{") ? gemma_members(x, to, '}', depth)
                             : scan_takes(x, "[") && gemma_members(x, to, ']', depth);
    json_end(to);
    return is_right;
}

bool tool_form_gemma(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name;
    struct json *to;

    scan_skip_white(&x);
    if (!scan_takes(&x, "call:") || !scan_take_until(&x, "{", &name))
        return false;
    scan_trim_end(&name);
    to = tool_add(l, name.s, name.n);
    if (to == NULL)
        return false;
    json_object(to, NULL);
    if (!gemma_members(&x, to, '}', 0))
        return false;
    json_end(to);
    scan_skip_white(&x);
    return x.n == 0 && !to->failed;
}
