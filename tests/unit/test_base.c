/* Errors, the arena, the clock, threads, sizes, UTF-8, JSON and hashes. */
#include "config.h"

#include <sys/mman.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/arena.h"
#include "engine/base/build_name.h"
#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/err.h"
#include "engine/base/greatest.h"
#include "engine/base/json_write.h"
#include "engine/base/keyed_hash.h"
#include "engine/base/numbers.h"
#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/base/utf8.h"

static void an_error_names_its_place_and_its_cause(void **state)
{
    struct err e = ERR_INIT;
    char text[600];

    (void)state;
    assert_int_equal(err_set(&e, ERR_FORMAT, "row length %d is not a multiple of %d", 255, 32),
                     -1);
    err_at(&e, NULL, 4096, "blk.0.attn_q.weight");
    err_at(&e, "a.gguf", ERR_NO_OFFSET, "overridden");
    err_text(&e, text, sizeof text);
    assert_string_equal(text, "a.gguf: blk.0.attn_q.weight at byte 4096: row length 255 is "
                              "not a multiple of 32");
}

static void a_system_error_keeps_its_number(void **state)
{
    struct err e = ERR_INIT;
    char text[600];

    (void)state;
    errno = ENOENT;
    err_sys(&e, "cannot open \"%s\"", "x\x1b[2J");
    err_text(&e, text, sizeof text);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(text, "cannot open \"x?[2J\": No such file or directory");
}

static void a_memory_error_names_the_object_that_did_not_fit(void **state)
{
    struct err e = ERR_INIT;
    char text[600];

    (void)state;
    assert_int_equal(err_memory(&e, "a table of %u names", 12u), -1);
    err_text(&e, text, sizeof text);
    assert_int_equal(e.code, ERR_MEMORY);
    assert_string_equal(text, "not enough memory for a table of 12 names");
}

static void an_arena_refuses_more_than_it_holds(void **state)
{
    struct err e = ERR_INIT;
    struct arena a;

    (void)state;
    assert_int_equal(arena_map(&a, "ring", 8192, true, &e), 0);
    assert_non_null(arena_take(&a, 4000, &e));
    assert_non_null(arena_take(&a, 100, &e));
    assert_null(arena_take(&a, 8192, &e));
    assert_int_equal(e.code, ERR_BUDGET);
    assert_int_equal(a.used, arena_size(4000) + arena_size(100));
    arena_unmap(&a);
    assert_null(a.base);
}

static void only_complete_pages_are_fetched(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char is_there[8];
    char *p = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(madvise(p, 8 * page, MADV_NOHUGEPAGE), 0);
    memory_fetch(p + page + 1, 5 * page);
    memory_fetch(p + 1, page - 2);
    assert_int_equal(mincore(p, 8 * page, is_there), 0);
    for (size_t i = 0; i < 8; i++) /* 2 to 5; none before Linux 5.14 */
        assert_int_equal(is_there[i] & 1, (is_there[2] & 1) && i >= 2 && i <= 5);
    munmap(p, 8 * page);
}

static void a_wait_ends_when_the_clock_reaches_its_time(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    uint64_t until_ns = clock_ns() + 20000000;

    (void)state;
    clock_cond_init(&cond);
    pthread_mutex_lock(&lock);
    while (clock_cond_wait(&cond, &lock, until_ns))
        assert_true(clock_ns() < until_ns + 60 * (uint64_t)1000000000);
    assert_true(clock_ns() >= until_ns);
    assert_true(clock_s() * 1e9 >= (double)until_ns);
    assert_false(clock_cond_wait(&cond, &lock, until_ns));
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

struct seen {
    char name[16];
    sigset_t blocked;
    size_t stack_bytes;
};

static void *look_around(void *arg)
{
    struct seen *seen = arg;
    pthread_attr_t attr;

    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    while (pthread_getname_np(pthread_self(), seen->name, sizeof seen->name) == 0 &&
           strcmp(seen->name, "look") != 0)
        sched_yield(); /* the thread that started this one sets it */
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &seen->stack_bytes);
    pthread_attr_destroy(&attr);
    return NULL;
}

