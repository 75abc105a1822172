/* The slow sampler, on a tree that replaces the system and on the system itself. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/machine/thread_use.h"
#include "engine/telemetry/watch.h"
#include "tests/lib/tree.h"

static void put_system(const char *procs)
{
    tree_put("/proc/self/status",
             "VmHWM: 5000 kB\nVmRSS: 4000 kB\nRssAnon: 3000 kB\nRssFile: 1000 kB\n"
             "RssShmem: 0 kB\nVmPTE: 100 kB\nVmSwap: 20 kB\n");
    tree_put("/proc/self/stat", "7 (x) R 1 2 3 4 5 6 7 8 99 10 11\n");
    tree_put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n");
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/a/memory.max", "2048000000\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "1000000\n");
    tree_put("/sys/fs/cgroup/a/cgroup.procs", procs);
    tree_put("/proc/pressure/io", "some avg10=7.50 avg60=0.00\n");
}

static void a_group_of_our_own_reports_our_charge(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_os os;

    (void)state;
    put_system("12\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    watch_read(w, &os);
    assert_null(os.charged.why_not);
    assert_int_equal(os.charged.value, 1000000);
    assert_int_equal(os.own.value, 4120 * KIB);
    assert_int_equal(os.available.value, 2047000000);
    assert_int_equal(os.psi_io_some10.value, 750);
    assert_non_null(os.psi_memory_some10.why_not);
    assert_int_equal(os.majflt.value, 0); /* since the watch began */
    tree_put("/proc/self/stat", "7 (x) R 1 2 3 4 5 6 7 8 104 10 11\n");
    watch_read(w, &os);
    assert_int_equal(os.majflt.value, 5);
    mw_watch_free(w);
}

