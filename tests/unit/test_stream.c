/* The stream: with any options, a pass delivers exactly the bytes of the files. */
#include "config.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/stream/stream.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/stream_model.h"

static struct stream_mode modes[] = {
    { "direct io_uring", STREAM_DIRECT, false, false },
    { "direct pread", STREAM_DIRECT, true, false },
    { "buffered io_uring", STREAM_BUFFERED, false, false },
    { "buffered pread", STREAM_BUFFERED, true, false },
    { "mmap keep", STREAM_MMAP, false, false },
    { "mmap drop", STREAM_MMAP, false, true },
    { "auto", STREAM_AUTO, false, false },
};

static struct telemetry telemetry;

static uint64_t all_bytes(const struct stream_model *m)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < m->n_span; i++)
        bytes += m->spans[i].n_row * m->spans[i].row_bytes;
    return bytes;
}

/* Forms of the tests: the bytes of each row backwards, from a landing or where they were read, or
 * as many of them as fit, which is refused where the first byte is below a limit. */
enum { FORM_BACKWARDS = 1, FORM_SHORT, REFUSED_BELOW = 60 };

static atomic_int n_refused;

static bool lay(const struct stream_span *span, uint64_t n_row, const void *from, void *to,
                size_t room, void *scratch)
{
    const unsigned char *row = from;
    unsigned char *p = to;

    if (span->scratch_bytes > 0) {
        assert_true(p <= row && n_row * span->row_bytes <= room - (size_t)(row - p));
        for (uint64_t r = 0; r < n_row; r++, row += span->row_bytes) {
            memcpy(scratch, row, span->row_bytes);
            for (uint64_t i = 0; i < span->row_bytes; i++)
                *p++ = ((unsigned char *)scratch)[span->row_bytes - 1 - i];
        }
        return true;
    }
    assert_true(n_row * span->laid_row_bytes <= room);
    if (span->form == FORM_SHORT && row[0] < REFUSED_BELOW) {
        memset(to, 0, room);
        n_refused++;
        return false;
    }
    for (uint64_t r = 0; r < n_row; r++, row += span->row_bytes)
        for (uint64_t i = 0; i < span->laid_row_bytes; i++)
            *p++ = row[span->row_bytes - 1 - i];
    return true;
}

static void give_forms(struct stream_model *m)
{
    for (uint32_t i = 0; i < m->n_span; i++) {
        struct stream_span *p = &m->spans[i];

        p->form = (uint32_t)model_random(3);
        p->laid_row_bytes = p->form == FORM_SHORT ? 1 + p->row_bytes * 3 / 4 : p->row_bytes;
        p->form = p->laid_row_bytes == p->row_bytes && p->form != 0 ? FORM_BACKWARDS : p->form;
        p->scratch_bytes = p->form == FORM_BACKWARDS && model_random(2) == 0 ? p->row_bytes : 0;
    }
}

static bool holds(const struct stream_model *m, const struct stream_block *b)
{
    const struct stream_span *p = &m->spans[b->span];
    const unsigned char *row = m->bytes[p->file] + p->offset + b->row * p->row_bytes,
                        *data = b->data;

    if (b->form == 0)
        return model_holds(m, b);
    if (b->form != p->form || !b->is_pinned)
        return false;
    for (uint64_t r = 0; r < b->n_row; r++, row += p->row_bytes)
        for (uint64_t i = 0; i < p->laid_row_bytes; i++)
            if (*data++ != row[p->row_bytes - 1 - i])
                return false;
    return true;
}

/* Open a stream with settings that a plan would give.  Returns false if the file system has no
 * direct reads. */
static bool open_stream(struct stream **out, const struct stream_model *m,
                        const struct stream_mode *mode, size_t target, uint32_t depth,
                        struct stream_options *o)
{
    struct stream_shape shape;
    struct err e = ERR_INIT;
    int result;

