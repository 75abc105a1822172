/* See xml_read.h. */
#include "config.h"

#include "tests/lib/xml_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_DEPTH 16
#define MAX_IDS   64

struct reader {
    const char *at;
    char open[MAX_DEPTH][32];
    int depth;
    char id[MAX_IDS][64], named[MAX_IDS][64];
    int n_id, n_named;
};

#define want(r, condition)                                                                     \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_msg("%s fails at: %.60s", #condition, (r)->at);                               \
    } while (0)

static void name(struct reader *r, char out[64])
{
    size_t n =
        strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:_");

    want(r, n > 0 && n < 32);
    snprintf(out, 64, "%.*s", (int)n, r->at);
    r->at += n;
}

/* Text up to a character that ends it. */
static void text(struct reader *r, char end)
{
    static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

    for (; *r->at != end; r->at++) {
        bool known = *r->at != '&';

        want(r, *r->at != '\0' && *r->at != '<');
        want(r, (unsigned char)*r->at >= 0x20 || *r->at == '\n');
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
            known |= strncmp(r->at, entities[i], strlen(entities[i])) == 0;
        want(r, known);
    }
}

static void attribute(struct reader *r)
{
    char key[64];
    const char *value;

    name(r, key);
    want(r, r->at[0] == '=' && r->at[1] == '"');
    value = r->at += 2;
    text(r, '"');
    if (strcmp(key, "id") == 0) {
        want(r, r->n_id < MAX_IDS);
        snprintf(r->id[r->n_id], 64, "%.*s", (int)(r->at - value), value);
        for (int i = 0; i < r->n_id; i++)
            assert_string_not_equal(r->id[i], r->id[r->n_id]);
        r->n_id++;
    }
    if (strncmp(key, "aria-", 5) == 0 && r->n_named < MAX_IDS)
        snprintf(r->named[r->n_named++], 64, "%.*s", (int)(r->at - value), value);
    r->at++;
}

static void element(struct reader *r)
{
    char key[64];

    r->at++;
    if (*r->at == '/') {
        r->at++;
        name(r, key);
        want(r, r->depth > 0 && strcmp(r->open[--r->depth], key) == 0 && *r->at == '>');
        r->at++;
        return;
    }
    name(r, key);
    while (*r->at == ' ') {
        r->at++;
        attribute(r);
    }
    if (r->at[0] == '/' && r->at[1] == '>') {
        r->at += 2;
        return;
    }
    want(r, *r->at == '>' && r->depth < MAX_DEPTH);
    snprintf(r->open[r->depth++], 32, "%.31s", key);
    r->at++;
}

void xml_assert(const char *all)
{
    struct reader r = { .at = all };

    want(&r, *r.at == '<');
    do {
        if (*r.at == '<')
            element(&r);
        else
            text(&r, '<');
    } while (r.depth > 0);
    want(&r, strspn(r.at, "\n") == strlen(r.at));
    for (int i = 0; i < r.n_named; i++) {
        bool found = false;

        for (int k = 0; k < r.n_id; k++)
            found |= strcmp(r.named[i], r.id[k]) == 0;
        if (!found)
            fail_msg("no element has id \"%s\"", r.named[i]);
    }
}

size_t xml_count(const char *all, const char *needle)
{
    size_t n = 0;

    for (const char *at = strstr(all, needle); at != NULL; at = strstr(at + 1, needle))
        n++;
    return n;
}
