/* Measured limits: slices, the load of others, what work corrects, their file, and their words.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/machine/load.h"
#include "engine/machine/slices.h"
#include "engine/session/limits.h"
#include "engine/session/observe.h"
#include "src/choice_book.h"
#include "src/limits_book.h"
#include "src/rates_book.h"
#include "tests/lib/tree.h"

#define NOW    1800000000
#define HOUR   3600
#define SECOND 1000000000u
#define GB     1000000000u

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b) + 1e-9)

/* --- slices --- */

static void a_burst_in_one_slice_changes_little(void **state)
{
    static const double rates[] = { 2.0, 0.2, 2.1, 1.9 };
    struct slices s = { 0 };

    (void)state;
    assert_near(slices_rate(&s), 0.0);
    for (int i = 0; i < 2; i++)
        slices_add(&s, rates[i]);
    assert_true(slices_spread(&s) > 0.8); /* two slices do not tell which one is wrong */
    for (int i = 2; i < 4; i++)
        slices_add(&s, rates[i]);
    assert_near(slices_rate(&s), 1.95);
    assert_near(slices_spread(&s), 0.1 / 1.95);
}

static void slices_that_all_differ_are_far_apart(void **state)
{
    struct slices s = { 0 };

    (void)state;
    for (int i = 1; i <= 100; i++)
        slices_add(&s, i);
    assert_int_equal(s.n, SLICES_MAX);
    assert_true(slices_spread(&s) > 0.5);
}

/* --- load --- */

static void only_other_programs_that_are_not_nice_are_load(void **state)
{
    long hz = sysconf(_SC_CLK_TCK);
    char text[200];
    struct load l;

    (void)state;
    tree_put("/proc/stat", "cpu 1000 500 0 9000 0 0 0 0\ncpu0 1 2\n");
    load_begin(&l, tree_root);
    /* Two processors ran for 100 s: 80 s for others, 60 s for nice programs. */
    snprintf(text, sizeof text, "cpu %ld %ld 0 %ld 0 0 0 0\n", 1000 + 80 * hz, 500 + 60 * hz,
             9000 + 60 * hz);
    tree_put("/proc/stat", text);
    assert_true(fabs(load_of_others(&l, tree_root) - 0.4) < 0.01);
}

static void without_figures_the_load_is_unknown(void **state)
{
    struct load l;

    (void)state;
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0);
    tree_put("/proc/stat", "cpu 1 2 three\n");
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0);
    tree_put("/proc/stat", "cpu 10 0 0 10 0 0 0 0\n");
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0); /* no tick has passed */
}

/* --- corrections --- */

/* Feed a window of 2 GB that took `ms` milliseconds. */
static bool window(struct observer *w, struct observe_at *at, uint64_t ms, double busy,
                   bool is_throttled, struct mw_limits *l)
{
    at->bytes += 2 * (uint64_t)GB;
    at->t_ns += ms * 1000000u;
    at->busy_ns += (uint64_t)((double)ms * 1e6 * busy);
    return observe_disk(w, at, is_throttled, NOW, l);
}

static void a_faster_disk_raises_the_limit_at_once(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 125e6,
                           .direct_bytes_s = 125e6,
                           .disk = { .spread = 0.5, .doubt = MW_DOUBT_BUSY },
                           .measured_s = NOW };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    observe_begin(&w, &at);
    assert_true(window(&w, &at, 1000, 0.1, true, &l)); /* busy or not, throttled or not */
    assert_near(l.disk_bytes_s, 2e9);
    assert_near(l.direct_bytes_s, 2e9);
    assert_int_equal(l.disk.doubt, 0);
    assert_int_equal(l.disk.observed_s, NOW);
    assert_false(window(&w, &at, 1050, 1, false, &l));
    assert_near(l.disk_bytes_s, 2e9);
}

static void a_limit_that_was_not_measured_stays_unknown(void **state)
{
    struct mw_limits l = { .measured_s = 0 };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    observe_begin(&w, &at);
    assert_false(window(&w, &at, 4000, 0.2, false, &l));
    assert_true(l.disk_bytes_s == 0);
}

static void a_short_run_says_nothing(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 1e9 };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    at.bytes = OBSERVE_BYTES - 1;
    at.t_ns = 1000;
    assert_false(observe_disk(&w, &at, false, NOW, &l));
    at.bytes++;
    assert_true(observe_disk(&w, &at, false, NOW, &l)); /* the window went on */
}

static double after_slow_windows(struct mw_limits l, double busy, bool is_throttled)
{
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    for (int i = 0; i < OBSERVE_SLOW; i++)
        (void)window(&w, &at, i == 1 ? 2000 : 2500, busy, is_throttled,
                     &l); /* at best 1 GB/s */
    return l.disk_bytes_s;
}