    o->io = mode->io;
    o->no_uring = mode->no_uring;
    o->mmap_drop = mode->drop;
    shape_make(&shape, m->spans, m->n_span, target);
    shape.depth = depth;
    if (o->n_slot == 0)
        o->pinned_bytes = all_bytes(m) + (uint64_t)shape.n_block * 8192 +
                          stream_landing_bytes(m->spans, m->n_span, &shape);
    o->lay = lay;
    result = stream_open(out, &m->catalogue, m->spans, m->n_span, &shape, o, &telemetry, &e);
    if (result != 0 && e.code == ERR_UNSUPPORTED && mode->io == STREAM_DIRECT)
        return false;
    no_error(result, &e);
    return true;
}

/* Take blocks in order, holding at most `hold` at once, until the end of the pass or after
 * `blocks` of them. */
static void run_pass(struct stream *s, const struct stream_model *m, bool is_prompt,
                     uint64_t blocks, uint32_t hold)
{
    struct stream_block taken[8];
    struct err e = ERR_INIT;
    uint32_t n_taken = 0, span = 0;
    uint64_t row = 0, stall = 0, n = 0;

    stream_pass_begin(s, is_prompt);
    for (;;) {
        struct stream_block *b = &taken[n_taken];

        while (span < m->n_span && row == m->spans[span].n_row)
            span++, row = 0;
        if (span == m->n_span || (is_prompt && !m->spans[span].in_prompt) || n == blocks)
            break;
        if (model_random(2) == 0 && stream_next_pinned(s, span, b))
            assert_true(b->is_pinned);
        else
            no_error(stream_next(s, b, &stall, &e), &e);
        assert_int_equal(b->index, n++);
        assert_int_equal(b->span, span);
        assert_int_equal(b->row, row);
        assert_true(b->n_row > 0);
        row += b->n_row;
        assert_true(row <= m->spans[span].n_row);
        if (++n_taken < hold)
            continue;
        /* Check as late as possible that the blocks are unchanged. */
        assert_true(holds(m, &taken[0]));
        stream_give(s, &taken[0]);
        memmove(taken, taken + 1, --n_taken * sizeof taken[0]);
    }
    for (uint32_t i = 0; i < n_taken; i++) {
        assert_true(holds(m, &taken[i]));
        if (n != blocks) /* a pass that ends early keeps some blocks */
            stream_give(s, &taken[i]);
    }
    no_error(stream_pass_end(s, &e), &e);
}

static void look_up(struct stream *s, const struct stream_model *m, size_t n)
{
    struct stream_lookup *rows = calloc(n, sizeof *rows);
    void **memory = calloc(n, sizeof *memory);
    struct err e = ERR_INIT;

    for (size_t i = 0; i < n; i++) {
        uint32_t file = (uint32_t)model_random(MODEL_FILES);
        uint64_t size = m->files[file].size;

        rows[i].file = file;
        rows[i].offset =
            model_random(4) == 0 ? size - 1 - model_random(5000) : model_random(size);
        rows[i].bytes = 1 + model_random(model_random(20) == 0 ? 200000 : 20000);
        if (rows[i].bytes > size - rows[i].offset)
            rows[i].bytes = size - rows[i].offset;
        if (i > 0 && model_random(4) == 0)
            rows[i] = rows[i - 1]; /* duplicates and neighbours */
        if (i > 0 && model_random(4) == 0 && rows[i - 1].offset >= rows[i].bytes) {
            rows[i].file = rows[i - 1].file;
            rows[i].offset = rows[i - 1].offset - rows[i].bytes;
        }
        /* Often a place that can be read to without a copy. */
        memory[i] = aligned_alloc(4096, align_up(rows[i].bytes, 4096) + 4096);
        rows[i].dst =
            (unsigned char *)memory[i] + (model_random(2) ? rows[i].offset % 4096 : 0);
    }
    stream_lookup_start(s, rows, n);
    no_error(stream_lookup_wait(s, &e), &e);
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(rows[i].dst, m->bytes[rows[i].file] + rows[i].offset,
                            rows[i].bytes);
        free(memory[i]);
    }
    free(memory);
    free(rows);
}