static void a_shared_group_does_not_report_our_charge(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    put_system("12\n13\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    mw_watch_complete(w, s);
    assert_string_equal(s->os.charged.why_not, "other processes share the control group");
    assert_int_equal(s->os.limit.value, 2048000000);
    assert_true(s->os.t_ns != 0);
    assert_int_equal(s->verdict.binds, MW_BINDS_NONE);
    mw_watch_free(w);
    free(s);
}

/* When the model was opened, 3000 of 4000 KiB were resident. 1000 of them are file pages, of
 * which the group is charged with only 400 KiB. */
static void rows_that_only_the_kernel_knows_are_filled_in(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    put_system("12\n");
    tree_put("/sys/fs/cgroup/a/memory.stat", "file 409600\nkernel 65536\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    s->mem.used[MW_ROW_PROGRAM] = 3000 * KIB;
    mw_watch_complete(w, s);
    assert_int_equal(s->mem.used[MW_ROW_PROGRAM], 2400 * KIB);
    assert_int_equal(s->mem.used[MW_ROW_RESERVE], 64 * KIB);
    assert_int_equal(s->os.model_charged.value, 0);
    mw_watch_free(w);
    put_system("12\n13\n"); /* shared: only the part of the process */
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    s->mem.used[MW_ROW_PROGRAM] = 3000 * KIB;
    mw_watch_complete(w, s);
    assert_int_equal(s->mem.used[MW_ROW_PROGRAM], 3000 * KIB);
    assert_int_equal(s->mem.used[MW_ROW_RESERVE], 100 * KIB);
    mw_watch_free(w);
    free(s);
}

/* The kernel's peak covers every process that was ever in the group. */
static void the_peak_of_earlier_processes_is_not_ours(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_os os;

    (void)state;
    put_system("12\n");
    tree_put("/sys/fs/cgroup/a/memory.peak", "900000000\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    watch_read(w, &os);
    assert_int_equal(os.charged_peak.value, 1000000);
    tree_put("/sys/fs/cgroup/a/memory.peak", "900004096\n");
    watch_read(w, &os);
    assert_int_equal(os.charged_peak.value, 900004096);
    mw_watch_free(w);
}

static void put_peaks(const char *charged, const char *peak, const char *status)
{
    tree_put("/sys/fs/cgroup/a/memory.current", charged);
    tree_put("/sys/fs/cgroup/a/memory.peak", peak);
    tree_put("/proc/self/status", status);
}

/* A small answer after a large one: the kernel's peaks are those of the large one. */
static void the_peak_of_an_answer_is_its_own(void **state)
{
    struct err e = ERR_INIT;
    uint64_t charged, resident;
    struct mw_watch *w;

    (void)state;
    put_system("12\n");
    put_peaks("9000000\n", "9000000\n", "VmHWM: 9000 kB\nVmRSS: 9000 kB\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    put_peaks("2000000\n", "9000000\n", "VmHWM: 9000 kB\nVmRSS: 2000 kB\n");
    mw_watch_begin_answer(w);
    put_peaks("3000000\n", "9000000\n", "VmHWM: 9000 kB\nVmRSS: 3000 kB\n");
    mw_watch_end_answer(w, &charged, &resident);
    assert_int_equal(charged, 3000000);
    tree_put("/sys/fs/cgroup/a/cgroup.procs", "12\n13\n"); /* our charge is not known */
    mw_watch_end_answer(w, &charged, &resident);
    assert_int_equal(charged, 0);
    assert_int_equal(resident, 3000 * KIB);
    put_peaks("3000000\n", "9500000\n", "VmHWM: 9500 kB\nVmRSS: 3000 kB\n");
    mw_watch_end_answer(w, &charged, &resident);
    assert_int_equal(resident, 9500 * KIB);
    mw_watch_free(w);
}

/* A process before us left 3 MB of page cache, and we map none of it. */
static void page_cache_of_other_processes_is_not_the_program(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    put_system("12\n");
    tree_put("/sys/fs/cgroup/a/memory.stat", "file 4096000\nkernel 65536\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    s->mem.used[MW_ROW_PROGRAM] = 3000 * KIB;
    mw_watch_complete(w, s);
    assert_int_equal(s->os.model_charged.value, 4096000 - 1000 * KIB);
    assert_int_equal(s->mem.used[MW_ROW_PROGRAM], 3000 * KIB);
    mw_watch_free(w);
    free(s);
}

/* The rows of a sample are compared with figures of the same moment. */
static void the_parts_of_the_meter_are_read_on_request(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    put_system("12\n");
    assert_int_equal(watch_start(&w, tree_root, NULL, 0, &e), 0);
    tree_put("/sys/fs/cgroup/a/memory.current", "7000000\n");
    tree_put("/proc/self/status",
             "VmRSS: 9000 kB\nRssAnon: 8000 kB\nRssFile: 1000 kB\nVmPTE: 100 kB\n");
    mw_watch_complete(w, s);
    assert_int_equal(s->os.charged.value, 7000000);
    assert_int_equal(s->os.rss.value, 9000 * KIB);
    mw_watch_free(w);
    free(s);
}

static void put_thread(const char *id, const char *name, unsigned ticks)
{
    char path[64], text[160];

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    snprintf(text, sizeof text, "%s (%s) R 1 2 3 4 5 6 7 8 9 10 %u %u 0 0 20 0\n", id, name,
             ticks / 2, ticks - ticks / 2);
    tree_put(path, text);
}

/* A clock tick is 10 ms.  The thread "late" is new, so all of its time counts. */
static void the_cpu_time_of_each_thread_is_a_share_of_the_time_between(void **state)
{
    struct mw_thread thread[MW_MAX_THREAD];
    struct timespec part = { 0, 100000000 };
    struct thread_use u;
    uint64_t start;
    double s;

    (void)state;
    put_thread("7", "memwall", 1000);
    put_thread("9", "a (b) c", 500);
    thread_use_open(&u, tree_root);
    assert_int_equal(thread_use_read(&u, thread), 0);
    start = u.t_ns;
    nanosleep(&part, NULL);
    put_thread("7", "memwall", 1000);
    put_thread("9", "a (b) c", 505);
    put_thread("12", "late", 1000000);
    assert_int_equal(thread_use_read(&u, thread), 3);
    s = (double)(u.t_ns - start) / 1e9;
    for (int i = 0; i < 3; i++) {
        if (strcmp(thread[i].name, "memwall") == 0)
            assert_true(thread[i].busy == 0);
        else if (strcmp(thread[i].name, "late") == 0)
            assert_true(thread[i].busy == 1);
        else
            assert_true(fabs(thread[i].busy - 0.05 / s) < 1e-6);
    }
    thread_use_close(&u);
}

static void without_proc_no_thread_is_listed(void **state)
{
    struct mw_thread thread[MW_MAX_THREAD];
    struct thread_use u;

    (void)state;
    thread_use_open(&u, tree_root);
    assert_int_equal(thread_use_read(&u, thread), 0);
    assert_int_equal(thread_use_read(&u, thread), 0);
    thread_use_close(&u);
}

static void this_system_can_be_watched(void **state)
{
    struct err e = ERR_INIT;
    struct mw_watch *w;
    struct mw_sample *s = calloc(1, sizeof *s);

    (void)state;
    assert_int_equal(watch_start(&w, "", NULL, 0, &e), 0);
    mw_watch_complete(w, s);
    assert_null(s->os.rss.why_not);
    assert_true(s->os.rss.value > 0);
    assert_true(s->os.own.value >= s->os.rss_anon.value);
    assert_int_equal(s->os.model_cached.value, 0);
    if (getenv("MW_SANITIZED") == NULL) /* ThreadSanitizer has a thread of its own */
        assert_int_equal(s->os.n_thread, 1); /* the watcher was not started yet */
    assert_string_not_equal(s->os.thread[0].name, "");
    mw_watch_free(w);
    free(s);
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        in_a_tree(a_group_of_our_own_reports_our_charge),
        in_a_tree(a_shared_group_does_not_report_our_charge),
        in_a_tree(rows_that_only_the_kernel_knows_are_filled_in),
        in_a_tree(the_peak_of_earlier_processes_is_not_ours),
        in_a_tree(the_peak_of_an_answer_is_its_own),
        in_a_tree(page_cache_of_other_processes_is_not_the_program),
        in_a_tree(the_parts_of_the_meter_are_read_on_request),
        in_a_tree(the_cpu_time_of_each_thread_is_a_share_of_the_time_between),
        in_a_tree(without_proc_no_thread_is_listed),
        in_a_tree(this_system_can_be_watched),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
