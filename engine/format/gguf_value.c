/* Values by key.  Numbers and short strings come from memory, the rest from the file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/gguf.h"

const struct gguf_value *gguf_find(const struct gguf *g, const char *key)
{
    int64_t i = name_index_find(&g->index, key);

    return i >= 0 ? &g->keys[i].value : NULL;
}

static int wrong_type(const struct gguf_value *v, const char *key, const char *want,
                      struct err *e)
{
    err_set(e, ERR_FORMAT, "has type %s, not %s", gguf_type_name(v->type), want);
    return err_at(e, NULL, v->offset, key);
}

/* Converts to a signed integer; false if type or value do not allow it. */
static bool to_int(const struct gguf_value *v, enum gguf_type type, int64_t *out)
{
    switch (type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64: *out = (int64_t)v->num.u; return v->num.u <= INT64_MAX;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: *out = v->num.i; return true;
    case GGUF_F32:
    case GGUF_BOOL:
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_F64:
    case GGUF_TYPE_COUNT: break;
    }
    return false;
}

static bool to_float(const struct gguf_value *v, enum gguf_type type, double *out)
{
    int64_t i;

    if (type == GGUF_F32 || type == GGUF_F64) {
        *out = v->num.f;
        return true;
    }
    if (!to_int(v, type, &i))
        return false;
    *out = (double)i;
    return true;
}

int gguf_int(const struct gguf *g, const char *key, int64_t *out, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    return to_int(v, v->type, out) ? 1 : wrong_type(v, key, "an integer", e);
}

int gguf_float(const struct gguf *g, const char *key, double *out, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    return to_float(v, v->type, out) ? 1 : wrong_type(v, key, "a number", e);
}

int gguf_bool(const struct gguf *g, const char *key, bool *out, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    if (v->type != GGUF_BOOL)
        return wrong_type(v, key, "bool", e);
    *out = v->num.u != 0;
    return 1;
}

int gguf_string(const struct gguf *g, const char *key, const char **out, size_t *len,
                struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    if (v == NULL)
        return 0;
    if (v->type != GGUF_STRING)
        return wrong_type(v, key, "string", e);
    if (v->data == NULL) {
        err_set(e, ERR_FORMAT, "a text of %llu bytes is too long for this key",
                (unsigned long long)v->count);
        return err_at(e, NULL, v->offset, key);
    }
    *out = (const char *)v->data;
    if (len != NULL)
        *len = (size_t)v->count;
    return 1;
}

int gguf_long_string(const struct gguf *g, const char *key, size_t max, char **out, size_t *len,
                     struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);
    struct reader r;
    char *text;
    int rc;

    if (v == NULL)
        return 0;
    if (v->type != GGUF_STRING)
        return wrong_type(v, key, "string", e);
    if (v->count > max) {
        err_set(e, ERR_FORMAT, "a text of %llu bytes is longer than %zu",
                (unsigned long long)v->count, max);
        return err_at(e, NULL, v->offset, key);
    }
    text = malloc((size_t)v->count + 1);
    if (text == NULL)
        return err_memory(e, "\"%s\"", key);
    text[v->count] = '\0';
    if (v->data != NULL) {
        memcpy(text, v->data, (size_t)v->count);
    } else {
        if (reader_open(&r, g->fd, g->size, 0, e) != 0) {
            free(text);
            return -1;
        }
        reader_seek(&r, v->offset);
        rc = reader_copy(&r, text, (size_t)v->count, e);
        reader_close(&r);
        if (rc != 0) {
            free(text);
            return err_at(e, NULL, v->offset, key);
        }
    }
    *out = text;
    *len = strlen(text); /* some converters count the NUL at the end; llama.cpp stops there, too */
    return 1;
}

static bool kept_element(const struct gguf_value *v, uint64_t i, struct gguf_value *out)
{
    if (v->type != GGUF_ARRAY || v->data == NULL || i >= v->count || v->elem == GGUF_STRING)
        return false;
    *out = (struct gguf_value){ .type = v->elem };
    gguf_decode_number(out, v->elem, v->data + i * gguf_type_bytes(v->elem));
    return true;
}

