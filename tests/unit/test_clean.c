/* Foreign text becomes text that cannot control a terminal. */
#include "config.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>
#include <utf8proc.h>

#include "engine/base/visible.h"
#include "tests/lib/random_text.h"
#include "ui/words/clean.h"
#include "ui/words/quote.h"

#define BAD "\xef\xbf\xbd"

struct row {
    const char *name;
    enum clean_how how;
    const char *in, *want;
};

/* clang-format off */
static struct row rows[] = {
    { "plain text passes", CLEAN_TEXT, "h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80\n", "h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80\n" },
    { "escape is shown", CLEAN_TEXT, "\x1b[2J", "^[[2J" },
    { "bell, backspace, delete", CLEAN_TEXT, "\a\b\x7f", "^G^H^?" },
    { "C1 is a replacement", CLEAN_TEXT, "a\xc2\x9b" "b", "a" BAD "b" },
    { "line ends become newlines", CLEAN_TEXT, "a\r\nb\xe2\x80\xa8" "c\xe2\x80\xa9" "d", "a\nb\nc\nd" },
    { "a lone return is odd", CLEAN_TEXT, "a\rb\r", "a" BAD "b" BAD },
    { "return, return, newline", CLEAN_TEXT, "\r\r\n", BAD "\n" },
    { "tabs go to multiples of four", CLEAN_TEXT, "\ta\tbcd\t\xe4\xb8\xad\t|", "    a   bcd \xe4\xb8\xad  |" },
    { "a tab counts a cluster once", CLEAN_TEXT, "e\xcc\x81\t|", "e\xcc\x81   |" },
    { "a tab counts a joined emoji as its first part", CLEAN_TEXT, "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\t|", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb  |" },
    { "a tab after a newline", CLEAN_TEXT, "abc\n\tx", "abc\n    x" },
    { "bidi controls are left out", CLEAN_TEXT, "a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xd8\x9c" "d", "abcd" },
    { "hidden characters are left out", CLEAN_TEXT, "a\xe2\x80\x8b" "b\xef\xbb\xbf" "c\xc2\xad" "d\xf3\xa0\x80\xa1" "e", "abcde" },
    { "in code they are seen", CLEAN_CODE, "a\xe2\x80\xae" "b\xe2\x80\x8b" "c", "a" BAD "b" BAD "c" },
    { "overlong", CLEAN_TEXT, "\xc0\xaf", BAD BAD },
    { "surrogate", CLEAN_TEXT, "\xed\xa0\x80", BAD BAD BAD },
    { "above the last", CLEAN_TEXT, "\xf4\x90\x80\x80", BAD BAD BAD BAD },
    { "cut in the middle: one for the part", CLEAN_TEXT, "\xf0\x9f\x98" "a", BAD "a" },
    { "cut at the end", CLEAN_TEXT, "a\xe4\xb8", "a" BAD },
    { "a lead in a character", CLEAN_TEXT, "\xe4\xb8\xe4\xb8\xad", BAD "\xe4\xb8\xad" },
    { "noncharacter", CLEAN_TEXT, "\xef\xbf\xbe", BAD },
    { "private use stays", CLEAN_TEXT, "\xee\x80\x80", "\xee\x80\x80" },
    { "four marks stay, the fifth goes", CLEAN_TEXT, "e\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85\xcc\x86x", "e\xcc\x81\xcc\x82\xcc\x83\xcc\x84x" },
    { "flags and selectors stay", CLEAN_TEXT, "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xe2\x9d\xa4\xef\xb8\x8f", "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xe2\x9d\xa4\xef\xb8\x8f" },
};
/* clang-format on */

static void cleans(void **state)
{
    const struct row *r = *state;
    char got[256];

    assert_int_equal(clean_text(got, sizeof got, r->in, strlen(r->in)), strlen(r->want));
    assert_string_equal(got, r->want);
}

struct heap {
    char text[4096];
    size_t n, src;
    const char *in;
};

static void collect(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                    enum clean_kind kind)
{
    struct heap *h = ctx;

    assert_true(n > 0 && src_n > 0);
    assert_true(src >= h->src); /* in order, nothing twice */
    h->src = src + src_n;
    if (kind == CLEAN_SAME) {
        assert_int_equal(n, src_n);
        assert_memory_equal(text, h->in + src, n);
    }
    assert_true(h->n + n <= sizeof h->text);
    memcpy(h->text + h->n, text, n);
    h->n += n;
}

static void code_shows_hidden_characters(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct heap h = { .in = rows[i].in };
        struct clean c;

        if (rows[i].how != CLEAN_CODE)
            continue;
        clean_start(&c, CLEAN_CODE);
        clean_feed(&c, rows[i].in, strlen(rows[i].in), collect, &h);
        clean_end(&c, collect, &h);
        h.text[h.n] = '\0';
        assert_string_equal(h.text, rows[i].want);
    }
}

