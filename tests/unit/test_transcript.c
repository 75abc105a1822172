/*
 * The transcript on a grid in memory: display, scrolling and search.
 *
 * Pictures are in tests/data/chat; `make check UPDATE_GOLDEN=1` updates them.
 */
#include "config.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/golden.h"
#include "tests/lib/random_text.h"
#include "tests/lib/transcript_pane.h"
#include "ui/term/canvas.h"

/* ---- pictures ---- */

static struct transcript *conversation(void)
{
    struct transcript *t = begin();

    say(t, TRANSCRIPT_SYSTEM, "Be brief.");
    say(t, TRANSCRIPT_USER, "What is a \"memory wall\"?\nAnd in \xe4\xb8\xad\xe6\x96\x87?");
    transcript_begin(t, false);
    assert_true(transcript_append(t, "The user asks for a definition.", 31, true));
    piece(t,
          "# The memory wall\n\nA model that is *larger than memory* must be read "
          "from disk for **every** token:\n\n- the disk sets the pace\n- the processor "
          "waits, `stall_ns` shows how long\n\n| what | GB/s |\n|------|-----:|\n| memory "
          "| 40 |\n| disk | 3.5 |\n\n```c\n/* the wall */\ndouble t = bytes / 3.5e9; // "
          "seconds\n```\n\n\xe5\x86\x85\xe5\xad\x98\xe5\xa2\x99\xef\xbc\x9a\xe6\xa8\xa1"
          "\xe5\x9e\x8b\xe6\xaf\x94\xe5\x86\x85\xe5\xad\x98\xe5\xa4\xa7\xe3\x80\x82 "
          "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xe2\x9d\xa4\xef\xb8\x8f\n\n> quoted "
          "[link](http://a.example)\n");
    transcript_done(t, &pane_receipt);
    say(t, TRANSCRIPT_NOTICE, "dropped the 2 oldest turns: they are marked from here on");
    say(t, TRANSCRIPT_ERROR, "a.gguf: short read at byte 4096");
    return t;
}

struct picture {
    const char *name;
    int height, width;
    bool ascii, open, raw, up, status;
};

static struct picture pictures[] = {
    { "all-80x24", 24, 80, false, false, false, false, false },
    { "up-80x24", 24, 80, false, true, false, true, true },
    { "all-120x40", 40, 120, false, true, false, false, false },
    { "all-200x60", 60, 200, false, true, false, false, true },
    { "all-40x12", 12, 40, false, false, false, false, true },
    { "up-40x30", 30, 40, true, true, false, true, false },
    { "all-20x5", 5, 20, false, false, false, false, false },
    { "raw-60x40", 40, 60, false, false, true, false, false },
};

