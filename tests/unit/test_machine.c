/* The kernel's figures, read from trees that replace /proc and /sys. */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fcntl.h>
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

#include "engine/base/units.h"
#include "engine/machine/cgroup.h"
#include "engine/machine/machine.h"
#include "engine/machine/pagecache.h"
#include "engine/machine/proc.h"
#include "engine/machine/psi.h"
#include "engine/machine/survey.h"
#include "tests/lib/tree.h"

static void assert_value(struct mw_os_value v, uint64_t want)
{
    assert_null(v.why_not);
    assert_int_equal(v.value, want);
}

static void rss_is_split_as_the_kernel_splits_it(void **state)
{
    struct proc p;
    struct proc_self self;

    (void)state;
    tree_put("/proc/self/status",
             "Name:\tx\nVmHWM:\t  5000 kB\nVmRSS:\t  4000 kB\nRssAnon:\t  3000 kB\n"
             "RssFile:\t   900 kB\nRssShmem:\t   100 kB\nVmPTE:\t    48 kB\n");
    tree_put("/proc/self/stat", "7 (a b) c) R 1 2 3 4 5 6 7 8 99 10 11\n");
    proc_open(&p, tree_root);
    proc_read_self(&p, &self);
    proc_close(&p);
    assert_value(self.rss, 4000 * KIB);
    assert_value(self.rss_anon, 3000 * KIB);
    assert_value(self.rss_file, 900 * KIB);
    assert_value(self.rss_peak, 5000 * KIB);
    assert_value(self.page_tables, 48 * KIB);
    assert_value(self.majflt, 99);
    assert_string_equal(self.swapped.why_not, "not reported by this kernel");
}

static void a_system_without_proc_gives_reasons_and_no_numbers(void **state)
{
    struct proc p;
    struct proc_self self;
    struct proc_system system;
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    proc_open(&p, tree_root);
    proc_read_self(&p, &self);
    proc_read_system(&p, &system);
    proc_close(&p);
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    cgroup_close(&c);
    assert_non_null(self.rss.why_not);
    assert_non_null(self.majflt.why_not);
    assert_non_null(system.available.why_not);
    assert_non_null(system.swap_used.why_not);
    assert_non_null(m.charged.why_not);
    assert_non_null(m.limit.why_not);
    assert_false(m.is_alone);
}

static void the_system_reports_memory_swap_and_refaults(void **state)
{
    struct proc p;
    struct proc_system system;

    (void)state;
    tree_put("/proc/meminfo",
             "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    9000000 kB\n"
             "Cached:          4000000 kB\nSwapCached: 5 kB\nSwapTotal:       1000000 kB\n"
             "SwapFree:         400000 kB\n");
    tree_put("/proc/vmstat", "pgmajfault 5\nworkingset_refault_file 14600\n");
    proc_open(&p, tree_root);
    proc_read_system(&p, &system);
    proc_close(&p);
    assert_value(system.total, 16000000 * KIB);
    assert_value(system.available, 9000000 * KIB);
    assert_value(system.cached, 4000000 * KIB);
    assert_value(system.swap_used, 600000 * KIB);
    assert_value(system.refaults, 14600);
}

#define ARC(size, c_min)                                                                       \
    "13 1 0x01 123 33456 1 2\nname                            type data\n"                     \
    "hits                            4    77\nc                               4    " size      \
    "\nc_min                           4    " c_min                                            \
    "\nc_max                           4    24000000000\n"                                     \
    "size                            4    " size "\nhdr_size                        4    5\n"

/* Returns the available memory in GiB of a machine with 32 GiB, of which 6 are available
 * without ZFS. */
static uint64_t available_gib(const char *meminfo, const char *arc)
{
    struct mw_machine m;
    char text[400];

    snprintf(text, sizeof text, "MemTotal: 33554432 kB\nMemAvailable: 6291456 kB\n%s", meminfo);
    tree_put("/proc/meminfo", text);
    tree_put("/proc/spl/kstat/zfs/arcstats", arc);
    machine_read(tree_root, &m);
    assert_int_equal(m.available_bytes, m.budget_bytes - m.own_bytes);
    return m.available_bytes / GIB;
}

static void memory_that_gives_way_is_available(void **state)
{
    (void)state;
    assert_int_equal(available_gib("", ARC("21474836480", "1073741824")), 6 + 19);
    assert_int_equal(available_gib("", ARC("21474836480", "0")), 6 + 20);
    /* Nothing gives way below c_min, and unknown or impossible figures do not count. */
    assert_int_equal(available_gib("", ARC("1073741824", "2147483648")), 6);
    assert_int_equal(available_gib("", ARC("-1", "0")), 6);
    assert_int_equal(available_gib("", ARC("68719476736", "0")), 6);
    assert_int_equal(available_gib("", ARC("28991029249", "0")), 6);
    assert_int_equal(available_gib("", "size 4\n"), 6);
    assert_int_equal(available_gib("", ""), 6);
    /* Huge pages that are reserved, files in memory and swap are not free for others. */
    assert_int_equal(available_gib("HugePages_Total: 4096\nHugePages_Free: 4096\n"
                                   "Hugetlb: 8388608 kB\nShmem: 4194304 kB\n"
                                   "SwapFree: 8388608 kB\nZswap: 1048576 kB\n",
                                   ""),
                     6);
}

