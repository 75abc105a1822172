/*
 * routes.h - the paths of a server.
 */
#ifndef MEMWALL_SRC_SERVE_ROUTES_H
#define MEMWALL_SRC_SERVE_ROUTES_H

#include "src/serve/web.h"

struct route {
    const char *path, *method; /* a path that ends with a slash has a name after it */
    bool is_page;
    enum web_page page;
    enum request_form form;
    bool is_open; /* no key is needed */
};

/* Returns the path that the target of a request means, for the caller to free; NULL: out of
 * memory.  Addresses that people set in clients end with a slash, and have "/v1" twice or not at
 * all; a client that takes the server for a proxy sends its whole address. */
char *route_path(const char *target);

/* Write the paths that answer: "/v1/chat/completions, /v1/completions". */
void route_list(char *buf, size_t n);

/* Find the route of a path; NULL: there is none.  *is_other_method: there is only one with another
 * method. */
const struct route *route_find(const char *path, const char *method, bool *is_other_method);

/* Returns the name at the end of a path of this route; NULL: its paths have none. */
const char *route_name(const struct route *r, const char *path);

/* Returns a form of the protocol that a path is of, for errors.  r: its route, or NULL. */
enum request_form route_protocol(const struct route *r, const char *path);

/* Returns the methods that the path of a route has: "GET, POST". */
const char *route_methods(const struct route *r);

#endif