bool gguf_elem_int(const struct gguf_value *v, uint64_t i, int64_t *out)
{
    struct gguf_value one;

    if (!kept_element(v, i, &one))
        return false;
    if (v->elem == GGUF_BOOL) {
        *out = (int64_t)one.num.u;
        return true;
    }
    return to_int(&one, v->elem, out);
}

bool gguf_elem_float(const struct gguf_value *v, uint64_t i, double *out)
{
    struct gguf_value one;

    return kept_element(v, i, &one) && to_float(&one, v->elem, out);
}

int gguf_array_open(struct gguf_array *a, const struct gguf *g, const char *key, struct err *e)
{
    const struct gguf_value *v = gguf_find(g, key);

    *a = (struct gguf_array){ .key = key };
    if (v == NULL)
        return 0;
    if (v->type != GGUF_ARRAY)
        return wrong_type(v, key, "array", e);
    if (reader_open(&a->reader, g->fd, g->size, 0, e) != 0)
        return -1;
    reader_seek(&a->reader, v->offset);
    a->elem = v->elem;
    a->count = a->left = v->count;
    return 1;
}

void gguf_array_close(struct gguf_array *a)
{
    reader_close(&a->reader);
}

static int wrong_element(const struct gguf_array *a, const char *want, struct err *e)
{
    err_set(e, ERR_FORMAT, "is an array of %s, not of %s", gguf_type_name(a->elem), want);
    return err_at(e, NULL, a->reader.pos, a->key);
}

int gguf_array_string(struct gguf_array *a, const char **text, size_t *len, struct err *e)
{
    uint64_t n, start = a->reader.pos;

    if (a->elem != GGUF_STRING)
        return wrong_element(a, "strings", e);
    if (a->left == 0)
        return 0;
    if (reader_u64(&a->reader, &n, e) != 0)
        return err_at(e, NULL, start, a->key);
    /* The header had this length, but the file may have changed since. */
    if (n > a->reader.capacity)
        err_set(e, ERR_FORMAT, "a text of %llu bytes is longer than %zu", (unsigned long long)n,
                a->reader.capacity);
    *text =
        n <= a->reader.capacity ? (const char *)reader_take(&a->reader, (size_t)n, e) : NULL;
    if (*text == NULL)
        return err_at(e, NULL, start, a->key);
    *len = (size_t)n;
    a->left--;
    return 1;
}

/* Reads the next element, a number of any type. */
static int next_number(struct gguf_array *a, struct gguf_value *v, struct err *e)
{
    const unsigned char *p = reader_take(&a->reader, gguf_type_bytes(a->elem), e);

    if (p == NULL)
        return err_at(e, NULL, a->reader.pos, a->key);
    *v = (struct gguf_value){ .type = a->elem };
    gguf_decode_number(v, a->elem, p);
    a->left--;
    return 1;
}

int gguf_array_int(struct gguf_array *a, int64_t *v, struct err *e)
{
    struct gguf_value value;

    if (a->elem == GGUF_STRING)
        return wrong_element(a, "integers", e);
    if (a->left == 0)
        return 0;
    if (next_number(a, &value, e) != 1)
        return -1;
    if (a->elem == GGUF_BOOL) {
        *v = (int64_t)value.num.u;
        return 1;
    }
    return to_int(&value, a->elem, v) ? 1 : wrong_element(a, "integers", e);
}

int gguf_array_float(struct gguf_array *a, double *v, struct err *e)
{
    struct gguf_value value;

    if (a->elem == GGUF_STRING || a->elem == GGUF_BOOL)
        return wrong_element(a, "numbers", e);
    if (a->left == 0)
        return 0;
    if (next_number(a, &value, e) != 1)
        return -1;
    return to_float(&value, a->elem, v) ? 1 : wrong_element(a, "numbers", e);
}