static void a_slower_disk_lowers_the_limit_by_its_age(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9, .measured_s = NOW - HOUR / 2 };

    (void)state;
    assert_near(after_slow_windows(l, 0.95, false), 1.75e9);
    l.measured_s = NOW - 2 * HOUR;
    assert_near(after_slow_windows(l, 0.95, false), 1.5e9);
    l.measured_s = NOW - 13 * HOUR;
    assert_near(after_slow_windows(l, 0.95, false), 1e9);
    l.disk.observed_s = NOW - HOUR / 2;
    assert_near(after_slow_windows(l, 0.95, false), 1.75e9);
    l.disk.doubt = MW_DOUBT_SPREAD;
    assert_near(after_slow_windows(l, 0.95, false), 1e9);
    l.contention = 1; /* computing explains half of the rate */
    assert_near(after_slow_windows(l, 0.95, false), 2e9);
}

static void the_limit_stays_if_the_disk_was_not_the_reason(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9, .measured_s = NOW - 13 * HOUR };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    assert_near(after_slow_windows(l, 0.8, false), 2e9);
    assert_near(after_slow_windows(l, 0.95, true), 2e9);
    for (int i = 0; i < OBSERVE_SLOW; i++) {
        at.pinned_bytes += GB; /* filling fresh memory takes time, too */
        assert_false(window(&w, &at, 2000, 1, false, &l));
    }
    for (int i = 0; i < 4 * OBSERVE_SLOW; i++) /* as fast as expected in between */
        assert_false(window(&w, &at, i % OBSERVE_SLOW == 0 ? 1050 : 2000, 1, false, &l));
    assert_near(l.disk_bytes_s, 2e9);
}

/* On a busy machine, some windows say nothing. */
static void windows_that_say_nothing_do_not_reset_the_count(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 9e9, .measured_s = NOW - 13 * HOUR };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    for (int i = 1; i < 2 * OBSERVE_SLOW; i++)
        assert_int_equal(window(&w, &at, 1000, i % 2 == 1 ? 0.92 : 0.88, false, &l),
                         i == 2 * OBSERVE_SLOW - 1);
    assert_near(l.disk_bytes_s, 2e9);
}

static void faster_products_raise_the_limit_of_memory(void **state)
{
    struct mw_limits l = { .memory_bytes_s = 1e10, .memory.doubt = MW_DOUBT_BUSY };

    (void)state;
    assert_false(observe_memory(GB, SECOND, NOW, &l));
    assert_true(observe_memory(2 * (uint64_t)GB, SECOND / 10, NOW, &l));
    assert_near(l.memory_bytes_s, 2e10);
    assert_int_equal(l.memory.doubt, 0);
    assert_false(observe_memory(OBSERVE_MEMORY_BYTES - 1, 1000, NOW, &l)); /* a cache */
}

/* --- the file --- */

static const struct limits_key key = {
    .dev = 7, .io = "auto", .n_thread = 2, .cpu = "Some_CPU", .arithmetic = "Q4_0/avx2"
};

static const char *book_path(void)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/limits", tree_root);
    return path;
}

static struct mw_limits made(double disk, uint32_t doubt, int64_t age_s)
{
    return (struct mw_limits){ .disk_bytes_s = disk,
                               .memory_bytes_s = 2e10,
                               .disk = { .spread = 0.04, .doubt = doubt },
                               .load = 0.5,
                               .lookup_s = 0.000125,
                               .contention = 0.25,
                               .measured_s = NOW - age_s };
}

/* Field by field: the bytes between fields have any value. */
static void assert_same_sure(const struct mw_sure *a, const struct mw_sure *b)
{
    assert_true(a->spread == b->spread);
    assert_int_equal(a->doubt, b->doubt);
    assert_int_equal(a->observed_s, b->observed_s);
}

static void limits_come_back_from_their_file(void **state)
{
    struct mw_limits l = made(2e9, 0, 60);
    struct limits_book b = { 0 }, again;
    const struct limits_key *k;
    const struct mw_limits *found;

    (void)state;
    l.memory = (struct mw_sure){ .spread = 0.25, .doubt = MW_DOUBT_ALL, .observed_s = NOW };
    limits_book_add(&b, &key, &l);
    limits_book_write(&b, book_path());
    limits_book_read(&again, book_path());
    assert_int_equal(again.n, 1);
    k = &again.page[0].key;
    assert_int_equal(k->dev, key.dev);
    assert_string_equal(k->io, key.io);
    assert_int_equal(k->n_thread, key.n_thread);
    assert_string_equal(k->cpu, key.cpu);
    assert_string_equal(k->arithmetic, key.arithmetic);
    found = &again.page[0].limits;
    assert_true(found->disk_bytes_s == l.disk_bytes_s);
    assert_true(found->memory_bytes_s == l.memory_bytes_s);
    assert_same_sure(&found->disk, &l.disk);
    assert_same_sure(&found->memory, &l.memory);
    assert_true(found->load == l.load);
    assert_true(found->lookup_s == l.lookup_s);
    assert_true(found->contention == l.contention);
    assert_int_equal(found->measured_s, l.measured_s);
}