static void a_thread_has_the_requested_stack_and_takes_no_signals_but_faults(void **state)
{
    static const int blocked[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCHLD };
    static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    struct seen seen = { .stack_bytes = 0 };
    sigset_t mine;
    pthread_t thread;

    (void)state;
    assert_int_equal(thread_start(&thread, "look", 300 * KIB, look_around, &seen), 0);
    pthread_join(thread, NULL);
    assert_string_equal(seen.name, "look");
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        assert_int_equal(sigismember(&seen.blocked, blocked[i]), 1);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_int_equal(sigismember(&seen.blocked, open[i]), 0);
    /* A sanitizer adds some of its own; the default would be 8 MiB. */
    assert_in_range(seen.stack_bytes, 300 * KIB, MIB);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_int_equal(sigismember(&mine, SIGINT), 0);
}

static void a_thread_that_cannot_start_reports_why(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(thread_start(&thread, "look", 1, look_around, NULL), EINVAL);
    assert_int_equal(thread_start(&thread, "look", (size_t)1 << 50, look_around, NULL), EAGAIN);
}

static void sizes_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {
        { "512M", 512 * MIB }, { "2G", 2 * GIB },  { "1.5GiB", 3 * GIB / 2 },
        { "300", 300 },        { "50%", 4 * GIB }, { "64kb", 64 * KIB },
    };
    static const char *const bad[] = { "", "M", "-1G", "12X", "101%", "1e30T", "nan" };
    struct err e = ERR_INIT;
    uint64_t exact;
    char buf[16];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t got = 0;

        assert_int_equal(units_parse_size(rows[i].text, 8 * GIB, &got, &e), 0);
        assert_int_equal(got, rows[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t got = 7;

        assert_int_equal(units_parse_size(bad[i], 8 * GIB, &got, &e), -1);
        assert_int_equal(got, 7);
    }
    assert_string_equal(units_size(buf, sizeof buf, 3 * GIB / 2), "1.50 GiB");
    assert_string_equal(units_size(buf, sizeof buf, 17), "17 B");
    assert_string_equal(units_size(buf, sizeof buf, 1023 * MIB + 900 * KIB), "1.00 GiB");
    assert_string_equal(units_size_up(buf, sizeof buf, 1023 * MIB + 1), "1.00 GiB");
    assert_string_equal(units_size_up(buf, sizeof buf, GIB + 1), "1.01 GiB");
    assert_string_equal(units_size_up(buf, sizeof buf, 99 * MIB + 950 * KIB), "100 MiB");
    assert_string_equal(units_size_down(buf, sizeof buf, GIB - 1), "0.99 GiB");
    assert_string_equal(units_size_like(buf, sizeof buf, 410 * MIB, "1.12 GiB"), "0.40");
    assert_string_equal(units_size_like(buf, sizeof buf, 410 * MIB, "600 MiB"), "410");
    assert_string_equal(units_size_like(buf, sizeof buf, 17, "20 B"), "17");
    assert_string_equal(units_option(buf, sizeof buf, 600 * MIB), "600M");
    assert_string_equal(units_option(buf, sizeof buf, 2 * GIB), "2G");
    assert_string_equal(units_option(buf, sizeof buf, 3 * GIB / 2), "1.5G");
    assert_string_equal(units_option(buf, sizeof buf, 1472 * MIB), "1472M"); /* 1.4375 GiB */
    assert_string_equal(units_option(buf, sizeof buf, 600 * MIB + 1), "601M");
    assert_int_equal(units_parse_size("1.15 GiB", 0, &exact, &e), 0);
    assert_string_equal(units_option(buf, sizeof buf, exact), "1.15G");
    for (uint64_t i = 1; i < 4000; i += 7) { /* what is proposed is enough, and no much more */
        uint64_t bytes = i * i * 1237 + i, up, down;

        assert_int_equal(
            units_parse_size(units_size_up(buf, sizeof buf, bytes), 0, &up, &e), 0);
        assert_int_equal(
            units_parse_size(units_size_down(buf, sizeof buf, bytes), 0, &down, &e), 0);
        assert_true(down <= bytes && bytes <= up);
        assert_true((double)(up - down) <= 0.011 * (double)bytes + 1);
    }
}

