/*
 * gguf.h - the header of one GGUF file: keys, values and tensor infos.
 *
 * Versions 2 and 3, little-endian.  Keys, numbers, short strings and short arrays stay in
 * memory.  The vocabulary and the chat template stay in the file; only their offsets are
 * stored, and the callers read them in order.  The header of a model with half a million merges
 * needs some ten KB.
 *
 * The container is checked here: lengths, counts, types, names, ranges of tensors.  The callers
 * check the meaning of values.
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
#define GGUF_KEEP_ARRAY  4096 /* bytes; longer arrays, and all arrays of strings, stay there */
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
    const unsigned char
        *data; /* text and a NUL, or packed elements; NULL if left in the file */
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
    int fd; /* the caller's, to read values left in the file */
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

/* The same for the keys alone, of a file whose tensors cannot be read. */
int gguf_read_keys(struct gguf **out, int fd, uint64_t size, struct header_room *room,
                   struct err *e);
/* Free the tensors and their names. */
void gguf_drop_tensors(struct gguf *g);
void gguf_free(struct gguf *g);

const char *gguf_type_name(enum gguf_type t); /* "u32" */

/* Returns the bytes of a packed number of type t; decodes one.  gguf.c and gguf_value.c share
 * these. */
unsigned gguf_type_bytes(enum gguf_type t);
void gguf_decode_number(struct gguf_value *v, enum gguf_type t, const unsigned char *p);

/* Returns NULL if the key does not exist. */
const struct gguf_value *gguf_find(const struct gguf *g, const char *key);

/*
 * Typed lookups.  They return 1 and *out, 0 if the key does not exist (*out is unchanged), or
 * -1 with *e naming the key if its type is wrong.  gguf_int accepts any integer type that holds
 * the value, gguf_float also accepts integers.
 */
int gguf_int(const struct gguf *g, const char *key, int64_t *out, struct err *e);
int gguf_float(const struct gguf *g, const char *key, double *out, struct err *e);
int gguf_bool(const struct gguf *g, const char *key, bool *out, struct err *e);

/* A string of at most GGUF_KEEP_STRING bytes.  It ends in NUL and may contain others. */
int gguf_string(const struct gguf *g, const char *key, const char **out, size_t *len,
                struct err *e);

/* A string of up to max bytes, malloc'ed, with a NUL at its end. */
int gguf_long_string(const struct gguf *g, const char *key, size_t max, char **out, size_t *len,
                     struct err *e);

/* Element i of an array in memory, as an integer (bool: 0 or 1) or a number.  Returns false if
 * the type does not fit or the array was left in the file. */
bool gguf_elem_int(const struct gguf_value *v, uint64_t i, int64_t *out);
bool gguf_elem_float(const struct gguf_value *v, uint64_t i, double *out);

/*
 * An array, read element by element through its own buffer:
 *
 *     struct gguf_array a;
 *     int has = gguf_array_open(&a, g, "tokenizer.ggml.tokens", e);
 *     while (has == 1 && (has = gguf_array_string(&a, &text, &len, e)) == 1) …
 *     gguf_array_close(&a);
 *
 * open returns 1, 0 if the key does not exist, or -1 with *e if it is not an array.  The others
 * return 1 and the next element, 0 after the last one, or -1 with *e: wrong element type,
 * unreadable file, or a string over READER_BUFFER.  Text is valid until the next call.  It may
 * be empty or hold any byte and does not end in NUL.  close is safe after any open.
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
