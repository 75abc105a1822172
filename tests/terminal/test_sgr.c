/*
 * The filter of attributes: a terminal shows the same with it and without it.
 *
 * Two terminals of libvterm get a stream such as ncurses writes, made of random colours, text,
 * blanks, erasures and movements.  One gets it as it is, the other one through the filter, cut
 * at random places.  Their cells must be the same, but for the colour of text in blanks.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <vterm.h>

#include "tests/lib/chance.h"
#include "ui/term/sgr.h"

#define ROWS 12
#define COLS 40

struct bytes {
    char text[200000];
    size_t n;
};

static struct bytes plain, thin;
static struct chance chance;

static void add(void *ctx, const char *bytes, size_t n)
{
    struct bytes *b = ctx;

    assert_true(b->n + n < sizeof b->text);
    memcpy(b->text + b->n, bytes, n);
    b->n += n;
}

static unsigned upto(unsigned n)
{
    return chance_below(&chance, n);
}

/* ---- a stream ---- */

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    add(&plain, text, strlen(text));
}

/* As ncurses does it with the entry of xterm-256color or with true colours. */
static void say_look(void)
{
    static const char *const attrs[] = { "", ";1", ";3", ";4", ";7", ";1;4", ";1;7", ";3;9" };

    switch (upto(4)) {
    case 0: say("\033(B\033[m"); break;
    case 1: say("\033(B\033[0%sm", attrs[upto(8)]); break;
    case 2: say("\033[39;49m\033(B\033[m"); break;
    default: break;
    }
    if (upto(3) == 0)
        say("\033[3%um\033[10%um", upto(8), upto(8));
    else if (upto(2) == 0)
        say("\033[38;5;%um\033[48;5;%um", 16 + upto(4), 16 + upto(3));
    else
        say("\033[38;2;%u;0;1m\033[48;2;0;%u;2m", upto(3), upto(3));
}

static void say_something(void)
{
    static const char *const words[] = { "7", "tok/s", "\u2592\u2503\u2588", "\u7b2c\u884c",
                                         "-" };

    switch (upto(9)) {
    case 0:
    case 1:
    case 2: say("%s", words[upto(5)]); break;
    case 3: say("%*s", (int)upto(6), ""); break;
    case 4: say("\033[%u;%uH", 1 + upto(ROWS), 1 + upto(COLS - 12)); break;
    case 5: say(upto(2) == 0 ? "\033[K" : "\033[1K"); break;
    case 6: say("\033[%uX", 1 + upto(5)); break;
    case 7: say(upto(4) == 0 ? "\r\n" : "\033[%u%c", 1 + upto(3), "ABCDPL@"[upto(7)]); break;
    default: say(upto(30) == 0 ? "\033[H\033[2J" : "\b"); break;
    }
}

/* ---- the terminals ---- */

static VTerm *terminal(const struct bytes *b, VTermScreen **screen)
{
    VTerm *vt = vterm_new(ROWS, COLS);

    vterm_set_utf8(vt, 1);
    *screen = vterm_obtain_screen(vt);
    vterm_screen_reset(*screen, 1);
    vterm_input_write(vt, b->text, b->n);
    return vt;
}

static bool is_blank(const VTermScreenCell *c)
{
    if (c->chars[0] == (uint32_t)-1) /* the right half of a wide character has no look */
        return true;
    return (c->chars[0] == 0 || c->chars[0] == ' ') && !c->attrs.reverse &&
           !c->attrs.underline && !c->attrs.strike;
}

static bool same_colour(VTermColor a, VTermColor b)
{
    return vterm_color_is_equal(&a, &b);
}

static void compare(VTermScreen *a, VTermScreen *b)
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLS; x++) {
            VTermPos at = { y, x };
            VTermScreenCell p = { 0 }, q = { 0 };

            vterm_screen_get_cell(a, at, &p);
            vterm_screen_get_cell(b, at, &q);
            assert_true(same_colour(p.bg, q.bg));
            if (is_blank(&p) && is_blank(&q))
                continue;
            assert_memory_equal(p.chars, q.chars, sizeof p.chars);
            assert_true(same_colour(p.fg, q.fg));
            assert_int_equal(p.attrs.bold, q.attrs.bold);
            assert_int_equal(p.attrs.italic, q.attrs.italic);
            assert_int_equal(p.attrs.underline, q.attrs.underline);
            assert_int_equal(p.attrs.reverse, q.attrs.reverse);
            assert_int_equal(p.attrs.strike, q.attrs.strike);
        }
}

/* ---- tests ---- */

static void a_terminal_shows_the_same(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 300; run++) {
        struct sgr_filter f = { 0 };
        VTermScreen *screen[2];
        VTerm *vt[2];

        chance.state = 0x9e3779b97f4a7c15u * (run + 1);
        plain.n = thin.n = 0;
        for (int i = 0; i < 200; i++) {
            say_look();
            for (unsigned n = upto(4); n > 0; n--)
                say_something();
        }
        for (size_t at = 0, n; at < plain.n; at += n) {
            n = 1 + upto(50);
            n = n < plain.n - at ? n : plain.n - at;
            sgr_pass(&f, plain.text + at, n, add, &thin);
        }
        sgr_settle(&f, add, &thin);
        vt[0] = terminal(&plain, &screen[0]);
        vt[1] = terminal(&thin, &screen[1]);
        compare(screen[0], screen[1]);
        assert_true(thin.n < plain.n);
        vterm_free(vt[0]);
        vterm_free(vt[1]);
    }
}

static const struct {
    const char *in, *out;
} examples[] = {
    /* a background that is sent again */
    { "\033[38;5;253m\033[48;5;237m7\033[38;5;110m\033[48;5;237m>",
      "\033[38;5;253;48;5;237m7\033[38;5;110m>" },
    /* bold, which ncurses ends with a reset */
    { "\033(B\033[0;1m\033[38;5;110ma\033(B\033[0m\033[38;5;110mb",
      "\033[1;38;5;110ma\033[22mb" },
    /* a colour that nobody sees, and one that somebody does */
    { "\033[38;5;1ma\033[38;5;2m \033[38;5;1mb", "\033[38;5;1ma b" },
    { "\033[48;5;1ma\033[48;5;2m ", "\033[48;5;1ma\033[48;5;2m " },
    { "\033[7ma\033[38;5;2m ", "\033[7ma\033[38;5;2m " },
    /* the default look */
    { "\033[1;3;4;38;5;1;48;5;2ma\033[mb", "\033[1;3;4;38;5;1;48;5;2ma\033[mb" },
    /* sequences that it does not know, and what follows them */
    { "\033[4:3ma\033[mb", "\033[4:3ma\033[mb" },
    { "\033[?25l\033[5;7H\033[1ma\033[10;20Hb", "\033[?25l\033[5;7H\033[1ma\033[10;20Hb" },
    { "\033(0q\033(Bx", "\033(0q\033(Bx" },
};

static void only_differences_are_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        struct sgr_filter f = { 0 };

        thin.n = 0;
        sgr_pass(&f, examples[i].in, strlen(examples[i].in), add, &thin);
        thin.text[thin.n] = '\0';
        assert_string_equal(thin.text, examples[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_shows_the_same),
        cmocka_unit_test(only_differences_are_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
