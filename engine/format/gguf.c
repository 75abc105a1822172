/*
 * The grammar of the container, read from front to back:
 *
 *     "GGUF" version n_tensors n_kv | key type value … | name n_dims dims type offset … | data
 *
 * Every length is compared with the bytes left before it is used.  A count sizes memory only if
 * that many minimal elements fit the rest of the file.  Nothing recurses.
 */
#include "config.h"

#include "engine/format/gguf.h"

#include <stdlib.h>
#include <string.h>

#define MIN_KEY_BYTES     (8 + 1 + 4 + 1) /* length, one letter, type, one byte */
#define MIN_TENSOR_BYTES  (8 + 1 + 4 + 8 + 4 + 8)
#define MAX_KEY_NAME      65535
#define MAX_TENSOR_NAME   63
#define DEFAULT_ALIGNMENT 32
#define MAX_ALIGNMENT     ((uint32_t)1 << 20)
#define MAX_DIM           ((uint64_t)1 << 40)
#define MAX_ELEMENTS      ((uint64_t)1 << 62)

static const struct {
    const char *name;
    unsigned bytes; /* of a number; 8 for a string's length; 0: not allowed in arrays */
} value_types[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = { "u8", 1 },       [GGUF_I8] = { "i8", 1 },     [GGUF_U16] = { "u16", 2 },
    [GGUF_I16] = { "i16", 2 },     [GGUF_U32] = { "u32", 4 },   [GGUF_I32] = { "i32", 4 },
    [GGUF_F32] = { "f32", 4 },     [GGUF_BOOL] = { "bool", 1 }, [GGUF_STRING] = { "string", 8 },
    [GGUF_ARRAY] = { "array", 0 }, [GGUF_U64] = { "u64", 8 },   [GGUF_I64] = { "i64", 8 },
    [GGUF_F64] = { "f64", 8 },
};

const char *gguf_type_name(enum gguf_type t)
{
    return value_types[t].name;
}

unsigned gguf_type_bytes(enum gguf_type t)
{
    return value_types[t].bytes;
}

static int at(struct err *e, uint64_t offset, const char *field)
{
    return err_at(e, NULL, offset, field);
}

/* Reads a string's length and checks it against the bytes left and a limit. */
static int read_length(struct reader *r, uint64_t max, uint64_t *n, struct err *e)
{
    uint64_t start = r->pos;

    if (reader_u64(r, n, e) != 0)
        return -1;
    if (*n <= reader_left(r) && *n <= max)
        return 0;
    if (*n > reader_left(r))
        err_set(e, ERR_FORMAT, "its length is %llu bytes, but the file has only %llu left",
                (unsigned long long)*n, (unsigned long long)reader_left(r));
    else
        err_set(e, ERR_FORMAT, "its length of %llu bytes is over the limit of %llu",
                (unsigned long long)*n, (unsigned long long)max);
    return at(e, start, NULL);
}

/* Reads a key or a tensor's name: not empty, without NUL. */
static int read_name(struct name_pool *pool, struct reader *r, uint64_t max, char **out,
                     const char *what, struct err *e)
{
    uint64_t start = r->pos, n;
    const unsigned char *text;

    if (read_length(r, max, &n, e) != 0)
        return at(e, start, what);
    if (n == 0) {
        err_set(e, ERR_FORMAT, "is empty");
        return at(e, start, what);
    }
    text = reader_take(r, (size_t)n, e);
    if (text == NULL)
        return at(e, start, what);
    if (memchr(text, '\0', (size_t)n) != NULL) {
        err_set(e, ERR_FORMAT, "\"%.*s\" contains a NUL byte", (int)n, (const char *)text);
        return at(e, start, what);
    }
    *out = name_pool_copy(pool, text, (size_t)n, e);
    return *out != NULL ? 0 : at(e, start, what);
}

