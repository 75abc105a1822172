/*
 * id_list.h - token ids: parse lists of decimal numbers, and choose the most likely id.
 */
#ifndef MEMWALL_SRC_TEXT_ID_LIST_H
#define MEMWALL_SRC_TEXT_ID_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/*
 * Read at most max ids separated by spaces, commas or newlines from a file ("-": standard
 * input) into *out; the caller frees it.  Each must be below n_vocab.  The text is not kept in
 * memory.  Returns -1 with *e naming file and byte.  A file without ids is an error, and so is
 * one with more than max ids (ERR_CONTEXT).
 */
int id_list_read(const char *path, uint32_t n_vocab, size_t max, uint32_t **out, size_t *n,
                 struct err *e);

/* Parse n bytes of text, which may contain no ids.  Messages use name. */
int id_list_parse(const char *name, const char *text, size_t n, uint32_t n_vocab,
                  uint32_t **out, size_t *n_id, struct err *e);

#endif
