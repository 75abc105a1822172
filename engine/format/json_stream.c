/*
 * Feeds a file or a text to yajl in pieces and passes its events on.
 *
 * yajl takes care of the grammar.  Added here: limits for depth and string length, memory that
 * can run out without a crash, and errors with the offset and the last key.
 */
#include "config.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "engine/base/encoding.h"
#include "engine/base/halves.h"
#include "engine/base/json_text_end.h"
#include "engine/base/utf8.h"
#include "engine/format/json.h"
#include "engine/format/reader.h"

#define PIECE ((size_t)64 << 10)

/* A character beyond U+FFFF is escaped as a pair, "\ud83d\ude00".  yajl makes "?" of a first half
 * alone, and another character of a first half and an escape that is not a second one. */
struct escapes {
    unsigned n;     /* bytes of this escape until now */
    unsigned value; /* of its digits */
    bool is_half;   /* the one before is a first half */
};

struct stream {
    json_fn *fn;
    void *ctx;
    struct err *e;
    unsigned depth;
    bool stopped; /* fn or a limit stopped it; *e is set */
    bool has_halves; /* of characters, as bytes */
    struct escapes escapes;
    char key[64]; /* the last one, for messages */
};

static int pass(struct stream *s, enum json_event event, const void *text, size_t len,
                unsigned depth)
{
    if (s->fn(s->ctx, event, text, len, depth, s->e) == 0)
        return 1;
    s->stopped = true;
    return 0;
}

static int on_null(void *ctx)
{
    struct stream *s = ctx;

    return pass(s, JSON_NULL, "", 0, s->depth);
}

static int on_boolean(void *ctx, int truth)
{
    struct stream *s = ctx;

    return pass(s, truth != 0 ? JSON_TRUE : JSON_FALSE, "", 0, s->depth);
}

static int on_number(void *ctx, const char *text, size_t len)
{
    struct stream *s = ctx;

    return pass(s, JSON_NUMBER, text, len, s->depth);
}

/* yajl refuses other bytes, but accepts overlong characters and those beyond Unicode. */
static bool is_text(struct stream *s, const unsigned char *text, size_t len)
{
    if (s->has_halves ? halves_are_text((const char *)text, len)
                      : utf8_is_valid((const char *)text, len))
        return true;
    err_set(s->e, ERR_FORMAT, "JSON has a text that is not UTF-8");
    s->stopped = true;
    return false;
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    struct stream *s = ctx;

    return is_text(s, text, len) && pass(s, JSON_STRING, text, len, s->depth);
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    struct stream *s = ctx;
    size_t n = len < sizeof s->key - 1 ? len : sizeof s->key - 1;

    if (!is_text(s, text, len))
        return 0;
    memcpy(s->key, text, n);
    s->key[n] = '\0';
    return pass(s, JSON_KEY, text, len, s->depth);
}

static int enter(struct stream *s, enum json_event event)
{
    if (s->depth == JSON_MAX_DEPTH) {
        err_set(s->e, ERR_FORMAT, "JSON is nested more than %d deep", JSON_MAX_DEPTH);
        s->stopped = true;
        return 0;
    }
    return pass(s, event, "", 0, s->depth++);
}

static int on_map(void *ctx)
{
    return enter(ctx, JSON_OBJECT);
}

static int on_array(void *ctx)
{
    return enter(ctx, JSON_ARRAY);
}

static int on_map_end(void *ctx)
{
    struct stream *s = ctx;

    return pass(s, JSON_OBJECT_END, "", 0, --s->depth);
}

