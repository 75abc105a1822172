/*
 * The decoder holds the bytes of one character and classifies it when it is complete.
 * Adjacent unchanged characters are passed on as one piece, so plain text costs one call of
 * the sink.
 *
 * Widths come from wcwidth (ui/words/cluster.h).  The column is only needed for tabs and uses
 * the same clusters.
 */
#include "config.h"

#include "ui/words/clean.h"

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define JOINER      0x200d
#define MAX_MARKS   4  /* capacity of a cell in ncurses */
#define MAX_ZERO    16 /* with joiners and selectors */

struct out {
    clean_sink *sink;
    void *ctx;
    const char *same; /* an unchanged run that was not passed on yet */
    size_t n, src;
};

/* Languages and emoji need joiners and selectors, and patterns of dots need the blank one. */
static bool has_use_in_text(int32_t cp)
{
    return cp == 0x200c || cp == JOINER || (cp >= 0xfe00 && cp <= 0xfe0f) || cp == 0x2800;
}

static bool is_hidden(const struct clean *c, int32_t cp)
{
    return visible_hides((uint32_t)cp) && (c->how == CLEAN_NAME || !has_use_in_text(cp));
}

static void flush(struct out *o)
{
    if (o->n > 0)
        o->sink(o->ctx, o->same, o->n, o->src, o->n, CLEAN_SAME);
    o->n = 0;
}

static void give(struct out *o, const char *text, size_t src, size_t src_n,
                 enum clean_kind kind)
{
    flush(o);
    o->sink(o->ctx, text, strlen(text), src, src_n, kind);
}

static void pass(struct out *o, const char *bytes, size_t n, size_t src)
{
    if (o->n == 0 || o->same + o->n != bytes) {
        flush(o);
        o->same = bytes;
        o->src = src;
    }
    o->n += n;
}

/* Advance by a character of its own, width columns wide. */
static void advance(struct clean *c, int32_t cp, unsigned width)
{
    c->column += width;
    c->before = cp;
    c->half_flag = false;
    c->n_mark = 0;
    c->n_zero = 0;
}

static void new_line(struct clean *c)
{
    advance(c, 0, 0);
    c->column = 0;
}

static bool is_mark(int32_t cp)
{
    utf8proc_category_t k = utf8proc_category(cp);

    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

/* Place a printable character in its cluster.  Returns whether it is kept. */
static bool place(struct clean *c, int32_t cp, int width)
{
    bool regional = cp >= 0x1f1e6 && cp <= 0x1f1ff;
    bool tone = cp >= 0x1f3fb && cp <= 0x1f3ff;

    if (width == 0) {
        c->n_zero++;
        if (is_mark(cp) && !(cp >= 0xfe00 && cp <= 0xfe0f))
            c->n_mark++;
        if (c->n_mark > MAX_MARKS || c->n_zero > MAX_ZERO)
            return false;
        c->before = cp;
        return true;
    }
    if (c->before != 0 && (tone || (c->before == JOINER && width == 2))) {
        /* It joins the cluster without a column.  Each part may have marks, but the number
         * of parts is limited to that of the longest emoji. */
        if (++c->n_zero > MAX_ZERO)
            return false;
        c->before = cp;
        return true;
    }
    if (regional && c->half_flag) {
        advance(c, cp, (unsigned)width);
        return true;
    }
    advance(c, cp, (unsigned)width);
    c->half_flag = regional;
    return true;
}

static void control(struct clean *c, struct out *o, int32_t cp, size_t n)
{
    static const char spaces[] = "    ";
    char caret[3] = { '^', (char)(cp ^ 0x40), '\0' };

    if (cp == '\t') {
        unsigned width = CLEAN_TAB_WIDTH - c->column % CLEAN_TAB_WIDTH;

        give(o, spaces + CLEAN_TAB_WIDTH - width, c->at, n, CLEAN_GAP);
        advance(c, ' ', width);
    } else if (cp >= 0x80) {
        give(o, REPLACEMENT, c->at, n, CLEAN_ODD);
        advance(c, cp, 1);
    } else {
        give(o, caret, c->at, n, CLEAN_ODD);
        advance(c, cp, 2);
    }
}

/* Process a complete character of n bytes at c->at. */
static void character(struct clean *c, struct out *o, const char *bytes, size_t n, int32_t cp)
{
    int width;

    if (cp == '\n') {
        pass(o, bytes, n, c->at);
        new_line(c);
        return;
    }
    if (cp == 0x2028 || cp == 0x2029) {
        give(o, "\n", c->at, n, CLEAN_GAP);
        new_line(c);
        return;
    }
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
        control(c, o, cp, n);
        return;
    }
    if (is_hidden(c, cp)) {
        if (c->how == CLEAN_CODE) {
            give(o, REPLACEMENT, c->at, n, CLEAN_ODD);
            advance(c, cp, 1);
        }
        return;
    }
    width = wcwidth((wchar_t)cp);
    if (width < 0) {
        give(o, REPLACEMENT, c->at, n, CLEAN_ODD);
        advance(c, cp, 1);
    } else if (place(c, cp, width)) {
        pass(o, bytes, n, c->at);
    }
}

/* Replace n invalid bytes at c->at. */
static void broken(struct clean *c, struct out *o, size_t n)
{
    give(o, REPLACEMENT, c->at, n, CLEAN_ODD);
    advance(c, 0xfffd, 1);
    c->at += n;
    c->n_held = 0;
}