static void change_memory(struct stream *s, struct stream_options *o, uint64_t all,
                          bool is_mapped)
{
    struct err e = ERR_INIT;

    o->pinned_bytes = model_random(4) == 0 ? all + all : model_random(all + all / 4);
    if (o->n_slot > 0 && model_random(2)) {
        no_error(stream_set_memory(s, o->n_slot, o->pinned_bytes, &e), &e);
    } else {
        uint32_t n_slot = model_random(3) == 0 ? 0 : (uint32_t)(2 + model_random(6));
        int result = stream_set_memory(s, n_slot, o->pinned_bytes, &e);

        if (result != 0 && n_slot == 0) {
            /* It does not fit, or may not fit, so nothing has changed. */
            o->pinned_bytes = UINT64_MAX;
            return;
        }
        no_error(result, &e);
        o->n_slot = n_slot;
    }
    if (!is_mapped)
        assert_true(stream_pinned_now(s) <= o->pinned_bytes);
}

static bool has_short(const struct stream_model *m)
{
    for (uint32_t i = 0; i < m->n_span; i++)
        if (m->spans[i].form == FORM_SHORT)
            return true;
    return false;
}

static void one_session(struct stream_model *m, const struct stream_mode *mode)
{
    uint32_t depth = 1 + (uint32_t)model_random(10);
    struct stream_options o = { 0 };
    size_t target = (size_t)(1 + model_random(70000));
    uint64_t all = all_bytes(m);
    struct stream *s;

    o.n_slot = model_random(5) == 0 && !has_short(m) ? 0 : (uint32_t)(2 + model_random(5));
    if (o.n_slot > 0 && model_random(2))
        o.pinned_bytes = model_random(all + all / 4);
    if (model_random(2))
        o.lookup_bytes = model_random(2 * MIB);
    if (!open_stream(&s, m, mode, target, depth, &o)) {
        print_message("no direct reads here\n");
        skip();
    }
    for (int pass = 0; pass < 6; pass++) {
        uint32_t hold = (uint32_t)(o.n_slot > 2 ? 1 + model_random(o.n_slot - 1) : 1);
        uint64_t blocks = model_random(3) == 0 ? model_random(40) : UINT64_MAX;

        if (model_random(3) == 0)
            look_up(s, m, 1 + model_random(40));
        run_pass(s, m, model_random(3) == 0, blocks, hold);
        if (mode->io != STREAM_MMAP)
            assert_true(stream_pinned_now(s) <= o.pinned_bytes);
        if (model_random(3) == 0)
            change_memory(s, &o, all, mode->io == STREAM_MMAP);
    }
    stream_close(s);
}

static void delivers_the_bytes_of_the_files(void **state)
{
    const struct stream_mode *mode = *state;
    struct stream_model m;

    model_seed(7);
    model_make(&m, 1000000);
    for (int i = 0; i < 12; i++) {
        model_seed((uint64_t)(1000 + i));
        model_random_spans(&m, 1 + model_random(300000));
        if (i % 2 == 1)
            give_forms(&m);
        one_session(&m, mode);
    }
    model_remove(&m);
}

/* Three layers in two files.  The prompt does not use the last layer. */
static void three_layers(struct stream_model *m)
{
    m->n_span = 6;
    for (uint32_t i = 0; i < m->n_span; i++)
        m->spans[i] = (struct stream_span){ .file = i % 2,
                                            .offset = i * 100000 + 7,
                                            .row_bytes = 1000,
                                            .n_row = 50,
                                            .layer = i / 2,
                                            .in_prompt = i < 4 };
}

