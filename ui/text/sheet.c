#include "config.h"

#include "ui/text/sheet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define MAX_PARTS  6
#define PARAGRAPH  58 /* columns of a paragraph */
#define MIN_NARROW 44 /* columns in which a narrow sheet wraps its lines */
#define MORE_WIDTH 22 /* columns for "more below" and the blanks around the keys */

#define HINT_UNASKED "Arrows or a digit: choose   Esc: close" /* before there is a choice */

struct part {
    enum ui_role role;
    char *text;
};

struct line {
    struct part part[MAX_PARTS];
    size_t n_part;
    bool wraps; /* has one part, wrapped at blanks */
    bool is_choice;
    bool is_hidden; /* by the filter */
    long number;
};

struct sheet {
    char title[96], hint[96];
    struct line *line;
    size_t n, room;
    size_t cursor; /* index of a line; SIZE_MAX: none */
    int top;       /* first visible row */
    int rows, height;
    int most_rows; /* without a filter */
    bool has_choice;
    bool is_unasked;   /* digits choose, and Enter does nothing before a choice */
    bool filters;      /* typing filters the lines */
    char filter[64];   /* words; a line must contain all of them */
    bool is_narrow;    /* wraps its lines to leave the dashboard visible */
    struct canvas box; /* at the last draw */
    sheet_enter_fn *enter;
    void (*release)(void *ctx);
    void *enter_ctx;
    sheet_enter_fn *moved;
    char letters[8];
    sheet_letter_fn *on_letter;
    uint32_t letter; /* that was typed; 0: Enter */
    const char *help;
    char drop[120];
};

struct sheet *sheet_new(const char *title, const char *hint)
{
    struct sheet *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    snprintf(s->title, sizeof s->title, "%s", title);
    snprintf(s->hint, sizeof s->hint, "%s", hint == NULL ? "Esc: close" : hint);
    s->cursor = SIZE_MAX;
    return s;
}

void sheet_free(struct sheet *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->line[i].n_part; k++)
            free(s->line[i].part[k].text);
    free(s->line);
    if (s->release != NULL)
        s->release(s->enter_ctx);
    free(s);
}

static struct line *new_line(struct sheet *s)
{
    if (s->n == s->room) {
        size_t room = s->room * 2 + 32;
        struct line *bigger = realloc(s->line, room * sizeof *bigger);

        if (bigger == NULL)
            return NULL;
        s->line = bigger;
        s->room = room;
    }
    s->line[s->n] = (struct line){ 0 };
    return &s->line[s->n++];
}

__attribute__((format(printf, 3, 0))) static void add_part(struct line *line, enum ui_role role,
                                                           const char *fmt, va_list ap)
{
    char text[1024];

    vsnprintf(text, sizeof text, fmt, ap);
    if (line == NULL || line->n_part == MAX_PARTS)
        return;
    line->part[line->n_part].role = role;
    line->part[line->n_part].text = strdup(text);
    line->n_part += line->part[line->n_part].text != NULL;
}

void sheet_line(struct sheet *s, enum ui_role role, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_part(new_line(s), role, fmt, ap);
    va_end(ap);
}

void sheet_more(struct sheet *s, enum ui_role role, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_part(s->n == 0 ? NULL : &s->line[s->n - 1], role, fmt, ap);
    va_end(ap);
}

void sheet_text(struct sheet *s, enum ui_role role, const char *text)
{
    struct line *line = new_line(s);

    if (line == NULL || (line->part[0].text = strdup(text)) == NULL)
        return;
    line->part[0].role = role;
    line->n_part = 1;
    line->wraps = true;
}

void sheet_choice_removes(struct sheet *s, long number)
{
    if (s->n == 0)
        return;
    s->line[s->n - 1].is_choice = true;
    s->line[s->n - 1].number = number;
    s->has_choice = true;
}

void sheet_choice(struct sheet *s, long number)
{
    sheet_choice_removes(s, number);
    if (s->cursor == SIZE_MAX && s->n > 0)
        s->cursor = s->n - 1;
}

void sheet_on_enter(struct sheet *s, sheet_enter_fn *enter, void (*release)(void *ctx),
                    void *ctx)
{
    s->enter = enter;
    s->release = release;
    s->enter_ctx = ctx;
}

void sheet_on_letters(struct sheet *s, const char *letters, sheet_letter_fn *letter)
{
    snprintf(s->letters, sizeof s->letters, "%s", letters);
    s->on_letter = letter;
}

