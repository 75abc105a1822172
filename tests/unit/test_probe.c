/* The probes: their bounds, their end, and that each block is read once. */
#include "config.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/cpu_cache.h"
#include "engine/base/units.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/probe.h"
#include "engine/machine/probe_internal.h"
#include "tests/lib/stream_model.h"

static struct stream_model model;

static int set_up(void **state)
{
    (void)state;
    model_seed(11);
    model_make(&model, 3000000);
    (void)fsync(model.files[0].fd); /* dirty blocks would be left out */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    model_remove(&model);
    return 0;
}

/* Whether pages of the file leave the page cache when nobody maps them.  Those of a file system
 * in memory never do, although it takes direct reads. */
static bool pages_can_be_dropped(void)
{
    struct mw_os_value cached;

    (void)posix_fadvise(model.files[0].fd, 0, 0, POSIX_FADV_DONTNEED);
    cached = pagecache_bytes(model.files[0].fd, model.files[0].size);
    return cached.why_not == NULL && cached.value == 0;
}

/* There is time for everything, so every complete block is read once. */
static void a_small_file_is_read_once(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = MIB };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    for (uint32_t depth = 1; depth <= 8; depth++) {
        int result = probe_disk(model.files[0].fd, true, depth, 64 * KIB, &o, &r, &e);

        if (result != 0 && e.code == ERR_UNSUPPORTED)
            skip();
        assert_int_equal(result, 0);
        assert_int_equal(r.bytes, model.files[0].size / (64 * KIB) * (64 * KIB));
        assert_true(r.bytes_s > 0 && r.seconds > 0);
        assert_int_equal(probe_disk(model.files[0].fd, false, depth, 64 * KIB, &o, &r, &e), 0);
        assert_int_equal(r.bytes, model.files[0].size / (64 * KIB) * (64 * KIB));
    }
}

/* Direct and buffered reads get different blocks, and both get some. */
static void both_kinds_of_read_share_the_blocks(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = MIB };
    uint64_t n_block = model.files[0].size / (32 * KIB);
    struct probe_rate direct, buffered;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(
        probe_disk_both(model.files[0].fd, 4, 32 * KIB, &o, &direct, &buffered, &e), 0);
    if (direct.bytes == 0 || !pages_can_be_dropped())
        skip();
    assert_true(direct.bytes >= n_block * 32 * KIB / 4);
    assert_true(buffered.bytes >= n_block * 32 * KIB / 4);
    assert_true(direct.bytes + buffered.bytes <= n_block * 32 * KIB);
    assert_true(direct.bytes_s > 0 && buffered.bytes_s > 0);
}

/* Pages that another program maps cannot be dropped, so reading them would measure memory. */
static void a_file_that_stays_cached_is_not_compared(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = MIB };
    size_t size = model.files[0].size;
    struct probe_rate direct, buffered;
    struct err e = ERR_INIT;
    volatile unsigned char *p =
        mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, model.files[0].fd, 0);

    (void)state;
    assert_true(p != MAP_FAILED);
    assert_int_equal(
        probe_disk_both(model.files[0].fd, 4, 32 * KIB, &o, &direct, &buffered, &e), 0);
    munmap((void *)(uintptr_t)p, size);
    if (direct.bytes == 0 || !pages_can_be_dropped())
        skip();
    assert_int_equal(buffered.bytes, 0);
    assert_true(direct.is_cached);
}

/* Count the blocks without a page in the page cache, after those that can be dropped were.  A page
 * that the kernel reads ahead cannot be dropped until it has arrived, so all are waited for. */
static uint64_t uncached_blocks(uint64_t n_block, uint64_t block)
{
    int fd = model.files[0].fd;
    unsigned char *buffer = malloc(block);
    uint64_t n = 0;

    assert_non_null(buffer);
    for (uint64_t i = 0; i < n_block; i++)
        assert_int_equal(pread(fd, buffer, block, (off_t)(i * block)), block);
    free(buffer);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    for (uint64_t i = 0; i < n_block; i++) {
        struct mw_os_value cached = pagecache_bytes_at(fd, i * block, block);

        n += cached.why_not == NULL && cached.value == 0;
    }
    return n;
}

/* Blocks with pages that cannot be dropped are left out while there are others.  Where the page
 * cache has large folios, the mapped half keeps some pages of the other half. */
