/*
 * md4c calls back for each block, span and text; we make lines of rich text.  Containers
 * (quotes, items) are on a stack from which the prefix of each line is made.
 *
 * A segment has at most SEGMENT_MAX bytes, but its rendering can be larger: short references
 * to a long address, a narrow table of many columns.  Beyond MAX_TEXT the source is shown.
 */
#include "config.h"

#include "ui/text/markdown.h"

#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/codeblock.h"
#include "ui/text/emphasis.h"
#include "ui/text/entity.h"
#include "ui/text/formula.h"
#include "ui/text/highlight.h"
#include "ui/text/inline.h"
#include "ui/text/parser_input.h"
#include "ui/text/table.h"
#include "ui/text/table_input.h"
#include "ui/words/cluster.h"

#define MAX_TEXT  (16 * SEGMENT_MAX)
#define MAX_LINES (4 * SEGMENT_MAX)
#define MAX_DEPTH 16 /* of quotes and items */
#define PREFIX    CODEBLOCK_PREFIX

/* The previous block, which decides about a blank line. */
enum before { BEFORE_NOTHING, BEFORE_TEXT, BEFORE_HEADING, BEFORE_OTHER };

/* A quote, or a list item with its mark. */
struct box {
    bool is_quote, is_used;
    char mark[16];
};

struct list {
    bool is_ordered, is_tight;
    unsigned number, n_item;
};

struct md {
    struct rich *r;
    const char *text; /* the whole */
    const char *src;  /* the segment */
    const char *copy; /* of the segment, for md4c, with insertions */
    size_t n, copy_n;
    struct table_input insertions;
    int width;
    bool ascii;
    enum ui_role role;

    struct box box[MAX_DEPTH];
    struct list list[MAX_DEPTH];
    unsigned n_box, n_list; /* may exceed the size of the stack */
    enum before before;
    bool in_line, in_cell;

    int n_em, n_strong, n_del, n_link, n_code; /* open spans */
    unsigned heading;
    uint32_t link_from; /* start of its text */
    struct inlines in;
    struct codeblock code;
    bool in_code;
    struct table table;
    unsigned char *seen; /* a bit for each byte of the source: md4c reported it */
};

/* ---- the source ---- */

/* Is s part of the source of the segment?  Sets *at to its position in the whole text. */
static bool find(const struct md *m, const char *s, size_t n, size_t *at)
{
    uintptr_t from = (uintptr_t)m->src, p = (uintptr_t)s;

    if (p < from || p - from > m->n || n > m->n - (p - from))
        return false;
    *at = (size_t)(p - from) + (size_t)(m->src - m->text);
    for (size_t i = p - from; m->seen != NULL && i < p - from + n; i++)
        m->seen[i / 8] |= (unsigned char)(1u << i % 8);
    return true;
}

/* Returns the source of what md4c reports, or s if it made that. */
static const char *source(const struct md *m, const char *s, size_t *n)
{
    const char *in_copy = parser_source(m->copy, m->copy, m->copy_n, s, n);
    uintptr_t from = (uintptr_t)m->copy, p = (uintptr_t)in_copy;
    size_t at;

    if (p < from || p - from > m->copy_n)
        return s;
    at = table_input_source(&m->insertions, p - from);
    *n = table_input_source(&m->insertions, p - from + *n) - at;
    return m->src + at;
}

/* ---- prefixes ---- */

static void append(char *to, const char *s)
{
    size_t n = strlen(to);

    snprintf(to + n, PREFIX - n, "%s", s);
}

static void append_blanks(char *to, int n)
{
    while (n-- > 0)
        append(to, " ");
}

static bool is_bullet(const char *mark)
{
    return mark[0] != '-' && !(mark[0] >= '0' && mark[0] <= '9');
}

/* Make the prefixes of the next line and of its other rows.  use: include marks of items that
 * were not shown yet.  Containers beyond half the width are left out. */
