/* See tiles.h.  The rules are those of Intel's manual: a tile has at most 16 rows of 64 bytes, and
 * the operands of a product fit each other. */
#include "config.h"

#include "tests/lib/tiles.h"

#include <stdint.h>
#include <string.h>

enum { N_TILE = 8, ROWS = 16, ROW_BYTES = 64 };

static struct tile {
    size_t n_row, row_bytes;
    uint8_t row[ROWS][ROW_BYTES];
} tiles[N_TILE];

static struct tiles_report report;

struct tiles_report tiles_report(void)
{
    struct tiles_report r = report;

    report = (struct tiles_report){ .is_shaped = r.is_shaped };
    return r;
}

static bool is_right(bool condition, const char *fault)
{
    if (!condition && report.fault == NULL)
        report.fault = fault;
    return condition;
}

/* The tile of an instruction; NULL: it cannot be executed. */
static struct tile *shaped(int t)
{
    if (!is_right(report.is_shaped, "a tile is used without shapes") ||
        !is_right(t >= 0 && t < N_TILE && tiles[t].n_row > 0, "a tile without a shape is used"))
        return NULL;
    return &tiles[t];
}

void tiles_shape(const void *shapes)
{
    static const uint8_t zeros[14];
    const uint8_t *b = shapes;

    if (!is_right(b[0] == 1 && b[1] == 0, "the palette is not 1, or the first row not 0") ||
        !is_right(memcmp(b + 2, zeros, sizeof zeros) == 0, "reserved bytes are not 0"))
        return;
    for (size_t t = 0; t < 16; t++) {
        const size_t n_row = b[48 + t];
        uint16_t bytes;

        memcpy(&bytes, b + 16 + 2 * t, sizeof bytes);
        if (!is_right(n_row <= ROWS && bytes <= ROW_BYTES && (n_row == 0) == (bytes == 0),
                      "a tile has an impossible shape") ||
            !is_right(t < N_TILE || n_row == 0, "there are eight tiles"))
            return;
        if (t < N_TILE)
            tiles[t] = (struct tile){ .n_row = n_row, .row_bytes = bytes };
    }
    report.is_shaped = true;
}

void tiles_release(void)
{
    report.is_shaped = false;
    memset(tiles, 0, sizeof tiles);
}

void tiles_load(int to, const void *from, size_t stride)
{
    struct tile *t = shaped(to);

    if (t == NULL)
        return;
    memset(t->row, 0, sizeof t->row);
    for (size_t r = 0; r < t->n_row; r++)
        memcpy(t->row[r], (const uint8_t *)from + r * stride, t->row_bytes);
}

void tiles_zero(int to)
{
    struct tile *t = shaped(to);

    if (t != NULL)
        memset(t->row, 0, sizeof t->row);
}

void tiles_store(int from, void *to, size_t stride)
{
    const struct tile *t = shaped(from);

    for (size_t r = 0; t != NULL && r < t->n_row; r++)
        memcpy((uint8_t *)to + r * stride, t->row[r], t->row_bytes);
}

/* Signed bytes: row m of the left, four in a column, times column n of the right. */
static int32_t product(const struct tile *left, const struct tile *right, size_t m, size_t n)
{
    int32_t sum = 0;

    for (size_t k = 0; k < left->row_bytes; k++)
        sum += (int8_t)left->row[m][k] * (int8_t)right->row[k / 4][4 * n + k % 4];
    return sum;
}

void tiles_multiply(int sum, int left, int right)
{
    struct tile *s = shaped(sum);
    const struct tile *l = shaped(left), *r = shaped(right);

    if (s == NULL || l == NULL || r == NULL ||
        !is_right(sum != left && sum != right && left != right, "operands are one tile") ||
        !is_right(s->n_row == l->n_row && s->row_bytes == r->row_bytes &&
                      l->row_bytes == 4 * r->n_row,
                  "the shapes of a product do not fit"))
        return;
    for (size_t m = 0; m < s->n_row; m++)
        for (size_t n = 0; n < s->row_bytes / 4; n++) {
            int32_t x;

            memcpy(&x, &s->row[m][4 * n], sizeof x);
            x += product(l, r, m, n);
            memcpy(&s->row[m][4 * n], &x, sizeof x);
        }
    report.product++;
}
