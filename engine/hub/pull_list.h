/*
 * pull_list.h - the files of a repository, as the hub lists them.
 *
 * Everything in the answer is hostile until it is checked here.  A file whose name is unsafe
 * (cache_layout.h), or differs from another name only in case, is left out and counted.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_LIST_H
#define MEMWALL_ENGINE_HUB_PULL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/http/http.h"
#include "engine/hub/repo.h"

#define PULL_LIST_BYTES ((size_t)32 << 20) /* of the answer */
#define PULL_LIST_FILES 20000
#define PULL_SIZE_MAX   ((uint64_t)1 << 50)
#define PULL_DIGEST     65 /* 40 or 64 hexadecimal digits and a NUL */

struct pull_file {
    char *name; /* "BF16/model-00001-of-00002.gguf" */
    uint64_t size;
    /* The hash of the content: SHA-256 if is_large (kept outside of git), otherwise git's SHA-1
     * of a blob.  The file in the cache has it as its name.  "": the hub does not report it. */
    char etag[PULL_DIGEST];
    bool is_large;
};

/* The thing that the hub does not have, or does not show to this user. */
enum pull_lack { PULL_LACKS_NOTHING, PULL_LACKS_REPO, PULL_LACKS_REVISION };

struct pull_list {
    char commit[PULL_DIGEST]; /* of the revision */
    struct pull_file *files;  /* [n], sorted by name */
    uint32_t n, n_unsafe;
    enum pull_lack lacks;     /* after an error */
};

/*
 * Ask the hub.  Returns -1 with *e, which explains repositories that are missing, private or
 * gated, and says what to do.  The caller frees the list in any case; it starts as zero.
 */
int pull_list_get(struct pull_list *l, struct http *h, const char *endpoint,
                  const struct repo *r, bool has_token, struct err *e);
/* The same from the text of an answer. */
int pull_list_parse(struct pull_list *l, const char *text, size_t len, struct err *e);
void pull_list_free(struct pull_list *l);

/* Fill *e with the reason for a reply other than 200 about the repository r. */
int pull_explain(const struct http_reply *reply, const char *endpoint, const struct repo *r,
                 bool has_token, struct err *e);

#endif
