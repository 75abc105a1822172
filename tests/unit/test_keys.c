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

/* ---- the sequences of terminals ---- */

#define NONE     KEYS_UNKNOWN, 0, 0, NULL
#define REPLY    KEYS_REPLY, 0, 0, NULL
#define CHAR     KEYS_CHAR
#define NAMED    KEYS_NAMED
#define NO_MOUSE false, MOUSE_PRESS, 0, 0, 0

struct unit {
    const char *bytes;
    enum key_kind kind;
    uint32_t what; /* a character or a name */
    unsigned mods;
    const char *plain; /* as xterm sends it; NULL: the same bytes */
};

static const struct unit units[] = {
    /* kitty's protocol */
    { "\033[99;5u", CHAR, 3, 0, "\003" },
    { "\033[99;69u", CHAR, 3, 0, "\003" },
    { "\033[99;133u", CHAR, 3, 0, "\003" },
    { "\033[99;5:1u", CHAR, 3, 0, "\003" },
    { "\033[99;5:2u", CHAR, 3, 0, "\003" },
    { "\033[99;5:3u", NONE },
    { "\033[67;5u", CHAR, 3, 0, "\003" },
    { "\033[99:67;6u", CHAR, 3, 0, "\003" },
    { "\033[1089::99;5u", CHAR, 3, 0, "\003" },
    { "\033[1089;5u", NONE },
    { "\033[100;5u", CHAR, 4, 0, "\004" },
    { "\033[122;5u", CHAR, 26, 0, "\032" },
    { "\033[27u", NAMED, KEYS_ESC, 0, "\033" },
    { "\033[27;129u", NAMED, KEYS_ESC, 0, "\033" },
    { "\033[91;5u", NAMED, KEYS_ESC, 0, "\033" },
    { "\033[13u", CHAR, '\r', 0, "\r" },
    { "\033[13;65u", CHAR, '\r', 0, "\r" },
    { "\033[13;5u", CHAR, '\r', 0, "\r" },
    { "\033[13;2u", NAMED, KEYS_NEWLINE, 0, "\n" },
    { "\033[13;130u", NAMED, KEYS_NEWLINE, 0, "\n" },
    { "\033[13;3u", CHAR, '\r', KEYS_ALT, "\033\r" },
    { "\033[13;1:3u", NONE },
    { "\033[9u", CHAR, '\t', 0, "\t" },
    { "\033[9;2u", NAMED, KEYS_SHIFT_TAB, 0, "\033[Z" },
    { "\033[127u", CHAR, 0x7f, 0, "\177" },
    { "\033[127;5u", CHAR, '\b', 0, "\b" },
    { "\033[127;3u", CHAR, 0x7f, KEYS_ALT, "\033\177" },
    { "\033[32;5u", CHAR, 0, 0, NULL },
    { "\033[97u", CHAR, 'a', 0, "a" },
    { "\033[97;2u", CHAR, 'A', 0, "A" },
    { "\033[97;65u", CHAR, 'A', 0, "A" },
    { "\033[97;66u", CHAR, 'a', 0, "a" },
    { "\033[49:33;2u", CHAR, '!', 0, "!" },
    { "\033[49;2;33u", CHAR, '!', 0, "!" },
    { "\033[228;2u", CHAR, 0xc4, 0, "\303\204" },
    { "\033[120;3u", CHAR, 'x', KEYS_ALT, "\033x" },
    { "\033[120;33u", CHAR, 'x', KEYS_ALT, "\033x" },
    { "\033[120;9u", NONE }, /* Super */
    { "\033[57414u", CHAR, '\r', 0, "\r" },
    { "\033[57400;129u", CHAR, '1', 0, "1" },
    { "\033[57419u", NAMED, KEYS_UP, 0, "\033[A" },
    { "\033[57441;2u", NONE }, /* Shift alone */
    { "\033[57358u", NONE },   /* Caps Lock */
    { "\033[1;1:3A", NONE },
    { "\033[1;129A", NAMED, KEYS_UP, 0, "\033[A" },
    { "\033[3;1:3~", NONE },
    { "\033[1114112u", NONE },
    { "\033[55296u", NONE },
    { "\033[u", NONE },
    { "\033[?1u", REPLY },
    /* modifyOtherKeys */
    { "\033[27;5;99~", CHAR, 3, 0, "\003" },
    { "\033[27;2;13~", NAMED, KEYS_NEWLINE, 0, "\n" },
    { "\033[27;5;13~", CHAR, '\r', 0, "\r" },
    { "\033[27;2;65~", CHAR, 'A', 0, "A" },
    { "\033[27;9;120~", CHAR, 'x', KEYS_ALT, "\033x" },
    { "\033[27;5;27~", NAMED, KEYS_ESC, 0, "\033" },
    /* Windows Terminal */
    { "\033[67;46;3;1;8;1_", CHAR, 3, 0, "\003" },
    { "\033[67;46;3;0;8;1_", NONE },
    { "\033[13;28;13;1;0;1_", CHAR, '\r', 0, "\r" },
    { "\033[13;28;13;1;32;1_", CHAR, '\r', 0, "\r" },
    { "\033[13;28;13;1;16;1_", NAMED, KEYS_NEWLINE, 0, "\n" },
    { "\033[8;14;8;1;0;1_", CHAR, 0x7f, 0, "\177" },
    { "\033[27;1;27;1;0;1_", NAMED, KEYS_ESC, 0, "\033" },
    { "\033[38;72;0;1;256;1_", NAMED, KEYS_UP, 0, "\033[A" },
    { "\033[65;30;97;1;0;1_", CHAR, 'a', 0, "a" },
    { "\033[81;16;64;1;9;1_", CHAR, '@', 0, "@" }, /* AltGr-Q */
    { "\033[17;29;0;1;8;1_", NONE },               /* Ctrl alone */
    /* the keypad in application mode */
    { "\033OM", CHAR, '\r', 0, "\r" },
    { "\033O5M", CHAR, '\r', 0, "\r" },
    { "\033O2M", NAMED, KEYS_NEWLINE, 0, "\n" },
    { "\033Op", CHAR, '0', 0, "0" },
    { "\033Oy", CHAR, '9', 0, "9" },
    { "\033Oj", CHAR, '*', 0, "*" },
    { "\033Ok", CHAR, '+', 0, "+" },
    { "\033Ol", CHAR, ',', 0, "," },
    { "\033Om", CHAR, '-', 0, "-" },
    { "\033On", CHAR, '.', 0, "." },
    { "\033Oo", CHAR, '/', 0, "/" },
    { "\033OX", CHAR, '=', 0, "=" },
    { "\033O1;5P", NAMED, KEYS_F1, KEYS_CTRL, "\033[1;5P" },
    { "\033O2P", NAMED, KEYS_F1, KEYS_SHIFT, "\033[1;2P" },
    { "\033OA", NAMED, KEYS_UP, 0, "\033[A" },
    { "\033OE", NONE }, /* the middle of the keypad */
    /* rxvt */
    { "\033[7~", NAMED, KEYS_HOME, 0, "\033[H" },
    { "\033[8~", NAMED, KEYS_END, 0, "\033[F" },
    { "\033[7^", NAMED, KEYS_HOME, KEYS_CTRL, "\033[1;5H" },
    { "\033[3$", NAMED, KEYS_DELETE, KEYS_SHIFT, "\033[3;2~" },
    { "\033[5@", NAMED, KEYS_PAGE_UP, KEYS_CTRL | KEYS_SHIFT, "\033[5;6~" },
    { "\033Od", NAMED, KEYS_LEFT, KEYS_CTRL, "\033[1;5D" },
    { "\033[a", NAMED, KEYS_UP, KEYS_SHIFT, "\033[1;2A" },
    { "\033\033[C", NAMED, KEYS_RIGHT, KEYS_ALT, "\033[1;3C" },
    { "\033\033OD", NAMED, KEYS_LEFT, KEYS_ALT, "\033[1;3D" },
    { "\033\033[5~", NAMED, KEYS_PAGE_UP, KEYS_ALT, "\033[5;3~" },
    /* the Linux console, PuTTY, VT220, screen, xterm */
    { "\033[[A", NAMED, KEYS_F1, 0, "\033OP" },
    { "\033[[E", NAMED, KEYS_F5, 0, "\033[15~" },
    { "\033[[F", NONE },
    { "\033[11~", NAMED, KEYS_F1, 0, "\033OP" },
    { "\033[1~", NAMED, KEYS_HOME, 0, "\033[H" },
    { "\033[4~", NAMED, KEYS_END, 0, "\033[F" },
    { "\033[28~", NONE },
    { "\033[29~", NONE },
    { "\033[5C", NAMED, KEYS_RIGHT, KEYS_CTRL, "\033[1;5C" },
    { "\033[>1;5C", NAMED, KEYS_RIGHT, KEYS_CTRL, "\033[1;5C" },
    { "\033[1;5D", NAMED, KEYS_LEFT, KEYS_CTRL, NULL },
    { "\033[24;6~", NAMED, KEYS_F12, KEYS_SHIFT | KEYS_CTRL, NULL },
    { "\033[E", NONE },
    { "\033[1;2Z", NAMED, KEYS_SHIFT_TAB, 0, "\033[Z" },
    { "\033[201~", NONE }, /* the end of a paste that has no start */
    /* control characters with the eighth bit */
    { "\233A", NAMED, KEYS_UP, 0, "\033[A" },
    { "\302\233A", NAMED, KEYS_UP, 0, "\033[A" },
    { "\217M", CHAR, '\r', 0, "\r" },
    { "\235"
      "11;rgb:0/0/0\234",
      REPLY },
    /* reports and late answers */
    { "\033[I", KEYS_FOCUS_IN, 0, 0, NULL },
    { "\033[O", KEYS_FOCUS_OUT, 0, 0, NULL },
    { "\033[?62;22c", REPLY },
    { "\033[>41;354;0c", REPLY },
    { "\033[0n", REPLY },
    { "\033[12;40R", REPLY },
    { "\033[1;1R", REPLY },
    { "\033[1;80R", REPLY },
    { "\033[?1;2R", REPLY },
    { "\033[1;5R", NAMED, KEYS_F3, KEYS_CTRL, NULL },
    { "\033[4;600;800t", REPLY },
    { "\033[?2026;2$y", REPLY },
    { "\033[2;1$y", REPLY },
    { "\033[?997;1n", REPLY },
    { "\033]11;rgb:ffff/ffff/ffff\033\\", REPLY },
    { "\033]52;c;aGVsbG8=\a", REPLY },
    { "\033P>|XTerm(354)\033\\", REPLY },
    { "\033P1+r544e=787465726d\033\\", REPLY },
    { "\033_Gi=1;OK\033\\", REPLY },
    { "\033^private\033\\", REPLY },
    /* unknown ones, in full */
    { "\033[1;2;3;4;5;6;7;8;9w", NONE },
    { "\033[>1;2q", REPLY },
    { "\033[=3;4z", REPLY },
    { "\033[12 q", NONE },
    { "\033[!p", NONE },
    { "\033[99999999999999999999;5u", NONE },
    { "\033[1;0A", NAMED, KEYS_UP, 0, "\033[A" },
};

