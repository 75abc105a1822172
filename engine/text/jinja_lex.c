/*
 * Split a template into tokens, like Jinja's lexer with trim_blocks and lstrip_blocks.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/text/jinja_internal.h"

/* White space as in Python's \s. */
static bool is_space_at(const struct parser *p, size_t at, size_t *len)
{
    uint32_t cp;

    if (at >= p->len)
        return false;
    *len = utf8_decode(p->text + at, p->len - at, &cp);
    return jv_is_space(cp);
}

static size_t skip_space(const struct parser *p, size_t at)
{
    size_t len;

    while (is_space_at(p, at, &len))
        at += len;
    return at;
}

static bool starts(const struct parser *p, size_t at, const char *s)
{
    size_t n = strlen(s);

    return at + n <= p->len && memcmp(p->text + at, s, n) == 0;
}

static void count_lines(struct parser *p, size_t from, size_t to)
{
    for (const char *q = p->text + from, *end = p->text + to;
         (q = memchr(q, '\n', (size_t)(end - q))) != NULL; q++)
        p->line++;
}

/* Advance to `to`, the end of a token. */
static void advance(struct parser *p, size_t to)
{
    count_lines(p, p->at, to);
    if (to > p->at)
        p->line_starting = p->text[to - 1] == '\n';
    p->at = to;
}

/*
 * If an end tag such as "%}" is at `at`, returns the first byte after it and after the white
 * space that goes with it, else 0.
 */
static size_t end_tag(const struct parser *p, size_t at, const char *tag, bool trim)
{
    if (p->text[at] == '-' && starts(p, at + 1, tag))
        return skip_space(p, at + 3);
    if (trim && p->text[at] == '+' && starts(p, at + 1, tag))
        return at + 3;
    if (!starts(p, at, tag))
        return 0;
    return trim && starts(p, at + 2, "\n") ? at + 3 : at + 2;
}

static char sign_at(const struct parser *p, size_t at)
{
    return at < p->len && (p->text[at] == '-' || p->text[at] == '+') ? p->text[at] : '\0';
}

/* Returns the end of the text [from, to) before a tag, without removed white space. */
static size_t text_end(const struct parser *p, size_t from, size_t to, char sign, bool variable)
{
    size_t end = to;

    if (sign == '-') {
        while (end > from) {
            size_t at = end - 1, len;

            while (at > from && ((unsigned char)p->text[at] & 0xc0u) == 0x80)
                at--;
            if (!is_space_at(p, at, &len))
                break;
            end = at;
        }
    } else if (sign != '+' && !variable) {
        while (end > from && p->text[end - 1] != '\n')
            end--;
        if ((end == from && !p->line_starting) || skip_space(p, end) < to)
            end = to;
    }
    return end;
}

/* "{% raw %}" at `at`: returns the first byte after it, else 0. */
static size_t raw_begin(const struct parser *p, size_t at)
{
    at = skip_space(p, at + 2 + (sign_at(p, at + 2) != '\0'));
    if (!starts(p, at, "raw"))
        return 0;
    at = skip_space(p, at + 3);
    if (starts(p, at, "-%}"))
        return skip_space(p, at + 3);
    return starts(p, at, "%}") ? at + 2 : 0;
}

static bool data_token(struct parser *p, struct token *t, size_t from, size_t to)
{
    *t = (struct token){
        .type = T_DATA, .line = p->line, .p = p->text + from, .len = to - from
    };
    return to > from;
}

/* Read the text from "{% raw %}" to "{% endraw %}". */
static bool raw(struct parser *p, struct token *t)
{
    uint32_t line = p->line;
    size_t from = p->at;

    if (from == p->len) /* the reference accepts a tag at the end of the template */
        return false;
    for (size_t at = from; at < p->len; at++) {
        const char *q = memchr(p->text + at, '{', p->len - at);
        size_t end;
        char sign;

        if (q == NULL)
            break;
        at = (size_t)(q - p->text);
        if (!starts(p, at, "{%"))
            continue;
        sign = sign_at(p, at + 2);
        end = skip_space(p, at + 2 + (sign != '\0'));
        if (!starts(p, end, "endraw"))
            continue;
        end = skip_space(p, end + 6);
        end = end < p->len ? end_tag(p, end, "%}", true) : 0;
        if (end != 0) {
            bool some = data_token(p, t, from, text_end(p, from, at, sign, false));

            advance(p, end);
            return some;
        }
    }
    jp_fail(p, ERR_FORMAT, line, "{%% raw %%} is never closed");
}

