#include "config.h"

#include "engine/stream/lookup.h"

#include <assert.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/stream/schedule.h"

/* Rows this close are read together: seeking costs more than reading the gap. */
#define GAP_BYTES SCHEDULE_ALIGN

uint32_t lookup_cells(const uint64_t *row_bytes, size_t n_table, size_t n_token)
{
    uint64_t cells = 0;

    for (size_t i = 0; i < n_table && cells < LOOKUP_CELLS; i++) {
        uint64_t each = row_bytes[i] / (LOOKUP_CELL_BYTES - SCHEDULE_ALIGN) + 1;

        if (n_token >= LOOKUP_CELLS || each >= LOOKUP_CELLS)
            return LOOKUP_CELLS;
        cells += each * n_token;
    }
    if (cells < 4)
        return 4;
    return cells < LOOKUP_CELLS ? (uint32_t)cells : LOOKUP_CELLS;
}

uint64_t lookup_bytes(uint32_t n_cell)
{
    return n_cell * LOOKUP_CELL_BYTES + LOOKUP_BATCH * sizeof(uint32_t);
}

void lookup_init(struct lookup *l, void *memory, uint32_t n_cell)
{
    *l = (struct lookup){ .buffer = memory, .n_cell = n_cell };
    l->order = (uint32_t *)(void *)(l->buffer + n_cell * LOOKUP_CELL_BYTES);
}

static bool is_before(const struct stream_lookup *a, const struct stream_lookup *b)
{
    if (a->file != b->file)
        return a->file < b->file;
    return a->offset < b->offset;
}

static void sift(const struct lookup *l, size_t i, size_t n)
{
    uint32_t *order = l->order;

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        uint32_t swap;

        if (child + 1 < n && is_before(&l->rows[order[child]], &l->rows[order[child + 1]]))
            child++;
        if (!is_before(&l->rows[order[i]], &l->rows[order[child]]))
            return;
        swap = order[i];
        order[i] = order[child];
        order[child] = swap;
    }
}

/* A heap sort, because qsort() may allocate. */
static void sort(struct lookup *l)
{
    for (size_t i = 0; i < l->n_row; i++)
        l->order[i] = (uint32_t)i;
    for (size_t i = l->n_row / 2; i > 0; i--)
        sift(l, i - 1, l->n_row);
    for (size_t n = l->n_row; n > 1; n--) {
        uint32_t last = l->order[n - 1];

        l->order[n - 1] = l->order[0];
        l->order[0] = last;
        sift(l, 0, n - 1);
    }
}

void lookup_begin(struct lookup *l, const struct stream_lookup *rows, size_t n_row,
                  uint32_t first_file)
{
    assert(n_row <= LOOKUP_BATCH && lookup_is_done(l));
    l->rows = rows;
    l->first_file = first_file;
    l->n_row = n_row;
    l->next = 0;
    l->next_at = 0;
    l->stopped = false;
    sort(l);
}

static const struct stream_lookup *row(const struct lookup *l, size_t i)
{
    return &l->rows[l->order[i]];
}

static struct lookup_cell *free_cell(struct lookup *l)
{
    for (uint32_t i = 0; i < l->n_cell; i++)
        if (!l->cells[i].op.is_flying)
            return &l->cells[i];
    return NULL;
}

/*
 * Add rows that begin in the cell's range and end before `limit`, and set where the next read
 * begins.  A row that starts before the cell is a duplicate of a long row whose tail is in
 * this cell.
 */
static void extend(struct lookup *l, struct lookup_cell *c, uint64_t limit)
{
    uint32_t file = row(l, l->next)->file;

    for (; l->next < l->n_row; l->next++) {
        const struct stream_lookup *r = row(l, l->next);
        uint64_t end = r->offset + r->bytes;

        if (r->file != file || r->offset > c->hi + GAP_BYTES || end > limit ||
            (r->offset < c->lo && l->next != c->first))
            break;
        if (end > c->hi)
            c->hi = end;
    }
    l->next_at = 0;
    c->end = l->next;
}

