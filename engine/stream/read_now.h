/*
 * read_now.h - small ranges of the model's files, read in the calling thread past the page
 * cache: norms at the start, and samples of weights.
 */
#ifndef MEMWALL_ENGINE_STREAM_READ_NOW_H
#define MEMWALL_ENGINE_STREAM_READ_NOW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/* The file that was read last stays open for the next range. */
struct read_now {
    const struct catalogue *c;
    unsigned char *buffer;
    int fd; /* of `file`; -1: none */
    uint32_t file;
    bool is_direct;
};

/* c must live until read_now_close().  Returns 0, or -1 with *e. */
int read_now_open(struct read_now *r, const struct catalogue *c, struct err *e);

/* Copy a range within a file to dst.  Returns 0, or -1 with *e, which names file and offset. */
int read_now(struct read_now *r, uint32_t file, uint64_t offset, uint64_t bytes, void *dst,
             struct err *e);

void read_now_close(struct read_now *r); /* safe on a zeroed struct */

#endif
