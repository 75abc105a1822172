#include "config.h"

#include "ui/term/canvas.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <curses.h>

struct cell {
    wchar_t text[CLUSTER_CHARS + 1];
    struct ui_style style;
};

struct canvas_target {
    bool ascii;
    WINDOW *window; /* NULL: the grid below */
    canvas_ink_fn *ink;
    void *ctx;
    int height, width;
    struct cell *cells; /* [height][width] */
};

void canvas_fit(int *height, int *width)
{
    const int widest = CANVAS_MAX_CELLS / 64;

    if (*height < 1)
        *height = 1;
    if (*width < 1)
        *width = 1;
    if (*width > widest && *height > CANVAS_MAX_CELLS / *width)
        *width = *height > 64 ? widest : CANVAS_MAX_CELLS / *height;
    if (*height > CANVAS_MAX_CELLS / *width)
        *height = CANVAS_MAX_CELLS / *width;
}

struct canvas_target *canvas_on_window(void *window, bool ascii, canvas_ink_fn *ink, void *ctx,
                                       struct err *e)
{
    struct canvas_target *t = calloc(1, sizeof *t);

    if (t == NULL) {
        err_memory(e, "a window");
        return NULL;
    }
    t->ascii = ascii;
    t->window = window;
    t->ink = ink;
    t->ctx = ctx;
    return t;
}

struct canvas_target *canvas_on_grid(int height, int width, bool ascii, struct err *e)
{
    struct canvas_target *t = calloc(1, sizeof *t);

    if (t == NULL || height < 0 || width < 0 ||
        (t->cells = calloc((size_t)height * (size_t)width + 1, sizeof *t->cells)) == NULL) {
        err_memory(e, "a grid of %d x %d cells", width, height);
        free(t);
        return NULL;
    }
    t->ascii = ascii;
    t->height = height;
    t->width = width;
    for (int i = 0; i < height * width; i++)
        t->cells[i].text[0] = L' ';
    return t;
}

void canvas_target_free(struct canvas_target *t)
{
    if (t == NULL)
        return;
    free(t->cells);
    free(t);
}

struct canvas canvas_of(struct canvas_target *t)
{
    struct canvas c = { t, 0, 0, t->height, t->width };

    if (t->window != NULL)
        getmaxyx(t->window, c.height, c.width);
    return c;
}

void canvas_write_text(const struct canvas_target *t, FILE *f)
{
    for (int y = 0; y < t->height; y++) {
        const struct cell *row = t->cells + (size_t)y * (size_t)t->width;
        int end = t->width;

        while (end > 0 && row[end - 1].text[0] == L' ' && row[end - 1].text[1] == 0)
            end--;
        for (int x = 0; x < end; x++)
            for (int i = 0; row[x].text[i] != 0; i++) {
                char bytes[MB_LEN_MAX + 1];
                mbstate_t state = { 0 };
                size_t n = wcrtomb(bytes, row[x].text[i], &state);

                if (n == (size_t)-1)
                    fputc('?', f);
                else
                    fwrite(bytes, 1, n, f);
            }
        fputc('\n', f);
    }
}

void canvas_peek(const struct canvas_target *t, int y, int x, wchar_t text[CLUSTER_CHARS + 1],
                 struct ui_style *style)
{
    const struct cell *cell = &t->cells[(size_t)y * (size_t)t->width + (size_t)x];

    assert(t->window == NULL && y >= 0 && x >= 0 && y < t->height && x < t->width);
    wmemcpy(text, cell->text, CLUSTER_CHARS + 1);
    *style = cell->style;
}

/* ---- one cluster on the target ---- */

static void put_cell(const struct canvas_target *t, int y, int x, struct ui_style style,
                     const wchar_t *text)
{
    struct canvas_ink ink = t->ink(t->ctx, style);
    cchar_t ch;

    if (setcchar(&ch, text, (attr_t)ink.attrs, (short)ink.pair,
                 ink.pair > SHRT_MAX ? &ink.pair : NULL) == OK)
        (void)mvwadd_wch(t->window, y, x, &ch); /* ERR in the last cell is expected */
}

