#include "config.h"

#include "ui/layout.h"

#define MIN_CHAT_WIDTH  40
#define MIN_DASH_WIDTH  34
#define MIN_CHAT_HEIGHT 6
#define MIN_DASH_HEIGHT 6
#define BELOW_HEIGHT    30 /* rows of the body from which more than a strip fits below */
#define STRIP_HEIGHT    11 /* rows of the body from which a strip fits */

static int clamp(int value, int low, int high)
{
    return value > high ? high : value < low ? low : value;
}

static void split_beside(struct layout *l, struct area body, int percent)
{
    int width =
        clamp(body.width * percent / 100, MIN_DASH_WIDTH, body.width - MIN_CHAT_WIDTH - 1);

    l->is_beside = true;
    l->dash = (struct area){ body.y, body.x + body.width - width, body.height, width };
    l->divider = (struct area){ body.y, l->dash.x - 1, body.height, 1 };
    l->chat = (struct area){ body.y, body.x, body.height, body.width - width - 1 };
}

static void split_below(struct layout *l, struct area body, int height)
{
    l->dash = (struct area){ body.y + body.height - height, body.x, height, body.width };
    l->divider = (struct area){ l->dash.y - 1, body.x, 1, body.width };
    l->chat = (struct area){ body.y, body.x, body.height - height - 1, body.width };
}

static void split(struct layout *l, struct area body, enum ui_view view, int percent)
{
    if (view == UI_VIEW_DASH) {
        l->dash = body;
        return;
    }
    l->chat = body;
    if (view == UI_VIEW_CHAT)
        return;
    if (body.width >= LAYOUT_WIDE && body.height >= MIN_DASH_HEIGHT)
        split_beside(l, body, percent);
    else if (body.height >= BELOW_HEIGHT)
        split_below(l, body,
                    clamp(body.height * percent / 100, MIN_DASH_HEIGHT,
                          body.height - MIN_CHAT_HEIGHT - 1));
    else if (body.height >= STRIP_HEIGHT)
        split_below(l, body, LAYOUT_STRIP_LINES);
}

void layout_make(struct layout *out, int height, int width, enum ui_view view, int percent,
                 int input_rows)
{
    struct area body = { 0, 0, height, width };
    int rows = clamp(input_rows, 1, height / 3 > 1 ? height / 3 : 1);

    *out = (struct layout){ .height = height, .width = width };
    out->is_too_small = height < LAYOUT_MIN_HEIGHT || width < LAYOUT_MIN_WIDTH;
    if (out->is_too_small)
        return;
    out->status = (struct area){ height - 1, 0, 1, width };
    body.height--;
    out->input = (struct area){ body.height - rows, 0, rows, width };
    body.height -= rows;
    if (height >= 6) {
        out->rule = (struct area){ body.height - 1, 0, 1, width };
        body.height--;
    }
    split(out, body, view, percent == 0 ? 40 : percent);
}

int layout_percent(const struct layout *l, int y, int x)
{
    int height = l->chat.height + l->dash.height + 1;

    if (l->is_beside)
        return clamp((l->width - x - 1) * 100 / (l->width > 0 ? l->width : 1) + 1, 10, 90);
    return clamp((height - y - 1) * 100 / (height > 0 ? height : 1) + 1, 10, 90);
}

bool area_holds(const struct area *a, int y, int x)
{
    return y >= a->y && y < a->y + a->height && x >= a->x && x < a->x + a->width;
}
