/*
 * models.h - the models on this machine: the places to look, and what a user's name means.
 */
#ifndef MEMWALL_SRC_MODELS_MODELS_H
#define MEMWALL_SRC_MODELS_MODELS_H

#include "engine/memwall.h"
#include "ui/options/options.h"

/* The places are read from the environment once and stay for the life of the process. */
const struct mw_places *models_places(void);

/* The file of descriptions and the limits that were measured before. */
struct mw_describe_options models_describe_options(void);

/*
 * Replace o->model by the path that it means (mw_models_resolve()), set o->model_name, and apply
 * what is beside its weights for a command, enum command_bit (beside.h).  Returns an exit code;
 * if it is not EXIT_OK, the reason was printed, with the models that the name can be.
 */
int models_resolve(struct options *o, unsigned command);

/* Is there a model besides the guide? */
bool models_has_others(void);

/*
 * Find the model of a saved chat and set o->model to a text for models_resolve(): the file that
 * the chat names or, without it, the model that was opened last of those with the same name.
 */
enum models_chat {
    MODELS_CHAT_UNKNOWN, /* the chat names no model; nothing is set */
    MODELS_CHAT_GONE,    /* nothing is set */
    MODELS_CHAT_OTHER,   /* the file is gone, and another model has the name */
    MODELS_CHAT_FOUND,
};
struct store_model;
enum models_chat models_of_chat(struct options *o, const struct store_model *chat);

/* Does the model at path have the name that the chat has? */
bool models_is_of_chat(const char *path, const struct store_model *chat);

/* Use the guide: set o->model.  Returns -1 with *e if it is not installed. */
int models_use_guide(struct options *o, struct err *e);

/* A sentence for the user of the guide. */
extern const char models_guide_notice[];

/* Use the guide if no model is given, with the sentence on standard error unless o->quiet. */
int models_choose(struct options *o, struct err *e);

/* Is this a path, which need not exist, or does it name models on this machine? */
bool models_is_here(const char *name);

/* Does a word name a model: MODEL_NAMED, one that is listed; MODEL_LIKE, it is written as
 * ORG/NAME or NAME:TYPE, but none has this name; or MODEL_NOT? */
enum model_word { MODEL_NOT, MODEL_LIKE, MODEL_NAMED };
enum model_word models_word(const char *word);

/* Write the name of the model that is most like name to buf.  Returns false if none is. */
bool models_similar(const char *name, char *buf, size_t n);

/* Write the name of the model in the list: the one that it was found by, since names of Ollama may
 * share weights, or else the first with its files; or the name of its file. */
void models_name_of(const struct options *o, char *buf, size_t n);

/* Remember that a model was opened. */
void models_used(const char *path);

#endif
