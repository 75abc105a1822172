/*
 * snapshot.h - a folder in the layout of the Hugging Face hub: config.json and one or several
 * safetensors files, which may be links into the hub's cache.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SNAPSHOT_H
#define MEMWALL_ENGINE_FORMAT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/json.h"

/* Returns whether a path is a snapshot: a folder, or one of the files in it. */
bool snapshot_is(const char *path);

/* Fill files and tensors of c from the folder.  If config.json is of an architecture that
 * memwall runs, names become canonical and hparams.arch is set.  bare accepts any other. */
int open_snapshot(struct catalogue *c, bool bare, struct err *e);

/* Open one safetensors file alone, to list it.  Names are not translated. */
int open_safetensors(struct catalogue *c, struct err *e);

/*
 * Read a file of the snapshot's folder as a JSON tree.  Returns 1 and *out, 0 if the file does
 * not exist and need is false, or -1 with *e naming the file.
 */
int snapshot_json(const struct catalogue *c, const char *name, bool need, struct json_doc **out,
                  struct err *e);

/* Fill c->hparams and c->generation from config.json and generation_config.json. */
int hparams_from_config(struct catalogue *c, struct err *e);

/* The same from parsed trees; hparams.arch is set.  generation may be NULL. */
int hparams_from_trees(struct catalogue *c, const struct json_node *config,
                       const struct json_node *generation, struct err *e);

/* Returns the architecture by model_type or architectures[0], or NULL with *e naming it. */
const struct arch *snapshot_arch(const struct json_node *config, struct err *e);

/* The name without a prefix of the text model, such as "model.language_model.". */
const char *snapshot_inner_name(const char *name);

/*
 * Write the canonical name of a snapshot's tensor to buf; false if it is not in the table of
 * tensors.  prefix (at least 40 bytes) gets the part before "layers.N.".
 */
bool snapshot_to_canonical(const struct arch *a, const char *name, char *buf, size_t n,
                           char *prefix);

/* The reverse, for messages. */
void snapshot_from_canonical(const struct arch *a, const char *prefix, const char *canonical,
                             char *buf, size_t n);

#endif
