/*
 * Texts that match a regular expression of ECMAScript, as characters of a JSON text.
 *
 *     ^[a-c]+"|x$      "\"" ([a-c]+ "\\\"" json-char* | json-char* "x") "\""
 *
 * A pattern is searched in the text, so anything may come before and after it unless it has
 * anchors.  Each part of it becomes one part of the rule, so the rule is as long as the pattern.
 * Conditions on the text around a place, and references to a group, cannot be expressed in a
 * grammar: they are errors.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/grammar/schema_internal.h"

#define PATTERN_MOST 4096
#define PATTERN_DEPTH 32
#define RANGES_MOST  128
#define LAST         0x10ffffu

struct pattern {
    struct schema *s;
    const char *keyword;
    const char *text, *at, *end;
    unsigned depth;
};

/* Code points, or all others. */
struct set {
    struct {
        uint32_t from, to;
    } range[RANGES_MOST];
    size_t n;
    bool is_inverted;
};

static int wrong(struct pattern *p, const char *what)
{
    char text[120];

    snprintf(text, sizeof text, "has %s before byte %td, which is not supported", what,
             p->at - p->text);
    return schema_wrong(p->s, p->keyword, ERR_UNSUPPORTED, text);
}

static bool takes(struct pattern *p, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* ---- writing characters ---- */

/* The escape that a text of this notation has for a code point; NULL: it has it as it is. */
static const char *escape_of(const struct schema *s, uint32_t c)
{
    if (s->notation == MW_NOTATION_BARE)
        return NULL;
    switch (c) {
    case '"': return "\"\\\\\\\"\"";
    case '\\': return "\"\\\\\\\\\"";
    case '\b': return "\"\\\\b\"";
    case '\f': return "\"\\\\f\"";
    case '\n': return "\"\\\\n\"";
    case '\r': return "\"\\\\r\"";
    case '\t': return "\"\\\\t\"";
    case '<': return s->notation == MW_NOTATION_TAGGED ? "\"\\\\u003c\"" : NULL;
    default: return NULL;
    }
}

/* Can a text have the code point as it is? */
static bool is_plain(const struct schema *s, uint32_t c)
{
    if (s->notation == MW_NOTATION_BARE)
        return c != '<';
    return c >= 0x20 && c != 0x7f && (c < 0xd800 || c > 0xdfff) && escape_of(s, c) == NULL;
}

static bool has(const struct set *x, uint32_t c)
{
    bool is_in = false;

    for (size_t i = 0; i < x->n; i++)
        is_in = is_in || (c >= x->range[i].from && c <= x->range[i].to);
    return is_in != x->is_inverted;
}

/* The code points below 128 decide one by one, and ranges from there on are plain. */
static bool write_plain(struct schema *s, const struct set *x)
{
    bool is_any = x->is_inverted;

    schema_raw(s, x->is_inverted ? "[^" : "[");
    for (uint32_t c = 0; c < 128; c++)
        if ((has(x, c) && is_plain(s, c)) != x->is_inverted) {
            json_print(s->out, "\\x%02x", c);
            is_any = true;
        }
    for (size_t i = 0; i < x->n; i++)
        if (x->range[i].to >= 128) {
            json_print(s->out, "\\U%08x-\\U%08x",
                       x->range[i].from > 128 ? x->range[i].from : 128u, x->range[i].to);
            is_any = true;
        }
    schema_raw(s, "]");
    return is_any;
}

static int write_set(struct pattern *p, const struct set *x)
{
    struct schema *s = p->s;
    struct json plain, *out = s->out;
    bool is_any;

    json_start(&plain);
    s->out = &plain;
    is_any = write_plain(s, x);
    s->out = out;
    schema_raw(s, "(");
    if (is_any)
        json_raw(out, plain.buf, plain.used);
    out->failed = out->failed || plain.failed;
    json_release(&plain);
    for (uint32_t c = 0; c < 128; c++)
        if (has(x, c) && escape_of(s, c) != NULL) {
            schema_raw(s, is_any ? " | " : "");
            schema_raw(s, escape_of(s, c));
            is_any = true;
        }
    schema_raw(s, ") ");
    return is_any ? 0 : wrong(p, "a set without a character that an answer may have");
}

static int add_range(struct pattern *p, struct set *x, uint32_t from, uint32_t to)
{
    if (x->n == RANGES_MOST)
        return wrong(p, "a set of too many characters");
    x->range[x->n].from = from;
    x->range[x->n++].to = to;
    return 0;
}

/* A single character may also be "<" in the bare notation: a set is what repeats. */
static int write_char(struct pattern *p, uint32_t c)
{
    char text[4];

    if (escape_of(p->s, c) != NULL) {
        schema_raw(p->s, escape_of(p->s, c));
        schema_raw(p->s, " ");
        return 0;
    }
    if (!is_plain(p->s, c) && c != '<')
        return wrong(p, "a character that an answer cannot have");
    mw_grammar_literal(p->s->out, text, utf8_encode(c, text));
    schema_raw(p->s, " ");
    return 0;
}

/* ---- escapes ---- */

static int add_ranges(struct pattern *p, struct set *x, const uint32_t (*list)[2], size_t n,
                      bool is_inverted)
{
    uint32_t next = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_inverted && add_range(p, x, list[i][0], list[i][1]) != 0)
            return -1;
        if (is_inverted && list[i][0] > next && add_range(p, x, next, list[i][0] - 1) != 0)
            return -1;
        next = list[i][1] + 1;
    }
    return is_inverted ? add_range(p, x, next, LAST) : 0;
}