static const char *choice_path(void)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/choices", tree_root);
    return path;
}

static void sessions_are_averaged_by_their_tokens(void **state)
{
    struct mw_choice choice = { .share = { 1 }, .n_token = OBSERVE_CHOICES - 1 };
    struct mw_limits l = { 0 };

    (void)state;
    assert_false(observe_choice(&choice, NOW, &l)); /* too few */
    assert_int_equal(l.choice.observed_s, 0);
    choice.n_token = 300;
    assert_true(observe_choice(&choice, NOW, &l));
    assert_near(l.choice.share[0], 1.0);
    choice.share[0] = choice.share[1] = 0.5;
    choice.n_token = 100;
    assert_true(observe_choice(&choice, NOW + 5, &l));
    assert_near(l.choice.share[0], 0.875);
    assert_near(l.choice.share[1], 0.125);
    assert_near(l.choice.n_token, 400.0);
    assert_int_equal(l.choice.observed_s, NOW + 5);
    l.choice.n_token = 1e6; /* old texts do not count forever */
    choice.n_token = OBSERVE_CHOICES_KEPT;
    assert_true(observe_choice(&choice, NOW, &l));
    assert_near(l.choice.share[0], 0.6875);
}

static void choices_come_back_from_their_file(void **state)
{
    struct mw_choice c = { .n_token = 288, .observed_s = NOW }, found;
    struct choice_key a, b;

    (void)state;
    tree_put("/a.gguf", "12");
    tree_put("/b.gguf", "345");
    tree_put("/choices", "1 2 3\n");
    choice_key_of(&a, "/nothing");
    assert_int_equal(a.bytes, 0);
    choice_book_keep(choice_path(), &a, &c); /* of no file: not kept */
    choice_key_of(&a, tree_path("/a.gguf"));
    choice_key_of(&b, tree_path("/b.gguf"));
    for (int i = 0; i < MW_CHOICE_PARTS; i++)
        c.share[i] = (i + 1) / 136.0;
    choice_book_keep(choice_path(), &a, &c);
    c.n_token = 64;
    choice_book_keep(choice_path(), &b, &c);
    choice_book_find(choice_path(), &a, NOW, &found);
    assert_near(found.n_token, 288.0);
    assert_true(fabs(found.share[15] - 16 / 136.0) < 1e-6);
    assert_int_equal(found.observed_s, NOW);
    c.observed_s = NOW + 60; /* replaces */
    choice_book_keep(choice_path(), &a, &c);
    choice_book_find(choice_path(), &a, NOW + 60, &found);
    assert_near(found.n_token, 64.0);
    choice_book_find(choice_path(), &a, NOW, &found); /* of the future */
    assert_int_equal(found.observed_s, 0);
    choice_book_find(choice_path(), &a, NOW + 31 * 24 * HOUR, &found);
    assert_int_equal(found.observed_s, 0);
    choice_book_find(choice_path(), &b, NOW, &found);
    assert_int_equal(found.observed_s, NOW);
    b.changed_ns++; /* another model */
    choice_book_find(choice_path(), &b, NOW, &found);
    assert_int_equal(found.observed_s, 0);
    b.changed_ns--;
    b.inode_changed_ns++; /* another content with the time of the old one */
    choice_book_find(choice_path(), &b, NOW, &found);
    assert_int_equal(found.observed_s, 0);
}

static void other_lines_are_ignored(void **state)
{
    static const char text[] =
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 1e11\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 1e11 0 0\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 nan 2e10 0 0 0 0 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 inf 0 0 0 0 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e999 2e10 0 0 0 0 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 -5 2e10 0 0 0 0 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 0 0 0 16 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 0 0 0 0 -1 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 a_mode_with_quite_a_long_name 2 C Q 1e9 2e10 0 0 0 0 0 0 0 0 0 0 0 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 1e11 0 0 0 0 0 0 0 0 0 0\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 0 0 0 0 0 0 0 0 0 0\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 0 0 0 0 0 0 0 0 0 0 v2\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 0 0 0 0 0 0 0 0 0 0 -1e-9 0 v4\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 0 0 0 0 0 0 0 0 0 0 1e-11 v3\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 4e9 2e10 0 0 0 0 0 0 0 0 0 0 1e-11 2 v4\n"
        "\n\x01\xff\xfe\n% %s %n\n"
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 3e9 2e10 0 0 0 0 0 0 0 0 0 0 2e-11 0.2 v4\n"
        "1799999999 7 auto 2 Some_CPU";
    struct limits_book b;

    (void)state;
    tree_put("/limits", text);
    limits_book_read(&b, book_path());
    assert_int_equal(b.n, 1);
    assert_near(b.page[0].limits.disk_bytes_s, 3e9);
}

