/* Stolen time, load and throttling during a measurement, on a system made of files. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/machine/disturb.h"
#include "tests/lib/tree.h"

#define HEAT "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-3)

static void put_heat(int cpu, const char *times)
{
    char path[120];

    snprintf(path, sizeof path, HEAT, cpu);
    tree_put(path, times);
}

/* Group "a" of version 2 in its parent, with their quotas. */
static void put_quota(const char *of_parent, const char *of_group)
{
    tree_put("/proc/self/cgroup", "0::/p/a\n");
    tree_put("/proc/self/mountinfo", "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/p/cpu.stat", of_parent);
    tree_put("/sys/fs/cgroup/p/a/cpu.stat", of_group);
}

static void shares_are_those_of_the_run(void **state)
{
    struct mw_disturb d;

    (void)state;
    /*                   user nice system idle wait irq soft steal */
    tree_put("/proc/stat", "cpu 100000 0 0 100000 0 0 0 5000\n");
    disturb_start(&d, tree_root);
    /* 100000 ticks: this process used next to none, others 40 %, the host 10 %. */
    tree_put("/proc/stat", "cpu 140000 0 0 150000 0 0 0 15000\n");
    disturb_end(&d, tree_root);
    assert_near(d.stolen_share, 0.1);
    assert_near(d.others_share, 0.4);
    assert_true(d.throttled < 0);
}

static void heat_and_quotas_are_counted(void **state)
{
    struct mw_disturb d;

    (void)state;
    put_heat(0, "7\n");
    put_heat(1, "1\n");
    disturb_start(&d, tree_root);
    put_heat(1, "3\n");
    disturb_end(&d, tree_root);
    assert_near(d.throttled, 2);
    put_quota("nr_periods 5\nnr_throttled 10\n", "nr_periods 5\nnr_throttled 0\n");
    disturb_start(&d, tree_root);
    put_heat(0, "8\n");
    put_quota("nr_periods 9\nnr_throttled 12\n", "nr_periods 9\nnr_throttled 1\n");
    disturb_end(&d, tree_root);
    assert_near(d.throttled, 4);
}

static void nothing_is_known_without_files(void **state)
{
    struct mw_disturb d;

    (void)state;
    disturb_start(&d, tree_root);
    disturb_end(&d, tree_root);
    assert_true(d.stolen_share < 0 && d.others_share < 0 && d.throttled < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shares_are_those_of_the_run, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(heat_and_quotas_are_counted, tree_make, tree_drop),
        cmocka_unit_test_setup_teardown(nothing_is_known_without_files, tree_make, tree_drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
