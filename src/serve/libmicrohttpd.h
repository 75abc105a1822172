/*
 * libmicrohttpd.h - the functions of libmicrohttpd, loaded when a server starts.
 *
 * The library needs GnuTLS, which has some 8 MB in ten files.  A chat must not load them, so the
 * program is not linked with it (engine/http/libcurl.h does the same).
 */
#ifndef MEMWALL_SRC_SERVE_LIBMICROHTTPD_H
#define MEMWALL_SRC_SERVE_LIBMICROHTTPD_H

#include <microhttpd.h>

#include "engine/base/err.h"

/* A function of the library has its name without "MHD_". */
/* clang-format off */
#define LIBMICROHTTPD_FUNCTIONS(X) \
    X(start_daemon) X(stop_daemon) X(run) X(get_timeout) X(get_daemon_info) \
    X(get_connection_info) X(set_connection_option) X(lookup_connection_value) \
    X(suspend_connection) X(resume_connection) \
    X(create_response_from_buffer) X(create_response_from_callback) X(add_response_header) \
    X(queue_response) X(destroy_response)
/* clang-format on */

struct libmicrohttpd {
#define X(name) __typeof__(MHD_##name) *name;
    LIBMICROHTTPD_FUNCTIONS(X)
#undef X
};

/* Load the library, once; it stays loaded.  Returns its functions, or NULL with *e
 * (ERR_UNSUPPORTED) if it is not installed. */
const struct libmicrohttpd *libmicrohttpd_load(struct err *e);

#endif