static void make_prefix(struct md *m, bool use, char first[PREFIX], char rest[PREFIX],
                        char mark[PREFIX])
{
    int used = 0;

    first[0] = rest[0] = mark[0] = '\0';
    for (unsigned i = 0; i < m->n_box && i < MAX_DEPTH; i++) {
        struct box *b = &m->box[i];
        int w = b->is_quote ? 2 : cluster_width(b->mark, strlen(b->mark));

        if (used + w > m->width / 2) {
            b->is_used = b->is_used || use;
            continue;
        }
        used += w;
        if (b->is_quote) {
            append(first, m->ascii ? "| " : "\xe2\x94\x82 ");
            append(rest, m->ascii ? "| " : "\xe2\x94\x82 ");
        } else if (use && !b->is_used) {
            append(first, b->mark);
            append_blanks(rest, w);
            append(mark, is_bullet(b->mark) ? "- " : b->mark);
            b->is_used = true;
        } else {
            append_blanks(first, w);
            append_blanks(rest, w);
            append_blanks(mark, w);
        }
    }
}

static bool has_new_item(const struct md *m)
{
    for (unsigned i = 0; i < m->n_box && i < MAX_DEPTH; i++)
        if (!m->box[i].is_quote && !m->box[i].is_used)
            return true;
    return false;
}

static void end_line(struct md *m)
{
    m->in_line = false;
}

static void new_line(struct md *m, bool use, enum wrap_how how)
{
    char first[PREFIX], rest[PREFIX], mark[PREFIX];
    bool is_item = use && has_new_item(m);

    make_prefix(m, use, first, rest, mark);
    rich_line(m->r, rich_deco(m->r, first), rich_deco(m->r, rest),
              is_item ? rich_deco(m->r, mark) : 0, ROLE_QUOTE, how);
    inlines_start(&m->in, m->r, CLEAN_TEXT);
}

static void need_line(struct md *m)
{
    if (m->in_cell || m->in_line)
        return;
    new_line(m, true, WRAP_WORDS);
    m->in_line = true;
}

/* Add an empty line, except at the start of an item. */
static void gap(struct md *m)
{
    end_line(m);
    if (!has_new_item(m))
        new_line(m, false, WRAP_WORDS);
}

/* ---- inline ---- */

static void set_style(struct md *m)
{
    unsigned attr = 0;
    enum ui_role role = m->role;

    if (m->heading > 0)
        role = ROLE_HEADING;
    for (unsigned i = 0; i < m->n_box && i < MAX_DEPTH && m->heading == 0; i++)
        role = m->box[i].is_quote ? ROLE_QUOTE : role;
    if (m->n_code > 0)
        role = ROLE_CODE;
    else if (m->n_link > 0)
        role = ROLE_LINK;
    attr |= m->n_em > 0 ? UI_ITALIC : 0;
    attr |= m->n_strong > 0 || m->heading > 0 ? UI_BOLD : 0;
    attr |= m->n_del > 0 ? UI_STRIKE : 0;
    attr |= m->n_link > 0 || m->heading == 1 ? UI_UNDERLINE : 0;
    m->in.role = role;
    m->in.attr = attr;
    m->in.clean.how = m->n_code > 0 ? CLEAN_CODE : CLEAN_TEXT;
}

static void put(struct md *m, const char *s, size_t n)
{
    size_t at;

    need_line(m);
    set_style(m);
    if (find(m, s, n, &at))
        inlines_source(&m->in, s, n, at);
    else
        inlines_ours(&m->in, s, n, RICH_OURS);
}

/* Returns the length of the tag <br> at s[0 .. n), 0 if it is not one. */
static size_t break_tag(const char *s, size_t n)
{
    size_t i = 3;

    if (n < 4 || s[0] != '<' || (s[1] | 0x20) != 'b' || (s[2] | 0x20) != 'r')
        return 0;
    while (i < n && s[i] == ' ')
        i++;
    i += i < n && s[i] == '/';
    return i < n && s[i] == '>' ? i + 1 : 0;
}

/* Show a blank for <br>, the only way to break a line in a cell.  Lines of a cell are not shown. */
static void put_cell(struct md *m, const char *s, size_t n)
{
    size_t from = 0, at;

    for (size_t i = 0; i < n;) {
        size_t len = break_tag(s + i, n - i);

        if (len == 0 || !find(m, s + i, len, &at)) {
            i++;
            continue;
        }
        if (i > from)
            put(m, s + from, i - from);
        set_style(m);
        inlines_for(&m->in, " ", 1, at, len);
        i += len;
        from = i;
    }
    if (n > from)
        put(m, s + from, n - from);
}