/* \d, \w, \s and their opposites.  false: it is another escape.  Of spaces, the opposite leaves out
 * all, and the set has those that other readers of patterns also take for spaces. */
static bool takes_class(struct pattern *p, struct set *x, int *rc)
{
    static const uint32_t digits[][2] = { { '0', '9' } };
    static const uint32_t words[][2] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
    static const uint32_t spaces[][2] = {
        { 9, 13 },          { 32, 32 },         { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
        { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f },
        { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }
    };
    char c = p->at < p->end ? *p->at : '\0';

    switch (c) {
    case 'd':
    case 'D': *rc = add_ranges(p, x, digits, 1, c == 'D'); break;
    case 'w':
    case 'W': *rc = add_ranges(p, x, words, 4, c == 'W'); break;
    case 's':
    case 'S': *rc = add_ranges(p, x, spaces, c == 's' ? 3 : 10, c == 'S'); break;
    default: return false;
    }
    p->at++;
    return true;
}

static int take_hex(struct pattern *p, unsigned n, uint32_t *out)
{
    *out = 0;
    for (; n > 0; n--, p->at++) {
        char c = p->at < p->end ? *p->at : '\0';
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;

        if (digit == 16)
            return wrong(p, "an escape without its digits");
        *out = *out << 4 | digit;
    }
    return 0;
}

/* \u00e9, \u{1f600}, or two halves of a pair. */
static int take_unicode(struct pattern *p, uint32_t *out)
{
    uint32_t low;

    if (takes(p, "{")) {
        for (*out = 0; !takes(p, "}");) {
            uint32_t digit;

            if (take_hex(p, 1, &digit) != 0)
                return -1;
            *out = *out << 4 | digit;
            if (*out > LAST)
                return wrong(p, "a number that is not one of a character");
        }
        return 0;
    }
    if (take_hex(p, 4, out) != 0)
        return -1;
    if (*out >= 0xd800 && *out <= 0xdbff && takes(p, "\\u")) {
        if (take_hex(p, 4, &low) != 0)
            return -1;
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
        if (low < 0xdc00 || low > 0xdfff)
            *out = 0xd800;
    }
    return *out >= 0xd800 && *out <= 0xdfff ? wrong(p, "half of a character") : 0;
}

/* The character of an escape, after the backslash. */
static int take_escape(struct pattern *p, uint32_t *out)
{
    static const char from[] = "nrtfv", to[] = "\n\r\t\f\v";
    char c = p->at < p->end ? *p->at++ : '\0';
    const char *found = c != '\0' ? strchr(from, c) : NULL;

    *out = (unsigned char)c;
    if (found != NULL) {
        *out = (unsigned char)to[found - from];
        return 0;
    }
    if (c == 'x')
        return take_hex(p, 2, out);
    if (c == 'u')
        return take_unicode(p, out);
    if (c != '\0' && strchr("^$\\.*+?()[]{}|/-\"' ,:;=!@#%&~`<>_", c) != NULL)
        return 0;
    return wrong(p, "an escape");
}

static int take_plain(struct pattern *p, uint32_t *out)
{
    p->at += utf8_decode(p->at, (size_t)(p->end - p->at), out);
    return *out <= LAST ? 0 : wrong(p, "broken UTF-8");
}

/* ---- sets ---- */

/* One end of a range.  *is_class: it was \d or the like, which was added to x. */
static int take_member(struct pattern *p, struct set *x, uint32_t *c, bool *is_class)
{
    int rc = 0;

    *is_class = false;
    if (!takes(p, "\\"))
        return take_plain(p, c);
    if (takes(p, "b")) {
        *c = '\b';
        return 0;
    }
    *is_class = takes_class(p, x, &rc);
    return *is_class ? rc : take_escape(p, c);
}

/* After "[". */
static int take_set(struct pattern *p)
{
    struct set x = { .is_inverted = takes(p, "^") };

    while (!takes(p, "]")) {
        uint32_t from, to;
        bool is_class;

        if (p->at == p->end)
            return wrong(p, "a \"[\" without \"]\"");
        if (take_member(p, &x, &from, &is_class) != 0)
            return -1;
        if (is_class)
            continue;
        to = from;
        if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            if (take_member(p, &x, &to, &is_class) != 0)
                return -1;
            if (is_class || to < from)
                return wrong(p, "a range that ends before it begins");
        }
        if (add_range(p, &x, from, to) != 0)
            return -1;
    }
    return write_set(p, &x);
}

/* ---- parts ---- */

