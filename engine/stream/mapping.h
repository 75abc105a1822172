/*
 * mapping.h - the files mapped whole: what other programs do, to be compared with.
 *
 * The kernel decides what stays in memory: nothing is planned, read ahead or measured
 * here.  Dropping behind the read position takes two steps, since pages that are mapped
 * stay in the page cache and pages that are not mapped any more stay there too until
 * they are dropped by name.
 *
 * A file that is cut short while it is mapped raises SIGBUS in whoever touches it.  The size
 * is checked before each block, but the file may be cut right after.  The program's handler
 * of SIGBUS therefore calls mw_mapping_repair, which puts a page of zeros in the place and
 * notes it, and the pass fails at its next block or at its end.
 */
#ifndef MEMWALL_ENGINE_STREAM_MAPPING_H
#define MEMWALL_ENGINE_STREAM_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/stream/source.h"

/* Declared in memwall.h, for the program's handler of SIGBUS. */
bool mw_mapping_repair(const void *address);

struct range;

struct mapping {
    const struct source *source;
    unsigned char **base; /* [n_file] */
    unsigned char *start; /* of all files, one after the other */
    uint64_t bytes;
    struct range *range; /* of mapping.c; what mw_mapping_repair knows of it */
};

int mapping_open(struct mapping *m, const struct source *s, struct err *e);
void mapping_close(struct mapping *m); /* safe on a zeroed struct */

/* The bytes at offset, of which `bytes` were checked to lie in the file; or NULL, *e. */
const void *mapping_at(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes,
                       struct err *e);
/* 0; -1 with *e if bytes that were handed out could not be read and were zeros instead. */
int mapping_check(const struct mapping *m, struct err *e);
void mapping_drop(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes);

#endif
