/*
 * libcurl.h - the functions of libcurl, loaded when something is fetched.
 *
 * The library and the TLS libraries that it needs have some 12 MB and 40 files.  A chat in a
 * cage of 256 MB must not load them, so the program is not linked with them.  A helper program
 * for `memwall pull` would also do, but it would have to find its way from the build folder and
 * from an installed tree, and to return errors as text.
 */
#ifndef MEMWALL_ENGINE_HTTP_LIBCURL_H
#define MEMWALL_ENGINE_HTTP_LIBCURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "engine/base/err.h"

/* A function of the library has its name without "curl_". */
/* clang-format off */
#define LIBCURL_FUNCTIONS(X) \
    X(global_init) \
    X(easy_init) X(easy_cleanup) X(easy_setopt) X(easy_getinfo) X(easy_pause) X(easy_strerror) \
    X(multi_init) X(multi_cleanup) X(multi_setopt) X(multi_add_handle) X(multi_remove_handle) \
    X(multi_perform) X(multi_poll) X(multi_info_read) X(multi_strerror) \
    X(slist_append) X(slist_free_all) X(getdate)
/* clang-format on */

struct libcurl {
#define X(name) __typeof__(curl_##name) *name;
    LIBCURL_FUNCTIONS(X)
#undef X
};

/*
 * Load the library, once; it stays loaded.  Returns its functions, or NULL with *e
 * (ERR_UNSUPPORTED) if it is not installed.  Call it from one thread.
 */
const struct libcurl *libcurl_load(struct err *e);

#endif
