#include "config.h"

#include "engine/hub/pull_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/hub/gguf_walk.h"

#define FIRST_BYTES (256 * KIB) /* of the first request for a header; later ones are larger */
#define MOST_BYTES  (8 * MIB)
#define AROUND      (64 * KIB) /* bytes by which a list of tensors may be elsewhere */
#define HEAD_BYTES  24         /* magic, version, counts of tensors and keys */
#define DATA_ALIGN  32
#define SMALL_FILE  (32 * MIB)
#define KIND_BYTES  16384 /* general.type is near the beginning */

/* ---- fetching ---- */

static int fetch(const struct pull_remote *r, uint64_t from, uint64_t to, void *data,
                 struct err *e)
{
    struct http_reply reply;

    if (to - from > *r->left)
        return err_set(e, ERR_UNSUPPORTED, "more headers are not fetched");
    *r->left -= to - from;
    if (http_get_range(r->http, r->url, from, to, data, &reply, e) == 0)
        return 0;
    /* The file itself is in the list, so a missing one is another fault. */
    if (reply.status == 401 || reply.status == 403)
        pull_explain(&reply, r->endpoint, r->repo, r->has_token, e);
    return -1;
}

/* Fetch a header completely, in requests that grow. */
static int fetch_header(const struct pull_remote *r, struct pull_header *h, struct err *e)
{
    struct gguf_walk w = { 0 };
    uint64_t step = FIRST_BYTES;

    while (!w.is_done) {
        uint64_t to = h->n + step < r->size ? h->n + step : r->size;
        unsigned char *larger = to > h->n && to <= GGUF_WALK_MAX ? realloc(h->bytes, to) : NULL;

        if (larger == NULL)
            return err_set(e, ERR_FORMAT, "has a header that is too long, or is cut");
        h->bytes = larger;
        if (fetch(r, h->n, to, h->bytes + h->n, e) != 0)
            return -1;
        h->n = w.n = to;
        w.p = h->bytes;
        gguf_walk_on(&w);
        if (w.is_bad)
            return err_set(e, ERR_FORMAT, "is not a GGUF file");
        step = step * 4 < MOST_BYTES ? step * 4 : MOST_BYTES;
    }
    h->tensors = w.tensors;
    h->end = w.at;
    h->n_tensor = w.n_tensor;
    return 0;
}

/* ---- files ---- */

static int write_all(int fd, const unsigned char *data, uint64_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, data, (size_t)n);

        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0) {
            data += put;
            n -= (uint64_t)put;
        }
    }
    return 0;
}

/* Write a file of `size` bytes that begins with two texts. */
static int write_file(const char *path, uint64_t size, const unsigned char *a, uint64_t n_a,
                      const unsigned char *b, uint64_t n_b, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write_all(fd, a, n_a) == 0 && write_all(fd, b, n_b) == 0 &&
                      ftruncate(fd, (off_t)size) == 0;

    if (!is_written) {
        err_sys(e, "could not write");
        err_at(e, path, ERR_NO_OFFSET, NULL);
    }
    if (fd >= 0)
        close(fd);
    return is_written ? 0 : -1;
}

/* ---- the list of tensors alone ---- */

/* Do n_tensor entries from byte `at` of the walk name the model's tensors in order?  Returns
 * the byte after them, or 0. */
static uint64_t match_tensors(struct gguf_walk *w, uint64_t at, const struct pull_header *model)
{
    struct gguf_walk known = { .p = model->bytes, .n = model->end, .at = model->tensors };

    w->at = at;
    for (uint64_t i = 0; i < model->n_tensor; i++) {
        uint64_t n = gguf_walk_tensor(&known);

        /* All but type and offset is the same. */
        if (n > w->n - w->at ||
            memcmp(w->p + w->at, model->bytes + known.at, n - GGUF_WALK_FIXED) != 0)
            return 0;
        w->at += n;
        known.at += n;
    }
    return w->at;
}

/* Returns the first byte of the list in the walk's bytes; 0 with *end if there is none. */
static uint64_t find_tensors(struct gguf_walk *w, const struct pull_header *model,
                             uint64_t *end)
{
    struct gguf_walk known = { .p = model->bytes, .n = model->end, .at = model->tensors };
    uint64_t n = gguf_walk_tensor(&known), at = 0;

    *end = 0;
    while (n > GGUF_WALK_FIXED && at < w->n) {
        const unsigned char *found =
            memmem(w->p + at, w->n - at, model->bytes + model->tensors, n - GGUF_WALK_FIXED);

        if (found == NULL)
            return 0;
        at = (uint64_t)(found - w->p);
        *end = match_tensors(w, at, model);
        if (*end > 0)
            return at;
        at++;
    }
    return 0;
}

