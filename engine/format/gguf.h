/*
 * gguf.h - the header of one GGUF file: keys, values and tensor infos.
 *
 * Versions 2 and 3, little-endian.  Keys, numbers, short strings and short arrays are
 * kept; of the rest (vocabulary, chat template) only the place in the file is kept,
 * and they are read in order when they are wanted.  So the header of a model with
 * half a million merges costs some ten KB.
 *
 * What is checked here: the container (lengths, counts, types, names, tensor ranges).
 * What the values mean is checked by who reads them.
 */
#ifndef MEMWALL_ENGINE_FORMAT_GGUF_H
#define MEMWALL_ENGINE_FORMAT_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/names.h"
#include "engine/format/reader.h"
#include "engine/format/tensor_type.h"

#define GGUF_MAX_KEY     65536  /* keys in a file */
#define GGUF_MAX_TENSOR  131072 /* tensors in a file, and in a catalogue */
#define GGUF_KEEP_STRING 1024   /* longer strings stay in the file */
#define GGUF_KEEP_ARRAY  4096   /* bytes; longer arrays, and all of strings, stay there */
#define GGUF_MAX_STRING  ((uint64_t)1 << 30)

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT,
};

struct gguf_value {
    enum gguf_type type;
    enum gguf_type elem; /* of an array */
    uint64_t count;      /* bytes of a string, elements of an array */
    uint64_t offset;     /* in the file: of the number, the text, the first element */
    union {
        uint64_t u; /* unsigned types and bool */
        int64_t i;
        double f;
    } num;
    const unsigned char *data; /* text with a NUL behind it, or packed elements; NULL if
                                  they were left in the file */
};

struct gguf_key {
    const char *name;
    struct gguf_value value;
};

struct gguf_tensor {
    const char *name;
    enum tensor_type type;
    uint32_t n_dims; /* 1 to 4 */
    uint64_t ne[4];
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;
};

struct gguf {
    int fd; /* the caller's, for reading what was left in the file */
    uint64_t size;
    uint32_t version;
    uint32_t alignment;
    uint32_t n_key;
    struct gguf_key *keys;
    uint32_t n_tensor;
    struct gguf_tensor *tensors;
    uint64_t data_start;
    struct name_pool pool;
    struct name_index index;        /* of keys */
    struct name_pool tensor_names;  /* freed with the tensors */
    uint32_t room_key, room_tensor; /* allocated elements */
    struct header_room *room;
};

/*
 * Read and check the header of the open file fd, which has size bytes.  The header's memory
 * is taken from room, which must outlive it (NULL: not counted).  fd must stay open as long
 * as arrays and long strings are read.
 * Returns 0 and *out, or -1 with *e (field and offset, not the file's name).
 */
int gguf_read(struct gguf **out, int fd, uint64_t size, struct header_room *room,
              struct err *e);
/* Forget the tensors, whose names go with them. */
void gguf_drop_tensors(struct gguf *g);
void gguf_free(struct gguf *g);

const char *gguf_type_name(enum gguf_type t); /* "u32" */

/* Bytes of a packed number of type t, and its value: shared by the readers of the header and
 * of arrays. */
unsigned gguf_type_bytes(enum gguf_type t);
void gguf_decode_number(struct gguf_value *v, enum gguf_type t, const unsigned char *p);

/* NULL if there is no such key. */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key);

/*
 * Typed lookups: 1 and *out; 0 if there is no such key (*out untouched); -1 with *e
 * naming the key if it has another type.  Any integer type that holds the value
 * passes for gguf_int; f32, f64 and integers for gguf_float.
 */
int gguf_int(const struct gguf *g, const char *key, int64_t *out, struct err *e);
int gguf_float(const struct gguf *g, const char *key, double *out, struct err *e);
int gguf_bool(const struct gguf *g, const char *key, bool *out, struct err *e);

/* A string of at most GGUF_KEEP_STRING bytes; ends in NUL, may hold others. */
int gguf_string(const struct gguf *g, const char *key, const char **out, size_t *len,
                struct err *e);

/* A string of any length up to max, malloc'ed with a NUL behind it. */
int gguf_long_string(const struct gguf *g, const char *key, size_t max, char **out, size_t *len,
                     struct err *e);

/* Element i of an array whose data was kept, as an integer (bool: 0 or 1) or a number;
 * false if it is not of such a type or not kept. */
bool gguf_elem_int(const struct gguf_value *v, uint64_t i, int64_t *out);
bool gguf_elem_float(const struct gguf_value *v, uint64_t i, double *out);

/*
 * An array, element by element, read in order through a buffer of its own:
 *
 *     struct gguf_array a;
 *     int has = gguf_array_open(&a, g, "tokenizer.ggml.tokens", e);
 *     while (has == 1 && (has = gguf_array_string(&a, &text, &len, e)) == 1) …
 *     gguf_array_close(&a);
 *
 * open: 1, 0 if there is no such key, -1 with *e if it is no array.  The others: 1 and
 * the next element, 0 behind the last, -1 with *e (another element type, an unreadable
 * file, a string over READER_BUFFER).  Text is valid until the next call; it may be
 * empty, hold any byte, and does not end in NUL.  close is safe after any open.
 */
struct gguf_array {
    struct reader reader;
    const char *key;
    enum gguf_type elem;
    uint64_t count, left;
};

int gguf_array_open(struct gguf_array *a, const struct gguf *g, const char *key, struct err *e);
int gguf_array_string(struct gguf_array *a, const char **text, size_t *len, struct err *e);
int gguf_array_int(struct gguf_array *a, int64_t *v, struct err *e);
int gguf_array_float(struct gguf_array *a, double *v, struct err *e);
void gguf_array_close(struct gguf_array *a);

#endif
