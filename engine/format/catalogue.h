/*
 * catalogue.h - the tensors and hyper-parameters of a model, and where each byte is.
 *
 * GGUF files, sets of split GGUF files and Hugging Face snapshots all become one catalogue: a
 * table of tensors (name as in GGUF, type, shape, file, byte range) and the hyper-parameters.
 * Nothing above this room knows the kind of file.
 *
 * Opening reads headers only, which takes milliseconds and a few MB for a file of 60 GB.  It
 * checks every size and offset against the real files and leaves no page of them in the page
 * cache.  A catalogue does not change after it was opened, so any thread may read it.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CATALOGUE_H
#define MEMWALL_ENGINE_FORMAT_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/cancel.h"
#include "engine/base/err.h"
#include "engine/format/defaults.h"
#include "engine/format/header_room.h"
#include "engine/format/hparams.h"
#include "engine/format/tensor_type.h"

enum catalogue_kind { CATALOGUE_GGUF, CATALOGUE_SNAPSHOT };

/* A file with tensors.  fd is buffered, read-only and stays open, so a replaced path does not
 * matter. */
struct model_file {
    char *path;
    int fd;
    uint64_t size;
    uint64_t dev, ino;
    int64_t mtime_ns, ctime_ns; /* of the content; of anything, which nothing can set back */
};

/* How a tensor is stored.  Only tensors with the weights of experts, and the table of n-grams,
 * are neither LAYOUT_ROWS nor LAYOUT_SPLIT. */
enum tensor_layout {
    LAYOUT_ROWS,       /* one row after the other */
    LAYOUT_PIECES,     /* the same; each expert or piece of the table has its own place */
    LAYOUT_TRANSPOSED, /* one column of an expert after the other */
    LAYOUT_SPLIT,      /* MXFP4, NVFP4: the values of all blocks, and elsewhere all scales */
};

struct tensor_piece {
    uint32_t file;
    uint64_t offset;
};

/*
 * Scales of weights that are in a tensor of their own and stay in memory.  Each matrix of the
 * weights has n_row x n_col of them, one for each `rows` rows and `cols` values of a row.
 */
struct tensor_scales {
    enum tensor_type type; /* F32, F16, BF16 or F8_E8M0 */
    bool is_divisor;       /* weights are divided by them, else multiplied */
    uint32_t n_row, n_col, rows, cols;
    uint32_t n_piece;                  /* matrices: one, or one per expert */
    const struct tensor_piece *pieces; /* [n_piece] */
};

struct tensor_info {
    const char *name; /* canonical, "blk.7.ffn_down.weight"; valid as long as the catalogue */
    enum tensor_type type;
    uint32_t n_dims; /* 1 to 4 */
    uint64_t ne[4];  /* ne[0] is the row length; missing dimensions are 1 */
    uint32_t file;   /* index into files */
    uint64_t offset; /* of the first byte, from the start of that file */
    uint64_t bytes;
    enum tensor_layout layout;
    /* One per expert; of LAYOUT_SPLIT all values and then all scales, or those of each expert. */
    uint32_t n_piece;
    const struct tensor_piece *pieces; /* [n_piece]; NULL: all bytes are at offset */
    const struct tensor_scales *scales; /* NULL: none */
    bool is_text; /* belongs to the text model; sums leave out all others */
    bool add_one; /* a norm of a snapshot that stores weight - 1 */
    bool is_log;  /* the decay of a delta net in a snapshot, stored as log(-weight) */
};

struct catalogue {
    enum catalogue_kind kind;
    bool is_known; /* known.h: it has a configuration, and the tensors of a GGUF file */
    char *path;    /* as the user named it */
    int dir_fd; /* snapshot: its folder; else -1 */
    uint32_t n_file;
    struct model_file *files;
    uint32_t n_tensor;
    struct tensor_info *tensors; /* in the order of the file */
    uint64_t n_tensor_other;     /* tensors outside the text model */
    uint64_t bytes_other;
    struct hparams hparams;
    struct generation_hparams generation;
    struct default_list defaults; /* hyper-parameters that the file leaves out */
    struct catalogue_index *index; /* by name; private */
    struct gguf *gguf;             /* parsed header of the first file; private to format/ */
    /* A draft head (draft_head.h) has the model that it drafts for, which outlives it, and an
     * architecture of its own.  NULL: a model. */
    const struct catalogue *trunk;
    struct arch *head_arch;
    uint32_t *token_order; /* [n_vocab] the tokens of one cluster after those of another; or NULL */
    /* The token of the thread that loads now, under the lock of the model: once it is set, loading
     * ends with ERR_CANCELLED. */
    const struct cancel *cancel;
    struct model_file config; /* snapshot: the identity of its config.json, which is not open */
};

/*
 * Open a model: a GGUF file (the first one of a split set), a snapshot folder, or a
 * model.safetensors or index file in such a folder. Returns 0 and *out, which the caller
 * closes, or -1 with *e naming file, field and offset, and *out NULL.
 */
int catalogue_open(struct catalogue **out, const char *path, struct err *e);

/* The same.  Memory for headers is taken from room, which must outlive the catalogue. */
int catalogue_open_within(struct catalogue **out, const char *path, struct header_room *room,
                          struct err *e);

/* The same without hyper-parameters, which stay zero: for files with only a vocabulary, and to
 * list the contents of files that are not models. */
int catalogue_open_bare(struct catalogue **out, const char *path, struct err *e);

void catalogue_close(struct catalogue *c);

/* Write the name that the file itself uses for a canonical name. */
void catalogue_spell(const struct catalogue *c, const char *canonical, char *buf, size_t n);

/* Add to an error about the contents of the model that its file has another converter's own form,
 * if it has. */
void catalogue_note_form(const struct catalogue *c, struct err *e);

/* Returns NULL if there is no tensor of that name. */
const struct tensor_info *catalogue_find(const struct catalogue *c, const char *name);

/* Returns the rows of a tensor: the product of all dimensions but the first. */
uint64_t tensor_rows(const struct tensor_info *t);

/* Returns how many scales of its own a tensor has, and their bytes in the file. */
uint64_t tensor_n_scales(const struct tensor_info *t);
uint64_t tensor_scales_bytes(const struct tensor_info *t);

/*
 * Check that every file has the device, inode, size and modification time that it had when it
 * was opened.  Returns 0, or -1 with *e naming the file.
 */
int catalogue_check_files(const struct catalogue *c, struct err *e);

/* For loops that load.  Returns 0, or -1 with *e (ERR_CANCELLED) once the token is set. */
int catalogue_go_on(const struct catalogue *c, struct err *e);

/* Returns whether the file with this device and inode belongs to the model: a weight file, or
 * anything in a snapshot's folder, links included. */
bool catalogue_has_file(const struct catalogue *c, uint64_t dev, uint64_t ino);

#endif