static void expect_unit(const struct unit *u, uint64_t now)
{
    const char *plain = u->plain != NULL ? u->plain : u->bytes;
    struct key key;

    if (!keys_next(keys, now, &key))
        fail_msg("no unit for ESC%s", u->bytes + 1);
    if (key.kind != u->kind)
        fail_msg("kind %d of ESC%s", (int)key.kind, u->bytes + 1);
    assert_memory_equal(key.raw, u->bytes, strlen(u->bytes));
    assert_int_equal(key.n_raw, strlen(u->bytes));
    if (u->kind != CHAR && u->kind != NAMED)
        return;
    if ((u->kind == CHAR ? key.ch : (uint32_t)key.name) != u->what)
        fail_msg("key %d of ESC%s", u->kind == CHAR ? (int)key.ch : (int)key.name,
                 u->bytes + 1);
    if (u->what == 0 && u->kind == CHAR) {
        assert_int_equal(key.n, 1);
        assert_int_equal(key.bytes[0], 0);
    } else {
        assert_int_equal(key.mods, u->mods);
        assert_int_equal(key.n, strlen(plain));
        assert_memory_equal(key.bytes, plain, key.n);
    }
}

/* The byte after a sequence is the next key, wherever reads end. */
static void sequences_of_all_terminals_are_keys(void **state)
{
    struct key key;

    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const char *bytes = units[i].bytes;

        for (size_t cut = 1; cut <= strlen(bytes); cut++) {
            keys_feed(keys, (const unsigned char *)bytes, cut, 0);
            if (cut < strlen(bytes))
                assert_false(keys_next(keys, 0, &key));
            feed(bytes + cut);
            feed("x");
            expect_unit(&units[i], 0);
            assert_true(keys_next(keys, 0, &key));
            assert_int_equal(key.kind, KEYS_CHAR);
            assert_int_equal(key.ch, 'x');
            assert_false(keys_next(keys, 0, &key));
        }
    }
}