static void predictions_say_when_they_are_doubtful(void **state)
{
    char buf[40];

    (void)state;
    assert_string_equal(numbers_predicted(buf, sizeof buf, 12.3, false), "~12");
    assert_string_equal(numbers_predicted(buf, sizeof buf, 38168, true), "~38,000?");
    assert_string_equal(numbers_predicted(buf, sizeof buf, 0.6666, false), "~0.67");
}

static void numbers_are_rounded_for_reading(void **state)
{
    static const struct {
        double seconds;
        const char *want;
    } times[] = {
        { 0.0449, "45 ms" },   { 0.0996, "0.1 s" },   { 9.94, "9.9 s" },    { 9.96, "10 s" },
        { 59.4, "59 s" },      { 59.6, "1 min 0 s" }, { 125, "2 min 5 s" }, { 720, "12 min" },
        { 3780, "1 h 3 min" }, { 7199, "2 h 0 min" }, { -1, "0 ms" },
    };
    char buf[40];

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_string_equal(numbers_time(buf, sizeof buf, times[i].seconds), times[i].want);
    assert_string_equal(numbers_count(buf, sizeof buf, 999), "999");
    assert_string_equal(numbers_count(buf, sizeof buf, 1234567), "1,234,567");
    assert_string_equal(numbers_count(buf, 6, 1234567), "1,234"); /* cut, and in its bounds */
    assert_string_equal(numbers_parameters(buf, sizeof buf, 4630000000), "4.63 B");
    assert_string_equal(numbers_parameters(buf, sizeof buf, 999600000), "1.00 B");
    assert_string_equal(numbers_parameters(buf, sizeof buf, 485400000), "485 M");
    assert_string_equal(numbers_parameters(buf, sizeof buf, 17), "17");
    assert_string_equal(numbers_measured(buf, sizeof buf, 0.01666), "0.017");
    assert_string_equal(numbers_measured(buf, sizeof buf, 3.4149), "3.41");
    assert_string_equal(numbers_measured(buf, sizeof buf, 24249), "24,200");
    assert_string_equal(numbers_rough(buf, sizeof buf, 123.4), "120");
    assert_string_equal(numbers_rough(buf, sizeof buf, 0.01666), "0.017");
    assert_string_equal(numbers_rough(buf, sizeof buf, 1e300), "1,000,000,000,000");
    assert_string_equal(numbers_rough(buf, sizeof buf, NAN), "0.000");
    assert_int_equal(numbers_whole(-INFINITY), 0);
    assert_int_equal(numbers_whole(NAN), 0);
    assert_int_equal(numbers_whole(2.9), 2);
    assert_int_equal(numbers_whole(1e300), (uint64_t)1 << 63);
}

static void rates_are_read_in_powers_of_1000(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } rows[] = {
        { "20M", 20000000 },    { "1.5G", 1500000000 }, { "20 MB/s", 20000000 },
        { "1MiB/s", 1u << 20 }, { "800", 800 },         { "64 kb", 64000 },
    };
    static const char *const bad[] = {
        "", "M", "-1G", "50%", "20M/h", "20M/s ", "20MegaBytes/s"
    };

    char buf[24];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t got = 0;

        assert_true(units_parse_rate(rows[i].text, &got));
        assert_int_equal(got, rows[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t got = 7;

        assert_false(units_parse_rate(bad[i], &got));
        assert_int_equal(got, 7);
    }
    assert_string_equal(units_change(buf, sizeof buf, 1.124), "+12 %");
    assert_string_equal(units_change(buf, sizeof buf, 0.97), "-3 %");
    assert_string_equal(units_change(buf, sizeof buf, 0.996), "0 %"); /* neither "-0" nor "+0" */
    assert_string_equal(units_change(buf, sizeof buf, 1.004), "0 %");
    assert_string_equal(units_rate(buf, sizeof buf, 20e6), "20 MB/s");
    assert_string_equal(units_rate(buf, sizeof buf, 23456789), "23.5 MB/s");
    assert_string_equal(units_rate(buf, sizeof buf, 999.9e6), "1 GB/s");
    assert_string_equal(units_rate(buf, sizeof buf, 0), "0 MB/s");
    for (double rate = 1; rate < 9e14; rate *= 1.7) { /* never "1e-06 MB/s" or "2e+03 GB/s" */
        uint64_t got;

        assert_null(strchr(units_rate(buf, sizeof buf, round(rate)), 'e'));
        assert_true(units_parse_rate(buf, &got));
        assert_true(fabs((double)got / round(rate) - 1) < 0.006);
    }
}

