/*
 * The parser of GBNF, from the first byte of the text to its last one.
 *
 * The elements of an alternative that is read are in a list of their own, and move to the
 * program when it is complete: an alternative inside a group ends before the one around it.
 */
#include "config.h"

#include "engine/grammar/gbnf.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"
#include "engine/base/utf8.h"
#include "engine/grammar/gbnf_internal.h"

#define DEPTH     64
#define SHOWN     60 /* bytes of a name in a message */
#define COUNT_MAX 1000000000

struct read_rule {
    uint32_t owner; /* the named rule that it is in */
    bool is_defined;
};

struct alternative {
    uint32_t rule, first;
};

int gbnf_wrong(struct gbnf *g, const char *at, const char *fmt, ...)
{
    char what[200];
    va_list args;

    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    err_set(g->e, ERR_ARGUMENT, "%s", what);
    return err_at(g->e, NULL, (uint64_t)(at - g->text), NULL);
}

/* ---- the parts of a program ---- */

int gbnf_append(struct gbnf *g, struct gbnf_list *l, const void *item, size_t n, size_t most)
{
    if (l->n + n > most)
        return gbnf_wrong(g, g->at, "the grammar is too large");
    if (l->n + n > l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 64 * n;
        void *more = realloc(l->at, room < most ? room : most);

        if (more == NULL)
            return err_memory(g->e, "a grammar");
        l->at = more;
        l->room = room < most ? room : most;
    }
    memcpy((char *)l->at + l->n, item, n);
    l->n += n;
    return 0;
}

int gbnf_element(struct gbnf *g, struct element x)
{
    return gbnf_append(g, &g->pending, &x, sizeof x, PROGRAM_MAX_ELEMENT * sizeof x);
}

int gbnf_alternative(struct gbnf *g, uint32_t rule, size_t from)
{
    const size_t most = PROGRAM_MAX_ELEMENT * sizeof(struct element);
    struct alternative a = { rule, (uint32_t)(g->element.n / sizeof(struct element)) };
    struct element end = { .kind = ELEMENT_END };

    if (gbnf_append(g, &g->alternative, &a, sizeof a, PROGRAM_MAX_ELEMENT * sizeof a) != 0)
        return -1;
    for (size_t i = from; i < gbnf_pending(g); i++)
        if (gbnf_append(g, &g->element, (struct element *)g->pending.at + i, sizeof end, most) !=
            0)
            return -1;
    g->pending.n = from * sizeof end;
    return gbnf_append(g, &g->element, &end, sizeof end, most);
}

static struct read_rule *rule_at(const struct gbnf *g, uint32_t rule)
{
    return (struct read_rule *)g->rule.at + rule;
}

int64_t gbnf_rule(struct gbnf *g)
{
    struct read_rule made = { .owner = g->current };

    if (g->n_rule == PROGRAM_MAX_RULE)
        return gbnf_wrong(g, g->at, "the grammar has more than %d rules, groups and sets",
                          PROGRAM_MAX_RULE);
    if (gbnf_append(g, &g->rule, &made, sizeof made, PROGRAM_MAX_RULE * sizeof made) != 0)
        return -1;
    return g->n_rule++;
}

/* The rule of a name, which may be defined later. */
static int64_t named_rule(struct gbnf *g, const char *text, size_t len)
{
    size_t i = keyed_hash(hash_key(), text, len) % g->n_place;
    int64_t rule;

    for (; g->names[i].len > 0; i = (i + 1) % g->n_place)
        if (g->names[i].len == len && memcmp(g->names[i].text, text, len) == 0)
            return g->names[i].rule;
    rule = gbnf_rule(g);
    if (rule >= 0) {
        g->names[i] = (struct gbnf_name){ text, (uint32_t)len, (uint32_t)rule };
        rule_at(g, (uint32_t)rule)->owner = (uint32_t)rule;
    }
    return rule;
}

