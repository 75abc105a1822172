#include "config.h"

#include "engine/base/sha256.h"

#include <string.h>

#define BLOCK 64

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void add_block(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64], s[8];

    for (size_t i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
        uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
        uint32_t one = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        uint32_t two = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++)
        h[i] += s[i];
}

void sha256_hex(const void *data, size_t len, char out[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    const unsigned char *p = data;
    unsigned char last[2 * BLOCK] = { 0 };
    uint64_t bits = (uint64_t)len * 8;
    size_t rest = len % BLOCK, n = rest + 9 <= BLOCK ? BLOCK : 2 * BLOCK;

    for (size_t i = 0; i + BLOCK <= len; i += BLOCK)
        add_block(h, p + i);
    if (rest > 0)
        memcpy(last, p + len - rest, rest);
    last[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        last[n - 1 - i] = (unsigned char)(bits >> (8 * i));
    for (size_t i = 0; i < n; i += BLOCK)
        add_block(h, last + i);
    for (size_t i = 0; i < 64; i++)
        out[i] = digits[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