static void the_counters_add_up(void **state)
{
    struct stream_options o = { .n_slot = 3 };
    struct stream_model m;
    struct err e = ERR_INIT;
    uint64_t before;
    struct stream *s;
    int timed = 0;

    (void)state;
    model_seed(21);
    model_make(&m, 1000000);
    three_layers(&m);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    for (int i = 0; i < 3; i++)
        assert_int_equal(counter_get(&telemetry.layer[i].bytes), 100000);
    run_pass(s, &m, false, UINT64_MAX, 1);
    run_pass(s, &m, true, UINT64_MAX, 1);
    no_error(stream_set_memory(s, o.n_slot, 200000, &e), &e);
    run_pass(s, &m, false, UINT64_MAX, 1);
    /* All pinned blocks are filled: from now on a pass reads only the others.  The reader must
     * be stopped before counters are compared. */
    no_error(stream_set_memory(s, o.n_slot, 200000, &e), &e);
    stream_close(s);
    before = 0;
    for (int i = 0; i < 3; i++) {
        before += counter_get(&telemetry.layer[i].read_bytes);
        timed += counter_get(&telemetry.layer[i].read_ns) > 0;
    }
    /* The reader was stopped at any place, so the next pass may have just begun. */
    assert_true(timed > 0);
    assert_int_equal(before, counter_get(&telemetry.bytes_read));
    assert_true(before >= 3 * 300000 - 100000);
    assert_true(counter_get(&telemetry.read_ns) > 0);
    assert_int_equal(counter_get(&telemetry.lookup_bytes), 0);
    assert_true(counter_get(&telemetry.reads) >= 3 * 15);
    model_remove(&m);
}

/* More rows than are sorted together, in ascending order. */
static void rows_arrive_before_they_are_waited_for(void **state)
{
    enum { N = 5000, BYTES = 8 };
    static struct stream_lookup rows[N];
    static unsigned char dst[N][BYTES];
    struct stream_options o = { .n_slot = 2 };
    struct stream_model m;
    struct err e = ERR_INIT;
    struct stream *s;
    uint64_t size;

    (void)state;
    model_seed(24);
    model_make(&m, 1000000);
    three_layers(&m);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    size = m.files[0].size;
    for (uint64_t i = 0; i < N; i++)
        rows[i] = (struct stream_lookup){ 0, i * (size - BYTES) / N, BYTES, dst[i] };
    stream_lookup_start(s, rows, N);
    while (counter_get(&telemetry.lookup_bytes) < size / 10 * 9)
        sched_yield(); /* the limit of the test ends it if they do not come */
    no_error(stream_lookup_wait(s, &e), &e);
    for (size_t i = 0; i < N; i++)
        assert_memory_equal(dst[i], m.bytes[0] + rows[i].offset, BYTES);
    stream_close(s);
    model_remove(&m);
}

static void pinned_blocks_of_a_span_follow_each_other(void **state)
{
    struct stream_options o = { .n_slot = 0 };
    struct stream_block block;
    struct stream_model m;
    struct err e = ERR_INIT;
    struct stream *s;
    uint64_t stall = 0;

    (void)state;
    model_seed(23);
    model_make(&m, 1000000);
    three_layers(&m);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    run_pass(s, &m, false, UINT64_MAX, 1); /* everything is in memory then */
    stream_pass_begin(s, false);
    assert_false(stream_next_pinned(s, 1, &block));
    for (uint32_t i = 0; i < m.n_span; i++) {
        uint64_t row = 0;

        no_error(stream_next(s, &block, &stall, &e), &e);
        do {
            assert_int_equal(block.row, row);
            row += block.n_row;
        } while (stream_next_pinned(s, i, &block));
        assert_int_equal(row, m.spans[i].n_row);
    }
    assert_false(stream_next_pinned(s, 0, &block));
    no_error(stream_pass_end(s, &e), &e);
    stream_close(s);
    model_remove(&m);
}