/* ---- words ---- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static size_t name_at(const struct gbnf *g, const char *at)
{
    size_t n = 0;

    while (at + n < g->end && is_name_char(at[n]))
        n++;
    return n;
}

/* Skip white space and comments; at the end of a line only if an alternative cannot end there. */
static void skip_space(struct gbnf *g, bool also_lines)
{
    for (; g->at < g->end; g->at++) {
        if (*g->at == '#')
            while (g->at < g->end && *g->at != '\n' && *g->at != '\r')
                g->at++;
        if (g->at == g->end || !(*g->at == ' ' || *g->at == '\t' ||
                                 (also_lines && (*g->at == '\n' || *g->at == '\r'))))
            break;
    }
}

/* An alternative may go on in the next line with "|". */
static bool takes_bar(struct gbnf *g)
{
    const char *before = g->at;

    skip_space(g, true);
    if (g->at < g->end && *g->at == '|') {
        g->at++;
        return true;
    }
    g->at = before;
    return false;
}

/* ---- characters ---- */

static int64_t hex(struct gbnf *g, int n)
{
    const char *start = g->at - 2;
    int64_t v = 0;

    for (int i = 0; i < n; i++, g->at++) {
        if (g->at == g->end || !isxdigit((unsigned char)*g->at))
            return gbnf_wrong(g, start, "the escape needs %d hexadecimal digits", n);
        v = v * 16 + (isdigit((unsigned char)*g->at)
                          ? *g->at - '0'
                          : tolower((unsigned char)*g->at) - 'a' + 10);
    }
    if (v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return gbnf_wrong(g, start, "the escape names no character");
    return v;
}

static int64_t escape(struct gbnf *g)
{
    char c;

    if (g->at == g->end)
        return gbnf_wrong(g, g->at, "the grammar ends after \"\\\"");
    c = *g->at++;
    switch (c) {
    case 'x': return hex(g, 2);
    case 'u': return hex(g, 4);
    case 'U': return hex(g, 8);
    case 't': return '\t';
    case 'r': return '\r';
    case 'n': return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^': return c;
    default: return gbnf_wrong(g, g->at - 2, "unknown escape");
    }
}

int64_t gbnf_char(struct gbnf *g)
{
    uint32_t cp;

    if (*g->at == '\\') {
        g->at++;
        return escape(g);
    }
    g->at += utf8_decode(g->at, (size_t)(g->end - g->at), &cp);
    return cp;
}

static int take_literal(struct gbnf *g)
{
    const char *start = g->at - 1;
    char bytes[4];

    while (g->at < g->end && *g->at != '"') {
        int64_t c = gbnf_char(g);
        size_t n = c < 0 ? 0 : utf8_encode((uint32_t)c, bytes);

        if (c < 0)
            return -1;
        for (size_t i = 0; i < n; i++) {
            uint32_t b = (unsigned char)bytes[i];

            if (gbnf_element(g, (struct element){ .kind = ELEMENT_RANGE, .value = b | b << 8 }) !=
                0)
                return -1;
        }
    }
    if (g->at == g->end)
        return gbnf_wrong(g, start, "a text has no closing quote");
    g->at++;
    return 0;
}

/* ---- tokens ---- */

/* The id between "<[" and "]>", or -1 with an error. */
static int64_t token_id(struct gbnf *g, const char *start)
{
    char *end;
    int64_t id = strtoll(start + 2, &end, 10);

    if (!isdigit((unsigned char)start[2]) || *end != ']' || end + 2 != g->at || id > INT32_MAX)
        return gbnf_wrong(g, start, "a token by its id is written <[ID]>");
    return id;
}

/* A token that the vocabulary lacks is a text like any other. */
static int take_text_of_token(struct gbnf *g, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint32_t b = (unsigned char)text[i];

        if (gbnf_element(g, (struct element){ .kind = ELEMENT_RANGE, .value = b | b << 8 }) != 0)
            return -1;
    }
    return 0;
}

