/*
 * catalogue.h - what a model consists of and where each byte of it lies.
 *
 * A GGUF file, a set of split GGUF files and a Hugging Face snapshot all become this
 * one table: tensor name (GGUF's naming), type, shape, file, byte range; and one
 * description of the hyper-parameters.  Nothing above this room knows which it was.
 *
 * Opening reads headers only (milliseconds and a few MB for a 60 GB file), checks
 * every size and offset against the real files, and leaves none of their pages in
 * the page cache.  A catalogue is not changed after it was opened; any thread may
 * read it.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CATALOGUE_H
#define MEMWALL_ENGINE_FORMAT_CATALOGUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/header_room.h"
#include "engine/format/hparams.h"
#include "engine/format/tensor_type.h"

enum catalogue_kind { CATALOGUE_GGUF, CATALOGUE_SNAPSHOT };

/* One file that tensors lie in.  fd is buffered and read-only, kept open: a path may
 * be replaced, an open file is what it was. */
struct model_file {
    char *path;
    int fd;
    uint64_t size;
    uint64_t dev, ino;
    int64_t mtime_ns;
};

struct tensor_info {
    const char *name; /* canonical: "blk.7.ffn_down.weight"; valid as long as the catalogue */
    enum tensor_type type;
    uint32_t n_dims; /* 1 to 4 */
    uint64_t ne[4];  /* ne[0] is the row length; missing dimensions are 1 */
    uint32_t file;   /* index into files */
    uint64_t offset; /* of the first byte, from the start of that file */
    uint64_t bytes;
    bool is_text; /* belongs to the text model; others are left out of every sum */
    bool add_one; /* norm of a Gemma 2 or 3 snapshot: stored as weight - 1 */
};

struct catalogue {
    enum catalogue_kind kind;
    char *path; /* as the user named it */
    int dir_fd; /* snapshot: its folder; else -1 */
    uint32_t n_file;
    struct model_file *files;
    uint32_t n_tensor;
    struct tensor_info *tensors; /* in the order of the file */
    uint64_t n_tensor_other;     /* tensors that are not of the text model */
    uint64_t bytes_other;
    struct hparams hparams;
    struct generation_hparams generation;
    struct catalogue_index *index; /* by name; private */
    struct gguf *gguf;             /* parsed header of the first file; private to format/ */
    atomic_bool cancel;            /* set by any thread: loading ends with ERR_CANCELLED */
};

/*
 * Open a model: a GGUF file (the first of a split set), a snapshot folder, or a
 * model.safetensors / its index inside one.
 * Returns 0 and *out, to be closed by the caller; or -1 with *e naming file, field
 * and offset, and *out NULL.
 */
int catalogue_open(struct catalogue **out, const char *path, struct err *e);

/* The same; the memory of headers is taken from room, which must outlive the catalogue. */
int catalogue_open_within(struct catalogue **out, const char *path, struct header_room *room,
                          struct err *e);

/* The same without hyper-parameters: for files that hold a vocabulary only, and for
 * listing what a file that is no model contains.  hparams is zero. */
int catalogue_open_bare(struct catalogue **out, const char *path, struct err *e);

void catalogue_close(struct catalogue *c);

/* NULL if there is no tensor of that name. */
const struct tensor_info *catalogue_find(const struct catalogue *c, const char *name);

/* Rows of a tensor: the product of all dimensions but the first. */
uint64_t tensor_rows(const struct tensor_info *t);

/*
 * Check that every file is still what it was when it was opened (device, inode,
 * size, modification time).  Returns 0, or -1 with *e naming the file.
 */
int catalogue_check_files(const struct catalogue *c, struct err *e);

/* For loops that load: 0, or -1 with *e (ERR_CANCELLED) once somebody has set cancel. */
int catalogue_go_on(const struct catalogue *c, struct err *e);

/* Whether a file, by device and inode, belongs to the model: one of its weight files, or
 * anything in the folder of a snapshot, also through a link. */
bool catalogue_has_file(const struct catalogue *c, uint64_t dev, uint64_t ino);

#endif
