/*
 * http.h - requests to a server, several at once, on the caller's thread.
 *
 * Redirects of GET requests are followed, at most HTTP_REDIRECTS of them, and never from https
 * to http.  Those of a request with a body are not: what was written for one server must not go
 * to another.  The access token goes to the server itself and to no other host.  Proxies come
 * from the environment (https_proxy, http_proxy, all_proxy, no_proxy), which libcurl reads.
 *
 *     http_start(h, &r, e);
 *     while (!r.is_done && http_wait(h, 1000, e) == 0)
 *         ;                      r.sink was called with the bytes
 *     http_end(h, &r);
 *
 * A server may send anything.  The sink receives the body of a 2xx reply only, unless the
 * request takes_errors.  It must end the request with HTTP_STOP when it has enough, because a
 * server can send more than it promised.
 */
#ifndef MEMWALL_ENGINE_HTTP_HTTP_H
#define MEMWALL_ENGINE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define HTTP_REDIRECTS 10
#define HTTP_URL_MAX   4096
#define HTTP_UNKNOWN   UINT64_MAX
#define HTTP_STALL_S   30  /* a connection without a byte for so long is given up */
#define HTTP_HOLD_S    600 /* a server that asks for a longer pause is not waited for */

#define HTTP_CA_FILES 3
#define HTTP_CA_BYTES ((size_t)4 << 20) /* of one of them */

struct http;

/* Names of the server and of its settings for messages.  All are static texts. */
struct http_words {
    const char *setting; /* that has the address: "HF_ENDPOINT" */
    const char *server;  /* "a hub" */
    const char *that;    /* "the hub" */
    const char *example; /* an address of one */
    const char *token;   /* the settings that have the access token */
    const char *trust;   /* what to do to trust a certificate */
};

struct http_options {
    const struct http_words *words;
    const char *endpoint; /* "https://huggingface.co", without a slash at the end */
    const char *token;    /* or NULL */
    int stop_fd;          /* readable once the user wants to stop; -1: never */
    /* Files with the authorities to trust, instead of those of the system, and a folder; or
     * NULL. */
    const char *ca_files[HTTP_CA_FILES], *ca_folder;
    /* Called once a second while a pause lasts, with the reason, and with 0 and NULL when it is
     * over.  May be NULL. */
    void (*on_wait)(void *ctx, uint32_t left_s, const char *why);
    void *ctx;
};

/* Strings in options are copied.  Fails if libcurl is not installed, or if endpoint or token
 * are not what they should be. */
int http_open(struct http **out, const struct http_options *o, struct err *e);
/* Does not wait for an answer of a name server.  h may be NULL. */
void http_close(struct http *h);

struct http_reply {
    long status;              /* of the last reply; 0: none came */
    uint64_t length;          /* Content-Length, or HTTP_UNKNOWN */
    uint64_t from, to, total; /* Content-Range: [from, to) of total; HTTP_UNKNOWN */
    char error_code[32];      /* X-Error-Code: "GatedRepo" */
    bool is_page;             /* Content-Type: HTML, which no answer of a server is */
    char type[64];            /* Content-Type in lower case, without parameters: "text/plain" */
    char location[256];       /* where a redirect leads that is not followed, as it was sent */
    uint32_t retry_after_s;   /* how long the server asks to wait; 0: it does not */
    int64_t date_s, retry_at_s; /* private: Date, and a Retry-After that is a date */
    uint32_t limited_s;         /* private: RateLimit */
    char url[HTTP_URL_MAX];   /* of the last reply, once it has begun; "": too long */
};

struct http_request;

/* Takes the next n bytes.  Returns n, HTTP_PAUSE (offered again after http_resume()), or
 * HTTP_STOP. */
typedef size_t http_sink(struct http_request *r, const char *data, size_t n);
#define HTTP_PAUSE ((size_t)-1)
#define HTTP_STOP  ((size_t)-2)

struct http_request {
    /* Set by the caller; the rest starts as zero. */
    const char *url;
    uint64_t from, to; /* bytes [from, to); to 0: all, without asking for a range */
    const char *body;  /* JSON to POST, body_len bytes that stay until the end; NULL: GET */
    size_t body_len;
    bool takes_errors; /* the sink gets the body of a reply of any status and type */
    bool is_patient;   /* there may be any time between two bytes */
    http_sink *sink;
    void *ctx;

    struct http_reply reply;
    bool is_done, is_stopped;   /* is_stopped: by the sink */
    bool is_fatal;              /* another attempt cannot help */
    struct err err;             /* why it failed; code ERR_NONE: it did not.  Status codes are
                                   not failures */
    void *handle;               /* private */
    struct http *http;          /* private */
    char message[256];          /* private */
    size_t n_header, n_ignored; /* private: bytes of headers, and of bodies with an error */
};

int http_start(struct http *h, struct http_request *r, struct err *e);
/* Transfer bytes and call sinks for at most ms milliseconds, less if a request is done.
 * Returns -1 with *e (ERR_CANCELLED) once the user wants to stop. */
int http_wait(struct http *h, int ms, struct err *e);
/* Offer the bytes again to a sink that returned HTTP_PAUSE. */
void http_resume(struct http_request *r);
/* Free what http_start() took; ends the request if it still runs. */
void http_end(struct http_request *r);

/* Returns "the hub", for messages. */
const char *http_that(const struct http *h);

/* Is this URL at the server, which may see the token? */
bool http_is_own(const struct http *h, const char *url);

/* Explain that a page for people came instead of data.  Returns -1. */
int http_refuse_page(const struct http *h, const struct http_reply *reply, struct err *e);

/* May another attempt succeed, after a network error or with this status? */
bool http_is_transient(const struct http_request *r);

/*
 * Start no other request for a while, because attempt n (from 1 on) of this one failed: as long
 * as the server asks to wait, otherwise for a time that doubles with n.  Returns false without a
 * pause if the server asks for more than HTTP_HOLD_S.
 */
bool http_hold(struct http *h, uint32_t n, const struct http_request *r);

/* Returns the milliseconds until requests may be started again; 0: now. */
int http_held_ms(const struct http *h);

/* Write "received too many requests; it asks to wait 60 min", the meaning of a status. */
void http_status_text(const struct http_reply *reply, char *buf, size_t n);

/*
 * Get a text of at most max bytes, with a NUL after it; the caller frees *text.  Repeats
 * transient failures a few times.  Returns 0 with the reply, whose status may be any; the text
 * is NULL unless it is 200.
 */
int http_get_text(struct http *h, const char *url, size_t max, char **text, size_t *len,
                  struct http_reply *reply, struct err *e);

/* Get bytes [from, to) of a file, which has that many, into data.  Repeats transient failures.
 * Returns -1 with *e if anything else comes, and the reply. */
int http_get_range(struct http *h, const char *url, uint64_t from, uint64_t to, void *data,
                   struct http_reply *reply, struct err *e);

#endif
