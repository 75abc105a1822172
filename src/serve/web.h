/*
 * web.h - connections: requests in, answers out.
 *
 * Everything happens on the thread that calls web_run().  A request for an answer becomes a job
 * of the server.  Its connection sleeps ("suspended", as libmicrohttpd says) until the server
 * reports a change of the job, and wakes if the client goes away.  One that closes only its sending
 * side still gets the reply.
 *
 * All that a client can make the server hold is bounded: connections, the length of headers and
 * of bodies, the memory of all requests and answers (room.h), the time until a request is
 * complete, and the time in which a client reads nothing.  At the limit of connections, the one
 * that has waited longest for a request gives way to another client, but not before a short grace.
 */
#ifndef MEMWALL_SRC_SERVE_WEB_H
#define MEMWALL_SRC_SERVE_WEB_H

#include <poll.h>

#include "src/serve/job.h"
#include "src/serve/reply.h"

#define WEB_CONNECTIONS   64
#define WEB_GRACE_NS      250000000ull /* a client may be about to send a request */
#define WEB_FDS           (WEB_CONNECTIONS + 1) /* that web_watch() fills in at most */
#define WEB_HEADER_BYTES  16384 /* of a connection, for headers and its buffers */
#define WEB_OUT_BYTES     24576 /* of a connection, for bytes of a reply that wait to be sent */
#define WEB_FEEDS         4     /* clients that read telemetry */
#define WEB_FEED_MOST     (1 << 18) /* bytes that wait for one of them, then it is cut */
#define WEB_FEED_BYTES    (1 << 20) /* memory of each: a buffer that doubles, and its copy */

/* Pages that need no engine. */
enum web_page {
    PAGE_ROOT,
    PAGE_HEALTH,
    PAGE_METRICS,
    PAGE_MODELS,
    PAGE_MODEL, /* the one that is named */
    PAGE_OLLAMA_TAGS,
    PAGE_OLLAMA_SHOW,
    PAGE_OLLAMA_PS,
    PAGE_OLLAMA_VERSION,
    PAGE_TELEMETRY, /* a stream without an end, see web_feed() */
    PAGE_SETTINGS,
    PAGE_CHANGES, /* of the settings; may wait, see web_calls.page */
};

/* A request that is over, for a log. */
struct web_record {
    const char *peer, *method, *path;
    unsigned status;       /* 0: the connection ended before there was one */
    bool is_cut;           /* the client did not take the whole reply */
    uint64_t ns;           /* since the request arrived */
    const struct job *job; /* NULL: none */
};

/* Functions of the server, for connections. */
struct web_calls {
    /* Queue a job.  False: the queue is full.  The job stays the connection's, which calls gone()
     * when it has read it or is closed. */
    bool (*take)(void *ctx, struct job *j);
    void (*gone)(void *ctx, struct job *j);
    /* Write a page; body: of the request, which has this number, or the name at the end of its
     * path.  Returns a status; on 400 and above *e is the reason.  0: not yet, so it is called
     * again after web_retry(). */
    unsigned (*page)(void *ctx, enum web_page page, uint64_t number, const char *body, size_t len,
                     struct json *out, struct err *e);
    void (*record)(void *ctx, const struct web_record *r);
};

struct web_options {
    int listen_fd;           /* closed by web_close() */
    bool is_loopback;        /* only this machine reaches it: names of others are refused */
    const char *const *keys; /* then NULL; NULL: no key is needed */
    size_t request_bytes;    /* maximum length of a body */
    unsigned request_s;      /* time for a request to become complete, and for a client to read */
    struct request_defaults defaults;
    const struct reply_model *model;
    struct rooms *rooms;
    const struct web_calls *calls;
    void *ctx;
};

struct web;

/* o is copied, but not the objects that it points to. */
int web_open(struct web **out, const struct web_options *o, struct err *e);
/* Closes all connections; gone() is called for their jobs. */
void web_close(struct web *h);

/* A descriptor that is readable when web_run() has something to do, and the milliseconds until it
 * has in any case; -1: never. */
int web_fd(const struct web *h);
int web_wait_ms(const struct web *h);
void web_run(struct web *h);

/* Fill in descriptors of clients that wait or have not sent all, to be polled, and end the
 * connections of those that are gone.  web_watch() returns the number of descriptors. */
size_t web_watch(struct web *h, struct pollfd fds[WEB_FDS]);
void web_hung_up(struct web *h, const struct pollfd *fds, size_t n);

/* Try pages again that had to wait, and their number. */
void web_retry(struct web *h);
size_t web_waiting(const struct web *h);
/* Does the request with this number wait for its page? */
bool web_waits(const struct web *h, uint64_t number);
/* Is memory needed for the next answer?  Then clients are cut that had the time of a request to
 * read an answer that is over. */
void web_need_room(struct web *h, bool is_needed);
/* Change the maximum length of a body. */
void web_set_request_bytes(struct web *h, size_t bytes);

/* The job has other pieces, another place in the queue, or another state. */
void web_changed(struct job *j);

/*
 * Clients that read telemetry get the lines that a recording has.  web_feeds() returns their
 * number, and web_feed() sends them what is new in a sample.  One that does not read for long is
 * cut.
 */
size_t web_feeds(const struct web *h);
void web_feed(struct web *h, const struct mw_sample *s);

/* Take no more connections and requests. */
void web_stop(struct web *h);
/* The number of requests that are not over. */
size_t web_active(const struct web *h);
size_t web_connections(const struct web *h);

#endif
