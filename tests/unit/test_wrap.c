/* Lines broken into rows. */
#include "config.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/random_text.h"
#include "ui/text/wrap.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

struct row {
    const char *name;
    int first, rest;
    enum wrap_how how;
    const char *text, *want; /* rows, separated by | */
};

/* clang-format off */
static struct row rows[] = {
    { "nothing is one empty row", 10, 10, WRAP_WORDS, "", "" },
    { "what fits stays", 10, 10, WRAP_WORDS, "some words", "some words" },
    { "words go to the next row", 10, 10, WRAP_WORDS, "some words more", "some words|more" },
    { "blanks at the break vanish", 6, 6, WRAP_WORDS, "one      two", "one|two" },
    { "blanks that indent stay", 8, 8, WRAP_WORDS, "  one two", "  one|two" },
    { "blanks at the end stay while there is room", 8, 8, WRAP_WORDS, "one  ", "one  " },
    { "the first row may be shorter", 5, 10, WRAP_WORDS, "one two three", "one|two three" },
    { "a long word is cut", 5, 5, WRAP_WORDS, "abcdefghijkl", "abcde|fghij|kl" },
    { "a long word after a short one", 5, 5, WRAP_WORDS, "ab cdefghi", "ab|cdefg|hi" },
    { "a hyphen between letters", 7, 7, WRAP_WORDS, "well-known", "well-|known" },
    { "not a hyphen before a figure", 7, 7, WRAP_WORDS, "abcde -12345", "abcde|-12345" },
    { "CJK anywhere", 5, 5, WRAP_WORDS, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", "\xe4\xb8\xad\xe6\x96\x87|\xe5\xad\x97" },
    { "no full stop at the beginning", 4, 4, WRAP_WORDS, "\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82", "\xe4\xb8\xad|\xe6\x96\x87\xe3\x80\x82" },
    { "no opening bracket at the end", 6, 6, WRAP_WORDS, "\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x8c\xe5\xad\x97", "\xe4\xb8\xad\xe6\x96\x87|\xe3\x80\x8c\xe5\xad\x97" },
    { "between CJK and latin", 5, 5, WRAP_WORDS, "\xe4\xb8\xad" "abcd", "\xe4\xb8\xad|abcd" },
    { "a wide character does not fit in half", 5, 5, WRAP_CODE, "abcd\xe4\xb8\xad", "abcd|\xe4\xb8\xad" },
    { "code is cut where it is full", 4, 4, WRAP_CODE, "a b c d", "a b |c d" },
    { "code keeps its blanks", 4, 4, WRAP_CODE, "      x", "    |  x" },
    { "a cluster is never cut", 4, 4, WRAP_CODE, "abce\xcc\x81" "f", "abce\xcc\x81|f" },
    { "a no-break space holds", 7, 7, WRAP_WORDS, "ab cd\xc2\xa0" "efg", "ab|cd\xc2\xa0" "efg" },
};
/* clang-format on */

static void breaks(void **state)
{
    const struct row *r = *state;
    struct wrap w = { 0 };
    char got[256] = "";

    assert_true(wrap_text(&w, r->text, strlen(r->text), r->first, r->rest, r->how, 0));
    for (uint32_t i = 0; i < w.n_row; i++) {
        if (i > 0)
            strcat(got, "|");
        strncat(got, r->text + w.row[i].start, w.row[i].end - w.row[i].start);
    }
    wrap_free(&w);
    assert_string_equal(got, r->want);
}

/* Make a line of clean text. */
static size_t random_line(struct chance *chance, char *line, size_t size)
{
    char in[600];
    size_t n = chance_text(chance, in, chance_below(chance, 500));

    return clean_line(line, size, in, n);
}

static void rows_never_exceed_the_width_and_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        char line[2400];
        size_t n = random_line(&chance, line, sizeof line), at = 0;
        int first = 4 + (int)chance_below(&chance, 30),
            rest = 4 + (int)chance_below(&chance, 30);
        enum wrap_how how = seed % 2 ? WRAP_WORDS : WRAP_CODE;
        struct wrap w = { 0 };

