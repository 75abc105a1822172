#include "config.h"

#include "ui/text/sheet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/text/sheet_internal.h"

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

static struct sheet_line *new_line(struct sheet *s)
{
    if (s->n == s->room) {
        size_t room = s->room * 2 + 32;
        struct sheet_line *bigger = realloc(s->line, room * sizeof *bigger);

        if (bigger == NULL)
            return NULL;
        s->line = bigger;
        s->room = room;
    }
    s->line[s->n] = (struct sheet_line){ 0 };
    return &s->line[s->n++];
}

__attribute__((format(printf, 3, 0))) static void
add_part(struct sheet_line *line, enum ui_role role, const char *fmt, va_list ap)
{
    char text[1024];

    vsnprintf(text, sizeof text, fmt, ap);
    if (line == NULL || line->n_part == SHEET_PARTS)
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

void sheet_gap(struct sheet *s)
{
    const struct sheet_line *last = s->n == 0 ? NULL : &s->line[s->n - 1];

    if (last != NULL && last->n_part > 0 && last->part[0].text[0] != '\0')
        sheet_line(s, ROLE_TEXT, "%s", "");
}

void sheet_more(struct sheet *s, enum ui_role role, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_part(s->n == 0 ? NULL : &s->line[s->n - 1], role, fmt, ap);
    va_end(ap);
}

static void add_paragraph(struct sheet *s, enum ui_role role, const char *text, size_t n)
{
    struct sheet_line *line = new_line(s);

    if (line == NULL || (line->part[0].text = strndup(text, n)) == NULL)
        return;
    line->part[0].role = role;
    line->n_part = 1;
    line->wraps = true;
}

void sheet_text(struct sheet *s, enum ui_role role, const char *text)
{
    size_t n = strcspn(text, "\n");

    add_paragraph(s, role, text, n);
    while (text[n] == '\n') {
        text += n + 1;
        n = strcspn(text, "\n");
        add_paragraph(s, role, text, n);
    }
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
static void number_line(struct sheet_line *line)
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
static bool line_matches(const struct sheet *s, const char *heading,
                         const struct sheet_line *line)
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

static bool is_heading(const struct sheet_line *line)
{
    return line->n_part == 1 && line->part[0].role == ROLE_HEADING;
}

/* Show the lines that match, each with the heading above it. */
static bool apply_filter(struct sheet *s)
{
    struct sheet_line *heading = NULL;
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        struct sheet_line *line = &s->line[i];

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
