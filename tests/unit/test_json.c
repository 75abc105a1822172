/* The JSON reader: values, limits, and the places of errors. */
#include "config.h"

#include <sys/mman.h>

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/halves.h"
#include "engine/format/json.h"
#include "tests/lib/fail_with.h"

static struct err e;

static struct json_doc *parse_bytes(const char *text, size_t n)
{
    struct json_doc *d = NULL, *again;
    struct err e_again = ERR_INIT;
    int fd = memfd_create("json", MFD_CLOEXEC), rc;

    assert_int_equal(write(fd, text, n), n);
    e = (struct err)ERR_INIT;
    rc = json_read(&d, fd, n, &e);
    assert_int_equal(rc, d != NULL ? 0 : -1);
    close(fd);
    /* Read the same text from memory. */
    assert_int_equal(json_parse(&again, text, n, &e_again), rc);
    assert_string_equal(e_again.what, e.what);
    assert_true(e_again.offset == e.offset);
    json_free(again);
    return d;
}

static struct json_doc *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void values_are_read_by_their_type(void **state)
{
    struct json_doc *d = parse("{\"i\":-7,\"f\":2.0,\"h\":2.5,\"e\":1e3,\"s\":\"a\\u00e9\","
                               "\"t\":true,\"n\":null,\"l\":[1,[2],{}],\"i\":8,"
                               "\"big\":9223372036854775807,\"over\":9223372036854775808}");
    const struct json_node *r = json_root(d);
    int64_t i = 0;
    double f = 0;
    bool t = false;

    (void)state;
    assert_true(json_as_int(json_get(r, "i"), &i) && i == 8); /* the last one counts */
    assert_true(json_as_int(json_get(r, "f"), &i) && i == 2);
    assert_true(json_as_int(json_get(r, "e"), &i) && i == 1000);
    assert_false(json_as_int(json_get(r, "h"), &i));
    assert_true(json_as_float(json_get(r, "h"), &f) && f == 2.5);
    assert_true(json_as_int(json_get(r, "big"), &i) && i == INT64_MAX);
    assert_false(json_as_int(json_get(r, "over"), &i));
    assert_string_equal(json_as_string(json_get(r, "s")), "a\xc3\xa9");
    assert_null(json_as_string(json_get(r, "i")));
    assert_true(json_as_bool(json_get(r, "t"), &t) && t);
    assert_non_null(json_member(r, "n"));
    assert_null(json_get(r, "n")); /* null counts as absent */
    assert_int_equal(json_get(r, "l")->n, 3);
    assert_int_equal(json_get(r, "l")->first->next->kind, JSON_IS_ARRAY);
    assert_null(json_get(json_get(r, "i"), "x"));
    json_free(d);
}

static void a_string_with_nul_is_not_a_name(void **state)
{
    struct json_doc *d = parse("{\"s\":\"a\\u0000b\"}");

    (void)state;
    assert_int_equal(json_get(json_root(d), "s")->len, 3);
    assert_null(json_as_string(json_get(json_root(d), "s")));
    json_free(d);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    struct json_doc *d = parse("[0.5]");
    double f = 0;

    (void)state;
    /* If no such locale is installed, this tests nothing. */
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    assert_true(json_as_float(json_root(d)->first, &f));
    setlocale(LC_NUMERIC, "C");
    assert_true(f == 0.5);
    json_free(d);
}

/* Texts are parsed in pieces of 64 KiB, which may end inside a pair. */
static void a_pair_of_escapes_is_a_character(void **state)
{
    static const char pair[] = "\\ud83d\\uDE00\\\\ud83d\"]";
    static char text[(64 << 10) + sizeof pair];

    (void)state;
    for (size_t start = (64 << 10) - sizeof pair; start < 64 << 10; start++) {
        struct json_doc *d;
        const char *value;

        memset(text, 'a', start);
        memcpy(text, "[\"", 2);
        memcpy(text + start, pair, sizeof pair);
        d = parse(text);
        value = json_as_string(json_root(d)->first);
        assert_string_equal(value + start - 2, "\xf0\x9f\x98\x80\\ud83d");
        json_free(d);
    }
}

