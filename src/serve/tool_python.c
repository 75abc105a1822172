/*
 * Calls as LFM2 writes them, in Python: [f(a='x', n=3), g()]
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "src/serve/request_field.h"
#include "src/serve/tool_scan.h"

static bool take_value(struct scan *x, struct json *to, const char *key, unsigned depth);

/* ---- texts ---- */

/* Take the code point of \xhh, \uhhhh or \Uhhhhhhhh, after the backslash. */
static bool take_code(struct scan *x, uint32_t *cp)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = *x->s == 'x' ? 2 : *x->s == 'u' ? 4 : *x->s == 'U' ? 8 : 0;

    *cp = 0;
    if (n == 0 || x->n <= n)
        return false;
    for (size_t i = 1; i <= n; i++) {
        if (!isxdigit((unsigned char)x->s[i]))
            return false;
        *cp = *cp << 4 | (uint32_t)(strchr(hex, tolower((unsigned char)x->s[i])) - hex);
    }
    if (*cp > 0x10ffff)
        return false;
    scan_skip(x, n + 1);
    return true;
}

/* Write a code point, or the character of which it is the first half, as JSON has them.  A half
 * alone is no character. */
static size_t write_code(struct scan *x, uint32_t cp, char *out)
{
    struct scan rest = *x;
    uint32_t second;

    if (cp >= 0xd800 && cp < 0xdc00 && scan_takes(&rest, "\\") && rest.n > 0 &&
        take_code(&rest, &second) && second >= 0xdc00 && second < 0xe000) {
        cp = 0x10000 + ((cp - 0xd800) << 10) + (second - 0xdc00);
        *x = rest;
    }
    return utf8_encode(cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp, out);
}

/* Take an escape after its backslash, and write the characters that it stands for, which are not
 * longer.  One that is unknown stands for itself. */
static size_t take_escape(struct scan *x, char *out)
{
    static const char names[] = "\\'\"abfnrtv", signs[] = "\\'\"\a\b\f\n\r\t\v";
    const char *at = memchr(names, *x->s, sizeof names - 1);
    uint32_t cp = 0;

    if (at != NULL) {
        *out = signs[at - names];
        scan_skip(x, 1);
        return 1;
    }
    if (scan_takes(x, "\n") || scan_takes(x, "\r\n")) /* the line goes on */
        return 0;
    if (*x->s >= '0' && *x->s <= '7') {
        for (size_t i = 0; i < 3 && x->n > 0 && *x->s >= '0' && *x->s <= '7'; i++) {
            cp = cp << 3 | (uint32_t)(*x->s - '0');
            scan_skip(x, 1);
        }
        return utf8_encode(cp, out);
    }
    if (take_code(x, &cp))
        return write_code(x, cp, out);
    *out = '\\';
    return 1;
}

/* Take a text in one quote of either kind, or in three.  Returns its n bytes, which the caller
 * frees; NULL: it has no end. */
static char *take_quoted(struct scan *x, size_t *n)
{
    char quote[] = { *x->s, *x->s, *x->s, '\0' }, *text = malloc(x->n);

    *n = 0;
    if (text == NULL)
        return NULL;
    if (!scan_takes(x, quote)) {
        quote[1] = '\0';
        scan_skip(x, 1);
    }
    while (x->n > 0) {
        if (scan_takes(x, quote))
            return text;
        if (x->n > 1 && scan_takes(x, "\\")) {
            *n += take_escape(x, text + *n);
        } else {
            text[(*n)++] = *x->s;
            scan_skip(x, 1);
        }
    }
    free(text);
    return NULL;
}

static bool take_text(struct scan *x, struct json *to, const char *key)
{
    size_t n;
    char *text = take_quoted(x, &n);

    if (text != NULL)
        json_string_n(to, key, text, n);
    free(text);
    return text != NULL;
}

/* ---- numbers and words ---- */

static bool is_digit_at(struct scan w, size_t i)
{
    return i < w.n && isdigit((unsigned char)w.s[i]);
}

/* Write the JSON of 0x1f, 0o17 or 0b11.  Returns its length; 0: it is no such number, or too
 * large. */
