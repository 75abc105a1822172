/*
 * catalogue_build.h - between the files that make a catalogue: the container readers
 * put files and tensors in, then it is sealed and checked.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CATALOGUE_BUILD_H
#define MEMWALL_ENGINE_FORMAT_CATALOGUE_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/gguf.h"
#include "engine/format/names.h"

struct catalogue_index {
    struct name_index names; /* canonical name -> tensor */
    struct name_pool pool;   /* every name */
    uint32_t room_file, room_tensor;
    struct header_room *room; /* what the header may take; NULL: not counted */
    char prefix[40];          /* snapshot: what stands before "layers.N." */
    char *folder;             /* snapshot: where its files lie */
};

/* Take over an open file; f is emptied.  Returns its index, or -1 with *e. */
int64_t catalogue_add_file(struct catalogue *c, struct model_file *f, struct err *e);

/* Enter a tensor; t->name is copied.  A name that is there already is refused. */
int catalogue_add_tensor(struct catalogue *c, const struct tensor_info *t, struct err *e);

/* Mark what is not of the text model (is_text) and add it up. */
void catalogue_mark_text(struct catalogue *c);

/* All tensors that the architecture needs are there with the right shape and a type
 * that weights can have. */
int catalogue_check_tensors(const struct catalogue *c, struct err *e);

/* How the file spells a canonical name: itself in GGUF, the other name in a snapshot. */
void catalogue_spell(const struct catalogue *c, const char *canonical, char *buf, size_t n);

/* The parts of catalogue_open by kind of model. */
int open_gguf_set(struct catalogue *c, struct err *e);

#endif