/* A group does not see the cache of ZFS, but its own caches. */
static void caches_of_a_group_are_available(void **state)
{
    struct mw_machine m;

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 6291456 kB\n");
    tree_put("/proc/spl/kstat/zfs/arcstats", ARC("21474836480", "1073741824"));
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo",
             "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/a/memory.max", "2000000000\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "1900000000\n");
    tree_put("/sys/fs/cgroup/a/memory.stat",
             "inactive_file 300000000\nactive_file 100000000\nslab_reclaimable 200000000\n");
    machine_read(tree_root, &m);
    assert_int_equal(m.available_bytes, 600000000);
}

#define V1_MOUNT                                                                               \
    "30 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"                                        \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n"             \
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define V2_MOUNT "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw\n"

static void version_1_takes_the_smallest_limit_of_all_levels(void **state)
{
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    tree_put("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n");
    tree_put("/proc/self/mountinfo", V1_MOUNT);
    tree_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000000\n");
    tree_put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900000000\n");
    tree_put("/sys/fs/cgroup/memory/a/memory.stat",
             "inactive_file 5\ntotal_inactive_file 100000000\ntotal_active_file 50000000\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "2000000000\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "123456\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.max_usage_in_bytes", "234567\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.kmem.usage_in_bytes", "4096\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.stat",
             "cache 8192\nworkingset_refault_file 77\n");
    tree_put("/sys/fs/cgroup/memory/a/b/cgroup.procs", "4711\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    assert_int_equal(c.version, CGROUP_V1);
    assert_int_equal(c.n_level, 3);
    cgroup_close(&c);
    assert_value(m.charged, 123456);
    assert_value(m.peak, 234567);
    assert_value(m.kernel, 4096);
    assert_value(m.file, 8192);
    assert_value(m.refaults, 77);
    assert_value(m.limit, 1000000000);
    assert_value(m.room, 250000000);
    assert_true(m.is_alone);
}

static void version_2_reads_max_and_high_and_the_kernel_part(void **state)
{
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    tree_put("/proc/self/cgroup", "0::/user.slice/x.scope\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/cgroup.procs", "");
    tree_put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    tree_put("/sys/fs/cgroup/user.slice/memory.high", "800000000\n");
    tree_put("/sys/fs/cgroup/user.slice/memory.current", "300000000\n");
    tree_put("/sys/fs/cgroup/user.slice/x.scope/memory.max", "900000000\n");
    tree_put("/sys/fs/cgroup/user.slice/x.scope/memory.current", "200000000\n");
    tree_put("/sys/fs/cgroup/user.slice/x.scope/memory.stat",
             "anon 1\nfile 5000\nkernel 65536\nworkingset_refault_file 3\n");
    tree_put("/sys/fs/cgroup/user.slice/x.scope/cgroup.procs", "1\n2\n");
    tree_put("/sys/fs/cgroup/user.slice/x.scope/memory.pressure",
             "some avg10=12.34 avg60=0.00 avg300=0.00 total=9\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    assert_int_equal(c.version, CGROUP_V2);
    assert_value(psi_some10(c.pressure_memory), 1234);
    assert_non_null(psi_some10(c.pressure_io).why_not);
    cgroup_close(&c);
    assert_value(m.charged, 200000000);
    assert_non_null(m.peak.why_not);
    assert_value(m.kernel, 65536);
    assert_value(m.file, 5000);
    assert_value(m.limit, 800000000);
    assert_value(m.room, 500000000);
    assert_false(m.is_alone);
}

static void a_path_outside_of_the_mount_becomes_its_root(void **state)
{
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    tree_put("/proc/self/cgroup", "4:memory:/docker/abc\n");
    tree_put("/proc/self/mountinfo",
             "35 31 0:32 /docker/abc /my\\040mount rw - cgroup cgroup rw,memory\n");
    tree_put("/my mount/memory.usage_in_bytes", "42\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    cgroup_close(&c);
    assert_value(m.charged, 42);

    tree_put("/proc/self/cgroup", "4:memory:/../../elsewhere\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    assert_string_equal(c.folder, "/my mount");
    cgroup_close(&c);
    assert_value(m.charged, 42);
}

static void the_root_group_of_version_2_has_no_charge(void **state)
{
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    tree_put("/proc/self/cgroup", "0::/\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/cgroup.procs", "1\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    cgroup_close(&c);
    assert_string_equal(m.charged.why_not, "the root group has no figures of its own");
    assert_string_equal(m.limit.why_not, "no limit is set");
}

static void broken_files_of_the_kernel_give_no_figures(void **state)
{
    struct cgroup c;
    struct cgroup_memory m;

    (void)state;
    tree_put("/proc/self/cgroup", "\n:\n::\n4:memory\nmemory:4:/x\n0::/a\n");
    tree_put("/proc/self/mountinfo", "x - \n - cgroup2\n1 2 - cgroup2 a b\n" V2_MOUNT);
    tree_put("/sys/fs/cgroup/a/memory.current", "-5\n");
    tree_put("/sys/fs/cgroup/a/memory.max", "\n");
    tree_put("/sys/fs/cgroup/a/memory.stat", "kernel\nkernelx 5\nkernel x\n");
    cgroup_open(&c, tree_root);
    cgroup_read_memory(&c, &m);
    cgroup_close(&c);
    assert_non_null(m.charged.why_not);
    assert_non_null(m.limit.why_not);
    assert_non_null(m.kernel.why_not);
}

static void pressure_is_read_in_hundredths(void **state)
{
    struct psi_total total;

    (void)state;
    assert_value(psi_parse("some avg10=0.00 avg60=1.00\n"), 0);
    assert_value(psi_parse("some avg10=100.00 avg60=1.00\nfull avg10=3.00"), 10000);
    assert_non_null(psi_parse("").why_not);
    assert_non_null(psi_parse("some avg10=").why_not);
    assert_non_null(psi_parse("some avg10=nan").why_not);
    assert_non_null(psi_some10(-1).why_not);
    assert_true(psi_parse_total("some avg10=0.00 avg60=1.00 avg300=0.00 total=41818994\n"
                                "full avg10=0.00 avg60=0.00 avg300=0.00 total=18136580\n",
                                &total));
    assert_true(total.some_us == 41818994 && total.full_us == 18136580);
    assert_true(psi_parse_total("some avg10=0.00 total=7\n", &total));
    assert_true(total.some_us == 7 && total.full_us == 0);
    assert_false(psi_parse_total("", &total));
    assert_false(psi_parse_total("some avg10=0.00 total=", &total));
    assert_false(psi_parse_total("full avg10=0.00 total=7\n", &total));
    assert_false(psi_read_total(-1, &total));
}

static void the_machine_is_as_large_as_its_limits(void **state)
{
    struct mw_machine m;

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n");
    tree_put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n");
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/a/memory.max", "2000000000\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "500000000\n");
    tree_put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    machine_read(tree_root, &m);
    assert_int_equal(m.memory_bytes, 2000000000);
    assert_int_equal(m.available_bytes, 1500000000);
    assert_int_equal(m.n_cpu, 1);
    assert_int_equal(m.n_core, 1);
    assert_string_equal(m.cpu, "Some CPU");
    assert_string_equal(m.cpu_kind, "");

    machine_read("", &m);
    assert_true(m.n_cpu >= 1);
    assert_true(m.memory_bytes > 0);
    assert_true(m.available_bytes <= m.memory_bytes);
}

/* Different processors with one name. */
static void processors_have_a_kind(void **state)
{
    struct mw_machine m;

    (void)state;
    tree_put("/proc/cpuinfo", "processor\t: 0\ncpu family\t: 6\nmodel\t\t: 143\n"
                              "model name\t: Xeon\nstepping\t: 8\n\n"
                              "processor\t: 1\ncpu family\t: 6\nmodel\t\t: 7\n");
    machine_read(tree_root, &m);
    assert_string_equal(m.cpu, "Xeon");
    assert_string_equal(m.cpu_kind, "6-143-8");

    tree_put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
                              "CPU variant\t: 0x4\nCPU part\t: 0xd0b\nCPU revision\t: 1\n");
    machine_read(tree_root, &m);
    assert_string_equal(m.cpu_kind, "0x41-0x4-0xd0b-1");

    tree_put("/proc/cpuinfo", "cpu family\t: 6\x1b[2J and more\nmodel");
    machine_read(tree_root, &m);
    assert_string_equal(m.cpu_kind, "6?[2J");
}

/* Write the cores of all CPUs that a mask can hold: two threads each, as a range or as a list. */
static void put_cores(void)
{
    for (int i = 0; i < CPU_SETSIZE; i++) {
        char path[96], text[32];

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 i);
        snprintf(text, sizeof text, i / 2 % 2 == 0 ? "%d-%d\n" : "%d,%d\n", i & ~1, i | 1);
        tree_put(path, text);
    }
}

/* Allow the first n CPUs that this process may use; returns how many there were. */
static int allow_first(int n, const cpu_set_t *all, cpu_set_t *some)
{
    int count = 0;

    CPU_ZERO(some);
    for (int i = 0; i < CPU_SETSIZE && count < n; i++)
        if (CPU_ISSET(i, all)) {
            CPU_SET(i, some);
            count++;
        }
    assert_int_equal(sched_setaffinity(0, sizeof *some, some), 0);
    return count;
}

/* Put the capacity of the k-th CPU that this process may use, for all of them. */
static void put_capacities(const cpu_set_t *all, int (*capacity)(int k))
{
    for (int i = 0, k = 0; i < CPU_SETSIZE; i++) {
        char path[96], text[16];

        if (!CPU_ISSET(i, all))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        snprintf(text, sizeof text, "%d\n", capacity(k++));
        tree_put(path, text);
    }
}

static int first_is_large(int k)
{
    return k == 0 ? 1024 : 400;
}

static int first_is_a_little_larger(int k)
{
    return k == 0 ? 1024 : 870;
}

/* ARM reports the capacity of each CPU. */
static void efficient_cores_get_no_thread_by_default(void **state)
{
    cpu_set_t all, some;
    struct mw_machine m;
    int n;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    n = CPU_COUNT(&all);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, 0);
    put_capacities(&all, first_is_large);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_cpu, n);
    assert_int_equal(m.n_core, 1);
    assert_int_equal(m.n_efficient, n - 1);
    put_capacities(&all, first_is_a_little_larger);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_core, n);
    assert_int_equal(m.n_efficient, 0);

    /* Only efficient ones may be used. */
    put_capacities(&all, first_is_large);
    if (n > 1) {
        some = all;
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &all)) {
                CPU_CLR(i, &some);
                break;
            }
        assert_int_equal(sched_setaffinity(0, sizeof some, &some), 0);
        machine_read(tree_root, &m);
        assert_int_equal(m.n_core, n - 1);
        assert_int_equal(m.n_efficient, 0);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* Intel lists the CPUs of both kinds.  Damaged lists change nothing that they do not name. */
