#include "config.h"

#include "tests/lib/json_line.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "engine/base/json_text_end.h"

#define MAX_DEPTH 16

struct state {
    struct json_line *open[MAX_DEPTH];
    int depth;
    struct json_line *root;
    char *key;
};

static char *copy(const unsigned char *s, size_t n)
{
    char *out = malloc(n + 1);

    if (out != NULL) {
        memcpy(out, s, n);
        out[n] = '\0';
    }
    return out;
}

static struct json_line *add(struct state *s, enum json_line_kind kind)
{
    struct json_line *v = calloc(1, sizeof *v), *in;

    if (v == NULL)
        return NULL;
    v->kind = kind;
    v->key = s->key;
    s->key = NULL;
    if (s->depth == 0) {
        s->root = v;
        return v;
    }
    in = s->open[s->depth - 1];
    if (in->last != NULL)
        in->last->next = v;
    else
        in->first = v;
    in->last = v;
    in->n++;
    return v;
}

static int on_null(void *ctx)
{
    return add(ctx, LINE_NULL) != NULL;
}

static int on_bool(void *ctx, int b)
{
    struct json_line *v = add(ctx, LINE_BOOL);

    if (v != NULL)
        v->number = b;
    return v != NULL;
}

static int on_integer(void *ctx, long long n)
{
    struct json_line *v = add(ctx, LINE_NUMBER);

    if (v != NULL)
        v->number = n;
    return v != NULL;
}

static int on_double(void *ctx, double x)
{
    return on_integer(ctx, (long long)x);
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
    struct json_line *v = add(ctx, LINE_TEXT);

    if (v != NULL) {
        v->text = copy(text, len);
        v->len = len;
    }
    return v != NULL && v->text != NULL;
}

static int open_one(struct state *s, enum json_line_kind kind)
{
    struct json_line *v = s->depth < MAX_DEPTH ? add(s, kind) : NULL;

    if (v != NULL)
        s->open[s->depth++] = v;
    return v != NULL;
}

static int on_map(void *ctx)
{
    return open_one(ctx, LINE_MAP);
}

static int on_list(void *ctx)
{
    return open_one(ctx, LINE_LIST);
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
    struct state *s = ctx;

    free(s->key);
    s->key = copy(text, len);
    return s->key != NULL;
}

static int on_end(void *ctx)
{
    struct state *s = ctx;

    s->depth--;
    return 1;
}

struct json_line *json_line_parse(const char *text, size_t len)
{
    static const yajl_callbacks calls = {
        .yajl_null = on_null,
        .yajl_boolean = on_bool,
        .yajl_integer = on_integer,
        .yajl_double = on_double,
        .yajl_string = on_string,
        .yajl_start_map = on_map,
        .yajl_map_key = on_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_list,
        .yajl_end_array = on_end,
    };
    struct state s = { .depth = 0 };
    yajl_handle h = yajl_alloc(&calls, NULL, &s);
    bool ok = yajl_parse(h, (const unsigned char *)text, len) == yajl_status_ok &&
              json_text_end(h) == yajl_status_ok;

    yajl_free(h);
    free(s.key);
    if (ok)
        return s.root;
    json_line_free(s.root);
    return NULL;
}

void json_line_free(struct json_line *v)
{
    while (v != NULL) {
        struct json_line *next = v->next;

        json_line_free(v->first);
        free(v->key);
        free(v->text);
        free(v);
        v = next;
    }
}

const struct json_line *json_line_get(const struct json_line *v, const char *key)
{
    for (v = v != NULL ? v->first : NULL; v != NULL; v = v->next)
        if (v->key != NULL && strcmp(v->key, key) == 0)
            return v;
    return NULL;
}

bool json_line_is(const struct json_line *v)
{
    return v != NULL && v->kind == LINE_BOOL && v->number != 0;
}