/* Decodes one packed number. */
void gguf_decode_number(struct gguf_value *v, enum gguf_type type, const unsigned char *p)
{
    uint64_t raw = 0;
    unsigned n = value_types[type].bytes;

    for (unsigned i = 0; i < n; i++)
        raw |= (uint64_t)p[i] << (8 * i);
    switch (type) {
    case GGUF_I8: v->num.i = (int8_t)raw; break;
    case GGUF_I16: v->num.i = (int16_t)raw; break;
    case GGUF_I32: v->num.i = (int32_t)raw; break;
    case GGUF_I64: v->num.i = (int64_t)raw; break;
    case GGUF_F32: {
        uint32_t bits = (uint32_t)raw;
        float f;

        memcpy(&f, &bits, sizeof f);
        v->num.f = (double)f;
        break;
    }
    case GGUF_F64: memcpy(&v->num.f, &raw, sizeof raw); break;
    case GGUF_BOOL: v->num.u = raw != 0; break;
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_TYPE_COUNT: v->num.u = raw; break;
    }
}

static int read_string_value(struct gguf *g, struct reader *r, struct gguf_value *v,
                             struct err *e)
{
    uint64_t n;

    if (read_length(r, GGUF_MAX_STRING, &n, e) != 0)
        return -1;
    v->count = n;
    v->offset = r->pos;
    if (n > GGUF_KEEP_STRING)
        return reader_skip(r, n, e);

    const unsigned char *text = reader_take(r, (size_t)n, e);

    if (text == NULL)
        return -1;
    v->data = (unsigned char *)name_pool_copy(&g->pool, text, (size_t)n, e);
    return v->data != NULL ? 0 : -1;
}

static int read_array_value(struct gguf *g, struct reader *r, struct gguf_value *v,
                            struct err *e)
{
    uint64_t start = r->pos, count;
    uint32_t elem;

    if (reader_u32(r, &elem, e) != 0)
        return -1;
    if (elem >= GGUF_TYPE_COUNT || value_types[elem].bytes == 0) {
        err_set(e, ERR_FORMAT,
                elem == GGUF_ARRAY ? "arrays of arrays (type %u) are not supported"
                                   : "%u is not a type of array elements",
                elem);
        return at(e, start, NULL);
    }
    if (reader_u64(r, &count, e) != 0)
        return -1;
    if (count > reader_left(r) / value_types[elem].bytes) {
        err_set(e, ERR_FORMAT, "an array of %llu elements does not fit the %llu bytes left",
                (unsigned long long)count, (unsigned long long)reader_left(r));
        return at(e, start, NULL);
    }
    v->elem = (enum gguf_type)elem;
    v->count = count;
    v->offset = r->pos;
    if (elem == GGUF_STRING) {
        for (uint64_t i = 0, n; i < count; i++)
            if (read_length(r, GGUF_MAX_STRING, &n, e) != 0 || reader_skip(r, n, e) != 0)
                return -1;
        return 0;
    }

    uint64_t bytes = count * value_types[elem].bytes;

    if (bytes > GGUF_KEEP_ARRAY)
        return reader_skip(r, bytes, e);

    const unsigned char *raw = reader_take(r, (size_t)bytes, e);

    if (raw == NULL)
        return -1;
    v->data = (unsigned char *)name_pool_copy(&g->pool, raw, (size_t)bytes, e);
    return v->data != NULL ? 0 : -1;
}

static int read_value(struct gguf *g, struct reader *r, struct gguf_value *v, struct err *e)
{
    uint64_t start = r->pos;
    uint32_t type;

    if (reader_u32(r, &type, e) != 0)
        return -1;
    if (type >= GGUF_TYPE_COUNT) {
        err_set(e, ERR_FORMAT, "value type %u is unknown", type);
        return at(e, start, NULL);
    }
    *v = (struct gguf_value){ .type = (enum gguf_type)type, .count = 1, .offset = r->pos };
    if (type == GGUF_STRING)
        return read_string_value(g, r, v, e);
    if (type == GGUF_ARRAY)
        return read_array_value(g, r, v, e);

    const unsigned char *p = reader_take(r, value_types[type].bytes, e);

    if (p == NULL)
        return -1;
    gguf_decode_number(v, v->type, p);
    return 0;
}

