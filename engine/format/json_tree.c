/*
 * Builds a tree from the event stream.  Nodes, keys and texts are freed with the document.
 *
 * Nothing recurses, neither building nor freeing, so a deeply nested file cannot exhaust the
 * stack.
 */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/halves.h"
#include "engine/format/json.h"
#include "engine/format/names.h"

#define MAX_NODE   65536
#define FIRST_ROOM 16 /* most texts are short: a line of a file, a piece of an answer */
#define MOST_ROOM  256

/* Nodes are in chunks, so pointers to them stay valid while more are added. */
struct chunk {
    struct chunk *next;
    uint32_t used, room;
    struct json_node nodes[]; /* [room] */
};

struct json_doc {
    struct name_pool pool;
    struct chunk *chunks;
    uint32_t n_node;
    struct json_node *root;
    /* While building: open containers, their last members, and the key of the next value. */
    struct json_node *open[JSON_MAX_DEPTH + 1], *last[JSON_MAX_DEPTH + 1];
    const char *key;
};

static struct json_node *new_node(struct json_doc *d, struct err *e)
{
    if (d->n_node == MAX_NODE) {
        err_set(e, ERR_FORMAT, "more than %d values", MAX_NODE);
        return NULL;
    }
    if (d->chunks == NULL || d->chunks->used == d->chunks->room) {
        uint32_t room = d->n_node < FIRST_ROOM ? FIRST_ROOM : d->n_node;
        struct chunk *c;

        room = room < MOST_ROOM ? room : MOST_ROOM;
        c = calloc(1, sizeof *c + room * sizeof c->nodes[0]);
        if (c == NULL) {
            err_memory(e, "a JSON text");
            return NULL;
        }
        c->room = room;
        c->next = d->chunks;
        d->chunks = c;
    }
    d->n_node++;
    return &d->chunks->nodes[d->chunks->used++];
}

static enum json_kind kind_of(enum json_event event)
{
    switch (event) {
    case JSON_FALSE:
    case JSON_TRUE: return JSON_IS_BOOL;
    case JSON_NUMBER: return JSON_IS_NUMBER;
    case JSON_STRING: return JSON_IS_STRING;
    case JSON_OBJECT: return JSON_IS_OBJECT;
    case JSON_ARRAY: return JSON_IS_ARRAY;
    case JSON_NULL:
    case JSON_KEY:
    case JSON_OBJECT_END:
    case JSON_ARRAY_END: break;
    }
    return JSON_IS_NULL;
}

static int build(void *ctx, enum json_event event, const char *text, size_t len, unsigned depth,
                 struct err *e)
{
    struct json_doc *d = ctx;
    struct json_node *n;

    if (event == JSON_OBJECT_END || event == JSON_ARRAY_END)
        return 0;
    if (event == JSON_KEY) {
        d->key = name_pool_copy(&d->pool, text, len, e);
        return d->key != NULL ? 0 : -1;
    }
    n = new_node(d, e);
    if (n == NULL)
        return -1;
    n->kind = kind_of(event);
    n->truth = event == JSON_TRUE;
    if (event == JSON_NUMBER || event == JSON_STRING) {
        n->text = name_pool_copy(&d->pool, text, len, e);
        n->len = len;
        if (n->text == NULL)
            return -1;
    }
    if (depth == 0) {
        d->root = n;
    } else {
        struct json_node *in = d->open[depth - 1];

        n->key = in->kind == JSON_IS_OBJECT ? d->key : NULL;
        if (d->last[depth - 1] == NULL)
            in->first = n;
        else
            d->last[depth - 1]->next = n;
        d->last[depth - 1] = n;
        in->n++;
    }
    if (event == JSON_OBJECT || event == JSON_ARRAY) {
        d->open[depth] = n;
        d->last[depth] = NULL;
    }
    return 0;
}