static void lists_of_efficient_cores_are_read(void **state)
{
    static const char *const damaged[] = { "", "\n", "x", "-", "1-", "99999999", "-5-3" };
    cpu_set_t all, one;
    struct mw_machine m;
    char text[64];
    int last = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET(i, &all) ? i : last;
    snprintf(text, sizeof text, "%d-%d,%d\n", last, last, CPU_SETSIZE + 3);
    tree_put("/sys/devices/cpu_atom/cpus", text);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, CPU_COUNT(&all) > 1 ? 1 : 0);
    assert_int_equal(m.n_core + m.n_efficient, CPU_COUNT(&all));
    assert_int_equal(m.n_low_power, 0);
    assert_int_equal(allow_first(1, &all, &one), 1);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_core, 1);
    assert_int_equal(m.n_efficient, 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    for (size_t k = 0; k < sizeof damaged / sizeof damaged[0]; k++) {
        tree_put("/sys/devices/cpu_atom/cpus", damaged[k]);
        machine_read(tree_root, &m);
        assert_in_range(m.n_core, 1, CPU_COUNT(&all));
        assert_int_equal(m.n_core + m.n_efficient, CPU_COUNT(&all));
    }
}

/* Some of Intel's processors have a third kind of core, in a list of its own. */
static void cores_of_least_power_get_no_thread_by_default(void **state)
{
    cpu_set_t all;
    struct mw_machine m;
    char text[32];
    int first = CPU_SETSIZE, last = 0, n;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    n = CPU_COUNT(&all);
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        first = CPU_ISSET(i, &all) ? i : first;
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET(i, &all) ? i : last;
    snprintf(text, sizeof text, "%d\n", last);
    tree_put("/sys/devices/cpu_lowpower/cpus", text);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, n > 1 ? 1 : 0);
    assert_int_equal(m.n_low_power, m.n_efficient);
    assert_int_equal(m.n_core + m.n_efficient, n);
    /* Where the others are efficient ones, they are the faster kind. */
    snprintf(text, sizeof text, "%d-%d\n", first, n > 1 ? last - 1 : last);
    tree_put("/sys/devices/cpu_atom/cpus", text);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, n > 1 ? 1 : 0);
    assert_int_equal(m.n_low_power, m.n_efficient);
}