static int read_keys(struct gguf *g, struct reader *r, uint64_t n_key, struct err *e)
{
    for (uint64_t i = 0; i < n_key; i++) {
        uint64_t start = r->pos;
        char *name;

        if (g->n_key == g->room_key) {
            uint32_t more = g->room_key != 0 ? g->room_key * 2 : 64;
            struct gguf_key *keys;

            if (header_room_take(g->room, (more - g->room_key) * sizeof *keys, e) != 0)
                return -1;
            keys = realloc(g->keys, more * sizeof *keys);
            if (keys == NULL) {
                header_room_give(g->room, (more - g->room_key) * sizeof *keys);
                return err_memory(e, "%u keys", more);
            }
            g->keys = keys;
            g->room_key = more;
        }
        if (read_name(&g->pool, r, MAX_KEY_NAME, &name, "key", e) != 0)
            return -1;

        struct gguf_key *k = &g->keys[g->n_key];
        int entered = name_index_add(&g->index, name, g->n_key, e);

        if (entered > 0)
            err_set(e, ERR_FORMAT, "the key appears twice");
        if (entered != 0)
            return at(e, start, name);
        k->name = name;
        if (read_value(g, r, &k->value, e) != 0)
            return at(e, start, name);
        g->n_key++;
    }
    return 0;
}

static int read_alignment(struct gguf *g, struct err *e)
{
    static const char key[] = "general.alignment";
    const struct gguf_value *v = gguf_find(g, key);

    g->alignment = DEFAULT_ALIGNMENT;
    if (v == NULL)
        return 0;
    if (v->type != GGUF_U32) {
        err_set(e, ERR_FORMAT, "has type %s, not u32", gguf_type_name(v->type));
        return at(e, v->offset, key);
    }
    if (v->num.u < 8 || v->num.u > MAX_ALIGNMENT || (v->num.u & (v->num.u - 1)) != 0) {
        err_set(e, ERR_FORMAT, "%llu is not a power of two from 8 to %u",
                (unsigned long long)v->num.u, MAX_ALIGNMENT);
        return at(e, v->offset, key);
    }
    g->alignment = (uint32_t)v->num.u;
    return 0;
}

static int check_dims(uint32_t n_dims, const uint64_t ne[4], struct err *e)
{
    uint64_t product = 1;

    for (uint32_t i = 0; i < n_dims; i++) {
        if (ne[i] < 1 || ne[i] > MAX_DIM)
            return err_set(e, ERR_FORMAT, "dimension %u is %llu; expected 1 to 2^40", i,
                           (unsigned long long)ne[i]);
        if (__builtin_mul_overflow(product, ne[i], &product) || product > MAX_ELEMENTS)
            return err_set(e, ERR_FORMAT, "%llu x %llu x %llu x %llu values are too many",
                           (unsigned long long)ne[0], (unsigned long long)ne[1],
                           (unsigned long long)ne[2], (unsigned long long)ne[3]);
    }
    return 0;
}

/* Names the program that writes ids unknown to ggml. */
static const char *foreign_type(uint32_t id)
{
    return id >= 97 && id <= 399 ? " (a type of ik_llama.cpp)" : "";
}

static int check_type(uint32_t type, const uint64_t ne[4], uint64_t *bytes, struct err *e)
{
    const struct tensor_type_info *t = type < TYPE_COUNT_GGUF ? tensor_type_info(type) : NULL;
    uint64_t rows = ne[1] * ne[2] * ne[3];
    char list[TYPES_COMPUTED_BYTES];

    if (t == NULL) {
        tensor_types_computed(list, sizeof list);
        return err_set(e, ERR_UNSUPPORTED,
                       "weight type %u%s is not supported; memwall runs: %s", type,
                       foreign_type(type), list);
    }
    if (type == 4)
        return err_set(e, ERR_UNSUPPORTED,
                       "weight type 4 (MXFP4 in Ollama's first files of gpt-oss) is not "
                       "supported; fetch the model again");
    if (t->block_elems == 0)
        return err_set(e, ERR_UNSUPPORTED, "weight type %u (%s) is obsolete and not supported",
                       type, t->name != NULL ? t->name : "removed");
    if (ne[0] % t->block_elems != 0)
        return err_set(e, ERR_FORMAT, "row length %llu is not a multiple of %u (%s)",
                       (unsigned long long)ne[0], t->block_elems, t->name);
    if (__builtin_mul_overflow(ne[0] / t->block_elems * t->block_bytes, rows, bytes))
        return err_set(e, ERR_FORMAT, "its size in bytes is too large");
    return 0;
}

