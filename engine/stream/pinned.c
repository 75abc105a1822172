#include "config.h"

#include "engine/stream/pinned.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"

/* 2^32 / golden ratio: index times this, modulo 2^32, is the fractional part. */
#define GOLDEN 2654435769u

uint64_t pinned_table_bytes(uint32_t n_block)
{
    return (uint64_t)n_block * sizeof(uint32_t) + n_block;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns the blocks in the order of their rank; the index is the low half of each entry. */
static uint64_t *rank(uint32_t n_block)
{
    uint64_t *order = malloc((size_t)n_block * sizeof *order);

    if (order == NULL)
        return NULL;
    for (uint32_t i = 0; i < n_block; i++)
        order[i] = (uint64_t)(uint32_t)(i * GOLDEN) << 32 | i;
    qsort(order, n_block, sizeof *order, by_key);
    return order;
}

typedef void block_fn(struct pinned *p, uint32_t block, const struct schedule_block *b);

static void each_block(struct pinned *p, block_fn *fn)
{
    struct schedule_at at = schedule_begin(p->schedule);

    for (; at.block < p->schedule->n_block; schedule_next(p->schedule, &at)) {
        struct schedule_block b;

        schedule_get(p->schedule, &at, &b);
        fn(p, at.block, &b);
    }
}

static void store_pages(struct pinned *p, uint32_t block, const struct schedule_block *b)
{
    p->page[block] = (uint32_t)(b->place_bytes / SCHEDULE_ALIGN);
}

/* Replace the number of pages in page[] by the first page of each block. */
static uint64_t place_all(struct pinned *p, const uint64_t *order)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < p->schedule->n_block; i++) {
        uint32_t block = (uint32_t)order[i];
        uint32_t n = p->page[block];

        p->page[block] = at <= UINT32_MAX ? (uint32_t)at : UINT32_MAX;
        at += n;
    }
    return at;
}

int pinned_open(struct pinned *p, void *memory, const struct schedule *s,
                struct populator *populator, struct err *e)
{
    uint64_t *order, pages;

    *p = (struct pinned){ .schedule = s, .page = memory, .populator = populator };
    if (s->n_block == 0)
        return 0;
    p->state = (_Atomic unsigned char *)(p->page + s->n_block);
    order = rank(s->n_block);
    if (order == NULL)
        return err_memory(e, "placing %u blocks", s->n_block);
    each_block(p, store_pages);
    pages = place_all(p, order);
    free(order);
    if (pages > UINT32_MAX)
        return err_set(e, ERR_UNSUPPORTED, "the weights of one pass are larger than 16 TiB");
    if (area_reserve(&p->area, "pinned", pages * SCHEDULE_ALIGN, e) != 0)
        return -1;
    return pinned_set(p, 0, e);
}

void pinned_close(struct pinned *p)
{
    if (p->populator != NULL)
        populate_forget(p->populator, &p->populate);
    area_unmap(&p->area);
    *p = (struct pinned){ 0 };
}

/* A block is pinned if its place ends in the held part of the area, and it fits the place. */
static void settle(struct pinned *p, uint32_t block, const struct schedule_block *b)
{
    uint64_t end = (uint64_t)p->page[block] * SCHEDULE_ALIGN + b->place_bytes;

    if (p->state[block] == BLOCK_UNFIT)
        return;
    if (end > p->kept) {
        if (pinned_state(p, block) == BLOCK_HELD)
            atomic_fetch_sub_explicit(&p->held_bytes, b->place_bytes, memory_order_relaxed);
        pinned_mark(p, block, BLOCK_STREAMED);
    }
    if (end <= p->area.held && pinned_state(p, block) == BLOCK_STREAMED)
        pinned_mark(p, block, BLOCK_WANTED);
}

int pinned_set(struct pinned *p, uint64_t bytes, struct err *e)
{
    int rc;

    if (p->schedule->n_block == 0)
        return 0;
    if (bytes > p->area.reserved)
        bytes = p->area.reserved;
    bytes = align_down(bytes, 4096);
    p->kept = area_kept(&p->area, bytes);
    if (p->kept < p->area.held)
        populate_to(p->populator, &p->populate, p->area.base, p->kept);
    rc = area_hold(&p->area, bytes, false, e);
    populate_to(p->populator, &p->populate, p->area.base, p->area.held);
    each_block(p, settle);
    return rc;
}

bool pinned_is_within(const struct pinned *p, uint32_t block, uint64_t place_bytes,
                      uint64_t bytes)
{
    return (uint64_t)p->page[block] * SCHEDULE_ALIGN + place_bytes <= align_down(bytes, 4096);
}

unsigned char *pinned_place(const struct pinned *p, uint32_t block)
{
    return p->area.base + (uint64_t)p->page[block] * SCHEDULE_ALIGN;
}
