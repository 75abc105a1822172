#include "config.h"

#include "engine/http/libcurl.h"

#include <dlfcn.h>
#include <string.h>

static struct libcurl lib;

/* dlsym() returns an object pointer; POSIX lets it hold a function, ISO C needs the copy. */
static int find(void *handle, const char *symbol, void *function, size_t n, struct err *e)
{
    void *found = dlsym(handle, symbol);

    memcpy(function, &found, n);
    return found != NULL ? 0
                         : err_set(e, ERR_UNSUPPORTED,
                                   "the installed libcurl is too old, it lacks %s()", symbol);
}

static int find_all(void *handle, struct err *e)
{
#define X(name)                                                                                \
    if (find(handle, "curl_" #name, &lib.name, sizeof lib.name, e) != 0)                       \
        return -1;
    LIBCURL_FUNCTIONS(X)
#undef X
    return 0;
}

const struct libcurl *libcurl_load(struct err *e)
{
    static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
    static void *handle;

    if (handle != NULL)
        return &lib;
    for (size_t i = 0; handle == NULL && i < sizeof files / sizeof files[0]; i++)
        handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        err_set(e, ERR_UNSUPPORTED,
                "libcurl is not installed; install it (Debian: apt-get install libcurl4)");
        return NULL;
    }
    if (find_all(handle, e) != 0 || lib.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        if (e->code == ERR_NONE)
            err_set(e, ERR_UNSUPPORTED, "libcurl could not be initialised");
        dlclose(handle);
        handle = NULL;
        return NULL;
    }
    return &lib;
}
