/*
 * prompt.h - the prompt of `memwall run`: the argument, standard input, or both.
 */
#ifndef MEMWALL_SRC_PROMPT_H
#define MEMWALL_SRC_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

/* All of a stream or file ("-": standard input) into *out (free it), NUL behind it.
 * max_bytes guards against a stream that never ends. */
int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len,
                     struct err *e);

/* The same for a file of settings: nothing but a regular file is read. */
int prompt_read_settings(const char *path, size_t max_bytes, char **out, size_t *len,
                         struct err *e);

/*
 * The text to send, in *out (free it).  Standard input is read unless it is a terminal;
 * with an argument it follows as attached text, an empty line between.  raw: input alone
 * is taken byte for byte, else its last newline is dropped.  -1 with *e if there is none
 * (ERR_ARGUMENT) or it cannot be read.
 */
int prompt_make(const char *arg, bool raw, char **out, size_t *len, struct err *e);

#endif