static void put_ours(struct md *m, const char *s)
{
    need_line(m);
    set_style(m);
    m->in.role = ROLE_DIM;
    m->in.attr = 0;
    inlines_ours(&m->in, s, strlen(s), RICH_OURS);
}

static void put_entity(struct md *m, const char *s, size_t n)
{
    char bytes[8];
    size_t at, len = entity_decode(s, n, bytes);

    if (len == 0 || !find(m, s, n, &at)) {
        put(m, s, n);
        return;
    }
    need_line(m);
    set_style(m);
    inlines_for(&m->in, bytes, len, at, n);
}

/* Is the text of the link its address? */
static bool says_address(const struct md *m, const char *address, size_t size)
{
    size_t n = m->in.r->n_text - m->link_from;
    const char *text = m->in.r->text + m->link_from;

    return n > 0 && n <= size && size - n <= 8 && memcmp(address + size - n, text, n) == 0;
}

static void put_address(struct md *m, const MD_ATTRIBUTE *href, const MD_ATTRIBUTE *title)
{
    size_t at, n = href->size, n_title = title->size;
    const char *address = source(m, href->text, &n), *why = source(m, title->text, &n_title);

    if (says_address(m, address, n)) {
        find(m, address, n, &at);
        return;
    }
    put_ours(m, " (");
    put(m, address, n);
    if (n_title > 0) {
        put_ours(m, " ");
        put(m, why, n_title);
    }
    put_ours(m, ")");
}

/* md4c stops at negative numbers only: it drops positive ones from cells of a table. */
static int too_much(const struct md *m)
{
    return m->r->failed || m->r->n_text > MAX_TEXT || m->r->n_line > MAX_LINES ||
                   m->table.cells.failed || m->table.cells.n_text > MAX_TEXT
               ? -1
               : 0;
}

static int on_span(MD_SPANTYPE type, void *detail, struct md *m, int step)
{
    switch (type) {
    case MD_SPAN_EM: m->n_em += step; break;
    case MD_SPAN_STRONG: m->n_strong += step; break;
    case MD_SPAN_DEL: m->n_del += step; break;
    case MD_SPAN_CODE: m->n_code += step; break;
    case MD_SPAN_A:
        if (step > 0) {
            need_line(m);
            m->link_from = m->in.r->n_text;
        }
        m->n_link += step;
        if (step < 0)
            put_address(m, &((MD_SPAN_A_DETAIL *)detail)->href,
                        &((MD_SPAN_A_DETAIL *)detail)->title);
        break;
    case MD_SPAN_IMG:
        if (step > 0)
            put_ours(m, "[image] ");
        m->link_from = step > 0 ? m->in.r->n_text : m->link_from;
        if (step < 0)
            put_address(m, &((MD_SPAN_IMG_DETAIL *)detail)->src,
                        &((MD_SPAN_IMG_DETAIL *)detail)->title);
        break;
    default: break;
    }
    return too_much(m);
}

static int enter_span(MD_SPANTYPE type, void *detail, void *ctx)
{
    return on_span(type, detail, ctx, 1);
}

static int leave_span(MD_SPANTYPE type, void *detail, void *ctx)
{
    return on_span(type, detail, ctx, -1);
}

static void code_text(struct md *m, const char *s, size_t n)
{
    while (n > 0) {
        const char *end = memchr(s, '\n', n);
        size_t len = end == NULL ? n : (size_t)(end - s), at;

        if (len > 0 && find(m, s, len, &at))
            codeblock_source(&m->code, s, len, at);
        else if (len > 0)
            codeblock_ours(&m->code, s, len);
        if (end != NULL)
            codeblock_line(&m->code);
        len += end != NULL;
        s += len;
        n -= len;
    }
}

static int text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE size, void *ctx)
{
    struct md *m = ctx;
    size_t n = size;

    s = source(m, s, &n);
    if (m->in_code) {
        code_text(m, s, n);
        return too_much(m);
    }
    switch (type) {
    case MD_TEXT_NULLCHAR: put(m, "\xef\xbf\xbd", 3); break;
    case MD_TEXT_BR:
    case MD_TEXT_SOFTBR:
        if (m->in_cell)
            put(m, " ", 1);
        else
            end_line(m);
        break;
    case MD_TEXT_ENTITY: put_entity(m, s, n); break;
    default:
        if (m->in_cell && m->n_code == 0)
            put_cell(m, s, n);
        else
            put(m, s, n);
        break;
    }
    return too_much(m);
}