/* A number that is cut is another number. */
static void a_status_is_cut_between_its_parts(void **state)
{
    static const struct {
        int width;
        const char *end; /* of the last line */
    } rows[] = {
        { 80, "prompt 23 % - 43 s left - 1,075 of 4,619 tokens - 77 tok/s\n" },
        { 50, "\nprompt 23 % - 43 s left - 1,075 of 4,619 tokens\n" },
        { 46, "\nprompt 23 % - 43 s left\n" },
        { 8, "\nprompt 2\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct transcript *t = conversation();
        char *text;

        transcript_size(t, 12, rows[i].width);
        transcript_set_status(
            t, "prompt 23 % - 43 s left - 1,075 of 4,619 tokens - 77 tok/s", 0.23);
        text = drawn(t, 12, rows[i].width, true, false);
        assert_true(strlen(text) > strlen(rows[i].end));
        assert_string_equal(text + strlen(text) - strlen(rows[i].end), rows[i].end);
        free(text);
        transcript_free(t);
    }
}

static void looks_as_before(void **state)
{
    const struct picture *p = *state;
    struct transcript *t = conversation();
    char *text, *roles, *is;

    transcript_size(t, p->height, p->width);
    transcript_set_thinking(t, p->open);
    transcript_set_receipts(t, p->open);
    transcript_set_raw(t, p->raw);
    if (p->status)
        transcript_set_status(t, "prompt 24 % - 512 of 2,140 tokens", 0.24);
    if (p->up)
        transcript_home(t);
    text = drawn(t, p->height, p->width, p->ascii, false);
    roles = drawn(t, p->height, p->width, p->ascii, true);
    is = malloc(strlen(text) + strlen(roles) + 20);
    sprintf(is, "%s--- roles\n%s", text, roles);
    golden_assert("chat", p->name, is);
    free(text);
    free(roles);
    free(is);
    transcript_free(t);
}

/* ---- following and scrolling ---- */

static void the_view_follows_new_text(void **state)
{
    struct transcript *t = numbered(30);

    (void)state;
    expect(t, "\nline 25\n\nline 26\n\nline 27\n\nline 28\n\nline 29\n");
    piece(t, "line 30");
    expect(t, "\nline 26\n\nline 27\n\nline 28\n\nline 29\n\nline 30\n");
    assert_true(transcript_follows(t));
    assert_false(transcript_more_below(t));
    transcript_free(t);
}

static void the_view_stays_where_it_was_put(void **state)
{
    struct transcript *t = numbered(30);
    static const char held[] = "line 19\n\nline 20\n\nline 21\n\nline 22\n\nline 23\n"
                               "------ v more below - End: latest ------\n";

    (void)state;
    transcript_scroll(t, -11);
    assert_false(transcript_follows(t));
    expect(t, held);
    for (int i = 30; i < 60; i++) {
        piece(t, "more and more\n\n");
        expect(t, held);
    }
    assert_true(transcript_more_below(t));
    transcript_end(t);
    assert_true(transcript_follows(t));
    assert_true(sees(t, "more and more"));
    transcript_free(t);
}

static void scrolling_to_the_end_follows_again(void **state)
{
    struct transcript *t = numbered(30);

    (void)state;
    transcript_scroll(t, -3);
    transcript_scroll(t, 2);
    assert_false(transcript_follows(t));
    transcript_scroll(t, 1);
    assert_true(transcript_follows(t));
    transcript_scroll(t, -100000);
    assert_true(sees(t, "line 0\n"));
    transcript_scroll(t, 100000);
    assert_true(transcript_follows(t));
    transcript_free(t);
}

static void pages_overlap_by_a_row_and_come_back(void **state)
{
    struct transcript *t = numbered(100);
    char *first, *again;

    (void)state;
    transcript_scroll(t, -61);
    first = drawn(t, HEIGHT, WIDTH, true, false);
    transcript_page(t, -1);
    assert_true(
        sees(t, "line 64\n-")); /* the top row of the page before is the lowest row now */
    transcript_page(t, -2);
    transcript_page(t, 3);
    again = drawn(t, HEIGHT, WIDTH, true, false);
    assert_string_equal(first, again);
    free(first);
    free(again);
    transcript_home(t);
    assert_true(sees(t, "line 0\n"));
    transcript_free(t);
}

static void text_that_fits_does_not_scroll(void **state)
{
    struct transcript *t = numbered(3);

    (void)state;
    transcript_scroll(t, -5);
    assert_true(transcript_follows(t));
    transcript_home(t);
    assert_true(transcript_follows(t));
    transcript_free(t);
}

static void every_row_is_reached_by_scrolling(void **state)
{
    struct transcript *t = conversation();
    char *whole, *p, row[512];
    int n = 0;

    (void)state;
    transcript_size(t, 200, WIDTH);
    whole = drawn(t, 200, WIDTH, true, false);
    transcript_size(t, HEIGHT, WIDTH);
    transcript_home(t);
    for (p = whole; *p != '\0'; p = strchr(p, '\n') + 1, n++) {
        char *got = drawn(t, HEIGHT, WIDTH, true, false);

        if (transcript_follows(t)) {
            free(got);
            break;
        }
        snprintf(row, sizeof row, "%.*s\n", (int)strcspn(p, "\n"), p);
        assert_memory_equal(got, row, strlen(row));
        free(got);
        transcript_scroll(t, 1);
    }
    assert_true(n > 20);
    free(whole);
    transcript_free(t);
}

static void a_narrower_pane_keeps_its_place(void **state)
{
    struct transcript *t = begin();
    char word[32], *first, *again;

    (void)state;
    transcript_begin(t, false);
    for (int i = 0; i < 400; i++) {
        sprintf(word, "word%d ", i);
        piece(t, word);
    }
    transcript_scroll(t, -30);
    first = drawn(t, HEIGHT, WIDTH, true, false);
    transcript_size(t, 7, 17);
    again = drawn(t, 7, 17, true, false);
    first[strcspn(first, " ")] = '\0';
    again[strcspn(again, "\n")] = '\0';
    assert_non_null(
        strstr(again, first)); /* the first row has the word that was there before */
    first[strlen(first)] = ' ';
    free(again);
    transcript_size(t, HEIGHT, WIDTH);
    again = drawn(t, HEIGHT, WIDTH, true, false);
    assert_string_equal(first, again);
    free(first);
    free(again);
    transcript_free(t);
}

static void any_size_and_any_key_keep_it_valid(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct chance c = { seed * 0x9e3779b97f4a7c15u };
        struct transcript *t = conversation();
        char text[300], which[64];
        size_t n;

        assert_true(transcript_begin(t, false));
        for (int i = 0; i < 200; i++) {
            int height = (int)chance_below(&c, 30), width = (int)chance_below(&c, 100);
            int y = (int)chance_below(&c, 32) - 1, x = (int)chance_below(&c, 102) - 1;
            char *copy = NULL;

            switch (chance_below(&c, 19)) {
            case 0: transcript_scroll(t, (int)chance_below(&c, 40) - 20); break;
            case 1: transcript_page(t, (int)chance_below(&c, 3) - 1); break;
            case 2: transcript_home(t); break;
            case 3: transcript_end(t); break;
            case 4: transcript_search(t, chance_below(&c, 2) == 0 ? "e" : "memory"); break;
            case 5: transcript_search_next(t, chance_below(&c, 2) == 0 ? 1 : -1); break;
            case 6: transcript_press(t, y, x, (enum transcript_unit)chance_below(&c, 3)); break;
            case 7: transcript_drag(t, y, x); break;
            case 8: copy = transcript_copy_selection(t, &n); break;
            case 9: copy = transcript_copy_code(t, &n, which, sizeof which); break;
            case 10: copy = transcript_copy_answer(t, &n); break;
            case 11: transcript_set_raw(t, !transcript_is_raw(t)); break;
            case 12: transcript_set_thinking(t, !transcript_shows_thinking(t)); break;
            case 13: transcript_turn(t, (int)chance_below(&c, 2) * 2 - 1); break;
            case 14: transcript_set_status(t, i % 2 == 0 ? "busy" : NULL, 0.5); break;
            case 15:
                if (i % 20 == 0) {
                    transcript_rewind(t, chance_below(&c, 4));
                    transcript_begin(t, false);
                }
                break;
            case 16: transcript_thought(t); break;
            default:
                n = chance_text(&c, text, 200);
                transcript_append(t, text, n, chance_below(&c, 4) == 0);
            }
            free(copy);
            free(drawn(t, height, width, seed % 2 != 0, false));
        }
        transcript_free(t);
    }
}

