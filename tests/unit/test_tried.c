/*
 * Tried settings: measured by a session, one record for each combination, kept in the file of
 * limits, and shown as rows.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/limits/store.h"
#include "tests/lib/calls.h"
#include "tests/lib/tree.h"
#include "ui/words/tried.h"

#define NOW 1800000000
#define DAY (24 * 3600)
#define OF  "Some_CPU 7 1 2 3 4"

static struct mw_tried made(double memory_bytes, double tps)
{
    return (struct mw_tried){ .memory_bytes = memory_bytes,
                              .n_ctx = 4096,
                              .kv_k = MW_KV_F16,
                              .kv_v = MW_KV_F16,
                              .n_thread = 2,
                              .n_token = 70,
                              .tps = tps,
                              .wait_share = 0.683,
                              .measured_s = NOW - 60 };
}

/* ---- lists ---- */

static void a_newer_answer_replaces_the_one_with_the_same_settings(void **state)
{
    struct mw_tried list[MW_TRIED_MOST], a = made(600e6, 2), b = made(900e6, 3), again;
    size_t n = 0;

    (void)state;
    a.peak_bytes = 610e6;
    mw_tried_put(list, &n, &a);
    mw_tried_put(list, &n, &b);
    again = made(600e6, 2.5);
    mw_tried_put(list, &n, &again);
    assert_int_equal(n, 2);
    assert_true(list[0].memory_bytes == 600e6 && list[0].tps == 2.5);
    assert_true(list[0].peak_bytes == 610e6); /* the peak of the answer before */
    assert_true(list[1].memory_bytes == 900e6);
    assert_ptr_equal(mw_tried_slowest(list, n), &list[0]);
    again.kv_v = MW_KV_Q8_0;
    mw_tried_put(list, &n, &again);
    assert_int_equal(n, 3);
}

static void a_full_list_forgets_its_oldest(void **state)
{
    struct mw_tried list[MW_TRIED_MOST] = { { 0 } };
    size_t n = 0;

    (void)state;
    assert_null(mw_tried_slowest(list, 0));
    for (int i = 1; i <= MW_TRIED_MOST + 5; i++) {
        struct mw_tried t = made(i * 1e6, i);

        mw_tried_put(list, &n, &t);
    }
    assert_int_equal(n, MW_TRIED_MOST);
    assert_true(list[0].tps == MW_TRIED_MOST + 5);
    assert_true(list[n - 1].tps == 6);
}

/* ---- the file ---- */

static const char *path(void)
{
    return tree_path("/limits");
}

static void keep(const char *of, const struct mw_tried *t)
{
    struct limits_line l = { 0 };

    tried_to_line(t, &l);
    snprintf(l.of, sizeof l.of, "%s", of);
    limits_store_keep(path(), &l, 1);
}

static size_t kept(const char *of, int64_t now_s, struct mw_tried *list)
{
    struct limits_store s;
    size_t n;

    limits_store_read(&s, path());
    n = limits_store_tried(&s, of, now_s, list);
    limits_store_free(&s);
    return n;
}

static void records_come_back_from_their_file(void **state)
{
    struct mw_tried list[MW_TRIED_MOST], a = made(629145600, 2.054), b = made(1208 << 20, 3.67);

    (void)state;
    a.chunk = 32;
    a.disk_rate = 5e8;
    a.exact = 1;
    a.io = MW_IO_BUFFERED;
    a.peak_bytes = 656408576;
    keep(OF, &a);
    keep(OF, &b);
    keep("Some_CPU other", &b);
    assert_int_equal(kept(OF, NOW, list), 2);
    assert_true(list[0].memory_bytes == b.memory_bytes && list[0].tps == 3.67);
    assert_true(mw_tried_same_settings(&list[1], &a));
    assert_true(list[1].peak_bytes == a.peak_bytes && list[1].measured_s == a.measured_s);
    assert_true(fabs(list[1].wait_share - 0.683) < 1e-9);
    a.tps = 2.5;
    keep(OF, &a);
    assert_int_equal(kept(OF, NOW, list), 2);
    assert_true(list[0].tps == 2.5);
    assert_int_equal(kept(OF, NOW + 29 * DAY, list), 2);
    assert_int_equal(kept(OF, NOW + 31 * DAY, list), 0);
}