void sheet_set_cursor(struct sheet *s, long number)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].is_choice && s->line[i].number == number)
            s->cursor = i;
}

/* Write the digit that chooses a line before its text. */
static void number_line(struct line *line)
{
    char *text;

    if (line->n_part == 0 ||
        asprintf(&text, "%ld: %s", line->number + 1, line->part[0].text) < 0)
        return;
    free(line->part[0].text);
    line->part[0].text = text;
}

void sheet_set_unasked(struct sheet *s)
{
    s->is_unasked = true;
    s->cursor = SIZE_MAX;
    for (size_t i = 0; i < s->n; i++)
        if (s->line[i].is_choice)
            number_line(&s->line[i]);
}

void sheet_on_move(struct sheet *s, sheet_enter_fn *moved)
{
    s->moved = moved;
}

bool sheet_can_enter(const struct sheet *s)
{
    return s->enter != NULL;
}

bool sheet_has_choice(const struct sheet *s)
{
    return s->has_choice;
}

void sheet_enter(const struct sheet *s)
{
    long row = s->cursor < s->n ? s->line[s->cursor].number : -1;

    if (s->letter != 0)
        s->on_letter(s->enter_ctx, s->letter, row);
    else if (s->enter != NULL)
        s->enter(s->enter_ctx, row);
}

void sheet_enter_row(const struct sheet *s, long number)
{
    for (size_t i = 0; s->enter != NULL && i < s->n; i++)
        if (s->line[i].is_choice && s->line[i].number == number) {
            s->enter(s->enter_ctx, number);
            return;
        }
}

/* ---- the filter ---- */

/* Whether the line, read with the heading above it, contains every word of the filter. */
static bool line_matches(const struct sheet *s, const char *heading, const struct line *line)
{
    char text[2048], words[sizeof s->filter], *rest = words, *word;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", heading);

    for (size_t i = 0; i < line->n_part && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\n%s", line->part[i].text);
    memcpy(words, s->filter, sizeof words);
    while ((word = strsep(&rest, " ")) != NULL)
        if (strcasestr(text, word) == NULL)
            return false;
    return true;
}

static bool is_heading(const struct line *line)
{
    return line->n_part == 1 && line->part[0].role == ROLE_HEADING;
}

/* Show the lines that match, each with the heading above it. */
static bool apply_filter(struct sheet *s)
{
    struct line *heading = NULL;
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->line[i];

        if (is_heading(line)) {
            heading = line;
            line->is_hidden = s->filter[0] != '\0';
            continue;
        }
        line->is_hidden = !line_matches(s, heading == NULL ? "" : heading->part[0].text, line);
        if (line->is_hidden)
            continue;
        any = true;
        if (heading != NULL)
            heading->is_hidden = false;
    }
    s->top = 0;
    return any;
}

bool sheet_filter(struct sheet *s, const char *words)
{
    s->filters = true;
    snprintf(s->filter, sizeof s->filter, "%s", words);
    return apply_filter(s);
}

static enum sheet_result filter_key(struct sheet *s, const struct key *key)
{
    size_t n = strlen(s->filter);

    if (key->ch == '/' && n == 0)
        return SHEET_TYPED; /* a command */
    if (key->ch == 0x7f || key->ch == '\b') {
        if (n > 0)
            s->filter[utf8_start(s->filter, 0, n - 1)] = '\0';
    } else if (key->ch == 'U' - 64) {
        s->filter[0] = '\0';
    } else if (key->ch >= 0x20 && n + key->n < sizeof s->filter) {
        memcpy(s->filter + n, key->bytes, key->n);
        s->filter[n + key->n] = '\0';
    }
    apply_filter(s);
    return SHEET_STAYS;
}

void sheet_on_drop(struct sheet *s, const char *says)
{
    snprintf(s->drop, sizeof s->drop, "%s", says);
}

const char *sheet_drop(const struct sheet *s)
{
    return s->drop;
}

void sheet_on_help(struct sheet *s, const char *command)
{
    s->help = command;
}

const char *sheet_help(const struct sheet *s)
{
    return s->help;
}

void sheet_set_narrow(struct sheet *s)
{
    s->is_narrow = true;
}

/* ---- keys ---- */

