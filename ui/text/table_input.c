#include "config.h"

#include "ui/text/table_input.h"

#include <stdlib.h>
#include <string.h>

#include "ui/text/block_line.h"
#include "ui/text/parser_input.h"

/* Insertions while they are found. */
struct edits {
    struct table_input *t;
    size_t sum;
    bool failed;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the cells of a row of a table; *has_pipe: one of them ends with a pipe. */
static size_t count_cells(const struct block_line *l, bool *has_pipe)
{
    size_t i = l->words, end = l->end, cells = 1;

    while (end > i && is_blank(l->text[end - 1]))
        end--;
    *has_pipe = i < end && l->text[i] == '|';
    i += *has_pipe;
    for (; i < end; i++) {
        if (l->text[i] == '\\')
            i++;
        else if (l->text[i] == '|') {
            *has_pipe = true;
            cells += i + 1 < end;
        }
    }
    return cells;
}

/* Returns the end of a cell of dashes and colons at text[at .. end), 0 if it is not one.
 * *dash: its first dash. */
static size_t dashes(const char *text, size_t at, size_t end, size_t *dash)
{
    size_t i = at;

    if (i < end && text[i] == ':')
        i++;
    *dash = i;
    while (i < end && text[i] == '-')
        i++;
    if (i == *dash)
        return 0;
    return i < end && text[i] == ':' ? i + 1 : i;
}

static void insert(struct edits *e, size_t at, size_t n, bool dash)
{
    struct table_input *t = e->t;

    if (t->n_gap == t->room) {
        size_t room = t->room == 0 ? 16 : t->room * 2;
        struct table_gap *more = realloc(t->gap, room * sizeof *more);

        if (more == NULL) {
            e->failed = true;
            return;
        }
        t->gap = more;
        t->room = room;
    }
    e->sum += n;
    t->gap[t->n_gap++] = (struct table_gap){ at, e->sum, dash };
}

/* Returns the cells of a row of dashes, 0 if it is not one.  With edits, lengthen its cells. */
static size_t delimiters(const struct block_line *l, struct edits *e)
{
    const char *text = l->text;
    size_t i = l->body, cells = 0, dash;
    bool has_pipe = i < l->end && text[i] == '|';

    if (block_line_mark(text, i, l->end) > i) /* a list */
        return 0;
    i += has_pipe;
    while (i < l->end) {
        size_t from, stop;

        while (i < l->end && is_blank(text[i]))
            i++;
        from = i;
        stop = dashes(text, i, l->end, &dash);
        if (stop == 0)
            return i == l->end && has_pipe ? cells : 0;
        if (e != NULL && stop - from < 3)
            insert(e, dash, 3 - (stop - from), true);
        cells++;
        for (i = stop; i < l->end && is_blank(text[i]);)
            i++;
        if (i < l->end && text[i++] != '|')
            return 0;
        has_pipe = has_pipe || text[i - 1] == '|';
    }
    return has_pipe ? cells : 0;
}

/* Find all places.  A blank line within code would be shown, so fences are followed, and a head
 * must not be indented like code.  offset: of the text of the last item. */
static void find_tables(const char *text, size_t n, struct edits *e)
{
    struct block_line head = { 0 }; /* the previous line */
    bool has_head = false, is_first = true, in_table = false, has_pipe;
    char fence = '\0';
    size_t offset = 0, cells;

    for (size_t at = 0; at < n && !e->failed;) {
        struct block_line l = block_line_read(text, at, n);

        at = l.next;
        if (block_line_in_code(&l, &fence) || l.body == l.end) {
            has_head = in_table = false;
            continue;
        }
        if (l.words > l.body) { /* an item */
            offset = l.words - l.at;
            in_table = false;
        }
        cells = has_head && !in_table ? delimiters(&l, NULL) : 0;
        if (cells > 0 && count_cells(&head, &has_pipe) == cells) {
            bool fits = head.indent < 4 || head.indent - offset < 4;

            if (!is_first && has_pipe && fits && head.words == head.body)
                insert(e, head.at, head.body - head.at + 1, false);
            if (is_first || (has_pipe && fits)) {
                (void)delimiters(&l, e);
                in_table = true;
            }
        }
        in_table = in_table || (cells > 0 && is_first);
        is_first = !has_head || l.words > l.body;
        head = l;
        has_head = true;
    }
}

/* Make the copy with insertions.  Dashes are inserted before a dash, a blank line before the marks
 * of the quotes that it must repeat. */
static char *with_gaps(const struct table_input *t, const char *text, size_t n, size_t sum)
{
    char *out = parser_room(n + sum);
    size_t from = 0, used = 0;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < t->n_gap; i++) {
        size_t at = t->gap[i].at, len = t->gap[i].n - (i > 0 ? t->gap[i - 1].n : 0);

        memcpy(out + used, text + from, at - from);
        used += at - from;
        if (t->gap[i].dash) {
            memset(out + used, '-', len);
        } else {
            memcpy(out + used, text + at, len - 1);
            out[used + len - 1] = '\n';
        }
        used += len;
        from = at;
    }
    memcpy(out + used, text + from, n - from);
    return out;
}

bool table_input_allow(struct table_input *t, char **copy, size_t *n)
{
    struct edits e = { .t = t };
    char *more;

    if (memchr(*copy, '|', *n) == NULL)
        return true;
    find_tables(*copy, *n, &e);
    if (e.failed || t->n_gap == 0)
        return !e.failed;
    more = with_gaps(t, *copy, *n, e.sum);
    if (more == NULL)
        return false;
    free(*copy);
    *copy = more;
    *n += e.sum;
    return true;
}

void table_input_free(struct table_input *t)
{
    free(t->gap);
    *t = (struct table_input){ 0 };
}

size_t table_input_source(const struct table_input *t, size_t at)
{
    size_t low = 0, high = t->n_gap, before;

    /* Find the first gap that begins after byte at of the copy. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        before = middle > 0 ? t->gap[middle - 1].n : 0;
        if (t->gap[middle].at + before <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return at;
    return at - t->gap[low - 1].n < t->gap[low - 1].at || at < t->gap[low - 1].n
               ? t->gap[low - 1].at
               : at - t->gap[low - 1].n;
}
