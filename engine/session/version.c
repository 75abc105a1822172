/* What this build and this CPU can do, in words. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/compute/blas.h"
#include "engine/compute/kernels.h"
#include "engine/memwall.h"

const char *mw_version(void)
{
    return PACKAGE_VERSION;
}

/* "openblas 0.3.21" from what the library reports of itself. */
static const char *blas_feature(void)
{
    static char name[48];
    char word[32] = "", version[24] = "";

    if (name[0] == '\0') {
        if (sscanf(blas_name(), "%31s %23s", word, version) == 2 && strcmp(word, "no") != 0)
            snprintf(name, sizeof name, "openblas %s", version);
        else
            snprintf(name, sizeof name, "no openblas");
    }
    return name;
}

const char *mw_feature(int i)
{
#ifdef HAVE_LIBURING
    const char *reads = "io_uring";
#else
    const char *reads = "pread threads";
#endif
    const char *const features[] = { reads, blas_feature(), "rotated q8_0 and q4_0 kv" };

    return i >= 0 && i < 3 ? features[i] : NULL;
}

const char *mw_isa(int i)
{
    const char *const *names = kernels_names();

    for (int j = 0; j < i; j++)
        if (names[j] == NULL)
            return NULL;
    return i < 0 ? NULL : names[i];
}
