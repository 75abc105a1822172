/*
 * mapping.h - the files mapped as a whole, as other programs do it, for comparison.
 *
 * The kernel decides which pages stay in memory; nothing is planned or read ahead here.  Reads are
 * page faults, and only the kernel counts their bytes, for the process as a whole.  Dropping
 * pages takes two steps: mapped pages cannot leave the page cache, and pages
 * that are no longer mapped stay there until posix_fadvise() drops them.
 *
 * Touching a mapped page of a file that was cut short raises SIGBUS.  The size is checked
 * before each block, but the file may be cut right after that.  The program's SIGBUS handler
 * therefore calls mw_mapping_repair(), which maps a page of zeros there and records it, and
 * the pass fails at its next block or at its end.
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
    unsigned char *start; /* of all files, one after another */
    uint64_t bytes;
    struct range *range; /* of mapping.c, for mw_mapping_repair() */
    int io;              /* /proc/self/io; -1: the kernel does not count reads */
    uint64_t counted;    /* its figure at the last call of mapping_count() */
};

int mapping_open(struct mapping *m, const struct source *s, struct err *e);
void mapping_close(struct mapping *m); /* safe on a zeroed struct */

/* The bytes at offset, after checking that the file still has `bytes` of them; NULL with *e
 * if not. */
const void *mapping_at(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes,
                       struct err *e);
/* Returns 0, or -1 with *e if bytes returned earlier could not be read and were zeros. */
int mapping_check(const struct mapping *m, struct err *e);
/* Returns the bytes that the kernel has read from disks for this process since the last call. */
uint64_t mapping_count(struct mapping *m);

void mapping_drop(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes);

#endif
