/*
 * Turns of the transcript: selecting and copying, the cursor that moves over turns, and old
 * turns that are read from the saved chat.
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

#include "tests/lib/transcript_pane.h"
#include "ui/term/canvas.h"

/* ---- selection ---- */

static void expect_copy(struct transcript *t, const char *want)
{
    size_t n;
    char *got = transcript_copy_selection(t, &n);

    assert_non_null(got);
    assert_string_equal(got, want);
    assert_int_equal(n, strlen(want));
    free(got);
}

static void dragging_marks_clusters(void **state)
{
    struct transcript *t = begin();
    char row[512];
    size_t n;

    (void)state;
    answer(t, "one two three four five six seven eight nine ten\n\nlast");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    assert_false(transcript_press(t, 0, 4, TRANSCRIPT_CLUSTER));
    assert_false(transcript_has_selection(t));
    assert_null(transcript_copy_selection(t, &n));
    transcript_drag(t, 0, 6);
    roles_of_row(t, 0, row);
    assert_string_equal(row, "....sss");
    expect_copy(t, "two");
    transcript_drag(t, 1, 3); /* over the wrap, which adds no newline */
    expect_copy(t, "two three four five six seven eight nine");
    transcript_drag(t, 3, 30);
    expect_copy(t, "two three four five six seven eight nine ten\n\nlast");
    transcript_drag(t, 0, 0); /* backwards */
    expect_copy(t, "one t");
    transcript_unselect(t);
    assert_false(transcript_has_selection(t));
    transcript_free(t);
}

static void wide_and_joined_characters_are_marked_whole(void **state)
{
    struct transcript *t = begin();

    (void)state;
    answer(t, "a\xe4\xb8\xad\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"
              "e\xcc\x81z");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_press(t, 0, 2, TRANSCRIPT_CLUSTER); /* the second half of a wide character */
    transcript_drag(t, 0, 3);
    expect_copy(t, "\xe4\xb8\xad\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb");
    transcript_press(t, 0, 5, TRANSCRIPT_CLUSTER);
    transcript_drag(t, 0, 5);
    expect_copy(t, "e\xcc\x81");
    transcript_free(t);
}

static void words_and_paragraphs_are_marked_at_once(void **state)
{
    struct transcript *t = begin();

    (void)state;
    answer(t, "call `stall_ns`, then go\n\n- an item that is long enough to be wrapped here\n");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_press(t, 0, 7, TRANSCRIPT_WORD);
    expect_copy(t, "stall_ns");
    transcript_drag(t, 0, 16);
    expect_copy(t, "stall_ns, then");
    transcript_press(t, 3, 4, TRANSCRIPT_PARAGRAPH);
    expect_copy(t, "- an item that is long enough to be wrapped here");
    transcript_free(t);
}

static void a_selection_goes_over_messages(void **state)
{
    struct transcript *t = begin();

    (void)state;
    say(t, TRANSCRIPT_USER, "question\nof two lines");
    answer(t, "```\n\tcode  here\n```\n\nend");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_press(t, 0, 2, TRANSCRIPT_CLUSTER);
    transcript_drag(t, 7, 39);
    expect_copy(t, "question\nof two lines\n\n\tcode  here\n\nend");
    transcript_free(t);
}

static void a_drag_from_removed_text_marks_nothing(void **state)
{
    struct transcript *t = begin();

    (void)state;
    answer(t, "first");
    answer(t, "second");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_press(t, 2, 1, TRANSCRIPT_CLUSTER);
    transcript_rewind(t, 1);
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_drag(t, 0, 3);
    assert_false(transcript_has_selection(t));
    transcript_press(t, 0, 1, TRANSCRIPT_CLUSTER);
    transcript_drag(t, 0, 3);
    expect_copy(t, "irs");
    transcript_free(t);
}

