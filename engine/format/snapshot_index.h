/*
 * snapshot_index.h - model.safetensors.index.json, the list of a snapshot's files.
 *
 * Only the set of names is used.  The headers of the files state where each tensor is; sizes in
 * the index are ignored.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SNAPSHOT_INDEX_H
#define MEMWALL_ENGINE_FORMAT_SNAPSHOT_INDEX_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/names.h"

#define SHARD_MAX 4096

struct shard_list {
    const char **names; /* [n], sorted; plain names of files in the same folder */
    uint32_t n;
    struct name_pool pool; /* its room, if any, also counts the table of names */
    struct name_index index;
};

/* Read the index in the open file fd, which has size bytes, into a list without names.  The
 * caller frees the list in any case.  Returns 0, or -1 with *e (field and offset, not the
 * file). */
int snapshot_index_read(struct shard_list *s, int fd, uint64_t size, struct err *e);
void shard_list_free(struct shard_list *s);

#endif