static void comment(struct parser *p)
{
    uint32_t line = p->line;

    if (p->at == p->len)
        return;
    for (size_t at = p->at; at < p->len; at++) {
        size_t end = end_tag(p, at, "#}", true);

        if (end != 0) {
            advance(p, end);
            return;
        }
    }
    jp_fail(p, ERR_FORMAT, line, "a comment is never closed");
}

/* Read text up to the next tag, or the start of the tag.  Returns whether *t is a token. */
static bool outside(struct parser *p, struct token *t)
{
    size_t from = p->at, at = from;

    for (;; at++) {
        const char *q = at < p->len ? memchr(p->text + at, '{', p->len - at) : NULL;

        if (q == NULL) {
            bool some = data_token(p, t, from, p->len);

            advance(p, p->len);
            if (!some)
                *t = (struct token){ .type = T_EOF, .line = p->line };
            return true;
        }
        at = (size_t)(q - p->text);
        if (starts(p, at, "{%") || starts(p, at, "{{") || starts(p, at, "{#"))
            break;
    }

    char kind = p->text[at + 1], sign = sign_at(p, at + 2);
    size_t end = text_end(p, from, at, sign, kind == '{');
    size_t past_raw = kind == '%' ? raw_begin(p, at) : 0;

    if (end > from && p->at < at) { /* return the text first; the tag is found again */
        data_token(p, t, from, end);
        advance(p, at);
        return true;
    }
    advance(p, at);
    if (past_raw != 0) {
        advance(p, past_raw);
        return raw(p, t);
    }
    advance(p, at + 2 + (sign != '\0'));
    if (kind == '#') {
        comment(p);
        return false;
    }
    p->in_tag = true;
    p->tag_is_block = kind == '%';
    *t = (struct token){ .type = kind == '%' ? T_BLOCK_BEGIN : T_VAR_BEGIN, .line = p->line };
    return true;
}

/* ---- inside tags ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t digits(const struct parser *p, size_t at)
{
    while (at < p->len && is_digit(p->text[at]))
        at++;
    return at;
}

static void number(struct parser *p, struct token *t)
{
    size_t whole = digits(p, p->at), end = whole, at = whole;
    bool after_dot = p->at > 0 && p->text[p->at - 1] == '.';
    char buf[400];

    if (!after_dot && at + 1 < p->len && p->text[at] == '.' && is_digit(p->text[at + 1]))
        end = at = digits(p, at + 1);
    if (!after_dot && at < p->len && (p->text[at] | 0x20) == 'e') {
        at++;
        if (at < p->len && (p->text[at] == '+' || p->text[at] == '-'))
            at++;
        if (at < p->len && is_digit(p->text[at]))
            end = digits(p, at);
    }
    if (end < p->len && (p->text[end] == '_' || (p->text[p->at] == '0' && end == p->at + 1 &&
                                                 strchr("xXoObB", p->text[end]) != NULL)))
        jp_fail(p, ERR_UNSUPPORTED, p->line, "numbers with \"_\" or a base are not supported");
    if (end - p->at >= sizeof buf)
        jp_fail(p, ERR_UNSUPPORTED, p->line, "a number has more than %zu digits", sizeof buf - 1);
    memcpy(buf, p->text + p->at, end - p->at);
    buf[end - p->at] = '\0';
    errno = 0;
    t->type = end > whole ? T_FLOAT : T_INT;
    t->f = strtod(buf, NULL);
    if (t->type == T_INT) {
        if (buf[0] == '0' && strspn(buf, "0") < strlen(buf)) { /* 012 */
            end = p->at + 1;
            buf[1] = '\0';
        }
        t->i = strtoll(buf, NULL, 10);
        if (errno == ERANGE)
            jp_fail(p, ERR_UNSUPPORTED, p->line, "an integer does not fit 64 bits");
    }
    advance(p, end);
}