static void doubtful_limits_are_kept_for_an_hour(void **state)
{
    struct mw_limits l = made(2e9, 0, 23 * HOUR), doubtful = made(2e9, MW_DOUBT_BUSY, HOUR / 2);
    struct limits_book b = { 0 };

    (void)state;
    limits_book_add(&b, &key, &l);
    assert_non_null(limits_book_find(&b, &key, NOW));
    assert_null(limits_book_find(&b, &key, NOW + 2 * HOUR));
    assert_null(limits_book_find(&b, &key, NOW - 24 * HOUR)); /* the clock was set back */
    limits_book_add(&b, &key, &doubtful);
    assert_int_equal(limits_book_find(&b, &key, NOW)->disk.doubt, MW_DOUBT_BUSY);
    assert_int_equal(limits_book_find(&b, &key, NOW + HOUR - 10 * 60)->disk.doubt, 0);
    assert_int_equal(b.n, 2);
}

static void a_disk_is_compared_with_its_newest_trustworthy_rate(void **state)
{
    struct mw_limits l[] = { made(3e9, 0, 31 * 24 * HOUR), made(2e9, 0, 3 * 24 * HOUR),
                             made(1e8, MW_DOUBT_BUSY, HOUR), made(0, 0, 60) };
    struct limits_key k = key, other = key;
    struct limits_book b = { 0 };

    (void)state;
    other.dev = 8;
    for (int i = 0; i < 4; i++) {
        snprintf(k.arithmetic, sizeof k.arithmetic, "type%d", i);
        limits_book_add(&b, &k, &l[i]);
    }
    limits_book_add(&b, &other, &l[0]);
    assert_near(limits_book_disk(&b, &key, NOW), 2e9);
    assert_near(limits_book_disk(&b, &other, NOW), 0.0);
}

/* Reads of another size are better than no rate, and never replaced. */
static void limits_are_kept_for_the_size_of_reads(void **state)
{
    struct mw_limits large = made(2e9, 0, HOUR), small = made(1e9, 0, 60);
    struct limits_key k = key;
    struct limits_book b = { 0 };

    (void)state;
    limits_book_add(&b, &key, &large);
    snprintf(k.io, sizeof k.io, "auto/512K");
    assert_null(limits_book_find(&b, &k, NOW));
    assert_near(limits_book_find_near(&b, &k, NOW)->disk_bytes_s, 2e9);
    assert_near(limits_book_disk(&b, &k, NOW), 0.0);
    assert_near(limits_book_disk_near(&b, &k, NOW), 2e9);
    limits_book_add(&b, &k, &small);
    assert_int_equal(b.n, 2);
    assert_near(limits_book_find_near(&b, &k, NOW)->disk_bytes_s, 1e9);
    assert_near(limits_book_find(&b, &key, NOW)->disk_bytes_s, 2e9);
    assert_near(limits_book_disk_near(&b, &k, NOW), 1e9);
    snprintf(k.io, sizeof k.io, "buffered/512K");
    assert_null(limits_book_find_near(&b, &k, NOW));
}

/* --- rates of weight types --- */

static const struct rates_key rates_key = {
    .build = "0.1-abc", .cpu = "Some_CPU", .kernels = "avx2", .n_thread = 2
};

static struct mw_rate made_rate(const char *type, double bytes_s, uint32_t doubt, int64_t age_s)
{
    struct mw_rate r = { .column_bytes_s = bytes_s,
                         .chunk_flops_s = 1e11,
                         .column = { .spread = 0.05, .doubt = doubt },
                         .chunk = { .spread = 0.02, .observed_s = NOW - age_s },
                         .measured_s = NOW - age_s };

    snprintf(r.type, sizeof r.type, "%s", type);
    return r;
}

static const char *rates_path(void)
{
    return tree_path("/rates");
}

/* Costs that all differ, so that no two of them can be exchanged. */
static struct mw_steps made_steps(double round_s, uint32_t doubt, int64_t age_s)
{
    struct mw_steps s = { .round_s = round_s,
                          .wake_s = 5e-5,
                          .value_s = 1e-10,
                          .curve_s = 3e-10,
                          .sure = { .spread = 0.125, .doubt = doubt },
                          .measured_s = NOW - age_s };

    for (int i = 0; i < MW_STEPS_KV; i++) {
        s.load_s[i] = (i + 1) * 1e-11;
        s.mac_s[i] = (i + 1) * 1e-12;
    }
    return s;
}

static double found_round(int64_t now_s)
{
    struct mw_limits l = { 0 };

    assert_true(rates_book_find(rates_path(), &rates_key, now_s, &l) ==
                (l.steps.measured_s != 0));
    return l.steps.round_s;
}

