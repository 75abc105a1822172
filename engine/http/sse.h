/*
 * sse.h - server-sent events: a stream of lines in which "data: TEXT" and an empty line are an
 * event.
 *
 * Lines end with \n, \r or \r\n.  Comments, which servers send to keep a connection open, and
 * fields other than data are skipped.  The stream may be cut into pieces anywhere, and it is not
 * trusted: an event of more than SSE_EVENT_MAX bytes is an error.
 */
#ifndef MEMWALL_ENGINE_HTTP_SSE_H
#define MEMWALL_ENGINE_HTTP_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define SSE_EVENT_MAX ((size_t)1 << 20)

/* All private; begins as zero. */
struct sse {
    char *data;     /* of the event so far, and the line that is being read after it */
    size_t n, room; /* n: bytes of both */
    size_t line;    /* the line begins here */
    bool has_data;
    bool skips_lf;  /* the line before ended with \r */
    bool has_begun; /* a byte order mark is no longer possible */
};

/* Takes the data of an event: n bytes and a NUL, valid during the call.  Returns 0, or -1 with *e
 * to end the stream. */
typedef int sse_fn(void *ctx, const char *data, size_t n, struct err *e);

/* Take the next n bytes.  Returns 0, or -1 with *e: that of take, or ERR_FORMAT if an event is
 * too long, or ERR_MEMORY. */
int sse_feed(struct sse *s, const char *bytes, size_t n, sse_fn *take, void *ctx, struct err *e);
/* The stream is over.  An event whose last line is complete counts, although the empty line
 * after it is missing. */
int sse_end(struct sse *s, sse_fn *take, void *ctx, struct err *e);
void sse_free(struct sse *s);

#endif
