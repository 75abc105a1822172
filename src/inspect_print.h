/*
 * inspect_print.h - what a model consists of, for a person and for machines.
 */
#ifndef MEMWALL_SRC_INSPECT_PRINT_H
#define MEMWALL_SRC_INSPECT_PRINT_H

#include <stdio.h>

#include "engine/memwall.h"

/* text is NULL, with why not in *no_text, if the model has no vocabulary that can be
 * read. */
void inspect_print(FILE *to, const struct summary *s, const struct mw_text_info *text,
                   const struct err *no_text);

/* One line a tensor: name, type, shape, bytes, where, what for. */
void inspect_print_tensors(FILE *to, const struct mw_inspect *i);

/* All of it as one JSON object and a newline; tensors only if asked for. */
void inspect_print_json(FILE *to, const struct mw_inspect *i, const struct mw_text_info *text,
                        bool tensors);

#endif