static int new_doc(struct json_doc **out, uint64_t size, struct err *e)
{
    *out = NULL;
    if (size > JSON_MAX_TREE)
        return err_set(e, ERR_FORMAT, "a JSON text of %llu bytes is longer than %llu",
                       (unsigned long long)size, (unsigned long long)JSON_MAX_TREE);
    *out = calloc(1, sizeof **out);
    return *out != NULL ? 0 : err_memory(e, "a JSON text");
}

int json_read(struct json_doc **out, int fd, uint64_t size, struct err *e)
{
    if (new_doc(out, size, e) != 0)
        return -1;
    if (json_stream(fd, size, 0, size, build, *out, e) == 0)
        return 0;
    json_free(*out);
    *out = NULL;
    return -1;
}

int json_parse(struct json_doc **out, const char *text, size_t len, struct err *e)
{
    if (new_doc(out, len, e) != 0)
        return -1;
    if (json_stream_text(text, len, build, *out, e) == 0)
        return 0;
    json_free(*out);
    *out = NULL;
    return -1;
}

int json_parse_halves(struct json_doc **out, const char *text, size_t len, struct err *e)
{
    char *copy;
    int rc;

    if (new_doc(out, len, e) != 0)
        return -1;
    copy = malloc(len + 1);
    rc = copy == NULL ? err_memory(e, "a JSON text")
                      : json_stream_halves(copy, halves_from_json(text, len, copy), build, *out, e);
    free(copy);
    if (rc == 0)
        return 0;
    json_free(*out);
    *out = NULL;
    return -1;
}

void json_free(struct json_doc *d)
{
    if (d == NULL)
        return;
    while (d->chunks != NULL) {
        struct chunk *next = d->chunks->next;

        free(d->chunks);
        d->chunks = next;
    }
    name_pool_free(&d->pool);
    free(d);
}

const struct json_node *json_root(const struct json_doc *d)
{
    return d != NULL ? d->root : NULL;
}

const struct json_node *json_member(const struct json_node *n, const char *key)
{
    const struct json_node *found = NULL;

    if (n == NULL || n->kind != JSON_IS_OBJECT)
        return NULL;
    for (const struct json_node *m = n->first; m != NULL; m = m->next)
        if (strcmp(m->key, key) == 0)
            found = m;
    return found;
}

const struct json_node *json_get(const struct json_node *n, const char *key)
{
    const struct json_node *m = json_member(n, key);

    return m == NULL || m->kind == JSON_IS_NULL ? NULL : m;
}

/* A program with a locale may expect a comma in numbers; JSON never has one. */
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double parse_number(const char *text, char **end)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_locale);
    return c_locale != (locale_t)0 ? strtod_l(text, end, c_locale) : strtod(text, end);
}

bool json_as_float(const struct json_node *n, double *out)
{
    char *end;
    double v;

    if (n == NULL || n->kind != JSON_IS_NUMBER)
        return false;
    v = parse_number(n->text, &end);
    if (*end != '\0' || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool json_as_int(const struct json_node *n, int64_t *out)
{
    char *end;
    double v;

    if (n == NULL || n->kind != JSON_IS_NUMBER)
        return false;
    errno = 0;
    *out = strtoll(n->text, &end, 10);
    if (*end == '\0')
        return errno == 0;
    /* 2.0 and 1e3 are integers, too, as far as a double is exact. */
    if (!json_as_float(n, &v) || v != floor(v) || fabs(v) > 9007199254740992.0)
        return false;
    *out = (int64_t)v;
    return true;
}

bool json_as_bool(const struct json_node *n, bool *out)
{
    if (n == NULL || n->kind != JSON_IS_BOOL)
        return false;
    *out = n->truth;
    return true;
}

const char *json_as_string(const struct json_node *n)
{
    if (n == NULL || n->kind != JSON_IS_STRING || memchr(n->text, '\0', n->len) != NULL)
        return NULL;
    return n->text;
}