struct report {
    const char *bytes;
    bool is_known;
    enum mouse_what what;
    int button, y, x;
};

static const struct report reports[] = {
    { "\033[<0;12;34M", true, MOUSE_PRESS, 0, 33, 11 },
    { "\033[<0;12;34m", true, MOUSE_RELEASE, 0, 33, 11 },
    { "\033[<2;12;34M", true, MOUSE_PRESS, 2, 33, 11 },
    { "\033[<34;12;34M", true, MOUSE_DRAG, 2, 33, 11 },
    { "\033[<64;12;34M", true, MOUSE_WHEEL_UP, 0, 33, 11 },
    { "\033[<65;12;34M", true, MOUSE_WHEEL_DOWN, 1, 33, 11 },
    { "\033[<64;12;34m", NO_MOUSE },
    { "\033[<66;12;34M", NO_MOUSE },
    { "\033[<67;12;34M", NO_MOUSE },
    { "\033[<35;12;34M", NO_MOUSE },
    { "\033[<128;12;34M", NO_MOUSE },
    { "\033[<128;12;34m", NO_MOUSE },
    { "\033[<129;12;34M", NO_MOUSE },
    { "\033[<160;12;34M", NO_MOUSE },
    { "\033[<131;12;34m", NO_MOUSE },
    { "\033[32;12;34M", true, MOUSE_PRESS, 0, 33, 11 },
    { "\033[35;12;34M", true, MOUSE_RELEASE, 3, 33, 11 },
    { "\033[64;12;34M", true, MOUSE_DRAG, 0, 33, 11 },
    { "\033[96;12;34M", true, MOUSE_WHEEL_UP, 0, 33, 11 },
    { "\033[160;12;34M", NO_MOUSE },
    { "\033[M !\"", true, MOUSE_PRESS, 0, 1, 0 },
    { "\033[M#!\"", true, MOUSE_RELEASE, 3, 1, 0 },
    { "\033[M@\377\"", true, MOUSE_DRAG, 0, 1, 222 },
    { "\033[M \304\264\"", true, MOUSE_PRESS, 0, 1, 275 },
    { "\033[M`!\"", true, MOUSE_WHEEL_UP, 0, 1, 0 },
    { "\033[Mb!\"", NO_MOUSE },
};

