#include "config.h"

#include "engine/format/safetensors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/gguf.h"
#include "engine/format/json.h"
#include "engine/format/names.h"
#include "engine/format/reader.h"

#define MAX_DIMS 16

/* clang-format off */
static const struct {
    const char *name;
    unsigned bits;
    int type; /* -1: no id */
} dtypes[] = {
    { "BF16", 16, TYPE_BF16 }, { "F16", 16, TYPE_F16 },  { "F32", 32, TYPE_F32 },
    { "F64", 64, TYPE_F64 },   { "I8", 8, TYPE_I8 },     { "U8", 8, TYPE_I8 },
    { "BOOL", 8, TYPE_I8 },    { "I16", 16, TYPE_I16 },  { "U16", 16, TYPE_I16 },
    { "I32", 32, TYPE_I32 },   { "U32", 32, TYPE_I32 },  { "I64", 64, TYPE_I64 },
    { "U64", 64, TYPE_I64 },   { "C64", 64, -1 },        { "F4", 4, -1 },
    { "F6_E2M3", 6, -1 },      { "F6_E3M2", 6, -1 },     { "F8_E5M2", 8, -1 },
    { "F8_E4M3", 8, TYPE_F8_E4M3 },                      { "F8_E8M0", 8, TYPE_F8_E8M0 },
    { "F8_E4M3FNUZ", 8, -1 },  { "F8_E5M2FNUZ", 8, -1 },
};
/* clang-format on */

enum field { FIELD_NONE, FIELD_DTYPE, FIELD_SHAPE, FIELD_OFFSETS };

struct range {
    uint64_t begin, end; /* relative to the data */
    const char *name;
};

struct header {
    uint64_t size;       /* of the file */
    uint64_t data_start; /* 8 + N */
    safetensors_fn *fn;
    void *ctx;

    /* The entry being read. */
    char name[SAFETENSORS_MAX_NAME + 1];
    bool in_metadata, in_array;
    enum field field;
    int dtype; /* index, or -1 */
    uint32_t n_shape, n_offset;
    bool has_shape, has_offsets;
    uint64_t shape[MAX_DIMS], offsets[2];

    /* All entries, to check that they fill the file. */
    struct name_pool pool;
    struct name_index index;
    struct range *ranges;
    uint32_t n_range, room;
};

static int bad(struct header *h, struct err *e)
{
    return err_at(e, NULL, ERR_NO_OFFSET, h->name[0] != '\0' ? h->name : "header");
}

/* Parses a plain decimal number below 2^63. */
static bool parse_size(const char *text, size_t len, uint64_t *v)
{
    *v = 0;
    if (len == 0 || (len > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(*v, (uint64_t)10, v) ||
            __builtin_add_overflow(*v, (uint64_t)(text[i] - '0'), v))
            return false;
    }
    return *v <= INT64_MAX;
}

static int begin_entry(struct header *h, const char *text, size_t len, struct err *e)
{
    if (len == 0 || len > SAFETENSORS_MAX_NAME || memchr(text, '\0', len) != NULL) {
        h->name[0] = '\0';
        err_set(e, ERR_FORMAT, "a tensor's name is empty, contains a NUL or has over %d bytes",
                SAFETENSORS_MAX_NAME);
        return bad(h, e);
    }
    memcpy(h->name, text, len);
    h->name[len] = '\0';
    h->in_metadata = strcmp(h->name, "__metadata__") == 0;
    h->field = FIELD_NONE;
    h->dtype = -1;
    h->n_shape = h->n_offset = 0;
    h->has_shape = h->has_offsets = false;
    return 0;
}

static int begin_field(struct header *h, const char *text, size_t len)
{
    static const char *const names[] = {
        [FIELD_DTYPE] = "dtype", [FIELD_SHAPE] = "shape", [FIELD_OFFSETS] = "data_offsets"
    };

    h->field = FIELD_NONE;
    for (enum field f = FIELD_DTYPE; f <= FIELD_OFFSETS; f++)
        if (strlen(names[f]) == len && memcmp(text, names[f], len) == 0)
            h->field = f;
    return 0;
}

static int take_dtype(struct header *h, const char *text, size_t len, struct err *e)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strlen(dtypes[i].name) == len && memcmp(text, dtypes[i].name, len) == 0)
            h->dtype = (int)i;
    if (h->dtype >= 0)
        return 0;
    err_set(e, ERR_UNSUPPORTED, "dtype \"%.*s\" is unknown", len < 40 ? (int)len : 40, text);
    return bad(h, e);
}

