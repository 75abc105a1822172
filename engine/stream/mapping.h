/*
 * mapping.h - the files mapped whole: what other programs do, to be compared with.
 *
 * The kernel decides what stays in memory: nothing is planned, read ahead or measured
 * here.  Dropping behind the read position takes two steps, since pages that are mapped
 * stay in the page cache and pages that are not mapped any more stay there too until
 * they are dropped by name.  A file that is cut short while it is mapped raises SIGBUS in
 * whoever touches it; the size is looked at before each block, which leaves only the
 * moment in between.
 */
#ifndef MEMWALL_ENGINE_STREAM_MAPPING_H
#define MEMWALL_ENGINE_STREAM_MAPPING_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/stream/source.h"

struct mapping {
    const struct source *source;
    unsigned char **base; /* [n_file] */
};

int mapping_open(struct mapping *m, const struct source *s, struct err *e);
void mapping_close(struct mapping *m); /* safe on a zeroed struct */

/* The bytes at offset, of which `bytes` were checked to lie in the file; or NULL, *e. */
const void *mapping_at(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes,
                       struct err *e);
void mapping_drop(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes);

#endif
