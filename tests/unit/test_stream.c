/* The stream: whatever the options, a pass gives exactly the bytes of the files. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/stream/stream.h"
#include "stream_model.h"

struct mode {
    const char *name;
    enum stream_io io;
    bool no_uring, drop;
};

static struct mode modes[] = {
    { "direct io_uring", STREAM_DIRECT, false, false },
    { "direct pread", STREAM_DIRECT, true, false },
    { "buffered io_uring", STREAM_BUFFERED, false, false },
    { "buffered pread", STREAM_BUFFERED, true, false },
    { "mmap keep", STREAM_MMAP, false, false },
    { "mmap drop", STREAM_MMAP, false, true },
    { "auto", STREAM_AUTO, false, false },
};

static struct telemetry telemetry;

static void no_error(int result, const struct err *e)
{
    char text[600];

    if (result == 0)
        return;
    err_text(e, text, sizeof text);
    fail_msg("%s", text);
}

static uint64_t all_bytes(const struct stream_model *m)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < m->n_span; i++)
        bytes += m->spans[i].n_row * m->spans[i].row_bytes;
    return bytes;
}

/* Opens with what a plan would give; false: no direct reads on this file system. */
static bool open_stream(struct stream **out, const struct stream_model *m,
                        const struct mode *mode, size_t target, struct stream_options *o)
{
    struct err e = ERR_INIT;
    uint32_t n_block;
    int result;

    o->io = mode->io;
    o->no_uring = mode->no_uring;
    o->mmap_drop = mode->drop;
    o->slot_bytes = stream_slot_bytes(m->spans, m->n_span, target, &n_block);
    if (o->n_slot == 0)
        o->pinned_bytes = all_bytes(m) + (uint64_t)n_block * 8192;
    result = stream_open(out, &m->catalogue, m->spans, m->n_span, target, o, &telemetry, &e);
    if (result != 0 && e.code == ERR_UNSUPPORTED && mode->io == STREAM_DIRECT)
        return false;
    no_error(result, &e);
    return true;
}

/* Take blocks in order, up to `hold` of them at once, until the pass or `blocks` end. */
static void run_pass(struct stream *s, const struct stream_model *m, bool is_prompt,
                     uint64_t blocks, uint32_t hold)
{
    struct stream_block taken[8];
    struct err e = ERR_INIT;
    uint32_t n_taken = 0, span = 0;
    uint64_t row = 0, stall = 0, n = 0;

    no_error(stream_pass_begin(s, is_prompt, &e), &e);
    for (;;) {
        struct stream_block *b = &taken[n_taken];

        while (span < m->n_span && row == m->spans[span].n_row)
            span++, row = 0;
        if (span == m->n_span || (is_prompt && !m->spans[span].in_prompt) || n == blocks)
            break;
        no_error(stream_next(s, b, &stall, &e), &e);
        assert_int_equal(b->index, n++);
        assert_int_equal(b->span, span);
        assert_int_equal(b->row, row);
        assert_true(b->n_row > 0);
        row += b->n_row;
        assert_true(row <= m->spans[span].n_row);
        if (++n_taken < hold)
            continue;
        /* Looked at as late as possible: nobody may have written there since. */
        assert_true(model_holds(m, &taken[0]));
        stream_give(s, &taken[0]);
        memmove(taken, taken + 1, --n_taken * sizeof taken[0]);
    }
    for (uint32_t i = 0; i < n_taken; i++) {
        assert_true(model_holds(m, &taken[i]));
        if (n != blocks) /* ended early, some are not given back */
            stream_give(s, &taken[i]);
    }
    if (n != blocks) {
        assert_int_equal(stream_next(s, &taken[0], &stall, &e), -1);
        assert_int_equal(e.code, ERR_ARGUMENT);
    }
    no_error(stream_pass_end(s, &e), &e);
}

static void look_up(struct stream *s, const struct stream_model *m, size_t n)
{
    struct stream_lookup *rows = calloc(n, sizeof *rows);
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
        rows[i].dst = malloc(rows[i].bytes);
    }
    no_error(stream_lookup_start(s, rows, n, &e), &e);
    no_error(stream_lookup_wait(s, &e), &e);
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(rows[i].dst, m->bytes[rows[i].file] + rows[i].offset,
                            rows[i].bytes);
        free(rows[i].dst);
    }
    free(rows);
}

static void one_session(struct stream_model *m, const struct mode *mode)
{
    struct stream_options o = { .depth = (uint32_t)model_random(10) };
    size_t target = (size_t)(1 + model_random(70000));
    uint64_t all = all_bytes(m);
    struct err e = ERR_INIT;
    struct stream *s;

    o.n_slot = model_random(5) == 0 ? 0 : (uint32_t)(2 + model_random(5));
    if (o.n_slot > 0 && model_random(2))
        o.pinned_bytes = model_random(all + all / 4);
    if (model_random(2))
        o.lookup_bytes = model_random(2 * MIB);
    if (!open_stream(&s, m, mode, target, &o)) {
        print_message("no direct reads here\n");
        skip();
    }
    for (int pass = 0; pass < 6; pass++) {
        uint32_t hold = (uint32_t)(o.n_slot > 2 ? 1 + model_random(o.n_slot - 1) : 1);
        uint64_t blocks = model_random(3) == 0 ? model_random(40) : UINT64_MAX;

        if (model_random(3) == 0)
            look_up(s, m, 1 + model_random(40));
        run_pass(s, m, model_random(3) == 0, blocks, hold);
        if (mode->io != STREAM_MMAP) {
            assert_true(stream_pinned_now(s) <= o.pinned_bytes);
            if (o.n_slot == 0)
                assert_int_equal(stream_streamed_bytes(s), 0);
        }
        if (o.n_slot > 0 && model_random(3) == 0) {
            o.pinned_bytes = model_random(all + all / 4);
            no_error(stream_set_pinned(s, o.pinned_bytes, &e), &e);
            if (mode->io != STREAM_MMAP)
                assert_true(stream_pinned_now(s) <= o.pinned_bytes);
        }
    }
    stream_close(s);
}

static void gives_the_bytes_of_the_files(void **state)
{
    const struct mode *mode = *state;
    struct stream_model m;

    model_seed(7);
    model_make(&m, 1000000);
    for (int i = 0; i < 12; i++) {
        model_seed((uint64_t)(1000 + i));
        model_random_spans(&m, 1 + model_random(300000));
        one_session(&m, mode);
    }
    model_remove(&m);
}

int main(void)
{
    enum { N = sizeof modes / sizeof modes[0] };
    struct CMUnitTest tests[N];

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ modes[i].name, gives_the_bytes_of_the_files, NULL, NULL,
                                        &modes[i] };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
