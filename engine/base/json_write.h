/*
 * json_write.h - the one writer of JSON, one value after the other.
 *
 *     json_start_stream(&j, stdout);
 *     json_object(&j, NULL);
 *     json_u64(&j, "tokens", 12);
 *     json_end(&j);
 *     json_line(&j);
 *
 * It writes to memory or to a stream.  Several values may follow each other outside of any
 * object or array; json_line() ends a line.
 *
 * The result is always valid JSON in UTF-8 and safe to show with cat: broken UTF-8 becomes
 * U+FFFD, and every character that a terminal obeys or does not show (controls, direction
 * marks, unassigned ones) is escaped.  Numbers that JSON lacks (infinity) become null.
 * Nothing depends on the locale.
 */
#ifndef MEMWALL_ENGINE_BASE_JSON_WRITE_H
#define MEMWALL_ENGINE_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_WRITE_DEPTH 40 /* a tree that was read (JSON_MAX_DEPTH) can be written in another one */

struct json {
    FILE *to;  /* the stream, or NULL */
    char *buf; /* without a stream: bytes [0 .. used), without NUL */
    size_t size, used;
    size_t most; /* of size; 0: any */
    bool failed; /* something is missing: no memory for buf, or json_print() got too much */
    int depth, deepest; /* open objects and arrays, now and at most */
    char closer[JSON_WRITE_DEPTH]; /* of each open object or array */
    bool has_one;                  /* the innermost one has a value already */
};

/* Write to j->buf, which grows.  The caller may remove bytes from its front by moving the rest
 * and lowering used.  json_release() frees it. */
void json_start(struct json *j);
void json_release(struct json *j);

/* Give back the memory of buf after its bytes. */
void json_fit(struct json *j);

/* Write to a stream.  The caller checks it for errors. */
void json_start_stream(struct json *j, FILE *to);

/* key is NULL inside an array and for the outermost value. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* closes the innermost one */

void json_string(struct json *j, const char *key, const char *text);
void json_string_n(struct json *j, const char *key, const char *text, size_t n);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_double(struct json *j, const char *key, double value, int decimals);
/* Write the text of a number of n bytes, which must be one of JSON. */
void json_number(struct json *j, const char *key, const char *text, size_t n);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

void json_line(struct json *j); /* ends a line */

/*
 * For strings that arrive in pieces and for other layouts: the caller writes quotes, commas
 * and braces with json_raw() or json_print() (at most 511 bytes), and the text between the
 * quotes of a string with json_inside().  These calls do not count as values.
 */
void json_raw(struct json *j, const char *s, size_t n);
void json_print(struct json *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void json_inside(struct json *j, const char *s, size_t n);

#endif