static int take_number(struct header *h, const char *text, size_t len, struct err *e)
{
    bool is_shape = h->field == FIELD_SHAPE;
    uint64_t v;

    if (!parse_size(text, len, &v)) {
        err_set(e, ERR_FORMAT, "%.*s in %s is not an integer from 0 to 2^63 - 1",
                len < 40 ? (int)len : 40, text, is_shape ? "shape" : "data_offsets");
        return bad(h, e);
    }
    if (is_shape ? h->n_shape == MAX_DIMS : h->n_offset == 2) {
        err_set(e, ERR_FORMAT,
                is_shape ? "shape has more than %d dimensions"
                         : "data_offsets has more than %d numbers",
                is_shape ? MAX_DIMS : 2);
        return bad(h, e);
    }
    if (is_shape)
        h->shape[h->n_shape++] = v;
    else
        h->offsets[h->n_offset++] = v;
    return 0;
}

/* Computes the bytes of the shape, and the shape in our order. */
static int measure(const struct header *h, struct safetensors_entry *t, struct err *e)
{
    uint64_t elements = 1, bits;

    for (uint32_t i = 0; i < h->n_shape; i++) {
        uint64_t dim = h->shape[h->n_shape - 1 - i];

        if (__builtin_mul_overflow(elements, dim, &elements))
            return err_set(e, ERR_FORMAT, "the shape has more values than can be counted");
        if (i < 4)
            t->ne[i] = dim;
        else
            t->ne[3] *= dim;
    }
    t->n_dims = h->n_shape < 1 ? 1 : h->n_shape > 4 ? 4 : h->n_shape;
    if (__builtin_mul_overflow(elements, (uint64_t)dtypes[h->dtype].bits, &bits) ||
        bits % 8 != 0)
        return err_set(e, ERR_FORMAT, "shape and dtype do not give a whole number of bytes");
    t->bytes = bits / 8;
    if (t->has_type)
        return 0;
    t->type = TYPE_I8;
    t->n_dims = 1;
    t->ne[0] = t->bytes;
    t->ne[1] = t->ne[2] = t->ne[3] = 1;
    return 0;
}

static int note_range(struct header *h, struct err *e)
{
    char *name = name_pool_copy(&h->pool, h->name, strlen(h->name), e);
    int entered = name != NULL ? name_index_add(&h->index, name, h->n_range, e) : -1;

    if (entered > 0)
        err_set(e, ERR_FORMAT, "the name appears twice");
    if (entered != 0)
        return -1;
    if (h->n_range == h->room) {
        uint32_t room = h->room != 0 ? h->room * 2 : 512;
        struct range *ranges;

        if (h->n_range >= GGUF_MAX_TENSOR)
            return err_set(e, ERR_FORMAT, "more than %d tensors", GGUF_MAX_TENSOR);
        ranges = realloc(h->ranges, room * sizeof *ranges);
        if (ranges == NULL)
            return err_memory(e, "%u tensors", room);
        h->ranges = ranges;
        h->room = room;
    }
    h->ranges[h->n_range++] = (struct range){ h->offsets[0], h->offsets[1], name };
    return 0;
}

static int end_entry(struct header *h, struct err *e)
{
    struct safetensors_entry t = { .name = h->name, .ne = { 1, 1, 1, 1 } };
    uint64_t data = h->size - h->data_start;

    if (h->dtype < 0 || !h->has_shape || !h->has_offsets || h->n_offset != 2) {
        err_set(e, ERR_FORMAT, "has no %s",
                h->dtype < 0    ? "dtype"
                : !h->has_shape ? "shape"
                                : "data_offsets of two numbers");
        return bad(h, e);
    }
    t.dtype = dtypes[h->dtype].name;
    t.has_type = dtypes[h->dtype].type >= 0;
    t.type = t.has_type ? (enum tensor_type)dtypes[h->dtype].type : TYPE_I8;
    if (measure(h, &t, e) != 0)
        return bad(h, e);
    if (h->offsets[1] < h->offsets[0] || h->offsets[1] - h->offsets[0] != t.bytes) {
        err_set(e, ERR_FORMAT, "data_offsets %llu to %llu, but dtype and shape need %llu bytes",
                (unsigned long long)h->offsets[0], (unsigned long long)h->offsets[1],
                (unsigned long long)t.bytes);
        return bad(h, e);
    }
    if (h->offsets[1] > data) {
        err_set(e, ERR_FORMAT,
                "the file is cut off; the tensor ends %llu bytes past the end of the file "
                "(%llu bytes); "
                "is the download complete?",
                (unsigned long long)(h->offsets[1] - data), (unsigned long long)h->size);
        return bad(h, e);
    }
    t.offset = h->data_start + h->offsets[0];
    if (note_range(h, e) != 0 || h->fn(h->ctx, &t, e) != 0)
        return bad(h, e);
    h->name[0] = '\0';
    return 0;
}