static void numbers_are_whole_texts_within_their_range(void **state)
{
    static const char *const bad[] = { "",    "-1",   "+1",         " 1",  "1 ", "0x10",
                                       "1.0", "12 3", "4294967297", "65k", "0",  "1kk" };
    static const char *const no_number[] = {
        "", "nan", "inf", "0x1", " 1", "1e999", "2.1", "-1"
    };
    uint64_t n = 7;
    double x = 7;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(units_parse_whole(bad[i], true, 1, 65535, &n));
    assert_false(units_parse_whole("18446744073709551616", false, 0, UINT64_MAX, &n));
    assert_false(units_parse_whole("18014398509481984k", true, 0, UINT64_MAX, &n));
    assert_false(units_parse_whole("2k", false, 0, UINT64_MAX, &n));
    assert_int_equal(n, 7);
    assert_true(units_parse_whole("18446744073709551615", false, 0, UINT64_MAX, &n));
    assert_true(n == UINT64_MAX);
    assert_true(units_parse_whole("2k", true, 1, 2048, &n));
    assert_int_equal(n, 2048);
    for (size_t i = 0; i < sizeof no_number / sizeof no_number[0]; i++)
        assert_false(units_parse_number(no_number[i], 0, 2, &x));
    assert_true(x == 7);
    assert_true(units_parse_number("5e-1", 0, 2, &x));
    assert_true(x == 0.5);
}

static void every_code_point_survives_encoding_and_decoding(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char s[4];
        size_t n = utf8_encode(cp, s);
        uint32_t got;

        if (cp >= 0xd800 && cp <= 0xdfff) {
            assert_false(utf8_is_valid(s, n));
            continue;
        }
        assert_int_equal(utf8_decode(s, n, &got), n);
        assert_int_equal(got, cp);
        assert_true(utf8_is_valid(s, n) && utf8_is_single(s, n, &got));
        for (size_t at = 1; at < n; at++) {
            assert_int_equal(utf8_start(s, 0, at), 0);
            assert_int_equal(utf8_decode(s, at, &got), at);
            assert_true(got == UTF8_SHORT);
        }
    }
}

