/* The file of measured limits: each kind of line, its key, its age, and its order. */
#include "config.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/limits/store.h"
#include "tests/lib/tree.h"

#define NOW    1800000000
#define MINUTE 60
#define HOUR   3600
#define DAY    (24 * HOUR)

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b) + 1e-12)

static const struct limits_key key = { .dev = 7,
                                       .io = "auto",
                                       .n_thread = 2,
                                       .n_core = 2,
                                       .n_cpu = 4,
                                       .cpu = "Some_CPU",
                                       .build = "0.1-abc",
                                       .kernels = "avx2",
                                       .model = "7 1 2 3 4" };

static const char *path(void)
{
    return tree_path("/limits");
}

/* Limits whose values all differ, so that no two of them can be exchanged. */
static struct mw_limits made(int64_t age_s)
{
    struct mw_limits l = { .disk_bytes_s = 2e9,
                           .memory_bytes_s = 2e10,
                           .fresh_bytes_s = 3e8,
                           .direct_bytes_s = 2.1e9,
                           .buffered_bytes_s = 1.9e9,
                           .lookup_s = 0.000125,
                           .read_cpu_s = 3e-11,
                           .contention = 0.25,
                           .measured_s = NOW - age_s,
                           .n_rate = 2 };

    l.rate[0] = (struct mw_rate){ "Q4_0", 22e9, 21e9, 1e11, false, NOW - age_s };
    l.rate[1] = (struct mw_rate){ "Q6_K", 15e9, 14e9, 2e11, false, NOW - age_s };
    l.steps = (struct mw_steps){ .round_s = 2e-6,
                                 .wake_s = 5e-5,
                                 .value_s = 1e-10,
                                 .curve_s = 3e-10,
                                 .measured_s = NOW - age_s };
    l.ways = (struct mw_ways){ .way = { 3, 1, 0, 4, 6, 2, 1, 0, 2, 1 }, .measured_s = NOW - age_s };
    for (int i = 0; i < MW_STEPS_KV; i++) {
        l.steps.load_s[i] = (i + 1) * 1e-11;
        l.steps.mac_s[i] = (i + 1) * 1e-12;
    }
    l.expert_use = (struct mw_expert_use){ .n_token = 288, .observed_s = NOW - age_s };
    for (int i = 0; i < MW_USE_PARTS; i++)
        l.expert_use.share[i] = (i + 1) / 136.0;
    return l;
}

static void keep_as(const struct limits_key *k, const struct mw_limits *l)
{
    struct limits_line lines[LIMITS_LINES];

    limits_store_keep(path(), lines, limits_store_lines(k, l, lines));
}

/* Returns the limits that a model with these two types gets; *has_all may be NULL. */
static struct mw_limits found(const struct limits_key *k, int64_t now_s, bool *has_all)
{
    struct mw_limits l = { .rate = { { .type = "Q6_K" }, { .type = "Q4_0" } }, .n_rate = 2 };
    struct limits_store s;
    bool all;

    limits_store_read(&s, path());
    all = limits_store_get(&s, k, now_s, &l);
    limits_store_free(&s);
    if (has_all != NULL)
        *has_all = all;
    return l;
}

static void limits_come_back_from_their_file(void **state)
{
    struct mw_limits l = made(60), again;
    bool has_all;

    (void)state;
    keep_as(&key, &l);
    again = found(&key, NOW, &has_all);
    assert_true(has_all);
    assert_near(again.disk_bytes_s, l.disk_bytes_s);
    assert_near(again.memory_bytes_s, l.memory_bytes_s);
    assert_near(again.fresh_bytes_s, l.fresh_bytes_s);
    assert_near(again.direct_bytes_s, l.direct_bytes_s);
    assert_near(again.buffered_bytes_s, l.buffered_bytes_s);
    assert_near(1e6 * again.lookup_s, 1e6 * l.lookup_s);
    assert_near(1e11 * again.read_cpu_s, 1e11 * l.read_cpu_s);
    assert_near(again.contention, l.contention);
    assert_int_equal(again.measured_s, l.measured_s);
    assert_near(again.rate[0].column_bytes_s, 15e9);
    assert_near(again.rate[0].few_bytes_s, 14e9);
    assert_near(again.rate[0].chunk_flops_s, 2e11);
    assert_near(again.rate[1].column_bytes_s, 22e9);
    assert_int_equal(again.rate[1].measured_s, NOW - 60);
    assert_memory_equal(again.ways.way, l.ways.way, sizeof l.ways.way);
    assert_int_equal(again.ways.measured_s, NOW - 60);
    assert_near(1e6 * again.steps.round_s, 2.0);
    assert_near(1e6 * again.steps.wake_s, 50.0);
    assert_near(1e10 * again.steps.value_s, 1.0);
    assert_near(1e10 * again.steps.curve_s, 3.0);
    for (int i = 0; i < MW_STEPS_KV; i++) {
        assert_near(1e11 * again.steps.load_s[i], i + 1.0);
        assert_near(1e12 * again.steps.mac_s[i], i + 1.0);
    }
    assert_near(again.expert_use.n_token, 288.0);
    for (int i = 0; i < MW_USE_PARTS; i++)
        assert_near(again.expert_use.share[i], (i + 1) / 136.0);
    assert_int_equal(again.expert_use.observed_s, NOW - 60);
}