static int on_array_end(void *ctx)
{
    struct stream *s = ctx;

    return pass(s, JSON_ARRAY_END, "", 0, --s->depth);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_map_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/*
 * yajl crashes if an allocation fails, and its buffer grows to the length of a string.  All its
 * memory therefore comes from here, and every block is in a list.  If the system has no memory,
 * or a string is too long, a jump leaves yajl and the list is freed in its place.
 */
struct block {
    struct block *prev, *next;
};

struct memory {
    struct block all; /* head of the ring, not a block */
    jmp_buf out;
    bool too_long;
};

static struct block *insert(struct memory *m, struct block *b)
{
    b->prev = &m->all;
    b->next = m->all.next;
    b->next->prev = b->prev->next = b;
    return b;
}

static void take_out(struct block *b)
{
    b->prev->next = b->next;
    b->next->prev = b->prev;
}

static void *memory_realloc(void *ctx, void *p, size_t n)
{
    struct memory *m = ctx;
    struct block *old = p != NULL ? (struct block *)p - 1 : NULL, *b;

    m->too_long = n > 2 * JSON_MAX_STRING;
    if (m->too_long)
        longjmp(m->out, 1);
    if (old != NULL)
        take_out(old);
    b = realloc(old, sizeof *b + n);
    if (b == NULL) {
        if (old != NULL)
            insert(m, old);
        longjmp(m->out, 1);
    }
    return insert(m, b) + 1;
}

static void *memory_malloc(void *ctx, size_t n)
{
    return memory_realloc(ctx, NULL, n);
}

static void memory_free(void *ctx, void *p)
{
    struct block *b;

    (void)ctx;
    if (p == NULL)
        return;
    b = (struct block *)p - 1;
    take_out(b);
    free(b);
}

static void memory_free_all(struct memory *m)
{
    while (m->all.next != &m->all) {
        struct block *b = m->all.next;

        take_out(b);
        free(b);
    }
}

/* Stores yajl's message on one line, without its newline. */
static void bad_text(struct stream *s, yajl_handle h, uint64_t at)
{
    unsigned char *why = yajl_get_error(h, 0, NULL, 0);
    size_t n = why != NULL ? strcspn((const char *)why, "\n") : 0;

    err_set(s->e, ERR_FORMAT, "is not valid JSON: %.*s%s%s%s", (int)n,
            why != NULL ? (const char *)why : "", s->key[0] != '\0' ? ", after \"" : "", s->key,
            s->key[0] != '\0' ? "\"" : "");
    err_at(s->e, NULL, at, NULL);
}

static unsigned digit_of(unsigned char c)
{
    return c <= '9' ? c - 0u - '0' : (c | 0x20u) - 'a' + 10;
}

/* Take one byte.  Returns false if a pair lacks a half. */
static bool take_escape(struct escapes *x, unsigned char c)
{
    bool was_half = x->is_half;

    if (x->n == 0 ? c != '\\' : x->n == 1 ? c != 'u' : !isxdigit(c)) {
        *x = (struct escapes){ 0 };
        return !was_half;
    }
    x->value = x->n < 2 ? 0 : x->value << 4 | digit_of(c);
    if (++x->n < 6)
        return true;
    *x = (struct escapes){ .is_half = !was_half && x->value >> 10 == 0xd800 >> 10,
                           .value = x->value };
    return was_half == (x->value >> 10 == 0xdc00 >> 10);
}

/* Returns how many of n bytes have no half of a pair alone: n, or fewer. */
static size_t take_escapes(struct escapes *x, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x->n == 0 && !x->is_half) {
            const unsigned char *next = memchr(p + i, '\\', n - i);

            if (next == NULL)
                return n;
            i = (size_t)(next - p);
        }
        if (!take_escape(x, p[i]))
            return i;
    }
    return n;
}

/* Parses n bytes at offset at of the file; n 0 ends the text. */
static int parse_piece(struct stream *s, yajl_handle h, const unsigned char *p, size_t n,
                       uint64_t at)
{
    size_t good = take_escapes(&s->escapes, p, n);
    yajl_status status = n == 0 ? json_text_end(h) :
                         good > 0 ? yajl_parse(h, p, good) : yajl_status_ok;

    if (status == yajl_status_ok && good == n)
        return 0;
    if (status == yajl_status_ok) {
        err_set(s->e, ERR_FORMAT, "JSON has an escape \"\\u\" that is half of a character");
        return err_at(s->e, NULL, at + good, NULL);
    }
    at += n > 0 ? yajl_get_bytes_consumed(h) : 0;
    if (s->stopped)
        err_at(s->e, NULL, at, NULL);
    else
        bad_text(s, h, at);
    return -1;
}

