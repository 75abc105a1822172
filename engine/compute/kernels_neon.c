/* Compiled twice.  With the dot product extension it defines kernels_neondot. */
#include "config.h"

#define VECTORS "engine/compute/vec_neon.h"
#include "engine/compute/kernel_set.h"

#ifdef __ARM_FEATURE_DOTPROD
extern const struct kernels kernels_neondot;
const struct kernels kernels_neondot = KERNEL_SET("neondot");
#else
extern const struct kernels kernels_neon;
const struct kernels kernels_neon = KERNEL_SET("neon");
#endif
