#include "config.h"

#define VECTORS "engine/compute/vec_sse41.h"
#include "engine/compute/kernel_set.h"

extern const struct kernels kernels_sse41;
const struct kernels kernels_sse41 = KERNEL_SET("sse41");