/* 64 of a model, 192 of all; other lines of the file stay. */
static void the_file_is_bounded(void **state)
{
    struct mw_tried list[MW_TRIED_MOST];
    struct limits_line other = { .kind = LIMITS_PRODUCT, .of = "x", .time_s = NOW };
    struct limits_store s;

    (void)state;
    limits_store_keep(path(), &other, 1);
    for (int i = 1; i <= 70; i++) {
        struct mw_tried t = made(i * 1e6, i);

        keep(OF, &t);
    }
    assert_int_equal(kept(OF, NOW, list), MW_TRIED_MOST);
    assert_true(list[0].tps == 70 && list[MW_TRIED_MOST - 1].tps == 7);
    limits_store_read(&s, path());
    assert_int_equal(s.n, MW_TRIED_MOST + 1);
    limits_store_free(&s);
    for (int m = 0; m < 5; m++)
        for (int i = 1; i <= 50; i++) {
            struct mw_tried t = made(i * 1e6, i);
            char of[40];

            snprintf(of, sizeof of, "model %d", m);
            keep(of, &t);
        }
    limits_store_read(&s, path());
    assert_true(s.n <= 193 + 1);
    assert_non_null(limits_store_find(&s, LIMITS_PRODUCT, "x", NOW));
    limits_store_free(&s);
    assert_int_equal(kept("model 4", NOW, list), 50);
}

#define LINE(settings, measured)                                                               \
    "{\"kind\":\"tried\",\"of\":\"" OF "\",\"time\":1799999940,\"doubtful\":false," settings   \
    ",\"chunk\":0,\"disk_rate\":0,\"exact\":0," measured ",\"peak_bytes\":0}\n"
#define SETTINGS                                                                               \
    "\"memory_bytes\":629145600,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":1,\"n_thread\":2,\"io\":0"
#define MEASURED "\"n_token\":70,\"tps\":2.05,\"wait_share\":0.68,\"measured_s\":1799999940"

static void damaged_lines_are_left_out(void **state)
{
    static const char *const bad[] = {
        LINE("\"memory_bytes\":0,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":1,\"n_thread\":2,\"io\":0",
             MEASURED),
        LINE(
            "\"memory_bytes\":1.5,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":1,\"n_thread\":2,\"io\":0",
            MEASURED),
        LINE(
            "\"memory_bytes\":1e6,\"n_ctx\":1e15,\"kv_k\":1,\"kv_v\":1,\"n_thread\":2,\"io\":0",
            MEASURED),
        LINE(
            "\"memory_bytes\":1e6,\"n_ctx\":4096,\"kv_k\":4,\"kv_v\":1,\"n_thread\":2,\"io\":0",
            MEASURED),
        LINE("\"memory_bytes\":1e6,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":0.5,\"n_thread\":2,"
             "\"io\":0",
             MEASURED),
        LINE(
            "\"memory_bytes\":1e6,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":1,\"n_thread\":0,\"io\":0",
            MEASURED),
        LINE(
            "\"memory_bytes\":1e6,\"n_ctx\":4096,\"kv_k\":1,\"kv_v\":1,\"n_thread\":2,\"io\":9",
            MEASURED),
        LINE("\"memory_bytes\":1e6", MEASURED),
        LINE(SETTINGS, "\"n_token\":7,\"tps\":2,\"wait_share\":0.6,\"measured_s\":1799999940"),
        LINE(SETTINGS, "\"n_token\":70,\"tps\":0,\"wait_share\":0.6,\"measured_s\":1799999940"),
        LINE(SETTINGS, "\"n_token\":70,\"tps\":1e9,\"wait_share\":0.6,\"measured_s\":1"),
        LINE(SETTINGS, "\"n_token\":70,\"tps\":2,\"wait_share\":1.2,\"measured_s\":1799999940"),
        LINE(SETTINGS, "\"n_token\":70,\"tps\":2,\"wait_share\":0.6,\"measured_s\":0"),
        LINE(SETTINGS, "\"n_token\":70,\"tps\":-2,\"wait_share\":0.6,\"measured_s\":1"),
        "{\"kind\":\"tried\",\"of\":\"" OF "\"",
    };
    struct mw_tried list[MW_TRIED_MOST];
    char text[8192] = "";

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tree_put("/limits", bad[i]);
        if (kept(OF, NOW, list) != 0)
            fail_msg("accepted: %s", bad[i]);
        if (strchr(bad[i], '\n') != NULL)
            strcat(text, bad[i]);
    }
    strcat(text, LINE(SETTINGS, MEASURED));
    tree_put("/limits", text);
    assert_int_equal(kept(OF, NOW, list), 1);
    assert_true(list[0].tps == 2.05);
}

