/*
 * listen.h - the address of a server, and who may talk to it.
 */
#ifndef MEMWALL_SRC_SERVE_LISTEN_H
#define MEMWALL_SRC_SERVE_LISTEN_H

#include <sys/socket.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define LISTEN_DEFAULT "127.0.0.1:8080"
#define LISTEN_BUFFER  32768 /* of a socket in each direction; the kernel takes twice as much */

struct listen_address {
    struct sockaddr_storage at;
    socklen_t len;
    bool is_loopback; /* only programs of this machine reach it */
};

/* Read "127.0.0.1:8080", "[::1]:8080" or "localhost:8080".  Port 0 takes any free one.
 * Returns -1 with *e (ERR_ARGUMENT). */
int listen_parse(struct listen_address *out, const char *text, struct err *e);

/* Open a socket that listens there.  Stores the address with its port in *a.  Returns the
 * descriptor, or -1 with *e. */
int listen_open(struct listen_address *a, struct err *e);

/* Write "127.0.0.1:8080" or "[::1]:8080" to buf. */
#define LISTEN_TEXT 64
void listen_text(const struct listen_address *a, char buf[LISTEN_TEXT]);

/* The address of a client without its port, and a number that is equal for equal ones. */
void listen_peer(const struct sockaddr *a, char buf[LISTEN_TEXT], uint64_t *key);

/* Does a Host header, or the host and port of an Origin, name this machine itself?  Another
 * name means that a page of the web has led a browser here. */
bool listen_is_local_name(const char *host);

#endif
