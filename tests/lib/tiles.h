/*
 * tiles.h - the tile instructions of AMX in C, for processors without them.
 *
 * vec_tiles.h lets kernels call these functions instead.  A use that a processor would refuse is
 * remembered as a fault, and changes nothing.
 */
#ifndef MEMWALL_TESTS_LIB_TILES_H
#define MEMWALL_TESTS_LIB_TILES_H

#include <stdbool.h>
#include <stddef.h>

struct tiles_report {
    const char *fault;     /* the first one; NULL: none */
    unsigned long product; /* how many tiles were multiplied */
    bool is_shaped;        /* tiles have shapes, and were not released */
};

/* Returns the report since the last call. */
struct tiles_report tiles_report(void);

/* LDTILECFG with 64 bytes, TILERELEASE, TILELOADD, TILEZERO, TILESTORED, TDPBSSD */
void tiles_shape(const void *shapes);
void tiles_release(void);
void tiles_load(int to, const void *from, size_t stride);
void tiles_zero(int to);
void tiles_store(int from, void *to, size_t stride);
void tiles_multiply(int sum, int left, int right);

#endif
