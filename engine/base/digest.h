/*
 * digest.h - SHA-256 and SHA-1 (FIPS 180-4) of bytes in memory, or of bytes that arrive in
 * pieces.
 *
 * Git names contents by SHA-1, which detects damage but not forgery.
 */
#ifndef MEMWALL_ENGINE_BASE_DIGEST_H
#define MEMWALL_ENGINE_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_HEX   65 /* up to 64 digits and a NUL */
#define DIGEST_BLOCK 64

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256 };

struct digest {
    enum digest_kind kind;
    uint32_t h[8];
    uint64_t n;                       /* bytes so far */
    unsigned char held[DIGEST_BLOCK]; /* the last n % DIGEST_BLOCK of them */
};

void digest_start(struct digest *d, enum digest_kind kind);
void digest_add(struct digest *d, const void *data, size_t len);
/* Write the digest as lower-case hexadecimal digits.  Nothing can be added after that. */
void digest_end(struct digest *d, char out[DIGEST_HEX]);

/* The SHA-256 of bytes in memory. */
void digest_sha256(const void *data, size_t len, char out[DIGEST_HEX]);

#endif