static int read_dims(struct gguf_tensor *t, struct reader *r, struct err *e)
{
    uint64_t start = r->pos;
    uint32_t n_dims;

    if (reader_u32(r, &n_dims, e) != 0)
        return -1;
    if (n_dims < 1 || n_dims > 4) {
        err_set(e, ERR_FORMAT, "%u dimensions; expected 1 to 4", n_dims);
        return at(e, start, NULL);
    }
    t->n_dims = n_dims;
    for (uint32_t i = 0; i < 4; i++) {
        t->ne[i] = 1;
        if (i < n_dims && reader_u64(r, &t->ne[i], e) != 0)
            return -1;
    }
    return check_dims(t->n_dims, t->ne, e) == 0 ? 0 : at(e, start, NULL);
}

static int read_tensor(struct gguf *g, struct gguf_tensor *t, struct reader *r, struct err *e)
{
    uint64_t start;
    uint32_t type;

    if (read_dims(t, r, e) != 0)
        return -1;
    start = r->pos;
    if (reader_u32(r, &type, e) != 0)
        return -1;
    if (check_type(type, t->ne, &t->bytes, e) != 0)
        return at(e, start, NULL);
    t->type = (enum tensor_type)type;
    start = r->pos;
    if (reader_u64(r, &t->offset, e) != 0)
        return -1;
    if (t->offset % g->alignment != 0) {
        err_set(e, ERR_FORMAT, "offset %llu is not a multiple of the alignment %u",
                (unsigned long long)t->offset, g->alignment);
        return at(e, start, NULL);
    }
    return 0;
}

static int read_tensors(struct gguf *g, struct reader *r, uint64_t n_tensor, struct err *e)
{
    if (n_tensor == 0)
        return 0;
    if (header_room_take(g->room, n_tensor * sizeof *g->tensors, e) != 0)
        return -1;
    g->tensors = calloc((size_t)n_tensor, sizeof *g->tensors);
    if (g->tensors == NULL) {
        header_room_give(g->room, n_tensor * sizeof *g->tensors);
        return err_memory(e, "%llu tensors", (unsigned long long)n_tensor);
    }
    g->room_tensor = (uint32_t)n_tensor;
    for (uint64_t i = 0; i < n_tensor; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        char *name;

        if (read_name(&g->tensor_names, r, MAX_TENSOR_NAME, &name, "tensor name", e) != 0)
            return -1;
        t->name = name;
        if (read_tensor(g, t, r, e) != 0)
            return at(e, r->pos, name);
        g->n_tensor++;
    }
    return 0;
}

/* Computes the offsets of the tensors, once all infos and thus the start of the data are
 * known. */
static int place_tensors(struct gguf *g, uint64_t info_end, struct err *e)
{
    uint64_t start = g->n_tensor == 0
                         ? info_end
                         : (info_end + g->alignment - 1) & ~((uint64_t)g->alignment - 1);

    g->data_start = start;
    for (uint32_t i = 0; i < g->n_tensor; i++) {
        struct gguf_tensor *t = &g->tensors[i];
        uint64_t begin, end;

        if (__builtin_add_overflow(start, t->offset, &begin) ||
            __builtin_add_overflow(begin, t->bytes, &end)) {
            err_set(e, ERR_FORMAT, "its offset %llu is past the end of any file",
                    (unsigned long long)t->offset);
            return at(e, ERR_NO_OFFSET, t->name);
        }
        if (end > g->size) {
            err_set(e, ERR_FORMAT,
                    "the file is cut off; the tensor ends %llu bytes past the end of the file "
                    "(%llu bytes); is the download "
                    "complete?",
                    (unsigned long long)(end - g->size), (unsigned long long)g->size);
            return at(e, begin, t->name);
        }
        t->offset = begin;
    }
    return 0;
}

static int read_counts(struct reader *r, uint64_t *n_tensor, uint64_t *n_key, struct err *e)
{
    static const char tensors[] = "tensor count (n_tensors)", keys[] = "key count (n_kv)";

    if (reader_u64(r, n_tensor, e) != 0)
        return at(e, 8, tensors);
    if (reader_u64(r, n_key, e) != 0)
        return at(e, 16, keys);
    if (*n_tensor > reader_left(r) / MIN_TENSOR_BYTES || *n_tensor > GGUF_MAX_TENSOR) {
        err_set(e, ERR_FORMAT, "%llu tensors do not fit the file, or are more than %d",
                (unsigned long long)*n_tensor, GGUF_MAX_TENSOR);
        return at(e, 8, tensors);
    }
    if (*n_key > reader_left(r) / MIN_KEY_BYTES || *n_key > GGUF_MAX_KEY) {
        err_set(e, ERR_FORMAT, "%llu keys do not fit the file, or are more than %d",
                (unsigned long long)*n_key, GGUF_MAX_KEY);
        return at(e, 16, keys);
    }
    return 0;
}

