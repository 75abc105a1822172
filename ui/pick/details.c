#include "config.h"

#include "ui/pick/details.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/numbers.h"
#include "engine/base/visible.h"

enum ui_role outlook_role(const struct mw_found *f)
{
    if (!f->is_described)
        return ROLE_DIM;
    switch (f->fit) {
    case MW_FIT_FITS: return ROLE_GOOD;
    case MW_FIT_STREAMS: return ROLE_WARN;
    case MW_FIT_TOO_LARGE: return ROLE_BAD;
    case MW_FIT_UNSUPPORTED:
    case MW_FIT_UNKNOWN: break;
    }
    return ROLE_DIM;
}

/* Draw text from row y on in at most `rows` rows, broken at blanks where there are any. Returns
 * the next row. */
static int draw_wrapped(const struct canvas *c, int y, int rows, struct ui_style style,
                        const char *text)
{
    size_t n = strlen(text);

    for (int row = 0; row < rows && n > 0; row++) {
        size_t fit = cluster_fit(text, n, c->width), cut = fit;

        while (fit < n && row + 1 < rows && cut > 0 && text[cut] != ' ')
            cut--;
        cut = cut > 0 ? cut : fit;
        if (cut == 0)
            break;
        canvas_put(c, y++, 0, c->width, style, text, cut);
        text += cut;
        n -= cut;
        while (n > 0 && *text == ' ') {
            text++;
            n--;
        }
    }
    return y;
}

static int draw_figures(const struct canvas *c, int y, const struct mw_found *f)
{
    char text[160], count[24], ctx[24];

    if (f->arch[0] == '\0')
        return y;
    numbers_parameters(count, sizeof count, f->n_param);
    snprintf(text, sizeof text, "%s, %s, %s parameters, trained for %s tokens", f->arch,
             f->type[0] != '\0' ? f->type : "type unknown", count,
             numbers_count(ctx, sizeof ctx, f->n_ctx_train));
    return draw_wrapped(c, y, 3, style_of(ROLE_TEXT), text);
}

static int draw_place(const struct canvas *c, int y, const struct mw_found *f)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = { { 86400, "days" }, { 3600, "hours" }, { 60, "minutes" } };
    int64_t ago = (int64_t)time(NULL) - f->used_s;

    canvas_printf(c, y, 0, style_of(ROLE_DIM), "found in: %s", mw_store_name(f->store));
    if (f->used_s == 0)
        return y + 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (ago >= 2 * units[i].seconds) {
            canvas_printf(c, y + 1, 0, style_of(ROLE_DIM), "used %" PRId64 " %s ago",
                          ago / units[i].seconds, units[i].name);
            return y + 2;
        }
    canvas_text(c, y + 1, 0, style_of(ROLE_DIM), "used just now");
    return y + 2;
}

static enum ui_role fill_of(enum mw_plan_row row)
{
    switch (row) {
    case MW_ROW_PROGRAM: return ROLE_FILL_PROGRAM;
    case MW_ROW_RING: return ROLE_FILL_RING;
    case MW_ROW_KV_GLOBAL:
    case MW_ROW_KV_SLIDING:
    case MW_ROW_KV_RECURRENT:
    case MW_ROW_KV_INDEX: return ROLE_FILL_KV;
    case MW_ROW_PINNED: return ROLE_FILL_PINNED;
    case MW_ROW_RESERVE: return ROLE_FILL_OTHER;
    default: return ROLE_FILL_WORK;
    }
}

#define ITEM_WIDTH 24 /* of the name and the size of an item */
#define GAP        2

/* An item of the plan: name, size and, in a canvas that is wider, its share of the budget. */
static void draw_item(const struct canvas *c, const struct plan *p, enum mw_plan_row row)
{
    struct ui_style fill = { .role = (uint8_t)fill_of(row) };
    char size[16];

    canvas_text(c, 0, 0, style_of(ROLE_DIM), mw_plan_row_label(row));
    canvas_right(c, 0, ITEM_WIDTH, style_of(ROLE_TEXT),
                 units_size(size, sizeof size, p->row[row]));
    if (c->width > ITEM_WIDTH + 8 && p->budget_bytes > 0)
        canvas_bar(c, 0, ITEM_WIDTH + 2, c->width - ITEM_WIDTH - 2,
                   (double)p->row[row] / (double)p->budget_bytes, fill, style_of(ROLE_BORDER));
}