static int all_are_alike(int k)
{
    (void)k;
    return 1024;
}

/* Newer systems report capacities beside the list of efficient cores, which then still counts. */
static void a_core_has_the_lower_of_two_capacities(void **state)
{
    cpu_set_t all;
    struct mw_machine m;
    char text[32];
    int last = 0, n;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    n = CPU_COUNT(&all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET(i, &all) ? i : last;
    snprintf(text, sizeof text, "%d\n", last);
    tree_put("/sys/devices/cpu_atom/cpus", text);
    put_capacities(&all, first_is_a_little_larger);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, n > 1 ? 1 : 0);
    assert_int_equal(m.n_core + m.n_efficient, n);
    put_capacities(&all, all_are_alike);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_efficient, n > 1 ? 1 : 0);
}

static void threads_of_a_core_count_once(void **state)
{
    cpu_set_t all, one;
    struct mw_machine m;
    int n_core = 0, last = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_cpu, CPU_COUNT(&all));
    assert_int_equal(m.n_core, CPU_COUNT(&all)); /* the system reports no cores */
    put_cores();
    for (int i = 0; i < CPU_SETSIZE; i++) {
        n_core += CPU_ISSET(i, &all) && (i % 2 == 0 || !CPU_ISSET(i - 1, &all));
        last = CPU_ISSET(i, &all) ? i : last;
    }
    machine_read(tree_root, &m);
    assert_int_equal(m.n_cpu, CPU_COUNT(&all));
    assert_int_equal(m.n_core, n_core);

    /* The second thread of a core is a core if the process may not use the first one. */
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    machine_read(tree_root, &m);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(m.n_cpu, 1);
    assert_int_equal(m.n_core, 1);

    tree_put("/sys/devices/system/cpu/smt/active", "0\n");
    machine_read(tree_root, &m);
    assert_int_equal(m.n_core, m.n_cpu);
}