/* The table "U+FFFD for ill-formed sequences" of the Unicode standard, section 3.9. */
static void each_maximal_broken_part_becomes_one_replacement(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", "????????A" },
        { "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", "????????A" },
        { "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "?????A??B" },
        { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "????A" },
        { "a\xe2\x82", "a?" },
        { "", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[64] = "", got[64];
        size_t n = utf8_repair(rows[i].text, strlen(rows[i].text), got);

        for (const char *c = rows[i].want; *c != '\0'; c++)
            strcat(want, *c == '?' ? "\xef\xbf\xbd" : (char[]){ *c, '\0' });
        assert_int_equal(n, strlen(want));
        assert_memory_equal(got, want, n);
        assert_int_equal(utf8_repair(rows[i].text, strlen(rows[i].text), NULL), n);
    }
}

static void write_all_kinds(struct json *j)
{
    json_object(j, NULL);
    json_string(j, "text",
                "a\"b\\c\td\r\n\x1b[2J\x7f\xff\xe4\xbd\xa0\xe2\x80\xae\xf3\xa0\x80\x81");
    json_array(j, "list");
    json_u64(j, NULL, UINT64_MAX);
    json_double(j, NULL, -0.5, 3);
    json_double(j, NULL, HUGE_VAL, 3);
    json_bool(j, NULL, true);
    json_object(j, NULL);
    json_end(j);
    json_end(j);
    json_null(j, "none");
    json_end(j);
    json_line(j);
    json_string_n(j, NULL, "next line", 4);
}

static void json_is_the_same_in_memory_and_on_a_stream(void **state)
{
    static const char want[] =
        "{\"text\":\"a\\\"b\\\\c\\td\\r\\n\\u001b["
        "2J\\u007f\\ufffd\xe4\xbd\xa0\\u202e\\udb40\\udc01\","
        "\"list\":[18446744073709551615,-0.500,null,true,{}],\"none\":null}\n\"next\"";
    struct json j;
    char *text;
    size_t n;
    FILE *f;

    (void)state;
    json_start(&j);
    write_all_kinds(&j);
    assert_int_equal(j.used, strlen(want));
    assert_memory_equal(j.buf, want, j.used);
    json_release(&j);
    f = open_memstream(&text, &n);
    assert_non_null(f);
    json_start_stream(&j, f);
    write_all_kinds(&j);
    fclose(f);
    assert_string_equal(text, want);
    free(text);
}

static void a_json_string_may_come_in_pieces(void **state)
{
    struct json j;

    (void)state;
    json_start(&j);
    json_print(&j, "{\"%s\":\"", "text");
    json_inside(&j, "a\"", 2);
    json_inside(&j, "\xe2\x82", 2);
    json_raw(&j, "\"}", 2);
    assert_int_equal(j.used, strlen("{\"text\":\"a\\\"\\ufffd\"}"));
    assert_memory_equal(j.buf, "{\"text\":\"a\\\"\\ufffd\"}", j.used);
    assert_false(j.failed);
    json_release(&j);
}

static void json_may_have_a_limit(void **state)
{
    struct json j;

    (void)state;
    for (size_t most = 1; most < 500; most++) {
        json_start(&j);
        j.most = most;
        while (!j.failed) {
            size_t used = j.used;

            json_raw(&j, "0123456789", 10);
            assert_int_equal(j.used, j.failed ? used : used + 10);
        }
        assert_true(j.size <= most);
        assert_true(j.used + 10 > most);
        json_release(&j);
    }
}

/* The reference implementation's vectors: the key is 00..0f, text n is 00..n-1. */
static void texts_are_hashed_as_the_reference_does(void **state)
{
    static const struct hash_key key = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };
    static const uint64_t want[] = {
        0xabac0158050fc4dc, 0xc9f49bf37d57ca93, 0x82cb9b024dc7d44d, 0x8bf80ab8e7ddf7fb,
        0xcf75576088d38328, 0xdef9d52f49533b67, 0xc50d2b50c59f22a7, 0xd3927d989bb11140,
        0x369095118d299a8e, 0x25a48eb36c063de4, 0x79de85ee92ff097f, 0x70c118c1f94dc352,
        0x78a384b157b4d9a2, 0x306f760c1229ffa7, 0x605aa111c0f95d34, 0xd320d86d2a519956,
        0xcc4fdd1a7d908b66, 0x9cf2689063dbd80c,
    };
    unsigned char text[64];

    (void)state;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)i;
    for (size_t n = 0; n < sizeof want / sizeof want[0]; n++)
        assert_true(keyed_hash(&key, text, n) == want[n]);
    assert_true(keyed_hash(&key, text, 63) == 0x9d199062b7bbb3a8);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Flipping these bits in two neighbouring words cancels out in hashes that fold each word by a
 * multiplication, for any seed. */
