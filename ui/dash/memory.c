/*
 * The memory meter: the use of the budget, and the figures of the kernel.
 *
 *     memory ─────────────────────── 1.98 GiB of 2.00 GiB
 *     p██a██r█w█████████████████████████████l██k███x·····
 *     p program        44.0 MiB/ 48 MiB  w pinned weights 1.70 GiB …
 *     charged 1.98 GiB  peak 1.99 GiB  other 3.00 MiB 0.1 %
 *     given back 1.50 GiB, 12 s ago: little free memory
 *     next: pinned weights, below 1.00 GiB spare (now 1.40 GiB)
 *
 *      ── budget 2.00 GiB ────────────────────────────────
 *     ⣿⣿⣿⣿⣿⣿ …                     charged, each second 0
 *
 * The upper edge of the curve is the budget.
 * Segments are plan items with their current size, and then what they will take, as planned,
 * but do not take yet, in another pattern.  `other` is memory that the kernel counts
 * and no item explains; the bar ends at the kernel's figure.  `cached` is the part of the model
 * in the page cache that is charged too (never with direct reads); with mmap the budget does
 * not cover it, and it is marked `exempt` and part neither of the bar nor of the sum.  A segment begins with its letter, so it is
 * recognisable without colour.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/dash/curve.h"
#include "ui/dash/widget.h"
#include "ui/words/budget.h"

/* In the order of the bar, with the names of the plan. */
struct segment {
    enum mw_plan_row row;
    char letter;
    enum ui_role role;
};

static const struct segment segments[] = {
    { MW_ROW_PROGRAM, 'p', ROLE_FILL_PROGRAM },  { MW_ROW_TOKENIZER, 't', ROLE_FILL_PROGRAM },
    { MW_ROW_ACTIVATIONS, 'a', ROLE_FILL_WORK }, { MW_ROW_LOGITS, 'g', ROLE_FILL_WORK },
    { MW_ROW_ROWS, 'e', ROLE_FILL_WORK },        { MW_ROW_RING, 'r', ROLE_FILL_RING },
    { MW_ROW_EXPERTS, 'm', ROLE_FILL_PINNED },   { MW_ROW_PINNED, 'w', ROLE_FILL_PINNED },
    { MW_ROW_KV_GLOBAL, 'k', ROLE_FILL_KV },     { MW_ROW_KV_SLIDING, 's', ROLE_FILL_KV },
    { MW_ROW_KV_RECURRENT, 'n', ROLE_FILL_KV },  { MW_ROW_KV_INDEX, 'i', ROLE_FILL_KV },
    { MW_ROW_DRAFTER, 'd', ROLE_FILL_WORK },     { MW_ROW_RESERVE, 'x', ROLE_FILL_OTHER },
};
#define N_SEGMENT (sizeof segments / sizeof segments[0])

/* Returns the bytes of an item without borrowed KV space, which has a segment of its own.
 * Experts beyond their plan are in borrowed space, and pinned weights borrow the rest. */
static uint64_t own_bytes(const struct mw_sample *s, enum mw_plan_row row)
{
    const uint64_t *used = s->mem.used, *plan = s->mem.plan;
    uint64_t more = used[MW_ROW_EXPERTS] > plan[MW_ROW_EXPERTS]
                        ? used[MW_ROW_EXPERTS] - plan[MW_ROW_EXPERTS]
                        : 0;
    uint64_t lent = s->mem.lent_bytes, of_experts = more < lent ? more : lent;

    if (row == MW_ROW_EXPERTS)
        return used[row] - of_experts;
    lent -= of_experts;
    return row == MW_ROW_PINNED ? used[row] - (lent < used[row] ? lent : used[row]) : used[row];
}

/* ---- the bar ---- */

struct bar {
    const struct canvas *c;
    int y, x;
    double scale, at;    /* cells per byte; bytes drawn so far */
    const char *letters; /* those with a key; NULL: all */
};

#define RESERVED '=' /* the part that is not used yet has a pattern instead of a letter */

/* Returns what plan items will take beyond their current size, less borrowed KV space. */
static uint64_t reserved_bytes(const struct mw_sample *s)
{
    uint64_t sum = 0;

    for (int i = 0; i < MW_PLAN_ROWS; i++)
        if (s->mem.plan[i] > s->mem.used[i])
            sum += s->mem.plan[i] - s->mem.used[i];
    return sum > s->mem.lent_bytes ? sum - s->mem.lent_bytes : 0;
}

