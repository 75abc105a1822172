/*
 * catalogue_build.h - steps of building a catalogue, shared by the files that do it.
 *
 * The readers of containers add files and tensors.  Then the catalogue is checked.
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
    struct header_room *room;    /* limit for the header's memory; NULL: not counted */
    char prefix[40];             /* snapshot: the part of names before "layers.N." */
    char *folder;                /* snapshot: the folder of its files */
    struct tensor_piece *pieces; /* [n_piece] of joined tensors */
    uint32_t n_piece;
    struct tensor_scales *scales; /* [n_scales] the same */
    uint32_t n_scales;
};

/* Make an empty catalogue for this path.  Returns NULL with *e. */
struct catalogue *catalogue_new(const char *path, struct header_room *room, struct err *e);

/* Add the files and tensors at c->path: of a GGUF file, a split set, or a snapshot. */
int catalogue_open_files(struct catalogue *c, struct err *e);

/* Complete a catalogue whose tensors and hyper-parameters were read: count its vocabulary, and
 * check that the tensors form a model. */
int catalogue_finish(struct catalogue *c, struct err *e);

/* Take over an open file and empty f.  Returns its index, or -1 with *e. */
int64_t catalogue_add_file(struct catalogue *c, struct model_file *f, struct err *e);

/* Add a tensor.  t->name is copied; a name that exists is refused. */
int catalogue_add_tensor(struct catalogue *c, const struct tensor_info *t, struct err *e);

/* Tensors that a joined one consists of: "blk.7.ffn_gate.12.weight" (kind 0 is gate, 1 up, 2
 * down), pieces of the table of n-grams, and names that end like this. */
#define PIECE_TABLE 3
void tensor_piece_name(int kind, uint32_t layer, uint32_t expert, char *buf, size_t n);
#define MXFP4_VALUES ".values"
#define MXFP4_SCALES ".scales"
/* The same of "blk.7.ffn_up.weight": scales of parts of it, a factor or a divisor of all. */
#define SCALES_TAIL  ".scales"
#define SCALE_TAIL   ".scale"
#define DIVISOR_TAIL ".divisor"

/* Join tensors that are stored in pieces.  c->hparams.arch must be known. */
int catalogue_join_tensors(struct catalogue *c, struct err *e);

/* Set is_text in all tensors and count those outside the text model. */
void catalogue_mark_text(struct catalogue *c);

/* Check that all tensors that the model needs exist, and that all known ones have the right
 * shape and a possible type. */
int catalogue_check_tensors(const struct catalogue *c, struct err *e);

/* Read a GGUF file or a split set into c. */
int open_gguf_set(struct catalogue *c, struct err *e);

#endif