/* ---- folding ---- */

static void thinking_is_one_line_that_opens(void **state)
{
    struct transcript *t = begin();

    (void)state;
    transcript_begin(t, false);
    assert_true(transcript_append(t, "first of all\n\nthen", 18, true));
    expect(t, "+ thinking: 4 words\n\n\n\n\n\n\n\n\n\n");
    piece(t, "Answer.");
    expect(t, "+ thought: 4 words\nAnswer.\n\n\n\n\n\n\n\n\n");
    assert_true(transcript_press(t, 0, 3, TRANSCRIPT_CLUSTER));
    expect(t, "- thought: 4 words\n| first of all\n|\n| then\n\nAnswer.\n\n\n\n\n");
    transcript_set_thinking(t, true);
    assert_true(sees(t, "| then"));
    transcript_set_thinking(t, false);
    assert_false(sees(t, "then"));
    transcript_free(t);
}

static void text_that_was_thinking_is_folded_into_it(void **state)
{
    struct transcript *t = begin();

    (void)state;
    transcript_begin(t, false);
    transcript_thought(t); /* there is no text yet */
    piece(t, "first of all\n\nthen");
    transcript_thought(t);
    expect(t, "+ thinking: 4 words\n\n\n\n\n\n\n\n\n\n");
    piece(t, "Answer.");
    transcript_done(t, NULL);
    transcript_thought(t); /* the answer is complete */
    expect(t, "+ thought: 4 words\nAnswer.\n\n\n\n\n\n\n\n\n");
    assert_true(transcript_press(t, 0, 3, TRANSCRIPT_CLUSTER));
    expect(t, "- thought: 4 words\n| first of all\n|\n| then\n\nAnswer.\n\n\n\n\n");
    transcript_free(t);
}