static wchar_t fill_of(const struct canvas *c, char letter)
{
    if (canvas_is_ascii(c))
        return letter == RESERVED ? RESERVED : L'#';
    return letter == RESERVED ? L'\u2592' : L'\u2588';
}

/* Draw up to the rounded end of all bytes so far, so that rounding errors do not add up. */
static void bar_add(struct bar *b, uint64_t bytes, char letter, enum ui_role role)
{
    int end, start = b->x;

    b->at += (double)bytes;
    end = (int)lround(fmin(b->at * b->scale, b->c->width));
    if (end <= start)
        return;
    canvas_repeat(b->c, b->y, start, end - start, style_of(role), fill_of(b->c, letter));
    if (letter != RESERVED && (b->letters == NULL || strchr(b->letters, letter) != NULL))
        canvas_cell(b->c, b->y, start,
                    (struct ui_style){ .role = (uint8_t)role, .attr = UI_REVERSE },
                    (wchar_t)letter);
    b->x = end;
}

void memory_bar(const struct dash *d, const struct canvas *c, int y, const char *letters)
{
    const struct mw_sample *s = &d->now;
    struct dash_total total;
    uint64_t whole;
    struct bar b = { c, y, 0, 0, 0, letters };

    dash_total(d, &total);
    whole = s->run.budget_bytes > total.used ? s->run.budget_bytes : total.used;
    if (whole < total.used + total.other)
        whole = total.used + total.other;
    if (whole == 0)
        return;
    b.scale = (double)c->width / (double)whole;
    for (size_t i = 0; i < N_SEGMENT; i++) {
        bar_add(&b, own_bytes(s, segments[i].row), segments[i].letter, segments[i].role);
        if (segments[i].row == MW_ROW_PINNED)
            bar_add(&b, s->mem.lent_bytes, 'b', ROLE_FILL_LENT);
    }
    bar_add(&b, total.model, 'c', ROLE_GRAPH_2);
    if (total.other > 0)
        bar_add(&b, total.other, 'o', ROLE_BAD);
    bar_add(&b, reserved_bytes(s), RESERVED, ROLE_FILL_FREE);
    canvas_repeat(c, y, b.x, c->width - b.x, style_of(ROLE_FILL_FREE),
                  canvas_is_ascii(c) ? L'.' : L'\u00b7');
}

/* ---- the rows ---- */

#define ROW_WIDTH 34 /* "w pinned weights 1.70 GiB/1.74 GiB" */
#define ROW_SIZE  17 /* the column of a size */

static bool is_shown(const struct dash *d, const struct segment *g)
{
    return d->now.mem.plan[g->row] != 0 || d->now.mem.used[g->row] != 0;
}

static bool is_mapped(const struct dash *d)
{
    return mw_run_is_mapped(&d->now.run);
}

/* Direct reads leave no page of the model in the page cache. */
static bool has_cached(const struct dash *d, const struct dash_total *total)
{
    return total->model > 0 || is_mapped(d);
}

static int n_rows(const struct dash *d)
{
    struct dash_total total;
    int n = 2 + (d->now.mem.lent_bytes > 0); /* other and reserved, borrowed */

    dash_total(d, &total);
    n += has_cached(d, &total);
    for (size_t i = 0; i < N_SEGMENT; i++)
        n += is_shown(d, &segments[i]);
    return n;
}

/* Draw what the part begins with in the bar. */
static void draw_mark(const struct canvas *c, int y, int x, char letter, enum ui_role role)
{
    if (letter == RESERVED)
        canvas_cell(c, y, x, style_of(role), fill_of(c, letter));
    else
        canvas_cell(c, y, x, (struct ui_style){ .role = (uint8_t)role, .attr = UI_REVERSE },
                    (wchar_t)letter);
}

static void draw_row(const struct canvas *c, int y, int x, char letter, const char *name,
                     enum ui_role role, const char *used, const char *note)
{
    draw_mark(c, y, x, letter, role);
    canvas_text(c, y, x + 2, style_of(ROLE_DIM), name);
    canvas_text(c, y, x + ROW_SIZE, style_of(ROLE_TEXT), used);
    canvas_text(c, y, x + ROW_SIZE + 8, style_of(ROLE_DIM), note);
}

static int row_lines(const struct dash *d, int width)
{
    int columns = width / (ROW_WIDTH + 1) > 0 ? width / (ROW_WIDTH + 1) : 1;

    return (n_rows(d) + columns - 1) / columns;
}

