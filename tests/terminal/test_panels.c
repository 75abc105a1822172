/*
 * The panels of the dashboard are hidden, moved and resized by keys and by the mouse, and the
 * next start shows them as they were left.
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

static const struct program_start start = { .rows = 50, .cols = 160 };

static void begin(void)
{
    program_begin(&run, &start);
    sees(&run, "Talker (");
    sees(&run, "layers");
}

static void again(void)
{
    program_quit(&run);
    program_again(&run, &start);
    sees(&run, "Talker (");
    sees(&run, "layers");
}

/* The row and column of a title, and a click there. */
static int title(const char *name, int *x)
{
    char text[80];
    int y;
    const char *row;

    snprintf(text, sizeof text, "\u2500 %s \u2500", name);
    y = pty_find(run.s, text);
    if (y < 0)
        fail_msg("there is no panel \"%s\"", name);
    row = strstr(pty_row(run.s, y), text);
    *x = 0;
    for (const char *c = pty_row(run.s, y); c < row; c++)
        *x += ((unsigned char)*c & 0xc0) != 0x80;
    *x += 3; /* in the name */
    return y;
}

static int row_of(const char *name)
{
    int x;

    return title(name, &x);
}

static void mouse(int button, int y, int x, char what)
{
    char text[40];

    snprintf(text, sizeof text, "\033[<%d;%d;%d%c", button, x + 1, y + 1, what);
    pty_send(run.s, text);
}

static void numbers_hide_panels_and_show_them_again(void **state)
{
    (void)state;
    begin();
    pty_send(run.s, TAB "5");
    sees(&run, "kv is hidden; 5 shows it");
    loses(&run, "kv cache");
    again();
    assert_false(pty_shows(run.s, "kv cache"));
    pty_send(run.s, TAB "5");
    sees(&run, "kv cache");
    pty_send(run.s, "123456");
    loses(&run, "memory");
    pty_send(run.s, "7");
    sees(&run, "this is the only panel");
    pty_send(run.s, "0");
    sees(&run, "memory");
    pty_send(run.s, TAB);
    program_quit(&run);
}

/* Hide the panels of memory and of the page cache: their lines come and go with the machine, as
 * the pressure does, and those of others grow and shrink with them. */
static void hide_what_varies(void)
{
    pty_send(run.s, TAB "46");
    sees(&run, "cache is hidden");
    program_sync(&run); /* typing ends the mode */
    assert_int_equal(pty_find(run.s, "\u2500 memory \u2500"), -1);
}

/* The panel of experts is there only for a model that has some. */
static void keys_of_panels_that_the_model_lacks_do_nothing(void **state)
{
    (void)state;
    begin();
    pty_send(run.s, TAB "8");
    sees(&run, "this model has the panels 1 to 7");
    pty_send(run.s, "5"); /* still in the dashboard */
    sees(&run, "kv is hidden; 5 shows it");
    pty_send(run.s, "9");
    sees(&run, "this model has the panels 1 to 7");
    pty_send(run.s, "5" TAB);
    program_sync(&run);
    program_quit(&run);
}

static void keys_move_and_resize_the_chosen_panel(void **state)
{
    int first, second, height;

    (void)state;
    begin();
    hide_what_varies();
    first = row_of("verdict");
    assert_true(first < row_of("speed"));
    pty_send(run.s, TAB RIGHT "J"); /* from layers around to verdict */
    program_sync(&run);
    assert_true(row_of("speed") < row_of("verdict"));
    second = row_of("wall");
    pty_send(run.s, TAB);
    sees(&run, "1 verdict \u2500"); /* and the details of a layer, which take lines */
    height = pty_find(run.s, "3 wall \u2500") - pty_find(run.s, "1 verdict \u2500");
    pty_send(run.s, RIGHT RIGHT "++");
    program_sync(&run);
    assert_int_equal(row_of("wall") - row_of("verdict"), height + 2);
    again();
    assert_true(row_of("speed") < row_of("verdict"));
    assert_int_equal(row_of("wall") - row_of("verdict"), height + 2);
    pty_send(run.s, TAB "0");
    program_sync(&run);
    assert_true(pty_shows(run.s, "\u2500 memory \u2500"));
    assert_int_equal(row_of("verdict"), first);
    hide_what_varies();
    assert_int_equal(row_of("wall"), second);
    program_quit(&run);
}

