/*
 * pull_variant.h - the models among the files of a repository.
 *
 * A GGUF file, a split set, or a snapshot (safetensors files with configuration and tokenizer)
 * is one variant.  Its files are those that opening the model needs, and all of them are in the
 * repository: a model with a missing file is left out, and the file is named.
 * Projectors of images and files of other kinds are left out, too.  A draft head in a GGUF file
 * of its own is fetched with a model in the same folder.  Snapshots in folders are
 * variants if the repository has no other model.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_VARIANT_H
#define MEMWALL_ENGINE_HUB_PULL_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/snapshot_index.h"
#include "engine/hub/find.h"
#include "engine/hub/pull_list.h"

struct pull_variant {
    char label[FIND_LABEL]; /* "Q4_0", "safetensors", or "" if the name has none */
    size_t n_stem;          /* length of the first file's name without label and ".gguf" */
    bool is_snapshot;
    bool has_tokenizer;     /* of a snapshot */
    char *folder;           /* of a snapshot in one; NULL: none */
    uint32_t first_weights; /* of a snapshot: the small files come before it */
    uint32_t n_file;
    uint32_t *files; /* [n_file], indices in the list; the first names the variant */
    uint64_t bytes;  /* of all files */
    uint32_t head;   /* index of the file with a draft head; UINT32_MAX: there is none */
    uint32_t left_head; /* the same for one that is not fetched */
};

#define PULL_BROKEN     8 /* sentences that are kept */
#define PULL_HEAD_SHARE 8 /* of its model: --draft auto uses no larger head */

struct pull_variants {
    struct pull_variant *all; /* [n], the smallest first */
    uint32_t n;
    uint32_t n_broken;         /* models that cannot be opened, because a file is missing */
    char *broken[PULL_BROKEN]; /* what is missing of the first of them */
    struct err doubt;          /* why the kind of a file with a doubtful name is not known */
};

/* Looks into files of the list.  A function returns -1 with *e: ERR_FORMAT if the file is bad,
 * otherwise it could not be read. */
struct pull_look {
    int (*read_index)(void *ctx, uint32_t file, struct shard_list *s, struct err *e);
    int (*is_model)(void *ctx, uint32_t file, bool *is, struct err *e); /* of a GGUF file */
    void *ctx;
};

/* The caller frees *out in any case; it starts as zero.  Fails if memory is short, the user
 * stops, or the index of a snapshot could not be read. */
int pull_variants_make(struct pull_variants *out, const struct pull_list *l,
                       const struct pull_look *look, struct err *e);
void pull_variants_free(struct pull_variants *c);

/*
 * Find the variants that `text` names: a file, a file without ".gguf", a type, or a folder with
 * models; upper and lower case are the same for types.  Returns their number and the index of
 * the first in *first.
 */
uint32_t pull_variants_match(const struct pull_variants *c, const struct pull_list *l,
                             const char *text, uint32_t *first);

#endif
