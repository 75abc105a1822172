#include "config.h"

#include "engine/stream/schedule.h"

#include <assert.h>

#include "engine/base/units.h"

/* Kernels take several rows at once, so blocks end at a multiple where that costs nothing. */
#define ROWS_TOGETHER 16

uint64_t schedule_bytes(uint32_t n_span)
{
    return (uint64_t)n_span * sizeof(struct schedule_span);
}

/* Compute the rows per block of a span and the number of its blocks.  False: a number
 * overflows. */
static bool cut(const struct stream_span *span, size_t target, uint64_t *block_rows,
                uint64_t *n_block)
{
    uint64_t bytes, end, fit, rows;

    *block_rows = 0;
    *n_block = 0;
    if (span->row_bytes == 0 || __builtin_mul_overflow(span->row_bytes, span->n_row, &bytes) ||
        __builtin_add_overflow(span->offset, bytes, &end) || end > INT64_MAX - SCHEDULE_ALIGN)
        return false;
    if (span->n_row == 0)
        return true;
    fit = target / span->row_bytes;
    if (fit == 0)
        fit = 1;
    if (fit > ROWS_TOGETHER)
        fit = align_down(fit, ROWS_TOGETHER);
    *n_block = (span->n_row - 1) / fit + 1;
    rows = align_up((span->n_row - 1) / *n_block + 1, ROWS_TOGETHER);
    *block_rows = rows < fit ? rows : fit;
    *n_block = (span->n_row - 1) / *block_rows + 1;
    return true;
}

static void place(const struct schedule_span *p, uint64_t i, struct schedule_block *out)
{
    const struct stream_span *span = &p->span;
    uint64_t row = i * p->block_rows;
    uint64_t rest = span->n_row - row;

    out->file = span->file;
    out->layer = span->layer;
    out->begins_layer = p->begins_layer && i == 0;
    out->row = row;
    out->n_row = rest < p->block_rows ? rest : p->block_rows;
    out->offset = span->offset + row * span->row_bytes;
    out->bytes = out->n_row * span->row_bytes;
    out->read_offset = align_down(out->offset, SCHEDULE_ALIGN);
    out->read_bytes = align_up(out->offset + out->bytes, SCHEDULE_ALIGN) - out->read_offset;
    out->place_bytes = span->form == 0 || span->scratch_bytes > 0
                           ? out->read_bytes
                           : align_up(out->n_row * span->laid_row_bytes, SCHEDULE_ALIGN);
}

uint64_t schedule_measure(const struct stream_span *spans, uint32_t n_span, size_t target,
                          uint32_t *n_block)
{
    uint64_t largest = 0, blocks = 0;

    for (uint32_t i = 0; i < n_span; i++) {
        struct schedule_span p = { .span = spans[i] };
        uint64_t n;

        if (!cut(&spans[i], target, &p.block_rows, &n) || n > UINT32_MAX ||
            blocks + n > UINT32_MAX)
            continue; /* schedule_make reports it */
        blocks += n;
        for (uint64_t k = 0; k < n; k++) {
            struct schedule_block b;

            place(&p, k, &b);
            if (b.read_bytes > largest)
                largest = b.read_bytes;
        }
    }
    *n_block = (uint32_t)blocks;
    return largest;
}

/* Whether no earlier span belongs to this layer.  Spans of a layer are neighbours, so only
 * the first one of a layer searches to the beginning. */
static bool begins_layer(const struct stream_span *spans, uint32_t i)
{
    for (uint32_t k = i; k > 0; k--)
        if (spans[k - 1].layer == spans[i].layer && spans[k - 1].n_row > 0)
            return false;
    return true;
}

int schedule_make(struct schedule *s, void *memory, const struct stream_span *spans,
                  uint32_t n_span, size_t target, struct err *e)
{
    bool is_prompt = true;

    *s = (struct schedule){ .spans = memory, .n_span = n_span };
    for (uint32_t i = 0; i < n_span; i++) {
        struct schedule_span *p = &s->spans[i];
        uint64_t n;

        if (!cut(&spans[i], target, &p->block_rows, &n) || n > UINT32_MAX ||
            s->n_block + n > UINT32_MAX)
            return err_set(e, ERR_FORMAT, "span %u with %llu rows of %llu bytes is too large",
                           i, (unsigned long long)spans[i].n_row,
                           (unsigned long long)spans[i].row_bytes);
        assert(is_prompt || !spans[i].in_prompt);
        is_prompt = spans[i].in_prompt;
        p->span = spans[i];
        p->first_block = s->n_block;
        p->n_block = (uint32_t)n;
        p->begins_layer = begins_layer(spans, i);
        s->n_block += (uint32_t)n;
        if (is_prompt)
            s->n_prompt_block = s->n_block;
    }
    return 0;
}

void schedule_get(const struct schedule *s, const struct schedule_at *at,
                  struct schedule_block *out)
{
    const struct schedule_span *p = &s->spans[at->span];

    assert(at->span < s->n_span);
    assert(at->block >= p->first_block && at->block - p->first_block < p->n_block);
    place(p, at->block - p->first_block, out);
    out->span = at->span;
}

/* Skip spans without rows, which have no blocks. */
static void to_span(const struct schedule *s, struct schedule_at *at)
{
    while (at->span < s->n_span &&
           at->block - s->spans[at->span].first_block >= s->spans[at->span].n_block)
        at->span++;
}

void schedule_next(const struct schedule *s, struct schedule_at *at)
{
    at->block++;
    to_span(s, at);
}

struct schedule_at schedule_begin(const struct schedule *s)
{
    struct schedule_at at = { 0, 0 };

    to_span(s, &at);
    return at;
}
