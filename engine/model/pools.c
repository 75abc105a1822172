/*
 * Pools: some positions that follow each other become one key.
 *
 *   pool[i] = sum over its positions of softmax(g[i] + place[i]) * x[i]     for each channel i
 *
 * x and g are products of a position, and place is a vector for each place in the block.  Pools
 * that overlap are made of the first halves of x and g of the block before, and of the second
 * halves of their own block.
 *
 * The sums run position by position, with the maximum of the weights so far, so that a pool
 * does not depend on how the positions were cut into chunks.  Those of the open pool are a part of
 * the recurrent state, [POOL_PARTS][n]: an empty one has a sum of weights of 0.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

#define CHANNELS 64 /* of an item of work */

struct sums {
    float *top, *weight, *sum;
};

static struct sums sums_at(const struct pooling *p, int which)
{
    float *at = p->to + (size_t)which * POOL_PARTS * p->n;

    return (struct sums){ at, at + p->n, at + 2 * (size_t)p->n };
}

/* Add value x of channel i with the weight exp(g). */
static void add_value(const struct sums *s, uint32_t i, float x, float g)
{
    float top = s->weight[i] > 0 ? fmaxf(s->top[i], g) : g;
    float before = s->weight[i] > 0 ? expf(s->top[i] - top) : 0, now = expf(g - top);

    s->sum[i] = s->sum[i] * before + x * now;
    s->weight[i] = s->weight[i] * before + now;
    s->top[i] = top;
}

/* Channels from .. to - 1 of all columns. */
static void pool_channels(const struct pooling *p, uint32_t from, uint32_t to)
{
    const uint32_t n = p->overlaps ? 2 * p->n : p->n, second = n - p->n;
    const struct sums own = sums_at(p, 0), next = sums_at(p, p->overlaps ? 1 : 0);

    for (uint32_t c = 0; c < p->f->n_col; c++) {
        const uint32_t place = p->f->pos[c] % p->block;
        const float *x = p->x + c * p->ld, *g = p->g + c * p->ld;
        const float *at = p->place + (size_t)place * n;

        for (uint32_t i = from; i < to; i++) {
            add_value(&own, i, x[second + i], g[second + i] + at[second + i]);
            if (p->overlaps)
                add_value(&next, i, x[i], g[i] + at[i]);
        }
        for (uint32_t i = from; place + 1 == p->block && i < to; i++) {
            p->out[c * p->n + i] = own.sum[i] / own.weight[i];
            own.weight[i] = 0;
            if (!p->overlaps)
                continue;
            own.top[i] = next.top[i];
            own.weight[i] = next.weight[i];
            own.sum[i] = next.sum[i];
            next.weight[i] = 0;
        }
    }
}

static void pool_part(void *ctx, uint32_t part)
{
    const struct pooling *p = ctx;
    uint32_t from = part * CHANNELS, to = from + CHANNELS;

    pool_channels(p, from, to < p->n ? to : p->n);
}

void forward_pool(const struct pooling *p)
{
    size_t n = (size_t)POOL_PARTS * p->n * (p->overlaps ? 2 : 1);
    struct pooling job = *p;

    memcpy(p->to, p->from, n * sizeof *p->to);
    forward_each(p->f, (p->n + CHANNELS - 1) / CHANNELS, pool_part, &job);
}
