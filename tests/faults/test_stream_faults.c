/*
 * Disks that fail, files that change, kernels that refuse requests: there is one clear error,
 * nothing leaks, and the next pass works when the cause is gone.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/cancel.h"
#include "engine/base/units.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/probe.h"
#include "engine/stream/expert_cache.h"
#include "engine/stream/mirror.h"
#include "engine/stream/read_now.h"
#include "engine/stream/stream.h"
#include "tests/faults/inject.h"
#include "tests/lib/stream_model.h"

#define TARGET 40000
#define BLOCKS 140 /* the model of these tests has 20 spans of 7 blocks */

struct mode {
    const char *name;
    enum stream_io io;
    bool no_uring, drop;
};

static struct mode uring = { "io_uring", STREAM_DIRECT, false, false };
static struct mode threads = { "pread", STREAM_DIRECT, true, false };
static struct mode buffered = { "buffered", STREAM_BUFFERED, false, false };
static struct mode buffered_threads = { "buffered pread", STREAM_BUFFERED, true, false };
static struct mode mapped = { "mmap", STREAM_MMAP, false, false };
static struct mode mapped_drop = { "mmap drop", STREAM_MMAP, false, true };

static struct telemetry telemetry;
static struct stream_model model;
static struct stream *stream;
static uint32_t ring_slots, n_block; /* of the stream */

/* Spans one after the other in both files, so that each block is in a different place. */
static void even_spans(struct stream_model *m)
{
    m->n_span = 20;
    for (uint32_t i = 0; i < m->n_span; i++)
        m->spans[i] = (struct stream_span){
            .file = i / 10,
            .offset = i % 10 * 200000 + 17,
            .row_bytes = 1000,
            .n_row = 199,
            .layer = i / 2,
            .in_prompt = i < 10,
        };
}

static int set_up(void **state)
{
    (void)state;
    inject_nothing();
    memset(&telemetry, 0, sizeof telemetry);
    model_seed(3);
    model_make(&model, 2000000);
    even_spans(&model);
    stream = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    inject_nothing();
    stream_close(stream);
    model_remove(&model);
    return 0;
}

static struct model_file *copies; /* of the files, on another disk; NULL: none */

static struct cancel cancelled = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int try_open(const struct mode *mode, uint32_t n_slot, uint64_t pinned_bytes,
                    struct err *e)
{
    struct stream_options o = { .io = mode->io,
                                .no_uring = mode->no_uring,
                                .mmap_drop = mode->drop,
                                .n_slot = n_slot,
                                .pinned_bytes = pinned_bytes,
                                .mirror = copies,
                                .cancel = &cancelled };
    struct stream_shape shape;

    ring_slots = n_slot;
    shape_make(&shape, model.spans, model.n_span, TARGET);
    n_block = shape.n_block;
    return stream_open(&stream, &model.catalogue, model.spans, model.n_span, &shape, &o,
                       &telemetry, e);
}

static void open_or_skip(const struct mode *mode, uint32_t n_slot, uint64_t pinned_bytes)
{
    struct err e = ERR_INIT;

    if (try_open(mode, n_slot, pinned_bytes, &e) == 0)
        return;
    if (e.code == ERR_UNSUPPORTED && mode->io == STREAM_DIRECT) {
        print_message("this file system has no direct reads\n");
        skip();
    }
    fail_msg("%s", e.what);
}

static int set_pinned(uint64_t pinned_bytes, struct err *e)
{
    return stream_set_memory(stream, ring_slots, pinned_bytes, e);
}

/* Take blocks until the end or an error; all of them must be right.  Returns their number, and
 * in *code the reason of the end. */
static uint32_t run(struct err *e)
{
    struct stream_block b;
    uint64_t stall = 0;
    uint32_t n = 0;

    *e = (struct err)ERR_INIT;
    stream_pass_begin(stream, false);
    while (n < n_block && stream_next(stream, &b, &stall, e) == 0) {
        assert_true(model_holds(&model, &b));
        stream_give(stream, &b);
        n++;
    }
    return n;
}

