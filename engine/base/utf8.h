/*
 * utf8.h - characters of a text that may be broken.
 *
 * A broken sequence is the longest run of bytes that could have begun a character
 * (Unicode's "maximal subpart"); each becomes one U+FFFD.
 */
#ifndef MEMWALL_ENGINE_BASE_UTF8_H
#define MEMWALL_ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD   0xffffffffu /* bytes that can never be a character */
#define UTF8_SHORT 0xfffffffeu /* the text ends inside a character */

/* One character of s (n > 0 bytes).  Returns how many bytes it takes, 1 to 4; *cp is the
 * code point, UTF8_BAD or UTF8_SHORT. */
size_t utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Bytes of a code point into out[4]; returns how many. */
size_t utf8_encode(uint32_t cp, char *out);

bool utf8_is_valid(const char *s, size_t n);

/* s with each broken sequence replaced; out may be NULL.  Returns the length, which is at
 * most 3 * n. */
size_t utf8_repair(const char *s, size_t n, char *out);

/* Unicode's White_Space property. */
bool utf8_is_white(uint32_t cp);

/* Is s[0..n) exactly one character?  Then *cp is it. */
bool utf8_is_single(const char *s, size_t n, uint32_t *cp);

/* Does a byte continue a character that began before it? */
static inline bool utf8_is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Where the character that s[at] belongs to begins, but not before s[low]: a text can be cut
 * there.  s[at] is read, so at n it must be a NUL or another byte of the text. */
static inline size_t utf8_start(const char *s, size_t low, size_t at)
{
    while (at > low && utf8_is_inside(s[at]))
        at--;
    return at;
}

#endif