static void pinned_blocks_are_read_once(void **state)
{
    struct stream_options o = { .n_slot = 0 };
    struct stream_model m;
    uint64_t bytes, pinned = 0;
    struct stream *s;

    (void)state;
    model_seed(22);
    model_make(&m, 1000000);
    three_layers(&m);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    run_pass(s, &m, false, UINT64_MAX, 1);
    bytes = counter_get(&telemetry.bytes_read);
    assert_true(bytes >= 300000);
    for (int i = 0; i < 3; i++)
        run_pass(s, &m, i == 1, UINT64_MAX, 1);
    assert_int_equal(counter_get(&telemetry.bytes_read), bytes);
    for (int i = 0; i < 3; i++)
        pinned += counter_get(&telemetry.layer[i].pinned_bytes);
    assert_int_equal(pinned, 300000);
    assert_true(stream_pinned_now(s) >= 300000);
    stream_close(s);
    model_remove(&m);
}

/* Returns the bytes that are pinned after a pass with `bytes` of memory for them. */
static uint64_t pinned_after_pass(struct stream *s, const struct stream_model *m,
                                  uint32_t n_slot, uint64_t bytes)
{
    struct err e = ERR_INIT;

    no_error(stream_set_memory(s, n_slot, bytes, &e), &e);
    run_pass(s, m, false, UINT64_MAX, 1);
    return stream_pinned_now(s);
}

/* Pinned blocks borrow memory that keys and values take back.  The blocks that stay depend on
 * their own memory alone, wherever a huge page ends, and more memory keeps more of them. */
static void borrowed_memory_goes_and_nothing_else(void **state)
{
    struct stream_options o = { .n_slot = 3 };
    uint64_t all, before = 0, own;
    struct stream_model m;
    struct stream *s;

    (void)state;
    model_seed(24);
    model_make(&m, 3000000);
    m.n_span = 5;
    for (uint32_t i = 0; i < m.n_span; i++)
        m.spans[i] = (struct stream_span){ .file = i % 2,
                                           .offset = i / 2 * 1000000 + 7,
                                           .row_bytes = 4096,
                                           .n_row = 240,
                                           .in_prompt = true };
    all = all_bytes(&m);
    assert_true(all > 2 * HUGE_BYTES);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    for (own = 0; own < all + MIB; own += 96 * KIB) {
        uint64_t kept = pinned_after_pass(s, &m, o.n_slot, own);

        assert_true(kept >= before && kept <= own);
        assert_true(kept + 32768 >= (own < all ? own : all));
        for (uint64_t more = 40 * KIB; more < 3 * MIB; more *= 3) {
            assert_true(pinned_after_pass(s, &m, o.n_slot, own + more) >= kept);
            assert_int_equal(pinned_after_pass(s, &m, o.n_slot, own), kept);
        }
        before = kept;
    }
    stream_close(s);
    model_remove(&m);
}

