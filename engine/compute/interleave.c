/* See interleave.h. */
#include "config.h"

#include "engine/compute/interleave.h"

#include <string.h>

#define ROWS INTERLEAVED_ROWS

/* How a block of a type is taken apart. */
struct parts {
    size_t bytes, n_value; /* of a block */
    size_t n_near;         /* blocks whose heads are together */
    size_t head, head_at;  /* bytes of a head, 0 to 2, and where it is in a block */
    size_t n_dword, dwords_at;
};

static struct parts parts_of(enum tensor_type type)
{
    const struct tensor_type_info *info = tensor_type_info(type);
    struct parts p = { .bytes = info->block_bytes, .n_value = info->block_elems };

    p.n_near = p.n_value == 32 ? 8 : SIZE_MAX;
    p.head = p.bytes % 4;
    p.head_at = type == TYPE_Q6_K ? p.bytes - p.head : 0;
    p.dwords_at = type == TYPE_Q6_K ? 0 : p.head;
    p.n_dword = p.bytes / 4;
    return p;
}

bool interleave_takes(enum tensor_type type)
{
    switch ((int)type) {
        INTERLEAVED_TYPES(CASE_OF)
        return true;
    default: return false;
    }
}

/* Where a block is in its group: the head and the first dword of row 0. */
struct place {
    size_t head, dwords;
};

static struct place place_of(const struct parts *p, size_t n_block, size_t b)
{
    const size_t n_near = p->n_near < n_block ? p->n_near : n_block;
    const size_t first = b / n_near * n_near;
    const size_t n = n_block - first < n_near ? n_block - first : n_near;
    const size_t at = first * p->bytes * ROWS;

    return (struct place){ at + (b - first) * p->head * ROWS,
                           at + (n * p->head + 4 * (b - first) * p->n_dword) * ROWS };
}

typedef uint32_t u32x4 __attribute__((vector_size(16)));

/* Store 4 dwords of 4 rows: dword d of row r at to + 4 * (d * ROWS + r). */
static void lay_4x4(const uint8_t *row, size_t row_bytes, uint8_t *to)
{
    u32x4 v[4], low[2], high[2], out[4];

    for (size_t r = 0; r < 4; r++)
        memcpy(&v[r], row + r * row_bytes, sizeof v[r]);
    for (size_t i = 0; i < 2; i++) {
        low[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 4, 1, 5);
        high[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 2, 6, 3, 7);
    }
    out[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    out[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    out[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    out[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    for (size_t d = 0; d < 4; d++)
        memcpy(to + 4 * d * ROWS, &out[d], sizeof out[d]);
}

/* Lay out block b of the 16 rows at `rows`, in the order of memory. */
static void lay_block(const struct parts *p, struct place at, size_t b, const uint8_t *rows,
                      size_t row_bytes, uint8_t *group)
{
    const uint8_t *head = rows + b * p->bytes + p->head_at;
    const uint8_t *dword = rows + b * p->bytes + p->dwords_at;
    uint8_t *to = group + at.head;
    size_t d = 0;

    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < p->head; i++)
            *to++ = head[r * row_bytes + i];
    to = group + at.dwords;
    for (; d + 4 <= p->n_dword; d += 4, dword += 16, to += 16 * ROWS)
        for (size_t r = 0; r < ROWS; r += 4)
            lay_4x4(dword + r * row_bytes, row_bytes, to + 4 * r);
    for (; d < p->n_dword; d++, dword += 4)
        for (size_t r = 0; r < ROWS; r++, to += 4)
            memcpy(to, dword + r * row_bytes, 4);
}

void interleave(enum tensor_type type, size_t row_bytes, size_t n_row, const void *from,
                void *to, void *scratch)
{
    const struct parts p = parts_of(type);
    const size_t n_block = row_bytes / p.bytes;
    const uint8_t *src = from, *rows = scratch;
    uint8_t *dst = to;

    for (; n_row >= ROWS; n_row -= ROWS, src += ROWS * row_bytes, dst += ROWS * row_bytes) {
        memcpy(scratch, src, ROWS * row_bytes);
        for (size_t b = 0; b < n_block; b++)
            lay_block(&p, place_of(&p, n_block, b), b, rows, row_bytes, dst);
    }
    memmove(dst, src, n_row * row_bytes);
}

void interleaved_values(enum tensor_type type, size_t row_bytes, size_t n_row,
                        const void *block, size_t r, size_t k, size_t n, void *dst)
{
    const struct parts p = parts_of(type);
    const size_t n_block = row_bytes / p.bytes, first = k / p.n_value;
    const uint8_t *group = (const uint8_t *)block + r / ROWS * ROWS * row_bytes;
    uint8_t *to = dst;

    if (r >= n_row / ROWS * ROWS) {
        memcpy(dst, group + r % ROWS * row_bytes + first * p.bytes, n / p.n_value * p.bytes);
        return;
    }
    r %= ROWS;
    for (size_t b = first; b < first + n / p.n_value; b++, to += p.bytes) {
        const struct place at = place_of(&p, n_block, b);

        memcpy(to + p.head_at, group + at.head + r * p.head, p.head);
        for (size_t d = 0; d < p.n_dword; d++)
            memcpy(to + p.dwords_at + 4 * d, group + at.dwords + 4 * (d * ROWS + r), 4);
    }
}