static void a_selection_stays_while_text_arrives(void **state)
{
    struct transcript *t = numbered(30);
    char row[512];

    (void)state;
    free(drawn(t, HEIGHT, WIDTH, true, false));
    transcript_press(t, 1, 5, TRANSCRIPT_WORD);
    expect_copy(t, "25");
    piece(t, "more\n\nand more\n\n");
    expect_copy(t, "25");
    transcript_scroll(t, -3);
    free(drawn(t, HEIGHT, WIDTH, true, false));
    roles_of_row(t, 0, row);
    assert_string_equal(row, ".....ss");
    transcript_free(t);
}

/* ---- copying answers and code ---- */

static void an_answer_is_copied_unchanged(void **state)
{
    static const char text[] = "# Head\n\n* item &amp; \x1b[1m\n\n```\ncode\n```\n";
    struct transcript *t = begin();
    size_t n;
    char *got;

    (void)state;
    assert_null(transcript_copy_answer(t, &n));
    answer(t, "older");
    answer(t, text);
    got = transcript_copy_answer(t, &n);
    assert_string_equal(got, text);
    assert_int_equal(n, sizeof text - 1);
    free(got);
    transcript_size(t, 4, WIDTH);
    transcript_home(t);
    got = transcript_copy_answer(t, &n);
    assert_string_equal(got, "older");
    free(got);
    transcript_free(t);
}

static void code_blocks_are_copied_from_the_last_to_the_first(void **state)
{
    static const char *const want[] = { "b2", "b1", "b2" };
    static const char *const names[] = { "block 2 of 2", "block 1 of 2 (sh)", "block 2 of 2" };
    struct transcript *t = begin();
    char which[64], *got;
    size_t n;

    (void)state;
    assert_null(transcript_copy_code(t, &n, which, sizeof which));
    answer(t, "```sh\nb1\n```\nx\n```\nb2\n```\n");
    answer(t, "no code here");
    for (int i = 0; i < 3; i++) {
        got = transcript_copy_code(t, &n, which, sizeof which);
        assert_string_equal(got, want[i]);
        assert_string_equal(which, names[i]);
        assert_int_equal(n, 2);
        free(got);
    }
    transcript_free(t);
}

/* ---- turns ---- */

static void the_turn_cursor_moves_over_questions(void **state)
{
    struct transcript *t = begin();
    char row[512], *text;
    size_t n;

    (void)state;
    assert_false(transcript_turn(t, -1));
    assert_int_equal(transcript_turn_keep(t), -1);
    say(t, TRANSCRIPT_USER, "first");
    answer(t, "one");
    say(t, TRANSCRIPT_NOTICE, "note");
    say(t, TRANSCRIPT_USER, "second\n");
    answer(t, "two");
    assert_true(transcript_turn(t, -1));
    assert_int_equal(transcript_turn_keep(t), 2);
    text = transcript_turn_text(t, &n);
    assert_string_equal(text, "second\n");
    free(text);
    roles_of_row(t, 6, row);
    assert_string_equal(row, "u.ssssss");
    assert_true(transcript_turn(t, -1));
    assert_int_equal(transcript_turn_keep(t), 0);
    assert_false(transcript_turn(t, -1));
    assert_true(transcript_turn(t, 1));
    assert_false(transcript_turn(t, 1));
    transcript_rewind(t, 2);
    assert_int_equal(transcript_messages(t), 2);
    assert_true(sees(t, "- note")); /* it is before the turn that is gone */
    assert_int_equal(transcript_turn_keep(t), -1);
    transcript_turn_end(t);
    transcript_rewind(t, 0);
    assert_int_equal(transcript_messages(t), 0);
    transcript_free(t);
}

static void the_view_is_where_it_was_before_the_turn_cursor(void **state)
{
    struct transcript *t = begin();
    char *at;

    (void)state;
    say(t, TRANSCRIPT_USER, "first");
    answer(t, "one\n\ntwo\n\nthree\n\nfour\n\nfive\n\nsix\n\nseven\n\neight\n\nnine");
    free(drawn(t, HEIGHT, WIDTH, true, false));
    assert_true(transcript_follows(t));
    assert_true(transcript_turn(t, -1));
    assert_false(transcript_follows(t));
    assert_true(sees(t, "first"));
    transcript_turn_end(t);
    assert_true(transcript_follows(t));
    transcript_scroll(t, -4);
    at = drawn(t, HEIGHT, WIDTH, true, false);
    assert_true(transcript_turn(t, -1));
    transcript_turn_end(t);
    assert_false(transcript_follows(t));
    expect(t, at);
    free(at);
    transcript_free(t);
}

