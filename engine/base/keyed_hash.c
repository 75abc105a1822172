#include "config.h"

#include "engine/base/keyed_hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

#include <pthread.h>
#include <string.h>

static struct hash_key process_key;

static void draw_key(void)
{
    const void *start_bytes;

    if (getrandom(&process_key, sizeof process_key, GRND_NONBLOCK) ==
        (ssize_t)sizeof process_key)
        return;
    /* Fall back on the 16 random bytes that Linux gives every process at its start. */
    start_bytes = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    if (start_bytes != NULL)
        memcpy(&process_key, start_bytes, sizeof process_key);
}

const struct hash_key *hash_key(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, draw_key);
    return &process_key;
}

static inline uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

/* SipHash reads its input as little-endian words. */
static inline uint64_t word_at(const unsigned char *p)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t w;

    memcpy(&w, p, 8);
    return w;
#else
    uint64_t w = 0;

    for (unsigned i = 0; i < 8; i++)
        w |= (uint64_t)p[i] << 8 * i;
    return w;
#endif
}

uint64_t keyed_hash(const struct hash_key *key, const void *bytes, size_t n)
{
    struct sip s = { key->k0 ^ 0x736f6d6570736575u, key->k1 ^ 0x646f72616e646f6du,
                     key->k0 ^ 0x6c7967656e657261u, key->k1 ^ 0x7465646279746573u };
    const unsigned char *p = bytes;
    uint64_t last = (uint64_t)n << 56;

    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w = word_at(p);

        s.v3 ^= w;
        sip_round(&s);
        s.v0 ^= w;
    }
    for (size_t i = 0; i < n; i++)
        last |= (uint64_t)p[i] << 8 * i;
    s.v3 ^= last;
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
