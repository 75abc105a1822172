#include "config.h"

#include "ui/text/segment.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/text/formula.h"
#include "ui/text/highlight.h"

/* One complete line: text[at .. end) and a newline; next is the start of the next line. */
struct line {
    const char *text;
    size_t at, end, next;
    uint32_t indent; /* columns of blanks */
    size_t first;    /* the first byte that is not blank */
};

static struct line read_line(const char *text, size_t at, size_t end, size_t next)
{
    struct line l = { text, at, end, next, 0, at };

    if (l.end > at && text[l.end - 1] == '\r')
        l.end--;
    for (; l.first < l.end && (text[l.first] == ' ' || text[l.first] == '\t'); l.first++)
        l.indent = text[l.first] == ' ' ? l.indent + 1 : (l.indent / 4 + 1) * 4;
    return l;
}

static bool is_blank(const struct line *l)
{
    return l->first == l->end;
}

static uint32_t run_of(const struct line *l, char c)
{
    size_t i = l->first;

    while (i < l->end && l->text[i] == c)
        i++;
    return (uint32_t)(i - l->first);
}

static bool is_heading(const struct line *l)
{
    uint32_t n = run_of(l, '#');

    return l->indent < 4 && n >= 1 && n <= 6 &&
           (l->first + n == l->end || l->text[l->first + n] == ' ');
}

/* Returns the character of an opening fence, or 0. */
static char fence_of(const struct line *l, uint32_t *n)
{
    char c = is_blank(l) ? '\0' : l->text[l->first];

    if ((c != '`' && c != '~') || l->indent > 3)
        return '\0';
    *n = run_of(l, c);
    if (*n < 3 ||
        (c == '`' && memchr(l->text + l->first + *n, '`', l->end - l->first - *n) != NULL))
        return '\0';
    return c;
}

static bool closes_fence(const struct segments *s, const struct line *l)
{
    uint32_t n;

    if (is_blank(l) || l->indent > 3 || l->text[l->first] != s->fence)
        return false;
    n = run_of(l, s->fence);
    if (n < s->fence_n)
        return false;
    for (size_t i = l->first + n; i < l->end; i++)
        if (l->text[i] != ' ' && l->text[i] != '\t')
            return false;
    return true;
}

/* Returns the mark of a list item ('1' for numbers), or 0.  *offset: indentation of its text;
 * *starts_new: it can interrupt a paragraph. */
static char item_of(const struct line *l, uint32_t *offset, bool *starts_new)
{
    size_t i = l->first;
    uint32_t blanks = 0;
    bool is_one = false;
    char mark;

    if (is_blank(l) || l->indent > 3)
        return '\0';
    mark = l->text[i];
    if (mark >= '0' && mark <= '9') {
        while (i < l->end && i < l->first + 9 && l->text[i] >= '0' && l->text[i] <= '9')
            i++;
        is_one = i == l->first + 1 && mark == '1';
        if (i == l->end || (l->text[i] != '.' && l->text[i] != ')'))
            return '\0';
        mark = '1';
    } else if (mark != '-' && mark != '*' && mark != '+') {
        return '\0';
    }
    i++;
    if (i < l->end && l->text[i] != ' ' && l->text[i] != '\t')
        return '\0';
    while (i + blanks < l->end && l->text[i + blanks] == ' ')
        blanks++;
    *starts_new = i + blanks < l->end && (mark != '1' || is_one);
    *offset = l->indent + (uint32_t)(i - l->first) +
              (blanks == 0 || blanks > 4 || i + blanks == l->end ? 1 : blanks);
    return mark;
}

static bool add(struct segments *s, size_t end)
{
    struct segment seg = s->tail;

    if (s->n_seg == s->room) {
        uint32_t room = s->room == 0 ? 8 : s->room * 2;
        struct segment *more = realloc(s->seg, room * sizeof *more);

        if (more == NULL) {
            s->failed = true;
            return false;
        }
        s->seg = more;
        s->room = room;
    }
    seg.n = (uint32_t)end - seg.at;
    s->seg[s->n_seg++] = seg;
    return true;
}

/* Close the tail at byte at and begin another one.  Blank lines alone do not make a
 * segment. */
static void cut(struct segments *s, size_t at, bool gap)
{
    enum segment_kind kind = s->markdown ? SEGMENT_MARKDOWN : SEGMENT_PLAIN;

    if (s->has_text && !add(s, at))
        return;
    s->tail = (struct segment){ .at = (uint32_t)at,
                                .kind = (uint8_t)kind,
                                .gap = gap && s->n_seg > 0 };
    s->n_line = 0;
    s->has_text = false;
    s->in_list = false;
    s->formula = '\0';
}

/* Cut inside a code block, or a block that continues after the cut. */
static void cut_within(struct segments *s, size_t at, bool in_line)
{
    struct segment was = s->tail;

    cut(s, at, false);
    s->tail.kind = was.kind;
    s->tail.language = was.language;
    s->tail.indent = was.indent;
    s->tail.open = s->open;
    s->tail.joined = in_line;
}

/* Cut a line that is too long. */
static void cut_long(struct segments *s, const char *text, size_t line, size_t end,
                     size_t slack)
{
    if (end - s->tail.at <= SEGMENT_MAX + slack)
        return;
    if (line > s->tail.at)
        cut_within(s, line, false);
    while (end - s->tail.at > SEGMENT_MAX + slack) {
        size_t at = s->tail.at + SEGMENT_MAX;

        at = utf8_start(text, at - 4, at);
        s->has_text = true;
        cut_within(s, at, true);
        if (s->failed)
            return;
    }
}

