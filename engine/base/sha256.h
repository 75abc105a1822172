/*
 * sha256.h - SHA-256 (FIPS 180-4) of bytes in memory.
 */
#ifndef MEMWALL_ENGINE_BASE_SHA256_H
#define MEMWALL_ENGINE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX 65 /* 64 digits and a NUL */

/* Write the digest as lower-case hexadecimal digits. */
void sha256_hex(const void *data, size_t len, char out[SHA256_HEX]);

#endif
