/*
 * pull_header.h - a model of which only the headers were fetched.
 *
 * The headers go to files of the right size in a folder, and the rest of these files is a hole.
 * To the engine that is a model like any other, as long as it reads no weight: it can be opened
 * and planned before anything else of it is fetched.
 *
 * A GGUF file does not say how long its header is, and most of it is the vocabulary: some 6 MB,
 * 16 MB for Gemma.  All types of one model have the same vocabulary, in nearly the same place.
 * So the first header is fetched completely.  Of the others only the list of tensors is
 * fetched, which is found by the first one's, and takes the place of the first one's list.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_HEADER_H
#define MEMWALL_ENGINE_HUB_PULL_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/http/http.h"
#include "engine/hub/pull_list.h"
#include "engine/hub/repo.h"

#define PULL_HEADERS ((uint64_t)128 << 20) /* of all headers of one listing */

/* A header of GGUF. */
struct pull_header {
    unsigned char *bytes;
    uint64_t n;            /* bytes that were fetched */
    uint64_t tensors, end; /* where the list of tensors begins and ends */
    uint64_t n_tensor;
};

/* A file at a URL. */
struct pull_remote {
    struct http *http;
    const char *url;
    uint64_t size;
    uint64_t *left; /* bytes that may still be fetched for headers */
    /* For the reason why the hub denies it. */
    const char *endpoint;
    const struct repo *repo;
    bool has_token;
};

/*
 * Write the file `path` with the header of a GGUF file.  `model` is a header of another type of
 * the same model, or empty: then it becomes this file's header, to be freed by the caller with
 * pull_header_free().  NULL: neither.  Returns -1 with *e if the header cannot be fetched or is
 * not one.
 */
int pull_header_gguf(const struct pull_remote *r, const char *path, struct pull_header *model,
                     struct err *e);
void pull_header_free(struct pull_header *h);

/* The same for a safetensors file. */
int pull_header_safetensors(const struct pull_remote *r, const char *path, struct err *e);

/* Write the file `path` with all bytes of a small file. */
int pull_header_all(const struct pull_remote *r, const char *path, struct err *e);

/* Read all bytes of a small file, which the caller frees. */
int pull_header_text(const struct pull_remote *r, char **text, struct err *e);

/* Is a GGUF file a model, by the beginning of its header? */
int pull_header_kind(const struct pull_remote *r, bool *is_model, struct err *e);

#endif
