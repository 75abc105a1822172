/*
 * Calls as LFM2 writes them, in Python: [f(a='x', n=3), g()]
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/serve/tool_scan.h"

#define DEPTH 16

static bool take_value(struct scan *x, struct json *to, const char *key, unsigned depth);

/* A text in quotes of either kind. */
static bool take_text(struct scan *x, struct json *to, const char *key)
{
    char quote = *x->s, *text = malloc(x->n);
    size_t n = 0;
    bool is_closed = false;

    if (text == NULL)
        return false;
    for (scan_skip(x, 1); x->n > 0 && !is_closed; scan_skip(x, 1)) {
        char c = *x->s;

        is_closed = c == quote;
        if (c == '\\' && x->n > 1) {
            scan_skip(x, 1);
            c = *x->s == 'n' ? '\n' : *x->s == 't' ? '\t' : *x->s;
        }
        if (!is_closed)
            text[n++] = c;
    }
    if (is_closed)
        json_string_n(to, key, text, n);
    free(text);
    return is_closed;
}

/* A number, or a word: JSON has other words for three of them. */
static bool take_word(struct scan *x, struct json *to, const char *key)
{
    static const char *const words[][2] = { { "True", "true" },
                                            { "False", "false" },
                                            { "None", "null" } };
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    struct scan word = { x->s, 0 };
    bool is_right;

    while (word.n < x->n && strchr(",)]}: \n", x->s[word.n]) == NULL)
        word.n++;
    scan_skip(x, word.n);
    for (size_t i = 0; i < 3; i++)
        if (word.n == strlen(words[i][0]) && memcmp(word.s, words[i][0], word.n) == 0)
            word = (struct scan){ words[i][1], strlen(words[i][1]) };
    is_right = json_parse(&doc, word.s, word.n, &ignored) == 0 && json_root(doc) != NULL;
    if (is_right)
        json_copy(to, key, json_root(doc));
    json_free(doc);
    return is_right;
}

/* Take the name of an argument, or a key in quotes, and the sign after it. */
static char *take_key(struct scan *x, const char *sign)
{
    struct scan key;
    const char quote[] = { x->n > 0 ? *x->s : '\0', '\0' };
    bool is_quoted = quote[0] == '\'' || quote[0] == '"';

    if (is_quoted) {
        scan_skip(x, 1);
        if (!scan_take_until(x, quote, &key))
            return NULL;
        scan_skip_white(x);
        if (!scan_takes(x, sign))
            return NULL;
    } else if (!scan_take_until(x, sign, &key)) {
        return NULL;
    }
    scan_trim_end(&key);
    return strndup(key.s, key.n);
}

/* Values up to a closing sign, with keys before `sign` if it is not NULL. */
static bool take_members(struct scan *x, struct json *to, const char *closer, const char *sign,
                         unsigned depth)
{
    for (scan_skip_white(x); !scan_takes(x, closer); scan_skip_white(x)) {
        char *key = sign != NULL ? take_key(x, sign) : NULL;
        bool is_right = (sign == NULL || key != NULL) && take_value(x, to, key, depth + 1);

        free(key);
        scan_skip_white(x);
        if (!is_right || (!scan_takes(x, ",") && (x->n == 0 || *x->s != *closer)))
            return false;
    }
    return true;
}

static bool take_value(struct scan *x, struct json *to, const char *key, unsigned depth)
{
    bool is_right;

    scan_skip_white(x);
    if (x->n == 0 || depth > DEPTH)
        return false;
    if (*x->s == '\'' || *x->s == '"')
        return take_text(x, to, key);
    if (*x->s != '{' && *x->s != '[')
        return take_word(x, to, key);
    if (*x->s == '{')
        json_object(to, key);
    else
        json_array(to, key);
    is_right = scan_takes(x, "{") ? take_members(x, to, "}", ":", depth)
                                  : scan_takes(x, "[") && take_members(x, to, "]", NULL, depth);
    json_end(to);
    return is_right;
}

bool tool_form_python(struct tool_list *l, const char *s, size_t n)
{
    struct scan x = { s, n }, name;

    scan_skip_white(&x);
    if (!scan_takes(&x, "["))
        return false;
    do {
        struct json *to;

        if (!scan_take_until(&x, "(", &name))
            return false;
        while (name.n > 0 && isspace((unsigned char)*name.s))
            scan_skip(&name, 1);
        to = tool_add(l, name.s, name.n);
        if (to == NULL)
            return false;
        json_object(to, NULL);
        if (!take_members(&x, to, ")", "=", 0))
            return false;
        json_end(to);
        if (to->failed)
            return false;
        scan_skip_white(&x);
    } while (scan_takes(&x, ","));
    scan_skip_white(&x);
    return scan_takes(&x, "]");
}