void sheet_scroll(struct sheet *s, int rows)
{
    s->top += rows;
    if (s->top > s->rows - s->height)
        s->top = s->rows - s->height;
    if (s->top < 0)
        s->top = 0;
}

static void move_cursor(struct sheet *s, int direction)
{
    /* From SIZE_MAX, down leads to 0. */
    for (size_t i = s->cursor + (size_t)direction; i < s->n; i += (size_t)direction)
        if (s->line[i].is_choice) {
            s->cursor = i;
            return;
        }
}

static void step(struct sheet *s, int direction)
{
    if (s->has_choice)
        move_cursor(s, direction);
    else
        sheet_scroll(s, direction);
}

static enum sheet_result named_key(struct sheet *s, enum key_name name)
{
    int page = s->height > 1 ? s->height - 1 : 1;

    switch (name) {
    case KEYS_ESC: return SHEET_CLOSES;
    case KEYS_UP: step(s, -1); break;
    case KEYS_DOWN: step(s, 1); break;
    case KEYS_PAGE_UP:
        for (int i = 0; i < (s->cursor < s->n ? page : 0); i++)
            move_cursor(s, -1);
        sheet_scroll(s, -page);
        break;
    case KEYS_PAGE_DOWN:
        for (int i = 0; i < (s->has_choice ? page : 0); i++)
            move_cursor(s, 1);
        sheet_scroll(s, page);
        break;
    case KEYS_HOME: sheet_scroll(s, -s->rows); break;
    case KEYS_END: sheet_scroll(s, s->rows); break;
    default: break;
    }
    return SHEET_STAYS;
}

static enum sheet_result pager_key(struct sheet *s, uint32_t ch)
{
    switch (ch) {
    case 'q': return SHEET_CLOSES;
    case 'k': step(s, -1); return SHEET_STAYS;
    case 'j': step(s, 1); return SHEET_STAYS;
    case ' ': return named_key(s, KEYS_PAGE_DOWN);
    case 'b': return named_key(s, KEYS_PAGE_UP);
    }
    return SHEET_TYPED;
}

/* Returns whether key is the digit of a choice, which has the cursor then. */
static bool chooses(struct sheet *s, const struct key *key)
{
    size_t before = s->cursor;

    if (!s->is_unasked || key->ch < '1' || key->ch > '9')
        return false;
    s->cursor = SIZE_MAX;
    sheet_set_cursor(s, (long)(key->ch - '1'));
    if (s->cursor != SIZE_MAX)
        return true;
    s->cursor = before;
    return false;
}

static enum sheet_result take_key(struct sheet *s, const struct key *key)
{
    if (key->kind == KEYS_NAMED)
        return named_key(s, key->name);
    if (key->kind != KEYS_CHAR || key->mods != 0)
        return SHEET_STAYS;
    switch (key->ch) {
    case '\r':
    case '\n':
        if (s->has_choice && s->cursor == SIZE_MAX)
            return SHEET_STAYS;
        return s->enter != NULL ? SHEET_ENTERS : SHEET_CLOSES;
    case 'C' - 64: return SHEET_CLOSES;
    case 'P' - 64: step(s, -1); return SHEET_STAYS;
    case 'N' - 64: step(s, 1); return SHEET_STAYS;
    }
    if (s->filters)
        return filter_key(s, key);
    if (key->ch < 0x20 || key->ch == 0x7f)
        return SHEET_STAYS;
    if (chooses(s, key))
        return SHEET_STAYS;
    if (key->ch < 0x80 && strchr(s->letters, (int)key->ch) != NULL) {
        s->letter = key->ch;
        return SHEET_ENTERS;
    }
    return s->enter != NULL ? SHEET_TYPED : pager_key(s, key->ch);
}

enum sheet_result sheet_key(struct sheet *s, const struct key *key)
{
    size_t before = s->cursor;
    enum sheet_result result = take_key(s, key);

    if (s->cursor != before && s->moved != NULL)
        s->moved(s->enter_ctx, s->line[s->cursor].number);
    return result;
}

/* ---- drawing ---- */

/* Returns the bytes of the next row of wrapped text; *skip includes the blanks after it. */
static size_t next_row(const char *text, int width, size_t *skip)
{
    size_t fit = cluster_fit(text, strlen(text), width), cut = fit;

    *skip = 0;
    if (text[fit] == '\0')
        return fit;
    while (cut > 0 && text[cut] != ' ')
        cut--;
    if (cut == 0)
        return fit > 0 ? fit : strlen(text);
    *skip = strspn(text + cut, " ");
    return cut;
}