/* A number of threads is chosen for so many cores and processors, not for others. */
static void a_number_of_threads_is_for_its_processors(void **state)
{
    cpu_set_t all, one;
    struct mw_machine m;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    machine_read(tree_root, &m);
    assert_int_equal(m.n_thread, m.n_core);
    assert_string_equal(m.threads_why, "one per processor");
    machine_choose_threads(m.n_core, m.n_cpu, 37, "it was measured");
    machine_read(tree_root, &m);
    assert_int_equal(m.n_thread, 37);
    assert_string_equal(m.threads_why, "it was measured");
    if (CPU_COUNT(&all) > 1) {
        (void)allow_first(1, &all, &one);
        machine_read(tree_root, &m);
        assert_int_equal(m.n_thread, 1);
        assert_string_equal(m.threads_why, "one per processor");
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    }
    machine_choose_threads(0, 0, 0, "");
    machine_read(tree_root, &m);
    assert_int_equal(m.n_thread, m.n_core);
}

static void nonsense_about_cores_counts_cpus(void **state)
{
    static const char *const texts[] = { "", "\n", "x", ",", "-1", "-", "5-", "99999999999999",
                                         "0-99999999999999,", "3-1\n" };
    char path[96];
    struct mw_machine m;
    cpu_set_t all;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        for (int i = 0; i < CPU_SETSIZE; i++) {
            snprintf(path, sizeof path,
                     "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
            if (CPU_ISSET(i, &all))
                tree_put(path, texts[k]);
        }
        machine_read(tree_root, &m);
        assert_in_range(m.n_core, 1, m.n_cpu);
    }
}

/* Apply the limits in the tree to a budget of that many bytes.  Returns the result, and the
 * reason in why. */
static uint64_t lowered(uint64_t bytes, char why[320])
{
    bool is_lower;

    why[0] = '\0';
    is_lower = machine_budget_lower(tree_root, &bytes, why, 320);
    assert_int_equal(is_lower, why[0] != '\0');
    return bytes;
}

static void a_budget_above_the_limit_of_a_group_is_lowered(void **state)
{
    struct mw_machine m;
    char why[320];

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n");
    tree_put("/proc/self/status", "VmRSS: 1 kB\nRssAnon: 1024 kB\nRssShmem: 0 kB\n");
    tree_put("/proc/self/cgroup", "4:memory:/a/b\n");
    tree_put("/proc/self/mountinfo", V1_MOUNT);
    tree_put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "314572800\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "3145728\n");
    tree_put("/sys/fs/cgroup/memory/a/b/cgroup.procs", "4711\n");
    assert_int_equal(lowered(300 * MIB, why),
                     300 * MIB); /* alone in the group: up to the last byte */
    assert_string_equal(why, "");
    machine_read(tree_root, &m);
    assert_string_equal(m.budget_short, "the control group's limit of 300 MiB");
    assert_int_equal(lowered(GIB, why), 300 * MIB);
    assert_string_equal(why, "the budget is lowered from 1.00 GiB to 300 MiB: "
                             "memory.limit_in_bytes of the control group /a/b is 300 MiB");

    /* Another process has 2 of the 3 MiB. Page cache that can be dropped does not count. */
    tree_put("/sys/fs/cgroup/memory/a/b/cgroup.procs", "4711\n4712\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "8388608\n");
    tree_put("/sys/fs/cgroup/memory/a/b/memory.stat", "total_inactive_file 5242880\n");
    assert_int_equal(lowered(300 * MIB, why), 298 * MIB);
    assert_non_null(strstr(why, "from 300 MiB to 298 MiB"));
    assert_non_null(strstr(why, "of which others use 2.00 MiB"));
    assert_int_equal(lowered(298 * MIB, why), 298 * MIB);

    /* The group above it has less left. */
    tree_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "419430400\n");
    tree_put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "315621376\n");
    assert_int_equal(lowered(GIB, why), 100 * MIB);
    assert_non_null(strstr(why, "control group /a is 400 MiB, of which others use 300 MiB"));
}

