/*
 * The index of ngram.h as a drafter, which also follows an earlier text past a change.
 *
 *     earlier text    the cat sat on the mat and slept
 *     ids             the cat sat on the rug | and slept …
 *
 * Where a word was changed, the index finds nothing, or another place, until NGRAM_MIN words have
 * followed.  So the place that drafts came from is remembered.  After a change, drafts go on where
 * the newest ids are the same again, near there if words were added or left out, and otherwise
 * after as many ids.  In a text of equal lines, the index knows only the newest of them, and the
 * place that is followed decides, too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/draft/depth.h"
#include "engine/draft/ngram.h"

#define TRUST_LEAST 4  /* to go on after a change */
#define SHIFT_MOST  16 /* ids that a change adds or leaves out */

struct place {
    uint32_t n;     /* ids that there were */
    uint32_t next;  /* where the earlier text goes on after them, below n; 0: none is followed */
    uint32_t trust; /* ids that were the same, NGRAM_MATCH at most; each change halves them */
};

struct ngram_drafter {
    struct drafter drafter;
    struct ngram index;
    struct place from;        /* of the text that is followed */
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

/* Returns the position near `next` that follows the longest match of the newest ids: the nearest of
 * several, and `next` if nothing matches longer. */
static uint32_t shifted(const uint32_t *ids, uint32_t n, uint32_t next)
{
    uint32_t best = next, most = ngram_match(ids, next, n);

    for (uint32_t i = 1; i <= SHIFT_MOST; i++) {
        const uint32_t near[] = { next + i, next > i ? next - i : next };

        for (int k = 0; k < 2; k++) {
            uint32_t same = near[k] < n ? ngram_match(ids, near[k], n) : 0;

            if (same <= most)
                continue;
            best = near[k];
            most = same;
        }
    }
    return best;
}

/* Returns where the text goes on after n ids, if it still follows p. */
static struct place follow(struct place p, const uint32_t *ids, uint32_t n)
{
    const struct place none = { .n = n };
    uint32_t n_new = n - p.n, same = 0;

    if (p.next == 0 || n_new > DRAFT_MOST + 1)
        return none;
    while (same < n_new && ids[p.n + same] == ids[p.next + same])
        same++;
    p.trust = p.trust + same < NGRAM_MATCH ? p.trust + same : NGRAM_MATCH;
    p.n = n;
    p.next += n_new;
    if (same == n_new)
        return p;
    p.trust /= 2;
    if (p.trust < TRUST_LEAST)
        return none;
    p.next = shifted(ids, n, p.next);
    return p;
}

static struct draft_look look(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    struct ngram_drafter *g = of(d);
    struct place found = { .n = n }, followed = follow(g->from, ids, n);
    uint32_t same = followed.next > 0 ? ngram_match(ids, followed.next, n) : 0, next;

    found.next = ngram_find(&g->index, ids, n, &found.trust);
    g->from = followed.trust >= found.trust ? followed : found;
    /* The same change as before is in the index. */
    next = same < NGRAM_MIN && found.next > 0 ? found.next : g->from.next;
    g->n = next > 0 ? DRAFT_MOST : 0;
    if (next == 0)
        return (struct draft_look){ .most = 0 };
    ngram_copy(ids, n, next, g->n, g->ids);
    return (struct draft_look){ .most = g->n, .quality = quality_of(ngram_match(ids, next, n)) };
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
    struct ngram_drafter *g = of(d);

    ngram_cut(&g->index, ids, n);
    if (n < g->from.n)
        g->from.next = 0;
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
