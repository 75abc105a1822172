/*
 * cache_layout.h - the names and folders of the Hugging Face hub's cache.
 *
 * Other programs read and write the same cache, so its layout is not ours to change:
 *
 *     CACHE/models--ORG--NAME/          the repository ORG/NAME
 *         refs/main                     text: the commit that "main" was at
 *         blobs/DIGEST                  the bytes of a file, once
 *         snapshots/COMMIT/PATH         a link to ../../blobs/DIGEST, or the file itself where
 *                                       there are no links
 *
 * A name that comes from the disk or from the network is checked before it becomes part of a
 * path.  A checked name does not leave its folder, is not hidden and is safe to print.
 */
#ifndef MEMWALL_ENGINE_HUB_CACHE_LAYOUT_H
#define MEMWALL_ENGINE_HUB_CACHE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define CACHE_MAX_NAME 255  /* bytes of one part of a path */
#define CACHE_MAX_REPO 200  /* of ORG/NAME */
#define CACHE_MAX_FILE 1024 /* of the path of a file in a repository */
#define CACHE_MAX_DEPTH 8   /* folders that such a path has: fetching and listing agree */

/* Is text a repository: NAME or ORG/NAME of letters, digits, '-', '_' and '.'?  Neither part
 * begins or ends with '-' or '.', or contains "--" or "..", as on the hub itself. */
bool cache_is_repo(const char *text);

/* Is text one part of a path: valid UTF-8 without '/', control characters and characters that
 * look like nothing (visible.h), and without a dot at its beginning? */
bool cache_is_name(const char *text);

/* Is text the path of a file in a repository: names separated by single slashes, in at most
 * CACHE_MAX_DEPTH folders? */
bool cache_is_file(const char *text);

/* Is text a commit or a digest: 40 or 64 lower-case hexadecimal digits? */
bool cache_is_digest(const char *text);

/* Write "models--ORG--NAME" for a checked repository. */
void cache_folder_of(const char *repo, char *buf, size_t n);

/* The opposite.  Returns false if the folder is not the one of a model. */
bool cache_repo_of(const char *folder, char repo[CACHE_MAX_REPO + 1]);

/* The parts of a repository's folder. */
enum cache_part {
    CACHE_REPO,      /* the folder itself; name is NULL */
    CACHE_REFS,      /* the folder of refs, or the ref of that name */
    CACHE_SNAPSHOTS, /* the folder of snapshots, or the one of that commit */
    CACHE_BLOBS,     /* the folder of blobs, or the one with that digest */
};

/* Write the path of a part in the cache folder `cache`; name may be NULL.  Returns -1 with *e
 * (ERR_ARGUMENT) if it does not fit n bytes. */
int cache_path(char *buf, size_t n, const char *cache, const char *repo, enum cache_part part,
               const char *name, struct err *e);

#endif