static void memory_high_of_version_2_lowers_a_budget_too(void **state)
{
    char why[320];

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n");
    tree_put("/proc/self/cgroup", "0::/x.slice/y.scope\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/x.slice/y.scope/memory.max", "1073741824\n");
    tree_put("/sys/fs/cgroup/x.slice/y.scope/memory.high", "536870912\n");
    tree_put("/sys/fs/cgroup/x.slice/y.scope/memory.current", "1048576\n");
    tree_put("/sys/fs/cgroup/x.slice/y.scope/cgroup.procs", "9\n");
    assert_int_equal(lowered(GIB, why), 512 * MIB);
    assert_non_null(strstr(why, "memory.high of the control group /x.slice/y.scope is 512"));
    tree_put("/sys/fs/cgroup/x.slice/memory.max", "268435456\n");
    tree_put("/sys/fs/cgroup/x.slice/memory.current", "1048576\n");
    assert_int_equal(lowered(GIB, why), 255 * MIB);
    assert_non_null(strstr(why, "memory.max of the control group /x.slice is 256 MiB"));
}

static void a_budget_above_the_available_memory_is_lowered(void **state)
{
    char why[320];

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8387584 kB\n");
    tree_put("/proc/self/status", "RssAnon: 1024 kB\nRssShmem: 0 kB\n");
    assert_int_equal(lowered(8 * GIB, why), 8 * GIB);
    assert_int_equal(lowered(100 * GIB, why), 8 * GIB);
    assert_string_equal(why,
                        "the budget is lowered from 100 GiB to 8.00 GiB: the memory of this "
                        "machine is 16.0 GiB, of which others use 8.00 GiB");
    assert_int_equal(lowered(8 * GIB + 4096, why), 8 * GIB);
    assert_non_null(strstr(why, "the budget of 8.00 GiB is lowered by 4.00 KiB"));
}

static void the_parts_that_no_program_uses_are_named(void **state)
{
    char why[320];

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 6291456 kB\n"
                              "HugePages_Total: 4096\nHugePages_Free: 2048\n"
                              "Hugepagesize: 2048 kB\nHugetlb: 8388608 kB\n");
    tree_put("/proc/self/status", "RssAnon: 0 kB\nRssShmem: 0 kB\n");
    assert_int_equal(lowered(100 * GIB, why), 6 * GIB);
    assert_string_equal(why,
                        "the budget is lowered from 100 GiB to 6.00 GiB: the memory of this "
                        "machine is 32.0 GiB, of which others use 26.0 GiB: 4.00 GiB are "
                        "unused huge pages (HugePages_Free)");
    tree_put("/proc/spl/kstat/zfs/arcstats", ARC("10737418240", "1073741824"));
    assert_int_equal(lowered(100 * GIB, why), 15 * GIB);
    assert_non_null(strstr(why, "others use 17.0 GiB: 4.00 GiB are unused huge pages "
                                "(HugePages_Free), 1.00 GiB are the cache of ZFS"));
    /* Without c_min, nothing is known to give way. */
    tree_put("/proc/spl/kstat/zfs/arcstats", "13 1\nsize 4 10737418240\n");
    assert_int_equal(lowered(100 * GIB, why), 6 * GIB);
    assert_non_null(strstr(why, "26.0 GiB: 4.00 GiB are unused huge pages (HugePages_Free), "
                                "10.0 GiB are the cache of ZFS"));
    /* The limit of a group counts neither. */
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    tree_put("/sys/fs/cgroup/a/memory.current", "1048576\n");
    assert_int_equal(lowered(100 * GIB, why), 1023 * MIB);
    assert_null(strstr(why, "huge pages"));
    assert_null(strstr(why, "ZFS"));
}

static void without_proc_limits_are_read_where_containers_have_them(void **state)
{
    struct mw_machine m;
    char why[320];

    (void)state;
    machine_read(tree_root, &m);
    assert_int_equal(m.budget_bytes, 0);
    assert_int_equal(lowered(100 * GIB, why), 100 * GIB); /* nothing is known */
    tree_put("/sys/fs/cgroup/memory.max", "104857600\n");
    tree_put("/sys/fs/cgroup/memory.current", "4194304\n");
    assert_int_equal(lowered(GIB, why), 96 * MIB);
    machine_read(tree_root, &m);
    assert_int_equal(m.memory_bytes, 100 * MIB);
    assert_int_equal(m.available_bytes, 96 * MIB);
    tree_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "52428800\n");
    tree_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    assert_int_equal(lowered(GIB, why), 50 * MIB);
    assert_non_null(strstr(why, "memory.limit_in_bytes of the control group / is 50.0 MiB"));
}

static void cpu_quota_is_the_smallest_of_all_levels(void **state)
{
    (void)state;
    tree_put("/proc/self/cgroup", "1:cpu,cpuacct:/a/b\n");
    tree_put("/proc/self/mountinfo", V1_MOUNT);
    tree_put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n");
    tree_put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    tree_put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    tree_put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    assert_true(cgroup_cpu_quota(tree_root) > 1.49 && cgroup_cpu_quota(tree_root) < 1.51);
    tree_put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
    assert_true(cgroup_cpu_quota(tree_root) == 0);
}

/* Both ways to count cached pages agree about a file whose pages were written and then dropped.
 * If the kernel has neither way, the test only checks the reason. */