static void cached_blocks_are_left_out(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = MIB };
    size_t half = model.files[0].size / 2 / (32 * KIB) * (32 * KIB);
    uint64_t n_block = model.files[0].size / (32 * KIB), n_left;
    struct probe_rate direct, buffered;
    struct err e = ERR_INIT;
    volatile unsigned char *p =
        mmap(NULL, half, PROT_READ, MAP_SHARED | MAP_POPULATE, model.files[0].fd, 0);

    (void)state;
    assert_true(p != MAP_FAILED);
    n_left = uncached_blocks(n_block, 32 * KIB);
    assert_int_equal(
        probe_disk_both(model.files[0].fd, 4, 32 * KIB, &o, &direct, &buffered, &e), 0);
    munmap((void *)(uintptr_t)p, half);
    if (direct.bytes == 0 || n_left == 0 || !pages_can_be_dropped())
        skip();
    assert_true(n_left <= n_block - half / (32 * KIB));
    assert_int_equal(direct.bytes + buffered.bytes, n_left * 32 * KIB);
    assert_false(direct.is_cached || buffered.is_cached);
}

static double own_cpu_s(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All blocks but a few are mapped, and are looked at one after the other.  That takes most of the
 * processor time, and is not the time of a read. */
static void looking_for_blocks_is_not_reading(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = 4 * KIB };
    const size_t mapped = 64 * MIB, left = 64 * KIB;
    char path[] = "probe-XXXXXX";
    int fd = mkstemp(path), rc;
    struct probe_rate r;
    struct err e = ERR_INIT;
    volatile unsigned char *p;
    double cpu_s;

    (void)state;
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)(mapped + left)), 0);
    p = mmap(NULL, mapped, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    assert_true(p != MAP_FAILED);
    cpu_s = own_cpu_s();
    rc = probe_disk(fd, true, 1, 4 * KIB, &o, &r, &e);
    cpu_s = own_cpu_s() - cpu_s;
    munmap((void *)(uintptr_t)p, mapped);
    close(fd);
    if (rc != 0 || r.bytes == 0 || r.bytes > left || r.is_cached)
        skip();
    assert_true(r.cpu_s > 0);
    assert_true(r.cpu_s * (double)r.bytes < cpu_s / 10);
}

static void a_probe_takes_longer_only_if_it_is_doubtful(void **state)
{
    const struct probe_rate sure = { .spread = PROBE_SPREAD, .load = PROBE_LOAD },
                            spread = { .spread = PROBE_SPREAD + 0.01 },
                            busy = { .load = PROBE_LOAD + 0.01 }, unknown = { .load = -1 };
    const struct probe_options o = { .seconds = 0.04,
                                     .more_seconds = 0.02,
                                     .buffer_bytes = 4 * MIB };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    assert_false(probe_is_doubtful(&sure) || probe_is_doubtful(&unknown));
    assert_true(probe_is_doubtful(&spread) && probe_is_doubtful(&busy));
    assert_int_equal(probe_memory(1, &o, &r, &e), 0);
    assert_true(r.seconds >= (probe_is_doubtful(&r) ? 0.06 : 0.04));
    assert_true(r.spread >= 0 && r.load <= 1);
}

static void a_file_without_a_whole_block_gives_no_rate(void **state)
{
    const struct probe_options o = { .seconds = 1e9, .buffer_bytes = GIB };
    struct probe_rate direct, buffered;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(probe_disk_both(model.files[0].fd, 4, 8 * MIB, &o, &direct, &buffered, &e),
                     0);
    assert_true(direct.bytes == 0 && buffered.bytes == 0);
}

