/*
 * Calls in tags: a function and its parameters.
 *
 *     Qwen 3 Coder, Nemotron 3             <function=f><parameter=a>
 *                                          1
 *                                          </parameter></function>
 *     Seed-OSS                             <function=f><parameter=a>1</parameter></function>
 *     GLM, Laguna                          f<arg_key>a</arg_key><arg_value>1</arg_value>
 *     MiniMax, DeepSeek V4, Muse           <invoke name="f"><parameter name="a">1</parameter>
 *                                          </invoke>, each tag with a prefix
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/tool_scan.h"
#include "src/serve/tool_types.h"

static bool is_word(struct scan v, const char *word)
{
    return v.n == strlen(word) && memcmp(v.s, word, v.n) == 0;
}

/* The JSON of a value that is not a text.  Models write some words as Python does. */
static struct scan json_of(struct scan v, unsigned types)
{
    struct scan word = v;

    scan_skip_white(&word);
    scan_trim_end(&word);
    if ((types & TOOL_MAY_BE_TRUTH) != 0 && is_word(word, "True"))
        return (struct scan){ "true", 4 };
    if ((types & TOOL_MAY_BE_TRUTH) != 0 && is_word(word, "False"))
        return (struct scan){ "false", 5 };
    if ((types & TOOL_MAY_BE_NULL) != 0 && is_word(word, "None"))
        return (struct scan){ "null", 4 };
    return v;
}

/* A value that may be a text is one, also if it looks like JSON. */
static void write_value(struct json *to, const char *key, struct scan v, unsigned types)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    struct scan json;
    bool is_text;

    is_text = (types & TOOL_MAY_BE_TEXT) != 0 &&
              ((types & TOOL_MAY_BE_NULL) == 0 || !is_word(v, "null"));
    json = json_of(v, types);
    if (!is_text && json_parse(&doc, json.s, json.n, &ignored) == 0 && json_root(doc) != NULL)
        json_copy(to, key, json_root(doc));
    else
        json_string_n(to, key, v.s, v.n);
    json_free(doc);
}

static bool write_parameter(struct json *to, struct scan key, struct scan v, unsigned types)
{
    char *copy = strndup(key.s, key.n);

    if (copy == NULL)
        return false;
    write_value(to, copy, v, types);
    free(copy);
    return true;
}

/* Write a parameter by the definition of its tool. */
static bool write_defined(struct json *to, const struct json_node *tool, struct scan key,
                          struct scan v)
{
    return write_parameter(to, key, v,
                           tool_parameter_types(json_get(tool, "parameters"), key.s, key.n));
}

/* A value that has lines of its own. */
static struct scan without_breaks(struct scan v)
{
    scan_takes(&v, "\n");
    if (v.n > 0 && v.s[v.n - 1] == '\n')
        v.n--;
    return v;
}

static bool add_function(struct tool_list *l, struct scan name, struct scan body, bool has_lines)
{
    const struct json_node *tool;
    struct json *to = tool_add(l, name.s, name.n);
    struct scan key, v;

    if (to == NULL)
        return false;
    tool = tool_find(l, name.s, name.n);
    json_object(to, NULL);
    for (scan_skip_white(&body); body.n > 0; scan_skip_white(&body)) {
        if (!scan_takes(&body, "<parameter=") || !scan_take_until(&body, ">", &key) ||
            !scan_take_until(&body, "</parameter>", &v) ||
            !write_defined(to, tool, key, has_lines ? without_breaks(v) : v))
            return false;
    }
    json_end(to);
    return !to->failed;
}

/* One function or more, after "<function=" of the first one. */
static bool add_functions(struct tool_list *l, struct scan x, bool has_lines)
{
    struct scan name, body;

    do {
        if (!scan_take_until(&x, ">", &name) || !scan_take_until(&x, "</function>", &body) ||
            !add_function(l, name, body, has_lines))
            return false;
        scan_skip_white(&x);
    } while (scan_takes(&x, "<function="));
    return x.n == 0;
}

bool tool_form_seed(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n };

    scan_skip_white(&x);
    return scan_takes(&x, "<function=") ? add_functions(l, x, false)
                                        : tool_form_json(l, x.s, x.n);
}

