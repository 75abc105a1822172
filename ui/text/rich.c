#include "config.h"

#include "ui/text/rich.h"

#include <stdlib.h>
#include <string.h>

#include "ui/words/cluster.h"

/* Make room for n_more elements of size bytes in the array *items.  Sizes fit 32 bits. */
static bool grow(struct rich *r, void *items, uint32_t n, uint32_t n_more, uint32_t *room,
                 size_t size)
{
    uint32_t want = *room == 0 ? 16 : *room;
    void *had, *more;

    if (n_more > UINT32_MAX / 2 - n) {
        r->failed = true;
        return false;
    }
    if (n + n_more <= *room)
        return true;
    while (want < n + n_more)
        want *= 2;
    memcpy(&had, items, sizeof had);
    more = realloc(had, want * size);
    if (more == NULL) {
        r->failed = true;
        return false;
    }
    memcpy(items, &more, sizeof more);
    *room = want;
    return true;
}

#define GROW(r, what, more)                                                                    \
    grow((r), &(r)->what, (r)->n_##what, (uint32_t)(more), &(r)->room_##what, sizeof *(r)->what)

void rich_start(struct rich *r)
{
    r->n_text = r->n_run = r->n_line = r->n_row = r->n_deco = 0;
    r->failed = false;
    rich_deco(r, "");
    GROW(r, text, 1); /* so that text is never NULL */
}

void rich_free(struct rich *r)
{
    free(r->text);
    free(r->run);
    free(r->line);
    free(r->row);
    free(r->deco);
    *r = (struct rich){ 0 };
}

static void trim(void *items, uint32_t n, uint32_t *room, size_t size)
{
    void *had, *less;

    if (n == *room || n == 0)
        return;
    memcpy(&had, items, sizeof had);
    less = realloc(had, n * size);
    if (less != NULL) {
        memcpy(items, &less, sizeof less);
        *room = n;
    }
}

void rich_trim(struct rich *r)
{
    trim(&r->text, r->n_text, &r->room_text, sizeof *r->text);
    trim(&r->run, r->n_run, &r->room_run, sizeof *r->run);
    trim(&r->line, r->n_line, &r->room_line, sizeof *r->line);
    trim(&r->row, r->n_row, &r->room_row, sizeof *r->row);
    trim(&r->deco, r->n_deco, &r->room_deco, sizeof *r->deco);
}

size_t rich_bytes(const struct rich *r)
{
    return sizeof *r + r->room_text + r->room_run * sizeof *r->run +
           r->room_line * sizeof *r->line + r->room_row * sizeof *r->row + r->room_deco;
}

uint32_t rich_deco(struct rich *r, const char *s)
{
    size_t n = strlen(s) + 1;
    uint32_t at = r->n_deco;

    /* Neighbouring lines mostly share prefixes: search the last few. */
    for (uint32_t i = r->n_line > 2 ? r->n_line - 2 : 0; i < r->n_line; i++) {
        const uint32_t had[] = { r->line[i].first, r->line[i].rest, r->line[i].mark };

        for (size_t k = 0; k < 3; k++)
            if (strcmp(r->deco + had[k], s) == 0)
                return had[k];
    }
    if (!GROW(r, deco, n))
        return 0;
    memcpy(r->deco + at, s, n);
    r->n_deco += (uint32_t)n;
    return at;
}

void rich_line(struct rich *r, uint32_t first, uint32_t rest, uint32_t mark, enum ui_role role,
               enum wrap_how how)
{
    if (!GROW(r, line, 1))
        return;
    r->line[r->n_line++] = (struct rich_line){
        .at = r->n_text,
        .first = first,
        .rest = rest,
        .mark = mark,
        .role = (uint8_t)role,
        .how = (uint8_t)how,
    };
}

/* Does the new text continue the last run? */
static bool continues(const struct rich *r, const struct rich_run *next)
{
    const struct rich_run *last;

    if (r->n_run == 0)
        return false;
    last = &r->run[r->n_run - 1];
    if (last->kind != next->kind || last->role != next->role || last->attr != next->attr ||
        last->at < r->line[r->n_line - 1].at)
        return false;
    if (last->kind == RICH_SAME)
        return last->src + last->src_n == next->src;
    return last->kind == RICH_OURS || last->kind == RICH_FRAME;
}

void rich_add(struct rich *r, const char *text, size_t n, enum rich_kind kind, size_t src,
              size_t src_n, enum ui_role role, unsigned attr)
{
    struct rich_run next = {
        .at = r->n_text,
        .src = (uint32_t)src,
        .src_n = (uint32_t)src_n,
        .kind = (uint8_t)kind,
        .role = (uint8_t)role,
        .attr = (uint8_t)attr,
    };

    if (n == 0 || r->n_line == 0 || n > UINT32_MAX / 4)
        return;
    if (!GROW(r, run, 1) || !GROW(r, text, n))
        return;
    if (continues(r, &next))
        r->run[r->n_run - 1].src_n += (uint32_t)src_n;
    else
        r->run[r->n_run++] = next;
    memcpy(r->text + r->n_text, text, n);
    r->n_text += (uint32_t)n;
}

uint32_t rich_line_end(const struct rich *r, uint32_t line)
{
    return line + 1 < r->n_line ? r->line[line + 1].at : r->n_text;
}

uint32_t rich_run_end(const struct rich *r, const struct rich_run *run)
{
    return run + 1 < r->run + r->n_run ? run[1].at : r->n_text;
}

const struct rich_run *rich_run_at(const struct rich *r, uint32_t at)
{
    uint32_t low = 0, high = r->n_run;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (r->run[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    return &r->run[low];
}

/* Split the run that contains byte at. */
static bool split(struct rich *r, uint32_t at)
{
    uint32_t i;
    struct rich_run *run;

    if (at >= r->n_text || r->n_run == 0)
        return true;
    i = (uint32_t)(rich_run_at(r, at) - r->run);
    if (r->run[i].at == at)
        return true;
    if (!GROW(r, run, 1))
        return false;
    run = r->run + i;
    memmove(run + 1, run, (r->n_run - i) * sizeof *run);
    r->n_run++;
    run[1].at = at;
    if (run->kind == RICH_SAME) {
        run[1].src += at - run->at;
        run[1].src_n -= at - run->at;
        run->src_n = at - run->at;
    } else {
        run[1].src_n = 0; /* copy the source only once */
    }
    return true;
}

void rich_recolor(struct rich *r, uint32_t from, uint32_t to, enum ui_role role)
{
    if (from >= to || !split(r, from) || !split(r, to))
        return;
    for (const struct rich_run *run = rich_run_at(r, from);
         run < r->run + r->n_run && run->at < to; run++)
        if (run->role != ROLE_ODD)
            r->run[run - r->run].role = (uint8_t)role;
}

/* ---- rows ---- */

static int prefix_width(const struct rich *r, uint32_t deco)
{
    return cluster_width(r->deco + deco, strlen(r->deco + deco));
}

/* Returns the number of lines with equal text and prefixes; *same: equal bytes of text. */
static uint32_t common_lines(const struct rich *a, const struct rich *b, uint32_t *same)
{
    uint32_t n = a->n_text < b->n_text ? a->n_text : b->n_text, line = 0;

    *same = 0;
    while (*same < n && a->text[*same] == b->text[*same])
        ++*same;
    while (line < a->n_line && line < b->n_line) {
        const struct rich_line *x = &a->line[line], *y = &b->line[line];

        if (x->at != y->at || x->at > *same || x->how != y->how ||
            strcmp(a->deco + x->first, b->deco + y->first) != 0 ||
            strcmp(a->deco + x->rest, b->deco + y->rest) != 0)
            break;
        line++;
    }
    return line;
}

static void keep_rows(struct rich *r, const struct rich *before, uint32_t *line, struct wrap *w,
                      size_t *from)
{
    uint32_t same, n = common_lines(r, before, &same), row = 0;

    *from = 0;
    if (n == 0 || before->n_row == 0)
        return;
    *line = n - 1; /* the last common one may have grown */
    while (row < before->n_row && before->row[row].line < *line)
        row++;
    if (!GROW(r, row, row)) {
        *line = 0;
        return;
    }
    if (row > 0)
        memcpy(r->row, before->row, row * sizeof *r->row);
    r->n_row = row;
    for (; row < before->n_row && before->row[row].line == *line; row++) {
        if (w->n_row == w->room) {
            uint32_t room = w->room == 0 ? 16 : w->room * 2;
            struct wrap_row *more = realloc(w->row, room * sizeof *more);

            if (more == NULL) {
                w->n_row = 0;
                return;
            }
            w->row = more;
            w->room = room;
        }
        w->row[w->n_row++] = (struct wrap_row){
            before->row[row].start - r->line[*line].at,
            before->row[row].end - r->line[*line].at,
        };
    }
    /* The line may end elsewhere although the next bytes are the same. */
    same = same < rich_line_end(r, *line) ? same : rich_line_end(r, *line);
    same = same < rich_line_end(before, *line) ? same : rich_line_end(before, *line);
    *from = same - r->line[*line].at;
}

void rich_wrap(struct rich *r, int width, const struct rich *before)
{
    struct wrap w = { 0 };
    uint32_t line = 0;
    size_t from = 0;

    r->n_row = 0;
    if (before != NULL)
        keep_rows(r, before, &line, &w, &from);
    for (; line < r->n_line; line++) {
        const struct rich_line *l = &r->line[line];
        uint32_t end = rich_line_end(r, line);

        if (!wrap_text(&w, r->text + l->at, end - l->at, width - prefix_width(r, l->first),
                       width - prefix_width(r, l->rest), l->how, from) ||
            !GROW(r, row, w.n_row)) {
            r->failed = true;
            break;
        }
        for (uint32_t i = 0; i < w.n_row; i++)
            r->row[r->n_row++] =
                (struct rich_row){ line, l->at + w.row[i].start, l->at + w.row[i].end };
        from = 0;
    }
    wrap_free(&w);
}

const char *rich_prefix(const struct rich *r, uint32_t row)
{
    const struct rich_line *l = &r->line[r->row[row].line];

    return r->deco +
           (row == 0 || r->row[row - 1].line != r->row[row].line ? l->first : l->rest);
}

uint32_t rich_row_of(const struct rich *r, uint32_t at)
{
    uint32_t low = 0, high = r->n_row;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (r->row[middle].start <= at)
            low = middle;
        else
            high = middle;
    }
    /* An empty line starts at the same byte as the next one: take the last such row. */
    return low;
}

/* ---- copying ---- */

static bool append(char **out, size_t *n, const char *s, size_t len)
{
    char *more;

    if (len == 0)
        return true;
    more = realloc(*out, *n + len + 1);
    if (more == NULL)
        return false;
    memcpy(more + *n, s, len);
    *n += len;
    more[*n] = '\0';
    *out = more;
    return true;
}

static bool copy_run(const struct rich *r, const struct rich_run *run, uint32_t from,
                     uint32_t to, const char *src, char **out, size_t *n)
{
    switch (run->kind) {
    case RICH_SAME: return append(out, n, src + run->src + (from - run->at), to - from);
    case RICH_FOR: return append(out, n, src + run->src, run->src_n);
    case RICH_OURS: return append(out, n, r->text + from, to - from);
    default: return true;
    }
}

/* Does the line consist of a frame only? */
static bool is_frame(const struct rich *r, uint32_t line)
{
    uint32_t at = r->line[line].at, end = rich_line_end(r, line);

    if (at == end)
        return false;
    for (const struct rich_run *run = rich_run_at(r, at);
         run < r->run + r->n_run && run->at < end; run++)
        if (run->kind != RICH_FRAME)
            return false;
    return true;
}

bool rich_copy(const struct rich *r, uint32_t from, uint32_t to, const char *src, char **out,
               size_t *n)
{
    bool is_first = true;

    for (uint32_t line = 0; line < r->n_line; line++) {
        uint32_t start = r->line[line].at, end = rich_line_end(r, line);

        if (start >= to || end < from || (end == from && start < from) || is_frame(r, line))
            continue;
        if (!is_first && !append(out, n, "\n", 1))
            return false;
        is_first = false;
        if (start >= from &&
            !append(out, n, r->deco + r->line[line].mark, strlen(r->deco + r->line[line].mark)))
            return false;
        start = start > from ? start : from;
        end = end < to ? end : to;
        while (start < end) {
            const struct rich_run *run = rich_run_at(r, start);
            uint32_t stop = rich_run_end(r, run);

            stop = stop < end ? stop : end;
            if (!copy_run(r, run, start, stop, src, out, n))
                return false;
            start = stop;
        }
    }
    return true;
}