static void the_mouse_is_read_in_every_encoding(void **state)
{
    struct key key;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof reports / sizeof reports[0]; i++) {
        const struct report *r = &reports[i / 2];

        keys_set_mouse(keys, i % 2 == 0);
        keys_feed(keys, (const unsigned char *)r->bytes, 4, 0);
        assert_false(keys_next(keys, 0, &key));
        feed(r->bytes + 4);
        feed("x");
        assert_true(keys_next(keys, 0, &key));
        assert_int_equal(key.n_raw, strlen(r->bytes));
        assert_int_equal(key.kind, r->is_known && i % 2 == 0 ? KEYS_MOUSE : KEYS_UNKNOWN);
        if (key.kind == KEYS_MOUSE) {
            assert_int_equal(key.mouse.what, r->what);
            assert_true(key.mouse.button == r->button || r->what >= MOUSE_WHEEL_UP);
            assert_int_equal(key.mouse.y, r->y);
            assert_int_equal(key.mouse.x, r->x);
        }
        assert_true(keys_next(keys, 0, &key));
        assert_int_equal(key.ch, 'x');
    }
}

/* A slow line may stop inside a sequence; only Esc and Alt with a key are typed. */
static void a_sequence_that_pauses_is_not_typed(void **state)
{
    static const char *const heads[] = { "\033[1;",    "\033[99;5", "\033]11;rgb:", "\033P>|XT",
                                         "\033[<0;12", "\033O1;",   "\033[M ",      "\033_Gi" };
    struct key key;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        feed(heads[i]);
        assert_false(keys_next(keys, 2 * KEYS_ESC_NS, &key));
        assert_true(keys_wait(keys, KEYS_ESC_NS) > 0);
        assert_true(keys_next(keys, KEYS_LATE_NS, &key));
        assert_true(key.kind == KEYS_UNKNOWN || key.kind == KEYS_REPLY);
        assert_false(keys_next(keys, KEYS_LATE_NS, &key));
    }
    for (const char *c = "[O]P_^"; *c != '\0'; c++) {
        const char alt[] = { '\033', *c, '\0' };

        feed(alt);
        assert_false(keys_next(keys, 0, &key));
        assert_true(keys_next(keys, KEYS_ESC_NS, &key));
        assert_int_equal(key.kind, KEYS_CHAR);
        assert_int_equal(key.ch, *c);
        assert_int_equal(key.mods, KEYS_ALT);
    }
}