static void code_line(struct segments *s, const struct line *l)
{
    s->has_text = true;
    s->n_line++;
    if (closes_fence(s, l)) {
        s->tail.ends = true;
        cut(s, l->next, false);
        s->fence = '\0';
        s->blank = false;
        return;
    }
    s->open =
        highlight_line(s->tail.language, s->open, l->text + l->at, l->end - l->at, NULL, NULL);
    if (s->n_line >= SEGMENT_LINES)
        cut_within(s, l->next, false);
}

static void begin_code(struct segments *s, const struct line *l, char fence, uint32_t n)
{
    size_t len, label;

    cut(s, l->at, s->blank);
    label = segment_label(l->text + l->first, l->end - l->first, &len);
    s->fence = fence;
    s->fence_n = n;
    s->open = 0;
    s->has_text = true;
    s->tail.kind = SEGMENT_CODE;
    s->tail.begins = true;
    s->tail.indent = (uint8_t)l->indent;
    s->tail.language = highlight_language(l->text + l->first + label, len);
}

static void begin_item(struct segments *s, char mark, uint32_t offset)
{
    s->in_list = true;
    s->mark = mark;
    s->offset = offset;
}

static void markdown_line(struct segments *s, const struct line *l)
{
    uint32_t offset = 0, fence_n = 0;
    bool starts_new = false, inside, heading;
    char mark, fence;

    if (is_blank(l) || s->tail.joined) { /* the rest of a cut line has no meaning */
        s->blank = is_blank(l);
        s->formula = '\0';
        s->has_text = s->has_text || !s->blank;
        s->n_line++;
        return;
    }
    /* Is it part of the open item? */
    inside = s->in_list && l->indent >= s->offset;
    heading = !inside && is_heading(l);
    mark = inside ? '\0' : item_of(l, &offset, &starts_new);
    fence = inside ? '\0' : fence_of(l, &fence_n);
    if (fence != '\0') {
        begin_code(s, l, fence, fence_n);
        s->blank = false;
        return;
    }
    if (s->formula != '\0') { /* "- b" in a formula is not an item */
        heading = false;
        mark = '\0';
    }
    if (!s->has_text || heading || (s->blank && l->indent < (s->in_list ? s->offset : 4)) ||
        (mark != '\0' && (starts_new || (s->in_list && mark == s->mark)))) {
        cut(s, l->at, s->blank || heading);
        if (mark != '\0')
            begin_item(s, mark, offset);
    }
    s->has_text = true;
    s->n_line++;
    s->blank = false;
    s->formula = formula_open(l->text, l->at, l->next, s->formula);
    if (heading)
        cut(s, l->next, false);
}

static void plain_line(struct segments *s, const struct line *l)
{
    s->has_text = true;
    if (++s->n_line >= SEGMENT_LINES)
        cut(s, l->next, false);
}

static void complete_line(struct segments *s, const char *text, size_t end, size_t next)
{
    struct line l;

    cut_long(s, text, s->line, next, 0);
    l = read_line(text, s->line > s->tail.at ? s->line : s->tail.at, end, next);
    if (s->fence != '\0')
        code_line(s, &l);
    else if (s->markdown)
        markdown_line(s, &l);
    else
        plain_line(s, &l);
    s->line = (uint32_t)next;
}

void segments_start(struct segments *s, bool markdown)
{
    struct segment *seg = s->seg;
    uint32_t room = s->room;

    *s = (struct segments){ .seg = seg, .room = room, .markdown = markdown };
    s->tail.kind = markdown ? SEGMENT_MARKDOWN : SEGMENT_PLAIN;
}

void segments_free(struct segments *s)
{
    free(s->seg);
    *s = (struct segments){ 0 };
}

void segments_feed(struct segments *s, const char *text, size_t n)
{
    while (!s->failed && s->line < n) {
        const char *end = memchr(text + s->line, '\n', n - s->line);

        if (end == NULL) {
            /* With a slack of one character, a complete line and a growing line are cut at
             * the same places. */
            cut_long(s, text, s->line, n, 4);
            break;
        }
        complete_line(s, text, (size_t)(end - text), (size_t)(end - text) + 1);
    }
}

void segments_finish(struct segments *s, const char *text, size_t n)
{
    segments_feed(s, text, n);
    if (!s->failed && s->line < n)
        complete_line(s, text, n, n);
    if (!s->failed && s->has_text)
        cut(s, n, false);
}

/* Can this last line, while it grows, still change the meaning of the text before it? */
static bool is_undecided(const struct segments *s, const struct line *l)
{
    char c = is_blank(l) ? '\0' : l->text[l->first];

    if (s->fence != '\0')
        return c == s->fence && l->first + run_of(l, c) == l->end;
    if (!s->markdown || (c != '-' && c != '=' && c != '`' && c != '~'))
        return false;
    return l->first + run_of(l, c) == l->end;
}

bool segments_tail(const struct segments *s, const char *text, size_t n, struct segment *out)
{
    struct line l = read_line(text, s->line > s->tail.at ? s->line : s->tail.at, n, n);

    *out = s->tail;
    if (s->line < n && is_undecided(s, &l))
        n = l.at;
    out->n = (uint32_t)n - s->tail.at;
    return n > s->tail.at && (s->has_text || !is_blank(&l));
}

size_t segment_label(const char *line, size_t n, size_t *len)
{
    size_t at = 0, end = n;

    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (at < n && (line[at] == '`' || line[at] == '~'))
        at++;
    while (at < n && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (end > at && (line[end - 1] == ' ' || line[end - 1] == '\t' ||
                        line[end - 1] == '\r' || line[end - 1] == '\n'))
        end--;
    *len = end - at;
    return at;
}
