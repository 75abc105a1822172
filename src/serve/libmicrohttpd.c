/* See libmicrohttpd.h. */
#include "config.h"

#include "src/serve/libmicrohttpd.h"

#include <dlfcn.h>
#include <string.h>

static struct libmicrohttpd lib;

/* dlsym() returns an object pointer; POSIX lets it hold a function, ISO C needs the copy. */
static int find(void *handle, const char *symbol, void *function, size_t n, struct err *e)
{
    void *found = dlsym(handle, symbol);

    memcpy(function, &found, n);
    return found != NULL ? 0
                         : err_set(e, ERR_UNSUPPORTED,
                                   "the installed libmicrohttpd is too old, it lacks %s()",
                                   symbol);
}

static int find_all(void *handle, struct err *e)
{
#define X(name)                                                                                \
    if (find(handle, "MHD_" #name, &lib.name, sizeof lib.name, e) != 0)                        \
        return -1;
    LIBMICROHTTPD_FUNCTIONS(X)
#undef X
    return 0;
}

const struct libmicrohttpd *libmicrohttpd_load(struct err *e)
{
    static void *handle;

    if (handle != NULL)
        return &lib;
    handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        err_set(e, ERR_UNSUPPORTED,
                "libmicrohttpd is not installed; install it (Debian: apt-get install "
                "libmicrohttpd12)");
        return NULL;
    }
    if (find_all(handle, e) != 0) {
        dlclose(handle);
        handle = NULL;
        return NULL;
    }
    return &lib;
}
