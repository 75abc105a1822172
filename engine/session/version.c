/* The version of the program, and the features of the build and the CPU. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "engine/compute/blas.h"
#include "engine/compute/kernels.h"
#include "engine/compute/processor.h"
#include "engine/memwall.h"
#include "engine/text/chat_format.h"

const char *mw_version(void)
{
    return PACKAGE_VERSION;
}

const char *mw_blas_name(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char name[64]; /* never changes once it is known */

    pthread_mutex_lock(&lock);
    if (name[0] == '\0' && blas_open(1) == BLAS_OPEN) {
        snprintf(name, sizeof name, "%s", blas_name());
        blas_close();
    }
    pthread_mutex_unlock(&lock);
    return name;
}

bool mw_blas_is_inside(uint64_t *returned)
{
    return blas_is_inside(returned);
}

bool mw_blas_is_denied(void)
{
    enum blas_state state = blas_open(1);

    if (state == BLAS_OPEN)
        blas_close();
    return state == BLAS_DENIED;
}

const char *mw_feature(int i)
{
#ifdef HAVE_LIBURING
    const char *reads = "io_uring";
#else
    const char *reads = "pread threads";
#endif
    const char *blas = mw_blas_name();
    const char *const features[] = { reads, blas[0] != '\0' ? blas : "no openblas",
                                     "rotated q8_0 and q4_0 kv" };

    return i >= 0 && i < 3 ? features[i] : NULL;
}

const char *mw_chat_format(int i)
{
    return chat_format_at(i);
}

const char *mw_isa_denied(void)
{
    return processor_amx_denied();
}

const char *mw_isa(int i)
{
    const char *const *names = kernels_names();

    for (int j = 0; j < i; j++)
        if (names[j] == NULL)
            return NULL;
    return i < 0 ? NULL : names[i];
}
