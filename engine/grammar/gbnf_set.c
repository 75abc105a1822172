/*
 * Sets of characters, as runs of byte ranges.
 *
 *     [a-zà]   61-7a | c3 a0
 *
 * UTF-8 sorts like code points, so a range of code points becomes a few runs in which every byte
 * has a range of its own: where two code points differ in a byte that is not the last one, the
 * range is cut so that all bytes after it are 80-bf.
 */
#include "config.h"

#include <stdlib.h>

#include "engine/base/utf8.h"
#include "engine/grammar/gbnf_internal.h"

#define RANGES_MOST 4096 /* in one set */

struct range {
    uint32_t from, to;
};

/* Ranges without overlap, in order.  Code points of surrogates are left out at the end. */
struct sorted {
    struct range *at;
    size_t n;
};

static int compare(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

static void join(struct sorted *s)
{
    size_t n = 0;

    qsort(s->at, s->n, sizeof *s->at, compare);
    for (size_t i = 0; i < s->n; i++)
        if (n > 0 && s->at[i].from <= s->at[n - 1].to + 1)
            s->at[n - 1].to = s->at[n - 1].to > s->at[i].to ? s->at[n - 1].to : s->at[i].to;
        else
            s->at[n++] = s->at[i];
    s->n = n;
}

/* Write the code points between the ranges to out[n + 1].  Returns the number of ranges. */
static size_t invert(const struct sorted *s, struct range *out)
{
    uint32_t next = 0;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].from > next)
            out[n++] = (struct range){ next, s->at[i].from - 1 };
        next = s->at[i].to + 1;
    }
    if (next <= 0x10ffff)
        out[n++] = (struct range){ next, 0x10ffff };
    return n;
}

/* One run of bytes as an alternative of the rule. */
static int add_run(struct gbnf *g, uint32_t rule, uint32_t from, uint32_t to)
{
    char low[4], high[4];
    size_t start = gbnf_pending(g), n = utf8_encode(from, low);

    utf8_encode(to, high);
    for (size_t i = 0; i < n; i++)
        if (gbnf_element(g, (struct element){ .kind = ELEMENT_RANGE,
                                              .value = (unsigned char)low[i] |
                                                       (uint32_t)(unsigned char)high[i] << 8 }) !=
            0)
            return -1;
    return gbnf_alternative(g, rule, start);
}

/* Code points of equal length. */
static int add_range(struct gbnf *g, uint32_t rule, uint32_t from, uint32_t to)
{
    unsigned n_more = from < 0x80 ? 0 : from < 0x800 ? 1 : from < 0x10000 ? 2 : 3;

    for (unsigned i = 1; i <= n_more; i++) {
        uint32_t low = (1u << 6 * i) - 1, cut = 0;

        if ((from & ~low) == (to & ~low))
            continue;
        if ((from & low) != 0)
            cut = (from | low) + 1;
        else if ((to & low) != low)
            cut = to & ~low;
        if (cut != 0)
            return add_range(g, rule, from, cut - 1) != 0 ? -1
                                                          : add_range(g, rule, cut, to);
    }
    return add_run(g, rule, from, to);
}

/* The part of a range whose code points have the same length. */
static int add_part(struct gbnf *g, uint32_t rule, const struct range *r, uint32_t from,
                    uint32_t to)
{
    from = r->from > from ? r->from : from;
    to = r->to < to ? r->to : to;
    return from <= to ? add_range(g, rule, from, to) : 0;
}

static int add_set(struct gbnf *g, const struct range *r, size_t n)
{
    int64_t rule;

    if (n == 1 && r->to < 0x80)
        return gbnf_element(g, (struct element){ .kind = ELEMENT_RANGE,
                                                 .value = r->from | r->to << 8 });
    rule = gbnf_rule(g);
    if (rule < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (add_part(g, (uint32_t)rule, &r[i], 0, 0x7f) != 0 ||
            add_part(g, (uint32_t)rule, &r[i], 0x80, 0x7ff) != 0 ||
            add_part(g, (uint32_t)rule, &r[i], 0x800, 0xd7ff) != 0 ||
            add_part(g, (uint32_t)rule, &r[i], 0xe000, 0xffff) != 0 ||
            add_part(g, (uint32_t)rule, &r[i], 0x10000, 0x10ffff) != 0)
            return -1;
    return gbnf_element(g, (struct element){ .kind = ELEMENT_CALL, .value = (uint32_t)rule });
}

static int read_range(struct gbnf *g)
{
    const char *start = g->at;
    int64_t from = gbnf_char(g), to = from;
    struct range r;

    if (from >= 0 && g->end - g->at > 1 && *g->at == '-' && g->at[1] != ']') {
        g->at++;
        to = gbnf_char(g);
    }
    if (from < 0 || to < 0)
        return -1;
    if (to < from)
        return gbnf_wrong(g, start, "a range of characters ends before it begins");
    r = (struct range){ (uint32_t)from, (uint32_t)to };
    return gbnf_append(g, &g->range, &r, sizeof r, RANGES_MOST * sizeof r);
}

int gbnf_set(struct gbnf *g)
{
    const char *start = g->at - 1;
    bool is_inverted = g->at < g->end && *g->at == '^';
    struct sorted s;
    struct range *rest;
    int rc;

    g->at += is_inverted;
    g->range.n = 0;
    while (g->at < g->end && *g->at != ']')
        if (read_range(g) != 0)
            return -1;
    if (g->at == g->end)
        return gbnf_wrong(g, start, "a set of characters has no \"]\"");
    g->at++;
    s = (struct sorted){ g->range.at, g->range.n / sizeof(struct range) };
    if (s.n > 0)
        join(&s);
    if (s.n == 0 && !is_inverted)
        return gbnf_wrong(g, start, "a set of characters is empty");
    if (!is_inverted)
        return add_set(g, s.at, s.n);
    rest = malloc((s.n + 1) * sizeof *rest);
    if (rest == NULL)
        return err_memory(g->e, "a grammar");
    s.n = invert(&s, rest);
    rc = s.n > 0 ? add_set(g, rest, s.n)
                 : gbnf_wrong(g, start, "a set of characters is empty");
    free(rest);
    return rc;
}

int gbnf_any(struct gbnf *g)
{
    return add_set(g, &(struct range){ 0, 0x10ffff }, 1);
}