/* ---- blocks ---- */

static void push_box(struct md *m, bool is_quote, const char *mark)
{
    if (m->n_box < MAX_DEPTH) {
        struct box *b = &m->box[m->n_box];

        *b = (struct box){ .is_quote = is_quote };
        snprintf(b->mark, sizeof b->mark, "%s", mark);
    }
    m->n_box++;
}

static void push_list(struct md *m, bool is_ordered, unsigned start, bool is_tight)
{
    if (m->before == BEFORE_OTHER)
        gap(m);
    end_line(m);
    if (m->n_list < MAX_DEPTH)
        m->list[m->n_list] = (struct list){ is_ordered, is_tight, start, 0 };
    m->n_list++;
}

static void begin_item(struct md *m, const MD_BLOCK_LI_DETAIL *d)
{
    unsigned depth = m->n_list - 1 < MAX_DEPTH ? m->n_list - 1 : MAX_DEPTH - 1;
    struct list *l = &m->list[depth];
    char mark[16];

    if (l->n_item++ > 0 && !l->is_tight)
        gap(m);
    end_line(m);
    if (l->is_ordered)
        snprintf(mark, sizeof mark, "%u. ", l->number++);
    else if (d->is_task)
        snprintf(mark, sizeof mark, "- [%c] ", d->task_mark);
    else
        snprintf(mark, sizeof mark, "%s ", m->ascii ? "*" : "\xe2\x80\xa2");
    push_box(m, false, mark);
    m->before = BEFORE_NOTHING;
}

static void end_item(struct md *m)
{
    if (m->n_box <= MAX_DEPTH && !m->box[m->n_box - 1].is_used)
        need_line(m); /* an empty item still shows its mark */
    end_line(m);
    m->n_box--;
}

static void begin_code(struct md *m, const MD_BLOCK_CODE_DETAIL *d)
{
    size_t at, n_info = d->info.size, n_lang = d->lang.size;
    const char *info = source(m, d->info.text, &n_info), *lang = source(m, d->lang.text, &n_lang);
    char rest[PREFIX], mark[PREFIX];

    if (m->before == BEFORE_OTHER)
        gap(m);
    end_line(m);
    if (has_new_item(m)) /* the label must not take the place of the mark */
        need_line(m);
    end_line(m);
    make_prefix(m, false, m->code.prefix, rest, mark);
    m->code.r = m->r;
    m->code.width = m->width;
    m->code.ascii = m->ascii;
    m->code.language = highlight_language(lang, n_lang);
    m->code.open = 0;
    m->code.in_line = false;
    find(m, info, n_info, &at);
    codeblock_label(&m->code, info, n_info);
    m->in_code = true;
}

static void end_code(struct md *m)
{
    if (m->code.in_line)
        codeblock_line(&m->code);
    codeblock_end(&m->code);
    m->in_code = false;
    m->before = BEFORE_OTHER;
}

static void rule(struct md *m)
{
    int n = m->width > 40 ? 40 : m->width;

    end_line(m);
    new_line(m, true, WRAP_CODE);
    m->r->line[m->r->n_line - 1].mark = rich_deco(m->r, "---");
    n -= cluster_width(m->r->deco + m->r->line[m->r->n_line - 1].first,
                       strlen(m->r->deco + m->r->line[m->r->n_line - 1].first));
    for (; n > 0; n--)
        rich_add(m->r, m->ascii ? "-" : "\xe2\x94\x80", m->ascii ? 1 : 3, RICH_FRAME, 0, 0,
                 ROLE_BORDER, 0);
    m->before = BEFORE_HEADING; /* no gap after it */
}

static int begin_cell(struct md *m, const MD_BLOCK_TD_DETAIL *d)
{
    enum table_align align = d->align == MD_ALIGN_RIGHT    ? TABLE_RIGHT
                             : d->align == MD_ALIGN_CENTER ? TABLE_CENTER
                                                           : TABLE_LEFT;

    if (!table_cell(&m->table, align))
        return -1;
    m->in_cell = true;
    inlines_start(&m->in, &m->table.cells, CLEAN_TEXT);
    return 0;
}