static void text_in_pieces_gives_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        struct heap whole = { 0 }, cut = { 0 };
        struct clean c;
        char in[600];
        size_t n = chance_text(&chance, in, 400);
        enum clean_how how = seed % 2 ? CLEAN_TEXT : CLEAN_CODE;

        whole.in = cut.in = in;
        clean_start(&c, how);
        clean_feed(&c, in, n, collect, &whole);
        clean_end(&c, collect, &whole);
        for (size_t at = 0; at < n;) {
            size_t step = 1 + chance_below(&chance, 7);

            step = step > n - at ? n - at : step;
            clean_feed(&c, in + at, step, collect, &cut);
            at += step;
        }
        clean_end(&c, collect, &cut);
        if (whole.n != cut.n || memcmp(whole.text, cut.text, cut.n) != 0)
            fail_msg("seed %llu: the pieces give another text", (unsigned long long)seed);
    }
}

static void the_output_is_harmless(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        char in[600], out[4096], twice[4096];
        size_t n, used;

        n = chance_text(&chance, in, 400);
        for (size_t i = 0; i < 20; i++)
            in[chance_below(&chance, (uint32_t)n)] = (char)chance_below(&chance, 256);
        used = clean_text(out, sizeof out, in, n);
        for (size_t at = 0; at < used;) {
            int32_t cp;
            utf8proc_ssize_t step =
                utf8proc_iterate((const uint8_t *)out + at, (utf8proc_ssize_t)(used - at), &cp);

            if (step <= 0 || (cp != '\n' && wcwidth((wchar_t)cp) < 0) ||
                (cp >= 0x202a && cp <= 0x202e) || cp == '\t')
                fail_msg("seed %llu: byte %zu is not harmless", (unsigned long long)seed, at);
            at += (size_t)step;
        }
        /* Clean text stays as it is. */
        assert_int_equal(clean_text(twice, sizeof twice, out, used), used);
        assert_string_equal(out, twice);
    }
}

static void a_small_buffer_is_cut_between_characters(void **state)
{
    char out[5];

    (void)state;
    assert_int_equal(clean_text(out, sizeof out, "a\xe4\xb8\xad\xe4\xb8\xad", 7), 4);
    assert_string_equal(out, "a\xe4\xb8\xad");
    assert_int_equal(clean_line(out, sizeof out, "a\r\nb", 4), 3);
    assert_string_equal(out, "a b");
    assert_int_equal(clean_text(out, 1, "abc", 3), 0);
    assert_int_equal(clean_text(NULL, 0, "abc", 3), 0);
}

/* ---- for a model ---- */

static void a_model_gets_all_but_controls(void **state)
{
    static const char *const same[] = {
        "all:\n\tcc\r\n",
        "\u200f.\u00ad.\u202e.\u2028.\ufeff",
        "\U0001FAE9 \U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
        "e\u0301\u0302\u0303\u0304\u0305\u0306",
    };
    static const char *const changed[][2] = {
        { "\a\b\x7f\xc2\x9b|\r|\r", "||" },
        { "\x1b[1;31mred\x1b[m\x1b(B \x1b]0;title\a\x1b]8;;x\x1b\\link\x1b]8;;\x1b\\",
          "red link" },
        { "\x1b]no end", "no end" },
        { "\x1b[1\nline\x1b\n\x1b\u00e9\x1b", "\nline\n\u00e9" },
        { "a\xff\xe4\xb8", "a" BAD BAD },
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(clean_controls(out, same[i], strlen(same[i])), strlen(same[i]));
        assert_string_equal(out, same[i]);
    }
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        clean_controls(out, changed[i][0], strlen(changed[i][0]));
        assert_string_equal(out, changed[i][1]);
    }
    assert_int_equal(clean_controls(out, "a\0b", 3), 2);
}

/* ---- names ---- */

static void nothing_hides_in_a_name(void **state)
{
    static const uint32_t hides[] = { 0xad,   0x34f,   0x61c,   0x115f,  0x1160, 0x17b4, 0x180e,
                                      0x200b, 0x200c,  0x200d,  0x200e,  0x200f, 0x2028, 0x2029,
                                      0x202a, 0x202e,  0x2060,  0x2064,  0x2066, 0x2069, 0x206f,
                                      0x2800, 0x3164,  0xfe00,  0xfe0f,  0xfeff, 0xffa0, 0xfff9,
                                      0xfffc, 0x1d173, 0xe0001, 0xe0041, 0xe0101 };
    static const uint32_t shows[] = { 'a',   ' ',    0xa0,   0xe9,   0x301,
                                      0x605, 0x4e2d, 0xfb01, 0x1f600 };
    static const uint32_t odd[] = { 0x00,   0x1b,  0x7f,    0x9b,    0xe000,
                                    0xfffe, 0x378, 0xf0000, 0x110000 };

    (void)state;
    for (size_t i = 0; i < sizeof hides / sizeof hides[0]; i++)
        assert_true(visible_hides(hides[i]) && !visible_is(hides[i]));
    for (size_t i = 0; i < sizeof shows / sizeof shows[0]; i++)
        assert_true(!visible_hides(shows[i]) && visible_is(shows[i]));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_true(!visible_hides(odd[i]) && !visible_is(odd[i]));
}