/* Write the file from the model's keys and its own list.  Returns 1, or 0 if the list is not
 * where the model's is. */
static int borrow(const struct pull_remote *r, const char *path,
                  const struct pull_header *model, struct err *e)
{
    uint64_t from = model->tensors > AROUND ? model->tensors - AROUND : 0;
    uint64_t to = model->end + AROUND < r->size ? model->end + AROUND : r->size;
    uint64_t begin, end, n, size;
    struct gguf_walk w = { 0 };
    unsigned char *bytes;
    int rc = 0;

    if (model->n_tensor == 0 || from >= to)
        return 0;
    bytes = malloc(to - from);
    if (bytes == NULL)
        return err_memory(e, "a header");
    w.p = bytes;
    w.n = to - from;
    if (fetch(r, from, to, bytes, e) != 0) {
        rc = -1;
    } else {
        begin = find_tensors(&w, model, &end);
        n = end - begin;
        if (end > 0) {
            /* The weights begin after each list, aligned. */
            size = r->size - align_up(from + end, DATA_ALIGN) +
                   align_up(model->tensors + n, DATA_ALIGN);
            rc = write_file(path, size, model->bytes, model->tensors, bytes + begin, n, e) == 0
                     ? 1
                     : -1;
        }
    }
    free(bytes);
    return rc;
}

int pull_header_gguf(const struct pull_remote *r, const char *path, struct pull_header *model,
                     struct err *e)
{
    struct pull_header own = { 0 };
    int rc = model != NULL && model->bytes != NULL ? borrow(r, path, model, e) : 0;

    if (rc != 0)
        return rc > 0 ? 0 : -1;
    rc = fetch_header(r, &own, e);
    if (rc == 0)
        rc = write_file(path, r->size, own.bytes, own.n, NULL, 0, e);
    if (rc == 0 && model != NULL && model->bytes == NULL)
        *model = own;
    else
        pull_header_free(&own);
    return rc;
}

void pull_header_free(struct pull_header *h)
{
    free(h->bytes);
    *h = (struct pull_header){ 0 };
}

int pull_header_safetensors(const struct pull_remote *r, const char *path, struct err *e)
{
    uint64_t n = r->size < FIRST_BYTES ? r->size : FIRST_BYTES, need = 8;
    unsigned char *bytes = malloc(FIRST_BYTES);
    int rc = bytes != NULL ? fetch(r, 0, n, bytes, e) : err_memory(e, "a header");

    for (unsigned i = 0; rc == 0 && i < 8 && i < n; i++)
        need += (uint64_t)bytes[i] << (8 * i);
    if (rc == 0 && (need < 8 || need > r->size || need > GGUF_WALK_MAX))
        rc = err_set(e, ERR_FORMAT, "is not a safetensors file");
    if (rc == 0 && need > n) {
        unsigned char *larger = realloc(bytes, need);

        if (larger == NULL) {
            rc = err_memory(e, "a header");
        } else {
            bytes = larger;
            rc = fetch(r, n, need, bytes + n, e);
            n = need;
        }
    }
    if (rc == 0)
        rc = write_file(path, r->size, bytes, n, NULL, 0, e);
    free(bytes);
    return rc;
}

int pull_header_text(const struct pull_remote *r, char **text, struct err *e)
{
    *text = r->size <= SMALL_FILE ? malloc(r->size + 1) : NULL;
    if (*text == NULL)
        return err_set(e, ERR_FORMAT, "is too large for a file of settings");
    (*text)[r->size] = '\0';
    if (r->size == 0 || fetch(r, 0, r->size, *text, e) == 0)
        return 0;
    free(*text);
    *text = NULL;
    return -1;
}

int pull_header_all(const struct pull_remote *r, const char *path, struct err *e)
{
    char *text;
    int rc = pull_header_text(r, &text, e);

    if (rc == 0)
        rc = write_file(path, r->size, (unsigned char *)text, r->size, NULL, 0, e);
    free(text);
    return rc;
}

int pull_header_kind(const struct pull_remote *r, bool *is_model, struct err *e)
{
    unsigned char head[KIND_BYTES];
    uint64_t n = r->size < KIND_BYTES ? r->size : KIND_BYTES;

    *is_model = false;
    if (n == 0)
        return 0;
    if (fetch(r, 0, n, head, e) != 0)
        return -1;
    *is_model = gguf_walk_is_model(head, n);
    return 0;
}