static void texts_that_are_made_to_collide_do_not(void **state)
{
    enum { BITS = 12, N = 1 << BITS };
    static uint64_t hash[N];
    char text[16 * BITS];

    (void)state;
    for (unsigned i = 0; i < N; i++) {
        for (unsigned k = 0; k < BITS; k++) {
            memcpy(text + 16 * k, "abcdefgAhijklmnA", 16);
            if ((i >> k & 1) != 0) {
                text[16 * k + 7] ^= (char)0x80;
                text[16 * k + 11] ^= (char)0x80;
                text[16 * k + 15] ^= (char)0x80;
            }
        }
        hash[i] = keyed_hash(hash_key(), text, sizeof text);
    }
    qsort(hash, N, sizeof hash[0], by_value);
    for (unsigned i = 1; i < N; i++)
        assert_true(hash[i] != hash[i - 1]);
}

/* Numbers in an arithmetic progression must spread over a table: the fullest of 1024 buckets
 * holds little more than its share, also with a key that is bad for one multiplication. */
static void numbers_spread_over_a_table(void **state)
{
    static const struct hash_key keys[] = { { 0x243f6a8885a308d3u, 0x13198a2e03707344u },
                                            { 0xa4093822299f31d0u, 0x082efa98ec4e6c89u },
                                            { 0x452821e638d01377u, 0x5555555555555555u },
                                            { 0xbe5466cf34e90c6cu, 0x8000000000000001u } };

    (void)state;
    for (unsigned at = 0; at < 4 * 40; at++) {
        unsigned count[1024] = { 0 }, most = 0;

        for (uint64_t i = 0; i < 8 * 1024; i++) {
            unsigned *n = &count[keyed_mix(&keys[at / 40], i << at % 40) >> 54];

            most = ++*n > most ? *n : most;
        }
        assert_in_range(most, 8, 80);
    }
}

