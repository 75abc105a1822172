/*
 * known.h - published models that memwall knows by their shape, from share/known-models.json.
 */
#ifndef MEMWALL_SRC_MODELS_KNOWN_H
#define MEMWALL_SRC_MODELS_KNOWN_H

#include "engine/memwall.h"

/* Open the list.  -1 with *e if the data file is missing or damaged. */
int known_list(struct mw_known **out, struct err *e);

/*
 * Open a known model by the name that a user gave: "gemma-4-E2B:Q4_0".  -1 with *e: ERR_IO if
 * no model has such a name, ERR_ARGUMENT for a similar name, which is proposed, or for an
 * unknown type, ERR_UNSUPPORTED if memwall does not run the architecture.
 */
int known_open_model(struct mw_model **out, const char *name, struct err *e);

/* Print the known models whose names contain the letters and digits of a name that was not
 * found, on standard error.  Upper and lower case are the same; prints nothing if none does. */
void known_suggest(const char *name);

/* Write the folder where models are kept.  Its disk is the one that limits them. */
void known_folder(char *buf, size_t n);

#endif
