/*
 * A copy of the model on another disk: with it, a pass has the same bytes, also after the copy
 * failed or was changed.  A file that is not a copy is refused.  Two disks together deliver the
 * sum of their rates.
 */
#include "config.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/session/session.h"
#include "engine/stream/mirror.h"
#include "engine/stream/stream.h"
#include "tests/lib/calls.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/model_path.h"
#include "tests/lib/stream_model.h"
#include "tests/lib/tree.h"

static struct telemetry telemetry;
static struct stream_model model;
static char copy_dir[80];

/* --- copies --- */

static void copy_path(int file, char *buf, size_t n)
{
    snprintf(buf, n, "%s/%d", copy_dir, file);
}

static void write_copy(int file, uint64_t n)
{
    char path[120];
    int fd;

    copy_path(file, path, sizeof path);
    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, model.bytes[file], n), n);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

static void change_byte(int file, uint64_t at)
{
    unsigned char other = (unsigned char)(model.bytes[file][at] + 1);
    char path[120];
    int fd;

    copy_path(file, path, sizeof path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
    close(fd);
}

static int begin(void **state)
{
    (void)state;
    memset(&telemetry, 0, sizeof telemetry);
    model_seed(31);
    model_make(&model, 3000000);
    snprintf(copy_dir, sizeof copy_dir, "%s/copy", model.dir);
    assert_int_equal(mkdir(copy_dir, 0700), 0);
    for (int i = 0; i < MODEL_FILES; i++)
        write_copy(i, model.files[i].size);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tree_remove(copy_dir);
    model_remove(&model);
    return 0;
}

/* --- streams --- */

static struct model_file *copies;

static struct stream *open_stream(const struct stream_mode *mode, uint32_t n_slot,
                                  uint64_t pinned_bytes)
{
    struct stream_options o = { .io = mode->io,
                                .no_uring = mode->no_uring,
                                .n_slot = n_slot,
                                .pinned_bytes = pinned_bytes };
    struct stream_shape shape;
    struct err e = ERR_INIT;
    struct stream *s;

    no_error(mirror_open(&copies, &model.catalogue, copy_dir, &e), &e);
    o.mirror = copies;
    shape_make(&shape, model.spans, model.n_span, 40000);
    if (stream_open(&s, &model.catalogue, model.spans, model.n_span, &shape, &o, &telemetry,
                    &e) == 0)
        return s;
    mirror_close(copies, MODEL_FILES);
    if (e.code == ERR_UNSUPPORTED)
        skip(); /* the file system has no direct reads */
    fail_with(&e);
    return NULL;
}

static void close_stream(struct stream *s)
{
    stream_close(s);
    mirror_close(copies, MODEL_FILES);
}

/* Also rows, which are looked up. */
static void run_pass(struct stream *s)
{
    static unsigned char row[2][5000];
    struct stream_lookup rows[2];
    struct stream_shape shape;
    struct err e = ERR_INIT;
    struct stream_block b;
    uint64_t stall = 0;

    shape_make(&shape, model.spans, model.n_span, 40000);
    for (uint32_t i = 0; i < 2; i++)
        rows[i] = (struct stream_lookup){ i, model_random(2000000), sizeof row[i], row[i] };
    stream_lookup_start(s, rows, 2);
    stream_pass_begin(s, false);
    for (uint32_t i = 0; i < shape.n_block; i++) {
        no_error(stream_next(s, &b, &stall, &e), &e);
        assert_true(model_holds(&model, &b));
        stream_give(s, &b);
    }
    no_error(stream_pass_end(s, &e), &e);
    no_error(stream_lookup_wait(s, &e), &e);
    for (int i = 0; i < 2; i++)
        assert_memory_equal(row[i], model.bytes[i] + rows[i].offset, sizeof row[i]);
}

static struct stream_mode modes[] = {
    { "direct io_uring", STREAM_DIRECT, false, false },
    { "direct pread", STREAM_DIRECT, true, false },
    { "buffered io_uring", STREAM_BUFFERED, false, false },
    { "buffered pread", STREAM_BUFFERED, true, false },
};

static void both_disks_deliver_the_same_bytes(void **state)
{
    struct err why = ERR_INIT;

    (void)begin(state);
    for (int i = 0; i < 12; i++) {
        struct stream *s;

        model_random_spans(&model, 100000 + model_random(300000));
        s = open_stream(*state, 4 + (uint32_t)model_random(8), model_random(2) * 1500000);
        assert_int_equal(counter_get(&telemetry.mirror), MW_MIRROR_USED);
        for (int k = 0; k < 3; k++)
            run_pass(s);
        assert_false(stream_lost_mirror(s, &why));
        close_stream(s);
    }
    assert_true(counter_get(&telemetry.disk_bytes[READ_MODEL]) > 100000);
    assert_true(counter_get(&telemetry.disk_bytes[READ_MIRROR]) > 100000);
}

/* --- copies that fail --- */

static void cut_short(void)
{
    char path[120];

    copy_path(1, path, sizeof path);
    assert_int_equal(truncate(path, 5000), 0);
}

static void changed(void)
{
    change_byte(1, 1000000);
}

static void replaced(void)
{
    char path[120], other[130];

    copy_path(1, path, sizeof path);
    snprintf(other, sizeof other, "%s.new", path);
    assert_int_equal(close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    assert_int_equal(rename(other, path), 0);
}

/* As a disk that was pulled out: nothing can be read any longer. */
static void emptied(void)
{
    for (int i = 0; i < MODEL_FILES; i++) {
        char path[120];

        copy_path(i, path, sizeof path);
        assert_int_equal(truncate(path, 0), 0);
    }
}

static void a_copy_that_fails_is_dropped(void **state)
{
    static void (*const faults[])(void) = { cut_short, changed, replaced, emptied };

    (void)begin(NULL);
    for (size_t i = 0; i < 2 * sizeof faults / sizeof faults[0]; i++) {
        struct err why = ERR_INIT;
        struct stream *s;

        for (int k = 0; k < MODEL_FILES; k++)
            write_copy(k, model.files[k].size);
        model_random_spans(&model, 200000);
        s = open_stream(*state, 6, i % 2 * 1000000);
        run_pass(s);
        faults[i / 2]();
        for (int k = 0; k < 4; k++)
            run_pass(s);
        if (stream_lost_mirror(s, &why)) { /* else all of it was pinned, or of the other file */
            assert_int_equal(counter_get(&telemetry.mirror), MW_MIRROR_LOST);
            assert_non_null(strstr(why.file, "/copy/"));
        } else {
            assert_true(faults[i / 2] != emptied || i % 2 == 1);
        }
        close_stream(s);
    }
}

/* --- files that differ --- */

static void refuses(const char *path, const char *why)
{
    struct model_file *files;
    struct err e = ERR_INIT;

    assert_int_equal(mirror_open(&files, &model.catalogue, path, &e), -1);
    assert_null(files);
    if (strstr(e.what, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", e.what, why);
}

static void files_that_differ_are_refused(void **state)
{
    const uint64_t last = model.files[0].size - 1, at[] = { 0, 4096, 1234567, last };
    struct model_file *files;
    struct err e = ERR_INIT;
    char path[120];

    (void)state;
    no_error(mirror_open(&files, &model.catalogue, copy_dir, &e), &e);
    mirror_close(files, MODEL_FILES);
    copy_path(1, path, sizeof path); /* any file of several stands for its folder */
    no_error(mirror_open(&files, &model.catalogue, path, &e), &e);
    mirror_close(files, MODEL_FILES);
    no_error(mirror_open(&files, &model.catalogue, model.dir, &e), &e); /* the model itself */
    mirror_close(files, MODEL_FILES);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        change_byte(0, at[i]);
        refuses(copy_dir, "other bytes");
        write_copy(0, model.files[0].size);
    }
    write_copy(1, model.files[1].size - 1);
    refuses(copy_dir, "its size is");
    unlink(path);
    refuses(copy_dir, "No such file");
    assert_int_equal(mkfifo(path, 0600), 0);
    refuses(copy_dir, "a FIFO");
    refuses("/proc/self/nothing", "No such file");
}

/* A copy that still arrives has its size, and holes between the samples. */
static void a_copy_that_is_not_complete_is_refused(void **state)
{
    struct tensor_info tensors[MODEL_FILES] = { { .file = 0, .offset = 4096 },
                                                { .file = 1, .offset = 4096 } };
    const uint64_t hole = 128 * KIB;
    struct model_file *files;
    struct err e = ERR_INIT;
    char path[120];
    int fd;

    (void)state;
    model_seed(32);
    model_make(&model, 40000000);
    model.catalogue.tensors = tensors;
    model.catalogue.n_tensor = MODEL_FILES;
    snprintf(copy_dir, sizeof copy_dir, "%s/copy", model.dir);
    assert_int_equal(mkdir(copy_dir, 0700), 0);
    for (int i = 0; i < MODEL_FILES; i++)
        write_copy(i, model.files[i].size);
    no_error(mirror_open(&files, &model.catalogue, copy_dir, &e), &e);
    mirror_close(files, MODEL_FILES);
    copy_path(0, path, sizeof path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 256 * KIB, (off_t)hole) != 0)
        skip(); /* the file system has no holes */
    refuses(copy_dir, "other bytes");
    /* Space that was allocated and never written. */
    assert_int_equal(fallocate(fd, 0, 256 * KIB, (off_t)hole), 0);
    refuses(copy_dir, "other bytes");
    /* Zeros in both files are equal. */
    memset(model.bytes[0] + 256 * KIB, 0, hole);
    close(fd);
    fd = open(model.files[0].path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, model.bytes[0] + 256 * KIB, hole, 256 * KIB), hole);
    close(fd);
    no_error(mirror_open(&files, &model.catalogue, copy_dir, &e), &e);
    mirror_close(files, MODEL_FILES);
    model.catalogue.n_tensor = 0;
    (void)end(state);
}

/* Each hole is compared, so a copy with very many would be opened slowly. */
static void a_copy_with_very_many_holes_is_refused(void **state)
{
    static unsigned char zeros[8 * KIB];
    struct model_file *files;
    struct err e = ERR_INIT;
    char path[120];
    int model_fd, fd;

    (void)state;
    model_seed(33);
    model_make(&model, 9000000);
    snprintf(copy_dir, sizeof copy_dir, "%s/copy", model.dir);
    assert_int_equal(mkdir(copy_dir, 0700), 0);
    for (int i = 0; i < MODEL_FILES; i++)
        write_copy(i, model.files[i].size);
    copy_path(0, path, sizeof path);
    model_fd = open(model.files[0].path, O_WRONLY | O_CLOEXEC);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    for (uint64_t i = 0; i < 300; i++) { /* zeros in the model, and holes in the copy */
        off_t at = (off_t)(i * 24 * KIB);

        assert_int_equal(pwrite(model_fd, zeros, sizeof zeros, at), sizeof zeros);
        if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, sizeof zeros) != 0)
            skip(); /* the file system has no holes */
        if (i == 200) {
            no_error(mirror_open(&files, &model.catalogue, copy_dir, &e), &e);
            mirror_close(files, MODEL_FILES);
        }
    }
    refuses(copy_dir, "more than 256 holes");
    close(model_fd);
    close(fd);
    (void)end(state);
}

