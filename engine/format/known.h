/*
 * known.h - catalogues of published models without their files.
 *
 * A data file states the facts of models: fields of their config.json and counts of their
 * tokenizers.  Counts marked "estimated" were not made in the published file.  The catalogue that
 * is made from these facts has the tensors of the file that converters write, so its description,
 * plan and prediction are those of that file.  It has no open file: nothing can be read from it.
 */
#ifndef MEMWALL_ENGINE_FORMAT_KNOWN_H
#define MEMWALL_ENGINE_FORMAT_KNOWN_H

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/vocab.h"

#define KNOWN_TYPES 4
#define KNOWN_MOST  200
#define KNOWN_MIXES 12

struct json_doc;
struct json_node;

/* A published file with weight types that differ from the rule. */
struct known_mix {
    const char *label; /* "UD-Q4_K_XL" */
    /* The types of matrices, of gate and up of experts, of their down, and of the table of
     * n-grams. */
    enum tensor_type matrix, inner, down, table;
};

struct known_model {
    const char *name;               /* "gemma-4-E2B" */
    const char *types[KNOWN_TYPES]; /* labels of its usual files, the smallest first */
    uint32_t n_type;
    struct known_mix mix[KNOWN_MIXES];
    uint32_t n_mix;
    const struct json_node *config; /* fields of config.json; values of shapes alone */
    struct vocab_info vocab;        /* counts, n_token aside; ids are -1 */
};

struct mw_known {
    struct json_doc *doc; /* holds the texts */
    uint32_t n;
    struct known_model model[KNOWN_MOST];
};

/* Read the data file.  Returns 0 and *out, or -1 with *e naming the file and the field. */
int known_open(struct mw_known **out, const char *path, struct err *e);
void known_close(struct mw_known *list);

/*
 * Make the catalogue of a model in a file with this label of known_label().
 * Memory for tensors and names is taken from room, which must outlive it.  -1 with *e:
 * ERR_UNSUPPORTED if memwall does not run the architecture, ERR_ARGUMENT for another label.
 */
int known_catalogue(struct catalogue **out, const struct known_model *m, const char *label,
                    struct header_room *room, struct err *e);

/* Returns the name of a label without the suffix of its mixture ("Q4_K" for "q4_k_m"), or NULL
 * if the mixture of types is not known for this model. */
const char *known_label(const struct known_model *m, const char *label);

/* Write the labels that known_label() accepts: "BF16, F16, …". */
void known_labels(const struct known_model *m, char *buf, size_t n);

/* Give each tensor of c its type, as converters do for a file with this label, and its size. */
int known_set_types(struct catalogue *c, const struct known_model *m, const char *label,
                    struct err *e);

#endif