#define INDENT 4 /* of the rows after the first, unless the first part is a short column */

/* Draw text at column *x of row y, with rows broken at blanks; c is NULL to count.  Returns the
 * rows that were begun. */
static int draw_part(const struct canvas *c, int width, int y, int *x, int indent,
                     struct ui_style style, const char *text)
{
    int rows = 0;

    /* Text of the column that the indent marks is wrapped where it is. */
    if (*x > 0 && *x + (int)strspn(text, " ") != indent &&
        *x + cluster_width(text, strlen(text)) > width) {
        text += strspn(text, " ");
        *x = indent;
        rows++;
    }
    while (*text != '\0') {
        size_t skip, n = next_row(text, width - *x, &skip);

        if (c != NULL)
            canvas_put(c, y + rows, *x, width - *x, style, text, n);
        *x += cluster_width(text, n);
        text += n + skip;
        if (*text != '\0') {
            *x = indent;
            rows++;
        }
    }
    return rows;
}

static int indent_of(const struct line *line, int width)
{
    int first;

    if (line->wraps || width <= 2 * INDENT || line->n_part == 0)
        return 0;
    first = cluster_width(line->part[0].text, strlen(line->part[0].text));
    if (line->n_part > 1)
        first += (int)strspn(line->part[1].text, " ");
    return line->n_part > 1 && first <= width / 2 ? first : INDENT;
}

/* Draw a line whose first row is at y; c is NULL to count.  Returns its number of rows. */
static int draw_line(const struct line *line, const struct canvas *c, int width, int y,
                     bool is_chosen)
{
    int indent = indent_of(line, width), x = 0, rows = 1;

    if (c != NULL && is_chosen)
        canvas_blank(c, y, 0, width, style_of(ROLE_SELECTED));
    for (size_t i = 0; i < line->n_part; i++)
        rows += draw_part(c, width, y + rows - 1, &x, indent,
                          style_of(is_chosen ? ROLE_SELECTED : line->part[i].role),
                          line->part[i].text);
    return rows;
}

static int count_rows(const struct sheet *s, int width, size_t until)
{
    int rows = 0;

    for (size_t i = 0; i < until; i++)
        if (!s->line[i].is_hidden)
            rows += draw_line(&s->line[i], NULL, width, 0, false);
    return rows;
}

/* Returns the columns of the longest row; paragraphs have at most PARAGRAPH. */
static int widest(const struct sheet *s)
{
    int most = cluster_width(s->title, strlen(s->title)) + 4;
    const char *hint = s->is_unasked ? HINT_UNASKED : s->hint;
    int keys = cluster_width(hint, strlen(hint)) + MORE_WIDTH;

    most = keys > most ? keys : most;
    for (size_t i = 0; i < s->n; i++) {
        const struct line *line = &s->line[i];
        int width = 0;

        for (size_t k = 0; k < line->n_part; k++)
            width += cluster_width(line->part[k].text, strlen(line->part[k].text));
        if (line->wraps && width > PARAGRAPH)
            width = PARAGRAPH;
        most = width > most ? width : most;
    }
    return most;
}

/* Returns the columns between a border and the text. */
static int padding(int width)
{
    return width > 60 ? 1 : 0;
}

static const char *hint_of(const struct sheet *s)
{
    return s->is_unasked && s->cursor >= s->n ? HINT_UNASKED : s->hint;
}

/* Draw the keys, and how much is below, into the lower border. */
static void draw_foot(const struct sheet *s, const struct canvas *box)
{
    int y = box->height - 1, below = s->rows - s->top - s->height, free;
    const char *hint = hint_of(s);
    int used = canvas_put(box, y, 2, box->width - 4, style_of(ROLE_HINT), " ", 1);
    char more[40];

    used += canvas_put(box, y, 3, box->width - 5, style_of(ROLE_HINT), hint, strlen(hint));
    used += canvas_put(box, y, 2 + used, 1, style_of(ROLE_HINT), " ", 1);
    free = box->width - 4 - used;
    if (below <= 0)
        return;
    snprintf(more, sizeof more, " %d more below ", below);
    if ((int)strlen(more) > free)
        snprintf(more, sizeof more, " %d more ", below);
    if ((int)strlen(more) > free)
        snprintf(more, sizeof more, " +%d ", below);
    if ((int)strlen(more) <= free)
        canvas_right(box, y, box->width - 2, style_of(ROLE_HINT), more);
}

