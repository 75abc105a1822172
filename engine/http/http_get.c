/* Whole texts and ranges of bytes, requested again after failures that pass. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/http/http.h"

#define TEXT_ATTEMPTS 4

/* ---- texts ---- */

struct text {
    char *bytes;
    size_t n, room, max;
    bool is_too_long;
};

static size_t keep_text(struct http_request *r, const char *data, size_t n)
{
    struct text *t = r->ctx;

    if (n > t->max - t->n) {
        t->is_too_long = true;
        return HTTP_STOP;
    }
    if (n >= t->room - t->n) {
        size_t room = (t->n + n) * 2 + 4096;
        char *larger = realloc(t->bytes, room);

        if (larger == NULL)
            return HTTP_STOP;
        t->bytes = larger;
        t->room = room;
    }
    memcpy(t->bytes + t->n, data, n);
    t->n += n;
    t->bytes[t->n] = '\0';
    return n;
}

static int wait_for_hold(struct http *h, struct err *e)
{
    int ms;

    while ((ms = http_held_ms(h)) > 0)
        if (http_wait(h, ms < 1000 ? ms : 1000, e) != 0)
            return -1;
    return 0;
}

/* One request.  is_stopped in *r if the sink ended it. */
static int get_once(struct http *h, struct http_request *r, struct err *e)
{
    int rc = http_start(h, r, e);

    while (rc == 0 && !r->is_done)
        rc = http_wait(h, 1000, e);
    http_end(r);
    return rc;
}

/* Requests until one is answered, or fails for good.  *n is what a sink counted. */
static int get(struct http *h, struct http_request *r, size_t *n, struct err *e)
{
    for (uint32_t i = 1;; i++) {
        *n = 0;
        if (wait_for_hold(h, e) != 0 || get_once(h, r, e) != 0)
            return -1;
        if (!http_is_transient(r) || i == TEXT_ATTEMPTS || !http_hold(h, i, r))
            break;
    }
    if (r->err.code == ERR_NONE)
        return 0;
    *e = r->err;
    return -1;
}

int http_get_text(struct http *h, const char *url, size_t max, char **text, size_t *len,
                  struct http_reply *reply, struct err *e)
{
    struct text t = { .max = max };
    struct http_request r = { .url = url, .sink = keep_text, .ctx = &t };
    int rc = get(h, &r, &t.n, e);

    *text = NULL;
    *len = 0;
    *reply = r.reply;
    if (rc == 0 && r.is_stopped)
        rc = t.is_too_long
                 ? err_set(e, ERR_FORMAT, "the answer of %s is longer than %zu bytes",
                           http_that(h), max)
                 : err_memory(e, "the answer of %s", http_that(h));
    if (rc == 0 && r.reply.status == 200 && t.bytes == NULL) /* an empty text */
        rc = (t.bytes = calloc(1, 1)) != NULL ? 0 : err_memory(e, "the answer of %s", http_that(h));
    if (rc != 0 || r.reply.status != 200) {
        free(t.bytes);
        return rc;
    }
    *text = t.bytes;
    *len = t.n;
    return 0;
}

/* ---- ranges ---- */

struct part {
    char *data;
    size_t n;
};

static size_t keep_part(struct http_request *r, const char *data, size_t n)
{
    struct part *p = r->ctx;
    size_t left = (size_t)(r->to - r->from) - p->n;
    bool is_right = r->reply.status == 206 ? r->reply.from == r->from : r->from == 0;

    if (!is_right)
        return HTTP_STOP;
    memcpy(p->data + p->n, data, n < left ? n : left);
    p->n += n < left ? n : left;
    return n <= left ? n : HTTP_STOP;
}

int http_get_range(struct http *h, const char *url, uint64_t from, uint64_t to, void *data,
                   struct http_reply *reply, struct err *e)
{
    struct part p = { .data = data };
    struct http_request r = {
        .url = url, .from = from, .to = to, .sink = keep_part, .ctx = &p
    };
    char text[80];

    int rc = get(h, &r, &p.n, e);

    *reply = r.reply;
    if (rc != 0)
        return -1;
    http_status_text(&r.reply, text, sizeof text);
    if (r.reply.status / 100 != 2)
        return err_set(e, ERR_IO, "the server %s", text);
    if (p.n < to - from)
        return err_set(e, ERR_IO, "the server sends no ranges");
    return 0;
}