static void end_table(struct md *m)
{
    char first[PREFIX], rest[PREFIX], mark[PREFIX];

    make_prefix(m, true, first, rest, mark);
    table_render(&m->table, m->r, rich_deco(m->r, first), m->width, m->ascii);
    m->before = BEFORE_OTHER;
}

static void begin_text(struct md *m, unsigned heading)
{
    if (m->before == BEFORE_OTHER || m->before == BEFORE_TEXT ||
        (heading > 0 && m->before != BEFORE_NOTHING))
        gap(m);
    end_line(m);
    m->heading = heading;
}

static void end_text(struct md *m)
{
    end_line(m);
    m->before = m->heading > 0 ? BEFORE_HEADING : BEFORE_TEXT;
    m->heading = 0;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct md *m = ctx;

    switch (type) {
    case MD_BLOCK_DOC: break;
    case MD_BLOCK_QUOTE:
        if (m->before == BEFORE_OTHER || m->before == BEFORE_TEXT)
            gap(m);
        end_line(m);
        push_box(m, true, "");
        m->before = BEFORE_NOTHING;
        break;
    case MD_BLOCK_UL:
        push_list(m, false, 0, ((MD_BLOCK_UL_DETAIL *)detail)->is_tight != 0);
        break;
    case MD_BLOCK_OL:
        push_list(m, true, ((MD_BLOCK_OL_DETAIL *)detail)->start,
                  ((MD_BLOCK_OL_DETAIL *)detail)->is_tight != 0);
        break;
    case MD_BLOCK_LI: begin_item(m, detail); break;
    case MD_BLOCK_HR: rule(m); break;
    case MD_BLOCK_H: begin_text(m, ((MD_BLOCK_H_DETAIL *)detail)->level); break;
    case MD_BLOCK_CODE: begin_code(m, detail); break;
    case MD_BLOCK_HTML:
    case MD_BLOCK_P: begin_text(m, 0); break;
    case MD_BLOCK_TABLE:
        if (m->before == BEFORE_OTHER || m->before == BEFORE_TEXT)
            gap(m);
        end_line(m);
        table_start(&m->table);
        break;
    case MD_BLOCK_THEAD:
    case MD_BLOCK_TBODY: break;
    case MD_BLOCK_TR: table_row(&m->table); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: return begin_cell(m, detail);
    }
    return too_much(m);
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct md *m = ctx;

    (void)detail;
    switch (type) {
    case MD_BLOCK_QUOTE:
        end_line(m);
        m->n_box--;
        m->before = BEFORE_OTHER;
        break;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL:
        end_line(m);
        m->n_list--;
        m->before = BEFORE_OTHER;
        break;
    case MD_BLOCK_LI: end_item(m); break;
    case MD_BLOCK_CODE: end_code(m); break;
    case MD_BLOCK_H:
    case MD_BLOCK_HTML:
    case MD_BLOCK_P: end_text(m); break;
    case MD_BLOCK_TABLE: end_table(m); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: m->in_cell = false; break;
    case MD_BLOCK_DOC:
    case MD_BLOCK_HR:
    case MD_BLOCK_THEAD:
    case MD_BLOCK_TBODY:
    case MD_BLOCK_TR: break;
    }
    return too_much(m);
}

/* ---- the three kinds of segments ---- */

static void plain(struct rich *r, const char *text, size_t at, size_t end, enum ui_role role)
{
    while (at < end) {
        const char *newline = memchr(text + at, '\n', end - at);
        size_t stop = newline == NULL ? end : (size_t)(newline - text);
        size_t n =
            stop > at && text[stop - 1] == '\r' && newline != NULL ? stop - 1 - at : stop - at;
        struct inlines in = { .role = role };

        rich_line(r, 0, 0, 0, role, WRAP_WORDS);
        inlines_start(&in, r, CLEAN_TEXT);
        inlines_source(&in, text + at, n, at);
        at = stop + 1;
    }
}

