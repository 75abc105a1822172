#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "engine/format/json.h"
#include "engine/format/reader.h"

#define PIECE ((size_t)64 << 10)

struct stream {
    json_fn *fn;
    void *ctx;
    struct err *e;
    unsigned depth;
    bool stopped; /* fn or a limit ended it, *e is set */
    char key[64]; /* the one read last, for messages */
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

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    struct stream *s = ctx;

    return pass(s, JSON_STRING, text, len, s->depth);
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    struct stream *s = ctx;
    size_t n = len < sizeof s->key - 1 ? len : sizeof s->key - 1;

    memcpy(s->key, text, n);
    s->key[n] = '\0';
    return pass(s, JSON_KEY, text, len, s->depth);
}

static int enter(struct stream *s, enum json_event event)
{
    if (s->depth == JSON_MAX_DEPTH) {
        err_set(s->e, ERR_FORMAT, "JSON nested more than %d deep", JSON_MAX_DEPTH);
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
 * The largest piece of memory that yajl has asked for: its buffer for a string that goes
 * over a piece's end.  yajl does not survive an allocation that fails, so the length is
 * noted here and judged between two pieces, which bounds it by the limit and one doubling.
 */
static _Thread_local size_t largest;

static void *count_malloc(void *ctx, size_t n)
{
    (void)ctx;
    largest = n > largest ? n : largest;
    return malloc(n);
}

static void *count_realloc(void *ctx, void *p, size_t n)
{
    (void)ctx;
    largest = n > largest ? n : largest;
    return realloc(p, n);
}

static void count_free(void *ctx, void *p)
{
    (void)ctx;
    free(p);
}

/* What yajl says, in one line without its newline. */
static void bad_text(struct stream *s, yajl_handle h, uint64_t at)
{
    unsigned char *why = yajl_get_error(h, 0, NULL, 0);
    size_t n = why != NULL ? strcspn((const char *)why, "\n") : 0;

    err_set(s->e, ERR_FORMAT, "is no JSON text: %.*s%s%s%s", (int)n,
            why != NULL ? (const char *)why : "", s->key[0] != '\0' ? ", after \"" : "", s->key,
            s->key[0] != '\0' ? "\"" : "");
    if (why != NULL)
        yajl_free_error(h, why);
    err_at(s->e, NULL, at, NULL);
}

static int feed(struct stream *s, yajl_handle h, struct reader *r, uint64_t end)
{
    yajl_status status = yajl_status_ok;

    while (status == yajl_status_ok && r->pos < end) {
        uint64_t start = r->pos;
        size_t n = end - start < PIECE ? (size_t)(end - start) : PIECE;
        const unsigned char *p = reader_take(r, n, s->e);

        if (p == NULL)
            return -1;
        status = yajl_parse(h, p, n);
        if (s->stopped)
            return err_at(s->e, NULL, start + yajl_get_bytes_consumed(h), NULL);
        if (status != yajl_status_ok)
            bad_text(s, h, start + yajl_get_bytes_consumed(h));
        else if (largest > 2 * JSON_MAX_STRING) {
            err_set(s->e, ERR_FORMAT, "a string of more than %zu MiB", JSON_MAX_STRING >> 20);
            return err_at(s->e, NULL, start, NULL);
        }
    }
    if (status == yajl_status_ok) {
        status = yajl_complete_parse(h);
        if (s->stopped)
            return err_at(s->e, NULL, end, NULL);
        if (status != yajl_status_ok)
            bad_text(s, h, end);
    }
    return status == yajl_status_ok ? 0 : -1;
}

int json_stream(int fd, uint64_t size, uint64_t from, uint64_t len, json_fn *fn, void *ctx,
                struct err *e)
{
    struct stream s = { .fn = fn, .ctx = ctx, .e = e };
    yajl_alloc_funcs memory = { count_malloc, count_realloc, count_free, NULL };
    struct reader r = { 0 };
    yajl_handle h;
    int rc;

    if (len == 0) {
        err_set(e, ERR_FORMAT, "the JSON text is empty");
        return err_at(e, NULL, from, NULL);
    }
    if (reader_open(&r, fd, size, PIECE, e) != 0)
        return -1;
    reader_seek(&r, from);
    largest = 0;
    h = yajl_alloc(&callbacks, &memory, &s);
    if (h == NULL) {
        reader_close(&r);
        return err_set(e, ERR_MEMORY, "no memory for a JSON reader");
    }
    rc = feed(&s, h, &r, from + len);
    yajl_free(h);
    reader_close(&r);
    return rc;
}