static const struct {
    const char *name, *json, *text;
} halves[] = {
    { "a first half", "[\"\\ud83d\"]", "\xed\xa0\xbd" },
    { "a second half", "[\"\\uDE00b\"]", "\xed\xb8\x80" "b" },
    { "a pair", "[\"\\ud83d\\uDE00\"]", "\xf0\x9f\x98\x80" },
    { "a first half and another character", "[\"\\ud83d\\u0041\"]", "\xed\xa0\xbd" "A" },
    { "a first half and a newline", "[\"\\ud83d\\n\"]", "\xed\xa0\xbd" "\n" },
    { "two first halves", "[\"\\ud83d\\ud83d\\uDE00\"]", "\xed\xa0\xbd\xf0\x9f\x98\x80" },
    { "the wrong order", "[\"\\uDE00\\ud83d\"]", "\xed\xb8\x80\xed\xa0\xbd" },
    { "a backslash", "[\"\\\\ud83d\\\\\"]", "\\ud83d\\" },
};

static void halves_of_characters_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        struct err why = ERR_INIT;
        struct json_doc *d;

        print_message("%s\n", halves[i].name);
        no_error(json_parse_halves(&d, halves[i].json, strlen(halves[i].json), &why), &why);
        assert_string_equal(json_as_string(json_root(d)->first), halves[i].text);
        json_free(d);
    }
}

/* Nothing else that json_parse() refuses is read. */
static void other_faults_beside_halves_are_refused(void **state)
{
    static const char *const wrong[] = {
        "", "[\"\\ud83d", "[\"\\ud83", "[\"\\ud83d\\", "[\\ud83d]", "[\"\\ud83x\"]", "[\"\x80\"]",
        "[\"\xed\xa0\"]", "[\"\xc1\x8b\\ud83d\"]", "[\"\xf7\xbf\xbf\xbf\"]", "[\"\xed\"]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err why = ERR_INIT;
        struct json_doc *d;

        assert_int_equal(json_parse_halves(&d, wrong[i], strlen(wrong[i]), &why), -1);
        assert_int_equal(why.code, ERR_FORMAT);
        assert_null(d);
    }
}

/* In parts of n characters or halves, which have three bytes here. */
static void halves_are_joined(void **state)
{
    static const char parts[] = "\xed\xa0\xbd" "\xed\xb8\x80" "\xed\xa0\xbd" "\xed\xa0\xbd"
                                "\xed\xb8\x80" "\xed\xb8\x80" "\xe2\x82\xac" "\xed\xa0\xbd"
                                "\xe2\x82\xac" "\xed\xa0\xbd";
    static const char smile[] = "\xf0\x9f\x98\x80", bad[] = "\xef\xbf\xbd", euro[] = "\xe2\x82\xac";

    (void)state;
    for (size_t n = 3; n < sizeof parts + 3; n += 3) {
        char out[2 * sizeof parts], expected[2 * sizeof parts];
        uint32_t first = 0;
        size_t len = 0;

        for (size_t at = 0; at < sizeof parts - 1; at += n) {
            size_t left = sizeof parts - 1 - at, part = n < left ? n : left;
            size_t more = halves_join(&first, parts + at, part, out + len);

            assert_true(more <= part + HALVES_MORE);
            len += more;
        }
        out[len] = '\0';
        snprintf(expected, sizeof expected, "%s%s%s%s%s%s%s", smile, bad, smile, bad, euro, bad,
                 euro);
        assert_string_equal(out, expected);
        assert_int_equal(first, 0xd83d);
    }
}

struct bad {
    const char *name, *text;
    uint64_t offset;
};

