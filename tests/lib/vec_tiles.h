/*
 * vec_tiles.h - vec_avx512.h with the tile instructions of AMX in C (tiles.h): the set `amx`
 * for processors that have AVX-512 alone.
 */
#ifndef MEMWALL_TESTS_LIB_VEC_TILES_H
#define MEMWALL_TESTS_LIB_VEC_TILES_H

#include <immintrin.h>

#include "tests/lib/tiles.h"

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_zero
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig(shapes)       tiles_shape(shapes)
#define _tile_release()                tiles_release()
#define _tile_loadd(to, from, stride)  tiles_load(to, from, (size_t)(stride))
#define _tile_zero(to)                 tiles_zero(to)
#define _tile_stored(from, to, stride) tiles_store(from, to, (size_t)(stride))
#define _tile_dpbssd(sum, left, right) tiles_multiply(sum, left, right)

#define HAS_AMX 1

#include "engine/compute/vec_avx512.h"

#endif
