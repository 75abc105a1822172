/*
 * snapshot.h - a folder as the Hugging Face hub keeps it: config.json beside one or
 * several safetensors files, plain or as links into the hub's cache.
 */
#ifndef MEMWALL_ENGINE_FORMAT_SNAPSHOT_H
#define MEMWALL_ENGINE_FORMAT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/format/json.h"

/* Whether a path names a snapshot: a folder, or one of the files that make one. */
bool snapshot_is(const char *path);

/* Fill files and tensors of c from the folder.  With a config.json of an architecture
 * that is read, names are canonical and hparams.arch is set; bare accepts any other. */
int open_snapshot(struct catalogue *c, bool bare, struct err *e);

/* One safetensors file by itself, for listing only: names as they are. */
int open_safetensors(struct catalogue *c, struct err *e);

/*
 * Open a file of the snapshot's folder and read it as a JSON tree.  Returns 1 and *out; 0
 * if the file does not exist and need is false; -1 with *e naming the file.
 */
int snapshot_json(const struct catalogue *c, const char *name, bool need, struct json_doc **out,
                  struct err *e);

/* c->hparams and c->generation out of config.json and generation_config.json. */
int hparams_from_config(struct catalogue *c, struct err *e);

/* The same from trees that were read already; hparams.arch is set.  generation may be
 * NULL. */
int hparams_from_trees(struct catalogue *c, const struct json_node *config,
                       const struct json_node *generation, struct err *e);

/* By model_type or architectures[0]; NULL with *e naming what it is instead. */
const struct arch *snapshot_arch(const struct json_node *config, struct err *e);

/*
 * The canonical name of a snapshot's tensor, written to buf; false if it is not one of
 * the text model.  prefix (of at least 40 bytes) takes what stood before "layers.N.".
 */
bool snapshot_to_canonical(const struct arch *a, const char *name, char *buf, size_t n,
                           char *prefix);

/* The other way round, for messages. */
void snapshot_from_canonical(const struct arch *a, const char *prefix, const char *canonical,
                             char *buf, size_t n);

#endif
