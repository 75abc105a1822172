/* The rule by which ways of products are chosen (engine/model/way_rates.h), with rates that the
 * tests make up. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/compute/kernels.h"
#include "engine/model/way_rates.h"
#include "tests/lib/kernel_data.h"

#define NOW 1800000000

/* A machine: the way of the make reads 60 GB/s, others 50, and one of them may be special. */
struct made_up {
    enum way_choice choice; /* with a special way */
    double special;         /* its rate; 0: as the others */
    double noise;           /* every measurement is off by up to this share */
    int from, to;           /* measurements that are disturbed, of those of the choice */
    bool disturbs_special, disturbs_make;
    uint64_t seed;
    int n;
};

/* The special way, which is not of the make, whatever processor runs the test. */
static int special(enum way_choice c)
{
    return ways_count(c) - 1;
}

static double rate(void *ctx, enum way_choice c, int way)
{
    struct made_up *m = ctx;
    const bool is_make = way == ways_of_make(c), is_special = c == m->choice && way == special(c);
    double r = is_make ? 60e9 : is_special && m->special > 0 ? m->special : 50e9;

    if (c == m->choice) {
        if (m->n >= m->from && m->n < m->to &&
            ((is_make && m->disturbs_make) || (is_special && m->disturbs_special)))
            r /= 3;
        m->n++;
    }
    return r * (1 + m->noise * ((double)random_u32(&m->seed) / 0x1p31 - 1));
}

static void no_product(const struct matmul *m)
{
    (void)m;
}

/* Kernels to which all choices matter. */
static const struct kernels all = { .name = "amx", .has_ways = true,
                                    .mul_interleaved = no_product };

static struct way_rates compare(struct made_up m)
{
    struct way_rates r;

    way_rates_compare(&all, rate, &m, &r);
    return r;
}

static void assert_make(const struct way_rates *r)
{
    for (int c = 0; c < WAY_CHOICES; c++)
        assert_int_equal(r->best[c], ways_of_make((enum way_choice)c));
}

static void the_way_of_the_make_stays_if_it_is_as_fast(void **state)
{
    struct way_rates r = compare((struct made_up){ .seed = 1 });

    (void)state;
    assert_make(&r);
    assert_true(r.bytes_s[WAY_FILE_8][ways_of_make(WAY_FILE_8)] == 60e9);
    assert_true(r.bytes_s[WAY_FILE_8][special(WAY_FILE_8)] == 50e9);
    r = compare((struct made_up){ .special = 62e9, .noise = 0.01, .seed = 1 }); /* 3 % */
    assert_make(&r);
}

/* Each choice is made for itself. */
static void a_faster_way_is_taken(void **state)
{
    (void)state;
    for (int c = 0; c < WAY_CHOICES; c++) {
        const enum way_choice choice = (enum way_choice)c;
        struct way_rates r = compare(
            (struct made_up){ .choice = choice, .special = 75e9, .noise = 0.03, .seed = 2 });

        for (int i = 0; i < WAY_CHOICES; i++)
            assert_int_equal(r.best[i],
                             i == c ? special(choice) : ways_of_make((enum way_choice)i));
    }
}

/* Kernels without interleaved products, and some without any choice. */
static void choices_that_do_not_matter_are_not_measured(void **state)
{
    const struct kernels some = { .name = "avx2", .has_ways = true }, none = { .name = "neon" };
    struct made_up m = { .choice = WAY_INTERLEAVED_5 };
    struct way_rates r;

    (void)state;
    way_rates_compare(&none, rate, &m, &r);
    assert_true(r.bytes_s[WAY_FILE_5][0] == 0);
    assert_make(&r);
    way_rates_compare(&some, rate, &m, &r);
    assert_int_equal(m.n, 0);
    assert_true(r.bytes_s[WAY_INTERLEAVED_5][0] == 0);
    assert_true(r.bytes_s[WAY_FILE_5][0] > 0);
    assert_make(&r);
}

/* A moment is shorter than a round. */
static void a_busy_moment_changes_nothing(void **state)
{
    const enum way_choice c = WAY_FILE_5;
    const int n = ways_count(c);

    (void)state;
    for (int from = 0; from < n * WAY_ROUNDS; from++) {
        struct way_rates r = compare((struct made_up){
            .choice = c, .from = from, .to = from + n, .disturbs_make = true, .special = 60e9 });

        assert_make(&r);
        r = compare((struct made_up){ .choice = c, .from = from, .to = from + 1, .special = 75e9,
                                      .disturbs_make = true, .disturbs_special = true });
        assert_int_equal(r.best[c], special(c));
    }
}

/* Ways that are all as fast, with noise: seldom is one taken, and never the same one twice. */
static void noise_decides_about_no_day(void **state)
{
    int n_new = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct mw_ways w = { .is_known = false };
        struct made_up m = { .special = 60e9, .noise = 0.15, .seed = seed };

        for (int c = 0; c < WAY_CHOICES; c++) {
            struct way_rates r;

            m.choice = (enum way_choice)c;
            way_rates_compare(&all, rate, &m, &r);
            way_rates_settle(&r, NOW, &w);
            n_new += w.way[c] != (uint32_t)ways_of_make((enum way_choice)c);
            way_rates_compare(&all, rate, &m, &r);
            way_rates_settle(&r, NOW + 7200, &w);
            assert_true(w.is_doubtful ||
                        w.way[c] == (uint32_t)ways_of_make((enum way_choice)c));
        }
    }
    assert_in_range(n_new, 0, 30); /* of 3000 */
}