static struct bad bad[] = {
    { "an empty text", "", 0 },
    { "a text that ends early", "{\"a\":[1,", 8 },
    { "bytes after the text", "{} x", 3 },
    { "a string that begins after the text", "{} \"abc", 7 },
    { "a string after the text that ends in an escape", "{} \"\\", 5 },
    { "a comment", "{/* */}", 1 },
    { "the word NaN", "{\"a\":NaN}", 5 },
    { "a raw control character", "[\"\n\"]", 1 },
    { "a lone continuation byte", "[\"\x80\"]", 2 },
    { "an overlong character", "[\"\xc1\x8b\"]", 4 },
    { "an overlong character of three bytes", "[\"\xe0\x81\x8b\"]", 5 },
    { "an overlong character in a key", "{\"\xc1\x8b\":1}", 4 },
    { "half a surrogate", "[\"\xed\xa0\x80\"]", 5 },
    { "a first half of a pair", "[\"\\ud83d\"]", 8 },
    { "a first half and text", "[\"\\ud83dx\"]", 8 },
    { "a first half and another character", "[\"\\ud83d\\u0041\"]", 13 },
    { "a first half and a newline", "[\"\\ud83d\\n\"]", 9 },
    { "two first halves", "[\"\\ud83d\\ud83d\"]", 13 },
    { "a second half", "[\"\\\\\\uDE00\"]", 9 },
    { "a first half in a key", "{\"\\uD83D\":1}", 8 },
    { "a character beyond Unicode", "[\"\xf7\xbf\xbf\xbf\"]", 6 },
};

static void is_refused_with_its_place(void **state)
{
    const struct bad *b = *state;

    assert_null(parse(b->text));
    assert_int_equal(e.code, ERR_FORMAT);
    assert_true(e.offset != ERR_NO_OFFSET);
    assert_true(e.offset >= b->offset && e.offset <= b->offset + 2);
}

static void depth_is_bounded(void **state)
{
    char text[2 * JSON_MAX_DEPTH + 8];
    struct json_doc *d;

    (void)state;
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    d = parse_bytes(text, 2 * JSON_MAX_DEPTH);
    assert_non_null(d);
    json_free(d);
    memset(text, '[', JSON_MAX_DEPTH + 1);
    assert_null(parse_bytes(text, JSON_MAX_DEPTH + 1));
    assert_non_null(strstr(e.what, "deep"));
}

static int ignore(void *ctx, enum json_event event, const char *text, size_t len,
                  unsigned depth, struct err *err)
{
    size_t *longest = ctx;

    (void)event;
    (void)text;
    (void)depth;
    (void)err;
    *longest = len > *longest ? len : *longest;
    return 0;
}

/* Read a string of n letters as JSON. Returns the result of json_stream. */
static int stream_string(size_t n, size_t *longest)
{
    char *text = test_malloc(n + 2);
    int fd = memfd_create("json", MFD_CLOEXEC), rc;

    memset(text, 'x', n + 2);
    text[0] = text[n + 1] = '"';
    assert_int_equal(write(fd, text, n + 2), n + 2);
    test_free(text);
    *longest = 0;
    e = (struct err)ERR_INIT;
    rc = json_stream(fd, n + 2, 0, n + 2, ignore, longest, &e);
    close(fd);
    return rc;
}

static void a_string_is_bounded(void **state)
{
    size_t longest;

    (void)state;
    assert_int_equal(stream_string((size_t)1 << 20, &longest), 0);
    assert_int_equal(longest, (size_t)1 << 20);
    assert_int_equal(stream_string((size_t)40 << 20, &longest), -1);
    assert_int_equal(longest, 0);
    assert_non_null(strstr(e.what, "a string of more than"));
}

int main(void)
{
    enum { N = sizeof bad / sizeof bad[0] };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(values_are_read_by_their_type),
        cmocka_unit_test(a_string_with_nul_is_not_a_name),
        cmocka_unit_test(a_pair_of_escapes_is_a_character),
        cmocka_unit_test(halves_of_characters_are_kept),
        cmocka_unit_test(other_faults_beside_halves_are_refused),
        cmocka_unit_test(halves_are_joined),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(a_string_is_bounded),
    };
    struct CMUnitTest tests[N];
    int failed;

    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){ bad[i].name, is_refused_with_its_place, NULL, NULL, &bad[i] };
    failed = cmocka_run_group_tests_name("json", others, NULL, NULL);
    failed += cmocka_run_group_tests_name("no JSON", tests, NULL, NULL);
    return failed;
}