/* Parse the 2 digits of \\x or the 4 of \\u into *cp. */
static size_t numeric_escape(struct parser *p, const char *s, size_t n, uint32_t *cp)
{
    size_t want = s[0] == 'x' ? 2 : 4;

    *cp = 0;
    for (size_t i = 1; i <= want; i++) {
        int digit = i < n ? hex_digit(s[i]) : -1;

        if (digit < 0)
            jp_fail(p, ERR_FORMAT, p->line, "truncated \\%c escape in a string", s[0]);
        *cp = *cp << 4 | (uint32_t)digit;
    }
    return want;
}

static size_t unescape(struct parser *p, const char *s, size_t n, char *out)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        const char *found;
        uint32_t cp;

        if (s[i] != '\\') {
            out[used++] = s[i];
            continue;
        }
        i++; /* a string never ends with a backslash, see string() */
        found = memchr(from, s[i], sizeof from - 1);
        if (found != NULL) {
            out[used++] = to[found - from];
        } else if (s[i] == '\n') {
            /* continued on the next line */
        } else if (s[i] == 'x' || s[i] == 'u') {
            i += numeric_escape(p, s + i, n - i, &cp);
            if (cp >= 0xd800 && cp < 0xe000)
                jp_fail(p, ERR_UNSUPPORTED, p->line,
                        "an escape in a string is not a character: %#x", cp);
            used += utf8_encode(cp, out + used);
        } else if (s[i] == 'U' || s[i] == 'N' || is_digit(s[i]) || (unsigned char)s[i] >= 0x80) {
            jp_fail(p, ERR_UNSUPPORTED, p->line, "an escape in a string is not supported");
        } else {
            out[used++] = '\\';
            out[used++] = s[i];
        }
    }
    return used;
}

static void string(struct parser *p, struct token *t)
{
    char quote = p->text[p->at];
    size_t from = p->at + 1, at = from;
    bool escapes = false;

    for (; at < p->len && p->text[at] != quote; at++) {
        if (p->text[at] == '\\') {
            escapes = true;
            at++;
        }
    }
    if (at >= p->len)
        jp_fail(p, ERR_FORMAT, p->line, "a string is never closed");
    t->type = T_STRING;
    t->p = p->text + from;
    t->len = at - from;
    if (escapes) {
        char *out = jp_take(p, t->len + 16); /* no escape is longer than what it is written as */

        t->len = unescape(p, t->p, t->len, out);
        t->p = out;
    }
    advance(p, at + 1);
}

static bool name_char(const struct parser *p, size_t at, size_t *len)
{
    uint32_t cp;

    if (at >= p->len)
        return false;
    *len = utf8_decode(p->text + at, p->len - at, &cp);
    return jv_is_word(cp);
}

static void op(struct parser *p, struct token *t)
{
    static const char two[] = "//**==!=>=<=", one[] = "+-/*%~[](){}><=.:|,;";
    char c = p->text[p->at];

    t->type = T_OP;
    for (const char *s = two; *s != '\0'; s += 2) {
        if (starts(p, p->at, (char[]){ s[0], s[1], '\0' })) {
            t->op = s[0] << 8 | s[1];
            advance(p, p->at + 2);
            return;
        }
    }
    if (c == '\0' || strchr(one, c) == NULL)
        jp_fail(p, ERR_FORMAT, p->line,
                (unsigned char)c > 0x20 && (unsigned char)c < 0x7f ? "unexpected character '%c'"
                                                                   : "unexpected byte %#x",
                (unsigned char)c);
    if (strchr("([{", c) != NULL) {
        if (p->n_open == sizeof p->open)
            jp_fail(p, ERR_BUDGET, p->line, "brackets nest too deeply");
        p->open[p->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c) != NULL) {
        if (p->n_open == 0)
            jp_fail(p, ERR_FORMAT, p->line, "unexpected '%c'", c);
        if (p->open[--p->n_open] != c)
            jp_fail(p, ERR_FORMAT, p->line, "unexpected '%c', expected '%c'", c,
                    p->open[p->n_open]);
    }
    t->op = c;
    advance(p, p->at + 1);
}

