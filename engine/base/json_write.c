#include "config.h"

#include "engine/base/json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(struct json *j, const char *s, size_t n)
{
    if (j->used < j->size) {
        size_t room = j->size - j->used;

        memcpy(j->buf + j->used, s, n < room ? n : room);
    }
    j->used += n;
}

/* Bytes of the UTF-8 character at the start of s, 0 if it is broken. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t cp;

    if (len <= 1)
        return len;
    if (s[0] >= 0xf8 || len > n)
        return 0;
    cp = s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (s[i] & 0x3f);
    }
    return cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000) ? 0 : len;
}

static void put_escaped(struct json *j, const char *text, size_t n)
{
    put(j, "\"", 1);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)text[i];
        size_t len = utf8_length((const unsigned char *)text + i, n - i);
        char code[8];

        if (len == 0) {
            put(j, "\\ufffd", 6);
            len = 1;
        } else if (c == '"' || c == '\\') {
            put(j, c == '"' ? "\\\"" : "\\\\", 2);
        } else if (c == '\n') {
            put(j, "\\n", 2);
        } else if (c < 0x20 || c == 0x7f) {
            put(j, code, (size_t)snprintf(code, sizeof code, "\\u%04x", c));
        } else {
            put(j, text + i, len);
        }
        i += len;
    }
    put(j, "\"", 1);
}

/* Comma and key in front of a value. */
static void lead(struct json *j, const char *key)
{
    if (j->has_one)
        put(j, ",", 1);
    j->has_one = true;
    if (key != NULL) {
        put_escaped(j, key, strlen(key));
        put(j, ":", 1);
    }
}

static void enter(struct json *j, const char *key, char opener, char closer)
{
    assert(j->depth < JSON_WRITE_DEPTH);
    lead(j, key);
    put(j, &opener, 1);
    j->closer[j->depth++] = closer;
    j->has_one = false;
}

void json_start(struct json *j, char *buf, size_t n)
{
    *j = (struct json){ .buf = buf, .size = n };
}

size_t json_finish(struct json *j)
{
    assert(j->depth == 0);
    if (j->size > 0)
        j->buf[j->used < j->size ? j->used : j->size - 1] = '\0';
    return j->used;
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
    put(j, &j->closer[--j->depth], 1);
    j->has_one = true;
}

void json_string(struct json *j, const char *key, const char *text)
{
    json_string_n(j, key, text, strlen(text));
}

void json_string_n(struct json *j, const char *key, const char *text, size_t n)
{
    lead(j, key);
    put_escaped(j, text, n);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
    char text[24];

    lead(j, key);
    put(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, value));
}

void json_i64(struct json *j, const char *key, int64_t value)
{
    char text[24];

    lead(j, key);
    put(j, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
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
        if (text[i] == ',') /* decimal mark of a program that set LC_NUMERIC */
            text[i] = '.';
    put(j, text, (size_t)n);
}

void json_bool(struct json *j, const char *key, bool value)
{
    lead(j, key);
    put(j, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *j, const char *key)
{
    lead(j, key);
    put(j, "null", 4);
}
