/*
 * models.h - the models on this machine; a part of memwall.h.
 */
#ifndef MEMWALL_ENGINE_HUB_MODELS_H
#define MEMWALL_ENGINE_HUB_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/limits/limits.h"
#include "engine/plan/anchor.h"
#include "engine/plan/table.h"

struct mw_options;

/* Programs that keep models, and other places. */
enum mw_store {
    MW_STORE_GUIDE,  /* installed with memwall */
    MW_STORE_MODELS, /* the user's folder of models */
    MW_STORE_HUB,    /* the cache of the Hugging Face hub */
    MW_STORE_OLLAMA,
    MW_STORE_LM_STUDIO,
    MW_STORE_LLAMA_CPP,
    MW_STORE_FOLDER, /* the current folder */
    MW_STORE_RECENT, /* somewhere else; it was opened before */
};
const char *mw_store_name(enum mw_store s); /* "hub" */

struct mw_place {
    enum mw_store store;
    const char *folder; /* which need not exist */
};

struct mw_places {
    const struct mw_place *place; /* [n] */
    size_t n;
    const char *recent; /* file for mw_models_used(); NULL: none */
};

/* How a model fits this machine with given options. */
enum mw_fit {
    MW_FIT_FITS,        /* all its weights are pinned */
    MW_FIT_STREAMS,     /* weights are read for each token */
    MW_FIT_TOO_LARGE,   /* not even the smallest plan fits the budget */
    MW_FIT_UNSUPPORTED, /* memwall cannot run it */
    MW_FIT_UNKNOWN,     /* its headers could not be read */
};

/* Parts of a model beside its weights. */
enum mw_part {
    MW_PART_ADAPTER = 1,  /* changes of the weights: LoRA */
    MW_PART_MESSAGES = 2, /* a conversation to begin with */
    MW_PART_OTHER = 4,    /* of a kind that is unknown here */
    MW_PART_SYSTEM = 8,
    MW_PART_PARAMS = 16,
    MW_PART_TEMPLATE = 32, /* a chat template that is not Jinja; that of the weights is used */
};
/* Parts that memwall never applies and that change the answers. */
#define MW_PARTS_LOST (MW_PART_ADAPTER | MW_PART_MESSAGES | MW_PART_OTHER)

/* Write the parts in words: "adapter, template"; "" for 0.  Returns buf. */
char *mw_parts_text(unsigned parts, char *buf, size_t n);

struct mw_found {
    const char *name; /* "gemma-4-E2B-it:Q4_0", "ORG/NAME:Q4_0", "llama3.2:1b"; safe to print */
    const char *path; /* for mw_model_open(); not safe to print */
    enum mw_store store;
    unsigned parts;       /* enum mw_part: what is beside its weights */
    const char *manifest; /* Ollama's file that names them, or NULL */
    uint64_t file_bytes;  /* of all its files */
    int64_t changed_s;   /* when they were written, in seconds since 1970 */
    int64_t used_s;      /* when mw_models_used() was called for it; 0: never */

    /* Filled by mw_describe(). */
    bool is_described;
    char arch[32], type[16]; /* "": unknown, as in struct mw_model_info */
    uint32_t n_ctx_train;
    uint64_t n_param;
    enum mw_fit fit;
    char why[200]; /* MW_FIT_UNSUPPORTED and _UNKNOWN: the reason */
    /* MW_FIT_FITS and _STREAMS: the plan.  MW_FIT_TOO_LARGE: the smallest one. */
    struct plan plan;
    struct mw_limits limits; /* that its prediction used */
};

struct mw_models;

/*
 * List the models in these places, sorted by name.  Reads no file of a model.  A model that is
 * in several places is listed once, at the first of them; in Ollama's store, once for each
 * name.  Folders that cannot be read are skipped.  A model of Ollama's store whose files are
 * damaged or gone is listed as MW_FIT_UNKNOWN with the reason; its path is the manifest.
 */
int mw_models_find(struct mw_models **out, const struct mw_places *places, struct err *e);
void mw_models_free(struct mw_models *m);
size_t mw_models_count(const struct mw_models *m);
const struct mw_found *mw_models_at(const struct mw_models *m, size_t i);
/* Returns the first model with the files at path, under any name, or NULL if it is not listed.
 */
const struct mw_found *mw_models_of(const struct mw_models *m, const char *path);

/* By name; the largest first; the last used first, then the newest. */
enum mw_models_order { MW_BY_NAME, MW_BY_SIZE, MW_BY_USE };
void mw_models_sort(struct mw_models *m, enum mw_models_order order);

/*
 * Find the models that a name can refer to.  Upper and lower case are the same, and so is the
 * end ":latest" to none.  Of these, the first that any model meets counts:
 *
 *     the name; the name without the organisation; the name without the part after ':', which
 *     may also be the file or the weight type in its name; the beginning of a name; a part of a
 * name
 *
 * Stores the indices of the first n matches and returns the number of all.
 */
