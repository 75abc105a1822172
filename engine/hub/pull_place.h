/*
 * pull_place.h - where a fetched file is put in the hub's cache (cache_layout.h).
 *
 * While a file is fetched, a lock is held that the hub's own program takes, too:
 * CACHE/.locks/models--ORG--NAME/DIGEST.lock, with flock(2).
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_PLACE_H
#define MEMWALL_ENGINE_HUB_PULL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/hub/pull_list.h"
#include "engine/hub/repo.h"

struct pull_place {
    const char *cache; /* the folder of the cache */
    const struct repo *repo;
    const char *commit;
};

#define PULL_PATH_MAX 4096

/* Write the path of the content of a file, and of what is there of it.  Makes the folder. */
int pull_place_blob(const struct pull_place *p, const struct pull_file *f,
                    char path[PULL_PATH_MAX], char incomplete[PULL_PATH_MAX], struct err *e);

/* Write the path of the file in the snapshot. */
int pull_place_file(const struct pull_place *p, const struct pull_file *f,
                    char path[PULL_PATH_MAX], struct err *e);

/* Is the content there, in the right size?  It was checked when it came. */
bool pull_place_has(const struct pull_place *p, const struct pull_file *f);

/* Returns the bytes of the content that are on this disk, complete or not. */
uint64_t pull_place_have(const struct pull_place *p, const struct pull_file *f);

/* Take the lock of the content.  Returns a descriptor that holds it, or -1 with *e if another
 * program has it.  *is_locked is false on a file system without locks, where the descriptor
 * holds nothing. */
int pull_place_lock(const struct pull_place *p, const struct pull_file *f, bool *is_locked,
                    struct err *e);

/* Link the file of the snapshot to its content.  On a file system without links the content
 * itself becomes the file of the snapshot, as with the hub's own program, and *is_link is false.
 */
int pull_place_link(const struct pull_place *p, const struct pull_file *f, bool *is_link,
                    struct err *e);

/* Write the ref, so that the revision leads to the commit. */
int pull_place_ref(const struct pull_place *p, struct err *e);

/* Returns the bytes that are free for the user on the file system of the cache, or UINT64_MAX
 * if that is unknown.  Makes the folder. */
uint64_t pull_place_free(const struct pull_place *p);

/* Returns the bytes of the largest file on that file system, as far as its type limits them. */
uint64_t pull_place_most(const struct pull_place *p);

#endif
