/* See packed.h. */
#include "config.h"

#include "engine/compute/packed.h"

#include <string.h>

#define EXPONENT 0xff
#define STEPS    14 /* the largest code of an exponent other than 0 */

static unsigned exponent_of(uint16_t w)
{
    return w >> 7 & EXPONENT;
}

/* Constant numbers of rounds make the compiler use vectors here and below. */
static unsigned largest_of(const uint16_t w[PACKED_SPAN])
{
    uint16_t most[16] = { 0 };

    for (size_t i = 0; i < PACKED_SPAN; i += 16)
        for (size_t j = 0; j < 16; j++) {
            uint16_t v = w[i + j] & 0x7f80;

            most[j] = most[j] > v ? most[j] : v;
        }
    for (size_t j = 1; j < 16; j++)
        most[0] = most[0] > most[j] ? most[0] : most[j];
    return exponent_of(most[0]);
}

/* The codes of a span.  Returns how many weights they do not describe. */
static size_t code_span(const uint16_t w[PACKED_SPAN], unsigned largest,
                        uint8_t code[PACKED_SPAN])
{
    uint16_t n_escape[16] = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < PACKED_SPAN; i += 16)
        for (size_t j = 0; j < 16; j++) {
            uint16_t e = w[i + j] >> 7 & EXPONENT;
            uint16_t steps = (uint16_t)(largest - e);
            uint16_t is_zero = e == 0, is_far = steps > STEPS;

            code[i + j] = (uint8_t)(is_zero | is_far ? PACKED_ZERO : steps);
            n_escape[j] = (uint16_t)(n_escape[j] + (is_far & !is_zero));
        }
    for (size_t j = 0; j < 16; j++)
        n += n_escape[j];
    return n;
}

static uint8_t rest_of(uint16_t w)
{
    return (uint8_t)((w >> 8 & 0x80) | (w & 0x7f));
}

static void pack_group(const uint16_t *w, const uint8_t *code, uint8_t *to)
{
    for (size_t h = 0; h < 2; h++)
        for (size_t i = 0; i < 16; i++) {
            to[32 * h + 2 * i] = rest_of(w[32 * h + i]);
            to[32 * h + 2 * i + 1] = rest_of(w[32 * h + 16 + i]);
        }
    for (size_t i = 0; i < 16; i++) {
        to[64 + 2 * i] = (uint8_t)(code[i] | code[32 + i] << 4);
        to[64 + 2 * i + 1] = (uint8_t)(code[16 + i] | code[48 + i] << 4);
    }
}

/* Where the next patches go. */
struct patches {
    uint32_t *base;
    size_t n, most; /* units */
};

/* Returns the place for n units, or NULL if they do not fit. */
static uint32_t *take_units(struct patches *p, size_t n, uint32_t *head)
{
    uint32_t *to = p->base + p->n;

    if (n > p->most - p->n || p->n >= UINT32_MAX >> 9)
        return NULL;
    *head |= (uint32_t)(p->n + 1) << 9;
    p->n += n;
    return to;
}

static bool patch_span(const uint16_t *w, const uint8_t *code, size_t n, size_t n_escape,
                       struct patches *p, uint32_t *head)
{
    uint32_t *to = take_units(p, 1 + n_escape, head);

    if (to == NULL)
        return false;
    *to++ = (uint32_t)n_escape;
    for (size_t i = 0; i < n; i++)
        if (code[i] == PACKED_ZERO && exponent_of(w[i]) != 0)
            *to++ = (uint32_t)i << 16 | w[i];
    return true;
}

static bool keep_raw(const uint16_t *w, size_t n, uint8_t *groups, struct patches *p,
                     uint32_t *head)
{
    size_t first = n / PACKED_GROUP * PACKED_BYTES, rest = n * sizeof *w - first;
    uint32_t *to = take_units(p, rest / sizeof *to, head);

    if (to == NULL)
        return false;
    *head |= PACKED_RAW;
    memcpy(groups, w, first);
    memcpy(to, (const uint8_t *)w + first, rest);
    return true;
}

/* n weights; w has zeros after them. */
static bool pack_span(const uint16_t w[PACKED_SPAN], size_t n, uint8_t *groups,
                      struct patches *p, uint32_t *head)
{
    uint8_t code[PACKED_SPAN];
    unsigned largest = largest_of(w);
    size_t n_escape = code_span(w, largest, code);

    *head = largest;
    if ((1 + n_escape) * sizeof(uint32_t) > n / 2)
        return keep_raw(w, n, groups, p, head);
    for (size_t i = 0; i < n; i += PACKED_GROUP, groups += PACKED_BYTES)
        pack_group(w + i, code + i, groups);
    return n_escape == 0 || patch_span(w, code, n, n_escape, p, head);
}

