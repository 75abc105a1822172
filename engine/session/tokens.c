#include "config.h"

#include "engine/session/tokens.h"

#include <stdlib.h>
#include <string.h>

int tokens_resize(struct tokens *t, uint32_t n_ctx, struct err *e)
{
    uint32_t *id = realloc(t->id, n_ctx * sizeof *id);
    bool *in_tiles;

    if (id != NULL)
        t->id = id;
    in_tiles = realloc(t->in_tiles, n_ctx * sizeof *in_tiles);
    if (in_tiles != NULL)
        t->in_tiles = in_tiles;
    if (id == NULL || in_tiles == NULL)
        return err_memory(e, "the list of %u tokens", n_ctx);
    if (t->n > n_ctx)
        t->n = n_ctx;
    return 0;
}

void tokens_free(struct tokens *t)
{
    free(t->id);
    free(t->in_tiles);
    memset(t, 0, sizeof *t);
}

void tokens_clear(struct tokens *t)
{
    drafter_rewind(t->drafter, t->id, 0);
    t->n = 0;
}

/* Set an id. */
static void set(struct tokens *t, uint32_t pos, uint32_t id, bool in_tiles)
{
    drafter_rewind(t->drafter, t->id, pos);
    t->id[pos] = id;
    t->in_tiles[pos] = in_tiles;
}

void tokens_add_prompt(struct tokens *t, const struct products *products, uint32_t pos,
                       const uint32_t *ids, uint32_t n)
{
    uint32_t same = 0;
    bool in_tiles;

    while (same < n && pos + same < t->n && t->id[pos + same] == ids[same])
        same++;
    if (same == n)
        return;
    in_tiles = products != NULL && products_tile_prompt(products, pos + same, n - same);
    for (uint32_t i = same; i < n; i++)
        set(t, pos + i, ids[i], in_tiles);
    t->n = pos + n;
}

void tokens_add_sampled(struct tokens *t, uint32_t pos, uint32_t id)
{
    set(t, pos, id, false);
    t->n = pos + 1;
}

void tokens_add_drafts(struct tokens *t, uint32_t pos, uint32_t n_draft)
{
    for (uint32_t i = 0; i < n_draft; i++)
        t->in_tiles[pos + i] = false;
    t->n = pos + n_draft;
}

void tokens_drop(struct tokens *t, uint32_t pos)
{
    if (t->n <= pos)
        return;
    drafter_rewind(t->drafter, t->id, pos);
    t->n = pos;
}

uint32_t tokens_chunk(const struct tokens *t, uint32_t pos, uint32_t n, uint32_t most)
{
    uint32_t run = 1, tile_end;

    if (n > most)
        n = most;
    while (run < n && t->in_tiles[pos + run] == t->in_tiles[pos])
        run++;
    tile_end = (pos + run) / BLAS_COLS * BLAS_COLS;
    return t->in_tiles[pos] && run == most && tile_end > pos ? tile_end - pos : run;
}