static void expect_visible(size_t size, const char *in, const char *want)
{
    char out[64];

    assert_int_equal(visible_line(out, size, in, strlen(in)), strlen(want));
    assert_string_equal(out, want);
}

static void a_name_becomes_one_visible_line(void **state)
{
    char same[] = "a\xe2\x80\xae"
                  "b\x1b"
                  "c\xff"
                  "d";

    (void)state;
    expect_visible(64,
                   "A\xe2\x80\xaegnp.exe\xe2\x81\xa6\xe2\x80\x8b"
                   "B",
                   "Agnp.exeB");
    expect_visible(64, "a\nb\tc\x1b[2J\xc2\x9b", "a?b?c?[2J?");
    expect_visible(64,
                   "a\xe2\x80\xa8"
                   "b",
                   "a b");
    expect_visible(64, "\xf3\xa0\x81\x81 \xee\x80\x80 \xe3\x85\xa4 \xe4\xb8", " ?  ?");
    expect_visible(4, "ab\xc3\xa9", "ab");
    expect_visible(5, "ab\xc3\xa9", "ab\xc3\xa9");
    assert_int_equal(visible_line(same, sizeof same, same, strlen(same)), 6);
    assert_string_equal(same, "ab?c?d");
    assert_int_equal(visible_line(same, 0, "a", 1), 0);
}

static void expect_quote(void (*quote)(FILE *, const char *), const char *in, const char *want)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(f);
    quote(f, in);
    fclose(f);
    assert_string_equal(text, want);
    free(text);
}

static void a_formula_is_text_in_csv(void **state)
{
    static const char *const formulas[] = { "=1+1",
                                            "+1",
                                            "-1+1",
                                            "@SUM(1)",
                                            " =1",
                                            "\xc2\xa0=1",
                                            "\xe3\x80\x80+1",
                                            "\xef\xbc\x9d"
                                            "1",
                                            "\xef\xbc\x8b"
                                            "1",
                                            "\xef\xbc\x8d"
                                            "1",
                                            "\xef\xbc\xa0x",
                                            "\xe2\x88\x92"
                                            "1" };
    char want[64];

    (void)state;
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
        snprintf(want, sizeof want, "\"'%s\"", formulas[i]);
        expect_quote(quote_csv, formulas[i], want);
    }
    expect_quote(quote_csv, "\t=1", "\"'    =1\"");
    expect_quote(quote_csv, "\xe2\x80\x8b=1", "\"'=1\"");
    expect_quote(quote_csv, "a\"b,=c\nd", "\"a\"\"b,=c d\"");
    expect_quote(quote_csv, "Q4_0 x-y", "\"Q4_0 x-y\"");
    expect_quote(quote_csv, "", "\"\"");
}

static void markup_is_text_in_markdown(void **state)
{
    (void)state;
    expect_quote(quote_markdown, "<b>x</b>&amp;", "&lt;b&gt;x&lt;/b&gt;&amp;amp;");
    expect_quote(quote_markdown, "a|b`c`[l](u)*e*\\", "a\\|b\\`c\\`\\[l\\](u)\\*e\\*\\\\");
    expect_quote(quote_markdown, "_a_b_ #", "\\_a_b\\_ \\#");
    expect_quote(quote_markdown, "- x-y", "\\- x-y");
    expect_quote(quote_markdown, "a\n# b", "a \\# b");
    expect_quote(quote_markdown, "Q4_K_M \xc3\xa9", "Q4_K_M \xc3\xa9");
}

int main(void)
{
    enum { N = sizeof rows / sizeof rows[0] };
    struct CMUnitTest tests[N + 9] = {
        cmocka_unit_test(code_shows_hidden_characters),
        cmocka_unit_test(text_in_pieces_gives_the_same),
        cmocka_unit_test(the_output_is_harmless),
        cmocka_unit_test(a_small_buffer_is_cut_between_characters),
        cmocka_unit_test(a_model_gets_all_but_controls),
        cmocka_unit_test(nothing_hides_in_a_name),
        cmocka_unit_test(a_name_becomes_one_visible_line),
        cmocka_unit_test(a_formula_is_text_in_csv),
        cmocka_unit_test(markup_is_text_in_markdown),
    };
    size_t n = 9;

    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < N; i++)
        if (rows[i].how == CLEAN_TEXT)
            tests[n++] = (struct CMUnitTest){ rows[i].name, cleans, NULL, NULL, &rows[i] };
    return _cmocka_run_group_tests("clean", tests, n, NULL, NULL);
}
