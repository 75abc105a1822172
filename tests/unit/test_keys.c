/* Bytes of a terminal become keys: complete units only, a paste as one unit, and Esc if nothing
 * follows. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ui/term/keys.h"

static struct keys *keys;

static int begin(void **state)
{
    (void)state;
    keys = keys_new();
    return keys == NULL ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    keys_free(keys);
    return 0;
}

static void feed(const char *bytes)
{
    keys_feed(keys, (const unsigned char *)bytes, strlen(bytes), 0);
}

static void expect_paste(const char *text)
{
    struct key key;

    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.kind, KEYS_PASTE);
    assert_int_equal(key.n, strlen(text));
    assert_memory_equal(key.bytes, text, key.n);
}

static void a_paste_in_pieces_is_one_unit(void **state)
{
    static const char whole[] = "\033[200~two\nlines \033[A\033[201~";
    struct key key;

    (void)state;
    for (size_t cut = 1; cut + 1 < sizeof whole; cut++) {
        keys_feed(keys, (const unsigned char *)whole, cut, 0);
        assert_false(keys_next(keys, 0, &key));
        feed(whole + cut);
        expect_paste("two\nlines \033[A");
        assert_false(keys_next(keys, 0, &key));
    }
}

static void a_paste_without_its_end_ends_when_input_stops(void **state)
{
    struct key key;

    (void)state;
    feed("\033[200~no end\033[20");
    assert_false(keys_next(keys, 0, &key));
    assert_false(keys_next(keys, KEYS_PASTE_NS - 1, &key));
    assert_int_equal(keys_wait(keys, KEYS_PASTE_NS - 1), 1);
    assert_true(keys_next(keys, KEYS_PASTE_NS, &key));
    assert_int_equal(key.kind, KEYS_PASTE);
    assert_int_equal(key.n, 10);
    assert_memory_equal(key.bytes, "no end\033[20", 10);
    assert_true(keys_wait(keys, KEYS_PASTE_NS) == UINT64_MAX);
    keys_feed(keys, (const unsigned char *)"x", 1, KEYS_PASTE_NS);
    assert_true(keys_next(keys, KEYS_PASTE_NS, &key));
    assert_int_equal(key.kind, KEYS_CHAR);
}

/* The rest of a slow paste must not count as typed: its line ends would send the message. */
static void a_paste_that_pauses_goes_on(void **state)
{
    struct key key;

    (void)state;
    feed("\033[200~one");
    assert_true(keys_next(keys, KEYS_PASTE_NS, &key));
    assert_int_equal(key.kind, KEYS_PASTE);
    keys_feed(keys, (const unsigned char *)"two\rthree\033[201~", 15, KEYS_PASTE_NS + 1);
    assert_true(keys_next(keys, KEYS_PASTE_NS + 1, &key));
    assert_int_equal(key.kind, KEYS_PASTE);
    assert_memory_equal(key.bytes, "two\nthree", 9);
    assert_false(keys_next(keys, KEYS_PASTE_NS + 2, &key));
}

static void control_c_and_escape_end_a_paste(void **state)
{
    struct key key;

    (void)state;
    feed("\033[200~");
    keys_feed(keys, (const unsigned char *)"a\003b", 3, 1000 * KEYS_ESC_NS); /* pasted */
    assert_false(keys_next(keys, 1000 * KEYS_ESC_NS, &key));
    keys_feed(keys, (const unsigned char *)"\003", 1, 1010 * KEYS_ESC_NS);
    assert_true(keys_next(keys, 1010 * KEYS_ESC_NS, &key));
    assert_int_equal(key.kind, KEYS_PASTE_BROKEN);
    assert_int_equal(key.n, 3);
    keys_feed(keys, (const unsigned char *)"\003", 1, 1011 * KEYS_ESC_NS);
    assert_true(keys_next(keys, 1011 * KEYS_ESC_NS, &key));
    assert_int_equal(key.kind, KEYS_CHAR);
    assert_int_equal(key.ch, 3);

    keys_feed(keys, (const unsigned char *)"\033[200~text\033", 11, 0);
    assert_false(keys_next(keys, 0, &key));
    assert_true(keys_next(keys, KEYS_PASTE_NS, &key));
    assert_int_equal(key.kind, KEYS_PASTE);
    assert_int_equal(key.n, 4);
}

/* Memory for pastes is bounded.  Keys after a dropped paste are read again. */
static void a_paste_that_is_too_long_is_dropped(void **state)
{
    static unsigned char block[4096];
    struct key key;
    size_t n = 0;

    (void)state;
    memset(block, 'x', sizeof block);
    feed("\033[200~");
    for (; n <= KEYS_MAX_PASTE; n += sizeof block) {
        assert_false(keys_next(keys, 0, &key));
        keys_feed(keys, block, sizeof block, 0);
    }
    assert_false(keys_next(keys, 0, &key));
    feed("\033[201~y");
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.kind, KEYS_PASTE_LONG);
    assert_int_equal(key.n, n);
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.ch, 'y');
}

static void line_ends_of_a_paste_are_newlines(void **state)
{
    (void)state;
    feed("\033[200~a\rb\r\nc\nd\r\r\033[201~"); /* terminals send \r for Enter */
    expect_paste("a\nb\nc\nd\n\n");
}

static void an_escape_alone_is_a_key_when_its_time_is_over(void **state)
{
    struct key key;

    (void)state;
    feed("\033");
    assert_false(keys_next(keys, KEYS_ESC_NS / 2, &key));
    assert_true(keys_wait(keys, KEYS_ESC_NS / 2) <= KEYS_ESC_NS / 2);
    assert_true(keys_next(keys, KEYS_ESC_NS + 1, &key));
    assert_int_equal(key.kind, KEYS_NAMED);
    assert_int_equal(key.name, KEYS_ESC);
}

static void enter_and_its_relatives_are_told_apart(void **state)
{
    struct key key;

    (void)state;
    feed("\r\n\033\r\033[13;2u");
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.ch, '\r');
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.ch, '\n');
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.ch, '\r');
    assert_int_equal(key.mods, KEYS_ALT);
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.kind, KEYS_NAMED);
    assert_int_equal(key.name, KEYS_NEWLINE);
}

static void a_drag_of_the_mouse_has_its_place(void **state)
{
    struct key key;

    (void)state;
    feed("\033[<32;81;10M");
    assert_true(keys_next(keys, 0, &key));
    assert_int_equal(key.kind, KEYS_MOUSE);
    assert_int_equal(key.mouse.what, MOUSE_DRAG);
    assert_int_equal(key.mouse.y, 9);
    assert_int_equal(key.mouse.x, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_paste_in_pieces_is_one_unit, begin, end),
        cmocka_unit_test_setup_teardown(a_paste_without_its_end_ends_when_input_stops, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_paste_that_pauses_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(control_c_and_escape_end_a_paste, begin, end),
        cmocka_unit_test_setup_teardown(a_paste_that_is_too_long_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(line_ends_of_a_paste_are_newlines, begin, end),
        cmocka_unit_test_setup_teardown(an_escape_alone_is_a_key_when_its_time_is_over, begin,
                                        end),
        cmocka_unit_test_setup_teardown(enter_and_its_relatives_are_told_apart, begin, end),
        cmocka_unit_test_setup_teardown(a_drag_of_the_mouse_has_its_place, begin, end),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