static void messages_that_the_model_no_longer_sees_are_marked(void **state)
{
    struct transcript *t = begin();
    char row[512];

    (void)state;
    say(t, TRANSCRIPT_USER, "one");
    answer(t, "first");
    say(t, TRANSCRIPT_USER, "two");
    answer(t, "second");
    transcript_set_unseen(t, 2);
    assert_true(sees(t, "x one"));
    assert_true(sees(t, "> two"));
    transcript_set_receipts(t, false);
    free(drawn(t, 20, WIDTH, true, false));
    roles_of_row(t, 2, row);
    assert_string_equal(row, "ddddd"); /* not only by the mark */
    transcript_rewind(t, 1);
    assert_true(sees(t, "x one"));
    transcript_set_unseen(t, 0);
    assert_true(sees(t, "> one"));
    transcript_free(t);
}

static void an_interrupted_answer_goes_on(void **state)
{
    struct mw_receipt stopped = { .done = MW_DONE_CANCELLED, .n_decoded = 2 };
    struct transcript *t = begin();

    (void)state;
    transcript_begin(t, false);
    piece(t, "Once **upon");
    transcript_done(t, &stopped);
    assert_true(sees(t, "+ 2 tokens, stopped"));
    say(t, TRANSCRIPT_NOTICE, "stopped");
    assert_true(transcript_begin(t, true));
    piece(t, "** a time");
    transcript_done(t, NULL);
    assert_true(sees(t, "Once upon a time\n\n- stopped"));
    assert_int_equal(transcript_messages(t), 1);
    transcript_free(t);
}

static void a_queued_message_is_below_the_running_answer(void **state)
{
    struct transcript *t = begin();

    (void)state;
    say(t, TRANSCRIPT_USER, "one");
    transcript_begin(t, false);
    piece(t, "first ");
    say(t, TRANSCRIPT_USER, "two");
    piece(t, "answer");
    expect(t, "> one\n\nfirst answer\n\n> two\n\n\n\n\n\n");
    transcript_done(t, NULL);
    transcript_free(t);
}

/* ---- memory ---- */

struct saved {
    int n_load;
    bool refuse;
};

static bool load(void *ctx, uint32_t id, struct transcript_text *out)
{
    struct saved *s = ctx;

    s->n_load++;
    if (s->refuse)
        return false;
    out->text = malloc(3000);
    assert_non_null(out->text);
    out->len = (size_t)sprintf(out->text, "item %u begins\n\n", id);
    while (out->len < 2500)
        out->len += (size_t)sprintf(out->text + out->len, "text of item %u\n\n", id);
    return true;
}

static void old_turns_come_back_from_the_saved_chat(void **state)
{
    enum { ITEMS = 3000, LIMIT = 200000 };
    struct saved saved = { 0 };
    struct transcript *t = transcript_new(
        &(struct transcript_options){ .limit_bytes = LIMIT, .load = load, .load_ctx = &saved });
    size_t fixed;
    int before;

    (void)state;
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_true(
            transcript_add_saved(t, i % 2 == 0 ? TRANSCRIPT_USER : TRANSCRIPT_ANSWER, i, NULL));
    assert_int_equal(saved.n_load, 0); /* opening a long chat reads no text of it */
    fixed = transcript_bytes(t);
    transcript_size(t, HEIGHT, WIDTH);
    assert_true(sees(t, "text of item 2999"));
    assert_true(saved.n_load <= 2);
    for (int i = 0; i < 4000; i++) {
        transcript_page(t, -1);
        free(drawn(t, HEIGHT, WIDTH, true, false));
        assert_true(transcript_bytes(t) <= fixed + LIMIT + 40000);
    }
    assert_true(saved.n_load > 100);
    transcript_home(t);
    assert_true(sees(t, "item 0 begins"));
    assert_true(transcript_search(t, "item 2500 begins"));
    assert_true(sees(t, "item 2500 begins"));
    before = saved.n_load;
    assert_false(transcript_search(t, "nowhere to be found"));
    assert_true(saved.n_load >= before + ITEMS - 200);
    assert_true(transcript_peak_bytes(t) <= fixed + LIMIT + 40000);
    transcript_end(t);
    assert_true(sees(t, "text of item 2999"));
    transcript_free(t);
}

