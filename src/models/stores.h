/*
 * stores.h - where the settings of other programs say that models are kept.
 */
#ifndef MEMWALL_SRC_MODELS_STORES_H
#define MEMWALL_SRC_MODELS_STORES_H

#include "engine/memwall.h"

/* Takes a folder, which is absolute and need not exist. */
typedef void stores_add(enum mw_store store, const char *folder);

/* LM Studio: its home is ~/.lmstudio, ~/.cache/lm-studio, or what ~/.lmstudio-home-pointer names.
 * The models are in models/ there, and in the folder that its settings name. */
void stores_lm_studio(const char *home, stores_add *add);

/* Ollama's service: OLLAMA_MODELS in the unit of the system or of the user, or in what
 * "systemctl edit" wrote.  config is the folder of the user's configurations. */
void stores_ollama(const char *config, stores_add *add);

#endif
