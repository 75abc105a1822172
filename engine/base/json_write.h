/*
 * json_write.h - JSON into a buffer, one value after the other.
 *
 *     json_start(&j, buf, sizeof buf);
 *     json_object(&j, NULL);
 *     json_u64(&j, "tokens", 12);
 *     json_end(&j);
 *     n = json_finish(&j);
 *
 * Nothing is allocated.  What does not fit is counted but not stored, as snprintf does,
 * so a first call with no buffer tells the size.  The result is always valid JSON in
 * ASCII or UTF-8: controls are escaped, broken UTF-8 becomes U+FFFD, a number that JSON
 * cannot say (infinity) becomes null.  Nothing depends on the locale.
 */
#ifndef MEMWALL_ENGINE_BASE_JSON_WRITE_H
#define MEMWALL_ENGINE_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_WRITE_DEPTH 16

struct json {
    char *buf;
    size_t size, used; /* used goes on counting when buf is full */
    int depth;
    char closer[JSON_WRITE_DEPTH]; /* of each open object or array */
    bool has_one;                  /* the innermost one already holds something */
};

void json_start(struct json *j, char *buf, size_t n);
/* Ends buf with NUL.  Returns the length, or what it would need if that is >= n. */
size_t json_finish(struct json *j);

/* key is NULL inside an array and for the outermost value. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* closes the innermost */

void json_string(struct json *j, const char *key, const char *text);
void json_string_n(struct json *j, const char *key, const char *text, size_t n);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
