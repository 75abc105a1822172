/*
 * chance.h - random numbers, which are the same in every run.
 */
#ifndef MEMWALL_TESTS_LIB_CHANCE_H
#define MEMWALL_TESTS_LIB_CHANCE_H

#include <stdint.h>

struct chance {
    uint64_t state; /* not 0 */
};

static inline uint32_t chance_below(struct chance *c, uint32_t n)
{
    c->state ^= c->state << 13;
    c->state ^= c->state >> 7;
    c->state ^= c->state << 17;
    return (uint32_t)(c->state >> 32) % n;
}

#endif
