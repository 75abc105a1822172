/*
 * pull_choice.h - the models among the files of a repository.
 *
 * A GGUF file, a split set, or a snapshot (safetensors files with configuration and tokenizer)
 * is one choice.  Projectors of images and files of other kinds are left out.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_CHOICE_H
#define MEMWALL_ENGINE_HUB_PULL_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/hub/find.h"
#include "engine/hub/pull_list.h"

struct pull_choice {
    char label[FIND_LABEL]; /* "Q4_0", "safetensors", or "" if the name has none */
    size_t n_stem;          /* length of the first file's name without label and ".gguf" */
    bool is_snapshot;
    uint32_t n_file;
    uint32_t *files; /* [n_file], indices in the list; the first names the choice */
    uint64_t bytes;  /* of all files */
};

struct pull_choices {
    struct pull_choice *all; /* [n], the smallest first */
    uint32_t n;
    uint32_t n_broken; /* sets of which a part is missing */
};

/* The caller frees *out in any case; it starts as zero. */
int pull_choices_make(struct pull_choices *out, const struct pull_list *l, struct err *e);
void pull_choices_free(struct pull_choices *c);

/*
 * Find the choices that `text` names: a file, a file without ".gguf", or a type; upper and
 * lower case are the same for types.  Returns their number and the index of the first in
 * *first.
 */
uint32_t pull_choices_match(const struct pull_choices *c, const struct pull_list *l,
                            const char *text, uint32_t *first);

#endif
