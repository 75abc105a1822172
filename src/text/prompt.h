/*
 * prompt.h - the prompt of `memwall run`: the argument, standard input, or both.
 */
#ifndef MEMWALL_SRC_TEXT_PROMPT_H
#define MEMWALL_SRC_TEXT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/memwall.h"

/*
 * Read a file ("-": standard input) and pass each piece to fn, in order.  Stops if fn returns
 * -1 and leaves its error unchanged; a read error names the file.  A line on standard error
 * says so if standard input does not come or end for a moment.
 */
typedef int prompt_piece(void *ctx, const char *text, size_t len, struct err *e);
int prompt_stream(const char *path, prompt_piece *fn, void *ctx, struct err *e);

/* Size of a regular file in bytes; 0: unknown. */
uint64_t prompt_file_bytes(const char *path);

/* Read a whole file ("-": standard input) into *out, with a NUL after it; the caller frees it.
 * A longer file than max_bytes is an error, and no more than that is kept in memory. */
int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len,
                     struct err *e);

enum prompt_stdin { PROMPT_STDIN_AUTO, PROMPT_STDIN_READ, PROMPT_STDIN_NEVER };

struct prompt_source {
    const char *arg; /* the argument; may be NULL */
    enum prompt_stdin stdin_use;
    bool raw;     /* keep the last newline of the input */
    bool quiet;   /* print no notices */
    bool is_left; /* out: standard input was left alone */
    bool said_left;
};

/*
 * Build the text to send in *out; the caller frees it.  PROMPT_STDIN_AUTO reads standard input
 * unless it is a terminal.  It also leaves it alone if there is an argument and the parent
 * process has the same standard input, which then belongs to a loop or a script; a file at its
 * start is read in any case.  The input follows the argument as attached text, after an empty
 * line.  Returns -1 with *e if there is no prompt (ERR_ARGUMENT), it cannot be read, or it is
 * longer than max_bytes (ERR_CONTEXT).
 */
int prompt_make(struct prompt_source *from, size_t max_bytes, char **out, size_t *len,
                struct err *e);

/* Was standard input left alone although data waits there?  It may arrive late. */
bool prompt_has_left(const struct prompt_source *from);
/* Say so once, unless quiet. */
void prompt_report_left(struct prompt_source *from);

#endif