static void a_whole_pass_works(void)
{
    struct err e = ERR_INIT;

    assert_int_equal(run(&e), BLOCKS);
    assert_int_equal(e.code, ERR_NONE);
    assert_int_equal(stream_pass_end(stream, &e), 0);
}

/* --- reads that fail --- */

static void a_read_that_fails_once_is_repeated(void **state)
{
    open_or_skip(*state, 4, 1500000);
    a_whole_pass_works();
    inject.read_skip = 10;
    inject.read_times = 2;
    inject.read_error = EIO;
    a_whole_pass_works();
    a_whole_pass_works();
    assert_true(counter_get(&telemetry.retries) == 2);
}

static void assert_names_place(const struct err *e, int sys)
{
    bool is_path = false;

    for (int i = 0; i < MODEL_FILES; i++)
        is_path = is_path || strcmp(e->file, model.files[i].path) == 0;
    assert_true(is_path);
    assert_int_equal(e->code, ERR_IO);
    assert_int_equal(e->sys, sys);
    assert_true(e->offset != ERR_NO_OFFSET);
}

static void a_read_that_always_fails_ends_only_the_pass(void **state)
{
    struct err e = ERR_INIT;

    for (int skip_reads = 0; skip_reads < 60; skip_reads += 7) {
        open_or_skip(*state, 4, skip_reads % 2 == 0 ? 2000000 : 0);
        inject.read_skip = skip_reads;
        inject.read_times = INT32_MAX;
        inject.read_error = EIO;
        run(&e);
        assert_names_place(&e, EIO);
        assert_non_null(strstr(e.what, "Input/output error"));
        /* The same for as long as the fault lasts, also with a cancel in between. */
        assert_int_equal(stream_pass_end(stream, &e), 0);
        run(&e);
        assert_names_place(&e, EIO);
        assert_int_equal(stream_pass_end(stream, &e), 0);
        inject.read_error = 0;
        a_whole_pass_works();
        a_whole_pass_works();
        stream_close(stream);
        stream = NULL;
    }
}

static void a_pinned_block_that_fails_is_tried_by_the_next_pass(void **state)
{
    struct err e = ERR_INIT;

    open_or_skip(*state, 0, 100000000);
    inject.read_skip = 33;
    inject.read_times = 3; /* one block, which was given up */
    inject.read_error = EIO;
    for (int pass = 0; pass < 3 && run(&e) < BLOCKS; pass++) {
        assert_names_place(&e, EIO);
        assert_int_equal(stream_pass_end(stream, &e), 0);
        e = (struct err)ERR_INIT;
        inject.read_times = 0;
    }
    assert_int_equal(stream_pass_end(stream, &e), 0);
    a_whole_pass_works();
}

static void short_and_interrupted_reads_are_completed(void **state)
{
    open_or_skip(*state, 4, 1500000);
    inject.short_one_in = 3;
    a_whole_pass_works();
    inject.read_skip = 5;
    inject.read_times = 50;
    inject.read_error = EINTR;
    a_whole_pass_works();
    a_whole_pass_works();
}

/* The cache keeps nothing of an expert that could not be read, and reads it again. */
static void an_expert_that_cannot_be_read_is_reported(void **state)
{
    const struct expert_layer layer = { .n_expert = 8,
                                        .n_used = 2,
                                        .n_part = 2,
                                        .part = { { 0, 12345, 9000, NULL },
                                                  { 1, 999, 5000, NULL } } };
    const uint32_t experts[] = { 1, 4, 6 }, once[] = { 1, 1, 1 };
    struct expert_cache *cache;
    struct expert_weights w;
    struct err e = ERR_INIT;
    uint64_t stall = 0;

    open_or_skip(*state, 0, 100000000);
    a_whole_pass_works(); /* from now on only experts are read */
    assert_int_equal(expert_cache_open(&cache, stream, &layer, 1, 1000000, &telemetry, &e), 0);
    inject.read_times = INT32_MAX;
    inject.read_error = EIO;
    expert_cache_begin(cache, 0, 1, experts, once, 3);
    assert_int_equal(expert_cache_next(cache, 3, &w, &stall, &e), -1);
    assert_names_place(&e, EIO);
    assert_int_equal(expert_cache_held(cache), 0);
    inject.read_error = 0;
    expert_cache_begin(cache, 0, 1, experts, once, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(expert_cache_next(cache, 3, &w, &stall, &e), 0);
        assert_memory_equal(w.part[0], model.bytes[0] + 12345 + w.expert * 9000, 9000);
        assert_memory_equal(w.part[1], model.bytes[1] + 999 + w.expert * 5000, 5000);
        expert_cache_give(cache);
    }
    /* A request that is dropped while it is read. */
    expert_cache_begin(cache, 0, 1, (const uint32_t[]){ 0, 7 }, once, 2);
    cancel_set(&cancelled);
    expert_cache_close(cache);
    cancel_clear(&cancelled);
    a_whole_pass_works();
}