static void the_mouse_moves_resizes_and_hides_panels(void **state)
{
    int y, x, to_x, to;

    (void)state;
    begin();
    hide_what_varies();
    y = title("wall", &x);
    to = title("verdict", &to_x);
    mouse(0, y, x, 'M');
    mouse(32, to, to_x, 'M');
    sees(&run, "release: wall goes to the place of verdict");
    mouse(0, to, to_x, 'm');
    sees(&run, "wall is moved");
    program_sync(&run);
    assert_int_equal(row_of("wall"), to);

    y = row_of("verdict"); /* the line that it shares with the panel above it */
    mouse(0, y, to_x + 30, 'M');
    mouse(32, y + 2, to_x + 30, 'M');
    mouse(0, y + 2, to_x + 30, 'm');
    program_sync(&run);
    assert_int_equal(row_of("verdict"), y + 2);

    y = title("speed", &x);
    mouse(2, y, x, 'M');
    mouse(2, y, x, 'm');
    sees(&run, "speed is hidden");
    again();
    assert_int_equal(row_of("wall"), to);
    assert_int_equal(pty_find(run.s, "\u2500 speed \u2500"), -1);
    y = title("wall", &x);
    mouse(2, y + 1, x, 'M');
    mouse(2, y + 1, x, 'm');
    sees(&run, "all panels are shown");
    program_sync(&run);
    assert_true(row_of("speed") > row_of("wall"));
    program_quit(&run);
}

static void the_divider_is_where_it_was_left(void **state)
{
    int x, before;

    (void)state;
    begin();
    title("verdict", &before);
    pty_send(run.s, "\033,\033,");
    program_sync(&run);
    title("verdict", &x);
    assert_true(x < before);
    again();
    title("verdict", &before);
    assert_int_equal(x, before);
    program_quit(&run);
}

/* The strip is too low for panels but for the wall, which is a line there; without it, the hint
 * says where they are. */
static void the_strip_names_the_keys_to_its_panels(void **state)
{
    static const struct program_start small = { .rows = 24, .cols = 80 };

    (void)state;
    program_begin(&run, &small);
    sees(&run, "Talker");
    pty_send(run.s, TAB);
    sees(&run, "Left, Right: move  Enter: apply");
    pty_send(run.s, TAB "\033,\033," TAB);
    sees(&run, "1-7: hide");
    pty_send(run.s, "3" TAB "\033.\033." TAB);
    sees(&run, "the strip has no panels: Alt-, enlarges it");
    pty_send(run.s, TAB "\033,\033," TAB);
    sees(&run, "1-7: hide");
    pty_send(run.s, "2");
    sees(&run, "speed is hidden");
    pty_send(run.s, TAB);
    program_quit(&run);
}

static void a_damaged_layout_is_ignored_and_replaced(void **state)
{
    static const char *const texts[] = { "",
                                         "panels",
                                         "panels \n",
                                         "panels verdict verdict\n",
                                         ("panels -verdict -speed -memory -kv -cache -layers\n"
                                          "split 0\n"),
                                         "panels speed:999 verdict\nsplit 400\n",
                                         "panels verdict\nsplit 99999999999\n",
                                         "\377\376panels kv\nsplit 4\n" };
    int first;

    (void)state;
    begin();
    first = row_of("verdict");
    pty_send(run.s, TAB "5");
    sees(&run, "kv is hidden");
    pty_send(run.s, TAB);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *f = fopen(program_path(&run, ".local/state/memwall/layout"), "r+");

        assert_non_null(f); /* where the program keeps it */
        assert_int_equal(fclose(f), 0);
        program_quit(&run);
        f = fopen(program_path(&run, ".local/state/memwall/layout"), "w");
        assert_non_null(f);
        fputs(texts[i], f);
        fclose(f);
        program_again(&run, &start);
        sees(&run, "Talker (");
        sees(&run, "kv cache");
        program_sync(&run);
        assert_int_equal(row_of("verdict"), first);
    }
    pty_send(run.s, TAB "5");
    sees(&run, "kv is hidden");
    again();
    assert_false(pty_shows(run.s, "kv cache"));
    program_quit(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(numbers_hide_panels_and_show_them_again, end_run),
        cmocka_unit_test_teardown(keys_of_panels_that_the_model_lacks_do_nothing, end_run),
        cmocka_unit_test_teardown(keys_move_and_resize_the_chosen_panel, end_run),
        cmocka_unit_test_teardown(the_mouse_moves_resizes_and_hides_panels, end_run),
        cmocka_unit_test_teardown(the_divider_is_where_it_was_left, end_run),
        cmocka_unit_test_teardown(the_strip_names_the_keys_to_its_panels, end_run),
        cmocka_unit_test_teardown(a_damaged_layout_is_ignored_and_replaced, end_run),
    };

    return cmocka_run_group_tests_name("panels", tests, program_group_setup,
                                       program_group_teardown);
}
