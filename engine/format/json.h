/*
 * json.h - JSON texts of files, as a stream of events or as a small tree.
 *
 * The stream holds one buffer and the string being read, so a vocabulary of 33 MB needs only as
 * much memory as its longest string.  The tree is for configurations: small texts that are
 * looked up by name.  Both limit the depth.  Errors name the offset in the file and the last
 * key.  The grammar is yajl's; comments, trailing bytes and broken UTF-8 are refused.
 */
#ifndef MEMWALL_ENGINE_FORMAT_JSON_H
#define MEMWALL_ENGINE_FORMAT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define JSON_MAX_DEPTH  32
#define JSON_MAX_STRING ((size_t)4 << 20)   /* a longer string is refused */
#define JSON_MAX_TREE   ((uint64_t)4 << 20) /* a tree is not made of a longer text */

enum json_event {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER, /* text is as in the file */
    JSON_STRING, /* text is decoded and may contain NUL */
    JSON_KEY,
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
};

/*
 * Called for each event in order.  depth is the number of open objects and arrays: the
 * outermost object begins at depth 0, its keys and values are at depth 1, and it ends at depth
 * 0.  text has len bytes and no NUL at its end; it is valid during the call. Returns 0, or -1
 * with *e to stop reading.
 */
typedef int json_fn(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e);

/*
 * Read the JSON text in [from, from + len) of the open file fd, which has size bytes.  Leaves
 * none of it in the page cache.  Returns 0, or -1 with *e (offset in the file).
 */
int json_stream(int fd, uint64_t size, uint64_t from, uint64_t len, json_fn *fn, void *ctx,
                struct err *e);

/* The same for len bytes of text in memory.  Offsets of errors count from its start. */
int json_stream_text(const char *text, size_t len, json_fn *fn, void *ctx, struct err *e);
/* The same, and texts may contain halves of characters, as bytes (halves.h). */
int json_stream_halves(const char *text, size_t len, json_fn *fn, void *ctx, struct err *e);

/* ---- the tree ---- */

enum json_kind {
    JSON_IS_NULL,
    JSON_IS_BOOL,
    JSON_IS_NUMBER,
    JSON_IS_STRING,
    JSON_IS_OBJECT,
    JSON_IS_ARRAY
};

struct json_node {
    enum json_kind kind;
    bool truth;
    const char *key;                      /* in an object; ends in NUL */
    const char *text;                     /* of a string or number; ends in NUL */
    size_t len;                           /* of text; a string may contain NUL */
    uint32_t n;                           /* members of an object or array */
    const struct json_node *first, *next; /* first member; next sibling */
};

struct json_doc;

/* Read a whole file.  Returns 0 and *out, or -1 with *e. */
int json_read(struct json_doc **out, int fd, uint64_t size, struct err *e);
/* Parse a text in memory, which the caller may free afterwards. */
int json_parse(struct json_doc **out, const char *text, size_t len, struct err *e);
/* The same for what a program sends that may cut texts in characters: an escape that is half of a
 * character is not refused, so texts and keys may contain halves, as bytes (halves.h). */
int json_parse_halves(struct json_doc **out, const char *text, size_t len, struct err *e);
void json_free(struct json_doc *d);
const struct json_node *json_root(const struct json_doc *d); /* NULL for NULL */

/* Returns the last member of that name; NULL if there is none, or if n is NULL or not an
 * object. json_get also returns NULL for null. */
const struct json_node *json_member(const struct json_node *n, const char *key);
const struct json_node *json_get(const struct json_node *n, const char *key);

/* Return whether the node is such a value (false for NULL).  An integer may be written as
 * 2.0. */
bool json_as_int(const struct json_node *n, int64_t *out);
bool json_as_float(const struct json_node *n, double *out);
bool json_as_bool(const struct json_node *n, bool *out);
/* Returns NULL if the node is not a string or contains a NUL. */
const char *json_as_string(const struct json_node *n);

/* Write a value with all that is below it. */
struct json;
void json_copy(struct json *to, const char *key, const struct json_node *n);

#endif