/* A smaller cache of experts gives back a complete huge page and takes the beginning of it
 * again, which may fail. */
static void a_lost_cache_of_experts_fails_requests_until_memory_is_changed_again(void **state)
{
    struct tensor_piece each[8];
    const struct expert_layer layer = {
        .n_expert = 8, .n_used = 3, .n_part = 1, .part = { { .bytes = 300000, .each = each } }
    };
    const uint32_t experts[] = { 1, 4, 6 }, once[] = { 1, 1, 1 };
    struct expert_cache *cache;
    struct expert_sizes sizes;
    struct expert_weights w;
    struct err e = ERR_INIT;
    uint64_t stall = 0;

    for (uint64_t i = 0; i < 8; i++)
        each[i] = (struct tensor_piece){ 0, i * 777 };
    expert_sizes_of(&layer, 1, &sizes);
    open_or_skip(*state, 0, 100000000);
    a_whole_pass_works();
    assert_int_equal(
        expert_cache_open(&cache, stream, &layer, 1, 8 * sizes.slot_bytes, &telemetry, &e), 0);
    inject.resource_skip = 1; /* the mprotect after the mmap that gives memory back */
    assert_int_equal(expert_cache_set_memory(cache, 3 * sizes.slot_bytes, &e), -1);
    inject.resource_skip = -1;
    for (int i = 0; i < 2; i++) {
        expert_cache_begin(cache, 0, 1, experts, once, 3);
        assert_int_equal(expert_cache_next(cache, 3, &w, &stall, &e), -1);
        assert_int_equal(e.code, ERR_MEMORY);
    }
    assert_int_equal(expert_cache_set_memory(cache, 3 * sizes.slot_bytes, &e), 0);
    expert_cache_begin(cache, 0, 1, experts, once, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(expert_cache_next(cache, 3, &w, &stall, &e), 0);
        assert_memory_equal(w.part[0], model.bytes[0] + w.expert * 777, 300000);
        expert_cache_give(cache);
    }
    expert_cache_close(cache);
    a_whole_pass_works();
}

/* --- a copy on another disk --- */

static char copy_dir[80];

static void write_copies(void)
{
    snprintf(copy_dir, sizeof copy_dir, "%s/copy", model.dir);
    assert_int_equal(mkdir(copy_dir, 0700), 0);
    for (int i = 0; i < MODEL_FILES; i++) {
        char path[96];
        int fd;

        snprintf(path, sizeof path, "%s/%d", copy_dir, i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, model.bytes[i], model.files[i].size), model.files[i].size);
        assert_int_equal(fsync(fd), 0);
        close(fd);
    }
}

static int remove_copies(void)
{
    for (int i = 0; i < MODEL_FILES; i++) {
        char path[96];

        snprintf(path, sizeof path, "%s/%d", copy_dir, i);
        unlink(path);
    }
    return rmdir(copy_dir);
}

static void open_copies(void)
{
    struct err e = ERR_INIT;

    if (mirror_open(&copies, &model.catalogue, copy_dir, &e) != 0)
        fail_msg("%s", e.what);
}

static void close_copies(void)
{
    stream_close(stream);
    stream = NULL;
    mirror_close(copies, MODEL_FILES);
    copies = NULL;
}