static int take_token(struct gbnf *g)
{
    const char *start = g->at - 1, *close = memchr(g->at, '>', (size_t)(g->end - g->at));
    struct program *p = g->program;
    const char *text = start;
    size_t len;
    int64_t id = 0;
    uint32_t i = 0;

    if (close == NULL || close == g->at || memchr(start, '\n', (size_t)(close - start)) != NULL)
        return gbnf_wrong(g, start, "a token has no \">\"");
    g->at = close + 1;
    if (start[1] == '[') {
        id = token_id(g, start);
        if (id < 0)
            return -1;
    } else if (g->find != NULL) {
        len = (size_t)(g->at - start);
        if (len > 4 && start[1] == '"' && close[-1] == '"') { /* without brackets of its own */
            text += 2;
            len -= 4;
        }
        id = g->find(g->ctx, text, len);
        if (id < 0)
            return take_text_of_token(g, text, len);
    }
    while (i < p->n_token && p->token[i] != id)
        i++;
    if (i == PROGRAM_MAX_TOKEN)
        return gbnf_wrong(g, start, "the grammar names more than %d tokens", PROGRAM_MAX_TOKEN);
    if (i == p->n_token)
        p->token[p->n_token++] = (uint32_t)id;
    return gbnf_element(g, (struct element){ .kind = ELEMENT_TOKEN, .value = i });
}

/* ---- repetitions ---- */

static int take_count(struct gbnf *g, uint32_t *out)
{
    const char *start = g->at;
    uint64_t n = 0;

    while (g->at < g->end && isdigit((unsigned char)*g->at)) {
        n = n * 10 + (uint64_t)(*g->at++ - '0');
        if (n > COUNT_MAX)
            return gbnf_wrong(g, start, "a count is larger than %d", COUNT_MAX);
    }
    if (g->at == start)
        return gbnf_wrong(g, start, "expected a number");
    *out = (uint32_t)n;
    return 0;
}

/* "{2}", "{2,}", "{2,5}", after the brace. */
static int take_counts(struct gbnf *g, uint32_t *min, uint32_t *max)
{
    const char *start = g->at;

    skip_space(g, true);
    if (take_count(g, min) != 0)
        return -1;
    *max = *min;
    skip_space(g, true);
    if (g->at < g->end && *g->at == ',') {
        g->at++;
        skip_space(g, true);
        *max = PROGRAM_NO_LIMIT;
        if (g->at < g->end && *g->at != '}' && take_count(g, max) != 0)
            return -1;
        skip_space(g, true);
    }
    if (g->at == g->end || *g->at++ != '}')
        return gbnf_wrong(g, start, "a count has no \"}\"");
    if (*max < *min)
        return gbnf_wrong(g, start, "the second count is smaller than the first one");
    return 0;
}

/* The last item, which begins at `from`, is repeated. */
static int repeat(struct gbnf *g, size_t from, uint32_t min, uint32_t max)
{
    const struct element *first;
    int64_t rule;

    if (gbnf_pending(g) == from)
        return 0; /* the empty text, repeated */
    first = (struct element *)g->pending.at + from;
    if (max == 0 || (min == 1 && max == 1)) {
        if (max == 0)
            g->pending.n = from * sizeof *first;
        return 0;
    }
    if (gbnf_pending(g) == from + 1 && first->kind == ELEMENT_CALL) {
        rule = first->value;
        g->pending.n = from * sizeof *first;
    } else {
        rule = gbnf_rule(g);
        if (rule < 0 || gbnf_alternative(g, (uint32_t)rule, from) != 0)
            return -1;
    }
    return gbnf_element(g, (struct element){ .kind = ELEMENT_REPEAT,
                                             .value = (uint32_t)rule,
                                             .min = min,
                                             .max = max });
}

/* ---- rules ---- */

static int wrong_rule(struct gbnf *g, const struct gbnf_name *name, const char *what)
{
    return gbnf_wrong(g, name->text, "the rule \"%.*s\" %s",
                      name->len < SHOWN ? (int)name->len : SHOWN, name->text, what);
}

static int take_alternatives(struct gbnf *g, uint32_t rule, bool is_nested);

static int take_group(struct gbnf *g)
{
    const char *start = g->at - 1;
    int64_t rule = gbnf_rule(g);

    if (rule < 0)
        return -1;
    if (g->depth == DEPTH)
        return gbnf_wrong(g, start, "groups are nested more than %d deep", DEPTH);
    g->depth++;
    skip_space(g, true);
    if (take_alternatives(g, (uint32_t)rule, true) != 0)
        return -1;
    g->depth--;
    if (g->at == g->end || *g->at != ')')
        return gbnf_wrong(g, start, "a group has no \")\"");
    g->at++;
    return gbnf_element(g, (struct element){ .kind = ELEMENT_CALL, .value = (uint32_t)rule });
}

