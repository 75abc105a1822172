#include "config.h"

#include "engine/text/added.h"

#include <stdlib.h>
#include <string.h>

#include "engine/text/tokenizer_internal.h"

size_t added_bytes(uint32_t n)
{
    return arena_size((size_t)n * 4) + arena_size(ADDED_START_BYTES);
}

int added_start(struct added *x, struct arena *a, uint32_t n, struct err *e)
{
    *x = (struct added){ 0 };
    x->id = arena_take(a, (size_t)n * 4, e);
    x->starts = arena_take(a, ADDED_START_BYTES, e);
    return x->id == NULL || x->starts == NULL ? -1 : 0;
}

void added_put(struct added *x, uint32_t id)
{
    x->id[x->n++] = id;
}

static int compare(const void *a, const void *b, void *tokenizer)
{
    const struct tokenizer *t = tokenizer;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    size_t na, nb;
    const char *ta = token_text(t, ia, &na), *tb = token_text(t, ib, &nb);
    int c = memcmp(ta, tb, na < nb ? na : nb);

    if (c != 0)
        return c;
    if (na != nb)
        return na < nb ? -1 : 1;
    return ia < ib ? -1 : ia > ib;
}

void added_sort(struct added *x, const struct tokenizer *t)
{
    qsort_r(x->id, x->n, sizeof *x->id, compare, (void *)(uintptr_t)t);
    for (uint32_t i = 0; i < x->n; i++) {
        size_t n;
        const unsigned char *s = (const unsigned char *)token_text(t, x->id[i], &n);

        if (n > 1)
            seam_set(x->starts, seam_of_bytes(s[0], s[1]));
        else
            for (int c = 0; c < 256; c++)
                seam_set(x->starts, seam_of_bytes(s[0], (unsigned char)c));
    }
}

/* Returns the byte of a token at position depth, or -1 at the end of its text. */
static int byte_at(const struct added *x, const struct tokenizer *t, uint32_t i, size_t depth)
{
    size_t n;
    const char *s = token_text(t, x->id[i], &n);

    return depth < n ? (unsigned char)s[depth] : -1;
}

/* Returns the first token of [low, high) whose byte at depth is at least c. */
static uint32_t lower(const struct added *x, const struct tokenizer *t, uint32_t low,
                      uint32_t high, size_t depth, int c)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (byte_at(x, t, middle, depth) < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Find the longest token that text begins with.  Returns its length, or 0. */
static size_t longest_at(const struct added *x, const struct tokenizer *t, const char *text,
                         size_t len, uint32_t *id)
{
    uint32_t low = 0, high = x->n;
    size_t best = 0;

    for (size_t depth = 0; depth < len && low < high; depth++) {
        int c = (unsigned char)text[depth];

        low = lower(x, t, low, high, depth, c);
        high = lower(x, t, low, high, depth, c + 1);
        if (low < high && byte_at(x, t, low, depth + 1) < 0) {
            best = depth + 1;
            *id = x->id[low];
        }
    }
    return best;
}

bool added_find(const struct added *x, const struct tokenizer *t, const char *text, size_t from,
                size_t len, size_t *at, size_t *n, uint32_t *id)
{
    if (x->n == 0)
        return false;
    for (size_t i = from; i < len; i++) {
        unsigned char a = (unsigned char)text[i];
        unsigned char b = (unsigned char)(i + 1 < len ? text[i + 1] : 0);

        if (!seam_has(x->starts, seam_of_bytes(a, b)))
            continue;
        *n = longest_at(x, t, text + i, len - i, id);
        if (*n > 0) {
            *at = i;
            return true;
        }
    }
    return false;
}

int64_t added_exact(const struct added *x, const struct tokenizer *t, const char *text,
                    size_t len)
{
    uint32_t id = 0;

    return len > 0 && longest_at(x, t, text, len, &id) == len ? (int64_t)id : -1;
}