static void a_receipt_unfolds(void **state)
{
    struct transcript *t = begin();

    (void)state;
    transcript_begin(t, false);
    piece(t, "Answer.");
    transcript_done(t, &pane_receipt);
    expect(t, "Answer.\n+ 3.2 tok/s, 71 % disk\n\n\n\n\n\n\n\n\n");
    assert_true(transcript_press(t, 1, 0, TRANSCRIPT_CLUSTER));
    expect(t, "Answer.\n- 12 tokens - 3.4 s - 3.2 tok/s - 38.2\nGiB read - 71 % disk wait - "
              "peak 1.42\nGiB\n\n\n\n\n\n\n");
    transcript_set_receipts(t, true);
    assert_true(sees(t, "38.2"));
    transcript_free(t);
}

static void a_key_shows_the_raw_text(void **state)
{
    struct transcript *t = begin();

    (void)state;
    answer(t, "**bold**\n\n- item\n");
    expect(t, "bold\n\n* item\n\n\n\n\n\n\n\n");
    transcript_set_raw(t, true);
    expect(t, "**bold**\n\n- item\n\n\n\n\n\n\n\n");
    transcript_set_raw(t, false);
    assert_true(sees(t, "* item"));
    transcript_free(t);
}

/* ---- search ---- */

static void search_goes_up_and_marks_what_it_finds(void **state)
{
    struct transcript *t = numbered(50);
    struct transcript_matches m;
    char row[512];

    (void)state;
    assert_false(transcript_count(t, &m)); /* no search */
    assert_true(transcript_search(t, "line 1"));
    assert_true(transcript_count(t, &m));
    assert_int_equal(m.now, 11);
    assert_int_equal(m.of, 11);
    assert_true(sees(t, "line 19")); /* the nearest match above */
    assert_false(transcript_follows(t));
    roles_of_row(t, 3, row);
    assert_string_equal(row, "MMMMMM");
    assert_true(transcript_search_next(t, 1));
    roles_of_row(t, 1, row);
    assert_string_equal(row, "MMMMMM");
    roles_of_row(t, 3, row);
    assert_string_equal(row, "mmmmmm");
    for (int i = 0; i < 9; i++)
        assert_true(transcript_search_next(t, 1));
    assert_true(sees(t, "line 1\n"));
    assert_true(transcript_count(t, &m));
    assert_int_equal(m.now, 1);
    assert_false(transcript_search_next(t, 1)); /* and stays there */
    assert_true(sees(t, "line 1\n"));
    assert_true(transcript_search_next(t, -1));
    assert_true(transcript_is_searching(t));
    transcript_search(t, "");
    assert_false(transcript_is_searching(t));
    roles_of_row(t, 0, row);
    assert_string_equal(row, "");
    assert_false(transcript_search(t, "not there"));
    transcript_free(t);
}

