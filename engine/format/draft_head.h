/*
 * draft_head.h - draft heads: parts of a model that guess the tokens after the next one.
 *
 *     nextn       one more layer of the model, in its files or in a file of its own (mtp-*.gguf)
 *     assistant   a few layers in a file of their own, which read the keys and values of the model
 *
 * Both make their input from the embedding of a token and from a hidden row of the model, the
 * trunk: the values of the token before at the end of the trunk's layers.
 *
 * A head becomes a catalogue of its own, so that its tensors are checked and described like those
 * of a model.  The catalogue also has the tables that the head shares with the trunk.  Its layers
 * count from 0.  A tensor of the trunk's files has the same place in both catalogues.
 */
#ifndef MEMWALL_ENGINE_FORMAT_DRAFT_HEAD_H
#define MEMWALL_ENGINE_FORMAT_DRAFT_HEAD_H

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/* Returns whether the model's own files have a draft head. */
bool draft_head_is_in(const struct catalogue *trunk);

/* Returns whether a file or folder holds a draft head, which need not fit the trunk. */
bool draft_head_is(const struct catalogue *trunk, const char *path);

/*
 * Open the draft head in a file or folder; path NULL: the one in the trunk's own files.  The trunk
 * must outlive it.  Returns 0, or -1 with *e naming file and field: it is not a draft head, or
 * does not fit the trunk.
 */
int draft_head_open(struct catalogue **out, const struct catalogue *trunk, const char *path,
                    struct err *e);

/* Returns the store of keys and values that layer l of an assistant reads: its index among the
 * layers of the trunk that own some. */
uint32_t draft_head_store(const struct catalogue *head, uint32_t l);

/* Write the name that a tensor of a nextn head has in its GGUF file. */
void draft_head_spell(const struct catalogue *head, const char *canonical, char *buf, size_t n);

#endif
