#include "config.h"

#include "engine/text/bpe.h"

#include <assert.h>
#include <string.h>

#define FAN   16
#define FEW   32 /* up to this length, moving the rest up is cheaper than any structure */
#define UP(n) (((n) + FAN - 1) / FAN)

/* Returns the size of level k for n symbols, rounded up to complete blocks. */
static size_t level_size(size_t n, int k)
{
    for (int i = 0; i < k; i++)
        n = UP(n);
    return UP(n) * FAN;
}

int bpe_reserve(struct bpe *b, size_t n, struct err *e)
{
    size_t want = 0;

    if (n <= BPE_SMALL && b->cap == 0) {
        b->id = b->small_id;
        b->rank = b->small_rank;
        b->fwd = b->small_fwd;
        b->back = b->small_back;
        b->level[0] = b->rank;
        b->level[1] = b->small_level;
        b->level[2] = b->small_level + BPE_SMALL / 16;
        b->cap = BPE_SMALL;
    }
    if (n <= b->cap)
        return 0;
    if (n > UINT32_MAX / 2)
        return err_set(e, ERR_ARGUMENT, "a text of %zu bytes without a break is too long", n);
    n = n < 4096 ? 4096 : n;
    bpe_free(b);
    for (int k = 0; k < BPE_LEVELS; k++)
        want += arena_size(level_size(n, k) * 4);
    want += arena_size(n * 4) + 2 * arena_size(n * 2);
    if (arena_map(&b->large, "text", want, false, e) != 0)
        return -1;
    b->id = arena_take(&b->large, n * 4, e);
    b->fwd = arena_take(&b->large, n * 2, e);
    b->back = arena_take(&b->large, n * 2, e);
    for (int k = 0; k < BPE_LEVELS; k++)
        b->level[k] = arena_take(&b->large, level_size(n, k) * 4, e);
    b->rank = b->level[0];
    b->cap = n;
    return 0;
}

void bpe_free(struct bpe *b)
{
    arena_unmap(&b->large);
    b->cap = 0;
}

/* Merge a few symbols in arrays without holes. */
static size_t run_few(struct bpe *b, const struct pairs *pairs, size_t n)
{
    uint32_t *id = b->id, *rank = b->rank;

    for (size_t i = 0; i + 1 < n; i++)
        rank[i] = pairs_rank(pairs, id[i], id[i + 1]);
    while (n > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NO_RANK)
            break;
        id[best] = pairs->merged[rank[best]];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i - 1] = rank[i];
        }
        if (best + 1 < n)
            rank[best] = pairs_rank(pairs, id[best], id[best + 1]);
        if (best > 0)
            rank[best - 1] = pairs_rank(pairs, id[best - 1], id[best]);
    }
    return n;
}

static uint32_t least(const uint32_t *v)
{
    uint32_t m = v[0];

    for (int i = 1; i < FAN; i++)
        m = v[i] < m ? v[i] : m;
    return m;
}

static size_t first_of(const uint32_t *v, uint32_t want)
{
    size_t i = 0;

    while (v[i] != want)
        i++;
    return i;
}

/* Update the minima above rank[i] after it changed. */
static void climb(struct bpe *b, int top, size_t i)
{
    for (int k = 1; k <= top; k++) {
        uint32_t m;

        i /= FAN;
        m = least(b->level[k - 1] + i * FAN);
        if (b->level[k][i] == m)
            return;
        b->level[k][i] = m;
    }
}

/* Fill ranks and minima.  Returns the level that consists of one block. */
static int build(struct bpe *b, const struct pairs *pairs, size_t n)
{
    size_t size = n;
    int top = 0;

    for (size_t i = 0; i + 1 < n; i++)
        b->rank[i] = pairs_rank(pairs, b->id[i], b->id[i + 1]);
    for (size_t i = n - 1; i < UP(n) * FAN; i++)
        b->rank[i] = NO_RANK;
    for (size_t i = 0; i < n; i++)
        b->fwd[i] = b->back[i] = 1;
    while (size > FAN) {
        size_t up = UP(size);

        top++;
        assert(top < BPE_LEVELS);
        for (size_t i = 0; i < up; i++)
            b->level[top][i] = least(b->level[top - 1] + i * FAN);
        for (size_t i = up; i < UP(up) * FAN; i++)
            b->level[top][i] = NO_RANK;
        size = up;
    }
    return top;
}

static size_t run_many(struct bpe *b, const struct pairs *pairs, size_t n)
{
    int top = build(b, pairs, n);
    uint32_t *id = b->id, *rank = b->rank;
    size_t left = 0;

    for (;;) {
        uint32_t m = least(b->level[top]);
        size_t i = 0, j, k;

        if (m == NO_RANK)
            break;
        for (int l = top; l >= 0; l--)
            i = i * FAN + first_of(b->level[l] + i * FAN, m);
        j = i + b->fwd[i];
        k = j + b->fwd[j];
        id[i] = pairs->merged[m];
        b->fwd[i] = b->back[k - 1] = (uint16_t)(k - i);
        rank[j] = NO_RANK;
        rank[i] = k < n ? pairs_rank(pairs, id[i], id[k]) : NO_RANK;
        if (j / FAN != i / FAN)
            climb(b, top, j);
        if (i > 0) {
            size_t h = i - b->back[i - 1];

            rank[h] = pairs_rank(pairs, id[h], id[i]);
            if (h / FAN != i / FAN)
                climb(b, top, h);
        }
        climb(b, top, i);
    }
    for (size_t i = 0; i < n; i += b->fwd[i])
        id[left++] = id[i];
    return left;
}

size_t bpe_run(struct bpe *b, const struct pairs *pairs, size_t n)
{
    if (n < 2)
        return n;
    return n <= FEW ? run_few(b, pairs, n) : run_many(b, pairs, n);
}
