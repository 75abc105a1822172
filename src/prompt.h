/*
 * prompt.h - the prompt of `memwall run`: the argument, standard input, or both.
 */
#ifndef MEMWALL_SRC_PROMPT_H
#define MEMWALL_SRC_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/*
 * Read a file ("-": standard input) and give each piece to fn, in order.  Stops when fn
 * returns -1.  An error of fn stays as fn made it; an error of reading names the file.
 */
typedef int prompt_piece(void *ctx, const char *text, size_t len, struct err *e);
int prompt_stream(const char *path, prompt_piece *fn, void *ctx, struct err *e);

/* Bytes of a regular file; 0: not known. */
uint64_t prompt_file_bytes(const char *path);

/* All of a file ("-": standard input) into *out (free it), with a NUL after it.  More than
 * max_bytes are refused before they are held. */
int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len,
                     struct err *e);

/* The same for a file of settings: nothing but a regular file is read. */
int prompt_read_settings(const char *path, size_t max_bytes, char **out, size_t *len,
                         struct err *e);

/*
 * The text to send, in *out (free it).  Standard input is read unless it is a terminal;
 * with an argument it follows as attached text, an empty line between.  raw: input alone
 * is taken byte for byte, else its last newline is dropped.  -1 with *e if there is none
 * (ERR_ARGUMENT), it cannot be read, or it has more than max_bytes (ERR_CONTEXT).
 */
int prompt_make(const char *arg, bool raw, size_t max_bytes, char **out, size_t *len,
                struct err *e);

#endif