/* --- two disks, simulated --- */

/* The engine waits for the first read after a pause, and for urgent ones: they do not go to the
 * slower disk to find out whether it is faster now. */
static void nobody_waits_for_a_trial(void **state)
{
    static const uint64_t second = 1000000000;
    struct read_op first = { .bytes = MIB }, other = { .bytes = MIB },
                   urgent = { .bytes = 4096, .is_urgent = true };
    struct disks d = { .has_mirror = false };

    (void)state;
    disks_open(&d, &telemetry);
    d.disk[READ_MODEL] = (struct disk_load){ .bytes_s = 1e9, .last_ns = second };
    d.disk[READ_MIRROR] = (struct disk_load){ .bytes_s = 2e8, .last_ns = second };
    assert_int_equal(disks_choose(&d, &first, 12, 100 * second), READ_MODEL);
    assert_int_equal(disks_choose(&d, &urgent, 12, 100 * second), READ_MODEL);
    disks_begin(&d, &first, 100 * second);
    assert_int_equal(disks_choose(&d, &other, 12, 100 * second), READ_MIRROR);
    other.disk = READ_MIRROR;
    disks_begin(&d, &other, 100 * second);
    disks_end(&d, &first, 101 * second);
    disks_end(&d, &other, 101 * second);
    /* One disk alone was idle. */
    d.disk[READ_MODEL].last_ns = 200 * second;
    d.disk[READ_MIRROR].bytes_s = 2e8;
    assert_int_equal(disks_choose(&d, &urgent, 12, 200 * second + 1), READ_MODEL);
    assert_int_equal(disks_choose(&d, &first, 12, 200 * second + 1), READ_MIRROR);
}