static int wrong_place(struct header *h, struct err *e)
{
    err_set(e, ERR_FORMAT,
            h->name[0] != '\0'
                ? "its entry in the header is not an object with dtype, shape and data_offsets"
                : "is not a JSON object");
    return bad(h, e);
}

/* Handles events inside "name": { ... }, at depth 2 (3 within an array). */
static int take_inside(struct header *h, enum json_event event, const char *text, size_t len,
                       unsigned depth, struct err *e)
{
    if (h->in_metadata && event != JSON_KEY && event != JSON_STRING) {
        err_set(e, ERR_FORMAT, "contains something other than strings");
        return bad(h, e);
    }
    if (h->in_metadata)
        return 0;
    if (event == JSON_KEY && depth == 2)
        return begin_field(h, text, len);
    if (h->field == FIELD_NONE)
        return 0; /* an unknown field */
    if (depth == 2 && h->field == FIELD_DTYPE && event == JSON_STRING && h->dtype < 0)
        return take_dtype(h, text, len, e);
    if (depth == 2 && event == JSON_ARRAY && h->field == FIELD_SHAPE && !h->has_shape)
        return h->has_shape = true, 0;
    if (depth == 2 && event == JSON_ARRAY && h->field == FIELD_OFFSETS && !h->has_offsets)
        return h->has_offsets = true, 0;
    if (depth == 3 && event == JSON_NUMBER && h->field != FIELD_DTYPE)
        return take_number(h, text, len, e);
    if (depth == 2 && event == JSON_ARRAY_END)
        return 0;
    return wrong_place(h, e);
}

static int on_event(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct header *h = ctx;

    if (depth == 0)
        return event == JSON_OBJECT || event == JSON_OBJECT_END ? 0 : wrong_place(h, e);
    if (depth >= 2)
        return take_inside(h, event, text, len, depth, e);
    if (event == JSON_KEY)
        return begin_entry(h, text, len, e);
    if (event == JSON_OBJECT)
        return 0;
    if (event == JSON_OBJECT_END)
        return h->in_metadata ? 0 : end_entry(h, e);
    return wrong_place(h, e);
}

static int by_begin(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int check_dense(struct header *h, struct err *e)
{
    uint64_t at = 0, data = h->size - h->data_start;

    if (h->n_range > 0)
        qsort(h->ranges, h->n_range, sizeof *h->ranges, by_begin);
    for (uint32_t i = 0; i < h->n_range; i++) {
        const struct range *r = &h->ranges[i];

        if (r->begin != at) {
            err_set(e, ERR_FORMAT,
                    r->begin < at
                        ? "begins at %llu, inside the previous tensor, which ends at %llu"
                        : "begins at %llu, but the bytes from %llu on belong to no tensor",
                    (unsigned long long)r->begin, (unsigned long long)at);
            return err_at(e, NULL, h->data_start + r->begin, r->name);
        }
        at = r->end;
    }
    if (at != data) {
        err_set(e, ERR_FORMAT, "%llu bytes after the last tensor belong to none",
                (unsigned long long)(data - at));
        return err_at(e, NULL, h->data_start + at, "header");
    }
    return 0;
}

static int read_length(int fd, uint64_t size, uint64_t *n, struct err *e)
{
    struct reader r = { 0 };
    int rc;

    if (reader_open(&r, fd, size, 4096, e) != 0)
        return -1;
    rc = reader_u64(&r, n, e);
    reader_close(&r);
    if (rc == 0 && (*n < 2 || *n > size - 8 || *n > SAFETENSORS_MAX_HEADER))
        rc = err_set(e, ERR_FORMAT, "a header of %llu bytes does not fit a file of %llu",
                     (unsigned long long)*n, (unsigned long long)size);
    return rc == 0 ? 0 : err_at(e, NULL, 0, "header");
}

int safetensors_read(int fd, uint64_t size, safetensors_fn *fn, void *ctx, struct err *e)
{
    struct header *h = calloc(1, sizeof *h);
    uint64_t n = 0;
    int rc;

    if (h == NULL)
        return err_memory(e, "a header");
    h->size = size;
    h->fn = fn;
    h->ctx = ctx;
    rc = read_length(fd, size, &n, e);
    if (rc == 0) {
        h->data_start = 8 + n;
        rc = json_stream(fd, size, 8, n, on_event, h, e);
        if (rc != 0)
            err_at(e, NULL, ERR_NO_OFFSET, "header");
    }
    if (rc == 0)
        rc = check_dense(h, e);
    free(h->ranges);
    name_index_free(&h->index);
    name_pool_free(&h->pool);
    free(h);
    return rc;
}