static void a_copy_that_cannot_be_read_is_dropped(void **state)
{
    struct err why = ERR_INIT;

    write_copies();
    for (int skip_reads = 0; skip_reads < 60; skip_reads += 7) {
        open_copies();
        open_or_skip(*state, 6, skip_reads % 2 == 0 ? 1500000 : 0);
        inject.of_copies = true;
        inject.read_skip = skip_reads;
        inject.read_times = 1; /* tried again */
        inject.read_error = EIO;
        a_whole_pass_works();
        a_whole_pass_works();
        assert_false(stream_lost_mirror(stream, &why));
        inject.read_skip = skip_reads;
        inject.read_times = INT32_MAX;
        /* A busy machine may leave the copy alone for a second. */
        for (int i = 0; i < 100000 && !stream_lost_mirror(stream, &why); i++)
            a_whole_pass_works();
        inject_nothing();
        assert_true(stream_lost_mirror(stream, &why));
        assert_int_equal(why.code, ERR_IO);
        assert_non_null(strstr(why.file, "/copy/"));
        a_whole_pass_works();
        close_copies();
    }
    assert_int_equal(remove_copies(), 0);
}

static void a_broken_ring_reads_from_both_disks(void **state)
{
    (void)state;
    write_copies();
    for (int skip_calls = 0; skip_calls < 40; skip_calls += 7) {
        open_copies();
        inject.enter_skip = skip_calls;
        inject.enter_error = EBADF;
        open_or_skip(&uring, 6, skip_calls % 2 == 0 ? 1000000 : 0);
        for (int i = 0; i < 3; i++)
            a_whole_pass_works();
        inject_nothing();
        close_copies();
    }
    assert_int_equal(remove_copies(), 0);
}

static void a_copy_needs_memory(void **state)
{
    bool is_open = false;
    int n_failed = -1;

    (void)state;
    write_copies();
    for (int n = 0; !is_open; n++) {
        struct err e = ERR_INIT;

        inject.resource_skip = n;
        is_open = mirror_open(&copies, &model.catalogue, copy_dir, &e) == 0;
        is_open &= inject.resource_skip >= 0;
        inject_nothing();
        assert_true(copies != NULL || e.code != ERR_NONE);
        n_failed++;
        mirror_close(copies, MODEL_FILES);
        copies = NULL;
    }
    assert_true(n_failed > 3);
    assert_int_equal(remove_copies(), 0);
}

static void a_failed_lookup_is_reported(void **state)
{
    unsigned char a[3000], b[5000];
    struct stream_lookup rows[] = { { 0, 12345, sizeof a, a }, { 1, 999, sizeof b, b } };
    struct err e = ERR_INIT;

    open_or_skip(*state, 0, 100000000);
    a_whole_pass_works(); /* from now on only lookups are read */
    inject.read_times = INT32_MAX;
    inject.read_error = EIO;
    stream_lookup_start(stream, rows, 2);
    assert_int_equal(stream_lookup_wait(stream, &e), -1);
    assert_names_place(&e, EIO);
    inject.read_error = 0;
    stream_lookup_start(stream, rows, 2);
    assert_int_equal(stream_lookup_wait(stream, &e), 0);
    assert_memory_equal(a, model.bytes[0] + 12345, sizeof a);
    assert_memory_equal(b, model.bytes[1] + 999, sizeof b);
    a_whole_pass_works();
}

/* --- files that change --- */

static void set_mtime_back(int file)
{
    const int64_t ns = model.files[file].mtime_ns;
    const struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
                                   { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 } };

    assert_int_equal(utimensat(AT_FDCWD, model.files[file].path, t, 0), 0);
}