#define N_BLOCK 4000
#define BLOCK   ((size_t)1 << 20)

struct simulation {
    double rate[READ_DISKS]; /* bytes per second */
    uint32_t n_slot, depth;
    double changes_to; /* the rate of the mirror from the middle on; 0: it stays */
};

/* Each disk delivers one read after the other; the engine takes blocks in order, at once.
 * Returns the share of the sum of both rates that it gets. */
static double share_of_sum(const struct simulation *q)
{
    static struct read_op op[N_BLOCK];
    static double done[N_BLOCK];
    double now = 1, start = 1, is_free[READ_DISKS] = { 0, 0 }, possible = 0, rate[READ_DISKS];
    uint32_t begun = 0, taken = 0, flying = 0;
    bool ready[N_BLOCK] = { false };
    struct disks d = { .has_mirror = false };

    memcpy(rate, q->rate, sizeof rate);
    disks_open(&d, &telemetry);
    while (taken < N_BLOCK) {
        double next = 1e18;
        uint32_t who = 0;

        while (begun < N_BLOCK && flying < q->depth && begun - taken < q->n_slot) {
            struct read_op *o = &op[begun];

            *o = (struct read_op){ .bytes = BLOCK, .is_flying = true };
            o->disk = disks_choose(&d, o, q->n_slot, (uint64_t)(now * 1e9));
            disks_begin(&d, o, (uint64_t)(now * 1e9));
            is_free[o->disk] = (is_free[o->disk] > now ? is_free[o->disk] : now) +
                               (double)BLOCK / rate[o->disk];
            done[begun++] = is_free[o->disk];
            flying++;
        }
        for (uint32_t i = taken; i < begun; i++)
            if (!ready[i] && done[i] < next) {
                next = done[i];
                who = i;
            }
        possible += (next - now) * (rate[0] + rate[1]);
        now = next;
        op[who].result = (int64_t)BLOCK;
        disks_end(&d, &op[who], (uint64_t)(now * 1e9));
        ready[who] = true;
        flying--;
        while (taken < begun && ready[taken])
            taken++;
        if (q->changes_to > 0 && taken > N_BLOCK / 2)
            rate[READ_MIRROR] = q->changes_to;
    }
    assert_true(now > start);
    return (double)N_BLOCK * BLOCK / possible;
}

