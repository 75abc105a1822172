/*
 * snapshot_index.h - which files hold the weights of a snapshot.
 *
 * They are model.safetensors, or the files that model.safetensors.index.json names.  Of an index
 * only the set of names is used.  The headers of the files state where each tensor is; sizes in
 * the index are ignored.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SNAPSHOT_INDEX_H
#define MEMWALL_ENGINE_FORMAT_SNAPSHOT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/names.h"

#define SHARD_MAX 4096

#define SNAPSHOT_CONFIG    "config.json"
#define SNAPSHOT_TOKENIZER "tokenizer.json"
#define SNAPSHOT_SINGLE    "model.safetensors"
#define SNAPSHOT_INDEX     "model.safetensors.index.json"

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
/* The same from the text of an index. */
int snapshot_index_parse(struct shard_list *s, const char *text, size_t len, struct err *e);
void shard_list_free(struct shard_list *s);

/* Where the files of a snapshot are: in a folder, or in a repository on a hub. */
struct snapshot_place {
    bool (*has)(void *ctx, const char *name);
    int (*read_index)(void *ctx, struct shard_list *s, struct err *e); /* of SNAPSHOT_INDEX */
    void *ctx;
};

/*
 * List the files with the weights.  SNAPSHOT_SINGLE is used alone if it is there, as
 * transformers does: an index beside it is left over from another build.  Otherwise the index
 * names the files, which may be missing.  The list is empty if there is neither.  Everything
 * that opens, lists or fetches a snapshot asks this function, so all of them use the same files.
 * Returns 0, or -1 with *e.
 */
int snapshot_weights(struct shard_list *s, const struct snapshot_place *p, struct err *e);

#endif
