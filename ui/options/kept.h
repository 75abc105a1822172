/*
 * kept.h - settings that come back: with a chat, and with a model.
 *
 * Budget, context, types of keys and values, threads and the way of reading are kept as a text,
 * "memory 600M, ctx 8192, kv q8_0".  A chat has one in its file.  The one of a model is in a file
 * with a line "TEXT\tNAME" for each model, the last changed first:
 *
 *     memory 600M, kv q8_0\t/models/gemma.gguf
 *     ctx 8192\tllama3.2:1b
 *
 * A model of a store has the name that lasts (mw_models_lasting()), since names of Ollama may share
 * weights; older versions wrote the path of its weights.  Every other model has its path.
 *
 * Texts are read with the parser of the options, so a value that is none is left out.
 */
#ifndef MEMWALL_UI_OPTIONS_KEPT_H
#define MEMWALL_UI_OPTIONS_KEPT_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/options/options.h"

#define KEPT_BYTES  160
#define KEPT_MODELS 64 /* with settings of their own; older ones are forgotten */

/* Is it one of the options that are kept?  Returns the one that stands for it, OPT_KV for the
 * types of keys and of values; N_OPTION: it is not kept. */
enum option_id kept_of(enum option_id id);

/* Write the values of the options in use[] that are kept.  Returns buf, "" if there are none. */
char *kept_print(const struct options *o, const bool use[N_OPTION], char buf[KEPT_BYTES]);

/* Set the options of text that are not fixed[].  taken[]: those that were set, which are given
 * from now on.  Returns whether there is one. */
bool kept_apply(struct options *o, const char *text, const bool fixed[N_OPTION],
                bool taken[N_OPTION]);

/* Write them for a person: "budget 600 MiB, context 8192, keys and values q8_0".  Returns buf. */
char *kept_say(const struct options *o, const bool use[N_OPTION], char *buf, size_t n);

struct kept_model {
    const char *name; /* NULL or a path: it has none */
    const char *path; /* of its weights */
};

/* Read the text of a model from the file; "" if there is none.  Returns buf. */
char *kept_read(const char *file, const struct kept_model *m, char buf[KEPT_BYTES]);
/* Write it; "" forgets it.  -1 with *e. */
int kept_write(const char *file, const struct kept_model *m, const char *text, struct err *e);
/* Change the values of the options in use[] in the text of a model.  -1 with *e. */
int kept_change(const char *file, const struct kept_model *m, const struct options *o,
                const bool use[N_OPTION], struct err *e);

#endif
