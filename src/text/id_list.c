/* See id_list.h. */
#include "config.h"

#include "src/text/id_list.h"

#include <stdlib.h>
#include <string.h>

#include "src/text/prompt.h"

#define SHOWN 20 /* bytes of the text that a message quotes */

/* The state of the parser; a piece of text may end inside an id. */
struct reader {
    const char *name;
    uint32_t n_vocab;
    uint32_t *ids; /* [n] */
    size_t n, room, max;
    uint64_t offset; /* offset of the next byte */
    uint64_t from;   /* offset of the current id */
    uint64_t id;
    size_t n_digit; /* digits of the current id; 0: between ids */
    char shown[SHOWN];
};

static bool is_between(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int not_an_id(const struct reader *r, const char *rest, size_t n, struct err *e)
{
    size_t n_shown = r->n_digit < SHOWN ? r->n_digit : SHOWN;

    n = n < SHOWN - n_shown ? n : SHOWN - n_shown;
    err_set(e, ERR_FORMAT, "\"%.*s%.*s\" is not a token id", (int)n_shown, r->shown, (int)n,
            rest);
    return err_at(e, r->name, r->n_digit > 0 ? r->from : r->offset, NULL);
}

static int end_id(struct reader *r, struct err *e)
{
    if (r->id >= r->n_vocab) {
        err_set(e, ERR_FORMAT, "token id %.*s is outside the vocabulary of %u",
                (int)(r->n_digit < SHOWN ? r->n_digit : SHOWN), r->shown, r->n_vocab);
        return err_at(e, r->name, r->from, NULL);
    }
    if (r->n == r->max) {
        err_set(e, ERR_CONTEXT, "too many ids; the limit is %zu", r->max);
        return err_at(e, r->name, r->from, NULL);
    }
    if (r->n == r->room) {
        size_t room = r->room < 1024 ? 1024 : r->room * 2;
        uint32_t *more;

        room = room < r->max ? room : r->max;
        more = realloc(r->ids, room * sizeof *more);
        if (more == NULL)
            return err_memory(e, "%zu ids", room);
        r->ids = more;
        r->room = room;
    }
    r->ids[r->n++] = (uint32_t)r->id;
    r->n_digit = 0;
    r->id = 0;
    return 0;
}

static int take(void *ctx, const char *text, size_t len, struct err *e)
{
    struct reader *r = ctx;

    for (size_t i = 0; i < len; i++, r->offset++) {
        char c = text[i];

        if (c >= '0' && c <= '9') {
            if (r->n_digit == 0)
                r->from = r->offset;
            if (r->n_digit < SHOWN)
                r->shown[r->n_digit] = c;
            r->n_digit++;
            if (r->id <= UINT32_MAX)
                r->id = r->id * 10 + (uint64_t)(c - '0');
        } else if (!is_between(c)) {
            return not_an_id(r, text + i, len - i, e);
        } else if (r->n_digit > 0 && end_id(r, e) != 0) {
            return -1;
        }
    }
    return 0;
}

static int finish(struct reader *r, int rc, uint32_t **out, size_t *n, struct err *e)
{
    if (rc == 0 && r->n_digit > 0)
        rc = end_id(r, e);
    if (rc != 0) {
        free(r->ids);
        r->ids = NULL;
        r->n = 0;
    }
    *out = r->ids;
    *n = r->n;
    return rc;
}

int id_list_parse(const char *name, const char *text, size_t n, uint32_t n_vocab,
                  uint32_t **out, size_t *n_id, struct err *e)
{
    struct reader r = { .name = name, .n_vocab = n_vocab, .max = SIZE_MAX / sizeof *r.ids };

    return finish(&r, take(&r, text, n, e), out, n_id, e);
}

int id_list_read(const char *path, uint32_t n_vocab, size_t max, uint32_t **out, size_t *n,
                 struct err *e)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct reader r = { .name = name, .n_vocab = n_vocab, .max = max };
    int rc = finish(&r, prompt_stream(path, take, &r, e), out, n, e);

    if (rc == 0 && *n == 0) {
        err_set(e, ERR_FORMAT, "contains no token ids");
        rc = err_at(e, name, ERR_NO_OFFSET, NULL);
    }
    return rc;
}