/* The rate of one type of 2 that is found with this key; 0: it is not. */
static double found_rate(const struct rates_key *k, int64_t now_s)
{
    struct mw_limits l = { .rate = { { .type = "Q4_0" } }, .n_rate = 1 };

    l.steps.measured_s = NOW; /* known */
    assert_true(rates_book_find(rates_path(), k, now_s, &l) == (l.rate[0].measured_s != 0));
    return l.rate[0].column_bytes_s;
}

static void assert_same_rate(const struct mw_rate *a, const struct mw_rate *b)
{
    assert_string_equal(a->type, b->type);
    assert_true(a->column_bytes_s == b->column_bytes_s);
    assert_true(a->chunk_flops_s == b->chunk_flops_s);
    assert_same_sure(&a->column, &b->column);
    assert_same_sure(&a->chunk, &b->chunk);
    assert_int_equal(a->measured_s, b->measured_s);
}

static void assert_same_steps(const struct mw_steps *a, const struct mw_steps *b)
{
    assert_true(a->round_s == b->round_s && a->wake_s == b->wake_s);
    assert_true(a->value_s == b->value_s && a->curve_s == b->curve_s);
    assert_memory_equal(a->load_s, b->load_s, sizeof a->load_s);
    assert_memory_equal(a->mac_s, b->mac_s, sizeof a->mac_s);
    assert_same_sure(&a->sure, &b->sure);
    assert_int_equal(a->measured_s, b->measured_s);
}

static void rates_of_types_come_back_from_their_file(void **state)
{
    struct mw_limits l = { .n_rate = 2 },
                     again = { .rate = { { .type = "Q6_K" }, { .type = "Q4_0" } },
                               .n_rate = 2 };
    struct rates_key other = rates_key;

    (void)state;
    tree_put("/rates", "");
    l.rate[0] = made_rate("Q4_0", 22e9, 0, 60);
    l.rate[1] = made_rate("Q6_K", 15e9, MW_DOUBT_SPREAD, 60);
    l.steps = made_steps(2e-6, 0, 60);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_true(rates_book_find(rates_path(), &rates_key, NOW, &again));
    assert_same_rate(&again.rate[0], &l.rate[1]);
    assert_same_rate(&again.rate[1], &l.rate[0]);
    assert_same_steps(&again.steps, &l.steps);
    snprintf(again.rate[0].type, sizeof again.rate[0].type, "BF16");
    again.rate[0].measured_s = 0;
    assert_false(rates_book_find(rates_path(), &rates_key, NOW, &again));
    other.exact = true;
    assert_near(found_rate(&other, NOW), 0.0);
    other = rates_key;
    other.n_thread = 4;
    assert_near(found_rate(&other, NOW), 0.0);
    other = rates_key;
    other.build[0] = '1';
    assert_near(found_rate(&other, NOW), 0.0);
    assert_near(found_rate(&rates_key, NOW), 22e9);
    assert_near(found_rate(&rates_key, NOW + 25 * HOUR), 0.0); /* too old */
}

static void a_doubtful_rate_does_not_replace_a_trustworthy_one(void **state)
{
    struct mw_limits l = { .n_rate = 1 };

    (void)state;
    tree_put("/rates", "");
    l.rate[0] = made_rate("Q4_0", 8e9, MW_DOUBT_BUSY, 60);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(found_rate(&rates_key, NOW), 8e9); /* better than nothing */
    assert_near(found_rate(&rates_key, NOW + 2 * HOUR), 0.0);
    l.rate[0] = made_rate("Q4_0", 22e9, 0, 50);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(found_rate(&rates_key, NOW), 22e9);
    l.rate[0] = made_rate("Q4_0", 9e9, MW_DOUBT_BUSY, 40);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(found_rate(&rates_key, NOW), 22e9);
    l.rate[0] = made_rate("Q4_0", 23e9, 0, 30);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(found_rate(&rates_key, NOW), 23e9);
}

static void costs_of_steps_are_kept_as_rates_are(void **state)
{
    struct mw_limits l = { .n_rate = 1 };

    (void)state;
    tree_put("/rates", "");
    l.rate[0] = made_rate("Q4_0", 8e9, 0, 60);
    l.steps = made_steps(9e-6, MW_DOUBT_BUSY, 60);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(1e6 * found_round(NOW), 9.0);
    assert_near(1e6 * found_round(NOW + 2 * HOUR), 0.0); /* doubtful and old */
    l.steps = made_steps(2e-6, 0, 50);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(1e6 * found_round(NOW + 2 * HOUR), 2.0);
    l.steps = made_steps(7e-6, MW_DOUBT_BUSY, 40);
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(1e6 * found_round(NOW), 2.0);
    assert_near(found_rate(&rates_key, NOW), 8e9);
    l.steps = (struct mw_steps){ 0 }; /* not measured: the old costs stay */
    rates_book_keep(rates_path(), &rates_key, NOW, &l);
    assert_near(1e6 * found_round(NOW), 2.0);
    tree_put("/rates",
             "1799999999 0.1-abc Some_CPU avx2 usual 2 steps 1e-6 1e-5 1e-10 1e-10 1 2 "
             "3 4 5 6 7 -8 0.1 0\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 steps 1e-6 1e-5 1e-10\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 steps\n");
    assert_near(found_round(NOW), 0.0);
}

