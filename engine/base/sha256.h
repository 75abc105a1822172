/*
 * sha256.h - SHA-256 (FIPS 180-4) of bytes in memory, or of bytes that arrive in pieces.
 */
#ifndef MEMWALL_ENGINE_BASE_SHA256_H
#define MEMWALL_ENGINE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65 /* 64 digits and a NUL */

#define SHA256_BLOCK 64

struct sha256 {
    uint32_t h[8];
    uint64_t n;                       /* bytes so far */
    unsigned char held[SHA256_BLOCK]; /* the last n % SHA256_BLOCK of them */
};

void sha256_start(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
/* Write the digest as sha256_hex() does.  Nothing can be added after that. */
void sha256_end(struct sha256 *s, char out[SHA256_HEX]);

/* Write the digest as lower-case hexadecimal digits. */
void sha256_hex(const void *data, size_t len, char out[SHA256_HEX]);

#endif