static void a_saved_answer_is_dropped_and_comes_back(void **state)
{
    struct saved saved = { 0 };
    struct transcript *t = transcript_new(
        &(struct transcript_options){ .limit_bytes = 20000, .load = load, .load_ctx = &saved });

    (void)state;
    transcript_size(t, HEIGHT, WIDTH);
    for (uint32_t i = 0; i < 100; i++) {
        char text[3000];
        size_t n = (size_t)sprintf(text, "item %u begins\n\n", i);

        assert_true(transcript_begin(t, false));
        transcript_saved(t, i);
        while (n < 2500)
            n += (size_t)sprintf(text + n, "text of item %u\n\n", i);
        assert_true(transcript_append(t, text, n, false));
        transcript_done(t, &pane_receipt);
        free(drawn(t, HEIGHT, WIDTH, true, false));
    }
    assert_int_equal(saved.n_load, 0);
    assert_true(transcript_bytes(t) < 60000 + 100 * sizeof(struct mw_drafts)); /* of receipts */
    transcript_home(t);
    assert_true(sees(t, "item 0 begins"));
    assert_true(saved.n_load >= 1);
    saved.refuse = true;
    for (int i = 0; i < 500; i++) {
        transcript_page(t, 1);
        free(drawn(t, HEIGHT, WIDTH, true, false));
    }
    transcript_home(t);
    assert_true(sees(t, "could not be read back"));
    transcript_free(t);
}

static void text_that_was_never_saved_stays(void **state)
{
    struct transcript *t = transcript_new(&(struct transcript_options){ .limit_bytes = 1000 });

    (void)state;
    transcript_size(t, HEIGHT, WIDTH);
    for (int i = 0; i < 50; i++) {
        char text[64];

        sprintf(text, "notice %d that nobody has saved anywhere at all", i);
        say(t, TRANSCRIPT_NOTICE, text);
        free(drawn(t, HEIGHT, WIDTH, true, false));
    }
    transcript_home(t);
    assert_true(sees(t, "notice 0 that"));
    transcript_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dragging_marks_clusters),
        cmocka_unit_test(a_drag_from_removed_text_marks_nothing),
        cmocka_unit_test(wide_and_joined_characters_are_marked_whole),
        cmocka_unit_test(words_and_paragraphs_are_marked_at_once),
        cmocka_unit_test(a_selection_goes_over_messages),
        cmocka_unit_test(a_selection_stays_while_text_arrives),
        cmocka_unit_test(an_answer_is_copied_unchanged),
        cmocka_unit_test(code_blocks_are_copied_from_the_last_to_the_first),
        cmocka_unit_test(the_turn_cursor_moves_over_questions),
        cmocka_unit_test(the_view_is_where_it_was_before_the_turn_cursor),
        cmocka_unit_test(messages_that_the_model_no_longer_sees_are_marked),
        cmocka_unit_test(an_interrupted_answer_goes_on),
        cmocka_unit_test(a_queued_message_is_below_the_running_answer),
        cmocka_unit_test(old_turns_come_back_from_the_saved_chat),
        cmocka_unit_test(a_saved_answer_is_dropped_and_comes_back),
        cmocka_unit_test(text_that_was_never_saved_stays),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("transcript turns", tests, NULL, NULL);
}
