/*
 * model.h - open a model: its files, its shape, and what it can do.
 *
 * Opening reads headers only.  Everything else of the engine takes a model.
 */
#ifndef MEMWALL_ENGINE_API_MODEL_H
#define MEMWALL_ENGINE_API_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct mw_model;

struct mw_model_info {
    char name[128]; /* safe to print on a terminal; may be "" */
    char arch[32];
    char type[16]; /* the weight type of most bytes of the layers: "Q4_K" */
    uint32_t n_layer, n_embd, n_vocab, n_ctx_train;
    uint64_t n_param;    /* parameters of the text model */
    uint64_t file_bytes; /* of all its files */
    uint64_t hot_bytes;  /* weights that one decoded token uses */
};

/* A draft head: a part that guesses the tokens after the next one, from what the model computed. */
struct mw_head_info {
    bool is_in_model; /* in the model's own files */
    char name[128];   /* safe to print on a terminal; may be "" */
    char file[128];   /* the last part of its path */
    uint32_t n_layer;
    uint64_t hot_bytes; /* weights that one drafted token uses, without experts */
};

/* Open a GGUF file, the first file of a split set, or a snapshot folder.  Reads the headers and
 * no weights. */
int mw_model_open(struct mw_model **out, const char *path, struct err *e);
/*
 * The same under a budget of memory_bytes; 0: no limit.  caller_bytes of it are left to the caller
 * (struct mw_options).  If the program and the headers do not fit, *e (ERR_BUDGET) has the bytes
 * that they need and a budget that fits.
 */
int mw_model_open_within(struct mw_model **out, const char *path, uint64_t memory_bytes,
                         uint64_t caller_bytes, struct err *e);
void mw_model_close(struct mw_model *m);
void mw_model_info(const struct mw_model *m, struct mw_model_info *out);
/* Let a draft head in a file or folder of its own draft for the model, instead of one in the
 * model's files, if options name no other one.  Before a session is opened.  -1 with *e: it is not
 * one for this model. */
int mw_model_attach(struct mw_model *m, const char *path, struct err *e);
/* Returns whether a file or folder holds a draft head, perhaps of another model, and no whole
 * model. */
bool mw_is_head(const struct mw_model *m, const char *path);
/* Returns whether the model has a draft head, and describes it. */
bool mw_model_head(const struct mw_model *m, struct mw_head_info *out);
/* Returns why the draft head in the model's files cannot be used; NULL: it can, or there is none.
 */
const struct err *mw_model_no_head(const struct mw_model *m);
/* Drop the pages of the model's files from the page cache.  Pages that a process has mapped
 * stay. */
void mw_model_drop_cache(const struct mw_model *m);
/* Bytes of the model's files that are holes: nothing is on the disk, and reading gives zeros.
 * When only the header of a file was fetched, almost all of it is a hole. */
uint64_t mw_model_hole_bytes(const struct mw_model *m);

/* False for a model that was opened by its shape (known.h). */
bool mw_model_has_file(const struct mw_model *m);
/*
 * Check whether the model can read and write text: load its tokenizer as its first use does,
 * or, if that does not fit the memory_bytes of opening, look at its counts.  Returns -1 with *e
 * if only ids can be evaluated.
 */
int mw_model_check_text(struct mw_model *m, struct err *e);
/* Returns sentences for the user about what the file of the vocabulary leaves open or has wrong,
 * or "".  A chat posts them. */
const char *mw_model_notice(const struct mw_model *m);
/* Returns sentences for the user about keys of the file that memwall does not know, one of which
 * may be another name of a value that the file leaves out; or "".  A chat posts them. */
const char *mw_model_key_notice(const struct mw_model *m);

/*
 * For a handler of SIGBUS with code BUS_ADRERR.  If address is in a mapped model file
 * (MW_IO_MMAP), replaces its page with zeros and returns true: the handler can return, and the
 * evaluation fails with an error that names the file.  Returns false if the signal has another
 * cause.  Without such a handler a truncated file kills the process.  Async-signal-safe.
 */
bool mw_mapping_repair(const void *address);

#endif
