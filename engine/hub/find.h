/*
 * find.h - the list of models while it is made; private to hub/.
 *
 *     find.c           the list, its order, mw_models_find()
 *     find_walk.c      folders of files that people name
 *     find_hub.c       the hub's cache: repositories, refs, snapshots
 *     find_ollama.c    Ollama's store: manifests, blobs
 *     find_beside.c    parts beside the weights: adapters, a system message, parameters
 *     find_recent.c    the models that were opened before
 *     find_name.c      names from files
 *     find_match.c     models from names
 *     find_describe.c  figures from headers, and the plan made from them
 *     find_record.c    descriptions on disk
 *
 * Finding reads folders, the sizes of files, the indices and configurations of snapshots, and
 * headers only of files with doubtful names, so a name is resolved before any budget counts.
 * Everything on disk is hostile.  Depth, folders, entries of folders and results are bounded, every
 * folder is entered once, and a file whose name is not safe to print is left out.
 */
#ifndef MEMWALL_ENGINE_HUB_FIND_H
#define MEMWALL_ENGINE_HUB_FIND_H

#include "engine/memwall.h"

#define FIND_MAX         4096  /* models */
#define FIND_MAX_FOLDERS 2048  /* entered in one place */
#define FIND_MAX_ENTRIES 65536 /* of folders, read in one place */
#define FIND_LABEL       24

/* The identity of a model's files: a description holds as long as it is the same. */
struct find_id {
    uint64_t dev, ino; /* of the first file; of config.json of a snapshot */
    uint64_t bytes;    /* of all files with weights */
    int64_t mtime_ns, ctime_ns; /* the newest of them */
};

struct find_entry {
    struct mw_found found; /* its name and path are allocated */
    struct find_id id;
    char label[FIND_LABEL]; /* the weight type in the file's name: "Q4_K_M"; "": none */
    char *file;             /* path in the repository without ".gguf"; NULL outside of one */
    bool is_broken;         /* found.why says what is missing; there is nothing to open */
};

struct mw_models {
    struct find_entry *entries;
    size_t n, n_room;
};

/* find.c */

/* Returns the entry with these files, or NULL. */
struct find_entry *find_same(const struct mw_models *m, const struct find_id *id);

/*
 * Add a model unless its files are in the list, or the list is full.  name is copied; file,
 * label and manifest may be NULL.  Returns -1 with *e only if memory is short.
 */
struct find_new {
    enum mw_store store;
    const char *name, *path, *file, *label, *manifest;
    const char *broken; /* what is missing, or NULL */
    unsigned parts; /* enum mw_part */
    struct find_id id;
};
int find_add(struct mw_models *m, const struct find_new *new, struct err *e);

/* Free the strings of an entry that leaves the list. */
void find_drop(struct find_entry *entry);

/* find_walk.c */

/* Read the identity of a GGUF file, the first file of a split set, or the folder of a snapshot.
 * Returns false if path is none of them. */
bool find_identify(const char *path, struct find_id *id);
/* The same for one regular file of any name. */
bool find_identify_file(const char *path, struct find_id *id);
/* The same for a path that may be any of them, as users open models. */
bool find_identify_any(const char *path, struct find_id *id);

/* Does a name end in `tail`, upper and lower case being the same? */
bool find_ends_in(const char *name, const char *tail);

/* Is it the name of a GGUF file, or of the first file of a set? */
bool find_is_model_file(const char *name);

/* Is the folder of a snapshot a draft head, by its config.json?  It belongs to a model and is not
 * listed, like GGUF files with one. */
bool find_is_head_folder(const char *folder);

/* May a GGUF file of this name be a draft head?  Only opening it beside its model shows that. */
bool find_is_head_name(const char *name);

/* May a GGUF file of this name be a projector of images or a matrix of importance?  A model can
 * have such a name, too, so the header decides (gguf_walk_is_model()). */
bool find_is_doubtful(const char *name);

/*
 * Add the models in a folder and `depth` levels below it.  Those of a repository get the name
 * that find_name_repo() gives them later, others the name of their file.
 */
int find_walk(struct mw_models *m, enum mw_store store, const char *folder, const char *repo,
              unsigned depth, struct err *e);

/* find_hub.c, find_ollama.c: add the models of a store. */
int find_hub(struct mw_models *m, const char *folder, struct err *e);
int find_ollama(struct mw_models *m, const char *folder, struct err *e);

/* The layers of a manifest of Ollama.  A digest is in hex, "" if there is no such layer. */
#define OLLAMA_DIGEST     72
#define OLLAMA_MAX_PARAMS 4
struct ollama_layers {
    char weights[OLLAMA_DIGEST], system[OLLAMA_DIGEST];
    char params[OLLAMA_MAX_PARAMS][OLLAMA_DIGEST]; /* later ones win */
    unsigned n_params, parts;
    bool is_damaged; /* not a manifest, or the digest of its weights is not one */
};
/* Returns false if it is not a manifest of a model with weights in one file. */
bool ollama_read(struct ollama_layers *out, const char *manifest);
/* Do two manifests have the same system message, parameters, and kinds of other layers that change
 * answers here? */
bool ollama_has_same_parts(const char *manifest, const char *other);
/* Write the path of an existing blob of the store.  Returns false if there is none. */
bool ollama_blob(const char *root, const char *digest, char *path, size_t n);

/* find_beside.c */

/* Returns the parts that are in the folder of a model: enum mw_part. */
unsigned find_parts(const char *path);

/* Add the models in a folder that a user named: of a repository in the hub's cache, or in
 * files.  Its own name is part of the paths. */
int find_folder(struct mw_models *m, const char *folder, struct err *e);

/* find_recent.c: set when models were used, and add those that are in no store. */
int find_recent(struct mw_models *m, const char *list, struct err *e);

/* find_name.c */

/* Is s[0..n) a weight type as files spell it: Q4_K_M, IQ4_XS, TQ1_0, BF16, F16, F32, MXFP4? */
bool find_is_label(const char *s, size_t n);

/* Returns the length of a file's name (or path) without ".gguf", the number in a split set and
 * the label, and writes the label, or "" if the name has none. */
size_t find_stem(const char *file, char label[FIND_LABEL]);

/* Name the entries from `first` on, which are all of one repository. */
int find_name_repo(struct mw_models *m, size_t first, const char *repo, struct err *e);

#endif