size_t packed_make(const void *rows, size_t n_row, size_t n_k, void *to, size_t room)
{
    size_t stride = packed_stride(n_k), n_span = packed_spans(n_k);
    size_t fixed = n_row * packed_row_least(n_k);
    const uint8_t *from = rows;
    uint8_t *groups = to;
    uint32_t *heads = (uint32_t *)(void *)(groups + n_row * stride);
    struct patches p = { .base = heads + n_row * n_span };
    uint16_t w[PACKED_SPAN];

    if (fixed > room)
        return 0;
    p.most = (room - fixed) / sizeof *p.base;
    for (size_t r = 0; r < n_row; r++, groups += stride)
        for (size_t k = 0; k < n_k; k += PACKED_SPAN) {
            size_t n = n_k - k < PACKED_SPAN ? n_k - k : PACKED_SPAN;

            if (n < PACKED_SPAN)
                memset(w, 0, sizeof w);
            memcpy(w, from, n * sizeof *w);
            from += n * sizeof *w;
            if (!pack_span(w, n, groups + k / PACKED_GROUP * PACKED_BYTES, &p, heads++))
                return 0;
        }
    return fixed + p.n * sizeof *p.base;
}

/* Sign, exponent and fraction of a weight. */
static uint16_t join(uint8_t rest, unsigned code, unsigned largest)
{
    unsigned e = code == PACKED_ZERO || code > largest ? 0 : largest - code;

    return (uint16_t)((rest & 0x80) << 8 | e << 7 | (rest & 0x7f));
}

static void unpack_group(const uint8_t *from, unsigned largest, uint16_t *w)
{
    const uint8_t *codes = from + 64;

    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 2; j++) {
            w[16 * j + i] = join(from[2 * i + j], codes[2 * i + j] & 15, largest);
            w[32 + 16 * j + i] = join(from[32 + 2 * i + j], codes[2 * i + j] >> 4, largest);
        }
}

size_t packed_span(const struct packed_block *b, size_t row, size_t span,
                   uint16_t w[PACKED_SPAN])
{
    size_t k = span * PACKED_SPAN, n = b->n_k - k < PACKED_SPAN ? b->n_k - k : PACKED_SPAN;
    const uint8_t *groups = b->groups + row * b->stride + packed_stride(k);
    uint32_t head = b->heads[row * b->n_span + span];
    const uint32_t *patch = b->patches + (head >> 9) - 1;

    if (head & PACKED_RAW) {
        memcpy(w, groups, packed_stride(n));
        memcpy((uint8_t *)w + packed_stride(n), patch, n * sizeof *w - packed_stride(n));
        return n;
    }
    for (size_t i = 0; i < n; i += PACKED_GROUP)
        unpack_group(groups + packed_stride(i), head & EXPONENT, w + i);
    if (head >> 9 != 0)
        for (uint32_t i = 1; i <= patch[0]; i++)
            w[patch[i] >> 16] = (uint16_t)patch[i];
    return n;
}

/* Where the exponent of a type is, and what a packed span of it would be. */
struct half_type {
    unsigned shift, mask, steps; /* of the codes */
    unsigned raw_part;           /* a raw span of n weights takes n / raw_part bytes more */
};

static void count_span(struct packed_count *c, const uint16_t *w, size_t n,
                       const struct half_type *t)
{
    unsigned largest = 0;
    uint64_t n_escape = 0, list;

    for (size_t i = 0; i < n; i++) {
        unsigned e = w[i] >> t->shift & t->mask;

        c->exponents[e]++;
        largest = e > largest ? e : largest;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned e = w[i] >> t->shift & t->mask;

        n_escape += e != 0 && largest - e > t->steps;
    }
    list = (1 + n_escape) * sizeof(uint32_t);
    c->n_weight += n;
    c->n_span++;
    c->n_escape += n_escape;
    if (n_escape > 0)
        c->patch_bytes += list < n / t->raw_part ? list : n / t->raw_part;
}

static void count_weights(struct packed_count *c, const void *weights, size_t n,
                          const struct half_type *t)
{
    const uint8_t *from = weights;

    for (size_t k = 0; k < n; k += PACKED_SPAN) {
        size_t now = n - k < PACKED_SPAN ? n - k : PACKED_SPAN;
        uint16_t w[PACKED_SPAN];

        memcpy(w, from + k * sizeof *w, now * sizeof *w);
        count_span(c, w, now, t);
    }
}

void packed_add(struct packed_count *c, const void *weights, size_t n)
{
    static const struct half_type bf16 = { 7, EXPONENT, STEPS, 2 };

    count_weights(c, weights, n, &bf16);
}

void packed_add_f16(struct packed_count *c, const void *weights, size_t n)
{
    static const struct half_type f16 = { 10, 31, 6, 4 };

    count_weights(c, weights, n, &f16);
}
