/* The index of ngram.h as a drafter. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/draft/depth.h"
#include "engine/draft/ngram.h"

struct ngram_drafter {
    struct drafter drafter;
    struct ngram index;
    uint32_t ids[DRAFT_MOST]; /* that look() found */
    uint32_t n;
};

static struct ngram_drafter *of(struct drafter *d)
{
    return (struct ngram_drafter *)(void *)d;
}

/* Longer matches are right more often. */
static uint32_t quality_of(uint32_t match)
{
    return match < 4 ? 0 : match < 8 ? 1 : match < 16 ? 2 : 3;
}

static struct draft_look look(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    struct ngram_drafter *g = of(d);
    uint32_t match;

    g->n = ngram_draft(&g->index, ids, n, DRAFT_MOST, g->ids, &match);
    return (struct draft_look){ .most = g->n, .quality = quality_of(match) };
}

static int propose(struct drafter *d, uint32_t *ids, uint32_t n, uint32_t most,
                   const struct draft_choose *choose, uint32_t *n_draft, struct err *e)
{
    const struct ngram_drafter *g = of(d);

    (void)choose;
    (void)e;
    *n_draft = most < g->n ? most : g->n;
    memcpy(ids + n, g->ids, *n_draft * sizeof *ids);
    return 0;
}

static void rewind_to(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    ngram_cut(&of(d)->index, ids, n);
}

static uint64_t used(const struct drafter *d)
{
    const struct ngram_drafter *g = (const struct ngram_drafter *)(const void *)d;

    return ((uint64_t)g->index.mask + 1 + g->index.room) * sizeof *g->index.head;
}

static void free_all(struct drafter *d)
{
    ngram_free(&of(d)->index);
    free(d);
}

static const struct drafter_calls calls = { .name = "ngram",
                                            .look = look,
                                            .propose = propose,
                                            .rewind = rewind_to,
                                            .used = used,
                                            .free = free_all };

int ngram_drafter_new(struct drafter **out, uint32_t n_ctx, struct err *e)
{
    struct ngram_drafter *g = calloc(1, sizeof *g);

    *out = NULL;
    if (g == NULL)
        return err_memory(e, "the index of %u tokens", n_ctx);
    g->drafter.calls = &calls;
    if (ngram_new(&g->index, n_ctx, e) != 0) {
        free(g);
        return -1;
    }
    *out = &g->drafter;
    return 0;
}