        assert_true(wrap_text(&w, line, n, first, rest, how, 0));
        for (uint32_t i = 0; i < w.n_row; i++) {
            struct wrap_row r = w.row[i];
            int width = cluster_width(line + r.start, r.end - r.start);

            if (width > (i == 0 ? first : rest) || r.start < at || r.end < r.start)
                fail_msg("seed %llu: row %u is wrong", (unsigned long long)seed, i);
            /* Only blanks may be missing between two rows; in code nothing. */
            for (; at < r.start; at++)
                if (how == WRAP_CODE || (line[at] != ' ' && (line[at] & 0x80) == 0))
                    fail_msg("seed %llu: byte %zu is lost", (unsigned long long)seed, at);
            at = r.end;
        }
        for (; at < n; at++)
            if (line[at] != ' ' && (line[at] & 0x80) == 0)
                fail_msg("seed %llu: the end from byte %zu on is lost",
                         (unsigned long long)seed, at);
        wrap_free(&w);
    }
}

/* Text that grows and whose end is replaced, as in Markdown that streams. */
static void growing_text_wraps_like_complete_text(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct chance chance = { seed * 0x9e3779b97f4a7c15u };
        char line[2400], other[2400];
        size_t n = random_line(&chance, line, sizeof line), at = 0;
        size_t n_other = random_line(&chance, other, sizeof other);
        int width = 4 + (int)chance_below(&chance, 30);
        enum wrap_how how = seed % 2 ? WRAP_WORDS : WRAP_CODE;
        struct wrap grown = { 0 }, whole = { 0 };

        while (at < n) {
            size_t before = at;

            at += 1 + chance_below(&chance, 40);
            at = at > n ? n : at;
            while (at < n && ((unsigned char)line[at] & 0xc0) == 0x80)
                at++;
            assert_true(wrap_text(&grown, line, at, width, width, how, before));
            assert_true(wrap_text(&whole, line, at, width, width, how, 0));
            if (grown.n_row != whole.n_row ||
                memcmp(grown.row, whole.row, whole.n_row * sizeof *whole.row) != 0)
                fail_msg("seed %llu: text that grew to %zu bytes has other rows",
                         (unsigned long long)seed, at);
        }
        /* Replace the end, and keep the common beginning. */
        at = n == 0 ? 0 : chance_below(&chance, (uint32_t)n);
        while (at > 0 && ((unsigned char)line[at] & 0xc0) == 0x80)
            at--;
        n_other = n_other > 1000 ? 0 : n_other;
        memmove(other + at, other, n_other);
        memcpy(other, line, at);
        assert_true(wrap_text(&grown, other, at + n_other, width, width, how, at));
        assert_true(wrap_text(&whole, other, at + n_other, width, width, how, 0));
        if (grown.n_row != whole.n_row ||
            memcmp(grown.row, whole.row, whole.n_row * sizeof *whole.row) != 0)
            fail_msg("seed %llu: text replaced at byte %zu has other rows",
                     (unsigned long long)seed, at);
        wrap_free(&grown);
        wrap_free(&whole);
    }
}

static void a_pane_that_is_too_narrow_has_no_rows(void **state)
{
    struct wrap w = { 0 };

    (void)state;
    assert_true(wrap_text(&w, "text", 4, 3, 10, WRAP_WORDS, 0));
    assert_int_equal(w.n_row, 0);
    assert_true(wrap_text(&w, "text", 4, 10, -1, WRAP_WORDS, 0));
    assert_int_equal(w.n_row, 0);
}

int main(void)
{
    enum { N = sizeof rows / sizeof rows[0] };
    struct CMUnitTest tests[N + 3] = {
        cmocka_unit_test(rows_never_exceed_the_width_and_lose_nothing),
        cmocka_unit_test(growing_text_wraps_like_complete_text),
        cmocka_unit_test(a_pane_that_is_too_narrow_has_no_rows),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < N; i++)
        tests[i + 3] = (struct CMUnitTest){ rows[i].name, breaks, NULL, NULL, &rows[i] };
    return cmocka_run_group_tests_name("wrap", tests, NULL, NULL);
}
