/*
 * grids.h - code books of the IQ1, IQ2 and IQ3 weight types.
 *
 * A block of these types stores indices into a table of groups of 8 or 4 values.  Byte i of
 * an entry, from the lowest, is value i.  IQ2 and IQ3 entries are magnitudes, and the block
 * stores the signs.  IQ1 entries are int8: 8 times the published -1, 0 and 1, which makes the
 * shift of 1/8 a whole number.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_GRIDS_H
#define MEMWALL_ENGINE_COMPUTE_GRIDS_H

#include <stdint.h>

extern const uint64_t iq2_xxs_grid[256], iq2_xs_grid[512], iq2_s_grid[1024];
extern const uint32_t iq3_xxs_grid[256], iq3_s_grid[512];
extern const uint64_t iq1_grid[2048];

#endif