static size_t write_based(struct scan w, char *out)
{
    static const char digits[] = "0123456789abcdef";
    unsigned base = strchr("xX", w.s[1]) != NULL ? 16 : strchr("oO", w.s[1]) != NULL ? 8 : 2;
    unsigned long long v = 0;

    for (size_t i = 2; i < w.n; i++) {
        const char *at = memchr(digits, tolower((unsigned char)w.s[i]), base);

        if (w.s[i] == '_' && i + 1 < w.n && w.s[i - 1] != '_')
            continue;
        if (at == NULL || __builtin_mul_overflow(v, base, &v) ||
            __builtin_add_overflow(v, (unsigned long long)(at - digits), &v))
            return 0;
    }
    return (size_t)sprintf(out, "%llu", v);
}

/* Write a number as JSON, which has no underscores, and digits on both sides of a point.  Returns
 * its length; 0: it is none. */
static size_t write_number(struct scan w, char *out)
{
    size_t n = 0;

    if (scan_takes(&w, "-"))
        out[n++] = '-';
    else
        scan_takes(&w, "+");
    if (w.n > 2 && w.s[0] == '0' && memchr("xXoObB", w.s[1], 6) != NULL) {
        size_t len = write_based(w, out + n);

        return len > 0 ? n + len : 0;
    }
    for (size_t i = 0; i < w.n; i++) {
        bool before = i > 0 && is_digit_at(w, i - 1), after = is_digit_at(w, i + 1);

        if ((w.s[i] == '_' && !(before && after)) || (w.s[i] == '.' && !before && !after))
            return 0;
        if (w.s[i] == '_')
            continue;
        if (w.s[i] == '.' && !before)
            out[n++] = '0';
        out[n++] = w.s[i];
        if (w.s[i] == '.' && !after)
            out[n++] = '0';
    }
    return n;
}

#define NUMBER_BYTES(n) (2 * (n) + 24) /* for the number of a word of n bytes */

static bool write_json(struct json *to, const char *key, const char *json, size_t n)
{
    struct json_doc *doc = NULL;
    struct err ignored = ERR_INIT;
    bool is_right = json_parse(&doc, json, n, &ignored) == 0 && json_root(doc) != NULL;

    if (is_right)
        json_copy(to, key, json_root(doc));
    json_free(doc);
    return is_right;
}

/* A number, or a word: JSON has other words for three of them. */
static bool take_word(struct scan *x, struct json *to, const char *key)
{
    static const char *const words[][2] = { { "True", "true" },
                                            { "False", "false" },
                                            { "None", "null" } };
    struct scan word = { x->s, 0 };
    char *number;
    bool is_right;

    while (word.n < x->n && memchr(",)]}:", x->s[word.n], 5) == NULL &&
           !isspace((unsigned char)x->s[word.n]))
        word.n++;
    scan_skip(x, word.n);
    for (size_t i = 0; i < 3; i++)
        if (word.n == strlen(words[i][0]) && memcmp(word.s, words[i][0], word.n) == 0)
            return write_json(to, key, words[i][1], strlen(words[i][1]));
    if (word.n == 0 || memchr("+-.0123456789", *word.s, 13) == NULL)
        return write_json(to, key, word.s, word.n);
    number = malloc(NUMBER_BYTES(word.n));
    is_right = number != NULL && write_json(to, key, number, write_number(word, number));
    free(number);
    return is_right;
}

/* ---- calls ---- */

/* Take the name of an argument, or a key in quotes, and the sign after it. */
static char *take_key(struct scan *x, const char *sign)
{
    struct scan key;
    char *text, *name;
    size_t n;

    if (x->n == 0 || (*x->s != '\'' && *x->s != '"')) {
        if (!scan_take_until(x, sign, &key))
            return NULL;
        scan_trim_end(&key);
        return strndup(key.s, key.n);
    }
    text = take_quoted(x, &n);
    scan_skip_white(x);
    name = text != NULL && memchr(text, '\0', n) == NULL && scan_takes(x, sign) ? strndup(text, n)
                                                                               : NULL;
    free(text);
    return name;
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
    if (x->n == 0 || depth > CALL_DEPTH)
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
