/*
 * Four lanes take a word of eight bytes each.  A step of a lane is a bijection of the word and
 * of the lane, and so is every step of the end.  So two inputs that differ in one word have
 * different sums.  Four multiplications are in flight at once: memory is slower than this.
 */
#include "config.h"

#include "engine/base/checksum.h"

#include <string.h>

#define LANES  4
#define FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio, odd */
#define TURN   29

static uint64_t add_word(uint64_t lane, uint64_t word)
{
    lane ^= word;
    return (lane << TURN | lane >> (64 - TURN)) * FACTOR;
}

static void add_block(uint64_t lane[LANES], const unsigned char *block)
{
    uint64_t word[LANES];

    memcpy(word, block, sizeof word);
    for (int i = 0; i < LANES; i++)
        lane[i] = add_word(lane[i], word[i]);
}

uint64_t checksum(const void *bytes, size_t n)
{
    uint64_t lane[LANES] = { 1, 2, 3, 4 }, sum = n;
    const unsigned char *at = bytes;
    size_t left = n;

    for (; left >= sizeof lane; left -= sizeof lane, at += sizeof lane)
        add_block(lane, at);
    if (left > 0) {
        unsigned char last[sizeof lane] = { 0 };

        memcpy(last, at, left);
        add_block(lane, last);
    }
    for (int i = 0; i < LANES; i++)
        sum = add_word(sum, lane[i]);
    return sum ^ sum >> 32;
}
