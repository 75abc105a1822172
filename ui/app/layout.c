#include "config.h"

#include "ui/app/layout.h"

#include "ui/term/box.h"

#define MIN_CHAT_WIDTH  40
#define MIN_DASH_WIDTH  34
#define MIN_CHAT_HEIGHT 6
#define MIN_DASH_HEIGHT 6
#define FRAME_HEIGHT    12 /* rows of the body from which the chat has a frame */
#define BELOW_HEIGHT    30 /* rows of the body from which more than a strip fits below */
#define STRIP_HEIGHT    11 /* rows of the body from which a strip fits */
#define DEFAULT_SHARE   400
#define MIN_SHARE       50
#define MAX_SHARE       900

static int clamp(int value, int low, int high)
{
    return value > high ? high : value < low ? low : value;
}

/* The dashboard ends in the row of the rule, if there is one. */
static int end_of_boxes(const struct layout *l, struct area body)
{
    return body.y + body.height + l->rule.height;
}

static void split_beside(struct layout *l, struct area body, int permille)
{
    int width = clamp((body.width * permille + 500) / 1000, MIN_DASH_WIDTH,
                      body.width - MIN_CHAT_WIDTH - 1);
    int end = end_of_boxes(l, body), left = body.width - width;

    l->is_beside = true;
    l->dash = (struct area){ body.y, left, end - body.y, width };
    l->divider = (struct area){ body.y, left - 1, body.height, 1 };
    l->chat = (struct area){ body.y, body.x, body.height, left - 1 };
    if (body.height < FRAME_HEIGHT)
        return;
    l->frame = (struct area){ body.y, body.x, end - body.y, left };
    l->chat = (struct area){ body.y + 1, body.x + box_inset(left), body.height - 1,
                             left - 2 * box_inset(left) };
}

/* rows: of the dashboard between divider and rule. */
static void split_below(struct layout *l, struct area body, int rows)
{
    int y = body.y + body.height - rows - 1;
    int end = rows + 1 == LAYOUT_STRIP_LINES ? body.y + body.height : end_of_boxes(l, body);

    l->dash = (struct area){ y, body.x, end - y, body.width };
    l->divider = (struct area){ y, body.x, 1, body.width };
    l->chat = (struct area){ body.y, body.x, y - body.y, body.width };
}

/* Rows of the dashboard below the divider. */
static int rows_below(int height, int permille)
{
    int rows;

    if (permille == 0)
        permille = height >= BELOW_HEIGHT ? DEFAULT_SHARE : 0;
    rows = clamp((height * permille + 500) / 1000, 0, height - MIN_CHAT_HEIGHT - 1);
    return rows >= MIN_DASH_HEIGHT ? rows : LAYOUT_STRIP_LINES - 1;
}

static void split(struct layout *l, struct area body, enum ui_view view, int permille)
{
    if (view == UI_VIEW_DASH) {
        l->dash = body;
        l->dash.height = end_of_boxes(l, body) - body.y;
        return;
    }
    l->chat = body;
    if (view == UI_VIEW_CHAT)
        return;
    if (body.width >= LAYOUT_WIDE && body.height >= MIN_DASH_HEIGHT)
        split_beside(l, body, permille == 0 ? DEFAULT_SHARE : permille);
    else if (body.height >= STRIP_HEIGHT)
        split_below(l, body, rows_below(body.height, permille));
}

void layout_make(struct layout *out, int height, int width, enum ui_view view, int permille,
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
    split(out, body, view, permille);
}

/* Rows of the dashboard between divider and rule. */
static int part_below(const struct layout *l)
{
    return l->dash.height == 0 ? 0 : l->rule.y - l->dash.y - 1;
}

/* Columns or rows that chat and dashboard share, and the dashboard's part of them. */
static int shared(const struct layout *l)
{
    return l->is_beside ? l->width : l->chat.height + part_below(l) + 1;
}

static int share_of(const struct layout *l, int part)
{
    int whole = shared(l);

    return clamp(whole > 0 ? part * 1000 / whole : 0, MIN_SHARE, MAX_SHARE);
}

int layout_permille(const struct layout *l, int y, int x)
{
    return share_of(l, shared(l) - 1 - (l->is_beside ? x : y));
}

int layout_step(const struct layout *l, int steps)
{
    int part = l->is_beside ? l->dash.width : part_below(l);
    int step = l->is_beside ? l->width / 25 : 2;

    /* Heights between the strip and the smallest dashboard are not used. */
    if (!l->is_beside && part == LAYOUT_STRIP_LINES - 1 && steps > 0)
        part = MIN_DASH_HEIGHT - step;
    return share_of(l, part + steps * (step > 0 ? step : 1));
}

bool area_holds(const struct area *a, int y, int x)
{
    return y >= a->y && y < a->y + a->height && x >= a->x && x < a->x + a->width;
}