static void limits_hold_only_for_what_they_are_of(void **state)
{
    struct mw_limits l = made(60);
    struct limits_key other;
    bool has_all;

    (void)state;
    keep_as(&key, &l);
#define WITH(member, value) (other = key, other.member = (value), found(&other, NOW, &has_all))
    assert_true(WITH(dev, 8).memory_bytes_s == 0);
    assert_true(WITH(io[0], 'A').memory_bytes_s == 0);
    assert_true(WITH(cpu[0], 's').memory_bytes_s == 0);
    assert_true(WITH(n_thread, 4).rate[0].measured_s == 0);
    assert_true(WITH(exact, true).rate[0].measured_s == 0);
    assert_true(WITH(build[0], '1').steps.measured_s == 0);
    assert_true(WITH(kernels[0], 'b').rate[1].measured_s == 0);
    assert_true(WITH(cpu[0], 's').ways.measured_s == 0);
    assert_true(WITH(kernels[0], 'b').ways.measured_s == 0);
    assert_false(has_all);
    /* The file was replaced: other routers. */
    assert_int_equal(WITH(model[0], '8').expert_use.observed_s, 0);
    assert_true(has_all);
    /* Without a file, no use of experts is found, and none is kept. */
    assert_int_equal(WITH(model[0], '\0').expert_use.observed_s, 0);
    keep_as(&other, &l);
    assert_int_equal(found(&other, NOW, NULL).expert_use.observed_s, 0);
}

static void each_kind_is_forgotten_in_its_time(void **state)
{
    struct mw_limits l = made(0);

    (void)state;
    keep_as(&key, &l);
    assert_true(found(&key, NOW + DAY, NULL).memory_bytes_s > 0);
    assert_true(found(&key, NOW + DAY + 1, NULL).memory_bytes_s == 0);
    assert_true(found(&key, NOW + DAY + 1, NULL).rate[0].measured_s == 0);
    assert_true(found(&key, NOW + DAY + 1, NULL).steps.measured_s == 0);
    assert_true(found(&key, NOW + DAY, NULL).ways.measured_s != 0);
    assert_true(found(&key, NOW + DAY + 1, NULL).ways.measured_s == 0);
    assert_true(found(&key, NOW + 30 * DAY, NULL).expert_use.observed_s != 0);
    assert_true(found(&key, NOW + 30 * DAY + 1, NULL).expert_use.observed_s == 0);
    assert_true(found(&key, NOW - 1, NULL).memory_bytes_s == 0); /* the clock was set back */
}

/* Beside a load that stays, each start would otherwise measure ways of products again. */
static void doubtful_ways_are_measured_again_after_two_hours(void **state)
{
    struct mw_limits l = made(HOUR);

    (void)state;
    l.ways.is_doubtful = true;
    keep_as(&key, &l);
    assert_true(found(&key, NOW - HOUR + 2 * HOUR, NULL).ways.measured_s != 0);
    assert_true(found(&key, NOW - HOUR + 2 * HOUR + 1, NULL).ways.measured_s == 0);
}

/* A start beside other programs goes on with the ways of before, however old they are. */
static void ways_that_are_too_old_are_still_known(void **state)
{
    struct mw_limits l = made(0), again;

    (void)state;
    assert_false(found(&key, NOW, NULL).ways.is_known);
    keep_as(&key, &l);
    again = found(&key, NOW + 3 * DAY, NULL);
    assert_true(again.ways.measured_s == 0);
    assert_true(again.ways.is_known);
    assert_memory_equal(again.ways.way, l.ways.way, sizeof l.ways.way);
}

static struct mw_threads threads_at(const struct limits_key *k, int64_t now_s)
{
    struct limits_store s;
    struct mw_threads t;