static void cached_pages_of_a_file_are_counted(void **state)
{
    enum { N = 37 };
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char path[600], block[512] = "";
    struct mw_os_value v;
    int fd;

    (void)state;
    tree_put("/file", "");
    snprintf(path, sizeof path, "%s/file", tree_root);
    fd = open(path, O_RDWR | O_CLOEXEC);
    for (uint64_t i = 0; i < N * page / sizeof block; i++)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    v = pagecache_by_mincore(fd, 0, N * page);
    assert_value(v, N * page);
    v = pagecache_by_cachestat(fd, 0, N * page);
    if (v.why_not == NULL)
        assert_int_equal(v.value, N * page);
    assert_value(pagecache_bytes(fd, N * page), N * page);
    assert_value(pagecache_bytes_at(fd, 5 * page, 3 * page), 3 * page);
    close(fd);
    assert_non_null(pagecache_bytes(-1, N * page).why_not);
}

/* --- facts --- */

struct facts {
    struct mw_fact fact[32];
    int n;
};

static void take_fact(void *ctx, const struct mw_fact *f)
{
    struct facts *all = ctx;

    assert_true(all->n < 32);
    assert_true(f->key != NULL && f->label != NULL);
    all->fact[all->n++] = *f;
}

static const struct mw_fact *fact(const struct facts *all, const char *key)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->fact[i].key, key) == 0)
            return &all->fact[i];
    fail_msg("there is no fact \"%s\"", key);
    return NULL;
}

static void facts_of_memory_come_from_the_kernel(void **state)
{
    struct facts all = { .n = 0 };

    (void)state;
    tree_put("/proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\nSwapTotal: 500 kB\n"
                              "SwapFree: 400 kB\n");
    tree_put("/proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 5\n");
    tree_put("/proc/sys/vm/swappiness", "60\n");
    tree_put("/proc/sys/vm/overcommit_memory", "2\n");
    tree_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    tree_put("/proc/pressure/memory", "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n");
    survey_memory(tree_root, take_fact, &all);
    assert_int_equal((int)fact(&all, "total")->value, 2000 * KIB);
    assert_int_equal((int)fact(&all, "swap_total")->value, 500 * KIB);
    assert_string_equal(fact(&all, "swap_kind")->text, "yes, in memory (zram)");
    assert_string_equal(fact(&all, "swappiness")->text, "60");
    assert_string_equal(fact(&all, "overcommit")->text, "2: refuses requests above a limit");
    assert_string_equal(fact(&all, "huge_pages")->text, "madvise");
    assert_int_equal((int)(fact(&all, "pressure")->value * 1000 + 0.5), 125);
    assert_non_null(fact(&all, "cgroup")->why_not);
    assert_non_null(fact(&all, "numa_nodes")->why_not);
}

static void a_system_without_facts_gives_reasons(void **state)
{
    struct facts all = { .n = 0 };

    (void)state;
    tree_put("/proc/sys/vm/overcommit_memory", "");
    tree_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise");
    survey_memory(tree_root, take_fact, &all);
    assert_true(all.n > 10);
    assert_non_null(fact(&all, "total")->why_not);
    assert_string_equal(fact(&all, "huge_pages")->text, "madvise");
    all.n = 0;
    survey_processor(tree_root, take_fact, &all);
    assert_non_null(fact(&all, "quota")->why_not);
    assert_non_null(fact(&all, "governor")->why_not);
    assert_non_null(fact(&all, "steal")->why_not);
    assert_non_null(fact(&all, "throttled")->why_not);
}

static void an_unknown_quota_is_not_called_none(void **state)
{
    struct facts all = { .n = 0 };

    (void)state;
    assert_true(cgroup_cpu_quota(tree_root) < 0);
    survey_processor(tree_root, take_fact, &all);
    assert_string_equal(fact(&all, "quota")->why_not, "no control group reports one");

    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    all.n = 0;
    survey_processor(tree_root, take_fact, &all);
    assert_string_equal(fact(&all, "quota")->why_not, "none is set");
}

static void heat_is_counted_on_all_processors(void **state)
{
    struct facts all = { .n = 0 };

    (void)state;
    tree_put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n");
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4\n");
    survey_processor(tree_root, take_fact, &all);
    assert_int_equal((int)fact(&all, "throttled")->value, 7);
}

/* Doctor counts the kinds of cores apart. */
static void kinds_of_cores_are_facts(void **state)
{
    struct facts all = { .n = 0 };
    cpu_set_t set;
    char text[32];
    int last = 0, n;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    n = CPU_COUNT(&set);
    if (n < 2)
        skip();
    for (int i = 0; i < CPU_SETSIZE; i++)
        last = CPU_ISSET(i, &set) ? i : last;
    snprintf(text, sizeof text, "%d\n", last);
    tree_put("/sys/devices/cpu_lowpower/cpus", text);
    survey_processor(tree_root, take_fact, &all);
    assert_string_equal(fact(&all, "n_core")->label, "performance cores to use");
    assert_int_equal((int)fact(&all, "n_core")->value, n - 1);
    assert_int_equal((int)fact(&all, "n_low_power")->value, 1);
}

