/* The energy counters of a system made of files. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/machine/energy.h"
#include "tests/lib/tree.h"

#define TOP "/sys/class/powercap/intel-rapl:"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static void put_zone(const char *zone, const char *name, const char *energy_uj)
{
    char path[120];

    snprintf(path, sizeof path, TOP "%s/name", zone);
    tree_put(path, name);
    snprintf(path, sizeof path, TOP "%s/max_energy_range_uj", zone);
    tree_put(path, "1000000000\n");
    snprintf(path, sizeof path, TOP "%s/energy_uj", zone);
    if (energy_uj != NULL)
        tree_put(path, energy_uj);
}

/* Cores are part of the package, and psys contains it: neither counts again. */
static void packages_and_their_memory_are_added(void **state)
{
    struct mw_energy m;

    (void)state;
    put_zone("0", "package-0\n", "5000000\n");
    put_zone("0:0", "core\n", "1\n");
    put_zone("0:1", "dram\n", "100\n");
    put_zone("1", "package-1\n", "0\n");
    put_zone("2", "psys\n", "7\n");
    energy_start(&m, tree_root);
    assert_int_equal(m.n, 3);
    assert_null(m.why_not);
    put_zone("0", "package-0\n", "7500000\n");
    put_zone("0:0", "core\n", "900000000\n");
    put_zone("0:1", "dram\n", "250100\n");
    put_zone("2", "psys\n", "900000000\n");
    assert_near(energy_joules(&m, tree_root), 2.75);
}

static void a_counter_that_starts_again_is_continued(void **state)
{
    struct mw_energy m;

    (void)state;
    put_zone("0", "package-0\n", "999000000\n");
    energy_start(&m, tree_root);
    put_zone("0", "package-0\n", "2000000\n");
    assert_near(energy_joules(&m, tree_root), 3.0);
}

static void without_counters_there_is_a_reason(void **state)
{
    struct mw_energy m;

    (void)state;
    energy_start(&m, tree_root);
    assert_int_equal(m.n, 0);
    assert_string_equal(m.why_not, "the system reports no energy counters");
    assert_true(energy_joules(&m, tree_root) < 0);
    put_zone("0", "package-0\n", NULL);
    energy_start(&m, tree_root);
    assert_string_equal(m.why_not, "energy counters are readable by root only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packages_and_their_memory_are_added, tree_make,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(a_counter_that_starts_again_is_continued, tree_make,
                                        tree_drop),
        cmocka_unit_test_setup_teardown(without_counters_there_is_a_reason, tree_make,
                                        tree_drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