size_t mw_models_match(const struct mw_models *m, const char *name, size_t *found, size_t n);
/* Store the indices of at most n models whose names are similar.  Returns their number. */
size_t mw_models_similar(const struct mw_models *m, const char *name, size_t *found, size_t n);

/* The parts beside the weights that can be applied as defaults.  Values are texts from files: not
 * checked, and not safe to print. */
struct mw_beside {
    const char *name;   /* of the model in the list, or NULL: it was found by its path */
    unsigned parts;     /* those that are not in the members below */
    const char *system; /* the system message, or NULL */
    struct mw_beside_param {
        const char *name, *value; /* "temperature", "0.7"; a list is given item by item */
    } *param;
    size_t n_param;
};
/* Read the parts of a found model.  A part that cannot be read stays in (*out)->parts. */
int mw_beside_read(struct mw_beside **out, const struct mw_found *f, struct err *e);
void mw_beside_free(struct mw_beside *b);

/*
 * Attach a draft head to a model that was opened at path: o->draft_file, if that is one, or, if the
 * options may use one, what is found beside a model that has none of its own.  Returns 0, or -1
 * with *e: the named one is not a head of this model.
 */
struct mw_model;
struct mw_options;
int mw_head_attach(struct mw_model *m, const char *path, const struct mw_options *o,
                   struct err *e);

/*
 * Write the path of the model that the user means: an existing file, the one model in an
 * existing folder, or else the one model that matches the name.  A path that does not exist is
 * copied, so that opening it reports it.  Returns -1 with *e if several models match
 * (ERR_ARGUMENT), or none (ERR_IO): it names those that match or are similar.  *beside, unless
 * beside is NULL, is what is beside the weights of that model.  *is_part, unless it is NULL: the
 * name is only the beginning or a part of that model's name.
 */
int mw_models_resolve(const struct mw_places *places, const char *name, char *path, size_t n,
                      struct mw_beside **beside, bool *is_part, struct err *e);

/*
 * Write a text for mw_models_resolve() that means the model at path later, too, and from any
 * folder: its name in the hub's cache or in Ollama's store, or else the absolute path.  name: the
 * text that was resolved to the path; in Ollama's store several names have the same weights.
 * Returns false if it does not fit.
 */
bool mw_models_lasting(const struct mw_places *places, const char *name, const char *path,
                       char *buf, size_t n);

/* Does the description of a model contain every word of the filter?  Upper and lower case are
 * the same.  The description is name, architecture, weight type and store. */
bool mw_found_has(const struct mw_found *f, const char *filter);

/* Write to the file `recent` that a model was opened now.  Does nothing if it cannot. */
void mw_models_used(const char *recent, const char *model_path);

/* The sizes that the rate of a disk depends on. */
struct mw_read_sizes {
    uint64_t file_bytes; /* of all files of the model */
    size_t read_bytes;   /* of a mean block: mw_read_bytes() */
};

/* Set *out to the limits of this machine for a model at path, and *anchor to its newest tokens,
 * or to zeros.  out->rate lists the weight types; it keeps the list and sets those rates that are known.
 * false: unknown. */
typedef bool mw_limits_fn(void *ctx, const char *path, const struct mw_options *o,
                          const struct mw_read_sizes *sizes, struct mw_limits *out,
                          struct plan_anchor *anchor);

/*
 * A describer reads the headers of found models and makes the plan of each.  It keeps what it
 * reads in a file, which may be deleted at any time: a model that did not change is described
 * without opening it.  The plan is that of mw_plan() without OpenBLAS.
 */
struct mw_describe_options {
    const char *file;     /* NULL: nothing is kept */
    mw_limits_fn *limits; /* NULL: without them there is no prediction */
    void *limits_ctx;
    uint64_t header_bytes; /* a budget for the program and a header; 0: no limit */
    bool needs_tokenizer;  /* a model without one that works is unsupported: it has no words */
};
struct mw_describer;
int mw_describer_new(struct mw_describer **out, const struct mw_options *o,
                     const struct mw_describe_options *how, struct err *e);
void mw_describe(struct mw_describer *d, struct mw_models *m, size_t i);
/* Describe with other options from now on. */
void mw_describer_set(struct mw_describer *d, const struct mw_options *o);
/* Forget the descriptions, so that mw_describe() makes them again. */
void mw_models_undescribe(struct mw_models *m);
/* Write the file if it changed, and free d, which may be NULL. */
void mw_describer_free(struct mw_describer *d);

/* Write in words how it fits: "fits", "streams, about 1.2 tok/s in 2 GiB". */
void mw_fit_text(const struct mw_found *f, char *buf, size_t n);

#endif