static int take_alternatives(struct pattern *p);

/* After "(". */
static int take_group(struct pattern *p)
{
    if (takes(p, "?") && !takes(p, ":")) {
        if (!takes(p, "<") || takes(p, "=") || takes(p, "!"))
            return wrong(p, "a condition on the text around it");
        while (p->at < p->end && *p->at != '>')
            p->at++;
        if (!takes(p, ">"))
            return wrong(p, "a name without \">\"");
    }
    if (++p->depth > PATTERN_DEPTH)
        return wrong(p, "groups that are nested too deep");
    schema_raw(p->s, "(");
    if (take_alternatives(p) != 0)
        return -1;
    p->depth--;
    schema_raw(p->s, ") ");
    return takes(p, ")") ? 0 : wrong(p, "a \"(\" without \")\"");
}

static int take_atom(struct pattern *p)
{
    static const uint32_t lines[][2] = { { '\n', '\n' }, { '\r', '\r' }, { 0x2028, 0x2029 } };
    struct set x = { .n = 0 };
    uint32_t c;
    int rc = 0;

    if (takes(p, "("))
        return take_group(p);
    if (takes(p, "["))
        return take_set(p);
    if (takes(p, "."))
        return add_ranges(p, &x, lines, 3, true) != 0 ? -1 : write_set(p, &x);
    if (takes(p, "\\")) {
        if (takes_class(p, &x, &rc))
            return rc != 0 ? rc : write_set(p, &x);
        return take_escape(p, &c) != 0 ? -1 : write_char(p, c);
    }
    if (strchr("^$*+?{}", *p->at) != NULL)
        return wrong(p, *p->at == '^' || *p->at == '$' ? "an anchor inside" : "a lone repetition");
    return take_plain(p, &c) != 0 ? -1 : write_char(p, c);
}

static int take_number(struct pattern *p, uint32_t *out)
{
    const char *start = p->at;

    for (*out = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9' && *out < 100000; p->at++)
        *out = *out * 10 + (uint32_t)(*p->at - '0');
    return p->at > start && *out < 100000 ? 0 : wrong(p, "a wrong count");
}

static int take_counts(struct pattern *p)
{
    uint32_t min, max;

    if (take_number(p, &min) != 0)
        return -1;
    max = min;
    if (takes(p, ",")) {
        if (takes(p, "}")) {
            json_print(p->s->out, "{%u,} ", min);
            return 0;
        }
        if (take_number(p, &max) != 0)
            return -1;
    }
    if (!takes(p, "}") || max < min)
        return wrong(p, "a wrong count");
    json_print(p->s->out, "{%u,%u} ", min, max);
    return 0;
}

/* Whether a part is repeated lazily decides how it is found, and not which texts match. */
static int take_repetition(struct pattern *p)
{
    static const char *const signs[] = { "*", "+", "?" };
    bool is_one = false;

    for (size_t i = 0; i < 3 && !is_one; i++) {
        is_one = takes(p, signs[i]);
        if (is_one)
            schema_raw(p->s, signs[i]);
    }
    if (!is_one && !takes(p, "{"))
        return 0;
    if (!is_one && take_counts(p) != 0)
        return -1;
    schema_raw(p->s, " ");
    takes(p, "?");
    return p->at < p->end && strchr("*+?{", *p->at) != NULL ? wrong(p, "a lone repetition") : 0;
}

static int take_alternative(struct pattern *p)
{
    bool is_outer = p->depth == 0, is_end = false;

    if (is_outer && !takes(p, "^"))
        schema_raw(p->s, "@-char* ");
    schema_raw(p->s, "\"\" ");
    while (p->at < p->end && *p->at != '|' && *p->at != ')' && !is_end) {
        is_end = is_outer && *p->at == '$' && (p->at + 1 == p->end || p->at[1] == '|');
        if (is_end)
            p->at++;
        else if (schema_fits(p->s) != 0 || take_atom(p) != 0 || take_repetition(p) != 0)
            return -1;
    }
    if (is_outer && !is_end)
        schema_raw(p->s, "@-char* ");
    return 0;
}

static int take_alternatives(struct pattern *p)
{
    if (take_alternative(p) != 0)
        return -1;
    while (takes(p, "|")) {
        schema_raw(p->s, "| ");
        if (take_alternative(p) != 0)
            return -1;
    }
    return 0;
}

int schema_pattern(struct schema *s, const char *keyword, const char *text, uint32_t *rule)
{
    struct pattern p = {
        .s = s, .keyword = keyword, .text = text, .at = text, .end = text + strlen(text)
    };

    if (p.end - p.text > PATTERN_MOST)
        return schema_wrong(s, keyword, ERR_UNSUPPORTED, "is too long");
    *rule = schema_begin(s);
    schema_quote(s);
    schema_raw(s, "(");
    if (take_alternatives(&p) != 0)
        return -1;
    if (p.at < p.end)
        return wrong(&p, "a \")\" without \"(\"");
    schema_raw(s, ")");
    schema_quote(s);
    schema_raw(s, "\n");
    return 0;
}
