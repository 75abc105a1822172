#include "config.h"

#include "engine/base/sha1.h"

#include <string.h>

#define BLOCK SHA1_BLOCK

static uint32_t rotate_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static void add_block(uint32_t h[5], const unsigned char *p)
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
        uint32_t k = i < 20   ? 0x5a827999
                     : i < 40 ? 0x6ed9eba1
                     : i < 60 ? 0x8f1bbcdc
                              : 0xca62c1d6;
        uint32_t sum = rotate_left(a, 5) + f + e + k + w[i];

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

void sha1_start(struct sha1 *s)
{
    static const uint32_t first[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                       0xc3d2e1f0 };

    memcpy(s->h, first, sizeof first);
    s->n = 0;
}

void sha1_add(struct sha1 *s, const void *data, size_t len)
{
    const unsigned char *p = data;
    size_t held = s->n % BLOCK;

    s->n += len;
    while (len > 0) {
        size_t n = len < BLOCK - held ? len : BLOCK - held;

        memcpy(s->held + held, p, n);
        if (held + n == BLOCK)
            add_block(s->h, s->held);
        held = (held + n) % BLOCK;
        p += n;
        len -= n;
    }
}

void sha1_end(struct sha1 *s, char out[SHA1_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char last[BLOCK + 8] = { 0x80 };
    uint64_t bits = s->n * 8;
    size_t held = s->n % BLOCK, n = (held < BLOCK - 8 ? BLOCK : 2 * BLOCK) - held;

    for (size_t i = 0; i < 8; i++)
        last[n - 1 - i] = (unsigned char)(bits >> (8 * i));
    sha1_add(s, last, n);
    for (size_t i = 0; i < 40; i++)
        out[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[40] = '\0';
}
