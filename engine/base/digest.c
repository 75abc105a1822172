#include "config.h"

#include "engine/base/digest.h"

#include <string.h>

#define BLOCK DIGEST_BLOCK

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* ---- SHA-256 ---- */

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

static uint32_t choose(uint32_t x, uint32_t y, uint32_t z)
{
    return z ^ (x & (y ^ z));
}

static uint32_t majority(uint32_t x, uint32_t y, uint32_t z)
{
    return (x & y) | (z & (x | y));
}

/* One round.  The caller passes the eight words in another order each time instead of moving
 * them. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                       \
    do {                                                                                       \
        uint32_t one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choose(e, f, g) +  \
                       k[i] + w[i];                                                            \
        d += one;                                                                              \
        h = one + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority(a, b, c);          \
    } while (0)

/* 2.5 to 3.6 times as fast as moving the words with memmove() in each round. */
static void add_sha256(uint32_t h[8], const unsigned char *p)
{
    uint32_t s0 = h[0], s1 = h[1], s2 = h[2], s3 = h[3], s4 = h[4], s5 = h[5], s6 = h[6],
             s7 = h[7];
    uint32_t w[64];

    for (size_t i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    for (size_t i = 0; i < 64; i += 8) {
        ROUND(s0, s1, s2, s3, s4, s5, s6, s7, i);
        ROUND(s7, s0, s1, s2, s3, s4, s5, s6, i + 1);
        ROUND(s6, s7, s0, s1, s2, s3, s4, s5, i + 2);
        ROUND(s5, s6, s7, s0, s1, s2, s3, s4, i + 3);
        ROUND(s4, s5, s6, s7, s0, s1, s2, s3, i + 4);
        ROUND(s3, s4, s5, s6, s7, s0, s1, s2, i + 5);
        ROUND(s2, s3, s4, s5, s6, s7, s0, s1, i + 6);
        ROUND(s1, s2, s3, s4, s5, s6, s7, s0, i + 7);
    }
    h[0] += s0;
    h[1] += s1;
    h[2] += s2;
    h[3] += s3;
    h[4] += s4;
    h[5] += s5;
    h[6] += s6;
    h[7] += s7;
}

/* ---- SHA-1 ---- */

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return rotate(x, 32 - n);
}

static void add_sha1(uint32_t h[8], const unsigned char *p)
{
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    uint32_t w[80];

    for (size_t i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (size_t i = 16; i < 80; i++)
        w[i] = rotate_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t add = i < 20   ? 0x5a827999
                       : i < 40 ? 0x6ed9eba1
                       : i < 60 ? 0x8f1bbcdc
                                : 0xca62c1d6;
        uint32_t sum = rotate_left(a, 5) + f + e + add + w[i];

        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = sum;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

/* ---- both ---- */

static const struct {
    void (*add)(uint32_t h[8], const unsigned char *block);
    unsigned n_digit;
    uint32_t first[8];
} kinds[] = {
    [DIGEST_SHA1] = { add_sha1,
                      40,
                      { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } },
    [DIGEST_SHA256] = { add_sha256,
                        64,
                        { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                          0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } },
};

void digest_start(struct digest *d, enum digest_kind kind)
{
    d->kind = kind;
    memcpy(d->h, kinds[kind].first, sizeof d->h);
    d->n = 0;
}

void digest_add(struct digest *d, const void *data, size_t len)
{
    const unsigned char *p = data;
    size_t held = d->n % BLOCK;

    if (len == 0) /* an empty text may be NULL */
        return;
    d->n += len;
    if (held > 0) {
        size_t n = len < BLOCK - held ? len : BLOCK - held;

        memcpy(d->held + held, p, n);
        if (held + n < BLOCK)
            return;
        kinds[d->kind].add(d->h, d->held);
        p += n;
        len -= n;
    }
    for (; len >= BLOCK; p += BLOCK, len -= BLOCK)
        kinds[d->kind].add(d->h, p);
    if (len > 0)
        memcpy(d->held, p, len);
}

void digest_end(struct digest *d, char out[DIGEST_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char last[BLOCK + 8] = { 0x80 };
    uint64_t bits = d->n * 8;
    size_t held = d->n % BLOCK, n = (held < BLOCK - 8 ? BLOCK : 2 * BLOCK) - held, i;

    for (i = 0; i < 8; i++)
        last[n - 1 - i] = (unsigned char)(bits >> (8 * i));
    digest_add(d, last, n);
    for (i = 0; i < kinds[d->kind].n_digit; i++)
        out[i] = digits[d->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[i] = '\0';
}

void digest_sha256(const void *data, size_t len, char out[DIGEST_HEX])
{
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, data, len);
    digest_end(&d, out);
}