static int read_version(struct gguf *g, struct reader *r, struct err *e)
{
    uint64_t start = r->pos;

    if (reader_u32(r, &g->version, e) != 0)
        return at(e, start, "version");
    if ((g->version & 0xffff) == 0 && g->version != 0) {
        err_set(e, ERR_UNSUPPORTED, "big-endian files are not supported");
        return at(e, start, "version");
    }
    if (g->version != 2 && g->version != 3) {
        err_set(e, ERR_UNSUPPORTED, "GGUF version %u is not supported; expected 2 or 3",
                g->version);
        return at(e, start, "version");
    }
    return 0;
}

/*
 * An upper bound of the memory that this many keys and tensors need, in the header and in the
 * catalogue made from it.  Their tables double as they grow, and an index has up to four slots
 * per name.
 */
static uint64_t expected_bytes(const struct gguf *g, uint64_t n_tensor, uint64_t n_key)
{
    const uint64_t value = GGUF_KEEP_ARRAY + 64, name = MAX_TENSOR_NAME + 1;
    const uint64_t catalogue_tensor = 128, slots = 4 * sizeof(struct name_slot);
    uint64_t values = n_key * value < g->size ? n_key * value : g->size;

    if (values > NAME_POOL_LIMIT)
        values = NAME_POOL_LIMIT;
    return values + n_key * (2 * sizeof(struct gguf_key) + slots) +
           n_tensor * (sizeof(struct gguf_tensor) + 2 * name + 2 * catalogue_tensor + slots) +
           ((uint64_t)1 << 20);
}

static int read_header(struct gguf *g, struct reader *r, bool keys_only, struct err *e)
{
    uint64_t n_tensor, n_key;
    unsigned char magic[4];

    if (reader_copy(r, magic, 4, e) != 0)
        return at(e, 0, "magic");
    if (memcmp(magic, "GGUF", 4) != 0) {
        err_set(e, ERR_FORMAT, "this is not a GGUF file");
        return at(e, 0, "magic");
    }
    if (read_version(g, r, e) != 0 || read_counts(r, &n_tensor, &n_key, e) != 0)
        return -1;
    if (g->room != NULL)
        g->room->expected += expected_bytes(g, n_tensor, n_key);
    if (read_keys(g, r, n_key, e) != 0)
        return -1;
    if (keys_only)
        return 0;
    if (read_alignment(g, e) != 0 || read_tensors(g, r, n_tensor, e) != 0)
        return -1;
    return place_tensors(g, r->pos, e);
}

static int read_file(struct gguf **out, int fd, uint64_t size, struct header_room *room,
                     bool keys_only, struct err *e)
{
    struct gguf *g = calloc(1, sizeof *g);
    struct reader r = { 0 };

    *out = NULL;
    if (g == NULL)
        return err_memory(e, "a header");
    g->fd = fd;
    g->size = size;
    g->room = g->pool.room = g->index.room = g->tensor_names.room = room;
    if (reader_open(&r, fd, size, 0, e) != 0 || read_header(g, &r, keys_only, e) != 0) {
        reader_close(&r);
        gguf_free(g);
        return -1;
    }
    reader_close(&r);
    *out = g;
    return 0;
}

int gguf_read(struct gguf **out, int fd, uint64_t size, struct header_room *room, struct err *e)
{
    return read_file(out, fd, size, room, false, e);
}

int gguf_read_keys(struct gguf **out, int fd, uint64_t size, struct header_room *room,
                   struct err *e)
{
    return read_file(out, fd, size, room, true, e);
}

void gguf_drop_tensors(struct gguf *g)
{
    header_room_give(g->room, g->room_tensor * sizeof *g->tensors);
    free(g->tensors);
    g->tensors = NULL;
    g->n_tensor = g->room_tensor = 0;
    name_pool_free(&g->tensor_names);
}

void gguf_free(struct gguf *g)
{
    if (g == NULL)
        return;
    header_room_give(g->room, g->room_key * sizeof *g->keys);
    free(g->keys);
    gguf_drop_tensors(g);
    name_pool_free(&g->pool);
    name_index_free(&g->index);
    free(g);
}
