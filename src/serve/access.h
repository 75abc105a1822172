/*
 * access.h - may this request be answered?
 *
 * With keys, a request needs one.  Without them only programs of this machine may ask.  A browser
 * is one of them, but the page in it may come from anywhere: its Origin gives it away, and its
 * Host header if its name was made to point here.
 */
#ifndef MEMWALL_SRC_SERVE_ACCESS_H
#define MEMWALL_SRC_SERVE_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

/* Headers of a request; NULL: it does not have them. */
struct access {
    const char *host, *origin;
    const char *authorization; /* "Bearer KEY" */
    const char *key;           /* x-api-key, as Anthropic's clients send it */
};

/* Returns the bytes of a header's value without blanks at its end, which are not a part of it
 * (RFC 9110, 5.5) and which the library leaves. */
size_t access_value_length(const char *value);

/*
 * Returns 0, or the status of a refusal with *e.  keys: then NULL; NULL: none is needed.  is_open:
 * the path needs no key.  is_preflight: a browser asks before it sends the key.
 */
unsigned access_check(const struct access *a, bool is_loopback, const char *const *keys,
                      bool is_open, bool is_preflight, struct err *e);

/* Read keys from the file of --api-key-file, one per line, into *out, then NULL.
 * access_keys_free() frees them. */
int access_keys_read(char ***out, const char *path, struct err *e);
void access_keys_free(char **keys);

#endif
