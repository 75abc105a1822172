/*
 * known.h - published models that are not on this machine, to plan them before a download.
 */
#ifndef MEMWALL_ENGINE_API_KNOWN_H
#define MEMWALL_ENGINE_API_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct mw_model;

/*
 * Published models by their shape, without a file.  A data file states their sizes (known.h).
 * The plan of such a model equals the plan of its file.
 */
struct mw_known;

#define MW_KNOWN_TYPES 4

struct mw_known_info {
    const char *name;                  /* "gemma-4-E2B"; valid until the list is closed */
    const char *types[MW_KNOWN_TYPES]; /* of its usual files, "Q4_0" */
    uint32_t n_type;
};

int mw_known_open(struct mw_known **out, const char *path, struct err *e);
void mw_known_close(struct mw_known *k);
size_t mw_known_count(const struct mw_known *k);
void mw_known_at(const struct mw_known *k, size_t i, struct mw_known_info *out);
/*
 * Find a model by name: "gemma-4-E2B:Q4_0", "google/gemma-4-E2B-it".  Upper and lower case are
 * the same.  Without a type, *label is its first one.  Returns false if it is not known, or
 * with *label NULL if the type is not.
 */
bool mw_known_find(const struct mw_known *k, const char *name, size_t *i, const char **label);
/* Write the types that names of model i can have: "BF16, F16, ...". */
void mw_known_types(const struct mw_known *k, size_t i, char *buf, size_t n);
/*
 * Open model i of k as a file of this type would be; k can be closed before it.  It can be
 * planned, and its limits can be measured, all but those of the disk.  Everything that reads
 * weights or text fails.  -1 with *e: ERR_UNSUPPORTED if memwall does not run this
 * architecture.
 */
int mw_model_open_known(struct mw_model **out, const struct mw_known *k, size_t i,
                        const char *label, struct err *e);

#endif