static void search_looks_at_the_displayed_text(void **state)
{
    struct transcript *t = begin();
    char row[512];

    (void)state;
    answer(t, "Some **bold** words, \xc3\x84rger \xe4\xb8\xad\xe6\x96\x87 a\xe2\x80\x8b"
              "b.");
    assert_true(transcript_search(t, "some bold")); /* across markup */
    roles_of_row(t, 0, row);
    assert_string_equal(row, "MMMMMMMMM");
    assert_false(transcript_search(t, "some Bold")); /* a capital makes the search exact */
    assert_true(transcript_search(t, "\xc3\xa4RGER") == false);
    assert_true(transcript_search(t, "\xc3\xa4rger"));
    assert_true(transcript_search(t, "\xe6\x96\x87"));
    assert_true(transcript_search(t, "ab"));
    assert_false(transcript_search(t, "**"));
    transcript_free(t);
}

static void a_match_over_two_rows_is_marked_in_both(void **state)
{
    struct transcript *t = begin();
    char row[512];

    (void)state;
    answer(t, "1234567890 1234567890 1234567890 123456 over the edge");
    assert_true(transcript_search(t, "123456 over"));
    roles_of_row(t, 0, row);
    assert_string_equal(row + 33, "MMMMMM");
    roles_of_row(t, 1, row);
    assert_string_equal(row, "MMMM");
    transcript_free(t);
}

static void search_below_when_there_is_none_above(void **state)
{
    struct transcript *t = numbered(50);

    (void)state;
    transcript_home(t);
    assert_true(transcript_search(t, "line 40"));
    assert_true(sees(t, "line 40"));
    transcript_free(t);
}

int main(void)
{
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(the_view_follows_new_text),
        cmocka_unit_test(the_view_stays_where_it_was_put),
        cmocka_unit_test(scrolling_to_the_end_follows_again),
        cmocka_unit_test(pages_overlap_by_a_row_and_come_back),
        cmocka_unit_test(text_that_fits_does_not_scroll),
        cmocka_unit_test(every_row_is_reached_by_scrolling),
        cmocka_unit_test(a_narrower_pane_keeps_its_place),
        cmocka_unit_test(any_size_and_any_key_keep_it_valid),
        cmocka_unit_test(thinking_is_one_line_that_opens),
        cmocka_unit_test(text_that_was_thinking_is_folded_into_it),
        cmocka_unit_test(a_receipt_unfolds),
        cmocka_unit_test(a_status_is_cut_between_its_parts),
        cmocka_unit_test(a_key_shows_the_raw_text),
        cmocka_unit_test(search_goes_up_and_marks_what_it_finds),
        cmocka_unit_test(search_looks_at_the_displayed_text),
        cmocka_unit_test(a_match_over_two_rows_is_marked_in_both),
        cmocka_unit_test(search_below_when_there_is_none_above),
    };
    enum {
        FIXED = sizeof fixed / sizeof fixed[0],
        PICTURES = sizeof pictures / sizeof pictures[0],
    };
    struct CMUnitTest tests[FIXED + PICTURES];

    setlocale(LC_CTYPE, "C.UTF-8");
    for (size_t i = 0; i < FIXED; i++)
        tests[i] = fixed[i];
    for (size_t i = 0; i < PICTURES; i++)
        tests[FIXED + i] =
            (struct CMUnitTest){ pictures[i].name, looks_as_before, NULL, NULL, &pictures[i] };
    return cmocka_run_group_tests_name("transcript", tests, NULL, NULL);
}