/* Whether the complete pages of a row can be read into place, and are worth a read. */
static bool goes_straight(const struct stream_lookup *r)
{
    return r->bytes >= 2 * LOOKUP_CELL_BYTES &&
           ((uintptr_t)r->dst - r->offset) % SCHEDULE_ALIGN == 0;
}

/* Read the next pages of such a row into place.  False: the read begins at a part of a page,
 * the first or the last, which goes through a cell. */
static bool next_straight(struct lookup *l, struct lookup_cell *c,
                          const struct stream_lookup *r)
{
    uint64_t at = r->offset + l->next_at;
    uint64_t end = align_down(r->offset + r->bytes, SCHEDULE_ALIGN);
    size_t n;

    if (at % SCHEDULE_ALIGN != 0 || at >= end)
        return false;
    n = end - at < LOOKUP_STRAIGHT ? (size_t)(end - at) : LOOKUP_STRAIGHT;
    c->first = c->end = l->next;
    c->op = (struct read_op){ .kind = READ_LOOKUP,
                              .target = (uint32_t)(c - l->cells),
                              .file = l->first_file + r->file,
                              .is_urgent = true,
                              .offset = at,
                              .bytes = n,
                              .need = n,
                              .dst = (unsigned char *)r->dst + l->next_at };
    l->next_at += n;
    if (l->next_at == r->bytes) {
        l->next++;
        l->next_at = 0;
    }
    l->n_flying++;
    return true;
}

struct read_op *lookup_next(struct lookup *l)
{
    struct lookup_cell *c = free_cell(l);
    const struct stream_lookup *r;
    uint64_t base, limit;

    if (c == NULL || l->stopped || l->next >= l->n_row)
        return NULL;
    r = row(l, l->next);
    if (goes_straight(r) && next_straight(l, c, r))
        return &c->op;
    c->first = l->next;
    c->lo = r->offset + l->next_at;
    base = align_down(c->lo, SCHEDULE_ALIGN);
    limit = base + (goes_straight(r) ? SCHEDULE_ALIGN : LOOKUP_CELL_BYTES);
    if (r->offset + r->bytes > limit) {
        /* The next read fetches the rest. */
        c->hi = limit;
        c->end = l->next + 1;
        l->next_at = limit - r->offset;
    } else {
        c->hi = r->offset + r->bytes;
        extend(l, c, limit);
    }
    c->op = (struct read_op){
        .kind = READ_LOOKUP,
        .target = (uint32_t)(c - l->cells),
        .file = l->first_file + r->file,
        .is_urgent = true,
        .offset = base,
        .bytes = (size_t)(align_up(c->hi, SCHEDULE_ALIGN) - base),
        .need = (size_t)(c->hi - base),
        .dst = l->buffer + (size_t)(c - l->cells) * LOOKUP_CELL_BYTES,
    };
    l->n_flying++;
    return &c->op;
}

/* Copy the part of a row that is in the cell. */
static void copy(const struct lookup_cell *c, const struct stream_lookup *r)
{
    uint64_t lo = r->offset > c->lo ? r->offset : c->lo;
    uint64_t end = r->offset + r->bytes;
    uint64_t hi = end < c->hi ? end : c->hi;

    if (lo < hi)
        memcpy((unsigned char *)r->dst + (lo - r->offset), c->op.dst + (lo - c->op.offset),
               (size_t)(hi - lo));
}

void lookup_finish(struct lookup *l, struct read_op *op, bool is_read)
{
    const struct lookup_cell *c = &l->cells[op->target];

    if (!is_read)
        l->stopped = true;
    for (size_t i = c->first; is_read && i < c->end; i++)
        copy(c, row(l, i));
    assert(l->n_flying > 0);
    l->n_flying--;
}

bool lookup_is_done(const struct lookup *l)
{
    return l->n_flying == 0 && (l->stopped || l->next >= l->n_row);
}
