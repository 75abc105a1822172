#include "config.h"

#include "engine/draft/ngram.h"

#include <stdlib.h>
#include <string.h>

static uint32_t table_size(uint32_t n_ctx)
{
    uint32_t n = 64;

    while (n < n_ctx && n < 1u << 30)
        n *= 2;
    return n;
}

int ngram_new(struct ngram *g, uint32_t n_ctx, struct err *e)
{
    struct ngram new = { .mask = table_size(n_ctx) - 1, .room = n_ctx };

    new.head = calloc((size_t)new.mask + 1, sizeof *new.head);
    new.prev = calloc(n_ctx, sizeof *new.prev);
    if (new.head == NULL || new.prev == NULL) {
        ngram_free(&new);
        return err_memory(e, "the index of %u tokens", n_ctx);
    }
    ngram_free(g);
    *g = new;
    return 0;
}

void ngram_free(struct ngram *g)
{
    free(g->head);
    free(g->prev);
    memset(g, 0, sizeof *g);
}

/* The table entry of the run that ends at position i (Fowler-Noll-Vo 1a, on whole ids). */
static uint32_t *entry(const struct ngram *g, const uint32_t *ids, uint32_t i)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (uint32_t k = 0; k < NGRAM_MIN; k++)
        h = (h ^ ids[i - k]) * 0x100000001b3u;
    return &g->head[(h ^ h >> 32) & g->mask];
}

void ngram_cut(struct ngram *g, const uint32_t *ids, uint32_t n)
{
    for (; g->n > n; g->n--)
        if (g->n >= NGRAM_MIN)
            *entry(g, ids, g->n - 1) = g->prev[g->n - 1];
}

static void extend(struct ngram *g, const uint32_t *ids, uint32_t n)
{
    for (; g->n < n; g->n++) {
        uint32_t *first;

        if (g->n + 1 < NGRAM_MIN)
            continue;
        first = entry(g, ids, g->n);
        g->prev[g->n] = *first;
        *first = g->n + 1;
    }
}

uint32_t ngram_match(const uint32_t *ids, uint32_t a, uint32_t b)
{
    uint32_t n = 0;

    while (n < a && n < NGRAM_MATCH && ids[a - 1 - n] == ids[b - 1 - n])
        n++;
    return n;
}

uint32_t ngram_find(struct ngram *g, const uint32_t *ids, uint32_t n, uint32_t *match)
{
    uint32_t next = 0;

    *match = 0;
    if (n > g->room)
        return 0;
    extend(g, ids, n);
    if (n < NGRAM_MIN)
        return 0;
    for (uint32_t i = 0, at = g->prev[n - 1]; i < NGRAM_PLACES && at > 0 && *match < NGRAM_MATCH;
         i++, at = g->prev[at - 1]) {
        uint32_t same = ngram_match(ids, at, n);

        if (same < NGRAM_MIN || same <= *match)
            continue;
        *match = same;
        next = at;
    }
    return next;
}

void ngram_copy(const uint32_t *ids, uint32_t n, uint32_t next, uint32_t n_copy, uint32_t *out)
{
    for (uint32_t i = 0; i < n_copy; i++)
        out[i] = next + i < n ? ids[next + i] : out[next + i - n];
}
