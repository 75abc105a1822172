/*
 * gbnf_internal.h - the parser of gbnf.c and its sets of characters in gbnf_set.c.
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_GBNF_INTERNAL_H
#define MEMWALL_ENGINE_GRAMMAR_GBNF_INTERNAL_H

#include "engine/grammar/gbnf.h"

struct gbnf_name {
    const char *text;
    uint32_t len, rule; /* len 0: a free entry */
};

struct gbnf_list {
    void *at;
    size_t n, room;
};

struct gbnf {
    const char *text, *at, *end;
    unsigned depth;           /* of open groups */
    struct gbnf_list pending; /* struct element: of alternatives that are not complete */
    struct gbnf_list element; /* struct element */
    struct gbnf_list alternative; /* { rule, first element } */
    struct gbnf_list range;       /* { from, to }: code points of the set that is read */
    uint32_t n_rule, current; /* the named rule that is read */
    struct gbnf_list rule;    /* struct read_rule */
    struct gbnf_name *names;  /* [n_place] a hash table */
    size_t n_place;
    struct program *program;
    gbnf_token_fn *find;
    const void *ctx;
    struct err *e;
};

/* Returns -1 with the error at the byte `at`. */
int gbnf_wrong(struct gbnf *g, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Append n bytes to a list of at most `most`. */
int gbnf_append(struct gbnf *g, struct gbnf_list *l, const void *item, size_t n, size_t most);

/* Add an element to the alternative that is read, or the alternative of `rule` that ends with the
 * elements after `from` in the list `pending`. */
int gbnf_element(struct gbnf *g, struct element x);
int gbnf_alternative(struct gbnf *g, uint32_t rule, size_t from);
/* A new rule, or -1. */
int64_t gbnf_rule(struct gbnf *g);

static inline size_t gbnf_pending(const struct gbnf *g)
{
    return g->pending.n / sizeof(struct element);
}

/* Read one character, which may be an escape.  -1 with an error. */
int64_t gbnf_char(struct gbnf *g);

/* ---- gbnf_set.c ---- */

/* Read a set after its "[", or take any character. */
int gbnf_set(struct gbnf *g);
int gbnf_any(struct gbnf *g);

#endif