static int take_reference(struct gbnf *g)
{
    size_t n = name_at(g, g->at);
    int64_t rule = named_rule(g, g->at, n);

    if (rule < 0)
        return -1;
    g->at += n;
    return gbnf_element(g, (struct element){ .kind = ELEMENT_CALL, .value = (uint32_t)rule });
}

/* Is there a rule of this name at g->at: "name ::="? */
static bool begins_rule(const struct gbnf *g)
{
    struct gbnf after = *g;
    size_t n = name_at(g, g->at);

    after.at += n;
    skip_space(&after, false);
    return n > 0 && after.end - after.at >= 3 && memcmp(after.at, "::=", 3) == 0;
}

/* Read the items of an alternative. */
static int take_items(struct gbnf *g, bool is_nested)
{
    size_t last = gbnf_pending(g); /* where the last item begins */
    bool has_item = false;

    for (; skip_space(g, is_nested), g->at < g->end; ) {
        const char *start = g->at;
        uint32_t min = 0, max = PROGRAM_NO_LIMIT;
        char c = *g->at;

        if (strchr("*+?{", c) != NULL && c != '\0') {
            if (!has_item)
                return gbnf_wrong(g, start, "there is nothing to repeat before \"%c\"", c);
            g->at++;
            min = c == '+';
            max = c == '?' ? 1 : max;
            if ((c == '{' && take_counts(g, &min, &max) != 0) || repeat(g, last, min, max) != 0)
                return -1;
            continue;
        }
        if (c == '|' || c == ')' || c == '\n' || c == '\r')
            break;
        last = gbnf_pending(g);
        has_item = true;
        if (is_name_char(c)) {
            if (take_reference(g) != 0)
                return -1;
            continue;
        }
        g->at++;
        switch (c) {
        case '"':
            if (take_literal(g) != 0)
                return -1;
            break;
        case '[':
            if (gbnf_set(g) != 0)
                return -1;
            break;
        case '(':
            if (take_group(g) != 0)
                return -1;
            break;
        case '.':
            if (gbnf_any(g) != 0)
                return -1;
            break;
        case '<':
            if (take_token(g) != 0)
                return -1;
            break;
        default: return gbnf_wrong(g, start, "unexpected character");
        }
    }
    return 0;
}

static int take_alternatives(struct gbnf *g, uint32_t rule, bool is_nested)
{
    do {
        size_t from = gbnf_pending(g);

        skip_space(g, true);
        if (take_items(g, is_nested) != 0 || gbnf_alternative(g, rule, from) != 0)
            return -1;
    } while (takes_bar(g));
    return 0;
}

static int take_rule(struct gbnf *g)
{
    const char *start = g->at;
    size_t n = name_at(g, start);
    int64_t rule;

    if (n == 0 || !begins_rule(g))
        return gbnf_wrong(g, start, "expected a rule: NAME ::= ...");
    rule = named_rule(g, start, n);
    if (rule < 0)
        return -1;
    if (rule_at(g, (uint32_t)rule)->is_defined)
        return wrong_rule(g, &(struct gbnf_name){ start, (uint32_t)n, 0 }, "is defined twice");
    rule_at(g, (uint32_t)rule)->is_defined = true;
    g->current = (uint32_t)rule;
    g->at += n;
    skip_space(g, false);
    g->at += 3;
    if (take_alternatives(g, (uint32_t)rule, false) != 0)
        return -1;
    if (g->at < g->end && *g->at == ')')
        return gbnf_wrong(g, g->at, "there is no \"(\" for this \")\"");
    return 0;
}

/* ---- the program ---- */