/* Blocks in a shorter form take less, and those that do not fit are read in every pass. */
static void laid_blocks_take_their_place(void **state)
{
    struct stream_options o = { .n_slot = 2, .pinned_bytes = 1000000 };
    uint64_t bytes, before;
    struct stream_model m;
    struct err e = ERR_INIT;
    struct stream *s;

    (void)state;
    model_seed(22);
    model_make(&m, 1000000);
    three_layers(&m);
    for (uint32_t i = 0; i < m.n_span; i++) {
        m.spans[i].form = FORM_SHORT;
        m.spans[i].laid_row_bytes = 600;
    }
    memset(&telemetry, 0, sizeof telemetry);
    n_refused = 0;
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    for (int i = 0; i < 3; i++)
        run_pass(s, &m, false, UINT64_MAX, 1);
    /* 24 blocks, of 16 rows or 2: 12288 or 4096 bytes in memory, in the file 16000 or 2000. */
    assert_true(n_refused > 0 && n_refused < 24);
    assert_true(stream_pinned_now(s) <= (uint64_t)(24 - n_refused) * 12288);
    assert_true(stream_pinned_now(s) >= (uint64_t)(24 - n_refused) * 4096);
    /* Memory that went away and came back: a block that did not fit is not tried again. */
    no_error(stream_set_memory(s, 2, 0, &e), &e);
    assert_int_equal(stream_pinned_now(s), 0);
    assert_int_equal(counter_get(&telemetry.pinned_held), 0);
    run_pass(s, &m, false, UINT64_MAX, 1);
    no_error(stream_set_memory(s, 2, 1000000, &e), &e);
    before = (uint64_t)n_refused;
    run_pass(s, &m, false, UINT64_MAX, 1);
    assert_int_equal(n_refused, before);
    no_error(stream_set_memory(s, 3, 1000000, &e), &e);
    bytes = counter_get(&telemetry.bytes_read);
    run_pass(s, &m, false, UINT64_MAX, 1);
    assert_true(counter_get(&telemetry.bytes_read) - bytes >= (uint64_t)n_refused * 2000);
    assert_true(counter_get(&telemetry.pinned_held) <= 1000000);
    assert_int_equal(stream_set_memory(s, 0, 10000000, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    stream_close(s);
    model_remove(&m);
}

/* Make the copies of a pass over stream_keep_low(): the first bytes of each row. */
static void pass_with_copies(struct stream *s, const struct stream_model *m,
                             const uint64_t *row_bytes)
{
    struct err e = ERR_INIT;
    uint64_t stall = 0;

    stream_pass_begin(s, false);
    for (uint32_t span = 0; span < m->n_span; span++)
        for (uint64_t row = 0; row < m->spans[span].n_row;) {
            struct stream_block b;
            unsigned char *to;

            no_error(stream_next(s, &b, &stall, &e), &e);
            row += b.n_row;
            to = stream_low_place(s, &b);
            for (uint64_t r = 0; to != NULL && r < b.n_row; r++)
                memcpy(to + r * row_bytes[span],
                       (const unsigned char *)b.data + r * m->spans[span].row_bytes,
                       row_bytes[span]);
            if (to != NULL)
                stream_low_made(s, &b);
            stream_give(s, &b);
        }
    no_error(stream_pass_end(s, &e), &e);
}

/* In a pass over copies, each block is pinned or the copy that was made. */
static void check_copies(struct stream *s, const struct stream_model *m, const uint64_t *row_bytes)
{
    struct err e = ERR_INIT;
    uint64_t stall = 0;

    stream_low_pass_begin(s);
    for (uint32_t span = 0; span < m->n_span; span++)
        for (uint64_t row = 0; row < m->spans[span].n_row;) {
            const struct stream_span *p = &m->spans[span];
            struct stream_block b;

            no_error(stream_next(s, &b, &stall, &e), &e);
            assert_true(b.is_low ? !b.is_pinned : holds(m, &b));
            for (uint64_t r = 0; b.is_low && r < b.n_row; r++)
                assert_memory_equal((const unsigned char *)b.data + r * row_bytes[span],
                                    m->bytes[p->file] + p->offset + (row + r) * p->row_bytes,
                                    row_bytes[span]);
            row += b.n_row;
        }
    stream_low_pass_end(s);
}

/* Blocks that turn out not to fit their pinned place get a copy, too, of what the plan has left. */
static void blocks_that_do_not_fit_have_copies(void **state)
{
    static const uint64_t pinned[] = { 1000000, 300000, 200000, 0 };
    uint64_t row_bytes[MODEL_SPANS];
    struct stream_low low = { .bytes = 200000, .row_bytes = row_bytes, .type = 5 };
    struct stream_model m;
    struct err e = ERR_INIT;

    (void)state;
    model_seed(22);
    model_make(&m, 1000000);
    three_layers(&m);
    for (uint32_t i = 0; i < m.n_span; i++) {
        m.spans[i].form = FORM_SHORT;
        m.spans[i].laid_row_bytes = 600;
        row_bytes[i] = 100 + i;
    }
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++) {
        struct stream_options o = { .n_slot = 2, .pinned_bytes = pinned[i] };
        struct stream *s;

        low.pinned_bytes = pinned[i];
        n_refused = 0;
        assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
        no_error(stream_keep_low(s, &low, &e), &e);
        assert_int_equal(stream_low_type(s), 5);
        for (int pass = 0; pass < 3; pass++)
            pass_with_copies(s, &m, row_bytes);
        assert_true(i > 0 || n_refused > 0);
        assert_true(stream_low_ready(s));
        assert_true(stream_low_bytes(s) <= align_up(low.bytes, 4096));
        check_copies(s, &m, row_bytes);
        stream_close(s);
        if (pinned[i] > 0)
            continue;
        low.bytes = 1000;
        assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
        assert_int_equal(stream_keep_low(s, &low, &e), -1);
        assert_int_equal(e.code, ERR_BUDGET);
        assert_false(stream_low_ready(s));
        stream_close(s);
    }
    model_remove(&m);
}

/* Waits until the reader is idle and no slot is free. */
static uint64_t ahead_when_done(void)
{
    struct timespec ms = { 0, 1000000 };

    for (int i = 0; i < 5000; i++) {
        if (counter_get(&telemetry.ahead_done_bytes) == counter_get(&telemetry.ahead_bytes))
            break;
        nanosleep(&ms, NULL);
    }
    assert_int_equal(counter_get(&telemetry.ahead_done_bytes),
                     counter_get(&telemetry.ahead_bytes));
    return counter_get(&telemetry.ahead_bytes);
}

static void pinned_blocks_are_loaded_before_a_pass(void **state)
{
    struct stream_options o = { .n_slot = 0 };
    struct err e = ERR_INIT;
    struct stream_model m;
    struct stream *s;
    uint64_t all;

    (void)state;
    model_seed(22);
    model_make(&m, 1000000);
    three_layers(&m);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[3], 20000, 4, &o));
    all = ahead_when_done();
    assert_true(all >= 300000);
    assert_int_equal(all, stream_pinned_now(s));
    no_error(stream_set_memory(s, 2, 200000, &e), &e);
    assert_in_range(ahead_when_done(), 100000, 200000);
    no_error(stream_set_memory(s, 2, 250000, &e), &e);
    all = ahead_when_done();
    assert_in_range(all, 200001, 250000);
    assert_int_equal(all, stream_pinned_now(s));
    run_pass(s, &m, false, UINT64_MAX, 1);
    assert_int_equal(ahead_when_done(), all);
    stream_close(s);
    model_remove(&m);
}

