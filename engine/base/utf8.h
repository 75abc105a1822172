/*
 * utf8.h - characters of a text that may be broken.
 *
 * A broken sequence is the longest run of bytes that could begin a character (Unicode calls
 * it a maximal subpart).  Each is replaced by one U+FFFD.
 */
#ifndef MEMWALL_ENGINE_BASE_UTF8_H
#define MEMWALL_ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD   0xffffffffu /* a broken sequence */
#define UTF8_SHORT 0xfffffffeu /* the text ends inside a character */

/* Decode the first character of s (n > 0 bytes).  Stores the code point, UTF8_BAD or
 * UTF8_SHORT in *cp and returns the bytes used, 1 to 4. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Write a code point to out[4].  Returns the number of bytes. */
size_t utf8_encode(uint32_t cp, char *out);

/* Returns the bytes before the first broken sequence; n if there is none. */
size_t utf8_valid_bytes(const char *s, size_t n);
bool utf8_is_valid(const char *s, size_t n);

/* Copy s with each broken sequence replaced; out may be NULL.  Returns the length, at most
 * 3 * n. */
size_t utf8_repair(const char *s, size_t n, char *out);

/* Does cp have Unicode's White_Space property? */
bool utf8_is_white(uint32_t cp);

/* Skip white space and byte order marks at both ends of *s, a text of n bytes.  Returns the
 * length that is left. */
size_t utf8_trim(const char **s, size_t n);

/* Is s[0..n) exactly one character?  If so, *cp is its code point. */
bool utf8_is_single(const char *s, size_t n, uint32_t *cp);

/* Does a byte continue a character that began before it? */
static inline bool utf8_is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Returns the index at which the character containing s[at] begins, but not less than low.
 * A text can be cut there.  s[at] is read, so it must be a byte of the text or the NUL. */
static inline size_t utf8_start(const char *s, size_t low, size_t at)
{
    while (at > low && utf8_is_inside(s[at]))
        at--;
    return at;
}

#endif
