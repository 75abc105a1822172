/*
 * sha1.h - SHA-1 (FIPS 180-4) of bytes that arrive in pieces.
 *
 * Git names contents by it.  It detects damage, not forgery.
 */
#ifndef MEMWALL_ENGINE_BASE_SHA1_H
#define MEMWALL_ENGINE_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_HEX   41 /* 40 digits and a NUL */
#define SHA1_BLOCK 64

struct sha1 {
    uint32_t h[5];
    uint64_t n;                     /* bytes so far */
    unsigned char held[SHA1_BLOCK]; /* the last n % SHA1_BLOCK of them */
};

void sha1_start(struct sha1 *s);
void sha1_add(struct sha1 *s, const void *data, size_t len);
/* Write the digest as lower-case hexadecimal digits.  Nothing can be added after that. */
void sha1_end(struct sha1 *s, char out[SHA1_HEX]);

#endif
