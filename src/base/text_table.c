/* See text_table.h. */
#include "config.h"

#include "src/base/text_table.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2 /* blanks between columns */

int text_table_open(struct text_table *t, size_t n_column, size_t n_row, struct err *e)
{
    *t = (struct text_table){ .n_column = n_column, .n_row = n_row };
    t->column = calloc(n_column, sizeof *t->column);
    t->cell = calloc(n_column * n_row + 1, sizeof *t->cell);
    if (t->column != NULL && t->cell != NULL)
        return 0;
    text_table_close(t);
    return err_memory(e, "a table");
}

void text_table_close(struct text_table *t)
{
    free(t->column);
    free(t->cell);
    *t = (struct text_table){ 0 };
}

char *text_table_cell(struct text_table *t, size_t row, size_t column)
{
    return t->cell[row * t->n_column + column];
}

/* The columns of a terminal that a text takes.  Its characters are one column wide. */
static int width_of(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static int widest(const struct text_table *t, size_t column)
{
    const struct text_column *c = &t->column[column];
    int most = width_of(c->heading), n = width_of(c->unit);

    most = n > most ? n : most;
    for (size_t row = 0; row < t->n_row; row++) {
        n = width_of(t->cell[row * t->n_column + column]);
        most = n > most ? n : most;
    }
    return most;
}

/* Choose the columns that fit; false: all do. */
static bool choose(const struct text_table *t, int width, bool *is_shown)
{
    bool any_dropped = false;

    for (size_t i = 0; i < t->n_column; i++)
        is_shown[i] = true;
    for (;;) {
        int sum = -GAP;
        size_t drop = t->n_column;

        for (size_t i = 0; i < t->n_column; i++) {
            if (!is_shown[i])
                continue;
            sum += GAP + widest(t, i);
            if (t->column[i].rank > 0 &&
                (drop == t->n_column || t->column[i].rank >= t->column[drop].rank))
                drop = i;
        }
        if (sum <= width || drop == t->n_column)
            return any_dropped;
        is_shown[drop] = false;
        any_dropped = true;
    }
}

static void print_text(FILE *to, const char *text, int width, bool is_left, bool is_last)
{
    int blanks = width - width_of(text);

    if (is_left)
        fprintf(to, "%s%*s", text, is_last ? 0 : blanks, "");
    else
        fprintf(to, "%*s%s", blanks, "", text);
}

enum line { LINE_HEADING, LINE_UNIT, LINE_ROWS };

static void print_line(FILE *to, const struct text_table *t, const bool *is_shown, size_t line)
{
    size_t last = 0;
    bool is_first = true;

    for (size_t i = 0; i < t->n_column; i++)
        last = is_shown[i] ? i : last;
    for (size_t i = 0; i <= last; i++) {
        const struct text_column *c = &t->column[i];
        const char *text = line == LINE_HEADING ? c->heading
                           : line == LINE_UNIT  ? c->unit
                                                : t->cell[(line - LINE_ROWS) * t->n_column + i];

        if (!is_shown[i])
            continue;
        fprintf(to, "%*s", is_first ? 0 : GAP, "");
        is_first = false;
        print_text(to, text, widest(t, i), c->is_left, i == last);
    }
    fputc('\n', to);
}

void text_table_print(FILE *to, const struct text_table *t, int width)
{
    bool *is_shown = calloc(t->n_column, sizeof *is_shown);
    const char *before = "not shown, for want of columns: ";

    if (is_shown == NULL) {
        text_table_markdown(to, t);
        return;
    }
    if (!choose(t, width, is_shown))
        before = NULL;
    for (size_t line = 0; line < LINE_ROWS + t->n_row; line++)
        print_line(to, t, is_shown, line);
    for (size_t i = 0; before != NULL && i < t->n_column; i++)
        if (!is_shown[i]) {
            fprintf(to, "%s%s", before, t->column[i].heading);
            before = ", ";
        }
    if (before != NULL)
        fputc('\n', to);
    free(is_shown);
}

void text_table_markdown(FILE *to, const struct text_table *t)
{
    for (size_t i = 0; i < t->n_column; i++) {
        const struct text_column *c = &t->column[i];

        fprintf(to, "| %s%s%s ", c->heading, c->unit[0] != '\0' ? ", " : "", c->unit);
    }
    fputs("|\n", to);
    for (size_t i = 0; i < t->n_column; i++)
        fputs(t->column[i].is_left ? "|---" : "|--:", to);
    fputs("|\n", to);
    for (size_t row = 0; row < t->n_row; row++) {
        for (size_t i = 0; i < t->n_column; i++)
            fprintf(to, "| %s ", t->cell[row * t->n_column + i]);
        fputs("|\n", to);
    }
}