/* The bytes of a character may come in several packets. */
static void a_character_that_pauses_is_read_whole(void **state)
{
    static const struct {
        const char *head, *tail;
        uint32_t ch;
    } rows[] = { { "\xe4\xb8", "\xad", 0x4e2d },
                 { "\xc3", "\xa4", 0xe4 },
                 { "\xf0", "\x9f\x98\x80", 0x1f600 } };
    struct key key;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        feed(rows[i].head);
        assert_false(keys_next(keys, 5 * KEYS_ESC_NS, &key));
        feed(rows[i].tail);
        assert_true(keys_next(keys, 5 * KEYS_ESC_NS, &key));
        assert_int_equal(key.kind, KEYS_CHAR);
        assert_int_equal(key.ch, rows[i].ch);
    }
}

/* Ctrl-C must work although the terminal did not end a sequence. */
static void a_control_character_ends_a_sequence(void **state)
{
    static const char *const heads[] = { "\033[1;", "\033]11;rgb:", "\033P>|XT",
                                         "\033O1",  "\033[M ",      "\033_Gi" };
    struct key key;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        feed(heads[i]);
        feed("\003");
        assert_true(keys_next(keys, 0, &key));
        assert_true(key.kind == KEYS_UNKNOWN || key.kind == KEYS_REPLY);
        assert_true(keys_next(keys, 0, &key));
        assert_int_equal(key.ch, 3);
    }
}