/* ---- GLM ---- */

static bool add_keyed(struct tool_list *l, struct scan x)
{
    struct scan name = x, key, v, ignored;
    const struct json_node *tool;
    struct json *to;

    if (!scan_take_until(&x, "<arg_key>", &name))
        x.n = 0; /* no arguments */
    scan_trim_end(&name);
    tool = tool_find(l, name.s, name.n);
    to = tool_add(l, name.s, name.n);
    if (to == NULL)
        return false;
    json_object(to, NULL);
    while (x.n > 0) {
        if (!scan_take_until(&x, "</arg_key>", &key) ||
            !scan_take_until(&x, "<arg_value>", &ignored) ||
            !scan_take_until(&x, "</arg_value>", &v) || !write_defined(to, tool, key, v))
            return false;
        scan_skip_white(&x);
        if (x.n > 0 && !scan_takes(&x, "<arg_key>"))
            return false;
    }
    json_end(to);
    return !to->failed;
}

bool tool_form_tagged(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n };

    scan_skip_white(&x);
    if (x.n > 0 && *x.s != '<' && *x.s != '{' && *x.s != '[')
        return add_keyed(l, x);
    return scan_takes(&x, "<function=") ? add_functions(l, x, true)
                                        : tool_form_json(l, x.s, x.n);
}

/* ---- tags with names in quotes ---- */

#define TAG_BYTES 64

/* Take <PREFIXword name="NAME"more>. */
static bool take_named_tag(struct scan *x, const char *prefix, const char *word,
                           struct scan *name, struct scan *more)
{
    char tag[TAG_BYTES];

    snprintf(tag, sizeof tag, "<%s%s name=\"", prefix, word);
    return scan_takes(x, tag) && scan_take_until(x, "\"", name) && scan_take_until(x, ">", more);
}

/* Write a parameter.  DeepSeek marks in the tag whether it is a text. */
static bool write_marked(struct json *to, const struct json_node *tool, struct scan key,
                         struct scan more, struct scan v)
{
    scan_skip_white(&more);
    scan_trim_end(&more);
    if (is_word(more, "string=\"true\""))
        return write_parameter(to, key, v, TOOL_MAY_BE_TEXT);
    if (is_word(more, "string=\"false\""))
        return write_parameter(to, key, v, TOOL_MAY_BE_ANY & ~TOOL_MAY_BE_TEXT);
    return write_defined(to, tool, key, v);
}

static bool add_invoke(struct tool_list *l, struct scan *x, const char *prefix)
{
    char close[TAG_BYTES], end[TAG_BYTES];
    struct scan name, key, more, v;
    const struct json_node *tool;
    struct json *to;

    snprintf(close, sizeof close, "</%sparameter>", prefix);
    snprintf(end, sizeof end, "</%sinvoke>", prefix);
    if (!take_named_tag(x, prefix, "invoke", &name, &more) ||
        (to = tool_add(l, name.s, name.n)) == NULL)
        return false;
    tool = tool_find(l, name.s, name.n);
    json_object(to, NULL);
    for (scan_skip_white(x); !scan_takes(x, end); scan_skip_white(x))
        if (!take_named_tag(x, prefix, "parameter", &key, &more) ||
            !scan_take_until(x, close, &v) || !write_marked(to, tool, key, more, v))
            return false;
    json_end(to);
    return !to->failed;
}

bool tool_form_invoke(struct tool_list *l, const char *s, size_t n)
{
    static const char word[] = "invoke name=";
    struct scan x = { s, n };
    char prefix[TAG_BYTES / 2] = "";
    const char *at;

    scan_skip_white(&x);
    at = x.n > 0 ? memmem(x.s, x.n, word, sizeof word - 1) : NULL;
    if (at == NULL || at == x.s || (size_t)(at - x.s) > sizeof prefix)
        return false;
    memcpy(prefix, x.s + 1, (size_t)(at - x.s) - 1);
    for (; x.n > 0; scan_skip_white(&x))
        if (!add_invoke(l, &x, prefix))
            return false;
    return true;
}