static void lines_without_rates_are_ignored(void **state)
{
    (void)state;
    tree_put("/rates",
             "1799999999 0.1-abc Some_CPU avx2 usual 2 Q4_0 nan 0 0 0 1e11 0 0 0\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 Q4_0 1e10 0 0 0 inf 0 0 0\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 Q4_0 1e10 0 99 0 1e11 0 0 0\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 Q4_0 1e10 -1 0 0 1e11 0 0 0\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 a_type_with_a_long_name 1e10 0 0 0\n"
             "\n%s\n"
             "1799999999 0.1-abc Some_CPU avx2 usual 2 Q4_0 2e10 0 0 0 1e11 0 0 0\n");
    assert_near(found_rate(&rates_key, NOW), 2e10);
}

static void a_full_book_forgets_the_oldest_page(void **state)
{
    struct mw_limits l = made(2e9, 0, 0);
    struct limits_book b = { 0 };
    struct limits_key k = key;

    (void)state;
    for (int i = 0; i < BOOK_PAGES + 5; i++) {
        k.dev = (uint64_t)i;
        limits_book_add(&b, &k, &l);
        limits_book_add(&b, &k, &l); /* replaces it */
    }
    assert_int_equal(b.n, BOOK_PAGES);
    assert_int_equal(b.page[0].key.dev, BOOK_PAGES + 4);
    assert_int_equal(b.page[BOOK_PAGES - 1].key.dev, 5);
}

/* --- bounds --- */

/* A spread of 25 %: 2 GB/s were 1.6 to 2.5. */
static void bounds_are_as_far_as_the_spread(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9,
                           .disk = { .spread = 0.25 },
                           .lookup_s = 1e-4,
                           .memory_bytes_s = 20e9,
                           .memory = { .spread = 0.5 },
                           .n_rate = 1 };
    struct mw_limits slow, fast;

    (void)state;
    l.steps.round_s = 1e-5;
    l.steps.sure.spread = 1;
    l.rate[0] = (struct mw_rate){ .column_bytes_s = 10e9,
                                  .chunk_flops_s = 1e12,
                                  .column = { .spread = 0.1 } };
    slow = limits_bound(&l, true);
    fast = limits_bound(&l, false);
    assert_near(slow.disk_bytes_s / 1e9, 1.6);
    assert_near(fast.disk_bytes_s / 1e9, 2.5);
    assert_near(slow.lookup_s * 1e6, 125.0);
    assert_near(fast.lookup_s * 1e6, 80.0);
    assert_near(fast.memory_bytes_s / 1e9, 30.0);
    assert_near(slow.steps.round_s * 1e6, 20.0);
    assert_near(fast.steps.round_s * 1e6, 5.0);
    assert_near(fast.rate[0].column_bytes_s / 1e9, 11.0);
    assert_near(slow.rate[0].chunk_flops_s / 1e12, 1.0); /* no spread */

    l.load = 0.5; /* other programs had half of the processors */
    l.rate[0].column.doubt = MW_DOUBT_BUSY;
    assert_near(limits_bound(&l, false).rate[0].column_bytes_s / 1e9, 22.0);
    assert_near(limits_bound(&l, false).rate[0].chunk_flops_s / 1e12, 1.0);
    assert_near(limits_bound(&l, true).rate[0].column_bytes_s / 1e9, 10 / 1.1);
}

static void the_spread_covers_the_measurement_before(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9, .disk = { .spread = 0.02 }, .n_rate = 1 };
    struct mw_limits before = { .disk_bytes_s = 2.5e9, .disk = { .spread = 0.1 }, .n_rate = 1 };

    (void)state;
    l.rate[0] = (struct mw_rate){ .type = "Q4_K", .column_bytes_s = 30e9 };
    before.rate[0] = (struct mw_rate){ .type = "Q4_K", .column_bytes_s = 20e9 };
    mw_limits_widen(&l, &before);
    assert_near(l.disk.spread, 0.25);
    assert_near(limits_bound(&l, false).disk_bytes_s / 1e9, 2.5);
    assert_near(limits_bound(&l, true).rate[0].column_bytes_s / 1e9, 20.0);
    assert_near(l.memory.spread, 0.0); /* not measured */

    before = l; /* the same rates again: the spread shrinks */
    l.disk.spread = l.rate[0].column.spread = 0.02;
    before.contention = 0.3;
    mw_limits_widen(&l, &before);
    assert_near(l.contention, 0.15);
    assert_near(l.disk.spread, 0.175);
    assert_near(l.rate[0].column.spread, 0.35);

    before.disk = (struct mw_sure){ .spread = 0.9, .doubt = MW_DOUBT_BUSY };
    before.disk_bytes_s = 0.1e9;
    snprintf(before.rate[0].type, sizeof before.rate[0].type, "Q8_0");
    l.disk.spread = l.rate[0].column.spread = 0.02;
    mw_limits_widen(&l, &before);
    assert_near(l.disk.spread, 0.02);
    assert_near(l.rate[0].column.spread, 0.02);
}