static void a_truncated_file_ends_the_answer(void **state)
{
    struct err e = ERR_INIT;
    uint32_t n;
    int fd;

    open_or_skip(*state, 2, 0);
    a_whole_pass_works();
    assert_int_equal(truncate(model.files[1].path, 1000123), 0);
    n = run(&e);
    assert_true(n >= 105 && n < BLOCKS); /* all blocks before the cut came */
    assert_int_equal(e.code, ERR_IO);
    assert_string_equal(e.file, model.files[1].path);
    assert_true(e.offset != ERR_NO_OFFSET);
    assert_non_null(strstr(e.what, "the file changed"));
    assert_int_equal(stream_pass_end(stream, &e), -1);
    assert_string_equal(e.file, model.files[1].path);

    /* The session goes on: when the file is restored, everything works again. */
    fd = open(model.files[1].path, O_WRONLY | O_CLOEXEC);
    assert_true(pwrite(fd, model.bytes[1], model.files[1].size, 0) ==
                (ssize_t)model.files[1].size);
    close(fd);
    set_mtime_back(1);
    a_whole_pass_works();
}

static void a_replaced_file_is_read_as_it_was_and_noticed(void **state)
{
    char other[200];
    struct err e = ERR_INIT;
    int fd;

    open_or_skip(*state, 2, 0);
    a_whole_pass_works();
    snprintf(other, sizeof other, "%s.new", model.files[0].path);
    fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)model.files[0].size), 0);
    close(fd);
    assert_int_equal(rename(other, model.files[0].path), 0);
    assert_int_equal(run(&e), BLOCKS);
    assert_int_equal(stream_pass_end(stream, &e), -1);
    assert_string_equal(e.file, model.files[0].path);
}

static void a_removed_name_does_not_matter(void **state)
{
    open_or_skip(*state, 2, 0);
    assert_int_equal(unlink(model.files[0].path), 0);
    a_whole_pass_works();
    stream_close(stream);
    stream = NULL;
    open_or_skip(*state, 2, 0);
    a_whole_pass_works();
}

/* --- cancel --- */

static void *cancel_later(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        sched_yield();
    cancel_set(&cancelled);
    return NULL;
}

