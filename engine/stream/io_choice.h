/*
 * io_choice.h - direct or buffered reads, and the reason.
 *
 * `auto` reads directly, because direct reads leave nothing in the page cache and cost no
 * copy.  It reads through the page cache only if the file system takes no direct reads, or
 * if a probe found direct reads clearly slower there, as on some virtual disks and some of
 * the cheapest SSDs.
 */
#ifndef MEMWALL_ENGINE_STREAM_IO_CHOICE_H
#define MEMWALL_ENGINE_STREAM_IO_CHOICE_H

#include <stdbool.h>

#include "engine/stream/source.h"
#include "engine/stream/stream.h"

struct io_choice {
    const char *name; /* "direct", "buffered", "mmap" */
    char reason[160]; /* "as requested", "2.4 times as fast as buffered" */
};

/* Open the files of c as the options require.  Returns 0; -1 with *e and nothing open. */
int io_choice_open(struct io_choice *out, struct source *s, const struct catalogue *c,
                   const struct stream_options *options, struct err *e);

/* Whether auto avoids direct reads, given rates measured for both; 0: not measured. */
bool io_prefers_buffered(double direct_bytes_s, double buffered_bytes_s);

#endif