/* A correction from 2 to 1.6 GB/s: both are within the new spread of a quarter. */
static void a_corrected_rate_remembers_the_one_before(void **state)
{
    struct mw_limits l = { .memory_bytes_s = 10e9 };

    (void)state;
    assert_true(observe_memory(OBSERVE_MEMORY_BYTES, OBSERVE_MEMORY_BYTES / 20, NOW, &l));
    assert_near(l.memory_bytes_s / 1e9, 20.0);
    assert_near(l.memory.spread, 0.25);
    assert_true(observe_memory(OBSERVE_MEMORY_BYTES, OBSERVE_MEMORY_BYTES * 10 / 204, NOW, &l));
    assert_near(l.memory.spread, OBSERVE_LEAST_SPREAD); /* two rates that agree */
    assert_true(observe_memory(OBSERVE_MEMORY_BYTES, OBSERVE_MEMORY_BYTES / 2000, NOW, &l));
    assert_near(l.memory.spread, 0.4949);
}

/* --- words --- */

static void limits_are_described_with_age_and_doubt(void **state)
{
    struct mw_limits l = made(2e9, 0, 3 * HOUR), none = { 0 };
    char text[MW_LIMITS_TEXT];

    (void)state;
    l.memory.spread = 0.011;
    mw_limits_text(&l, NOW, text, sizeof text);
    assert_string_equal(
        text, "disk 2 GB/s, spread 4 %; memory 20 GB/s, spread 1 %; measured 3 h ago");
    l.disk = (struct mw_sure){ .doubt = MW_DOUBT_BUSY | MW_DOUBT_DIFFERS };
    l.memory.observed_s = NOW - 300;
    mw_limits_text(&l, NOW, text, sizeof text);
    assert_string_equal(text,
                        "disk 2 GB/s, spread 0 %; memory 20 GB/s, seen at work 5 min ago; "
                        "measured 3 h ago; doubtful: the machine was busy, an earlier rate of "
                        "this disk is far from it");
    mw_limits_text(&none, NOW, text, sizeof text);
    assert_string_equal(text, "not measured");
    l.disk.doubt = MW_DOUBT_ALL;
    l.disk.observed_s = NOW - 400 * 24 * HOUR;
    mw_limits_text(&l, NOW, text, sizeof text);
    assert_true(strlen(text) < sizeof text - 1); /* the longest one fits */
}

/* --- products at work --- */

static struct mw_limits with_rates(int64_t age_s)
{
    struct mw_limits l = { .n_rate = 2, .measured_s = NOW - age_s };

    l.rate[0] = made_rate("Q4_0", 20e9, 0, age_s);
    l.rate[1] = made_rate("Q6_K", 10e9, 0, age_s);
    l.rate[0].chunk.observed_s = l.rate[1].chunk.observed_s = 0;
    return l;
}

/* Feed n passes that were expected to take 100 ms. */
static bool passes(struct product_observer *w, int n, uint64_t ms, struct mw_limits *l)
{
    bool is_corrected = false;

    for (int i = 0; i < n; i++)
        is_corrected |= observe_products(w, OBSERVE_COLUMN, 0.1, ms * 1000000u, NOW, l);
    return is_corrected;
}

static void faster_products_raise_all_their_rates(void **state)
{
    struct mw_limits l = with_rates(HOUR / 2);
    struct product_observer w = { 0 };

    (void)state;
    assert_false(passes(&w, OBSERVE_PASSES - 1, 80, &l));
    assert_true(passes(&w, 1, 80, &l));
    assert_near(l.rate[0].column_bytes_s, 25e9);
    assert_near(l.rate[1].column_bytes_s, 12.5e9);
    assert_near(l.rate[0].chunk_flops_s, 1e11); /* prompts are another matter */
    assert_int_equal(l.rate[0].column.observed_s, NOW);
    assert_int_equal(l.rate[0].column.doubt, 0);
    assert_true(l.memory_bytes_s == 0);
}

/* A pass that is faster than expected does not show which part of it was. */
static void steps_are_corrected_with_the_products(void **state)
{
    struct mw_limits l = with_rates(HOUR / 2);
    struct product_observer w = { 0 };

    (void)state;
    l.steps = made_steps(10e-6, MW_DOUBT_BUSY, 60);
    assert_true(passes(&w, OBSERVE_PASSES, 80, &l));
    assert_near(l.rate[0].column_bytes_s, 25e9);
    assert_near(1e6 * l.steps.round_s, 8.0);
    assert_int_equal(l.steps.sure.doubt, 0);
    assert_int_equal(l.steps.sure.observed_s, NOW);
}