/* The buffer holds a part of an answer; the rest must not be typed. */
static void a_long_answer_is_dropped_to_its_end(void **state)
{
    static const struct {
        const char *begin, *end;
        char fill;
    } answers[] = { { "\033]52;c;", "\033\\", 'A' },
                    { "\033]52;c;", "\a", 'A' },
                    { "\033P1$r", "\033\\", '1' },
                    { "\033[1;", "z", '1' } };
    unsigned char block[1000];
    struct key key;
    size_t n_key;

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        memset(block, answers[i].fill, sizeof block);
        feed(answers[i].begin);
        n_key = 0;
        for (int k = 0; k < 20; k++) {
            keys_feed(keys, block, sizeof block, 0);
            for (; keys_next(keys, 0, &key); n_key++)
                assert_true(key.kind == KEYS_REPLY || key.kind == KEYS_UNKNOWN);
        }
        assert_int_equal(n_key, 1);
        for (const char *c = answers[i].end; *c != '\0'; c++) {
            keys_feed(keys, (const unsigned char *)c, 1, 0);
            assert_false(keys_next(keys, 0, &key));
        }
        feed("x");
        assert_true(keys_next(keys, 0, &key));
        assert_int_equal(key.ch, 'x');
    }
}

/* Esc, and then a report of the mouse, of focus or a paste: these have no Alt. */
static void escape_stays_a_key_before_a_report(void **state)
{
    static const char *const after[] = { "\033[<0;1;1M", "\033[I", "\033[?1;2c", "\033x",
                                         "\033[200~a\033[201~" };
    struct key key;

    (void)state;
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        feed("\033");
        feed(after[i]);
        assert_true(keys_next(keys, 0, &key));
        assert_int_equal(key.kind, KEYS_NAMED);
        assert_int_equal(key.name, KEYS_ESC);
        assert_int_equal(key.n_raw, 1);
        assert_true(keys_next(keys, 0, &key));
        assert_int_not_equal(key.kind, KEYS_NAMED);
        assert_false(keys_next(keys, 0, &key));
    }
    feed("\033\033");
    assert_false(keys_next(keys, 0, &key));
    for (int i = 0; i < 2; i++) {
        assert_true(keys_next(keys, KEYS_ESC_NS, &key));
        assert_int_equal(key.name, KEYS_ESC);
        assert_int_equal(key.n_raw, 1);
    }
}

/* Whatever arrives, all bytes are taken, and none is read twice. */
static void any_bytes_become_units(void **state)
{
    static const char alphabet[] = "\033\033\033[[O]P_M<?$~;:0159;uAx\033\233\302\234\a\003 \\";
    uint32_t seed = 7;
    struct key key;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        unsigned char bytes[24];
        size_t n = 0, n_raw = 0;
        bool pastes = false;

        for (; n < sizeof bytes; n++) {
            seed = seed * 1664525 + 1013904223;
            bytes[n] = (unsigned char)alphabet[(seed >> 16) % (sizeof alphabet - 1)];
        }
        keys_feed(keys, bytes, n, 0);
        while (keys_next(keys, 10 * KEYS_PASTE_NS, &key)) {
            pastes |= key.kind == KEYS_PASTE;
            n_raw += key.n_raw;
        }
        assert_true(pastes || n_raw == n);
        assert_true(keys_wait(keys, 0) == UINT64_MAX);
    }
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
        cmocka_unit_test_setup_teardown(sequences_of_all_terminals_are_keys, begin, end),
        cmocka_unit_test_setup_teardown(the_mouse_is_read_in_every_encoding, begin, end),
        cmocka_unit_test_setup_teardown(a_sequence_that_pauses_is_not_typed, begin, end),
        cmocka_unit_test_setup_teardown(a_character_that_pauses_is_read_whole, begin, end),
        cmocka_unit_test_setup_teardown(a_control_character_ends_a_sequence, begin, end),
        cmocka_unit_test_setup_teardown(a_long_answer_is_dropped_to_its_end, begin, end),
        cmocka_unit_test_setup_teardown(escape_stays_a_key_before_a_report, begin, end),
        cmocka_unit_test_setup_teardown(any_bytes_become_units, begin, end),
        cmocka_unit_test_setup_teardown(enter_and_its_relatives_are_told_apart, begin, end),
        cmocka_unit_test_setup_teardown(a_drag_of_the_mouse_has_its_place, begin, end),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
