/*
 * pull_blob.h - one file of a repository, fetched into the hub's cache.
 *
 * The bytes go to "ETAG.incomplete", always in the order of the file: its length is the only
 * state, and a later call, or the hub's own program, goes on from there.  Several ranges arrive
 * in parallel in a window of memory that moves over the file:
 *
 *        in the file      |  window: PULL_WINDOW bytes           |  not requested
 *     ====================|====....|======..|==......|==......|  |
 *                         ^ range 0 ^ range 1 ^ range 2 ^ range 3
 *                         written when the bytes before it are
 *
 * An interruption loses what the window holds, and nothing else.
 *
 * Ranges without order in the file would save that, but need a list of the parts that are
 * there, and the hub's program would take the holes for data.
 *
 * SHA-256 is computed while the bytes are written; the part that was there before is read once.
 * A file is renamed to its name only if size and hash are right.
 *
 * The page cache holds at most two pieces of PULL_PIECE: each is handed to the disk when it is
 * complete, and dropped when the next one is.  O_DIRECT would hold none, but it cannot write
 * the last bytes before an interruption, and some file systems lack it.  A download of 400 MB
 * had at most 14 MiB of its file in the page cache, none at the end, and took 61 MiB itself.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_BLOB_H
#define MEMWALL_ENGINE_HUB_PULL_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/http/http.h"
#include "engine/hub/pull_list.h"

#define PULL_CONNECTIONS 4
#define PULL_RANGE       ((uint64_t)8 << 20)
#define PULL_WINDOW      (6 * PULL_RANGE) /* bytes of memory */
#define PULL_PIECE       ((uint64_t)8 << 20)

/* Failures in a row, without a byte, that end it: before the first byte some 8 seconds, after
 * it some 2 minutes, unless the server asks for longer pauses. */
#define PULL_ATTEMPTS_FIRST 6
#define PULL_ATTEMPTS       12

/* Progress: done of total bytes are on the disk, and of these fetched in this call. */
struct pull_progress {
    const struct pull_file *file;
    bool is_checking; /* reading what an earlier call fetched */
    uint64_t done, total, fetched;
};
typedef void pull_progress_fn(void *ctx, const struct pull_progress *p);

struct pull_blob {
    struct http *http;
    const char *url; /* of the file at the hub */
    const struct pull_file *file;
    const char *path;       /* of the complete file */
    const char *incomplete; /* "PATH.incomplete" */
    pull_progress_fn *progress;
    void *ctx;
};

/* Returns the bytes of a file that an earlier call has fetched. */
uint64_t pull_blob_have(const char *incomplete, uint64_t size);

/*
 * Fetch the file.  Returns 0, or -1 with *e:
 *   ERR_CANCELLED  the user stopped it; another call goes on
 *   ERR_IO         network or disk; another call goes on.  The reply of the hub, if it is the
 *                  reason, is in *reply (status not 0)
 *   ERR_FORMAT     the content has another hash; what was fetched is deleted
 */
int pull_blob(const struct pull_blob *b, struct http_reply *reply, struct err *e);

#endif