static void a_cancel_ends_a_wait_for_the_disk(void **state)
{
    struct stream_block b;
    uint64_t stall = 0;
    struct err e = ERR_INIT;
    pthread_t thread;

    inject.reads_wait = true;
    (void)state;
    if (try_open(&buffered_threads, 4, 500000, &e) != 0)
        fail_msg("%s", e.what);
    stream_pass_begin(stream, false);
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, NULL), 0);
    assert_int_equal(stream_next(stream, &b, &stall, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_true(stall > 0);
    assert_int_equal(stream_next(stream, &b, &stall, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    pthread_join(thread, NULL);
    assert_int_equal(stream_pass_end(stream, &e), 0);
    inject.reads_wait = false;
    cancel_clear(&cancelled);
    a_whole_pass_works();
}

/* --- kernels that refuse --- */

static void without_io_uring_threads_do_the_reads(void **state)
{
    static const int errors[] = { ENOSYS, EPERM, ENOMEM, EINVAL };

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        inject.init_error = errors[i];
        open_or_skip(&uring, 4, 0);
        assert_string_equal(stream_io_name(stream), "direct/pread");
        assert_non_null(strstr(stream_io_reason(stream), "io_uring is not available"));
        assert_non_null(strstr(stream_io_reason(stream), strerror(errors[i])));
        a_whole_pass_works();
        stream_close(stream);
        stream = NULL;
    }
}

static void io_uring_reads_without_registration(void **state)
{
    (void)state;
    inject.register_error = ENOMEM;
    open_or_skip(&uring, 4, 1000000);
    a_whole_pass_works();
    a_whole_pass_works();
}

static void a_ring_that_breaks_is_replaced_by_threads(void **state)
{
    (void)state;
    for (int skip_calls = 0; skip_calls < 40; skip_calls += 3) {
        struct err e = ERR_INIT;

        inject_nothing();
        inject.enter_skip = skip_calls;
        inject.enter_error = EBADF;
        open_or_skip(&uring, 4, skip_calls % 2 == 0 ? 1000000 : 0);
        a_whole_pass_works();
        a_whole_pass_works();
        assert_string_equal(stream_io_name(stream), "direct/pread");
        assert_int_equal(set_pinned(500000, &e), 0);
        a_whole_pass_works();
        stream_close(stream);
        stream = NULL;
    }
}

static void a_ring_that_is_full_is_tried_again(void **state)
{
    (void)state;
    open_or_skip(&uring, 4, 0);
    a_whole_pass_works();
    for (int i = 0; i < 5; i++) {
        inject.enter_skip = 3;
        inject.enter_error = EBUSY;
        /* A few in a row; the next pass clears the error. */
        struct stream_block b;
        uint64_t stall = 0;
        struct err e = ERR_INIT;

        stream_pass_begin(stream, false);
        assert_int_equal(stream_next(stream, &b, &stall, &e), 0);
        inject.enter_error = 0;
        assert_int_equal(stream_pass_end(stream, &e), 0);
    }
    a_whole_pass_works();
    assert_string_equal(stream_io_name(stream), "direct/io_uring");
}

static void a_broken_ring_without_threads_is_an_error(void **state)
{
    struct err e = ERR_INIT;
    unsigned char row[100];
    struct stream_lookup lookup = { 0, 50, sizeof row, row };

    (void)state;
    open_or_skip(&uring, 4, 0);
    a_whole_pass_works();
    inject.resource_skip = 0; /* the calloc of the other backend */
    inject.enter_error = EBADF;
    run(&e);
    assert_int_equal(e.code, ERR_IO);
    assert_int_equal(stream_pass_end(stream, &e), 0);
    inject_nothing();
    assert_int_equal(run(&e), 0);
    assert_int_equal(e.code, ERR_IO);
    assert_int_equal(stream_pass_end(stream, &e), 0);
    stream_lookup_start(stream, &lookup, 1);
    assert_int_equal(stream_lookup_wait(stream, &e), -1);
    assert_int_equal(set_pinned(1000000, &e), 0);
}

static void each_refused_resource_is_an_error_or_replaced(void **state)
{
    const struct mode *mode = *state;
    struct err e = ERR_INIT;
    int n_refused = 0;

    for (int n = 0; n < 100; n++) {
        inject.resource_skip = n;
        e = (struct err)ERR_INIT;
        if (try_open(mode, 4, 1000000, &e) == 0) {
            bool was_refused = inject.resource_skip < 0;

            inject.resource_skip = -1;
            a_whole_pass_works();
            stream_close(stream);
            stream = NULL;
            if (!was_refused)
                break;
            continue;
        }
        if (e.code == ERR_UNSUPPORTED && mode->io == STREAM_DIRECT)
            skip();
        assert_null(stream);
        assert_true(e.code == ERR_MEMORY || e.code == ERR_IO);
        assert_true(e.what[0] != '\0');
        n_refused++;
    }
    assert_true(n_refused >= 5);
}

/* Direct reads are slow.  The probe finds it, and the stream reads through the page cache and
 * reports why. */
static void auto_measures_slow_direct_reads_and_avoids_them(void **state)
{
    /* Read every block once instead of for a time: a busy machine must not decide. */
    const struct probe_options probe = { .seconds = 1e9, .buffer_bytes = MIB };
    struct stream_options o = { .n_slot = 4 };
    struct probe_rate direct, through_cache;
    struct stream_shape shape;
    struct err e = ERR_INIT;

    (void)state;
    inject.direct_us = 100000;
    assert_int_equal(
        probe_disk_both(model.files[0].fd, 2, 64 * KIB, &probe, &direct, &through_cache, &e),
        0);
    if (direct.bytes == 0 || through_cache.bytes == 0)
        skip(); /* no direct reads on this file system, or it keeps the file in the page cache
                 */
    o.direct_bytes_s = direct.bytes_s;
    o.buffered_bytes_s = through_cache.bytes_s;
    shape_make(&shape, model.spans, model.n_span, TARGET);
    assert_int_equal(stream_open(&stream, &model.catalogue, model.spans, model.n_span, &shape,
                                 &o, &telemetry, &e),
                     0);
    n_block = shape.n_block;
    assert_string_equal(stream_io_name(stream), "buffered");
    assert_non_null(strstr(stream_io_reason(stream), "times as fast as direct"));
    a_whole_pass_works();
}

/* --- memory and page cache --- */

static void nothing_is_allocated_between_blocks(void **state)
{
    unsigned char a[3000], b[5000];
    struct stream_lookup rows[] = { { 0, 12345, sizeof a, a }, { 1, 999, sizeof b, b } };
    struct err e = ERR_INIT;
    int before;

    open_or_skip(*state, 4, 1500000);
    a_whole_pass_works();
    before = inject.n_alloc;
    for (int i = 0; i < 3; i++) {
        stream_lookup_start(stream, rows, 2);
        a_whole_pass_works();
        assert_int_equal(stream_lookup_wait(stream, &e), 0);
    }
    assert_int_equal(inject.n_alloc, before);
}

static uint64_t cached_bytes(void)
{
    uint64_t bytes = 0;

    for (int i = 0; i < MODEL_FILES; i++) {
        struct mw_os_value v = pagecache_bytes(model.files[i].fd, model.files[i].size);

        if (v.why_not != NULL) {
            print_message("page cache: %s\n", v.why_not);
            skip();
        }
        bytes += v.value;
    }
    return bytes;
}

static void leaves_no_page_in_the_page_cache(void **state)
{
    unsigned char a[3000];
    struct stream_lookup row = { 0, 12345, sizeof a, a };
    struct err e = ERR_INIT;
    struct read_now reads;

    if (cached_bytes() != 0) {
        print_message("the files cannot be dropped from the page cache\n");
        skip();
    }
    open_or_skip(*state, 4, 0);
    stream_lookup_start(stream, &row, 1);
    a_whole_pass_works();
    assert_int_equal(stream_lookup_wait(stream, &e), 0);
    assert_int_equal(read_now_open(&reads, &model.catalogue, &e), 0);
    assert_int_equal(read_now(&reads, 1, 777, sizeof a, a, &e), 0);
    read_now_close(&reads);
    assert_memory_equal(a, model.bytes[1] + 777, sizeof a);
    stream_close(stream);
    stream = NULL;
    assert_int_equal(cached_bytes(), 0);
}

/* Resident anonymous memory, which unpinning must lower. */
static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    unsigned long long kib = 0;
    char line[256];

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Anonymous: %llu kB", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return kib * 1024;
}

static void shrinking_frees_memory_at_once(void **state)
{
    struct err e = ERR_INIT;
    uint64_t full, less, pinned;

    (void)state;
    if (resident_bytes() == 0)
        skip();
    for (uint32_t i = 0; i < 20; i++) /* about 16 MB */
        model.spans[i].offset = 17, model.spans[i].n_row = 1990,
        model.spans[i].in_prompt = true;
    for (uint32_t i = 20; i < MODEL_SPANS; i++) {
        model.spans[i] = model.spans[i - 20];
        model.n_span = i + 1;
    }
    open_or_skip(&threads, 2, 60 * MIB);
    run(&e);
    assert_int_equal(stream_pass_end(stream, &e), 0);
    pinned = stream_pinned_now(stream);
    assert_true(pinned > 50 * MIB && pinned <= 60 * MIB);
    full = resident_bytes();
    assert_int_equal(set_pinned(20 * MIB, &e), 0);
    less = resident_bytes();
    assert_true(stream_pinned_now(stream) <= 20 * MIB);
    assert_true(full - less >= pinned - 20 * MIB - 256 * KIB);
    run(&e);
    assert_int_equal(stream_pass_end(stream, &e), 0);
    assert_true(resident_bytes() <= less + 2 * MIB + 256 * KIB);
    assert_int_equal(set_pinned(0, &e), 0);
    assert_int_equal(stream_pinned_now(stream), 0);
    assert_true(resident_bytes() + 18 * MIB <= less);
}

/* A smaller ring is unmapped before it is mapped again, and the second step may fail. */
static void a_lost_ring_fails_passes_until_memory_is_changed_again(void **state)
{
    struct err e = ERR_INIT;

    open_or_skip(*state, 8, 500000);
    a_whole_pass_works();
    inject.resource_skip = 1; /* the mprotect after the mmap that releases the ring */
    assert_int_equal(stream_set_memory(stream, 4, 500000, &e), -1);
    inject.resource_skip = -1;
    for (int pass = 0; pass < 2; pass++) {
        run(&e);
        assert_true(e.code == ERR_MEMORY || e.code == ERR_IO);
        assert_non_null(strstr(e.what, "\"ring\""));
        assert_int_equal(stream_pass_end(stream, &e), 0);
    }
    assert_int_equal(stream_set_memory(stream, 8, 500000, &e), 0);
    a_whole_pass_works();
    assert_int_equal(stream_set_memory(stream, 4, 500000, &e), 0);
    a_whole_pass_works();
}

#define TEST(name, mode)                                                                       \
    {                                                                                          \
#name, name, set_up, tear_down, mode                                                   \
    }

int main(void)
{
    static struct CMUnitTest tests[128];
    static struct mode *const readers[] = { &uring, &threads, &buffered, &buffered_threads };
    static struct mode *const all[] = { &uring,  &threads,    &buffered, &buffered_threads,
                                        &mapped, &mapped_drop };
    static const struct CMUnitTest of_readers[] = {
        TEST(a_read_that_fails_once_is_repeated, NULL),
        TEST(a_read_that_always_fails_ends_only_the_pass, NULL),
        TEST(a_pinned_block_that_fails_is_tried_by_the_next_pass, NULL),
        TEST(short_and_interrupted_reads_are_completed, NULL),
        TEST(an_expert_that_cannot_be_read_is_reported, NULL),
        TEST(a_failed_lookup_is_reported, NULL),
        TEST(a_copy_that_cannot_be_read_is_dropped, NULL),
        TEST(leaves_no_page_in_the_page_cache, NULL),
    };
    static const struct CMUnitTest of_all[] = {
        TEST(a_truncated_file_ends_the_answer, NULL),
        TEST(a_replaced_file_is_read_as_it_was_and_noticed, NULL),
        TEST(a_removed_name_does_not_matter, NULL),
        TEST(each_refused_resource_is_an_error_or_replaced, NULL),
        TEST(nothing_is_allocated_between_blocks, NULL),
    };
    static const struct CMUnitTest once[] = {
        TEST(a_cancel_ends_a_wait_for_the_disk, NULL),
        TEST(shrinking_frees_memory_at_once, NULL),
        TEST(a_copy_needs_memory, NULL),
        TEST(auto_measures_slow_direct_reads_and_avoids_them, NULL),
        TEST(leaves_no_page_in_the_page_cache, &mapped_drop),
        TEST(a_lost_ring_fails_passes_until_memory_is_changed_again, &uring),
        TEST(a_lost_ring_fails_passes_until_memory_is_changed_again, &buffered_threads),
        TEST(a_lost_cache_of_experts_fails_requests_until_memory_is_changed_again, &buffered),
#ifdef HAVE_LIBURING
        TEST(without_io_uring_threads_do_the_reads, NULL),
        TEST(io_uring_reads_without_registration, NULL),
        TEST(a_ring_that_breaks_is_replaced_by_threads, NULL),
        TEST(a_ring_that_is_full_is_tried_again, NULL),
        TEST(a_broken_ring_reads_from_both_disks, NULL),
        TEST(a_broken_ring_without_threads_is_an_error, NULL),
#endif
    };
    size_t n = 0;

    for (size_t k = 0; k < sizeof of_readers / sizeof of_readers[0]; k++)
        for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
            tests[n] = of_readers[k];
            tests[n++].initial_state = readers[i];
        }
    for (size_t k = 0; k < sizeof of_all / sizeof of_all[0]; k++)
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            tests[n] = of_all[k];
            tests[n++].initial_state = all[i];
        }
    for (size_t k = 0; k < sizeof once / sizeof once[0]; k++)
        tests[n++] = once[k];
    return _cmocka_run_group_tests("stream faults", tests, n, NULL, NULL);
}
