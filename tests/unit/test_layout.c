/*
 * The panes of the screen: they never overlap or leave the screen at any size, and the divider
 * moves to the requested place.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ui/app/layout.h"

static int cells(const struct area *a)
{
    return a->height * a->width;
}

static void paint(char *screen, const struct layout *l, struct area a)
{
    for (int y = a.y; y < a.y + a.height; y++)
        for (int x = a.x; x < a.x + a.width; x++) {
            assert_in_range(y, 0, l->height - 1);
            assert_in_range(x, 0, l->width - 1);
            assert_int_equal(screen[y * l->width + x], 0);
            screen[y * l->width + x] = 1;
        }
}

/* The panes and the lines between them.  The divider below the chat is a line of the dashboard;
 * in a frame it is its right side, and the rule its lower one. */
static void paint_all(char *screen, const struct layout *l)
{
    bool shares_rule = l->dash.height > 0 && l->dash.y + l->dash.height > l->rule.y;
    struct area rule = l->rule;

    if (shares_rule)
        rule.width = l->dash.x;
    paint(screen, l, l->chat);
    paint(screen, l, l->dash);
    paint(screen, l, rule);
    paint(screen, l, l->input);
    paint(screen, l, l->status);
    if (l->is_beside)
        paint(screen, l, l->divider);
    if (l->frame.height == 0)
        return;
    paint(screen, l, (struct area){ l->frame.y, l->frame.x, 1, l->frame.width - 1 });
    paint(screen, l,
          (struct area){ l->frame.y + 1, l->frame.x, l->frame.height - 2,
                         l->chat.x - l->frame.x });
    paint(screen, l,
          (struct area){ l->frame.y + 1, l->chat.x + l->chat.width, l->frame.height - 2,
                         l->divider.x - l->chat.x - l->chat.width });
    assert_int_equal(l->divider.x, l->frame.x + l->frame.width - 1);
    assert_int_equal(l->rule.y, l->frame.y + l->frame.height - 1);
}

static void every_cell_has_one_owner_at_every_size(void **state)
{
    (void)state;
    for (int height = 1; height <= 72; height++)
        for (int width = 1; width <= 260; width += 3)
            for (int view = 0; view < 3; view++)
                for (int permille = 0; permille <= 1000; permille += 250) {
                    char *screen = calloc((size_t)height, (size_t)width);
                    struct layout l;

                    layout_make(&l, height, width, (enum ui_view)view, permille,
                                1 + height % 4);
                    if (!l.is_too_small) {
                        paint_all(screen, &l);
                        assert_null(memchr(screen, 0, (size_t)(height * width)));
                    }
                    free(screen);
                }
}

static void a_wide_screen_gives_the_dashboard_two_fifths(void **state)
{
    struct layout l;

    (void)state;
    layout_make(&l, 50, 160, UI_VIEW_BOTH, 0, 1);
    assert_true(l.is_beside);
    assert_int_equal(l.dash.width, 64);
    assert_int_equal(l.frame.width, 96);
    assert_int_equal(l.chat.width, 92);
}

static void the_chat_has_a_frame_where_it_is_beside_the_boxes(void **state)
{
    struct layout l;

    (void)state;
    layout_make(&l, 30, 100, UI_VIEW_BOTH, 0, 1);
    assert_int_equal(l.frame.height, 28);
    assert_int_equal(l.dash.height, 28);
    layout_make(&l, 12, 100, UI_VIEW_BOTH, 0, 1); /* the line is worth more than the frame */
    assert_int_equal(cells(&l.frame), 0);
    layout_make(&l, 30, 100, UI_VIEW_CHAT, 0, 1); /* to copy from with the terminal */
    assert_int_equal(cells(&l.frame), 0);
    layout_make(&l, 24, 80, UI_VIEW_BOTH, 0, 1);
    assert_int_equal(cells(&l.frame), 0);
}

static void a_narrow_one_has_a_strip_that_grows_by_keys_and_mouse(void **state)
{
    struct layout l;

    (void)state;
    layout_make(&l, 24, 80, UI_VIEW_BOTH, 0, 1);
    assert_int_equal(l.dash.height, LAYOUT_STRIP_LINES);
    layout_make(&l, 24, 80, UI_VIEW_BOTH, layout_step(&l, 1), 1);
    assert_in_range(l.dash.height, LAYOUT_STRIP_LINES + 1, 8);
    layout_make(&l, 24, 80, UI_VIEW_BOTH, layout_permille(&l, 10, 3), 1);
    assert_int_equal(l.divider.y, 10);
    while (l.dash.height > LAYOUT_STRIP_LINES)
        layout_make(&l, 24, 80, UI_VIEW_BOTH, layout_step(&l, -1), 1);
    assert_int_equal(l.dash.height, LAYOUT_STRIP_LINES);
}

static void the_divider_goes_where_it_is_dragged(void **state)
{
    struct layout l;

    (void)state;
    layout_make(&l, 70, 250, UI_VIEW_BOTH, 0, 1);
    for (int x = 45; x < 200; x++) {
        layout_make(&l, 70, 250, UI_VIEW_BOTH, layout_permille(&l, 5, x), 1);
        assert_int_equal(l.divider.x, x);
    }
}

static void keys_move_it_both_ways(void **state)
{
    struct layout l;
    int before;

    (void)state;
    layout_make(&l, 36, 120, UI_VIEW_BOTH, 0, 1);
    before = l.dash.width;
    layout_make(&l, 36, 120, UI_VIEW_BOTH, layout_step(&l, 1), 1);
    assert_true(l.dash.width > before);
    layout_make(&l, 36, 120, UI_VIEW_BOTH, layout_step(&l, -1), 1);
    assert_int_equal(l.dash.width, before);
}

static void the_smallest_chat_has_a_line_of_text(void **state)
{
    struct layout l;

    (void)state;
    layout_make(&l, 12, 40, UI_VIEW_BOTH, 0, 1);
    assert_int_equal(cells(&l.dash), 0);
    assert_int_equal(l.chat.height, 9);
    layout_make(&l, 12, 40, UI_VIEW_BOTH, 0, 30);
    assert_true(l.chat.height >= 5); /* even if the message is long */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_has_one_owner_at_every_size),
        cmocka_unit_test(a_wide_screen_gives_the_dashboard_two_fifths),
        cmocka_unit_test(the_chat_has_a_frame_where_it_is_beside_the_boxes),
        cmocka_unit_test(a_narrow_one_has_a_strip_that_grows_by_keys_and_mouse),
        cmocka_unit_test(the_divider_goes_where_it_is_dragged),
        cmocka_unit_test(keys_move_it_both_ways),
        cmocka_unit_test(the_smallest_chat_has_a_line_of_text),
    };

    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