/* Fill the first column, then the next. */
struct rows {
    const struct canvas *c;
    int y, high, i;
};

static void add_row(struct rows *r, char letter, const char *name, enum ui_role role,
                    const char *used, const char *note)
{
    draw_row(r->c, r->y + r->i % r->high, r->i / r->high * (ROW_WIDTH + 1), letter, name, role,
             used, note);
    r->i++;
}

static void add_item(struct rows *r, const struct dash *d, const struct segment *g)
{
    char planned[FIGURE_MAX + 1] = "";

    if (d->now.mem.plan[g->row] > 0) /* there is no plan while a model is loaded */
        snprintf(planned, sizeof planned, "/%s", figure_size8(d->now.mem.plan[g->row]).text);
    add_row(r, g->letter, mw_plan_row_label(g->row), g->role,
            figure_size8(own_bytes(&d->now, g->row)).text, planned);
}

static void draw_rows(const struct dash *d, const struct canvas *c, int y)
{
    struct rows r = { c, y, row_lines(d, c->width), 0 };
    struct dash_total total;
    char share[16] = "";

    dash_total(d, &total);
    for (size_t k = 0; k < N_SEGMENT; k++)
        if (is_shown(d, &segments[k]))
            add_item(&r, d, &segments[k]);
    if (d->now.mem.lent_bytes > 0)
        add_row(&r, 'b', "borrowed", ROLE_FILL_LENT,
                figure_size8(d->now.mem.lent_bytes).text, "");
    if (has_cached(d, &total))
        add_row(&r, 'c', "cached", ROLE_GRAPH_2,
                figure_size8(is_mapped(d) ? total.exempt : total.model).text,
                is_mapped(d) ? "/exempt" : "");
    if (total.bytes.why_not == NULL && total.bytes.value > 0)
        snprintf(share, sizeof share, "%6.1f %%",
                 (double)total.other * 100 / (double)total.bytes.value);
    add_row(&r, 'o', "other", ROLE_BAD,
            total.bytes.why_not == NULL ? figure_size8(total.other).text : "       -",
            share);
    add_row(&r, RESERVED, "reserved", ROLE_FILL_FREE,
            figure_size8(reserved_bytes(&d->now)).text, "");
}

/* ---- the largest parts, if not all rows fit ---- */

#define N_PART (N_SEGMENT + 4)

struct part {
    char letter;
    const char *name;
    enum ui_role role;
    uint64_t bytes;
};

static void sort_in(struct part *out, size_t n, struct part p)
{
    for (; n > 0 && out[n - 1].bytes < p.bytes; n--)
        out[n] = out[n - 1];
    out[n] = p;
}

/* Sort all segments, borrowed, cached, other and reserved by size, largest first. */
static void by_size(const struct dash *d, struct part out[N_PART])
{
    struct dash_total total;
    size_t n = 0;

    dash_total(d, &total);
    for (; n < N_SEGMENT; n++) {
        const struct segment *g = &segments[n];

        sort_in(out, n,
                (struct part){ g->letter, mw_plan_row_label(g->row), g->role,
                               own_bytes(&d->now, g->row) });
    }
    sort_in(out, n++, (struct part){ 'b', "borrowed", ROLE_FILL_LENT, d->now.mem.lent_bytes });
    sort_in(out, n++,
            (struct part){ 'c', total.exempt > 0 ? "cached, exempt" : "cached", ROLE_GRAPH_2,
                           total.exempt > 0 ? total.exempt : total.model });
    sort_in(out, n++, (struct part){ 'o', "other", ROLE_BAD, total.other });
    sort_in(out, n,
            (struct part){ RESERVED, "reserved", ROLE_FILL_FREE, reserved_bytes(&d->now) });
}

/* "w pinned weights 827 MiB  a activations 91.1 MiB …" */
void memory_key(const struct dash *d, const struct canvas *c, int y, int n,
                char letters[MEMORY_LETTERS])
{
    struct part parts[N_PART];
    int end = y + n, x = 0;
    size_t i = 0;

    by_size(d, parts);
    for (; i < N_PART && parts[i].bytes > 0; i++) {
        char size[FIGURE_MAX];
        int wide;

        units_size(size, sizeof size, parts[i].bytes);
        wide = (int)(2 + strlen(parts[i].name) + 1 + strlen(size));
        if (x > 0 && x + wide > c->width)
            x = 0, y++;
        if (y >= end)
            break;
        letters[i] = parts[i].letter;
        draw_mark(c, y, x, parts[i].letter, parts[i].role);
        canvas_text(c, y, x + 2, style_of(ROLE_DIM), parts[i].name);
        canvas_text(c, y, x + wide - (int)strlen(size), style_of(ROLE_TEXT), size);
        x += wide + 2;
    }
    letters[i] = '\0';
}

