/* Compiled twice.  With -mavx512vnni it defines kernels_avx512vnni. */
#include "config.h"

#define VECTORS "engine/compute/vec_avx512.h"
#include "engine/compute/kernel_set.h"

#ifdef __AVX512VNNI__
extern const struct kernels kernels_avx512vnni;
const struct kernels kernels_avx512vnni = KERNEL_SET("avx512vnni");
#else
extern const struct kernels kernels_avx512;
const struct kernels kernels_avx512 = KERNEL_SET("avx512");
#endif