/* The source of the bytes: a file or a text in memory. */
struct source {
    struct reader *file; /* NULL: the text */
    const char *text;
    uint64_t pos, end;
};

/* Returns the next bytes and their number *n (0: the end), or NULL with *e. */
static const unsigned char *next_piece(struct source *from, size_t *n, struct err *e)
{
    uint64_t left = from->end - from->pos;
    size_t most = from->file != NULL ? from->file->capacity : PIECE;
    const unsigned char *p;

    *n = left < most ? (size_t)left : most;
    if (*n == 0)
        return (const unsigned char *)"";
    if (from->file != NULL)
        p = reader_take(from->file, *n, e);
    else
        p = (const unsigned char *)from->text + from->pos;
    from->pos += *n;
    return p;
}

/* Everything that calls yajl runs below the setjmp of this function. */
static int feed(struct stream *s, struct memory *m, struct source *from)
{
    yajl_alloc_funcs funcs = { memory_malloc, memory_realloc, memory_free, m };
    uint64_t first = from->pos;
    yajl_handle h;

    if (setjmp(m->out) != 0) {
        if (!m->too_long)
            return err_memory(s->e, "a JSON text");
        err_set(s->e, ERR_FORMAT, "a string of more than %zu MiB", JSON_MAX_STRING >> 20);
        return err_at(s->e, NULL, from->pos, NULL);
    }
    h = yajl_alloc(&callbacks, &funcs, s);
    for (;;) {
        uint64_t start = from->pos;
        size_t n;
        const unsigned char *p = next_piece(from, &n, s->e);
        int mark = start == first && p != NULL ? encoding_mark(p, n, s->e) : 0;

        if (mark < 0)
            return err_at(s->e, NULL, start, NULL);
        if (p == NULL || parse_piece(s, h, p + mark, n - (size_t)mark, start) != 0)
            return -1;
        if (n == (size_t)mark)
            return 0;
    }
}

static int stream(struct source *from, bool has_halves, json_fn *fn, void *ctx, struct err *e)
{
    struct stream s = { .fn = fn, .ctx = ctx, .e = e, .has_halves = has_halves };
    struct memory m;
    int rc;

    m.all.prev = m.all.next = &m.all;
    m.too_long = false;
    rc = feed(&s, &m, from);
    memory_free_all(&m);
    return rc;
}

static int refuse_empty(uint64_t at, struct err *e)
{
    err_set(e, ERR_FORMAT, "the JSON text is empty");
    return err_at(e, NULL, at, NULL);
}

int json_stream(int fd, uint64_t size, uint64_t from, uint64_t len, json_fn *fn, void *ctx,
                struct err *e)
{
    struct reader r = { 0 };
    struct source source = { .file = &r, .pos = from, .end = from + len };
    int rc;

    if (len == 0)
        return refuse_empty(from, e);
    if (reader_open(&r, fd, size, PIECE, e) != 0)
        return -1;
    reader_seek(&r, from);
    rc = stream(&source, false, fn, ctx, e);
    reader_close(&r);
    return rc;
}

int json_stream_text(const char *text, size_t len, json_fn *fn, void *ctx, struct err *e)
{
    struct source source = { .text = text, .end = len };

    return len > 0 ? stream(&source, false, fn, ctx, e) : refuse_empty(0, e);
}

int json_stream_halves(const char *text, size_t len, json_fn *fn, void *ctx, struct err *e)
{
    struct source source = { .text = text, .end = len };

    return len > 0 ? stream(&source, true, fn, ctx, e) : refuse_empty(0, e);
}