static void assert_settled(const struct mw_ways *w, int way, bool is_doubtful, int64_t now_s)
{
    assert_true(w->is_known);
    assert_int_equal(w->way[WAY_FILE_5], way);
    assert_int_equal(w->is_doubtful, is_doubtful);
    assert_int_equal(w->measured_s, now_s);
}

/* A minute of slow memory, in which another way is faster. */
static void another_way_stays_for_a_day_if_it_is_found_again(void **state)
{
    const int make = ways_of_make(WAY_FILE_5), other = special(WAY_FILE_5);
    const struct way_rates slow = compare((struct made_up){ .special = 75e9 });
    const struct way_rates usual = compare((struct made_up){ .special = 50e9 });
    struct mw_ways w = { .is_known = false };

    (void)state;
    way_rates_settle(&usual, NOW, &w);
    assert_settled(&w, make, false, NOW);
    way_rates_settle(&slow, NOW + 1, &w);
    assert_settled(&w, other, true, NOW + 1);
    way_rates_settle(&usual, NOW + 2, &w);
    assert_settled(&w, make, false, NOW + 2);
    way_rates_settle(&slow, NOW + 3, &w);
    way_rates_settle(&slow, NOW + 4, &w);
    assert_settled(&w, other, false, NOW + 4);
}

static void a_busy_machine_keeps_the_ways_of_before(void **state)
{
    const int make = ways_of_make(WAY_FILE_5), other = special(WAY_FILE_5);
    struct way_rates busy = compare((struct made_up){ .special = 75e9 }), quiet = busy;
    struct mw_ways w = { .way = { 6, 6 } };

    (void)state;
    busy.is_doubtful = true;
    way_rates_settle(&busy, NOW, &w);
    assert_settled(&w, make, true, NOW);
    way_rates_settle(&quiet, NOW + 1, &w);
    way_rates_settle(&busy, NOW + 2, &w);
    assert_settled(&w, other, true, NOW + 2);
    way_rates_settle(&quiet, NOW + 3, &w);
    assert_settled(&w, other, false, NOW + 3);
}

/* Those are constants of the kernels, which have arrays for the most. */
static void columns_are_within_the_bounds_of_the_kernels(void **state)
{
    static const struct {
        enum way_choice choice;
        size_t most;
    } bounds[] = { { WAY_FEW_COLS, WAYS_FEW_MOST },
                   { WAY_PANEL_COLS, WAYS_PANEL_MOST },
                   { WAY_LANE_COLS, WAYS_LANE_MOST },
                   { WAY_AMX_COLS, WAYS_LANE_MOST } };

    (void)state;
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        const enum way_choice c = bounds[k].choice;
        const int before = ways_chosen(c);

        assert_int_equal(ways_of_make(c), 0);
        for (int i = 0; i < ways_count(c); i++) {
            ways_choose(c, i);
            assert_in_range(ways_cols(c), 1, bounds[k].most);
        }
        ways_choose(c, before);
    }
}

/* Types share the ways of those with as many bits. */
static void each_type_has_the_ways_of_its_bits(void **state)
{
    static const struct {
        enum tensor_type type;
        enum way_choice choice;
    } types[] = { { TYPE_Q4_0, WAY_FILE_5 }, { TYPE_Q4_K, WAY_FILE_5 }, { TYPE_Q5_1, WAY_FILE_5 },
                  { TYPE_Q2_K, WAY_FILE_5 }, { TYPE_Q6_K, WAY_FILE_6 }, { TYPE_Q8_0, WAY_FILE_8 } };

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            const enum way_choice c =
                types[i].choice + (interleaved ? WAY_INTERLEAVED_5 - WAY_FILE_5 : 0);
            const int before = ways_chosen(c), last = ways_count(c) - 1;

            assert_true(ways_fetch(interleaved, types[i].type).hint != FETCH_NONE);
            ways_choose(c, last);
            assert_int_equal(ways_fetch(interleaved, types[i].type).hint, FETCH_NONE);
            ways_choose(c, last + 1);
            ways_choose(c, -1);
            assert_int_equal(ways_chosen(c), last);
            ways_choose(c, before);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_of_the_make_stays_if_it_is_as_fast),
        cmocka_unit_test(a_faster_way_is_taken),
        cmocka_unit_test(choices_that_do_not_matter_are_not_measured),
        cmocka_unit_test(a_busy_moment_changes_nothing),
        cmocka_unit_test(noise_decides_about_no_day),
        cmocka_unit_test(another_way_stays_for_a_day_if_it_is_found_again),
        cmocka_unit_test(a_busy_machine_keeps_the_ways_of_before),
        cmocka_unit_test(columns_are_within_the_bounds_of_the_kernels),
        cmocka_unit_test(each_type_has_the_ways_of_its_bits),
    };

    return cmocka_run_group_tests_name("ways", tests, NULL, NULL);
}