/* ---- a session measures them ---- */

static void answer(struct mw_session *s, uint32_t n)
{
    uint32_t ids[48];

    for (uint32_t i = 0; i < 48; i++)
        ids[i] = 5 + i;
    eval(s, ids, 16);
    for (uint32_t i = 0; i < n; i++)
        eval(s, &ids[i], 1);
}

static void a_session_measures_its_settings(void **state)
{
    struct mw_model *m = open_model("gemma4-tiny-q4_0.gguf");
    struct mw_options o = small_options(256);
    struct mw_tried list[MW_TRIED_MOST], wanted = { 0 };
    struct err e = ERR_INIT;
    struct mw_session *s;
    struct plan p;

    (void)state;
    s = open_session(m, &o);
    answer(s, MW_TRIED_TOKENS - 1);
    assert_int_equal(mw_model_tried(m, list), 0);
    answer(s, 20);
    assert_int_equal(mw_model_tried(m, list), 1);
    mw_tried_of_options(&wanted, &o);
    wanted.io = list[0].io;
    assert_true(mw_tried_same_settings(&list[0], &wanted));
    assert_true(list[0].is_session && list[0].tps > 0 && list[0].n_token >= MW_TRIED_TOKENS);
    mw_session_plan(s, &p);
    mw_model_tried_peak(m, &p, 12345678);
    assert_int_equal(mw_session_set_memory(s, o.memory_bytes + 16 * MIB, &e), 0);
    answer(s, 20);
    assert_int_equal(mw_model_tried(m, list), 2);
    assert_true(list[0].memory_bytes == (double)o.memory_bytes + 16 * MIB);
    assert_true(list[0].peak_bytes == 0 && list[1].peak_bytes == 12345678);
    mw_session_close(s);
    mw_model_close(m);
}

/* ---- in words ---- */

static void rows_name_the_gain_against_the_slowest(void **state)
{
    struct mw_tried list[] = { made(1208 << 20, 3.67), made(600 << 20, 2.05),
                               made(2000 << 20, 82) };
    struct tried_table table;
    char row[TRIED_LINE], what[120];

    (void)state;
    list[1].peak_bytes = 626 << 20;
    tried_table(&table, list, 3, NOW + 240);
    assert_string_equal(
        tried_row(row, sizeof row, &table, &list[0]),
        "1.18 GiB   4,096 f16        3.67  +79 % 68 %     70        - 5 min ago");
    assert_string_equal(
        tried_row(row, sizeof row, &table, &list[1]),
        " 600 MiB   4,096 f16        2.05      - 68 %     70  626 MiB 5 min ago");
    assert_true(strlen(row) <= 74 - 2); /* of a sheet on 80 columns */
    assert_non_null(strstr(tried_row(row, sizeof row, &table, &list[2]), "   x40 "));
    assert_string_equal(tried_settings(what, sizeof what, &table, &list[1]),
                        "budget 600 MiB, context 4,096, kv f16");
    list[0].n_thread = 1;
    list[0].kv_v = MW_KV_Q8_0;
    list[0].io = MW_IO_MMAP;
    list[0].disk_rate = 5e8;
    tried_table(&table, list, 3, NOW);
    assert_string_equal(tried_settings(what, sizeof what, &table, &list[0]),
                        "budget 1.18 GiB, context 4,096, kv f16/q8_0, threads 1, io mmap, disk "
                        "rate 500 MB/s");
    assert_int_equal(strlen(tried_heading()),
                     strlen(" 600 MiB   4,096 f16        2.05      - 68 %     70  626 MiB"));
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newer_answer_replaces_the_one_with_the_same_settings),
        cmocka_unit_test(a_full_list_forgets_its_oldest),
        in_a_tree(records_come_back_from_their_file),
        in_a_tree(the_file_is_bounded),
        in_a_tree(damaged_lines_are_left_out),
        cmocka_unit_test(a_session_measures_its_settings),
        cmocka_unit_test(rows_name_the_gain_against_the_slowest),
    };

    return cmocka_run_group_tests_name("tried", tests, NULL, NULL);
}