/* Draw the words of the filter into the upper border. */
static void draw_filter(const struct sheet *s, const struct canvas *box)
{
    char text[sizeof s->filter + 40];

    if (!s->filters || s->filter[0] == '\0')
        return;
    snprintf(text, sizeof text, " filter: %s%s ", s->filter, s->rows == 0 ? " (no match)" : "");
    canvas_right(box, 0, box->width - 2, style_of(ROLE_HINT), text);
}

/* Scroll to the line of the cursor. */
static void show_cursor(struct sheet *s, int width)
{
    int at;

    sheet_scroll(s, 0);
    if (s->cursor >= s->n)
        return;
    at = count_rows(s, width, s->cursor);
    if (at < s->top)
        s->top = at;
    if (at >= s->top + s->height)
        s->top = at - s->height + 1;
}

/* Returns the part of room that the box takes: in its middle, as large as its text.  It does
 * not shrink while a filter is typed. */
static struct canvas place(struct sheet *s, const struct canvas *room)
{
    int pad = padding(room->width), width = widest(s) + 2 + 2 * pad, height;

    if (width > room->width)
        width = room->width;
    s->rows = count_rows(s, width - 2 - 2 * pad, s->n);
    if (!s->filters || s->most_rows < s->rows)
        s->most_rows = s->rows;
    height = s->most_rows + 2 > room->height ? room->height : s->most_rows + 2;
    return canvas_sub(room, (room->height - height) / 2, (room->width - width) / 2, height,
                      width);
}

/* Whether the lines are neither wrapped nor scrolled in room, or no less in all. */
static bool is_enough(const struct sheet *s, const struct canvas *room,
                      const struct canvas *all)
{
    bool is_tall = room->height + 2 >= all->height; /* two rows for the frame of the chat */
    int width = widest(s);

    if (s->is_narrow && room->width >= MIN_NARROW && is_tall)
        return true;
    return width + 2 + 2 * padding(room->width) <= room->width &&
           (is_tall || count_rows(s, width, s->n) + 2 <= room->height);
}

void sheet_draw(struct sheet *s, const struct canvas *chat, const struct canvas *all)
{
    const struct canvas *room = is_enough(s, chat, all) ? chat : all;
    struct canvas box = place(s, room), body;
    int pad = padding(room->width), y;

    s->box = box;
    canvas_clear(&box, style_of(ROLE_TEXT));
    body = canvas_sub(&box, 1, 1 + pad, box.height - 2, box.width - 2 - 2 * pad);
    if (body.height < 1 || body.width < 4)
        return;
    s->height = body.height;
    show_cursor(s, body.width);
    y = -s->top;
    for (size_t i = 0; i < s->n && y < body.height; i++)
        if (!s->line[i].is_hidden)
            y += draw_line(&s->line[i], &body, body.width, y, i == s->cursor);
    canvas_box(&box, style_of(ROLE_BORDER));
    canvas_printf(&box, 0, 2, style_with(ROLE_ACCENT, UI_BOLD), " %.*s ",
                  (int)cluster_fit(s->title, strlen(s->title), box.width - 6), s->title);
    draw_filter(s, &box);
    draw_foot(s, &box);
}

void sheet_rows(const struct sheet *s, int *y, int *n)
{
    *y = s->box.y;
    *n = s->box.height;
}

bool sheet_holds(const struct sheet *s, int y, int x)
{
    return y >= s->box.y && y < s->box.y + s->box.height && x >= s->box.x &&
           x < s->box.x + s->box.width;
}

void sheet_print(const struct sheet *s, void (*put)(void *ctx, const char *line), void *ctx)
{
    put(ctx, s->title);
    for (size_t i = 0; i < s->n; i++) {
        char text[1200] = "";
        size_t used = 0;

        if (s->line[i].is_hidden)
            continue;
        if (s->line[i].is_choice && !s->is_unasked)
            used = (size_t)snprintf(text, sizeof text, "%ld: ", s->line[i].number + 1);
        if (s->line[i].wraps) {
            put(ctx, s->line[i].part[0].text);
            continue;
        }
        for (size_t k = 0; k < s->line[i].n_part && used < sizeof text; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                     s->line[i].part[k].text);
        put(ctx, text);
    }
}