static void two_disks_deliver_the_sum(void **state)
{
    static const struct simulation tries[] = {
        { { 500e6, 500e6 }, 12, 8, 0 },     { { 500e6, 250e6 }, 12, 8, 0 },
        { { 250e6, 500e6 }, 12, 8, 0 },     { { 3e9, 1e9 }, 12, 8, 0 },
        { { 500e6, 100e6 }, 12, 8, 0 },     { { 100e6, 800e6 }, 12, 8, 0 },
        { { 500e6, 400e6 }, 6, 4, 0 },      { { 500e6, 60e6 }, 12, 8, 0 },
        { { 500e6, 500e6 }, 12, 8, 100e6 }, { { 500e6, 100e6 }, 12, 8, 500e6 },
    };
    /* A disk that is far too slow costs a block that is read to find out. */
    static const struct simulation hopeless = { { 500e6, 5e6 }, 12, 8, 0 };

    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        double share = share_of_sum(&tries[i]);

        print_message("%4.0f and %4.0f MB/s: %.1f %% of the sum\n", tries[i].rate[0] / 1e6,
                      tries[i].rate[1] / 1e6, 100 * share);
        assert_true(share >= 0.95);
    }
    assert_true(share_of_sum(&hopeless) >= 0.92);
}

/* --- sessions --- */

