/*
 * keyed_hash.h - the hash for tables of strings and numbers that come from files.
 *
 * SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF") is made for this
 * purpose: without the key nobody can choose texts that collide.  The key is drawn once per
 * process, so the order of a table differs between runs and must never affect a result.
 */
#ifndef MEMWALL_ENGINE_BASE_KEYED_HASH_H
#define MEMWALL_ENGINE_BASE_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t k0, k1;
};

/* Returns the key of this process.  Any thread may call it. */
const struct hash_key *hash_key(void);

/* Returns SipHash-1-3 of n bytes. */
uint64_t keyed_hash(const struct hash_key *key, const void *bytes, size_t n);

/*
 * Hash one number, for tables on hot paths: two multiplications by factors from the key.
 * Different numbers have different hashes; the high bits are the best mixed ones.
 */
static inline uint64_t keyed_mix(const struct hash_key *key, uint64_t x)
{
    x = (x ^ key->k0) * (key->k1 | 1);
    x ^= x >> 32;
    return x * (key->k0 | 1);
}

#endif
