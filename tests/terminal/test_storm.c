/*
 * The terminal changes its size at any moment, also during an answer: nothing crashes, and at
 * the end every cell is as if everything were drawn again.  The sizes are random with a fixed
 * seed; an argument gives another one.
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

#include "tests/terminal/program.h"

#define N_SIZE 200

static uint64_t seed = 20260;

static unsigned draw(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* Wait for the drawing of every other size; the sizes between come too fast. */
static void resize_at_random(int i)
{
    /* One in eight is a size that nothing fits into.  Never one column: libvterm then follows a
     * null pointer when a wide character comes. */
    int rows = draw(8) == 0 ? 1 + (int)draw(4) : 3 + (int)draw(58);
    int cols = draw(8) == 0 ? 2 + (int)draw(20) : 16 + (int)draw(185);
    uint64_t before = pty_bytes(run.s);

    pty_resize(run.s, rows, cols);
    if (i % 2 == 0)
        return;
    for (int ms = 0; pty_bytes(run.s) == before && ms < 60000; ms += 100)
        pty_take(run.s, 100);
    assert_true(pty_bytes(run.s) > before);
}

struct final {
    const char *name;
    int rows, cols;
    bool keys;
};

static struct final finals[] = {
    { "resized_to_40x12_in_the_end", 12, 40, false },
    { "resized_to_80x24_in_the_end", 24, 80, false },
    { "resized_to_120x40_in_the_end", 40, 120, false },
    { "resized_to_200x60_in_the_end", 60, 200, false },
    { "resized_to_80x24_with_keys_between", 24, 80, true },
    { "resized_to_120x40_with_keys_between", 40, 120, true },
};

static const char *const keys[] = {
    "\033[5~",                                    /* PgUp */
    "\033[6~",                                    /* PgDn */
    "\033[F",                                     /* End */
    "\033OQ",                                     /* F2 */
    "\033OR",                                     /* F3 */
    "\xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80 ", /* type text */
    "\033[200~a\nb\nc\033[201~",                  /* add lines */
    "\025",                                       /* empty the line */
    "\033,",                                      /* drag the divider */
    "\033[<64;10;3M",                             /* turn the wheel */
};

static void resized(void **state)
{
    const struct final *f = *state;
    /* Figures that change would not be the same twice. */
    const char *args[] = { "-c", "32k", "--refresh", "60000", NULL };
    struct program_start start = { 40, 120, NULL, program_slow_model(), args, NULL, NULL };

    program_begin(&run, &start);
    sees(&run, "Talker (");
    pty_send(run.s, "\t3"); /* the wall is predicted in the background, at any moment */
    sees(&run, "wall is hidden");
    program_ask(&run, "hello \xe4\xb8\x96\xe7\x95\x8c", "Line 2:");
    for (int i = 0; i < N_SIZE; i++) {
        resize_at_random(i);
        if (f->keys)
            pty_send(run.s, keys[draw(sizeof keys / sizeof keys[0])]);
    }
    pty_resize(run.s, f->rows, f->cols);
    if (f->keys) {
        pty_send(run.s, "x\003\033[F"); /* Ctrl-C empties a line that has text */
        program_line(&run, "/view both");
    }
    pty_send(run.s, "\003");
    sees(&run, "stopped");
    assert_true(program_is_drawn_right(&run));
    program_quit(&run);
}

/* Change the size and back before the program looks: the terminal has cut its contents. */
static void back_to_the_size_that_it_was(void **state)
{
    const char *args[] = { "-n", "100", "--refresh", "60000", NULL };
    struct program_start start = { 40, 120, NULL, NULL, args, NULL, NULL };

    (void)state;
    program_begin(&run, &start);
    sees(&run, "Talker (");
    program_ask(&run, "hello", "token limit");
    for (int i = 0; i < 20; i++) {
        pty_resize(run.s, 10 + i, 30);
        pty_resize(run.s, 40, 120);
    }
    sees(&run, "Line 9:");
    assert_true(program_is_drawn_right(&run));
    sees(&run, "int main(void)");
    program_quit(&run);
}

/* The dashboard with changing figures: text that it wrote beside them is gone. */
static void resized_with_a_dashboard_that_moves(void **state)
{
    const char *args[] = { "-c", "32k", "--refresh", "50", "--view", "dashboard", NULL };
    struct program_start start = { 50, 160, NULL, program_slow_model(), args, NULL, NULL };
    int layers;

    (void)state;
    program_begin(&run, &start);
    sees(&run, "layers");
    program_line(&run, "hello");
    for (int i = 0; i < N_SIZE; i++)
        resize_at_random(i);
    pty_resize(run.s, 50, 160);
    pty_send(run.s, "\003");
    assert_true(pty_sees_at(run.s, -1, "ready"));
    sees(&run, "layers ");
    layers = 0;
    for (int y = 0; y < 50; y++)
        layers += strstr(pty_row(run.s, y), "layers ") != NULL;
    assert_int_equal(layers, 1);
    program_quit(&run);
}

int main(int argc, char **argv)
{
    enum { N_FINAL = sizeof finals / sizeof finals[0], N_REST = 2 };
    struct CMUnitTest tests[N_REST + N_FINAL] = {
        cmocka_unit_test_teardown(back_to_the_size_that_it_was, end_run),
        cmocka_unit_test_teardown(resized_with_a_dashboard_that_moves, end_run),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    for (size_t i = 0; i < N_FINAL; i++)
        tests[N_REST + i] =
            (struct CMUnitTest){ finals[i].name, resized, NULL, end_run, &finals[i] };
    return cmocka_run_group_tests_name("storm", tests, program_group_setup,
                                       program_group_teardown);
}