/* The items of a plan, the largest first.  Returns their number. */
static int order_items(const struct plan *p, enum mw_plan_row items[MW_PLAN_ROWS])
{
    int n = 0;

    for (int row = 0; row < MW_PLAN_ROWS; row++) {
        int at = n;

        if (p->row[row] == 0)
            continue;
        for (; at > 0 && p->row[items[at - 1]] < p->row[row]; at--)
            items[at] = items[at - 1];
        items[at] = (enum mw_plan_row)row;
        n++;
    }
    return n;
}

/* One item below the other, or in a low and wide canvas several beside each other. */
static void draw_items(const struct canvas *c, int y, const struct plan *p)
{
    enum mw_plan_row items[MW_PLAN_ROWS];
    int n = order_items(p, items), n_column = c->width / (ITEM_WIDTH + GAP);

    if (c->height - y >= n || n_column < 1)
        n_column = 1;
    for (int i = 0; i < n; i++) {
        struct canvas item = canvas_sub(c, y + i / n_column, i % n_column * (ITEM_WIDTH + GAP),
                                        1, n_column > 1 ? ITEM_WIDTH : c->width);

        draw_item(&item, p, items[i]);
    }
}

static void draw_plan(const struct canvas *c, int y, const struct mw_found *f)
{
    const struct plan *p = &f->plan;
    char budget[16], sum[16], read[16], rate[24], ctx[24];

    canvas_printf(c, y++, 0, style_with(ROLE_ACCENT, UI_BOLD),
                  "%s of %s for %s tokens", units_size(sum, sizeof sum, p->sum_bytes),
                  units_size(budget, sizeof budget, p->budget_bytes),
                  numbers_count(ctx, sizeof ctx, p->n_ctx));
    if (p->decode_tps > 0 && y < c->height) {
        int x =
            canvas_printf(c, y, 0, style_of(ROLE_TEXT), "answers %s tok/s",
                          numbers_predicted(rate, sizeof rate, p->decode_tps, p->is_doubtful));

        if (p->prefill_tps > 0)
            canvas_printf(c, y, x, style_of(ROLE_TEXT), ", prompts %s",
                          numbers_predicted(rate, sizeof rate, p->prefill_tps, p->is_doubtful));
        y++;
    } else if (f->fit != MW_FIT_TOO_LARGE) {
        canvas_text(c, y++, 0, style_of(ROLE_DIM), "no speed: limits are not measured yet");
    }
    if (p->streamed_bytes > 0 && f->fit == MW_FIT_STREAMS)
        canvas_printf(c, y++, 0, style_of(ROLE_TEXT), "each %s reads %s",
                      p->assumed > 0 ? "pass" : "token",
                      units_size(read, sizeof read, p->streamed_bytes));
    draw_items(c, y, p);
}

void details_draw(const struct canvas *c, const struct mw_found *f)
{
    char text[512], path[4096];
    int y = 0;

    visible_line(path, sizeof path, f->path, strlen(f->path));
    y = draw_wrapped(c, y, 2, style_with(ROLE_TEXT, UI_BOLD), f->name);
    if (f->is_described) {
        mw_fit_text(f, text, sizeof text);
        y = draw_wrapped(c, y, 4, style_of(outlook_role(f)), text);
        y = draw_figures(c, y, f);
    } else {
        canvas_text(c, y++, 0, style_of(ROLE_DIM), "reading its header");
    }
    y = draw_wrapped(c, y, 3, style_of(ROLE_DIM), path);
    if (c->height >= 16)
        y = draw_place(c, y, f) + 1;
    if (f->is_described && f->fit < MW_FIT_UNSUPPORTED && y < c->height)
        draw_plan(c, y, f);
}