static void a_session_has_the_same_bits(void **state)
{
    const char *name = *state, *path = model_path(name);
    char copy[200], folder[] = "/tmp/mirror-XXXXXX", command[900];
    struct mw_options o = small_options(64);
    struct mw_session *a, *b;
    struct mw_model_info info;
    struct mw_sample *sample = malloc(sizeof *sample);
    struct mw_limits l = { .disk_bytes_s = 1e9, .mirror_bytes_s = 5e8, .memory_bytes_s = 1e10 };
    struct err e = ERR_INIT;
    struct mw_model *m;
    uint32_t ids[40];

    m = open_model(name);
    assert_non_null(mkdtemp(folder));
    snprintf(copy, sizeof copy, "%s/%s", folder, strrchr(path, '/') + 1);
    snprintf(command, sizeof command, "cp -rL '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0);
    mw_model_info(m, &info);
    for (uint32_t i = 0; i < 40; i++)
        ids[i] = i * 7 % info.n_vocab;
    mw_model_set_limits(m, &l);
    o.memory_bytes = smallest_budget(m, &o);
    a = open_session(m, &o);
    o.mirror = copy;
    o.memory_bytes = smallest_budget(m, &o);
    b = open_session(m, &o);
    for (int i = 0; i < 40; i += 4) {
        eval(a, ids + i, 4);
        eval(b, ids + i, 4);
        assert_memory_equal(mw_session_logits(a), mw_session_logits(b),
                            info.n_vocab * sizeof(float));
    }
    mw_session_sample(b, sample);
    assert_true(sample->disk_limit == 1500000000);
    assert_true(sample->io.mirror == MW_MIRROR_USED && sample->io.disk_bytes[0] > 0);
    assert_string_not_equal(mw_mirror_notice(m, &o), ""); /* it is on the same disk */
    assert_false(session_lost_mirror(b, &e));
    mw_session_close(a);
    mw_session_close(b);
    o.io = MW_IO_MMAP;
    assert_int_equal(mw_session_open(&b, m, &o, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    o.io = MW_IO_AUTO;
    o.mirror = "/proc/self/nothing";
    e = (struct err)ERR_INIT;
    assert_int_equal(mw_session_open(&b, m, &o, &e), -1);
    assert_int_equal(e.code, ERR_IO);
    tree_remove(folder);
    free(sample);
    mw_model_close(m);
}

#define OF(test, name, arg)                                                                    \
    {                                                                                          \
#test ": " name, test, NULL, end, arg                                                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(both_disks_deliver_the_same_bytes, "direct io_uring", &modes[0]),
        OF(both_disks_deliver_the_same_bytes, "direct pread", &modes[1]),
        OF(both_disks_deliver_the_same_bytes, "buffered io_uring", &modes[2]),
        OF(both_disks_deliver_the_same_bytes, "buffered pread", &modes[3]),
        OF(a_copy_that_fails_is_dropped, "direct io_uring", &modes[0]),
        OF(a_copy_that_fails_is_dropped, "direct pread", &modes[1]),
        OF(a_copy_that_fails_is_dropped, "buffered io_uring", &modes[2]),
        cmocka_unit_test_setup_teardown(files_that_differ_are_refused, begin, end),
        cmocka_unit_test(a_copy_that_is_not_complete_is_refused),
        cmocka_unit_test(a_copy_with_very_many_holes_is_refused),
        cmocka_unit_test(nobody_waits_for_a_trial),
        cmocka_unit_test(two_disks_deliver_the_sum),
        { "a session: a file", a_session_has_the_same_bits, NULL, NULL,
          (void *)(uintptr_t) "gemma4-tiny-q4_0.gguf" },
        { "a session: a snapshot", a_session_has_the_same_bits, NULL, NULL,
          (void *)(uintptr_t) "f-gptoss" },
        { "a session: experts", a_session_has_the_same_bits, NULL, NULL,
          (void *)(uintptr_t) "f-deepseek3.gguf" },
    };

    return cmocka_run_group_tests_name("mirror", tests, NULL, NULL);
}