static bool tells_something(const struct md *m, size_t at, size_t end)
{
    bool only_number = true, has_word = false;

    for (size_t i = at; i < end; i++) {
        unsigned char c = (unsigned char)m->src[i];

        if ((m->seen[i / 8] >> i % 8 & 1) != 0)
            return false;
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            has_word = true;
        else if (c >= 0x80)
            has_word = true;
        else if (c >= '0' && c <= '9')
            has_word = has_word || !only_number;
        else if (c != '.' && c != ')' && c != ' ')
            only_number = false;
    }
    return has_word;
}

/* Show source lines that md4c did not report: definitions of links. */
static void put_unseen(struct md *m)
{
    for (size_t at = 0; at < m->n;) {
        const char *newline = memchr(m->src + at, '\n', m->n - at);
        size_t end = newline == NULL ? m->n : (size_t)(newline - m->src);

        if (tells_something(m, at, end)) {
            size_t from = (size_t)(m->src - m->text);

            plain(m->r, m->text, from + at, from + end, ROLE_DIM);
        }
        at = end + 1;
    }
}

static const MD_PARSER parser = {
    .flags = MD_FLAG_PERMISSIVEAUTOLINKS | MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH |
             MD_FLAG_TASKLISTS | MD_FLAG_NOHTML,
    .enter_block = enter_block,
    .leave_block = leave_block,
    .enter_span = enter_span,
    .leave_span = leave_span,
    .text = text,
};

static void markdown(struct rich *r, const char *whole, const struct segment *seg, int width,
                     enum ui_role role, bool ascii)
{
    struct md m = {
        .r = r,
        .text = whole,
        .src = whole + seg->at,
        .n = seg->n,
        .width = width,
        .ascii = ascii,
        .role = role,
    };
    char *copy = parser_input(m.src, m.n);
    bool failed = true;

    m.copy_n = m.n;
    m.seen = calloc(1, m.n / 8 + 1);
    if (copy != NULL && m.seen != NULL) {
        emphasis_allow(copy, m.src, m.n);
        formula_protect(copy, m.src, m.n);
        failed = !table_input_allow(&m.insertions, &copy, &m.copy_n);
        m.copy = copy;
        failed = failed || md_parse(copy, (MD_SIZE)m.copy_n, &parser, &m) != 0;
    }
    if (!failed)
        put_unseen(&m);
    free(m.seen);
    free(copy);
    table_input_free(&m.insertions);
    table_free(&m.table);
    if (failed || r->failed) {
        rich_start(r);
        plain(r, whole, seg->at, seg->at + seg->n, role);
    }
}

/* Skip the indentation of the fence. */
static size_t skip_indent(const char *line, size_t n, unsigned indent)
{
    size_t i = 0;

    while (i < n && i < indent && line[i] == ' ')
        i++;
    return i;
}

static void code(struct rich *r, const char *whole, const struct segment *seg, int width,
                 bool ascii)
{
    struct codeblock b = {
        .r = r,
        .width = width,
        .ascii = ascii,
        .language = seg->language,
        .open = seg->open,
    };
    size_t at = seg->at, stop = at + seg->n;
    bool begins = seg->begins;

    while (at < stop) {
        const char *newline = memchr(whole + at, '\n', stop - at);
        size_t end = newline == NULL ? stop : (size_t)(newline - whole);
        size_t n = end - at, len;

        if (n > 0 && whole[at + n - 1] == '\r' && newline != NULL)
            n--;
        if (begins) {
            size_t label = segment_label(whole + at, n, &len);

            codeblock_label(&b, whole + at + label, len);
            begins = false;
        } else if (seg->ends && end + 1 >= stop) {
            codeblock_end(&b);
        } else {
            size_t skip =
                seg->joined && at == seg->at ? 0 : skip_indent(whole + at, n, seg->indent);

            if (n > skip)
                codeblock_source(&b, whole + at + skip, n - skip, at + skip);
            codeblock_line(&b);
        }
        at = end + 1;
    }
}

void markdown_render(struct rich *r, const char *whole, const struct segment *seg, int width,
                     enum ui_role role, bool ascii)
{
    rich_start(r);
    switch ((enum segment_kind)seg->kind) {
    case SEGMENT_PLAIN: plain(r, whole, seg->at, seg->at + seg->n, role); break;
    case SEGMENT_MARKDOWN: markdown(r, whole, seg, width, role, ascii); break;
    case SEGMENT_CODE: code(r, whole, seg, width, ascii); break;
    }
}