_Static_assert(N_PART < MEMORY_LETTERS, "a letter for each part, and a NUL");

/* ---- the kernel's figures ---- */

#define LARGEST        2 /* lines for the largest parts */
#define MAX_PAIR       9
#define PRESSURE_SHOWN 50 /* hundredths of a percent, below which it is 0 % */
#define PAIR_WIDE      20 /* columns of a label and a size */

struct pair {
    const char *label;
    struct figure value;
    enum ui_role role;
};

static void add_size(struct pair *out, int *n, const char *label, struct mw_os_value v,
                     enum ui_role role)
{
    if (v.why_not == NULL)
        out[(*n)++] = (struct pair){ label, figure_size8(v.value), role };
}

/* Returns the number of figures that are known, with the memory saved by packing. */
static int known_pairs(const struct dash *d, struct pair out[MAX_PAIR])
{
    const struct mw_os *os = &d->now.os;
    const struct mw_os_value *pressure = &os->psi_memory_some10;
    int n = 0;

    if (os->t_ns == 0)
        return 0;
    if (d->now.mem.saved_bytes > 0)
        out[n++] = (struct pair){ "saved", figure_size8(d->now.mem.saved_bytes), ROLE_TEXT };
    add_size(out, &n, "charged", os->charged, ROLE_TEXT);
    add_size(out, &n, "peak", os->charged_peak, ROLE_TEXT);
    add_size(out, &n, "rss", os->rss, ROLE_TEXT);
    if (is_mapped(d)) /* else nearly all of rss */
        add_size(out, &n, "rss anon", os->rss_anon, ROLE_TEXT);
    add_size(out, &n, "available", os->available, ROLE_TEXT);
    add_size(out, &n, "limit", os->limit, ROLE_TEXT);
    if (os->swap_own.value > 0)
        add_size(out, &n, "swap own", os->swap_own, ROLE_WARN);
    if (pressure->why_not == NULL && pressure->value >= PRESSURE_SHOWN) {
        out[n] = (struct pair){ "pressure", figure_percent5((double)pressure->value / 1e4),
                                pressure->value >= 1000 ? ROLE_WARN : ROLE_TEXT };
        n++;
    }
    return n;
}

/* The last column needs no gap. */
static int pair_columns(int width)
{
    int columns = (width + 2) / PAIR_WIDE;

    return columns > 0 ? columns : 1;
}

static int pair_rows(const struct dash *d, int width)
{
    struct pair pairs[MAX_PAIR];
    int columns = pair_columns(width);

    return (known_pairs(d, pairs) + columns - 1) / columns;
}

static void draw_kernel(const struct dash *d, const struct canvas *c, int y)
{
    struct pair pairs[MAX_PAIR];
    int columns = pair_columns(c->width);
    int n = known_pairs(d, pairs);

    for (int i = 0; i < n; i++) {
        int x = i % columns * PAIR_WIDE;

        canvas_text(c, y + i / columns, x, style_of(ROLE_DIM), pairs[i].label);
        canvas_printf(c, y + i / columns, x + 10, style_of(pairs[i].role), "%8s",
                      pairs[i].value.text);
    }
}

/* ---- a budget of auto ---- */

static int ladder_rows(const struct dash *d)
{
    return budget_is_elastic(&d->now) && d->now.budget.changed_ns > 0 ? 2 : 0;
}

/* Draw how much was given back and why, and the next step; nothing if there was no change. */
static void draw_ladder(const struct dash *d, const struct canvas *c, int y)
{
    bool is_less = d->now.run.budget_bytes < d->now.budget.chosen;
    char text[128];

    if (ladder_rows(d) == 0)
        return;
    canvas_text(c, y, 0, style_of(is_less ? ROLE_WARN : ROLE_DIM),
                budget_last_within(text, sizeof text, &d->now, c->width));
    canvas_text(c, y + 1, 0, style_of(ROLE_DIM),
                budget_next_within(text, sizeof text, &d->now, c->width));
}

/* ---- the curve ---- */

