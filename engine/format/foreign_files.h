/*
 * foreign_files.h - what files and models are that memwall does not run.
 *
 * Every message about one of them uses these tables: opening a file or a folder, the list of
 * models, and the choice of files in a repository.
 */
#ifndef MEMWALL_ENGINE_FORMAT_FOREIGN_FILES_H
#define MEMWALL_ENGINE_FORMAT_FOREIGN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalogue;

struct foreign_kind {
    const char *pattern;   /* of names without folders; upper and lower case are the same */
    const char *is, *hint; /* "an adapter (LoRA), not a model"; what to do */
};

/* Returns row i of the kinds of files by their names, or NULL after the last one.  The first
 * row that one of several files matches says what they are together. */
const struct foreign_kind *foreign_file_kind(uint32_t i);
bool foreign_file_is(const struct foreign_kind *k, const char *name);

/* Returns what models of an architecture are, in GGUF files or configurations, if they do not
 * write text; else NULL. */
const char *foreign_arch_is(const char *name);

/* Write to buf what an open GGUF file is, and what to do, if it is not a model that writes
 * text; *key becomes the key that shows it, or "".  Returns whether it is one. */
bool foreign_gguf_is(const struct catalogue *c, char *buf, size_t n, const char **key);

/* Write to buf what the end of a file's name means, if it is that of a piece of a file or of a
 * download that has not ended, and what to do.  Returns whether it is. */
bool foreign_piece_is(const char *path, char *buf, size_t n);

#endif