static void a_burst_of_another_program_changes_no_rate(void **state)
{
    struct mw_limits l = with_rates(HOUR / 2);
    struct product_observer w = { 0 };

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_false(passes(&w, OBSERVE_PASSES / 2 + 1, 101, &l)); /* the median counts */
        assert_false(passes(&w, OBSERVE_PASSES - OBSERVE_PASSES / 2 - 1, 300, &l));
    }
    assert_near(l.rate[0].column_bytes_s, 20e9);
}

static double column_after_slow_windows(int64_t age_s, uint32_t doubt)
{
    struct mw_limits l = with_rates(age_s);
    struct product_observer w = { 0 };

    l.rate[0].column.doubt = doubt;
    assert_false(passes(&w, OBSERVE_PASSES * (OBSERVE_SLOW - 1), 250, &l));
    assert_true(passes(&w, OBSERVE_PASSES, 200, &l)); /* the fastest of the windows */
    assert_near(l.rate[0].column_bytes_s, 2 * l.rate[1].column_bytes_s);
    return l.rate[0].column_bytes_s;
}

static void slower_products_lower_the_rates_by_their_age(void **state)
{
    (void)state;
    assert_near(column_after_slow_windows(HOUR / 2, 0), 20e9 - 10e9 / 4);
    assert_near(column_after_slow_windows(2 * HOUR, 0), 20e9 - 10e9 / 2);
    assert_near(column_after_slow_windows(13 * HOUR, 0), 10e9);
    assert_near(column_after_slow_windows(HOUR / 2, MW_DOUBT_BUSY), 10e9);
}

static void rates_that_were_not_measured_stay_unknown(void **state)
{
    struct mw_limits l = { .n_rate = 1, .rate = { { .type = "Q4_0" } } };
    struct product_observer w = { 0 };

    (void)state;
    assert_false(passes(&w, OBSERVE_PASSES, 10, &l));
    assert_true(l.rate[0].column_bytes_s == 0);
    /* Nothing was expected, for example of a mixture of experts. */
    l = with_rates(0);
    for (int i = 0; i < OBSERVE_PASSES; i++)
        assert_false(observe_products(&w, OBSERVE_CHUNK, 0, 1000, NOW, &l));
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_kept_for_the_size_of_reads),
        cmocka_unit_test(steps_are_corrected_with_the_products),
        cmocka_unit_test(bounds_are_as_far_as_the_spread),
        cmocka_unit_test(the_spread_covers_the_measurement_before),
        cmocka_unit_test(a_corrected_rate_remembers_the_one_before),
        cmocka_unit_test(a_burst_in_one_slice_changes_little),
        cmocka_unit_test(slices_that_all_differ_are_far_apart),
        in_a_tree(only_other_programs_that_are_not_nice_are_load),
        in_a_tree(without_figures_the_load_is_unknown),
        cmocka_unit_test(a_faster_disk_raises_the_limit_at_once),
        cmocka_unit_test(a_limit_that_was_not_measured_stays_unknown),
        cmocka_unit_test(a_short_run_says_nothing),
        cmocka_unit_test(a_slower_disk_lowers_the_limit_by_its_age),
        cmocka_unit_test(the_limit_stays_if_the_disk_was_not_the_reason),
        cmocka_unit_test(windows_that_say_nothing_do_not_reset_the_count),
        cmocka_unit_test(faster_products_raise_the_limit_of_memory),
        cmocka_unit_test(faster_products_raise_all_their_rates),
        cmocka_unit_test(a_burst_of_another_program_changes_no_rate),
        cmocka_unit_test(slower_products_lower_the_rates_by_their_age),
        cmocka_unit_test(rates_that_were_not_measured_stay_unknown),
        in_a_tree(limits_come_back_from_their_file),
        in_a_tree(choices_come_back_from_their_file),
        cmocka_unit_test(sessions_are_averaged_by_their_tokens),
        in_a_tree(other_lines_are_ignored),
        cmocka_unit_test(doubtful_limits_are_kept_for_an_hour),
        cmocka_unit_test(a_disk_is_compared_with_its_newest_trustworthy_rate),
        in_a_tree(rates_of_types_come_back_from_their_file),
        in_a_tree(a_doubtful_rate_does_not_replace_a_trustworthy_one),
        in_a_tree(costs_of_steps_are_kept_as_rates_are),
        in_a_tree(lines_without_rates_are_ignored),
        cmocka_unit_test(a_full_book_forgets_the_oldest_page),
        cmocka_unit_test(limits_are_described_with_age_and_doubt),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