/* Can held[0 .. n) followed by b begin a character? */
static bool may_follow(const unsigned char *held, unsigned n, unsigned char b)
{
    char s[5];
    uint32_t cp;

    memcpy(s, held, n);
    s[n] = (char)b;
    return utf8_decode(s, n + 1, &cp) == n + 1;
}

void clean_start(struct clean *c, enum clean_how how)
{
    *c = (struct clean){ .how = how };
}

/* Process one byte.  whole points to the held character in the current input; NULL if it began
 * in an earlier piece. */
static void take(struct clean *c, struct out *o, unsigned char b, const char *whole)
{
    uint32_t cp;

    c->held[c->n_held++] = b;
    if (c->held[0] == '\r')
        return;
    utf8_decode((const char *)c->held, c->n_held, &cp);
    if (cp == UTF8_BAD) {
        broken(c, o, 1);
    } else if (cp != UTF8_SHORT) {
        unsigned n = c->n_held;

        c->n_held = 0;
        character(c, o, whole != NULL ? whole : (const char *)c->held, n, (int32_t)cp);
        if (whole == NULL)
            flush(o); /* held is about to be overwritten */
        c->at += n;
    }
}

void clean_feed(struct clean *c, const char *in, size_t n, clean_sink *sink, void *ctx)
{
    struct out o = { sink, ctx, NULL, 0, 0 };

    for (size_t i = 0; i < n; i++) {
        unsigned char b = (unsigned char)in[i];

        if (c->n_held > 0 && c->held[0] == '\r') {
            if (b == '\n') {
                give(&o, "\n", c->at, 2, CLEAN_GAP);
                new_line(c);
                c->at += 2;
                c->n_held = 0;
                continue;
            }
            broken(c, &o, 1);
        } else if (c->n_held > 0 && !may_follow(c->held, c->n_held, b)) {
            broken(c, &o, c->n_held);
        }
        take(c, &o, b, i >= c->n_held ? in + i - c->n_held : NULL);
    }
    flush(&o);
}

void clean_cut(struct clean *c, clean_sink *sink, void *ctx)
{
    struct out o = { sink, ctx, NULL, 0, 0 };

    if (c->n_held > 0)
        broken(c, &o, c->n_held);
}

void clean_end(struct clean *c, clean_sink *sink, void *ctx)
{
    clean_cut(c, sink, ctx);
    clean_start(c, c->how);
}

struct buffer {
    char *dst;
    size_t size, n;
    bool one_line, full;
};

static void store(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                  enum clean_kind kind)
{
    struct buffer *b = ctx;

    (void)src, (void)src_n, (void)kind;
    if (b->full || b->size == 0)
        return;
    if (n > b->size - 1 - b->n) {
        b->full = true;
        n = utf8_start(text, 0, b->size - 1 - b->n);
    }
    for (size_t i = 0; i < n; i++)
        b->dst[b->n++] = (char)(b->one_line && text[i] == '\n' ? ' ' : text[i]);
}

static size_t at_once(struct buffer *b, enum clean_how how, const char *src, size_t n)
{
    struct clean c;

    clean_start(&c, how);
    clean_feed(&c, src, n, store, b);
    clean_end(&c, store, b);
    if (b->size > 0)
        b->dst[b->n] = '\0';
    return b->n;
}

size_t clean_text(char *dst, size_t size, const char *src, size_t n)
{
    return at_once(&(struct buffer){ .dst = dst, .size = size }, CLEAN_TEXT, src, n);
}

size_t clean_line(char *dst, size_t size, const char *src, size_t n)
{
    return at_once(&(struct buffer){ .dst = dst, .size = size, .one_line = true }, CLEAN_NAME,
                   src, n);
}

/* ---- for a model ---- */

/* A string without an end counts as two bytes, so that the text after it is not lost. */
size_t clean_sequence(const char *text, size_t n)
{
    size_t i = 1;

    if (n > 1 && text[1] != '\0' && strchr("]P^_X", text[1]) != NULL) {
        for (i = 2; i < n; i++)
            if (text[i] == '\a' || text[i] == '\033')
                return text[i] == '\a' ? i + 1 : i + (i + 1 < n && text[i + 1] == '\\' ? 2 : 0);
        return 2;
    }
    if (n > 1 && text[1] == '[')
        for (i = 2; i < n && text[i] >= 0x20 && text[i] < 0x40;)
            i++;
    else
        while (i < n && text[i] >= 0x20 && text[i] < 0x30)
            i++;
    return i < n && text[i] >= 0x30 && text[i] < 0x7f ? i + 1 : i;
}

static bool is_control(uint32_t cp)
{
    return (cp < 0x20 && cp != '\t' && cp != '\n') || (cp >= 0x7f && cp < 0xa0);
}

size_t clean_controls(char *dst, const char *src, size_t n)
{
    size_t to = 0, step;
    uint32_t cp;

    for (size_t at = 0; at < n; at += step) {
        step = utf8_decode(src + at, n - at, &cp);
        if (cp == UTF8_BAD || cp == UTF8_SHORT) {
            memcpy(dst + to, REPLACEMENT, 3);
            to += 3;
        } else if (cp == 033) {
            step = clean_sequence(src + at, n - at);
        } else if (!is_control(cp) || (cp == '\r' && at + 1 < n && src[at + 1] == '\n')) {
            memcpy(dst + to, src + at, step);
            to += step;
        }
    }
    dst[to] = '\0';
    return to;
}