    limits_store_read(&s, path());
    (void)limits_store_threads(&s, k, now_s, &t);
    limits_store_free(&s);
    return t;
}

static void keep_threads(struct mw_threads t)
{
    struct limits_line line = limits_threads_line(&key, &t);

    limits_store_keep(path(), &line, 1);
}

/* The numbers of threads of these processors: the first trusted comparison stays. */
static void the_first_number_of_threads_stays(void **state)
{
    struct mw_threads t = { .n_core = 2, .n_cpu = 4, .core_s = 2e-11, .fewer_s = 4e-11,
                            .cpu_s = 1.5e-11, .is_doubtful = true, .measured_s = NOW };
    struct limits_key other = key;

    (void)state;
    assert_true(threads_at(&key, NOW).measured_s == 0);
    keep_threads(t);
    assert_true(threads_at(&key, NOW + 2 * HOUR).is_doubtful);
    assert_true(threads_at(&key, NOW + 2 * HOUR + 1).measured_s == 0);
    t.is_doubtful = false;
    keep_threads(t);
    t.cpu_s = 3e-11;
    t.measured_s += 400 * DAY;
    keep_threads(t);
    t = threads_at(&key, NOW + 400 * DAY);
    assert_int_equal(t.measured_s, NOW);
    assert_int_equal(limits_threads(&t), 4);
    assert_near(1e11 * t.core_s, 2.0);
    assert_near(1e11 * t.fewer_s, 4.0);
    other.n_thread = 7; /* of no influence */
    assert_true(threads_at(&other, NOW).measured_s != 0);
    other.n_cpu = 5;
    assert_true(threads_at(&other, NOW).measured_s == 0);
    other = key;
    other.n_core = 1;
    assert_true(threads_at(&other, NOW).measured_s == 0);
}

