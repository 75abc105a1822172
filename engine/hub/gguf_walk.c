#include "config.h"

#include "engine/hub/gguf_walk.h"

#include <string.h>

#include "engine/format/gguf.h"

#define HEAD_BYTES 24 /* magic, version, counts of tensors and keys */

static bool has(const struct gguf_walk *w, uint64_t n)
{
    return w->at <= w->n && n <= w->n - w->at;
}

static uint64_t number(const struct gguf_walk *w, uint64_t at, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)w->p[w->at + at + i] << (8 * i);
    return v;
}

/* Skip n bytes, which may not be there yet. */
static bool skip(struct gguf_walk *w, uint64_t n)
{
    if (n > GGUF_WALK_MAX || w->at + n > GGUF_WALK_MAX) {
        w->is_bad = true;
        return false;
    }
    w->at += n;
    return true;
}

static bool bad(struct gguf_walk *w)
{
    w->is_bad = true;
    return false;
}

/* Each step returns false if more bytes are needed, or the header is bad. */
static bool step_string(struct gguf_walk *w)
{
    if (!has(w, 8))
        return false;
    w->n_element--;
    return skip(w, number(w, 0, 8)) && skip(w, 8);
}

/* An array; the type of its elements is at byte `at`. */
static bool step_array(struct gguf_walk *w, uint64_t at)
{
    uint64_t type, count;

    if (!has(w, at + 12))
        return false;
    type = number(w, at, 4);
    count = number(w, at + 4, 8);
    if (type == GGUF_ARRAY || type >= GGUF_TYPE_COUNT || count > GGUF_WALK_MAX)
        return bad(w);
    w->n_key--;
    if (type != GGUF_STRING)
        return skip(w, at + 12 + count * gguf_type_bytes((enum gguf_type)type));
    w->n_element = count;
    return skip(w, at + 12);
}

static bool step_key(struct gguf_walk *w)
{
    uint64_t at, type;

    if (!has(w, 8))
        return false;
    at = number(w, 0, 8);
    if (at > GGUF_WALK_MAX)
        return bad(w);
    at += 8 + 4;
    if (!has(w, at))
        return false;
    type = number(w, at - 4, 4);
    if (type == GGUF_ARRAY)
        return step_array(w, at);
    if (type == GGUF_STRING && !has(w, at + 8))
        return false;
    if (type >= GGUF_TYPE_COUNT)
        return bad(w);
    w->n_key--;
    return type == GGUF_STRING ? skip(w, number(w, at, 8)) && skip(w, at + 8)
                               : skip(w, at + gguf_type_bytes((enum gguf_type)type));
}

uint64_t gguf_walk_tensor(struct gguf_walk *w)
{
    uint64_t at, n_dims;

    if (!has(w, 8))
        return 0;
    at = number(w, 0, 8);
    if (at > GGUF_WALK_MAX)
        return bad(w);
    at += 8;
    if (!has(w, at + 4))
        return 0;
    n_dims = number(w, at, 4);
    if (n_dims == 0 || n_dims > 4)
        return bad(w);
    at += 4 + 8 * n_dims + GGUF_WALK_FIXED;
    return has(w, at) ? at : 0;
}

static bool step_head(struct gguf_walk *w)
{
    if (!has(w, HEAD_BYTES))
        return false;
    w->n_tensor = number(w, 8, 8);
    w->n_key = number(w, 16, 8);
    if (memcmp(w->p, "GGUF", 4) != 0 || number(w, 4, 4) < 2 || number(w, 4, 4) > 3 ||
        w->n_tensor > GGUF_MAX_TENSOR || w->n_key > GGUF_MAX_KEY)
        return bad(w);
    return skip(w, HEAD_BYTES);
}

static bool step_tensor(struct gguf_walk *w)
{
    uint64_t n = gguf_walk_tensor(w);

    if (n == 0)
        return false;
    w->n_left--;
    return skip(w, n);
}

void gguf_walk_on(struct gguf_walk *w)
{
    bool more = w->at > 0 || step_head(w);

    while (more && (w->n_element > 0 || w->n_key > 0))
        more = w->n_element > 0 ? step_string(w) : step_key(w);
    if (more && w->tensors == 0) {
        w->tensors = w->at;
        w->n_left = w->n_tensor;
    }
    while (more && w->n_left > 0)
        more = step_tensor(w);
    w->is_done = more && w->at <= w->n;
}

/* If the next key is the text `name`, point *value to its text of *len bytes. */
static bool string_at(const struct gguf_walk *w, const char *name, const unsigned char **value,
                      uint64_t *len)
{
    uint64_t n = strlen(name), at = 8 + n + 4;

    if (!has(w, at + 8) || number(w, 0, 8) != n || memcmp(w->p + w->at + 8, name, n) != 0 ||
        number(w, at - 4, 4) != GGUF_STRING)
        return false;
    *len = number(w, at, 8);
    *value = w->p + w->at + at + 8;
    return *len <= GGUF_WALK_MAX && has(w, at + 8 + *len);
}

static bool ends_in(const unsigned char *text, uint64_t n, const char *tail)
{
    uint64_t m = strlen(tail);

    return n >= m && memcmp(text + n - m, tail, m) == 0;
}

bool gguf_walk_is_model(const unsigned char *p, uint64_t n)
{
    struct gguf_walk w = { .p = p, .n = n };
    bool more = step_head(&w), has_arch = false;
    const unsigned char *text;
    uint64_t len;

    while (more && (w.n_element > 0 || w.n_key > 0)) {
        if (w.n_element == 0 && string_at(&w, "general.type", &text, &len))
            return len == 5 && memcmp(text, "model", 5) == 0;
        if (w.n_element == 0 && string_at(&w, "general.architecture", &text, &len)) {
            if (ends_in(text, len, "-assistant"))
                return false;
            has_arch = len != 4 || memcmp(text, "clip", 4) != 0;
        }
        more = w.n_element > 0 ? step_string(&w) : step_key(&w);
    }
    return has_arch && !w.is_bad;
}