/* At least: a busy machine is slower still. */
static void a_limited_rate_makes_a_slower_disk(void **state)
{
    struct stream_options o = { .n_slot = 4, .bytes_s = 1000000 };
    struct stream_model m;
    struct stream *s;
    uint64_t start_ns;

    (void)state;
    model_seed(25);
    model_make(&m, 1000000);
    three_layers(&m);
    memset(&telemetry, 0, sizeof telemetry);
    assert_true(open_stream(&s, &m, &modes[2], 20000, 4, &o));
    assert_string_equal(stream_io_reason(s), "as requested; limited to 1 MB/s");
    start_ns = clock_ns();
    run_pass(s, &m, false, UINT64_MAX, 1);
    assert_true(clock_ns() - start_ns >=
                200000000); /* 300000 bytes, at most 80000 read before */
    stream_close(s);
    model_remove(&m);
}

struct comparison {
    const char *name;
    enum stream_io io;
    double direct_bytes_s, buffered_bytes_s;
    const char *choice, *reason;
};

static struct comparison comparisons[] = {
    { "auto reads directly if that is about as fast", STREAM_AUTO, 2.2e9, 2.9e9, "direct",
      "0.76 times as fast as buffered" },
    { "auto reads through the page cache if direct reads are slow", STREAM_AUTO, 1e8, 1e9,
      "buffered", "10 times as fast as direct" },
    { "auto reads directly if nothing was measured", STREAM_AUTO, 0, 0, "direct",
      "direct works, buffered not measured" },
    { "slow direct reads can be requested", STREAM_DIRECT, 1e8, 1e9, "direct", "as requested" },
    { "buffered reads can be requested", STREAM_BUFFERED, 2e9, 1e9, "buffered",
      "as requested" },
    { "mmap can be requested", STREAM_MMAP, 0, 0, "mmap", "as requested" },
};