/* A start that measured nothing new leaves the file as it is. */
static void lines_that_are_there_are_not_written_again(void **state)
{
    struct mw_limits l = made(60), again;
    struct stat before, after;

    (void)state;
    keep_as(&key, &l);
    assert_int_equal(stat(path(), &before), 0);
    again = found(&key, NOW, NULL);
    keep_as(&key, &again);
    assert_int_equal(stat(path(), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* a new file replaces the old one */
    again.rate[0].column_bytes_s *= 1.01;
    keep_as(&key, &again);
    assert_int_equal(stat(path(), &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
}

static void doubtful_limits_never_replace_trusted_ones(void **state)
{
    struct mw_limits l = made(HOUR);

    (void)state;
    l.is_doubtful = l.rate[0].is_doubtful = l.steps.is_doubtful = true;
    l.memory_bytes_s = 1e10;
    l.rate[0].column_bytes_s = 8e9;
    l.steps.round_s = 9e-6;
    keep_as(&key, &l);
    /* Better than nothing. */
    assert_near(found(&key, NOW - HOUR + 10 * MINUTE, NULL).memory_bytes_s, 1e10);
    assert_true(found(&key, NOW - HOUR + 10 * MINUTE, NULL).is_doubtful);
    assert_near(found(&key, NOW - HOUR + 10 * MINUTE, NULL).rate[1].column_bytes_s, 8e9);
    assert_true(found(&key, NOW - HOUR + 10 * MINUTE + 1, NULL).memory_bytes_s == 0);
    l = made(HOUR / 2);
    keep_as(&key, &l);
    l.is_doubtful = l.rate[0].is_doubtful = l.steps.is_doubtful = true;
    l.measured_s = l.rate[0].measured_s = l.steps.measured_s = NOW;
    l.memory_bytes_s = 1e10;
    l.rate[0].column_bytes_s = 9e9;
    l.steps.round_s = 9e-6;
    keep_as(&key, &l);
    assert_near(found(&key, NOW, NULL).memory_bytes_s, 2e10);
    assert_near(found(&key, NOW, NULL).rate[1].column_bytes_s, 22e9);
    assert_near(1e6 * found(&key, NOW, NULL).steps.round_s, 2.0);
    l = made(0);
    l.memory_bytes_s = 3e10; /* measured again */
    keep_as(&key, &l);
    assert_near(found(&key, NOW, NULL).memory_bytes_s, 3e10);
}

/* A file must not hold rates of moments that contradict each other. */
/* Two programs measured at the same time: both take the choice of the first, as the next ones do.
 * Another OpenBLAS is another choice. */
static void the_first_choice_of_products_stays(void **state)
{
    struct limits_line l = { .kind = LIMITS_PRODUCT, .of = "a processor F32", .time_s = 100,
                             .text = "openblas 1", .value = { 3, 2 } };
    const struct limits_line *found;
    struct limits_store s = { 0 };

    (void)state;
    assert_true(limits_store_add(&s, &l));
    l.value[0] = 1;
    l.time_s = 101;
    assert_false(limits_store_add(&s, &l));
    found = limits_store_find(&s, LIMITS_PRODUCT, l.of, 101);
    assert_non_null(found);
    assert_true(found->value[0] > 2);
    snprintf(l.text, sizeof l.text, "openblas 2");
    assert_true(limits_store_add(&s, &l));
    found = limits_store_find(&s, LIMITS_PRODUCT, l.of, 101);
    assert_non_null(found);
    assert_true(found->value[0] < 2);
    limits_store_free(&s);
}

/* The form of a weight type, too, however old the choice is. */
static void the_first_choice_of_a_form_stays(void **state)
{
    struct limits_line l = { .kind = LIMITS_FORM, .of = "a processor Q4_0", .time_s = 100,
                             .value = { 2e-11, 3e-11 } };
    const struct limits_line *found;
    struct limits_store s = { 0 };

    (void)state;
    assert_true(limits_store_add(&s, &l));
    l.value[0] = 4e-11;
    l.time_s += 400 * DAY;
    assert_false(limits_store_add(&s, &l));
    found = limits_store_find(&s, LIMITS_FORM, l.of, l.time_s);
    assert_non_null(found);
    assert_true(found->value[0] < found->value[1]);
    limits_store_free(&s);
}

static void types_that_contradict_each_other_are_not_kept_together(void **state)
{
    struct mw_limits l = made(60);
    struct limits_key other = key;

    (void)state;
    keep_as(&key, &l);
    other.n_thread = 1;
    keep_as(&other, &l);
    l.n_rate = 1;
    l.rate[0] = (struct mw_rate){ "Q8_0", 300e9, 200e9, 1e11, true, NOW };
    keep_as(&key, &l); /* doubtful: not kept */
    assert_true(found(&key, NOW, NULL).rate[0].measured_s != 0);
    l.rate[0].is_doubtful = false;
    keep_as(&key, &l);
    assert_true(found(&key, NOW, NULL).rate[0].measured_s == 0);
    assert_true(found(&key, NOW, NULL).rate[1].measured_s == 0);
    assert_true(found(&other, NOW, NULL).rate[1].measured_s != 0); /* of other threads */
}

/* They would be measured again at each start. */
static void types_of_one_go_may_contradict_each_other(void **state)
{
    struct mw_limits l = made(60);

    (void)state;
    l.rate[0] = (struct mw_rate){ "Q4_0", 1e9, 1e9, 1e11, false, NOW };
    l.rate[1] = (struct mw_rate){ "Q6_K", 30e9, 30e9, 1e11, false, NOW };
    keep_as(&key, &l);
    assert_near(found(&key, NOW, NULL).rate[0].column_bytes_s, 30e9);
    assert_near(found(&key, NOW, NULL).rate[1].column_bytes_s, 1e9);
}

static void reads_of_another_size_are_better_than_none(void **state)
{
    struct mw_limits large = made(HOUR), small = made(60);
    struct limits_key k = key, other = key;

    (void)state;
    keep_as(&key, &large);
    k.read_kib = 512;
    small.disk_bytes_s = 1e9;
    assert_near(found(&k, NOW, NULL).disk_bytes_s, 2e9);
    keep_as(&k, &small);
    assert_near(found(&k, NOW, NULL).disk_bytes_s, 1e9);
    assert_near(found(&key, NOW, NULL).disk_bytes_s, 2e9);
    other.read_kib = 256;
    small.disk_bytes_s = 0; /* a file that was too small to measure: as fast as others */
    keep_as(&other, &small);
    assert_near(found(&other, NOW, NULL).disk_bytes_s, 1e9);
}

static void a_small_file_has_a_rate_of_its_own(void **state)
{
    struct mw_limits small = made(60), large = made(HOUR);
    struct limits_key k = key, other = key;

    (void)state;
    k.is_small = true;
    small.disk_bytes_s = 8e7;
    keep_as(&k, &small);
    assert_near(found(&k, NOW, NULL).disk_bytes_s, 8e7);
    assert_true(found(&key, NOW, NULL).disk_bytes_s <= 0);
    other.read_kib = 512;
    assert_true(found(&other, NOW, NULL).disk_bytes_s <= 0);
    keep_as(&key, &large);
    assert_near(found(&k, NOW, NULL).disk_bytes_s, 8e7);
    assert_near(found(&other, NOW, NULL).disk_bytes_s, 2e9);
}

static void lines_that_make_no_sense_are_left_out(void **state)
{
    static const char text[] =
        "1799999999 7 auto 2 Some_CPU Q4_0/avx2 1e9 2e10 1e11\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":-5,\"chunk_flops_s\":1e11,\"few_bytes_s\":1e10}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":1e17,\"chunk_flops_s\":1e11,\"few_bytes_s\":1e10}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":1e400,\"chunk_flops_s\":1e11,\"few_bytes_s\":1e10}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":1e10}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":1e10,\"chunk_flops_s\":1e11}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":-1,"
        "\"doubtful\":false,\"column_bytes_s\":1e10,\"chunk_flops_s\":1e11,\"few_bytes_s\":1e10}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":0,\"column_bytes_s\":1e10,\"chunk_flops_s\":1e11,\"few_bytes_s\":1e10}\n"
        "{\"kind\":\"no kind\",\"of\":\"x\",\"time\":1799999999,\"doubtful\":false}\n"
        "{\"kind\":\"type\"\n[]\n{}\n7\n\n\x01\xff\xfe\n% %s %n\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc Some_CPU avx2 usual 2 Q4_0\",\"time\":1799999999,"
        "\"doubtful\":false,\"column_bytes_s\":2e10,\"chunk_flops_s\":1e11,"
        "\"few_bytes_s\":1e10,\"more\":[1]}\n"
        "{\"kind\":\"type\",\"of\":\"0.1-abc";
    struct limits_store s;

    (void)state;
    tree_put("/limits", text);
    limits_store_read(&s, path());
    assert_int_equal(s.n, 1);
    limits_store_free(&s);
    assert_near(found(&key, NOW, NULL).rate[1].column_bytes_s, 2e10);
    tree_put("/limits", "");
    assert_true(found(&key, NOW, NULL).memory_bytes_s == 0);
}

static void a_full_file_forgets_the_oldest_lines_of_a_kind(void **state)
{
    struct mw_limits l = made(0);
    struct limits_store s;
    struct limits_key k = key;
    size_t n_disk = 0;

    (void)state;
    for (int i = 0; i < 80; i++) {
        k.dev = (uint64_t)i;
        keep_as(&k, &l);
        keep_as(&k, &l); /* replaces it */
    }
    limits_store_read(&s, path());
    for (size_t i = 0; i < s.n; i++)
        n_disk += s.line[i].kind == LIMITS_DISK;
    assert_in_range(n_disk, 60, 61);
    assert_non_null(limits_store_find_like(&s, LIMITS_DISK, "79 auto ", NOW));
    assert_null(limits_store_find_like(&s, LIMITS_DISK, "18 auto ", NOW));
    assert_int_equal(s.n - n_disk, 5); /* two types, ways, steps, a model */
    limits_store_free(&s);
}

/* Programs that end at the same time lose nothing of each other. */
static void programs_wait_for_each_other(void **state)
{
    enum { PROGRAMS = 4, LINES = 10 };
    struct limits_store s;
    int failed = 0;

    (void)state;
    for (int i = 0; i < PROGRAMS; i++)
        if (fork() == 0) {
            struct mw_limits l = made(0);
            struct limits_key k = key;

            for (int j = 0; j < LINES; j++) {
                k.dev = (uint64_t)(i * LINES + j);
                keep_as(&k, &l);
            }
            _exit(0);
        }
    for (int i = 0; i < PROGRAMS; i++) {
        int status;

        wait(&status);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
    limits_store_read(&s, path());
    assert_int_equal(s.n, PROGRAMS * LINES + 5);
    limits_store_free(&s);
}

/* A program that was stopped may keep the lock until it goes on. */
static void a_lock_that_stays_holds_nobody_up(void **state)
{
    struct mw_limits l = made(60);
    int folder = open(tree_root, O_RDONLY | O_DIRECTORY);

    (void)state;
    assert_true(folder >= 0);
    assert_int_equal(flock(folder, LOCK_EX), 0);
    alarm(120); /* instead of a wait without end */
    keep_as(&key, &l);
    alarm(0);
    assert_near(found(&key, NOW, NULL).memory_bytes_s, l.memory_bytes_s);
    close(folder);
}

static void a_model_is_known_by_its_file(void **state)
{
    char a[128], b[128], again[128];

    (void)state;
    tree_put("/a.gguf", "12");
    tree_put("/b.gguf", "12");
    limits_model_of("/nothing", a, sizeof a);
    assert_string_equal(a, "");
    limits_model_of(tree_path("/a.gguf"), a, sizeof a);
    limits_model_of(tree_path("/b.gguf"), b, sizeof b);
    limits_model_of(tree_path("/a.gguf"), again, sizeof again);
    assert_string_not_equal(a, b);
    assert_string_equal(a, again);
    tree_put("/a.gguf", "123");
    limits_model_of(tree_path("/a.gguf"), again, sizeof again);
    assert_string_not_equal(a, again);
}

/* The time of the inode shows that a file was written whose other times were set back. */
static void a_model_with_its_old_time_is_another_one(void **state)
{
    char path_a[600], before[128], after[128];
    struct timespec times[2];
    struct stat st;
    int fd;

    (void)state;
    snprintf(path_a, sizeof path_a, "%s", tree_path("/a.gguf"));
    tree_put("/a.gguf", "12");
    limits_model_of(path_a, before, sizeof before);
    assert_int_equal(stat(path_a, &st), 0);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    do { /* the clock of the file system has steps */
        fd = open(path_a, O_WRONLY);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "34", 2), 2);
        assert_int_equal(futimens(fd, times), 0);
        close(fd);
        assert_int_equal(stat(path_a, &st), 0);
        limits_model_of(path_a, after, sizeof after);
    } while (strcmp(before, after) == 0 && st.st_ctim.tv_sec < times[1].tv_sec + 10);
    assert_int_equal(st.st_size, 2);
    assert_memory_equal(&st.st_mtim, &times[1], sizeof times[1]);
    assert_string_not_equal(before, after);
}

/* Another user could have chosen the limits, or the file that is written. */
static void files_of_others_are_not_read(void **state)
{
    struct mw_limits l = made(60);
    char other[600];
    struct stat st;

    (void)state;
    keep_as(&key, &l);
    snprintf(other, sizeof other, "%s-other", path());
    assert_int_equal(rename(path(), other), 0);
    assert_int_equal(symlink(other, path()), 0);
    assert_true(found(&key, NOW, NULL).memory_bytes_s == 0);
    l.memory_bytes_s = 3e10;
    keep_as(&key, &l); /* takes the place of the link, and leaves the file */
    assert_int_equal(lstat(path(), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_near(found(&key, NOW, NULL).memory_bytes_s, 3e10);
    assert_int_equal(rename(other, path()), 0);
    assert_near(found(&key, NOW, NULL).memory_bytes_s, 2e10);
    if (geteuid() == 0) {
        assert_int_equal(chown(path(), 12345, (gid_t)-1), 0);
        assert_true(found(&key, NOW, NULL).memory_bytes_s == 0);
    }
    assert_int_equal(unlink(path()), 0);
    assert_int_equal(mkfifo(path(), 0600), 0);
    assert_true(found(&key, NOW, NULL).memory_bytes_s == 0);
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        in_a_tree(limits_come_back_from_their_file),
        in_a_tree(limits_hold_only_for_what_they_are_of),
        in_a_tree(each_kind_is_forgotten_in_its_time),
        in_a_tree(doubtful_ways_are_measured_again_after_two_hours),
        in_a_tree(ways_that_are_too_old_are_still_known),
        in_a_tree(the_first_number_of_threads_stays),
        in_a_tree(lines_that_are_there_are_not_written_again),
        in_a_tree(doubtful_limits_never_replace_trusted_ones),
        in_a_tree(the_first_choice_of_products_stays),
        in_a_tree(the_first_choice_of_a_form_stays),
        in_a_tree(types_that_contradict_each_other_are_not_kept_together),
        in_a_tree(types_of_one_go_may_contradict_each_other),
        in_a_tree(reads_of_another_size_are_better_than_none),
        in_a_tree(a_small_file_has_a_rate_of_its_own),
        in_a_tree(lines_that_make_no_sense_are_left_out),
        in_a_tree(a_full_file_forgets_the_oldest_lines_of_a_kind),
        in_a_tree(programs_wait_for_each_other),
        in_a_tree(a_lock_that_stays_holds_nobody_up),
        in_a_tree(a_model_is_known_by_its_file),
        in_a_tree(a_model_with_its_old_time_is_another_one),
        in_a_tree(files_of_others_are_not_read),
    };

    return cmocka_run_group_tests_name("limits_store", tests, NULL, NULL);
}