/* Sort alternatives by their rule. */
static int list_alternatives(struct gbnf *g)
{
    struct program *p = g->program;
    const struct alternative *a = g->alternative.at;
    size_t n = g->alternative.n / sizeof *a;

    p->rule = calloc(g->n_rule, sizeof *p->rule);
    p->alternative = calloc(n, sizeof *p->alternative);
    if (p->rule == NULL || p->alternative == NULL)
        return err_memory(g->e, "a grammar");
    p->n_rule = g->n_rule;
    p->n_alternative = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        p->rule[a[i].rule].n++;
    for (uint32_t r = 1; r < p->n_rule; r++)
        p->rule[r].first = p->rule[r - 1].first + p->rule[r - 1].n;
    for (uint32_t r = 0; r < p->n_rule; r++)
        p->rule[r].n = 0;
    for (size_t i = 0; i < n; i++)
        p->alternative[p->rule[a[i].rule].first + p->rule[a[i].rule].n++] = a[i].first;
    return 0;
}

/* The name of a rule, or of the one that a rule without a name is in. */
static const struct gbnf_name *name_of(const struct gbnf *g, uint32_t rule)
{
    for (size_t i = 0; i < g->n_place; i++)
        if (g->names[i].len > 0 && g->names[i].rule == rule_at(g, rule)->owner)
            return &g->names[i];
    return NULL;
}

/* The first name in the text whose rule is not defined, or NULL. */
static const struct gbnf_name *undefined(const struct gbnf *g)
{
    const struct gbnf_name *first = NULL;

    for (size_t i = 0; i < g->n_place; i++)
        if (g->names[i].len > 0 && !rule_at(g, g->names[i].rule)->is_defined &&
            (first == NULL || g->names[i].text < first->text))
            first = &g->names[i];
    return first;
}

static int complete(struct gbnf *g)
{
    struct program *p = g->program;
    const struct gbnf_name *name;
    uint32_t endless;
    int64_t root = named_rule(g, "root", 4);

    if (root < 0)
        return -1;
    if (!rule_at(g, (uint32_t)root)->is_defined)
        return gbnf_wrong(g, g->end, "the grammar has no rule \"root\"");
    name = undefined(g);
    if (name != NULL)
        return wrong_rule(g, name, "is not defined");
    if (list_alternatives(g) != 0)
        return -1;
    p->element = g->element.at;
    p->n_element = (uint32_t)(g->element.n / sizeof *p->element);
    p->root = (uint32_t)root;
    g->element.at = NULL;
    if (program_complete(p, &endless, g->e) != 0)
        return -1;
    if (endless == p->n_rule)
        return 0;
    return wrong_rule(g, name_of(g, endless), "refers to itself before any character");
}

static int parse(struct gbnf *g)
{
    if (!utf8_is_valid(g->text, (size_t)(g->end - g->text)))
        return err_set(g->e, ERR_ARGUMENT, "the grammar is not valid UTF-8");
    if (memchr(g->text, '\0', (size_t)(g->end - g->text)) != NULL)
        return err_set(g->e, ERR_ARGUMENT, "the grammar contains a NUL");
    for (skip_space(g, true); g->at < g->end; skip_space(g, true))
        if (take_rule(g) != 0)
            return -1;
    return complete(g);
}

int gbnf_parse(struct program **out, const char *text, size_t len, gbnf_token_fn *find,
               const void *ctx, struct err *e)
{
    const char *start = len > 0 ? text : ""; /* an empty text may be NULL */
    struct gbnf g = {
        .text = start, .at = start, .end = start + len, .find = find, .ctx = ctx, .e = e
    };
    int rc = -1;

    *out = NULL;
    if (len > PROGRAM_MAX_TEXT)
        return err_set(e, ERR_ARGUMENT, "a grammar of %zu bytes has more than %zu", len,
                       PROGRAM_MAX_TEXT);
    g.program = calloc(1, sizeof *g.program);
    /* Each name has a byte of the text, but for "root".  Half of the table stays free. */
    g.n_place = 2 * ((len < PROGRAM_MAX_RULE ? len : PROGRAM_MAX_RULE) + 1);
    g.names = calloc(g.n_place, sizeof *g.names);
    if (g.program == NULL || g.names == NULL)
        err_memory(e, "a grammar");
    else
        rc = parse(&g);
    if (rc == 0)
        *out = g.program;
    else
        program_free(g.program);
    free(g.rule.at);
    free(g.names);
    free(g.pending.at);
    free(g.element.at);
    free(g.alternative.at);
    free(g.range.at);
    return rc;
}