#define CURVE_MIN 5 /* lines: the budget, and four of the curve */

/* The line of the budget is red where the memory was above it. */
static void draw_budget(const struct dash *d, const struct canvas *c, float budget)
{
    uint32_t values = curve_values(d->graph, 1), n = d->memory.n;
    char text[48], size[FIGURE_MAX];

    canvas_hline(c, 0, 0, c->width, style_of(ROLE_LIMIT));
    for (int x = 0; x < c->width; x++) {
        uint32_t back = (uint32_t)(c->width - x) * values;

        for (uint32_t k = 0; k < values; k++)
            if (back - k <= n && past_at(&d->memory, n - back + k) > budget)
                canvas_hline(c, 0, x, 1, style_of(ROLE_BAD));
    }
    units_size(size, sizeof size, d->now.run.budget_bytes);
    snprintf(text, sizeof text, " budget %s ", size);
    canvas_text(c, 0, 2, style_of(ROLE_LIMIT), text);
}

static void draw_curve(const struct dash *d, const struct canvas *c)
{
    struct canvas line = canvas_sub(c, 0, 0, 1, c->width - 2);
    struct canvas area = canvas_sub(c, 1, 0, c->height - 1, c->width - 2);
    float budget = (float)d->now.run.budget_bytes;
    struct dash_total total;

    if (budget <= 0 || past_max(&d->memory, DASH_SECONDS) <= 0)
        return;
    dash_total(d, &total);
    draw_budget(d, &line, budget);
    curve_draw(&area, d->graph, &d->memory, budget, style_of(ROLE_FILL_PINNED));
    canvas_text(&area, area.height - 1, 0, style_of(ROLE_DIM),
                total.is_charge ? "charged, each second" : "own, each second");
    canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}

/* ---- the widget ---- */

/* Bar, key, kernel figures, and what auto gave back. */
static int memory_enough(const struct dash *d, int width)
{
    return 2 + LARGEST + pair_rows(d, width) + ladder_rows(d);
}

/* Heights: bar and key, the kernel's figures, the curve, all rows, a taller curve. */
static int memory_step(const struct dash *d, int width, int height)
{
    int text = memory_enough(d, width), all = text - LARGEST + row_lines(d, width) + CURVE_MIN;

    if (height < text)
        return height + 1;
    if (height < text + CURVE_MIN)
        return text + CURVE_MIN;
    return height < all ? all : height < all + 3 ? height + 1 : 0;
}

/* Draw the bar and the key of its letters.  Returns the row below. */
static int draw_parts(const struct dash *d, const struct canvas *c)
{
    int rows = row_lines(d, c->width), lines = c->height - 2;
    char letters[MEMORY_LETTERS] = "";

    if (c->height >= 2 + rows + pair_rows(d, c->width) + ladder_rows(d) + CURVE_MIN) {
        memory_bar(d, c, 1, NULL);
        draw_rows(d, c, 2);
        return 2 + rows;
    }
    lines = lines < LARGEST ? lines : LARGEST;
    memory_key(d, c, 2, lines, letters);
    memory_bar(d, c, 1, letters);
    return 2 + lines;
}

static void memory_draw(const struct dash *d, const struct canvas *c)
{
    struct dash_total total;
    char head[64];
    int y;

    dash_total(d, &total);
    if (d->now.state == MW_LOADING && total.bytes.why_not != NULL) {
        widget_head(c, "memory", "");
        return;
    }
    snprintf(head, sizeof head, "%s %s of %s", total.is_charge ? "charged" : "own",
             figure_os8(total.bytes).text, figure_budget8(&d->now).text);
    widget_head(c, "memory", c->width >= 36 ? head : head + (total.is_charge ? 8 : 4));
    y = draw_parts(d, c);
    if (d->now.state == MW_LOADING && y < c->height)
        canvas_text(c, y++, 0, style_of(ROLE_DIM), "loading takes more, and gives it back");
    draw_kernel(d, c, y);
    y += pair_rows(d, c->width);
    draw_ladder(d, c, y);
    y += ladder_rows(d);
    if (c->height - y >= CURVE_MIN) {
        struct canvas curve = canvas_sub(c, y, 0, c->height - y, c->width);

        draw_curve(d, &curve);
    }
}

const struct dash_widget dash_memory_widget = {
    .name = "memory",
    .min_width = 24,
    .min_height = 3,
    .importance = 1,
    .enough = memory_enough,
    .step = memory_step,
    .draw = memory_draw,
};