static void io_is_chosen_for_a_reason(void **state)
{
    const struct comparison *c = *state;
    const struct stream_mode mode = { .io = c->io };
    struct stream_options o = { .n_slot = 2,
                                .direct_bytes_s = c->direct_bytes_s,
                                .buffered_bytes_s = c->buffered_bytes_s };
    struct stream_model m;
    struct stream *s;

    model_seed(23);
    model_make(&m, 1000000);
    if (!open_stream(&s, &m, &mode, 20000, 4, &o) ||
        strstr(stream_io_reason(s), "not possible") != NULL)
        skip(); /* the file system has no direct reads */
    assert_int_equal(strncmp(stream_io_name(s), c->choice, strlen(c->choice)), 0);
    assert_int_equal(strncmp(stream_io_reason(s), c->reason, strlen(c->reason)), 0);
    run_pass(s, &m, false, UINT64_MAX, 1);
    stream_close(s);
    model_remove(&m);
}

static void impossible_options_are_refused(void **state)
{
    struct stream_options good = { .io = STREAM_BUFFERED, .n_slot = 2 }, o;
    struct stream_model m;
    struct err e = ERR_INIT;
    struct stream_shape shape;
    struct stream *s;

    (void)state;
    model_seed(24);
    model_make(&m, 1000000);
    three_layers(&m);
    shape_make(&shape, m.spans, m.n_span, 20000);
#define REFUSED(field, value, want)                                                            \
    do {                                                                                       \
        o = good;                                                                              \
        o.field = value;                                                                       \
        assert_int_equal(                                                                      \
            stream_open(&s, &m.catalogue, m.spans, m.n_span, &shape, &o, &telemetry, &e), -1); \
        assert_int_equal(e.code, want);                                                        \
        assert_null(s);                                                                        \
    } while (0)
    REFUSED(n_slot, 1, ERR_ARGUMENT);
    REFUSED(n_slot, 65, ERR_ARGUMENT);
    REFUSED(n_slot, 0, ERR_BUDGET);
#undef REFUSED
    m.spans[3].n_row = 100000;
    assert_int_equal(
        stream_open(&s, &m.catalogue, m.spans, m.n_span, &shape, &good, &telemetry, &e), -1);
    assert_int_equal(e.code, ERR_FORMAT);
    assert_string_equal(e.file, m.files[1].path);
    model_remove(&m);
}

int main(void)
{
    enum { MODES = sizeof modes / sizeof modes[0] };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(the_counters_add_up),
        cmocka_unit_test(rows_arrive_before_they_are_waited_for),
        cmocka_unit_test(pinned_blocks_of_a_span_follow_each_other),
        cmocka_unit_test(pinned_blocks_are_read_once),
        cmocka_unit_test(borrowed_memory_goes_and_nothing_else),
        cmocka_unit_test(laid_blocks_take_their_place),
        cmocka_unit_test(blocks_that_do_not_fit_have_copies),
        cmocka_unit_test(pinned_blocks_are_loaded_before_a_pass),
        cmocka_unit_test(a_limited_rate_makes_a_slower_disk),
        cmocka_unit_test(impossible_options_are_refused),
    };
    enum { COMPARED = sizeof comparisons / sizeof comparisons[0] };
    enum { OTHERS = sizeof others / sizeof others[0] };
    struct CMUnitTest tests[MODES + COMPARED + OTHERS];

    for (size_t i = 0; i < MODES; i++)
        tests[i] = (struct CMUnitTest){ modes[i].name, delivers_the_bytes_of_the_files, NULL,
                                        NULL, &modes[i] };
    for (size_t i = 0; i < COMPARED; i++)
        tests[MODES + i] = (struct CMUnitTest){ comparisons[i].name, io_is_chosen_for_a_reason,
                                                NULL, NULL, &comparisons[i] };
    for (size_t i = 0; i < OTHERS; i++)
        tests[MODES + COMPARED + i] = others[i];
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
