/*
 * models.h - the models on this machine: the places to look, and what a user's name means.
 */
#ifndef MEMWALL_SRC_MODELS_H
#define MEMWALL_SRC_MODELS_H

#include "engine/memwall.h"
#include "ui/options/options.h"

#define GUIDE_FILE "memwall-guide.gguf"

/* The places are read from the environment once and stay for the life of the process. */
const struct mw_places *models_places(void);

/* The file with descriptions of models; NULL without a home directory. */
const char *models_cache_file(void);

/*
 * Replace o->model by the path that it means (mw_models_resolve()).  Returns an exit code; if
 * it is not EXIT_OK, the reason was printed, with the models that the name can be.
 */
int models_resolve(struct options *o);

/* Remember that a model was opened. */
void models_used(const char *path);

#endif
