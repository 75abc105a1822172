#include "config.h"

#include "engine/base/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

static bool grow(struct json *j, size_t n)
{
    size_t size = j->size + j->size / 2 + n + 64;
    char *more = NULL;

    if (j->most > 0 && size > j->most)
        size = j->most;
    if (size >= j->used + n)
        more = realloc(j->buf, size);
    if (more == NULL) {
        j->failed = true;
        return false;
    }
    j->buf = more;
    j->size = size;
    return true;
}

void json_raw(struct json *j, const char *s, size_t n)
{
    if (j->to != NULL) {
        fwrite(s, 1, n, j->to);
        return;
    }
    if (n > j->size - j->used && !grow(j, n))
        return;
    if (n > 0)
        memcpy(j->buf + j->used, s, n);
    j->used += n;
}

void json_print(struct json *j, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        j->failed = true;
    else
        json_raw(j, text, (size_t)n);
}

/* Is a character written unchanged? */
static bool is_plain(uint32_t cp)
{
    return visible_is(cp) && cp != '"' && cp != '\\';
}

static void escape(struct json *j, uint32_t cp)
{
    static const char shorts[] = "\"\"\\\\\nn\tt\rr";

    for (const char *p = shorts; *p != '\0'; p += 2)
        if (cp == (unsigned char)*p) {
            json_print(j, "\\%c", p[1]);
            return;
        }
    if (cp < 0x10000)
        json_print(j, "\\u%04x", cp);
    else
        json_print(j, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                   0xdc00 + ((cp - 0x10000) & 0x3ff));
}

void json_inside(struct json *j, const char *s, size_t n)
{
    size_t from = 0, at = 0;

    while (at < n) {
        uint32_t cp;
        size_t used = utf8_decode(s + at, n - at, &cp);

        if (cp < UTF8_SHORT && is_plain(cp)) {
            at += used;
            continue;
        }
        json_raw(j, s + from, at - from);
        escape(j, cp < UTF8_SHORT ? cp : 0xfffd);
        at += used;
        from = at;
    }
    json_raw(j, s + from, at - from);
}

static void quoted(struct json *j, const char *text, size_t n)
{
    json_raw(j, "\"", 1);
    json_inside(j, text, n);
    json_raw(j, "\"", 1);
}

/* Write the comma and the key before a value. */
static void lead(struct json *j, const char *key)
{
    if (j->has_one && j->depth > 0)
        json_raw(j, ",", 1);
    j->has_one = true;
    if (key != NULL) {
        quoted(j, key, strlen(key));
        json_raw(j, ":", 1);
    }
}

static void enter(struct json *j, const char *key, char opener, char closer)
{
    assert(j->depth < JSON_WRITE_DEPTH);
    lead(j, key);
    json_raw(j, &opener, 1);
    j->closer[j->depth++] = closer;
    if (j->depth > j->deepest)
        j->deepest = j->depth;
    j->has_one = false;
}

void json_start(struct json *j)
{
    *j = (struct json){ 0 };
}

void json_release(struct json *j)
{
    free(j->buf);
    json_start(j);
}

void json_fit(struct json *j)
{
    char *less = j->used > 0 && j->used < j->size ? realloc(j->buf, j->used) : NULL;

    if (less == NULL)
        return;
    j->buf = less;
    j->size = j->used;
}

void json_start_stream(struct json *j, FILE *to)
{
    *j = (struct json){ .to = to };
}

void json_object(struct json *j, const char *key)
{
    enter(j, key, '{', '}');
}

void json_array(struct json *j, const char *key)
{
    enter(j, key, '[', ']');
}

void json_end(struct json *j)
{
    assert(j->depth > 0);
    json_raw(j, &j->closer[--j->depth], 1);
    j->has_one = true;
}

void json_string(struct json *j, const char *key, const char *text)
{
    json_string_n(j, key, text, strlen(text));
}

void json_string_n(struct json *j, const char *key, const char *text, size_t n)
{
    lead(j, key);
    quoted(j, text, n);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    lead(j, key);
    json_print(j, "%" PRIu64, value);
}

void json_double(struct json *j, const char *key, double value, int decimals)
{
    char text[64];
    int n;

    if (!isfinite(value) || fabs(value) > 1e30) {
        json_null(j, key);
        return;
    }
    lead(j, key);
    n = snprintf(text, sizeof text, "%.*f", decimals, value);
    for (int i = 0; i < n; i++)
        if (text[i] == ',') /* the decimal mark if the program set LC_NUMERIC */
            text[i] = '.';
    json_raw(j, text, (size_t)n);
}

void json_number(struct json *j, const char *key, const char *text, size_t n)
{
    lead(j, key);
    json_raw(j, text, n);
}

void json_bool(struct json *j, const char *key, bool value)
{
    lead(j, key);
    json_raw(j, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *j, const char *key)
{
    lead(j, key);
    json_raw(j, "null", 4);
}

void json_line(struct json *j)
{
    json_raw(j, "\n", 1);
}