static void inside(struct parser *p, struct token *t)
{
    for (size_t len;;) {
        if (p->at >= p->len) {
            *t = (struct token){ .type = T_EOF, .line = p->line };
            return;
        }
        *t = (struct token){ .line = p->line };
        if (p->n_open == 0) {
            size_t end = end_tag(p, p->at, p->tag_is_block ? "%}" : "}}", p->tag_is_block);

            if (end != 0) {
                t->type = p->tag_is_block ? T_BLOCK_END : T_VAR_END;
                p->in_tag = false;
                advance(p, end);
                return;
            }
        }
        if (!is_space_at(p, p->at, &len))
            break;
        advance(p, skip_space(p, p->at));
    }

    size_t len, at = p->at;
    char c = p->text[at];

    if (is_digit(c)) {
        number(p, t);
    } else if (name_char(p, at, &len)) {
        do
            at += len;
        while (name_char(p, at, &len));
        t->type = T_NAME;
        t->p = p->text + p->at;
        t->len = at - p->at;
        advance(p, at);
    } else if (c == '\'' || c == '"') {
        string(p, t);
    } else {
        op(p, t);
    }
}

static void lex(struct parser *p, struct token *t)
{
    if (p->in_tag) {
        inside(p, t);
        return;
    }
    while (!outside(p, t) || p->in_tag) {
        if (p->in_tag)
            return;
    }
}

void jp_next(struct parser *p)
{
    if (p->has_ahead) {
        p->now = p->ahead;
        p->has_ahead = false;
    } else {
        lex(p, &p->now);
    }
}

const struct token *jp_look(struct parser *p)
{
    if (!p->has_ahead) {
        lex(p, &p->ahead);
        p->has_ahead = true;
    }
    return &p->ahead;
}

/* Convert line breaks to \n and remove the last one, like the reference. */
void jp_start(struct parser *p)
{
    size_t used = 0;

    for (size_t i = 0; i < p->len; i++) {
        char c = p->text[i];

        if (c == '\r') {
            if (i + 1 < p->len && p->text[i + 1] == '\n')
                continue;
            c = '\n';
        }
        p->text[used++] = c;
    }
    if (used > 0 && p->text[used - 1] == '\n')
        used--;
    p->len = used;
    p->text[used] = '\0';
    p->line = 1;
    p->line_starting = true;
    jp_next(p);
}

bool jp_is_name(const struct token *t, const char *name)
{
    return t->type == T_NAME && t->len == strlen(name) && memcmp(t->p, name, t->len) == 0;
}

bool jp_is_op(const struct token *t, int op)
{
    return t->type == T_OP && t->op == op;
}

bool jp_skip_name(struct parser *p, const char *name)
{
    if (!jp_is_name(&p->now, name))
        return false;
    jp_next(p);
    return true;
}

bool jp_skip_op(struct parser *p, int op)
{
    if (!jp_is_op(&p->now, op))
        return false;
    jp_next(p);
    return true;
}

void jp_describe(const struct token *t, char *buf, size_t n)
{
    static const char *const names[] = {
        [T_EOF] = "the end of the template",
        [T_DATA] = "text",
        [T_VAR_BEGIN] = "\"{{\"",
        [T_VAR_END] = "\"}}\"",
        [T_BLOCK_BEGIN] = "\"{%\"",
        [T_BLOCK_END] = "\"%}\"",
        [T_STRING] = "a string",
        [T_INT] = "a number",
        [T_FLOAT] = "a number",
    };

    if (t->type == T_NAME)
        snprintf(buf, n, "\"%.*s\"", t->len < 40 ? (int)t->len : 40, t->p);
    else if (t->type == T_OP && t->op > 0xff)
        snprintf(buf, n, "\"%c%c\"", t->op >> 8, t->op & 0xff);
    else if (t->type == T_OP)
        snprintf(buf, n, "\"%c\"", t->op);
    else
        snprintf(buf, n, "%s", names[t->type]);
}

void jp_unexpected(struct parser *p, const char *expected)
{
    char found[64];

    jp_describe(&p->now, found, sizeof found);
    if (expected == NULL)
        jp_fail(p, ERR_FORMAT, p->now.line, "unexpected %s", found);
    jp_fail(p, ERR_FORMAT, p->now.line, "expected %s, found %s", expected, found);
}

void jp_expect_op(struct parser *p, int op)
{
    if (!jp_skip_op(p, op))
        jp_unexpected(p, (char[]){ '"', (char)op, '"', '\0' });
}

void jp_expect_name(struct parser *p, const char *name)
{
    if (!jp_skip_name(p, name))
        jp_unexpected(p, name);
}