/* A cell of ncurses has one character with a width, and drops the second half of a flag. */
static void put_on_window(const struct canvas_target *t, int y, int x, struct ui_style style,
                          const wchar_t *text)
{
    bool is_flag = text[0] != 0 && text[1] >= 0x1f1e6 && text[1] <= 0x1f1ff;
    const wchar_t first[] = { text[0], 0 };

    put_cell(t, y, x, style, is_flag ? first : text);
    if (is_flag)
        put_cell(t, y, x + 1, style, text + 1);
}

/* Blank the other half of a wide character before one half is overwritten. */
static void break_wide(struct cell *row, int width, int x)
{
    if (row[x].text[0] == 0 && x > 0)
        row[x - 1].text[0] = L' ', row[x - 1].text[1] = 0;
    if (x + 1 < width && row[x + 1].text[0] == 0)
        row[x + 1].text[0] = L' ', row[x + 1].text[1] = 0;
}

static void put_on_grid(struct canvas_target *t, int y, int x, struct ui_style style,
                        const wchar_t *text, int width)
{
    struct cell *row = t->cells + (size_t)y * (size_t)t->width;

    if (y >= t->height || x + width > t->width)
        return;
    for (int i = 0; i < width; i++)
        break_wide(row, t->width, x + i);
    wmemset(row[x].text, 0, CLUSTER_CHARS + 1);
    wmemcpy(row[x].text, text, wcsnlen(text, CLUSTER_CHARS));
    row[x].style = style;
    if (width == 2) {
        wmemset(row[x + 1].text, 0, CLUSTER_CHARS + 1);
        row[x + 1].style = style;
    }
}

static void put(const struct canvas *c, int y, int x, struct ui_style style,
                const wchar_t *text, int width)
{
    static const wchar_t question[] = L"?";
    static const wchar_t two[] = L"??";

    if (y < 0 || x < 0 || y >= c->height || x + width > c->width)
        return;
    if (c->target->ascii && (text[0] > 0x7e || (text[0] != 0 && text[1] != 0))) { /* a mark */
        text = question;
        for (int i = 1; i < width; i++)
            put(c, y, x + i, style, two + 1, 1);
        width = 1;
    }
    if (c->target->window != NULL)
        put_on_window(c->target, c->y + y, c->x + x, style, text);
    else
        put_on_grid(c->target, c->y + y, c->x + x, style, text, width);
}

/* ---- drawing ---- */

struct canvas canvas_sub(const struct canvas *c, int y, int x, int height, int width)
{
    struct canvas s = *c;

    if (y < 0)
        height += y, y = 0;
    if (x < 0)
        width += x, x = 0;
    if (y > c->height)
        y = c->height;
    if (x > c->width)
        x = c->width;
    if (height > c->height - y)
        height = c->height - y;
    if (width > c->width - x)
        width = c->width - x;
    s.y += y;
    s.x += x;
    s.height = height > 0 ? height : 0;
    s.width = width > 0 ? width : 0;
    return s;
}

bool canvas_is_ascii(const struct canvas *c)
{
    return c->target->ascii;
}

struct ui_style style_of(enum ui_role role)
{
    return (struct ui_style){ .role = (uint8_t)role };
}

struct ui_style style_with(enum ui_role role, unsigned attr)
{
    return (struct ui_style){ .role = (uint8_t)role, .attr = (uint8_t)attr };
}

void canvas_clear(const struct canvas *c, struct ui_style style)
{
    for (int y = 0; y < c->height; y++)
        canvas_blank(c, y, 0, c->width, style);
}

/* Is this cell the right half of a wide character? */
static bool is_right_half(WINDOW *w, int y, int x)
{
    attr_t half; /* ncurses counts the columns of a character here, from 1 */
    cchar_t ch;

    if (x >= getmaxx(w) || mvwin_wch(w, y, x, &ch) != OK)
        return false;
    half = ch.attr & A_CHARTEXT;
    return half > 1 && half < 32;
}

/* Blank the halves that remain of wide characters at the ends of a run that is overwritten.
 * ncurses keeps them, and later draws the row one column off. */
