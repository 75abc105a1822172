#include "config.h"

#define VECTORS "engine/compute/vec_avx2.h"
#include "engine/compute/kernel_set.h"

extern const struct kernels kernels_avx2;
const struct kernels kernels_avx2 = KERNEL_SET("avx2");