static void a_disk_is_found_by_its_mount(void **state)
{
    struct facts all = { .n = 0 };
    char text[300], path[600];
    struct stat st;
    int fd;

    (void)state;
    tree_put("/file", "");
    snprintf(path, sizeof path, "%s/file", tree_root);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    survey_disk(tree_root, fd, take_fact, &all);
    assert_non_null(fact(&all, "file_system")->why_not);
    assert_non_null(fact(&all, "rotational")->why_not);
    snprintf(text, sizeof text,
             "broken\n22 1 %u:%u / / rw shared:1 - nfs4 server:/models rw\n9 9 99:99 / / -\n",
             major(st.st_dev), minor(st.st_dev));
    tree_put("/proc/self/mountinfo", text);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/rotational", major(st.st_dev),
             minor(st.st_dev));
    tree_put(path, "0\n");
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/dm/uuid", major(st.st_dev),
             minor(st.st_dev));
    tree_put(path, "CRYPT-LUKS2-0123\n");
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/logical_block_size",
             major(st.st_dev), minor(st.st_dev));
    tree_put(path, "4096\n");
    tree_put("/proc/pressure/io", "some avg10=50.00 avg60=0.00 avg300=0.00 total=1\n");
    all.n = 0;
    survey_disk(tree_root, fd, take_fact, &all);
    assert_int_equal((int)(fact(&all, "pressure")->value * 10 + 0.5), 5);
    /* The file itself may know better. */
    assert_null(fact(&all, "direct_align")->why_not);
    assert_true(fact(&all, "direct_align")->value >= 1);
    assert_string_equal(fact(&all, "file_system")->text, "nfs4");
    assert_string_equal(fact(&all, "device")->text, "server:/models");
    assert_string_equal(fact(&all, "network")->text, "yes");
    assert_string_equal(fact(&all, "rotational")->text, "no");
    assert_string_equal(fact(&all, "encrypted")->text, "yes");
    snprintf(text, sizeof text, "22 1 %u:%u / / rw shared:1 - ext4 /dev/nbd0 rw\n",
             major(st.st_dev), minor(st.st_dev));
    tree_put("/proc/self/mountinfo", text);
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/uevent", major(st.st_dev),
             minor(st.st_dev));
    tree_put(path, "MAJOR=43\nDEVNAME=nbd0\nDEVTYPE=disk\n");
    all.n = 0;
    survey_disk(tree_root, fd, take_fact, &all);
    assert_string_equal(fact(&all, "network")->text, "yes");
    tree_put(path, "MAJOR=8\nDEVNAME=sda\nDEVTYPE=disk\n");
    all.n = 0;
    survey_disk(tree_root, fd, take_fact, &all);
    assert_string_equal(fact(&all, "network")->text, "no");
    close(fd);
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        in_a_tree(rss_is_split_as_the_kernel_splits_it),
        in_a_tree(a_system_without_proc_gives_reasons_and_no_numbers),
        in_a_tree(the_system_reports_memory_swap_and_refaults),
        in_a_tree(memory_that_gives_way_is_available),
        in_a_tree(caches_of_a_group_are_available),
        in_a_tree(version_1_takes_the_smallest_limit_of_all_levels),
        in_a_tree(version_2_reads_max_and_high_and_the_kernel_part),
        in_a_tree(a_path_outside_of_the_mount_becomes_its_root),
        in_a_tree(the_root_group_of_version_2_has_no_charge),
        in_a_tree(broken_files_of_the_kernel_give_no_figures),
        in_a_tree(pressure_is_read_in_hundredths),
        in_a_tree(the_machine_is_as_large_as_its_limits),
        in_a_tree(processors_have_a_kind),
        in_a_tree(threads_of_a_core_count_once),
        in_a_tree(efficient_cores_get_no_thread_by_default),
        in_a_tree(lists_of_efficient_cores_are_read),
        in_a_tree(cores_of_least_power_get_no_thread_by_default),
        in_a_tree(a_core_has_the_lower_of_two_capacities),
        in_a_tree(a_number_of_threads_is_for_its_processors),
        in_a_tree(nonsense_about_cores_counts_cpus),
        in_a_tree(a_budget_above_the_limit_of_a_group_is_lowered),
        in_a_tree(memory_high_of_version_2_lowers_a_budget_too),
        in_a_tree(a_budget_above_the_available_memory_is_lowered),
        in_a_tree(the_parts_that_no_program_uses_are_named),
        in_a_tree(without_proc_limits_are_read_where_containers_have_them),
        in_a_tree(an_unknown_quota_is_not_called_none),
        in_a_tree(cpu_quota_is_the_smallest_of_all_levels),
        in_a_tree(cached_pages_of_a_file_are_counted),
        in_a_tree(facts_of_memory_come_from_the_kernel),
        in_a_tree(a_system_without_facts_gives_reasons),
        in_a_tree(heat_is_counted_on_all_processors),
        in_a_tree(kinds_of_cores_are_facts),
        in_a_tree(a_disk_is_found_by_its_mount),
    };

    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