static void cut_wide(const struct canvas *c, int y, int x, int width)
{
    WINDOW *w = c->target->window;

    y += c->y;
    x += c->x;
    if (x > 0 && is_right_half(w, y, x))
        (void)mvwaddch(w, y, x - 1, ' ');
    if (is_right_half(w, y, x + width))
        (void)mvwaddch(w, y, x + width, ' ');
}

void canvas_blank(const struct canvas *c, int y, int x, int width, struct ui_style style)
{
    if (c->target->window != NULL && y >= 0 && y < c->height && x >= 0 && width > 0 &&
        x + width <= c->width)
        cut_wide(c, y, x, width);
    canvas_repeat(c, y, x, width, style, L' ');
}

int canvas_put(const struct canvas *c, int y, int x, int width, struct ui_style style,
               const char *s, size_t n)
{
    struct cluster next;
    int used = 0;

    for (size_t at = 0; at < n; at += next.bytes) {
        cluster_next(s + at, n - at, &next);
        if (used + next.width > width || x + used >= c->width)
            break;
        if (next.width > 0)
            put(c, y, x + used, style, next.shown, next.width);
        used += next.width;
    }
    return used;
}

int canvas_text(const struct canvas *c, int y, int x, struct ui_style style, const char *s)
{
    return canvas_put(c, y, x, c->width - x, style, s, strlen(s));
}

int canvas_printf(const struct canvas *c, int y, int x, struct ui_style style, const char *fmt,
                  ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return canvas_text(c, y, x, style, text);
}

int canvas_right(const struct canvas *c, int y, int x_end, struct ui_style style, const char *s)
{
    size_t n = strlen(s);
    int width = cluster_width(s, n);
    int x = width < x_end ? x_end - width : 0;

    canvas_put(c, y, x, x_end - x, style, s, n);
    return x;
}

void canvas_cell(const struct canvas *c, int y, int x, struct ui_style style, wchar_t ch)
{
    canvas_repeat(c, y, x, 1, style, ch);
}

void canvas_repeat(const struct canvas *c, int y, int x, int n, struct ui_style style,
                   wchar_t ch)
{
    const wchar_t text[2] = { ch, 0 };

    for (int i = 0; i < n; i++)
        put(c, y, x + i, style, text, 1);
}

void canvas_hline(const struct canvas *c, int y, int x, int n, struct ui_style style)
{
    canvas_repeat(c, y, x, n, style, c->target->ascii ? L'-' : L'\u2500');
}

void canvas_vline(const struct canvas *c, int y, int x, int n, struct ui_style style)
{
    for (int i = 0; i < n; i++)
        canvas_cell(c, y + i, x, style, c->target->ascii ? L'|' : L'\u2502');
}

void canvas_box(const struct canvas *c, struct ui_style style)
{
    static const wchar_t round[] = L"\u256d\u256e\u2570\u256f", ascii[] = L"++++";
    const wchar_t *corner = c->target->ascii ? ascii : round;
    int right = c->width - 1, bottom = c->height - 1;

    canvas_hline(c, 0, 1, right - 1, style);
    canvas_hline(c, bottom, 1, right - 1, style);
    canvas_vline(c, 1, 0, bottom - 1, style);
    canvas_vline(c, 1, right, bottom - 1, style);
    canvas_cell(c, 0, 0, style, corner[0]);
    canvas_cell(c, 0, right, style, corner[1]);
    canvas_cell(c, bottom, 0, style, corner[2]);
    canvas_cell(c, bottom, right, style, corner[3]);
}

void canvas_bar(const struct canvas *c, int y, int x, int width, double share,
                struct ui_style fill, struct ui_style rest)
{
    double cells = (share > 0 ? (share < 1 ? share : 1) : 0) * width;
    int whole = (int)cells;
    int eighths = (int)((cells - whole) * 8);

    if (c->target->ascii) {
        canvas_repeat(c, y, x, whole, fill, L'#');
        canvas_repeat(c, y, x + whole, width - whole, rest, L'.');
        return;
    }
    canvas_repeat(c, y, x, whole, fill, L'\u2588');
    canvas_repeat(c, y, x + whole, width - whole, rest, L'\u00b7');
    if (eighths > 0 && whole < width)
        canvas_cell(c, y, x + whole, fill, (wchar_t)(0x2590 - eighths));
}