static void hashes_are_those_of_the_standard(void **state)
{
    /* Texts and digests of FIPS 180-4, and lengths near the end of a block. */
    static const struct {
        const char *text;
        size_t times;
        const char *sha256, *sha1;
    } rows[] = {
        { "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
          "a9993e364706816aba3e25717850c26c9cd0d89d" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
        { "a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318",
          "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
        { "a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a",
          "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
        { "a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb",
          "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
        { "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
          "34aa973cd4c4daa4f61eeb2bdbad27316534016f" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = strlen(rows[i].text), len = n * rows[i].times;
        char *text = malloc(len + 1), hex[DIGEST_HEX];
        struct digest sha256, sha1;

        for (size_t k = 0; k < rows[i].times; k++)
            memcpy(text + k * n, rows[i].text, n);
        digest_sha256(text, len, hex);
        assert_string_equal(hex, rows[i].sha256);
        /* The same after a text of no bytes, and in pieces of 1, 2, 3 ... bytes. */
        digest_start(&sha256, DIGEST_SHA256);
        digest_start(&sha1, DIGEST_SHA1);
        digest_add(&sha256, NULL, 0);
        for (size_t at = 0, piece = 1; at < len; at += piece, piece++) {
            piece = piece < len - at ? piece : len - at;
            digest_add(&sha256, text + at, piece);
            digest_add(&sha1, text + at, piece);
        }
        digest_end(&sha256, hex);
        assert_string_equal(hex, rows[i].sha256);
        digest_end(&sha1, hex);
        assert_string_equal(hex, rows[i].sha1);
        free(text);
    }
}

/* Lengths around whole blocks, and the greatest at each place, alone and twice. */
static void the_first_of_the_greatest_is_found(void **state)
{
    float x[200];

    (void)state;
    for (uint32_t n = 1; n <= 200; n++)
        for (uint32_t at = 0; at < n; at++) {
            for (uint32_t i = 0; i < n; i++)
                x[i] = (float)(i * 37 % 100) - 50;
            x[at] = 60;
            assert_int_equal(greatest_of(x, n), at);
            x[n - 1] = 60;
            assert_int_equal(greatest_of(x, n), at);
        }
    for (uint32_t i = 0; i < 200; i++)
        x[i] = i < 130 ? -INFINITY : -1;
    assert_int_equal(greatest_of(x, 130), 0);
    assert_int_equal(greatest_of(x, 200), 130);
}

static void a_buffer_for_reads_ends_with_a_huge_page(void **state)
{
    (void)state;
    assert_int_equal(whole_huge_pages(0), 0);
    assert_int_equal(whole_huge_pages(HUGE_BYTES - 1), HUGE_BYTES - 1); /* not for a small one */
    assert_int_equal(whole_huge_pages(HUGE_BYTES), HUGE_BYTES);
    assert_int_equal(whole_huge_pages(8 * 480 * KIB), 4 * MIB);
    assert_int_equal(whole_huge_pages(4 * MIB + 4096), 6 * MIB);
    assert_int_equal(whole_huge_pages(UINT64_MAX), UINT64_MAX); /* of a plan that never fits */
    for (uint64_t n = 0; n < 9 * MIB; n += 100 * KIB)
        assert_true(whole_huge_pages(n) <= whole_huge_pages(n + 100 * KIB));
}

static void white_space_is_cut_from_both_ends(void **state)
{
    static const struct {
        const char *text, *left;
    } rows[] = {
        { "", "" },
        { " \t\r\n\v\f", "" },
        { "a", "a" },
        { " a b\r\n", "a b" },
        { "\xef\xbb\xbf" "a\xc2\xa0", "a" },
        { "\xe3\x80\x80" "a\xe2\x80\xa8\n", "a" },
        { "\n\xff\n", "\xff" },
        { "a\xc2", "a\xc2" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = rows[i].text;
        size_t n = utf8_trim(&text, strlen(text));

        assert_int_equal(n, strlen(rows[i].left));
        assert_memory_equal(text, rows[i].left, n);
    }
}

/* Two builds of one version have other names: the linker's identifier is a part. */
static void a_build_has_a_name_of_its_own(void **state)
{
    static const size_t version = sizeof BUILD_NAME - 1;
    char name[BUILD_NAME_BYTES], again[BUILD_NAME_BYTES];

    (void)state;
    build_name(name);
    build_name(again);
    assert_string_equal(name, again);
    assert_memory_equal(name, BUILD_NAME, version);
    if (name[version] == '\0')
        skip(); /* the linker wrote no identifier */
    assert_int_equal(name[version], ' ');
    assert_int_equal(strspn(name + version + 1, "0123456789abcdef"), 16);
    assert_int_equal(strlen(name), version + 1 + 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_is_cut_from_both_ends),
        cmocka_unit_test(an_error_names_its_place_and_its_cause),
        cmocka_unit_test(a_buffer_for_reads_ends_with_a_huge_page),
        cmocka_unit_test(a_build_has_a_name_of_its_own),
        cmocka_unit_test(a_system_error_keeps_its_number),
        cmocka_unit_test(a_memory_error_names_the_object_that_did_not_fit),
        cmocka_unit_test(an_arena_refuses_more_than_it_holds),
        cmocka_unit_test(only_complete_pages_are_fetched),
        cmocka_unit_test(a_wait_ends_when_the_clock_reaches_its_time),
        cmocka_unit_test(a_thread_has_the_requested_stack_and_takes_no_signals_but_faults),
        cmocka_unit_test(a_thread_that_cannot_start_reports_why),
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(predictions_say_when_they_are_doubtful),
        cmocka_unit_test(numbers_are_rounded_for_reading),
        cmocka_unit_test(rates_are_read_in_powers_of_1000),
        cmocka_unit_test(numbers_are_whole_texts_within_their_range),
        cmocka_unit_test(every_code_point_survives_encoding_and_decoding),
        cmocka_unit_test(each_maximal_broken_part_becomes_one_replacement),
        cmocka_unit_test(json_is_the_same_in_memory_and_on_a_stream),
        cmocka_unit_test(a_json_string_may_come_in_pieces),
        cmocka_unit_test(json_may_have_a_limit),
        cmocka_unit_test(texts_are_hashed_as_the_reference_does),
        cmocka_unit_test(texts_that_are_made_to_collide_do_not),
        cmocka_unit_test(numbers_spread_over_a_table),
        cmocka_unit_test(hashes_are_those_of_the_standard),
        cmocka_unit_test(the_first_of_the_greatest_is_found),
    };

    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
