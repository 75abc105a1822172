/* The mouse: wheel, clicks, selection, the divider. */
#include "config.h"

#include <stdlib.h>

#include "engine/base/clock.h"
#include "ui/app/app.h"
#include "ui/dash/dash.h"

#define CLICK_NS   ((uint64_t)400 * 1000 * 1000)
#define WHEEL_ROWS 3

static void wheel(struct app *a, int y, int x, int rows)
{
    if (a->mode == MODE_SHEET && sheet_holds(a->sheet, y, x))
        sheet_scroll(a->sheet, rows);
    else if (area_holds(&a->layout.chat, y, x))
        transcript_scroll(a->transcript, rows);
    app_dirty(a, DIRT_CHAT | DIRT_INPUT);
}

/* One, two or three presses at the same place. */
static enum transcript_unit count_clicks(struct app *a, int y, int x)
{
    uint64_t now = clock_ns();
    bool again = now - a->click.at_ns < CLICK_NS && y == a->click.y && x == a->click.x;

    a->click.count = again ? (a->click.count + 1) % 3 : 0;
    a->click.at_ns = now;
    a->click.y = y;
    a->click.x = x;
    return (enum transcript_unit)a->click.count;
}

static void press(struct app *a, int y, int x)
{
    const struct layout *l = &a->layout;

    a->drag = DRAG_NOTHING;
    if (a->mode == MODE_SHEET) {
        if (!sheet_holds(a->sheet, y, x))
            app_enter(a, MODE_LINE);
        return;
    }
    if (area_holds(&l->dash, y, x) && app_panels_press(a, y, x)) {
        app_dirty(a, DIRT_DASH);
    } else if (area_holds(&l->divider, y, x)) {
        a->drag = DRAG_DIVIDER;
    } else if (area_holds(&l->chat, y, x)) {
        enum transcript_unit unit = count_clicks(a, y, x);

        if (!transcript_press(a->transcript, y - l->chat.y, x - l->chat.x, unit))
            a->drag = DRAG_SELECTION;
        app_dirty(a, DIRT_CHAT);
    } else if (area_holds(&l->dash, y, x)) {
        if (dash_click(a->dash, l->dash.height, l->dash.width, y - l->dash.y, x - l->dash.x))
            app_wall_clicked(a, y, x);
    } else if (area_holds(&l->input, y, x) && a->mode != MODE_FIND) {
        struct input_line in = app_typed(a);

        edit_set_cursor(
            input_at(&in, l->input.height, l->input.width, y - l->input.y, x - l->input.x));
        app_dirty(a, DIRT_INPUT);
    }
}

static void drag(struct app *a, int y, int x)
{
    if (a->drag == DRAG_DIVIDER) {
        a->permille = layout_permille(&a->layout, y, x);
        app_set_view(a, a->ui.view);
    } else if (a->drag == DRAG_PANEL || a->drag == DRAG_EDGE) {
        app_panels_drag(a, y, x);
    } else if (a->drag == DRAG_SELECTION) {
        transcript_drag(a->transcript, y - a->layout.chat.y, x - a->layout.chat.x);
        app_dirty(a, DIRT_CHAT);
    }
}

static void release(struct app *a, int y, int x)
{
    size_t n = 0;

    if (a->drag == DRAG_PANEL || a->drag == DRAG_EDGE) {
        app_panels_release(a, y, x);
    } else if (a->drag == DRAG_DIVIDER) {
        app_save_panels(a);
    } else if (a->drag == DRAG_SELECTION && transcript_has_selection(a->transcript)) {
        char *text = transcript_copy_selection(a->transcript, &n);

        if (text != NULL && n > 0)
            app_copy(a, text, n, "the selection");
        else
            free(text);
    }
    a->drag = DRAG_NOTHING;
}

void app_mouse(struct app *a, const struct key *key)
{
    int y = key->mouse.y, x = key->mouse.x;

    switch (key->mouse.what) {
    case MOUSE_WHEEL_UP: wheel(a, y, x, -WHEEL_ROWS); break;
    case MOUSE_WHEEL_DOWN: wheel(a, y, x, WHEEL_ROWS); break;
    case MOUSE_PRESS:
        if (key->mouse.button == 0)
            press(a, y, x);
        else if (key->mouse.button == 2 && a->mode != MODE_SHEET &&
                 area_holds(&a->layout.dash, y, x))
            app_panels_right(a, y, x);
        break;
    case MOUSE_DRAG:
        if (key->mouse.button == 0)
            drag(a, y, x);
        break;
    case MOUSE_RELEASE:
        if (key->mouse.button == 0 || key->mouse.button == 3)
            release(a, y, x);
        break;
    }
}
