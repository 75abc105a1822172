#include "config.h"

#include "engine/model/row_cache.h"

#include <string.h>

#define PAGE 4096u

static uint64_t bit_bytes(uint64_t n)
{
    return n / 8 + 1;
}

static uint64_t pages_of(uint64_t bytes)
{
    return bytes / PAGE + 2; /* the rows may begin within a page */
}

uint64_t row_cache_bytes(uint64_t n_row, uint64_t row_bytes)
{
    uint64_t bytes;

    /* The sizes are those of a tensor in the file, so only 32 bits could overflow. */
    if (__builtin_mul_overflow(n_row, row_bytes, &bytes) || bytes > SIZE_MAX / 2)
        return UINT64_MAX;
    return arena_size(bytes) + arena_size(bit_bytes(n_row)) +
           arena_size(bit_bytes(pages_of(bytes)));
}

int row_cache_init(struct row_cache *c, struct arena *a, uint64_t n_row, uint64_t row_bytes,
                   struct err *e)
{
    uint64_t bytes = n_row * row_bytes;

    *c = (struct row_cache){ .row_bytes = row_bytes };
    c->has = arena_take(a, bit_bytes(n_row), e);
    c->used = arena_take(a, bit_bytes(pages_of(bytes)), e);
    c->rows = arena_take(a, bytes, e);
    return c->has != NULL && c->used != NULL && c->rows != NULL ? 0 : -1;
}

bool row_cache_get(const struct row_cache *c, uint32_t row, void *dst)
{
    if (c->rows == NULL || (c->has[row / 8] >> row % 8 & 1) == 0)
        return false;
    memcpy(dst, c->rows + row * c->row_bytes, c->row_bytes);
    return true;
}

void row_cache_put(struct row_cache *c, uint32_t row, const void *src)
{
    unsigned char *place = c->rows + row * c->row_bytes;
    uint64_t from = (uint64_t)((uintptr_t)c->rows % PAGE) + row * c->row_bytes;

    memcpy(place, src, c->row_bytes);
    c->has[row / 8] |= (unsigned char)(1u << row % 8);
    for (uint64_t p = from / PAGE; p <= (from + c->row_bytes - 1) / PAGE; p++) {
        if ((c->used[p / 8] >> p % 8 & 1) != 0)
            continue;
        c->used[p / 8] |= (unsigned char)(1u << p % 8);
        c->held_bytes += PAGE;
    }
}