static void blocks_shrink_to_the_buffers_allowed(void **state)
{
    struct probe_options o = { .seconds = 1e9, .buffer_bytes = 40000 };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(probe_disk(model.files[0].fd, false, 4, 4 * MIB, &o, &r, &e), 0);
    assert_int_equal(r.bytes, model.files[0].size / 8192 * 8192);
    o.buffer_bytes = 4 * 4095;
    assert_int_equal(probe_disk(model.files[0].fd, false, 4, 4 * MIB, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_int_equal(probe_memory(4, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_BUDGET);
    assert_int_equal(probe_disk(model.files[0].fd, false, 0, MIB, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
    assert_int_equal(probe_memory(0, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
}

static void a_cancelled_probe_ends(void **state)
{
    static _Atomic bool cancelled = true;
    const struct probe_options o = { .seconds = 1e9,
                                     .buffer_bytes = MIB,
                                     .cancelled = &cancelled };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(probe_memory(2, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
    assert_int_equal(probe_disk(model.files[0].fd, false, 2, MIB, &o, &r, &e), -1);
    assert_int_equal(e.code, ERR_CANCELLED);
}

static void a_file_shorter_than_a_block_measures_nothing(void **state)
{
    const struct probe_options o = { .seconds = 1, .buffer_bytes = 64 * MIB };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(probe_disk(model.files[0].fd, true, 1, 16 * MIB, &o, &r, &e), 0);
    assert_true(r.bytes == 0 && !(r.bytes_s > 0));
}

static void memory_is_summed_by_all_threads(void **state)
{
    const struct probe_options o = { .seconds = 0.01, .buffer_bytes = 4 * MIB };
    struct probe_rate r;
    struct err e = ERR_INIT;

    (void)state;
    for (int n = 1; n <= 3; n++) {
        assert_int_equal(probe_memory(n, &o, &r, &e), 0);
        assert_true(r.bytes >= o.buffer_bytes / 64 * 60 && r.bytes_s > 0);
    }
}

static void bytes_dropped_from_the_caches_stay_in_memory(void **state)
{
    enum { N = 100000 };
    unsigned char *p = test_malloc(N);
    uint32_t sum = 0;

    (void)state;
    for (size_t i = 0; i < N; i++)
        p[i] = (unsigned char)(i * 7);
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(cpu_cache_drop(p + 3, N - 7)); /* not at the bounds of lines */
#else
    assert_false(cpu_cache_drop(p + 3, N - 7));
#endif
    for (size_t i = 0; i < N; i++)
        sum += p[i] != (unsigned char)(i * 7);
    assert_int_equal(sum, 0);
    test_free(p);
}

static void a_small_buffer_or_file_shows_no_contention(void **state)
{
    struct probe_options o = { .seconds = 0.01, .buffer_bytes = MIB };
    struct err e = ERR_INIT;
    double k = -1;

    (void)state;
    assert_int_equal(probe_contention(model.files[0].fd, false, 2, 4096, 2, &o, &k, &e), 0);
    assert_true(k >= 0 && k <= 0);
    o.buffer_bytes = 64 * MIB; /* the file ends in the first slices */
    k = -1;
    assert_int_equal(probe_contention(model.files[0].fd, false, 2, 4096, 2, &o, &k, &e), 0);
    assert_true(k >= 0 && k <= 1);
    assert_int_equal(probe_contention(model.files[0].fd, false, 2, 4096, 0, &o, &k, &e), -1);
    assert_int_equal(e.code, ERR_ARGUMENT);
}

static void fresh_memory_is_measured_within_its_buffer(void **state)
{
    struct probe_options o = { .seconds = 0, .buffer_bytes = 3 * MIB };
    struct err e = ERR_INIT;
    double rate = -1;

    (void)state;
    assert_int_equal(probe_fresh(&o, &rate, &e), 0);
    assert_true(rate > 0);
    o.buffer_bytes = MIB - 1;
    assert_int_equal(probe_fresh(&o, &rate, &e), 0);
    assert_true(rate <= 0); /* not measured */
    o.buffer_bytes = UINT64_MAX;
    assert_int_equal(probe_fresh(&o, &rate, &e), -1);
    assert_int_equal(e.code, ERR_MEMORY);
}

/* Each thread reads MIB in a second.  Those without a processor read at other times. */
static void threads_without_a_processor_add_no_rate(void **state)
{
    struct probe_crew c = { .buffer_bytes = MIB };
    cpu_set_t set;
    int n_cpu;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    n_cpu = CPU_COUNT(&set);
    for (int n = 1; n <= 4 * n_cpu; n++) {
        const double at_once = n < n_cpu ? n : n_cpu;

        probe_prepare(&c, n, 1);
        c.bytes = (uint64_t)n * MIB;
        c.sum_ns = (uint64_t)n * 1000000000;
        assert_int_equal(probe_slice_rate(&c, 0, 1), at_once * MIB);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_small_file_is_read_once),
        TEST(both_kinds_of_read_share_the_blocks),
        TEST(a_file_that_stays_cached_is_not_compared),
        TEST(a_file_without_a_whole_block_gives_no_rate),
        TEST(blocks_shrink_to_the_buffers_allowed),
        TEST(cached_blocks_are_left_out),
        TEST(looking_for_blocks_is_not_reading),
        TEST(a_probe_takes_longer_only_if_it_is_doubtful),
        TEST(a_cancelled_probe_ends),
        TEST(a_file_shorter_than_a_block_measures_nothing),
        TEST(memory_is_summed_by_all_threads),
        TEST(threads_without_a_processor_add_no_rate),
        TEST(bytes_dropped_from_the_caches_stay_in_memory),
        TEST(a_small_buffer_or_file_shows_no_contention),
        TEST(fresh_memory_is_measured_within_its_buffer),
    };

    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
